"""Columns with the labels of words at other positions."""

import pytest
from benchmarks.corpora import find_corpus
from benchmarks.word_labels import BLOCK, FOLDS, WordLabels, training_rows

from benchmarks import word_labels


def test_columns_of_training_sentences_come_from_other_folds() -> None:
    n = 2 * BLOCK * FOLDS
    fold = [i // BLOCK % FOLDS for i in range(n)]
    X = [["arma", f"w{k}"] for k in fold]  # w0 … w7 stand in one fold each
    y = [[f"A{k}", f"B{k}"] for k in fold]
    for k, (arma, other) in zip(fold, training_rows(X, y), strict=True):
        labels = [f"A{j}" for j in range(FOLDS) if j != k]
        assert arma == ("arma", ";".join(labels), labels[-1])
        assert f"B{k}" not in other[1].split(";")
        assert other[2] != f"B{k}"


def test_known_words_have_the_labels_they_were_seen_with() -> None:
    found = WordLabels([["Rosa", "rosa", "rosa", "est"]], [["nom", "abl", "abl", "v"]])
    assert found.rows(["ROSA", "est"]) == [("ROSA", "abl;nom", "abl"), ("est", "v", "v")]


@pytest.mark.skipif(
    find_corpus("ud_latin_perseus", "la_perseus-ud-train.conllu") is None, reason="the corpus is not here"
)
@pytest.mark.parametrize("options", [[], ["--few"]])
def test_quick_run(capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    word_labels.main(["--quick", "--corpus", "la-xpos", *options])
    cells = capsys.readouterr().out.splitlines()[-1].split("|")
    assert cells[1].strip() == "`la-xpos`"
    assert all(0 < float(cell) < 100 for cell in cells[2:4])
