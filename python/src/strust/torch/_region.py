"""STR and STR-P: the trust region on a mini-batch, Algorithms 1 and 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import Module

from ._base import SLACK, Parameters, TrialOptimizer
from ._constraints import Constraints, Penalty
from ._flat import Flat
from ._operations import norm
from ._reduce import ProcessGroup
from ._settings import Range


class Region(TrialOptimizer):
    """The loop of Algorithms 1 and 2: a gradient step inside a ball, judged on its own batch."""

    _initial: ClassVar[dict[str, float]] = {"radius": 0.0, "accepted": 0.0, "steps": 0.0, "broken": 0.0}
    _ranges: ClassVar[dict[str, Range]] = {
        "initial_radius": Range(0.0),
        "max_radius": Range(0.0),
        "accept_above": Range(0.0, 1.0),
        "shrink_below": Range(0.0, 1.0),
        "grow_above": Range(0.0, 1.0),
        "shrink": Range(1.0),
        "grow": Range(1.0),
    }

    def _settled(self) -> None:
        s, name = self.param_groups[0], type(self).__name__
        for low, high in (
            ("initial_radius", "max_radius"),
            ("accept_above", "shrink_below"),
            ("shrink_below", "grow_above"),
        ):
            if s[low] > s[high]:
                raise ValueError(f"{name}: `{low}` is {s[low]}; it must be at most `{high}` = {s[high]}")

    def _built(self, flat: Flat) -> None:
        radius = self._number["radius"]
        # 0 is not known yet.
        radius.copy_(torch.where(radius > 0.0, radius, self.param_groups[0]["initial_radius"]))

    def _set_point(self, flat: Flat) -> None:
        flat.point.copy_(self._vector["x"])

    def _curvature(self, flat: Flat, squared_norm: Tensor) -> Tensor:
        """gᵀHg, with H = I."""
        return squared_norm

    def _propose(self, flat: Flat) -> None:
        # f(x), g = ∇f(x)
        self._penalize_gradient(flat)
        g, radius = flat.gradient, self._number["radius"]
        self._squared_norm = norm(g, dtype=self._losses.dtype).square()
        # p = −a·g with a = min(‖g‖²/gᵀHg, Δ/‖g‖)
        curvature = self._curvature(flat, self._squared_norm)
        a = torch.minimum(self._squared_norm / curvature, radius / self._squared_norm.sqrt())
        # a‖g‖² − ½a²gᵀHg, in an order without cancellation
        self._predicted = a * (self._squared_norm - 0.5 * a * curvature)
        torch.addcmul(self._vector["x"], -a.to(flat.dtype), g, out=flat.point)

    def _judge(self, flat: Flat) -> None:
        s, (f0, f1), number = self.param_groups[0], self._penalized_losses(flat), self._number
        radius = number["radius"]
        # r, on the same batch. Every comparison with NaN is false: a trial that is not finite is rejected.
        actual = f0 - f1
        rounding = SLACK * self._epsilon * self._losses[0].abs() + self._penalty_rounding()
        ratio = (actual + rounding) / (self._predicted + rounding) + 0.0 * actual
        moves, finite = self._squared_norm > 0.0, torch.isfinite(f0 + self._squared_norm)
        tried = moves & finite
        accept = (ratio > s["accept_above"]) & tried
        grows = ratio > s["grow_above"]
        keeps = (ratio >= s["shrink_below"]) & accept
        grown = (s["grow"] * radius).clamp(max=s["max_radius"])
        # The radius stays positive, so that it can grow again.
        shrunk = (radius / s["shrink"]).clamp(min=torch.finfo(radius.dtype).tiny)
        change = torch.where(grows, grown, torch.where(keeps, radius, shrunk))
        # An overflow that comes from the scale of the loss says nothing about x.
        broken = ~torch.isfinite(f0) if self._scaled else ~finite
        torch.stack(
            [
                torch.where(tried, change, radius),
                number["accepted"] + accept,
                number["steps"] + 1.0,
                torch.where(broken, number["broken"] + 1.0, 0.0),
            ],
            out=self._numbers,
        )
        torch.where(accept, flat.point, self._vector["x"], out=self._vector["x"])

    def _penalize_gradient(self, flat: Flat) -> None:
        """Adds g ← g + μJᵀc, for a method with a constraint."""

    def _penalty_rounding(self) -> Tensor | float:
        """The rounding error of the penalty at x."""
        return 0.0

    def _penalized_losses(self, flat: Flat) -> tuple[Tensor, Tensor]:
        """The losses at x and at the trial, which is in flat.point."""
        return self._losses[0], self._losses[1]


class STR(Region):
    """Stochastic trust region, Algorithm 1.

    p = −a·g with a = min(1, Δ/‖g‖) is accepted if the ratio r = (f(x) − f(x+p)) / (a‖g‖² − ½a²‖g‖²) is above c₀. The
    ratio sets the next radius Δ. Both losses belong to the same batch. The defaults are the paper's for CIFAR-10.

    Parameters
    ----------
    params
        Parameters or parameter groups. No setting may differ between groups.
    initial_radius, max_radius
        The radius of the first step, and the largest.
    accept_above, shrink_below, grow_above
        c₀ ≤ c₁ ≤ c₂: a step is accepted if r > c₀; the radius shrinks if r < c₁ and grows if r > c₂.
    shrink, grow
        The radius is divided by `shrink`, or multiplied by `grow`.
    maximize, model, process_group, averaged_gradients, grad_in_trial
        As for `Auto`.

    Examples
    --------
    >>> import torch
    >>> from strust.torch import STR
    >>> w = torch.nn.Parameter(torch.tensor([3.0, -2.0]))
    >>> opt = STR([w])
    >>> def closure():
    ...     opt.zero_grad()
    ...     loss = 0.5 * w.square().sum()
    ...     loss.backward()
    ...     return loss
    >>> loss = opt.step(closure)
    >>> w.tolist()
    [0.0, 0.0]
    """

    def __init__(
        self,
        params: Parameters,
        *,
        initial_radius: float = 8.0,
        max_radius: float = 80.0,
        accept_above: float = 0.05,
        shrink_below: float = 0.10,
        grow_above: float = 0.50,
        shrink: float = 2.0,
        grow: float = 5.0,
        maximize: bool = False,
        model: Module | Sequence[Module] | None = None,
        process_group: ProcessGroup | Literal["default"] | None = "default",
        averaged_gradients: bool = False,
        grad_in_trial: bool = False,
    ) -> None:
        super().__init__(params, locals())


class STRP(Region):
    """Stochastic trust region with a penalty for constraints c(x) = 0, Algorithm 2.

    STR on φ(x) = f(x) + (μ/2)‖c(x)‖² with the model H = I + μJᵀJ. A fixed μ leaves ‖c‖ = O(1/μ), unless the penalty is
    exact. The defaults are the paper's for subspace fitting.

    Parameters
    ----------
    params
        Parameters or parameter groups. No setting may differ between groups.
    constraints
        What must hold: a mapping from parameters to "stiefel" (orthonormal columns, or rows of a wide matrix), "sphere"
        (norm 1) or a `Constraint`; or a function that computes c from the trained parameters and is differentiated by
        torch; or a sequence of these.
    penalty
        The weight μ of the constraint.
    initial_radius, max_radius, accept_above, shrink_below, grow_above, shrink, grow
        As for `STR`.
    maximize, model, process_group, averaged_gradients, grad_in_trial
        As for `Auto`.

    Examples
    --------
    The point on the unit circle nearest to (3, 4):

    >>> import torch
    >>> from strust.torch import STRP
    >>> w = torch.nn.Parameter(torch.tensor([1.0, 0.0], dtype=torch.float64))
    >>> opt = STRP([w], constraints={w: "sphere"}, penalty=1e3)
    >>> def closure():
    ...     opt.zero_grad()
    ...     loss = (w - torch.tensor([3.0, 4.0])).square().sum()
    ...     loss.backward()
    ...     return loss
    >>> for _ in range(3000):
    ...     loss = opt.step(closure)
    >>> [round(v.item(), 2) for v in w]
    [0.6, 0.8]
    """

    _ranges: ClassVar[dict[str, Range]] = {**Region._ranges, "penalty": Range(0.0)}
    _carried: ClassVar[tuple[str, ...]] = (*Region._carried, "_penalty")

    def __init__(
        self,
        params: Parameters,
        constraints: Constraints,
        *,
        penalty: float = 1.0,
        initial_radius: float = 0.2,
        max_radius: float = 5.0,
        accept_above: float = 0.05,
        shrink_below: float = 0.10,
        grow_above: float = 0.90,
        shrink: float = 2.0,
        grow: float = 1.5,
        maximize: bool = False,
        model: Module | Sequence[Module] | None = None,
        process_group: ProcessGroup | Literal["default"] | None = "default",
        averaged_gradients: bool = False,
        grad_in_trial: bool = False,
    ) -> None:
        self._penalty = Penalty("STRP", constraints)
        super().__init__(params, locals())

    def _built(self, flat: Flat) -> None:
        super()._built(flat)
        self._penalty.bind(flat)

    def _penalize_gradient(self, flat: Flat) -> None:
        mu = self.param_groups[0]["penalty"]
        x = self._vector["x"]
        residual = self._penalty.residual(x)
        self._norm_here = norm(residual, dtype=self._losses.dtype)
        self._penalty.add_transposed(x, mu, residual, flat.gradient)

    def _penalty_rounding(self) -> Tensor | float:
        rounding, norm_here = self._penalty.rounding(self._norm_here), self._norm_here
        error: Tensor = self.param_groups[0]["penalty"] * rounding * (norm_here + 0.5 * rounding)
        return error

    def _curvature(self, flat: Flat, squared_norm: Tensor) -> Tensor:
        """gᵀHg = ‖g‖² + μ‖Jg‖²."""
        along = self._penalty.product(self._vector["x"], flat.gradient)
        mu = self.param_groups[0]["penalty"]
        along_squared: Tensor = mu * norm(along, dtype=squared_norm.dtype).square()
        return squared_norm + along_squared

    def _penalized_losses(self, flat: Flat) -> tuple[Tensor, Tensor]:
        half = 0.5 * self.param_groups[0]["penalty"]
        there = norm(self._penalty.residual(flat.point), dtype=self._losses.dtype)
        return self._losses[0] + half * self._norm_here.square(), self._losses[1] + half * there.square()

    def constraint_norm(self) -> float:
        """‖c(x)‖ at the current point. Waits for the device."""
        self._ready()
        return float(norm(self._penalty.residual(self._vector["x"])))

    def multipliers(self) -> Tensor:
        """λ = μ·c(x), the multipliers of the paper's Corollary 4.13."""
        self._ready()
        residual: Tensor = self.param_groups[0]["penalty"] * self._penalty.residual(self._vector["x"])
        return residual
