//! Image classification by a network: the paper's section 5.1 as a problem of the library.

use crate::{
    BatchLoss, ConvNet, Error, Flat, ModelOutputs, ModelParameters, QueuedLoss, ResNet20, TorchObjective,
    cross_entropy, cuda,
    images::{DeviceImages, ImageBytes, Normalization},
    seeded,
};
use std::{fmt, path::Path};
use strust::{
    objective::{Evaluation, Objective, ObjectiveWrapper, PIECE},
    sample::Sample,
    samplers::{Epochs, Sampler},
    vector::Vector,
};
use strust_problems::Problem;
use tch::{
    Device, Kind, Tensor,
    nn::{self, ModuleT, VarStore},
    no_grad,
};

/// The bytes of the images per evaluation on a GPU, unless [`PIECE`] images have more: 2500 images of CIFAR-10. With fewer,
/// a GPU waits for the host. The activations of ResNet-20 then take about 1 GB.
const PIECE_ON_GPU: usize = 2500 * 3 * 32 * 32;

/// The number of batches for new running statistics, and the images in each: 8192 images in total.
const STATISTICS_BATCHES: usize = 32;
const STATISTICS_BATCH: usize = 256;

/// A network: a function from n×channels×rows×columns images and the mode (`true` for training) to n×classes logits.
pub type NetworkFn = Box<dyn Fn(&Tensor, bool) -> Tensor + Send>;

type Build = Box<dyn Fn(&nn::Path) -> NetworkFn + Send>;

/// The mean cross-entropy of a network over images.
///
/// The training loss uses training mode: batch-norm uses the statistics of the sample's own batch. The sample's seed
/// determines how the images are cropped and mirrored. A sample without a seed, which measures the full sum, does not
/// change the images or the running statistics. Predictions use evaluation mode, with the running statistics.
///
/// The running statistics are no part of a point: [`start`](Problem::start) initializes them, and a run that resumes
/// restores them ([`extra_state`](Problem::extra_state)).
///
/// ```
/// use strust::prelude::*;
/// use strust_problems::{Problem};
/// use strust_torch::{ImageClassification, images::ImageBytes};
///
/// // Eight images, dark ones of class 0 and bright ones of class 1.
/// let labels = [0, 1, 0, 1, 0, 1, 0, 1];
/// let pixels: Vec<u8> = labels.iter().flat_map(|&label| [60 + 100 * label; 3 * 32 * 32]).collect();
/// let images = ImageBytes { pixels: &pixels, labels: &labels, shape: [3, 32, 32] };
/// let mut f = ImageClassification::resnet20(&images, Some(&images), 2, tch::Device::Cpu)?;
///
/// let start = f.start(0);
/// assert_eq!((start.len() as usize, f.optimum()), (f.parameters(), None));
/// let mut sampler = Epochs::new(f.terms(), 4, 0)?;
/// let report = minimize(&mut f).method(Str::new(StrConfig::default())?).sampler(&mut sampler).stop(Stop::steps(2)).start(start)?;
/// assert!(f.test_metric(report.point()).is_some());
/// # Ok::<(), strust_torch::Error>(())
/// ```
pub struct ImageClassification {
    objective: TorchObjective<f32, ImageLoss>,
    test: Option<DeviceImages>,
    normalization: Normalization,
    classes: usize,
    build: Build,
}

/// The training loss of an [`ImageClassification`].
pub struct ImageLoss {
    network: NetworkFn,
    draws: bool,
    bf16: bool,
    /// The factor of the loss.
    scale: f64,
    images: DeviceImages,
    /// The batch of the last sample. All evaluations of a step use the same batch.
    last: Option<(Sample, Tensor, Tensor)>,
}

impl ImageLoss {
    fn logits(&self, inputs: &Tensor) -> Tensor {
        let forward = || (self.network)(inputs, true);
        // The loss is always in single precision, because STR's ratio compares two losses.
        if self.bf16 { cuda::bf16(forward).to_kind(Kind::Float) } else { forward() }
    }
    fn of_logits(&self, logits: &Tensor, classes: &Tensor) -> Tensor {
        let loss = cross_entropy(logits, classes);
        // The comparison is exact: a factor of 1 needs no operation.
        #[allow(clippy::float_cmp)]
        if self.scale == 1.0 { loss } else { loss * self.scale }
    }
    /// The batch of a sample.
    fn batch(&mut self, sample: &Sample) -> (Tensor, Tensor) {
        if self.last.as_ref().is_none_or(|(of, ..)| of != sample) {
            // The old batch is freed first, so that memory never holds two.
            self.last = None;
            let (inputs, classes) = self.images.batch(sample);
            self.last = Some((sample.clone(), inputs, classes));
        }
        let (_, inputs, classes) = self.last.as_ref().expect("set above");
        (inputs.shallow_clone(), classes.shallow_clone())
    }
}

impl BatchLoss for ImageLoss {
    fn mean(&mut self, sample: &Sample) -> Tensor {
        let batch = self.batch(sample);
        self.mean_on(&batch)
    }
    fn outputs(&mut self, sample: &Sample) -> Option<ModelOutputs<'_>> {
        let batch = self.batch(sample);
        self.outputs_on(&batch)
    }
    fn draws(&self) -> bool {
        self.draws
    }
}

impl QueuedLoss for ImageLoss {
    type Batch = (Tensor, Tensor);
    fn plan(&self, sample: &Sample) -> Vec<i64> {
        self.images.plan(sample)
    }
    fn planned(&self, plan: &Tensor) -> (Tensor, Tensor) {
        self.images.planned(plan, self.images.is_augmented())
    }
    fn mean_on(&mut self, (inputs, classes): &(Tensor, Tensor)) -> Tensor {
        self.of_logits(&self.logits(inputs), classes)
    }
    fn outputs_on(&mut self, (inputs, classes): &(Tensor, Tensor)) -> Option<ModelOutputs<'_>> {
        let (outputs, classes) = (self.logits(inputs), classes.shallow_clone());
        Some(ModelOutputs { outputs, loss: Box::new(move |logits| self.of_logits(logits, &classes)) })
    }
}

impl ImageClassification {
    /// The number of parameters of a point.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.objective.parameters().flat().len() as usize
    }

    /// ResNet-20 for augmented images of 3×32×32. Without a test set there is no accuracy.
    pub fn resnet20(
        train: &ImageBytes,
        test: Option<&ImageBytes>,
        classes: usize,
        device: Device,
    ) -> Result<Self, Error> {
        Self::wide_resnet20(train, test, classes, 1, device)
    }

    /// The same with `width` times as many channels.
    pub fn wide_resnet20(
        train: &ImageBytes,
        test: Option<&ImageBytes>,
        classes: usize,
        width: usize,
        device: Device,
    ) -> Result<Self, Error> {
        if train.shape != [3, 32, 32] {
            let [channels, rows, columns] = train.shape;
            let why = format!("they are {channels}×{rows}×{columns}, but ResNet-20 is made for 3×32×32");
            return Err(Error::Images(why));
        }
        let this = Self::new(train, test, classes, device, move |path| {
            let net = ResNet20::wide(path, classes as i64, width as i64);
            Box::new(move |images, training| net.forward_t(images, training))
        })?;
        Ok(this.without_random_numbers())
    }

    /// [`ConvNet`] for images of any size, without augmentation.
    pub fn convnet(
        train: &ImageBytes,
        test: Option<&ImageBytes>,
        classes: usize,
        batch_norm: bool,
        device: Device,
    ) -> Result<Self, Error> {
        let [channels, rows, columns] = train.shape;
        let smallest = ConvNet::SMALLEST;
        if rows.min(columns) < smallest {
            let why = format!("they are {rows}×{columns}, but the network needs {smallest}×{smallest} or more");
            return Err(Error::Images(why));
        }
        let this = Self::new(train, test, classes, device, move |path| {
            let net = ConvNet::new(path, channels as i64, classes as i64, batch_norm);
            Box::new(move |images, training| net.forward_t(images, training))
        })?;
        Ok(this.without_augmentation().without_random_numbers())
    }

    /// Any network. `build` creates its layers under a path, initialized from libtorch's generator.
    ///
    /// ```
    /// use strust_torch::{ImageClassification, images::ImageBytes};
    /// use tch::nn::{self, Module};
    /// let images = ImageBytes { pixels: &[0, 9, 4, 7], labels: &[0, 1], shape: [1, 1, 2] };
    /// let f = ImageClassification::new(&images, None, 2, tch::Device::Cpu, |path| {
    ///     let layer = nn::linear(path / "linear", 2, 2, Default::default());
    ///     Box::new(move |images, _training| layer.forward(&images.flatten(1, -1)))
    /// })?;
    /// assert_eq!(f.parameters(), 6);
    /// # Ok::<(), strust_torch::Error>(())
    /// ```
    pub fn new(
        train: &ImageBytes,
        test: Option<&ImageBytes>,
        classes: usize,
        device: Device,
        build: impl Fn(&nn::Path) -> NetworkFn + Send + 'static,
    ) -> Result<Self, Error> {
        let normalization = Normalization::of(train);
        let images = DeviceImages::new(train, classes, &normalization, device)?.augmented();
        let test = test.map(|test| of_shape(test, train)).transpose()?;
        let test = test.map(|test| DeviceImages::new(test, classes, &normalization, device)).transpose()?;
        let store = VarStore::new(device);
        let network = seeded(0, || build(&store.root()));
        let found = {
            let _held = cuda::hold_off_capture();
            no_grad(|| network(&images.batch(&Sample::range(0..1)).0, false)).size()
        };
        if found != [1, classes as i64] {
            let why = format!("there are {classes} classes, but for one image the network gives a tensor {found:?}");
            return Err(Error::Images(why));
        }
        let terms = images.len();
        let loss = ImageLoss { network, draws: true, bf16: false, scale: 1.0, images, last: None };
        let objective = TorchObjective::over(&store, terms, loss)?;
        Ok(Self { objective, test, normalization, classes, build: Box::new(build) })
    }

    /// The device of the network and its images.
    #[must_use]
    pub fn device(&self) -> Device {
        self.objective.parameters().device()
    }

    /// Sets another normalization than that of the training set, for example if the set is a part of a larger one.
    pub fn normalized(mut self, by: &Normalization) -> Result<Self, Error> {
        self.objective.loss_mut().images.set_normalization(by)?;
        self.test.as_mut().map_or(Ok(()), |test| test.set_normalization(by))?;
        self.normalization = by.clone();
        Ok(self)
    }

    /// Turns crops and mirroring off.
    #[must_use]
    pub fn without_augmentation(mut self) -> Self {
        self.objective.loss_mut().images.set_augmented(false);
        self
    }

    /// Turns mirroring off; the images are still cropped. For images whose class depends on left and right.
    #[must_use]
    pub fn without_mirroring(mut self) -> Self {
        self.objective.loss_mut().images.set_mirrored(false);
        self
    }

    /// Declares that the network draws nothing from libtorch's generator (no dropout). Then its evaluations do not wait
    /// for the generator, and its steps can be captured. This is not checked.
    #[must_use]
    pub fn without_random_numbers(mut self) -> Self {
        self.objective.loss_mut().draws = false;
        self
    }

    /// Computes the network's convolutions and products in bfloat16 on a GPU ([`cuda::bf16`]). The parameters, the
    /// loss, and so STR's ratio, and the predictions stay in single precision.
    #[must_use]
    pub fn in_bf16(mut self) -> Self {
        self.objective.loss_mut().bf16 = true;
        self
    }

    /// Multiplies the training loss by a number. A power of two changes no digit of the loss or of a gradient.
    #[must_use]
    pub fn scaled(mut self, scale: f64) -> Self {
        self.objective.loss_mut().scale = scale;
        self
    }

    /// The training loss, as [`DeviceStr`](crate::DeviceStr) takes it.
    pub fn objective(&mut self) -> &mut TorchObjective<f32, ImageLoss> {
        &mut self.objective
    }

    pub(crate) fn make_batch(&self, sample: &Sample) -> (Tensor, Tensor) {
        self.objective.loss().images.batch(sample)
    }

    /// Predicts the class of each image in evaluation mode, with the current running statistics.
    pub fn predict(&mut self, x: &Flat<f32>, images: &ImageBytes) -> Result<Vec<u8>, Error> {
        let device = self.objective.parameters().device();
        let images = DeviceImages::new(images, self.classes, &self.normalization, device)?;
        let piece = self.piece();
        let classes = classes_of(&mut self.objective, x, &images, piece);
        Ok(Vec::try_from(classes.to_kind(Kind::Uint8)).expect("one dimension"))
    }

    /// Writes a point and the running statistics as a safetensors file, under PyTorch's names.
    pub fn save(&mut self, path: &Path, x: &Flat<f32>) -> Result<(), Error> {
        self.objective.save(path, x)
    }
    /// Reads such a file: returns the point and sets the running statistics.
    pub fn load(&mut self, path: &Path) -> Result<Flat<f32>, Error> {
        self.objective.load(path)
    }
}

impl fmt::Debug for ImageClassification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (terms, parameters) = (self.terms(), self.objective.parameters().flat());
        write!(f, "ImageClassification({terms} images, {} classes, {parameters:?})", self.classes)
    }
}

/// Checks that the test images have the shape of the training images.
fn of_shape<'a, 'b>(test: &'a ImageBytes<'b>, train: &ImageBytes) -> Result<&'a ImageBytes<'b>, Error> {
    if test.shape == train.shape {
        return Ok(test);
    }
    Err(Error::Images(format!(
        "the test images have shape {:?}, but the training images {:?}",
        test.shape, train.shape
    )))
}

/// The predicted class of each image in evaluation mode, on the device, computed piece by piece.
fn classes_of(
    objective: &mut TorchObjective<f32, ImageLoss>,
    x: &Flat<f32>,
    images: &DeviceImages,
    at_once: usize,
) -> Tensor {
    objective.elsewhere(|objective| {
        objective.set(x);
        let network = &objective.loss().network;
        let piece = |start: usize| {
            let _held = cuda::hold_off_capture();
            let (inputs, _) = images.batch(&Sample::range(start..(start + at_once).min(images.len())));
            network(&inputs, false).argmax(1, false)
        };
        no_grad(|| Tensor::cat(&(0..images.len()).step_by(at_once).map(piece).collect::<Vec<_>>(), 0))
    })
}

/// A measurement, on a sample without a seed, leaves the model's parameters unchanged: a captured step continues from
/// them. A step evaluates where it wants to be, so its parameters stay, which saves copies.
impl ObjectiveWrapper for ImageClassification {
    type Inner = TorchObjective<f32, ImageLoss>;
    fn wrapped(&self) -> &Self::Inner {
        &self.objective
    }
    fn wrapped_mut(&mut self) -> &mut Self::Inner {
        &mut self.objective
    }
    fn value(this: &mut Self, x: &Flat<f32>, sample: &Sample) -> Evaluation {
        if sample.measures() {
            return this.objective.value(x, sample);
        }
        Evaluation::new(this.objective.value_at(x, sample), Flat::<f32>::EPSILON)
    }
    fn value_and_gradient(this: &mut Self, x: &Flat<f32>, sample: &Sample, gradient: &mut Flat<f32>) -> Evaluation {
        if sample.measures() {
            return this.objective.value_and_gradient(x, sample, gradient);
        }
        Evaluation::new(this.objective.value_and_gradient_at(x, sample, gradient), Flat::<f32>::EPSILON)
    }
}

impl Problem for ImageClassification {
    /// Initializes the network and its running statistics. This happens on the CPU, so that the result does not depend
    /// on the device.
    fn start(&self, seed: u64) -> Flat<f32> {
        let own = self.objective.parameters();
        let store = VarStore::new(Device::Cpu);
        let _network = seeded(seed, || (self.build)(&store.root()));
        let fresh = ModelParameters::<f32>::new(&store).expect("the network was built once already");
        own.share().restore(&fresh.snapshot());
        fresh.flat().to_device(own.device())
    }
    fn optimum(&self) -> Option<f64> {
        None
    }
    fn scale(&self) -> f64 {
        self.objective.loss().scale
    }
    fn piece(&self) -> usize {
        let image = self.objective.loss().images.bytes_per_image();
        if self.device().is_cuda() { (PIECE_ON_GPU / image).max(PIECE) } else { PIECE }
    }
    /// The state of the network besides its parameters: the running statistics of batch-norm.
    fn extra_state(&self) -> Vec<u8> {
        let parameters = self.objective.parameters();
        let mut bytes = Vec::new();
        parameters.buffers().write(&mut bytes);
        for other in parameters.other_buffers() {
            Flat::<f64>::from_tensor(other).write(&mut bytes);
        }
        bytes
    }
    fn restore_extra_state(&mut self, bytes: &[u8]) -> Result<(), strust::Error> {
        let parameters = self.objective.parameters_mut();
        let first = parameters.buffers().len() as usize * size_of::<f32>();
        let lengths: Vec<usize> = parameters.other_buffers().iter().map(Tensor::numel).collect();
        let wanted = first + lengths.iter().sum::<usize>() * size_of::<f64>();
        if bytes.len() != wanted {
            let found = bytes.len();
            return Err(strust::Error::Saved(format!(
                "{found} bytes of running statistics, but the model has {wanted}: they belong to another model"
            )));
        }
        let (own, mut rest) = bytes.split_at(first);
        let own = Flat::read("f32", &[first / size_of::<f32>()], own)?;
        let mut others = Vec::new();
        for length in lengths {
            let (other, after) = rest.split_at(length * size_of::<f64>());
            others.push(Flat::<f64>::read("f64", &[length], other)?.to_vec());
            rest = after;
        }
        parameters.set_buffers(&own, &others);
        Ok(())
    }
    /// The running statistics of x, from 32 batches of 256 training images, augmented as in training.
    /// The batches are always the same.
    fn recompute_extra_state(&mut self, x: &Flat<f32>) {
        let batch = STATISTICS_BATCH.min(self.terms());
        let mut sampler = Epochs::over(self).batch(batch);
        // Batches of the same size have the same weight, so the smaller last one of an epoch is left out.
        let full = (self.terms() / batch).min(STATISTICS_BATCHES);
        let samples = (0..full as u64).map(|k| {
            let mut sample = Sample::default();
            sampler.draw(k, &mut sample);
            sample
        });
        self.objective.recompute_statistics(x, samples);
    }
    fn test_metric(&mut self, x: &Flat<f32>) -> Option<f64> {
        let piece = self.piece();
        let test = self.test.as_ref()?;
        let right = classes_of(&mut self.objective, x, test, piece).eq_tensor(test.classes()).sum(Kind::Int64);
        Some(right.int64_value(&[]) as f64 / test.len() as f64)
    }
}
