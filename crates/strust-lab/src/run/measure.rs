//! The metrics of a point, measured on the full sum. Their time and evaluations are not counted. Values are those of
//! the loss before it was multiplied by the problem's `scale`.

use super::workers::Halt;
use crate::{
    Error,
    data::experiment::ProblemSpec,
    registry::{Quantity, problems},
    stepper::Position,
    team::Team,
};
use faer::Mat;
use std::{cell::RefCell, collections::BTreeMap};
use strust::{
    constraints::{AnyConstraint, Constraint, Retraction, Sense},
    objective::{Evaluations, PIECE, Stoppable, full_value_in_pieces},
    prelude::*,
    ranks::Group,
    vector::Elementwise,
};
use strust_problems::Problem;

/// Measures the metrics of a problem over points of type `P`.
pub(super) struct Measure<P> {
    quantities: Vec<Quantity>,
    optimum: Option<f64>,
    constraint: Option<(AnyConstraint<P>, Mat<f64>)>,
    team: Team,
}

/// Whether one of the ranks is to halt. All of them ask at the same places.
struct AnyHalts<'a> {
    team: Team,
    halt: Halt<'a>,
    /// Why the ranks could not be asked.
    lost: RefCell<Option<strust::Error>>,
}

impl AnyHalts<'_> {
    fn asked(&self) -> bool {
        let mut votes = [f64::from(u8::from(self.halt.requested()))];
        if let Err(why) = self.team.clone().sum(&mut votes) {
            self.lost.replace(Some(why));
            return true;
        }
        votes[0] > 0.0
    }
    /// The error of a measurement that was halted.
    fn check(&self, halted: bool) -> Result<(), Error> {
        match self.lost.take() {
            Some(why) => Err(Error::Method(why)),
            None if halted => Err(Error::Interrupted),
            None => Ok(()),
        }
    }
}

impl<P: Elementwise> Measure<P> {
    pub fn new(problem: &ProblemSpec, f: &impl Problem<Point = P>, team: Team) -> Self {
        let constraint = f.any_constraint(Retraction::Qr).map(|c| {
            let residual = c.new_residual();
            (c, residual)
        });
        let quantities = problems::quantities(problem).iter().map(|&(quantity, _)| quantity).collect();
        Self { quantities, optimum: f.optimum(), constraint, team }
    }

    /// Measures a point and leaves the problem as it was. An average is measured with statistics of its own, any other
    /// point with those of rank 0. If a rank is to halt, all ranks leave the measurement at the same place.
    pub fn at(
        &mut self,
        f: &mut impl Problem<Point = P>,
        &Position { x, averaged, steps, .. }: &Position<P>,
        evaluations: Evaluations,
        halt: Halt,
    ) -> Result<BTreeMap<String, f64>, Error> {
        if !averaged && self.team.size() == 1 {
            return self.numbers(f, x, steps, evaluations, halt);
        }
        let own = f.extra_state();
        if averaged {
            f.recompute_extra_state(x);
        } else {
            let mut of_rank_0 = own.clone();
            self.team.broadcast(&mut of_rank_0)?;
            f.restore_extra_state(&of_rank_0)?;
        }
        let numbers = self.numbers(f, x, steps, evaluations, halt);
        f.restore_extra_state(&own)?;
        numbers
    }

    /// f(x) − f*. The error says which of them is not a number.
    fn gap(&self, value: f64, step: u64) -> Result<f64, Error> {
        if !value.is_finite() {
            return Err(Error::Method(strust::Error::NonFiniteValue { step, value }));
        }
        let what = "the computation of the minimum f*, to which the metric is the distance,";
        let fix = "check the data, and scale them if their squares are very large or very small";
        let unknown = Error::Method(strust::Error::Decomposition { what, fix });
        Ok(value - self.optimum.filter(|optimum| optimum.is_finite()).ok_or(unknown)?)
    }

    fn numbers(
        &mut self,
        f: &mut impl Problem<Point = P>,
        x: &P,
        steps: u64,
        evaluations: Evaluations,
        halt: Halt,
    ) -> Result<BTreeMap<String, f64>, Error> {
        let halts = AnyHalts { team: self.team.clone(), halt, lost: RefCell::default() };
        // Ranks may have different devices, but all of them evaluate the same pieces.
        let piece = if self.team.size() == 1 { f.piece() } else { PIECE };
        let mut stoppable = Stoppable::new(&mut *f, || halts.asked());
        let value = full_value_in_pieces(&mut stoppable, x, piece);
        halts.check(stoppable.is_stopped())?;
        let scale = f.scale();
        let mut numbers = BTreeMap::new();
        for &quantity in &self.quantities {
            halts.check(halts.asked())?;
            let number = match quantity {
                Quantity::Objective | Quantity::TrainLoss => value / scale,
                Quantity::ObjectiveGap => self.gap(value, steps)? / scale,
                Quantity::ObjectiveError => self.gap(value, steps)?.abs() / scale,
                Quantity::ConstraintNorm => self.constraint.as_mut().map_or(f64::NAN, |(c, residual)| {
                    c.residual(x, residual);
                    let norm = violation(c, residual);
                    c.bounds().map_or(norm, |bounds| {
                        let mut outside = x.clone();
                        bounds.clip(&mut outside);
                        outside.add(-1.0, x);
                        norm.hypot(outside.norm())
                    })
                }),
                Quantity::TestLoss | Quantity::TestAccuracy => f.test_metric(x).unwrap_or(f64::NAN),
                Quantity::TrainAccuracy => f.train_accuracy(x).unwrap_or(f64::NAN),
            };
            numbers.insert(quantity.key().into(), number);
        }
        if self.quantities.iter().any(|quantity| quantity.of_test_set()) {
            // The cost of a network: a value is a forward pass, a gradient is a forward and a backward pass.
            numbers.insert("forwards".into(), (evaluations.values + evaluations.gradients) as f64);
            numbers.insert("backwards".into(), evaluations.gradients as f64);
        }
        Ok(numbers)
    }
}

/// ‖c(x)‖, to which an inequality that is satisfied adds nothing.
fn violation<P: Vector>(constraint: &AnyConstraint<P>, c: &Mat<f64>) -> f64 {
    let rows = 0..c.dimension();
    if rows.clone().all(|row| constraint.sense(row) == Sense::Equal) {
        return c.norm();
    }
    let outside = |row| match c.component(row) {
        c if c <= 0.0 && constraint.sense(row) == Sense::AtMost => 0.0,
        c => c,
    };
    rows.map(|row| outside(row).powi(2)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod halting {
    use super::*;
    use crate::run::workers::FirstError;
    use std::sync::atomic::AtomicBool;
    use strust_problems::LeastSquares;

    #[test]
    fn a_measurement_ends_when_the_run_is_to_halt() {
        let mut f = LeastSquares::<f64>::interpolating(2000, 3, 0).unwrap();
        let x = f.start(0);
        let mut measure =
            Measure { quantities: vec![Quantity::Objective], optimum: None, constraint: None, team: Team::alone() };
        let (errors, interrupt) = (FirstError::default(), AtomicBool::new(false));
        let mut at = |interrupt: &AtomicBool| {
            let position = Position { steps: 0, x: &x, averaged: false };
            measure.at(&mut f, &position, Evaluations::default(), errors.halt(interrupt))
        };
        assert!(at(&interrupt).unwrap()["objective"] > 0.0);
        assert!(matches!(at(&AtomicBool::new(true)), Err(Error::Interrupted)));
    }
}

#[cfg(all(test, feature = "torch"))]
mod tests {
    use super::*;
    use crate::{
        run::workers::FirstError,
        stepper::{StepByStep, Stepper},
    };
    use std::sync::atomic::AtomicBool;
    use strust::methods::Averaged;
    use strust_baselines::Sgd;
    use strust_torch::{Flat, ImageClassification, device::Device, images::ImageBytes};

    /// Forty images of made-up bytes, 3×32×32, for training and for tests.
    fn problem() -> ImageClassification {
        strust_torch::device::set_threads(1);
        let pixels: Vec<u8> = (0..40 * 3072_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let labels: Vec<u8> = (0..40).map(|i| i % 4).collect();
        let images = ImageBytes { pixels: &pixels, labels: &labels, shape: [3, 32, 32] };
        ImageClassification::resnet20(&images, Some(&images), 4, Device::Cpu).unwrap()
    }

    fn measure() -> Measure<Flat<f32>> {
        Measure {
            quantities: vec![Quantity::TrainLoss, Quantity::TestAccuracy],
            optimum: None,
            constraint: None,
            team: Team::alone(),
        }
    }

    /// The records, the last point and the running statistics of six steps, and the metrics of the last point.
    fn run(measured: bool) -> (Vec<StepRecord>, Vec<f64>, Vec<u8>, BTreeMap<String, f64>) {
        let mut f = problem();
        let (start, mut records) = (f.start(1), Vec::new());
        let mut stepper = StepByStep::new(Averaged::of(Sgd::default()));
        Stepper::start(&mut stepper, &mut f, start).unwrap();
        let (mut sampler, mut measure) = (Epochs::new(40, 16, 3).unwrap(), measure());
        let mut metrics = BTreeMap::new();
        for k in 0..6 {
            stepper.advance(&mut f, &mut sampler, 1, &mut |_| true, &mut records).unwrap();
            if measured || k == 5 {
                let position = stepper.current(&mut f);
                assert!(position.averaged);
                let before = f.extra_state();
                let (errors, interrupt) = (FirstError::default(), AtomicBool::new(false));
                metrics = measure.at(&mut f, &position, Evaluations::default(), errors.halt(&interrupt)).unwrap();
                assert!(f.extra_state() == before, "the running statistics are those of the run again");
            }
        }
        let x = stepper.current(&mut f).x.to_vec();
        (records, x, f.extra_state(), metrics)
    }

    #[test]
    fn averages_are_measured_with_their_own_statistics_and_without_a_trace() {
        let (with, without) = (run(true), run(false));
        assert_eq!(with, without);

        let (_, x, statistics, metrics) = with;
        let (mut f, x) = (problem(), Flat::from_slice(&x));
        f.restore_extra_state(&statistics).unwrap();
        f.recompute_extra_state(&x);
        assert_eq!(f.test_metric(&x), Some(metrics["test_accuracy"]));
        assert!(f.extra_state() != statistics, "an average has other statistics than the run");
    }
}
