"""A new structure, with its oracle: a chain of second order gets every question, every optimizer, save, load and resume.

score(y) = Σ_t features(x_t, y_t) + Σ_t transitions(y_{t−1}, y_t) + Σ_t triples(y_{t−2}, y_{t−1}, y_t)
"""

from __future__ import annotations

import pickle
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, LBFGS, Checkpoint, load
from crfkit.errors import NotLoadedError
from crfkit.models.training.training_set import TrainingInput
from crfkit.objective import Objective
from crfkit.optimizers import OPTIMIZERS
from crfkit.structures import Arc, GraphStructure
from tests.models.small_corpus import corpus
from tests.oracles.oracle import Enumeration


@dataclass(frozen=True)
class SecondOrder(GraphStructure):
    weighted: bool = True  # whether triples have weights

    def arcs(self, n_positions: int, labels: Sequence[Hashable]) -> Iterator[Arc]:
        for t in range(n_positions):
            for a, b, c in product(labels if t > 1 else [None], labels if t else [None], labels):
                yield Arc(t, (a, b), (b, c), [c], [f"{a} {b} {c}"] if self.weighted and t > 1 else [])


X, Y = corpus(16)
PARTLY = [[*y[:-1], None] if n % 3 == 0 else y for n, y in enumerate(Y)]  # the last label is unknown
NEW = [x for x in X if len(x) < 5][:3]


def enumerate_outputs(crf: CRF[str], x: Sequence[Any], weights: Any) -> Enumeration:
    """Every label sequence with the weights that it has."""
    map_, names, L = crf.feature_map_, crf.encoder_.vocabulary.names(), len(crf.classes_)
    owners = np.repeat(names, np.diff(map_.pair_ptr)).tolist()
    keys = [*zip(owners, map_.pair_labels, strict=True), *zip(map_.arc_before, map_.arc_after, strict=True)]
    weight: dict[Any, int] = {key: i for i, key in enumerate([*keys, *crf.structure_names_])}

    def parts(y: tuple[int, ...]) -> list[int]:
        triples = [" ".join(crf.classes_[b] for b in y[t - 2 : t + 1]) for t in range(2, len(y))]
        emissions = [(feature, b) for position, b in zip(x, y, strict=True) for feature in position]
        return [weight[part] for part in (*emissions, *pairwise((L, *y, L)), *triples) if part in weight]

    return Enumeration(((y, parts(y)) for y in product(range(L), repeat=len(x))), weights)


def test_questions() -> None:
    crf = CRF(SecondOrder(), optimizer=LBFGS(max_iterations=8)).fit(X, Y)
    nbest, drawn, marginals = crf.predict_nbest(NEW, 5), crf.sample(NEW, 4000, 0), crf.predict_marginals(NEW)
    for n, x in enumerate(NEW):
        oracle = enumerate_outputs(crf, x, crf.weights_)
        outputs = ["".join(crf.classes_[b] for b in y) for y in oracle.outputs]
        p = dict(zip(outputs, oracle.probabilities.tolist(), strict=True))
        best = sorted(outputs, key=lambda y: -p[y])
        assert ["".join(y) for _, y in nbest[n]] == best[:5]
        assert [found for found, _ in nbest[n]] == pytest.approx([p[y] for y in best[:5]])
        assert crf.log_probability([x], [[*best[1]]]) == pytest.approx([np.log(p[best[1]])])
        expected = [[sum(p[y] for y in p if y[t] == b) for b in crf.classes_] for t in range(len(x))]
        np.testing.assert_allclose(marginals[n], expected, rtol=0, atol=1e-12)
        assert np.mean([y == [*best[0]] for y in drawn[n]]) == pytest.approx(p[best[0]], abs=0.03)
        others = [b for b in crf.classes_ if b != best[0][0]]
        second = next([*y] for y in best if y[0] in others)
        assert crf.predict([x, x], allowed=[None, [others, *[None] * (len(x) - 1)]]) == [[*best[0]], second]


def test_loss() -> None:
    crf = CRF(SecondOrder(), optimizer=LBFGS(max_iterations=1)).fit(X, PARTLY)
    found = TrainingInput(X, PARTLY, None, crf._settings()).learn()
    objective = Objective(found.model.potentials.loss(found.data, None, 2), l2=0.0)
    w, v = np.random.default_rng(0).normal(size=(2, len(crf.weights_)))
    labels, value, gradient, moved = np.array(crf.classes_), 0.0, np.zeros(len(w)), np.zeros(len(w))
    for x, gold in zip(X, PARTLY, strict=True):
        outputs = enumerate_outputs(crf, x, w)
        right = [
            all(b in (None, c) for b, c in zip(gold, labels[[*y]], strict=True)) for y in outputs.outputs
        ]
        p, z = outputs.probabilities, outputs.counts @ v
        q = np.where(right, p, 0.0) / p[right].sum()  # p(y | labels that are known)
        value -= np.log(p[right].sum())
        gradient += (p - q) @ outputs.counts
        moved += (p * (z - p @ z) - q * (z - q @ z)) @ outputs.counts
    assert objective.value_and_gradient(w)[0] == pytest.approx(value, rel=1e-11)
    np.testing.assert_allclose(objective.value_and_gradient(w)[1], gradient, rtol=0, atol=1e-10)
    np.testing.assert_allclose(objective.hessian_vector(w, v), moved, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("name", "l1"), [*product(OPTIMIZERS, [0.0]), ("lbfgs", 0.2), ("sgd", 0.2)])
@pytest.mark.filterwarnings("ignore::crfkit.models.ConvergenceWarning")
def test_optimizers(name: str, l1: float, tmp_path: Path) -> None:
    crf = CRF(SecondOrder(), optimizer=OPTIMIZERS[name](max_iterations=6), l1=l1)
    whole = crf.fit(X, PARTLY, dev=(X, Y)).weights_
    assert crf.score(X, Y) > 0.8
    file = Checkpoint(tmp_path / "c", every=1, resume=True)
    crf.fit(X, PARTLY, dev=(X, Y), checkpoint=file, callback=lambda step: step.iteration == 3)
    assert crf.fit(X, PARTLY, dev=(X, Y), checkpoint=file).weights_.tobytes() == whole.tobytes()


def test_files(tmp_path: Path) -> None:
    crf = CRF(SecondOrder()).fit(X, Y)
    crf.save(tmp_path / "m")
    with pytest.raises(NotLoadedError):
        load(tmp_path / "m").predict(NEW)
    given, imported = load(tmp_path / "m", [SecondOrder]), load(tmp_path / "m", trust_functions=True)
    for copy in (given, imported, pickle.loads(pickle.dumps(crf))):
        assert copy.structure == SecondOrder()
        assert copy.predict_nbest(NEW, 3) == crf.predict_nbest(NEW, 3)
    assert CRF(SecondOrder()).fit(X, Y, start=crf).n_iter_ < crf.n_iter_
    assert CRF(SecondOrder()).partial_fit(X[:8], Y[:8]).partial_fit(X[8:], Y[8:]).score(X, Y) > 0.8
    assert not CRF(SecondOrder(weighted=False)).fit(X, Y).structure_names_
