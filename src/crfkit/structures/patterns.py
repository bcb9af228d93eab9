"""Chains in which whole runs of labels have weights: sparse higher-order CRFs.

    score(y) = score of the chain + Σ_patterns Σ_{intervals s … e that match} b(x, s) · w[pattern]

b is the value of the pattern's condition at the position where the match begins: 1 if there is none. The outputs are
those of the chain; patterns only add scores.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crfkit.counts import check_count
from crfkit.errors import ArgumentError, reword
from crfkit.structures.bigrams import Bigrams
from crfkit.structures.chain import Chain
from crfkit.structures.gates import Gate, parse_gate
from crfkit.structures.label_counts import ANYWHERE, FIRST, LAST, Affixes, Gram, Ngrams
from crfkit.structures.pattern_automaton import Automaton, Effort, automaton, label_ids
from crfkit.structures.pattern_language import InOrder, OnePosition, Parsed, parse

When = str | Callable[[Any, int], bool | float]
Configurations = Callable[[Any], Iterable[tuple[Any, ...]]]
"""A function from an input to its patterns: (first position, labels, name of the weight), with a value or without."""

MAX_STATES = 100_000
_QUOTED_OR_BLANKS = re.compile(r""" "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' | \s+ """, re.DOTALL | re.VERBOSE)
_SPEC = "a Pattern, its text, Ngrams, Affixes, or a function of x"


@dataclass(frozen=True)
class Pattern:
    """A run of labels that has a weight: every interval of positions that matches counts once.

    text : the labels of the interval, as a regular expression over labels:
        `B I* E`, alternatives `B|I`, any label but these `!O` and `!(B|I)`, any label `.`, quantifiers
        `* + ? {m} {m,} {m,n}`, brackets, `^` and `$` for the first and the last position, quotes for labels such as "PRP$"
    when : a condition on the input where the match begins, `word=Inc.` or `w=Inc.|Corp. & !w[1]=,`; or a function of the
        input and the position, whose value, a bool or a number, is the value of the match
    weight : the name of the weight; patterns with the same name share one. Without a name: the text, and the condition.

    >>> Pattern("B I* E", when="w=Inc.").name
    'B I* E when w=Inc.'
    >>> Pattern("B I|* E")
    Traceback (most recent call last):
    ...
    crfkit.errors.PatternError: Pattern, character 5: expected a label, found *.
        B I|* E
            ^
    """

    text: str
    when: When | None = None
    weight: str | None = None
    parsed: Parsed = field(init=False, repr=False, compare=False)
    gate: Gate | None = field(init=False, repr=False, compare=False)  # of a condition that is written

    def __post_init__(self) -> None:
        """Parse the text and the condition; ValueError if they are invalid."""
        if not isinstance(self.text, str):
            raise ArgumentError(f"Pattern: the text is {self.text!r}, expected a string.")
        if self.when is not None and not isinstance(self.when, str) and not callable(self.when):
            raise ArgumentError(
                f"Pattern {self.text!r}: when is {self.when!r}, expected a condition, a function or None."
            )
        if not isinstance(self.when, Hashable):
            raise ArgumentError(
                f"Pattern {self.text!r}: when is {self.when!r}, which is not hashable, expected a function or an object "
                "that is, such as a frozen dataclass."
            )
        if self.weight is not None and (not isinstance(self.weight, str) or not self.weight):
            raise ArgumentError(f"Pattern {self.text!r}: weight is {self.weight!r}, expected a name.")
        object.__setattr__(self, "parsed", parse(self.text))
        object.__setattr__(self, "gate", parse_gate(self.when) if isinstance(self.when, str) else None)

    @property
    def name(self) -> str:
        """The name of the weight."""
        if self.weight is not None:
            return self.weight
        text = _with_single_blanks(self.text)
        if self.when is None:
            return text
        condition = _with_single_blanks(self.when) if isinstance(self.when, str) else function_name(self.when)
        return f"{text} when {condition}"

    @property
    def meaning(self) -> Hashable:
        """Equal for equivalent patterns with the same weight, whatever blanks they are written with."""
        condition = self.when if self.gate is None else self.gate.conditions
        return self.parsed, condition, self.name

    def gram(self, labels: Sequence[Hashable]) -> Gram | None:
        """The equivalent gram: a run of labels without a condition or a name; None if there is none."""
        body, first, last = self.parsed.body, self.parsed.first, self.parsed.last
        if self.when is not None or self.weight is not None or (first and last):
            return None
        ids = label_ids(labels)
        run = []
        for item in body.items if isinstance(body, InOrder) else (body,):
            if not isinstance(item, OnePosition) or item.others or len(item.names) != 1:
                return None
            run.append(ids.get(min(item.names), -1))
        gram = Gram(FIRST if first else LAST if last else ANYWHERE, tuple(run))
        return gram if min(run) >= 0 and gram.text(labels) == self.name else None

    def automaton(self, labels: Sequence[Hashable], effort: Effort | None = None) -> Automaton | None:
        """The automaton over these labels that counts the matches; None if nothing can match.

        `effort` bounds the work on several patterns together; without it, the work on this one.
        """
        try:
            return automaton(self.parsed, labels, effort)
        except ValueError as error:
            raise reword(error, f"Pattern {self.text!r}: {error}.") from None


@dataclass(frozen=True)
class Growth:
    """Pattern selection during training: useful n-grams of labels and of units.

    A unit is a span if the labels follow a scheme, as B-NP, I-NP and O do, and a run of equal labels otherwise:
    `B-PP|I-PP B-NP I-NP* B-VP` is an n-gram of three units. In each round, label sequences sampled from the current model
    are compared with the training labels. A candidate that the model expects E times and that occurs O times gains about
    ½ (E − O)² / (V + l2), where V is the variance of its count. The best candidate is added, then the best by the
    remaining gain, and so on. Then the model is trained.

    order : maximum number of previous labels a label depends on: n-grams of labels have at most `order` + 1
    units : maximum number of units of an n-gram; 0: no n-grams of units
    per_round : maximum number of patterns added in a round
    min_count : drop candidates that occur, and are expected, less often in the training data
    min_gain : drop candidates with a smaller gain, in nats
    max_states : maximum average number of states of a position, as a multiple of the number of labels
    held_out : share of the training sequences to evaluate rounds on, if `fit` has no `dev` set
    patience : stop after this many rounds without a higher held-out likelihood
    """

    order: int = 5
    units: int = 5
    per_round: int = 30
    min_count: int = 3
    min_gain: float = 2.0
    max_states: float = 4.0
    held_out: float = 0.1
    patience: int = 1

    def __post_init__(self) -> None:
        """Check the settings."""
        for name in ("order", "units", "per_round", "min_count", "patience"):
            number = check_count(f"Growth.{name}", getattr(self, name), least=int(name != "units"))
            object.__setattr__(self, name, number)
        for name, lowest in (("min_gain", 0), ("max_states", 1)):
            value = getattr(self, name)
            if not isinstance(value, int | float | np.number) or not lowest <= value < np.inf:
                raise ArgumentError(
                    f"Growth.{name} is {value!r}, expected a finite number of at least {lowest}."
                )
            object.__setattr__(self, name, float(value))
        if not isinstance(self.held_out, int | float | np.number) or not 0 < self.held_out < 1:
            raise ArgumentError(f"Growth.held_out is {self.held_out!r}, expected a share between 0 and 1.")
        object.__setattr__(self, "held_out", float(self.held_out))


@dataclass(frozen=True, repr=False)
class Patterns:
    """A chain with patterns.

    patterns : in one list, `Pattern(…)` or only its text; `Ngrams(…)` and `Affixes(…)`, taken from the training data; and
        functions of the input x that return (first position, labels of each position, name of the weight) or (…, value):
        the labels of a position are a label, a set of labels, or None for any. Names that training saw have weights, others
        are ignored.
    start, end, bigrams, unseen : as of a `Chain`
    max_states : maximum number of states of a position; a larger trellis raises an error before it is built
    grow : `Growth(…)` selects patterns during training; True: with its defaults

    >>> Patterns(["B I* E", Pattern("B I", when="w=Inc.")], bigrams="observed")
    Patterns(['B I* E', 'B I when w=Inc.'], bigrams='observed', unseen='error')
    """

    patterns: Sequence[Pattern | str | Ngrams | Affixes | Configurations] = ()
    start: bool = True
    end: bool = True
    bigrams: Bigrams | str | None = None
    unseen: str = "error"
    max_states: int = MAX_STATES
    grow: Growth | bool | None = None
    chain: Chain = field(init=False, compare=False)  # the chain without the patterns

    def __post_init__(self) -> None:
        """Read the list; ValueError for what cannot be a pattern."""
        given = self.patterns
        if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
            raise ArgumentError(f"Patterns: got {given!r}, expected a list, each entry {_SPEC}.")
        object.__setattr__(self, "patterns", tuple(map(_spec, given)))
        try:
            chain = Chain(self.start, self.end, self.bigrams, self.unseen)
        except ValueError as error:
            raise reword(error, str(error).replace("Chain.", "Patterns.", 1)) from None
        object.__setattr__(self, "chain", chain)
        check_count("Patterns.max_states", self.max_states, most=float("inf"))
        if self.grow is True:
            object.__setattr__(self, "grow", Growth())
        if not isinstance(self.grow, Growth | None | bool):
            raise ArgumentError(f"Patterns.grow is {self.grow!r}, expected Growth(…), True or None.")

    def __repr__(self) -> str:
        words = ", ".join(map(_format, self.patterns))
        changed = "".join(
            f", {name}={getattr(self, name)!r}"
            for name, default in (("start", True), ("end", True), ("max_states", MAX_STATES))
            if getattr(self, name) != default
        )
        constraint = "" if self.bigrams is None else f", bigrams={self.bigrams!r}, unseen={self.unseen!r}"
        return f"Patterns([{words}]{changed}{constraint}{f', grow={self.grow!r}' if self.grow else ''})"

    def __deepcopy__(self, memo: object) -> "Patterns":
        """Returns itself: it is immutable, and the state of its functions must not be copied."""
        return self

    @property
    def written(self) -> list[Pattern]:
        """The given patterns."""
        return [spec for spec in self.patterns if isinstance(spec, Pattern)]

    @property
    def counted(self) -> list[Ngrams | Affixes]:
        """The n-grams and affixes to take from data."""
        return [spec for spec in self.patterns if isinstance(spec, Ngrams | Affixes)]

    @property
    def functions(self) -> list[Configurations]:
        """The functions of x."""
        return [spec for spec in self.patterns if not isinstance(spec, Pattern | Ngrams | Affixes | str)]


def size_words(n_states: int, max_states: int, n_arcs: int, max_arcs: int) -> tuple[str, str]:
    """Error message for a trellis that is too large, and remedies: states of a position, or arcs of all trellises."""
    remedy = "shorten them, let them share a weight, use fewer wildcards, or allow fewer labels"
    if n_states > max_states:
        what = f"the trellis would have more than {n_states:,} states, where {max_states:,} are allowed"
        return what, f"{remedy}; or raise max_states"
    what = f"all trellises would have more than {n_arcs:,} arcs, where {max_arcs:,} are allowed"
    return what, f"{remedy}; or give fewer sequences at once"


def function_name(function: object) -> str:
    """The name of a function in messages and weights."""
    return str(getattr(function, "__name__", "") or type(function).__name__)


def _with_single_blanks(text: str) -> str:
    """A pattern or a condition with runs of blanks collapsed, except in quotes."""
    return _QUOTED_OR_BLANKS.sub(lambda found: " " if found[0].isspace() else found[0], text).strip()


def _spec(given: object) -> Pattern | Ngrams | Affixes | Configurations:
    if isinstance(given, str):
        return Pattern(given)
    if isinstance(given, Pattern | Ngrams | Affixes):
        return given
    if not callable(given) or isinstance(given, type):
        raise ArgumentError(f"Patterns: the entry {given!r}, expected {_SPEC}.")
    return given


def _format(spec: object) -> str:
    if isinstance(spec, Pattern):
        return repr(spec.name)
    return repr(spec) if isinstance(spec, Ngrams | Affixes) else function_name(spec)
