"""The compiled part: crates/strust-python."""

from collections.abc import Sequence
from typing import TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

__version__: str

def program(arguments: Sequence[str]) -> int: ...

# Models and subspaces of arrays, for strust.sklearn.
_Doubles: TypeAlias = NDArray[np.float64]
_Sparse: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32], _Doubles, int]
_Matrix: TypeAlias = _Doubles | NDArray[np.float32] | _Sparse

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

def input_units(
    matrix: _Matrix, weights: _Doubles | None, center: bool, scale: bool
) -> tuple[_Doubles, _Doubles]: ...
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
def fit_frame(
    matrix: _Matrix, mean: _Doubles, components: int, epochs: int, tolerance: float, seed: int
) -> tuple[_Doubles, float, str]: ...
def stream_frame(
    matrix: _Matrix,
    mean: _Doubles,
    components: int,
    seed: int,
    state: bytes | None,
    start: _Doubles | None,
    call: int,
) -> tuple[_Doubles, bytes]: ...
