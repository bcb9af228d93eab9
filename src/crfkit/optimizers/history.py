"""What a minimisation did, iteration by iteration: prints as a table, exports, plots."""

import csv
import os
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.errors import ArgumentError
from crfkit.markup import Line, details, fragment, line_plot, tag


class Record(NamedTuple):
    """One line of the history of a minimisation; iteration 0 is the start."""

    iteration: int
    seconds: float  # since the start; NaN where that is not known, as in a model that was loaded
    objective: float  # f(w) + Σ l1_i·|w_i|
    gradient_norm: float  # Euclidean norm of the gradient (with l1: of the pseudo-gradient)
    passes: float = 0.0  # over the data, until here: a gradient is one, and so is a Hessian·vector product
    dev_score: float | None = None  # None without held-out data


_SECONDS = Record._fields.index("seconds")


class History(tuple[Record, ...]):
    """The records of a minimisation, a tuple of them; `print(history)` shows a table."""

    __slots__ = ()

    def to_dicts(self) -> list[dict[str, Any]]:
        """Each record as a dict, for a data frame or JSON."""
        return [record._asdict() for record in self]

    def to_array(self, *, seconds: bool = True) -> npt.NDArray[np.float64]:
        """The records as rows [n, 6], or [n, 5] without the seconds, which no two runs share; NaN: no dev score."""
        rows = [[np.nan if field is None else field for field in record] for record in self]
        array = np.array(rows, dtype=np.float64).reshape(-1, len(Record._fields))
        return array if seconds else np.delete(array, _SECONDS, axis=1)

    @classmethod
    def from_array(cls, rows: npt.NDArray[np.float64]) -> "History":
        """The inverse of `to_array`; rows [n, 4] have seconds, but neither passes nor dev scores.

        NaN is a dev score where another row has one: all but the start have one, or none has.
        """
        if rows.shape[1] == len(Record._fields) - 1:
            rows = np.insert(rows, _SECONDS, np.nan, axis=1)
        scored = not np.isnan(rows[:, 5:]).all()
        return cls(
            Record(
                int(row[0]),
                *row[1:5],
                *(None if isnan(score) and not (scored and row[0]) else score for score in row[5:]),
            )
            for row in rows.tolist()
        )

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write one line a record under a line of names; the dev score is empty where there is none, as are seconds."""
        with Path(path).open("w", newline="", encoding="utf-8") as stream:
            rows = csv.writer(stream, lineterminator="\n")
            rows.writerow(Record._fields)
            rows.writerows(
                [
                    "" if field is None or (i == _SECONDS and isnan(field)) else field
                    for i, field in enumerate(record)
                ]
                for record in self
            )

    def plot(self, against: str | None = None, ax: Any = None) -> Any:
        """Draw the objective and, on an axis of its own, the dev score; returns matplotlib's axes.

        `against` names what goes along: "seconds", "passes" or "iteration"; None: seconds where they are known, else passes.
        """
        if against is None:
            against = "passes" if any(isnan(record.seconds) for record in self) else "seconds"
        if against not in ("seconds", "passes", "iteration"):
            raise ArgumentError(f"plot got against={against!r}, expected seconds, passes or iteration.")
        if ax is None:
            try:
                from matplotlib import pyplot
            except ImportError:
                raise ImportError("plot needs matplotlib: pip install matplotlib") from None
            ax = pyplot.figure().add_subplot()
        x = [getattr(record, against) for record in self]
        ax.plot(x, [record.objective for record in self], label="objective")
        ax.set_xlabel("passes over the data" if against == "passes" else against)
        ax.set_ylabel("objective")
        scored = [
            (at, record.dev_score) for at, record in zip(x, self, strict=True) if record.dev_score is not None
        ]
        if scored:
            beside = ax.twinx()
            beside.plot(*zip(*scored, strict=True), color="tab:orange")
            beside.set_ylabel("dev score")
        return ax

    def _repr_html_(self) -> str:
        if not self:
            return fragment("no iterations")
        by_seconds = not any(isnan(record.seconds) for record in self)
        x = [record.seconds if by_seconds else record.passes for record in self]
        lines = [
            Line("objective", [record.objective for record in self]),
            Line("dev score", [record.dev_score for record in self]),
        ]
        last = self[-1]
        summary = f"{last.iteration:,} iterations, objective {last.objective:,.4f}"
        scores = [record.dev_score for record in self if record.dev_score is not None]
        if scores:
            summary += f", highest dev score {max(scores):.4f}"
        return fragment(
            tag("div", summary),
            line_plot(x, lines, "seconds" if by_seconds else "passes over the data"),
            details("All iterations", tag("div", tag("pre", str(self)), class_="scroll")),
        )

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return History(found) if isinstance(key, slice) else found

    def __str__(self) -> str:
        scored = any(record.dev_score is not None for record in self)
        lines = ["iteration  passes   seconds       objective  gradient norm" + "  dev score" * scored]
        for record in self:
            seconds = "" if isnan(record.seconds) else f"{record.seconds:.2f}"
            line = (
                f"{record.iteration:9d}  {record.passes:6.5g}  {seconds:>8}  {record.objective:14.4f}  "
                f"{record.gradient_norm:13.4g}"
            )
            lines.append(line + ("" if record.dev_score is None else f"  {record.dev_score:9.4f}"))
        return "\n".join(lines)
