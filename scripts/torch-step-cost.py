#!/usr/bin/env python3
"""Measures the cost of a step of `strust.torch.Auto` beside `torch.optim.SGD`.

    python scripts/torch-step-cost.py --json step-cost.json
    python scripts/torch-step-cost.py --profile resnet20-128

Models and data are made here. On a CUDA device every model runs in eager mode and
as one CUDA graph, and the script first checks that `Auto` makes the same steps in all its forms and never waits for
the device.

Both methods are timed in turns, several rounds each. A time is the median over the rounds of the mean over a round; the
ratio is that of the two medians.
"""

import argparse
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable

warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import torch  # noqa: E402
from strust.torch import Auto  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

ROUNDS = 7


class Block(nn.Module):
    """Two convolutions with batch-norm, around a shortcut that halves the image by skipping pixels."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.stride, self.more = stride, outputs - inputs

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        if self.more:
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.more))
        return F.relu(x + y)


def resnet20() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    width = 16
    for outputs in (16, 32, 64):
        for block in range(3):
            layers.append(Block(width, outputs, 2 if block == 0 and outputs > 16 else 1))
            width = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    """A character model: 6 layers, 384 wide, 10.7 million parameters."""

    def __init__(
        self, vocabulary: int = 65, length: int = 256, width: int = 384, heads: int = 6, layers: int = 6
    ) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(vocabulary, width), nn.Parameter(0.02 * torch.randn(length, width))
        self.layers = nn.Sequential(*(Attention(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.norm(self.layers(self.token(tokens) + self.place[: tokens.shape[1]])))


class Task:
    """A model, a batch and the loss of the model on it."""

    def __init__(self, name: str, device: torch.device) -> None:
        torch.manual_seed(0)
        kind, *words = name.split("-")
        self.name, self.device = name, device
        self.bf16 = "bf16" in words
        sizes = [int(word) for word in words if word.isdigit()]
        if kind == "resnet20":
            self.model = resnet20().to(device)
            self.inputs = torch.randn(sizes[0], 3, 32, 32, device=device)
            self.labels = torch.randint(10, (sizes[0],), device=device)
        else:
            self.model = Gpt().to(device)
            tokens = torch.randint(65, (sizes[0], 257), device=device)
            self.inputs, self.labels = tokens[:, :-1].contiguous(), tokens[:, 1:].reshape(-1)

    def loss(self) -> Tensor:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            outputs = self.model(self.inputs)
            return F.cross_entropy(outputs.flatten(0, -2).float(), self.labels)


def sgd_step(task: Task) -> Callable[[], None]:
    optimizer = torch.optim.SGD(task.model.parameters(), lr=1e-3, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        task.loss().backward()
        optimizer.step()

    return step


def auto_step(task: Task, **options: bool | None) -> Callable[[], None]:
    optimizer = Auto(task.model.parameters(), **options)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = task.loss()
        loss.backward()
        return loss

    def step() -> None:
        optimizer.step(closure)

    return step


def captured(step: Callable[[], None]) -> Callable[[], None]:
    """The step as one CUDA graph, after some steps that make every buffer."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    def replay(_kept: Callable[[], None] = step) -> None:
        # The graph refers to the memory of the model and of the data, which `step` holds.
        graph.replay()

    return replay


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def milliseconds(step: Callable[[], None], count: int, device: torch.device) -> float:
    synchronize(device)
    start = time.perf_counter()
    for _ in range(count):
        step()
    synchronize(device)
    return 1e3 * (time.perf_counter() - start) / count


def compare(name: str, device: torch.device, graph: bool, seconds: float) -> dict[str, object]:
    """Times SGD and Auto in turns for about so many seconds."""
    steps = {}
    for method, make in (("sgd", sgd_step), ("auto", auto_step)):
        step = make(Task(name, device))
        steps[method] = captured(step) if graph else step
        for _ in range(10 if device.type == "cuda" else 2):
            steps[method]()
    per_step = max(milliseconds(step, 3, device) for step in steps.values())
    count = max(3, int(1e3 * seconds / (2 * ROUNDS * per_step)))
    times: dict[str, list[float]] = {method: [] for method in steps}
    for _ in range(ROUNDS):
        for method, step in steps.items():
            times[method].append(milliseconds(step, count, device))
    sgd, auto = (statistics.median(times[method]) for method in ("sgd", "auto"))
    mode = "graph" if graph else "eager"
    return {"task": name, "mode": mode, "sgd_ms": sgd, "auto_ms": auto, "ratio": auto / sgd, "rounds": times}


def run(step: Callable[[], None], model: nn.Module, count: int) -> Tensor:
    for _ in range(count):
        step()
    return torch.cat([p.detach().double().reshape(-1) for p in model.parameters()])


def check(device: torch.device) -> dict[str, float]:
    """The same steps by kernels, by operations and as a graph; and no step waits for the device."""
    count = 26
    task = Task("gpt-2", device)
    start = run(lambda: None, task.model, 0)
    points = {}
    for form, options in (("kernels", {"fused": True}), ("operations", {"fused": False})):
        task = Task("gpt-2", device)
        points[form] = run(auto_step(task, **options), task.model, count)
        task = Task("gpt-2", device)
        replay = captured(auto_step(task, **options))
        # Capturing does not run the step.
        points[f"{form} as a graph"] = run(replay, task.model, count - 5)
    moved = (points["operations"] - start).norm()
    found = {form: float((point - points["operations"]).norm() / moved) for form, point in points.items()}
    task = Task("resnet20-128", device)
    step = auto_step(task)
    run(step, task.model, 3)
    torch.cuda.set_sync_debug_mode("error")
    try:
        run(step, task.model, 3)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return found


def profile(name: str, device: torch.device) -> None:
    """The kernels and operations that take most time, of each method."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as record

    cuda = device.type == "cuda"
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])]
    for method, make in (("sgd", sgd_step), ("auto", auto_step)):
        step = make(Task(name, device))
        for _ in range(5):
            step()
        synchronize(device)
        with record(activities=activities) as seen:
            for _ in range(10):
                step()
            synchronize(device)
        for key in ("self_cuda_time_total", "self_cpu_time_total") if cuda else ("self_cpu_time_total",):
            print(f"\n{name}, {method}, 10 steps, by {key}")
            print(seen.key_averages().table(sort_by=key, row_limit=25, max_name_column_width=80))


def main() -> int:
    parser = argparse.ArgumentParser(description="The cost of a step of Auto beside SGD.")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seconds", type=float, default=8.0, help="time for each comparison")
    parser.add_argument("--tasks", nargs="*", help="such as resnet20-128 or gpt-64-bf16")
    parser.add_argument("--json", metavar="FILE", help="write the numbers to this file")
    parser.add_argument("--profile", metavar="TASK", help="list the kernels of this task instead")
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    cuda = device.type == "cuda"
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    if arguments.profile:
        profile(arguments.profile, device)
        return 0

    machine = torch.cuda.get_device_name(device) if cuda else f"CPU, {torch.get_num_threads()} threads"
    result: dict[str, object] = {"torch": torch.__version__, "device": machine}
    print(f"torch {torch.__version__}, {machine}", flush=True)
    if cuda:
        result["check"] = found = check(device)
        for form, error in found.items():
            print(f"check: {form} beside operations: relative difference {error:.1e}", flush=True)
            if not error < 0.05:
                print("the forms of Auto do not make the same steps", file=sys.stderr)
                return 1
        print("check: no step waits for the device", flush=True)
    tasks = arguments.tasks or (["resnet20-128", "resnet20-512", "gpt-64", "gpt-64-bf16"] if cuda else ["resnet20-8"])
    rows: list[dict[str, object]] = []
    print(f"\n{'task':<16}{'mode':<8}{'SGD ms':>10}{'Auto ms':>10}{'ratio':>8}", flush=True)
    for name in tasks:
        for graph in (False, True) if cuda else (False,):
            row = compare(name, device, graph, arguments.seconds)
            rows.append(row)
            print(
                f"{name:<16}{row['mode']:<8}{row['sgd_ms']:>10.3f}{row['auto_ms']:>10.3f}{row['ratio']:>8.2f}",
                flush=True,
            )
    result["rows"] = rows
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
