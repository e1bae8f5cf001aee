#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = ["torch", "prodigyopt==1.1.2", "dog-optimizer==1.0.3", "schedulefree==1.4.1"]
# ///
"""Trains three small networks with `strust.torch.Auto` and with other methods that need little or no tuning.

    pip install prodigyopt==1.1.2 dog-optimizer==1.0.3 schedulefree==1.4.1
    python scripts/torch-baselines.py --json baselines.json

All data are made here, from fixed seeds. No method is tuned: each has the defaults of its package, and what its authors
recommend beside them (Prodigy: lr = 1 with a cosine; DoG and LDoG: lr = 1 with polynomial averaging). Answers that are
averages are measured as averages. Of these methods only `Auto` makes a second forward pass in a step, so it has two
rows: as many steps as the others, and as many passes, which are 3/4 of the steps.
"""

import argparse
import json
import math
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from strust.torch import Auto  # noqa: E402


class Task:
    """A model, training batches and test data, all a function of the seed."""

    def __init__(self, seed: int, steps: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.steps = steps
        torch.manual_seed(seed)
        self.model = self.network()
        self.make_data()

    name = ""
    batch = 64

    def network(self) -> nn.Module:
        raise NotImplementedError

    def make_data(self) -> None:
        """Sets train and test: pairs of inputs and labels."""
        raise NotImplementedError

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Passes over fresh permutations."""
        inputs, labels = self.train
        while True:
            order = torch.randperm(len(inputs), generator=self.generator)
            for rows in order.split(self.batch):
                yield inputs[rows], labels[rows]

    def loss(self, inputs: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(self.model(inputs).flatten(0, -2), labels.flatten())

    @torch.no_grad()
    def measure(self) -> dict[str, float]:
        self.model.eval()
        inputs, labels = self.test
        correct = (self.model(inputs).argmax(-1) == labels).double().mean()
        train = self.loss(*self.train)
        self.model.train()
        return {"loss": float(train), "accuracy": 100.0 * float(correct)}


def glyphs(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Noisy, shifted images of ten fixed patterns, 12 × 12: digits without a download."""
    patterns = (torch.randn(10, 1, 4, 4, generator=torch.Generator().manual_seed(5)) > 0.2).float()
    patterns = F.pad(F.interpolate(patterns, scale_factor=2), (2, 2, 2, 2))
    labels = torch.randint(10, (count,), generator=generator)
    shifts = torch.randint(-2, 3, (count, 2), generator=generator)
    images = [
        patterns[label].roll((int(down), int(right)), (1, 2))
        for label, (down, right) in zip(labels, shifts, strict=True)
    ]
    return torch.stack(images) + 0.5 * torch.randn(count, 1, 12, 12, generator=generator), labels


class Perceptron(Task):
    name = "perceptron"

    def network(self) -> nn.Module:
        return nn.Sequential(
            nn.Flatten(), nn.Linear(144, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)
        )

    def make_data(self) -> None:
        self.train, self.test = glyphs(8000, self.generator), glyphs(2000, self.generator)


class Convnet(Perceptron):
    name = "convnet, batch-norm"

    def network(self) -> nn.Module:
        def block(inputs: int, outputs: int) -> list[nn.Module]:
            return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)]

        return nn.Sequential(*block(1, 12), *block(12, 24), nn.Flatten(), nn.Linear(216, 10))


class Characters(Task):
    """The next symbol of a random language: each symbol depends on the two before it."""

    name = "characters, GRU"
    batch = 32

    def network(self) -> nn.Module:
        class Recurrent(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.embed, self.rnn, self.head = (
                    nn.Embedding(16, 24),
                    nn.GRU(24, 48, batch_first=True),
                    nn.Linear(48, 16),
                )

            def forward(self, symbols: Tensor) -> Tensor:
                return self.head(self.rnn(self.embed(symbols))[0])

        return Recurrent()

    def make_data(self) -> None:
        table = (2.5 * torch.randn(16, 16, 16, generator=torch.Generator().manual_seed(9))).softmax(-1)
        text = torch.zeros(1200, 26, dtype=torch.int64)
        for k in range(2, 26):
            text[:, k] = torch.multinomial(table[text[:, k - 2], text[:, k - 1]], 1, generator=self.generator)[:, 0]
        pairs = text[:, 1:-1], text[:, 2:]
        self.train, self.test = tuple(p[:900] for p in pairs), tuple(p[900:] for p in pairs)


Step = Callable[[Tensor, Tensor], None]


def plain(task: Task, optimizer: torch.optim.Optimizer, after: Callable[[], None] = lambda: None) -> Step:
    def step(inputs: Tensor, labels: Tensor) -> None:
        optimizer.zero_grad()
        task.loss(inputs, labels).backward()
        optimizer.step()
        after()

    return step


@contextmanager
def as_is(task: Task) -> Iterator[None]:
    yield


def new_statistics(task: Task) -> None:
    """Batch-norm for an averaged point, from the same number of batches for every method."""
    batches = task.batches()
    torch.optim.swa_utils.update_bn([next(batches)[0] for _ in range(20)], task.model)


def auto(task: Task):
    optimizer = Auto(task.model.parameters())

    def step(inputs: Tensor, labels: Tensor) -> None:
        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = task.loss(inputs, labels)
            loss.backward()
            return loss

        optimizer.step(closure)

    @contextmanager
    def answer(task: Task) -> Iterator[None]:
        batches = task.batches()
        with optimizer.averaged([next(batches) for _ in range(20)], task.model):
            yield

    return step, answer


def adam(task: Task):
    return plain(task, torch.optim.Adam(task.model.parameters())), as_is


def prodigy(task: Task):
    from prodigyopt import Prodigy

    optimizer = Prodigy(task.model.parameters(), lr=1.0)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, task.steps)
    return plain(task, optimizer, cosine.step), as_is


def dog(task: Task, layerwise: bool = False):
    from dog import DoG, LDoG, PolynomialDecayAverager

    optimizer = (LDoG if layerwise else DoG)(task.model.parameters(), lr=1.0)
    averager = PolynomialDecayAverager(task.model)

    @contextmanager
    def answer(task: Task) -> Iterator[None]:
        own, task.model = task.model, averager.averaged_model
        new_statistics(task)
        yield
        task.model = own

    return plain(task, optimizer, averager.step), answer


def ldog(task: Task):
    return dog(task, layerwise=True)


def schedule_free(task: Task, kind: str = "AdamWScheduleFree", **settings: float):
    import schedulefree

    optimizer = getattr(schedulefree, kind)(task.model.parameters(), **settings)
    optimizer.train()

    @contextmanager
    def answer(task: Task) -> Iterator[None]:
        optimizer.eval()
        new_statistics(task)
        yield
        optimizer.train()

    return plain(task, optimizer), answer


def schedule_free_sgd(task: Task):
    return schedule_free(task, "SGDScheduleFree", lr=1.0)


METHODS = {
    "Auto": auto,
    "Adam": adam,
    "Prodigy, cosine": prodigy,
    "DoG": dog,
    "LDoG": ldog,
    "schedule-free AdamW": schedule_free,
    "schedule-free SGD": schedule_free_sgd,
}


def run(kind: type[Task], method: str, steps: int, seed: int) -> dict[str, float]:
    task = kind(seed, steps)
    step, answer = METHODS[method](task)
    start = time.perf_counter()
    for _, (inputs, labels) in zip(range(steps), task.batches(), strict=False):
        step(inputs, labels)
    seconds = time.perf_counter() - start
    with answer(task):
        return {**task.measure(), "seconds": seconds}


def main() -> int:
    parser = argparse.ArgumentParser(description="Auto beside other methods without tuning, on three small networks.")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", metavar="FILE", help="write the numbers to this file")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    print(f"{'task':<22}{'method':<28}{'training loss':>14}{'test accuracy':>18}{'s':>8}", flush=True)
    for kind in (Perceptron, Convnet, Characters):
        for method in [*METHODS, "Auto, equal passes"]:
            steps = math.ceil(0.75 * arguments.steps) if method.endswith("passes") else arguments.steps
            found = [
                run(kind, method.partition(",")[0] if "passes" in method else method, steps, s)
                for s in range(arguments.seeds)
            ]
            loss, accuracy, seconds = ([f[key] for f in found] for key in ("loss", "accuracy", "seconds"))
            spread = statistics.stdev(accuracy) if len(accuracy) > 1 else 0.0
            row = {
                "task": kind.name,
                "method": method,
                "steps": steps,
                "loss": loss,
                "accuracy": accuracy,
                "seconds": seconds,
            }
            rows.append(row)
            print(
                f"{kind.name:<22}{method:<28}{statistics.mean(loss):>14.4g}"
                f"{statistics.mean(accuracy):>11.1f} ± {spread:<4.1f}{statistics.mean(seconds):>8.1f}",
                flush=True,
            )
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"torch": torch.__version__, "rows": rows}, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
