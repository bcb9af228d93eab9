"""What notebooks show of models and of their training: parameters and what was learned, escaped; plots that change."""

from __future__ import annotations

import importlib
import io
import math
import re
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import crfkit
from crfkit import CRF, LBFGS, GraphCRF, Lemmatizer, Parser, Pipeline, Tokenizer, TreebankTagger
from crfkit.data import Sentence, Word
from crfkit.markup import Html, Line, escape, label_hues, line_plot, table
from crfkit.models import Progress
from crfkit.models.training import live_display
from crfkit.models.training.live_display import LiveDisplay, open_screen
from crfkit.optimizers import History, Record
from tests.models.small_corpus import corpus


def chain(words: list[str], graph: Any) -> None:
    for i, word in enumerate(words):
        graph.variable(i)
        graph.factor("word", [i], [word])


def text_of(page: str) -> str:
    """The text of a page, without styles."""
    return re.sub(r"<style>.*?</style>|<[^>]*>", " ", page)


def sentence(verb: str) -> Sentence:
    words = [
        Word("Dogs", "dog", "NOUN", head=2, deprel="nsubj"),
        Word(verb, verb, "VERB", head=0, deprel="root"),
    ]
    return Sentence(words)


PLOT: Any = importlib.import_module("crfkit.markup.line_plot")  # whose function has its name in the package
TREEBANK = [sentence(verb) for verb in ("bark", "sleep", "run", "eat")] * 2


@pytest.mark.parametrize(
    "model",
    [CRF(l2=0.5), Parser(order=1), GraphCRF(chain), Tokenizer(), TreebankTagger(), Lemmatizer(), Pipeline()],
    ids=lambda model: type(model).__name__,
)
def test_untrained_models_show_their_parameters(model: Any) -> None:
    page = model._repr_html_()
    shown = text_of(page)
    assert type(model).__name__ in shown
    assert "not trained" in shown
    for name in model._defaults():
        assert name in shown
    assert page.count("<details") == page.count("</details>") == 2
    assert repr(model).startswith(f"{type(model).__name__}(")


def test_a_trained_model_shows_what_it_learned() -> None:
    X, y = corpus()
    crf = CRF(l2=0.5, random_state=3).fit(X, y, dev=(X, y))
    page = crf._repr_html_()
    shown = text_of(page)
    assert "not trained" not in shown
    assert f"{len(crf.weights_):,}" in shown
    assert crf.stop_message_ in shown
    assert all(str(label) in shown for label in crf.classes_)
    assert f"{crf.history_[crf.n_iter_].dev_score:.4f}" in shown
    assert "<b>l2</b>" in page  # not its default
    assert "<b>l1</b>" not in page
    assert page.count("<svg") == 1


def test_loaded_models_have_a_view_too(tmp_path: Any) -> None:
    CRF().fit(*corpus()).save(tmp_path / "m.crf")
    loaded = crfkit.load(tmp_path / "m.crf")
    assert "passes over the data" in loaded._repr_html_()  # whose seconds no file keeps


def test_pipelines_show_their_components() -> None:
    pipeline = Pipeline(folds=2).fit(TREEBANK)
    shown = text_of(pipeline._repr_html_())
    for name in (
        "tokenizer",
        "tagger of upos",
        "lemmatizer",
        "parser",
        "edit scripts",
        "known words",
        "left out",
    ):
        assert name in shown
    assert pipeline._repr_html_().count("<style>") <= 1 + 4  # its own, and one with each history


def test_graph_crfs_show_labels_and_functions_by_name() -> None:
    model = GraphCRF(chain).fit([["a", "b"]], [["A", "B"]])
    shown = text_of(model._repr_html_())
    assert "A, B" in shown
    assert "chain" in shown
    assert "0x" not in shown


def test_nothing_is_markup_that_was_not_meant_to_be() -> None:
    evil = "<img src=x onerror=alert(1)>"
    X = [[[evil], ["b"]]]
    for model in (CRF(features=evil), CRF().fit(X, [[evil, "O"]])):
        assert "<img" not in model._repr_html_()
        assert "&lt;img" in model._repr_html_()
    assert escape("a\x00b\x1f") == "a\ufffdb\ufffd"
    assert escape(Html("<b>")) == "<b>"
    assert table([[1234, 0.5, "<", None]]) == (
        '<table><tbody><tr><td class="number">1,234</td><td class="number">0.5</td><td>&lt;</td><td>None</td></tr>'
        "</tbody></table>"
    )


def test_history_is_a_plot_and_a_table() -> None:
    records = [
        Record(i, 0.1 * i, 100.0 / (i + 1), 1.0, i, None if i == 0 else 0.5 + 0.1 * i) for i in range(4)
    ]
    page = History(records)._repr_html_()
    assert "3 iterations, objective 25.0000, highest dev score 0.8000" in page
    assert page.count("<path d=") + page.count("<path ") >= 2
    assert "gradient norm" in page
    assert "no iterations" in History()._repr_html_()
    assert "<svg" not in History(records[:1])._repr_html_()


def test_plots_put_values_where_they_belong() -> None:
    plot = line_plot([0.0, 1.0, 2.0], [Line("a", [0.0, 5.0, 10.0]), Line("b", [None, math.nan, None])], "x")
    [path] = re.findall(r'<path d="M([^"]*)" fill="none"', plot)
    points = [tuple(map(float, point.split())) for point in path.split("L")]
    assert points[0][0] == PLOT.LEFT
    assert points[-1][0] == PLOT.WIDTH - PLOT.RIGHT
    assert points[1] == pytest.approx([(points[0][k] + points[2][k]) / 2 for k in (0, 1)], abs=0.06)
    assert points[0][1] > points[2][1]  # up is more
    assert ">b<" not in plot
    assert line_plot([1.0], [Line("a", [1.0])], "x") == ""
    assert "nan" not in line_plot([0.0, 1.0], [Line("a", [3.0, 3.0])], "x")


def test_labels_shown_together_have_different_colours() -> None:
    labels = [f"label {k}" for k in range(9)] + ["PER", "LOC", "ORG"]
    hues = label_hues(labels)
    assert len(set(hues.values())) == 12
    assert label_hues(reversed(labels)) == hues
    assert len(label_hues(range(100))) == 100


# ---- verbose="live"


class FakeScreen:
    """Keeps what was shown."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.n_seen: list[int] = []
        self.closed = 0

    def show(self, text: str, seen: list[Progress]) -> None:
        self.texts.append(text)
        self.n_seen.append(len(seen))

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> FakeScreen:
    found = FakeScreen()
    monkeypatch.setattr(live_display, "open_screen", lambda: found)
    monkeypatch.setattr(live_display, "INTERVAL", 0.0)
    return found


LIMITED = LBFGS(max_iterations=6, tolerance=0.0, change=0.0)


def test_live_shows_stages_iterations_and_the_end(
    screen: FakeScreen, capsys: pytest.CaptureFixture[str]
) -> None:
    X, y = corpus()
    silent = CRF(optimizer=LIMITED).fit(X, y)
    live = CRF(optimizer=LIMITED).fit(X, y, verbose="live")
    assert live.weights_.tobytes() == silent.weights_.tobytes()
    assert screen.texts[0] == f"encoding {len(X)} sequences"
    assert screen.texts[1].startswith("minimising over ")
    assert [text.split()[:2] for text in screen.texts[2:-1]] == [["iteration", str(n)] for n in range(1, 7)]
    assert "s left" in screen.texts[4]
    assert "the iteration limit was reached: 6 iterations" in screen.texts[-1]
    assert screen.n_seen[-1] == 6
    assert screen.closed == 1
    assert capsys.readouterr() == ("", "")


def test_live_is_closed_after_an_error_and_keeps_weights_after_ctrl_c(screen: FakeScreen) -> None:
    X, y = corpus()
    with pytest.raises(crfkit.InputError):
        CRF().fit(X, y[:-1], verbose="live")
    assert screen.closed == 1

    def interrupt(progress: Progress) -> None:
        if progress.iteration == 3:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted"):
        crf = CRF(optimizer=LIMITED).fit(X, y, verbose="live", callback=interrupt)
    assert crf.stop_reason_ is crfkit.StopReason.INTERRUPTED
    assert crf.n_iter_ == 3
    assert "interrupted" in screen.texts[-1]
    assert screen.closed == 2


def test_a_screen_that_is_gone_does_not_end_training() -> None:
    class Broken(FakeScreen):
        def show(self, text: str, seen: list[Progress]) -> None:
            raise BrokenPipeError

        def close(self) -> None:
            raise BrokenPipeError

    display = LiveDisplay(Broken())
    display.stage("encoding")
    display.iteration(Progress(1, 0.1, 1.0, 1.0, None, False))
    display.end("done")
    display.close()


def test_without_a_screen_live_writes_lines(capsys: pytest.CaptureFixture[str]) -> None:
    CRF(optimizer=LIMITED).fit(*corpus(), verbose="live")
    assert capsys.readouterr().err.count("iteration  ") == 6


def test_terminals_show_one_line_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(live_display, "INTERVAL", 0.0)
    CRF(optimizer=LIMITED).fit(*corpus(), verbose="live")
    assert "\x1b[" in stream.getvalue()
    assert stream.getvalue().count("iteration") >= 6


def test_notebooks_are_found_by_their_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert open_screen() is None
    shell.kernel = object()
    assert isinstance(open_screen(), live_display.Notebook)


def test_notebooks_update_one_output(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    handle = SimpleNamespace(update=shown.append)

    def display(view: Any, display_id: bool) -> Any:
        assert display_id
        assert shown == []
        shown.append(view)
        return handle

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    monkeypatch.setattr(live_display, "INTERVAL", 0.0)
    monkeypatch.setattr(live_display, "open_screen", live_display.Notebook)
    CRF(optimizer=LIMITED).fit(*corpus(), verbose="live")
    assert len(shown) == 2 + 6 + 1
    assert "<svg" in shown[-1]._repr_html_()
    assert "the iteration limit was reached" in repr(shown[-1])
