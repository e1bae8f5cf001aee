//! From a table to a model.

use crate::{
    Error,
    assess::{Assessment, ScorePoints, assess, at_once},
    checks,
    coefficients::{Coefficient, coefficients, deviations},
    constrain::{FullSumEnd, VIOLATION, WeightConstraint, constrained},
    importance::{Importance, importance},
    linear::LinearModel,
    newton,
    ranks::Ranks,
    saved::{DataOrigin, FORMAT, FittedModel, ModelAbout, ModelFamily, TrainingOrigin},
    scored::{MeasuredRows, ScoredRows, goals, whole_target},
    split::split,
    table::{Cells, DataTable},
    task::{FitTask, TaskChoice},
    terms::ModelTerms,
    train::{self, LearningPoint, Trained, TrainingEnd, TrainingLimits, dealt},
    transform::{Encoder, EncodingLosses, Standardize},
    weights::LayerSpace,
};
use serde::Serialize;
use std::sync::atomic::AtomicBool;
use strust::ranks::{Alone, Group};
use strust_data::{limits, words::plural};

/// The share of the training rows on which a network is scored while it learns.
const VALIDATION: f64 = 0.1;
/// The widths of the hidden layers, if the user names none.
pub const HIDDEN: &[usize] = &[100];

/// What to fit.
#[derive(Debug, Clone)]
pub struct FitOptions {
    /// The column to predict; `None` for the labels of LIBSVM text and images.
    pub target: Option<String>,
    /// The task; inferred by default.
    pub task: Option<TaskChoice>,
    /// The kind of model; by default the linear one of the task.
    pub model: Option<ModelFamily>,
    /// The widths of the hidden layers of a network.
    pub hidden: Vec<usize>,
    /// The share of rows to hold out, in [0, 1).
    pub test_share: f64,
    /// The seed of the split, the start and the mini-batches.
    pub seed: u64,
    /// The most epochs.
    pub epochs: Option<u64>,
    /// L in f = (1/n)(Σ loss + (L/2)‖W‖²). By default 1, and 0 for constrained regressions.
    pub l2: Option<f64>,
    /// Whether the model has intercepts.
    pub intercept: bool,
    /// Whether features are standardized.
    pub standardize: bool,
    /// Constraints on the weights.
    pub constraint: WeightConstraint,
    /// Columns to keep, also if they number the rows.
    pub keep: Vec<String>,
}

impl Default for FitOptions {
    fn default() -> Self {
        Self {
            target: None,
            task: None,
            model: None,
            hidden: HIDDEN.to_vec(),
            test_share: 0.2,
            seed: 0,
            epochs: None,
            l2: None,
            intercept: true,
            standardize: true,
            constraint: WeightConstraint::default(),
            keep: Vec::new(),
        }
    }
}

/// What a person should know about a fit.
#[derive(Debug, Clone, Serialize)]
pub struct FitReport {
    /// The task in a sentence, with the reason.
    pub task: String,
    /// Sentences about the data.
    pub remarks: Vec<String>,
    /// The losses of the points that training reached.
    pub curve: Vec<LearningPoint>,
    /// The scores on the training rows.
    pub training: Assessment,
    /// The scores on the held-out rows.
    pub held_out: Option<Assessment>,
    /// Points of figures, of the held-out rows or, without any, of the training rows.
    #[serde(flatten)]
    pub points: ScorePoints,
    /// The features that matter.
    pub importance: Vec<Importance>,
    /// The weights of a linear model, those with the largest effects first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub coefficients: Vec<Coefficient>,
}

/// A model and its report.
#[derive(Debug, Clone)]
pub struct Fitted {
    /// The model.
    pub model: FittedModel,
    /// Its report.
    pub report: FitReport,
}

/// Watches a fit, and can stop it.
pub struct FitWatch<'a> {
    /// Called with the epochs so far and the score, which falls.
    pub report: &'a mut dyn FnMut(f64, f64),
    /// Set to stop: the best model so far is the result, or [`Error::Interrupted`] if there is none yet.
    pub interrupt: &'a AtomicBool,
}

/// Fits a model. With a `test` table it is scored there, otherwise on the share of rows that `options` holds out.
///
/// ```
/// use std::{path::Path, sync::atomic::AtomicBool};
/// use strust_fit::{DataTable, FitOptions, ReadOptions, fit, fit::FitWatch, table::ReadProgress};
///
/// # let folder = std::env::temp_dir().join(format!("strust-fit-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("line.csv");
/// let text: String = (0..100).map(|i| format!("{i},{}\n", 3 * i + 1)).collect();
/// std::fs::write(&path, format!("x,y\n{text}"))?;
/// let stop = AtomicBool::new(false);
/// let table =
///     DataTable::read(&path, &ReadOptions::default(), &mut ReadProgress { at: &mut |_| {}, interrupt: &stop })?;
/// let options = FitOptions { target: Some("y".into()), l2: Some(0.0), ..FitOptions::default() };
/// let fitted = fit(&table, None, &options, &mut FitWatch { report: &mut |_, _| {}, interrupt: &stop })?;
/// let (weights, bias) = fitted.model.weights_in_units().unwrap();
/// assert!((weights[0][0] - 3.0).abs() < 1e-2 && (bias[0] - 1.0).abs() < 0.5);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn fit(
    table: &DataTable,
    test: Option<&DataTable>,
    options: &FitOptions,
    watch: &mut FitWatch<'_>,
) -> Result<Fitted, Error> {
    fit_on(table, test, options, watch, &mut Alone)
}

/// The same on the ranks of a group, each with its share of the rows ([`DataTable::read_on`]). All ranks make the same model,
/// bit for bit: up to rounding the one that one process makes of all rows, with the same split, mini-batches, scores and
/// remarks. An interrupt of one rank stops all of them at the same step.
///
/// A rank has its own rows, and the targets of all rows.
///
/// ```
/// use std::{path::Path, sync::atomic::AtomicBool, time::Duration};
/// use strust::ranks::on_threads;
/// use strust_fit::{DataTable, Error, FitOptions, ReadOptions, fit::FitWatch, fit_on, table::ReadProgress};
///
/// # let folder = std::env::temp_dir().join(format!("strust-fit-on-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("line.csv");
/// let text: String = (0..100).map(|i| format!("{i},{}\n", 3 * i + 1)).collect();
/// std::fs::write(&path, format!("x,y\n{text}"))?;
/// let models = on_threads(2, Duration::from_secs(60), |mut rank| {
///     let stop = AtomicBool::new(false);
///     let progress = &mut ReadProgress { at: &mut |_| {}, interrupt: &stop };
///     let table = DataTable::read_on(&path, &ReadOptions::default(), progress, &mut rank)?;
///     assert_eq!((table.rows, table.all_rows), (50, 100));
///     let options = FitOptions { target: Some("y".into()), ..FitOptions::default() };
///     let watch = &mut FitWatch { report: &mut |_, _| {}, interrupt: &stop };
///     Ok(fit_on(&table, None, &options, watch, &mut rank)?.model)
/// });
/// let models = models.into_iter().collect::<Result<Vec<_>, Error>>()?;
/// assert_eq!(models[0], models[1]);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn fit_on(
    table: &DataTable,
    test: Option<&DataTable>,
    options: &FitOptions,
    watch: &mut FitWatch<'_>,
    group: &mut dyn Group,
) -> Result<Fitted, Error> {
    let ranks = &Ranks::new(group, watch.interrupt);
    let target = table.target_name(options.target.as_deref())?;
    let whole = whole_target(table, &target, ranks)?;
    ranks.proceed()?;
    let (task, why) = FitTask::infer(&whole, &target, options.task)?;
    let task = without_shift(task, options);
    let family = family(&task, options)?;
    let (targets, known) = task.targets(&whole, &target)?;
    drop(whole);
    let share = if test.is_some() { 0.0 } else { options.test_share };
    let (training, held) = split(&targets, &known, share, options.seed, 0);
    if training.len() < 2 {
        return Err(Error::file(&table.path, "fewer than two rows to learn from"));
    }

    table.check_columns("--keep", &options.keep)?;
    let identifiers = checks::identifiers(table, &target, &options.keep, ranks)?;
    let left_out: Vec<String> = identifiers.names().chain([&target]).cloned().collect();
    let own = table.share.places(&training);
    let encoder = Encoder::fit(table, &own, Some(standardization(options)), &left_out, ranks)?;
    let (rows, losses) = ranks.agree(encoder.encode(table, ranks.interrupt()))?;
    let losses = losses.with_all_blanks(&encoder, ranks)?;
    let own = ScoredRows { goals: goals(&task, &targets, table), rows, targets, index: held };
    let of_own = |index| MeasuredRows { data: &own, index, task: &task, ranks };
    let mut remarks = checks::remarks(table, &target, of_own(&known), &encoder, &losses, &identifiers)?;
    let other = test.map(|test| ScoredRows::read(test, &encoder, &task, &target, ranks)).transpose()?;
    let held_out = match &other {
        Some(data) => MeasuredRows { data, index: &data.index, task: &task, ranks },
        None => of_own(&own.index),
    };

    let l2 = options.l2.unwrap_or_else(|| default_l2(family, options.constraint));
    let setup = FitSetup { family, l2, encoder: &encoder, task: &task, options, ranks };
    let trained = setup.train(of_own(&training), held_out, watch)?;
    ranks.check()?;
    let mut model = FittedModel {
        about: setup.about(table, &target, &trained, (training.len(), held_out.index.len())),
        weights: trained.weights,
    };
    check_constraint(&model)?;
    if family != ModelFamily::Mlp {
        model.about.deviations = deviations(&encoder, of_own(&training))?;
    }
    let most = at_once(&model.weights);
    let mut few = false;
    let mut measured = |on: MeasuredRows<'_>| {
        match assess(&model.weights, on) {
            // Whoever stops a fit wants its model at once.
            Err(Error::Interrupted) => {
                few = true;
                let index: Vec<usize> = on.index.iter().copied().step_by(on.index.len().div_ceil(most)).collect();
                assess(&model.weights, MeasuredRows { index: &index, ..on })
            }
            scores => scores,
        }
    };
    let scores = (!held_out.index.is_empty()).then(|| measured(held_out)).transpose()?;
    let judged = if scores.is_some() { held_out } else { of_own(&training) };
    let importance = importance(&encoder, &model.weights, judged, options.seed)?;
    let (on_training, of_training) = measured(of_own(&training))?;
    let (scores, points) = scores.map_or((None, of_training), |(scores, points)| (Some(scores), points));
    if few {
        remarks.push(format!("the fit was stopped, so it is scored on at most {}", plural(most, "row")));
    }
    model.about.training.held_out.clone_from(&scores);
    let report = FitReport {
        task: described(&task, &why),
        remarks,
        curve: trained.curve,
        training: on_training,
        held_out: scores,
        points,
        importance,
        coefficients: coefficients(&model, trained.errors.as_deref()),
    };
    Ok(Fitted { model, report })
}

/// Scores a model on a file. `interrupt` stops it.
pub fn evaluate(
    model: &FittedModel,
    table: &DataTable,
    interrupt: &AtomicBool,
) -> Result<(Assessment, EncodingLosses), Error> {
    let about = &model.about;
    about.encoder.check_names(table)?;
    let (targets, index) = about.task.targets(table, &about.target)?;
    if index.is_empty() {
        return Err(Error::file(&table.path, format!("column `{}` is blank in every row", about.target)));
    }
    let (rows, losses) = about.encoder.encode(table, interrupt)?;
    let data = ScoredRows { goals: goals(&about.task, &targets, table), rows, targets, index };
    let (mut alone, task) = (Alone, &about.task);
    let ranks = &Ranks::new(&mut alone, interrupt);
    Ok((assess(&model.weights, MeasuredRows { data: &data, index: &data.index, task, ranks })?.0, losses))
}

/// Without an intercept, a mean of the target would be one.
fn without_shift(task: FitTask, options: &FitOptions) -> FitTask {
    match task {
        FitTask::Regression { deviation, .. } if !options.intercept => FitTask::Regression { mean: 0.0, deviation },
        task => task,
    }
}

fn standardization(options: &FitOptions) -> Standardize {
    match (options.standardize, options.intercept) {
        (false, _) => Standardize::No,
        (true, false) => Standardize::Scale,
        (true, true) => Standardize::Full,
    }
}

/// The kind of model, if it fits the task and the constraints.
fn family(task: &FitTask, options: &FitOptions) -> Result<ModelFamily, Error> {
    let linear = ModelFamily::linear(task);
    let chosen = options.model.unwrap_or(linear);
    let refuse = |why: String| Err(Error::Option(why));
    // Softmax of two classes is logistic regression.
    let chosen = if (chosen, linear) == (ModelFamily::Softmax, ModelFamily::Logistic) { linear } else { chosen };
    if chosen != ModelFamily::Mlp && chosen != linear {
        let task = described(task, "");
        return refuse(format!("--model {} does not fit {task}; use {} or mlp", chosen.name(), linear.name()));
    }
    if options.constraint.is_active() && !matches!(chosen, ModelFamily::Linear | ModelFamily::Logistic) {
        return refuse(format!(
            "constraints are for models with one output, linear and logistic, not {}",
            chosen.name()
        ));
    }
    if chosen == ModelFamily::Mlp && (options.hidden.is_empty() || options.hidden.contains(&0)) {
        return refuse("--hidden must name at least one width, each at least 1".into());
    }
    if chosen == ModelFamily::Mlp && !options.intercept {
        return refuse("--no-intercept is for linear models: a network always has them".into());
    }
    Ok(chosen)
}

/// With a penalty every problem has a solution, and a network does not learn a few rows by heart. A constrained regression
/// has a solution without it.
fn default_l2(family: ModelFamily, constraint: WeightConstraint) -> f64 {
    if family == ModelFamily::Linear && constraint.is_active() { 0.0 } else { 1.0 }
}

/// All that training needs to know.
struct FitSetup<'a> {
    family: ModelFamily,
    l2: f64,
    encoder: &'a Encoder,
    task: &'a FitTask,
    options: &'a FitOptions,
    ranks: &'a Ranks<'a>,
}

impl FitSetup<'_> {
    fn train(
        &self,
        own: MeasuredRows<'_>,
        held_out: MeasuredRows<'_>,
        watch: &mut FitWatch<'_>,
    ) -> Result<Trained, Error> {
        let (loss, outputs) = (self.task.loss(), self.task.outputs());
        let (ranks, share) = (self.ranks, self.ranks.share());
        let MeasuredRows { data: ScoredRows { rows, targets, goals, .. }, index: training, .. } = own;
        let (learned, validation) = match self.family {
            ModelFamily::Mlp => split(targets, training, VALIDATION, self.options.seed, 1),
            _ => (training.to_vec(), Vec::new()),
        };
        let index = share.places(&learned);
        let data = ModelTerms {
            rows,
            index: &index,
            goals,
            weights: None,
            units: None,
            loss,
            outputs,
            penalty: self.l2 / training.len() as f64,
            intercept: self.options.intercept,
        };
        // For the learning curve as many training rows as are held out, and at least a tenth of them.
        let part = (held_out.index.len() as f64 / learned.len() as f64).clamp(VALIDATION, 1.0);
        let sample = MeasuredRows { index: &split(targets, &learned, part, self.options.seed, 2).1, ..own };
        let space = &mut LayerSpace::default();
        let mut limits = TrainingLimits {
            epochs: self.options.epochs,
            seed: self.options.seed,
            interrupted: &|| ranks.is_interrupted(),
            any_stops: &|stop| ranks.any(stop),
            report: watch.report,
            losses: &mut |epoch, weights| {
                let training = sample.mean_loss(weights, space)?;
                Some(LearningPoint { epoch, training, held_out: held_out.mean_loss(weights, space) })
            },
        };
        let entries = rows.stored_per_row(ranks)? * training.len() as f64;
        self.check_size(rows.inputs(), outputs, training.len(), entries as usize)?;
        if self.family == ModelFamily::Mlp {
            let validation = MeasuredRows { index: &validation, ..own };
            return train::network(data, &learned, &self.options.hidden, validation, &mut limits);
        }
        if self.options.constraint.is_active() {
            let mut f = dealt(LinearModel::new(data), training, ranks);
            return constrained(&mut f, self.options.constraint, &self.factors(), FullSumEnd::default(), &mut limits);
        }
        newton::minimum(data, newton::GAP, ranks, &mut limits)
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

    /// All of the model but its weights, made from this many training rows and held-out rows.
    fn about(&self, table: &DataTable, target: &str, trained: &Trained, rows: (usize, usize)) -> ModelAbout {
        let Self { family, l2, encoder, task, options, .. } = self;
        let method = match family {
            _ if options.constraint.is_active() => "str-sqp",
            ModelFamily::Mlp => "auto",
            _ => "newton",
        };
        let column = table.column(target);
        let words = column.is_some_and(|column| matches!(column.cells, Cells::Words { .. }));
        ModelAbout {
            format: FORMAT.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            model: *family,
            target: target.into(),
            task: (*task).clone(),
            target_is_words: words,
            target_form: column.map(|column| column.form).unwrap_or_default(),
            intercept: options.intercept,
            constraint: options.constraint,
            order: table.order.clone(),
            encoder: (*encoder).clone(),
            data: DataOrigin {
                // A model is text, and a name need not be.
                file: table.path.file_name().unwrap_or(table.path.as_os_str()).to_string_lossy().into_owned().into(),
                md5: table.fingerprint.clone(),
                training_rows: rows.0,
                held_out_rows: rows.1,
            },
            training: TrainingOrigin {
                method: method.into(),
                seed: options.seed,
                batch: trained.batch,
                epochs: trained.epochs,
                end: trained.end,
                l2: *l2,
                held_out: None,
            },
            deviations: Vec::new(),
        }
    }

    /// cⱼ: a weight in the units of the file is cⱼ times the weight of the model.
    fn factors(&self) -> Vec<f64> {
        self.encoder.units().iter().map(|(_, scale)| self.task.units().1 / scale).collect()
    }
}

/// A model that does not satisfy its constraint is not a result.
fn check_constraint(model: &FittedModel) -> Result<(), Error> {
    let constraint = model.about.constraint;
    if !constraint.is_active() {
        return Ok(());
    }
    let (weights, _) = model.weights_in_units().unwrap_or_default();
    let violation = constraint.violation(&weights[0]);
    if violation <= VIOLATION {
        return Ok(());
    }
    if model.about.training.end == TrainingEnd::Interrupted {
        return Err(Error::Interrupted);
    }
    let why = "the constraints may contradict each other";
    Err(Error::Option(format!("the weights violate the constraint by {violation:.1e}: {why}")))
}

/// The task in words.
fn described(task: &FitTask, why: &str) -> String {
    let what = match task {
        FitTask::Regression { .. } => "a regression".to_string(),
        FitTask::Classes { names } if names.len() == 2 => format!("two classes, `{}` and `{}`", names[0], names[1]),
        FitTask::Classes { names } => format!("{} classes", names.len()),
    };
    if why.is_empty() { what } else { format!("{what}, because {why}") }
}
