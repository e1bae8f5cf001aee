"""The best-fitting subspace: that of PCA."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from scipy import sparse
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from strust.sklearn import SubspaceFitter


def angle(first: Any, second: Any) -> float:
    """The sine of the largest angle between two subspaces."""
    return float(np.linalg.norm(first - first @ second.T @ second, ord=2))


@pytest.mark.parametrize("k", [1, 2, 8])
@pytest.mark.parametrize("kind", ["float64", "float32", "sparse"])
def test_it_is_the_subspace_of_pca(k: int, kind: str) -> None:
    X, _ = load_digits(return_X_y=True)
    data = sparse.csr_matrix(X) if kind == "sparse" else X.astype(kind)
    fitter = SubspaceFitter(k, random_state=0).fit(data)
    reference = PCA(k, svd_solver="full").fit(X)
    assert angle(fitter.components_, reference.components_) < 1e-4
    np.testing.assert_allclose(fitter.explained_variance_ratio_, reference.explained_variance_ratio_, rtol=1e-5)
    np.testing.assert_allclose(fitter.explained_variance_, reference.explained_variance_, rtol=1e-5)
    np.testing.assert_allclose(fitter.mean_, reference.mean_, atol=1e-6)
    np.testing.assert_allclose(fitter.components_ @ fitter.components_.T, np.eye(k), atol=1e-12)
    np.testing.assert_allclose(np.abs(fitter.transform(data)), np.abs(reference.transform(X)), atol=2e-2)


def test_large_data_begin_with_mini_batches() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 4)) @ rng.normal(size=(4, 60)) + 0.3 * rng.normal(size=(40_000, 60)) + 7
    fitter = SubspaceFitter(9, random_state=0, max_epochs=30, tol=1e-3).fit(X)
    reference = PCA(9).fit(X)
    assert angle(reference.components_[:4], fitter.components_) < 1e-3
    lost = 1 - fitter.explained_variance_ratio_.sum()
    assert lost < 1.01 * (1 - reference.explained_variance_ratio_.sum())


def test_coordinates_and_back() -> None:
    X, _ = load_iris(return_X_y=True)
    fitter = SubspaceFitter(4).fit(X)
    np.testing.assert_allclose(fitter.inverse_transform(fitter.transform(X)), X, atol=1e-12)
    assert fitter.explained_variance_ratio_.sum() == pytest.approx(1)
    names = SubspaceFitter(2).set_output(transform="pandas").fit_transform(X).columns
    assert list(names) == ["subspacefitter0", "subspacefitter1"]


def test_in_a_pipeline() -> None:
    X, y = load_digits(return_X_y=True)
    pipeline = make_pipeline(SubspaceFitter(20, random_state=0), LogisticRegression(max_iter=5000))
    assert pipeline.fit(X, y).score(X, y) > 0.95


def test_rows_as_they_come() -> None:
    X, _ = load_digits(return_X_y=True)
    stream, saved = SubspaceFitter(3, random_state=0), SubspaceFitter(3, random_state=0)
    for _ in range(10):
        for start in range(0, len(X), 300):
            stream.partial_fit(X[start : start + 300])
            saved = pickle.loads(pickle.dumps(saved)).partial_fit(X[start : start + 300])
    np.testing.assert_array_equal(stream.components_, saved.components_)
    reference = PCA(3).fit(X)
    assert stream.n_samples_seen_ == 10 * len(X)
    np.testing.assert_allclose(stream.mean_, reference.mean_, atol=1e-10)
    assert angle(reference.components_, stream.components_) < 0.05
    np.testing.assert_allclose(stream.explained_variance_ratio_, reference.explained_variance_ratio_, rtol=0.05)


def test_rows_after_a_fit() -> None:
    X, _ = load_iris(return_X_y=True)
    fitter = SubspaceFitter(2, random_state=0).fit(X)
    before = fitter.components_
    fitter.partial_fit(X)
    assert angle(before, fitter.components_) < 0.05
    assert fitter.n_samples_seen_ == 300


def test_equal_rows_have_no_variance() -> None:
    fitter = SubspaceFitter(1).fit(np.ones((5, 3)))
    np.testing.assert_array_equal(fitter.explained_variance_ratio_, [0.0])


@pytest.mark.parametrize(
    ("k", "error", "message"),
    [
        (0, ValueError, "n_components == 0"),
        (5, ValueError, "n_components=5 must be at most"),
        (1.5, TypeError, "n_components"),
    ],
)
def test_a_wrong_number_of_components_is_named(k: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        SubspaceFitter(k).fit(np.eye(4))


def test_another_number_of_components_in_a_stream_is_refused() -> None:
    fitter = SubspaceFitter(2).partial_fit(np.eye(4)).set_params(n_components=3)
    with pytest.raises(ValueError, match="not the 2 of earlier calls"):
        fitter.partial_fit(np.eye(4))
