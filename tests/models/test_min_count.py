"""min_count: features that are seen too rarely are left out; "auto" goes by the size of the training set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crfkit import CRF, LBFGS, load
from crfkit.errors import ArgumentError
from crfkit.features import Template, encode_pairs, rare_features

X = [["a", "b"], ["a", "c"], ["d", "b"]]
y = [["A", "B"], ["A", "B"], ["A", "B"]]
TEMPLATE = "word=%x[0,0]\nB"


def words_of(**parameters: Any) -> set[str]:
    crf = CRF(features=TEMPLATE, optimizer=LBFGS(max_iterations=3), **parameters).fit(X, y)
    return {name.removeprefix("word=") for name in crf._model.potentials.encoder.vocabulary.names()}


def test_auto_keeps_what_a_small_training_set_has() -> None:
    assert words_of(min_count="auto") == words_of(min_count=1) == {"a", "b", "c", "d"}


def test_auto_leaves_out_what_a_large_one_has_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rare_features, "MANY_POSITIONS", 7)
    assert words_of(min_count="auto") == {"a", "b", "c", "d"}  # six positions
    monkeypatch.setattr(rare_features, "MANY_POSITIONS", 6)
    assert words_of(min_count="auto") == words_of(min_count=2) == {"a", "b"}


@pytest.mark.parametrize("many", [6, 7])
def test_auto_counts_all_positions_of_pairs_files_and_data_sets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, many: int
) -> None:
    """The data have six positions, in shards of three: the bits are those of training in memory."""
    monkeypatch.setattr(rare_features, "MANY_POSITIONS", many)
    file = tmp_path / "d.txt"
    file.write_text(
        "\n".join("".join(f"{w} {tag}\n" for w, tag in zip(*p, strict=True)) for p in zip(X, y, strict=True))
    )

    def new() -> CRF[str]:
        return CRF(features=TEMPLATE, optimizer=LBFGS(max_iterations=3), min_count="auto")

    known = new().fit(X, y, shard_size=3)
    assert len(known._model.potentials.encoder.vocabulary) == (2 if many == 6 else 4)
    pairs, template = zip(X, y, strict=True), Template.parse(TEMPLATE)
    dataset = encode_pairs(pairs, tmp_path / "data", features=template, min_count="auto", shard_size=3)
    assert dataset.settings["min_count"] == (2 if many == 6 else 1)
    for model in (
        new().fit(zip(X, y, strict=True), shard_size=3),
        new().fit([file], shard_size=3),
        new().fit(dataset),
        CRF(optimizer=LBFGS(max_iterations=3)).fit(dataset),
    ):
        assert model.weights_.tobytes() == known.weights_.tobytes()
        assert model.n_features_ == known.n_features_


def test_files_keep_it(tmp_path: Path) -> None:
    for value in (2, "auto"):
        crf = CRF(features=TEMPLATE, optimizer=LBFGS(max_iterations=3), min_count=value).fit(X, y)
        crf.save(tmp_path / "m.crf")
        assert load(tmp_path / "m.crf").min_count == value


@pytest.mark.parametrize("value", [0, "many", 1.5, True])
def test_what_is_no_count_is_refused(value: Any) -> None:
    with pytest.raises(ArgumentError, match="min_count"):
        CRF(min_count=value).fit([[["f"]]], [["A"]])
