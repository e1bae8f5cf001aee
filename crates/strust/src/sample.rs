//! A mini-batch as a value that can be replayed.

use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

/// The terms of a mini-batch, and a seed for augmentation, dropout and other randomness in the objective.
///
/// The same sample always defines the same function. The sample of a step has a seed. A sample that measures a point
/// has no seed: then the objective must use no randomness and must not update running statistics.
///
/// ```
/// use strust::sample::Sample;
/// assert_eq!(Sample::new(vec![3, 1], 0).seed(), Some(0));
/// assert_eq!(Sample::range(0..2).seed(), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sample {
    indices: Vec<usize>,
    seed: Option<u64>,
}

impl Sample {
    /// A sample of the given terms, with a seed.
    #[must_use]
    pub fn new(indices: Vec<usize>, seed: u64) -> Self {
        Self { indices, seed: Some(seed) }
    }
    /// The terms in `range`, without a seed. Measurements of the full sum use such samples.
    #[must_use]
    pub fn range(range: std::ops::Range<usize>) -> Self {
        Self { indices: range.collect(), seed: None }
    }
    /// Overwrites the sample by the terms in `range`, without a seed. Allocates only if it becomes longer.
    pub(crate) fn set_range(&mut self, range: std::ops::Range<usize>) {
        self.set_terms(range);
    }
    /// Overwrites the sample by these terms, without a seed. Allocates only if it becomes longer.
    pub(crate) fn set_terms(&mut self, terms: impl IntoIterator<Item = usize>) {
        self.indices.clear();
        self.indices.extend(terms);
        self.seed = None;
    }
    /// Overwrites the sample. Allocates only if it becomes longer.
    pub fn set(&mut self, indices: impl IntoIterator<Item = usize>, seed: u64) {
        self.indices.clear();
        self.indices.extend(indices);
        self.seed = Some(seed);
    }
    /// Overwrites the sample by the terms at the places `part` of another one, with its seed. Allocates only if it becomes
    /// longer.
    pub fn set_part(&mut self, whole: &Self, part: std::ops::Range<usize>) {
        self.indices.clear();
        self.indices.extend_from_slice(&whole.indices[part]);
        self.seed = whole.seed;
    }
    /// Overwrites the sample by other terms, with the seed of `whole`. Allocates only if it becomes longer.
    pub(crate) fn set_terms_of(&mut self, whole: &Self, indices: impl IntoIterator<Item = usize>) {
        self.indices.clear();
        self.indices.extend(indices);
        self.seed = whole.seed;
    }
    /// The terms.
    #[must_use]
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }
    /// The seed; `None` if the sample measures a point.
    #[must_use]
    pub fn seed(&self) -> Option<u64> {
        self.seed
    }
    /// The number of terms.
    #[must_use]
    pub fn len(&self) -> usize {
        self.indices.len()
    }
    /// Whether the sample has no terms.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }
}

/// How the terms of a mini-batch are drawn. The variance of its gradient depends on this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draws {
    /// Independently, as by [`WithReplacement`](crate::samplers::WithReplacement).
    Independent,
    /// Without repetition, as by [`Epochs`](crate::samplers::Epochs).
    Different,
}

impl std::fmt::Display for Draws {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Independent => "independent",
            Self::Different => "different",
        })
    }
}

impl Draws {
    /// The variance of the gradient of a batch of b out of n terms, divided by the variance of the gradient of one
    /// term: 1/b for independent terms, (n − b)/(b(n − 1)) for different terms.
    #[must_use]
    pub fn share(self, batch: usize, terms: usize) -> f64 {
        let (b, n) = (batch as f64, terms as f64);
        match self {
            Self::Independent => 1.0 / b,
            Self::Different if terms <= 1 => 0.0,
            Self::Different => (n - b).max(0.0) / (b * (n - 1.0)),
        }
    }
}

/// An independent generator for each `(seed, stream)`. It gives the same numbers on every machine.
#[must_use]
pub fn generator(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}
