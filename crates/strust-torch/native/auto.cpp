// A step of Auto around its two evaluations. The kernels are in auto.cu.
#include "kernels.h"

#include <ATen/Functions.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <cstring>
#include <string>

using namespace strust;
using at::Tensor;

namespace {
constexpr int kThreads = 256;  // the same as in auto.cu
constexpr int kNumbers = 11, kProposal = 2 * kNumbers + 7, kSums = 5;

const char* const kSource =
#include "common.cu"
#include "auto.cu"
    ;

// The same as in auto.cu.
struct Settings {
  double numbers[26];
};
struct Vectors {
  void* of[7];
  long long count;
};

// Without fused multiply-add, so that y is rounded as in the operations that resume a run.
CUfunction function(const Tensor& y, const char* name) {
  const char* real = y.scalar_type() == at::kFloat ? "-DREAL=float --fmad=false" : "-DREAL=double --fmad=false";
  return kernel("auto.cu", kSource, real, name);
}

// The memory of one method and how its work is divided.
struct Step {
  Settings settings;
  Vectors vectors;
  Grid grid;
  Tensor y;
  double *kept, *proposal, *shares[2];

  Step(const Tensor* const* tensors, const double* numbers, const Tensor& state, const Tensor& space) : y(*tensors[0]) {
    std::memcpy(settings.numbers, numbers, sizeof settings);
    for (int i = 0; i < 7; i++) vectors.of[i] = tensors[i]->data_ptr();
    vectors.count = y.numel();
    int blocks = static_cast<int>(std::min<int64_t>((y.numel() + kThreads - 1) / kThreads, most_blocks()));
    grid = {blocks, 1, kThreads, 0, false};
    kept = state.data_ptr<double>();
    proposal = space.data_ptr<double>();
    for (int i = 0; i < 2; i++) shares[i] = proposal + kProposal + i * kSums * most_blocks();
  }
  static int most_blocks() { return 2 * gpu().processors; }
  static int64_t room() { return kProposal + 2 * kSums * most_blocks(); }

  template <class... A>
  void run(const char* name, A... arguments) {
    launch(function(y, name), grid, vectors, settings, arguments...);
  }
};

bool fits(const Tensor* const* tensors, int count) {
  const Tensor& y = *tensors[0];
  bool ours = y.is_cuda() && (y.scalar_type() == at::kFloat || y.scalar_type() == at::kDouble) && y.numel() > 0;
  for (int i = 0; i < count; i++) {
    const Tensor& t = *tensors[i];
    ours = ours && t.is_contiguous() && t.device() == y.device() && t.scalar_type() == y.scalar_type() &&
           t.numel() == y.numel();
  }
  return ours;
}
}  // namespace

extern "C" {
// Memory for the kernels of a method whose vectors are these: y, gradient, x, z, start, last and root.
int strust_auto_space(const Tensor* const* vectors, Tensor** out, char* why, size_t room) {
  int outcome = kNotForThis;
  int failed = attempt(why, room, [&] {
    const Tensor& y = *vectors[0];
    outcome = fits(vectors, 7) ? available(y, why, room, [&] { function(y, "auto_judge"); }) : kNotForThis;
    if (outcome != kDone) return;
    c10::DeviceGuard guard(y.device());
    *out = new Tensor(at::zeros({Step::room()}, y.options().dtype(at::kDouble)));
  });
  return failed ? kFailed : outcome;
}

// Writes the trial to y.
int strust_auto_propose(const Tensor* const* vectors, const double* settings, const Tensor* kept, const Tensor* space,
                        const Tensor* whole, char* why, size_t room) {
  return attempt(why, room, [&] {
    c10::DeviceGuard guard(vectors[0]->device());
    Step step(vectors, settings, *kept, *space);
    step.run("auto_gradient", step.shares[0]);
    step.run("auto_metric", step.kept, step.shares[0], step.shares[1], step.proposal);
    step.run("auto_propose", step.kept, whole->data_ptr<bool>(), step.shares[1], step.proposal);
  });
}

// Accepts or rejects the trial. `rest` are the value, the trial, the table of records and the index of its next row.
int strust_auto_judge(const Tensor* const* vectors, const double* settings, const Tensor* kept, const Tensor* space,
                      const Tensor* whole, const Tensor* const* rest, char* why, size_t room) {
  const Tensor *value = rest[0], *trial = rest[1], *table = rest[2], *next = rest[3];
  return attempt(why, room, [&] {
    c10::DeviceGuard guard(vectors[0]->device());
    Step step(vectors, settings, *kept, *space);
    step.run("auto_trial", step.proposal, step.shares[0]);
    step.run("auto_judge", step.proposal, step.shares[0], value->data_ptr<double>(), trial->data_ptr<double>(),
             step.kept, whole->data_ptr<bool>(), table->data_ptr<double>(), (long long*)next->data_ptr<int64_t>());
  });
}
}
