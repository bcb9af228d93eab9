"""Factor graphs as UAI models."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from crfkit.arrays import Float64s
from crfkit.data.files import Target, open_target
from crfkit.data.uai.models import KINDS
from crfkit.errors import ArgumentError, UnsavableError
from crfkit.structures import CountFactor, EqualFactor, Factor, FactorGraph, ListFactor

_LARGEST_TABLE = 1 << 24  # numbers
_DIGITS = (12, 15, 16, 17)  # significant ones; 17 tell any two doubles apart
_NEAR_ONE = 1e-6  # how far the sum of probabilities may be from 1


def write_uai(graph: FactorGraph, target: Target, kind: str = "MARKOV") -> None:
    """Write a factor graph to a path (packed if it ends in .gz, .xz or .bz2) or a text stream.

    Tables have exp(score) in so many digits that the score, when it is read, is the same to the last bit. Where no
    double has the score as its logarithm (scores near 0), the closest is written. The format has no names: variables
    and values are numbered. Factors of all kinds are written as tables. `kind` is MARKOV, or BAYES if each variable is
    the last one of exactly one factor, which holds its probabilities given the others.
    """
    if kind not in KINDS:
        raise ArgumentError(f"write_uai: got the kind {kind!r}, expected BAYES or MARKOV.")
    sizes = [len(variable) for variable in graph.variables]
    if kind == "BAYES":
        _check_network(graph)
    for number, factor in enumerate(graph.factors):
        _check_factor(number, factor, [sizes[v] for v in factor.variables], kind)
    with open_target(target) as stream:
        stream.write(f"{kind}\n{len(sizes)}\n{' '.join(map(str, sizes))}\n{len(graph.factors)}\n")
        for factor in graph.factors:
            stream.write(" ".join(map(str, (len(factor.variables), *factor.variables))) + "\n")
        for factor in graph.factors:
            shape = [sizes[v] for v in factor.variables]
            stream.write(f"\n{math.prod(shape)}\n")
            stream.writelines(f"{line}\n" for line in _lines(_dense(factor, shape)))


def _check_network(graph: FactorGraph) -> None:
    children = [factor.variables[-1] for factor in graph.factors if factor.variables]
    if sorted(children) != list(range(len(graph.variables))) or len(children) < len(graph.factors):
        raise UnsavableError(
            f"A Bayesian network has one factor for each of its {len(graph.variables)} variables, which is its last one; "
            "write this graph as MARKOV."
        )


def _check_factor(number: int, factor: Factor, shape: list[int], kind: str) -> None:
    """That the format can hold it: nothing is written before all factors are known to be fine."""
    if math.prod(shape) > _LARGEST_TABLE:
        raise UnsavableError(
            f"Factor {number}: its table has {math.prod(shape):,} numbers, expected at most {_LARGEST_TABLE:,}."
        )
    scores = factor.scores
    with np.errstate(over="ignore", under="ignore"):
        numbers = np.exp(scores)
    wrong = (numbers == np.inf) | ((numbers == 0) & (scores > -np.inf))
    if wrong.any():
        raise UnsavableError(
            f"Factor {number}: got the score {scores[wrong].flat[0]!s}, expected −744 … 709, whose exp is a double, or −inf."
        )
    if kind == "BAYES":
        sums = np.exp(_dense(factor, shape)).sum(axis=-1)
        if (abs(sums - 1) > _NEAR_ONE).any():
            far = sums.flat[int(np.argmax(abs(sums - 1)))]
            raise UnsavableError(
                f"Factor {number}: probabilities sum to {far:.6g}, expected 1; write this graph as MARKOV."
            )


def _dense(factor: Factor, shape: list[int]) -> Float64s:
    """The scores of all configurations, one axis for each variable."""
    match factor:
        case ListFactor():
            return factor.table(tuple(shape)).table
        case CountFactor():
            ids = np.indices(shape, sparse=True)
            counts = np.zeros(shape, dtype=np.int64)
            for values, counted in zip(ids, factor.counted, strict=True):
                counts += values == counted
            table: Float64s = factor.by_count[counts]
            return table
        case EqualFactor():
            ids = np.indices(shape, sparse=True)
            equal = np.ones(shape, dtype=bool)
            for values in ids[1:]:
                equal &= values == ids[0]
            return np.where(equal, 0.0, -np.inf)
        case _:
            return factor.scores


def _lines(table: Float64s) -> Iterator[str]:
    """A line for the values of the last variable."""
    flat, places = np.unique(table, return_inverse=True)  # many tables repeat few numbers
    texts = np.array(_texts(flat), dtype=object)[places.reshape(-1)]
    width = table.shape[-1] if table.ndim else 1
    for begin in range(0, len(texts), width):
        yield " ".join(texts[begin : begin + width])


def _texts(scores: Float64s) -> list[str]:
    """exp of each score in decimals. log of it, as it is read, is the score again if any double has this logarithm."""
    numbers = np.exp(scores)
    texts = ["0"] * len(scores)
    left = np.flatnonzero(scores > -np.inf)
    for digits in _DIGITS:
        tried = [f"{number:.{digits}g}" for number in numbers[left].tolist()]
        for place, text in zip(left.tolist(), tried, strict=True):
            texts[place] = text
        left = left[np.log(np.array(tried, dtype=np.float64)) != scores[left]]
    # exp is rounded: a neighbour may be the double with this logarithm
    for direction in (0.0, np.inf):
        near = np.nextafter(numbers[left], direction)
        same = np.log(near) == scores[left]
        for place, number in zip(left[same].tolist(), near[same].tolist(), strict=True):
            texts[place] = repr(number)
        left = left[~same]
    return texts
