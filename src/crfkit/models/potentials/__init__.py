"""Potentials: which weights score which parts of a label sequence, scores = Φ(x) w.

`FeaturePotentials` has the weights of features and transitions, and is the interface of all of them: how training data are
encoded, which weights there are, the penalty of each, the objective, what answers questions, what a model file holds, and
how weights pass from one model to the next. The others add weights of their own behind these.
"""

from crfkit.models.potentials.features import (
    NOT_LOCAL,
    FeaturePotentials,
    Learning,
    LocalPotentials,
    TrainingData,
)
from crfkit.models.potentials.functions import FunctionPotentials
from crfkit.models.potentials.graphs import GraphPotentials
from crfkit.models.potentials.lattices import LatticePotentials
from crfkit.models.potentials.patterns import PatternPotentials
from crfkit.models.potentials.segments import SegmentPotentials
from crfkit.models.settings import CRFSettings
from crfkit.structures import GraphStructure, Patterns, Segments

__all__ = [
    "NOT_LOCAL",
    "FeaturePotentials",
    "FunctionPotentials",
    "GraphPotentials",
    "LatticePotentials",
    "Learning",
    "LocalPotentials",
    "PatternPotentials",
    "SegmentPotentials",
    "TrainingData",
    "potentials_for",
]


def potentials_for(settings: CRFSettings) -> type[FeaturePotentials]:
    """The kind of potentials that a CRF with these settings has."""
    if isinstance(settings.structure, Patterns):
        return PatternPotentials
    if isinstance(settings.structure, GraphStructure):
        return GraphPotentials
    if isinstance(settings.structure, Segments):
        return SegmentPotentials
    return FeaturePotentials if settings.functions is None else FunctionPotentials
