//! Samplers draw the mini-batches of a run.
//!
//! The k-th sample depends only on `(seed, k)`, so two integers are enough to resume a run.
//!
//! | sampler | draws |
//! |---|---|
//! | [`Epochs`] | a new permutation of all terms in each pass; the usual choice |
//! | [`WithReplacement`] | each term independently, as in the paper's analysis |
//! | [`FullBatch`] | all terms in every step |

use crate::{
    Error,
    config::{Range, out_of_range},
    objective::Objective,
    sample::{Draws, Sample, generator},
};
use rand_chacha::ChaCha8Rng;
use rand_core::Rng;
use std::collections::BTreeMap;

/// The default batch size. If there are fewer terms, the batch contains all of them.
pub const DEFAULT_BATCH: usize = 32;

/// Draws samples. The k-th sample is a function of `(seed, k)`; an implementation may keep a cache, but no other state.
pub trait Sampler {
    /// Overwrites `sample` with the k-th sample.
    fn draw(&mut self, k: u64, sample: &mut Sample);
    /// The number of terms it draws from.
    fn terms(&self) -> usize;
    /// How it draws them.
    fn draws(&self) -> Draws;
    /// The number of steps in one pass over the terms.
    fn steps_per_epoch(&self) -> u64;

    /// Checks the settings, and that the sampler draws from all `terms` terms of the objective. Every run calls this.
    fn check(&self, terms: usize) -> Result<(), Error> {
        check_terms(self.terms(), terms)
    }
}

/// A reference to a sampler, and a boxed one, are samplers too.
macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<S: Sampler + ?Sized> Sampler for $pointer {
            fn draw(&mut self, k: u64, sample: &mut Sample) {
                (**self).draw(k, sample);
            }
            fn terms(&self) -> usize {
                (**self).terms()
            }
            fn draws(&self) -> Draws {
                (**self).draws()
            }
            fn steps_per_epoch(&self) -> u64 {
                (**self).steps_per_epoch()
            }
            fn check(&self, terms: usize) -> Result<(), Error> {
                (**self).check(terms)
            }
        }
    )*};
}
forward!(&mut S, Box<S>);

fn check_terms(sampler: usize, objective: usize) -> Result<(), Error> {
    if sampler == objective { Ok(()) } else { Err(Error::Terms { sampler, objective }) }
}

fn check_batch(owner: &'static str, n: usize, batch: usize) -> Result<(), Error> {
    if n == 0 {
        return Err(out_of_range(owner, "the number of terms", n, Range::at_least(1.0)));
    }
    if batch == 0 || batch > n {
        return Err(out_of_range(owner, "batch", batch, Range::closed(1.0, n as f64)));
    }
    Ok(())
}

/// A random number in 0..n. Multiplying and shifting has a bias below n/2⁶⁴.
fn below(n: usize, rng: &mut ChaCha8Rng) -> usize {
    ((u128::from(rng.next_u64()) * n as u128) >> 64) as usize
}

/// The seed of the k-th sample. Its streams count down from the largest number; those of the indices count up from 0.
fn sample_seed(seed: u64, k: u64) -> u64 {
    generator(seed, u64::MAX - k).next_u64()
}

/// Draws a new permutation for each pass and splits it into batches. The last batch of a pass may be smaller.
///
/// ```
/// use strust::{prelude::*, samplers::Sampler};
/// let f = from_terms(10, |i, x: &Vec<f64>, g| { g[0] += 1.0; x[0] + i as f64 });
/// let mut sampler = Epochs::over(&f).batch(4).seed(7);
/// let mut seen = Vec::new();
/// let mut sample = Sample::default();
/// for k in 0..sampler.steps_per_epoch() {
///     sampler.draw(k, &mut sample);
///     seen.extend_from_slice(sample.indices());
/// }
/// seen.sort_unstable();
/// assert_eq!(seen, (0..10).collect::<Vec<_>>());
/// ```
#[derive(Debug, Clone)]
pub struct Epochs {
    batch: usize,
    seed: u64,
    /// The terms of each stratum.
    strata: Vec<Vec<usize>>,
    /// The permutation of epoch `cached`. All steps of an epoch use it.
    order: Vec<usize>,
    cached: Option<u64>,
}

impl Epochs {
    /// A sampler over the terms of an objective, with batches of 32 (or of all terms, if there are fewer) and seed 0.
    pub fn over(f: &(impl Objective + ?Sized)) -> Self {
        let n = f.terms();
        Self { batch: DEFAULT_BATCH.min(n), seed: 0, strata: Vec::new(), order: (0..n).collect(), cached: None }
    }
    /// A sampler over `n` terms. `batch` must be in [1, n].
    pub fn new(n: usize, batch: usize, seed: u64) -> Result<Self, Error> {
        check_batch("epoch sampler", n, batch)?;
        Ok(Self { batch, seed, strata: Vec::new(), order: (0..n).collect(), cached: None })
    }
    /// Terms of a batch. A run checks that they are in [1, n].
    #[must_use]
    pub fn batch(self, batch: usize) -> Self {
        Self { batch, ..self }
    }
    /// The seed of the permutations.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, cached: None, ..self }
    }
    /// Spreads the terms of each stratum evenly over a pass: term i is in stratum `strata[i]`. A pass is a permutation of
    /// all terms as before, and each batch has nearly its share of every stratum. So a batch has a member of each stratum
    /// that has as many members as a pass has batches, up to the number of strata.
    ///
    /// ```
    /// use strust::{prelude::*, samplers::Sampler};
    /// let f = from_terms(100, |_, x: &Vec<f64>, g| { g[0] += 1.0; x[0] });
    /// let strata: Vec<usize> = (0..100).map(|i| usize::from(i < 10)).collect(); // ten terms are rare
    /// let mut sampler = Epochs::over(&f).batch(20).stratified(&strata);
    /// let mut sample = Sample::default();
    /// for k in 0..15 {
    ///     sampler.draw(k, &mut sample);
    ///     assert_eq!(sample.indices().iter().filter(|&&i| i < 10).count(), 2);
    /// }
    /// ```
    ///
    /// A run checks that there is a stratum for each term.
    #[must_use]
    pub fn stratified(self, strata: &[usize]) -> Self {
        let mut terms: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        strata.iter().enumerate().for_each(|(i, stratum)| terms.entry(*stratum).or_default().push(i));
        Self { strata: terms.into_values().collect(), cached: None, ..self }
    }

    /// Draws the permutation of an epoch.
    fn permute(&mut self, epoch: u64) {
        let mut rng = generator(self.seed, epoch);
        if self.strata.is_empty() {
            self.order.iter_mut().enumerate().for_each(|(i, slot)| *slot = i);
            return shuffle(&mut self.order, &mut rng);
        }
        // Member j of a stratum of m is at (j + u)/m of the pass, with the same random u for all of them.
        let mut places = Vec::with_capacity(self.order.len());
        for stratum in &self.strata {
            let mut members = stratum.clone();
            shuffle(&mut members, &mut rng);
            let offset = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            let place = |(j, i): (usize, usize)| ((j as f64 + offset) / stratum.len() as f64, i);
            places.extend(members.into_iter().enumerate().map(place));
        }
        places.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.order.clear();
        self.order.extend(places.into_iter().map(|(_, i)| i));
    }
}

fn shuffle(order: &mut [usize], rng: &mut ChaCha8Rng) {
    for i in (1..order.len()).rev() {
        order.swap(i, below(i + 1, rng));
    }
}

impl Sampler for Epochs {
    fn draw(&mut self, k: u64, sample: &mut Sample) {
        let (epoch, position) = (k / self.steps_per_epoch(), k % self.steps_per_epoch());
        let n = self.order.len();
        if self.cached != Some(epoch) {
            self.permute(epoch);
            self.cached = Some(epoch);
        }
        let start = position as usize * self.batch;
        let batch = self.order[start.min(n)..(start + self.batch).min(n)].iter().copied();
        let seed = sample_seed(self.seed, k);
        if batch.len() == n { sample.set_all(batch, seed) } else { sample.set(batch, seed) }
    }
    fn terms(&self) -> usize {
        self.order.len()
    }
    fn draws(&self) -> Draws {
        Draws::Different
    }
    fn steps_per_epoch(&self) -> u64 {
        self.order.len().div_ceil(self.batch.max(1)).max(1) as u64
    }
    fn check(&self, terms: usize) -> Result<(), Error> {
        check_terms(self.terms(), terms)?;
        let in_strata: usize = self.strata.iter().map(Vec::len).sum();
        if !self.strata.is_empty() && in_strata != terms {
            return Err(out_of_range(
                "epoch sampler",
                "strata",
                in_strata,
                format!("one for each of the {terms} terms"),
            ));
        }
        check_batch("epoch sampler", terms, self.batch)
    }
}

/// Draws each term of a batch independently, with replacement, as in the paper's analysis.
///
/// ```
/// use strust::{prelude::*, samplers::Sampler};
/// let f = from_terms(10, |i, x: &Vec<f64>, g| { g[0] += 1.0; x[0] + i as f64 });
/// let mut sample = Sample::default();
/// WithReplacement::over(&f).batch(4).seed(7).draw(0, &mut sample);
/// assert_eq!(sample.len(), 4);
/// ```
#[derive(Debug, Clone)]
pub struct WithReplacement {
    n: usize,
    batch: usize,
    seed: u64,
}

impl WithReplacement {
    /// A sampler over the terms of an objective, with batches of 32 (or n, if there are fewer terms) and seed 0.
    pub fn over(f: &(impl Objective + ?Sized)) -> Self {
        Self { n: f.terms(), batch: DEFAULT_BATCH.min(f.terms()), seed: 0 }
    }
    /// A sampler over `n` terms. `batch` must be in [1, n].
    pub fn new(n: usize, batch: usize, seed: u64) -> Result<Self, Error> {
        check_batch("sampler with replacement", n, batch)?;
        Ok(Self { n, batch, seed })
    }
    /// Terms of a batch. A run checks that they are in [1, n].
    #[must_use]
    pub fn batch(self, batch: usize) -> Self {
        Self { batch, ..self }
    }
    /// The seed of the draws.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }
}

impl Sampler for WithReplacement {
    fn draw(&mut self, k: u64, sample: &mut Sample) {
        let mut rng = generator(self.seed, k);
        sample.set((0..self.batch).map(|_| below(self.n, &mut rng)), sample_seed(self.seed, k));
    }
    fn terms(&self) -> usize {
        self.n
    }
    fn draws(&self) -> Draws {
        Draws::Independent
    }
    fn steps_per_epoch(&self) -> u64 {
        self.n.div_ceil(self.batch.max(1)).max(1) as u64
    }
    fn check(&self, terms: usize) -> Result<(), Error> {
        check_terms(self.terms(), terms)?;
        check_batch("sampler with replacement", terms, self.batch)
    }
}

/// Uses all terms in every step, in order.
///
/// ```
/// use strust::{prelude::*, samplers::Sampler};
/// let f = from_terms(3, |i, x: &Vec<f64>, g| { g[0] += 1.0; x[0] + i as f64 });
/// let mut sample = Sample::default();
/// FullBatch::over(&f).draw(5, &mut sample);
/// assert_eq!(sample.indices(), [0, 1, 2]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct FullBatch {
    n: usize,
    seed: u64,
}

impl FullBatch {
    /// A sampler over all terms of an objective.
    pub fn over(f: &(impl Objective + ?Sized)) -> Self {
        Self { n: f.terms(), seed: 0 }
    }
    /// The seed for randomness in the objective, such as dropout.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }
}

impl Sampler for FullBatch {
    fn draw(&mut self, k: u64, sample: &mut Sample) {
        sample.set_all(0..self.n, sample_seed(self.seed, k));
    }
    fn terms(&self) -> usize {
        self.n
    }
    fn draws(&self) -> Draws {
        Draws::Different
    }
    fn steps_per_epoch(&self) -> u64 {
        1
    }
    fn check(&self, terms: usize) -> Result<(), Error> {
        check_terms(self.n, terms)?;
        check_batch("full batch", terms, terms)
    }
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
    fn every_epoch_is_a_new_permutation_of_all_terms() {
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
    fn a_stratified_pass_is_a_new_permutation_with_every_stratum_in_every_batch() {
        // 6, 30 and 64 of 100 terms, in 5 batches.
        let strata: Vec<usize> = (0..100).map(|i| if i < 6 { 7 } else { usize::from(i < 36) }).collect();
        let make = || Epochs::new(100, 20, 3).unwrap().stratified(&strata);
        let (mut sampler, mut passes) = (make(), Vec::new());
        for epoch in 0..40 {
            let mut seen = Vec::new();
            for k in 5 * epoch..5 * (epoch + 1) {
                let sample = drawn(&mut sampler, k);
                assert_eq!(drawn(&mut make(), k), sample, "sample {k} of a fresh sampler");
                for (stratum, share) in [(7, 1.2), (1, 6.0), (0, 12.8)] {
                    let members = sample.indices().iter().filter(|&&i| strata[i] == stratum).count() as f64;
                    assert!((members - share).abs() < 2.0 && members > 0.0, "{members} of {stratum} in sample {k}");
                }
                seen.extend_from_slice(sample.indices());
            }
            passes.push(seen.clone());
            seen.sort_unstable();
            assert_eq!(seen, (0..100).collect::<Vec<_>>());
        }
        assert_ne!(passes[0], passes[1]);
        // Over many passes, a term is in each batch equally often.
        let first = (0..4000).filter(|k| drawn(&mut sampler, 5 * k).indices().contains(&50)).count();
        assert!((700..900).contains(&first), "{first} of 4000");
        let error = Epochs::new(100, 20, 3).unwrap().stratified(&strata[1..]).check(100).unwrap_err().to_string();
        assert_eq!(error, "epoch sampler: `strata` is 99, but must be one for each of the 100 terms");
    }

    #[test]
    fn a_wrong_number_of_terms_is_an_error_that_names_both_numbers() {
        for sampler in [Epochs::new(10, 2, 0).unwrap(), Epochs::new(50, 2, 0).unwrap()] {
            let error = sampler.check(40).unwrap_err().to_string();
            assert!(
                error.contains(&format!("draws from {} terms, but the objective has 40", sampler.terms())),
                "{error}"
            );
        }
        assert!(WithReplacement::new(10, 2, 0).unwrap().check(40).is_err());
        assert!(FullBatch { n: 10, seed: 0 }.check(40).is_err() && FullBatch { n: 0, seed: 0 }.check(0).is_err());
    }

    #[test]
    fn a_full_batch_contains_all_terms_and_has_a_new_seed_in_each_step() {
        let mut sampler = FullBatch { n: 3, seed: 1 };
        let (first, second) = (drawn(&mut sampler, 0), drawn(&mut sampler, 1));
        assert_eq!((first.indices(), second.indices()), ([0, 1, 2].as_slice(), [0, 1, 2].as_slice()));
        assert!(first.seed().is_some() && first.seed() != second.seed());
    }

    #[test]
    fn a_batch_larger_than_the_sum_is_an_error_that_names_the_range() {
        let expected = "epoch sampler: `batch` is 11, but must be in [1, 10]";
        assert_eq!(Epochs::new(10, 11, 0).unwrap_err().to_string(), expected);
        assert_eq!(Epochs::new(10, 1, 0).unwrap().batch(11).check(10).unwrap_err().to_string(), expected);
        assert!(Epochs::new(10, 1, 0).unwrap().batch(0).check(10).is_err());
        assert!(WithReplacement::new(0, 1, 0).is_err());
    }
}
