"""From a pattern to the smallest deterministic automaton that counts its matches.

A pattern is turned into its positions (Glushkov: one for each label set written in the text, repeats written out), sets of
positions are determinised, and states with the same future are merged (Hopcroft 1971). An automaton started at
position s is in an accepting state after position e if and only if the positions s, …, e match: each interval counts once,
even if it matches along several paths.

Sets of labels are integers: bit b is set if label b is in the set.
"""

from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from crfkit.errors import PatternError
from crfkit.structures.pattern_language import Either, InOrder, Node, OnePosition, Parsed, Repeat

MOST_POSITIONS = 5_000  # single positions of a pattern, with repeats written out
MOST_STATES = 20_000
MOST_STEPS = 2_000_000  # limit of the work on all patterns of a model: at most two seconds
_SHOWN = 20  # labels named in a message


@dataclass(frozen=True)
class Automaton:
    """State 0 is the start state. `arcs[q]` has (set of labels, next state), disjoint sets, the smallest first."""

    arcs: tuple[tuple[tuple[int, int], ...], ...]
    accepts: tuple[bool, ...]  # whether arriving in state q completes a match

    def lengths(self) -> tuple[int, int | None]:
        """The smallest and the largest number of positions of a match; None: there is no largest."""
        least, met, reached = (
            0,
            {0},
            [0],
        )  # breadth first: `reached` are the states that `least` positions lead to
        while not (least and any(self.accepts[q] for q in reached)):
            reached = list(dict.fromkeys(to for q in reached for _, to in self.arcs[q] if to not in met))
            met.update(reached)
            least += 1
        longest: dict[int, int] = {}
        for q in after_all(self.arcs):
            if q is None:
                return least, None
            longest[q] = max((1 + longest[to] for _, to in self.arcs[q]), default=0)
        return least, longest[0]


def after_all(arcs: Sequence[Sequence[tuple[int, int]]]) -> Iterable[int | None]:
    """The states in reverse topological order; None for those on, or leading to, a cycle."""
    waits = [len(out) for out in arcs]
    before: list[list[int]] = [[] for _ in arcs]
    for q, out in enumerate(arcs):
        for _, to in out:
            before[to].append(q)
    ready, n_given = [q for q, n in enumerate(waits) if n == 0], 0
    while ready:
        q = ready.pop()
        n_given += 1
        yield q
        for source in before[q]:
            waits[source] -= 1
            if waits[source] == 0:
                ready.append(source)
    if n_given < len(arcs):
        yield None


def label_ids(labels: Sequence[Hashable]) -> dict[str, int]:
    """The id of each label by its text, which patterns use; −1 if two labels have the same text."""
    ids: dict[str, int] = {}
    for i, label in enumerate(labels):
        ids[str(label)] = -1 if str(label) in ids else i
    return ids


def label_set(position: OnePosition, ids: Mapping[str, int], n_labels: int) -> int:
    """The labels that a position of a pattern allows; ValueError for a name that no label has."""
    named = 0
    for name in sorted(position.names):
        if name not in ids:
            known = ", ".join(list(ids)[:_SHOWN]) + ", …" * (len(ids) > _SHOWN)
            raise PatternError(f"there is no label {name!r}; the labels are {known}")
        if ids[name] < 0:
            raise PatternError(
                f"more than one label is written {name!r}, expected labels with distinct texts"
            )
        named |= 1 << ids[name]
    return ~named & ((1 << n_labels) - 1) if position.others else named


class Effort:
    """The remaining work limit for the patterns of one model, which may come from an untrusted file."""

    def __init__(self, most: int = MOST_STEPS) -> None:
        self.most = self.left = most

    def spend(self, steps: int) -> None:
        """Count some steps; ValueError if the limit is exceeded."""
        self.left -= steps
        if self.left < 0:
            raise PatternError(
                f"the automata of the patterns take more than {self.most:,} steps to compile, "
                "expected fewer patterns or fewer repeats"
            )


def automaton(pattern: Parsed, labels: Sequence[Hashable], effort: Effort | None = None) -> Automaton | None:
    """The automaton of a pattern over these labels; None if no label sequence matches it."""
    effort = effort or Effort()
    positions = _Positions(label_ids(labels), len(labels), effort)
    whole = positions.add(pattern.body)
    classes = _classes(positions.sets, len(labels), effort)
    return _smallest(*_determinise(positions, whole, classes, effort), classes)


@dataclass(frozen=True)
class _Part:
    """A part of a pattern: the positions, as bits, where it may begin and end, and whether it may be empty."""

    first: int
    last: int
    nullable: bool


class _Positions:
    """The single positions of a pattern: the labels of each, and the positions that may follow it."""

    def __init__(self, ids: Mapping[str, int], n_labels: int, effort: Effort) -> None:
        self.ids, self.n_labels, self.effort = ids, n_labels, effort
        self.sets: list[int] = []
        self.follow: list[int] = []

    def add(self, node: Node) -> _Part:
        match node:
            case OnePosition():
                if len(self.sets) >= MOST_POSITIONS:
                    raise PatternError(
                        f"it is longer than {MOST_POSITIONS:,} positions with its repeats written out"
                    )
                self.effort.spend(1 + len(node.names))
                self.sets.append(label_set(node, self.ids, self.n_labels))
                self.follow.append(0)
                here = 1 << (len(self.sets) - 1)
                return _Part(here, here, nullable=False)
            case InOrder(items):
                return self.in_order(map(self.add, items))
            case Either(options):
                parts = [self.add(option) for option in options]
                first = last = 0
                for part in parts:
                    first, last = first | part.first, last | part.last
                return _Part(first, last, any(part.nullable for part in parts))
            case Repeat(item, least, most):
                return self.in_order(self.repeat(item, least, most))

    def repeat(self, item: Node, least: int, most: int | None) -> Iterable[_Part]:
        """The copies of a repeated part."""
        for _ in range(least - (most is None)):
            yield self.add(item)
        if most is None:
            part = self.add(item)
            self.link(part.last, part.first)
            yield part if least else _Part(part.first, part.last, nullable=True)
        for _ in range((most or 0) - least):
            part = self.add(item)
            yield _Part(part.first, part.last, nullable=True)

    def in_order(self, parts: Iterable[_Part]) -> _Part:
        """Concatenation, from the last part to the first: every position is linked once, to all its followers."""
        first, last, nullable = 0, 0, True  # of the parts from here on
        for part in reversed(list(parts)):
            self.link(part.last, first)
            first = part.first | (first if part.nullable else 0)
            last |= part.last if nullable else 0
            nullable &= part.nullable
        return _Part(first, last, nullable)

    def link(self, last: int, first: int) -> None:
        if first:
            self.effort.spend(last.bit_count())
            for p in bits(last):
                self.follow[p] |= first


def bits(number: int) -> Iterable[int]:
    """The indices of the set bits of a number, ascending."""
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low


def _classes(sets: Iterable[int], n_labels: int, effort: Effort) -> list[int]:
    """The classes of labels that no set distinguishes, as sets."""
    classes = [(1 << n_labels) - 1]
    for chosen in dict.fromkeys(sets):
        effort.spend(len(classes))
        classes = [part for whole in classes for part in (whole & chosen, whole & ~chosen) if part]
    return classes


def _determinise(
    positions: _Positions, whole: _Part, classes: Sequence[int], effort: Effort
) -> tuple[list[list[int | None]], list[bool]]:
    """Subset construction: the next state by class of labels (None: none), and which states accept. State 0 is the start."""
    within = [sum(1 << p for p, s in enumerate(positions.sets) if s & chosen) for chosen in classes]
    number: dict[int, int] = {}
    nexts: list[list[int | None]] = []
    accepts: list[bool] = []
    waiting = deque([(-1, whole.first)])  # positions that a state is, and those that may come next
    while waiting:
        at, coming = waiting.popleft()
        effort.spend(len(within))
        row: list[int | None] = []
        for allowed in within:
            found = coming & allowed
            if found and found not in number:
                number[found] = len(number) + 1
                following = 0
                effort.spend(found.bit_count())
                for p in bits(found):
                    following |= positions.follow[p]
                waiting.append((found, following))
                if len(number) > MOST_STATES:
                    raise PatternError(f"its automaton has more than {MOST_STATES:,} states")
            row.append(number[found] if found else None)
        nexts.append(row)
        accepts.append(at >= 0 and at & whole.last > 0)
    return nexts, accepts


def _smallest(
    nexts: Sequence[Sequence[int | None]], accepts: Sequence[bool], classes: Sequence[int]
) -> Automaton | None:
    """Merge states with equal futures and drop dead ones; state 0 stays separate, since nothing leads to it."""
    alive = _alive(nexts, accepts)
    if 0 not in alive:
        return None
    block = _merge_states(nexts, accepts, alive)
    order = {block[0]: 0}  # blocks in the order of their discovery
    arcs: list[tuple[tuple[int, int], ...]] = []
    members = {b: q for q, b in reversed(list(enumerate(block))) if q in alive}
    met = [block[0]]
    for b in met:
        sets: dict[int, int] = {}
        for chosen, to in zip(classes, nexts[members[b]], strict=True):
            if to is not None and to in alive:
                if block[to] not in order:
                    order[block[to]] = len(order)
                    met.append(block[to])
                sets[order[block[to]]] = sets.get(order[block[to]], 0) | chosen
        arcs.append(tuple(sorted((chosen, to) for to, chosen in sets.items())))
    return Automaton(tuple(arcs), tuple(accepts[members[b]] for b in met))


def _merge_states(
    nexts: Sequence[Sequence[int | None]], accepts: Sequence[bool], alive: set[int]
) -> list[int]:
    """The block of each live state: states with the same future share a block (Hopcroft 1971)."""
    before: list[list[tuple[int, int]]] = [
        [] for _ in nexts
    ]  # (class of labels, state) pairs that lead to a state
    for q, row in enumerate(nexts):
        for chosen, to in enumerate(row):
            if q in alive and to is not None and to in alive:
                before[to].append((chosen, q))
    kinds = {(q == 0, accepts[q]) for q in alive}
    blocks = [{q for q in alive if (q == 0, accepts[q]) == kind} for kind in kinds]
    block = [-1] * len(nexts)
    for b, states in enumerate(blocks):
        for q in states:
            block[q] = b
    waiting = list(range(len(blocks)))  # blocks by which the others are still to be split
    waits = set(waiting)
    while waiting:
        by = waiting.pop()
        waits.discard(by)
        leading: dict[int, list[int]] = {}  # class of labels → states that it leads from into block `by`
        for to in blocks[by]:
            for chosen, q in before[to]:
                leading.setdefault(chosen, []).append(q)
        for sources in leading.values():
            touched: dict[int, set[int]] = {}
            for q in sources:
                touched.setdefault(block[q], set()).add(q)
            for b, inside in touched.items():
                if len(inside) == len(blocks[b]):
                    continue
                blocks[b] -= inside
                for q in inside:
                    block[q] = len(blocks)
                blocks.append(inside)
                smaller = len(blocks) - 1 if b in waits or len(inside) <= len(blocks[b]) else b
                waiting.append(smaller)
                waits.add(smaller)
    return block


def _alive(nexts: Sequence[Sequence[int | None]], accepts: Sequence[bool]) -> set[int]:
    """The live states: those from which an accepting state can be reached, including accepting states."""
    before: list[set[int]] = [set() for _ in nexts]
    for q, row in enumerate(nexts):
        for to in row:
            if to is not None:
                before[to].add(q)
    found = {q for q, accept in enumerate(accepts) if accept}
    waiting = list(found)
    while waiting:
        for source in before[waiting.pop()] - found:
            found.add(source)
            waiting.append(source)
    return found
