"""Files of the UAI competitions on inference in graphical models: models, evidence and results."""

from crfkit.data.uai.evidence import read_uai_evidence
from crfkit.data.uai.models import read_uai
from crfkit.data.uai.results import UAIResult, read_uai_result, write_uai_result
from crfkit.data.uai.writing import write_uai

__all__ = [
    "UAIResult",
    "read_uai",
    "read_uai_evidence",
    "read_uai_result",
    "write_uai",
    "write_uai_result",
]
