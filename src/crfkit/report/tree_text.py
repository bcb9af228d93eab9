"""A dependency tree in lines of text: words below each other, arcs on their left, for a terminal."""

from crfkit.data import Sentence
from crfkit.report.arc_layout import Arc, levels
from crfkit.report.tree_picture import arcs_of

UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8
THROUGH = 16  # an arc goes through from above to below
_LINES = {
    0: " ",
    UP | DOWN: "│",
    LEFT | RIGHT: "─",
    DOWN | RIGHT: "┌",
    UP | RIGHT: "└",
    UP | DOWN | RIGHT: "├",
    DOWN | LEFT | RIGHT: "┬",
    UP | LEFT | RIGHT: "┴",
    UP | DOWN | LEFT | RIGHT: "┼",
}
ARROW = "▶"


def arc_lines(sentence: Sentence) -> list[str]:
    """The arcs of a tree as one line of box characters for each word, all of the same width.

    An arc goes from the line of its head to that of its dependent, where an arrow follows its corner. The word that hangs
    on the root has no arrow. Where arcs cross, the one that goes on to other words is drawn.
    """
    arcs = [arc for arc in arcs_of(sentence) if arc.head]
    heights = levels(arcs, chained=False)
    width = 2 * max(heights, default=0)
    cells = [[0] * width for _ in sentence.words]  # [T, width] where lines go from each cell
    arrows = set()
    for arc, height in zip(arcs, heights, strict=True):
        _draw(cells, arc, width - 2 * height)
        arrows.add((arc.dependent - 1, width - 2 * height + 1))
    return [
        "".join(
            ARROW if (i, x) in arrows else _LINES[UP | DOWN if cell & THROUGH else cell]
            for x, cell in enumerate(row)
        )
        for i, row in enumerate(cells)
    ]


def tree_text(sentence: Sentence) -> str:
    """The tree of a sentence as text: a line for each word with its arcs, part of speech and relation.

    >>> from crfkit.data import Sentence, Word
    >>> def word(form, tag, head, relation):
    ...     return Word(form, "_", tag, "_", "_", head, relation, "_", "_")
    >>> tree = [word("Big", "ADJ", 2, "amod"), word("dogs", "NOUN", 3, "nsubj"), word("bark", "VERB", 0, "root")]
    >>> print(tree_text(Sentence(tree)))
      ┌▶ Big   ADJ   amod
    ┌▶┴─ dogs  NOUN  nsubj
    └─── bark  VERB  root
    """
    from rich.cells import cell_len

    columns = [
        [lines, word.form, word.upos, word.deprel]
        for lines, word in zip(arc_lines(sentence), sentence.words, strict=True)
    ]
    widths = [max((cell_len(row[k]) for row in columns), default=0) for k in range(3)]
    gaps = (" ", "  ", "  ")
    return "\n".join(
        "".join(
            row[k] + " " * (width - cell_len(row[k])) + gap
            for k, (width, gap) in enumerate(zip(widths, gaps, strict=True))
        )
        + row[3]
        for row in columns
    )


def _draw(cells: list[list[int]], arc: Arc, column: int) -> None:
    """Down (or up) from the line of the one word to that of the other, and to the right on both."""
    first, last = (number - 1 for number in arc.span)
    for row in range(first + 1, last):
        cells[row][column] |= UP | DOWN | THROUGH
    for row, direction in ((first, DOWN), (last, UP)):
        cells[row][column] |= direction | RIGHT
        for x in range(column + 1, len(cells[row])):
            cells[row][x] |= LEFT | RIGHT
