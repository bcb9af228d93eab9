"""Spans that are right in part: the four scenarios of SemEval-2013 task 9.1, counted as nervaluate counts them.

    strict    positions and type are right
    exact     positions are right, whatever the type
    partial   positions are right; half of a point where they overlap, whatever the type
    type      the type is right, and the positions overlap

The predicted spans of a sequence are taken in order. Each is compared with the gold spans that no span before it was
matched with, and matched with one of these at most:

    correct     with a gold span that the scenario takes for right (type: with the one whose ends are nearest)
    incorrect   else with the first one that it overlaps; in the scenario `partial` that is a `partial` match instead
    spurious    else with none

Gold spans that are left over are missed. Then

    actual = correct + incorrect + partial + spurious        possible = correct + incorrect + partial + missed
    precision = (correct + partial / 2) / actual             recall = (correct + partial / 2) / possible
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from crfkit.errors import ArgumentError, ShapeError
from crfkit.evaluation.labels import PLAIN, Triple, are_spans, scheme_of, span_sets

SCENARIOS = ("strict", "exact", "partial", "type")
"""What a match is compared by; nervaluate calls the last one `ent_type`."""

_MISSED, _SPURIOUS = "missed", "spurious"


@dataclass(frozen=True)
class MatchCounts:
    """How predicted spans match gold ones in one scenario; a ratio without a denominator is 0."""

    correct: int = 0
    incorrect: int = 0
    partial: int = 0
    missed: int = 0
    spurious: int = 0

    @property
    def possible(self) -> int:
        """Gold spans."""
        return self.correct + self.incorrect + self.partial + self.missed

    @property
    def actual(self) -> int:
        """Predicted spans."""
        return self.correct + self.incorrect + self.partial + self.spurious

    @property
    def precision(self) -> float:
        """(correct + partial / 2) / actual."""
        return (self.correct + self.partial / 2) / self.actual if self.actual else 0.0

    @property
    def recall(self) -> float:
        """(correct + partial / 2) / possible."""
        return (self.correct + self.partial / 2) / self.possible if self.possible else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


@dataclass(frozen=True)
class PartialMatches:
    """Counts of each scenario: of all spans, and of those of one type compared with each other."""

    overall: Mapping[str, MatchCounts]  # scenario → counts
    types: Mapping[Any, Mapping[str, MatchCounts]]  # type → scenario → counts, in alphabetical order

    def __str__(self) -> str:
        lines = ["scenario  correct  incorrect  partial  missed  spurious  precision   recall       F1"]
        for name, found in self.overall.items():
            shares = "".join(f"{100 * share:9.2f}" for share in (found.precision, found.recall, found.f1))
            lines.append(
                f"{name:8} {found.correct:8} {found.incorrect:10} {found.partial:8} {found.missed:7} "
                f"{found.spurious:9}  {shares}"
            )
        return "\n".join(lines)


def partial_matches(
    gold: Sequence[Sequence[Any]],
    predicted: Sequence[Sequence[Any]],
    scheme: str | None = None,
    *,
    min_overlap: float = 0.01,
) -> PartialMatches:
    """How spans match in each of the scenarios strict, exact, partial and type, as nervaluate counts.

    Both may be label sequences, or lists of spans (start, end, label, …). Spans overlap that share at least `min_overlap`
    of the positions of the gold span.

    >>> found = partial_matches([["B-PER", "I-PER", "O"]], [["B-PER", "O", "B-LOC"]])
    >>> {name: (counts.correct, counts.partial, counts.spurious) for name, counts in found.overall.items()}
    {'strict': (0, 0, 1), 'exact': (0, 0, 1), 'partial': (0, 1, 1), 'type': (1, 0, 1)}
    """
    if len(gold) != len(predicted):
        raise ShapeError(
            f"there are {len(gold)} gold sequences and {len(predicted)} predicted ones, expected as many"
        )
    if not 0 < min_overlap <= 1:
        raise ArgumentError(f"min_overlap is {min_overlap}, expected a share above 0, at most 1")
    if scheme is None:
        labels = (label for some in (gold, predicted) if not are_spans(some) for one in some for label in one)
        scheme = scheme_of(labels) or PLAIN
    sets = (span_sets(gold, scheme, "gold"), span_sets(predicted, scheme, "predicted"))
    pairs = [(_ordered(right), _ordered(found)) for right, found in zip(*sets, strict=True)]
    types = sorted({label for pair in pairs for spans in pair for _, _, label in spans}, key=str)
    return PartialMatches(
        _scenarios(pairs, min_overlap),
        MappingProxyType(
            {name: _scenarios([_of_type(*pair, name) for pair in pairs], min_overlap) for name in types}
        ),
    )


def _ordered(spans: set[Triple]) -> list[Triple]:
    return sorted(spans, key=lambda span: (span[0], span[1], str(span[2])))


def _of_type(gold: list[Triple], predicted: list[Triple], name: Any) -> tuple[list[Triple], list[Triple]]:
    return [span for span in gold if span[2] == name], [span for span in predicted if span[2] == name]


def _scenarios(
    pairs: Iterable[tuple[list[Triple], list[Triple]]], min_overlap: float
) -> Mapping[str, MatchCounts]:
    outcomes: dict[str, Counter[str]] = {name: Counter() for name in SCENARIOS}
    for gold, predicted in pairs:
        if gold or predicted:
            overlaps = _overlaps(gold, predicted, min_overlap)
            for name, counter in outcomes.items():
                _match(name, gold, predicted, overlaps, counter)
    return MappingProxyType({name: MatchCounts(**counter) for name, counter in outcomes.items()})


def _overlaps(gold: Sequence[Triple], predicted: Sequence[Triple], min_overlap: float) -> list[list[int]]:
    """For each predicted span the gold spans that it overlaps, in order."""
    at: dict[int, list[int]] = defaultdict(list)  # position → gold spans
    for g, (start, end, _) in enumerate(gold):
        for i in range(start, end):
            at[i].append(g)
    found = []
    for start, end, _ in predicted:
        shared = Counter(g for i in range(start, end) for g in at.get(i, ()))
        found.append(sorted(g for g, n in shared.items() if n / (gold[g][1] - gold[g][0]) >= min_overlap))
    return found


def _match(
    scenario: str,
    gold: Sequence[Triple],
    predicted: Sequence[Triple],
    overlaps: Sequence[Sequence[int]],
    outcomes: Counter[str],
) -> None:
    """Count the outcomes of one sequence."""
    taken: set[int] = set()
    for (start, end, label), near in zip(predicted, overlaps, strict=True):
        left = [g for g in near if g not in taken]
        distances = {g: abs(gold[g][0] - start) + abs(gold[g][1] - end) for g in left}
        right = [
            g
            for g in left
            if (scenario == "type" or distances[g] == 0)
            and (scenario in ("exact", "partial") or gold[g][2] == label)
        ]
        if right:
            taken.add(min(right, key=lambda g: distances[g]))  # the first of the nearest
            outcomes["correct"] += 1
        elif left:
            taken.add(left[0])
            outcomes["partial" if scenario == "partial" else "incorrect"] += 1
        else:
            outcomes[_SPURIOUS] += 1
    outcomes[_MISSED] += len(gold) - len(taken)
