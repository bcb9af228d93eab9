"""The words of sequences as people read them, and which of them a model knows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from crfkit.features import Template
from crfkit.models import CRF

_KEYS = ("word", "form", "token", "text", "w", "word.lower()", "lower")  # of positions that are dicts


def words_of(X: Sequence[Any]) -> list[list[str]]:
    """A text for each position: the word itself, the first column, or the feature that names it.

    A sequence may be any object where features are functions of it: one that lists no positions has no texts.
    """
    return [list(map(_word, sequence)) if isinstance(sequence, Iterable) else [] for sequence in X]


def _word(position: Any) -> str:
    if isinstance(position, str):
        return position
    if isinstance(position, Mapping):
        key = next((key for key in _KEYS if key in position), None)
        if key is not None:
            return str(position[key])
        texts = (value for value in position.values() if isinstance(value, str))
        return next(texts, next((str(name) for name in position), "–"))
    if isinstance(position, Sequence):
        return str(position[0]) if len(position) else "–"
    return "–"  # numbers alone


class KnownWords(NamedTuple):
    """Which words a model was trained on, and how that is known."""

    knows: Callable[[str], bool]
    source: str

    @classmethod
    def of_training_set(cls, sequences: Iterable[Iterable[str]]) -> "KnownWords":
        """The words of the training set."""
        seen = {word for words in sequences for word in words}
        return cls(seen.__contains__, "words of the training set")

    @classmethod
    def of_model(cls, model: CRF[Any]) -> "KnownWords | None":
        """The words that have a feature of their own, by the template; None where no line of it is the word alone."""
        template = model.encoder_.template
        if not isinstance(template, Template):
            return None
        line = next((line for line in template.program().lines if _is_word(template, line)), None)
        if line is None:
            return None
        vocabulary, prefix, tail = model.encoder_.vocabulary, line.macros[0].literal, line.tail
        return cls(
            lambda word: vocabulary.name_of(f"{prefix}{word}{tail}") in vocabulary,
            f"words with a feature {prefix}…{tail} of their own in the model",
        )


def _is_word(template: Template, line: Any) -> bool:
    """Whether a line of a template is the word at the position, and nothing else."""
    if line.kind != "U" or len(line.macros) != 1:
        return False
    [macro] = line.macros
    transform = template.program().transforms[macro.transform]
    return (transform.function, transform.column, macro.row, macro.anchor) == ("x", 0, 0, "position")
