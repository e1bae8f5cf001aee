//! Data points with classes.

use crate::{
    features::{Features, Labeled},
    limits,
    numerics::{DATA, at_least_one, finite, out_of_range, shape},
    rows::FeatureScaling,
};
use faer::Mat;
use rand_core::Rng;
use strust::{Error, sample::generator};

const OWNER: &str = "classified data";
/// The streams of a split and of wrong labels. They differ from the streams of synthetic data and of starts.
const SPLIT: u64 = DATA + 16;
const WRONG: u64 = DATA + 17;

/// An n×d matrix of features, one row per data point, and the class 0, 1, … of each row.
///
/// ```
/// use faer::Mat;
/// use strust_data::Classified;
///
/// let features = Mat::from_fn(10, 3, |i, j| (i + j) as f64);
/// let data = Classified::new(features, vec![0, 1, 0, 1, 0, 1, 0, 1, 0, 1], 2)?;
/// let (train, test) = data.split(0.2, 0)?;
/// assert_eq!((train.rows(), test.rows()), (8, 2));
///
/// let error = Classified::new(Mat::zeros(2, 3), vec![0, 2], 2).unwrap_err();
/// assert_eq!(error.to_string(), "classified data: `labels` is 2 at row 1, but must be below 2 (classes)");
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Classified {
    features: Mat<f64>,
    labels: Vec<usize>,
    classes: usize,
}

impl Classified {
    /// Checks that there are rows, columns and at least two classes, that each row has one label below `classes`, and
    /// that every feature is finite. A class may be empty.
    pub fn new(features: Mat<f64>, labels: Vec<usize>, classes: usize) -> Result<Self, Error> {
        at_least_one(OWNER, "rows", features.nrows())?;
        at_least_one(OWNER, "columns", features.ncols())?;
        if classes < 2 {
            return Err(out_of_range(OWNER, "classes", classes, "≥ 2"));
        }
        shape("labels of classified data", vec![features.nrows()], vec![labels.len()])?;
        if let Some(i) = labels.iter().position(|&label| label >= classes) {
            let found = format!("{} at row {i}", labels[i]);
            return Err(out_of_range(OWNER, "labels", found, format_args!("below {classes} (classes)")));
        }
        finite(OWNER, "features", &features)?;
        Ok(Self { features, labels, classes })
    }

    /// The same from the output of a reader, dense or sparse. Labels can be any whole numbers. In increasing order they
    /// become the classes 0, 1, ….
    ///
    /// A test set in a separate file may lack a class. Read it with [`Self::with_classes`].
    ///
    /// ```
    /// use faer::Mat;
    /// use strust_data::{Classified, Features, Labeled};
    /// let features = Features::Dense(Mat::zeros(3, 1));
    /// let data = Classified::from_labeled(&Labeled { features, labels: vec![7.0, -1.0, 3.0] })?;
    /// assert_eq!(data.labels(), [2, 0, 1]);
    /// # Ok::<(), strust::Error>(())
    /// ```
    pub fn from_labeled(data: &Labeled) -> Result<Self, Error> {
        Self::with_classes(data, &distinct(OWNER, &data.labels)?)
    }

    /// The same, where `classes[c]` is the label of class c. The labels must increase strictly.
    pub fn with_classes(data: &Labeled, classes: &[i64]) -> Result<Self, Error> {
        if let Some([left, right, ..]) = classes.windows(2).find(|w| w[0] >= w[1]) {
            let found = format!("{right} after {left}");
            return Err(out_of_range(OWNER, "classes", found, "strictly increasing"));
        }
        let (rows, columns, most) =
            (data.features.rows(), data.features.columns(), limits::dense(data.features.stored()));
        if rows.saturating_mul(columns) > most {
            let allowed = format!("at most {most} numbers for a file with so few entries");
            return Err(out_of_range(OWNER, "features", format!("{rows} × {columns}"), allowed));
        }
        Self::new(data.features.to_dense(), targets(OWNER, &data.labels, classes)?, classes.len())
    }

    /// Splits off a test set: a fraction of each class, rounded to whole rows, drawn at random with the seed. Both
    /// parts keep the order of the rows.
    pub fn split(&self, test_share: f64, seed: u64) -> Result<(Self, Self), Error> {
        let (train, test) = split_rows(OWNER, &self.labels, self.classes, test_share, seed)?;
        Ok((self.only(&train)?, self.only(&test)?))
    }

    /// The same data with some labels replaced: `share` of them, rounded to whole rows, each by another class. The seed
    /// decides which rows and which classes.
    ///
    /// ```
    /// use faer::Mat;
    /// use strust_data::Classified;
    /// let data = Classified::new(Mat::zeros(10, 1), vec![0; 10], 3)?.with_wrong_labels(0.2, 0)?;
    /// assert_eq!(data.labels().iter().filter(|&&label| label != 0).count(), 2);
    /// # Ok::<(), strust::Error>(())
    /// ```
    pub fn with_wrong_labels(mut self, share: f64, seed: u64) -> Result<Self, Error> {
        replace_labels(OWNER, &mut self.labels, self.classes, share, seed)?;
        Ok(self)
    }

    /// The same data with features of mean 0 and standard deviation 1, and `other` changed in the same way: the training
    /// set and its test set. A feature that is constant in the training set becomes 0 there.
    ///
    /// ```
    /// use faer::Mat;
    /// use strust_data::Classified;
    /// let data = |values: [f64; 2]| Classified::new(Mat::from_fn(2, 1, |i, _| values[i]), vec![0, 1], 2);
    /// let (train, test) = data([1.0, 3.0])?.standardized(&data([2.0, 4.0])?)?;
    /// assert_eq!((train.features()[(0, 0)], test.features()[(1, 0)]), (-1.0, 2.0));
    /// # Ok::<(), strust::Error>(())
    /// ```
    pub fn standardized(&self, other: &Self) -> Result<(Self, Self), Error> {
        shape("features of the test set", vec![self.columns()], vec![other.columns()])?;
        let scaling = FeatureScaling::of(OWNER, self.rows(), self.columns(), |i, j| self.features[(i, j)])?;
        let scaled = |data: &Self| Self {
            features: Mat::from_fn(data.rows(), data.columns(), |i, j| scaling.scaled(j, data.features[(i, j)])),
            ..data.clone()
        };
        Ok((scaled(self), scaled(other)))
    }

    /// The selected rows.
    fn only(&self, rows: &[usize]) -> Result<Self, Error> {
        let features = Mat::from_fn(rows.len(), self.columns(), |i, j| self.features[(rows[i], j)]);
        Self::new(features, rows.iter().map(|&i| self.labels[i]).collect(), self.classes)
    }

    /// n, the number of data points.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.features.nrows()
    }
    /// d, the number of features.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.features.ncols()
    }
    /// The n×d matrix.
    #[must_use]
    pub fn features(&self) -> &Mat<f64> {
        &self.features
    }
    /// The class of each row.
    #[must_use]
    pub fn labels(&self) -> &[usize] {
        &self.labels
    }
    /// The number of classes.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes
    }
}

impl From<Classified> for Labeled {
    /// The label of a row is the number of its class.
    fn from(data: Classified) -> Self {
        let labels = data.labels.iter().map(|&label| label as f64).collect();
        Self { features: Features::Dense(data.features), labels }
    }
}

/// The rows of a training set and of a test set, both in increasing order. The test set has a fraction of each class,
/// rounded to whole rows.
pub fn split_rows(
    owner: &'static str,
    targets: &[usize],
    classes: usize,
    test_share: f64,
    seed: u64,
) -> Result<(Vec<usize>, Vec<usize>), Error> {
    check_share(owner, test_share)?;
    let mut wanted = vec![0.0; classes];
    for &target in targets {
        wanted[target] += test_share;
    }
    let mut in_test = vec![false; targets.len()];
    for i in shuffled(targets.len(), &mut generator(seed, SPLIT)) {
        let left = &mut wanted[targets[i]];
        in_test[i] = *left >= 0.5;
        *left -= 1.0;
    }
    Ok((0..targets.len()).partition(|&i| !in_test[i]))
}

/// The rows of a training set and of a test set, which is the last `test_share` of n rows, rounded to whole rows.
pub fn split_last(owner: &'static str, n: usize, test_share: f64) -> Result<(Vec<usize>, Vec<usize>), Error> {
    check_share(owner, test_share)?;
    let held = (test_share * n as f64).round() as usize;
    Ok(((0..n - held).collect(), (n - held..n).collect()))
}

fn check_share(owner: &'static str, test_share: f64) -> Result<(), Error> {
    if test_share > 0.0 && test_share < 1.0 {
        return Ok(());
    }
    Err(out_of_range(owner, "test_share", test_share, "in (0, 1)"))
}

/// Replaces `share` of the targets, rounded to whole rows, each by another class with equal probability.
pub fn replace_labels(
    owner: &'static str,
    targets: &mut [usize],
    classes: usize,
    share: f64,
    seed: u64,
) -> Result<(), Error> {
    if !(0.0..1.0).contains(&share) {
        return Err(out_of_range(owner, "wrong_labels", share, "in [0, 1)"));
    }
    let mut rng = generator(seed, WRONG);
    let count = (share * targets.len() as f64).round() as usize;
    let rows = shuffled(targets.len(), &mut rng);
    for &i in &rows[..count] {
        // 1 to classes − 1 places further, so it is always another class.
        let places = 1 + rng.next_u64() % (classes as u64 - 1);
        targets[i] = (targets[i] + places as usize) % classes;
    }
    Ok(())
}

/// The numbers below n in random order.
pub fn shuffled(n: usize, rng: &mut impl Rng) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_cached_key(|_| rng.next_u64());
    order
}

/// The distinct labels in increasing order. They must be whole numbers, and at least two unless there are no rows.
pub fn distinct(owner: &'static str, labels: &[f64]) -> Result<Vec<i64>, Error> {
    let mut classes = labels.iter().map(|&label| whole(owner, label)).collect::<Result<Vec<_>, _>>()?;
    classes.sort_unstable();
    classes.dedup();
    if let [only] = classes[..] {
        return Err(out_of_range(owner, "labels", format!("{only} everywhere"), "at least two distinct values"));
    }
    Ok(classes)
}

/// The index of each label in `classes`.
pub fn targets(owner: &'static str, labels: &[f64], classes: &[i64]) -> Result<Vec<usize>, Error> {
    let find = |(i, &label): (usize, &f64)| {
        classes.binary_search(&whole(owner, label)?).map_err(|_| {
            out_of_range(owner, "labels", format!("{label} at row {i}"), format_args!("one of the classes {classes:?}"))
        })
    };
    labels.iter().enumerate().map(find).collect()
}

fn whole(owner: &'static str, label: f64) -> Result<i64, Error> {
    // Beyond 2⁵³, neighboring whole numbers have the same f64.
    if label.fract() == 0.0 && label.abs() <= 9_007_199_254_740_992.0 {
        Ok(label as i64)
    } else {
        Err(out_of_range(owner, "labels", label, "whole numbers"))
    }
}

/// Whether the first largest score is that of `target`; false if a score is NaN.
#[must_use]
#[inline(always)]
pub fn is_right<T: PartialOrd>(scores: &[T], target: usize) -> bool {
    let (before, rest) = scores.split_at(target);
    before.iter().all(|score| *score < rest[0]) && rest.iter().all(|score| *score <= rest[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::normals;

    fn random_data(n: usize, d: usize, classes: &[f64], seed: u64) -> Labeled {
        let mut next = normals(seed, DATA);
        let features = Features::Dense(Mat::from_fn(n, d, |_, _| next()));
        Labeled { features, labels: (0..n).map(|i| classes[i % classes.len()]).collect() }
    }

    #[test]
    fn inconsistent_data_are_an_error() {
        let message = |rows, columns, labels: &[usize], classes| {
            Classified::new(Mat::zeros(rows, columns), labels.to_vec(), classes).unwrap_err().to_string()
        };
        assert_eq!(message(0, 2, &[], 2), "classified data: `rows` is 0, but must be ≥ 1");
        assert_eq!(message(1, 0, &[0], 2), "classified data: `columns` is 0, but must be ≥ 1");
        assert_eq!(message(1, 1, &[0], 1), "classified data: `classes` is 1, but must be ≥ 2");
        assert_eq!(message(2, 1, &[0], 2), "labels of classified data: expected shape [2], found [1]");
        assert!(message(2, 1, &[1, 5], 3).contains("`labels` is 5 at row 1, but must be below 3 (classes)"));
        let error = Classified::new(Mat::from_fn(1, 1, |_, _| f64::NAN), vec![0], 2).unwrap_err().to_string();
        assert_eq!(error, "classified data: `features` is NaN at row 0, column 0, but must be finite everywhere");
    }

    #[test]
    fn labels_become_classes_in_increasing_order_dense_and_sparse() {
        let data = random_data(12, 3, &[4.0, -2.0, 9.0], 1);
        let dense = Classified::from_labeled(&data).unwrap();
        assert_eq!(dense.labels()[..4], [1, 0, 2, 1]);
        let sparse = Labeled { features: data.features.to_sparse(), labels: data.labels.clone() };
        assert_eq!(Classified::from_labeled(&sparse).unwrap(), dense);
        // A test set that lacks a class keeps the numbers of the others.
        let test = random_data(4, 3, &[9.0], 2);
        assert_eq!(Classified::with_classes(&test, &[-2, 4, 9]).unwrap().labels(), [2; 4]);
        let message = Classified::with_classes(&test, &[-2, 4]).unwrap_err().to_string();
        assert!(message.contains("`labels` is 9 at row 0, but must be one of the classes [-2, 4]"), "{message}");
        assert!(Classified::with_classes(&test, &[9, 9]).unwrap_err().to_string().contains("9 after 9"));
        assert!(Classified::from_labeled(&test).unwrap_err().to_string().contains("9 everywhere"));
        let empty = Labeled { features: Features::Dense(Mat::zeros(0, 1)), labels: vec![] };
        assert!(Classified::from_labeled(&empty).unwrap_err().to_string().contains("`rows` is 0"));
    }

    #[test]
    fn a_split_takes_the_same_fraction_of_every_class_and_depends_on_the_seed() {
        let labels: Vec<usize> = (0..103).map(|i| usize::from(i % 4 == 0)).collect();
        let data = Classified::new(Mat::from_fn(103, 1, |i, _| i as f64), labels, 2).unwrap();
        let (train, test) = data.split(0.25, 7).unwrap();
        let count = |part: &Classified, class| part.labels().iter().filter(|&&label| label == class).count();
        // 77 rows of class 0 and 26 of class 1.
        assert_eq!([count(&test, 0), count(&test, 1)], [19, 7]);
        assert_eq!([count(&train, 0), count(&train, 1)], [58, 19]);
        let mut seen: Vec<f64> =
            [&train, &test].iter().flat_map(|part| part.features().col_as_slice(0)).copied().collect();
        seen.sort_by(f64::total_cmp);
        assert!(
            seen.iter().enumerate().all(|(i, &v)| (v - i as f64).abs() < 0.5),
            "every row must be in exactly one part"
        );
        assert_eq!(data.split(0.25, 7).unwrap(), (train, test.clone()));
        assert_ne!(data.split(0.25, 8).unwrap().1, test);
        for share in [0.0, 1.0, f64::NAN] {
            assert!(data.split(share, 0).unwrap_err().to_string().contains("must be in (0, 1)"));
        }
        assert!(data.split(1e-3, 0).unwrap_err().to_string().contains("`rows` is 0"), "the test set would be empty");
    }

    #[test]
    fn the_share_of_wrong_labels_is_exact_and_depends_on_the_seed() {
        let right: Vec<usize> = (0..103).map(|i| i % 4).collect();
        let data = Classified::new(Mat::zeros(103, 1), right.clone(), 4).unwrap();
        for (share, count) in [(0.0, 0), (0.2, 21), (0.5, 52), (0.99, 102)] {
            let labels = |seed| data.clone().with_wrong_labels(share, seed).unwrap().labels().to_vec();
            let wrong = |seed| labels(seed).iter().zip(&right).filter(|(a, b)| a != b).count();
            assert_eq!((wrong(0), wrong(1)), (count, count));
            assert_eq!(labels(3), labels(3));
            assert_eq!(labels(3) == labels(4), count == 0);
        }
        // Each of the three other classes is equally likely.
        let many = Classified::new(Mat::zeros(9000, 1), vec![1; 9000], 4).unwrap().with_wrong_labels(0.5, 0).unwrap();
        for class in [0, 2, 3] {
            let count = many.labels().iter().filter(|&&label| label == class).count();
            assert!((1350..1650).contains(&count), "{count} labels of class {class}");
        }
        for share in [-0.1, 1.0, f64::NAN] {
            let message = data.clone().with_wrong_labels(share, 0).unwrap_err().to_string();
            assert_eq!(message, format!("classified data: `wrong_labels` is {share}, but must be in [0, 1)"));
        }
    }

    #[test]
    fn classes_become_labels_and_back() {
        let data = Classified::from_labeled(&random_data(9, 3, &[0.0, 1.0, 2.0], 1)).unwrap();
        assert_eq!(Classified::from_labeled(&data.clone().into()).unwrap(), data);
    }

    #[test]
    fn the_first_class_wins_a_tie_and_nan_is_never_correct() {
        assert!(is_right(&[1.0, 1.0], 0) && !is_right(&[1.0, 1.0], 1));
        assert!(is_right(&[0.0, 2.0, 1.0], 1) && !is_right(&[0.0, 2.0, 3.0], 1));
        assert!(!is_right(&[f64::NAN, 1.0], 1) && !is_right(&[1.0, f64::NAN], 0) && !is_right(&[f64::NAN; 2], 0));
    }
}
