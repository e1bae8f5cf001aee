//! Models of the objective around a point. A model proposes a step inside the region, predicts its reduction and learns
//! from the trial.
//!
//! | model | H | method |
//! |---|---|---|
//! | [`Identity`] | I | [`Str`](crate::methods::Str), Algorithm 1 |
//! | [`Penalty`] | I + μJᵀJ | [`StrP`](crate::methods::StrP), Algorithm 2 |
//! | [`Newton`] | the Hessian or the Gauss–Newton matrix of the sample | [`StrNewton`](crate::methods::StrNewton) |
//! | [`LimitedMemory`] | a limited-memory BFGS or SR1 matrix | [`StrLbfgs`](crate::methods::StrLbfgs), [`StrLsr1`](crate::methods::StrLsr1) |
//!
//! Implement [`Model`] for your own model and pass it to
//! [`TrustRegion::with_model`](crate::methods::TrustRegion::with_model).

mod cauchy;
mod dense_region;
mod identity;
mod limited_memory;
mod newton;
mod penalty;
mod steihaug;
mod tridiagonal;

pub use cauchy::{CauchyStep, Exit, cauchy_step};
pub use identity::Identity;
pub(crate) use limited_memory::CurvaturePair;
pub use limited_memory::{Bfgs, CurvatureMemory, LimitedMemory, MatrixChange, PairProducts, Sr1, Update};
pub(crate) use newton::multiply;
pub use newton::{Newton, NewtonMemory};
pub use penalty::Penalty;
pub use steihaug::{CgSpace, InnerExit, Subproblem, TruncatedStep, steihaug};

use crate::{
    Error,
    objective::{Evaluation, Evaluations, Objective},
    radius::{Change, Judgment},
    sample::Sample,
    saved::Load,
    vector::Vector,
};

/// A model m(p) of f(x + p) − f(x) on one sample.
///
/// The model itself holds only settings and scratch space. [`TrustRegion`](crate::methods::TrustRegion) starts and resumes
/// every run with a clone of the model that it was given. Values that the model keeps from step to step are its
/// [`Memory`](Self::Memory). The memory is part of the method's state, so checkpoints contain it. Only [`Self::learn`]
/// changes it, after the last evaluation of a step, so a step that fails leaves it as it was. The model gets the sample of
/// the step and must evaluate f on this sample only. It must not change x.
///
/// ```
/// use strust::{methods::TrustRegion, models::{Local, Model, Step, Trial, cauchy_step}, prelude::*, radius::RegionConfig};
///
/// /// H = κI with the largest observed curvature κ: STR without a fixed scale.
/// #[derive(Clone)]
/// struct Learned;
///
/// impl<F: Objective> Model<F> for Learned {
///     type Memory = f64; // κ
///     fn init(&mut self, _: &mut F, _: &F::Point) -> Result<f64, Error> {
///         Ok(1.0)
///     }
///     fn propose<'a>(&'a mut self, _: &mut F, kappa: &f64, at: &Local<'a, F::Point>, radius: f64)
///         -> Result<Step<'a, F::Point>, Error> {
///         let p = cauchy_step(at.gradient_squared, *kappa * at.gradient_squared, radius);
///         Ok(Step::along(at.gradient, p))
///     }
///     fn learn(&mut self, kappa: &mut f64, trial: &Trial<'_, F::Point>) {
///         // f(x) − f(x + p) = a‖g‖² − ½κa²‖g‖² for a quadratic function
///         let (a, g2) = (trial.size, trial.at.gradient_squared);
///         let seen = 2.0 * (a * g2 - trial.actual) / (a * a * g2);
///         if seen.is_finite() && seen > *kappa { // a trial may be infinite
///             *kappa = seen;
///         }
///     }
/// }
///
/// let mut f = from_terms(1, |_, x: &Vec<f64>, g| { g[0] += 200.0 * x[0]; 100.0 * x[0] * x[0] });
/// let method = TrustRegion::with_model(RegionConfig::default(), Learned)?;
/// let report = minimize(&mut f).method(method).stop(Stop::steps(10)).start(vec![3.0])?;
/// assert!((report.state.memory() - 200.0).abs() < 1e-6 && report.point()[0].abs() < 1e-6);
/// # Ok::<(), strust::Error>(())
/// ```
pub trait Model<F: Objective + ?Sized>: Clone {
    /// The values that the model keeps from step to step, as plain data. `()` if there are none.
    type Memory: Clone + Load;

    /// The memory at the start x. A run that resumes does not call this, so scratch space is made when it is needed.
    fn init(&mut self, f: &mut F, x: &F::Point) -> Result<Self::Memory, Error>;

    /// Looks at the point of a step before it proposes. It may evaluate f at other points on the same sample, and returns how
    /// often it did. The default does nothing.
    fn arrive(&mut self, _f: &mut F, _memory: &Self::Memory, _at: &Local<'_, F::Point>) -> Evaluations {
        Evaluations::default()
    }

    /// An exact or approximate minimizer of m(p) subject to ‖p‖ ≤ `radius`.
    fn propose<'a>(
        &'a mut self,
        f: &mut F,
        memory: &Self::Memory,
        at: &Local<'a, F::Point>,
        radius: f64,
    ) -> Result<Step<'a, F::Point>, Error>;

    /// A shorter step of the same model, after the last one was rejected. Only a model that has it without further evaluations
    /// of f returns one. By default the next step begins anew.
    fn retreat(&mut self) -> Option<Step<'_, F::Point>> {
        None
    }

    /// Updates the memory after the last trial of a step, accepted or rejected. The default does nothing.
    fn learn(&mut self, _memory: &mut Self::Memory, _trial: &Trial<'_, F::Point>) {}

    /// The next radius, after a step of this length and exit in a region of this radius. By default the judgment's.
    fn next_radius(&self, _radius: f64, _length: f64, _exit: Exit, judgment: &Judgment) -> f64 {
        judgment.next_radius
    }
}

/// The data at the point x of a step: fᵢ(x) and g = ∇fᵢ(x) on the sample of the step.
#[derive(Debug)]
pub struct Local<'a, V> {
    /// The number of the step.
    pub k: u64,
    /// x.
    pub x: &'a V,
    /// The sample of the step.
    pub sample: &'a Sample,
    /// fᵢ(x) with its rounding error.
    pub evaluation: Evaluation,
    /// g.
    pub gradient: &'a V,
    /// ‖g‖².
    pub gradient_squared: f64,
}

// A derived copy would need a vector that can be copied.
impl<V> Clone for Local<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<V> Copy for Local<'_, V> {}

/// A proposed step p = −size·direction.
///
/// The direction is borrowed, so a gradient step needs no copy of the gradient.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a, V> {
    /// The direction d; for a step along the gradient, g itself.
    pub direction: &'a V,
    /// a in p = −a·d.
    pub size: f64,
    /// ‖p‖.
    pub length: f64,
    /// m(0) − m(p), never negative.
    pub predicted: f64,
    /// What determined the length.
    pub exit: Exit,
    /// Evaluations that the model made for this step.
    pub evaluations: Evaluations,
}

impl<'a, V> Step<'a, V> {
    /// The step −p.size·direction, with length and prediction from `p`.
    #[must_use]
    pub fn along(direction: &'a V, p: CauchyStep) -> Self {
        Self {
            direction,
            size: p.size,
            length: p.length,
            predicted: p.predicted,
            exit: p.exit,
            evaluations: Evaluations::default(),
        }
    }
}

/// The outcome of a trial, the input of [`Model::learn`].
#[derive(Debug, Clone, Copy)]
pub struct Trial<'a, V: Vector> {
    /// The data at the point before the step.
    pub at: Local<'a, V>,
    /// x + p.
    pub point: &'a V,
    /// a in p = −a·d.
    pub size: f64,
    /// fᵢ(x + p) on the same sample. It may be NaN or infinite.
    pub value: f64,
    /// fᵢ(x) − fᵢ(x + p) on the same sample. It may be NaN or infinite.
    pub actual: f64,
    /// m(0) − m(p).
    pub predicted: f64,
    /// The judgment of the trust region.
    pub judgment: Judgment,
}

/// The next radius of a model with curvature: a step that ends inside says nothing about a larger region, and after a
/// rejected one the region is smaller than it.
fn radius_after(radius: f64, length: f64, exit: Exit, judgment: &Judgment) -> f64 {
    match judgment.change {
        Change::Shrink => (judgment.next_radius * (length / radius).min(1.0)).max(f64::MIN_POSITIVE),
        Change::Grow if exit == Exit::Interior => radius,
        Change::Grow | Change::Keep => judgment.next_radius,
    }
}
