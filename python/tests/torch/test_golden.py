"""Every run of the Rust library, repeated. `crates/strust/tests/library/python_golden.rs` writes the files."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from strust.torch import STR, STRP, Auto  # noqa: E402

FILES = sorted((Path(__file__).parent / "golden").glob("*.json"))


def losses(problem: str, rows, targets) -> Callable:
    def of(x, batch):
        product, b = rows[batch] @ x, targets[batch]
        if problem == "logistic":
            return torch.logaddexp(torch.zeros_like(b), -b * product).mean()
        if problem == "quartic":
            return (0.25 * product**4 - b * product).mean()
        return 0.5 * (product - b).square().mean()

    return of


def optimizer(method: str, config: dict, x, **options):
    if method == "auto":
        return Auto([x], **config, **options)
    if method == "str":
        return STR([x], **config, **options)
    return STRP([x], {x: "sphere"}, **config, **options)


CASES = [
    pytest.param(golden, run, id=f"{golden['problem']}-{run['method']}-{number}")
    for golden in (json.loads(file.read_text()) for file in FILES)
    for number, run in enumerate(golden["runs"])
]


def repeat(golden: dict, run: dict, sign: float = 1.0):
    """The verdicts and every tenth answer. With sign −1 the negative loss is maximized."""
    data = {name: torch.tensor(golden[name], dtype=torch.float64) for name in ("rows", "targets", "start")}
    f = losses(golden["problem"], data["rows"], data["targets"])
    x = torch.nn.Parameter(data["start"] * run["scale"])
    opt = optimizer(run["method"], run["config"], x, maximize=sign < 0)
    verdicts, points, before = "", [], 0.0
    for k in range(len(run["verdicts"])):
        batch = torch.tensor(golden["batches"][k % len(golden["batches"])])

        def closure(batch=batch):
            opt.zero_grad()
            loss = sign * f(x, batch)
            loss.backward()
            return loss

        opt.step(closure)
        accepted = opt.numbers()["accepted"]
        verdicts += "A" if accepted > before else "R"
        before = accepted
        if (k + 1) % 10 == 0:
            points.append(opt.state[x]["x"].clone())
    return verdicts, points


def test_there_is_a_golden_file_for_each_problem():
    assert [file.stem for file in FILES] == ["least-squares", "logistic", "quartic"]


def check_trajectory(golden, run):
    """Repeats a golden run and compares its verdicts and points."""
    verdicts, points = repeat(golden, run)
    assert verdicts == run["verdicts"]
    start = torch.tensor(golden["start"], dtype=torch.float64) * run["scale"]
    for point, wanted in zip(points, run["points"], strict=True):
        wanted = torch.tensor(wanted, dtype=torch.float64)
        assert (point - wanted).norm() <= 1e-11 * (wanted - start).norm()


@pytest.mark.parametrize(("golden", "run"), CASES)
def test_the_trajectory_is_that_of_the_rust_library(golden, run):
    check_trajectory(golden, run)


@pytest.mark.parametrize(("golden", "run"), CASES[:1] + CASES[-1:])
def test_maximizing_the_negative_loss_makes_the_same_steps(golden, run):
    verdicts, points = repeat(golden, run, sign=-1.0)
    assert verdicts == repeat(golden, run)[0] == run["verdicts"]
    assert torch.equal(points[-1], repeat(golden, run)[1][-1])


@pytest.mark.parametrize("method", ["auto", "str"])
def test_the_native_library_ends_at_the_same_point(method):
    """Not a golden file but the library itself, where it is installed."""
    strust = pytest.importorskip("strust")
    if not hasattr(strust, "minimize"):
        pytest.skip("the native module is not installed")
    golden = json.loads(FILES[0].read_text())
    rows, targets, start = (torch.tensor(golden[name], dtype=torch.float64) for name in ("rows", "targets", "start"))
    f = losses(golden["problem"], rows, targets)
    batches = []

    def fun(x, indices):
        point = torch.tensor(x, dtype=torch.float64, requires_grad=True)
        batches.append(torch.tensor([int(i) for i in indices]))
        value = f(point, batches[-1])
        value.backward()
        return value.item(), point.grad.numpy()

    found = strust.minimize(fun, start.numpy(), n_terms=len(rows), batch=5, epochs=10, method=method, seed=1)
    # Each batch is evaluated at the point and at the trial; measurements use all terms.
    steps = [batch for batch in batches if len(batch) == 5]
    distinct = [batch for k, batch in enumerate(steps) if k == 0 or not torch.equal(batch, steps[k - 1])]
    assert len(distinct) == 40
    x = torch.nn.Parameter(start.clone())
    opt = optimizer(method, {}, x)
    for batch in distinct:

        def closure(batch=batch):
            opt.zero_grad()
            loss = f(x, batch)
            loss.backward()
            return loss

        opt.step(closure)
    assert (opt.state[x]["x"] - torch.tensor(found.x)).norm() < 1e-11
