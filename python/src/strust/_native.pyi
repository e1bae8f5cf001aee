"""The compiled part: crates/strust-python."""

from collections.abc import Sequence
from typing import Any, TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt

__version__: str
METHODS: Sequence[str]

def program(arguments: Sequence[str]) -> int: ...
def auto_parts() -> tuple[list[tuple[str, float]], list[tuple[str, float]], str]: ...

class Problem:
    @property
    def terms(self) -> int: ...
    @property
    def constraint(self) -> str | None: ...
    def start(self, seed: int) -> npt.NDArray[np.float64]: ...
    def optimum(self) -> float | None: ...
    def evaluate(
        self, x: npt.NDArray[Any], indices: list[int] | None = None
    ) -> tuple[float, npt.NDArray[np.float64]]: ...

def least_squares(a: npt.NDArray[np.float64], b: list[float]) -> Problem: ...
def random_least_squares(n: int, d: int, condition: float | None, noise: float, seed: int) -> Problem: ...
def logistic(x: Any, labels: list[float], regularization: float, intercept: bool) -> Problem: ...
def softmax(x: Any, labels: list[float], regularization: float, intercept: bool) -> Problem: ...
def subspace(rows: npt.NDArray[np.float64], k: int) -> Problem: ...
def spiked_subspace(d: int, k: int, n: int, noise: float, seed: int) -> Problem: ...
def mlp(x: npt.NDArray[np.float64], labels: list[float], hidden: list[int], activation: str) -> Problem: ...
def load_digits() -> list[tuple[npt.NDArray[np.float64], list[int]]]: ...
def minimize(
    target: Problem | dict[str, Any], start: npt.NDArray[Any], state: bytes | None, request: dict[str, Any]
) -> dict[str, Any]: ...
def convert_state(method: str, dtype: str, state: bytes, to_json: bool) -> bytes: ...
def point_of_state(method: str, dtype: str, state: bytes) -> tuple[npt.NDArray[Any], int]: ...
def measure_strong_growth(
    target: Any, x: npt.NDArray[Any], batch: int | None, pairs: int | None, seed: int
) -> dict[str, Any]: ...
def measure_curvature(target: Any, x: npt.NDArray[Any], iterations: int) -> float: ...
def measure_gradient_slope(target: Any, x: npt.NDArray[Any], indices: list[int] | None, seed: int) -> float: ...
def measure_jacobian_slope(
    constraints: list[dict[str, Any]], x: npt.NDArray[Any], seed: int
) -> tuple[float, float]: ...
def measure_kkt(
    target: Any, constraints: list[dict[str, Any]], x: npt.NDArray[Any], penalty: float
) -> dict[str, Any]: ...
def diagnose_folder(folder: str) -> str: ...

# Models of arrays, for strust.sklearn.
_Doubles: TypeAlias = npt.NDArray[np.float64]
_Sparse: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], _Doubles, int]
_Matrix: TypeAlias = _Doubles | npt.NDArray[np.float32] | _Sparse

class ModelOptions(TypedDict):
    loss: str
    outputs: int
    hidden: list[int]
    l2: float
    intercept: bool
    nonnegative: bool
    sum_to_one: bool
    unit_norm: bool
    target_scale: float
    epochs: int
    tolerance: float
    validation: float
    seed: int

def input_units(matrix: _Matrix, weights: _Doubles | None, center: bool, scale: bool) -> tuple[_Doubles, _Doubles]: ...
def fit_model(
    matrix: _Matrix,
    goals: _Doubles,
    weights: _Doubles | None,
    units: tuple[_Doubles, _Doubles],
    options: ModelOptions,
) -> tuple[_Doubles, float, str, list[float]]: ...
def stream_model(
    matrix: _Matrix,
    goals: _Doubles,
    weights: _Doubles | None,
    units: tuple[_Doubles, _Doubles],
    options: ModelOptions,
    state: bytes | None,
    start: _Doubles | None,
    seen: float,
    call: int,
) -> tuple[_Doubles, bytes]: ...
