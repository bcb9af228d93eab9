"""Why a minimisation ended."""

from enum import StrEnum


class StopReason(StrEnum):
    """A code that is its own text: `print(reason)` shows the text."""

    CONVERGED = "the gradient norm fell below the tolerance"
    NO_CHANGE = "the objective no longer changes"
    MAX_ITERATIONS = "the iteration limit was reached"
    NO_IMPROVEMENT = "no better dev score within the patience"
    TIME_BUDGET = "the time budget is used up"
    CALLBACK = "the callback asked to stop"
    NO_DESCENT = "no step lowers the objective any further"
    INTERRUPTED = "interrupted"

    @property
    def converged(self) -> bool:
        """Whether it ended at a minimum, as far as the settings tell."""
        return self in (StopReason.CONVERGED, StopReason.NO_CHANGE)

    @classmethod
    def parse(cls, text: str) -> "StopReason | str":
        """The reason that a text of `Watch.describe` is about; any other text, as models made elsewhere have, is itself."""
        for reason, beginning in (
            (cls.NO_IMPROVEMENT, "no better dev score in "),
            (cls.TIME_BUDGET, "the time budget of "),
        ):
            if text.startswith(beginning):
                return reason
        return cls(text) if text in cls._value2member_map_ else text
