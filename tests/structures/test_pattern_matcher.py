"""Pattern matchers: which states are merged, which weights become active, which arguments raise."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from crfkit.errors import ArgumentError
from crfkit.structures import MatcherState, MatcherWriter, PatternMatcher


def counts(
    matcher: PatternMatcher, output: Sequence[int], starts: dict[int, Sequence[tuple[int, float]]]
) -> list[float]:
    """How often each weight is active in an output; `starts` gives (state, value) by position."""
    by_position = [starts.get(position, []) for position in range(len(output))]
    ptr = np.cumsum([0, *map(len, by_position)])
    flat = list(itertools.chain.from_iterable(by_position))
    states = np.array([state for state, _ in flat], dtype=np.int32)
    values = np.array([value for _, value in flat], dtype=np.float64)
    return list(matcher.counts(output, ptr, states, values))


def test_chains_share_their_ends() -> None:
    matcher, starts = PatternMatcher.linear(
        3, [([{0}, {1, 2}], 0), ([{2}, {1, 2}], 0), ([{1, 2}], 0), ([{1, 2}], 1)]
    )
    assert matcher.n_states == 6  # two ends, two before them, two in front of one of these
    assert (
        starts.tolist()[2]
        == matcher.out_next[matcher.out_ptr[starts[0]]]
        == matcher.out_next[matcher.out_ptr[starts[1]]]
    )
    assert (matcher.n_weights, len(matcher.set_ptr) - 1) == (2, 3)


def test_a_configuration_is_active_where_it_matches() -> None:
    matcher, [state] = PatternMatcher.linear(3, [([{0}, {0, 1, 2}, {1, 2}], 0)])
    for output in itertools.product(range(3), repeat=5):
        matches = output[1] == 0 and output[3] in (1, 2)
        assert counts(matcher, output, {1: [(state, 2.5)]}) == [2.5 * matches]
    assert counts(matcher, [0, 0], {0: [(state, 1.0)]}) == [0.0]  # too short


def test_a_loop_is_active_again_and_again() -> None:
    writer = MatcherWriter(2)
    state = writer.automaton([MatcherState([({0}, 1)]), MatcherState([({0}, 1)], activates=0)])
    matcher = writer.matcher()
    assert counts(matcher, [0, 0, 0, 1, 0], {0: [(state, 1.0)], 4: [(state, 0.5)]}) == [3.5]


def test_last_only_is_active_at_the_last_position() -> None:
    writer = MatcherWriter(2)
    state = writer.chain([{0}, {1}], 0, last_only=True)
    matcher = writer.matcher()
    assert counts(matcher, [0, 1], {0: [(state, 1.0)]}) == [1.0]
    assert counts(matcher, [0, 1, 1], {0: [(state, 1.0)]}) == [0.0]


def test_equal_patterns_are_one() -> None:
    writer = MatcherWriter(2)
    loop = [MatcherState([({0}, 1)]), MatcherState([([0], 1)], activates=0)]
    assert writer.automaton(loop) == writer.automaton(loop)
    assert writer.chain([{0}], 0) == writer.chain([[0, 0]], 0)
    assert writer.chain([{0}], 0) != writer.chain([{0}], 0, last_only=True)
    assert writer.matcher().n_states == 6


@pytest.mark.parametrize("labels", [set(), {3}, {-1, 0}])
def test_a_set_of_no_labels_is_refused(labels: Iterable[int]) -> None:
    with pytest.raises(ArgumentError, match="expected labels from 0 to 2, at least one"):
        MatcherWriter(3).chain([labels], 0)


def test_a_pattern_of_no_positions_is_refused() -> None:
    with pytest.raises(ArgumentError, match="expected at least one"):
        MatcherWriter(3).chain([], 0)
