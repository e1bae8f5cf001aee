"""scikit-learn's own checks of estimators."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("sklearn")

from sklearn.utils.estimator_checks import parametrize_with_checks

from strust.sklearn import Classifier, Regressor

NETWORK = "a network does not converge to one answer, so it depends on the mini-batches"


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    if not getattr(estimator, "hidden", ()):
        return {}
    return {
        "check_sample_weight_equivalence_on_dense_data": NETWORK,
        "check_sample_weight_equivalence_on_sparse_data": NETWORK,
    }


@parametrize_with_checks(
    [
        Classifier(),
        Classifier(hidden=(8,)),
        Classifier(standardize=False, fit_intercept=False),
        Regressor(),
        Regressor(hidden=(8,)),
        Regressor(nonnegative=True),
    ],
    expected_failed_checks=expected_failed_checks,
)
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)
