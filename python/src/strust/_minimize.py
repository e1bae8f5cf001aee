"""`minimize`, its result and its state."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from strust import _native
from strust.constraints import Bounds, Constraint, describe, split
from strust.problems import Function, Problem, target

if TYPE_CHECKING:
    import pandas as pd

Array: TypeAlias = npt.NDArray[np.floating[Any]]
Sampler: TypeAlias = Literal["epochs", "with-replacement", "full"]

#: The status of a run that has not converged, by the code of its reason; 5 for all others.
_STATUS = {"steps": 1, "epochs": 1, "evaluations": 1, "wall-clock": 1, "observer": 2, "breakdown": 4}
#: A deterministic function is measured after this many steps: a measurement costs as much as a step.
_MEASURE_EVERY = 10
#: The methods that make products with the Hessian.
_PRODUCTS = ("str-newton", "str-gauss-newton")


@dataclass(frozen=True)
class State:
    """Everything on which the next step depends: ``minimize(fun, state=state)`` continues bit for bit.

    It pickles. `data` is the state of the Rust library in MessagePack; `to_json` gives it as JSON. A Rust program reads
    and writes both with serde.

    Attributes
    ----------
    method : str
        The name of the method.
    dtype : str
        ``"float32"`` or ``"float64"``.
    data : bytes
        The state of the method.
    settings : dict
        The options, the batch, the seed, the sampler and the schedule of the run.

    Examples
    --------
    >>> import numpy as np, pickle, strust
    >>> def fun(x, i):
    ...     return float(x @ x), 2 * x
    >>> first = strust.minimize(fun, np.ones(3), n_terms=4, batch=2, epochs=5)
    >>> state = pickle.loads(pickle.dumps(first.state))
    >>> again = strust.minimize(fun, state=state, n_terms=4, epochs=10)
    >>> whole = strust.minimize(fun, np.ones(3), n_terms=4, batch=2, epochs=10)
    >>> bool((again.x == whole.x).all())
    True
    """

    method: str
    dtype: str
    data: bytes
    settings: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def x(self) -> Array:
        """The point."""
        return _native.point_of_state(self.method, self.dtype, self.data)[0]

    @property
    def steps(self) -> int:
        """The number of steps made."""
        return _native.point_of_state(self.method, self.dtype, self.data)[1]

    def to_json(self) -> str:
        """Return the state of the method as JSON, as ``serde_json`` writes it in Rust."""
        return _native.convert_state(self.method, self.dtype, self.data, True).decode()

    @classmethod
    def from_json(cls, text: str, method: str, *, dtype: str = "float64", **settings: Any) -> State:
        """Make a state from JSON that ``serde_json`` wrote in Rust.

        Parameters
        ----------
        text : str
            The JSON of a state such as ``AutoState<Vec<f64>>``.
        method : str
            The name of its method.
        dtype : str
            The type of its components.
        **settings
            `batch`, `seed` and the other settings of the run.
        """
        data = _native.convert_state(method, dtype, text.encode(), False)
        return cls(method, dtype, data, settings)

    def __repr__(self) -> str:
        return f"State({self.method!r}, {self.dtype}, {self.steps} steps, shape {self.x.shape})"


@dataclass(frozen=True)
class History:
    """The measurements on the full sum during a run.

    Attributes
    ----------
    step : ndarray
        The number of steps made.
    fun : ndarray
        f(x) over all terms.
    gradient_norm : ndarray
        The norm of the gradient; with constraints, of the Lagrangian's gradient.
    constraint_norm : ndarray
        ‖c(x)‖.
    """

    step: npt.NDArray[np.int64]
    fun: npt.NDArray[np.float64]
    gradient_norm: npt.NDArray[np.float64]
    constraint_norm: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.step)

    def __repr__(self) -> str:
        if not len(self):
            return "History(no measurements)"
        return f"History({len(self)} measurements, f from {self.fun[0]:.6g} to {self.fun[-1]:.6g})"

    def to_pandas(self) -> pd.DataFrame:
        """Return a data frame with one row per measurement. It needs pandas."""
        import pandas as pd

        frame: pd.DataFrame = pd.DataFrame(
            {
                "step": self.step,
                "fun": self.fun,
                "gradient_norm": self.gradient_norm,
                "constraint_norm": self.constraint_norm,
            }
        )
        return frame


@dataclass(frozen=True)
class Intermediate:
    """What a callback sees after each measurement.

    Attributes
    ----------
    x : ndarray
        The current point, a copy.
    fun : float
        f(x) over all terms.
    gradient_norm, constraint_norm : float
        The norms of the (Lagrangian's) gradient and of the constraint.
    nit : int
        The number of steps made.
    """

    x: Array
    fun: float
    gradient_norm: float
    constraint_norm: float
    nit: int


@dataclass(frozen=True)
class Certificate:
    """How good an answer under expectations is, on all terms. An array has a number for each row.

    Attributes
    ----------
    verdict : str
        ``"converged"``, ``"infeasible"``, ``"no-qualification"``, ``"stalled"``, or ``"running"`` after 100 steps.
    value : ndarray
        The rows; of the true score, if there is a rate.
    violation : ndarray
        How far they are outside of their bounds.
    multiplier : ndarray
        How much f falls if the bound is moved outward by 1, to first order; negative at a lower bound.
    standard_error : ndarray
        That of `value`, if the terms are drawn from a larger population. NaN for a group with one member.
    """

    verdict: str
    value: npt.NDArray[np.float64]
    violation: npt.NDArray[np.float64]
    multiplier: npt.NDArray[np.float64]
    standard_error: npt.NDArray[np.float64]

    def __repr__(self) -> str:
        rows = enumerate(zip(self.value, self.violation, self.multiplier, strict=True))
        shown = (f"row {i} is {c:.4g}, violated by {v:.2g}, multiplier {y:.4g}" for i, (c, v, y) in rows)
        return f"{self.verdict}: {'; '.join(shown)}"


@dataclass(frozen=True)
class OptimizeResult:
    """The result of `minimize`. The names are SciPy's where SciPy has the same thing.

    Attributes
    ----------
    x : ndarray
        The answer, in the shape and type of `x0`.
    fun : float
        f(x) over all terms; NaN if it was not measured.
    success : bool
        Whether an optimality condition holds at a feasible x: `tol`, the method's own, or without `tol` and a budget a
        gradient that is negligible beside the decrease of f (``Stop::Confirmed`` of the Rust library).
    status : int
        0 success, 1 budget used up, 2 stopped by the callback, 3 stopped by Ctrl-C, 4 broke down, 5 f no longer
        improves or no step is accepted although no optimality condition holds, or a verdict on the constraints.
    reason : str
        Why the run stopped, for programs: ``"gradient-norm"``, ``"kkt"``, ``"stagnation"``, ``"steps"``, ``"epochs"``,
        ``"evaluations"``, ``"wall-clock"``, ``"observer"`` (the callback or an exception), ``"breakdown"``,
        ``"infeasible"``, ``"no-qualification"`` or ``"stalled"``. These names never change.
    message : str
        Why the run stopped, in words.
    nit : int
        Steps made in this run.
    accepted : int
        Steps that were accepted.
    nfev, njev, nhev : int
        Evaluations of f on mini-batches in the steps, how many of them had a gradient, and products with the Hessian.
    gradient_norm, constraint_norm : float
        The norms of the (Lagrangian's) gradient and of c at x, on the full sum.
    history : History
        The measurements during the run.
    state : State
        Continues the run: ``minimize(fun, state=result.state, ...)``.
    certificate : Certificate or None
        The rows of the expectations on all terms. x, f, the norms and the reason are then those of the end, which
        `history`, `state` and the counts leave out. None without expectations, and if the run broke down.
    """

    x: Array
    fun: float
    success: bool
    status: int
    reason: str
    message: str
    nit: int
    accepted: int
    nfev: int
    njev: int
    nhev: int
    gradient_norm: float
    constraint_norm: float
    history: History
    state: State
    certificate: Certificate | None = None

    def __repr__(self) -> str:
        lines = [
            f"  message: {self.message}",
            f"  success: {self.success}",
            f"      fun: {self.fun:.12g}",
            f"        x: {np.array2string(self.x, precision=6, threshold=8, prefix=' ' * 11)}",
            f"      nit: {self.nit} ({self.accepted} accepted)",
            f"     nfev: {self.nfev}",
            f"     njev: {self.njev}",
            f" gradient: {self.gradient_norm:.3g}",
        ]
        if self.nhev:
            lines.insert(-1, f"     nhev: {self.nhev}")
        if self.constraint_norm != 0:
            lines.append(f"      ‖c‖: {self.constraint_norm:.3g}")
        if self.certificate:
            lines.append(f"     rows: {self.certificate}")
        return "\n".join(lines)


def minimize(
    fun: Function | Problem,
    x0: npt.ArrayLike | None = None,
    *,
    n_terms: int | None = None,
    batch: int | None = None,
    epochs: int | None = None,
    jac: Function | Literal[True] = True,
    hessp: Function | None = None,
    method: str = "auto",
    options: Mapping[str, Any] | None = None,
    constraints: Constraint | str | Sequence[Constraint | str] = (),
    bounds: Bounds | Sequence[tuple[float | None, float | None]] | None = None,
    seed: int | None = None,
    tol: float | None = None,
    callback: Callable[[Intermediate], object] | None = None,
    state: State | None = None,
    max_steps: int | None = None,
    max_seconds: float | None = None,
    sampler: Sampler | None = None,
    schedule: Literal["constant", "cosine"] | None = None,
    magnitude: float = 0.0,
) -> OptimizeResult:
    """Minimize f(x) = (1/n) Σ fᵢ(x) from mini-batches, without a learning rate.

    Parameters
    ----------
    fun : callable or Problem
        ``fun(x, indices)`` returns the mean of the terms `indices` and its gradient, an array with the shape of x.
        Without `n_terms` it is called as ``fun(x)``. The array x is the function's own: it may keep it. A built-in
        `Problem` needs no Python in the loop.
    x0 : array_like
        The start, of any shape. ``float32`` stays ``float32``; everything else becomes ``float64``. A built-in problem
        has a start of its own.
    n_terms : int, optional
        The number n of terms. Without it, f is one deterministic function.
    batch : int, optional
        Terms per mini-batch; 32 by default, or all if there are fewer.
    epochs : int, optional
        Passes over the terms (steps of a deterministic function). Without any budget or `tol`, the run stops when f no
        longer improves, after 1,000 epochs at the latest (100,000 steps of a deterministic function). It is then a
        success if the gradient is negligible.
    jac : callable or True
        ``jac(x, indices)`` returns the gradient, and `fun` the value alone. This saves time: a trial needs no gradient.
    hessp : callable, optional
        ``hessp(x, p, indices)`` returns the Hessian of the mean of these terms times p, an array with the shape of x;
        without `n_terms`, ``hessp(x, p)``. With ``method="str-gauss-newton"`` it is the Gauss–Newton matrix instead.
        Without it, second-order methods use differences of gradients.
    method : str
        ``"auto"`` (the default): `Auto`; with constraints ``"str-sqp"``; with `hessp` ``"str-newton"``,
        for a deterministic function. ``strust.METHODS`` has all names.
    options : mapping, optional
        The method's own settings, such as ``{"learning_rate": 0.1}`` for ``"sgd"``; ``strust list NAME`` explains them.
    constraints : constraint, name or sequence of them
        ``"stiefel"`` (XᵀX = I), ``"sphere"`` (‖x‖ = 1), ``"simplex"``, or objects of `strust.constraints`. Those of
        `strust.constraints.expectation` are known on mini-batches only; the end that puts x on them is no part of the
        budgets.
    bounds : Bounds or sequence of (low, high)
        lower ≤ x ≤ upper.
    seed : int, optional
        The seed of the mini-batches; 0 by default. The same seed gives the same bits.
    tol : float, optional
        Stops when the norms of the (Lagrangian's) gradient on the full sum and of c are at most this.
    callback : callable, optional
        Called after each epoch, or after each step of a deterministic function, with an `Intermediate`. It stops the
        run by returning something true or by raising ``StopIteration``.
    state : State, optional
        Continues from here instead of `x0`. Budgets of epochs and steps include the earlier ones.
    max_steps, max_seconds : optional
        Further budgets.
    sampler : {"epochs", "with-replacement", "full"}, optional
        How mini-batches are drawn. By default each epoch is a new permutation of all terms.
    schedule : {"constant", "cosine"}, optional
        The learning rate of methods that have one.
    magnitude : float
        If f is a mean of squared residuals, the size of the numbers whose differences the residuals are. It makes the
        method exact near f = 0, where rounding errors are larger than ε·f.

    Returns
    -------
    OptimizeResult
        Ctrl-C returns what was reached, too.

    Raises
    ------
    ValueError, TypeError
        If an argument is wrong. An exception of `fun`, `jac` or `hessp` comes out as itself, with the result so far as
        its attribute ``result``; ``error.result.state`` continues before the step that failed.

    Examples
    --------
    The line through (0, 1), (1, 3), (2, 5), (3, 7):

    >>> import numpy as np, strust
    >>> t, y = np.arange(4.0), np.array([1.0, 3.0, 5.0, 7.0])
    >>> def fun(x, i):
    ...     r = x[0] + x[1] * t[i] - y[i]
    ...     return np.mean(r**2), np.array([2 * np.mean(r), 2 * np.mean(r * t[i])])
    >>> result = strust.minimize(fun, np.zeros(2), n_terms=4, batch=2, epochs=2000, tol=1e-8)
    >>> result.success, result.x.round(6)
    (True, array([1., 2.]))

    The point of the unit sphere nearest to (3, 4):

    >>> def distance(x):
    ...     r = x - [3, 4]
    ...     return r @ r, 2 * r
    >>> strust.minimize(distance, np.array([1.0, 0.0]), constraints="sphere", tol=1e-10).x.round(8)
    array([0.6, 0.8])

    Rosenbrock's function, with its Hessian:

    >>> def rosenbrock(x):
    ...     a, b = 1 - x[0], x[1] - x[0] ** 2
    ...     return a**2 + 100 * b**2, np.array([-2 * a - 400 * x[0] * b, 200 * b])
    >>> def hessp(x, p):
    ...     return np.array([[2 + 1200 * x[0] ** 2 - 400 * x[1], -400 * x[0]], [-400 * x[0], 200]]) @ p
    >>> result = strust.minimize(rosenbrock, [-1.2, 1.0], hessp=hessp, tol=1e-8)
    >>> result.success, result.nit < 40, result.x.round(6)
    (True, True, array([1., 1.]))
    """
    problem = fun if isinstance(fun, Problem) else None
    if problem is None and not callable(fun):
        raise TypeError(f"fun must be a function or a strust.problems.Problem, not {type(fun).__name__}")
    start = _start(problem, x0, state, 0 if seed is None else seed)
    terms = problem.n_terms if problem else n_terms
    exact, expectations = split(constraints, terms)
    parts = describe(exact, bounds, start)
    if method == "auto" or (method == "in-expectation" and expectations):
        method = _chosen(bool(parts), hessp is not None, terms is None) if state is None else state.method
    name, settings = _settings(method, options, batch, seed, sampler, schedule, state)
    _check_products(hessp, name, settings["options"], problem)
    deterministic = terms is None
    if deterministic:
        if settings["batch"] is not None or settings["sampler"] not in (None, "full"):
            raise ValueError("batch and sampler belong to a sum: pass n_terms, the number of terms of fun(x, indices)")
        settings["sampler"] = "full"
    elif _whole("n_terms", terms) < 1:
        raise ValueError(f"n_terms is {terms!r}, but must be a whole number ≥ 1")
    for key, count in (("epochs", epochs), ("max_steps", max_steps)):
        if count is not None and _whole(key, count) < 0:
            raise ValueError(f"{key} is {count}, but must be ≥ 0")
    for key, number in (("tol", tol), ("max_seconds", max_seconds), ("magnitude", magnitude)):
        if number is not None and not (math.isfinite(number) and number >= 0):
            raise ValueError(f"{key} is {number}, but must be ≥ 0")
    no_budget = epochs is None and max_steps is None and max_seconds is None
    last_resort = (100_000 if deterministic else 1000) if no_budget else None
    measured_each_step = deterministic and callback is not None
    request: dict[str, Any] = {
        "method": name,
        "options": json.dumps(settings["options"]),
        "schedule": settings["schedule"] or "constant",
        "sampler": settings["sampler"] or "epochs",
        "batch": settings["batch"],
        "seed": settings["seed"] or 0,
        "epochs": epochs if epochs is not None else last_resort,
        "steps": max_steps,
        "seconds": max_seconds,
        "tolerance": tol,
        "stagnation": no_budget and tol is None,
        "callback": _hook(callback) if callback is not None else None,
        "measure": (1 if measured_each_step else _MEASURE_EVERY)
        if deterministic
        else (0 if callback is not None else None),
        "constrained": bool(parts or expectations),
        "constraints": parts,
        "expectations": expectations,
    }
    if problem is None and jac is not True and not callable(jac):
        raise TypeError("jac must be a function, or True if fun returns (value, gradient)")
    found = target(fun, jac, terms, hessp, magnitude)
    raw = _native.minimize(found, start, state.data if state is not None else None, request)
    return _result(raw, name, str(start.dtype), settings)


def _start(problem: Problem | None, x0: npt.ArrayLike | None, state: State | None, seed: int) -> Array:
    """Return the checked start."""
    if state is not None:
        if x0 is not None:
            raise ValueError("pass x0 or state, not both")
        return state.x
    if x0 is None:
        if problem is None:
            raise ValueError("x0, the start, is missing")
        return problem.start(seed)
    x = np.asarray(x0)
    if x.dtype.kind not in "biuf":
        raise TypeError(f"x0 must be an array of real numbers, not of dtype {x.dtype}")
    if x.dtype.kind == "f" and str(x.dtype) not in ("float32", "float64"):
        raise TypeError(f"x0 has dtype {x.dtype}; use float32 or float64")
    if x.dtype != np.float32:
        x = x.astype(np.float64)
    elif problem is not None:
        raise TypeError("a built-in problem is computed in float64: pass x0 as float64")
    if x.ndim == 0:
        raise ValueError("x0 is a number; pass an array such as [1.0]")
    if x.size == 0:
        raise ValueError(f"x0 is empty: its shape is {x.shape}")
    if not np.isfinite(x).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(x))[0])
        raise ValueError(f"x0 is not finite at index {where if x.ndim > 1 else where[0]}: {x[where]}")
    return x


def _settings(
    method: str,
    options: Mapping[str, Any] | None,
    batch: int | None,
    seed: int | None,
    sampler: str | None,
    schedule: str | None,
    state: State | None,
) -> tuple[str, dict[str, Any]]:
    """Return the method's name and the settings of the run: those given, else those of the state."""
    given: dict[str, Any] = {"options": options, "batch": batch, "seed": seed, "sampler": sampler, "schedule": schedule}
    settings: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    if state is not None:
        settings = {**state.settings, **settings}
        if method != state.method:
            raise ValueError(f"the state belongs to method={state.method!r}, not to {method!r}")
    settings = {key: settings.get(key) for key in given}
    settings["options"] = dict(settings["options"] or {})
    for key in ("batch", "seed"):
        number, least = settings[key], 1 if key == "batch" else 0
        if number is not None and _whole(key, number) < least:
            raise ValueError(f"{key} is {number}, but must be ≥ {least}")
    return method, settings


def _chosen(constrained: bool, products: bool, deterministic: bool) -> str:
    """Return the method of ``method="auto"``."""
    if constrained:
        return "str-sqp"
    # The curvature of a mini-batch says little about f. That of a deterministic function is exact.
    return "str-newton" if products and deterministic else "auto"


def _check_products(hessp: Function | None, method: str, options: dict[str, Any], problem: Problem | None) -> None:
    """Check that products are given where they are used."""
    if hessp is None:
        if method == "str-gauss-newton" and problem is None:
            raise ValueError(
                'method="str-gauss-newton" needs hessp, the products with the Gauss–Newton matrix; '
                'without them use "str-newton"'
            )
    elif not callable(hessp):
        raise TypeError(f"hessp must be a function, not {type(hessp).__name__}")
    elif problem is not None:
        raise ValueError("a built-in problem has products of its own: leave out hessp")
    elif method == "str-sqp":
        if not options.get("products"):
            raise ValueError(
                "method='str-sqp' makes no products by default: leave out hessp, "
                'or set options={"products": 100}, the most products of a step'
            )
    elif method not in _PRODUCTS:
        raise ValueError(f"method={method!r} makes no products: leave out hessp, or use one of {', '.join(_PRODUCTS)}")


def _whole(name: str, number: Any) -> int:
    """Return a whole number of Python or NumPy."""
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        raise ValueError(f"{name} is {number!r}, but must be a whole number")
    return operator.index(number)


def _hook(callback: Callable[[Intermediate], object]) -> Callable[..., bool]:
    """Wrap the user's callback: StopIteration stops the run, too."""

    def hook(x: Array, steps: int, measured: tuple[float, float, float]) -> bool:
        fun, gradient_norm, constraint_norm = measured
        try:
            return bool(callback(Intermediate(x, fun, gradient_norm, constraint_norm, steps)))
        except StopIteration:
            return True

    return hook


def _result(raw: dict[str, Any], method: str, dtype: str, settings: dict[str, Any]) -> OptimizeResult:
    fun, gradient_norm, constraint_norm = raw["measured"] or (math.nan, math.nan, math.nan)
    rows = raw["history"]
    columns = np.array([numbers for _, numbers in rows], dtype=np.float64).reshape(-1, 3)
    history = History(np.array([k for k, _ in rows], dtype=np.int64), columns[:, 0], columns[:, 1], columns[:, 2])
    status, message = _verdict(raw)
    end: tuple[str, list[tuple[float, ...]]] = raw["certificate"] or ("", [])
    columns_of_end: list[Any] = [np.array(column) for column in zip(*end[1], strict=True)]
    result = OptimizeResult(
        x=raw["x"],
        fun=fun,
        success=status == 0,
        status=status,
        reason=raw["reason"],
        message=message,
        nit=raw["steps"],
        accepted=raw["accepted"],
        nfev=raw["values"] + raw["gradients"],
        njev=raw["gradients"],
        nhev=raw["products"],
        gradient_norm=gradient_norm,
        constraint_norm=constraint_norm,
        history=history,
        state=State(method, dtype, raw["state"], settings),
        certificate=Certificate(end[0], *columns_of_end) if end[0] else None,
    )
    error: BaseException | None = raw["error"]
    if error is not None and not isinstance(error, KeyboardInterrupt):
        _attach(error, result)
        raise error
    return result


def _attach(error: BaseException, result: OptimizeResult) -> None:
    """Save what was reached on the exception."""
    try:
        error.result = result  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    except AttributeError:
        return
    # Python 3.10 has no notes.
    add_note: Callable[[str], None] = getattr(error, "add_note", lambda _: None)
    add_note(f"strust: step {result.state.steps}; the result so far is this exception's attribute `result`")


def _verdict(raw: dict[str, Any]) -> tuple[int, str]:
    """Return the status and the message of a run."""
    reason: str = raw["reason"]
    message: str = raw["message"]
    if isinstance(raw["error"], KeyboardInterrupt):
        return 3, "stopped by Ctrl-C"
    if raw["converged"]:
        return 0, message
    if raw["breakdown"]:
        message = f"{message}: {raw['breakdown']}"
    elif reason == "stagnation":
        message = "f no longer improves, but no optimality condition holds"
    elif reason == "observer":
        message = "stopped by the callback"
    return _STATUS.get(reason, 5), message
