// A step of Auto around its two evaluations, in four passes over the parameters. Names and formulas are those of _auto.py
// and _learned.py, which also defines the constants in capitals. Each block adds its share of a sum. The next kernel's
// blocks all add these shares in the same order, so the result is always the same, and no kernel is needed for the numbers
// alone.

typedef REAL Real;
// All vectors have their own memory, so that loads need not wait for stores.
typedef const Real* __restrict__ In;
typedef Real* __restrict__ Out;
constexpr int kThreads = 256;

// In the order of _kernels.py.
struct Settings {
  double gamma, noise, momentum, power, beta2, epsilon, rounding, scaled;
};
// In the order of _learned.py.
struct Numbers {
  double accepted, curvature, noise, recent_noise, least_noise, remembered, distance, size, trust, pull, at_average, steps,
      broken;
};
// What `propose` passes on to `judge`.
struct Proposal {
  Numbers seen;
  double correction, floor, squared_norm, a, c, b;
};

__device__ Real lerp(Real from, Real to, Real share) {
  return share < Real(0.5) ? from + share * (to - from) : to - (to - from) * (Real(1) - share);
}
__device__ bool finite(double number) { return number * 0.0 == 0.0; }

// Adds the numbers of all threads. Thread 0 has the sums.
template <int N>
__device__ void add_threads(double (&sums)[N]) {
  __shared__ double of_warp[kThreads / 32][N];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  __syncthreads();
  for (int i = 0; i < N; i++) {
    for (int step = 16; step > 0; step /= 2) sums[i] += __shfl_down_sync(~0u, sums[i], step);
    if (lane == 0) of_warp[warp][i] = sums[i];
  }
  __syncthreads();
  if (threadIdx.x == 0)
    for (int i = 0; i < N; i++)
      for (int w = 1; w < kThreads / 32; w++) sums[i] += of_warp[w][i];
}
// Writes this block's share of the sums.
template <int N>
__device__ void write_share(double (&sums)[N], double* shares) {
  add_threads(sums);
  if (threadIdx.x == 0)
    for (int i = 0; i < N; i++) shares[blockIdx.x * N + i] = sums[i];
}
// Adds the shares of all blocks. Thread 0 has the sums.
template <int N>
__device__ void read_shares(double (&sums)[N], const double* shares) {
  for (int i = 0; i < N; i++) sums[i] = 0.0;
  for (int block = threadIdx.x; block < gridDim.x; block += kThreads)
    for (int i = 0; i < N; i++) sums[i] += shares[block * N + i];
  add_threads(sums);
}

#define FOR_EACH_ELEMENT(i) \
  _Pragma("unroll 4") for (int i = blockIdx.x * kThreads + threadIdx.x; i < count; i += gridDim.x * kThreads)

// The root of the mean of g∘g, and D.
__device__ Real new_root(Real root, Real g, const Settings& s) {
  return hypot(root * static_cast<Real>(sqrt(s.beta2)), g * static_cast<Real>(sqrt(1.0 - s.beta2)));
}
__device__ Real metric(Real root, double correction, double floor) {
  return root * static_cast<Real>(correction) + static_cast<Real>(floor);
}

// ‖g‖², and the sum of the new root.
extern "C" __global__ void auto_gradient(In gradient, In root, const Settings* settings, double* shares,
                                         int count) {
  Settings s = *settings;
  double sums[2] = {};
  FOR_EACH_ELEMENT(i) {
    double g = gradient[i];
    sums[0] += g * g;
    sums[1] += new_root(root[i], gradient[i], s);
  }
  write_share(sums, shares);
}

// ‖y − x₀‖² in D, ‖g − gₗₐₛₜ‖² and ‖g‖² in D⁻¹, gᵀ(z − x), ‖d‖².
extern "C" __global__ void auto_metric(In gradient, In root, In x, In z,
                                       In start, In last, const Settings* settings,
                                       const Numbers* numbers, const double* before, double* shares, Proposal* proposal,
                                       int count) {
  __shared__ double correction, floor;
  Settings s = *settings;
  double totals[2];
  read_shares(totals, before);
  if (threadIdx.x == 0) {
    correction = rsqrt(-expm1((numbers->accepted + 1.0) * log(s.beta2)));
    floor = s.epsilon * correction * totals[1] / count;
    if (blockIdx.x == 0) {
      proposal->correction = correction;
      proposal->floor = floor;
      proposal->squared_norm = totals[0];
    }
  }
  __syncthreads();
  double sums[5] = {};
  FOR_EACH_ELEMENT(i) {
    Real g = gradient[i], D = metric(new_root(root[i], g, s), correction, floor);
    double moved = lerp(z[i], x[i], static_cast<Real>(s.momentum)) - start[i], change = g - last[i], d = g / D;
    sums[0] += moved * moved * D;
    sums[1] += change * change / D;
    sums[2] += g * d;
    sums[3] += static_cast<double>(g) * (z[i] - x[i]);
    sums[4] += d * d;
  }
  write_share(sums, shares);
}

// The noise and what the average remembers, after ½‖g − gₗₐₛₜ‖².
__device__ void hear(Numbers& n, double difference) {
  double steps = n.accepted;
  if (steps == 0.0) return;
  n.noise += fmin(NOISE_MEMORY / (steps + NOISE_MEMORY - 1.0), 1.0) * (difference - n.noise);
  n.recent_noise += (difference - n.recent_noise) / fmin(RECENT, steps);
  if (steps <= RECENT) {
    n.least_noise = n.recent_noise;
  } else if (n.recent_noise < n.least_noise) {
    double fallen = sqrt(n.recent_noise / n.least_noise) * n.remembered;
    n.remembered = fmax(fallen, fmin(SHORTEST, n.remembered));
    n.least_noise = n.recent_noise;
  }
}

__device__ Real new_z(Real z, Real g, Real D, double a, Real decay) {
  return (z - static_cast<Real>(a) * (g / D)) / (Real(1) + static_cast<Real>(a) * decay);
}

// Chooses a, writes the trial y', and adds gᵀΔ and ‖Δ‖² in D.
extern "C" __global__ void auto_propose(Out y, In gradient, In root, In x, In z,
                                        In decay, const Settings* settings, const Numbers* numbers,
                                        const double* first_length, const double* before, double* shares,
                                        Proposal* proposal, int decay_stride, int count) {
  __shared__ double a, c, correction, floor;
  Settings s = *settings;
  double totals[5];
  read_shares(totals, before);
  if (threadIdx.x == 0) {
    Numbers n = *numbers;
    n.distance = fmax(n.distance, sqrt(totals[0]));
    hear(n, 0.5 * totals[1]);
    a = n.size > 0.0 ? GROWTH * n.size : *first_length / sqrt(totals[4]);
    if (n.curvature > 0.0) a = fmin(a, s.gamma * n.trust / n.curvature);
    if (n.accepted >= NOISE_KNOWN && n.noise > 0.0)
      a = fmin(a, s.noise * n.distance / sqrt((n.accepted + 1.0) * n.noise));
    c = (s.power + 1.0) / (n.remembered + s.power + 1.0);
    correction = proposal->correction;
    floor = proposal->floor;
    if (blockIdx.x == 0) {
      proposal->seen = n;
      proposal->a = a;
      proposal->c = c;
      proposal->b = totals[3] / (a * totals[2]);
    }
  }
  __syncthreads();
  double sums[2] = {};
  Real momentum = static_cast<Real>(s.momentum);
  FOR_EACH_ELEMENT(i) {
    Real g = gradient[i], D = metric(new_root(root[i], g, s), correction, floor);
    Real z1 = new_z(z[i], g, D, a, decay[static_cast<long long>(i) * decay_stride]);
    Real trial = lerp(z1, lerp(x[i], z1, static_cast<Real>(c)), momentum);
    double delta = trial - lerp(z[i], x[i], momentum);
    y[i] = trial;
    sums[0] += g * delta;
    sums[1] += delta * delta * D;
  }
  write_share(sums, shares);
}

// γₖ, after b of an accepted step.
__device__ void feel(Numbers& n, double gamma, double b) {
  n.pull += b > PULL ? PULL : b < -PULL ? -PULL : b;
  if (fmod(n.accepted, WINDOW) != 0.0) return;
  double mean = n.pull / WINDOW;
  if (mean > CIRCLES) {
    n.trust = fmax(0.5 * n.trust, fmin(LEAST / gamma, 1.0));
  } else if (mean < ADVANCES) {
    n.trust = fmin(LENGTHEN * n.trust, 1.0);
  }
  n.pull = 0.0;
}

// Accepts or rejects, learns κ, and keeps the new or the old vectors. Blocks read the old numbers and one writes the new.
extern "C" __global__ void auto_judge(In gradient, Out root, Out x, Out z, Out last, In decay,
                                      const Settings* settings, const Numbers* numbers, Numbers* next,
                                      const double* losses, const double* before, const Proposal* proposal,
                                      int decay_stride, int count) {
  __shared__ bool accept, retreats;
  Settings s = *settings;
  double totals[2];
  read_shares(totals, before);
  Proposal p = *proposal;
  if (threadIdx.x == 0) {
    Numbers known = *numbers;
    double f0 = losses[0], f1 = losses[1], square = totals[1], beyond = f1 - f0 - totals[0];
    double rounding = s.rounding * fabs(f0), kappa = known.curvature, seen = 2.0 * beyond / square;
    bool fine = finite(f0 + p.squared_norm), tried = fine && p.squared_norm > 0.0;
    // Every comparison with NaN is false: a trial that is not finite is rejected and teaches nothing.
    bool real = finite(f1), sees = fabs(beyond) > 2.0 * rounding && square > 0.0 && real;
    bool expected = kappa > 0.0 && sees && seen <= TOLERANCE * kappa;
    accept = (f1 <= f0 + rounding || expected) && real && tried;
    // If f is not finite at y, z returns to the average. If y was there already, nothing changes. An overflow that comes
    // from the scale of the loss says nothing about y.
    bool overflow = s.scaled > 0.0 && !fine && finite(f0), averaged = known.at_average > 0.0;
    bool broken = !fine && averaged && !overflow;
    retreats = !fine && !averaged && !overflow;
    if (blockIdx.x == 0) {
      Numbers n = accept ? p.seen : known;
      n.curvature = kappa;
      if (sees && tried) {
        double bounded = fmin(fmax(seen, 0.0), MOST * kappa);
        double share = bounded > kappa ? (accept ? UPWARDS : AFTER_REJECTION) : DOWNWARDS;
        n.curvature = kappa > 0.0 ? kappa + share * (bounded - kappa) : fmax(seen, 0.0);
      }
      n.size = accept ? p.a : tried ? p.a / SHRINK : retreats ? known.size / SHRINK : known.size;
      n.at_average = retreats || (averaged && !accept);
      n.steps = known.steps + 1.0;
      n.broken = broken ? known.broken + 1.0 : 0.0;
      if (accept) {
        n.accepted += 1.0;
        n.remembered += 1.0;
        feel(n, s.gamma, p.b);
      }
      *next = n;
    }
  }
  __syncthreads();
  if (!accept && !retreats) return;
  FOR_EACH_ELEMENT(i) {
    if (retreats) {
      z[i] = x[i];
      continue;
    }
    Real g = gradient[i], root1 = new_root(root[i], g, s), D = metric(root1, p.correction, p.floor);
    Real z1 = new_z(z[i], g, D, p.a, decay[static_cast<long long>(i) * decay_stride]);
    x[i] = lerp(x[i], z1, static_cast<Real>(p.c));
    z[i] = z1;
    root[i] = root1;
    last[i] = g;
  }
}
