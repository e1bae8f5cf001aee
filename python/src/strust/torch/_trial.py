"""A second evaluation of the closure that leaves no trace: no gradients, the same random numbers, the same buffers."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch.nn.parallel import DistributedDataParallel

from ._operations import copy_all


class _Silence:
    """Makes `torch.autograd.backward` do nothing in the threads that ask for it, and only while they do.

    `Tensor.backward` calls `torch.autograd.backward`, so the usual closure runs unchanged. A `TorchFunctionMode`
    could also catch the call, but it costs about a microsecond for every operation of the model.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: set[int] = set()
        self._original: Callable[..., Any] = torch.autograd.backward

    def _backward(self, *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() in self._threads:
            return None
        return self._original(*args, **kwargs)

    @contextmanager
    def __call__(self) -> Generator[None]:
        thread = threading.get_ident()
        with self._lock:
            if not self._threads:
                self._original = torch.autograd.backward
                torch.autograd.backward = self._backward
            self._threads.add(thread)
        try:
            yield
        finally:
            with self._lock:
                self._threads.discard(thread)
                if not self._threads:
                    torch.autograd.backward = self._original


_no_backward = _Silence()


class Generators:
    """The states of torch's generators: of the CPU, of the device of the parameters and of the current device."""

    def __init__(self, device: torch.device) -> None:
        self._cpu = torch.get_rng_state()
        self._others: list[tuple[Any, tuple[torch.device, ...], Tensor]] = []
        # A generator cannot be read while a CUDA graph is captured.
        if device.type == "cpu" or capturing(device):
            return
        module = torch.get_device_module(device)
        devices: set[tuple[torch.device, ...]] = {(device,)}
        if device.type == "cuda":
            devices.add((torch.device("cuda", module.current_device()),))
        elif device.type == "mps":
            # There is one such device, and its functions do not take it.
            devices = {()}
        self._others = [(module, one, module.get_rng_state(*one)) for one in devices]

    def restore(self) -> None:
        """Continues from these states."""
        torch.set_rng_state(self._cpu)
        for module, device, state in self._others:
            module.set_rng_state(state, *device)


def capturing(device: torch.device) -> bool:
    """Whether a CUDA graph records the operations on this device."""
    return device.type == "cuda" and torch.cuda.is_current_stream_capturing()


class Buffers:
    """The buffers of a model that an evaluation changes, such as the running statistics of batch-norm.

    Models that are not given are found in the first evaluation.
    """

    def __init__(self, models: Sequence[Module]) -> None:
        self.models = list(models)
        self._given = bool(models)
        self._moving: list[list[Tensor]] | None = None
        self._saved: list[list[Tensor]] = []
        self._before: dict[int, tuple[Tensor, Tensor]] = {}

    def forget(self) -> None:
        """Looks again in the next evaluation: a model that is moved or converted has new buffers."""
        self._moving, self._saved = None, []

    @contextmanager
    def watch(self, parameters: Sequence[Tensor]) -> Generator[None]:
        """Finds out, in the first evaluation, which buffers move. This waits for the device once."""
        if self._moving is not None:
            yield
            return
        self._before = {}
        if self._given:
            for model in self.models:
                self._remember(model)
            yield
        else:
            found: list[Module] = []
            with self._find(parameters, found):
                yield
            self.models = found
        always = {
            id(b) for model in self.models for m in model.modules() if _has_statistics(m) for b in m.buffers(False)
        }
        self._set_moving([b for b, old in self._before.values() if id(b) in always or not _equal(b, old)])
        self._before = {}

    @contextmanager
    def _find(self, parameters: Sequence[Tensor], models: list[Module]) -> Generator[None]:
        """The models are the outermost modules that are called and have these parameters."""
        missing = {id(p) for p in parameters}
        inside: set[int] = set()

        def found(module: Module, _: Any) -> None:
            own = {id(p) for p in module.parameters()} & missing if id(module) not in inside else set[int]()
            if not own:
                return
            inside.update(id(m) for m in module.modules())
            missing.difference_update(own)
            if not missing:
                # The calls inside must not see a hook: `torch.compile` would trace it.
                handle.remove()
            models.append(module)
            self._remember(module)

        handle = torch.nn.modules.module.register_module_forward_pre_hook(found)
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*global hooks on modules")
                yield
        finally:
            handle.remove()

    def _remember(self, model: Module) -> None:
        self._before |= {id(b): (b, b.detach().clone()) for b in model.buffers()}

    def _set_moving(self, buffers: Sequence[Tensor]) -> None:
        kinds: dict[tuple[torch.device, torch.dtype], list[Tensor]] = {}
        for b in buffers:
            kinds.setdefault((b.device, b.dtype), []).append(b)
        self._moving = list(kinds.values())
        self._saved = [[b.detach().clone() for b in same] for same in self._moving]

    def save(self) -> None:
        """Remembers the moving buffers."""
        for to, of in zip(self._saved, self._moving or [], strict=True):
            copy_all(to, of)

    def restore(self) -> None:
        """Sets the moving buffers to what `save` saw."""
        for to, of in zip(self._moving or [], self._saved, strict=True):
            copy_all(to, of)


def _has_statistics(module: Module) -> bool:
    """Batch-norm that is frozen in the first step may move later."""
    return bool(getattr(module, "track_running_stats", False))


def _equal(a: Tensor, b: Tensor) -> bool:
    """Also where both are NaN."""
    return torch.equal(a, b) or (a.is_floating_point() and bool(torch.isclose(a, b, 0, 0, equal_nan=True).all()))


@contextmanager
def no_trace(parameters: Sequence[Tensor], buffers: Buffers, *, grad: bool) -> Generator[None]:
    """The trial: gradients and buffers are afterwards as if the block had not run, and `backward` does nothing in it.

    Parameters
    ----------
    parameters
        Their `grad` is set aside, so `zero_grad` in the block does not change it.
    buffers
        Saved and restored.
    grad
        Whether the block records operations, for derivatives inside the loss.
    """
    gradients = [p.grad for p in parameters]
    buffers.save()
    for p in parameters:
        p.grad = None
    try:
        with ExitStack() as stack:
            stack.enter_context(_no_backward())
            # A closure may switch gradients on again. A model that waits for `backward` would refuse the next step.
            for model in buffers.models:
                if isinstance(model, DistributedDataParallel):
                    stack.enter_context(model.no_sync())
            stack.enter_context(torch.set_grad_enabled(grad))
            yield
    finally:
        for p, g in zip(parameters, gradients, strict=True):
            p.grad = g
        buffers.restore()
