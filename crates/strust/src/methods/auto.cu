// A step of Auto around its two evaluations, in four passes over the parameters. Names and formulas are those of
// `methods/auto.rs` and `methods/controller.rs`, which writes the constants in capitals and `Learned` before this text.
// Each block adds its share of a sum. The next kernel's blocks all add these shares in the same order, so the result is
// always the same, and no kernel is needed for the numbers alone.

typedef REAL Real;
// All vectors have their own memory, so that loads need not wait for stores.
typedef const Real* __restrict__ In;
typedef Real* __restrict__ Out;
// A test on a CPU has one thread.
#ifndef THREADS
#define THREADS 256
#endif
constexpr int kThreads = THREADS, kWarps = (kThreads + 31) / 32;

struct Settings {
  double gamma, noise, momentum, power, beta2, epsilon;
  // The rounding error of f, relative to f.
  double rounding;
  // 1 if the loss was scaled, so that an overflow says nothing about y.
  double scaled;
  // 1 if nothing may change after a breakdown.
  double stops;
  // 0 if all parameters have the same decay, 1 if each has its own.
  double decay_stride;
};
struct Numbers : Learned {
  // All steps, and those at the end that could not start.
  double steps, broken;
};
// What is known before the trial.
struct Proposal {
  Numbers known, measured;
  double correction, floor, squared_norm, a, c, b;
};
struct Verdict {
  bool accept, retreats;
  Numbers numbers;
};

__device__ bool is_finite(double number) { return number * 0.0 == 0.0; }

// r̄², the noise and what the average remembers, after the squared distance and ½‖g − gₗₐₛₜ‖².
__device__ void measure(Learned& n, double distance, double difference) {
  double steps = n.accepted, window = 0.5 * WINDOW;
  n.distance = fmax(n.distance, distance);
  if (steps == 0.0) return;
  n.noise += fmin(MEMORY / (steps + MEMORY - 1.0), 1.0) * (difference - n.noise);
  n.recent_noise += (difference - n.recent_noise) / fmin(window, steps);
  if (steps <= window) {
    n.least_noise = n.recent_noise;
  } else if (n.recent_noise < n.least_noise) {
    double fallen = sqrt(n.recent_noise / n.least_noise) * n.remembered;
    n.remembered = fmax(fallen, fmin(FEW, n.remembered));
    n.least_noise = n.recent_noise;
  }
}

// The share of the next point in the average.
__device__ double share_of(const Learned& n, const Settings& s) { return (s.power + 1.0) / (n.remembered + s.power + 1.0); }

// a, or `first` at the first step.
__device__ double next_size(const Learned& n, const Settings& s, double first) {
  double a = n.size > 0.0 ? GROWTH * n.size : first, c = share_of(n, s), beta = s.momentum;
  double middle = (2.0 - c) / (2.0 * (1.0 - beta) + c * (2.0 * beta - 1.0));
  if (n.curvature > 0.0) a = fmin(a, s.gamma * middle * n.trust / n.curvature);
  if (n.accepted >= FEW && n.noise > 0.0)
    a = fmin(a, s.noise * sqrt(n.distance / (n.noise * sqrt(n.accepted + 1.0))));
  return a;
}

// After a trial that shows the curvature `seen`: κ.
__device__ void learn_curvature(Learned& n, double seen) {
  double known = n.curvature;
  if (known > 0.0) {
    double share = MEMORY / (n.accepted + MEMORY), h = fmin(fmax(seen, 0.0), OUTLIER * known);
    n.mean_curvature += share * (h - n.mean_curvature);
    n.square_curvature += share * (h * h - n.square_curvature);
    // A mean of 0 shows no curvature: it is not known again.
    n.curvature = n.mean_curvature > 0.0 ? n.square_curvature / n.mean_curvature : 0.0;
  } else if (seen > 0.0) {
    n.curvature = n.mean_curvature = seen;
    n.square_curvature = seen * seen;
  }
}

// After an accepted step: γₖ.
__device__ void learn_trust(Learned& n, double balance) {
  n.balance += fmin(fmax(balance, -OUTLIER), OUTLIER);
  n.balances += 1.0;
  if (n.balances < fmax(WINDOW, n.accepted / MEMORY)) return;
  double mean = n.balance / n.balances;
  if (mean > CIRCLES && n.recent_noise < VANISHES * n.noise) {
    n.trust *= 0.5;
  } else if (mean < ADVANCES) {
    n.trust = fmin(sqrt(2.0) * n.trust, 1.0);
  }
  n.balance = n.balances = 0.0;
}

// Accepts or rejects, and learns. `slope` is gᵀΔ, `square` is ΔᵀDΔ.
__device__ Verdict judge(const Proposal& p, const Settings& s, double f0, double f1, double slope, double square) {
  const Numbers& known = p.known;
  double beyond = f1 - f0 - slope, rounding = s.rounding * fabs(f0), kappa = known.curvature;
  bool ended = s.stops > 0.0 && known.broken > 0.0, fine = is_finite(f0 + p.squared_norm);
  bool tried = fine && p.squared_norm > 0.0 && !ended;
  // Every comparison with NaN is false: a trial that is not finite is rejected and teaches nothing.
  bool real = is_finite(beyond), sees = fabs(beyond) > 2.0 * rounding && square > 0.0 && real && tried;
  double seen = 2.0 * beyond / square;
  bool expected = kappa > 0.0 && sees && seen <= OUTLIER * kappa;
  bool accept = (f1 <= f0 + rounding || expected) && real && tried;
  // If f is not finite at y, z returns to the average. If y was there already, nothing changes.
  bool overflow = s.scaled > 0.0 && is_finite(f0), averaged = known.at_average > 0.0;
  bool fails = !fine && !overflow, retreats = fails && !averaged && !ended;
  Numbers n = accept ? p.measured : known;
  if (sees) learn_curvature(n, seen);
  n.size = accept ? p.a : tried ? p.a / SHRINK : retreats ? known.size / SHRINK : known.size;
  n.at_average = retreats || (averaged && !accept);
  n.steps = known.steps + 1.0;
  n.broken = (fails && averaged) || ended ? known.broken + 1.0 : 0.0;
  if (accept) {
    n.accepted += 1.0;
    n.remembered += 1.0;
    learn_trust(n, p.b);
  }
  return {accept, retreats, n};
}

__device__ Real lerp(Real from, Real to, Real share) {
  return share < Real(0.5) ? from + share * (to - from) : to - (to - from) * (Real(1) - share);
}

// Adds the numbers of all threads. Thread 0 has the sums.
template <int N>
__device__ void add_threads(double (&sums)[N]) {
  __shared__ double of_warp[kWarps][N];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  __syncthreads();
  for (int i = 0; i < N; i++) {
    for (int step = 16; step > 0; step /= 2) sums[i] += __shfl_down_sync(~0u, sums[i], step);
    if (lane == 0) of_warp[warp][i] = sums[i];
  }
  __syncthreads();
  if (threadIdx.x == 0)
    for (int i = 0; i < N; i++)
      for (int w = 1; w < kWarps; w++) sums[i] += of_warp[w][i];
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

// The root of the mean of g∘g, D, and the new z.
__device__ Real new_root(Real root, Real g, const Settings& s) {
  return hypot(root * static_cast<Real>(sqrt(s.beta2)), g * static_cast<Real>(sqrt(1.0 - s.beta2)));
}
__device__ Real metric(Real root, double correction, double floor) {
  return root * static_cast<Real>(correction) + static_cast<Real>(floor);
}
__device__ Real new_z(Real z, Real g, Real D, double a, Real decay) {
  return (z - static_cast<Real>(a) * (g / D)) / (Real(1) + static_cast<Real>(a) * decay);
}

// ‖g‖², and the sum of the new root.
extern "C" __global__ void auto_gradient(In gradient, In root, const Settings* settings, double* shares, int count) {
  Settings s = *settings;
  double sums[2] = {};
  FOR_EACH_ELEMENT(i) {
    double g = gradient[i];
    sums[0] += g * g;
    sums[1] += new_root(root[i], gradient[i], s);
  }
  write_share(sums, shares);
}

// ‖y − x₀‖² in D, ‖g − gₗₐₛₜ‖² and ‖g‖² in D⁻¹, gᵀ(z − x).
extern "C" __global__ void auto_metric(In gradient, In root, In x, In z, In start, In last, const Settings* settings,
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
  double sums[4] = {};
  FOR_EACH_ELEMENT(i) {
    Real g = gradient[i], D = metric(new_root(root[i], g, s), correction, floor);
    double moved = lerp(z[i], x[i], static_cast<Real>(s.momentum)) - start[i], change = g - last[i];
    sums[0] += moved * moved * D;
    sums[1] += change * change / D;
    sums[2] += g * (g / D);
    sums[3] += static_cast<double>(g) * (z[i] - x[i]);
  }
  write_share(sums, shares);
}

// Chooses a, writes the trial y', and adds gᵀΔ, ‖Δ‖² in D, and ‖Δ‖².
extern "C" __global__ void auto_propose(Out y, In gradient, In root, In x, In z, In decay, const Settings* settings,
                                        const Numbers* numbers, const double* value, const double* before,
                                        double* shares, Proposal* proposal, int count) {
  __shared__ double a, c, correction, floor;
  Settings s = *settings;
  double totals[4];
  read_shares(totals, before);
  if (threadIdx.x == 0) {
    Numbers n = *numbers;
    measure(n, totals[0], 0.5 * totals[1]);
    double f0 = *value;
    a = next_size(n, s, FIRST * (f0 == 0.0 ? 1.0 : fabs(f0)) / totals[2]);
    c = share_of(n, s);
    correction = proposal->correction;
    floor = proposal->floor;
    if (blockIdx.x == 0) {
      proposal->known = *numbers;
      proposal->measured = n;
      proposal->a = a;
      proposal->c = c;
      proposal->b = totals[3] / (a * totals[2]);
    }
  }
  __syncthreads();
  double sums[3] = {};
  Real momentum = static_cast<Real>(s.momentum);
  int stride = static_cast<int>(s.decay_stride);
  FOR_EACH_ELEMENT(i) {
    Real g = gradient[i], D = metric(new_root(root[i], g, s), correction, floor);
    Real z1 = new_z(z[i], g, D, a, decay[i * stride]);
    Real trial = lerp(z1, lerp(x[i], z1, static_cast<Real>(c)), momentum);
    double delta = trial - lerp(z[i], x[i], momentum);
    y[i] = trial;
    sums[0] += g * delta;
    sums[1] += delta * delta * D;
    sums[2] += delta * delta;
  }
  write_share(sums, shares);
}

// Accepts or rejects, learns, and keeps the new or the old vectors. If there is a table, it writes a record.
extern "C" __global__ void auto_judge(In gradient, Out root, Out x, Out z, Out last, In decay, const Settings* settings,
                                      Numbers* numbers, const double* value, const double* trial, const double* before,
                                      const Proposal* proposal, double* table, long long* next, int count) {
  __shared__ bool accept, retreats;
  Settings s = *settings;
  double totals[3];
  read_shares(totals, before);
  Proposal p = *proposal;
  if (threadIdx.x == 0) {
    Verdict verdict = judge(p, s, *value, *trial, totals[0], totals[1]);
    accept = verdict.accept;
    retreats = verdict.retreats;
    if (blockIdx.x == 0) {
      *numbers = verdict.numbers;
      if (table) {
        double fine = is_finite(*value + p.squared_norm), broken = verdict.numbers.broken > 0.0;
        double row[7] = {*value, p.squared_norm, p.a, sqrt(totals[2]), double(accept), fine, broken};
        for (int i = 0; i < 7; i++) table[*next * 7 + i] = row[i];
        *next += 1;
      }
    }
  }
  __syncthreads();
  if (!accept && !retreats) return;
  int stride = static_cast<int>(s.decay_stride);
  FOR_EACH_ELEMENT(i) {
    if (retreats) {
      z[i] = x[i];
      continue;
    }
    Real g = gradient[i], root1 = new_root(root[i], g, s), D = metric(root1, p.correction, p.floor);
    Real z1 = new_z(z[i], g, D, p.a, decay[i * stride]);
    x[i] = lerp(x[i], z1, static_cast<Real>(p.c));
    z[i] = z1;
    root[i] = root1;
    last[i] = g;
  }
}
