"""Tag dictionaries of data sets, files and iterators: counted shard by shard, with the bits of training in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit import CRF, LBFGS, AdaGrad, Chain, Checkpoint, Ngrams, Patterns, Segments, TagDictionary
from crfkit.errors import ArgumentError, FeatureError, ShapeError
from crfkit.features import Template, dictionary_words, encode_files, encode_pairs
from crfkit.models.training.checkpoint import CheckpointMismatchError

pytestmark = pytest.mark.filterwarnings(
    "ignore::crfkit.models.ConvergenceWarning", "ignore::crfkit.models.UnreadColumns"
)
SIZE = 150
SHORT = LBFGS(max_iterations=4)
FEATURES = Template.parse("w=%lower[0,0]\ns=%lower_suffix[0,0,2]\nU2:%x[-1,0]\nB\n")
TABLES = ("classes", "words", "endings", "column")


def inflected(n: int = 120, seed: int = 3, *, partial: bool = True) -> list[tuple[Any, Any]]:
    """Sequences of words with endings that go with some tags, rare and frequent ones, in upper and lower case.

    Some labels are unknown, a set of several, or a set of one.
    """
    random = np.random.default_rng(seed)
    pairs = []
    for _ in range(n):
        x, y = [], []
        for _ in range(int(random.integers(1, 8))):
            stem, ending = int(random.zipf(1.4)) % 60, int(random.integers(4))
            word = f"{'ptk'[stem % 3]}{'aeiou'[stem % 5]}{stem}{('us', 'um', 'at', 'em')[ending]}"
            tag = f"{'nnvn'[ending]}{'sp'[stem % 2]}{'xyz'[(stem + ending) % 3]}"
            x.append((word.upper() if random.random() < 0.2 else word, f"C{stem}"))
            kind = random.random() if partial else 1.0
            y.append(None if kind < 0.05 else {tag} if kind < 0.1 else {tag, "nsx"} if kind < 0.15 else tag)
        pairs.append((x, y))
    return pairs


def lists(pairs: list[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    return [x for x, _ in pairs], [y for _, y in pairs]


def same_dictionary(found: CRF[Any], known: CRF[Any]) -> None:
    one, other = found._model.dictionary, known._model.dictionary
    assert one is not None
    assert other is not None
    assert all(getattr(one, name) == getattr(other, name) for name in TABLES)
    assert one.ptr.tolist() == other.ptr.tolist()
    assert one.labels.tolist() == other.labels.tolist()


CASES: dict[str, dict[str, Any]] = {
    "chain": {},
    "all states": {"all_possible_states": True},
    "bigrams": {"structure": Chain(bigrams="observed")},
    "facets": {
        "structure": Chain(bigrams="observed", unseen="soft"),
        "facets": "characters+labels",
        "all_possible_transitions": False,
        "optimizer": AdaGrad(max_iterations=2, rate=0.1),
    },
    "patterns": {"structure": Patterns([Ngrams(3)], bigrams="observed")},
}


@pytest.mark.parametrize("name", CASES)
def test_the_bits_of_training_in_memory(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictionary_words, "_MERGED_AT_ONCE", 50)
    pairs, settings = inflected(), {"optimizer": SHORT, "tag_dictionary": True, **CASES[name]}
    for size in (SIZE, 10_000):
        known = CRF(features=FEATURES, **settings).fit(*lists(pairs), shard_size=size)
        options: dict[str, Any] = {"features": FEATURES, "shard_size": size, "word_column": 0}
        data = encode_pairs(pairs, tmp_path / str(size), **options)
        assert (data.n_shards > 2) == (size == SIZE)
        for model in (
            CRF(n_threads=1, **settings).fit(data),
            CRF(n_threads=2, **settings).fit(data),
            CRF(features=FEATURES, **settings).fit(iter(pairs), shard_size=size),
        ):
            assert model.weights_.tobytes() == known.weights_.tobytes()
            same_dictionary(model, known)
        assert model.structure_ == known.structure_
    model.save(tmp_path / "m")
    unseen = lists(inflected(30, 9))[0]
    assert crfkit.load(tmp_path / "m").predict(unseen) == known.predict(unseen)


def test_segments_have_the_same_bits() -> None:
    pairs = [
        ([(f"{word}{k % 9}", "c") for word in ("to", "New", "York", "by")], ["O", "B-L", "I-L", "O"])
        for k in range(60)
    ]
    settings: dict[str, Any] = {"optimizer": SHORT, "tag_dictionary": True, "features": FEATURES}
    known = CRF(Segments(), **settings).fit(*lists(pairs), shard_size=50)
    model = CRF(Segments(), **settings).fit(iter(pairs), shard_size=50)
    assert model.weights_.tobytes() == known.weights_.tobytes()
    same_dictionary(model, known)


def test_a_dictionary_that_is_given_says_which_column_it_reads(tmp_path: Path) -> None:
    pairs = inflected()
    given = TagDictionary.from_data(*lists(inflected(40, 8)), column=1)
    model: CRF[str] = CRF(features=FEATURES, optimizer=SHORT, tag_dictionary=given)
    known = CRF(**model.get_params(deep=False)).fit(*lists(pairs), shard_size=SIZE)
    assert model.fit(iter(pairs), shard_size=SIZE).weights_.tobytes() == known.weights_.tobytes()
    same_dictionary(model, known)
    data = encode_pairs(pairs, tmp_path / "d", features=FEATURES, shard_size=SIZE, word_column=1)
    assert model.fit(data).weights_.tobytes() == known.weights_.tobytes()
    with pytest.raises(ArgumentError, match="without the words of column 0"):
        CRF(tag_dictionary=True).fit(data)


def test_words_are_keys_of_dicts_too() -> None:
    pairs = [([{"w": word[0], "t": "x"} for word in x], y) for x, y in inflected()]
    given = TagDictionary.from_data(*lists(pairs[:50]), column="w")
    model: CRF[str] = CRF(optimizer=SHORT, tag_dictionary=given)
    known = CRF(**model.get_params(deep=False)).fit(*lists(pairs), shard_size=SIZE)
    assert model.fit(iter(pairs), shard_size=SIZE).weights_.tobytes() == known.weights_.tobytes()


def test_files(tmp_path: Path) -> None:
    """The words of column files are those of their rows; the preset for morphology keeps them."""
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for seed, path in enumerate(files):
        rows = [zip(*pair, strict=True) for pair in inflected(60, seed, partial=False)]
        path.write_text("\n".join("".join(f"{x[0]}\t{tag}\n" for x, tag in row) for row in rows))
    pairs = [pair for path in files for pair in crfkit.data.read_pairs(path)]
    model: CRF[str] = CRF(features="morphology", optimizer=AdaGrad(max_iterations=2, rate=0.1))
    assert model.tag_dictionary
    known = CRF(**model.get_params(deep=False)).fit(iter(pairs))  # in one shard
    in_memory = CRF(**model.get_params(deep=False)).fit(*lists(pairs))
    assert in_memory.weights_.tobytes() == known.weights_.tobytes()
    data = encode_files(files, tmp_path / "data", features="morphology")
    assert data.settings["word_column"] == 0
    found = model.fit(files).weights_.tobytes()
    assert model.fit(data).weights_.tobytes() == found
    same_dictionary(model, known)


def test_data_sets_without_words_are_refused(tmp_path: Path) -> None:
    data = encode_pairs(inflected(), tmp_path / "d", features=FEATURES)
    assert "words" not in data.shard(0)
    with pytest.raises(
        ArgumentError, match=r"encode the files again with word_column=0 \(crfkit encode --word-column 0\)"
    ):
        CRF(tag_dictionary=True).fit(data)
    with pytest.raises(FeatureError, match="a tag dictionary needs a word in column 2"):
        encode_pairs(inflected(), tmp_path / "e", features=FEATURES, word_column=2)
    with pytest.raises(ArgumentError, match=r"word_column is 1\.5"):
        encode_pairs(inflected(), tmp_path / "f", word_column=1.5)  # type: ignore[arg-type]
    (tmp_path / "x.txt").write_text("the D\n")
    with pytest.raises(ShapeError, match=r"x\.txt:1: there is no column 1 of words, found 1"):
        encode_files(tmp_path / "x.txt", tmp_path / "g", features="pos", word_column=1)


def test_a_checkpoint_knows_the_dictionary(tmp_path: Path) -> None:
    data = encode_pairs(inflected(), tmp_path / "d", features=FEATURES, shard_size=SIZE, word_column=0)
    kept = Checkpoint(tmp_path / "c", every=1, resume=True)
    one, other = (TagDictionary.from_data(*lists(inflected(n, n))) for n in (30, 50))
    CRF(optimizer=SHORT, tag_dictionary=one).fit(data, checkpoint=kept)
    assert CRF(optimizer=SHORT, tag_dictionary=one).fit(data, checkpoint=kept).n_iter_ == 4
    with pytest.raises(CheckpointMismatchError):
        CRF(optimizer=SHORT, tag_dictionary=other).fit(data, checkpoint=kept)
