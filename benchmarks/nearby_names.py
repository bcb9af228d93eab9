"""Columns for a second tagger: what a first one finds for the same words nearby, with its probabilities, and known words.

A name that one sentence leaves open is often clear in another one of its article. So a second tagger reads the labels of
the first one, how sure that is of them, the mean probabilities of the types of a word (or of a pair of characters) where
else it occurs nearby, and names that are found nearby as a whole. For training, each part of the training sentences is
labelled by a first tagger that learnt from the others.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence

from benchmarks.gazetteers import OUTSIDE
from benchmarks.known_names import Stretches, column
from crfkit import Span
from crfkit.evaluation import spans
from crfkit.inference import likely_spans, select_spans
from crfkit.structures import segment_labels

LEAST = 0.02  # probability of the spans that count
OPEN = 0.1  # probability of a name at a position outside of the likely ones that is shown
NAMED = 0.3  # mean probability of names with which a word is one elsewhere
BOUNDS = (0.9, 0.6, 0.3)  # of the levels of probabilities and shares
FAR = 100  # sentences between a training sentence and what it may know of the others
CAPITALS = 3  # letters of a word in capitals that is an abbreviation

Words = tuple[str, ...]
Found = Sequence[Sequence[Span]]  # of each sentence, all spans with a probability of at least LEAST


def level(share: float) -> int:
    """0 (sure) to 3."""
    return sum(share < bound for bound in BOUNDS)


def type_probabilities(n: int, found: Sequence[Span], length: int = 1) -> list[Counter[str]]:
    """For each of n positions, the probability of each type for it and the next ones, `length` in all, in one name."""
    types = [Counter[str]() for _ in range(n)]
    for span in found:
        for at in range(span.start, span.end - length + 1):
            types[at][span.label] += span.probability  # type: ignore[assignment]
    return types


def choose_spans(found: Found, decode: str) -> list[list[Span]]:
    """The spans that a decoding ("spans" or "f1") chooses among these."""
    every = [list(some) for some in found]
    n_expected = sum(span.probability for some in every for span in some)
    return select_spans(
        lambda least: likely_spans(every, least), lambda: every, lambda: n_expected, None, decode
    )


def mean_spans(models: Sequence[Found]) -> list[list[Span]]:
    """The spans that any model finds, with the mean of their probabilities."""
    means = []
    for each in zip(*models, strict=True):
        probabilities = defaultdict[tuple[int, int, str], float](float)
        for some in each:
            for span in some:
                probabilities[span.start, span.end, str(span.label)] += span.probability / len(models)
        means.append([Span(*place, probability) for place, probability in sorted(probabilities.items())])
    return means


def sure_labels(n: int, found: Sequence[Span]) -> list[tuple[str, str]]:
    """IOBES labels of the likely spans of n positions; the same with how sure they are, and the types of unlikely ones."""
    labels = [("O", "O")] * n
    for at, types in enumerate(type_probabilities(n, found)):
        for kind, probability in types.most_common(1):
            if probability > OPEN:
                labels[at] = ("O", f"O {kind}?")
    for span in choose_spans([found], "spans")[0]:
        names = map(str, segment_labels(span.label, span.end - span.start, "iobes"))
        labels[span.start : span.end] = [(name, f"{name} {level(span.probability)}") for name in names]
    return labels


class TypesNearby:
    """The mean probability of types where a word, or another key, occurs elsewhere."""

    def __init__(self, keys: Sequence[Sequence[Hashable]], found: Found, length: int = 1) -> None:
        """A key for each position of each sentence, None for none; it stands for `length` positions."""
        self._keys = keys
        self._types = [
            type_probabilities(len(some), spans, length) for some, spans in zip(keys, found, strict=True)
        ]
        self._places = defaultdict[Hashable, list[tuple[int, int]]](list)
        for n, some in enumerate(keys):
            for at, key in enumerate(some):
                if key is not None:
                    self._places[key].append((n, at))

    def column(self, sentence: int, near: int) -> list[str]:
        """For each position, the most probable type within so many sentences, how probable, and how often it occurs."""
        return [
            OUTSIDE if key is None else self._elsewhere(key, (sentence, at), near)
            for at, key in enumerate(self._keys[sentence])
        ]

    def _elsewhere(self, key: Hashable, place: tuple[int, int], near: int) -> str:
        places = self._places[key]
        begin = bisect_left(places, (place[0] - near, 0))
        end = bisect_left(places, (place[0] + near + 1, 0))
        others = [self._types[n][at] for n, at in places[begin:end] if (n, at) != place]
        if not others:
            return OUTSIDE
        total = Counter[str]()
        for types in others:
            total.update(types)
        often = "once" if len(others) == 1 else "some" if len(others) < 4 else "often"
        named = sum(total.values()) / len(others)
        if named < NAMED:
            return f"O {level(1 - named)} {often}"
        kind, probability = total.most_common(1)[0]
        return f"{kind} {level(probability / len(others))} {often}"


def pairs_in_names(texts: Sequence[str], found: Found) -> list[list[str | None]]:
    """The pair of characters that begins at each position, where it is in a span anywhere in the texts."""
    inside = {
        text[at : at + 2]
        for text, some in zip(texts, found, strict=True)
        for span in some
        for at in range(span.start, span.end - 1)
    }
    return [
        [pair if (pair := text[at : at + 2]) in inside else None for at in range(len(text))] for text in texts
    ]


def name_key(word: str) -> str | None:
    """What occurrences of a capitalised word have in common: HEADLINES count as Headlines, abbreviations do not."""
    if len(word) < 2 or not word[0].isupper():
        return None
    return word.capitalize() if word.isupper() and len(word) > CAPITALS else word


class NamesNearby:
    """Whole names that are found in other sentences."""

    def __init__(self, sentences: Sequence[Words], found: Found) -> None:
        """Sentences in their order."""
        self._sentences = sentences
        self._places = defaultdict[Words, list[tuple[int, Span]]](list)
        for n, (words, some) in enumerate(zip(sentences, choose_spans(found, "spans"), strict=True)):
            for span in some:
                name = words[span.start : span.end]
                if len(name) > 1 or name_key(name[0]):
                    self._places[name].append((n, span))
        self._stretches = Stretches(self._places)
        self._occurs = defaultdict[Words, list[int]](list)
        for n, words in enumerate(sentences):
            for begin, end in self._stretches.of(words):
                self._occurs[words[begin:end]].append(n)

    def column(self, sentence: int, near: int) -> list[str]:
        """The type of the longest name at each position, its probability where it occurs, and whether it is found twice."""
        words = self._sentences[sentence]
        seen = []
        for begin, end in self._stretches.of(words):
            name = words[begin:end]
            others = [
                span
                for n, span in self._places[name]
                if abs(n - sentence) <= near and (n, span.start) != (sentence, begin)
            ]
            if others:
                types = Counter[str]()
                for span in others:
                    types[span.label] += span.probability  # type: ignore[assignment]
                numbers = self._occurs[name]
                occurs = bisect_right(numbers, sentence + near) - bisect_left(numbers, sentence - near) - 1
                kind, probability = types.most_common(1)[0]
                sure = level(probability / max(occurs, len(others)))
                seen.append((begin, end, f"{kind} {sure} {'once' if len(others) == 1 else 'again'}"))
        return column(len(words), seen)


class KnownTypes:
    """The types of the words and names of training sentences."""

    def __init__(self, sentences: Sequence[Words], labels: Sequence[Sequence[str]]) -> None:
        """Training sentences in their order, with IOBES labels."""
        self._words = defaultdict[str, list[tuple[int, str]]](list)
        self._names = defaultdict[Words, list[tuple[int, str]]](list)
        for n, (words, some) in enumerate(zip(sentences, labels, strict=True)):
            for word, label in zip(words, some, strict=True):
                if key := name_key(word):
                    self._words[key].append((n, label[2:] or "O"))
            for span in spans(some, "IOBES"):
                self._names[words[span.start : span.end]].append((n, span.label))
        self._stretches = Stretches(self._names)

    def columns(self, words: Words, sentence: int | None) -> list[tuple[str, str]]:
        """Of a sentence, given with its number where it is one of the training data: its words, and whole names."""
        seen = []
        for begin, end in self._stretches.of(words):
            types = _far(self._names[words[begin:end]], sentence)
            seen += [(begin, end, f"{kind} {level(n / types.total())}") for kind, n in types.most_common(1)]
        each = (self._word(name_key(word), sentence) for word in words)
        return list(zip(each, column(len(words), seen), strict=True))

    def _word(self, key: str | None, sentence: int | None) -> str:
        types = _far(self._words.get(key, ()), sentence) if key else Counter[str]()
        total = types.total()
        often = "once" if total == 1 else "some" if total < 5 else "often"
        for kind, n in types.most_common(1):
            return f"{kind} {level(n / total)} {often}"
        return OUTSIDE


def _far(places: Sequence[tuple[int, str]], sentence: int | None) -> Counter[str]:
    """The types of places in other parts of the training data."""
    return Counter(kind for n, kind in places if sentence is None or abs(n - sentence) > FAR)


def column_lines(name: str, number: int) -> Iterator[str]:
    """Lines that read a column of types."""
    for at in range(-1, 2):
        yield f"{name}[{at}]=%x[{at},{number}]"
    yield f"{name}[-1,0]=%x[-1,{number}]|%x[0,{number}]"
    yield f"{name}[0,1]=%x[0,{number}]|%x[1,{number}]"
    yield f"{name}|shape=%x[0,{number}]|%short_shape[0,0]"


def label_lines(name: str, number: int) -> Iterator[str]:
    """Lines that read a column of labels."""
    for at in range(-2, 3):
        yield f"{name}[{at}]=%x[{at},{number}]"
    yield f"{name}[-1,1]=%x[-1,{number}]|%x[0,{number}]|%x[1,{number}]"
    yield f"{name}|word=%x[0,{number}]|%lower[0,0]"
