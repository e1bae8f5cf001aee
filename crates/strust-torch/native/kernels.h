// Compiles our kernels when they are first needed, so that the build needs no CUDA compiler. Also the common functions
// of the layers that use these kernels.
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
  // The most bytes of shared memory that a block can use.
  int shared;
};
const Gpu& gpu();

// The kernel `name` of a source, compiled for the current GPU with `options`, such as "-DN=1", separated by spaces.
CUfunction kernel(const char* file, const char* source, const std::string& options, const std::string& name);

struct Grid {
  int blocks, groups, threads, shared;
  // Whether the kernel itself waits for the kernel before it. Then it may start while that kernel still runs (from
  // Hopper on).
  bool early;
};
void launch(CUfunction kernel, const Grid& grid, void** arguments);

template <class... A>
void launch(CUfunction kernel, const Grid& grid, A... arguments) {
  void* pointers[] = {&arguments...};
  launch(kernel, grid, static_cast<void**>(pointers));
}

enum Outcome { kDone, kFailed, kNotForThis, kUnavailable };

// Whether the kernels that `need` compiles can be used on the tensor's device. After a failure no kernel is used on
// that device again. The first failure returns kUnavailable with the reason, all later calls kNotForThis.
Outcome available(const at::Tensor& x, char* why, size_t room, const std::function<void()>& need);

// Whether the kernels accept a tensor: images in single precision or bfloat16, in channels-last order.
bool fits(const at::Tensor& x);
bool aligned(const at::Tensor& t);
// The gradient in the type and order that the kernels read.
at::Tensor as_stored(const at::Tensor& gradient, const at::Tensor& x);
// Throws if a gradient of a gradient is asked for.
void forbid_double_backward();
}  // namespace strust
