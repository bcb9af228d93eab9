"""What training fixes besides the weights: the vocabularies, the labels, and which weight belongs to what."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import compress, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.data import MAX_LABELS, InputError, check_labels
from crfkit.evaluation import MetricFunction, as_score, checked_metric, metric_for
from crfkit.features import (
    Dataset,
    Encoder,
    Facets,
    FeatureMap,
    FunctionData,
    FunctionMap,
    Labels,
    Outputs,
    PatternMap,
    Strength,
    TagDictionary,
    Template,
    Vocabulary,
    block_of,
    encode_allowed,
    first_of,
    penalty_vector,
    read_once,
)
from crfkit.inference import Answerer, ChainPotentials, FunctionPotentials, PatternPotentials
from crfkit.lazy import lazy_property
from crfkit.models.constraints import (
    bound_chain,
    check_gold,
    check_possible,
    labels_gone,
    trained_bigrams,
    trained_chain,
    without_labels,
)
from crfkit.models.estimator import UnknownLabels
from crfkit.models.files import pattern_file
from crfkit.models.files.crf_file import Contents
from crfkit.models.files.dictionary_file import Lists, Names, StoredDictionary
from crfkit.models.files.function_file import StoredFunctions, output_names, to_json, unsavable
from crfkit.models.files.pattern_file import StoredPatterns
from crfkit.models.training.annotations import checked_lists
from crfkit.models.training.training_set import Choices, Lesson
from crfkit.models.training.warm_start import widened
from crfkit.structures import Bigrams, Chain, Patterns

Float64s = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class Columns(NamedTuple):
    """How many columns the rows of a model with a template have, and whether they may have more."""

    n_columns: int | None = None
    more_columns: bool = False


@dataclass(frozen=True, eq=False)
class ChainModel:
    """A chain model without its weights w[D]."""

    encoder: Encoder
    labels: Labels
    feature_map: FeatureMap
    structure: Chain  # as it was asked for, patterns apart
    functions: FunctionMap | None = (
        None  # feature functions; their weights lie behind those of the feature map
    )
    dictionary: TagDictionary | None = None  # the labels that words may have, as ids of these labels
    patterns: PatternMap | None = None  # their weights lie behind those of the feature map
    local: bool = False  # normalised at each position, as maximum entropy Markov models are

    @classmethod
    def learn(
        cls,
        X: Any,
        y: Any,
        allowed: Any,
        choices: Choices,
        n_threads: int = 1,
        base: ChainModel | None = None,
    ) -> Lesson:
        """Vocabularies, labels, bigrams and weights that training data call for, and the data in numbers.

        With a `base` the model has all that the base has, and what the data add to it, whatever `min_count` says.
        """
        X, allowed = (list(part) if isinstance(part, Iterator) else part for part in (X, allowed))
        structure, functions = _chain_of(choices.structure), choices.functions
        if choices.tag_dictionary or isinstance(choices.structure, Patterns):
            X = read_once(X)
        encoder, dataset = _encoded(X, choices, base)
        ptr = dataset.sequence_ptr
        gold = checked_lists(y, ptr)
        labels = Labels.seen_in(gold if base is None else [*gold, base.labels.classes])
        if len(labels) > MAX_LABELS:
            raise InputError(f"y has {len(labels):,} different labels, expected at most {MAX_LABELS:,}")
        annotation = labels.encode(gold, np.diff(ptr))
        constraints = encode_allowed(allowed, labels, np.diff(ptr))
        check_gold(annotation, constraints, labels, ptr)
        dictionary = choices.tag_dictionary or None
        if dictionary is not None:
            if dictionary is True:
                dictionary = TagDictionary.from_data(X, gold)
                if base is not None and base.dictionary is not None:
                    dictionary = base.dictionary.joined(dictionary)
            dictionary = dictionary.bound(labels.classes)
            constraints = first_of(constraints, dictionary.allowed(X, annotation))
        also = None if base is None else base.bigrams
        chain, skipped = bound_chain(structure, labels, annotation, constraints, ptr, also)
        kept = np.ones(len(gold), dtype=np.bool_)
        if len(skipped):
            kept[skipped] = False
            gone = labels_gone(labels, gold, allowed, kept, () if base is None else base.labels.classes)
            left = None if allowed is None else without_labels(list(compress(allowed, kept)), gone)
            X, y = list(compress(X, kept)), list(compress(gold, kept))
            rest = cls.learn(X, y, left, choices, n_threads, base)
            kept[kept] = rest.kept
            return rest._replace(kept=kept, gone=rest.gone | gone)
        dataset = replace(dataset, allowed=constraints)
        feature_map = FeatureMap.build(
            dataset,
            annotation,
            structure,
            n_labels=len(labels),
            n_features=len(encoder.vocabulary),
            n_arc_features=len(encoder.arc_vocabulary),
            all_possible_states=choices.all_possible_states,
            all_possible_transitions=choices.all_possible_transitions,
            bigrams=chain.bigrams.ids(labels.classes) if isinstance(chain.bigrams, Bigrams) else None,
            soft=chain.unseen == "soft",
            facets=None if choices.facets is None else Facets.build(labels.classes, choices.facets),
        )
        if choices.template is not None and not choices.template.has_plain_arcs:
            feature_map = _without_plain_arcs(feature_map)
        if base is not None:
            feature_map = widened(feature_map, base, labels)
        if functions is None:
            model = cls(encoder, labels, feature_map, structure, dictionary=dictionary)
            return _with_patterns(Lesson(model, dataset, annotation, kept), choices.structure, X, base)
        if not functions.arcs:
            none = np.zeros(0, np.int32)
            feature_map = replace(feature_map, arc_before=none, arc_after=none)
        outputs = tuple(map(Outputs, functions))
        for known in () if base is None or base.functions is None else base.functions.outputs:
            for own in outputs:
                if own.function.name == known.function.name:
                    own.adopt(known)
        function_map = FunctionMap(functions, outputs, labels.classes, structure, feature_map)
        values = FunctionData(function_map, dataset, n_threads, learn=True)
        model = cls(encoder, labels, feature_map, structure, function_map, dictionary)
        return Lesson(model, dataset, annotation, kept, values)

    @lazy_property
    def chain(self) -> Chain:
        """The structure with its bigrams fixed by training."""
        return trained_chain(self.structure, self.labels, self.feature_map.bigrams)

    @property
    def bigrams(self) -> Bigrams | None:
        """The bigrams that training fixed; None for a plain chain."""
        return trained_bigrams(self.labels, self.feature_map.bigrams)

    @property
    def trained_structure(self) -> Chain | Patterns:
        """The structure, patterns included, with its bigrams fixed by training."""
        if self.patterns is None:
            return self.chain
        return replace(self.patterns.structure, bigrams=self.chain.bigrams)

    @classmethod
    def from_contents(
        cls,
        contents: Contents,
        template: Template | None,
        columns: Columns,
        structure: Chain,
        stored: StoredFunctions | None = None,
        dictionary: TagDictionary | None = None,
    ) -> ChainModel:
        """The model of a file whose arrays have been checked; InputError where the names of features are damaged."""
        labels = Labels.from_json(contents.labels)
        try:
            vocabulary = Vocabulary.from_bytes(*contents.state_names)
            arc_vocabulary = Vocabulary.from_bytes(*contents.arc_names)
        except ValueError as error:
            raise InputError(f"its names of features are damaged ({error})") from None
        encoder = Encoder(template, vocabulary, arc_vocabulary, dict(contents.dense_columns), *columns)
        feature_map = FeatureMap(
            n_labels=len(labels),
            pair_ptr=contents.state_pairs.ptr,
            pair_labels=contents.state_pairs.items,
            dense=contents.dense_columns,
            arc_before=contents.arc_before,
            arc_after=contents.arc_after,
            arc_ptr=contents.arc_triples.ptr,
            arc_triples=contents.arc_triples.items,
            bigrams=contents.bigrams,
            soft=structure.unseen == "soft",
            facets=contents.facets,
        )
        functions = None
        if stored is not None:
            functions = FunctionMap(*stored, labels.classes, structure, feature_map)
        patterns = contents.patterns
        if patterns is None:
            return cls(encoder, labels, feature_map, structure, functions, dictionary)
        opened = patterns.opened(labels.classes, structure, columns=template is not None)
        return cls(encoder, labels, feature_map, structure, functions, dictionary, opened)

    def contents(self, settings: dict[str, Any], weights: Float64s, history: Float64s) -> Contents:
        """What the model file holds."""
        feature_map, functions = self.feature_map, self.functions
        return Contents(
            settings={**settings, "functions": None if functions is None else to_json(functions)},
            labels=self.labels.to_json(),
            state_names=Names(*self.encoder.vocabulary.to_bytes()),
            state_pairs=Lists(feature_map.pair_ptr, feature_map.pair_labels),
            dense_columns=dict(feature_map.dense),
            arc_before=feature_map.arc_before,
            arc_after=feature_map.arc_after,
            arc_names=Names(*self.encoder.arc_vocabulary.to_bytes()),
            arc_triples=Lists(feature_map.arc_ptr, feature_map.arc_triples),
            bigrams=feature_map.bigrams,
            facets=feature_map.facets,
            dictionary=None if self.dictionary is None else StoredDictionary.of(self.dictionary),
            output_names=() if functions is None else output_names(functions),
            patterns=None if self.patterns is None else StoredPatterns.of(self.patterns),
            weights=weights,
            history=history,
        )

    @property
    def n_features(self) -> int:
        """Features of positions and of arcs, columns of dense blocks, and outputs of feature functions."""
        if self.functions is not None:
            return sum(self.functions.sizes)
        encoder = self.encoder
        n_patterns = 0 if self.patterns is None else self.patterns.n_weights
        n_features = len(encoder.vocabulary) + len(encoder.arc_vocabulary)
        return n_features + sum(self.feature_map.dense.values()) + n_patterns

    @property
    def n_weights(self) -> int:
        """D, with the weights of functions or patterns."""
        n_patterns = 0 if self.patterns is None else self.patterns.n_weights
        own = self.feature_map if self.functions is None else self.functions
        return own.n_weights + n_patterns

    def unsavable(self) -> str | None:
        """Why no file can hold this model; None where one can."""
        try:
            self.labels.to_json()
            if self.functions is not None:
                return unsavable(self.functions.functions)
            if self.patterns is not None and (reason := pattern_file.unsavable(self.patterns.structure)):
                return reason
            check_labels(len(self.labels), self.feature_map.n_weights)
        except InputError as error:
            return str(error)
        return None

    def penalty(self, name: str, strength: Strength) -> Float64s:
        """The strength of each weight, [D] or [1]."""
        by_block = isinstance(strength, Mapping)
        names = self.encoder.vocabulary.names() if by_block else ()
        arc_names = self.encoder.arc_vocabulary.names() if by_block else ()
        outputs = None
        if self.functions is not None:
            named = (function.name for function in self.functions.functions)
            outputs = dict(zip(named, self.functions.sizes, strict=True))
        if self.patterns is not None:
            outputs = {"patterns": self.patterns.n_weights}
        return penalty_vector(name, strength, self.feature_map, names, arc_names, block_of, outputs)

    def decoded(self, ids: Int32s, ptr: Int64s) -> list[list[Any]]:
        """Label ids [T] as lists of the user's own labels; sequence n has the positions ptr[n]:ptr[n + 1]."""
        labels = self.labels.decode(ids)
        return [labels[begin:end] for begin, end in pairwise(ptr.tolist())]

    def encode(self, X: Any, allowed: Any = None) -> Dataset:
        """New input in numbers."""
        functions, dictionary = self.functions, self.dictionary
        looked_at = self.patterns is not None and self.patterns.needs_inputs
        if dictionary is not None or looked_at:
            X = read_once(X)
        dataset = self.encoder.encode(X) if functions is None else functions.functions.dataset(X)
        allowed = encode_allowed(allowed, self.labels, np.diff(dataset.sequence_ptr))
        if dictionary is not None:
            allowed = first_of(allowed, dictionary.allowed(X))
        return replace(dataset, allowed=allowed, inputs=X if looked_at else dataset.inputs)

    def design(self, dataset: Dataset, n_threads: int, *, asked_often: bool = False) -> Any:
        """Encoded input as the tagger reads it."""
        if self.patterns is not None and self.patterns.n_weights:
            check_possible(self.chain, dataset.sequence_ptr, dataset.allowed)
            return self.patterns.trellises(self.patterns.data(dataset), self.feature_map, dataset, n_threads)
        if self.functions is None:
            return self.feature_map.design(
                dataset, n_threads, purpose="training" if asked_often else "questions"
            )
        check_possible(self.chain, dataset.sequence_ptr, dataset.allowed)
        return FunctionData(self.functions, dataset, n_threads)

    def answerer(self, weights: Float64s) -> Answerer:
        """What answers questions, with weights [D]."""
        if self.patterns is not None and self.patterns.n_weights:
            return Answerer(PatternPotentials(self.feature_map.layout, weights))
        if self.functions is None:
            return Answerer(ChainPotentials(self.feature_map.layout, weights, local=self.local))
        return Answerer(FunctionPotentials(weights))

    def dev_score(
        self, X: Any, y: Any, allowed: Any, *, metric: str | MetricFunction | None, n_threads: int
    ) -> Callable[[Float64s], float]:
        """The score on held-out data as a function of the weights."""
        try:
            dataset = self.encode(X, allowed)
        except InputError as error:
            raise InputError(f"dev {error}") from None
        gold = checked_lists(y, dataset.sequence_ptr, "dev ")
        check_possible(self.chain, dataset.sequence_ptr, dataset.allowed, "dev ")
        self._warn_of_unknown(gold)
        design = self.design(dataset, n_threads, asked_often=True)
        figure = checked_metric(metric) or metric_for(self.labels.classes, gold)

        def score(weights: Float64s) -> float:
            ids = self.answerer(weights).decode(design, n_threads)
            return as_score(figure(gold, self.decoded(ids, dataset.sequence_ptr)))

        return score

    def _warn_of_unknown(self, gold: list[Any]) -> None:
        unknown = list(self.labels.unknown_in(gold))
        if unknown:
            n, i, label = unknown[0]
            warnings.warn(
                f"dev sequence {n}, position {i}: the label {label!r} does not occur in training; "
                f"such labels count as errors, at {len(unknown):,} position{'s' * (len(unknown) > 1)}",
                UnknownLabels,
                stacklevel=6,
            )


def locally_normalised(model: ChainModel) -> ChainModel:
    """The same model, normalised at each position; InputError for what has no such form."""
    feature_map = model.feature_map
    if model.patterns or model.functions or feature_map.bigrams or feature_map.facets or model.dictionary:
        raise InputError(
            "it is normalised at each position, which does not go with patterns, feature functions, bigrams, facets or a "
            "tag dictionary"
        )
    return replace(model, local=True)


def _chain_of(structure: Chain | Patterns) -> Chain:
    """What remains of a structure without its patterns."""
    return structure.chain if isinstance(structure, Patterns) else structure


def _with_patterns(lesson: Lesson, structure: Chain | Patterns, X: Any, base: ChainModel | None) -> Lesson:
    """The same lesson for a model with the patterns that the structure asks for, if it does."""
    if not isinstance(structure, Patterns):
        return lesson
    if lesson.dataset.arcs is not None:
        raise InputError(
            "structure has patterns, which do not go with features of arcs: expected a template without B lines that "
            "read the input (a bare B is fine), or crfkit.Chain(…)"
        )
    model = lesson.model
    patterns, starts = PatternMap.learn(
        structure,
        model.labels.classes,
        replace(lesson.dataset, inputs=X),
        lesson.annotation,
        columns=model.encoder.template is not None,
        base=None if base is None else base.patterns,
    )
    return lesson._replace(model=replace(model, patterns=patterns), starts=starts)


def _encoded(X: Any, choices: Choices, base: ChainModel | None) -> tuple[Encoder, Dataset]:
    """The features of training data, beside those of a base, and the data in numbers."""
    encoder = Encoder(choices.template) if base is None else replace(base.encoder)
    if choices.functions is not None:
        return encoder, choices.functions.dataset(X)
    if base is not None:
        return encoder, encoder.extend_encode(X)
    dataset = encoder.fit_encode(X)
    return encoder, encoder.cut(dataset, choices.min_count) if choices.min_count > 1 else dataset


def _without_plain_arcs(feature_map: FeatureMap) -> FeatureMap:
    """Start and end arcs only: a template without a bare B line asks for no other."""
    n_labels = feature_map.n_labels
    kept = (feature_map.arc_before == n_labels) | (feature_map.arc_after == n_labels)
    return replace(
        feature_map, arc_before=feature_map.arc_before[kept], arc_after=feature_map.arc_after[kept]
    )
