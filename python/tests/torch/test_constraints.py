"""Constraints: derivatives, and STR-P on problems with known answers."""

import pytest
import torch
from torch import nn
from torch_helpers import data, network, train

from strust.torch import STRP, Constraint, Sphere, Stiefel

CASES = {
    "stiefel, tall": (Stiefel(), [(5, 3)]),
    "stiefel, wide": (Stiefel(), [(2, 4)]),
    "stiefel, convolution": (Stiefel(), [(4, 2, 3, 3)]),
    "sphere": (Sphere(2.0), [(4, 3)]),
    "function of two": (Constraint(lambda a, b: torch.stack([(a * b).sum(), a.sum() ** 3])), [(4,), (4,)]),
}


@pytest.mark.parametrize("name", CASES)
def test_products_with_the_jacobian_are_those_of_torch(name):
    constraint, shapes = CASES[name]
    generator = torch.Generator().manual_seed(0)
    weights = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    along = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    jacobian = torch.autograd.functional.jacobian(constraint.residual, tuple(weights))
    count = len(constraint.residual(*weights))
    parts = [j.reshape(count, -1) for j in jacobian]
    product = sum(part @ v.reshape(-1) for part, v in zip(parts, along, strict=True))
    assert torch.allclose(constraint.product(weights, along), product)
    y = torch.randn(count, generator=generator, dtype=torch.float64)
    for part, found, w in zip(parts, constraint.transposed(weights, y), weights, strict=True):
        assert found.shape == w.shape
        assert torch.allclose(found.reshape(-1), part.T @ y)


def test_the_leading_subspace_is_found_with_orthonormal_columns():
    torch.manual_seed(0)
    basis = torch.linalg.qr(torch.randn(8, 8, dtype=torch.float64)).Q
    rows = torch.randn(200, 8, dtype=torch.float64) * torch.tensor([5.0, 4, 0.3, 0.2, 0.1, 0.1, 0.1, 0.1]) @ basis.T
    w = nn.Parameter(torch.linalg.qr(torch.randn(8, 2, dtype=torch.float64)).Q)
    opt = STRP([w], {w: "stiefel"}, penalty=10.0)
    for k in range(400):
        batch = rows[torch.randperm(200, generator=torch.Generator().manual_seed(k))[:50]]

        def closure(batch=batch):
            opt.zero_grad()
            loss = 0.5 * (batch - batch @ w @ w.T).square().mean(0).sum()
            loss.backward()
            return loss

        opt.step(closure)
    found = w.detach() @ w.detach().T
    assert (found - basis[:, :2] @ basis[:, :2].T).norm() < 0.1
    assert opt.constraint_norm() < 0.05
    assert opt.multipliers().shape == (4,)


def test_a_network_keeps_a_constraint_while_it_learns():
    model = network()
    with torch.no_grad():
        nn.init.orthogonal_(model[0].weight)
    opt = STRP(model.parameters(), [{model[0].weight: "stiefel"}, lambda *all: all[-1].sum()], penalty=20.0)
    losses = train(opt, model, 150)
    assert sum(losses[-20:]) < 0.9 * sum(losses[:20])
    gram = model[0].weight.detach().T @ model[0].weight.detach()
    assert (gram - torch.eye(6)).norm() < 0.1
    assert abs(model[2].bias.detach().sum()) < 0.1
    assert data()[0].shape == (32, 6)
