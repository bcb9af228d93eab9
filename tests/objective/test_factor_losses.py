"""Losses of factor graphs with tied weights: value, gradient and Hessian–vector product of every criterion."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from crfkit import InputError
from crfkit.features import FactorMap, GraphInput, graph_loss, learn_factors
from crfkit.objective import Objective
from tests.oracles.factor_problems import TiedGraph, Weights

LABELS = {"a": ("x", "y", "z"), "b": (0, 1)}
CRITERIA = ("pseudo_likelihood", "piecewise", "likelihood")
Floats = np.ndarray[Any, np.dtype[np.float64]]


def key_of(kind: str, configuration: tuple[Any, ...]) -> Any:
    """Factors of the kind "same" have two weights for each feature."""
    return len(set(configuration)) == 1 if kind == "same" else configuration


def draw_input(random: np.random.Generator) -> GraphInput:
    graph = GraphInput()
    kinds = [("a", "b")[int(random.integers(2))] for _ in range(int(random.integers(1, 5)))]
    for v, kind in enumerate(kinds):
        graph.variable(v, kind, LABELS[kind])
    for v, kind in enumerate(kinds):
        graph.factor(f"one {kind}", [v], {f"f{random.integers(3)}": float(random.normal()), "g": 1.0})
    for u, v in itertools.combinations(range(len(kinds)), 2):
        if random.random() < 0.6:
            graph.factor(f"two {kinds[u]} {kinds[v]}", [u, v])
        if kinds[u] == kinds[v] == "a" and random.random() < 0.5:
            graph.factor("same", [u, v], ["near"], tie="equal")
    return graph


def draw_output(random: np.random.Generator, graph: GraphInput, *, complete: bool) -> list[Any]:
    output: list[Any] = []
    for variable in graph.variables:
        labels = LABELS[variable.kind]
        value: Any = labels[int(random.integers(len(labels)))]
        if not complete and random.random() < 0.4:
            value = None if random.random() < 0.5 else {value, labels[0]}
        output.append(value)
    return output


def draw_problem(seed: int, *, complete: bool) -> tuple[list[GraphInput], list[list[Any]], FactorMap]:
    random = np.random.default_rng(seed)
    inputs = [draw_input(random) for _ in range(4)]
    outputs = [draw_output(random, graph, complete=complete) for graph in inputs]
    return inputs, outputs, learn_factors(inputs, outputs, all_configurations=bool(seed % 2))


def named_weights(factor_map: FactorMap, w: Floats) -> Weights:
    """The weights by what they score."""
    found = {}
    for (kind, name), feature in factor_map.features.items():
        known = factor_map.kinds[kind]
        configurations = list(itertools.product(*(factor_map.labels[k] for k in known.kinds)))
        for d in range(factor_map.weight_ptr[feature], factor_map.weight_ptr[feature + 1]):
            of_class = np.flatnonzero(known.classes == factor_map.weight_classes[d])
            found[kind, name, key_of(kind, configurations[of_class[0]])] = float(w[d])
    return found


def oracle_value(
    criterion: str, inputs: list[GraphInput], outputs: list[list[Any]], weights: Floats, w: Weights
) -> float:
    total = 0.0
    for graph, output, weight in zip(inputs, outputs, weights, strict=True):
        factors = [(f.kind, f.variables, f.features) for f in graph.factors]
        tied = TiedGraph([LABELS[v.kind] for v in graph.variables], factors, key_of)
        total += weight * getattr(tied, criterion)(output, w)
    return total


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("seed", range(8))
def test_value_gradient_and_product(criterion: str, seed: int) -> None:
    complete = criterion == "pseudo_likelihood" or seed % 4 == 0
    inputs, outputs, factor_map = draw_problem(seed, complete=complete)
    random = np.random.default_rng(100 + seed)
    weights = random.uniform(0.5, 2.0, size=len(inputs))
    loss = graph_loss(factor_map, inputs, outputs, sample_weight=weights, criterion=criterion)
    objective = Objective(loss, l2=0.0)
    w, v = random.normal(size=(2, factor_map.n_weights))

    def value_at(point: Floats) -> float:
        return oracle_value(criterion, inputs, outputs, weights, named_weights(factor_map, point))

    value, gradient = objective.value_and_gradient(w)
    assert value == pytest.approx(value_at(w), rel=1e-12, abs=1e-12)
    step = 1e-5
    differences = np.array([value_at(w + step * e) - value_at(w - step * e) for e in np.eye(len(w))]) / (
        2 * step
    )
    assert gradient == pytest.approx(differences, abs=1e-8)
    moved = (
        objective.value_and_gradient(w + step * v)[1] - objective.value_and_gradient(w - step * v)[1]
    ) / (2 * step)
    assert objective.hessian_vector(w, v) == pytest.approx(moved, abs=1e-7)


@pytest.mark.parametrize("seed", range(8))
def test_tree_reweighted_is_a_convex_bound(seed: int) -> None:
    inputs, outputs, factor_map = draw_problem(seed, complete=True)
    random = np.random.default_rng(100 + seed)
    weights = random.uniform(0.5, 2.0, size=len(inputs))
    objective = Objective(
        graph_loss(factor_map, inputs, outputs, sample_weight=weights, criterion="tree_reweighted"), l2=0.0
    )
    w, v = random.normal(size=(2, factor_map.n_weights))
    value, gradient = objective.value_and_gradient(w)
    assert value >= oracle_value("likelihood", inputs, outputs, weights, named_weights(factor_map, w)) - 1e-9
    step = 1e-4
    values = [objective.value_and_gradient(w + t * v)[0] for t in (-1, -step, step, 1)]
    assert gradient @ v == pytest.approx((values[2] - values[1]) / (2 * step), abs=1e-5)
    assert values[0] + values[3] >= 2 * value - 1e-9
    moved = [objective.value_and_gradient(w + t * v)[1] for t in (-step, step)]
    product = objective.hessian_vector(w, v)
    assert product == pytest.approx((moved[1] - moved[0]) / (2 * step), abs=1e-3)
    u = random.normal(size=factor_map.n_weights)
    assert product @ u == pytest.approx(objective.hessian_vector(w, u) @ v, abs=1e-5)
    assert product @ v > -1e-9


def test_tree_reweighted_is_exact_without_cycles() -> None:
    random = np.random.default_rng(0)
    graph = GraphInput()
    for v in range(5):
        graph.variable(v, "a", LABELS["a"])
        graph.factor("one a", [v], {"f": float(random.normal())})
        if v > 0:
            graph.factor("two a a", [int(random.integers(v)), v])
    output = draw_output(random, graph, complete=False)
    factor_map = learn_factors([graph], [output], all_configurations=True)
    w = random.normal(size=factor_map.n_weights)
    loss = graph_loss(factor_map, [graph], [output], criterion="tree_reweighted")
    expected = oracle_value("likelihood", [graph], [output], np.ones(1), named_weights(factor_map, w))
    assert Objective(loss, l2=0.0).value_and_gradient(w)[0] == pytest.approx(expected, abs=1e-9)


def is_forest(graph: GraphInput) -> bool:
    """Whether the factors make no cycle."""
    parts = {v: {v} for v in range(len(graph.variables))}
    for factor in graph.factors:
        touched = [parts[v] for v in factor.variables]
        if len({id(part) for part in touched}) < len(touched):
            return False
        whole = set().union(*touched)
        parts.update(dict.fromkeys(whole, whole))
    return True


def belief_objectives(seed: int, *, forests: bool) -> tuple[Objective, Objective, Floats]:
    """By belief propagation and exactly, on graphs without cycles or with some, and a direction and a point."""
    inputs: list[GraphInput] = []
    outputs: list[list[Any]] = []
    number = 0
    while len(inputs) < 4:
        random = np.random.default_rng([seed, number])
        graph, number = draw_input(random), number + 1
        if is_forest(graph) == forests:
            inputs.append(graph)
            outputs.append(draw_output(random, graph, complete=len(inputs) % 2 == 0))
    factor_map = learn_factors(inputs, outputs, all_configurations=True)
    random = np.random.default_rng(seed)
    points = random.normal(scale=0.5, size=(3, factor_map.n_weights))
    losses = (
        graph_loss(factor_map, inputs, outputs, criterion=name)
        for name in ("belief_propagation", "likelihood")
    )
    loopy, exact = (Objective(loss, l2=0.0) for loss in losses)
    return loopy, exact, points


@pytest.mark.parametrize("seed", range(4))
def test_belief_propagation_is_exact_without_cycles(seed: int) -> None:
    loopy, exact, (w, v, _) = belief_objectives(seed, forests=True)
    value, gradient = loopy.value_and_gradient(w)
    known, known_gradient = exact.value_and_gradient(w)
    assert value == pytest.approx(known, rel=1e-12)
    assert gradient == pytest.approx(known_gradient, abs=1e-10)
    assert loopy.hessian_vector(w, v) == pytest.approx(exact.hessian_vector(w, v), abs=1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_derivatives_of_belief_propagation(seed: int) -> None:
    """The gradient is that of Bethe's value, the product that of the gradient; the Hessian is symmetric."""
    loopy, exact, (w, v, u) = belief_objectives(seed, forests=False)
    step = 1e-4
    value, gradient = loopy.value_and_gradient(w)
    assert abs(value - exact.value_and_gradient(w)[0]) < 0.2 * abs(value)
    differences = [
        (loopy.value_and_gradient(w + step * e)[0] - loopy.value_and_gradient(w - step * e)[0]) / (2 * step)
        for e in np.eye(len(w))
    ]
    assert gradient == pytest.approx(differences, abs=1e-6)
    moved = (loopy.value_and_gradient(w + step * v)[1] - loopy.value_and_gradient(w - step * v)[1]) / (
        2 * step
    )
    product = loopy.hessian_vector(w, v)
    assert product == pytest.approx(moved, abs=1e-6)
    assert product @ u == pytest.approx(loopy.hessian_vector(w, u) @ v, abs=1e-8)
    assert loopy.hessian_vector(w, 1e-7 * v) == pytest.approx(1e-7 * product, rel=1e-7, abs=1e-16)


@pytest.mark.parametrize("criterion", [*CRITERIA, "belief_propagation", "tree_reweighted"])
def test_same_bits_for_any_number_of_threads(criterion: str) -> None:
    inputs, outputs, factor_map = draw_problem(3, complete=True)
    w = np.random.default_rng(0).normal(size=factor_map.n_weights)
    results = []
    for n_threads in (1, 2, 3):
        loss = graph_loss(factor_map, inputs * 50, outputs * 50, criterion=criterion, n_threads=n_threads)
        value, gradient = Objective(loss).value_and_gradient(w)
        results.append((value, gradient.tobytes()))
    assert results[0] == results[1] == results[2]


def test_pseudo_likelihood_needs_all_labels() -> None:
    inputs, outputs, factor_map = draw_problem(1, complete=True)
    outputs[2][0] = None
    with pytest.raises(InputError, match="input 2"):
        graph_loss(factor_map, inputs, outputs, criterion="pseudo_likelihood")


def test_weights_pass_to_a_map_with_other_labels() -> None:
    inputs, outputs, factor_map = draw_problem(5, complete=False)
    w = np.random.default_rng(0).normal(size=factor_map.n_weights)
    same = factor_map.transfer_weights(factor_map, w)
    assert same.tolist() == w.tolist()
    half = learn_factors(inputs[:2], outputs[:2])
    moved = named_weights(half, half.transfer_weights(factor_map, w))
    known = named_weights(factor_map, w)
    assert all(value == known.get(key, 0.0) for key, value in moved.items())
    assert any(moved.values())


def test_weights_that_are_zero_are_dropped() -> None:
    _, _, factor_map = draw_problem(5, complete=False)
    w = np.random.default_rng(0).normal(size=factor_map.n_weights)
    w[::2] = 0.0
    pruned, left = factor_map.prune(w)
    assert left.tolist() == w[1::2].tolist()
    assert named_weights(pruned, left) == {k: x for k, x in named_weights(factor_map, w).items() if x}
