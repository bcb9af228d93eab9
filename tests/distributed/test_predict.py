"""Labels by the workers of a cluster are those of one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dask.bag import from_sequence
from dask.delayed import delayed

from crfkit import CRF, LBFGS, Template
from crfkit.distributed import MissingDataError, predict
from crfkit.errors import ArgumentError, ShapeError
from tests.distributed.data import random_data

X, y = random_data()


@pytest.fixture(scope="module")
def model() -> CRF[str]:
    return CRF(optimizer=LBFGS(max_iterations=5)).fit(X, y)


def test_lists_bags_and_delayed_objects(client: Any, model: CRF[str]) -> None:
    expected = model.predict(X)
    assert predict(client, model, X) == expected
    assert predict(client, model, []) == []
    assert predict(client, model, from_sequence(X, npartitions=3)) == expected
    assert predict(client, model, [delayed(X[:20]), delayed(X[20:])]) == expected


def test_column_files(client: Any, tmp_path: Path) -> None:
    rows = [[(position[1], position[2]) for position in x] for x in X]
    labelled = "".join(
        "".join(f"{a}\t{b}\t{label}\n" for (a, b), label in zip(x, labels, strict=True)) + "\n"
        for x, labels in zip(rows, y, strict=True)
    )
    plain = "".join("".join(f"{a}\t{b}\n" for a, b in x) + "\n" for x in rows)
    (tmp_path / "labelled.txt").write_text(labelled)
    (tmp_path / "plain.txt").write_text(plain)
    (tmp_path / "other.txt").write_text("one\n")
    crf = CRF(features=Template("U00:%x[0,0]\nU01:%x[0,1]\nB"), optimizer=LBFGS(max_iterations=5)).fit(
        rows, y
    )
    files = [tmp_path / "labelled.txt", str(tmp_path / "plain.txt")]
    assert predict(client, crf, files) == crf.predict(rows) * 2
    with pytest.raises(ShapeError, match=r"other\.txt:1: 1 columns, expected 2"):
        predict(client, crf, [tmp_path / "other.txt"])
    with pytest.raises(MissingDataError, match=r"absent\.txt"):
        predict(client, crf, [tmp_path / "absent.txt"])


def test_arguments_are_checked(client: Any, model: CRF[str]) -> None:
    with pytest.raises(ValueError, match="is not trained"):
        predict(client, CRF(), X)
    with pytest.raises(ArgumentError, match="expected a list of files"):
        predict(client, model, "file.txt")
    with pytest.raises(ArgumentError, match="features made in Python"):
        predict(client, model, ["file.txt"])
