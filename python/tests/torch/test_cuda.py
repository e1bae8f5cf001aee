"""What only a CUDA device shows: the kernels, graphs, generators, and that no step waits for the device."""

import pytest
import torch
from torch.nn import functional as F
from torch_helpers import closure_of, data, network, parameters, train

from strust.torch import STR, STRP, Auto
from strust.torch._kernels import source
from strust.torch._nvrtc import compile_source
from strust.torch._watch import EVERY

cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
MAKERS = {
    "kernels": lambda model: Auto(model.parameters(), fused=True, weight_decay=0.01),
    "operations": lambda model: Auto(model.parameters(), fused=False, weight_decay=0.01),
    "str": lambda model: STR(model.parameters()),
    "strp": lambda model: STRP(model.parameters(), {model[0].weight: "stiefel"}),
}


@pytest.mark.skipif(torch.version.cuda is None, reason="torch was built without CUDA")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_kernels_compile_without_a_device(dtype):
    try:
        assert len(compile_source(source(dtype), "sm_90")) > 1000
    except RuntimeError as error:
        if "cannot be loaded" not in str(error):
            raise
        pytest.skip(str(error))


@pytest.mark.skipif(torch.version.cuda is None, reason="torch was built without CUDA")
def test_a_kernel_that_does_not_compile_shows_the_line():
    try:
        with pytest.raises(RuntimeError, match=r"strust.cu\(1\): error"):
            compile_source("int x = ;", "sm_90")
    except RuntimeError as error:
        pytest.skip(str(error))


def on_device(steps: int, make, dtype=torch.float32, groups: bool = False):
    model = network(norm=True).to("cuda", dtype)
    if groups:
        parts = [{"params": [p], "weight_decay": 0.1 * i} for i, p in enumerate(model.parameters())]
        opt = Auto(parts, fused=make == "kernels")
    else:
        opt = MAKERS[make](model)
    for k in range(steps):
        inputs, labels = data(seed=k, dtype=dtype)
        opt.step(closure_of(opt, model, inputs.cuda(), labels.cuda()))
    return model, opt


@cuda
@pytest.mark.parametrize("groups", [False, True])
def test_kernels_make_the_steps_of_operations(groups):
    one, first = on_device(120, "kernels", torch.float64, groups)
    two, second = on_device(120, "operations", torch.float64, groups)
    assert (parameters(one) - parameters(two)).norm() < 1e-6 * parameters(two).norm()
    assert first.numbers()["accepted"] == second.numbers()["accepted"]


@cuda
def test_the_device_makes_the_steps_of_the_cpu():
    one, _ = on_device(60, "kernels", torch.float64)
    model = network(norm=True).double()
    opt = MAKERS["operations"](model)
    for k in range(60):
        opt.step(closure_of(opt, model, *data(seed=k, dtype=torch.float64)))
    assert (parameters(one).cpu() - parameters(model)).norm() < 1e-6 * parameters(model).norm()


@cuda
@pytest.mark.parametrize("make", MAKERS)
def test_no_step_waits_for_the_device(make):
    model, opt = on_device(3, make)
    inputs, labels = (t.cuda() for t in data())
    closure = closure_of(opt, model, inputs, labels)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(3 * EVERY):
            opt.step(closure)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@cuda
@pytest.mark.parametrize("make", MAKERS)
def test_a_start_that_is_not_finite_is_an_error_on_a_device(make):
    model = network(norm=True).cuda()
    opt = MAKERS[make](model)
    inputs, labels = (t.cuda() for t in data())
    closure = closure_of(opt, model, inputs * float("nan"), labels)
    for _ in range(2 * EVERY - 1):
        opt.step(closure)
    with pytest.raises(RuntimeError, match="not finite in 8 steps in a row"):
        opt.step(closure)


@cuda
@pytest.mark.parametrize("make", MAKERS)
def test_a_captured_step_continues_as_the_same_steps(make):
    points = []
    for graph in (False, True):
        model, opt = on_device(3, make)
        inputs, labels = (t.cuda() for t in data())
        closure = closure_of(opt, model, inputs, labels)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                opt.step(closure)
        torch.cuda.current_stream().wait_stream(stream)
        if graph:
            captured = torch.cuda.CUDAGraph()
            with torch.cuda.graph(captured):
                opt.step(closure)
        for _ in range(20):
            captured.replay() if graph else opt.step(closure)
        assert opt.numbers()["steps"] == 26
        points.append(parameters(model))
    assert (points[0] - points[1]).norm() < 1e-4 * points[0].norm()


@cuda
def test_the_trial_on_a_device_sees_the_same_dropout_mask():
    model = network(dropout=0.5).cuda()
    opt = Auto(model.parameters())
    masks = []
    model[2].register_forward_hook(lambda _, __, out: masks.append((out == 0).clone()))
    inputs, labels = (t.cuda() for t in data())
    opt.step(closure_of(opt, model, inputs, labels))
    assert (masks[0] != masks[1]).double().mean() < 0.05


@cuda
def test_half_precision_with_a_scaler_learns():
    model = network().cuda()
    opt = Auto(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    losses = []
    for k in range(60):
        inputs, labels = (t.cuda() for t in data(seed=k))

        def closure(x=inputs, y=labels):
            opt.zero_grad()
            with torch.autocast("cuda", torch.float16):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            return loss

        losses.append(opt.step(closure, scaler=scaler).item())
        scaler.update()
    assert sum(losses[-10:]) < 0.7 * sum(losses[:10])


@cuda
def test_a_model_moved_to_the_device_goes_on():
    model = network()
    opt = Auto(model.parameters())
    train(opt, model, 5)
    model.cuda()
    for k in range(5, 10):
        inputs, labels = data(seed=k)
        opt.step(closure_of(opt, model, inputs.cuda(), labels.cuda()))
    assert opt.numbers()["steps"] == 10
    assert opt.state[model[0].weight]["x"].is_cuda
