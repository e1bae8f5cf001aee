#!/usr/bin/env python3
"""Runs STR-SQP, SLSQP, trust-constr and IPOPT on random dense problems, and prints how often each is best.

    python3 scripts/dense-reference.py [--problems N] [--units] [--trust-constr N] [--out FILE [--programs A,B]]

Needs NumPy, SciPy and the package strust; runs IPOPT if cyipopt can be imported. Problem k is a function of (SEED, k):
3 to 200 unknowns, up to 300 rows, half of the problems convex, rows linear or curved, equalities, inequalities, bounds.
--units multiplies f by 1e±6, every row by 1e±3 and every coordinate by 1e±3. trust-constr is slow, so it runs on the
first N problems alone. Results that FILE already has are kept, so programs can run one after the other.
"""

import argparse
import importlib.util
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.optimize import Bounds, NonlinearConstraint, lsq_linear, minimize

SEED = 20240607
# A point is feasible up to this violation of a row or bound, in the units before any scaling.
FEASIBLE = 1e-6
# f is at an optimum up to this error, relative to max(1, |f|); a stall within the second number is none.
SAME, STALLED = 1e-6, 1e-8
# A point whose KKT residual is at most this is an optimum. Rows and bounds this close to their limit are active.
OPTIMAL, ACTIVE = 1e-4, 1e-5
MOST_ITERATIONS = 1000


class Problem:
    """f(x) = ½xᵀQx + lᵀx + Σα·softplus(Vx) + Σβ·cos(Vx + φ) + ¼δΣx⁴, c(x) = Ax + ½γ(Wx)² − b, lower ≤ x ≤ upper."""

    def __init__(self, number, units):
        rng = np.random.default_rng([SEED, number])
        normal = rng.standard_normal
        n = int(np.exp(rng.uniform(np.log(3), np.log(201))))
        self.convex, curved, bounded = rng.random(3) < [0.5, 0.5, 0.7]
        equalities = int(rng.integers(1, n // 2 + 1)) if rng.random() < 0.6 else 0
        inequalities = int(rng.integers(1, min(300 - equalities, 3 * n // 2) + 1)) if rng.random() < 0.8 else 0
        bounded = bounded or equalities + inequalities == 0
        m = equalities + inequalities
        self.n, self.equalities, self.inequalities = n, equalities, inequalities
        feasible = normal(n)
        # f
        basis, _ = np.linalg.qr(normal((n, n)))
        eigenvalues = 10.0 ** rng.uniform(-rng.uniform(0, 4), 0, n)
        terms = n // 2
        self.v = normal((terms, n)) / np.sqrt(n)
        self.alpha, self.beta, self.phase, self.delta = rng.random(terms), np.zeros(terms), np.zeros(terms), 0.0
        if not self.convex:
            eigenvalues *= rng.choice([1.0, 1.0, -1.0], n)
            self.beta, self.phase, self.delta = normal(terms), rng.uniform(0, 2 * np.pi, terms), 0.1
        self.q = (basis * eigenvalues) @ basis.T
        self.q = 0.5 * (self.q + self.q.T)
        self.l = -self.q @ (feasible + normal(n))
        # Rows: equalities, then inequalities. Some inequalities and bounds are 0 at the feasible point.
        self.a, self.w = normal((m, n)) / np.sqrt(n), normal((m, n)) / np.sqrt(n)
        self.gamma = normal(m) if curved else np.zeros(m)
        if self.convex:
            self.gamma = np.abs(self.gamma)
            self.gamma[:equalities] = 0.0
        slack = rng.exponential(1.0, m) * (rng.random(m) < 0.7)
        slack[:equalities] = 0.0
        self.b = self.a @ feasible + 0.5 * self.gamma * (self.w @ feasible) ** 2 + slack
        room = rng.exponential(1.0, (2, n)) * (rng.random((2, n)) < 0.8)
        room[rng.random((2, n)) < 0.3] = np.inf
        if not bounded:
            room[:] = np.inf
        self.lower, self.upper = feasible - room[0], feasible + room[1]
        fixed = self.lower == self.upper
        self.upper[fixed] += 1.0
        self.start = np.clip(2.0 * normal(n), self.lower, self.upper)
        # Units.
        self.f_unit, self.row_units, self.units = 1.0, np.ones(m), np.ones(n)
        if units:
            self.f_unit = 10.0 ** rng.choice([-6.0, 6.0])
            self.row_units, self.units = 10.0 ** rng.uniform(-3, 3, m), 10.0 ** rng.uniform(-3, 3, n)
        self.lower, self.upper, self.start = (self.units * v for v in (self.lower, self.upper, self.start))
        self.count, self.last = 0, None

    def f(self, x):
        if self.last is None or not np.array_equal(x, self.last):
            self.count, self.last = self.count + 1, np.array(x)
        z = x / self.units
        t = self.v @ z
        waves = self.alpha @ np.logaddexp(0.0, t) + self.beta @ np.cos(t + self.phase)
        return self.f_unit * (0.5 * z @ (self.q @ z) + self.l @ z + waves + 0.25 * self.delta * np.sum(z**4))

    def gradient(self, x):
        if self.last is None or not np.array_equal(x, self.last):
            self.count, self.last = self.count + 1, np.array(x)
        z = x / self.units
        t = self.v @ z
        waves = self.v.T @ (self.alpha / (1.0 + np.exp(-t)) - self.beta * np.sin(t + self.phase))
        return self.f_unit * (self.q @ z + self.l + waves + self.delta * z**3) / self.units

    def rows(self, x):
        z = x / self.units
        return self.row_units * (self.a @ z + 0.5 * self.gamma * (self.w @ z) ** 2 - self.b)

    def jacobian(self, x):
        z = x / self.units
        return self.row_units[:, None] * (self.a + (self.gamma * (self.w @ z))[:, None] * self.w) / self.units

    def violation(self, x):
        c = self.rows(x) / self.row_units
        c[: self.equalities] = np.abs(c[: self.equalities])
        return max(0.0, *c, *((self.lower - x) / self.units), *((x - self.upper) / self.units))

    def kkt(self, x):
        """‖∇f + Jᵀy + z‖ with the best multipliers of active rows and bounds, relative to ‖∇f‖, before any scaling."""
        gradient = self.gradient(x) * self.units / self.f_unit
        c = self.rows(x) / self.row_units
        jacobian = self.jacobian(x) / self.row_units[:, None] * self.units
        active = (np.arange(len(c)) < self.equalities) | (c >= -ACTIVE)
        units = np.eye(self.n)
        below, above = (x - self.lower) / self.units <= ACTIVE, (self.upper - x) / self.units <= ACTIVE
        matrix = np.vstack([jacobian[active], -units[below], units[above]]).T
        low = np.zeros(matrix.shape[1])
        low[: self.equalities] = -np.inf
        if matrix.shape[1]:
            y = lsq_linear(matrix, -gradient, bounds=(low, np.inf)).x
            return np.linalg.norm(gradient + matrix @ y) / max(1.0, np.linalg.norm(gradient))
        return np.linalg.norm(gradient) / max(1.0, np.linalg.norm(gradient))

    def constraints(self):
        """The rows as SciPy's dictionaries."""
        e, found = self.equalities, []
        if e:
            found.append({"type": "eq", "fun": lambda x: self.rows(x)[:e], "jac": lambda x: self.jacobian(x)[:e]})
        if self.inequalities:
            rows, jacobian = (lambda x: -self.rows(x)[e:]), (lambda x: -self.jacobian(x)[e:])
            found.append({"type": "ineq", "fun": rows, "jac": jacobian})
        return found

    def bounds(self):
        return Bounds(self.lower, self.upper)


def str_sqp(problem):
    import strust.scipy

    return minimize(
        problem.f,
        problem.start,
        jac=problem.gradient,
        method=strust.scipy.auto,
        bounds=problem.bounds(),
        constraints=problem.constraints(),
        options={"maxiter": MOST_ITERATIONS},
    )


def slsqp(problem):
    return minimize(
        problem.f,
        problem.start,
        jac=problem.gradient,
        method="SLSQP",
        bounds=problem.bounds(),
        constraints=problem.constraints(),
        options={"ftol": 1e-12, "maxiter": MOST_ITERATIONS},
    )


def trust_constr(problem):
    constraints = []
    if problem.equalities + problem.inequalities:
        high = np.zeros(problem.equalities + problem.inequalities)
        low = np.where(np.arange(len(high)) < problem.equalities, 0.0, -np.inf)
        constraints.append(NonlinearConstraint(problem.rows, low, high, jac=problem.jacobian))
    return minimize(
        problem.f,
        problem.start,
        jac=problem.gradient,
        method="trust-constr",
        bounds=problem.bounds() if np.isfinite([problem.lower, problem.upper]).any() else None,
        constraints=constraints,
        options={"gtol": 1e-8, "xtol": 1e-12, "barrier_tol": 1e-10, "maxiter": MOST_ITERATIONS},
    )


def ipopt(problem):
    from cyipopt import minimize_ipopt

    return minimize_ipopt(
        problem.f,
        problem.start,
        jac=problem.gradient,
        bounds=problem.bounds(),
        constraints=problem.constraints(),
        options={"tol": 1e-10, "max_iter": MOST_ITERATIONS, "hessian_approximation": "limited-memory"},
    )


def attempt(solve, problem):
    began = time.perf_counter()
    try:
        result = solve(problem)
        x, success, message = np.asarray(result.x, dtype=float), bool(result.success), str(result.message)
    except (ValueError, np.linalg.LinAlgError) as error:
        x, success, message = problem.start, False, str(error)
    seconds, count = time.perf_counter() - began, problem.count
    if not np.all(np.isfinite(x)):
        x, success = problem.start, False
    value, violation, kkt = problem.f(x) / problem.f_unit, problem.violation(x), problem.kkt(x)
    return {
        "value": float(value),
        "violation": float(violation),
        "kkt": float(kkt),
        "success": success,
        "message": message,
        "evaluations": count,
        "seconds": seconds,
    }


def kind_of(result, best):
    """How a result compares with the best feasible one."""
    above = (result["value"] - best) / max(1.0, abs(best))
    if result["violation"] > FEASIBLE:
        return "infeasible"
    if not result["success"] and above > STALLED and (above <= SAME or result["kkt"] > OPTIMAL):
        return "best, stalled" if above <= SAME else "stalled"
    if above <= SAME:
        return "best"
    return "other optimum" if result["kkt"] <= OPTIMAL else "wrongly converged"


def table(names, problems):
    lines = [
        [
            "program",
            "problems",
            "best",
            "other optimum",
            "infeasible",
            "stalled",
            "wrongly converged",
            "evaluations",
            "seconds",
        ]
    ]
    for name in names:
        results = [(results[name], best) for results, best in problems if name in results]
        if not results:
            continue
        kinds = [kind_of(*pair) for pair in results]
        best = kinds.count("best") + kinds.count("best, stalled")
        stalled = kinds.count("stalled") + kinds.count("best, stalled")
        median = [np.median([result[key] for result, _ in results]) for key in ("evaluations", "seconds")]
        counts = [
            best,
            kinds.count("other optimum"),
            kinds.count("infeasible"),
            stalled,
            kinds.count("wrongly converged"),
        ]
        lines.append([name, len(results), *counts, f"{median[0]:g}", f"{median[1]:.3g}"])
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=500)
    parser.add_argument("--units", action="store_true", help="in other units")
    parser.add_argument(
        "--trust-constr", type=int, default=50, metavar="N", help="run trust-constr on the first N problems"
    )
    parser.add_argument("--out", type=Path, help="a file for all results, as JSON")
    parser.add_argument("--programs", help="names with commas between them; all by default")
    given = parser.parse_args()
    # SciPy warns about singular Jacobians and skipped updates. The results show what they mean.
    warnings.simplefilter("ignore")
    programs = {"STR-SQP": str_sqp, "SLSQP": slsqp, "trust-constr": trust_constr}
    if importlib.util.find_spec("cyipopt"):
        programs["IPOPT"] = ipopt
    else:
        print("IPOPT is not run: cyipopt cannot be imported", file=sys.stderr)
    chosen = programs if given.programs is None else given.programs.split(",")
    known = json.loads(given.out.read_text()) if given.out and given.out.exists() else []
    problems = []
    for number in range(given.problems):
        results = known[number] if number < len(known) else {}
        for name, solve in programs.items():
            if name in chosen and name not in results and (name != "trust-constr" or number < given.trust_constr):
                results[name] = attempt(solve, Problem(number, given.units))
        feasible = [result["value"] for result in results.values() if result["violation"] <= FEASIBLE]
        problems.append((results, min(feasible, default=np.inf)))
        if (number + 1) % 20 == 0:
            print(f"{number + 1} of {given.problems}", file=sys.stderr)
    if given.out:
        given.out.write_text(json.dumps([results for results, _ in problems], indent=1) + "\n")
    print(table(programs, problems))


if __name__ == "__main__":
    main()
