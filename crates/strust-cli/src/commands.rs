//! One function a command.

use crate::{
    Failure,
    args::{Jobs, Network, Reproducible, Runs, Saving, Shared},
    show::{self, heading, table},
};
use std::{
    collections::BTreeSet,
    fmt::Write as _,
    io::Write as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use strust_lab::{
    Error,
    data::{
        experiment::{Experiment, MAX_JOBS, ProblemSpec},
        plan::Plan,
        summary::{CurvePoint, MethodSummary, Metric, Spread, Summary},
    },
    device::WITHOUT_DATA,
    format::{brief, plain, plural, written},
    io::{atomic, results::is_theory},
    pipeline,
    registry::{self, methods, problems, problems::is_network},
    run::Options,
    theory::{self, Theory},
};

/// Prints to the standard output; a reader that went away ends the program quietly.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Err(Failure::Quiet),
        Err(e) => Err(Failure::Failed(format!("cannot write to the standard output: {e}"))),
    }
}

/// `strust reproduce`.
pub fn reproduce(
    what: Reproducible,
    quick: bool,
    runs: &Runs,
    network: &Network,
    shared: &Shared,
) -> Result<(), Failure> {
    let open = |name: &str| Experiment::open(Path::new(name));
    let experiment = match (what, quick) {
        (Reproducible::Cifar10, false) => open("cifar10")?,
        (Reproducible::Cifar10, true) => open("cifar10-quick")?,
        (_, true) => return Err(Failure::Usage("--quick is for cifar10; the others are quick".into())),
        (Reproducible::Theory, _) => return crate::theory::reproduce(runs, network, shared),
        (Reproducible::Subspace, _) => Experiment::subspace()?,
        (Reproducible::Digits, _) => open("digits")?,
    };
    start(experiment, runs, network, shared)
}

/// `strust run`.
pub fn run(file: &Path, runs: &Runs, network: &Network, shared: &Shared) -> Result<(), Failure> {
    if let Some(theory) = Theory::open(file)? {
        return crate::theory::run(theory, runs, network, shared);
    }
    start(Experiment::open(file)?, runs, network, shared)
}

fn start(mut experiment: Experiment, runs: &Runs, network: &Network, shared: &Shared) -> Result<(), Failure> {
    let out = runs.single.out.clone();
    let folder = out.unwrap_or_else(|| unused(Path::new("runs"), &experiment.name, |path| !path.exists()));
    let mut plan = plan(&mut experiment, runs, network)?;
    let pace = pace(runs.jobs, runs.single.saving, &experiment)?;
    conclude(&folder, shared, pace, &resume_command(&folder), |options| pipeline::start(&folder, &mut plan, options))
}

/// The plan of an experiment with the options of the command line.
pub fn plan(experiment: &mut Experiment, runs: &Runs, network: &Network) -> Result<Plan, Failure> {
    if let Some(seeds) = runs.seeds {
        experiment.seeds = (0..seeds).collect();
    }
    if let Some(epochs) = runs.single.epochs {
        experiment.epochs = epochs;
        if let Some(tune) = &mut experiment.tune {
            tune.epochs = tune.epochs.min(epochs);
        }
    }
    let given = [
        ("--data", network.data.is_some()),
        ("--device", network.device.is_some()),
        ("--precision", network.precision.is_some()),
    ];
    if let (Some((flag, _)), false) = (given.iter().find(|(_, given)| *given), experiment.has_network()) {
        let why = format!("{flag} is for networks that libtorch runs, and `{}` has none", experiment.name);
        return Err(Failure::Usage(why));
    }
    if let Some(data) = &network.data {
        experiment.set_data(data)?;
    }
    if let Some(device) = &network.device {
        experiment.set_of_networks("device", device.as_str());
    }
    if let Some(precision) = &network.precision {
        experiment.set_of_networks("precision", precision.as_str());
    }
    let settings = experiment.problems.len() * experiment.methods.len();
    let seeds = experiment.tune.as_ref().map_or(experiment.seeds.len(), |tune| tune.seeds as usize);
    if settings.saturating_mul(seeds.max(experiment.seeds.len())) > MAX_JOBS {
        return Err(Failure::Usage(format!(
            "{} problems, {} settings of methods and {seeds} seeds are more than {MAX_JOBS} jobs: have fewer of them",
            experiment.problems.len(),
            experiment.methods.len()
        )));
    }
    let device = experiment.open_devices()?;
    let without = |p: &ProblemSpec| p.parameters.get("data").and_then(|data| data.as_str()).is_none_or(str::is_empty);
    if experiment.problems.iter().filter(|p| is_network(p)).any(without) {
        return Err(Failure::Usage(WITHOUT_DATA.into()));
    }
    let machine = strust_lab::this_machine(jobs(runs.jobs, experiment), device);
    Ok(Plan::new(experiment.clone(), command_line(), machine))
}

/// `strust resume`.
pub fn resume(folder: &Path, jobs: Jobs, saving: Saving, shared: &Shared) -> Result<(), Failure> {
    let again = resume_command(folder);
    if is_theory(folder) {
        let pace = (all_cores(jobs), save_every(saving)?);
        return conclude(folder, shared, pace, &again, |options| theory::resume(folder, options));
    }
    let pace = pace(jobs, saving, &Plan::load(folder)?.experiment)?;
    conclude(folder, shared, pace, &again, |options| pipeline::resume(folder, options))
}

/// Jobs side by side, and the time between two savings.
pub type Pace = (usize, Duration);

pub fn pace(given: Jobs, saving: Saving, experiment: &Experiment) -> Result<Pace, Failure> {
    Ok((jobs(given, experiment), save_every(saving)?))
}

/// All cores; on a GPU one job, because nobody else knows how many fit into its memory.
fn jobs(given: Jobs, experiment: &Experiment) -> usize {
    if experiment.on_gpu() { given.jobs.map_or(1, |jobs| jobs as usize) } else { all_cores(given) }
}

/// As many jobs as asked for, or as there are cores.
pub fn all_cores(given: Jobs) -> usize {
    given.jobs.map_or_else(strust_lab::cores, |jobs| jobs as usize)
}

pub fn save_every(Saving { save_every }: Saving) -> Result<Duration, Failure> {
    Duration::try_from_secs_f64(save_every)
        .map_err(|_| Failure::Usage(format!("--save-every is {save_every}, but must be ≥ 0")))
}

pub fn resume_command(folder: &Path) -> String {
    format!("strust resume {}", quoted(&folder.display().to_string()))
}

/// Runs to the end and shows what came out; `again` is the command that goes on after a stop.
pub fn conclude(
    folder: &Path,
    shared: &Shared,
    (jobs, save_every): Pace,
    again: &str,
    go: impl FnOnce(&Options) -> Result<Summary, Error>,
) -> Result<(), Failure> {
    let interrupt = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupt);
    // The second Ctrl-C does not wait; files are whole at any moment.
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(1);
        }
    })
    .map_err(|e| Failure::Failed(format!("cannot watch for Ctrl-C: {e}")))?;

    let outcome = {
        let progress = show::progress(shared);
        go(&Options { jobs, save_every, interrupt: &interrupt, progress: progress.as_ref() })
    };
    let summary = outcome.map_err(|error| match error {
        Error::Interrupted => Failure::Failed(format!("stopped. Everything is saved; go on with: {again}")),
        error => error.into(),
    })?;
    if shared.json {
        print(&json(&summary)?)?;
    } else if !shared.quiet {
        print(&overview(&summary, shared))?;
        print(&format!("Report: {}\n", folder.join("report.html").display()))?;
    }
    let failed: usize = summary.problems.iter().flat_map(|p| &p.methods).map(|m| m.failures.len()).sum();
    if failed > 0 {
        let runs = plural(failed, "run");
        let report = folder.join("report.html");
        return Err(Failure::Failed(format!("{runs} broke down; {} says which and why", report.display())));
    }
    Ok(())
}

/// A value as indented JSON.
pub fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(|e| Failure::Failed(e.to_string()))
}

fn overview(summary: &Summary, shared: &Shared) -> String {
    let mut text = format!("{}\n", heading(&summary.title, shared));
    text.push_str(&crate::theory::overview(summary));
    for problem in &summary.problems {
        let _ = writeln!(text, "\n{}: medians over seeds, epoch {}", problem.name, summary.epochs);
        let mut header = vec!["method".to_string()];
        header.extend(problem.metrics.iter().map(|m| m.key.clone()));
        header.extend(["seconds", "gradients", "accepted", "seeds"].map(String::from));
        let mut rows = vec![header];
        for method in &problem.methods {
            let Some(last) = &method.last else {
                rows.push(vec![method.label.clone(), "no seed finished".into()]);
                continue;
            };
            let mut row = vec![method.label.clone()];
            row.extend(problem.metrics.iter().map(|m| shown(m, last)));
            row.push(format!("{:.3}", last.seconds.median));
            row.push(format!("{:.0}", last.evaluations.gradients));
            row.push(format!("{:.1} %", 100.0 * method.acceptance_rate));
            row.push(seeds_done(method));
            rows.push(row);
        }
        text.push_str(&table(&rows));
    }
    for tuning in &summary.tuning {
        let Some(best) = tuning.tried.first() else { continue };
        let setting = best.setting.iter().map(|(name, value)| format!("{name} = {}", plain(value)));
        let _ = writeln!(
            text,
            "\n{} on {}: {}, the best of {} settings",
            tuning.method,
            tuning.problem,
            setting.collect::<Vec<_>>().join(", "),
            tuning.tried.len()
        );
    }
    text.push('\n');
    text
}

/// `strust report --publish`.
pub fn publish(folders: &[PathBuf], to: &Path, shared: &Shared) -> Result<(), Failure> {
    let [folder] = folders else { return Err(Failure::Usage("--publish takes one folder of results".into())) };
    pipeline::publish(folder, to)?;
    if shared.quiet { Ok(()) } else { print(&format!("Report: {}\n", to.join("report.html").display())) }
}

/// What the Markdown tables show.
pub struct Tables {
    /// After which epochs.
    pub at: Vec<u64>,
    /// Mean ± standard deviation instead of the median.
    pub mean: bool,
}

fn load(folder: &Path) -> Result<Summary, Error> {
    if is_theory(folder) { theory::load_summary(folder) } else { pipeline::load_summary(folder) }
}

/// `strust report --markdown` and `--into`.
pub fn tables(folders: &[PathBuf], shown: &Tables, into: Option<&Path>) -> Result<(), Failure> {
    let summaries: Vec<Summary> = folders.iter().map(|folder| load(folder)).collect::<Result<_, _>>()?;
    let Some(file) = into else {
        return summaries.iter().try_for_each(|summary| print(&markdown_tables(summary, shown)));
    };
    for (i, Summary { experiment, .. }) in summaries.iter().enumerate() {
        if summaries[..i].iter().any(|other| other.experiment == *experiment) {
            return Err(Failure::Failed(format!(
                "two of the folders are of the experiment `{experiment}`, and only one fits between the marks of that name; give one of them"
            )));
        }
    }
    summaries.iter().try_for_each(|summary| put_into(file, &summary.experiment, &markdown_tables(summary, shown)))
}

/// `strust report`.
pub fn report(folders: &[PathBuf], out: Option<PathBuf>, shared: &Shared) -> Result<(), Failure> {
    let summaries: Vec<Summary> = folders.iter().map(|folder| load(folder)).collect::<Result<_, _>>()?;
    let folder = match (folders, out) {
        (_, Some(out)) => {
            strust_lab::report::check_place(&out, folders)?;
            out
        }
        ([one], None) => one.clone(),
        _ => unused(Path::new("runs"), "comparison", |path| !path.exists()),
    };
    strust_lab::report::write(&folder, &summaries)?;
    if shared.json {
        print(&json(&summaries)?)
    } else if shared.quiet {
        Ok(())
    } else {
        print(&format!("Report: {}\n", folder.join("report.html").display()))
    }
}

/// One table a problem: medians, or means, after the given epochs.
fn markdown_tables(summary: &Summary, Tables { at, mean }: &Tables) -> String {
    let what = if *mean { "mean ± standard deviation" } else { "median" };
    let mut text = crate::theory::markdown(summary);
    for problem in &summary.problems {
        let seeds: BTreeSet<String> = problem.methods.iter().map(seeds_done).collect();
        let seeds = seeds.into_iter().collect::<Vec<_>>().join(" or ");
        let labels: Vec<&str> = problem.metrics.iter().map(|m| m.label.as_str()).collect();
        let _ = writeln!(
            text,
            "**{}**, {}: {what} over {seeds} {} of {}, after so many epochs.\n",
            problem.name,
            problem.title,
            if seeds == "1" { "seed" } else { "seeds" },
            labels.join(" / ")
        );
        let _ = writeln!(text, "| method | {} |", at.iter().map(u64::to_string).collect::<Vec<_>>().join(" | "));
        let _ = writeln!(text, "|---|{}", "---|".repeat(at.len()));
        for method in &problem.methods {
            let cells = at.iter().map(|&epoch| cell(method, epoch, &problem.metrics, *mean));
            let _ = writeln!(text, "| {} | {} |", method.label, cells.collect::<Vec<_>>().join(" | "));
        }
        text.push('\n');
    }
    text
}

/// How many seeds finished, and of how many if some did not.
fn seeds_done(method: &MethodSummary) -> String {
    match (method.seeds.len(), method.failures.len()) {
        (done, 0) => done.to_string(),
        (done, failed) => format!("{done} of {}", done + failed),
    }
}

fn cell(method: &MethodSummary, epoch: u64, metrics: &[Metric], mean: bool) -> String {
    let point = method.curve.iter().find(|p| p.epoch == epoch);
    let show = if mean { with_deviation } else { shown };
    let values = metrics.iter().map(|metric| point.map_or("–".into(), |point| show(metric, point)));
    values.collect::<Vec<_>>().join(" / ")
}

/// The median of a metric: a share in per cent, anything else with its power of ten.
fn shown(metric: &Metric, point: &CurvePoint) -> String {
    let Some(spread) = point.metrics.get(&metric.key) else { return "–".into() };
    if metric.log { brief(spread.median) } else { format!("{:.1} %", 100.0 * spread.median) }
}

/// Mean ± standard deviation.
fn with_deviation(metric: &Metric, point: &CurvePoint) -> String {
    let Some(Spread { mean, std, .. }) = point.metrics.get(&metric.key) else { return "–".into() };
    if *std == 0.0 {
        // One seed, as a rule: there is nothing to add.
        shown(metric, point)
    } else if metric.log {
        // Digits down to the second of the deviation say all there is to say.
        let digits = (1.0 - std.log10().floor()).clamp(0.0, 6.0) as usize;
        format!("{mean:.digits$} ± {std:.digits$}")
    } else {
        format!("{:.2} ± {:.2} %", 100.0 * mean, 100.0 * std)
    }
}

/// Replaces what stands between the lines `<!-- strust:NAME -->` and `<!-- /strust -->` of a file.
fn put_into(file: &Path, name: &str, table: &str) -> Result<(), Failure> {
    let failed = |why: String| Failure::Failed(format!("{}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|e| failed(e.to_string()))?;
    let (open, close) = (format!("<!-- strust:{name} -->"), "<!-- /strust -->");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let marks: Vec<usize> = (0..lines.len()).filter(|&i| lines[i].trim() == open).collect();
    let [start] = marks[..] else {
        let found = marks.len();
        return Err(failed(format!("there must be one line {open} to put the tables after, and there are {found}")));
    };
    let marker = |line: &str| line.trim().starts_with("<!-- strust:") || line.trim() == close;
    let end = (start + 1..lines.len()).find(|&i| marker(lines[i])).filter(|&i| lines[i].trim() == close);
    let end = end.ok_or_else(|| failed(format!("there is no line {close} after {open}")))?;
    // What is not ours stays as it is, ends of lines too.
    let table = if lines[start].ends_with("\r\n") { table.replace('\n', "\r\n") } else { table.into() };
    let new = [&lines[..=start].concat(), &table, &lines[end..].concat()].map(String::as_str).concat();
    atomic::write(file, new.as_bytes())?;
    Ok(())
}

/// `strust list`.
pub fn list(name: Option<&str>, shared: &Shared) -> Result<(), Failure> {
    let (methods, problems) = (methods::all(), problems::all());
    let wanted = |entry: &&registry::Entry| name.is_none_or(|name| name == entry.name);
    let methods: Vec<_> = methods.iter().filter(wanted).collect();
    let problems: Vec<_> = problems.iter().filter(wanted).collect();
    if let (Some(name), true, true) = (name, methods.is_empty(), problems.is_empty()) {
        let (methods, problems) = (methods::all(), problems::all());
        let all = || methods.iter().chain(&problems).map(|e| e.name);
        let hint = registry::nearest(name, all()).map_or_else(
            || format!("known: {}", all().collect::<Vec<_>>().join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        return Err(Failure::Usage(format!("there is no method or problem `{name}`; {hint}")));
    }
    if shared.json {
        return print(&json(&serde_json::json!({ "methods": methods, "problems": problems }))?);
    }
    let mut text = String::new();
    for (title, entries) in [("Methods", methods), ("Problems", problems)] {
        if entries.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{}", heading(title, shared));
        for entry in entries {
            let constrained = if entry.constrained { ", with constraint" } else { "" };
            let _ = writeln!(text, "\n{} – {}{constrained}", heading(entry.name, shared), entry.title);
            let width = |of: fn(&registry::Parameter) -> usize| entry.parameters.iter().map(of).max().unwrap_or(0);
            let (names, defaults, ranges) = (
                width(|p| p.name.len()),
                width(|p| written(&p.default).chars().count()),
                width(|p| p.allowed.chars().count()),
            );
            for p in &entry.parameters {
                let _ = writeln!(
                    text,
                    "  {:<names$}  {:<defaults$}  {:<ranges$}  {}",
                    p.name,
                    written(&p.default),
                    p.allowed,
                    p.meaning
                );
            }
        }
        text.push('\n');
    }
    print(&text)
}

/// The first of NAME, NAME-2, NAME-3 … that is free.
pub fn unused(parent: &Path, name: &str, free: impl Fn(&Path) -> bool) -> PathBuf {
    let mut path = parent.join(name);
    let mut number = 1;
    while !free(&path) {
        number += 1;
        path = parent.join(format!("{name}-{number}"));
    }
    path
}

/// The command as it would be typed again.
pub fn command_line() -> String {
    std::iter::once("strust".into())
        .chain(std::env::args().skip(1).map(|arg| quoted(&arg)))
        .collect::<Vec<_>>()
        .join(" ")
}

fn quoted(arg: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@%+".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) { arg.into() } else { format!("'{}'", arg.replace('\'', r"'\''")) }
}
