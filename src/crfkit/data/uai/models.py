"""Models: a word (BAYES or MARKOV), the variables, the variables of each factor, and the table of each factor.

    MARKOV
    3               variables
    2 2 3           how many values each has
    2               factors
    1 0             for each factor how many variables it has, and which
    2 1 2
    2               for each factor the size of its table, and the table, the last variable the fastest
    0.4 0.6
    6
    0.1 0.2 0.7  0.5 0.5 0

The numbers of a table are exp(score). In a Bayesian network they are probabilities of the last variable given the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from crfkit.arrays import Float64s
from crfkit.data.files import ByteSource
from crfkit.data.uai.evidence import as_evidence
from crfkit.data.uai.numbers import NumberFile
from crfkit.errors import LabelError
from crfkit.structures import FactorGraph

KINDS = ("BAYES", "MARKOV")
_MOST_AXES = 32  # of an array
_FREE_VALUES = 1 << 20  # of all variables together that no table has


@dataclass(frozen=True)
class _Model:
    cardinalities: list[int]
    scopes: list[tuple[int, ...]]
    tables: list[Float64s]  # scores, one axis for each variable


def read_uai(source: ByteSource, evidence: ByteSource | Mapping[int, int] | None = None) -> FactorGraph:
    """Read a model (a path, also .gz, .xz, .bz2, or a binary stream); its variables are called "0", "1", and so on.

    `evidence` is a file, or maps numbers of variables to numbers of values. Tables are restricted to it: an observed
    variable keeps one factor of its own, which excludes all values but the observed one.

    >>> import io
    >>> graph = read_uai(io.BytesIO(b"MARKOV 2  2 2  1  2 0 1  4  0.5 1 1 0"))
    >>> graph.factors[0].scores.round(2).tolist()
    [[-0.69, 0.0], [0.0, -inf]]
    """
    file = NumberFile(source, heading=True)
    model = _read(file)
    if evidence is not None:
        observed, name = as_evidence(evidence)
        model = _restrict(model, observed, name)
    return FactorGraph.from_arrays(model.cardinalities, model.scopes, model.tables)


def _read(file: NumberFile) -> _Model:
    if file.word.upper() not in KINDS:
        file.fail(f"the file begins with {file.word!r}, expected BAYES or MARKOV")
    n_variables = file.count("the number of variables")
    cardinalities = file.counts(
        n_variables, f"how many values each of {n_variables:,} variables has", least=1
    )
    n_factors = file.count("the number of factors")
    if 2 * n_factors > file.n_left:  # each has the number of its variables and the size of its table
        file.fail(f"{n_factors:,} factors do not fit in the {file.n_left:,} numbers that follow", file.at - 1)
    scopes = [_read_scope(file, number, n_variables) for number in range(n_factors)]
    _check_free_variables(file, cardinalities, scopes)
    begin = file.at
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.log(file.numbers[begin:])  # those of the sizes too, which are not used
    tables = []
    for number, scope in enumerate(scopes):
        n = _check_size(file, number, [cardinalities[v] for v in scope])
        _check_table(file, number, file.take(n, f"the table of factor {number}, {n:,} numbers"))
        if len(scope) > _MOST_AXES:  # a table that is in the file has fewer axes with two values or more
            scopes[number] = scope = tuple(v for v in scope if cardinalities[v] > 1)
        tables.append(
            scores[file.at - n - begin : file.at - begin].reshape([cardinalities[v] for v in scope])
        )
    file.end()
    return _Model(cardinalities, scopes, tables)


def _read_scope(file: NumberFile, number: int, n_variables: int) -> tuple[int, ...]:
    n = file.count(f"how many variables factor {number} has", largest=n_variables)
    scope = file.counts(n, f"the variables of factor {number}", largest=n_variables - 1)
    if len(set(scope)) < n:
        file.fail(f"factor {number} has the variables {scope[:8]}, expected each of them once", file.at - 1)
    return tuple(scope)


def _check_free_variables(file: NumberFile, cardinalities: list[int], scopes: list[tuple[int, ...]]) -> None:
    """The values of a variable with a factor are as many as numbers of the file at most; without one nothing limits them."""
    used = {v for scope in scopes for v in scope}
    free = sum(count for v, count in enumerate(cardinalities) if v not in used)
    if free > _FREE_VALUES:
        file.fail(f"variables without a factor have {free:,} values, expected at most {_FREE_VALUES:,}")


def _check_size(file: NumberFile, number: int, shape: list[int]) -> int:
    """The size of a table, which the file states before it."""
    n = file.count(f"the size of the table of factor {number}")
    if n != math.prod(shape):
        text = " × ".join(str(count) for count in shape[:8]) + (" × …" if len(shape) > 8 else "")
        file.fail(
            f"the table of factor {number} has {n:,} numbers, expected {text or 1} for its {len(shape)} variables",
            file.at - 1,
        )
    return n


def _check_table(file: NumberFile, number: int, table: Float64s) -> None:
    wrong = ~((table >= 0) & (table < np.inf))
    if wrong.any():
        entry = int(np.argmax(wrong))
        place = file.at - len(table) + entry
        file.fail(f"factor {number} has {file.token(place)} in its table, expected a number ≥ 0", place)


def _restrict(model: _Model, observed: Mapping[int, int], name: str) -> _Model:
    """The model given the values of some variables."""
    for variable, value in observed.items():
        if not 0 <= variable < len(model.cardinalities):
            raise LabelError(
                f"{name}: there is no variable {variable}, the model has {len(model.cardinalities)} (from 0)."
            )
        if not 0 <= value < model.cardinalities[variable]:
            raise LabelError(
                f"{name}: variable {variable} has the value {value}, expected 0 … {model.cardinalities[variable] - 1}."
            )
    scopes = [tuple(v for v in scope if v not in observed) for scope in model.scopes]
    tables = [
        table[tuple(observed.get(v, slice(None)) for v in scope)]
        for scope, table in zip(model.scopes, model.tables, strict=True)
    ]
    for variable, value in observed.items():
        scores = np.full(model.cardinalities[variable], -np.inf)
        scores[value] = 0.0
        scopes.append((variable,))
        tables.append(scores)
    return _Model(model.cardinalities, scopes, tables)
