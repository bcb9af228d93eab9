"""The parts of the benchmarks of optimizers and of OCR letters."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from benchmarks.corpora import find_corpus
from benchmarks.problems import Data, Problem
from benchmarks.racing import Entry, Mark
from benchmarks.reranking import Reranker, affixes

from benchmarks import compat, letters, ocr, optimizers, plots, racing
from crfkit.optimizers import OPTIMIZERS
from tests.needs import needs_rival

X = [[["w=the"], ["w=dog"], ["w=runs"]], [["w=a"], ["w=cat"]], [["w=dogs"], ["w=run"]]] * 4
Y = [["D", "N", "V"], ["D", "N"], ["N", "V"]] * 4
DATA = Data(X, Y, X[:3], Y[:3])
PROBLEM = Problem("toy", lambda: DATA, 1.0)

needs_letters = pytest.mark.skipif(
    find_corpus("letters", "letter.data") is None, reason="the OCR letters are not on this machine"
)


@pytest.mark.parametrize("method", OPTIMIZERS)
def test_every_optimizer_of_ours_can_race(method: str) -> None:
    online = method in racing.ONLINE
    marks = racing.ours(Entry("toy", "crfkit", method, 3, scored=online), PROBLEM, DATA)
    assert [mark.seconds for mark in marks] == sorted(mark.seconds for mark in marks)
    assert all((mark.objective is None) == online for mark in marks)
    assert marks[-1].accuracy is not None
    assert marks[-1].accuracy > 0.5


@needs_rival
def test_every_method_of_the_rival_can_race() -> None:
    least = racing.ours(
        Entry("toy", "crfkit", "lbfgs", 200, {"tolerance": 1e-9, "change": 0.0}), PROBLEM, DATA
    )[-1].objective
    assert least is not None
    for method in ("lbfgs", "l2sgd", "ap", "pa", "arow"):
        marks = racing.rival(Entry("toy", "crfsuite", method, 50, scored=True), PROBLEM, DATA)
        assert marks[-1].passes >= len(marks) - 1
        assert marks[-1].accuracy == 1.0
        if method in ("lbfgs", "l2sgd"):
            assert marks[-1].objective == pytest.approx(least, rel=1e-4 if method == "lbfgs" else 0.2)


@needs_rival
def test_both_interfaces_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    if find_corpus("conll2000", "train.txt") is None:
        pytest.skip("the corpus conll2000 is not on this machine")
    compat.main(["--quick"])
    printed = capsys.readouterr().out
    assert "DIFFER" not in printed
    assert all(f"| {algorithm} |" in printed for algorithm in compat.ALGORITHMS)


def test_tables_of_a_race() -> None:
    slow = (Mark(10.0, 1.0, 20.0, None), Mark(20.0, 2.0, 10.0, None))
    fast = (Mark(1.0, 2.0, 10.05, None), Mark(2.0, 3.0, 10.0, None))
    descents = [
        optimizers.Descent(Entry("chunking", "crfsuite", "lbfgs", 2), slow),
        optimizers.Descent(Entry("chunking", "crfkit", "lbfgs", 2), fast),
        optimizers.Descent(Entry("chunking", "crfsuite", "ap", 2, scored=True), (Mark(6.0, 1.0, None, 0.5),)),
        optimizers.Descent(
            Entry("chunking", "crfkit", "averaged_perceptron", 2, scored=True), (Mark(2.0, 1.0, None, 0.625),)
        ),
    ]
    assert optimizers.lowest(descents) == 10.0
    text = optimizers.objective_table(descents, 10.0)
    assert "| crfkit lbfgs | 0.667 | 1.00 | 2 | 2.00 | 3 | 2.00 | 3 | 0.0e+00 |" in text
    assert "To a gap of 1e-02: lbfgs 1.00 s, python-crfsuite's lbfgs 20.00 s, 20.0 times faster." in text
    assert "| crfkit averaged_perceptron | 2.000 | 3.0× | 62.50 |" in optimizers.online_table(descents)
    assert "crfkit averaged_perceptron" in optimizers.error_plot("chunking", descents[2:])
    again = (Mark(9.0, 1.0, 20.0, None), Mark(21.0, 2.0, 10.0, None))
    assert [mark.seconds for mark in optimizers.fastest([slow, again])] == [9.0, 19.0]


@pytest.mark.parametrize("quick", [False, True])
def test_a_smoke_test_leaves_the_results_alone(
    quick: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    descent = optimizers.Descent(Entry("chunking", "crfkit", "lbfgs", 2), (Mark(1.0, 2.0, 10.0, None),))
    monkeypatch.setattr(optimizers, "race", lambda *_: [descent])
    monkeypatch.setattr(optimizers, "RESULTS", tmp_path)
    optimizers.main(["--problem", "chunking", *["--quick"] * quick])
    assert "| crfkit lbfgs | 0.500 |" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ([] if quick else ["optimizers.md"])


def test_a_plot_is_a_picture_with_all_its_lines() -> None:
    x, y = plots.Axis("seconds", 0.1, 100.0), plots.Axis("gap", 1e-6, 1.0)
    lines = {"a & b": [(0.1, 1.0), (10.0, 1e-3)], "none": [], "c": [(1.0, 1e-9)]}
    picture = ElementTree.fromstring(plots.line_plot("title", x, y, lines, frozenset({"c"})))
    names = [element.text for element in picture.iter() if element.tag.endswith("text")]
    assert {"a & b", "c", "title", "seconds", "gap", "100", "1e-06"} <= set(names)
    assert "none" not in names
    assert y.place(1e-9) == 0.0
    assert plots.Axis("errors", 0.03, 0.08).ticks() == pytest.approx([0.03, 0.05, 0.07])


def test_a_reranker_learns_what_the_probabilities_do_not_know() -> None:
    lists = [([(0.6, ["a", "a"]), (0.4, ["a", "b"])], ["a", "b"])] * 3
    reranker = Reranker(["^a", "a b$", "b$"]).fit(lists)
    assert reranker.best([(0.7, ["c", "a"]), (0.3, ["c", "b"])]) == ["c", "b"]
    assert list(affixes(["^a", "a b$"])(["a", "b"])) == ["^a", "a b$"]


@needs_letters
def test_letters_of_the_ocr_data() -> None:
    words = letters.words()
    assert len(words) == 6877
    assert sum(len(word.letters) for word in words) == 52152
    assert len({word.letters for word in words}) == 55
    assert words[0].letters == "ommanding"
    train, test = ocr.split(words, 0, large=False)
    assert {word.fold for word in train} == {0}
    found, crf = ocr.score(ocr.models()["learned"], train[:100], test[:50], {"default": 3.0, "patterns": 0.1})
    assert found.letters > 0.7
    assert len(crf.pattern_names_) > 100
