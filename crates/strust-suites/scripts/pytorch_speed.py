"""Images per second of PyTorch on ResNet-20 at batch 128 with SGD: the reference of `strust bench cifar10`.

Usage: pytorch_speed.py [DEVICE] [STEPS]. Prints one JSON object; times are medians.
"""

import json
import statistics
import sys
import time

import torch
from torch.nn import functional as F

sys.dont_write_bytecode = True
from golden_resnet20 import ResNet20


def main():
    device = torch.device(sys.argv[1] if len(sys.argv) > 1 else "cpu")
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    torch.manual_seed(0)
    net = ResNet20().to(device).train()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    images, labels = torch.randn(128, 3, 32, 32, device=device), torch.arange(128, device=device) % 10
    times = []
    for _ in range(steps + 3):
        began = time.perf_counter()
        optimizer.zero_grad()
        loss = F.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        loss.item()
        times.append(1e3 * (time.perf_counter() - began))
    ms = statistics.median(times[3:])
    print(
        json.dumps(
            {
                "version": torch.__version__,
                "device": str(device),
                "threads": torch.get_num_threads(),
                "step_ms": ms,
                "images_per_second": 128e3 / ms,
            }
        )
    )


if __name__ == "__main__":
    main()
