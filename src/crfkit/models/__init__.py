"""What a user trains, saves and loads."""

from crfkit.models.constraints import ImpossibleSequenceError, SequencesSkipped
from crfkit.models.crf import CRF
from crfkit.models.estimator import NotFittedError, TrainingInterrupted, UnknownLabels, UnsavableModel
from crfkit.models.inspection import (
    ArcFeatureWeight,
    ArcWeight,
    FeatureWeight,
    arc_weights,
    heaviest_arc_features,
    heaviest_features,
    heaviest_outputs,
)
from crfkit.models.loading import load
from crfkit.models.model_file import check_writable, replacing
from crfkit.models.training import Progress, ProgressCallback

__all__ = [
    "CRF",
    "ArcFeatureWeight",
    "ArcWeight",
    "FeatureWeight",
    "ImpossibleSequenceError",
    "NotFittedError",
    "Progress",
    "ProgressCallback",
    "SequencesSkipped",
    "TrainingInterrupted",
    "UnknownLabels",
    "UnsavableModel",
    "arc_weights",
    "check_writable",
    "heaviest_arc_features",
    "heaviest_features",
    "heaviest_outputs",
    "load",
    "replacing",
]
