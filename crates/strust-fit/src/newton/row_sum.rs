//! f on all rows, its gradient, and products with its Hessian: passes over the rows in parallel.

use crate::{
    Error,
    linear::{LinearPass, PIECE, divide_in_place},
    ranks::Ranks,
    terms::{ModelTerms, RowInputs},
};
use std::{
    ops::Range,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

/// Parts of a sum. Each is added up in order, and so are the parts. So the bits do not depend on the number of threads.
pub(super) const PARTS: usize = 8;
/// A pass with fewer operations is faster on one thread.
const PARALLEL: usize = 2_000_000;

/// f(x) = (1/n) Σ uᵢ·loss + (λ/2)‖W‖², over the rows of all ranks.
pub(super) struct RowSum<'a, R> {
    pub(super) terms: ModelTerms<'a, R>,
    pub(super) ranks: &'a Ranks<'a>,
    pub(super) interrupted: &'a dyn Fn() -> bool,
    pub(super) any_stops: &'a dyn Fn(bool) -> bool,
    /// The mean number of inputs of a row that are not dense, on all ranks.
    pub(super) others: f64,
}

/// f at a point.
pub(super) struct SumAt {
    /// The number of terms.
    pub(super) count: f64,
    pub(super) value: f64,
    pub(super) gradient: Vec<f64>,
    /// The mean squared derivative of the loss of a row.
    pub(super) squares: f64,
    /// What second derivatives need, for each position and output.
    pub(super) second: Vec<f64>,
}

impl<R: RowInputs + Sync> RowSum<'_, R> {
    /// The number of weights and intercepts.
    pub(super) fn parameters(&self) -> usize {
        (self.terms.rows.inputs() + 1) * self.terms.outputs
    }
    /// Operations for a row.
    fn work(&self) -> usize {
        4 * self.terms.outputs * (self.terms.rows.dense_inputs() + 4 * self.others as usize + 4)
    }

    /// Measures f and its derivatives; `None` if it was interrupted.
    pub(super) fn measure(&self, positions: &[usize], x: &[f64]) -> Result<Option<SumAt>, Error> {
        let terms = &self.terms;
        let weights = &x[..terms.rows.inputs() * terms.outputs];
        let part = |range: Range<usize>| {
            let (mut loss, mut squares, mut second) = (0.0, 0.0, Vec::with_capacity(range.len() * terms.outputs));
            let gradient = pass(terms, &positions[range], x, |term, z| {
                let (i, mut plain) = (terms.index[term], 0.0);
                terms.loss.add(z, terms.goals[i], 1.0, &mut plain);
                let weight = terms.weight(i);
                loss += weight * plain;
                squares += weight * z.iter().map(|d| d * d).sum::<f64>();
                terms.loss.curvature(z, terms.goals[i], &mut second);
                for d in z.iter_mut() {
                    *d *= weight;
                }
            });
            (loss, squares, gradient, second)
        };
        let Some(parts) = self.in_parts(positions.len(), PARTS, self.work(), part)? else { return Ok(None) };
        let mut sums = vec![0.0; x.len() + 3];
        let mut second = Vec::with_capacity(positions.len() * terms.outputs);
        for (loss, squares, gradient, of_part) in parts {
            super::add(&mut sums, 1.0, &gradient);
            sums[x.len()] += loss;
            sums[x.len() + 1] += squares;
            second.extend(of_part);
        }
        sums[x.len() + 2] = positions.len() as f64;
        self.ranks.add(&mut sums)?;
        let [loss, squares, count] = [0, 1, 2].map(|k| sums[x.len() + k]);
        sums.truncate(x.len());
        for sum in &mut sums {
            *sum /= count;
        }
        super::add(&mut sums, terms.penalty, weights);
        let value = loss / count + 0.5 * terms.penalty * super::dot(weights, weights);
        Ok(Some(SumAt { count, value, gradient: sums, squares: squares / count, second }))
    }

    /// Hv at a point that was measured, also with the penalty; `None` if it was interrupted.
    pub(super) fn product(&self, positions: &[usize], at: &SumAt, v: &[f64]) -> Result<Option<Vec<f64>>, Error> {
        let terms = &self.terms;
        let k = terms.outputs;
        let weights = &v[..terms.rows.inputs() * k];
        let part = |range: Range<usize>| {
            let mut second = at.second[range.start * k..range.end * k].chunks_exact(k);
            pass(terms, &positions[range], v, |term, z| {
                let weight = terms.weight(terms.index[term]);
                let second = second.next().unwrap_or_default();
                // For several outputs the matrix is diag(p) − ppᵀ.
                let mean = if k == 1 { 0.0 } else { second.iter().zip(&*z).map(|(p, z)| p * z).sum::<f64>() };
                z.iter_mut().zip(second).for_each(|(z, p)| *z = weight * p * (*z - mean));
            })
        };
        let Some(parts) = self.in_parts(positions.len(), PARTS, self.work(), part)? else { return Ok(None) };
        let mut sum = vec![0.0; v.len()];
        for part in &parts {
            super::add(&mut sum, 1.0, part);
        }
        self.ranks.add(&mut sum)?;
        for sum in &mut sum {
            *sum /= at.count;
        }
        super::add(&mut sum, terms.penalty, weights);
        Ok(Some(sum))
    }

    /// The mean of a score over some terms, without weights, and its slope; `None` if it was interrupted. `score` gives the
    /// score and its slope from an output and the goal.
    pub(super) fn mean(
        &self,
        positions: &[usize],
        x: &[f64],
        score: impl Fn(f64, f64) -> (f64, f64) + Sync,
    ) -> Result<Option<(f64, Vec<f64>)>, Error> {
        let terms = &self.terms;
        let part = |range: Range<usize>| {
            let mut total = 0.0;
            let mut sums = pass(terms, &positions[range], x, |term, z| {
                let (value, slope) = score(z[0], terms.goals[terms.index[term]]);
                total += value;
                z[0] = slope;
            });
            sums.push(total);
            sums
        };
        let Some(parts) = self.in_parts(positions.len(), PARTS, self.work(), part)? else { return Ok(None) };
        let mut sums = vec![0.0; x.len() + 1];
        for part in &parts {
            super::add(&mut sums, 1.0, part);
        }
        sums.push(positions.len() as f64);
        self.ranks.add(&mut sums)?;
        let count = sums.pop().unwrap_or(1.0);
        for sum in &mut sums {
            *sum /= count;
        }
        Ok(sums.pop().map(|mean| (mean, sums)))
    }

    /// Scores of classes that all grow by the same number change nothing, so their mean is 0 at the minimum of least norm.
    pub(super) fn center(&self, x: &mut [f64]) {
        let k = self.terms.outputs;
        if k > 1 {
            for scores in x.chunks_exact_mut(k) {
                let mean = scores.iter().sum::<f64>() / k as f64;
                for score in scores {
                    *score -= mean;
                }
            }
        }
    }

    /// The results for parts of `count` terms in order, or `None` if a rank is interrupted.
    pub(super) fn in_parts<T: Send + Sync>(
        &self,
        count: usize,
        parts: usize,
        work: usize,
        each: impl Fn(Range<usize>) -> T + Sync,
    ) -> Result<Option<Vec<T>>, Error> {
        let found = in_parts(count, parts, work, self.interrupted, each);
        let stopped = (self.any_stops)(found.is_none());
        self.ranks.check()?;
        Ok(found.filter(|_| !stopped))
    }
}

/// Σ aᵢrᵢᵀ and Σ rᵢ over some terms, with the numbers rᵢ that `row` makes of their outputs.
fn pass<R: RowInputs>(
    terms: &ModelTerms<'_, R>,
    picked: &[usize],
    x: &[f64],
    row: impl FnMut(usize, &mut [f64]),
) -> Vec<f64> {
    let k = terms.outputs;
    let (weights, bias) = x.split_at(terms.rows.inputs() * k);
    let (mut z, mut piece) = (vec![0.0; k * PIECE], vec![0.0; terms.rows.dense_inputs() * PIECE]);
    let (mut raw, mut out) = (weights.to_vec(), vec![0.0; x.len()]);
    if let Some((_, scales)) = terms.units {
        divide_in_place(&mut raw, k, scales);
    }
    let (z, piece, raw) = (&mut *z, &mut *piece, &*raw);
    pulp::Arch::new().dispatch(LinearPass { terms, picked, z, piece, raw, bias, row, out: Some(&mut out) });
    if let Some((_, scales)) = terms.units {
        divide_in_place(&mut out, k, scales);
    }
    out
}

/// The results for parts of `count` terms, in order; `None` if it was interrupted.
fn in_parts<T: Send + Sync>(
    count: usize,
    parts: usize,
    work: usize,
    interrupted: &dyn Fn() -> bool,
    each: impl Fn(Range<usize>) -> T + Sync,
) -> Option<Vec<T>> {
    let size = count.div_ceil(parts).max(1);
    let results: Vec<OnceLock<T>> = (0..count.div_ceil(size)).map(|_| OnceLock::new()).collect();
    let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let take = |checks: Option<&dyn Fn() -> bool>| {
        while !stopped.load(Ordering::Relaxed) {
            if checks.is_some_and(|interrupted| interrupted()) {
                stopped.store(true, Ordering::Relaxed);
                return;
            }
            let part = next.fetch_add(1, Ordering::Relaxed);
            let Some(result) = results.get(part) else { return };
            let _ = result.set(each(part * size..count.min((part + 1) * size)));
        }
    };
    let threads = if count.saturating_mul(work) < PARALLEL {
        1
    } else {
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(PARTS)
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| take(None));
        }
        // The caller's flag is asked on its own thread.
        take(Some(interrupted));
    });
    results.into_iter().map(OnceLock::into_inner).collect()
}

/// The units of the fit: dense inputs minus their means, so that a large mean costs no digits.
pub(super) struct CenteredUnits {
    pub(super) shift: Vec<f64>,
    pub(super) scale: Vec<f64>,
    /// The shifts of the model.
    model: Vec<f64>,
    outputs: usize,
}

/// Measures the means. Without an intercept there is nothing to subtract.
pub(super) fn means<R: RowInputs + Sync>(
    terms: &ModelTerms<'_, R>,
    positions: &[usize],
    ranks: &Ranks<'_>,
    interrupted: &dyn Fn() -> bool,
    any_stops: &dyn Fn(bool) -> bool,
) -> Result<CenteredUnits, Error> {
    let (d, dense) = (terms.rows.inputs(), terms.rows.dense_inputs());
    let (model, scale) =
        terms.units.map_or_else(|| (vec![0.0; d], vec![1.0; d]), |(shift, scale)| (shift.to_vec(), scale.to_vec()));
    let mut shift = model.clone();
    if terms.intercept && dense > 0 {
        // Differences from one row: a mean can be far larger than the deviation.
        let mut first = vec![0.0; if positions.is_empty() { 0 } else { dense }];
        if let Some(&term) = positions.first() {
            terms.rows.copy_dense(terms.index[term], &mut first);
        }
        if let Some(first) = ranks.all(&first)?.into_iter().find(|row| !row.is_empty()) {
            shift[..dense].copy_from_slice(&first);
        }
        let shifted = ModelTerms { units: Some((&shift, &scale)), ..*terms };
        let part = |range: Range<usize>| {
            let (mut sums, mut row) = (vec![0.0; dense + 1], vec![0.0; dense]);
            for &term in &positions[range] {
                let i = terms.index[term];
                shifted.copy_shifted(i, &mut row);
                super::add(&mut sums, terms.weight(i), &row);
                sums[dense] += terms.weight(i);
            }
            sums
        };
        let parts = in_parts(positions.len(), PARTS, 2 * dense, interrupted, part);
        if any_stops(parts.is_none()) {
            return Err(Error::Interrupted);
        }
        let mut sums = vec![0.0; dense + 1];
        parts.iter().flatten().for_each(|part| super::add(&mut sums, 1.0, part));
        ranks.add(&mut sums)?;
        let total = sums[dense];
        shift.iter_mut().zip(&sums[..dense]).for_each(|(shift, sum)| *shift += sum / total);
    }
    Ok(CenteredUnits { shift, scale, model, outputs: terms.outputs })
}

/// The mean number of inputs of a row that are not dense, on all ranks.
pub(super) fn others<R: RowInputs>(terms: &ModelTerms<'_, R>, ranks: &Ranks<'_>) -> Result<f64, Error> {
    let count = terms.index.len() as f64;
    let mut sums = [terms.rows.others_per_row() * count, count];
    ranks.add(&mut sums)?;
    Ok(sums[0] / sums[1])
}

impl CenteredUnits {
    /// The reverse of [`Self::back`].
    pub(super) fn to_fit(&self, x: &[f64]) -> Vec<f64> {
        self.shifted(x, -1.0)
    }
    /// The weights and intercepts in the units of the model.
    pub(super) fn back(&self, x: &[f64]) -> Vec<f64> {
        self.shifted(x, 1.0)
    }
    fn shifted(&self, x: &[f64], sign: f64) -> Vec<f64> {
        let (mut x, k) = (x.to_vec(), self.outputs);
        let (weights, bias) = x.split_at_mut(self.shift.len() * k);
        for (j, w) in weights.chunks_exact(k).enumerate() {
            let by = sign * (self.model[j] - self.shift[j]) / self.scale[j];
            bias.iter_mut().zip(w).for_each(|(b, w)| *b += w * by);
        }
        x
    }
}
