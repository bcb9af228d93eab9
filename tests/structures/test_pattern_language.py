"""The language of patterns, beside Python's `re` on strings of labels; its automata; and what is said of bad patterns."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit import CRF, Pattern, Patterns
from crfkit.errors import ArgumentError, PatternError
from crfkit.structures import Effort, MatcherWriter, write_pattern
from crfkit.structures.pattern_automaton import Automaton, automaton
from crfkit.structures.pattern_language import parse, quote

LABELS = ["A", "B", "C"]

# The same pattern in both languages, written side by side: (ours, that of re over one letter per position).
Both = tuple[str, str]


def positions() -> st.SearchStrategy[Both]:
    label = st.sampled_from(LABELS).map(lambda name: (name, name))
    wrapped = st.sampled_from(LABELS).map(lambda name: (f'"{name}"', name))
    several = st.lists(st.sampled_from(LABELS), min_size=1, max_size=3).map(
        lambda names: (f"({' | '.join(names)})", f"[{''.join(names)}]")
    )
    others = st.lists(st.sampled_from(LABELS), min_size=1, max_size=2).map(
        lambda names: (f"!({'|'.join(names)})", f"[^{''.join(names)}]")
    )
    return st.one_of(label, wrapped, several, others, st.just((".", ".")), st.just(("!A", "[^A]")))


def longer(inner: st.SearchStrategy[Both]) -> st.SearchStrategy[Both]:
    def brackets(both: Both) -> Both:
        return f"({both[0]})", f"(?:{both[1]})"

    quantifier = st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,2}", "{1,}"])
    repeated = st.tuples(inner.map(brackets), quantifier).map(lambda t: (t[0][0] + t[1], t[0][1] + t[1]))
    in_order = st.lists(inner.map(brackets), min_size=1, max_size=3).map(
        lambda parts: (" ".join(part[0] for part in parts), "".join(part[1] for part in parts))
    )
    either = st.lists(inner.map(brackets), min_size=2, max_size=3).map(
        lambda parts: ("|".join(part[0] for part in parts), "|".join(part[1] for part in parts))
    )
    return st.one_of(repeated, in_order, either)


BOTH = st.recursive(positions(), longer, max_leaves=6)
WORDS = st.text(alphabet="ABC", max_size=7)


def intervals(expression: str, word: str, *, first: bool, last: bool) -> set[tuple[int, int]]:
    """The intervals (begin, end) of a string that match, by `re`; empty ones do not count."""
    compiled = re.compile(expression)
    return {
        (begin, end)
        for begin in range(1 if first else len(word))
        for end in range(begin + 1, len(word) + 1)
        if (end == len(word) or not last) and compiled.fullmatch(word, begin, end)
    }


def accepted(found: Automaton | None, word: str) -> set[tuple[int, int]]:
    """The intervals of a string that an automaton accepts."""
    intervals = set()
    for begin in range(len(word) if found is not None else 0):
        assert found is not None
        state = 0
        for end in range(begin, len(word)):
            bit = 1 << LABELS.index(word[end])
            reached = [to for labels, to in found.arcs[state] if labels & bit]
            assert len(reached) <= 1  # deterministic
            if not reached:
                break
            state = reached[0]
            if found.accepts[state]:
                intervals.add((begin, end + 1))
    return intervals


@given(BOTH, st.lists(WORDS, min_size=1, max_size=5))
def test_patterns_match_what_re_matches(both: Both, words: list[str]) -> None:
    ours, theirs = both
    found = automaton(parse(ours), LABELS)
    for word in words:
        assert accepted(found, word) == intervals(theirs, word, first=False, last=False)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("A B?", "AB?"),
        ("A? B? C", "A?B?C"),
        ("A* B* A*", "A*B*A*"),
        ("(A B?)+ C", "(?:AB?)+C"),
        ("(A|(B C))* A", "(?:A|BC)*A"),
        ("A{2,3} !A{1,2}", "A{2,3}[^A]{1,2}"),
        ("(A . ){2} B", "(?:A.){2}B"),
        (". A? (B|!C)*", ".A?[AB]*"),
    ],
)
def test_patterns_on_all_short_words(ours: str, theirs: str) -> None:
    found = automaton(parse(ours), LABELS)
    for length in range(6):
        for letters in itertools.product(LABELS, repeat=length):
            word = "".join(letters)
            assert accepted(found, word) == intervals(theirs, word, first=False, last=False)


@given(BOTH, st.booleans(), st.booleans(), WORDS)
def test_matchers_count_what_re_matches(both: Both, first: bool, last: bool, word: str) -> None:
    ours, theirs = both
    pattern = Pattern("^" * first + ours + "$" * last)
    found = pattern.automaton(LABELS)
    if found is None:
        assert not intervals(theirs, word, first=first, last=last)
        return
    writer = MatcherWriter(len(LABELS))
    rule = write_pattern(writer, found, 0, first=first, last=last)
    ptr = np.array([0, len(word)])
    begins = rule.positions(ptr)
    start_ptr = np.concatenate([[0], np.cumsum(np.bincount(begins, minlength=len(word)))])
    states = np.full(len(begins), rule.state, np.int32)
    output = [LABELS.index(label) for label in word]
    counts = writer.matcher().counts(output, start_ptr, states, np.ones(len(begins)))
    assert counts.tolist() == [len(intervals(theirs, word, first=first, last=last))]


@given(BOTH)
def test_automata_are_smallest(both: Both) -> None:
    """No two states after the first have the same future, by brute force over short continuations."""
    found = automaton(parse(both[0]), LABELS)
    if found is None:
        return

    def future(state: int, depth: int) -> tuple[object, ...]:
        if depth == 0:
            return (found.accepts[state],)
        reached = []
        for bit in (1, 2, 4):
            to = [next_state for labels, next_state in found.arcs[state] if labels & bit]
            reached.append(future(to[0], depth - 1) if to else None)
        return (found.accepts[state], *reached)

    depth = min(len(found.accepts), 5)
    futures = [future(q, depth) for q in range(1, len(found.accepts))]
    if len(found.accepts) <= 5:
        assert len(set(futures)) == len(futures)


@given(BOTH)
def test_lengths_of_matches(both: Both) -> None:
    found = automaton(parse(both[0]), LABELS)
    if found is None:
        return
    least, most = found.lengths()
    reached, accepting = {0}, []
    for n in range(1, 40):
        reached = {to for q in reached for _, to in found.arcs[q]}
        if any(found.accepts[q] for q in reached):
            accepting.append(n)
    assert accepting[0] == least
    if most is None:
        assert accepting[-1] > 20
    elif most < 40:
        assert accepting[-1] == most


def test_labels_may_be_any_objects() -> None:
    assert Pattern("1 (2)*").automaton([1, 2]) == Pattern("a b*").automaton(["a", "b"])
    assert Pattern("'a b' \"PRP$\"").automaton(["a b", "PRP$"]) == Pattern("a b").automaton(["a", "b"])
    assert Pattern(r'"a\"b\\"').automaton(['a"b\\']) == Pattern("a").automaton(["a"])
    with pytest.raises(PatternError, match="more than one label is written '1'"):
        Pattern("1").automaton([1, "1"])
    with pytest.raises(PatternError, match="there is no label 'X'; the labels are a, b"):
        Pattern("a !X").automaton(["a", "b"])


@given(st.text(max_size=6))
def test_quoted_labels_are_read_again(name: str) -> None:
    assert parse(quote(name)) == parse('"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"')
    assert parse(f"A {quote(name)} B").body.items[1].names == {name}  # type: ignore[union-attr]


def test_what_nothing_matches() -> None:
    assert Pattern("!(A|B|C)").automaton(LABELS) is None
    assert Pattern("A{0,1} !.").automaton(LABELS) is None


@pytest.mark.parametrize(
    ("text", "at", "what"),
    [
        ("", 1, "expected a label, found the end"),
        ("A |", 4, "expected a label, found the end"),
        ("* A", 1, r"expected a label, found \*"),
        ("A|B*", 4, "ambiguous quantifier"),
        ("(A B", 1, "this bracket is not closed"),
        ("A B)", 4, "this bracket was not opened"),
        ("A $ B", 3, r"\$ can only be the last character"),
        ("^$", 2, r"expected a label, found \$"),
        ("A ^ B", 3, r"\^ can only be the first character"),
        ("(A $)", 4, r"\$ can only be the last character"),
        ("A**", 3, "a second quantifier"),
        ("A{3,2}", 2, r"expected \{m,n\} with m ≤ n and n from 1 to 1000"),
        ("A{1001}", 2, r"expected \{m,n\} with m ≤ n and n from 1 to 1000"),
        ("A{0}", 2, r"expected \{m,n\} with m ≤ n and n from 1 to 1000"),
        ("A{x}", 2, r"expected \{m\}, \{m,\} or \{m,n\} with whole numbers"),
        ("A 'b", 3, "this quote is not closed"),
        ("B !(A B)", 3, "! matches one position"),
        ("(" * 60 + "A" + ")" * 60, 52, "more than 50 brackets"),
    ],
)
def test_bad_patterns_are_shown_with_their_place(text: str, at: int, what: str) -> None:
    with pytest.raises(PatternError, match=f"^Pattern, character {at}: {what}") as complaint:
        Pattern(text)
    line, caret = str(complaint.value).splitlines()[1:]
    assert line == f"    {text}"
    assert caret.index("^") - 4 == at - 1


def test_patterns_that_are_too_large() -> None:
    with pytest.raises(
        PatternError, match=r"Pattern .* longer than 5,000 positions with its repeats written out"
    ):
        Pattern("(A{100}){100}").automaton(LABELS)
    with pytest.raises(PatternError, match=r"its automaton has more than 20,000 states"):
        Pattern(".* A .{30}").automaton(LABELS)


@dataclass
class Asking:
    """A gate with a word of its own, which may change."""

    word: str

    def __call__(self, x: Sequence[str], t: int) -> bool:
        return x[t] == self.word


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"text": 3}, "the text is 3, expected a string"),
        ({"text": "A", "when": 3}, "when is 3, expected a condition, a function or None"),
        (
            {"text": "A", "when": Asking("a")},
            "which is not hashable, expected a function or an object that is",
        ),
        ({"text": "A", "weight": ""}, "weight is '', expected a name"),
    ],
)
def test_bad_arguments(arguments: dict[str, object], what: str) -> None:
    with pytest.raises(ArgumentError, match=what):
        Pattern(**arguments)  # type: ignore[arg-type]


def test_names_of_weights() -> None:
    assert Pattern(" A  B ").name == "A B"
    assert Pattern("A", when="w=x  & up").name == "A when w=x & up"
    assert Pattern("A", when="w=x", weight="mine").name == "mine"
    assert Pattern('"a  b"  C', when="w='x  y'  & up").name == "\"a  b\" C when w='x  y' & up"

    def gate(x: object, t: int) -> bool:
        return True

    assert Pattern("A", when=gate).name == "A when gate"


@pytest.mark.parametrize("text", ["A{1000} " * 5, "((A|B){1000} C)*", "(A?){900}", "(A{2} B?){900}"])
def test_long_repeats_compile_in_few_steps(text: str) -> None:
    """The work grows with the positions and the transitions, not with the square of the positions."""
    effort = Effort()
    assert automaton(parse(text), LABELS, effort) is not None
    assert effort.left > effort.most // 2


def test_automata_of_long_repeats() -> None:
    found = automaton(parse("((A?){40} B{3}){2}"), LABELS)
    assert found is not None
    assert found.lengths() == (6, 86)
    for word in ("BBBBBB", "A" * 40 + "BBBBBB", "AABBB" + "A" * 40 + "BBB"):
        assert (0, len(word)) in accepted(found, word)
    for word in ("BBBBB", "A" * 41 + "BBBBBB", "AABBA"):
        assert (0, len(word)) not in accepted(found, word)


def test_patterns_that_take_too_long_to_compile_are_refused() -> None:
    with pytest.raises(PatternError, match=r"take more than 2,000,000 steps to compile, expected fewer"):
        Pattern("((A?){1000}){5}").automaton(LABELS)


def test_the_patterns_of_a_model_are_bounded_together() -> None:
    several = [Pattern("(A?){900}", weight=f"w{n}") for n in range(10)]
    X, y = [[["a"], ["b"], ["c"]]], [LABELS]
    with pytest.raises(PatternError, match="steps to compile"):
        CRF(structure=Patterns(several)).fit(X, y)
