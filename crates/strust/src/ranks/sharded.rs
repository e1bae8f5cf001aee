use super::Group;
use crate::{
    Error,
    objective::{Consensus, Evaluation, Objective, ObjectiveWrapper, Peers, ProductKind},
    sample::Sample,
    vector::Vector,
};
use std::time::Duration;

/// How the sums of the ranks are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reduction {
    /// Each rank takes one share of the sample, and [`Group::sum`] adds the shares. The result has the same bits in every
    /// run with the same number of ranks; with another number it differs by rounding.
    #[default]
    Fast,
    /// The sample is cut into blocks of `block` terms. Each rank evaluates whole blocks, and every rank adds the sums of
    /// all blocks in their order. The result has the same bits with **any** number of ranks, also with one.
    ///
    /// Every rank receives and keeps ⌈b/block⌉ gradients instead of one, where b is the size of the sample, and at most
    /// ⌈b/block⌉ ranks have work. A block of 1/8 of the sample costs eight times the memory and traffic, and keeps eight
    /// ranks busy.
    FixedOrder {
        /// Terms in a block; 0 counts as 1.
        block: usize,
    },
}

/// What a rank has given to collectives so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Calls of [`Group::sum`] and [`Group::gather`].
    pub collectives: u64,
    /// The numbers that this rank gave to them, of 8 bytes each.
    pub numbers: u64,
}

/// Steps between two comparisons of the state: each reads the state once, and a wrong rank is found early.
const CHECK_EVERY: u64 = 64;

/// The fewest numbers of a slice, unless it is the last: 1 MiB, whose transfer takes much longer than the latency of most
/// networks.
const SLICE: usize = 1 << 17;

/// An objective whose samples are shared out among the ranks of a group.
///
/// Rank r of R evaluates the terms from place ⌊rb/R⌋ to ⌊(r+1)b/R⌋ of a sample of b terms, and weighs their mean by their
/// share of the sample. Value, rounding and gradient of all ranks are added by **one** sum in `f64`, whatever the component
/// type. A rank without a term adds zeros. So every rank has the same bits, and every method works as on one process.
///
/// Ranks cannot disagree unnoticed. The sum carries a hash of the sample, so a rank with another sample is found at once.
/// After a step, a second small sum makes the clocks equal, and stops all ranks if an observer of one of them stops. After
/// the first step and then after every 64th, hashes of the whole state are compared. A difference is an error that names
/// the ranks.
///
/// If a collective fails, evaluations are NaN, so the run ends, and its report has the reason.
///
/// If a rank has only some of the terms ([`Self::dealt`]), it evaluates those of the sample that it has.
///
/// A term must be a function of x, its index and the seed of the sample. If it depends on its place in the sample or on the
/// other terms, as with batch-norm, it depends on the number of ranks too.
///
/// ```
/// use strust::{prelude::*, ranks::{Alone, Reduction, Sharded}};
/// let f = || from_terms(10, |i, x: &Vec<f64>, g| { g[0] += x[0] - i as f64; 0.5 * (x[0] - i as f64).powi(2) });
/// let mut sharded = Sharded::new(f(), Alone).reduction(Reduction::FixedOrder { block: 4 });
/// let (sample, mut g) = (Sample::range(0..10), vec![0.0]);
/// assert!((sharded.value_and_gradient(&vec![0.0], &sample, &mut g).value - 14.25).abs() < 1e-14);
/// assert!((g[0] + 4.5).abs() < 1e-14);
/// ```
#[derive(Debug)]
pub struct Sharded<F, G> {
    pub(super) inner: F,
    pub(super) group: G,
    reduction: Reduction,
    check_every: u64,
    steps: u64,
    pub(super) traffic: Traffic,
    failure: Option<Error>,
    pub(super) part: Sample,
    /// The place of each term on this rank, or [`ELSEWHERE`], if the terms are dealt out.
    places: Option<Vec<u32>>,
    /// A hash of the sample.
    pub(super) tag: u16,
    /// Value, rounding, tag, its square and the gradient of this rank; then of all.
    pub(super) sums: Vec<f64>,
    /// Where the sums of all ranks arrive.
    pub(super) total: Vec<f64>,
    /// The fewest numbers of a slice of the gradient.
    pub(super) slice: usize,
    /// Those of all blocks.
    blocks: Vec<f64>,
}

impl<F, G: Group> Sharded<F, G> {
    /// Shares out the samples of `inner`. Every rank has all terms, or at least those of its shares.
    pub fn new(inner: F, group: G) -> Self {
        Self {
            inner,
            group,
            reduction: Reduction::Fast,
            check_every: CHECK_EVERY,
            steps: 0,
            traffic: Traffic::default(),
            failure: None,
            part: Sample::default(),
            places: None,
            tag: 0,
            sums: Vec::new(),
            total: Vec::new(),
            slice: SLICE,
            blocks: Vec::new(),
        }
    }
    /// How the sums are added; [`Reduction::Fast`] by default. If the terms are dealt out it is the only one, because a block
    /// of the fixed order may need the terms of several ranks: then another one is the [`Peers::failure`].
    #[must_use]
    pub fn reduction(self, reduction: Reduction) -> Self {
        let refused = (self.places.is_some() && reduction != Reduction::Fast).then(|| Error::OutOfRange {
            owner: "Sharded",
            field: "reduction",
            value: format!("{reduction:?}"),
            allowed: "Fast if the terms are dealt out: the fixed order needs all terms on every rank".into(),
        });
        Self { reduction, failure: self.failure.or(refused), ..self }
    }
    /// Steps between two comparisons of the state; 64 by default.
    #[must_use]
    pub fn check_every(self, steps: u64) -> Self {
        Self { check_every: steps.max(1), ..self }
    }
    /// The fewest numbers of a slice; 131,072 by default. If an objective computes its gradient from the end to the start
    /// ([`Sliced`](crate::objective::Sliced)), slices of at least so many numbers are summed while the rest is computed. With
    /// `usize::MAX` the gradient is always one sum.
    #[must_use]
    pub fn slices_of(self, numbers: usize) -> Self {
        Self { slice: numbers.max(1), ..self }
    }
    /// What this rank has given to collectives so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }
    /// The group.
    pub fn group(&self) -> &G {
        &self.group
    }
    /// The objective that is shared out.
    pub fn inner(&self) -> &F {
        &self.inner
    }
    /// The objective, to change or evaluate it on this rank alone.
    pub fn inner_mut(&mut self) -> &mut F {
        &mut self.inner
    }

    pub(super) fn count(&mut self, numbers: usize) {
        self.traffic.collectives += 1;
        self.traffic.numbers += numbers as u64;
    }

    /// Compares a hash of all ranks. Two halves of 32 bits are exact as numbers.
    fn compare(&mut self, hash: u64, why: impl FnOnce() -> String) -> Result<(), Error> {
        let mine = [(hash >> 32) as f64, (hash & 0xffff_ffff) as f64];
        self.count(mine.len());
        self.group.gather(&mine, &mut self.blocks)?;
        let whole = |half: &[f64; 2]| (half[0] as u64) << 32 | half[1] as u64;
        let hashes: Vec<u64> = self.blocks.as_chunks::<2>().0.iter().map(whole).collect();
        // Most ranks are right; in a tie, the first.
        let votes = |hash: &u64| hashes.iter().filter(|&other| other == hash).count();
        let right = hashes.iter().rev().max_by_key(|hash| votes(hash));
        let ranks: Vec<usize> = (0..hashes.len()).filter(|&rank| Some(&hashes[rank]) != right).collect();
        if ranks.is_empty() { Ok(()) } else { Err(Error::Ranks { ranks, why: why() }) }
    }

    /// Checks that `parts` parts of a sum had the same tag t: Σ1·Σt² = (Σt)² only if all are equal. These sums are exact,
    /// so all ranks come to the same result.
    fn check_tags(&mut self, parts: usize) -> Result<(), Error> {
        let (tags, squares) = (self.sums[2] as u128, self.sums[3] as u128);
        if parts as u128 * squares == tags * tags {
            return Ok(());
        }
        self.compare(self.tag.into(), || {
            "evaluates another sample than the other ranks: use the same seed, batch and stopping rule on all of them"
                .into()
        })
    }

    fn try_to_agree(&mut self, consensus: &mut Consensus) -> Result<(), Error> {
        let mut votes = [consensus.elapsed.as_secs_f64(), f64::from(u8::from(consensus.stop))];
        self.count(votes.len());
        self.group.sum(&mut votes)?;
        consensus.elapsed = Duration::from_secs_f64(votes[0] / self.group.size() as f64);
        consensus.stop = votes[1] > 0.0;
        self.steps += 1;
        if (self.steps - 1).is_multiple_of(self.check_every) {
            let steps = consensus.steps;
            self.compare((consensus.fingerprint)(), || {
                format!(
                    "the state after step {steps} differs from that of the other ranks: use the same start, method, \
                     settings and program on all of them"
                )
            })?;
        }
        Ok(())
    }
}

impl<F: Objective, G: Group> Sharded<F, G> {
    /// Shares out an objective of which each rank has only the terms that it owns: `owners` has the rank of each term. `inner`
    /// has the terms of this rank, in their order. A rank may have none.
    ///
    /// The samples are those of one process, so each is evaluated by the owners of its terms. An `inner` with another number
    /// of terms is the [`Peers::failure`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use strust::{prelude::*, ranks::{on_threads, RowShare, Sharded}};
    /// let found = on_threads(3, Duration::from_secs(60), |rank| {
    ///     let share = RowShare::of(&rank);
    ///     let mine: Vec<f64> = (0..share.count(10)).map(|place| share.row(place) as f64).collect(); // of 0, 1, …, 9
    ///     let f = from_terms(mine.len(), |i, x: &Vec<f64>, g| { g[0] += x[0] - mine[i]; 0.5 * (x[0] - mine[i]).powi(2) });
    ///     let mut dealt = Sharded::dealt(f, rank, (0..10).map(|i| share.owner(i)));
    ///     let mut gradient = vec![0.0];
    ///     (dealt.value_and_gradient(&vec![0.0], &Sample::range(2..9), &mut gradient).value, gradient[0])
    /// });
    /// for (value, gradient) in found {
    ///     assert!((value - 14.5).abs() < 1e-13 && (gradient + 5.0).abs() < 1e-13); // ½(4 + … + 64)/7 and −(2 + … + 8)/7
    /// }
    /// ```
    pub fn dealt(inner: F, group: G, owners: impl IntoIterator<Item = usize>) -> Self {
        let (rank, found) = (group.rank(), inner.terms());
        let mut own = 0;
        let place = |owner: usize| {
            let mine = owner == rank;
            own += u32::from(mine);
            if mine { own - 1 } else { ELSEWHERE }
        };
        let places = owners.into_iter().map(place).collect();
        let expected = own as usize;
        let wrong = (found != expected).then(|| Error::Shape {
            place: "terms of this rank",
            expected: vec![expected],
            found: vec![found],
        });
        Self { places: Some(places), failure: wrong, ..Self::new(inner, group) }
    }

    /// Overwrites the part by the terms of the sample that this rank evaluates.
    fn take_part(&mut self, sample: &Sample) {
        let (rank, size) = (self.group.rank(), self.group.size());
        match &self.places {
            None => self.part.set_part(sample, rank * sample.len() / size..(rank + 1) * sample.len() / size),
            Some(places) => {
                let own = sample.indices().iter().map(|&i| places[i]).filter(|&place| place != ELSEWHERE);
                self.part.set_terms_of(sample, own.map(|place| place as usize));
            }
        }
    }

    /// Appends the sums of the terms of the part, times its share of `whole` terms; zeros without a term.
    fn append(&mut self, x: &F::Point, whole: usize, mut gradient: Option<&mut F::Point>) {
        let start = self.sums.len();
        let tag = f64::from(self.tag);
        let weight = self.part.len() as f64 / whole as f64;
        if self.part.is_empty() {
            self.sums.resize(start + width(gradient.as_deref()), 0.0);
        } else {
            let f = match gradient.as_deref_mut() {
                Some(gradient) => self.inner.value_and_gradient(x, &self.part, gradient),
                None => self.inner.value(x, &self.part),
            };
            self.sums.extend([f.value, f.rounding, 0.0, 0.0]);
            if let Some(gradient) = gradient {
                gradient.append_components(&mut self.sums);
            }
            self.sums[start..].iter_mut().for_each(|v| *v *= weight);
        }
        self.sums[start + 2..start + HEAD].copy_from_slice(&[tag, tag * tag]);
    }

    /// The sums over the whole sample.
    fn add(&mut self, x: &F::Point, sample: &Sample, gradient: Option<&mut F::Point>) -> Result<(), Error> {
        self.tag = tag(sample);
        self.sums.clear();
        if let Reduction::FixedOrder { block } = self.reduction {
            return self.add_in_order(x, sample, block.max(1), gradient);
        }
        self.take_part(sample);
        if let Some(gradient) = gradient {
            self.add_gradient(x, sample.len(), gradient)?;
        } else {
            self.append(x, sample.len(), None);
            self.count(self.sums.len());
            self.group.sum(&mut self.sums)?;
        }
        self.check_tags(self.group.size())
    }

    fn add_in_order(
        &mut self,
        x: &F::Point,
        sample: &Sample,
        block: usize,
        mut gradient: Option<&mut F::Point>,
    ) -> Result<(), Error> {
        let (rank, width) = (self.group.rank(), width(gradient.as_deref()));
        let blocks = sample.len().div_ceil(block);
        // The last ranks may have fewer blocks, so that the blocks of all ranks are in order.
        let each = blocks.div_ceil(self.group.size());
        for j in rank * each..(rank + 1) * each {
            let place = |j: usize| (j * block).min(sample.len());
            self.part.set_part(sample, place(j)..place(j + 1));
            self.append(x, sample.len(), gradient.as_deref_mut());
        }
        self.count(self.sums.len());
        self.group.gather(&self.sums, &mut self.blocks)?;
        self.sums.clear();
        self.sums.extend_from_slice(&self.blocks[..width]);
        for (j, next) in self.blocks.chunks_exact(width).enumerate().skip(1) {
            // Blocks after the end of the sample have only tags.
            let end = if j < blocks { width } else { HEAD };
            self.sums[..end].iter_mut().zip(next).for_each(|(sum, v)| *sum += v);
        }
        self.check_tags(self.blocks.len() / width)
    }

    /// The product over the whole sample, and whether all ranks could make theirs.
    fn add_product(
        &mut self,
        kind: ProductKind,
        x: &F::Point,
        sample: &Sample,
        direction: &F::Point,
        product: &mut F::Point,
    ) -> Result<bool, Error> {
        self.tag = tag(sample);
        self.take_part(sample);
        let weight = self.part.len() as f64 / sample.len() as f64;
        let mine = self.part.is_empty() || self.inner.curvature_product(kind, x, &self.part, direction, product);
        if self.part.is_empty() || !mine {
            product.set_zero();
        }
        let tag = f64::from(self.tag);
        self.sums.clear();
        self.sums.extend([f64::from(u8::from(!mine)), 0.0, tag, tag * tag]);
        product.append_components(&mut self.sums);
        self.sums[HEAD..].iter_mut().for_each(|v| *v *= weight);
        self.count(self.sums.len());
        self.group.sum(&mut self.sums)?;
        self.check_tags(self.group.size())?;
        product.set_components(&self.sums[HEAD..]);
        Ok(self.sums[0] == 0.0)
    }

    /// The mean over the sample; NaN after a failure. The gradient overwrites `gradient`.
    fn evaluate(&mut self, x: &F::Point, sample: &Sample, mut gradient: Option<&mut F::Point>) -> Evaluation {
        if self.failure.is_none() {
            self.failure = self.add(x, sample, gradient.as_deref_mut()).err();
        }
        if self.failure.is_some() {
            return Evaluation { value: f64::NAN, rounding: f64::NAN };
        }
        if let Some(gradient) = gradient {
            gradient.set_components(&self.sums[HEAD..]);
        }
        Evaluation { value: self.sums[0], rounding: self.sums[1] }
    }

    fn is_alone(&self) -> bool {
        self.group.size() == 1 && self.reduction == Reduction::Fast && self.failure.is_none()
    }
}

/// The place of a term that another rank has.
const ELSEWHERE: u32 = u32::MAX;

/// The numbers before the gradient: value, rounding, tag and its square.
pub(super) const HEAD: usize = 4;

/// The numbers of an evaluation.
fn width<V: Vector>(gradient: Option<&V>) -> usize {
    HEAD + gradient.map_or(0, Vector::dimension)
}

/// A hash of a sample, so short that sums of squares over a million ranks are exact.
fn tag(sample: &Sample) -> u16 {
    let start = sample.quiet_seed().map_or(0, |seed| seed.wrapping_add(1));
    let mix = |hash: u64, &i: &usize| (hash ^ i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    (mix(sample.indices().iter().fold(start, mix), &sample.len()) >> 48) as u16
}

impl<F: Objective, G: Group> ObjectiveWrapper for Sharded<F, G> {
    type Inner = F;
    fn wrapped(&self) -> &F {
        &self.inner
    }
    fn wrapped_mut(&mut self) -> &mut F {
        &mut self.inner
    }
    fn terms(this: &Self) -> usize {
        this.places.as_ref().map_or_else(|| this.inner.terms(), Vec::len)
    }
    fn value(this: &mut Self, x: &F::Point, sample: &Sample) -> Evaluation {
        if this.is_alone() { this.inner.value(x, sample) } else { this.evaluate(x, sample, None) }
    }
    fn value_and_gradient(this: &mut Self, x: &F::Point, sample: &Sample, gradient: &mut F::Point) -> Evaluation {
        if this.is_alone() {
            return this.inner.value_and_gradient(x, sample, gradient);
        }
        this.evaluate(x, sample, Some(gradient))
    }
    fn curvature_product(
        this: &mut Self,
        kind: ProductKind,
        x: &F::Point,
        sample: &Sample,
        direction: &F::Point,
        product: &mut F::Point,
    ) -> bool {
        if this.is_alone() {
            return this.inner.curvature_product(kind, x, sample, direction, product);
        }
        // In a fixed order, products come from differences of gradients, which have that order.
        if this.failure.is_some() || this.reduction != Reduction::Fast {
            return false;
        }
        this.add_product(kind, x, sample, direction, product).unwrap_or_else(|failure| {
            this.failure = Some(failure);
            false
        })
    }
    fn peers(this: &mut Self) -> Option<&mut dyn Peers> {
        Some(this)
    }
}

impl<F: Objective, G: Group> Peers for Sharded<F, G> {
    fn agree(&mut self, consensus: &mut Consensus) -> Result<(), Error> {
        if self.failure.is_none() && self.group.size() > 1 {
            self.failure = self.try_to_agree(consensus).err();
        }
        self.failure.clone().map_or(Ok(()), Err)
    }
    fn failure(&mut self) -> Option<Error> {
        self.failure.clone().or_else(|| self.inner.peers()?.failure())
    }
}
