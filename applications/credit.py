"""Approve good applicants of two groups about equally often: strust, SciPy, fairlearn, and a threshold for each group.

Made data (seed 0, held-out seed 1): 30 % of the applicants are in group B. The bank's records of how they paid in the
past are too bad by 0.8 (the deviation is 1.1), and their incomes are lower by 0.4. Who repaid is recorded honestly.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

try:
    import matplotlib.pyplot
    import numpy as np
    import pandas as pd
    import strust
    from fairlearn.reductions import ExponentiatedGradient, TruePositiveRateParity
    from scipy.optimize import NonlinearConstraint, minimize
    from scipy.special import expit
    from sklearn.linear_model import LogisticRegression
    from strust.constraints import expectation
except ModuleNotFoundError as error:
    packages = "numpy pandas scipy scikit-learn fairlearn matplotlib"
    sys.exit(f"{error.name} is missing: pip install {packages}, and ./python of a clone for strust")

Rule = tuple[Callable, Callable]  # who is approved (1, 0 or a probability) and the scores, of what the bank knows
BOUND, BOUNDS = 0.02, (0.0, 0.02, 0.05, 0.1)  # of the table and of the figure
COLUMNS = ("program", "right", "good A", "good B", "gap", "±", "scores*", "approved*", "tried", "seconds")


@dataclass
class People:
    """What the bank knows of each applicant (a column of ones first), who is in group B, and who repaid."""

    known: np.ndarray
    in_b: np.ndarray
    repaid: np.ndarray

    def good(self) -> tuple[np.ndarray, np.ndarray]:
        """The applicants of group A and of group B who repaid."""
        return self.repaid & ~self.in_b, self.repaid & self.in_b

    def means(self, values: np.ndarray) -> np.ndarray:
        """The means over the good applicants of group A and of group B."""
        return np.array([values[good].mean() for good in self.good()])


def make(count: int, sees: bool, rng: np.random.Generator) -> People:
    """Make applicants. If the bank sees the group, it is the last column."""
    in_b = rng.random(count) < 0.3
    income = rng.normal(size=count) - 0.4 * in_b
    debts, age, care = rng.normal(size=(3, count))
    history = care + 0.5 * rng.normal(size=count) - 0.8 * in_b  # what the records say about `care`
    repaid = rng.random(count) < expit(0.6 + income - 0.8 * debts + 0.3 * age + 1.2 * care)
    return People(np.column_stack([np.ones(count), income, debts, age, history] + [in_b] * sees), in_b, repaid)


def linear(x: np.ndarray) -> Rule:
    """The rule of a logistic model: a score of at least one half is an approval."""
    return lambda known: known @ x >= 0, lambda known: expit(known @ x)


def functions(people: People) -> tuple[Callable, Callable]:
    """The loss of a logistic model and its mean score, over the applicants i, both with gradients."""
    known, repaid = people.known, people.repaid

    def loss(x, i):
        z = known[i] @ x
        return np.mean(np.logaddexp(0, z) - repaid[i] * z), known[i].T @ (expit(z) - repaid[i]) / len(i)

    def score(x, i):
        p = expit(known[i] @ x)
        return np.mean(p), known[i].T @ (p * (1 - p)) / len(i)

    return loss, score


def fit(people: People, bound: float) -> strust.OptimizeResult:
    """The best model whose mean scores of good applicants differ by at most the bound, from mini-batches."""
    loss, score = functions(people)
    n, width = people.known.shape
    equal = expectation(score, n_terms=n, groups=people.good(), at_least=-bound, at_most=bound)
    return strust.minimize(loss, np.zeros(width), n_terms=n, epochs=10, constraints=equal)


def slsqp(people: People, bound: float) -> np.ndarray:
    """The same model, from all rows at each step."""
    loss, score = functions(people)
    n, width = people.known.shape
    a, b = map(np.flatnonzero, people.good())
    gap, slope = (lambda x, k=k: score(x, a)[k] - score(x, b)[k] for k in (0, 1))
    limits, tight = NonlinearConstraint(gap, -bound, bound, jac=slope), {"ftol": 1e-12}
    return minimize(loss, np.zeros(width), np.arange(n), "SLSQP", jac=True, constraints=limits, options=tight).x


def plain(people: People, _bound: float = 1.0, columns: int | None = None) -> np.ndarray:
    """A logistic model of the first columns, without a constraint."""
    return LogisticRegression(C=np.inf, fit_intercept=False).fit(people.known[:, :columns], people.repaid).coef_[0]


def thresholds(people: People, bound: float) -> Rule:
    """The plain model without the group, and the thresholds with the most right decisions within the bound."""
    score = linear(np.append(plain(people, columns=-1), 0))[1]
    scores, grid, right, rates = score(people.known), np.linspace(0.01, 0.99, 99), [], []
    for member in (~people.in_b, people.in_b):
        approved, repaid = scores[member, None] >= grid, people.repaid[member]
        right.append((approved == repaid[:, None]).sum(0))
        rates.append(approved[repaid].mean(0))
    allowed = np.abs(rates[0][:, None] - rates[1]) <= bound
    best = np.unravel_index(np.where(allowed, right[0][:, None] + right[1], -1).argmax(), allowed.shape)
    return lambda known: score(known) >= grid[np.array(best)[known[:, -1].astype(int)]], score


def fairlearn(people: People, bound: float) -> Rule:
    """A random choice among models: the probability of an approval."""
    program = ExponentiatedGradient(LogisticRegression(C=np.inf), TruePositiveRateParity(difference_bound=bound))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it uses parts of pandas and scikit-learn that are deprecated
        program.fit(people.known[:, 1:], people.repaid.astype(int), sensitive_features=people.in_b)
    chosen = [(weight, program.predictors_[k]) for k, weight in program.weights_.items() if weight > 0]
    return (lambda known: sum(weight * model.predict(known[:, 1:]) for weight, model in chosen),) * 2


def judge(name: str, program: Callable, train: People, test: People, tried: int = 1, bound: float = BOUND) -> dict:
    """Fit a program on the training rows and judge it on the others: a row of the table."""
    start = perf_counter()
    found = program(train, bound)
    seconds = perf_counter() - start
    approve, score = found if isinstance(found, tuple) else linear(getattr(found, "x", found))
    approved = approve(test.known) * 1.0
    right, rates = np.where(test.repaid, approved, 1 - approved).mean(), test.means(approved)
    error = np.sqrt(np.sum(rates * (1 - rates) / [good.sum() for good in test.good()]))
    gaps = (a - b for a, b in (rates, train.means(score(train.known)), train.means(approve(train.known))))
    return dict(zip(COLUMNS, (name, right, *rates, next(gaps), error, *gaps, tried, seconds), strict=True))


def draw(file: str, free: dict, sweeps: list[list[dict]], points: list[dict]) -> None:
    """Held-out accuracy against the gap."""
    matplotlib.rcParams.update({"svg.hashsalt": "strust", "font.size": 11, "errorbar.capsize": 2})
    figure, axes = matplotlib.pyplot.subplots(figsize=(7.5, 4.5), layout="constrained")
    axes.spines[["top", "right"]].set_visible(False)
    looks = (("#1f5fa8", "o"), ("#d07000", "s"), ("#2e7d32", "^"))
    names = ("strust, limit on scores", "fairlearn, limit on approvals", "a threshold for each group")
    for (color, mark), name, rows, point in zip(looks, names, [*sweeps, []], points, strict=True):
        for place, style in (([*rows, free] if rows else [], "-"), ([point], "")):
            x, y, error = ([100 * row[key] for row in place] for key in ("gap", "right", "±"))
            axes.errorbar(x, y, xerr=error, fmt=mark + style, color=color, lw=1.2, label=None if style else name)
    for label, row in zip([*(f"limit {bound:g}" for bound in BOUNDS), "no limit"], [*sweeps[0], free], strict=True):
        axes.annotate(label, (100 * row["gap"] - 0.4, 100 * row["right"] + 0.25), ha="right", fontsize=9)
    axes.text(3.5, 75.3, "the program sees the group")
    axes.text(12, 71, "the program does not see the group")
    axes.set(xlabel="gap: approved share of good applicants, group A − group B (%)", ylabel="right decisions (%)")
    axes.legend(frameon=False, loc="lower right")
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    """Print the table, check what the page claims, and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a fifth of the held-out applicants")
    parser.add_argument("--figure", metavar="FILE", help="write the figure as SVG")
    arguments = parser.parse_args()
    sizes = (4000, 4000 if arguments.quick else 20000)
    blind, sees = ([make(n, s, np.random.default_rng(k)) for k, n in enumerate(sizes)] for s in (False, True))
    rows = [
        judge("no limit", plain, *blind),
        judge("strust, limit on scores", fit, *blind),
        judge("SLSQP, limit on scores", slsqp, *blind),
        judge("fairlearn, limit on approvals", fairlearn, *blind),
        judge("no limit, sees the group", plain, *sees),
        judge("strust, sees the group", fit, *sees),
        judge("fairlearn, sees the group", fairlearn, *sees),
        judge("two thresholds, see the group", thresholds, *sees, tried=99 * 99),
    ]
    print(pd.DataFrame(rows).to_string(index=False, float_format="{:.3f}".format))
    print("good: approved share of those who repay; *: the gap of the mean score and of approvals on training rows")

    # What the page claims.
    free, blind_row, _, _, _, sees_row, _, pairs = rows
    result, looser = (fit(blind[0], bound) for bound in (BOUND, BOUND + 0.001))
    price, measured = abs(result.certificate.multiplier[0]), (result.fun - looser.fun) / 0.001
    print(f"strust: {result.certificate.verdict}; price of the limit {price:.2f}, by a second fit {measured:.2f}")
    assert result.certificate.verdict == "converged"
    assert abs(price / measured - 1) < 0.05
    assert max(abs(row["scores*"]) for row in (blind_row, sees_row)) <= BOUND + 1e-9
    assert np.abs(slsqp(blind[0], BOUND) - result.x).max() < 1e-3  # the same model
    assert blind_row["gap"] < free["gap"] / 2
    assert blind_row["right"] < free["right"] - 0.03
    assert min(sees_row["right"], pairs["right"]) > free["right"] - 0.01
    if arguments.figure:
        sweeps = [[judge("", program, *blind, bound=bound) for bound in BOUNDS] for program in (fit, fairlearn)]
        draw(arguments.figure, free, sweeps, rows[5:])


if __name__ == "__main__":
    main()
