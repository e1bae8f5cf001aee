"""Constraints c(x) = 0, c(x) ≤ 0, bounds, and expectations that only mini-batches know.

>>> import numpy as np
>>> from strust.constraints import affine, at_most, sphere
>>> plane = affine(np.ones((1, 3)), [1.0])  # x₀ + x₁ + x₂ = 1
>>> ball = at_most(sphere(2.0))  # ‖x‖ ≤ 2
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from strust.problems import Problem, target

Array: TypeAlias = npt.NDArray[np.floating[Any]]
#: Some of the terms: a mask, or indices.
Group: TypeAlias = npt.NDArray[np.bool_] | npt.NDArray[np.integer[Any]] | Sequence[int]
Groups: TypeAlias = Group | tuple[Group, Group] | list[tuple[float, Group]]

__all__ = [
    "Bounds",
    "Constraint",
    "affine",
    "at_most",
    "bounds",
    "expectation",
    "from_functions",
    "simplex",
    "sphere",
    "stiefel",
]


@dataclass(frozen=True)
class Constraint:
    """A constraint. The functions of this module make it.

    Attributes
    ----------
    kind : str
        What it is.
    inequality : bool
        Whether it demands c(x) ≤ 0 instead of c(x) = 0.
    data : dict
        What belongs to it.
    """

    kind: str
    inequality: bool
    data: dict[str, Any]

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={_shown(value)}" for key, value in self.data.items())
        return f"{'at_most(' if self.inequality else ''}{self.kind}({shown}){')' if self.inequality else ''}"


@dataclass(frozen=True)
class Bounds:
    """lower ≤ x ≤ upper, for each component. Infinite bounds are no bounds.

    Attributes
    ----------
    lower, upper : array_like
        Numbers, or arrays with the shape of x.
    """

    lower: npt.ArrayLike
    upper: npt.ArrayLike


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"array{np.shape(value)}"
    return getattr(value, "__name__", None) or repr(value)


def bounds(lower: npt.ArrayLike = -np.inf, upper: npt.ArrayLike = np.inf) -> Bounds:
    """Return the bounds lower ≤ x ≤ upper.

    >>> import strust
    >>> from strust.constraints import bounds
    >>> strust.minimize(lambda x: ((x - 3) @ (x - 3), 2 * (x - 3)), [0.0, 0.0], bounds=bounds(0, [1, 5])).x.round(6)
    array([1., 3.])
    """
    return Bounds(lower, upper)


def stiefel() -> Constraint:
    """Return XᵀX = I for a matrix x with at least as many rows as columns."""
    return Constraint("stiefel", False, {})


def sphere(radius: float = 1.0) -> Constraint:
    """Return ‖x‖ = radius, as ½(‖x‖² − radius²) = 0."""
    return Constraint("sphere", False, {"radius": float(radius)})


def simplex(total: float = 1.0) -> Constraint:
    """Return x ≥ 0 and Σ xᵢ = total."""
    return Constraint("simplex", False, {"total": float(total)})


def affine(a: npt.ArrayLike, b: npt.ArrayLike) -> Constraint:
    """Return Ax = b.

    Parameters
    ----------
    a : array_like
        A row for each equation: m × n, or m × the shape of x.
    b : array_like
        m numbers.

    Examples
    --------
    >>> import numpy as np, strust
    >>> from strust.constraints import affine
    >>> plane = affine(np.ones((1, 2)), [1.0])
    >>> strust.minimize(lambda x: (x @ x, 2 * x), [2.0, -1.0], constraints=plane, tol=1e-10).x.round(8)
    array([0.5, 0.5])
    """
    rows, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64).ravel()
    if rows.ndim == 1:
        rows = rows[np.newaxis]
    if rows.ndim == 0 or len(rows) != len(right):
        raise ValueError(f"A has shape {rows.shape}, but b has {len(right)} components")
    return Constraint("affine", False, {"a": rows, "b": right})


def at_most(constraint: Constraint | str) -> Constraint:
    """Return c(x) ≤ 0 instead of c(x) = 0."""
    made = _named(constraint)
    if made.kind == "simplex":
        raise ValueError("simplex is a set with bounds; it has no inequality form")
    if made.kind == "expectation":
        raise ValueError("an expectation has bounds of its own: pass at_most to expectation")
    return replace(made, inequality=True)


def from_functions(
    fun: Callable[[Array], npt.ArrayLike],
    *,
    jac: Callable[[Array], npt.ArrayLike] | None = None,
    jvp: Callable[[Array, Array], npt.ArrayLike] | None = None,
    vjp: Callable[[Array, Array], npt.ArrayLike] | None = None,
    magnitude: float = 0.0,
) -> Constraint:
    """Return c(x) = 0 from functions: its value, and its Jacobian or products with it.

    Parameters
    ----------
    fun : callable
        ``fun(x)`` returns the m components of c(x).
    jac : callable, optional
        ``jac(x)`` returns the Jacobian, m × n or m × the shape of x.
    jvp, vjp : callable, optional
        Instead of `jac`: ``jvp(x, v)`` returns J(x)·v, m numbers; ``vjp(x, y)`` returns J(x)ᵀ·y in the shape of x.
    magnitude : float
        The size of the numbers whose difference c(x) is, if it is one: c is rounded to ε·magnitude.

    Examples
    --------
    The point with x₀·x₁ = 1 nearest to the origin:

    >>> import numpy as np, strust
    >>> from strust.constraints import from_functions
    >>> hyperbola = from_functions(lambda x: [x[0] * x[1] - 1], jac=lambda x: [[x[1], x[0]]])
    >>> strust.minimize(lambda x: (x @ x, 2 * x), [2.0, 1.0], constraints=hyperbola, tol=1e-9).x.round(6)
    array([1., 1.])
    """
    if jac is None and (jvp is None or vjp is None):
        raise ValueError("pass jac, or both jvp and vjp")
    if jac is not None and (jvp is not None or vjp is not None):
        raise ValueError("pass jac, or jvp and vjp, not both")
    if jac is not None:
        jacobian = _Jacobian(jac)
        jvp, vjp = jacobian.jvp, jacobian.vjp
    return Constraint("functions", False, {"fun": fun, "jvp": jvp, "vjp": vjp, "magnitude": float(magnitude)})


def expectation(
    fun: Callable[..., Any],
    jac: Callable[..., Any] | None = None,
    *,
    n_terms: int,
    groups: Groups | None = None,
    at_most: float | None = None,
    at_least: float | None = None,
    equal: float | None = None,
    rate: Callable[..., Any] | None = None,
) -> Constraint:
    """Return a row at_least ≤ Σⱼ wⱼ·(mean of a score over group j) ≤ at_most, known on mini-batches only.

    `strust.minimize` makes its steps on mini-batches, and spreads each group evenly over them. A batch without a member
    of a group skips its rows: that may happen if a group has fewer members than an epoch has batches, in the last batch
    of an epoch, which may be small, and with ``sampler="with-replacement"``. Then `strust.minimize` makes at most 100
    steps on all terms, which put the answer on the rows; ``result.certificate`` has each of them.

    Parameters
    ----------
    fun : callable
        ``fun(x, indices)`` returns the mean score over the terms `indices` and its gradient, as for `strust.minimize`.
        The score must be smooth. All rows of a run have the same `fun`, `jac` and `rate`.
    jac : callable, optional
        ``jac(x, indices)`` returns the gradient, and `fun` the value alone.
    n_terms : int
        The number of terms, as for `strust.minimize`.
    groups : optional
        A group is a boolean mask of all terms, or an array of indices. The row is the mean over one group, the
        difference of the means for a pair ``(a, b)``, or a weighted sum for a list ``[(weight, group), ...]``. By
        default it is the mean over all terms. Rows over one group evaluate it once.
    at_most, at_least, equal : float, optional
        Either or both of the first two, or `equal`.
    rate : callable, optional
        ``rate(x, indices)`` returns the mean of the true score, if that is not smooth, such as the share of terms above
        a threshold. The multipliers follow it, and the steps follow `fun`, its smooth copy. The end keeps the rows of
        `fun`, shifted by what both differed before it, so those of the rate hold approximately.

    Examples
    --------
    Ten terms want x₀ near 4.5, the others x₁ near 14.5. The means may differ by 2:

    >>> import numpy as np, strust
    >>> from strust.constraints import expectation
    >>> terms = np.arange(20)
    >>> def fun(x, i):
    ...     r = x[i // 10] - i
    ...     return np.mean(r**2) / 2, np.bincount(i // 10, r, 2) / len(i)
    >>> def score(x, i):
    ...     return np.mean(x[i // 10]), np.bincount(i // 10, minlength=2) / len(i)
    >>> gap = expectation(score, n_terms=20, groups=(terms >= 10, terms < 10), at_most=2)
    >>> result = strust.minimize(fun, np.zeros(2), n_terms=20, batch=4, epochs=50, constraints=gap)
    >>> result.x.round(6), result.certificate.multiplier.round(4)
    (array([ 8.5, 10.5]), array([2.]))
    """
    if isinstance(fun, Problem):
        fun = fun.__call__
    for name, function in (("fun", fun), ("jac", jac), ("rate", rate)):
        if not callable(function) and (function is not None or name == "fun"):
            raise TypeError(f"{name} of an expectation must be a function, not {type(function).__name__}")
    if equal is not None and (at_most, at_least) != (None, None):
        raise ValueError("an expectation has equal or other bounds, not both")
    given = [bound for bound in (at_least, at_most, equal) if bound is not None]
    if not given:
        raise ValueError("an expectation has no bound: pass at_most, at_least or equal")
    low, high = (-np.inf if at_least is None else at_least), (np.inf if at_most is None else at_most)
    low, high = (float(low), float(high)) if equal is None else (float(equal), float(equal))
    if not (np.isfinite(given).all() and low <= high):
        raise ValueError(f"the bounds of an expectation are {low} and {high}, but must be finite and in order")
    weighted = _weighted(groups, n_terms)
    weights = [weight for weight, _ in weighted]
    masks = np.array([_members(f"group {j}", group, n_terms) for j, (_, group) in enumerate(weighted)])
    score = {"fun": fun, "jac": jac, "rate": rate}
    row = {"weights": weights, "groups": masks, "at_least": low, "at_most": high}
    return Constraint("expectation", False, {**score, **row})


def _weighted(groups: Groups | None, terms: int) -> list[tuple[float, Any]]:
    """Return the groups of a row with their weights."""
    if groups is None:
        return [(1.0, np.ones(terms, dtype=np.bool_))]
    if isinstance(groups, tuple):
        pair: tuple[Any, ...] = groups
        if len(pair) != 2:
            raise ValueError(f"a tuple of groups is a pair, not {len(pair)}; for a sum pass [(weight, group), ...]")
        return [(1.0, pair[0]), (-1.0, pair[1])]
    parts = cast("list[Any]", groups) if isinstance(groups, list) else []
    if not any(isinstance(part, tuple) for part in parts):
        return [(1.0, groups)]
    try:
        return [(float(weight), group) for weight, group in parts]
    except (TypeError, ValueError):
        raise ValueError("a list of groups must have pairs (weight, group)") from None


def _members(name: str, group: Any, terms: int) -> npt.NDArray[np.bool_]:
    """Return a group as a mask."""
    given = np.asarray(group)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "biu"):
        raise ValueError(f"{name} has shape {given.shape} and dtype {given.dtype}: pass a mask or an array of indices")
    mask = given.astype(np.bool_)
    if given.dtype.kind != "b":
        outside = given[(given < 0) | (given >= terms)]
        if outside.size:
            raise ValueError(f"{name} has the index {outside[0]}, but the terms are 0 to {terms - 1}")
        mask = np.zeros(terms, dtype=np.bool_)
        mask[given.astype(np.int64)] = True
        if mask.sum() != given.size:
            raise ValueError(f"{name} has an index twice; a mask must be of dtype bool: mask.astype(bool)")
    if mask.size != terms:
        raise ValueError(f"{name} is a mask of {mask.size} terms, but n_terms is {terms}")
    if not mask.any():
        raise ValueError(f"{name} has no members: leave its row out")
    return mask


class _Jacobian:
    """Products with a dense Jacobian. A step needs several products at one point."""

    def __init__(self, jac: Callable[[Array], npt.ArrayLike]) -> None:
        self.jac = jac
        self.x: Array | None = None
        self.matrix = np.empty((0, 0))

    def at(self, x: Array) -> npt.NDArray[np.float64]:
        if self.x is None or not np.array_equal(self.x, x):
            matrix = np.asarray(self.jac(x), dtype=np.float64)
            if matrix.size % x.size:
                raise ValueError(f"the Jacobian has shape {matrix.shape}, but x has {x.size} components")
            self.matrix = matrix.reshape(-1, x.size)
            self.x = x
        return self.matrix

    def jvp(self, x: Array, v: Array) -> npt.NDArray[np.float64]:
        product: npt.NDArray[np.float64] = self.at(x) @ v.ravel()
        return product

    def vjp(self, x: Array, y: Array) -> npt.NDArray[np.float64]:
        product: npt.NDArray[np.float64] = y @ self.at(x)
        return product.reshape(x.shape)


def _named(constraint: Constraint | str) -> Constraint:
    if isinstance(constraint, Constraint):
        return constraint
    made = {"stiefel": stiefel, "sphere": sphere, "simplex": simplex}.get(constraint)
    if made is None:
        raise ValueError(f"there is no constraint {constraint!r}; the names are stiefel, sphere and simplex")
    return made()


def split(
    constraints: Constraint | str | Sequence[Constraint | str], terms: int | None
) -> tuple[list[Constraint | str], dict[str, Any] | None]:
    """Return the exact constraints, and the expectations as the compiled part wants them."""
    given = [constraints] if isinstance(constraints, (Constraint, str)) else list(constraints)
    rows = [one.data for one in given if isinstance(one, Constraint) and one.kind == "expectation"]
    exact = [one for one in given if not (isinstance(one, Constraint) and one.kind == "expectation")]
    if not rows:
        return exact, None
    fun, jac, rate = score = [rows[0][key] for key in ("fun", "jac", "rate")]
    for row in rows:
        if [row["fun"], row["jac"], row["rate"]] != score:
            raise ValueError("the expectations of a run have one score: pass the same fun, jac and rate to all of them")
        if row["groups"].shape[1] != terms:
            raise ValueError(f"an expectation has n_terms={row['groups'].shape[1]}, but minimize has n_terms={terms}")
    described = {
        "score": target(fun, jac or True, terms, name="fun of the expectations"),
        # The gradient of the rate is never used.
        "rate": target(rate, rate, terms, name="rate of the expectations") if rate else None,
        "rows": [(row["weights"], row["groups"], row["at_least"], row["at_most"]) for row in rows],
    }
    return exact, described


def describe(
    constraints: Constraint | str | Sequence[Constraint | str],
    box: Bounds | Sequence[tuple[float | None, float | None]] | None,
    x: Array,
) -> list[dict[str, Any]]:
    """Return the constraints as the compiled part wants them."""
    given = [constraints] if isinstance(constraints, (Constraint, str)) else list(constraints)
    parts = [_part(one, x) for one in given]
    if box is not None:
        lower, upper = _corners(box, x)
        parts.append({"kind": "bounds", "lower": lower, "upper": upper, "at_most": False})
    return parts


def _part(given: Constraint | str, x: Array) -> dict[str, Any]:
    if not isinstance(given, (Constraint, str)):
        raise TypeError(f"a constraint is a name or an object of strust.constraints, not {type(given).__name__}")
    constraint = _named(given)
    if constraint.kind == "expectation":
        raise ValueError("an expectation is a constraint of strust.minimize alone")
    part = {"kind": constraint.kind, "at_most": constraint.inequality, **constraint.data}
    if constraint.kind == "affine":
        rows = constraint.data["a"]
        if rows[0].size != x.size:
            raise ValueError(f"A has shape {rows.shape}, but x0 has {x.size} components")
        part["a"] = [row.reshape(x.shape).astype(x.dtype) for row in rows]
        part["b"] = [float(number) for number in constraint.data["b"]]
    if constraint.kind == "functions":
        part["rows"] = int(np.size(constraint.data["fun"](x.copy())))
    return part


def _corners(box: Bounds | Sequence[tuple[float | None, float | None]], x: Array) -> tuple[Array, Array]:
    """Return both bounds as arrays with the shape of x."""
    if isinstance(box, Bounds):
        ends = (box.lower, box.upper)
    else:
        pairs = list(box)
        if len(pairs) != x.size:
            raise ValueError(f"there are {len(pairs)} bounds, but x0 has {x.size} components")
        low = np.array([-np.inf if low is None else low for low, _ in pairs]).reshape(x.shape)
        ends = (low, np.array([np.inf if high is None else high for _, high in pairs]).reshape(x.shape))
    try:
        lower, upper = (np.broadcast_to(np.asarray(end, dtype=x.dtype), x.shape) for end in ends)
    except ValueError:
        raise ValueError(f"the bounds do not fit x0, which has shape {x.shape}") from None
    return lower, upper
