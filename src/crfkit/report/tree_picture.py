"""A dependency tree as a picture (SVG): words in a row, tags below them, arcs with their labels above."""

import html
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from crfkit.data import Sentence
from crfkit.errors import ArgumentError, TreeError, UnwritableFileError
from crfkit.evaluation import relation_of
from crfkit.report.arc_layout import Arc, Columns, clear_middle, levels, slots
from crfkit.report.text_width import text_width

FORM_SIZE, TAG_SIZE, LABEL_SIZE = 16.0, 11.0, 11.0  # of letters
WORD_GAP = 16.0
SLOT = 9.0  # between arcs that end at one word
STEP = 26.0  # between levels of arcs
BEND = 9.0  # radius of the corners of arcs
TAG_LINE = 15.0
LABEL_GAP = 7.0  # before and after a label on its arc
INK, PALE, WRONG, MISSED = "#222", "#667", "#c62828", "#1a5fb4"
TAGS = ("upos", "xpos", "lemma", "feats")

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class TreePicture:
    """A drawn tree; a notebook shows it by itself."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file that needs nothing else."""
        try:
            Path(path).write_text(self.svg, encoding="utf-8")
        except OSError as error:
            raise UnwritableFileError(
                f"{os.fspath(path)}: cannot be written ({error.strerror or error})"
            ) from None

    def _repr_svg_(self) -> str:
        return self.svg


def draw_tree(
    sentence: Sentence, gold: Sentence | None = None, *, tags: Sequence[str] = ("upos",)
) -> TreePicture:
    """Draw the arcs of a sentence above its words; words without a head (None) have none.

    With `gold`, the same words with the right arcs, wrong arcs are red and those that are missing stand below the words,
    dashed. An arc is wrong when its head or its relation (subtype apart) is, as LAS counts. `tags` are the lines below
    the words: any of "upos", "xpos", "lemma" and "feats".

    >>> from crfkit.data import Sentence, Word
    >>> dogs = Word("dogs", "dog", "NOUN", "_", "_", 2, "nsubj", "_", "_")
    >>> bark = Word("bark", "bark", "VERB", "_", "_", 0, "root", "_", "_")
    >>> draw_tree(Sentence([dogs, bark])).svg[:44]
    '<svg xmlns="http://www.w3.org/2000/svg" widt'
    """
    unknown = [name for name in tags if name not in TAGS]
    if unknown:
        raise ArgumentError(f"tags has {unknown[0]!r}, expected some of {', '.join(TAGS)}")
    above, below = (arcs_of(sentence), []) if gold is None else _compare(sentence, gold)
    return TreePicture(_Drawing(sentence, above, below, tags, compared=gold is not None).svg())


def arcs_of(sentence: Sentence) -> list[Arc]:
    """The arcs of a sentence; words whose head is None have none, and a HEAD that no word has is refused."""
    found = []
    for number, word in enumerate(sentence.words, 1):
        if word.head is None:
            continue
        if not 0 <= word.head <= len(sentence.words) or word.head == number:
            raise TreeError(
                f"{sentence.place(number)}: the HEAD of word {number} {word.form!r} is {word.head}, expected another "
                f"number from 0 to {len(sentence.words)}"
            )
        found.append(Arc(word.head, number, word.deprel))
    return found


def _compare(sentence: Sentence, gold: Sentence) -> tuple[list[Arc], list[Arc]]:
    """The arcs of the sentence, marked where they are wrong, and the gold arcs of the words where they are."""
    if [word.form for word in sentence.words] != [word.form for word in gold.words]:
        raise ArgumentError(
            f"{sentence.source}:{sentence.line}: the words are not those of the gold sentence "
            f"({gold.source}:{gold.line}), expected the same"
        )
    wrong = {
        number
        for number, (word, right) in enumerate(zip(sentence.words, gold.words, strict=True), 1)
        if right.head is not None and (word.head != right.head or relation_of(word) != relation_of(right))
    }
    above = [arc._replace(wrong=arc.dependent in wrong) for arc in arcs_of(sentence)]
    return above, [arc for arc in arcs_of(gold) if arc.dependent in wrong]


class _Side(NamedTuple):
    """The arcs above or below the words."""

    arcs: list[Arc]
    levels: list[int]  # of each arc
    slots: list[dict[int, int]]  # at each word: arc → slot
    up: bool

    @classmethod
    def of(cls, arcs: list[Arc], n_words: int, *, up: bool) -> "_Side":
        return cls(arcs, levels(arcs), slots(arcs, n_words), up)

    @property
    def height(self) -> float:
        return STEP * max(self.levels) + 14.0 if self.levels else 0.0

    def offset(self, word: int, arc: int) -> float:
        """Where on a word an arc ends, from the centre of the word."""
        return (self.slots[word][arc] - (len(self.slots[word]) - 1) / 2) * SLOT

    def distances(self) -> list[tuple[Arc, float, float]]:
        """What `Columns.of` is to know of each arc."""
        found = []
        for k, arc in enumerate(self.arcs):
            width = text_width(arc.label, LABEL_SIZE) + 2 * LABEL_GAP
            first, last = arc.span
            apart = width + 2 * BEND + self.offset(first, k) - self.offset(last, k) if arc.head else 0.0
            found.append((arc, apart, width / 2))
        return found


class _Drawing:
    """Puts the pieces of one picture at their places; y grows downwards."""

    def __init__(
        self, sentence: Sentence, above: list[Arc], below: list[Arc], tags: Sequence[str], *, compared: bool
    ) -> None:
        self.words = sentence.words
        n_words = len(self.words)
        self.above = _Side.of(above, n_words, up=True)
        self.below = _Side.of(below, n_words, up=False)
        lines = [[str(getattr(word, name)) for word in self.words] for name in tags]
        self.tag_lines = [line for line in lines if any(tag != "_" for tag in line)]
        self.columns = Columns.of(self.widths(), self.above.distances() + self.below.distances(), WORD_GAP)
        self.words_top = self.above.height + 8.0  # where arcs above end
        self.base_line = self.words_top + FORM_SIZE + 3.0  # of the words
        self.words_end = self.base_line + TAG_LINE * len(self.tag_lines) + 9.0  # where arcs below end
        self.legend = "red: wrong; below, dashed: gold" if compared and below else ""

    def widths(self) -> list[float]:
        """Of each word, with its tags and the slots of its arcs."""
        found = []
        for number, word in enumerate(self.words, 1):
            n_slots = max(len(side.slots[number]) for side in (self.above, self.below))
            tags = (text_width(line[number - 1], TAG_SIZE) for line in self.tag_lines)
            found.append(max(text_width(word.form, FORM_SIZE), SLOT * n_slots, *tags))
        return found

    def svg(self) -> str:
        width = max(self.columns.width, text_width(self.legend, TAG_SIZE) + 2 * WORD_GAP)
        height = self.words_end + self.below.height + (TAG_LINE if self.legend else 0.0)
        name = _escape(" ".join(word.form for word in self.words))
        pieces = [*self.lines(self.above), *self.lines(self.below), *self.texts()]
        if self.legend:
            pieces.append(_text(WORD_GAP, height - 6.0, self.legend, TAG_SIZE, PALE, anchor="start"))
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="DejaVu Sans, Verdana, Arial, sans-serif" role="img">'
            f'<title>{name}</title><rect width="100%" height="100%" fill="#fff"/>\n'
            + "\n".join(pieces)
            + "\n</svg>\n"
        )

    def texts(self) -> list[str]:
        """Words, tags, and the labels of arcs, which lie on top of the lines."""
        found = []
        for number, word in enumerate(self.words, 1):
            x = self.columns.centres[number]
            found.append(_text(x, self.base_line, word.form, FORM_SIZE, INK))
            for k, line in enumerate(self.tag_lines, 1):
                if line[number - 1] != "_":
                    found.append(
                        _text(x, self.base_line + TAG_LINE * k + 2.0, line[number - 1], TAG_SIZE, PALE)
                    )
        for side in (self.above, self.below):
            found += (self.label(side, k, arc) for k, arc in enumerate(side.arcs))
        return found

    def label(self, side: _Side, k: int, arc: Arc) -> str:
        """The label of an arc, on its line; near the middle of it, where no other arc crosses."""
        width = text_width(arc.label, LABEL_SIZE) + 4.0
        x, y = self.end(side, k, arc.dependent), self.level(side, k)
        if arc.head:
            begin, end = (self.end(side, k, word) for word in arc.span)
            higher = [j for j, level in enumerate(side.levels) if level > side.levels[k]]
            crossing = (self.end(side, j, word) for j in higher for word in side.arcs[j].span if word)
            x = clear_middle(begin, end, [at for at in crossing if begin < at < end], width / 2 + 4.0)
        back = f'<rect x="{x - width / 2:.1f}" y="{y - 7:.1f}" width="{width:.1f}" height="14" fill="#fff"/>'
        return back + _text(x, y + 0.36 * LABEL_SIZE, arc.label, LABEL_SIZE, _colour(side, arc))

    def lines(self, side: _Side) -> list[str]:
        """The arcs with their arrowheads."""
        return [self.line(side, k, arc) for k, arc in enumerate(side.arcs)]

    def line(self, side: _Side, k: int, arc: Arc) -> str:
        colour, dash = _colour(side, arc), "" if side.up else ' stroke-dasharray="5 3"'
        start = self.words_top if side.up else self.words_end
        top, away = self.level(side, k), 1.0 if side.up else -1.0  # towards the words
        x = self.end(side, k, arc.dependent)
        if arc.head == 0:
            path = f"M{x:.1f} {top:.1f}V{start:.1f}"
        else:
            begin = self.end(side, k, arc.head)
            bend = BEND if begin < x else -BEND
            path = (
                f"M{begin:.1f} {start:.1f}V{top + away * BEND:.1f}q0 {-away * BEND} {bend} {-away * BEND}"
                f"H{x - bend:.1f}q{bend} 0 {bend} {away * BEND}V{start:.1f}"
            )
        tip = f"M{x:.1f} {start + away * 3:.1f}l-3.2 {-away * 7}h6.4z"
        return (
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.3"{dash}/>'
            f'<path d="{tip}" fill="{colour}"/>'
        )

    def end(self, side: _Side, k: int, word: int) -> float:
        """The x of an arc at a word."""
        return self.columns.centres[word] + side.offset(word, k)

    def level(self, side: _Side, k: int) -> float:
        """The y of the horizontal part of an arc."""
        distance = STEP * side.levels[k] + 2.0
        return self.words_top - distance if side.up else self.words_end + distance


def _colour(side: _Side, arc: Arc) -> str:
    if not side.up:
        return MISSED
    return WRONG if arc.wrong else INK


def _text(x: float, y: float, text: str, size: float, colour: str, anchor: str = "middle") -> str:
    """One text; what is written from right to left turns round within it and nowhere else."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{colour}" text-anchor="{anchor}" '
        f'direction="ltr" unicode-bidi="isolate">{_escape(text)}</text>'
    )


def _escape(text: str) -> str:
    """Text of an XML file: no mark-up, and no character that XML does not know."""
    return html.escape(_NOT_XML.sub("\ufffd", text))
