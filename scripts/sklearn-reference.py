#!/usr/bin/env python3
"""Compares `strust.sklearn` with scikit-learn's own estimators on the same split: score and seconds of `fit`.

    cd python && maturin build --release && pip install --force-reinstall ../target/wheels/strust-*.whl[sklearn]
    python scripts/sklearn-reference.py [--data DIR] [--only NAME,...] [--kinds linear,network] [--repeat N]
    python scripts/sklearn-reference.py --kinds speed [--most ENTRIES]

Four data sets come with scikit-learn. Three are made from a seed: 100,000 rows × 50 dense columns, the same as a
regression, and 50,000 rows × 20,000 sparse columns. DIR adds a9a and w8a as LIBSVM text with xz (also in DIR/libsvm).

A fourth of the rows is held out. The score is the accuracy or R² there in percent. Seconds are those of `fit` in the
same process, the best of `--repeat` runs, which alternate. scikit-learn's linear models and networks get standardized
inputs (sparse ones divided by their largest size), because they need them, and its regressors that learn from
mini-batches a standardized target; this is part of their time, as it is part of strust's. All other settings are the
defaults.

`--kinds speed` fits ridge, logistic and softmax regressions (5 classes) of made rows, dense and sparse, to the same
accuracy: a relative gap of at most 1e-8 from the minimum, which linear_minimum.py computes. strust has its defaults.
Each solver of scikit-learn that suits the problem has the largest `tol` of a list that reaches the gap. All fit the
same rows, which are standardized already. A solver that takes more than a minute once is left out of the problems
that follow of its kind, and one that takes more than five times as long as another is stopped. At the end come the
median and the largest ratio of the time of strust to that of the fastest solver. The exit code is 1 if the median is
above 1 or a ratio above 2. All programs use all cores.
"""

import argparse
import lzma
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from linear_minimum import LinearProblem
from scipy import sparse
from sklearn import datasets
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from strust.sklearn import Classifier, Regressor

SEED = 0
CLASSES = 5
MOST_GAP = 1e-8
# Seconds after which a solver is too slow.
PATIENCE = 60


def made_classes():
    return datasets.make_classification(
        100_000, 50, n_informative=30, n_classes=4, n_clusters_per_class=1, class_sep=1.5, random_state=SEED
    )


def made_numbers():
    return datasets.make_regression(100_000, 50, n_informative=30, noise=50.0, random_state=SEED)


def made_sparse():
    """Like words in texts: frequent and rare features, and labels with noise."""
    rng = np.random.default_rng(SEED)
    n, d, words = 50_000, 20_000, 60
    columns = np.minimum(rng.zipf(1.3, (n, words)) - 1, d - 1)
    rows = np.repeat(np.arange(n), words)
    X = sparse.csr_matrix((np.ones(n * words), (rows, columns.ravel())), shape=(n, d))
    X.data = np.log1p(X.data)
    score = X @ rng.normal(size=d)
    return X, (score - np.median(score) + rng.normal(size=n) > 0).astype(int)


def libsvm(name):
    def load(folder):
        for path in (folder / f"{name}.xz", folder / "libsvm" / f"{name}.xz"):
            if path.exists():
                with lzma.open(path) as file:
                    return datasets.load_svmlight_file(file)
        return None

    return load


# The loader, and whether it is a regression.
SETS = {
    "digits": (lambda _: datasets.load_digits(return_X_y=True), False),
    "breast cancer": (lambda _: datasets.load_breast_cancer(return_X_y=True), False),
    "wine": (lambda _: datasets.load_wine(return_X_y=True), False),
    "diabetes": (lambda _: datasets.load_diabetes(return_X_y=True), True),
    "made classes": (lambda _: made_classes(), False),
    "made numbers": (lambda _: made_numbers(), True),
    "made sparse": (lambda _: made_sparse(), False),
    "a9a": (libsvm("a9a"), False),
    "w8a": (libsvm("w8a"), False),
}


def estimators(kind, regression, X):
    """Names and estimators, strust first."""
    scaler = MaxAbsScaler() if sparse.issparse(X) else StandardScaler()

    def scaled(estimator):
        return make_pipeline(clone(scaler), estimator)

    def with_target(estimator):
        return TransformedTargetRegressor(scaled(estimator), transformer=StandardScaler())

    if kind == "linear" and regression:
        return [
            ("Regressor", Regressor(random_state=SEED)),
            ("Ridge", scaled(Ridge())),
            ("SGDRegressor", with_target(SGDRegressor(random_state=SEED))),
        ]
    if kind == "linear":
        return [
            ("Classifier", Classifier(random_state=SEED)),
            ("LogisticRegression", scaled(LogisticRegression())),
            ("SGDClassifier", scaled(SGDClassifier(loss="log_loss", random_state=SEED))),
        ]
    if regression:
        return [
            ("Regressor(hidden=(100,))", Regressor((100,), random_state=SEED)),
            ("MLPRegressor", with_target(MLPRegressor(random_state=SEED))),
            ("MLPRegressor, early stopping", with_target(MLPRegressor(early_stopping=True, random_state=SEED))),
        ]
    return [
        ("Classifier(hidden=(100,))", Classifier((100,), random_state=SEED)),
        ("MLPClassifier", scaled(MLPClassifier(random_state=SEED))),
        ("MLPClassifier, early stopping", scaled(MLPClassifier(early_stopping=True, random_state=SEED))),
    ]


def compare(name, kind, regression, X, y, repeat):
    stratify = None if regression else y
    X, test, y, answers = train_test_split(X, y, test_size=0.25, random_state=SEED, stratify=stratify)
    entries = estimators(kind, regression, X)
    best = {label: np.inf for label, _ in entries}
    scores = {}
    for _ in range(repeat):
        for label, estimator in entries:
            fitted = clone(estimator)
            began = time.perf_counter()
            fitted.fit(X, y)
            best[label] = min(best[label], time.perf_counter() - began)
            scores[label] = (r2_score if regression else accuracy_score)(answers, fitted.predict(test))
    own = best[entries[0][0]]
    for label, _ in entries:
        ratio = best[label] / own
        print(
            f"| {name} | {X.shape[0]} × {X.shape[1]} | {label} | {100 * scores[label]:.2f} | {best[label]:.3f} |"
            f" {ratio:.2f} |",
            flush=True,
        )


def made_problem(loss, rows, columns, density):
    """Standardized rows with columns that depend on each other, and targets with noise."""
    rng = np.random.default_rng(SEED)
    if density:
        per_row = max(5, round(density * columns))
        places = rng.integers(0, columns, (rows, per_row))
        starts = np.arange(0, rows * per_row + 1, per_row)
        X = sparse.csr_matrix((rng.normal(size=rows * per_row), places.ravel(), starts), shape=(rows, columns))
        X.sum_duplicates()
        per_output = per_row
    else:
        # Neighbors are correlated, and deviations are 1.
        X = rng.standard_normal((rows, columns))
        for j in range(1, columns):
            X[:, j] = 0.6 * X[:, j - 1] + 0.8 * X[:, j]
        X -= X.mean(axis=0)
        X /= X.std(axis=0)
        per_output = columns
    Z = X @ (rng.normal(size=(columns, CLASSES)) * 2 / np.sqrt(per_output))
    if loss == "squares":
        y = Z[:, 0] + rng.normal(size=rows)
        return X, (y - y.mean()) / y.std()
    if loss == "logistic":
        return X, (Z[:, 0] + rng.logistic(size=rows) > 0).astype(int)
    return X, (Z + rng.gumbel(size=Z.shape)).argmax(axis=1)


def solvers(loss, X):
    """Names, functions that make an estimator from `tol`, and the list of `tol`."""
    if loss == "squares":
        direct = [] if sparse.issparse(X) else ["cholesky"] + ["svd"] * (X.shape[1] <= 100 or X.shape[0] <= 10_000)
        found = [(name, lambda _, name=name: Ridge(solver=name), [0]) for name in direct]
        for name in ["lsqr", "sparse_cg"]:
            make = lambda tol, name=name: Ridge(solver=name, tol=tol, max_iter=10_000)  # noqa: E731
            found.append((name, make, [1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10]))
        return found
    found = []
    for name in ["lbfgs", "newton-cholesky", "newton-cg"]:
        make = lambda tol, name=name: LogisticRegression(solver=name, tol=tol, max_iter=10_000)  # noqa: E731
        found.append((name, make, [1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10]))
    return found


def timed_fit(estimator, X, y, patience=PATIENCE):
    """Seconds, or `None` if it took longer than `patience`."""

    def too_long(*_):
        raise TimeoutError

    signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, patience)
    began = time.perf_counter()
    try:
        estimator.fit(X, y)
    except TimeoutError:
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return time.perf_counter() - began


def speed_of(loss, rows, columns, density, slow, repeat):
    """A row of the table, and the ratio."""
    X, y = made_problem(loss, rows, columns, density)
    outputs = CLASSES if loss == "softmax" else 1
    problem = LinearProblem(X, y, loss, 1.0, classes=outputs, scaled=True)

    def point(estimator):
        return problem.inside(np.atleast_2d(estimator.coef_).T, np.atleast_1d(estimator.intercept_))

    own = Regressor(standardize=False) if loss == "squares" else Classifier(standardize=False)
    times = {"strust": timed_fit(own, X, y)}
    # The minimum does not depend on the start, and Newton's method knows how far it is.
    least = problem.minimum(point(own) if times["strust"] else None)[0]
    gap = (problem.value(point(own)) - least) / least if times["strust"] else np.inf
    fits = {"strust": own}
    for name, make, tolerances in solvers(loss, X):
        key = (loss, bool(density), name)
        for tol in tolerances:
            if key in slow:
                break
            # A smaller `tol` takes longer, so a solver that is far behind is not the fastest one.
            best = min((times[other] for other in fits if other != "strust"), default=PATIENCE)
            patience = min(PATIENCE, 5 * best + 1)
            estimator = make(tol)
            seconds = timed_fit(estimator, X, y, patience)
            if seconds is None:
                if patience == PATIENCE:
                    slow.add(key)
                break
            if (problem.value(point(estimator)) - least) / least <= MOST_GAP:
                fits[name], times[name] = estimator, seconds
                break
    # Short fits need more runs, and solvers that are far behind need no second one.
    best = min((times[name] for name in fits if name != "strust"), default=PATIENCE)
    again = [name for name in fits if times[name] and (name == "strust" or times[name] <= 3 * best)]
    longest = max((times[name] for name in again), default=PATIENCE)
    for _ in range(0 if longest > 10 else repeat - 1 if longest > 0.1 else 3 * repeat):
        for name in again:
            times[name] = min(times[name], timed_fit(clone(fits[name]), X, y) or PATIENCE)
    names = [name for name in fits if name != "strust"]
    fastest = min(names, key=times.get, default=None)
    ratio = times["strust"] / times[fastest] if fastest and times["strust"] else np.nan
    kind = {"squares": "ridge"}.get(loss, loss) + (", sparse" if density else "")
    solver = f"{times[fastest]:.4f} ({fastest})" if fastest else "–"
    rest = ", ".join(f"{name} {times[name]:.3g}" for name in names if name != fastest)
    print(
        f"| {kind} | {rows} × {columns} | {times['strust'] or np.nan:.4f} | {solver} | {ratio:.2f} |"
        f" {max(gap, 0):.0e} | {rest or '–'} |",
        flush=True,
    )
    return ratio if gap <= MOST_GAP else np.inf


def compare_speed(most, repeat):
    print("| problem | rows × columns | strust s | fastest solver s | ratio | gap of strust | other solvers s |")
    print("|---|---|---:|---:|---:|---:|---|")
    ratios, slow = [], set()
    for loss in ["squares", "logistic", "softmax"]:
        for density in [0, 0.01]:
            for columns in [10, 100, 1000]:
                for rows in [10**3, 10**4, 10**5, 10**6]:
                    entries = rows * (max(5, round(density * columns)) if density else columns)
                    # Sparse rows have at least 5 entries, so few columns would make them dense.
                    if entries <= most and not (density and columns == 10):
                        ratios.append(speed_of(loss, rows, columns, density, slow, repeat))
    known = [ratio for ratio in ratios if not np.isnan(ratio)]
    print(f"\n{len(known)} problems: median ratio {np.median(known):.2f}, largest {max(known):.2f}")
    return np.median(known) > 1 or max(known) > 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder with files of the LIBSVM collection")
    parser.add_argument("--only", help="the names of data sets, separated by commas")
    parser.add_argument("--kinds", default="linear,network", help="linear, network or speed, separated by commas")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--most", type=float, default=1e8, help="the most entries of a problem of --kinds speed")
    arguments = parser.parse_args()
    chosen = arguments.only.split(",") if arguments.only else list(SETS)
    unknown = [name for name in chosen if name not in SETS]
    if unknown:
        parser.error(f"there is no data set {unknown[0]!r}: choose from {', '.join(SETS)}")
    warnings.simplefilter("ignore")
    kinds = arguments.kinds.split(",")
    failed = "speed" in kinds and compare_speed(arguments.most, arguments.repeat)
    kinds = [kind for kind in kinds if kind != "speed"]
    loaded = {name: SETS[name][0](arguments.data or Path()) for name in chosen if kinds}
    for kind in kinds:
        print(f"\n{kind}\n")
        print("| data | rows × columns | estimator | score | seconds | seconds / strust |")
        print("|---|---|---|---:|---:|---:|")
        for name, data in loaded.items():
            if data is not None:
                compare(name, kind, SETS[name][1], *data, arguments.repeat)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
