"""The built-in problems."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import strust
from strust.diagnostics import check_gradient, curvature, kkt, strong_growth
from strust.problems import LeastSquares, Logistic, Mlp, Softmax, Subspace, load_digits

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 5))
LABELS = (X[:, 0] + 0.3 * RNG.normal(size=80) > 0).astype(int)
CLASSES = RNG.integers(0, 3, size=80)

PROBLEMS = {
    "least squares": lambda: LeastSquares(X, X @ np.arange(5.0)),
    "random least squares": lambda: LeastSquares.random(n=50, d=4, condition=100.0, noise=0.1),
    "logistic": lambda: Logistic(X, LABELS, regularization=1e-2, intercept=True),
    "softmax": lambda: Softmax(X, CLASSES, regularization=1e-2),
    "subspace": lambda: Subspace(X, 2),
    "mlp": lambda: Mlp(X, CLASSES, hidden=(6,), activation="tanh"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_gradients_are_right_and_runs_agree_with_python_functions(name):
    problem = PROBLEMS[name]()
    start = problem.start(3)
    assert check_gradient(problem, start + 0.1).right
    assert check_gradient(problem, start + 0.1, indices=[3, 1]).right
    settings = {"batch": 10, "epochs": 3, "seed": 2}
    native = strust.minimize(problem, start, **settings)
    python = strust.minimize(lambda x, i: problem(x, i), start, n_terms=problem.n_terms, **settings)
    # Only the sizes of the rounding errors differ.
    assert np.allclose(native.x, python.x, rtol=1e-6, atol=1e-8)
    assert native.x.shape == start.shape


def test_known_optima_are_reached():
    fit = Subspace(X, 2)
    spread = np.linalg.eigvalsh(np.cov(X.T, bias=True))
    assert fit.optimum == pytest.approx(spread[:3].sum())
    assert strust.minimize(fit, constraints="stiefel", epochs=200).fun == pytest.approx(fit.optimum, rel=1e-6)
    logistic = Logistic(X, LABELS, regularization=1e-2)
    assert strust.minimize(logistic, epochs=400).fun == pytest.approx(logistic.optimum, rel=1e-3)
    noisy = LeastSquares.random(n=200, d=5, noise=0.5)
    assert strust.minimize(noisy, epochs=400).fun == pytest.approx(noisy.optimum, rel=1e-3)
    exact = Subspace.spiked(d=20, k=3, n=100)
    assert exact.optimum == 0
    assert strust.minimize(exact, constraints=exact.constraint, epochs=40).fun < 1e-12


def test_sparse_rows_are_the_same_problem():
    sparse = pytest.importorskip("scipy.sparse")
    thin = np.where(abs(X) > 0.7, X, 0)
    for kind in (Logistic, Softmax):
        dense = strust.minimize(kind(thin, LABELS), epochs=3)
        rows = strust.minimize(kind(sparse.csr_matrix(thin), LABELS), epochs=3)
        assert np.allclose(dense.x, rows.x, rtol=1e-9, atol=1e-12)


def test_the_digits_come_with_the_package():
    (x, labels), (test, test_labels) = load_digits()
    assert len(x) + len(test) == 1797
    result = strust.minimize(Softmax(x, labels, intercept=True), epochs=10)
    scores = np.column_stack([test, np.ones(len(test))]) @ result.x
    assert (scores.argmax(axis=1) == test_labels).mean() > 0.9


def test_the_gil_is_released():
    """Another thread goes on while Rust computes."""
    problem = LeastSquares.random(n=3000, d=200, noise=0.1)
    count = 0
    done = threading.Event()

    def work():
        nonlocal count
        while not done.is_set():
            count += 1
            time.sleep(0.001)

    thread = threading.Thread(target=work)
    thread.start()
    result = strust.minimize(problem, max_seconds=1.0)
    done.set()
    thread.join()
    assert result.nit > 0
    assert count > 50


def test_several_threads_share_a_problem():
    problem = LeastSquares(X, X @ np.arange(5.0))
    expected = strust.minimize(problem, epochs=20).x
    found = []
    threads = [threading.Thread(target=lambda: found.append(strust.minimize(problem, epochs=20).x)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((x == expected).all() for x in found)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: LeastSquares(X, np.ones(3)), ValueError, r"b must have shape \(80,\)"),
        (lambda: LeastSquares(X[0], [1.0]), ValueError, "a must be a matrix"),
        (lambda: LeastSquares(X * np.nan, np.ones(80)), ValueError, "finite"),
        (lambda: LeastSquares(np.zeros((0, 3)), []), ValueError, "row|≥ 1"),
        (lambda: Logistic(X, CLASSES), ValueError, "two"),
        (lambda: Softmax(X, LABELS + 0.5), ValueError, "whole"),
        (lambda: Subspace(X, 6), ValueError, "k"),
        (lambda: Mlp(X, CLASSES, activation="gelu"), ValueError, "activation is"),
        (lambda: LeastSquares(X, X[:, 0])(np.zeros(4)), ValueError, "expected shape"),
        (lambda: LeastSquares(X, X[:, 0])(np.zeros(5), [80]), IndexError, "there is no term 80"),
        (lambda: LeastSquares(X, X[:, 0])(np.zeros(5), []), ValueError, "indices is empty"),
        (lambda: strust.minimize(LeastSquares(X, X[:, 0]), np.zeros(4)), ValueError, "expected shape"),
        (lambda: strust.minimize(LeastSquares(X, X[:, 0]), np.zeros(5, np.float32)), TypeError, "float64"),
    ],
)
def test_wrong_data_are_explained(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_strong_growth_by_numpy():
    problem = LeastSquares(X, X @ np.arange(5.0) + RNG.normal(size=80))
    x = problem.start(1)
    gradients = np.array([problem(x, [i])[1] for i in range(80)])
    mean = gradients.mean(axis=0)
    variance = ((gradients - mean) ** 2).sum(axis=1).mean()
    found = strong_growth(problem, x, batch=8)
    assert found.variance == pytest.approx(variance)
    share = (80 - 8) / (8 * 79)
    assert found.rho == pytest.approx(1 + variance * share / (mean @ mean))
    estimate = strong_growth(problem, x, batch=8, pairs=500)
    assert estimate.low < estimate.rho < estimate.high
    assert "95 % interval" in repr(estimate)


def test_curvature_and_kkt_by_numpy():
    problem = LeastSquares(X, X[:, 0])
    largest = np.linalg.eigvalsh(X.T @ X / 80)[-1]
    assert curvature(problem, np.ones(5), iterations=100) == pytest.approx(largest, rel=1e-3)
    fit = Subspace.spiked(d=8, k=2, n=50, noise=0.2)
    solution = strust.minimize(fit, constraints="stiefel", epochs=200)
    report = kkt(fit, solution.x, "stiefel")
    assert report.licq
    assert report.residual < 1e-4
    assert report.constraint_norm < 1e-10
    assert "LICQ holds" in repr(report)
    pandas = pytest.importorskip("pandas")
    assert isinstance(report.to_pandas(), pandas.Series)


def test_exceptions_in_measured_functions_come_out():
    def fun(x):
        raise LookupError("missing")

    for measure in (curvature, check_gradient, strong_growth):
        with pytest.raises(LookupError, match="missing"):
            measure(fun, [1.0])
