"""The estimator: its parameters, training, and its model file."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Generic, Self

import numpy.typing as npt

from crfkit.arrays import Float64s
from crfkit.data import EncodedDataset, SequenceFrame
from crfkit.errors import UnsavableError, UnsupportedError
from crfkit.evaluation import MetricFunction
from crfkit.features import (
    ColumnRows,
    Costs,
    FacetsOf,
    FeatureFunctions,
    MissingResource,
    OpenStrength,
    Resource,
    TagDictionary,
    Template,
    open_blocks,
)
from crfkit.models.chain_model import ChainModel
from crfkit.models.files import crf_file, resource_file
from crfkit.models.files.model_file import ModelFile
from crfkit.models.frame_input import read_dev
from crfkit.models.kinds import kind_of
from crfkit.models.notebook_view import label_list
from crfkit.models.patterns.growth import GrowthRound, grow
from crfkit.models.potentials import FeaturePotentials
from crfkit.models.recommended import (
    RECOMMENDED,
    STANDARD,
    as_arguments,
    complete_parameters,
    default_strength,
)
from crfkit.models.sequence_model import Allowed, Label, SequenceModel, Sequences
from crfkit.models.settings import CRFSettings, RandomState
from crfkit.models.training.checkpoint import Checkpoint
from crfkit.models.training.crf_task import CRFTask
from crfkit.models.training.penalty_search import PenaltySearch, resolve_l2
from crfkit.models.training.progress import ProgressCallback
from crfkit.models.training.sharded_data import TrainingShards
from crfkit.models.training.stored_task import StoredTask
from crfkit.models.training.train import Plan, train
from crfkit.models.training_data import open_task, read_training_set
from crfkit.objective import Loss
from crfkit.optimizers import Optimizer
from crfkit.structures import SequenceStructure


class CRF(SequenceModel[Label], Generic[Label]):
    """A linear-chain conditional random field: p(y | x) = exp(score(y, x)) / Z(x).

    Trained by minimising the exact objective

        Σ_n weight_n · −log p(y_n | x_n) + l1·|w| + ½·l2·|w|²

    Parameters that are not given are those that the preset of `features` recommends, else the standard ones: a chain,
    `LBFGS()`, l2 = 1, all transitions, every feature with the labels it was seen with. `repr` and the attributes of the
    parameters' names say which ones these are; a model file keeps them.

    Parameters
    ----------
    structure : which label sequences exist: `Chain(start=True, end=True)`, or with only some pairs of neighbours,
        `Chain(bigrams="observed")`; `Patterns([…])`: a chain in which whole runs of labels have weights; `Segments(…)`: a
        semi-Markov chain; `Lattice(…)`: inputs are `WordLattice`s, outputs paths of their arcs; or a structure of your own,
        a `crfkit.structures.GraphStructure`
    features : None: a position is a dict, a list of strings or a row of numbers. The name of a preset ("names", "pos",
        "chunks", "morphology", "addresses", "references"), a `Template` or its text: a position is a word or a tuple of
        columns. `FeatureFunctions`: any object.
    optimizer : `LBFGS(max_iterations=…, tolerance=…)`, `TRON(…)`, `Newton(…)` and `SAG(…)` for the minimum,
        `SGD(max_iterations=…, rate=…)` and `AdaGrad(…)` for good weights after few passes, `AveragedPerceptron(…)`,
        `PassiveAggressive(…)` and `AROW(…)` for a tagger in seconds (without penalties), the name of one ("lbfgs",
        "averaged_perceptron", …), or "auto"
    l1, l2 : strengths of the penalties; a dict gives them by block of features ({"transitions": 0.1, "default": 1.0}).
        Where the preset has strengths by block, a number l2 is the default one, and the others keep their ratio to it.
        "auto": the one that makes held-out sequences most likely, found on a part of the training data; as a value of the
        dict, l2={"default": 1.0, "near": "auto"}, the one of that block
    all_possible_states : a weight for every feature and label; otherwise only for those seen together. With `facets`:
        for every feature and facet that a position may have where the feature is active.
    all_possible_transitions : a weight for every pair of neighbouring labels; otherwise only for those seen
    min_count : features seen at fewer positions are left out; "auto": 1, and 2 for training sets of 100,000 positions
        or more
    facets : what labels are made of, so that they share weights: "characters" (of positional tags such as `n-s---mn-`),
        "features" (`Case=Nom|Number=Sing`), "parts" (`subst:sg:nom`), "auto" (one of these by the look of the labels), each
        also with "+labels" behind it (weights for whole labels beside these), a function that gives {kind: value} for a
        label, or {label: {kind: value}}; False: none, whatever the preset says
    tag_dictionary : True: words have the labels they were seen with, rare and unknown ones those of words that end alike;
        no others exist at a position. "related": unknown words have those that forms with the same stem give them, where
        there are such. A `TagDictionary`: that one. Labels in y, and `allowed`, go before it. False: none.
    resources : {name: `Lexicon`, `Clusters` or `WordVectors`} that the macros `%in`, `%cluster` and `%vector` of a template
        name; a preset has lines of its own for each. A model file names them; `crfkit.load` is given them again.
    n_threads : None: all processors that the process may use. The results do not depend on it, to the last bit.
    random_state : the default seed of `sample`
    hash_bits : None: features are known by their names. A number from 1 to 30: by the bucket of their name, of 2^hash_bits;
        those of one bucket share their weights, and memory is bounded whatever features the data have
    decode : how `predict` and `score` choose labels: "viterbi", "spans" (see `predict`), or "auto": "spans" where the labels
        are those of spans (B-PER, I-PER, …), otherwise "viterbi"
    margin : what every wrong label of a position costs in training (softmax-margin): right labels must win by more. 0: none,
        and probabilities are calibrated. `costs` of `fit` take its place; mistake-driven optimizers do not use it.
    span_states : "iobes": labels are those of spans in BIO (B-PER, I-PER, O), and first, inside, last and single positions
        of spans have weights of their own. All answers are in the labels as given, and all predicted label sequences valid.
        "auto": so where the labels of the training data are those of BIO, not of IOB1, and nothing else is in the way
        (facets, patterns). None and False: labels have weights.

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of `predict_marginals`
    n_features_ : number of features that have weights
    weights_ : float64[D], laid out as `feature_map_` says
    structure_ : `structure` with its bigrams fixed by training, which are those of `states_`
    span_states_, states_ : "iobes" or None; what has weights: the labels, or their states (B-PER, I-PER, E-PER, S-PER, O)
    l2_, l2_search_ : the strength l2 that was used; with "auto", which ones were tried, and what came of them
    history_ : records with iteration, seconds, objective, gradient_norm, passes, dev_score; prints as a table
    n_iter_ : number of iterations whose weights these are
    stop_reason_ : why training ended: a `StopReason`, which prints as a text; any text where it was not trained here
    stop_message_ : the same as a text, with numbers: "no better dev score in 3 iterations"
    optimizer_, optimizer_reason_ : the optimizer that was used, and why: with "auto" it was chosen

    Type checkers take labels for strings; `CRF[int]()` declares labels of another type.

    Examples
    --------
    >>> X = [[["w=the"], ["w=dog"], ["w=runs"]], [["w=a"], ["w=cat"]]]
    >>> y = [["DET", "NOUN", "VERB"], ["DET", "NOUN"]]
    >>> crf = CRF(l2=0.1).fit(X, y)
    >>> crf.predict([[["w=the"], ["w=cat"]]])
    [['DET', 'NOUN']]
    >>> crf.classes_
    ['DET', 'NOUN', 'VERB']
    >>> crf.predict_marginals([[["w=the"], ["w=cat"]]])[0].round(2)
    array([[0.94, 0.04, 0.03],
           [0.02, 0.9 , 0.07]])
    """

    l2_search_: PenaltySearch  # what `l2="auto"` tried, until the model is saved
    growth_: list[GrowthRound]  # the rounds of `Patterns(grow=…)`, until the model is saved
    _l2: OpenStrength

    def __init__(
        self,
        structure: SequenceStructure | None = None,
        features: str | Template | FeatureFunctions | None = None,
        optimizer: Optimizer | str | None = None,
        l1: float | Mapping[str, float] = 0.0,
        l2: OpenStrength | None = None,
        all_possible_states: bool | None = None,
        all_possible_transitions: bool | None = None,
        min_count: int | str | None = None,
        facets: str | Mapping[Any, Mapping[str, str]] | FacetsOf | bool | None = None,
        tag_dictionary: bool | str | TagDictionary | None = None,
        n_threads: int | None = None,
        random_state: RandomState = None,
        resources: Mapping[str, Resource | MissingResource] | None = None,
        hash_bits: int | None = None,
        decode: str | None = None,
        margin: float | None = None,
        span_states: str | bool | None = None,
    ) -> None:
        given = {
            "structure": structure,
            "optimizer": optimizer,
            "l2": l2,
            "all_possible_states": all_possible_states,
            "all_possible_transitions": all_possible_transitions,
            "min_count": min_count,
            "facets": facets,
            "tag_dictionary": tag_dictionary,
            "hash_bits": hash_bits,
            "decode": decode,
            "margin": margin,
            "span_states": span_states,
        }
        used = complete_parameters(features, given)
        self.structure: SequenceStructure = used["structure"]
        self.features = features
        self.optimizer: Optimizer | str = used["optimizer"]
        self.l1 = l1
        self.l2: OpenStrength = used["l2"]
        self.all_possible_states: bool = used["all_possible_states"]
        self.all_possible_transitions: bool = used["all_possible_transitions"]
        self.min_count: int | str = used["min_count"]
        self.facets: str | Mapping[Any, Mapping[str, str]] | FacetsOf | bool | None = used["facets"]
        self.tag_dictionary: bool | str | TagDictionary | None = used["tag_dictionary"]
        self.n_threads = n_threads
        self.random_state = random_state
        self.resources = resources
        self.hash_bits = hash_bits
        self.decode: str = used["decode"]
        self.margin: float = used["margin"]
        self.span_states: str | bool | None = used["span_states"]

    def fit(
        self,
        X: Sequences | EncodedDataset | Iterator[Any] | str | os.PathLike[str],
        y: Sequence[Any] | None = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        allowed: Allowed = None,
        costs: Costs | None = None,
        dev: tuple[Any, ...] | SequenceFrame | ColumnRows | None = None,
        metric: str | MetricFunction | None = None,
        patience: int | None = None,
        callback: ProgressCallback | None = None,
        time_budget: float | None = None,
        start: "CRF[Any] | str | os.PathLike[str] | None" = None,
        checkpoint: Checkpoint | None = None,
        shard_size: int | None = None,
        verbose: bool | int | str = False,
    ) -> Self:
        """Train on sequences X of positions and y of labels.

        A label None means unknown, a set of labels means one of these. For `Segments`, y may have a list of spans (start,
        end, type) for each sequence instead; all other positions are outside (`O`). `sample_weight` [N] counts a sequence so
        many times. `allowed` has, for each sequence, None or a list with the labels allowed at each position (None: all): no
        others exist. X may be what `crfkit.data.from_frame` makes of a data frame, which has y and weights, or the
        `crfkit.features.ColumnRows` of a file with a label column, which have y; so may `dev`.
        With a `dev` set (X, y) or (X, y, allowed), the weights with the highest `metric` of what `predict` gives are kept:
        F1 of spans where
        the labels are those of spans, otherwise accuracy, or what is given, a name ("accuracy", "sequence_accuracy", "f1",
        "precision", "recall") or a function of gold and predicted labels (NaN is lower than any number). `patience`
        iterations without a higher one end training (not while it has been 0 from the start on). `callback` sees
        a `Progress` after each iteration and ends training by returning True. So do Ctrl-C and SIGTERM, with a
        warning: the best weights so far are kept. So does the iteration that uses up `time_budget` seconds.

        `costs` makes some mistakes count more (softmax-margin): {(gold, predicted): cost} or an array [L, L] in the order of
        `classes_`; for labels of spans, {"missed": a, "invented": b, "confused": c}, or one number: above 0 for more recall,
        below 0 for more precision. Where y has None or sets, labels that it allows cost nothing, others as much as beside
        the nearest of these.

        `start` is a trained model, or its file, whose weights to begin with where this one has the same; features and
        labels may differ. Where less than a tenth of the weights is the same, a warning says how many, and why.
        `checkpoint=Checkpoint(path, every=10, resume=True)` keeps the state of the run in a file and goes on from there
        after an interruption, with the same bits. A checkpoint of other data or other settings is refused.

        In place of X and y, data of any size may be given: an encoded data set (`crfkit.data.open_dataset`), an
        iterator of pairs (x, y), which is read once, or the paths of column files with the labels in the last column. They
        are read shard by shard; `features` and `min_count` of an encoded data set are taken over.

        Data of more than `shard_size` positions (None: 1,048,576) are cut into shards, whose losses are added in a fixed
        order: the last bits of the result depend on this number, and on nothing else that is not the data or a setting.

        `verbose` (True or 1) writes what training does to the error stream, with 2 every iteration; "live"
        shows a plot that changes in a notebook, and a line that changes on a terminal. The logger "crfkit" gets
        the same records, with or without it.
        """
        first = None if start is None else CRF._read_start(start)
        kind, settings = kind_of(self.structure), self._settings()
        dev = read_dev(dev, as_text=settings.reads_text)
        if isinstance(dev, tuple) and len(dev) > 1:
            dev = (*kind.read_labels(dev[0], dev[1], self.structure, "dev "), *dev[2:])
        plan = Plan(dev, metric, patience, callback, time_budget, checkpoint, first, verbose)
        beside = {"sample_weight": sample_weight, "allowed": allowed, "costs": costs}
        with open_task(X, y, beside, settings, shard_size, self._make_loss) as given:
            task, plan, found = resolve_l2(given, plan)
            if isinstance(task, CRFTask) and kind.growth(self.structure) is not None:
                trained, self.growth_ = grow(task, plan)
            else:
                trained = train(task, plan)
        self._keep_l2(task, found)
        self._keep(trained)
        self._metadata = {}
        return self

    def partial_fit(
        self,
        X: Sequences,
        y: Sequence[Any] | None = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        allowed: Allowed = None,
        costs: Costs | None = None,
        callback: ProgressCallback | None = None,
        time_budget: float | None = None,
        verbose: bool | int | str = False,
    ) -> Self:
        """Train further on more sequences, from the current weights; new features and labels join the model.

        The weights of features that do not occur in X stay as they are. All others are those that minimise the objective
        of these sequences alone, as far as `optimizer` goes: with few iterations they stay near what they were.
        Arguments as for `fit`, which this is for a model that is not trained.
        """
        extend = self.__sklearn_is_fitted__()
        if extend and self._model.potentials.local:
            raise UnsupportedError("partial_fit cannot extend a model that is normalised at each position")
        first = CRF._read_start(self) if extend else None
        plan = Plan(callback=callback, time_budget=time_budget, start=first, verbose=verbose)
        structure = self._model.trained_structure if extend else self.structure
        settings = self._settings()
        if extend and open_blocks(self.l2):
            settings = replace(settings, l2=self.l2_)
        examples = read_training_set(X, y, sample_weight, allowed, settings, structure)
        task: CRFTask | StoredTask = CRFTask(settings, examples, extend=extend, costs=costs)
        task, plan, found = resolve_l2(task, plan)
        trained = train(task, plan)
        self._keep_l2(task, found)
        self._keep(trained)
        return self

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        return super()._defaults() | dict(STANDARD)

    def _changed(self) -> dict[str, Any]:
        shown = super()._changed()
        if isinstance(self.features, str):  # what its preset recommends, to say whether that is used
            shown = dict.fromkeys(RECOMMENDED.get(self.features, ())) | shown
        return {name: value for name, value in self.get_params(deep=False).items() if name in shown}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; False for what the model is without, where the preset would bring it along."""
        return as_arguments(super().get_params(deep))

    def set_params(self, **params: Any) -> Self:
        """Change parameters: `l2=0.1`, as `CRF(l2=0.1)`, or a setting inside one, `optimizer__tolerance=1e-6`.

        With other features, strengths by block that the preset brought along become the default one: their blocks are gone.
        """
        level = default_strength(self.features, self.structure, self.l2)
        super().set_params(**params)
        if "l2" not in params and not {"features", "hash_bits"}.isdisjoint(params):
            self.l2 = level
        if params.get("l2") is not None:
            given = {"structure": self.structure, "l2": self.l2, "hash_bits": self.hash_bits}
            self.l2 = complete_parameters(self.features, given)["l2"]
        return self

    def _make_loss(self, sharded: TrainingShards, potentials: FeaturePotentials, n_threads: int) -> Loss:
        """The loss that `fit` minimises; a subclass may have it computed elsewhere."""
        return sharded.loss(potentials, n_threads)

    def _keep_l2(self, task: CRFTask | StoredTask, found: PenaltySearch | None) -> None:
        self._l2 = task.settings.l2
        if found is not None:
            self.l2_search_ = found
        elif not open_blocks(self.l2):
            self.__dict__.pop("l2_search_", None)  # that of an earlier fit

    def _settings(self) -> CRFSettings:
        given = {field.name: getattr(self, field.name) for field in fields(CRFSettings)}
        if isinstance(self.resources, Mapping):  # else training refuses them
            given["structure"] = kind_of(self.structure).bind(self.structure, self.resources)
        return CRFSettings(**given)

    def _set_model(self, model: ChainModel, weights: Float64s) -> None:
        super()._set_model(model, weights)
        if not open_blocks(self.l2):
            self._l2 = self.l2

    @property
    def l2_(self) -> float | Mapping[str, float]:
        """The strength l2 that the weights were trained with: `l2`, or what "auto" has found."""
        self._check_fitted()
        assert not open_blocks(self._l2)
        return self._l2  # type: ignore[return-value]

    def _facts(self) -> dict[str, object] | None:
        known = super()._facts()
        if known is None:
            return None
        return {"labels": label_list(self.classes_), "features": f"{self.n_features_:,}", **known}

    def _functions(self, params: dict[str, Any]) -> Any:
        structure, features = params["structure"], params["features"]
        own = [features] if isinstance(features, FeatureFunctions) else []
        kind = kind_of(structure)
        if kind.calls_functions:
            return [*own, *kind.functions(structure)]
        return features if own else None

    def _used_resources(self) -> dict[str, Resource | MissingResource]:
        model = self._get_model()
        template, structure = model.potentials.encoder.template, model.trained_structure
        of_template = {} if template is None else template.used_resources()
        return {**of_template, **kind_of(structure).used_resources(structure)}

    def _model_resources(self) -> Any:
        return self._used_resources() or None

    def _pack(self, settings: dict[str, Any], history: Float64s, *, single_precision: bool) -> ModelFile:
        model = self._get_model()
        if reason := model.find_unsavable():
            raise UnsavableError(reason)
        encoder = model.potentials.encoder
        settings |= {
            "parameters": replace(self._settings(), l2=self.l2_).to_json(
                encoder.template, self._used_resources()
            ),
            "n_columns": encoder.n_columns,
            "more_columns": encoder.more_columns,
            "local": model.potentials.local,
        }
        contents = model.contents(settings, self.weights_, history)
        return crf_file.pack(contents, single_precision=single_precision)

    def _bundle(self, file: ModelFile) -> ModelFile:
        return resource_file.bundle(file, self._used_resources())
