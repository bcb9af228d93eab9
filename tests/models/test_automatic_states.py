"""`span_states="auto"`, which the preset `chunks` has: states where the labels are BIO, and else a model without."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from crfkit import CRF, LBFGS, Bigrams, Chain, Patterns, Segments, load
from crfkit.data import open_dataset
from crfkit.errors import ImpossibleLabelsError, UnsupportedError
from crfkit.features import encode_pairs
from crfkit.models import Checkpoint, average_models, self_train
from tests.cli.commands import run
from tests.models.test_span_states import STATES, corpus
from tests.oracles.span_states import spans_of, write

X, Y = corpus(40)
WORDS = [[position[0] for position in x] for x in X]
QUICK = LBFGS(max_iterations=20)


def written(scheme: str) -> list[list[str]]:
    return [write(spans_of(labels), len(labels), scheme) for labels in Y]


IOB1 = [["I" + label[1:] if label[0] == "B" and (i == 0 or own[i - 1][2:] != label[2:]) else label
         for i, label in enumerate(own)] for own in Y]  # fmt: skip
OTHERS = {
    "iobes": written("iobes"),
    "iob1": IOB1,
    "types": [[label[2:] or label for label in own] for own in Y],
    "bilou": [[label.replace("S-", "U-").replace("E-", "L-") for label in own] for own in written("iobes")],
    "outside": [["O"] * len(own) for own in Y],
}


def check_equal(one: CRF[Any], other: CRF[Any]) -> None:
    np.testing.assert_array_equal(one.weights_, other.weights_)
    assert one.states_ == other.states_


def test_the_preset_chunks_has_states_of_bio() -> None:
    crf = CRF(features="chunks", optimizer=QUICK).fit(WORDS, Y)
    assert (crf.span_states, crf.span_states_, crf.states_) == ("auto", "iobes", STATES)
    check_equal(crf, CRF(features="chunks", optimizer=QUICK, span_states="iobes").fit(WORDS, Y))
    for labels in crf.predict(WORDS, decode="viterbi"):
        assert write(spans_of(labels), len(labels), "bio") == labels
    assert CRF(features="names").span_states is CRF().span_states is None


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("labels", OTHERS.values(), ids=OTHERS)
def test_other_labels_stay_as_they_are(labels: list[list[str]]) -> None:
    crf, plain = (
        CRF(features="chunks", optimizer=QUICK, span_states=asked).fit(WORDS, labels)
        for asked in (None, False)
    )
    assert (crf.span_states, crf.span_states_, plain.span_states) == ("auto", None, False)
    check_equal(crf, plain)


@pytest.mark.parametrize(
    "parameters",
    [
        {"structure": Patterns(["B-PER I-PER"])},
        {"structure": Segments()},
        {"structure": Chain(bigrams="observed", unseen="soft")},
        {"facets": "characters"},
    ],
)
def test_what_does_not_go_with_states_is_trained_without(parameters: dict[str, Any]) -> None:
    crf = CRF(features="chunks", span_states="auto", optimizer=QUICK, **parameters).fit(WORDS, Y)
    assert crf.span_states_ is None
    check_equal(crf, CRF(features="chunks", span_states=False, optimizer=QUICK, **parameters).fit(WORDS, Y))


@pytest.mark.parametrize(
    "bigrams", ["bio", "observed", Bigrams.scheme("bio", ["B-LOC", "B-PER", "I-LOC", "I-PER", "O"])]
)
def test_bigrams_go_with_states(bigrams: Any) -> None:
    crf = CRF(Chain(bigrams=bigrams), features="chunks", optimizer=QUICK).fit(WORDS, Y)
    assert crf.span_states_ == "iobes"
    found = crf.structure_.chain.bigrams
    assert isinstance(found, Bigrams)
    assert found <= Bigrams.scheme("iobes", STATES)


def test_a_few_slips_are_read_as_conlleval_reads_them() -> None:
    """One span of 20 may begin with I-X; fewer than that in a large file, none beside bigrams."""
    valid = [["B-PER", "O"]] * 19
    for n_slips, has_states in ((1, True), (2, False)):
        y = [*valid, *[["I-PER", "O"]] * n_slips]
        crf = CRF(features="chunks", optimizer=QUICK).fit([["x", "y"]] * len(y), y)
        assert (crf.span_states_ == "iobes") is has_states
    right = CRF(features="chunks", optimizer=QUICK).fit([["x", "y"]] * 20, [["B-PER", "I-PER"], *valid])
    slip = CRF(features="chunks", optimizer=QUICK).fit([["x", "y"]] * 20, [["I-PER", "I-PER"], *valid])
    np.testing.assert_allclose(
        slip.predict_marginals([["x", "y"]]), right.predict_marginals([["x", "y"]]), rtol=1e-6
    )


def test_sequences_outside_the_bigrams_are_left_out_first() -> None:
    data, labels = [*WORDS, ["x", "y"]], [*Y, ["O", "I-PER"]]
    with pytest.raises(ImpossibleLabelsError, match="lie outside the bigrams"):
        CRF(Chain(bigrams="bio"), "chunks").fit(data, labels)
    crf = CRF(Chain(bigrams="bio", unseen="extend"), "chunks", optimizer=QUICK).fit(data, labels)
    assert crf.span_states_ is None
    with pytest.warns(UserWarning, match="1 of 41 training sequences"):
        crf = CRF(Chain(bigrams="bio", unseen="skip"), "chunks", optimizer=QUICK).fit(data, labels)
    check_equal(crf, CRF(Chain(bigrams="bio"), "chunks", optimizer=QUICK).fit(WORDS, Y))


def test_partial_labels_and_costs() -> None:
    some: list[Any] = [
        [None if i % 3 == 2 else {own, "O"} if i % 3 else own for i, own in enumerate(y)] for y in Y
    ]
    valid = [entry for entry in some if entry[0] is not None]
    crf = CRF(features="chunks", optimizer=QUICK).fit(WORDS, valid, costs=1.0)
    check_equal(
        crf, CRF(features="chunks", optimizer=QUICK, span_states="iobes").fit(WORDS, valid, costs=1.0)
    )


@pytest.mark.parametrize("labels", [Y, IOB1], ids=["bio", "iob1"])
def test_the_same_from_all_forms_of_data(labels: list[list[str]], tmp_path: Path) -> None:
    settings: dict[str, Any] = {"features": "chunks", "span_states": "auto", "n_threads": 1}
    rows = [[(word,) for word in words] for words in WORDS]
    expected = CRF(**settings).fit(rows, labels, shard_size=40)
    assert (expected.span_states_ == "iobes") is (labels is Y)
    encode_pairs(zip(rows, labels, strict=True), tmp_path / "data", features="chunks", shard_size=40)
    assert open_dataset(tmp_path / "data").n_shards > 2
    lines = (
        "".join(f"{w} {label}\n" for w, label in zip(*pair, strict=True))
        for pair in zip(WORDS, labels, strict=True)
    )
    (tmp_path / "file").write_text("\n".join(lines), encoding="utf-8")
    pairs = iter([*zip(rows, labels, strict=True)])
    for given in (open_dataset(tmp_path / "data"), pairs, tmp_path / "file"):
        crf = CRF(**settings).fit(given, shard_size=40)
        assert crf.states_ == expected.states_
        np.testing.assert_allclose(
            crf.log_probability(rows, labels), expected.log_probability(rows, labels), rtol=1e-3
        )
    hashed = CRF(**settings, hash_bits=12).fit(rows, labels)
    assert hashed.span_states_ == expected.span_states_


def test_a_stored_file_without_beginnings_is_read_as_it_is(tmp_path: Path) -> None:
    encode_pairs([([("a",), ("b",)], ["I-X", "O"])], tmp_path / "data", features="chunks")
    crf = CRF(features="chunks").fit(open_dataset(tmp_path / "data"))
    assert (crf.span_states_, crf.classes_) == (None, ["I-X", "O"])


@pytest.mark.filterwarnings("ignore:all labels are 'O'")
def test_further_training_keeps_what_the_model_has() -> None:
    crf = CRF(features="chunks", optimizer=QUICK).fit(WORDS, Y)
    crf.partial_fit([["x", "y"]], [["O", "I-ORG"]])
    assert crf.span_states_ == "iobes"
    assert "B-ORG" in crf.classes_
    older = CRF(features="chunks", optimizer=QUICK, span_states=False).fit(WORDS, Y)
    older.set_params(span_states="auto").partial_fit(WORDS[:3], Y[:3])
    assert older.span_states_ is None
    plain = CRF(features="chunks", optimizer=QUICK).fit(WORDS[:2], [["O"] * len(x) for x in WORDS[:2]])
    assert plain.partial_fit(WORDS, Y).span_states_ is None


def test_from_the_weights_of_a_model_without_states() -> None:
    older = CRF(features="chunks", span_states=False).fit(WORDS, Y)
    crf = CRF(features="chunks").fit(WORDS, Y, start=older)
    assert crf.span_states_ == "iobes"
    expected = CRF(features="chunks").fit(WORDS, Y)
    np.testing.assert_allclose(crf.log_probability(WORDS, Y), expected.log_probability(WORDS, Y), rtol=1e-2)
    with pytest.raises(UnsupportedError, match="some of the models have states"):
        average_models([older, crf])
    assert average_models([crf, expected]).span_states_ == "iobes"


def test_self_training_and_the_search_for_a_penalty() -> None:
    assert (
        self_train(CRF(features="chunks", optimizer=QUICK), WORDS[:20], Y[:20], WORDS[20:]).states_ == STATES
    )
    crf = CRF(features="chunks", l2="auto", optimizer=QUICK).fit(WORDS, Y, dev=(WORDS[:5], Y[:5]))
    assert crf.span_states_ == "iobes"


@pytest.mark.parametrize("asked", [None, "auto", "iobes", False])
def test_copies_files_and_pickles_keep_it(asked: Any, tmp_path: Path) -> None:
    crf = CRF(features="chunks", optimizer=QUICK, span_states=asked).fit(WORDS, Y)
    expected = "auto" if asked is None else asked
    crf.save(tmp_path / "m.crf")
    for again in (load(tmp_path / "m.crf"), pickle.loads(pickle.dumps(crf))):
        assert (again.span_states, again.states_) == (expected, crf.states_)
        assert again.predict(WORDS) == crf.predict(WORDS)
    assert clone(crf).span_states == expected


def test_a_checkpoint_is_of_one_setting(tmp_path: Path) -> None:
    path = tmp_path / "run"
    short = LBFGS(max_iterations=4)
    CRF(features="chunks", optimizer=short).fit(WORDS, Y, checkpoint=Checkpoint(path, every=2))
    more = Checkpoint(path, every=2, resume=True)
    crf = CRF(features="chunks", optimizer=QUICK).fit(WORDS, Y, checkpoint=more)
    check_equal(crf, CRF(features="chunks", optimizer=QUICK).fit(WORDS, Y))
    with pytest.raises(ValueError, match="span_states"):
        CRF(features="chunks", optimizer=QUICK, span_states=False).fit(WORDS, Y, checkpoint=more)


def test_the_command_line(tmp_path: Path) -> None:
    file, model = tmp_path / "train.txt", tmp_path / "m.crf"
    lines = (
        "".join(f"{word} {label}\n" for word, label in zip(*pair, strict=True))
        for pair in zip(WORDS, Y, strict=True)
    )
    file.write_text("\n".join(lines), encoding="utf-8")
    found = []
    for options in ([], ["--span-states", "none"], ["--features", "names", "--span-states", "auto"]):
        run("train", str(file), "--model", str(model), "--quiet", "--features", "chunks", *options)
        crf = load(model)
        found.append((crf.span_states, crf.span_states_))
    assert found == [("auto", "iobes"), (False, None), ("auto", "iobes")]
