# pyright: reportPrivateUsage=false, reportPrivateImportUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
"""Operations of torch that have no types of their own."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


def copy_all(to: Sequence[Tensor], of: Sequence[Tensor]) -> None:
    """Copies each tensor, in few kernels."""
    torch._foreach_copy_(list(to), list(of))


def zero_all(tensors: Sequence[Tensor]) -> None:
    """Sets each tensor to 0."""
    torch._foreach_zero_(list(tensors))


def norm(v: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """‖v‖, added up in another precision if one is given."""
    result: Tensor = torch.linalg.vector_norm(v, dtype=dtype)
    return result


def is_dense(v: Tensor) -> bool:
    """Whether the entries fill their memory without gaps, in any order."""
    return bool(torch.ops.aten.is_non_overlapping_and_dense(v))


_version: Callable[[Tensor], int] = operator.attrgetter("_version")


def versions(tensors: Sequence[Tensor]) -> int:
    """How often the tensors were written to."""
    return sum(map(_version, tensors))


def processors(device: torch.device) -> int:
    """The multiprocessors of a CUDA device."""
    count: int = torch.cuda.get_device_properties(device).multi_processor_count
    return count


def numbers(v: Tensor) -> list[float]:
    """All entries. Waits for the device."""
    return [float(x) for x in v.reshape(-1).tolist()]


def parts_of(value: Any) -> list[Any]:
    """The entries of a tuple; a list of one value if it is none."""
    return list(value) if isinstance(value, tuple) else [value]


def split(v: Tensor, lengths: Sequence[int]) -> list[Tensor]:
    """The parts of a vector, one after the other."""
    return list(torch.split(v, list(lengths)))


def gradients(of: Tensor, by: Sequence[Tensor], *, keep: bool) -> list[Tensor | None]:
    """The derivatives of a number; None where it does not depend on a tensor. `keep` allows another call."""
    return list(torch.autograd.grad(of, list(by), retain_graph=keep, allow_unused=True))
