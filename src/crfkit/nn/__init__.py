"""CRF layers for PyTorch: exact distributions over label sequences, trees and factor graphs whose scores a network computes.

    ChainCRF             a layer: learned transitions, log-likelihood, decoding
    ChainDistribution    label sequences: log_partition, log_prob, marginals, transition_marginals, argmax, topk,
                         sample, entropy, kl
    SegmentCRF           a layer: learned transitions and durations of segments
    SegmentDistribution  segmentations (semi-Markov chains): the same questions, and probabilities of spans
    TreeDistribution     dependency trees: the same questions
    ProjectiveTreeDistribution              dependency trees without crossing arcs: the same questions
    FactorGraphDistribution                 assignments of factor graphs of one shape: the same questions
    EntityPipeline                          texts in, entities with exact probabilities out
    CRFForTokenClassification, word_mask    a CRF behind an encoder of Hugging Face's transformers

PyTorch is not installed with crfkit: `pip install torch`.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("crfkit.nn needs PyTorch: pip install torch") from error

from crfkit.nn.chain import ChainDistribution
from crfkit.nn.entity_pipeline import EntityPipeline
from crfkit.nn.factor_graph import FactorGraphDistribution
from crfkit.nn.layer import ChainCRF
from crfkit.nn.projective_tree import ProjectiveTreeDistribution
from crfkit.nn.segment_layer import SegmentCRF
from crfkit.nn.segments import SegmentDistribution
from crfkit.nn.token_classification import CRFForTokenClassification, word_mask
from crfkit.nn.tree import TreeDistribution

__all__ = [
    "CRFForTokenClassification",
    "ChainCRF",
    "ChainDistribution",
    "EntityPipeline",
    "FactorGraphDistribution",
    "ProjectiveTreeDistribution",
    "SegmentCRF",
    "SegmentDistribution",
    "TreeDistribution",
    "word_mask",
]
