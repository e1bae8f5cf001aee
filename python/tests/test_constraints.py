"""Constraints by name and by functions."""

from __future__ import annotations

import numpy as np
import pytest

import strust
from strust.constraints import Bounds, affine, at_most, bounds, from_functions, simplex, sphere, stiefel
from strust.diagnostics import check_constraint

C = np.array([3.0, -4.0])


def distance(x):
    r = x - C
    return float(r @ r), 2 * r


def test_the_nearest_point_of_a_sphere():
    result = strust.minimize(distance, [1.0, 0.2], constraints=sphere(2.0), tol=1e-9)
    assert result.success
    assert np.allclose(result.x, C / 5 * 2, atol=1e-8)
    assert result.constraint_norm < 1e-9


def test_names_and_objects_are_the_same():
    by_name = strust.minimize(distance, [1.0, 0.2], constraints="sphere", tol=1e-9).x
    assert (by_name == strust.minimize(distance, [1.0, 0.2], constraints=[sphere()], tol=1e-9).x).all()


def test_an_inequality_is_active_or_not():
    outside = strust.minimize(distance, [0.1, 0.0], constraints=at_most("sphere"), tol=1e-8)
    assert np.allclose(outside.x, C / 5, atol=1e-6)
    inside = strust.minimize(distance, [0.1, 0.0], constraints=at_most(sphere(9.0)), tol=1e-8)
    assert np.allclose(inside.x, C, atol=1e-6)


def test_affine_and_bounds_together():
    result = strust.minimize(distance, [0.5, 0.5], constraints=affine([1.0, 1.0], [1.0]), bounds=bounds(0.0), tol=1e-8)
    assert np.allclose(result.x, [1.0, 0.0], atol=1e-6)
    pairs = strust.minimize(distance, [0.5, 0.5], bounds=[(None, 1.0), (-1.0, None)], tol=1e-8)
    assert np.allclose(pairs.x, [1.0, -1.0], atol=1e-6)


def test_the_simplex():
    result = strust.minimize(distance, [0.5, 0.5], constraints=simplex(), tol=1e-8)
    assert np.allclose(result.x, [1.0, 0.0], atol=1e-6)


def test_an_orthonormal_matrix_from_mini_batches():
    rng = np.random.default_rng(0)
    target = np.linalg.qr(rng.normal(size=(6, 2)))[0]
    data = rng.normal(size=(200, 6))

    def fun(w, i):
        r = data[i] @ (w - target)
        return float((r**2).sum() / len(i)), 2 * data[i].T @ r / len(i)

    start = np.linalg.qr(rng.normal(size=(6, 2)))[0]
    result = strust.minimize(fun, start, n_terms=200, epochs=100, constraints=stiefel())
    assert result.state.method == "str-sqp"
    assert np.allclose(result.x.T @ result.x, np.eye(2), atol=1e-10)
    assert np.allclose(result.x, target, atol=1e-3)


@pytest.mark.parametrize("by", ["jac", "products"])
def test_functions_with_a_jacobian_or_products(by):
    jacobian = {"jac": lambda x: np.array([[x[1], x[0]]])}
    products = {"jvp": lambda x, v: x[1] * v[0] + x[0] * v[1], "vjp": lambda x, y: y[0] * x[::-1]}
    hyperbola = from_functions(lambda x: x[0] * x[1] - 1, **(jacobian if by == "jac" else products))
    assert check_constraint(hyperbola, [2.0, 3.0]).right
    result = strust.minimize(lambda x: (float(x @ x), 2 * x), [2.0, 1.0], constraints=hyperbola, tol=1e-8)
    assert np.allclose(result.x, [1, 1], atol=1e-6)


def test_a_wrong_jacobian_is_found():
    wrong = from_functions(lambda x: x[0] * x[1], jac=lambda x: np.array([[x[1], 2 * x[0]]]))
    assert not check_constraint(wrong, [2.0, 3.0]).right
    mismatch = from_functions(
        lambda x: x[0] * x[1], jvp=lambda x, v: x[1] * v[0] + x[0] * v[1], vjp=lambda x, y: y[0] * x
    )
    assert "WRONG" in repr(check_constraint(mismatch, [2.0, 3.0]))


def test_exceptions_of_constraints_come_out():
    def fun(x):
        if x[0] < 0.999:
            raise OSError("gone")
        return x @ x - 1

    constraint = from_functions(fun, jac=lambda x: 2 * x)
    with pytest.raises(OSError, match="gone"):
        strust.minimize(distance, [1.0, 0.2], constraints=constraint, epochs=100)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: affine(np.ones((2, 2)), [1.0]), r"A has shape \(2, 2\), but b has 1 components"),
        (lambda: from_functions(lambda x: x), "pass jac, or both jvp and vjp"),
        (lambda: from_functions(lambda x: x, jac=lambda x: x, jvp=lambda x, v: v), "not both"),
        (lambda: at_most("simplex"), "no inequality form"),
    ],
)
def test_wrong_constraints_are_explained(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        (affine(np.ones((1, 3)), [1.0]), r"A has shape \(1, 3\), but x0 has 2 components"),
        (affine(np.ones((2, 2)), [1.0, 1.0]), "depend"),
        (sphere(-1.0), "radius"),
        (from_functions(lambda x: [0.0], jac=lambda x: np.ones((1, 3))), r"the Jacobian has shape \(1, 3\)"),
        (
            from_functions(lambda x: [0.0], jvp=lambda x, v: [1.0, 2.0], vjp=lambda x, y: x),
            "jvp has 2 components, but must have 1",
        ),
        (
            from_functions(lambda x: [0.5], jvp=lambda x, v: [1.0], vjp=lambda x, y: np.ones(3)),
            r"vjp has shape \(3,\), but must have shape \(2,\)",
        ),
    ],
)
def test_constraints_that_do_not_fit_are_explained(constraint, words):
    with pytest.raises(ValueError, match=words):
        strust.minimize(distance, [1.0, 0.2], method="str-p", constraints=constraint, epochs=5)


def test_bounds_that_do_not_fit_are_explained():
    with pytest.raises(ValueError, match="do not fit x0"):
        strust.minimize(distance, [1.0, 0.2], bounds=Bounds([0, 0, 0], 1))
    with pytest.raises(ValueError, match=r"lower|bounds"):
        strust.minimize(distance, [1.0, 0.2], bounds=Bounds(2.0, 1.0))


def test_inequalities_have_no_projection():
    with pytest.raises(ValueError, match=r"StrSqp|str-sqp"):
        strust.minimize(
            distance, [1.0, 0.2], method="riemannian", options={"learning_rate": 0.1}, constraints=at_most("sphere")
        )


def test_contradicting_constraints_are_a_verdict():
    both = [affine([1.0, 0.0], [1.0]), from_functions(lambda x: x[0] ** 2 + 1, jac=lambda x: np.array([[2 * x[0], 0]]))]
    result = strust.minimize(distance, [1.0, 0.2], constraints=both, epochs=2000)
    assert not result.success
    assert "contradict" in result.message


def test_the_repr_is_readable():
    assert repr(at_most(sphere(2.0))) == "at_most(sphere(radius=2.0))"
    assert repr(affine(np.ones((1, 2)), [1.0])) == "affine(a=array(1, 2), b=array(1,))"
