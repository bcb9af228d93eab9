"""How good an analysis of raw text is, from tokens to trees: the evaluation of the CoNLL-2018 shared task.

    Tokens, Sentences   spans of the text without its spaces that are right
    Words               words that are aligned with a gold word
    UPOS, XPOS          of these, with the right tag
    UFeats              with the right universal features
    AllTags             with UPOS, XPOS and universal features right
    Lemmas              with the right lemma (any, where gold has `_`)
    UAS, LAS            with the right head; and the right relation, without its subtype
    CLAS                LAS of words with a content relation: nsubj, obj, …, not case, det, punct, …
    MLAS                as CLAS, with the part of speech, the universal features and all function words of the word right
    BLEX                as CLAS, with the lemma right

Precision is a share of the system's tokens, sentences or words, recall one of the gold ones, F1 their harmonic mean;
aligned accuracy is a share of the gold words that are aligned.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from types import MappingProxyType

from crfkit.data import Sentence, check_tree, read_conllu
from crfkit.errors import InputError
from crfkit.evaluation.alignment import Interval, TokenSpans, align_words, check_texts
from crfkit.evaluation.arcs import ARC_METRICS, TAG_METRICS, TreebankWords, count_aligned
from crfkit.evaluation.counts import AlignedCounts, Counts

TREEBANK_METRICS = ("Tokens", "Sentences", *TAG_METRICS, *ARC_METRICS)
"""The names of the metrics, as the shared task has them."""


@dataclass(frozen=True)
class TreebankReport:
    """All figures of one comparison; `report["LAS"].f1` is one of them, from 0 to 1."""

    counts: Mapping[
        str, Counts
    ]  # AlignedCounts from UPOS on; without those of arcs where a treebank has no heads
    without_heads: str | None = None  # the treebank that has none

    def __getitem__(self, metric: str) -> Counts:
        """The counts of a metric, by its name in the shared task."""
        if metric not in self.counts:
            raise InputError(f"no metric {metric!r}, expected one of {', '.join(self.counts)}")
        return self.counts[metric]

    def __str__(self) -> str:
        lines = ["Metric     | Precision |    Recall |  F1 Score | AligndAcc"]
        lines.append("-----------+-----------+-----------+-----------+-----------")
        for name, counts in self.counts.items():
            shares = [counts.precision, counts.recall, counts.f1]
            if isinstance(counts, AlignedCounts):
                shares.append(counts.aligned_accuracy)
            cells = [f"{100 * share:10.2f}" for share in shares]
            lines.append(" |".join([f"{name:10}", *cells, *[" " * 10] * (4 - len(cells))]).rstrip())
        if self.without_heads is not None:
            lines.append(f"no heads in {self.without_heads}: {', '.join(ARC_METRICS)} are left out")
        return "\n".join(lines)


def evaluate_treebank(
    gold: str | PathLike[str] | Iterable[Sentence], system: str | PathLike[str] | Iterable[Sentence]
) -> TreebankReport:
    """Compare the analysis of a text with the gold one, as the CoNLL-2018 shared task does.

    Both are CoNLL-U files (also .gz, .xz, .bz2) or lists of sentences. Sentences, tokens and words may differ, the
    characters of the text may not, apart from spaces. Where a treebank has no head at all, trees are not compared;
    otherwise each sentence must be a tree with one root.

    >>> from crfkit.data import Word
    >>> gold = [Sentence([Word("can", upos="AUX"), Word("not", upos="PART")])]
    >>> report = evaluate_treebank(gold, [Sentence([Word("cannot", upos="AUX")])])
    >>> report["Tokens"].f1, report["Sentences"].f1
    (0.0, 1.0)
    """
    right, found = _read(gold), _read(system)
    names = (_name(gold, "the gold treebank"), _name(system, "the system's treebank"))
    spans, found_spans = TokenSpans.of(right), TokenSpans.of(found)
    check_texts(spans, found_spans, right, found)
    headless = [name for name, trees in zip(names, (right, found), strict=True) if not _has_trees(trees)]
    metrics = TAG_METRICS if headless else TAG_METRICS + ARC_METRICS
    words, found_words = TreebankWords.of(right), TreebankWords.of(found)
    aligned = align_words(spans, found_spans)
    counts: dict[str, Counts] = {
        "Tokens": _count_spans(spans.tokens, found_spans.tokens),
        "Sentences": _count_spans(spans.sentences, found_spans.sentences),
        **count_aligned(words, found_words, aligned, metrics),
    }
    together = counts["Words"]
    counts["Words"] = Counts(together.correct, together.predicted, together.gold)
    return TreebankReport(MappingProxyType(counts), headless[0] if headless else None)


def _read(source: str | PathLike[str] | Iterable[Sentence]) -> list[Sentence]:
    if isinstance(source, str | PathLike):
        return list(read_conllu(source))
    sentences = list(source)
    for sentence in (found for found in sentences if type(found) is not Sentence):
        kind = type(sentence).__name__
        raise InputError(f"expected a path or a list of crfkit.data.Sentence, found a {kind} in the list")
    return sentences


def _name(source: object, otherwise: str) -> str:
    return str(source) if isinstance(source, str | PathLike) else otherwise


def _has_trees(sentences: Sequence[Sentence]) -> bool:
    """Whether there is a head at all; if so, all sentences must be trees."""
    if all(word.head is None for sentence in sentences for word in sentence.words):
        return False
    for sentence in sentences:
        check_tree(sentence)
    return True


def _count_spans(gold: list[Interval], system: list[Interval]) -> Counts:
    return Counts(len(set(gold) & set(system)), len(system), len(gold))
