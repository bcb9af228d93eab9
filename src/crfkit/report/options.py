"""What a report is to show, and of what."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from crfkit.errors import ArgumentError, ShapeError


@dataclass(frozen=True)
class ReportOptions:
    """The options of `write_report`, whose docstring explains them, and what only some pages say."""

    title: str | None = None
    name: str = "model"
    test_name: str = "test data"
    against: Any = None
    against_name: str = "other model"
    train: Any = None
    learning_curve: Any = None
    words: Sequence[Sequence[str]] | None = None
    allowed: Any = None
    allow_unknown: bool = False
    n_errors: int = 200
    n_explanations: int = 40
    n_samples: int = 10_000
    seed: int = 0
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse numbers that cannot be."""
        for name in ("n_errors", "n_explanations"):
            if getattr(self, name) < 0:
                raise ArgumentError(f"{name} is {getattr(self, name)}, expected a whole number from 0 on")
        if self.n_samples < 1:
            raise ArgumentError(f"n_samples is {self.n_samples}, expected a whole number from 1 on")

    def predictions_of_other(self, X: Sequence[Any]) -> list[Any]:
        """What the other model, or the list that was given in its place, says of the test set."""
        if hasattr(self.against, "predict"):
            allowed = {} if self.allowed is None else {"allowed": self.allowed}
            return list(self.against.predict(X, **allowed))
        if len(self.against) != len(X):
            raise ShapeError(f"against has {len(self.against)} sequences, and X {len(X)}, expected as many")
        return list(self.against)
