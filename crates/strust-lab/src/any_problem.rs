//! A problem of any type. Every method is compiled once per type of point, not once per problem: that would take minutes.

use crate::team::Team;
use std::any::Any;
use strust::{
    Error,
    objective::{ObjectiveWrapper, Sliced},
    ranks::Sharded,
    vector::Elementwise,
};
use strust_problems::Problem;

/// A problem over points of type `P`.
pub(crate) struct AnyProblem<P> {
    problem: Box<dyn Erased<P>>,
}

/// A problem as methods see it: its samples are shared out among the ranks.
pub(crate) type SharedProblem<P> = Sharded<AnyProblem<P>, Team>;

pub(crate) trait Erased<P>: Problem<Point = P> {
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<F: Problem + 'static> Erased<F::Point> for F {
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl<P: Elementwise> AnyProblem<P> {
    pub fn new(problem: impl Problem<Point = P> + 'static) -> Self {
        Self { problem: Box::new(problem) }
    }

    /// The problem itself.
    ///
    /// # Panics
    /// If it has another type than it was made with.
    pub fn inner_mut<F: 'static>(&mut self) -> &mut F {
        self.problem.as_any_mut().downcast_mut().expect("a problem keeps its type")
    }
}

impl<P: Elementwise> ObjectiveWrapper for AnyProblem<P> {
    type Inner = dyn Erased<P>;
    fn wrapped(&self) -> &Self::Inner {
        &*self.problem
    }
    fn wrapped_mut(&mut self) -> &mut Self::Inner {
        &mut *self.problem
    }
    fn sliced(this: &mut Self) -> Option<&mut dyn Sliced<Point = P>> {
        this.problem.sliced()
    }
}

#[deny(clippy::missing_trait_methods, reason = "a wrapper must not lose a part of the problem")]
impl<P: Elementwise> Problem for AnyProblem<P> {
    fn start(&self, seed: u64) -> P {
        self.problem.start(seed)
    }
    fn optimum(&self) -> Option<f64> {
        self.problem.optimum()
    }
    fn scale(&self) -> f64 {
        self.problem.scale()
    }
    fn feature_scales(&self) -> Option<Vec<f64>> {
        self.problem.feature_scales()
    }
    fn extra_state(&self) -> Vec<u8> {
        self.problem.extra_state()
    }
    fn restore_extra_state(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.problem.restore_extra_state(bytes)
    }
    fn recompute_extra_state(&mut self, x: &P) {
        self.problem.recompute_extra_state(x);
    }
}
