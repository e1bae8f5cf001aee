//! Training. Linear models end at their minimum (`newton`).
//!
//! Networks learn by `Auto` from mini-batches, without settings. The score is the loss on a tenth of the training rows, which
//! are held out, after each epoch of at least 20 steps. Training ends when 10 rounds did not improve the best score by 10⁻³ of
//! it; an improvement below 10⁻⁵ never counts. The answer is the point with the best score.

use crate::{
    Error,
    encoded::EncodedRows,
    network::NetworkModel,
    ranks::Ranks,
    scored::MeasuredRows,
    terms::ModelTerms,
    weights::{LayerSpace, Weights},
};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use strust::{
    minimize,
    objective::{Objective, Stoppable},
    ranks::Sharded,
    record::StepRecord,
    run::Observer,
    stop::{Stop, StopReason},
    vector::{Elementwise, Vector},
};

/// Epochs, if the user names no number.
const MOST_EPOCHS: u64 = 1000;

/// Why training ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrainingEnd {
    /// The score no longer improved.
    Converged,
    /// The epochs were used up.
    Epochs,
    /// The user stopped it.
    Interrupted,
    /// The loss was no longer finite; the weights are the last good ones.
    Breakdown,
    /// The loss has no minimum: without a penalty, it falls forever where classes can be separated.
    NoMinimum,
}

/// The losses of one point that training reached. Both are mean losses without the penalty, so they can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LearningPoint {
    /// Passes over the training rows, or steps on all of them.
    pub epoch: f64,
    /// The mean loss on a fixed sample of the training rows.
    pub training: f64,
    /// The mean loss on the held-out rows, if there are any.
    pub held_out: Option<f64>,
}

/// The result of training.
#[derive(Debug, Clone)]
pub(crate) struct Trained {
    pub(crate) weights: Weights,
    /// The weights without bounds between groups, if there are such bounds.
    pub(crate) free: Option<Weights>,
    pub(crate) curve: Vec<LearningPoint>,
    pub(crate) end: TrainingEnd,
    /// Epochs made.
    pub(crate) epochs: f64,
    pub(crate) batch: usize,
    /// The standard errors of the weights, if they are known.
    pub(crate) errors: Option<Vec<f64>>,
}

/// The limits of training.
pub(crate) struct TrainingLimits<'a> {
    pub(crate) epochs: Option<u64>,
    pub(crate) seed: u64,
    /// Asked after each step, and during measurements, whether to stop.
    pub(crate) interrupted: &'a dyn Fn() -> bool,
    /// Whether one of the ranks stops, from whether this one does. All ranks ask at the same steps.
    pub(crate) any_stops: &'a dyn Fn(bool) -> bool,
    /// Called after each round with the epochs and the score.
    pub(crate) report: &'a mut dyn FnMut(f64, f64),
    /// The losses of some weights at an epoch; `None` if there is no learning curve.
    pub(crate) losses: &'a mut dyn FnMut(f64, &Weights) -> Option<LearningPoint>,
}

impl<'a> TrainingLimits<'a> {
    /// The objective of all ranks, whose measurements end when one of them stops.
    pub(crate) fn stoppable<F: Objective>(&self, f: F) -> Stoppable<F, impl Fn() -> bool + use<'a, F>> {
        let (interrupted, any_stops) = (self.interrupted, self.any_stops);
        Stoppable::new(f, move || any_stops(interrupted()))
    }

    /// The point of the learning curve for some weights. A measurement that was stopped is none.
    pub(crate) fn learned(&mut self, epoch: f64, weights: &Weights) -> Option<LearningPoint> {
        let is_whole = |point: &LearningPoint| !point.training.is_nan() && !point.held_out.is_some_and(f64::is_nan);
        (self.losses)(epoch, weights).filter(is_whole)
    }
}

impl MeasuredRows<'_> {
    /// The mean loss; `None` without rows. If a rank is interrupted, it is NaN on all of them.
    pub(crate) fn mean_loss(&self, weights: &Weights, space: &mut LayerSpace) -> Option<f64> {
        let (mut z, loss) = (vec![0.0; weights.outputs()], self.task.loss());
        let (mut sum, share) = (0.0, self.ranks.share());
        for i in self.index.iter().filter(|&&i| share.owns(i)).map(|&i| share.place(i)) {
            if self.ranks.is_interrupted() {
                sum = f64::NAN;
                break;
            }
            z.copy_from_slice(weights.apply(&self.data.rows, i, space));
            sum += loss.differentiate(&mut z, self.data.goals[i]);
        }
        (!self.index.is_empty()).then(|| self.ranks.total(sum) / self.index.len() as f64)
    }
    /// The loss of each row. If a rank is interrupted, it is [`Error::Interrupted`] on all of them.
    pub(crate) fn row_losses(&self, weights: &Weights) -> Result<Vec<f64>, Error> {
        let (mut space, mut z, share) = (LayerSpace::default(), vec![0.0; weights.outputs()], self.ranks.share());
        let loss = |&i: &usize| {
            z.copy_from_slice(weights.apply(&self.data.rows, i, &mut space));
            self.task.loss().differentiate(&mut z, self.data.goals[i])
        };
        let mine = share.places(self.index).iter().take_while(|_| !self.ranks.is_interrupted()).map(loss).collect();
        self.ranks.proceed()?;
        self.ranks.collect(self.index.iter().map(|&i| share.owner(i)), 1, mine)
    }
}

/// Trains a network with hidden layers.
pub(crate) fn network(
    data: ModelTerms<'_, EncodedRows>,
    terms: &[usize],
    hidden: &[usize],
    validation: MeasuredRows<'_>,
    limits: &mut TrainingLimits<'_>,
) -> Result<Trained, Error> {
    let widths = [&[data.rows.inputs()], hidden, &[data.outputs]].concat();
    let model = NetworkModel::new(data, &widths)?;
    let batch = network_batch(terms.len());
    let mut space = LayerSpace::default();
    let score =
        &mut |_: &Vec<f32>, weights: &Weights| validation.mean_loss(weights, &mut space).unwrap_or(f64::INFINITY);
    let start = model.start(limits.seed);
    let f = &mut dealt(model, terms, validation.ranks);
    trained(Training { f, start, batch, widths: &widths, rule: StopRule::NETWORK, score }, limits)
}

/// An objective whose terms are rows of the file, each on the rank that has the row.
pub(crate) fn dealt<'a, F: Objective>(model: F, terms: &[usize], ranks: &'a Ranks<'a>) -> Sharded<F, &'a Ranks<'a>> {
    let share = ranks.share();
    Sharded::dealt(model, ranks, terms.iter().map(|&i| share.owner(i)))
}

/// A run that ended because the ranks lost each other has no result. Every other breakdown has its last good point.
pub(crate) fn check_ranks(breakdown: Option<&strust::Error>) -> Result<(), Error> {
    match breakdown {
        Some(lost @ strust::Error::Ranks { .. }) => Err(lost.clone().into()),
        _ => Ok(()),
    }
}

/// When training ends.
#[derive(Clone, Copy)]
pub(crate) struct StopRule {
    /// Steps of a round, if an epoch has fewer.
    pub(crate) least_steps: u64,
    /// Rounds without progress.
    pub(crate) patience: usize,
    /// The relative improvement that counts as progress.
    pub(crate) tolerance: f64,
    /// The smallest improvement that counts, whatever the score is.
    pub(crate) least: f64,
}

impl StopRule {
    /// That of networks, whose score is a loss on other rows.
    pub(crate) const NETWORK: Self = Self { least_steps: 20, patience: 10, tolerance: 1e-3, least: 1e-5 };
}

/// The batch of a network.
pub(crate) fn network_batch(terms: usize) -> usize {
    (terms / 500).clamp(32, 256).min((terms / 4).max(1))
}

/// What to train, and how it is scored.
pub(crate) struct Training<'a, V> {
    pub(crate) f: &'a mut dyn Objective<Point = V>,
    pub(crate) start: V,
    pub(crate) batch: usize,
    pub(crate) widths: &'a [usize],
    pub(crate) rule: StopRule,
    pub(crate) score: &'a mut dyn FnMut(&V, &Weights) -> f64,
}

/// Trains by `Auto`.
pub(crate) fn trained<V: Elementwise>(
    training: Training<'_, V>,
    limits: &mut TrainingLimits<'_>,
) -> Result<Trained, Error> {
    let Training { f, start, batch, widths, rule, score } = training;
    let steps_per_epoch = f.terms().div_ceil(batch) as u64;
    let weights = Weights { widths: widths.to_vec(), flat: start.components() };
    let (seed, cap) = (limits.seed, limits.epochs.unwrap_or(MOST_EPOCHS));
    let mut f = limits.stoppable(f);
    let mut watch = TrainingWatch {
        rule,
        steps_per_epoch,
        round: rule.least_steps.div_ceil(steps_per_epoch) * steps_per_epoch,
        best: weights.clone(),
        now: weights,
        scores: Vec::new(),
        curve: Vec::new(),
        end: None,
        score,
        limits,
    };
    // Behind a pointer, so that the method is compiled once for each type of point.
    let mut f: &mut dyn Objective<Point = V> = &mut f;
    let report = minimize(&mut f).batch(batch).seed(seed).stop(Stop::epochs(cap)).observe(&mut watch).start(start)?;
    check_ranks(report.breakdown.as_ref())?;
    let end = match report.reason {
        StopReason::Breakdown => TrainingEnd::Breakdown,
        // Without an end here, another rank was stopped.
        StopReason::Observer => watch.end.unwrap_or(TrainingEnd::Interrupted),
        _ => watch.end.unwrap_or(TrainingEnd::Epochs),
    };
    if watch.scores.is_empty() {
        // It ended before the first round.
        watch.best.flat = report.point().components();
    }
    let epochs = report.steps as f64 / steps_per_epoch as f64;
    Ok(Trained { weights: watch.best, free: None, curve: watch.curve, end, epochs, batch, errors: None })
}

/// Scores the point after each round, and keeps the best one.
struct TrainingWatch<'a, 'b, V> {
    rule: StopRule,
    steps_per_epoch: u64,
    round: u64,
    now: Weights,
    best: Weights,
    scores: Vec<f64>,
    curve: Vec<LearningPoint>,
    end: Option<TrainingEnd>,
    score: &'a mut dyn FnMut(&V, &Weights) -> f64,
    limits: &'a mut TrainingLimits<'b>,
}

impl<V: Vector> Observer<V> for &mut TrainingWatch<'_, '_, V> {
    fn step(&mut self, record: &StepRecord, x: &V) -> ControlFlow<()> {
        let (stop, scores) = ((self.limits.interrupted)(), (record.k + 1).is_multiple_of(self.round));
        // All ranks score together, or none does. At other steps the run itself stops the others.
        if if scores { (self.limits.any_stops)(stop) } else { stop } {
            self.end = Some(TrainingEnd::Interrupted);
            return ControlFlow::Break(());
        }
        if !scores {
            return ControlFlow::Continue(());
        }
        self.now.flat = x.components();
        let score = (self.score)(x, &self.now);
        let epoch = (record.k + 1) as f64 / self.steps_per_epoch as f64;
        let point = self.limits.learned(epoch, &self.now);
        // A measurement that was stopped says nothing.
        if (self.limits.any_stops)((self.limits.interrupted)()) {
            self.end = Some(TrainingEnd::Interrupted);
            return ControlFlow::Break(());
        }
        if self.scores.iter().all(|&before| score < before) {
            self.best.flat.clone_from(&self.now.flat);
        }
        self.scores.push(score);
        self.curve.extend(point);
        (self.limits.report)(epoch, score);
        self.end = stagnated(&self.scores, self.rule).then_some(TrainingEnd::Converged);
        if self.end.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Whether the last rounds did not improve the best score by enough.
fn stagnated(scores: &[f64], rule: StopRule) -> bool {
    let Some(split) = scores.len().checked_sub(rule.patience).filter(|&split| split > 0) else { return false };
    let least = |scores: &[f64]| scores.iter().copied().fold(f64::INFINITY, f64::min);
    let before = least(&scores[..split]);
    before - least(&scores[split..]) <= (rule.tolerance * before.abs()).max(rule.least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn training_ends_when_the_best_score_no_longer_improves() {
        let rule = StopRule { least_steps: 1, patience: 2, tolerance: 0.1, least: 0.01 };
        assert!(!stagnated(&[1.0, 1.0], rule));
        assert!(stagnated(&[1.0, 1.0, 0.95], rule));
        assert!(!stagnated(&[1.0, 1.0, 0.8], rule));
        assert!(stagnated(&[1.0, 0.5, 0.6, 0.7], rule));
        assert!(stagnated(&[0.01, 0.001, 0.001], rule));
    }
}
