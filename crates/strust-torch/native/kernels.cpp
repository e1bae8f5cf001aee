#include "kernels.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAFunctions.h>
#include <dlfcn.h>
#include <nvrtc.h>

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace strust {
namespace {
#define STRUST_SYMBOLS(_)                                                                                   \
  _(nvrtcVersion) _(nvrtcCreateProgram) _(nvrtcCompileProgram) _(nvrtcGetProgramLogSize) _(nvrtcGetProgramLog) \
  _(nvrtcGetCUBINSize) _(nvrtcGetCUBIN) _(nvrtcDestroyProgram) _(nvrtcGetErrorString) _(cuGetErrorString)   \
  _(cuCtxGetCurrent) _(cuDeviceGet) _(cuDeviceGetAttribute) _(cuModuleLoadData) _(cuModuleGetFunction)      \
  _(cuFuncGetAttribute) _(cuFuncSetAttribute) _(cuLaunchKernelEx)

// NVRTC and CUDA's driver, loaded from the library that libtorch itself loads them from. The program starts without
// them.
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
    // NVRTC finds its second library by name only, without a path. It finds it if it is already loaded.
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
    throw std::runtime_error(std::string("CUDA error: ") + text);
  }
};

const Driver& driver() {
  static const Driver driver;
  return driver;
}

std::vector<char> compile(const char* file, const char* source, const std::string& options) {
  const Driver& d = driver();
  std::string architecture = "sm_" + std::to_string(10 * gpu().major + gpu().minor);
  std::istringstream words("--std=c++17 --gpu-architecture=" + architecture + " " + options);
  std::vector<std::string> all;
  std::vector<const char*> pointers;
  for (std::string word; words >> word;) all.push_back(word);
  for (const auto& word : all) pointers.push_back(word.c_str());
  auto check = [&](nvrtcResult result) {
    if (result != NVRTC_SUCCESS) throw std::runtime_error(std::string("NVRTC: ") + d.nvrtcGetErrorString(result));
  };
  nvrtcProgram program;
  check(d.nvrtcCreateProgram(&program, source, file, 0, nullptr, nullptr));
  nvrtcResult result = d.nvrtcCompileProgram(program, static_cast<int>(pointers.size()), pointers.data());
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

Gpu query_gpu(c10::DeviceIndex index) {
  const Driver& d = driver();
  CUdevice device;
  d.check(d.cuDeviceGet(&device, index));
  auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    d.check(d.cuDeviceGetAttribute(&value, which, device));
    return value;
  };
  Gpu found{attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
            attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)};
  if (found.major < 8) throw std::runtime_error("they need a GPU of compute capability 8.0");
  return found;
}
}  // namespace

const Gpu& gpu() {
  static std::mutex alone;
  static std::array<std::optional<Gpu>, 64> of_index;
  c10::DeviceIndex index = c10::cuda::current_device();
  CUcontext context = nullptr;
  driver().check(driver().cuCtxGetCurrent(&context));
  // The thread may have no current context yet.
  if (!context) c10::cuda::set_device(index, true);
  std::lock_guard<std::mutex> held(alone);
  auto& found = of_index.at(index);
  if (!found) found = query_gpu(index);
  return *found;
}

CUfunction kernel(const char* file, const char* source, const std::string& options, const std::string& name) {
  static std::mutex alone;
  static std::map<std::string, CUmodule> modules;
  static std::map<std::string, CUfunction> functions;
  const Driver& d = driver();
  gpu();
  std::string program = std::to_string(c10::cuda::current_device()) + " " + file + " " + options;
  std::lock_guard<std::mutex> held(alone);
  auto known = functions.find(program + " " + name);
  if (known != functions.end()) return known->second;
  auto module = modules.find(program);
  if (module == modules.end()) {
    CUmodule loaded;
    d.check(d.cuModuleLoadData(&loaded, compile(file, source, options).data()));
    module = modules.emplace(program, loaded).first;
  }
  CUfunction function;
  int fixed = 0;
  d.check(d.cuModuleGetFunction(&function, module->second, name.c_str()));
  d.check(d.cuFuncGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
  d.check(d.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, gpu().shared - fixed));
  functions.emplace(program + " " + name, function);
  return function;
}

void launch(CUfunction kernel, const Grid& grid, void** arguments) {
  CUlaunchAttribute early{};
  early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  early.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config{};
  config.gridDimX = grid.blocks, config.gridDimY = grid.groups, config.gridDimZ = 1;
  config.blockDimX = grid.threads, config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = grid.shared;
  config.hStream = c10::cuda::getCurrentCUDAStream();
  config.attrs = &early;
  config.numAttrs = grid.early && gpu().major >= 9;
  driver().check(driver().cuLaunchKernelEx(&config, kernel, arguments, nullptr));
}

Outcome available(const at::Tensor& x, char* why, size_t room, const std::function<void()>& need) {
  static std::array<std::atomic<bool>, 64> failed{};
  auto& here = failed.at(x.device().index());
  if (here) return kNotForThis;
  auto ask = [&] {
    c10::DeviceGuard guard(x.device());
    need();
  };
  if (attempt(why, room, ask) == 0) return kDone;
  // Full memory is not the fault of the kernels, so it is reported as an error.
  if (std::strstr(why, "out of memory")) throw std::runtime_error(why);
  return here.exchange(true) ? kNotForThis : kUnavailable;
}

bool aligned(const at::Tensor& t) { return reinterpret_cast<uintptr_t>(t.const_data_ptr()) % 16 == 0; }

bool fits(const at::Tensor& x) {
  bool kind = x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16;
  // The kernels use 32-bit indices.
  bool size = x.dim() == 4 && x.numel() > 0 && x.numel() < (1LL << 31);
  return x.is_cuda() && kind && size && x.is_contiguous(kLast) && aligned(x);
}

at::Tensor as_stored(const at::Tensor& gradient, const at::Tensor& x) {
  if (!gradient.defined()) return gradient;
  at::Tensor stored = gradient.to(x.scalar_type()).contiguous(kLast);
  return aligned(stored) ? stored : stored.clone(kLast);
}

void forbid_double_backward() {
  TORCH_CHECK(!at::GradMode::is_enabled(), "fused kernels cannot be differentiated twice");
}
}  // namespace strust
