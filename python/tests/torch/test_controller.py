"""The numbers of `Auto` after every golden step of the Rust library, by operations of torch and by the kernels' source.

`crates/strust/src/methods/controller/tests.rs` writes the file.
"""

import ctypes
import json
from pathlib import Path

import pytest
import torch
from host_kernels import host_library, on_host  # noqa: F401
from test_golden import CASES, check_trajectory

from strust.torch import _learned as learned

GOLDEN = json.loads((Path(__file__).parent / "auto-steps.json").read_text())
SETTINGS = GOLDEN["settings"]
STEPS = [pytest.param(step, id=step["what"].replace(" ", "-")) for step in GOLDEN["steps"]]


def doubles(numbers) -> list[float]:
    return [float("nan") if number is None else float(number) for number in numbers]


def check(step, size, share, accepted, numbers):
    wanted = [*step["learned"], 1.0, 0.0]
    assert accepted == step["accepted"]
    assert (size, share) == pytest.approx((step["size"], step["share"]), rel=1e-14)
    assert numbers == pytest.approx(wanted, rel=1e-14)


def test_the_constants_are_those_of_the_golden_steps():
    assert GOLDEN["constants"] == learned.CONSTANTS


def test_the_numbers_of_a_saved_state_keep_their_order():
    # A state dict has them as one tensor, without names.
    names = "accepted curvature mean_curvature square_curvature noise recent_noise least_noise remembered distance size"
    names += " trust balance balances at_average steps broken"
    assert list(learned.INITIAL) == names.split()


@pytest.mark.parametrize("step", STEPS)
def test_operations_make_the_golden_steps(step):
    def tensor(number: float):
        return torch.tensor(number, dtype=torch.float64)

    given = dict(zip(step["measured"], map(tensor, doubles(step["measured"].values())), strict=True))
    known = dict(zip(learned.INITIAL, map(tensor, [*step["known"], 0.0, 0.0]), strict=True))
    measured = learned.measure(known, given["distance"], given["difference"])
    gamma, q, momentum, power = (SETTINGS[name] for name in ("gamma", "noise", "momentum", "power"))
    share = learned.share_of(measured, power)
    size = learned.next_size(measured, share, given["first"], gamma=gamma, q=q, momentum=momentum)
    names = ("balance", "squared_norm", "value", "trial", "rounding", "slope", "square")
    trial = learned.Trial(size, *(given[name] for name in names))
    verdict = learned.judge(known, measured, trial, scaled=False)
    assert list(verdict.numbers) == list(learned.INITIAL)
    numbers = [float(number) for number in verdict.numbers.values()]
    check(step, float(size), float(share), bool(verdict.accept), numbers)


@pytest.mark.parametrize("step", STEPS)
def test_the_source_of_the_kernels_makes_the_golden_steps(step, host_library):  # noqa: F811
    given = step["measured"]
    settings = [*(SETTINGS[name] for name in ("gamma", "noise", "momentum", "power")), 0.0, 0.0]
    settings += [given["rounding"] / abs(given["value"]), 0.0, 0.0, 0.0]

    def array(numbers):
        return (ctypes.c_double * len(numbers))(*doubles(numbers))

    numbers, result, accepted = array([*step["known"], 0.0, 0.0]), array([0.0, 0.0]), ctypes.c_bool()
    # The order of the fields in the C++ struct.
    order = ("distance", "difference", "first", "squared_norm", "balance")
    order += ("value", "rounding", "trial", "slope", "square")
    fields = array([given[name] for name in order])
    host_library.golden_step(array(settings), fields, numbers, result, ctypes.byref(accepted))
    check(step, *result, accepted.value, list(numbers))


@pytest.mark.usefixtures("on_host")
@pytest.mark.parametrize(("golden", "run"), [case for case in CASES if case.values[1]["method"] == "auto"])
def test_the_source_of_the_kernels_makes_the_trajectory_of_the_rust_library(golden, run):
    check_trajectory(golden, run)
