use super::{Local, Model, Step, cauchy_step};
use crate::{
    Error,
    constraints::Constraint,
    objective::{Objective, Penalized},
};

/// H = I + μJᵀJ: the model of Algorithm 2, for a [`Penalized`] objective. One product with J gives gᵀHg = ‖g‖² +
/// μ‖Jg‖².
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Penalty;

impl<F: Objective, C: Constraint<Point = F::Point>> Model<Penalized<F, C>> for Penalty {
    type Memory = ();

    fn init(&mut self, _: &mut Penalized<F, C>, _: &F::Point) -> Result<(), Error> {
        Ok(())
    }
    fn propose<'a>(
        &'a mut self,
        phi: &mut Penalized<F, C>,
        (): &(),
        at: &Local<'a, F::Point>,
        radius: f64,
    ) -> Result<Step<'a, F::Point>, Error> {
        let curvature = at.gradient_squared + phi.penalty_curvature(at.x, at.gradient);
        if !curvature.is_finite() {
            return Err(Error::NonFiniteJacobian { step: at.k, curvature });
        }
        Ok(Step::along(at.gradient, cauchy_step(at.gradient_squared, curvature, radius)))
    }
}
