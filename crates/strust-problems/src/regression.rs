//! Regression on synthetic data with three losses, by a linear model or a deep network.

use crate::{
    Problem,
    network::{Activation, DenseNetwork, ForwardPass, Tangent, widest, with_ones},
    numerics::{DATA, at_least_one, dot, fill, normals, not_negative, out_of_range, rms, shape},
};
use faer::Mat;
use pulp::NullaryFnOnce;
use strust::{
    Error,
    objective::{Evaluation, Objective, ProductKind},
    sample::Sample,
    vector::Vector,
};
use strust_data::loss::OutputLoss;

const OWNER: &str = "regression";

/// The loss of an output z for a target y. It also decides the noise of [`Regression::synthetic`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RegressionLoss {
    /// ½(z − y)². The noise is normal.
    Squares,
    /// Huber's loss with the bound δ: ½r² for a residual r of size up to δ, and δ|r| − ½δ² beyond. The noise is Student's t
    /// with two degrees of freedom, whose variance is infinite.
    Huber(f64),
    /// exp(z) − yz − (y − y·log y), half the deviance: it is 0 for exp(z) = y. The targets are Poisson counts.
    Poisson,
}

impl RegressionLoss {
    /// Adds the loss to `sum`. The derivative times `share` overwrites z.
    #[inline(always)]
    fn add(self, z: &mut f64, y: f64, share: f64, sum: &mut f64) {
        let z = std::slice::from_mut(z);
        match self {
            Self::Squares => OutputLoss::Squares.add(z, y, share, sum),
            Self::Huber(bound) => OutputLoss::Huber(bound).add(z, y, share, sum),
            Self::Poisson => {
                let mean = z[0].exp();
                let best = if y > 0.0 { y - y * y.ln() } else { 0.0 };
                *sum += mean - y * z[0] - best;
                z[0] = share * (mean - y);
            }
        }
    }

    /// The second derivative, from the first one.
    fn curvature(self, slope: f64, y: f64) -> f64 {
        match self {
            Self::Squares => 1.0,
            Self::Huber(bound) => f64::from(u8::from(slope.abs() < bound)),
            Self::Poisson => slope + y,
        }
    }
}

/// f(x) = (1/n) Σ loss(z(aᵢ), yᵢ) with the output z of a linear model with a bias, or of a network of tanh units.
///
/// Points have the layout of an [`Mlp`](crate::Mlp) with one output. The linear models are generalized linear models:
/// least squares, robust regression and Poisson regression with a logarithmic link.
///
/// ```
/// use strust::prelude::*;
/// use strust_problems::{Problem, Regression, regression::RegressionLoss};
/// let mut f = Regression::synthetic(200, 5, 0.1, RegressionLoss::Huber(0.5), &[], 0)?;
/// let start = f.start(0);
/// let report = minimize(&mut f).batch(20).stop(Stop::epochs(50)).start(start)?;
/// assert!(report.last.value < 0.1);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Regression {
    network: DenseNetwork<f64>,
    /// Each data point is a column with a 1 below it.
    columns: Mat<f64>,
    targets: Vec<f64>,
    loss: RegressionLoss,
    magnitude: f64,
}

impl Regression {
    /// n points a ∈ ℝᵈ with entries N(0, 1) and their targets. With two random unit vectors v and w, the targets follow
    /// η = vᵀa for a linear model, and η = sin 2vᵀa + cos 2wᵀa if there are `hidden` layers: y = η plus noise of the scale
    /// `noise`, or for [`RegressionLoss::Poisson`] a count with the mean exp(η).
    pub fn synthetic(
        n: usize,
        d: usize,
        noise: f64,
        loss: RegressionLoss,
        hidden: &[usize],
        seed: u64,
    ) -> Result<Self, Error> {
        at_least_one(OWNER, "n", n)?;
        at_least_one(OWNER, "d", d)?;
        not_negative(OWNER, "noise", noise)?;
        if let RegressionLoss::Huber(bound) = loss
            && !(bound.is_finite() && bound > 0.0)
        {
            return Err(out_of_range(OWNER, "bound", bound, "finite and > 0"));
        }
        let mut next = normals(seed, DATA);
        let features = fill(n, d, &mut next);
        let [v, w] = [(); 2].map(|()| {
            let mut direction: Vec<f64> = (0..d).map(|_| next()).collect();
            direction.scale(1.0 / direction.norm());
            direction
        });
        let target = |i: usize| {
            let row: Vec<f64> = (0..d).map(|j| features[(i, j)]).collect();
            let (along, across) = (dot(&row, &v), dot(&row, &w));
            let eta = if hidden.is_empty() { along } else { (2.0 * along).sin() + (2.0 * across).cos() };
            let mut exponential = || 0.5 * (next().powi(2) + next().powi(2));
            match loss {
                RegressionLoss::Squares => eta + noise * next(),
                // Twice an exponential number is χ² with two degrees of freedom.
                RegressionLoss::Huber(_) => {
                    let scale = noise / exponential().sqrt();
                    eta + scale * next()
                }
                // The events before the time exp(η), where the times between them are exponential.
                RegressionLoss::Poisson => {
                    let (mut left, mut events) = (eta.exp(), 0.0);
                    loop {
                        left -= exponential();
                        if left < 0.0 {
                            break events;
                        }
                        events += 1.0;
                    }
                }
            }
        };
        let targets: Vec<f64> = (0..n).map(target).collect();
        let network = DenseNetwork::new(OWNER, &[&[d], hidden, &[1]].concat(), Activation::Tanh)?;
        // As for least squares: near a good fit, outputs and targets have the same size.
        let magnitude = 2.0 * rms(targets.iter().copied());
        Ok(Self { network, columns: with_ones(OWNER, &features)?, targets, loss, magnitude })
    }

    fn evaluate(&mut self, x: &[f64], sample: &Sample, gradient: Option<&mut [f64]>) -> Evaluation {
        let Self { network, columns, targets, loss, magnitude } = self;
        let rows = sample.indices().iter().copied();
        let goals = rows.clone().map(|i| targets[i]);
        let head = |z: ForwardPass<'_, f64>| widest(Losses { loss: *loss, outputs: z.outputs, goals });
        Evaluation::of_squares(network.evaluate(x, columns, rows, head, gradient), f64::EPSILON, *magnitude)
    }
}

/// The mean loss of outputs. Its derivatives overwrite them.
struct Losses<'a, I> {
    loss: RegressionLoss,
    outputs: &'a mut [f64],
    goals: I,
}

impl<I: Iterator<Item = f64>> NullaryFnOnce for Losses<'_, I> {
    type Output = f64;
    #[inline(always)]
    fn call(self) -> f64 {
        let share = 1.0 / self.outputs.len() as f64;
        let mut sum = 0.0;
        for (z, goal) in self.outputs.iter_mut().zip(self.goals) {
            self.loss.add(z, goal, share, &mut sum);
        }
        share * sum
    }
}

impl Objective for Regression {
    type Point = Vec<f64>;

    fn terms(&self) -> usize {
        self.targets.len()
    }
    fn value(&mut self, x: &Vec<f64>, sample: &Sample) -> Evaluation {
        self.evaluate(x, sample, None)
    }
    fn value_and_gradient(&mut self, x: &Vec<f64>, sample: &Sample, gradient: &mut Vec<f64>) -> Evaluation {
        self.evaluate(x, sample, Some(gradient))
    }
    fn curvature_product(
        &mut self,
        kind: ProductKind,
        x: &Vec<f64>,
        sample: &Sample,
        direction: &Vec<f64>,
        product: &mut Vec<f64>,
    ) -> bool {
        let Self { network, columns, targets, loss, .. } = self;
        let rows = sample.indices().iter().copied();
        let goals = rows.clone().map(|i| targets[i]);
        let head = |z: ForwardPass<'_, f64>, along: &mut [f64]| {
            let batch = along.len() as f64;
            widest(Losses { loss: *loss, outputs: &mut *z.outputs, goals: goals.clone() });
            for ((along, slope), goal) in along.iter_mut().zip(z.outputs.iter()).zip(goals) {
                *along *= loss.curvature(batch * slope, goal) / batch;
            }
        };
        network.product(Tangent { kind, x, v: direction }, columns, rows, head, product);
        true
    }
    fn check_point(&self, x: &Vec<f64>) -> Result<(), Error> {
        shape("point of a regression", vec![self.network.parameters()], vec![x.len()])
    }
}

impl Problem for Regression {
    /// As for an [`Mlp`](crate::Mlp).
    fn start(&self, seed: u64) -> Vec<f64> {
        self.network.start(seed)
    }
    /// Unknown.
    fn optimum(&self) -> Option<f64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract;

    const LOSSES: [RegressionLoss; 3] = [RegressionLoss::Squares, RegressionLoss::Huber(0.5), RegressionLoss::Poisson];

    #[test]
    fn the_contract_of_a_problem_holds_for_every_loss_and_depth() {
        for loss in LOSSES {
            for hidden in [&[][..], &[4], &[5, 4, 3, 4]] {
                let mut f = Regression::synthetic(30, 4, 0.3, loss, hidden, 0).unwrap();
                contract::holds(&mut f, 1.9..2.1, 1e-13);
                contract::has_products(&mut f, ProductKind::GaussNewton, true, 1e-13);
                contract::has_products(&mut f, ProductKind::Hessian, hidden.is_empty(), 1e-13);
            }
        }
    }

    #[test]
    fn the_targets_have_the_noise_of_their_loss() {
        let n = 4000;
        let targets = |loss, noise| Regression::synthetic(n, 3, noise, loss, &[], 1).unwrap().targets;
        let residuals = |loss| -> Vec<f64> {
            let exact = targets(loss, 0.0);
            targets(loss, 1.0).iter().zip(exact).map(|(y, eta)| y - eta).collect()
        };
        let beyond = |residuals: &[f64]| residuals.iter().filter(|r| r.abs() > 3.0).count() as f64 / n as f64;
        // P(|N| > 3) = 0.0027; P(|t₂| > 3) = 1 − 3/√11 = 0.0955.
        assert!(beyond(&residuals(RegressionLoss::Squares)) < 0.006);
        assert!((beyond(&residuals(RegressionLoss::Huber(1.0))) - 0.0955).abs() < 0.015);
        let counts = targets(RegressionLoss::Poisson, 0.0);
        assert!(counts.iter().all(|y| *y >= 0.0 && y.fract() == 0.0));
        // E exp(N) = √e.
        assert!((counts.iter().sum::<f64>() / n as f64 - 0.5_f64.exp()).abs() < 0.2);
    }

    #[test]
    fn half_the_deviance_is_0_where_the_mean_is_the_count() {
        for y in [0.0, 1.0, 7.0] {
            let (mut z, mut sum) = (f64::max(y, 1e-300).ln(), 0.0);
            RegressionLoss::Poisson.add(&mut z, y, 1.0, &mut sum);
            assert!(sum.abs() < 1e-13 && z.abs() < 1e-13, "{y}: {sum} {z}");
        }
    }

    #[test]
    fn wrong_sizes_and_numbers_are_errors() {
        let message = |n, d, noise, loss| Regression::synthetic(n, d, noise, loss, &[], 0).unwrap_err().to_string();
        assert_eq!(message(0, 3, 0.0, RegressionLoss::Squares), "regression: `n` is 0, but must be ≥ 1");
        assert_eq!(message(3, 0, 0.0, RegressionLoss::Squares), "regression: `d` is 0, but must be ≥ 1");
        assert!(message(3, 2, -1.0, RegressionLoss::Squares).contains("`noise` is -1"));
        assert!(message(3, 2, 0.0, RegressionLoss::Huber(0.0)).contains("`bound` is 0"));
        let f = Regression::synthetic(3, 2, 0.0, RegressionLoss::Squares, &[], 0).unwrap();
        assert_eq!(
            f.check_point(&vec![0.0; 5]).unwrap_err().to_string(),
            "point of a regression: expected shape [3], found [5]"
        );
    }
}
