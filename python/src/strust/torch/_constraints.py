"""Constraints c(w) = 0 on parameters, by value and products with the Jacobian J."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias, cast

import torch
from torch import Tensor

from ._flat import Flat
from ._settings import Range, check_numbers


class Constraint:
    """c(w) = 0 for any c that torch can differentiate twice.

    Parameters
    ----------
    c
        Computes c, a tensor of any fixed shape, from one or more parameters.

    Examples
    --------
    >>> import torch
    >>> from strust.torch import Constraint
    >>> circle = Constraint(lambda w: w.square().sum() - 1.0)
    >>> circle.residual(torch.tensor([2.0, 0.0]))
    tensor([3.])
    >>> circle.product([torch.tensor([2.0, 0.0])], [torch.tensor([1.0, 1.0])])
    tensor([4.])
    """

    uniform: ClassVar[bool] = False
    """Whether a metric should have one number for all entries of a parameter."""

    def __init__(self, c: Callable[..., Tensor]) -> None:
        if not callable(c):
            raise TypeError(f"Constraint: c is a {type(c).__name__}; give a function of parameters")
        self._c = c

    def check(self, weights: Sequence[Tensor]) -> None:
        """Raises unless c can be computed for these parameters."""

    def residual(self, *weights: Tensor) -> Tensor:
        """c(w), as a vector."""
        c: Any = self._c(*weights)
        if not isinstance(c, Tensor) or not c.is_floating_point():
            raise TypeError(f"Constraint: the function returned a {type(c).__name__}; return a tensor of real numbers")
        return c.reshape(-1)

    @staticmethod
    def _gradients(
        of: Tensor, by: Sequence[Tensor], along: Tensor | None = None, *, again: bool = False
    ) -> list[Tensor | None]:
        """Derivatives; None where there are none. Torch's own types do not know of None."""
        return list(torch.autograd.grad(of, by, along, create_graph=again, allow_unused=True))

    def transposed(self, weights: Sequence[Tensor], y: Tensor) -> list[Tensor]:
        """Jᵀy, one tensor for each parameter."""
        leaves = [w.detach().requires_grad_() for w in weights]
        with torch.enable_grad():
            products = self._gradients(self.residual(*leaves), leaves, y)
        return [torch.zeros_like(w) if p is None else p for w, p in zip(weights, products, strict=True)]

    def product(self, weights: Sequence[Tensor], direction: Sequence[Tensor]) -> Tensor:
        """Jv. Jᵀu is linear in u, so the derivative of ⟨Jᵀu, v⟩ by u is Jv: reverse mode twice."""
        leaves = [w.detach().requires_grad_() for w in weights]
        with torch.enable_grad():
            c = self.residual(*leaves)
            u = torch.zeros_like(c, requires_grad=True)
            transposed = self._gradients(c, leaves, u, again=True)
            pairs = zip(transposed, direction, strict=True)
            slope = torch.stack([(j * v).sum() for j, v in pairs if j is not None]).sum()
            (product,) = self._gradients(slope, [u])
        return torch.zeros_like(c) if product is None else product

    def magnitude(self, weights: Sequence[Tensor]) -> float:
        """The size of the numbers whose difference is c. The rounding error of ‖c‖ is ε(‖c‖ + this)."""
        return 0.0


class Stiefel(Constraint):
    """WᵀW = I: orthonormal columns of a tall matrix, or orthonormal rows of a wide one.

    A weight of more than two dimensions, such as that of a convolution, is a matrix with one row per output channel.
    """

    uniform: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__(self._gram)

    @staticmethod
    def _matrix(w: Tensor) -> Tensor:
        matrix = w.flatten(1)
        return matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T

    def _gram(self, w: Tensor) -> Tensor:
        matrix = self._matrix(w)
        return matrix.T @ matrix - torch.eye(matrix.shape[1], dtype=w.dtype, device=w.device)

    def check(self, weights: Sequence[Tensor]) -> None:
        """One weight of two or more dimensions."""
        if len(weights) != 1 or weights[0].dim() < 2:
            shapes = [tuple(w.shape) for w in weights]
            raise ValueError(
                f"stiefel: needs one parameter that is a matrix, but the shapes are {shapes}; use 'sphere' for a vector"
            )

    def transposed(self, weights: Sequence[Tensor], y: Tensor) -> list[Tensor]:
        """W(Y + Yᵀ)."""
        matrix = self._matrix(weights[0])
        square = y.view(matrix.shape[1], matrix.shape[1])
        product = matrix @ (square + square.T)
        wide = matrix.shape != weights[0].flatten(1).shape
        return [(product.T if wide else product).reshape(weights[0].shape)]

    def product(self, weights: Sequence[Tensor], direction: Sequence[Tensor]) -> Tensor:
        """WᵀV + VᵀW."""
        w = weights[0].flatten(1)
        v = direction[0].flatten(1)
        half = w.T @ v if w.shape[0] >= w.shape[1] else w @ v.T
        return (half + half.T).reshape(-1)

    def magnitude(self, weights: Sequence[Tensor]) -> float:
        """Each of the k² entries is a difference of numbers near 1."""
        return float(min(weights[0].flatten(1).shape))


class Sphere(Constraint):
    """‖w‖² = r², over all entries of a parameter.

    Parameters
    ----------
    radius
        r, positive.
    """

    def __init__(self, radius: float = 1.0) -> None:
        check_numbers("sphere", {"radius": radius}, {"radius": Range(0.0)})
        self._square = radius * radius
        super().__init__(self._beyond)

    def _beyond(self, w: Tensor) -> Tensor:
        return w.square().sum() - self._square

    def transposed(self, weights: Sequence[Tensor], y: Tensor) -> list[Tensor]:
        """2y·w."""
        return [weights[0] * (2.0 * y)]

    def product(self, weights: Sequence[Tensor], direction: Sequence[Tensor]) -> Tensor:
        """2wᵀv."""
        return 2.0 * (weights[0] * direction[0]).sum().reshape(1)

    def magnitude(self, weights: Sequence[Tensor]) -> float:
        """r²."""
        return self._square


NAMES: dict[str, Callable[[], Constraint]] = {"stiefel": Stiefel, "sphere": Sphere}

Kind: TypeAlias = str | Constraint | Callable[..., Tensor]
Constraints: TypeAlias = Mapping[Any, Kind] | Kind | Sequence["Constraints"]


def constraint(owner: str, kind: Kind) -> Constraint:
    """A constraint by name, by function, or as it is."""
    if isinstance(kind, Constraint):
        return kind
    if isinstance(kind, str):
        if kind not in NAMES:
            raise ValueError(f"{owner}: there is no constraint {kind!r}; use one of {sorted(NAMES)}, or a function")
        return NAMES[kind]()
    return Constraint(kind)


class Penalty:
    """All constraints of an optimizer, over vectors of its layout."""

    def __init__(self, owner: str, constraints: Constraints) -> None:
        self._owner = owner
        self._wanted: list[tuple[Sequence[Tensor] | None, Constraint]] = []
        self._read(constraints)
        if not self._wanted:
            raise ValueError(
                f"{owner}: there is no constraint; use STR or Auto, or name one: `constraints={{weight: 'stiefel'}}`"
            )

    def _read(self, constraints: Any) -> None:
        if isinstance(constraints, Mapping):
            for parameters, kind in cast(Mapping[Any, Kind], constraints).items():
                chosen: list[Any] = [parameters] if isinstance(parameters, Tensor) else list(parameters)
                if not all(isinstance(p, Tensor) for p in chosen):
                    raise TypeError(
                        f"{self._owner}: the keys of `constraints` must be parameters, such as `model.layer.weight`"
                    )
                self._wanted.append((chosen, constraint(self._owner, kind)))
        elif isinstance(constraints, (list, tuple)):
            for one in cast(Sequence[Any], constraints):
                self._read(one)
        elif isinstance(constraints, str):
            raise TypeError(
                f"{self._owner}: {constraints!r} needs a parameter; write "
                f"`constraints={{model.layer.weight: {constraints!r}}}`"
            )
        else:
            self._wanted.append((None, constraint(self._owner, constraints)))

    def __getstate__(self) -> dict[str, Any]:
        return {"_owner": self._owner, "_wanted": self._wanted}

    def bind(self, flat: Flat) -> None:
        """Finds the parameters of each constraint in the layout."""
        self._flat = flat
        index = {id(p): i for i, p in enumerate(flat.parameters)}
        self._bound: list[tuple[list[int], Constraint]] = []
        for parameters, one in self._wanted:
            chosen = flat.parameters if parameters is None else parameters
            for p in chosen:
                if id(p) not in index:
                    raise ValueError(
                        f"{self._owner}: a constraint names a parameter of shape {tuple(p.shape)} that the optimizer "
                        "does not train; pass it in `params`, and let it require a gradient"
                    )
            one.check(chosen)
            self._bound.append(([index[id(p)] for p in chosen], one))
        magnitudes = [one.magnitude([flat.parameters[i] for i in places]) for places, one in self._bound]
        self._magnitude = math.hypot(*magnitudes)
        self._lengths = [len(c) for c in self._each(flat.point)]

    def _parts(self, vector: Tensor) -> list[tuple[list[Tensor], Constraint]]:
        views = self._flat.views(vector)
        return [([views[i] for i in places], one) for places, one in self._bound]

    def _each(self, x: Tensor) -> list[Tensor]:
        with torch.autocast(self._flat.device.type, enabled=False):
            return [one.residual(*weights).to(self._flat.dtype) for weights, one in self._parts(x)]

    def residual(self, x: Tensor) -> Tensor:
        """c(x), all constraints one after the other."""
        return torch.cat(self._each(x))

    def add_transposed(self, x: Tensor, a: float, y: Tensor, out: Tensor) -> None:
        """Adds: out ← out + a·Jᵀy."""
        views = self._flat.views(out)
        with torch.autocast(self._flat.device.type, enabled=False):
            for (places, one), (weights, _), part in zip(
                self._bound, self._parts(x), torch.split(y, self._lengths), strict=True
            ):
                for i, product in zip(places, one.transposed(weights, part), strict=True):
                    views[i].add_(product, alpha=a)

    def product(self, x: Tensor, v: Tensor) -> Tensor:
        """Jv."""
        with torch.autocast(self._flat.device.type, enabled=False):
            pairs = zip(self._parts(x), self._parts(v), strict=True)
            return torch.cat([one.product(w, along).reshape(-1) for (w, one), (along, _) in pairs])

    def rounding(self, norm: Tensor) -> Tensor:
        """The rounding error of ‖c‖."""
        return torch.finfo(self._flat.dtype).eps * (norm + self._magnitude)
