"""`CRF.explain` of arcs of word lattices against sums over all paths."""

from __future__ import annotations

import math
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit.errors import ArgumentError, UnsupportedError
from tests.oracles.word_lattices import all_paths, random_lattice


def trained(**settings: Any) -> tuple[Any, list[Any]]:
    random = np.random.default_rng(5)
    lattices = [random_lattice(random, length) for length in (2, 3, 4, 5)]
    paths = [next(iter(all_paths(*lattice))) for lattice in lattices]
    X = [crfkit.WordLattice(*lattice) for lattice in lattices]
    crf = crfkit.CRF(crfkit.Lattice(**settings), l2=0.2).fit(X, [list(path) for path in paths])
    return crf, lattices


@pytest.mark.parametrize("settings", [{}, {"transitions": None}, {"crossed": False}])
def test_against_enumeration(settings: dict[str, Any]) -> None:
    crf, lattices = trained(**settings)
    for lattice in lattices:
        x = crfkit.WordLattice(*lattice)
        [outputs] = crf.predict_nbest([x], 10**6)
        probs = np.zeros(len(lattice[1]))
        for p, path in outputs:
            probs[path] += p
        for a, b in permutations(range(len(probs)), 2):
            if probs[a] == 0.0 or probs[b] == 0.0:
                continue
            found = crf.explain(x, a, against=b)
            assert found.log_odds == pytest.approx(math.log(probs[a] / probs[b]), abs=1e-9)
            assert math.fsum(part.value for part in found.parts) == pytest.approx(found.log_odds, abs=1e-9)
            assert "rest" not in found.by_group
            if settings.get("transitions", "") is None:
                assert "transition" not in found.by_group


def test_transitions_are_means_over_paths() -> None:
    crf, lattices = trained()
    names = dict(zip(crf.structure_names_, crf.weights_[-len(crf.structure_names_) :], strict=True))
    lattice = lattices[-1]
    x = crfkit.WordLattice(*lattice)
    [outputs] = crf.predict_nbest([x], 10**6)

    def mean(arc: int) -> float:
        total = score = 0.0
        for p, path in outputs:
            if arc not in path:
                continue
            labels = ["BOS/EOS", *(lattice[1][a][2] for a in path), "BOS/EOS"]
            at = path.index(arc) + 1
            pairs = [crf.structure_.pair_names(*labels[k : k + 2])[0] for k in (at - 1, at)]
            total, score = total + p, score + p * sum(names.get(pair, 0.0) for pair in pairs)
        return score / total

    on_paths = sorted({arc for _, path in outputs for arc in path})
    for a, b in pairwise(on_paths):
        found = crf.explain(x, a, against=b).by_group.get("transition", 0.0)
        assert found == pytest.approx(mean(a) - mean(b), abs=1e-9)


def test_the_rival_and_bad_questions() -> None:
    crf, _ = trained()
    x = crfkit.WordLattice(2, [(0, 1, "A", ["f"]), (1, 2, "B", ["g"]), (0, 2, "A", ["h"]), (0, 1, "B", [])])
    marginals = crf.predict_marginals([x])[0]
    found = crf.explain(x, 0)
    assert found.against == (2 if marginals[2] >= marginals[3] else 3)
    assert str(found).startswith("arc of the lattice: 0 (")
    with pytest.raises(ArgumentError, match="both 0"):
        crf.explain(x, 0, against=0)
    with pytest.raises(UnsupportedError, match="label is for positions"):
        crf.explain(x, 0, "A")
    with pytest.raises(UnsupportedError, match="every path passes arc 0"):
        crf.explain(crfkit.WordLattice(1, [(0, 1, "A", ["f"])]), 0)
