"""`GraphCRF`: trained on factor graphs by every objective and optimizer, asked, saved and loaded."""

from __future__ import annotations

import contextlib
import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit import CRF, Chain, Checkpoint, GraphCRF, inference
from crfkit.errors import ArgumentError, ImpossibleLabelsError, InputError, NotLoadedError, UnsavableError
from crfkit.features import GraphInput

OPTIMIZERS: dict[str, Any] = {
    "L-BFGS": crfkit.LBFGS(max_iterations=8),
    "OWL-QN": crfkit.LBFGS(max_iterations=8),
    "TRON": crfkit.TRON(max_iterations=4),
    "Newton": crfkit.Newton(max_iterations=4),
    "SGD": crfkit.SGD(max_iterations=4),
    "AdaGrad": crfkit.AdaGrad(max_iterations=4),
    "SAG": crfkit.SAG(max_iterations=4),
    "perceptron": crfkit.AveragedPerceptron(max_iterations=4),
    "passive-aggressive": crfkit.PassiveAggressive(max_iterations=4),
    "AROW": crfkit.AROW(max_iterations=4),
}
OBJECTIVES = ("likelihood", "belief_propagation", "tree_reweighted", "pseudo_likelihood", "piecewise")


def chain(words: list[str], graph: GraphInput) -> None:
    """A linear chain."""
    for i, word in enumerate(words):
        graph.variable(i)
        graph.factor("word", [i], [f"w={word}", f"s={word[-1]}"])
        if i > 0:
            graph.factor("transition", [i - 1, i])


def loop(words: list[str], graph: GraphInput) -> None:
    """A chain in which equal words are connected, and the first word with the last."""
    chain(words, graph)
    for i in range(len(words)):
        for j in range(i + 2, len(words)):
            if words[i] == words[j]:
                graph.factor("skip", [i, j], ["same"], tie="equal")
    if len(words) > 2:
        graph.factor("ends", [0, len(words) - 1])


def with_topic(words: list[str], graph: GraphInput) -> None:
    """Labels beside a hidden variable of the sentence."""
    graph.variable("topic", "topic", ["s", "t"])
    for i, word in enumerate(words):
        graph.variable(i)
        graph.factor("word", [i], [word])
        graph.factor("topic", ["topic", i], [word[-1]])


def one_name(words: list[str], graph: GraphInput) -> None:
    """Exactly one word is the name."""
    for i, word in enumerate(words):
        graph.variable(i, labels=["O", "NAME"])
        graph.factor("word", [i], [word])
    graph.exactly(1, range(len(words)), "NAME")


def draw_data(n: int = 12, seed: int = 0) -> tuple[list[list[str]], list[list[str]]]:
    random = np.random.default_rng(seed)
    X = [
        [str(random.choice(["ab", "cd", "ed", "ba", "da"])) for _ in range(random.integers(1, 6))]
        for _ in range(n)
    ]
    y = [
        [str(random.choice(["N", "V", "A"], p=[0.6, 0.3, 0.1])) if w[-1] == "d" else "N" for w in x]
        for x in X
    ]
    return X, y


def test_a_chain_as_a_graph_has_the_chains_optimum() -> None:
    X, y = draw_data(30)
    features = [[{f"w={w}": 1.0, f"s={w[-1]}": 1.0} for w in x] for x in X]
    tight = crfkit.LBFGS(tolerance=1e-9, max_iterations=1000)
    everything: dict[str, Any] = {"all_possible_states": True, "all_possible_transitions": True}
    crf = CRF(Chain(start=False, end=False), optimizer=tight, l2=0.3, **everything).fit(features, y)
    graph = GraphCRF(chain, optimizer=tight, l2=0.3, all_configurations=True).fit(X, y)
    assert graph.history_[-1].objective == pytest.approx(crf.history_[-1].objective, rel=1e-8)
    assert [list(labels.values()) for labels in graph.predict(X)] == crf.predict(features)
    marginals = graph.predict_marginals(X[:3])
    for of_graph, of_chain in zip(marginals, crf.predict_marginals(features[:3]), strict=True):
        for one, other in zip(of_graph.values(), of_chain, strict=True):
            assert list(one.values()) == pytest.approx(list(other), abs=1e-6)


def test_transitions_that_never_occur_have_weights_as_those_of_a_chain() -> None:
    X, y = draw_data(6)
    pairs = {pair for labels in y for pair in pairwise(labels)}
    assert len(pairs) < len({label for labels in y for label in labels}) ** 2
    features = [[{f"w={w}": 1.0, f"s={w[-1]}": 1.0} for w in x] for x in X]
    tight = crfkit.LBFGS(tolerance=1e-9, max_iterations=1000)
    crf = CRF(Chain(start=False, end=False), optimizer=tight, l2=0.3).fit(features, y)
    graph = GraphCRF(chain, optimizer=tight, l2=0.3).fit(X, y)
    assert len(graph.weights_) == len(crf.weights_)
    assert graph.history_[-1].objective == pytest.approx(crf.history_[-1].objective, rel=1e-8)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer(name: str, objective: str, tmp_path: Path) -> None:
    X, y = draw_data()
    optimizer = OPTIMIZERS[name]
    settings: dict[str, Any] = {"objective": objective, "optimizer": optimizer, "n_threads": 1}
    settings["l1"] = 0.1 if name == "OWL-QN" else 0.0
    trained = GraphCRF(loop, **settings).fit(X, y, dev=(X[:4], y[:4]))
    assert len(trained.history_) > 1
    assert trained.score(X, y) >= 0.5

    def stop(progress: Any) -> bool:
        return bool(progress.iteration >= 2)

    path = tmp_path / "checkpoint"
    GraphCRF(loop, **settings).fit(X, y, callback=stop, checkpoint=Checkpoint(path, every=1))
    resumed = GraphCRF(loop, **settings).fit(X, y, checkpoint=Checkpoint(path, every=1, resume=True))
    whole = GraphCRF(loop, **settings).fit(X, y)
    assert resumed.weights_.tobytes() == whole.weights_.tobytes()
    warm = GraphCRF(loop, **settings).fit(X, y, start=whole)
    assert len(warm.history_) >= 1


def test_prediction_by_belief_propagation() -> None:
    X, y = draw_data()
    exact = GraphCRF(chain).fit(X, y)  # no cycles: both are exact
    loopy = GraphCRF(chain, inference="belief_propagation").fit(X, y)
    assert loopy.predict(X) == exact.predict(X)
    for some, others in zip(loopy.predict_marginals(X), exact.predict_marginals(X), strict=True):
        for name, of_labels in some.items():
            assert of_labels == pytest.approx(others[name], abs=1e-6)


def spin_glass(couplings: np.ndarray[Any, Any], graph: GraphInput) -> None:
    """A square grid whose neighbours attract or repel each other."""
    n = len(couplings)
    for i, j in np.ndindex(n, n):
        graph.variable((i, j), labels=["down", "up"])
        graph.factor("field", [(i, j)], {"field": float(couplings[i, j, 0])})
        if i > 0:
            graph.factor("pair", [(i - 1, j), (i, j)], {"coupling": float(couplings[i, j, 1])}, tie="equal")
        if j > 0:
            graph.factor("pair", [(i, j - 1), (i, j)], {"coupling": float(couplings[i, j, 2])}, tie="equal")


@pytest.mark.parametrize("method", ["belief_propagation", "tree_reweighted"])
def test_predictions_by_messages_are_no_worse_than_the_proved_best(method: str) -> None:
    """Frustrated grids, on which loopy max-product alone misses the best assignment."""
    random = np.random.default_rng(0)
    X = [random.normal(size=(8, 8, 3)) for _ in range(6)]
    y = [{(i, j): ("down", "up")[int(random.integers(2))] for i, j in np.ndindex(8, 8)} for _ in X]
    model = GraphCRF(spin_glass, "pseudo_likelihood", method, l2=1.0, all_configurations=True).fit(X, y)
    strong = [100 * x for x in X]
    missed = 0
    for x, output in zip(strong, model.predict(strong), strict=True):
        graph = model.graph(x)
        found = inference.score(graph, None, {str(name): label for name, label in output.items()})
        assert found == pytest.approx(inference.decode(graph).score, rel=1e-9)
        missed += inference.max_product(graph).score < found - 1e-6
    assert missed > 0


def test_hidden_variables_and_partial_labels() -> None:
    X, labels = draw_data(20)
    y: list[dict[Any, Any]] = [dict(enumerate(some)) for some in labels]
    for output in y[::3]:
        output[0] = {"N", "V"}
    model = GraphCRF(with_topic, optimizer=crfkit.SGD(max_iterations=10), all_configurations=True).fit(X, y)
    model = GraphCRF(with_topic, l2=0.1, all_configurations=True).fit(X, y, start=model)
    assert model.labels_ == {"topic": ("s", "t"), "label": ("N", "V")}
    assert set(model.predict(X[:1])[0]) == {"topic", *range(len(X[0]))}
    total = -model.log_likelihood(X, y).sum() + 0.05 * np.sum(model.weights_**2)
    assert total == pytest.approx(model.history_[-1].objective, rel=1e-9)


def test_constraints_hold_in_training_and_prediction() -> None:
    X = [["a", "b", "c"], ["b", "a"], ["c", "a", "b", "c"]]
    y = [["O", "NAME", "O"], ["NAME", "O"], ["O", "O", "NAME", "O"]]
    model = GraphCRF(one_name, l2=0.1).fit(X, y)
    assert [list(labels.values()) for labels in model.predict(X)] == y
    assert list(model.predict([["q", "q", "q"]])[0].values()).count("NAME") == 1
    graph = model.graph(["a", "b"])
    assert inference.log_partition(graph) == pytest.approx(
        np.logaddexp(inference.score(graph, output=[0, 1]), inference.score(graph, output=[1, 0]))
    )
    with pytest.raises(ImpossibleLabelsError):
        GraphCRF(one_name).fit(X, [["O", "O", "O"], *y[1:]])


def test_saved_and_loaded(tmp_path: Path) -> None:
    X, y = draw_data()
    model = GraphCRF(loop, l2=0.5, l1=0.01).fit(X, y)
    path = tmp_path / "model"
    model.save(path)
    loaded = crfkit.load(path, functions=[loop])
    assert isinstance(loaded, GraphCRF)
    assert loaded.predict(X) == model.predict(X)
    assert loaded.get_params() == model.get_params() | {"n_threads": None}
    assert crfkit.load(path, trust_functions=True).predict(X) == model.predict(X)
    assert pickle.loads(pickle.dumps(model)).predict(X) == model.predict(X)
    with pytest.raises(NotLoadedError):
        crfkit.load(path).predict(X)
    with pytest.raises(ArgumentError):
        crfkit.load(path, functions=[loop, loop])
    with pytest.raises(UnsavableError):
        GraphCRF(lambda x, graph: loop(x, graph)).fit(X, y).save(path)


def test_damaged_files(tmp_path: Path) -> None:
    X, y = draw_data(4)
    path = tmp_path / "model"
    GraphCRF(loop).fit(X, y).save(path)
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    for _ in range(200):
        data = bytearray(whole)
        for place in random.integers(len(data), size=random.integers(1, 4)):
            data[place] = random.integers(256)
        path.write_bytes(bytes(data[: random.integers(len(data) + 1)] if random.random() < 0.2 else data))
        with contextlib.suppress(InputError):
            crfkit.load(path, functions=[loop]).predict(X)
