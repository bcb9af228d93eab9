"""Which patterns of a model have weights, and the patterns that begin at each position of a data set.

The weights of patterns lie behind all others, in the order of `PatternMap.names`: patterns that are written or that
training found, n-grams and affixes that training took from data, and what functions of the input named in training.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.arrays import Float64s, Int32s, Int64s, offsets
from crfkit.errors import SizeLimitError, UnsavableError, reword
from crfkit.features.configurations import Configuration, configurations
from crfkit.features.dataset import Annotation, Dataset, sequence_weights
from crfkit.features.feature_map import FeatureMap
from crfkit.features.function_data import FunctionData
from crfkit.features.gate_values import Gates
from crfkit.lazy import lazy_property
from crfkit.structures import (
    Automaton,
    Configurations,
    Effort,
    Gram,
    MatcherWriter,
    Ngrams,
    Pattern,
    PatternMatcher,
    Patterns,
    PatternStarts,
    Rule,
    size_words,
    write_grams,
    write_pattern,
)

MAX_ARCS = 200_000_000  # of the trellises of a data set
_NAMED = 5  # patterns in a message


class PatternData(NamedTuple):
    """The patterns of a data set: a matcher, and the starts of its positions.

    At position i these are `start_states[start_ptr[i]:start_ptr[i + 1]]`, and the common ones, which begin at every
    position.
    """

    matcher: PatternMatcher
    start_ptr: Int64s  # [T + 1]
    start_states: Int32s
    start_values: Float64s | None  # None: all 1
    common: Int32s  # states, with the value 1

    def native_matcher(self) -> _core.PatternMatcher:
        """The matcher as the native core holds it."""
        matcher = self.matcher
        states = (matcher.out_ptr, matcher.out_set, matcher.out_next, matcher.activates, matcher.last_only)
        return _core.PatternMatcher(matcher.n_labels, matcher.set_ptr, matcher.set_labels, *states)

    def partition(self, begin: int, end: int, max_states: int) -> tuple[Int64s, Int64s]:
        """What the patterns alone tell apart at each position of the sequence begin:end, all labels possible.

        Grouped transitions into each position [T], and how many positions, itself included, these may depend on [T].
        """
        starts = self.of_positions(begin, end)
        _, transitions, spans = _core.pattern_partition(self.native_matcher(), *starts, max_states, MAX_ARCS)
        return transitions, spans

    def of_positions(self, begin: int, end: int) -> PatternStarts:
        """All starts of the positions begin:end, common ones written out."""
        ptr = self.start_ptr[begin : end + 1] - self.start_ptr[begin]
        some = slice(int(self.start_ptr[begin]), int(self.start_ptr[end]))
        states, n_common = self.start_states[some], len(self.common)
        values = np.ones(len(states)) if self.start_values is None else self.start_values[some]
        behind = np.repeat(ptr[1:], n_common)  # each position has its own starts first
        return PatternStarts(
            ptr + n_common * np.arange(end - begin + 1),
            np.insert(states, behind, np.tile(self.common, end - begin)),
            np.insert(values, behind, 1.0),
        )

    def reachable(self, n_weights: int) -> npt.NDArray[np.bool_]:
        """Which weights [P] something that begins here could fire."""
        matcher = self.matcher
        seen = np.zeros(matcher.n_states, np.bool_)
        waiting = np.unique(np.concatenate([self.start_states, self.common])).tolist()
        seen[waiting] = True
        while waiting:
            q = waiting.pop()
            for to in matcher.out_next[matcher.out_ptr[q] : matcher.out_ptr[q + 1]].tolist():
                if not seen[to]:
                    seen[to] = True
                    waiting.append(to)
        found = np.zeros(n_weights, np.bool_)
        found[matcher.activates[seen & (matcher.activates >= 0)]] = True
        return found


class PatternDesign(NamedTuple):
    """A data set with patterns, as the native core reads it."""

    trellises: _core.Trellises
    functions: _core.FunctionSlices | None  # in place of features
    first_weight: int  # of the patterns


@dataclass(frozen=True, eq=False)
class PatternMap:
    """The patterns of a trained model. Labels are ids, as in the feature map."""

    structure: Patterns  # as it was asked for
    labels: tuple[Hashable, ...]  # [L]
    grams: tuple[Gram, ...] = ()  # taken from data, or written as plain runs of labels; distinct
    given_names: tuple[str, ...] = ()  # what functions named in training, and no pattern is called
    columns: bool = False  # positions are rows of columns, as templates read them
    found: tuple[Pattern, ...] = ()  # that training found, beside those of the structure

    @classmethod
    def learn(
        cls,
        structure: Patterns,
        labels: Sequence[Hashable],
        dataset: Dataset,
        annotation: Annotation,
        *,
        columns: bool,
        base: PatternMap | None = None,
    ) -> tuple[PatternMap, PatternData]:
        """The patterns that training data call for, beside those of a base, and the data themselves."""
        ids, ptr = annotation.labels, dataset.sequence_ptr
        plain = (pattern.gram(labels) for pattern in structure.written)
        grams = dict.fromkeys(gram for gram in plain if gram is not None)
        if base is not None:
            grams |= dict.fromkeys(base.rename_labels(labels).grams)
        for spec in structure.counted:
            found = spec.grams(ids, ptr) if isinstance(spec, Ngrams) else spec.grams(ids, ptr, labels)
            grams.update(dict.fromkeys(found))
        given, before = ((), ()) if base is None else (base.given_names, base.found)
        fixed = cls(structure, tuple(labels), tuple(grams), given, columns, before)
        fixed.check()
        active = list(fixed._configurations(dataset))
        named = dict.fromkeys((*fixed.given_names, *(found.weight for found in active)))
        taken = set(fixed.names) - set(fixed.given_names)
        complete = replace(fixed, given_names=tuple(name for name in named if name not in taken))
        return complete, complete._data(dataset, active)

    def check(self) -> None:
        """Refuse patterns that do not go with the labels."""
        _ = self._automata
        texts = {gram.text(self.labels) for gram in self.grams}
        if len(texts) < len(self.grams):
            raise UnsavableError(
                "runs of different labels are written alike, expected labels with texts of their own"
            )

    @lazy_property
    def written(self) -> list[Pattern]:
        """The patterns that are no grams, each once, as often as it may be listed."""
        grams = set(self.grams)
        asked = {p.meaning: p for p in (*self.structure.written, *self.found)}
        return [p for p in asked.values() if p.gram(self.labels) not in grams]

    @property
    def functions(self) -> list[Configurations]:
        """The functions of the input that give patterns."""
        return self.structure.functions

    @lazy_property
    def names(self) -> list[str]:
        """The name of each weight, [P]."""
        texts = (gram.text(self.labels) for gram in self.grams)
        return list(dict.fromkeys((*(p.name for p in self.written), *texts, *self.given_names)))

    @property
    def n_weights(self) -> int:
        """P."""
        return len(self.names)

    @property
    def needs_inputs(self) -> bool:
        """Whether the inputs themselves are looked at: by gates, or by functions."""
        return bool(self.functions) or any(pattern.when is not None for pattern in self.written)

    def data(self, dataset: Dataset) -> PatternData:
        """The patterns that begin at the positions of a data set."""
        return self._data(dataset, self._configurations(dataset))

    def design(
        self,
        starts: PatternData,
        feature_map: FeatureMap,
        dataset: Dataset,
        n_threads: int,
        functions: FunctionData | None = None,
    ) -> PatternDesign:
        """A data set as trellises, for the native core; InputError for one that would be too large.

        `functions`: feature functions on the data set, in place of the features of the map.
        """
        if functions is None:
            layout, first = feature_map.layout, feature_map.n_weights
            design = feature_map.design(dataset, n_threads, purpose="patterns")
        else:
            layout, first = functions.map.layout, functions.map.n_weights
            ptr, allowed = dataset.sequence_ptr, dataset.allowed
            design = functions.map.design(ptr, allowed, n_threads, purpose="patterns")
        try:
            trellises = _core.Trellises(
                layout,
                design,
                starts.native_matcher(),
                starts.start_ptr,
                starts.start_states,
                starts.start_values,
                first,
                self.structure.max_states,
                MAX_ARCS,
                n_threads,
                starts.common,
            )
        except _core.TrellisSizeError as error:
            raise SizeLimitError(self._too_large(error)) from None
        return PatternDesign(trellises, None if functions is None else functions.native(), first)

    def loss(
        self,
        starts: PatternData,
        feature_map: FeatureMap,
        dataset: Dataset,
        annotation: Annotation,
        *,
        functions: FunctionData | None = None,
        sample_weight: npt.ArrayLike | None = None,
        single_precision: bool = True,
        n_threads: int = 1,
    ) -> _core.DataLoss:
        """The loss of a chain with patterns over the trellises of a data set, for `Objective`."""
        design = self.design(starts, feature_map, dataset, n_threads, functions)
        return _core.pattern_loss(
            design.trellises,
            design.functions,
            annotation.labels,
            *annotation.set_arrays,
            sequence_weights(sample_weight, dataset.n_sequences),
            design.first_weight + self.n_weights,
            single_precision,
            n_threads,
        )

    def sparsity(self, starts: PatternData, sequence: int, begin: int, end: int) -> Float64s:
        """κ of the positions begin:end of a sequence [T]: grouped transitions / L ** (positions that these may depend on).

        Of the patterns alone, all labels possible; InputError where that tells too many states apart.
        """
        try:
            transitions, spans = starts.partition(begin, end, self.structure.max_states)
        except _core.TrellisSizeError as error:
            raise SizeLimitError(f"sparsity, {self._too_large(error, sequence)}") from None
        sparsity: Float64s = transitions * float(len(self.labels)) ** -spans
        return sparsity

    def keep(self, used: npt.NDArray[np.bool_]) -> tuple[PatternMap, npt.NDArray[np.bool_]]:
        """The map without the grams and given names whose weights [P] are not used, and the weights that are left."""
        number = self._number
        asked = {pattern.gram(self.labels) for pattern in self.structure.written}
        grams = tuple(g for g in self.grams if g in asked or used[number[g.text(self.labels)]])
        given = tuple(name for name in self.given_names if used[number[name]])
        smaller = replace(self, grams=grams, given_names=given)
        left = set(smaller.names)
        return smaller, np.array([name in left for name in self.names], np.bool_)

    def rename_labels(self, labels: Sequence[Hashable]) -> PatternMap:
        """The same for other labels, which all of its own are among."""
        place = {label: i for i, label in enumerate(labels)}
        ids = [place[label] for label in self.labels]
        grams = tuple(Gram(g.where, tuple(ids[label] for label in g.labels)) for g in self.grams)
        return replace(self, labels=tuple(labels), grams=grams)

    def _too_large(self, error: _core.TrellisSizeError, sequence: int | None = None) -> str:
        """The error message: what is too large, where, and what to do; `sequence`, where the core had only this one."""
        _, place, position, n_states, n_arcs, weights = error.args
        sequence = place if sequence is None else sequence
        names = [repr(self.names[weight]) for weight in weights.tolist()]
        several = ", ".join(names[:_NAMED]) + f" and {len(names) - _NAMED} more" * (len(names) > _NAMED)
        what, remedy = size_words(n_states, self.structure.max_states, n_arcs, MAX_ARCS)
        alive = several or "none"
        return f"sequence {sequence}, position {position}: {what}; the patterns alive there are {alive}: {remedy}"

    @lazy_property
    def _number(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @lazy_property
    def _automata(self) -> dict[Hashable, Automaton | None]:
        """The automata of the patterns by their meanings; InputError where one, or all together, are too much."""
        effort = Effort()
        asked = {p.meaning: p for p in (*self.structure.written, *self.found)}
        try:
            return {meaning: p.automaton(self.labels, effort) for meaning, p in asked.items()}
        except ValueError as error:
            raise reword(error, str(error).rstrip(".")) from None

    @lazy_property
    def _rules(self) -> tuple[MatcherWriter, list[tuple[Rule, Pattern | None]]]:
        """What every data set has of the matcher, and where its patterns begin."""
        writer, number = MatcherWriter(len(self.labels)), self._number
        rules: list[tuple[Rule, Pattern | None]] = []
        for pattern in self.written:
            automaton = self._automata[pattern.meaning]
            if automaton is not None:
                first, last = pattern.parsed.first, pattern.parsed.last
                rule = write_pattern(writer, automaton, number[pattern.name], first=first, last=last)
                rules.append((rule, pattern))
        grams = {gram: number[gram.text(self.labels)] for gram in self.grams}
        rules += ((rule, None) for rule in write_grams(writer, grams))
        return writer, rules

    @lazy_property
    def _matcher(self) -> PatternMatcher:
        """The matcher of a model without functions."""
        return self._rules[0].matcher()

    def _configurations(self, dataset: Dataset) -> Iterator[Configuration]:
        for function in self.functions:
            assert dataset.inputs is not None
            yield from configurations(function, dataset.inputs, dataset.sequence_ptr, self.labels)

    def _data(self, dataset: Dataset, active: Any) -> PatternData:
        ptr = dataset.sequence_ptr
        writer, rules = self._rules
        gates = None if dataset.inputs is None else Gates(dataset.inputs, ptr, columns=self.columns)
        positions, states, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)], [np.zeros(0)]
        common = []
        for rule, pattern in rules:
            if rule.everywhere and (pattern is None or pattern.when is None):
                common.append(rule.state)
                continue
            begins = rule.positions(ptr)
            counts = np.ones(len(begins))
            if pattern is not None and pattern.when is not None:
                assert gates is not None
                if pattern.gate is not None:
                    begins = begins[gates.evaluate(pattern.gate, begins)]
                    counts = np.ones(len(begins))
                else:
                    counts = gates.call(pattern.when, begins)  # type: ignore[arg-type]
                    begins, counts = begins[counts != 0], counts[counts != 0]
            positions.append(begins)
            states.append(np.full(len(begins), rule.state, np.int32))
            values.append(counts)
        matcher = self._matcher
        if self.functions:
            writer = writer.copy()
            number = self._number
            known = [found for found in active if found.weight in number]
            chains = [writer.chain(found.sets, number[found.weight]) for found in known]
            positions.append(np.array([found.position for found in known], np.int64))
            states.append(np.array(chains, np.int32))
            values.append(np.array([found.value for found in known], np.float64))
            matcher = writer.matcher()
        listed = (np.concatenate(positions), np.concatenate(states), np.concatenate(values))
        return _sort(matcher, *listed, dataset.n_positions, np.array(common, np.int32))


def _sort(
    matcher: PatternMatcher,
    positions: Int64s,
    states: Int32s,
    values: Float64s,
    n_positions: int,
    common: Int32s,
) -> PatternData:
    """Starts in the order of their positions."""
    order = np.argsort(positions, kind="stable")
    counts = np.bincount(positions, minlength=n_positions)
    start_ptr = offsets(counts)
    plain = bool((values == 1).all())
    return PatternData(matcher, start_ptr, states[order], None if plain else values[order], common)
