R"CUDA(
// Convolutions with 3×3 weights, a border of one zero, and few channels, for tensors in channels-last order. A general
// library pads 16 or 32 channels to its tile size. The tensor cores multiply in TF32 or bfloat16 and add in single
// precision.
//
// Every sum is added in one fixed order, so the same numbers give the same bits.

#define THREADS 256
#define ROW_THREADS 384

// How the output is divided: a tile has 2^columns by 2^rows pixels of 2^images images.
struct Tiles {
  int n, height, width;            // of the output
  int in_height, in_width;         // of the input
  int inputs, outputs;             // channels
  int images, rows, columns;       // binary logarithms
  int stride;                      // input pixels per output pixel
  int dilation;                    // output pixels per input pixel; all but the first count as zero
};

// Numbers in the shared memory have 4 or 2 bytes. A step of the tensor cores takes 32 bytes of each row.
struct Tf32 {
  typedef float Stored;
  enum { SIZE = 4, ROUNDS = true };
  static __device__ unsigned round(float x) {
    unsigned r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
    return r;
  }
  // Packs numbers into 16 bytes for the shared memory.
  static __device__ uint4 pack(const float (&v)[4]) {
    return make_uint4(round(v[0]), round(v[1]), round(v[2]), round(v[3]));
  }
  static __device__ uint4 round(const uint4& r) {
    return make_uint4(round(__uint_as_float(r.x)), round(__uint_as_float(r.y)), round(__uint_as_float(r.z)),
                      round(__uint_as_float(r.w)));
  }
  static __device__ float number(float x) { return x; }
  static __device__ void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned* b) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
  // Stores N adjacent numbers. N is a multiple of 4.
  template <int N>
  static __device__ void store(float* to, const float (&v)[N]) {
#pragma unroll
    for (int i = 0; i < N; i += 4) *(float4*)(to + i) = make_float4(v[i], v[i + 1], v[i + 2], v[i + 3]);
  }
};

struct Bf16 {
  typedef unsigned short Stored;
  enum { SIZE = 2, ROUNDS = false };
  static __device__ uint4 pack(const float (&v)[8]) {
    return make_uint4(two(v[0], v[1]), two(v[2], v[3]), two(v[4], v[5]), two(v[6], v[7]));
  }
  static __device__ float number(unsigned short x) { return __uint_as_float((unsigned)x << 16); }
  static __device__ void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned* b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
  template <int N>
  static __device__ void store(unsigned short* to, const float (&v)[N]) {
#pragma unroll
    for (int i = 0; i < N; i += 4) *(uint2*)(to + i) = make_uint2(two(v[i], v[i + 1]), two(v[i + 2], v[i + 3]));
  }
};

extern __shared__ __align__(16) unsigned char room[];

__device__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void load_matrices(unsigned* r, unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address));
}
__device__ void load_transposed(unsigned* r, unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address));
}

// The place of a tile, and the part of the input that it needs.
struct Place {
  int image, row, column;      // the first ones of the output
  int in_rows, in_columns;     // of the input, with the border
  __device__ Place(const Tiles& t, int tile) {
    int across = t.width >> t.columns, down = t.height >> t.rows;
    column = tile % across << t.columns;
    row = tile / across % down << t.rows;
    image = tile / across / down << t.images;
    in_rows = t.stride * ((1 << t.rows) - 1) + 3;
    in_columns = t.stride * ((1 << t.columns) - 1) + 3;
  }
  // The index of the first input pixel for an output pixel. Both indices are within the tile.
  __device__ int under(const Tiles& t, int pixel) const {
    int x = pixel & ((1 << t.columns) - 1), y = (pixel >> t.columns) & ((1 << t.rows) - 1);
    int image = pixel >> (t.columns + t.rows);
    return ((image * in_rows) + y * t.stride) * in_columns + x * t.stride;
  }
};

// a/b from 1/b. It is exact for the small numbers here.
__device__ int quotient(int a, float inverse) { return (int)(((float)a + 0.5f) * inverse); }

// Copies 16 bytes, or zeros, to the shared memory without a register. They have arrived after `arrived`.
__device__ void fetch(void* to, const void* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(inside ? 16 : 0));
}
__device__ void arrived() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// Copies C channels, starting at `first`, of the pixels that a tile needs to the shared memory. Pixels are PITCH bytes
// apart. If the input has 3 channels, the rest up to C is zero.
template <class T, int C, int PITCH, int COUNT>
__device__ void stage(unsigned char* to, const typename T::Stored* x, const Tiles& t, const Place& at, int first) {
  const int Q = C * T::SIZE / 16, E = 16 / T::SIZE;
  int pixels = at.in_rows * at.in_columns << t.images;
  int y0 = at.row * t.stride - 1, x0 = at.column * t.stride - 1;
  int height = t.in_height * t.dilation, width = t.in_width * t.dilation;
  float rows = __frcp_rn((float)at.in_rows), columns = __frcp_rn((float)at.in_columns);
#pragma unroll 2
  for (int i = threadIdx.x; i < pixels * Q; i += COUNT) {
    int pixel = i / Q, q = i % Q;
    int line = quotient(pixel, columns), image = quotient(line, rows);
    int v = y0 + line - image * at.in_rows, u = x0 + pixel - line * at.in_columns;
    image += at.image;
    bool inside = v >= 0 && v < height && u >= 0 && u < width && image < t.n;
    if (t.dilation == 2) {
      inside = inside && v % 2 == 0 && u % 2 == 0;
      v /= 2, u /= 2;
    }
    const typename T::Stored* from = x + (inside ? ((image * t.in_height + v) * t.in_width + u) * t.inputs : 0);
    unsigned char* there = to + pixel * PITCH + q * 16;
    if (t.inputs != 3) {
      fetch(there, from + first + q * E, inside);
    } else {
      float numbers[E] = {};
      if (inside && q == 0)
        numbers[0] = T::number(from[0]), numbers[1] = T::number(from[1]), numbers[2] = T::number(from[2]);
      *(uint4*)there = T::pack(numbers);
    }
  }
}

// Rounds the numbers that this thread has fetched, of `rows` rows of C numbers.
template <class T, int C, int PITCH, int COUNT>
__device__ void round_fetched(unsigned char* at, int rows) {
  const int Q = C * T::SIZE / 16;
  if constexpr (T::ROUNDS)
    for (int i = threadIdx.x; i < rows * Q; i += COUNT) {
      uint4* r = (uint4*)(at + i / Q * PITCH + i % Q * 16);
      *r = T::round(*r);
    }
}

// Copies the weights of K outputs from `k0` and C inputs from `c0`: a row of C numbers for each tap and output.
// `weight` is outputs × 9 × inputs. If it is rotated, for the gradient, it is inputs × 9 × outputs with the taps in
// reverse order. The order of the outputs is such that each thread holds outputs that are adjacent in memory.
template <class T, int C, int K, int PITCH>
__device__ void stage_weights(unsigned char* to, const float* weight, const Tiles& t, int k0, int c0, bool rotated) {
  const int Q = C * T::SIZE / 16, E = 16 / T::SIZE, N = K / 8;
#pragma unroll 4
  for (int i = threadIdx.x; i < 9 * K * Q; i += THREADS) {
    int k, q, tap;
    __align__(16) float v[E];
    if (rotated) {
      k = i % K, q = i / K % Q, tap = i / K / Q;
      const float* from = weight + ((c0 + q * E) * 9 + 8 - tap) * t.outputs + k0 + k;
#pragma unroll
      for (int e = 0; e < E; e++) v[e] = from[e * 9 * t.outputs];
    } else {
      q = i % Q, tap = i / Q % 9, k = i / Q / 9;
      const float* from = weight + ((k0 + k) * 9 + tap) * t.inputs + c0 + q * E;
#pragma unroll
      for (int e = 0; e < E; e += 4)
        if (t.inputs != 3)
          *(float4*)(v + e) = *(const float4*)(from + e);
        else
          for (int i = e; i < e + 4; i++) v[i] = q * E + i < 3 ? from[i] : 0;
    }
    int row = tap * K + k % (2 * N) / 2 * 8 + k / (2 * N) * 2 + k % 2;
    *(uint4*)(to + row * PITCH + q * 16) = T::pack(v);
  }
}

// y = x ⋆ w for K outputs from blockIdx.y·K, C inputs at a time. A warp has M times 16 pixels.
template <class T, int C, int K, int M>
__device__ void convolve(const typename T::Stored* x, const float* weight, typename T::Stored* y, const Tiles& t,
                         bool rotated) {
  const int PITCH = C * T::SIZE + 16, N = K / 8;
  Place at(t, blockIdx.x);
  int k0 = blockIdx.y * K, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned char *weights = room, *pixels = room + 9 * K * PITCH;
  unsigned from[M], by = shared_address(weights) + ((lane & 7) + (lane >> 4) * 8) * PITCH + (lane >> 3 & 1) * 16;
#pragma unroll
  for (int m = 0; m < M; m++)
    from[m] = shared_address(pixels) + at.under(t, (warp * M + m) * 16 + lane % 16) * PITCH + (lane >> 4) * 16;
  float sums[M][N][4] = {};
  wait_for_previous_kernel();
  for (int c0 = 0; c0 < t.inputs; c0 += C) {
    if (c0) __syncthreads();
    stage<T, C, PITCH, THREADS>(pixels, x, t, at, c0);
    stage_weights<T, C, K, PITCH>(weights, weight, t, k0, c0, rotated);
    arrived();
    round_fetched<T, C, PITCH, THREADS>(pixels, at.in_rows * at.in_columns << t.images);
    __syncthreads();
    allow_next_kernel();
#pragma unroll 1
    for (int v = 0; v < 3; v++) {
#pragma unroll
      for (int u = 0; u < 3; u++) {
#pragma unroll
        for (int step = 0; step < C * T::SIZE / 32; step++) {
          unsigned a[M][4], b[N][2];
#pragma unroll
          for (int n = 0; n < N; n += 2) load_matrices(b[n], by + ((v * 3 + u) * K + n * 8) * PITCH + step * 32);
#pragma unroll
          for (int m = 0; m < M; m++) load_matrices(a[m], from[m] + (v * at.in_columns + u) * PITCH + step * 32);
#pragma unroll
          for (int m = 0; m < M; m++)
#pragma unroll
            for (int n = 0; n < N; n++) T::multiply(sums[m][n], a[m], b[n]);
        }
      }
    }
  }
#pragma unroll
  for (int m = 0; m < M; m++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      int pixel = (warp * M + m) * 16 + half * 8 + lane / 4;
      int image = at.image + (pixel >> (t.columns + t.rows));
      int row = at.row + (pixel >> t.columns & ((1 << t.rows) - 1)), column = at.column + (pixel & ((1 << t.columns) - 1));
      float v[2 * N];
#pragma unroll
      for (int n = 0; n < N; n++) v[2 * n] = sums[m][n][2 * half], v[2 * n + 1] = sums[m][n][2 * half + 1];
      if (image < t.n)
        T::store(y + ((image * t.height + row) * t.width + column) * t.outputs + k0 + lane % 4 * 2 * N, v);
    }
}

// Loads numbers of one channel for successive pixels, in the layout of the tensor cores: PIXELS at a time, from rows of
// channels. PADDING bytes between the rows avoid bank conflicts in the shared memory.
template <class T>
struct Columns;

template <>
struct Columns<Tf32> {
  enum { PIXELS = 8, PADDING = 16 };
  // 16 channels of successive pixels. The order of the pixels within a product is free, so a thread takes two
  // neighbors.
  static __device__ void left(unsigned (&a)[4], const unsigned char* at, int pitch, int lane) {
    const unsigned *first = (const unsigned*)(at + lane % 4 * 2 * pitch) + lane / 4, *second = first + pitch / 4;
    a[0] = first[0], a[1] = first[8], a[2] = second[0], a[3] = second[8];
  }
  // The offset at which this thread begins to read 16 channels of the input pixels for the output pixels from `pixel`.
  // Then those channels for the three taps of a row.
  static __device__ int begin(const Tiles& t, const Place& at, int pixel, int pitch, int lane) {
    return (at.under(t, pixel) + lane % 4 * 2 * t.stride) * pitch + lane / 4 * 4;
  }
  static __device__ void right(unsigned (&b)[3][2][2], const unsigned char* at, int pitch, int stride) {
    const unsigned* p = (const unsigned*)at;
#pragma unroll
    for (int c = 0; c < 2; c++, p += 8) {
      unsigned v[5];
#pragma unroll
      for (int i = 0; i < 5; i++) v[i] = i < 4 || stride == 2 ? p[i * pitch / 4] : 0;
#pragma unroll
      for (int u = 0; u < 3; u++) b[u][c][0] = v[u], b[u][c][1] = stride == 2 ? v[u + 2] : v[u + 1];
    }
  }
};

template <>
struct Columns<Bf16> {
  enum { PIXELS = 16, PADDING = 16 };
  static __device__ void left(unsigned (&a)[4], const unsigned char* at, int pitch, int lane) {
    load_transposed(a, shared_address(at + ((lane & 7) + (lane >> 4) * 8) * pitch + (lane >> 3 & 1) * 16));
  }
  static __device__ int begin(const Tiles& t, const Place& at, int pixel, int pitch, int lane) {
    return (at.under(t, pixel + (lane & 8)) + lane % 8 * t.stride) * pitch + (lane >> 4) * 16;
  }
  static __device__ void right(unsigned (&b)[3][2][2], const unsigned char* at, int pitch, int) {
#pragma unroll
    for (int u = 0; u < 3; u++) load_transposed(&b[u][0][0], shared_address(at + u * pitch));
  }
};

// The gradient of the weights: dw = Σ dy·xᵀ over all pixels, for each tap. blockIdx.y selects K outputs and C inputs.
// Each block computes the sum over its tiles. A warp has the three taps of a row and a quarter of the pixels.
template <class T, int C, int K>
__device__ void correlate(const typename T::Stored* x, const typename T::Stored* dy, float* parts, const Tiles& t) {
  typedef Columns<T> In;
  const int PITCH = C * T::SIZE + In::PADDING, PITCH_DY = K * T::SIZE + In::PADDING, COUNT = 3 * (K / 16) * (C / 8) * 4;
  const int Q = K * T::SIZE / 16, E = 16 / T::SIZE;
  wait_for_previous_kernel();
  int slices = (t.inputs + C - 1) / C, c0 = blockIdx.y % slices * C, k0 = blockIdx.y / slices * K;
  int size = 1 << (t.images + t.rows + t.columns), tiles = (t.n + (1 << t.images) - 1 >> t.images) *
             (t.height >> t.rows) * (t.width >> t.columns);
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, v = warp % 3, part = warp / 3;
  unsigned char *gradients = room, *pixels = room + size * PITCH_DY;
  float sums[3][K / 16][C / 8][4] = {};
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    Place at(t, tile);
    __syncthreads();
    stage<T, C, PITCH, ROW_THREADS>(pixels, x, t, at, c0);
#pragma unroll 2
    for (int i = threadIdx.x; i < size * Q; i += ROW_THREADS) {
      int pixel = i / Q, q = i % Q, image = at.image + (pixel >> (t.columns + t.rows));
      int row = at.row + (pixel >> t.columns & ((1 << t.rows) - 1)), column = at.column + (pixel & ((1 << t.columns) - 1));
      bool inside = image < t.n;
      int there = inside ? ((image * t.height + row) * t.width + column) * t.outputs : 0;
      fetch(gradients + pixel * PITCH_DY + q * 16, dy + there + k0 + q * E, inside);
    }
    arrived();
    round_fetched<T, C, PITCH, ROW_THREADS>(pixels, at.in_rows * at.in_columns << t.images);
    round_fetched<T, K, PITCH_DY, ROW_THREADS>(gradients, size);
    __syncthreads();
#pragma unroll 1
    for (int p = part * In::PIXELS; p < size; p += 4 * In::PIXELS) {
      unsigned a[K / 16][4];
#pragma unroll
      for (int k = 0; k < K / 16; k++) In::left(a[k], gradients + p * PITCH_DY + k * 16 * T::SIZE, PITCH_DY, lane);
      const unsigned char* from = pixels + In::begin(t, at, p, PITCH, lane) + v * at.in_columns * PITCH;
#pragma unroll
      for (int c = 0; c < C / 8; c += 2) {
        unsigned b[3][2][2];
        In::right(b, from + c * 8 * T::SIZE, PITCH, t.stride);
#pragma unroll
        for (int u = 0; u < 3; u++)
#pragma unroll
          for (int k = 0; k < K / 16; k++)
#pragma unroll
            for (int i = 0; i < 2; i++) T::multiply(sums[u][k][c + i], a[k], b[u][i]);
      }
    }
  }
  allow_next_kernel();
  // Adds the sums of the four quarters, in pairs.
  float *flat = &sums[0][0][0][0], *shared = (float*)room;
#pragma unroll
  for (int half = 2; half; half /= 2) {
    float* slot = shared + (part % half * 3 + v) * COUNT * 32 + lane;
    __syncthreads();
    if (part >= half && part < 2 * half)
#pragma unroll
      for (int i = 0; i < COUNT; i++) slot[i * 32] = flat[i];
    __syncthreads();
    if (part < half)
#pragma unroll
      for (int i = 0; i < COUNT; i++) flat[i] += slot[i * 32];
  }
  if (part) return;
  parts += (size_t)blockIdx.x * t.outputs * 9 * t.inputs;
#pragma unroll
  for (int u = 0; u < 3; u++)
#pragma unroll
    for (int k = 0; k < K / 16; k++)
#pragma unroll
      for (int c = 0; c < C / 8; c++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
          int output = k0 + k * 16 + lane / 4 + i / 2 * 8, input = c0 + c * 8 + lane % 4 * 2 + i % 2;
          if (input < t.inputs) parts[(output * 9 + v * 3 + u) * t.inputs + input] = sums[u][k][c][i];
        }
}

// Adds the sums of all blocks. Each block computes 32 numbers.
extern "C" __global__ void __launch_bounds__(THREADS) add_parts(const float* parts, int count, int size, float* dw) {
  __shared__ float share[THREADS];
  int i = blockIdx.x * 32 + threadIdx.x % 32;
  float sum = 0;
  wait_for_previous_kernel();
  if (i < size)
#pragma unroll 8
    for (int part = threadIdx.x / 32; part < count; part += THREADS / 32) sum += parts[(size_t)part * size + i];
  share[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x >= 32 || i >= size) return;
#pragma unroll
  for (int part = 1; part < THREADS / 32; part++) sum += share[part * 32 + threadIdx.x];
  dw[i] = sum;
}

// A program contains one of these two kernels.
#ifdef SIXTEENS
extern "C" __global__ void __launch_bounds__(THREADS, INPUTS == 16 && OUTPUTS == 16 ? 4 : 2)
    convolve(const TYPE::Stored* x, const float* weight, TYPE::Stored* y, Tiles t, bool rotated) {
  convolve<TYPE, INPUTS, OUTPUTS, SIXTEENS>(x, weight, y, t, rotated);
}
#else
extern "C" __global__ void __launch_bounds__(ROW_THREADS, INPUTS == 16 && OUTPUTS == 16 ? 2 : 1)
    correlate(const TYPE::Stored* x, const TYPE::Stored* dy, float* parts, Tiles t) {
  correlate<TYPE, INPUTS, OUTPUTS>(x, dy, parts, t);
}
#endif
)CUDA"
