"""How large trellises of patterns are, what they share, and what is refused."""

from __future__ import annotations

import itertools
import resource

import numpy as np
import pytest

from crfkit import _core
from crfkit.structures import BookState, BookWriter
from tests.patterns import configurations, trellises

B, I, O = range(3)  # noqa: E741
ANY = {B, I, O}


def skip(distance: int) -> list[set[int]]:
    """{B, I} here, and {B, I} so many sites on."""
    return [{B, I}, *[ANY] * (distance - 1), {B, I}]


def test_without_patterns_it_is_the_first_order_chain() -> None:
    book, starts = configurations(3, [])
    nodes, arcs, _ = trellises(book, starts, [4]).sizes(0)
    assert nodes.tolist() == [3, 3, 3, 3]
    assert arcs.tolist() == [3, 9, 9, 9, 3]  # from the source, between sites, to the sink


def test_without_arcs_between_labels_they_meet_in_a_pool() -> None:
    book, starts = configurations(5, [])
    assert trellises(book, starts, [3], linked=False).sizes(0)[1].tolist() == [5, 10, 10, 5]


def test_figure_5_has_twelve_grouped_transitions() -> None:
    book, starts = configurations(3, [(1, [{B}, {I}, {I}, {I}], 0)])
    nodes, _, transitions = trellises(book, starts, [6]).sizes(0)
    assert nodes.tolist() == [3, 3, 4, 4, 3, 3]
    assert transitions[4] == 12


@pytest.mark.parametrize("m", [5, 8, 12])
def test_tied_skips_among_all_occurrences_need_few_states(m: int) -> None:
    sites = [2 * i for i in range(m)]
    book, starts = configurations(3, [(i, skip(j - i), 0) for i, j in itertools.combinations(sites, 2)])
    assert trellises(book, starts, [sites[-1] + 1]).sizes(0)[0].max() == 3 * m


def test_ten_untied_overlapping_skips_are_built() -> None:
    book, starts = configurations(3, [(i, skip(10), i) for i in range(10)])
    nodes = trellises(book, starts, [20]).sizes(0)[0]
    assert nodes.max() == 3 * 2**9  # the last of ten begins where the label of the node says all about it


def test_too_many_skips_are_refused_before_they_take_memory() -> None:
    book, starts = configurations(3, [(i, skip(24), i) for i in range(24)])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(_core.TrellisSizeError) as refused:
        trellises(book, starts, [48], max_states=10_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kB
    message, sequence, site, n_states, _, weights = refused.value.args
    assert "too many states" in message
    assert (sequence, site) == (0, 12)
    assert n_states > 10_000
    assert weights.tolist() == list(range(13))  # those that have begun


def test_too_many_arcs_are_refused() -> None:
    book, starts = configurations(3, [(i, skip(8), i) for i in range(8)])
    with pytest.raises(_core.TrellisSizeError, match="sequence 1, site 6"):
        trellises(book, [(site + 2, state, value) for site, state, value in starts], [2, 16], max_arcs=300)


def test_what_cannot_fire_any_more_is_forgotten() -> None:
    book, starts = configurations(3, [(t, [{B}, {I}, {O}, {B}], t) for t in range(6)])
    assert trellises(book, starts, [6]).sizes(0)[0].tolist() == [3, 4, 5, 5, 4, 3]
    writer = BookWriter(3)
    anchored = writer.chain([{B}, {I}, {O}], 0, last_only=True)
    nodes = trellises(writer.book(), [(t, anchored, 1.0) for t in range(6)], [6]).sizes(0)[0]
    assert nodes.tolist() == [3, 3, 3, 3, 4, 3]


def test_equal_inputs_share_their_trellis_and_equal_sites_their_step() -> None:
    writer = BookWriter(3)
    word = writer.chain([{B}, {I}, {I}], 0)
    book = writer.book()
    lengths = [9, 9, 9, 4]
    starts = [(3, word, 1.0), (9 + 3, word, 1.0), (18 + 5, word, 1.0)]
    made = trellises(book, starts, lengths)
    assert made.trellis_of.tolist() == [0, 0, 1, 2]
    assert made.n_trellises == 3
    assert made.n_steps == 6  # source, plain, in and out of the word with two in it, sink
    assert made.n_fired == 1


def test_any_number_of_threads_gives_the_same() -> None:
    random = np.random.default_rng(1)
    writer = BookWriter(4)
    states = [
        writer.chain([set(random.choice(4, 2)) for _ in range(random.integers(2, 6))], k) for k in range(12)
    ]
    states.append(writer.automaton([BookState([({0}, 1)]), BookState([({1, 2}, 1)], fires=12)]))
    lengths = random.integers(0, 12, size=40).tolist()
    starts = [(int(t), int(random.choice(states)), 1.0) for t in random.integers(sum(lengths), size=80)]
    one, four = (trellises(writer.book(), starts, lengths, n_threads=n) for n in (1, 4))
    assert (one.n_steps, one.n_arcs, one.n_fired) == (four.n_steps, four.n_arcs, four.n_fired)
    np.testing.assert_array_equal(one.trellis_of, four.trellis_of)
    for n in range(len(lengths)):
        for ours, theirs in zip(one.sizes(n), four.sizes(n), strict=True):
            np.testing.assert_array_equal(ours, theirs)
