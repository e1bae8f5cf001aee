// Kernels of our own: compiled when they are first needed, so that building this needs no CUDA compiler; and what the layers
// made of them have in common.
#pragma once
#include "attempt.h"

#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda.h>

#include <functional>
#include <string>

namespace strust {
constexpr auto kLast = at::MemoryFormat::ChannelsLast;

// The current GPU.
struct Gpu {
  int processors, major, minor;
  // Bytes of shared memory that a block can have.
  int shared;
};
const Gpu& gpu();

// A kernel of the current GPU: `name` of a file's source, compiled with `options`, such as "-DN=1", divided by spaces.
CUfunction kernel(const char* file, const char* source, const std::string& options, const std::string& name);

struct Grid {
  int blocks, groups, threads, shared;
  // Whether it waits for the kernel before it by itself, and so may start while that one still runs, from Hopper on.
  bool early;
};
void launch(CUfunction kernel, const Grid& grid, void** arguments);

template <class... A>
void launch(CUfunction kernel, const Grid& grid, A... arguments) {
  void* pointers[] = {&arguments...};
  launch(kernel, grid, static_cast<void**>(pointers));
}

enum Outcome { kDone, kFailed, kNotForThis, kUnavailable };

// Whether the kernels that `need` asks for can be used on the tensor's device; if not, none is from then on, and why is said
// once.
Outcome available(const at::Tensor& x, char* why, size_t room, const std::function<void()>& need);

// Whether a tensor is one for kernels: images of single precision or bfloat16, the channels side by side.
bool fits(const at::Tensor& x);
bool aligned(const at::Tensor& t);
// The gradient as they read it.
at::Tensor as_stored(const at::Tensor& gradient, const at::Tensor& x);
void once_only();
}  // namespace strust
