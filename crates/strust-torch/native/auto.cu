R"CUDA(
// A step of Auto around its two evaluations, in five passes over the parameters. Names and formulas are those of
// strust::methods::Auto. Each block adds its share of a sum. The next kernel's blocks all add these shares in the same
// order, so the result is always the same, and no kernel is needed for the numbers alone.

typedef REAL Real;
constexpr int kThreads = 256;

// The order of these structs is that of device_auto.rs.
struct Settings {
  double gamma, noise, momentum, power, beta2, epsilon, weight_decay;
  double first_length, rounding;
  double growth, shrink, tolerance, most, upwards, downwards, after_rejection;
  double noise_memory, recent, shortest, noise_known;
  double window, pull, circles, advances, least, lengthen;
};
struct Numbers {
  double accepted, curvature, noise, recent_noise, least_noise, remembered, distance, size, trust, pull, at_average;
};
// What `propose` passes on to `judge`.
struct Proposal {
  Numbers known, seen;
  double correction, floor, squared_norm, a, c, b, whole;
};
struct Vectors {
  Real *y, *gradient, *x, *z, *start, *last, *root;
  long long count;
};

__device__ Real between(Real to, double share, Real from) {
  return to * static_cast<Real>(1.0 - share) + from * static_cast<Real>(share);
}
__device__ bool finite(double number) { return number * 0.0 == 0.0; }

// Adds the numbers of all threads. Thread 0 has the sums.
template <int N>
__device__ void add_threads(double (&sums)[N]) {
  __shared__ double of_warp[kThreads / 32][N];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
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

#define FOR_EACH_ELEMENT(i, v) \
  for (long long i = blockIdx.x * kThreads + threadIdx.x; i < (v).count; i += gridDim.x * kThreads)

// The root of the mean of g∘g, and D.
__device__ Real new_root(const Vectors& v, const Settings& s, long long i) {
  return hypot(v.root[i] * static_cast<Real>(sqrt(s.beta2)), v.gradient[i] * static_cast<Real>(sqrt(1.0 - s.beta2)));
}
__device__ Real metric(Real root, double correction, double floor) {
  return root * static_cast<Real>(correction) + static_cast<Real>(floor);
}

// ‖g‖², and the sum of the new root.
extern "C" __global__ void auto_gradient(Vectors v, Settings s, double* shares) {
  double sums[2] = {};
  FOR_EACH_ELEMENT(i, v) {
    double g = v.gradient[i];
    sums[0] += g * g;
    sums[1] += new_root(v, s, i);
  }
  write_share(sums, shares);
}

// ‖y − x₀‖² in D, ‖g − gₗₐₛₜ‖² and ‖g‖² in D⁻¹, gᵀ(z − x), ‖d‖².
extern "C" __global__ void auto_metric(Vectors v, Settings s, const Numbers* kept, const double* before, double* shares,
                                       Proposal* proposal) {
  __shared__ double correction, floor;
  double totals[2];
  read_shares(totals, before);
  if (threadIdx.x == 0) {
    correction = rsqrt(-expm1((kept->accepted + 1.0) * log(s.beta2)));
    floor = s.epsilon * correction * totals[1] / v.count;
    if (blockIdx.x == 0) {
      proposal->correction = correction;
      proposal->floor = floor;
      proposal->squared_norm = totals[0];
    }
  }
  __syncthreads();
  double sums[5] = {};
  FOR_EACH_ELEMENT(i, v) {
    Real g = v.gradient[i], D = metric(new_root(v, s, i), correction, floor);
    double moved = between(v.z[i], s.momentum, v.x[i]) - v.start[i], change = g - v.last[i], d = g / D;
    sums[0] += moved * moved * D;
    sums[1] += change * change / D;
    sums[2] += g * d;
    sums[3] += static_cast<double>(g) * (v.z[i] - v.x[i]);
    sums[4] += d * d;
  }
  write_share(sums, shares);
}

// The noise and what the average remembers, after ½‖g − gₗₐₛₜ‖².
__device__ void hear(Numbers& n, const Settings& s, double difference) {
  double steps = n.accepted;
  if (steps == 0.0) return;
  n.noise += fmin(s.noise_memory / (steps + s.noise_memory - 1.0), 1.0) * (difference - n.noise);
  n.recent_noise += (difference - n.recent_noise) / fmin(s.recent, steps);
  if (steps <= s.recent) {
    n.least_noise = n.recent_noise;
  } else if (n.recent_noise < n.least_noise) {
    double fallen = sqrt(n.recent_noise / n.least_noise) * n.remembered;
    n.remembered = fmax(fallen, fmin(s.shortest, n.remembered));
    n.least_noise = n.recent_noise;
  }
}

// Chooses a and writes the trial y'.
extern "C" __global__ void auto_propose(Vectors v, Settings s, const Numbers* kept, const bool* whole,
                                        const double* before, Proposal* proposal) {
  __shared__ double a, c, correction, floor;
  double totals[5];
  read_shares(totals, before);
  if (threadIdx.x == 0) {
    Numbers n = *kept;
    n.distance = fmax(n.distance, sqrt(totals[0]));
    hear(n, s, 0.5 * totals[1]);
    a = n.size > 0.0 ? s.growth * n.size : s.first_length / sqrt(totals[4]);
    if (n.curvature > 0.0) a = fmin(a, s.gamma * n.trust / n.curvature);
    if (n.accepted >= s.noise_known && n.noise > 0.0)
      a = fmin(a, s.noise * n.distance / sqrt((n.accepted + 1.0) * n.noise));
    c = (s.power + 1.0) / (n.remembered + s.power + 1.0);
    correction = proposal->correction;
    floor = proposal->floor;
    if (blockIdx.x == 0) {
      proposal->known = *kept;
      proposal->seen = n;
      proposal->a = a;
      proposal->c = c;
      proposal->b = totals[3] / (a * totals[2]);
      proposal->whole = *whole;
    }
  }
  __syncthreads();
  FOR_EACH_ELEMENT(i, v) {
    Real D = metric(new_root(v, s, i), correction, floor);
    Real z = (v.z[i] - static_cast<Real>(a) * (v.gradient[i] / D)) * static_cast<Real>(1.0 / (1.0 + a * s.weight_decay));
    v.y[i] = between(z, s.momentum, between(v.x[i], c, z));
  }
}

// gᵀΔ, ‖Δ‖² in D, ‖Δ‖².
extern "C" __global__ void auto_trial(Vectors v, Settings s, const Proposal* proposal, double* shares) {
  double sums[3] = {}, correction = proposal->correction, floor = proposal->floor;
  FOR_EACH_ELEMENT(i, v) {
    Real g = v.gradient[i], D = metric(new_root(v, s, i), correction, floor);
    double delta = v.y[i] - between(v.z[i], s.momentum, v.x[i]);
    sums[0] += g * delta;
    sums[1] += delta * delta * D;
    sums[2] += delta * delta;
  }
  write_share(sums, shares);
}

// γₖ, after b of an accepted step.
__device__ void feel(Numbers& n, const Settings& s, double b) {
  n.pull += b > s.pull ? s.pull : b < -s.pull ? -s.pull : b;
  if (fmod(n.accepted, s.window) != 0.0) return;
  double mean = n.pull / s.window;
  if (mean > s.circles) {
    n.trust = fmax(0.5 * n.trust, fmin(s.least / s.gamma, 1.0));
  } else if (mean < s.advances) {
    n.trust = fmin(s.lengthen * n.trust, 1.0);
  }
  n.pull = 0.0;
}

// Accepts or rejects, learns κ, keeps the new or the old vectors, and writes a record.
extern "C" __global__ void auto_judge(Vectors v, Settings s, const Proposal* proposal, const double* before,
                                      const double* value, const double* trial, Numbers* kept, bool* whole,
                                      double* table, long long* next) {
  __shared__ bool accept, retreats;
  double totals[3];
  read_shares(totals, before);
  Proposal p = *proposal;
  if (threadIdx.x == 0) {
    double f0 = *value, f1 = *trial, square = totals[1], beyond = f1 - f0 - totals[0], rounding = s.rounding * fabs(f0);
    bool fine = finite(f0 + p.squared_norm), moves = p.squared_norm > 0.0;
    // Every comparison with NaN is false: a trial that is not finite is rejected and teaches nothing.
    bool sees = fabs(beyond) > 2.0 * rounding && square > 0.0, real = finite(f1);
    double known = p.known.curvature, seen = 2.0 * beyond / square;
    bool expected = known > 0.0 && sees && seen <= s.tolerance * known;
    accept = (f1 <= f0 + rounding || expected) && real && fine && moves;
    double curvature = known;
    if (sees && real && fine && moves) {
      double bounded = fmin(fmax(seen, 0.0), s.most * known);
      double share = bounded > known ? (accept ? s.upwards : s.after_rejection) : s.downwards;
      curvature = known > 0.0 ? known + share * (bounded - known) : fmax(seen, 0.0);
    }
    // If f is not finite at y, z goes back to the average. If y was there already, the run breaks down.
    retreats = !fine;
    bool broken = retreats && p.known.at_average > 0.0;
    bool well = p.whole > 0.0 && !broken;
    accept = accept && well;
    if (blockIdx.x == 0) {
      Numbers n = accept ? p.seen : p.known;
      n.curvature = curvature;
      n.size = !fine ? n.size / s.shrink : !moves ? n.size : accept ? p.a : p.a / s.shrink;
      n.at_average = retreats || (p.known.at_average > 0.0 && !accept);
      if (accept) {
        n.accepted += 1.0;
        n.remembered += 1.0;
        feel(n, s, p.b);
      }
      *kept = n;
      *whole = well;
      double row[7] = {f0, p.squared_norm, p.a, sqrt(totals[2]), double(accept), double(fine), double(broken)};
      for (int i = 0; i < 7; i++) table[*next * 7 + i] = row[i];
      *next += 1;
    }
  }
  __syncthreads();
  FOR_EACH_ELEMENT(i, v) {
    Real x = v.x[i], z = v.z[i];
    if (accept) {
      Real root = new_root(v, s, i), D = metric(root, p.correction, p.floor);
      z = (z - static_cast<Real>(p.a) * (v.gradient[i] / D)) * static_cast<Real>(1.0 / (1.0 + p.a * s.weight_decay));
      v.x[i] = between(x, p.c, z);
      v.z[i] = z;
      v.root[i] = root;
      v.last[i] = v.gradient[i];
    } else {
      if (retreats) v.z[i] = z = x;
      v.y[i] = between(z, s.momentum, x);
    }
  }
}
)CUDA"
