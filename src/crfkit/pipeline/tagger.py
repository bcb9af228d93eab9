"""The tagger of treebanks: fills columns of sentences, such as UPOS or FEATS."""

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy.typing as npt

from crfkit.arrays import Bools, Float64s
from crfkit.data import Sentence
from crfkit.errors import ArgumentError, EmptyDataError
from crfkit.evaluation import TagReport, evaluate_tags
from crfkit.features import MissingResource, Resource, check_resources, check_sentences
from crfkit.models import (
    CRF,
    Checkpoint,
    ModelFile,
    NotFittedError,
    ProgressCallback,
    Report,
    UnknownLabels,
    label_list,
)
from crfkit.optimizers import Optimizer, StopReason
from crfkit.pipeline.saved_model import SavedModel
from crfkit.pipeline.tag_columns import TagColumns
from crfkit.pipeline.tagger_input import read_positions, reads_rows
from crfkit.pipeline.tagger_settings import ChosenCRF, choose_for_treebank
from crfkit.pipeline.word_list import WordList

AUTO = "auto"


class TreebankTagger(SavedModel):
    """Fills one or more of the columns UPOS, XPOS and FEATS of sentences: a `CRF` over the forms of their words.

    Parameters
    ----------
    tag : the columns, "upos", "xpos", "feats", or several as one joint label, such as "upos+feats"
    crf : "auto": features, tag dictionary, transitions and optimizer chosen by the number of tags, and where there are many
        by a trial on held-out sentences (`settings_reason_` says which); or an untrained `CRF` whose positions are words
    n_threads : None: all processors. The results do not depend on it, to the last bit.
    words : a `WordList` of the language, or a list of words: tells what kind of word an unknown one is
    resources : {name: `Lexicon`, `Clusters` or `WordVectors`} that features are made of, as for the presets of a `CRF`,
        where `crf` is "auto"; a `CRF` has its own. The model file names them, or holds them: `save(bundle=True)`

    Attributes
    ----------
    crf_ : the trained `CRF`; its labels are tags, joint ones with tabs between the columns
    known_forms_ : the forms of the words of the training set
    settings_reason_ : which settings were chosen, and by what

    Examples
    --------
    >>> from crfkit.data import Sentence, Word
    >>> seen = [Sentence([Word("the", upos="DET"), Word("dog", upos="NOUN"), Word("barks", upos="VERB")])]
    >>> tagger = TreebankTagger("upos").fit(seen)
    >>> [tagged] = tagger.predict([Sentence([Word("the"), Word("barks")])])
    >>> [(word.form, word.upos) for word in tagged.words]
    [('the', 'DET'), ('barks', 'VERB')]
    """

    crf_: CRF[Any]
    known_forms_: frozenset[str]
    settings_reason_: str

    _kind = "tagger of treebanks"

    def __init__(
        self,
        tag: str = "upos",
        crf: CRF[Any] | str = AUTO,
        n_threads: int | None = None,
        words: WordList | Iterable[str] | None = None,
        resources: Mapping[str, Resource | MissingResource] | None = None,
    ) -> None:
        self.tag = tag
        self.crf = crf
        self.n_threads = n_threads
        self.words = words if words is None or isinstance(words, WordList) else WordList(words)
        self.resources = resources

    def fit(
        self,
        sentences: Iterable[Sentence],
        sample_weight: npt.ArrayLike | None = None,
        *,
        dev: Iterable[Sentence] | None = None,
        patience: int | None = None,
        callback: ProgressCallback | None = None,
        time_budget: float | None = None,
        start: "TreebankTagger | str | os.PathLike[str] | None" = None,
        checkpoint: Checkpoint | None = None,
        verbose: bool | int | str = False,
    ) -> Self:
        """Train on sentences with tags, such as `read_conllu` gives.

        A UPOS or XPOS that is `_` is unknown: any tag that agrees with the rest is then right. With `dev` sentences, the
        weights with the highest accuracy on them are kept. Other arguments as for `CRF.fit`; so are Ctrl-C and SIGTERM.
        """
        columns = TagColumns.parse(self.tag)
        given = check_sentences(sentences)
        known = check_tags(columns, given, "sentences")
        X, y = self._read(given, None), columns.annotate(given, known)
        crf, reason = self._untrained(columns, given)
        Report(verbose).stage(reason)
        held_out = None
        if dev is not None:
            dev = check_sentences(dev, "dev")
            check_tags(columns, dev, "dev")
            held_out = (self._read(dev, None), columns.annotate(dev, known))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnknownLabels)  # rare tags of dev are simply wrong
            crf.fit(
                X,
                y,
                sample_weight,
                dev=held_out,
                metric=None if dev is None else "accuracy",
                patience=patience,
                callback=callback,
                time_budget=time_budget,
                start=_read_start(start),
                checkpoint=checkpoint,
                verbose=verbose,
            )
        self.crf_, self.settings_reason_ = crf, reason
        self.known_forms_ = frozenset(word.form for sentence in given for word in sentence.words)
        return self

    def predict(self, sentences: Iterable[Sentence], *, probabilities: bool = False) -> list[Sentence]:
        """Copies of the sentences with the columns filled; all else is as it was.

        With `probabilities`, MISC has the marginal probability of each word's tag, under the key UposProb, XposProb,
        FeatsProb, or UposFeatsProb and so on for joint tags; a value that was there is replaced.
        """
        crf, columns = self._trained(), TagColumns.parse(self.tag)
        given = check_sentences(sentences)
        X = self._read(given, crf)
        labels = crf.predict(X)
        found = [columns.fill(*pair) for pair in zip(given, labels, strict=True)]
        if not probabilities:
            return found
        number = {label: i for i, label in enumerate(crf.classes_)}
        marginals = crf.predict_marginals(X)
        return [
            _with_probabilities(
                sentence,
                columns.misc_key,
                [float(row[number[label]]) for row, label in zip(table, own, strict=True)],
            )
            for sentence, own, table in zip(found, labels, marginals, strict=True)
        ]

    def predict_marginals(self, sentences: Iterable[Sentence]) -> list[Float64s]:
        """The probability of each tag at each word: float64[T, L] for each sentence, columns as in `classes_`."""
        crf = self._trained()
        return crf.predict_marginals(self._read(check_sentences(sentences), crf))

    def find_impossible(self, sentences: Iterable[Sentence]) -> list[Bools]:
        """The words whose right tag is never predicted, whatever the weights are: bool[T] for each sentence.

        These are tags that the training set does not have, and those that the tag dictionary or the bigrams exclude there.
        A word whose UPOS or XPOS is `_` is none of them where that is one of the columns.
        """
        crf, columns = self._trained(), TagColumns.parse(self.tag)
        given = check_sentences(sentences)
        gold = [
            [columns.join(word) if columns.is_complete(word) else None for word in sentence.words]
            for sentence in given
        ]
        return crf.find_impossible(self._read(given, crf), gold)

    def positions(self, sentences: Iterable[Sentence]) -> list[Sequence[Any]]:
        """What the trained CRF sees of the words of sentences: their forms, or rows that begin with them."""
        return self._read(check_sentences(sentences), self._trained())

    def score(self, sentences: Iterable[Sentence]) -> float:
        """The share of words with the right tag; words whose tag is unknown do not count."""
        return self.evaluate(sentences).accuracy

    def evaluate(self, sentences: Iterable[Sentence]) -> TagReport:
        """Accuracy over all words, those of the training set and all others; joint tags also column by column."""
        given = check_sentences(sentences)
        predicted = self.predict(given)
        n_impossible = sum(int(words.sum()) for words in self.find_impossible(given))
        return evaluate_tags(
            given, predicted, TagColumns.parse(self.tag).names, self.known_forms_, n_impossible
        )

    @property
    def classes_(self) -> list[str]:
        """The tags, in the order of the columns of `predict_marginals`; joint ones with tabs between the columns."""
        return self._trained().classes_

    @property
    def optimizer(self) -> Optimizer | str:
        """The optimizer of the CRF; "auto" where that is yet to be chosen."""
        return self.crf.optimizer if isinstance(self.crf, CRF) else AUTO

    @property
    def optimizer_reason_(self) -> str:
        """Why this optimizer was used."""
        return self._trained().optimizer_reason_

    @property
    def weights_(self) -> Float64s:
        """The weights of the CRF."""
        return self._trained().weights_

    @property
    def n_iter_(self) -> int:
        """Number of iterations whose weights these are."""
        return self._trained().n_iter_

    @property
    def stop_reason_(self) -> StopReason | str:
        """Why training ended."""
        return self._trained().stop_reason_

    @property
    def stop_message_(self) -> str:
        """The same as a text, with numbers."""
        return self._trained().stop_message_

    def to_file(
        self,
        *,
        single_precision: bool = True,
        metadata: Mapping[str, Any] | None = None,
        bundle: bool = False,
    ) -> ModelFile:
        """What the model file holds, for a file that has it as a part."""
        from crfkit.pipeline import tagger_file

        self._trained()
        return tagger_file.pack(self, single_precision=single_precision, metadata=metadata, bundle=bundle)

    def __repr__(self) -> str:
        crf = "" if isinstance(self.crf, str) else f", crf={self.crf!r}"
        threads = "" if self.n_threads is None else f", n_threads={self.n_threads}"
        words = "" if self.words is None else f", words={self.words!r}"
        resources = "" if self.resources is None else f", resources={self.resources!r}"
        return f"TreebankTagger({self.tag!r}{crf}{threads}{words}{resources})"

    def _read(self, sentences: list[Sentence], trained: CRF[Any] | None) -> list[Sequence[Any]]:
        """The positions of sentences, for training or for a trained CRF."""
        if trained is not None:
            rows = trained.n_columns_ not in (None, 1)
        else:
            rows = reads_rows(self.crf) if isinstance(self.crf, CRF) else self.words is not None
        return read_positions(sentences, self.words, rows=rows)

    def _facts(self) -> dict[str, object] | None:
        if not hasattr(self, "crf_"):
            return None
        tags = label_list(str(tag).replace("\t", " ") for tag in self.crf_.classes_)
        return {"tags": tags, "known words": f"{len(self.known_forms_):,}", "settings": self.settings_reason_}

    def _views(self) -> list[tuple[str, Any]]:
        return [("CRF over words", self.crf_)]

    def _trained(self) -> CRF[Any]:
        if not hasattr(self, "crf_"):
            raise NotFittedError("This TreebankTagger is not trained: call fit, or load a trained one.")
        self.crf_.set_params(n_threads=self.n_threads)
        return self.crf_

    def _untrained(self, columns: TagColumns, sentences: list[Sentence]) -> ChosenCRF:
        """The CRF to train, and why this one."""
        resources = check_resources(self.resources)
        if isinstance(self.crf, CRF):
            if resources:
                raise ArgumentError(
                    "TreebankTagger: got resources beside a CRF, expected them in it: CRF(resources=…)"
                )
            params = self.crf.get_params(deep=False) | {"n_threads": self.n_threads}
            return ChosenCRF(CRF(**params), "settings as given")
        if self.crf != AUTO:
            raise ArgumentError(f"crf is {self.crf!r}, expected 'auto' or a CRF")
        return choose_for_treebank(columns, sentences, self.words, self.n_threads, resources or None)


def check_tags(columns: TagColumns, sentences: list[Sentence], what: str) -> list[str]:
    """The tags of sentences, of which there must be one at least."""
    known = columns.known_labels(sentences)
    if not known:
        where = f"{what} ({sentences[0].source})" if sentences else what
        raise EmptyDataError(f"{where}: no word has a tag in {str(columns).upper()}")
    return known


def _read_start(start: object) -> Any:
    """The CRF whose weights to begin with."""
    if isinstance(start, str | os.PathLike):
        start = TreebankTagger.load(start)
    if start is None or not isinstance(start, TreebankTagger):
        return start
    return start._trained()


def _with_probabilities(sentence: Sentence, key: str, probabilities: Iterable[float]) -> Sentence:
    """The sentence with `key=…` in the MISC of each word."""
    words = []
    for word, probability in zip(sentence.words, probabilities, strict=True):
        kept = [item for item in word.misc.split("|") if item != "_" and not item.startswith(f"{key}=")]
        words.append(word._replace(misc="|".join([*kept, f"{key}={min(probability, 1.0):.4f}"])))
    return replace(sentence, words=words)
