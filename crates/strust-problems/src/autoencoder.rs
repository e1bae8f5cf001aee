//! Auto-encoders: deep networks without labels.

use crate::{
    Problem,
    mlp::Activation,
    network::{DenseNetwork, ForwardPass, PIECE, Tangent, widest, with_ones},
    numerics::{at_least_one, finite, out_of_range, rms, shape},
};
use faer::{Mat, Side};
use pulp::NullaryFnOnce;
use strust::{
    Error,
    objective::{Evaluation, Objective, ProductKind},
    sample::Sample,
    vector::Real,
};

const OWNER: &str = "auto-encoder";

/// f(x) = (1/n) Σ (1/d)‖â(aᵢ) − aᵢ‖², the mean squared error of the output â of a network that must reproduce its input
/// aᵢ ∈ ℝᵈ.
///
/// The hidden layers have the widths of the encoder and then the same widths in reverse: an encoder 128, 32 makes the
/// network d, 128, 32, 128, d. Hidden units have the activation φ, outputs have none. Points have the layout of an
/// [`Mlp`](crate::Mlp).
///
/// With [`Activation::Linear`] the network is an affine map. Its rank is at most the width k of the narrowest layer, so
/// the optimum is known: what PCA with k components leaves.
///
/// An evaluation allocates only if its batch is larger than all batches before it.
///
/// ```
/// use strust::prelude::*;
/// use strust_problems::{Activation, Autoencoder, Problem, digits};
///
/// let (train, test) = digits::load()?;
/// let mut f = Autoencoder::<f32>::new(train.features(), Some(test.features()), &[32, 8], Activation::Tanh)?;
/// assert_eq!(f.parameters(), (64 + 1) * 32 + (32 + 1) * 8 + (8 + 1) * 32 + (32 + 1) * 64);
/// let (start, mut sampler) = (f.start(0), Epochs::new(f.terms(), 64, 0)?);
/// let before = f.test_metric(&start);
/// let report = minimize(&mut f).method(Str::new(StrConfig::default())?).sampler(&mut sampler).stop(Stop::epochs(10)).start(start)?;
/// assert!(f.test_metric(report.point()) < before);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Autoencoder<T: Real = f64> {
    network: DenseNetwork<T>,
    /// Each data point is a column with a 1 below it.
    train: Mat<T>,
    test: Option<Mat<T>>,
    optimum: Option<f64>,
    magnitude: f64,
}

impl<T: Real> Autoencoder<T> {
    /// The problem for the rows of a training set and an optional test set with the same number of columns. `encoder`
    /// lists the widths of the hidden layers from the data to the code.
    pub fn new(
        train: &Mat<f64>,
        test: Option<&Mat<f64>>,
        encoder: &[usize],
        activation: Activation,
    ) -> Result<Self, Error> {
        let d = train.ncols();
        for part in [Some(train), test].into_iter().flatten() {
            at_least_one(OWNER, "rows", part.nrows())?;
            at_least_one(OWNER, "columns", part.ncols())?;
            shape("columns of the test set", vec![d], vec![part.ncols()])?;
            finite(OWNER, "features", part)?;
        }
        let Some((code, before)) = encoder.split_last() else {
            return Err(out_of_range(OWNER, "hidden", "empty", "at least one width"));
        };
        let decoder: Vec<usize> = before.iter().rev().copied().collect();
        let network = DenseNetwork::new(OWNER, &[&[d], before, &[*code], &decoder, &[d]].concat(), activation)?;
        let narrowest = encoder.iter().copied().min().unwrap_or(d);
        let optimum = (activation == Activation::Linear).then(|| left_by_pca(train, narrowest)).transpose()?;
        // Each residual is a difference of an output and a feature. Near a good fit both have the same size.
        let magnitude = 2.0 * rms(features(train));
        let test = test.map(|test| with_ones(OWNER, test)).transpose()?;
        Ok(Self { network, train: with_ones(OWNER, train)?, test, optimum, magnitude })
    }

    /// The number of parameters of a point.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.network.parameters()
    }

    fn evaluate(&mut self, x: &[T], sample: &Sample, gradient: Option<&mut [T]>) -> Evaluation {
        let rows = sample.indices().iter().copied();
        let value = self.network.evaluate(x, &self.train, rows, squared_error, gradient);
        Evaluation::of_squares(value, T::EPSILON, self.magnitude)
    }
}

fn features(rows: &Mat<f64>) -> impl ExactSizeIterator<Item = f64> {
    let n = rows.nrows();
    (0..n * rows.ncols()).map(move |k| rows[(k % n, k / n)])
}

/// The mean squared distance of the rows from their best affine subspace of dimension k, per column: the sum of all but
/// the k largest eigenvalues of their covariance, over the number of columns.
fn left_by_pca(rows: &Mat<f64>, k: usize) -> Result<f64, Error> {
    let (n, d) = (rows.nrows(), rows.ncols());
    let mean: Vec<f64> = (0..d).map(|j| rows.col_as_slice(j).iter().sum::<f64>() / n as f64).collect();
    let centered = Mat::from_fn(n, d, |i, j| rows[(i, j)] - mean[j]);
    let covariance = centered.transpose() * &centered;
    // In increasing order.
    let eigenvalues = covariance
        .self_adjoint_eigenvalues(Side::Lower)
        .map_err(|_| out_of_range(OWNER, "features", "a matrix whose eigenvalues did not converge", "better scaled"))?;
    let left: f64 = eigenvalues[..d.saturating_sub(k)].iter().map(|value| value.max(0.0)).sum();
    Ok(left / (n * d) as f64)
}

fn squared_error<T: Real>(z: ForwardPass<'_, T>) -> f64 {
    widest(SquaredError(z))
}

/// The mean of ‖â − a‖²/d over columns of outputs â and inputs a. Its derivatives overwrite the outputs.
///
/// A struct, because a closure cannot be marked `#[inline(always)]`.
struct SquaredError<'a, T>(ForwardPass<'a, T>);

impl<T: Real> NullaryFnOnce for SquaredError<'_, T> {
    type Output = f64;
    #[inline(always)]
    fn call(self) -> f64 {
        let ForwardPass { inputs, outputs, width } = self.0;
        let weight = 1.0 / outputs.len() as f64;
        let mut sum = 0.0;
        for (z, a) in outputs.chunks_exact_mut(width).zip(inputs.chunks_exact(width + 1)) {
            for (z, &a) in z.iter_mut().zip(a) {
                let residual = (*z).into() - a.into();
                sum += residual * residual;
                *z = T::from_f64(2.0 * weight * residual);
            }
        }
        weight * sum
    }
}

impl<T: Real> Objective for Autoencoder<T> {
    type Point = Vec<T>;

    fn terms(&self) -> usize {
        self.train.ncols()
    }
    fn value(&mut self, x: &Vec<T>, sample: &Sample) -> Evaluation {
        self.evaluate(x, sample, None)
    }
    fn value_and_gradient(&mut self, x: &Vec<T>, sample: &Sample, gradient: &mut Vec<T>) -> Evaluation {
        self.evaluate(x, sample, Some(gradient))
    }
    fn curvature_product(
        &mut self,
        kind: ProductKind,
        x: &Vec<T>,
        sample: &Sample,
        direction: &Vec<T>,
        product: &mut Vec<T>,
    ) -> bool {
        let head = |z: ForwardPass<'_, T>, along: &mut [T]| {
            // B is 2/(number of outputs) times the identity.
            let scale = T::from_f64(2.0 / along.len() as f64);
            for along in along.iter_mut() {
                *along *= scale;
            }
            squared_error(z);
        };
        let rows = sample.indices().iter().copied();
        self.network.product(Tangent { kind, x, v: direction }, &self.train, rows, head, product);
        true
    }
    fn check_point(&self, x: &Vec<T>) -> Result<(), Error> {
        shape("point of an auto-encoder", vec![self.parameters()], vec![x.len()])
    }
}

impl<T: Real> Problem for Autoencoder<T> {
    /// As for an [`Mlp`](crate::Mlp).
    fn start(&self, seed: u64) -> Vec<T> {
        self.network.start(seed)
    }
    /// That of PCA for [`Activation::Linear`], otherwise unknown.
    fn optimum(&self) -> Option<f64> {
        self.optimum
    }
    /// The mean squared error.
    fn test_metric(&mut self, x: &Vec<T>) -> Option<f64> {
        let test = self.test.as_ref()?;
        let n = test.ncols();
        let mut sum = 0.0;
        for start in (0..n).step_by(PIECE) {
            let rows = start..n.min(start + PIECE);
            let part = rows.len() as f64;
            sum += part * self.network.evaluate(x, test, rows, squared_error, None);
        }
        Some(sum / n as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{contract, digits, numerics::fill};
    use strust::{objective::full_value, prelude::*};

    fn data(n: usize, d: usize, seed: u64) -> Mat<f64> {
        fill(n, d, crate::numerics::normals(seed, crate::numerics::DATA))
    }

    fn autoencoder<T: Real>(encoder: &[usize], activation: Activation) -> Autoencoder<T> {
        Autoencoder::new(&data(30, 5, 0), Some(&data(9, 5, 1)), encoder, activation).unwrap()
    }

    #[test]
    fn the_contract_of_a_problem_holds_at_every_depth_in_both_precisions() {
        for encoder in [&[3][..], &[6, 4], &[6, 5, 4]] {
            for activation in [Activation::Tanh, Activation::Linear] {
                contract::holds(&mut autoencoder::<f64>(encoder, activation), 1.9..2.1, 1e-13);
                // In f32 only long steps are above the rounding floor. There terms of higher order count too.
                contract::holds(&mut autoencoder::<f32>(encoder, activation), 1.4..9.0, 1e-5);
            }
        }
        // Wide layers: where ReLU makes all units of a layer 0, the next layer starts exactly at a kink.
        for encoder in [&[3][..], &[12, 10]] {
            contract::holds(&mut autoencoder::<f64>(encoder, Activation::Relu), 1.9..2.1, 1e-13);
            // In f32 long steps cross kinks, where the slope is meaningless. The next test compares the gradient in f32 with the gradient in f64.
            contract::holds(&mut autoencoder::<f32>(encoder, Activation::Relu), 0.5..9.0, 1e-5);
        }
    }

    #[test]
    fn the_products_are_those_of_the_gradients() {
        for encoder in [&[3][..], &[6, 4], &[6, 5, 4]] {
            for activation in [Activation::Tanh, Activation::Linear] {
                let mut f = autoencoder::<f64>(encoder, activation);
                contract::has_products(&mut f, ProductKind::Hessian, false, 1e-13);
                contract::has_products(&mut f, ProductKind::GaussNewton, true, 1e-13);
            }
        }
        let mut f = autoencoder::<f64>(&[12, 10], Activation::Relu);
        contract::has_products(&mut f, ProductKind::Hessian, false, 1e-13);
    }

    #[test]
    fn at_an_exact_fit_the_hessian_is_the_gauss_newton_matrix() {
        // Identities reproduce everything.
        let mut f = autoencoder::<f64>(&[5], Activation::Linear);
        let identity = (0..30).map(|k| f64::from(u8::from(k < 25 && k / 5 == k % 5)));
        let x: Vec<f64> = identity.clone().chain(identity).collect();
        let (v, mut hessian, mut gauss_newton) = (f.start(1), x.zeros_like(), x.zeros_like());
        f.curvature_product(ProductKind::Hessian, &x, &Sample::range(0..30), &v, &mut hessian);
        f.curvature_product(ProductKind::GaussNewton, &x, &Sample::range(0..30), &v, &mut gauss_newton);
        assert!(hessian.norm() > 0.1);
        hessian.add(-1.0, &gauss_newton);
        assert!(hessian.norm() < 1e-14);
    }

    #[test]
    fn single_precision_agrees_with_double_within_its_rounding_error() {
        for activation in [Activation::Relu, Activation::Tanh, Activation::Linear] {
            let (mut single, mut double) =
                (autoencoder::<f32>(&[16, 4], activation), autoencoder(&[16, 4], activation));
            for seed in 0..20 {
                let x = single.start(seed);
                let y: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
                let (mut g, mut h) = (x.zeros_like(), y.zeros_like());
                let sample = Sample::new(vec![3, 0, 29, 3, 17], 0);
                let a = single.value_and_gradient(&x, &sample, &mut g);
                let b = double.value_and_gradient(&y, &sample, &mut h);
                assert!((a.value - b.value).abs() < a.rounding, "{a:?} {b:?}");
                let off: f64 = g.iter().zip(&h).map(|(&g, h)| (f64::from(g) - h).powi(2)).sum::<f64>().sqrt();
                assert!(off < 1e-5 * h.norm(), "{off}");
            }
        }
    }

    /// The point of a network d, k, d with the encoder V and the decoder Vᵀ around the mean.
    fn projection(components: &Mat<f64>, mean: &[f64]) -> Vec<f64> {
        let (d, k) = (components.nrows(), components.ncols());
        let encoder = Mat::from_fn(k, d + 1, |i, j| {
            if j < d { components[(j, i)] } else { -(0..d).map(|j| components[(j, i)] * mean[j]).sum::<f64>() }
        });
        let decoder = Mat::from_fn(d, k + 1, |i, j| if j < k { components[(i, j)] } else { mean[i] });
        let flat = |m: &Mat<f64>| (0..m.ncols()).flat_map(|j| m.col_as_slice(j).to_vec()).collect::<Vec<_>>();
        [flat(&encoder), flat(&decoder)].concat()
    }

    #[test]
    fn pca_solves_a_linear_auto_encoder_and_full_width_reproduces_everything() {
        let rows = data(40, 6, 3);
        let mean: Vec<f64> = (0..6).map(|j| rows.col_as_slice(j).iter().sum::<f64>() / 40.0).collect();
        let centered = Mat::from_fn(40, 6, |i, j| rows[(i, j)] - mean[j]);
        let svd = centered.thin_svd().unwrap();
        for k in 1..=6 {
            let mut f = Autoencoder::<f64>::new(&rows, None, &[k], Activation::Linear).unwrap();
            let components = Mat::from_fn(6, k, |i, j| svd.V()[(i, j)]);
            contract::solves(&mut f, &projection(&components, &mean), 1e-14);
            assert_eq!(f.optimum().unwrap() > 1e-3, k < 6);
        }
        // The narrowest layer counts, and a wider one does not help.
        let wide = Autoencoder::<f64>::new(&rows, None, &[9, 2, 7], Activation::Linear).unwrap();
        let narrow = Autoencoder::<f64>::new(&rows, None, &[2], Activation::Linear).unwrap();
        assert_eq!(wide.optimum(), narrow.optimum());
        assert_eq!(Autoencoder::<f64>::new(&rows, None, &[2], Activation::Tanh).unwrap().optimum(), None);
    }

    #[test]
    fn str_approaches_pca_on_the_digits() {
        let (train, test) = digits::load().unwrap();
        let mut f = Autoencoder::<f32>::new(train.features(), Some(test.features()), &[8], Activation::Linear).unwrap();
        let (start, n) = (f.start(0), f.terms());
        let before = full_value(&mut f, &start);
        let report = minimize(&mut f)
            .method(Str::new(StrConfig::default()).unwrap())
            .sampler(Epochs::new(n, 32, 0).unwrap())
            .stop(Stop::epochs(100))
            .start(start)
            .unwrap();
        let (value, optimum) = (full_value(&mut f, report.point()), f.optimum().unwrap());
        assert!(value > optimum && value < 1.3 * optimum && before > 10.0 * optimum, "{before} {value} {optimum}");
        let error = f.test_metric(report.point()).unwrap();
        assert!(error < 1.4 * optimum, "{error}");
    }

    #[test]
    fn the_error_of_a_network_of_zeros_is_the_mean_square_of_the_data() {
        // More test rows than a piece has.
        let (train, test) = (data(4, 3, 0), data(2 * PIECE + 5, 3, 1));
        let mut f = Autoencoder::<f64>::new(&train, Some(&test), &[2], Activation::Relu).unwrap();
        let zero = vec![0.0; f.parameters()];
        let mean = |rows: &Mat<f64>| features(rows).map(|v| v * v).sum::<f64>() / (3 * rows.nrows()) as f64;
        assert!((full_value(&mut f, &zero) - mean(&train)).abs() < 1e-15);
        assert!((f.test_metric(&zero).unwrap() - mean(&test)).abs() < 1e-14);
        let mut without = Autoencoder::<f64>::new(&train, None, &[2], Activation::Relu).unwrap();
        assert_eq!(without.test_metric(&zero), None);
        assert!(f.value(&vec![f64::NAN; zero.len()], &Sample::range(0..4)).value.is_nan());
    }

    #[test]
    fn wrong_sizes_are_errors() {
        let message = |train: &Mat<f64>, test: Option<&Mat<f64>>, encoder: &[usize]| {
            Autoencoder::<f32>::new(train, test, encoder, Activation::Relu).unwrap_err().to_string()
        };
        let rows = data(4, 3, 0);
        assert_eq!(message(&rows, None, &[]), "auto-encoder: `hidden` is empty, but must be at least one width");
        assert_eq!(message(&rows, None, &[2, 0]), "auto-encoder: `hidden` is 0, but must be ≥ 1");
        assert_eq!(message(&Mat::zeros(0, 3), None, &[2]), "auto-encoder: `rows` is 0, but must be ≥ 1");
        assert_eq!(
            message(&rows, Some(&data(4, 2, 0)), &[2]),
            "columns of the test set: expected shape [3], found [2]"
        );
        assert!(message(&Mat::from_fn(1, 1, |_, _| f64::NAN), None, &[2]).contains("`features` is NaN at row 0"));
        assert!(message(&Mat::from_fn(1, 1, |_, _| 1e300), None, &[2]).contains("`features` is inf"));
        let f = autoencoder::<f64>(&[2], Activation::Tanh);
        let message = f.check_point(&vec![0.0; 5]).unwrap_err().to_string();
        assert_eq!(message, "point of an auto-encoder: expected shape [27], found [5]");
    }
}
