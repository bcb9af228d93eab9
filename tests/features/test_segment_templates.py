"""Templates of features of whole segments, against functions that give the same names."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, InputError, Segments, SegmentTemplate, load
from crfkit.errors import FeatureError, MissingFileError, TemplateError
from crfkit.models import UnreadColumns
from tests.cli.commands import complaint, run

TEXT = """# whole segments
text=%lower[segment,0]
ends|n=%x[first,0]|%x[last,1]|%positions[segment]
U1:%short_shape[segment,0]/%x[first-1,0]/%x[last+2,0]
second=%lower_suffix[first+1,0,2]
title=%is_title[last,0]
"""
ROWS = [
    [("in", "P"), ("New", "N"), ("York", "N")],
    [("York", "N"), ("is", "V")],
    [("New", "N"), ("York", "N")],
]
SPANS: list[list[tuple[int, int, str]]] = [[(1, 3, "LOC")], [(0, 1, "LOC")], [(0, 2, "LOC")]]


def _at(x: Any, t: int, column: int) -> str:
    return f"_B-{-t}" if t < 0 else f"_B+{t - len(x) + 1}" if t >= len(x) else x[t][column]


def _short(text: str) -> str:
    found = ""
    for c in text:
        kind = "X" if c.isupper() else "x" if c.isalpha() else c
        found += kind if found[-1:] != kind else ""
    return found


def by_hand(x: Any, start: int, end: int) -> list[str]:
    """What the template gives, written as a function."""
    words = [word for word, _ in x[start:end]]
    names = [f"text={' '.join(words).lower()}", f"ends|n={words[0]}|{x[end - 1][1]}|{end - start}"]
    names.append(f"U1:{_short(' '.join(words))}/{_at(x, start - 1, 0)}/{_at(x, end + 1, 0)}")
    second = _at(x, start + 1, 0)
    if second.startswith("_B"):
        names.append(f"second={second}")
    elif len(second) >= 2:
        names.append(f"second={second.lower()[-2:]}")
    return [*names, *(["title=1"] if words[-1].istitle() else [])]


def test_expansion() -> None:
    template = SegmentTemplate(TEXT)
    for rows in ROWS:
        for start in range(len(rows)):
            for end in range(start + 1, len(rows) + 1):
                assert template.expand(rows, start, end) == by_hand(rows, start, end)
    assert template.columns == {0, 1}
    with pytest.raises(IndexError, match="positions 1 to 0 of a sequence of 3 positions"):
        template.expand(ROWS[0], 1, 1)
    assert SegmentTemplate("Un:%positions[segment]").expand(["a", "b"], 0, 2) == ["Un:2"]


def test_models_are_those_of_functions(tmp_path: Path) -> None:
    template = SegmentTemplate(TEXT)
    first, second = (
        CRF(Segments(3, segment_features=[features, 1], dictionaries={"d": ["New York"]}), "pos", l2=0.1).fit(
            ROWS, SPANS
        )
        for features in (template, by_hand)
    )
    assert first.structure_names_ == second.structure_names_
    assert np.array_equal(first.weights_, second.weights_)
    first.save(tmp_path / "m")
    for copy in (load(tmp_path / "m"), pickle.loads(pickle.dumps(first))):
        assert copy.structure == first.structure
        assert copy.structure.segment_features[0].text == template.text
        assert copy.predict_nbest(ROWS, 3) == second.predict_nbest(ROWS, 3)
    with pytest.raises(FeatureError, match="a segment template needs a word in column 1"):
        CRF(Segments(segment_features=template), "pos").fit([["a", "b"]], [["O", "B-X"]])


def test_columns_that_are_read() -> None:
    with pytest.warns(UnreadColumns, match="no feature reads column 1"):
        CRF(Segments(segment_features=SegmentTemplate("t=%x[segment,0]")), "pos").fit(ROWS, SPANS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "segment template: the template has no line that begins with U"),
        (
            "B",
            "segment template:1: a line of a segment template must begin with U or #, or with a name and =",
        ),
        ("transition t=%x[first,0]", ":1: a line of a segment template must begin with U"),
        (
            "t=%x[0,0]",
            r":1: expected %x\[place,column\], place being segment, first or last, .* character 5 of 't=",
        ),
        ("\nt=%suffix[last,0]", r":2: expected %suffix\[place,column,length\]"),
        ("t=%positions[last]", r"expected %positions\[segment\]"),
        ("t=%x[segment]", r"expected %x\[place,column\]"),
        ("t=%x[segment,0", r"expected %x\[place,column\]"),
        ("t=%x[segment+1,0]", r"expected %x\[place,column\]"),
        ("t=%x[first,-1]", r"expected %x\[place,column\]"),
        ("t=%prefix[first,0,0]", "length 0 is below 1"),
        ("t=%word[first,0]", "unknown function %word: expected one of x, lower, .*, positions"),
    ],
)
def test_errors_name_their_place(text: str, message: str) -> None:
    with pytest.raises(TemplateError, match=message):
        SegmentTemplate(text)


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.txt").write_text("in O\nNew B-LOC\nYork I-LOC\n\nYork B-LOC\nis O\n\nNew B-LOC\nYork I-LOC\n")
    Path("segments.txt").write_text("text=%lower[segment,0]\n")
    given = (
        "train",
        "train.txt",
        "--model",
        "m.crf",
        "--structure",
        "segments",
        "--quiet",
        "--segment-template",
    )
    run(*given, "segments.txt")
    assert "LOC text=new york" in run("inspect", "m.crf").stdout
    assert "York I-LOC I-LOC" in run("tag", "m.crf", "train.txt").stdout
    assert "expected --structure segments" in complaint(
        "train", "train.txt", "--model", "m.crf", "--segment-template", "segments.txt"
    )
    with pytest.raises(MissingFileError):
        SegmentTemplate.read("none.txt")


def test_templates_are_features_of_segments() -> None:
    with pytest.raises(InputError, match="expected functions of"):
        Segments(segment_features=[1.5])
