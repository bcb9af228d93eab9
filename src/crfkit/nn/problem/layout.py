"""Batch first, [B, T, …], or positions first, [T, B, …]: what a layer is given, checked and turned into the former."""

from typing import Any

from torch import Tensor

from crfkit.errors import ShapeError

LAYOUTS = {True: "[B, T, L]", False: "[T, B, L]"}  # of emissions, by `batch_first`


def check_emissions(emissions: Any, n_labels: int, batch_first: bool) -> None:
    """Raise an error for emissions that do not have three dimensions, the last of them the labels of the layer."""
    if isinstance(emissions, Tensor) and (emissions.ndim != 3 or emissions.shape[2] != n_labels):
        raise ShapeError(
            f"emissions: got shape {list(emissions.shape)}, expected {LAYOUTS[batch_first]} with the layer's "
            f"{n_labels} labels."
        )


def check_layout(name: str, given: Any, emissions: Any, batch_first: bool = True) -> None:
    """Raise an error for tags, a mask or allowed labels whose first two dimensions are not those of the emissions."""
    if not isinstance(given, Tensor) or not isinstance(emissions, Tensor):
        return  # absent, or an error of the distribution
    expected = list(emissions.shape[:2])
    if list(given.shape[:2]) != expected:
        swapped = list(given.shape[:2]) == expected[::-1]
        raise ShapeError(
            f"{name}: got {given.dtype} with shape {list(given.shape)}, expected {expected} as in emissions "
            f"{_described(emissions, batch_first, swapped)}."
        )


def check_lengths(lengths: Any, emissions: Any, batch_first: bool) -> None:
    """Raise an error for lengths of another number of sequences than the emissions have."""
    if not isinstance(lengths, Tensor) or not isinstance(emissions, Tensor) or lengths.ndim != 1:
        return  # absent, or an error of the distribution
    B, T = emissions.shape[:2] if batch_first else emissions.shape[1::-1]
    (found,) = lengths.shape
    if found != B:
        raise ShapeError(
            f"lengths: got those of {found} sequences, expected {B} as in emissions "
            f"{_described(emissions, batch_first, found == T)}."
        )


def to_batch_first(given: Any, batch_first: bool) -> Any:
    """A tensor [B, T, …], or [T, B, …] with `batch_first=False`, as [B, T, …]; and back, which is the same."""
    return given if batch_first or not isinstance(given, Tensor) else given.transpose(0, 1)


def _described(emissions: Tensor, batch_first: bool, swapped: bool) -> str:
    """The layout of emissions, and what is wrong where the batch and the positions are swapped."""
    shape = f"{LAYOUTS[batch_first]} = {list(emissions.shape)}"
    return f"{shape} (batch_first={batch_first}): batch and positions are swapped" if swapped else shape
