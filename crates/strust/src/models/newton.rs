use super::{CgSpace, Exit, Local, Model, Step, Subproblem, Trial, radius_after, steihaug};
use crate::{
    Error,
    objective::{Evaluations, Objective, ProductKind},
    radius::Judgment,
    vector::Vector,
};

/// The general model of the paper, m(p) = gᵀp + ½pᵀHp, with the Hessian or the Gauss–Newton matrix H of the sample. Its
/// step comes from truncated conjugate gradients ([`steihaug`]).
///
/// Products come from [`Objective::curvature_product`]. An objective without them gets Hv ≈ (∇f(x + hv) − g)/h on the same
/// sample, one gradient for each product, with h‖v‖ = √ε(1 + ‖x‖).
#[derive(Debug, Clone)]
pub struct Newton<V> {
    kind: ProductKind,
    /// The most products of a step.
    products: u64,
    /// The largest tolerance of the conjugate gradients.
    forcing: f64,
    /// The most products at the boundary.
    at_boundary: u64,
    /// How many shorter steps are kept for a retreat.
    shorter: usize,
    space: Option<NewtonSpace<V>>,
}

#[derive(Debug, Clone)]
struct NewtonSpace<V> {
    cg: CgSpace<V>,
    /// The length of the last step.
    length: f64,
    /// The point and the gradient of a difference, if products need one.
    difference: Option<(V, V)>,
    /// The factor of the model, and the gradient times this.
    unit: f64,
    scaled: Option<V>,
}

impl<V> Newton<V> {
    /// With this matrix, so many products in a step, and conjugate gradients that end at the latest where the gradient of
    /// the model is `forcing`·‖g‖. `at_boundary` and `shorter` are those of [`Subproblem`].
    #[must_use]
    pub fn new(kind: ProductKind, products: u64, forcing: f64, at_boundary: u64, shorter: usize) -> Self {
        Self { kind, products, forcing, at_boundary, shorter, space: None }
    }
}

/// What [`Newton`] keeps from step to step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct NewtonMemory {
    /// The largest ‖g‖ so far. It makes the tolerance of the inner iteration independent of the scale of f.
    pub(crate) largest_gradient: f64,
}
crate::saved!([] NewtonMemory { largest_gradient });

impl NewtonMemory {
    /// A memory of this largest gradient, for the version on a device.
    #[doc(hidden)]
    #[must_use]
    pub fn new(largest_gradient: f64) -> Self {
        Self { largest_gradient }
    }
    /// The largest ‖∇f‖ so far.
    #[must_use]
    pub fn largest_gradient(&self) -> f64 {
        self.largest_gradient
    }
}

/// gᵀHg is a cube of the scale of f. Outside of 2^±250 it could under- or overflow.
const MOST_EXPONENT: f64 = 250.0;

/// The power of two by which the model is multiplied: 1, unless the norm of the gradient is very large or very small. It
/// changes no step, only the size of the numbers on the way.
fn unit(norm: f64) -> f64 {
    let exponent = norm.log2().round();
    if exponent.abs() > MOST_EXPONENT && exponent.is_finite() { (-exponent).exp2() } else { 1.0 }
}

/// Sets `out` to Hv, exactly or by a difference of gradients, and counts it.
pub(crate) fn multiply<F: Objective + ?Sized>(
    f: &mut F,
    kind: ProductKind,
    at: &Local<'_, F::Point>,
    difference: &mut Option<(F::Point, F::Point)>,
    evaluations: &mut Evaluations,
    v: &F::Point,
    out: &mut F::Point,
) {
    if f.curvature_product(kind, at.x, at.sample, v, out) {
        evaluations.products += 1;
        return;
    }
    let (point, gradient) = difference.get_or_insert_with(|| (at.x.zeros_like(), at.x.zeros_like()));
    let h = F::Point::EPSILON.sqrt() * (1.0 + at.x.norm()) / v.norm();
    point.set_sum(at.x, h, v);
    f.value_and_gradient(point, at.sample, gradient);
    evaluations.gradients += 1;
    out.set_sum(gradient, -1.0, at.gradient);
    out.scale(1.0 / h);
}

impl<F: Objective + ?Sized> Model<F> for Newton<F::Point> {
    type Memory = NewtonMemory;

    fn init(&mut self, _: &mut F, _: &F::Point) -> Result<NewtonMemory, Error> {
        Ok(NewtonMemory::default())
    }

    fn propose<'a>(
        &'a mut self,
        f: &mut F,
        memory: &NewtonMemory,
        at: &Local<'a, F::Point>,
        radius: f64,
    ) -> Result<Step<'a, F::Point>, Error> {
        let &mut Self { kind, products: most, forcing, at_boundary, shorter, ref mut space } = self;
        let NewtonSpace { cg, length, difference, unit: factor, scaled } = space.get_or_insert_with(|| NewtonSpace {
            cg: CgSpace::new(at.x),
            length: 0.0,
            difference: None,
            unit: 1.0,
            scaled: None,
        });
        let norm = at.gradient_squared.sqrt();
        *factor = unit(norm);
        let (factor, is_scaled) = (*factor, (*factor - 1.0).abs() > 0.0);
        let gradient = if is_scaled {
            let scaled = scaled.get_or_insert_with(|| at.x.zeros_like());
            scaled.copy_from(at.gradient);
            scaled.scale(factor);
            &*scaled
        } else {
            at.gradient
        };
        let largest = memory.largest_gradient.max(norm);
        // Superlinear where gradients vanish.
        let tolerance = forcing.min((norm / largest).sqrt());
        let mut evaluations = Evaluations::default();
        let problem = Subproblem { gradient, radius, tolerance, most, at_boundary, shorter };
        let step = steihaug(&problem, cg, |v, out| {
            multiply(f, kind, at, difference, &mut evaluations, v, out);
            if is_scaled {
                out.scale(factor);
            }
            Ok::<(), Error>(())
        })?;
        if step.length == 0.0 && step.exit.exit() != Exit::Stationary {
            // The first product is not finite.
            return Err(Error::NonFiniteCurvature { step: at.k, curvature: cg.curvature() });
        }
        *length = step.length;
        let (predicted, exit) = (step.predicted / factor, step.exit.exit());
        Ok(Step { direction: &cg.solution, size: 1.0, length: step.length, predicted, exit, evaluations })
    }

    fn learn(&mut self, memory: &mut NewtonMemory, trial: &Trial<'_, F::Point>) {
        memory.largest_gradient = memory.largest_gradient.max(trial.at.gradient_squared.sqrt());
    }

    fn retreat(&mut self) -> Option<Step<'_, F::Point>> {
        let NewtonSpace { cg, length, unit, .. } = self.space.as_mut()?;
        let (shorter, predicted) = cg.retreat(*length)?;
        let predicted = predicted / *unit;
        *length = shorter;
        let evaluations = Evaluations::default();
        Some(Step { direction: &cg.solution, size: 1.0, length: shorter, predicted, exit: Exit::Boundary, evaluations })
    }

    fn next_radius(&self, radius: f64, length: f64, exit: Exit, judgment: &Judgment) -> f64 {
        let length = self.space.as_ref().map_or(length, |space| space.length);
        radius_after(radius, length, exit, judgment)
    }
}
