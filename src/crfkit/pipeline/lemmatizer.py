"""The lemmatizer: from forms and tags to lemmas."""

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Self

from crfkit.data import Sentence, Word
from crfkit.errors import EmptyDataError
from crfkit.features import check_sentences
from crfkit.models import (
    CRF,
    Checkpoint,
    ConvergenceWarning,
    ModelFile,
    NotFittedError,
    ProgressCallback,
    UnknownLabels,
)
from crfkit.optimizers import LBFGS, Optimizer
from crfkit.pipeline.edit_scripts import apply_script, find_script
from crfkit.pipeline.saved_model import SavedModel
from crfkit.structures import Chain

_MOST_KEPT = 50_000  # words whose lemmas are kept


def _each(line: str, numbers: Iterable[int]) -> str:
    return "\n".join(line.replace("N", str(number)) for number in numbers)


TEMPLATE = f"""\
# Columns: 0 the form, 1 UPOS, 2 FEATS. No transitions: each word is a problem of its own.
upos=%x[0,1]
word|upos=%x[0,0]|%x[0,1]
lower=%lower[0,0]
upos|feats=%x[0,1]|%x[0,2]
shape|upos=%short_shape[0,0]|%x[0,1]
{_each("suffixN=%lower_suffix[0,0,N]", range(1, 7))}
{_each("suffixN|upos=%lower_suffix[0,0,N]|%x[0,1]", range(1, 7))}
{_each("suffixN|upos|feats=%lower_suffix[0,0,N]|%x[0,1]|%x[0,2]", range(1, 7))}
{_each("prefixN|upos=%lower_prefix[0,0,N]|%x[0,1]", range(1, 5))}
"""


class Tagged(NamedTuple):
    """What a lemma depends on."""

    form: str
    upos: str
    feats: str


class Lemmatizer(SavedModel):
    """Gives words their lemmas: an edit script for each, chosen by a `CRF` without transitions, and a dictionary.

    A script says what to strip from a form and what to add, and its case. The dictionary has the words of the training set
    for which the script that is chosen is wrong.

    Parameters
    ----------
    optimizer, l2, n_threads : as for `CRF`

    Attributes
    ----------
    crf_ : the trained `CRF`, whose labels are scripts
    dictionary_ : form, UPOS and FEATS → lemma, where the scripts err

    Examples
    --------
    >>> pairs = [("dogs", "dog"), ("Cats", "cat"), ("mice", "mouse")]
    >>> lemmatizer = Lemmatizer().fit([Sentence([Word(form, lemma, "NOUN") for form, lemma in pairs])])
    >>> [found] = lemmatizer.predict([Sentence([Word("cows", upos="NOUN"), Word("mice", upos="NOUN")])])
    >>> [word.lemma for word in found.words]
    ['cow', 'mouse']
    """

    crf_: CRF[Any]
    dictionary_: dict[Tagged, str]

    _kind = "lemmatizer"

    def __init__(
        self,
        optimizer: Optimizer | str = LBFGS(max_iterations=60),  # noqa: B008 (frozen)
        l2: float = 0.3,
        n_threads: int | None = None,
    ) -> None:
        self.optimizer = optimizer
        self.l2 = l2
        self.n_threads = n_threads

    def fit(
        self,
        sentences: Iterable[Sentence],
        *,
        dev: Iterable[Sentence] | None = None,
        patience: int | None = None,
        callback: ProgressCallback | None = None,
        time_budget: float | None = None,
        checkpoint: Checkpoint | None = None,
        verbose: bool | int | str = False,
    ) -> Self:
        """Train on sentences with lemmas; words whose LEMMA is `_` are left out. Arguments as for `CRF.fit`."""
        counts = _count(check_sentences(sentences))
        if not counts:
            raise EmptyDataError("no word has a lemma: there is nothing to learn")
        held_out = None
        if dev is not None:
            held_out = _examples(_count(check_sentences(dev, "dev")))
        crf: CRF[Any] = CRF(
            Chain(start=False, end=False),
            features=TEMPLATE,
            optimizer=self.optimizer,
            l2=self.l2,
            tag_dictionary=True,
            n_threads=self.n_threads,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # more iterations do not help on other words
            warnings.simplefilter("ignore", UnknownLabels)
            crf.fit(
                *_examples(counts),
                [math.log2(1 + count) for count in counts.values()],
                dev=held_out,
                patience=patience,
                callback=callback,
                time_budget=time_budget,
                checkpoint=checkpoint,
                verbose=verbose,
            )
        self._set_trained(crf, {})
        best: dict[Tagged, tuple[int, str]] = {}
        for (tagged, lemma), count in counts.items():
            best[tagged] = max(best.get(tagged, (0, lemma)), (count, lemma), key=lambda found: found[0])
        given = self._choose(list(best))
        self._set_trained(
            crf, {tagged: lemma for tagged, (_, lemma) in best.items() if lemma != given[tagged]}
        )
        return self

    def predict(self, sentences: Iterable[Sentence]) -> list[Sentence]:
        """Copies of the sentences with a lemma for each word; all else is as it was."""
        self._trained()
        given = check_sentences(sentences)
        kept = self._kept
        wanted = {_tagged(word) for sentence in given for word in sentence.words}
        new = sorted(wanted - kept.keys())
        if len(kept) + len(new) > _MOST_KEPT:
            kept.clear()
            new = sorted(wanted)
        kept.update(self._choose(new))
        return [
            replace(sentence, words=[word._replace(lemma=kept[_tagged(word)]) for word in sentence.words])
            for sentence in given
        ]

    def score(self, sentences: Iterable[Sentence]) -> float:
        """The share of words with the right lemma; words whose lemma is `_` do not count."""
        given = check_sentences(sentences)
        pairs = [
            (word.lemma, found.lemma)
            for sentence, predicted in zip(given, self.predict(given), strict=True)
            for word, found in zip(sentence.words, predicted.words, strict=True)
            if _has_lemma(word)
        ]
        return sum(gold == found for gold, found in pairs) / len(pairs) if pairs else math.nan

    def to_file(
        self,
        *,
        single_precision: bool = True,
        metadata: Mapping[str, Any] | None = None,
        bundle: bool = False,
    ) -> ModelFile:
        """What the model file holds, for a file that has it as a part; there are no resources to `bundle`."""
        from crfkit.pipeline import lemmatizer_file

        self._trained()
        return lemmatizer_file.pack(self, single_precision=single_precision, metadata=metadata)

    def _facts(self) -> dict[str, object] | None:
        if not hasattr(self, "crf_"):
            return None
        return {"edit scripts": f"{len(self.crf_.classes_):,}", "exceptions": f"{len(self.dictionary_):,}"}

    def _views(self) -> list[tuple[str, Any]]:
        return [("CRF over edit scripts", self.crf_)]

    def _trained(self) -> CRF[Any]:
        if not hasattr(self, "crf_"):
            raise NotFittedError("This Lemmatizer is not trained: call fit, or load a trained one.")
        if self.crf_.n_threads != self.n_threads:
            self.crf_.set_params(n_threads=self.n_threads)
        return self.crf_

    def _set_trained(self, crf: CRF[Any], dictionary: dict[Tagged, str]) -> None:
        self.crf_, self.dictionary_ = crf, dictionary
        self._kept: dict[Tagged, str] = {}

    def _choose(self, words: list[Tagged]) -> dict[Tagged, str]:
        """The lemma of each word."""
        found = {tagged: self.dictionary_[tagged] for tagged in words if tagged in self.dictionary_}
        others = [tagged for tagged in words if tagged not in found]
        for tagged, [script] in zip(others, self.crf_.predict([[tagged] for tagged in others]), strict=True):
            lemma = apply_script(script, tagged.form)
            found[tagged] = self._first_possible(tagged) if lemma is None else lemma
        return found

    def _first_possible(self, tagged: Tagged) -> str:
        """By the most probable script that leaves something of a form."""
        [table] = self.crf_.predict_marginals([[tagged]])
        for i in (-table[0]).argsort(kind="stable").tolist():
            lemma = apply_script(self.crf_.classes_[i], tagged.form) if table[0, i] > 0 else None
            if lemma is not None:
                return lemma
        return tagged.form


def _tagged(word: Word) -> Tagged:
    return Tagged(word.form, word.upos, word.feats)


def _has_lemma(word: Word) -> bool:
    return word.lemma != "_" or word.form == "_"


def _count(sentences: list[Sentence]) -> Counter[tuple[Tagged, str]]:
    """How often each word has which lemma."""
    return Counter(
        (_tagged(word), word.lemma) for sentence in sentences for word in sentence.words if _has_lemma(word)
    )


def _examples(counts: Iterable[tuple[Tagged, str]]) -> tuple[list[list[Tagged]], list[list[str]]]:
    """Words as sequences of one position, and their scripts."""
    pairs = list(counts)
    return [[tagged] for tagged, _ in pairs], [[find_script(tagged.form, lemma)] for tagged, lemma in pairs]
