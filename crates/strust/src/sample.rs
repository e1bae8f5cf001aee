//! A mini-batch as a value that can be replayed.

use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

/// The terms of a mini-batch, and the seed of everything else that is random in them (augmentation, dropout).
///
/// The same sample twice is the same function twice. The sample of a step has a seed. A sample that measures a point
/// has none: the objective then draws nothing at random and keeps no running statistics.
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
    /// A sample of the given terms, as a sampler draws it.
    #[must_use]
    pub fn new(indices: Vec<usize>, seed: u64) -> Self {
        Self { indices, seed: Some(seed) }
    }
    /// The terms `range`, without a seed: a piece of a full sum that is measured.
    #[must_use]
    pub fn range(range: std::ops::Range<usize>) -> Self {
        Self { indices: range.collect(), seed: None }
    }
    /// Overwrites the sample. Allocates only if it becomes longer than before.
    pub fn set(&mut self, indices: impl IntoIterator<Item = usize>, seed: u64) {
        self.indices.clear();
        self.indices.extend(indices);
        self.seed = Some(seed);
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
    /// Whether there is no term.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }
}

/// How the terms of a mini-batch are drawn, which the variance of its gradient depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draws {
    /// Independently, as [`WithReplacement`](crate::samplers::WithReplacement) draws.
    Independent,
    /// All different, as [`Epochs`](crate::samplers::Epochs) draws.
    Different,
}

impl Draws {
    /// Variance of the gradient of a batch of b out of n terms, over the variance of the gradient of one term:
    /// 1/b, or (n − b)/(b(n − 1)).
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

/// An independent generator for each `(seed, stream)`, the same on every machine.
#[must_use]
pub fn generator(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}
