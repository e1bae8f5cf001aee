//! Runs whose truth is known by construction. Each says what it was made to be; no verdict was looked at to choose it.

use strust_lab::analyze::diagnose::RunVerdict::{
    self, BrokeDown, Converged, Infeasible, Overfits, StillImproving, Stuck, TooEarly, TooSlow, Unclear, Unstable,
};

/// A run and the verdicts that are right for it.
pub struct Case {
    pub name: &'static str,
    pub truth: &'static [RunVerdict],
    /// `[[problem]]`, without the heading. `BAD_SCALES` and names with an `@` are replaced by data files.
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

macro_rules! loss {
    ($scale:literal) => {
        concat!("kind = \"least-squares\"\nn = 60\nd = 6\nscale = ", $scale)
    };
}
macro_rules! data {
    ($kind:literal, $file:literal) => {
        concat!("kind = \"", $kind, "\"\ndata = \"", $file, "\"")
    };
}
macro_rules! sgd {
    ($rate:literal) => {
        concat!("name = \"sgd\"\nlearning_rate = ", $rate)
    };
}
const AUTO: &str = "name = \"auto\"";

/// Losses and data from 1e-200 to 1e200. A rate that follows the scale makes the run of scale 1.
#[rustfmt::skip]
pub const SCALES: &[Case] = &[
    case("loss 1e-150, rate 1e150", &[Converged], loss!("1e-150"), sgd!("1e150"), (40, 6, 0)),
    case("loss 1e-75, rate 1e75", &[Converged], loss!("1e-75"), sgd!("1e75"), (40, 6, 1)),
    case("loss 1e75, rate 1e-75", &[Converged], loss!("1e75"), sgd!("1e-75"), (40, 6, 2)),
    case("loss 1e150, rate 1e-150", &[Converged], loss!("1e150"), sgd!("1e-150"), (40, 6, 3)),
    case("loss 1e-150, early", &[StillImproving], loss!("1e-150"), sgd!("2e149"), (15, 6, 0)),
    case("loss 1e150, early", &[StillImproving], loss!("1e150"), sgd!("2e-151"), (15, 6, 0)),
    case("loss 1e-150, auto", &[Converged], loss!("1e-150"), AUTO, (40, 6, 0)),
    case("loss 1e150, auto", &[Converged], loss!("1e150"), AUTO, (40, 6, 1)),
    case("loss 1e-150, sgd", &[TooSlow], loss!("1e-150"), sgd!("1.0"), (12, 6, 0)),
    case("loss 1e-75, sgd", &[TooSlow], loss!("1e-75"), sgd!("1.0"), (12, 6, 1)),
    case("loss 1e75, sgd", &[BrokeDown], loss!("1e75"), sgd!("1.0"), (12, 6, 2)),
    case("loss 1e150, sgd", &[BrokeDown], loss!("1e150"), sgd!("1.0"), (12, 6, 3)),
    case("loss 1e300, sgd", &[BrokeDown], loss!("1e300"), sgd!("1.0"), (12, 6, 4)),
    case("loss 1e-300, sgd", &[BrokeDown], loss!("1e-300"), sgd!("1.0"), (12, 6, 5)),
    case("loss 1e-320, sgd", &[BrokeDown], loss!("1e-320"), sgd!("1.0"), (12, 6, 6)),
    case("loss 1e-150, str", &[TooSlow], loss!("1e-150"), "name = \"str\"", (12, 6, 0)),
    case("loss 1e-150, sls", &[TooSlow], loss!("1e-150"), "name = \"sls\"", (12, 6, 1)),
    case("loss 1e-150, adam", &[TooSlow], loss!("1e-150"), "name = \"adam\"\nlearning_rate = 0.1", (12, 6, 2)),
    case("loss 1e-300, str", &[BrokeDown], loss!("1e-300"), "name = \"str\"", (12, 6, 3)),
    // No number of an f32 network is as small as its gradients.
    case("network, loss 1e-150", &[Unclear, TooSlow, Stuck], "kind = \"mlp\"\nhidden = \"8\"\nscale = 1e-150", sgd!("0.1"), (5, 64, 0)),
    case("data 1e-75, rate 1e149", &[Converged], data!("least-squares", "numbers@1e-75"), sgd!("1e149"), (40, 6, 0)),
    case("data 1e75, rate 1e-151", &[Converged], data!("least-squares", "numbers@1e75"), sgd!("1e-151"), (40, 6, 1)),
    case("data 1e-75, auto", &[Converged], data!("least-squares", "numbers@1e-75"), AUTO, (40, 6, 0)),
    case("data 1e75, auto", &[Converged], data!("least-squares", "numbers@1e75"), AUTO, (40, 6, 1)),
    case("data 1e-75, sgd", &[TooSlow], data!("least-squares", "numbers@1e-75"), sgd!("0.1"), (12, 6, 0)),
    case("data 1e-150, sgd", &[BrokeDown], data!("least-squares", "numbers@1e-150"), sgd!("0.1"), (12, 6, 1)),
    case("data 1e75, sgd", &[BrokeDown], data!("least-squares", "numbers@1e75"), sgd!("0.1"), (12, 6, 2)),
    case("data 1e150, sgd", &[BrokeDown], data!("least-squares", "numbers@1e150"), sgd!("0.1"), (12, 6, 3)),
    case("data 1e-200, sgd", &[Unclear], data!("least-squares", "numbers@1e-200"), sgd!("0.1"), (12, 6, 4)),
    case("data 1e-200, auto", &[Unclear], data!("least-squares", "numbers@1e-200"), AUTO, (12, 6, 5)),
    case("data 1e-200, str", &[Unclear], data!("least-squares", "numbers@1e-200"), "name = \"str\"", (12, 6, 6)),
    // Only the features: the solution is 1/scale.
    case("inputs 1e-75, sgd", &[TooSlow, Stuck], data!("least-squares", "inputs@1e-75"), sgd!("0.1"), (12, 6, 0)),
    case("inputs 1e-150, sgd", &[TooSlow, Stuck], data!("least-squares", "inputs@1e-150"), sgd!("0.1"), (12, 6, 1)),
    case("inputs 1e-150, str", &[TooSlow, Stuck], data!("least-squares", "inputs@1e-150"), "name = \"str\"", (12, 6, 2)),
    case("inputs 1e-150, auto", &[Converged], data!("least-squares", "inputs@1e-150"), AUTO, (12, 6, 3)),
    case("inputs 1e75, rate 1e-151", &[Converged], data!("least-squares", "inputs@1e75"), sgd!("1e-151"), (40, 6, 4)),
    case("classes 1e-75, sgd", &[TooSlow, Stuck], data!("logistic", "classes@1e-75"), sgd!("0.1"), (12, 6, 0)),
    case("classes 1e-150, sgd", &[TooSlow, Stuck], data!("logistic", "classes@1e-150"), sgd!("0.1"), (12, 6, 1)),
    case("classes 1e-150, adam", &[TooSlow, Stuck], data!("softmax", "classes@1e-150"), "name = \"adam\"", (12, 6, 2)),
    case("classes 1e-150, auto", &[StillImproving], data!("logistic", "classes@1e-150"), AUTO, (12, 6, 3)),
];

/// Runs of few epochs. At the rate 0.05 the error of `LS` falls by about 6 % an epoch.
#[rustfmt::skip]
pub const SHORT: &[Case] = &[
    case("one epoch", &[TooEarly], LS, sgd!("0.05"), (1, 16, 0)),
    case("two epochs", &[TooEarly], LS, sgd!("0.05"), (2, 16, 1)),
    case("three epochs", &[TooEarly], LS, sgd!("0.05"), (3, 16, 2)),
    case("four epochs", &[TooEarly], LS, sgd!("0.05"), (4, 16, 3)),
    case("three epochs, noise", &[TooEarly], NOISY, sgd!("0.05"), (3, 16, 0)),
    case("four epochs, noise", &[TooEarly], NOISY, sgd!("0.05"), (4, 4, 1)),
    case("three epochs, auto", &[TooEarly], SEPARABLE, AUTO, (3, 16, 0)),
    case("two epochs, pca", &[TooEarly], PCA, "name = \"riemannian\"\nlearning_rate = 0.005", (2, 16, 0)),
    case("two epochs, network", &[TooEarly], MLP, "name = \"adam\"\nlearning_rate = 3e-3", (2, 64, 0)),
    // Six per cent an epoch need about 110 epochs.
    case("five epochs", &[TooSlow], LS, sgd!("0.05"), (5, 16, 0)),
    case("six epochs, noise", &[TooSlow], NOISY, sgd!("0.05"), (6, 16, 0)),
    case("twenty epochs", &[StillImproving], LS, sgd!("0.05"), (20, 16, 0)),
    // One unknown, so every step halves the error or more.
    case("converged in two epochs", &[Converged], "kind = \"least-squares\"\nn = 200\nd = 1", sgd!("0.5"), (2, 8, 0)),
    case("broke down in one epoch", &[BrokeDown], LS, sgd!("1e200"), (1, 16, 0)),
];

const LEARNED: &str = "kind = \"logistic\"\nn = 200\nd = 60\ntest_share = 0.5\nwrong_labels = 0.2";
const FEW: &str = "kind = \"logistic\"\nn = 80\nd = 100\ntest_share = 0.5";
const KERNEL: &str =
    "kind = \"logistic\"\nn = 120\nd = 10\ntest_share = 0.5\nkernel = \"rbf\"\nbandwidth = 0.2\nregularization = 1e-3";
const ENOUGH: &str = "kind = \"logistic\"\nn = 600\nd = 5\ntest_share = 0.3\nregularization = 0.01";

/// Wrong labels that are learned, or more unknowns than rows: the training set is fitted and the test set is not. And the
/// opposite.
#[rustfmt::skip]
pub const FITS: &[Case] = &[
    case("overfits, sgd", &[Overfits], LEARNED, sgd!("1.0"), (100, 8, 0)),
    case("overfits, auto", &[Overfits], LEARNED, AUTO, (60, 8, 1)),
    case("overfits, sls", &[Overfits], LEARNED, "name = \"sls\"", (60, 8, 2)),
    case("overfits, full batch", &[Overfits], LEARNED, AUTO, (100, 100, 3)),
    case("overfits, softmax", &[Overfits], "kind = \"softmax\"\ndata = \"noisy-classes@1\"\ntest_share = 0.5", AUTO, (60, 8, 0)),
    case("overfits, few rows", &[Overfits], FEW, sgd!("2.0"), (60, 8, 0)),
    case("overfits, few rows, auto", &[Overfits], FEW, AUTO, (60, 8, 1)),
    case("overfits, kernel", &[Overfits], KERNEL, AUTO, (60, 8, 0)),
    case("overfits, squares", &[Overfits], "kind = \"least-squares\"\ndata = \"wide-numbers@1\"\ntest_share = 0.5", sgd!("0.01"), (60, 8, 0)),
    case("overfits, squares, auto", &[Overfits], "kind = \"least-squares\"\ndata = \"wide-numbers@1\"\ntest_share = 0.5", AUTO, (60, 8, 0)),
    case("fits, logistic", &[Converged], ENOUGH, AUTO, (150, 420, 0)),
    case("fits, squares", &[Converged], "kind = \"least-squares\"\ndata = \"numbers@1\"\ntest_share = 0.3", sgd!("0.1"), (60, 6, 0)),
    case("fits, early", &[StillImproving], "kind = \"logistic\"\nn = 600\nd = 5\ntest_share = 0.3", sgd!("0.5"), (10, 16, 0)),
    case("fits, digits", &[StillImproving], "kind = \"softmax\"", AUTO, (5, 64, 0)),
];
