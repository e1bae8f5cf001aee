//! Small constrained problems with known solutions and multipliers: the test problems of Hock and Schittkowski
//! (*Test Examples for Nonlinear Programming Codes*, 1981), and degenerate and infeasible ones.
//!
//! | function | problems |
//! |---|---|
//! | [`equality_problems`] | 20 with equalities only |
//! | [`inequality_problems`] | 46 with inequalities or bounds |
//! | [`degenerate_problems`] | infeasible ones, and ones whose multipliers do not exist or are not unique |
//! | [`all_problems`] | all of them, each with its kind |

mod degenerate;
mod equality;
mod inequality;
mod jet;
mod units;

pub use degenerate::degenerate_problems;
pub use equality::equality_problems;
pub use inequality::inequality_problems;
pub use units::{ProblemInUnits, RowsInUnits, Units};

use crate::numerics::shape;
use jet::Jet;
use strust::{
    Error,
    constraints::{Bounds, Constraint, Sense},
    objective::{Objective, ProductKind, from_fn, with_products},
    sample::Sample,
    vector::Vector,
};

/// The kinds of the small problems.
pub const KINDS: [&str; 4] = ["equality", "inequality", "infeasible", "degenerate"];

/// All problems, each with its kind, one of [`KINDS`].
#[must_use]
pub fn all_problems() -> Vec<(&'static str, ConstrainedProblem)> {
    let [equality, inequality, infeasible, degenerate] = KINDS;
    let without_solution = |problem: &ConstrainedProblem| matches!(problem.expected, Expected::Infeasible { .. });
    let kind = |problem: &ConstrainedProblem| if without_solution(problem) { infeasible } else { degenerate };
    let others = degenerate_problems().into_iter().map(|problem| (kind(&problem), problem));
    let equalities = equality_problems().into_iter().map(|problem| (equality, problem));
    let inequalities = inequality_problems().into_iter().map(|problem| (inequality, problem));
    equalities.chain(inequalities).chain(others).collect()
}

/// min f(x) subject to cᵢ(x) = 0 for the first rows, cᵢ(x) ≤ 0 for the others, and lower ≤ x ≤ upper.
///
/// Multipliers y of the rows and z of the bounds belong to the Lagrangian f(x) + Σ yᵢcᵢ(x) + zᵀx. So y ≥ 0 for
/// inequalities, zⱼ ≤ 0 if xⱼ is at its lower bound, and zⱼ ≥ 0 if it is at its upper bound.
///
/// ```
/// use strust_problems::constrained::{Expected, inequality_problems};
/// let problems = inequality_problems();
/// let p = problems.iter().find(|p| p.name == "hs014").unwrap();
/// assert_eq!((p.equalities, p.inequalities), (1, 1));
/// assert_eq!(p.expected, Expected::Solvable);
///
/// let known = &p.solutions[0];
/// assert_eq!(p.value(&p.start), 1.0);
/// assert!((p.value(&known.x) - known.value).abs() < 1e-9);
/// assert!(p.violation(&p.start) > 1.0 && p.violation(&known.x) < 1e-9);
///
/// // ∇f + Jᵀy + z = 0
/// let (g, jacobian, y) = (p.gradient(&known.x), p.jacobian(&known.x), known.multipliers.as_ref().unwrap());
/// for j in 0..2 {
///     let sum: f64 = jacobian.iter().zip(&y.rows).map(|(row, y)| row[j] * y).sum();
///     assert!((g[j] + sum + y.bounds[j]).abs() < 1e-9);
/// }
/// ```
#[derive(Clone, Debug)]
pub struct ConstrainedProblem {
    /// The name, such as `hs006`.
    pub name: &'static str,
    /// The usual start. It need not satisfy the bounds.
    pub start: Vec<f64>,
    /// Lower bounds of x; −∞ without one.
    pub lower: Vec<f64>,
    /// Upper bounds of x; ∞ without one.
    pub upper: Vec<f64>,
    /// The number of rows that must be 0. They come first.
    pub equalities: usize,
    /// The number of rows that must be at most 0.
    pub inequalities: usize,
    /// The known solutions, best first.
    pub solutions: Vec<KnownSolution>,
    /// What a method should report.
    pub expected: Expected,
    objective: fn(&[Jet]) -> Jet,
    constraints: fn(&[Jet]) -> Vec<Jet>,
}

/// A solution of a [`ConstrainedProblem`], to about 12 digits.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownSolution {
    /// x*.
    pub x: Vec<f64>,
    /// f(x*).
    pub value: f64,
    /// Multipliers at x*; `None` if there are none, because no constraint qualification holds.
    pub multipliers: Option<KnownMultipliers>,
}

/// Multipliers with the signs of [`ConstrainedProblem`]. Some problems have more than one choice.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownMultipliers {
    /// One for each row.
    pub rows: Vec<f64>,
    /// One for each variable; 0 if it is at no bound.
    pub bounds: Vec<f64>,
}

/// What a method should report about a [`ConstrainedProblem`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A solution with multipliers.
    Solvable,
    /// No point satisfies all constraints.
    Infeasible {
        /// The rows that contradict each other or the bounds, in increasing order.
        rows: Vec<usize>,
        /// The variables whose bounds take part in the contradiction, in increasing order.
        bounds: Vec<usize>,
    },
    /// The solution has no multipliers.
    NoQualification,
}

impl ConstrainedProblem {
    /// f(x).
    #[must_use]
    pub fn value(&self, x: &[f64]) -> f64 {
        self.jet_objective(x, None).value
    }
    /// ∇f(x).
    #[must_use]
    pub fn gradient(&self, x: &[f64]) -> Vec<f64> {
        self.jet_objective(x, None).gradient(x.len())
    }
    /// c(x): first the equalities, then the inequalities.
    #[must_use]
    pub fn rows(&self, x: &[f64]) -> Vec<f64> {
        self.jet_rows(x, None).iter().map(|c| c.value).collect()
    }
    /// The gradient of every row at x.
    #[must_use]
    pub fn jacobian(&self, x: &[f64]) -> Vec<Vec<f64>> {
        self.jet_rows(x, None).iter().map(|c| c.gradient(x.len())).collect()
    }
    /// ∇²f(x)v.
    #[must_use]
    pub fn hessian_product(&self, x: &[f64], v: &[f64]) -> Vec<f64> {
        self.jet_objective(x, Some(v)).product(x.len())
    }
    /// ∇²cᵢ(x)v for every row.
    #[must_use]
    pub fn row_hessian_products(&self, x: &[f64], v: &[f64]) -> Vec<Vec<f64>> {
        self.jet_rows(x, Some(v)).iter().map(|c| c.product(x.len())).collect()
    }
    /// The largest violation of a row or a bound at x.
    #[must_use]
    pub fn violation(&self, x: &[f64]) -> f64 {
        let rows = self.rows(x).into_iter().enumerate().map(|(i, c)| if i < self.equalities { c.abs() } else { c });
        let bounds = x.iter().zip(&self.lower).zip(&self.upper).map(|((x, lower), upper)| (lower - x).max(x - upper));
        rows.chain(bounds).fold(0.0, f64::max)
    }

    fn jet_objective(&self, x: &[f64], v: Option<&[f64]>) -> Jet {
        (self.objective)(&self.variables(x, v))
    }
    fn jet_rows(&self, x: &[f64], v: Option<&[f64]>) -> Vec<Jet> {
        (self.constraints)(&self.variables(x, v))
    }
    /// The variables at x, with derivatives along v if it is given.
    fn variables(&self, x: &[f64], v: Option<&[f64]>) -> Vec<Jet> {
        for numbers in [Some(x), v].into_iter().flatten() {
            assert_eq!(numbers.len(), self.start.len(), "the number of variables of {}", self.name);
        }
        Jet::variables(x, v)
    }

    /// f as an objective with one term and exact products with its Hessian.
    #[must_use]
    pub fn objective(&self) -> impl Objective<Point = Vec<f64>> {
        let f = from_fn(1, |x: &Vec<f64>, _: &Sample, gradient: Option<&mut Vec<f64>>| {
            if let Some(gradient) = gradient {
                *gradient = self.gradient(x);
            }
            self.value(x)
        });
        let product = |x: &Vec<f64>, _: &Sample, v: &Vec<f64>, out: &mut Vec<f64>| *out = self.hessian_product(x, v);
        with_products(f, ProductKind::Hessian, product)
    }
    /// The rows and the bounds as a constraint.
    ///
    /// # Panics
    /// If the bounds were changed so that no point lies between them.
    #[must_use]
    pub fn constraint(&self) -> ProblemRows<'_> {
        let bounds = Bounds::new(self.lower.clone(), self.upper.clone()).expect("bounds with a point between them");
        ProblemRows { problem: self, bounds: self.has_bounds().then_some(bounds) }
    }
    fn has_bounds(&self) -> bool {
        self.lower.iter().chain(&self.upper).any(|bound| bound.is_finite())
    }

    fn lower<const N: usize>(mut self, lower: [f64; N]) -> Self {
        self.lower = lower.to_vec();
        self
    }
    fn upper<const N: usize>(mut self, upper: [f64; N]) -> Self {
        self.upper = upper.to_vec();
        self
    }
    /// Adds a solution at which no bound has a multiplier.
    fn solution<const N: usize, const M: usize>(self, x: [f64; N], value: f64, rows: [f64; M]) -> Self {
        self.solution_at_bounds(x, value, rows, [0.0; N])
    }
    fn solution_at_bounds<const N: usize, const M: usize>(
        mut self,
        x: [f64; N],
        value: f64,
        rows: [f64; M],
        bounds: [f64; N],
    ) -> Self {
        let multipliers = Some(KnownMultipliers { rows: rows.to_vec(), bounds: bounds.to_vec() });
        self.solutions.push(KnownSolution { x: x.to_vec(), value, multipliers });
        self
    }
    fn solution_without_multipliers<const N: usize>(mut self, x: [f64; N], value: f64) -> Self {
        self.solutions.push(KnownSolution { x: x.to_vec(), value, multipliers: None });
        self.expected = Expected::NoQualification;
        self
    }
    fn infeasible(mut self, rows: &[usize], bounds: &[usize]) -> Self {
        self.expected = Expected::Infeasible { rows: rows.to_vec(), bounds: bounds.to_vec() };
        self
    }
}

/// The rows and the bounds of a [`ConstrainedProblem`].
#[derive(Clone, Debug)]
pub struct ProblemRows<'a> {
    problem: &'a ConstrainedProblem,
    bounds: Option<Bounds<Vec<f64>>>,
}

impl Constraint for ProblemRows<'_> {
    type Point = Vec<f64>;
    type Residual = Vec<f64>;
    fn new_residual(&self) -> Vec<f64> {
        vec![0.0; self.problem.equalities + self.problem.inequalities]
    }
    fn residual(&mut self, x: &Vec<f64>, c: &mut Vec<f64>) {
        *c = self.problem.rows(x);
    }
    fn jvp(&mut self, x: &Vec<f64>, v: &Vec<f64>, out: &mut Vec<f64>) {
        *out = self.problem.jacobian(x).iter().map(|row| row.dot(v)).collect();
    }
    fn add_vjp(&mut self, x: &Vec<f64>, a: f64, y: &Vec<f64>, out: &mut Vec<f64>) {
        for (row, y) in self.problem.jacobian(x).iter().zip(y) {
            out.add(a * y, row);
        }
    }
    fn add_second_order_product(
        &mut self,
        x: &Vec<f64>,
        a: f64,
        y: &Vec<f64>,
        v: &Vec<f64>,
        out: &mut Vec<f64>,
    ) -> bool {
        for (product, y) in self.problem.row_hessian_products(x, v).iter().zip(y) {
            out.add(a * y, product);
        }
        true
    }
    fn sense(&self, row: usize) -> Sense {
        if row < self.problem.equalities { Sense::Equal } else { Sense::AtMost }
    }
    fn bounds(&self) -> Option<&Bounds<Vec<f64>>> {
        self.bounds.as_ref()
    }
    fn check_point(&self, x: &Vec<f64>) -> Result<(), Error> {
        shape("constrained problem", vec![self.problem.start.len()], vec![x.len()])
    }
}

/// Problems as in the literature: the name, the variables and their start, the function to minimize, and the rows; then
/// what is known, by methods of [`ConstrainedProblem`].
macro_rules! problems {
    ($(
        $name:literal, [$($x:ident),+] = $start:expr, minimize = $f:expr
        $(, zero = [$($zero:expr),+])? $(, at_most_zero = [$($at_most_zero:expr),+])?
        => $($known:ident($($what:expr),+))+;
    )+) => {
        vec![$({
            let start = $start.to_vec();
            let problem = ConstrainedProblem {
                name: $name,
                lower: vec![f64::NEG_INFINITY; start.len()],
                upper: vec![f64::INFINITY; start.len()],
                start,
                equalities: <[&str]>::len(&[$($(stringify!($zero)),+)?]),
                inequalities: <[&str]>::len(&[$($(stringify!($at_most_zero)),+)?]),
                solutions: Vec::new(),
                expected: Expected::Solvable,
                objective: |x| {
                    #[allow(unused_variables, reason = "not every function depends on every variable")]
                    let &[$($x),+] = x else { unreachable!("the number of variables was checked") };
                    $f
                },
                constraints: |x| {
                    #[allow(unused_variables, reason = "not every function depends on every variable")]
                    let &[$($x),+] = x else { unreachable!("the number of variables was checked") };
                    vec![$($($zero,)+)? $($($at_most_zero,)+)?]
                },
            };
            problem$(.$known($($what),+))+
        }),+]
    };
}
use problems;
