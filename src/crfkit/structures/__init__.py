"""Which outputs exist: the structures, the evidence that restricts them, and the scores of their parts."""

from crfkit.structures.annotation import Outside
from crfkit.structures.bigrams import END, START, Bigrams, Missing
from crfkit.structures.chain import UNSEEN, Best, Chain, ChainMarginals, ChainScores, ChainTrellis
from crfkit.structures.pattern_book import BookState, BookWriter, PatternBook
from crfkit.structures.schemes import SCHEMES
from crfkit.structures.structure import Evidence, Structure, Trellis
from crfkit.structures.support import NoOutputError, Support

__all__ = [
    "END",
    "SCHEMES",
    "START",
    "UNSEEN",
    "Best",
    "Bigrams",
    "BookState",
    "BookWriter",
    "Chain",
    "ChainMarginals",
    "ChainScores",
    "ChainTrellis",
    "Evidence",
    "Missing",
    "NoOutputError",
    "Outside",
    "PatternBook",
    "Structure",
    "Support",
    "Trellis",
]
