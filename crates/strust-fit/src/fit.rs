//! From a table to a model.

use crate::{
    Error,
    assess::{Assessment, ScorePoints, assess, at_once},
    checks,
    choose::{self, NetworkTrial},
    coefficients::{Coefficient, coefficients, deviations},
    constrain::{ConstraintEffect, VIOLATION, WeightConstraint, WeightRule, input_names, violation},
    fair::FairSet,
    fair_report::{ColumnRates, FairReport, fair_report, rates},
    importance::{Importance, importance},
    ranks::Ranks,
    saved::{DataOrigin, FORMAT, FittedModel, ModelAbout, ModelFamily, TrainingOrigin},
    scored::{MeasuredRows, ScoredRows, goals, whole_target},
    setup::FitSetup,
    split::split,
    table::{Cells, DataTable},
    tails,
    task::FitTask,
    train::{LearningPoint, Trained, TrainingEnd},
    transform::{Encoder, EncodingLosses, Standardize},
    weights::Weights,
};
use serde::Serialize;
use std::sync::atomic::AtomicBool;
use strust::ranks::{Alone, Group};
use strust_data::words::plural;

pub use crate::options::{FitOptions, HIDDEN};

/// The share of the rows that is held out by default.
const TEST: f64 = 0.2;
/// Fewer rows than this are scored by cross-validation: a fifth of them would say little.
const FEW: usize = 200;
/// So few rows cannot be dealt into parts.
const TOO_FEW: usize = 10;

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
    /// What the constraints do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<ConstraintEffect>,
    /// What bounds between groups and on rates do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair: Option<FairReport>,
    /// A network that is better on a part of the training rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkTrial>,
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
    /// Set to stop: the best model so far is the result, or [`Error::Interrupted`] if there is none yet, or if there are
    /// bounds between groups and they do not hold yet.
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
    let (task, why) = FitTask::infer(&whole, &target, options.task, options.regression)?;
    let mut task = without_shift(task, options);
    let family = family(&task, options)?;
    let (targets, known) = task.targets(&whole, &target)?;
    drop(whole);
    let in_folds = test.is_none() && options.test_share.is_none() && (TOO_FEW..FEW).contains(&known.len());
    let share = if test.is_some() || in_folds { 0.0 } else { options.test_share.unwrap_or(TEST) };
    let (training, held) = split(&targets, &known, share, options.seed, 0);
    if training.len() < 2 {
        return Err(Error::file(&table.path, "fewer than two rows to learn from"));
    }

    table.check_columns("--keep", &options.keep)?;
    let identifiers = checks::identifiers(table, &target, &options.keep, ranks)?;
    let left_out: Vec<String> = identifiers.names().chain([&target]).chain(&options.leave_out).cloned().collect();
    let places = table.share.places(&training);
    let encoder = Encoder::fit(table, &places, Some(standardization(options)), &left_out, ranks)?;
    let (rows, losses) = ranks.agree(encoder.encode(table, ranks.interrupt()))?;
    let losses = losses.with_all_blanks(&encoder, ranks)?;
    let own = ScoredRows { goals: goals(&task, &targets, table), rows, targets, index: held };
    let l2 = options.l2.unwrap_or_else(|| default_l2(family, &options.constraint));
    let rules = rules(&options.constraint, &encoder)?;
    let epochs = options.epochs;
    options.fair.check(&task, !rules.is_empty())?;
    let has_bounds = !options.fair.is_empty();
    let fair = has_bounds.then(|| FairSet::new(&options.fair, table, &target, &places, ranks)).transpose()?;
    let mut setup =
        FitSetup { family, l2, epochs, encoder: &encoder, rules: &rules, fair: fair.as_ref(), options, ranks };
    if options.regression.huber {
        let bound = setup.huber_bound(MeasuredRows { data: &own, index: &training, task: &task, ranks })?;
        task = task.with_huber(bound);
    }
    let of_own = |index| MeasuredRows { data: &own, index, task: &task, ranks };
    let mut remarks =
        checks::remarks(table, &target, of_own(&known), &encoder, &losses, &identifiers, &options.leave_out)?;
    remarks.extend(tails::advice(&target, &task, &own.targets, &known));
    let other = test.map(|test| ScoredRows::read(test, &encoder, &task, &target, ranks)).transpose()?;
    let held_out = match &other {
        Some(data) => MeasuredRows { data, index: &data.index, task: &task, ranks },
        None => of_own(&own.index),
    };

    remarks.extend(choose::from_data(&mut setup, of_own(&training))?);
    let trained = setup.train(of_own(&training), held_out, watch.report)?;
    ranks.check()?;
    let mut model = FittedModel {
        about: setup.about(table, &target, &task, &trained, (training.len(), held_out.index.len())),
        weights: trained.weights,
    };
    check_constraint(&model, &rules)?;
    if model.about.model != ModelFamily::Mlp {
        model.about.deviations = deviations(&encoder, of_own(&training))?;
    }
    let ended = model.about.training.end;
    let constraints = match ended {
        TrainingEnd::Interrupted => Vec::new(),
        _ => unless_stopped(setup.effects(of_own(&training), &model.weights))?.unwrap_or_default(),
    };
    let of_model = (&model.weights, trained.free.as_ref());
    let fair = unless_stopped(fair_report(&setup, of_model, of_own(&training), held_out, test))?.flatten();
    remarks.extend(fair.iter().flat_map(|report| report.notes.iter().cloned()));
    let most = at_once(&model.weights);
    let mut few = false;
    let mut measured = |on: MeasuredRows<'_>| assess_or_part(&model.weights, on, most, &mut few);
    let judged = if held_out.index.is_empty() { of_own(&training) } else { held_out };
    let scores = match ended {
        TrainingEnd::Interrupted if in_folds => None,
        _ if in_folds => unless_stopped(choose::scores_in_folds(&setup, of_own(&training)))?,
        _ => (!held_out.index.is_empty()).then(|| measured(held_out)).transpose()?,
    };
    let importance = importance(&encoder, &model.weights, judged, options.seed)?;
    let (on_training, of_training) = measured(of_own(&training))?;
    let (scores, points) = scores.map_or((None, of_training), |(scores, points)| (Some(scores), points));
    if few {
        remarks.push(format!("the fit was stopped, so it is scored on at most {}", plural(most, "row")));
    }
    let network = match ended {
        TrainingEnd::Interrupted => None,
        _ => unless_stopped(choose::quick_trial(&setup, of_own(&training)))?.flatten(),
    };
    model.about.training.folds = (in_folds && scores.is_some()).then_some(choose::FOLDS);
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
        constraints,
        fair,
        network,
    };
    Ok(Fitted { model, report })
}

/// What a model is worth on a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluated {
    /// The scores.
    pub scores: Assessment,
    /// What the encoding of the file lost.
    pub losses: EncodingLosses,
    /// Rates by group, of a model with bounds between groups, for the columns that the file has.
    pub groups: Vec<ColumnRates>,
}

/// Scores a model on a file. `interrupt` stops it.
pub fn evaluate(model: &FittedModel, table: &DataTable, interrupt: &AtomicBool) -> Result<Evaluated, Error> {
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
    let on = MeasuredRows { data: &data, index: &data.index, task, ranks };
    let groups = match &about.fair {
        Some(asked) => {
            rates(asked, asked.columns.iter().map(|column| column.codes(table)).collect(), &model.weights, on)?
        }
        None => Vec::new(),
    };
    Ok(Evaluated { scores: assess(&model.weights, on)?.0, losses, groups })
}

fn rules(constraint: &WeightConstraint, encoder: &Encoder) -> Result<Vec<WeightRule>, Error> {
    // Without a constraint nobody needs the names of many inputs.
    if constraint.is_active() { WeightRule::all(constraint, &input_names(encoder)) } else { Ok(Vec::new()) }
}

/// Without an intercept, a mean of the target would be one.
fn without_shift(mut task: FitTask, options: &FitOptions) -> FitTask {
    if let (FitTask::Regression { mean, .. }, false) = (&mut task, options.intercept) {
        *mean = 0.0;
    }
    task
}

/// Scores a model. Whoever stops a fit wants its model at once, so then at most so many rows are scored.
fn assess_or_part(
    weights: &Weights,
    on: MeasuredRows<'_>,
    most: usize,
    few: &mut bool,
) -> Result<(Assessment, ScorePoints), Error> {
    match assess(weights, on) {
        Err(Error::Interrupted) => {
            *few = true;
            let index: Vec<usize> = on.index.iter().copied().step_by(on.index.len().div_ceil(most)).collect();
            assess(weights, MeasuredRows { index: &index, ..on })
        }
        scores => scores,
    }
}

/// What was found, or `None` if the search for it was stopped: there is a model already.
fn unless_stopped<T>(found: Result<T, Error>) -> Result<Option<T>, Error> {
    match found {
        Err(Error::Interrupted) => Ok(None),
        found => found.map(Some),
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
    let is_network = chosen == ModelFamily::Mlp || options.choose_model;
    if options.choose_l2 && chosen == ModelFamily::Mlp {
        return refuse("--l2 auto is for linear models: give a network a number".into());
    }
    if options.constraint.is_active() && options.choose_model {
        return refuse("constraints are for linear models: leave out --model auto".into());
    }
    if options.constraint.is_active() && !matches!(chosen, ModelFamily::Linear | ModelFamily::Logistic) {
        return refuse(format!(
            "constraints are for models with one output, linear and logistic, not {}",
            chosen.name()
        ));
    }
    if is_network && (options.hidden.is_empty() || options.hidden.contains(&0)) {
        return refuse("--hidden must name at least one width, each at least 1".into());
    }
    if is_network && !options.intercept {
        return refuse("--no-intercept is for linear models: a network always has them".into());
    }
    Ok(chosen)
}

/// With a penalty every problem has a solution, and a network does not learn a few rows by heart. A constrained regression
/// has a solution without it.
fn default_l2(family: ModelFamily, constraint: &WeightConstraint) -> f64 {
    if family == ModelFamily::Linear && constraint.is_active() { 0.0 } else { 1.0 }
}

impl FitSetup<'_> {
    /// All of the model but its weights, made from this many training rows and held-out rows.
    fn about(
        &self,
        table: &DataTable,
        target: &str,
        task: &FitTask,
        trained: &Trained,
        rows: (usize, usize),
    ) -> ModelAbout {
        let Self { family, l2, encoder, options, .. } = self;
        let method = match family {
            ModelFamily::Mlp if self.fair.is_some() => "auto, then str-sqp for the last layer",
            ModelFamily::Mlp => "auto",
            _ if !self.rules.is_empty() || self.fair.is_some() => "str-sqp",
            _ => "newton",
        };
        let column = table.column(target);
        let words = column.is_some_and(|column| matches!(column.cells, Cells::Words { .. }));
        ModelAbout {
            format: FORMAT.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            model: *family,
            target: target.into(),
            task: task.clone(),
            target_is_words: words,
            target_form: column.map(|column| column.form).unwrap_or_default(),
            intercept: options.intercept,
            constraint: options.constraint.clone(),
            fair: self.fair.map(|set| set.asked.clone()),
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
                folds: None,
            },
            deviations: Vec::new(),
        }
    }
}

/// A model that does not satisfy its constraint is not a result.
fn check_constraint(model: &FittedModel, rules: &[WeightRule]) -> Result<(), Error> {
    let (weights, _) = model.weights_in_units().unwrap_or_default();
    let violation = weights.first().map_or(0.0, |weights| violation(rules, weights));
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
