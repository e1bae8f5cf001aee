//! A constructed problem, and the visitor that receives it.

use super::keys::Keys;
use crate::{
    Error,
    data::summary::Metric,
    stepper::Stepper,
    team::{Sharing, Team},
};
use faer::Mat;
use std::{any::Any, path::Path};
use strust::ranks::Sharded;
use strust_baselines::by_name::MethodPoint;
use strust_problems::AnyProblem;

/// A problem as methods see it: its samples are shared out among the ranks.
pub(crate) type SharedProblem<P> = Sharded<AnyProblem<P>, Team>;

/// Writes a point of a network as a file.
pub(crate) type SaveModel<P> = Box<dyn Fn(&mut SharedProblem<P>, &Path, &P) -> Result<(), Error>>;

/// A stepper on a problem over points of type `P`.
pub(crate) type AnyStepper<P> = Box<dyn Stepper<SharedProblem<P>>>;

/// Makes a special stepper of a method for this problem, a mini-batch size and a number of steps; `None` for the usual
/// stepper.
pub(crate) type OwnStepper<P> = Box<dyn Fn(&Keys, usize, u64) -> Option<Result<AnyStepper<P>, Error>>>;

/// A constructed problem.
pub(crate) struct Setup<P: PointType> {
    pub f: SharedProblem<P>,
    /// Writes the model of a point, for a network.
    pub save: Option<SaveModel<P>>,
    /// Special steppers, for a problem on a GPU.
    pub own_stepper: Option<OwnStepper<P>>,
    /// What must live as long as the problem, such as the stream of a device. It is declared last, so it is dropped last.
    pub held: Option<Box<dyn Any>>,
}

/// Completes the problem of an entry: scales its loss and shares out its samples.
pub(crate) struct Assembler {
    /// The factor of the loss.
    pub scale: f64,
    pub sharing: Sharing,
}

impl Assembler {
    /// Completes a problem.
    pub fn finish<P: PointType>(self, f: impl Into<AnyProblem<P>>) -> AnySetup {
        let scale = self.scale;
        P::hidden(self.shared(f.into().scaled(scale)))
    }

    /// Shares out the samples of a problem that has its factor.
    pub fn shared<P: PointType>(self, f: AnyProblem<P>) -> Setup<P> {
        let Sharing { team, reduction } = self.sharing;
        Setup { f: Sharded::new(f, team).reduction(reduction), save: None, own_stepper: None, held: None }
    }
}

/// A type of points that problems of experiments have.
pub(crate) trait PointType: MethodPoint {
    fn hidden(setup: Setup<Self>) -> AnySetup;
}

/// Declares the types of points.
macro_rules! point_types {
    ($($variant:ident: $point:ty),*) => {
        /// A constructed problem of any type. Methods are compiled once for each type of point here.
        pub(crate) enum AnySetup {
            $($variant(Setup<$point>),)*
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
            fn hidden(setup: Setup<Self>) -> AnySetup {
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
    fn visit<P: PointType>(self, setup: Setup<P>) -> Result<Self::Output, Error>;
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
