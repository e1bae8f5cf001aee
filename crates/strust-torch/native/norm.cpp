// Batch-norm in training mode with an optional sum and ReLU, in few passes over memory. Also the shortcut of a residual
// block that halves the image. The kernels are in norm.cu.
#include "kernels.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/DeviceGuard.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <optional>
#include <string>

using namespace strust;
using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {
constexpr int kThreads = 512;  // the same as in norm.cu

const char* const kSource =
#include "common.cu"
#include "norm.cu"
    ;

enum Kernel { kStatistics, kForward, kBackwardSums, kBackward, kHalve, kHalveBack };
const char* const kNames[] = {"statistics", "forward", "backward_sums", "backward", "halve", "halve_back"};
enum Kind { kF4, kB8, kB4 };
const char* const kSuffixes[] = {"_F4", "_B8", "_B4"};
int numbers(Kind kind) { return kind == kB8 ? 8 : 4; }

CUfunction function(Kernel kernel, Kind kind) {
  return strust::kernel("norm.cu", kSource, "", std::string(kNames[kernel]) + kSuffixes[kind]);
}
// Compiles all kernels: they are one program.
void compile_all() { function(kForward, kF4); }

template <class... A>
void run(Kernel kernel, Kind kind, int blocks, int groups, A... arguments) {
  // All kernels except `halve` and `halve_back` wait for the previous kernel themselves.
  bool early = kernel != kHalve && kernel != kHalveBack;
  launch(function(kernel, kind), {blocks, groups, kThreads, 0, early}, arguments...);
}

void* at_or_null(const Tensor& t) { return t.defined() ? t.data_ptr() : nullptr; }

Kind kind_for(const Tensor& x, int64_t divisible) {
  return x.scalar_type() == at::kFloat ? kF4 : divisible % 8 == 0 ? kB8 : kB4;
}

// The same as in norm.cu.
struct Shape {
  int rows, q, group;
};

// How the work on a tensor is divided into blocks.
struct Division {
  Kind kind;
  Shape shape;
  int blocks, groups;

  explicit Division(const Tensor& x) : kind(kind_for(x, x.size(1))) {
    int q = static_cast<int>(x.size(1)) / numbers(kind);
    shape = {static_cast<int>(x.numel() / x.size(1)), q, q % 4 == 0 ? 2 : q % 2 == 0 ? 1 : 0};
    groups = q >> shape.group;
    int64_t step = kThreads >> shape.group, most = (shape.rows + step - 1) / step;
    // One block per multiprocessor. More blocks would only add more sums.
    blocks = static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(most, gpu().processors / groups)));
  }
  // Memory for the sums of the blocks.
  Tensor parts(const Tensor& like) const {
    return at::empty({groups * blocks * (2 * numbers(kind) << shape.group)}, like.options());
  }
};

struct Settings {
  Tensor running_mean, running_variance;
  double momentum, epsilon;
};

// y, and the mean and the inverse deviation of each channel.
std::array<Tensor, 2> forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& other,
                              const Settings& settings) {
  c10::DeviceGuard guard(x.device());
  Division d(x);
  Tensor parts = d.parts(weight), y = at::empty_like(x), kept = at::empty({2, x.size(1)}, weight.options());
  float* mean = kept.data_ptr<float>();
  run(kStatistics, d.kind, d.blocks, d.groups, x.data_ptr(), parts.data_ptr(), d.shape);
  run(kForward, d.kind, d.blocks, d.groups, x.data_ptr(), at_or_null(other), parts.data_ptr(), d.blocks,
         weight.data_ptr(), bias.data_ptr(), settings.running_mean.data_ptr(), settings.running_variance.data_ptr(),
         mean, mean + x.size(1), y.data_ptr(), d.shape, static_cast<float>(settings.momentum),
         static_cast<float>(settings.epsilon));
  return {y, kept};
}

struct NormRelu : torch::autograd::Function<NormRelu> {
  static variable_list forward(AutogradContext* ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                               const std::optional<Tensor>& other, const Settings& settings, bool twice) {
    auto [y, kept] = ::forward(x, weight, bias, other.value_or(Tensor()), settings);
    ctx->set_materialize_grads(false);
    ctx->save_for_backward({x, weight, bias, kept, other ? y : Tensor()});
    // The second handle to the same numbers has its own gradient. The backward kernels add the two gradients when they
    // read them.
    return twice ? variable_list{y, y.variable_data()} : variable_list{y};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    forbid_double_backward();
    auto saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &bias = saved[2], &y = saved[4];
    Tensor dy = as_stored(gradients[0], x), dy2 = gradients.size() > 1 ? as_stored(gradients[1], x) : Tensor();
    if (!dy.defined()) std::swap(dy, dy2);
    if (!dy.defined()) return variable_list(6);
    c10::DeviceGuard guard(x.device());
    Division d(x);
    Tensor parts = d.parts(weight), dx = at::empty_like(x), g = y.defined() ? at::empty_like(x) : Tensor();
    Tensor dweight = at::empty_like(weight), dbias = at::empty_like(bias);
    float *mean = saved[3].data_ptr<float>(), *inverse = mean + x.size(1);
    run(kBackwardSums, d.kind, d.blocks, d.groups, dy.data_ptr(), at_or_null(dy2), x.data_ptr(), at_or_null(y), mean,
           inverse, weight.data_ptr(), bias.data_ptr(), at_or_null(g), parts.data_ptr(), d.shape);
    if (g.defined()) dy = g, dy2 = Tensor();
    run(kBackward, d.kind, d.blocks, d.groups, dy.data_ptr(), at_or_null(dy2), x.data_ptr(), parts.data_ptr(),
           d.blocks, mean, inverse, weight.data_ptr(), bias.data_ptr(), dx.data_ptr(), dweight.data_ptr(),
           dbias.data_ptr(), d.shape, g.defined());
    return {dx, dweight, dbias, g, Tensor(), Tensor()};
  }
};

// Every second pixel of every second row, with `pad` zero channels on either side.
struct Halve : torch::autograd::Function<Halve> {
  static void run(Kernel kernel, const Tensor& from, const Tensor& to, const Tensor& small, int64_t pad) {
    c10::DeviceGuard guard(from.device());
    Kind kind = kind_for(from, small.size(1) % 8 ? 4 : pad);
    int v = numbers(kind);
    int count = static_cast<int>(to.numel() / v);
    ::run(kernel, kind, (count + kThreads - 1) / kThreads, 1, from.data_ptr(), to.data_ptr(),
           static_cast<int>(small.size(1) / v), static_cast<int>(pad / v), static_cast<int>(small.size(2)),
           static_cast<int>(small.size(3)), count);
  }
  static Tensor forward(AutogradContext* ctx, const Tensor& x, int64_t pad) {
    ctx->saved_data["pad"] = pad;
    Tensor y = at::empty({x.size(0), x.size(1) + 2 * pad, x.size(2) / 2, x.size(3) / 2}, x.options(), kLast);
    run(kHalve, x, y, y, pad);
    return y;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    forbid_double_backward();
    int64_t pad = ctx->saved_data["pad"].toInt();
    Tensor dy = as_stored(gradients[0], gradients[0]);
    auto sizes = dy.sizes();
    Tensor dx = at::empty({sizes[0], sizes[1] - 2 * pad, 2 * sizes[2], 2 * sizes[3]}, dy.options(), kLast);
    run(kHalveBack, dy, dx, dy, pad);
    return {dx, Tensor()};
  }
};

bool is_row(const Tensor& t, const Tensor& x) {
  return t.scalar_type() == at::kFloat && t.device() == x.device() && t.dim() == 1 && t.size(0) == x.size(1) &&
         t.is_contiguous();
}
}  // namespace

extern "C" {
// `rows` are weight, bias, running mean and running variance; `other` may be null. Returns one handle to the result, or
// two if `twice` is true.
int strust_norm_relu(const Tensor* x, const Tensor* const* rows, const Tensor* other, double momentum, double epsilon,
                     bool twice, Tensor** out, char* why, size_t room) {
  int outcome = kNotForThis;
  int failed = attempt(why, room, [&] {
    bool ours = fits(*x) && x->size(1) % 4 == 0 && x->numel() > x->size(1);
    for (int i = 0; i < 4; i++) ours = ours && is_row(*rows[i], *x);
    ours = ours && (!other || (other->sizes() == x->sizes() && other->device() == x->device()));
    outcome = ours ? available(*x, why, room, compile_all) : kNotForThis;
    if (outcome != kDone) return;
    Settings settings{*rows[2], *rows[3], momentum, epsilon};
    std::optional<Tensor> sum;
    if (other) sum = as_stored(*other, *x);
    bool graph = at::GradMode::is_enabled() && (x->requires_grad() || rows[0]->requires_grad() ||
                                                rows[1]->requires_grad() || (sum && sum->requires_grad()));
    variable_list made;
    if (graph) {
      made = NormRelu::apply(*x, *rows[0], *rows[1], sum, settings, twice);
    } else {
      made.assign(2, forward(*x, *rows[0], *rows[1], sum.value_or(Tensor()), settings)[0]);
    }
    for (int i = 0; i <= twice; i++) out[i] = new Tensor(made[i]);
  });
  return failed ? kFailed : outcome;
}

int strust_halve(const Tensor* x, int64_t pad, Tensor** out, char* why, size_t room) {
  int outcome = kNotForThis;
  int failed = attempt(why, room, [&] {
    bool ours = fits(*x) && x->size(1) % 4 == 0 && pad % 4 == 0 && x->size(2) % 2 == 0 && x->size(3) % 2 == 0;
    outcome = ours ? available(*x, why, room, compile_all) : kNotForThis;
    if (outcome == kDone) *out = new Tensor(Halve::apply(*x, pad));
  });
  return failed ? kFailed : outcome;
}
}
