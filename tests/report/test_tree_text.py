"""Dependency trees as text: the arcs that can be read off the lines are those of the tree."""

from __future__ import annotations

import numpy as np
import pytest

from crfkit.data import Sentence, Word
from crfkit.errors import TreeError
from crfkit.report import arc_lines, tree_text


def sentence_of(heads: list[int | None]) -> Sentence:
    return Sentence(
        [Word(f"w{i}", "_", "X", "_", "_", head, "r", "_", "_") for i, head in enumerate(heads, 1)]
    )


def traced(lines: list[str]) -> list[int]:
    """The heads by following the lines: from the corner before the arrow up or down to where the line turns; 0: no arrow."""
    heads = []
    for row, line in enumerate(lines):
        head = 0
        if "▶" in line:
            x = line.index("▶") - 1
            step = -1 if line[x] in "└┴" else 1
            assert line[x] in ("└┴" if step < 0 else "┌┬")
            at = row + step
            while lines[at][x] == "│":
                at += step
            assert lines[at][x] in ("┌├┬┼" if step < 0 else "└├┴┼")
            head = at + 1
        heads.append(head)
    return heads


def random_heads(random: np.random.Generator, n: int, *, projective: bool) -> list[int | None]:
    """A tree: words hang on words that are in it already, in random order or from neighbour to neighbour."""
    if not projective:
        order = random.permutation(n) + 1
        heads = dict(
            zip(order.tolist(), [0, *(int(order[random.integers(k)]) for k in range(1, n))], strict=True)
        )
        return [heads[i] for i in range(1, n + 1)]

    found: list[int | None] = [None] * n

    def grow(begin: int, end: int, head: int) -> None:
        if begin < end:
            root = int(random.integers(begin, end))
            found[root] = head
            grow(begin, root, root + 1)
            grow(root + 1, end, root + 1)

    grow(0, n, 0)
    return found


@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 9, 20])
def test_the_arcs_can_be_read_off_the_lines(n: int, projective: bool) -> None:
    random = np.random.default_rng(n)
    for _ in range(100):
        heads = random_heads(random, n, projective=projective)
        lines = arc_lines(sentence_of(heads))
        assert traced(lines) == heads
        assert len({len(line) for line in lines}) == 1


def test_a_chain_is_no_fan() -> None:
    assert arc_lines(sentence_of([0, 1, 2])) == ["  ┌─", "┌─┴▶", "└▶──"]
    assert arc_lines(sentence_of([0, 1, 1])) == ["┌─┬─", "│ └▶", "└▶──"]
    assert arc_lines(sentence_of([2, 0, 2])) == ["┌▶", "├─", "└▶"]


def test_arcs_that_cross() -> None:
    assert arc_lines(sentence_of([3, 4, 0, 3])) == ["  ┌▶", "┌▶│─", "│ ├─", "└─┴▶"]


def test_a_tree_with_tags_and_relations() -> None:
    words = [("Ein", "DET", 2, "det"), ("汉字", "NOUN", 3, "nsubj"), ("steht", "VERB", 0, "root")]
    sentence = Sentence(
        [Word(form, "_", tag, "_", "_", head, rel, "_", "_") for form, tag, head, rel in words]
    )
    assert tree_text(sentence).splitlines() == [
        "  ┌▶ Ein    DET   det",
        "┌▶┴─ 汉字   NOUN  nsubj",  # two characters, four cells
        "└─── steht  VERB  root",
    ]
    assert tree_text(Sentence([])) == ""


def test_words_without_a_head_have_no_arc() -> None:
    assert arc_lines(sentence_of([None, 1])) == ["┌─", "└▶"]
    assert arc_lines(sentence_of([None, None])) == ["", ""]
    with pytest.raises(TreeError, match="word 2"):
        arc_lines(sentence_of([0, 7]))
