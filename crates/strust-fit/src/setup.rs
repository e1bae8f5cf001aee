//! How the model of a fit is trained.

use crate::{
    Error,
    constrain::{ConstrainedRows, ConstraintEffect, WeightRule, constrained, effects},
    encoded::EncodedRows,
    fair::{FairProblem, FairSet, HiddenRows},
    newton::{self, BoundedFit},
    options::FitOptions,
    ranks::Ranks,
    saved::ModelFamily,
    scored::{MeasuredRows, ScoredRows},
    split::split,
    task::{FitTask, HUBER, robust_deviation},
    terms::{ModelTerms, RowInputs},
    train::{self, LearningPoint, Trained, TrainingEnd, TrainingLimits},
    transform::Encoder,
    weights::{LayerSpace, Weights},
};
use strust_data::limits;

/// The share of the training rows on which a network is scored while it learns.
const VALIDATION: f64 = 0.1;

/// All that training needs to know.
#[derive(Clone, Copy)]
pub(crate) struct FitSetup<'a> {
    pub(crate) family: ModelFamily,
    pub(crate) l2: f64,
    /// The most epochs.
    pub(crate) epochs: Option<u64>,
    pub(crate) encoder: &'a Encoder,
    /// What must hold for the weights.
    pub(crate) rules: &'a [WeightRule],
    /// Bounds between groups and on rates.
    pub(crate) fair: Option<&'a FairSet>,
    pub(crate) options: &'a FitOptions,
    pub(crate) ranks: &'a Ranks<'a>,
}

/// Moves a layer of a trained model, which is a linear model of `terms`, to where the bounds hold.
fn under<R: RowInputs + Sync>(
    problem: &FairProblem,
    terms: ModelTerms<'_, R>,
    free: Trained,
    ranks: &Ranks<'_>,
    limits: &mut TrainingLimits<'_>,
) -> Result<Trained, Error> {
    let layer = free.weights.last_layer();
    let fit = BoundedFit::new(terms, &free.weights.flat[layer.clone()], ranks, limits.interrupted, limits.any_stops)?;
    let with = |flat: &[f64]| {
        let mut weights = free.weights.clone();
        weights.flat[layer.clone()].copy_from_slice(flat);
        weights
    };
    let (mut curve, mut epochs) = (Vec::new(), free.epochs);
    let found = problem.solve(&fit, ranks, &mut |value, flat| {
        epochs += 1.0;
        curve.extend(limits.learned(epochs, &with(&flat)));
        (limits.report)(epochs, value);
    })?;
    let weights = with(&fit.weights(&found.x));
    let end = if found.converged { free.end } else { TrainingEnd::Epochs };
    let curve = [free.curve, curve].concat();
    Ok(Trained { weights, free: Some(free.weights), curve, end, epochs, errors: None, ..free })
}

impl FitSetup<'_> {
    /// Trains a model on some rows. The learning curve has the loss on the held-out rows, too.
    pub(crate) fn train(
        &self,
        own: MeasuredRows<'_>,
        held_out: MeasuredRows<'_>,
        report: &mut dyn FnMut(f64, f64),
    ) -> Result<Trained, Error> {
        let ranks = self.ranks;
        let MeasuredRows { data: ScoredRows { rows, targets, .. }, index: training, task, .. } = own;
        let (learned, validation) = match self.family {
            ModelFamily::Mlp => split(targets, training, VALIDATION, self.options.seed, 1),
            _ => (training.to_vec(), Vec::new()),
        };
        let index = ranks.share().places(&learned);
        let data = self.terms(own, &index);
        let entries = rows.stored_per_row(ranks)? * training.len() as f64;
        self.check_size(rows.inputs(), data.outputs, training.len(), entries as usize)?;
        if self.family == ModelFamily::Mlp {
            ranks.agree(self.check_precision(rows, &index))?;
        }
        // For the learning curve as many training rows as are held out, and at least a tenth of them.
        let part = (held_out.index.len() as f64 / learned.len() as f64).clamp(VALIDATION, 1.0);
        let sample = MeasuredRows { index: &split(targets, &learned, part, self.options.seed, 4).1, ..own };
        let space = &mut LayerSpace::default();
        let losses = &mut |epoch: f64, weights: &Weights| {
            let training = sample.mean_loss(weights, space)?;
            Some(LearningPoint { epoch, training, held_out: held_out.mean_loss(weights, space) })
        };
        self.limited(report, losses, |limits| {
            let trained = match self.family {
                ModelFamily::Mlp => {
                    let validation = MeasuredRows { index: &validation, ..own };
                    train::network(data, &learned, &self.options.hidden, validation, limits)
                }
                _ if self.rules.is_empty() => newton::minimum(data, newton::GAP, ranks, limits),
                _ => {
                    let factors = &self.factors(task);
                    let rows = ConstrainedRows { terms: data, of_file: training, ranks, factors };
                    constrained(&rows, self.rules, newton::GAP, limits)
                }
            }?;
            match self.fair {
                None => Ok(trained),
                // Its bounds do not hold yet.
                Some(_) if trained.end == TrainingEnd::Interrupted => Err(Error::Interrupted),
                Some(set) => self.bounded(set, own, trained, limits),
            }
        })
    }

    /// Continues from a model without bounds to one where they hold on all training rows. Of a network, the last layer
    /// moves: with the hidden layers fixed it is a linear model, whose minimum is exact.
    fn bounded(
        &self,
        set: &FairSet,
        own: MeasuredRows<'_>,
        free: Trained,
        limits: &mut TrainingLimits<'_>,
    ) -> Result<Trained, Error> {
        let index = self.ranks.share().places(own.index);
        let terms = self.terms(own, &index);
        let problem = &FairProblem::new(set, &terms, own.task, self.ranks)?;
        if self.family != ModelFamily::Mlp {
            return under(problem, terms, free, self.ranks, limits);
        }
        let hidden = HiddenRows::new(&free.weights, &terms, self.ranks)?;
        under(problem, hidden.terms(&terms), free, self.ranks, limits)
    }

    /// The weights of a trained model with other bounds, from those without bounds.
    pub(crate) fn under(&self, set: &FairSet, own: MeasuredRows<'_>, free: &Weights) -> Result<Weights, Error> {
        let (weights, curve, end) = (free.clone(), Vec::new(), TrainingEnd::Converged);
        let free = Trained { weights, free: None, curve, end, epochs: 0.0, batch: 0, errors: None };
        let bounded = |limits: &mut TrainingLimits<'_>| self.bounded(set, own, free, limits);
        Ok(self.limited(&mut |_, _| {}, &mut |_, _| None, bounded)?.weights)
    }

    /// The terms of the objective. `index` are those of the training rows that this rank has.
    fn terms<'b>(&self, own: MeasuredRows<'b>, index: &'b [usize]) -> ModelTerms<'b, EncodedRows> {
        ModelTerms {
            rows: &own.data.rows,
            index,
            goals: &own.data.goals,
            weights: None,
            units: None,
            loss: own.task.loss(),
            outputs: own.task.outputs(),
            penalty: self.l2 / own.index.len() as f64,
            intercept: self.options.intercept,
        }
    }

    /// Calls a function with the limits of training.
    fn limited<T>(
        &self,
        report: &mut dyn FnMut(f64, f64),
        losses: &mut dyn FnMut(f64, &Weights) -> Option<LearningPoint>,
        run: impl FnOnce(&mut TrainingLimits<'_>) -> T,
    ) -> T {
        let ranks = self.ranks;
        run(&mut TrainingLimits {
            epochs: self.epochs,
            seed: self.options.seed,
            interrupted: &|| ranks.is_interrupted(),
            any_stops: &|stop| ranks.any(stop),
            report,
            losses,
        })
    }

    /// The weights of a model of some rows, without a word; [`Error::Interrupted`] if it is stopped.
    pub(crate) fn weights(&self, own: MeasuredRows<'_>) -> Result<Weights, Error> {
        let nothing = MeasuredRows { index: &[], ..own };
        let trained = self.train(own, nothing, &mut |_, _| {})?;
        self.ranks.complete(trained.end != TrainingEnd::Interrupted)?;
        Ok(trained.weights)
    }

    /// The bound δ of Huber's loss: a multiple of the robust deviation of the residuals of a linear fit.
    pub(crate) fn huber_bound(&self, own: MeasuredRows<'_>) -> Result<f64, Error> {
        let pilot = Self { family: ModelFamily::Linear, rules: &[], fair: None, ..*self };
        let (weights, share) = (pilot.weights(own)?, self.ranks.share());
        let mut space = LayerSpace::default();
        let residual = |&i: &usize| (weights.apply(&own.data.rows, i, &mut space)[0] - own.data.goals[i]).abs();
        let mine = share.places(own.index).iter().map(residual).collect();
        let residuals = self.ranks.collect(own.index.iter().map(|&i| share.owner(i)), 1, mine)?;
        // If half of the rows are fitted exactly, the bound must still be above 0.
        Ok(HUBER * robust_deviation(residuals).max(1e-3))
    }

    /// Sentences about training rows that do not count for the bounds of `set`.
    pub(crate) fn fair_notes(&self, set: &FairSet, own: MeasuredRows<'_>) -> Result<Vec<String>, Error> {
        let index = self.ranks.share().places(own.index);
        Ok(FairProblem::new(set, &self.terms(own, &index), own.task, self.ranks)?.notes)
    }

    /// What the constraints do.
    pub(crate) fn effects(&self, own: MeasuredRows<'_>, weights: &Weights) -> Result<Vec<ConstraintEffect>, Error> {
        if self.rules.is_empty() {
            return Ok(Vec::new());
        }
        let index = self.ranks.share().places(own.index);
        let (terms, factors) = (self.terms(own, &index), &self.factors(own.task));
        let rows = ConstrainedRows { terms, of_file: own.index, ranks: self.ranks, factors };
        self.limited(&mut |_, _| {}, &mut |_, _| None, |limits| effects(&rows, self.rules, &weights.flat, limits))
    }

    /// Refuses a model that is far larger than the training rows explain: one index of LIBSVM text can be a billion.
    fn check_size(&self, inputs: usize, outputs: usize, rows: usize, entries: usize) -> Result<(), Error> {
        if self.family == ModelFamily::Mlp {
            let widths = [&[inputs], &*self.options.hidden, &[outputs]].concat();
            return limits::network(&widths, rows, size_of::<f32>(), entries).map_err(|why| {
                Error::Option(format!("{why}: use smaller widths in --hidden, or --drop columns with many categories"))
            });
        }
        let most = limits::weights(entries);
        if inputs.saturating_mul(outputs) > most {
            return Err(Error::Option(format!(
                "{inputs} inputs × {outputs} outputs are more than the {most} weights that {entries} entries of the \
                 training rows allow: use fewer columns or classes"
            )));
        }
        Ok(())
    }

    /// Refuses a number that single precision, in which a network computes, cannot hold. `index` are rows of this rank.
    fn check_precision(&self, rows: &EncodedRows, index: &[usize]) -> Result<(), Error> {
        let too_large = |&place: &usize| {
            let mut found = None;
            rows.for_each(place, |j, value| {
                found = found.or((value.abs() > f64::from(f32::MAX)).then_some((j, value)));
            });
            found.map(|(j, value)| (self.ranks.share().row(place) + 1, j, value))
        };
        let Some((row, j, value)) = index.iter().find_map(too_large) else { return Ok(()) };
        Err(Error::Option(format!(
            "row {row}: `{}` is {value:e} for the network, which computes in single precision: leave out --no-standardize, \
             use other units, or a linear model",
            self.encoder.input_names()[j]
        )))
    }

    /// cⱼ: a weight in the units of the file is cⱼ times the weight of the model.
    fn factors(&self, task: &FitTask) -> Vec<f64> {
        self.encoder.units().iter().map(|(_, scale)| task.units().1 / scale).collect()
    }
}
