"""Optimization from mini-batches without a learning rate, with hard constraints.

>>> import numpy as np, strust
>>> a = np.random.default_rng(0).normal(size=(1000, 5))
>>> b = a @ np.arange(1.0, 6.0)
>>> def fun(x, i):  # the mean over the mini-batch, and its gradient
...     r = a[i] @ x - b[i]
...     return 0.5 * np.mean(r**2), a[i].T @ r / len(i)
>>> strust.minimize(fun, np.zeros(5), n_terms=1000, epochs=20).x.round(6)
array([1., 2., 3., 4., 5.])

`strust.constraints`, `strust.problems` and `strust.diagnostics` need NumPy only. `strust.scipy`, `strust.torch` and
`strust.sklearn` need the package they are named after.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from strust import constraints, diagnostics, problems
from strust._minimize import Certificate, History, Intermediate, OptimizeResult, State, minimize
from strust._native import METHODS, __version__

__all__ = [
    "METHODS",
    "Certificate",
    "History",
    "Intermediate",
    "OptimizeResult",
    "State",
    "__version__",
    "constraints",
    "diagnostics",
    "minimize",
    "problems",
]

#: Submodules that need another package. They are imported on first use.
_LAZY = ("scipy", "sklearn", "torch")


def __getattr__(name: str) -> ModuleType:
    if name in _LAZY:
        return importlib.import_module(f"strust.{name}")
    raise AttributeError(f"module 'strust' has no attribute {name!r}")
