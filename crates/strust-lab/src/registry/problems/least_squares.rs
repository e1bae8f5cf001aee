//! Linear least squares.

use super::{ProblemEntry, Quantity, Setup, Visitor, check_size};
use crate::Error;
use strust_problems::LeastSquares;

strust::config! {
    /// Linear least squares with Gaussian rows.
    pub struct LeastSquaresConfig for "least-squares" {
        /// Number of equations.
        pub n: u64 = 200, Whole(Range::closed(1.0, 1e7));
        /// Number of unknowns; with d ≥ n every equation can be satisfied.
        pub d: u64 = 300, Whole(Range::closed(1.0, 1e7));
        /// Standard deviation of the noise on the right-hand side; 0 is exact interpolation.
        pub noise: f64 = 0.0, Number(Range::at_least(0.0));
        /// Condition number of the Hessian: the ratio of its largest to its smallest positive eigenvalue, which are spaced evenly on a logarithmic scale; 0 keeps the Gaussian rows as they are.
        pub condition: f64 = 0.0, Number(Range::at_least(0.0));
    }
}

pub(crate) struct Problem;

impl ProblemEntry for Problem {
    type Config = LeastSquaresConfig;
    const TITLE: &'static str = "Linear least squares with Gaussian rows";
    const METRICS: &'static [(Quantity, &'static str)] = &[(Quantity::ObjectiveGap, "objective gap f(x) − f*")];
    const OPTIONAL: &'static [&'static str] = &["condition"];

    fn check(c: &LeastSquaresConfig) -> Result<(), String> {
        if c.condition == 0.0 || c.condition >= 1.0 {
            return Ok(());
        }
        Err(format!("least-squares: `condition` is {}, but must be ≥ 1, or 0 for Gaussian rows", c.condition))
    }

    fn visit<V: Visitor>(c: Self::Config, seed: u64, visitor: V) -> Result<V::Output, Error> {
        check_size(c.n, c.d)?;
        let (n, d) = (c.n as usize, c.d as usize);
        let f = match (c.condition, c.noise) {
            (0.0, 0.0) => LeastSquares::<f64>::interpolating(n, d, seed)?,
            (0.0, noise) => LeastSquares::noisy(n, d, noise, seed)?,
            (condition, noise) => LeastSquares::conditioned(n, d, condition, noise, seed)?,
        };
        visitor.visit(Setup::unconstrained(f))
    }
}
