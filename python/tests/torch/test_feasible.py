"""Constraints on parameters that ConstrainedAuto satisfies at every point, up to rounding."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch_helpers import data, network

from strust.torch import Auto, ConstrainedAuto, Sphere


def rows(count=200):
    generator = torch.Generator().manual_seed(0)
    basis = torch.linalg.qr(torch.randn(8, 8, generator=generator, dtype=torch.float64)).Q
    scales = torch.tensor([5.0, 4, 0.3, 0.2, 0.1, 0.1, 0.1, 0.1])
    return torch.randn(count, 8, generator=generator, dtype=torch.float64) * scales @ basis.T


def test_the_leading_subspace_is_found_with_columns_orthonormal_to_rounding_in_every_step():
    all_rows = rows()
    w = nn.Parameter(torch.randn(8, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64))
    opt = ConstrainedAuto([w], constraints={w: "stiefel"})

    def loss(batch):
        return 0.5 * (batch - batch @ w @ w.T).square().mean(0).sum()

    for k in range(100):
        batch = all_rows[torch.randperm(200, generator=torch.Generator().manual_seed(k))[:50]]
        opt.step(lambda batch=batch: loss(batch))
        assert (w.T @ w - torch.eye(2)).norm() < 1e-14
    values = torch.linalg.svdvals(all_rows)[2:].square().sum() / (2 * len(all_rows))
    with opt.averaged():
        assert (w.T @ w - torch.eye(2)).norm() < 1e-14
        assert loss(all_rows).item() < 1.01 * values.item()


def test_linear_rows_end_at_the_known_optimum():
    # The point nearest to p with A·w = b, in another metric than that of the steps.
    generator = torch.Generator().manual_seed(2)
    a, p = torch.randn(2, 5, generator=generator, dtype=torch.float64), torch.arange(5, dtype=torch.float64)
    b = torch.tensor([1.0, -2.0], dtype=torch.float64)
    nearest = p - a.T @ torch.linalg.solve(a @ a.T, a @ p - b)
    w = nn.Parameter(torch.zeros(5, dtype=torch.float64))
    opt = ConstrainedAuto([w], constraints={w: lambda w: a @ w - b})
    for _ in range(150):
        opt.step(lambda: (w - p).square().sum())
    with opt.averaged():
        assert (a @ w - b).norm() < 1e-14
        assert (w - nearest).norm() < 1e-4


def test_the_nearest_point_on_a_circle_is_found_from_outside():
    w = nn.Parameter(torch.tensor([5.0, -1.0], dtype=torch.float64))
    opt = ConstrainedAuto([w], constraints={w: Sphere(2.0)})
    for _ in range(150):
        opt.step(lambda: (w - torch.tensor([3.0, 4.0])).square().sum())
    with opt.averaged():
        assert w.tolist() == pytest.approx([1.2, 1.6], abs=1e-4)
        assert w.norm().item() == pytest.approx(2.0, rel=1e-15)


def test_layers_of_a_network_hold_to_rounding_while_it_learns():
    model = network()
    first, last = model[0].weight, model[2].weight
    joint = {(model[0].bias, model[2].bias): lambda a, b: torch.stack([a.sum() - b.sum(), a[0] + b[0] - 0.1])}
    opt = ConstrainedAuto(model.parameters(), constraints=[{first: "stiefel", last: Sphere(3.0)}, joint])
    losses = []
    for k in range(120):
        inputs, labels = data(seed=k)
        losses.append(opt.step(lambda x=inputs, y=labels: F.cross_entropy(model(x), y)).item())
    assert sum(losses[-20:]) < 0.7 * sum(losses[:20])
    with opt.averaged():
        assert (first.T @ first - torch.eye(6)).norm() < 3e-6
        assert abs(last.norm() - 3.0) < 1e-6
        assert abs(model[0].bias.sum() - model[2].bias.sum()) < 1e-6
        assert abs(model[0].bias[0] + model[2].bias[0] - 0.1) < 1e-6


def test_without_constraints_that_act_the_steps_are_those_of_auto():
    def run(kind, **settings):
        w = nn.Parameter(torch.tensor([3.0, -2.0, 1.0]))
        other = nn.Parameter(torch.zeros(1))
        opt = kind([w, other], **({key: value(w, other) for key, value in settings.items()}))

        def closure():
            opt.zero_grad()
            loss = (w * torch.tensor([1.0, 2.0, 3.0])).square().sum() + 0.0 * other.sum()
            if kind is Auto:
                loss.backward()
            return loss

        for _ in range(40):
            opt.step(closure)
        return w.detach()

    plain = run(Auto)
    assert torch.equal(plain, run(ConstrainedAuto, constraints=lambda w, other: {other: lambda o: 2.0 * o}))


def test_a_start_that_cannot_be_moved_onto_the_constraints_is_refused():
    w = nn.Parameter(torch.zeros(3, 3))
    with pytest.raises(ValueError, match="no parameters that satisfy `constraints` were found"):
        ConstrainedAuto([w], constraints={w: "stiefel"}).step(lambda: w.sum())
    v = nn.Parameter(torch.ones(2))
    with pytest.raises(ValueError, match="were found"):
        ConstrainedAuto([v], constraints=[{v: "sphere"}, {v: lambda v: v.sum() - 9.0}]).step(lambda: v.sum())


def test_parameters_that_someone_else_changes_return_to_the_constraints():
    w = nn.Parameter(torch.tensor([0.6, 0.8], dtype=torch.float64))
    opt = ConstrainedAuto([w], constraints={w: "sphere"})

    def closure():
        return (w - torch.tensor([3.0, 4.0])).square().sum()

    for _ in range(3):
        opt.step(closure)
        with torch.no_grad():
            w.add_(0.5)
    opt.step(closure)
    assert w.norm().item() == pytest.approx(1.0, rel=1e-15)


def test_rows_and_constraints_on_parameters_hold_together():
    # The largest mean of w on the unit sphere with w₁ ≤ 0.1, where the batches show w₁ with noise.
    w = nn.Parameter(torch.tensor([1.0, 0.5, 0.1], dtype=torch.float64))
    opt = ConstrainedAuto([w], rows=[(None, 0.1)], constraints={w: "sphere"}, maximize=True)
    for k in range(300):
        noise = 0.05 * torch.randn(4, generator=torch.Generator().manual_seed(k))
        opt.step(lambda noise=noise: ((w + noise[1:]).sum(), (w[0] + noise[0])[None]))
        assert abs(w.norm() - 1.0) < 1e-15
    with opt.averaged():
        assert w.tolist() == pytest.approx([0.1, 0.7036, 0.7036], abs=0.02)
