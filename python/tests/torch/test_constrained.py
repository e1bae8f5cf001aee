"""ConstrainedAuto: rows that mini-batches know with noise, compared with the optimum on all terms."""

import copy
import io
import json
import math
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from strust.torch import ConstrainedAuto, StratifiedBatches
from strust.torch._multipliers import Multipliers

GOLDEN = json.loads((Path(__file__).parent / "constrained-steps.json").read_text())
PROBLEM = json.loads((Path(__file__).parent / "golden" / "least-squares.json").read_text())


class Credit:
    """Logistic regression where groups differ; a row is the difference of the mean scores of two groups."""

    def __init__(self, shares=(0.5, 0.5), pairs=((0, 1),), bounds=((-0.02, 0.02),), terms=1200) -> None:
        generator = torch.Generator().manual_seed(7)
        self.groups = torch.multinomial(torch.tensor(shares), terms, replacement=True, generator=generator)
        inputs = torch.randn(terms, 4, generator=generator, dtype=torch.float64)
        inputs[:, 0] += self.groups
        inputs[:, 3] = 1.0
        chance = torch.sigmoid(inputs @ torch.tensor([1.0, 0.7, -0.5, 0.0], dtype=torch.float64))
        self.inputs, self.labels = inputs, (torch.rand(terms, generator=generator) < chance).double()
        self.pairs, self.bounds = pairs, bounds

    def evaluate(self, w, batch=slice(None)):
        """The loss and the rows; NaN for a row with an empty group."""
        products, groups = self.inputs[batch] @ w, self.groups[batch]
        loss = F.binary_cross_entropy_with_logits(products, self.labels[batch]) + 5e-3 * w.square().sum()
        scores = torch.sigmoid(products)
        return loss, torch.stack([scores[groups == a].mean() - scores[groups == b].mean() for a, b in self.pairs])

    def violation(self, w) -> float:
        rows = self.evaluate(w)[1].tolist()
        return max(max(low - c, c - high, 0.0) for c, (low, high) in zip(rows, self.bounds, strict=True))

    def train(self, start=0.0, epochs=12, seed=0, **settings):
        w = nn.Parameter(torch.full((4,), start, dtype=torch.float64))
        opt = ConstrainedAuto([w], rows=self.bounds, **settings)
        batches = StratifiedBatches(self.groups, 60, seed=seed)
        for _ in range(epochs):
            for batch in batches:
                opt.step(lambda batch=batch: self.evaluate(w, torch.tensor(batch)))
        return w, opt

    def optimum(self) -> tuple[float, torch.Tensor]:
        """By the same method where nothing is random: every batch is all terms."""
        scipy = pytest.importorskip("scipy.optimize")

        def fun(x, which=None, sign=1.0, bound=0.0):
            w = torch.tensor(x, requires_grad=True)
            loss, rows = self.evaluate(w)
            value = sign * ((loss if which is None else rows[which]) - bound)
            value.backward()
            return value.item(), w.grad.numpy()

        constraints = []
        for i, (low, high) in enumerate(self.bounds):
            for sign, bound in ((1.0, low), (-1.0, high))[: 1 if low == high else 2]:
                constraints.append(
                    {
                        "type": "eq" if low == high else "ineq",
                        "fun": lambda x, i=i, s=sign, b=bound: fun(x, i, s, b)[0],
                        "jac": lambda x, i=i, s=sign, b=bound: fun(x, i, s, b)[1],
                    }
                )
        found = scipy.minimize(fun, [0.0] * 4, jac=True, constraints=constraints, method="SLSQP", tol=1e-12)
        assert found.success
        return found.fun, torch.tensor(found.x)


PROBLEMS = {
    "two bounds": Credit(),
    "equality": Credit(bounds=((0.0, 0.0),)),
    "three groups": Credit(shares=(0.4, 0.3, 0.3), pairs=((0, 1), (1, 2), (0, 2)), bounds=((-0.03, 0.03),) * 3),
    "a group of 4 %": Credit(shares=(0.96, 0.04), bounds=((-0.05, 0.05),)),
}


@pytest.fixture(scope="module", params=PROBLEMS)
def solved(request):
    """A problem, its optimum without rows, and that with them."""
    problem = PROBLEMS[request.param]
    free = copy.copy(problem)
    free.bounds = ()
    return problem, free.optimum(), problem.optimum()


@pytest.mark.parametrize("start", [0.0, 3.0], ids=["feasible", "infeasible"])
def test_the_answer_is_near_the_optimum_on_all_terms(solved, start):
    problem, (least, unfair), (best, _) = solved
    starts = problem.violation(torch.full((4,), start, dtype=torch.float64))
    assert starts > 0.01 if start else starts == 0.0
    above, violations = [], []
    for seed in range(3):
        w, opt = problem.train(start, seed=seed)
        with opt.averaged():
            above.append(abs(problem.evaluate(w)[0].item() - best))
            violations.append(problem.violation(w))
    # A fifth of what the rows cost and of what they remove, for the median of the seeds.
    assert sorted(violations)[1] < 0.2 * problem.violation(unfair), violations
    assert sorted(above)[1] < 0.2 * (best - least) + 2e-3, above


def test_the_multiplier_is_the_slope_of_the_smallest_loss():
    problem = PROBLEMS["equality"]
    moved = Credit(bounds=((0.01, 0.01),))
    slope = (moved.optimum()[0] - problem.optimum()[0]) / 0.01
    _, opt = problem.train()
    assert opt.multipliers()[0] == pytest.approx(-slope, rel=0.25)


def test_a_row_between_its_bounds_changes_no_bit():
    problem = Credit(bounds=((-0.9, 0.9),))
    w, opt = problem.train(epochs=3)
    free = ConstrainedAuto([nn.Parameter(torch.zeros(4, dtype=torch.float64))], rows=[(None, 5.0)])
    (plain,) = free.param_groups[0]["params"]
    for batch in _batches(problem, 3):
        free.step(lambda batch=batch: problem.evaluate(plain, torch.tensor(batch)))
    assert opt.multipliers() == [0.0]
    assert torch.equal(w, plain)


def _batches(problem, epochs):
    batches = StratifiedBatches(problem.groups, 60)
    return [batch for _ in range(epochs) for batch in batches]


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda run: run["what"])
def test_the_trajectory_is_that_of_the_rust_library(golden):
    rows, targets, start = (torch.tensor(PROBLEM[n], dtype=torch.float64) for n in ("rows", "targets", "start"))
    w = nn.Parameter(start * golden["scale"])
    opt = ConstrainedAuto([w], rows=[(row["lower"], row["upper"]) for row in golden["rows"]])

    def means(scores, batch):
        groups = [
            [(p, [k for k, i in enumerate(batch) if i in group]) for p, group in row["parts"]] for row in golden["rows"]
        ]
        return torch.stack([sum(p * scores[at].mean() for p, at in parts) for parts in groups])

    verdicts, points, multipliers, before = "", [], [], 0.0
    for k in range(len(golden["verdicts"])):
        batch = PROBLEM["batches"][k % len(PROBLEM["batches"])]

        def closure(batch=batch):
            products = rows[batch] @ w
            found = (products - targets[batch]).square().mean() / 2, means(products.tanh(), batch)
            return (*found, means(products.detach().sign(), batch)) if golden["rate"] else found

        opt.step(closure)
        accepted = opt.numbers()["accepted"]
        verdicts += "A" if accepted > before else "R"
        before = accepted
        if (k + 1) % 10 == 0:
            points.append(opt.state[w]["x"].clone())
            multipliers.append(opt.multipliers())
    assert verdicts == golden["verdicts"]
    assert torch.stack(points).numpy() == pytest.approx(
        torch.tensor(golden["points"], dtype=torch.float64).numpy(), rel=1e-9, abs=1e-11
    )
    assert multipliers == [pytest.approx(wanted, rel=1e-8, abs=1e-10) for wanted in golden["multipliers"]]


@pytest.mark.parametrize("of", ["loss", "rows", "w"])
def test_the_units_of_loss_rows_and_parameters_do_not_matter(of):
    problem = PROBLEMS["two bounds"]
    units = {"loss": 1.0, "rows": 1.0, "w": 1.0}

    def run():
        w = nn.Parameter(torch.full((4,), 0.5 * units["w"], dtype=torch.float64))
        opt = ConstrainedAuto([w], rows=[(-0.02 * units["rows"], 0.02 * units["rows"])])
        for batch in _batches(problem, 3):

            def closure(batch=batch):
                loss, rows = problem.evaluate(w / units["w"], torch.tensor(batch))
                return units["loss"] * loss, units["rows"] * rows

            opt.step(closure)
        return w.detach() / units["w"], opt.multipliers()[0] * units["rows"] / units["loss"]

    w, multiplier = run()
    units[of] = 2.0**9
    other, scaled = run()
    assert torch.equal(w, other)
    assert multiplier == scaled != 0.0


def test_a_resumed_run_continues_bit_for_bit():
    problem = PROBLEMS["three groups"]
    batches = [torch.tensor(batch) for batch in _batches(problem, 3)]

    def start():
        w = nn.Parameter(torch.full((4,), 2.0, dtype=torch.float64))
        return w, ConstrainedAuto([w], rows=problem.bounds, constraints={w: lambda w: w[:1] - w[1:2]})

    w, opt = start()
    for k, batch in enumerate(batches):
        if k == 25:
            file = io.BytesIO()
            torch.save(opt.state_dict(), file)
            file.seek(0)
            copied = copy.deepcopy((w, opt))
        opt.step(lambda batch=batch: problem.evaluate(w, batch))
    again, resumed = start()
    resumed.load_state_dict(torch.load(file))
    for one, optimizer in ((again, resumed), copied):
        for batch in batches[25:]:
            optimizer.step(lambda batch=batch, one=one: problem.evaluate(one, batch))
        assert torch.equal(w, one)
        assert opt.multipliers() == optimizer.multipliers()


def test_the_numbers_of_a_saved_state_are_all_that_the_rows_know():
    rows = Multipliers([(-1.0, 1.0), (0.0, 0.0)])
    numbers = [float(k) for k in range(Multipliers.length(2))]
    rows.load(numbers)
    assert rows.numbers() == numbers


def test_batches_without_a_group_are_no_error_and_a_group_without_batches_is():
    problem = PROBLEMS["two bounds"]
    w = nn.Parameter(torch.full((4,), 2.0, dtype=torch.float64))
    opt = ConstrainedAuto([w], rows=[(-0.02, 0.02), (0.0, None)])
    women = torch.arange(len(problem.groups))[problem.groups == 0]
    for k, batch in enumerate(_batches(problem, 4)):
        chosen = women[:40] if k % 3 else torch.tensor(batch)

        def closure(batch=chosen):
            loss, rows = problem.evaluate(w, batch)
            return loss, torch.cat([rows, torch.full((1,), math.nan)])

        assert math.isfinite(opt.step(closure).item())
    assert opt.multipliers()[0] != 0.0
    assert opt.multipliers()[1] == 0.0
    with pytest.raises(RuntimeError, match="row 1 was NaN in every step"), opt.averaged():
        pass


def test_a_rate_without_a_gradient_moves_the_multiplier():
    torch.manual_seed(0)
    scores = torch.randn(4000, dtype=torch.float64)
    w = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    opt = ConstrainedAuto([w], rows=[(None, 0.2)])
    for k in range(600):
        z = scores[torch.randint(4000, (100,), generator=torch.Generator().manual_seed(k))]

        def closure(z=z):
            moved = z + w
            return (w - 1.0).square().sum(), torch.sigmoid(4.0 * moved).mean()[None], (moved > 0).double().mean()[None]

        opt.step(closure)
    with opt.averaged():
        assert (scores + w > 0).double().mean().item() == pytest.approx(0.2, abs=0.02)


def test_maximizing_the_negative_loss_makes_the_same_steps():
    problem = PROBLEMS["two bounds"]
    w, opt = problem.train(2.0, epochs=2)
    other = nn.Parameter(torch.full((4,), 2.0, dtype=torch.float64))
    negative = ConstrainedAuto([other], rows=problem.bounds, maximize=True)
    for batch in _batches(problem, 2):

        def closure(batch=batch):
            loss, rows = problem.evaluate(other, torch.tensor(batch))
            return -loss, rows

        negative.step(closure)
    assert torch.equal(w, other)
    assert opt.multipliers() == negative.multipliers() != [0.0]


def test_a_row_far_from_its_bounds_costs_no_backward_pass():
    counts = []

    class Count(torch.autograd.Function):
        @staticmethod
        def forward(context, value):
            return value.clone()

        @staticmethod
        def backward(context, slope):
            counts.append(1)
            return slope

    w = nn.Parameter(torch.ones(3))
    opt = ConstrainedAuto([w], rows=[(None, 1.0), (None, 100.0)])
    for k in range(40):
        noise = 0.01 * torch.randn(2, generator=torch.Generator().manual_seed(k))
        if k == 30:
            counts.clear()
        opt.step(lambda noise=noise: ((w - 2.0).square().sum(), torch.stack([w.sum(), Count.apply(w[0])]) + noise))
    # The rows are in one tensor, so its backward passes reach both; a slope is measured for the first row alone.
    assert opt.multipliers()[0] > 0.0 == opt.multipliers()[1]
    assert sum(counts) == 10


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda w: w.sum(), "returned 1 values; return"),
        (lambda w: (w.sum(), w[:1], w[:1], w[:1]), "returned 4 values"),
        (lambda w: (w.sum(), w), "`rows` has 1 bounds"),
        (lambda w: (w.sum(), w.sum()), "shape"),
        (lambda w: (w.sum(), [w[0]]), "type list"),
        (lambda w: (w.sum().detach(), w[:1]), "the loss has no gradient"),
        (lambda w: (w.sum(), w[:1].detach()), "the row has no gradient"),
        (lambda w: (torch.ones(1, requires_grad=True).sum(), w[:1]), "does not depend on the parameters"),
    ],
)
def test_a_wrong_closure_is_refused_and_nothing_changes(returned, message):
    w = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
    opt = ConstrainedAuto([w], rows=[(0.0, 0.0)])
    with pytest.raises((ValueError, RuntimeError), match=message):
        opt.step(lambda: returned(w))
    assert w.tolist() == [1.0, 2.0, 3.0]
    opt.step(lambda: (w.square().sum(), w[:1]))


def test_backward_in_the_closure_is_refused():
    w = nn.Parameter(torch.tensor([1.0, 2.0]))
    opt = ConstrainedAuto([w], rows=[(0.0, 0.0)])

    def closure():
        loss = w.square().sum()
        loss.backward()
        return loss, w.sum()[None]

    with pytest.raises(RuntimeError, match="must not call `backward`"):
        opt.step(closure)
    with pytest.raises(TypeError, match="step\\(closure\\)"):
        opt.evaluate(lambda: w.sum())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "there is no constraint"),
        ({"rows": [(1.0, 0.0)]}, "lower at most upper"),
        ({"rows": [(None, None)]}, "give a finite one"),
        ({"rows": [(math.nan, 1.0)]}, "lower at most upper"),
        ({"rows": [0.5]}, "give a pair"),
        ({"rows": [("a", 1.0)]}, "give a number"),
        ({"constraints": "sphere"}, "ConstrainedAuto: 'sphere' needs a parameter"),
        ({"rows": [(0, 0)], "gamma": -1.0}, "`gamma` is -1.0"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ConstrainedAuto([nn.Parameter(torch.ones(2))], **settings)
