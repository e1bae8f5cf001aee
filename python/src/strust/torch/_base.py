"""What the optimizers share: one step with a trial on the same batch, and its state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, NoReturn, TypeAlias

import torch
from torch import Tensor
from torch.amp.grad_scaler import GradScaler
from torch.nn import Module
from torch.optim import Optimizer

from ._flat import Flat, pointers
from ._reduce import LOST, Reduce
from ._settings import Range, check_flags, check_numbers, check_parameter, check_same_in_groups
from ._trial import Buffers, Generators, capturing, no_trace
from ._watch import Watch

Loss: TypeAlias = Callable[[], Tensor]
"""Evaluates the loss of one batch."""
SLACK = 10.0
"""Rounding errors of size ε·|f| in a computed loss."""
Parameters: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]


@dataclass
class Evaluation:
    """One evaluation of the current step, so that the trial can repeat it."""

    loss: Tensor
    again: Loss
    scale: float
    generators: Generators


class TrialOptimizer(Optimizer):
    """A `torch.optim.Optimizer` whose step evaluates the loss again, at a trial point, and accepts or rejects it.

    Every decision is made on the device of the parameters: a step never waits for it. A subclass names its vectors and
    numbers, proposes a trial point and judges it.
    """

    _points: ClassVar[tuple[str, ...]] = ("x",)
    """Vectors that begin at the parameters."""
    _memories: tuple[str, ...] = ()
    """Vectors that begin at 0."""
    _initial: ClassVar[dict[str, float]] = {}
    """Numbers and their values at the start. The last two are counted here."""
    _further: int = 0
    """Numbers without names, which begin at 0."""
    _ranges: ClassVar[dict[str, Range]] = {}
    """The settings that are numbers."""
    _carried: ClassVar[tuple[str, ...]] = ("_grad_in_trial", "_reduce")
    """Attributes of a copy."""

    _flat: Flat | None
    _pending: list[Evaluation]
    _checked: tuple[object, ...]
    _evaluating = False

    def __init__(self, params: Parameters, given: Mapping[str, Any]) -> None:
        """Starts with the arguments of the subclass, by name."""
        name = type(self).__name__
        check_flags(name, given, ("maximize", "averaged_gradients", "grad_in_trial"))
        model = given["model"]
        models: list[Any] = [] if model is None else [model] if isinstance(model, Module) else list(model)
        for one in models:
            if not isinstance(one, Module):
                raise TypeError(f"{name}: `model` is a {type(one).__name__}; give a torch.nn.Module or several")
        self._reduce = Reduce(name, given["process_group"], averaged_gradients=given["averaged_gradients"])
        self._buffers = Buffers(models)
        self._grad_in_trial: bool = given["grad_in_trial"]
        self._forget()
        # Schedulers and loggers of other libraries read `lr`.
        super().__init__(params, {"lr": 1.0, **{n: given[n] for n in self._ranges}, "maximize": given["maximize"]})

    # ---- settings

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters. They begin where they are, and nothing is known about them yet.

        Parameters
        ----------
        param_group
            `params`, and `weight_decay` if it differs. All other settings are those of the whole optimizer.
        """
        super().add_param_group(param_group)
        try:
            for p in self.param_groups[-1]["params"]:
                check_parameter(type(self).__name__, p)
            self._check()
        except (TypeError, ValueError):
            self.param_groups.pop()
            raise
        self._flat = None

    def _check(self) -> None:
        """Checks the settings again if a group has changed."""
        names = ("lr", "maximize", *self._ranges)
        now = tuple(group[name] for group in self.param_groups for name in names)
        if now == self._checked:
            return
        name = type(self).__name__
        for group in self.param_groups:
            if group["lr"] != 1.0:
                raise ValueError(
                    f"{name}: `lr` is {group['lr']}, but this method has no learning rate; remove the scheduler, or "
                    "use a constant one. `lr` exists for other libraries that read it, and is always 1"
                )
            check_numbers(name, group, self._ranges)
            check_flags(name, group, ("maximize",))
        check_same_in_groups(name, self.param_groups, tuple(n for n in names if n not in ("lr", "weight_decay")))
        self._checked = now
        self._settled()

    def _settled(self) -> None:
        """Called after the settings have changed and are in their ranges."""

    # ---- one step

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Resets the gradients, as in every optimizer, and forgets evaluations that no `step` has used."""
        super().zero_grad(set_to_none)
        if not self._evaluating:
            self._pending = []

    def evaluate(self, loss: Loss, *, scale: float = 1.0) -> Tensor:
        """Evaluates a loss and remembers how, so that `step()` without a closure can repeat it.

        For loops that call `backward` themselves. Several evaluations before a step are added up, as their gradients
        are.

        Parameters
        ----------
        loss
            Evaluates the model on one batch. It is called again at the trial point.
        scale
            The factor between this loss and the one whose gradients are used, such as 1/n for the mean of n batches.

        Returns
        -------
        Tensor
            The loss, not scaled.

        Examples
        --------
        >>> import torch
        >>> from strust.torch import Auto
        >>> w = torch.nn.Parameter(torch.tensor([3.0, -2.0]))
        >>> opt = Auto([w])
        >>> for _ in range(100):
        ...     opt.zero_grad()
        ...     opt.evaluate(lambda: w.square().sum()).backward()
        ...     opt.step()
        >>> with opt.averaged():
        ...     bool(w.square().sum() < 1e-2)
        True
        """
        return self._evaluate(self._ready(), loss, scale)

    def _evaluate(self, flat: Flat, loss: Loss, scale: float) -> Tensor:
        if not callable(loss):
            raise TypeError(
                f"{type(self).__name__}: the closure is a {type(loss).__name__}; give a function without arguments"
            )
        generators = Generators(flat.device)
        self._evaluating = True
        try:
            with torch.enable_grad(), self._buffers.watch(flat.parameters):
                value = self._value(loss(), flat)
        finally:
            self._evaluating = False
        self._pending.append(Evaluation(value.detach(), loss, scale, generators))
        return value

    def step(  # type: ignore[override]
        self, closure: Loss | None = None, *, scaler: GradScaler | None = None
    ) -> Tensor | None:
        """Makes one step: gradient, trial on the same batch, verdict.

        Parameters
        ----------
        closure
            Resets the gradients, evaluates the loss of one batch, calls `backward`, and returns the loss. It is called
            twice. In the second call, at the trial point, `backward` does nothing and no operation is recorded.
        scaler
            The `GradScaler` with which the closure scales the loss. Call `scaler.update()` after the step, as usual.

        Returns
        -------
        Tensor or None
            The loss before the step; None without a closure.
        """
        flat = self._ready()
        if closure is not None:
            self._pending = []
        elif not self._pending:
            raise TypeError(
                f"{type(self).__name__}: step() needs a closure, because it evaluates the loss of the batch twice: "
                "step(closure), where the closure calls zero_grad and backward and returns the loss. If your loop "
                "calls backward itself, compute the loss with `evaluate` before"
            )
        loss = None if closure is None else self._evaluate(flat, closure, 1.0).detach()
        evaluations, self._pending = self._pending, []
        if scaler is not None:
            scaler.unscale_(self)
        with torch.no_grad():
            self._scaled = scaler is not None and scaler.is_enabled()
            self._advance(flat, evaluations)
        return loss

    def _advance(self, flat: Flat, evaluations: list[Evaluation]) -> None:
        sign = -1.0 if self.param_groups[0]["maximize"] else 1.0
        self._set_gradient(flat)
        if sign < 0.0:
            flat.gradient.neg_()
        self._epsilon = max(torch.finfo(e.loss.dtype).eps for e in evaluations)
        self._epsilon = max(self._epsilon, torch.finfo(flat.dtype).eps)
        _add_up(self._losses[0], [(sign * e.scale, e.loss) for e in evaluations])

        self._propose(flat)
        flat.scatter_point()
        try:
            with no_trace(flat.parameters, self._buffers, grad=self._grad_in_trial):
                _add_up(self._losses[1], [(sign * e.scale, self._repeat(e, flat)) for e in evaluations])
            self._reduce.losses(self._losses)
        except BaseException:
            self._return(flat)
            raise
        self._judge(flat)
        self._return(flat)
        if broken := self._watch.after_step():
            self._raise_broken(broken)

    def _repeat(self, e: Evaluation, flat: Flat) -> Tensor:
        """The loss at the trial point, with the random numbers of the first evaluation."""
        after = Generators(flat.device)
        e.generators.restore()
        try:
            return self._value(e.again(), flat).detach()
        finally:
            after.restore()

    def _value(self, value: Any, flat: Flat) -> Tensor:
        name = type(self).__name__
        if not isinstance(value, Tensor):
            raise TypeError(f"{name}: the closure returned {_words(value)}; return the loss, a tensor with one number")
        if value.numel() != 1 or value.is_complex() or not value.is_floating_point():
            raise ValueError(
                f"{name}: the closure returned a tensor of shape {tuple(value.shape)} and type {value.dtype}; return "
                "the loss of the batch, a tensor with one real number. `loss.mean()` makes one"
            )
        if value.device != flat.device:
            raise ValueError(f"{name}: the loss is on {value.device}, but the parameters are on {flat.device}")
        return value.reshape(())

    def _return(self, flat: Flat) -> None:
        """The parameters ← the point of the state, where the next gradient is taken."""
        self._set_point(flat)
        flat.scatter_point()

    def _raise_broken(self, steps: int) -> NoReturn:
        raise RuntimeError(
            f"{type(self).__name__}: the loss or its gradient is not finite"
            f"{f' in {steps} steps in a row' if steps > 1 else ''}, and there is no earlier point to return to. The "
            "parameters are unchanged. Check the data of this batch and the start"
        )

    def _check_progress(self) -> None:
        """Raises an error if no step so far could start. Waits for the device."""
        numbers = self.numbers()
        if 0.0 < numbers["steps"] == numbers["broken"]:
            self._raise_broken(int(numbers["broken"]))

    # ---- what a method adds

    def _set_gradient(self, flat: Flat) -> None:
        """flat.gradient ← the gradient of the loss that the closure has returned, as a mean over all ranks."""
        flat.gather_gradient()
        self._reduce.gradient(flat.gradient)

    def _propose(self, flat: Flat) -> None:
        """flat.point ← the trial point, from flat.gradient and the loss in _losses[0]. Changes no state."""
        raise NotImplementedError

    def _judge(self, flat: Flat) -> None:
        """Changes the state by the verdict. Both losses are known now."""
        raise NotImplementedError

    def _set_point(self, flat: Flat) -> None:
        """flat.point ← the point of the state."""
        raise NotImplementedError

    # ---- state

    def _ready(self) -> Flat:
        """The vectors, made at the first step and whenever parameters were added, moved or converted."""
        self._check()
        flat = self._flat
        parameters = self._trained()
        if flat is None or pointers(parameters) != flat.pointers:
            flat = self._build(parameters)
        elif flat.changed_by_others() and not capturing(flat.device):
            self._follow(flat)
        return flat

    def _trained(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"] if p.requires_grad]

    @torch.no_grad()
    def _build(self, parameters: list[Tensor]) -> Flat:
        flat = Flat(type(self).__name__, parameters)
        flat.gather_point()
        known = [self.state.get(p, {}) for p in parameters]
        resumes = any(known)
        if not resumes:
            self._reduce.start(flat.point)
        point = flat.views(flat.point)
        self._vector = {name: flat.zeros() for name in (*self._points, *self._memories)}
        views = {name: flat.views(vector) for name, vector in self._vector.items()}
        for i, before in enumerate(known):
            for name in self._vector:
                begin = before.get(name, point[i] if name in self._points else None)
                if begin is not None:
                    views[name][i].copy_(begin)
        # Numbers are doubles where the device has them.
        kind = torch.float32 if flat.device.type == "mps" else torch.float64
        values = [*self._initial.values(), *(0.0 for _ in range(self._further))]
        numbers = torch.tensor(values, dtype=kind, device=flat.device)
        for before in known:
            if "numbers" in before:
                numbers.copy_(before["numbers"])
                break
        self._number = dict(zip(self._initial, numbers.unbind(), strict=False))
        self._watch = Watch(self._number["broken"], late=flat.device.type != "cpu")
        self._numbers, self._rest = numbers[: len(self._initial)], numbers[len(self._initial) :]
        self._losses = torch.zeros(2, dtype=kind, device=flat.device)
        for i, p in enumerate(parameters):
            self.state[p] = {**{name: of[i] for name, of in views.items()}, "numbers": numbers}
        self._flat = flat
        self._buffers.forget()
        self._built(flat)
        self._return(flat)
        return flat

    def _built(self, flat: Flat) -> None:
        """Called after the vectors were made."""

    def _follow(self, flat: Flat) -> None:
        """Moves the points by what someone else added to the parameters since the last step."""
        with torch.no_grad():
            # A model that was saved in `averaged()` and loaded after the optimizer is no change.
            if flat.holds(self._vector["x"]):
                self._return(flat)
                return
            self._set_point(flat)
            for p, here, views in zip(flat.parameters, flat.views(flat.point), self._point_views(flat), strict=True):
                change = p.to(flat.dtype) - here.to(p.dtype).to(flat.dtype)
                for view in views:
                    view.add_(change)
            self._return(flat)

    def _point_views(self, flat: Flat) -> list[tuple[Tensor, ...]]:
        """For each parameter, its part of the points that move with it."""
        return list(zip(*(flat.views(self._vector[name]) for name in ("x", "z") if name in self._vector), strict=True))

    def numbers(self) -> dict[str, float]:
        """What the method has learned so far, and how many steps it made. Waits for the device.

        Returns
        -------
        dict
            The numbers by name. `steps` counts all steps, `broken` those at the end that could not start because the
            loss or its gradient was not finite.
        """
        self._ready()
        values = self._numbers.cpu().unbind()
        return {name: float(value) for name, value in zip(self._initial, values, strict=True)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues from a saved state, bit for bit, and sets the parameters to the point of that state.

        Parameters
        ----------
        state_dict
            From `state_dict()` of the same kind of optimizer, with the same parameters in the same order.
        """
        saved: dict[Any, dict[str, Any]] = state_dict["state"]
        wanted = {*self._points, *self._memories, "numbers"}
        for state in saved.values():
            if set(state) != wanted:
                raise ValueError(
                    f"{type(self).__name__}: the saved state has {sorted(state)}, but {sorted(wanted)} was expected; "
                    "it belongs to another kind of optimizer"
                )
            if state["numbers"].numel() != len(self._initial) + self._further:
                raise ValueError(
                    f"{type(self).__name__}: the saved state has {state['numbers'].numel()} numbers, but "
                    f"{len(self._initial) + self._further} were expected; it was saved by another version of strust. "
                    "Start again from the parameters"
                )
        keys = chain.from_iterable(group["params"] for group in state_dict["param_groups"])
        pairs = [(saved[key], p) for key, p in zip(keys, self._all(), strict=False) if key in saved]
        for state, p in pairs:
            if any(state[name].shape != p.shape for name in wanted - {"numbers"}):
                raise ValueError(
                    f"{type(self).__name__}: a saved parameter has the shape {tuple(state['x'].shape)}, but the one "
                    f"here has {tuple(p.shape)}; the parameters must be the same, in the same order"
                )
        super().load_state_dict(state_dict)
        # torch has rounded the state to the types of the parameters.
        for state, p in pairs:
            self.state[p] = {name: value.detach().to(p.device, copy=True) for name, value in state.items()}
        self._forget()
        if pairs:
            self._ready()

    def _all(self) -> Iterable[Tensor]:
        return chain.from_iterable(group["params"] for group in self.param_groups)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), **{name: getattr(self, name) for name in self._carried}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._forget()
        if "_buffers" not in self.__dict__:
            # A copy or an unpickled optimizer finds its model again.
            self._buffers = Buffers([])
        if "_reduce" not in self.__dict__:
            self._reduce = Reduce(type(self).__name__, LOST, averaged_gradients=False)

    def _forget(self) -> None:
        """Forgets everything that is made from settings and saved state."""
        self._flat = None
        self._pending = []
        self._checked = ()


def _add_up(total: Tensor, losses: list[tuple[float, Tensor]]) -> None:
    """Sets total ← Σ factor·loss, in the precision of the total."""
    (factor, first), *others = losses
    total.copy_(first)
    if factor != 1.0:
        total.mul_(factor)
    for factor, loss in others:
        total.add_(loss, alpha=factor)


def _words(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
