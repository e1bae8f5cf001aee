// Functions that tch does not bind: CUDA graphs, streams, settings of libtorch, and its profiler.
#include "attempt.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <kineto/ActivityType.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <utility>

namespace allocator = c10::cuda::CUDACachingAllocator;

namespace {
struct Graph {
  explicit Graph(int device) : device(static_cast<c10::DeviceIndex>(device)) {}
  at::cuda::CUDAGraph graph;
  at::cuda::MempoolId_t pool = at::cuda::graph_pool_handle();
  c10::DeviceIndex device;
};

c10::Device gpu(int device) { return {at::kCUDA, static_cast<c10::DeviceIndex>(device)}; }

// libtorch returns its 32 streams in turn, even if a thread still uses one.
c10::cuda::CUDAStream unused_stream(c10::DeviceIndex index, const std::unordered_set<c10::cuda::CUDAStream>& used) {
  for (int i = 0; i < 32; i++) {
    auto stream = c10::cuda::getStreamFromPool(false, index);
    if (!used.count(stream)) return stream;
  }
  throw std::runtime_error("all 32 streams of the GPU are in use");
}

// After an error at the begin or end of a capture, the allocators and the random generator are still in capture mode.
// This function ends that mode. If libtorch has already ended a part, it releases that part with the graph; ending it
// again throws, so that nothing is released twice.
void abandon(const Graph& graph) {
  char unused[1];
  attempt(unused, 0, [&] {
    allocator::endAllocateToPool(graph.device, graph.pool);
    allocator::releasePool(graph.device, graph.pool);
  });
  attempt(unused, 0, [&] {
    at::HostAllocator* host = at::getHostAllocator(at::kCUDA);
    host->end_allocate_to_pool(graph.pool);
    host->release_pool(graph.pool);
  });
  attempt(unused, 0, [&] {
    at::Generator generator = at::cuda::detail::getDefaultCUDAGenerator(graph.device);
    std::lock_guard<std::mutex> held(generator.mutex());
    generator.graphsafe_set_state(generator.clone());
  });
}
}  // namespace

extern "C" {
// Whether this thread uses another stream than the default stream.
bool strust_has_stream(int device) {
  bool own = false;
  char unused[1];
  attempt(unused, 0, [&] {
    auto index = static_cast<c10::DeviceIndex>(device);
    own = c10::cuda::getCurrentCUDAStream(index) != c10::cuda::getDefaultCUDAStream(index);
  });
  return own;
}

// Switches this thread to its own stream, which a capture needs, or back to the default stream.
int strust_use_stream(int device, bool own, char* why, size_t room) {
  static std::mutex alone;
  static std::unordered_set<c10::cuda::CUDAStream> used;
  return attempt(why, room, [&] {
    auto index = static_cast<c10::DeviceIndex>(device);
    c10::DeviceGuard guard(gpu(index));
    c10::cuda::device_synchronize();
    std::lock_guard<std::mutex> held(alone);
    if (own) {
      auto stream = unused_stream(index, used);
      used.insert(stream);
      c10::cuda::setCurrentCUDAStream(stream);
    } else {
      used.erase(c10::cuda::getCurrentCUDAStream(index));
      c10::cuda::setCurrentCUDAStream(c10::cuda::getDefaultCUDAStream(index));
    }
  });
}

int strust_capture_begin(int device, Graph** out, char* why, size_t room) {
  *out = nullptr;
  return attempt(why, room, [&] {
    // libtorch captures the stream of the current GPU.
    c10::DeviceGuard guard(gpu(device));
    c10::cuda::device_synchronize();
    // The graph has its own memory pool, so it cannot use the free memory of earlier steps.
    allocator::emptyCache();
    auto made = std::make_unique<Graph>(device);
    try {
      // Other threads may launch work that is not captured.
      made->graph.capture_begin(made->pool, cudaStreamCaptureModeThreadLocal);
    } catch (...) {
      abandon(*made);
      throw;
    }
    *out = made.release();
  });
}

int strust_capture_end(Graph* graph, char* why, size_t room) {
  return attempt(why, room, [&] {
    c10::DeviceGuard guard(gpu(graph->device));
    try {
      graph->graph.capture_end();
    } catch (...) {
      abandon(*graph);
      throw;
    }
  });
}

int strust_replay(Graph* graph, char* why, size_t room) {
  return attempt(why, room, [&] { graph->graph.replay(); });
}

void strust_graph_free(Graph* graph) {
  char unused[1];
  attempt(unused, 0, [&] { delete graph; });
}

void strust_tf32(bool on) {
  at::globalContext().setAllowTF32CuDNN(on);
  at::globalContext().setAllowTF32CuBLAS(on);
}

// Turns bfloat16 on for GPUs. Returns whether it was on before; pass that to strust_bf16_end.
bool strust_bf16_begin() {
  bool before = at::autocast::is_autocast_enabled(at::kCUDA);
  at::autocast::set_autocast_dtype(at::kCUDA, at::kBFloat16);
  at::autocast::set_autocast_enabled(at::kCUDA, true);
  at::autocast::increment_nesting();
  return before;
}
void strust_bf16_end(bool before) {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCUDA, before);
}

// A copy in pinned memory, which a GPU can read without the host.
int strust_pinned(const at::Tensor* tensor, at::Tensor** out, char* why, size_t room) {
  return attempt(why, room, [&] { *out = new at::Tensor(tensor->pin_memory()); });
}

// Turns every operation that would wait for the device into an error.
void strust_forbid_waiting(bool on) {
  using c10::cuda::SyncDebugMode;
  c10::cuda::warning_state().set_sync_debug_mode(on ? SyncDebugMode::L_ERROR : SyncDebugMode::L_DISABLED);
}

// The peak of bytes in tensors, and of bytes allocated from the driver, since the last call.
void strust_peak_memory(int device, int64_t* in_tensors, int64_t* reserved) {
  *in_tensors = *reserved = 0;
  char unused[1];
  attempt(unused, 0, [&] {
    auto index = static_cast<c10::DeviceIndex>(device);
    auto stats = allocator::getDeviceStats(index);
    *in_tensors = stats.allocated_bytes[0].peak;
    *reserved = stats.reserved_bytes[0].peak;
    allocator::resetPeakStats(index);
  });
}

int strust_profile_begin(char* why, size_t room) {
  return attempt(why, room, [&] {
    namespace profiler = torch::profiler::impl;
    profiler::ProfilerConfig config(profiler::ProfilerState::KINETO);
    std::set<profiler::ActivityType> activities{profiler::ActivityType::CPU, profiler::ActivityType::CUDA};
    torch::autograd::profiler::prepareProfiler(config, activities);
    torch::autograd::profiler::enableProfiler(config, activities);
  });
}

// Calls `row` with each name, its count and its nanoseconds: the kernels and copies of the GPU, and the CUDA functions
// that the host called. If `file` is given, the whole trace is written to it, for chrome://tracing.
int strust_profile_end(const char* file, void* to,
                       void (*row)(void* to, bool on_gpu, const char* name, uint64_t count, uint64_t nanoseconds),
                       char* why, size_t room) {
  char unused[1];
  attempt(unused, 0, [] {
    for (c10::DeviceIndex index = 0; index < c10::cuda::device_count(); index++) {
      if (!c10::cuda::hasPrimaryContext(index)) continue;
      c10::DeviceGuard guard(gpu(index));
      c10::cuda::device_synchronize();
    }
  });
  return attempt(why, room, [&] {
    auto result = torch::autograd::profiler::disableProfiler();
    std::map<std::pair<bool, std::string>, std::pair<uint64_t, uint64_t>> sums;
    for (const auto& event : result->events()) {
      auto type = static_cast<libkineto::ActivityType>(event.activityType());
      using libkineto::ActivityType;
      bool gpu = type == ActivityType::CONCURRENT_KERNEL || type == ActivityType::GPU_MEMCPY ||
                 type == ActivityType::GPU_MEMSET;
      if (!gpu && type != ActivityType::CUDA_RUNTIME && type != ActivityType::CUDA_DRIVER) continue;
      auto& [count, nanoseconds] = sums[{gpu, event.name()}];
      count++;
      nanoseconds += event.durationNs();
    }
    for (const auto& [of, sum] : sums) row(to, of.first, of.second.c_str(), sum.first, sum.second);
    if (file) result->save(file);
  });
}
}
