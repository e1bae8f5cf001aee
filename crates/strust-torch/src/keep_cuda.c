/* Makes libtorch_cuda.so needed, see build.rs. The symbol is at::cuda::warp_size(). */
extern int _ZN2at4cuda9warp_sizeEv(void);
int (*const strust_keeps_libtorch_cuda)(void) = _ZN2at4cuda9warp_sizeEv;
