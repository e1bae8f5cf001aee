#!/usr/bin/env python3
"""Compares `strust.sklearn` with scikit-learn's own estimators on the same split: score and seconds of `fit`.

    cd python && maturin build --release && pip install --force-reinstall ../target/wheels/strust-*.whl[sklearn]
    python scripts/sklearn-reference.py [--data DIR] [--only NAME,...] [--kinds linear,network,subspace] [--repeat N]

Four data sets come with scikit-learn. Three are made from a seed: 100,000 rows × 50 dense columns, the same as a
regression, and 50,000 rows × 20,000 sparse columns. DIR adds a9a and w8a as LIBSVM text with xz (also in DIR/libsvm).

A fourth of the rows is held out. The score is the accuracy or R² there in percent, and for subspaces the explained
variance of the held-out rows. Seconds are those of `fit` in the same process, the best of `--repeat` runs, which
alternate. scikit-learn's linear models and networks get standardized inputs (sparse ones divided by their largest size),
because they need them, and its regressors that learn from mini-batches a standardized target; this is part of their time,
as it is part of strust's. All other settings are the defaults.
"""

import argparse
import lzma
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn import datasets
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from strust.sklearn import Classifier, Regressor, SubspaceFitter

SEED = 0
COMPONENTS = 5


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

    if kind == "subspace":
        k = min(COMPONENTS, X.shape[1])
        return [
            ("SubspaceFitter", SubspaceFitter(k, random_state=SEED)),
            ("PCA", PCA(k, random_state=SEED)),
        ]
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


def score(kind, regression, estimator, X, y):
    if kind != "subspace":
        return (r2_score if regression else accuracy_score)(y, estimator.predict(X))
    mean = np.asarray(X.mean(axis=0)).ravel()
    rows = (X.toarray() if sparse.issparse(X) else X) - mean
    return float(np.square(rows @ estimator.components_.T).sum() / np.square(rows).sum())


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
            scores[label] = score(kind, regression, fitted, test, answers)
    own = best[entries[0][0]]
    for label, _ in entries:
        ratio = best[label] / own
        print(
            f"| {name} | {X.shape[0]} × {X.shape[1]} | {label} | {100 * scores[label]:.2f} | {best[label]:.3f} |"
            f" {ratio:.2f} |",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder with files of the LIBSVM collection")
    parser.add_argument("--only", help="the names of data sets, separated by commas")
    parser.add_argument("--kinds", default="linear,network,subspace")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    chosen = arguments.only.split(",") if arguments.only else list(SETS)
    unknown = [name for name in chosen if name not in SETS]
    if unknown:
        parser.error(f"there is no data set {unknown[0]!r}: choose from {', '.join(SETS)}")
    warnings.simplefilter("ignore")
    loaded = {name: SETS[name][0](arguments.data or Path()) for name in chosen}
    for kind in arguments.kinds.split(","):
        print(f"\n{kind}\n")
        print("| data | rows × columns | estimator | score | seconds | seconds / strust |")
        print("|---|---|---|---:|---:|---:|")
        for name, data in loaded.items():
            if data is not None and not (kind == "subspace" and data[0].shape[1] > 5000):
                compare(name, kind, SETS[name][1], *data, arguments.repeat)


if __name__ == "__main__":
    main()
