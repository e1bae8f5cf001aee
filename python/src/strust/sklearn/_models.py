"""Linear models and networks."""

# scikit-learn has no type hints.
# mypy: disable-error-code="import-untyped,misc,untyped-decorator"
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportUntypedFunctionDecorator=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_array, gen_batches
from sklearn.utils.extmath import safe_sparse_dot, softmax
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

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
    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Self

    from strust._native import ModelOptions

# Rows whose hidden units are computed at a time.
_PIECE = 8192


class _Model(BaseEstimator):
    """A linear model or a network: what classifiers and regressors share."""

    # Of a fitted model.
    coef_: Any
    intercept_: Any
    coefs_: list[Doubles]
    intercepts_: list[Doubles]
    n_features_in_: int
    n_iter_: int
    loss_curve_: list[float]
    # The weights as the method computes with them, for inputs (v − shift)/scale and a target (y − shift)/scale.
    _flat: Doubles
    _units: tuple[Doubles, Doubles]
    _target: tuple[float, float]
    # The state of `Auto`, the weight of the rows and the number of calls of `partial_fit`.
    _stream: bytes | None
    _seen: float
    _calls: int

    def __init__(
        self,
        hidden: Sequence[int] = (),
        *,
        regularization: float = 1.0,
        fit_intercept: bool = True,
        standardize: bool = True,
        nonnegative: bool = False,
        sum_to_one: bool = False,
        unit_norm: bool = False,
        max_epochs: int = 1000,
        tol: float = 1e-10,
        validation_fraction: float = 0.1,
        random_state: Any = None,
    ) -> None:
        self.hidden = hidden
        self.regularization = regularization
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.nonnegative = nonnegative
        self.sum_to_one = sum_to_one
        self.unit_norm = unit_norm
        self.max_epochs = max_epochs
        self.tol = tol
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _constrained(self) -> bool:
        return bool(self.nonnegative or self.sum_to_one or self.unit_norm)

    def _options(self, loss: str, outputs: int) -> ModelOptions:
        """The parameters, checked."""
        hidden = [check_count(width, "a width in hidden") for width in _sequence(self.hidden)]
        if self._constrained() and (hidden or outputs > 1):
            raise ValueError(
                "nonnegative, sum_to_one and unit_norm are for models with one output and without hidden layers: "
                "regressions, and classifiers of two classes"
            )
        if hidden and not self.fit_intercept:
            raise ValueError("fit_intercept=False is for linear models: use hidden=(), a network always has intercepts")
        return {
            "loss": loss,
            "outputs": outputs,
            "hidden": hidden,
            "l2": check_number(self.regularization, "regularization", min_val=0),
            "intercept": bool(self.fit_intercept),
            "nonnegative": bool(self.nonnegative),
            "sum_to_one": bool(self.sum_to_one),
            "unit_norm": bool(self.unit_norm),
            "target_scale": self._target[1],
            "epochs": check_count(self.max_epochs, "max_epochs"),
            "tolerance": check_number(self.tol, "tol", min_val=0, max_val=1, include_boundaries="neither"),
            "validation": check_number(
                self.validation_fraction, "validation_fraction", min_val=0, max_val=1, include_boundaries="left"
            ),
            "seed": seed(self.random_state),
        }

    def _learn(self, rows: Any, goals: Doubles, weights: Doubles | None, loss: str, outputs: int) -> None:
        """Fit from the start."""
        options, matrix = self._options(loss, outputs), native(rows)
        self._units = _native.input_units(matrix, weights, options["intercept"], bool(self.standardize))
        flat, epochs, end, scores = _native.fit_model(matrix, goals, weights, self._units, options)
        self._flat, self._stream, self._calls = flat, None, 0
        self._seen = float(len(goals) if weights is None else weights.sum())
        self.n_iter_ = max(1, math.ceil(epochs))
        self.loss_curve_ = scores
        self._set_layers(options["hidden"], outputs)
        warn_if_unfinished(self, end, options["epochs"])

    def _learn_more(self, rows: Any, goals: Doubles, weights: Doubles | None, loss: str, outputs: int) -> None:
        """One pass over more rows."""
        options, matrix = self._options(loss, outputs), native(rows)
        if not hasattr(self, "_flat"):
            self._units = _native.input_units(matrix, weights, options["intercept"], bool(self.standardize))
            self._stream, self._seen, self._calls, self.n_iter_, self.loss_curve_ = None, 0.0, 0, 0, []
        start: Doubles | None = getattr(self, "_flat", None)
        self._flat, self._stream = _native.stream_model(
            matrix, goals, weights, self._units, options, self._stream, start, self._seen, self._calls
        )
        self._seen += float(len(goals) if weights is None else weights.sum())
        self._calls += 1
        self.n_iter_ += 1
        self._set_layers(options["hidden"], outputs)

    def _set_layers(self, hidden: Sequence[int], outputs: int) -> None:
        """The weights in the units of X and y."""
        (shift, scale), (target_shift, target_scale) = self._units, self._target
        widths = [len(shift), *hidden, outputs]
        coefs: list[Doubles] = []
        intercepts: list[Doubles] = []
        start = 0
        for inputs, units in pairwise(widths):
            end = start + inputs * units
            coefs.append(self._flat[start:end].reshape(inputs, units).copy())
            intercepts.append(self._flat[end : end + units].copy())
            start = end + units
        coefs[0] /= scale[:, None]
        intercepts[0] -= shift @ coefs[0]
        coefs[-1] *= target_scale
        intercepts[-1] *= target_scale
        intercepts[-1] += target_shift
        if hidden:
            self.coefs_, self.intercepts_ = coefs, intercepts
        else:
            self._set_linear(coefs[0].T, intercepts[0])

    def _set_linear(self, coef: Doubles, intercept: Doubles) -> None:
        raise NotImplementedError

    def _outputs(self, X: MatrixLike) -> Doubles:
        """The outputs of the last layer, one column each."""
        check_is_fitted(self)
        rows = checked(self, X, reset=False)
        if hasattr(self, "coef_"):
            coef = np.atleast_2d(self.coef_)
            linear: Doubles = np.asarray(safe_sparse_dot(rows, coef.T, dense_output=True) + self.intercept_)
            return linear
        pieces = [self._network(rows[piece]) for piece in gen_batches(rows.shape[0], _PIECE)]
        return np.concatenate(pieces)

    def _network(self, rows: Any) -> Doubles:
        outputs: Doubles = safe_sparse_dot(rows, self.coefs_[0], dense_output=True) + self.intercepts_[0]
        for coef, intercept in zip(self.coefs_[1:], self.intercepts_[1:], strict=True):
            outputs = np.maximum(outputs, 0.0) @ coef + intercept
        return outputs


def _can_stream(estimator: _Model) -> bool:
    if estimator._constrained():  # pyright: ignore[reportPrivateUsage]
        raise AttributeError("partial_fit cannot keep nonnegative, sum_to_one or unit_norm: use fit")
    return True


class Classifier(ClassifierMixin, _Model):
    """Logistic or softmax regression, or a network, without a learning rate.

    Parameters
    ----------
    hidden : sequence of int, default=()
        The widths of the hidden layers max(0, Wa + b). Without them the model is linear.
    regularization : float, default=1.0
        L in (Σ wᵢ·loss + (L/2)‖W‖²)/Σ wᵢ, where W are the weights of the standardized inputs. It is 1/C of
        ``LogisticRegression`` on standardized inputs.
    fit_intercept : bool, default=True
        Whether a linear model has intercepts. They are not penalized.
    standardize : bool, default=True
        Whether inputs are divided by their deviation, or by their largest size if X is sparse. The weights of the
        fitted model are in the units of X.
    nonnegative, sum_to_one, unit_norm : bool, default=False
        Constraints wⱼ ≥ 0, Σwⱼ = 1 and Σwⱼ² = 1 on ``coef_``, for linear models of two classes.
    max_epochs : int, default=1000
        The most passes over the rows; of a linear model the most steps, each on all rows.
    tol : float, default=1e-10
        A linear model has converged when its objective is above the minimum by at most this share of it. With
        constraints, when the gradient is below `tol` times its largest size, or when 20 steps change the objective by
        less than `tol`, relative to itself.
    validation_fraction : float, default=0.1
        The share of rows that a network does not learn from. It ends when the loss on them no longer improves. With 0
        it ends when the loss on all rows no longer improves.
    random_state : int, RandomState instance or None, default=None
        The seed of the start, of the mini-batches and of the rows held out. A linear model does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The weights of a linear model.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercepts of a linear model.
    coefs_, intercepts_ : list of ndarray
        The weights and the intercepts of the layers of a network.
    n_iter_ : int
        Epochs made, steps of a linear model, or calls of `partial_fit`.
    loss_curve_ : list of float
        The objective of a linear model by step, or the loss of a network on the rows held out by round.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X has names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from strust.sklearn import Classifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = Classifier().fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    >>> round(model.score(X, y), 2)
    0.97
    """

    classes_: NDArray[Any]

    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            The classes.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 counts like two equal rows, and a weight of 0 like none.

        Returns
        -------
        Classifier
            The estimator itself.
        """
        _forget(self)
        rows = checked(self, X, reset=True)
        labels, weights = _labels(rows, y), _weights(rows, sample_weight)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        _check_classes(codes if weights is None else codes[weights > 0], labels)
        self._learn(rows, codes.astype(np.float64), weights, *self._loss())
        return self

    @available_if(_can_stream)
    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Continue with one pass over more rows.

        The inputs are standardized by the rows of the first call.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            The classes.
        classes : array-like of shape (n_classes,), default=None
            All classes that will come; needed in the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        Classifier
            The estimator itself.
        """
        first = not hasattr(self, "_flat")
        rows = checked(self, X, reset=first)
        labels = _labels(rows, y)
        known = None if classes is None else np.unique(column_or_1d(classes))
        if first:
            if known is None:
                raise ValueError("classes must name all classes in the first call of partial_fit.")
            if len(known) < 2:
                raise ValueError(f"classes must name at least two classes, but names {len(known)}.")
            self.classes_ = known
        elif known is not None and not np.array_equal(known, self.classes_):
            raise ValueError(f"classes={known} is not the same as in earlier calls: {self.classes_}.")
        codes = np.minimum(np.searchsorted(self.classes_, labels), len(self.classes_) - 1)
        unknown = labels[self.classes_[codes] != labels]
        if len(unknown) > 0:
            raise ValueError(f"y has the class {unknown[0]}, which is not one of {self.classes_}.")
        self._learn_more(rows, codes.astype(np.float64), _weights(rows, sample_weight), *self._loss())
        return self

    def _loss(self) -> tuple[str, int]:
        self._target = (0.0, 1.0)
        return ("logistic", 1) if len(self.classes_) == 2 else ("softmax", len(self.classes_))

    def _set_linear(self, coef: Doubles, intercept: Doubles) -> None:
        self.coef_, self.intercept_ = np.ascontiguousarray(coef), intercept

    def decision_function(self, X: MatrixLike) -> Doubles:
        """The outputs of the model: log-odds of the second class of two, or one number for each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The class of the largest number is predicted; of two classes the second if the number is positive.
        """
        outputs = self._outputs(X)
        return outputs[:, 0] if len(self.classes_) == 2 else outputs

    def predict_proba(self, X: MatrixLike) -> Doubles:
        """The probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            The probabilities, in the order of `classes_`.
        """
        outputs = self._outputs(X)
        if len(self.classes_) == 2:
            return np.column_stack([expit(-outputs), expit(outputs)])
        probabilities: Doubles = softmax(outputs, copy=False)
        return probabilities

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """The most probable class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            The classes.
        """
        outputs = self._outputs(X)
        codes = (outputs[:, 0] > 0).astype(int) if len(self.classes_) == 2 else outputs.argmax(axis=1)
        predicted: NDArray[Any] = self.classes_[codes]
        return predicted


class Regressor(RegressorMixin, _Model):
    """Ridge regression, or a network with squared loss, without a learning rate.

    Parameters
    ----------
    hidden : sequence of int, default=()
        The widths of the hidden layers max(0, Wa + b). Without them the model is linear.
    regularization : float, default=1.0
        L in (Σ wᵢ·½(z − y)² + (L/2)‖W‖²)/Σ wᵢ, where W are the weights of the standardized inputs and y is the
        standardized target. It is ``alpha`` of ``Ridge`` on standardized inputs.
    fit_intercept : bool, default=True
        Whether a linear model has an intercept. It is not penalized.
    standardize : bool, default=True
        Whether inputs are divided by their deviation, or by their largest size if X is sparse. The weights of the
        fitted model are in the units of X and y.
    nonnegative, sum_to_one, unit_norm : bool, default=False
        Constraints wⱼ ≥ 0, Σwⱼ = 1 and Σwⱼ² = 1 on ``coef_`` of a linear model.
    max_epochs : int, default=1000
        The most passes over the rows; of a linear model the most steps, each on all rows.
    tol : float, default=1e-10
        A linear model has converged when its objective is above the minimum by at most this share of it. With
        constraints, when the gradient is below `tol` times its largest size, or when 20 steps change the objective by
        less than `tol`, relative to itself.
    validation_fraction : float, default=0.1
        The share of rows that a network does not learn from. It ends when the loss on them no longer improves. With 0
        it ends when the loss on all rows no longer improves.
    random_state : int, RandomState instance or None, default=None
        The seed of the start, of the mini-batches and of the rows held out. A linear model does not depend on it.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights of a linear model.
    intercept_ : float
        The intercept of a linear model.
    coefs_, intercepts_ : list of ndarray
        The weights and the intercepts of the layers of a network.
    n_iter_ : int
        Epochs made, steps of a linear model, or calls of `partial_fit`.
    loss_curve_ : list of float
        The objective of a linear model by step, or the loss of a network on the rows held out by round.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X has names.

    Examples
    --------
    >>> import numpy as np
    >>> from strust.sklearn import Regressor
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = Regressor(regularization=0).fit(X, [1, 3, 5, 7])
    >>> model.coef_.round(6), round(model.intercept_, 6)
    (array([2.]), 1.0)

    Shares that add up to 1:

    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> model = Regressor(regularization=0, nonnegative=True, sum_to_one=True, fit_intercept=False)
    >>> model.fit(X, [2.0, 0.5, 2.0]).coef_
    array([1., 0.])
    """

    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            The targets.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 counts like two equal rows, and a weight of 0 like none.

        Returns
        -------
        Regressor
            The estimator itself.
        """
        _forget(self)
        rows = checked(self, X, reset=True)
        targets, weights = _numbers(rows, y), _weights(rows, sample_weight)
        self._set_target(targets, weights)
        self._learn(rows, self._goals(targets), weights, "squares", 1)
        return self

    @available_if(_can_stream)
    def partial_fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Continue with one pass over more rows.

        The inputs and the target are standardized by the rows of the first call.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            The targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        Regressor
            The estimator itself.
        """
        first = not hasattr(self, "_flat")
        rows = checked(self, X, reset=first)
        targets, weights = _numbers(rows, y), _weights(rows, sample_weight)
        if first:
            self._set_target(targets, weights)
        self._learn_more(rows, self._goals(targets), weights, "squares", 1)
        return self

    def _set_target(self, y: Doubles, weights: Doubles | None) -> None:
        # Without an intercept, a mean of the target would be one.
        mean = float(np.average(y, weights=weights)) if self.fit_intercept else 0.0
        scale = math.sqrt(float(np.average(np.square(y - mean), weights=weights)))
        known = math.isfinite(scale) and scale > 1e-14 * abs(mean)
        self._target = (mean, scale if known else 1.0)

    def _goals(self, y: Doubles) -> Doubles:
        mean, scale = self._target
        return (y - mean) / scale

    def _set_linear(self, coef: Doubles, intercept: Doubles) -> None:
        self.coef_, self.intercept_ = np.ascontiguousarray(coef[0]), float(intercept[0])

    def predict(self, X: MatrixLike) -> Doubles:
        """The predicted numbers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            The predictions.
        """
        return self._outputs(X)[:, 0]


def _forget(estimator: _Model) -> None:
    """Remove what another model left: a linear one has other attributes than a network."""
    for name in ("coef_", "intercept_", "coefs_", "intercepts_", "_flat"):
        if hasattr(estimator, name):
            delattr(estimator, name)


def _sequence(hidden: Any) -> Sequence[Any]:
    if isinstance(hidden, (str, bytes)) or not isinstance(hidden, (Sequence, np.ndarray)):
        raise TypeError(f"hidden must be a sequence of widths such as (100,), but is {hidden!r}")
    return list(hidden)


def _weights(rows: Any, sample_weight: Any) -> Doubles | None:
    if sample_weight is None:
        return None
    weights: Doubles = check_array(sample_weight, ensure_2d=False, dtype="float64", input_name="sample_weight")
    if weights.ndim != 1 or len(weights) != rows.shape[0]:
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected ({rows.shape[0]},)!")
    if (weights < 0).any():
        raise ValueError("Negative values in data passed to `sample_weight`")
    if not weights.any():
        raise ValueError("sample_weight must contain at least one weight that is not zero")
    return np.ascontiguousarray(weights)


def _labels(rows: Any, y: Any) -> NDArray[Any]:
    if y is None:
        raise ValueError("Classifier requires y to be passed, but the target y is None.")
    check_classification_targets(y)
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    check_consistent_length(rows, labels)
    return labels


def _check_classes(codes: NDArray[np.intp], labels: NDArray[Any]) -> None:
    if len(np.unique(codes)) < 2:
        raise ValueError(f"Classifier needs rows of at least 2 classes, but the data have only one class: {labels[0]}")


def _numbers(rows: Any, y: Any) -> Doubles:
    if y is None:
        raise ValueError("Regressor requires y to be passed, but the target y is None.")
    y = check_array(y, ensure_2d=False, dtype="float64", input_name="y")
    numbers: Doubles = column_or_1d(y, warn=True)
    check_consistent_length(rows, numbers)
    return np.ascontiguousarray(numbers)
