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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from crfkit.data import Sentence
from crfkit.errors import ShapeError, TreeError
from crfkit.evaluation.arcs import ARC_METRICS, TreebankWords, count_aligned, relation_of
from crfkit.evaluation.counts import Counts


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
    n_labels = n_trees = 0
    n_gold, n_predicted, n_correct = Counter[str](), Counter[str](), Counter[str]()  # arcs by relation
    for right, found in zip(gold, predicted, strict=True):
        _check(right, found)
        whole = True
        for g, p in zip(right.words, found.words, strict=True):
            relation, guess = relation_of(g), relation_of(p)
            correct = g.head == p.head and relation == guess
            whole = whole and correct
            n_labels += relation == guess
            n_gold[relation] += 1
            n_predicted[guess] += 1
            n_correct[relation] += correct
        n_trees += whole
    words, found_words = TreebankWords.of(gold), TreebankWords.of(predicted)
    counts = count_aligned(words, found_words, range(len(words.words)), ARC_METRICS)
    names = sorted(n_gold | n_predicted, key=lambda name: (-n_gold[name], name))
    return TreeReport(
        n_sentences=len(gold),
        n_words=len(words.words),
        n_heads=int(counts["UAS"].correct),
        n_labels=n_labels,
        n_arcs=int(counts["LAS"].correct),
        n_trees=n_trees,
        content=_unaligned(counts["CLAS"]),
        content_morphology=_unaligned(counts["MLAS"]),
        content_lemmas=_unaligned(counts["BLEX"]),
        relations=MappingProxyType(
            {name: Counts(n_correct[name], n_predicted[name], n_gold[name]) for name in names}
        ),
    )


def _unaligned(counts: Counts) -> Counts:
    return Counts(counts.correct, counts.predicted, counts.gold)


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
