"""Chinese gazetteers: which stretches of a sentence are places, organisations, or (parts of) names that training data know.

A name counts as known in a sentence of the training data only where a sentence far from it has the name. Otherwise every
name to be learned would be known, if only from its own article, and few of those to be found in other articles.
"""

from __future__ import annotations

import lzma
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from benchmarks.corpora import corpus_path

BLOCK = 1_500  # neighbouring sentences: with fewer, more names are known in training data than in articles that are new
LONGEST = 14  # characters of an entry that is looked up
LONGEST_ENDING = 4
ENDING_COUNT = 3  # names of other sentences that end so, at least
ENDING_SHARE = 0.03  # of the places where it occurs, at least, a single character ends a name
OPENING_COUNT, OPENING_SHARE = 3, 0.01  # the same of a character before a name
START = "^"  # stands before the first character
OUTSIDE = "-"
KINDS = (
    "place",
    "organisation",
    "known",
    "tail",
    "head",
    "ending",
)  # tail: what follows a place; head: before an ending

Spans = Sequence[tuple[int, int]]


class Match(NamedTuple):
    """The characters begin:end are in a gazetteer."""

    begin: int
    end: int
    kind: str  # one of KINDS
    detail: str  # how sure a known name is, or which ending it is


def read_list(file: str) -> set[str]:
    """The entries of a gazetteer of at least two characters."""
    with lzma.open(corpus_path("zh_gazetteer", file), "rt", encoding="utf-8") as lines:
        return {entry for line in lines if len(entry := line.split("\t")[0].strip()) > 1}


class Blocks:
    """Where each text of the training data stands: its blocks of sentences, and the blocks beside them."""

    def __init__(self, texts: Sequence[str]) -> None:
        """In the order of the training data."""
        self._near = defaultdict[str, set[int]](set)
        for n, text in enumerate(texts):
            self._near[text].update(range(n // BLOCK - 1, n // BLOCK + 2))

    def near(self, text: str) -> Iterable[int]:
        """The blocks that must not tell anything about a text; none for one that is not in the training data."""
        return self._near.get(text, ())


class SeenElsewhere:
    """How often something is seen in the training data, far from a given sentence."""

    def __init__(self) -> None:
        """Nothing is seen yet."""
        self.counts: Counter[str] = Counter()
        self._by_block = defaultdict[int, Counter[str]](Counter)

    def add(self, sentence: int, parts: Iterable[str]) -> None:
        """What is seen in a sentence, given by its number."""
        own = Counter(parts)
        self.counts.update(own)
        self._by_block[sentence // BLOCK].update(own)

    def times(self, part: str, near: Iterable[int]) -> int:
        """Outside of these blocks."""
        times = self.counts[part]
        return times and times - sum(self._by_block[block][part] for block in near if block in self._by_block)


class Gazetteers:
    """Places, organisations, endings of organisations, and the names of training data."""

    def __init__(self, texts: Sequence[str], names: Sequence[Spans]) -> None:
        """Sentences of the training data, and where their names are: (begin, end) each."""
        self._organisations = read_list("jieba_nt.txt")
        self._suffixes = read_list("suffix_nt.tsv")
        places = read_list("THUOCL_diming.txt") | read_list("jieba_ns.txt")
        self._places = places - self._organisations - self._suffixes
        self._blocks = Blocks(texts)
        self._seen = {kind: SeenElsewhere() for kind in ("known", "ending", "tail", "head", "occurs")}
        characters = Counter(START * len(texts))
        openings: Counter[str] = Counter()
        for n, (text, spans) in enumerate(zip(texts, names, strict=True)):
            found = [text[begin:end] for begin, end in spans]
            self._seen["known"].add(n, found)
            self._seen["ending"].add(n, (ending for name in found for ending in endings(name)))
            self._seen["tail"].add(n, (tail for name in found if len(tail := self._tail(name)) > 1))
            characters.update(text)
            openings.update((START + text)[begin] for begin, _ in spans)
        self.openings = frozenset(_often(openings, OPENING_COUNT, OPENING_SHARE, characters))
        self._endings = self._suffixes.union(
            _often(self._seen["ending"].counts, ENDING_COUNT, ENDING_SHARE, characters)
        )
        for n, (text, spans) in enumerate(zip(texts, names, strict=True)):
            heads = (self._head(text[begin:end]) for begin, end in spans)
            self._seen["head"].add(n, (head for head in heads if len(head) > 1))
        parts = {part for kind in ("known", "tail", "head") for part in self._seen[kind].counts}
        self._entries = parts | self._endings | self._places | self._organisations
        known = self._seen["known"].counts
        for n, text in enumerate(texts):  # known names, as names or otherwise
            self._seen["occurs"].add(n, (part for _, _, part in stretches(text, 2, LONGEST) if part in known))

    def matches(self, text: str) -> list[Match]:
        """Where the gazetteers have entries in a sentence."""
        near = self._blocks.near(text)
        return [
            Match(begin, end, kind, detail)
            for begin, end, part in stretches(text, 1, LONGEST)
            if part in self._entries
            for kind, detail in self._kinds(part, near)
        ]

    def _kinds(self, part: str, near: Iterable[int]) -> Iterator[tuple[str, str]]:
        """What a part of a sentence is, with details."""
        if part in self._places:
            yield "place", ""
        if part in self._organisations:
            yield "organisation", ""
        if part in self._suffixes or (
            part in self._endings and self._seen["ending"].times(part, near) >= ENDING_COUNT
        ):
            yield "ending", part
        if len(part) > 1:
            if times := self._seen["known"].times(part, near):
                yield "known", self._sureness(part, near, times)
            for kind in ("tail", "head"):
                if times := self._seen[kind].times(part, near):
                    yield kind, "once" if times == 1 else "often"

    def _sureness(self, name: str, near: Iterable[int], times: int) -> str:
        """How often a known name is a name where it occurs far away."""
        share = times / max(self._seen["occurs"].times(name, near), times)
        sure = (
            "always" if share > 0.9 else "mostly" if share > 0.5 else "at times" if share > 0.1 else "rarely"
        )
        return sure if times > 1 else f"{sure}, once"

    def _tail(self, name: str) -> str:
        """What follows the longest place at the beginning of a name; empty where there is none."""
        for end in range(len(name) - 1, 1, -1):
            if name[:end] in self._places:
                return name[end:]
        return ""

    def _head(self, name: str) -> str:
        """What stands before the longest ending of a name; empty where there is none."""
        for begin in range(max(len(name) - LONGEST_ENDING, 1), len(name)):
            if name[begin:] in self._endings:
                return name[:begin]
        return ""


def stretches(text: str, shortest: int, longest: int) -> Iterator[tuple[int, int, str]]:
    """All stretches of so many characters: begin, end, text."""
    for begin in range(len(text) - shortest + 1):
        for end in range(begin + shortest, min(begin + longest, len(text)) + 1):
            yield begin, end, text[begin:end]


def endings(name: str) -> Iterable[str]:
    """The last one to four characters of a name, which may be all of it."""
    return (name[-length:] for length in range(1, min(LONGEST_ENDING, len(name)) + 1))


def _often(counts: Counter[str], least: int, share: float, characters: Counter[str]) -> Iterator[str]:
    """What is counted often, single characters also for how often they occur."""
    for part, count in counts.items():
        if count >= max(least, share * characters[part]):
            yield part


def columns(text: str, matches: Sequence[Match]) -> list[tuple[str, ...]]:
    """What is seen of the matches at each position: for each kind, where it lies in the longest match that covers it.

    One tuple for each position, a column for each of KINDS: B, I, E, or S with how sure the match is, or OUTSIDE.
    """
    positions = [[OUTSIDE] * len(KINDS) for _ in text]
    for match in sorted(matches, key=lambda match: match.begin - match.end):
        column = KINDS.index(match.kind)
        if any(positions[position][column] != OUTSIDE for position in range(match.begin, match.end)):
            continue
        detail = "" if match.kind == "ending" else match.detail
        length = match.end - match.begin
        letters = "S" if length == 1 else "B" + "I" * (length - 2) + "E"
        for position, letter in enumerate(letters, match.begin):
            positions[position][column] = f"{letter} {detail}".rstrip()
    return [tuple(position) for position in positions]
