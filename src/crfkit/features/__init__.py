"""Features: what is seen in the input, as strings and as flat arrays."""

from crfkit.features.dataset import Annotation, Dataset, FeatureList
from crfkit.features.feature_map import FeatureMap
from crfkit.features.penalties import Strength, penalty_vector
from crfkit.features.presets import PRESETS, preset
from crfkit.features.templates import Line, Macro, Program, Template, Transform

__all__ = [
    "PRESETS",
    "Annotation",
    "Dataset",
    "FeatureList",
    "FeatureMap",
    "Line",
    "Macro",
    "Program",
    "Strength",
    "Template",
    "Transform",
    "penalty_vector",
    "preset",
]
