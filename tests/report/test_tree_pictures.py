"""Trees drawn: nothing overlaps, files are sound XML without scripts, and wrong arcs are red."""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ET
from itertools import combinations, pairwise
from pathlib import Path

import pytest

from crfkit.data import Sentence, Word
from crfkit.errors import ArgumentError, TreeError, UnwritableFileError
from crfkit.report import TreePicture, draw_tree
from crfkit.report.arc_layout import Arc, clear_middle, levels, slots
from crfkit.report.text_width import text_width

SVG = "{http://www.w3.org/2000/svg}"
Segment = tuple[float, float, float, float]  # x, y, x, y; x, y


def sentence(*words: tuple[str, int | None, str]) -> Sentence:
    return Sentence(
        [Word(form, "lemma", "NOUN", "X", "_", head, label, "_", "_") for form, head, label in words]
    )


SEEN = sentence(
    ("dogs", 3, "nsubj:pass"), ("were", 3, "aux:pass"), ("seen", 0, "root"), ("there", 3, "advmod")
)


def random_heads(n_words: int, chance: random.Random, *, projective: bool) -> list[int]:
    while True:
        order = chance.sample(range(1, n_words + 1), n_words)
        heads = [0] * (n_words + 1)
        for rank, word in enumerate(order):
            heads[word] = chance.choice(order[:rank]) if rank else 0
        arcs = [(min(i, heads[i]), max(i, heads[i])) for i in range(1, n_words + 1)]
        if not projective or not any(
            a < c < b < d or c < a < d < b for (a, b), (c, d) in combinations(arcs, 2)
        ):
            return heads[1:]


def drawn(n_words: int, seed: int, *, projective: bool) -> tuple[Sentence, ET.Element]:
    chance = random.Random(seed)
    forms = ["a", "antidisestablishment", "of", "—", "λόγος", "WWW", "it"]
    labels = ["nsubj:pass", "det", "x", "parataxis"]
    heads = random_heads(n_words, chance, projective=projective)
    made = sentence(*((chance.choice(forms), head, chance.choice(labels)) for head in heads))
    return made, ET.fromstring(draw_tree(made, tags=("upos", "lemma")).svg)


def rows_of_texts(root: ET.Element) -> dict[float, list[tuple[float, float]]]:
    """By height, where the texts of a picture begin and end."""
    rows: dict[float, list[tuple[float, float]]] = {}
    for text in root.iter(SVG + "text"):
        x, y = float(text.attrib["x"]), float(text.attrib["y"])
        half = text_width(text.text or "", float(text.attrib["font-size"])) / 2
        rows.setdefault(y, []).append((x - half, x + half))
    return rows


@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("seed", range(15))
def test_no_texts_overlap_and_all_are_inside(seed: int, projective: bool) -> None:
    made, root = drawn(2 + seed % 6, seed, projective=projective)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    rows = rows_of_texts(root)
    assert sum(map(len, rows.values())) == 4 * len(made.words)  # form, two tags, label
    for y, texts in rows.items():
        assert 0 < y < height
        assert min(texts)[0] >= -0.5
        assert max(texts)[1] <= width + 0.5
        for (_, end), (begin, _) in pairwise(sorted(texts)):
            assert end <= begin


def segments(path: str) -> list[Segment]:
    """The straight lines of a path that goes up, across and down, its bends as corners."""
    numbers = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", re.sub(r"q[^HV]*", " ", path))]
    if len(numbers) == 3:  # from the root
        x, top, end = numbers
        return [(x, top, x, end)]
    begin, start, bent, across, _ = numbers
    top = bent - 9.0 if bent < start else bent + 9.0
    end = across + (9.0 if across > begin else -9.0)
    return [(begin, top, begin, start), (min(begin, end), top, max(begin, end), top), (end, top, end, start)]


def lines(root: ET.Element) -> list[list[Segment]]:
    return [segments(path.attrib["d"]) for path in root.iter(SVG + "path") if path.attrib["fill"] == "none"]


def touch(one: Segment, other: Segment) -> bool:
    return all(
        max(one[axis], other[axis]) <= min(one[axis + 2], other[axis + 2]) + 0.2  # rounded to 0.1
        for axis in (0, 1)
    )


@pytest.mark.parametrize("seed", range(15))
def test_arcs_of_a_projective_tree_touch_nowhere(seed: int) -> None:
    _, root = drawn(2 + seed % 6, seed, projective=True)
    for one, other in combinations(lines(root), 2):
        assert not any(touch(a, b) for a in one for b in other)


def direction(segment: Segment) -> bool:
    return segment[0] == segment[2]


@pytest.mark.parametrize("seed", range(15))
def test_arcs_of_any_tree_only_cross(seed: int) -> None:
    """Lines may cross at right angles, but none lies on another one."""
    _, root = drawn(4 + seed % 5, seed, projective=False)
    for one, other in combinations(lines(root), 2):
        assert not any(touch(a, b) for a in one for b in other if direction(a) == direction(b))


def test_levels_by_length() -> None:
    arcs = [Arc(0, 2, "root"), Arc(2, 1, "a"), Arc(2, 5, "b"), Arc(5, 3, "c"), Arc(5, 4, "d"), Arc(1, 3, "e")]
    assert levels(arcs) == [4, 1, 3, 2, 1, 2]
    assert levels([Arc(0, 1, "root")]) == [1]
    assert levels([]) == []


def test_slots_from_left_to_right() -> None:
    arcs = [Arc(3, 1, ""), Arc(3, 2, ""), Arc(0, 3, ""), Arc(3, 4, ""), Arc(3, 5, "")]
    assert slots(arcs, 5)[3] == {1: 0, 0: 1, 2: 2, 4: 3, 3: 4}
    assert slots(arcs, 5)[1] == {0: 0}


def test_labels_avoid_what_crosses() -> None:
    assert clear_middle(0, 100, [], 10) == 50
    assert clear_middle(0, 100, [45], 10) == 55
    assert clear_middle(0, 100, [55], 10) == 45
    assert clear_middle(0, 100, [35, 52, 60], 10) == 70
    assert clear_middle(0, 30, [10, 20], 10) == 15  # too narrow everywhere


@pytest.mark.parametrize(
    "form",
    [
        "<script>",
        "&amp;",
        '"',
        "]]>",
        "\x00",
        "\x1b[0m",
        "\ud800",
        "\ufffe",
        "هذا",
        "עברית",
        "\u202eabc",
        "日本語",
        "👩‍👩‍👧",
        "",
    ],
)
def test_every_text_is_sound_xml(form: str, tmp_path: Path) -> None:
    made = Sentence([Word(form, form, form, form, form, 0, form, "_", "_")])
    draw_tree(made, tags=("upos", "xpos", "lemma", "feats")).save(tmp_path / "tree.svg")
    root = ET.parse(tmp_path / "tree.svg").getroot()
    texts = [text.text or "" for text in root.iter(SVG + "text")]
    assert texts == [re.sub("[\x00\x1b\ud800\ufffe]", "\ufffd", form)] * 6
    assert all(text.attrib["unicode-bidi"] == "isolate" for text in root.iter(SVG + "text"))
    assert {element.tag for element in root.iter()} <= {
        SVG + name for name in ("svg", "title", "rect", "path", "text")
    }


def colours(picture: TreePicture) -> dict[str, list[str]]:
    """By colour, the labels of arcs."""
    found: dict[str, list[str]] = {}
    texts = ET.fromstring(picture.svg).findall(SVG + "text")
    for text in texts:
        found.setdefault(text.attrib["fill"], []).append(text.text or "")
    return found


def test_wrong_arcs_are_red_and_missed_ones_below() -> None:
    guess = sentence(("dogs", 3, "nsubj"), ("were", 1, "aux"), ("seen", 0, "root"), ("there", 3, "obl"))
    picture = draw_tree(guess, SEEN, tags=())
    found = colours(picture)
    assert found["#c62828"] == ["aux", "obl"]
    assert found["#1a5fb4"] == ["aux:pass", "advmod"]
    assert found["#222"] == ["dogs", "were", "seen", "there", "nsubj", "root"]
    dashed = [
        path for path in ET.fromstring(picture.svg).iter(SVG + "path") if "stroke-dasharray" in path.attrib
    ]
    assert len(dashed) == 2
    assert "red: wrong" in picture.svg


def test_a_right_tree_has_no_red() -> None:
    assert set(colours(draw_tree(SEEN, SEEN))) == {"#222", "#667"}


def test_words_without_a_head_have_no_arc() -> None:
    picture = draw_tree(sentence(("a", None, "_"), ("b", 0, "root")))
    assert len(lines(ET.fromstring(picture.svg))) == 1
    assert draw_tree(sentence(("a", None, "_"))).svg.count("<path") == 0


def test_a_notebook_shows_it() -> None:
    picture = draw_tree(SEEN)
    assert picture._repr_svg_() == picture.svg
    assert "dogs were seen there</title>" in picture.svg


def test_what_cannot_be_drawn(tmp_path: Path) -> None:
    with pytest.raises(TreeError, match="word 1"):
        draw_tree(sentence(("a", 7, "x")))
    with pytest.raises(TreeError, match="word 1"):
        draw_tree(sentence(("a", 1, "x")))
    with pytest.raises(ArgumentError, match="the words are not those of the gold sentence"):
        draw_tree(SEEN, sentence(("a", 0, "root")))
    with pytest.raises(ArgumentError, match="tags"):
        draw_tree(SEEN, tags=("pos",))
    with pytest.raises(UnwritableFileError):
        draw_tree(SEEN).save(tmp_path)
