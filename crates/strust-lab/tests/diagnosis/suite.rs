//! Runs whose truth is known by construction. Each says what it was made to be; no verdict was looked at to choose it.

use strust_lab::analyze::diagnose::RunVerdict::{
    self, BrokeDown, Converged, Infeasible, StillImproving, Stuck, TooSlow, Unstable,
};

/// A run and the verdicts that are right for it.
pub struct Case {
    pub name: &'static str,
    pub truth: &'static [RunVerdict],
    /// `[[problem]]`, without the heading. `BAD_SCALES` is replaced by a data file.
    pub problem: &'static str,
    /// `[[method]]`, without the heading.
    pub method: &'static str,
    pub epochs: u64,
    pub batch: u64,
    pub seed: u64,
}

const fn case(
    name: &'static str,
    truth: &'static [RunVerdict],
    problem: &'static str,
    method: &'static str,
    (epochs, batch, seed): (u64, u64, u64),
) -> Case {
    Case { name, truth, problem, method, epochs, batch, seed }
}

const LS: &str = "kind = \"least-squares\"\nn = 200\nd = 20";
const NOISY: &str = "kind = \"least-squares\"\nn = 200\nd = 20\nnoise = 1.0";
const LOGISTIC: &str = "kind = \"logistic\"\nn = 200\nd = 10\nwrong_labels = 0.2\nregularization = 0.01";
const SEPARABLE: &str = "kind = \"logistic\"\nn = 200\nd = 10";
const SUBSPACE: &str = "kind = \"subspace\"\nd = 20\nk = 2\nn = 200";
const PCA: &str = "kind = \"pca\"\nd = 15\nk = 2\nn = 300";
const PROCRUSTES: &str = "kind = \"procrustes\"";
const MLP: &str = "kind = \"mlp\"\nhidden = \"8\"";
const UNSCALED: &str = "kind = \"logistic\"\nregularization = 1e-4\ndata = \"BAD_SCALES\"";
const UNSCALED_SOFTMAX: &str = "kind = \"softmax\"\nregularization = 1e-4\ndata = \"BAD_SCALES\"";

/// The runs with which the diagnosis was developed.
#[rustfmt::skip]
pub const DEVELOPMENT: &[Case] = &[
    // Made to be right: rates near 1/L or default methods, on problems that interpolate or on full batches.
    case("sgd, right", &[Converged], LS, "name = \"sgd\"\nlearning_rate = 0.2", (60, 16, 0)),
    case("adam, right", &[Converged], LS, "name = \"adam\"\nlearning_rate = 0.05\nschedule = \"cosine\"", (100, 16, 0)),
    case("sls, right", &[Converged], LS, "name = \"sls\"", (60, 16, 0)),
    case("str, right", &[Converged], LS, "name = \"str\"", (60, 16, 0)),
    case("auto, right", &[Converged], LS, "name = \"auto\"", (60, 16, 0)),
    case("str-p, right", &[Converged], SUBSPACE, "name = \"str-p\"", (60, 16, 0)),
    case("str-sqp, right", &[Converged], PCA, "name = \"str-sqp\"", (100, 300, 0)),
    case("sgd-proj, right", &[Converged], SUBSPACE, "name = \"sgd-proj\"\nlearning_rate = 0.5", (60, 16, 0)),
    case("riemannian, right", &[Converged], SUBSPACE, "name = \"riemannian\"\nlearning_rate = 0.5", (60, 16, 0)),
    case("auto, full batch", &[Converged], LOGISTIC, "name = \"auto\"", (200, 200, 0)),
    // Steps made far too short.
    case("sgd 1e-6", &[TooSlow], LS, "name = \"sgd\"\nlearning_rate = 1e-6", (20, 16, 0)),
    case("adam 1e-6", &[TooSlow], LS, "name = \"adam\"\nlearning_rate = 1e-6", (20, 16, 0)),
    case("sls 1e-6", &[TooSlow], LS, "name = \"sls\"\nmax_step = 1e-6", (20, 16, 0)),
    case("sgd 1e-5, full batch", &[TooSlow], LS, "name = \"sgd\"\nlearning_rate = 1e-5", (40, 200, 0)),
    case("sgd 1e-5 on logistic", &[TooSlow], LOGISTIC, "name = \"sgd\"\nlearning_rate = 1e-5", (20, 16, 0)),
    case("riemannian 1e-6", &[TooSlow], SUBSPACE, "name = \"riemannian\"\nlearning_rate = 1e-6", (20, 16, 0)),
    case("sgd-proj 1e-6", &[TooSlow], PCA, "name = \"sgd-proj\"\nlearning_rate = 1e-6", (20, 16, 0)),
    case("auglag 1e-6", &[TooSlow], SUBSPACE, "name = \"auglag\"\nlearning_rate = 1e-6", (20, 16, 0)),
    case("landing 1e-6", &[TooSlow], PCA, "name = \"landing\"\nlearning_rate = 1e-6", (20, 16, 0)),
    case("small radius", &[TooSlow], LS, "name = \"str\"\ninitial_radius = 1e-4\nmax_radius = 1e-4", (20, 16, 0)),
    case("flat loss", &[TooSlow], "kind = \"least-squares\"\nn = 200\nd = 20\nscale = 1e-4", "name = \"str\"", (20, 16, 0)),
    case("adam 1e-4", &[TooSlow], LS, "name = \"adam\"\nlearning_rate = 1e-4", (20, 16, 0)),
    case("sgd 1e-5 on a network", &[TooSlow], MLP, "name = \"sgd\"\nlearning_rate = 1e-5", (5, 64, 0)),
    // Steps made far too long.
    case("sgd 1000", &[BrokeDown], LS, "name = \"sgd\"\nlearning_rate = 1000.0", (40, 16, 0)),
    case("sgd 40", &[Unstable], LS, "name = \"sgd\"\nlearning_rate = 40.0", (5, 16, 0)),
    case("sgd-proj 50", &[Unstable], SUBSPACE, "name = \"sgd-proj\"\nlearning_rate = 50.0", (30, 16, 0)),
    case("riemannian 50", &[Unstable], PCA, "name = \"riemannian\"\nlearning_rate = 50.0", (30, 16, 0)),
    case("adam 10", &[Unstable], LS, "name = \"adam\"\nlearning_rate = 10.0", (30, 16, 0)),
    case("landing 5", &[BrokeDown, Unstable], PCA, "name = \"landing\"\nlearning_rate = 5.0", (20, 16, 0)),
    case("auglag 10", &[BrokeDown], SUBSPACE, "name = \"auglag\"\nlearning_rate = 10.0", (20, 16, 0)),
    case("adam 50 on logistic", &[Unstable], LOGISTIC, "name = \"adam\"\nlearning_rate = 50.0", (30, 16, 0)),
    // Constant steps on data with noise.
    case("sgd, noise", &[Stuck], NOISY, "name = \"sgd\"\nlearning_rate = 2.0", (80, 4, 0)),
    case("sls, noise", &[Stuck], NOISY, "name = \"sls\"", (80, 4, 0)),
    case("str, noise", &[Stuck], NOISY, "name = \"str\"", (80, 4, 0)),
    case("adam, noise", &[Stuck], NOISY, "name = \"adam\"\nlearning_rate = 0.1", (80, 4, 0)),
    case("sgd, wrong labels", &[Stuck], LOGISTIC, "name = \"sgd\"\nlearning_rate = 0.5", (80, 4, 0)),
    // Features of very different size, at the rate 1/L or with the default.
    case("sgd, unscaled", &[TooSlow], UNSCALED, "name = \"sgd\"\nlearning_rate = 1e-7", (30, 16, 0)),
    case("str, unscaled", &[TooSlow, Stuck], UNSCALED_SOFTMAX, "name = \"str\"", (30, 16, 0)),
    case("sgd, ill-conditioned", &[TooSlow], "kind = \"least-squares\"\nn = 200\nd = 20\ncondition = 1e6", "name = \"sgd\"\nlearning_rate = 0.3", (40, 16, 0)),
    // Penalties that are too large or too small, and methods that ignore the constraint.
    case("penalty 1e4", &[TooSlow], "kind = \"subspace\"\nd = 100\nk = 5\nn = 300", "name = \"str-p\"\npenalty = 1e4", (15, 32, 0)),
    case("penalty 1e6", &[TooSlow], PCA, "name = \"str-p\"\npenalty = 1e6", (30, 16, 0)),
    case("penalty 0.5", &[Infeasible], PCA, "name = \"str-p\"\npenalty = 0.5", (60, 300, 0)),
    case("penalty 0.1", &[Infeasible], PROCRUSTES, "name = \"str-p\"\npenalty = 0.1", (60, 16, 0)),
    case("auglag, no multipliers", &[Infeasible], PCA, "name = \"auglag\"\npenalty = 1.0\ngrowth = 1.0\ndamping = 1e-4\nlearning_rate = 0.1", (60, 300, 0)),
    case("auto ignores", &[Infeasible], PROCRUSTES, "name = \"auto\"", (30, 16, 0)),
    case("sgd ignores", &[Infeasible], PCA, "name = \"sgd\"\nlearning_rate = 0.01", (20, 16, 0)),
    // A radius that cannot grow again. The last one also has a penalty that is too small.
    case("frozen", &[Stuck], NOISY, "name = \"str\"\ngrow = 1.0001", (60, 4, 0)),
    case("frozen, exact", &[Stuck], LS, "name = \"str\"\ninitial_radius = 1e-4\ngrow = 1.0001", (20, 16, 0)),
    case("frozen, steep", &[Stuck], "kind = \"least-squares\"\nn = 200\nd = 20\nnoise = 1.0\nscale = 100.0", "name = \"str\"\ngrow = 1.0001", (60, 4, 0)),
    case("frozen, penalty", &[Stuck, Infeasible], PCA, "name = \"str-p\"\ngrow = 1.0001\npenalty = 10.0\ninitial_radius = 5.0", (60, 4, 0)),
    // Good runs that were stopped early.
    case("sgd, early", &[StillImproving], LS, "name = \"sgd\"\nlearning_rate = 0.2", (15, 16, 0)),
    case("riemannian, early", &[StillImproving], SUBSPACE, "name = \"riemannian\"\nlearning_rate = 0.005", (10, 16, 0)),
    case("auto, early", &[StillImproving], SEPARABLE, "name = \"auto\"", (10, 16, 0)),
    case("network, early", &[StillImproving], MLP, "name = \"adam\"\nlearning_rate = 3e-3", (5, 64, 0)),
];

const LS2: &str = "kind = \"least-squares\"\nn = 120\nd = 30";
const NOISY2: &str = "kind = \"least-squares\"\nn = 300\nd = 10\nnoise = 2.0";
const SUBSPACE2: &str = "kind = \"subspace\"\nd = 30\nk = 3\nn = 300";
const PCA2: &str = "kind = \"pca\"\nd = 25\nk = 3\nn = 200";
const CONSTRAINED_LOGISTIC: &str = "kind = \"constrained-logistic\"";
const FACTORIZATION: &str = "kind = \"factorization\"\nm = 30\nn = 20\nrank = 2\nwidth = 4";
const SOFTMAX: &str = "kind = \"softmax\"\nregularization = 0.01";
const TANH: &str = "kind = \"mlp\"\nhidden = \"8\"\nactivation = \"tanh\"\nprecision = \"f64\"";

/// Other problems and seeds, held out for the final count.
#[rustfmt::skip]
pub const HELD_OUT: &[Case] = &[
    case("sgd, right 2", &[Converged], LS2, "name = \"sgd\"\nlearning_rate = 3.0", (150, 16, 3)),
    case("ponos, right", &[Converged], LS2, "name = \"ponos\"", (150, 16, 4)),
    case("auto, right 2", &[Converged], LS2, "name = \"auto\"", (150, 16, 5)),
    case("str-p, right 2", &[Converged], SUBSPACE2, "name = \"str-p\"", (60, 16, 6)),
    case("str-sqp, right 2", &[Converged], CONSTRAINED_LOGISTIC, "name = \"str-sqp\"", (100, 100, 7)),
    case("landing, right", &[Converged], SUBSPACE2, "name = \"landing\"\nlearning_rate = 0.2", (100, 16, 8)),
    case("adam, right 2", &[Converged], LS2, "name = \"adam\"\nlearning_rate = 0.05\nschedule = \"cosine\"", (200, 16, 9)),
    case("sgd 1e-6, 2", &[TooSlow], FACTORIZATION, "name = \"sgd\"\nlearning_rate = 1e-6", (20, 8, 3)),
    case("adam 1e-6, 2", &[TooSlow], SOFTMAX, "name = \"adam\"\nlearning_rate = 1e-6", (5, 64, 4)),
    case("sls 1e-6, 2", &[TooSlow], LOGISTIC, "name = \"sls\"\nmax_step = 1e-6", (20, 16, 5)),
    case("ponos 1e-6", &[TooSlow], LS2, "name = \"ponos\"\nmax_step = 1e-6\nmin_step = 1e-7", (20, 16, 6)),
    case("schedule-free 1e-6", &[TooSlow], LS2, "name = \"schedule-free-sgd\"\nlearning_rate = 1e-6", (20, 16, 7)),
    case("riemannian 1e-6, 2", &[TooSlow], PCA2, "name = \"riemannian\"\nlearning_rate = 1e-6", (20, 16, 8)),
    case("landing 1e-6, 2", &[TooSlow], PROCRUSTES, "name = \"landing\"\nlearning_rate = 1e-6", (20, 16, 9)),
    case("small radius 2", &[TooSlow], LOGISTIC, "name = \"str\"\ninitial_radius = 1e-4\nmax_radius = 1e-4", (20, 16, 10)),
    case("network 1e-6", &[TooSlow], TANH, "name = \"adam\"\nlearning_rate = 1e-6", (5, 64, 11)),
    case("sgd 1000, 2", &[BrokeDown], FACTORIZATION, "name = \"sgd\"\nlearning_rate = 1000.0", (40, 8, 3)),
    case("sgd-proj 50, 2", &[Unstable], PCA2, "name = \"sgd-proj\"\nlearning_rate = 50.0", (30, 16, 4)),
    case("riemannian 50, 2", &[Unstable], SUBSPACE2, "name = \"riemannian\"\nlearning_rate = 50.0", (30, 16, 5)),
    case("adam 10, 2", &[Unstable], LS2, "name = \"adam\"\nlearning_rate = 10.0", (30, 16, 6)),
    case("sgd, full batch, 100", &[Unstable, BrokeDown], LS2, "name = \"sgd\"\nlearning_rate = 100.0", (30, 120, 7)),
    case("sgd, noise 2", &[Stuck], NOISY2, "name = \"sgd\"\nlearning_rate = 0.2", (80, 4, 3)),
    case("sls, noise 2", &[Stuck], NOISY2, "name = \"sls\"", (80, 4, 4)),
    case("str, noise 2", &[Stuck], NOISY2, "name = \"str\"", (80, 4, 5)),
    case("adam, noise 2", &[Stuck], NOISY2, "name = \"adam\"\nlearning_rate = 0.1", (80, 4, 6)),
    case("sls, unscaled", &[TooSlow, Stuck], UNSCALED, "name = \"sls\"", (30, 16, 3)),
    case("sgd, unscaled softmax", &[TooSlow], UNSCALED_SOFTMAX, "name = \"sgd\"\nlearning_rate = 1e-7", (30, 16, 4)),
    case("penalty 1e4, 2", &[TooSlow], "kind = \"subspace\"\nd = 100\nk = 5\nn = 400", "name = \"str-p\"\npenalty = 1e4", (15, 32, 3)),
    case("penalty 1e6, 2", &[TooSlow], SUBSPACE2, "name = \"str-p\"\npenalty = 1e6", (30, 16, 4)),
    case("penalty 1, 2", &[Infeasible], PCA2, "name = \"str-p\"\npenalty = 1.0", (60, 200, 5)),
    case("penalty 0.1, 2", &[Infeasible], CONSTRAINED_LOGISTIC, "name = \"str-p\"\npenalty = 0.01", (60, 100, 6)),
    case("adam ignores", &[Infeasible], PROCRUSTES, "name = \"adam\"\nlearning_rate = 0.05", (40, 16, 7)),
    case("frozen 2", &[Stuck], NOISY2, "name = \"str\"\ngrow = 1.0001", (60, 4, 8)),
    case("sgd, early 2", &[StillImproving], LS2, "name = \"sgd\"\nlearning_rate = 0.5", (20, 16, 3)),
    case("sgd-proj, early", &[StillImproving], SUBSPACE2, "name = \"sgd-proj\"\nlearning_rate = 0.005", (10, 16, 4)),
    case("auto, early 2", &[StillImproving], FACTORIZATION, "name = \"auto\"", (6, 8, 5)),
    case("network, early 2", &[StillImproving], TANH, "name = \"sgd\"\nlearning_rate = 0.2", (5, 64, 6)),
];
