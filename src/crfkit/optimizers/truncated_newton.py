"""What TRON and Newton share: both solve H s = −g by conjugate gradients, about, with exact Hessian–vector products."""

from dataclasses import dataclass
from typing import ClassVar

from crfkit.optimizers.descent import BatchDescent
from crfkit.optimizers.loop import Optimizer
from crfkit.optimizers.protocols import Objective, Vector, check_settings
from crfkit.optimizers.snapshot import Snapshot

ROUGH = 1e-2  # |g| / |g at the start| from which on gradients are worth all their digits


@dataclass(frozen=True)
class TruncatedNewton(Optimizer):
    """Settings of both."""

    max_iterations: int = 200
    tolerance: float = 1e-3
    change: float = 0.0
    period: int = 1

    needs: ClassVar[frozenset[str]] = frozenset({"value_and_gradient", "hessian_vector"})

    def __post_init__(self) -> None:
        check_settings(self, {"max_iterations": 0, "period": 1}, ("tolerance", "change"))


class NewtonDescent(BatchDescent):
    """A descent that works in double precision near the minimum."""

    def __init__(self, objective: Objective, start: Vector, n_threads: int) -> None:
        super().__init__(objective, start, n_threads)
        self._first_norm = 0.0  # |g| at the start

    def begin(self, start: Vector) -> None:
        """Starts at `start`."""
        super().begin(start)
        self._first_norm = self.point.norm

    def refine_near_minimum(self) -> None:
        """Asks for double precision where the gradient is small enough."""
        if self.objective.is_coarse and self.point.norm <= ROUGH * self._first_norm:
            self.refine()

    def snapshot(self) -> Snapshot:
        """The gradient norm at the start too."""
        numbers, arrays = super().snapshot()
        return Snapshot({**numbers, "first_norm": self._first_norm}, arrays)

    def restore(self, snapshot: Snapshot) -> None:
        """The gradient norm at the start too."""
        super().restore(snapshot)
        self._first_norm = snapshot.number("first_norm")
