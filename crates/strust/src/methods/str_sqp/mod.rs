//! STR-SQP: equalities, inequalities and bounds by an exact penalty, whose model is minimized through its dual.

mod active;
mod all;
mod batch;
mod constants;
mod dual;
mod exact;
mod face;
mod hybrid;
mod linear;
mod memory;
mod scaled;
mod turn;
mod units;

use batch::BatchMemory;
use memory::LagrangianCurvature;

use super::{Learned, Measurement, Method};
use crate::{
    Error, config,
    config::{Checked, Config},
    constraints::Constraint,
    models::CurvaturePair,
    objective::{AllTermsSpace, Objective, full_value_and_gradient},
    record::StepRecord,
    sample::Sample,
    saved::{Load, Save, Saved},
    stop::StopReason,
    vector::Vector,
};
use linear::Linearized;
use scaled::ScaledRows;

config! {
    /// Configuration of [`StrSqp`]. The default is meant for every problem.
    pub struct StrSqpConfig for "str-sqp" {
        /// Relative tolerance of feasibility, of the Lagrangian's gradient and of complementarity.
        pub tolerance: f64 = 1e-8, Number(Range::open(0.0, 1.0));
        /// The most products with the Lagrangian's Hessian in a step on all terms. 0: BFGS alone.
        pub products: u64 = 0, Whole(Range::closed(0.0, 1_000_000.0));
    }
}

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
/// accept above 0.1, else σ ← max(4σ, ½pᵀBp/pᵀp);   above 0.5: σ ← σ/4
/// ```
///
/// B is BFGS of the Lagrangian f + yᵀc: a matrix up to 300 unknowns and 3,000 rows and finite bounds, ten pairs beyond. σ
/// plays the radius: it shortens the step. With a matrix, steps are steps of x/u, where the start and the slopes of f and c
/// agree that coordinates have units u that differ.
///
/// With `products` above 0, p only names the active rows. Projected conjugate gradients then minimize gᵀp + ½pᵀWp where
/// these rows are 0, with exact products of W = ∇²f + Σyᵢ∇²cᵢ and inside a radius of their own. The same merit judges this
/// step. If it is not accepted, the one above follows. Where f or c has no such products, differences of gradients or of
/// Jᵀy take their place.
///
/// On a **mini-batch** the same problem is solved with B = κI. κ is learned from the trials on the sample, and is at
/// least 2√(k·n)/r̄, where n is the mean of ½‖ĝₖ − ĝₖ₋₁‖² over the last quarter of the projected gradients
/// ĝ = g + Aᵀy, and r̄ is the largest distance from the first nearly feasible iterate: noise shortens the steps. The
/// correction is made in every step, because it costs no data. The answer x is a weighted average of the iterates, which
/// two Newton steps move back onto the active constraints. Where noise limits the steps, the method tries the full sum in
/// place of a pass of mini-batches, and goes on with it as long as its model predicts more progress for the same data.
///
/// A run ends with a [verdict](SqpVerdict) on the full sum, which is also the reason in the report.
///
/// ```
/// use strust::{constraints::Sphere, prelude::*};
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
/// assert!((report.point()[0] - 0.6).abs() < 1e-6 && (report.point()[1] - 0.8).abs() < 1e-6);
/// // ∇f + 2λx = 0
/// assert!((report.state.multipliers()[0] - 4.0).abs() < 1e-4);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct StrSqp<C: Constraint> {
    config: Checked<StrSqpConfig>,
    constraint: C,
    gradient: Option<C::Point>,
    /// For steps on the full sum in the place of mini-batches.
    space: Option<AllTermsSpace<C::Point>>,
}

impl<C: Constraint> StrSqp<C> {
    /// Checks the configuration.
    pub fn new(config: StrSqpConfig, constraint: C) -> Result<Self, Error> {
        Ok(Self { config: config.check()?, constraint, gradient: None, space: None })
    }
    pub(super) fn config(&self) -> StrSqpConfig {
        (*self.config).clone()
    }
    /// The constraint.
    pub(super) fn constraint(&mut self) -> &mut C {
        &mut self.constraint
    }
}

/// How good a point of [`StrSqp`] is, measured on the full sum, in the units of the problem.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Certificate {
    /// f(x).
    pub value: f64,
    /// Σ|yᵢcᵢ(x)|: by about this much, f differs from its value on the constraints.
    pub uncertainty: f64,
    /// ‖∇f + Jᵀy + z‖ with the multipliers z of the bounds.
    pub stationarity: f64,
    /// The Euclidean norm of the violated rows.
    pub violation: f64,
    /// Σ|yᵢcᵢ| over inequalities, and the same over bounds.
    pub complementarity: f64,
    /// The rows with a multiplier.
    pub active_rows: Vec<usize>,
    /// The components at a bound with a multiplier.
    pub active_bounds: Vec<usize>,
    /// What the run has found out.
    pub verdict: SqpVerdict,
}

impl<C: Constraint> StrSqp<C> {
    /// Measures the point of a state with its multipliers.
    ///
    /// ```
    /// use strust::{constraints::Simplex, prelude::*};
    /// // The point of x₀ + x₁ = 1, x ≥ 0 nearest to (3, 1) is (1, 0).
    /// let mut f = from_terms(1, |_, x: &Vec<f64>, g| {
    ///     let r = [x[0] - 3.0, x[1] - 1.0];
    ///     g[0] += 2.0 * r[0];
    ///     g[1] += 2.0 * r[1];
    ///     r[0] * r[0] + r[1] * r[1]
    /// });
    /// let mut method = StrSqp::new(StrSqpConfig::default(), Simplex::new(&vec![0.0; 2], 1.0)?)?;
    /// let report = minimize(&mut f).method(&mut method).full_batch().start(vec![0.5, 0.5])?;
    /// let certificate = method.certify(&mut f, &report.state);
    /// assert!(certificate.stationarity < 1e-6 && certificate.uncertainty < 1e-9);
    /// assert_eq!((certificate.active_rows, certificate.active_bounds), (vec![0], vec![1]));
    /// # Ok::<(), strust::Error>(())
    /// ```
    pub fn certify<F: Objective<Point = C::Point>>(&mut self, f: &mut F, state: &StrSqpState<C::Point>) -> Certificate {
        let mut g = state.x.zeros_like();
        let value = full_value_and_gradient(f, &state.x, &mut g);
        let rows = state.weights.len();
        let plain = ScaledRows::new(&mut self.constraint, &vec![1.0; rows]);
        let y = state.scaled_multipliers(&plain);
        let c = plain.residual(&state.x);
        plain.add_transposed(&state.x, &y, &mut g);
        Certificate {
            value,
            uncertainty: y[..rows].iter().zip(&c).map(|(y, c)| (y * c).abs()).sum(),
            stationarity: g.norm(),
            violation: plain.distance(&c),
            complementarity: plain.complementarity(&c, &y),
            active_rows: (0..rows).filter(|&i| y[i] != 0.0).collect(),
            active_bounds: (rows..y.len()).filter(|&i| y[i] != 0.0).map(|i| plain.bounds[i - rows].0).collect(),
            verdict: state.verdict.clone(),
        }
    }
}

/// What a run of [`StrSqp`] has found out about its problem.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
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

impl Save for SqpVerdict {
    fn save(&self) -> Saved {
        Saved::Text(match self {
            Self::Running => "Running".into(),
            Self::Converged => "Converged".into(),
            Self::Infeasible(rows) => return Saved::case("Infeasible", rows.save()),
            Self::NoQualification => "NoQualification".into(),
            Self::Stalled => "Stalled".into(),
        })
    }
}

impl Load for SqpVerdict {
    fn load(saved: &Saved) -> Result<Self, Error> {
        match saved.as_case()? {
            ("Running", _) => Ok(Self::Running),
            ("Converged", _) => Ok(Self::Converged),
            ("Infeasible", rows) => Load::load(rows).map(Self::Infeasible),
            ("NoQualification", _) => Ok(Self::NoQualification),
            ("Stalled", _) => Ok(Self::Stalled),
            (other, _) => Err(Error::Saved(format!("there is no verdict `{other}`"))),
        }
    }
}
crate::serde_as_saved!([] SqpVerdict);

/// State of [`StrSqp`].
#[derive(Debug, Clone, PartialEq)]
pub struct StrSqpState<V> {
    /// x.
    pub(crate) x: V,
    /// u, where units of coordinates differ: steps on all terms are steps of x/u. All that they have learned is in these
    /// units, except for x and the multipliers.
    pub(crate) units: Option<Vec<f64>>,
    /// y, the multipliers of the rows: L = f + yᵀc.
    pub(crate) multipliers: Vec<f64>,
    /// The multipliers of the bounds: at most 0 at a lower bound, at least 0 at an upper bound.
    pub(crate) bound_multipliers: V,
    /// w, the scale of the rows.
    pub(crate) weights: Vec<f64>,
    /// π, for the scaled rows.
    pub(crate) penalty: f64,
    /// σ.
    pub(crate) damping: f64,
    /// B.
    pub(crate) memory: LagrangianCurvature<V>,
    /// The last step and the Lagrangian's gradient before it, from which B learns in the next step.
    pub(crate) last: Option<CurvaturePair<V>>,
    /// The largest ‖∇f‖ and the largest length so far. Tolerances are relative to them.
    pub(crate) largest: (f64, f64),
    /// A step that increases the violation leaves at most this much. A penalty alone would not keep x from following
    /// an f that falls without bound outside of the constraints.
    pub(crate) most_violation: f64,
    /// The radius of steps with products of the Lagrangian's Hessian; `None` before the first.
    pub(crate) region: Option<f64>,
    /// What the steps on mini-batches have learned; `None` on the full sum.
    pub(crate) batch: Option<BatchMemory<V>>,
    /// What is known about the problem.
    pub(crate) verdict: SqpVerdict,
    /// Steps made.
    pub(crate) k: u64,
}
crate::saved!([V: Vector] StrSqpState<V> { x: vector, units, multipliers, bound_multipliers: vector, weights, penalty, damping, memory, last, largest, most_violation, region, batch, verdict, k });
crate::state!(StrSqpState<V>, settled by reason if has_all_terms);

impl<V> StrSqpState<V> {
    /// y, the multipliers of the rows: L = f + yᵀc.
    #[must_use]
    pub fn multipliers(&self) -> &[f64] {
        &self.multipliers
    }
    /// The multipliers of the bounds: at most 0 at a lower bound, at least 0 at an upper bound.
    pub fn bound_multipliers(&self) -> &V {
        &self.bound_multipliers
    }
    /// π, the penalty of the scaled rows.
    #[must_use]
    pub fn penalty(&self) -> f64 {
        self.penalty
    }
    /// The radius of steps with products of the Lagrangian's Hessian; `None` before the first.
    #[must_use]
    pub fn radius(&self) -> Option<f64> {
        self.region
    }
    /// The numbers that the steps on mini-batches have learned; `None` on the full sum.
    #[must_use]
    pub fn learned(&self) -> Option<&Learned> {
        self.batch.as_ref().map(|batch| &batch.learned)
    }
    /// Whether a run on mini-batches tries the full sum.
    #[must_use]
    pub fn is_on_full_sum(&self) -> bool {
        self.batch.as_ref().is_some_and(|batch| batch.turn.whole.is_some())
    }
    /// What is known about the problem.
    #[must_use]
    pub fn verdict(&self) -> &SqpVerdict {
        &self.verdict
    }
}

impl<V: Vector> StrSqpState<V> {
    /// Whether all steps are on the full sum, each with a verdict. With BFGS, the KKT residual grows for a while now and then.
    fn has_all_terms(&self) -> bool {
        self.batch.is_none()
    }
    /// The verdict as a reason to stop.
    fn reason(&self) -> Option<StopReason> {
        match self.verdict {
            SqpVerdict::Running => None,
            SqpVerdict::Converged => Some(StopReason::Kkt),
            SqpVerdict::Infeasible(_) => Some(StopReason::Infeasible),
            SqpVerdict::NoQualification => Some(StopReason::NoQualification),
            SqpVerdict::Stalled => Some(StopReason::Stalled),
        }
    }
    /// The multipliers of the scaled rows and of the finite bounds.
    fn scaled_multipliers<C: Constraint<Point = V>>(&self, rows: &ScaledRows<C>) -> Vec<f64> {
        rows.join(&self.multipliers, &self.bound_multipliers)
    }
    /// The reverse of [`Self::scaled_multipliers`].
    fn set_multipliers<C: Constraint<Point = V>>(&mut self, rows: &ScaledRows<C>, y: &[f64]) {
        rows.split(y, &mut self.multipliers, &mut self.bound_multipliers);
    }
    /// The largest ‖∇f‖ and the largest length: ‖x‖, or the violation if the start is 0, or 1.
    fn sizes(&self, gradient_norm: f64, x_norm: f64, violation: f64) -> (f64, f64) {
        let first = || [x_norm, violation].into_iter().find(|&length| length > 0.0).unwrap_or(1.0);
        let length = if self.largest.1 == 0.0 { first() } else { self.largest.1 };
        (self.largest.0.max(gradient_norm), length.max(x_norm))
    }
}

impl<F: Objective, C: Constraint<Point = F::Point>> Method<F> for StrSqp<C> {
    type State = StrSqpState<F::Point>;

    fn prepare(&mut self, f: &mut F, x: &F::Point) -> Result<(), Error> {
        (self.gradient, self.space) = (None, None);
        f.check_point(x)?;
        self.constraint.check_point(x)
    }

    fn init(&mut self, f: &mut F, mut x: F::Point) -> Result<Self::State, Error> {
        self.prepare(f, &x)?;
        let rows = self.constraint.new_residual().dimension();
        let plain = ScaledRows::new(&mut self.constraint, &vec![1.0; rows]);
        plain.clip(&mut x);
        let weights = Linearized::at(&plain, &x, 0.0).weights();
        Ok(StrSqpState {
            units: None,
            multipliers: vec![0.0; rows],
            bound_multipliers: x.zeros_like(),
            weights,
            penalty: 0.0,
            damping: 0.0,
            memory: LagrangianCurvature::new(0.0),
            last: None,
            largest: (0.0, 0.0),
            most_violation: 0.0,
            region: None,
            batch: None,
            verdict: SqpVerdict::Running,
            k: 0,
            x,
        })
    }

    fn step(&mut self, f: &mut F, state: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error> {
        let mut g = self.gradient.take().unwrap_or_else(|| state.x.zeros_like());
        let record = if sample.is_all() {
            // The trials of such a step change its state, so they change a copy: all terms cost more than a copy.
            let mut next = StrSqpState { batch: None, ..state.clone() };
            let step = self.step_on_all(f, &mut next, sample, self.config.products, &mut g);
            step.map(|(record, _)| (*state = next, record).1)
        } else {
            self.step_in_turn(f, state, sample, &mut g)
        };
        self.gradient = Some(g);
        record
    }

    fn restore(&self, saved: &Saved) -> Result<Self::State, Error> {
        Load::load(saved)
    }
    fn measure(&mut self, f: &mut F, state: &Self::State) -> Result<Measurement, Error> {
        let Certificate { value, stationarity: gradient_norm, violation: constraint_norm, .. } = self.certify(f, state);
        let m = Measurement { value, merit: 0.0, gradient_norm, constraint_norm };
        Ok(Measurement { merit: m.kkt(), ..m })
    }
}

/// The largest |yᵢ|.
fn largest(y: &[f64]) -> f64 {
    y.iter().fold(0.0, |most, y| most.max(y.abs()))
}
