"""Instruments: strong growth, curvature, KKT report, checks of derivatives, the diagnosis of a run.

Each takes a function or a `strust.problems.Problem`, and a point.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from strust import _native
from strust.constraints import Constraint, describe
from strust.problems import Function, Problem, target

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Diagnosis",
    "KktReport",
    "SlopeCheck",
    "StrongGrowth",
    "check_constraint",
    "check_gradient",
    "curvature",
    "diagnose",
    "kkt",
    "strong_growth",
]


class _Table:
    """An object with fields that pandas can show."""

    def to_pandas(self) -> pd.Series[Any]:
        """Return the fields as a series. It needs pandas."""
        import pandas as pd

        series: pd.Series[Any] = pd.Series(self.__dict__)
        return series


def _point(x: npt.ArrayLike) -> npt.NDArray[Any]:
    point = np.asarray(x)
    return point if point.dtype == np.float32 else point.astype(np.float64)


@dataclass(frozen=True, repr=False)
class StrongGrowth(_Table):
    """ρ of the strong growth condition at a point: E‖g‖² ≤ ρ‖∇f‖² for gradients g of mini-batches.

    Attributes
    ----------
    rho : float
        ρ for batches of this size.
    low, high : float
        Its 95 % interval; both are ρ if it was computed exactly.
    gradient_squared : float
        ‖∇f(x)‖².
    variance : float
        The variance of the gradient of one term.
    batch, terms : int
        Terms of a batch and of the sum.
    """

    rho: float
    low: float
    high: float
    gradient_squared: float
    variance: float
    batch: int
    terms: int

    def __repr__(self) -> str:
        interval = "exactly" if self.low == self.high else f"95 % interval {self.low:.4g} to {self.high:.4g}"
        return f"ρ = {self.rho:.4g} ({interval}) for batches of {self.batch} out of {self.terms} terms"


def strong_growth(
    fun: Function | Problem,
    x: npt.ArrayLike,
    *,
    n_terms: int | None = None,
    jac: Function | Literal[True] = True,
    batch: int | None = None,
    pairs: int | None = None,
    seed: int = 0,
) -> StrongGrowth:
    """Measure strong growth at x: exactly with one gradient per term, or from pairs of half batches with an interval.

    Parameters
    ----------
    fun, jac, n_terms
        As for `strust.minimize`.
    x : array_like
        The point.
    batch : int, optional
        Terms of a batch; 32 by default.
    pairs : int, optional
        The number of pairs of half batches. Without it ρ is computed exactly.
    seed : int
        The seed of the batches.

    Examples
    --------
    >>> from strust.diagnostics import strong_growth
    >>> from strust.problems import LeastSquares
    >>> problem = LeastSquares.random(n=100, d=5, noise=0.5, seed=1)
    >>> exact = strong_growth(problem, problem.start(), batch=10)
    >>> estimate = strong_growth(problem, problem.start(), batch=10, pairs=200)
    >>> bool(estimate.low <= exact.rho <= estimate.high)
    True
    """
    return StrongGrowth(**_native.measure_strong_growth(target(fun, jac, n_terms), _point(x), batch, pairs, seed))


def curvature(
    fun: Function | Problem,
    x: npt.ArrayLike,
    *,
    n_terms: int | None = None,
    jac: Function | Literal[True] = True,
    iterations: int = 20,
) -> float:
    """Return the largest curvature |λ| of f at x, by power iterations with differences of gradients.

    >>> import numpy as np
    >>> from strust.diagnostics import curvature
    >>> scale = np.array([1.0, 10.0])
    >>> round(curvature(lambda x: (0.5 * scale @ x**2, scale * x), [1.0, 1.0]), 4)
    10.0
    """
    return _native.measure_curvature(target(fun, jac, n_terms), _point(x), iterations)


@dataclass(frozen=True, repr=False)
class SlopeCheck(_Table):
    """Whether a derivative is right.

    Attributes
    ----------
    slope : float
        The order of the error of the linear model: about 2 if the derivative is right, 1 if it is wrong.
    mismatch : float
        For a constraint, the relative difference of yᵀ(Jv) and (Jᵀy)ᵀv; 0 for a gradient.
    """

    slope: float
    mismatch: float = 0.0

    @property
    def right(self) -> bool:
        """Whether the derivative is right. A function without curvature has no slope to measure: it is right, too."""
        return (math.isinf(self.slope) or math.isnan(self.slope) or self.slope > 1.8) and self.mismatch < 1e-6

    def __repr__(self) -> str:
        text = f"slope {self.slope:.3f} (2 is right, 1 is wrong)"
        if self.mismatch:
            text += f", mismatch of jvp and vjp {self.mismatch:.1e}"
        return f"{'right' if self.right else 'WRONG'}: {text}"


def check_gradient(
    fun: Function | Problem,
    x: npt.ArrayLike,
    *,
    n_terms: int | None = None,
    jac: Function | Literal[True] = True,
    indices: Sequence[int] | None = None,
    seed: int = 0,
) -> SlopeCheck:
    """Check a gradient along a random direction.

    >>> import numpy as np
    >>> from strust.diagnostics import check_gradient
    >>> check_gradient(lambda x: (np.sin(x).sum(), np.cos(x)), [0.5, 1.0]).right
    True
    >>> check_gradient(lambda x: (np.sin(x).sum(), np.sin(x)), [0.5, 1.0]).right
    False
    """
    chosen = None if indices is None else [int(i) for i in indices]
    return SlopeCheck(_native.measure_gradient_slope(target(fun, jac, n_terms), _point(x), chosen, seed))


def check_constraint(constraint: Constraint | str, x: npt.ArrayLike, *, seed: int = 0) -> SlopeCheck:
    """Check the Jacobian products of a constraint: against c, and against each other.

    >>> from strust.constraints import from_functions
    >>> from strust.diagnostics import check_constraint
    >>> check_constraint(from_functions(lambda x: [x[0] * x[1]], jac=lambda x: [[x[1], x[0]]]), [2.0, 3.0]).right
    True
    """
    point = np.asarray(x, dtype=np.float64)
    slope, mismatch = _native.measure_jacobian_slope(describe(constraint, None, point), point, seed)
    return SlopeCheck(slope, mismatch)


@dataclass(frozen=True, repr=False)
class KktReport(_Table):
    """How well x satisfies the optimality conditions of min f(x), c(x) = 0.

    Attributes
    ----------
    gradient_norm : float
        ‖∇f(x)‖.
    constraint_norm : float
        ‖c(x)‖.
    residual : float
        The least ‖∇f(x) + J(x)ᵀλ‖ over all multipliers λ; 0 at a KKT point.
    multiplier_norm : float
        The norm of the best λ.
    smallest_singular_value, largest_singular_value : float
        Of J(x).
    licq : bool
        Whether the rows of J(x) are linearly independent.
    """

    gradient_norm: float
    constraint_norm: float
    residual: float
    multiplier_norm: float
    smallest_singular_value: float
    largest_singular_value: float
    licq: bool

    def __repr__(self) -> str:
        return (
            f"KKT residual {self.residual:.3g}, ‖c‖ {self.constraint_norm:.3g}, ‖λ‖ {self.multiplier_norm:.3g}, "
            f"σ(J) from {self.smallest_singular_value:.3g} to {self.largest_singular_value:.3g}, "
            f"LICQ {'holds' if self.licq else 'FAILS'}"
        )


def kkt(
    fun: Function | Problem,
    x: npt.ArrayLike,
    constraints: Constraint | str | Sequence[Constraint | str],
    *,
    n_terms: int | None = None,
    jac: Function | Literal[True] = True,
) -> KktReport:
    """Report the optimality conditions at x, on the full sum.

    >>> from strust.diagnostics import kkt
    >>> report = kkt(lambda x: (-x[0], [-1.0, 0.0]), [1.0, 0.0], "sphere")
    >>> report.residual < 1e-12, report.licq
    (True, True)
    """
    point = _point(x)
    raw = _native.measure_kkt(target(fun, jac, n_terms), describe(constraints, None, point), point, 1.0)
    return KktReport(**raw)


@dataclass(frozen=True, repr=False)
class Diagnosis(_Table):
    """The diagnosis of one job, in words.

    Attributes
    ----------
    method, problem : str
        What ran.
    seed : int
        Its seed.
    verdict : str or None
        Such as ``"converged"``; None before the first epoch.
    state, why : str
        The state of the run, and the reason for the verdict.
    findings : list of str
        The evidence.
    remedy : str or None
        One change, as a command.
    """

    method: str
    problem: str
    seed: int
    verdict: str | None
    state: str
    why: str
    findings: list[str]
    remedy: str | None

    def __repr__(self) -> str:
        lines = [f"{self.method} on {self.problem}, seed {self.seed}: {self.verdict or 'no verdict yet'}"]
        lines.append(f"  {self.state}; {self.why}." if self.why else f"  {self.state}.")
        lines += [f"  - {finding}" for finding in self.findings]
        if self.remedy:
            lines.append(f"  → {self.remedy}")
        return "\n".join(lines)


def diagnose(folder: str | os.PathLike[str]) -> list[Diagnosis]:
    """Diagnose the runs in a folder of results, as ``strust diagnose`` does.

    Parameters
    ----------
    folder : path
        A folder that ``strust run`` wrote.
    """
    found: list[dict[str, Any]] = json.loads(_native.diagnose_folder(os.fspath(folder)))
    return [
        Diagnosis(
            **{name: one[name] for name in ("method", "problem", "seed", "verdict", "state", "why")},
            findings=[finding["text"] for finding in one["findings"]],
            remedy=one["remedy"]["command"] if one.get("remedy") else None,
        )
        for one in found
    ]
