"""Which models may have states of span labels: the parameter `span_states`."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from crfkit.errors import ArgumentError, UnsupportedError
from crfkit.features import IOBES, Labels, StateLabels
from crfkit.models.chain_model import ChainModel
from crfkit.optimizers import AUTO
from crfkit.structures import Chain

if TYPE_CHECKING:
    from crfkit.models.settings import CRFSettings


STRAY = 0.05  # the share of spans that may begin with I-X in data of BIO: slips of annotators


def check_span_states(settings: "CRFSettings") -> None:
    """Refuse what is no value, and settings that do not go with states."""
    asked = settings.span_states
    if asked not in (None, False, IOBES, AUTO):
        raise ArgumentError(f"span_states is {asked!r}, expected None, False, {IOBES!r}, {AUTO!r}")
    obstacle = find_states_obstacle(settings)
    if asked == IOBES and obstacle is not None:
        raise UnsupportedError(f"span_states is {IOBES!r}, which does not go with {obstacle}")


def find_states_obstacle(settings: "CRFSettings") -> str | None:
    """What does not go with states of span labels; None: nothing."""
    if not isinstance(settings.structure, Chain):
        return settings.kind.written
    if settings.structure.unseen == "soft":
        return "unseen='soft': pairs of states that are not valid have to be impossible"
    if settings.functions is not None:
        return "feature functions, which are called with labels"
    return "facets of labels" if settings.facets else None


def choose_states(
    written: Labels,
    settings: "CRFSettings",
    base: ChainModel | None,
    count: Callable[[StateLabels], Iterable[tuple[int, int]]],
) -> Labels:
    """The labels of a model, or their states, as the settings or else a base ask for them.

    `count` gives `StateLabels.count_beginnings` of the parts of the training data. "auto" has states of labels of BIO, where
    hardly a span of these begins with I-X: labels of IOB1 stay what they are. Beside bigrams, which say what becomes of such
    sequences, none may.
    """
    asked = settings.span_states
    if base is not None:
        return StateLabels(written) if isinstance(base.labels, StateLabels) else written
    if asked == IOBES:
        return StateLabels(written)
    if asked != AUTO or find_states_obstacle(settings) is not None or not StateLabels.are_for(written):
        return written
    states = StateLabels(written)
    if states.written is not written:  # a type of which no span begins with B-X
        return written
    n_with_b, n_with_i = map(sum, zip(*count(states), strict=True))
    most = 0.0 if settings.chain.bigrams is not None else STRAY * (n_with_b + n_with_i)
    return states if n_with_i <= most else written
