"""Checks of settings and of parameters, each with a message that names the fix."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Range:
    """The numbers between two bounds; an open bound does not belong to it."""

    low: float = -math.inf
    high: float = math.inf
    open: bool = True
    """Whether the bounds themselves are outside."""

    def __contains__(self, value: float) -> bool:
        return self.low < value < self.high if self.open else self.low <= value <= self.high

    def __str__(self) -> str:
        if self.high == math.inf:
            return f"above {self.low:g}" if self.open else f"at least {self.low:g}"
        return f"between {self.low:g} and {self.high:g}" + (", both excluded" if self.open else "")


def check_numbers(owner: str, settings: Mapping[str, object], ranges: Mapping[str, Range]) -> None:
    """Raises unless every setting is a finite number in its range."""
    for name, allowed in ranges.items():
        value = settings[name]
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"{owner}: `{name}` is a {type(value).__name__}; give a number")
        if not math.isfinite(value) or value not in allowed:
            raise ValueError(f"{owner}: `{name}` is {value}; it must be {allowed}")


def check_flags(owner: str, settings: Mapping[str, object], names: tuple[str, ...]) -> None:
    """Raises unless every named setting is True or False."""
    for name in names:
        if not isinstance(settings[name], bool):
            raise TypeError(f"{owner}: `{name}` is {settings[name]!r}; give True or False")


def check_parameter(owner: str, parameter: Tensor) -> None:
    """Raises unless the methods can move this parameter."""
    if parameter.is_complex():
        raise TypeError(
            f"{owner}: a parameter is complex ({parameter.dtype}); use its real and imaginary parts as two "
            "real parameters"
        )
    if not parameter.is_floating_point():
        raise TypeError(f"{owner}: a parameter has the type {parameter.dtype}; only floating-point parameters can move")
    if parameter.layout != torch.strided:
        raise TypeError(f"{owner}: a parameter is sparse ({parameter.layout}); make it dense with `to_dense()`")
    kind = type(parameter.detach())
    if kind is not Tensor:
        raise TypeError(
            f"{owner}: a parameter is a {kind.__name__}, a special kind of tensor; only plain tensors are "
            "supported. Use DistributedDataParallel instead of methods that divide parameters between processes"
        )


def check_same_in_groups(owner: str, groups: list[dict[str, Any]], names: tuple[str, ...]) -> None:
    """Raises if a setting that all parameters share differs between two groups."""
    for name in names:
        values = {group[name] for group in groups}
        if len(values) > 1:
            raise ValueError(
                f"{owner}: `{name}` differs between parameter groups: {sorted(values)}; only `weight_decay` may "
                "differ. One step has one length and one verdict for all parameters"
            )
