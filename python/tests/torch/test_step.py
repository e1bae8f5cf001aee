"""One step: the usual closure, a trial that leaves no trace, groups, precision."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch_helpers import closure_of, data, network, parameters, train

from strust.torch import STR, STRP, Auto

METHODS = [Auto, STR, lambda params, **options: STRP(list(params), lambda *w: w[0].sum().reshape(1), **options)]


@pytest.mark.parametrize("make", METHODS)
def test_the_loss_falls_with_the_usual_closure(make):
    model = network()
    opt = make(model.parameters())
    assert isinstance(opt, torch.optim.Optimizer)
    losses = train(opt, model, 60)
    assert sum(losses[-10:]) < 0.9 * sum(losses[:10])
    assert opt.numbers()["steps"] == 60


def test_step_returns_the_loss_and_leaves_the_gradient_of_the_first_evaluation():
    model = network()
    opt = Auto(model.parameters())
    inputs, labels = data()
    expected = torch.autograd.grad(F.cross_entropy(model(inputs), labels), list(model.parameters()))
    before = F.cross_entropy(model(inputs), labels).item()
    loss = opt.step(closure_of(opt, model, inputs, labels))
    assert float(loss) == before
    for p, g in zip(model.parameters(), expected, strict=True):
        assert torch.equal(p.grad, g)


def test_the_closure_runs_twice_and_backward_once():
    model = network()
    opt = Auto(model.parameters())
    inputs, labels = data()
    calls, backwards = [], []
    model[0].weight.register_hook(lambda g: backwards.append(1))

    def closure():
        calls.append(torch.is_grad_enabled())
        opt.zero_grad()
        loss = F.cross_entropy(model(inputs), labels)
        loss.backward()
        return loss

    opt.step(closure)
    assert calls == [True, False]
    assert len(backwards) == 1


def test_backward_of_other_threads_works_during_a_trial():
    import threading

    model = network()
    opt = Auto(model.parameters())
    inputs, labels = data()
    seen = []

    def elsewhere():
        w = torch.ones(2, requires_grad=True)
        with torch.enable_grad():
            w.square().sum().backward()
        seen.append(None if w.grad is None else w.grad.tolist())

    def closure():
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        return closure_of(opt, model, inputs, labels)()

    opt.step(closure)
    assert seen == [[2.0, 2.0], [2.0, 2.0]]
    assert torch.autograd.backward.__module__ == "torch.autograd"


def test_the_trial_sees_the_same_dropout_mask_and_draws_nothing():
    model = network(dropout=0.5)
    opt = Auto(model.parameters())
    masks = []
    model[2].register_forward_hook(lambda _, __, out: masks.append((out == 0).clone()))
    inputs, labels = data()
    for k in range(5):
        masks.clear()
        torch.manual_seed(k)
        opt.step(closure_of(opt, model, inputs, labels))
        after = torch.rand(1)
        # At the ReLU's zeros the mask cannot be seen.
        alive = (masks[0] != masks[1]).double().mean()
        assert alive < 0.05
        torch.manual_seed(k)
        model(inputs)
        assert torch.equal(after, torch.rand(1))


def test_batch_norm_moves_once_a_step():
    model = network(norm=True)
    twin = copy.deepcopy(model)
    opt = Auto(model.parameters())
    for k in range(4):
        inputs, labels = data(seed=k)
        twin.load_state_dict(model.state_dict())
        opt.step(closure_of(opt, model, inputs, labels))
        twin(inputs)
        for name in ("running_mean", "running_var", "num_batches_tracked"):
            assert torch.equal(getattr(model[1], name), getattr(twin[1], name))


@pytest.mark.parametrize("named", [False, True])
def test_any_buffer_that_the_model_changes_moves_once_a_step(named):
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 3)
            self.register_buffer("calls", torch.zeros(()))
            self.register_buffer("constant", torch.ones(3))

        def forward(self, x):
            with torch.no_grad():
                self.calls += 1
            return self.layer(x) * self.constant

    model = Counts()
    opt = Auto(model.parameters(), model=model) if named else Auto(model.parameters())
    train(opt, model, 5)
    assert float(model.calls) == 5


def test_all_models_of_the_closure_are_found_and_other_modules_are_not():
    first, second = network(norm=True), nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 3))
    normalize = nn.BatchNorm1d(6, affine=False)
    opt = Auto([*first.parameters(), *second.parameters()])
    inputs, labels = data()

    def closure():
        opt.zero_grad()
        loss = nn.CrossEntropyLoss()(second(first(normalize(inputs))), labels)
        loss.backward()
        return loss

    for _ in range(3):
        opt.step(closure)
    assert (first[1].num_batches_tracked, second[0].num_batches_tracked) == (3, 3)
    # It has no parameter of the optimizer, so nothing says that it belongs to the model.
    assert normalize.num_batches_tracked == 6


def test_a_loss_that_needs_derivatives_runs_with_grad_in_trial():
    w = nn.Parameter(torch.tensor([1.5, -0.5]))

    def closure():
        opt.zero_grad()
        x = torch.linspace(-1, 1, 9).requires_grad_()
        u = w[0] * x + w[1] * x**2
        (slope,) = torch.autograd.grad(u.sum(), x, create_graph=True)
        loss = (slope - 1.0).square().mean()
        loss.backward()
        return loss

    opt = Auto([w], grad_in_trial=True)
    first = float(opt.step(closure))
    for _ in range(100):
        last = float(opt.step(closure))
    assert last < 0.01 * first


def test_gradient_accumulation_in_the_closure_equals_the_whole_batch():
    points = []
    inputs, labels = data(dtype=torch.float64)
    for parts in (1, 4):
        model = network().double()
        opt = Auto(model.parameters())

        def closure(parts=parts, model=model, opt=opt):
            opt.zero_grad()
            total = torch.zeros((), dtype=torch.float64)
            for x, y in zip(inputs.chunk(parts), labels.chunk(parts), strict=True):
                loss = F.cross_entropy(model(x), y) / parts
                loss.backward()
                total += loss.detach()
            return total

        for _ in range(20):
            opt.step(closure)
        points.append(parameters(model))
    assert (points[0] - points[1]).norm() < 1e-9


def test_a_loop_that_calls_backward_itself_makes_the_same_steps():
    points = []
    for own in (False, True):
        model = network(dropout=0.3)
        opt = Auto(model.parameters())
        torch.manual_seed(1)
        for k in range(20):
            inputs, labels = data(seed=k)
            if not own:
                opt.step(closure_of(opt, model, inputs, labels))
                continue
            opt.zero_grad()
            opt.evaluate(lambda x=inputs, y=labels, m=model: F.cross_entropy(m(x), y)).backward()
            assert opt.step() is None
        points.append(parameters(model))
    assert torch.equal(points[0], points[1])


def test_evaluations_of_a_loop_add_up_with_their_scale():
    inputs, labels = data(dtype=torch.float64)
    points = []
    for parts in (1, 4):
        model = network().double()
        opt = Auto(model.parameters())
        for _ in range(20):
            opt.zero_grad()
            for x, y in zip(inputs.chunk(parts), labels.chunk(parts), strict=True):
                loss = opt.evaluate(lambda x=x, y=y, m=model: F.cross_entropy(m(x), y), scale=1 / parts)
                (loss / parts).backward()
            opt.step()
        points.append(parameters(model))
    assert (points[0] - points[1]).norm() < 1e-9


def test_zero_grad_forgets_evaluations_of_a_step_that_was_skipped():
    model = network()
    opt = Auto(model.parameters())
    inputs, labels = data()
    opt.evaluate(lambda: F.cross_entropy(model(inputs), labels)).backward()
    opt.zero_grad()
    with pytest.raises(TypeError, match="needs a closure"):
        opt.step()


def test_a_grad_scaler_does_not_change_the_steps():
    points = []
    for scaled in (False, True):
        model = network()
        opt = Auto(model.parameters())
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, enabled=scaled)
        for k in range(20):
            inputs, labels = data(seed=k)

            def closure(x=inputs, y=labels, model=model, opt=opt, scaler=scaler):
                opt.zero_grad()
                with torch.autocast("cpu", torch.bfloat16):
                    loss = F.cross_entropy(model(x).float(), y)
                scaler.scale(loss).backward()
                return loss

            opt.step(closure, scaler=scaler)
            scaler.update()
        points.append(parameters(model))
    # The scale is a power of 2, so gradients are the same bits.
    assert torch.equal(points[0], points[1])


def test_an_overflow_of_the_scale_changes_nothing_and_lowers_the_scale():
    model = network()
    opt = Auto(model.parameters())
    scaler = torch.amp.GradScaler("cpu", init_scale=float(2**120), growth_interval=1000)
    inputs, labels = data()

    def closure():
        opt.zero_grad()
        loss = F.cross_entropy(model(inputs), labels)
        scaler.scale(1e12 * loss).backward()
        return 1e12 * loss

    before = parameters(model)
    opt.step(closure, scaler=scaler)
    numbers = opt.numbers()
    assert torch.equal(parameters(model), before)
    assert (numbers["accepted"], numbers["broken"], numbers["size"]) == (0, 0, 0)
    scaler.update()
    assert scaler.get_scale() < 2**120


def test_a_trial_that_is_not_finite_is_rejected():
    w = nn.Parameter(torch.tensor([1.0], dtype=torch.float64))
    opt = STR([w], initial_radius=10.0)

    def closure():
        opt.zero_grad()
        # Defined for w > 0 only; the first trial is far beyond.
        loss = (100.0 * w).log().square().sum()
        loss.backward()
        return loss

    opt.step(closure)
    assert w.item() == 1.0
    assert opt.numbers()["radius"] == 5.0
    for _ in range(200):
        opt.step(closure)
    assert abs(w.item() - 0.01) < 1e-3


def test_auto_returns_to_the_average_where_the_loss_is_not_finite():
    model = network()
    opt = Auto(model.parameters())
    train(opt, model, 10)
    x = opt.state[model[0].weight]["x"].clone()
    inputs, labels = data()

    def closure():
        opt.zero_grad()
        loss = F.cross_entropy(model(inputs), labels) * float("nan")
        loss.backward()
        return loss

    opt.step(closure)
    state = opt.state[model[0].weight]
    assert torch.equal(state["z"], x)
    assert torch.equal(model[0].weight, x)
    assert opt.numbers()["at_average"] == 1
    with pytest.raises(RuntimeError, match="not finite, and there is no earlier point"):
        opt.step(closure)
    assert torch.equal(model[0].weight, x)
    train(opt, model, 3)
    assert opt.numbers()["broken"] == 0


def test_groups_may_differ_in_weight_decay():
    model = network()
    opt = Auto(
        [{"params": [model[0].weight], "weight_decay": 5.0}, {"params": [model[0].bias, *model[2].parameters()]}]
    )
    plain = network()
    other = Auto(plain.parameters())
    for k in range(30):
        opt.step(closure_of(opt, model, *data(seed=k)))
        other.step(closure_of(other, plain, *data(seed=k)))
    assert model[0].weight.norm() < 0.9 * plain[0].weight.norm()


def test_one_weight_decay_in_two_groups_is_that_of_one_group():
    points = []
    for groups in (1, 2):
        model = network()
        parts = [{"params": list(model.parameters())}] if groups == 1 else [{"params": [p]} for p in model.parameters()]
        opt = Auto(parts, weight_decay=0.1)
        train(opt, model, 10)
        points.append(parameters(model))
    assert torch.equal(points[0], points[1])


def test_a_group_added_later_is_trained():
    model = network()
    opt = Auto(model[2].parameters())
    train(opt, model, 5)
    first = model[0].weight.detach().clone()
    steps = opt.numbers()["accepted"]
    opt.add_param_group({"params": model[0].parameters()})
    losses = train(opt, model, 40)
    assert not torch.equal(model[0].weight, first)
    assert opt.numbers()["accepted"] > steps
    assert losses[-1] < losses[0]


def test_a_frozen_parameter_stays_and_can_be_freed():
    model = network()
    model[0].weight.requires_grad_(False)
    frozen = model[0].weight.detach().clone()
    opt = Auto(model.parameters(), weight_decay=0.1)
    train(opt, model, 5)
    assert torch.equal(model[0].weight, frozen)
    model[0].weight.requires_grad_(True)
    train(opt, model, 5, first=5)
    assert not torch.equal(model[0].weight, frozen)


def test_a_parameter_without_gradient_counts_as_gradient_zero():
    model = network()
    unused = nn.Parameter(torch.ones(3))
    opt = Auto([*model.parameters(), unused])
    train(opt, model, 5)
    assert torch.equal(unused, torch.ones(3))


def test_points_of_low_precision_parameters_are_kept_in_float32():
    model = network().bfloat16()
    opt = Auto(model.parameters())
    for k in range(40):
        inputs, labels = data(seed=k)
        opt.step(closure_of(opt, lambda x: model(x.bfloat16()).float(), inputs, labels))
    state = opt.state[model[0].weight]
    assert state["z"].dtype == torch.float32
    assert model[0].weight.dtype == torch.bfloat16
    y = torch.lerp(state["z"], state["x"], 0.9)
    assert torch.equal(model[0].weight, y.bfloat16())


def test_strides_of_parameters_do_not_matter():
    points = []
    for channels_last in (False, True):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)).double()
        if channels_last:
            model = model.to(memory_format=torch.channels_last)
        opt = Auto(model.parameters())
        images = torch.randn(8, 2, 6, 6, generator=torch.Generator().manual_seed(1)).double()
        for _ in range(10):
            opt.step(closure_of(opt, model, images, torch.arange(8) % 3))
        points.append(parameters(model))
    assert (points[0] - points[1]).norm() < 1e-9


def test_a_model_that_is_converted_goes_on():
    model = network(norm=True)
    opt = Auto(model.parameters())
    train(opt, model, 5)
    model.double()
    for k in range(5, 30):
        inputs, labels = data(seed=k, dtype=torch.float64)
        loss = opt.step(closure_of(opt, model, inputs, labels))
    assert opt.numbers()["steps"] == 30
    assert model[1].num_batches_tracked == 30
    assert opt.state[model[0].weight]["x"].dtype == torch.float64
    assert loss < 1.0


def test_parameters_that_someone_else_changes_move_the_points():
    model = network()
    opt = Auto(model.parameters())
    train(opt, model, 10)
    before = opt.state[model[0].bias]["x"].clone()
    with torch.no_grad():
        model[0].bias += 1.0
    train(opt, model, 1, first=10)
    assert torch.allclose(opt.state[model[0].bias]["x"] - before, torch.ones(16), atol=0.2)
    assert opt.numbers()["accepted"] == 11


@pytest.mark.parametrize("make", METHODS)
def test_a_compiled_model_makes_the_same_steps(make):
    points = []
    for compiled in (False, True):
        model = network(norm=True)
        opt = make(model.parameters())
        run = torch.compile(model, backend="aot_eager", fullgraph=True) if compiled else model
        for k in range(5):
            opt.step(closure_of(opt, run, *data(seed=k)))
        points.append(torch.cat([parameters(model), model[1].running_mean.double()]))
    assert torch.allclose(points[0], points[1], rtol=1e-6, atol=1e-7)


def test_step_hooks_and_repr_work():
    model = network()
    opt = Auto(model.parameters())
    seen = []
    opt.register_step_pre_hook(lambda *_: seen.append("before"))
    opt.register_step_post_hook(lambda *_: seen.append("after"))
    train(opt, model, 2)
    assert seen == ["before", "after"] * 2
    assert "weight_decay: 0.0" in repr(opt)


def test_optimizers_in_several_threads_do_not_disturb_each_other():
    import threading

    def run(seed: int, points: dict) -> None:
        model = network(seed=seed)
        train(Auto(model.parameters(), model=model), model, 15)
        points[seed] = parameters(model)

    alone: dict[int, torch.Tensor] = {}
    for seed in range(3):
        run(seed, alone)
    together: dict[int, torch.Tensor] = {}
    # `network` seeds the generator of all threads, so the models are made one after the other.
    models = {seed: network(seed=seed) for seed in range(3)}

    def continue_in_thread(seed: int) -> None:
        train(Auto(models[seed].parameters(), model=models[seed]), models[seed], 15)
        together[seed] = parameters(models[seed])

    threads = [threading.Thread(target=continue_in_thread, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(alone[seed], together[seed]) for seed in range(3))
    assert torch.autograd.backward.__module__ == "torch.autograd"
