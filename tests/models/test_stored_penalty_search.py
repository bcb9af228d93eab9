"""`CRF(l2="auto")` on data sets, files and iterators: the search of training in memory, with a few sequences in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit import CRF, LBFGS, AdaGrad, Chain, Patterns, Segments
from crfkit.data import EncodedDataset
from crfkit.errors import ArgumentError, UnsupportedError
from crfkit.features import encode_pairs
from crfkit.models.training import held_out_split
from tests.features.test_dataset_writer import positions, words
from tests.models.test_encoded_training import FEATURES, lists, spans, tagged
from tests.models.test_stored_dictionaries import inflected

pytestmark = pytest.mark.filterwarnings(
    "ignore::crfkit.models.ConvergenceWarning", "ignore::crfkit.models.UnreadColumns"
)
SIZE = 30
SHORT = LBFGS(max_iterations=4)


def with_new_labels(n: int) -> list[tuple[Any, Any]]:
    """The last sequences, which are held out, have labels and sets of labels that no others have."""
    pairs = words(n)
    for x, y in pairs[-4:]:
        y[:] = [{"new", "L1"} if label is None else "new" for label in y]
        assert len(x) == len(y)
    return pairs


CASES: dict[str, tuple[Callable[[int], list[tuple[Any, Any]]], dict[str, Any]]] = {
    "chain": (words, {"features": FEATURES}),
    "new labels": (with_new_labels, {"features": FEATURES}),
    "min_count": (words, {"features": FEATURES, "min_count": 3}),
    "min_count auto": (words, {"features": FEATURES, "min_count": "auto"}),
    "buckets": (words, {"features": FEATURES, "hash_bits": 5}),
    "bigrams": (words, {"features": FEATURES, "structure": Chain(bigrams="observed", unseen="soft")}),
    "dense": (positions, {}),
    "facets": (tagged, {"features": FEATURES, "facets": "characters"}),
    "dictionary": (inflected, {"features": FEATURES, "tag_dictionary": True}),
    "patterns": (words, {"features": FEATURES, "structure": Patterns(["L0 . L2", "L1 L1 L1"])}),
    "segments": (spans, {"features": FEATURES, "structure": Segments()}),
    "passes": (words, {"features": FEATURES, "optimizer": AdaGrad(max_iterations=2, rate=0.1)}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_search_is_that_of_training_in_memory(name: str) -> None:
    make, own = CASES[name]
    settings: dict[str, Any] = {"optimizer": SHORT, **own}
    pairs = make(60)
    for dev in (None, lists(make(80)[60:])):
        known = CRF(l2="auto", **settings).fit(*lists(pairs), shard_size=SIZE, dev=dev)
        found = CRF(l2="auto", **settings).fit(iter(pairs), shard_size=SIZE, dev=dev)
        assert len(known.l2_search_.trials) > 3
        assert found.l2_search_ == known.l2_search_
        assert found.weights_.tobytes() == known.weights_.tobytes()
        known = CRF(l2=known.l2_, **settings).fit(*lists(pairs), shard_size=SIZE, dev=dev)
        assert found.weights_.tobytes() == known.weights_.tobytes()


def test_features_of_rare_words() -> None:
    """In a data set they have the counts of all sequences; in memory, those of the sequences that are trained on."""
    pairs, template = inflected(60), "word=%x[0,0]\nrare=%rare[0,0,2]\nB"
    model = CRF(features=template, l2="auto", optimizer=SHORT).fit(iter(pairs), shard_size=SIZE)
    known = CRF(features=template, l2=model.l2_, optimizer=SHORT).fit(*lists(pairs), shard_size=SIZE)
    assert model.weights_.tobytes() == known.weights_.tobytes()


def test_few_sequences_are_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are trained on come from all shards, those held out from the last ones; the model is trained on all."""
    monkeypatch.setattr(held_out_split, "TRAINED", 7)
    monkeypatch.setattr(held_out_split, "HELD_OUT", 4)
    pairs = words(60)
    dataset = encode_pairs(pairs, tmp_path / "d", features=FEATURES, shard_size=SIZE)
    opened: list[int] = []
    shard = EncodedDataset.shard

    def look(self: EncodedDataset, i: int) -> Any:
        opened.append(i)
        return shard(self, i)

    monkeypatch.setattr(EncodedDataset, "shard", look)
    known = CRF(l2="auto", features=FEATURES, optimizer=SHORT).fit(*lists(pairs))
    model = CRF(l2="auto", optimizer=SHORT).fit(dataset)
    assert (model.l2_search_.n_trained, model.l2_search_.n_held_out) == (7, 4)
    assert model.l2_search_ == known.l2_search_
    searched = (
        opened[: opened.index(0, 1)] if 0 in opened[1:] else opened
    )  # until training reads from the first on
    assert len(searched) <= 7 + 2
    assert np.array_equal(model.weights_, CRF(l2=model.l2_, optimizer=SHORT).fit(dataset).weights_)


def test_what_cannot_be_searched(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="at least 10 sequences, got 9"):
        CRF(l2="auto", features=FEATURES).fit(iter(words(9)))
    dataset = encode_pairs(words(30), tmp_path / "d", features=FEATURES)
    with pytest.raises(UnsupportedError, match="has no penalty"):
        CRF(l2="auto", optimizer="averaged_perceptron").fit(dataset)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    rows = [zip(*pair, strict=True) for pair in inflected(60, partial=False)]
    path.write_text("\n".join("".join(f"{x[0]}\t{tag}\n" for x, tag in row) for row in rows))
    pairs = list(crfkit.data.read_pairs(path))
    known = CRF(features="pos", l2="auto", optimizer=SHORT).fit(*lists(pairs))
    model = CRF(features="pos", l2="auto", optimizer=SHORT).fit(path)
    assert model.l2_search_ == known.l2_search_
    assert model.weights_.tobytes() == known.weights_.tobytes()
