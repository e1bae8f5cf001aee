"""Models and closures that the tests share."""

import torch
from torch import nn
from torch.nn import functional as F


def data(seed: int = 0, rows: int = 32, dtype: torch.dtype = torch.float32):
    """Inputs and labels of three classes."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(rows, 6, generator=generator, dtype=dtype)
    return inputs, (inputs[:, :3] + 0.3 * torch.randn(rows, 3, generator=generator, dtype=dtype)).argmax(1)


def network(*, dropout: float = 0.0, norm: bool = False, seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    layers: list[nn.Module] = [nn.Linear(6, 16)]
    if norm:
        layers.append(nn.BatchNorm1d(16))
    layers.append(nn.ReLU())
    if dropout:
        layers.append(nn.Dropout(dropout))
    return nn.Sequential(*layers, nn.Linear(16, 3))


def closure_of(opt, model, inputs, labels):
    def closure():
        opt.zero_grad()
        loss = F.cross_entropy(model(inputs), labels)
        loss.backward()
        return loss

    return closure


def train(opt, model, steps: int, *, first: int = 0) -> list[float]:
    """Steps on batches that depend on their number alone."""
    losses = []
    for k in range(first, first + steps):
        losses.append(opt.step(closure_of(opt, model, *data(seed=k))).item())
    return losses


def parameters(model: nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().double().reshape(-1) for p in model.parameters()])
