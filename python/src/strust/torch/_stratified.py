"""Batches with members of every group."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import chain
from random import Random

import torch
from torch import Tensor
from torch.utils.data import Sampler

from ._operations import numbers, split


class StratifiedBatches(Sampler[list[int]]):
    """Batches that have members of every group in proportion, for the `batch_sampler` of a `DataLoader`.

    A group with the share p of all items has ⌊pB⌋ or ⌈pB⌉ members in each batch of B items. In one pass no item comes
    twice, on no rank, and every item comes once if all batches fill up; otherwise the rest is left out, another one in
    each pass. Batch k is a function of (seed, k): a training that has made k steps resumes with `start=k`.

    Parameters
    ----------
    groups
        The group of each item: any labels, or a tensor with one number per item.
    batch_size
        The number B of items in a batch, on each rank.
    seed
        Chooses the order.
    start
        The first batch, counted over all passes. The first pass is then what is left of it.
    rank, world_size
        This process and the number of processes in data-parallel training. All other arguments are the same on each.

    Examples
    --------
    >>> from strust.torch import StratifiedBatches
    >>> groups = ["a"] * 6 + ["b"] * 3
    >>> batches = StratifiedBatches(groups, 3)
    >>> [sorted(groups[i] for i in batch) for batch in batches]
    [['a', 'a', 'b'], ['a', 'a', 'b'], ['a', 'a', 'b']]
    """

    def __init__(
        self,
        groups: Sequence[Hashable] | Tensor,
        batch_size: int,
        *,
        seed: int = 0,
        start: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        labels: list[Hashable] = [*numbers(groups)] if isinstance(groups, Tensor) else list(groups)
        counts = {"batch_size": batch_size, "seed": seed, "start": start, "rank": rank, "world_size": world_size}
        for name, value in counts.items():
            least = int(name in ("batch_size", "world_size"))
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"StratifiedBatches: `{name}` is a {type(value).__name__}; give an integer")
            if value < least:
                raise ValueError(f"StratifiedBatches: `{name}` is {value}; it must be at least {least}")
        if rank >= world_size:
            raise ValueError(f"StratifiedBatches: `rank` is {rank}, but `world_size` is {world_size}; ranks begin at 0")
        if batch_size * world_size > len(labels):
            raise ValueError(
                f"StratifiedBatches: `batch_size` is {batch_size}, on {world_size} ranks, but there are {len(labels)} "
                "items; use at most those"
            )
        members: dict[Hashable, list[int]] = {}
        for item, label in enumerate(labels):
            members.setdefault(label, []).append(item)
        self._members = [torch.tensor(items) for items in members.values()]
        self._items, self._size, self._seed = len(labels), batch_size * world_size, seed
        self._next = start
        # The members of a group lie one after the other in the batch of all ranks, so each rank gets its part of them.
        self._own = slice(rank, None, world_size)

    def __len__(self) -> int:
        """The batches of a pass."""
        return self._items // self._size

    def __iter__(self) -> Iterator[list[int]]:
        """The batches of the next pass, or what is left of this one."""
        number, first = divmod(self._next, len(self))
        for batch in self._pass(number)[first:]:
            self._next += 1
            yield batch[self._own]

    def _pass(self, number: int) -> list[list[int]]:
        """All batches of a pass."""
        generator = torch.Generator().manual_seed(Random(f"{self._seed}, {number}").getrandbits(32))
        n, size, count = self._items, self._size, len(self)
        # Of the q = B·(members)/n places of a group, a batch always has ⌊q⌋. Laid one after the other, the remainders
        # fill a whole number of places. In each batch a comb of that many teeth, one place apart, gives each place to
        # one group. The teeth of all batches lie evenly, so that each group gets its share over the pass.
        comb = (torch.arange(count) * n).div(count, rounding_mode="floor")[torch.randperm(count, generator=generator)]
        parts: list[list[list[int]]] = []
        end = 0
        for items in self._members:
            whole, rest = divmod(size * len(items), n)
            begin, end = end, end + rest
            places = (
                whole
                + (end - 1 - comb).div(n, rounding_mode="floor")
                - (begin - 1 - comb).div(n, rounding_mode="floor")
            )
            order = items[torch.randperm(len(items), generator=generator)]
            parts.append(
                [part.tolist() for part in split(order[: int(places.sum())], [int(p) for p in numbers(places)])]
            )
        return [list(chain.from_iterable(batch)) for batch in zip(*parts, strict=True)]
