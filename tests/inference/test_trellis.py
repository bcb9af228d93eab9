"""How large trellises of patterns are, what they share, and what is refused."""

from __future__ import annotations

import itertools
import resource
from typing import Any

import numpy as np
import pytest

from crfkit import _core
from crfkit.structures import MatcherState, MatcherWriter
from tests.oracles.patterns import configurations, partition, trellises

B, I, O = range(3)  # noqa: E741
ANY = {B, I, O}


def skip(distance: int) -> list[set[int]]:
    """{B, I} here, and {B, I} so many positions on."""
    return [{B, I}, *[ANY] * (distance - 1), {B, I}]


def test_without_patterns_it_is_the_first_order_chain() -> None:
    matcher, starts = configurations(3, [])
    nodes, arcs, _ = trellises(matcher, starts, [4]).sizes(0)
    assert nodes.tolist() == [3, 3, 3, 3]
    assert arcs.tolist() == [3, 9, 9, 9, 3]  # from the source, between positions, to the sink


def test_without_arcs_between_labels_they_meet_in_a_pool() -> None:
    matcher, starts = configurations(5, [])
    assert trellises(matcher, starts, [3], linked=False).sizes(0)[1].tolist() == [5, 10, 10, 5]


def test_figure_5_has_twelve_grouped_transitions() -> None:
    matcher, starts = configurations(3, [(1, [{B}, {I}, {I}, {I}], 0)])
    nodes, _, transitions = trellises(matcher, starts, [6]).sizes(0)
    assert nodes.tolist() == [3, 3, 4, 4, 3, 3]
    assert transitions[4] == 12


@pytest.mark.parametrize("m", [5, 8, 12])
def test_tied_skips_among_all_occurrences_need_few_states(m: int) -> None:
    positions = [2 * i for i in range(m)]
    matcher, starts = configurations(
        3, [(i, skip(j - i), 0) for i, j in itertools.combinations(positions, 2)]
    )
    assert trellises(matcher, starts, [positions[-1] + 1]).sizes(0)[0].max() == 3 * m


def test_ten_untied_overlapping_skips_are_built() -> None:
    matcher, starts = configurations(3, [(i, skip(10), i) for i in range(10)])
    nodes = trellises(matcher, starts, [20]).sizes(0)[0]
    assert nodes.max() == 3 * 2**9  # the last of ten begins where the label of the node says all about it


def test_too_many_skips_are_refused_before_they_take_memory() -> None:
    matcher, starts = configurations(3, [(i, skip(24), i) for i in range(24)])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(_core.TrellisSizeError) as refused:
        trellises(matcher, starts, [48], max_states=10_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kB
    message, sequence, position, n_states, _, weights = refused.value.args
    assert "too many states" in message
    assert (sequence, position) == (0, 12)
    assert n_states > 10_000
    assert weights.tolist() == list(range(13))  # those that have begun


def test_too_many_arcs_are_refused() -> None:
    matcher, starts = configurations(3, [(i, skip(8), i) for i in range(8)])
    with pytest.raises(_core.TrellisSizeError, match="sequence 1, position 6"):
        trellises(
            matcher,
            [(position + 2, state, value) for position, state, value in starts],
            [2, 16],
            max_arcs=300,
        )


def test_what_cannot_fire_any_more_is_forgotten() -> None:
    matcher, starts = configurations(3, [(t, [{B}, {I}, {O}, {B}], t) for t in range(6)])
    assert trellises(matcher, starts, [6]).sizes(0)[0].tolist() == [3, 4, 5, 5, 4, 3]
    writer = MatcherWriter(3)
    anchored = writer.chain([{B}, {I}, {O}], 0, last_only=True)
    nodes = trellises(writer.matcher(), [(t, anchored, 1.0) for t in range(6)], [6]).sizes(0)[0]
    assert nodes.tolist() == [3, 3, 3, 3, 4, 3]


def test_equal_inputs_share_their_trellis_and_equal_positions_their_step() -> None:
    writer = MatcherWriter(3)
    word = writer.chain([{B}, {I}, {I}], 0)
    matcher = writer.matcher()
    lengths = [9, 9, 9, 4]
    starts = [(3, word, 1.0), (9 + 3, word, 1.0), (18 + 5, word, 1.0)]
    made = trellises(matcher, starts, lengths)
    assert made.trellis_of.tolist() == [0, 0, 1, 2]
    assert made.n_trellises == 3
    assert made.n_steps == 6  # source, plain, in and out of the word with two in it, sink
    assert made.n_active == 1


def test_any_number_of_threads_gives_the_same() -> None:
    random = np.random.default_rng(1)
    writer = MatcherWriter(4)
    states = [
        writer.chain([set(random.choice(4, 2)) for _ in range(random.integers(2, 6))], k) for k in range(12)
    ]
    states.append(writer.automaton([MatcherState([({0}, 1)]), MatcherState([({1, 2}, 1)], activates=12)]))
    lengths = random.integers(0, 12, size=40).tolist()
    starts = [(int(t), int(random.choice(states)), 1.0) for t in random.integers(sum(lengths), size=80)]
    one, four = (trellises(writer.matcher(), starts, lengths, n_threads=n) for n in (1, 4))
    assert (one.n_steps, one.n_arcs, one.n_active) == (four.n_steps, four.n_arcs, four.n_active)
    np.testing.assert_array_equal(one.trellis_of, four.trellis_of)
    for n in range(len(lengths)):
        for ours, theirs in zip(one.sizes(n), four.sizes(n), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def straddling_prefixes(given: list[tuple[int, tuple[int, ...]]], position: int) -> int:
    """Distinct (start, prefix of two positions or more) of runs of labels that are not at their end after a position."""
    prefixes = {
        (start, run[: position + 1 - start])
        for start, run in given
        if start < position < start + len(run) - 1
    }
    return len(prefixes)


@pytest.mark.parametrize(
    ("ending", "n_runs", "turned"), [(False, 60, False), (True, 20, False), (True, 200, True)]
)
def test_runs_of_single_labels_add_a_state_for_each_prefix(ending: bool, n_runs: int, turned: bool) -> None:
    random = np.random.default_rng(5)
    n_positions, n_labels = 7, 12
    runs = {tuple(random.integers(n_labels, size=random.integers(2, 7)).tolist()) for _ in range(n_runs)}
    given = [(n_positions - len(run) if ending else 0, run) for run in sorted(runs)]
    matcher, starts = configurations(
        n_labels, [(s, [{b} for b in run], k) for k, (s, run) in enumerate(given)]
    )
    made = trellises(matcher, starts, [n_positions])
    nodes = made.sizes(0)[0]
    assert made.turned(0) is turned
    if turned:  # read from the last position, they are prefixes of what is read
        given = [(0, run[::-1]) for _, run in given]
        nodes = nodes[::-1]
    assert nodes.tolist() == [
        n_labels + straddling_prefixes(given, position) for position in range(n_positions)
    ]


def test_pools_save_arcs_and_lose_none() -> None:
    random = np.random.default_rng(6)
    n_labels = 8
    runs = {tuple(random.integers(n_labels, size=3).tolist()) for _ in range(60)}
    given = [(t, [{b} for b in run], k) for k, run in enumerate(sorted(runs)) for t in range(3)]
    matcher, starts = configurations(n_labels, given)
    made = trellises(matcher, starts, [5])
    nodes, arcs, transitions = made.sizes(0)
    assert transitions[1:-1].tolist() == (nodes[:-1] * n_labels).tolist()
    assert arcs[3] < 0.75 * transitions[3]
    states, weights = random.normal(size=(5, n_labels)), random.normal(size=matcher.n_weights)
    found = _core.ScoredTrellis(made, 0, states, np.zeros(n_labels**2), weights).k_best(n_labels**5)
    assert len(found) == n_labels**5  # each label sequence is one path


def cells(given: list[tuple[int, list[set[int]], int]], n_labels: int, n_positions: int) -> list[int]:
    """The partition of Qian et al. (2009) by enumeration: which of the configurations that go on match so far."""
    counts = []
    for t in range(n_positions):
        straddling = [(s, sets) for s, sets, _ in given if s <= t < s + len(sets) - 1 < n_positions]
        vectors = {
            tuple(all(y[i] in sets[i - s] for i in range(s, t + 1)) for s, sets in straddling)
            for y in itertools.product(range(n_labels), repeat=t + 1)
        }
        counts.append(len(vectors))
    return counts


def test_cells_are_those_of_the_paper() -> None:
    random = np.random.default_rng(7)
    for _ in range(25):
        n_labels, n_positions = int(random.integers(2, 4)), int(random.integers(1, 7))
        given = []
        for weight in range(6):
            position = int(random.integers(n_positions))
            sizes = random.integers(1, n_labels + 1, size=random.integers(1, n_positions - position + 2))
            sets = [set(random.choice(n_labels, size=size, replace=False).tolist()) for size in sizes]
            given.append((position, sets, weight))
        matcher, starts = configurations(n_labels, given)
        found, _, _ = partition(matcher, starts, n_positions)
        assert found.tolist() == cells(given, n_labels, n_positions)


def test_grouped_transitions_and_spans() -> None:
    matcher, starts = configurations(3, [(1, [{B}, {I}, {I}, {I}], 0)])
    found, transitions, spans = partition(matcher, starts, 6)
    assert found.tolist() == [1, 2, 2, 2, 1, 1]
    assert transitions.tolist() == [1, 2, 3, 3, 3, 1]  # B or not; I or not while it is alive
    assert spans.tolist() == [1, 1, 2, 3, 4, 1]  # κ(4) = 12 / 3⁴ with the arcs between labels


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"set_labels": [0, 3]}, "set_labels has the value 3, expected 0 to 2"),
        ({"set_ptr": [0, 0, 2]}, "must list at least one label, ascending"),
        ({"set_ptr": [0, 1]}, "set_ptr must rise from 0 to the number of its items"),
        ({"out_next": [1, 5]}, "out_next has the value 5, expected 0 to 1"),
        ({"out_next": [1]}, "out_set and out_next must have the same length"),
        ({"activates": [-1]}, "of the same number of states"),
        ({"out_set": [0, 0]}, "state 0 has two transitions for label 0, expected disjoint sets"),
        ({"n_labels": 0}, "there are no labels"),
    ],
)
def test_matchers_that_do_not_fit_together(change: dict[str, Any], complaint: str) -> None:
    kinds = {"set_ptr": np.int64, "out_ptr": np.int64, "last_only": np.uint8}
    arrays: dict[str, Any] = {
        "n_labels": 3,
        "set_ptr": [0, 1, 2],
        "set_labels": [0, 1],
        "out_ptr": [0, 2, 2],
        "out_set": [0, 1],
        "out_next": [1, 1],
        "activates": [-1, 0],
        "last_only": [0, 0],
        **change,
    }
    given: dict[str, Any] = {
        name: value if name == "n_labels" else np.array(value, dtype=kinds.get(name, np.int32))
        for name, value in arrays.items()
    }
    with pytest.raises(ValueError, match=f"pattern matcher: .*{complaint}"):
        _core.PatternMatcher(**given)


def test_starts_that_do_not_fit() -> None:
    matcher, [(_, state, _)] = configurations(3, [(0, [{B}], 0)])
    with pytest.raises(ValueError, match="one is in a state that the matcher does not have"):
        trellises(matcher, [(0, 7, 1.0)], [2])
    with pytest.raises(ValueError, match="one has a value that is not finite"):
        trellises(matcher, [(0, state, float("nan"))], [2])
    with pytest.raises(ValueError, match="there must be one list for each position"):
        trellises(matcher, [(5, state, 1.0)], [2])


def test_long_sequences_with_large_scores_lose_nothing() -> None:
    """Label 1 after label 0 has a weight of −1e5: what is left is T − k ones, then k zeros."""
    n_positions = 3000
    writer = MatcherWriter(2)
    never = writer.automaton(
        [MatcherState([({0}, 1), ({1}, 0)]), MatcherState([({0}, 1), ({1}, 2)]), MatcherState(activates=0)]
    )
    made = trellises(writer.matcher(), [(0, never, 1.0)], [n_positions])
    states, arcs, weights = np.zeros((n_positions, 2)), np.zeros(4), np.array([-1e5])
    states[:, 0] = -0.01
    expected = np.log(np.exp(-0.01 * np.arange(n_positions + 1)).sum())
    for in_log_space in (False, True):
        found = _core.ScoredTrellis(made, 0, states, arcs, weights).log_partition(in_log_space)
        assert found == pytest.approx(expected, rel=1e-12)
