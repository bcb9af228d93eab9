"""Reports on models of labels: their figures are those of `crfkit.evaluation`, their pages are whole and safe."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

from crfkit import CRF, LBFGS, Chain, FeatureFunctions, GraphCRF, Patterns, Segments, Span, load
from crfkit.compat.wapiti_file import parse_wapiti
from crfkit.errors import (
    ArgumentError,
    EmptyDataError,
    InputError,
    LabelError,
    MissingPackageError,
    ShapeError,
    UnsupportedError,
    UnwritableFileError,
)
from crfkit.evaluation import evaluate, partial_matches, span_calibration
from crfkit.models import UninformativeData
from crfkit.report import write_report
from crfkit.report.label_results import LabelResults, ask_labels
from crfkit.report.mistakes import KINDS, Mistake, find_mistakes, mark_words
from crfkit.report.words import KnownWords, words_of
from tests.compat.test_other_models import wapiti_model
from tests.compat.test_other_models_kinds import sequences
from tests.report.pages import Element, check_page, rows_of

FIRST = ["Ann", "Bob", "Carl", "Dora"]
PLACES = ["Rome", "Oslo", "Bonn", "Lima"]


def sentence(rng: random.Random) -> list[tuple[str, str]]:
    """A sentence about persons and places, some words of which mean either."""
    person = [(rng.choice([*FIRST, *PLACES[:1]]), "B-PER"), (rng.choice(["Smith", "Rome"]), "I-PER")]
    place = [(rng.choice([*PLACES, "Smith"]), "B-LOC")]
    verb = [(rng.choice(["visits", "leaves", "likes"]), "O")]
    return rng.choice([person + verb + place, place + verb + person, [("In", "O"), *place, *verb]])


def corpus(n: int, seed: int) -> tuple[list[list[str]], list[list[str]]]:
    rng = random.Random(seed)
    found = [sentence(rng) for _ in range(n)]
    return [[word for word, _ in one] for one in found], [[label for _, label in one] for one in found]


@pytest.fixture(scope="module")
def names() -> CRF:
    return CRF(features="names", l2=0.5).fit(*corpus(40, 0), dev=corpus(15, 3))


@pytest.fixture(scope="module")
def test_set() -> tuple[list[list[str]], list[list[str]]]:
    X, y = corpus(30, 1)
    return [*X, ["Zoe", "meets", "<b>", "&", "Ann"]], [*y, ["B-PER", "O", "O", "O", "B-PER"]]


def page_of(path: Path, model: Any, X: Any, y: Any, **options: Any) -> Element:
    write_report(model, X, y, path, **options)
    return check_page(path.read_text(encoding="utf-8"))


def ask(model: CRF[Any], X: Any, y: Any, *, allow_unknown: bool = False) -> LabelResults:
    return ask_labels(
        model, X, y, words=None, allowed=None, allow_unknown=allow_unknown, progress=lambda stage: None
    )


def test_figures_are_those_of_the_evaluation(names: CRF, test_set: Any, tmp_path: Path) -> None:
    X, y = test_set
    page = page_of(tmp_path / "r.html", names, X, y, name="names.crf", test_name="new.txt")
    evaluation = evaluate(y, names.predict(X))
    assert evaluation.spans is not None
    assert page.all("h1")[0].text == "names.crf on new.txt"
    main = page.all("dl")[0].children[0].text
    assert main.startswith(f"F1 of spans {100 * evaluation.spans.overall.f1:.2f}")
    rows = rows_of(page.find("scores").all("table")[0])
    for name, counts in evaluation.spans.types.items():
        [row] = [row for row in rows if row[0] == name]
        shares = [f"{100 * share:.2f}" for share in (counts.precision, counts.recall, counts.f1)]
        assert row[1:] == [*shares, str(counts.gold), str(counts.predicted), str(counts.correct)]
    matched = partial_matches(y, names.predict(X)).overall["partial"]
    [row] = [row for row in rows_of(page.find("matches").all("table")[0]) if row[0] == "partial"]
    assert row[1:6] == [
        str(n)
        for n in (matched.correct, matched.incorrect, matched.partial, matched.missed, matched.spurious)
    ]
    error = span_calibration(y, names.predict_spans(X, 0.01)).error
    assert f"Expected calibration error {100 * error:.2f} %" in page.find("probabilities").text
    cells = [cell.text for cell in page.find("confusion").all("table")[0].all("td")]
    assert sum(int(cell) for cell in cells if cell != "·") == evaluation.n_positions
    assert "dev F1" in page.find("history").text
    assert page.find("transitions").all("table")[0].text.count("(start)") == 1


def test_text_of_the_data_is_escaped(names: CRF, test_set: Any, tmp_path: Path) -> None:
    nasty = '<script>alert("x")</script>'
    X, y = [[nasty, "Ann", "</script>"]], [["B-LOC", "O", "B-PER"]]
    write_report(names, X, y, tmp_path / "r.html", title=nasty)
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    check_page(text)
    assert nasty not in text
    assert text.count("<script>") == 1


def test_the_same_input_gives_the_same_page(names: CRF, test_set: Any, tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        write_report(names, test_set[0], test_set[1], tmp_path / name, against=names, n_samples=50)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def by_hand(gold: set[Any], predicted: set[Any]) -> set[tuple[str, Any]]:
    """Kinds of errors by their definition, pair by pair."""

    def overlap(a: Any, b: Any) -> bool:
        return bool(set(range(a[0], a[1])) & set(range(b[0], b[1])))

    found = set()
    for span in predicted - gold:
        near = [one for one in gold if overlap(one, span)]
        if not near:
            kind = "spurious"
        elif (span[0], span[1]) in {(one[0], one[1]) for one in near}:
            kind = "type"
        else:
            kind = "boundary" if span[2] in {one[2] for one in near} else "both"
        found.add((kind, span))
    return found | {("missed", one) for one in gold if not any(overlap(one, span) for span in predicted)}


def test_errors_are_all_found_and_sorted(names: CRF) -> None:
    rng = random.Random(5)
    X, y = corpus(60, 7)
    for words, labels in zip(X, y, strict=True):  # gold labels that no model can predict
        for i in range(len(words)):
            if rng.random() < 0.3:
                labels[i] = rng.choice(["O", "B-PER", "B-LOC", "I-PER", "B-ORG", "I-ORG"])
    results = ask(names, X, y, allow_unknown=True)
    mistakes = find_mistakes(results)
    assert [one.sure for one in mistakes] == sorted((one.sure for one in mistakes), reverse=True)
    assert {one.kind for one in mistakes} == set(KINDS) - {"label"}
    for n in range(len(X)):
        expected = by_hand(
            {span[:3] for span in results.gold_spans[n]}, {span[:3] for span in results.predicted_spans[n]}
        )
        own = [one for one in mistakes if one.sequence == n]
        assert {(one.kind, (one.predicted or one.gold[0])[:3]) for one in own} == expected
        for one in own:
            if one.predicted is not None:
                assert one.sure == one.predicted.probability
                [exact] = [
                    span for span in names.predict_spans([X[n]], 1e-9)[0] if span[:3] == one.predicted[:3]
                ]
                assert one.sure == pytest.approx(exact.probability)


def test_marks_cover_the_words_once() -> None:
    words = [f"w{i}" for i in range(40)]
    gold = [Span(14, 17, "A"), Span(20, 22, "B")]
    predicted = [Span(15, 21, "C")]
    pieces = mark_words(words, gold, predicted, (14, 22))
    assert " ".join(piece.text for piece in pieces) == " ".join(["…", *words[2:34], "…"])
    marked = [(p.text.split(), p.gold, p.predicted) for p in pieces if p.gold or p.predicted]
    assert marked == [
        (["w14"], "A", None),
        (["w15", "w16"], "A", "C"),
        (["w17", "w18", "w19"], None, "C"),
        (["w20"], "B", "C"),
        (["w21"], "B", None),
    ]
    assert [piece.text.split()[0] for piece in pieces if piece.gold_begins] == ["w14", "w20"]
    assert [piece.text.split()[0] for piece in pieces if piece.predicted_begins] == ["w15"]


def test_the_number_of_errors_is_limited(names: CRF, test_set: Any, tmp_path: Path) -> None:
    X, y = test_set
    wrong = [["O" for _ in labels] for labels in y]
    results = ask(names, X, wrong)
    assert len(find_mistakes(results)) > 3
    page = page_of(tmp_path / "r.html", names, X, wrong, n_errors=3)
    assert len(page.find("list").all("li")) == 3
    assert "below are the 3 that the model was surest of" in page.find("errors").text
    none = page_of(tmp_path / "n.html", names, X, names.predict(X))
    assert "There is none" in none.find("errors").text


def test_errors_are_explained(names: CRF, test_set: Any, tmp_path: Path) -> None:
    X, y = test_set
    wrong = [["B-LOC" if label == "B-PER" else label for label in labels] for labels in y]
    page = page_of(tmp_path / "r.html", names, X, wrong, n_explanations=3)
    tables = page.find("list").all("table")
    assert len(tables) == 3
    for table, one in zip(tables, find_mistakes(ask(names, X, wrong)), strict=False):
        gold, predicted = wrong[one.sequence], names.predict([X[one.sequence]])[0]
        i = next(k for k in range(*one.span) if gold[k] != predicted[k])
        why = names.explain(X[one.sequence], i, predicted[i], gold[i])
        assert f"log-odds {why.log_odds:+.3f}" in table.text.replace("−", "-")
        values = [float(row[2].replace("−", "-")) for row in rows_of(table)[1:]]
        assert sum(values) == pytest.approx(why.log_odds, abs=0.0005 * (len(values) + 1))


def test_known_words(names: CRF, test_set: Any, tmp_path: Path) -> None:
    X, y = test_set
    known = KnownWords.of_model(names)
    assert known is not None
    assert "word=" in known.source
    seen = {word for words in corpus(40, 0)[0] for word in words}
    assert all(known.knows(word) is (word in seen) for words in X for word in words)
    pages = [
        page_of(tmp_path / "r.html", names, X, y, **options).find("words")
        for options in ({}, {"train": corpus(40, 0)})
    ]
    assert rows_of(pages[0].all("table")[0]) == rows_of(pages[1].all("table")[0])
    n_unknown = sum(word not in seen for words in X for word in words)
    assert rows_of(pages[0].all("table")[0])[2][2] == str(n_unknown)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([["a", "b"]], ["a", "b"]),
        ([[("a", "X"), ("b", "Y")]], ["a", "b"]),
        ([[{"word": "a", "n": 1}, {"n": 2}]], ["a", "n"]),
        ([[["w=a", "bias"], []]], ["w=a", "–"]),
        ([[3.0, 1]], ["–", "–"]),
    ],
)
def test_words_of_positions(X: Any, words: list[str]) -> None:
    assert words_of(X) == [words]


def test_plain_labels(tmp_path: Path) -> None:
    X = [["the", "dog", "runs"], ["a", "cat", "runs"], ["the", "run", "ends"]] * 4
    y = [["D", "N", "V"], ["D", "N", "V"], ["D", "N", "V"]] * 4
    model = CRF(features="pos", l2=0.1).fit(X, y)
    gold = [["D", "V", "N"], ["D", "N", "V"]]
    page = page_of(tmp_path / "r.html", model, X[:2], gold, against=[["D", "D", "D"]] * 2, n_samples=20)
    assert [row[0] for row in rows_of(page.find("scores").all("table")[0])][:2] == ["label", "D"]
    assert page.all("dl")[0].children[0].text.startswith("accuracy of labels 66.67")
    assert not [one for one in page.all("section") if one.attributes["id"] == "matches"]
    items = page.find("list").all("li")
    assert {item.attributes["data-kind"] for item in items} == {"label"}
    assert "accuracy of labels" in page.find("comparison").text
    mistakes = find_mistakes(ask(model, X[:2], gold))
    assert [type(one) for one in mistakes] == [Mistake, Mistake]
    marginals = model.predict_marginals(X[:1])[0]
    for one in mistakes:
        assert one.sure == pytest.approx(marginals[one.span[0]].max())


def test_features_made_in_python(tmp_path: Path) -> None:
    X = [[{"word": "Ann", "upper": True}, {"word": "runs", "upper": False}]] * 4
    y = [[1, 0]] * 4
    model = CRF[int](l2=0.1).fit(X, y)
    page = page_of(tmp_path / "r.html", model, X[:1], [[0, 0]])
    assert "predicted Ann 1" in page.find("errors").text
    other = page_of(tmp_path / "w.html", model, X[:1], [[0, 0]], words=[["A.", "r."]])
    assert "predicted A. 1" in other.find("errors").text


def test_segments_and_spans_as_gold(tmp_path: Path) -> None:
    X, y = corpus(30, 0)
    model = CRF(structure=Segments(max_length=3), features="names").fit(X, y)
    gold = [[Span(0, 1, "LOC")] for _ in X[:5]]
    page = page_of(tmp_path / "r.html", model, X[:5], gold)
    assert "LOC" in page.find("scores").text
    page_of(
        tmp_path / "b.html", CRF(structure=Chain(bigrams="bio"), features="names").fit(X, y), X[:5], y[:5]
    )


def is_capital_name(x: Any, label: str, i: int) -> float:
    return float(x[i][0].isupper() and label.startswith("B"))


class Opaque:
    """A sequence that lists no positions."""

    def __init__(self, words: list[str]) -> None:
        self.words = words

    def __len__(self) -> int:
        return len(self.words)


def first_letter(x: Any, label: str, i: int) -> float:
    return float(x.words[i][0].isupper() and label.startswith("B"))


def test_patterns_and_feature_functions(tmp_path: Path) -> None:
    X, y = corpus(20, 0)
    wrong = [["O" for _ in labels] for labels in y]
    patterns = CRF(structure=Patterns(["B-PER I-PER O"]), features="names", optimizer=LBFGS(max_iterations=5))
    page = page_of(tmp_path / "p.html", patterns.fit(X, y), X, wrong)
    assert "(patterns)" in page.find("features").text
    functions = CRF(features=FeatureFunctions([is_capital_name])).fit(X, y)
    page = page_of(tmp_path / "f.html", functions, X, wrong)
    assert "is_capital_name" in page.find("features").text
    opaque = [Opaque(words) for words in X]
    page = page_of(
        tmp_path / "o.html", CRF(features=FeatureFunctions([first_letter])).fit(opaque, y), opaque, wrong
    )
    assert "–" in page.find("list").text
    with pytest.raises(ShapeError):
        write_report(functions, X, y, tmp_path / "w.html", words=[["a"]])


def test_models_that_are_normalised_at_each_position(tmp_path: Path) -> None:
    """Maximum entropy Markov models, here of Wapiti, have no explanations."""
    rng = np.random.default_rng(0)
    content, _ = wapiti_model(rng, "#mdl#1#")
    model, X = parse_wapiti(content), sequences(rng)
    assert model.locally_normalised_
    first, second = model.classes_[:2]
    gold = [[second if label == first else first for label in labels] for labels in model.predict(X)]
    page = page_of(tmp_path / "r.html", model, X, gold)
    assert page.find("list").all("li")
    assert not page.find("list").all("details")


def test_comparison(names: CRF, test_set: Any, tmp_path: Path) -> None:
    X, y = test_set
    other = CRF(features="names", l2=50.0).fit(*corpus(8, 0))
    page = page_of(tmp_path / "r.html", names, X, y, against=other, name="A", against_name="B", n_samples=200)
    rows = rows_of(page.find("comparison").all("table")[0])
    assert rows[0][:3] == ["metric", "A", "B"]
    assert rows[1][1:3] == [f"{100 * model.score(X, y):.2f}" for model in (names, other)]
    counts = dict(rows_of(page.find("comparison").all("table")[1])[1:])
    both = [
        (list(a) == g, list(b) == g) for g, a, b in zip(y, names.predict(X), other.predict(X), strict=True)
    ]
    assert counts["only A"] == str(both.count((True, False)))
    assert counts["both models"] == str(both.count((True, True)))
    with pytest.raises(ShapeError):
        write_report(names, X, y, tmp_path / "x.html", against=[["O"]])


def test_learning_curve(names: CRF, test_set: Any, tmp_path: Path) -> None:
    X, y = test_set
    stages = list[str]()
    page = page_of(tmp_path / "r.html", names, X, y, learning_curve=corpus(40, 0), progress=stages.append)
    rows = rows_of(page.find("curve").all("table")[0])
    assert [row[0] for row in rows[1:]] == ["2", "5", "10", "20", "40"]
    again = CRF(features="names", l2=0.5, optimizer=names.optimizer_).set_params(
        optimizer__max_iterations=names.n_iter_
    )
    assert rows[-1][1] == f"{100 * again.fit(*corpus(40, 0)).score(X, y):.2f}"
    assert "learning curve: training on 2 of 40 sequences" in stages


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([["the", "house"]], [["O", "O"]]),
        ([[], ["Ann"]], [[], ["B-PER"]]),
        ([["א", "\x07\u202e"]], [["O", "O"]]),
    ],
)
def test_little_data(names: CRF, X: Any, y: Any, tmp_path: Path) -> None:
    page_of(tmp_path / "r.html", names, X, y, against=[["O" for _ in labels] for labels in y], n_samples=5)


def test_one_label(tmp_path: Path) -> None:
    with pytest.warns(UninformativeData):
        model = CRF(features="pos").fit([["a", "b"]], [["X", "X"]])
    page_of(tmp_path / "r.html", model, [["a"]], [["X"]])
    page = page_of(tmp_path / "w.html", model, [["a"]], [["Y"]], allow_unknown=True)
    assert not page.find("list").all("details")  # there is no other label to compare with


def test_hundreds_of_labels(tmp_path: Path) -> None:
    rng = random.Random(0)
    X = [[f"w{rng.randrange(300)}" for _ in range(5)] for _ in range(200)]
    y = [[f"tag{rng.randrange(400)}" for _ in words] for words in X]
    model = CRF(features="pos", optimizer="averaged_perceptron").fit(X, y)
    page = page_of(
        tmp_path / "r.html", model, X[:100], y[100:], allow_unknown=True, n_errors=20, n_explanations=3
    )
    assert "rarer labels are left out" in page.find("scores").text
    assert len(rows_of(page.find("confusion").all("table")[0])) == 17
    assert len(page.find("feature-label").all("option")) == 40
    assert "before" in page.find("transitions").text


def test_a_model_from_a_file(names: CRF, test_set: Any, tmp_path: Path) -> None:
    names.save(tmp_path / "m.crf")
    page = page_of(tmp_path / "r.html", load(tmp_path / "m.crf"), *test_set)
    assert "dev F1" in page.find("history").text  # which the file keeps


def test_allowed_labels(names: CRF, tmp_path: Path) -> None:
    X, y = [["Ann", "visits", "Rome"]], [["B-PER", "O", "B-LOC"]]
    page = page_of(tmp_path / "r.html", names, X, y, allowed=[[["O"], None, ["O"]]])
    assert page.all("dl")[0].children[2].text.startswith("recall 0.00")


def test_errors_of_the_caller(names: CRF, test_set: Any, tmp_path: Path) -> None:
    X, y = test_set
    path = tmp_path / "r.html"
    cases: list[tuple[type[InputError], Any, dict[str, Any]]] = [
        (EmptyDataError, ([], []), {}),
        (LabelError, (X[:1], [["B-NEW"] * len(X[0])]), {}),
        (ArgumentError, (X, None), {}),
        (ArgumentError, (X[:1], [[None] * len(X[0])]), {}),
        (ShapeError, (X, y[:1]), {}),
        (ArgumentError, (X, y), {"n_errors": -1}),
        (ArgumentError, (X, y), {"n_samples": 0}),
    ]
    for kind, data, options in cases:
        with pytest.raises(kind):
            write_report(names, data[0], data[1], path, **options)
    with pytest.raises(UnwritableFileError):
        write_report(names, X, y, tmp_path / "no" / "r.html")
    with pytest.raises(UnsupportedError, match="GraphCRF"):
        write_report(GraphCRF(None), X, y, path)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
    write_report(names, X[:1], [["B-NEW"] * len(X[0])], path, allow_unknown=True)
    assert path.exists()


def test_missing_packages_are_named(
    names: CRF, test_set: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingPackageError, match=r"pip install jinja2 matplotlib \(the extra `report`"):
        write_report(names, test_set[0], test_set[1], tmp_path / "r.html")
    assert not list(tmp_path.iterdir())
