"""scikit-learn's own checks of estimators, one by one, as far as they make sense for sequences.

The checks speak of tables with one label a row. `Rows` reads a row as a sequence of one position, so that those about data
can be asked too. Left out are the checks of classifiers, regressors and transformers, which a CRF is none of; of sparse,
complex and one-dimensional tables; of exact wordings; and of default parameters, which there may be no objects.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pytest
import sklearn.utils.estimator_checks

from crfkit import CRF

CHECKS = [
    "all_zero_sample_weights_error",
    "dict_unchanged",
    "do_not_raise_errors_in_init_or_set_params",
    "dont_overwrite_parameters",
    "dtype_object",
    "estimator_cloneable",
    "estimator_repr",
    "estimator_tags_renamed",
    "estimators_dtypes",
    "estimators_fit_returns_self",
    "estimators_overwrite_params",
    "estimators_pickle",
    "estimators_unfitted",
    "f_contiguous_array_estimator",
    "fit2d_1feature",
    "fit2d_1sample",
    "fit_check_is_fitted",
    "fit_idempotent",
    "fit_score_takes_y",
    "get_params_invariance",
    "inplace_ensure_writeable",
    "methods_sample_order_invariance",
    "methods_subset_invariance",
    "mixin_order",
    "no_attributes_set_in_init",
    "non_transformer_estimators_n_iter",
    "pipeline_consistency",
    "positive_only_tag_during_fit",
    "readonly_memmap_input",
    "sample_weight_equivalence_on_dense_data",
    "sample_weights_list",
    "sample_weights_not_an_array",
    "sample_weights_not_overwritten",
    "sample_weights_shape",
    "set_params",
    "supervised_y_2d",
    "valid_tag_types",
]


class Rows(CRF):
    """A CRF whose sequences are the rows of a table, each with one position."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **_: Any) -> Self:
        return super().fit(self._sequences(X), self._labels(y), sample_weight)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, **_: Any) -> Self:
        return super().partial_fit(self._sequences(X), self._labels(y), sample_weight)

    def predict(self, X: Any, **_: Any) -> Any:
        return np.array([labels[0] for labels in super().predict(self._sequences(X))])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **_: Any) -> float:
        return super().score(self._sequences(X), self._labels(y), sample_weight)

    @staticmethod
    def _sequences(X: Any) -> list[Any]:
        return [row[None, :] for row in np.asarray(X, dtype=np.float64)]

    @staticmethod
    def _labels(y: Any) -> list[Any]:
        return [[label] for label in np.ravel(np.asarray(y))]


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_is_content(name: str) -> None:
    check = getattr(sklearn.utils.estimator_checks, f"check_{name}", None)
    if check is None:
        pytest.skip(f"this version of scikit-learn has no check_{name}")
    check("Rows", Rows())
