"""Notices steps that cannot start, without a step that waits for the device."""

from __future__ import annotations

import torch
from torch import Tensor

from ._trial import capturing

EVERY = 8
"""Steps between two looks at a device other than the CPU."""


class Watch:
    """Reads how many steps in a row could not start, because the loss or its gradient was not finite.

    Reading a number costs nothing on the CPU: one such step is enough. Elsewhere it would wait for the device. There
    the number is copied to the host in every `EVERY`-th step and read `EVERY` steps later, when the copy has long been
    made; `EVERY` such steps in a row are enough. The steps at which it is read are counted on the host, so all ranks of
    a run notice the same step.
    """

    def __init__(self, broken: Tensor, *, late: bool) -> None:
        self._broken = broken
        self._late = late
        self._steps = 0
        on_cuda = broken.device.type == "cuda"
        self._copy = torch.zeros_like(broken, device="cpu", pin_memory=on_cuda)
        self._copied = torch.cuda.Event() if on_cuda else None  # type: ignore[no-untyped-call]

    def after_step(self) -> int:
        """The number of steps that could not start, if there are enough to end the training; otherwise 0."""
        if not self._late:
            return int(self._broken)
        if capturing(self._broken.device):
            return 0
        self._steps += 1
        if self._steps % EVERY:
            return 0
        if self._copied is not None:
            self._copied.synchronize()
        seen = int(self._copy)
        self._copy.copy_(self._broken, non_blocking=True)
        if self._copied is not None:
            self._copied.record(torch.cuda.current_stream(self._broken.device))
        return seen if seen >= EVERY else 0
