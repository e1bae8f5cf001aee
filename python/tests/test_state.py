"""States: they pickle, they move between Rust and Python, and they continue bit for bit."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import strust

#: The same run as in crates/strust/tests/library/exchange.rs, which checks this file too.
EXCHANGED = Path(__file__).parents[2] / "crates/strust/tests/golden/state.json"
Y = [1.0, 3.5, 4.5, 7.0, 9.5]


def line(x, indices):
    value, g0, g1 = 0.0, 0.0, 0.0
    x0, x1 = float(x[0]), float(x[1])
    for i in indices.tolist():
        r = x0 + x1 * i - Y[i]
        value += 0.5 * r * r
        g0 += r
        g1 += r * i
    n = len(indices)
    return value / n, np.array([g0 / n, g1 / n])


def product(x, p, indices):
    return np.mean([(p[0] + p[1] * i) * np.array([1.0, i]) for i in indices], axis=0)


def test_a_state_moves_between_rust_and_python():
    saved = json.loads(EXCHANGED.read_text())
    here = strust.minimize(line, [0.0, 0.0], n_terms=5, batch=2, seed=3, max_steps=10)
    assert json.loads(here.state.to_json()) == saved["state"]
    state = strust.State.from_json(json.dumps(saved["state"]), "auto", batch=2, seed=3)
    assert state.steps == 10
    end = strust.minimize(line, state=state, n_terms=5, max_steps=20)
    assert end.x.tolist() == saved["end"]


def test_a_state_of_auto_from_an_older_version_is_refused():
    half = strust.minimize(line, [0.0, 0.0], n_terms=5, batch=2, epochs=3)
    older = half.state.to_json().replace('"balances"', '"pulls"')
    assert "pulls" in older
    with pytest.raises(ValueError, match="`balances` is missing"):
        strust.State.from_json(older, "auto")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", sorted(set(strust.METHODS) - {"auglag", "landing", "in-expectation"}))
def test_a_pickled_state_continues_bit_for_bit(method, dtype):
    needs = method in ("str-p", "str-sqp", "sgd-proj", "riemannian")
    rated = method in ("sgd", "adam", "sgd-proj", "riemannian")
    settings = {
        "n_terms": 5,
        "constraints": "sphere" if needs else (),
        # It cannot do without.
        "hessp": product if method == "str-gauss-newton" else None,
    }
    first = {"method": method, "options": {"learning_rate": 0.01} if rated else None, "batch": 2, "seed": 5}
    start = np.array([1.0, 0.1], dtype)

    def fun(x, i):
        value, gradient = line(x, i)
        return value, gradient.astype(dtype)

    whole = strust.minimize(fun, start, epochs=8, **first, **settings)
    half = strust.minimize(fun, start, epochs=3, **first, **settings)
    state = pickle.loads(pickle.dumps(half.state))
    assert state == half.state
    again = strust.minimize(fun, state=state, epochs=8, **settings)
    assert (again.x == whole.x).all()
    assert again.nit + half.nit == whole.nit
    text = state.to_json()
    back = strust.State.from_json(text, method, dtype=np.dtype(dtype).name)
    assert back.data == state.data


def test_a_matrix_state_continues():
    problem = strust.problems.Subspace.spiked(d=10, k=2, n=40)
    whole = strust.minimize(problem, constraints="stiefel", epochs=6)
    half = strust.minimize(problem, constraints="stiefel", epochs=2)
    again = strust.minimize(problem, state=half.state, constraints="stiefel", epochs=6)
    assert (again.x == whole.x).all()
    assert half.state.x.shape == (10, 2)


def test_wrong_states_are_refused():
    half = strust.minimize(line, [0.0, 0.0], n_terms=5, batch=2, epochs=3)
    with pytest.raises(ValueError, match="belongs to method='auto', not to 'sgd'"):
        strust.minimize(line, state=half.state, n_terms=5, method="sgd")
    with pytest.raises(ValueError, match="pass x0 or state, not both"):
        strust.minimize(line, [0.0, 0.0], state=half.state, n_terms=5)
    broken = strust.State("auto", "float64", half.state.data[:-5])
    with pytest.raises(ValueError, match="not the state of such a method"):
        strust.minimize(line, state=broken, n_terms=5)
    with pytest.raises(ValueError, match="not the state of such a method"):
        strust.State.from_json("{}", "auto")
    with pytest.raises(ValueError, match="not the state"):
        _ = strust.State("adam", "float64", half.state.data).x


def test_the_repr_names_method_steps_and_shape():
    half = strust.minimize(line, [0.0, 0.0], n_terms=5, batch=2, epochs=3)
    assert repr(half.state) == "State('auto', float64, 9 steps, shape (2,))"
