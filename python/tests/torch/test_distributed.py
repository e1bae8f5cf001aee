"""Data parallel training with real processes."""

import json
import multiprocessing
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch_helpers import closure_of, data, network, parameters
from torch_workers import bounded, work

from strust.torch import Auto

pytestmark = pytest.mark.skipif(
    not (dist.is_available() and dist.is_gloo_available()) or sys.platform == "win32",
    reason="needs torch.distributed with Gloo",
)
STEPS = 25


@pytest.fixture(scope="module")
def processes():
    """Processes that have torch imported already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "torch._dynamo", "torch.distributed", "torch.nn.parallel"])
    return context


def launch(context, scenario: str, size: int, folder: Path, fails: bool = False) -> list[dict]:
    """The results of all ranks that wrote one."""
    file = folder / scenario
    ranks = [context.Process(target=work, args=(scenario, rank, size, file)) for rank in range(size)]
    for process in ranks:
        process.start()
    try:
        for process in ranks:
            process.join(timeout=80)
        codes = [process.exitcode for process in ranks]
    finally:
        for process in ranks:
            process.kill()
    if not fails:
        assert codes == [0] * size
    results = (folder / f"{scenario}.{rank}" for rank in range(size))
    return [json.loads(result.read_text()) for result in results if result.exists()]


def whole_batches() -> torch.Tensor:
    """One process that sees all rows, from the start of rank 0."""
    model = network(seed=0).double()
    opt = Auto(model.parameters())
    for k in range(STEPS):
        opt.step(closure_of(opt, model, *data(seed=k, rows=32, dtype=torch.float64)))
    return parameters(model)


@pytest.mark.parametrize(("scenario", "size"), [("plain", 2), ("plain", 4), ("ddp", 2), ("ddp", 4), ("ddp_grad", 2)])
def test_all_ranks_make_the_steps_of_one_process_with_the_whole_batch(processes, scenario, size, tmp_path):
    results = launch(processes, scenario, size, tmp_path)
    assert all(result["parameters"] == results[0]["parameters"] for result in results)
    assert all(result["numbers"] == results[0]["numbers"] for result in results)
    found = torch.tensor(results[0]["parameters"], dtype=torch.float64)
    assert (found - whole_batches()).norm() < 1e-9
    # One call for the gradient, which DistributedDataParallel makes itself, one for the loss, and one for both losses.
    per_step = {"plain": 3, "ddp": 2, "ddp_grad": 0}[scenario]
    for result in results:
        assert result["calls"].count("all_reduce") == per_step * STEPS
        assert result["calls"].count("broadcast") <= 1


def test_the_number_of_calls_does_not_depend_on_the_verdict(processes, tmp_path):
    results = launch(processes, "rejects", 4, tmp_path)
    assert all(result["verdicts"] == results[0]["verdicts"] for result in results)
    assert all(result["parameters"] == results[0]["parameters"] for result in results)
    assert {True, False} == set(results[0]["verdicts"])
    assert all(set(result["counts"]) == {2} for result in results)


def test_without_a_group_every_process_decides_alone(processes, tmp_path):
    results = launch(processes, "alone", 2, tmp_path)
    assert results[0]["parameters"] != results[1]["parameters"]
    assert results[0]["calls"] == []


def test_an_unpickled_optimizer_without_a_group_waits_for_nobody(processes, tmp_path):
    results = launch(processes, "loaded", 2, tmp_path)
    assert [result["steps"] for result in results] == [STEPS + 1, STEPS]
    assert results[0]["calls"] == []


@pytest.mark.parametrize("size", [2, 4])
def test_a_row_that_some_ranks_know_ends_with_the_multiplier_of_one_process(processes, size, tmp_path):
    results = launch(processes, "bounded", size, tmp_path)
    alone = bounded(0, size, whole=True)
    assert min(alone["multipliers"]) > 1.0
    for result in results:
        assert result["multipliers"] == pytest.approx(alone["multipliers"], rel=1e-6)
        assert result["parameters"] == pytest.approx(alone["parameters"], rel=1e-6)
        assert result["numbers"]["accepted"] == alone["numbers"]["accepted"]


@pytest.mark.parametrize("size", [2, 4])
def test_a_rank_that_dies_ends_the_others_with_a_message(processes, size, tmp_path):
    results = launch(processes, "dies", size, tmp_path, fails=True)
    assert len(results) == size - 1
    for result in results:
        assert result["step"] == 5
        assert "one of them has probably ended" in result["message"]
        assert result["kept"]
        assert result["seconds"] < 60
