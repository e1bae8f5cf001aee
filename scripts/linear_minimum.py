"""The minimum of a linear model by Newton's method in NumPy, as a reference for strust and scikit-learn.

f(W, b) = (1/n)(Σ loss(Wᵀaᵢ + b, yᵢ) + (L/2)‖W‖²) with the losses ½(z − y)², logistic and softmax. The method starts
at zero and has the exact Hessian. Above 2000 parameters it solves for the step by conjugate gradients instead.
"""

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import expit, logsumexp

# Parameters from which on the Hessian is not formed.
MOST_EXACT = 2000
# Rows whose weighted copy is made at a time.
PIECE = 50_000
# Above this condition number, rounding decides the weights, and two programs need not agree.
MOST_CONDITION = 1e11


class LinearProblem:
    """f on rows A, dense or CSR. Inside, each column is shifted and scaled, so that units do not matter.

    `y` holds numbers for "squares", 0 or 1 for "logistic", and the positions of the classes for "softmax". With
    `scaled=True` the columns are already standardized, and A is not copied.
    """

    def __init__(self, rows, y, loss, l2, *, classes=1, intercept=True, scaled=False):
        self.y, self.loss, self.intercept, self.outputs = y, loss, intercept, classes
        n, d = rows.shape
        self.shift, self.scale = np.zeros(d), np.ones(d)
        if not scaled and sparse.issparse(rows):
            size = np.sqrt(np.asarray(rows.multiply(rows).mean(axis=0)).ravel())
            self.scale = np.where(size > 0, size, 1.0)
            rows = (rows @ sparse.diags(1 / self.scale)).tocsr()
        elif not scaled:
            if intercept:
                self.shift = rows.mean(axis=0)
            rows = rows - self.shift
            size = np.sqrt(np.square(rows).mean(axis=0))
            self.scale = np.where(size > 0, size, 1.0)
            rows /= self.scale
        self.rows = rows
        # The penalty of each row of the parameters; that of the intercepts is 0.
        self.penalty = np.append(l2 / n / np.square(self.scale), 0.0)[:, None]

    def inside(self, weights, bias):
        """Weights (inputs × outputs) and intercepts as parameters of the shifted and scaled columns."""
        return np.vstack([weights * self.scale[:, None], bias + self.shift @ weights])

    def outputs_at(self, x):
        return self.rows @ x[:-1] + x[-1]

    def value(self, x):
        return self._losses(self.outputs_at(x)).mean() + 0.5 * float((self.penalty * x * x).sum())

    def _losses(self, z):
        if self.loss == "squares":
            return 0.5 * np.square(z[:, 0] - self.y)
        if self.loss == "logistic":
            return np.logaddexp(0.0, np.where(self.y > 0, -z[:, 0], z[:, 0]))
        return logsumexp(z, axis=1) - z[np.arange(len(z)), self.y]

    def _slopes(self, z):
        """The derivatives of the losses with respect to z, and what the second ones follow from."""
        if self.loss == "squares":
            return z - self.y[:, None], np.ones_like(z)
        if self.loss == "logistic":
            p = expit(z)
            return p - self.y[:, None], p * expit(-z)
        p = np.exp(z - logsumexp(z, axis=1, keepdims=True))
        slopes = p.copy()
        slopes[np.arange(len(z)), self.y] -= 1.0
        return slopes, p

    def _transposed(self, slopes):
        """The gradient of a sum from the derivatives with respect to z."""
        return np.vstack([self.rows.T @ slopes, slopes.sum(axis=0) * self.intercept]) / len(slopes)

    def _product(self, curve, p):
        """H p without H."""
        z = self.outputs_at(p)
        z = curve * (z - (curve * z).sum(axis=1, keepdims=True)) if self.loss == "softmax" else curve * z
        return self._transposed(z) + self.penalty * p

    def _hessian(self, curve):
        """H with the parameters in the order of x.ravel()."""
        m, k = self.penalty.size, self.outputs
        h = np.zeros((m, k, m, k))
        for c in range(k):
            for e in range(c + 1):
                if self.loss == "softmax":
                    weights = curve[:, c] * ((c == e) - curve[:, e])
                else:
                    weights = curve[:, 0]
                h[:, c, :, e] = h[:, e, :, c] = self._weighted_square(weights)
            h[:, c, :, c][np.diag_indices(m)] += self.penalty[:, 0]
        return h.reshape(m * k, m * k)

    def _weighted_square(self, weights):
        """(1/n) Σ weightᵢ (aᵢ, 1)(aᵢ, 1)ᵀ."""
        (n, d), rows = self.rows.shape, self.rows
        square = np.zeros((d + 1, d + 1))
        if sparse.issparse(rows):
            square[:d, :d] = (rows.T @ (sparse.diags(weights) @ rows)).toarray()
        else:
            for start in range(0, n, PIECE):
                part = rows[start : start + PIECE]
                square[:d, :d] += part.T @ (weights[start : start + PIECE, None] * part)
        if self.intercept:
            square[d, :d] = square[:d, d] = rows.T @ weights
            square[d, d] = weights.sum()
        return square / n

    def _step(self, gradient, curve):
        """−H⁻¹g, and H with a diagonal of ones, if it was formed."""
        (m, k), right = gradient.shape, -gradient.ravel()
        if m * k > MOST_EXACT:
            return self._step_by_products(gradient, curve), None
        h = self._hessian(curve)
        if self.loss == "softmax":
            # Adding the same to all classes changes no probability. The gradient has no such part, so filling it in
            # leaves the step as it is.
            h += np.kron(np.diag(np.einsum("icic->i", h.reshape(m, k, m, k))), np.full((k, k), 1.0 / k))
        size = np.sqrt(np.where(np.diag(h) > 0, np.diag(h), 1.0))
        h, right = h / np.outer(size, size), right / size
        if not self.intercept:
            h[-k:, -k:] += np.eye(k)
        try:
            step = linalg.cho_solve(linalg.cho_factor(h), right)
        except linalg.LinAlgError:
            # Columns depend on each other, and nothing is penalized: the shortest of the steps.
            values, vectors = linalg.eigh(h)
            kept = values > 1e-13 * values[-1]
            step = vectors[:, kept] @ ((vectors[:, kept].T @ right) / values[kept])
        return (step / size).reshape(m, k), h

    def _step_by_products(self, gradient, curve):
        shape = gradient.shape
        square = self.rows.multiply(self.rows) if sparse.issparse(self.rows) else np.square(self.rows)
        bend = curve * (1 - curve) if self.loss == "softmax" else curve
        diagonal = np.vstack([square.T @ bend, bend.sum(axis=0)]) / len(bend) + self.penalty
        inverse = 1 / np.maximum(diagonal, 1e-300).ravel()
        h = LinearOperator((gradient.size,) * 2, lambda p: self._product(curve, p.reshape(shape)).ravel())
        about = LinearOperator((gradient.size,) * 2, lambda p: inverse * p.ravel())
        return cg(h, -gradient.ravel(), rtol=1e-5, maxiter=2000, M=about)[0].reshape(shape)

    def minimum(self, x=None):
        """(f*, x*, whether it is a minimum, whether rounding leaves the weights certain)."""
        x = np.zeros((self.penalty.size, self.outputs)) if x is None else x
        value, h, at_end = self.value(x), None, False
        for _ in range(100):
            slopes, curve = self._slopes(self.outputs_at(x))
            gradient = self._transposed(slopes) + self.penalty * x
            step, h = self._step(gradient, curve)
            predicted = -0.5 * float((gradient * step).sum())
            for halvings in range(40):
                new = x + 0.5**halvings * step
                new_value = self.value(new)
                if new_value <= value - 1e-4 * 0.5**halvings * predicted + 1e-15 * abs(value):
                    x, value = new, new_value
                    break
            # The last step is made where f no longer shows it. The loss of classes tends to 0 only without a minimum.
            if at_end or halvings == 39 or (self.loss != "squares" and value < 1e-12):
                break
            at_end = predicted <= 1e-14 * value
        ends = None if h is None else linalg.eigvalsh(h)[[0, -1]]
        return value, x, bool(at_end), ends is None or ends[1] < MOST_CONDITION * ends[0]

    def apart(self, x, y):
        """The largest difference of a weight, relative to the largest weight, of columns with the deviation 1."""
        x, y = x[:-1], y[:-1]
        if self.loss == "softmax":
            x, y = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
        return float(np.abs(x - y).max() / max(np.abs(y).max(), 1e-300))
