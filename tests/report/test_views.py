"""Views of predictions: everything is there, nothing is mark-up that was not meant to be, wrong sizes are errors."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from crfkit import CRF, Chain, Parser, Span, WordDictionary, WordSegmenter, errors
from crfkit.data import Sentence, Word
from crfkit.report import View, show, show_labels, show_spans, show_trees

EVIL = "<script>alert('&')</script>"


class Reader(HTMLParser):
    """The elements of a page, all of them closed, and its text without styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta",):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] != ["style"]:
            self.words.append(data)

    def with_class(self, name: str) -> int:
        return sum(name in (attributes.get("class") or "").split() for _, attributes in self.elements)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def read(view: View) -> Reader:
    page = Reader(view._repr_html_())
    assert {name for name, _ in page.elements} <= {
        *("div", "style", "span", "small", "svg", "title", "rect", "path", "text", "g")
    }
    return page


def test_spans_have_colours_labels_and_probabilities() -> None:
    view = show_spans(
        [["Ann", "Lee", "saw", EVIL]],
        [[Span(0, 2, "PER", 0.98), Span(3, 4, EVIL, 0.5), Span(1, 2, "ORG", 0.25)]],
    )
    page = read(view)
    assert page.text == f"Ann Lee PER 0.98 saw {EVIL} {EVIL} 0.50 also: Lee ORG 0.25"
    assert page.with_class("label") == 3
    colours = [
        attributes["style"] for name, attributes in page.elements if name == "span" and "style" in attributes
    ]
    assert len(set(colours)) == 3
    assert str(view) == f"[Ann Lee PER 0.98] saw [{EVIL} {EVIL} 0.50]\n  also: [Lee ORG 0.25]"
    assert EVIL not in view.html


def test_wrong_and_missing_spans() -> None:
    spans = [[Span(0, 1, "PER", 0.9), Span(2, 3, "LOC", 0.8)]]
    view = show_spans([["Ann", "saw", "Rome"]], spans, [[Span(0, 1, "PER"), Span(2, 3, "ORG")]])
    page = read(view)
    assert page.with_class("wrong") == 1
    assert page.text.endswith("missing: Rome ORG")
    assert str(view).endswith("missing: [Rome ORG]")
    assert read(show_spans([["Ann", "saw", "Rome"]], spans)).with_class("wrong") == 0


def test_spans_of_texts_are_in_characters() -> None:
    view = show_spans(["Ann saw Rome."], [[Span(8, 12, "LOC", 0.75)]])
    assert str(view) == "Ann saw [Rome LOC 0.75]."


def test_labels() -> None:
    view = show_labels([["the", "dog"], []], [["DET", "O"], []], [[0.99, 0.6], []], [["DET", "NOUN"], []])
    page = read(view)
    assert page.text == "the DET dog"
    assert [a["title"] for _, a in page.elements if "title" in a] == [
        "p(DET) = 0.99",
        "p(O) = 0.6; right: NOUN",
    ]
    assert page.with_class("wrong") == 1
    assert str(view) == "[the DET 0.99] dog\n"


@pytest.mark.parametrize(
    "position", [("dog", "NN"), ["dog", "title"], {"length": 3, "w": "dog", "x": "y"}, {"x": "dog"}, "dog"]
)
def test_positions_of_all_forms_have_words(position: Any) -> None:
    assert str(show_labels([[position]], [["N"]])) == "[dog N]"


def test_what_models_predict() -> None:
    X, y = [["Ann", "saw", "Rome"]], [["B-PER", "O", "B-LOC"]]
    names = CRF(features="names", l2=0.1).fit(X, y)
    [[per, loc]] = names.predict_spans(X, decode="viterbi")
    assert str(show(names, X)) == f"[Ann PER {per.probability:.2f}] saw [Rome LOC {loc.probability:.2f}]"
    assert "also" in str(show(names, X, threshold=0.001, decode=None))
    tags = CRF(Chain(), features="pos").fit(X, [["N", "V", "N"]])
    table = tags.predict_marginals(X)[0]
    assert str(show(tags, X)).startswith(f"[Ann N {table[0, 0]:.2f}] [saw V {table[1, 1]:.2f}]")
    with pytest.raises(errors.ArgumentError, match="model is of type int, expected a CRF"):
        show(3, X)


def test_trees(tmp_path: Path) -> None:
    words = [
        Word("Dogs", upos="NOUN", head=2, deprel="nsubj"),
        Word("bark", upos="VERB", head=0, deprel="root"),
    ]
    parser = Parser().fit([Sentence(words)])
    view = show(parser, [Sentence(words)])
    assert str(view) == "┌▶ Dogs  NOUN  nsubj\n└─ bark  VERB  root"
    assert view.html.count("<svg") == 1
    wrong = [words[0]._replace(deprel="obj"), words[1]]
    assert "#c62828" in show_trees([Sentence(wrong)], [Sentence(words)]).html
    view.save(tmp_path / "tree.html")
    page = (tmp_path / "tree.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "Dogs" in page
    with pytest.raises(errors.UnwritableFileError, match="cannot be written"):
        view.save(tmp_path / "no" / "folder.html")


def test_words_of_a_segmenter() -> None:
    sentences = [[("すもも", "名詞"), ("も", "助詞")], [("もも", "名詞"), ("も", "助詞")]]
    words = sorted({word for sentence in sentences for word in sentence})
    segmenter = WordSegmenter(WordDictionary.build(words, ["名詞"])).fit(sentences)
    assert str(show(segmenter, ["すももも"])) == "[すもも 名詞] [も 助詞]"


def test_what_does_not_fit() -> None:
    with pytest.raises(errors.ShapeError, match="spans has 1 sequences, expected 2"):
        show_spans([["a"], ["b"]], [[]])
    with pytest.raises(errors.ShapeError, match="not within the 1 positions"):
        show_spans([["a"]], [[Span(0, 2, "X")]])
    with pytest.raises(errors.ShapeError, match="labels of sequence 0 are 2, expected 1"):
        show_labels([["a"]], [["A", "B"]])
    with pytest.raises(errors.ArgumentError, match="X is a text"):
        show_spans("a b", [[]])
