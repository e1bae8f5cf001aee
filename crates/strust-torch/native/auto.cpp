// Launches the kernels of Auto. Their source comes from the library.
#include "kernels.h"

#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <vector>

using namespace strust;
using at::Tensor;

namespace {
constexpr int kThreads = 256;  // the same as in auto.cu

CUfunction function(const Tensor& y, const char* source, const char* name) {
  return kernel("auto.cu", source, y.scalar_type() == at::kFloat ? "-DREAL=float" : "-DREAL=double", name);
}
}  // namespace

extern "C" {
// The number of blocks of the kernels for vectors like y, if there are kernels for them.
int strust_auto_blocks(const char* source, const Tensor* y, int* blocks, char* why, size_t room) {
  int outcome = kNotForThis;
  int failed = attempt(why, room, [&] {
    bool real = y->scalar_type() == at::kFloat || y->scalar_type() == at::kDouble;
    // The kernels use 32-bit indices.
    bool ours = y->is_cuda() && real && y->is_contiguous() && y->numel() > 0 && y->numel() < (1LL << 31) - (1 << 20);
    if (!ours) return;
    outcome = available(*y, why, room, [&] { function(*y, source, "auto_judge"); });
    if (outcome != kDone) return;
    c10::DeviceGuard guard(y->device());
    // Each block adds the sums of all blocks, so small models get few of them.
    int64_t wanted = (y->numel() + 4 * kThreads - 1) / (4 * kThreads);
    *blocks = static_cast<int>(std::min<int64_t>(wanted, 4 * gpu().processors));
  });
  return failed ? kFailed : outcome;
}

// Launches the kernel `name` on `count` tensors. The first one is a vector.
int strust_auto_launch(const char* source, const char* name, const Tensor* const* tensors, int count, int blocks,
                       char* why, size_t room) {
  return attempt(why, room, [&] {
    c10::DeviceGuard guard(tensors[0]->device());
    std::vector<void*> pointers, arguments;
    for (int i = 0; i < count; i++) pointers.push_back(tensors[i]->data_ptr());
    for (auto& pointer : pointers) arguments.push_back(&pointer);
    int length = static_cast<int>(tensors[0]->numel());
    arguments.push_back(&length);
    launch(function(*tensors[0], source, name), {blocks, 1, kThreads, 0, false}, arguments.data());
  });
}
}
