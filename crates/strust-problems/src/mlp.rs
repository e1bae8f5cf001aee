//! Multilayer perceptrons: classifiers that are easy to over-parameterize.

use crate::{
    Problem,
    classified::{Classified, is_right},
    network::{DenseNetwork, ForwardPass, PIECE, Tangent, widest, with_ones},
    numerics::{rms, shape},
    simd_math::exp_of_negative,
};
use faer::Mat;
use pulp::NullaryFnOnce;
use strust::{
    Error,
    constraints::Frames,
    objective::{Evaluation, Objective, ProductKind, Sliced},
    sample::Sample,
    vector::Real,
};

pub use crate::network::Activation;

const OWNER: &str = "multilayer perceptron";

/// The data on which an accuracy is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// The training set, over which the objective sums.
    Train,
    /// The test set.
    Test,
}

/// f(x) = (1/n) Σ (log Σ_c exp(z_c) − z_y), the mean cross-entropy of the scores z(aᵢ) of a multilayer perceptron.
///
/// The data point is a⁰ = aᵢ, the hidden layers are aˡ = φ(Wˡaˡ⁻¹ + bˡ), and the scores are z = Wᴸaᴸ⁻¹ + bᴸ. Without
/// hidden layers this is softmax regression with a bias.
///
/// x is one flat vector: for each layer the weights Wˡ, column by column, and then the biases bˡ. So each layer is a
/// column-major matrix \[Wˡ bˡ\] with a row for each unit and a column for each input. The last input is the constant
/// 1.
///
/// An evaluation allocates only if its batch is larger than all batches before it.
///
/// ```
/// use strust::prelude::*;
/// use strust_problems::{Activation, Mlp, Problem, digits};
///
/// let (train, test) = digits::load()?;
/// let mut f = Mlp::<f32>::new(&train, Some(&test), &[64], Activation::Relu)?;
/// let (start, mut sampler) = (f.start(0), Epochs::new(f.terms(), 64, 0)?);
/// let report = minimize(&mut f).method(Str::new(StrConfig::default())?).sampler(&mut sampler).stop(Stop::epochs(10)).start(start)?;
/// assert!(f.test_metric(report.point()) > Some(0.9));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Mlp<T: Real = f64> {
    network: DenseNetwork<T>,
    train: Points<T>,
    test: Option<Points<T>>,
}

/// Data points and their classes. Each data point is a column with a 1 below it.
#[derive(Debug, Clone)]
struct Points<T> {
    columns: Mat<T>,
    targets: Vec<usize>,
}

impl<T: Real> Points<T> {
    fn new(data: &Classified) -> Result<Self, Error> {
        Ok(Self { columns: with_ones(OWNER, data.features())?, targets: data.labels().to_vec() })
    }
}

impl<T: Real> Mlp<T> {
    /// The number of parameters of a point.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.network.parameters()
    }

    /// The problem for a training set and an optional test set with the same features and classes. `hidden` lists the
    /// widths of the hidden layers, from the features to the classes.
    pub fn new(
        train: &Classified,
        test: Option<&Classified>,
        hidden: &[usize],
        activation: Activation,
    ) -> Result<Self, Error> {
        if let Some(test) = test {
            shape(
                "[features, classes] of the test set",
                vec![train.columns(), train.classes()],
                vec![test.columns(), test.classes()],
            )?;
        }
        let widths: Vec<usize> = [&[train.columns()], hidden, &[train.classes()]].concat();
        let network = DenseNetwork::new(OWNER, &widths, activation)?;
        Ok(Self { network, train: Points::new(train)?, test: test.map(Points::new).transpose()? })
    }

    /// The constraint that the weights of every hidden layer are orthonormal: WᵀW = I if the layer has at least as many
    /// units as inputs, otherwise WWᵀ = I. Biases and the last layer are free.
    ///
    /// ```
    /// use strust::prelude::*;
    /// use strust_problems::{Activation, Mlp, digits};
    /// let (train, _) = digits::load()?;
    /// let f = Mlp::<f64>::new(&train, None, &[8], Activation::Relu)?;
    /// assert_eq!(f.orthonormal_hidden_layers()?.new_residual().len(), 8 * 8); // 8 rows of 64 weights
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn orthonormal_hidden_layers(&self) -> Result<Frames<T>, Error> {
        Frames::new(self.network.parameters(), &self.network.hidden_weights())
    }

    /// The fraction of the data that x classifies correctly; `None` without a test set to measure it on.
    ///
    /// The predicted class has the largest score; in a tie, the first one. A data point with a NaN score is never
    /// correct.
    ///
    /// ```
    /// use faer::Mat;
    /// use strust_problems::{Activation, Classified, Mlp, Split};
    /// let data = Classified::new(Mat::from_fn(2, 1, |i, _| i as f64), vec![0, 1], 2)?;
    /// let mut f = Mlp::<f64>::new(&data, None, &[], Activation::Relu)?;
    /// // The scores of a are (0, 2a − 1).
    /// assert_eq!(f.accuracy(&[0.0, 2.0, 0.0, -1.0], Split::Train), Some(1.0));
    /// assert_eq!(f.accuracy(&[0.0, 2.0, 0.0, -1.0], Split::Test), None);
    /// # Ok::<(), strust::Error>(())
    /// ```
    pub fn accuracy(&mut self, x: &[T], split: Split) -> Option<f64> {
        let Self { network, train, test } = self;
        let points = match split {
            Split::Train => train,
            Split::Test => test.as_ref()?,
        };
        let n = points.targets.len();
        let mut right = 0;
        for start in (0..n).step_by(PIECE) {
            let rows = start..n.min(start + PIECE);
            let scores = network.forward(x, &points.columns, rows.clone());
            let scores = scores.outputs.chunks_exact(scores.width);
            right += rows.zip(scores).filter(|(i, scores)| is_right(scores, points.targets[*i])).count();
        }
        Some(right as f64 / n as f64)
    }

    /// The value, and with a gradient also that, announced from the last layer to the first.
    fn evaluate(&mut self, x: &[T], sample: &Sample, gradient: Option<(&mut Vec<T>, Announce<'_, T>)>) -> Evaluation {
        let Self { network, train, .. } = self;
        let rows = sample.indices().iter().copied();
        let targets = rows.clone().map(|i| train.targets[i]);
        let head = |z: ForwardPass<'_, T>| widest(CrossEntropy { scores: z.outputs, classes: z.width, targets });
        let value = match gradient {
            None => network.evaluate(x, &train.columns, rows, head, None),
            Some((gradient, ready)) => network.evaluate_in_slices(x, &train.columns, rows, head, gradient, ready),
        };
        Evaluation::new(value, T::EPSILON)
    }
}

/// Is called with the gradient and the place from which it is ready.
type Announce<'a, T> = &'a mut dyn FnMut(&Vec<T>, usize);

/// The mean of log Σ exp(z) − z_y over columns of scores z. Its derivatives overwrite the scores.
struct CrossEntropy<'a, T, I> {
    scores: &'a mut [T],
    classes: usize,
    targets: I,
}

impl<T: Real, I: ExactSizeIterator<Item = usize>> NullaryFnOnce for CrossEntropy<'_, T, I> {
    type Output = f64;
    #[inline(always)]
    fn call(self) -> f64 {
        let weight = 1.0 / self.targets.len() as f64;
        let mut sum = 0.0;
        for (z, target) in self.scores.chunks_exact_mut(self.classes).zip(self.targets) {
            let mut largest = 0;
            for c in 1..z.len() {
                largest = if z[c] > z[largest] { c } else { largest };
            }
            // (z_max − z_y) + log(1 + Σ_{others} exp(z − z_max)). Both parts are ≥ 0, so a small loss keeps its digits,
            // and nothing overflows.
            let peak: f64 = z[largest].into();
            sum += peak - z[target].into();
            for z in z.iter_mut() {
                *z = T::from_f64(exp_of_negative((*z).into() - peak));
            }
            let others: f64 = z.iter().enumerate().map(|(c, &e)| if c == largest { 0.0 } else { e.into() }).sum();
            sum += others.ln_1p();
            // 1 − p_y is the sum of the others. This form does not cancel where p_y ≈ 1.
            let wrong = if target == largest { others } else { 1.0 + (others - z[target].into()) };
            let scale = weight / (1.0 + others);
            for z in z.iter_mut() {
                *z = T::from_f64(scale * (*z).into());
            }
            z[target] = T::from_f64(-scale * wrong);
        }
        weight * sum
    }
}

/// ż ← Bż with the Hessian B = (1/b)(diag(p) − ppᵀ) of the mean cross-entropy in a column of scores, from its derivatives
/// δ = (1/b)(p − e_y) in the scores.
struct CurveCrossEntropy<'a, T, I> {
    deltas: &'a [T],
    along: &'a mut [T],
    classes: usize,
    targets: I,
}

impl<T: Real, I: ExactSizeIterator<Item = usize>> NullaryFnOnce for CurveCrossEntropy<'_, T, I> {
    type Output = ();
    #[inline(always)]
    fn call(self) {
        let weight = 1.0 / self.targets.len() as f64;
        let columns = self.deltas.chunks_exact(self.classes).zip(self.along.chunks_exact_mut(self.classes));
        for ((delta, along), target) in columns.zip(self.targets) {
            // Relative to the target, whose p is near 1 if the point is fitted: then pᵀt keeps its digits.
            let origin: f64 = along[target].into();
            let mut mean = 0.0;
            for (&delta, along) in delta.iter().zip(along.iter_mut()) {
                *along = T::from_f64((*along).into() - origin);
                mean += delta.into() * (*along).into();
            }
            mean /= weight;
            for (&delta, along) in delta.iter().zip(along.iter_mut()) {
                *along = T::from_f64(delta.into() * ((*along).into() - mean));
            }
            let p = (weight + delta[target].into()).max(0.0);
            along[target] = T::from_f64(-p * mean);
        }
    }
}

/// The rounding error is the default. An error δ in the scores changes a loss by at most 2(1 − p_y)|δ|, which is at
/// most 2|δ| times the loss. So the error is relative to the value, even if the value is small. For networks in `f32`
/// trained on the digits, the measured error was 1 to 17 times ε·value on average, and 54 times at worst.
impl<T: Real> Objective for Mlp<T> {
    type Point = Vec<T>;

    fn terms(&self) -> usize {
        self.train.targets.len()
    }
    fn value(&mut self, x: &Vec<T>, sample: &Sample) -> Evaluation {
        self.evaluate(x, sample, None)
    }
    fn value_and_gradient(&mut self, x: &Vec<T>, sample: &Sample, gradient: &mut Vec<T>) -> Evaluation {
        self.evaluate(x, sample, Some((gradient, &mut |_, _| {})))
    }
    fn curvature_product(
        &mut self,
        kind: ProductKind,
        x: &Vec<T>,
        sample: &Sample,
        direction: &Vec<T>,
        product: &mut Vec<T>,
    ) -> bool {
        let Self { network, train, .. } = self;
        let rows = sample.indices().iter().copied();
        let targets = rows.clone().map(|i| train.targets[i]);
        let head = |z: ForwardPass<'_, T>, along: &mut [T]| {
            let ForwardPass { outputs: scores, width: classes, .. } = z;
            widest(CrossEntropy { scores: &mut *scores, classes, targets: targets.clone() });
            widest(CurveCrossEntropy { deltas: scores, along, classes, targets });
        };
        network.product(Tangent { kind, x, v: direction }, &train.columns, rows, head, product);
        true
    }
    fn sliced(&mut self) -> Option<&mut dyn Sliced<Point = Vec<T>>> {
        Some(self)
    }
    fn check_point(&self, x: &Vec<T>) -> Result<(), Error> {
        shape("point of a multilayer perceptron", vec![self.parameters()], vec![x.len()])
    }
}

impl<T: Real> Sliced for Mlp<T> {
    fn slices(&self) -> Vec<usize> {
        self.network.slices()
    }
    fn value_and_gradient_in_slices(
        &mut self,
        x: &Vec<T>,
        sample: &Sample,
        gradient: &mut Vec<T>,
        ready: &mut dyn FnMut(&Vec<T>, usize),
    ) -> Evaluation {
        self.evaluate(x, sample, Some((gradient, ready)))
    }
}

impl<T: Real> Problem for Mlp<T> {
    /// Biases are 0. Weights are N(0, 2/inputs) for ReLU (He et al. 2015) and N(0, 2/(inputs + outputs)) otherwise
    /// (Glorot and Bengio 2010). This keeps the size of the activations from layer to layer.
    fn start(&self, seed: u64) -> Vec<T> {
        self.network.start(seed)
    }
    fn feature_scales(&self) -> Option<Vec<f64>> {
        // The last row holds the ones of the biases.
        let (columns, features) = (&self.train.columns, self.train.columns.nrows() - 1);
        let scale = |j: usize| rms((0..columns.ncols()).map(|i| columns[(j, i)].into()));
        Some((0..features).map(scale).collect())
    }
    /// Unknown.
    fn optimum(&self) -> Option<f64> {
        None
    }
    fn test_metric(&mut self, x: &Vec<T>) -> Option<f64> {
        self.accuracy(x, Split::Test)
    }
    fn train_accuracy(&mut self, x: &Vec<T>) -> Option<f64> {
        self.accuracy(x, Split::Train)
    }
}

#[cfg(test)]
mod tests;
