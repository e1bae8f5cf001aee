use super::{Consensus, Evaluation, Objective, ObjectiveWrapper, Peers, ProductKind};
use crate::{Error, sample::Sample, vector::Vector};

/// Terms of one evaluation at most. A larger sample is evaluated in parts, so that it can be stopped in between.
const PART: usize = 1 << 16;

/// An objective whose long evaluations can be stopped: measurements, and samples of more than 65,536 terms.
///
/// `stops` is asked before each piece of a measurement and each part of a large sample. Once it is true, these evaluations
/// are NaN and [`Peers::failure`] is [`Error::Stopped`], so a [run](crate::run) returns what it has. Mini-batches of
/// steps are short and are always evaluated.
///
/// If the samples are shared out among ranks, wrap the [`Sharded`](crate::ranks::Sharded) objective, and let `stops` sum
/// over the ranks whether one of them stops. All ranks then evaluate the same samples, so all of them ask at the same places
/// and stop at the same one.
///
/// ```
/// use std::cell::Cell;
/// use strust::{objective::{Stoppable, full_value}, prelude::*};
/// let asked = Cell::new(0);
/// let stops = || { asked.set(asked.get() + 1); asked.get() > 3 };
/// let f = from_terms(10_000, |_, x: &Vec<f64>, g| { g[0] += x[0]; 0.5 * x[0] * x[0] });
/// let mut f = Stoppable::new(f, stops);
/// assert!(full_value(&mut f, &vec![1.0]).is_nan());
/// assert!(f.is_stopped() && asked.get() == 4);
/// ```
#[derive(Debug, Clone)]
pub struct Stoppable<F, S> {
    inner: F,
    stops: S,
    stopped: bool,
}

impl<F: Objective, S: Fn() -> bool> Stoppable<F, S> {
    /// Makes an objective stoppable.
    pub fn new(inner: F, stops: S) -> Self {
        Self { inner, stops, stopped: false }
    }
    /// Whether an evaluation was stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Whether the sample is one of a step, and short.
    fn is_short(sample: &Sample) -> bool {
        !sample.measures() && sample.len() <= PART
    }

    fn asked(&mut self) -> bool {
        self.stopped = self.stopped || (self.stops)();
        self.stopped
    }

    /// Evaluates a sample that is not short.
    fn evaluate(&mut self, x: &F::Point, sample: &Sample, mut gradient: Option<&mut F::Point>) -> Evaluation {
        let mut one = |part: &Sample, gradient: Option<&mut F::Point>| match gradient {
            _ if self.asked() => Evaluation { value: f64::NAN, rounding: f64::NAN },
            Some(gradient) => self.inner.value_and_gradient(x, part, gradient),
            None => self.inner.value(x, part),
        };
        if sample.len() <= PART {
            return one(sample, gradient);
        }
        let mut sum = Evaluation { value: 0.0, rounding: 0.0 };
        let mut of_part = gradient.as_deref_mut().map(|gradient| {
            gradient.set_zero();
            gradient.zeros_like()
        });
        let mut part = Sample::default();
        for start in (0..sample.len()).step_by(PART) {
            let end = sample.len().min(start + PART);
            part.set_part(sample, start..end);
            let weight = (end - start) as f64 / sample.len() as f64;
            sum.add(weight, one(&part, of_part.as_mut()));
            if sum.value.is_nan() {
                break;
            }
            if let (Some(gradient), Some(of_part)) = (gradient.as_deref_mut(), &of_part) {
                gradient.add(weight, of_part);
            }
        }
        sum
    }
}

impl<F: Objective, S: Fn() -> bool> ObjectiveWrapper for Stoppable<F, S> {
    type Inner = F;
    fn wrapped(&self) -> &F {
        &self.inner
    }
    fn wrapped_mut(&mut self) -> &mut F {
        &mut self.inner
    }
    fn value(this: &mut Self, x: &F::Point, sample: &Sample) -> Evaluation {
        if Self::is_short(sample) { this.inner.value(x, sample) } else { this.evaluate(x, sample, None) }
    }
    fn value_and_gradient(this: &mut Self, x: &F::Point, sample: &Sample, gradient: &mut F::Point) -> Evaluation {
        if Self::is_short(sample) {
            return this.inner.value_and_gradient(x, sample, gradient);
        }
        this.evaluate(x, sample, Some(gradient))
    }
    fn curvature_product(
        this: &mut Self,
        kind: ProductKind,
        x: &F::Point,
        sample: &Sample,
        direction: &F::Point,
        product: &mut F::Point,
    ) -> bool {
        // Without products a method takes differences of gradients, which are NaN then.
        (Self::is_short(sample) || !this.asked()) && this.inner.curvature_product(kind, x, sample, direction, product)
    }
    fn peers(this: &mut Self) -> Option<&mut dyn Peers> {
        Some(this)
    }
}

/// The peers of the inner objective, if it has one, with one more reason why evaluations are NaN.
impl<F: Objective, S: Fn() -> bool> Peers for Stoppable<F, S> {
    fn agree(&mut self, consensus: &mut Consensus) -> Result<(), Error> {
        self.inner.peers().map_or(Ok(()), |peers| peers.agree(consensus))
    }
    fn failure(&mut self) -> Option<Error> {
        let stopped = self.stopped.then_some(Error::Stopped);
        self.inner.peers().and_then(Peers::failure).or(stopped)
    }
}
