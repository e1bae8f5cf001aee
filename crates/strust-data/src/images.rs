//! Image data sets from their published files: CIFAR-10, MNIST and Fashion-MNIST.
//!
//! ```no_run
//! use strust_data::images::{self, Checksums};
//!
//! let cifar = images::cifar10("data".as_ref(), Checksums::Official)?;
//! assert_eq!((cifar.train.len(), cifar.test.len(), cifar.train.shape), (50_000, 10_000, [3, 32, 32]));
//! let digits = images::mnist("data".as_ref())?;
//! assert_eq!((digits.train.len(), digits.test.len(), digits.train.shape), (60_000, 10_000, [1, 28, 28]));
//! # Ok::<(), strust_data::DataError>(())
//! ```

use crate::{
    DataError,
    classified::Classified,
    numerics::{out_of_range, shape},
    read::read_idx,
};
use faer::Mat;
use rand_core::Rng;
use std::path::{Path, PathBuf};
use strust::{Error, sample::generator};

mod cifar;

pub use cifar::{Checksums, cifar10};

/// Images of the same size, each with its class.
///
/// ```
/// use strust_data::images::Images;
/// let images = Images { pixels: vec![0, 255, 51, 0], labels: vec![1, 0], shape: [1, 1, 2] };
/// images.validate(2)?;
/// assert_eq!((images.len(), images.image(1)), (2, &[51, 0][..]));
/// assert_eq!(images.classified(2)?.features()[(1, 0)], 0.2);
/// assert_eq!(images.take(1).pixels, [0, 255]);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Images {
    /// Ordered by image, then channel, then row.
    pub pixels: Vec<u8>,
    /// The class of each image.
    pub labels: Vec<u8>,
    /// Channels, height, width.
    pub shape: [usize; 3],
}

impl Images {
    /// The number of images.
    #[must_use]
    pub fn len(&self) -> usize {
        self.labels.len()
    }
    /// Whether there are no images.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }
    /// The pixels of image i.
    #[must_use]
    pub fn image(&self, i: usize) -> &[u8] {
        let size = self.size();
        &self.pixels[i * size..(i + 1) * size]
    }
    /// The first n images, or all if there are fewer.
    #[must_use]
    pub fn take(mut self, n: usize) -> Self {
        self.labels.truncate(n);
        self.pixels.truncate(self.len() * self.size());
        self
    }
    /// Checks that the number of pixels matches the shape and the labels, and that labels are below `classes`.
    pub fn validate(&self, classes: usize) -> Result<(), Error> {
        let pixels = self.shape.iter().try_fold(self.len(), |product, &size| product.checked_mul(size));
        shape("pixels of images", vec![pixels.unwrap_or(usize::MAX)], vec![self.pixels.len()])?;
        match self.labels.iter().position(|&label| usize::from(label) >= classes) {
            Some(i) => {
                let found = format!("{} at image {i}", self.labels[i]);
                Err(out_of_range("images", "labels", found, format_args!("below {classes} (classes)")))
            }
            None => Ok(()),
        }
    }
    /// One row of features per image, with pixels scaled to [0, 1].
    pub fn classified(&self, classes: usize) -> Result<Classified, Error> {
        self.validate(classes)?;
        let size = self.size();
        let features = Mat::from_fn(self.len(), size, |i, j| f64::from(self.pixels[i * size + j]) / 255.0);
        Classified::new(features, self.labels.iter().copied().map(usize::from).collect(), classes)
    }
    /// Turns every image at random and numbers the classes anew, as [`ImageSet::turned`] explains.
    fn turn(&mut self, mut rng: impl Rng) -> Result<(), Error> {
        let [_, height, width] = self.shape;
        shape("rows of images to turn", vec![width], vec![height])?;
        for (pixels, label) in self.pixels.chunks_exact_mut(self.shape.iter().product()).zip(&mut self.labels) {
            let turns = (rng.next_u64() % 4) as u8;
            for plane in pixels.chunks_exact_mut(width * width) {
                for _ in 0..turns {
                    let before = plane.to_vec();
                    for (k, pixel) in plane.iter_mut().enumerate() {
                        // The last column becomes the first row.
                        *pixel = before[(k % width) * width + width - 1 - k / width];
                    }
                }
            }
            *label = 4 * *label + turns;
        }
        Ok(())
    }
    /// The number of bytes of an image.
    fn size(&self) -> usize {
        self.shape.iter().product()
    }
}

/// Training images and test images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSet {
    /// The training images.
    pub train: Images,
    /// The test images.
    pub test: Images,
    /// The names of the classes.
    pub classes: Vec<String>,
}

impl ImageSet {
    /// A task with four times as many classes: every image is turned by 0, 90, 180 or 270 degrees, counterclockwise, and
    /// the label is four times the class plus the number of quarter turns. The turns of an image are a function of its index
    /// in its set. Images that are not square are an error.
    pub fn turned(mut self) -> Result<Self, Error> {
        for (set, images) in [&mut self.train, &mut self.test].into_iter().enumerate() {
            images.turn(generator(set as u64, 0))?;
        }
        let turns = |class: &String| [0, 90, 180, 270].map(|angle| format!("{class} {angle}°"));
        self.classes = self.classes.iter().flat_map(turns).collect();
        Ok(self)
    }
}

/// The files of MNIST: training images, training labels, test images, test labels.
const MNIST: [&str; 4] =
    ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"];

/// Reads MNIST, or another set in its format with at most ten classes, such as Fashion-MNIST. The folder must contain
/// its four files ([`mnist_files`]).
///
/// The names of the classes are their numbers. Any number and size of images is accepted.
pub fn mnist(folder: &Path) -> Result<ImageSet, DataError> {
    const CLASSES: u8 = 10;
    let [train_images, train_labels, test_images, test_labels] = mnist_files(folder)?;
    let train = idx_images(&train_images, &train_labels, CLASSES)?;
    let test = idx_images(&test_images, &test_labels, CLASSES)?;
    if train.shape != test.shape {
        let size = |[_, height, width]: [usize; 3]| format!("{height}×{width}");
        let why = format!("test images of {}, but training images of {}", size(test.shape), size(train.shape));
        return Err(DataError::file(&test_images, why));
    }
    Ok(ImageSet { train, test, classes: (0..CLASSES).map(|class| class.to_string()).collect() })
}

/// The paths of the four files of MNIST in a folder: `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`,
/// `t10k-images-idx3-ubyte` and `t10k-labels-idx1-ubyte`. If a plain file does not exist, its name with `.gz` is used.
///
/// ```
/// let message = strust_data::images::mnist_files("nowhere".as_ref()).unwrap_err().to_string();
/// assert!(message.starts_with("nowhere/train-images-idx3-ubyte: there is no such file, nor one with .gz"));
/// ```
pub fn mnist_files(folder: &Path) -> Result<[PathBuf; 4], DataError> {
    let mut files = MNIST.map(|name| folder.join(name));
    for (file, name) in files.iter_mut().zip(MNIST) {
        if exists(file)? {
            continue;
        }
        let packed = folder.join(format!("{name}.gz"));
        if !exists(&packed)? {
            let why = "there is no such file, nor one with .gz; `strust data mnist --to DIR` downloads MNIST";
            return Err(DataError::file(file, why));
        }
        *file = packed;
    }
    Ok(files)
}

/// Whether the file exists. It is an error if this cannot be determined.
fn exists(path: &Path) -> Result<bool, DataError> {
    path.try_exists().map_err(DataError::io(path))
}

fn idx_images(images: &Path, labels: &Path, classes: u8) -> Result<Images, DataError> {
    let (pixels, targets) = (read_idx(images)?, read_idx(labels)?);
    let [count, height, width] = pixels.shape[..] else {
        return Err(DataError::file(
            images,
            format!("an array of shape {:?}; expected images × height × width", pixels.shape),
        ));
    };
    if targets.shape != [count] {
        return Err(DataError::file(
            labels,
            format!("labels of shape {:?} for {count} images; expected [{count}]", targets.shape),
        ));
    }
    if let Some(i) = targets.bytes.iter().position(|&label| label >= classes) {
        // The header of a one-dimensional array has 8 bytes.
        let (path, offset) = (labels.into(), 8 + i as u64);
        let why = format!("label {} of image {i} (from 0); expected 0 to {}", targets.bytes[i], classes - 1);
        return Err(DataError::Binary { path, offset, why });
    }
    Ok(Images { pixels: pixels.bytes, labels: targets.bytes, shape: [1, height, width] })
}

#[cfg(test)]
mod tests;
