//! The same problem in other units: a method without a unit of its own takes the same steps.

use super::{ConstrainedProblem, ProblemRows};
use strust::{
    constraints::{Bounds, Constraint, ConstraintWrapper},
    objective::{Objective, ProductKind, from_fn, with_products},
    sample::Sample,
    vector::Vector,
};

/// Factors of f, c and x.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Units {
    /// Factor of f.
    pub f: f64,
    /// Factor of all rows.
    pub c: f64,
    /// Factor of all coordinates.
    pub x: f64,
    /// The factors of single coordinates are spread over this many decades.
    pub decades: f64,
}

impl Default for Units {
    fn default() -> Self {
        Self { f: 1.0, c: 1.0, x: 1.0, decades: 0.0 }
    }
}

impl Units {
    fn factor(&self, i: usize, of: usize) -> f64 {
        let place = ((7 * i + 3) % of) as f64 / (of.max(2) - 1) as f64 - 0.5;
        self.x * 10.0_f64.powf(self.decades * place)
    }
    /// A point in these units.
    #[must_use]
    pub fn scaled(&self, x: &[f64]) -> Vec<f64> {
        x.iter().enumerate().map(|(i, v)| v * self.factor(i, x.len())).collect()
    }
    /// The reverse of [`Self::scaled`]. It also maps gradients to these units.
    #[must_use]
    pub fn plain(&self, x: &[f64]) -> Vec<f64> {
        x.iter().enumerate().map(|(i, v)| v / self.factor(i, x.len())).collect()
    }
}

impl ConstrainedProblem {
    /// This problem in other units.
    ///
    /// ```
    /// use strust::prelude::*;
    /// use strust_problems::constrained::{Units, equality_problems};
    /// let problem = &equality_problems()[0];
    /// let other = problem.in_units(Units { x: 1e3, ..Units::default() });
    /// let mut method = StrSqp::new(StrSqpConfig::default(), other.constraint())?;
    /// let mut f = other.objective();
    /// let report = minimize(&mut f).method(&mut method).full_batch().start(other.units.scaled(&problem.start))?;
    /// let x = other.units.plain(report.point());
    /// assert!((problem.value(&x) - problem.solutions[0].value).abs() < 1e-6);
    /// # Ok::<(), strust::Error>(())
    /// ```
    #[must_use]
    pub fn in_units(&self, units: Units) -> ProblemInUnits<'_> {
        ProblemInUnits { problem: self, units }
    }
}

/// A [`ConstrainedProblem`] in other units.
#[derive(Clone, Copy, Debug)]
pub struct ProblemInUnits<'a> {
    problem: &'a ConstrainedProblem,
    /// The units.
    pub units: Units,
}

impl<'a> ProblemInUnits<'a> {
    /// f as an objective with one term and exact products with its Hessian.
    #[must_use]
    pub fn objective(&self) -> impl Objective<Point = Vec<f64>> {
        let Self { problem, units } = *self;
        let f = from_fn(1, move |x: &Vec<f64>, _: &Sample, gradient: Option<&mut Vec<f64>>| {
            let x = units.plain(x);
            if let Some(gradient) = gradient {
                *gradient = units.plain(&problem.gradient(&x));
                gradient.scale(units.f);
            }
            units.f * problem.value(&x)
        });
        with_products(f, ProductKind::Hessian, move |x: &Vec<f64>, _: &Sample, v: &Vec<f64>, out: &mut Vec<f64>| {
            *out = units.plain(&problem.hessian_product(&units.plain(x), &units.plain(v)));
            out.scale(units.f);
        })
    }
    /// The rows and the bounds as a constraint.
    ///
    /// # Panics
    /// If the bounds were changed so that no point lies between them.
    #[must_use]
    pub fn constraint(&self) -> RowsInUnits<'a> {
        let Self { problem, units } = *self;
        let bounds = problem.has_bounds().then(|| {
            let bounds = Bounds::new(units.scaled(&problem.lower), units.scaled(&problem.upper));
            bounds.expect("bounds with a point between them")
        });
        RowsInUnits { rows: problem.constraint(), units, bounds }
    }
}

/// The rows and the bounds of a [`ProblemInUnits`].
#[derive(Clone, Debug)]
pub struct RowsInUnits<'a> {
    rows: ProblemRows<'a>,
    units: Units,
    bounds: Option<Bounds<Vec<f64>>>,
}

impl<'a> ConstraintWrapper for RowsInUnits<'a> {
    type Inner = ProblemRows<'a>;
    fn wrapped(&self) -> &ProblemRows<'a> {
        &self.rows
    }
    fn wrapped_mut(&mut self) -> &mut ProblemRows<'a> {
        &mut self.rows
    }
    fn residual(this: &mut Self, x: &Vec<f64>, c: &mut Vec<f64>) {
        this.rows.residual(&this.units.plain(x), c);
        c.scale(this.units.c);
    }
    fn jvp(this: &mut Self, x: &Vec<f64>, v: &Vec<f64>, out: &mut Vec<f64>) {
        this.rows.jvp(&this.units.plain(x), &this.units.plain(v), out);
        out.scale(this.units.c);
    }
    fn add_vjp(this: &mut Self, x: &Vec<f64>, a: f64, y: &Vec<f64>, out: &mut Vec<f64>) {
        let mut pull = vec![0.0; x.len()];
        this.rows.add_vjp(&this.units.plain(x), a * this.units.c, y, &mut pull);
        out.add(1.0, &this.units.plain(&pull));
    }
    fn add_second_order_product(
        this: &mut Self,
        x: &Vec<f64>,
        a: f64,
        y: &Vec<f64>,
        v: &Vec<f64>,
        out: &mut Vec<f64>,
    ) -> bool {
        let Self { rows, units, .. } = this;
        let mut product = vec![0.0; x.len()];
        let made = rows.add_second_order_product(&units.plain(x), a * units.c, y, &units.plain(v), &mut product);
        out.add(1.0, &units.plain(&product));
        made
    }
    fn bounds(this: &Self) -> Option<&Bounds<Vec<f64>>> {
        this.bounds.as_ref()
    }
}
