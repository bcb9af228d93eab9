"""Constrained chains before any score: what bind fixes, which labels are possible where, what is impossible and why."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from crfkit import inference
from crfkit.errors import ImpossibleLabelsError, LabelError, NoOutputError
from crfkit.structures import END, START, AllowedLabels, Bigrams, Chain, ChainScores, Outside
from tests.oracles.instances import chain_of

LABELS = ("a", "b", "c")
ALTERNATING = Bigrams([(START, "a"), ("a", "b"), ("b", "a"), ("b", END)])  # a b a b …: even lengths only


def listed(exists: Any, n_positions: int, allowed: Any = None) -> list[tuple[int, ...]]:
    """Every label sequence of this length within the pairs and the allowed labels."""
    n_labels = len(exists) - 1
    return [
        y
        for y in itertools.product(range(n_labels), repeat=n_positions)
        if all(exists[pair] for pair in itertools.pairwise((-1, *y, -1)))
        and (allowed is None or all(allowed[i, label] for i, label in enumerate(y)))
    ]


@pytest.mark.parametrize("share", [0.15, 0.3, 0.6])
def test_the_support_is_what_some_output_has(share: float) -> None:
    random = np.random.default_rng(int(100 * share))
    n_impossible = 0
    for _ in range(120):
        n_labels, n_positions = int(random.integers(1, 5)), int(random.integers(0, 6))
        exists = random.random((n_labels + 1, n_labels + 1)) < share
        chain = chain_of(exists, True, True)
        mask, allowed = None, None
        if random.random() < 0.5:
            mask = random.random((n_positions, n_labels)) < 0.7
            mask[np.arange(n_positions), random.integers(n_labels, size=n_positions)] = True
            allowed = AllowedLabels.from_mask(mask)
        outputs = listed(exists, n_positions, mask)
        scores = ChainScores(np.zeros((n_positions, n_labels)))
        if outputs:
            expected = np.zeros((n_positions, n_labels), dtype=np.bool_)
            for y in outputs:
                expected[np.arange(n_positions), y] = True
            np.testing.assert_array_equal(chain.possible_labels(n_positions, n_labels, allowed), expected)
            log_z = inference.log_partition(chain, scores, allowed=allowed)
            assert log_z == pytest.approx(np.log(len(outputs)), abs=1e-12)
        else:
            n_impossible += 1
            assert inference.log_partition(chain, scores, allowed=allowed) == -np.inf
            assert inference.k_best(chain, scores, 2, allowed=allowed) == []
            with pytest.raises(
                NoOutputError, match=f"No label sequence of length {n_positions}.* is possible: "
            ):
                chain.possible_labels(n_positions, n_labels, allowed)
            with pytest.raises(NoOutputError, match=f"length {n_positions}"):
                inference.decode(chain, scores, allowed=allowed)
    assert n_impossible > 5


@pytest.mark.parametrize(
    ("pairs", "n_positions", "sets", "message"),
    [
        ([(START, "a"), ("b", END)], 0, None, r"length 0 is possible: \(START, END\) is not in the bigrams"),
        (
            [(START, "a"), ("b", END)],
            1,
            None,
            "length 1 is possible: no label may both begin and end a sequence",
        ),
        ([("a", "b"), ("b", END)], 3, None, "length 3 is possible: no label may begin a sequence"),
        ([(START, "a"), ("a", "b")], 3, None, "length 3 is possible: no label may end a sequence"),
        (
            [(START, "a"), ("a", "b"), ("b", END)],
            5,
            None,
            "position 2",
        ),
        (ALTERNATING, 3, None, "position 2"),
        (
            ALTERNATING,
            2,
            [{"b"}, None],
            "position 0",
        ),
        (
            ALTERNATING,
            4,
            [None, None, {"b"}, None],
            "position 2",
        ),
        (ALTERNATING, 1, [{"a"}], "position 0"),
        # through END and START again would be a way, if they were labels
        (
            [(START, "a"), ("a", END), (END, "b"), ("b", END)],
            2,
            None,
            "position 1",
        ),
        ([(START, "a"), ("a", START), ("a", END)], 2, None, "position 1"),
    ],
)
def test_an_impossible_length_says_what_is_missing(
    pairs: Any, n_positions: int, sets: Any, message: str
) -> None:
    chain = Chain(bigrams=Bigrams(pairs)).bind(LABELS, [])
    allowed = None
    if sets is not None:
        allowed = AllowedLabels.from_sets(
            None if s is None else [LABELS.index(label) for label in s] for s in sets
        )
    with pytest.raises(NoOutputError, match=message):
        chain.possible_labels(n_positions, len(LABELS), allowed)


def test_many_labels_are_not_all_named() -> None:
    chain = Chain(bigrams=Bigrams([(START, i) for i in range(8)] + [(9, END)])).bind(range(10), [])
    with pytest.raises(NoOutputError, match="position 0"):
        chain.possible_labels(2, 10)


def test_supports_of_long_sequences() -> None:
    chain = Chain(bigrams=ALTERNATING).bind(LABELS, [])
    support = chain.possible_labels(20_000, 3)
    np.testing.assert_array_equal(support[::2], np.tile([True, False, False], (10_000, 1)))
    np.testing.assert_array_equal(support[1::2], np.tile([False, True, False], (10_000, 1)))
    free = Chain(bigrams=Bigrams.all(LABELS)).bind(LABELS, [])
    assert free.possible_labels(100_000, 3).all()


def test_supports_grow_under_threads() -> None:
    n_labels = 39  # round and round: no set of labels leads to itself
    circle = [
        (START, 0),
        *((i, (i + 1) % n_labels) for i in range(n_labels)),
        *((i, END) for i in range(n_labels)),
    ]
    chain = Chain(bigrams=Bigrams(circle)).bind(range(n_labels), [])
    lengths = [int(n) for n in np.random.default_rng(3).integers(1, 300, size=300)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n_positions: chain.possible_labels(n_positions, n_labels), lengths))
    for n_positions, support in zip(lengths, found, strict=True):
        np.testing.assert_array_equal(support.argmax(axis=1), np.arange(n_positions) % n_labels)
        assert support.sum() == n_positions


def test_supports_follow_the_order_of_the_labels() -> None:
    chain, other = (Chain(bigrams=ALTERNATING).bind(labels, []) for labels in (LABELS, LABELS[::-1]))
    np.testing.assert_array_equal(other.possible_labels(4, 3), chain.possible_labels(4, 3)[:, ::-1])


# ---- bind


def test_bind_fixes_observed_bigrams() -> None:
    outputs: list[Any] = [[0, 1], [1, -1, 2], [], AllowedLabels.from_sets([{0, 1}, {2}])]
    bound = Chain(bigrams="observed", unseen="skip").bind(LABELS, outputs)
    assert bound.bigrams == Bigrams.observed([["a", "b"], ["b", None, "c"], [], [{"a", "b"}, "c"]])
    assert bound.labels == LABELS


def test_bind_makes_schemes_and_leaves_out_labels_that_training_does_not_know() -> None:
    bound = Chain(bigrams="BIO").bind(["O", "B-X", "I-X"], [[0, 1, 2]])
    assert bound.bigrams == Bigrams.scheme("bio", ["O", "B-X", "I-X"])
    wide = Bigrams.scheme("bio", ["O", "B-X", "I-X", "B-Y", "I-Y"])
    assert Chain(bigrams=wide).bind(["O", "B-X", "I-X"], []).bigrams == bound.bigrams
    with pytest.raises(LabelError):
        Chain(bigrams="bio").bind(["O", "N"], [])


OUTSIDE: list[Any] = [[0, 1], [1, 0, 1], [0, 0], [0, 1, 0], []]


def test_outputs_outside_are_refused_with_their_places() -> None:
    with pytest.raises(ImpossibleLabelsError) as refused:
        Chain(bigrams=ALTERNATING).bind(LABELS, OUTSIDE)
    assert str(refused.value) == (
        "4 of 5 training sequences lie outside the bigrams: sequence 1, position 0: b at the start; "
        "sequence 2, position 1: a after a; sequence 3: a at its end; sequence 4: it has no positions "
        "(unseen: 'extend' adds their pairs, 'skip' leaves them out, 'soft' allows all pairs)."
    )
    with pytest.raises(ValueError, match="; …"):
        Chain(bigrams=ALTERNATING).bind(LABELS, [[0]] * 9)


def test_outputs_outside_can_be_asked_for() -> None:
    bound = Chain(bigrams=ALTERNATING, unseen="skip").bind(LABELS, OUTSIDE)
    assert bound.bigrams == ALTERNATING
    assert bound.outside(OUTSIDE)[:2] == [Outside(1, 0, START, "b"), Outside(2, 1, "a", "a")]
    assert [entry.sequence for entry in bound.outside(OUTSIDE)] == [1, 2, 3, 4]


def test_bigrams_are_extended_by_what_training_has() -> None:
    bound = Chain(bigrams=ALTERNATING, unseen="extend").bind(LABELS, OUTSIDE)
    assert bound.bigrams == ALTERNATING | {
        (START, "b"), ("a", "a"), ("a", END), (START, END),
    }  # fmt: skip
    assert bound.outside(OUTSIDE) == []


def test_soft_bigrams_exclude_nothing() -> None:
    bound = Chain(bigrams=ALTERNATING, unseen="soft").bind(LABELS, OUTSIDE)
    assert bound.bigrams == ALTERNATING
    assert bound.outside(OUTSIDE) == []
    assert bound.possible_labels(3, 3).all()
    scores = ChainScores(np.arange(6.0).reshape(2, 3))
    assert inference.log_partition(bound, scores) == inference.log_partition(Chain(), scores)


def test_partly_known_outputs_need_one_completion_within_the_bigrams() -> None:
    chain = Chain(bigrams=ALTERNATING, unseen="skip").bind(LABELS, [])
    partly: list[Any] = [
        [-1, 1],
        [0, -1, -1, 1],
        [-1, -1, -1],
        [0, -1, 1],
        AllowedLabels.from_sets([{0, 2}, {1, 2}]),
    ]
    assert [entry.sequence for entry in chain.outside(partly)] == [2, 3]
    assert chain.outside(partly)[1] == Outside(3, 2, None, None)
    with pytest.raises(ImpossibleLabelsError, match="sequence 0, position 2"):
        Chain(bigrams=ALTERNATING).bind(LABELS, [[0, -1, 1]])
    with pytest.raises(ImpossibleLabelsError):  # there is no pair that could be added
        Chain(bigrams=ALTERNATING, unseen="extend").bind(LABELS, [[0, 0], [0, -1, 2]])


@pytest.mark.parametrize(
    ("labels", "outputs", "message"),
    [
        (["a", "a"], [], "must be distinct"),
        (["a", START], [], "START and END mark the ends of a sequence"),
        (["a"], [[1]], "label ids from 1 to 1, expected 0 to 0, or −1"),
        (["a"], [[-2]], "label ids from -2 to -2"),
        (["a"], [[0.5]], "list of label ids, got float64"),
    ],
)
def test_bind_refuses_with_a_message(labels: Any, outputs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Chain(bigrams="observed").bind(labels, outputs)


# ---- questions on arrays


def test_ids_serve_as_labels_of_a_chain_that_is_not_bound() -> None:
    chain = Chain(bigrams=Bigrams([(START, 0), (0, 1), (1, END)]))
    scores = ChainScores(np.zeros((2, 2)))
    assert inference.decode(chain, scores).output.tolist() == [0, 1]
    assert inference.score(chain, scores, [1, 1]) == -np.inf
    assert inference.log_probability(chain, scores, [0, 1]) == 0.0


@pytest.mark.parametrize(
    ("chain", "message"),
    [
        (Chain(bigrams=ALTERNATING), "is not bound, and its label 'a' is no id from 0 to 1: call bind"),
        (Chain(bigrams="observed"), r"is not bound to labels yet: call bind\(labels, outputs\)"),
        (Chain(bigrams="observed", unseen="soft"), "is not bound to labels yet"),
        (Chain(bigrams=ALTERNATING).bind(LABELS, []), "is bound to 3 labels, the scores have 2"),
    ],
)
def test_questions_to_a_chain_that_does_not_go_with_the_scores(chain: Chain, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        inference.log_partition(chain, ChainScores(np.zeros((2, 2))))
    with pytest.raises(ValueError, match=message):
        inference.score(chain, ChainScores(np.zeros((2, 2))), [0, 0])


def test_a_chain_that_is_not_bound_has_no_support() -> None:
    with pytest.raises(ValueError, match="is not bound"):
        Chain(bigrams="bio").possible_labels(3, 3)


def test_a_forbidden_path_of_any_score_is_never_taken() -> None:
    bio = Chain(bigrams="bio").bind(["B", "I", "O"], [])
    states = np.array([[0.0, 1e4, 0.0], [0.0, 1e4, 0.0]])
    for output, score in inference.k_best(bio, ChainScores(states), 9):
        assert output[0] != 1
        assert score < 2e4
    assert len(inference.k_best(bio, ChainScores(states), 9)) == 5
    assert inference.marginals(bio, ChainScores(states)).emissions[0, 1] == 0.0
