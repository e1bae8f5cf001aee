#!/usr/bin/env python3
"""Compares `strust fit` with scikit-learn on the same split: accuracy or R², and seconds.

    cargo build --release
    python3 -m venv venv && venv/bin/pip install scikit-learn pandas
    venv/bin/python scripts/fit-reference.py [--data DIR] [--only NAME,...] [--models linear|mlp] [--large] [--markdown]

DIR holds a9a, mushrooms and w8a as LIBSVM text with xz (also in DIR/libsvm) and digits.csv.gz; sets that are missing are
skipped. Three tables with text columns are made here from a seed: a census, house prices and customers who leave.

Each set is split once, and both programs read the same files. The seconds of strust are those of the whole program. The
seconds of scikit-learn are those of reading, encoding and fitting; importing it is not counted. Each is the best of
`--repeat` runs, which alternate. `--large` measures time and peak memory of strust on 10⁶ rows × 50 columns.
"""

import argparse
import json
import lzma
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_svmlight_files
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler

ROOT = Path(__file__).resolve().parent.parent
STRUST = ROOT / "target" / "release" / "strust"
POINTS = 0.5
SEED = 0


def census(rng, n):
    """Like the census of the United States: income above a limit."""
    age = rng.integers(17, 90, n)
    education = rng.choice(
        ["Bachelors", "HS-grad", "Masters", "Doctorate", "Some-college", "11th"],
        n,
        p=[0.17, 0.35, 0.07, 0.02, 0.27, 0.12],
    )
    job = rng.choice(["Tech-support", "Craft-repair", "Sales", "Exec, managerial", 'Other "service"'], n)
    status = rng.choice(["Married", "Never-married", "Divorced", "Widowed"], n, p=[0.47, 0.33, 0.16, 0.04])
    hours = np.clip(rng.normal(40, 12, n), 1, 99).round()
    gain = np.where(rng.random(n) < 0.08, rng.lognormal(8, 1, n).round(), 0)
    country = rng.choice(
        ["United-States", "Mexico", "Philippines", "Germany", "?"], n, p=[0.88, 0.05, 0.03, 0.02, 0.02]
    )
    bonus = (
        pd.Series(education)
        .map({"Bachelors": 1.2, "HS-grad": -0.3, "Masters": 1.9, "Doctorate": 2.6, "Some-college": 0.1, "11th": -1.4})
        .to_numpy()
    )
    work = (
        pd.Series(job)
        .map({"Tech-support": 0.3, "Craft-repair": 0.0, "Sales": 0.2, "Exec, managerial": 1.0, 'Other "service"': -1.0})
        .to_numpy()
    )
    z = -2.6 + bonus + work + 1.6 * (status == "Married") + 0.03 * (hours - 40) + 0.04 * (np.minimum(age, 55) - 40)
    z += 0.0004 * gain
    income = np.where(rng.random(n) < 1 / (1 + np.exp(-z)), ">50K", "<=50K")
    table = pd.DataFrame(
        {
            "age": age,
            "education": education,
            "occupation": job,
            "marital-status": status,
            "hours": hours,
            "capital-gain": gain,
            "country": country,
            "income": income,
        }
    )
    table.loc[rng.random(n) < 0.05, "occupation"] = None
    table.loc[rng.random(n) < 0.03, "hours"] = None
    return table, "income"


def houses(rng, n):
    """Prices of houses in thousands."""
    area = rng.lognormal(4.8, 0.4, n).round(1)
    year = rng.integers(1900, 2024, n)
    town = rng.choice([f"Town {chr(65 + i)}" for i in range(25)], n)
    kind = rng.choice(["detached", "terraced", "flat"], n, p=[0.3, 0.3, 0.4])
    heating = rng.choice(["gas", "oil", "heat pump", None], n, p=[0.5, 0.2, 0.2, 0.1])
    garden = np.where(kind == "flat", 0, rng.gamma(2, 100, n)).round()
    level = {f"Town {chr(65 + i)}": 100 * np.sin(3 * i) for i in range(25)}
    price = 2.1 * area + 0.8 * (year - 1960) + pd.Series(town).map(level).to_numpy() + 0.1 * garden
    price += np.where(kind == "detached", 80, 0) + np.where(heating == "heat pump", 25, 0) + 150 + rng.normal(0, 40, n)
    table = pd.DataFrame(
        {
            "area": area,
            "year": year,
            "town": town,
            "kind": kind,
            "heating": heating,
            "garden": garden,
            "price": price.round(2),
        }
    )
    table.loc[rng.random(n) < 0.04, "year"] = None
    return table, "price"


def churn(rng, n):
    """Customers who leave; the effect of the price depends on the contract, which a linear model cannot follow."""
    contract = rng.choice(["month-to-month", "one year", "two years"], n, p=[0.55, 0.25, 0.2])
    months = rng.integers(0, 72, n)
    price = rng.uniform(18, 120, n).round(2)
    payment = rng.choice(["card", "bank transfer", "check, by mail"], n)
    calls = rng.poisson(1.2, n)
    region = rng.choice([f"R{i:02}" for i in range(40)], n)
    z = np.where(contract == "month-to-month", 0.035 * (price - 60), -1.5 + 0.01 * (60 - price))
    z += 0.45 * calls - 0.03 * months + 0.4 * (payment == "check, by mail") - 0.3
    leaves = np.where(rng.random(n) < 1 / (1 + np.exp(-z)), "yes", "no")
    table = pd.DataFrame(
        {
            "contract": contract,
            "months": months,
            "price": price,
            "payment": payment,
            "calls": calls,
            "region": region,
            "churn": leaves,
        }
    )
    table.loc[rng.random(n) < 0.02, "price"] = None
    return table, "churn"


class Table:
    """A CSV file, split into two."""

    def __init__(self, name, table, target, folder):
        self.name, self.target = name, target
        self.train, self.test = folder / f"{name}-train.csv", folder / f"{name}-test.csv"
        self.regression = table[target].nunique() > 50
        labels = None if self.regression else table[target]
        parts = train_test_split(table, test_size=0.2, random_state=SEED, stratify=labels)
        for part, path in zip(parts, (self.train, self.test)):
            part.to_csv(path, index=False)
        self.rows = len(parts[0])

    def read(self):
        parts = []
        for path in (self.train, self.test):
            table = pd.read_csv(path)
            parts += [table.drop(columns=self.target), table[self.target]]
        text = parts[0].select_dtypes(exclude="number").columns
        numbers = parts[0].columns.difference(text)
        encode = make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
            (OneHotEncoder(handle_unknown="ignore"), text),
        )
        return parts, encode


class Sparse:
    """LIBSVM text, split into two."""

    regression = False
    target = None

    def __init__(self, name, source, folder):
        self.name = name
        self.train, self.test = folder / f"{name}-train.svm", folder / f"{name}-test.svm"
        lines = lzma.open(source, "rt").read().splitlines()
        labels = [line.split(" ", 1)[0] for line in lines]
        parts = train_test_split(lines, test_size=0.2, random_state=SEED, stratify=labels)
        for part, path in zip(parts, (self.train, self.test)):
            path.write_text("\n".join(part) + "\n")
        self.rows = len(parts[0])

    def read(self):
        return load_svmlight_files([str(self.train), str(self.test)]), MaxAbsScaler()


def scikit(data, model):
    """Score on the test part, and seconds."""
    began = time.perf_counter()
    (x, y, tx, ty), encode = data.read()
    pipeline = make_pipeline(encode, model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline.fit(x, y)
    score = pipeline.score(tx, ty)
    return score, time.perf_counter() - began


def strust(data, more, folder):
    """Score on the test part, and seconds of the whole program."""
    command = [STRUST, "fit", data.train, "--test", data.test, "--save", folder / "model.json", "--json", *more]
    command += ["--target", data.target] if data.target else []
    began = time.perf_counter()
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    seconds = time.perf_counter() - began
    if done.returncode != 0:
        sys.exit(f"strust fit failed on {data.name}: {done.stderr}")
    scores = json.loads(done.stdout)["held_out"]
    return scores["r2" if data.regression else "accuracy"], seconds


def models(data):
    """Pairs of a scikit-learn model and the options of strust."""
    if data.regression:
        network = MLPRegressor(random_state=SEED)
        return [("Ridge", Ridge(), []), ("MLPRegressor", network, ["--model", "mlp"])]
    linear = LogisticRegression(max_iter=1000)
    network = MLPClassifier(random_state=SEED)
    return [("LogisticRegression", linear, []), ("MLPClassifier", network, ["--model", "mlp"])]


def data_sets(folder, data):
    rng = np.random.default_rng(SEED)
    for name, make, rows in [("census", census, 30_000), ("houses", houses, 20_000), ("churn", churn, 20_000)]:
        yield Table(name, *make(rng, rows), folder)
    if data is None:
        return
    digits = data / "digits.csv.gz"
    if digits.exists():
        table = pd.read_csv(digits, header=None)
        table.columns = [f"p{j}" for j in range(table.shape[1] - 1)] + ["digit"]
        yield Table("digits", table, "digit", folder)
    for name in ["mushrooms", "a9a", "w8a"]:
        places = [data / "libsvm" / f"{name}.xz", data / f"{name}.xz"]
        source = next((place for place in places if place.exists()), None)
        if source:
            yield Sparse(name, source, folder)


def compare(folder, args):
    header = ["data", "rows", "model", "strust", "scikit-learn", "strust s", "scikit-learn s", "verdict"]
    print(row(header, args.markdown))
    if args.markdown:
        print("|---|" + "---:|" * (len(header) - 1))
    failed = 0
    for data in data_sets(folder, args.data):
        if args.only and data.name not in args.only:
            continue
        linear, network = models(data)
        for name, model, more in {"linear": [linear], "mlp": [network], "all": [linear, network]}[args.models]:
            ours, theirs = [], []
            for _ in range(args.repeat):
                ours.append(strust(data, more, folder))
                theirs.append(scikit(data, model))
            (score, _), (other, _) = ours[0], theirs[0]
            seconds, others = min(s for _, s in ours), min(s for _, s in theirs)
            good, fast = 100 * (other - score) <= POINTS, seconds <= others
            failed += not (good and fast)
            verdict = " and ".join(["worse"] * (not good) + ["slower"] * (not fast)) or "ok"
            cells = [
                data.name,
                data.rows,
                name,
                f"{100 * score:.2f}",
                f"{100 * other:.2f}",
                f"{seconds:.2f}",
                f"{others:.2f}",
                verdict,
            ]
            print(row(cells, args.markdown), flush=True)
    print(f"\n{failed} of the rows are worse by more than {POINTS} points or slower")
    return failed


def row(cells, markdown):
    if markdown:
        return "| " + " | ".join(str(cell) for cell in cells) + " |"
    return "  ".join(f"{cell!s:<{width}}" for cell, width in zip(cells, [10, 6, 19, 7, 13, 9, 15, 10]))


def large(folder):
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
    command = [str(STRUST), "fit", str(path), "--target", "target", "--save", str(folder / "large.json"), "--json"]
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
    parser.add_argument("--data", type=Path, help="folder with a9a, mushrooms, w8a and digits")
    parser.add_argument("--only", type=lambda names: names.split(","), help="only these sets")
    parser.add_argument("--models", choices=["all", "linear", "mlp"], default="all", help="which models to compare")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the best time counts")
    parser.add_argument("--large", action="store_true", help="only measure 10⁶ rows × 50 columns")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    args = parser.parse_args()
    if not STRUST.exists():
        sys.exit(f"there is no {STRUST}: run `cargo build --release`")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        sys.exit(1 if (large(folder) if args.large else compare(folder, args)) else 0)


if __name__ == "__main__":
    main()
