"""How good the tags of sentences are: accuracy of columns such as UPOS, over known and unknown words."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from crfkit.data import Sentence, Word
from crfkit.errors import ArgumentError, EmptyDataError, ShapeError
from crfkit.evaluation.labels import Confusion, confusion

_NAMES = ("lemma", "upos", "xpos", "feats")
_UNKNOWN = "_"  # of UPOS and XPOS: not given; FEATS and lemmas may be just that


@dataclass(frozen=True)
class Share:
    """How many of some words are right."""

    correct: int
    total: int

    @property
    def accuracy(self) -> float:
        """correct / total; 0 where there are no such words."""
        return self.correct / self.total if self.total else 0.0

    def __str__(self) -> str:
        return f"{100 * self.accuracy:6.2f}% of {self.total:,}"


@dataclass(frozen=True)
class TagReport:
    """The words with the right tag; where there are several columns, with the right value in all of them."""

    columns: tuple[str, ...]
    n_sentences: int
    n_correct_sentences: int  # without any wrong tag
    words: Share
    known: Share | None  # words of the training set; None where that is not known
    unknown: Share | None  # all others
    by_column: tuple[Share, ...]  # for each of the columns
    confusion: Confusion
    n_impossible: int | None = (
        None  # words whose gold tag the tagger can never give; None when that was not asked
    )

    @property
    def accuracy(self) -> float:
        """The share of words with the right tag."""
        return self.words.accuracy

    def __str__(self) -> str:
        name = "+".join(self.columns).upper()
        whole = Share(self.n_correct_sentences, self.n_sentences)
        lines = [f"{name} accuracy:   {self.words} words"]
        if self.known is not None and self.unknown is not None:
            lines += [f"  known words:   {self.known}", f"  unknown words: {self.unknown}"]
        if len(self.columns) > 1:
            pairs = zip(self.columns, self.by_column, strict=True)
            lines += (f"  {column.upper() + ':':14} {share}" for column, share in pairs)
        lines.append(f"sentences: {self.n_sentences:,}; wholly correct: {100 * whole.accuracy:6.2f}%")
        if self.n_impossible is not None:
            share = Share(self.n_impossible, self.words.total)
            lines.append(
                f"gold tags that cannot be predicted: {self.n_impossible:,} ({100 * share.accuracy:.2f}% of words)"
            )
        errors = self.confusion.errors(10)
        if errors:
            lines.append("most frequent confusions (gold → predicted):")
            lines += (f"{count:>8}  {gold} → {predicted}" for gold, predicted, count in errors)
        return "\n".join(lines)


def evaluate_tags(
    gold: Sequence[Sentence],
    predicted: Sequence[Sentence],
    columns: Sequence[str] = ("upos",),
    known_forms: Collection[str] | None = None,
    n_impossible: int | None = None,
) -> TagReport:
    """Compare columns of the words of the same sentences; `known_forms`: of the words of the training set.

    Words whose gold UPOS or XPOS is `_` do not count where that is one of the columns. `n_impossible`: at how many of the
    others the tagger could not have given the gold tag (`TreebankTagger.find_impossible`).
    """
    names = tuple(columns)
    if not names or not set(names) <= set(_NAMES):
        raise ArgumentError(f"columns is {columns!r}, expected some of {', '.join(_NAMES)}")
    right = {True: 0, False: 0}  # by whether the word is known
    total = {True: 0, False: 0}
    by_column = [0] * len(names)
    whole = 0
    labels: tuple[list[str], list[str]] = ([], [])
    for number, (one, other) in enumerate(_pairs(gold, predicted)):
        before = total[True] + total[False] - right[True] - right[False]
        for word, guess in _words(number, one, other):
            values = [(getattr(word, name), getattr(guess, name)) for name in names]
            if any(v[0] == _UNKNOWN for name, v in zip(names, values, strict=True) if name.endswith("pos")):
                continue
            known = known_forms is not None and word.form in known_forms
            total[known] += 1
            right[known] += all(a == b for a, b in values)
            for k, (a, b) in enumerate(values):
                by_column[k] += a == b
            for listed, column in zip(labels, zip(*values, strict=True), strict=True):
                listed.append(" ".join(column))
        whole += total[True] + total[False] - right[True] - right[False] == before
    n_words = total[True] + total[False]
    if not n_words:
        where = f"{gold[0].source}: " if gold else ""
        raise EmptyDataError(f"{where}no word of the gold sentences has a tag in {'+'.join(names).upper()}")
    return TagReport(
        names,
        len(gold),
        whole,
        Share(right[True] + right[False], n_words),
        None if known_forms is None else Share(right[True], total[True]),
        None if known_forms is None else Share(right[False], total[False]),
        tuple(Share(correct, n_words) for correct in by_column),
        confusion([labels[0]], [labels[1]]),
        n_impossible,
    )


def _pairs(gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> list[tuple[Sentence, Sentence]]:
    if len(gold) != len(predicted):
        raise ShapeError(
            f"there are {len(gold)} gold sentences and {len(predicted)} predicted ones, expected as many"
        )
    return list(zip(gold, predicted, strict=True))


def _words(number: int, gold: Sentence, predicted: Sentence) -> list[tuple[Word, Word]]:
    """The words of a sentence beside each other; ShapeError where the forms differ."""
    forms = [[word.form for word in sentence.words] for sentence in (gold, predicted)]
    if forms[0] != forms[1]:
        raise ShapeError(
            f"sentence {number} has the words {' '.join(forms[0])[:60]!r} in gold and "
            f"{' '.join(forms[1])[:60]!r} predicted, expected the same"
        )
    return list(zip(gold.words, predicted.words, strict=True))
