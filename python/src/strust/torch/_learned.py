"""The numbers that `Auto` learns. They stay on the device: every choice is a `torch.where`.

Names and formulas are those of the library's `methods/controller.rs`, which also defines the constants.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from strust._native import auto_parts

_constants, _numbers, KERNELS = auto_parts()
CONSTANTS = dict(_constants)
INITIAL = {**dict(_numbers), "steps": 0.0, "broken": 0.0}
"""The numbers at the start. A curvature or a size of 0 is not known yet."""
C = CONSTANTS


def measure(known: Mapping[str, Tensor], distance: Tensor, difference: Tensor) -> dict[str, Tensor]:
    """The numbers with r̄² and the noise, after the squared distance and ½‖g − gₗₐₛₜ‖².

    Before the first step there is no last gradient.
    """
    steps, least, remembered = known["accepted"], known["least_noise"], known["remembered"]
    share = (C["MEMORY"] / (steps + (C["MEMORY"] - 1.0))).clamp(max=1.0)
    noise = torch.where(steps > 0.0, share * (difference - known["noise"]), 0.0) + known["noise"]
    change = (difference - known["recent_noise"]) / steps.clamp(max=0.5 * C["WINDOW"])
    recent = torch.where(steps > 0.0, change, 0.0) + known["recent_noise"]
    early = steps <= 0.5 * C["WINDOW"]
    falls = (recent < least) & ~early
    fallen = torch.maximum((recent / least).sqrt() * remembered, remembered.clamp(max=C["FEW"]))
    return {
        **known,
        "distance": torch.maximum(known["distance"], distance),
        "noise": noise,
        "recent_noise": recent,
        "least_noise": torch.where(early | falls, recent, least),
        "remembered": torch.where(falls, fallen, remembered),
    }


def first_size(value: Tensor, slope: Tensor) -> Tensor:
    """The size of the first step, after f and gᵀd."""
    return C["FIRST"] * torch.where(value == 0.0, 1.0, value.abs()) / slope


def share_of(measured: Mapping[str, Tensor], power: float) -> Tensor:
    """The share c of the next point in an average with the weights kʳ."""
    return (power + 1.0) / (measured["remembered"] + (power + 1.0))


def next_size(
    measured: Mapping[str, Tensor], share: Tensor, first: Tensor, *, gamma: float, q: float, momentum: float
) -> Tensor:
    """The size a = min(γₖ·Γ/κ, q·r̄/√(n·√k), 1.5·aₗₐₛₜ), or `first` at the first step."""
    size, noise, accepted = measured["size"], measured["noise"], measured["accepted"]
    a = torch.where(size > 0.0, C["GROWTH"] * size, first)
    middle_of_stable = (2.0 - share) / (2.0 * (1.0 - momentum) + share * (2.0 * momentum - 1.0))
    # κ = 0 is not known, and the bound is infinite.
    a = torch.minimum(a, gamma * middle_of_stable * measured["trust"] / measured["curvature"])
    steady = q * (measured["distance"] / (noise * (accepted + 1.0).sqrt())).sqrt()
    known = (accepted >= C["FEW"]) & (noise > 0.0)
    return torch.minimum(a, torch.where(known, steady, math.inf))


class Trial(NamedTuple):
    """What a step has measured after its trial: `slope` is gᵀΔ, `square` is ΔᵀDΔ."""

    size: Tensor
    balance: Tensor
    squared_norm: Tensor
    value: Tensor
    trial: Tensor
    rounding: Tensor
    slope: Tensor
    square: Tensor


class Verdict(NamedTuple):
    """Whether the trial is accepted, whether z returns to the average, and the numbers after the step."""

    accept: Tensor
    retreats: Tensor
    numbers: dict[str, Tensor]


def judge(known: Mapping[str, Tensor], measured: Mapping[str, Tensor], t: Trial, *, scaled: bool) -> Verdict:
    """Accepts or rejects a trial, and learns from it."""
    f0, f1, kappa = t.value, t.trial, known["curvature"]
    finite = torch.isfinite(f0 + t.squared_norm)
    tried = finite & (t.squared_norm > 0.0)
    # Every comparison with NaN is false: a trial that is not finite is rejected and teaches nothing.
    beyond = f1 - f0 - t.slope
    real = torch.isfinite(beyond)
    # A difference below the rounding error of f says nothing about the curvature.
    sees = (beyond.abs() > 2.0 * t.rounding) & (t.square > 0.0) & real & tried
    seen = 2.0 * beyond / t.square
    expected = sees & (kappa > 0.0) & (seen <= C["OUTLIER"] * kappa)
    accept = real & ((f1 <= f0 + t.rounding) | expected) & tried

    # If f is not finite at y, z returns to the average. If y was there already, nothing changes. An overflow that
    # comes from the scale of the loss says nothing about y.
    fails = ~finite & ~torch.isfinite(f0) if scaled else ~finite
    averaged = known["at_average"] > 0.0
    retreats = fails & ~averaged
    size = torch.where(tried, torch.where(accept, t.size, t.size / C["SHRINK"]), known["size"])
    numbers = _accepted(measured, t.balance)
    numbers = {name: torch.where(accept, numbers[name], value) for name, value in known.items()}
    # The first curvature must be positive.
    learns = sees & ((kappa > 0.0) | (seen > 0.0))
    numbers |= {name: torch.where(learns, value, known[name]) for name, value in _curvatures(known, seen).items()}
    numbers["size"] = torch.where(retreats, size / C["SHRINK"], size)
    numbers["at_average"] = (retreats | (averaged & ~accept)).to(f0.dtype)
    numbers["steps"] = known["steps"] + 1.0
    numbers["broken"] = torch.where(fails & averaged, known["broken"] + 1.0, 0.0)
    return Verdict(accept, retreats, numbers)


def _curvatures(known: Mapping[str, Tensor], seen: Tensor) -> dict[str, Tensor]:
    """κ = E[h²]/E[h], after a trial that shows the curvature `seen`."""
    kappa, share = known["curvature"], C["MEMORY"] / (known["accepted"] + C["MEMORY"])
    h = torch.minimum(seen.clamp(min=0.0), C["OUTLIER"] * kappa)
    mean = known["mean_curvature"] + share * (h - known["mean_curvature"])
    square = known["square_curvature"] + share * (h * h - known["square_curvature"])
    return {
        # A mean of 0 shows no curvature: it is not known again.
        "curvature": torch.where(kappa > 0.0, torch.where(mean > 0.0, square / mean, 0.0), seen),
        "mean_curvature": torch.where(kappa > 0.0, mean, seen),
        "square_curvature": torch.where(kappa > 0.0, square, seen * seen),
    }


def _accepted(measured: Mapping[str, Tensor], balance: Tensor) -> dict[str, Tensor]:
    """After an accepted step: γₖ/γ, the sum of the balances, and the counts."""
    trust, accepted, balances = measured["trust"], measured["accepted"] + 1.0, measured["balances"] + 1.0
    balance = measured["balance"] + balance.clamp(-C["OUTLIER"], C["OUTLIER"])
    mean, full = balance / balances, balances >= (accepted / C["MEMORY"]).clamp(min=C["WINDOW"])
    circles = (mean > C["CIRCLES"]) & (measured["recent_noise"] < C["VANISHES"] * measured["noise"])
    longer = (math.sqrt(2.0) * trust).clamp(max=1.0)
    changed = torch.where(circles, 0.5 * trust, torch.where(mean < C["ADVANCES"], longer, trust))
    return {
        **measured,
        "accepted": accepted,
        "remembered": measured["remembered"] + 1.0,
        "trust": torch.where(full, changed, trust),
        "balance": torch.where(full, 0.0, balance),
        "balances": torch.where(full, 0.0, balances),
    }
