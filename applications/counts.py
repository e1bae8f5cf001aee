"""Fit data with outliers, and counts: strust, statsmodels and scikit-learn minimize the same objectives."""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

try:
    import matplotlib.figure
    import numpy as np
    import pandas as pd
    import statsmodels.api as sm
    from scipy.optimize import brentq
    from sklearn.datasets import load_diabetes
    from sklearn.linear_model import HuberRegressor, PoissonRegressor

    import strust
except ModuleNotFoundError as error:
    sys.exit(
        f"{error.name} is missing: pip install pandas scikit-learn statsmodels matplotlib, and ./python of a clone"
    )


def best_of(name: str, f: Callable, fits: list[Callable]) -> tuple:
    """Run each setting; keep the one with the smallest objective on the training rows."""
    rows = []
    for fit in fits:
        start = perf_counter()
        rows.append((name, np.asarray(fit()), len(fits), perf_counter() - start))
    return min(rows, key=lambda row: f(row[1]))


def compare(rows: list[tuple], f: Callable, error: Callable) -> pd.DataFrame:
    """Compare f and the weights (intercept first, inputs per deviation) with the best, and score held-out rows."""
    padded = [(*row, np.nan, np.nan)[:4] for row in rows]  # a row without settings minimizes something else
    table = pd.DataFrame(padded, columns=["name", "weights", "settings", "seconds"])
    values = table["weights"].map(f).where(table["settings"] > 0)
    best = table["weights"][values.idxmin()]
    difference = table["weights"].map(lambda w: np.abs(w - best).max())
    return table.assign(excess=values / values.min() - 1, difference=difference, held_out=table["weights"].map(error))


def strust_fit(folder: Path, loss: str, x: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Fit train.csv with the program. Return the weights, the seconds and Huber's bound, which the program chooses."""
    start, strust_program = perf_counter(), [sys.executable, "-m", "strust", "--quiet"]
    options = ["--target", "target", "--test", "test.csv", "--loss", loss, "--l2", "0", "--save", "model.json"]
    subprocess.run([*strust_program, "fit", "train.csv", *options], cwd=folder, check=True)
    seconds, inspect = perf_counter() - start, [*strust_program, "inspect", "model.json", "--json"]
    model = json.loads(subprocess.check_output(inspect, cwd=folder))
    units, task = model["weights_in_units"], model["task"]
    w, bound = units["weights"][0], task.get("huber", np.inf) * task["deviation"]
    return np.append(units["intercepts"][0] + x.mean(0) @ w, x.std(0) * w), seconds, bound


def robust(seed: int, folder: Path) -> pd.DataFrame:
    """One split of diabetes: a tenth of the training targets are 10 times too large, a slip of the decimal point."""
    table, rng = load_diabetes(as_frame=True, scaled=False).frame, np.random.default_rng(seed)
    order = rng.permutation(len(table))
    test, train = table.iloc[order[:110]], table.iloc[order[110:]].copy()
    train.iloc[rng.choice(len(train), len(train) // 10, replace=False), -1] *= 10
    train.to_csv(folder / "train.csv", index=False)
    test.to_csv(folder / "test.csv", index=False)
    x, y = train.to_numpy()[:, :-1], train.to_numpy()[:, -1]
    a, a_test = (sm.add_constant((part - x.mean(0)) / x.std(0)) for part in (x, test.to_numpy()[:, :-1]))
    ours, seconds, bound = strust_fit(folder, "huber", x)

    def f(w: np.ndarray) -> float:  # the mean of Huber's loss with this bound
        r = np.abs(y - a @ w)
        return np.mean(np.where(r <= bound, r**2 / 2, bound * r - bound**2 / 2))

    def huber(epsilon: float) -> tuple[np.ndarray, float]:
        model = HuberRegressor(epsilon=epsilon, alpha=0).fit(a[:, 1:], y)
        return np.append(model.intercept_, model.coef_), model.scale_

    # HuberRegressor finds its scale σ with the weights. They minimize f if ε·σ is the bound: search for that ε.
    tried: list[float] = []
    brentq(lambda epsilon: tried.append(epsilon) or epsilon * huber(epsilon)[1] - bound, 1, 10)
    # A fixed scale of 1 puts the bound of RLM in units of y.
    rlm, fixed = sm.RLM(y, a, M=sm.robust.norms.HuberT(bound)), {"start_scale": 1.0, "update_scale": False}
    rows = [
        ("strust fit --loss huber", ours, 1, seconds),
        best_of("statsmodels RLM, fixed scale", f, [lambda: rlm.fit(**fixed).params]),
        best_of("HuberRegressor, ε searched", f, [lambda e=e: huber(e)[0] for e in tried]),
        ("statsmodels RLM, own scale", sm.RLM(y, a).fit().params),
        ("HuberRegressor, own scale", huber(1.35)[0]),
        ("least squares (strust fit)", strust_fit(folder, "squares", x)[0]),
        ("least squares, not spoiled", np.linalg.lstsq(a, table["target"].to_numpy()[order[110:]])[0]),
        ("always the median", np.eye(11)[0] * np.median(y)),
    ]
    return compare(rows, f, lambda w: np.abs(test["target"].to_numpy() - a_test @ w).mean())


def claims(n: int, folder: Path) -> tuple[pd.DataFrame, np.ndarray]:
    """Made counts: claims of cars, each insured for a part of a year; also years and claims of tenths of new cars."""
    rng, train, new = np.random.default_rng(0), slice(n // 2), slice(n // 2, n)
    table = pd.DataFrame({"age": rng.integers(18, 81, n), "power": rng.integers(40, 201, n)})
    table["km"], table["city"] = rng.gamma(4, 3.5, n).round(1), rng.integers(0, 2, n)
    table["bonus"], table["years"] = rng.integers(0, 11, n), rng.uniform(0.1, 1, n).round(2)
    log_rate = table.drop(columns="years") @ [-0.015, 0.006, 0.03, 0.4, -0.08] - 2.4
    table["claims"] = rng.poisson(table["years"] * np.exp(log_rate))
    table.to_csv(folder / "claims.csv", index=False)
    *x, years, counts = pd.read_csv(folder / "claims.csv").to_numpy(dtype=float).T
    x = np.transpose(x)
    a = sm.add_constant((x - x[train].mean(0)) / x[train].std(0))

    def fun(w, i=train):  # half the mean deviance of the rows i, and its gradient
        z = a[i] @ w + np.log(years[i])
        loss = np.exp(z) - counts[i] - counts[i] * (z - np.log(np.maximum(counts[i], 1)))
        return loss.mean(), a[i].T @ (np.exp(z) - counts[i]) / len(z)

    def hessp(w, p):
        return a[train].T @ (years[train] * np.exp(a[train] @ w) * (a[train] @ p)) / (n // 2)

    def f(w: np.ndarray) -> float:
        return fun(w)[0]

    def poisson(**settings) -> np.ndarray:
        model = PoissonRegressor(alpha=0, **settings).fit(a[train, 1:], counts[train] / years[train], years[train])
        return np.append(model.intercept_, model.coef_)

    zeros, glm = np.zeros(6), sm.GLM(counts[train], a[train], sm.families.Poisson(), np.log(years[train]))
    tried = [{"solver": s, **k} for s in ("lbfgs", "newton-cholesky") for k in ({}, {"tol": 1e-10, "max_iter": 1000})]
    rows = [
        best_of("strust.minimize, all rows", f, [lambda: strust.minimize(fun, zeros, hessp=hessp).x]),
        best_of("strust.minimize, mini-batches", f, [lambda: strust.minimize(fun, zeros, n_terms=n // 2).x]),
        best_of("statsmodels GLM", f, [lambda: glm.fit().params]),
        best_of("PoissonRegressor", f, [lambda k=k: poisson(**k) for k in tried]),
        ("one rate for all", np.eye(6)[0] * np.log(counts[train].sum() / years[train].sum())),
        ("the rule that made the counts", np.linalg.lstsq(a, log_rate.to_numpy())[0]),
    ]
    rate = np.exp(a @ rows[0][1])
    tenths = np.array_split(n // 2 + np.argsort(rate[new], kind="stable"), 10)
    sums = [[years[i].sum(), years[i] @ rate[i], counts[i].sum()] for i in tenths]
    return compare(rows, f, lambda w: 2 * fun(w, new)[0]), np.array(sums).T


def show(title: str, error: str, splits: list[pd.DataFrame]) -> pd.DataFrame:
    """Print and return the worst f and weights, the mean error ± its standard error, and the median time."""
    looks = {"f/f* − 1": ("excess", "max", ".0e"), "weights": ("difference", "max", ".0e")}
    looks |= {error: ("held_out", "mean", ".4g"), "±": ("held_out", "sem", ".1f")}
    looks |= {"settings": ("settings", "max", ".0f"), "seconds": ("seconds", "median", ".1g")}
    rows = pd.concat(splits).groupby("name", sort=False)
    table = rows.agg(**{name: look[:2] for name, look in looks.items()}).rename_axis(None)
    formatters = {name: lambda v, look=look: "–" if np.isnan(v) else f"{v:{look[2]}}" for name, look in looks.items()}
    print(f"\n{title}\n{table.to_string(formatters=formatters, na_rep='–')}")
    return table


def draw(path: str, weights: pd.Series, years: np.ndarray, expected: np.ndarray, observed: np.ndarray) -> None:
    """Draw the coefficients of robust regression, and predicted against observed rates of counts."""
    matplotlib.rcParams.update({"svg.hashsalt": "strust", "axes.spines.top": False, "axes.spines.right": False})
    figure = matplotlib.figure.Figure(figsize=(9.6, 4.2), layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
    looks = [(6, "least squares, not spoiled", "#a8a8a8", 90), (5, "least squares, spoiled", "#c8553d", 34)]
    for row, label, color, size in [*looks, (0, "Huber's loss (strust), spoiled", "#2a6f97", 34)]:
        left.scatter(weights[row][1:], range(10), size, color, label=label, zorder=2)
    left.hlines(range(10), weights[6][1:], weights[5][1:], "#e8c4ba", zorder=1)
    left.set_yticks(range(10), load_diabetes().feature_names)
    left.invert_yaxis()
    left.set(xlabel="change of the target per deviation of the input", title="A tenth of the targets spoiled")
    right.axline((0.1, 0.1), (0.2, 0.2), color="#a8a8a8", label="predicted = observed")
    points = (expected / years, observed / years, 2 * np.sqrt(expected) / years)
    right.errorbar(*points, fmt="o", color="#2a6f97", label="a tenth of new cars ± 2 errors")
    right.set(xlabel="predicted claims per year", ylabel="observed claims per year", title="Claims of new cars")
    for axes in (left, right):
        axes.legend(frameon=False, fontsize=9)
    figure.savefig(path, format="svg", metadata={"Date": None})


def main() -> None:
    """Fit both, print the tables and check what the page claims."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer splits and rows")
    parser.add_argument("--figure", metavar="FILE", help="write the figure as SVG")
    args = parser.parse_args()
    count, n = (2, 8000) if args.quick else (10, 40_000)
    with tempfile.TemporaryDirectory() as folder:
        splits = [robust(seed, Path(folder)) for seed in range(count)]
        made, (years, expected, observed) = claims(n, Path(folder))
    table = show(f"Diabetes, a tenth of the training targets × 10: {count} splits", "mean error", splits)
    cars = show(f"Claims of {n // 2} cars, scored on {n // 2} others", "deviance", [made])
    rates = pd.DataFrame({"predicted": expected / years, "observed": observed / years}).T.round(3)
    print(f"\nClaims per year of new cars, in tenths by predicted rate\n{rates.to_string(header=False)}")
    if args.figure:
        draw(args.figure, splits[0]["weights"], years, expected, observed)
    error, excess = table["mean error"], cars["f/f* − 1"]
    assert table["f/f* − 1"].iloc[0] < 1e-9, "strust fit reaches the smallest objective"
    assert error["least squares (strust fit)"] > error["always the median"], "least squares is worse than a constant"
    assert error.iloc[0] < 1.1 * error["least squares, not spoiled"], "Huber's loss repairs the spoiled targets"
    assert (excess.iloc[:2] < [1e-9, 1e-2]).all(), "strust.minimize reaches the smallest f; mini-batches come near it"
    assert cars["deviance"].iloc[0] < cars["deviance"]["one rate for all"], "the inputs help"
    assert (np.abs(observed - expected) < 4 * np.sqrt(expected)).all(), "observed rates agree with predicted ones"


if __name__ == "__main__":
    main()
