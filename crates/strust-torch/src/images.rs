//! Labeled images as bytes on the device, and batches of them.

use crate::{Error, sample_queue::upload};
use rand_core::Rng;
use strust::sample::{Sample, generator};
use tch::{Device, Kind, Tensor, no_grad};

/// Zeros on each side of an image. A crop of the image's own size is taken from the padded image.
const PADDING: i64 = 4;

/// Images in memory, as a reader returns them.
#[derive(Debug, Clone, Copy)]
pub struct ImageBytes<'a> {
    /// One byte per pixel and channel, in the order image, channel, row, column.
    pub pixels: &'a [u8],
    /// The class of each image.
    pub labels: &'a [u8],
    /// Channels, rows, columns.
    pub shape: [usize; 3],
}

impl ImageBytes<'_> {
    /// Checks that there is an image, that no pixel is missing, and that every class is valid.
    fn check(&self, classes: usize) -> Result<(), Error> {
        let (found, [channels, rows, columns]) = (self.pixels.len(), self.shape);
        let error = |why: String| Err(Error::Images(why));
        if self.labels.is_empty() {
            return error("there is no image".into());
        }
        if found == 0 || found != self.labels.len() * channels * rows * columns {
            let count = self.labels.len();
            return error(format!("{found} bytes do not make {count} images of {channels}×{rows}×{columns}"));
        }
        match self.labels.iter().position(|&label| usize::from(label) >= classes) {
            Some(i) => {
                let label = self.labels[i];
                error(format!("image {i} has class {label}, but there are {classes} classes, counted from 0"))
            }
            None => Ok(()),
        }
    }
}

/// Mean and standard deviation of each channel, in units of 255.
#[derive(Debug, Clone, PartialEq)]
pub struct Normalization {
    /// Mean of each channel.
    pub mean: Vec<f64>,
    /// Standard deviation of each channel; 1 for a constant channel.
    pub deviation: Vec<f64>,
}

impl Normalization {
    /// The usual constants of CIFAR-10, computed from its training set.
    #[must_use]
    pub fn cifar10() -> Self {
        Self { mean: vec![0.4914, 0.4822, 0.4465], deviation: vec![0.2470, 0.2435, 0.2616] }
    }
    /// Computes them from a training set. CIFAR-10 gives 0.4914, 0.4822, 0.4465 and 0.2470, 0.2435, 0.2616.
    #[must_use]
    pub fn of(images: &ImageBytes) -> Self {
        let [channels, rows, columns] = images.shape;
        let mut sums = vec![(0_u64, 0_u64); channels];
        for (i, plane) in images.pixels.chunks_exact((rows * columns).max(1)).enumerate() {
            let (sum, squares) = &mut sums[i % channels];
            *sum += plane.iter().map(|&p| u64::from(p)).sum::<u64>();
            *squares += plane.iter().map(|&p| u64::from(p) * u64::from(p)).sum::<u64>();
        }
        let count = (images.labels.len() * rows * columns) as f64;
        let number = |&(sum, squares): &(u64, u64)| {
            let mean = sum as f64 / count;
            let deviation = (squares as f64 / count - mean * mean).max(0.0).sqrt();
            (mean / 255.0, if deviation > 0.0 { deviation / 255.0 } else { 1.0 })
        };
        let (mean, deviation) = sums.iter().map(number).unzip();
        Self { mean, deviation }
    }

    /// 1/(255·deviation) and −mean/deviation of each channel, on the device.
    fn on(&self, channels: i64, device: Device) -> Result<(Tensor, Tensor), Error> {
        let Self { mean, deviation } = self;
        if mean.len() as i64 != channels || mean.len() != deviation.len() {
            let found = mean.len();
            return Err(Error::Images(format!("{channels} channels, but the normalization has {found} means")));
        }
        let channel = |number: &dyn Fn(f64, f64) -> f64| {
            let numbers: Vec<f64> = mean.iter().zip(deviation).map(|(&m, &d)| number(m, d)).collect();
            Tensor::from_slice(&numbers).to_kind(Kind::Float).to_device(device).view([channels, 1, 1])
        };
        Ok((channel(&|_, deviation| 1.0 / (255.0 * deviation)), channel(&|mean, deviation| -mean / deviation)))
    }
}

/// A set of labeled images on a device, one byte per pixel and channel: CIFAR-10's training set takes 154 MB.
///
/// ```
/// use strust::sample::Sample;
/// use strust_torch::images::{DeviceImages, ImageBytes, Normalization};
/// // Two images of one channel and 2×2 pixels.
/// let bytes = ImageBytes { pixels: &[0, 0, 0, 0, 255, 255, 255, 255], labels: &[0, 1], shape: [1, 2, 2] };
/// let images = DeviceImages::new(&bytes, 2, &Normalization::of(&bytes), tch::Device::Cpu)?;
/// let (inputs, classes) = images.batch(&Sample::range(1..2));
/// assert_eq!((inputs.size(), inputs.double_value(&[0, 0, 0, 0])), (vec![1, 1, 2, 2], 1.0));
/// assert_eq!(classes.int64_value(&[0]), 1);
/// # Ok::<(), strust_torch::Error>(())
/// ```
#[derive(Debug)]
pub struct DeviceImages {
    pixels: Tensor,
    classes: Tensor,
    /// 1/(255·deviation) and −mean/deviation of each channel.
    scale: Tensor,
    shift: Tensor,
    augmented: bool,
    mirrored: bool,
}

impl DeviceImages {
    /// Checks the images and copies them to the device. Use the training set's `normalization` for a test set too.
    pub fn new(
        images: &ImageBytes,
        classes: usize,
        normalization: &Normalization,
        device: Device,
    ) -> Result<Self, Error> {
        images.check(classes)?;
        let [channels, rows, columns] = images.shape.map(|size| size as i64);
        let (scale, shift) = normalization.on(channels, device)?;
        Ok(Self {
            pixels: Tensor::from_slice(images.pixels).view([-1, channels, rows, columns]).to_device(device),
            classes: Tensor::from_slice(images.labels).to_device(device).to_kind(Kind::Int64),
            scale,
            shift,
            augmented: false,
            mirrored: true,
        })
    }
    /// Turns augmentation on: each image of a sample with a seed gets 4 zeros on every side, is cropped at random to
    /// its own size, and is mirrored left to right with probability ½.
    ///
    /// The zeros are black pixels, added before normalization, as in torchvision's usual recipe for CIFAR.
    #[must_use]
    pub fn augmented(self) -> Self {
        Self { augmented: true, ..self }
    }
    pub(crate) fn set_normalization(&mut self, normalization: &Normalization) -> Result<(), Error> {
        (self.scale, self.shift) = normalization.on(self.pixels.size()[1], self.pixels.device())?;
        Ok(())
    }
    pub(crate) fn set_augmented(&mut self, augmented: bool) {
        self.augmented = augmented;
    }
    /// Whether augmentation mirrors images, too.
    pub(crate) fn set_mirrored(&mut self, mirrored: bool) {
        self.mirrored = mirrored;
    }

    /// The number of images.
    #[must_use]
    pub fn len(&self) -> usize {
        self.classes.numel()
    }
    /// Whether there is no image.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The class of each image, on the device.
    pub fn classes(&self) -> &Tensor {
        &self.classes
    }

    /// Normalized images, n×channels×rows×columns, and their classes. This is a pure function of the sample: the crops
    /// are drawn from the library's own generator.
    pub fn batch(&self, sample: &Sample) -> (Tensor, Tensor) {
        let plan = upload(&self.plan(sample), self.device());
        self.planned(&plan, self.augmented && !sample.measures())
    }

    /// The count of numbers per image in a [`plan`](Self::plan).
    pub(crate) const PLAN: usize = 4;

    /// The device needs these numbers for each image of a sample: its index, the first row and column of its crop, and
    /// whether it is mirrored. Without augmentation they describe the image itself.
    pub(crate) fn plan(&self, sample: &Sample) -> Vec<i64> {
        // Without augmentation the seed is not read: then the images are those of the terms alone.
        let drawn = self.augmented.then(|| sample.seed()).flatten().map(|seed| draw(seed, sample.len()));
        let drawn = drawn.unwrap_or_else(|| vec![[PADDING as u8, PADDING as u8, 0]; sample.len()]);
        sample
            .indices()
            .iter()
            .zip(drawn)
            .flat_map(|(&i, [t, l, m])| [i as i64, t.into(), l.into(), i64::from(m) * i64::from(self.mirrored)])
            .collect()
    }
    /// The batch of a sample whose plan is on the device. The host reads no number of it.
    pub(crate) fn planned(&self, plan: &Tensor, augmented: bool) -> (Tensor, Tensor) {
        no_grad(|| {
            let plan = plan.view([-1, Self::PLAN as i64]);
            let rows = plan.select(1, 0);
            let mut pixels = self.pixels.index_select(0, &rows);
            if augmented {
                pixels = crop_and_mirror(&pixels, &plan);
            }
            let inputs = pixels.to_kind(Kind::Float).g_mul_(&self.scale).g_add_(&self.shift);
            (inputs, self.classes.index_select(0, &rows))
        })
    }
    pub(crate) fn is_augmented(&self) -> bool {
        self.augmented
    }
    pub(crate) fn bytes_per_image(&self) -> usize {
        self.pixels.numel() / self.len()
    }
    pub(crate) fn device(&self) -> Device {
        self.pixels.device()
    }
}

/// Crops and mirrors the images as planned, in one gather for the whole batch.
fn crop_and_mirror(pixels: &Tensor, plan: &Tensor) -> Tensor {
    let size = pixels.size();
    let [n, channels, height, width] = size[..] else { unreachable!("images have four dimensions") };
    let [top, left, mirrored] = [1, 2, 3].map(|i| plan.narrow(1, i, 1));
    let along = |length: i64| Tensor::arange(length, (Kind::Int64, pixels.device()));
    // The rows and columns of the padded image that the crop consists of.
    let (i, j) = (along(height), along(width));
    let rows = top + i;
    let columns = left + &j + mirrored * (j * -2 + (width - 1));
    let from = rows.unsqueeze(2) * (width + 2 * PADDING) + columns.unsqueeze(1);
    let from = from.view([n, 1, height * width]).expand([n, channels, height * width], false);
    let padded = pixels.constant_pad_nd([PADDING; 4]).view([n, channels, -1]);
    padded.gather(2, &from, false).view(&size[..])
}

/// Draws for each image the first row and column of its crop, 0 to 8, and whether it is mirrored.
fn draw(seed: u64, images: usize) -> Vec<[u8; 3]> {
    let mut rng = generator(seed, 0);
    let place = |bits: u64| (((bits & 0x7fff_ffff) * (2 * PADDING as u64 + 1)) >> 31) as u8;
    let image = |_| {
        let bits = rng.next_u64();
        [place(bits >> 33), place(bits >> 2), (bits & 1) as u8]
    };
    (0..images).map(image).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASSES: usize = 10;

    /// Forty synthetic images of 3×8×6 bytes.
    fn bytes() -> (Vec<u8>, Vec<u8>) {
        let pixels = (0..40 * 144_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        (pixels, (0..40).map(|i| i % 10).collect())
    }
    fn images(device: Device) -> (DeviceImages, Normalization) {
        let (pixels, labels) = bytes();
        let bytes = ImageBytes { pixels: &pixels, labels: &labels, shape: [3, 8, 6] };
        let normalization = Normalization::of(&bytes);
        (DeviceImages::new(&bytes, CLASSES, &normalization, device).unwrap().augmented(), normalization)
    }
    fn numbers(tensor: &Tensor) -> Vec<u32> {
        Vec::<f32>::try_from(tensor.reshape([-1])).unwrap().into_iter().map(f32::to_bits).collect()
    }
    /// The batch, computed pixel by pixel.
    fn reference(normalization: &Normalization, sample: &Sample) -> Vec<u32> {
        let (pixels, _) = bytes();
        let drawn = sample.seed().map_or(vec![[4, 4, 0]; sample.len()], |seed| draw(seed, sample.len()));
        let mut out = Vec::new();
        for (&image, drawn) in sample.indices().iter().zip(drawn) {
            for (c, i, j) in (0..3).flat_map(|c| (0..8).flat_map(move |i| (0..6).map(move |j| (c, i, j)))) {
                let row = i + i32::from(drawn[0]) - 4;
                let column = if drawn[2] == 1 { 5 - j } else { j } + i32::from(drawn[1]) - 4;
                let inside = (0..8).contains(&row) && (0..6).contains(&column);
                let pixel = if inside { pixels[image * 144 + c * 48 + (row * 6 + column) as usize] } else { 0 };
                let (mean, deviation) = (normalization.mean[c], normalization.deviation[c]);
                let value = f32::from(pixel) * (1.0 / (255.0 * deviation)) as f32 + (-mean / deviation) as f32;
                out.push(value.to_bits());
            }
        }
        out
    }

    #[test]
    fn a_batch_equals_the_naive_one_bit_for_bit_with_any_seed_and_number_of_threads() {
        let (images, normalization) = images(Device::Cpu);
        let indices = vec![3, 39, 0, 3, 17, 8];
        for sample in [0, 1, u64::MAX].map(|seed| Sample::new(indices.clone(), seed)) {
            let expected = reference(&normalization, &sample);
            for threads in [1, 2, 1] {
                tch::set_num_threads(threads);
                assert_eq!(numbers(&images.batch(&sample).0), expected, "seed {:?}", sample.seed());
            }
        }
        let (inputs, classes) = images.batch(&Sample::new(indices.clone(), 1));
        assert_eq!((inputs.size(), Vec::<i64>::try_from(classes).unwrap()), (vec![6, 3, 8, 6], vec![3, 9, 0, 3, 7, 8]));
        assert_ne!(numbers(&inputs), numbers(&images.batch(&Sample::new(indices, 2)).0));
    }

    #[test]
    fn without_a_seed_or_without_augmentation_the_pixels_are_unchanged() {
        let (images, normalization) = images(Device::Cpu);
        let plain = reference(&normalization, &Sample::range(5..9));
        assert_eq!(numbers(&images.batch(&Sample::range(5..9)).0), plain);
        let plan = Tensor::from_slice(&images.plan(&Sample::range(5..9)));
        assert_eq!(numbers(&images.planned(&plan, true).0), plain);
        let off = DeviceImages { augmented: false, ..images };
        assert_eq!(numbers(&off.batch(&Sample::new((5..9).collect(), 7)).0), plain);
        // Normalized over the set: mean 0 and deviation 1 in each channel.
        let all = off.batch(&Sample::range(0..40)).0.to_kind(Kind::Double).transpose(0, 1).reshape([3, -1]);
        assert!(all.mean_dim(1_i64, false, None).abs().max().double_value(&[]) < 1e-6);
        assert!((all.std_dim(1_i64, false, false) - 1.0).abs().max().double_value(&[]) < 1e-6);
    }

    #[test]
    fn without_mirroring_the_crops_stay() {
        let (mut images, _) = images(Device::Cpu);
        let sample = Sample::new((0..40).collect(), 3);
        let mut plan = images.plan(&sample);
        assert!(plan.chunks(4).any(|of_image| of_image[3] == 1));
        plan.chunks_mut(4).for_each(|of_image| of_image[3] = 0);
        images.set_mirrored(false);
        assert_eq!(images.plan(&sample), plan);
    }

    #[test]
    fn all_crops_are_equally_likely_and_half_are_mirrored() {
        let drawn = draw(5, 90_000);
        let count = |at: usize, value: u8| drawn.iter().filter(|d| d[at] == value).count() as f64;
        for (place, expected) in (0..9).map(|p| (p, 10_000.0)) {
            // Six standard deviations.
            assert!((count(0, place) - expected).abs() < 600.0 && (count(1, place) - expected).abs() < 600.0);
        }
        assert!((count(2, 1) - 45_000.0).abs() < 900.0 && count(2, 0) + count(2, 1) > 89_999.0);
    }

    #[test]
    fn images_that_do_not_fit_are_refused_with_a_message() {
        let error = |pixels: &[u8], labels: &[u8]| {
            let bytes = ImageBytes { pixels, labels, shape: [3, 2, 2] };
            DeviceImages::new(&bytes, 10, &Normalization::of(&bytes), Device::Cpu).unwrap_err().to_string()
        };
        assert_eq!(error(&[], &[]), "images: there is no image");
        assert_eq!(error(&[0; 23], &[1, 2]), "images: 23 bytes do not make 2 images of 3×2×2");
        assert_eq!(error(&[0; 24], &[1, 10]), "images: image 1 has class 10, but there are 10 classes, counted from 0");
    }
}
