"""Potentials: which weights score which parts of a label sequence, scores = Φ(x) w.

`FeaturePotentials` has the weights of features and transitions, and is the interface of all of them: how training data are
encoded, which weights there are, the penalty of each, the objective, what answers questions, what a model file holds, and
how weights pass from one model to the next. The others add weights of their own behind these; those of structures are in
`crfkit.models.kinds`.
"""

from crfkit.models.potentials.features import (
    NOT_LOCAL,
    FeaturePotentials,
    Learning,
    LocalPotentials,
    TrainingData,
)
from crfkit.models.potentials.functions import (
    FunctionPotentials,
    StructurePotentials,
    potentials_without_structure,
)

__all__ = [
    "NOT_LOCAL",
    "FeaturePotentials",
    "FunctionPotentials",
    "Learning",
    "LocalPotentials",
    "StructurePotentials",
    "TrainingData",
    "potentials_without_structure",
]
