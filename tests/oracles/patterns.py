"""Trellises of patterns by hand: a matcher and its starts become objects of the core."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.structures import MatcherWriter, PatternMatcher, PatternStarts

Start = tuple[int, int, float]  # position of the data set, state, value
NOTHING = np.zeros(0, np.int32)


def core_matcher(matcher: PatternMatcher) -> _core.PatternMatcher:
    """The same matcher in the core."""
    return _core.PatternMatcher(
        matcher.n_labels,
        matcher.set_ptr,
        matcher.set_labels,
        matcher.out_ptr,
        matcher.out_set,
        matcher.out_next,
        matcher.activates,
        matcher.last_only,
    )


def core_layout(n_labels: int, *, linked: bool = True) -> _core.Layout:
    """No features; all arcs between labels, or none."""
    pairs = list(itertools.product(range(n_labels), repeat=2)) if linked else []
    before, after = (np.array([pair[i] for pair in pairs], dtype=np.int32) for i in range(2))
    zero = np.zeros(1, np.int64)
    return _core.Layout(n_labels, zero, NOTHING, zero[:0], before, after, zero, NOTHING)


def core_design(layout: _core.Layout, lengths: Sequence[int]) -> _core.Design:
    """Sequences of these lengths, without features."""
    ptr = np.cumsum([0, *lengths]).astype(np.int64)
    positions = np.zeros(ptr[-1] + 1, np.int64)
    return _core.Design(layout, ptr, positions, NOTHING, None, None, None, None, [], 1, purpose="questions")


def trellises(
    matcher: PatternMatcher,
    starts: Iterable[Start],
    lengths: Sequence[int],
    *,
    linked: bool = True,
    max_states: int = 100_000,
    max_arcs: int = 10_000_000,
    n_threads: int = 1,
) -> _core.Trellises:
    """The trellises of sequences of these lengths."""
    layout = core_layout(matcher.n_labels, linked=linked)
    in_order = sorted(starts, key=lambda start: start[0])
    positions = np.array([position for position, _, _ in in_order], dtype=np.int64)
    return _core.Trellises(
        layout,
        core_design(layout, lengths),
        core_matcher(matcher),
        np.searchsorted(positions, np.arange(sum(lengths) + 1)).astype(np.int64),
        np.array([state for _, state, _ in in_order], dtype=np.int32),
        np.array([value for _, _, value in in_order], dtype=np.float64),
        0,
        max_states,
        max_arcs,
        n_threads,
    )


def partition(
    matcher: PatternMatcher, starts: Iterable[Start], n_positions: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Cells, grouped transitions and spans of one sequence."""
    return _core.pattern_partition(
        core_matcher(matcher), *PatternStarts.at(n_positions, starts), 100_000, 1_000_000
    )


def configurations(
    n_labels: int, given: Iterable[tuple[int, Sequence[Iterable[int]], int]]
) -> tuple[PatternMatcher, list[Start]]:
    """A matcher and its starts from (position, label sets, weight)."""
    writer = MatcherWriter(n_labels)
    starts = [(position, writer.chain(sets, weight), 1.0) for position, sets, weight in given]
    return writer.matcher(), starts
