//! Problems whose type is hidden. Each is compiled once, in this crate: those who use it by its point only link it.

use crate::{
    Autoencoder, ConstrainedLogistic, Factorization, GeneralizedEigenvalues, Grouped, LeastSquares, Logistic, Mixture,
    Mlp, Nmf, OrthonormalMlp, Pca, Problem, Procrustes, Regression, Softmax, SubspaceFit,
};
use faer::Mat;
use std::any::Any;
use strust::{
    Error,
    constraints::{AnyConstraint, Retraction},
    expectation::AnyExpectation,
    objective::{ObjectiveWrapper, Scaled, Sliced},
    vector::Elementwise,
};

/// A problem over points of type `P`.
///
/// The problems of this crate become one with [`From`], and are then compiled here. Others use [`AnyProblem::new`].
///
/// ```
/// use strust_problems::{AnyProblem, LeastSquares, Problem};
/// let mut problem = AnyProblem::from(LeastSquares::<f64>::interpolating(50, 5, 0)?);
/// assert_eq!(problem.optimum(), Some(0.0));
/// assert_eq!(problem.inner_mut::<LeastSquares>().start(3), problem.start(3));
/// # Ok::<(), strust::Error>(())
/// ```
pub struct AnyProblem<P> {
    problem: Box<dyn Erased<P>>,
}

/// A [`Problem`] that [`AnyProblem`] can give back.
pub trait Erased<P>: Problem<Point = P> {
    /// The problem itself.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<F: Problem + 'static> Erased<F::Point> for F {
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl<P: Elementwise + 'static> AnyProblem<P> {
    /// Hides the type of a problem.
    pub fn new(problem: impl Problem<Point = P> + 'static) -> Self {
        Self { problem: Box::new(problem) }
    }

    /// The same problem with its loss multiplied by `scale`.
    #[must_use]
    #[allow(clippy::float_cmp, reason = "only exactly 1 changes nothing")]
    pub fn scaled(self, scale: f64) -> Self {
        if scale == 1.0 { self } else { Self::new(Scaled::new(self, scale)) }
    }

    /// The problem itself, without its factor.
    ///
    /// # Panics
    /// If it has another type than it was made with.
    pub fn inner_mut<F: 'static>(&mut self) -> &mut F {
        let problem = self.problem.as_any_mut();
        if problem.is::<Scaled<Self>>() {
            problem.downcast_mut::<Scaled<Self>>().expect("asked above").inner_mut().inner_mut()
        } else {
            problem.downcast_mut().expect("a problem keeps its type")
        }
    }
}

/// Compiles these problems.
macro_rules! compile_problems {
    ($($problem:ty: $point:ty),* $(,)?) => {
        $(impl From<$problem> for AnyProblem<$point> {
            fn from(problem: $problem) -> Self {
                Self::new(problem)
            }
        })*
    };
}
compile_problems! {
    SubspaceFit: Mat<f64>,
    Pca: Mat<f64>,
    GeneralizedEigenvalues: Mat<f64>,
    Procrustes: Mat<f64>,
    ConstrainedLogistic: Vec<f64>,
    Grouped: Vec<f64>,
    Mixture: Vec<f64>,
    Nmf: Mat<f64>,
    OrthonormalMlp: Vec<f64>,
    LeastSquares: Vec<f64>,
    Logistic: Vec<f64>,
    Softmax: Mat<f64>,
    Factorization: Mat<f64>,
    Mlp<f64>: Vec<f64>,
    Mlp<f32>: Vec<f32>,
    Autoencoder<f64>: Vec<f64>,
    Autoencoder<f32>: Vec<f32>,
    Regression: Vec<f64>,
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
    fn any_constraint(&self, retraction: Retraction) -> Option<AnyConstraint<P>> {
        self.problem.any_constraint(retraction)
    }
    fn any_expectation(&self) -> Option<AnyExpectation<P>> {
        self.problem.any_expectation()
    }
    fn test_metric(&mut self, x: &P) -> Option<f64> {
        self.problem.test_metric(x)
    }
    fn piece(&self) -> usize {
        self.problem.piece()
    }
    fn train_accuracy(&mut self, x: &P) -> Option<f64> {
        self.problem.train_accuracy(x)
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
