// Batch-norm in training mode with an optional sum and ReLU, as few passes over memory; and the shortcut of a residual
// block that halves the image. The kernels are in norm.cu and are compiled when they are first needed, so that building
// this needs no CUDA compiler.
#include "attempt.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda.h>
#include <dlfcn.h>
#include <nvrtc.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {
constexpr auto kLast = at::MemoryFormat::ChannelsLast;
constexpr int kThreads = 512;  // as in norm.cu

const char* const kSource =
#include "norm.cu"
    ;

enum Kernel { kStatistics, kForward, kBackwardSums, kBackward, kHalve, kHalveBack, kKernels };
const char* const kNames[] = {"statistics", "forward", "backward_sums", "backward", "halve", "halve_back"};
enum Kind { kF4, kB8, kB4, kKinds };
const char* const kSuffixes[] = {"_F4", "_B8", "_B4"};
int numbers(Kind kind) { return kind == kB8 ? 8 : 4; }

#define STRUST_SYMBOLS(_)                                                                                   \
  _(nvrtcVersion) _(nvrtcCreateProgram) _(nvrtcCompileProgram) _(nvrtcGetProgramLogSize) _(nvrtcGetProgramLog) \
  _(nvrtcGetCUBINSize) _(nvrtcGetCUBIN) _(nvrtcDestroyProgram) _(nvrtcGetErrorString) _(cuGetErrorString)   \
  _(cuCtxGetCurrent) _(cuDeviceGet) _(cuDeviceGetAttribute) _(cuModuleLoadData) _(cuModuleGetFunction)      \
  _(cuLaunchKernelEx)

// NVRTC and CUDA's driver by way of the library through which libtorch itself gets at them: neither is needed to start.
struct Driver {
#define STRUST_MEMBER(name) decltype(&::name) name;
  STRUST_SYMBOLS(STRUST_MEMBER)

  Driver() {
    std::string folder = folder_of(reinterpret_cast<void*>(&c10::cuda::device_count));
    void* library = dlopen((folder + "libcaffe2_nvrtc.so").c_str(), RTLD_NOW);
    if (!library) throw std::runtime_error(dlerror());
#define STRUST_FIND(name)                                                 \
  name = reinterpret_cast<decltype(name)>(dlsym(library, #name));         \
  if (!name) throw std::runtime_error(#name " was not found");
    STRUST_SYMBOLS(STRUST_FIND)
    // NVRTC looks for the other half of itself by name alone; it finds what is already there.
    int major = 0, minor = 0;
    nvrtcVersion(&major, &minor);
    std::string half = "libnvrtc-builtins.so." + std::to_string(major) + "." + std::to_string(minor);
    dlopen((folder_of(reinterpret_cast<void*>(nvrtcVersion)) + half).c_str(), RTLD_NOW);
  }
  static std::string folder_of(void* symbol) {
    Dl_info info;
    std::string path = dladdr(symbol, &info) ? info.dli_fname : "";
    return path.substr(0, path.rfind('/') + 1);
  }
  void check(CUresult result) const {
    const char* text = "unknown";
    if (result == CUDA_SUCCESS) return;
    cuGetErrorString(result, &text);
    throw std::runtime_error(std::string("CUDA: ") + text);
  }
};

const Driver& driver() {
  static const Driver driver;
  return driver;
}

// The kernels of one GPU.
struct Kernels {
  int processors, major;
  CUfunction functions[kKernels][kKinds];

  explicit Kernels(c10::DeviceIndex index) {
    const Driver& d = driver();
    CUdevice device;
    d.check(d.cuDeviceGet(&device, index));
    auto attribute = [&](CUdevice_attribute which) {
      int value = 0;
      d.check(d.cuDeviceGetAttribute(&value, which, device));
      return value;
    };
    processors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    int minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    if (major < 8) throw std::runtime_error("they need a GPU of compute capability 8.0");
    CUmodule module;
    d.check(d.cuModuleLoadData(&module, compile("sm_" + std::to_string(10 * major + minor)).data()));
    for (int kernel = 0; kernel < kKernels; kernel++) {
      for (int kind = 0; kind < kKinds; kind++) {
        std::string name = std::string(kNames[kernel]) + kSuffixes[kind];
        d.check(d.cuModuleGetFunction(&functions[kernel][kind], module, name.c_str()));
      }
    }
  }

  static std::vector<char> compile(const std::string& architecture) {
    const Driver& d = driver();
    nvrtcProgram program;
    std::string option = "--gpu-architecture=" + architecture;
    const char* options[] = {option.c_str(), "--std=c++17"};
    auto check = [&](nvrtcResult result) {
      if (result != NVRTC_SUCCESS) throw std::runtime_error(std::string("NVRTC: ") + d.nvrtcGetErrorString(result));
    };
    check(d.nvrtcCreateProgram(&program, kSource, "norm.cu", 0, nullptr, nullptr));
    nvrtcResult result = d.nvrtcCompileProgram(program, 2, options);
    size_t size = 0;
    std::vector<char> code;
    if (result == NVRTC_SUCCESS) {
      check(d.nvrtcGetCUBINSize(program, &size));
      code.resize(size);
      check(d.nvrtcGetCUBIN(program, code.data()));
    } else if (d.nvrtcGetProgramLogSize(program, &size) == NVRTC_SUCCESS) {
      code.resize(size + 1);
      d.nvrtcGetProgramLog(program, code.data());
    }
    d.nvrtcDestroyProgram(&program);
    if (result != NVRTC_SUCCESS) throw std::runtime_error(std::string("NVRTC: ") + code.data());
    return code;
  }
};

// Those of the current GPU; compiled once for each.
const Kernels& kernels() {
  static std::mutex alone;
  static std::array<std::optional<Kernels>, 64> of_gpu;
  c10::DeviceIndex index = c10::cuda::current_device();
  CUcontext context = nullptr;
  driver().check(driver().cuCtxGetCurrent(&context));
  // A thread may have come here without a call that would have made it current.
  if (!context) c10::cuda::set_device(index, true);
  std::lock_guard<std::mutex> held(alone);
  auto& found = of_gpu.at(index);
  if (!found) found.emplace(index);
  return *found;
}

template <class... A>
void launch(Kernel kernel, Kind kind, int blocks, int groups, A... arguments) {
  const Kernels& k = kernels();
  void* pointers[] = {&arguments...};
  CUlaunchAttribute early{};
  early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  early.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config{};
  config.gridDimX = blocks, config.gridDimY = groups, config.gridDimZ = 1;
  config.blockDimX = kThreads, config.blockDimY = config.blockDimZ = 1;
  config.hStream = c10::cuda::getCurrentCUDAStream();
  config.attrs = &early;
  // The second kernel of a pass waits for the first by itself.
  config.numAttrs = k.major >= 9 && (kernel == kForward || kernel == kBackward);
  driver().check(driver().cuLaunchKernelEx(&config, k.functions[kernel][kind], pointers, nullptr));
}

bool aligned(const Tensor& t) { return reinterpret_cast<uintptr_t>(t.const_data_ptr()) % 16 == 0; }
void* at_or_null(const Tensor& t) { return t.defined() ? t.data_ptr() : nullptr; }

// Whether a tensor is one for these kernels, its memory apart.
bool fits(const Tensor& x) {
  bool kind = x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16;
  // They count in 32 bits.
  return x.is_cuda() && x.dim() == 4 && kind && x.numel() > 0 && x.numel() < (1LL << 31) && x.size(1) % 4 == 0;
}

Kind kind_for(const Tensor& x, int64_t divisible) {
  return x.scalar_type() == at::kFloat ? kF4 : divisible % 8 == 0 ? kB8 : kB4;
}

// As in norm.cu.
struct Shape {
  int rows, q, group;
};

// How the work on a tensor is divided.
struct Division {
  Kind kind;
  Shape shape;
  int blocks, groups;

  explicit Division(const Tensor& x) : kind(kind_for(x, x.size(1))) {
    int q = static_cast<int>(x.size(1)) / numbers(kind);
    shape = {static_cast<int>(x.numel() / x.size(1)), q, q % 4 == 0 ? 2 : q % 2 == 0 ? 1 : 0};
    groups = q >> shape.group;
    int64_t step = kThreads >> shape.group, most = (shape.rows + step - 1) / step;
    // One block a processor: more would only be more sums to add.
    blocks = static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(most, kernels().processors / groups)));
  }
  // Room for the blocks' sums.
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
  launch(kStatistics, d.kind, d.blocks, d.groups, x.data_ptr(), parts.data_ptr(), d.shape);
  launch(kForward, d.kind, d.blocks, d.groups, x.data_ptr(), at_or_null(other), parts.data_ptr(), d.blocks,
         weight.data_ptr(), bias.data_ptr(), settings.running_mean.data_ptr(), settings.running_variance.data_ptr(),
         mean, mean + x.size(1), y.data_ptr(), d.shape, static_cast<float>(settings.momentum),
         static_cast<float>(settings.epsilon));
  return {y, kept};
}

// The gradient as the kernels read it.
Tensor as_stored(const Tensor& gradient, const Tensor& x) {
  if (!gradient.defined()) return gradient;
  Tensor stored = gradient.to(x.scalar_type()).contiguous(kLast);
  return aligned(stored) ? stored : stored.clone(kLast);
}

void once_only() {
  TORCH_CHECK(!at::GradMode::is_enabled(), "fused kernels cannot be differentiated twice");
}

struct NormRelu : torch::autograd::Function<NormRelu> {
  static variable_list forward(AutogradContext* ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                               const std::optional<Tensor>& other, const Settings& settings, bool twice) {
    auto [y, kept] = ::forward(x, weight, bias, other.value_or(Tensor()), settings);
    ctx->set_materialize_grads(false);
    ctx->save_for_backward({x, weight, bias, kept, other ? y : Tensor()});
    // A second handle to the same numbers has a gradient of its own, and the sum of the two is made where it is read.
    return twice ? variable_list{y, y.variable_data()} : variable_list{y};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    once_only();
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
    launch(kBackwardSums, d.kind, d.blocks, d.groups, dy.data_ptr(), at_or_null(dy2), x.data_ptr(), at_or_null(y), mean,
           inverse, weight.data_ptr(), bias.data_ptr(), at_or_null(g), parts.data_ptr(), d.shape);
    if (g.defined()) dy = g, dy2 = Tensor();
    launch(kBackward, d.kind, d.blocks, d.groups, dy.data_ptr(), at_or_null(dy2), x.data_ptr(), parts.data_ptr(),
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
    launch(kernel, kind, (count + kThreads - 1) / kThreads, 1, from.data_ptr(), to.data_ptr(),
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
    once_only();
    int64_t pad = ctx->saved_data["pad"].toInt();
    Tensor dy = as_stored(gradients[0], gradients[0]);
    auto sizes = dy.sizes();
    Tensor dx = at::empty({sizes[0], sizes[1] - 2 * pad, 2 * sizes[2], 2 * sizes[3]}, dy.options(), kLast);
    run(kHalveBack, dy, dx, dy, pad);
    return {dx, Tensor()};
  }
};

enum Outcome { kDone, kFailed, kNotForThis, kUnavailable };

// Whether the kernels can be used on the tensor's device; why not is said once.
Outcome available(const Tensor& x, char* why, size_t room) {
  static std::atomic<bool> failed{false};
  if (failed) return kNotForThis;
  auto look = [&] {
    c10::DeviceGuard guard(x.device());
    kernels();
  };
  if (attempt(why, room, look) == 0) return kDone;
  return failed.exchange(true) ? kNotForThis : kUnavailable;
}

bool is_row(const Tensor& t, const Tensor& x) {
  return t.scalar_type() == at::kFloat && t.device() == x.device() && t.dim() == 1 && t.size(0) == x.size(1) &&
         t.is_contiguous();
}
}  // namespace

extern "C" {
// `rows` are weight, bias, running mean and running variance; `other` may be null. One handle to the result, or two.
int strust_norm_relu(const Tensor* x, const Tensor* const* rows, const Tensor* other, double momentum, double epsilon,
                     bool twice, Tensor** out, char* why, size_t room) {
  int outcome = kNotForThis;
  int failed = attempt(why, room, [&] {
    bool ours = fits(*x) && x->is_contiguous(kLast) && aligned(*x) && x->numel() > x->size(1);
    for (int i = 0; i < 4; i++) ours = ours && is_row(*rows[i], *x);
    ours = ours && (!other || (other->sizes() == x->sizes() && other->device() == x->device()));
    outcome = ours ? available(*x, why, room) : kNotForThis;
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
    bool ours = fits(*x) && x->is_contiguous(kLast) && aligned(*x) && pad % 4 == 0 && x->size(2) % 2 == 0 &&
                x->size(3) % 2 == 0;
    outcome = ours ? available(*x, why, room) : kNotForThis;
    if (outcome == kDone) *out = new Tensor(Halve::apply(*x, pad));
  });
  return failed ? kFailed : outcome;
}
}
