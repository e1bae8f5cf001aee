"""`strust.minimize` on functions of the user."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import strust

RNG = np.random.default_rng(0)
A = RNG.normal(size=(60, 4))
SOLUTION = np.array([1.0, -2.0, 3.0, 0.5])
B = A @ SOLUTION

#: Settings that make every method work on the small problem.
OPTIONS = {
    "sgd": {"learning_rate": 0.1},
    "adam": {"learning_rate": 0.05},
    "sgd-proj": {"learning_rate": 0.1},
    "riemannian": {"learning_rate": 0.1},
    "auglag": {"learning_rate": 0.02, "penalty": 10.0},
    "landing": {"learning_rate": 0.1},
}
#: Methods that make products; one of them cannot do without `hessp`.
PRODUCTS = ("str-newton", "str-gauss-newton")
CONSTRAINED = ("str-p", "str-sqp", "sgd-proj", "riemannian", "auglag", "landing")
#: Without the one that needs constraints of another kind.
METHODS = [name for name in strust.METHODS if name != "in-expectation"]


def residuals(x, i):
    r = A[i] @ x - B[i]
    return 0.5 * np.mean(r**2), A[i].T @ r / len(i)


def product(x, p, i):
    return A[i].T @ (A[i] @ p) / len(i)


def run(fun=residuals, **changes):
    settings = {"x0": np.zeros(4), "n_terms": 60, "batch": 10, "epochs": 30, "seed": 1, **changes}
    return strust.minimize(fun, settings.pop("x0"), **settings)


def test_the_default_solves_least_squares():
    result = run(epochs=40)
    assert np.allclose(result.x, SOLUTION, atol=1e-8)
    assert result.status == 1
    assert result.message == "epoch budget used up"
    assert result.nit == 40 * 6
    assert result.nfev == result.njev + result.nit
    assert len(result.history) == 0


def test_a_tolerance_converges_and_is_a_success():
    result = run(epochs=500, tol=1e-9)
    assert result.success
    assert result.gradient_norm <= 1e-9
    assert result.message.startswith("converged")


def test_without_a_budget_it_stops_when_f_no_longer_improves():
    noisy = B + RNG.normal(size=60)

    def fun(x, i):
        r = A[i] @ x - noisy[i]
        return 0.5 * np.mean(r**2), A[i].T @ r / len(i)

    result = strust.minimize(fun, np.zeros(4), n_terms=60, batch=10)
    best = np.linalg.lstsq(A, noisy, rcond=None)[1][0] / 120
    assert result.fun == pytest.approx(best, rel=1e-2)
    # The noise of mini-batches has ended it, not the minimum.
    assert (result.success, result.status, result.reason) == (False, 5, "stagnation")
    assert result.message == "f no longer improves, but no optimality condition holds"


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("method", ["auto", "str-newton", "str-lbfgs"])
def test_without_a_budget_a_run_at_a_minimum_is_a_success(scale, method):
    noisy = B + RNG.normal(size=60)

    def fun(x):
        r = A @ x - noisy
        return scale * (0.5 * np.mean(r**2)), scale * (A.T @ r / 60)

    result = strust.minimize(fun, np.zeros(4), method=method)
    assert (result.success, result.status, result.reason) == (True, 0, "gradient-norm")
    assert result.message.startswith("converged")
    assert np.allclose(result.x, np.linalg.lstsq(A, noisy, rcond=None)[0], atol=1e-3)


def test_a_run_that_a_kink_stops_is_no_success():
    def fun(x):
        return float(np.abs(x - 0.3).sum()), np.sign(x - 0.3)

    result = strust.minimize(fun, np.zeros(3))
    assert (result.success, result.status, result.reason) == (False, 5, "stagnation")


def test_the_reason_of_a_run_is_a_code():
    assert run(epochs=2).reason == "epochs"
    assert run(epochs=None, max_steps=2).reason == "steps"
    assert run(epochs=None, max_seconds=0.0).reason == "wall-clock"
    assert run(callback=lambda now: True).reason == "observer"
    assert run(tol=1e-3, epochs=500).reason == "gradient-norm"


def test_the_same_seed_gives_the_same_bits():
    assert (run().x == run().x).all()
    assert (run().x != run(seed=2).x).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(4,), (2, 2), (1, 4), (2, 1, 2)])
def test_a_point_keeps_its_shape_and_type(dtype, shape):
    seen = set()

    def fun(x, i):
        seen.add((x.shape, x.dtype.type))
        value, gradient = residuals(x.ravel().astype(np.float64), i)
        return value, gradient.reshape(shape).astype(dtype)

    result = run(fun, x0=np.zeros(shape, dtype))
    assert seen == {(shape, dtype)}
    assert result.x.shape == shape
    assert result.x.dtype == dtype
    assert np.allclose(result.x.ravel(), SOLUTION, atol=1e-4)


def test_a_separate_gradient_gives_the_same_run_and_saves_gradients():
    calls = {"fun": 0, "jac": 0}

    def fun(x, i):
        calls["fun"] += 1
        return residuals(x, i)[0]

    def jac(x, i):
        calls["jac"] += 1
        return residuals(x, i)[1]

    assert (run(fun, jac=jac).x == run().x).all()
    assert calls["fun"] > 1.9 * calls["jac"]


def test_a_function_may_keep_and_change_its_arrays():
    kept = []

    def fun(x, i):
        value = residuals(x, i)
        kept.append((x, x.copy(), x[:2], x[:2].copy()))
        return value

    plain = run(epochs=3)
    assert (run(fun, epochs=3).x == plain.x).all()
    for x, copy, view, view_copy in kept:
        assert (x == copy).all()
        assert (view == view_copy).all()

    def spoils(x, i):
        value = residuals(x, i)
        x[:] = np.nan
        return value

    assert (run(spoils, epochs=3).x == plain.x).all()


def test_the_indices_are_a_batch_and_cannot_be_changed():
    sizes = set()

    def fun(x, i):
        sizes.add(len(i))
        assert i.dtype == np.int64
        with pytest.raises(ValueError, match="read-only"):
            i[0] = 0
        return residuals(x, i)

    run(fun, batch=16, epochs=1)
    assert sizes == {16, 12, 60}


def test_numbers_of_numpy_are_numbers():
    changes = {"n_terms": np.int64(60), "batch": np.int32(10), "epochs": np.int64(3), "seed": np.uint8(1)}
    assert (run(**changes).x == run(epochs=3).x).all()
    assert (run(x0=[0, 0, 0, 0], epochs=3).x == run(epochs=3).x).all()


def test_a_deterministic_function_needs_no_indices():
    result = strust.minimize(lambda x: residuals(x, np.arange(60)), np.zeros(4), tol=1e-8)
    assert result.success
    assert np.allclose(result.x, SOLUTION, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_runs_by_name(method):
    constraints = "sphere" if method in CONSTRAINED else ()
    start = SOLUTION / np.linalg.norm(SOLUTION) + 0.1
    hessp = product if method in PRODUCTS else None
    result = run(x0=start, method=method, constraints=constraints, hessp=hessp, options=OPTIONS.get(method), epochs=40)
    assert result.status in (0, 1)
    assert residuals(result.x, np.arange(60))[0] < residuals(start, np.arange(60))[0] or method in CONSTRAINED
    if method in CONSTRAINED:
        assert result.constraint_norm < 0.6


@pytest.mark.parametrize("method", METHODS)
def test_an_exception_leaves_the_state_before_the_failed_step(method):
    """A run that fails at any evaluation continues from its state as if nothing had happened."""
    settings = {"method": method, "options": OPTIONS.get(method), "epochs": 4}
    settings["constraints"] = "sphere" if method in CONSTRAINED else ()
    settings["hessp"] = product if method in PRODUCTS else None
    start = SOLUTION / np.linalg.norm(SOLUTION) + 0.1
    whole = run(x0=start, **settings)
    for fails_at in (7, 8, 9, 10, 23):
        count = 0

        def fun(x, i, fails_at=fails_at):
            nonlocal count
            count += 1
            if count == fails_at:
                raise LookupError("the data are gone")
            return residuals(x, i)

        with pytest.raises(LookupError, match="the data are gone") as caught:
            run(fun, x0=start, **settings)
        partial = caught.value.result
        assert partial.state.steps < whole.nit
        again = strust.minimize(
            residuals,
            state=partial.state,
            n_terms=60,
            epochs=4,
            constraints=settings["constraints"],
            hessp=settings["hessp"],
        )
        assert (again.x == whole.x).all(), fails_at


def test_an_exception_at_the_start_comes_out_as_itself():
    def fun(x, i):
        raise ZeroDivisionError("at once")

    with pytest.raises(ZeroDivisionError, match="at once"):
        run(fun)


def test_an_exception_has_the_traceback_of_the_function():
    def inner():
        raise KeyError("deep")

    def fun(x, i):
        inner()

    with pytest.raises(KeyError) as caught:
        run(fun)
    assert any(entry.name == "inner" for entry in caught.traceback)


def test_a_callback_sees_each_epoch_and_can_stop():
    seen = []
    result = run(callback=lambda now: seen.append((now.nit, now.fun, now.x)) or len(seen) == 3)
    assert [nit for nit, _, _ in seen] == [6, 12, 18]
    assert result.status == 2
    assert result.message == "stopped by the callback"
    assert (seen[-1][2] == result.x).all()
    assert seen[-1][1] == result.fun
    assert result.history.step.tolist() == [6, 12, 18]

    def stops(now):
        raise StopIteration

    assert run(callback=stops).nit == 6


def test_an_exception_of_a_callback_comes_out():
    def callback(now):
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more") as caught:
        run(callback=callback)
    assert caught.value.result.nit == 6


def test_the_history_becomes_a_data_frame():
    pd = pytest.importorskip("pandas")
    frame = run(callback=lambda now: None).history.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == ["step", "fun", "gradient_norm", "constraint_norm"]
    assert len(frame) == 30


def test_a_breakdown_returns_the_last_good_point():
    def fun(x, i):
        value, gradient = residuals(x, i)
        return (value, gradient) if np.linalg.norm(x) < 2 else (value, np.full(4, np.nan))

    result = run(fun, method="sgd", options={"learning_rate": 0.1})
    assert result.status == 4
    assert not result.success
    assert "gradient norm is NaN" in result.message
    assert np.isfinite(result.x).all()


def test_ctrl_c_returns_what_was_reached():
    script = """
import os, signal, threading, time, numpy as np, strust
def fun(x, i):
    return float(x @ x), 2 * x
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
result = strust.minimize(fun, np.ones(3), n_terms=100, max_seconds=60)
print(result.status, result.message, result.nit > 10)
"""
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "3 stopped by Ctrl-C True", done.stderr
    assert time.monotonic() - began < 30


def test_ctrl_c_stops_a_problem_without_python_in_the_loop():
    script = """
import os, signal, threading, strust
problem = strust.problems.LeastSquares.random(n=2000, d=50, noise=0.1)
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
result = strust.minimize(problem, max_seconds=60)
print(result.status)
"""
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "3", done.stderr
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"x0": None}, ValueError, "x0, the start, is missing"),
        ({"x0": np.zeros(4, complex)}, TypeError, "real numbers, not of dtype complex128"),
        ({"x0": np.zeros(4, np.float16)}, TypeError, "dtype float16; use float32 or float64"),
        ({"x0": np.array(["a"])}, TypeError, "real numbers"),
        ({"x0": 1.0}, ValueError, "x0 is a number"),
        ({"x0": []}, ValueError, "x0 is empty"),
        ({"x0": [0, np.nan, 0, 0]}, ValueError, "x0 is not finite at index 1: nan"),
        ({"x0": np.zeros(3)}, ValueError, "matmul"),
        ({"batch": 0}, ValueError, "batch is 0"),
        ({"batch": 61}, ValueError, r"`batch` is 61, but must be in \[1, 60\]"),
        ({"batch": 2.5}, ValueError, "batch is 2.5"),
        ({"n_terms": 0}, ValueError, "n_terms is 0"),
        ({"n_terms": None}, ValueError, "batch and sampler belong to a sum"),
        ({"seed": -1}, ValueError, "seed is -1"),
        ({"epochs": -1}, ValueError, "epochs is -1"),
        ({"epochs": 2.5}, ValueError, "epochs is 2.5, but must be a whole number"),
        ({"max_steps": -3}, ValueError, "max_steps is -3, but must be ≥ 0"),
        ({"tol": np.nan}, ValueError, "tol is nan"),
        ({"method": "newton"}, ValueError, "there is no method 'newton'|there is no method \"newton\""),
        ({"method": "sgd", "options": {"lr": 1}}, ValueError, "unknown field `lr`, expected one of `learning_rate`"),
        ({"method": "sgd", "options": {"learning_rate": -1}}, ValueError, "must be > 0"),
        ({"options": {"gamma": "x"}}, ValueError, "options of auto"),
        ({"method": "str-p"}, ValueError, "needs constraints"),
        ({"method": "sgd", "constraints": "sphere"}, ValueError, "has no constraints"),
        ({"constraints": "circle"}, ValueError, "there is no constraint 'circle'"),
        ({"constraints": "stiefel"}, ValueError, "needs a matrix x"),
        ({"constraints": [3]}, TypeError, "a constraint is a name or an object"),
        ({"schedule": "cosine"}, ValueError, "has no learning rate"),
        ({"sampler": "random"}, ValueError, "sampler is"),
        ({"jac": 3}, TypeError, "jac must be a function"),
        ({"bounds": [(0, 1)]}, ValueError, "there are 1 bounds, but x0 has 4 components"),
    ],
)
def test_wrong_arguments_are_explained(changes, error, words):
    with pytest.raises(error, match=words):
        run(**changes)


@pytest.mark.parametrize(
    ("returned", "error", "words"),
    [
        (lambda x: 1.0, TypeError, r"must return a tuple \(value, gradient\), not <class 'float'>"),
        (lambda x: None, TypeError, "must return a tuple"),
        (lambda x: ("a", x), TypeError, "fun must return a number"),
        (lambda x: (np.zeros(2), x), TypeError, "fun must return a number"),
        (lambda x: (1.0, x[:3]), ValueError, r"the gradient of fun has shape \(3,\), but must have shape \(4,\)"),
        (lambda x: (1.0, x[:, None]), ValueError, r"shape \(4, 1\)"),
        (lambda x: (1.0, x + 0j), TypeError, "real numbers, not of dtype complex128"),
        (lambda x: (1.0, None), TypeError, "real numbers, not of dtype object"),
        (lambda x: (np.nan, x), ValueError, "the objective is NaN at the start"),
        (lambda x: (1.0, x * np.nan), ValueError, "not finite"),
    ],
)
def test_wrong_results_of_the_function_are_explained(returned, error, words):
    with pytest.raises(error, match=words):
        run(lambda x, i: returned(x))


def test_gradients_of_any_layout_are_read():
    def strided(x, i):
        value, gradient = residuals(x, i)
        wide = np.zeros(8)
        wide[::2] = gradient
        return value, wide[::2]

    def read_only(x, i):
        value, gradient = residuals(x, i)
        gradient.flags.writeable = False
        return value, gradient

    def as_list(x, i):
        value, gradient = residuals(x, i)
        return value, gradient.tolist()

    plain = run(epochs=3).x
    for fun in (strided, read_only, as_list):
        assert (run(fun, epochs=3).x == plain).all()
    start = np.zeros(8)[::2]
    start.flags.writeable = False
    assert (run(x0=start, epochs=3).x == plain).all()


def test_a_matrix_gradient_of_any_order_is_read():
    def fun(order):
        return lambda x: (float((x**2).sum()), np.asarray(2 * x, order=order))

    start = np.arange(6.0).reshape(2, 3)
    ends = [strust.minimize(fun(order), start, epochs=5).x for order in "CF"]
    assert (ends[0] == ends[1]).all()


def test_threads_run_side_by_side():
    expected = [run(seed=seed).x for seed in range(4)]
    found = [None] * 4

    def work(seed):
        found[seed] = run(seed=seed).x

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((a == b).all() for a, b in zip(found, expected, strict=True))


def test_a_fork_after_the_import_works():
    if not hasattr(os, "fork"):
        pytest.skip("there is no fork here")
    script = """
import os, numpy as np, strust
fun = lambda x, i: (float(x @ x), 2 * x)
strust.minimize(fun, np.ones(2), n_terms=4, epochs=3)
child = os.fork()
result = strust.minimize(fun, np.ones(2), n_terms=4, epochs=3)
problem = strust.problems.LeastSquares.random(n=50, d=3)
assert strust.minimize(problem, epochs=5).nit == 10
if child:
    assert os.waitpid(child, 0)[1] == 0
    print("both")
else:
    os._exit(0)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "both", done.stderr


def test_a_function_may_call_minimize():
    def fun(x, i):
        inner = strust.minimize(lambda y: (float(y @ y), 2 * y), [1.0], epochs=2)
        assert inner.nit == 2
        return residuals(x, i)

    assert (run(fun, epochs=2).x == run(epochs=2).x).all()


def test_the_repr_says_what_happened():
    text = repr(run())
    assert "message: epoch budget used up" in text
    assert "nit: 180" in text


def test_a_signal_handler_of_the_user_runs_during_a_run():
    caught = []
    before = signal.signal(signal.SIGUSR1, lambda *_: caught.append(1))
    try:
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
        problem = strust.problems.LeastSquares.random(n=2000, d=50, noise=0.1)
        strust.minimize(problem, max_seconds=1.0)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert caught == [1]
