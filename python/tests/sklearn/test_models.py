"""Linear models and networks: known answers, units, weights, streams, bad input."""

from __future__ import annotations

import pickle
import threading
import time
import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

import pandas as pd
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from strust.sklearn import Classifier, Regressor


def iris() -> tuple[Any, Any]:
    return load_iris(return_X_y=True)


# Answers that are known.


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_a_linear_classifier_is_logistic_regression(load: Any) -> None:
    X, y = load(return_X_y=True)
    model = Classifier().fit(X, y)
    scaler = StandardScaler()
    reference = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(scaler.fit_transform(X), y)
    np.testing.assert_allclose(model.coef_ * scaler.scale_, reference.coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(X), reference.predict_proba(scaler.transform(X)), atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_linear_regressor_is_ridge(weighted: bool, intercept: bool) -> None:
    X, y = load_diabetes(return_X_y=True)
    X = X + 0.01
    weights = np.random.default_rng(0).uniform(0, 2, len(y)) if weighted else None
    model = Regressor(regularization=2.0, fit_intercept=intercept, tol=1e-12).fit(X, y, sample_weight=weights)
    mean = np.average(X, axis=0, weights=weights) if intercept else np.zeros(X.shape[1])
    scale = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
    reference = Ridge(alpha=2.0, fit_intercept=intercept, solver="cholesky").fit(
        (X - mean) / scale, y, sample_weight=weights
    )
    np.testing.assert_allclose(model.coef_ * scale, reference.coef_, atol=1e-5)
    np.testing.assert_allclose(model.predict(X), reference.predict((X - mean) / scale), atol=1e-5)


def test_sparse_rows_are_scaled_by_their_largest_size() -> None:
    X = sparse.random(300, 40, density=0.1, format="csr", random_state=0)
    y = (X @ np.linspace(-2, 2, 40) > 0).astype(int)
    model = Classifier().fit(X, y)
    scaler = MaxAbsScaler()
    reference = LogisticRegression(tol=1e-10, max_iter=10_000).fit(scaler.fit_transform(X), y)
    np.testing.assert_allclose(model.coef_ * scaler.scale_, reference.coef_, rtol=1e-4, atol=1e-5)
    for kind in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        np.testing.assert_allclose(Classifier().fit(kind(X), y).coef_, model.coef_, rtol=1e-6)


def test_many_rows_begin_with_mini_batches_and_end_at_the_same_answer() -> None:
    X, y = make_classification(30_000, 100, n_informative=20, n_redundant=0, random_state=0)
    model = Classifier(random_state=0).fit(X, y)
    reference = LogisticRegression(tol=1e-8).fit(StandardScaler().fit_transform(X), y)
    np.testing.assert_allclose(model.coef_ * X.std(axis=0), reference.coef_, rtol=1e-3, atol=1e-5)


def test_a_large_mean_costs_no_digits() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X @ [1.0, -2.0, 0.5] + 3
    model = Regressor(regularization=0).fit(X + 1e6, y)
    np.testing.assert_allclose(model.coef_, [1.0, -2.0, 0.5], rtol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_both_precisions_are_taken_without_a_copy_of_the_rows(dtype: Any) -> None:
    X, y = iris()
    X = np.ascontiguousarray(X, dtype=dtype)
    before = X.copy()
    model = Classifier().fit(X, y)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_allclose(model.coef_, Classifier().fit(X.astype(np.float64), y).coef_, rtol=1e-6)


def test_a_network_learns_what_a_linear_model_cannot() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (600, 2))
    y = X[:, 0] * X[:, 1] > 0
    assert Classifier().fit(X, y).score(X, y) < 0.65
    network = Classifier(hidden=(32,), random_state=0).fit(X, y)
    assert network.score(X, y) > 0.9
    assert [coef.shape for coef in network.coefs_] == [(2, 32), (32, 1)]
    assert not hasattr(network, "coef_")
    target = X[:, 0] * X[:, 1]
    assert Regressor(hidden=(32,), regularization=0, random_state=0).fit(X, target).score(X, target) > 0.9


def test_a_network_of_sparse_rows_is_that_of_dense_rows() -> None:
    X, y = load_digits(return_X_y=True)
    X, y = X[:300] / 16, y[:300]
    model = Classifier(hidden=(16,), random_state=0).fit(sparse.csr_matrix(X), y)
    assert model.score(X, y) > 0.9
    np.testing.assert_allclose(model.predict_proba(X), model.predict_proba(sparse.csr_matrix(X)), atol=1e-12)


def test_the_same_seed_gives_the_same_network() -> None:
    X, y = iris()
    first, second, other = (Classifier(hidden=(8,), random_state=seed).fit(X, y) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.coefs_[0], second.coefs_[0])
    assert not np.array_equal(first.coefs_[0], other.coefs_[0])


# Constraints.


def test_constraints_hold_in_the_units_of_the_data() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) * [1, 10, 0.1, 5]
    y = X @ [0.3, 0.3, -0.4, 0.2] + 0.01 * rng.normal(size=300)
    shares = Regressor(nonnegative=True, sum_to_one=True).fit(X, y)
    assert (shares.coef_ >= 0).all()
    assert abs(shares.coef_.sum() - 1) < 1e-9
    assert shares.coef_[2] > 0.05, "the sum needs it"
    assert abs(np.linalg.norm(Regressor(unit_norm=True).fit(X, y).coef_) - 1) < 1e-9
    assert (Classifier(nonnegative=True).fit(X, y > 0).coef_ >= 0).all()


def test_constraints_are_refused_where_they_have_no_meaning() -> None:
    X, y = iris()
    for model in (
        Classifier(nonnegative=True),
        Classifier(hidden=(3,), unit_norm=True),
        Regressor((2,), sum_to_one=True),
    ):
        with pytest.raises(ValueError, match="one output and without hidden layers"):
            model.fit(X, y)
    assert not hasattr(Regressor(nonnegative=True), "partial_fit")


def test_constraints_hold_even_if_the_epochs_are_used_up() -> None:
    X, y = iris()
    with pytest.warns(ConvergenceWarning, match="max_epochs=1"):
        model = Regressor(sum_to_one=True, unit_norm=True, max_epochs=1).fit(X, y)
    assert abs(model.coef_.sum() - 1) < 1e-9
    assert abs(np.linalg.norm(model.coef_) - 1) < 1e-9


# Streams.


def batches(n: int, size: int) -> list[slice]:
    return [slice(start, start + size) for start in range(0, n, size)]


def test_partial_fit_reaches_nearly_the_answer_of_fit() -> None:
    X, y = make_classification(20_000, 20, n_informative=10, random_state=0)
    stream, whole = Classifier(random_state=0), Classifier().fit(X, y)
    for rows in batches(len(y), 500):
        stream.partial_fit(X[rows], y[rows], classes=[0, 1])
    assert stream.n_iter_ == 40
    assert stream.score(X, y) > whole.score(X, y) - 0.01
    target = X @ np.arange(20) + 5
    number = Regressor(random_state=0)
    for rows in batches(len(y), 500):
        number.partial_fit(X[rows], target[rows])
    assert number.score(X, target) > 0.99


@pytest.mark.parametrize("hidden", [(), (8,)])
def test_a_pickled_stream_continues_bit_for_bit(hidden: tuple[int, ...]) -> None:
    X, y = iris()
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    straight = Classifier(hidden, random_state=3)
    saved = Classifier(hidden, random_state=3)
    for rows in batches(len(y), 30):
        straight.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
        saved = pickle.loads(pickle.dumps(saved)).partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    np.testing.assert_array_equal(straight.predict_proba(X), saved.predict_proba(X))
    assert straight.score(X, y) > 0.6


def test_partial_fit_continues_after_fit() -> None:
    X, y = iris()
    model = Classifier().fit(X, y)
    before = model.score(X, y)
    for _ in range(5):
        model.partial_fit(X, y)
    assert model.score(X, y) > before - 0.02


def test_partial_fit_needs_the_classes_once() -> None:
    X, y = iris()
    with pytest.raises(ValueError, match="classes must name all classes"):
        Classifier().partial_fit(X, y)
    model = Classifier().partial_fit(X[:100], y[:100], classes=[0, 1])
    with pytest.raises(ValueError, match="which is not one of"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="not the same as in earlier calls"):
        model.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :2], y % 2)


# Tools of scikit-learn.


def test_pipelines_searches_and_scores() -> None:
    X, y = iris()
    pipeline = make_pipeline(StandardScaler(), Classifier(random_state=0))
    assert cross_val_score(pipeline, X, y).mean() > 0.9
    assert GridSearchCV(pipeline, {}).fit(X, y).best_score_ > 0.9
    search = GridSearchCV(Classifier(random_state=0), {"hidden": [(), (8,)]}, cv=3).fit(X, y)
    assert search.best_params_["hidden"] in [(), (8,)]
    assert search.best_score_ > 0.9
    copy = clone(search.best_estimator_)
    assert copy.get_params() == search.best_estimator_.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(X)


def test_data_frames_name_the_features() -> None:
    frame, y = load_iris(return_X_y=True, as_frame=True)
    model = Classifier().fit(frame, y)
    assert list(model.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])
    words = pd.Series(["yes" if label else "no" for label in y])
    assert set(Classifier().fit(frame, words).predict(frame)) == {"yes", "no"}


def test_a_fitted_model_pickles_and_a_second_fit_forgets_the_first() -> None:
    X, y = iris()
    model = Classifier(hidden=(4,), random_state=0).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.predict_proba(X), copy.predict_proba(X))
    model.set_params(hidden=()).fit(X, y)
    np.testing.assert_array_equal(model.coef_, Classifier().fit(X, y).coef_)
    assert not hasattr(model, "coefs_")


def test_accuracy_on_other_rows() -> None:
    X, y = load_digits(return_X_y=True)
    X, test, y, answers = train_test_split(X, y, random_state=0)
    assert Classifier().fit(X, y).score(test, answers) > 0.95
    assert Classifier(hidden=(32,), random_state=0).fit(X, y).score(test, answers) > 0.95


def test_threads_can_fit_at_the_same_time() -> None:
    X, y = iris()
    answers: list[Any] = [None] * 4

    def work(k: int) -> None:
        answers[k] = Classifier().fit(X, y).coef_

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for answer in answers:
        np.testing.assert_array_equal(answer, answers[0])


def test_ctrl_c_ends_a_fit_promptly() -> None:
    import signal

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 50)), rng.normal(size=20_000)
    began = time.monotonic()
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        Regressor(hidden=(512, 512), validation_fraction=0, max_epochs=100_000).fit(X, y)
    # All epochs would take days. The loss of all rows at the start and at the end takes 3 s on a busy core.
    assert time.monotonic() - began < 15


# Bad input.


def test_running_out_of_epochs_warns() -> None:
    X, y = iris()
    with pytest.warns(ConvergenceWarning, match="did not converge in max_epochs=2"):
        Classifier(max_epochs=2).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Classifier().fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"hidden": (0,)}, "a width in hidden == 0"),
        ({"hidden": (5,), "fit_intercept": False}, "fit_intercept=False is for linear models"),
        ({"regularization": -1}, "regularization == -1"),
        ({"regularization": float("nan")}, "must be finite"),
        ({"max_epochs": 0}, "max_epochs == 0"),
        ({"tol": 0}, "tol == 0"),
        ({"validation_fraction": 1.0}, "validation_fraction == 1.0"),
    ],
)
def test_wrong_parameters_are_named(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Regressor(**parameters).fit([[1.0], [2.0]], [1.0, 2.0])


@pytest.mark.parametrize("hidden", [5, "10", {3}])
def test_hidden_is_a_sequence(hidden: Any) -> None:
    with pytest.raises(TypeError, match="hidden must be a sequence of widths"):
        Regressor(hidden).fit([[1.0], [2.0]], [1.0, 2.0])


@pytest.mark.parametrize(
    ("X", "y", "weights", "message"),
    [
        ([[1.0], [np.nan]], [0, 1], None, "NaN"),
        ([[1.0], [np.inf]], [0, 1], None, "infinity"),
        ([1.0, 2.0], [0, 1], None, "Expected 2D array"),
        ([], [], None, "array"),
        (np.empty((0, 3)), [], None, "0 sample"),
        (np.empty((2, 0)), [0, 1], None, "0 feature"),
        ([[1.0], [2.0]], [0, 1, 1], None, "inconsistent numbers of samples"),
        ([[1.0], [2.0]], [0.1, 0.7], None, "continuous"),
        ([[1.0], [2.0]], ["a", "a"], None, "only one class: a"),
        ([[1.0], [2.0]], None, None, "requires y"),
        ([["a"], ["b"]], [0, 1], None, "could not convert"),
        ([[1.0], [2.0]], [0, 1], [1.0], "sample_weight.shape"),
        ([[1.0], [2.0]], [0, 1], [1.0, -1.0], "Negative values"),
        ([[1.0], [2.0]], [0, 1], [0.0, 0.0], "at least one weight that is not zero"),
        ([[1.0], [2.0]], [0, 1], [1.0, 0.0], "only one class"),
        ([[1.0], [2.0]], [0, 1], [1.0, np.nan], "NaN"),
    ],
)
def test_wrong_data_are_refused(X: Any, y: Any, weights: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Classifier().fit(X, y, sample_weight=weights)
