/* Makes libtorch_cuda.so needed, see build.rs. The symbol is at::cuda::warp_size(); a constructor uses it because a
   linker that collects unused sections keeps constructors. */
extern int _ZN2at4cuda9warp_sizeEv(void);

static int (*volatile used)(void);

__attribute__((constructor)) static void keep_libtorch_cuda(void) { used = _ZN2at4cuda9warp_sizeEv; }
