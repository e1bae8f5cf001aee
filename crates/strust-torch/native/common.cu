R"CUDA(
// The common part of the kernel programs; it is compiled before each of them.

// Two numbers rounded to bfloat16.
__device__ unsigned two(float low, float high) {
  unsigned both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

// From Hopper on, a kernel may start while the kernel before it still runs. It must wait before it writes, and before
// it reads what that kernel writes. After the wait all earlier kernels are done too, because each of them waited before
// it allowed the next one to start. Pointers to memory that the previous kernel may have written are not __restrict__,
// because the compiler could then read it too early.
__device__ void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ void allow_next_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}
)CUDA"
