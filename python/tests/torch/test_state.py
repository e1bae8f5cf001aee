"""Saving, resuming, copying, and the averaged point."""

import copy
import io
import pickle

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch_helpers import data, network, parameters, train

from strust.torch import STR, STRP, Auto, ConstrainedAuto, Sphere

MAKERS = {
    "auto": lambda model: Auto(model.parameters(), weight_decay=0.01),
    "str": lambda model: STR(model.parameters()),
    "strp": lambda model: STRP(model.parameters(), {model[0].weight: "stiefel", model[0].bias: Sphere(2.0)}),
}


def saved(value):
    """Through a file, as a checkpoint goes."""
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("order", ["model first", "optimizer first", "optimizer only"])
def test_a_resumed_run_continues_bit_for_bit(kind, order):
    whole = network(dropout=0.2)
    opt = MAKERS[kind](whole)
    torch.manual_seed(1)
    train(opt, whole, 12)
    checkpoint = saved({"model": whole.state_dict(), "opt": opt.state_dict(), "rng": torch.get_rng_state()})
    losses = train(opt, whole, 12, first=12)

    model = network(dropout=0.2, seed=5)
    opt = MAKERS[kind](model)
    if order == "model first":
        model.load_state_dict(checkpoint["model"])
    opt.load_state_dict(checkpoint["opt"])
    if order == "optimizer first":
        model.load_state_dict(checkpoint["model"])
    torch.set_rng_state(checkpoint["rng"])
    assert train(opt, model, 12, first=12) == losses
    assert torch.equal(parameters(model), parameters(whole))


def test_a_model_saved_at_the_average_resumes_at_y():
    whole = network()
    opt = Auto(whole.parameters())
    train(opt, whole, 12)
    with opt.averaged():
        checkpoint = saved({"model": whole.state_dict(), "opt": opt.state_dict()})
    losses = train(opt, whole, 6, first=12)
    for optimizer_first in (False, True):
        model = network(seed=5)
        opt = Auto(model.parameters())
        if optimizer_first:
            opt.load_state_dict(checkpoint["opt"])
        model.load_state_dict(checkpoint["model"])
        if not optimizer_first:
            opt.load_state_dict(checkpoint["opt"])
        assert train(opt, model, 6, first=12) == losses


def test_low_precision_parameters_resume_bit_for_bit():
    def run(opt, model, steps, first):
        for k in range(first, first + steps):
            inputs, labels = data(seed=k)

            def closure(x=inputs, y=labels):
                opt.zero_grad()
                loss = F.cross_entropy(model(x.bfloat16()).float(), y)
                loss.backward()
                return loss

            opt.step(closure)

    whole = network().bfloat16()
    opt = Auto(whole.parameters())
    run(opt, whole, 8, 0)
    checkpoint = saved(opt.state_dict())
    run(opt, whole, 8, 8)
    model = network(seed=3).bfloat16()
    opt = Auto(model.parameters())
    opt.load_state_dict(checkpoint)
    run(opt, model, 8, 8)
    assert torch.equal(parameters(model), parameters(whole))


def test_a_state_before_the_first_step_can_be_loaded():
    model = network()
    opt = Auto(model.parameters())
    other = Auto(network(seed=1).parameters(), gamma=3.0)
    other.load_state_dict(saved(opt.state_dict()))
    assert other.param_groups[0]["gamma"] == 0.7


def test_a_copy_of_model_and_optimizer_continues_alone():
    model = network()
    opt = Auto(model.parameters())
    train(opt, model, 6)
    twin, other = copy.deepcopy((model, opt))
    losses = train(opt, model, 6, first=6)
    assert train(other, twin, 6, first=6) == losses


def unpickled(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, unpickled])
@pytest.mark.parametrize("group", [None, "default"])
def test_a_copied_or_unpickled_optimizer_keeps_its_choice_of_a_group(copied, group):
    model = network()
    opt = Auto(model.parameters(), process_group=group, averaged_gradients=True)
    train(opt, model, 2)
    other = copied(opt)
    assert (other._reduce._chosen, other._reduce._averaged) == (group, True)


def test_a_copy_shares_a_group_of_its_own_and_a_pickled_optimizer_loses_it(monkeypatch):
    group = object()
    model = network()
    opt = Auto(model.parameters(), process_group=group)
    train(opt, model, 2)
    assert copy.deepcopy(opt)._reduce._chosen is group
    # Alone it needs no group. In a job it must not join another one than its own.
    twin, other = unpickled((model, opt))
    assert train(other, twin, 2, first=2) == train(opt, model, 2, first=2)
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    with pytest.raises(RuntimeError, match=r"this optimizer was pickled, which loses its process group"):
        train(other, twin, 1)


def test_a_copy_of_strp_keeps_its_constraint():
    model = network()
    opt = MAKERS["strp"](model)
    train(opt, model, 6)
    twin, other = copy.deepcopy((model, opt))
    assert train(other, twin, 6, first=6) == train(opt, model, 6, first=6)
    assert other.constraint_norm() == opt.constraint_norm()


def test_a_state_of_another_optimizer_is_refused_and_nothing_changes():
    model = network()
    opt = Auto(model.parameters())
    train(opt, model, 3)
    before, numbers = parameters(model), opt.numbers()
    adam = torch.optim.Adam(model.parameters())
    F.cross_entropy(model(data()[0]), data()[1]).backward()
    adam.step()
    now = parameters(model)
    with pytest.raises(ValueError, match="belongs to another kind of optimizer"):
        opt.load_state_dict(adam.state_dict())
    assert torch.equal(parameters(model), now)
    assert opt.numbers()["accepted"] == numbers["accepted"]
    assert not torch.equal(before, now)


def test_a_state_of_another_version_is_refused():
    model = network()
    opt = Auto(model.parameters())
    train(opt, model, 3)
    older = saved(opt.state_dict())
    for state in older["state"].values():
        state["numbers"] = state["numbers"][:13]
    with pytest.raises(ValueError, match="has 13 numbers, but 16 were expected; it was saved by another version"):
        opt.load_state_dict(older)


def test_the_error_for_a_state_of_another_version_counts_the_numbers_of_the_rows():
    w = nn.Parameter(torch.ones(3))
    opt = ConstrainedAuto([w], rows=[(0.0, 1.0)])
    opt.step(lambda: (w.square().sum(), w[:1]))
    older = saved(opt.state_dict())
    (state,) = older["state"].values()
    count = state["numbers"].numel()
    state["numbers"] = state["numbers"][:13]
    with pytest.raises(ValueError, match=f"has 13 numbers, but {count} were expected"):
        opt.load_state_dict(older)


def test_a_state_of_other_shapes_is_refused():
    model = network()
    opt = Auto(model.parameters())
    train(opt, model, 3)
    other = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 3))
    with pytest.raises(ValueError, match="the parameters must be the same"):
        Auto(other.parameters()).load_state_dict(opt.state_dict())


def test_averaged_holds_x_and_returns_to_y_bit_for_bit():
    model = network(norm=True, dropout=0.3)
    opt = Auto(model.parameters())
    train(opt, model, 20)
    y, buffers, rng = parameters(model), copy.deepcopy(model[1].state_dict()), torch.get_rng_state()
    batches = [data(seed=k) for k in range(5)]
    with opt.averaged(batches):
        assert torch.equal(model[0].weight, opt.state[model[0].weight]["x"])
        inputs = torch.cat([x for x, _ in batches])
        expected = torch.stack([model[0](x).mean(0) for x, _ in batches]).mean(0)
        assert torch.allclose(model[1].running_mean, expected, atol=1e-5)
        assert not torch.equal(model[1].running_mean, buffers["running_mean"])
        assert model.training
        assert model[1].momentum == 0.1
        assert torch.isfinite(model.eval()(inputs)).all()
        model.train()
    assert torch.equal(parameters(model), y)
    assert torch.equal(torch.get_rng_state(), rng)
    for name, value in buffers.items():
        assert torch.equal(model[1].state_dict()[name], value)


def test_an_evaluation_between_steps_changes_no_bit_of_the_run():
    points = []
    for evaluates in (False, True):
        model = network(norm=True)
        opt = Auto(model.parameters())
        for k in range(10):
            train(opt, model, 1, first=k)
            if evaluates:
                with opt.averaged([data(seed=k)]):
                    model.eval()(data(seed=k)[0])
                model.train()
        points.append(parameters(model))
    assert torch.equal(points[0], points[1])


def test_averaged_takes_tensors_and_mappings_as_batches():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(6)

        def forward(self, inputs):
            return self.norm(inputs)

    model = Named()
    opt = Auto(model.parameters(), model=model)
    inputs = data()[0]
    means = []
    for batch in (inputs, (inputs, None), {"inputs": inputs}):
        with opt.averaged([batch]):
            means.append(model.norm.running_mean.clone())
    assert torch.equal(means[0], means[1])
    assert torch.equal(means[0], means[2])


def test_averaged_ends_after_an_exception():
    model = network()
    opt = Auto(model.parameters())
    train(opt, model, 5)
    y = parameters(model)
    with pytest.raises(KeyError), opt.averaged():
        raise KeyError
    assert torch.equal(parameters(model), y)
    train(opt, model, 1)


def test_a_step_in_averaged_is_refused():
    model = network()
    opt = Auto(model.parameters())
    train(opt, model, 2)
    with opt.averaged(), pytest.raises(RuntimeError, match="leave it before the next step"):
        train(opt, model, 1)
    with opt.averaged(), pytest.raises(RuntimeError, match="cannot be nested"), opt.averaged():
        pass


def test_averaged_without_batches_or_with_an_unknown_model_says_what_to_pass():
    model = network(norm=True)
    opt = Auto(model.parameters())
    with pytest.raises(ValueError, match="pass it, as in"), opt.averaged([data()]):
        pass
    train(opt, model, 1)
    y = parameters(model)
    with pytest.raises(ValueError, match="no batch"), opt.averaged([]):
        pass
    assert torch.equal(parameters(model), y)


def test_the_average_is_better_than_the_last_point_where_gradients_are_noisy():
    torch.manual_seed(0)
    w = nn.Parameter(torch.full((20,), 3.0))
    opt = Auto([w])
    for _ in range(400):
        noise = torch.randn(20)

        def closure(noise=noise):
            opt.zero_grad()
            loss = 0.5 * (w - noise).square().sum()
            loss.backward()
            return loss

        opt.step(closure)
    z = opt.state[w]["z"].norm().item()
    with opt.averaged():
        assert w.norm().item() < 0.5 * z
