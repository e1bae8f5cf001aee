#!/usr/bin/env python3
"""Runs SciPy on the problems of `strust reproduce second-order`, for the table beside ours.

    python3 scripts/second-order-reference.py FILE [FOLDER]

trust-ncg, trust-krylov and L-BFGS-B minimize every problem with exact gradients and Hessian products to a gradient norm
of 1e-8, or until they give up. FOLDER holds the data sets a9a.xz and mushrooms.xz; without it, these two are left out.

The functions are those of the example `serve_problems`, which cargo builds. It evaluates the small problems itself, so
their seconds say nothing and are left out, except for those with 100 variables that are also written in NumPy here. Of
the larger problems it gives the data, the start, and f and its gradient there, which the functions in NumPy must
repeat.

FILE has a list `problems`. Each has its `name`, its number of `variables` and a list `methods` of

    name         trust-ncg, trust-krylov or l-bfgs-b
    solved       whether the gradient norm is at most 1e-8 * max(1, |f|)
    iterations   outer iterations
    values       evaluations of f
    gradients    evaluations of the gradient (L-BFGS-B: with each value)
    products     products with the Hessian
    value        f at the end
    gradient     the norm of the gradient at the end
    seconds      the shortest of five runs (of one if it takes over a second) on one thread, or null if the example
                 evaluates f
"""

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

# Several threads slow down such small products. This must be set before NumPy is imported.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from scipy.optimize import minimize, rosen, rosen_der, rosen_hess_prod
from scipy.sparse import csr_array
from scipy.special import expit, log_softmax, softmax

ROOT = Path(__file__).resolve().parent.parent
TOLERANCE = 1e-8
MOST_ITERATIONS = 3000
RUNS = 5
METHODS = {"trust-ncg": "trust-ncg", "trust-krylov": "trust-krylov", "l-bfgs-b": "L-BFGS-B"}


class Served:
    """A small problem, evaluated by the example. The last point is kept."""

    timed = False

    def __init__(self, server, known):
        self.server, self.name, self.x = server, known["name"], None

    def ask(self, *vectors):
        return self.server.ask(" ".join([self.name, *(repr(float(v)) for x in vectors for v in x)]))

    def at(self, x):
        if self.x is None or not np.array_equal(x, self.x):
            self.x, self.answer = np.array(x), self.ask(x)
        return self.answer

    def f(self, x):
        value = self.at(x)["f"]
        return np.inf if value is None else value

    def gradient(self, x):
        return np.array(self.at(x)["g"], dtype=float)

    def product(self, x, v):
        return np.array(self.ask(x, v)["product"], dtype=float)


class Written:
    """A problem in NumPy."""

    timed = True

    def __init__(self, f, gradient, product):
        self.f, self.gradient, self.product = f, gradient, product


def of_residuals(residuals, pull, push, second):
    """f = sum of r^2 with J^T y, J v and the sum of y_i (second derivative of r_i) v."""

    def product(x, v):
        return 2 * pull(x, push(x, v)) + 2 * second(x, residuals(x), v)

    return Written(lambda x: float(np.sum(residuals(x) ** 2)), lambda x: 2 * pull(x, residuals(x)), product)


def extended_rosenbrock():
    def interleaved(a, b):
        return np.stack([a, b], axis=1).ravel()

    return of_residuals(
        lambda x: interleaved(10 * (x[1::2] - x[::2] ** 2), 1 - x[::2]),
        lambda x, y: interleaved(-20 * x[::2] * y[::2] - y[1::2], 10 * y[::2]),
        lambda x, v: interleaved(10 * v[1::2] - 20 * x[::2] * v[::2], -v[::2]),
        lambda x, y, v: interleaved(-20 * y[::2] * v[::2], 0 * v[1::2]),
    )


def variably_dimensioned(n):
    j = np.arange(1.0, n + 1)

    def last(x):
        return j @ (x - 1)

    return of_residuals(
        lambda x: np.concatenate([x - 1, [last(x), last(x) ** 2]]),
        lambda x, y: y[:n] + j * (y[n] + 2 * last(x) * y[n + 1]),
        lambda x, v: np.concatenate([v, [j @ v, 2 * last(x) * (j @ v)]]),
        lambda x, y, v: 2 * y[n + 1] * (j @ v) * j,
    )


def broyden_tridiagonal():
    def shifted(x, by):
        y = np.zeros_like(x)
        if by > 0:
            y[by:] = x[:-by]
        else:
            y[:by] = x[-by:]
        return y

    return of_residuals(
        lambda x: (3 - 2 * x) * x - shifted(x, 1) - 2 * shifted(x, -1) + 1,
        lambda x, y: (3 - 4 * x) * y - shifted(y, -1) - 2 * shifted(y, 1),
        lambda x, v: (3 - 4 * x) * v - shifted(v, 1) - 2 * shifted(v, -1),
        lambda x, y, v: -4 * y * v,
    )


def least_squares(data):
    a, b = np.array(data["rows"]), np.array(data["targets"])
    n = len(b)
    return Written(
        lambda x: float(np.sum((a @ x - b) ** 2)) / (2 * n),
        lambda x: a.T @ (a @ x - b) / n,
        lambda _, v: a.T @ (a @ v) / n,
    )


def factorization(data):
    matrix = np.array(data["rows"])
    (m, n) = matrix.shape

    def split(x):
        both = x.reshape(-1, m + n).T  # column by column
        return both[:m], both[m:]

    def joined(u, v):
        return np.concatenate([u, v]).T.ravel() / m

    def value(x):
        u, v = split(x)
        return float(np.sum((u @ v.T - matrix) ** 2)) / (2 * m)

    def gradient(x):
        u, v = split(x)
        rest = u @ v.T - matrix
        return joined(rest @ v, rest.T @ u)

    def product(x, direction):
        (u, v), (du, dv) = split(x), split(direction)
        rest, change = u @ v.T - matrix, du @ v.T + u @ dv.T
        return joined(change @ v + rest @ dv, change.T @ u + rest.T @ du)

    return Written(value, gradient, product)


def logistic(data):
    starts = np.concatenate([[0], np.cumsum([len(row) for row in data["indices"]])])
    indices, values = np.concatenate(data["indices"]), np.concatenate(data["values"])
    labels, strength = np.array(data["labels"]), data["regularization"]
    a = csr_array((values, indices, starts), shape=(len(labels), data["columns"]))
    signs, n = np.where(labels == labels.max(), 1.0, -1.0), len(labels)
    transposed = a.T.tocsr()

    def product(x, v):
        p = expit(a @ x)
        return transposed @ (p * (1 - p) * (a @ v)) / n + strength * v

    return Written(
        lambda x: float(np.mean(np.logaddexp(0, -signs * (a @ x)))) + strength / 2 * float(x @ x),
        lambda x: -(transposed @ (signs * expit(-signs * (a @ x)))) / n + strength * x,
        product,
    )


def digits(data):
    a, labels = np.array(data["columns"]).T, np.array(data["labels"])
    return a, labels, np.eye(labels.max() + 1)[labels]


def softmax_regression(data):
    a, labels, hot = digits(data)
    (n, d), strength = a.shape, data["regularization"]

    def weights(x):
        return x.reshape(-1, d).T

    def flat(w):
        return w.T.ravel()

    def product(x, v):
        p, scores = softmax(a @ weights(x), axis=1), a @ weights(v)
        change = p * (scores - np.sum(p * scores, axis=1, keepdims=True))
        return flat(a.T @ change) / n + strength * v

    def value(x):
        return strength / 2 * float(x @ x) - float(np.mean(log_softmax(a @ weights(x), axis=1)[np.arange(n), labels]))

    return Written(
        value,
        lambda x: flat(a.T @ (softmax(a @ weights(x), axis=1) - hot)) / n + strength * x,
        product,
    )


def mlp(data):
    """One hidden layer of 16 tanh units. A layer is a matrix [W b], column by column."""
    a, labels, hot = digits(data)
    (n, d), classes, hidden = a.shape, hot.shape[1], 16
    a = np.hstack([a, np.ones((n, 1))])
    cut = hidden * (d + 1)

    def layers(x):
        return x[:cut].reshape(d + 1, hidden), x[cut:].reshape(hidden + 1, classes)

    def forward(x):
        first, second = layers(x)
        units = np.tanh(a @ first)
        return first, second, units, units @ second[:-1] + second[-1]

    def with_one(units, one):
        return np.hstack([units, np.full((n, 1), one)])

    def value(x):
        return -float(np.mean(log_softmax(forward(x)[3], axis=1)[np.arange(n), labels]))

    def gradient(x):
        _, second, units, scores = forward(x)
        error = (softmax(scores, axis=1) - hot) / n
        back = (error @ second[:-1].T) * (1 - units**2)
        return np.concatenate([(a.T @ back).ravel(), (with_one(units, 1.0).T @ error).ravel()])

    def product(x, v):
        _, second, units, scores = forward(x)
        of_first, of_second = layers(v)
        p, slope = softmax(scores, axis=1), 1 - units**2
        error = (p - hot) / n
        r_units = slope * (a @ of_first)
        r_scores = r_units @ second[:-1] + units @ of_second[:-1] + of_second[-1]
        r_error = p * (r_scores - np.sum(p * r_scores, axis=1, keepdims=True)) / n
        back = error @ second[:-1].T
        r_back = (r_error @ second[:-1].T + error @ of_second[:-1].T) * slope - 2 * back * units * r_units
        r_second = with_one(r_units, 0.0).T @ error + with_one(units, 1.0).T @ r_error
        return np.concatenate([(a.T @ r_back).ravel(), r_second.ravel()])

    return Written(value, gradient, product)


KINDS = {
    "least-squares": least_squares,
    "factorization": factorization,
    "logistic": logistic,
    "softmax": softmax_regression,
    "mlp": mlp,
}
SMALL = {
    "chained-rosenbrock-100": Written(rosen, rosen_der, rosen_hess_prod),
    "extended-rosenbrock-100": extended_rosenbrock(),
    "variably-dimensioned-100": variably_dimensioned(100),
    "broyden-tridiagonal-100": broyden_tridiagonal(),
}


class Server:
    """The example `serve_problems`."""

    def __init__(self, folder):
        command = ["cargo", "run", "-q", "-p", "strust-problems", "--example", "serve_problems", "--", "second-order"]
        command += [str(Path(folder).resolve())] if folder else []
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            sys.exit("the example `serve_problems` did not start: see its message above")
        self.problems = json.loads(line)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def problem_of(server, known):
    """The functions of a problem. Those in NumPy must agree with the example at and near the start."""
    start = np.array(known["start"])
    served = Served(server, known) if known["kind"] == "squares" else None
    written = SMALL.get(known["name"]) if served else KINDS[known["kind"]](known["data"])
    if written is None:
        return served
    f, g = (served.f(start), served.gradient(start)) if served else (known["f"], np.array(known["g"]))
    errors = [abs(written.f(start) - f) / abs(f), np.linalg.norm(written.gradient(start) - g) / np.linalg.norm(g)]
    v = np.sin(np.arange(len(start)) + 1.0)
    v, h = v / np.linalg.norm(v), 1e-5
    exact = written.product(start, v)
    difference = (written.gradient(start + h * v) - written.gradient(start - h * v)) / (2 * h)
    if max(errors) > 1e-10 or np.linalg.norm(exact - difference) > 1e-6 * np.linalg.norm(exact):
        sys.exit(f"{known['name']}: the functions in NumPy are not those of the example: {errors}")
    return written


def attempt(problem, start, name):
    """SciPy's result on a problem, as described above."""
    counts = {"values": 0, "gradients": 0, "products": 0}

    def counted(kind, function):
        def call(*arguments):
            counts[kind] += 1
            return function(*arguments)

        return call

    def run():
        for kind in counts:
            counts[kind] = 0
        options = {"gtol": TOLERANCE, "maxiter": MOST_ITERATIONS}
        products = {"hessp": counted("products", problem.product)}
        if name == "l-bfgs-b":
            options, products = {**options, "ftol": 0, "maxfun": 10 * MOST_ITERATIONS}, {}
            # Its tolerance is on the largest component.
            options["gtol"] = TOLERANCE / np.sqrt(len(start))
        began = time.perf_counter()
        result = minimize(
            counted("values", problem.f),
            start,
            jac=counted("gradients", problem.gradient),
            method=METHODS[name],
            options=options,
            **products,
        )
        return result, time.perf_counter() - began

    result, seconds = run()
    # trust-krylov does not always repeat its numbers: all but the seconds are those of the first run.
    first = dict(counts)
    if problem.timed and seconds < 1:
        seconds = min(seconds, *(run()[1] for _ in range(RUNS - 1)))
    value, gradient = problem.f(result.x), float(np.linalg.norm(problem.gradient(result.x)))
    return {
        "name": name,
        "solved": bool(gradient <= TOLERANCE * max(1.0, abs(value))),
        "iterations": int(result.nit),
        **first,
        "value": value,
        "gradient": gradient,
        "seconds": seconds if problem.timed else None,
    }


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.strip())
    # SciPy warns about overflow in trial points. The results show what they mean.
    warnings.simplefilter("ignore")
    server = Server(sys.argv[2] if len(sys.argv) == 3 else None)
    problems = []
    for known in server.problems:
        problem, start = problem_of(server, known), np.array(known["start"])
        methods = []
        for name in METHODS:
            try:
                methods.append(attempt(problem, start, name))
            except (ValueError, np.linalg.LinAlgError) as error:
                print(f"{name} on {known['name']}: {error}", file=sys.stderr)
        problems.append({"name": known["name"], "variables": len(start), "methods": methods})
        for m in methods:
            seconds = "" if m["seconds"] is None else f"{m['seconds']:9.4f} s"
            counts = f"{m['iterations']:6} {m['values']:6} {m['gradients']:6} {m['products']:6}"
            row = f"{known['name']:30} {m['name']:13} {m['solved']!s:5} {counts} {m['gradient']:.1e} {seconds}"
            print(row, file=sys.stderr)
    Path(sys.argv[1]).write_text(json.dumps({"problems": problems}, indent=1) + "\n")


if __name__ == "__main__":
    main()
