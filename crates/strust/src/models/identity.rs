use super::{Local, Model, Step, cauchy_step};
use crate::{Error, objective::Objective};

/// H = I: the model of Algorithm 1. p = −a·g with a = min(1, Δ/‖g‖).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Identity;

impl<F: Objective + ?Sized> Model<F> for Identity {
    type Memory = ();

    fn init(&mut self, _: &mut F, _: &F::Point) -> Result<(), Error> {
        Ok(())
    }
    fn propose<'a>(
        &'a mut self,
        _: &mut F,
        (): &(),
        at: &Local<'a, F::Point>,
        radius: f64,
    ) -> Result<Step<'a, F::Point>, Error> {
        Ok(Step::along(at.gradient, cauchy_step(at.gradient_squared, at.gradient_squared, radius)))
    }
}
