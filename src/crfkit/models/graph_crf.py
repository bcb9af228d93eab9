"""Conditional random fields on factor graphs: a graph template says which variables and factors an input has."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from crfkit import inference
from crfkit.arrays import Float64s
from crfkit.errors import InputError, NoOutputError, reword
from crfkit.features import GraphAnswers, GraphInput, GraphTemplate, read_input, read_outputs, scored_graph
from crfkit.models.checks import check_pair_lengths, count_threads
from crfkit.models.estimator import Estimator
from crfkit.models.files import factor_file
from crfkit.models.files.model_file import ModelFile
from crfkit.models.graph_settings import GraphSettings
from crfkit.models.notebook_view import label_list
from crfkit.models.settings import DEFAULT_OPTIMIZER
from crfkit.models.training.checkpoint import Checkpoint
from crfkit.models.training.graph_task import FactorModel, GraphTask, open_answers, read_pairs, share_right
from crfkit.models.training.progress import ProgressCallback
from crfkit.models.training.train import Plan, train
from crfkit.optimizers import Optimizer
from crfkit.structures import FactorGraph

Output = dict[Hashable, Hashable]


class GraphCRF(Estimator):
    """A conditional random field on factor graphs of any form.

        p(y | x) = exp(Σ_f score_f(y_f)) / Z(x)

    Parameters
    ----------
    graph_template : a function of an input x and of a `crfkit.features.GraphInput`, which it fills with the variables of x
        and with factors and their features
    objective : what is minimised besides the penalties. "likelihood": −log p(y | x), exactly, by a junction tree;
        "belief_propagation": the same with the log Z of loopy belief propagation; "tree_reweighted": with its upper bound
        on log Z, which is convex in the weights; "pseudo_likelihood": Σ_v −log p(y_v | the rest of y);
        "piecewise": each factor normalised on its own
    inference : how predictions are made. "exact", "belief_propagation" or "tree_reweighted"; with messages, the best outputs
        are improved as by `crfkit.inference.map_estimate`
    optimizer, l1, l2 : as for `CRF`
    all_configurations : a feature has weights for all configurations of the labels of its factor, not only for those that
        occur with it in the training data; factors without features always have
    min_count : features of fewer factors of the training data are left out
    memory_limit : bytes that exact inference on one graph may take, or a text such as "4G"; more is refused before anything
        is allocated
    n_threads : None: all processors that the process may use. The results do not depend on it, to the last bit.

    Attributes
    ----------
    labels_ : the labels of each kind of variables
    weights_, history_, n_iter_, stop_reason_, stop_message_, optimizer_, optimizer_reason_ : as for `CRF`

    Examples
    --------
    >>> def chain(words, graph):
    ...     for i, word in enumerate(words):
    ...         graph.variable(i)
    ...         graph.factor("word", [i], [word])
    ...         if i > 0:
    ...             graph.factor("transition", [i - 1, i])
    >>> X = [["the", "dog", "barks"], ["the", "cat", "sleeps"]]
    >>> y = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"]]
    >>> model = GraphCRF(chain, l2=0.1).fit(X, y)
    >>> model.predict([["the", "dog", "sleeps"]])
    [{0: 'DET', 1: 'NOUN', 2: 'VERB'}]
    """

    _model: FactorModel

    def __init__(
        self,
        graph_template: GraphTemplate,
        objective: str = "likelihood",
        inference: str = "exact",
        optimizer: Optimizer | str = DEFAULT_OPTIMIZER,
        l1: float = 0.0,
        l2: float = 1.0,
        all_configurations: bool = False,
        min_count: int = 1,
        memory_limit: float | str = 1 << 32,
        n_threads: int | None = None,
    ) -> None:
        self.graph_template = graph_template
        self.objective = objective
        self.inference = inference
        self.optimizer = optimizer
        self.l1 = l1
        self.l2 = l2
        self.all_configurations = all_configurations
        self.min_count = min_count
        self.memory_limit = memory_limit
        self.n_threads = n_threads

    def fit(
        self,
        X: Iterable[Any],
        y: Iterable[Mapping[Any, Any] | Sequence[Any]],
        sample_weight: npt.ArrayLike | None = None,
        *,
        dev: tuple[Iterable[Any], Iterable[Any]] | None = None,
        metric: Any = None,
        patience: int | None = None,
        callback: ProgressCallback | None = None,
        time_budget: float | None = None,
        start: GraphCRF | str | os.PathLike[str] | None = None,
        checkpoint: Checkpoint | None = None,
        verbose: bool | int | str = False,
    ) -> Self:
        """Train on inputs X and their outputs y.

        An output is a mapping from names of variables to labels, or a list in the order of the variables. A set of labels
        allows any of them; a variable that is None, or not in the mapping, is hidden: the sum over its labels is trained.
        With `dev`, a pair (X, y), the weights with the highest accuracy on it are kept, or with the highest `metric`, a
        function of gold and predicted outputs. Other arguments as for `CRF.fit`.
        """
        first = None if start is None else GraphCRF._read_start(start)
        plan = Plan(dev, metric, patience, callback, time_budget, checkpoint, first, verbose)
        self._keep(train(GraphTask(self._settings(), X, y, sample_weight), plan))
        self._metadata = {}
        return self

    def graph(self, x: Any) -> FactorGraph:
        """The factor graph of an input at the weights: what `crfkit.inference` answers all questions on."""
        model = self._get_model()
        return scored_graph(model.factor_map, read_input(self.graph_template, x, 0), self.weights_)

    def predict(self, X: Iterable[Any]) -> list[Output]:
        """The best output of each input: a dict from the names of its variables to labels."""
        return self._answers(self._read(X)).decode(self.weights_)

    def predict_marginals(self, X: Iterable[Any]) -> list[dict[Hashable, dict[Hashable, float]]]:
        """P(label) of each variable of each input: {name: {label: probability}}."""
        return self._answers(self._read(X)).marginals(self.weights_)

    def log_likelihood(self, X: Iterable[Any], y: Iterable[Any]) -> Float64s:
        """log p(y | x) of each input, [N]; of all outputs that y allows together, where labels are unknown."""
        model, found = self._get_model(), []
        for number, (x, output) in enumerate(check_pair_lengths(X, y)):
            graph = read_input(self.graph_template, x, number)
            values = read_outputs(graph, output, number)
            allowed = {
                v: value if isinstance(value, set | frozenset) else {value}
                for v, value in enumerate(values)
                if value is not None
            }
            try:
                scored = scored_graph(model.factor_map, graph, self.weights_, number)
                total = inference.log_partition(scored, memory_limit=self.memory_limit)
                agreeing = inference.log_partition(scored, allowed=allowed, memory_limit=self.memory_limit)
            except InputError as error:
                prefix = "" if str(error).startswith("input ") else f"input {number}: "
                raise reword(error, f"{prefix}{error}") from None
            if total == -math.inf:
                raise NoOutputError(
                    f"input {number}: no assignment is possible, the constraints of the graph template exclude every one."
                )
            found.append(min(agreeing - total, 0.0))
        return np.array(found)

    def score(self, X: Iterable[Any], y: Iterable[Any]) -> float:
        """Accuracy: the share of variables with a known label that are predicted right."""
        inputs, outputs = read_pairs(self._settings(), X, y)
        return share_right(inputs, outputs, self._answers(inputs).decode(self.weights_))

    def _facts(self) -> dict[str, object] | None:
        known = super()._facts()
        if known is None:
            return None
        labels = {f"labels of {kind}": label_list(labels) for kind, labels in self.labels_.items()}
        return {**labels, **known}

    @property
    def labels_(self) -> dict[str, tuple[Hashable, ...]]:
        """The labels of each kind of variables."""
        return dict(self._get_model().factor_map.labels)

    def _read(self, X: Iterable[Any]) -> list[GraphInput]:
        self._check_fitted()
        return [read_input(self.graph_template, x, number) for number, x in enumerate(X)]

    def _answers(self, inputs: list[GraphInput]) -> GraphAnswers:
        settings = self._settings()
        return open_answers(self._get_model().factor_map, inputs, settings, count_threads(self.n_threads))

    def _settings(self) -> GraphSettings:
        return GraphSettings(**{field.name: getattr(self, field.name) for field in fields(GraphSettings)})

    def _pack(self, settings: dict[str, Any], history: Float64s, *, single_precision: bool) -> ModelFile:
        contents = factor_file.FactorContents(
            settings, self._settings(), self._get_model().factor_map, self.weights_, history
        )
        return factor_file.pack(contents, single_precision=single_precision)

    def _functions(self, params: dict[str, Any]) -> Any:
        return [params["graph_template"]]

    def _get_model(self) -> FactorModel:
        self._check_fitted()
        return self._model
