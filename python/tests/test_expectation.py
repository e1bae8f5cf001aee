"""Constraints that are expectations, known on mini-batches only."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import strust
from strust.constraints import affine, at_most, bounds, expectation
from strust.diagnostics import kkt

TERMS = np.arange(20)
FIRST, SECOND = TERMS < 10, TERMS >= 10
RUN = {"n_terms": 20, "batch": 4, "epochs": 30}


def fun(x, i):
    """Ten terms want x[0] = 4.5 in the mean, the others x[1] = 14.5."""
    r = x[i // 10] - i
    return float(r @ r) / 2 / len(i), (np.bincount(i // 10, r, 2) / len(i)).astype(x.dtype)


def value(x, i):
    return float(np.mean(x[i // 10]))


def slope(x, i):
    return (np.bincount(i // 10, minlength=2) / len(i)).astype(x.dtype)


def row(groups, **bound):
    return expectation(value, slope, n_terms=20, groups=groups, **bound)


GAP = row((SECOND, FIRST), at_most=2.0)


@pytest.mark.parametrize(
    ("constraints", "x", "values", "multipliers"),
    [
        (GAP, [8.5, 10.5], [2], [2]),
        (row((SECOND, FIRST), at_least=-2, at_most=2), [8.5, 10.5], [2], [2]),
        (row((FIRST, SECOND), at_least=-2), [8.5, 10.5], [-2], [-2]),
        (row((SECOND, FIRST), at_most=12), [4.5, 14.5], [10], [0]),
        (row(np.arange(10), equal=3), [3, 14.5], [3], [0.75]),
        (row([(2.0, FIRST), (-1.0, SECOND)], at_least=0), [6.7, 13.4], [0], [-0.55]),
        ([GAP, row(None, at_most=9)], [8, 10], [2, 9], [2, 0.5]),
        ([row((SECOND, FIRST), at_least=-2, at_most=2), row(FIRST, equal=3)], [3, 5], [2, 3], [4.75, 5.5]),
        ([row(FIRST, at_least=0, at_most=20), GAP], [8.5, 10.5], [8.5, 2], [0, 2]),
        ([GAP, affine([1.0, 1.0], [10.0])], [4, 6], [2], [2]),
        (
            [affine([1.0, 1.0], [10.0]), row((SECOND, FIRST), at_most=5), row(FIRST, at_most=3)],
            [2.5, 7.5],
            [5, 2.5],
            [1.25, 0],
        ),
    ],
)
def test_the_answer_is_on_the_rows_with_their_multipliers(constraints, x, values, multipliers):
    result = strust.minimize(fun, [0.0, 0.0], constraints=constraints, **RUN)
    found = result.certificate
    assert result.success
    assert (result.reason, found.verdict) == ("kkt", "converged")
    assert np.allclose(result.x, x, atol=1e-6)
    assert np.allclose(found.value, values, atol=1e-6)
    assert np.allclose(found.multiplier, multipliers, atol=1e-5)
    assert (found.violation < 1e-6).all()
    assert result.constraint_norm < 1e-6
    assert result.gradient_norm < 1e-6
    assert result.fun == pytest.approx(fun(result.x, TERMS)[0])


@pytest.mark.parametrize("method", ["auto", "str-sqp"])
def test_bounds_of_x_hold_together_with_a_row(method):
    box = bounds(upper=[np.inf, 9.0])
    result = strust.minimize(fun, [0.0, 0.0], constraints=GAP, bounds=box, method=method, **RUN)
    assert result.success
    assert result.state.method == "str-sqp"
    assert np.allclose(result.x, [7, 9], atol=1e-6)
    assert result.x[1] <= 9.0
    assert np.allclose(result.certificate.multiplier, [1.25], atol=1e-5)


def test_value_and_gradient_may_come_from_one_function():
    both = expectation(lambda x, i: (value(x, i), slope(x, i)), n_terms=20, groups=(SECOND, FIRST), at_most=2.0)
    one = strust.minimize(fun, [0.0, 0.0], constraints=both, **RUN)
    two = strust.minimize(fun, [0.0, 0.0], constraints=GAP, **RUN)
    assert one.state == two.state
    assert (one.x == two.x).all()


def test_the_method_of_experiments_is_the_default():
    named = strust.minimize(fun, [0.0, 0.0], constraints=GAP, method="in-expectation", **RUN)
    assert named.state == strust.minimize(fun, [0.0, 0.0], constraints=GAP, **RUN).state
    with pytest.raises(ValueError, match="rows over the means of groups"):
        strust.minimize(fun, [1.0, 0.0], n_terms=20, constraints="sphere", method="in-expectation")


def test_masks_and_indices_are_the_same_group():
    listed = row((list(range(10, 20)), np.arange(10)), at_most=2.0)
    one = strust.minimize(fun, [0.0, 0.0], constraints=listed, **RUN)
    assert one.state == strust.minimize(fun, [0.0, 0.0], constraints=GAP, **RUN).state


def test_single_precision_and_matrices_keep_their_form():
    single = strust.minimize(fun, np.zeros(2, np.float32), constraints=GAP, **RUN)
    assert single.x.dtype == np.float32
    assert np.allclose(single.x, [8.5, 10.5], atol=1e-3)

    def shaped(function):
        def made(x, i):
            found = function(x.ravel(), i)
            return (found[0], found[1].reshape(1, 2)) if isinstance(found, tuple) else np.reshape(found, (1, 2))

        return made

    gap = expectation(shaped(lambda x, i: (value(x, i), slope(x, i))), n_terms=20, groups=(SECOND, FIRST), at_most=2.0)
    matrix = strust.minimize(shaped(fun), np.zeros((1, 2)), constraints=gap, **RUN)
    assert np.allclose(matrix.x, [[8.5, 10.5]], atol=1e-6)


def test_a_built_in_problem_takes_rows():
    problem = strust.problems.LeastSquares.random(n=100, d=3, noise=0.5)
    free = strust.minimize(problem, epochs=100).x
    mean = expectation(lambda x, i: x[0], lambda x, i: np.eye(3)[0], n_terms=100, at_most=free[0] - 1.0)
    result = strust.minimize(problem, constraints=mean, epochs=20)
    assert result.success
    assert result.x[0] == pytest.approx(free[0] - 1.0, abs=1e-6)
    # The problem as the score: f on the first terms, a quadratic. Its bound is between its minimum and f at `free`.
    old = np.arange(30)
    slope_at_0 = problem(np.zeros(3), old)[1]
    hessian = np.array([problem(unit, old)[1] - slope_at_0 for unit in np.eye(3)])
    least = problem(np.linalg.solve(hessian, -slope_at_0), old)[0]
    for most, verdict in ((0.5 * (least + problem(free, old)[0]), "converged"), (0.9 * least, "infeasible")):
        mean = expectation(problem, n_terms=100, groups=old, at_most=most)
        kept = strust.minimize(problem, constraints=mean, epochs=20)
        assert kept.certificate.verdict == verdict
        assert problem(kept.x, old)[0] == pytest.approx(max(most, least), rel=1e-6)


def test_rows_that_contradict_each_other_are_a_verdict():
    result = strust.minimize(fun, [0.0, 0.0], constraints=[row(FIRST, at_most=1), row(FIRST, at_least=3)], **RUN)
    assert not result.success
    assert (result.status, result.reason, result.certificate.verdict) == (5, "infeasible", "infeasible")
    # Nothing is closer to both.
    assert result.certificate.violation.sum() == pytest.approx(2.0)
    assert "contradict" in result.message


def made_people(n=1000):
    rng = np.random.default_rng(11)
    group = np.arange(n) < 0.6 * n
    a = np.column_stack([np.ones(n), rng.normal(size=(n, 3))])
    a[:, 1] += ~group
    positive = rng.random(n) < 1 / (1 + np.exp(-(a @ [0.2, 1.0, -0.5, 0.3])))
    y = np.where(positive, 1.0, -1.0)

    def loss(x, i):
        t = y[i] * (a[i] @ x)
        return np.mean(np.logaddexp(0, -t)), -a[i].T @ (y[i] / (1 + np.exp(t))) / len(i)

    def score(x, i):
        p = 1 / (1 + np.exp(-a[i] @ x))
        return np.mean(p), a[i].T @ (p * (1 - p)) / len(i)

    return a, group, loss, score


def test_a_model_ends_with_the_allowed_difference_between_groups():
    a, group, loss, score = made_people()
    gap = expectation(score, n_terms=len(a), groups=(~group, group), at_least=-0.02, at_most=0.02)
    result = strust.minimize(loss, np.zeros(4), n_terms=len(a), epochs=5, constraints=gap)
    assert result.success
    p = 1 / (1 + np.exp(-a @ result.x))
    assert p[~group].mean() - p[group].mean() == pytest.approx(0.02, abs=1e-7)
    assert result.certificate.value[0] == pytest.approx(0.02, abs=1e-7)
    assert 0 < result.certificate.standard_error[0] < 0.1


@pytest.mark.parametrize(
    ("members", "batch", "sampler", "all_have"),
    [
        (25, 10, None, True),
        (5, 10, None, False),
        (25, 99, None, False),  # the last batch has one term
        (25, 10, "with-replacement", False),
    ],
)
def test_batches_lack_members_of_small_groups_at_the_end_of_an_epoch_and_with_replacement(
    members, batch, sampler, all_have
):
    has_member = []

    def loss(x, i):
        if len(i) < 100:
            has_member.append(bool((i < members).any()))
        return np.mean((x[0] - i) ** 2) / 2, [np.mean(x[0] - i)]

    row = expectation(lambda x, i: (x[0], [1.0]), n_terms=100, groups=np.arange(100) < members, at_most=40)
    result = strust.minimize(loss, [0.0], n_terms=100, batch=batch, epochs=20, sampler=sampler, constraints=row)
    assert result.x[0] == pytest.approx(40, abs=1e-6)
    assert all(has_member) == all_have
    assert any(has_member)


def test_the_multipliers_follow_the_true_rate():
    a, group, loss, score = made_people()

    def rate(x, i):
        return np.mean(a[i] @ x > 0)

    # The bound and the limit are those of the Rust test.
    gap = expectation(score, n_terms=len(a), groups=(~group, group), at_least=-0.03, at_most=0.03, rate=rate)
    for seed in range(3):
        result = strust.minimize(loss, np.zeros(4), n_terms=len(a), epochs=20, constraints=gap, seed=seed)
        found, decided = result.certificate, a @ result.x > 0
        assert found.value[0] == pytest.approx(decided[~group].mean() - decided[group].mean(), abs=1e-12)
        assert found.violation[0] < 0.03


def test_every_batch_has_a_member_of_each_group():
    rare = np.isin(np.arange(40), [3, 17, 18, 30])
    batches = []

    def loss(x, i):
        batches.append(i)
        return float(np.mean((x[0] - i) ** 2)), np.array([2 * np.mean(x[0] - i)])

    mean = expectation(lambda x, i: x[0], lambda x, i: np.ones(1), n_terms=40, groups=rare, at_most=9.0)
    strust.minimize(loss, [0.0], n_terms=40, batch=10, epochs=5, constraints=mean)
    small = [i for i in batches if len(i) == 10]
    assert len(small) >= 20
    assert all(rare[i].any() for i in small)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exact", [[], [affine([1.0, 1.0], [10.0])]])
def test_a_state_continues_bit_for_bit(exact, dtype):
    settings = {"n_terms": 20, "constraints": [GAP, *exact]}
    whole = strust.minimize(fun, np.zeros(2, dtype), batch=4, seed=5, epochs=8, **settings)
    half = strust.minimize(fun, np.zeros(2, dtype), batch=4, seed=5, epochs=3, **settings)
    state = pickle.loads(pickle.dumps(half.state))
    assert state.steps == 15
    assert state.x.dtype == dtype
    again = strust.minimize(fun, state=state, epochs=8, **settings)
    assert again.state == whole.state
    assert (again.x == whole.x).all()
    assert (again.certificate.multiplier == whole.certificate.multiplier).all()
    back = strust.State.from_json(state.to_json(), state.method, dtype=np.dtype(dtype).name, **state.settings)
    assert back == state
    for rows in ([], [GAP, GAP]):
        with pytest.raises(ValueError, match=f"a run with 1 expectations, but there are {len(rows)}"):
            strust.minimize(fun, state=state, n_terms=20, constraints=[*rows, *exact])


def test_a_callback_sees_each_epoch_and_the_end_follows_it():
    seen = []

    def callback(now):
        seen.append((now.nit, now.x.copy()))
        return now.nit >= 15

    result = strust.minimize(fun, [0.0, 0.0], constraints=GAP, callback=callback, n_terms=20, batch=4, epochs=30)
    assert [nit for nit, _ in seen] == [5, 10, 15]
    assert result.nit == 15
    assert (result.state.x == seen[-1][1]).all()
    assert len(result.history) == 3
    assert result.success
    assert np.allclose(result.x, [8.5, 10.5], atol=1e-6)


def test_no_epochs_solve_the_problem_on_all_terms():
    result = strust.minimize(fun, [0.0, 0.0], constraints=GAP, n_terms=20, batch=4, epochs=0)
    assert (result.nit, result.success) == (0, True)
    assert np.allclose(result.x, [8.5, 10.5], atol=1e-6)


def test_exceptions_of_the_score_come_out_with_the_result():
    calls, last = 0, -1

    def counted(x, i):
        nonlocal calls
        calls += 1
        if calls == last:
            raise OSError("gone")
        return value(x, i)

    gap = expectation(counted, slope, n_terms=20, groups=(SECOND, FIRST), at_most=2.0)
    whole = strust.minimize(fun, [0.0, 0.0], constraints=gap, **RUN)
    # The end makes the last call.
    for failing in (calls // 2, calls):
        calls, last = 0, failing
        with pytest.raises(OSError, match="gone") as raised:
            strust.minimize(fun, [0.0, 0.0], constraints=gap, **RUN)
        result = raised.value.result
        assert result.certificate is None
        assert (result.x == result.state.x).all()
    assert result.state == whole.state


def test_ctrl_c_in_the_end_returns_the_answer_of_the_mini_batches():
    calls, last = 0, -1

    def counted(x, i):
        nonlocal calls
        calls += 1
        if calls == last:
            raise KeyboardInterrupt
        return value(x, i)

    gap = expectation(counted, slope, n_terms=20, groups=(SECOND, FIRST), at_most=2.0)
    whole = strust.minimize(fun, [0.0, 0.0], constraints=gap, **RUN)
    calls, last = 0, calls
    result = strust.minimize(fun, [0.0, 0.0], constraints=gap, **RUN)
    assert (result.status, result.certificate) == (3, None)
    assert result.state == whole.state
    assert (result.x == result.state.x).all()


def test_a_tolerance_that_holds_at_the_end_is_a_success():
    settings = {"n_terms": 20, "batch": 4, "epochs": 3, "constraints": GAP, "bounds": bounds(upper=20.0)}
    result = strust.minimize(fun, np.zeros(2, np.float32), tol=1e-3, **settings)
    assert (result.success, result.reason) == (True, "kkt")
    assert max(result.gradient_norm, result.constraint_norm) <= 1e-3


def test_independent_draws_reach_the_same_end():
    result = strust.minimize(fun, [0.0, 0.0], constraints=GAP, sampler="with-replacement", **RUN)
    assert np.allclose(result.x, [8.5, 10.5], atol=1e-6)


def test_functions_that_return_something_else_are_named():
    def run(*functions, **more):
        gap = expectation(*functions, n_terms=20, groups=(SECOND, FIRST), at_most=2.0, **more)
        strust.minimize(fun, [0.0, 0.0], constraints=gap, **RUN)

    with pytest.raises(TypeError, match="fun of the expectations must return a tuple"):
        run(value)
    with pytest.raises(ValueError, match=r"gradient of jac of the expectations has shape \(3,\)"):
        run(value, lambda x, i: np.ones(3))
    with pytest.raises(TypeError, match="rate of the expectations must return a number"):
        run(value, slope, rate=lambda x, i: "high")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"at_most": None}, "no bound: pass at_most, at_least or equal"),
        ({"equal": 1.0}, "equal or other bounds, not both"),
        ({"at_least": 3.0}, "3.0 and 2.0, but must be finite and in order"),
        ({"at_most": np.inf}, "must be finite"),
        ({"at_most": np.nan}, "must be finite"),
        ({"n_terms": 0, "groups": None}, "group 0 has no members"),
        ({"groups": TERMS < 0}, "group 0 has no members"),
        ({"groups": []}, "group 0 has no members"),
        ({"groups": (FIRST, FIRST[:5])}, "group 1 is a mask of 5 terms, but n_terms is 20"),
        ({"groups": [5, 20]}, "index 20, but the terms are 0 to 19"),
        ({"groups": [-1]}, "index -1"),
        ({"groups": FIRST.astype(int)}, "an index twice; a mask must be of dtype bool"),
        ({"groups": [0.5]}, "pass a mask or an array of indices"),
        ({"groups": 3}, "pass a mask or an array of indices"),
        ({"groups": (FIRST, SECOND, FIRST)}, "a tuple of groups is a pair, not 3"),
        ({"groups": [(1.0, FIRST), SECOND]}, "must have pairs"),
        ({"groups": [(FIRST, 1.0)]}, "must have pairs"),
    ],
)
def test_wrong_rows_are_explained(given, words):
    with pytest.raises(ValueError, match=words):
        expectation(value, slope, **{"n_terms": 20, "groups": FIRST, "at_most": 2.0, **given})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"n_terms": 21}, "n_terms=20, but minimize has n_terms=21"),
        ({"n_terms": None}, "n_terms=20, but minimize has n_terms=None"),
        ({"constraints": [GAP, expectation(fun, n_terms=20, at_most=1)]}, "the same fun, jac and rate"),
        ({"method": "sgd", "options": {"learning_rate": 0.1}}, "under expectations use"),
        ({"method": "str-sqp"}, "under expectations use"),
        ({"constraints": [GAP, "sphere"], "options": {"products": 9}}, "without options"),
        ({"hessp": lambda x, p, i: p}, "leave out hessp"),
        ({"constraints": row([(np.nan, FIRST)], at_most=1)}, "`weight` is NaN, but must be finite"),
        ({"constraints": [GAP, "sphere", 3]}, "not int"),
    ],
)
def test_settings_that_do_not_fit_are_explained(given, words):
    with pytest.raises((ValueError, TypeError), match=words):
        strust.minimize(fun, [0.0, 0.0], **{"constraints": GAP, "n_terms": 20, "epochs": 2, **given})


def test_an_expectation_is_for_minimize_alone():
    with pytest.raises(ValueError, match="bounds of its own"):
        at_most(GAP)
    with pytest.raises(ValueError, match=r"strust\.minimize alone"):
        kkt(fun, [0.0, 0.0], GAP, n_terms=20)
    with pytest.raises(TypeError, match="jac of an expectation must be a function, not int"):
        expectation(value, 3, n_terms=20, at_most=1)


def test_the_repr_is_readable():
    assert repr(row(FIRST, at_most=2)) == (
        "expectation(fun=value, jac=slope, rate=None, weights=[1.0], groups=array(1, 20), at_least=-inf, at_most=2.0)"
    )
    result = strust.minimize(fun, [0.0, 0.0], constraints=GAP, **RUN)
    assert "rows: converged: row 0 is 2, violated by " in repr(result)
