"""`crfkit demo`: what it shows is right and held out, and the commands that it prints work."""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.corpora import find_corpus

from crfkit import CRF, Chain
from crfkit.cli import demo as demo_command
from crfkit.cli.demonstration import Screen, Shown, Sizes, demo, draw_names, parts, read_sample, timing
from crfkit.cli.demonstration.sample import Labelled, read_tags
from crfkit.data import Sentence, read_conllu
from crfkit.evaluation import span_report, spans
from tests.cli.commands import run
from tests.needs import needs_rival

ESCAPE = "\x1b["
QUICK = Sizes(n_trees=60, n_passes=1, n_iterations=3)
SHOWN = [
    sentence
    for sentence in read_sample("test")
    if " ".join(word.form for word in sentence.words) == parts.SENTENCE
]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that says nothing about colours."""
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Shown, str, Path]:
    """A short run: what was shown, what was printed, and the folder it ran in."""
    folder = tmp_path_factory.mktemp("demo")
    stream = io.StringIO()
    before = Path.cwd()
    os.chdir(folder)
    try:
        shown = demo(Path("demo-output"), Screen(stream), QUICK)
    finally:
        os.chdir(before)
    return shown, stream.getvalue(), folder


# ---- the data


def test_the_sample_is_what_its_description_says() -> None:
    train, test = read_sample("train"), read_sample("test")
    assert (len(train), read_tags(train).n_words) == (2000, 32247)
    assert (len(test), read_tags(test).n_words) == (500, 5810)
    assert len({label for labels in read_tags(train).labels for label in labels}) == 17


@pytest.mark.parametrize(("part", "n"), [pytest.param("train", 2000, marks=pytest.mark.slow), ("test", 500)])
def test_the_sample_is_taken_from_the_treebank(part: str, n: int) -> None:
    source = find_corpus("ud_english_ewt", f"en_ewt-ud-{part}.conllu")
    if source is None:
        pytest.skip("the corpus ud_english_ewt is not on this machine")
    sentences = list(read_conllu(source))

    def rows(sentence: Sentence) -> list[tuple[object, ...]]:
        return [(word.form, word.upos, word.head, word.deprel) for word in sentence.words]

    assert [rows(sentence) for sentence in read_sample(part)] == [
        rows(sentence) for sentence in sentences[:: len(sentences) // n][:n]
    ]


def test_made_up_sentences_have_valid_labels_and_the_test_part_has_other_names() -> None:
    train, test = draw_names("train"), draw_names("test")
    assert (len(train.words), len(test.words)) == (1000, 100)
    assert train == draw_names("train")  # always the same
    assert not set(map(" ".join, train.words)) & set(map(" ".join, test.words))
    CRF(Chain(bigrams="bio"), features="names").fit(test.words, test.labels)  # no label pair outside BIO

    def names(data: Labelled) -> set[str]:
        pairs = zip(data.words, data.labels, strict=True)
        return {" ".join(words[span.start : span.end]) for words, labels in pairs for span in spans(labels)}

    assert not names(train) & names(test)
    assert not names(train) & {"Emma Novak", "Emma", "Novak", "Lincoln City", "Lincoln"}


# ---- what is shown


def test_the_tagger_makes_no_mistake_in_its_sentence(quick: tuple[Shown, str, Path]) -> None:
    shown, text, _ = quick
    assert shown.wrong_tags == 0
    assert "14 of 14 tags right" in text
    assert re.search(r"^ +addresses +NOUN +NOUN +0\.\d\d +VERB 0\.\d\d$", text, re.MULTILINE)
    assert parts.SENTENCE.split() not in read_tags(read_sample("train")).words
    found = re.search(r"accuracy on 500 other sentences: ([\d.]+) %", text)
    assert found is not None
    assert float(found[1]) > 90


def test_names_are_valid_and_a_fixed_label_changes_its_neighbour() -> None:
    stream = io.StringIO()
    train, test = draw_names("train"), draw_names("test")
    namer = parts.train_names(Screen(stream), train, test)
    best, fixed = parts.show_names(Screen(stream), namer)
    assert best == [
        ["B-PER", "I-PER", "O", "B-ORG", "I-ORG", "O"],
        ["B-PER", "I-PER", "O", "B-LOC", "I-LOC", "O"],
    ]
    assert fixed == ["B-PER", "I-PER", "O", "B-LOC", "I-LOC", "O"]
    f1 = span_report(test.labels, namer.predict(test.words)).overall.f1
    assert f1 > 0.85
    assert f"{100 * f1:.1f} %" in stream.getvalue()


def test_wrong_answers_are_counted_and_coloured(colours: None) -> None:
    stream = Terminal()
    X, y = [["So", "I", "started", "."]], [["X", "X", "X", "PUNCT"]]
    tagger = CRF(features="pos").fit(X, y)
    assert parts.show_tags(Screen(stream), tagger, SHOWN[0]) >= 3
    assert f"{ESCAPE}1;31mX" in stream.getvalue()
    words = [word._replace(head=None if n else 0) for n, word in enumerate(SHOWN[0].words)]
    assert parts.show_tree(Screen(stream), Sentence(words), SHOWN[0]) == 14


@needs_rival
def test_the_comparison_is_of_the_same_model() -> None:
    data = read_tags(read_sample("train")[:40])
    tagger = CRF(features="pos").fit(data.words, data.labels)
    X = timing.feature_lists(tagger, data.words)
    assert [len(positions) for positions in X] == [len(words) for words in data.words]
    assert set(tagger.encoder_.vocabulary.names()) == {
        name for positions in X for position in positions for name in position
    }
    few = Terminal()
    found = timing.compare(Screen(few), tagger, data, 5)
    assert found is not None
    assert [run.n_iterations for run in found] == [5, 5]
    assert f"{found[0].objective:,.1f}" in few.getvalue()
    assert f"{found[1].objective:,.1f}" in few.getvalue()
    many = timing.compare(Screen(io.StringIO()), tagger, data, 500)
    assert many is not None
    rival, ours = many  # the same minimum: features, labels and penalty are the same
    assert ours.objective == pytest.approx(rival.objective, rel=1e-3)


def test_without_python_crfsuite_there_is_no_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "find_spec", lambda name: None)
    stream = io.StringIO()
    crf = CRF(features="pos").fit([["a", "b"]], [["X", "Y"]])
    assert timing.compare(Screen(stream), crf, Labelled([["a"]], [["X"]]), 3) is None
    assert "pip install python-crfsuite" in stream.getvalue()


# ---- the whole of it


def test_the_commands_it_prints_work(quick: tuple[Shown, str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    shown, text, folder = quick
    monkeypatch.chdir(folder)
    printed = [
        line.strip()
        for line in text.splitlines()
        if "demo-output" in line and line.strip().startswith("crfkit ")
    ]
    assert printed == shown.commands
    assert len(printed) == 6
    outputs = [run(*shlex.split(line)[1:]).stdout for line in printed]
    assert outputs[0].startswith("So ADV 0.")
    assert "tokens: 5810; accuracy" in outputs[1]
    assert outputs[3].split("\n")[3:5] == ["Lincoln\t*\tB-LOC", "City\tI-LOC\tI-LOC"]
    for name in ("mine.crf", "parsed.conllu", "pictures/00500.svg"):
        assert (folder / "demo-output" / name).exists()


def test_it_writes_only_into_its_folder(quick: tuple[Shown, str, Path]) -> None:
    _, text, folder = quick
    assert [path.name for path in folder.iterdir()] == ["demo-output"]
    assert "CC BY-SA 4.0" in text
    assert "made-up" in text
    assert ESCAPE not in text


def test_a_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    assert run("demo", "--output", "file/demo", status=2).stderr.startswith(
        "crfkit: file/demo: no folder can be made there ("
    )


def test_ctrl_c_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def train_tagger(*_: object) -> None:
        CRF(features="pos").fit([["a", "b"]], [["X", "Y"]], callback=interrupt)
        raise AssertionError("the demonstration went on")

    monkeypatch.setattr(parts, "train_tagger", train_tagger)
    assert run("demo", "--output", str(tmp_path / "demo"), status=130).stderr == "crfkit: interrupted\n"


def test_colours_are_for_terminals(colours: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def written(stream: io.StringIO) -> str:
        screen = Screen(stream)
        screen.heading("Names")
        screen.table([["a", ("b", "bold red")], ["ccc", ("d", "dim")]])
        return stream.getvalue()

    plain = "\n1  Names\n   a    b\n   ccc  d\n"
    assert written(io.StringIO()) == plain
    coloured = written(Terminal())
    assert ESCAPE in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert written(Terminal()) == plain


def test_streams_without_box_characters() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    Screen(stream).say("┌▶└─ dogs …")
    stream.flush()
    stream.seek(0)
    assert stream.read() == "   +>+- dogs .\n"


def test_how_the_program_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "my tools" / "crfkit"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", ["my tools/crfkit", "demo"])
    assert demo_command.program_name() == "'my tools/crfkit'"
    monkeypatch.setenv("PATH", str(program.parent))
    assert demo_command.program_name() == "crfkit"
    monkeypatch.setattr(sys, "argv", ["/somewhere/crfkit/__main__.py"])
    assert demo_command.program_name() == f"{shlex.quote(sys.executable)} -m crfkit"


@pytest.mark.slow
def test_the_whole_demonstration_makes_no_mistakes(tmp_path: Path) -> None:
    shown = demo(tmp_path / "demo-output", Screen(io.StringIO()))
    assert (shown.wrong_tags, shown.wrong_arcs) == (0, 0)


@pytest.mark.slow
def test_the_commands_work_in_a_shell(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "crfkit"]
    done = subprocess.run([*program, "demo"], cwd=tmp_path, capture_output=True, text=True, check=True)
    commands = [line.strip() for line in done.stdout.splitlines() if " -m crfkit " in line]
    assert len(commands) == 6
    for command in commands:
        subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, check=True)
