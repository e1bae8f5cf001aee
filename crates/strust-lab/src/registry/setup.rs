//! A constructed problem, and the visitor that receives it.

use super::keys::Keys;
use crate::{
    Error,
    any_problem::{AnyProblem, SharedProblem},
    data::summary::Metric,
    stepper::Stepper,
    team::Sharing,
};
use faer::Mat;
use std::{any::Any, path::Path};
use strust::{
    constraints::{Manifold, Retraction},
    objective::Scaled,
    prelude::*,
    ranks::{Group, Sharded},
    vector::{Dense, Elementwise},
};
use strust_problems::{Classifier, Problem};

/// The metric of a problem on its test set, or on its training set: the accuracy of a classifier, otherwise the loss.
pub(crate) type TestMetric<F> = Box<dyn Fn(&mut F, &<F as Objective>::Point) -> Option<f64>>;

/// Writes a point of a network as a file.
pub(crate) type SaveModel<F> = Box<dyn Fn(&mut F, &Path, &<F as Objective>::Point) -> Result<(), Error>>;

/// A constraint as methods see it.
pub(crate) type AnyConstraint<P> = Box<dyn Manifold<Point = P, Residual = Mat<f64>> + Send>;

/// Makes the constraint of a problem with a retraction.
pub(crate) type MakeConstraint<P> = Box<dyn Fn(Retraction) -> AnyConstraint<P>>;

/// A stepper on a problem over points of type `P`.
pub(crate) type AnyStepper<P> = Box<dyn Stepper<SharedProblem<P>>>;

/// Makes a special stepper of a method for this problem, a mini-batch size and a number of steps; `None` for the usual
/// stepper.
pub(crate) type OwnStepper<P> = Box<dyn Fn(&Keys, usize, u64) -> Option<Result<AnyStepper<P>, Error>>>;

/// A constructed problem.
pub(crate) struct Setup<F: Objective> {
    pub f: F,
    /// Makes the constraint with a retraction.
    pub constraint: Option<MakeConstraint<F::Point>>,
    /// The metric on the test set, for a problem that has one.
    pub test: Option<TestMetric<F>>,
    /// The accuracy on the training set, for a classifier that measures it.
    pub train: Option<TestMetric<F>>,
    /// Writes the model of a point, for a network.
    pub save: Option<SaveModel<F>>,
    /// Special steppers, for a problem on a GPU.
    pub own_stepper: Option<OwnStepper<F::Point>>,
    /// What must live as long as the problem, such as the stream of a device. It is declared last, so it is dropped last.
    pub held: Option<Box<dyn Any>>,
}

impl<F: Problem> Setup<F> {
    pub fn unconstrained(f: F) -> Self {
        Self { f, constraint: None, test: None, train: None, save: None, own_stepper: None, held: None }
    }

    /// A problem with a constraint, made for a retraction.
    pub fn constrained<C>(f: F, constraint: impl Fn(Retraction) -> C + 'static) -> Self
    where
        C: Manifold<Point = F::Point, Residual: Dense<Scalar = f64> + Send> + Send + 'static,
    {
        let constraint =
            move |retraction| -> AnyConstraint<F::Point> { Box::new(InMatrix::new(constraint(retraction))) };
        Self { constraint: Some(Box::new(constraint)), ..Self::unconstrained(f) }
    }
}

impl<F: Classifier + 'static> Setup<F> {
    pub fn classifier(f: F) -> Self {
        Self { test: Some(Box::new(F::test_accuracy)), ..Self::unconstrained(f) }
    }

    /// The same with the accuracy on the training set, if it is wanted.
    pub fn with_train_accuracy(self, wanted: bool) -> Self {
        Self { train: wanted.then(|| -> TestMetric<F> { Box::new(F::train_accuracy) }), ..self }
    }
}

impl<F: Problem + 'static> Setup<F> {
    /// The same problem with its loss multiplied by `scale`.
    fn scaled(self, scale: f64) -> Setup<Scaled<F>> {
        self.wrapped(|f| Scaled::new(f, scale), Scaled::inner_mut)
    }

    /// The same problem with its type hidden and its samples shared out. Special steppers work only for a rank that is
    /// alone.
    pub fn shared(mut self, Sharing { team, reduction }: Sharing) -> Setup<SharedProblem<F::Point>> {
        self.own_stepper = self.own_stepper.filter(|_| team.size() == 1);
        self.wrapped(|f| Sharded::new(AnyProblem::new(f), team).reduction(reduction), |f| f.inner_mut().inner_mut())
    }

    /// The problem in a wrapper.
    fn wrapped<W>(self, wrap: impl FnOnce(F) -> W, inner: fn(&mut W) -> &mut F) -> Setup<W>
    where
        W: Objective<Point = F::Point> + 'static,
    {
        let measured = |metric: TestMetric<F>| -> TestMetric<W> { Box::new(move |f, x| metric(inner(f), x)) };
        let (test, train) = (self.test.map(measured), self.train.map(measured));
        let save = self.save.map(|save| -> SaveModel<W> { Box::new(move |f, path, x| save(inner(f), path, x)) });
        let Self { f, constraint, own_stepper, held, .. } = self;
        Setup { f: wrap(f), constraint, test, train, save, own_stepper, held }
    }
}

/// A constraint whose residual is a matrix with the same columns, so that methods are compiled once per type of point,
/// not once per constraint.
struct InMatrix<C: Constraint> {
    inner: C,
    residual: C::Residual,
}

impl<C: Constraint<Residual: Dense<Scalar = f64>>> InMatrix<C> {
    fn new(inner: C) -> Self {
        Self { residual: inner.new_residual(), inner }
    }
    /// out ← the residual.
    fn read(&self, out: &mut Mat<f64>) {
        (0..self.residual.parts()).for_each(|j| out.part_mut(j).copy_from_slice(self.residual.part(j)));
    }
    /// The residual ← y.
    fn write(&mut self, y: &Mat<f64>) {
        (0..self.residual.parts()).for_each(|j| self.residual.part_mut(j).copy_from_slice(y.part(j)));
    }
}

#[deny(clippy::missing_trait_methods, reason = "a wrapper must not lose a part of the inner constraint")]
impl<C: Constraint<Residual: Dense<Scalar = f64>>> Constraint for InMatrix<C> {
    type Point = C::Point;
    type Residual = Mat<f64>;
    fn new_residual(&self) -> Mat<f64> {
        let rows = if self.residual.parts() == 0 { 0 } else { self.residual.part(0).len() };
        Mat::zeros(rows, self.residual.parts())
    }
    fn residual(&mut self, x: &C::Point, c: &mut Mat<f64>) {
        self.inner.residual(x, &mut self.residual);
        self.read(c);
    }
    fn jvp(&mut self, x: &C::Point, v: &C::Point, out: &mut Mat<f64>) {
        self.inner.jvp(x, v, &mut self.residual);
        self.read(out);
    }
    fn add_vjp(&mut self, x: &C::Point, a: f64, y: &Mat<f64>, out: &mut C::Point) {
        self.write(y);
        self.inner.add_vjp(x, a, &self.residual, out);
    }
    fn add_second_order_product(
        &mut self,
        x: &C::Point,
        a: f64,
        y: &Mat<f64>,
        v: &C::Point,
        out: &mut C::Point,
    ) -> bool {
        self.write(y);
        self.inner.add_second_order_product(x, a, &self.residual, v, out)
    }
    fn rounding(&self, x: &C::Point, norm: f64) -> f64 {
        self.inner.rounding(x, norm)
    }
    fn redundant(&self) -> usize {
        self.inner.redundant()
    }
    fn sense(&self, row: usize) -> strust::constraints::Sense {
        self.inner.sense(row)
    }
    fn bounds(&self) -> Option<&Bounds<C::Point>> {
        self.inner.bounds()
    }
    fn check_point(&self, x: &C::Point) -> Result<(), strust::Error> {
        self.inner.check_point(x)
    }
}

impl<C: Manifold<Residual: Dense<Scalar = f64>>> Manifold for InMatrix<C> {
    fn project_tangent(&mut self, x: &C::Point, v: &mut C::Point) -> Result<(), strust::Error> {
        self.inner.project_tangent(x, v)
    }
    fn restore(&mut self, x: &mut C::Point) -> Result<(), strust::Error> {
        self.inner.restore(x)
    }
}

/// Completes the problem of an entry: scales its loss, hides its type and shares out its samples.
pub(crate) struct Assembler {
    /// The factor of the loss.
    pub scale: f64,
    pub sharing: Sharing,
}

impl Assembler {
    /// Completes a problem.
    pub fn finish<F: Problem<Point: PointType> + 'static>(self, setup: Setup<F>) -> AnySetup {
        PointType::hidden(setup.scaled(self.scale).shared(self.sharing))
    }
}

/// A type of points that problems of experiments have.
pub(crate) trait PointType: Elementwise + Send + 'static {
    fn hidden(setup: Setup<SharedProblem<Self>>) -> AnySetup;
}

/// Declares the types of points.
macro_rules! point_types {
    ($($variant:ident: $point:ty),*) => {
        /// A constructed problem of any type. Methods are compiled once for each type of point here.
        pub(crate) enum AnySetup {
            $($variant(Setup<SharedProblem<$point>>),)*
        }
        impl AnySetup {
            /// Passes the problem to a visitor.
            pub fn visit<V: Visitor>(self, visitor: V) -> Result<V::Output, Error> {
                match self {
                    $(Self::$variant(setup) => visitor.visit(setup),)*
                }
            }
        }
        $(impl PointType for $point {
            fn hidden(setup: Setup<SharedProblem<Self>>) -> AnySetup {
                AnySetup::$variant(setup)
            }
        })*
    };
}

#[cfg(not(feature = "torch"))]
point_types!(F64: Vec<f64>, F32: Vec<f32>, Matrix: Mat<f64>);
#[cfg(feature = "torch")]
point_types!(F64: Vec<f64>, F32: Vec<f32>, Matrix: Mat<f64>, Network: strust_torch::Flat<f32>);

/// Receives a constructed problem of any type.
pub(crate) trait Visitor {
    type Output;
    fn visit<P: PointType>(self, setup: Setup<SharedProblem<P>>) -> Result<Self::Output, Error>;
}

/// A quantity measured at the end of every epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// f(x).
    Objective,
    /// f(x), the loss of a network.
    TrainLoss,
    /// f(x) − f*.
    ObjectiveGap,
    /// |f(x) − f*|, for a problem where f is below f* at some points that violate its constraint.
    ObjectiveError,
    /// ‖c(x)‖, with the distance to the bounds.
    ConstraintNorm,
    /// The loss on the test set.
    TestLoss,
    /// The share of the test set that is classified correctly.
    TestAccuracy,
    /// The share of the training set that is classified correctly.
    TrainAccuracy,
}

impl Quantity {
    /// Its key in records and summaries.
    pub fn key(self) -> &'static str {
        match self {
            Self::Objective => "objective",
            Self::TrainLoss => "train_loss",
            Self::ObjectiveGap | Self::ObjectiveError => "objective_gap",
            Self::ConstraintNorm => "constraint_norm",
            Self::TestLoss => "test_loss",
            Self::TestAccuracy => "test_accuracy",
            Self::TrainAccuracy => "train_accuracy",
        }
    }

    /// Whether it is measured on the test set.
    pub fn of_test_set(self) -> bool {
        matches!(self, Self::TestLoss | Self::TestAccuracy)
    }
}

/// A quantity with its name for people.
pub(crate) fn metric(quantity: Quantity, label: &str) -> Metric {
    let log = !matches!(quantity, Quantity::TestAccuracy | Quantity::TrainAccuracy);
    Metric { key: quantity.key().into(), label: label.into(), log }
}
