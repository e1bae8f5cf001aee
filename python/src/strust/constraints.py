"""Constraints c(x) = 0, c(x) ≤ 0 and bounds.

>>> import numpy as np
>>> from strust.constraints import affine, at_most, sphere
>>> plane = affine(np.ones((1, 3)), [1.0])  # x₀ + x₁ + x₂ = 1
>>> ball = at_most(sphere(2.0))  # ‖x‖ ≤ 2
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.floating[Any]]

__all__ = [
    "Bounds",
    "Constraint",
    "affine",
    "at_most",
    "bounds",
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
