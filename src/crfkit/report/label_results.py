"""What a model of labels says of a test set, asked once for all sections of a report."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from crfkit.errors import EmptyDataError, LabelError, ShapeError, UnsupportedError
from crfkit.evaluation import Evaluation, evaluate, scheme_of, spans
from crfkit.models import CRF, kind_of
from crfkit.report.shared_sections import LEAST
from crfkit.report.words import words_of
from crfkit.structures import Span

FAINT = 0.0005  # probability from which on that of a missed span is shown
BATCH = 500  # sequences asked for at once

Progress = Callable[[str], None]  # gets the name of each stage


@dataclass(frozen=True)
class LabelResults:
    """Gold and predicted labels as texts, with their probabilities; one list for each sequence."""

    X: Sequence[Any]
    words: list[list[str]]  # as people read them
    gold: list[list[str]]
    predicted: list[list[str]]
    predicted_probabilities: list[list[float]]  # marginal of each predicted label
    gold_probabilities: list[
        list[float]
    ]  # marginal of each gold label; 0 for one that the model does not know
    evaluation: Evaluation
    gold_spans: list[list[Span]]  # empty lists where labels are not those of spans
    predicted_spans: list[list[Span]]  # of the predicted labels
    faint_spans: list[list[Span]]  # all from a probability of FAINT on
    allowed: Any = None

    @property
    def has_spans(self) -> bool:
        """Whether labels are those of spans."""
        return self.evaluation.spans is not None

    @property
    def likely_spans(self) -> list[list[Span]]:
        """Those from a probability of LEAST on."""
        return [[span for span in some if span.probability >= LEAST] for some in self.faint_spans]

    @property
    def n_positions(self) -> int:
        """Over all sequences."""
        return self.evaluation.n_positions


def ask_labels(
    model: CRF[Any],
    X: Sequence[Any],
    y: Sequence[Any],
    *,
    words: Sequence[Sequence[str]] | None,
    allowed: Any,
    allow_unknown: bool,
    progress: Progress,
) -> LabelResults:
    """Predict labels, their marginals and the probabilities of spans."""
    if kind_of(model.structure).inputs:
        raise UnsupportedError(
            f"a report is about labels of positions, but the model reads {kind_of(model.structure).inputs}"
        )
    X, y = kind_of(model.structure_).read_labels(X, y, model.structure_)
    if not len(X):
        raise EmptyDataError("there is no sequence to report on")
    gold = [[str(label) if _is_label(label) else label for label in labels] for labels in y]
    if not allow_unknown:
        _check_known(gold, {str(label) for label in model.classes_})
    progress(f"tagging {len(X):,} sequences")
    predicted = [[str(label) for label in labels] for labels in model.predict(X, allowed=allowed)]
    scheme = scheme_of({*map(str, model.classes_), *(label for labels in gold for label in labels)})
    evaluation = evaluate(gold, predicted, scheme)
    if scheme is None:
        evaluation = replace(evaluation, spans=None)
    progress("probabilities of labels")
    marginals = list(_marginals(model, X, allowed, predicted, gold))
    scored = evaluation.spans is not None
    if scored:
        progress("probabilities of spans")
    nothing: list[list[Span]] = [[] for _ in gold]
    return LabelResults(
        X,
        _texts(words_of(X) if words is None else words, gold),
        gold,
        predicted,
        [some for some, _ in marginals],
        [some for _, some in marginals],
        evaluation,
        [spans(labels) for labels in gold] if scored else nothing,
        model.predict_spans(X, decode=model.decode_, allowed=allowed) if scored else nothing,
        model.predict_spans(X, FAINT, allowed=allowed) if scored else nothing,
        allowed,
    )


def _texts(words: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> list[list[str]]:
    """The words of each sequence; dashes where there are none."""
    if len(words) != len(gold):
        raise ShapeError(f"words has {len(words)} sequences, and y {len(gold)}, expected as many")
    pairs = zip(words, gold, strict=True)
    return [
        list(map(str, some)) if len(some) == len(labels) else ["–"] * len(labels) for some, labels in pairs
    ]


def _is_label(label: Any) -> bool:
    return label is not None and not isinstance(label, set | frozenset)


def _check_known(gold: Sequence[Sequence[str]], known: Collection[str]) -> None:
    for n, labels in enumerate(gold):
        for i, label in enumerate(labels):
            if _is_label(label) and label not in known:
                raise LabelError(
                    f"sequence {n}, position {i}: the model does not know the label {label!r} "
                    "(allow_unknown counts such labels as errors)"
                )


def _marginals(
    model: CRF[Any], X: Sequence[Any], allowed: Any, *labels: list[list[str]]
) -> Iterator[tuple[list[float], list[float]]]:
    """The marginals of the predicted and of the gold labels of each sequence."""
    column = {str(label): k for k, label in enumerate(model.classes_)}
    for begin in range(0, len(X), BATCH):
        part = slice(begin, begin + BATCH)
        tables = model.predict_marginals(X[part], allowed=None if allowed is None else allowed[part])
        for table, *pair in zip(tables, *(some[part] for some in labels), strict=True):
            predicted, gold = (
                [
                    float(row[column[name]]) if name in column else 0.0
                    for row, name in zip(table, names, strict=True)
                ]
                for names in pair
            )
            yield predicted, gold
