"""The sections of a report on the model itself: its training history, and its strongest weights."""

from collections.abc import Sequence
from typing import Any

from crfkit.models import (
    CRF,
    Estimator,
    heaviest_features,
    heaviest_of_structure,
    heaviest_outputs,
    heaviest_patterns,
    transition_weights,
)
from crfkit.optimizers import History
from crfkit.report.page import Section
from crfkit.report.plots import draw_history

LABELS = 40  # with lists of features
MATRIX = 20  # labels whose transitions make a table
N_TRANSITIONS = 30


def history(model: Estimator, dev_name: str) -> Section | None:
    """The objective and the dev score of each iteration; None for a model that has no history."""
    records = History(model.history_)
    if len(records) < 2:
        return None
    best = max(
        (record for record in records if record.dev_score is not None),
        key=lambda record: record.dev_score or 0.0,
        default=None,
    )
    return Section(
        "history",
        "Training",
        {
            "plot": draw_history(records, f"dev {dev_name}"),
            "records": _thinned(records),
            "best": best,
            "dev_name": dev_name,
            "stop": model.stop_message_,
            "optimizer": str(getattr(model, "optimizer_", model.get_params(deep=False)["optimizer"])),
        },
    )


def _thinned(records: Sequence[Any], most: int = 25) -> list[Any]:
    """Some of the records, the first and the last among them."""
    step = max(1, -(-len(records) // most))
    kept = list(records[::step])
    return kept if kept[-1] == records[-1] else [*kept, records[-1]]


def features(model: CRF[Any], names: Sequence[str], n: int = 12) -> Section | None:
    """The strongest features of the labels, in this order; None for a model without such features."""
    by_name = {str(label): label for label in model.classes_}
    labels = [name for name in names if name in by_name][:LABELS]
    lists = [(name, heaviest_features(model, by_name[name], n)) for name in labels]
    lists += [
        ("(feature functions)", heaviest_outputs(model, n)),
        ("(patterns)", heaviest_patterns(model, n)),
        ("(structure)", heaviest_of_structure(model, n)),
    ]
    lists = [(name, found) for name, found in lists if found]
    if not lists:
        return None
    largest = max(abs(one.weight) for _, found in lists for one in found) or 1.0
    return Section("features", "Strongest features", {"lists": lists, "largest": largest})


def transitions(model: CRF[Any], names: Sequence[str]) -> Section | None:
    """The weights of transitions: a table where there are few labels, else the largest ones."""
    found = [one for one in transition_weights(model) if one.weight]
    if not found:
        return None
    weights = {(_end(one.before), _end(one.after)): one.weight for one in found}
    known = {str(end) for pair in weights for end in pair if end is not None}
    labels: list[str | None] = [name for name in names if name in known]
    labels += sorted(known - set(names))
    table = None
    if len(labels) <= MATRIX:
        befores = [*labels, None] if any(before is None for before, _ in weights) else labels
        afters = [*labels, None] if any(after is None for _, after in weights) else labels
        table = {
            "afters": ["(end)" if after is None else after for after in afters],
            "rows": [
                ("(start)" if before is None else before, [weights.get((before, after)) for after in afters])
                for before in befores
            ],
        }
    listed = [
        (
            "(start)" if one.before is None else one.before,
            "(end)" if one.after is None else one.after,
            one.weight,
        )
        for one in found[:N_TRANSITIONS]
    ]
    largest = max(abs(one.weight) for one in found)
    return Section("transitions", "Transitions", {"table": table, "listed": listed, "largest": largest})


def _end(label: Any) -> str | None:
    return None if label is None else str(label)
