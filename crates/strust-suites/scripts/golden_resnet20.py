"""Writes tests/golden/resnet20.json: loss, gradients and running statistics of ResNet-20 in PyTorch.

Weights and images come from a formula that tests/resnet.rs uses too. The file has a few numbers of each gradient: its norm,
its products with two waves, and its first components, all in double precision.

    eval "$(scripts/torch-env cuda)"
    "$STRUST_TORCH_PYTHON" crates/strust-suites/scripts/golden_resnet20.py
"""

import json
import pathlib

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.padding = (outputs - inputs) // 2
        stride = 1 if inputs == outputs else 2
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.padding:
            x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.padding, self.padding))
        return F.relu(y + x)


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = nn.Sequential(Block(16, 16), Block(16, 16), Block(16, 16))
        self.layer2 = nn.Sequential(Block(16, 32), Block(32, 32), Block(32, 32))
        self.layer3 = nn.Sequential(Block(32, 64), Block(64, 64), Block(64, 64))
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(F.relu(self.bn1(self.conv1(x))))))
        return self.linear(x.mean((2, 3)))


def waves(shape, phase):
    index = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    return (torch.sin(0.7 * index + phase) * torch.cos(0.013 * index + 2 * phase)).reshape(shape)


def weight(name, shape, phase):
    if len(shape) > 1:
        fan_in = torch.Size(shape).numel() / shape[0]
        return waves(shape, phase) * (8 / fan_in) ** 0.5
    return waves(shape, phase) * 0.1 + (1.0 if name.endswith("weight") else 0.0)


def digest(tensor):
    flat = tensor.detach().reshape(-1)
    return {
        "norm": flat.norm().item(),
        "waves": [flat.dot(waves(flat.shape, phase)).item() for phase in (0.5, 1.5)],
        "first": flat[:4].tolist(),
    }


def main():
    net = ResNet20().double().train()
    with torch.no_grad():
        for i, (name, parameter) in enumerate(sorted(net.named_parameters())):
            parameter.copy_(weight(name, parameter.shape, float(i)))
    images = waves((8, 3, 32, 32), 0.3)
    labels = torch.arange(8) * 7 % 10
    loss = F.cross_entropy(net(images), labels)
    loss.backward()
    golden = {
        "torch": torch.__version__.split("+")[0],
        "parameters": sum(p.numel() for p in net.parameters()),
        "loss": loss.item(),
        "gradients": {name: digest(p.grad) for name, p in sorted(net.named_parameters())},
        "buffers": {name: digest(b) for name, b in sorted(net.named_buffers()) if b.is_floating_point()},
    }
    path = pathlib.Path(__file__).parents[2] / "strust-torch" / "tests" / "golden" / "resnet20.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(golden, indent=1) + "\n")
    print(f"{path.name}: loss {golden['loss']}, {golden['parameters']} parameters")


if __name__ == "__main__":
    main()
