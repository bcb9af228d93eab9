"""sklearn-crfsuite's interface: `import crfkit.compat.sklearn_crfsuite as sklearn_crfsuite`, and nothing else changes."""

import importlib
from typing import TYPE_CHECKING

from crfkit.compat.sklearn_crfsuite.estimator import CRF

if TYPE_CHECKING:
    from crfkit.compat.sklearn_crfsuite import compat, metrics, scorers, trainer, utils

__all__ = ["CRF", "compat", "metrics", "scorers", "trainer", "utils"]

if not TYPE_CHECKING:  # scikit-learn is loaded by those who ask for metrics and scorers

    def __getattr__(name: str) -> object:
        """Load a module of this package when it is first asked for."""
        if name in __all__:
            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
