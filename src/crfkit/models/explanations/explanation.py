"""Why a model answers so and not otherwise: log-odds in parts that add up to them, as numbers, text and HTML."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

from crfkit.models.explanations.explanation_html import as_html
from crfkit.models.explanations.explanation_text import as_text

ROUNDING = 1e-12  # what is smaller is no part


class ExplanationPart(NamedTuple):
    """One part of the log-odds: above 0 it speaks for the answer, below 0 against it.

    `group` says what it comes from:

        "feature"       a feature of the position, of the span or of the arc
        "start", "end"  the weight of the label at the start or the end of a sequence
        "transition"    the arcs between the label and its neighbours: transitions, and patterns that end there
        "left"          what comes from the positions before
        "right"         what comes from the positions behind
        "relation"      the label of an arc
        "sibling", "grandparent"   parts of second order that an arc belongs to
        "tree"          what the other arcs of a tree add
        "constraint"    allowed labels or a structure that rule an answer out: ±inf
        "rest"          all else; what it is, its name says
    """

    name: str
    value: float
    group: str


@dataclass(frozen=True)
class Explanation:
    """Why an answer and not another one, as `CRF.explain`, `CRF.explain_span` and `Parser.explain_arc` give it.

        log_odds = log p(label) − log p(against) = Σ values of the parts

    `print` shows it as a table, a notebook as HTML.
    """

    kind: str  # "label", "span", "arc" (of a tree) or "path" (an arc of a word lattice)
    start: int  # the first position; of an arc the number of the dependent, from 1 on
    end: int  # the position behind the last one
    label: Hashable  # label of the position, type of the span, head of the arc, arc of the lattice
    against: Hashable  # what it is compared with; None: that there is no such span
    probability: float
    against_probability: float
    log_odds: float
    parts: tuple[ExplanationPart, ...]  # sorted by group, then by size

    @property
    def position(self) -> int:
        """The position, or the first one of a span."""
        return self.start

    @property
    def positions(self) -> range:
        """All positions."""
        return range(self.start, self.end)

    @property
    def by_group(self) -> dict[str, float]:
        """The sum of the parts of each group."""
        found: dict[str, list[float]] = {}
        for part in self.parts:
            found.setdefault(part.group, []).append(part.value)
        return {group: math.fsum(values) for group, values in found.items()}

    @property
    def title(self) -> str:
        """What is explained, in one line."""
        against = f", not {self.against} ({self.against_probability:.3g})"
        if self.kind == "span" and self.against is None:
            against = ", or no such span"
        place = {
            "label": f"position {self.start}",
            "span": f"positions {self.start} to {self.end - 1}",
            "arc": f"head of word {self.start}",
            "path": "arc of the lattice",
        }[self.kind]
        return f"{place}: {self.label} ({self.probability:.3g}){against}"

    def to_dict(self) -> dict[str, Any]:
        """The same in types that JSON knows; infinite numbers are the texts "inf" and "-inf"."""
        return {
            "kind": self.kind,
            "start": self.start,
            "end": self.end,
            "label": _plain(self.label),
            "against": _plain(self.against),
            "probability": self.probability,
            "against_probability": self.against_probability,
            "log_odds": _number(self.log_odds),
            "parts": [
                {"name": part.name, "value": _number(part.value), "group": part.group} for part in self.parts
            ],
        }

    def to_html(self, limit: int | None = 30) -> str:
        """A table with bars, as a fragment of HTML with its own styles; the `limit` largest parts (None: all)."""
        return as_html(self.title, self.log_odds, self.parts, limit)

    def to_text(self, limit: int | None = 20) -> str:
        """A table in plain text; the `limit` largest parts, the others in one line (None: all)."""
        return as_text(self.title, self.log_odds, self.parts, limit)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_html()


def _plain(value: Hashable) -> Any:
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)
