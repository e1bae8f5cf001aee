//! The fit with bounds.

use super::{FairSet, LEAST_ROWS, Quantity};
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

/// Fits at most until decisions satisfy the bounds.
const ROUNDS: usize = 20;
/// The largest violation of a bound on the training rows.
pub(crate) const VIOLATION: f64 = 1e-6;

/// Bounds on means over the training rows.
pub(crate) struct FairProblem {
    means: Vec<RowMean>,
    /// The same as the program counts them.
    counted: Vec<RowMean>,
    bounds: Vec<MeanBound>,
    /// The text of the option that each bound comes from.
    texts: Vec<String>,
    path: PathBuf,
    /// Sentences about rows that do not count.
    pub(crate) notes: Vec<String>,
}

/// A model that satisfies its bounds.
pub(crate) struct FairFit {
    pub(crate) x: Vec<f64>,
    pub(crate) value: f64,
    pub(crate) steps: u64,
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
        let mut problem = Self { means: vec![], counted: vec![], bounds: vec![], texts: vec![], path, notes: vec![] };
        for (k, rule) in set.asked.options.rules.iter().enumerate() {
            let column = &set.asked.columns[k];
            let group = |position: usize| set.codes[k][terms.index[position]];
            let mut few = Vec::new();
            for (g, name) in column.groups.iter().enumerate() {
                let positions = counted(terms, rule.quantity, |position| group(position) == Some(g));
                if ranks.total(positions.len() as f64) < LEAST_ROWS {
                    few.push(format!("`{name}`"));
                    continue;
                }
                let mean = problem.push(rule.quantity, positions, task);
                for sign in [1.0, -1.0] {
                    problem.bounds.push(MeanBound { mean, sign, middle: Some(k), most: 0.5 * rule.bound });
                    problem.texts.push(rule.to_string());
                }
            }
            if !few.is_empty() {
                problem.notes.push(format!("{rule}: {} has fewer than two such training rows, so it is not compared", joined(&few)));
            }
            let blank = (0..terms.index.len()).filter(|&position| group(position).is_none()).count();
            let blank = ranks.total(blank as f64) as usize;
            if blank > 0 {
                problem.notes.push(format!("{} without `{}` belong to no group of --fair", plural(blank, "training row"), rule.column));
            }
        }
        for limit in &set.asked.options.limits {
            let positions = counted(terms, limit.quantity, |_| true);
            let (sign, most) = match limit.quantity {
                // 1 − the true-positive rate.
                Quantity::FalseNegative => (-1.0, limit.bound - 1.0),
                _ => (1.0, limit.bound),
            };
            if ranks.total(positions.len() as f64) < 1.0 {
                continue;
            }
            let mean = problem.push(limit.quantity, positions, task);
            problem.bounds.push(MeanBound { mean, sign, middle: None, most });
            problem.texts.push(limit.to_string());
        }
        ranks.check()?;
        Ok(problem)
    }

    fn push(&mut self, quantity: Quantity, positions: Vec<usize>, task: &FitTask) -> usize {
        let width: f64 = std::env::var("FAIR_WIDTH").ok().and_then(|w| w.parse().ok()).unwrap_or(1.0);
        let score = match (task, quantity) {
            (FitTask::Regression { mean, deviation, .. }, _) => RowScore::Output { shift: *mean, scale: *deviation },
            (_, Quantity::Loss) => RowScore::Wrong,
            _ => RowScore::Probability { width: if quantity.is_rate() { width } else { 1.0 } },
        };
        let truth = if quantity.is_rate() { RowScore::Decision } else { score };
        self.counted.push(RowMean { positions: positions.clone(), score: truth, plus: 0.0 });
        self.means.push(RowMean { positions, score, plus: 0.0 });
        self.means.len() - 1
    }

    /// The largest violation of a bound by some means.
    fn violation(&self, means: &[f64]) -> f64 {
        let middles = self.bounds.iter().filter_map(|bound| bound.middle).max().map_or(0, |k| k + 1);
        let mut most = 0.0_f64;
        for k in (0..middles).map(Some).chain([None]) {
            let of = self.bounds.iter().filter(|bound| bound.middle == k);
            let excess: Vec<f64> = of.map(|bound| bound.sign * means[bound.mean] - bound.most).collect();
            // With the best middle, the two largest excesses of opposite sign are equal.
            let side = |sign: f64| {
                let of = self.bounds.iter().filter(|bound| bound.middle == k).zip(&excess);
                of.filter(|(bound, _)| bound.sign == sign).fold(f64::NEG_INFINITY, |most, (_, e)| most.max(*e))
            };
            let worst = if k.is_some() { side(1.0) + side(-1.0) } else { side(1.0).max(side(-1.0)) };
            most = most.max(worst);
        }
        most
    }

    fn infeasible(&self) -> Error {
        let mut texts = self.texts.clone();
        texts.dedup();
        let all = joined(&texts);
        Error::file(&self.path, format!("no model was found that satisfies the bounds on the training rows ({all}): relax one of them"))
    }

    /// The best model that satisfies the bounds.
    ///
    /// A rate has no slope. Its place takes a mean of probabilities, plus the difference between the two at the last
    /// solution. So where the solutions no longer change, the rates satisfy their bounds.
    pub(crate) fn solve<R: RowInputs + Sync>(
        &self,
        fit: &BoundedFit<'_, '_, R>,
        start: Option<&[f64]>,
        each: &mut dyn FnMut(f64, Vec<f64>),
    ) -> Result<FairFit, Error> {
        let free = fit.free();
        let of_free = fit.means(&self.counted, free)?;
        if self.violation(&of_free) <= 0.0 {
            return Ok(FairFit { x: free.to_vec(), value: f64::NAN, steps: 0, converged: true });
        }
        let has_rates = self.means.iter().zip(&self.counted).any(|(mean, counted)| mean.score != counted.score);
        let mut means = self.means.clone();
        let mut x = start.unwrap_or(free).to_vec();
        let (mut steps, mut best) = (0, None::<FairFit>);
        for round in 0..if has_rates { ROUNDS } else { 1 } {
            if has_rates {
                let (smooth, counted) = (fit.means(&self.means, &x)?, fit.means(&self.counted, &x)?);
                for (mean, (smooth, counted)) in means.iter_mut().zip(smooth.iter().zip(&counted)) {
                    mean.plus = counted - smooth;
                }
            }
            let found = fit.minimum(&means, &self.bounds, &x, each)?;
            steps += found.steps;
            if found.reason == StopReason::Infeasible {
                break;
            }
            let counted = fit.means(&self.counted, &found.x)?;
            let violation = self.violation(&counted);
            if std::env::var_os("DEBUG_FAIR").is_some() {
                eprintln!("round {round}: {:?} f {:.8} steps {} counted {counted:.5?} violation {violation:.2e}", found.reason, found.value, found.steps);
            }
            x.clone_from(&found.x);
            let is_better = best.as_ref().is_none_or(|best| found.value < best.value);
            if violation <= VIOLATION && is_better {
                best = Some(FairFit { x: found.x, value: found.value, steps, converged: found.reason.converged() });
            }
        }
        best.ok_or_else(|| self.infeasible())
    }
}

/// The positions of the terms that count for a quantity and that `is_in` takes.
fn counted<R>(terms: &ModelTerms<'_, R>, quantity: Quantity, is_in: impl Fn(usize) -> bool) -> Vec<usize> {
    let counts = |&position: &usize| {
        quantity.only().is_none_or(|only| only.total_cmp(&terms.goals[terms.index[position]]).is_eq())
    };
    (0..terms.index.len()).filter(counts).filter(|&position| is_in(position)).collect()
}
