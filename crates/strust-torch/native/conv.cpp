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
constexpr int kThreads = 256, kRowThreads = 384;  // the same as in conv.cu
// With more channels cuDNN's tiles are full, and cuDNN is fast.
constexpr int kMostChannels = 64;

const char* const kSource =
#include "common.cu"
#include "conv.cu"
    ;

// The sizes of a tensor of images.
struct Images {
  int n, channels, height, width;
  explicit Images(const Tensor& x) : n(x.size(0)), channels(x.size(1)), height(x.size(2)), width(x.size(3)) {}
  // The sizes of x ⋆ w.
  Images(const Tensor& x, const Tensor& weight, int64_t stride)
      : n(x.size(0)), channels(weight.size(0)), height(x.size(2) / stride), width(x.size(3) / stride) {}
};

// The same as in conv.cu.
struct Tiles {
  int n, height, width, in_height, in_width, inputs, outputs, images, rows, columns, stride, dilation;

  Tiles(const Images& x, const Images& y, int stride, int dilation)
      : n(x.n), height(y.height), width(y.width), in_height(x.height), in_width(x.width), inputs(x.channels),
        outputs(y.channels), images(0), rows(0), columns(0), stride(stride), dilation(dilation) {}
  // Divides the output into tiles of 2^power pixels, in rows of 8, 16 or 32.
  void divide(int power) {
    auto grow = [](int side, int most) {
      int log = 0;
      while (log < most && side % (2 << log) == 0) log++;
      return log;
    };
    columns = grow(width, 5), rows = grow(height, power - columns), images = power - columns - rows;
  }
  int count() const { return ((n + (1 << images) - 1) >> images) * (height >> rows) * (width >> columns); }
  // The number of input pixels that a tile needs.
  int pixels() const {
    auto needed = [&](int log) { return stride * ((1 << log) - 1) + 3; };
    return needed(rows) * needed(columns) << images;
  }
};

int block_of(int channels) { return channels % 32 == 0 ? 32 : 16; }

std::string options(at::ScalarType type, int inputs, int outputs) {
  return std::string("-DTYPE=") + (type == at::kFloat ? "Tf32" : "Bf16") + " -DINPUTS=" + std::to_string(inputs) +
         " -DOUTPUTS=" + std::to_string(outputs);
}
int size_of(at::ScalarType type) { return type == at::kFloat ? 4 : 2; }

// How y = x ⋆ w is computed, or the gradient of x, for which w is rotated by 180°. With 16 inputs at a time it fits
// every GPU of compute capability 8.
struct Convolution {
  Tiles tiles;
  int inputs, outputs, sixteens, shared;
  CUfunction function;

  Convolution(const Images& x, const Images& y, at::ScalarType type, int stride, int dilation)
      : tiles(x, y, stride, dilation), outputs(block_of(tiles.outputs)) {
    auto fits = [&](int power, int at_a_time) {
      tiles.divide(power);
      sixteens = power == 8 ? 2 : 1, inputs = at_a_time;
      shared = (9 * outputs + tiles.pixels()) * (inputs * size_of(type) + 16);
      return shared <= gpu().shared;
    };
    // Large tiles if there are enough of them for the whole GPU; otherwise many inputs at a time.
    int block = block_of(tiles.inputs);
    bool large = fits(8, block) && 4 * tiles.count() * (tiles.outputs / outputs) >= 3 * gpu().processors;
    if (!large && !(tiles.inputs % 64 == 0 && fits(7, 64)) && !fits(7, block)) fits(7, 16);
    function = kernel("conv.cu", kSource, options(type, inputs, outputs) + " -DSIXTEENS=" + std::to_string(sixteens),
                      "convolve");
  }
  void run(const Tensor& x, const Tensor& weight, const Tensor& y, bool rotated) const {
    launch(function, {tiles.count(), tiles.outputs / outputs, kThreads, shared, true}, x.data_ptr(), weight.data_ptr(),
           y.data_ptr(), tiles, rotated);
  }
};

// How the gradient of w is computed from x and the gradient of y.
struct Correlation {
  Tiles tiles;
  int inputs, outputs, slices, blocks, shared;
  CUfunction of_tiles, of_all;

  Correlation(const Images& x, const Images& dy, at::ScalarType type, int stride)
      : tiles(x, dy, stride, 1), outputs(block_of(tiles.outputs)) {
    auto need = [&](int power, int at_a_time) {
      tiles.divide(power);
      inputs = at_a_time;
      int pixels = ((outputs * size_of(type) + 16) << power) + tiles.pixels() * (inputs * size_of(type) + 16);
      // The sums of half of the warps, which use the same memory.
      int sums = 2 * 3 * 32 * 3 * (outputs / 16) * (inputs / 8) * 4 * 4;
      return shared = std::max(pixels, sums);
    };
    // Large tiles if two blocks fit.
    int block = block_of(tiles.inputs);
    if (2 * need(8, block) > gpu().shared && need(7, block) > gpu().shared) need(7, 16);
    slices = (tiles.inputs + inputs - 1) / inputs * (tiles.outputs / outputs);
    blocks = std::min(tiles.count(), std::max(1, 2 * gpu().processors / slices));
    of_tiles = kernel("conv.cu", kSource, options(type, inputs, outputs), "correlate");
    of_all = kernel("conv.cu", kSource, options(type, inputs, outputs), "add_parts");
  }
  Tensor run(const Tensor& x, const Tensor& dy, const Tensor& weight) const {
    int size = static_cast<int>(weight.numel());
    Tensor parts = at::empty({static_cast<int64_t>(blocks) * size}, weight.options()), dw = at::empty_like(weight);
    launch(of_tiles, {blocks, slices, kRowThreads, shared, true}, x.data_ptr(), dy.data_ptr(), parts.data_ptr(), tiles);
    launch(of_all, {(size + 31) / 32, 1, kThreads, 0, true}, parts.data_ptr(), blocks, size, dw.data_ptr());
    return dw;
  }
};

Tensor forward(const Tensor& x, const Tensor& weight, int64_t stride) {
  c10::DeviceGuard guard(x.device());
  Images size(x, weight, stride);
  Tensor y = at::empty({size.n, size.channels, size.height, size.width}, x.options(), kLast);
  Convolution(Images(x), size, x.scalar_type(), stride, 1).run(x, weight, y, false);
  return y;
}

struct Conv3x3 : torch::autograd::Function<Conv3x3> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& weight, int64_t stride) {
    ctx->save_for_backward({x, weight});
    ctx->saved_data["stride"] = stride;
    return ::forward(x, weight, stride);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    forbid_double_backward();
    auto saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1];
    int stride = ctx->saved_data["stride"].toInt();
    c10::DeviceGuard guard(x.device());
    Tensor dy = as_stored(gradients[0], x), dx, dw;
    if (ctx->needs_input_grad(0)) {
      dx = at::empty_like(x);
      Convolution(Images(dy), Images(x), x.scalar_type(), 1, stride).run(dy, weight, dx, true);
    }
    if (ctx->needs_input_grad(1)) dw = Correlation(Images(x), Images(dy), x.scalar_type(), stride).run(x, dy, weight);
    return {dx, dw, Tensor()};
  }
};

bool some_channels(int64_t channels) { return channels % 16 == 0 && channels <= kMostChannels; }
}  // namespace

extern "C" {
int strust_conv3x3(const Tensor* x, const Tensor* weight, int64_t stride, Tensor** out, char* why, size_t room) {
  int outcome = kNotForThis;
  int failed = attempt(why, room, [&] {
    // The same rule as libtorch's convolution: under autocast it casts x; otherwise x must have the type of the
    // weights.
    bool cast = at::autocast::is_autocast_enabled(at::kCUDA);
    bool bf16 = cast && at::autocast::get_autocast_dtype(at::kCUDA) == at::kBFloat16;
    Tensor in = bf16 && x->scalar_type() == at::kFloat ? x->to(at::kBFloat16) : *x;
    bool kind = bf16 ? in.scalar_type() == at::kBFloat16
                     : !cast && in.scalar_type() == at::kFloat && at::globalContext().allowTF32CuDNN();
    bool ours = kind && fits(in) && (stride == 1 || stride == 2);
    ours = ours && weight->scalar_type() == at::kFloat && weight->device() == in.device() && weight->is_contiguous(kLast);
    ours = ours && weight->dim() == 4 && weight->size(1) == in.size(1) && weight->size(2) == 3 && weight->size(3) == 3;
    ours = ours && some_channels(weight->size(0)) &&
           (some_channels(in.size(1)) || (in.size(1) == 3 && !in.requires_grad()));
    ours = ours && in.size(2) % (8 * stride) == 0 && in.size(3) % (8 * stride) == 0;
    // The kernels use 32-bit indices for y too.
    ours = ours && in.numel() / in.size(1) * weight->size(0) < (1LL << 31);
    if (!ours) return;
    bool graph = at::GradMode::is_enabled() && (in.requires_grad() || weight->requires_grad());
    outcome = available(in, why, room, [&] {
      Images from(in), to(in, *weight, stride);
      Convolution(from, to, in.scalar_type(), stride, 1);
      if (graph && in.requires_grad()) Convolution(to, from, in.scalar_type(), 1, stride);
      if (graph && weight->requires_grad()) Correlation(from, to, in.scalar_type(), stride);
    });
    if (outcome != kDone) return;
    Tensor w = aligned(*weight) ? *weight : weight->clone();
    *out = new Tensor(graph ? Conv3x3::apply(in, w, stride) : forward(in, w, stride));
  });
  return failed ? kFailed : outcome;
}
}
