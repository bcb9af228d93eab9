"""Which outputs exist: the structures, the evidence that restricts them, and the scores of their parts."""

from crfkit.structures.chain import Best, Chain, ChainMarginals, ChainScores, ChainTrellis
from crfkit.structures.structure import Evidence, Structure, Trellis

__all__ = [
    "Best",
    "Chain",
    "ChainMarginals",
    "ChainScores",
    "ChainTrellis",
    "Evidence",
    "Structure",
    "Trellis",
]
