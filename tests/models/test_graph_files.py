"""Model files with a structure of the user's own: what is damaged, or does not fit, is an InputError."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, InputError
from crfkit.models.files import model_file
from crfkit.models.files.loading import from_bytes
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
    with pytest.raises(InputError, match=message):
        from_bytes(damaged, "m", None if what == "no structure" else [SecondOrder])


@pytest.mark.parametrize("given", [[], [SecondOrder, SecondOrder], [3], SecondOrder, [dict]])
def test_other_classes_than_one_structure(given: Any, data: bytes) -> None:
    with pytest.raises(InputError, match=r"cannot be made|expected a GraphStructure"):
        from_bytes(data, "m", given)
