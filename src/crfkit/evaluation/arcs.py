"""Heads, relations, tags and lemmas of aligned words, counted as the CoNLL-2018 shared task counts them.

All words count, punctuation too. Subtypes of relations (what follows the colon of `nsubj:pass`) are dropped, and of
the features only the universal ones are compared. A metric compares a word of the system with the gold word that it is
aligned with; its head is right if that is aligned with the head of the gold word.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from crfkit.data import Sentence, Word
from crfkit.evaluation.counts import AlignedCounts

_CONTENT = (
    "nsubj obj iobj csubj ccomp xcomp obl vocative expl dislocated advcl advmod discourse nmod appos nummod acl amod "
    "conj fixed flat compound list parataxis orphan goeswith reparandum root dep"
)
_FUNCTIONAL = "aux cop mark det clf case cc"
_FEATURES = (
    "PronType NumType Poss Reflex Foreign Abbr Gender Animacy Number Case Definite Degree VerbForm Mood Tense Aspect "
    "Voice Evident Polarity Person Polite"
)

CONTENT_RELATIONS = frozenset(_CONTENT.split())
"""The relations of Universal Dependencies between content words."""

FUNCTIONAL_RELATIONS = frozenset(_FUNCTIONAL.split())
"""The relations of function words to the content words that they belong to."""

UNIVERSAL_FEATURES = frozenset(_FEATURES.split())
"""The names of the features that UFeats, AllTags and MLAS compare."""

ROOT = -1  # the place of the root, which is no word

TAG_METRICS = ("Words", "UPOS", "XPOS", "UFeats", "AllTags", "Lemmas")
ARC_METRICS = ("UAS", "LAS", "CLAS", "MLAS", "BLEX")
_OF_CONTENT = frozenset({"CLAS", "MLAS", "BLEX"})


def relation_of(word: Word) -> str:
    """The relation of a word to its head, without its subtype."""
    return word.deprel.partition(":")[0]


def universal_features(word: Word) -> tuple[str, ...]:
    """The features of a word that all languages share, sorted."""
    features = word.feats.split("|")
    return tuple(sorted(part for part in features if part.partition("=")[0] in UNIVERSAL_FEATURES))


@dataclass
class TreebankWords:
    """The words of all sentences in one list; heads and dependents are places in it."""

    words: list[Word] = field(default_factory=list)
    heads: list[int | None] = field(default_factory=list)  # ROOT: the root; None: not given
    relations: list[str] = field(default_factory=list)
    features: list[tuple[str, ...]] = field(default_factory=list)
    functional: list[list[int]] = field(default_factory=list)  # function words that belong to each word

    @classmethod
    def of(cls, sentences: Iterable[Sentence]) -> "TreebankWords":
        """Of sentences whose heads are words of the same sentence, 0 or None."""
        found = cls()
        for sentence in sentences:
            found._add(sentence)
        return found

    def _add(self, sentence: Sentence) -> None:
        begin = len(self.words)
        self.words += sentence.words
        self.relations += map(relation_of, sentence.words)
        self.features += map(universal_features, sentence.words)
        self.functional += ([] for _ in sentence.words)
        for place, word in enumerate(sentence.words, begin):
            if not word.head:
                self.heads.append(ROOT if word.head == 0 else None)
                continue
            head = begin + word.head - 1
            self.heads.append(head)
            if self.relations[place] in FUNCTIONAL_RELATIONS:
                self.functional[head].append(place)

    @property
    def n_content(self) -> int:
        """How many words have a content relation."""
        return sum(relation in CONTENT_RELATIONS for relation in self.relations)


def count_aligned(
    gold: TreebankWords,
    system: TreebankWords,
    aligned: Sequence[int | None],
    metrics: Iterable[str] = TAG_METRICS + ARC_METRICS,
) -> dict[str, AlignedCounts]:
    """Counts of each metric; `aligned` has for each word of the system its gold word, or None."""
    pairs = [(g, s) for s, g in enumerate(aligned) if g is not None]
    content = [(g, s) for g, s in pairs if gold.relations[g] in CONTENT_RELATIONS]
    tests = _Comparison(gold, system, aligned).tests()
    counts = {}
    for name in metrics:
        test = tests[name]
        if name in _OF_CONTENT:
            sizes, compared = (system.n_content, gold.n_content), content
        else:
            sizes, compared = (len(system.words), len(gold.words)), pairs
        counts[name] = AlignedCounts(sum(test(g, s) for g, s in compared), *sizes, aligned=len(compared))
    return counts


class _Comparison:
    """What a gold word (its place) and the word of the system that is aligned with it have in common."""

    def __init__(self, gold: TreebankWords, system: TreebankWords, aligned: Sequence[int | None]) -> None:
        self.gold = gold
        self.system = system
        self.aligned = aligned

    def tests(self) -> dict[str, Callable[[int, int], bool]]:
        """For each metric whether a pair is right."""
        return {
            "Words": lambda g, s: True,
            "UPOS": lambda g, s: self.gold.words[g].upos == self.system.words[s].upos,
            "XPOS": lambda g, s: self.gold.words[g].xpos == self.system.words[s].xpos,
            "UFeats": lambda g, s: self.gold.features[g] == self.system.features[s],
            "AllTags": self.same_tags,
            "Lemmas": self.same_lemma,
            "UAS": self.same_head,
            "LAS": self.same_arc,
            "CLAS": self.same_arc,
            "MLAS": lambda g, s: self.same_arc(g, s) and self.same_morphology(g, s),
            "BLEX": lambda g, s: self.same_arc(g, s) and self.same_lemma(g, s),
        }

    def same_tags(self, g: int, s: int) -> bool:
        a, b = self.gold.words[g], self.system.words[s]
        return (a.upos, a.xpos) == (b.upos, b.xpos) and self.gold.features[g] == self.system.features[s]

    def same_lemma(self, g: int, s: int) -> bool:
        """Any lemma is right where gold has none."""
        return self.gold.words[g].lemma in ("_", self.system.words[s].lemma)

    def same_head(self, g: int, s: int) -> bool:
        """The same gold word, or the root; a head that is not aligned is never right."""
        head = self.system.heads[s]
        if head is None:
            return self.gold.heads[g] is None
        found = ROOT if head == ROOT else self.aligned[head]
        return found is not None and found == self.gold.heads[g]

    def same_arc(self, g: int, s: int) -> bool:
        return self.gold.relations[g] == self.system.relations[s] and self.same_head(g, s)

    def same_morphology(self, g: int, s: int) -> bool:
        """Part of speech, features, and the same function words with theirs."""
        right, found = self.gold.functional[g], self.system.functional[s]
        if len(right) != len(found) or _morphology(self.gold, g) != _morphology(self.system, s):
            return False
        return all(
            self.aligned[b] == a
            and self.gold.relations[a] == self.system.relations[b]
            and _morphology(self.gold, a) == _morphology(self.system, b)
            for a, b in zip(right, found, strict=True)
        )


def _morphology(words: TreebankWords, place: int) -> tuple[Hashable, ...]:
    return words.words[place].upos, words.features[place]
