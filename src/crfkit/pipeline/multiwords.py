"""The words of multiword tokens: a dictionary of those that were seen, and rules for others that begin or end alike.

A rule keeps one word of the token, its stem, and knows the others:

    don't → do n't        behind the stem: strip `n't`, add nothing; then the word `n't`
    zum   → zu dem        strip `m`, add nothing; then the word `dem`
    wal   → wa al         before the stem: the word `wa`, strip `w`, add nothing
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from crfkit.pipeline.edit_scripts import common_part

Words = tuple[str, ...]

_LONGEST_AFFIX = 8


class Rule(NamedTuple):
    """What to strip from a token and to add to it, and the words before and behind what is left. All in lower case."""

    before: Words
    strip_front: str
    add_front: str
    strip_end: str
    add_end: str
    after: Words

    @classmethod
    def each(cls, token: str, words: Words) -> "list[Rule]":
        """The rules that make these words of a token, one for each word that may be the stem; the longest stem first."""
        found = []
        for i, word in enumerate(words):
            length, begin, start = common_part(token, word)
            front, end = token[:begin], token[begin + length :]
            rule = cls(words[:i], front, word[:start], end, word[start + length :], words[i + 1 :])
            if length:
                found.append((-length, i, rule))
        return [rule for _, _, rule in sorted(found)]

    def apply(self, token: str) -> Words | None:
        """The words of a token; None where it does not begin or end so, or nothing would be left of it."""
        lower = token.lower()
        front, end = len(self.strip_front), len(token) - len(self.strip_end)
        if not lower.startswith(self.strip_front) or not lower.endswith(self.strip_end) or front >= end:
            return None
        stem: Words = (self.add_front, token[front:end], self.add_end)
        if _is_upper(token):
            stem = tuple(part.upper() for part in stem)
        return (
            *_cased(self.before, token[:front], token),
            "".join(stem),
            *_cased(self.after, token[end:], token),
        )


class MultiwordSplitter:
    """Splits multiword tokens into their words, as a training set does."""

    def __init__(self, counts: Mapping[tuple[str, Words], int]) -> None:
        """Of how often each token, in lower case, had which words, in lower case too."""
        self.counts = dict(sorted(counts.items()))
        self._seen: dict[str, tuple[int, Words]] = {}
        rules: dict[str, Counter[Rule]] = {}
        for (token, words), count in self.counts.items():
            self._seen[token] = max(
                self._seen.get(token, (0, words)), (count, words), key=lambda found: found[0]
            )
            for rule in Rule.each(token, words):
                for affix in _affixes(token, ends=bool(rule.strip_end), begins=bool(rule.strip_front)):
                    rules.setdefault(affix, Counter())[rule] += 1
        self._rules = {affix: [rule for rule, _ in found.most_common()] for affix, found in rules.items()}

    @classmethod
    def learn(cls, pairs: Iterable[tuple[str, Sequence[str]]]) -> "MultiwordSplitter":
        """Of pairs of a token and its words."""
        return cls(Counter((token.lower(), tuple(word.lower() for word in words)) for token, words in pairs))

    def split(self, token: str) -> Words | None:
        """The words of a token; None where nothing that was seen is like it."""
        lower = token.lower()
        if lower in self._seen:
            words = self._seen[lower][1]
            rules = Rule.each(lower, words) if len(lower) == len(token) else []
            return rules[0].apply(token) if rules else words
        for affix in _affixes(lower):
            for rule in self._rules.get(affix, ()):
                words_of_rule = rule.apply(token)
                if words_of_rule is not None and all(words_of_rule):
                    return words_of_rule
        return None


def _affixes(token: str, *, ends: bool = True, begins: bool = True) -> list[str]:
    """Endings and beginnings of a token, the longest first, endings before beginnings of the same length."""
    found = []
    for n in range(min(_LONGEST_AFFIX, len(token)), 0, -1):
        if ends:
            found.append(f"-{token[len(token) - n :]}")
        if begins:
            found.append(f"{token[:n]}-")
    return found


def _cased(words: Words, stripped: str, token: str) -> Words:
    """The words with the capitals of the token: those of the characters that were stripped, where these are the words."""
    if "".join(words) == stripped.lower() and len(stripped) == len(stripped.lower()):
        parts, at = [], 0
        for word in words:
            parts.append(stripped[at : at + len(word)])
            at += len(word)
        return tuple(parts)
    if _is_upper(token):
        return tuple(word.upper() for word in words)
    if words and stripped and token.startswith(stripped) and token[:1].isupper():
        return (words[0][:1].upper() + words[0][1:], *words[1:])
    return words


def _is_upper(token: str) -> bool:
    return token.isupper() and sum(map(str.isalpha, token)) > 1
