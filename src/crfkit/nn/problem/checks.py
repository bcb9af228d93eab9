"""Checks of the arguments of a distribution, before a kernel or the core sees them.

Values are inspected only where that needs no synchronisation with a GPU, and never in a compiled program.
"""

from typing import Any

import torch
from torch import Tensor

from crfkit.errors import ArgumentError, ShapeError, UnsupportedError
from crfkit.nn.problem.chain import tokens_first


def check_scores(name: str, scores: Any, device: torch.device | None = None) -> None:
    """Raise an error for what is not a tensor of real numbers, on the `device` of the other scores."""
    if not isinstance(scores, Tensor):
        raise ShapeError(f"{name}: got {type(scores).__name__}, expected a tensor.")
    if not scores.is_floating_point():
        raise ShapeError(
            f"{name}: got {scores.dtype} with shape {list(scores.shape)}, expected floating-point numbers."
        )
    if device is not None:
        check_device(name, scores, device)


def check_device(name: str, given: Tensor, device: torch.device) -> None:
    """Raise an error for a tensor on another device than the scores it belongs to."""
    if given.device != device:
        raise ArgumentError(
            f"{name}: got a tensor on {given.device}, expected {device}, where the scores are."
        )


def fill_transitions(transitions: Tensor | None, emissions: Tensor) -> Tensor:
    """The transitions, zeros where none are given."""
    B, T, L = emissions.shape
    if transitions is None:
        return emissions.new_zeros((L, L))
    check_scores("transitions", transitions, emissions.device)
    expected = {2: (L, L), 3: (B, L, L), 4: (B, max(T - 1, 0), L, L)}.get(transitions.ndim)
    if expected is None or transitions.shape != expected:
        raise ShapeError(
            f"transitions: got shape {list(transitions.shape)}, expected {[L, L]}, {[B, L, L]} or "
            f"{[B, max(T - 1, 0), L, L]}."
        )
    return transitions


def check_ends(start: Tensor | None, end: Tensor | None, emissions: Tensor) -> None:
    """Raise an error for scores of the ends that do not go with the emissions."""
    L = emissions.shape[2]
    for name, scores in (("start", start), ("end", end)):
        if scores is None:
            continue
        check_scores(name, scores, emissions.device)
        if scores.shape != (L,):
            raise ShapeError(f"{name}: got shape {list(scores.shape)}, expected [L] = [{L}].")


def check_segment_scores(
    emissions: Tensor, durations: Tensor, first: Tensor | None, last: Tensor | None, segments: Tensor | None
) -> None:
    """Raise an error for scores of segments that do not go with each other."""
    check_scores("emissions", emissions)
    if emissions.ndim != 3 or emissions.shape[2] == 0:
        raise ShapeError(
            f"emissions: got {emissions.dtype} with shape {list(emissions.shape)}, expected numbers [B, T, L]."
        )
    B, T, L = emissions.shape
    check_scores("durations", durations, emissions.device)
    if durations.ndim != 2 or durations.shape[0] == 0 or durations.shape[1] != L:
        raise ShapeError(
            f"durations: got shape {list(durations.shape)}, expected [K, L] with L = {L}, K ≥ 1."
        )
    expected = {"first": (first, (B, T, L)), "last": (last, (B, T, L))}
    for name, (scores, shape) in {**expected, "segments": (segments, (B, T, *durations.shape))}.items():
        if scores is None:
            continue
        check_scores(name, scores, emissions.device)
        if scores.shape != shape:
            raise ShapeError(f"{name}: got shape {list(scores.shape)}, expected {list(shape)}.")


def check_integers(name: str, given: Any, shape: tuple[int, ...], what: str) -> None:
    """Raise an error for what is not a tensor of integers with this shape."""
    if not isinstance(given, Tensor):
        raise ShapeError(f"{name}: got {type(given).__name__}, expected a tensor of {what} {list(shape)}.")
    if given.shape != shape or given.is_floating_point():
        raise ShapeError(
            f"{name}: got {given.dtype} with shape {list(given.shape)}, expected {what} {list(shape)}."
        )


def check_spans(spans: Any) -> None:
    """Raise an error for what is not a tensor of spans [n, 4]."""
    if not isinstance(spans, Tensor) or spans.ndim != 2 or spans.shape[1] != 4 or spans.is_floating_point():
        raise ShapeError(
            "spans: expected integers [n, 4], the sequence, start, end and label of each; got "
            f"{list(spans.shape) if isinstance(spans, Tensor) else type(spans).__name__}."
        )


def check_threshold(threshold: float) -> None:
    """Raise an error for what is not a probability that spans can be asked for."""
    if not 0.0 < threshold <= 1.0:
        raise ArgumentError(f"threshold: got {threshold}, expected a number above 0, at most 1.")


def read_lengths(lengths: Any, n_sequences: int, longest: int, device: torch.device) -> Tensor:
    """Lengths [B] from 0 to `longest` on the device; those that are not in memory are cut to that, unseen."""
    check_integers("lengths", lengths, (n_sequences,), "integers [B] =")
    if n_sequences and lengths.device.type == "cpu" and not torch.compiler.is_compiling():
        low, high = (int(bound) for bound in torch.aminmax(lengths))
        if low < 0 or high > longest:
            raise ArgumentError(
                f"lengths: there is a length {low if low < 0 else high}, expected 0 to {longest}."
            )
    return lengths.to(device, torch.int64).clamp(0, longest)


def read_places(
    emissions: Tensor, mask: Tensor | None, lengths: Tensor | None
) -> tuple[Tensor | None, Tensor | None]:
    """Lengths [B] and positions of tokens [B, T], None where no position is masked."""
    B, T, _ = emissions.shape
    if mask is not None and lengths is not None:
        raise UnsupportedError("mask and lengths: got both, expected one of them.")
    if lengths is not None:
        return read_lengths(lengths, B, T, emissions.device), None
    if mask is None:
        return None, None
    if not isinstance(mask, Tensor):
        raise ShapeError(f"mask: got {type(mask).__name__}, expected a tensor [B, T] = {[B, T]}.")
    if mask.shape != (B, T):
        raise ShapeError(f"mask: got shape {list(mask.shape)}, expected [B, T] = {[B, T]}.")
    return tokens_first(mask.to(emissions.device).bool())
