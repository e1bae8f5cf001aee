//! A model of the characters of a text, as a problem of the library.

use crate::{
    BatchLoss, Component, Error, Flat, Gpt, GptShape, ModelOutputs, ModelParameters, QueuedLoss, TorchObjective,
    cross_entropy, cuda, sample_queue::upload, seeded,
};
use std::path::Path;
use strust::{objective::ObjectiveWrapper, sample::Sample};
use strust_data::text::Characters;
use strust_problems::Problem;
use tch::{
    Device, Kind, Tensor,
    nn::{Module, VarStore},
    no_grad,
};

/// The number of windows per evaluation for the test loss.
const PIECE: usize = 256;

/// The mean cross-entropy of a [`Gpt`] in nats per character.
///
/// The text is cut into windows of `context` + 1 characters that do not overlap; each is a term. The model predicts every
/// character of a window but the first from those before it. The last tenth of the windows is the test set.
///
/// ```
/// use strust::prelude::*;
/// use strust_baselines::Adam;
/// use strust_data::text::Characters;
/// use strust_problems::Problem;
/// use strust_torch::{GptShape, LanguageModel};
///
/// let text = Characters::new(&"to be or not to be, ".repeat(40))?;
/// let shape = GptShape { layers: 1, width: 16, heads: 2, context: 19 };
/// let mut f = LanguageModel::<f32>::new(&text, shape, tch::Device::Cpu)?;
/// assert_eq!(f.terms(), 36);
/// let start = f.start(0);
/// let report = minimize(&mut f).method(Adam::default()).batch(12).stop(Stop::epochs(20)).start(start.clone())?;
/// assert!(f.test_loss(report.point()) < 0.9 * f.test_loss(&start));
/// # Ok::<(), strust_torch::Error>(())
/// ```
#[derive(Debug)]
pub struct LanguageModel<T> {
    objective: TorchObjective<T, TextLoss>,
    test: Tensor,
    characters: i64,
    shape: GptShape,
}

/// The training loss of a [`LanguageModel`].
#[derive(Debug)]
pub struct TextLoss {
    model: Gpt,
    /// The codes of the training windows, one row each.
    windows: Tensor,
    bf16: bool,
}

impl TextLoss {
    /// The mean cross-entropy over rows of codes.
    fn loss(&self, codes: &Tensor) -> Tensor {
        let (logits, next) = self.logits(codes);
        cross_entropy(&logits, &next)
    }
    /// The logits at every position, and the characters that they predict.
    fn logits(&self, codes: &Tensor) -> (Tensor, Tensor) {
        let context = codes.size()[1] - 1;
        let (inputs, next) = (codes.narrow(1, 0, context), codes.narrow(1, 1, context));
        let forward = || self.model.forward(&inputs);
        let logits = if self.bf16 { cuda::bf16(forward).to_kind(Kind::Float) } else { forward() };
        (logits.flatten(0, 1), next.reshape([-1]))
    }
    fn codes(&self, sample: &Sample) -> Tensor {
        self.planned(&upload(&self.plan(sample), self.windows.device()))
    }
}

impl BatchLoss for TextLoss {
    fn mean(&mut self, sample: &Sample) -> Tensor {
        self.loss(&self.codes(sample))
    }
    fn outputs(&mut self, sample: &Sample) -> Option<ModelOutputs<'_>> {
        self.outputs_on(&self.codes(sample))
    }
    fn draws(&self) -> bool {
        false
    }
}

impl QueuedLoss for TextLoss {
    type Batch = Tensor;
    fn plan(&self, sample: &Sample) -> Vec<i64> {
        sample.indices().iter().map(|&i| i as i64).collect()
    }
    fn planned(&self, plan: &Tensor) -> Tensor {
        self.windows.index_select(0, plan)
    }
    fn mean_on(&mut self, codes: &Tensor) -> Tensor {
        self.loss(codes)
    }
    fn outputs_on(&mut self, codes: &Tensor) -> Option<ModelOutputs<'_>> {
        let (outputs, next) = self.logits(codes);
        Some(ModelOutputs { outputs, loss: Box::new(move |logits| cross_entropy(logits, &next)) })
    }
}

/// A model with parameters from a seed.
fn model<T: Component>(characters: i64, shape: GptShape, device: Device, seed: u64) -> (VarStore, Gpt) {
    let mut store = VarStore::new(device);
    store.set_kind(T::KIND);
    let model = seeded(seed, || Gpt::new(&store.root(), characters, shape));
    (store, model)
}

impl<T: Component> LanguageModel<T> {
    /// A model of the text. There must be at least two windows, and `heads` must divide `width`.
    pub fn new(text: &Characters, shape: GptShape, device: Device) -> Result<Self, Error> {
        let GptShape { width, heads, context, .. } = shape;
        if heads == 0 || !width.is_multiple_of(heads) {
            return Err(Error::Text(format!("{heads} heads do not divide the width {width}")));
        }
        let (characters, length) = (text.codes().len(), context + 1);
        let windows = characters / length;
        if windows < 2 {
            let why = format!("{characters} characters are not two windows of {length}: use a longer text");
            return Err(Error::Text(why));
        }
        let codes: Vec<i64> = text.codes()[..windows * length].iter().map(|&code| i64::from(code)).collect();
        let all = Tensor::from_slice(&codes).view([-1, length as i64]).to_device(device);
        let test = (windows / 10).max(1);
        let train = windows - test;
        let characters = text.alphabet().len() as i64;
        let (store, model) = model::<T>(characters, shape, device, 0);
        let loss = TextLoss { model, windows: all.narrow(0, 0, train as i64), bf16: false };
        let objective = TorchObjective::over(&store, train, loss)?;
        Ok(Self { objective, test: all.narrow(0, train as i64, test as i64), characters, shape })
    }

    /// Computes the products of the training loss in bfloat16 on a GPU ([`cuda::bf16`]).
    #[must_use]
    pub fn in_bf16(mut self) -> Self {
        self.objective.loss_mut().bf16 = true;
        self
    }

    /// The training loss, as [`DeviceStr`](crate::DeviceStr) takes it.
    pub fn objective(&mut self) -> &mut TorchObjective<T, TextLoss> {
        &mut self.objective
    }

    /// The number of parameters.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.objective.parameters().flat().len() as usize
    }

    /// The logits of the next character at every position, in double precision: n×positions×characters for n×positions
    /// codes.
    pub fn logits(&mut self, x: &Flat<T>, codes: &Tensor) -> Tensor {
        let _held = cuda::hold_off_capture();
        self.objective.elsewhere(|f| {
            f.set(x);
            no_grad(|| f.loss().model.forward(codes)).to_kind(Kind::Double)
        })
    }

    /// The mean cross-entropy on the test set.
    pub fn test_loss(&mut self, x: &Flat<T>) -> f64 {
        let (test, count) = (&self.test, self.test.size()[0] as usize);
        self.objective.elsewhere(|f| {
            f.set(x);
            let piece = |start: usize| {
                let _held = cuda::hold_off_capture();
                let length = PIECE.min(count - start);
                let loss = no_grad(|| f.loss().loss(&test.narrow(0, start as i64, length as i64)));
                loss.double_value(&[]) * length as f64
            };
            (0..count).step_by(PIECE).map(piece).sum::<f64>() / count as f64
        })
    }

    /// Writes a point as a safetensors file.
    pub fn save(&mut self, path: &Path, x: &Flat<T>) -> Result<(), Error> {
        self.objective.save(path, x)
    }
    /// Reads such a file and returns the point.
    pub fn load(&mut self, path: &Path) -> Result<Flat<T>, Error> {
        self.objective.load(path)
    }
}

impl<T: Component> ObjectiveWrapper for LanguageModel<T> {
    type Inner = TorchObjective<T, TextLoss>;
    fn wrapped(&self) -> &Self::Inner {
        &self.objective
    }
    fn wrapped_mut(&mut self) -> &mut Self::Inner {
        &mut self.objective
    }
}

impl<T: Component> Problem for LanguageModel<T> {
    /// Initialized on the CPU, so that the result does not depend on the device.
    fn start(&self, seed: u64) -> Flat<T> {
        let (store, _model) = model::<T>(self.characters, self.shape, Device::Cpu, seed);
        let fresh = ModelParameters::<T>::new(&store).expect("the model was built once already");
        fresh.flat().to_device(self.objective.parameters().device())
    }
    fn optimum(&self) -> Option<f64> {
        None
    }
    fn test_metric(&mut self, x: &Flat<T>) -> Option<f64> {
        Some(self.test_loss(x))
    }
}
