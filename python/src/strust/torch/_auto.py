"""Auto: training without a learning rate."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import Module

from . import _learned as learned
from ._averaged import averaged_model
from ._base import SLACK, Parameters, TrialOptimizer
from ._flat import Flat
from ._kernels import AutoKernels
from ._operations import norm
from ._reduce import ProcessGroup
from ._settings import Range, check_flags


class Auto(TrialOptimizer):
    """A trust region that needs no learning rate and no schedule: the defaults are meant for every problem.

    There are three points: z, where steps are made; x, the weighted average of the z, which is the answer; and y
    between them, where gradients are taken. During training the parameters hold y. In `averaged()` they hold x.

    ::

        y = z + β(x − z);   f₀, g = f(y), ∇f(y) on the batch
        D = √(mean of g∘g) + ε·(its mean)
        d = D⁻¹g
        n = mean of ½‖g − gₗₐₛₜ‖² in D⁻¹;   r̄ = largest ‖y − x₀‖ in D
        a = min(γₖ·Γ/κ, q·r̄/√(n·√k), 1.5·aₗₐₛₜ)       Γ = (2 − c)/(2(1 − β) + c(2β − 1))
        z' = (z − a·d)/(1 + a·λ);   x' = x + c(z' − x);   y' = z' + β(x' − z')
        f₁ = f(y') on the same batch;   Δ = y' − y;   h = 2(f₁ − f₀ − gᵀΔ)/ΔᵀDΔ
        κ = (mean of h²)/(mean of h)
        accept if f₁ ≤ f₀ or h ≤ 3κ; otherwise only a and κ change

    2Γ/κ is the longest stable step. The first step promises to reduce f by a thousandth.

    Parameters
    ----------
    params
        Parameters or parameter groups, as in every optimizer. Only `weight_decay` may differ between groups.
    gamma
        Longest step of z, γ: in multiples of the middle Γ/κ of the stable range, which is 10/κ for long averages.
    noise
        Length of a step of z against noise, q: in multiples of r̄/√(n·√k).
    momentum
        Where gradients are taken, β: between z (0) and the average x (1).
    power
        Power r of the weights of the average.
    beta2
        Memory β₂ of the metric D.
    epsilon
        Smallest entry ε of the metric, relative to its mean.
    weight_decay
        Decoupled weight decay λ. 0 minimizes the loss itself.
    maximize
        Whether to maximize the loss.
    model
        The model or models whose buffers a trial must not change. By default they are the outermost modules with these
        parameters that the closure calls in the first step.
    process_group
        The group of `torch.distributed` whose ranks take one decision; 'default' is the default group if there is
        one, and None makes every process decide alone.
    averaged_gradients
        Whether the gradients are means over the group already, as `DistributedDataParallel` makes them.
    grad_in_trial
        Whether the loss itself needs derivatives, such as the penalty on a gradient. The trial then records operations.
    fused
        Whether a CUDA device computes the step in four kernels of its own: None if they can be compiled, True to
        raise an error if not, False to use torch's operations.

    Examples
    --------
    >>> import torch
    >>> from strust.torch import Auto
    >>> _ = torch.manual_seed(0)
    >>> inputs = torch.randn(64, 3)
    >>> targets = inputs @ torch.tensor([[1.0], [2.0], [3.0]])
    >>> model = torch.nn.Linear(3, 1)
    >>> opt = Auto(model.parameters())
    >>> def closure():
    ...     opt.zero_grad()
    ...     loss = torch.nn.functional.mse_loss(model(inputs), targets)
    ...     loss.backward()
    ...     return loss
    >>> for _ in range(200):
    ...     loss = opt.step(closure)
    >>> with opt.averaged():
    ...     bool(torch.nn.functional.mse_loss(model(inputs), targets) < 1e-6)
    True
    """

    _points: ClassVar[tuple[str, ...]] = ("x", "z", "start")
    _memories: tuple[str, ...] = ("gradient", "root")
    _initial: ClassVar[dict[str, float]] = learned.INITIAL
    _ranges: ClassVar[dict[str, Range]] = {
        "gamma": Range(0.0),
        "noise": Range(0.0),
        "momentum": Range(0.0, 1.0, open=False),
        "power": Range(0.0, open=False),
        "beta2": Range(0.0, 1.0),
        "epsilon": Range(0.0),
        "weight_decay": Range(0.0, open=False),
    }

    _carried: ClassVar[tuple[str, ...]] = (*TrialOptimizer._carried, "_fused")
    _held = False
    """Whether the parameters hold the average."""

    def __init__(
        self,
        params: Parameters,
        *,
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
        averaged_gradients: bool = False,
        grad_in_trial: bool = False,
        fused: bool | None = None,
    ) -> None:
        if fused is not None:
            check_flags("Auto", locals(), ("fused",))
        self._fused = fused
        super().__init__(params, locals())

    def _built(self, flat: Flat) -> None:
        self._settled()
        self._kernels = AutoKernels.make(self._fused, flat, self._vector, self._numbers, self._losses)
        self._new: dict[str, Tensor] = {}

    def _settled(self) -> None:
        """λ: one number, or a vector if the groups differ."""
        self._decay: float | Tensor = float(self.param_groups[0]["weight_decay"])
        decays = [(g["weight_decay"], p) for g in self.param_groups for p in g["params"] if p.requires_grad]
        if self._flat is not None and any(decay != self._decay for decay, _ in decays):
            self._decay = self._flat.zeros()
            for view, (decay, _) in zip(self._flat.views(self._decay), decays, strict=True):
                view.fill_(decay)

    def _set_point(self, flat: Flat) -> None:
        torch.lerp(self._vector["z"], self._vector["x"], self.param_groups[0]["momentum"], out=flat.point)
        self._restored(flat.point)

    def _along(self, y: Tensor, g: Tensor, metric: Tensor) -> Tensor:
        """The gradient whose step D⁻¹g stays on constraints, for a method that has some."""
        return g

    def _restored(self, point: Tensor) -> Tensor:
        """The point, moved in place onto constraints."""
        return point

    def _metric(self, flat: Flat, root: Tensor, steps: Tensor) -> Tensor:
        """D after this many steps. In the first ones the mean of g∘g has less than its full weight."""
        s = self.param_groups[0]
        correction = torch.rsqrt(-torch.expm1(steps * math.log(s["beta2"])))
        mean = correction * root.sum(dtype=steps.dtype) / flat.count
        return torch.addcmul((s["epsilon"] * mean).to(flat.dtype), root, correction.to(flat.dtype))

    def _propose(self, flat: Flat) -> None:
        # The first size depends on the loss: every rank needs the mean before its trial.
        self._reduce.losses(self._losses[:1])
        if self._kernels is not None:
            self._kernels.propose(self.param_groups[0], self._decay, SLACK * self._epsilon, scaled=self._scaled)
            return
        s, number, kind = self.param_groups[0], self._number, self._losses.dtype
        x, z, start, last, root = (self._vector[name] for name in ("x", "z", "start", "gradient", "root"))
        y, g = flat.point.clone(), flat.gradient
        beta2 = s["beta2"]

        def total(v: Tensor) -> Tensor:
            return v.sum(dtype=kind)

        # D and d = D⁻¹g
        new_root = torch.hypot(root * math.sqrt(beta2), g * math.sqrt(1.0 - beta2))
        metric = self._metric(flat, new_root, number["accepted"] + 1.0)
        g = self._along(y, g, metric)
        d = g / metric

        # r̄² and n
        distance = total((y - start).square_().mul_(metric))
        measured = learned.measure(number, distance, 0.5 * total((g - last).square_().div_(metric)))

        c, fall = learned.share_of(measured, s["power"]), total(g * d)
        first = learned.first_size(self._losses[0], fall)
        a = learned.next_size(measured, c, first, gamma=s["gamma"], q=s["noise"], momentum=s["momentum"])
        balance = total(g * (z - x)) / (a * fall)
        new_z = torch.addcmul(z, -a.to(flat.dtype), d)
        if isinstance(self._decay, Tensor) or self._decay > 0.0:
            new_z /= 1.0 + a.to(flat.dtype) * self._decay
        new_z = self._restored(new_z)
        new_x = self._restored(torch.lerp(x, new_z, c.to(flat.dtype)))
        trial = self._restored(torch.lerp(new_z, new_x, s["momentum"], out=flat.point))

        # gᵀΔ and ΔᵀDΔ do not need the loss at the trial.
        delta = trial - y
        slope, square = total(g * delta), total(delta.square_().mul_(metric))
        self._new = {"x": new_x, "z": new_z, "root": new_root, "gradient": g}
        self._proposed = measured, a, balance, slope, square

    def _judge(self, flat: Flat) -> None:
        if self._kernels is not None:
            self._kernels.judge()
            return
        old, (f0, f1) = self._vector, self._losses.unbind()
        measured, a, balance, slope, square = self._proposed
        squared_norm, rounding = norm(flat.gradient, dtype=f0.dtype).square(), SLACK * self._epsilon * f0.abs()
        trial = learned.Trial(a, balance, squared_norm, f0, f1, rounding, slope, square)
        accept, retreats, numbers = learned.judge(self._number, measured, trial, scaled=self._scaled)
        torch.stack(list(numbers.values()), out=self._numbers)
        old["z"].copy_(torch.where(retreats, old["x"], old["z"]))
        for name, value in self._new.items():
            torch.where(accept, value, old[name], out=old[name])
        self._new = {}

    @contextmanager
    def averaged(self, batches: Iterable[Any] | None = None, model: Module | None = None) -> Generator[None]:
        """A context in which the parameters hold the average x: to evaluate, save or export the model.

        The statistics of batch-norm belong to y. With `batches`, they are made anew at x: each batch is passed to
        the model in training mode. Afterwards parameters, buffers and generators are what they were, bit for bit.

        Parameters
        ----------
        batches
            Training batches, such as the first of a data loader. Of a tuple or list, the first entry is the input; a
            mapping is passed as keyword arguments.
        model
            The model to pass them to. By default it is that of the closure.

        Examples
        --------
        >>> import torch
        >>> from strust.torch import Auto
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
        >>> opt = Auto(model.parameters(), model=model)
        >>> with opt.averaged(torch.randn(8, 4, 2)):
        ...     saved = model.state_dict()
        """
        if self._held:
            raise RuntimeError("Auto: averaged() is active already; it cannot be nested")
        self._check_progress()
        flat = self._ready()
        self._held = True
        try:
            with torch.no_grad():
                flat.point.copy_(self._vector["x"])
                flat.scatter_point()
            with averaged_model(self._buffers.models if model is None else [model], batches, flat.device):
                yield
        finally:
            self._held = False
            with torch.no_grad():
                self._return(flat)

    def _ready(self) -> Flat:
        if self._held:
            raise RuntimeError("Auto: the parameters hold the average in averaged(); leave it before the next step")
        return super()._ready()
