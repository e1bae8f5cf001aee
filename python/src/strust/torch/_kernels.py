"""The step of `Auto` as four CUDA kernels, compiled when a GPU first needs them."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from . import _learned as learned
from ._flat import Flat
from ._nvrtc import Launch, Module
from ._operations import processors

SETTINGS = ("gamma", "noise", "momentum", "power", "beta2", "epsilon")
THREADS = 256


def source(dtype: torch.dtype) -> str:
    """The kernels for vectors of this type."""
    return f"#define REAL {'double' if dtype == torch.float64 else 'float'}\n{learned.KERNELS}"


@functools.cache
def _module(dtype: torch.dtype, device: torch.device) -> Module:
    return Module(source(dtype), device)


class AutoKernels:
    """The kernels with the vectors of one optimizer."""

    def __init__(self, flat: Flat, vector: Mapping[str, Tensor], numbers: Tensor, losses: Tensor) -> None:
        self._module = _module(flat.dtype, flat.device)
        # Each block adds the sums of all blocks, so small models get few of them.
        self._blocks = min(-(-flat.count // (4 * THREADS)), 4 * processors(flat.device))
        self._flat, self._vector, self._numbers, self._losses = flat, vector, numbers, losses

        def doubles(count: int) -> Tensor:
            return torch.zeros(count, dtype=torch.float64, device=flat.device)

        self._proposal = doubles(2 * len(numbers) + 6)
        self._shares = [doubles(n * self._blocks) for n in (2, 4, 3)]
        # There is no table of records, and no index of its next row.
        self._table = doubles(0)
        self._propose: list[Launch] = []
        self._judge: list[Launch] = []
        self._settings = doubles(len(SETTINGS) + 4)
        self._one_decay = torch.zeros(1, dtype=flat.dtype, device=flat.device)
        self._known: tuple[object, ...] = ()
        self._decay: float | Tensor | None = None

    @classmethod
    def make(cls, wanted: bool | None, flat: Flat, *parts: Any) -> AutoKernels | None:
        """The kernels with the arguments of `__init__`, or None where torch's operations are used instead."""
        possible = flat.device.type == "cuda" and torch.version.cuda is not None and flat.count < 2**31 - 2**20
        if wanted is False or not (possible or wanted):
            return None
        try:
            if not possible:
                raise RuntimeError("they need a CUDA device and fewer than 2³¹ parameters")
            return cls(flat, *parts)
        except RuntimeError as error:
            if wanted:
                raise RuntimeError(f"Auto: the kernels of `fused=True` cannot be used: {error}") from error
            # torch's own operations make the same step.
            warnings.warn(f"Auto uses torch's operations, because its kernels cannot be used: {error}", stacklevel=2)
            return None

    def _prepare(self, group: Mapping[str, Any], decay: float | Tensor, rounding: float, *, scaled: bool) -> None:
        """Writes the settings where the kernels read them, if one has changed. A captured step sees the change too."""
        by_parameter = isinstance(decay, Tensor)
        now = (*(group[name] for name in SETTINGS), rounding, float(scaled), 0.0, float(by_parameter))
        if now != self._known:
            self._settings.copy_(torch.tensor(now, dtype=torch.float64))
            self._known = now
        if decay is self._decay or (isinstance(decay, float) and decay == self._decay):
            return
        if isinstance(decay, Tensor):
            self._launches(decay)
        else:
            if self._decay is None or isinstance(self._decay, Tensor):
                self._launches(self._one_decay)
            self._one_decay.fill_(decay)
        self._decay = decay

    def _launches(self, decay: Tensor) -> None:
        """Prepares the kernels. `decay` is λ of each parameter, or one number."""
        flat, n, s, proposal, table = self._flat, self._numbers, self._settings, self._proposal, self._table
        x, z, start, last, root = (self._vector[name] for name in ("x", "z", "start", "gradient", "root"))
        y, g, (first, second, third), (f0, f1) = flat.point, flat.gradient, self._shares, self._losses.unbind()

        def launch(name: str, *arguments: Tensor) -> Launch:
            return self._module.launch(name, self._blocks, THREADS, [*arguments, flat.count])

        self._propose = [
            launch("auto_gradient", g, root, s, first),
            launch("auto_metric", g, root, x, z, start, last, s, n, first, second, proposal),
            launch("auto_propose", y, g, root, x, z, decay, s, n, f0, second, third, proposal),
        ]
        self._judge = [
            launch("auto_judge", g, root, x, z, last, decay, s, n, f0, f1, third, proposal, table, table),
        ]

    def propose(self, group: Mapping[str, Any], decay: float | Tensor, rounding: float, *, scaled: bool) -> None:
        """flat.point ← the trial."""
        self._prepare(group, decay, rounding, scaled=scaled)
        self._run(self._propose)

    def judge(self) -> None:
        """The state after the verdict."""
        self._run(self._judge)

    def _run(self, launches: list[Launch]) -> None:
        with torch.cuda.device(self._flat.device):
            stream = torch.cuda.current_stream().cuda_stream
            for launch in launches:
                launch(stream)
