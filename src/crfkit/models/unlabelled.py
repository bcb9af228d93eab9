"""Training on unlabelled text beside labelled sentences: self-training and tri-training by partial labels.

Positions whose label is sure get it, all others stay unknown (None), so nothing has to be guessed: training sums over the
labels that an unknown position may have.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from crfkit.counts import check_count
from crfkit.errors import ArgumentError, ShapeError, UnsupportedError
from crfkit.features import read_once
from crfkit.models.averaging import average_models
from crfkit.models.checks import make_generator
from crfkit.models.crf import CRF
from crfkit.models.kinds import kind_of

PartialLabels = list[list[Any]]


OUTSIDE = ("O",)  # what a model of few names is sure of nearly everywhere: it would learn to find even fewer


def sure_labels(
    model: CRF[Any], X: Sequence[Any], threshold: float = 0.8, *, unsaid: Collection[Hashable] = OUTSIDE
) -> PartialLabels:
    """The label of each position whose marginal is at least `threshold`, above 0.5; None at all others.

    The labels of `unsaid` stay unknown, too.
    """
    _check_model("model", model)
    _check_threshold(threshold)
    _check_unsaid(unsaid)
    labels = [None if label in unsaid else label for label in model.classes_]
    return [
        [labels[b] if p >= threshold else None for b, p in zip(row.argmax(1), row.max(1), strict=True)]
        for row in model.predict_marginals(X)
    ]


def agreed_labels(
    one: CRF[Any],
    other: CRF[Any],
    X: Sequence[Any],
    threshold: float = 0.8,
    *,
    unsaid: Collection[Hashable] = OUTSIDE,
) -> PartialLabels:
    """The labels that two models are sure of both, and give alike; None at all other positions, as in `sure_labels`."""
    X = _keep(X)
    pairs = zip(*(sure_labels(model, X, threshold, unsaid=unsaid) for model in (one, other)), strict=True)
    return [[a if a == b else None for a, b in zip(*both, strict=True)] for both in pairs]


def self_train(
    crf: CRF[Any],
    X: Sequence[Any],
    y: Sequence[Any],
    unlabelled: Sequence[Any],
    *,
    threshold: float = 0.8,
    rounds: int = 1,
    weight: float = 0.3,
    unsaid: Collection[Hashable] = OUTSIDE,
) -> CRF[Any]:
    """A model like `crf`, trained on sentences with labels, and on unlabelled ones where it is sure of a label.

    After a first model of X and y, each round gives the unlabelled positions whose marginal is at least `threshold` their
    label, and trains on all sentences from the weights so far; an unlabelled one counts `weight`. Labels of `unsaid` are
    not given. `crf` itself stays as it is.
    """
    _check(crf, threshold, rounds, weight, unsaid)
    X, y, unlabelled = _read(crf, X, y, unlabelled)
    model = _copy(crf).fit(X, y)
    for _ in range(rounds):
        found = sure_labels(model, unlabelled, threshold, unsaid=unsaid)
        model = _fit_more(crf, X, y, unlabelled, found, weight, model)
    return model


def tri_train(
    crf: CRF[Any],
    X: Sequence[Any],
    y: Sequence[Any],
    unlabelled: Sequence[Any],
    *,
    threshold: float = 0.8,
    rounds: int = 1,
    weight: float = 0.3,
    unsaid: Collection[Hashable] = OUTSIDE,
    random_state: Any = 0,
) -> CRF[Any]:
    """The mean of three models like `crf`, each taught by what the two others agree on (Zhou and Li 2005).

    They begin with samples of the sentences, drawn with replacement. In each round the unlabelled positions for which two of
    them give the same label, both with a marginal of at least `threshold`, are labelled for the third, which is trained on
    these and on X and y; an unlabelled sentence counts `weight`. Labels of `unsaid` are not given.
    """
    _check(crf, threshold, rounds, weight, unsaid)
    _check_mean(crf)
    random = make_generator(random_state)
    X, y, unlabelled = _read(crf, X, y, unlabelled)
    n = len(y)
    models = []
    for _ in range(3):
        drawn = random.integers(n, size=n).tolist()
        models.append(_copy(crf).fit([X[i] for i in drawn], [y[i] for i in drawn]))
    for _ in range(rounds):
        taught = []
        for i, model in enumerate(models):
            one, other = (models[(i + k) % 3] for k in (1, 2))
            found = agreed_labels(one, other, unlabelled, threshold, unsaid=unsaid)
            taught.append(_fit_more(crf, X, y, unlabelled, found, weight, model))
        models = taught
    return average_models(models)


def _read(crf: CRF[Any], *data: Any) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
    """The sentences with their labels, where these are spans too, and those without; each can be read again."""
    for name, value in zip(("X", "y", "unlabelled"), data, strict=True):
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise ArgumentError(f"{name} is of type {type(value).__name__}, expected a list of sequences")
    X, y, unlabelled = map(_keep, data)
    if len(X) != len(y):
        raise ShapeError(f"X has {len(X):,} sequences but y has {len(y):,}")
    return *kind_of(crf.structure).read_labels(X, y, crf.structure), unlabelled


def _keep(sequences: Any) -> Any:
    """The sequences, which can be read again; other values as they are: reading them reports what they are."""
    if isinstance(sequences, Iterable) and not (
        hasattr(sequences, "__len__") and hasattr(sequences, "__getitem__")
    ):
        return list(read_once(sequences))
    return sequences


def _check_mean(crf: CRF[Any]) -> None:
    """Refuse, before training, models of different data that have no mean."""
    settings = crf._settings()
    given = [name for name in ("facets", "tag_dictionary") if getattr(settings, name)]
    if given:
        raise UnsupportedError(
            f"crf has {' and '.join(given)} (features={crf.features!r}), and models that are trained on different sentences "
            f"have no mean then; expected a CRF with {', '.join(f'{name}=False' for name in given)}, or self_train"
        )


def _fit_more(
    crf: CRF[Any],
    X: Sequence[Any],
    y: Sequence[Any],
    unlabelled: Sequence[Any],
    found: PartialLabels,
    weight: float,
    start: CRF[Any],
) -> CRF[Any]:
    """A model of all sentences with labels, and of those unlabelled ones that have got some."""
    some = [n for n, labels in enumerate(found) if any(label is not None for label in labels)]
    weights = [1.0] * len(y) + [weight] * len(some)
    more = [unlabelled[n] for n in some], [found[n] for n in some]
    return _copy(crf).fit([*X, *more[0]], [*y, *more[1]], sample_weight=weights, start=start)


def _copy(crf: CRF[Any]) -> CRF[Any]:
    return CRF(**crf.get_params(deep=False))


def _check(crf: object, threshold: float, rounds: int, weight: float, unsaid: object) -> None:
    _check_model("crf", crf, ", trained or not")
    _check_threshold(threshold)
    _check_unsaid(unsaid)
    check_count("rounds", rounds)
    if not (_is_number(weight) and 0 < weight < float("inf")):
        raise ArgumentError(f"weight is {weight!r}, expected a number above 0")


def _check_model(name: str, model: object, kind: str = "") -> None:
    if not isinstance(model, CRF):
        raise ArgumentError(f"{name} is of type {type(model).__name__}, expected a CRF{kind}")


def _check_threshold(threshold: float) -> None:
    if not (_is_number(threshold) and 0.5 < threshold <= 1):
        raise ArgumentError(f"threshold is {threshold!r}, expected a number above 0.5, up to 1")


def _check_unsaid(unsaid: object) -> None:
    if isinstance(unsaid, str | bytes) or not isinstance(unsaid, Collection):
        raise ArgumentError(f"unsaid is {unsaid!r}, expected a list of labels")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
