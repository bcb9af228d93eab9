"""Why a trained model answers so and not otherwise."""

from crfkit.models.explanations.explanation import Explanation, ExplanationPart

__all__ = ["Explanation", "ExplanationPart"]
