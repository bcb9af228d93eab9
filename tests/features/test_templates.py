"""Templates: what CRF++ makes of them, the functions beyond it, bad ones, and the presets."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit.errors import ArgumentError, FeatureError, MissingFileError, TemplateError
from crfkit.features.presets import PRESETS, preset
from crfkit.features.template_functions import FUNCTIONS
from crfkit.features.templates import Line, Macro, Program, Template, Transform

ROWS = [("He", "PRP"), ("reckons", "VBZ"), ("the", "DT"), ("current", "JJ"), ("account", "NN")]


def states(text: str, rows: Sequence[tuple[str, ...]], i: int) -> list[str]:
    return Template.parse(text).expand(rows, i)[0]


def test_expansion_of_the_crfpp_manual() -> None:
    # The worked example of the manual: current token "the DT" in this very sentence.
    wanted = {
        "U:%x[0,0]": "U:the",
        "U:%x[0,1]": "U:DT",
        "U:%x[-1,0]": "U:reckons",
        "U:%x[-2,1]": "U:PRP",
        "U:%x[0,0]/%x[0,1]": "U:the/DT",
        "U:ABC%x[0,1]123": "U:ABCDT123",
    }
    for line, feature in wanted.items():
        assert states(line, ROWS, 2) == [feature]


def test_rows_outside_the_sequence() -> None:
    text = "U1:%x[-2,0]\nU2:%x[-1,1]\nU3:%x[1,0]\nU4:%x[3,0]/%x[0,0]"
    assert states(text, ROWS, 0) == ["U1:_B-2", "U2:_B-1", "U3:reckons", "U4:current/He"]
    assert states(text, ROWS, 4) == ["U1:the", "U2:JJ", "U3:_B+1", "U4:_B+3/account"]
    assert states("U:%suffix[-1,0,9]\nU:%is_upper[2,0]", [("a",)], 0) == ["U:_B-1", "U:_B+2"]
    assert states("U:%x[-12,0]", [("a",), ("b",)], 1) == ["U:_B-11"]


def test_lines_of_arcs() -> None:
    template = Template.parse("U\nB\nB01:%x[0,0]\nB02:%suffix[0,0,3]\nB")
    assert template.expand(ROWS, 0) == (["U"], [])
    assert template.expand(ROWS, 2) == (["U"], ["B", "B01:the", "B02:the", "B"])
    assert template.expand([("a",), ("b",)], 1) == (["U"], ["B", "B01:b", "B"])
    assert template.has_plain_arcs
    assert not Template.parse("U\nB01:%x[0,0]").has_plain_arcs


def test_lines_with_names() -> None:
    template = Template.parse(
        "word[-1]|word=%x[-1,0]|%x[0,0]\nsuffix2=%suffix[0,0,2]\ntransition suffix3=%suffix[0,0,3]\nbias=1\nU1:%x[0,1]\n"
        "transition=%x[0,1]\nB"
    )
    assert template.expand(ROWS, 2) == (
        ["word[-1]|word=reckons|the", "suffix2=he", "bias=1", "U1:DT", "transition=DT"],
        ["suffix3=the", "B"],
    )
    assert template.expand(ROWS, 0)[1] == []
    assert template.has_plain_arcs
    assert not Template.parse("transition word=%x[0,0]").has_plain_arcs
    assert template.within_columns(1).expand(ROWS, 2)[0] == [
        "word[-1]|word=reckons|the",
        "suffix2=he",
        "bias=1",
    ]


def test_lines_of_crfpp_are_never_named() -> None:
    # CRF++ takes any text behind U and B: what it makes of these lines must not change.
    assert states("Upper=%x[0,0]", ROWS, 1) == ["Upper=reckons"]
    assert Template.parse("Bigram x=%x[0,0]").expand(ROWS, 1) == ([], ["Bigram x=reckons"])
    assert states("U transition a=%x[0,0]", ROWS, 1) == ["U transition a=reckons"]


def test_names_read_characters_where_tokens_are_characters() -> None:
    template = preset("names", 1)
    found = [feature for feature in template.expand(list("李明在"), 1)[0] if feature.startswith("character=")]
    assert sorted(found) == [
        "character=[-1,0]|李|明|1",
        "character=[-1]|李|1",
        "character=[-2,-1]|_B-1|李|1",
        "character=[-2]|_B-1|1",
        "character=[0,1]|明|在|1",
        "character=[0]|明|1",
        "character=[1,2]|在|_B+1|1",
        "character=[1]|在|1",
        "character=[2]|_B+1|1",
    ]
    words = ["I", "am", "Ann", ",", "漢字", "3"]
    for i in range(len(words)):
        states, arcs = template.expand(words, i)
        assert not any(feature.startswith("character=") for feature in states + arcs)


def test_features_of_presets_say_what_they_are() -> None:
    features = preset("names", 1).expand(["The", "Cat"], 1)[0]
    assert {"word=Cat", "suffix2=at", "word[-1]|word=The|Cat", "short_shape=Xx", "bias=1"} <= set(features)
    for name in PRESETS:
        for text in PRESETS[name].splitlines():
            assert text in ("", "B") or text[0] not in "UB"


def test_the_constructor_parses_too() -> None:
    template = Template("U00:%x[0,0]\nB")
    assert template == Template.parse("U00:%x[0,0]\nB")
    assert template.expand(ROWS, 1) == (["U00:reckons"], ["B"])
    with pytest.raises(TemplateError, match="no line that begins with U or B"):
        Template("")


def test_comments_blank_lines_and_equal_lines() -> None:
    text = "# Unigram\r\nU00:%x[0,0]\r\n\r\n  \nU00:%x[0,0]\n#U01:%y\nU:#%x[0,1]"
    assert states(text, ROWS, 1) == ["U00:reckons", "U00:reckons", "U:#VBZ"]


def test_a_bare_string_is_a_row_of_one_column() -> None:
    assert Template.parse("U:%x[-1,0]/%x[0,0]").expand(["New", "York"], 1)[0] == ["U:New/York"]


@pytest.mark.parametrize(
    ("macro", "value", "wanted"),
    [
        ("%x[0,0]", "McDonald-27", "McDonald-27"),
        ("%lower[0,0]", "ÉTÉ", "été"),
        ("%prefix[0,0,3]", "Rome", "Rom"),
        ("%prefix[0,0,4]", "Rome", "Rome"),
        ("%prefix[0,0,5]", "Rome", None),
        ("%suffix[0,0,3]", "Rome", "ome"),
        ("%suffix[0,0,1]", "", None),
        ("%suffix[0,0,5]", "Rome", None),
        ("%lower_prefix[0,0,2]", "ROme", "ro"),
        ("%lower_suffix[0,0,2]", "roME", "me"),
        ("%lower_suffix[0,0,5]", "roME", None),
        ("%length[0,0]", "Écu", "3"),
        ("%bare[0,0]", "ᾍδης", "αδης"),
        ("%bare[0,0]", "\u0301", "\u0301"),
        ("%bare_prefix[0,0,2]", "Écu", "ec"),
        ("%bare_suffix[0,0,2]", "Écü", "cu"),
        ("%bare_suffix[0,0,4]", "Écü", None),
        ("%shape[0,0]", "McDonald-27", "XxXxxxxx-dd"),
        ("%shape[0,0]", "Éa中٣²", "Xxxdd"),
        ("%short_shape[0,0]", "McDonald-27", "XxXx-d"),
        ("%short_shape[0,0]", "...", "."),
        ("%stripped[0,0]", "(St.,", "st"),
        ("%stripped[0,0]", "O'Hare;", "o'hare"),
        ("%stripped[0,0]", "#", "#"),
        ("%stripped[0,0]", "(…)", "(…)"),
        ("%stripped[0,0]", "«Łódź»", "łódź"),
        ("%stripped[0,0]", "5½", "5½"),
        ("%stripped[0,0]", "$5+", "5"),
        ("%stripped[0,0]", "a\n,", "a\n"),
        ("%stripped[0,0]", "_A_", "a"),
        ("%stripped_prefix[0,0,2]", "“Ave.”", "av"),
        ("%stripped_suffix[0,0,3]", "Ave.,", "ave"),
        ("%stripped_suffix[0,0,4]", "Ave.,", None),
        ("%outside[0,0]", "Ave", None),
        ("%digits[0,0]", "B2B-1999", "B0B-0000"),
        ("%has_digit[0,0]", "B2B", "1"),
        ("%has_digit[0,0]", "BB", None),
        ("%has_hyphen[0,0]", "well-known", "1"),
        ("%has_hyphen[0,0]", "known", None),
        ("%has_upper[0,0]", "iPod", "1"),
        ("%has_upper[0,0]", "pod", None),
        ("%is_title[0,0]", "Rome", "1"),
        ("%is_title[0,0]", "A", "1"),
        ("%is_title[0,0]", "ROME", None),
        ("%is_title[0,0]", "", None),
        ("%is_character[0,0]", "漢", "1"),
        ("%is_character[0,0]", "ก", "1"),
        ("%is_character[0,0]", "漢字", None),
        ("%is_character[0,0]", "a", None),
        ("%is_character[0,0]", "é", None),
        ("%is_character[0,0]", "，", None),
        ("%is_character[0,0]", "٣", None),
        ("%is_character[0,0]", "", None),
        ("%is_upper[0,0]", "U.N.", "1"),
        ("%is_upper[0,0]", "1.2", None),
    ],
)
def test_functions(macro: str, value: str, wanted: str | None) -> None:
    template = Template.parse(f"U:{macro}!")
    assert template.transform(0, value) == wanted
    assert template.expand([(value,)], 0)[0] == ([] if wanted is None else [f"U:{wanted}!"])


def test_every_function_is_described_and_tested() -> None:
    for name, function in FUNCTIONS.items():
        length = ",1" if function.has_length else ""
        Template.parse(f"U:%{name}[0,0{length}]")
        assert function.description


def test_program() -> None:
    template = Template.parse("# c\nU0:%x[-1,0]/%suffix[0,1,3]\nB\nU1:%x[2,0]~")
    assert template.program() == Program(
        transforms=(Transform("x", 0, None), Transform("suffix", 1, 3)),
        lines=(
            Line("U", (Macro("U0:", 0, -1), Macro("/", 1, 0)), ""),
            Line("B", (), "B"),
            Line("U", (Macro("U1:", 0, 2),), "~"),
        ),
    )
    assert template.n_columns == 2


BAD = [
    ("U0:%y[0,0]", "unknown function %y: expected one of x, lower", 4),
    ("U0:%[0,0]", "unknown function %:", 4),
    ("U0:100%", "unknown function %:", 7),
    ("U0:%x", "expected [ after %x", 6),
    ("U0:%x(0,0)", "expected [ after %x", 6),
    ("U0:%x[0,0", "the bracket is not closed", 6),
    ("U0:%x[0,%x[0,0]", "the bracket is not closed", 6),
    ("U0:%x[0]", "expected %x[row,column] with whole numbers", 6),
    ("U0:%x[0,0,1]", "expected %x[row,column] with whole numbers", 6),
    ("U0:%x[0,a]", "expected %x[row,column] with whole numbers", 6),
    ("U0:%x[,]", "expected %x[row,column] with whole numbers", 6),
    ("U0:%x[0,-1]", "column -1 is negative", 6),
    ("U0:%prefix[0,0]", "expected %prefix[row,column,length] with whole numbers", 11),
    ("U0:%suffix[0,0,0]", "length 0 is below 1", 11),
    ("X0:%x[0,0]", "a line must begin with U, B or #", 1),
    (" U0:%x[0,0]", "a line must begin with U, B or #", 1),
    ("u0:%x[0,0]", "a line must begin with U, B or #", 1),
]


@pytest.mark.parametrize(("line", "words", "character"), BAD)
def test_bad_lines_are_named(line: str, words: str, character: int) -> None:
    with pytest.raises(TemplateError) as caught:
        Template.parse(f"U\n\n{line}\nB", source="my.txt")
    message = str(caught.value)
    assert message.startswith("my.txt:3: ")
    assert words in message
    assert message.endswith(f"at character {character} of '{line}'")


def test_a_template_without_lines() -> None:
    with pytest.raises(TemplateError, match=r"empty\.txt"):
        Template.parse("# nothing\n\n", source="empty.txt")


def test_columns_are_checked() -> None:
    template = Template.parse("U\nU0:%x[0,0]\n\nB1:%x[0,2]", source="t.txt")
    template.check_columns(3)
    with pytest.raises(FeatureError, match=r"t\.txt:4"):
        template.check_columns(2)
    with pytest.raises(FeatureError, match=r"t\.txt:2"):
        template.check_columns(0)
    with pytest.raises(FeatureError, match="position 1"):
        template.expand([("a", "b", "c"), ("a",)], 1)
    with pytest.raises(IndexError, match="position 2 of a sequence of 2 positions"):
        template.expand([("a", "b", "c")] * 2, 2)


def test_lines_within_columns() -> None:
    template = Template.parse("U\nU0:%x[0,0]\nU1:%x[0,0]/%x[0,1]\nB")
    assert template.within_columns(1) == Template.parse("U\nU0:%x[0,0]\nB")
    assert template.within_columns(2) == template


def test_templates_are_values(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_bytes(b"\xef\xbb\xbfU:%x[0,0]\r\nB\r\n")
    template = Template.read(path)
    assert template == Template.parse("U:%x[0,0]\nB")
    assert hash(template) == hash(Template.parse(template.text))
    assert template.source == str(path)
    copy = pickle.loads(pickle.dumps(template))
    assert copy == template
    assert copy.program() == template.program()
    with pytest.raises(MissingFileError):
        Template.read(tmp_path / "absent.txt")


words = st.text(st.characters(codec="utf-8"), max_size=6)


@given(st.lists(st.tuples(words, words), min_size=1, max_size=5), st.integers(-3, 3), st.integers(0, 1))
def test_one_macro_gives_the_value_there(rows: list[tuple[str, str]], row: int, column: int) -> None:
    template = Template.parse(f"U:%x[{row},{column}]")
    padded = [f"_B-{k}" for k in (3, 2, 1)] + [r[column] for r in rows] + [f"_B+{k}" for k in (1, 2, 3)]
    got = [template.expand(rows, i)[0] for i in range(len(rows))]
    assert got == [[f"U:{padded[3 + i + row]}"] for i in range(len(rows))]


@given(words)
def test_shapes_keep_length_and_short_shapes_have_no_runs(word: str) -> None:
    template = Template.parse("U:%shape[0,0]/%short_shape[0,0]/%digits[0,0]")
    shape, short, digits = (template.transform(k, word) for k in range(3))
    assert shape is not None and short is not None and digits is not None  # noqa: PT018
    assert len(shape) == len(digits) == len(word)
    assert all(a != b for a, b in itertools.pairwise(short))
    assert short == "".join(c for k, c in enumerate(shape) if k == 0 or shape[k - 1] != c)


@pytest.mark.parametrize("name", PRESETS)
def test_presets(name: str) -> None:
    template = preset(name)
    assert template.text == PRESETS[name]
    assert template.n_columns == (2 if name in ("chunks", "names") else 1)
    assert template.has_plain_arcs
    for i in range(len(ROWS)):
        features, arcs = template.expand(ROWS, i)
        single = [feature for feature in features if feature.split("=")[0] not in ("near", "before", "after")]
        assert len(set(single)) == len(single) <= (70 if name == "morphology" else 45)
        assert arcs == (["B"] if i else [])


def test_presets_fit_the_columns() -> None:
    template = preset("chunks", n_columns=1)
    template.check_columns(1)
    assert "lower=the" in template.expand(["the"], 0)[0]
    assert preset("chunks", n_columns=2) == preset("chunks", n_columns=5) == preset("chunks")
    with pytest.raises(ArgumentError, match="preset"):
        preset("verbs")
