"""Segmentations from the definition: every one is listed, scored and summed. Nothing of the library is used."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.oracles.oracle import Enumeration, Floats, Output

Segment = tuple[int, int, int]  # start, end, label


def segmentations(n: int, longest: int, n_labels: int) -> Iterator[tuple[Segment, ...]]:
    """All segmentations of n positions into labelled segments of at most `longest` positions."""
    for cuts in itertools.product([False, True], repeat=max(n - 1, 0)):
        bounds = [0, *(t for t, cut in enumerate(cuts, 1) if cut), n] if n else [0]
        pieces = list(itertools.pairwise(bounds))
        if all(end - start <= longest for start, end in pieces):
            for labels in itertools.product(range(n_labels), repeat=len(pieces)):
                yield tuple((*piece, label) for piece, label in zip(pieces, labels, strict=True))


@dataclass(frozen=True)
class SegmentBatch:
    """Scores of B sequences by name, as the arguments of a distribution; `mask` says which positions are theirs."""

    scores: dict[str, Floats]
    mask: Any = None

    def positions(self, b: int) -> Any:
        """Where the positions of a sequence are."""
        T = self.scores["emissions"].shape[1]
        return np.arange(T) if self.mask is None else np.flatnonzero(self.mask[b])

    def oracle(self, b: int) -> Enumeration:
        """Brute force over one sequence: the parts of an output are one number for each score that it takes."""
        at, own = self.positions(b), {}
        for name, part in self.scores.items():
            if name in ("emissions", "first", "last", "segments"):
                own[name] = part[b][at]
            else:
                own[name] = part[b] if name == "transitions" and part.ndim == 3 else part
        places, total = {}, 0
        for name, part in own.items():
            places[name] = total + np.arange(part.size).reshape(part.shape)
            total += part.size
        vector = np.concatenate([np.ravel(part) for part in own.values()])
        K, L = own["durations"].shape
        outputs = ((tags_of(y, L), list(_parts(y, places))) for y in segmentations(len(at), K, L))
        return Enumeration(outputs, vector)

    def split(self, vector: Floats, b: int) -> dict[str, Floats]:
        """Numbers per part [P] of a sequence by name."""
        found, begin, n = {}, 0, len(self.positions(b))
        for name, part in self.scores.items():
            shape = part.shape
            if name in ("emissions", "first", "last", "segments"):
                shape = (n, *part.shape[2:])
            elif name == "transitions":
                shape = part.shape[-2:]
            size = int(np.prod(shape))
            found[name] = vector[begin : begin + size].reshape(shape)
            begin += size
        return found


def _parts(segments: tuple[Segment, ...], places: dict[str, Any]) -> Iterator[int]:
    """The numbers of the parts of one segmentation."""
    before = None
    for start, end, label in segments:
        yield from places["emissions"][start:end, label].tolist()
        yield int(places["durations"][end - start - 1, label])
        if before is not None:
            yield int(places["transitions"][before, label])
        elif "start" in places:
            yield int(places["start"][label])
        if "first" in places:
            yield int(places["first"][start, label])
        if "last" in places:
            yield int(places["last"][end - 1, label])
        if "segments" in places:
            yield int(places["segments"][start, end - start - 1, label])
        before = label
    if before is not None and "end" in places:
        yield int(places["end"][before])


def tags_of(segments: tuple[Segment, ...], n_labels: int) -> Output:
    """The label where a segment begins, label + L at its other positions."""
    return tuple(
        label + (n_labels if t > start else 0) for start, end, label in segments for t in range(start, end)
    )


def segment_batch(
    seed: int,
    *,
    shape: tuple[int, int, int, int] = (3, 4, 3, 2),
    ends: bool = True,
    edges: bool = False,
    whole: bool = False,
    masked: bool = False,
    own_transitions: bool = False,
    forbidden: bool = False,
    spread: float = 1.5,
) -> SegmentBatch:
    """A random batch of [B, T, K, L]; a masked one has masked positions in between, and an empty sequence."""
    rng = np.random.default_rng(seed)
    B, T, K, L = shape

    def normal(*size: int) -> Floats:
        return spread * rng.standard_normal(size)

    scores = {"emissions": normal(B, T, L), "durations": normal(K, L)}
    scores["transitions"] = normal(*([B] if own_transitions else []), L, L)
    if ends:
        scores |= {"start": normal(L), "end": normal(L)}
    if edges:
        scores |= {"first": normal(B, T, L), "last": normal(B, T, L)}
    if whole:
        scores["segments"] = normal(B, T, K, L)
    if forbidden:
        scores["transitions"][..., range(L), range(L)] = -np.inf
        scores["durations"][1:, 0] = -np.inf  # label 0 has segments of one position
        scores["durations"][0, 1:] = -np.inf  # the others have longer ones
    mask = None
    if masked:
        mask = rng.random((B, T)) < 0.7
        mask[0], mask[1] = True, False
        mask[2, 0] = mask[2, T // 2] = False
    return SegmentBatch(scores, mask)


KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "no ends": {"ends": False},
    "first and last": {"edges": True},
    "whole segments": {"whole": True, "edges": True, "masked": True},
    "masked": {"masked": True},
    "own transitions": {"own_transitions": True, "masked": True},
    "forbidden": {"forbidden": True, "shape": (3, 5, 3, 2)},
    "forbidden and masked": {"forbidden": True, "masked": True, "shape": (3, 5, 3, 3)},
    "far apart": {"spread": 60.0},
    "one position": {"shape": (3, 1, 2, 3)},
    "one label": {"shape": (3, 5, 2, 1)},
    "long": {"shape": (2, 3, 6, 2)},
    "length one": {"shape": (2, 4, 1, 3)},
}
