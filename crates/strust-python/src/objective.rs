//! One type for all objectives: the methods are compiled once for each component type.

use crate::array::{Array, Scalar};
use std::sync::{Arc, Mutex, MutexGuard};
use strust::{
    Error,
    objective::{Evaluation, Objective, Peers, ProductKind, Sliced},
    sample::{Draws, Sample},
};

/// Any objective over arrays. Its copies share it, and calls from several threads wait for each other.
#[derive(Clone)]
pub struct AnyObjective<T: Scalar>(Arc<Mutex<dyn Objective<Point = Array<T>> + Send>>);

impl<T: Scalar> AnyObjective<T> {
    pub fn new(objective: impl Objective<Point = Array<T>> + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(objective)))
    }
    /// An objective that others use too.
    pub fn shared(objective: Arc<Mutex<dyn Objective<Point = Array<T>> + Send>>) -> Self {
        Self(objective)
    }
    fn get(&self) -> MutexGuard<'_, dyn Objective<Point = Array<T>> + Send + 'static> {
        // An exception in a function of the user unwinds through the lock. Only scratch space is behind it.
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[deny(clippy::missing_trait_methods, reason = "a wrapper must not lose a part of the inner objective")]
impl<T: Scalar> Objective for AnyObjective<T> {
    type Point = Array<T>;
    fn terms(&self) -> usize {
        self.get().terms()
    }
    fn value(&mut self, x: &Array<T>, sample: &Sample) -> Evaluation {
        self.get().value(x, sample)
    }
    fn value_and_gradient(&mut self, x: &Array<T>, sample: &Sample, gradient: &mut Array<T>) -> Evaluation {
        self.get().value_and_gradient(x, sample, gradient)
    }
    fn curvature_product(
        &mut self,
        kind: ProductKind,
        x: &Array<T>,
        sample: &Sample,
        direction: &Array<T>,
        product: &mut Array<T>,
    ) -> bool {
        self.get().curvature_product(kind, x, sample, direction, product)
    }
    fn constraint_norm(&mut self, x: &Array<T>) -> f64 {
        self.get().constraint_norm(x)
    }
    fn draws(&self) -> Option<Draws> {
        self.get().draws()
    }
    fn check_point(&self, x: &Array<T>) -> Result<(), Error> {
        self.get().check_point(x)
    }
    fn peers(&mut self) -> Option<&mut dyn Peers> {
        // An objective in Python is never shared out among processes.
        None
    }
    fn sliced(&mut self) -> Option<&mut dyn Sliced<Point = Array<T>>> {
        None
    }
}
