use super::{Consensus, Evaluation, Objective, ProductKind};
use crate::{
    Error,
    constraints::Constraint,
    sample::{Draws, Sample},
    vector::Vector,
};

/// φᵢ(x) = fᵢ(x) + (μ/2)‖c(x)‖², the objective of Algorithm 2.
///
/// It can own its parts or borrow them (`&mut F` is an objective too). Use it with the model
/// [`Penalty`](crate::models::Penalty).
#[derive(Debug)]
pub struct Penalized<F: Objective, C: Constraint<Point = F::Point>> {
    objective: F,
    constraint: C,
    penalty: f64,
    scratch: PenaltyScratch<C::Residual>,
    gradient_norm: f64,
}

/// Working space of [`Penalized`]. A method passes it from step to step, so a step does not allocate.
#[derive(Debug, Clone)]
pub struct PenaltyScratch<R> {
    residual: R,
    product: R,
}

impl<R: Vector> PenaltyScratch<R> {
    /// Working space for a constraint.
    pub fn new(constraint: &impl Constraint<Residual = R>) -> Self {
        let residual = constraint.new_residual();
        Self { product: residual.zeros_like(), residual }
    }
}

impl<F: Objective, C: Constraint<Point = F::Point>> Penalized<F, C> {
    /// Penalizes `objective` with weight μ = `penalty`.
    pub fn new(objective: F, constraint: C, penalty: f64) -> Self {
        let scratch = PenaltyScratch::new(&constraint);
        Self::with_scratch(objective, constraint, penalty, scratch)
    }
    /// The same with existing working space.
    pub fn with_scratch(objective: F, constraint: C, penalty: f64, scratch: PenaltyScratch<C::Residual>) -> Self {
        Self { objective, constraint, penalty, scratch, gradient_norm: f64::NAN }
    }
    /// ‖c‖ at the point of the last gradient; NaN before the first gradient.
    pub fn gradient_constraint_norm(&self) -> f64 {
        self.gradient_norm
    }
    /// Returns the working space.
    pub fn into_scratch(self) -> PenaltyScratch<C::Residual> {
        self.scratch
    }
    /// μ‖J(x)v‖², the curvature of the linearized penalty along v.
    pub fn penalty_curvature(&mut self, x: &F::Point, v: &F::Point) -> f64 {
        self.constraint.jvp(x, v, &mut self.scratch.product);
        self.penalty * self.scratch.product.norm_squared()
    }

    /// φ computed from f, and ‖c‖. Leaves c in the scratch space.
    fn penalize(&mut self, x: &F::Point, f: Evaluation) -> (Evaluation, f64) {
        self.constraint.residual(x, &mut self.scratch.residual);
        let norm = self.scratch.residual.norm();
        let c_rounding = self.constraint.rounding(x, norm);
        let rounding = f.rounding + self.penalty * c_rounding * (norm + 0.5 * c_rounding);
        (Evaluation { value: f.value + 0.5 * self.penalty * norm * norm, rounding }, norm)
    }
}

impl<F: Objective, C: Constraint<Point = F::Point>> Objective for Penalized<F, C> {
    type Point = F::Point;
    fn terms(&self) -> usize {
        self.objective.terms()
    }
    fn value(&mut self, x: &F::Point, sample: &Sample) -> Evaluation {
        let value = self.objective.value(x, sample);
        self.penalize(x, value).0
    }
    fn value_and_gradient(&mut self, x: &F::Point, sample: &Sample, gradient: &mut F::Point) -> Evaluation {
        let value = self.objective.value_and_gradient(x, sample, gradient);
        let penalized;
        (penalized, self.gradient_norm) = self.penalize(x, value);
        self.constraint.add_vjp(x, self.penalty, &self.scratch.residual, gradient);
        penalized
    }
    /// Adds μ(JᵀJv + Σ cᵢ∇²cᵢv) to the product with the Hessian of f, and μJᵀJv to that with its Gauss–Newton matrix.
    fn curvature_product(
        &mut self,
        kind: ProductKind,
        x: &F::Point,
        sample: &Sample,
        direction: &F::Point,
        product: &mut F::Point,
    ) -> bool {
        if !self.objective.curvature_product(kind, x, sample, direction, product) {
            return false;
        }
        let PenaltyScratch { residual, product: change } = &mut self.scratch;
        self.constraint.jvp(x, direction, change);
        self.constraint.add_vjp(x, self.penalty, change, product);
        if kind == ProductKind::GaussNewton {
            return true;
        }
        self.constraint.residual(x, residual);
        self.constraint.add_second_order_product(x, self.penalty, residual, direction, product)
    }
    fn constraint_norm(&mut self, x: &F::Point) -> f64 {
        self.constraint.residual(x, &mut self.scratch.residual);
        self.scratch.residual.norm()
    }
    fn draws(&self) -> Option<Draws> {
        self.objective.draws()
    }
    fn check_point(&self, x: &F::Point) -> Result<(), Error> {
        self.objective.check_point(x)?;
        self.constraint.check_point(x)
    }
    fn agree(&mut self, consensus: &mut Consensus) -> Result<(), Error> {
        self.objective.agree(consensus)
    }
    fn failure(&self) -> Option<Error> {
        self.objective.failure()
    }
}
