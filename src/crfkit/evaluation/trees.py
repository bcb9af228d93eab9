"""How good predicted dependency trees are, as the CoNLL-2018 shared task counts, on given words.

All words count, punctuation too. Subtypes of relations (what follows the colon of `nsubj:pass`) are dropped.

    UAS             the head is right                                                of all words
    LAS             head and relation are right                                      of all words
    label accuracy  the relation is right                                            of all words
    CLAS            LAS of words with a content relation: nsubj, obj, …, not case, det, punct, …
    MLAS            as CLAS, with the part of speech, the universal features and all function words of the word right
    BLEX            as CLAS, with the lemma right (any, where gold has `_`)

A figure of all words is a share of them. One of content words is an F1: which words these are depends on the relations,
so that gold and prediction have different ones.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from crfkit.data import Sentence, Word
from crfkit.errors import ShapeError, TreeError
from crfkit.evaluation.counts import Counts

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
"""The names of the features that MLAS compares."""


@dataclass(frozen=True)
class TreeReport:
    """All figures of one comparison; the properties are shares from 0 to 1."""

    n_sentences: int
    n_words: int
    n_heads: int  # words with the right head
    n_labels: int  # words with the right relation
    n_arcs: int  # words with both right
    n_trees: int  # sentences with all arcs right
    content: Counts  # arcs of content relations
    content_morphology: Counts  # of these, with tag, features and function words
    content_lemmas: Counts  # of these, with lemma
    relations: Mapping[str, Counts]  # arcs by relation, the most frequent in gold first

    @property
    def uas(self) -> float:
        """Share of words with the right head."""
        return self._share(self.n_heads)

    @property
    def las(self) -> float:
        """Share of words with the right head and relation."""
        return self._share(self.n_arcs)

    @property
    def label_accuracy(self) -> float:
        """Share of words with the right relation."""
        return self._share(self.n_labels)

    @property
    def clas(self) -> float:
        """F1 of arcs of content relations."""
        return self.content.f1

    @property
    def mlas(self) -> float:
        """F1 of arcs of content relations, with tag, features and function words."""
        return self.content_morphology.f1

    @property
    def blex(self) -> float:
        """F1 of arcs of content relations, with lemma."""
        return self.content_lemmas.f1

    def _share(self, count: int) -> float:
        return count / self.n_words if self.n_words else 0.0

    def __str__(self) -> str:
        figures = (
            ("UAS", self.uas),
            ("LAS", self.las),
            ("CLAS", self.clas),
            ("MLAS", self.mlas),
            ("BLEX", self.blex),
            ("label accuracy", self.label_accuracy),
        )
        whole = self.n_trees / self.n_sentences if self.n_sentences else 0.0
        return "\n".join(
            [
                f"words: {self.n_words}; sentences: {self.n_sentences}; wholly correct: {100 * whole:.2f}%",
                *(f"{name} {100 * share:.2f}%" for name, share in figures),
            ]
        )

    def table(self, n_relations: int | None = None) -> str:
        """Precision, recall and F1 of the arcs of each relation as text; `n_relations`: only the first so many."""
        rows = list(self.relations.items())[:n_relations]
        width = max(len(name) for name in ("relation", *dict(rows)))
        lines = [f"{'relation':{width}}  precision   recall       F1    gold  predicted"]
        for name, found in rows:
            shares = (f"{100 * share:8.2f}%" for share in (found.precision, found.recall, found.f1))
            lines.append(f"{name:{width}}  {''.join(shares)}  {found.gold:6}  {found.predicted:9}")
        return "\n".join(lines)


def evaluate_trees(gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> TreeReport:
    """Compare predicted trees with gold ones over the same words, sentence by sentence.

    Sentences with other words, and words without a head, are refused.
    """
    if len(gold) != len(predicted):
        raise ShapeError(
            f"there are {len(gold)} gold sentences and {len(predicted)} predicted ones, expected as many"
        )
    n_words = n_heads = n_labels = n_trees = n_morphology = n_lemmas = 0
    n_gold, n_predicted, n_correct = Counter[str](), Counter[str](), Counter[str]()  # arcs by relation
    for right, found in zip(gold, predicted, strict=True):
        _check(right, found)
        functional, found_functional = _functional(right), _functional(found)
        whole = True
        for number, (g, p) in enumerate(zip(right.words, found.words, strict=True), 1):
            relation, guess = relation_of(g), relation_of(p)
            correct = g.head == p.head and relation == guess
            whole = whole and correct
            n_words += 1
            n_heads += g.head == p.head
            n_labels += relation == guess
            n_gold[relation] += 1
            n_predicted[guess] += 1
            if correct:
                n_correct[relation] += 1
            if correct and relation in CONTENT_RELATIONS:
                same = functional[number] == found_functional[number]
                n_morphology += same and _morphology(g) == _morphology(p)
                n_lemmas += g.lemma in ("_", p.lemma)
        n_trees += whole
    names = sorted(n_gold | n_predicted, key=lambda name: (-n_gold[name], name))
    relations = {name: Counts(n_correct[name], n_predicted[name], n_gold[name]) for name in names}
    of_content = [relations[name] for name in names if name in CONTENT_RELATIONS]
    content = Counts(
        *(sum(getattr(part, kind) for part in of_content) for kind in ("correct", "predicted", "gold"))
    )
    return TreeReport(
        n_sentences=len(gold),
        n_words=n_words,
        n_heads=n_heads,
        n_labels=n_labels,
        n_arcs=n_correct.total(),
        n_trees=n_trees,
        content=content,
        content_morphology=replace(content, correct=n_morphology),
        content_lemmas=replace(content, correct=n_lemmas),
        relations=MappingProxyType(relations),
    )


def relation_of(word: Word) -> str:
    """The relation of a word to its head, without its subtype."""
    return word.deprel.partition(":")[0]


def _functional(sentence: Sentence) -> list[list[Hashable]]:
    """For the root and each word (from 1) the function words that belong to it, with all that MLAS compares."""
    children: list[list[Hashable]] = [[] for _ in range(len(sentence.words) + 1)]
    for number, word in enumerate(sentence.words, 1):
        if word.head is not None and relation_of(word) in FUNCTIONAL_RELATIONS:
            children[word.head].append((number, relation_of(word), _morphology(word)))
    return children


def _morphology(word: Word) -> tuple[str, frozenset[str]]:
    """Part of speech and universal features."""
    features = word.feats.split("|")
    return word.upos, frozenset(
        feature for feature in features if feature.partition("=")[0] in UNIVERSAL_FEATURES
    )


def _check(gold: Sentence, predicted: Sentence) -> None:
    if len(gold.words) != len(predicted.words):
        raise ShapeError(
            f"{gold.source}:{gold.line}: the gold sentence has {len(gold.words)} words and the predicted one "
            f"({predicted.source}:{predicted.line}) {len(predicted.words)}, expected the same words"
        )
    for number, (g, p) in enumerate(zip(gold.words, predicted.words, strict=True), 1):
        if g.form != p.form:
            raise ShapeError(
                f"{gold.place(number)}: word {number} is {g.form!r} in the gold sentence and {p.form!r} in the "
                f"predicted one ({predicted.place(number)}), expected the same words"
            )
        for sentence, word in ((gold, g), (predicted, p)):
            if word.head is None or not 0 <= word.head <= len(sentence.words):
                raise TreeError(
                    f"{sentence.place(number)}: the HEAD of word {number} {word.form!r} is "
                    f"{'missing' if word.head is None else word.head}, expected a number from 0 to {len(sentence.words)}"
                )
