"""Files of other tools on the command line: attributes, Wapiti's patterns, and what crf_test, wapiti and crfsuite write."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import crfkit
from crfkit.data import read_attributes
from crfkit.models import score_nbest
from tests.cli.commands import columns, complaint, run
from tests.compat.test_other_models import crfpp_model, wapiti_model

SENTENCES = ["the D dog N runs V", "a D cat N sees V the D dog N"] * 8
ATTRIBUTES = "D\tw=the\tn:1.0\nN\tw=dog\tn:2.5\n\nD\tw=the\nN\tw=c\\:t\n\n" * 4


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in."""
    monkeypatch.chdir(tmp_path)
    Path("train.txt").write_text(columns(SENTENCES, 2))
    Path("train.att").write_text(ATTRIBUTES)
    Path("new.txt").write_text("the\ncat\n")
    return tmp_path


def probabilities(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"(?<![\w.])[01]\.[0-9]+(?:e-[0-9]+)?", text)]


# ---- attributes


def test_attributes_are_trained_on_tagged_and_evaluated() -> None:
    run("train", "train.att", "--attributes", "--model", "a.crf", "--dev", "train.att", "--quiet")
    assert run("tag", "a.crf", "train.att").stdout == "D\nN\n\nD\nN\n\n" * 4
    assert "accuracy: 100.00%" in run("eval", "a.crf", "train.att").stdout
    sequences = list(read_attributes("train.att"))
    assert crfkit.load("a.crf").predict([s.items for s in sequences]) == [s.labels for s in sequences]


def test_crfsuite_s_form() -> None:
    run("train", "train.att", "--attributes", "--model", "a.crf", "--quiet")
    one = "D\tw=the\nN\tw=dog\n"
    found = run("tag", "a.crf", "-", "--probability", "--marginals", "--all-marginals", text=one).stdout
    lines = found.split("\n")
    score, log_partition = map(float, lines[0].removeprefix("@score\t").split("\t"))
    assert re.fullmatch(r"@probability\t0\.\d{6}", lines[1])
    assert np.exp(score - log_partition) == pytest.approx(float(lines[1].split("\t")[1]), abs=2e-6)
    assert re.fullmatch(r"D:0\.\d{6}\tD:0\.\d{6}\tN:0\.\d{6}", lines[2])
    assert lines[4:] == ["", ""]
    crf = crfkit.load("a.crf")
    p = crf.predict_marginals([[["w=the"], ["w=dog"]]])[0]
    np.testing.assert_allclose(probabilities(lines[2])[1:], p[0], atol=1e-6)
    assert score == pytest.approx(score_nbest(crf, [[["w=the"], ["w=dog"]]], 1)[0][0].score, abs=1e-6)
    assert found.count("@probability") == 1
    assert run("tag", "a.crf", "-", "--nbest", "2", text=one).stdout.count("@probability") == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--attributes", "--features", "pos"], "--features makes features of columns"),
        (["--attributes", "--separator", ","], "--separator is for columns"),
        (
            ["--attributes", "--template", "t", "--wapiti-patterns", "p"],
            "both --template and --wapiti-patterns",
        ),
    ],
)
def test_options_that_do_not_go_with_attributes(options: list[str], said: str) -> None:
    assert said in complaint("train", "train.att", "--model", "x.crf", *options)


def test_the_labels_of_a_file_of_attributes_stand_beside_those_that_are_found() -> None:
    run("train", "train.att", "--attributes", "--model", "a.crf", "--quiet")
    text = "N\tw=the\nQ\tw=dog\n"
    assert run("tag", "a.crf", "-", "--reference", text=text).stdout == "N\tD\nQ\tN\n\n"
    with_marginals = run("tag", "a.crf", "-", "--reference", "--marginals", text=text).stdout
    assert re.match(r"N\tD:0\.\d{6}\nQ\tN:0\.\d{6}\n\n$", with_marginals)
    run("train", "train.txt", "--model", "m.crf", "--quiet")
    assert "--reference is for --format crfsuite" in complaint("tag", "m.crf", "train.txt", "--reference")
    found = run("tag", "m.crf", "train.txt", "--format", "crfsuite", "--reference").stdout
    assert found.startswith("D\tD\nN\tN\nV\tV\n\n")
    assert run("tag", "m.crf", "new.txt", "--format", "crfsuite", "--reference").stdout == "\tD\n\tN\n\n"


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (["--seen-transitions"], {}),
        ([], {"feature.possible_transitions": True}),
        (["--all-possible-states"], {"feature.possible_states": True, "feature.possible_transitions": True}),
    ],
)
def test_training_finds_the_minimum_of_crfsuite_learn(options: list[str], settings: dict[str, bool]) -> None:
    """With the options that docs/migrating.md puts beside those of `crfsuite learn`."""
    theirs = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    Path("c2.att").write_text(ATTRIBUTES.replace("N\tw=dog", "V\tw=1\\/2\nN\tw=dog\tn\\:", 2))
    trainer = theirs.Trainer("lbfgs", {"c2": 0.3, "epsilon": 1e-9, "delta": 1e-12, **settings}, verbose=False)
    for sequence in read_attributes("c2.att"):
        trainer.append(sequence.items, sequence.labels)
    trainer.train("theirs")
    as_crfsuite = ["--attributes", "--no-start", "--no-end", "--l2", "0.6", "--tolerance", "1e-9", "--quiet"]
    run("train", "c2.att", "--model", "m.crf", *as_crfsuite, *options)
    run("convert", "m.crf", "ours")
    parsed = []
    for name in ("ours", "theirs"):
        tagger = theirs.Tagger()
        tagger.open(name)
        parsed.append(tagger.info())
    for part in ("transitions", "state_features"):
        mine, other = (getattr(info, part) for info in parsed)
        assert mine.keys() == other.keys()
        np.testing.assert_allclose([mine[key] for key in other], list(other.values()), atol=1e-4)


def test_bad_attribute_files_are_refused_with_their_line() -> None:
    Path("no-label.att").write_text("D\tw=the\n\tw=dog\n")
    assert "no-label.att:2: the label is empty" in complaint(
        "train", "no-label.att", "--attributes", "--model", "x.crf"
    )
    Path("bad.att").write_text("D\tw=the\nN\tlen:much\n")
    assert "bad.att:2: attribute 'len'" in complaint("train", "bad.att", "--attributes", "--model", "x.crf")
    Path("empty.att").write_text("\n\n")
    assert "found no sequence" in complaint("train", "empty.att", "--attributes", "--model", "x.crf")
    run("train", "train.att", "--attributes", "--model", "a.crf", "--quiet")
    assert "--labels-only" in complaint("tag", "a.crf", "train.att", "--format", "crf++")
    assert "reads attributes" in complaint("tag", "a.crf", "train.att", "--separator", ",")


# ---- Wapiti's patterns


def test_patterns_of_wapiti_are_trained_with_and_kept() -> None:
    Path("patterns").write_text('*:w=%X[0,0]  # the word\nu:suf=%m[0,0,".?.?$"]\nU:end=%x[@-1,0]\nb\n')
    run("train", "train.txt", "--wapiti-patterns", "patterns", "--model", "w.crf", "--quiet")
    crf = crfkit.load("w.crf")
    assert crf.encoder_.vocabulary.get("u:suf=og") >= 0
    assert crf.encoder_.arc_vocabulary.get("*:w=dog") >= 0
    assert run("tag", "w.crf", "new.txt").stdout == "the D\ncat N\n\n"
    Path("patterns").write_text("u:%x[0,0]\nu:%y[0,0]\n")
    said = complaint("train", "train.txt", "--wapiti-patterns", "patterns", "--model", "x.crf")
    assert said.startswith("crfkit: patterns:2: expected %x[row,column]")
    Path("patterns").write_text('u:%m[0,0,"*"]\n')
    assert "nothing before it" in complaint(
        "train", "train.txt", "--wapiti-patterns", "patterns", "--model", "x.crf"
    )


# ---- what other tools write


def test_forms_of_columns() -> None:
    run("train", "train.txt", "--model", "m.crf", "--quiet")
    assert run("tag", "m.crf", "new.txt", "--format", "crf++").stdout == "the\tD\ncat\tN\n\n"
    assert run("tag", "m.crf", "new.txt", "--format", "wapiti").stdout == "the\tD\ncat\tN\n\n"
    assert run("tag", "m.crf", "new.txt", "--labels-only").stdout == "D\nN\n\n"
    assert run("tag", "m.crf", "new.txt", "--format", "crfsuite").stdout == "D\nN\n\n"


def test_probabilities_in_each_form() -> None:
    run("train", "train.txt", "--model", "m.crf", "--quiet")
    crf = crfkit.load("m.crf")
    x = [("the",), ("cat",)]
    [[p, _]] = [[b[0] for b in crf.predict_nbest([x], 2)[0]]]
    marginals = crf.predict_marginals([x])[0]
    best = marginals.max(axis=1)
    verbose = run("tag", "m.crf", "new.txt", "--format", "crf++", "--all-marginals").stdout.split("\n")
    assert verbose[0] == f"# {p:f}"
    assert verbose[1] == f"the\tD/{best[0]:f}\t" + "\t".join(
        f"{label}/{value:f}" for label, value in zip("DNV", marginals[0], strict=True)
    )
    nbest = run("tag", "m.crf", "new.txt", "--format", "crf++", "--nbest", "2").stdout
    assert nbest.startswith(f"# 0 {p:f}\nthe\tD\n")
    assert "\n# 1 " in nbest
    scored = run("tag", "m.crf", "new.txt", "--format", "wapiti", "--marginals").stdout
    assert scored == f"# 0 {p:f}\nthe\tD\tD/{best[0]:f}\ncat\tN\tN/{best[1]:f}\n\n"
    plain = run("tag", "m.crf", "new.txt", "--probability", "--marginals").stdout
    assert plain == f"# {p:.6f}\nthe D {best[0]:.6f}\ncat N {best[1]:.6f}\n\n"


# ---- models


def test_models_of_crfpp_and_wapiti_are_converted_or_used_as_they_are() -> None:
    rng = np.random.default_rng(3)
    Path("model.txt").write_text(crfpp_model(rng)[0], encoding="utf-8")
    Path("model.wap").write_bytes(wapiti_model(rng)[0])
    for name in ("model.txt", "model.wap"):
        assert "written as a model of crfkit" in run("convert", name, "m.crf").stderr
        found = run("tag", "m.crf", "-", text="Dog N\nruns V\n").stdout
        assert found.count("\n") == 3
        assert run("tag", name, "-", text="Dog N\nruns V\n").stdout == found
        inspected = [run("inspect", path).stdout.partition("heaviest")[2] for path in (name, "m.crf")]
        assert inspected[0] == inspected[1]
    run("convert", "model.wap", "wide.crf", "--columns", "3")
    assert run("tag", "wide.crf", "-", text="Dog N _\nruns V _\n").stdout.count("\n") == 3
    assert "reads column 1" in complaint("convert", "model.wap", "x", "--columns", "1")
    assert "has a template" in complaint("convert", "model.txt", "x", "--to", "crfsuite")
