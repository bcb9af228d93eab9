"""How good predictions are: labels of sites, spans of sites, dependency trees."""

from crfkit.evaluation.counts import Counts
from crfkit.evaluation.labels import (
    SCHEMES,
    Confusion,
    Evaluation,
    Span,
    SpanCounts,
    SpanReport,
    accuracy,
    confusion,
    evaluate,
    scheme_of,
    sequence_accuracy,
    span_report,
    spans,
)
from crfkit.evaluation.trees import (
    CONTENT_RELATIONS,
    FUNCTIONAL_RELATIONS,
    UNIVERSAL_FEATURES,
    TreeReport,
    evaluate_trees,
    relation_of,
)

__all__ = [
    "CONTENT_RELATIONS",
    "FUNCTIONAL_RELATIONS",
    "SCHEMES",
    "UNIVERSAL_FEATURES",
    "Confusion",
    "Counts",
    "Evaluation",
    "Span",
    "SpanCounts",
    "SpanReport",
    "TreeReport",
    "accuracy",
    "confusion",
    "evaluate",
    "evaluate_trees",
    "relation_of",
    "scheme_of",
    "sequence_accuracy",
    "span_report",
    "spans",
]
