"""A network that solves the heat equation, with its initial and boundary values as limits or as a weighted loss.

u_t = ν·u_xx for −1 ≤ x ≤ 1 and 0 ≤ t ≤ 1 with ν = 0.1, u = sin πx + ½·sin 2πx at t = 0, and u = 0 at x = ±1.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from time import process_time

os.environ.setdefault("OMP_NUM_THREADS", "1")  # two processes, with a thread each
try:
    import matplotlib.pyplot
    import numpy as np
    import pandas as pd
    import strust
    from scipy.optimize import NonlinearConstraint, least_squares, minimize
    from scipy.stats.qmc import Sobol
    from strust.constraints import at_most, from_functions
except ModuleNotFoundError as error:
    sys.exit(f"{error.name} is missing: pip install numpy pandas scipy matplotlib, and ./python of a clone for strust")

NU, UNITS, WEIGHTS, WITHIN = 0.1, 30, (1, 10, 100, 1000, 10000), (0.0, 1e-4, 1e-3)
LM = "Levenberg–Marquardt"
COLUMNS = ("error", "at rows", "between", "residual", "passes", "seconds")


def exact(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """The solution."""
    return sum(a * np.exp(-NU * (k * np.pi) ** 2 * t) * np.sin(k * np.pi * x) for a, k in ((1, 1), (0.5, 2)))


def start(seed: int) -> np.ndarray:
    """Draw the weights w. Each unit tanh(a·x + b·t + c) changes its sign within the domain."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(0, 2, UNITS), rng.normal(0, 1, UNITS)
    c = -a * rng.uniform(-1, 1, UNITS) - b * rng.uniform(0, 1, UNITS)
    return np.r_[a, b, c, rng.normal(size=UNITS) / np.sqrt(UNITS), 0]


def network(w: np.ndarray, x: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, Callable]:
    """u, u_x, u_t and u_xx, and a function that returns the Jacobian of p·u + q·u_x + r·u_t + s·u_xx in w."""
    a, b, c, v = w[:-1].reshape(4, -1)
    x, t = x[:, None], t[:, None]
    f = np.tanh(a * x + b * t + c)
    f1 = 1 - f * f
    f2, f3 = -2 * f * f1, f1 * (6 * f * f - 2)

    def jacobian(*factors):
        p, q, r, s = (np.broadcast_to(k, len(x))[:, None] for k in factors)
        first, second = q * a + r * b, s * a * a
        inside = v * (p * f1 + first * f2 + second * f3)  # the derivative in c
        by_a, by_b = x * inside + v * (q * f1 + 2 * s * a * f2), t * inside + v * r * f1
        return np.hstack([by_a, by_b, inside, p * f + first * f1 + second * f2, p])

    return np.stack([f @ v + w[-1], f1 @ (v * a), f1 @ (v * b), f2 @ (v * a * a)]), jacobian


def plain(w: np.ndarray, x: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, Callable]:
    """The network as u: u, the residual of the equation, and its Jacobian."""
    (u, _, ut, uxx), jacobian = network(w, x, t)
    return u, ut - NU * uxx, lambda: jacobian(0, 0, 1, -NU)


def formula(w: np.ndarray, x: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, Callable]:
    """The same for u = (u at t = 0) + t·(1 − x²)·network, which has the right values for every w."""
    (n, nx, nt, nxx), jacobian = network(w, x, t)
    m, mx, mt, mxx = t * (1 - x * x), -2 * t * x, 1 - x * x, -2 * t
    bend = -(np.pi**2) * (np.sin(np.pi * x) + 2 * np.sin(2 * np.pi * x))
    residual = mt * n + m * nt - NU * (bend + mxx * n + 2 * mx * nx + m * nxx)
    return exact(x, 0 * t) + m * n, residual, lambda: jacobian(mt - NU * mxx, -2 * NU * mx, m, -NU * m)


def edge(initial: int, sides: int) -> tuple[np.ndarray, np.ndarray]:
    """Points x, t of the initial line and of both sides, denser at the corners."""
    x, t = np.cos(np.pi * np.arange(initial) / (initial - 1)), (np.arange(1, sides + 1) / sides) ** 2
    return np.r_[x, np.ones(sides), -np.ones(sides)], np.r_[0 * x, t, t]


class Task:
    """The equation at 256 points, the initial and boundary values at 31, and what u is."""

    def __init__(self, u: Callable = plain):
        self.u, self.passes, self.last = u, 0, (np.empty(0), (np.empty(0),) * 2)
        self.inside, self.edge = Sobol(2, seed=0).random(256).T * [[2], [1]] - [[1], [0]], edge(15, 8)

    def equation(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The residuals of the equation and their Jacobian: a pass."""
        if not np.array_equal(w, self.last[0]):
            self.passes += 1
            _, residual, jacobian = self.u(w, *self.inside)
            self.last = w.copy(), (residual, jacobian())
        return self.last[1]

    def fun(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """The mean of their squares, and its gradient."""
        r, jacobian = self.equation(w)
        return np.mean(r**2), 2 * r @ jacobian / len(r)

    def miss(self, w: np.ndarray, points: tuple[np.ndarray, np.ndarray] | None = None) -> np.ndarray:
        """How far u is from its initial and boundary values, which are those of the solution."""
        x, t = points or self.edge
        return self.u(w, x, t)[0] - exact(x, 0 * t) * (t == 0)

    def slopes(self, w: np.ndarray) -> np.ndarray:
        """The Jacobian of `miss`."""
        return network(w, *self.edge)[1](1, 0, 0, 0)


def limits(task: Task, w: np.ndarray, steps: int, within: float) -> np.ndarray:
    """The smallest residual with initial and boundary values that are right, or right within a tolerance: strust."""
    rows = from_functions(task.miss, jac=task.slopes)
    if within:
        above = from_functions(lambda w: task.miss(w) - within, jac=task.slopes)
        below = from_functions(lambda w: -task.miss(w) - within, jac=lambda w: -task.slopes(w))
        rows = [at_most(above), at_most(below)]
    return strust.minimize(task.fun, w, constraints=rows, max_steps=steps).x


def slsqp(task: Task, w: np.ndarray, steps: int, within: float) -> np.ndarray:
    """The same by SciPy."""
    rows = NonlinearConstraint(task.miss, -within, within, jac=task.slopes)
    options = {"ftol": 1e-12, "maxiter": steps}
    return minimize(task.fun, w, method="SLSQP", jac=True, constraints=rows, options=options).x


def bfgs(task: Task, w: np.ndarray, steps: int, weight: float) -> np.ndarray:
    """The smallest mean square of the residuals plus a weight times that of what the edge misses."""

    def loss(w):
        (value, slope), c = task.fun(w), task.miss(w)
        return value + weight * np.mean(c**2), slope + 2 * weight * c @ task.slopes(w) / len(c)

    return minimize(loss, w, method="BFGS", jac=True, options={"gtol": 1e-9, "maxiter": steps}).x


def marquardt(task: Task, w: np.ndarray, steps: int, weight: float) -> np.ndarray:
    """The same by Levenberg and Marquardt's method, which uses that the loss is a sum of squares."""
    k = np.sqrt(weight * len(task.inside[0]) / len(task.edge[0]))

    def both(part, edge):
        return lambda w: np.concatenate([task.equation(w)[part], k * edge(w)]) if weight else task.equation(w)[part]

    tight = dict.fromkeys(("xtol", "ftol", "gtol"), 1e-12) | {"max_nfev": steps // 4}
    return least_squares(both(0, task.miss), w, both(1, task.slopes), method="lm", **tight).x


def judge(name: str, program: Callable, u: Callable, seed: int, steps: int, setting: float) -> dict:
    """Run a program from a random network and measure its answer on new points."""
    task, began = Task(u), process_time()
    w = program(task, start(seed), steps, setting)
    seconds, grid = process_time() - began, tuple(k.ravel() for k in np.mgrid[-1:1:101j, 0:1:51j])
    true, (answer, residual, _) = exact(*grid), u(w, *grid)
    error, between = np.linalg.norm(answer - true) / np.linalg.norm(true), task.miss(w, edge(201, 101))
    found = error, *(np.abs(c).max() for c in (task.miss(w), between)), np.sqrt(np.mean(residual**2))
    row = dict(zip(COLUMNS, (*found, task.passes, seconds), strict=True)) | {"program": name, "seed": seed, "w": w}
    # Without the solution, a user can measure both parts of the loss.
    return row | {"setting": setting, "loss": np.mean(residual**2) + np.mean(between**2)}


def chosen(runs: pd.DataFrame, name: str, by: str, label: str) -> pd.DataFrame:
    """Of each start, the run whose weight is the best by `by`; with the passes and seconds of all weights."""
    some = runs[runs["program"] == name]
    best, total = some.loc[some.groupby("seed")[by].idxmin()], some.groupby("seed")[["passes", "seconds"]].sum()
    return best.assign(program=f"{name}, {label}", tried=len(set(some["setting"])), **dict(total.to_dict("list")))


def draw(file: str, runs: pd.DataFrame) -> None:
    """The solution, and the error against the weight."""
    matplotlib.rcParams.update({"svg.hashsalt": "strust", "font.size": 11})
    figure, (left, right) = matplotlib.pyplot.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    x, blue, first = np.linspace(-1, 1, 201), "#1f5fa8", runs[runs["program"] == "strust, within 0.001"].iloc[0]
    for t, color in ((0, "#0b2f5b"), (0.1, blue), (0.3, "#5b94d6"), (1, "#9cc3ee")):
        left.plot(x, plain(first["w"], x, np.full(201, t))[0], color=color, label=f"t = {t:g}")
    x, t = edge(15, 8)
    left.plot(x, exact(x, 0 * t) * (t == 0), "o", color="#d07000", ms=5, clip_on=False, label="limits")
    left.set(xticks=np.linspace(-1, 1, 5), title="answer of strust, within 0.001", xlabel="x", ylabel="u")
    for name, color, mark, dx in (("BFGS", "#2e7d32", "s", 0.93), (LM, "#7b1fa2", "^", 1.07)):
        some = runs[runs["program"] == name]
        right.plot(dx * some["setting"], some["error"], mark, color=color, ms=4, alpha=0.5)
        right.plot(some.groupby("setting")["error"].median(), color=color, label=f"{name}, weighted loss")
    lines = {f"strust, within {k:g}": (f"strust, within {k:g}" if k else "strust, exactly", blue) for k in WITHIN}
    for name, (label, color) in (lines | {f"{LM}, formula": ("a formula for the edge", "#555555")}).items():
        level = runs["error"][runs["program"] == name].median()
        right.axhline(level, color=color, ls="--", lw=1)
        right.text(1.02, level, label, color=color, size=10, va="center", transform=right.get_yaxis_transform())
    right.set(
        xscale="log", yscale="log", title="error of the answer", xlabel="weight of the initial and boundary values"
    )
    right.legend(frameon=False, fontsize=9.5, loc="upper left", bbox_to_anchor=(0, 0.8))
    left.legend(frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    """Print the table, check what the page claims, and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one random network, three weights and half of the steps")
    parser.add_argument("--figure", metavar="FILE", help="write the figure as SVG")
    arguments = parser.parse_args()
    quick, jobs = arguments.quick, []
    steps, weights = (300, WEIGHTS[::2]) if quick else (600, WEIGHTS)
    for seed in range(1 if quick else 3):
        jobs += [(f"strust, within {k:g}", limits, plain, seed, steps, k) for k in WITHIN]
        jobs += [(f"SLSQP, within {k:g}", slsqp, plain, seed, steps, k) for k in WITHIN[1:]]
        jobs += [("BFGS", bfgs, plain, seed, steps, k) for k in weights]
        jobs += [(LM, marquardt, plain, seed, steps, k) for k in weights]
        jobs += [(f"{LM}, formula", marquardt, formula, seed, steps, 0.0)]
    with ProcessPoolExecutor(2) as pool:
        runs = pd.DataFrame(list(pool.map(judge, *zip(*jobs, strict=True)))).assign(tried=1)
    picks = (("loss", "weight by new points"), ("error", "best weight*"))
    weighted = [chosen(runs, name, by, label) for name in ("BFGS", LM) for by, label in picks]
    table = pd.concat([runs[~runs["program"].isin(("BFGS", LM))], *weighted])
    table = table.groupby("program", sort=False)[[*COLUMNS, "tried"]].median()
    formats = dict.fromkeys(COLUMNS, "{:.0e}".format) | dict.fromkeys(("passes", "tried"), "{:.0f}".format)
    formats |= dict.fromkeys(("error", "residual"), "{:.1e}".format) | {"seconds": "{:.1f}".format}
    print(table.rename_axis(None).to_string(formatters=formats))
    print("medians over the random networks; *: the best by the exact solution")

    # What the page claims.
    for within in WITHIN[quick:]:  # half of the steps is not enough for 0
        assert (runs["at rows"][runs["program"] == f"strust, within {within:g}"] < within + 1e-6).all()
    if not quick:
        error = table["error"]
        ours, newest = error["strust, within 0.001"], "weight by new points"
        assert 1.5 * ours < error[f"BFGS, {newest}"]
        assert error["BFGS, best weight*"] < ours < 1.5 * error["BFGS, best weight*"]
        rivals = ("SLSQP, within 0.001", f"{LM}, {newest}", f"{LM}, formula")
        assert error[list(rivals)].max() < ours  # these are better
        assert 2 * ours < error["strust, within 0.0001"] < error["strust, within 0"] / 2  # a tighter limit is slower
        slsqp_rows = runs.groupby("program")["at rows"]
        assert slsqp_rows.min()["SLSQP, within 0.0001"] > 3e-4  # no run keeps the limits
        assert 1.1e-3 < slsqp_rows.max()["SLSQP, within 0.001"] < 1.3e-3
        near = runs[runs["program"].isin(("BFGS", LM))].groupby(["program", "setting"])[["error", "at rows"]].median()
        assert near["error"][near["at rows"] < 0.001].min() > 1.2 * ours  # weights that come as near to the values
    if arguments.figure:
        draw(arguments.figure, runs)


if __name__ == "__main__":
    main()
