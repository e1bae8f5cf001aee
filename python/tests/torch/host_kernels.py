"""The kernels of `Auto`, compiled for the CPU with one thread."""

import ctypes
import shutil
import subprocess

import pytest
import torch

from strust.torch import _auto, _kernels

# What CUDA defines, for one thread.
BEFORE = """
#include <cmath>
using namespace std;
#define REAL double
#define THREADS 1
#define __device__ static
#define __global__
#define __shared__ static
static struct { int x; } threadIdx = {0}, blockIdx = {0}, gridDim = {1};
static void __syncthreads() {}
static double __shfl_down_sync(unsigned, double, int) { return 0.0; }
static double rsqrt(double x) { return 1.0 / sqrt(x); }
"""
# One step of the numbers alone. `given` are the fields of a golden step in their order.
AFTER = """
struct Given {
  double distance, difference, first, squared_norm, balance, value, rounding, trial, slope, square;
};
extern "C" void golden_step(const Settings& s, const Given& g, Numbers& numbers, double* a_and_c, bool* accepted) {
  Proposal p = {numbers, numbers, 0.0, 0.0, g.squared_norm, 0.0, 0.0, g.balance};
  measure(p.measured, g.distance, g.difference);
  p.a = next_size(p.measured, s, g.first);
  a_and_c[0] = p.a;
  a_and_c[1] = share_of(p.measured, s);
  Verdict verdict = judge(p, s, g.value, g.trial, g.slope, g.square);
  *accepted = verdict.accept;
  numbers = verdict.numbers;
}
"""


class HostModule:
    """In the place of `_nvrtc.Module`."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library

    def launch(self, name, blocks, threads, arguments):
        assert blocks == 1
        values = [ctypes.c_void_p(a.data_ptr()) if isinstance(a, torch.Tensor) else ctypes.c_int(a) for a in arguments]
        # The tensors must live as long as the launch.
        return lambda kept=arguments: getattr(self.library, name)(*values)


class HostKernels(_kernels.AutoKernels):
    """In the place of the kernels of a GPU."""

    @classmethod
    def make(cls, wanted, *parts):
        return cls(*parts)

    def _run(self, launches):
        for launch in launches:
            launch()


@pytest.fixture(scope="session")
def host_library(tmp_path_factory) -> ctypes.CDLL:
    if shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler")
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "auto.cpp").write_text(BEFORE + _kernels.learned.KERNELS + AFTER, encoding="utf-8")
    options = ["-std=c++17", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-o", "auto.so", "auto.cpp"]
    subprocess.run(["c++", *options], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "auto.so"))


@pytest.fixture
def on_host(host_library, monkeypatch):
    """The optimizer then uses the kernels on the CPU."""
    monkeypatch.setattr(_kernels, "_module", lambda dtype, device: HostModule(host_library))
    monkeypatch.setattr(_kernels, "processors", lambda device: 1)
    monkeypatch.setattr(_auto, "AutoKernels", HostKernels)
