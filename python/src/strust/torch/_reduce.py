"""Means over the processes of data-parallel training."""

from __future__ import annotations

from typing import Any, Literal

import torch.distributed as dist
from torch import Tensor

ProcessGroup = Any
"""A group of `torch.distributed`; its type does not exist where torch was built without it."""

LOST = "lost"
"""The group of an optimizer that was pickled with a group of its own, or by a version that did not keep it."""


def _all_reduce(tensor: Tensor, group: ProcessGroup) -> None:
    dist.all_reduce(tensor, group=group)  # pyright: ignore[reportUnknownMemberType]


class Reduce:
    """Means over a process group, or nothing where there is one process.

    A step makes the same calls in the same order on every rank, whatever the verdict: one for the gradient (none if
    it was averaged already, as by `DistributedDataParallel`), one for the loss of `Auto`, whose first size depends on
    it, and one for the two losses.
    """

    def __init__(
        self, owner: str, group: ProcessGroup | Literal["default"] | None, *, averaged_gradients: bool
    ) -> None:
        if group is not None and not dist.is_available():
            if group != "default":
                raise RuntimeError(f"{owner}: this torch was built without torch.distributed; use `process_group=None`")
            group = None
        if isinstance(group, str) and group not in ("default", LOST):
            raise ValueError(f"{owner}: `process_group` is {group!r}; give a process group, 'default' or None")
        self._owner = owner
        self._chosen = group
        self._averaged = averaged_gradients

    def __deepcopy__(self, _: dict[int, Any]) -> Reduce:
        """A copy has the same group. Nothing here ever changes."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """A group cannot leave its process. An optimizer that is loaded must not join another one."""
        has_own = self._chosen is not None and not isinstance(self._chosen, str)
        return {**self.__dict__, "_chosen": LOST if has_own else self._chosen}

    def _group(self) -> tuple[ProcessGroup, int] | None:
        """The group and its size; None for one process. The default group may start after the optimizer was made."""
        if self._chosen is None or not dist.is_initialized():
            return None
        if self._chosen == LOST:
            raise RuntimeError(
                f"{self._owner}: this optimizer was pickled, which loses its process group; make an optimizer with "
                "`process_group`, and give it this one's state: `load_state_dict(this.state_dict())`"
            )
        group: ProcessGroup = dist.group.WORLD if isinstance(self._chosen, str) else self._chosen
        size = dist.get_world_size(group)
        if size < 1:
            raise RuntimeError(f"{self._owner}: this process does not belong to `process_group`")
        return (group, size) if size > 1 else None

    def start(self, point: Tensor) -> None:
        """The point of the first rank, on every rank."""
        if (found := self._group()) is not None:
            group, _ = found
            self._call("the start", dist.broadcast, point, src=dist.get_global_rank(group, 0), group=group)

    def gradient(self, gradient: Tensor) -> None:
        """The mean gradient."""
        if not self._averaged:
            self._mean("the gradient", gradient)

    def losses(self, losses: Tensor) -> None:
        """The means of the losses: of that at y before the trial, and of both after it."""
        self._mean("the losses", losses)

    def _mean(self, what: str, numbers: Tensor) -> None:
        if (found := self._group()) is not None:
            group, size = found
            # Not every backend has a mean.
            self._call(what, _all_reduce, numbers, group=group)
            numbers.div_(size)

    def _call(self, what: str, collective: Any, tensor: Tensor, **options: Any) -> None:
        try:
            collective(tensor, **options)
        except RuntimeError as error:
            raise RuntimeError(
                f"{self._owner}: rank {dist.get_rank()} could not exchange {what} with the other ranks; one of them "
                "has probably ended or raised an error. See its output. The parameters of this rank are those before "
                "the step"
            ) from error
