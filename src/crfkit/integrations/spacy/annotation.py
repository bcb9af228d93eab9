"""Answers of crfkit models in documents of spaCy: entities, tags, lemmas and trees, and their probabilities.

Probabilities are extension attributes:

    doc._.crfkit_spans          the spans that the model found, `crfkit.Span`s of tokens; likely ones that overlap too
    span._.probability          of an entity, exact; None for spans that the model did not find
    token._.tag_probability     of the tag of a token
    token._.head_probability    of the arc into a token
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from spacy.attrs import DEP, HEAD
from spacy.tokens import Doc, Token
from spacy.tokens import Span as DocSpan
from spacy.util import filter_spans

from crfkit.data import Word
from crfkit.structures import Span

SPANS = "crfkit_spans"  # the key in doc.user_data
_TAG_PROBABILITY = re.compile(r"(?:^|\|)(?:Upos|Xpos|Feats)+Prob=([0-9.]+)")
_HEAD_PROBABILITY = re.compile(r"(?:^|\|)HeadProb=([0-9.]+)")


def add_extensions() -> None:
    """Make the extension attributes known to spaCy, where another component has not done so."""
    for owner, name, settings in (
        (Doc, SPANS, {"getter": found_spans}),
        (DocSpan, "probability", {"getter": span_probability}),
        (Token, "tag_probability", {"default": None}),
        (Token, "head_probability", {"default": None}),
    ):
        if not owner.has_extension(name):
            owner.set_extension(name, **settings)


def found_spans(doc: Doc) -> list[Span]:
    """The spans of the model, in tokens."""
    return [Span(*map(int, found[:2]), *found[2:]) for found in doc.user_data.get(SPANS, [])]


def span_probability(span: DocSpan) -> float | None:
    """The probability of a span, if the model found it."""
    return next(
        (
            float(found[3])
            for found in span.doc.user_data.get(SPANS, [])
            if (found[0], found[1], found[2]) == (span.start, span.end, span.label_)
        ),
        None,
    )


def set_entities(
    doc: Doc, best: Sequence[Span], likely: Sequence[Span], *, overwrite: bool, spans_key: str | None
) -> None:
    """Set the entities of a document, and keep the likely spans, both in tokens of the document."""
    every = sorted({*likely, *best}, key=lambda span: (span.start, span.end, str(span.label)))
    doc.user_data[SPANS] = [tuple(span) for span in every]
    found = [DocSpan(doc, span.start, span.end, label=str(span.label)) for span in best]
    if overwrite:
        doc.set_ents(filter_spans(found), default="outside")
    else:
        taken = {token.i for entity in doc.ents for token in entity}
        free = [span for span in found if taken.isdisjoint(range(span.start, span.end))]
        doc.set_ents([*doc.ents, *filter_spans(free)])
    if spans_key is not None:
        doc.spans[spans_key] = [DocSpan(doc, span.start, span.end, label=str(span.label)) for span in every]


def set_tags(tokens: Sequence[Token], tags: Sequence[str], probabilities: Sequence[float], name: str) -> None:
    """Set `tag_` or `pos_` of tokens, and how likely each is."""
    for token, tag, probability in zip(tokens, tags, probabilities, strict=True):
        setattr(token, name, tag)
        token._.tag_probability = float(probability)


def set_words(tokens: Sequence[Token], words: Sequence[Word]) -> None:
    """Set what a sentence of a treebank says of its words, trees apart."""
    for token, word in zip(tokens, words, strict=True):
        for name, value in (("pos_", word.upos), ("tag_", word.xpos), ("lemma_", word.lemma)):
            if value != "_":
                setattr(token, name, value)
        if word.feats != "_":
            token.set_morph(word.feats)
        if found := _TAG_PROBABILITY.search(word.misc):
            token._.tag_probability = float(found[1])
        if found := _HEAD_PROBABILITY.search(word.misc):
            token._.head_probability = float(found[1])


def set_trees(doc: Doc, sentences: Sequence[tuple[Sequence[Token], Sequence[Word]]]) -> None:
    """Set the heads and relations of all tokens; one of white space hangs on the token before it, or on the first word."""
    heads = np.zeros(len(doc), dtype=np.int64)  # [T] relative to the token
    relations = [""] * len(doc)
    for tokens, words in sentences:
        for token, word in zip(tokens, words, strict=True):
            head = token.i if not word.head else tokens[word.head - 1].i
            heads[token.i] = head - token.i
            relations[token.i] = "ROOT" if word.head == 0 and word.deprel == "root" else word.deprel
    known = {token.i for tokens, _ in sentences for token in tokens}
    first = min(known, default=0)
    for token in doc:
        if token.i not in known:
            heads[token.i] = -1 if token.i > first else first - token.i
            relations[token.i] = "dep"
    ids = [doc.vocab.strings.add(relation) for relation in relations]
    doc.from_array([HEAD, DEP], np.array([heads.astype(np.uint64), np.array(ids, dtype=np.uint64)]).T)


def in_document(tokens: Sequence[Token], spans: Sequence[Any]) -> list[Span]:
    """Spans of a sequence as spans of the tokens of its document."""
    return [
        span._replace(start=tokens[span.start].i, end=tokens[span.end - 1].i + 1, label=str(span.label))
        for span in spans
    ]
