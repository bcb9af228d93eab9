"""What the forms of a word say of its other forms: labels of unknown words by those of words with the same stem.

Where a stem has several endings in the training data, as in `serv-us` (n-smn) and `serv-um` (n-sma), each pair of them is an
exchange: us with n-smn → um with n-sma. Exchanges that enough stems have are rules. An unknown word is split into a stem
and an ending of at least one character; each known word with this stem gives it the labels of the rules from its own ending
and labels to that of the word. The longest stem for which there is a rule counts.

Words are in lower case. Shapes: V words, S endings, R rules.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from crfkit.arrays import Int32s, Int64s, offsets
from crfkit.errors import ArgumentError
from crfkit.lazy import lazy_property

SHORTEST_STEM = 3  # characters
LONGEST_ENDING = 4
_MOST_WORDS = 200  # of a stem: those of more are no forms of one word


@dataclass(frozen=True, eq=False)
class RelatedForms:
    """The labels of known words, and the rules by which they become those of other words."""

    words: tuple[str, ...]  # [V]
    word_ptr: Int64s  # [V + 1] word v has the labels word_ptr[v]:word_ptr[v + 1]
    word_labels: Int32s  # ascending within a word
    endings: tuple[str, ...]  # [S]
    rules: Int32s  # [R, 3] from an ending and a label to an ending
    rule_ptr: Int64s  # [R + 1] which then has the labels rule_ptr[r]:rule_ptr[r + 1]
    rule_labels: Int32s  # ascending within a rule

    def __post_init__(self) -> None:
        """Refuse tables that do not fit together."""
        for n, ptr, labels in (
            (len(self.words), self.word_ptr, self.word_labels),
            (len(self.rules), self.rule_ptr, self.rule_labels),
        ):
            rises = ptr.shape == (n + 1,) and ptr[0] == 0 and np.all(np.diff(ptr) >= 0)
            if not rises or ptr[-1] != len(labels):
                raise ArgumentError("the lists of labels of related forms do not fit their words and rules")
        if self.rules.shape != (len(self.rules), 3) or np.any(self.rules < 0):
            raise ArgumentError("the rules of related forms are damaged")
        if len(self.rules) and self.rules[:, [0, 2]].max() >= len(self.endings):
            raise ArgumentError("a rule of related forms names an ending that does not exist")

    @classmethod
    def learn(cls, words: Sequence[str], pair_words: Int64s, pair_labels: Int64s, least: int) -> RelatedForms:
        """The rules that at least so many stems have. Word `pair_words[p]` has the label `pair_labels[p]`; both ascend."""
        word_ptr = offsets(np.bincount(pair_words, minlength=len(words)))
        labels_of = [pair_labels[a:b].tolist() for a, b in pairwise(word_ptr.tolist())]
        counts: Counter[tuple[str, int, str, int]] = Counter()
        for members in _stems(words).values():
            if len(members) > _MOST_WORDS:
                continue
            known = [(ending, label) for ending, v in members for label in labels_of[v]]
            counts.update((e, a, f, b) for e, a in known for f, b in known if f and e != f)
        kept: dict[tuple[str, int, str], list[int]] = {}
        for e, a, f, b in sorted(rule for rule, n in counts.items() if n >= least):
            kept.setdefault((e, a, f), []).append(b)
        endings = sorted({ending for e, _, f in kept for ending in (e, f)})
        number = {ending: s for s, ending in enumerate(endings)}
        return cls(
            tuple(words),
            word_ptr,
            pair_labels.astype(np.int32),
            tuple(endings),
            np.array([(number[e], a, number[f]) for e, a, f in kept], np.int32).reshape(-1, 3),
            offsets([len(some) for some in kept.values()]),
            np.array([b for some in kept.values() for b in some], np.int32),
        )

    def candidates(self, word: str) -> tuple[int, ...]:
        """The labels of an unknown word, ascending; none where no rule leads to it."""
        for k in range(len(word) - 1, max(SHORTEST_STEM, len(word) - LONGEST_ENDING) - 1, -1):
            found: set[int] = set()
            for ending, v in self._members.get(word[:k], ()):
                for label in self.word_labels[self.word_ptr[v] : self.word_ptr[v + 1]].tolist():
                    r = self._numbers.get((ending, label, word[k:]))
                    if r is not None:
                        found.update(self.rule_labels[self.rule_ptr[r] : self.rule_ptr[r + 1]].tolist())
            if found:
                return tuple(sorted(found))
        return ()

    def renumber(self, ids: Int32s) -> RelatedForms:
        """With other ids of the labels, by the present ones; −1: the label is left out."""
        word_ptr, word_labels = _renumber(self.word_ptr, self.word_labels, ids)
        rules = self.rules.copy()
        rules[:, 1] = ids[rules[:, 1]] if len(rules) else rules[:, 1]
        rule_ptr, rule_labels = _renumber(self.rule_ptr, self.rule_labels, ids)
        kept = np.flatnonzero((rules[:, 1] >= 0) & (np.diff(rule_ptr) > 0))
        parts = [rule_labels[rule_ptr[r] : rule_ptr[r + 1]] for r in kept.tolist()]
        return RelatedForms(
            self.words,
            word_ptr,
            word_labels,
            self.endings,
            rules[kept],
            offsets([len(part) for part in parts]),
            np.concatenate([np.zeros(0, np.int32), *parts]),
        )

    @lazy_property
    def _members(self) -> dict[str, list[tuple[str, int]]]:
        """The endings of each stem, with the numbers of their words."""
        return _stems(self.words)

    @lazy_property
    def _numbers(self) -> dict[tuple[str, int, str], int]:
        """The number of the rule from an ending and a label to an ending."""
        return {
            (self.endings[e], label, self.endings[f]): r
            for r, (e, label, f) in enumerate(self.rules.tolist())
        }


def _stems(words: Sequence[str]) -> dict[str, list[tuple[str, int]]]:
    """The endings of each stem, and the numbers of the words that these make with it."""
    found: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for v, word in enumerate(words):
        for k in _cuts(word):
            found[word[:k]].append((word[k:], v))
    return dict(found)


def _cuts(word: str) -> Iterator[int]:
    """Where a word may be cut into stem and ending, which may be empty."""
    return iter(range(max(SHORTEST_STEM, len(word) - LONGEST_ENDING), len(word) + 1))


def _renumber(ptr: Int64s, labels: Int32s, ids: Int32s) -> tuple[Int64s, Int32s]:
    """Lists with other ids, ascending, without those that are −1."""
    new = ids[labels]
    lists = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))[new >= 0]
    order = np.lexsort((new[new >= 0], lists))
    return offsets(np.bincount(lists, minlength=len(ptr) - 1)), new[new >= 0][order]
