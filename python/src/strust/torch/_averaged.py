"""A model at the averaged point, with statistics of batch-norm that belong to it."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import Module

from ._trial import Generators


@contextmanager
def averaged_model(models: Sequence[Module], batches: Iterable[Any] | None, device: torch.device) -> Generator[None]:
    """The block, with statistics made from the batches. All buffers are restored at the end."""
    if batches is None:
        yield
        return
    if len(models) != 1:
        raise ValueError(
            f"averaged: new statistics need one model, but {len(models)} are known; pass it, as in "
            "`opt.averaged(batches, model)`"
        )
    (model,) = models
    saved = [(b, b.detach().clone()) for b in model.buffers()]
    try:
        _renew(model, batches, device)
        yield
    finally:
        with torch.no_grad():
            for b, old in saved:
                b.copy_(old)


@torch.no_grad()
def _renew(model: Module, batches: Iterable[Any], device: torch.device) -> None:
    """The statistics of batch-norm ← their means over the batches."""
    norms = [m for m in model.modules() if getattr(m, "track_running_stats", False)]
    if not norms:
        return
    modes = [(m, m.training) for m in model.modules()]
    momenta = [(m, m.momentum) for m in norms]
    generators = Generators(device)
    count = 0
    try:
        model.train()
        for m in norms:
            m.reset_running_stats()  # type: ignore[operator]
            # None is the plain mean over all batches.
            m.momentum = None  # type: ignore[assignment]
        for batch in batches:
            _pass(model, batch, device)
            count += 1
    finally:
        for m, training in modes:
            m.training = training
        for m, momentum in momenta:
            m.momentum = momentum
        generators.restore()
    if count == 0:
        raise ValueError("averaged: there is no batch to make statistics from; pass a few training batches, or None")


def _pass(model: Module, batch: Any, device: torch.device) -> None:
    if isinstance(batch, Mapping):
        named: dict[str, Any] = dict(cast(Mapping[str, Any], batch))
        model(**{key: _move(value, device) for key, value in named.items()})
    else:
        first: Any = cast(Sequence[Any], batch)[0] if isinstance(batch, (tuple, list)) else batch
        model(_move(first, device))


def _move(value: Any, device: torch.device) -> Any:
    return value.to(device) if isinstance(value, Tensor) else value
