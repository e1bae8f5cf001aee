/* Uses a symbol of libtorch_cuda.so, so that the linker keeps the library; see build.rs. The symbol is
   at::cuda::warp_size(). A constructor uses it, because a linker that removes unused sections keeps constructors. */
extern int _ZN2at4cuda9warp_sizeEv(void);

static int (*volatile used)(void);

__attribute__((constructor)) static void keep_libtorch_cuda(void) { used = _ZN2at4cuda9warp_sizeEv; }
