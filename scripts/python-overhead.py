"""The cost of a step of `auto` from Python: a function of NumPy arrays, beside its evaluations alone, and beside Rust.

    python scripts/python-overhead.py

Each line is the median over several rounds, in microseconds per step. A step has one value with a gradient and one value.
The time of a step is the difference of a long and a short run: a run also measures its start and its end on all terms.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

import strust

STEPS = 200
ROUNDS = 9


def timed(action) -> float:
    """Return the microseconds of a step."""
    times = []
    for steps in (STEPS, 2 * STEPS):
        began = time.perf_counter()
        action(steps)
        times.append(time.perf_counter() - began)
    return (times[1] - times[0]) / STEPS * 1e6


def least_squares(d: int, n: int, batch: int):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(n, d))
    b = a @ rng.normal(size=d)

    def value(x, i):
        r = a[i] @ x - b[i]
        return 0.5 * (r @ r) / len(i)

    def gradient(x, i):
        rows = a[i]
        return (rows @ x - b[i]) @ rows / len(i)

    batches = [rng.permutation(n)[:batch] for _ in range(2 * STEPS)]
    x = np.zeros(d)

    def alone(steps):
        for i in batches[:steps]:
            value(x, i), gradient(x, i), value(x, i)

    def python(steps):
        strust.minimize(value, x, jac=gradient, n_terms=n, batch=batch, max_steps=steps)

    problem = strust.problems.LeastSquares(a, b)

    def rust(steps):
        strust.minimize(problem, x, batch=batch, max_steps=steps)

    return alone, python, rust


def main() -> None:
    print(f"{'d':>8} {'batch':>6} {'evaluations':>12} {'minimize':>9} {'ratio':>6} {'Problem':>8}")
    for d, n, batch in [(10, 1000, 32), (100, 1000, 32), (1000, 1000, 32), (10_000, 1000, 32)]:
        ways = least_squares(d, n, batch)
        times = [[timed(way) for way in ways] for _ in range(ROUNDS)]
        alone, python, rust = (statistics.median(column) for column in zip(*times))
        print(f"{d:>8} {batch:>6} {alone:>12.1f} {python:>9.1f} {python / alone:>6.2f} {rust:>8.1f}")


if __name__ == "__main__":
    main()
