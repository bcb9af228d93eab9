"""Words and their parts of speech in text without spaces: a CRF over the lattices of a dictionary."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from crfkit.arrays import Float64s
from crfkit.counts import check_count
from crfkit.errors import ArgumentError, InputError
from crfkit.evaluation import MetricFunction, as_score, path_metric, place_words, read_metric
from crfkit.features import (
    WORD_COST,
    Candidate,
    Encoder,
    Entry,
    FeatureMap,
    Labels,
    LatticeMap,
    Vocabulary,
    WordDictionary,
    read_word,
)
from crfkit.models.crf import CRF
from crfkit.models.kinds.lattice_model import LatticeModel
from crfkit.models.kinds.lattices import ANY_LABEL, LatticePotentials
from crfkit.models.notebook_view import ParameterView
from crfkit.models.settings import DEFAULT_OPTIMIZER
from crfkit.optimizers import History, Optimizer
from crfkit.structures import CostMatrix, Lattice

Fields = tuple[str, ...]
_HIGHEST_COST = 32767


class Word(NamedTuple):
    """A word of a text, text[start:end], with the fields of its entry; whether it is in the lexicon."""

    form: str
    fields: Fields
    start: int
    end: int
    known: bool = True


class WordSegmenter(ParameterView):
    """Cuts texts into words and gives each the fields of a dictionary entry, such as its part of speech.

    The words of a text are a path through the lattice of all words that the dictionary finds in it, unknown ones included:

        p(words | text) = exp(score(words)) / Z        score = Σ features of words + Σ features of neighbouring words

    Parameters
    ----------
    dictionary : a `WordDictionary`
    optimizer, l1, l2, min_count, n_threads : as for `CRF`

    Attributes
    ----------
    crf_ : the trained `CRF` with a `Lattice`
    """

    crf_: CRF[Any]
    _by_costs: CRF[Any] | None = None  # with costs as they are: sums of whole numbers have no rounding

    def __init__(
        self,
        dictionary: WordDictionary,
        optimizer: Optimizer | str = DEFAULT_OPTIMIZER,
        l1: float = 0.0,
        l2: float = 1.0,
        min_count: int = 1,
        n_threads: int | None = None,
    ) -> None:
        self.dictionary = dictionary
        self.optimizer = optimizer
        self.l1 = l1
        self.l2 = l2
        self.min_count = min_count
        self.n_threads = n_threads

    def fit(self, sentences: Iterable[Sequence[tuple[str, Any]]], **options: Any) -> Self:
        """Train on sentences: lists of (form, fields), fields a tuple or their text with commas.

        A word that the dictionary does not find is added to the lattice of its sentence. `options` are those of `CRF.fit`.
        """
        if self.dictionary.costs is not None:
            raise ArgumentError(
                "the dictionary has costs, expected one without: replace(dictionary, costs=None)"
            )
        X, y = [], []
        for n, sentence in enumerate(sentences):
            lattice, path = self._annotated(n, sentence)
            X.append(lattice)
            y.append(path)
        crf: CRF[Any] = CRF(
            self.dictionary.structure,
            optimizer=self.optimizer,
            l1=self.l1,
            l2=self.l2,
            all_possible_states=True,
            min_count=self.min_count,
            n_threads=self.n_threads,
        )
        self.crf_ = crf.fit(X, y, **options)
        return self

    def _facts(self) -> dict[str, object] | None:
        return self.crf_._facts() if hasattr(self, "crf_") else None

    def _views(self) -> list[tuple[str, Any]]:
        return self.crf_._views()

    def predict(self, texts: Iterable[str]) -> list[list[Word]]:
        """The words of each text."""
        given, found, lattices = self._lattices(texts)
        paths = (self._by_costs or self.crf_).predict(lattices)
        return [_words(*one) for one in zip(given, found, paths, strict=True)]

    def predict_nbest(self, texts: Iterable[str], n: int) -> list[list[tuple[float, list[Word]]]]:
        """The n best analyses of each text with their probabilities, best first."""
        given, found, lattices = self._lattices(texts)
        several = self.crf_.predict_nbest(lattices, n)
        return [
            [(prob, _words(text, candidates, path)) for prob, path in best]
            for text, candidates, best in zip(given, found, several, strict=True)
        ]

    def predict_marginals(self, texts: Iterable[str]) -> list[list[tuple[Word, float]]]:
        """All words that may stand in each text, with their probabilities."""
        given, found, lattices = self._lattices(texts)
        marginals = self.crf_.predict_marginals(lattices)
        return [
            list(zip(_words(text, candidates, range(len(candidates))), probs.tolist(), strict=True))
            for text, candidates, probs in zip(given, found, marginals, strict=True)
        ]

    def score(
        self,
        sentences: Iterable[Sequence[tuple[str, Any]]],
        *,
        metric: str | MetricFunction | None = None,
        n_fields: int | None = 0,
    ) -> float:
        """F1 of the words of sentences, lists of (form, fields): a word is right when its characters are.

        `n_fields`: so many of its first fields must be right too; None: those that the dictionary compares. Other metrics:
        "precision", "recall", "sequence_accuracy", or a function of gold and predicted lists of (start, end, fields).
        `crfkit.evaluation.word_report` has them all.
        """
        figure = path_metric(read_metric(metric))
        gold = [_read_sentence(n, sentence) for n, sentence in enumerate(sentences)]
        found = self.predict(["".join(form for form, _ in sentence) for sentence in gold])
        pairs = place_words(gold, found, self.dictionary.compared if n_fields is None else n_fields)
        return as_score(figure([right for right, _ in pairs], [given for _, given in pairs]))

    def with_costs(self, cost_factor: int = 800) -> "WordSegmenter":
        """The same with whole numbers for scores, as MeCab has them: cost = −`cost_factor` · score, rounded.

        Costs lie within ±32767; contexts are the distinct fields that words show to their neighbours.
        """
        dictionary = self.dictionary
        cost_factor = check_count("cost_factor", cost_factor)
        if dictionary.costs is not None:
            return self
        self._check_trained()
        scores = _Scores(self.crf_)
        lefts: dict[Any, int] = {dictionary.structure.boundary[0]: 0}  # type: ignore[index]
        rights: dict[Any, int] = {dictionary.structure.boundary[1]: 0}  # type: ignore[index]

        def costed(entry: Entry, character_class: int, form: str) -> Entry:
            left, right = dictionary._label(entry.fields)
            names = dictionary.unigram_names(entry.fields, character_class, form)
            return entry._replace(
                left=lefts.setdefault(("word", left), len(lefts)),
                right=rights.setdefault(("word", right), len(rights)),
                cost=_cost(scores.of_word(names), cost_factor),
            )

        unknown = {
            kind.name: [costed(entry, i, "") for entry in dictionary.unknown[kind.name]]
            for i, kind in enumerate(dictionary.classes.classes)
        }
        words = [
            costed(word, dictionary.classes.number(word.form[0]), word.form) for word in dictionary.words
        ]
        costs = np.zeros((len(rights), len(lefts)), np.int16)
        for before, r in rights.items():
            for after, c in lefts.items():
                pair = ((), before if r == 0 else before[1]), (after if c == 0 else after[1], ())
                costs[r, c] = _cost(scores.of_pair(*pair), cost_factor)
        priced = replace(
            dictionary, words=words, unknown=unknown, costs=CostMatrix(costs), cost_factor=cost_factor
        )
        return WordSegmenter.from_costs(priced)

    @classmethod
    def from_costs(cls, dictionary: WordDictionary) -> "WordSegmenter":
        """The segmenter of a dictionary whose costs are known."""
        made = cls(dictionary)
        made.crf_ = _with_costs(dictionary.structure, 1.0 / dictionary.cost_factor)
        made._by_costs = _with_costs(dictionary.structure, 1.0)
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file; `crfkit.load` reads it."""
        from crfkit.models.files import segmenter_file

        segmenter_file.save(self, path)

    def _check_trained(self) -> None:
        if not hasattr(self, "crf_"):
            raise ArgumentError("the segmenter is not trained: call fit first")

    def _lattices(self, texts: Iterable[str]) -> tuple[list[str], list[list[Candidate]], list[Any]]:
        """The texts, all words that may stand in each, and their lattices."""
        self._check_trained()
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            raise ArgumentError(
                f"texts is {texts!r}, expected a list of texts; write [text] for a single one"
            )
        given = list(texts)
        for n, text in enumerate(given):
            if not isinstance(text, str):
                raise ArgumentError(f"text {n} is {text!r}, expected a string")
        found = [self.dictionary.candidates(text) for text in given]
        return given, found, [self.dictionary.lattice(*one) for one in zip(given, found, strict=True)]

    def _annotated(self, n: int, sentence: Sequence[tuple[str, Any]]) -> tuple[Any, list[int]]:
        """The lattice of a training sentence, and the path of its words."""
        words = _read_sentence(n, sentence)
        text = "".join(form for form, _ in words)
        dictionary = self.dictionary
        candidates = dictionary.candidates(text)
        by_ends: dict[tuple[int, int], list[int]] = {}
        for i, candidate in enumerate(candidates):
            by_ends.setdefault((candidate.start, candidate.end), []).append(i)
        path, at = [], 0
        for form, fields in words:
            end = at + len(form)
            there = by_ends.get((at, end), ())
            found = next((i for i in there if dictionary.is_right(candidates[i], at, end, fields)), -1)
            if found < 0:  # MeCab's trainer gives such words the first class of characters, too
                found = len(candidates)
                candidates.append(Candidate(at, at, end, Entry(form, fields), 0, known=False))
            path.append(found)
            at = end
        return dictionary.lattice(text, candidates), path


def _read_sentence(n: int, sentence: Any) -> list[tuple[str, Fields]]:
    if isinstance(sentence, str | bytes) or not isinstance(sentence, Iterable):
        raise InputError(f"sentence {n} is {sentence!r}, expected a list of (form, fields)")
    return [read_word(word, f"sentence {n}, word {i}") for i, word in enumerate(sentence)]


class _Scores:
    """The weights of a trained segmenter by name."""

    def __init__(self, crf: CRF[Any]) -> None:
        feature_map, names = crf.feature_map_, crf.encoder_.vocabulary.names()
        counts = np.diff(feature_map.pair_ptr)
        weights = crf.weights_
        at = feature_map.pair_ptr[:-1]
        self._words = {
            name: float(weights[i]) for name, i, count in zip(names, at, counts, strict=True) if count
        }
        own: Float64s = weights[feature_map.n_weights :]
        self._pairs: dict[str, float] = dict(zip(crf.structure_names_, own.tolist(), strict=True))
        assert isinstance(crf.structure_, Lattice)
        self._structure = crf.structure_

    def of_word(self, names: Iterable[str]) -> float:
        return sum(self._words.get(name, 0.0) for name in names)

    def of_pair(self, before: Any, after: Any) -> float:
        return sum(self._pairs.get(name, 0.0) for name in self._structure.pair_names(before, after))


def _cost(score: float, factor: int) -> int:
    return max(-_HIGHEST_COST, min(_HIGHEST_COST, round(-factor * score)))


def _words(text: str, candidates: Sequence[Candidate], path: Iterable[int]) -> list[Word]:
    return [
        Word(text[c.start : c.end], c.entry.fields, c.start, c.end, c.known)
        for c in (candidates[i] for i in path)
    ]


def _with_costs(structure: Lattice, scale: float) -> CRF[Any]:
    """A CRF of word lattices whose arcs and transitions have costs: score = −scale · cost."""
    vocabulary = Vocabulary()
    vocabulary.add(WORD_COST)
    nothing = np.zeros(0, np.int32)
    feature_map = FeatureMap(
        1, np.array([0, 1]), np.zeros(1, np.int32), {}, nothing, nothing, np.zeros(1, np.int64), nothing
    )
    names = tuple(structure.pair_names(structure.boundary, structure.boundary))
    labels = Labels([ANY_LABEL])
    potentials = LatticePotentials(
        Encoder(None, vocabulary), feature_map, LatticeMap(structure, names), labels
    )
    crf: CRF[Any] = CRF(structure)
    crf._set_model(LatticeModel(labels, structure.chain, potentials), np.full(1 + len(names), -scale))
    crf.history_, crf.n_iter_, crf.stop_message_ = History(), 0, "the costs were given"
    crf.optimizer_, crf.optimizer_reason_ = crf.optimizer, "the costs were given"  # type: ignore[assignment]
    return crf
