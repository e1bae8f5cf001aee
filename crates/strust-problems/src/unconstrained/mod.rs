//! Small sums of squares with known minima, without constraints: the problems of Moré, Garbow and Hillstrom (*Testing
//! Unconstrained Optimization Software*, ACM Transactions on Mathematical Software 7, 1981), and the chained function of
//! Rosenbrock.
//!
//! | function | problems |
//! |---|---|
//! | [`fixed_problems`] | 19 with a fixed number of variables |
//! | [`sized_problems`] | 14 with any number of variables, in one or more sizes |
//! | [`all_problems`] | all of them |

mod fixed;
mod sized;
mod tape;

pub use fixed::fixed_problems;
pub use sized::sized_problems;
pub use tape::TapeNumber;

use crate::{Problem, numerics::shape};
use strust::{
    Error,
    objective::{Evaluation, Objective, ProductKind},
    sample::Sample,
};
use tape::Tape;

/// All problems.
#[must_use]
pub fn all_problems() -> Vec<UnconstrainedProblem> {
    [fixed_problems(), sized_problems()].concat()
}

/// min f(x) = Σ rᵢ(x)², an objective with one term. Derivatives are exact: the gradient, and products with the Hessian and
/// with the Gauss–Newton matrix 2JᵀJ.
///
/// ```
/// use strust::{methods::StrNewton, objective::full_value, prelude::*};
/// use strust_problems::unconstrained::fixed_problems;
/// let mut f = fixed_problems().into_iter().find(|p| p.name == "beale").unwrap();
/// let start = f.start.clone();
/// assert_eq!((full_value(&mut f, &start), f.minima[0]), (14.203125, 0.0));
///
/// let run = minimize(&mut f).method(StrNewton::default()).full_batch().stop(Stop::gradient_norm(1e-8));
/// let report = run.start(start)?;
/// assert!(report.reason.converged() && (report.point()[0] - 3.0).abs() < 1e-6);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct UnconstrainedProblem {
    /// The name, such as `helical-valley` or `broyden-banded-10`.
    pub name: String,
    /// The start of the paper.
    pub start: Vec<f64>,
    /// Known values at local minima, to about 10 digits, or in a limit at infinity; best first. There may be more.
    pub minima: Vec<f64>,
    residuals: Residuals,
    tape: Tape,
}

/// The residuals of the variables.
type Residuals = for<'t> fn(&[TapeNumber<'t>]) -> Vec<TapeNumber<'t>>;

impl UnconstrainedProblem {
    fn new(name: impl Into<String>, start: Vec<f64>, minima: &[f64], residuals: Residuals) -> Self {
        Self { name: name.into(), start, minima: minima.to_vec(), residuals, tape: Tape::default() }
    }

    /// f at x. Then `derivative`, if given, becomes the gradient of Σ wᵢrᵢ or its derivative along v, where
    /// `weight(rᵢ, ṙᵢ)` is wᵢ with its derivative.
    fn evaluate(
        &mut self,
        x: &[f64],
        v: Option<&[f64]>,
        derivative: Option<(&mut [f64], usize)>,
        weight: impl Fn(f64, f64) -> [f64; 2],
    ) -> Evaluation {
        let residuals = (self.residuals)(&self.tape.variables(x, v));
        let value = residuals.iter().map(|r| r.value * r.value).sum();
        // (r + δ)² − r² for every residual, and the rounding of the sum.
        let errors = residuals.iter().map(|r| f64::EPSILON * r.error);
        let of_residuals: f64 = residuals.iter().zip(errors).map(|(r, e)| e * (2.0 * r.value.abs() + e)).sum();
        let rounding = Evaluation::new(value, f64::EPSILON).rounding + of_residuals;
        if let Some((out, which)) = derivative {
            let weighted: Vec<_> = residuals.iter().map(|r| (r.place(), weight(r.value, r.tangent))).collect();
            let adjoints = self.tape.sweep(weighted.into_iter());
            out.iter_mut().zip(adjoints).for_each(|(out, adjoint)| *out = adjoint[which]);
        }
        Evaluation { value, rounding }
    }
}

impl Objective for UnconstrainedProblem {
    type Point = Vec<f64>;
    fn terms(&self) -> usize {
        1
    }
    fn value(&mut self, x: &Vec<f64>, _: &Sample) -> Evaluation {
        self.evaluate(x, None, None, |_, _| [0.0; 2])
    }
    fn value_and_gradient(&mut self, x: &Vec<f64>, _: &Sample, gradient: &mut Vec<f64>) -> Evaluation {
        self.evaluate(x, None, Some((gradient, 0)), |r, _| [2.0 * r, 0.0])
    }
    fn curvature_product(
        &mut self,
        kind: ProductKind,
        x: &Vec<f64>,
        _: &Sample,
        direction: &Vec<f64>,
        product: &mut Vec<f64>,
    ) -> bool {
        match kind {
            // The derivative of the gradient along v.
            ProductKind::Hessian => self.evaluate(x, Some(direction), Some((product, 1)), |r, t| [2.0 * r, 2.0 * t]),
            // Jv are the tangents of the residuals.
            ProductKind::GaussNewton => self.evaluate(x, Some(direction), Some((product, 0)), |_, t| [2.0 * t, 0.0]),
        };
        true
    }
    fn check_point(&self, x: &Vec<f64>) -> Result<(), Error> {
        shape("unconstrained problem", vec![self.start.len()], vec![x.len()])
    }
}

/// Every seed has the start of the paper.
impl Problem for UnconstrainedProblem {
    fn start(&self, _: u64) -> Vec<f64> {
        self.start.clone()
    }
    fn optimum(&self) -> Option<f64> {
        self.minima.first().copied()
    }
}
