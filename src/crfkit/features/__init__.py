"""Features: what is seen in the input, as strings and as flat arrays."""

from crfkit.features.dataset import Dataset, FeatureList
from crfkit.features.presets import PRESETS, preset
from crfkit.features.templates import Line, Macro, Program, Template, Transform

__all__ = [
    "PRESETS",
    "Dataset",
    "FeatureList",
    "Line",
    "Macro",
    "Program",
    "Template",
    "Transform",
    "preset",
]
