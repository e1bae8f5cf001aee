//! Multilayer perceptrons whose hidden layers are orthonormal.

use crate::{Mlp, Problem, any_constraint::any_constraint};
use strust::{
    Error,
    constraints::{AnyConstraint, Frames, Manifold, Retraction},
    objective::{Objective, ObjectiveWrapper, Sliced},
    vector::Real,
};

/// The objective of [`Mlp`], subject to orthonormal weights W of every hidden layer: WᵀW = I if the layer has at least as
/// many units as inputs, otherwise WWᵀ = I. Such a layer neither amplifies nor damps the signals of some directions.
///
/// ```
/// use strust::prelude::*;
/// use strust_baselines::{ProjectedSgd, ProjectedSgdConfig};
/// use strust_problems::{Activation, Mlp, OrthonormalMlp, Problem, digits};
///
/// let (train, test) = digits::load()?;
/// let mut f = OrthonormalMlp::new(Mlp::<f64>::new(&train, Some(&test), &[6], Activation::Tanh)?)?;
/// let (start, mut sampler) = (f.start(0), Epochs::new(f.terms(), 32, 0)?);
/// let method = ProjectedSgd::new(ProjectedSgdConfig { learning_rate: 0.2 }, f.constraint())?;
/// let report = minimize(&mut f).method(method).sampler(&mut sampler).stop(Stop::epochs(20)).start(start)?;
/// assert!(f.test_metric(report.point()) > Some(0.8) && report.last.constraint_norm < 1e-13);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct OrthonormalMlp<T: Real = f64> {
    mlp: Mlp<T>,
    constraint: Frames<T>,
}

impl<T: Real> OrthonormalMlp<T> {
    /// The number of parameters of a point.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.mlp.parameters()
    }

    /// Constrains a network with at least one hidden layer.
    pub fn new(mlp: Mlp<T>) -> Result<Self, Error> {
        let constraint = mlp.orthonormal_hidden_layers()?;
        Ok(Self { mlp, constraint })
    }
    /// The constraint of this problem.
    #[must_use]
    pub fn constraint(&self) -> Frames<T> {
        self.constraint.clone()
    }
}

impl<T: Real> ObjectiveWrapper for OrthonormalMlp<T> {
    type Inner = Mlp<T>;
    fn wrapped(&self) -> &Mlp<T> {
        &self.mlp
    }
    fn wrapped_mut(&mut self) -> &mut Mlp<T> {
        &mut self.mlp
    }
    fn sliced(this: &mut Self) -> Option<&mut dyn Sliced<Point = Vec<T>>> {
        this.mlp.sliced()
    }
}

impl<T: Real> Problem for OrthonormalMlp<T> {
    /// The start of [`Mlp`], moved onto the constraint.
    fn start(&self, seed: u64) -> Vec<T> {
        let mut x = self.mlp.start(seed);
        self.constraint().restore(&mut x).expect("random weights have full rank");
        x
    }
    /// Unknown.
    fn optimum(&self) -> Option<f64> {
        None
    }
    fn any_constraint(&self, retraction: Retraction) -> Option<AnyConstraint<Vec<T>>> {
        Some(any_constraint(self.constraint().with_retraction(retraction)))
    }
    fn test_metric(&mut self, x: &Vec<T>) -> Option<f64> {
        self.mlp.test_metric(x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Activation, contract, digits};
    use strust::{
        objective::{ProductKind, full_value},
        prelude::*,
    };

    fn network(hidden: &[usize]) -> OrthonormalMlp {
        let (train, test) = digits::load().unwrap();
        OrthonormalMlp::new(Mlp::new(&train, Some(&test), hidden, Activation::Tanh).unwrap()).unwrap()
    }

    #[test]
    fn the_contract_of_a_problem_holds() {
        contract::holds(&mut network(&[5]), 1.9..2.1, 1e-12);
        contract::has_products(&mut network(&[5]), ProductKind::Hessian, false, 1e-12);
        contract::has_products(&mut network(&[5]), ProductKind::GaussNewton, true, 1e-12);
    }

    #[test]
    fn the_weights_of_hidden_layers_are_orthonormal_and_the_rest_is_free() {
        // 64 → 5 has orthonormal rows, 5 → 7 has orthonormal columns, 7 → 10 is free.
        let f = network(&[5, 7]);
        let (x, mut c) = (f.start(0), vec![1.0; 50]);
        f.constraint().residual(&x, &mut c);
        assert!(c.norm() < 1e-13, "{}", c.norm());
        let rows = |x: &[f64], a: usize, b: usize| (0..64).map(|j| x[5 * j + a] * x[5 * j + b]).sum::<f64>();
        assert!((rows(&x, 2, 2) - 1.0).abs() < 1e-14 && rows(&x, 1, 3).abs() < 1e-14);
        let second = &x[65 * 5..];
        assert!((second[7..14].iter().map(|w| w * w).sum::<f64>() - 1.0).abs() < 1e-14);
        let plain = f.mlp.start(0);
        assert_eq!(x[65 * 5 + 6 * 7..], plain[65 * 5 + 6 * 7..]);
    }

    #[test]
    fn the_sqp_trains_on_the_constraint() {
        let mut f = network(&[5]);
        let (start, mut sampler) = (f.start(0), Epochs::new(f.terms(), 32, 0).unwrap());
        let before = full_value(&mut f, &start);
        let method = StrSqp::new(StrSqpConfig::default(), f.constraint()).unwrap();
        let run = minimize(&mut f).method(method).sampler(&mut sampler);
        let report = run.stop(Stop::epochs(8)).start(start).unwrap();
        assert!(report.last.constraint_norm < 1e-10 && report.last.value < 0.5 * before, "{:?}", report.last);
    }

    #[test]
    fn a_network_without_hidden_layers_is_an_error() {
        let (train, _) = digits::load().unwrap();
        let mlp = Mlp::<f64>::new(&train, None, &[], Activation::Relu).unwrap();
        let error = OrthonormalMlp::new(mlp).unwrap_err().to_string();
        assert_eq!(error, "frames: `matrices` is 0, but must be at least 1");
    }
}
