"""All parameters as one vector. The parameters keep their own memory; values are copied in and out."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ._operations import copy_all, is_dense, versions, zero_all
from ._settings import check_parameter


class Flat:
    """The layout of parameters in vectors of one type on one device.

    The vectors are float32, or float64 if a parameter is float64. So points of bfloat16 or float16 parameters are
    kept in float32, and only the parameters themselves are rounded.
    """

    def __init__(self, owner: str, parameters: Sequence[Tensor]) -> None:
        if not parameters:
            raise ValueError(f"{owner}: no parameter requires a gradient; set `requires_grad` on those to train")
        for parameter in parameters:
            check_parameter(owner, parameter)
        devices = sorted({str(p.device) for p in parameters})
        if len(devices) > 1:
            raise ValueError(
                f"{owner}: the parameters are on several devices ({', '.join(devices)}); one step has one verdict for "
                "all of them. Move the model to one device, or use data parallelism"
            )
        self.owner = owner
        self.parameters = list(parameters)
        self.device = parameters[0].device
        self.dtype = torch.float64 if any(p.dtype == torch.float64 for p in parameters) else torch.float32
        self.count = sum(p.numel() for p in parameters)
        self.pointers = pointers(parameters)
        self.gradient = self.zeros()
        self._gradient_views = self.views(self.gradient)
        self.point = self.zeros()
        """What the parameters hold, or shall hold next."""
        self._point_views = self.views(self.point)
        self._versions = 0

    def zeros(self) -> Tensor:
        """A new vector."""
        return torch.zeros(self.count, dtype=self.dtype, device=self.device)

    def views(self, vector: Tensor) -> list[Tensor]:
        """The part of each parameter in a vector, with the shape and, if dense, the strides of the parameter."""
        parts: list[Tensor] = []
        offset = 0
        for p in self.parameters:
            if is_dense(p):
                parts.append(vector.as_strided(p.size(), p.stride(), offset))
            else:
                parts.append(vector[offset : offset + p.numel()].view(p.shape))
            offset += p.numel()
        return parts

    def gather_point(self) -> None:
        """Sets point ← the parameters."""
        copy_all(self._point_views, self.parameters)

    def scatter_point(self) -> None:
        """The parameters ← point."""
        copy_all(self.parameters, self._point_views)
        self._versions = versions(self.parameters)

    def changed_by_others(self) -> bool:
        """Whether someone else has written to a parameter. The host knows this without waiting for the device."""
        return versions(self.parameters) != self._versions

    def holds(self, vector: Tensor) -> bool:
        """Whether the parameters are this vector, rounded to their types. Waits for the device."""
        return all(torch.equal(p, v.to(p.dtype)) for p, v in zip(self.parameters, self.views(vector), strict=True))

    def gather_gradient(self) -> None:
        """Sets gradient ← the `grad` of each parameter; 0 where it is None."""
        targets: list[Tensor] = []
        sources: list[Tensor] = []
        missing: list[Tensor] = []
        for p, view in zip(self.parameters, self._gradient_views, strict=True):
            g = p.grad
            if g is None:
                missing.append(view)
                continue
            if g.layout != torch.strided:
                raise TypeError(
                    f"{self.owner}: a gradient is sparse ({g.layout}); use `sparse=False` in the layer that makes it"
                )
            targets.append(view)
            sources.append(g)
        if not targets:
            raise RuntimeError(
                f"{self.owner}: no parameter has a gradient after the closure; call `loss.backward()` in it, and pass "
                "the parameters of the model that it evaluates"
            )
        copy_all(targets, sources)
        if missing:
            zero_all(missing)


def pointers(parameters: Sequence[Tensor]) -> list[int]:
    """The addresses of the parameters: another one means that a parameter was moved, converted or replaced."""
    return [p.data_ptr() for p in parameters]
