"""A trained model of sequences: what it has learned, and every question to it."""

from collections.abc import Collection, Hashable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Bools, Float64s
from crfkit.counts import check_count
from crfkit.data import SequenceFrame
from crfkit.evaluation import MetricFunction, as_score, read_metric
from crfkit.features import IOBES, Encoder, FeatureMap, StateLabels
from crfkit.inference import Answerer, read_threshold
from crfkit.models.chain_model import ChainModel
from crfkit.models.checks import count_threads, make_generator, read_sample_weight
from crfkit.models.decoding import SPAN_DECODINGS, check_decoding, decode_labels, find_decoding
from crfkit.models.encoded_input import EncodedInput
from crfkit.models.estimator import Estimator
from crfkit.models.explanations import Explanation
from crfkit.models.explanations.lattice_arcs import explain_lattice_arc
from crfkit.models.explanations.positions import explain_position
from crfkit.models.explanations.spans import explain_span
from crfkit.models.frame_input import read_examples, read_positions
from crfkit.models.kinds import kind_of, read_scheme
from crfkit.models.settings import RandomState
from crfkit.models.span_questions import find_spans
from crfkit.structures import SequenceStructure, Span, SpanLabels, Threshold

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # `typing` has TypeVars with a default from Python 3.13 on

    Label = TypeVar("Label", bound=Hashable, default=str)
else:
    from typing import TypeVar

    Label = TypeVar("Label", bound=Hashable)

Sequences = Sequence[Any] | SequenceFrame
Allowed = Sequence[Sequence[Collection[Hashable] | None] | None] | None


class SequenceModel(Estimator, Generic[Label]):
    """Answers questions about sequences with the labels and weights that training fixed."""

    n_threads: int | None
    random_state: RandomState
    decode: str
    _model: ChainModel
    _answerer: Answerer  # the weights as the native core holds them

    def _set_model(self, model: ChainModel, weights: Float64s) -> None:
        super()._set_model(model, weights)
        self._answerer = model.answerer(weights)

    @property
    def classes_(self) -> "list[Label]":
        """The labels, in the order of the columns of `predict_marginals`."""
        classes: tuple[Any, ...] = self._get_model().labels.written.classes
        return list(classes)

    @property
    def span_states_(self) -> str | None:
        """ "iobes" where the model has states for first, inside, last and single positions of spans; None: it has none."""
        return IOBES if isinstance(self._get_model().labels, StateLabels) else None

    @property
    def states_(self) -> list[Any]:
        """The states that have weights, in the order of `feature_map_`: the labels, or those of IOBES for labels of BIO."""
        return list(self._get_model().labels.classes)

    @property
    def structure_(self) -> SequenceStructure:
        """The structure with what training fixed: its bigrams, as a `Bigrams` of the labels."""
        return self._get_model().trained_structure

    @property
    def decode_(self) -> str:
        """How `predict` chooses labels where `decode` is not given: "viterbi" or "spans"; `decode` is this, or "auto"."""
        return find_decoding(self.decode, self.classes_)

    @property
    def n_features_(self) -> int:
        """Number of features that have weights."""
        return self._get_model().potentials.n_features

    @property
    def n_columns_(self) -> int | None:
        """Columns that a position has, for a model with a template; None for one trained on features made in Python."""
        return self._get_model().potentials.encoder.n_columns

    @property
    def locally_normalised_(self) -> bool:
        """Whether probabilities are normalised at each position, as those of maximum entropy Markov models are."""
        return self._get_model().potentials.local

    @property
    def feature_map_(self) -> FeatureMap:
        """Where the weights of each feature and arc lie in `weights_`; those of feature functions come after them."""
        return self._get_model().potentials.feature_map

    @property
    def output_names_(self) -> list[str]:
        """The outputs of feature functions, in the order of their weights: the last ones of `weights_`."""
        return list(self._get_model().potentials.output_names)

    @property
    def pattern_names_(self) -> list[str]:
        """The names of the patterns that have weights, in the order of these: the last ones of `weights_`."""
        return list(self._get_model().potentials.pattern_names)

    @property
    def structure_names_(self) -> list[str]:
        """The weights of segments, or of a structure of your own, in their order: the last ones of `weights_`."""
        return list(self._get_model().potentials.structure_names)

    @property
    def encoder_(self) -> Encoder:
        """Turns input into numbers, and knows the names of the features."""
        return self._get_model().potentials.encoder

    def predict(
        self, X: Sequences, *, decode: str | None = None, allowed: Allowed = None
    ) -> "list[list[Label]]":
        """The labels of each sequence; `allowed` as in `fit`.

            decode=None         as the model says, `decode_`
            decode="viterbi"    the label sequence with the highest score
            decode="marginal"   at each position the label with the highest marginal: the most labels right, as expected
            decode="spans"      those of the spans, none overlapping, with the highest Σ (probability − 0.3)
            decode="f1"         those of the spans with the highest expected F1 over X, as `predict_spans` finds them

        A sequence whose labels, chosen so, break a constraint gets the best ones that do not.
        """
        decode = self._find_decoding(decode)
        return decode_labels(self._ask(X, allowed), decode, self._read_spans(decode))

    def predict_marginals(self, X: Sequences, *, allowed: Allowed = None) -> list[Float64s]:
        """The probability of each label at each position: float64[T, L] for each sequence, columns as in `classes_`.

        With a `Lattice`, the probability of each arc to be on the path: float64[arcs].
        """
        ask = self._ask(X, allowed)
        with ask.explain_impossible():
            marginals = ask.model.read_marginals(ask.answerer.marginals(ask.design, ask.n_threads))
        return [marginals[begin:end] for begin, end in pairwise(ask.ptr.tolist())]

    def predict_spans(
        self,
        X: Sequences,
        threshold: Threshold = "auto",
        *,
        decode: str | None = None,
        scheme: str | None = None,
        allowed: Allowed = None,
    ) -> list[list[Span]]:
        """The spans (entities, chunks) of each sequence, sorted, with their exact probabilities under the model.

            decode=None        all with a probability of at least `threshold` (0.5), also those outside of the best labels
            decode="viterbi"   those of the label sequence with the highest score
            decode="spans"     those, none overlapping, with the highest Σ (probability − 0.3) in each sequence
            decode="f1"        those, none overlapping, with the highest expected F1 over X

        `decode=crf.decode_` gives the spans of the labels that `predict` gives.

        "auto" is 0.5 without `decode`. With `decode` it leaves none out, as None does; a number leaves out those below it.
        `scheme` says how labels are read: "bio", "iob1", "iobes",
        "bilou", "bmes", or "plain" (runs of equal labels other than O); None: as all labels look. `allowed` as in `fit`.
        The spans of a `Lattice` are its arcs.
        """
        least = read_threshold(threshold, decode)
        labels = self._read_scheme(scheme)
        return find_spans(self._ask(X, allowed), labels, least, decode)

    def predict_nbest(
        self, X: Sequences, n: int, *, allowed: Allowed = None
    ) -> "list[list[tuple[float, list[Label]]]]":
        """The n best label sequences of each sequence with their probabilities, best first; fewer where fewer exist."""
        n = check_count("n", n)
        found = self._ask(X, allowed).find_best(n)
        return [[(answer.probability, answer.labels) for answer in best] for best in found]

    def sample(
        self, X: Sequences, n: int = 1, random_state: RandomState = None, *, allowed: Allowed = None
    ) -> "list[list[list[Label]]]":
        """n label sequences of each sequence, drawn from p(y | x); the same for the same `random_state`."""
        n = check_count("n", n)
        random = make_generator(self.random_state if random_state is None else random_state)
        ask = self._ask(X, allowed)
        uniforms = random.random(n * int(ask.ptr[-1]))
        with ask.explain_impossible():
            ids = ask.answerer.sample(ask.design, n, uniforms, ask.n_threads)  # by sequence [n, length]
        drawn = ask.model.decode(ids, ask.dataset, n)
        return [drawn[i : i + n] for i in range(0, len(drawn), n)]

    def log_probability(
        self, X: Sequences, y: Sequence[Any] | None = None, *, allowed: Allowed = None
    ) -> Float64s:
        """log p(y | x) of each sequence, [N]; −inf for a label sequence that does not exist.

        Where y has None or sets: of all label sequences that it allows, together.
        """
        X, y, _ = read_examples(X, y, None, as_text=self._reads_text())
        X, y = self._read_labels(X, y)
        ask = self._ask(X, allowed)
        annotation = ask.model.annotate(y, ask.dataset)
        with ask.explain_impossible():
            log_z = ask.answerer.log_partitions(ask.design, n_threads=ask.n_threads)
            log_z_gold = ask.answerer.log_partitions(
                ask.design, annotation.labels, annotation.sets, ask.n_threads
            )
        return np.minimum(log_z_gold - log_z, 0.0)

    def find_impossible(
        self, X: Sequences, y: Sequence[Any] | None = None, *, allowed: Allowed = None
    ) -> list[Bools]:
        """The positions whose right label the model can never predict: bool[T] for each sequence.

        These are labels that `allowed`, the tag dictionary or the bigrams of the model exclude there, and those that it does
        not know. Of a set of labels all must be excluded; None never is.
        """
        X, y, _ = read_examples(X, y, None, as_text=self._reads_text())
        X, y = self._read_labels(X, y)
        model = self._get_model()
        positions = read_positions(X, as_text=self._reads_text())
        dataset = model.encode(positions, allowed, count_threads(self.n_threads))
        return model.find_impossible(y, dataset)

    def explain(
        self,
        x: Any,
        i: int,
        label: "Label | None" = None,
        against: "Label | None" = None,
        *,
        allowed: Sequence[Collection[Hashable] | None] | None = None,
    ) -> Explanation:
        """Why position i of one sequence x has a label and not another one, as parts of exact log-odds.

            log p(y_i = label | x) − log p(y_i = against | x) = Σ values of the parts

        The parts are the features of the position, each with (w[f, label] − w[f, against]) · value; its transitions, those
        of likely neighbours by name; and what comes from the left and from the right. docs/explanations.md has the formulas.
        `label` is the likeliest label by default, `against` the likeliest other one; `allowed` has, for each position, None
        or the labels that are allowed. A label that constraints rule out has infinite log-odds, with a part that says why.
        With a `Lattice`, i and `against` are arcs: why the first is on the path, by default against the likeliest that
        excludes it.

        >>> from crfkit import CRF
        >>> crf = CRF(l2=0.1).fit([[["the"], ["dog"]], [["a"], ["cat"]]], [["DET", "NOUN"], ["DET", "NOUN"]])
        >>> why = crf.explain([["the"], ["cat"]], 1)
        >>> why.label, why.against, round(why.log_odds, 2)
        ('NOUN', 'DET', 3.32)
        """
        ask = self._ask([x], None if allowed is None else [allowed])
        explain = explain_position if ask.model.potentials.labels_positions else explain_lattice_arc
        return explain(ask, self.weights_, i, label, against)

    def explain_span(
        self,
        x: Any,
        start: int,
        end: int,
        label: Any = None,
        against: Any = None,
        *,
        scheme: str | None = None,
        allowed: Sequence[Collection[Hashable] | None] | None = None,
    ) -> Explanation:
        """Why the positions start, …, end − 1 of one sequence x are a span, as parts of exact log-odds.

            log p(span | x) − log p(no such span | x) = Σ values of the parts

        The parts are the features of the span's positions and of those beside it, transitions into, within and out of the
        span, and what comes from the left and from the right. docs/explanations.md has the formulas. `label` is the type of
        the span, by default the likeliest one at this place. `against` names what it is compared with instead: another type
        at the same place, or "O": none of the positions is in a span. `scheme` and `allowed` as for `predict_spans` and
        `explain`.
        """
        labels = self._read_scheme(scheme)
        ask = self._ask([x], None if allowed is None else [allowed])
        return explain_span(ask, self.weights_, labels, start, end, label, against)

    def score(
        self,
        X: Sequences,
        y: Sequence[Any] | None = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        allowed: Allowed = None,
        metric: str | MetricFunction | None = None,
        decode: str | None = None,
    ) -> float:
        """F1 of spans where the labels are those of spans, otherwise accuracy; another `metric` as for `fit`.

        `decode` as for `predict`.

        A sequence counts as often as its weight says. A label None is unknown, a set of labels means one of these: then
        the score is the share of right labels among those that are known.
        """
        given = read_metric(metric)
        decode = self._find_decoding(decode)
        X, y, sample_weight = read_examples(X, y, sample_weight, as_text=self._reads_text())
        X, y = self._read_labels(X, y)
        ask = self._ask(X, allowed)
        gold = ask.model.read_gold(y, ask.dataset)
        figure = ask.model.figure(given, gold)
        weights = read_sample_weight(sample_weight, len(gold))
        predicted = decode_labels(ask, decode, self._read_spans(decode))
        options = {} if weights is None else {"sample_weight": weights.tolist()}
        return as_score(figure(gold, ask.model.convert_outputs(predicted, ask.dataset), **options))

    def _find_decoding(self, decode: str | None) -> str:
        """The decoding that is asked for, or else that of the model."""
        if decode is None:
            return self.decode_
        check_decoding(decode)
        return decode

    def _read_spans(self, decode: str) -> SpanLabels | None:
        """How labels are read as spans, where a decoding is about these."""
        return self._read_scheme(None) if decode in SPAN_DECODINGS else None

    def _read_scheme(self, scheme: str | None) -> SpanLabels | None:
        """How labels are read as spans by a scheme; None: the outputs are spans themselves."""
        return read_scheme(self._get_model(), scheme)

    def _read_labels(self, X: Any, y: Any) -> tuple[Any, Any]:
        """X and y, the latter as lists of labels."""
        structure = self._get_model().trained_structure
        return kind_of(structure).read_labels(X, y, structure)

    def _reads_text(self) -> bool:
        """Whether positions are columns of text: those of a template."""
        return self._get_model().potentials.encoder.template is not None

    def _get_model(self) -> ChainModel:
        self._check_fitted()
        return self._model

    def _ask(self, X: Sequences, allowed: Allowed) -> EncodedInput:
        """New input, ready for a question."""
        model = self._get_model()
        n_threads = count_threads(self.n_threads)
        dataset = model.encode(read_positions(X, as_text=self._reads_text()), allowed, n_threads)
        design = model.design(dataset, n_threads)
        return EncodedInput(model, self._answerer, design, dataset, n_threads)
