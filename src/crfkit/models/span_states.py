"""Which models may have states of span labels: the parameter `span_states`."""

from typing import TYPE_CHECKING

from crfkit.errors import ArgumentError, UnsupportedError
from crfkit.features import IOBES
from crfkit.structures import Chain

if TYPE_CHECKING:
    from crfkit.models.settings import CRFSettings


def check_span_states(settings: "CRFSettings") -> None:
    """Refuse what is no value, and settings that do not go with states."""
    asked = settings.span_states
    if asked not in (None, False, IOBES):
        raise ArgumentError(f"span_states is {asked!r}, expected None, False, {IOBES!r}")
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
