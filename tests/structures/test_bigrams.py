"""Sets of label pairs: membership, algebra, schemes, pictures."""
# mypy: disable-error-code="comparison-overlap"

from __future__ import annotations

import copy
import itertools
import pickle
import re
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit.errors import ArgumentError
from crfkit.structures import END, SCHEMES, START, Bigrams, Chain

PAIRS = [(START, "a"), ("a", "b"), ("b", "b"), ("b", END), ("a", END)]
B = Bigrams(PAIRS)


def test_start_and_end_are_themselves_and_nothing_else() -> None:
    for boundary in (START, END):
        assert pickle.loads(pickle.dumps(boundary)) is boundary
        assert copy.deepcopy(boundary) is boundary
    assert START is crfkit.START
    assert (repr(START), str(END)) == ("START", "END")
    assert len({START, END, "START", "END", "(start)"}) == 5
    assert START != "START"


def test_membership_and_lookup() -> None:
    assert ("a", "b") in B
    assert ("b", "a") not in B
    assert "ab" not in B
    assert ("a", "b", "b") not in B
    assert B.after("a") == {"b", END}
    assert B.before("b") == {"a", "b"}
    assert B.before(END) == {"a", "b"}
    assert B.after("nosuch") == B.before(START) == frozenset()
    assert len(B) == 5
    assert B.labels == ("a", "b")
    assert repr(B) == "<Bigrams: 5 pairs of 2 labels>"


def test_the_order_is_the_same_in_every_run() -> None:
    assert list(B) == [(START, "a"), ("a", "b"), ("a", END), ("b", "b"), ("b", END)]
    assert list(Bigrams(reversed(PAIRS))) == list(B)
    mixed = [(1, "a"), ("a", 1), ((2,), "a"), (START, END)]
    assert list(Bigrams(mixed)) == list(Bigrams(reversed(mixed)))


def test_they_are_sets() -> None:
    random = np.random.default_rng(0)
    labels = ["a", "b", "c"]
    everything = [(x, y) for x in (START, *labels) for y in (*labels, END)]
    for _ in range(20):
        one, other = ({pair for pair in everything if random.random() < 0.5} for _ in range(2))
        for left, right in ((Bigrams(one), Bigrams(other)), (Bigrams(one), other)):
            assert left | right == one | other
            assert left & right == one & other
            assert left - right == one - other
            assert left ^ right == one ^ other
            assert isinstance(left | right, Bigrams)
            assert (left <= right) == (one <= other)
        assert isinstance(one - Bigrams(other), Bigrams)
        assert hash(Bigrams(one)) == hash(Bigrams(list(one))) == hash(frozenset(one))
        assert (Bigrams(one) == Bigrams(other)) == (one == other)
    assert Bigrams() == set()
    assert Bigrams.all(labels) == set(everything)


def test_they_are_copied_and_pickled() -> None:
    hash(B)
    for again in (pickle.loads(pickle.dumps(B)), copy.deepcopy(B)):
        assert again == B
        assert list(again) == list(B)


def test_observed_pairs() -> None:
    assert Bigrams.observed([["a", "b"], ["b", "b"]]) == {
        (START, "a"), ("a", "b"), ("b", END), (START, "b"), ("b", "b"),
    }  # fmt: skip
    assert Bigrams.observed([[]]) == {(START, END)}
    assert Bigrams.observed([["a", None, "b"]]) == {(START, "a"), ("b", END)}
    assert Bigrams.observed([[{"a", "b"}, "c"]]) == {
        (START, "a"), (START, "b"), ("a", "c"), ("b", "c"), ("c", END),
    }  # fmt: skip
    assert Bigrams.observed([[1, (2, 3)]]).allows([1, (2, 3)])


def test_pairs_by_a_predicate() -> None:
    rising = Bigrams.where(
        lambda before, after: START in (before, after) or after is END or before < after, [1, 2, 3]
    )
    assert rising.allows([1, 3])
    assert rising.allows([])
    assert not rising.allows([2, 1])
    assert len(rising) == 4 + 3 + 3


def test_what_is_missing_in_a_sequence() -> None:
    assert list(B.missing(["b", "a"])) == [(0, START, "b"), (1, "b", "a")]
    assert list(B.missing([])) == [(0, START, END)]
    assert list(B.missing(["a", "b", "b"])) == []
    assert [missing.position for missing in B.missing(["x"])] == [0, 1]


def test_ids_and_back() -> None:
    before, after = B.ids(["b", "a"])
    assert before.dtype == after.dtype == np.int32
    assert list(zip(before.tolist(), after.tolist(), strict=True)) == [(0, 0), (0, 2), (1, 0), (1, 2), (2, 1)]
    assert Bigrams.from_ids(["b", "a"], before, after) == B
    assert [part.tolist() for part in B.ids(["a"])] == [[0, 1], [1, 0]]  # what names b is left out
    odd = Bigrams([("a", START), (END, "a"), (START, END)])  # only the last can occur
    assert [part.tolist() for part in odd.ids(["a"])] == [[1], [1]]
    assert [part.tolist() for part in Bigrams().ids(["a"])] == [[], []]


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (["ab"], "got 'ab', expected pairs of labels"),
        ([("a",)], "expected pairs of labels"),
        ([("a", "b", "c")], "expected pairs of labels"),
        ([("a", None)], "None in .* is not a label"),
        ([("a", {"b"})], "is not a label"),
        ([(["a"], "b")], r"the label \['a'\] .* is not hashable"),
    ],
)
def test_what_are_no_pairs_is_refused(pairs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Bigrams(pairs)


def test_a_string_is_no_sequence_of_labels() -> None:
    with pytest.raises(ArgumentError, match="sequence 1"):
        Bigrams.observed([["a"], "ab"])


# ---- schemes, against regular expressions over whole sequences

X, Y = "-X ", "-Y "
GRAMMARS = {
    "bio": f"(O |B{X}(I{X})*|B{Y}(I{Y})*)*",
    "iob2": f"(O |B{X}(I{X})*|B{Y}(I{Y})*)*",
    # runs of one type begin with I; B only parts two spans of the same type
    "iob1": f"(O |I{X}([BI]{X})*|I{Y}([BI]{Y})*)*",
    "iobes": f"(O |S{X}|S{Y}|B{X}(I{X})*E{X}|B{Y}(I{Y})*E{Y})*",
    "bioes": f"(O |S{X}|S{Y}|B{X}(I{X})*E{X}|B{Y}(I{Y})*E{Y})*",
    "bilou": f"(O |U{X}|U{Y}|B{X}(I{X})*L{X}|B{Y}(I{Y})*L{Y})*",
    "bmes": f"(O |S{X}|S{Y}|B{X}(M{X})*E{X}|B{Y}(M{Y})*E{Y})*",
}


def test_every_scheme_has_its_grammar() -> None:
    assert set(GRAMMARS) == set(SCHEMES)


@pytest.mark.parametrize("name", GRAMMARS)
def test_schemes_allow_the_well_formed_sequences(name: str) -> None:
    labels = ["O", *(f"{letter}-{kind}" for letter in SCHEMES[name] for kind in "XY")]
    bigrams = Bigrams.scheme(name.upper(), labels)
    grammar = re.compile(GRAMMARS[name])
    counts = {True: 0, False: 0}
    for length in range(5 if len(labels) < 6 else 4):
        for sequence in itertools.product(labels, repeat=length):
            well_formed = grammar.fullmatch("".join(f"{label} " for label in sequence)) is not None
            assert bigrams.allows(sequence) == well_formed, sequence
            counts[well_formed] += 1
    assert min(counts.values()) > 20


def test_letters_without_types_and_without_outside() -> None:
    words = Bigrams.scheme("bmes", ["B", "M", "E", "S"])
    assert words.allows(["B", "M", "E", "S"])
    assert not words.allows(["B", "S"])
    assert not words.allows(["B"])


@pytest.mark.parametrize(
    ("name", "labels", "message"),
    [
        (
            "bio",
            ["O", "B-PER", "E-PER"],
            r"The label 'E-PER' is none of the scheme bio: expected O, B-type, I-type\. The labels are those of iobes\.",
        ),
        ("bio", ["NOUN"], "The label 'NOUN' is none.* Labels without these letters have no scheme"),
        ("bmes", ["O", "I-A", "B-A"], r"The label 'I-A' is none.* The labels are those of bio\."),
        ("bio", ["PER-B"], "The label 'PER-B' is none"),
        ("bilou", [3], "The label 3 is none of the scheme bilou: expected O, B-type, I-type, L-type, U-type"),
        ("xyz", ["O"], "Unknown scheme of span labels 'xyz', expected one of bio, iob2, iob1"),
    ],
)
def test_labels_that_do_not_fit_the_scheme(name: str, labels: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Bigrams.scheme(name, labels)


# ---- pictures


def test_the_picture_in_text() -> None:
    assert str(B).splitlines() == [
        "5 of 9 pairs (55.6 %)",
        "      a b END",
        "START ● ·  ·",
        "a     · ●  ●",
        "b     · ●  ●",
    ]
    many = Bigrams([(START, 0), *((i, i + 1) for i in range(99)), (99, END), (7, 3), (7, 5)])
    lines = str(many).splitlines()
    assert lines[:3] == ["103 of 10,201 pairs (1.0 %)", "followers of a label: 1.0 on average", "       3  7"]
    assert len(lines) == 2 + 5 + 1 + 5


def test_the_picture_in_a_notebook() -> None:
    html = Bigrams([(START, "<x>"), ("<x>", "<x>"), ("<x>", END)])._repr_html_()
    assert "3 of 4 pairs" in html
    assert "&lt;x&gt;" in html
    assert "<x>" not in html
    assert html.count("<text") == 4
    assert 'd="M0 0h1v1h-1zM0 1h2v1h-2z"' in html
    many = Bigrams.all(range(200))._repr_html_()
    assert "<text" not in many
    assert many.count("M0 ") == 201  # one run for each row
    assert "0 of 1 pairs" in Bigrams()._repr_html_()


# ---- a chain and its bigrams


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"bigrams": "nosuch"},
            r"Chain\.bigrams",
        ),
        ({"bigrams": {("a", "b")}}, r"Chain\.bigrams"),
        ({"bigrams": "bio", "unseen": "ignore"}, r"Chain\.unseen"),
    ],
)
def test_a_chain_refuses_other_constraints(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Chain(**settings)


def test_a_chain_shows_its_constraint() -> None:
    assert repr(Chain(bigrams="bio")) == "Chain(start=True, end=True, bigrams='bio', unseen='error')"
    bound = Chain(bigrams=B, unseen="soft").bind("ab", [])
    assert repr(bound).endswith("bigrams=<Bigrams: 5 pairs of 2 labels>, unseen='soft')")
    assert bound == pickle.loads(pickle.dumps(bound)) == copy.deepcopy(bound)
    assert bound != Chain(bigrams=B, unseen="soft").bind("ba", [])
    assert len({bound, Chain(bigrams=B), Chain()}) == 3
