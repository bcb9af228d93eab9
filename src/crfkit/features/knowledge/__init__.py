"""Knowledge from outside of the training data: lexicons, word clusters and word vectors."""

from crfkit.features.knowledge.brown import learn_clusters
from crfkit.features.knowledge.clusters import ClusteredWord, Clusters
from crfkit.features.knowledge.lexicon import Lexicon, Match
from crfkit.features.knowledge.macros import check_resources, resource_lines
from crfkit.features.knowledge.opening import open_resource, open_vectors, resource_from_bytes
from crfkit.features.knowledge.resource import MissingResource, Resource
from crfkit.features.knowledge.word_vectors import WordVectors

__all__ = [
    "ClusteredWord",
    "Clusters",
    "Lexicon",
    "Match",
    "MissingResource",
    "Resource",
    "WordVectors",
    "check_resources",
    "learn_clusters",
    "open_resource",
    "open_vectors",
    "resource_from_bytes",
    "resource_lines",
]
