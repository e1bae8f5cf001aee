"""What each process of the distributed tests runs."""

import json
import os
import pickle
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch_helpers import closure_of, data, network, parameters

from strust.torch import STR, Auto, ConstrainedAuto

STEPS = 25


def part(k: int, rank: int, size: int):
    """The rows of this rank in batch k."""
    inputs, labels = data(seed=k, rows=32, dtype=torch.float64)
    return inputs[rank::size], labels[rank::size]


def train(opt, model, rank: int, size: int, first: int = 0) -> None:
    for k in range(first, STEPS):
        opt.step(closure_of(opt, model, *part(k, rank, size)))


def count_calls() -> list[str]:
    """Every collective from now on, by name."""
    calls: list[str] = []
    for name in ("all_reduce", "broadcast"):
        original = getattr(dist, name)

        def counted(*args, original=original, name=name, **options):
            calls.append(name)
            return original(*args, **options)

        setattr(dist, name, counted)
    return calls


def plain(rank: int, size: int) -> dict:
    """Gradients of every rank, averaged by the optimizer. The ranks start from different parameters."""
    model = network(seed=rank).double()
    opt = Auto(model.parameters())
    calls = count_calls()
    train(opt, model, rank, size)
    return {"parameters": parameters(model).tolist(), "numbers": opt.numbers(), "calls": calls}


def ddp(rank: int, size: int) -> dict:
    """Gradients averaged by DistributedDataParallel."""
    model = network(seed=rank).double()
    wrapped = DistributedDataParallel(model)
    opt = Auto(model.parameters(), averaged_gradients=True)
    calls = count_calls()
    train(opt, wrapped, rank, size)
    return {"parameters": parameters(model).tolist(), "numbers": opt.numbers(), "calls": calls}


def ddp_grad(rank: int, size: int) -> dict:
    """A closure that switches gradients on again, as Lightning's does, and a forgotten `averaged_gradients`."""
    model = network(seed=rank).double()
    wrapped = DistributedDataParallel(model)
    opt = Auto(model.parameters())
    for k in range(STEPS):
        inner = closure_of(opt, wrapped, *part(k, rank, size))
        opt.step(torch.enable_grad()(inner))
    return {"parameters": parameters(model).tolist(), "numbers": opt.numbers(), "calls": []}


def rejects(rank: int, size: int) -> dict:
    """STR on a function with many rejections. Only the last rank sees an increase."""
    w = torch.nn.Parameter(torch.full((2,), 3.0, dtype=torch.float64))
    opt = STR([w], initial_radius=20.0)
    calls = count_calls()
    factor = 1.0 if rank < size - 1 else 40.0
    verdicts, counts = [], []
    for _ in range(STEPS):

        def closure():
            opt.zero_grad()
            loss = 0.25 * factor * w.pow(4).sum()
            loss.backward()
            return loss

        accepted = opt.numbers()["accepted"]
        before = len(calls)
        opt.step(closure)
        verdicts.append(opt.numbers()["accepted"] > accepted)
        counts.append(len(calls) - before)
    return {"parameters": w.tolist(), "verdicts": verdicts, "counts": counts}


def alone(rank: int, size: int) -> dict:
    """Without a process group every rank decides alone."""
    model = network(seed=rank).double()
    opt = Auto(model.parameters(), process_group=None)
    calls = count_calls()
    train(opt, model, rank, size)
    return {"parameters": parameters(model).tolist(), "calls": calls}


def loaded(rank: int, size: int) -> dict:
    """A pickled optimizer without a process group. Only the first rank goes on: it must not wait for the others."""
    model = network(seed=rank).double()
    opt = Auto(model.parameters(), process_group=None)
    train(opt, model, rank, size)
    calls = count_calls()
    model, opt = pickle.loads(pickle.dumps((model, opt)))
    if rank == 0:
        opt.step(closure_of(opt, model, *part(STEPS, rank, size)))
    return {"steps": opt.numbers()["steps"], "calls": calls}


def bounded(rank: int, size: int, whole: bool = False) -> dict:
    """A row that only the first rank knows, and one that all others know. `whole` is one process with all items."""
    w = torch.nn.Parameter(torch.zeros(3, dtype=torch.float64))
    opt = ConstrainedAuto([w], rows=[(1.0, 1.0), (None, 0.5)])
    mine = torch.arange(size) if whole else torch.tensor([rank])
    for k in range(300):
        noise = 0.1 * torch.randn(size, 3, generator=torch.Generator().manual_seed(k), dtype=torch.float64)

        def closure(noise=noise):
            loss = (w - torch.tensor([3.0, 2.0, 2.0]) + noise[mine]).square().sum(1).mean()
            first, others = w[:2].mean() + noise[mine[mine == 0], 2], w[2] + noise[mine[mine > 0], 0]
            return loss, torch.stack([first.mean(), others.mean()])

        opt.step(closure)
    return {"parameters": w.tolist(), "multipliers": opt.multipliers(), "numbers": opt.numbers()}


def dies(rank: int, size: int) -> dict:
    """The last rank is killed in a step. The others must end with a message, and keep their parameters."""
    model = network(seed=rank).double()
    opt = Auto(model.parameters())
    for k in range(STEPS):
        if k == 5 and rank == size - 1:
            os.kill(os.getpid(), 9)
        before = parameters(model)
        try:
            opt.step(closure_of(opt, model, *part(k, rank, size)))
        except RuntimeError as error:
            kept = bool(torch.equal(before, parameters(model)))
            return {"step": k, "message": str(error), "kept": kept}
    return {"step": STEPS, "message": "", "kept": False}


def work(scenario: str, rank: int, size: int, file: Path) -> None:
    """Runs a scenario as one rank and writes its result."""
    torch.set_num_threads(1)
    store = f"file://{file}.store"
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=size, timeout=timedelta(seconds=30))
    start = time.monotonic()
    result = globals()[scenario](rank, size)
    result["seconds"] = time.monotonic() - start
    Path(f"{file}.{rank}").write_text(json.dumps(result))
    if scenario == "dies":
        # The other ranks may have ended before.
        os._exit(3)
    dist.destroy_process_group()
