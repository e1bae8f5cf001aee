"""Built-in problems with known answers. `strust.minimize` runs them without Python in the loop.

>>> import strust
>>> from strust.problems import Subspace
>>> problem = Subspace.spiked(d=20, k=3, n=100)
>>> result = strust.minimize(problem, constraints=problem.constraint, epochs=30)
>>> bool(result.fun < 1e-12 and result.constraint_norm < 1e-12)
True
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from strust import _native

Array: TypeAlias = npt.NDArray[np.float64]
Function: TypeAlias = Callable[..., Any]

__all__ = ["LeastSquares", "Logistic", "Mlp", "Problem", "Softmax", "Subspace", "load_digits"]


class Problem:
    """A finite sum f(x) = (1/n) Σ fᵢ(x) that Rust computes.

    Calls release the GIL. Several threads may use one problem: they wait for each other.
    """

    def __init__(self, native: _native.Problem) -> None:
        self.native = native

    @property
    def n_terms(self) -> int:
        """The number n of terms."""
        return self.native.terms

    @property
    def constraint(self) -> tuple[str, ...]:
        """The constraints that belong to the problem, for `strust.minimize`."""
        name = self.native.constraint
        return () if name is None else (name,)

    @property
    def optimum(self) -> float | None:
        """The least value of f under the problem's constraint, or None if there is no way to compute it."""
        return self.native.optimum()

    def start(self, seed: int = 0) -> Array:
        """Return a start that depends only on the seed."""
        return self.native.start(seed)

    def __call__(
        self, x: npt.ArrayLike, indices: Sequence[int] | npt.NDArray[np.integer[Any]] | None = None
    ) -> tuple[float, Array]:
        """Return the mean of the terms `indices` (all by default) at x, and its gradient."""
        chosen = None if indices is None else [int(i) for i in indices]
        return self.native.evaluate(np.asarray(x), chosen)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_terms} terms, x of shape {self.start().shape})"


def target(
    fun: Function | Problem,
    jac: Function | Literal[True],
    n_terms: int | None,
    hessp: Function | None = None,
    magnitude: float = 0.0,
    name: str = "fun",
) -> _native.Problem | dict[str, Any]:
    """Return a function or a problem as the compiled part takes it. Messages call a function by its name."""
    if isinstance(fun, Problem):
        return fun.native
    gradient = None if jac is True else jac
    given = {"fun": fun, "gradient": gradient, "products": hessp, "terms": n_terms, "magnitude": float(magnitude)}
    return {"name": name, **given}


def _matrix(name: str, data: npt.ArrayLike) -> Array:
    matrix = np.asarray(data, dtype=np.float64)
    if matrix.ndim != 2:
        raise ValueError(f"{name} must be a matrix, but has shape {matrix.shape}")
    return matrix


def _vector(name: str, data: npt.ArrayLike, rows: int) -> list[float]:
    vector = np.asarray(data, dtype=np.float64)
    if vector.shape != (rows,):
        raise ValueError(f"{name} must have shape ({rows},), but has shape {vector.shape}")
    return [float(number) for number in vector]


def _rows(data: Any) -> tuple[Array | tuple[Any, Any, Array, int], int]:
    """Return dense rows, or the parts of a sparse matrix; and their number."""
    if hasattr(data, "tocsr"):
        sparse = data.tocsr()
        sparse.sum_duplicates()
        starts = [int(i) for i in sparse.indptr]
        columns = [int(i) for i in sparse.indices]
        return (starts, columns, np.asarray(sparse.data, dtype=np.float64), int(sparse.shape[1])), int(sparse.shape[0])
    matrix = _matrix("x", data)
    return matrix, len(matrix)


class LeastSquares(Problem):
    """Linear least squares: fᵢ(x) = ½(aᵢᵀx − bᵢ)².

    Parameters
    ----------
    a : array_like
        n × d.
    b : array_like
        n numbers.

    Examples
    --------
    >>> import strust
    >>> from strust.problems import LeastSquares
    >>> problem = LeastSquares.random(n=200, d=10)
    >>> bool(strust.minimize(problem, epochs=100).fun < 1e-12)
    True
    """

    def __init__(self, a: npt.ArrayLike, b: npt.ArrayLike) -> None:
        matrix = _matrix("a", a)
        super().__init__(_native.least_squares(matrix, _vector("b", b, len(matrix))))

    @classmethod
    def random(
        cls, n: int, d: int, *, condition: float | None = None, noise: float = 0.0, seed: int = 0
    ) -> LeastSquares:
        """Return a random problem with a known answer, of this condition number and with this noise in b."""
        made = cls.__new__(cls)
        Problem.__init__(made, _native.random_least_squares(n, d, condition, noise, seed))
        return made


class Logistic(Problem):
    """Logistic regression with two classes: fᵢ(x) = log(1 + exp(−yᵢaᵢᵀx)) + (λ/2)‖x‖².

    Parameters
    ----------
    x : array_like or sparse matrix
        n × d.
    labels : array_like
        n labels with two different values.
    regularization : float
        λ.
    intercept : bool
        Whether to add a column of ones.
    """

    def __init__(self, x: Any, labels: npt.ArrayLike, *, regularization: float = 0.0, intercept: bool = False) -> None:
        rows, n = _rows(x)
        super().__init__(_native.logistic(rows, _vector("labels", labels, n), regularization, intercept))


class Softmax(Problem):
    """Softmax regression with many classes. x is a matrix, d × classes.

    Parameters
    ----------
    x : array_like or sparse matrix
        n × d.
    labels : array_like
        n whole numbers.
    regularization : float
        λ of (λ/2)‖x‖².
    intercept : bool
        Whether to add a column of ones.
    """

    def __init__(self, x: Any, labels: npt.ArrayLike, *, regularization: float = 0.0, intercept: bool = False) -> None:
        rows, n = _rows(x)
        super().__init__(_native.softmax(rows, _vector("labels", labels, n), regularization, intercept))


class Subspace(Problem):
    """The k-dimensional subspace that fits points best: fᵢ(W) = ‖(I − WWᵀ)xᵢ‖² with WᵀW = I. W is d × k.

    Parameters
    ----------
    x : array_like
        n × d, one row per point. The points are centered.
    k : int
        The dimension.
    """

    def __init__(self, x: npt.ArrayLike, k: int) -> None:
        super().__init__(_native.subspace(_matrix("x", x), k))

    @classmethod
    def spiked(cls, d: int, k: int, n: int, *, noise: float = 0.0, seed: int = 0) -> Subspace:
        """Return the paper's synthetic problem: x = Uz + ε, centered. Without noise the minimum is 0."""
        made = cls.__new__(cls)
        Problem.__init__(made, _native.spiked_subspace(d, k, n, noise, seed))
        return made


class Mlp(Problem):
    """A multilayer perceptron with the cross-entropy loss. x holds all weights and biases in one vector.

    Parameters
    ----------
    x : array_like
        n × d.
    labels : array_like
        n whole numbers.
    hidden : sequence of int
        The widths of the hidden layers.
    activation : {"relu", "tanh"}
        Their activation.
    """

    def __init__(
        self,
        x: npt.ArrayLike,
        labels: npt.ArrayLike,
        hidden: Sequence[int] = (64,),
        activation: Literal["relu", "tanh"] = "relu",
    ) -> None:
        matrix = _matrix("x", x)
        labels_ = _vector("labels", labels, len(matrix))
        super().__init__(_native.mlp(matrix, labels_, [int(width) for width in hidden], activation))


def load_digits() -> tuple[tuple[Array, npt.NDArray[np.int64]], tuple[Array, npt.NDArray[np.int64]]]:
    """Return the 1797 handwritten digits of 8 × 8 pixels: (x, labels) for training and for testing.

    >>> from strust.problems import load_digits
    >>> (x, labels), test = load_digits()
    >>> x.shape[1], len(set(labels.tolist()))
    (64, 10)
    """
    (train, train_labels), (test, test_labels) = _native.load_digits()
    return (train, np.array(train_labels)), (test, np.array(test_labels))
