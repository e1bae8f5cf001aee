//! All constants of STR-SQP. None has a unit. docs/evidence/constraints.md shows what happens if one is three times as large or as
//! small.

/// A share that counts as small. A trial is accepted above this ratio of the actual to the predicted reduction. Inner
/// iterations are accurate to this share of what the outer one needs, and so on.
pub(super) const SMALL: f64 = 0.1;
/// Below this ratio the rows' curvature is corrected, and the region of steps with products shrinks.
pub(super) const POOR: f64 = 0.25;
/// A step is good if it achieves this share: of the predicted reduction, or of the violation that can be removed.
pub(super) const GOOD: f64 = 0.5;
/// Numbers that are wrong change by this factor: σ, π, the region. So two growths of the region, by its root each, undo one
/// reduction.
pub(super) const FACTOR: f64 = 4.0;
/// The first σ, in multiples of the model's curvature along the step.
pub(super) const STIFF: f64 = 0.5;
/// A share that counts as nothing: of slopes, multipliers and violations, and of the multipliers' error on mini-batches, which
/// the next step corrects. Rows have slope 1 at the start.
pub(super) const NEGLIGIBLE: f64 = 1e-6;
/// A ratio that counts as unbounded: of multipliers that still grow to the largest ‖∇f‖, of a negative curvature to B's, of
/// the penalty that a step needs to the present one.
pub(super) const UNBOUNDED: f64 = 1e3;
/// The relative error of the multipliers of many rows.
pub(super) const ACCURACY: f64 = 1e-13;
/// Numbers up to this many rounding errors count as 0.
pub(super) const ROUNDING: f64 = 10.0;

/// Attempts before a step gives up: trials, raises of the penalty, directions out of a saddle point of the violation.
pub(super) const TRIALS: u64 = 40;
/// Rounds of the dual's solvers, which end by themselves.
pub(super) const ROUNDS: usize = 300;
/// Up to this many rows and finite bounds, A and AHAᵀ are formed. Beyond, they are known by their products only.
pub(super) const FORMED: usize = 24;
/// Up to this many unknowns, and rows and finite bounds, B is a matrix and A is formed in steps on all terms. A step then
/// costs O(n³ + n²m) operations.
pub(super) const DENSE: usize = 300;
pub(super) const DENSE_ROWS: usize = 3000;
/// Passes over the slopes that find the units of coordinates.
pub(super) const PASSES: usize = 3;
/// Vectors of random signs, to estimate the slope of many rows.
pub(super) const PROBES: u64 = 4;
/// Pairs that B keeps.
pub(super) const PAIRS: usize = 10;
/// A pair with less curvature than this share of B's along the step is damped (Powell 1978).
pub(super) const DAMPED: f64 = 0.2;

/// Passes with mini-batches before the full sum is first tried. It is tried again whenever their number has doubled.
pub(super) const FIRST_PASSES: u64 = 4;
/// Steps on the full sum before they are judged: the model needs some to learn its curvature.
pub(super) const UNJUDGED: u64 = 3;
/// Power of the weights of the average: step k counts in proportion to kʳ.
pub(super) const POWER: f64 = 3.0;
/// The latest level of the noise is a mean over about this many steps. The one before is over [`FACTOR`] times as many.
pub(super) const LATEST: f64 = 5.0;
/// At most this many Newton steps move the answer back onto the constraints. They converge quadratically. Two suffice where
/// x is already close; the first steps of a run may need a third.
pub(super) const RESTORE: usize = 3;
