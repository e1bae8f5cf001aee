"""The multipliers of rows that only mini-batches know, from a few numbers of each step.

Names, constants and formulas are those of the library's `methods/in_expectation/multipliers.rs`, which gives the
reasons. The numbers live on the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, cast

import torch

from ._operations import numbers

INTEGRAL = 0.25
"""The integral's share of the gain, in multiples of ρ: with it, the loop is critically damped."""
MOST = 3.0
"""A multiplier is at most this multiple of the one that balances the largest force of the loss."""
NEAR = 2.0
"""A row may become active, and needs its slope, within this many deviations of its bound."""
QUARTER = 4.0
"""Means are over about the last quarter of the values: 1 over this."""


def share(count: float) -> float:
    """The weight of the n-th value in such a mean."""
    return QUARTER / (count + QUARTER - 1.0)


def error(count: float) -> float:
    """The relative error of a mean of so many products of noisy slopes."""
    return min(math.sqrt(QUARTER / count), 1.0) if count > 0.0 else 1.0


class RecentMean:
    """A mean over about the last quarter of the values."""

    def __init__(self) -> None:
        self.mean = 0.0
        self.count = 0.0

    def learn(self, value: float) -> None:
        """Adds a value."""
        self.count += 1.0
        self.mean += share(self.count) * (value - self.mean)


class Row:
    """What the steps have learned about lower ≤ c ≤ upper. J̄, the mean of its slopes J, is a vector of the optimizer.

    Parameters
    ----------
    lower, upper
        The bounds.
    rows
        The number of all rows.
    """

    NUMBERS = ("multiplier", "next", "known", "value", "predicted", "slopes")
    """λ; μ of the next step; the batches that knew c; c at y on the last of them; what that one predicts for c at z
    after its step; the batches whose slope was measured."""

    def __init__(self, lower: float, upper: float, rows: int) -> None:
        self.lower, self.upper = lower, upper
        self.multiplier = self.next = self.known = self.value = self.predicted = self.slopes = 0.0
        # The means of c − predicted, of μ, of ½(c − predicted)², of (J̄·D⁻¹(g + Σλⱼ·Jⱼ))², of J·D⁻¹J with its noise,
        # and of J̄·D⁻¹Jⱼ.
        self.drift, self.mean, self.noise = RecentMean(), RecentMean(), RecentMean()
        self.walk, self.square = RecentMean(), RecentMean()
        self.products = [RecentMean() for _ in range(rows)]

    @property
    def is_in_play(self) -> bool:
        """Whether the next step needs the slope: the row has a multiplier, or may need one."""
        near = NEAR * math.sqrt(self.noise.mean)
        is_near = self.value > self.upper - near or self.value < self.lower + near
        return self.next != 0.0 or self.multiplier != 0.0 or self.noise.count == 0.0 or is_near

    def in_batch(self, multiplier: float, steps: float) -> float:
        """A multiplier in a batch that knows the row, which stands for all between it and the last such one."""
        return multiplier * steps / self.known if multiplier != 0.0 and self.known > 0.0 else multiplier

    def own_product(self, own: int) -> float:
        """J·D⁻¹J without the noise of J, but at least its error: few products of noisy slopes may be 0 in the mean."""
        product = self.products[own]
        return max(product.mean, self.square.mean * error(product.count))

    def pull(self, value: float) -> None:
        """Pulls x towards the row where the loss does not pull at all, and so shows neither a metric nor a scale."""
        self.value = value
        self.next = float(value > self.upper) - float(value < self.lower)

    def control(self, curvature: float, force: RecentMean, size: float, most: float) -> None:
        """Sets μ and λ.

        `curvature` is the change of c for a multiplier 1, in multiples of the step size a; `most` is the square of the
        largest multiplier that balances the loss.
        """
        share = self.known / force.count
        moved = size * curvature / share
        if not 0.0 < moved < math.inf:
            return
        walk, noise = size * size * self.walk.mean / share, 4.0 * self.noise.mean
        ratio = 0.0 if noise == 0.0 else noise / walk if walk > 0.0 else math.inf
        # ρ is the steady gain of a Kalman filter of a walk with steps w that is seen with noise s.
        rho = 2.0 / (1.0 + math.sqrt(1.0 + ratio))
        # Without a force there is nothing to balance.
        most = MOST * math.sqrt(most) if most > 0.0 else math.inf
        gains = (rho / moved, INTEGRAL * rho * rho / moved)
        self.next, self.multiplier = (max(-most, min(self._toward(gain), most)) for gain in gains)
        self.mean.learn(self.next)

    def _toward(self, gain: float) -> float:
        """λ + gain·(the violation) for an equality; between the bounds λ goes back to 0 and keeps its sign."""
        if not 0.0 < gain < math.inf:
            return self.multiplier
        # Only batches that know the row bring c back. Just after them it is as predicted, then it drifts away until the
        # next one, which comes at a random time and so finds the mean of c over time.
        moved = self.multiplier + gain * (self.predicted + self.drift.mean)
        return moved - max(gain * self.lower, min(moved, gain * self.upper))


class Measured(NamedTuple):
    """What a step has measured on its batch. The lists of slopes are in the order of `slopes`."""

    values: list[float]
    """c of each row at y; NaN where the batch does not know it."""
    slopes: list[int]
    """The rows whose slope was measured."""
    before: list[float]
    """J̄(z − y) of each row, with z before the step and J̄ before this batch."""
    after: list[float]
    """The same with z after the step."""
    force: float
    """gᵀD⁻¹g, with the gradient g of the loss."""
    squares: list[float]
    """J·D⁻¹J of each slope."""
    walks: list[float]
    """J̄·D⁻¹g of each row."""
    products: list[list[float]]
    """J̄·D⁻¹Jⱼ of each row, for each slope j."""
    size: float
    """a"""


class Multipliers:
    """All rows of an optimizer.

    Parameters
    ----------
    bounds
        The bounds of each row.
    """

    def __init__(self, bounds: Sequence[tuple[float, float]]) -> None:
        self.rows = [Row(lower, upper, len(bounds)) for lower, upper in bounds]
        self.force = RecentMean()
        """gᵀD⁻¹g. It counts the steps that have learned."""

    @staticmethod
    def length(rows: int) -> int:
        """How many numbers there are."""
        return 2 + rows * (len(Row.NUMBERS) + 2 * (5 + rows)) if rows else 0

    def _places(self) -> Iterator[tuple[object, str]]:
        means = [self.force]
        for row in self.rows:
            yield from ((row, name) for name in Row.NUMBERS)
            means += [row.drift, row.mean, row.noise, row.walk, row.square, *row.products]
        for mean in means:
            yield from ((mean, "mean"), (mean, "count"))

    def numbers(self) -> list[float]:
        """Everything learned, for a saved state."""
        return [float(getattr(owner, name)) for owner, name in self._places()]

    def load(self, numbers: Sequence[float]) -> None:
        """Continues from saved numbers."""
        for (owner, name), number in zip(self._places(), numbers, strict=True):
            setattr(owner, name, number)

    def forces(self) -> list[float]:
        """μ of each row in the next batch that knows it."""
        return [row.in_batch(row.next, self.force.count) for row in self.rows]

    def learn(self, m: Measured) -> None:
        """Learns from a step, and sets the multipliers of the next one."""
        # The force that the multipliers without their last corrections leave.
        memories = [self.rows[j].in_batch(self.rows[j].multiplier, self.force.count) for j in m.slopes]
        for i, row in enumerate(self.rows):
            if row.slopes == 0.0:
                continue
            if i in m.slopes:
                left = m.walks[i] + sum(a * b for a, b in zip(memories, m.products[i], strict=True))
                row.walk.learn(left * left)
            if i in m.slopes or row.next != 0.0:
                for j, product in zip(m.slopes, m.products[i], strict=True):
                    row.products[j].learn(product)
        for j, square in zip(m.slopes, m.squares, strict=True):
            self.rows[j].square.learn(square)
        self.force.learn(m.force)
        known = [i for i, value in enumerate(m.values) if not math.isnan(value)]
        for i in known:
            row, value = self.rows[i], m.values[i]
            # The mean slope is independent of the batch, and the step is not. So this is c at z without bias, also
            # after the step.
            has_mean = i in m.slopes and row.slopes > 0.0
            before, after = (m.before[i], m.after[i]) if has_mean else (0.0, 0.0)
            if row.known > 0.0:
                moved = value + before - row.predicted
                row.drift.learn(moved)
                row.noise.learn(0.5 * moved * moved)
            row.value, row.predicted = value, value + after
            row.known += 1.0
            row.slopes += i in m.slopes
        own = [row.own_product(i) for i, row in enumerate(self.rows)]
        in_play = [i for i, row in enumerate(self.rows) if own[i] > 0.0 and row.is_in_play]

        def cosine(i: int, j: int) -> float:
            """In units in which each own product is 1."""
            return self.rows[i].products[j].mean / (math.sqrt(own[i]) * math.sqrt(own[j]))

        longest = dict(zip(in_play, self._inverse_diagonal(in_play, cosine), strict=True))
        for i in known:
            if own[i] > 0.0:
                # Rows push each other: the sum bounds the largest eigenvalue (Gershgorin).
                pushes = 1.0 + sum(abs(cosine(i, j)) for j in in_play if j != i)
                most = self.force.mean / own[i] * longest.get(i, 1.0)
                self.rows[i].control(own[i] * pushes, self.force, m.size, most)

    def _inverse_diagonal(self, rows: list[int], cosine: Callable[[int, int], float]) -> list[float]:
        """The diagonal of the inverse of the cosines, of which each is known with an error.

        It is 1 for a row that is orthogonal to the others, and large for one that they nearly span.
        """
        if not rows:
            return []
        ridge = max(error(self.rows[i].products[i].count) for i in rows)
        matrix = torch.eye(len(rows), dtype=torch.float64)
        for a, i in enumerate(rows):
            for b, j in enumerate(rows):
                if a != b:
                    matrix[a, b] = max(-1.0, min(0.5 * (cosine(i, j) + cosine(j, i)), 1.0)) / (1.0 + ridge)
        factor, failed = cast("tuple[torch.Tensor, torch.Tensor]", torch.linalg.cholesky_ex(matrix))
        most = 1.0 + 1.0 / ridge
        if failed:
            return [most] * len(rows)
        return [max(1.0, min(value, most)) for value in numbers(torch.cholesky_inverse(factor).diagonal())]
