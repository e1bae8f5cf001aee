"""ConstrainedAuto: training under constraints, without a learning rate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, NoReturn, TypeAlias, cast

import torch
from torch import Tensor
from torch.nn import Module

from ._auto import Auto
from ._base import Loss, Parameters
from ._constraints import Constraints
from ._feasible import Feasible
from ._flat import Flat
from ._learned import CONSTANTS
from ._multipliers import Measured, Multipliers, share
from ._operations import copy_all, gradients, norm, numbers, parts_of
from ._reduce import ProcessGroup

Bounds: TypeAlias = tuple[float | None, float | None]
"""The lower and the upper bound of a row; None where there is none."""
LossAndRows: TypeAlias = Callable[[], Tensor | tuple[Tensor, Tensor] | tuple[Tensor, Tensor, Tensor]]
"""Evaluates the loss of one batch, then the rows, then their true rates."""


class ConstrainedAuto(Auto):
    """`Auto` under constraints: on means that only mini-batches know, and on the parameters themselves.

    **Rows** are means over the data, lowerᵢ ≤ E cᵢ ≤ upperᵢ, such as the difference between the mean scores of two
    groups. Each batch shows them with noise. The closure returns the loss and a tensor with one number per row, both
    of the batch. Each row has a multiplier μ, which the method finds by itself: `Auto` makes its step on

    ::

        loss + Σ μᵢ·cᵢ        μ is fixed before the batch is seen

    and μ follows the violation that the batches show. Its gain is learned from the noise of cᵢ; nothing is tuned. The
    mean satisfies the rows up to that noise; a single batch need not.

    **Constraints on parameters**, c(w) = 0, such as orthonormal columns, hold at every point, up to rounding: the steps
    are projected, and Newton steps move z, x and y back.

    Parameters
    ----------
    params
        Parameters or parameter groups, as for `Auto`.
    rows
        The bounds (lower, upper) of each row; None where there is none. (0, 0) is an equality.
    constraints
        What the parameters must satisfy, as for `STRP`. The optimizer moves a start onto it.
    gamma, noise, momentum, power, beta2, epsilon, weight_decay, maximize, model, process_group, grad_in_trial, fused
        As for `Auto`. With `constraints` there are no fused kernels.

    Notes
    -----
    The closure calls neither `zero_grad` nor `backward`. A row that this batch does not know, because no member of its
    group is in it, is NaN: that is no error. If a row is a rate that has no gradient, return a smooth surrogate as the
    row and the rate as third value: the steps use the surrogate, and the multiplier the rate.

    A row costs one more backward pass in a step while it has a multiplier or is near a bound, and nothing otherwise.
    It needs one more vector of the size of the parameters. Each step reads a few numbers on the host.

    Examples
    --------
    The mean of w must be 1; each batch knows it with noise:

    >>> import torch
    >>> from strust.torch import ConstrainedAuto
    >>> w = torch.nn.Parameter(torch.zeros(2))
    >>> opt = ConstrainedAuto([w], rows=[(1.0, 1.0)])
    >>> generator = torch.Generator().manual_seed(0)
    >>> for _ in range(2000):
    ...     noise = 0.1 * torch.randn(3, generator=generator)
    ...     def closure():
    ...         loss = (w - torch.tensor([3.0, 2.0]) + noise[:2]).square().sum()
    ...         return loss, (w.mean() + noise[2]).reshape(1)
    ...     loss = opt.step(closure)
    >>> with opt.averaged():
    ...     [round(v, 1) for v in w.tolist()]
    [1.5, 0.5]
    """

    _accepted = 0.0
    _carried: ClassVar[tuple[str, ...]] = (*Auto._carried, "_bounds", "_memories", "_further", "_feasible")

    def __init__(
        self,
        params: Parameters,
        *,
        rows: Sequence[Bounds] = (),
        constraints: Constraints | None = None,
        gamma: float = 0.7,
        noise: float = 0.7,
        momentum: float = 0.9,
        power: float = 3.0,
        beta2: float = 0.99,
        epsilon: float = 1e-6,
        weight_decay: float = 0.0,
        maximize: bool = False,
        model: Module | Sequence[Module] | None = None,
        process_group: ProcessGroup | Literal["default"] | None = "default",
        grad_in_trial: bool = False,
        fused: bool | None = None,
    ) -> None:
        self._bounds = [_checked(i, bounds) for i, bounds in enumerate(rows)]
        self._feasible = None if constraints is None else Feasible("ConstrainedAuto", constraints)
        if not self._bounds and self._feasible is None:
            raise ValueError("ConstrainedAuto: there is no constraint; give `rows` or `constraints`, or use Auto")
        if self._feasible is not None and fused:
            raise ValueError("ConstrainedAuto: with `constraints` there are no kernels; leave `fused` away")
        count = len(self._bounds)
        self._memories = (*Auto._memories, *(f"slope{i}" for i in range(count)))
        self._further = Multipliers.length(count)
        super().__init__(
            params,
            gamma=gamma,
            noise=noise,
            momentum=momentum,
            power=power,
            beta2=beta2,
            epsilon=epsilon,
            weight_decay=weight_decay,
            maximize=maximize,
            model=model,
            process_group=process_group,
            grad_in_trial=grad_in_trial,
            fused=fused if self._feasible is None else False,
        )

    # ---- one step

    def step(self, closure: LossAndRows) -> Tensor:  # type: ignore[override]
        """Makes one step of `Auto` on the Lagrangian of the batch, then sets the multipliers of the next one.

        Parameters
        ----------
        closure
            Evaluates one batch and returns the loss, or (loss, rows), or (loss, rows, rates). It does not call
            `backward`. It is called twice; the second call, at the trial point, records no operation.

        Returns
        -------
        Tensor
            The loss before the step, without the rows.
        """
        super().step(closure)  # type: ignore[arg-type]
        return self._loss

    def evaluate(self, loss: Loss, *, scale: float = 1.0) -> NoReturn:
        """Raises an error: this optimizer calls `backward` itself, so it needs `step(closure)`."""
        raise TypeError("ConstrainedAuto: call step(closure), where the closure returns (loss, rows)")

    def _value(self, value: Any, flat: Flat) -> Tensor:
        loss, rows, rates = self._parts(value, flat)
        if self._evaluating:
            self._differentiate(flat, loss, rows, rates)
        if rows is None:
            return loss
        return loss + (torch.where(self._known, rows, 0.0) * self._forces).sum()

    def _parts(self, value: Any, flat: Flat) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """The loss, the rows and their rates, checked."""
        loss, *others = parts_of(value)
        loss, count = super()._value(loss, flat), len(self._bounds)
        if len(others) not in ((1, 2) if count else (0,)):
            wanted = "(loss, rows) or (loss, rows, rates)" if count else "the loss"
            raise ValueError(f"ConstrainedAuto: the closure returned {len(others) + 1} values; return {wanted}")
        for one in others:
            if not isinstance(one, Tensor) or not one.is_floating_point() or one.shape != (count,):
                what = f"shape {tuple(one.shape)}" if isinstance(one, Tensor) else f"type {type(one).__name__}"
                raise ValueError(
                    f"ConstrainedAuto: the closure returned rows of {what}, but `rows` has {count} bounds; return a "
                    "tensor with one real number for each, and NaN for a row that the batch does not know"
                )
            if one.device != flat.device:
                raise ValueError(
                    f"ConstrainedAuto: the rows are on {one.device}, but the parameters are on {flat.device}"
                )
        rows, rates = [*others, None, None][:2]
        return loss, rows, rates

    def _differentiate(self, flat: Flat, loss: Tensor, rows: Tensor | None, rates: Tensor | None) -> None:
        """The gradients of the loss and of the rows in play, as means over all ranks, and that of the Lagrangian."""
        self._loss = loss.detach()
        self._slopes: dict[int, Tensor] = {}
        lagrangian = flat.zeros()
        if rows is not None:
            here = rows.detach() if rates is None else rates.detach()
            self._known = ~(rows.detach() + here).isnan()
            # Row by row: the mean over the ranks that know it, and their share.
            table = torch.stack([torch.where(self._known, here, 0.0), self._known]).to(self._losses.dtype)
            self._reduce.losses(table)
            seen = numbers(torch.stack([table[0] / table[1], table[1], self._known]))
            count = len(self._bounds)
            self._values, shares, known = seen[:count], seen[count : 2 * count], seen[2 * count :]
            # The loss is a mean over all ranks, so the ranks that know a row also act for the others.
            forces = [
                self._sign * force / (known_by or 1.0)
                for force, known_by in zip(self._multipliers.forces(), shares, strict=True)
            ]
            self._forces = torch.tensor(forces, dtype=self._losses.dtype, device=flat.device)
            for i, row in enumerate(self._multipliers.rows):
                if shares[i] > 0.0 and row.is_in_play:
                    slope = self._gradient(flat, rows[i], "row", keep=True) if known[i] else flat.zeros()
                    self._reduce.gradient(slope)
                    lagrangian.add_(slope, alpha=forces[i])
                    self._slopes[i] = slope.div_(shares[i])
            self._before = self._vector["z"] - flat.point
        self._loss_gradient = self._gradient(flat, loss, "loss", keep=False)
        self._reduce.gradient(self._loss_gradient)
        self._lagrangian_gradient = lagrangian.add_(self._loss_gradient)

    def _gradient(self, flat: Flat, of: Tensor, what: str, *, keep: bool) -> Tensor:
        """The gradient of a number of the closure as one vector."""
        if not of.requires_grad:
            raise RuntimeError(
                f"ConstrainedAuto: the {what} has no gradient; compute it from the parameters, without `detach` and "
                "`no_grad`. For a rate that has no gradient, return a smooth row and the rate as third value"
            )
        try:
            found = gradients(of, flat.parameters, keep=keep)
        except RuntimeError as error:
            raise RuntimeError(
                f"ConstrainedAuto: the {what} could not be differentiated; the closure must not call `backward`, "
                "because the optimizer does"
            ) from error
        vector = flat.zeros()
        pairs = [(v, g) for v, g in zip(flat.views(vector), found, strict=True) if g is not None]
        if not pairs and what == "loss":
            raise RuntimeError("ConstrainedAuto: the loss does not depend on the parameters of the optimizer")
        copy_all([v for v, _ in pairs], [g for _, g in pairs])
        return vector

    @property
    def _sign(self) -> float:
        """−1 where the loss is maximized."""
        return -1.0 if self.param_groups[0]["maximize"] else 1.0

    def _set_gradient(self, flat: Flat) -> None:
        flat.gradient.copy_(self._lagrangian_gradient)

    def _propose(self, flat: Flat) -> None:
        self._y = flat.point.clone()
        super()._propose(flat)

    def _judge(self, flat: Flat) -> None:
        super()._judge(flat)
        if self._bounds:
            self._learn(flat)

    def _learn(self, flat: Flat) -> None:
        """Sets the multipliers of the next step from what this batch has shown."""
        kind, number, g = self._losses.dtype, self._number, self._sign * self._loss_gradient
        metric = self._metric(flat, self._vector["root"], number["accepted"])
        if self._feasible is not None:
            g, *slopes = (self._feasible.tangent(self._y, v, metric) for v in (g, *self._slopes.values()))
            self._slopes = dict(zip(self._slopes, slopes, strict=True))
        means = torch.stack([self._vector[f"slope{i}"] for i in range(len(self._bounds))])
        moved = torch.stack([g, *self._slopes.values()])
        scaled = moved / metric
        ahead = torch.stack([self._before, self._vector["z"] - self._y])
        head = (number["accepted"], number["size"], self._losses[0], norm(flat.gradient, dtype=kind))
        parts = [torch.stack(head), (moved * scaled).sum(1, dtype=kind), means @ ahead.T, means @ scaled.T]
        # One copy from the device: the step waits for it.
        found = numbers(torch.cat([part.reshape(-1).to(kind) for part in parts]))
        accepted, size, loss, length, force, *rest = found
        is_accepted, self._accepted = accepted > self._accepted, accepted
        is_finite = math.isfinite(loss + length) and not any(map(math.isinf, self._values))
        if is_finite and length == 0.0 and force == 0.0:
            for row, value in zip(self._multipliers.rows, self._values, strict=True):
                if not math.isnan(value):
                    row.pull(value)
            self._rest.copy_(torch.tensor(self._multipliers.numbers(), dtype=kind))
        if not (accepted > 0.0 and is_finite and length > 0.0):
            return
        count = len(self._slopes)
        ends = count + 2 * len(self._bounds)
        squares, changes, products = rest[:count], rest[count:ends], rest[ends:]
        self._multipliers.learn(
            Measured(
                values=self._values,
                slopes=list(self._slopes),
                before=changes[::2],
                after=changes[1::2],
                force=force,
                squares=squares,
                walks=products[:: count + 1],
                products=[products[k + 1 : k + 1 + count] for k in range(0, len(products), count + 1)],
                # A rejection has made it shorter.
                size=size if is_accepted else size * CONSTANTS["SHRINK"],
            )
        )
        for i, slope in self._slopes.items():
            weight = share(self._multipliers.rows[i].slopes)
            self._vector[f"slope{i}"].mul_(1.0 - weight).add_(slope, alpha=weight)
        self._rest.copy_(torch.tensor(self._multipliers.numbers(), dtype=kind))

    # ---- constraints on parameters

    def _metric(self, flat: Flat, root: Tensor, steps: Tensor) -> Tensor:
        metric = super()._metric(flat, root, steps)
        return metric if self._feasible is None else self._feasible.level(metric)

    def _along(self, y: Tensor, g: Tensor, metric: Tensor) -> Tensor:
        return g if self._feasible is None else self._feasible.tangent(y, g, metric)

    def _restored(self, point: Tensor) -> Tensor:
        # A trial that cannot be restored has no finite loss, so it is rejected.
        if self._feasible is not None and not self._feasible.restore(point):
            point.fill_(math.nan)
        return point

    # ---- state

    def _built(self, flat: Flat) -> None:
        super()._built(flat)
        self._multipliers = Multipliers(self._bounds)
        if self._bounds:
            self._multipliers.load(numbers(self._rest))
        self._accepted = float(self._number["accepted"])
        if self._feasible is None:
            return
        self._feasible.bind(flat)
        if float(self._number["steps"]) == 0.0:
            self._restore_points()
            self._vector["start"].copy_(self._vector["x"])

    def _restore_points(self) -> None:
        """Moves z and x onto the constraints on parameters."""
        assert self._feasible is not None
        for name in ("z", "x"):
            if not self._feasible.restore(self._vector[name]):
                raise ValueError(
                    "ConstrainedAuto: no parameters that satisfy `constraints` were found from these; start closer to "
                    "them, for example with `torch.nn.init.orthogonal_`, and check that they do not contradict each "
                    "other"
                )

    def _follow(self, flat: Flat) -> None:
        super()._follow(flat)
        if self._feasible is not None:
            with torch.no_grad():
                self._restore_points()
                self._return(flat)

    def _check_progress(self) -> None:
        super()._check_progress()
        for i, row in enumerate(self._multipliers.rows if self._flat is not None else ()):
            if self._multipliers.force.count > 0.0 == row.known:
                raise RuntimeError(
                    f"ConstrainedAuto: row {i} was NaN in every step; no batch had members of its groups. Check the "
                    "groups, or make batches with StratifiedBatches"
                )

    def multipliers(self) -> list[float]:
        """The multiplier of each row: positive at an upper bound, negative at a lower one, 0 between them.

        It is the change of the smallest mean loss if the bound moves by 1, with the sign of a loss that falls when an
        upper bound is raised. Waits for the device.
        """
        if not self._held:
            self._ready()
        return [row.mean.mean for row in self._multipliers.rows]


def _checked(i: int, bounds: Any) -> tuple[float, float]:
    """The bounds of a row as numbers, infinite where there is none."""
    if not isinstance(bounds, (tuple, list)) or len(cast(Sequence[Any], bounds)) != 2:
        raise TypeError(f"ConstrainedAuto: row {i} has the bounds {bounds!r}; give a pair (lower, upper)")
    lower, upper = cast(Sequence[Any], bounds)
    for one in (lower, upper):
        if one is not None and (isinstance(one, bool) or not isinstance(one, (int, float))):
            raise TypeError(f"ConstrainedAuto: row {i} has the bound {one!r}; give a number, or None for no bound")
    low, high = -math.inf if lower is None else float(lower), math.inf if upper is None else float(upper)
    if not low <= high or low == math.inf or high == -math.inf or (low, high) == (-math.inf, math.inf):
        raise ValueError(
            f"ConstrainedAuto: row {i} has the bounds {bounds!r}; give a finite one, with lower at most upper"
        )
    return low, high
