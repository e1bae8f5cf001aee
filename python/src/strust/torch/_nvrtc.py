"""CUDA kernels from source, compiled by NVRTC and launched by the driver. Both come with torch and its driver."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

_Pointer = ctypes.c_void_p


def _library(linux: str, windows: str) -> ctypes.CDLL:
    """A library by name, or from the packages that torch was installed with."""
    name = windows if sys.platform == "win32" else linux
    packages = Path(torch.__file__).parents[1]
    for path in (name, *map(str, packages.glob(f"nvidia/*/lib/{name}")), str(packages / "torch" / "lib" / name)):
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise RuntimeError(f"the library {name} cannot be loaded")


@functools.cache
def _nvrtc() -> ctypes.CDLL:
    major = (torch.version.cuda or "").partition(".")[0]
    return _library(f"libnvrtc.so.{major}", f"nvrtc64_{major}0_0.dll")


@functools.cache
def _driver() -> ctypes.CDLL:
    return _library("libcuda.so.1", "nvcuda.dll")


def compile_source(source: str, architecture: str) -> bytes:
    """The binary of all kernels in a source, for an architecture such as "sm_90"."""
    nvrtc, program = _nvrtc(), _Pointer()
    _check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"strust.cu", 0, None, None), "NVRTC")
    try:
        options = [f"--gpu-architecture={architecture}".encode(), b"--std=c++17"]
        failed = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        if failed:
            raise RuntimeError(f"the kernels do not compile: {_text(nvrtc, program)}")
        size = ctypes.c_size_t()
        _check(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)), "NVRTC")
        binary = ctypes.create_string_buffer(size.value)
        _check(nvrtc.nvrtcGetCUBIN(program, binary), "NVRTC")
        return binary.raw
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _text(nvrtc: ctypes.CDLL, program: _Pointer) -> str:
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    return log.value.decode(errors="replace")


def _check(code: int, what: str) -> None:
    if code:
        raise RuntimeError(f"{what} returned the error code {code}")


class Module:
    """Kernels on one device."""

    def __init__(self, source: str, device: torch.device) -> None:
        major, minor = torch.cuda.get_device_capability(device)
        binary = compile_source(source, f"sm_{major}{minor}")
        self._module = _Pointer()
        with torch.cuda.device(device):
            # The driver needs a context of the device.
            torch.cuda.current_stream().synchronize()
            _check(_driver().cuModuleLoadData(ctypes.byref(self._module), binary), "the CUDA driver")

    def launch(self, name: str, blocks: int, threads: int, arguments: Sequence[Tensor | int]) -> Launch:
        """A launch of the kernel `name` with these arguments. The tensors must stay where they are."""
        function = _Pointer()
        found = _driver().cuModuleGetFunction(ctypes.byref(function), self._module, name.encode())
        _check(found, f"the CUDA driver, asked for the kernel {name},")
        return Launch(function, blocks, threads, arguments)


class Launch:
    """A kernel with its arguments, prepared once: calling it costs a few microseconds."""

    def __init__(self, function: _Pointer, blocks: int, threads: int, arguments: Sequence[Tensor | int]) -> None:
        self._kept = arguments
        self._values = [_Pointer(a.data_ptr()) if isinstance(a, Tensor) else ctypes.c_int(a) for a in arguments]
        addresses = [ctypes.addressof(value) for value in self._values]
        self._arguments = (_Pointer * len(addresses))(*addresses)
        self._function = function
        self._shape = tuple(ctypes.c_uint(n) for n in (blocks, 1, 1, threads, 1, 1, 0))

    def __call__(self, stream: int) -> None:
        """Launches on a stream, given by its handle."""
        code = _driver().cuLaunchKernel(self._function, *self._shape, _Pointer(stream), self._arguments, None)
        _check(code, "the CUDA driver, asked to launch a kernel,")
