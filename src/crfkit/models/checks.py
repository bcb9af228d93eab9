"""Checks of what users give: counts, options of `fit`, optimizers, threads, seeds, weights of sequences."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping, Sized
from typing import Any

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Float64s
from crfkit.counts import check_count
from crfkit.errors import ArgumentError, EmptyDataError, ShapeError, UnsupportedError
from crfkit.features import available_threads
from crfkit.optimizers import AUTO, OPTIMIZERS, optimizer_named

MOST_THREADS = 4096
LARGEST_WEIGHT = 1e15  # of a sequence: sums of more leave single precision
DEFAULT_DECODING = "viterbi"
MODEL_DECODINGS = ("viterbi", "spans", AUTO)  # those that answer for one sequence whatever else is asked


def check_model_decoding(decode: object) -> None:
    """Refuse what no model decodes by where it is asked for nothing else."""
    if decode not in MODEL_DECODINGS:
        beside = "; 'marginal' and 'f1' are for predict(X, decode=…)" if decode in ("marginal", "f1") else ""
        raise ArgumentError(
            f"decode is {decode!r}, expected one of {', '.join(map(repr, MODEL_DECODINGS))}{beside}"
        )


def check_optimizer(given: Any, l1: Any) -> Any:
    """An optimizer, its type where it was named, or "auto"; refused where it is none of these or takes no l1."""
    optimizer = given
    if isinstance(given, str) and given != AUTO:
        optimizer = optimizer_named(given)
        if optimizer is None:
            raise ArgumentError(f"optimizer is {given!r}, expected {', '.join([*OPTIMIZERS, AUTO])}")
    elif given != AUTO and (
        isinstance(given, type) or not (hasattr(given, "minimize") and hasattr(given, "needs"))
    ):
        raise ArgumentError(f"optimizer is {given!r}, expected an optimizer such as crfkit.LBFGS(…)")
    if any(l1.values() if isinstance(l1, Mapping) else [l1]) and not getattr(optimizer, "takes_l1", True):
        name = getattr(optimizer, "__name__", type(optimizer).__name__)
        raise UnsupportedError(
            f"l1 is {l1!r}, but {name} takes no l1 penalty, expected l1=0 or an optimizer that can, such as crfkit.LBFGS(…)"
        )
    return optimizer


def check_flag(name: str, value: object) -> None:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ArgumentError(f"{name} is {value!r}, expected True or False")


def check_strength(name: str, value: object) -> None:
    """A penalty: a finite number from 0 on."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 <= value < 1e300:
        raise ArgumentError(f"{name} is {value!r}, expected a number from 0 on")


def check_dev(dev: object) -> None:
    """Refuse a dev set that is not a pair (X, y), nor has the allowed labels as a third."""
    sizes = (2, 3) if isinstance(dev, tuple) else (2,)
    if dev is not None and (not isinstance(dev, tuple | list) or len(dev) not in sizes):
        size = f", of length {len(dev)}" if isinstance(dev, Sized) else ""
        raise ArgumentError(
            f"dev is of type {type(dev).__name__}{size}, expected the pair (X, y) of held-out data, or (X, y, allowed)"
        )


def check_pair_lengths(X: Iterable[Any], y: Iterable[Any]) -> Iterable[tuple[Any, Any]]:
    """Inputs and outputs side by side, of which there must be equally many."""
    for name, given in (("X", X), ("y", y)):
        if not isinstance(given, Iterable):
            raise ArgumentError(f"{name} is of type {type(given).__name__}, expected a list")
    inputs, outputs = list(X), list(y)
    if len(inputs) != len(outputs):
        raise ShapeError(f"X has {len(inputs)} inputs but y has {len(outputs)} outputs")
    return zip(inputs, outputs, strict=True)


def check_time_budget(budget: object) -> None:
    """Refuse a time budget that is no number of seconds."""
    if budget is not None and not (
        isinstance(budget, int | float | np.number) and not isinstance(budget, bool) and budget > 0
    ):
        raise ArgumentError(f"time_budget is {budget!r}, expected a number of seconds above 0")


def count_threads(n_threads: int | None) -> int:
    """`n_threads`, or the number of processors that this process may use, by its affinity and its control group."""
    if n_threads is not None:
        return check_count("n_threads", n_threads, MOST_THREADS)
    return available_threads()


def make_generator(random_state: object) -> np.random.Generator:
    """A source of random numbers from a seed, a generator, or None."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    if random_state is None or (isinstance(random_state, int | np.integer) and random_state >= 0):
        return np.random.default_rng(None if random_state is None else int(random_state))
    raise ArgumentError(
        f"random_state is {random_state!r}, expected None, a whole number from 0 on, or a generator"
    )


def read_numbers(name: str, given: npt.ArrayLike, n: int, each: str) -> Float64s:
    """The numbers of a parameter that has one for `each` of n things, [n]."""
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} is {reprlib.repr(given)}, expected one number for each {each}") from None
    if numbers.shape != (n,):
        raise ShapeError(
            f"{name} has shape {list(numbers.shape)}, expected [{n}]: one number for each {each}"
        )
    return numbers


def read_sample_weight(
    sample_weight: npt.ArrayLike | None, n_sequences: int, kept: npt.NDArray[np.bool_] | None = None
) -> Float64s | None:
    """One number from 0 to 1e15 for each sequence, [N], or for those of them that are kept."""
    if sample_weight is None:
        return None
    weights = read_numbers("sample_weight", sample_weight, n_sequences, "sequence")
    bad = np.flatnonzero(~((weights >= 0) & (weights <= LARGEST_WEIGHT)))
    if len(bad):
        raise ArgumentError(
            f"sample_weight[{bad[0]}] is {weights[bad[0]]}, expected a number from 0 to {LARGEST_WEIGHT:g}"
        )
    if kept is not None:
        weights = weights[kept]
    if n_sequences and not weights.any():
        raise EmptyDataError("sample_weight: all weights are zero, there is nothing to learn from")
    return weights
