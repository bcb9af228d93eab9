"""Models as a server asks them: one class for each type of model, all with the same methods."""

from collections.abc import Callable
from typing import Any

from crfkit.errors import UnsupportedError
from crfkit.models import CRF, Parser, WordSegmenter
from crfkit.pipeline import Pipeline, TreebankTagger
from crfkit.serve.limits import Limits
from crfkit.serve.served.chain import ServedCRF, ServedTagger
from crfkit.serve.served.model import ServedModel
from crfkit.serve.served.segmenter import ServedSegmenter
from crfkit.serve.served.trees import ServedParser, ServedPipeline

__all__ = ["ServedCRF", "ServedModel", "wrap_model"]

_KINDS: dict[type, Callable[[Any, Limits], ServedModel]] = {
    CRF: ServedCRF,
    TreebankTagger: ServedTagger,
    Parser: ServedParser,
    Pipeline: ServedPipeline,
    WordSegmenter: ServedSegmenter,
}


def wrap_model(model: Any, limits: Limits) -> ServedModel:
    """A trained model as a server asks it; UnsupportedError for those that no request can ask."""
    for kind, served in _KINDS.items():
        if isinstance(model, kind):
            return served(model, limits)
    expected = ", ".join(kind.__name__ for kind in _KINDS)
    raise UnsupportedError(f"a {type(model).__name__} cannot be served, expected one of {expected}")
