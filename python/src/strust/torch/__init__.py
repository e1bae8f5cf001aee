"""The methods as `torch.optim` optimizers, over torch alone.

>>> import torch
>>> from strust.torch import Auto
>>> model = torch.nn.Linear(2, 1)
>>> opt = Auto(model.parameters())  # no learning rate
"""

try:
    import torch as _torch  # noqa: F401  # pyright: ignore[reportUnusedImport]
except ImportError as error:
    raise ImportError("strust.torch needs PyTorch: pip install strust[torch]") from error

from ._auto import Auto
from ._constrained import ConstrainedAuto
from ._constraints import Constraint, Sphere, Stiefel
from ._region import STR, STRP
from ._stratified import StratifiedBatches

__all__ = ["STR", "STRP", "Auto", "ConstrainedAuto", "Constraint", "Sphere", "Stiefel", "StratifiedBatches"]
