//! A mini-batch as a value that can be replayed, and the samplers that draw it.
//!
//! The k-th sample depends on `(seed, k)` only, so a run resumes from two integers.

use crate::{
    Error,
    config::{Range, out_of_range},
};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// Which terms of the sum, and the seed of whatever else is random in them (augmentation, dropout).
///
/// The same sample twice is the same function twice. A sample of a step has a seed; one by which a point is measured
/// has none: nothing random is drawn then, and an objective keeps nothing of it.
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
    /// The terms `range`, without a seed: how a full sum is measured, piece by piece.
    #[must_use]
    pub fn range(range: std::ops::Range<usize>) -> Self {
        Self { indices: range.collect(), seed: None }
    }
    /// Overwrites it without allocating, once it was as long.
    pub(crate) fn set(&mut self, indices: &[usize], seed: u64) {
        self.indices.clear();
        self.indices.extend_from_slice(indices);
        self.seed = Some(seed);
    }
    /// The terms.
    #[must_use]
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }
    /// The seed; `None` where nothing is to be drawn.
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

/// Draws samples. Implementations keep caches at most: the k-th sample is a function of `(seed, k)`.
pub trait Sampler {
    /// Overwrites `sample` with the k-th one.
    fn draw(&mut self, k: u64, sample: &mut Sample);
    /// Steps that make one pass over the terms.
    fn steps_per_epoch(&self) -> u64;
}

/// An independent generator for each `(seed, stream)`, the same on every machine.
#[must_use]
pub fn generator(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}

/// A number in 0..n; the bias of the multiply-and-shift is below n/2⁶⁴.
fn below(n: usize, rng: &mut ChaCha8Rng) -> usize {
    ((u128::from(rng.next_u64()) * n as u128) >> 64) as usize
}

fn check(owner: &'static str, n: usize, batch: usize) -> Result<(), Error> {
    if n == 0 {
        return Err(out_of_range(owner, "n", n, Range::at_least(1.0)));
    }
    if batch == 0 || batch > n {
        return Err(out_of_range(owner, "batch", batch, Range::closed(1.0, n as f64)));
    }
    Ok(())
}

/// Passes over a fresh permutation in batches; the last batch of a pass holds what is left.
///
/// ```
/// use strust::sample::{Epochs, Sample, Sampler};
/// let mut sampler = Epochs::new(10, 4, 7)?;
/// let mut seen = Vec::new();
/// let mut sample = Sample::default();
/// for k in 0..sampler.steps_per_epoch() {
///     sampler.draw(k, &mut sample);
///     seen.extend_from_slice(sample.indices());
/// }
/// seen.sort_unstable();
/// assert_eq!(seen, (0..10).collect::<Vec<_>>());
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Epochs {
    batch: usize,
    seed: u64,
    /// The permutation of epoch `cached`, kept because consecutive k share it.
    order: Vec<usize>,
    cached: Option<u64>,
}

impl Epochs {
    /// A sampler over `n` terms; `batch` must be in [1, n].
    pub fn new(n: usize, batch: usize, seed: u64) -> Result<Self, Error> {
        check("epoch sampler", n, batch)?;
        Ok(Self { batch, seed, order: (0..n).collect(), cached: None })
    }
}

impl Sampler for Epochs {
    fn draw(&mut self, k: u64, sample: &mut Sample) {
        let (epoch, position) = (k / self.steps_per_epoch(), k % self.steps_per_epoch());
        let n = self.order.len();
        if self.cached != Some(epoch) {
            let mut rng = generator(self.seed, epoch);
            self.order.iter_mut().enumerate().for_each(|(i, slot)| *slot = i);
            for i in (1..n).rev() {
                self.order.swap(i, below(i + 1, &mut rng));
            }
            self.cached = Some(epoch);
        }
        let start = position as usize * self.batch;
        sample.indices.clear();
        sample.indices.extend_from_slice(&self.order[start..(start + self.batch).min(n)]);
        sample.seed = Some(sample_seed(self.seed, k));
    }
    fn steps_per_epoch(&self) -> u64 {
        self.order.len().div_ceil(self.batch) as u64
    }
}

/// Each batch drawn independently, term by term, with replacement: the sampling of the paper's analysis.
#[derive(Debug, Clone)]
pub struct WithReplacement {
    n: usize,
    batch: usize,
    seed: u64,
}

impl WithReplacement {
    /// A sampler over `n` terms; `batch` must be in [1, n].
    pub fn new(n: usize, batch: usize, seed: u64) -> Result<Self, Error> {
        check("sampler with replacement", n, batch)?;
        Ok(Self { n, batch, seed })
    }
}

impl Sampler for WithReplacement {
    fn draw(&mut self, k: u64, sample: &mut Sample) {
        let mut rng = generator(self.seed, k);
        sample.indices.clear();
        sample.indices.extend((0..self.batch).map(|_| below(self.n, &mut rng)));
        sample.seed = Some(sample_seed(self.seed, k));
    }
    fn steps_per_epoch(&self) -> u64 {
        self.n.div_ceil(self.batch) as u64
    }
}

/// Streams from the top of the range, so that they never meet those of the indices.
fn sample_seed(seed: u64, k: u64) -> u64 {
    generator(seed, u64::MAX - k).next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(sampler: &mut dyn Sampler, k: u64) -> Sample {
        let mut sample = Sample::default();
        sampler.draw(k, &mut sample);
        sample
    }

    #[test]
    fn the_kth_sample_depends_only_on_seed_and_k() {
        let all: [fn(u64) -> Box<dyn Sampler>; 2] = [
            |seed| Box::new(Epochs::new(23, 5, seed).unwrap()),
            |seed| Box::new(WithReplacement::new(23, 5, seed).unwrap()),
        ];
        for make in all {
            let mut forward = make(3);
            let in_order: Vec<_> = (0..40).map(|k| drawn(&mut *forward, k)).collect();
            for k in (0..40).rev() {
                assert_eq!(drawn(&mut *make(3), k), in_order[k as usize], "a fresh sampler at {k}");
                assert_eq!(drawn(&mut *forward, k), in_order[k as usize], "a used sampler at {k}");
            }
            assert_ne!(drawn(&mut *make(4), 0), in_order[0]);
        }
    }

    #[test]
    fn every_epoch_is_another_permutation_of_all_terms() {
        let mut sampler = Epochs::new(23, 5, 1).unwrap();
        let epoch = |s: &mut Epochs, e: u64| -> Vec<usize> {
            (0..5).flat_map(|i| drawn(s, e * 5 + i).indices().to_vec()).collect()
        };
        let (first, second) = (epoch(&mut sampler, 0), epoch(&mut sampler, 1));
        assert_ne!(first, second);
        for mut order in [first, second] {
            order.sort_unstable();
            assert_eq!(order, (0..23).collect::<Vec<_>>());
        }
    }

    #[test]
    fn batches_larger_than_the_sum_are_refused_with_the_range() {
        let error = Epochs::new(10, 11, 0).unwrap_err().to_string();
        assert_eq!(error, "epoch sampler: `batch` is 11, but must be in [1, 10]");
        assert!(WithReplacement::new(0, 1, 0).is_err());
    }
}
