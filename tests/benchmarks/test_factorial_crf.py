"""The benchmark of factorial conditional random fields: its graphs, and its three contenders on a few sentences."""

from __future__ import annotations

import pytest
from benchmarks.factorial_crf import CONTENDERS, STRENGTHS, Sentences, attempts, chain_features, factorial

from crfkit.features import GraphInput

DATA = Sentences(
    [["the", "old", "dog", "barks"], ["dogs", "see", "the", "cat"]],
    [["DT", "JJ", "NN", "VBZ"], ["NNS", "VBP", "DT", "NN"]],
    [["B-NP", "I-NP", "I-NP", "O"], ["B-NP", "O", "B-NP", "I-NP"]],
)


def test_the_graph_has_two_chains_that_are_joined() -> None:
    graph = GraphInput()
    factorial(DATA.words[0], graph)
    scopes = {tuple(graph.variables[v].name for v in factor.variables) for factor in graph.factors}
    assert (("tag", 1), ("chunk", 1)) in scopes
    assert (("tag", 0), ("tag", 1)) in scopes
    assert (("chunk", 2), ("chunk", 3)) in scopes
    assert len(graph.factors) == 4 * 3 + 3 * 2


def test_tags_of_neighbours_are_read() -> None:
    assert "t1=JJ" in chain_features(DATA.words[0], DATA.tags[0])[0]
    assert "t-2=none" in chain_features(DATA.words[0], DATA.tags[0])[1]


@pytest.mark.parametrize("name", CONTENDERS)
def test_contenders(name: str) -> None:
    contender = CONTENDERS[name](0.01, 1)
    contender.fit(DATA)
    assert contender.scores(DATA) == (1.0, 1.0)


def test_penalties_are_tried_in_processes_of_their_own() -> None:
    alone, together = (attempts("chunks alone", 1, jobs, DATA, DATA) for jobs in (1, 2))
    assert [one.l2 for one in together] == list(STRENGTHS)
    assert [one.held_out for one in together] == [one.held_out for one in alone]
    assert together[0].contender.scores(DATA) == (1.0, 1.0)
