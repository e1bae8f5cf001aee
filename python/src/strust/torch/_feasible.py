"""Points that satisfy constraints on parameters exactly, and directions along them."""

from __future__ import annotations

import torch
from torch import Tensor

from ._constraints import Penalty
from ._flat import Flat
from ._operations import norm

NEWTON = 20
"""At most this many Newton steps move a point onto the constraints. They converge quadratically: a step of an optimizer
needs two or three of them, and a start that is far away needs more."""


class Feasible(Penalty):
    """All constraints c(x) = 0 of an optimizer whose points satisfy them."""

    def bind(self, flat: Flat) -> None:
        """Finds the parameters of each constraint in the layout."""
        super().bind(flat)
        self._uniform = sorted({i for places, one in self._bound if one.uniform for i in places})

    def level(self, metric: Tensor) -> Tensor:
        """The metric D, with one number for each parameter where a constraint mixes its entries."""
        views = self._flat.views(metric)
        for i in self._uniform:
            views[i].fill_(views[i].mean())
        return metric

    def tangent(self, x: Tensor, g: Tensor, metric: Tensor) -> Tensor:
        """g + Jᵀy, whose multipliers y solve J·D⁻¹(g + Jᵀy) = 0: along D⁻¹ of it, c does not change to first order."""
        return g - self._least(x, self.product(x, g / metric), metric)

    def restore(self, x: Tensor) -> Tensor:
        """Moves x to a point that satisfies the constraints up to rounding, by Newton steps of least length."""
        c = self.residual(x)
        violation = float(norm(c))
        for _ in range(NEWTON):
            if violation == 0.0:
                break
            nearer = x - self._least(x, c, None)
            c = self.residual(nearer)
            before, violation = violation, float(norm(c))
            # At the level of rounding errors a step changes nothing any more.
            if not violation < 0.5 * before:
                break
            x.copy_(nearer)
        return x

    def is_feasible(self, x: Tensor) -> bool:
        """Whether x satisfies the constraints, up to the root of a rounding error."""
        return float(norm(self.residual(x))) <= torch.finfo(x.dtype).eps ** 0.5 * (1.0 + self._magnitude)

    def _least(self, x: Tensor, c: Tensor, metric: Tensor | None) -> Tensor:
        """Jᵀy with J·D⁻¹Jᵀy = c, by conjugate gradients; D = 1 without a metric."""
        result = torch.zeros_like(x)
        r = p = c
        square = r.dot(r)
        # Orthonormal columns need one round, n other rows at most n.
        for _ in range(len(c)):
            along = torch.zeros_like(x)
            self.add_transposed(x, 1.0, p, along)
            product = self.product(x, along if metric is None else along / metric)
            curvature = p.dot(product)
            if not curvature > 0.0:
                break
            step = square / curvature
            result += step * along
            r = r - step * product
            last, square = square, r.dot(r)
            if square <= torch.finfo(x.dtype).eps ** 2 * c.dot(c):
                break
            p = r + (square / last) * p
        return result
