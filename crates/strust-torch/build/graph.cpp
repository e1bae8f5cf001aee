// What tch does not bind: CUDA graphs, streams, and switches of libtorch. No exception leaves this file: a function that
// can fail writes what was wrong to `why` and gives 1.
#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdio>
#include <exception>
#include <memory>

namespace allocator = c10::cuda::CUDACachingAllocator;

namespace {
struct Graph {
  explicit Graph(int device) : device(static_cast<c10::DeviceIndex>(device)) {}
  at::cuda::CUDAGraph graph;
  at::cuda::MempoolId_t pool = at::cuda::graph_pool_handle();
  c10::DeviceIndex device;
};

template <class F>
int attempt(char* why, size_t room, F f) {
  try {
    f();
    return 0;
  } catch (const std::exception& e) {
    std::snprintf(why, room, "%s", e.what());
  } catch (...) {
    std::snprintf(why, room, "an unknown exception");
  }
  return 1;
}
}  // namespace

extern "C" {
// Whether this thread's work goes to another stream than the default one.
bool strust_has_stream(int device) {
  bool own = false;
  char unused[1];
  attempt(unused, 0, [&] {
    auto index = static_cast<c10::DeviceIndex>(device);
    own = c10::cuda::getCurrentCUDAStream(index) != c10::cuda::getDefaultCUDAStream(index);
  });
  return own;
}

// This thread's work goes to a stream of its own, as a capture needs it, or back to the default stream.
int strust_use_stream(int device, bool own, char* why, size_t room) {
  return attempt(why, room, [&] {
    auto index = static_cast<c10::DeviceIndex>(device);
    c10::cuda::device_synchronize();
    c10::cuda::setCurrentCUDAStream(own ? c10::cuda::getStreamFromPool(false, index)
                                        : c10::cuda::getDefaultCUDAStream(index));
  });
}

int strust_capture_begin(int device, Graph** out, char* why, size_t room) {
  *out = nullptr;
  return attempt(why, room, [&] {
    c10::cuda::device_synchronize();
    // What the steps before have left free is of no use to the graph, which has a pool of its own.
    allocator::emptyCache();
    auto made = std::make_unique<Graph>(device);
    // Other threads may go on with what is not to be captured.
    made->graph.capture_begin(made->pool, cudaStreamCaptureModeThreadLocal);
    *out = made.release();
  });
}

int strust_capture_end(Graph* graph, char* why, size_t room) {
  int failed = attempt(why, room, [&] { graph->graph.capture_end(); });
  if (failed) {
    // The error has left the allocator in the middle of a capture.
    char unused[1];
    attempt(unused, 0, [&] { allocator::endAllocateToPool(graph->device, graph->pool); });
    // And the random generator, which a copy of it is not.
    attempt(unused, 0, [&] {
      auto generator = at::cuda::detail::getDefaultCUDAGenerator(graph->device);
      generator.graphsafe_set_state(generator.clone());
    });
  }
  return failed;
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

void strust_autocast_to_bf16() { at::autocast::set_autocast_dtype(at::kCUDA, at::kBFloat16); }

// Makes an operation that would wait for the device an error.
void strust_forbid_waiting(bool on) {
  using c10::cuda::SyncDebugMode;
  c10::cuda::warning_state().set_sync_debug_mode(on ? SyncDebugMode::L_ERROR : SyncDebugMode::L_DISABLED);
}

// The most bytes in tensors, and got from the driver, since the last call.
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
}
