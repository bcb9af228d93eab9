"""The questions that every structure answers, on a structure and the scores of its parts.

    log_partition      log Z
    marginals          ∇ log Z with respect to the scores
    hessian_vector     ∇² log Z · direction
    decode, k_best     highest-scoring outputs
    sample             exact samples
    entropy            −Σ_y p(y) log p(y)
    score              score(y) of one output
    log_probability    score(y) − log Z
    parts              which parts an output has

Each function takes a structure (`Chain()`, `SpanningTree()`) and its scores (`ChainScores(…)`, an array);
`crfkit.inference.questions` knows which class answers for which structure. `allowed` restricts the outputs to the labels
that are allowed at each position: a bool array [T, L] or an `AllowedLabels`; for trees, to the arcs that are allowed.

A `FactorGraph` has scores of its own. `plan` tells what memory and how many operations exact inference on it takes.

Of many chains at once: `ChainBatch`; of many semi-Markov chains of plain scores: `SegmentBatch`.
Of factor graphs, approximately: `belief_propagation`, `mean_field`, `gibbs`; `max_product`, `map_estimate`.
Of trees alone: `minimum_risk`, `count`, `log_count`, and all questions on many sentences at once: `TreeBatch` for spanning
and projective trees, `SiblingTreeBatch` for projective trees of the second order.
"""

from crfkit.inference import questions
from crfkit.inference.answerer import (
    Answerer,
    ChainPotentials,
    FunctionPotentials,
    GraphPotentials,
    LabelContext,
    PatternPotentials,
    WindowContexts,
)
from crfkit.inference.chain_batch import BatchExpectations, ChainBatch
from crfkit.inference.factor_graph import Plan, junction_tree, plan
from crfkit.inference.memory import default_memory_limit, read_memory_limit
from crfkit.inference.message_passing import (
    BeliefPropagationResult,
    MapResult,
    belief_propagation,
    map_estimate,
    max_product,
)
from crfkit.inference.monte_carlo import GibbsResult, gibbs
from crfkit.inference.projective_tree import minimum_risk
from crfkit.inference.questions import *  # noqa: F403  (all of them, and no other name)
from crfkit.inference.second_order_parser import SecondOrderParser
from crfkit.inference.segment_batch import SegmentBatch
from crfkit.inference.sibling_batch import SiblingTreeBatch
from crfkit.inference.span_sets import best_expected_f1, likely_spans, read_threshold, select_spans
from crfkit.inference.tree_batch import TreeBatch
from crfkit.inference.tree_counts import count, log_count
from crfkit.inference.tree_parser import TreeParser
from crfkit.inference.variational import MeanFieldResult, mean_field

__all__ = [
    *questions.__all__,
    "Answerer",
    "BatchExpectations",
    "BeliefPropagationResult",
    "ChainBatch",
    "ChainPotentials",
    "FunctionPotentials",
    "GibbsResult",
    "GraphPotentials",
    "LabelContext",
    "MapResult",
    "MeanFieldResult",
    "PatternPotentials",
    "Plan",
    "SegmentBatch",
    "SiblingTreeBatch",
    "TreeBatch",
    "SecondOrderParser",
    "TreeParser",
    "WindowContexts",
    "belief_propagation",
    "best_expected_f1",
    "count",
    "default_memory_limit",
    "gibbs",
    "junction_tree",
    "likely_spans",
    "log_count",
    "map_estimate",
    "max_product",
    "mean_field",
    "minimum_risk",
    "plan",
    "read_memory_limit",
    "read_threshold",
    "select_spans",
]
