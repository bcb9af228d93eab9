"""The section of errors: those that the model was surest of, with their sentences and explanations."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from crfkit.models import CRF
from crfkit.report.label_results import LabelResults
from crfkit.report.label_sections import names_of
from crfkit.report.mistakes import KINDS, Mistake, find_mistakes, mark_words
from crfkit.report.page import Section
from crfkit.report.shared_sections import describe_explanation
from crfkit.structures import Span

COLOURS = 8  # of types; they repeat


def errors(model: CRF[Any], results: LabelResults, *, n_errors: int, n_explanations: int) -> Section:
    """The first `n_errors`, of which `n_explanations` are explained, and the counts of all."""
    found = find_mistakes(results)
    if model.locally_normalised_ or len(model.classes_) < 2:  # which `CRF.explain` is not for
        n_explanations = 0
    names = names_of(results)
    colours = {name: k % COLOURS for k, name in enumerate(names)}
    shown = found[:n_errors]
    return Section(
        "errors",
        "Errors",
        {
            "n_all": len(found),
            "items": [
                _item(model, results, one, explained=k < n_explanations) for k, one in enumerate(shown)
            ],
            "colours": colours,
            "kinds": {kind: title for kind, title in KINDS.items() if any(one.kind == kind for one in found)},
            "types": [name for name in names if any(name in one.types for one in shown)],
            "counts": _counts(found, names) if results.has_spans else None,
        },
    )


def _counts(found: Sequence[Mistake], names: Sequence[str]) -> list[tuple[str, list[int]]]:
    """How many errors of each kind each type has; of a predicted span its type, of a missed one the gold type."""
    counts = Counter((one.types[0], one.kind) for one in found)
    kinds = [kind for kind in KINDS if any(one.kind == kind for one in found)]
    return [(name, [counts[name, kind] for kind in kinds]) for name in names]


def _item(model: CRF[Any], results: LabelResults, one: Mistake, *, explained: bool) -> dict[str, Any]:
    """What the template shows of an error."""
    words = results.words[one.sequence]
    if results.has_spans:
        gold, predicted = results.gold_spans[one.sequence], results.predicted_spans[one.sequence]
    else:
        gold, predicted = list(one.gold), [] if one.predicted is None else [one.predicted]
    return {
        "kind": one.kind,
        "types": one.types,
        "sure": one.sure,
        "number": one.sequence + 1,
        "predicted": None if one.predicted is None else _described(words, one.predicted),
        "gold": [_described(words, span) for span in one.gold],
        "pieces": mark_words(words, gold, predicted, one.span),
        "explanation": _explain(model, results, one) if explained else None,
    }


def _explain(model: CRF[Any], results: LabelResults, one: Mistake) -> dict[str, Any] | None:
    """Why the first wrong label, and not the gold one, or the runner-up where the model does not know that."""
    gold, predicted = results.gold[one.sequence], results.predicted[one.sequence]
    start, end = one.span
    position = next((i for i in range(start, end) if gold[i] != predicted[i]), None)
    if position is None:  # spans may differ while all labels are right, where one begins before them
        return None
    label = {str(name): name for name in model.classes_}
    why = model.explain(
        results.X[one.sequence],
        position,
        label[predicted[position]],
        label.get(gold[position]),
        allowed=None if results.allowed is None else results.allowed[one.sequence],
    )
    return describe_explanation(why, results.words[one.sequence][position], str(why.label), str(why.against))


def _described(words: Sequence[str], span: Span) -> dict[str, Any]:
    text = " ".join(words[span.start : span.end])
    return {"label": str(span.label), "text": text, "p": span.probability}
