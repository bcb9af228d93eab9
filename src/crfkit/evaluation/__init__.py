"""How good predictions are: labels of positions, spans of positions, words of texts, dependency trees."""

from crfkit.evaluation.arcs import CONTENT_RELATIONS, FUNCTIONAL_RELATIONS, UNIVERSAL_FEATURES, relation_of
from crfkit.evaluation.bootstrap import Comparison, paired_bootstrap
from crfkit.evaluation.counts import AlignedCounts, Counts
from crfkit.evaluation.labels import (
    SCHEMES,
    Confusion,
    Evaluation,
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
from crfkit.evaluation.metrics import (
    METRICS,
    TREE_METRICS,
    Metric,
    MetricFunction,
    Scorer,
    as_score,
    make_scorer,
    measure,
    metric_for,
    read_metric,
)
from crfkit.evaluation.partial_matches import SCENARIOS, MatchCounts, PartialMatches, partial_matches
from crfkit.evaluation.paths import PathMetric, path_counts, path_metric
from crfkit.evaluation.span_probabilities import (
    Bin,
    Calibration,
    SpanCurve,
    span_calibration,
    span_precision_recall,
)
from crfkit.evaluation.tags import Share, TagReport, evaluate_tags
from crfkit.evaluation.treebanks import TREEBANK_METRICS, TreebankReport, evaluate_treebank
from crfkit.evaluation.trees import TreeReport, evaluate_trees
from crfkit.evaluation.words import WordReport, place_words, word_report
from crfkit.structures import Span

__all__ = [
    "CONTENT_RELATIONS",
    "FUNCTIONAL_RELATIONS",
    "METRICS",
    "SCENARIOS",
    "SCHEMES",
    "TREEBANK_METRICS",
    "TREE_METRICS",
    "UNIVERSAL_FEATURES",
    "AlignedCounts",
    "Bin",
    "Calibration",
    "Comparison",
    "Confusion",
    "Counts",
    "Evaluation",
    "MatchCounts",
    "Metric",
    "MetricFunction",
    "PartialMatches",
    "PathMetric",
    "Scorer",
    "Share",
    "Span",
    "SpanCounts",
    "SpanCurve",
    "SpanReport",
    "TagReport",
    "TreeReport",
    "TreebankReport",
    "WordReport",
    "accuracy",
    "as_score",
    "confusion",
    "evaluate",
    "evaluate_tags",
    "evaluate_treebank",
    "evaluate_trees",
    "make_scorer",
    "measure",
    "metric_for",
    "paired_bootstrap",
    "partial_matches",
    "path_counts",
    "path_metric",
    "place_words",
    "read_metric",
    "relation_of",
    "scheme_of",
    "sequence_accuracy",
    "span_calibration",
    "span_precision_recall",
    "span_report",
    "spans",
    "word_report",
]
