"""Pictures of a set of label pairs: a table of dots, labels before down and labels after across."""

import html
from collections.abc import Callable, Hashable, Sequence

After = Callable[[Hashable], frozenset[Hashable]]  # label → the labels that may follow it

_MOST_IN_TEXT = 40  # labels in a table of characters
_MOST_NAMED = 60  # labels with names beside the notebook's picture
_SIDE = 600  # pixels of a picture without names
_LISTED = 5


def as_text(firsts: Sequence[Hashable], seconds: Sequence[Hashable], after: After) -> str:
    """A table with ● for each pair; with many labels, the number of followers of each."""
    counts = [len(after(first).intersection(seconds)) for first in firsts]
    share = 100 * sum(counts) / (len(firsts) * len(seconds))
    head = f"{sum(counts):,} of {len(firsts) * len(seconds):,} pairs ({share:.1f} %)"
    if len(firsts) > _MOST_IN_TEXT:
        order = sorted(range(len(firsts)), key=lambda i: -counts[i])
        lines = [head, f"followers of a label: {sum(counts) / len(counts):.1f} on average"]
        lines += (f"{counts[i]:>8,}  {firsts[i]}" for i in order[:_LISTED])
        return "\n".join([*lines, f"{'…':>8}", *(f"{counts[i]:>8,}  {firsts[i]}" for i in order[-_LISTED:])])
    width = max(len(str(first)) for first in firsts)
    names = [str(second) for second in seconds]
    rows = [head, " ".join([" " * width, *names])]
    for first in firsts:
        cells = ("●" if second in after(first) else "·" for second in seconds)
        row = (cell.center(len(name)) for cell, name in zip(cells, names, strict=True))
        rows.append(" ".join([str(first).ljust(width), *row]).rstrip())
    return "\n".join(rows)


def as_html(firsts: Sequence[Hashable], seconds: Sequence[Hashable], after: After) -> str:
    """A drawing (SVG) with one square for each pair, and the names of the labels if they fit."""
    named = len(firsts) <= _MOST_NAMED
    cell = 14.0 if named else _SIDE / len(firsts)
    left = 8 * max(len(str(label)) for label in firsts) if named else 0
    top = 8 * max(len(str(label)) for label in seconds) if named else 0
    squares, names, n_pairs = [], [], 0
    for i, first in enumerate(firsts):
        row = after(first)
        for begin, end in _runs([second in row for second in seconds]):
            squares.append(f"M{begin} {i}h{end - begin}v1h{begin - end}z")
            n_pairs += end - begin
    if named:
        for i, first in enumerate(firsts):
            names.append(
                f'<text x="{left - 6}" y="{top + cell * (i + 0.75):g}" text-anchor="end">{_escape(first)}</text>'
            )
        for j, second in enumerate(seconds):
            at = f"{left + cell * (j + 0.75):g} {top - 6}"
            names.append(f'<text transform="translate({at}) rotate(-90)">{_escape(second)}</text>')
    width, height = left + cell * len(seconds), top + cell * len(firsts)
    frame = (
        f'width="{cell * len(seconds):g}" height="{cell * len(firsts):g}" fill="none" stroke="currentColor"'
    )
    return (
        f"<div>Bigrams: {n_pairs:,} of {len(firsts) * len(seconds):,} pairs; label before down, label after across</div>"
        f'<svg width="{width:g}" height="{height:g}" font-size="11" font-family="monospace" fill="currentColor">'
        f'{"".join(names)}<g transform="translate({left} {top})"><rect {frame}/>'
        f'<path transform="scale({cell:g})" d="{"".join(squares)}"/></g></svg>'
    )


def _runs(row: Sequence[bool]) -> list[tuple[int, int]]:
    """The runs of True, as (begin, end)."""
    edges = [j for j in range(len(row) + 1) if (j > 0 and row[j - 1]) != (j < len(row) and row[j])]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _escape(label: Hashable) -> str:
    return html.escape(str(label))
