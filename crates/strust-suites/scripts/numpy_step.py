"""Measures one step of STR-P on subspace fitting in NumPy: the reference of `strust bench subspace`.

Usage: numpy_step.py D K N BATCH SECONDS [C|F]. Uses one thread. Prints microseconds per step. The last argument is the
layout of the arrays: C (row by row) is NumPy's default; F (column by column) is faster here.
"""

import os
import sys
import time

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np


def main():
    d, k, n, batch = map(int, sys.argv[1:5])
    seconds = float(sys.argv[5])
    order = sys.argv[6] if len(sys.argv) > 6 else "C"
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((d, k)))[0]
    data = basis @ rng.standard_normal((k, n))
    data = np.array(data - data.mean(axis=1, keepdims=True), order=order)
    w = np.array(np.linalg.qr(rng.standard_normal((d, k)))[0], order=order)
    identity, penalty, radius = np.eye(k), 1.0, 0.2
    batches = [rng.permutation(n)[:batch] for _ in range(64)]

    def step(w, radius, indices):
        x = data[:, indices]
        # phi(W) and its gradient
        a = w.T @ x
        r = x - w @ a
        c = w.T @ w - identity
        value = np.vdot(r, r) / batch + 0.5 * penalty * np.vdot(c, c)
        g = (-2.0 / batch) * (r @ a.T + x @ (r.T @ w)) + (2.0 * penalty) * (w @ c)
        # the model and its Cauchy step
        jg = w.T @ g
        jg = jg + jg.T
        squared = np.vdot(g, g)
        curvature = squared + penalty * np.vdot(jg, jg)
        size = min(squared / curvature, radius / np.sqrt(squared))
        predicted = size * squared - 0.5 * size * size * curvature
        # the same batch at the trial point
        trial = w - size * g
        r = x - trial @ (trial.T @ x)
        c = trial.T @ trial - identity
        actual = value - (np.vdot(r, r) / batch + 0.5 * penalty * np.vdot(c, c))
        ratio = (actual + 1e-30) / (predicted + 1e-30)
        if ratio > 0.05:
            w = trial
        if ratio < 0.1:
            radius /= 2.0
        elif ratio > 0.9:
            radius = min(1.5 * radius, 5.0)
        return w, radius

    best, begin = float("inf"), time.perf_counter()
    start = w
    while time.perf_counter() - begin < seconds:
        w, radius = start, 0.2
        t = time.perf_counter()
        for indices in batches:
            w, radius = step(w, radius, indices)
        best = min(best, (time.perf_counter() - t) / len(batches))
    print(best * 1e6)


if __name__ == "__main__":
    main()
