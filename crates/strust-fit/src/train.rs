//! Training: `Auto` without settings on mini-batches, until a score no longer improves.
//!
//! | model | score after each round | a round | ends after | improvement that counts |
//! |---|---|---|---|---|
//! | linear, logistic, softmax | the objective on all training rows | an epoch, but at least 50 steps | 3 rounds | 5·10⁻⁴ |
//! | mlp | the loss on a tenth of the training rows, which are held out | an epoch, but at least 20 steps | 10 rounds | 10⁻³ |
//!
//! An improvement is relative to the best score before; one below 10⁻⁹ (mlp: 10⁻⁵) never counts. The answer is the point
//! with the best score.

use crate::{
    Error,
    encoded::EncodedRows,
    linear::LinearModel,
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
    objective::{Objective, Stoppable, full_value},
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
}

/// The losses after a round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LearningPoint {
    /// Passes over the training rows.
    pub epoch: f64,
    /// The mean loss on the training rows: for a network that of the batches since the last round.
    pub training: f64,
    /// The mean loss on the held-out rows.
    pub held_out: Option<f64>,
}

/// The result of training.
#[derive(Debug, Clone)]
pub(crate) struct Trained {
    pub(crate) weights: Weights,
    pub(crate) curve: Vec<LearningPoint>,
    pub(crate) end: TrainingEnd,
    /// Epochs made.
    pub(crate) epochs: f64,
    pub(crate) batch: usize,
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
}

impl<'a> TrainingLimits<'a> {
    /// The objective of all ranks, whose measurements end when one of them stops.
    pub(crate) fn stoppable<F: Objective>(&self, f: F) -> Stoppable<F, impl Fn() -> bool + use<'a, F>> {
        let (interrupted, any_stops) = (self.interrupted, self.any_stops);
        Stoppable::new(f, move || any_stops(interrupted()))
    }
}

impl<'a> MeasuredRows<'a> {
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
    /// The mean loss as a function of the weights.
    fn loss_of_weights(self) -> impl FnMut(&Weights) -> Option<f64> + 'a {
        let mut space = LayerSpace::default();
        move |weights| self.mean_loss(weights, &mut space)
    }
}

/// The batch of a linear model. A step costs some passes over vectors of the parameters, so a batch must have as many
/// entries as there are parameters for its rows to cost more than that. With many rows, larger batches average more.
pub(crate) fn linear_batch(inputs: usize, stored_per_row: f64, terms: usize) -> usize {
    let vectors = (inputs as f64 / stored_per_row.max(1.0)).ceil() as usize;
    vectors.max(64).max(terms / 2000).min(4096).min((terms / 8).max(1))
}

/// Trains a linear, logistic or softmax model. `terms` are the rows of the file that are terms of the sum, on all ranks.
pub(crate) fn linear(
    data: ModelTerms<'_, EncodedRows>,
    terms: &[usize],
    held_out: MeasuredRows<'_>,
    limits: &mut TrainingLimits<'_>,
) -> Result<Trained, Error> {
    let (model, ranks) = (LinearModel::new(data), held_out.ranks);
    let mut scored = Stoppable::new(model.clone(), limits.interrupted);
    let own_share = model.terms() as f64 / terms.len() as f64;
    let widths = vec![data.rows.inputs(), data.outputs];
    let stored = data.rows.stored_per_row(ranks)?;
    let (start, batch) = (vec![0.0; model.parameters()], linear_batch(data.rows.inputs(), stored, terms.len()));
    // One sum, where the mini-batches of a pass would take many.
    let score = &mut |x: &Vec<f64>, _: &Weights| ranks.total(own_share * full_value(&mut scored, x));
    let (f, held_out) = (&mut dealt(model, terms, ranks), &mut held_out.loss_of_weights());
    trained(Training { f, start, batch, widths: &widths, rule: StopRule::LINEAR, held_out, score }, limits)
}

/// Trains a network with hidden layers.
pub(crate) fn network(
    data: ModelTerms<'_, EncodedRows>,
    terms: &[usize],
    hidden: &[usize],
    validation: MeasuredRows<'_>,
    held_out: MeasuredRows<'_>,
    limits: &mut TrainingLimits<'_>,
) -> Result<Trained, Error> {
    let widths = [&[data.rows.inputs()], hidden, &[data.outputs]].concat();
    let model = NetworkModel::new(data, &widths)?;
    let batch = network_batch(terms.len());
    let mut space = LayerSpace::default();
    let score =
        &mut |_: &Vec<f32>, weights: &Weights| validation.mean_loss(weights, &mut space).unwrap_or(f64::INFINITY);
    let start = model.start(limits.seed);
    let (f, held_out) = (&mut dealt(model, terms, held_out.ranks), &mut held_out.loss_of_weights());
    trained(Training { f, start, batch, widths: &widths, rule: StopRule::NETWORK, held_out, score }, limits)
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
    /// That of models whose score is the objective.
    pub(crate) const LINEAR: Self = Self { least_steps: 50, patience: 3, tolerance: 5e-4, least: 1e-9 };
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
    /// The mean loss on the held-out rows, if there are any.
    pub(crate) held_out: &'a mut dyn FnMut(&Weights) -> Option<f64>,
    pub(crate) score: &'a mut dyn FnMut(&V, &Weights) -> f64,
}

/// Trains by `Auto`.
pub(crate) fn trained<V: Elementwise>(
    training: Training<'_, V>,
    limits: &mut TrainingLimits<'_>,
) -> Result<Trained, Error> {
    let Training { f, start, batch, widths, rule, held_out, score } = training;
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
        batches: (0.0, 0),
        end: None,
        held_out,
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
    Ok(Trained { weights: watch.best, curve: watch.curve, end, epochs, batch })
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
    /// The sum and the number of the values of batches since the last round.
    batches: (f64, u64),
    end: Option<TrainingEnd>,
    held_out: &'a mut dyn FnMut(&Weights) -> Option<f64>,
    score: &'a mut dyn FnMut(&V, &Weights) -> f64,
    limits: &'a mut TrainingLimits<'b>,
}

impl<V: Vector> Observer<V> for &mut TrainingWatch<'_, '_, V> {
    fn step(&mut self, record: &StepRecord, x: &V) -> ControlFlow<()> {
        self.batches.0 += record.value;
        self.batches.1 += 1;
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
        let held_out = (self.held_out)(&self.now);
        // A measurement that was stopped says nothing.
        if (self.limits.any_stops)((self.limits.interrupted)()) {
            self.end = Some(TrainingEnd::Interrupted);
            return ControlFlow::Break(());
        }
        if self.scores.iter().all(|&before| score < before) {
            self.best.flat.clone_from(&self.now.flat);
        }
        self.scores.push(score);
        let epoch = (record.k + 1) as f64 / self.steps_per_epoch as f64;
        let training = self.batches.0 / self.batches.1 as f64;
        self.curve.push(LearningPoint { epoch, training, held_out });
        self.batches = (0.0, 0);
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
