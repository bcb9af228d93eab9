"""Documents of spaCy as sequences and sentences: what crfkit models read, and what they learn from.

Tokens of white space are left out: a position is any other token. Where a document has sentences, each is a sequence,
otherwise the whole document is one.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from spacy.tokens import Doc, Token

from crfkit.data import Sentence, Word
from crfkit.errors import ArgumentError, EmptyDataError

ENTITIES, TAG, POS, PARSE = "entities", "tag", "pos", "parse"
ANNOTATIONS = (ENTITIES, TAG, POS, PARSE)
OUTSIDE = "O"
_MISSING, _INSIDE, _OUTSIDE = 0, 1, 2  # spaCy's ent_iob


def check_doc(doc: Any) -> None:
    """Raise for anything but a document of spaCy, such as its text."""
    if not isinstance(doc, Doc):
        raise ArgumentError(
            f"a document is of type {type(doc).__name__}, expected a Doc: nlp.make_doc(text), with its annotations set"
        )


def split(doc: Doc) -> list[list[Token]]:
    """The sequences of a document, without tokens of white space; none is empty."""
    check_doc(doc)
    pieces: Iterable[Any] = doc.sents if doc.has_annotation("SENT_START") and len(doc) else [doc]
    found = ([token for token in piece if not token.is_space] for piece in pieces)
    return [tokens for tokens in found if tokens]


def positions(tokens: Sequence[Token], columns: Sequence[str], *, as_text: bool) -> list[Any]:
    """The attributes of tokens: tuples of texts for templates, else dicts."""
    try:
        rows = [tuple(getattr(token, name) for name in columns) for token in tokens]
    except AttributeError as error:
        raise ArgumentError(f"columns: {error}") from None
    if as_text:
        return [tuple(map(str, row)) for row in rows]
    return [dict(zip(columns, row, strict=True)) for row in rows]


def docs_to_sequences(
    docs: Iterable[Doc],
    annotates: str = ENTITIES,
    columns: Sequence[str] = ("text",),
    *,
    as_text: bool = True,
) -> tuple[list[list[Any]], list[list[str | None]]]:
    """X and y of annotated documents, for `CRF.fit`: labels B-X, I-X and O of entities, or tags.

    columns : attributes of tokens that positions are made of, such as text, lemma_, tag_, shape_
    annotates : "entities", "tag" (token.tag_) or "pos" (token.pos_); what a token does not have is unknown, None

    >>> import spacy
    >>> doc = spacy.blank("en")("Ann Lee slept.")
    >>> doc.set_ents([doc.char_span(0, 7, "PER")])
    >>> docs_to_sequences([doc])
    ([[('Ann',), ('Lee',), ('slept',), ('.',)]], [['B-PER', 'I-PER', 'O', 'O']])
    """
    if annotates not in (ENTITIES, TAG, POS):
        raise ArgumentError(f"annotates is {annotates!r}, expected {ENTITIES!r}, {TAG!r} or {POS!r}")
    X, y = [], []
    for doc in docs:
        for tokens in split(doc):
            X.append(positions(tokens, columns, as_text=as_text))
            y.append(_entity_labels(tokens) if annotates == ENTITIES else _tags(tokens, annotates))
    return X, y


def _entity_labels(tokens: Sequence[Token]) -> list[str | None]:
    """B-X, I-X, O; None where spaCy does not know whether there is an entity."""
    labels: list[str | None] = []
    for token in tokens:
        if token.ent_iob == _MISSING:
            labels.append(None)
        elif token.ent_iob == _OUTSIDE:
            labels.append(OUTSIDE)
        else:
            labels.append(f"{'I' if token.ent_iob == _INSIDE and labels else 'B'}-{token.ent_type_}")
    return labels


def _tags(tokens: Sequence[Token], annotates: str) -> list[str | None]:
    return [(token.tag_ if annotates == TAG else token.pos_) or None for token in tokens]


def docs_to_sentences(docs: Iterable[Doc]) -> list[Sentence]:
    """The sentences of documents as those of a treebank: lemmas, tags, morphology and trees, as far as there are."""
    return [sentence for doc in docs for sentence in doc_sentences(doc)]


def doc_sentences(doc: Doc) -> list[Sentence]:
    """The sentences of one document, in the order of `split`."""
    check_doc(doc)
    parsed = doc.has_annotation("DEP")
    found = []
    for tokens in split(doc):
        numbers = {token.i: number for number, token in enumerate(tokens, 1)}
        found.append(Sentence([_word(token, numbers if parsed else None) for token in tokens]))
    return found


def _word(token: Token, numbers: dict[int, int] | None) -> Word:
    head = None
    if numbers is not None:
        head = 0 if token.head.i == token.i else numbers.get(token.head.i)
    last = token.i + 1 == len(token.doc) or token.whitespace_
    return Word(
        token.text,
        token.lemma_ or "_",
        token.pos_ or "_",
        token.tag_ or "_",
        str(token.morph) or "_",
        head,
        (token.dep_ or "_") if head is not None else "_",
        misc="_" if last else "SpaceAfter=No",
    )


def check_learnable(y: Iterable[Iterable[Any]], annotates: str) -> None:
    """Refuse documents that have nothing to learn from."""
    if all(label is None for labels in y for label in labels):
        raise EmptyDataError(f"the documents have no {annotates} to learn from")
