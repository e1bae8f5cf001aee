#!/usr/bin/env python3
"""Compares `strust fit` with the minimum of its objective and with scikit-learn, on the same rows.

    cargo build --release
    python3 -m venv venv && venv/bin/pip install scikit-learn pandas
    venv/bin/python scripts/fit-reference.py [--data DIR] [--only NAME,...] [--models linear|mlp] [--markdown]
    venv/bin/python scripts/fit-reference.py [--data DIR] --settings
    venv/bin/python scripts/fit-reference.py --large

The data sets are those of fit_data.py: some come with scikit-learn, others are made from a seed, also dirty ones. DIR
adds files of the LIBSVM collection (a9a.xz, … , also in DIR/libsvm) and tables such as Adult (in DIR/fair). Sets that
are missing are skipped.

Each set is split once, and both programs read the same rows. strust saves its model. The script encodes the training
rows with the transform of the model, computes f at its weights, and f* by Newton's method in NumPy
(linear_minimum.py). It prints

- the score on the test rows, in percent: accuracy or R²
- the gap (f − f*)/f*
- the largest difference of a weight relative to the largest weight, of inputs with the deviation 1; `–` if rounding
  decides the weights, because columns depend on each other
- seconds: of strust those of the whole program with its report, of scikit-learn those of reading, encoding and
  fitting. Each is the best of `--repeat` runs, which alternate.

`--settings` repeats some sets with other penalties, with and without standardization, with columns in other units and
with other seeds. `--large` measures time and peak memory of strust on 10⁶ rows × 50 columns.

The exit code is 1 if strust fails or does not converge where there is a minimum, if a gap is above 1e-8, or if a
weight is off by more than 1e-4; for networks, if a score is worse by more than 0.5 points or the time is
longer.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from fit_data import SEED, Table, data_sets
from linear_minimum import LinearProblem
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

STRUST = Path(__file__).resolve().parent.parent / "target" / "release" / "strust"
MOST_GAP = 1e-8
MOST_APART = 1e-4
POINTS = 0.5
# The sets of --settings: numbers and classes, few and many rows, words, sparse inputs, dirt.
OF_SETTINGS = (
    "diabetes,iris,breast cancer,houses,people,phishing,ijcnn1,COMPAS,German credit,Unix seconds,1e14 + 0…49,"
    "nearly equal,heavy tails,imbalance,units 1e-6…1e6,tiny classes,separable"
).split(",")


class FitFailed(Exception):
    """strust gave no model, or not one of this table."""


def strust(program, data, folder, more):
    """The model, the scores on the test rows, and seconds of the whole program."""
    save = folder / "model.json"
    command = [program, "fit", data.train, "--test", data.test, "--save", save, "--json", *more]
    command += ["--target", data.target] if data.target else []
    began = time.perf_counter()
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    seconds = time.perf_counter() - began
    if done.returncode != 0:
        raise FitFailed(done.stderr.strip().splitlines()[-1])
    score = json.loads(done.stdout)["held_out"]["r2" if data.regression else "accuracy"]
    return json.loads(save.read_text()), score, seconds


def scikit(data, model):
    """Score on the test rows, and seconds."""
    began = time.perf_counter()
    (x, y, tx, ty), encode = data.read()
    pipeline = make_pipeline(encode, model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline.fit(x, y)
    seconds = time.perf_counter() - began
    return pipeline.score(tx, ty), seconds


def distance(data, model):
    """How far a linear model is from its minimum: (gap, difference of the weights or `None`, whether there is one)."""
    try:
        rows, target = data.encoded(model)
    except ValueError as error:
        raise FitFailed(str(error)) from error
    task, layer = model["task"], model["layers"][0]
    weights, bias = np.array(layer["weights"]).T, np.array(layer["bias"])
    if task["kind"] == "regression":
        y, loss = (target.astype(float).to_numpy() - task["mean"]) / task["deviation"], "squares"
    else:
        names = task["names"] if model["target_is_words"] else [float(name) for name in task["names"]]
        position = {name: c for c, name in enumerate(names)}
        cells = target if model["target_is_words"] else target.astype(float)
        y, loss = cells.map(position).to_numpy(), "logistic" if len(names) == 2 else "softmax"
    if weights.shape[0] != rows.shape[1]:
        raise FitFailed(f"the model has {weights.shape[0]} inputs, but its transform gives {rows.shape[1]}")
    problem = LinearProblem(
        rows, y, loss, model["training"]["l2"], classes=weights.shape[1], intercept=model["intercept"]
    )
    at = problem.inside(weights, bias)
    # Many small products: threads would wait for each other.
    with threadpool_limits(1):
        least, x, exists, certain = problem.minimum()
    gap = max(0.0, (problem.value(at) - least) / least) if least > 0 else np.inf
    return gap, problem.apart(at, x) if certain else None, exists


def verdict(gap, apart, exists, end):
    """What is wrong with a linear model, or "ok"."""
    if not exists:
        return "ok" if end == "no-minimum" else f"no minimum, but strust says {end}"
    wrong = []
    if end != "converged":
        wrong.append(end)
    if gap > MOST_GAP:
        wrong.append("gap")
    if apart is not None and apart > MOST_APART:
        wrong.append("weights")
    return ", ".join(wrong) or "ok"


def shown(number):
    """A distance: two digits, and `–` if it is not known."""
    return "–" if number is None else "0" if number == 0 else f"{number:.0e}".replace("e-0", "e-")


def compare_linear(data, args, folder):
    """A row of the table, and whether it is good."""
    other = Ridge() if data.regression else LogisticRegression(max_iter=1000)
    ours, theirs = [], []
    for _ in range(args.repeat):
        ours.append(strust(args.strust, data, folder, []))
        theirs.append(scikit(data, other))
    model, score, _ = ours[0]
    gap, apart, exists = distance(data, model)
    inputs = len(model["layers"][0]["weights"][0])
    wrong = verdict(gap, apart, exists, model["training"]["end"])
    return [
        data.name,
        f"{data.rows} × {inputs}",
        model["model"],
        f"{100 * score:.2f}",
        f"{100 * theirs[0][0]:.2f}",
        shown(gap),
        shown(apart),
        f"{min(seconds for *_, seconds in ours):.2f}",
        f"{min(seconds for _, seconds in theirs):.2f}",
        wrong,
    ], wrong == "ok"


def compare_network(data, args, folder):
    other = MLPRegressor(random_state=SEED) if data.regression else MLPClassifier(random_state=SEED)
    ours, theirs = [], []
    for _ in range(args.repeat):
        ours.append(strust(args.strust, data, folder, ["--model", "mlp"]))
        theirs.append(scikit(data, other))
    seconds, others = min(seconds for *_, seconds in ours), min(seconds for _, seconds in theirs)
    good, fast = 100 * (theirs[0][0] - ours[0][1]) <= POINTS, seconds <= others
    return [
        data.name,
        data.rows,
        type(other).__name__,
        f"{100 * ours[0][1]:.2f}",
        f"{100 * theirs[0][0]:.2f}",
        f"{seconds:.2f}",
        f"{others:.2f}",
        " and ".join(["worse"] * (not good) + ["slower"] * (not fast)) or "ok",
    ], good and fast


def compare(args, folder):
    """Prints a table of all sets. Returns how many rows are wrong."""
    failed, printer = 0, None
    for kind in ["linear", "mlp"] if args.models == "all" else [args.models]:
        if kind == "linear":
            header = ["data", "rows × inputs", "model", "strust", "scikit-learn", "gap", "weights", "strust s"]
            printer = Printer([*header, "scikit-learn s", "verdict"], args.markdown)
        else:
            header = ["data", "rows", "model", "strust", "scikit-learn", "strust s", "scikit-learn s", "verdict"]
            printer = Printer(header, args.markdown)
        for data in data_sets(folder, args.data, args.only):
            try:
                cells, good = (compare_linear if kind == "linear" else compare_network)(data, args, folder)
            except FitFailed as error:
                cells, good = [data.name, data.rows, *[""] * (len(header) - 2), f"failed: {error}"], False
            failed += not good
            printer.row(cells)
    print(f"\n{failed} wrong")
    return failed


def settings(data, folder):
    """(words, table, options of strust) of each fit of --settings."""
    tables = [("", data)]
    if isinstance(data, Table) and not data.dirt:
        tables.append(("other units", data.in_units(folder)))
    for units, table in tables:
        for l2 in ["0", "1e-3", "1", "100"]:
            # Without standardization, the intercept of a column 1e14 + 0…49 is beyond double precision.
            for standardize in [True] if data.name.startswith("1e14") else [True, False]:
                more = ["--l2", l2] + ["--no-standardize"] * (not standardize)
                words = [f"L = {l2}", "" if standardize else "not standardized", units]
                yield ", ".join(word for word in words if word), table, more


def compare_settings(args, folder):
    """Prints the worst gap and weights of each set. Returns how many fits are wrong."""
    header = ["data", "fits", "worst gap", "at", "worst weights", "at", "verdict"]
    printer, failed, worst = Printer(header, args.markdown), 0, [0.0, 0.0]
    for data in data_sets(folder, args.data, args.only or OF_SETTINGS):
        fits, gaps, weights, wrong = 0, [(0.0, "")], [(0.0, "")], []
        for words, table, more in settings(data, folder):
            fits += 1
            try:
                model, *_ = strust(args.strust, table, folder, more)
                gap, apart, exists = distance(table, model)
            except FitFailed as error:
                wrong.append(f"{words}: {error}")
                continue
            if exists:
                gaps.append((gap, words))
                weights.append((apart or 0.0, words))
            found = verdict(gap, apart, exists, model["training"]["end"])
            wrong += [f"{words}: {found}"] * (found != "ok")
        try:
            layers = [strust(args.strust, data, folder, ["--seed", seed])[0]["layers"] for seed in "012"]
            wrong += ["the seed changes the weights"] * (layers[0] != layers[1] or layers[0] != layers[2])
        except FitFailed as error:
            wrong.append(f"a seed: {error}")
        failed += len(wrong)
        gap, apart = max(gaps), max(weights)
        worst = [max(worst[0], gap[0]), max(worst[1], apart[0])]
        printer.row([data.name, fits + 3, shown(gap[0]), gap[1], shown(apart[0]), apart[1], "; ".join(wrong) or "ok"])
    print(f"\nworst gap {worst[0]:.1e}, worst weights {worst[1]:.1e}, {failed} wrong")
    return failed


class Printer:
    """Prints a table row by row."""

    def __init__(self, header, markdown):
        self.markdown, self.widths = markdown, [max(len(name), 14 if name in ("data", "at") else 9) for name in header]
        self.widths[1] = 14
        self.row(header)
        if markdown:
            left = ("data", "model", "at", "verdict")
            print("|" + "|".join("---" if name in left else "---:" for name in header) + "|")

    def row(self, cells):
        if self.markdown:
            print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)
        else:
            print("  ".join(f"{cell!s:<{width}}" for cell, width in zip(cells, self.widths)).rstrip(), flush=True)


def large(program, folder):
    """10⁶ rows × 50 columns: seconds and peak memory."""
    path, rng = folder / "large.csv", np.random.default_rng(SEED)
    weights = rng.normal(size=47)
    with open(path, "w") as file:
        file.write(",".join([f"x{j}" for j in range(47)] + ["city", "plan", "target"]) + "\n")
        for _ in range(100):
            x = rng.normal(size=(10_000, 47)) * np.linspace(0.1, 100, 47)
            city, plan = rng.integers(0, 50, 10_000), rng.integers(0, 3, 10_000)
            z = x @ (weights / np.linspace(0.1, 100, 47)) + 0.1 * (city - 25) + plan
            target = rng.random(10_000) < 1 / (1 + np.exp(-z))
            for i in range(10_000):
                numbers = ",".join(f"{v:.6f}" for v in x[i])
                file.write(f"{numbers},City {city[i]},plan {'abc'[plan[i]]},{'yes' if target[i] else 'no'}\n")
    size = path.stat().st_size
    command = [str(program), "fit", str(path), "--target", "target", "--save", str(folder / "large.json"), "--json"]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    if status != 0:
        sys.exit("strust fit failed on the large file")
    memory = usage.ru_maxrss * 1024
    accuracy = json.loads(out)["held_out"]["accuracy"]
    print(
        f"10⁶ rows × 50 columns, {size / 1e6:.0f} MB: {seconds:.1f} s (processor {usage.ru_utime:.1f} s), "
        f"peak memory {memory / 1e6:.0f} MB = {memory / size:.2f} × the file, accuracy {100 * accuracy:.2f} %"
    )
    return not (seconds < 60 and memory < 3 * size)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with more data sets")
    parser.add_argument("--only", type=lambda names: names.split(","), help="only these sets")
    parser.add_argument("--models", choices=["all", "linear", "mlp"], default="all", help="which models to compare")
    parser.add_argument("--settings", action="store_true", help="repeat fits with other penalties, units and seeds")
    parser.add_argument("--large", action="store_true", help="only measure 10⁶ rows × 50 columns")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the best time counts")
    parser.add_argument("--strust", type=Path, default=STRUST, help="the program")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    args = parser.parse_args()
    if not args.strust.exists():
        sys.exit(f"there is no {args.strust}: run `cargo build --release`")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        if args.large:
            failed = large(args.strust, folder)
        else:
            failed = (compare_settings if args.settings else compare)(args, folder)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
