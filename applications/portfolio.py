"""The portfolio with the smallest average loss on bad days, under limits: strust, SciPy and a linear program.

Made returns (seed 0) of 30 assets on 1,000 days, in percent: three factors and noise of each asset, with heavy tails.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from time import perf_counter

try:
    import matplotlib.pyplot
    import numpy as np
    import pandas as pd
    import strust
    import strust.scipy
    from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp, minimize
    from scipy.special import expit
    from strust.constraints import affine, at_most, bounds
except ModuleNotFoundError as error:
    sys.exit(f"{error.name} is missing: pip install numpy pandas scipy matplotlib, and ./python of a clone for strust")

DAYS, N, YEAR = 1000, 30, 252
TAIL, WIDTH = 0.05, 0.1  # the worst 5 % of the days; the bend of the loss is rounded by about 0.1 %
NOW = np.full(N, 1 / N)  # today's weights
ROWS = ("budget", "split", "floor", "turnover", "bounds")


def returns(seed: int = 0) -> np.ndarray:
    """Daily returns in percent, a row for each day."""
    rng = np.random.default_rng(seed)
    market, others = rng.uniform(0.5, 1.5, N), rng.normal(0, 0.5, (2, N))
    factors = rng.standard_t(5, (DAYS, 3)) * [0.7, 0.4, 0.3]
    noise = rng.standard_t(5, (DAYS, N)) * rng.uniform(0.5, 1.4, N)
    moves = factors @ np.vstack([market, others]) + noise
    return 0.01 + 0.03 * market + 0.01 * rng.normal(size=N) + moves - moves.mean(0)


def loss(r: np.ndarray, w: np.ndarray) -> float:
    """The average loss on the worst days, exactly."""
    return np.sort(-r @ w)[-round(TAIL * DAYS) :].mean()


class Portfolio:
    """The task. The unknowns x are the weights w, what is bought u and sold v, and the loss t that bad days exceed."""

    def __init__(self, r: np.ndarray, floor: float, turnover: float):
        """Demand a return of at least `floor` percent a year, with at most `turnover` bought and sold."""
        self.r, self.passes = r, 0.0  # over the days
        one, zero, eye = np.ones((1, N)), np.zeros((1, N)), np.eye(N)
        equal = np.block([[one, zero, zero, 0], [eye, -eye, eye, zero.T]])  # Σw = 1, w − u + v = today's weights
        other = np.block([[r.mean(0)[None], zero, zero, 0], [zero, one, one, 0]])
        self.equal = LinearConstraint(equal, np.r_[1, NOW], np.r_[1, NOW])
        self.other = LinearConstraint(other, [floor / YEAR, -np.inf], [np.inf, turnover])
        self.box = Bounds(np.r_[np.zeros(3 * N), -np.inf], np.r_[np.full(N, 0.15), np.full(2 * N + 1, np.inf)])
        self.start = np.r_[NOW, np.zeros(2 * N), np.quantile(-r @ NOW, 1 - TAIL)]

    def risk(self, x: np.ndarray, days=slice(None)) -> tuple[float, np.ndarray]:
        """The average loss on the worst days, smooth, and its gradient; from some of the days."""
        r, t = self.r[days], x[-1]
        self.passes += len(r) / DAYS
        over = (-r @ x[:N] - t) / WIDTH
        share = expit(over) / (TAIL * len(r))
        return t + WIDTH * np.logaddexp(0, over).mean() / TAIL, np.r_[-r.T @ share, np.zeros(2 * N), 1 - share.sum()]

    def solve(self, method=strust.scipy.auto, **options) -> OptimizeResult:
        """Call SciPy: the method is strust, or one of SciPy's own."""
        limits = [self.equal, self.other]
        return minimize(
            self.risk, self.start, jac=True, method=method, bounds=self.box, constraints=limits, options=options
        )

    def batches(self) -> strust.OptimizeResult:
        """Use strust on mini-batches of days."""
        least = np.array([-1, 1])  # of the return, and the most of the turnover
        sides = at_most(affine(least[:, None] * self.other.A, [-self.other.lb[0], self.other.ub[1]]))
        rows, box = [affine(self.equal.A, self.equal.lb), sides], bounds(self.box.lb, self.box.ub)
        return strust.minimize(self.risk, self.start, n_terms=DAYS, constraints=rows, bounds=box)

    def exact(self) -> OptimizeResult:
        """Minimize the exact average loss on the worst days: a linear program, with a further unknown for each day."""
        wide = [
            LinearConstraint(np.hstack([c.A, np.zeros((len(c.A), DAYS))]), c.lb, c.ub) for c in (self.equal, self.other)
        ]
        over = LinearConstraint(
            np.hstack([self.r, np.zeros((DAYS, 2 * N)), np.ones((DAYS, 1)), np.eye(DAYS)]), 0, np.inf
        )
        box = Bounds(np.r_[self.box.lb, np.zeros(DAYS)], np.r_[self.box.ub, np.full(DAYS, np.inf)])
        return milp(np.r_[np.zeros(3 * N), 1, np.full(DAYS, 1 / TAIL / DAYS)], constraints=[*wide, over], bounds=box)

    def highest_return(self) -> float:
        """The highest return in percent a year within all other limits: another linear program."""
        turnover = LinearConstraint(self.other.A[1:], -np.inf, self.other.ub[1])
        return -YEAR * milp(-self.other.A[0], constraints=[self.equal, turnover], bounds=self.box).fun


def judge(name: str, task: Portfolio, solve: Callable) -> dict:
    """Run a program: a row of the table."""
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of trust-constr, about rows that contradict each other
        found = solve(task)
    row = {"program": name, "passes": task.passes or None, "seconds": perf_counter() - start, "says": found.message}
    if found.x is None:
        return row
    x = found.x[: 3 * N + 1]
    equal, (reached, traded) = np.abs(task.equal.A @ x - task.equal.lb), task.other.A @ x
    outside = np.maximum(task.box.lb - x, x - task.box.ub).max()
    off = (equal[0], equal[1:].max(), task.other.lb[0] - reached, traded - task.other.ub[1], outside)
    return (
        row
        | {"loss": loss(task.r, x[:N]), "smooth": task.risk(x)[0]}
        | dict(zip(ROWS, np.maximum(off, 0), strict=True))
    )


def compare(r: np.ndarray, floor: float, turnover: float, programs: dict[str, Callable]) -> pd.DataFrame:
    """Run the programs and print the table."""
    table = pd.DataFrame([judge(name, Portfolio(r, floor, turnover), solve) for name, solve in programs.items()])
    print(f"Return of at least {floor} % a year, at most {turnover} bought and sold; violation of each limit:")
    formats = dict.fromkeys(ROWS, "{:.0e}".format) | {"seconds": "{:.2f}".format, "passes": "{:.0f}".format}
    formats = {"loss": "{:.4f}".format, "smooth": "{:.6f}".format} | formats
    print(table[["program", *formats]].to_string(index=False, formatters=formats, na_rep=""))
    print("\n".join(f"  {row.program}: {row.says.strip()[:60]}" for row in table.itertuples()), "\n")
    return table.set_index("program")


def frontier(r: np.ndarray, floors: np.ndarray, turnover: float) -> tuple[pd.DataFrame, float]:
    """What strust says for all floors, and the highest return, by a linear program."""
    rows = [judge("", Portfolio(r, floor, turnover), Portfolio.solve) | {"floor %": floor} for floor in floors]
    return pd.DataFrame(rows), Portfolio(r, 0, turnover).highest_return()


def draw(file: str, frontiers: dict[float, tuple[pd.DataFrame, float]], r: np.ndarray) -> None:
    """The average loss on bad days against the return that is demanded."""
    matplotlib.rcParams.update({"svg.hashsalt": "strust", "font.size": 11})
    figure, axes = matplotlib.pyplot.subplots(figsize=(7.5, 4.6), layout="constrained")
    axes.spines[["top", "right"]].set_visible(False)
    looks = zip(frontiers.items(), ("#d07000", "#1f5fa8", "#2e7d32"), (2.5, 2.45, 2.4), strict=True)
    for (turnover, (table, highest)), color, top in looks:
        found = table["says"].str.startswith("converged")
        axes.plot(table["floor %"][found], table["loss"][found], "o-", color=color, ms=4, lw=1.5)
        axes.plot(table["floor %"][~found], np.full((~found).sum(), top), "x", color=color, ms=6)
        axes.axvline(highest, color=color, lw=1, ls=":")
        label = f"turnover ≤ {turnover:g}" if turnover < 2 else "any turnover"
        axes.text(table["floor %"][0], table["loss"][0] + 0.06, label, color=color)
    axes.plot(YEAR * r.mean(), loss(r, NOW), "k*", ms=11)
    axes.annotate("today", (YEAR * r.mean() - 0.12, loss(r, NOW) + 0.025), ha="right")
    axes.text(
        7, 2.48, "×  strust: the limits contradict\n⋯  highest return (linear program)", va="center", fontsize=9.5
    )
    axes.set(xlabel="return that is demanded (% a year)", ylabel="average loss on the 50 worst days (%)")
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    """Print the tables, check what the page claims, and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="without trust-constr and with fewer return floors")
    parser.add_argument("--figure", metavar="FILE", help="write the figure as SVG")
    arguments = parser.parse_args()
    r = returns()
    programs = {
        "strust, all days": Portfolio.solve,
        "SLSQP": lambda task: task.solve("SLSQP"),
        "SLSQP, ftol=1e-12": lambda task: task.solve("SLSQP", ftol=1e-12, maxiter=1000),
        "trust-constr": lambda task: task.solve("trust-constr"),
        "linear program": Portfolio.exact,
    }
    if arguments.quick:
        del programs["trust-constr"]
    good = compare(r, 10, 0.3, {"strust, 32 days": Portfolio.batches} | programs)
    bad = compare(r, 12, 0.3, programs)
    floors = np.arange(7, 15, 2.5 if arguments.quick else 0.5)
    frontiers = {turnover: frontier(r, floors, turnover) for turnover in (0.1, 0.3, 2.0)}

    # What the page claims.
    ours = good.loc[["strust, all days", "strust, 32 days"]]
    assert ours["says"].str.startswith("converged").all()
    assert ours[list(ROWS)].max(axis=None) < 1e-12
    assert np.abs(ours["smooth"] - good["smooth"]["SLSQP, ftol=1e-12"]).max() < 1e-8
    assert good["loss"]["linear program"] - 1e-9 < ours["loss"].iloc[0] < 1.001 * good["loss"]["linear program"]
    assert good["passes"]["SLSQP"] < ours["passes"].iloc[0] / 3  # SciPy is faster here
    assert "contradict" in bad["says"]["strust, all days"]
    assert bad["passes"]["strust, all days"] < bad["passes"]["SLSQP"] / 10  # and slower here
    for table, highest in frontiers.values():
        assert (table["says"].str.startswith("converged") == (table["floor %"] <= highest)).all()
        assert (table["says"].str.contains("contradict") == (table["floor %"] > highest)).all()
    print(f"strust and the linear program agree on all {3 * len(floors)} pairs of limits: possible or not.")
    if arguments.figure:
        draw(arguments.figure, frontiers, r)


if __name__ == "__main__":
    main()
