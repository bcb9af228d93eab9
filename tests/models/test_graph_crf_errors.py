"""`GraphCRF` and bad input: every message names the input, and the factor or the variable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit import Checkpoint, GraphCRF
from crfkit.errors import (
    ArgumentError,
    FunctionError,
    ImpossibleLabelsError,
    InputError,
    LabelError,
    NoOutputError,
    ShapeError,
    SizeLimitError,
    UnsupportedError,
)
from crfkit.features import GraphInput
from tests.models.test_graph_crf import chain, draw_data, loop, one_name, with_topic


def test_bad_input() -> None:
    X, y = draw_data(4)

    def fit(template: Any = chain, X: Any = X, y: Any = y, **settings: Any) -> None:
        GraphCRF(template, **settings).fit(X, y)

    for settings in ({"objective": "exact"}, {"inference": "mean"}, {"min_count": 0}, {"memory_limit": 0}):
        with pytest.raises(ArgumentError):
            fit(**settings)
    with pytest.raises(ArgumentError):
        fit(None)
    with pytest.raises(ShapeError):
        fit(y=y[:2])
    with pytest.raises(ShapeError):
        fit(y=[[*y[0], "N"], *y[1:]])
    for wrong in ({"q": "N"}, {0: ["N"]}, 3, [["N"]] * len(y[0])):
        with pytest.raises(LabelError):
            fit(y=[wrong, *y[1:]])
    with pytest.raises(ArgumentError):
        fit(X=3)
    assert GraphCRF(chain).fit(X, y).predict([]) == []
    with pytest.raises(LabelError):
        fit(with_topic, y=[{"topic": "q"}, *({} for _ in y[1:])])
    with pytest.raises(LabelError, match=r"y\[0\]\['topic'\]: got the label 'q'"):
        fit(with_topic, y=[{"topic": {"q"}}, *(dict(enumerate(output)) for output in y[1:])])
    with pytest.raises(UnsupportedError):
        fit(y=[[None] * len(y[0]), *y[1:]], objective="pseudo_likelihood")

    def twice(x: Any, graph: GraphInput) -> None:
        graph.variable(0)
        graph.variable(0)

    def unknown(x: Any, graph: GraphInput) -> None:
        graph.factor("f", [0])

    def value(x: Any, graph: GraphInput) -> None:
        graph.variable(0)
        graph.factor("f", [0], {"a": float("nan")})

    def failing(x: Any, graph: GraphInput) -> None:
        raise KeyError("q")

    for template in (twice, unknown, value, failing):
        with pytest.raises(InputError, match="input 0"):
            fit(template)

    def tied(*ties: Any) -> Any:
        def template(words: list[str], graph: GraphInput) -> None:
            chain(words, graph)
            for tie in ties if len(words) > 1 else ():
                graph.factor("tied", [0, 1], tie=tie)

        return template

    for ties in (("equal", None), (None, "equal"), ("equal", max)):
        with pytest.raises(UnsupportedError, match=r"input \d: Factor 'tied': tie is .*, elsewhere"):
            fit(tied(*ties))
    for function in (lambda first, second: first, lambda labels: [labels]):
        with pytest.raises(
            FunctionError, match=r"input \d: Factor 'tied': tie failed for the tuple of labels"
        ):
            fit(tied(function))


def test_a_graph_that_is_too_wide_is_refused() -> None:
    def clique(n: int, graph: GraphInput) -> None:
        for v in range(n):
            graph.variable(v, labels=range(4))
            for u in range(v):
                graph.factor("pair", [u, v])

    with pytest.raises(SizeLimitError):
        GraphCRF(clique, memory_limit=1 << 20).fit([30], [[0] * 30])
    GraphCRF(clique, memory_limit=1 << 20, objective="pseudo_likelihood").fit([30], [[0] * 30])
    X, y = draw_data(3)
    wide = r"input 0: exact inference needs more than the limit of 1000 bytes: the largest clique has \d variables \(\d"
    with pytest.raises(SizeLimitError, match=wide):
        GraphCRF(loop, memory_limit=1000).fit(X, y)
    model = GraphCRF(loop, memory_limit=1000, objective="belief_propagation").fit(X, y)
    with pytest.raises(SizeLimitError, match=wide):
        model.predict(X)


def changed(change: Any) -> Any:
    """The template of a chain, with something more for the input that ends in "z"."""

    def template(words: list[str], graph: GraphInput) -> None:
        chain(words, graph)
        if words[-1] == "z":
            change(graph)

    return template


WRONG = {
    "variable without a hashable name": lambda g: g.variable(["v"]),
    "kind of a variable": lambda g: g.variable("v", 5),
    "labels twice": lambda g: g.variable("v", "new", labels=["a", "a"]),
    "no labels": lambda g: g.variable("v", "new", labels=[]),
    "kind of a factor": lambda g: g.factor(["f"], [0]),
    "no list of variables": lambda g: g.factor("f", 0),
    "features": lambda g: g.factor("f", [0], 5),
    "an array as a value": lambda g: g.factor("f", [0], {"a": np.ones(1)}),
    "a complex value": lambda g: g.factor("f", [0], {"a": np.complex128(1)}),
    "tie": lambda g: g.factor("f", [0, 1], tie="alike"),
    "other variables": lambda g: g.factor("word", [0, 1]),
    "an unknown label": lambda g: g.exactly(1, [0, 1], "Q"),
    "a label that is a list": lambda g: g.at_most_one([0, 1], ["N"]),
    "too many": lambda g: g.exactly(3, [0, 1], "N"),
}


@pytest.mark.parametrize("name", WRONG)
def test_messages_name_the_input(name: str) -> None:
    X = [["ab", "cd"], ["ab", "z"], ["cd", "z"]]
    y: list[list[Any]] = [["N", "V"], ["N", None], [None, "N"]]
    with pytest.raises(InputError, match=r"^input 1: .*(factor|Factor|variable|graph\.)"):
        GraphCRF(changed(WRONG[name])).fit(X, y)


def test_messages_of_predictions_name_the_input() -> None:
    X, y = draw_data(4)
    model = GraphCRF(chain).fit(X, y)
    asked = [["ab", "cd"], ["ab", "z"]]
    gold = [{0: "N"}, {0: "N"}]
    for change, kind in (
        (lambda g: g.variable("v", "topic"), LabelError),
        (lambda g: g.factor("word", [0, 1]), UnsupportedError),  # over one variable in the training data
        (lambda g: (g.exactly(0, [0, 1], "N"), g.exactly(1, [0, 1], "N")), NoOutputError),
    ):
        model.graph_template = changed(change)
        for question in (
            lambda: model.predict(asked),
            lambda: model.predict_marginals(asked),
            lambda: model.log_likelihood(asked, gold),
        ):
            with pytest.raises(kind, match=r"^input 1: "):
                question()
    model.graph_template = chain
    with pytest.raises(LabelError, match=r"^input 1: Variable '1' has no value 'Q'"):
        model.log_likelihood(asked, [["N", "V"], ["N", "Q"]])


@pytest.mark.parametrize("objective", ["likelihood", "belief_propagation", "piecewise"])
def test_partial_labels_that_constraints_exclude(objective: str) -> None:
    """Two of three words are the name, and a third may be: the annotation allows no assignment."""
    X = [["a", "b"], ["a", "b", "c"]]
    y: list[list[Any]] = [["O", "NAME"], ["NAME", {"NAME"}, None]]
    with pytest.raises(ImpossibleLabelsError, match=r"^y\[1\]: "):
        GraphCRF(one_name, objective=objective).fit(X, y)

    def none(words: list[str], graph: GraphInput) -> None:
        one_name(words, graph)
        graph.exactly(2, range(2), "NAME")

    with pytest.raises(NoOutputError, match=r"^input 0: no assignment is possible"):
        GraphCRF(none, objective=objective).fit(X, [[None] * 2, [None] * 3])


def test_names_that_are_the_same_text() -> None:
    def two(x: Any, graph: GraphInput) -> None:
        for name in (0, "0"):
            graph.variable(name)
            graph.factor(str(type(name)), [name])

    model = GraphCRF(two, l2=0.1).fit([1, 2], [{0: "a", "0": "b"}] * 2)
    assert model.predict([3]) == [{0: "a", "0": "b"}]
    with pytest.raises(ArgumentError, match="two variables are called '0' as a text"):
        model.graph(3)


def test_max_product_that_fails_is_followed_by_a_search() -> None:
    """Values that messages choose may exclude the rest, as when colours are chosen one after the other."""

    def colouring(edges: list[tuple[int, int]], graph: GraphInput) -> None:
        for v in range(1 + max(map(max, edges))):
            graph.variable(v, labels=["red", "green", "blue"])
            graph.factor("own", [v])
        for u, v in edges:
            for label in ("red", "green", "blue"):
                graph.at_most_one([u, v], label)

    model = GraphCRF(colouring, inference="belief_propagation").fit(
        [[(0, 1), (1, 2)]], [["red", "blue", "red"]]
    )
    random, n = np.random.default_rng(0), 12
    colours = random.integers(3, size=n)
    pairs = [(u, v) for u in range(n) for v in range(u + 1, n) if colours[u] != colours[v]]
    edges = [pair for pair in pairs if random.random() < 0.45]
    found = model.predict([edges])[0]
    assert all(found[u] != found[v] for u, v in edges)


def test_memory_limits_as_texts() -> None:
    X, y = draw_data(3)
    model = GraphCRF(loop, memory_limit="1G").fit(X, y)
    assert len(model.log_likelihood(X, y)) == 3
    for limit in ("1000X", None, 0.5, True):
        with pytest.raises(ArgumentError, match="memory_limit"):
            GraphCRF(loop, memory_limit=limit).fit(X, y)  # type: ignore[arg-type]


TIE = {"of": 0}  # by what a template may differ without being another function


def tied_by_one(words: list[str], graph: GraphInput) -> None:
    for i, word in enumerate(words):
        graph.variable(i)
        graph.factor("word", [i], [word])
        if i > 0:
            graph.factor("pair", [i - 1, i], tie=lambda labels: labels[TIE["of"]])


def test_other_ties_are_other_factors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = draw_data()
    path, optimizer = tmp_path / "checkpoint", crfkit.LBFGS(max_iterations=3)
    first = GraphCRF(tied_by_one, optimizer=optimizer)
    first.fit(X, y, checkpoint=Checkpoint(path, every=1))
    monkeypatch.setitem(TIE, "of", 1)
    with pytest.raises(InputError, match="factors"):
        GraphCRF(tied_by_one, optimizer=optimizer).fit(
            X, y, checkpoint=Checkpoint(path, every=1, resume=True)
        )
