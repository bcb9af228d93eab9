"""What a parser says of a treebank, asked once for all sections of a report."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from crfkit.arrays import Float64s
from crfkit.data import Sentence, Word
from crfkit.errors import EmptyDataError
from crfkit.evaluation import TreeReport, evaluate_trees, relation_of
from crfkit.features import check_sentences
from crfkit.models import Parser
from crfkit.report.shared_sections import LEAST

BATCH = 100  # sentences asked for at once

ScoredArc = tuple[int, int, str, float]  # dependent, head, "", probability


class ParsedWord(NamedTuple):
    """A word with its gold and its predicted arc."""

    sentence: int
    number: int  # from 1
    gold: Word
    predicted: Word
    probability: float  # of the predicted arc with its relation
    gold_probability: float

    @property
    def head_is_right(self) -> bool:
        """Whether the head is the gold one."""
        return self.gold.head == self.predicted.head

    @property
    def relation_is_right(self) -> bool:
        """Whether the relation is the gold one, subtypes apart."""
        return relation_of(self.gold) == relation_of(self.predicted)

    @property
    def is_right(self) -> bool:
        """Whether both are, as LAS counts."""
        return self.head_is_right and self.relation_is_right


@dataclass(frozen=True)
class TreeResults:
    """Gold and predicted trees, and the probabilities of arcs."""

    gold: list[Sentence]
    predicted: list[Sentence]
    words: list[list[ParsedWord]]  # of each sentence
    likely_arcs: list[list[ScoredArc]]  # from a probability of LEAST on
    report: TreeReport

    def all_words(self) -> Iterator[ParsedWord]:
        """The words of all sentences."""
        for some in self.words:
            yield from some


def ask_trees(parser: Parser, sentences: Sequence[Sentence], progress: Callable[[str], None]) -> TreeResults:
    """Parse, with the probabilities of arcs."""
    gold = check_sentences(sentences)
    if not gold:
        raise EmptyDataError("there is no sentence to report on")
    progress(f"parsing {len(gold):,} sentences")
    column = {label: k for k, label in enumerate(parser.classes_)}
    predicted, words, likely = list[Sentence](), list[list[ParsedWord]](), list[list[ScoredArc]]()
    for begin in range(0, len(gold), BATCH):
        chunk = gold[begin : begin + BATCH]
        parsed = parser.predict(chunk)
        predicted += parsed
        tables = parser.arc_probabilities(chunk, labelled=True)  # [T + 1, T + 1, R]
        for n, (right, found, table) in enumerate(zip(chunk, parsed, tables, strict=True), begin):
            pairs = enumerate(zip(right.words, found.words, strict=True), 1)
            words.append(
                [
                    ParsedWord(
                        n, i, g, p, _probability(table, column, i, p), _probability(table, column, i, g)
                    )
                    for i, (g, p) in pairs
                ]
            )
            heads = np.minimum(table.sum(axis=2), 1.0)
            likely.append([(int(m), int(h), "", float(heads[h, m])) for h, m in np.argwhere(heads >= LEAST)])
    return TreeResults(gold, predicted, words, likely, evaluate_trees(gold, predicted))


def _probability(table: Float64s, column: dict[str, int], number: int, word: Word) -> float:
    """Of the arc into a word, with its relation; 0 for one that the parser does not know."""
    if word.head is None or word.deprel not in column:
        return 0.0
    return min(float(table[word.head, number, column[word.deprel]]), 1.0)
