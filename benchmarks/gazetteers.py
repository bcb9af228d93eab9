"""Chinese gazetteers: which stretches of a sentence are places, organisations, or names that the training data knows.

A name counts as known in a sentence only where another sentence of the training data has it. Otherwise every name to be
learned would be known, and no name to be found.
"""

from __future__ import annotations

import lzma
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from benchmarks.corpora import corpus_path

LONGEST = 14  # characters of a name that is looked up
LONGEST_ENDING = 4
ENDING_COUNT = 3  # names of other sentences that end so, at least
ENDING_SHARE = 0.03  # of the places where it occurs, at least, a single character ends a name
OPENING_COUNT, OPENING_SHARE = 3, 0.01  # the same of a character before a name
START = "^"  # stands before the first character
OUTSIDE = "-"
KINDS = ("place", "organisation", "known", "ending")


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


class Gazetteers:
    """Places, organisations, endings of organisations, and the names of training data."""

    def __init__(self, texts: Sequence[str], names: Sequence[Sequence[tuple[int, int]]]) -> None:
        """Sentences of the training data, and where their names are: (begin, end) each."""
        self._places = read_list("THUOCL_diming.txt") | read_list("jieba_ns.txt")
        self._organisations = read_list("jieba_nt.txt")
        self._suffixes = read_list("suffix_nt.tsv")
        self._places -= self._organisations | self._suffixes
        self._own: dict[str, list[str]] = defaultdict(list)  # the names of a sentence, by its text
        self._names: Counter[str] = Counter()
        self._endings: Counter[str] = Counter()
        for text, spans in zip(texts, names, strict=True):
            found = [text[begin:end] for begin, end in spans]
            self._own[text] += found
            self._names.update(found)
            self._endings.update(ending for name in found for ending in endings(name))
        characters = Counter(START * len(texts))
        openings: Counter[str] = Counter()
        for text, spans in zip(texts, names, strict=True):
            characters.update(text)
            openings.update((START + text)[begin] for begin, _ in spans)
        self.openings = frozenset(
            before
            for before, count in openings.items()
            if count >= max(OPENING_COUNT, OPENING_SHARE * characters[before])
        )
        frequent = {
            ending
            for ending, count in self._endings.items()
            if count >= max(ENDING_COUNT, ENDING_SHARE * characters[ending])  # 0 for longer ones
        }
        self._entries = {*self._names, *frequent} | self._places | self._organisations | self._suffixes
        self._texts = Counter(  # how often a known name occurs, as a name or otherwise
            part for text in texts for _, _, part in stretches(text, 2, LONGEST) if part in self._names
        )

    def matches(self, text: str) -> list[Match]:
        """Where the gazetteers have entries in a sentence."""
        own = Counter(self._own.get(text, ()))
        own_endings = Counter(ending for name in own.elements() for ending in endings(name))
        found = []
        for begin, end, part in stretches(text, 1, LONGEST):
            if part not in self._entries:
                continue
            if part in self._places:
                found.append(Match(begin, end, "place", ""))
            if part in self._organisations:
                found.append(Match(begin, end, "organisation", ""))
            if end - begin > 1 and self._names[part] > own[part]:
                found.append(Match(begin, end, "known", self._sureness(part, text, own[part])))
            if part in self._suffixes or (
                end - begin <= LONGEST_ENDING and self._endings[part] - own_endings[part] >= ENDING_COUNT
            ):
                found.append(Match(begin, end, "ending", part))
        return found

    def _sureness(self, name: str, text: str, own: int) -> str:
        """How often a known name is a name where it occurs in other sentences."""
        times = self._names[name] - own
        occurs = self._texts[name] - (text.count(name) if text in self._own else 0)
        share = times / max(occurs, times)
        sure = (
            "always" if share > 0.9 else "mostly" if share > 0.5 else "at times" if share > 0.1 else "rarely"
        )
        return sure if times > 1 else f"{sure}, once"


def stretches(text: str, shortest: int, longest: int) -> Iterator[tuple[int, int, str]]:
    """All stretches of so many characters: begin, end, text."""
    for begin in range(len(text) - shortest + 1):
        for end in range(begin + shortest, min(begin + longest, len(text)) + 1):
            yield begin, end, text[begin:end]


def endings(name: str) -> Iterable[str]:
    """The last one to four characters of a name, which may be all of it."""
    return (name[-length:] for length in range(1, min(LONGEST_ENDING, len(name)) + 1))


def columns(text: str, matches: Sequence[Match]) -> list[tuple[str, ...]]:
    """What is seen of the matches at each site: for each kind, where the site lies in the longest match that covers it.

    One tuple for each site, a column for each of KINDS: B, I, E with the detail of the match, or OUTSIDE.
    """
    sites = [[OUTSIDE] * len(KINDS) for _ in text]
    taken = [[False] * len(KINDS) for _ in text]
    for match in sorted(matches, key=lambda match: match.begin - match.end):
        column = KINDS.index(match.kind)
        if any(taken[site][column] for site in range(match.begin, match.end)):
            continue
        for site in range(match.begin, match.end):
            letter = "B" if site == match.begin else "E" if site == match.end - 1 else "I"
            detail = match.detail if match.kind == "known" else ""
            sites[site][column] = f"{letter} {detail}".rstrip()
            taken[site][column] = True
    return [tuple(site) for site in sites]
