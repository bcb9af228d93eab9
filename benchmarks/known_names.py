"""Names known from elsewhere: those of training data far away, and those that a first tagger finds in sentences nearby.

Both give columns of characters: where a character lies in a stretch that is a name elsewhere, of which type it mostly is
there, and how sure that is. A sentence of the training data sees only names of sentences far from it, since no sentence of
another file has its own article among the training data.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from benchmarks.gazetteers import BLOCK, LONGEST, OUTSIDE, SeenElsewhere
from crfkit.evaluation import spans

TYPES = ("PER", "LOC", "ORG")
PERSON = "PER"
NEAR, NEAREST = 100, 15  # sentences on each side in which names are looked for
SHARES = (0.9, 0.5, 0.2)  # of the places where a stretch occurs, it is a name: how sure it is
PURE = 0.8  # share of the most frequent type
SEPARATOR = "·"  # between the parts of a foreign name
FAMILY = 2  # characters of a Japanese family name, whose whole name has twice as many

Text = TypeVar("Text", str, tuple[str, ...])  # characters, or words


class Stretches(Generic[Text]):
    """Where entries occur in texts."""

    def __init__(self, entries: Iterable[Text]) -> None:
        """The entries, of one character (or word) or more."""
        self._entries: frozenset[Text] = frozenset(entries)
        self._beginnings: set[Text] = {entry[:n] for entry in self._entries for n in range(1, len(entry) + 1)}

    def of(self, text: Text) -> Iterator[tuple[int, int]]:
        """Begin and end of each entry in a text; they may overlap."""
        for begin in range(len(text)):
            for end in range(begin + 1, min(begin + LONGEST, len(text)) + 1):
                if text[begin:end] not in self._beginnings:
                    break
                if text[begin:end] in self._entries:
                    yield begin, end


def sureness(types: Mapping[str, int], occurs: int) -> str:
    """The most frequent type, how often the stretch is a name where it occurs, and whether types vary."""
    kind = max(types, key=lambda kind: types[kind])
    names = sum(types.values())
    share = names / max(occurs, names)
    level = sum(share <= bound for bound in SHARES)
    often = "once" if names == 1 else "some" if names < 5 else "often"
    return f"{kind} {level} {often}{'' if types[kind] > PURE * names else ' varies'}"


def column(n: int, found: Iterable[tuple[int, int, str]]) -> list[str]:
    """For each of n characters, its place (B, I, E, S) in the longest stretch that covers it, with what is said of that."""
    positions = [OUTSIDE] * n
    for begin, end, what in sorted(found, key=lambda some: (some[0] - some[1], some[0])):
        if all(position == OUTSIDE for position in positions[begin:end]):
            letters = "S" if end - begin == 1 else "B" + "I" * (end - begin - 2) + "E"
            positions[begin:end] = [f"{letter} {what}" for letter in letters]
    return positions


class KnownNames:
    """The names of training data."""

    def __init__(self, texts: Sequence[str], labels: Sequence[Sequence[str]]) -> None:
        """Sentences of the training data in their order, with IOBES labels."""
        self._seen = {kind: SeenElsewhere() for kind in TYPES}
        self._occurs = SeenElsewhere()
        for n, (text, some) in enumerate(zip(texts, labels, strict=True)):
            for span in spans(some, "IOBES"):
                if span.end - span.start > 1:
                    self._seen[span.label].add(n, [text[span.start : span.end]])
        self._stretches = Stretches(name for seen in self._seen.values() for name in seen.counts)
        for n, text in enumerate(texts):
            self._occurs.add(n, (text[begin:end] for begin, end in self._stretches.of(text)))

    def column(self, text: str, sentence: int | None) -> list[str]:
        """Of a sentence, given with its number where it is one of the training data."""
        near = () if sentence is None else range(sentence // BLOCK - 1, sentence // BLOCK + 2)
        found = []
        for begin, end in self._stretches.of(text):
            part = text[begin:end]
            types = {kind: seen.times(part, near) for kind, seen in self._seen.items()}
            if any(types.values()):
                found.append((begin, end, sureness(types, self._occurs.times(part, near))))
        return column(len(text), found)


class Place(NamedTuple):
    """Where a name, or a part of a person's, was found."""

    sentence: int
    begin: int
    kind: str


class FoundNames:
    """What a first tagger found in the sentences of a file, to be seen by their neighbours."""

    def __init__(self, texts: Sequence[str], labels: Sequence[Sequence[str]]) -> None:
        """Sentences in their order, with IOBES labels."""
        self._texts = texts
        self._places = defaultdict[str, list[Place]](list)
        self._first = defaultdict[str, list[int]](list)  # sentences with persons that begin with a character
        self._persons = defaultdict[int, list[int]](list)  # where persons begin in a sentence
        for n, (text, some) in enumerate(zip(texts, labels, strict=True)):
            for span in spans(some, "IOBES"):
                self._add(n, span.start, text[span.start : span.end], span.label)
        self._stretches = Stretches(self._places)
        self._occurs = defaultdict[str, list[int]](list)
        for n, text in enumerate(texts):
            for begin, end in self._stretches.of(text):
                self._occurs[text[begin:end]].append(n)

    def _add(self, sentence: int, begin: int, name: str, kind: str) -> None:
        if len(name) > 1:
            self._places[name].append(Place(sentence, begin, kind))
        if kind == PERSON and len(name) > 1:
            self._first[name[0]].append(sentence)
            self._persons[sentence].append(begin)
            for offset, part in _parts(name):
                self._places[part].append(Place(sentence, begin + offset, kind))

    def columns(self, sentence: int) -> list[tuple[str, str, str]]:
        """Of a sentence: names found nearby; those found very near; whether a person found very near begins so."""
        text = self._texts[sentence]
        near, nearest = [], []
        for begin, end in self._stretches.of(text):
            part = text[begin:end]
            others = [
                place
                for place in self._places[part]
                if abs(place.sentence - sentence) <= NEAR
                and (place.sentence, place.begin) != (sentence, begin)
            ]
            if others:
                types = Counter(place.kind for place in others)
                occurs = _between(self._occurs[part], sentence, NEAR) - 1
                near.append((begin, end, sureness(types, occurs)))
                close = Counter(place.kind for place in others if abs(place.sentence - sentence) <= NEAREST)
                nearest += [(begin, end, kind) for kind, _ in close.most_common(1)]
        return list(
            zip(column(len(text), near), column(len(text), nearest), self._surnames(sentence), strict=True)
        )

    def _surnames(self, sentence: int) -> list[str]:
        """How many other persons found very near begin with each character: none, one or several."""
        counts = []
        for i, character in enumerate(self._texts[sentence]):
            begin = self._first.get(character)
            n = _between(begin, sentence, NEAREST) if begin else 0
            counts.append(n - (i in self._persons.get(sentence, ())))
        return [OUTSIDE if n == 0 else "1" if n == 1 else "2" for n in counts]


def _parts(name: str) -> Iterator[tuple[int, str]]:
    """What a person may be called elsewhere, and where that is in the whole name."""
    if len(name) >= 2 * FAMILY:
        yield 0, name[:FAMILY]
    begin = 0
    for part in name.split(SEPARATOR):
        if 1 < len(part) < len(name):
            yield begin, part
        begin += len(part) + len(SEPARATOR)


def _between(sentences: Sequence[int], sentence: int, near: int) -> int:
    """How many of sorted numbers are at most so far from one."""
    return bisect_right(sentences, sentence + near) - bisect_left(sentences, sentence - near)
