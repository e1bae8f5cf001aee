//! Multilayer perceptrons: classifiers that are easy to over-parameterize.

use crate::{
    Classifier, Problem,
    classified::{Classified, is_right},
    numerics::{START, at_least_one, finite, normals, out_of_range, shape},
    simd_math::{exp_of_negative, tanh},
};
use faer::{Accum, Mat, MatMut, MatRef, Par, linalg::matmul::matmul};
use pulp::NullaryFnOnce;
use strust::{
    Error,
    objective::{Evaluation, Objective},
    sample::Sample,
    vector::Real,
};

const OWNER: &str = "multilayer perceptron";
/// The largest number of parameters: 16 GiB in `f64`.
const MOST: usize = 1 << 31;
/// Data points per classification, to limit the scratch space for large data sets.
const PIECE: usize = 256;

/// The activation function φ of the hidden units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Activation {
    /// max(z, 0).
    #[default]
    Relu,
    /// tanh z.
    Tanh,
}

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
/// use strust_problems::{Activation, Classifier, Mlp, Problem, digits};
///
/// let (train, test) = digits::load()?;
/// let mut f = Mlp::<f32>::new(&train, Some(&test), &[64], Activation::Relu)?;
/// let (start, mut sampler) = (f.start(0), Epochs::new(f.terms(), 64, 0)?);
/// let report = minimize(&mut f).method(Str::new(StrConfig::default())?).sampler(&mut sampler).stop(Stop::epochs(10)).start(start)?;
/// assert!(f.test_accuracy(report.point()) > Some(0.9));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Mlp<T: Real = f64> {
    layers: Vec<Layer>,
    activation: Activation,
    train: Points<T>,
    test: Option<Points<T>>,
    scratch: Scratch<T>,
}

/// The position of a layer's matrix \[W b\] in the flat vector, and its shape.
#[derive(Debug, Clone, Copy)]
struct Layer {
    start: usize,
    inputs: usize,
    outputs: usize,
}

impl Layer {
    fn range(&self) -> std::ops::Range<usize> {
        self.start..self.start + self.outputs * (self.inputs + 1)
    }
    fn matrix<'a, T>(&self, x: &'a [T]) -> MatRef<'a, T> {
        MatRef::from_column_major_slice(&x[self.range()], self.outputs, self.inputs + 1)
    }
    fn matrix_mut<'a, T>(&self, x: &'a mut [T]) -> MatMut<'a, T> {
        MatMut::from_column_major_slice_mut(&mut x[self.range()], self.outputs, self.inputs + 1)
    }
}

/// Data points and their classes. Each data point is a column with a 1 below it.
#[derive(Debug, Clone)]
struct Points<T> {
    columns: Mat<T>,
    targets: Vec<usize>,
}

impl<T: Real> Points<T> {
    fn new(data: &Classified) -> Result<Self, Error> {
        let (d, features) = (data.columns(), data.features());
        let entry = |i, j| T::from_f64(if i < d { features[(j, i)] } else { 1.0 });
        let columns = Mat::from_fn(d + 1, data.rows(), entry);
        // A number that is finite in f64 can be infinite in f32.
        finite(OWNER, "features", &columns)?;
        Ok(Self { columns, targets: data.labels().to_vec() })
    }
}

impl<T: Real> Mlp<T> {
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
        let (mut layers, mut start) = (Vec::new(), 0_usize);
        for pair in widths.windows(2) {
            let [inputs, outputs] = [pair[0], pair[1]];
            at_least_one(OWNER, "hidden", outputs)?;
            layers.push(Layer { start, inputs, outputs });
            let size = inputs.checked_add(1).and_then(|columns| columns.checked_mul(outputs));
            start = size.and_then(|size| size.checked_add(start)).filter(|&end| end <= MOST).ok_or_else(|| {
                let allowed = format!(
                    "widths of at most {MOST} parameters, with {} features and {} classes",
                    widths[0],
                    train.classes()
                );
                out_of_range(OWNER, "hidden", format!("{hidden:?}"), allowed)
            })?;
        }
        let scratch = Scratch { inputs: vec![Vec::new(); layers.len()], ..Scratch::default() };
        Ok(Self { layers, activation, train: Points::new(train)?, test: test.map(Points::new).transpose()?, scratch })
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
        let Self { layers, activation, train, test, scratch } = self;
        let points = match split {
            Split::Train => train,
            Split::Test => test.as_ref()?,
        };
        let (n, classes) = (points.targets.len(), layers.last()?.outputs);
        let mut right = 0;
        for start in (0..n).step_by(PIECE) {
            let rows = start..n.min(start + PIECE);
            scratch.forward(layers, *activation, x, points, rows.clone());
            let scores = scratch.delta.chunks_exact(classes);
            right += rows.zip(scores).filter(|(i, scores)| is_right(scores, points.targets[*i])).count();
        }
        Some(right as f64 / n as f64)
    }

    fn evaluate(&mut self, x: &[T], sample: &Sample, gradient: Option<&mut [T]>) -> f64 {
        let Self { layers, activation, train, scratch, .. } = self;
        let indices = sample.indices();
        scratch.forward(layers, *activation, x, train, indices.iter().copied());
        let classes = layers.last().map_or(1, |layer| layer.outputs);
        let scores = &mut scratch.delta[..classes * indices.len()];
        let value = widest(CrossEntropy { scores, classes, targets: indices.iter().map(|&i| train.targets[i]) });
        if let Some(gradient) = gradient {
            scratch.backward(layers, *activation, x, indices.len(), gradient);
        }
        value
    }
}

/// Working space. A column is a data point. A smaller batch uses the first columns.
#[derive(Debug, Clone, Default)]
struct Scratch<T> {
    /// The inputs of each layer: the batch, then the hidden units. Each column ends with a 1 for the bias.
    inputs: Vec<Vec<T>>,
    /// The scores, later the derivatives with respect to the output of a layer.
    delta: Vec<T>,
    /// The same for the previous layer, while it is computed.
    next: Vec<T>,
}

impl<T: Real> Scratch<T> {
    fn reserve(&mut self, layers: &[Layer], batch: usize) {
        let grow = |space: &mut Vec<T>, size: usize| {
            if space.len() < size {
                // The ones below the columns. All other entries are overwritten.
                space.resize(size, T::from_f64(1.0));
            }
        };
        for (space, layer) in self.inputs.iter_mut().zip(layers) {
            grow(space, (layer.inputs + 1) * batch);
            grow(&mut self.delta, layer.outputs * batch);
            // Both have the same size, because they are swapped.
            grow(&mut self.next, layer.outputs * batch);
        }
    }

    /// Writes the scores of some data points to `delta`.
    fn forward(
        &mut self,
        layers: &[Layer],
        activation: Activation,
        x: &[T],
        points: &Points<T>,
        rows: impl ExactSizeIterator<Item = usize>,
    ) {
        let batch = rows.len();
        self.reserve(layers, batch);
        for (column, i) in self.inputs[0].chunks_exact_mut(layers[0].inputs + 1).zip(rows) {
            column.copy_from_slice(points.columns.col_as_slice(i));
        }
        for (l, layer) in layers.iter().enumerate() {
            let (before, after) = self.inputs.split_at_mut(l + 1);
            let input = columns(&before[l], layer.inputs + 1, batch);
            if let Some(hidden) = after.first_mut() {
                let out = columns_mut(hidden, layer.outputs + 1, batch).subrows_mut(0, layer.outputs);
                multiply(out, layer.matrix(x), input);
                widest(Activate(activation, &mut hidden[..(layer.outputs + 1) * batch], layer.outputs));
            } else {
                multiply(columns_mut(&mut self.delta, layer.outputs, batch), layer.matrix(x), input);
            }
        }
    }

    /// The gradient, from the derivatives with respect to the scores in `delta`.
    fn backward(&mut self, layers: &[Layer], activation: Activation, x: &[T], batch: usize, gradient: &mut [T]) {
        for (l, layer) in layers.iter().enumerate().rev() {
            let delta = columns(&self.delta, layer.outputs, batch);
            let input = columns(&self.inputs[l], layer.inputs + 1, batch);
            multiply(layer.matrix_mut(gradient), delta, input.transpose());
            if l > 0 {
                let weights = layer.matrix(x).subcols(0, layer.inputs);
                multiply(columns_mut(&mut self.next, layer.inputs, batch), weights.transpose(), delta);
                let next = &mut self.next[..layer.inputs * batch];
                widest(PullBack(activation, &self.inputs[l], next, layer.inputs));
                std::mem::swap(&mut self.delta, &mut self.next);
            }
        }
    }
}

fn columns<T>(space: &[T], rows: usize, batch: usize) -> MatRef<'_, T> {
    MatRef::from_column_major_slice(&space[..rows * batch], rows, batch)
}

fn columns_mut<T>(space: &mut [T], rows: usize, batch: usize) -> MatMut<'_, T> {
    MatMut::from_column_major_slice_mut(&mut space[..rows * batch], rows, batch)
}

/// Runs a loop with the widest instructions of this machine.
fn widest<F: NullaryFnOnce>(f: F) -> F::Output {
    pulp::Arch::new().dispatch(f)
}

/// out ← A·B.
fn multiply<T: Real>(out: MatMut<'_, T>, a: MatRef<'_, T>, b: MatRef<'_, T>) {
    matmul(out, Accum::Replace, a, b, T::from_f64(1.0), Par::Seq);
}

/// z ← φ(z), in columns of `width` numbers and a 1, which is unchanged. NaN must stay NaN, because it rejects a trial.
///
/// The loops are structs, because a closure cannot be marked `#[inline(always)]`, and only inlined code is compiled
/// with the widest instructions.
struct Activate<'a, T>(Activation, &'a mut [T], usize);

impl<T: Real> NullaryFnOnce for Activate<'_, T> {
    type Output = ();
    #[inline(always)]
    fn call(self) {
        let Self(activation, z, width) = self;
        let zero = T::default();
        for column in z.chunks_exact_mut(width + 1) {
            for z in &mut column[..width] {
                *z = match activation {
                    Activation::Relu => {
                        if *z < zero {
                            zero
                        } else {
                            *z
                        }
                    }
                    Activation::Tanh => T::from_f64(tanh((*z).into())),
                };
            }
        }
    }
}

/// delta ← delta∘φ'(z) in columns of `width` numbers, from a = φ(z) with a 1 below each column.
struct PullBack<'a, T>(Activation, &'a [T], &'a mut [T], usize);

impl<T: Real> NullaryFnOnce for PullBack<'_, T> {
    type Output = ();
    #[inline(always)]
    fn call(self) {
        let Self(activation, a, delta, width) = self;
        let (zero, one) = (T::default(), T::from_f64(1.0));
        for (delta, a) in delta.chunks_exact_mut(width).zip(a.chunks_exact(width + 1)) {
            for (delta, &a) in delta.iter_mut().zip(a) {
                *delta = match activation {
                    Activation::Relu => {
                        if a > zero {
                            *delta
                        } else {
                            zero
                        }
                    }
                    // 1 − a² as a product, which does not cancel where a ≈ ±1.
                    Activation::Tanh => *delta * ((one - a) * (one + a)),
                };
            }
        }
    }
}

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

/// The rounding error is the default. An error δ in the scores changes a loss by at most 2(1 − p_y)|δ|, which is at
/// most 2|δ| times the loss. So the error is relative to the value, even if the value is small. For networks in `f32`
/// trained on the digits, the measured error was 1 to 17 times ε·value on average, and 54 times at worst.
impl<T: Real> Objective for Mlp<T> {
    type Point = Vec<T>;

    fn terms(&self) -> usize {
        self.train.targets.len()
    }
    fn value(&mut self, x: &Vec<T>, sample: &Sample) -> Evaluation {
        Evaluation::new(self.evaluate(x, sample, None), T::EPSILON)
    }
    fn value_and_gradient(&mut self, x: &Vec<T>, sample: &Sample, gradient: &mut Vec<T>) -> Evaluation {
        Evaluation::new(self.evaluate(x, sample, Some(gradient)), T::EPSILON)
    }
    fn check_point(&self, x: &Vec<T>) -> Result<(), Error> {
        shape("point of a multilayer perceptron", vec![self.parameters()], vec![x.len()])
    }
}

impl<T: Real> Problem for Mlp<T> {
    /// Biases are 0. Weights are N(0, 2/inputs) for ReLU (He et al. 2015) and N(0, 2/(inputs + outputs)) for tanh
    /// (Glorot and Bengio 2010). This keeps the size of the activations from layer to layer.
    fn start(&self, seed: u64) -> Vec<T> {
        let mut next = normals(seed, START);
        let mut x = vec![T::default(); self.parameters()];
        for layer in &self.layers {
            let fan = match self.activation {
                Activation::Relu => layer.inputs,
                Activation::Tanh => layer.inputs + layer.outputs,
            };
            let scale = (2.0 / fan as f64).sqrt();
            let weights = layer.start..layer.start + layer.inputs * layer.outputs;
            x[weights].fill_with(|| T::from_f64(scale * next()));
        }
        x
    }
    /// Unknown.
    fn optimum(&self) -> Option<f64> {
        None
    }
}

impl<T: Real> Classifier for Mlp<T> {
    fn test_accuracy(&mut self, x: &Vec<T>) -> Option<f64> {
        self.accuracy(x, Split::Test)
    }
    fn parameters(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.range().end)
    }
}

#[cfg(test)]
mod tests;
