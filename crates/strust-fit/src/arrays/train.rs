//! Training on arrays: to convergence, or as rows come.
//!
//! | model | method |
//! |---|---|
//! | linear | Newton's method on all rows |
//! | linear with a constraint | the same, each step by `StrSqp` |
//! | network | `Auto` on mini-batches until the loss on other rows no longer improves |
//! | rows as they come | `Auto`, one pass over the rows of each call |

use super::{
    rows::ArrayRows,
    units::{InputUnits, used},
};
use crate::{
    Error,
    constrain::{ConstrainedRows, WeightConstraint, WeightRule, constrained, numbered},
    linear::LinearModel,
    network::NetworkModel,
    newton::minimum,
    ranks::{NEVER, Ranks},
    split::split,
    task::Targets,
    terms::ModelTerms,
    train::{StopRule, Trained, Training, TrainingEnd, TrainingLimits, network_batch, trained},
    weights::Weights,
};
use serde::{Deserialize, Serialize};
use strust::{
    methods::{Auto, AutoState, Method, State},
    objective::Objective,
    ranks::Alone,
    sample::Sample,
    samplers::{Epochs, Sampler},
    vector::{Elementwise, Vector},
};
use strust_data::loss::OutputLoss;

/// The most rows of a mini-batch of a stream, if the vectors of a step cost little.
const STREAM_BATCH: usize = 64;
/// The least mini-batches of a call, if it has as many rows. The first steps of `Auto` are short.
const STREAM_STEPS: usize = 10;

/// Asked after each step whether to stop.
pub type WatchStep<'a> = dyn Fn() -> bool + 'a;

/// Rows with their targets.
#[derive(Debug, Clone, Copy)]
pub struct ArrayTask<'a> {
    /// The rows.
    pub rows: &'a ArrayRows<'a>,
    /// The target of each row: the number of its class, or a number with mean 0 and deviation 1.
    pub goals: &'a [f64],
    /// The weight of each row, ≥ 0; `None` if all are 1.
    pub weights: Option<&'a [f64]>,
    /// The units of the inputs.
    pub units: &'a InputUnits,
    /// What the outputs mean.
    pub loss: OutputLoss,
    /// The number of outputs.
    pub outputs: usize,
}

/// How to fit arrays.
#[derive(Debug, Clone)]
pub struct ArrayOptions {
    /// The widths of the hidden layers; none for a linear model.
    pub hidden: Vec<usize>,
    /// L in f = (Σ wᵢ·loss + (L/2)‖W‖²)/Σ wᵢ.
    pub l2: f64,
    /// Whether a linear model has intercepts.
    pub intercept: bool,
    /// Constraints on the weights of a linear model with one output.
    pub constraint: WeightConstraint,
    /// The deviation of the target, by which the outputs are multiplied.
    pub target_scale: f64,
    /// The most epochs.
    pub epochs: u64,
    /// A linear model has converged where its objective is above the minimum by at most this share of it.
    pub tolerance: f64,
    /// The share of rows on which a network is scored.
    pub validation: f64,
    /// The seed of the start, the mini-batches and the rows to score.
    pub seed: u64,
}

/// A fitted model.
#[derive(Debug, Clone)]
pub struct ArrayModel {
    /// Its weights, for inputs in their units.
    pub weights: Weights,
    /// Epochs made.
    pub epochs: f64,
    /// Why training ended.
    pub end: TrainingEnd,
    /// The score after each round, which falls: the objective, or the loss on the rows held out.
    pub scores: Vec<f64>,
}

/// The rows that count, and their weights with mean 1.
struct UsedRows {
    index: Vec<usize>,
    weights: Option<Vec<f64>>,
    total: f64,
}

impl UsedRows {
    fn of(task: &ArrayTask<'_>) -> Self {
        let index = used(task.rows.rows(), task.weights);
        let total = task.weights.map_or(index.len() as f64, |weights| weights.iter().sum());
        let mean = total / index.len() as f64;
        let weights = task.weights.map(|weights| weights.iter().map(|weight| weight / mean).collect());
        Self { index, weights, total }
    }
    fn terms<'a>(
        &'a self,
        task: &ArrayTask<'a>,
        options: &ArrayOptions,
        penalty: f64,
    ) -> ModelTerms<'a, ArrayRows<'a>> {
        ModelTerms {
            rows: task.rows,
            index: &self.index,
            goals: task.goals,
            weights: self.weights.as_deref(),
            units: Some((&task.units.shift, &task.units.scale)),
            loss: task.loss,
            outputs: task.outputs,
            penalty,
            intercept: options.intercept,
        }
    }
}

/// Fits a model of arrays.
///
/// ```
/// use strust_fit::arrays::{ArrayOptions, ArrayRows, ArrayTask, InputUnits, OutputLoss, fit_arrays};
///
/// let rows = ArrayRows::Double(&[0.0, 1.0, 2.0, 3.0], 1); // y = 2x − 3, both with deviation √5/2 and √5
/// let units = InputUnits::measure(&rows, None, true, true);
/// let goals = [-3.0, -1.0, 1.0, 3.0].map(|y: f64| y / 5_f64.sqrt());
/// let task = ArrayTask { rows: &rows, goals: &goals, weights: None, units: &units, loss: OutputLoss::Squares, outputs: 1 };
/// let options = ArrayOptions { l2: 0.0, ..ArrayOptions::default() };
/// let model = fit_arrays(&task, &options, &|| false)?;
/// assert!((model.weights.flat[0] - 1.0).abs() < 1e-9);
/// # Ok::<(), strust_fit::Error>(())
/// ```
pub fn fit_arrays(
    task: &ArrayTask<'_>,
    options: &ArrayOptions,
    interrupted: &WatchStep<'_>,
) -> Result<ArrayModel, Error> {
    let used = UsedRows::of(task);
    let terms = used.terms(task, options, options.l2 / used.total);
    let mut scores = Vec::new();
    let mut limits = TrainingLimits {
        epochs: Some(options.epochs),
        seed: options.seed,
        interrupted,
        any_stops: &|stop| stop,
        report: &mut |_, score| scores.push(score),
        losses: &mut |_, _| None,
    };
    let trained = if options.hidden.is_empty() {
        linear(terms, &task.units.scale, options, &mut limits)?
    } else {
        network(terms, options, &mut limits)?
    };
    Ok(ArrayModel { weights: trained.weights, epochs: trained.epochs, end: trained.end, scores })
}

fn linear(
    terms: ModelTerms<'_, ArrayRows<'_>>,
    scales: &[f64],
    options: &ArrayOptions,
    limits: &mut TrainingLimits<'_>,
) -> Result<Trained, Error> {
    let mut alone = Alone;
    let ranks = &Ranks::new(&mut alone, &NEVER);
    if options.constraint.is_active() {
        let factors: Vec<f64> = scales.iter().map(|scale| options.target_scale / scale).collect();
        let rules = WeightRule::all(&options.constraint, &numbered(factors.len()))?;
        let rows = ConstrainedRows { terms, of_file: terms.index, ranks, factors: &factors };
        return constrained(&rows, &rules, options.tolerance, limits);
    }
    minimum(terms, options.tolerance, ranks, limits)
}

fn network(
    terms: ModelTerms<'_, ArrayRows<'_>>,
    options: &ArrayOptions,
    limits: &mut TrainingLimits<'_>,
) -> Result<Trained, Error> {
    let targets = match terms.loss {
        OutputLoss::Squares | OutputLoss::Huber(_) => Targets::Numbers(terms.goals.to_vec()),
        _ => Targets::Classes(terms.goals.iter().map(|&class| class as u32).collect()),
    };
    let interrupted = limits.interrupted;
    let (learned, mut held) = split(&targets, terms.index, options.validation, options.seed, 1);
    if held.is_empty() {
        held.clone_from(&learned);
    }
    let terms = ModelTerms { index: &learned, ..terms };
    let widths = [&[terms.rows.inputs()], options.hidden.as_slice(), &[terms.outputs]].concat();
    let mut f = NetworkModel::new(terms, &widths)?;
    let mut scored = f.clone();
    let score = &mut |x: &Vec<f32>, _: &Weights| scored.mean_loss(x, &held, interrupted);
    let (start, batch) = (f.start(options.seed), network_batch(f.terms()));
    let rule = StopRule::NETWORK;
    trained(Training { f: &mut f, start, batch, widths: &widths, rule, score }, limits)
}

/// A model that learns from rows as they come: the state of `Auto`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ModelStream {
    /// A linear model.
    Linear(AutoState<Vec<f64>>),
    /// A network.
    Network(AutoState<Vec<f32>>),
}

impl ModelStream {
    /// The weights.
    #[must_use]
    pub fn flat(&self) -> Vec<f64> {
        match self {
            Self::Linear(state) => state.point().clone(),
            Self::Network(state) => state.point().components(),
        }
    }
}

/// Continues a stream with one pass over some rows; it starts at the weights `start`, or anew. `seen` is the weight of the
/// rows of earlier calls, and `call` their number, which draws other mini-batches for each.
pub fn stream_arrays(
    task: &ArrayTask<'_>,
    options: &ArrayOptions,
    stream: Option<ModelStream>,
    start: Option<&[f64]>,
    seen: f64,
    call: u64,
    interrupted: &WatchStep<'_>,
) -> Result<ModelStream, Error> {
    let used = UsedRows::of(task);
    let terms = used.terms(task, options, options.l2 / (seen + used.total));
    let per_row = terms.rows.stored_per_row().max(1.0);
    let vectors = (terms.rows.inputs() as f64 / per_row).ceil() as usize;
    let most = vectors.clamp(STREAM_BATCH, 4096);
    let pass = OnePass { most, seed: options.seed.wrapping_add(call), interrupted };
    if options.hidden.is_empty() {
        let mut f = LinearModel::new(terms);
        let start = || start.map_or_else(|| vec![0.0; f.parameters()], <[f64]>::to_vec);
        let state = match stream {
            Some(ModelStream::Linear(state)) => Ok(state),
            _ => Err(start()),
        };
        return Ok(ModelStream::Linear(pass.over(&mut f, state)?));
    }
    let widths = [&[terms.rows.inputs()], options.hidden.as_slice(), &[terms.outputs]].concat();
    let mut f = NetworkModel::new(terms, &widths)?;
    let narrow = |flat: &[f64]| flat.iter().map(|&x| x as f32).collect();
    let state = match stream {
        Some(ModelStream::Network(state)) => Ok(state),
        _ => Err(start.map_or_else(|| f.start(options.seed), narrow)),
    };
    Ok(ModelStream::Network(pass.over(&mut f, state)?))
}

/// One pass over the terms of a function.
struct OnePass<'a> {
    /// The most rows of a mini-batch.
    most: usize,
    seed: u64,
    interrupted: &'a WatchStep<'a>,
}

impl OnePass<'_> {
    /// Makes the steps from a state, or from a new one at a point.
    fn over<V: Elementwise>(
        &self,
        mut f: &mut dyn Objective<Point = V>,
        state: Result<AutoState<V>, V>,
    ) -> Result<AutoState<V>, Error> {
        let f = &mut f;
        let mut method = Auto::default();
        let mut state = match state {
            Ok(state) => {
                method.prepare(f, state.point())?;
                state
            }
            Err(start) => method.init(f, start)?,
        };
        if f.terms() == 0 {
            return Ok(state);
        }
        let batch = (f.terms() / STREAM_STEPS).clamp(1, self.most);
        let mut sampler = Epochs::new(f.terms(), batch, self.seed)?;
        let mut sample = Sample::default();
        for k in 0..sampler.steps_per_epoch() {
            if (self.interrupted)() {
                return Err(Error::Interrupted);
            }
            sampler.draw(k, &mut sample);
            method.step(f, &mut state, &sample)?;
        }
        Ok(state)
    }
}

impl Default for ArrayOptions {
    fn default() -> Self {
        Self {
            hidden: Vec::new(),
            l2: 1.0,
            intercept: true,
            constraint: WeightConstraint::default(),
            target_scale: 1.0,
            epochs: 1000,
            tolerance: 1e-10,
            validation: 0.1,
            seed: 0,
        }
    }
}
