//! `strust fit`: from a data file to a model, its scores and a report.

use crate::{
    CommandFailure, CommandResult,
    args::{FitArgs, LossChoice, ModelChoice, PenaltyChoice, Shared},
    failure, fit_constraints, fit_fair, fit_page,
    session::{self, print, print_json},
    show::{Activity, heading},
    tables::number,
    usage,
};
use serde::Serialize;
use std::{
    fmt::Write as _,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    time::Instant,
};
use strust::ranks::Group as _;
use strust_fit::{
    DataTable, FitOptions, FitReport, Fitted, FittedModel, ReadOptions,
    assess::{Assessment, ClassAssessment},
    constrain::WeightConstraint,
    fair::FairOptions,
    fit::{FitWatch, HIDDEN, fit_on},
    saved::ModelFamily,
    table::{ReadProgress, data_files},
    task::RegressionChoice,
    train::TrainingEnd,
};
use strust_lab::{
    format::{noun, thousands},
    io::{
        atomic,
        output::{OutputFile, is_same},
        spool::Spool,
    },
    report,
    team::Team,
};

/// A standard error above this makes an accuracy too inexact, …
const ROUGH_ACCURACY: f64 = 0.025;
/// … and above this an R².
const ROUGH_R2: f64 = 0.05;
/// A class with at most this share is rare, …
const RARE: f64 = 0.2;
/// … and at most this share of its rows is almost none.
const ALMOST_NONE: f64 = 0.1;
/// Fewer rows of a class say little about it.
const ROWS_OF_CLASS: u64 = 5;

/// The name of standard input in messages and models.
const INPUT: &str = "standard input";

/// `strust fit`.
pub fn run(args: &FitArgs, shared: &Shared) -> CommandResult {
    let began = Instant::now();
    let (share, test_file) = held_out(args)?;
    let options = options(args, share)?;
    // Rank 0 writes and prints.
    let mut team = session::team();
    of_leader(&team, || check_places(args, test_file.as_deref()))?;
    let shared = &Shared { quiet: shared.quiet || !team.leads(), ..shared.clone() };
    let interrupt = session::interrupt()?;
    let (fitted, own_test) = {
        let activity = Activity::new(shared);
        let reading = ReadOptions {
            target: args.target.clone(),
            needs_target: true,
            drop: args.drop.iter().filter(|column| !groups_left_out(args).contains(column)).cloned().collect(),
            categories: args.category.clone(),
            ..ReadOptions::default()
        };
        let table = read_on(&args.data, &reading, &activity, &interrupt, &mut team)?;
        let test = match &test_file {
            Some(file) => Some(read_on(file, &like(&table, args), &activity, &interrupt, &mut team)?),
            None if args.test.is_none() => DataTable::read_own_test(&args.data, &mut team)?,
            None => None,
        };
        activity.say("fitting");
        let mut report = |epoch: f64, score: f64| activity.say(&format!("fitting: epoch {epoch:.0}, loss {score:.5}"));
        let watch = &mut FitWatch { report: &mut report, interrupt: &interrupt };
        (fit_on(&table, test.as_ref(), &options, watch, &mut team)?, test.is_some())
    };
    let seconds = began.elapsed().as_secs_f64();
    // Save the model before printing: a closed output must not lose it.
    let (save, page) = of_leader(&team, || save(args, test_file.as_deref(), &fitted))?;
    let outcome = FitOutcome::new(&fitted, &save, &page, own_test, seconds);
    if shared.json && team.leads() {
        print_json(&outcome)?;
    } else if !shared.quiet {
        print(&outcome.text(shared))?;
    }
    match fitted.model.about.training.end {
        TrainingEnd::Interrupted => {
            failure(format!("stopped early. The best model so far is saved: {}", save.display()))
        }
        _ => Ok(()),
    }
}

/// Runs something on rank 0 and gives the result to all ranks. If it fails there, it fails on all.
fn of_leader<T: Default>(team: &Team, run: impl FnOnce() -> CommandResult<T>) -> CommandResult<T> {
    let result = if team.leads() { run() } else { Ok(T::default()) };
    let why = match &result {
        Err(CommandFailure::Failed(why) | CommandFailure::Usage(why)) => Err(strust_lab::Error::Ranks(why.clone())),
        Ok(_) | Err(CommandFailure::Quiet) => Ok(()),
    };
    // Rank 0 keeps the error itself.
    let agreed = team.agreed(why);
    let value = result?;
    agreed?;
    Ok(value)
}

/// Checks that the model and the report can be written, before hours of training. Only a model and a report may be replaced.
fn check_places(args: &FitArgs, test: Option<&Path>) -> CommandResult {
    let default = || default_places(args).find(|(save, _)| !save.exists()).expect("numbers do not end");
    let (save, page) = args.save.as_ref().map_or_else(default, |save| (save.clone(), page(args, save)));
    if !matches!(ending(&save).as_str(), "json" | "safetensors") {
        let why = format!("--save {}: the name must end with .json or .safetensors", save.display());
        return usage(why);
    }
    OutputFile::prepare([&save, &page], &inputs(args, test))?;
    if save.exists() && !FittedModel::is_one(&save) {
        return failure(format!(
            "{}: the file exists and is not a model of `strust fit`: choose another file with --save",
            save.display()
        ));
    }
    Ok(report::check_replaceable(&page)?)
}

/// The files that the command reads.
fn inputs(args: &FitArgs, test: Option<&Path>) -> Vec<PathBuf> {
    input_files(&[Some(args.data.as_path()), test].into_iter().flatten().collect::<Vec<_>>())
}

/// The files that some names stand for. A folder stands for the files in it.
pub fn input_files(names: &[&Path]) -> Vec<PathBuf> {
    // A file that is missing is an error when it is read.
    let named = names.iter().flat_map(|name| data_files(name).unwrap_or_else(|_| vec![name.into()]));
    named
        .flat_map(|file| match std::fs::read_dir(&file) {
            Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
            Err(_) => vec![file],
        })
        .collect()
}

/// The files of a model that the user does not name, by number from 1 on, and of its report. Another file with the default
/// name of a report stays, and its number is not used.
fn default_places(args: &FitArgs) -> impl Iterator<Item = (PathBuf, PathBuf)> {
    let named = |number| if number == 1 { "model.json".into() } else { PathBuf::from(format!("model-{number}.json")) };
    (1_usize..)
        .map(named)
        .map(|save| (save.clone(), page(args, &save)))
        .filter(|(_, page)| args.report.is_some() || report::check_replaceable(page).is_ok())
        .filter(|(save, page)| !is_same(save, page))
}

/// The report of a model.
fn page(args: &FitArgs, save: &Path) -> PathBuf {
    args.report.clone().unwrap_or_else(|| save.with_extension("html"))
}

/// Writes the model and its report. Returns their files.
///
/// A default name is chosen only now, and by the file system, because programs that run at the same time must not choose the
/// same one.
fn save(args: &FitArgs, test: Option<&Path>, fitted: &Fitted) -> CommandResult<(PathBuf, PathBuf)> {
    let (model, html) = (&fitted.model, fit_page::html(fitted, &verdict(fitted)));
    let mut inputs = inputs(args, test);
    if let Some(save) = &args.save {
        let page = page(args, save);
        let [to, report] = OutputFile::prepare([save, &page], &inputs)?;
        to.write(&contents(model, save))?;
        report.write(html.as_bytes())?;
        return Ok((save.clone(), page));
    }
    let bytes = model.to_json();
    for (save, page) in default_places(args) {
        if atomic::write_new(&save, &bytes)? {
            inputs.push(save.clone());
            let [report] = OutputFile::prepare([&page], &inputs)?;
            report.write(html.as_bytes())?;
            return Ok((save, page));
        }
    }
    unreachable!("numbers do not end")
}

/// The share of rows to hold out, and the file with held-out rows.
fn held_out(args: &FitArgs) -> CommandResult<(Option<f64>, Option<PathBuf>)> {
    let Some(test) = &args.test else { return Ok((None, None)) };
    match test.parse::<f64>() {
        Ok(share) if (0.0..1.0).contains(&share) => Ok((Some(share), None)),
        Ok(share) => usage(format!("--test is {share}, but must be a share in [0, 1) or a file")),
        Err(_) => Ok((None, Some(test.into()))),
    }
}

fn options(args: &FitArgs, test_share: Option<f64>) -> CommandResult<FitOptions> {
    let l2 = match args.l2 {
        Some(PenaltyChoice::Number(l2)) if !(l2.is_finite() && l2 >= 0.0) => {
            return usage(format!("--l2 is {l2}, but must be a number ≥ 0"));
        }
        Some(PenaltyChoice::Number(l2)) => Some(l2),
        Some(PenaltyChoice::Auto) | None => None,
    };
    let model = match args.model {
        Some(ModelChoice::Family(family)) => Some(family),
        Some(ModelChoice::Auto) | None => None,
    };
    let choose_model = args.model == Some(ModelChoice::Auto);
    if !args.hidden.is_empty() && model != Some(ModelFamily::Mlp) && !choose_model {
        return usage("--hidden is only for --model mlp");
    }
    let hidden: Vec<usize> = args.hidden.iter().map(|&width| width as usize).collect();
    Ok(FitOptions {
        target: args.target.clone(),
        task: args.task,
        model,
        choose_model,
        regression: RegressionChoice { log: args.log_target, huber: args.loss == Some(LossChoice::Huber) },
        hidden: if hidden.is_empty() { HIDDEN.to_vec() } else { hidden },
        test_share,
        seed: args.seed,
        epochs: args.epochs,
        l2,
        choose_l2: args.l2 == Some(PenaltyChoice::Auto),
        intercept: !args.no_intercept,
        standardize: !args.no_standardize,
        constraint: WeightConstraint {
            nonnegative: args.nonnegative,
            sum_to_one: args.sum_to_one,
            unit_norm: args.unit_norm,
            rules: rules(args)?,
        },
        fair: FairOptions { rules: args.fair.clone(), limits: args.limit.clone() },
        leave_out: groups_left_out(args),
        keep: args.keep.clone(),
    })
}

/// The columns of --drop that have groups of --fair: they are read, but are no inputs.
fn groups_left_out(args: &FitArgs) -> Vec<String> {
    let is_group = |column: &&String| args.fair.iter().any(|rule| rule.column == **column);
    args.drop.iter().filter(is_group).cloned().collect()
}

/// The rules for weights, in the words of the library.
fn rules(args: &FitArgs) -> CommandResult<Vec<String>> {
    let mut rules: Vec<String> = args.bounds.iter().chain(&args.constraint).cloned().collect();
    for text in &args.monotone {
        let (column, relation) = match text.rsplit_once('=').map(|(column, way)| (column.trim(), way.trim())) {
            Some((column, "up")) => (column, ">="),
            Some((column, "down")) => (column, "<="),
            _ => return usage(format!("--monotone is {text:?}, but must be COLUMN=up or COLUMN=down")),
        };
        rules.push(format!("`{column}` {relation} 0"));
    }
    Ok(rules)
}

/// The ending of a name, in lower case.
pub fn ending(path: &Path) -> String {
    path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}

fn contents(model: &FittedModel, path: &Path) -> Vec<u8> {
    if ending(path) == "safetensors" { model.to_safetensors() } else { model.to_json() }
}

/// Rows to read: a file, several by a pattern, or standard input, which is saved to a temporary file, because rows are read
/// more than once.
pub struct RowSource<'a> {
    path: &'a Path,
    input: Option<Spool>,
}

impl<'a> RowSource<'a> {
    /// Reads standard input if the path is `-`. Files are read later.
    pub fn open(path: &'a Path, activity: &Activity, interrupt: &AtomicBool, team: &Team) -> CommandResult<Self> {
        if path != Path::new("-") {
            return Ok(Self { path, input: None });
        }
        if team.size() > 1 {
            return usage(
                "standard input has the rows of one process only: save them to a file, which all ranks can read",
            );
        }
        activity.say(&format!("reading {INPUT}"));
        let spool = Spool::of_input(interrupt).map_err(|why| match why.kind() {
            ErrorKind::Interrupted => strust_fit::Error::Interrupted.into(),
            _ => CommandFailure::Failed(format!("cannot read {INPUT} or save it to a temporary file: {why}")),
        })?;
        Ok(Self { path, input: Some(spool) })
    }

    /// Reads the rows with progress; on all ranks, each with its share.
    pub fn read(
        &self,
        options: &ReadOptions,
        activity: &Activity,
        interrupt: &AtomicBool,
        team: &mut Team,
    ) -> CommandResult<DataTable> {
        if let Some(spool) = &self.input {
            let named = |text: String| text.replace(&spool.path().display().to_string(), INPUT);
            let progress = &mut ReadProgress { at: &mut |_| (), interrupt };
            return match DataTable::read_on(spool.path(), options, progress, team).map_err(CommandFailure::from) {
                Ok(table) => Ok(DataTable { path: INPUT.into(), ..table }),
                Err(CommandFailure::Failed(why)) => failure(named(why)),
                Err(CommandFailure::Usage(why)) => usage(named(why)),
                Err(quiet) => Err(quiet),
            };
        }
        // A file that is missing here is an error of all ranks below.
        let files = data_files(self.path).unwrap_or_default();
        let compressed = files.iter().any(|file| matches!(ending(file).as_str(), "gz" | "xz"));
        let size = files.iter().map(|file| std::fs::metadata(file).map_or(0, |data| data.len())).sum();
        let what = format!("reading {}", self.path.display());
        activity.say(&what);
        let mut at = |bytes: u64| {
            if !compressed {
                activity.towards(&what, bytes, size);
            }
        };
        Ok(DataTable::read_on(self.path, options, &mut ReadProgress { at: &mut at, interrupt }, team)?)
    }
}

/// Reads rows once, with progress.
pub fn read(
    path: &Path,
    options: &ReadOptions,
    activity: &Activity,
    interrupt: &AtomicBool,
) -> CommandResult<DataTable> {
    read_on(path, options, activity, interrupt, &mut Team::alone())
}

/// The same on all ranks, each with its share of the rows.
fn read_on(
    path: &Path,
    options: &ReadOptions,
    activity: &Activity,
    interrupt: &AtomicBool,
    team: &mut Team,
) -> CommandResult<DataTable> {
    RowSource::open(path, activity, interrupt, team)?.read(options, activity, interrupt, team)
}

/// How to read held-out rows: a column has the kind that it has in the training rows.
fn like(table: &DataTable, args: &FitArgs) -> ReadOptions {
    ReadOptions { target: args.target.clone(), expected: Some(table.expected()), ..ReadOptions::default() }
}

/// What the program prints.
#[derive(Serialize)]
pub struct FitOutcome<'a> {
    verdict: String,
    #[serde(serialize_with = "shown")]
    model: &'a Path,
    #[serde(serialize_with = "shown")]
    report: &'a Path,
    seconds: f64,
    #[serde(flatten)]
    fit: &'a FitReport,
    #[serde(skip)]
    rows: String,
}

/// A path as text. It need not be text, and the fit must not fail for that.
fn shown<S: serde::Serializer>(path: &&Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

impl<'a> FitOutcome<'a> {
    fn new(fitted: &'a Fitted, save: &'a Path, page: &'a Path, own_test: bool, seconds: f64) -> Self {
        let about = &fitted.model.about;
        let held = grouped(about.data.held_out_rows);
        let held = match about.training.folds {
            Some(_) => "all of them scored by cross-validation".into(),
            None if own_test => format!("{held} {} to test", noun(about.data.held_out_rows, "row")),
            None => format!("{held} held out"),
        };
        let rows = format!(
            "{} to learn from, {held}; {} from {}, {} model",
            counted(about.data.training_rows, "row"),
            counted(about.encoder.inputs(), "input"),
            counted(about.encoder.columns.len() + about.encoder.sparse_scales.len(), "column"),
            about.model.name()
        );
        Self { verdict: verdict(fitted), model: save, report: page, seconds, fit: &fitted.report, rows }
    }

    fn text(&self, shared: &Shared) -> String {
        let mut text = format!("Task: {}\n{}\n", self.fit.task, self.rows);
        for remark in &self.fit.remarks {
            let _ = writeln!(text, "note: {remark}");
        }
        for line in fit_constraints::lines(&self.fit.constraints) {
            let _ = writeln!(text, "constraint: {line}");
        }
        if let Some(report) = &self.fit.fair {
            for line in fit_fair::lines(report, matches!(self.fit.training, Assessment::Classes(_))) {
                let _ = writeln!(text, "fair: {line}");
            }
        }
        let _ = writeln!(text, "{}", heading(&self.verdict, shared));
        let _ = writeln!(text, "Model: {}", self.model.display());
        let _ = writeln!(text, "Report: {}", self.report.display());
        text
    }
}

/// A number with commas between thousands.
pub fn grouped(number: usize) -> String {
    thousands(&number.to_string(), ',')
}

/// A number with commas between thousands, and its noun.
pub fn counted(number: usize, word: &str) -> String {
    format!("{} {}", grouped(number), noun(number, word))
}

/// The result in a sentence.
fn verdict(fitted: &Fitted) -> String {
    let (report, about) = (&fitted.report, &fitted.model.about);
    let (scores, training) = match &report.held_out {
        Some(scores) => (scores, Some(&report.training)),
        None => (&report.training, None),
    };
    let which = if training.is_some() { "held-out" } else { "training" };
    let rough = training.is_some() && is_rough(scores);
    let place = place(scores, which, about.training.folds);
    let mut parts = vec![scored_at(scores, &place, training, rough || about.training.folds.is_some())];
    if rough {
        let rows = if about.training.folds.is_some() { "rows" } else { "held-out rows" };
        parts.push(format!("the {rows} are too few to tell more exactly"));
    }
    if is_a_guess(scores) {
        parts.push("this is no better than guessing".into());
    }
    if let (Assessment::Classes(scores), Some(names)) = (scores, about.task.class_names()) {
        parts.extend(missed(scores, names));
    }
    if let Some(trial) = &report.network {
        parts.push(format!("a network may do better: {}; try --model mlp", trial.compared()));
    }
    parts.push(ended(&fitted.model));
    parts.join("; ")
}

/// Whether the standard error of the main score is large.
fn is_rough(scores: &Assessment) -> bool {
    match scores {
        Assessment::Classes(scores) => accuracy_error(scores) > ROUGH_ACCURACY,
        Assessment::Regression(scores) => scores.r2_error > ROUGH_R2,
    }
}

fn accuracy_error(scores: &ClassAssessment) -> f64 {
    // One more row of each kind keeps an accuracy of 0 or 1 from seeming certain.
    let share = (scores.accuracy * scores.rows as f64 + 1.0) / (scores.rows as f64 + 2.0);
    (share * (1.0 - share) / scores.rows as f64).sqrt()
}

/// Whether the model is better than guessing by less than two standard errors: in R², or in the log-loss.
fn is_a_guess(scores: &Assessment) -> bool {
    match scores {
        Assessment::Classes(scores) => scores.gain < 2.0 * scores.gain_error,
        Assessment::Regression(scores) => scores.r2 < 2.0 * scores.r2_error,
    }
}

/// A clause about the rare class of which the fewest rows are found, if they are almost none.
fn missed(scores: &ClassAssessment, names: &[String]) -> Option<String> {
    let found = |(class, row): (usize, &Vec<u64>)| {
        let rows: u64 = row.iter().sum();
        (row[class] as f64 / rows as f64, rows, &names[class])
    };
    let is_missed = |&(share, rows, _): &(f64, u64, _)| {
        rows >= ROWS_OF_CLASS && rows as f64 <= RARE * scores.rows as f64 && share <= ALMOST_NONE
    };
    let worst = scores.confusion.iter().enumerate().map(found).filter(is_missed).min_by(|a, b| a.0.total_cmp(&b.0));
    worst.map(|(share, rows, name)| {
        format!(
            "only {:.0} % of the {} of the rare class `{name}` are found",
            100.0 * share,
            counted(rows as usize, "row")
        )
    })
}

/// Where scores come from.
pub fn place(scores: &Assessment, which: &str, folds: Option<usize>) -> String {
    let row = format!("{which} row");
    match folds {
        Some(folds) => format!("in {folds}-fold cross-validation of {}", counted(scores.rows(), "row")),
        None => format!("on {}", counted(scores.rows(), row.trim_start())),
    }
}

/// The main scores in a clause.
pub fn scored(scores: &Assessment, which: &str) -> String {
    scored_at(scores, &place(scores, which, None), None, false)
}

/// The same, with those on the training rows and with standard errors if wanted.
pub fn scored_at(scores: &Assessment, place: &str, training: Option<&Assessment>, with_error: bool) -> String {
    let on_training = match training {
        Some(Assessment::Classes(of)) => format!(" ({:.1} % on the training rows)", 100.0 * of.accuracy),
        Some(Assessment::Regression(of)) => format!(" ({:.4} on the training rows)", of.r2),
        None => String::new(),
    };
    match scores {
        Assessment::Classes(scores) => {
            let error = if with_error { format!(" ± {:.1}", 100.0 * accuracy_error(scores)) } else { String::new() };
            format!(
                "{:.1}{error} % {place}{on_training}; always guessing the largest class gives {:.1} %",
                100.0 * scores.accuracy,
                100.0 * scores.largest_share
            )
        }
        Assessment::Regression(scores) => {
            let error = if with_error { format!(" ± {:.2}", scores.r2_error) } else { String::new() };
            let decimals = if with_error { 2 } else { 4 };
            format!(
                "R² {:.decimals$}{error} {place}{on_training}, with a mean error of {}; always guessing the mean has {}",
                scores.r2,
                number(scores.mean_error),
                number(scores.mean_guess_error)
            )
        }
    }
}

fn ended(model: &FittedModel) -> String {
    let training = &model.about.training;
    let epochs = training.epochs.round().max(1.0);
    let unit = if training.method.starts_with("auto") { "epoch" } else { "step" };
    let epochs = format!("{epochs} {}", noun(epochs as usize, unit));
    match training.end {
        TrainingEnd::Converged => format!("converged after {epochs}"),
        TrainingEnd::Epochs => format!("not yet converged after {epochs}"),
        TrainingEnd::Interrupted => format!("stopped after {epochs}"),
        TrainingEnd::Breakdown => format!("broke down after {epochs}: the loss was not finite"),
        TrainingEnd::NoMinimum => {
            "not converged: the classes can be separated, so without a penalty the weights would \
                                   grow forever; use --l2 with a number above 0"
                .into()
        }
    }
}
