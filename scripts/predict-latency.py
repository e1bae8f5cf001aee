#!/usr/bin/env python3
"""Measures `strust predict` for one row, as a script calls it: the whole program, from its start to its end.

    scripts/predict-latency.py [--strust target/release/strust] [--runs 100]

It fits three models of made-up rows (20 numbers and a column with 50 categories) and prints the median and the
90th percentile of the milliseconds of a call.
"""

import argparse
import pathlib
import random
import statistics
import subprocess
import tempfile
import time

MODELS = {"logistic": ["--target", "y"], "mlp": ["--target", "y", "--model", "mlp"], "linear": ["--target", "x0"]}


def rows(count: int) -> str:
    """The text of a table."""
    draw = random.Random(0)
    lines = [",".join([f"x{j}" for j in range(20)] + ["town", "y"])]
    for _ in range(count):
        x = [draw.gauss(0, 1) for _ in range(20)]
        y = "yes" if sum(x[:5]) + draw.gauss(0, 1) > 0 else "no"
        lines.append(",".join([f"{v:.6f}" for v in x] + [f"t{draw.randrange(50)}", y]))
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strust", default="target/release/strust", help="the program")
    parser.add_argument("--runs", type=int, default=100, help="calls for each model")
    args = parser.parse_args()
    program = str(pathlib.Path(args.strust).resolve())
    with tempfile.TemporaryDirectory() as folder:
        run = lambda *arguments: subprocess.run([program, *arguments], cwd=folder, check=True, capture_output=True)
        pathlib.Path(folder, "all.csv").write_text(rows(5000))
        pathlib.Path(folder, "one.csv").write_text(rows(1))
        for name, arguments in MODELS.items():
            run("fit", "all.csv", *arguments, "--save", f"{name}.json")
            times = []
            for _ in range(args.runs):
                began = time.perf_counter()
                run("predict", f"{name}.json", "one.csv")
                times.append(1000 * (time.perf_counter() - began))
            high = statistics.quantiles(times, n=10)[-1]
            print(f"{name:<10} median {statistics.median(times):6.1f} ms   90 % below {high:6.1f} ms")


if __name__ == "__main__":
    main()
