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
    """The numbers with r̄ and the noise, after the distance and ½‖g − gₗₐₛₜ‖².

    Before the first step there is no last gradient.
    """
    steps, least, remembered = known["accepted"], known["least_noise"], known["remembered"]
    share = (C["NOISE_MEMORY"] / (steps + (C["NOISE_MEMORY"] - 1.0))).clamp(max=1.0)
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


def next_size(measured: Mapping[str, Tensor], first: Tensor, *, gamma: float, q: float) -> Tensor:
    """The size a = min(γₖ/κ, q·r̄/√(k·n), 1.5·aₗₐₛₜ), or `first` at the first step."""
    size, noise, accepted = measured["size"], measured["noise"], measured["accepted"]
    a = torch.where(size > 0.0, C["GROWTH"] * size, first)
    # κ = 0 is not known, and the bound is infinite.
    a = torch.minimum(a, gamma * measured["trust"] / measured["curvature"])
    steady = q * measured["distance"] / ((accepted + 1.0) * noise).sqrt()
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


def judge(
    known: Mapping[str, Tensor], measured: Mapping[str, Tensor], t: Trial, *, gamma: float, scaled: bool
) -> Verdict:
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
    bounded = torch.minimum(seen.clamp(min=0.0), C["OUTLIER"] * kappa)
    # Two numbers alone would give a float32.
    share = torch.where(bounded > kappa, torch.full_like(kappa, C["UPWARDS"]), C["DOWNWARDS"])
    curvature = torch.where(kappa > 0.0, kappa + share * (bounded - kappa), seen.clamp(min=0.0))

    # If f is not finite at y, z returns to the average. If y was there already, nothing changes. An overflow that
    # comes from the scale of the loss says nothing about y.
    fails = ~finite & ~torch.isfinite(f0) if scaled else ~finite
    averaged = known["at_average"] > 0.0
    retreats = fails & ~averaged
    size = torch.where(tried, torch.where(accept, t.size, t.size / C["SHRINK"]), known["size"])
    numbers = _accepted(measured, t.balance, gamma=gamma)
    numbers = {name: torch.where(accept, numbers[name], value) for name, value in known.items()}
    numbers["curvature"] = torch.where(sees, curvature, kappa)
    numbers["size"] = torch.where(retreats, size / C["SHRINK"], size)
    numbers["at_average"] = (retreats | (averaged & ~accept)).to(f0.dtype)
    numbers["steps"] = known["steps"] + 1.0
    numbers["broken"] = torch.where(fails & averaged, known["broken"] + 1.0, 0.0)
    return Verdict(accept, retreats, numbers)


def _accepted(measured: Mapping[str, Tensor], balance: Tensor, *, gamma: float) -> dict[str, Tensor]:
    """After an accepted step: γₖ/γ and the sum of the balances, and the counts."""
    trust, accepted = measured["trust"], measured["accepted"] + 1.0
    balance = measured["balance"] + balance.clamp(-C["OUTLIER"], C["OUTLIER"])
    mean, full = balance / C["WINDOW"], torch.remainder(accepted, C["WINDOW"]) == 0.0
    shorter = (0.5 * trust).clamp(min=min(C["LEAST"] / gamma, 1.0))
    longer = (math.sqrt(2.0) * trust).clamp(max=1.0)
    changed = torch.where(mean > C["CIRCLES"], shorter, torch.where(mean < C["ADVANCES"], longer, trust))
    return {
        **measured,
        "accepted": accepted,
        "remembered": measured["remembered"] + 1.0,
        "trust": torch.where(full, changed, trust),
        "balance": torch.where(full, 0.0, balance),
    }
