"""What the estimators share: checked input, and the types of the compiled part."""

# scikit-learn has no type hints.
# mypy: disable-error-code="import-untyped"
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_scalar, validate_data

Doubles: TypeAlias = NDArray[np.float64]
Sparse: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32], Doubles, int]
Matrix: TypeAlias = "Doubles | NDArray[np.float32] | Sparse"


def checked(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as an array of floats or a CSR matrix, without a copy if it already is one."""
    return validate_data(
        estimator, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", copy=False
    )


def native(X: Any) -> Matrix:
    """X as the compiled part takes it."""
    if not issparse(X):
        array: Doubles = np.ascontiguousarray(X)
        return array
    if X.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"a sparse matrix can have at most {np.iinfo(np.int32).max} columns, but X has {X.shape[1]}")
    return (
        np.ascontiguousarray(X.indptr, dtype=np.int64),
        np.ascontiguousarray(X.indices, dtype=np.int32),
        np.ascontiguousarray(X.data, dtype=np.float64),
        int(X.shape[1]),
    )


def seed(random_state: Any) -> int:
    """A seed from ``random_state``."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def check_count(value: Any, name: str) -> int:
    """A whole number that is at least 1."""
    return int(check_scalar(value, name, Integral, min_val=1))


def check_number(value: Any, name: str, **limits: Any) -> float:
    """A number within limits."""
    number = float(check_scalar(value, name, Real, **limits))
    if not np.isfinite(number):
        raise ValueError(f"{name} == {number}, must be finite.")
    return number


def warn_if_unfinished(estimator: Any, end: str, epochs: int) -> None:
    """Warn as scikit-learn does if a fit did not converge."""
    name = type(estimator).__name__
    if end == "epochs":
        text = f"{name} did not converge in max_epochs={epochs} epochs. Increase max_epochs, or increase tol."
        warnings.warn(text, ConvergenceWarning, stacklevel=3)
    elif end == "breakdown":
        text = f"The loss of {name} was no longer finite; the model is the last good one. Check X and y for huge numbers."
        warnings.warn(text, ConvergenceWarning, stacklevel=3)
