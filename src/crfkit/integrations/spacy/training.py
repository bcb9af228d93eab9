"""Training crfkit models on annotated documents of spaCy."""

from collections.abc import Iterable, Sequence
from typing import Any

from spacy.tokens import Doc

from crfkit.errors import ArgumentError, EmptyDataError
from crfkit.features import Template
from crfkit.integrations.spacy.doc_sequences import (
    ANNOTATIONS,
    ENTITIES,
    PARSE,
    check_learnable,
    docs_to_sentences,
    docs_to_sequences,
)
from crfkit.models import CRF, Parser
from crfkit.pipeline import Lemmatizer, Pipeline, TreebankTagger

SentenceModel = Parser | TreebankTagger | Lemmatizer | Pipeline


def train(
    docs: Iterable[Doc],
    model: Any = None,
    *,
    annotates: str = ENTITIES,
    columns: Sequence[str] = ("text",),
    dev: Iterable[Doc] | None = None,
    **options: Any,
) -> Any:
    """Train a model on annotated documents, and return it; the component "crfkit" takes it as its `model`.

    model : an untrained `CRF`, `Parser`, `TreebankTagger`, `Lemmatizer` or `Pipeline`; None: a `CRF` with the preset "names"
        for entities or "pos" for tags, or a `Parser`
    annotates : what a `CRF` learns: "entities", "tag" or "pos"; "parse" for a parser
    columns : attributes of tokens that a `CRF` reads, the columns of its template
    dev : documents on which the best weights are chosen
    options : those of `fit`, such as `patience`, `callback`, `verbose`

    >>> import spacy
    >>> doc = spacy.blank("en")("Ann saw Rome .")
    >>> doc.set_ents([doc[0:1].char_span(0, 3, "PER"), doc.char_span(8, 12, "LOC")])
    >>> train([doc]).classes_
    ['B-LOC', 'B-PER', 'O']
    """
    if annotates not in ANNOTATIONS:
        raise ArgumentError(f"annotates is {annotates!r}, expected one of {', '.join(ANNOTATIONS)}")
    if model is None:
        model = Parser() if annotates == PARSE else CRF(features="names" if annotates == ENTITIES else "pos")
    if isinstance(model, SentenceModel):
        held_out = None if dev is None else docs_to_sentences(dev)
        sentences = docs_to_sentences(docs)
        if not sentences:
            raise EmptyDataError("there are no documents to learn from")
        return model.fit(sentences, dev=held_out, **options)
    if not isinstance(model, CRF):
        raise ArgumentError(f"model is of type {type(model).__name__}, expected a CRF, a Parser or the like")
    as_text = isinstance(model.features, str | Template)
    X, y = docs_to_sequences(docs, annotates, columns, as_text=as_text)
    check_learnable(y, annotates)
    if dev is not None:
        options["dev"] = docs_to_sequences(dev, annotates, columns, as_text=as_text)
    return model.fit(X, y, **options)
