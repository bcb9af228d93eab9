"""The dependency parser: train on trees, parse, ask for probabilities, save."""

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Float64s
from crfkit.counts import check_count
from crfkit.data import Sentence
from crfkit.errors import ArgumentError, UnsupportedError
from crfkit.features import (
    Clusters,
    MissingResource,
    Treebank,
    WordVectors,
    check_sentences,
    check_trees,
    known_trees,
)
from crfkit.inference import SecondOrderParser, TreeParser
from crfkit.models.checks import count_threads
from crfkit.models.estimator import Estimator
from crfkit.models.explanations import Explanation
from crfkit.models.explanations.arcs import explain_arc
from crfkit.models.files import parser_file, resource_file
from crfkit.models.files.model_file import ModelFile
from crfkit.models.notebook_view import label_list
from crfkit.models.parser_model import ParserModel
from crfkit.models.settings import PARSER_OPTIMIZER, ParserSettings, check_decoder
from crfkit.models.training.checkpoint import Checkpoint
from crfkit.models.training.data_warnings import warn_of_missing_columns
from crfkit.models.training.parser_task import ParserTask, TreeMetric, check_metric, tree_measure, with_trees
from crfkit.models.training.progress import ProgressCallback
from crfkit.models.training.train import Plan, train
from crfkit.optimizers import Optimizer


class ScoredSentence(NamedTuple):
    """A sentence with one of its trees."""

    probability: float
    sentence: Sentence


class BoundedSentence(NamedTuple):
    """A sentence with the best tree that was found, its score, and a bound that no tree's score exceeds."""

    sentence: Sentence
    score: float  # Σ over the parts of the tree
    bound: float

    @property
    def gap(self) -> float:
        """bound − score: how much more the score of a better tree could be at most."""
        return max(0.0, self.bound - self.score)

    @property
    def optimal(self) -> bool:
        """Whether the bound proves that no tree scores more, up to rounding."""
        return self.gap <= 1e-8 * max(1.0, abs(self.score))


class Parser(Estimator):
    """A dependency parser: a conditional random field over the labelled trees of a sentence.

        p(tree | sentence) = exp(Σ over the parts of the tree (score of the part)) / Z

    The parts are labelled arcs; of order 2 also pairs of adjacent siblings, and arcs with the head of their head. Z sums
    over all trees. Trained by minimising Σ_n weight_n · −log p(tree_n) + l1·|w| + ½·l2·|w|². Features look at form, lemma,
    tags and morphology of head and dependent, at their neighbours, at what stands between them, at direction and distance.

    Parameters
    ----------
    optimizer : `AdaGrad(max_iterations=…, rate=…)` or `SGD(…)` for good weights after few passes, `LBFGS(…)`, `TRON(…)`,
        `Newton(…)` or `SAG(…)` for the minimum, `AveragedPerceptron(…)`, `PassiveAggressive(…)` and `AROW(…)`, which learn
        from mistakes and know no penalty, the name of one, or "auto"
    l1, l2 : strengths of the penalties
    single_root : exactly one word hangs on the root; else one or more
    decode : "mbr": the tree with the most arcs right in expectation; "best": the one with the highest probability
    min_count : features seen at fewer arcs of the training trees are left out
    structure : "spanning": all trees; "projective": those without crossing arcs; "auto": projective where few words of the
        training set have crossing arcs. For the training of a projective parser such arcs are lifted: the word gets the head
        of its head.
    order : 1: scores of arcs; 2: of siblings and grandparents too, among the arcs that a first-order model finds likely.
        Answers are exact, but for spanning trees of order 2: there probabilities come from belief propagation, the best tree
        from dual decomposition (`predict_best` says whether it is proved), and the n best are those with the likeliest arcs.
    columns : which columns of the words it may read: some of "form", "lemma", "upos", "xpos" and "feats"; None: all
    clusters : `Clusters` of words: classes of forms, also of those that the training set does not have. The model file
        holds them.
    vectors : `WordVectors` of forms: the numbers of the vectors of head and dependent are values of features, beside
        direction and parts of speech, as they are; a word without a vector has 0. The model file names them, and holds them
        where it is saved with `bundle=True`; else `crfkit.load(path, resources={"vectors": …})` takes them again.
    n_threads : None: all processors that the process may use. The results do not depend on it, to the last bit.

    Attributes
    ----------
    classes_ : the labels of arcs, sorted
    structure_, structure_reason_ : "spanning" or "projective", and why
    weights_ : float64[D]
    history_ : records with iteration, seconds, objective, gradient_norm, passes, dev_score; prints as a table
    n_iter_ : number of iterations whose weights these are
    stop_reason_ : why training ended: a `StopReason`, which prints as a text; any text where it was not trained here
    stop_message_ : the same as a text, with numbers: "no better dev score in 3 iterations"
    optimizer_, optimizer_reason_ : the optimizer that was used, and why

    Examples
    --------
    >>> from crfkit.data import Sentence, Word
    >>> def sentence(text, heads, labels):
    ...     tags = {"the": "DET", "sees": "VERB"}
    ...     return Sentence([
    ...         Word(form, form, tags.get(form, "NOUN"), "_", "_", head, label, "_", "_")
    ...         for form, head, label in zip(text.split(), heads, labels)
    ...     ])
    >>> seen = sentence("the dog sees the cat", [2, 3, 0, 5, 3], ["det", "nsubj", "root", "det", "obj"])
    >>> parser = Parser(l2=0.1).fit([seen])
    >>> new = sentence("the cat sees the dog", [None] * 5, ["_"] * 5)
    >>> [parsed] = parser.predict([new])
    >>> [(word.form, word.head, word.deprel) for word in parsed.words]
    [('the', 2, 'det'), ('cat', 3, 'nsubj'), ('sees', 0, 'root'), ('the', 5, 'det'), ('dog', 3, 'obj')]
    """

    _model: ParserModel
    _parser: TreeParser | SecondOrderParser

    def __init__(
        self,
        optimizer: Optimizer | str = PARSER_OPTIMIZER,
        l1: float = 0.0,
        l2: float = 3.0,
        single_root: bool = True,
        decode: str = "mbr",
        min_count: int = 1,
        structure: str = "auto",
        order: int = 2,
        columns: Sequence[str] | None = None,
        n_threads: int | None = None,
        clusters: Clusters | None = None,
        vectors: WordVectors | MissingResource | None = None,
    ) -> None:
        self.optimizer = optimizer
        self.l1 = l1
        self.l2 = l2
        self.single_root = single_root
        self.decode = decode
        self.min_count = min_count
        self.structure = structure
        self.order = order
        self.columns = columns
        self.n_threads = n_threads
        self.clusters = clusters
        self.vectors = vectors

    def fit(
        self,
        sentences: Iterable[Sentence],
        sample_weight: npt.ArrayLike | None = None,
        *,
        dev: Iterable[Sentence] | None = None,
        metric: TreeMetric = None,
        patience: int | None = None,
        callback: ProgressCallback | None = None,
        time_budget: float | None = None,
        start: "Parser | str | os.PathLike[str] | None" = None,
        checkpoint: Checkpoint | None = None,
        verbose: bool | int | str = False,
    ) -> Self:
        """Train on sentences with trees, such as `read_conllu` gives.

        A head that is None is unknown, and so is the label `_`: all trees that agree with the rest are then right.
        `sample_weight` [N] counts a sentence so many times. With `dev` sentences, the weights with the highest `metric` on
        them are kept (LAS, or another one as for `score`), and `patience` iterations without a higher one end the
        training. `callback` sees a `Progress` after each iteration and ends training by returning True. So do
        Ctrl-C and SIGTERM, with a warning: the best weights so far are kept. So does the iteration that uses up
        `time_budget` seconds.
        `start` is a trained parser, or its file, whose weights to begin with where this one has the same features and
        labels. `checkpoint` and `verbose` as for `CRF.fit`.
        """
        first = None if start is None else Parser._read_start(start)
        plan = Plan(dev, metric, patience, callback, time_budget, checkpoint, first, verbose)
        self._keep(train(ParserTask(self._settings(), sentences, sample_weight), plan))
        self._metadata = {}
        return self

    def predict(self, sentences: Iterable[Sentence], *, decode: str | None = None) -> list[Sentence]:
        """The sentences with the head and label of every word; all else is as it was. `decode` as for the parser."""
        given, treebank = self._ask(sentences)
        decode = self.decode if decode is None else decode
        check_decoder(decode)
        heads, labels = self._parser.decode(
            treebank, minimum_risk=decode == "mbr", n_threads=count_threads(self.n_threads)
        )
        return with_trees(given, heads, labels, self._model.arc_map.labels)

    def predict_best(
        self, sentences: Iterable[Sentence], *, max_iterations: int = 1000
    ) -> list[BoundedSentence]:
        """The tree with the highest score of each sentence, with a bound that proves it (`optimal`).

        Of spanning trees of order 2 it is found by dual decomposition, and by branch and bound where that leaves a gap.
        After `max_iterations` of a sentence its best tree so far is given, with the bound. All other parsers are exact.
        """
        max_iterations = check_count("max_iterations", max_iterations)
        given, treebank = self._ask(sentences)
        n_threads = count_threads(self.n_threads)
        if isinstance(self._parser, TreeParser):
            trees = [
                (score, score, heads, labels)
                for [(score, heads, labels)] in self._parser.k_best(treebank, 1, n_threads)
            ]
        else:
            found = self._parser.bounded_decode(treebank, max_iterations, n_threads)
            trees = [(score, bound, heads, labels) for score, bound, _, heads, labels in found]
        names = self.classes_
        return [
            BoundedSentence(with_trees(given[i : i + 1], heads, labels, names)[0], score, bound)
            for i, (score, bound, heads, labels) in enumerate(trees)
        ]

    def predict_nbest(self, sentences: Iterable[Sentence], n: int) -> list[list[ScoredSentence]]:
        """The n best trees of each sentence with their probabilities, best first; fewer where fewer exist."""
        n = check_count("n", n)
        given, treebank = self._ask(sentences)
        n_threads = count_threads(self.n_threads)
        log_z = self._parser.log_partitions(treebank, n_threads=n_threads).tolist()
        found = self._parser.k_best(treebank, n, n_threads)
        names = self.classes_
        return [
            [
                ScoredSentence(
                    math.exp(min(score - log_z[i], 0.0)), *with_trees(given[i : i + 1], heads, labels, names)
                )
                for score, heads, labels in trees
            ]
            for i, trees in enumerate(found)
        ]

    def arc_probabilities(self, sentences: Iterable[Sentence], *, labelled: bool = False) -> list[Float64s]:
        """P(h → m): float64[T + 1, T + 1] (head, dependent; 0 is the root) for each sentence of T words.

        `labelled`: P(h → m with label r), float64[T + 1, T + 1, R], labels as in `classes_`.
        """
        _, treebank = self._ask(sentences)
        n_threads = count_threads(self.n_threads)
        return self._parser.marginals(treebank, labelled=labelled, n_threads=n_threads)

    def arc_scores(self, sentences: Iterable[Sentence]) -> list[Float64s]:
        """Scores of labelled arcs, float64[T + 1, T + 1, R] for each sentence: what `SpanningTree` inference takes."""
        _, treebank = self._ask(sentences)
        if not isinstance(self._parser, TreeParser):
            raise UnsupportedError(
                "arc_scores: this parser scores siblings and grandparents too; arc_probabilities are those of all of its "
                'scores, and Parser(structure="spanning", order=1) has scores of arcs alone'
            )
        return self._parser.scores(treebank, count_threads(self.n_threads))

    def log_likelihood(self, sentences: Iterable[Sentence], *, add_arcs: bool = False) -> Float64s:
        """log p(tree) of each sentence's own tree, [N]; where it is partly known, of all trees that agree, together.

        p is the distribution of `predict_nbest` and `arc_probabilities`. −inf for a label that no training sentence has,
        and, of parsers of order 2 and projective ones, for a tree with an arc that the first-order model has left out. With
        `add_arcs` the arcs of the sentence's own tree are added to those that it leaves over, for its probability alone, as
        in training: then all trees have one.
        """
        given, treebank = self._ask(sentences)
        check_trees(given, single_root=self.single_root)
        n_threads = count_threads(self.n_threads)
        known = known_trees(given, self.classes_)
        labels = np.maximum(known.labels, -1)
        if isinstance(self._parser, TreeParser):
            log_z = self._parser.log_partitions(treebank, n_threads=n_threads)
            found = self._parser.log_partitions(treebank, known.heads, labels, n_threads) - log_z
        else:
            found = self._parser.log_likelihoods(treebank, known.heads, labels, add_arcs, n_threads)
        found = np.minimum(found, 0.0)
        strange = np.concatenate([[0], np.cumsum(known.labels < -1)])[treebank.sentence_ptr]
        return np.where(np.diff(strange) > 0, -np.inf, found)

    def explain_arc(
        self, sentence: Sentence, dependent: int, head: int | None = None, against: int | None = None
    ) -> Explanation:
        """Why word `dependent` has a head and not another one, as parts of log-odds; words count from 1, 0 is the root.

            log p(head → dependent) − log p(against → dependent) = Σ values of the parts

        The parts are the features of both arcs, by what they look at; their relations; siblings and grandparents where the
        parser is of order 2; and what the other arcs of the tree add. docs/explanations.md has the formulas. `head` is the
        likeliest head by default, `against` the likeliest other one. Exact where the probabilities of the parser are.
        """
        _, treebank = self._ask([sentence])
        return explain_arc(self._parser, treebank, self.classes_, dependent, head, against)

    def score(self, sentences: Iterable[Sentence], *, metric: TreeMetric = None) -> float:
        """LAS on sentences with trees: the share of words with the right head and label, subtypes apart.

        Words whose head is None or whose label is `_` do not count. Other metrics, for which every head is known: "uas",
        "label_accuracy", "clas", "mlas", "blex", or a function of gold and predicted sentences.
        """
        check_metric(metric)
        given, treebank = self._ask(sentences)
        check_trees(given, single_root=False)
        heads, labels = self._parser.decode(
            treebank,
            minimum_risk=self.decode == "mbr",
            n_threads=count_threads(self.n_threads),
        )
        return tree_measure(metric, given, self.classes_)(heads, labels)

    @property
    def structure_(self) -> str:
        """Which trees it gives: "spanning" (all) or "projective" (without crossing arcs)."""
        return self._get_model().structure

    @property
    def structure_reason_(self) -> str:
        """Why it gives these."""
        return self._get_model().structure_reason

    def _facts(self) -> dict[str, object] | None:
        known = super()._facts()
        if known is None:
            return None
        return {"labels": label_list(self.classes_), "structure": self.structure_reason_, **known}

    @property
    def classes_(self) -> list[str]:
        """The labels of arcs, sorted."""
        return list(self._get_model().arc_map.labels)

    def _settings(self) -> ParserSettings:
        return ParserSettings(**{field.name: getattr(self, field.name) for field in fields(ParserSettings)})

    def _pack(self, settings: dict[str, Any], history: Float64s, *, single_precision: bool) -> ModelFile:
        model = self._get_model()
        settings |= {
            "parameters": self._settings().to_json(),
            "columns": model.columns,
            "structure": model.structure,
            "structure_reason": model.structure_reason,
        }
        resources = self._settings().resources()
        contents = parser_file.ParserContents(
            settings, model.arc_map, self.weights_, history, model.pruner, resources
        )
        return parser_file.pack(contents, single_precision=single_precision)

    def _bundle(self, file: ModelFile) -> ModelFile:
        return resource_file.bundle(file, self._settings().resources())

    def _model_resources(self) -> Any:
        return self._settings().resources() or None

    def _set_model(self, model: ParserModel, weights: Float64s) -> None:
        super()._set_model(model, weights)
        self._parser = model.parser(weights, single_root=self.single_root)

    def _get_model(self) -> ParserModel:
        self._check_fitted()
        return self._model

    def _ask(self, sentences: Iterable[Sentence]) -> tuple[list[Sentence], Treebank]:
        """New sentences, ready for a question."""
        self._check_fitted()
        if self._parser.single_root != self.single_root:  # another one was set since the training
            self._set_model(self._model, self._weights)
        given = check_sentences(sentences)
        warn_of_missing_columns(self._model.columns, given, stacklevel=3)
        self._check_vectors()
        return given, self._settings().encode(given)

    def _check_vectors(self) -> None:
        """Refuse vectors of another size than those that it was trained with."""
        size = self._model.arc_map.vector_size
        if isinstance(self.vectors, MissingResource) or (self.vectors.size if self.vectors else 0) == size:
            return
        raise ArgumentError(
            f"vectors is {self.vectors!r}, but the parser was trained with vectors of {size} numbers"
            if size
            else f"vectors is {self.vectors!r}, but the parser was trained without vectors"
        )
