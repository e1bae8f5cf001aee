R"CUDA(
// Batch-norm in training mode, an optional sum, and ReLU, for tensors in channels-last order: rows of q vectors of V
// numbers, one row for each pixel of each image. The arithmetic is always in single precision.
//
// A pass consists of two kernels, because each result depends on all pixels. In the first kernel each block adds up its
// rows. In the second kernel every block adds the sums of all blocks, in the same order, and writes its results. So
// there are no counters and no atomic operations, and the same numbers give the same bits.
//
// A block handles some rows, and in each row a group of 1, 2 or 4 vectors, which blockIdx.y selects.

#define THREADS 512
#define WARPS (THREADS / 32)

struct F4 {
  enum { V = 4 };
  typedef float4 Raw;
  static __device__ void unpack(const Raw& r, float (&v)[V]) { v[0] = r.x, v[1] = r.y, v[2] = r.z, v[3] = r.w; }
  static __device__ Raw pack(const float (&v)[V]) { return make_float4(v[0], v[1], v[2], v[3]); }
};

__device__ void two(unsigned both, float& low, float& high) {
  low = __uint_as_float(both << 16);
  high = __uint_as_float(both & 0xffff0000u);
}

struct B8 {
  enum { V = 8 };
  typedef uint4 Raw;
  static __device__ void unpack(const Raw& r, float (&v)[V]) {
    two(r.x, v[0], v[1]), two(r.y, v[2], v[3]), two(r.z, v[4], v[5]), two(r.w, v[6], v[7]);
  }
  static __device__ Raw pack(const float (&v)[V]) {
    return make_uint4(two(v[0], v[1]), two(v[2], v[3]), two(v[4], v[5]), two(v[6], v[7]));
  }
};

struct B4 {
  enum { V = 4 };
  typedef uint2 Raw;
  static __device__ void unpack(const Raw& r, float (&v)[V]) { two(r.x, v[0], v[1]), two(r.y, v[2], v[3]); }
  static __device__ Raw pack(const float (&v)[V]) { return make_uint2(two(v[0], v[1]), two(v[2], v[3])); }
};

// The number of rows of a tensor, of vectors in a row, and of vectors in a group.
struct Shape {
  int rows, q;
  // The binary logarithm of the vectors in a group.
  int group;
};

// The work of a thread: one vector of every step-th row, from `row` to `end`.
struct Place {
  int row, end, step, within, vector;
  __device__ explicit Place(const Shape& s) {
    int share = (s.rows + gridDim.x - 1) / gridDim.x, begin = blockIdx.x * share;
    step = THREADS >> s.group;
    within = threadIdx.x & ((1 << s.group) - 1);
    row = begin + (threadIdx.x >> s.group);
    end = min(begin + share, s.rows);
    vector = (blockIdx.y << s.group) + within;
  }
};

template <int U, class Raw>
__device__ void load(Raw (&into)[U], const Raw* from, const Shape& s, const Place& at, int row) {
#pragma unroll
  for (int k = 0; k < U; k++)
    if (row + k * at.step < at.end) into[k] = from[(row + k * at.step) * s.q + at.vector];
}

// Adds up N numbers over the threads with the same vector. Writes the sums of the block to its part.
template <int N>
__device__ void add_up(float (&a)[N], float* parts, int group) {
  __shared__ float room[WARPS][4 * N];
  int width = N << group, lane = threadIdx.x % 32;
  for (int d = 16; d >> group; d /= 2)
#pragma unroll
    for (int i = 0; i < N; i++) a[i] += __shfl_xor_sync(~0u, a[i], d);
  if (lane >> group == 0)
#pragma unroll
    for (int i = 0; i < N; i++) room[threadIdx.x / 32][lane * N + i] = a[i];
  __syncthreads();
  if (threadIdx.x < width) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) sum += room[w][threadIdx.x];
    parts[(blockIdx.y * gridDim.x + blockIdx.x) * width + threadIdx.x] = sum;
  }
}

// Adds the sums of all blocks, N numbers per vector.
template <int N>
__device__ void add_parts(float (&a)[N], const float* parts, int count, int group, int within) {
  __shared__ float room[THREADS];
  int width = N << group, t = threadIdx.x;
  parts += blockIdx.y * count * width;
  float sum = 0;
#pragma unroll 8
  for (int i = t; i < count * width; i += THREADS) sum += parts[i];
  room[t] = sum;
  __syncthreads();
  for (int n = THREADS / 2; n >= width; n /= 2) {
    if (t < n) room[t] += room[t + n];
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < N; i++) a[i] = room[within * N + i];
}

// Σ(x − x₀) and Σ(x − x₀)², where x₀ is the first row. This avoids cancellation if the mean is far from zero.
template <class T>
__device__ void statistics(const typename T::Raw* x, float* parts, const Shape& s) {
  const int V = T::V, U = 8;
  wait_for_previous_kernel();
  allow_next_kernel();
  Place at(s);
  float first[V], sums[2 * V] = {};
  T::unpack(x[at.vector], first);
  for (int row = at.row; row < at.end; row += U * at.step) {
    typename T::Raw in[U];
    load(in, x, s, at, row);
#pragma unroll
    for (int k = 0; k < U; k++)
      if (row + k * at.step < at.end) {
        float v[V];
        T::unpack(in[k], v);
#pragma unroll
        for (int i = 0; i < V; i++) {
          float d = v[i] - first[i];
          sums[i] += d;
          sums[V + i] = fmaf(d, d, sums[V + i]);
        }
      }
  }
  add_up(sums, parts, s.group);
}

// The value before the ReLU, without the sum. The backward pass computes it again and must get the same sign.
__device__ float affine(float x, float mean, float scale, float bias) { return fmaf(x - mean, scale, bias); }

// y = max(0, (x − μ)/√(σ² + ε)·w + b + other). Saves μ and 1/√(σ² + ε), and updates the running statistics.
template <class T>
__device__ void forward(const typename T::Raw* x, const typename T::Raw* other, const float* parts, int count,
                        const float* weight, const float* bias, float* running_mean, float* running_variance,
                        float* mean, float* inverse, typename T::Raw* y, const Shape& s, float momentum, float epsilon) {
  const int V = T::V, U = 4;
  Place at(s);
  typename T::Raw in[U], add[U];
  load(in, x, s, at, at.row);
  if (other) load(add, other, s, at, at.row);
  // All these loads start before the wait for the sums.
  bool keeps = blockIdx.x == 0 && threadIdx.x >> s.group == 0;
  float m[V], scale[V], b[V], old_mean[V], old_variance[V];
  T::unpack(x[at.vector], m);
#pragma unroll
  for (int i = 0; i < V; i++) {
    int c = at.vector * V + i;
    scale[i] = weight[c];
    b[i] = bias[c];
    if (keeps) old_mean[i] = running_mean[c], old_variance[i] = running_variance[c];
  }
  float sums[2 * V], share = 1.0f / s.rows;
  wait_for_previous_kernel();
  allow_next_kernel();
  add_parts(sums, parts, count, s.group, at.within);
#pragma unroll
  for (int i = 0; i < V; i++) {
    int c = at.vector * V + i;
    float d = sums[i] * share, variance = sums[V + i] * share - d * d;
    // Not fmaxf, here and below: it turns NaN into 0.
    variance = variance < 0 ? 0 : variance;
    float r = rsqrtf(variance + epsilon);
    m[i] += d;
    scale[i] *= r;
    if (keeps) {
      mean[c] = m[i];
      inverse[c] = r;
      running_mean[c] = momentum * m[i] + (1 - momentum) * old_mean[i];
      float unbiased = variance * ((float)s.rows / (s.rows - 1));
      running_variance[c] = momentum * unbiased + (1 - momentum) * old_variance[i];
    }
  }
  for (int row = at.row; row < at.end;) {
#pragma unroll
    for (int k = 0; k < U; k++)
      if (row + k * at.step < at.end) {
        float v[V], a[V];
        T::unpack(in[k], v);
#pragma unroll
        for (int i = 0; i < V; i++) v[i] = affine(v[i], m[i], scale[i], b[i]);
        if (other) {
          T::unpack(add[k], a);
#pragma unroll
          for (int i = 0; i < V; i++) v[i] += a[i];
        }
#pragma unroll
        for (int i = 0; i < V; i++) v[i] = v[i] <= 0 ? 0 : v[i];
        y[(row + k * at.step) * s.q + at.vector] = T::pack(v);
      }
    row += U * at.step;
    load(in, x, s, at, row);
    if (other) load(add, other, s, at, row);
  }
}

// The numbers of the channels that the backward pass needs.
template <int V>
struct Channels {
  float mean[V], scale[V], bias[V];
  __device__ Channels(const float* mean, const float* inverse, const float* weight, const float* bias, int vector) {
#pragma unroll
    for (int i = 0; i < V; i++) {
      int c = vector * V + i;
      this->mean[i] = mean[c];
      scale[i] = inverse[c] * weight[c];
      this->bias[i] = bias[c];
    }
  }
};

// Σg and Σg·(x − μ). g is the gradient before the ReLU: the gradient of y, or the sum of two, where y > 0, and 0
// elsewhere. If y is given, g is saved. If not, the layer had no sum, and the sign of y is computed again.
template <class T>
__device__ void backward_sums(const typename T::Raw* dy, const typename T::Raw* dy2, const typename T::Raw* x,
                              const typename T::Raw* y, const float* mean, const float* inverse, const float* weight,
                              const float* bias, typename T::Raw* g, float* parts, const Shape& s) {
  const int V = T::V, U = V == 8 ? 2 : 4;
  wait_for_previous_kernel();
  allow_next_kernel();
  Place at(s);
  Channels<V> c(mean, inverse, weight, bias, at.vector);
  float sums[2 * V] = {};
  for (int row = at.row; row < at.end; row += U * at.step) {
    typename T::Raw in[U], out[U], grad[U], more[U];
    load(grad, dy, s, at, row);
    load(in, x, s, at, row);
    if (dy2) load(more, dy2, s, at, row);
    if (y) load(out, y, s, at, row);
#pragma unroll
    for (int k = 0; k < U; k++)
      if (row + k * at.step < at.end) {
        float v[V], w[V], u[V];
        T::unpack(grad[k], v);
        T::unpack(in[k], w);
        if (dy2) {
          T::unpack(more[k], u);
#pragma unroll
          for (int i = 0; i < V; i++) v[i] += u[i];
        }
        if (y) T::unpack(out[k], u);
#pragma unroll
        for (int i = 0; i < V; i++) {
          float before = y ? u[i] : affine(w[i], c.mean[i], c.scale[i], c.bias[i]);
          v[i] = before <= 0 ? 0 : v[i];
          sums[i] += v[i];
          sums[V + i] = fmaf(v[i], w[i] - c.mean[i], sums[V + i]);
        }
        if (y) g[(row + k * at.step) * s.q + at.vector] = T::pack(v);
      }
  }
  add_up(sums, parts, s.group);
}

// dx = w/√(σ² + ε)·(g − mean of g − x̂·mean of g·x̂), dw = Σg·x̂, db = Σg with x̂ = (x − μ)/√(σ² + ε). With `masked`,
// dy is g; otherwise g is computed from dy and dy2 as above.
template <class T>
__device__ void backward(const typename T::Raw* dy, const typename T::Raw* dy2, const typename T::Raw* x,
                         const float* parts, int count, const float* mean, const float* inverse, const float* weight,
                         const float* bias, typename T::Raw* dx, float* dweight, float* dbias, const Shape& s,
                         bool masked) {
  const int V = T::V, U = 4;
  Place at(s);
  typename T::Raw grad[U], in[U], more[U];
  load(in, x, s, at, at.row);
  Channels<V> c(mean, inverse, weight, bias, at.vector);
  float sums[2 * V], slope[V];
  wait_for_previous_kernel();
  allow_next_kernel();
  // The previous kernel may have written it.
  load(grad, dy, s, at, at.row);
  if (dy2) load(more, dy2, s, at, at.row);
  add_parts(sums, parts, count, s.group, at.within);
  bool keeps = blockIdx.x == 0 && threadIdx.x >> s.group == 0;
  float share = 1.0f / s.rows;
#pragma unroll
  for (int i = 0; i < V; i++) {
    float r = inverse[at.vector * V + i];
    if (keeps) {
      dbias[at.vector * V + i] = sums[i];
      dweight[at.vector * V + i] = sums[V + i] * r;
    }
    sums[i] = c.scale[i] * (sums[i] * share);
    slope[i] = c.scale[i] * r * r * (sums[V + i] * share);
  }
  for (int row = at.row; row < at.end;) {
#pragma unroll
    for (int k = 0; k < U; k++)
      if (row + k * at.step < at.end) {
        float v[V], w[V], u[V];
        T::unpack(grad[k], v);
        T::unpack(in[k], w);
        if (dy2) {
          T::unpack(more[k], u);
#pragma unroll
          for (int i = 0; i < V; i++) v[i] += u[i];
        }
#pragma unroll
        for (int i = 0; i < V; i++) {
          if (!masked && affine(w[i], c.mean[i], c.scale[i], c.bias[i]) <= 0) v[i] = 0;
          v[i] = fmaf(v[i], c.scale[i], -sums[i]) - (w[i] - c.mean[i]) * slope[i];
        }
        dx[(row + k * at.step) * s.q + at.vector] = T::pack(v);
      }
    row += U * at.step;
    load(grad, dy, s, at, row);
    load(in, x, s, at, row);
    if (dy2) load(more, dy2, s, at, row);
  }
}

// Every second pixel of every second row, with `pad` zero vectors on either side; and the reverse. Each thread writes
// one vector. The small tensor has q vectors per pixel and images of height by width.
template <class Raw>
__device__ void halve(const Raw* large, Raw* small, int q, int pad, int height, int width, int count) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  if (i >= count) return;
  int v = i % q - pad, inner = q - 2 * pad;
  int pixel = i / q;
  int column = pixel % width, row = pixel / width % height, image = pixel / width / height;
  Raw none = {};
  bool inside = v >= 0 && v < inner;
  small[i] = inside ? large[((image * 2 * height + 2 * row) * 2 * width + 2 * column) * inner + v] : none;
}
template <class Raw>
__device__ void halve_back(const Raw* small, Raw* large, int q, int pad, int height, int width, int count) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  if (i >= count) return;
  int inner = q - 2 * pad;
  int v = i % inner;
  int pixel = i / inner;
  int column = pixel % (2 * width), row = pixel / (2 * width) % (2 * height), image = pixel / (2 * width) / (2 * height);
  Raw none = {};
  bool kept = row % 2 == 0 && column % 2 == 0;
  large[i] = kept ? small[((image * height + row / 2) * width + column / 2) * q + v + pad] : none;
}

#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS)
#define ALL(T)                                                                                                           \
  KERNEL statistics_##T(const T::Raw* x, float* __restrict__ parts, Shape s) { statistics<T>(x, parts, s); }\
  KERNEL forward_##T(const T::Raw* __restrict__ x, const T::Raw* __restrict__ other, const float* parts,                 \
                     int count, const float* __restrict__ weight, const float* __restrict__ bias,                        \
                     float* __restrict__ running_mean, float* __restrict__ running_variance, float* __restrict__ mean,   \
                     float* __restrict__ inverse, T::Raw* __restrict__ y, Shape s, float momentum, float epsilon) {      \
    forward<T>(x, other, parts, count, weight, bias, running_mean, running_variance, mean, inverse, y, s, momentum,      \
               epsilon);                                                                                                 \
  }                                                                                                                      \
  KERNEL backward_sums_##T(const T::Raw* dy, const T::Raw* dy2, const T::Raw* x, const T::Raw* y, const float* mean,     \
                           const float* inverse, const float* weight, const float* bias, T::Raw* g, float* parts,        \
                           Shape s) {                                                                                    \
    backward_sums<T>(dy, dy2, x, y, mean, inverse, weight, bias, g, parts, s);                                           \
  }                                                                                                                      \
  KERNEL backward_##T(const T::Raw* dy, const T::Raw* __restrict__ dy2, const T::Raw* __restrict__ x,                    \
                      const float* parts, int count, const float* __restrict__ mean,                                     \
                      const float* __restrict__ inverse, const float* __restrict__ weight,                               \
                      const float* __restrict__ bias, T::Raw* __restrict__ dx, float* __restrict__ dweight,              \
                      float* __restrict__ dbias, Shape s, bool masked) {                                                 \
    backward<T>(dy, dy2, x, parts, count, mean, inverse, weight, bias, dx, dweight, dbias, s, masked);                   \
  }                                                                                                                      \
  KERNEL halve_##T(const T::Raw* __restrict__ large, T::Raw* __restrict__ small, int q, int pad, int height, int width,  \
                   int count) {                                                                                          \
    halve(large, small, q, pad, height, width, count);                                                                   \
  }                                                                                                                      \
  KERNEL halve_back_##T(const T::Raw* __restrict__ small, T::Raw* __restrict__ large, int q, int pad, int height,        \
                        int width, int count) {                                                                          \
    halve_back(small, large, q, pad, height, width, count);                                                              \
  }

ALL(F4)
ALL(B8)
ALL(B4)
)CUDA"
