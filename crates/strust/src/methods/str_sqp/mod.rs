//! STR-SQP: equalities, inequalities and bounds by an exact penalty, whose model is minimized through its dual.

mod batch;
mod dual;
mod linear;
mod memory;

pub use batch::BatchMemory;
pub use linear::Bounds;
pub use memory::{Memory, Pair};

use super::{Measurement, Method, evaluate, state};
use crate::{
    Error, config,
    config::{Checked, Config},
    constraints::{Constraint, Sense},
    objective::{Evaluations, Objective, full_value_and_gradient},
    radius::Verdict,
    record::StepRecord,
    sample::Sample,
    stop::StopReason,
    vector::{Vector, saved},
};
use linear::{Linear, LocalModel};
use serde::{Deserialize, Serialize};

config! {
    /// Configuration of [`StrSqp`]. The default is meant for every problem.
    pub struct StrSqpConfig for "str-sqp" {
        /// Relative tolerance of feasibility, of the Lagrangian's gradient and of complementarity.
        pub tolerance: f64 = 1e-8, Number(Range::open(0.0, 1.0));
    }
}

/// A trial is accepted above this ratio of the actual to the predicted reduction.
const ACCEPT: f64 = 0.05;
/// Below this ratio the model becomes stiffer.
const STIFFEN: f64 = 0.1;
/// Above this ratio the model becomes softer.
const SOFTEN: f64 = 0.5;
/// Below this ratio a correction for the constraints' curvature is tried.
const CORRECT: f64 = 0.25;
/// On a mini-batch the correction costs no data, and is always made.
const CORRECT_ALWAYS: bool = true;
/// Trials of one step.
const TRIALS: u64 = 40;
/// π grows by this factor until the step removes enough of the infeasibility.
const RAISE: f64 = 4.0;
/// π becomes this multiple of the multipliers where it is far too large.
const ABOVE: f64 = 5.0;
/// π is far too large above this multiple of the multipliers.
const FAR_ABOVE: f64 = 50.0;
/// The violation cannot be reduced where the smallest slope of v is below this; rows have slope 1 at the start.
const FLAT: f64 = 1e-6;
/// Multipliers above this multiple of the largest ‖∇f‖ count as unbounded; rows have slope 1 at the start.
const UNBOUNDED: f64 = 1e3;

/// Minimizes f(x) subject to equalities, inequalities and bounds, without a penalty to choose.
///
/// With rows scaled by w = 1/‖∇cᵢ(x₀)‖, C = w∘c and A = w∘J, the violation is v(C) = Σ|C_E| + Σmax(0, C_I), and the
/// merit is φ = f + π·v. Bounds hold at every point.
///
/// ```text
/// p minimizes  gᵀp + ½pᵀ(B + σI)p + π·v(C + Ap)  within the bounds. Through its dual, with H = (B + σI)⁻¹:
///     y minimizes  ½yᵀ(AHAᵀ)y + (AHg − C)ᵀy,   y_E ∈ [−π, π], y_I ∈ [0, π], y_bounds ≥ 0;   p = −H(g + Aᵀy)
/// π grows until p removes half of the violation that can be removed
/// ratio = (φ(x) − φ(x+p))/(predicted reduction);   if it is below ¼, once more with C(x+p) − Ap in place of C
/// accept above 0.05;   below 0.1: σ ← max(4σ, ½pᵀBp/pᵀp);   above 0.5: σ ← σ/8
/// ```
///
/// B is limited-memory BFGS of the Lagrangian f + yᵀc. σ plays the radius: it shortens the step.
///
/// ```
/// use strust::prelude::*;
/// // The point on the unit circle nearest to (3, 4).
/// let mut f = from_terms(1, |_, x: &Vec<f64>, g| {
///     let r = [x[0] - 3.0, x[1] - 4.0];
///     g[0] += 2.0 * r[0];
///     g[1] += 2.0 * r[1];
///     r[0] * r[0] + r[1] * r[1]
/// });
/// let mut method = StrSqp::new(StrSqpConfig::default(), Sphere::new(1.0)?)?;
/// let report = minimize(&mut f).method(&mut method).full_batch().start(vec![1.0, 0.0])?;
/// assert!(report.reason.converged() && report.steps < 20);
/// assert!((report.point()[0] - 0.6).abs() < 1e-8 && (report.point()[1] - 0.8).abs() < 1e-8);
/// // ∇f + 2λx = 0
/// assert!((report.state.multipliers[0] - 4.0).abs() < 1e-6);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct StrSqp<C: Constraint> {
    config: Checked<StrSqpConfig>,
    constraint: C,
    bounds: Bounds<C::Point>,
    gradient: Option<C::Point>,
}

impl<C: Constraint> StrSqp<C> {
    /// Checks the configuration.
    pub fn new(config: StrSqpConfig, constraint: C) -> Result<Self, Error> {
        Ok(Self { config: config.check()?, constraint, bounds: Bounds::none(), gradient: None })
    }
    /// Adds lower ≤ x ≤ upper. A component without a bound is infinite.
    pub fn bounds(mut self, lower: C::Point, upper: C::Point) -> Result<Self, Error> {
        self.bounds = Bounds::new(lower, upper)?;
        Ok(self)
    }
}

/// What a run of [`StrSqp`] has found out about its problem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SqpVerdict {
    /// Nothing yet.
    Running,
    /// A feasible KKT point, to the relative tolerance.
    Converged,
    /// The violation has a minimum here that is not zero. These rows contradict each other.
    Infeasible(Vec<usize>),
    /// A feasible point whose multipliers grow without bound: no constraint qualification holds there, and f may be
    /// less accurate than the tolerance.
    NoQualification,
    /// No step was accepted.
    Stalled,
}

/// State of [`StrSqp`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound = "V: Vector")]
pub struct StrSqpState<V> {
    /// x.
    #[serde(with = "saved")]
    pub x: V,
    /// y, the multipliers of the rows: L = f + yᵀc.
    pub multipliers: Vec<f64>,
    /// The multipliers of the bounds: at most 0 at a lower bound, at least 0 at an upper bound.
    #[serde(with = "saved")]
    pub bound_multipliers: V,
    /// w, the scale of the rows.
    pub weights: Vec<f64>,
    /// π, for the scaled rows.
    pub penalty: f64,
    /// σ.
    pub damping: f64,
    /// B.
    pub memory: Memory<V>,
    /// The last step and the Lagrangian's gradient before it, from which B learns in the next step.
    pub last: Option<Pair<V>>,
    /// The largest ‖∇f‖ and ‖x‖ so far. Tolerances are relative to them.
    pub largest: (f64, f64),
    /// What the steps on mini-batches have learned; `None` on the full sum.
    pub batch: Option<BatchMemory<V>>,
    /// What is known about the problem.
    pub verdict: SqpVerdict,
    /// Steps made.
    pub k: u64,
}
state!(StrSqpState<V>);

impl<V: Vector> StrSqpState<V> {
    /// Notes the largest ‖∇f‖ and ‖x‖. Returns the latter, or 1 if it is 0.
    fn note_sizes(&mut self, gradient_norm: f64, x: &V) -> f64 {
        self.largest = (self.largest.0.max(gradient_norm), self.largest.1.max(x.norm()));
        if self.largest.1 > 0.0 { self.largest.1 } else { 1.0 }
    }
}

impl<F: Objective, C: Constraint<Point = F::Point>> Method<F> for StrSqp<C> {
    type State = StrSqpState<F::Point>;

    fn prepare(&mut self, f: &mut F, x: &F::Point) -> Result<(), Error> {
        self.gradient = None;
        f.check_point(x)?;
        self.bounds.check_point(x)?;
        self.constraint.check_point(x)
    }

    fn init(&mut self, f: &mut F, mut x: F::Point) -> Result<Self::State, Error> {
        self.prepare(f, &x)?;
        self.bounds.clip(&mut x);
        let rows = self.constraint.new_residual().dimension();
        let mut linear = Linear::at(&mut self.constraint, &self.bounds, &vec![1.0; rows], &x);
        let weights = linear.rows[..rows].iter().map(|row| row.norm()).map(|norm| if norm > 0.0 { norm.recip() } else { 1.0 });
        let weights = weights.collect();
        linear.rows.clear();
        Ok(StrSqpState {
            multipliers: vec![0.0; rows],
            bound_multipliers: x.zeros_like(),
            weights,
            penalty: 0.0,
            damping: 0.0,
            memory: Memory::new(0.0),
            last: None,
            largest: (0.0, 0.0),
            batch: None,
            verdict: SqpVerdict::Running,
            k: 0,
            x,
        })
    }

    fn step(&mut self, f: &mut F, state: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error> {
        let mut g = self.gradient.take().unwrap_or_else(|| state.x.zeros_like());
        let record = if sample.len() < f.terms() {
            self.step_on_batch(f, state, sample, &mut g)
        } else {
            self.step_on_all(f, state, sample, &mut g)
        };
        self.gradient = Some(g);
        record
    }

    fn measure(&mut self, f: &mut F, state: &Self::State) -> Result<Measurement, Error> {
        let mut g = state.x.zeros_like();
        let value = full_value_and_gradient(f, &state.x, &mut g);
        let linear = Linear::at(&mut self.constraint, &self.bounds, &vec![1.0; state.weights.len()], &state.x);
        let ones = vec![1.0; state.weights.len()];
        linear.add_pull(&linear.join(&state.multipliers, &ones, &state.bound_multipliers), &mut g);
        let (gradient_norm, constraint_norm) = (g.norm(), linear.distance(&linear.c));
        let m = Measurement { value, merit: 0.0, gradient_norm, constraint_norm };
        Ok(Measurement { merit: m.kkt(), ..m })
    }

    fn settled(&self, state: &Self::State) -> Option<StopReason> {
        match state.verdict {
            SqpVerdict::Running => None,
            SqpVerdict::Converged => Some(StopReason::Kkt),
            SqpVerdict::Infeasible(_) => Some(StopReason::Infeasible),
            SqpVerdict::NoQualification => Some(StopReason::NoQualification),
            SqpVerdict::Stalled => Some(StopReason::Stalled),
        }
    }
}

impl<C: Constraint> StrSqp<C> {
    /// One step on all terms.
    fn step_on_all<F: Objective<Point = C::Point>>(
        &mut self,
        f: &mut F,
        state: &mut StrSqpState<F::Point>,
        sample: &Sample,
        g: &mut F::Point,
    ) -> Result<StepRecord, Error> {
        let (f0, squared_norm) = evaluate(f, &state.x, sample, g, state.k)?;
        let gradient_norm = squared_norm.sqrt();
        let linear = Linear::at(&mut self.constraint, &self.bounds, &state.weights, &state.x);
        let violation = linear.violation(&linear.c);
        let length = state.note_sizes(gradient_norm, &state.x.clone());
        state.batch = None;

        // B learns from the last step.
        if let Some(Pair { step, change: before }) = state.last.take() {
            let mut change = g.clone();
            linear.add_pull(&linear.join(&state.multipliers, &state.weights, &state.bound_multipliers), &mut change);
            change.add(-1.0, &before);
            state.memory.learn(step, change);
        } else if state.memory.curvature == 0.0 {
            state.memory.curvature = gradient_norm.max(f64::MIN_POSITIVE) / length;
            state.penalty = gradient_norm;
        }

        let mut values = 0;
        let mut record = StepRecord {
            constraint_norm: Some(violation),
            ..StepRecord::plain(state.k, f0.value, gradient_norm, 0.0, 0.0)
        };
        record.verdict = Verdict::Rejected;
        let tolerance = self.config.tolerance;
        let rounding = |value: f64, penalty: f64, this: &C, x: &F::Point| {
            let scale = state.weights.iter().copied().fold(0.0, f64::max);
            f0.rounding.max(F::Point::EPSILON * value.abs()) + penalty * scale * this.rounding(x, violation)
        };
        for trial in 0..TRIALS {
            let model = LocalModel::new(&linear, &state.memory, g, state.damping);
            let step = model.steer(&linear, &mut state.penalty);
            let gradient_size = state.largest.0.max(step.largest_multiplier());
            if trial == 0 {
                let stationary = step.stationarity <= tolerance * gradient_size;
                let complementary = linear.complementarity(&step.y) <= tolerance * gradient_size * length;
                state.verdict = if violation <= tolerance * length && stationary && complementary {
                    let unbounded = step.largest_multiplier() > UNBOUNDED * state.largest.0;
                    if unbounded { SqpVerdict::NoQualification } else { SqpVerdict::Converged }
                } else if violation > tolerance.sqrt() * length {
                    // Rows that are nearly 0 beside the others may have either sign.
                    let (slope, rows) = linear.slope_of_violation(1e-4 * violation);
                    if slope <= FLAT { SqpVerdict::Infeasible(rows) } else { SqpVerdict::Running }
                } else {
                    SqpVerdict::Running
                };
                if state.verdict != SqpVerdict::Running {
                    linear.split(&step.y, &state.weights, &mut state.multipliers, &mut state.bound_multipliers);
                    record.verdict = Verdict::Accepted;
                    break;
                }
            }
            let (mut p, mut y) = (step.p, step.y);
            let now = f0.value + state.penalty * violation;
            let error = rounding(now, state.penalty, &self.constraint, &state.x);
            let mut judge = |p: &F::Point, this: &mut C, values: &mut u64| {
                let mut x = state.x.clone();
                x.add(1.0, p);
                self.bounds.clip(&mut x);
                *values += 1;
                let f1 = f.value(&x, sample).value;
                let c = linear.residual(this, &self.bounds, &state.weights, &x);
                let then = f1 + state.penalty * linear.violation(&c);
                let ratio = (now - then + error) / (step.predicted + error);
                let trusted = linear.violation(&c) <= violation || linear.is_trusted(&c, p);
                (x, c, if ratio.is_finite() && trusted { ratio } else { f64::NEG_INFINITY })
            };
            let (mut x, c, mut ratio) = judge(&p, &mut self.constraint, &mut values);
            if ratio < CORRECT && c.iter().all(|c| c.is_finite()) && !linear.rows.is_empty() {
                let corrected = model.correct(&linear, &c, &p, state.penalty);
                let (x2, _, ratio2) = judge(&corrected.p, &mut self.constraint, &mut values);
                if ratio2 > ratio {
                    (x, ratio, p, y) = (x2, ratio2, corrected.p, corrected.y);
                }
            }
            let stiffness = step.curvature;
            if ratio < STIFFEN {
                state.damping = (4.0 * state.damping).max(0.5 * stiffness);
            } else if ratio > SOFTEN {
                state.damping /= 8.0;
            }
            record.step_length = p.norm();
            if ratio >= ACCEPT {
                record.verdict = Verdict::Accepted;
                record.step_size = 1.0;
                let mut change = g.clone();
                linear.add_pull(&y, &mut change);
                linear.split(&y, &state.weights, &mut state.multipliers, &mut state.bound_multipliers);
                let mut moved = x.clone();
                moved.add(-1.0, &state.x);
                state.last = (moved.norm_squared() > 0.0).then_some(Pair { step: moved, change });
                state.x = x;
                let enough = largest(&y).max(gradient_norm);
                if state.penalty > FAR_ABOVE * enough && violation <= tolerance.sqrt() * length && enough > 0.0 {
                    state.penalty = ABOVE * enough;
                }
                break;
            }
        }
        if record.verdict == Verdict::Rejected {
            state.verdict = SqpVerdict::Stalled;
        }
        state.k += 1;
        Ok(StepRecord { evaluations: Evaluations { values, gradients: 1 }, ..record })
    }
}

/// The largest |yᵢ|.
fn largest(y: &[f64]) -> f64 {
    y.iter().fold(0.0, |most, y| most.max(y.abs()))
}

/// Whether a row can be violated from both sides.
fn is_equal(sense: Sense) -> bool {
    sense == Sense::Equal
}
