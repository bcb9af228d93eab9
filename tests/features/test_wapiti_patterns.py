"""Wapiti's patterns: its expressions against Python's, the native extractor against `expand`, and complaints."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfkit.errors import TemplateError
from crfkit.features import WapitiPatterns
from crfkit.features.wapiti_regex import WapitiRegex
from tests.features.test_extraction import CELL, check

ATOMS = {
    ".": b"(?s:.)",
    "a": b"a",
    "B": b"B",
    r"\d": b"[0-9]",
    r"\U": b"[^A-Z]",
    r"\p": rb"[!-/:-@\[-`{-~]",
    r"\.": rb"\.",
}
ATOM = st.tuples(st.sampled_from(sorted(ATOMS)), st.sampled_from(["", "*", "?"]))
VALUE = st.text("aBb1.é", max_size=8)


@settings(max_examples=300)
@given(st.booleans(), st.lists(ATOM, max_size=6), st.booleans(), VALUE)
def test_expressions_are_those_of_python_with_lazy_stars(
    start: bool, atoms: list[tuple[str, str]], end: bool, value: str
) -> None:
    text = "^" * start + "".join(atom + repeat for atom, repeat in atoms) + "$" * end
    same = rb"\A" * start + b"".join(
        ATOMS[atom] + (b"*?" if repeat == "*" else repeat.encode()) for atom, repeat in atoms
    )
    expected = re.search(same + rb"\Z" * end, value.encode())
    found = WapitiRegex(text).find(value.encode())
    assert (found is None) == (expected is None)
    if found is None or expected is None:
        return
    assert found[0] == expected.start()
    assert found[1] >= expected.end()
    if not any(repeat == "?" for _, repeat in atoms):
        assert found == expected.span()
    counter = Counter(value.encode())
    assert counter.tries([(re.compile(ATOMS[atom]), repeat) for atom, repeat in atoms], found[0], end)
    assert found[1] == min(found[0] + counter.count, len(value.encode()) + 1)


class Counter:
    """Tries an expression byte by byte, and counts as Wapiti does: what fails is not always taken back."""

    def __init__(self, value: bytes) -> None:
        self.value = value
        self.count = 0

    def tries(self, atoms: list[tuple[re.Pattern[bytes], str]], place: int, end: bool) -> bool:
        if not atoms:
            return not end or place == len(self.value)
        (atom, repeat), *rest = atoms
        fits = atom.match(self.value[place : place + 1]) is not None
        if repeat == "*":
            before = self.count
            if self.tries(rest, place, end):
                return True
            self.count = before + 1
            return fits and self.tries(atoms, place + 1, end)
        if repeat == "?":
            if fits:
                self.count += 1
                if self.tries(rest, place + 1, end):
                    return True
                self.count -= 1
            return self.tries(rest, place, end)
        self.count += 1
        return fits and self.tries(rest, place + 1, end)


def test_a_match_that_is_counted_beyond_the_value_ends_the_feature() -> None:
    """As `wapiti dump` shows the features of a model with this pattern."""
    patterns = WapitiPatterns.parse('u:%m[0,0,".?.$"]/%x[0,0]\nu:%m[0,0,".?g"]/\nu:%m[-1,0,".?.?.?.?.?.$"]/')
    rows = ["x", "dog", "gab"]
    assert patterns.expand(rows, 0)[0] == ["u:x", "u:/", "u:_x-1"]
    assert patterns.expand(rows, 1)[0] == ["u:og/dog", "u:og/", "u:x"]
    assert patterns.expand(rows, 2)[0] == ["u:ab/gab", "u:ga/", "u:dog"]
    check(patterns, [rows], [[*rows, "x"]])


def test_expressions_that_could_take_forever_do_not() -> None:
    assert WapitiRegex(".*" * 200 + "x$").find(b"a" * 200) is None


ROW = st.integers(-6, 6)
COMMAND = st.builds(
    "%{}[{}{},{}]".format, st.sampled_from("xX"), st.sampled_from(["", "@"]), ROW, st.integers(0, 1)
) | (
    st.builds(
        '%{}[{}{},{},"{}"]'.format,
        st.sampled_from("tmTM"),
        st.sampled_from(["", "@"]),
        ROW,
        st.integers(0, 1),
        st.sampled_from([".?.?$", "^.*a", r"\u", "", r"_x.\d", "[.]"]),
    )
)
PATTERN = st.builds(
    lambda kind, parts: kind + "!" * bool(parts) + "".join(literal + command for literal, command in parts),
    st.sampled_from("uUbB*"),
    st.lists(st.tuples(st.text("a/:", max_size=2), COMMAND), max_size=3),
)
SENTENCES = st.lists(st.lists(st.tuples(CELL, CELL), max_size=5), max_size=3)


@settings(max_examples=60, deadline=None)
@given(st.lists(PATTERN, min_size=1, max_size=4), SENTENCES, SENTENCES)
def test_the_extractor_makes_what_expand_says(
    patterns: list[str], train: list[list[tuple[str, str]]], test: list[list[tuple[str, str]]]
) -> None:
    check(WapitiPatterns.parse("\n".join(patterns)), train, test)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no line that begins with u, b or"),
        ("# only this", "no line that begins with u, b or"),
        ("x:%x[0,0]", "must begin with u, b"),
        ("u:%x[0]", "expected %x"),
        ("u:%x[*0,0]", "expected %x"),
        ('u:%x[0,0,"a"]', "expected %x"),
        ("u:%t[0,0]", "expected %x"),
        ('u:%m[0,0,"a**"]', "nothing before it"),
        ('u:%m[0,0,"a]', "expected %x"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, said: str) -> None:
    with pytest.raises(TemplateError, match=re.escape(said)):
        WapitiPatterns.parse(text, "p.txt")
    if text.startswith(("u", "x")):
        with pytest.raises(TemplateError, match=r"^p\.txt:1"):
            WapitiPatterns.parse(text, "p.txt")


def test_boundaries() -> None:
    patterns = WapitiPatterns.parse('u:%x[-6,0] %X[9,0] %t[-1,0,"_x-1"] %m[@-9,0,".$"]')
    assert patterns.expand(["a", "b"], 0)[0] == ["u:_x-# _x+# true #"]
    assert WapitiPatterns.parse("u:%x[@0,0]/%x[@1,0]/%x[@-1,0]").expand(["a", "b"], 1)[0] == ["u:_x-1/a/b"]
