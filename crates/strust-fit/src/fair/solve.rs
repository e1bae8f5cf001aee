//! The fit with bounds.

use super::{FairSet, GroupQuantity, LEAST_ROWS};
use crate::{
    Error,
    newton::{BoundedFit, MeanBound, RowMean, RowScore},
    ranks::Ranks,
    task::FitTask,
    terms::{ModelTerms, RowInputs},
};
use std::path::PathBuf;
use strust::stop::StopReason;
use strust_data::words::{joined, plural};

/// Rounds at most until decisions satisfy the bounds.
const ROUNDS: usize = 12;
/// A solution is good enough if another round makes f lower by less than this share.
const WORTH: f64 = 1e-3;
/// The largest violation of a bound on the training rows, up to one row of a rate.
pub(crate) const VIOLATION: f64 = 1e-6;

/// Bounds on means over the training rows.
pub(crate) struct FairProblem {
    counted: Vec<RowMean>,
    bounds: Vec<MeanBound>,
    /// The text of the option that each bound comes from.
    texts: Vec<String>,
    /// The largest violation of each bound. A rate of n rows changes by 1/n.
    tolerances: Vec<f64>,
    path: PathBuf,
    /// Sentences about rows that do not count.
    pub(crate) notes: Vec<String>,
}

/// A model that satisfies its bounds.
pub(crate) struct FairFit {
    pub(crate) x: Vec<f64>,
    pub(crate) value: f64,
    /// The largest violation of a bound on the training rows, in units of the largest that is accepted.
    pub(crate) violation: f64,
    pub(crate) converged: bool,
}

impl FairProblem {
    /// The bounds for the terms of a fit.
    pub(crate) fn new<R: RowInputs>(
        set: &FairSet,
        terms: &ModelTerms<'_, R>,
        task: &FitTask,
        ranks: &Ranks<'_>,
    ) -> Result<Self, Error> {
        let path = set.path.clone();
        let mut problem =
            Self { counted: vec![], bounds: vec![], texts: vec![], tolerances: vec![], path, notes: vec![] };
        for (k, rule) in set.asked.options.rules.iter().enumerate() {
            let column = &set.asked.columns[k];
            let group = |position: usize| set.codes[k][terms.index[position]];
            let mut few = Vec::new();
            for (g, name) in column.groups.iter().enumerate() {
                let positions = counted(terms, rule.quantity, |position| group(position) == Some(g));
                let count = ranks.total(positions.len() as f64);
                if count < LEAST_ROWS {
                    few.push(format!("`{name}`"));
                    continue;
                }
                let mean = problem.push(rule.quantity, positions, task);
                for sign in [1.0, -1.0] {
                    problem.bounds.push(MeanBound { mean, sign, middle: Some(k), most: 0.5 * rule.bound });
                    problem.tolerances.push(0.5 * tolerance(rule.quantity, count));
                    problem.texts.push(rule.to_string());
                }
            }
            if !few.is_empty() {
                problem.notes.push(format!(
                    "{rule}: {} has fewer than two such training rows, so it is not compared",
                    joined(&few)
                ));
            }
            let blank = (0..terms.index.len()).filter(|&position| group(position).is_none()).count();
            let blank = ranks.total(blank as f64) as usize;
            if blank > 0 {
                problem.notes.push(format!(
                    "{} without `{}` belong to no group of --fair",
                    plural(blank, "training row"),
                    rule.column
                ));
            }
        }
        for limit in &set.asked.options.limits {
            let positions = counted(terms, limit.quantity, |_| true);
            let (sign, most) = match limit.quantity {
                // 1 − the true-positive rate.
                GroupQuantity::FalseNegative => (-1.0, limit.bound - 1.0),
                _ => (1.0, limit.bound),
            };
            let count = ranks.total(positions.len() as f64);
            if count < 1.0 {
                continue;
            }
            let mean = problem.push(limit.quantity, positions, task);
            problem.bounds.push(MeanBound { mean, sign, middle: None, most });
            problem.tolerances.push(tolerance(limit.quantity, count));
            problem.texts.push(limit.to_string());
        }
        ranks.check()?;
        Ok(problem)
    }

    fn push(&mut self, quantity: GroupQuantity, positions: Vec<usize>, task: &FitTask) -> usize {
        let score = match (task, quantity) {
            (FitTask::Regression { mean, deviation, .. }, _) => RowScore::Output { shift: *mean, scale: *deviation },
            (_, GroupQuantity::Loss) => RowScore::Wrong,
            _ if quantity.is_rate() => RowScore::Decision,
            _ => RowScore::Probability { width: 1.0 },
        };
        self.counted.push(RowMean { positions, score, plus: 0.0 });
        self.counted.len() - 1
    }

    /// The largest violation by some means, in units of its tolerance, and the part of each bound in its own largest one.
    /// A violation of a difference is split between its two groups: most of it is that of the group with fewer rows.
    fn violations(&self, means: &[f64]) -> (f64, Vec<f64>) {
        let excess = |i: usize| self.bounds[i].sign * means[self.bounds[i].mean] - self.bounds[i].most;
        let (mut worst, mut parts) = (0.0_f64, vec![0.0_f64; self.bounds.len()]);
        for (i, bound) in self.bounds.iter().enumerate() {
            for (j, other) in self.bounds.iter().enumerate() {
                let is_pair = match bound.middle {
                    Some(_) => other.middle == bound.middle && other.sign * bound.sign < 0.0,
                    None => i == j,
                };
                let (violation, tolerances) = (0.5 * (excess(i) + excess(j)), [i, j].map(|k| self.tolerances[k]));
                if is_pair && violation > 0.5 * VIOLATION {
                    worst = worst.max(violation / tolerances[0].max(tolerances[1]));
                    parts[i] = parts[i].max(2.0 * violation * tolerances[0] / (tolerances[0] + tolerances[1]));
                }
            }
        }
        (worst, parts)
    }

    fn infeasible(&self) -> Error {
        let mut texts = self.texts.clone();
        texts.dedup();
        let all = joined(&texts);
        Error::file(
            &self.path,
            format!("no model was found that satisfies the bounds on the training rows ({all}): relax one of them"),
        )
    }

    /// The best model that satisfies the bounds.
    ///
    /// A rate has no slope. Its place takes a mean of steep probabilities, plus the difference between the two at earlier
    /// solutions. So where the solutions no longer change, the rates satisfy their bounds. If some do not, by at most one row
    /// of a group, the answer is the solution that violates them the least.
    pub(crate) fn solve<R: RowInputs + Sync>(
        &self,
        fit: &BoundedFit<'_, '_, R>,
        ranks: &Ranks<'_>,
        each: &mut dyn FnMut(f64, Vec<f64>),
    ) -> Result<FairFit, Error> {
        let free = fit.free();
        if self.violations(&fit.means(&self.counted, free)?).0 <= 0.0 {
            return Ok(FairFit { x: free.to_vec(), value: 0.0, violation: 0.0, converged: true });
        }
        let smooth = self.smooth(fit, ranks)?;
        let has_rates = smooth.iter().zip(&self.counted).any(|(mean, counted)| mean.score != counted.score);
        let (mut means, mut bounds) = (smooth.clone(), self.bounds.clone());
        let (mut x, mut best) = (None::<Vec<f64>>, None::<FairFit>);
        let (mut last, mut margins) = (vec![f64::INFINITY; bounds.len()], vec![0.0; bounds.len()]);
        for round in 0..if has_rates { ROUNDS } else { 1 } {
            if has_rates {
                let share = 2.0 / (round as f64 + 2.0);
                let here = x.as_deref().unwrap_or(free);
                let (smooth, counted) = (fit.means(&smooth, here)?, fit.means(&self.counted, here)?);
                for (mean, (smooth, counted)) in means.iter_mut().zip(smooth.iter().zip(&counted)) {
                    mean.plus += share * (counted - smooth - mean.plus);
                }
            }
            let found = fit.minimum(&means, &bounds, x.as_deref(), each)?;
            if found.reason == StopReason::Infeasible {
                break;
            }
            let (violation, parts) = self.violations(&fit.means(&self.counted, &found.x)?);
            x = Some(found.x.clone());
            let converged = found.reason.converged();
            let found = FairFit { x: found.x, value: found.value, violation, converged };
            let is_enough = violation <= 0.0
                && best.as_ref().is_some_and(|best| best.violation <= 0.0 && found.value > (1.0 - WORTH) * best.value);
            if best.as_ref().is_none_or(|best| found.is_better(best)) {
                best = Some(found);
            }
            if is_enough {
                break;
            }
            // Counts are whole numbers, so a bound that is missed by a row must be tightened.
            for (k, (tight, bound)) in bounds.iter_mut().zip(&self.bounds).enumerate() {
                if parts[k] > 0.5 * last[k] {
                    margins[k] = parts[k].max(2.0 * margins[k]);
                    // A difference has two sides, and none of them is below 0.
                    let least = if bound.middle.is_some() { 0.0 } else { f64::NEG_INFINITY };
                    tight.most = (bound.most - margins[k]).max(least);
                }
            }
            last = parts;
        }
        best.filter(|best| best.violation <= 1.0).ok_or_else(|| self.infeasible())
    }

    /// The means with steep probabilities in the place of decisions: a distribution function that is smoothed by a kernel,
    /// whose width is that of Silverman (1986, equation 3.31) for the outputs without bounds.
    fn smooth<R: RowInputs + Sync>(
        &self,
        fit: &BoundedFit<'_, '_, R>,
        ranks: &Ranks<'_>,
    ) -> Result<Vec<RowMean>, Error> {
        let smooth = |mean: &RowMean| {
            if mean.score != RowScore::Decision {
                return Ok(mean.clone());
            }
            let count = ranks.total(mean.positions.len() as f64);
            let deviation = 0.9 * fit.deviation(&mean.positions)? * count.powf(-0.2);
            // The logistic distribution with the width 1 has the deviation π/√3.
            let width = (deviation * 3.0_f64.sqrt() / std::f64::consts::PI).max(1e-3);
            Ok(RowMean { score: RowScore::Probability { width }, ..mean.clone() })
        };
        self.counted.iter().map(smooth).collect()
    }
}

impl FairFit {
    fn is_better(&self, other: &Self) -> bool {
        self.violation < other.violation || self.violation <= other.violation && self.value < other.value
    }
}

/// The largest violation of a bound on a mean of so many rows.
fn tolerance(quantity: GroupQuantity, count: f64) -> f64 {
    VIOLATION + if quantity.is_rate() { 1.0 / count } else { 0.0 }
}

/// The positions of the terms that count for a quantity and that `is_in` takes.
fn counted<R>(terms: &ModelTerms<'_, R>, quantity: GroupQuantity, is_in: impl Fn(usize) -> bool) -> Vec<usize> {
    let counts = |&position: &usize| {
        quantity.only().is_none_or(|only| only.total_cmp(&terms.goals[terms.index[position]]).is_eq())
    };
    (0..terms.index.len()).filter(counts).filter(|&position| is_in(position)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The difference of two means of 1000 scores, and that of the rates of 1000, 1000 and 2 rows: both at most 0.1.
    fn problem() -> FairProblem {
        let bound = |mean, sign, k| MeanBound { mean, sign, middle: Some(k), most: 0.05 };
        let of = |(mean, k): (usize, usize)| [bound(mean, 1.0, k), bound(mean, -1.0, k)];
        let bounds: Vec<MeanBound> = [(0, 0), (1, 0), (2, 1), (3, 1), (4, 1)].into_iter().flat_map(of).collect();
        let half = |bound: &MeanBound| match bound.mean {
            0 | 1 => 0.5 * tolerance(GroupQuantity::Score, 1000.0),
            mean => 0.5 * tolerance(GroupQuantity::Rate, if mean == 4 { 2.0 } else { 1000.0 }),
        };
        let tolerances = bounds.iter().map(half).collect();
        let path = PathBuf::new();
        FairProblem { counted: vec![], bounds, texts: vec![], tolerances, path, notes: vec![] }
    }

    #[test]
    fn a_group_of_two_rows_neither_loosens_nor_tightens_the_bounds_of_others() {
        let problem = problem();
        // The rate of two rows is 0.35 too large: most of that is its own part, and scores have none.
        let (violation, parts) = problem.violations(&[0.3, 0.4, 0.55, 0.55, 1.0]);
        assert!(violation > 0.69 && violation < 0.71, "{violation} of a row");
        assert!(parts[8] > 0.34 && parts[5].max(parts[7]) < 1e-3 && parts[..4].iter().all(|part| *part <= 0.0));
        // Scores may not be off by 10⁻⁵, and the rates of many rows not by two rows.
        assert!(problem.violations(&[0.3, 0.400_01, 0.55, 0.55, 0.5]).0 > 1.0);
        assert!(problem.violations(&[0.3, 0.4, 0.45, 0.551, 0.5]).0 <= 1.0);
        assert!(problem.violations(&[0.3, 0.4, 0.45, 0.552, 0.5]).0 > 1.0);
    }
}
