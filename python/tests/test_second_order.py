"""Second-order methods: products of the user, of built-in problems, and by differences."""

from __future__ import annotations

import numpy as np
import pytest

import strust

SECOND_ORDER = ("str-newton", "str-gauss-newton", "str-lbfgs", "str-lsr1")
RNG = np.random.default_rng(0)
A = RNG.normal(size=(60, 4)) * [1.0, 10.0, 100.0, 1000.0]
SOLUTION = np.array([1.0, -2.0, 3.0, 0.5])
B = A @ SOLUTION + 0.1 * RNG.normal(size=60)


def rosenbrock(x):
    a, b = 1 - x[0], x[1] - x[0] ** 2
    return a**2 + 100 * b**2, np.array([-2 * a - 400 * x[0] * b, 200 * b])


def rosenbrock_product(x, p):
    return np.array([[2 + 1200 * x[0] ** 2 - 400 * x[1], -400 * x[0]], [-400 * x[0], 200]]) @ p


def residuals(x, i):
    r = A[i] @ x - B[i]
    return 0.5 * np.mean(r**2), A[i].T @ r / len(i)


def residuals_product(x, p, i):
    return A[i].T @ (A[i] @ p) / len(i)


def test_products_of_a_function_are_used_and_counted():
    result = strust.minimize(rosenbrock, [-1.2, 1.0], hessp=rosenbrock_product, tol=1e-8)
    assert result.success
    assert result.state.method == "str-newton"
    assert np.allclose(result.x, 1, atol=1e-8)
    assert result.nit < 40
    # One gradient a step: no product needs one.
    assert result.nhev > 0
    assert result.njev == result.nit
    assert f"nhev: {result.nhev}" in repr(result)


def test_without_products_differences_of_gradients_give_the_same_answer():
    result = strust.minimize(rosenbrock, [-1.2, 1.0], method="str-newton", tol=1e-8)
    assert result.success
    assert np.allclose(result.x, 1, atol=1e-8)
    assert result.nhev == 0
    assert result.njev > result.nit
    assert "nhev" not in repr(result)


def test_products_with_constraints():
    def distance(x):
        r = x - [3.0, 4.0]
        return r @ ([1.0, 5.0] * r), 2 * np.array([1.0, 5.0]) * r

    def product(x, p):
        return 2 * np.array([1.0, 5.0]) * p

    options = {"products": 100}
    plain = strust.minimize(distance, [1.0, 0.3], constraints="sphere")
    result = strust.minimize(distance, [1.0, 0.3], constraints="sphere", hessp=product, options=options)
    assert result.success
    assert result.nhev > 0
    assert np.allclose(result.x, plain.x, atol=1e-6)
    differences = strust.minimize(distance, [1.0, 0.3], constraints="sphere", options=options)
    assert differences.nhev == 0
    assert differences.njev > differences.nit


@pytest.mark.parametrize("method", ["str-lbfgs", "str-lsr1"])
def test_limited_memory_needs_no_products(method):
    result = strust.minimize(rosenbrock, [-1.2, 1.0], method=method, tol=1e-8)
    assert result.success
    assert np.allclose(result.x, 1, atol=1e-6)
    assert result.nhev == 0


def test_products_of_mini_batches_get_the_sample_of_the_step():
    samples = []

    def fun(x, i):
        samples.append(i.copy())
        return residuals(x, i)

    def hessp(x, p, i):
        assert (i == samples[-1]).all()
        assert not i.flags.writeable
        assert x.shape == p.shape == (4,)
        # The arrays are the function's own.
        product = residuals_product(x, p, i)
        x[:] = p[:] = np.nan
        return product

    result = strust.minimize(fun, np.zeros(4), n_terms=60, batch=20, hessp=hessp, method="str-newton", max_steps=20)
    assert result.nhev > 0
    assert result.fun < residuals(np.zeros(4), np.arange(60))[0]


def test_mini_batches_have_products_only_where_they_are_chosen():
    with pytest.raises(
        ValueError, match=r"method='auto' makes no products: .* use one of str-newton, str-gauss-newton"
    ):
        strust.minimize(residuals, np.zeros(4), n_terms=60, hessp=residuals_product, epochs=1)
    assert strust.minimize(residuals, np.zeros(4), n_terms=60, epochs=1).state.method == "auto"


@pytest.mark.parametrize("method", SECOND_ORDER)
def test_a_state_continues_bit_for_bit(method):
    hessp = residuals_product if "newton" in method else None
    settings = {"n_terms": 60, "batch": 20, "method": method, "hessp": hessp}
    whole = strust.minimize(residuals, np.zeros(4), epochs=40, **settings)
    first = strust.minimize(residuals, np.zeros(4), epochs=20, **settings)
    again = strust.minimize(residuals, state=first.state, n_terms=60, epochs=40, hessp=hessp)
    assert (again.x == whole.x).all()


@pytest.mark.parametrize("method", ["str-newton", "str-gauss-newton"])
def test_an_exception_of_a_product_leaves_the_state_before_the_failed_step(method):
    settings = {"n_terms": 60, "batch": 20, "method": method, "epochs": 40}
    whole = strust.minimize(residuals, np.zeros(4), hessp=residuals_product, **settings)
    assert whole.nhev > 7
    for fails_at in (1, 2, 7):
        count = 0

        def hessp(x, p, i, fails_at=fails_at):
            nonlocal count
            count += 1
            if count == fails_at:
                raise LookupError("the data are gone")
            return residuals_product(x, p, i)

        with pytest.raises(LookupError, match="the data are gone") as caught:
            strust.minimize(residuals, np.zeros(4), hessp=hessp, **settings)
        assert any(entry.name == "hessp" for entry in caught.traceback)
        state = caught.value.result.state
        again = strust.minimize(residuals, state=state, n_terms=60, epochs=40, hessp=residuals_product)
        assert (again.x == whole.x).all(), fails_at


@pytest.mark.parametrize(
    ("returned", "error", "words"),
    [
        (lambda p: p[:1], ValueError, r"the product of hessp has shape \(1,\), but must have shape \(2,\)"),
        (lambda p: p[:, None], ValueError, r"shape \(2, 1\)"),
        (lambda p: p + 0j, TypeError, "real numbers, not of dtype complex128"),
        (lambda p: None, TypeError, "the product of hessp must be an array of real numbers"),
    ],
)
def test_wrong_products_are_explained(returned, error, words):
    with pytest.raises(error, match=words):
        strust.minimize(rosenbrock, [-1.2, 1.0], hessp=lambda x, p: returned(p), tol=1e-8)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"hessp": 3}, TypeError, "hessp must be a function, not int"),
        ({"hessp": rosenbrock_product, "method": "sgd"}, ValueError, "method='sgd' makes no products: leave out hessp"),
        ({"hessp": rosenbrock_product, "constraints": "sphere"}, ValueError, "method='str-sqp' makes no products"),
        ({"method": "str-gauss-newton"}, ValueError, 'needs hessp, .* without them use "str-newton"'),
        ({"method": "str-newton", "constraints": "sphere"}, ValueError, "has no constraints"),
        ({"method": "str-newton", "options": {"forcing": 2.0}}, ValueError, "`forcing` is 2, but must be in"),
    ],
)
def test_wrong_arguments_are_explained(changes, error, words):
    with pytest.raises(error, match=words):
        strust.minimize(rosenbrock, [-1.2, 1.0], tol=1e-8, **changes)


def test_a_product_that_is_not_finite_ends_the_run_with_the_last_good_point():
    count = 0

    def hessp(x, p):
        nonlocal count
        count += 1
        return rosenbrock_product(x, p) * (np.nan if count > 9 else 1.0)

    result = strust.minimize(rosenbrock, [-1.2, 1.0], hessp=hessp, tol=1e-8)
    assert result.status == 4
    assert not result.success
    assert "curvature" in result.message
    assert result.nit > 0
    assert np.isfinite(result.x).all()
    assert result.fun < rosenbrock(np.array([-1.2, 1.0]))[0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_matrix_keeps_its_shape_and_type(dtype):
    scale = np.array([[1.0, 10.0, 100.0], [2.0, 20.0, 200.0]], dtype=dtype)
    seen = set()

    def hessp(x, p):
        seen.add((x.shape, p.shape, str(x.dtype), str(p.dtype)))
        return scale * p

    result = strust.minimize(
        lambda x: (0.5 * np.sum(scale * (x - 1) ** 2), scale * (x - 1)),
        np.zeros((2, 3), dtype=dtype),
        hessp=hessp,
        tol=1e-3,
    )
    assert result.success
    assert np.allclose(result.x, 1, atol=1e-2)
    assert seen == {((2, 3), (2, 3), dtype, dtype)}


@pytest.mark.parametrize("method", ["str-newton", "str-gauss-newton"])
def test_a_built_in_problem_has_products(method):
    problem = strust.problems.LeastSquares(A, B)
    result = strust.minimize(problem, method=method, sampler="full", tol=1e-6, epochs=2000)
    assert result.success
    assert result.nhev > 0
    with pytest.raises(ValueError, match="has products of its own: leave out hessp"):
        strust.minimize(problem, hessp=residuals_product, epochs=1)
