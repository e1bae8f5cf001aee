"""The numbers that `Auto` learns. They stay on the device: every choice is a `torch.where`."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

# The constants of the Rust library's `methods/auto.rs` and `methods/noise.rs`, which give the reasons.
FIRST = 1e-3
GROWTH = 1.5
SHRINK = 4.0
TOLERANCE = 3.0
MOST = 10.0
UPWARDS = 0.2
DOWNWARDS = 0.01
AFTER_REJECTION = 0.6
NOISE_KNOWN = 10.0
WINDOW = 100.0
PULL = 3.0
CIRCLES = 0.45
ADVANCES = 0.3
LEAST = 2.0
LENGTHEN = 1.4
NOISE_MEMORY = 4.0
RECENT = 50.0
SHORTEST = 10.0
SLACK = 10.0
"""Rounding errors of size ε·|f| in a computed loss."""

INITIAL = {
    "accepted": 0.0,
    "curvature": 0.0,
    "noise": 0.0,
    "recent_noise": 0.0,
    "least_noise": 0.0,
    "remembered": 0.0,
    "distance": 0.0,
    "size": 0.0,
    "trust": 1.0,
    "pull": 0.0,
    "at_average": 1.0,
    "steps": 0.0,
    "broken": 0.0,
}
"""The numbers at the start. A curvature or a size of 0 is not known yet."""


class Noise(NamedTuple):
    """n, its recent mean, the least recent mean, and m, the number of steps that the average remembers."""

    mean: Tensor
    recent: Tensor
    least: Tensor
    remembered: Tensor

    def hear(self, steps: Tensor, difference: Tensor) -> Noise:
        """Learns from ½‖g − gₗₐₛₜ‖² after `steps` accepted steps. Before the first one there is no last gradient."""
        later = steps > 0.0
        share = (NOISE_MEMORY / (steps + (NOISE_MEMORY - 1.0))).clamp(max=1.0)
        mean = self.mean + torch.where(later, share * (difference - self.mean), 0.0)
        recent = self.recent + torch.where(later, (difference - self.recent) / steps.clamp(max=RECENT), 0.0)
        early = steps <= RECENT
        falls = (recent < self.least) & ~early
        fallen = torch.maximum((recent / self.least).sqrt() * self.remembered, self.remembered.clamp(max=SHORTEST))
        least = torch.where(early | falls, recent, self.least)
        return Noise(mean, recent, least, torch.where(falls, fallen, self.remembered))


def step_size(
    number: dict[str, Tensor], noise: Tensor, distance: Tensor, first: Tensor, *, gamma: float, q: float
) -> Tensor:
    """The size a = min(γₖ/κ, q·r̄/√(k·n), 1.5·aₗₐₛₜ), or `first` at the first step."""
    a = torch.where(number["size"] > 0.0, GROWTH * number["size"], first)
    # κ = 0 is not known, and the bound is infinite.
    a = torch.minimum(a, gamma * number["trust"] / number["curvature"])
    steady = q * distance / ((number["accepted"] + 1.0) * noise).sqrt()
    known = (number["accepted"] >= NOISE_KNOWN) & (noise > 0.0)
    return torch.minimum(a, torch.where(known, steady, math.inf))


class Verdict(NamedTuple):
    """Whether a trial is accepted, and κ after it."""

    accept: Tensor
    curvature: Tensor


def judge(known: Tensor, f0: Tensor, f1: Tensor, rounding: Tensor, slope: Tensor, square: Tensor) -> Verdict:
    """Accepts or rejects a trial, and learns κ from it. `slope` is gᵀΔ, `square` is ΔᵀDΔ."""
    # Every comparison with NaN is false: a trial that is not finite is rejected and teaches nothing.
    real = torch.isfinite(f1)
    beyond = f1 - f0 - slope
    # A difference below the rounding error of f says nothing about the curvature.
    sees = (beyond.abs() > 2.0 * rounding) & (square > 0.0) & real
    seen = 2.0 * beyond / square
    expected = sees & (known > 0.0) & (seen <= TOLERANCE * known)
    accept = real & ((f1 <= f0 + rounding) | expected)
    bounded = torch.minimum(seen.clamp(min=0.0), MOST * known)
    # Two numbers alone would give a float32.
    upwards = torch.where(accept, torch.full_like(known, UPWARDS), AFTER_REJECTION)
    share = torch.where(bounded > known, upwards, DOWNWARDS)
    learned = torch.where(known > 0.0, known + share * (bounded - known), seen.clamp(min=0.0))
    return Verdict(accept, torch.where(sees, learned, known))


def feel(trust: Tensor, pull: Tensor, accepted: Tensor, b: Tensor, *, gamma: float) -> tuple[Tensor, Tensor]:
    """γₖ/γ and the sum of b, after b of an accepted step."""
    pull = pull + b.clamp(-PULL, PULL)
    full = torch.remainder(accepted, WINDOW) == 0.0
    mean = pull / WINDOW
    shorter = (0.5 * trust).clamp(min=min(LEAST / gamma, 1.0))
    longer = (LENGTHEN * trust).clamp(max=1.0)
    changed = torch.where(mean > CIRCLES, shorter, torch.where(mean < ADVANCES, longer, trust))
    return torch.where(full, changed, trust), torch.where(full, 0.0, pull)
