"""The labels that a user allows at each position, as allowed labels."""

from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from crfkit.arrays import offsets
from crfkit.errors import LabelError, ShapeError
from crfkit.features.given_sequences import check_no_table
from crfkit.features.labels import Labels
from crfkit.features.wording import shorten
from crfkit.structures import AllowedLabels


def encode_allowed(allowed: Any, labels: Labels, lengths: npt.ArrayLike) -> AllowedLabels | None:
    """Allowed labels of sequences of `lengths` [N] positions, over all positions together; None where nothing is restricted.

    `allowed` has an entry for each sequence: None, or a list with an entry for each position: None (all labels), or a
    collection of labels. A label that is not known is refused.
    """
    if allowed is None:
        return None
    lists: list[list[int]] = []  # [T]
    seen: dict[Any, list[int]] = {None: []}  # None, and collections met before
    for n, (entries, length) in enumerate(_pair_lists(allowed, np.asarray(lengths).tolist())):
        if entries is None:
            lists.extend([[]] * length)
            continue
        for i, entry in enumerate(entries):
            if entry is not None and not isinstance(entry, frozenset):
                lists.append(_ids(n, i, entry, labels))
                continue
            ids = seen.get(entry)
            if ids is None:
                ids = seen[entry] = _ids(n, i, entry, labels)
            lists.append(ids)
    position_ptr = offsets(np.fromiter(map(len, lists), np.int64, len(lists)))
    return AllowedLabels(
        position_ptr, np.fromiter(chain.from_iterable(lists), np.int32, int(position_ptr[-1]))
    )


def first_of(given: AllowedLabels | None, otherwise: AllowedLabels) -> AllowedLabels:
    """AllowedLabels as given where it says something about a position, elsewhere another one."""
    if given is None:
        return otherwise
    silent = np.diff(given.position_ptr) == 0  # [T]
    counts = np.where(silent, np.diff(otherwise.position_ptr), np.diff(given.position_ptr))
    labels = np.empty(int(counts.sum()), np.int32)
    of_silent = np.repeat(silent, counts)
    labels[of_silent] = otherwise.labels[np.repeat(silent, np.diff(otherwise.position_ptr))]
    labels[~of_silent] = given.labels
    return AllowedLabels(offsets(counts), labels)


def _pair_lists(allowed: Any, lengths: Sequence[int]) -> Iterable[tuple[Any, int]]:
    check_no_table(allowed, "allowed", "an entry for each sequence", "labels")
    if isinstance(allowed, str | bytes | Mapping) or not isinstance(allowed, Iterable):
        raise LabelError(f"allowed is {shorten(allowed)}, expected an entry for each sequence")
    entries = list(allowed)
    for n, positions in enumerate(entries):
        if isinstance(positions, str | bytes | Mapping | set | frozenset) or not isinstance(
            positions, Sized | None
        ):
            raise LabelError(
                f"allowed of sequence {n} is {shorten(positions)}, expected None or a list with an entry for each position; "
                "write [allowed] for a single sequence"
            )
    if len(entries) != len(lengths):
        raise ShapeError(f"X has {len(lengths)} sequences but allowed has {len(entries)}")
    for n, (positions, length) in enumerate(zip(entries, lengths, strict=True)):
        if positions is not None and len(positions) != length:
            raise ShapeError(f"sequence {n}: {length} positions but {len(positions)} entries in allowed")
    return zip(entries, lengths, strict=True)


def _ids(n: int, i: int, entry: Any, labels: Labels) -> list[int]:
    """The ids of a collection of labels, ascending."""
    if isinstance(entry, str | bytes | Mapping) or not isinstance(entry, Collection):
        raise LabelError(
            f"sequence {n}, position {i}: allowed has {shorten(entry)}, expected None or a collection of labels"
            + (f", such as {{{entry!r}}}" if isinstance(entry, str) else "")
        )
    if not len(entry):
        raise LabelError(f"sequence {n}, position {i}: allowed has no label; expected None where all are")
    try:
        return sorted({labels.id_of(n, i, label) for label in entry})
    except TypeError:
        raise LabelError(
            f"sequence {n}, position {i}: allowed has {shorten(entry)}, expected labels in it"
        ) from None
