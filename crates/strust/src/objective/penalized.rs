use super::{Evaluation, Objective, ObjectiveWrapper, ProductKind};
use crate::{Error, constraints::Constraint, sample::Sample, vector::Vector};

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

impl<F: Objective, C: Constraint<Point = F::Point>> ObjectiveWrapper for Penalized<F, C> {
    type Inner = F;
    fn wrapped(&self) -> &F {
        &self.objective
    }
    fn wrapped_mut(&mut self) -> &mut F {
        &mut self.objective
    }
    fn value(this: &mut Self, x: &F::Point, sample: &Sample) -> Evaluation {
        let value = this.objective.value(x, sample);
        this.penalize(x, value).0
    }
    fn value_and_gradient(this: &mut Self, x: &F::Point, sample: &Sample, gradient: &mut F::Point) -> Evaluation {
        let value = this.objective.value_and_gradient(x, sample, gradient);
        let penalized;
        (penalized, this.gradient_norm) = this.penalize(x, value);
        this.constraint.add_vjp(x, this.penalty, &this.scratch.residual, gradient);
        penalized
    }
    /// Adds μ(JᵀJv + Σ cᵢ∇²cᵢv) to the product with the Hessian of f, and μJᵀJv to that with its Gauss–Newton matrix.
    fn curvature_product(
        this: &mut Self,
        kind: ProductKind,
        x: &F::Point,
        sample: &Sample,
        direction: &F::Point,
        product: &mut F::Point,
    ) -> bool {
        if !this.objective.curvature_product(kind, x, sample, direction, product) {
            return false;
        }
        let PenaltyScratch { residual, product: change } = &mut this.scratch;
        this.constraint.jvp(x, direction, change);
        this.constraint.add_vjp(x, this.penalty, change, product);
        if kind == ProductKind::GaussNewton {
            return true;
        }
        this.constraint.residual(x, residual);
        this.constraint.add_second_order_product(x, this.penalty, residual, direction, product)
    }
    fn constraint_norm(this: &mut Self, x: &F::Point) -> f64 {
        this.constraint.residual(x, &mut this.scratch.residual);
        this.scratch.residual.norm()
    }
    fn check_point(this: &Self, x: &F::Point) -> Result<(), Error> {
        this.objective.check_point(x)?;
        this.constraint.check_point(x)
    }
}
