"""Reports on parsers and on taggers of treebanks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

from crfkit import Parser, TreebankTagger
from crfkit.data import Sentence
from crfkit.errors import ArgumentError, EmptyDataError
from crfkit.evaluation import evaluate_tags, evaluate_trees, relation_of, span_calibration
from crfkit.optimizers import LBFGS, AdaGrad
from crfkit.report import write_report
from crfkit.report.tree_results import ask_trees
from crfkit.report.tree_sections import distances, lengths
from tests.pipeline.small_treebank import make_treebank
from tests.report.pages import Element, check_page, rows_of


@pytest.fixture(scope="module")
def sentences() -> list[Sentence]:
    return make_treebank(40, seed=1)


@pytest.fixture(scope="module")
def parser() -> Parser:
    """One that was trained on too little."""
    return Parser(order=1, structure="spanning", optimizer=LBFGS(max_iterations=6)).fit(
        make_treebank(3, seed=0)
    )


def page_of(path: Path, model: Any, sentences: Any, **options: Any) -> Element:
    write_report(model, sentences, None, path, **options)
    return check_page(path.read_text(encoding="utf-8"))


def test_figures_are_those_of_the_evaluation(
    parser: Parser, sentences: list[Sentence], tmp_path: Path
) -> None:
    page = page_of(tmp_path / "r.html", parser, sentences, train=make_treebank(3, seed=0))
    report = evaluate_trees(sentences, parser.predict(sentences))
    assert report.las < 1
    assert page.all("dl")[0].children[0].text.startswith(f"LAS {100 * report.las:.2f}")
    assert page.all("dl")[0].children[1].text.startswith(f"UAS {100 * report.uas:.2f}")
    rows = rows_of(page.find("relations").all("table")[0])
    for name, counts in report.relations.items():
        [row] = [row for row in rows if row[0] == name]
        assert row[3:5] == [f"{100 * counts.f1:.2f}", str(counts.gold)]
    gold = [[(i, word.head or 0, "") for i, word in enumerate(one.words, 1)] for one in sentences]
    found = [
        [
            (m, h, "", float(table[h, m]))
            for h in range(len(table))
            for m in range(1, len(table))
            if table[h, m] >= 0.01
        ]
        for table in parser.arc_probabilities(sentences)
    ]
    error = span_calibration(gold, found).error
    assert f"calibration error {100 * error:.2f} %" in page.find("probabilities").text
    assert len(page.find("trees").all("svg")) > 2
    known = {word.form for one in make_treebank(3, seed=0) for word in one.words}
    n_unknown = sum(word.form not in known for one in sentences for word in one.words)
    assert rows_of(page.find("words").all("table")[0])[2][3] == str(n_unknown)


def test_wrong_arcs(parser: Parser, sentences: list[Sentence], tmp_path: Path) -> None:
    page = page_of(tmp_path / "r.html", parser, sentences, n_errors=10_000)
    predicted, column = parser.predict(sentences), {name: k for k, name in enumerate(parser.classes_)}
    tables = parser.arc_probabilities(sentences, labelled=True)
    expected = []
    for gold, found, table in zip(sentences, predicted, tables, strict=True):
        for i, (a, b) in enumerate(zip(gold.words, found.words, strict=True), 1):
            if (a.head, relation_of(a)) != (b.head, relation_of(b)):
                expected.append(min(1.0, float(table[b.head, i, column[b.deprel]])))
    items = page.find("list").all("li")
    sure = [float(item.attributes["data-sure"] or 0) for item in items]
    assert sure == pytest.approx(sorted(expected, reverse=True), abs=1e-4)
    assert {item.attributes["data-kind"] for item in items} <= {"head", "relation", "both"}


def test_wrong_heads_are_explained(parser: Parser, sentences: list[Sentence], tmp_path: Path) -> None:
    page = page_of(tmp_path / "r.html", parser, sentences, n_explanations=4)
    tables = page.find("list").all("table")
    assert len(tables) == 4
    wrong = [
        word
        for words in ask_trees(parser, sentences, lambda stage: None).words
        for word in words
        if not word.head_is_right
    ]
    first = max(wrong, key=lambda word: word.probability)
    why = parser.explain_arc(sentences[first.sentence], first.number, first.predicted.head, first.gold.head)
    assert f"log-odds {why.log_odds:+.3f}" in tables[0].text.replace("−", "-")


def test_lengths_and_distances_cover_all_words(parser: Parser, sentences: list[Sentence]) -> None:
    results = ask_trees(parser, sentences, lambda stage: None)
    report = results.report
    rows = lengths(results).data["rows"]
    assert sum(row.arcs.correct for row in rows) == report.n_arcs
    assert sum(row.heads.total for row in rows) == report.n_words
    assert sum(row.n_sentences for row in rows) == report.n_sentences
    counts = [found for _, found in distances(results).data["rows"]]
    assert sum(one.correct for one in counts) == report.n_arcs
    assert sum(one.gold for one in counts) == sum(one.predicted for one in counts) == report.n_words
    [root] = [found for name, found in distances(results).data["rows"] if name == "root"]
    assert root.gold == sum(word.head == 0 for one in sentences for word in one.words)


@pytest.mark.parametrize("structure", ["projective", "spanning"])
def test_parsers_of_second_order(structure: str, sentences: list[Sentence], tmp_path: Path) -> None:
    parser = Parser(structure=structure, optimizer=AdaGrad(max_iterations=2)).fit(make_treebank(8, seed=0))
    page = page_of(tmp_path / "r.html", parser, sentences)
    said = "exact under the model" if structure == "projective" else "those of belief propagation"
    assert said in page.find("probabilities").text


def test_comparison_and_learning_curve(parser: Parser, sentences: list[Sentence], tmp_path: Path) -> None:
    other = Parser(order=1, structure="spanning", optimizer=LBFGS(max_iterations=6)).fit(
        make_treebank(12, seed=0)
    )
    page = page_of(
        tmp_path / "r.html",
        parser,
        sentences,
        against=other,
        n_samples=50,
        learning_curve=make_treebank(16, seed=2),
    )
    rows = rows_of(page.find("comparison").all("table")[0])
    assert rows[1][:3] == ["LAS", *(f"{100 * model.score(sentences):.2f}" for model in (parser, other))]
    assert [row[0] for row in rows_of(page.find("curve").all("table")[0])[1:]] == ["1", "2", "4", "8", "16"]


def test_a_perfect_parser_has_no_wrong_tree(sentences: list[Sentence], tmp_path: Path) -> None:
    parser = Parser(order=1, l2=0.01).fit(sentences[:5])
    seen = sentences[:5]
    assert parser.score(seen) == 1.0
    page = page_of(tmp_path / "r.html", parser, seen)
    assert "There is none" in page.find("errors").text


def test_taggers_of_treebanks(sentences: list[Sentence], tmp_path: Path) -> None:
    tagger = TreebankTagger("upos+xpos").fit(make_treebank(4, seed=0))
    other = TreebankTagger("upos+xpos").fit(make_treebank(30, seed=0))
    page = page_of(tmp_path / "r.html", tagger, sentences, against=other, n_samples=20)
    report = evaluate_tags(sentences, tagger.predict(sentences), ("upos", "xpos"), tagger.known_forms_)
    assert page.all("dl")[0].children[0].text.startswith(f"accuracy of labels {100 * report.accuracy:.2f}")
    assert report.unknown is not None
    rows = rows_of(page.find("words").all("table")[0])
    assert rows[2][1:3] == [f"{100 * report.unknown.accuracy:.2f}", str(report.unknown.total)]
    assert "The labels are UPOS+XPOS." in page.text
    few = page_of(
        tmp_path / "f.html", tagger, [*sentences[:3], Sentence([sentences[0].words[0]._replace(upos="_")])]
    )
    assert "1 sentence is left out, in which a tag is not known." in few.text


def test_bad_input(parser: Parser, sentences: list[Sentence], tmp_path: Path) -> None:
    with pytest.raises(EmptyDataError):
        write_report(parser, [], None, tmp_path / "r.html")
    with pytest.raises(ArgumentError, match="expected y=None"):
        write_report(parser, sentences, sentences, tmp_path / "r.html")
    tagger = TreebankTagger("upos").fit(sentences[:4])
    untagged = [Sentence([word._replace(upos="_") for word in sentences[0].words])]
    with pytest.raises(EmptyDataError, match="UPOS"):
        write_report(tagger, untagged, None, tmp_path / "r.html")
    assert not list(tmp_path.iterdir())
