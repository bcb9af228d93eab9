"""What a request gives a model to answer about: texts, tokens, rows of columns, features, or words of a treebank."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from crfkit.serve.errors import bad_value, too_large
from crfkit.serve.limits import Limits
from crfkit.serve.plain_text import split_text

OUTPUTS = 4  # times the tokens of a request: labels of all of its n best outputs together
FORMS = ("text", "texts", "tokens", "rows", "features", "words")


@dataclass(frozen=True, slots=True)
class Item:
    """What is answered as one: a sentence, or for models that cut texts themselves, a whole text."""

    size: int  # tokens, or what they may be
    inputs: Any  # as the model reads it
    tokens: list[str] | None = None  # where the answer is to name them
    offsets: list[tuple[int, int]] | None = None  # (start, end) of each in the text
    text: str | None = None  # the whole text they are of


Document = list[Item]  # of one text, one list of tokens, …


@dataclass(frozen=True, slots=True)
class Given:
    """The input of a request: one of the `FORMS`, and its values, one for each document."""

    form: str
    values: list[Any]

    @classmethod
    def of(cls, request: dict[str, Any], limits: Limits) -> "Given":
        """What a request gives; RequestError where it gives nothing, two things, or too much."""
        found = [form for form in FORMS if request.get(form) is not None]
        if len(found) != 1:
            given = " and ".join(found) if found else "none"
            raise bad_value(f"the request has {given}, expected one of {', '.join(FORMS)}")
        form = found[0]
        value = request[form]
        if form == "text":
            form, value = "texts", [value]
        if not isinstance(value, list):
            raise bad_value(f"{form} is of another type, expected an array")
        if len(value) > limits.max_texts:
            raise too_large(f"{form} has {len(value):,} entries, expected at most {limits.max_texts:,}")
        _CHECKS[form](form, value)
        return cls(form, value)


def _check_texts(form: str, values: list[Any]) -> None:
    for n, value in enumerate(values):
        if not isinstance(value, str):
            raise bad_value(f"{form}[{n}] is no string")


def _check_tokens(form: str, values: list[Any]) -> None:
    for n, value in enumerate(values):
        if not isinstance(value, list):
            raise bad_value(f"{form}[{n}] is no array of strings; a single sentence is an array in an array")
        for token in value:
            if not isinstance(token, str):
                raise bad_value(f"{form}[{n}] has an entry that is no string")


def _check_lists(form: str, values: list[Any]) -> None:
    for n, value in enumerate(values):
        if not isinstance(value, list):
            raise bad_value(
                f"{form}[{n}] is no array of positions; a single sentence is an array in an array"
            )


def _check_words(form: str, values: list[Any]) -> None:
    _check_lists(form, values)
    for n, value in enumerate(values):
        for i, word in enumerate(value):
            if not isinstance(word, dict) or not isinstance(word.get("form"), str):
                raise bad_value(f'{form}[{n}][{i}] is no word, expected an object such as {{"form": "dogs"}}')


_CHECKS: dict[str, Callable[[str, list[Any]], None]] = {
    "texts": _check_texts,
    "tokens": _check_tokens,
    "rows": _check_lists,
    "features": _check_lists,
    "words": _check_words,
}


def check_sizes(documents: Sequence[Document], limits: Limits, longest: int, n_outputs: int = 1) -> None:
    """Refuse more tokens than the limits allow, alone and in so many outputs."""
    total = 0
    for n, document in enumerate(documents):
        for item in document:
            total += item.size
            if item.size > longest:
                raise too_large(
                    f"input {n} has a sentence of {item.size:,} tokens, expected at most {longest:,}"
                )
    if total > limits.max_tokens:
        raise too_large(f"the request has {total:,} tokens, expected at most {limits.max_tokens:,}")
    if n_outputs * total > OUTPUTS * limits.max_tokens:
        raise too_large(
            f"{n_outputs} outputs of {total:,} tokens were asked for, expected up to {OUTPUTS * limits.max_tokens:,} labels"
        )


def cut_texts(texts: Sequence[str]) -> list[Document]:
    """Texts as sentences of tokens, by rules (`plain_text`)."""
    documents = []
    for text in texts:
        document = []
        for sentence in split_text(text):
            words = [token.text for token in sentence]
            places = [(token.start, token.end) for token in sentence]
            document.append(Item(len(words), words, words, places, text))
        documents.append(document)
    return documents
