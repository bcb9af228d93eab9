"""Training sets of segmentations, with all segmentations of each sequence and what these have of each weight."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from crfkit import CRF, END, START, Bigrams, Segments
from crfkit.features import FeatureFunction, FeatureFunctions, Template
from crfkit.models.training.training_set import TrainingInput
from tests.oracles.segmentations import SegmentWeights, labels_of, segmentations

TEMPLATE = "U:%x[0,0]\nU:%x[-1,0]/%x[0,0]\nB"
LENGTHS = [1, 2, 4, 5, 5, 3, 4]
TYPES = {"plain": ["A", "B", "C"]}


def parity(x: Any, start: int, end: int) -> dict[str, float]:
    """A feature of whole segments."""
    return {"parity": (end - start) % 2 - 0.25, f"first {x[start][0]}": 1.0}


def place(x: Any, label: str, i: int) -> float:
    """A feature function with one output."""
    return i - 0.5 if label != "O" else 0.25


def word(x: Any, label: str, i: int) -> dict[str, float]:
    """A feature function with named outputs."""
    return {f"{x[i][0]} {label[0]}": 1.5, f"last {label}": float(i + 1 == len(x))}


def pair(x: Any, before: Any, label: Any, i: int) -> dict[str, float]:
    """A feature function of two labels."""
    return {f"{str(before)[0]} {str(label)[-1]}": 0.5 + i, "same": float(before == label)}


class SegmentProblem:
    """Random words and segmentations; some labels unknown (`partial`), some labels not allowed (`restrict`).

    `absent` are pairs of types that do not follow each other; None is the start or the end.
    """

    def __init__(
        self,
        scheme: str,
        max_length: Any = None,
        *,
        partial: bool = False,
        restrict: bool = False,
        of_segments: bool = False,
        of_transitions: bool = False,
        absent: Sequence[tuple[str | None, str | None]] = (),
        facets: bool = False,
        functions: bool = False,
        pairs: bool = False,
        together: bool = False,  # each word has five features
        **options: Any,
    ) -> None:
        random = np.random.default_rng(7)
        self.scheme, self.types = scheme, TYPES.get(scheme, ["O", "P", "Q"])
        limits = max_length if isinstance(max_length, dict) else {}
        limits = limits if max_length is None or limits else dict.fromkeys(self.types, max_length)
        self.absent = {*absent}
        every = [
            [some for some in segmentations(n, self.types, scheme, limits) if self._follows(some)]
            for n in LENGTHS
        ]
        self.X = [[(str(random.choice(list("xyz"))),) for _ in range(n)] for n in LENGTHS]
        gold = [labels_of(found[random.integers(len(found))], scheme) for found in every]
        classes = sorted(
            {label for found in every for segments in found for label in labels_of(segments, scheme)}
        )
        self.Y: list[list[Any]] = [
            [_hidden(label, classes, random) if partial and n > 1 else label for label in y]
            for n, y in enumerate(gold)
        ]
        self.allowed: list[Any] | None = None
        if restrict:
            self.allowed = [
                [
                    {label, *random.choice(classes, len(classes) // 2)} if random.random() < 0.6 else None
                    for label in y
                ]
                for y in gold
            ]
        # One sequence with every label, so that all exist.
        self._add_all(classes, limits)
        if of_segments:
            options |= {
                "segment_features": [0, parity],
                "dictionaries": {"words": ["x", "y z", ("z", "z", "x")]},
            }
        if absent:
            ends = [(START if a is None else a, END if b is None else b) for a, b in absent]
            options["bigrams"] = Bigrams.all(self.types) - {*ends}
        self.structure = Segments(max_length, **options)
        lines = TEMPLATE + "\nB:%x[0,0]" * of_transitions
        lines += "".join(f"\nU{i}:%x[0,0]" for i in range(4 * together))
        template = Template.parse(lines, "words")
        self.facets = _facets if facets else _no_facets
        self.functions = functions
        self.together = together
        self.pairs = pairs
        looking: list[Any] = [place, word, *([FeatureFunction(pair, end=True)] if pairs else [])]
        features = FeatureFunctions(looking, memory=0) if functions else template
        self.crf: CRF[str] = CRF(self.structure, features=features, facets=_facets if facets else None)
        self.found = TrainingInput(
            self.X, self.Y, self.allowed, self.crf._settings(), None if functions else template, 1
        ).learn()
        self.potentials = self.found.model.potentials
        self.classes: list[Any] = list(self.found.model.labels.classes)
        self.weights = SegmentWeights(self.potentials, self.classes, scheme)
        self.weight = random.uniform(0.5, 2.0, len(self.X))
        self.segmentations = [list(segmentations(len(x), self.types, scheme, limits)) for x in self.X]

    def _add_all(self, classes: list[str], limits: dict[str, int]) -> None:
        for kind in self.types:
            longest = 1 if kind == "O" and self.scheme != "plain" else min(3, limits.get(kind, 3))
            if not self._follows([(0, 1, kind)]):
                continue
            for n in range(1, longest + 1):
                y = labels_of([(0, n, kind)], self.scheme)
                self.X.append([("z",)] * n)
                self.Y.append(y)
                if self.allowed is not None:
                    self.allowed.append(None)

    def counts(self, n: int, segments: Any) -> Any:
        """What a segmentation of sequence n has of each weight [D]."""
        x = [row[0] for row in self.X[n]]
        names = [[f"U:{word}", f"U:{before}/{word}"] for before, word in zip(["_B-1", *x], x, strict=False)]
        own = {}
        for start, end, _ in segments if self.structure.segment_features else ():
            own[start, end] = {f"0={' '.join(x[start:end])}": 1.0, **parity(self.X[n], start, end)}
            own[start, end] |= (
                {"in words": 1.0} if x[start:end] in (["x"], ["y", "z"], ["z", "z", "x"]) else {}
            )
        if self.together:
            names = [
                [*found, *(f"U{i}:{word}" for i in range(4))] for found, word in zip(names, x, strict=True)
            ]
        if self.functions:
            names = [[] for _ in x]

        def outputs(t: int, before: Any, label: Any) -> dict[str, float]:
            """Of all functions; those of pairs look at the end too."""
            given = self.X[n]
            if not self.functions or not given:
                return {}
            ends = START if before is None else before, END if label is None else label
            found = (
                {f"pair:{name}": value for name, value in pair(given, *ends, t).items()} if self.pairs else {}
            )
            if label is None:
                return found
            found |= {f"word:{name}": value for name, value in word(given, label, t).items()}
            return {"place": place(given, label, t), **found}

        arcs = [[f"B:{word}"] for word in x]
        return self.weights.counts(segments, names, arcs, own, self.facets, outputs)

    def exists(self, n: int, segments: Any) -> bool:
        """Whether the allowed labels and the bigrams allow it."""
        allowed = None if self.allowed is None else self.allowed[n]
        labels = labels_of(segments, self.scheme)
        if not self._follows(segments):
            return False
        return allowed is None or all(a is None or b in a for a, b in zip(allowed, labels, strict=True))

    def _follows(self, segments: Any) -> bool:
        path = [None, *(kind for _, _, kind in segments), None]
        return self.absent.isdisjoint(pairwise(path))

    def admits(self, n: int, segments: Any) -> bool:
        """Whether the annotation does."""
        known = zip(self.Y[n], labels_of(segments, self.scheme), strict=True)
        return all(y is None or b == y or (isinstance(y, set) and b in y) for y, b in known)


def _facets(label: str) -> dict[str, str]:
    """The letter and the type of a label, by two kinds; O has no type."""
    letter, _, kind = label.partition("-")
    return {"letter": letter, "type": kind} if kind else {"letter": letter}


def _no_facets(label: str) -> dict[str, str]:
    return {}


def _hidden(label: str, classes: list[str], random: np.random.Generator) -> Any:
    drawn = random.random()
    return None if drawn < 0.3 else {label, str(random.choice(classes))} if drawn < 0.5 else label
