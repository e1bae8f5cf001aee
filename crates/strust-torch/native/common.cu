R"CUDA(
// What stands before each of the programs.

// Two numbers rounded to bfloat16.
__device__ unsigned two(float low, float high) {
  unsigned both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

// From Hopper on a kernel may start while the one before it still runs; before it writes, or reads what that one writes, it
// waits. By then everything before is done as well, as that one has waited too before it let this one start. Pointers to what
// the kernel just before may have written are not __restrict__, or it could be read too early.
__device__ void wait_for_the_one_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ void let_the_next_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}
)CUDA"
