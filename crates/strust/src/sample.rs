//! A mini-batch as a value that can be replayed.

use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// The terms of a mini-batch, and a seed for augmentation, dropout and other randomness in the objective.
///
/// The same sample always defines the same function. The sample of a step has a seed. A sample that measures a point
/// has no seed: then the objective must use no randomness and must not update running statistics.
///
/// A sample knows whether it is [all terms](Self::is_all), and [whether its seed was read](Self::function): an
/// objective that never reads it is the same function on every sample of the same terms.
///
/// ```
/// use strust::sample::Sample;
/// assert_eq!(Sample::new(vec![3, 1], 0).seed(), Some(0));
/// assert_eq!(Sample::range(0..2).seed(), None);
/// // Three draws out of three terms may repeat one, so their number alone says nothing.
/// assert!(Sample::all(3).is_all() && !Sample::new(vec![2, 0, 2], 0).is_all());
/// ```
#[derive(Debug, Default)]
pub struct Sample {
    indices: Vec<usize>,
    seed: Option<u64>,
    all: bool,
    /// The number of this draw, among all that share the marks.
    draw: u64,
    /// Parts of a sample share its marks.
    marks: Arc<Marks>,
}

/// Which seeds were read.
#[derive(Debug)]
struct Marks {
    /// The number of the next draw.
    next: AtomicU64,
    /// The latest draw whose seed was read. Earlier ones count as read too.
    read: AtomicU64,
}

impl Default for Marks {
    fn default() -> Self {
        Self { next: AtomicU64::new(1), read: AtomicU64::new(0) }
    }
}

impl Clone for Sample {
    /// A sample of its own: reading its seed does not mark the original.
    fn clone(&self) -> Self {
        let mut copy = Self::default();
        copy.overwrite(self.indices.iter().copied(), self.seed);
        copy.all = self.all;
        if self.seed_was_read() {
            copy.mark();
        }
        copy
    }
}

impl PartialEq for Sample {
    fn eq(&self, other: &Self) -> bool {
        self.indices == other.indices && self.seed == other.seed && self.all == other.all
    }
}
impl Eq for Sample {}

impl Sample {
    /// A sample of the given terms, with a seed.
    #[must_use]
    pub fn new(indices: Vec<usize>, seed: u64) -> Self {
        Self { indices, ..Self::empty(Some(seed)) }
    }
    /// The terms in `range`, without a seed. Measurements use such samples.
    #[must_use]
    pub fn range(range: std::ops::Range<usize>) -> Self {
        Self { indices: range.collect(), ..Self::empty(None) }
    }
    /// All of `terms` terms, without a seed.
    #[must_use]
    pub fn all(terms: usize) -> Self {
        Self { all: true, ..Self::range(0..terms) }
    }
    fn empty(seed: Option<u64>) -> Self {
        let mut empty = Self::default();
        empty.overwrite([], seed);
        empty
    }
    /// Overwrites the sample. Allocates only if it becomes longer.
    pub fn set(&mut self, indices: impl IntoIterator<Item = usize>, seed: u64) {
        self.overwrite(indices, Some(seed));
    }
    /// Overwrites the sample by all terms of an objective, each once, in this order. A run checks their number. Allocates
    /// only if it becomes longer.
    pub fn set_all(&mut self, order: impl IntoIterator<Item = usize>, seed: u64) {
        self.overwrite(order, Some(seed));
        self.all = true;
    }
    /// Overwrites the sample by the terms at the places `part` of another one, with its seed. Allocates only if it becomes
    /// longer.
    pub fn set_part(&mut self, whole: &Self, part: std::ops::Range<usize>) {
        self.set_terms_of(whole, whole.indices[part].iter().copied());
    }
    /// Overwrites the sample by other terms, with the seed of `whole`. Allocates only if it becomes longer.
    pub fn set_terms_of(&mut self, whole: &Self, indices: impl IntoIterator<Item = usize>) {
        self.indices.clear();
        self.indices.extend(indices);
        (self.seed, self.all, self.draw) = (whole.seed, false, whole.draw);
        // Whoever reads the seed of the part has read the seed of the whole.
        self.marks = Arc::clone(&whole.marks);
    }
    fn overwrite(&mut self, indices: impl IntoIterator<Item = usize>, seed: Option<u64>) {
        self.indices.clear();
        self.indices.extend(indices);
        (self.seed, self.all) = (seed, false);
        self.draw = self.marks.next.fetch_add(1, Ordering::Relaxed);
    }
    fn mark(&self) {
        self.marks.read.fetch_max(self.draw, Ordering::Relaxed);
    }
    /// The terms.
    #[must_use]
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }
    /// The seed; `None` if the sample measures a point. Reading it marks the function of this sample as one that depends
    /// on the seed.
    #[must_use]
    pub fn seed(&self) -> Option<u64> {
        self.mark();
        self.seed
    }
    /// Whether the sample measures a point: it has no seed.
    #[must_use]
    pub fn measures(&self) -> bool {
        self.seed.is_none()
    }
    /// The seed, to choose terms or to compare samples. The objective does not see it, so nothing is marked.
    #[cfg(feature = "ranks")]
    pub(crate) fn quiet_seed(&self) -> Option<u64> {
        self.seed
    }
    fn seed_was_read(&self) -> bool {
        self.marks.read.load(Ordering::Relaxed) >= self.draw
    }
    /// Whether the sample is all terms of the objective, each once. Draws with replacement never are, whatever their
    /// number.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.all
    }
    /// A number that two samples share only if they define the same function: they have the same terms and, if their seeds
    /// were read in an evaluation, the same seed.
    ///
    /// ```
    /// use strust::sample::Sample;
    /// let (mut a, mut b) = (Sample::default(), Sample::default());
    /// a.set_all([0, 1, 2], 7);
    /// b.set_all([2, 0, 1], 8);
    /// assert_eq!(a.function(), b.function()); // the order of a sum does not matter
    /// let (_, _) = (a.seed(), b.seed()); // as an objective with dropout does
    /// assert_ne!(a.function(), b.function());
    /// ```
    #[must_use]
    pub fn function(&self) -> u64 {
        let mix = |hash: u64, part: u64| (hash ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
        let head = [self.indices.len() as u64, u64::from(self.all)].into_iter().fold(0, mix);
        let terms: &[usize] = if self.all { &[] } else { &self.indices };
        let hash = terms.iter().fold(head, |hash, &i| mix(hash, i as u64));
        if self.seed_was_read() { mix(hash, self.seed.map_or(1, |seed| seed.wrapping_add(2))) } else { hash }
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
