"""Wrong input gets a clear message, and nothing is lost."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch_helpers import closure_of, data, network, parameters, train

from strust.torch import STR, STRP, Auto, Constraint, Sphere, _base
from strust.torch._watch import EVERY, Watch


@pytest.mark.parametrize("make", [Auto, STR])
def test_no_parameters_are_refused(make):
    with pytest.raises(ValueError, match="empty parameter list"):
        make([])


def test_parameters_must_be_tensors():
    with pytest.raises(TypeError):
        Auto(torch.ones(3))
    with pytest.raises(TypeError):
        Auto([1.0, 2.0])


def test_complex_parameters_are_refused():
    with pytest.raises(TypeError, match=r"is complex .*real and imaginary parts"):
        Auto([nn.Parameter(torch.ones(2, dtype=torch.complex64))])


def test_sparse_parameters_are_refused():
    with pytest.raises(TypeError, match=r"a parameter is sparse .*to_dense"):
        Auto([nn.Parameter(torch.eye(2).to_sparse())])


def test_special_tensors_are_refused():
    class Divided(torch.Tensor):
        pass

    with pytest.raises(TypeError, match=r"a parameter is a Divided, .*DistributedDataParallel"):
        Auto([torch.ones(2).as_subclass(Divided).requires_grad_()])


def test_integer_parameters_are_refused():
    with pytest.raises(TypeError, match="only floating-point parameters"):
        Auto([torch.ones(2, dtype=torch.int64)])


def test_sparse_gradients_are_refused_and_nothing_changes():
    table = nn.Embedding(5, 2, sparse=True)
    opt = Auto(table.parameters())
    before = parameters(table)

    def closure():
        opt.zero_grad()
        loss = table(torch.tensor([1, 2])).square().sum()
        loss.backward()
        return loss

    with pytest.raises(TypeError, match=r"a gradient is sparse .*sparse=False"):
        opt.step(closure)
    assert torch.equal(parameters(table), before)


def test_parameters_on_several_devices_are_refused():
    here, there = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2, device="meta"))
    opt = Auto([here, there])
    with pytest.raises(ValueError, match=r"on several devices \(cpu, meta\)"):
        opt.step(lambda: here.sum())


def test_nothing_to_train_is_refused():
    opt = Auto([torch.ones(2)])
    with pytest.raises(ValueError, match="no parameter requires a gradient"):
        opt.step(lambda: torch.zeros(()))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gamma": 0.0}, "`gamma` is 0.0; it must be above 0"),
        ({"gamma": "5"}, "`gamma` is a str; give a number"),
        ({"noise": -1.0}, "`noise` is -1.0"),
        ({"momentum": 1.5}, "between 0 and 1"),
        ({"beta2": 1.0}, "between 0 and 1, both excluded"),
        ({"epsilon": float("nan")}, "`epsilon` is nan"),
        ({"weight_decay": -0.1}, "at least 0"),
        ({"weight_decay": True}, "give a number"),
        ({"maximize": 1}, "`maximize` is 1; give True or False"),
        ({"model": "net"}, "`model` is a str|give a torch.nn.Module"),
        ({"process_group": "all"}, "'default' or None"),
        ({"fused": 2}, "`fused` is 2"),
    ],
)
def test_wrong_settings_of_auto_are_refused(settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Auto([nn.Parameter(torch.ones(2))], **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"initial_radius": 100.0}, "`initial_radius` is 100.0; it must be at most `max_radius` = 80.0"),
        ({"accept_above": 0.3}, "at most `shrink_below`"),
        ({"shrink": 1.0}, "above 1"),
        ({"learning_rate": 1.0}, "unexpected keyword argument"),
    ],
)
def test_wrong_settings_of_str_are_refused(settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        STR([nn.Parameter(torch.ones(2))], **settings)


def test_a_setting_that_differs_between_groups_is_refused():
    w, v = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    with pytest.raises(ValueError, match="only `weight_decay` may differ"):
        Auto([{"params": [w]}, {"params": [v], "momentum": 0.5}])
    opt = Auto([w])
    with pytest.raises(ValueError, match="only `weight_decay` may differ"):
        opt.add_param_group({"params": [v], "gamma": 2.0})
    assert len(opt.param_groups) == 1


def test_a_learning_rate_scheduler_is_refused_with_the_reason():
    model = network()
    opt = Auto(model.parameters())
    schedule = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)
    train(opt, model, 1)
    schedule.step()
    with pytest.raises(ValueError, match="has no learning rate"):
        train(opt, model, 1)


def test_a_setting_changed_in_the_group_is_checked_and_used():
    model = network()
    opt = Auto(model.parameters())
    train(opt, model, 2)
    opt.param_groups[0]["weight_decay"] = -1.0
    with pytest.raises(ValueError, match=r"`weight_decay` is -1.0"):
        train(opt, model, 1)
    opt.param_groups[0]["weight_decay"] = 1.0
    train(opt, model, 1)


def test_step_without_a_closure_says_how_to_call_it():
    with pytest.raises(TypeError, match=r"step\(closure\), where the closure"):
        Auto([nn.Parameter(torch.ones(2))]).step()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "returned None; return the loss"),
        (1.5, "returned a float"),
        (torch.ones(3), "shape \\(3,\\)"),
        (torch.ones((), dtype=torch.int64), "torch.int64"),
        (torch.ones((), dtype=torch.complex64), "one real number"),
    ],
)
def test_a_closure_that_returns_no_loss_is_refused_and_nothing_changes(value, message):
    model = network()
    opt = Auto(model.parameters())
    train(opt, model, 3)
    before, numbers = parameters(model), opt.numbers()
    with pytest.raises((TypeError, ValueError), match=message):
        opt.step(lambda: value)
    assert torch.equal(parameters(model), before)
    assert opt.numbers() == numbers


def test_a_closure_that_is_no_function_is_refused():
    with pytest.raises(TypeError, match="the closure is a float"):
        Auto([nn.Parameter(torch.ones(2))]).step(1.0)


def test_a_closure_without_backward_is_refused():
    model = network()
    opt = Auto(model.parameters())
    with pytest.raises(RuntimeError, match=r"call `loss.backward\(\)` in it"):
        opt.step(lambda: F.cross_entropy(model(data()[0]), data()[1]))


@pytest.mark.parametrize("call", [0, 1])
@pytest.mark.parametrize("make", [Auto, STR])
def test_after_an_exception_in_the_closure_the_run_continues_bit_for_bit(make, call):
    """In the gradient evaluation (0) and in the trial (1)."""
    points = []
    for fails in (False, True):
        model = network(norm=True)
        opt = make(model.parameters())
        train(opt, model, 5)
        if fails:
            before, gradients = parameters(model), [p.grad.clone() for p in model.parameters()]
            buffers = model[1].running_mean.clone()
            inner, calls = closure_of(opt, model, *data()), []

            def closure(inner=inner, calls=calls):
                calls.append(1)
                if len(calls) > call:
                    raise KeyError("data")
                return inner()

            with pytest.raises(KeyError):
                opt.step(closure)
            assert torch.equal(parameters(model), before)
            if call == 0:
                assert all(torch.equal(p.grad, g) for p, g in zip(model.parameters(), gradients, strict=True))
            else:
                # The evaluation that succeeded moved the statistics.
                model[1].running_mean.copy_(buffers)
            assert torch.autograd.backward.__module__ == "torch.autograd"
        train(opt, model, 5, first=5)
        points.append(parameters(model))
    assert torch.equal(points[0], points[1])


@pytest.mark.parametrize("make", [Auto, STR])
def test_a_loss_that_is_nan_at_the_start_is_an_error_and_nothing_changes(make):
    w = nn.Parameter(torch.ones(2))
    opt = make([w])

    def closure():
        opt.zero_grad()
        loss = w.sum() * float("nan")
        loss.backward()
        return loss

    with pytest.raises(RuntimeError, match="the loss or its gradient is not finite"):
        opt.step(closure)
    assert w.tolist() == [1.0, 1.0]
    assert opt.numbers()["accepted"] == 0


@pytest.fixture
def late(monkeypatch):
    """The CPU is watched as a device that a step must not wait for."""
    monkeypatch.setattr(_base, "Watch", lambda broken, late: Watch(broken, late=True))


def nan_in(opt, w, steps):
    """A closure whose loss is NaN in the steps with these numbers."""

    def closure():
        opt.zero_grad()
        loss = w.square().sum()
        if opt.numbers()["steps"] in steps:
            loss = loss * float("nan")
        loss.backward()
        return loss

    return closure


@pytest.mark.parametrize("make", [Auto, STR])
def test_a_start_that_is_not_finite_is_an_error_on_a_device_that_no_step_waits_for(make, late):
    w = nn.Parameter(torch.ones(2))
    opt = make([w])
    for _ in range(2 * EVERY - 1):
        opt.step(nan_in(opt, w, range(10**6)))
    with pytest.raises(RuntimeError, match=f"is not finite in {EVERY} steps in a row, and there is no earlier point"):
        opt.step(nan_in(opt, w, range(10**6)))
    assert w.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("make", [Auto, STR])
def test_fewer_bad_batches_than_a_look_are_no_error_on_such_a_device(make, late):
    w = nn.Parameter(torch.ones(2))
    opt = make([w])
    for _ in range(4 * EVERY):
        opt.step(nan_in(opt, w, range(1, EVERY)))
    assert opt.numbers()["broken"] == 0
    assert opt.numbers()["accepted"] > 0


def test_the_average_of_a_training_that_never_started_is_an_error(late):
    w = nn.Parameter(torch.ones(2))
    opt = Auto([w])
    with opt.averaged():
        assert w.tolist() == [1.0, 1.0]
    opt.step(nan_in(opt, w, range(10**6)))
    with pytest.raises(RuntimeError, match="the loss or its gradient is not finite"), opt.averaged():
        pass
    opt.step(nan_in(opt, w, ()))
    opt.step(nan_in(opt, w, range(10**6)))
    with opt.averaged():
        assert w.isfinite().all()


def test_a_gradient_of_zero_is_a_step_that_changes_nothing():
    for make in (Auto, STR):
        w = nn.Parameter(torch.zeros(2))
        opt = make([w])

        def closure(w=w, opt=opt):
            opt.zero_grad()
            loss = w.square().sum()
            loss.backward()
            return loss

        opt.step(closure)
        assert w.tolist() == [0.0, 0.0]
        assert opt.numbers()["steps"] == 1


def test_wrong_constraints_are_refused():
    w, v = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    closure = lambda: w.sum()  # noqa: E731
    with pytest.raises(ValueError, match="there is no constraint 'ball'; use one of"):
        STRP([w], {w: "ball"})
    with pytest.raises(ValueError, match="use STR"):
        STRP([w], {})
    with pytest.raises(TypeError, match="needs a parameter"):
        STRP([w], "sphere")
    with pytest.raises(TypeError, match="keys of `constraints` must be parameters"):
        STRP([w], {"w": "sphere"})
    with pytest.raises(TypeError, match="give a function"):
        STRP([w], {w: 3})
    with pytest.raises(ValueError, match="does not train"):
        STRP([w], {v: "sphere"}).step(closure)
    with pytest.raises(ValueError, match="use 'sphere' for a vector"):
        STRP([w], {w: "stiefel"}).step(closure)
    with pytest.raises(TypeError, match="return a tensor"):
        STRP([w], {w: lambda _: 1.0}).step(closure)
    with pytest.raises(ValueError, match=r"`radius` is 0.0"):
        Sphere(0.0)
    with pytest.raises(TypeError, match="give a function"):
        Constraint(3)
    with pytest.raises(ValueError, match=r"`penalty` is 0.0"):
        STRP([w], {w: "sphere"}, penalty=0.0)


def test_kernels_that_cannot_be_used_are_an_error_only_if_asked_for():
    w = nn.Parameter(torch.ones(2))
    with pytest.raises(RuntimeError, match="`fused=True` cannot be used: they need a CUDA device"):
        Auto([w], fused=True).step(lambda: w.sum())
