"""Model files with a structure of the user's own: what is damaged, or does not fit, is an InputError."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, LBFGS, Chain
from crfkit.errors import FileFormatError, UnsavableError
from crfkit.models import UnsavableModel
from crfkit.models.files import model_file
from crfkit.models.files.loading import from_bytes
from crfkit.structures import Arc, GraphStructure
from tests.models.test_new_structure import SecondOrder, X, Y

Change = Callable[
    [dict[str, Any], dict[str, Any], dict[str, Any]], object
]  # of a structure, the settings and the arrays


def repeat_a_name(structure: dict[str, Any], settings: dict[str, Any], arrays: dict[str, Any]) -> None:
    n = len(arrays["structure.lengths"])
    arrays["structure.names"] = model_file.compress(b"D D D" * n)
    arrays["structure.lengths"] = np.full(n, 5, np.uint8)
    settings["bytes"]["structure"] = 5 * n


DAMAGED: dict[str, tuple[Change, str]] = {
    "path": (lambda s, _, a: s.update({"class": "os; x"}), "no import path"),
    "class": (lambda s, _, a: s.update({"class": 3}), "setting 'class'"),
    "fields": (lambda s, _, a: s.update(fields=[]), "setting 'fields'"),
    "another field": (lambda s, _, a: s.update(fields={"x": 1}), "cannot be made"),
    "no structure": (lambda s, _, a: s.pop("class"), "names of the weights of its structure"),
    "names that repeat": (repeat_a_name, "names of the weights of its structure"),
    "no names": (lambda s, _, a: a.pop("structure.lengths"), "weights, its features need"),
}


@pytest.fixture(scope="module")
def data() -> bytes:
    return CRF(SecondOrder()).fit(X, Y)._to_bytes()


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_structure(what: str, data: bytes) -> None:
    change, message = DAMAGED[what]
    file = model_file.decode(data, "m")
    settings, arrays = json.loads(json.dumps(file.settings)), dict(file.arrays)
    change(settings["parameters"]["structure"], settings, arrays)
    damaged = model_file.encode(model_file.ModelFile(file.type, settings, arrays))
    with pytest.raises(FileFormatError, match=message):
        from_bytes(damaged, "m", None if what == "no structure" else [SecondOrder])


@pytest.mark.parametrize("given", [[], [SecondOrder, SecondOrder], [3], SecondOrder, [dict]])
def test_other_classes_than_one_structure(given: Any, data: bytes) -> None:
    with pytest.raises(FileFormatError, match=r"cannot be made|expected a GraphStructure"):
        from_bytes(data, "m", given)


@dataclass(frozen=True)
class WithField(SecondOrder):
    field: Any = None


@dataclass(frozen=True)
class WithPairs(SecondOrder):
    """Takes lists, keeps tuples."""

    pairs: Any = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", tuple(tuple(pair) for pair in self.pairs))


class Plain(GraphStructure):
    """No dataclass: a file would not know its order."""

    def __init__(self, order: int = 2, chain: Chain | None = None) -> None:
        self.order = order
        if chain is not None:
            self.chain = chain

    def arcs(self, n_positions: int, labels: Sequence[Hashable]) -> Iterator[Arc]:
        return SecondOrder().arcs(n_positions, labels)


@pytest.mark.parametrize(
    "structure",
    [
        WithField(field={1: "a"}),
        WithField(field=(1, 2)),
        WithField(field=[("A", "B")]),
        WithField(field={1, 2}),
        WithField(field=float("nan")),
        Plain(3),
        Plain(chain=Chain(start=False)),
    ],
    ids=["keys", "tuple", "pairs", "set", "NaN", "no field", "no field for the chain"],
)
def test_a_structure_that_a_file_would_change_is_not_saved(structure: GraphStructure, tmp_path: Path) -> None:
    with pytest.warns(UnsavableModel):
        crf = CRF(structure, optimizer=LBFGS(max_iterations=1)).fit(X, Y)
    with pytest.raises(UnsavableError):
        crf.save(tmp_path / "m")


@pytest.mark.parametrize(
    "structure", [WithField(field={"a": [1, None, 0.1]}), WithPairs(pairs=(("A", "B"),)), Plain()]
)
def test_a_structure_that_can_be_made_again_is_saved(structure: GraphStructure) -> None:
    crf = CRF(structure, optimizer=LBFGS(max_iterations=1)).fit(X, Y)
    loaded = from_bytes(crf._to_bytes(), "m", [type(structure)])
    assert vars(loaded.structure) == vars(structure)
    assert loaded.predict(X) == crf.predict(X)
    assert from_bytes(from_bytes(crf._to_bytes(), "m")._to_bytes(), "m", [type(structure)]).predict(X)
