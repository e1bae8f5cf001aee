"""The methods for ``scipy.optimize.minimize``.

>>> import numpy as np
>>> from scipy.optimize import minimize, rosen, rosen_der
>>> import strust.scipy
>>> result = minimize(rosen, [1.3, 0.7], jac=rosen_der, method=strust.scipy.auto, tol=1e-5)
>>> result.success, result.x.round(3)
(True, array([1., 1.]))
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

try:
    # SciPy has no complete types of its own.
    _optimize: Any = importlib.import_module("scipy.optimize")
except ImportError as _error:
    raise ImportError("strust.scipy needs SciPy: pip install strust[scipy]") from _error

from strust._minimize import Intermediate, OptimizeResult, minimize
from strust.constraints import Bounds, Constraint, at_most, from_functions

Array: TypeAlias = npt.NDArray[np.floating[Any]]

__all__ = ["auto", "method"]

#: Options of SciPy's own solvers that mean a budget or a tolerance here.
_RENAMED = {"maxiter": "max_steps", "maxfev": None, "gtol": "tol", "ftol": None, "xtol": None, "eps": None}

#: Methods that use `hess` and `hessp`. The others ignore them, as SciPy's first-order methods do.
_SECOND_ORDER = ("auto", "str-newton", "str-gauss-newton")


def method(name: str, **settings: Any) -> Callable[..., Any]:
    """Return a method of strust for ``scipy.optimize.minimize(..., method=...)``.

    Parameters
    ----------
    name : str
        One of ``strust.METHODS``.
    **settings
        The method's own settings.

    Examples
    --------
    >>> from scipy.optimize import minimize
    >>> import strust.scipy
    >>> sgd = strust.scipy.method("sgd", learning_rate=0.1)
    >>> minimize(lambda x: (x @ x, 2 * x), [1.0], jac=True, method=sgd, tol=1e-6).success
    True
    """

    def solve(
        fun: Callable[..., Any],
        x0: npt.ArrayLike,
        args: tuple[Any, ...] = (),
        jac: Any = None,
        bounds: Any = None,
        constraints: Any = (),
        callback: Callable[..., Any] | None = None,
        hess: Any = None,
        hessp: Callable[..., Any] | None = None,
        **options: Any,
    ) -> Any:
        x = np.atleast_1d(np.asarray(x0, dtype=np.float64))
        value, gradient = _functions(fun, jac, args)
        found = _constraints(constraints, x)
        box = Bounds(bounds.lb, bounds.ub) if isinstance(bounds, _optimize.Bounds) else bounds
        constrained = bool(found) or box is not None
        # STR-SQP ends by itself, at a relative tolerance.
        budget = _budget(options, None if constrained and name in ("auto", "str-sqp") else 1e-6)
        second_order = name in _SECOND_ORDER and not constrained
        solution = minimize(
            value,
            x,
            jac=gradient,
            hessp=_products(hess, hessp, args) if second_order else None,
            method=name,
            options=settings,
            constraints=found,
            bounds=box,
            callback=None if callback is None else _callback(callback),
            **budget,
        )
        return _scipy_result(solution, gradient)

    solve.__name__ = name
    return solve


#: `Auto`; with `hess` or `hessp` ``"str-newton"``; with constraints or bounds ``"str-sqp"``.
auto = method("auto")


def _budget(options: dict[str, Any], tol: float | None) -> dict[str, Any]:
    # SciPy's users expect an answer at a tolerance, not after a budget.
    budget: dict[str, Any] = {"tol": tol, "max_steps": 100_000}
    options.pop("disp", None)
    for key, value in options.items():
        if key not in ("tol", "seed", "max_seconds", "maxiter", "gtol"):
            if key in _RENAMED:
                raise ValueError(f"strust has no option {key!r}; use tol (the norm of the gradient) and maxiter")
            raise ValueError(f"strust has no option {key!r}; the options are tol, maxiter, max_seconds and seed")
        if value is not None:
            budget[_RENAMED.get(key) or key] = value
    return budget


def _functions(
    fun: Callable[..., Any], jac: Any, args: tuple[Any, ...]
) -> tuple[Callable[[Array], float], Callable[[Array], Array]]:
    """Return f and its gradient as functions of x alone."""

    def value(x: Array) -> float:
        return float(np.asarray(fun(x, *args)).item())

    if callable(jac):
        gradient_of: Callable[..., Any] = jac

        def gradient(x: Array) -> Array:
            return np.asarray(gradient_of(x, *args), dtype=np.float64)

        return value, gradient
    if jac not in (None, False, "2-point"):
        raise ValueError(f"jac must be a function, True, or None for finite differences, not {jac!r}")

    def differences(x: Array) -> Array:
        return _differences(value, x)

    return value, differences


def _products(hess: Any, hessp: Any, args: tuple[Any, ...]) -> Callable[[Array, Array], Array] | None:
    """Return the products with the Hessian, if SciPy's caller gave them."""
    if callable(hessp):
        product_of: Callable[..., Any] = hessp

        def product(x: Array, p: Array) -> Array:
            return np.asarray(product_of(x, p, *args), dtype=np.float64)

        return product
    if not callable(hess):
        return None
    matrix_of: Callable[..., Any] = hess
    last: list[tuple[Array, Any]] = []

    def multiply(x: Array, p: Array) -> Array:
        # All products of a step are at the same point.
        if not last or not np.array_equal(last[0][0], x):
            last[:] = [(x.copy(), matrix_of(x, *args))]
        return np.asarray(last[0][1] @ p, dtype=np.float64)

    return multiply


def _differences(fun: Callable[[Array], Any], x: Array) -> Array:
    """Return the derivative of a number or a vector by forward differences."""
    return np.asarray(_optimize.approx_fprime(x, fun), dtype=np.float64)


def _callback(callback: Callable[..., Any]) -> Callable[[Intermediate], Any]:
    def hook(now: Intermediate) -> Any:
        return callback(_optimize.OptimizeResult(x=now.x, fun=now.fun, nit=now.nit))

    def hook_with_point(now: Intermediate) -> Any:
        return callback(now.x)

    # SciPy has already wrapped a callback of its new kind, which takes `intermediate_result`.
    return hook if _takes_result(callback) else hook_with_point


def _takes_result(callback: Callable[..., Any]) -> bool:
    try:
        return set(inspect.signature(callback).parameters) == {"intermediate_result"} or hasattr(
            callback, "stop_iteration"
        )
    except (TypeError, ValueError):
        return False


def _constraints(given: Any, x: Array) -> list[Constraint | str]:
    if isinstance(given, (str, Constraint, dict, _optimize.LinearConstraint, _optimize.NonlinearConstraint)):
        given = (given,)
    found: list[Constraint | str] = []
    for one in given:
        found += _one_constraint(one, x)
    return found


def _one_constraint(one: Any, x: Array) -> Iterable[Constraint | str]:
    if isinstance(one, (Constraint, str)):
        return [one]
    if isinstance(one, dict):
        return [_from_dict(cast("dict[str, Any]", one))]
    if isinstance(one, _optimize.LinearConstraint):
        matrix = np.atleast_2d(np.asarray(one.A.toarray() if hasattr(one.A, "toarray") else one.A, dtype=np.float64))
        return _between(lambda z: matrix @ z, lambda _: matrix, one.lb, one.ub, x)
    if isinstance(one, _optimize.NonlinearConstraint):
        value: Callable[[Array], Any] = one.fun

        def differences(z: Array) -> Array:
            return _differences(value, z)

        return _between(value, one.jac if callable(one.jac) else differences, one.lb, one.ub, x)
    raise TypeError(
        f"a constraint is a dictionary, a LinearConstraint or a NonlinearConstraint, not {type(one).__name__}"
    )


def _from_dict(one: dict[str, Any]) -> Constraint:
    kind, fun, args = one.get("type"), one.get("fun"), tuple(one.get("args", ()))
    if kind not in ("eq", "ineq") or not callable(fun):
        raise ValueError(f"a constraint needs 'type' ('eq' or 'ineq') and 'fun': {one}")
    value: Callable[..., Any] = fun
    given = one.get("jac")
    sign = 1.0 if kind == "eq" else -1.0  # SciPy's inequality is c(x) ≥ 0.

    def plain(z: Array) -> Array:
        return np.atleast_1d(np.asarray(value(z, *args), dtype=np.float64))

    def jacobian(z: Array) -> Array:
        return np.asarray(given(z, *args) if callable(given) else _differences(plain, z), dtype=np.float64)

    made = from_functions(lambda z: sign * plain(z), jac=lambda z: sign * jacobian(z))
    return made if kind == "eq" else at_most(made)


def _between(
    fun: Callable[[Array], Any], jac: Callable[[Array], Any], lower: Any, upper: Any, x: Array
) -> list[Constraint]:
    """Return lower ≤ fun(x) ≤ upper as equations and inequalities."""
    rows = np.atleast_1d(np.asarray(fun(x))).size
    low, high = np.broadcast_to(lower, rows), np.broadcast_to(upper, rows)

    def value(z: Array) -> Array:
        return np.atleast_1d(np.asarray(fun(z), dtype=np.float64))

    def jacobian(z: Array) -> Array:
        matrix = jac(z)
        return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64).reshape(
            rows, -1
        )

    def side(chosen: npt.NDArray[np.bool_], end: Array, sign: float) -> Constraint:
        return from_functions(
            lambda z: sign * (value(z)[chosen] - end[chosen]), jac=lambda z: sign * jacobian(z)[chosen]
        )

    found: list[Constraint] = []
    equal = low == high
    if equal.any():
        found.append(side(equal, low, 1.0))
    for chosen, end, sign in ((np.isfinite(high) & ~equal, high, 1.0), (np.isfinite(low) & ~equal, low, -1.0)):
        if chosen.any():
            found.append(at_most(side(chosen, end, sign)))
    return found


def _scipy_result(found: OptimizeResult, gradient: Callable[[Array], Array]) -> Any:
    fields: dict[str, Any] = {
        name: getattr(found, name)
        for name in ("x", "fun", "success", "status", "reason", "message", "nit", "nfev", "njev", "nhev")
    }
    result = _optimize.OptimizeResult(**fields, jac=gradient(found.x), constr_violation=found.constraint_norm)
    result.state = found.state
    return result
