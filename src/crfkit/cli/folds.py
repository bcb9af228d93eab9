"""Cross-validation: how well models do on the part of a file that each of them did not see."""

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

from crfkit.cli.columns import Example
from crfkit.cli.constraints import allowing_known
from crfkit.cli.evaluate import evaluate
from crfkit.errors import InputError

if TYPE_CHECKING:
    from crfkit.models import CRF


def check_folds(n: int | None, n_sequences: int) -> None:
    """Refuse more parts than there are sequences."""
    if n is not None and n > n_sequences:
        raise InputError(
            f"--folds {n}: the file has only {n_sequences:,} sequences, expected at most as many"
        )


def cross_validation(
    examples: Sequence[Example], n: int, fitted: "Callable[[Sequence[Example]], CRF]"
) -> Iterator[str]:
    """Lines for people: the scores of each of n models, then their means.

    Model k is trained by `fitted` on all sequences but the k-th, (n + k)-th, (2n + k)-th, …, and evaluated on those.
    Labels that it has not seen count as errors.
    """
    accuracies, f1s = [], []
    for k in range(n):
        rest = [example for i, example in enumerate(examples) if i % n != k]
        try:
            model = fitted(list(allowing_known(rest, {label for x in rest for label in x.labels or ()})))
            part = allowing_known(examples[k::n], {str(label) for label in model.classes_})
            found = evaluate(model, part, allow_unknown=True)
        except InputError as complaint:
            raise InputError(f"--folds {n}, part {k + 1}: {complaint}") from None
        accuracies.append(100 * found.accuracy)
        f1s.append(None if found.spans is None else 100 * found.spans.overall.f1)
        yield f"part {k + 1} of {n}: {_words(accuracies[-1:], f1s[-1:])}"
    yield f"mean of {n}: {_words(accuracies, f1s)}"


def _words(accuracies: Sequence[float], f1s: Sequence[float | None]) -> str:
    """Accuracy, and F1 where every part has spans."""
    words = f"accuracy {_mean(accuracies)}"
    known = [f1 for f1 in f1s if f1 is not None]
    return f"{words}, F1 {_mean(known)}" if len(known) == len(f1s) else words


def _mean(values: Sequence[float]) -> str:
    spread = f" ± {pstdev(values):.2f}" if len(values) > 1 else ""
    return f"{fmean(values):.2f}{spread}"
