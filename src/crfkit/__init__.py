"""Conditional random fields: exact, fast, constrained, and pleasant to use."""

from typing import TYPE_CHECKING

from crfkit.lazy import lazy_names

__version__ = "0.1.0"
"""The version of crfkit."""

if TYPE_CHECKING:
    from crfkit import (
        compat,
        data,
        evaluation,
        features,
        inference,
        models,
        objective,
        optimizers,
        pipeline,
        report,
        structures,
    )
    from crfkit.errors import InputError
    from crfkit.features import (
        Clusters,
        FeatureFunction,
        FeatureFunctions,
        Lexicon,
        SegmentTemplate,
        TagDictionary,
        Template,
        WordDictionary,
        WordVectors,
    )
    from crfkit.models import CRF, Checkpoint, Explanation, ExplanationPart, GraphCRF, Parser, WordSegmenter
    from crfkit.optimizers import (
        AROW,
        LBFGS,
        SAG,
        SGD,
        TRON,
        AdaGrad,
        AveragedPerceptron,
        Newton,
        PassiveAggressive,
        StopReason,
    )
    from crfkit.pipeline import Lemmatizer, Pipeline, Tokenizer, TreebankTagger, load
    from crfkit.structures import (
        END,
        START,
        Affixes,
        Bigrams,
        Chain,
        ChainScores,
        FactorGraph,
        Growth,
        Lattice,
        Ngrams,
        Pattern,
        Patterns,
        ProjectiveTree,
        SegmentMatches,
        Segments,
        Span,
        SpanningTree,
        TreeParts,
        WordLattice,
    )

# Nothing is loaded before it is asked for: `import crfkit` stays cheap, each name imports its own package.
_NAMES = {
    "compat": [],
    "data": [],
    "errors": ["InputError"],
    "evaluation": [],
    "features": [
        "Clusters",
        "FeatureFunction",
        "FeatureFunctions",
        "Lexicon",
        "SegmentTemplate",
        "TagDictionary",
        "Template",
        "WordDictionary",
        "WordVectors",
    ],
    "inference": [],
    "models": [
        "CRF",
        "Checkpoint",
        "Explanation",
        "ExplanationPart",
        "GraphCRF",
        "Parser",
        "WordSegmenter",
    ],
    "nn": [],
    "objective": [],
    "optimizers": [
        "AROW",
        "AdaGrad",
        "AveragedPerceptron",
        "LBFGS",
        "Newton",
        "PassiveAggressive",
        "SAG",
        "SGD",
        "StopReason",
        "TRON",
    ],
    "pipeline": ["Lemmatizer", "Pipeline", "Tokenizer", "TreebankTagger", "load"],
    "report": [],
    "structures": [
        "Affixes",
        "Bigrams",
        "Chain",
        "ChainScores",
        "END",
        "FactorGraph",
        "Growth",
        "Lattice",
        "Ngrams",
        "Pattern",
        "Patterns",
        "ProjectiveTree",
        "START",
        "SegmentMatches",
        "Segments",
        "Span",
        "SpanningTree",
        "TreeParts",
        "WordLattice",
    ],
}

__all__ = [
    "AROW",
    "CRF",
    "END",
    "LBFGS",
    "SAG",
    "SGD",
    "START",
    "TRON",
    "AdaGrad",
    "Affixes",
    "AveragedPerceptron",
    "Bigrams",
    "Chain",
    "ChainScores",
    "Checkpoint",
    "Clusters",
    "Explanation",
    "ExplanationPart",
    "FactorGraph",
    "FeatureFunction",
    "FeatureFunctions",
    "GraphCRF",
    "Growth",
    "InputError",
    "Lattice",
    "Lemmatizer",
    "Lexicon",
    "Newton",
    "Ngrams",
    "Parser",
    "PassiveAggressive",
    "Pattern",
    "Patterns",
    "Pipeline",
    "ProjectiveTree",
    "SegmentMatches",
    "SegmentTemplate",
    "Segments",
    "Span",
    "SpanningTree",
    "StopReason",
    "TagDictionary",
    "Template",
    "Tokenizer",
    "TreeParts",
    "TreebankTagger",
    "WordDictionary",
    "WordLattice",
    "WordSegmenter",
    "WordVectors",
    "__version__",
    "compat",
    "data",
    "evaluation",
    "features",
    "inference",
    "load",
    "models",
    "objective",
    "optimizers",
    "pipeline",
    "report",
    "structures",
]


if not TYPE_CHECKING:  # type checkers read the imports above, and know then which names there are not
    __getattr__ = lazy_names(
        globals(), {f"crfkit.{package}": [package, *names] for package, names in _NAMES.items()}
    )


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted(__all__)
