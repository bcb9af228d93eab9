"""Words in Chinese text by a dictionary: the most probable cut of a sentence, by the frequency of each word alone.

The dictionary is that of jieba, as the package cjieba carries it: words with their frequencies and parts of speech. Names
that it does not have are cut into single characters, which tells a tagger of characters more than the characters do.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

DICTIONARY = ("cjieba", "dict/jieba.dict.utf8")
NO_WORD, UNKNOWN = "-", "?"


class Word(NamedTuple):
    """A word of a sentence."""

    text: str
    tag: str  # part of speech


class WordCutter:
    """Cuts sentences into words."""

    def __init__(self, entries: dict[str, tuple[int, str]]) -> None:
        """Words, with their frequencies and parts of speech."""
        total = math.log(sum(count for count, _ in entries.values()))
        self._tags = {word: tag for word, (_, tag) in entries.items()}
        self._scores = {word: math.log(max(count, 1)) - total for word, (count, _) in entries.items()}
        self._rare = -total  # of a character that is no word
        self._beginnings = {word[:n] for word in entries for n in range(1, len(word) + 1)}

    @classmethod
    def read(cls) -> WordCutter:
        """The dictionary of the package; ModuleNotFoundError where it is not installed."""
        package, file = DICTIONARY
        found = importlib.util.find_spec(package)
        if found is None or not found.submodule_search_locations:
            raise ModuleNotFoundError(f"the dictionary needs the package {package}: pip install {package}")
        lines = (Path(found.submodule_search_locations[0]) / file).read_text(encoding="utf-8").splitlines()
        rows = (line.split() for line in lines)
        return cls({row[0]: (int(row[1]), row[2]) for row in rows if len(row) == 3})

    def cut(self, text: str) -> list[Word]:
        """The words of the cut with the highest score."""
        n = len(text)
        best = [0.0] * (n + 1)
        ends = [n] * (n + 1)
        for begin in range(n - 1, -1, -1):
            best[begin], ends[begin] = self._rare + best[begin + 1], begin + 1
            for end in range(begin + 1, n + 1):
                part = text[begin:end]
                if part not in self._beginnings:
                    break
                score = self._scores.get(part)
                if score is not None and score + best[end] > best[begin]:
                    best[begin], ends[begin] = score + best[end], end
        words: list[Word] = []
        begin = 0
        while begin < n:
            part = text[begin : ends[begin]]
            words.append(Word(part, self._tags.get(part, UNKNOWN)))
            begin = ends[begin]
        return words


def surnames() -> frozenset[str]:
    """Chinese surnames, of Faker."""
    provider = importlib.import_module("faker.providers.person.zh_CN").Provider
    return frozenset(provider.last_names)


def character_rows(text: str, words: Sequence[Word], known: frozenset[str]) -> list[tuple[str, ...]]:
    """A row for each character.

    Columns: the character; its place in its word, B, I, E or S with the length of the word; that place with the part of
    speech; the word, the one before and the one after it; whether a surname of one or two characters begins here.
    """
    rows: list[tuple[str, ...]] = []
    around = [NO_WORD, *(word.text for word in words), NO_WORD]
    for k, word in enumerate(words):
        length = len(word.text)
        letters = "S" if length == 1 else "B" + "I" * (length - 2) + "E"
        for letter, character in zip(letters, word.text, strict=True):
            at = len(rows)
            surname = 2 if text[at : at + 2] in known else 1 if character in known else 0
            places = (f"{letter}{min(length, 5)}", f"{letter}-{word.tag}")
            rows.append((character, *places, word.text, around[k], around[k + 2], str(surname)))
    return rows
