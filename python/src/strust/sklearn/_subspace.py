"""The best-fitting subspace."""

# scikit-learn has no type hints.
# mypy: disable-error-code="import-untyped,misc"
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import gen_batches
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_array, check_is_fitted

from strust import _native
from strust.sklearn._shared import (
    Doubles,
    MatrixLike,
    check_count,
    check_number,
    checked,
    native,
    seed,
    warn_if_unfinished,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import Self

# Rows that are projected at a time.
_PIECE = 8192
# Row r of a stream has the weight rᵖ in its variances, as the points have in the average of `Auto`.
_POWER = 3


class SubspaceFitter(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The subspace with the smallest distance to the rows, without a learning rate.

    It minimizes the mean of ‖(I − WWᵀ)(x − m)‖² over matrices W with orthonormal columns, the Stiefel manifold, where m
    is the mean of the rows. The components are rotated within the subspace so that the first has the largest variance,
    so they are those of ``PCA``.

    Parameters
    ----------
    n_components : int, default=2
        The dimension of the subspace.
    max_epochs : int, default=1000
        The most passes over the rows.
    tol : float, default=1e-10
        The fit has converged when the gradient is below `tol` times its largest size, or when 20 steps change the
        distance by less than 1000 times `tol`, relative to itself.
    random_state : int, RandomState instance or None, default=None
        The seed of the start and of the mini-batches.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal directions, by falling variance.
    explained_variance_ : ndarray of shape (n_components,)
        The variance of the rows in each direction.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Its share of the variance in all directions.
    mean_ : ndarray of shape (n_features,)
        The mean of the rows.
    n_iter_ : int
        Epochs made, or calls of `partial_fit`.
    n_samples_seen_ : int
        The number of rows.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X has names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from strust.sklearn import SubspaceFitter
    >>> X, _ = load_iris(return_X_y=True)
    >>> fitter = SubspaceFitter(n_components=2, random_state=0).fit(X)
    >>> fitter.explained_variance_ratio_.round(3)
    array([0.925, 0.053])
    >>> fitter.transform(X).shape
    (150, 2)
    """

    # Of a fitted subspace.
    components_: Doubles
    explained_variance_: Doubles
    explained_variance_ratio_: Doubles
    mean_: Doubles
    n_iter_: int
    n_samples_seen_: int
    n_features_in_: int
    # The number of rows, the sum of squares of all centered rows, and that of their coordinates, a matrix. Earlier rows
    # of a stream count less: their coordinates belong to worse directions.
    _weight: float
    _total: float
    _scatter: Doubles
    # The state of `Auto`, and the number of calls of `partial_fit`.
    _stream: bytes | None
    _calls: int

    def __init__(
        self, n_components: int = 2, *, max_epochs: int = 1000, tol: float = 1e-10, random_state: Any = None
    ) -> None:
        self.n_components = n_components
        self.max_epochs = max_epochs
        self.tol = tol
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def fit(self, X: MatrixLike, y: Any = None) -> Self:
        """Fit the subspace.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : None
            Ignored.

        Returns
        -------
        SubspaceFitter
            The estimator itself.
        """
        rows = checked(self, X, reset=True)
        k = self._components(rows)
        epochs = check_count(self.max_epochs, "max_epochs")
        tolerance = check_number(self.tol, "tol", min_val=0, max_val=1, include_boundaries="neither")
        self.mean_ = np.asarray(rows.mean(axis=0, dtype=np.float64)).ravel()
        frame, made, end = _native.fit_frame(native(rows), self.mean_, k, epochs, tolerance, seed(self.random_state))
        self.n_iter_, self.n_samples_seen_ = max(1, math.ceil(made)), rows.shape[0]
        self._stream, self._calls = None, 0
        frame = frame.reshape(k, -1)
        self._total, self._scatter = self._measured(rows, frame)
        self._weight = float(rows.shape[0])
        self._set_components(frame)
        warn_if_unfinished(self, end, epochs)
        return self

    def partial_fit(self, X: MatrixLike, y: Any = None) -> Self:
        """Continue with one pass over more rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : None
            Ignored.

        Returns
        -------
        SubspaceFitter
            The estimator itself.
        """
        first = not hasattr(self, "components_")
        rows = checked(self, X, reset=first)
        k = check_count(self.n_components, "n_components") if not first else self._components(rows)
        n, mean = rows.shape[0], np.asarray(rows.mean(axis=0, dtype=np.float64)).ravel()
        start: Doubles | None = None
        if first:
            self.mean_, self.n_samples_seen_, self.n_iter_ = mean, 0, 0
            self._stream, self._calls = None, 0
        else:
            if k != len(self.components_):
                raise ValueError(
                    f"n_components={k} is not the {len(self.components_)} of earlier calls of partial_fit."
                )
            start = self.components_
        before, seen = self.mean_, self.n_samples_seen_
        self.mean_ = before + (mean - before) * (n / (seen + n))
        flat, self._stream = _native.stream_frame(
            native(rows),
            self.mean_,
            k,
            seed(self.random_state),
            self._stream,
            None if start is None else np.ascontiguousarray(start).ravel(),
            self._calls,
        )
        frame = flat.reshape(k, -1)
        weight, (total, scatter) = float(n), self._measured(rows, frame)
        # Sums of squares about the new mean: those of earlier rows, in the new directions, and the shift of their mean.
        if start is not None:
            turned, shift, earlier = frame @ start.T, self.mean_ - before, (seen / (seen + n)) ** _POWER
            moved = frame @ shift
            weight += earlier * self._weight
            total += earlier * (self._total + self._weight * float(shift @ shift))
            scatter += earlier * (turned @ self._scatter @ turned.T + self._weight * np.outer(moved, moved))
        self._weight, self._total, self._scatter = weight, total, scatter
        self.n_samples_seen_ = seen + n
        self._calls += 1
        self.n_iter_ += 1
        self._set_components(frame)
        return self

    def transform(self, X: MatrixLike) -> Doubles:
        """The coordinates of rows in the subspace.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            The coordinates.
        """
        check_is_fitted(self)
        return self._coordinates(checked(self, X, reset=False), self.components_)

    def inverse_transform(self, X: ArrayLike) -> Doubles:
        """The points of the subspace with these coordinates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            The coordinates.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            The points.
        """
        check_is_fitted(self)
        coordinates = check_array(X, dtype="float64")
        points: Doubles = coordinates @ self.components_ + self.mean_
        return points

    def _components(self, rows: Any) -> int:
        k = check_count(self.n_components, "n_components")
        n, d = rows.shape
        if k > min(n, d):
            raise ValueError(
                f"n_components={k} must be at most min(n_samples, n_features): n_samples={n}, n_features={d}"
            )
        return k

    def _coordinates(self, rows: Any, frame: Doubles) -> Doubles:
        if issparse(rows):
            sparse: Doubles = safe_sparse_dot(rows, frame.T, dense_output=True) - self.mean_ @ frame.T
            return sparse
        # The mean is subtracted first, so that a large one costs no digits.
        return np.concatenate([(rows[piece] - self.mean_) @ frame.T for piece in gen_batches(rows.shape[0], _PIECE)])

    def _measured(self, rows: Any, frame: Doubles) -> tuple[float, Doubles]:
        """The sums of squares of rows about the mean, in all directions and in those of the frame."""
        coordinates, n = self._coordinates(rows, frame), int(rows.shape[0])
        if isinstance(rows, np.ndarray):
            total = sum(float(np.square(rows[piece] - self.mean_).sum()) for piece in gen_batches(n, _PIECE))
        else:
            sums = np.asarray(rows.sum(axis=0)).ravel()
            total = float(rows.multiply(rows).sum() - 2.0 * (sums @ self.mean_) + n * (self.mean_ @ self.mean_))
        return max(total, 0.0), coordinates.T @ coordinates

    def _set_components(self, frame: Doubles) -> None:
        """Turns the frame to the directions of the largest variance, and chooses their signs."""
        squares, turn = np.linalg.eigh(self._scatter)
        turn = turn[:, ::-1].T
        components = turn @ frame
        largest = np.abs(components).argmax(axis=1)
        signs = np.where(components[np.arange(len(components)), largest] < 0, -1.0, 1.0)
        self.components_ = components * signs[:, None]
        turn = turn * signs[:, None]
        self._scatter = turn @ self._scatter @ turn.T
        squares = np.maximum(squares[::-1], 0.0)
        self.explained_variance_ = squares / max(self._weight - 1, 1)
        self.explained_variance_ratio_ = squares / self._total if self._total > 0 else np.zeros_like(squares)
