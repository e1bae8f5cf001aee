#!/usr/bin/env python3
"""Compares the losses of steps as a CUDA graph with those of two runs operation by operation.

    strust run cifar10-launch --data DIR --device cuda
    scripts/compare_launches.py runs/cifar10-launch [CSV]

Prints for every method the largest relative difference of the mini-batch loss up to a step. Writes all losses to CSV.
"""

import json
import sys
from pathlib import Path


def losses(run, problem, method):
    file = run / "runs" / f"{problem}.{method}.s0" / "records.jsonl"
    lines = map(json.loads, file.read_text().splitlines())
    return [line["value"] for line in lines if line["type"] == "step"]


def main():
    run = Path(sys.argv[1])
    problems, methods = ["graph", "eager", "eager-again"], ["str", "sgd", "adam"]
    curves = {(p, m): losses(run, p, m) for m in methods for p in problems}
    steps = len(curves["eager", "str"])
    at = [step for step in (5, 10, 20, 50, 100) if step < steps] + [steps]
    print("| loss of | against | " + " | ".join(f"{step} steps" for step in at) + " |")
    print("|---|---|" + "---|" * len(at))
    for method in methods:
        for other in ("graph", "eager-again"):
            pairs = list(zip(curves["eager", method], curves[other, method]))
            worst = [max(abs(a - b) / abs(a) for a, b in pairs[:step]) for step in at]
            print(f"| {method} | {other} | " + " | ".join(f"{d:.1e}" for d in worst) + " |")
    if len(sys.argv) > 2:
        names = [f"{m} {p}" for p, m in curves]
        rows = [",".join(["step"] + names)]
        rows += [",".join([str(k)] + [f"{c[k]:.9g}" for c in curves.values()]) for k in range(steps)]
        Path(sys.argv[2]).write_text("\n".join(rows) + "\n")


main()
