"""How good the words are that a text was cut into: sentences of (form, fields), gold and predicted ones of the same texts.

A word is right when it has the same characters of the text; with `n_fields`, its first fields must be the same too. Spaces
that one side has in its words and the other has not, because they stand between words, do not count.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from crfkit.errors import ArgumentError, ShapeError
from crfkit.evaluation.counts import Counts
from crfkit.evaluation.paths import PathMetric, path_counts

Sentences = Sequence[Sequence[Any]]  # words are (form, fields, …)
Placed = tuple[int, int, tuple[str, ...]]  # start, end, fields


@dataclass(frozen=True)
class WordReport:
    """Precision, recall and F1 of words, and of words with their first fields."""

    n_sentences: int
    sentence_accuracy: float  # share of the sentences in which all words and fields are right
    words: Counts
    fields: tuple[Counts, ...]  # of words whose first 1, 2, … fields are right

    def __str__(self) -> str:
        named = [("words", self.words)]
        named += ((f"with {k} field{'s' * (k > 1)}", found) for k, found in enumerate(self.fields, 1))
        lines = [
            f"sentences: {self.n_sentences}; wholly correct: {100 * self.sentence_accuracy:6.2f}%",
            f"words: {self.words.gold}; found: {self.words.predicted}; correct: {self.words.correct}",
        ]
        lines += (
            f"{name:>17}: precision: {100 * found.precision:6.2f}%; recall: {100 * found.recall:6.2f}%; "
            f"F1: {100 * found.f1:6.2f}"
            for name, found in named
        )
        return "\n".join(lines)


def word_report(gold: Sentences, predicted: Sentences, n_fields: int | None = None) -> WordReport:
    """Compare words; `n_fields`: so many of the first fields (None: all that gold words have) count."""
    pairs = place_words(gold, predicted, n_fields)
    if n_fields is None:
        n_fields = max((len(word[2]) for right, _ in pairs for word in right), default=0)
    counts = []
    for k in range(n_fields + 1):
        cut = [tuple([(*word[:2], word[2][:k]) for word in words] for words in pair) for pair in pairs]
        counts.append(path_counts(*_columns(cut)))
    whole = PathMetric("sequence_accuracy")(*_columns(cut))
    numbers = [Counts(int(c.correct), int(c.predicted), int(c.gold)) for c in counts]
    return WordReport(len(pairs), whole, numbers[0], tuple(numbers[1:]))


def place_words(
    gold: Sentences, predicted: Sentences, n_fields: int | None
) -> list[tuple[list[Placed], list[Placed]]]:
    """The words of each sentence as (start, end, first fields) in their text; ShapeError where texts differ."""
    if n_fields is not None and not (isinstance(n_fields, int) and n_fields >= 0):
        raise ArgumentError(f"n_fields is {n_fields!r}, expected None or a number of fields")
    if len(gold) != len(predicted):
        raise ShapeError(
            f"there are {len(gold)} gold sentences and {len(predicted)} predicted ones, expected as many"
        )
    pairs = []
    for n, (right, found) in enumerate(zip(gold, predicted, strict=True)):
        texts = ["".join(word[0] for word in words) for words in (right, found)]
        spaces = {c for c in {*"".join(texts)} if c.isspace() and texts[0].count(c) != texts[1].count(c)}
        a, b = (_without(spaces, text) for text in texts)
        if a != b:
            raise ShapeError(f"sentence {n} has the words of {a!r} in gold and of {b!r} predicted")
        pairs.append((_placed(right, spaces, n_fields), _placed(found, spaces, n_fields)))
    return pairs


def _without(spaces: set[str], text: str) -> str:
    return "".join(c for c in text if c not in spaces) if spaces else text


def _placed(words: Sequence[Any], spaces: set[str], n_fields: int | None) -> list[Placed]:
    placed, at = [], 0
    for form, fields, *_ in words:
        end = at + len(_without(spaces, form))
        placed.append((at, end, tuple(fields)[:n_fields]))
        at = end
    return placed


def _columns(pairs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    return [right for right, _ in pairs], [found for _, found in pairs]
