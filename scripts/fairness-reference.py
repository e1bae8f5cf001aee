#!/usr/bin/env python3
"""Compares strust with other programs that bound a difference between groups, on the same rows.

    cargo build --release && (cd python && maturin build --release)
    pip install torch scikit-learn pandas fairlearn humancompatible-train target/wheels/strust-*.whl
    scripts/fairness-reference.py DIR [--only NAME,...] [--parts scores,rates] [--seeds N] [--epochs N]

DIR has adult-train.csv.xz, adult-test.csv.xz, compas.csv.xz, german.csv.xz and, for `rates` only, census-train.csv.xz and
census-test.csv.xz; sets that are missing are skipped. Every third row is held out where there is no file for it. Inputs are standardized, words become one column each.

`scores`: logistic regression with an intercept and the regularizer 0.0005‖x‖², such that the mean probabilities of two
groups differ by at most 0.02. All programs see the same mini-batches of 128 rows, in which both groups have their
shares. f* is the minimum by SLSQP on all rows. `ConstrainedAuto` has no setting; it answers with its average.
humancompatible-train has three methods: ALM (dual ascent, also augmented), PBM (penalty-barrier) and SSG (switching
subgradients), each with Adam and a cosine. The best setting of each is the one with the smallest f + 2λ*·violation on
the training rows with the first seed, where λ* is the multiplier at f*; the other seeds repeat it. Medians over the
seeds, and the seconds of a run.

`rates`: the shares of rows with the second class predicted differ by at most 0.02. `strust fit --fair` against
fairlearn's reduction to weighted problems, with scikit-learn's logistic regression; its answer is a random choice among
several models, so its rates are expectations. Seconds are those of the whole program and of `fit`.
"""

import argparse
import json
import math
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import minimize

BOUND = 0.02
BATCH = 128
RIDGE = 1e-3
# Name, training rows, held-out rows, target and its second class, column of the groups and who is in them.
SETS = (
    ("Adult, sex", "adult-train", "adult-test", "income", ">50K", "sex", ("Female", "Male")),
    ("COMPAS, race", "compas", None, "two_year_recid", "1", "race", ("African-American", "Caucasian")),
    ("KDD Census, sex", "census-train", "census-test", "income", "50000+", "c13", ("Female", "Male")),
    ("German credit, age", "german", None, "credit", "1", "a13", ("up to 25", "above 25")),
)


class Rows:
    """Inputs, labels and groups of training and held-out rows, also as CSV files for the program."""

    def __init__(self, folder, given):
        self.name, train, test, self.target, positive, column, groups = given
        read = lambda name: pd.read_csv(folder / f"{name}.csv.xz", dtype=str, keep_default_na=False)
        tables = [read(train), read(test)] if test else None
        if tables is None:
            table, rest = read(train), np.arange(len(read(train))) % 3 == 2
            tables = [table[~rest], table[rest]]
        for table in tables:
            table[self.target] = table[self.target].str.rstrip(".")
            if groups[0].startswith("up to"):
                age = pd.to_numeric(table[column])
                table["group"] = np.where(age <= 25, groups[0], groups[1])
            else:
                table["group"] = table[column].where(table[column].isin(groups), "")
        self.tables = tables
        self.y = [(table[self.target] == positive).to_numpy(float) for table in tables]
        self.group = [np.select([table["group"] == g for g in groups], [0, 1], -1) for table in tables]
        dense, words = [[], []], []
        for name in tables[0].columns.drop([self.target, "group"]):
            numbers = [pd.to_numeric(table[name], errors="coerce").to_numpy(float) for table in tables]
            if np.isnan(numbers[0]).mean() < 0.5:
                mean, scale = np.nanmean(numbers[0]), np.nanstd(numbers[0]) or 1.0
                for part, values in zip(dense, numbers):
                    part.append(np.nan_to_num((values - mean) / scale)[:, None])
            else:
                words.append(name)
        for name in words:
            levels = sorted(set(tables[0][name]))
            for part, table in zip(dense, tables):
                part.append((table[name].to_numpy()[:, None] == np.array(levels)).astype(float))
        self.x = [np.hstack([*part, np.ones((len(part[0]), 1))]) for part in dense]

    def loss(self, w):
        """f and its gradient."""
        z = self.x[0] @ w
        p = 1.0 / (1.0 + np.exp(-z))
        value = np.mean(np.logaddexp(0.0, z) - self.y[0] * z) + 0.5 * RIDGE * w @ w
        return value, self.x[0].T @ (p - self.y[0]) / len(z) + RIDGE * w

    def gap(self, w, part=0):
        """The difference of the mean probabilities of the groups, and its gradient."""
        p = 1.0 / (1.0 + np.exp(-self.x[part] @ w))
        weight = sum(s * (self.group[part] == k) / np.sum(self.group[part] == k) for k, s in ((0, 1.0), (1, -1.0)))
        return weight @ p, self.x[part].T @ (weight * p * (1.0 - p))

    def minimum(self):
        """The minimum under the bound, and the multiplier there."""
        sign = np.sign(self.gap(minimize(self.loss, np.zeros(self.x[0].shape[1]), jac=True, tol=1e-6).x)[0])
        row = {
            "type": "ineq",
            "fun": lambda w: BOUND - sign * self.gap(w)[0],
            "jac": lambda w: -sign * self.gap(w)[1],
        }
        start = np.zeros(self.x[0].shape[1])
        options = {"maxiter": 2000, "ftol": 1e-13}
        found = minimize(self.loss, start, jac=True, method="SLSQP", constraints=[row], options=options)
        slope = self.gap(found.x)[1]
        return found.fun, abs(slope @ self.loss(found.x)[1]) / (slope @ slope)


def run_torch(rows, make, epochs, seed):
    """The weights after a run. `make(w, steps)` gives a step: it gets the inputs and labels of a batch and its gap."""
    import torch
    from strust.torch import StratifiedBatches

    x, y = torch.from_numpy(rows.x[0]), torch.from_numpy(rows.y[0])
    group = torch.from_numpy(rows.group[0])
    w = torch.nn.Parameter(torch.zeros(x.shape[1], dtype=torch.float64))
    batches = StratifiedBatches(group + 1, BATCH, seed=seed)
    step, answer = make(w, epochs * len(batches), len(batches))
    for _ in range(epochs):
        for batch in batches:
            inputs, labels, of = x[batch], y[batch], group[batch]

            def evaluate():
                z = inputs @ w
                p = torch.sigmoid(z)
                loss = torch.nn.functional.binary_cross_entropy_with_logits(z, labels) + 0.5 * RIDGE * w @ w
                return loss, p[of == 0].mean() - p[of == 1].mean()

            step(evaluate)
    return answer()


def constrained_auto(w, steps, epoch):
    from strust.torch import ConstrainedAuto

    optimizer = ConstrainedAuto([w], rows=[(-BOUND, BOUND)])

    def step(evaluate):
        def closure():
            loss, gap = evaluate()
            return loss, gap.reshape(1)

        optimizer.step(closure)

    def answer():
        with optimizer.averaged():
            return w.detach().numpy().copy()

    return step, answer


def with_adam(dual, rate):
    """Adam with a cosine, and a method of humancompatible-train for the two rows ±gap − bound ≤ 0."""
    import torch

    def make(w, steps, epoch):
        rows = dual(epoch)
        adam = torch.optim.Adam([w], lr=rate)
        cosine = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)

        def step(evaluate):
            loss, gap = evaluate()
            adam.zero_grad()
            rows.forward_update(loss, torch.stack([gap - BOUND, -gap - BOUND])).backward()
            adam.step()
            cosine.step()

        return step, lambda: w.detach().numpy().copy()

    return make


def settings():
    """All settings of the methods of humancompatible-train."""
    from humancompatible.train.dual_optim import ALM, PBM, SSG

    def alm(lr, penalty):
        return lambda _: ALM(m=2, lr=lr, penalty=penalty, is_ineq=True)

    def pbm(gamma, mult):
        return lambda epoch: PBM(m=2, gamma=gamma, penalty_mult=mult, epoch_length=epoch)

    def ssg(tolerance):
        return lambda _: SSG(m=2, constraint_tol=tolerance)

    rates = (1e-3, 1e-2, 1e-1)
    return {
        "ALM": [with_adam(alm(lr, p), r) for r in rates for lr in (0.003, 0.03, 0.3) for p in (0.0, 1.0)],
        "PBM": [with_adam(pbm(g, q), r) for r in rates for g in (0.1, 0.5, 0.9) for q in (0.1, 0.5)],
        "SSG": [with_adam(ssg(t), r) for r in rates for t in (0.0, 0.01, 0.03)],
    }


def scores(rows, epochs, seeds):
    """Lines of the table of mean scores."""
    import strust.torch  # noqa: F401 (its time is not that of the first run)
    import torch

    # The methods make their numbers in the default type.
    torch.set_default_dtype(torch.float64)
    least, multiplier = rows.minimum()

    def measured(w):
        excess = lambda part: max(0.0, abs(rows.gap(w, part)[0]) - BOUND)
        return rows.loss(w)[0] - least, excess(0), excess(1)

    def merit(numbers):
        return numbers[0] + 2.0 * multiplier * numbers[1]

    for name, makes in {"strust, ConstrainedAuto": [constrained_auto], **settings()}.items():
        began, first = time.perf_counter(), [measured(run_torch(rows, make, epochs, 0)) for make in makes]
        seconds = (time.perf_counter() - began) / len(makes)
        best = min(range(len(makes)), key=lambda i: merit(first[i]) if math.isfinite(merit(first[i])) else math.inf)
        runs = [first[best]] + [measured(run_torch(rows, makes[best], epochs, seed)) for seed in range(1, seeds)]
        middle = np.median(runs, axis=0)
        cells = [f"{middle[0]:+.1e}", f"{middle[1]:.1e}", f"{middle[2]:.1e}", len(makes), f"{seconds:.1f}"]
        yield [rows.name, name, *cells]


def rates(rows, program):
    """Lines of the table of rates."""
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient
    from sklearn.linear_model import LogisticRegression

    def line(name, shares, seconds):
        cells = []
        for part, share in enumerate(shares):
            y, group = rows.y[part], rows.group[part]
            accuracy = np.mean(share * y + (1.0 - share) * (1.0 - y))
            gap = abs(share[group == 0].mean() - share[group == 1].mean())
            cells += [f"{100 * accuracy:.2f} %", f"{gap:.4f}"]
        return [rows.name, name, *cells, f"{seconds:.1f}"]

    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("train.csv", "test.csv", "model.json")]
        for table, file in zip(rows.tables, files):
            table.to_csv(file, index=False)
        call = lambda *more: subprocess.run(
            [str(a) for a in (program, *more)], check=True, capture_output=True, text=True
        )
        began = time.perf_counter()
        # The groups are in a column of their own, which is no input.
        fit = ("fit", files[0], "--test", files[1], "--target", rows.target, "--save", files[2])
        call(*fit, "--drop", "group", "--fair", f"group={BOUND}:rate", "--quiet")
        seconds = time.perf_counter() - began
        shares = []
        for file in files[:2]:
            lines = call("predict", files[2], file, "--jsonl").stdout.splitlines()
            positive = rows.tables[0][rows.target][rows.y[0] == 1.0].iloc[0]
            shares.append(np.array([str(json.loads(line)["prediction"]) == positive for line in lines], float))
    yield line("strust fit --fair", shares, seconds)

    known = rows.group[0] >= 0
    model = LogisticRegression(max_iter=2000, C=1.0 / (RIDGE * len(rows.y[0])))
    reduction = ExponentiatedGradient(model, DemographicParity(difference_bound=BOUND))
    began = time.perf_counter()
    reduction.fit(rows.x[0][known], rows.y[0][known], sensitive_features=rows.group[0][known])
    seconds = time.perf_counter() - began
    yield line("fairlearn, ExponentiatedGradient", [reduction._pmf_predict(x)[:, 1] for x in rows.x], seconds)


def show(heads, lines):
    print("\n| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for line in lines:
        print("| " + " | ".join(str(cell) for cell in line) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path, metavar="DIR", help="the folder of the data sets")
    parser.add_argument("--only", help="names of sets with commas between them, such as `adult,german`")
    parser.add_argument("--parts", default="scores,rates")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=20)
    built = Path(__file__).resolve().parent.parent / "target" / "release" / "strust"
    parser.add_argument("--strust", type=Path, default=built, help="the program")
    given = parser.parse_args()
    wanted = given.only.split(",") if given.only else None
    found = []
    for entry in SETS:
        files = [given.data / f"{name}.csv.xz" for name in entry[1:3] if name]
        if (wanted is None or entry[1].split("-")[0] in wanted) and all(file.is_file() for file in files):
            found.append(Rows(given.data, entry))
    if not found:
        raise SystemExit(f"no data set in {given.data}: give the folder that has adult-train.csv.xz and others")
    if "scores" in given.parts:
        heads = ["set", "method", "f − f*", "violation, training", "held out", "settings tried", "seconds"]
        # The settings that are tried would take hours on KDD Census.
        small = [rows for rows in found if len(rows.x[0]) < 100_000]
        show(heads, (line for rows in small for line in scores(rows, given.epochs, given.seeds)))
    if "rates" in given.parts:
        heads = ["set", "program", "accuracy, training", "difference", "accuracy, held out", "difference", "seconds"]
        show(heads, (line for rows in found for line in rates(rows, given.strust)))


if __name__ == "__main__":
    main()
