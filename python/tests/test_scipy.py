"""Methods for scipy.optimize.minimize."""

from __future__ import annotations

import numpy as np
import pytest

optimize = pytest.importorskip("scipy.optimize")

import strust.scipy  # noqa: E402

C = np.array([3.0, -4.0])


def distance(x):
    r = x - C
    return float(r @ r), 2 * r


def solve(**settings):
    settings = {"jac": True, "method": strust.scipy.auto, **settings}
    return optimize.minimize(distance, [0.5, 0.5], **settings)


def test_the_result_is_scipys():
    result = solve()
    assert isinstance(result, optimize.OptimizeResult)
    assert result.success
    assert result.status == 0
    assert np.allclose(result.x, C, atol=1e-5)
    assert result.fun == pytest.approx(0, abs=1e-8)
    assert np.allclose(result.jac, 2 * (result.x - C))
    assert result.nfev >= result.njev > 0
    assert result.nit > 0
    assert "converged" in result.message


def test_rosenbrock_with_and_without_a_gradient():
    for jac in (optimize.rosen_der, None):
        result = optimize.minimize(optimize.rosen, [1.2, 0.8], jac=jac, method=strust.scipy.auto, tol=1e-4)
        assert np.allclose(result.x, 1, atol=1e-2)


def test_args_are_passed():
    result = optimize.minimize(
        lambda x, a: float((x[0] - a) ** 2), [0.0], args=(2.0,), jac=lambda x, a: 2 * (x - a), method=strust.scipy.auto
    )
    assert result.x[0] == pytest.approx(2.0, abs=1e-5)


@pytest.mark.parametrize(
    "bounds", [optimize.Bounds([0, -1], [1, 1]), [(0, 1), (-1, 1)], [(None, 1), (-1, None)]], ids=str
)
def test_bounds_of_both_kinds(bounds):
    result = solve(bounds=bounds)
    assert np.allclose(result.x, [1, -1], atol=1e-6)


@pytest.mark.parametrize(
    ("constraints", "expected"),
    [
        ({"type": "eq", "fun": lambda x: x @ x - 1, "jac": lambda x: 2 * x}, C / 5),
        ({"type": "eq", "fun": lambda x: x @ x - 1}, C / 5),
        ({"type": "ineq", "fun": lambda x: 1 - x @ x, "jac": lambda x: -2 * x}, C / 5),
        ({"type": "ineq", "fun": lambda x, a: a - x, "jac": lambda x, a: -np.eye(2), "args": (1.0,)}, [1, -4]),
        (optimize.LinearConstraint([[1, 1]], 0, 0), [3.5, -3.5]),
        (optimize.LinearConstraint(np.eye(2), [-1, -1], [1, 1]), [1, -1]),
        (optimize.NonlinearConstraint(lambda x: x @ x, -np.inf, 1, jac=lambda x: 2 * x), C / 5),
        (optimize.NonlinearConstraint(lambda x: x @ x, 36, 49), C / 5 * 6),
        ([{"type": "ineq", "fun": lambda x: 1 - x}, optimize.LinearConstraint([[0, 1]], -2, np.inf)], [1, -2]),
        ("sphere", C / 5),
    ],
)
def test_constraints_of_all_kinds(constraints, expected):
    result = solve(constraints=constraints, tol=1e-8)
    assert np.allclose(result.x, expected, atol=1e-5)
    assert result.constr_violation < 1e-7


def test_the_answers_are_those_of_slsqp():
    constraint = {"type": "ineq", "fun": lambda x: 2 - x @ x, "jac": lambda x: -2 * x}
    ours = solve(constraints=constraint, bounds=[(0, None), (None, None)], tol=1e-8)
    theirs = solve(constraints=constraint, bounds=[(0, None), (None, None)], method="SLSQP", tol=1e-12)
    assert np.allclose(ours.x, theirs.x, atol=1e-5)


def test_callbacks_of_both_kinds_stop():
    points = []

    def old(xk):
        points.append(xk)
        if len(points) == 3:
            raise StopIteration

    assert solve(callback=old).nit == 3
    assert all(isinstance(x, np.ndarray) for x in points)
    values = []

    def new(intermediate_result):
        values.append(intermediate_result.fun)
        if len(values) == 2:
            raise StopIteration

    assert solve(callback=new).nit == 2
    assert all(isinstance(value, float) for value in values)


def test_options():
    assert solve(options={"maxiter": 7}).nit == 7
    assert not solve(options={"maxiter": 7}).success
    assert solve(options={"gtol": 1e-3, "disp": False}).success
    with pytest.raises(ValueError, match="no option 'ftol'; use tol"):
        solve(options={"ftol": 1e-3})
    with pytest.raises(ValueError, match="no option 'colour'"):
        solve(options={"colour": 1})


def test_other_methods_by_name():
    sgd = strust.scipy.method("sgd", learning_rate=0.1)
    assert np.allclose(solve(method=sgd).x, C, atol=1e-5)


def test_wrong_input_is_explained():
    with pytest.raises(TypeError, match="LinearConstraint"):
        solve(constraints=[3])
    with pytest.raises(ValueError, match="'type'"):
        solve(constraints={"fun": lambda x: x})


@pytest.mark.parametrize(
    "given", [{"hessp": optimize.rosen_hess_prod}, {"hess": optimize.rosen_hess}], ids=["hessp", "hess"]
)
def test_the_hessian_is_used(given):
    start = [1.3, 0.7, 0.8, 1.9, 1.2]
    result = optimize.minimize(
        optimize.rosen, start, jac=optimize.rosen_der, method=strust.scipy.auto, tol=1e-8, **given
    )
    assert result.success
    assert np.allclose(result.x, 1, atol=1e-7)
    assert result.state.method == "str-newton"
    assert result.nit < 60
    assert result.nhev > 0


def test_a_hessian_gets_args_and_is_computed_once_a_point():
    points = []

    def hess(x, a):
        points.append(tuple(x))
        return np.diag(a)

    scale = np.array([1.0, 10.0, 100.0])
    result = optimize.minimize(
        lambda x, a: float(0.5 * x @ (a * x)),
        [1.0, 2.0, 3.0],
        args=(scale,),
        jac=lambda x, a: a * x,
        hess=hess,
        method=strust.scipy.auto,
    )
    assert result.success
    assert len(points) == len(set(points))
    assert len(points) < result.nhev


def test_first_order_methods_and_constraints_ignore_the_hessian():
    for settings in ({"method": strust.scipy.method("str")}, {"bounds": [(0, 1), (-1, 1)]}):
        result = solve(hessp=lambda x, p: 2 * p, **settings)
        assert result.success
        assert result.nhev == 0
