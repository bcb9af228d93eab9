"""`python -m tools.benchmark_plots`: draw docs/images/benchmarks-*.svg from the tables of docs/benchmarks.md."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from crfkit.report.text_width import text_width

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
IMAGES = ROOT / "docs" / "images"
COLOURS = ["#0b8a76", "#c9773b", "#5b7fb8", "#9a6fb0", "#8c8c8c"]  # crfkit's first
WIDTH, BAR, SPACE, SMALL, MARGIN = 760, 15, 10, 12, 16
Number = float | None


class Table(NamedTuple):
    """A table of the page: cells as texts."""

    header: list[str]
    rows: list[list[str]]

    def column(self, name: str) -> int:
        """The first column whose title has this text."""
        return next(i for i, title in enumerate(self.header) if name in title)


class Chart(NamedTuple):
    """Bars in groups, one for each series."""

    title: str
    series: list[str]
    groups: list[str]
    values: list[list[Number]]  # of a group, by series
    unit: str
    log: bool = False


def tables(section: str) -> list[Table]:
    """The tables below a heading of the second level."""
    text = PAGE.read_text(encoding="utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    found = []
    for block in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
        lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        found.append(Table(lines[0], lines[2:]))
    return found


def number(text: str, which: int = 0) -> Number:
    """One of the numbers of a cell, or None where there is none."""
    found = re.findall(r"\d[\d,]*\.?\d*", text)
    return float(found[which].replace(",", "")) if found else None


def shown(value: float) -> str:
    """A number with at most four digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.4g}"


def draw(chart: Chart) -> str:
    """The SVG text of a chart."""
    left = MARGIN + 8 + 0.9 * max(text_width(group, SMALL) for group in chart.groups)
    space = WIDTH - left - 70 - MARGIN
    numbers = [value for group in chart.values for value in group if value is not None]
    low = 10 ** math.floor(math.log10(min(numbers))) if chart.log else 0.0
    most = max(numbers)

    def length(value: float) -> float:
        share = math.log(value / low) / math.log(most / low) if chart.log else value / most
        return max(space * share, 1.0)

    parts = [f'<text x="{MARGIN}" y="24" font-size="15" font-weight="bold">{escape(chart.title)}</text>']
    x = float(MARGIN)
    for name, colour in zip(chart.series, COLOURS, strict=False):
        parts.append(f'<rect x="{x:.1f}" y="36" width="11" height="11" rx="2" fill="{colour}"/>')
        parts.append(f'<text x="{x + 16:.1f}" y="46">{escape(name)}</text>')
        x += 34 + 0.9 * text_width(name, SMALL)
    y = 64.0
    for group, values in zip(chart.groups, chart.values, strict=True):
        middle = y + BAR * len(values) / 2 + 4
        parts.append(f'<text x="{left - 8:.1f}" y="{middle:.1f}" text-anchor="end">{escape(group)}</text>')
        for value, colour in zip(values, COLOURS, strict=False):
            if value is None:
                parts.append(f'<text x="{left + 4:.1f}" y="{y + 11:.1f}" fill="#777">–</text>')
            else:
                parts.append(
                    f'<rect x="{left:.1f}" y="{y + 1:.1f}" width="{length(value):.1f}" height="{BAR - 2}" rx="2" '
                    f'fill="{colour}"/><text x="{left + length(value) + 5:.1f}" y="{y + 12:.1f}">{shown(value)}</text>'
                )
            y += BAR
        y += SPACE
    scale = "logarithmic scale, " if chart.log else ""
    parts.append(f'<text x="{left:.1f}" y="{y + 8:.1f}" fill="#777">{escape(scale + chart.unit)}</text>')
    height = y + 8 + MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" '
        f'viewBox="0 0 {WIDTH} {height:.0f}" font-family="sans-serif" font-size="{SMALL}" fill="#222">'
    )
    sheet = f'<rect width="{WIDTH}" height="{height:.0f}" fill="white"/>'
    return "\n".join([head, sheet, *parts, "</svg>"]) + "\n"


def pick(rows: Sequence[list[str]], *names: str) -> list[list[str]]:
    """The rows that begin with these texts, in their order."""
    return [next(row for row in rows if row[0].startswith(name)) for name in names]


def chain() -> Chart:
    """Training and tagging beside python-crfsuite."""
    chunking, tagging, *_ = tables("Beside python-crfsuite")
    rows = [
        *pick(chunking.rows, "seconds per", "seconds to", "`fit`", "tagging"),
        *pick(tagging.rows, "seconds per", "`fit`", "tagging"),
    ]
    names = ["an iteration", "to a gap of 1e-4", "fit, 100 iterations", "labelling"]
    groups = [*(f"chunks: {name}" for name in names), *(f"tags: {name}" for name in (names[0], *names[2:]))]
    values = [[number(row[3], -1), number(row[2], -1)] for row in rows]
    return Chart(
        "Chains: times as fast as python-crfsuite",
        ["crfkit, 2 threads", "crfkit, 1 thread"],
        groups,
        values,
        "times as fast as python-crfsuite (1 thread)",
    )


def trees() -> Chart:
    """Sums over projective trees and best trees."""
    table = tables("Projective trees")[0]
    rows = [row for row in table.rows if "10 best" not in row[0]]
    return Chart(
        "Projective trees: 32 sentences of 40 words, one CPU thread",
        ["crfkit", "torch-struct", "SuPar"],
        [row[0] for row in rows],
        [[number(row[1]), number(row[2], -1), number(row[3], -1)] for row in rows],
        "milliseconds, double precision",
        log=True,
    )


def layers() -> Chart:
    """Loss and gradient of CRF layers on a GPU."""
    table = tables("CRF layers for PyTorch")[0]
    columns = [table.column(name) for name in ("`loss_and_gradient`", "pytorch-crf", "torch-struct", "SuPar")]
    return Chart(
        "CRF layers on a GPU (H200): loss and gradient",
        ["crfkit", "pytorch-crf", "torch-struct (–: out of memory)", "SuPar"],
        [row[0] for row in table.rows],
        [[number(row[column]) for column in columns] for row in table.rows],
        "milliseconds; sequences, positions, labels at the left",
        log=True,
    )


def spans() -> Chart:
    """How far probabilities of names are from the truth."""
    found = tables("Probabilities of spans")
    names = ["all spans: exact", "all spans: average", "all spans: minimum"]
    return Chart(
        "Probabilities of names: expected calibration error",
        ["exact probabilities", "average of the labels", "minimum of the labels"],
        [table.header[0] for table in found],
        [[number(row[1]) for row in pick(table.rows, *names)] for table in found],
        "per cent, CoNLL-2002 test files",
    )


def parsing() -> Chart:
    """Attachment scores beside UDPipe 1."""
    found = tables("Parsing")
    second, first = found[0], next(table for table in found if "order 1, English" in table.header[1])
    names = ["UAS", "LAS"]
    values = [
        [number(a[1]), number(b[1]), number(a[2])]
        for a, b in zip(pick(second.rows, *names), pick(first.rows, *names), strict=True)
    ]
    return Chart(
        "Dependency parsing, UD English EWT test file",
        ["crfkit, order 2 (default)", "crfkit, order 1", "UDPipe 1"],
        names,
        values,
        "per cent",
    )


def graphs() -> Chart:
    """Exact marginals of factor graphs beside pyAgrum."""
    table = tables("Factor graphs")[1]
    column = table.column("pyAgrum, s")
    rows = [row for row in table.rows if number(row[column]) is not None]
    return Chart(
        "Exact marginals of UAI-2014 instances, one core",
        ["crfkit", "pyAgrum"],
        [row[0] for row in rows],
        [[number(row[2]), number(row[column])] for row in rows],
        "seconds; instances that both finish",
        log=True,
    )


def segments() -> Chart:
    """The cost of long segments."""
    table = next(table for table in tables("Segments") if table.header[0] == "K")
    rows = [row for row in table.rows if row[0] in ("1", "5", "20", "100", "500", "1,000")]
    return Chart(
        "Segments: cost of a position by the greatest length",
        ["24 types", "8 types"],
        [f"up to {row[0]} positions" for row in rows],
        [[number(row[2]), number(row[1])] for row in rows],
        "microseconds for value and gradient",
    )


CHARTS: dict[str, Callable[[], Chart]] = {
    "benchmarks-chain.svg": chain,
    "benchmarks-trees.svg": trees,
    "benchmarks-layers.svg": layers,
    "benchmarks-spans.svg": spans,
    "benchmarks-parsing.svg": parsing,
    "benchmarks-graphs.svg": graphs,
    "benchmarks-segments.svg": segments,
}


if __name__ == "__main__":
    for name, chart in CHARTS.items():
        (IMAGES / name).write_text(draw(chart()), encoding="utf-8")
