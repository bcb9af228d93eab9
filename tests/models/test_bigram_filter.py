"""`Chain(unseen="skip")` on files and iterators: sequences are left out as they are read, with the bits of memory."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit import CRF, LBFGS, Bigrams, Chain, Patterns
from crfkit.errors import EmptyDataError, LabelError, UnsupportedError
from crfkit.features import encode_pairs
from crfkit.models import SequencesSkipped
from crfkit.models.training import bigram_filter
from crfkit.structures import END, START
from tests.features.test_dataset_writer import words
from tests.models.test_encoded_training import FEATURES, lists

pytestmark = pytest.mark.filterwarnings(
    "ignore::crfkit.models.ConvergenceWarning", "ignore::crfkit.models.UninformativeData"
)
SHORT = LBFGS(max_iterations=4)


def with_ends(pairs: list[tuple[str, str]]) -> Bigrams:
    """These pairs; every label may be the first or the last one."""
    labels = sorted({label for pair in pairs for label in pair})
    return Bigrams(
        [*pairs, *((START, label) for label in labels), *((label, END) for label in labels), (START, END)]
    )


PAIRS = with_ends([(a, b) for a in ("L0", "L1", "L2") for b in ("L0", "L1", "L2") if (a, b) != ("L1", "L0")])


def labelled(n: int = 60) -> list[tuple[Any, Any]]:
    """Sequences whose labels are all known, and some of which have a label that only those left out have."""
    pairs = [
        ([*x], ["L1" if label is None or isinstance(label, set) else label for label in y])
        for x, y in words(n)
    ]
    pairs[7] = ([("w1", "c"), ("w2", "c"), ("w3", "c")], ["L1", "L0", "gone"])
    pairs[20] = ([], [])
    return pairs


@pytest.fixture(autouse=True)
def in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bigram_filter, "_AT_ONCE", 7)


@pytest.mark.parametrize(
    "structure",
    [
        Chain(bigrams=PAIRS, unseen="skip"),
        Chain(bigrams=PAIRS, unseen="skip", start=False, end=False),
        Chain(bigrams="observed", unseen="skip"),
        Patterns(["L0 . L2"], bigrams=PAIRS, unseen="skip"),
    ],
    ids=["pairs", "no ends", "observed", "patterns"],
)
def test_the_bits_of_training_in_memory(structure: Any) -> None:
    pairs = labelled()
    options: dict[str, Any] = {"features": FEATURES, "optimizer": SHORT}
    observed = structure.chain.bigrams == "observed"
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", SequencesSkipped)
        known = CRF(structure, **options).fit(*lists(pairs), shard_size=30)
    with warnings.catch_warnings(record=True) as again:
        warnings.simplefilter("always", SequencesSkipped)
        model = CRF(structure, **options).fit(iter(pairs), shard_size=30)
    assert len(found) == len(again) == (0 if observed else 1)
    assert model.weights_.tobytes() == known.weights_.tobytes()
    assert model.classes_ == known.classes_
    assert model.structure_ == known.structure_
    if not observed:
        assert str(again[0].message) == str(found[0].message)
        assert again[0].filename == __file__
        assert "gone" not in model.classes_


def test_labels_of_spans_and_files(tmp_path: Path) -> None:
    texts = [["O", "B-X", "I-X"], ["O", "I-X", "O"], ["B-Y", "I-Y"], ["B-Y", "I-X"], ["O", "O"]] * 4
    pairs: list[tuple[Any, Any]] = [([(f"w{len(label)}{t}",) for t, label in enumerate(y)], y) for y in texts]
    file = tmp_path / "a.txt"
    file.write_text(
        "\n".join("".join(f"{x[0]} {label}\n" for x, label in zip(*p, strict=True)) for p in pairs)
    )
    structure = Chain(bigrams="BIO", unseen="skip")
    options: dict[str, Any] = {"features": "pos", "optimizer": SHORT}
    with pytest.warns(SequencesSkipped, match="8 of 20"):
        known = CRF(structure, **options).fit(*lists(pairs))
    for given in (iter(pairs), file, ((iter(x), iter(y)) for x, y in pairs)):
        with pytest.warns(SequencesSkipped, match="8 of 20"):
            model = CRF(structure, **options).fit(given)
        assert model.weights_.tobytes() == known.weights_.tobytes()


def test_files_and_counts_of_words(tmp_path: Path) -> None:
    """Words are counted in a pass of its own, after which each file has its own sequences."""
    template, pairs = "w=%x[0,0]\nr=%rare[0,0,3]\nB", [pair for pair in labelled() if pair[0]]
    settings: dict[str, Any] = {"features": template, "optimizer": SHORT}
    settings["structure"] = Chain(bigrams=PAIRS, unseen="skip")
    files = [tmp_path / "1.txt", tmp_path / "2.txt", tmp_path / "3.txt"]
    for path, own in zip(files, (pairs[:20], pairs[20:21], pairs[21:]), strict=True):
        rows = ["".join(f"{word[0]}\t{label}\n" for word, label in zip(*pair, strict=True)) for pair in own]
        path.write_text("\n".join(rows))
    with pytest.warns(SequencesSkipped, match=f"of {len(pairs)} training sequences"):
        found = CRF(**settings).fit(files)
    with pytest.warns(SequencesSkipped):
        known = CRF(**settings).fit(*lists([([word[:1] for word in x], y) for x, y in pairs]))
    assert (
        found._model.potentials.encoder.vocabulary.names()
        == known._model.potentials.encoder.vocabulary.names()
    )
    np.testing.assert_allclose(found.weights_, known.weights_, atol=1e-4)


def test_what_is_left_of_nothing() -> None:
    structure = Chain(bigrams=with_ends([("A", "B")]), unseen="skip")
    with pytest.raises(EmptyDataError, match="all 3 training sequences lie outside the bigrams"):
        CRF(structure).fit(iter([([{"w": "a"}, {"w": "b"}], ["B", "A"])] * 3))


def test_labels_that_are_not_all_known() -> None:
    """In memory they are left out where no label fits between; as they are read nobody can tell."""
    structure = Chain(bigrams=with_ends([("A", "C"), ("C", "A")]), unseen="skip")
    x = [["a"], ["b"], ["c"]]
    fits, does_not = (x, ["A", None, "A"]), (x, ["A", None, "C"])
    known = CRF(structure, optimizer=SHORT).fit([x, x], [["A", "C", "A"], fits[1]])
    model = CRF(structure, optimizer=SHORT).fit(iter([(x, ["A", "C", "A"]), fits]))
    assert model.weights_.tobytes() == known.weights_.tobytes()
    with pytest.raises(UnsupportedError, match="none that is encoded can be left out"):
        CRF(structure, optimizer=SHORT).fit(iter([(x, ["A", "C", "A"]), fits, does_not]), shard_size=3)


def test_a_data_set_and_what_is_no_pair(tmp_path: Path) -> None:
    structure = Chain(bigrams=PAIRS, unseen="skip")
    data = encode_pairs(labelled(), tmp_path / "d", features=FEATURES, shard_size=30)
    with pytest.raises(UnsupportedError, match=r"files or pairs \(x, y\), where those are left out"):
        CRF(structure, optimizer=SHORT).fit(data)
    for bad in ((None, ["L0"]), "ab", (["a"], "L0"), (["a"], [["L0"]])):
        given: Iterator[Any] = iter([*labelled()[:3], bad])
        with pytest.raises(crfkit.errors.InputError):
            CRF(structure, features=FEATURES).fit(given)
    with pytest.raises(LabelError, match="the labels are None"):
        CRF(structure, features=FEATURES).fit(iter([(["a"], None)]))
