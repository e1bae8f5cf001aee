// Convolutions with 3×3 weights, a border of one zero, and few channels. The kernels are in conv.cu.
#include "kernels.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/DeviceGuard.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <string>

using namespace strust;
using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {
constexpr int kThreads = 256, kRowThreads = 384;  // as in conv.cu
// With more of them the tiles of cuDNN are full.
constexpr int kMostChannels = 64;

const char* const kSource =
#include "common.cu"
#include "conv.cu"
    ;

// As in conv.cu.
struct Tiles {
  int n, height, width, in_height, in_width, inputs, outputs, images, rows, columns, stride, dilation;

  Tiles(const Tensor& x, const Tensor& y, int stride, int dilation)
      : n(x.size(0)), height(y.size(2)), width(y.size(3)), in_height(x.size(2)), in_width(x.size(3)), inputs(x.size(1)),
        outputs(y.size(1)), images(0), rows(0), columns(0), stride(stride), dilation(dilation) {}
  // Divides the output into tiles of 2^power pixels, at least 8 by 8 of an image.
  void divide(int power) {
    auto grow = [](int side, int most) {
      int log = 0;
      while (log < most && side % (2 << log) == 0) log++;
      return log;
    };
    columns = grow(width, 5), rows = grow(height, power - columns), images = power - columns - rows;
  }
  int count() const { return ((n + (1 << images) - 1) >> images) * (height >> rows) * (width >> columns); }
  // Pixels of the input that a tile needs.
  int pixels() const {
    auto needed = [&](int log) { return stride * ((1 << log) - 1) + 3; };
    return needed(rows) * needed(columns) << images;
  }
};

int block_of(int channels) { return channels % 32 == 0 ? 32 : 16; }

std::string options(const Tensor& x, int inputs, int outputs) {
  return std::string("-DTYPE=") + (x.scalar_type() == at::kFloat ? "Tf32" : "Bf16") + " -DINPUTS=" +
         std::to_string(inputs) + " -DOUTPUTS=" + std::to_string(outputs);
}

// How y = x ⋆ w is done, or the gradient of x, for which w is turned.
struct Convolution {
  Tiles tiles;
  int inputs, outputs, sixteens, shared;

  Convolution(const Tensor& x, const Tensor& y, int stride, int dilation)
      : tiles(x, y, stride, dilation), inputs(block_of(tiles.inputs)), outputs(block_of(tiles.outputs)) {
    // Large tiles where there are enough of them for the whole GPU.
    for (sixteens = 2; sixteens > 0; sixteens--) {
      tiles.divide(sixteens == 2 ? 8 : 7);
      if (4 * blocks() >= 3 * gpu().processors) break;
    }
    sixteens = std::max(sixteens, 1);
    if (sixteens == 1 && tiles.inputs % 64 == 0) inputs = 64;
    shared = (9 * outputs + tiles.pixels()) * (inputs * static_cast<int>(x.element_size()) + 16);
  }
  int blocks() const { return tiles.count() * (tiles.outputs / outputs); }
  void run(const Tensor& x, const Tensor& weight, const Tensor& y, bool turned) const {
    CUfunction function = kernel("conv.cu", kSource, options(x, inputs, outputs) + " -DSIXTEENS=" + std::to_string(sixteens),
                                 "convolve");
    launch(function, {tiles.count(), tiles.outputs / outputs, kThreads, shared, true}, x.data_ptr(), weight.data_ptr(),
           y.data_ptr(), tiles, turned);
  }
};

// How the gradient of w is made of x and that of y.
struct Correlation {
  Tiles tiles;
  int inputs, outputs, slices, blocks, shared;

  Correlation(const Tensor& x, const Tensor& dy, int stride)
      : tiles(x, dy, stride, 1), inputs(block_of(tiles.inputs)), outputs(block_of(tiles.outputs)),
        slices((tiles.inputs + inputs - 1) / inputs * (tiles.outputs / outputs)) {
    int size = x.element_size();
    for (int power : {8, 7}) {
      tiles.divide(power);
      shared = ((outputs * size + 16) << power) + tiles.pixels() * (inputs * size + 16);
      if (2 * shared <= gpu().shared) break;
    }
    // The sums of half of the warps.
    shared = std::max(shared, 2 * 3 * 32 * 3 * (outputs / 16) * (inputs / 8) * 4 * 4);
    blocks = std::min(tiles.count(), std::max(1, 2 * gpu().processors / slices));
  }
  Tensor run(const Tensor& x, const Tensor& dy, const Tensor& weight) const {
    int size = static_cast<int>(weight.numel());
    Tensor parts = at::empty({static_cast<int64_t>(blocks) * size}, weight.options()), dw = at::empty_like(weight);
    std::string compiled = options(x, inputs, outputs);
    launch(kernel("conv.cu", kSource, compiled, "correlate"), {blocks, slices, kRowThreads, shared, true}, x.data_ptr(),
           dy.data_ptr(), parts.data_ptr(), tiles);
    launch(kernel("conv.cu", kSource, compiled, "add_parts"), {(size + 31) / 32, 1, kThreads, 0, true}, parts.data_ptr(),
           blocks, size, dw.data_ptr());
    return dw;
  }
};

Tensor forward(const Tensor& x, const Tensor& weight, int64_t stride) {
  c10::DeviceGuard guard(x.device());
  Tensor y = at::empty({x.size(0), weight.size(0), x.size(2) / stride, x.size(3) / stride}, x.options(), kLast);
  Convolution(x, y, stride, 1).run(x, weight, y, false);
  return y;
}

struct Conv3x3 : torch::autograd::Function<Conv3x3> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& weight, int64_t stride) {
    ctx->save_for_backward({x, weight});
    ctx->saved_data["stride"] = stride;
    return ::forward(x, weight, stride);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    once_only();
    auto saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1];
    int stride = ctx->saved_data["stride"].toInt();
    c10::DeviceGuard guard(x.device());
    Tensor dy = as_stored(gradients[0], x), dx, dw;
    if (ctx->needs_input_grad(0)) {
      dx = at::empty_like(x);
      Convolution(dy, dx, 1, stride).run(dy, weight, dx, true);
    }
    if (ctx->needs_input_grad(1)) dw = Correlation(x, dy, stride).run(x, dy, weight);
    return {dx, dw, Tensor()};
  }
};

// Whether there is room for all that the layer will want.
bool has_room(const Tensor& x, const Tensor& weight, int64_t stride) {
  c10::DeviceGuard guard(x.device());
  Tensor y = at::empty({x.size(0), weight.size(0), x.size(2) / stride, x.size(3) / stride},
                       x.options().device(at::kMeta), kLast);
  int most = std::max({Convolution(x, y, stride, 1).shared, Convolution(y, x, 1, stride).shared,
                       Correlation(x, y, stride).shared});
  return most <= gpu().shared;
}

bool some_channels(int64_t channels) { return channels % 16 == 0 && channels <= kMostChannels; }
}  // namespace

extern "C" {
int strust_conv3x3(const Tensor* x, const Tensor* weight, int64_t stride, Tensor** out, char* why, size_t room) {
  int outcome = kNotForThis;
  int failed = attempt(why, room, [&] {
    bool half = at::autocast::is_autocast_enabled(at::kCUDA) && at::autocast::get_autocast_dtype(at::kCUDA) == at::kBFloat16;
    Tensor in = half && x->scalar_type() == at::kFloat ? x->to(at::kBFloat16) : *x;
    bool ours = fits(in) && (in.scalar_type() == at::kBFloat16 || at::globalContext().allowTF32CuDNN());
    ours = ours && weight->scalar_type() == at::kFloat && weight->device() == in.device() && weight->is_contiguous(kLast);
    ours = ours && weight->dim() == 4 && weight->size(1) == in.size(1) && weight->size(2) == 3 && weight->size(3) == 3;
    ours = ours && some_channels(weight->size(0)) &&
           (some_channels(in.size(1)) || (in.size(1) == 3 && !in.requires_grad()));
    // Counted in 32 bits, as x is.
    ours = ours && in.numel() / in.size(1) * weight->size(0) < (1LL << 31);
    ours = ours && (stride == 1 || stride == 2) && in.size(2) % (8 * stride) == 0 && in.size(3) % (8 * stride) == 0;
    outcome = ours ? available(in, why, room) : kNotForThis;
    if (outcome == kDone && !has_room(in, *weight, stride)) outcome = kNotForThis;
    if (outcome != kDone) return;
    bool graph = at::GradMode::is_enabled() && (in.requires_grad() || weight->requires_grad());
    Tensor w = aligned(*weight) ? *weight : weight->clone();
    *out = new Tensor(graph ? Conv3x3::apply(in, w, stride) : forward(in, w, stride));
  });
  return failed ? kFailed : outcome;
}
}
