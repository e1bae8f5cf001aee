#!/usr/bin/env python3
"""Runs other programs on the small constrained problems, for `strust reproduce constrained --reference FILE`.

    python3 scripts/constrained-reference.py FILE

SciPy's SLSQP and trust-constr solve every problem with exact derivatives and tight tolerances. pymanopt and cooper
solve problems on manifolds and with networks, which the small problems are not: the script only says whether they can be
imported. The functions come from the example `serve_problems`, which cargo builds, so all programs minimize the same
functions.
"""

import importlib.util
import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.optimize import LinearConstraint, NonlinearConstraint, lsq_linear, minimize

ROOT = Path(__file__).resolve().parent.parent
# f and the violation must be as small as this where a problem counts as solved.
SOLVED = 1e-6
# Rows and bounds that are this close to their limit may have a multiplier.
ACTIVE = 1e-5
MOST_ITERATIONS = {"slsqp": 1000, "trust-constr": 1000}


class Server:
    """The problems of the example `serve_problems`."""

    def __init__(self):
        command = ["cargo", "run", "-q", "-p", "strust-problems", "--example", "serve_problems"]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.problems = json.loads(self.process.stdout.readline())

    def evaluate(self, name, x):
        self.process.stdin.write(" ".join([name, *(repr(float(v)) for v in x)]) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        # A number that is not finite is null.
        return {key: np.array(value, dtype=float) for key, value in answer.items()}


class Problem:
    """One problem. Its last point is kept, so that f, c and their derivatives cost one request."""

    def __init__(self, server, known):
        self.server, self.known = server, known
        self.start = np.array(known["start"], dtype=float)
        self.lower = np.array([-np.inf if v is None else v for v in known["lower"]])
        self.upper = np.array([np.inf if v is None else v for v in known["upper"]])
        self.equalities, self.inequalities = known["equalities"], known["inequalities"]
        self.x, self.gradients = None, 0

    def at(self, x):
        if self.x is None or not np.array_equal(x, self.x):
            self.x, self.values = np.array(x, dtype=float), self.server.evaluate(self.known["name"], x)
        return self.values

    def f(self, x):
        return float(self.at(x)["f"])

    def gradient(self, x):
        self.gradients += 1
        return self.at(x)["g"]

    def rows(self, x):
        return self.at(x)["c"]

    def jacobian(self, x):
        return self.at(x)["jacobian"].reshape(len(self.rows(x)), len(x))

    def violation(self, x):
        c = self.rows(x)
        c = np.concatenate([np.abs(c[: self.equalities]), c[self.equalities :]])
        return max(0.0, *c, *(self.lower - x), *(x - self.upper))

    def kkt(self, x):
        """The KKT residual with the best multipliers of active rows and bounds."""
        columns, low = [], []
        for i, (c, row) in enumerate(zip(self.rows(x), self.jacobian(x))):
            if i < self.equalities or c >= -ACTIVE:
                columns.append(row)
                low.append(-np.inf if i < self.equalities else 0.0)
        for j, unit in enumerate(np.eye(len(x))):
            if x[j] <= self.lower[j] + ACTIVE:
                columns.append(-unit)
                low.append(0.0)
            if x[j] >= self.upper[j] - ACTIVE:
                columns.append(unit)
                low.append(0.0)
        gradient = self.at(x)["g"]
        if columns:
            matrix = np.array(columns).T
            y = lsq_linear(matrix, -gradient, bounds=(low, np.inf)).x
            gradient = gradient + matrix @ y
        return max(float(np.linalg.norm(gradient)), self.violation(x))


def slsqp(problem):
    e = problem.equalities
    constraints = []
    if e:
        constraints.append(
            {"type": "eq", "fun": lambda x: problem.rows(x)[:e], "jac": lambda x: problem.jacobian(x)[:e]}
        )
    if problem.inequalities:
        constraints.append(
            {"type": "ineq", "fun": lambda x: -problem.rows(x)[e:], "jac": lambda x: -problem.jacobian(x)[e:]}
        )
    result = minimize(
        problem.f,
        np.clip(problem.start, problem.lower, problem.upper),
        jac=problem.gradient,
        method="SLSQP",
        bounds=list(zip(problem.lower, problem.upper)),
        constraints=constraints,
        options={"ftol": 1e-12, "maxiter": MOST_ITERATIONS["slsqp"]},
    )
    # 4: incompatible inequalities; 9: the budget of iterations.
    words = {0: "converged", 4: "infeasible", 9: "budget"}
    return result.x, words.get(result.status, "stalled")


def trust_constr(problem):
    constraints = []
    if problem.equalities + problem.inequalities:
        high = np.zeros(problem.equalities + problem.inequalities)
        low = np.concatenate([np.zeros(problem.equalities), np.full(problem.inequalities, -np.inf)])
        constraints.append(NonlinearConstraint(problem.rows, low, high, jac=problem.jacobian))
    bounded = np.isfinite(problem.lower) | np.isfinite(problem.upper)
    if bounded.any():
        rows = np.eye(len(problem.start))[bounded]
        constraints.append(LinearConstraint(rows, problem.lower[bounded], problem.upper[bounded]))
    result = minimize(
        problem.f,
        np.clip(problem.start, problem.lower, problem.upper),
        jac=problem.gradient,
        method="trust-constr",
        constraints=constraints,
        options={"gtol": 1e-10, "xtol": 1e-12, "barrier_tol": 1e-10, "maxiter": MOST_ITERATIONS["trust-constr"]},
    )
    # 0: the budget of iterations; 1: a small gradient; 2: a small step.
    words = {0: "budget", 1: "converged", 2: "converged" if result.constr_violation <= SOLVED else "stalled"}
    return result.x, words.get(result.status, "stalled")


def attempt(server, known, name, solve):
    """The result of a program on a problem, as in `summary.json`."""
    problem = Problem(server, known)
    result = {"name": name, "solved": False, "verdict": "broke-down"}
    numbers = {"objective_error": None, "constraint_norm": None, "kkt": None}
    try:
        x, verdict = solve(problem)
    except (ValueError, np.linalg.LinAlgError) as error:
        print(f"{name} on {known['name']}: {error}", file=sys.stderr)
        return {**result, "gradients": problem.gradients, **numbers}
    gradients = problem.gradients
    result["verdict"] = verdict
    if np.all(np.isfinite(x)) and np.isfinite(problem.violation(x)):
        numbers["constraint_norm"] = problem.violation(x)
        if known["kind"] == "infeasible":
            result["solved"] = verdict == "infeasible"
        elif np.isfinite(problem.f(x)):
            errors = [abs(problem.f(x) - value) / max(1.0, abs(value)) for value in known["values"]]
            numbers["objective_error"], numbers["kkt"] = min(errors), problem.kkt(x)
            result["solved"] = bool(min(errors) <= SOLVED and numbers["constraint_norm"] <= SOLVED)
    return {**result, "gradients": gradients, **numbers}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    for package in ("pymanopt", "cooper"):
        found = importlib.util.find_spec(package) is not None
        why = "the small problems are neither on a manifold nor networks" if found else "it cannot be imported"
        print(f"{package} is not run: {why}", file=sys.stderr)
    # SciPy warns about singular Jacobians and skipped updates. The results show what they mean.
    warnings.simplefilter("ignore")
    server = Server()
    programs = {"slsqp": slsqp, "trust-constr": trust_constr}
    problems, solved = [], {}
    for known in server.problems:
        methods = [attempt(server, known, name, solve) for name, solve in programs.items()]
        problems.append({"name": known["name"], "kind": known["kind"], "methods": methods})
        for method in methods:
            count = solved.setdefault((known["kind"], method["name"]), [0, 0])
            count[0] += method["solved"]
            count[1] += 1
    Path(sys.argv[1]).write_text(json.dumps({"problems": problems}, indent=1) + "\n")
    for (kind, name), (good, tried) in solved.items():
        print(f"{kind:<12} {name:<14} {good} of {tried}", file=sys.stderr)


if __name__ == "__main__":
    main()
