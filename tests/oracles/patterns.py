"""Trellises of patterns by hand: a book and its starts become objects of the core."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.structures import BookWriter, PatternBook, PatternStarts

Start = tuple[int, int, float]  # position of the data set, state, value
NOTHING = np.zeros(0, np.int32)


def core_book(book: PatternBook) -> _core.PatternBook:
    """The same book in the core."""
    return _core.PatternBook(
        book.n_labels,
        book.set_ptr,
        book.set_labels,
        book.out_ptr,
        book.out_set,
        book.out_next,
        book.fires,
        book.last_only,
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
    book: PatternBook,
    starts: Iterable[Start],
    lengths: Sequence[int],
    *,
    linked: bool = True,
    max_states: int = 100_000,
    max_arcs: int = 10_000_000,
    n_threads: int = 1,
) -> _core.Trellises:
    """The trellises of sequences of these lengths."""
    layout = core_layout(book.n_labels, linked=linked)
    in_order = sorted(starts, key=lambda start: start[0])
    positions = np.array([position for position, _, _ in in_order], dtype=np.int64)
    return _core.Trellises(
        layout,
        core_design(layout, lengths),
        core_book(book),
        np.searchsorted(positions, np.arange(sum(lengths) + 1)).astype(np.int64),
        np.array([state for _, state, _ in in_order], dtype=np.int32),
        np.array([value for _, _, value in in_order], dtype=np.float64),
        0,
        max_states,
        max_arcs,
        n_threads,
    )


def partition(
    book: PatternBook, starts: Iterable[Start], n_positions: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Cells, grouped transitions and spans of one sequence."""
    return _core.pattern_partition(
        core_book(book), *PatternStarts.at(n_positions, starts), 100_000, 1_000_000
    )


def configurations(
    n_labels: int, given: Iterable[tuple[int, Sequence[Iterable[int]], int]]
) -> tuple[PatternBook, list[Start]]:
    """A book and its starts from (position, label sets, weight)."""
    writer = BookWriter(n_labels)
    starts = [(position, writer.chain(sets, weight), 1.0) for position, sets, weight in given]
    return writer.book(), starts
