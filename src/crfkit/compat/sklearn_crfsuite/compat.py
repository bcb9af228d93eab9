"""scikit-learn's `BaseEstimator`, and an empty class of this name where scikit-learn is not installed."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:

    class BaseEstimator:
        """What estimators of scikit-learn have in common."""

else:
    try:
        from sklearn.base import BaseEstimator
    except ImportError:

        class BaseEstimator:
            """Nothing: `crfkit.models.Estimator` has the parameters by name."""


__all__ = ["BaseEstimator"]
