"""A component of spaCy's pipelines: entities, tags, lemmas or trees by a crfkit model, with their probabilities.

    nlp.add_pipe("crfkit", config={"model": "names.crf"})

spaCy is not installed with crfkit: `pip install spacy`.
"""

try:
    import spacy as _spacy  # noqa: F401
except ImportError as error:
    raise ImportError("crfkit.integrations.spacy needs spaCy: pip install spacy") from error

from crfkit.integrations.spacy.component import CRFComponent, make_component
from crfkit.integrations.spacy.doc_sequences import docs_to_sentences, docs_to_sequences
from crfkit.integrations.spacy.training import train

__all__ = ["CRFComponent", "docs_to_sentences", "docs_to_sequences", "make_component", "train"]
