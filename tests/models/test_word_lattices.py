"""Word lattices: every question and the objective beside the enumeration of all paths."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit import CRF, InputError, Lattice, WordLattice, _core
from crfkit.errors import UnsavableError
from crfkit.features import LatticeDataset
from crfkit.models import UnsavableModel
from crfkit.models.kinds.lattices import LatticePotentials
from crfkit.models.settings import CRFSettings
from crfkit.models.training.training_set import TrainingInput
from crfkit.objective import Objective
from crfkit.structures import CostMatrix
from tests.oracles.word_lattices import Enumeration, random_lattice

pytestmark = pytest.mark.filterwarnings("ignore::crfkit.models.ConvergenceWarning")

RNG = np.random.default_rng


def some_lattices(n: int, seed: int) -> list[tuple[int, list[Any]]]:
    random = RNG(seed)
    return [random_lattice(random, int(length)) for length in random.integers(1, 7, n)]


def inputs(lattices: list[tuple[int, list[Any]]]) -> list[WordLattice]:
    return [WordLattice(length, arcs) for length, arcs in lattices]


def gold_paths(lattices: list[tuple[int, list[Any]]], seed: int) -> list[list[int]]:
    random = RNG(seed)
    out = []
    for length, arcs in lattices:
        paths = Enumeration(length, arcs, {}).paths
        out.append(list(paths[random.integers(len(paths))]))
    return out


def keys_of(model: Any) -> list[tuple[Any, ...]]:
    """What each weight of a model scores, as the oracle names it."""
    feature_map, names = model.potentials.feature_map, list(model.potentials.encoder.vocabulary.names())
    crossed = model.potentials.lattices.structure.crossed
    keys: list[tuple[Any, ...]] = []
    for f, name in enumerate(names):
        labels = feature_map.pair_labels[feature_map.pair_ptr[f] : feature_map.pair_ptr[f + 1]]
        keys += [("f", name, model.labels.classes[b]) if crossed else ("f", name) for b in labels]
    ends = {"BOS/EOS": None}
    for name in model.potentials.structure_names:
        before, after = name.split(" → ")
        keys.append(("t", ends.get(before, before), ends.get(after, after)))
    return keys


def trained(structure: Lattice, seed: int = 0, **settings: Any) -> tuple[CRF[Any], Any]:
    """A model with random weights, and the lattices that it was made from."""
    lattices = some_lattices(6, seed)
    crf: CRF[Any] = CRF(structure, optimizer=crfkit.LBFGS(max_iterations=2), **settings)
    crf.fit(inputs(lattices), gold_paths(lattices, seed))
    crf._set_model(crf._model, RNG(seed + 1).normal(size=len(crf.weights_)))
    return crf, lattices


def oracle(crf: CRF[Any], lattice: tuple[int, list[Any]]) -> Enumeration:
    weights = dict(zip(keys_of(crf._model), crf.weights_, strict=True))
    assert isinstance(crf.structure_, Lattice)
    return Enumeration(*lattice, weights, crossed=crf.structure_.crossed)


STRUCTURES = {
    "labels": Lattice(),
    "not crossed": Lattice(crossed=False),
    "no transitions": Lattice(transitions=None),
    "one template": Lattice(transitions=["%L[0] → %R[0]"]),
}


@pytest.mark.parametrize("settings", [{}, {"all_possible_states": True, "all_possible_transitions": False}])
@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=list(STRUCTURES))
def test_questions(structure: Lattice, settings: dict[str, Any]) -> None:
    crf, lattices = trained(structure, **settings)
    lattices += some_lattices(6, 7)  # with labels and transitions that were not seen together
    X = inputs(lattices)
    marginals, best = crf.predict_marginals(X), crf.predict(X)
    nbest = crf.predict_nbest(X, 1000)
    for lattice, probs, path, paths in zip(lattices, marginals, best, nbest, strict=True):
        right = oracle(crf, lattice)
        np.testing.assert_allclose(probs, right.arc_marginals(), atol=1e-12)
        order = sorted(zip(right.probabilities(), right.paths, strict=True), reverse=True)
        assert right.scores[right.paths.index(tuple(path))] == pytest.approx(max(right.scores), abs=1e-12)
        assert len(paths) == len(order)
        np.testing.assert_allclose([p for p, _ in paths], [p for p, _ in order], rtol=1e-9)
        assert sorted(tuple(found) for _, found in paths) == sorted(right.paths)
        one = [WordLattice(*lattice)] * len(right.paths)
        np.testing.assert_allclose(
            crf.log_probability(one, [list(p) for p in right.paths]),
            [score - right.log_z() for score in right.scores],
            atol=1e-12,
        )


def test_spans() -> None:
    crf, lattices = trained(Lattice())
    X = inputs(lattices)
    best, likely = crf.predict_spans(X, decode="viterbi"), crf.predict_spans(X, 0.3)
    by_f1 = crf.predict_spans(X, decode="f1")
    for n, lattice in enumerate(lattices):
        right, sums = oracle(crf, lattice), dict[Any, float]()
        for arc, prob in zip(lattice[1], right.arc_marginals(), strict=True):
            sums[arc[:3]] = sums.get(arc[:3], 0.0) + prob
        assert {span[:3] for span in likely[n]} == {arc for arc, prob in sums.items() if prob >= 0.3}
        assert [span[:3] for span in best[n]] == [lattice[1][i][:3] for i in crf.predict(X)[n]]
        for span in (*likely[n], *best[n], *by_f1[n]):
            assert span.probability == pytest.approx(sums[span[:3]], abs=1e-12)
        assert all(a.end <= b.start for a, b in pairwise(by_f1[n]))


def test_log_partition() -> None:
    crf, lattices = trained(Lattice())
    ask = crf._ask(inputs(lattices), None)
    found = ask.answerer.log_partitions(ask.design)
    np.testing.assert_allclose(found, [oracle(crf, one).log_z() for one in lattices], atol=1e-12)


def test_samples() -> None:
    crf, lattices = trained(Lattice())
    lattice = max(lattices, key=lambda one: len(one[1]))
    right = oracle(crf, lattice)
    n = 20_000
    (drawn,) = crf.sample([WordLattice(*lattice)], n, random_state=0)
    for path, prob in zip(right.paths, right.probabilities(), strict=True):
        share = sum(tuple(one) == path for one in drawn) / n
        assert abs(share - prob) < 5 * math.sqrt(prob * (1 - prob) / n) + 1e-4
    assert drawn == crf.sample([WordLattice(*lattice)], n, random_state=0)[0]


PARTIAL: dict[str, Any] = {  # what y may say, and whether a path agrees with it
    "full": lambda path, arcs: (list(path), lambda other: other == path),
    "triples": lambda path, arcs: (
        [arcs[i][:3] for i in path],
        lambda other: [arcs[i][:3] for i in other] == [arcs[i][:3] for i in path],
    ),
    "ends": lambda path, arcs: (
        [(*arcs[i][:2], None) for i in path],
        lambda other: [arcs[i][:2] for i in other] == [arcs[i][:2] for i in path],
    ),
    "first": lambda path, arcs: ([path[0], None], lambda other: other[0] == path[0]),
    "last": lambda path, arcs: ([None, path[-1]], lambda other: other[-1] == path[-1]),
    "sets": lambda path, arcs: (
        [{i, *(j for j in range(len(arcs)) if arcs[j][:2] == arcs[i][:2] and j < i)} for i in path],
        lambda other: (
            [arcs[i][:2] for i in other] == [arcs[i][:2] for i in path]
            and all(j <= i for i, j in zip(path, other, strict=True))
        ),
    ),
    "unknown": lambda path, arcs: (None, lambda other: True),
}


@pytest.mark.parametrize("crossed", [True, False])
@pytest.mark.parametrize("kind", [kind for kind in PARTIAL if kind != "unknown"])
def test_objective(kind: str, crossed: bool) -> None:
    """Value, gradient and Hessian–vector product, also with partial paths and weights of sequences."""
    lattices, random = some_lattices(8, 3), RNG(4)
    paths = gold_paths(lattices, 5)
    y, keeps = zip(
        *(PARTIAL[kind](tuple(path), arcs) for path, (_, arcs) in zip(paths, lattices, strict=True)),
        strict=True,
    )
    settings = CRFSettings(Lattice(crossed=crossed), None, "lbfgs", 0, 0, True, True, 1, None, None)
    found = TrainingInput(inputs(lattices), list(y), None, settings).learn()
    counted = random.uniform(0.5, 2, len(lattices))
    keys, n = keys_of(found.model), found.model.n_weights
    w, v = random.normal(size=n), random.normal(size=n)
    weights, direction = dict(zip(keys, w, strict=True)), dict(zip(keys, v, strict=True))
    assert len(keys) == n
    value, gradient, product = 0.0, np.zeros(n), np.zeros(n)
    for lattice, keep, count in zip(lattices, keeps, counted, strict=True):
        right = Enumeration(*lattice, weights, crossed=crossed)
        value += count * (right.log_z() - right.log_z(keep))
        for sign, some in ((1, lambda path: True), (-1, keep)):
            expected, along = right.expected(some), right.covariance_times(direction, some)
            gradient += sign * count * np.array([expected.get(key, 0.0) for key in keys])
            product += sign * count * np.array([along.get(key, 0.0) for key in keys])
    results = []
    for n_threads in (1, 2):
        loss = found.model.potentials.loss(found.data, counted, n_threads)
        objective = Objective(loss, l1=np.zeros(1), l2=np.zeros(1))
        results.append((*objective.value_and_gradient(w), objective.hessian_vector(w, v)))
    assert results[0][0] == pytest.approx(value, abs=1e-11)
    np.testing.assert_allclose(results[0][1], gradient, atol=1e-10)
    np.testing.assert_allclose(results[0][2], product, atol=1e-9)
    assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))  # the same bits


@pytest.mark.parametrize("size", [1.0, 30.0, 100.0, 150.0, 200.0, 400.0, 1e4])
def test_the_evaluator_agrees_with_the_path_engine(size: float) -> None:
    """Also where scores are far apart, and beyond what it can take."""
    random = RNG(8)
    lattices = [random_lattice(random, int(length), 40) for length in random.integers(1, 30, 40)]
    X, y = inputs(lattices), []
    for length, arcs in lattices:  # any path, and some of it unknown
        path, at = [], 0
        while at < length:
            path.append(
                next(i for i, arc in enumerate(arcs) if arc[0] == at and goes_on(arcs, arc[1], length))
            )
            at = arcs[path[-1]][1]
        y.append([*path[: len(path) // 2], None])
    settings = CRFSettings(Lattice(), None, "lbfgs", 0, 0, True, True, 1, None, None)
    found = TrainingInput(X, y, None, settings).learn()
    potentials, dataset = found.model.potentials, found.data.dataset
    assert isinstance(potentials, LatticePotentials)
    assert isinstance(dataset, LatticeDataset)
    data = potentials.lattices.data(potentials.feature_map, potentials.outcomes(dataset), dataset, 1)
    weights, n = random.uniform(0.5, 2, len(X)), potentials.n_weights
    w = size * random.normal(size=n)
    results = [
        _core.Objective(
            _core.word_lattice_loss(data, found.data.annotation.labels, weights, n, n_threads, by_parts),
            np.zeros(1),
        ).value_and_gradient(w)
        for n_threads, by_parts in ((1, True), (1, False), (2, False))
    ]
    assert results[1][0] == pytest.approx(results[0][0], rel=1e-12, abs=1e-9)
    np.testing.assert_allclose(results[1][1], results[0][1], atol=1e-9)
    assert results[1][0] == results[2][0]
    np.testing.assert_array_equal(results[1][1], results[2][1])


def goes_on(arcs: list[Any], at: int, length: int) -> bool:
    return at == length or any(arc[0] == at and goes_on(arcs, arc[1], length) for arc in arcs)


@pytest.mark.parametrize("kind", list(PARTIAL))
def test_partial_paths(kind: str) -> None:
    """Probabilities of partial paths, and partial paths as constraints."""
    crf, lattices = trained(Lattice())
    for lattice, path in zip(lattices, gold_paths(lattices, 9), strict=True):
        y, keep = PARTIAL[kind](tuple(path), lattice[1])
        right, x = oracle(crf, lattice), WordLattice(*lattice)
        expected = right.log_z(keep) - right.log_z()
        assert crf.log_probability([x], [y])[0] == pytest.approx(expected, abs=1e-12)
        among = [p for p in right.paths if keep(p)]
        best = max(right.scores[right.paths.index(p)] for p in among)
        found = crf.predict([x], allowed=[y])[0]
        assert right.scores[right.paths.index(tuple(found))] == pytest.approx(best, abs=1e-12)
        (several,) = crf.predict_nbest([x], 1000, allowed=[y])
        assert sorted(tuple(p) for _, p in several) == sorted(among)


def test_empty_lattice() -> None:
    X = [WordLattice(0, []), WordLattice(1, [(0, 1, "X", ["a"]), (0, 1, "Y", ["a"])])]
    crf: CRF[Any] = CRF(Lattice()).fit(X, [[], [1]])
    assert crf.predict(X) == [[], [1]]
    assert crf.log_probability(X, [[], [1]])[0] == 0
    assert [len(m) for m in crf.predict_marginals(X)] == [0, 2]
    assert crf.predict_nbest(X, 5)[0] == [(1.0, [])]


def test_save_and_load(tmp_path: Path) -> None:
    for structure in STRUCTURES.values():
        crf, lattices = trained(structure)
        crf.save(tmp_path / "model.crf")
        again = crfkit.load(tmp_path / "model.crf")
        assert again.structure == structure
        assert again.structure_names_ == crf.structure_names_
        X = inputs(lattices)
        for a, b in zip(crf.predict_marginals(X), again.predict_marginals(X), strict=True):
            np.testing.assert_array_equal(a, b)


def test_score() -> None:
    crf, lattices = trained(Lattice())
    X, best = inputs(lattices), crf.predict(inputs(lattices))
    assert crf.score(X, best) == 1.0
    triples = [[lattice[1][i][:3] for i in path] for lattice, path in zip(lattices, best, strict=True)]
    assert crf.score(X, triples, metric="sequence_accuracy") == 1.0
    assert crf.score(X, best, metric=lambda gold, predicted: float(gold == predicted)) == 1.0
    paths = [Enumeration(length, arcs, {}).paths for length, arcs in lattices]
    other = [
        next((list(p) for p in some if list(p) != path), path) for some, path in zip(paths, best, strict=True)
    ]
    assert crf.score(X, other) < 1.0
    with pytest.raises(InputError, match="accuracy"):
        crf.score(X, best, metric="accuracy")


ARCS: list[Any] = [(0, 1, "X", []), (1, 3, "Y", ["a"]), (1, 3, "Z", []), (3, 4, "X", [])]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ([0, 1], "sequence 0, entry 2 of its path: nothing is said of 3 to 4"),
        ([0, 3], "sequence 0, entry 1 of its path: nothing is said of 1 to 3"),
        (
            [0, 1, 1],
            "sequence 0, entry 2 of its path: it begins at 1, before the end of the arc before it, 3",
        ),
        ([0, 9], "there is no arc 9, expected 0 to 3"),
        ([(0, 1, "W")], "the lattice has no arc"),
        ([0, {1, 3}], "different ends"),
        ([0, set()], "the set of arcs is empty"),
        (["X"], "'X' is no arc"),
        ("X", "expected a path"),
    ],
)
def test_bad_paths(path: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        CRF(Lattice()).fit([WordLattice(4, ARCS)], [path])


def test_impossible_lattices() -> None:
    crf: CRF[Any] = CRF(Lattice()).fit([WordLattice(4, ARCS)], [[0, 1, 3]])
    whole = WordLattice(4, ARCS)
    with pytest.raises(InputError, match=r"sequence 1: no path of arcs leads from 0 to 4.*lead to 3 at most"):
        crf.predict([whole, WordLattice(4, ARCS[:3])])
    with pytest.raises(InputError, match="sequence 0: no path of arcs leads from 0 to 4"):
        CRF(Lattice()).fit([WordLattice(4, []), whole], [[None], [0, 1, 3]])
    with pytest.raises(InputError, match=r"sequence 0: no path.*allowed arcs"):
        CRF(Lattice()).fit([WordLattice(3, [(0, 3, "X", []), (0, 1, "Y", ["a"])])], [[1, None]])
    with pytest.raises(InputError, match=r"sequence 0 is no crfkit\.WordLattice"):
        crf.predict([[["a"], ["b"]]])
    with pytest.raises(ValueError, match="arc 0 leads from 2 to 2"):
        WordLattice(4, [(2, 2, "X", [])])
    with pytest.raises(ValueError, match="arc 0 is"):
        WordLattice(4, [(2, 3)])
    with pytest.raises(ValueError, match="that is no"):
        Lattice(transitions=["%x[0,0]"])
    with pytest.raises(InputError, match="Lattice lists its arcs"):
        CRF(Lattice(), features="ner").fit([whole], [[0, 1, 3]])


def test_transition_templates() -> None:
    """Several weights score one transition, and labels that training has not seen share them."""
    labels = {"noun": ("N", "sg"), "nouns": ("N", "pl"), "verb": ("V", "sg"), "verbs": ("V", "pl")}
    structure = Lattice(["%L[0]/%R[0]", "%L[0],%L[1]/%R[0],%R[1]", "end %L[0]/%R?[1]"], boundary=("E", "*"))

    def lattice(*choices: tuple[str, ...]) -> WordLattice:
        arcs: list[Any] = [(t, t + 1, labels[name], []) for t, names in enumerate(choices) for name in names]
        return WordLattice(len(choices), arcs)

    X = [lattice(("noun", "verb"), ("noun", "verb"))] * 3
    crf: CRF[Any] = CRF(structure, l2=0.1).fit(X, [[0, 3]] * 3)
    assert set(crf.structure_names_) >= {"N/V", "N,sg/V,sg", "E/N", "V/E", "end N/sg"}
    assert not any(name.startswith("end V/*") for name in crf.structure_names_)
    assert crf.predict([lattice(("nouns", "verbs"), ("nouns", "verbs"))]) == [[0, 3]]


def test_partial_fit_and_start() -> None:
    lattices = some_lattices(8, 1)
    X, y = inputs(lattices), gold_paths(lattices, 2)
    crf: CRF[Any] = CRF(Lattice()).fit(X[:4], y[:4])
    warm: CRF[Any] = CRF(Lattice(), optimizer=crfkit.LBFGS(max_iterations=1)).fit(X[:4], y[:4], start=crf)
    assert warm.history_[0].objective == pytest.approx(crf.history_[-1].objective, rel=1e-4)
    n_names = len(crf.structure_names_)
    crf.partial_fit(X[4:], y[4:])
    assert len(crf.structure_names_) >= n_names
    assert len(crf.predict(X)) == 8


def test_costs_that_are_known_cannot_be_saved(tmp_path: Path) -> None:
    structure = Lattice(CostMatrix(np.zeros((2, 2), np.int16)), crossed=False, boundary=(0, 0))
    X = [WordLattice(1, [(0, 1, (1, 1), ["a"]), (0, 1, (0, 1), ["b"])])]
    with pytest.warns(UnsavableModel, match="write_mecab"):
        crf: CRF = CRF(structure).fit(X, [[0]])
    with pytest.raises(UnsavableError, match="write_mecab"):
        crf.save(tmp_path / "m")
