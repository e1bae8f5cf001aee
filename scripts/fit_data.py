"""The data sets of fit-reference.py: real ones, made ones, and dirty ones with a clean twin.

strust reads the dirty files. The reference and scikit-learn read the clean twin, which has the same rows as plain
numbers and words, so they never parse dirt.
"""

import lzma

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn import datasets
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler

SEED = 0
# What strust reads as a blank cell in any column.
BLANKS = ["", "?", "na", "n/a", "nan", "null"]


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


def rows_with_dirt(rng, n=3000):
    """Numbers, words and a class that depends on them. The dirty sets write them in other ways."""
    amount, share = rng.gamma(2, 2000, n).round(2), rng.uniform(0, 100, n).round(1)
    count, kind = rng.integers(0, 40, n).astype(float), rng.choice(["new", "used", "open box"], n)
    z = 0.0004 * (amount - 4000) - 0.02 * (share - 50) + 0.05 * (count - 20) + (kind == "new")
    sold = np.where(rng.random(n) < 1 / (1 + np.exp(-z)), "yes", "no")
    return pd.DataFrame({"amount": amount, "share": share, "count": count, "kind": kind, "sold": sold})


def with_column(rng, name, values, effect, *, n=3000):
    """The same with one more column, which has an effect on a number to predict."""
    table = rows_with_dirt(rng, n).drop(columns="sold")
    table[name] = values
    table["price"] = (0.01 * table["amount"] - 0.2 * table["share"] + effect + rng.normal(0, 10, n)).round(4)
    return table


def blank_some(rng, table, columns, share=0.1):
    for column in columns:
        table.loc[rng.random(len(table)) < share, column] = None
    return table


def written(write, blanks=("",)):
    """A function that writes a cell, and blanks in turn as each of `blanks`."""
    turn = iter(range(1 << 30))
    return lambda v: blanks[next(turn) % len(blanks)] if pd.isna(v) else write(v)


def european(v):
    return f"{v:,.2f}".translate(str.maketrans(",.", ".,"))


def dirty_sets(rng):
    """(name, clean table, target, what writes the cells of a column, columns of numbers in the model)."""
    n = 3000
    sentinels = written(repr, ["-", ".", "None", "unknown", "n/a", ""])
    table = blank_some(rng, rows_with_dirt(rng), ["amount", "share", "count"])
    dirt = {"amount": sentinels, "share": sentinels, "count": sentinels}
    yield "sentinels", table, "sold", dirt, ["amount", "share", "count"]

    money = {"amount": "${:,.2f}".format, "share": "{}%".format}
    yield "money", rows_with_dirt(rng), "sold", money, ["amount", "share"]
    money = {"amount": written("{:,.2f} €".format, ["-", ""]), "share": "{:.1f} %".format}
    yield "euros", blank_some(rng, rows_with_dirt(rng), ["amount"]), "sold", money, ["amount", "share"]
    yield "decimal comma", rows_with_dirt(rng), "sold", {"amount": european, "share": european}, ["amount", "share"]

    day = np.sort(rng.integers(18_000, 19_500, n)).astype(float)
    dates = pd.to_datetime(day, unit="D")
    table = with_column(rng, "day", day, 0.02 * (day - 18_750) + 15 * (dates.month == 12) + 10 * (dates.weekday == 5))
    table["day month"], table["day weekday"] = dates.month_name(), dates.day_name()
    as_date = {"day": lambda v: f"{pd.Timestamp(v, unit='D'):%Y-%m-%d}", "day month": None, "day weekday": None}
    yield "ISO dates", table, "price", as_date, ["day"]

    yield "identifier", with_column(rng, "id", np.arange(1, n + 1), 0), "price", {}, []
    seconds = rng.integers(1_600_000_000, 1_700_000_000, n)
    yield "Unix seconds", with_column(rng, "time", seconds, 1e-6 * (seconds - 1.65e9)), "price", {}, ["time"]
    steps = rng.integers(0, 50, n)
    yield "1e14 + 0…49", with_column(rng, "far", 1e14 + steps, steps), "price", {"far": "{:.0f}".format}, ["far"]
    huge = np.where(rng.random(n) < 0.002, 1e39, rng.normal(size=n))
    yield "cells of 1e39", with_column(rng, "huge", huge, 50.0 * (huge > 1e30)), "price", {}, ["huge"]

    x = rng.normal(size=n)
    table = with_column(rng, "first", x, 20 * x)
    table["second"], table["third"] = x + 1e-6 * rng.normal(size=n), 3 * x + 1e-4 * rng.normal(size=n)
    yield "nearly equal", table, "price", {}, ["first", "second", "third"]
    tails = rng.standard_cauchy(n)
    table = with_column(rng, "tail", tails, 10 * np.tanh(tails))
    table["tail2"] = rng.lognormal(0, 4, n)
    yield "heavy tails", table, "price", {}, ["tail", "tail2"]
    table = rows_with_dirt(rng, 20_000)
    z = 0.05 * (table["count"] - 20) + 0.01 * (table["share"] - 50) - 5.5
    table["sold"] = np.where(rng.random(20_000) < 1 / (1 + np.exp(-z)), "yes", "no")
    yield "imbalance", table, "sold", {}, []
    yield "mostly blank", blank_some(rng, rows_with_dirt(rng), ["amount", "count", "kind"], 0.7), "sold", {}, []
    x = rng.normal(size=(n, 13)) + rng.normal(size=13)
    table = pd.DataFrame(x * 10.0 ** np.arange(-6, 7), columns=[f"x{j}" for j in range(13)])
    table["price"] = x @ rng.normal(size=13) + rng.normal(size=n)
    yield "units 1e-6…1e6", table, "price", {}, list(table.columns[:13])

    yield "tiny classes", rows_with_dirt(rng, 20), "sold", {}, []
    yield "tiny numbers", with_column(rng, "x", rng.normal(size=10), 0, n=10), "price", {}, []
    table = rows_with_dirt(rng)
    table["sold"] = np.where(table["amount"] > 4000, "yes", "no")
    yield "separable", table, "sold", {}, []
    x = rng.normal(size=(1000, 8))
    exact = pd.DataFrame(x, columns=[f"x{j}" for j in range(8)])
    exact["y"] = x @ np.arange(1, 9)
    yield "no noise", exact, "y", {}, []
    x = rng.normal(size=(200, 400))
    wide = pd.DataFrame(x, columns=[f"x{j}" for j in range(400)])
    wide["y"] = np.where(x[:, :5].sum(axis=1) + rng.normal(size=200) > 0, "a", "b")
    yield "wide", wide, "y", {}, []
    x, y = datasets.make_classification(
        6000, 15, n_informative=10, n_classes=20, n_clusters_per_class=1, random_state=SEED
    )
    classes = pd.DataFrame(x, columns=[f"x{j}" for j in range(15)])
    classes["y"] = [f"class {c}" for c in y]
    yield "twenty classes", classes, "y", {}, []


def words_of_texts():
    """Like words in texts: frequent and rare features, and labels with noise."""
    rng = np.random.default_rng(SEED)
    n, d, words = 10_000, 5_000, 40
    columns = np.minimum(rng.zipf(1.3, (n, words)) - 1, d - 1)
    x = sparse.csr_matrix((np.ones(n * words), (np.repeat(np.arange(n), words), columns.ravel())), shape=(n, d))
    x.sum_duplicates()
    score = x @ rng.normal(size=d)
    labels = np.where(score - np.median(score) + rng.normal(size=n) > 0, 1, -1)
    for i in range(n):
        part = slice(x.indptr[i], x.indptr[i + 1])
        yield f"{labels[i]} " + " ".join(f"{j + 1}:{v:.0f}" for j, v in zip(x.indices[part], x.data[part]))


class Table:
    """A CSV file in two parts. `dirt` writes the cells of a column; `None` leaves it out of the file of strust."""

    def __init__(self, name, table, target, folder, *, test=None, dirt=None, needed=()):
        self.name, self.target, self.table = name, target, table
        self.needed, self.dirt = needed, dirt or {}
        numbers = pd.api.types.is_numeric_dtype(table[target])
        self.regression = numbers and (table[target].nunique() > 20 or (table[target] % 1 != 0).any())
        labels = None if self.regression else table[target]
        parts = (table, test)
        if test is None and "id" in table:
            # An identifier numbers the rows of a file from 1.
            parts = table[: 4 * len(table) // 5], table[4 * len(table) // 5 :]
        elif test is None:
            parts = train_test_split(table, test_size=0.2, random_state=SEED, stratify=labels)
        stem = name.replace(" ", "-").replace("…", "-")
        self.train, self.test = (folder / f"{stem}-{part}.csv" for part in ("train", "test"))
        self.clean = self.train, self.test
        if self.dirt:
            self.clean = tuple(folder / f"{stem}-{part}-clean.csv" for part in ("train", "test"))
        for part, path, clean in zip(parts, (self.train, self.test), self.clean):
            part.to_csv(clean, index=False)
            if self.dirt:
                part = part.drop(columns=[column for column, write in self.dirt.items() if write is None])
                for column, write in self.dirt.items():
                    if write is not None:
                        part[column] = part[column].map(write)
                part.to_csv(path, index=False)
        self.rows = len(parts[0])

    def in_units(self, folder):
        """The same with columns of numbers multiplied by 10⁻⁶ to 10⁶."""
        table, power = self.table.copy(), -6
        for column in table.columns.drop(self.target):
            if pd.api.types.is_numeric_dtype(table[column]):
                table[column] = table[column] * 10.0**power
                power = 6 if power == -6 else -6 if power == 3 else power - 3
        return Table(f"{self.name} in units", table, self.target, folder)

    def read(self):
        """Both parts as scikit-learn needs them, and its transform."""
        parts = []
        for path in self.clean:
            table = pd.read_csv(path)
            parts += [table.drop(columns=self.target), table[self.target]]
        text = parts[0].select_dtypes(exclude="number").columns
        numbers = parts[0].columns.difference(text)
        encode = make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
            (OneHotEncoder(handle_unknown="ignore"), text),
        )
        return parts, encode

    def encoded(self, model):
        """The training rows as the transform of the model encodes them: inputs, and cells of the target."""
        cells = pd.read_csv(self.clean[0], dtype=str, keep_default_na=False)
        target, n = cells.pop(self.target), len(cells)
        dense, hot = [], []
        found = {column["name"]: column["kind"] for column in model["encoder"]["columns"]}
        for name in self.needed:
            if found.get(name) != "number":
                raise ValueError(f"`{name}` is no column of numbers in the model")
        for column in model["encoder"]["columns"]:
            if column["name"] not in cells:
                raise ValueError(f"the model has a column `{column['name']}`, but the table has none")
            texts = cells[column["name"]]
            blank = texts.str.lower().isin(BLANKS)
            if column["kind"] == "number":
                values = texts.mask(blank, "nan").to_numpy(object).astype(float)
                values[blank.to_numpy()] = column["fill"]
                dense.append((values - column["shift"]) / column["scale"])
            else:
                codes = pd.Categorical(texts.mask(blank, ""), categories=column["levels"]).codes
                (known,) = np.nonzero(codes >= 0)
                shape = (n, len(column["levels"]))
                hot.append(sparse.csr_matrix((np.ones(len(known)), (known, codes[known])), shape=shape))
        dense = np.column_stack(dense) if dense else np.zeros((n, 0))
        inputs = dense.shape[1] + sum(block.shape[1] for block in hot)
        if n * inputs <= 20_000_000:
            return np.hstack([dense] + [block.toarray() for block in hot]), target
        return sparse.hstack([sparse.csr_matrix(dense), *hot]).tocsr(), target


class Sparse:
    """LIBSVM text in two parts."""

    regression, target = False, None

    def __init__(self, name, lines, folder):
        self.name = name
        self.train, self.test = folder / f"{name}-train.svm", folder / f"{name}-test.svm"
        labels = [line.split(" ", 1)[0] for line in lines]
        parts = train_test_split(lines, test_size=0.2, random_state=SEED, stratify=labels)
        for part, path in zip(parts, (self.train, self.test)):
            path.write_text("\n".join(part) + "\n")
        self.rows = len(parts[0])

    def read(self):
        return datasets.load_svmlight_files([str(self.train), str(self.test)], zero_based=False), MaxAbsScaler()

    def encoded(self, model):
        scales = np.array(model["encoder"]["sparse_scales"])
        rows, labels = datasets.load_svmlight_file(str(self.train), n_features=len(scales), zero_based=False)
        rows = (rows @ sparse.diags(1 / scales)).tocsr()
        rows = rows.toarray() if np.prod(rows.shape) <= 20_000_000 else rows
        return rows, pd.Series(labels).astype(str)


def data_sets(folder, data, wanted):
    """Functions that make the data sets, by name. `data` is a folder with more of them, or `None`."""

    def bundled(load, target="target", **more):
        frame = load(as_frame=True, **more).frame
        return lambda name: Table(name, frame.rename(columns={"target": target}), target, folder)

    def from_libsvm(file):
        places = [place / f"{file}.xz" for place in (data / "libsvm", data)] if data else []
        source = next((place for place in places if place.exists()), None)
        return source and (lambda name: Sparse(name, lzma.open(source, "rt").read().splitlines(), folder))

    def from_fair(file, target):
        places = [data / "fair", data] if data else []

        def read(path):
            return pd.read_csv(path, keep_default_na=False, na_values=[""], low_memory=False)

        for place in places:
            if (place / f"{file}.csv.xz").exists():
                return lambda name: Table(name, read(place / f"{file}.csv.xz"), target, folder)
            train, test = place / f"{file}-train.csv.xz", place / f"{file}-test.csv.xz"
            if train.exists() and test.exists():
                return lambda name: Table(name, read(train), target, folder, test=read(test))
        return None

    rng = np.random.default_rng(SEED)
    # One stream of random numbers, so the order matters.
    people, homes, customers = census(rng, 30_000), houses(rng, 20_000), churn(rng, 20_000)

    sets = {
        "diabetes": bundled(datasets.load_diabetes, scaled=False),
        "iris": bundled(datasets.load_iris),
        "wine": bundled(datasets.load_wine),
        "breast cancer": bundled(datasets.load_breast_cancer),
        "digits": bundled(datasets.load_digits),
        "people": lambda name: Table(name, *people, folder),
        "houses": lambda name: Table(name, *homes, folder),
        "churn": lambda name: Table(name, *customers, folder),
        "words": lambda name: Sparse(name, list(words_of_texts()), folder),
        "mushrooms": from_libsvm("mushrooms"),
        "phishing": from_libsvm("phishing"),
        "a9a": from_libsvm("a9a"),
        "ijcnn1": from_libsvm("ijcnn1.tr"),
        "w8a": from_libsvm("w8a"),
        "German credit": from_fair("german", "credit"),
        "COMPAS": from_fair("compas", "two_year_recid"),
        "Adult": from_fair("adult", "income"),
        "KDD Census": from_fair("census", "income"),
    }
    for name, table, target, dirt, needed in dirty_sets(np.random.default_rng(SEED)):
        sets[name] = lambda name, parts=(table, target), more=dict(dirt=dirt, needed=needed): Table(
            name, *parts, folder, **more
        )
    unknown = [name for name in wanted or [] if name not in sets]
    if unknown:
        raise SystemExit(f"there is no data set {unknown[0]!r}: choose from {', '.join(sets)}")
    for name, make in sets.items():
        if make is None and (wanted is None or name in wanted):
            print(f"{name}: skipped, because --data has no such file", flush=True)
        elif wanted is None or name in wanted:
            yield make(name)
