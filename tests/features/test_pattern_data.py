"""Patterns of data sets: gates, n-grams and affixes, functions, and matchers beside matches found by `re`."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from crfkit import Affixes, Growth, InputError, Ngrams, Pattern, Patterns
from crfkit.errors import ArgumentError, PatternError
from crfkit.features import Annotation, Dataset, FeatureList, PatternData, PatternMap
from crfkit.structures import ANYWHERE, FIRST, LAST, Gram, parse_gate

LABELS = ("A", "B", "C")
Input = list[dict[str, Any]]


class Loose:
    """The makers without their types, to be given what they refuse."""

    Pattern: Any = Pattern
    Patterns: Any = Patterns
    Growth: Any = Growth
    Ngrams: Any = Ngrams
    Affixes: Any = Affixes


def dataset(inputs: Sequence[Sequence[Any]]) -> Dataset:
    ptr = np.concatenate([[0], np.cumsum([len(x) for x in inputs])]).astype(np.int64)
    nothing = FeatureList(np.zeros(int(ptr[-1]) + 1, np.int64), np.zeros(0, np.int32), None)
    return Dataset(ptr, nothing, inputs=inputs)


def annotation(words: Sequence[str]) -> Annotation:
    return Annotation(np.array([LABELS.index(label) for label in "".join(words)], np.int32))


def learn(patterns: Patterns, words: Sequence[str], inputs: Sequence[Any] | None = None, **more: Any) -> Any:
    given = [[{"w": label} for label in word] for word in words] if inputs is None else inputs
    return PatternMap.learn(
        patterns, LABELS, dataset(given), annotation(words), columns=more.pop("columns", False), **more
    )


def counts(found: PatternData, n: int, ptr: npt.NDArray[np.int64], word: str) -> list[float]:
    """How often each weight is active in one label sequence of sequence n."""
    begin, end = int(ptr[n]), int(ptr[n + 1])
    output = [LABELS.index(label) for label in word]
    active = found.matcher.counts(output, *found.of_positions(begin, end))
    return [float(count) for count in active]


def repeated_words(x: Input) -> Iterator[tuple[Any, ...]]:
    """The same word twice: one weight if both have the same label A or B; the second half as strong for far ones."""
    for i, j in itertools.combinations(range(len(x)), 2):
        if x[i]["w"] == x[j]["w"]:
            yield i, [{"A", "B"}, *[None] * (j - i - 1), ["A", "B"]], "twice"
            yield i, ["A", *[None] * (j - i)], f"A before {x[j]['w']}", 1 / (j - i)


def test_all_kinds_in_one_matcher() -> None:
    words = ["ABCAB", "BB", "CABBA"]
    inputs = [[{"w": w} for w in text] for text in ("xyxzx", "yy", "zzxyz")]
    structure = Patterns(
        [
            "A B* C?",
            Pattern("^.{2}", when="w=x"),
            Pattern("!A $", weight="A B", when=lambda x, t: t / 2),
            Ngrams([2, 3], min_count={2: 2}),
            Affixes(2, most=3),
            repeated_words,
        ]
    )
    patterns, found = learn(structure, words, inputs)
    ptr = dataset(inputs).sequence_ptr
    for n, x in enumerate(inputs):
        for letters in itertools.product(LABELS, repeat=len(x)):
            word = "".join(letters)
            wanted = Counter[str]()
            for begin, end in itertools.combinations(range(len(word) + 1), 2):
                part = word[begin:end]
                if re.fullmatch("AB*C?", part):
                    wanted["A B* C?"] += 1
                if re.fullmatch("..", part) and begin == 0 and x[0]["w"] == "x":
                    wanted["^.{2} when w=x"] += 1
                if part in ("A", "B", "C") and part != "A" and end == len(word):
                    wanted["A B"] += begin / 2  # type: ignore[assignment]
                for name in patterns.names:
                    bare = name.strip("^$").replace(" ", "")
                    is_gram = re.fullmatch(r"\^?[ABC]( [ABC])*\$?", name)
                    fits = (begin == 0 or name[0] != "^") and (end == len(word) or name[-1] != "$")
                    wanted[name] += bool(is_gram and bare == part and fits)
            for i, j in itertools.combinations(range(len(x)), 2):
                if x[i]["w"] == x[j]["w"]:
                    wanted["twice"] += word[i] in "AB" and word[j] in "AB"
                    wanted[f"A before {x[j]['w']}"] += (word[i] == "A") / (j - i)  # type: ignore[assignment]
            got = counts(found, n, ptr, word)
            assert got == pytest.approx([wanted[name] for name in patterns.names])
    assert {"twice", "A before x", "A before y", "A before z"} <= set(patterns.names)
    again = patterns.data(dataset(inputs))
    for one, other in zip(found[1:], again[1:], strict=True):
        np.testing.assert_array_equal(one, other)


def test_ngrams_are_counted() -> None:
    words = ["ABAB", "ABC", "A"]
    ids, ptr = annotation(words).labels, np.array([0, 4, 7, 8])
    assert Ngrams(2).grams(ids, ptr) == [
        Gram(ANYWHERE, run) for run in ((0, 1), (1, 0), (1, 2))
    ]  # AB 3 times, BA and BC once
    assert Ngrams(2, min_count=2).grams(ids, ptr) == [Gram(ANYWHERE, (0, 1))]
    assert Ngrams((3, 2), min_count={2: 2}, most={3: 1}).grams(ids, ptr) == [
        Gram(ANYWHERE, (0, 1, 0)),
        Gram(ANYWHERE, (0, 1)),
    ]
    unknown = ids.copy()
    unknown[1] = -1
    assert Ngrams(2).grams(unknown, ptr) == [Gram(ANYWHERE, run) for run in ((0, 1), (1, 2))]
    assert Ngrams(5).grams(ids, ptr) == []


def test_ngrams_beside_a_plain_count() -> None:
    random = np.random.default_rng(0)
    lengths = random.integers(0, 9, size=60)
    ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    ids = random.integers(-1, 4, size=int(ptr[-1])).astype(np.int32)
    for length in (1, 2, 3, 5):
        plain = Counter(
            tuple(ids[at : at + length].tolist())
            for begin, end in itertools.pairwise(ptr.tolist())
            for at in range(begin, end - length + 1)
            if min(ids[at : at + length]) >= 0
        )
        wanted = sorted((run for run, n in plain.items() if n >= 2), key=lambda run: (-plain[run], run))
        assert [gram.labels for gram in Ngrams(length, min_count=2).grams(ids, ptr)] == wanted


def test_affixes_of_words() -> None:
    nothing = (np.zeros(0, np.int32), np.zeros(1, np.int64), LABELS)
    words = ["ABC", "AB", "xAB", "BAx"]
    grams = Affixes(2, of=words).grams(*nothing)
    assert Gram(FIRST, (0,)) in grams
    assert Gram(LAST, (0, 1)) in grams  # of AB and of xAB
    assert Gram(FIRST, (1, 0)) in grams
    assert Gram(LAST, (1, 0)) not in grams  # BAx ends in what is no label
    most = Affixes(2, of={"AB": 5, "CB": 1}, most={1: 1, 2: 2}, prefixes=False).grams(*nothing)
    assert most == [Gram(LAST, (1,)), Gram(LAST, (0, 1)), Gram(LAST, (2, 1))]
    assert Gram(LAST, (0, 1)).text(LABELS) == "A B$"
    assert Gram(FIRST, (0, 0)).text(["a b"]) == '^"a b" "a b"'


def test_grams_are_one_start_a_position() -> None:
    random = np.random.default_rng(1)
    words = ["".join(random.choice(LABELS, size=8)) for _ in range(20)]
    patterns, found = learn(Patterns([Ngrams([2, 3, 4])]), words)
    assert patterns.n_weights > 50
    assert len(found.common) == 1
    assert len(found.start_states) == 0
    assert found.start_values is None


@pytest.mark.parametrize(
    ("when", "is_open"),
    [
        ("w=Rome", [0, 1, 0]),
        ("w=in|Rome", [1, 1, 0]),
        ("!w=Rome", [1, 0, 1]),
        ("w[1]=Rome", [1, 0, 0]),
        ("w[-1]=Rome & end", [0, 0, 1]),
        ("up", [0, 1, 0]),
        ("!up[1]", [0, 1, 1]),
        ('w="Rome"', [0, 1, 0]),
        ("flags=b", [0, 1, 0]),
        ("ctx:p=x", [1, 0, 0]),
        ("len", [1, 1, 0]),
    ],
)
def test_gates_on_features(when: str, is_open: list[int]) -> None:
    position = {"w": "Rome", "up": True, "flags": ["a", "b"], "len": 4.0}
    x = [{"w": "in", "up": False, "ctx": {"p": "x"}, "len": 2}, position, ["w=is", "end"]]
    _, found = learn(Patterns([Pattern(".", when=when)]), ["AAA"], [x])
    assert np.diff(found.start_ptr).tolist() == is_open


@pytest.mark.parametrize(
    ("when", "is_open"),
    [
        ("word=Rome", [0, 1, 0]),
        ("0=Rome & 1=N", [0, 1, 0]),
        ("1[-1]=P", [0, 1, 0]),
        ("%lower[0,0]=rome|.", [0, 1, 1]),
        ("%is_title[1,0]", [1, 0, 1]),  # beyond the end there is the mark _B+1, as in templates
        ("%suffix[0,0,2]=me", [0, 1, 0]),
        ("!%x[-1,0]=_B-1", [0, 1, 1]),
    ],
)
def test_gates_on_columns(when: str, is_open: list[int]) -> None:
    x = [("in", "P"), ("Rome", "N"), (".", ".")]
    _, found = learn(Patterns([Pattern(".", when=when)]), ["AAA"], [x], columns=True)
    assert np.diff(found.start_ptr).tolist() == is_open


def test_gates_that_are_functions_count_with_their_value() -> None:
    asked: list[int] = []

    def gate(x: Input, t: int) -> float:
        asked.append(t)
        return [0.0, 2.5, True][t]

    _, found = learn(Patterns([Pattern("A", when=gate), Pattern("A .", when=gate)]), ["AAA"])
    assert found.start_ptr.tolist() == [0, 0, 2, 3]
    assert found.start_values is not None
    assert found.start_values.tolist() == [2.5, 2.5, 1.0]
    assert asked == [0, 1, 2]


@pytest.mark.parametrize(
    ("text", "at", "what"),
    [
        ("", 1, "expected a name"),
        ("w=", 3, "expected a value"),
        ("w=a &", 6, "expected a name"),
        ("w=a b", 4, "expected & or the end"),
        ("w!=a", 2, "expected & or the end; ! negates what follows, or must be quoted"),
        ("w=Yahoo!", 8, "expected & or the end; ! negates"),
        ("w[x]=a", 2, "expected a whole number of positions"),
        ("%x[0]=a", 1, "expected %function"),
    ],
)
def test_bad_gates_are_shown_with_their_place(text: str, at: int, what: str) -> None:
    with pytest.raises(PatternError, match=f"^Gate, character {at}: {what}") as complaint:
        parse_gate(text)
    assert str(complaint.value).splitlines()[2].index("^") - 4 == at - 1


@pytest.mark.parametrize(
    ("pattern", "columns", "what"),
    [
        (Pattern("A", when="%x[0,0]=a"), False, "reads %x"),
        (Pattern("A", when="w=a"), True, "the gate asks for 'w'"),
        (Pattern("A", when="%nosuch[0,0]"), True, "unknown function %nosuch"),
        (Pattern("A", when=lambda x, t: x[9]), False, "sequence 0, position 0: the gate '<lambda>' failed"),
        (
            Loose.Pattern("A", when=lambda x, t: "no"),
            False,
            "gives 'no', expected True, False or a finite number",
        ),
        (Pattern("A", when=lambda x, t: float("nan")), False, "gives nan"),
        (Pattern("X"), False, "Pattern 'X': there is no label 'X'; the labels are A, B, C"),
        (lambda x: 3, False, "sequence 0: the pattern function '<lambda>' failed"),
        (lambda x: [3], False, r"gives 3, expected \(first position"),
        (lambda x: [(0, ["A"], 3)], False, "gives the weight 3, expected a name"),
        (lambda x: [(0, "A", "n")], False, "gives the labels 'A', expected a list"),
        (lambda x: [(0, ["X"], "n")], False, "gives 'X', expected labels among A, B, C"),
        (lambda x: [(0, [set()], "n")], False, "a position without labels"),
        (
            lambda x: [(2, ["A", None], "n")],
            False,
            "gives 2 positions from position 2 on, expected some of the 3",
        ),
        (lambda x: [(-1, ["A"], "n")], False, "from position -1 on"),
        (lambda x: [(0, ["A"], "n", None)], False, "gives the value None, expected a finite number"),
    ],
)
def test_what_is_said_of_bad_patterns(pattern: Any, columns: bool, what: str) -> None:
    with pytest.raises(InputError, match=what):
        learn(Patterns([pattern]), ["AAA"], columns=columns)


def test_names_that_training_did_not_see_are_ignored() -> None:
    patterns, _ = learn(Patterns([repeated_words]), ["ABA"])
    assert patterns.names == ["twice", "A before A"]
    found = patterns.data(dataset([[{"w": "z"}, {"w": "z"}]]))
    assert np.diff(found.start_ptr).tolist() == [1, 0]


def test_unused_weights_can_be_left_out() -> None:
    patterns, _ = learn(Patterns(["A", Ngrams(2), repeated_words]), ["ABA"])
    assert patterns.names == ["A", "A B", "B A", "twice", "A before A"]
    smaller, kept = patterns.keep(np.array([0, 1, 0, 0, 1], np.bool_))
    assert smaller.names == ["A", "A B", "A before A"]  # what is written stays
    assert kept.tolist() == [True, True, False, False, True]


def test_plain_runs_that_are_written_are_grams_and_stay() -> None:
    patterns, found = learn(Patterns(["A B", "C", "C$", "B | A", Ngrams(2)]), ["ABCA"])
    assert patterns.names == ["B | A", "A B", "C", "C$", "B C", "C A"]
    assert len(found.common) == 2  # one for B | A, one for the runs anywhere
    assert np.diff(found.start_ptr).max() == 1  # and one for those at the end
    smaller, kept = patterns.keep(np.zeros(6, np.bool_))
    assert smaller.names == ["B | A", "A B", "C", "C$"]
    assert kept.tolist() == [True, True, True, True, False, False]


def test_gates_do_not_look_into_the_sequence_before() -> None:
    x = [[{"w": "a"}, {"w": "b"}], [{"w": "c"}, {"w": "a"}]]
    _, found = learn(Patterns([Pattern(".", when="w[-1]=b"), Pattern("..", when="!w[1]=a")]), ["AA", "AA"], x)
    assert np.diff(found.start_ptr).tolist() == [1, 0, 0, 0]
    _, found = learn(Patterns([Pattern(".", when="w[1]=c")]), ["AA", "AA"], x)
    assert np.diff(found.start_ptr).tolist() == [0, 0, 0, 0]


def test_the_weights_that_data_can_reach() -> None:
    _, found = learn(Patterns([Pattern("A", when="w=A"), Pattern("B", when="w=Z"), "A B"]), ["AC"])
    assert found.reachable(3).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: Loose.Patterns("A B"), "expected a list"),
        (lambda: Loose.Patterns([3]), "the entry 3, expected a Pattern"),
        (lambda: Loose.Patterns([], bigrams="nosuch"), r"Patterns\.bigrams"),
        (lambda: Loose.Patterns([], max_states=0), "max_states is 0"),
        (lambda: Loose.Patterns([], max_states=1e5), "max_states is 100000.0, expected a whole number"),
        (lambda: Loose.Patterns([], max_states=True), "max_states is True"),
        (lambda: Loose.Patterns([], grow=3), "grow is 3"),
        (lambda: Loose.Growth(order=0), r"Growth\.order"),
        (lambda: Loose.Growth(min_gain=-1), r"Growth\.min_gain"),
        (lambda: Loose.Growth(units=-1), r"Growth\.units"),
        (lambda: Loose.Growth(max_states=0.5), r"Growth\.max_states"),
        (
            lambda: Loose.Growth(max_states=float("inf")),
            r"Growth\.max_states",
        ),
        (lambda: Loose.Growth(held_out=1), r"Growth\.held_out"),
        (lambda: Loose.Ngrams(0), "the length 0"),
        (lambda: Loose.Ngrams("ab"), "lengths"),
        (lambda: Loose.Ngrams([]), "no length is given"),
        (lambda: Loose.Ngrams(2, min_count=-1), r"Ngrams\.min_count"),
        (lambda: Loose.Affixes(2, most={1: "x"}), r"Affixes\.most"),
        (lambda: Loose.Affixes(2, of="abc"), "expected a list of sequences"),
        (lambda: Loose.Affixes(2, of=[3]), r"Affixes\.of"),
        (
            lambda: Loose.Affixes(2, of=[[["A"]]]),
            r"Affixes\.of",
        ),
        (lambda: Loose.Affixes(2, of={"A": "x"}), "'A' counts 'x' times, expected a number of at least 0"),
        (lambda: Loose.Affixes(2, prefixes=False, suffixes=False), "prefixes and suffixes are both False"),
    ],
)
def test_bad_structures(make: Any, what: str) -> None:
    with pytest.raises(ArgumentError, match=what):
        make()


def test_a_structure_says_what_it_is() -> None:
    structure = Patterns(["A", Ngrams(3), Affixes(1, of=["ab"]), repeated_words], end=False, grow=True)
    assert repr(structure) == (
        "Patterns(['A', Ngrams(lengths=(3,), min_count=1, most=None), Affixes((1,), of=1 sequences, min_count=1, "
        "most=None, prefixes=True, suffixes=True), repeated_words], end=False, grow=Growth(order=5, units=5, per_round=30, "
        "min_count=3, min_gain=2.0, max_states=4.0, held_out=0.1, patience=1))"
    )
