"""Sentences as JSON: one object each, for programs that read no CoNLL-U."""

from typing import Any

from crfkit.data import Sentence
from crfkit.pipeline.written_text import misc_value, tokens_of


def sentence_to_json(sentence: Sentence) -> dict[str, Any]:
    """A sentence as JSON values; columns that are `_` are left out.

    >>> from crfkit.data import Word
    >>> sentence_to_json(Sentence([Word("Go", "go", "VERB")]))
    {'tokens': [{'text': 'Go', 'words': [1]}], 'words': [{'id': 1, 'form': 'Go', 'lemma': 'go', 'upos': 'VERB'}]}
    """
    found: dict[str, Any] = {}
    for comment in sentence.comments:
        name, equals, value = comment.lstrip("# ").partition(" = ")
        if equals and name in ("text", "sent_id"):
            found[name] = value
    tokens = []
    for token in tokens_of(sentence):
        one: dict[str, Any] = {"text": token.form, "words": list(range(token.first, token.last + 1))}
        place = misc_value(token.misc, "TokenRange")
        if place is not None:
            one["start"], one["end"] = map(int, place.split(":"))
        tokens.append(one)
    found["tokens"] = tokens
    found["words"] = [
        {
            "id": number,
            **{
                name: value
                for name, value in zip(word._fields, word, strict=True)
                if value not in ("_", None) or name == "form"
            },
        }
        for number, word in enumerate(sentence.words, 1)
    ]
    return found
