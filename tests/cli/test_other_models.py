"""Models of CRF++ and Wapiti on the command line: their files of columns, scores, and posterior decoding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from crfkit.compat import read_crfpp, read_wapiti
from crfkit.models import position_scores, score_nbest
from tests.cli.commands import complaint, run
from tests.compat.crfpp_binaries import binary_of
from tests.compat.test_other_models import crfpp_model, wapiti_model
from tests.compat.test_other_models_kinds import tokens_file

ROWS = [("the", "D"), ("Dog", "N"), ("runs", "V"), ("a", "D")]
FILE = "the D\nDog N\nruns V\na D\n"
RAGGED = "the D x y z\nDog   N\nruns\tV x\na D y z\n"


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    text = crfpp_model(rng)[0]
    Path("m.txt").write_text(text, encoding="utf-8")
    Path("m.bin").write_bytes(binary_of(text))
    Path("m.wap").write_bytes(wapiti_model(rng)[0])
    Path("memm.wap").write_bytes(wapiti_model(rng, "#mdl#1#")[0])


def labels_of(text: str) -> list[str]:
    return [line.split()[-1] for line in text.splitlines() if line]


@pytest.mark.parametrize("name", ["m.txt", "m.bin", "m.wap", "memm.wap"])
def test_rows_may_have_any_columns_beside_those_that_are_read(name: str) -> None:
    plain = run("tag", name, "-", text=FILE)
    run("convert", name, "m.crf")
    for model in (name, "m.crf"):
        ragged = run("tag", model, "-", text=RAGGED).stdout
        assert labels_of(ragged) == labels_of(plain.stdout)
        assert ragged.split("\n")[0].split() == ["the", "D", "x", "y", "z", labels_of(ragged)[0]]
        said = complaint("tag", model, "-", text="the D\nDog\n")
        where = (
            ":2: the row has 1 column"
            if "wap" in name
            else ":2: found 1 column, the model expects at least 2"
        )
        assert where in said
    gold = "".join(
        f"{row} {label}\n" for row, label in zip(RAGGED.splitlines(), labels_of(plain.stdout), strict=True)
    )
    assert "accuracy: 100.00%" in run("eval", name, "-", text=gold).stdout
    least = 2 if name.endswith("wap") else 3
    said = complaint("eval", name, "-", text="a\n")
    assert f"expects at least {least}, the last one the label" in said


def test_no_line_is_a_comment_for_these_tools() -> None:
    found = run("tag", "m.wap", "-", text="# key = value\nthe D\n").stdout
    assert found.count("\n") == 3
    assert labels_of(found)[0] in ("x", "y", "z")


def test_columns_are_fixed_where_they_must_be() -> None:
    text = "the * D\nDog y|z N\n"
    assert "needs --columns N here" in complaint("tag", "m.bin", "-", "--allowed-column", "1", text=text)
    found = run("tag", "m.bin", "-", "--allowed-column", "1", "--columns", "2", text=text).stdout
    assert labels_of(found)[1] in ("y", "z")
    assert "accuracy" in run("eval", "m.wap", "-", "--columns", "2", text="the D x\n").stdout
    assert "found 4 columns" in complaint("tag", "m.wap", "-", "--columns", "2", text="the D x y\n")
    assert "--columns 1: its template:2: the template reads column 1" in complaint(
        "tag", "m.bin", "-", "--columns", "1", text=FILE
    )
    Path("train.txt").write_text("a x\nb y\n")
    run("train", "train.txt", "--model", "own.crf", "--quiet")
    assert "the model knows how many columns its rows have" in complaint(
        "tag", "own.crf", "-", "--columns", "1", text="a\n"
    )


def test_scores_as_wapiti_writes_them() -> None:
    model = read_wapiti("m.wap")
    [best] = score_nbest(model, [ROWS], 2)
    lines = run("tag", "m.wap", "-", "--format", "wapiti", "--scores", "--nbest", "2", text=FILE).stdout
    expected = ""
    for rank, answer in enumerate(best):
        scores = position_scores(model, [ROWS], [answer.labels])[0]
        expected += f"# {rank} {answer.score:f}\n"
        for row, label, score in zip(ROWS, answer.labels, scores, strict=True):
            expected += f"{' '.join(row)}\t{label}\t{label}/{score:f}\n"
        expected += "\n"
    assert lines == expected


def test_wapiti_s_form_has_the_lines_as_they_stand() -> None:
    found = run("tag", "m.wap", "-", "--format", "wapiti", text=RAGGED).stdout.split("\n")
    assert [line.rpartition("\t")[0] for line in found[:4]] == RAGGED.splitlines()
    assert found[4:] == ["", ""]
    short = run("tag", "m.wap", "-", "--format", "wapiti", "--labels-only", text=RAGGED).stdout
    assert short.split() == [line.rpartition("\t")[2] for line in found[:4]]


def test_labels_of_the_file_beside_those_that_are_found() -> None:
    found = run("tag", "m.bin", "-", "--format", "crfsuite", "--reference", text="the D x y\na D z\n").stdout
    assert [line.split("\t")[0] for line in found.splitlines()[:2]] == ["y", "z"]


def test_inspect_says_where_a_model_is_normalised() -> None:
    assert "normalised at each position" in run("inspect", "memm.wap").stdout
    assert "normalised at each position" not in run("inspect", "m.wap").stdout


def test_scores_in_columns() -> None:
    model = read_crfpp("m.bin")
    [[best]] = score_nbest(model, [ROWS], 1)
    scores = position_scores(model, [ROWS], [best.labels])[0]
    lines = run("tag", "m.bin", "-", "--scores", "--probability", text=FILE).stdout.split("\n")
    assert lines[0] == f"# {best.probability:.6f} {best.score:.6f}"
    assert lines[1] == f"the D {best.labels[0]} {scores[0]:.6f}"
    assert "crf++ has no place" in complaint("tag", "m.bin", "-", "--scores", "--format", "crf++", text=FILE)
    assert "give one of them" in complaint(
        "tag", "m.wap", "-", "--scores", "--marginals", "--format", "wapiti", text=FILE
    )


def test_posterior_decoding() -> None:
    model = read_wapiti("m.wap")
    marginals = model.predict_marginals([ROWS])[0]
    labels = [model.classes_[k] for k in marginals.argmax(axis=1)]
    found = run("tag", "m.wap", "-", "--posterior", "--scores", "--format", "wapiti", text=FILE).stdout
    lines = found.split("\n")
    assert lines[0] == f"# 0 {marginals.max(axis=1).prod():f}"
    assert lines[1] == f"the D\t{labels[0]}\t{labels[0]}/{marginals[0].max():f}"
    assert [line.split("\t")[1] for line in lines[1:5]] == labels
    columns = run("tag", "m.wap", "-", "--posterior", "--nbest", "2", text=FILE).stdout.split("\n")
    p = np.exp(model.log_probability([ROWS], [labels])[0])
    assert columns[0] == f"# 1 {p:.6f}"
    assert [line.split()[-1] for line in columns[1:5]] == labels
    # The second best changes one label, to the next likely one where that costs least.
    top = np.sort(marginals, axis=1)
    where = (top[:, -2] / top[:, -1]).argmax()
    second = [line.split()[-1] for line in columns[7:11]]
    assert [k for k in range(4) if second[k] != labels[k]] == [where]


def test_wapiti_knows_no_posterior_decoding_of_markov_models() -> None:
    plain = run("tag", "memm.wap", "-", "--format", "wapiti", "--scores", text=FILE).stdout
    assert (
        run("tag", "memm.wap", "-", "--format", "wapiti", "--scores", "--posterior", text=FILE).stdout
        == plain
    )
    model = read_wapiti("memm.wap")
    marginals = model.predict_marginals([ROWS])[0]
    found = run("tag", "memm.wap", "-", "--posterior", text=FILE).stdout
    assert labels_of(found) == [model.classes_[k] for k in marginals.argmax(axis=1)]
    first = plain.split("\n")[0]
    assert float(first.split()[2]) == pytest.approx(model.predict_nbest([ROWS], 1)[0][0][0], abs=1e-6)


def test_a_model_without_patterns() -> None:
    Path("t.wap").write_bytes(tokens_file("#mdl#2#", ["u:a", "u:b"], [0, 2.0, 0, 0, 0, 3.0]))
    found = run("tag", "t.wap", "-", "--format", "wapiti", text="u:a u:c\nu:b\n\nu:b u:a u:a\n").stdout
    assert found == "u:a u:c\ty\nu:b\tz\n\nu:b u:a u:a\ty\n\n"
    run("convert", "t.wap", "t.crf")
    assert "accuracy: 100.00%" in run("eval", "t.crf", "-", text="u:a u:c y\nx\nu:b z\n").stdout
    assert "the feature 'y' begins neither" in complaint("tag", "t.wap", "-", text="u:a y\n")
    assert "u:b" in run("inspect", "t.wap").stdout


def test_a_model_in_another_encoding_is_converted() -> None:
    text = Path("m.txt").read_text(encoding="utf-8")
    Path("latin.bin").write_bytes(binary_of(text, "cp1250"))
    assert "not in the encoding utf-8" in complaint("tag", "latin.bin", "-", text=FILE)
    run("convert", "latin.bin", "latin.crf", "--encoding", "cp1250")
    assert run("tag", "latin.crf", "-", text=FILE).stdout == run("tag", "m.bin", "-", text=FILE).stdout
