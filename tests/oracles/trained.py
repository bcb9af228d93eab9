"""Losses of data sets of every structure, with all outputs of each sequence and what these have of each weight.

Everything a loss answers follows from these lists: with φ(y) [D] the counts of output y, p ∝ exp(φ w) and c the weight of
a sequence, its value is c (log Z − log Z_gold), its gradient c (E[φ] − E_gold[φ]) and its Hessian–vector product
c (Cov[φ] − Cov_gold[φ]) v, where gold means the outputs that the annotation admits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import combinations, product
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.features import Annotation, Dataset, FeatureMap, FunctionData, GraphMap, PatternMap, WordVectors
from crfkit.inference import Answerer, ChainPotentials, FunctionPotentials, GraphPotentials, PatternPotentials
from crfkit.models.kinds.segments import SegmentPotentials
from crfkit.objective import Loss, Objective
from crfkit.structures import Arc, GraphStructure, Patterns
from tests.oracles.function_problems import FUNCTION_KINDS, FUNCTIONS, FunctionProblem
from tests.oracles.lattice_problems import LatticeProblem
from tests.oracles.online_reference import every_kind_of_feature
from tests.oracles.oracle import TreeOracle
from tests.oracles.parser_problems import ParserProblem, real_arcs
from tests.oracles.pattern_cases import PatternCase
from tests.oracles.restricted import KINDS, Problem
from tests.oracles.second_order_problems import SecondOrderProblem
from tests.oracles.second_order_problems import parts_of as second_order_parts_of
from tests.oracles.segment_problems import SegmentProblem
from tests.oracles.segmentations import labels_of
from tests.oracles.treebanks import VECTORS, random_treebank

Float64s = npt.NDArray[np.float64]
L2 = 0.3


class Outputs(NamedTuple):
    """The outputs of one sequence."""

    counts: Float64s  # [outputs, D]
    admitted: npt.NDArray[np.bool_]  # [outputs] by the annotation
    costs: Float64s | float = 0.0  # [outputs] added to their scores; 0 for those that are admitted

    def moments(self, w: Float64s, v: Float64s) -> tuple[float, Float64s, Float64s]:
        """log Z, E[counts] and Cov[counts]·v."""
        scores = self.counts @ w + self.costs
        log_z = np.logaddexp.reduce(scores)
        p = np.exp(scores - log_z)
        mean = p @ self.counts
        return float(log_z), mean, (p * (self.counts @ v)) @ self.counts - (mean @ v) * mean

    def right(self) -> Outputs:
        """Those that the annotation admits."""
        return Outputs(self.counts[self.admitted], self.admitted[self.admitted])


class Trained:
    """A loss at weights w, with a direction v."""

    def __init__(self, loss: Callable[..., Loss], outputs: list[Outputs], weight: Float64s) -> None:
        self.loss = loss  # of single_precision and n_threads
        self.outputs = outputs  # [N]
        self.weight = weight  # [N]
        random = np.random.default_rng(len(outputs))
        self.answers: Any = (
            None  # an answerer at w, the data as it reads them, and the label sequences of each output
        )
        self.has_mistakes = True  # the perceptron and its relatives can train it
        self.w, self.v = random.normal(size=(2, outputs[0].counts.shape[1]))

    def objective(self, *, l2: float = L2, single_precision: bool = False, n_threads: int = 1) -> Objective:
        """The loss with a penalty."""
        return Objective(self.loss(single_precision=single_precision, n_threads=n_threads), l2=l2)

    def enumerated(self) -> tuple[float, Float64s, Float64s]:
        """Value, gradient and Hessian–vector product of the objective."""
        value, gradient, product = 0.5 * L2 * float(self.w @ self.w), L2 * self.w, L2 * self.v
        for outputs, weight in zip(self.outputs, self.weight, strict=True):
            for sign, some in ((weight, outputs), (-weight, outputs.right())):
                log_z, mean, moved = some.moments(self.w, self.v)
                value, gradient, product = (
                    value + sign * log_z,
                    gradient + sign * mean,
                    product + sign * moved,
                )
        return value, gradient, product


def of_chain(kind: Mapping[str, Any]) -> Trained:
    """Rows, lattices or batches: see `Problem`."""
    problem = Problem(1, **kind)
    outputs = [
        Outputs(
            np.array([problem.counts(n, y) for y in problem.label_sequences(n)]),
            np.array([problem.admits(n, y) for y in problem.label_sequences(n)]),
        )
        for n in range(len(problem.lengths))
    ]
    loss = partial(problem.map.loss, problem.dataset, problem.annotation, sample_weight=problem.sample_weight)
    found = Trained(loss, outputs, problem.sample_weight)
    answerer = Answerer(ChainPotentials(problem.map.layout, found.w))
    sequences = [problem.label_sequences(n) for n in range(len(problem.lengths))]
    found.answers = answerer, problem.map.design(problem.dataset, 2), sequences
    return found


def of_every_kind_of_feature(*, with_facets: bool = False) -> Trained:
    """Rows, or lattices with facets, with features of transitions and a dense block."""
    dataset, annotation, map_, sequences = every_kind_of_feature(with_facets=with_facets)
    outputs = []
    for sequence in sequences:
        counts = np.zeros((len(sequence.counts), map_.n_weights))
        for row, phi in zip(counts, sequence.counts, strict=True):
            for d, count in phi.items():
                row[d] = count
        outputs.append(Outputs(counts, np.array(sequence.admitted)))
    problem = Trained(partial(map_.loss, dataset, annotation), outputs, np.ones(len(sequences)))
    answerer = Answerer(ChainPotentials(map_.layout, problem.w))
    problem.answers = answerer, map_.design(dataset, 2), [s.label_sequences for s in sequences]
    return problem


def of_functions(functions: str, kind: Mapping[str, Any]) -> Trained:
    """Feature functions."""
    problem = FunctionProblem(3, FUNCTIONS[functions], **kind)
    outputs = [
        Outputs(
            np.array([problem.counts(n, y) for y in problem.paths(n)]),
            np.array([problem.admits(n, y) for y in problem.paths(n)]),
        )
        for n in range(len(problem.lengths))
    ]

    def loss(*, single_precision: bool, n_threads: int) -> Loss:
        return problem.data.loss(problem.annotation, sample_weight=problem.sample_weight, n_threads=n_threads)

    found = Trained(loss, outputs, problem.sample_weight)
    paths = [problem.paths(n) for n in range(len(problem.lengths))]
    found.answers = Answerer(FunctionPotentials(found.w)), problem.data, paths
    return found


def of_patterns(**settings: Any) -> Trained:
    """Patterns."""
    case = PatternCase(**settings)
    outputs = []
    for n in range(len(case.lengths)):
        paths, gold = case.outputs(n), case.gold[int(case.ptr[n]) : int(case.ptr[n + 1])]
        admitted = [all(label in gold[t] for t, label in enumerate(y)) for y in paths]
        outputs.append(Outputs(np.array([case.features(n, y) for y in paths]), np.array(admitted)))
    found = Trained(case.loss, outputs, case.weight)
    layout, trellises = case.trellises()
    answerer = Answerer(PatternPotentials(layout, found.w, case.n_patterns))
    design = SimpleNamespace(trellises=trellises, functions=None)
    found.answers = answerer, design, [case.outputs(n) for n in range(len(case.lengths))]
    return found


# Patterns in their own language, and in that of `re`; labels are a, b, c, …
WRITTEN = {"a . b": "a.b", "b b* a": "bb*a", "^c .": "^c.", "a b$": "ab$", "a": "a", ". c c": ".cc"}


def matches(y: tuple[int, ...]) -> Float64s:
    """How often each pattern matches in a label sequence: it counts for every begin and end."""
    text = "".join("abcdefgh"[label] for label in y)
    spans = list(combinations(range(len(text) + 1), 2))
    return np.array(
        [
            sum(
                re.fullmatch(expression.strip("^$"), text[begin:end]) is not None
                and (begin == 0 or expression[0] != "^")
                and (end == len(text) or expression[-1] != "$")
                for begin, end in spans
            )
            for expression in WRITTEN.values()
        ],
        np.float64,
    )


def with_patterns(
    feature_map: FeatureMap,
    dataset: Dataset,
    annotation: Annotation,
    weight: Float64s,
    outputs: list[dict[tuple[int, ...], tuple[Float64s, bool]]],
    functions: FunctionData | None = None,
) -> Trained:
    """Patterns beside other features: of each label sequence what it has of these, and whether it is admitted."""
    map_ = PatternMap(Patterns(list(WRITTEN)), tuple("abcdefgh"[: feature_map.n_labels]))
    assert map_.names == list(WRITTEN)
    starts = map_.data(dataset)
    given = starts, feature_map, dataset
    loss = partial(map_.loss, *given, annotation, functions=functions, sample_weight=weight)
    every = [
        Outputs(
            np.array([np.concatenate([counts, matches(y)]) for y, (counts, _) in found.items()]),
            np.array([admitted for _, admitted in found.values()]),
        )
        for found in outputs
    ]
    problem = Trained(loss, every, weight)
    layout = feature_map.layout if functions is None else functions.map.layout
    answerer = Answerer(PatternPotentials(layout, problem.w, map_.n_weights))
    problem.answers = answerer, map_.design(*given, 2, functions), [list(found) for found in outputs]
    return problem


def of_patterns_with_facets(kind: Mapping[str, Any]) -> Trained:
    """Patterns where labels have facets."""
    problem = Problem(1, n_labels=4, facets=True, **kind)
    outputs = [
        {y: (problem.counts(n, y), problem.admits(n, y)) for y in problem.label_sequences(n)}
        for n in range(len(problem.lengths))
    ]
    return with_patterns(problem.map, problem.dataset, problem.annotation, problem.sample_weight, outputs)


def of_patterns_with_every_kind_of_feature(*, with_facets: bool = False) -> Trained:
    """Patterns beside features of transitions and a dense block."""
    dataset, annotation, map_, sequences = every_kind_of_feature(with_facets=with_facets)
    outputs = []
    for sequence in sequences:
        found = {}
        for y, phi, admitted in zip(*sequence[:3], strict=True):
            counts = np.zeros(map_.n_weights)
            counts[list(phi)] = list(phi.values())
            found[y] = (counts, admitted)
        outputs.append(found)
    return with_patterns(map_, dataset, annotation, np.ones(len(sequences)), outputs)


def of_patterns_with_functions(functions: str, kind: Mapping[str, Any]) -> Trained:
    """Patterns beside feature functions."""
    problem = FunctionProblem(3, FUNCTIONS[functions], **kind)
    outputs = [
        {y: (problem.counts(n, y), problem.admits(n, y)) for y in problem.paths(n)}
        for n in range(len(problem.lengths))
    ]
    given = problem.feature_map, problem.dataset, problem.annotation, problem.sample_weight
    return with_patterns(*given, outputs, problem.data)


class Triples(GraphStructure):
    """Chains of second order, with a weight for each triple of labels."""

    def arcs(self, n_positions: int, labels: Sequence[Hashable]) -> Iterator[Arc]:
        for t in range(n_positions):
            for a, b, c in product(labels if t > 1 else [None], labels if t else [None], labels):
                yield Arc(t, (a, b), (b, c), [c], [f"{a}{b}{c}"] if t > 1 else [])


def of_graphs_with_functions(functions: str, kind: Mapping[str, Any]) -> Trained:
    """A structure of the user's own with feature functions."""
    problem = FunctionProblem(3, FUNCTIONS[functions], **kind)
    labels = "abcdefgh"[: problem.feature_map.n_labels]
    map_ = GraphMap.learn(Triples(), labels, problem.dataset, ())

    def counts(n: int, y: tuple[int, ...]) -> Float64s:
        text = "".join(labels[b] for b in y)
        triples = [sum(text[t : t + 3] == name for t in range(len(text) - 2)) for name in map_.names]
        return np.concatenate([problem.counts(n, y), triples])

    paths = [problem.paths(n) for n in range(len(problem.lengths))]
    outputs = [
        Outputs(np.array([counts(n, y) for y in ys]), np.array([problem.admits(n, y) for y in ys]))
        for n, ys in enumerate(paths)
    ]
    given = problem.feature_map, problem.dataset

    def loss(*, single_precision: bool, n_threads: int) -> Loss:
        weight = problem.sample_weight
        return map_.loss(
            *given, problem.annotation, functions=problem.data, sample_weight=weight, n_threads=n_threads
        )

    found = Trained(loss, outputs, problem.sample_weight)
    found.answers = Answerer(GraphPotentials(found.w)), map_.data(*given, 2, problem.data), paths
    return found


def of_segments(**kind: Any) -> Trained:
    """Semi-Markov chains."""
    problem = SegmentProblem(**kind)
    outputs, label_sequences = [], []
    for n, found in enumerate(problem.segmentations):
        listed = [segments for segments in found if problem.exists(n, segments)]
        counts = np.array([problem.counts(n, segments) for segments in listed])
        outputs.append(Outputs(counts, np.array([problem.admits(n, segments) for segments in listed])))
        labels = [labels_of(segments, problem.scheme) for segments in listed]
        label_sequences.append([tuple(problem.classes.index(b) for b in y) for y in labels])

    def loss(*, single_precision: bool, n_threads: int) -> Loss:
        data, potentials = problem.found.data, problem.potentials
        assert isinstance(potentials, SegmentPotentials)
        return potentials.segments.loss(
            potentials.feature_map,
            data.dataset,
            data.annotation,
            data.read.cells,
            functions=data.read.beside,
            sample_weight=problem.weight,
            single_precision=single_precision,
            n_threads=n_threads,
        )

    trained = Trained(loss, outputs, problem.weight)
    design = problem.potentials.design(replace(problem.found.data.dataset, inputs=problem.X), 2)
    trained.answers = problem.potentials.answerer(trained.w), design, label_sequences
    return trained


def of_lattices(**kind: Any) -> Trained:
    """Word lattices."""
    problem = LatticeProblem(**kind)
    outputs = []
    for n, paths in enumerate(problem.paths):
        listed = [path for path in paths if problem.exists(n, path)]
        counts = np.array([problem.counts(n, path) for path in listed])
        outputs.append(Outputs(counts, np.array([problem.admits(n, path) for path in listed])))

    def loss(*, single_precision: bool, n_threads: int) -> Loss:
        return problem.found.model.potentials.loss(problem.found.data, problem.weight, n_threads)

    return Trained(loss, outputs, problem.weight)


def of_trees(*, single_root: bool, unknown: float, vectors: WordVectors | None = None) -> Trained:
    """Trees: what an arc has of each weight is its score where that weight is 1 and all others are 0."""
    sentences = random_treebank([1, 2, 3, 3], 3, single_root=single_root, unknown=unknown)
    problem = ParserProblem(sentences, single_root=single_root, vectors=vectors)
    n_weights = problem.map.n_weights
    parts = [
        np.stack(columns, axis=-1)
        for columns in zip(*(problem.scores(unit) for unit in np.eye(n_weights)), strict=True)
    ]  # [heads, dependents, labels, D] of each sentence
    outputs = []
    for sentence, arcs in zip(sentences, parts, strict=True):
        trees = TreeOracle(real_arcs(np.zeros(arcs.shape[:3])), single_root)
        allowed = problem.allowed(sentence, arcs.shape[:3])
        every: list[Any] = trees.outputs
        admitted = [all(allowed[h, m, r] for m, (h, r) in enumerate(y, start=1)) for y in every]
        outputs.append(Outputs(trees.counts @ arcs.reshape(-1, n_weights), np.array(admitted)))

    def loss(*, single_precision: bool, n_threads: int) -> Loss:
        return problem.loss(n_threads)

    return Trained(loss, outputs, problem.sample_weight)


def of_second_order(
    *, single_root: bool, unknown: float, most: int = 99, vectors: WordVectors | None = None
) -> Trained:
    """Projective trees with siblings and grandparents: what a part has of each weight is its score at that weight."""
    sentences = random_treebank([1, 2, 3, 3], 3, single_root=single_root, unknown=unknown)
    problem = SecondOrderProblem(sentences, single_root=single_root, most=most, vectors=vectors)
    found = problem.candidates()
    outputs = []
    for n, of_part in enumerate(problem.counts()):
        arcs = {(h, m) for h, m in found.arcs[found.sentence_ptr[n] : found.sentence_ptr[n + 1]].tolist()}
        trees = problem.trees_of(n, arcs)
        counts = np.array([sum(of_part[key] for key in second_order_parts_of(tree)) for tree in trees])
        outputs.append(Outputs(counts, np.array([problem.admits(n, tree) for tree in trees])))

    def loss(*, single_precision: bool, n_threads: int) -> Loss:
        return problem.loss(n_threads)

    return Trained(loss, outputs, problem.sample_weight)


def _named(kind: Mapping[str, Any]) -> str:
    return ", ".join(name if value is True else f"{name} {value}" for name, value in kind.items() if value)


FACET_KINDS = [
    {"hard": hard, "soft": soft, "restrict": restrict, "partial": unknown}
    for hard, soft, restrict, unknown in (
        (False, False, False, False),
        (True, False, False, True),
        (True, True, True, False),
        (False, False, True, True),
    )
]

TOGETHER = [
    {"n_labels": n_labels, "hard": hard, "soft": soft, "restrict": restrict, "partial": unknown}
    for n_labels, hard, soft, restrict, unknown in (
        (3, False, False, False, False),
        (3, False, False, True, True),
        (6, True, False, False, True),
        (6, False, True, True, False),
    )
]

SEGMENT_KINDS: list[dict[str, Any]] = [
    {"scheme": "bio"},
    {"scheme": "bio", "longest_weighted": 2, "partial": True},
    {"scheme": "bio", "max_length": 3, "restrict": True},
    {"scheme": "iobes", "max_length": {"P": 2}, "partial": True},
    {"scheme": "iobes", "longest_weighted": 1, "partial": True, "restrict": True},
    {"scheme": "bio", "longest_weighted": 2, "of_segments": True},
    {"scheme": "iobes", "max_length": 4, "of_segments": True, "partial": True},
    {"scheme": "plain", "longest_weighted": 3},
    {"scheme": "plain", "max_length": 2, "partial": True},
    {
        "scheme": "bio",
        "absent": (("P", "P"), ("P", "Q"), (None, "O")),
        "longest_weighted": 2,
        "partial": True,
    },
    {"scheme": "bio", "longest_weighted": 2, "facets": True, "of_segments": True, "restrict": True},
    {"scheme": "iobes", "max_length": 3, "facets": True, "partial": True},
    {"scheme": "bio", "longest_weighted": 2, "functions": True, "of_segments": True, "restrict": True},
    {"scheme": "iobes", "max_length": 3, "functions": True, "partial": True},
    {"scheme": "bio", "longest_weighted": 1, "functions": True, "pairs": True, "restrict": True},
    {"scheme": "bio", "functions": True, "pairs": True, "absent": (("P", "P"), (None, "Q")), "partial": True},
    {"scheme": "iobes", "longest_weighted": 2, "functions": True, "pairs": True, "partial": True},
    {"scheme": "plain", "max_length": 3, "functions": True, "pairs": True, "of_segments": True},
    {"scheme": "plain", "max_length": 3, "absent": (("A", "B"), ("C", None)), "restrict": True},
    {"scheme": "plain", "max_length": {"A": 1}, "longest_weighted": 2, "partial": True, "restrict": True},
    {"scheme": "bio", "together": True},
    {"scheme": "plain", "together": True, "max_length": 3, "partial": True, "restrict": True},
]

LATTICE_KINDS: list[dict[str, Any]] = [
    {"transitions": "labels"},
    {"transitions": "labels", "crossed": False, "partial": True},
    {"transitions": "templates", "partial": True, "restrict": True},
    {"transitions": None, "restrict": True},
]

ROWS: dict[str, Callable[[], Trained]] = {
    **{f"chain, {_named(kind)}": partial(of_chain, kind) for kind in KINDS},
    **{
        f"chain, features together, {_named(kind)}": partial(of_chain, {**kind, "together": True})
        for kind in TOGETHER
    },
    "chain, every kind of feature": of_every_kind_of_feature,
    "chain, facets and every kind of feature": partial(of_every_kind_of_feature, with_facets=True),
    **{
        f"functions {name}, {_named(kind)}": partial(of_functions, name, kind)
        for name in FUNCTIONS
        for kind in FUNCTION_KINDS
    },
    **{
        f"patterns, {_named(kind)}": partial(of_patterns, seed=seed, **kind)
        for seed, kind in enumerate(PatternCase.KINDS)
    },
    **{
        f"patterns, {_named(kind)}": partial(of_patterns, seed=seed, **kind)
        for seed, kind in enumerate([{"together": True}, {"together": True, "partly": True, "allowed": True}])
    },
    **{
        f"patterns with facets, {_named(kind)}": partial(of_patterns_with_facets, kind)
        for kind in FACET_KINDS
    },
    "patterns with every kind of feature": of_patterns_with_every_kind_of_feature,
    "patterns with facets and every kind of feature": partial(
        of_patterns_with_every_kind_of_feature, with_facets=True
    ),
    **{
        f"patterns with functions {name}, {_named(kind)}": partial(of_patterns_with_functions, name, kind)
        for name in FUNCTIONS
        for kind in FUNCTION_KINDS
    },
    **{
        f"graphs with functions {name}, {_named(kind)}": partial(of_graphs_with_functions, name, kind)
        for name in FUNCTIONS
        for kind in FUNCTION_KINDS
    },
    **{
        f"segments, {_named(kind)}": partial(of_segments, **kind)
        for row in SEGMENT_KINDS
        for kind in (row, {**row, "of_transitions": True})
    },
    **{f"word lattices, {_named(kind)}": partial(of_lattices, **kind) for kind in LATTICE_KINDS},
    **{
        f"trees, {'one root' if single_root else 'roots'}, {unknown:.0%} unknown": partial(
            of_trees, single_root=single_root, unknown=unknown
        )
        for single_root in (True, False)
        for unknown in (0.0, 0.4)
    },
    "trees, vectors, one root": partial(of_trees, single_root=True, unknown=0.0, vectors=VECTORS),
    "trees, vectors, roots, 40% unknown": partial(of_trees, single_root=False, unknown=0.4, vectors=VECTORS),
    "trees, second order, vectors, one root": partial(
        of_second_order, single_root=True, unknown=0.2, most=2, vectors=VECTORS
    ),
    "trees, second order, one root": partial(of_second_order, single_root=True, unknown=0.0, most=2),
    "trees, second order, roots, 30% unknown": partial(of_second_order, single_root=False, unknown=0.3),
}


@cache
def trained(row: str) -> Trained:
    """The problem of a row: the same one in every run."""
    return ROWS[row]()
