//! A constructed problem, and the visitor that receives it.

use crate::{
    Error,
    any_problem::AnyProblem,
    data::{experiment::MethodSpec, summary::Metric},
    stepper::{OnInner, Stepper},
    team::{Sharing, Team},
};
use std::path::Path;
use strust::{objective::Scaled, prelude::*, ranks::Group};
use strust_problems::{Classifier, Problem};

/// The metric of a problem on its test set, or on its training set: the accuracy of a classifier, otherwise the loss.
pub(crate) type TestMetric<F> = Box<dyn Fn(&mut F, &<F as Objective>::Point) -> Option<f64>>;

/// Writes a point of a network as a file.
pub(crate) type SaveModel<F> = Box<dyn Fn(&mut F, &Path, &<F as Objective>::Point) -> Result<(), Error>>;

/// A problem as methods see it.
pub(crate) type SharedProblem<P> = Sharded<AnyProblem<P>, Team>;

/// Makes a special stepper of a method for this problem, a mini-batch size and a number of steps; `None` for the usual
/// stepper.
pub(crate) type OwnStepper<F> = Box<dyn Fn(&MethodSpec, usize, u64) -> Option<Result<Box<dyn Stepper<F>>, Error>>>;

/// A constructed problem. A problem without a constraint has a type `C` but no value of it.
pub(crate) struct Setup<F: Objective, C> {
    pub f: F,
    /// Makes the constraint with a retraction.
    pub constraint: Option<Box<dyn Fn(Retraction) -> C>>,
    /// The metric on the test set, for a problem that has one.
    pub test: Option<TestMetric<F>>,
    /// The accuracy on the training set, for a classifier that measures it.
    pub train: Option<TestMetric<F>>,
    /// Writes the model of a point, for a network.
    pub save: Option<SaveModel<F>>,
    /// Special steppers, for a problem on a GPU.
    pub own_stepper: Option<OwnStepper<F>>,
}

impl<F: Problem> Setup<F, Sphere<F::Point>> {
    pub fn unconstrained(f: F) -> Self {
        Self { f, constraint: None, test: None, train: None, save: None, own_stepper: None }
    }
}

impl<F: Classifier + 'static> Setup<F, Sphere<F::Point>> {
    pub fn classifier(f: F) -> Self {
        Self { test: Some(Box::new(F::test_accuracy)), ..Self::unconstrained(f) }
    }

    /// The same with the accuracy on the training set, if it is wanted.
    pub fn with_train_accuracy(self, wanted: bool) -> Self {
        Self { train: wanted.then(|| -> TestMetric<F> { Box::new(F::train_accuracy) }), ..self }
    }
}

impl<F: Objective, C> Setup<F, C> {
    /// A problem with a constraint, made for a retraction.
    pub fn constrained(f: F, constraint: impl Fn(Retraction) -> C + 'static) -> Self {
        Self { f, constraint: Some(Box::new(constraint)), test: None, train: None, save: None, own_stepper: None }
    }

    /// The constraint, for a method that needs one.
    pub fn constraint(&self, retraction: Retraction) -> Result<C, Error> {
        let make = self.constraint.as_ref();
        make.map(|make| make(retraction)).ok_or_else(|| Error::Misfit("the problem has no constraint".into()))
    }
}

impl<F: Problem + 'static, C> Setup<F, C> {
    /// The same problem with its loss multiplied by `scale`.
    ///
    /// # Panics
    /// If it has steppers of its own. Such a problem scales its loss itself.
    pub fn scaled(self, scale: f64) -> Setup<Scaled<F>, C> {
        assert!(self.own_stepper.is_none(), "a problem with special steppers scales its loss itself");
        self.wrapped(|f| Scaled::new(f, scale), Scaled::inner_mut)
    }

    /// The same problem with its type hidden and its samples shared out. Special steppers work only for a rank that is
    /// alone.
    pub fn shared(mut self, Sharing { team, reduction }: Sharing) -> Setup<SharedProblem<F::Point>, C> {
        let own = self.own_stepper.take().filter(|_| team.size() == 1);
        let on_inner = |make: OwnStepper<F>| -> OwnStepper<SharedProblem<F::Point>> {
            Box::new(move |method, batch, steps| {
                let stepper = make(method, batch, steps)?;
                Some(stepper.map(|inner| Box::new(OnInner { inner }) as Box<dyn Stepper<_>>))
            })
        };
        let setup = self
            .wrapped(|f| Sharded::new(AnyProblem::new(f), team).reduction(reduction), |f| f.inner_mut().inner_mut());
        Setup { own_stepper: own.map(on_inner), ..setup }
    }

    /// The problem in a wrapper, without special steppers.
    fn wrapped<W>(self, wrap: impl FnOnce(F) -> W, inner: fn(&mut W) -> &mut F) -> Setup<W, C>
    where
        W: Objective<Point = F::Point> + 'static,
    {
        let measured = |metric: TestMetric<F>| -> TestMetric<W> { Box::new(move |f, x| metric(inner(f), x)) };
        let (test, train) = (self.test.map(measured), self.train.map(measured));
        let save = self.save.map(|save| -> SaveModel<W> { Box::new(move |f, path, x| save(inner(f), path, x)) });
        Setup { f: wrap(self.f), constraint: self.constraint, test, train, save, own_stepper: None }
    }
}

/// Receives a constructed problem of any type.
pub(crate) trait Visitor {
    type Output;
    fn visit<F, C>(self, setup: Setup<F, C>) -> Result<Self::Output, Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static;
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
