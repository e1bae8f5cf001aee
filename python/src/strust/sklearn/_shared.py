"""What the estimators share: checked input, and the types of the compiled part."""

# scikit-learn has no type hints.
# mypy: disable-error-code="import-untyped"
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_scalar, validate_data

Doubles: TypeAlias = NDArray[np.float64]
Sparse: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32], Doubles, int]
Matrix: TypeAlias = "Doubles | NDArray[np.float32] | Sparse"


class SparseLike(Protocol):
    """A sparse matrix or array of SciPy."""

    def tocsr(self) -> Any:
        """The same in CSR format."""


MatrixLike: TypeAlias = "ArrayLike | SparseLike"


def checked(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as an array of floats or a CSR matrix, without a copy if it already is one."""
    return validate_data(
        estimator, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", copy=False
    )


def native(rows: Any) -> Matrix:
    """Rows as the compiled part takes them."""
    if isinstance(rows, np.ndarray):
        array: Doubles = np.ascontiguousarray(rows)
        return array
    most, inputs = np.iinfo(np.int32).max, int(rows.shape[1])
    if inputs > most:
        raise ValueError(f"a sparse matrix can have at most {most} columns, but X has {inputs}")
    return (
        np.ascontiguousarray(rows.indptr, dtype=np.int64),
        np.ascontiguousarray(rows.indices, dtype=np.int32),
        np.ascontiguousarray(rows.data, dtype=np.float64),
        inputs,
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
    elif end == "no-minimum":
        text = (
            f"The classes can be separated, so the loss of {name} has no minimum without a penalty: the weights would "
            "grow forever. Use a regularization above 0."
        )
        warnings.warn(text, ConvergenceWarning, stacklevel=3)
    elif end == "breakdown":
        text = (
            f"The loss of {name} was no longer finite; the model is the last good one. Check X and y for huge numbers."
        )
        warnings.warn(text, ConvergenceWarning, stacklevel=3)
