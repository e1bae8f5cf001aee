//! Handwritten digits: a small real data set that is part of the crate.

use crate::{
    DataError,
    classified::Classified,
    images::{ImageSet, Images},
    read::built_in_npy_gz,
};
use faer::Mat;

/// The largest count of dark points in a 4×4 block.
const LARGEST: f64 = 16.0;
/// The split is always the same.
const SPLIT_SEED: u64 = 0;

/// The 8×8 images of 1797 handwritten digits, as a training set of 1438 and a test set of 359 rows.
///
/// The 64 features are the counts 0 to 16 of the file divided by 16, so they are in [0, 1]. The classes are the digits.
/// The test set is a fifth of each class, drawn at random with a fixed seed.
///
/// E. Alpaydin and C. Kaynak, *Optical Recognition of Handwritten Digits*, UCI Machine Learning Repository, 1998,
/// under CC BY 4.0.
///
/// ```
/// let (train, test) = strust_data::digits::load()?;
/// assert_eq!((train.rows(), test.rows(), train.columns(), train.classes()), (1438, 359, 64, 10));
/// # Ok::<(), strust_data::DataError>(())
/// ```
pub fn load() -> Result<(Classified, Classified), DataError> {
    let rows = built_in_npy_gz(include_bytes!("../data/digits.npy.gz"), "digits.npy.gz")?;
    let features = Mat::from_fn(rows.nrows(), 64, |i, j| rows[(i, j)] / LARGEST);
    let labels = rows.col_as_slice(64).iter().map(|&digit| digit as usize).collect();
    let all = Classified::new(features, labels, 10).expect("the labels of the embedded data are the ten digits");
    Ok(all.split(0.2, SPLIT_SEED).expect("each digit has 170 rows or more"))
}

/// The same data as images of one channel, 8×8. The counts 0 to 16 become the bytes 0 to 240.
///
/// ```
/// let set = strust_data::digits::images()?;
/// assert_eq!((set.train.len(), set.test.len(), set.train.shape), (1438, 359, [1, 8, 8]));
/// # Ok::<(), strust_data::DataError>(())
/// ```
pub fn images() -> Result<ImageSet, DataError> {
    let (train, test) = load()?;
    let pixel = |share: f64| (15.0 * LARGEST * share) as u8;
    let images = |data: &Classified| Images {
        pixels: (0..data.rows()).flat_map(|i| (0..64).map(move |j| pixel(data.features()[(i, j)]))).collect(),
        labels: data.labels().iter().map(|&label| label as u8).collect(),
        shape: [1, 8, 8],
    };
    let classes = (0..train.classes()).map(|class| class.to_string()).collect();
    Ok(ImageSet { train: images(&train), test: images(&test), classes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_digits_are_complete_and_scaled() {
        let (train, test) = load().unwrap();
        assert_eq!((train.rows() + test.rows(), test.columns()), (1797, 64));
        for part in [&train, &test] {
            let share = part.rows() as f64 / 10.0;
            for digit in 0..10 {
                let count = part.labels().iter().filter(|&&label| label == digit).count() as f64;
                assert!((count / share - 1.0).abs() < 0.05, "{count} images of the digit {digit}");
            }
            let values = || (0..64).flat_map(|j| part.features().col_as_slice(j));
            assert!(values().all(|v| (0.0..=1.0).contains(v) && (16.0 * v).fract() == 0.0));
            assert!(values().any(|&v| v > 0.99));
        }
        let images = images().unwrap().test;
        assert_eq!(images.labels[7], test.labels()[7] as u8);
        assert!((0..64).all(|j| images.image(7)[j] == (240.0 * test.features()[(7, j)]) as u8));
        assert_eq!(load().unwrap(), (train, test));
    }
}
