"""Points that satisfy constraints on parameters exactly, and directions along them."""

from __future__ import annotations

import torch
from torch import Tensor

from ._constraints import Constraint, Penalty
from ._flat import Flat
from ._operations import norm, split

NEWTON = 20
"""At most this many Newton steps move a point onto the constraints. They converge quadratically: the points of a step
need one or two of them, and a start that is far away needs more."""


class Joint:
    """Constraints c(w) = 0 that share parameters, over lists of these parameters.

    Parameters
    ----------
    bound
        The constraints, each with the places of its parameters in the layout.
    magnitude
        The size of the numbers whose difference is c.
    """

    def __init__(self, bound: list[tuple[list[int], Constraint]], magnitude: float) -> None:
        self.places = sorted({i for places, _ in bound for i in places})
        self._parts = [([self.places.index(i) for i in places], one) for places, one in bound]
        self._magnitude = 1.0 + magnitude

    def residual(self, w: list[Tensor]) -> Tensor:
        """c, all constraints one after the other. The first call learns how many rows each of them has."""
        found = [one.residual(*(w[i] for i in places)) for places, one in self._parts]
        self._lengths = [len(c) for c in found]
        return torch.cat(found)

    def _transposed(self, w: list[Tensor], y: Tensor) -> list[Tensor]:
        """Jᵀy."""
        sums = [torch.zeros_like(one) for one in w]
        for (places, one), part in zip(self._parts, split(y, self._lengths), strict=True):
            for i, product in zip(places, one.transposed([w[i] for i in places], part), strict=True):
                sums[i] += product
        return sums

    def product(self, w: list[Tensor], v: list[Tensor]) -> Tensor:
        """Jv."""
        return torch.cat([one.product([w[i] for i in p], [v[i] for i in p]).reshape(-1) for p, one in self._parts])

    def least(self, w: list[Tensor], c: Tensor, metric: list[Tensor] | None = None) -> list[Tensor]:
        """Jᵀy with J·D⁻¹Jᵀy = c, by conjugate gradients; D = 1 without a metric."""
        result = [torch.zeros_like(one) for one in w]
        r = p = c
        square = first = c.dot(c)
        # Orthonormal columns need one round, n other rows at most n.
        for _ in range(len(c)):
            # A relative error of √ε: what is left is corrected by the next Newton step.
            if not square > torch.finfo(c.dtype).eps * first:
                break
            along = self._transposed(w, p)
            product = self.product(w, along if metric is None else [a / d for a, d in zip(along, metric, strict=True)])
            step = square / p.dot(product)
            for total, part in zip(result, along, strict=True):
                total += step * part
            r = r - step * product
            last, square = square, r.dot(r)
            p = r + (square / last) * p
        return result

    def restore(self, w: list[Tensor]) -> bool:
        """Moves w onto the constraints, up to rounding, by Newton steps of least length. Returns whether that works."""
        epsilon = torch.finfo(w[0].dtype).eps
        near = epsilon**0.5 * self._magnitude
        c = self.residual(w)
        violation = float(norm(c))
        for _ in range(NEWTON):
            if violation <= epsilon * self._magnitude:
                break
            nearer = [one - move for one, move in zip(w, self.least(w, c), strict=True)]
            c = self.residual(nearer)
            before, violation = violation, float(norm(c))
            # The first steps may overshoot. Near the constraints, a step that does not help shows the rounding errors.
            if before <= near and not violation < before:
                return True
            for one, new in zip(w, nearer, strict=True):
                one.copy_(new)
        return bool(violation <= near)


class Feasible(Penalty):
    """All constraints c(x) = 0 of an optimizer whose points satisfy them."""

    def bind(self, flat: Flat) -> None:
        """Finds the parameters of each constraint in the layout."""
        super().bind(flat)
        joints: list[list[tuple[list[int], Constraint]]] = []
        for one in self._bound:
            shares = [joint for joint in joints if any(set(one[0]) & set(places) for places, _ in joint)]
            joints = [joint for joint in joints if joint not in shares] + [sum(shares, [one])]
        views = flat.views(flat.point)
        self._joints = [
            Joint(joint, sum(c.magnitude([views[i] for i in places]) for places, c in joint)) for joint in joints
        ]
        for joint in self._joints:
            joint.residual([views[i] for i in joint.places])
        self._uniform = sorted({i for places, one in self._bound if one.uniform for i in places})

    def level(self, metric: Tensor) -> Tensor:
        """The metric D, with one number for each parameter whose entries a constraint mixes."""
        views = self._flat.views(metric)
        for i in self._uniform:
            views[i].fill_(views[i].mean())
        return metric

    def tangent(self, x: Tensor, g: Tensor, metric: Tensor) -> Tensor:
        """The projection g + Jᵀy with J·D⁻¹(g + Jᵀy) = 0: along D⁻¹ of it, c does not change to first order."""
        result = g.clone()
        weights, gradients, metrics = self._flat.views(x), self._flat.views(result), self._flat.views(metric)
        with torch.autocast(self._flat.device.type, enabled=False):
            for joint in self._joints:
                w, part, d = ([all[i] for i in joint.places] for all in (weights, gradients, metrics))
                excess = joint.product(w, [one / scale for one, scale in zip(part, d, strict=True)])
                for one, normal in zip(part, joint.least(w, excess, d), strict=True):
                    one -= normal
        return result

    def restore(self, x: Tensor) -> bool:
        """Moves x onto the constraints, up to rounding. Returns whether that works."""
        views = self._flat.views(x)
        with torch.autocast(self._flat.device.type, enabled=False):
            return all([joint.restore([views[i] for i in joint.places]) for joint in self._joints])
