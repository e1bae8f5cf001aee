#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = [
#     "numpy==2.4.6",
#     "torch==2.15.0",
#     "prodigyopt==1.1.2",
#     "dog-optimizer==1.0.3",
#     "schedulefree==1.4.1",
# ]
# ///
"""Runs public implementations of the baselines on two small problems and writes every iterate.

    uv run scripts/golden_baselines.py

Writes crates/strust/tests/golden/{least-squares,logistic}.json. The test `golden` of crates/strust repeats the runs on
the same mini-batches and compares all iterates. All numbers are double precision.

SGD, Adam and AdamW are those of torch; Prodigy, DoG (with its averaging) and the schedule-free methods are the packages
of their authors. PoNoS has no package: `ponos` below is our own NumPy version of its listing, with the constants of the
authors' repository, so its golden run checks the Rust code against a second version by us and not against theirs.
"""

import json
from importlib.metadata import version
from pathlib import Path

import dog
import numpy as np
import prodigyopt
import schedulefree
import torch

TERMS, DIMENSION, BATCH, STEPS = 20, 4, 4, 50
FOLDER = Path(__file__).resolve().parent.parent / "crates" / "strust" / "tests" / "golden"


class LeastSquares:
    """½(aᵀx − b)², with noise: no x fits all terms."""

    name = "least-squares"

    def __init__(self, rng):
        self.rows = rng.standard_normal((TERMS, DIMENSION)) / 2
        self.targets = self.rows @ rng.standard_normal(DIMENSION) + 0.1 * rng.standard_normal(TERMS)

    @staticmethod
    def loss(rows, targets, x):
        return 0.5 * ((rows @ x - targets) ** 2).mean()


class Logistic:
    """log(1 + exp(−b·aᵀx)) with labels b = ±1, some of them wrong."""

    name = "logistic"

    def __init__(self, rng):
        self.rows = rng.standard_normal((TERMS, DIMENSION))
        self.targets = np.sign(self.rows @ rng.standard_normal(DIMENSION) + rng.standard_normal(TERMS))

    @staticmethod
    def loss(rows, targets, x):
        # Exact where `softplus` would round to a line.
        return torch.logaddexp(torch.zeros_like(targets), -targets * (rows @ x)).mean()


def batches(rng):
    """Passes over a fresh permutation."""
    order = np.concatenate([rng.permutation(TERMS) for _ in range(STEPS * BATCH // TERMS)])
    return order.reshape(STEPS, BATCH)


class Data:
    def __init__(self, problem, seed):
        rng = np.random.default_rng(seed)
        self.problem = problem(rng)
        self.start = rng.standard_normal(DIMENSION)
        self.batches = batches(rng)

    def value_and_gradient(self, x, k):
        """The loss of the k-th batch as a tensor, after its gradient was added to x.grad."""
        rows, targets = (torch.from_numpy(a[self.batches[k]]) for a in (self.problem.rows, self.problem.targets))
        loss = self.problem.loss(rows, targets, x)
        if x.requires_grad:
            loss.backward()
        return loss


class Model(torch.nn.Module):
    def __init__(self, start):
        super().__init__()
        self.x = torch.nn.Parameter(torch.tensor(start))


def trajectory(data, make, cosine=False, average=None):
    """The answer after every step of a torch optimizer."""
    model = Model(data.start)
    optimizer = make(model.parameters())
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS) if cosine else None
    averager = dog.PolynomialDecayAverager(model, gamma=average) if average is not None else None
    switches = hasattr(optimizer, "eval")  # the schedule-free methods switch between y and the answer
    points = []
    for k in range(STEPS):
        if switches:
            optimizer.train()
        optimizer.zero_grad()
        data.value_and_gradient(model.x, k)
        optimizer.step()
        if schedule:
            schedule.step()
        if switches:
            optimizer.eval()
        if averager:
            averager.step()
        answer = averager.averaged_model if averager else model
        points.append(answer.x.detach().tolist())
    return points


def ponos(data, decrease=0.5, backtrack=0.5, polyak=0.1, memory=1.0, max_step=10.0, min_step=1e-6, trials=100):
    x, mean, weight, shortened, points = data.start.copy(), 0.0, 0.0, 0, []
    for k in range(STEPS):
        at = torch.tensor(x, requires_grad=True)
        value = data.value_and_gradient(at, k).item()
        g = at.grad.numpy()
        squared = g @ g
        mean = (memory * weight * mean + value) / (memory * weight + 1)
        weight = memory * weight + 1
        eta = min(max(value / (polyak * squared + 1e-8) * backtrack**shortened, min_step), max_step)
        for made in range(trials):
            trial = x - eta * g
            if data.value_and_gradient(torch.tensor(trial), k).item() <= max(mean, value) - decrease * eta * squared:
                break
            eta *= backtrack
        else:
            raise RuntimeError("this problem is not meant to exhaust a line search")
        x, shortened = trial, max(shortened + made - 1, 0)
        points.append(x.tolist())
    return points


def runs(data):
    """(method, its configuration in strust, the schedule, the power of averaging, the answers)."""
    sgd, adam, adamw = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW

    def run(method, config, make, cosine=False, average=None):
        schedule = {"cosine": {"steps": STEPS}} if cosine else "constant"
        points = trajectory(data, make, cosine, average)
        return dict(method=method, config=config, schedule=schedule, average=average, points=points)

    for cosine in (False, True):
        momentum = dict(learning_rate=0.1, momentum=0.9, weight_decay=0.01)
        yield run("sgd", momentum, lambda p: sgd(p, lr=0.1, momentum=0.9, weight_decay=0.01), cosine)
        yield run("adam", dict(learning_rate=0.05), lambda p: adam(p, lr=0.05), cosine)
        decay = dict(learning_rate=0.05, weight_decay=0.1)
        yield run("adam", decay, lambda p: adamw(p, lr=0.05, weight_decay=0.1), cosine)
        yield run("prodigy", {}, prodigyopt.Prodigy, cosine)
        yield run("dog", {}, dog.DoG, cosine)
    yield run("sgd", dict(learning_rate=0.1), lambda p: sgd(p, lr=0.1), average=3.0)

    settings = dict(learning_rate=0.5, weight_decay=0.1, initial_distance=1e-3, coefficient=2.0, beta1=0.8, beta2=0.99)
    make = lambda p: prodigyopt.Prodigy(p, lr=0.5, weight_decay=0.1, d0=1e-3, d_coef=2.0, betas=(0.8, 0.99))
    yield run("prodigy", settings, make)
    settings = dict(learning_rate=0.5, weight_decay=0.1, initial_distance=1e-3)
    yield run("dog", settings, lambda p: dog.DoG(p, lr=0.5, weight_decay=0.1, reps_rel=1e-3), average=8.0)

    yield run("schedule-free-sgd", {}, schedulefree.SGDScheduleFree)
    settings = dict(learning_rate=0.5, momentum=0.8, weight_decay=0.1, warmup_steps=10, power=1.0)
    make = lambda p: schedulefree.SGDScheduleFree(p, lr=0.5, momentum=0.8, weight_decay=0.1, warmup_steps=10, r=1.0)
    yield run("schedule-free-sgd", settings, make)
    yield run("schedule-free-adamw", {}, schedulefree.AdamWScheduleFree)
    settings = dict(learning_rate=0.05, beta1=0.8, beta2=0.99, weight_decay=0.1, warmup_steps=10, power=1.0)
    make = lambda p: schedulefree.AdamWScheduleFree(
        p, lr=0.05, betas=(0.8, 0.99), weight_decay=0.1, warmup_steps=10, r=1.0
    )
    yield run("schedule-free-adamw", settings, make)

    rest = dict(schedule="constant", average=None)
    yield dict(method="ponos", config={}, **rest, points=ponos(data))
    settings = dict(decrease=0.1, backtrack=0.7, polyak=0.05, memory=0.5)
    yield dict(method="ponos", config=settings, **rest, points=ponos(data, **settings))


def main():
    packages = ["numpy", "torch", "prodigyopt", "dog-optimizer", "schedulefree"]
    for seed, problem in enumerate((LeastSquares, Logistic)):
        data = Data(problem, seed)
        golden = dict(
            made_by="scripts/golden_baselines.py",
            versions={name: version(name) for name in packages},
            problem=problem.name,
            rows=data.problem.rows.tolist(),
            targets=data.problem.targets.tolist(),
            start=data.start.tolist(),
            batches=data.batches.tolist(),
        )
        # One run a line.
        head = ",\n".join(f'"{key}": {json.dumps(value)}' for key, value in golden.items())
        lines = ",\n".join(json.dumps(run) for run in runs(data))
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{problem.name}.json").write_text(f'{{\n{head},\n"runs": [\n{lines}\n]\n}}\n')


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    main()
