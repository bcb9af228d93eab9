"""Plots of a page: Matplotlib's SVG, whose colours are those of the page, in light and in dark.

Matplotlib draws with colours that stand for the variables of the style sheet, and each is replaced by its variable in
the text of the SVG.
"""

import html
import io
import math
import re
from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from crfkit.evaluation import Calibration, Counts, SpanCurve
from crfkit.optimizers import History

INK, PALE, LINE, FIRST, SECOND = "#010201", "#010202", "#010203", "#010204", "#010205"
_VARIABLES = {INK: "--ink", PALE: "--pale", LINE: "--line", FIRST: "--first", SECOND: "--second"}
_STYLE = {
    "svg.fonttype": "none",
    "font.size": 10.0,
    "text.color": INK,
    "axes.labelcolor": PALE,
    "axes.edgecolor": LINE,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": PALE,
    "ytick.labelcolor": PALE,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "path.simplify_threshold": 0.2,
}
_POINTS = 160  # of a curve at most
_GROUP = re.compile(
    r' id="(?:figure|axes|patch|line2d|text|matplotlib\.axis|xtick|ytick|legend|PathCollection)[^"]*"'
)


class Bars(NamedTuple):
    """A row of bars for a plot."""

    name: str
    values: Sequence[float]


class _Canvas:
    """One figure with one pair of axes, and the text that it becomes."""

    def __init__(self, name: str, width: float, height: float) -> None:
        from matplotlib.figure import Figure

        self.name = name
        self.figure: Any = Figure(figsize=(width, height), layout="constrained")
        self.axes: Any = self.figure.add_subplot()

    def svg(self, description: str) -> str:
        """The picture as an element of a page, with a description for those who cannot see it."""
        stream = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        self.figure.savefig(stream, format="svg", transparent=True, metadata=nothing)
        text = stream.getvalue()
        text = text[text.index("<svg") :]
        text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
        text = _GROUP.sub("", text)
        for colour, variable in _VARIABLES.items():
            text = text.replace(colour, f"var({variable})")
        text = re.sub(r"font: (\d+\.?\d*)px [^;\"]*", r"font-size: \1px", text)
        text = re.sub(r"\n\s*", "\n", text)
        label = html.escape(description)
        return re.sub(
            r'<svg [^>]*?(viewBox="[^"]*")[^>]*>',
            rf'<svg class="plot" \1 role="img" aria-label="{label}" xmlns:xlink="http://www.w3.org/1999/xlink">',
            text,
            count=1,
        )


@contextmanager
def _canvas(name: str, width: float = 4.6, height: float = 3.4) -> Any:
    """A canvas; the settings of Matplotlib are those of the caller again afterwards."""
    from matplotlib import rc_context

    with rc_context({**_STYLE, "svg.hashsalt": name}):  # the same plot has the same ids, another one others
        yield _Canvas(name, width, height)


def draw_calibration(found: Calibration, things: str) -> str:
    """Mean probability along, share of right ones up; the sizes of dots are numbers of things."""
    with _canvas("calibration") as canvas:
        axes = canvas.axes
        axes.plot([0, 1], [0, 1], color=PALE, linewidth=1, linestyle=(0, (4, 4)))
        xs, ys = [one.probability for one in found.bins], [one.precision for one in found.bins]
        largest = max((one.n for one in found.bins), default=1)
        sizes = [18 + 110 * one.n / largest for one in found.bins]
        axes.plot(xs, ys, color=FIRST, linewidth=1.6)
        axes.scatter(xs, ys, s=sizes, color=FIRST, zorder=3, clip_on=False)
        axes.set(
            xlim=(0, 1), ylim=(0, 1.02), xlabel=f"probability of the {things}", ylabel="share that is right"
        )
        return canvas.svg(f"Calibration: expected calibration error {100 * found.error:.2f} percent")


def draw_precision_recall(found: SpanCurve, decoded: Counts | None, decoded_name: str) -> str:
    """Recall along, precision up, one point for each threshold; a mark for the decoded output."""
    with _canvas("precision_recall") as canvas:
        points = [(one.recall, one.precision) for one in found.counts]
        step = max(1, math.ceil(len(points) / _POINTS))
        kept = [*points[::step], *points[-1:]]
        canvas.axes.plot([x for x, _ in kept], [y for _, y in kept], color=FIRST, linewidth=1.6)
        if decoded is not None:
            canvas.axes.scatter(
                [decoded.recall],
                [decoded.precision],
                s=54,
                marker="D",
                color=SECOND,
                zorder=3,
                label=decoded_name,
                clip_on=False,
            )
            canvas.axes.legend(loc="lower left")
        canvas.axes.set(xlim=(0, 1.01), ylim=(0, 1.02), xlabel="recall", ylabel="precision")
        return canvas.svg(f"Precision over recall: area {100 * found.area:.2f} percent")


def draw_history(history: History, dev_name: str = "dev score") -> str:
    """The objective, and on an axis of its own the dev score, over iterations."""
    with _canvas("history", 6.4, 3.2) as canvas:
        axes = canvas.axes
        along = [record.iteration for record in history]
        axes.plot(
            along, [record.objective for record in history], color=FIRST, linewidth=1.6, label="objective"
        )
        axes.set(xlabel="iteration", ylabel="objective")
        _whole_numbers(axes)
        axes.yaxis.set_major_formatter("{x:,.6g}")
        scored = [record for record in history if record.dev_score is not None]
        if scored:
            beside = axes.twinx()
            beside.grid(visible=False)
            beside.plot(
                [record.iteration for record in scored],
                [100 * (record.dev_score or 0.0) for record in scored],
                color=SECOND,
                linewidth=1.6,
                linestyle=(0, (5, 2)),
                label=dev_name,
            )
            beside.set_ylabel(f"{dev_name} (%)")
            lines = [*axes.get_lines(), *beside.get_lines()]
            axes.legend(lines, [line.get_label() for line in lines], loc="center right")
        return canvas.svg(f"Training history: the objective over {len(history)} records")


def draw_curve(name: str, xs: Sequence[float], ys: Sequence[float], *, along: str, up: str) -> str:
    """Shares in percent over sizes, on a scale of logarithms."""
    with _canvas(name, 6.4, 3.2) as canvas:
        canvas.axes.plot(xs, [100 * y for y in ys], color=FIRST, linewidth=1.6, marker="o")
        canvas.axes.set_xscale("log", base=2)
        canvas.axes.set_xticks(list(xs), [f"{x:,}" for x in xs])
        canvas.axes.minorticks_off()
        canvas.axes.set(xlabel=along, ylabel=up)
        return canvas.svg(f"{up} over {along}")


def draw_bars(name: str, groups: Sequence[str], rows: Iterable[Bars], *, along: str) -> str:
    """Shares in percent as bars side by side, a group for each name along."""
    with _canvas(name, 6.4, 3.0) as canvas:
        listed = list(rows)
        width = 0.8 / len(listed)
        for k, (row, colour) in enumerate(zip(listed, (FIRST, SECOND), strict=False)):
            xs = [at - 0.4 + width * (k + 0.5) for at in range(len(groups))]
            canvas.axes.bar(xs, [100 * y for y in row.values], width * 0.92, color=colour, label=row.name)
        canvas.axes.set_xticks(range(len(groups)), groups)
        canvas.axes.grid(visible=False, axis="x")
        canvas.axes.set(ylim=(0, 100), xlabel=along, ylabel="%")
        canvas.figure.legend(loc="outside upper right", ncols=len(listed))
        names = " and ".join(row.name for row in listed)
        return canvas.svg(f"{names} by {along}")


def _whole_numbers(axes: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
