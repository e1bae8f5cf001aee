//! One function per command.

use crate::{
    CommandFailure, CommandResult,
    args::{Figures, Jobs, Reproducible, Runs, Saving, Shared},
    failure,
    session::{
        ResultsFolder, command_line, conclude, jobs, jobs_on, pace, print, print_json, resume_command, save_every,
    },
    show::{columns, heading},
    suites,
    tables::{Tables, latex_tables, markdown_tables},
    usage,
};
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};
use strust_lab::{
    data::{
        experiment::{Experiment, MAX_JOBS, ProblemSpec},
        plan::Plan,
        summary::Summary,
    },
    device::WITHOUT_DATA,
    experiment::folder_with,
    format::{plural, written},
    io::{
        output::OutputFile,
        results::{own_files, suite_in},
        stream::read_saved,
    },
    pipeline,
    registry::{self, methods, problems, problems::needs_data},
    report,
};

/// `strust reproduce`.
pub fn reproduce(
    what: Reproducible,
    quick: bool,
    reference: Option<&Path>,
    runs: &Runs,
    shared: &Shared,
) -> CommandResult {
    let open = |name: &str| Experiment::open_with(Path::new(name), &runs.set);
    if reference.is_some() && !matches!(what, Reproducible::Constrained) {
        return usage("--reference is only for constrained: leave it out");
    }
    let experiment = match (what, quick) {
        (Reproducible::Constrained, _)
        | (
            Reproducible::Theory | Reproducible::ZeroTuning | Reproducible::SecondOrder | Reproducible::Fairness,
            false,
        ) => {
            return suites::reproduce(what, quick, reference, runs, shared);
        }
        (Reproducible::Cifar10, false) => open("cifar10")?,
        (Reproducible::Cifar10, true) => open("cifar10-quick")?,
        (_, true) => {
            return usage("--quick is only for cifar10 and constrained: leave it out");
        }
        (Reproducible::Subspace, false) => Experiment::subspace(&runs.set)?,
        (Reproducible::Digits, false) => open("digits")?,
    };
    start(experiment, runs, shared)
}

/// `strust run`.
pub fn run(file: &Path, runs: &Runs, shared: &Shared) -> CommandResult {
    let text = suites::open(file)?;
    if suites::run(&text, runs, shared)? {
        return Ok(());
    }
    start(Experiment::from_text(&text, &runs.set)?, runs, shared)
}

fn start(mut experiment: Experiment, runs: &Runs, shared: &Shared) -> CommandResult {
    let out = runs.single.out.clone();
    let name = folder_with(&experiment.name, &runs.set);
    let mut plan = plan(&mut experiment, runs)?;
    let pace = pace(runs.jobs, runs.single.saving, &experiment)?;
    let results = ResultsFolder::new(out, &name)?;
    let folder = results.path();
    conclude(folder, shared, pace, &resume_command(folder), |options| pipeline::start(folder, &mut plan, options))
}

/// The plan of an experiment with the options of the command line.
pub fn plan(experiment: &mut Experiment, runs: &Runs) -> CommandResult<Plan> {
    if let Some(seeds) = runs.seeds {
        experiment.seeds = (0..seeds).collect();
    }
    if let Some(epochs) = runs.single.epochs {
        experiment.epochs = epochs;
        if let Some(tune) = &mut experiment.tune {
            tune.epochs = tune.epochs.min(epochs);
        }
    }
    let network = &runs.network;
    let given = [
        ("--data", network.data.is_some()),
        ("--device", network.device.is_some()),
        ("--precision", network.precision.is_some()),
    ];
    if let (Some((flag, _)), false) = (given.iter().find(|(_, given)| *given), experiment.has_network()) {
        let why = format!("{flag} is only for networks that run on libtorch, and `{}` has none", experiment.name);
        return usage(why);
    }
    if let Some(data) = &network.data {
        if !experiment.needs_data() {
            let why =
                "--data is for networks without built-in data, and `{}` has none: set `data` in the experiment file";
            return usage(why.replace("{}", &experiment.name));
        }
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
        return usage(format!(
            "{}, {} and {} make more than {MAX_JOBS} jobs: use fewer of them",
            plural(experiment.problems.len(), "problem"),
            plural(experiment.methods.len(), "method setting"),
            plural(seeds, "seed")
        ));
    }
    let device = experiment.open_devices()?;
    let without = |p: &ProblemSpec| p.parameters.get("data").and_then(|data| data.as_str()).is_none_or(str::is_empty);
    if experiment.problems.iter().filter(|p| needs_data(p)).any(without) {
        return usage(WITHOUT_DATA);
    }
    let machine = strust_lab::this_machine(jobs(runs.jobs, experiment), device);
    Ok(Plan::new(experiment.clone(), command_line(), machine))
}

/// `strust resume`.
pub fn resume(folder: &Path, epochs: Option<u64>, jobs: Jobs, saving: Saving, shared: &Shared) -> CommandResult {
    let again = resume_command(folder);
    if epochs.is_some() && suite_in(folder).is_some() {
        let why =
            "--epochs lengthens the runs of an experiment: this folder holds many of them, each with its own epochs";
        return usage(why);
    }
    if let Some(kind) = suites::kind_in(folder)? {
        let pace = (jobs_on(jobs, (kind.on_gpu)(folder)?), save_every(saving)?);
        return conclude(folder, shared, pace, &again, |options| (kind.resume)(folder, options));
    }
    let pace = pace(jobs, saving, &Plan::load(folder)?.experiment)?;
    if let Some(epochs) = epochs {
        pipeline::lengthen(folder, epochs)?;
    }
    conclude(folder, shared, pace, &again, |options| pipeline::resume(folder, options))
}

/// `strust report --publish`.
pub fn publish(folders: &[PathBuf], to: &Path, shared: &Shared) -> CommandResult {
    let [folder] = folders else { return usage("--publish takes one results folder") };
    let publish = suites::kind_in(folder)?.map_or(pipeline::publish as fn(&Path, &Path) -> _, |kind| kind.publish);
    publish(folder, to)?;
    if shared.quiet { Ok(()) } else { print(&format!("Report: {}\n", to.join("report.html").display())) }
}

/// The summary of a folder; with `unfinished`, also of a run that is not complete.
fn load(folder: &Path, unfinished: bool) -> CommandResult<Summary> {
    Ok(if let Some(kind) = suites::kind_in(folder)? {
        (kind.load_summary)(folder)
    } else if unfinished {
        pipeline::load_summary_so_far(folder)
    } else {
        pipeline::load_summary(folder)
    }?)
}

/// The summaries of some folders, with the style of their figures.
fn load_styled(folders: &[PathBuf], unfinished: bool, figures: &Figures) -> CommandResult<Vec<Summary>> {
    let summaries: Vec<Summary> = folders.iter().map(|folder| load(folder, unfinished)).collect::<Result<_, _>>()?;
    let mut style = summaries.first().map(|summary| summary.figures.clone()).unwrap_or_default();
    if let Some(formats) = &figures.formats {
        style.formats.clone_from(formats);
    }
    if let Some((width, height)) = figures.size {
        (style.width, style.height) = (width, height);
    }
    style.titles &= !figures.no_titles;
    style.average = figures.average.unwrap_or(style.average);
    style.labels.extend(figures.labels.iter().cloned());
    if !figures.order.is_empty() {
        style.order.clone_from(&figures.order);
    }
    let methods = summaries.iter().flat_map(|summary| &summary.problems).flat_map(|problem| &problem.methods);
    let mut methods: Vec<(&str, &str)> = methods.map(|method| (method.label.as_str(), method.name.as_str())).collect();
    methods.sort_unstable();
    methods.dedup();
    style.check(&methods).map_err(|(_, why)| CommandFailure::Usage(why))?;
    Ok(report::arranged(summaries, &style))
}

/// `strust report --markdown`, `--latex` and `--into`.
pub fn tables(folders: &[PathBuf], shown: &Tables, into: Option<&Path>, figures: &Figures) -> CommandResult {
    let summaries = load_styled(folders, false, figures)?;
    if shown.latex {
        return summaries.iter().try_for_each(|summary| print(&latex_tables(summary, shown)));
    }
    let Some(file) = into else {
        return summaries.iter().try_for_each(|summary| print(&markdown_tables(summary, shown)));
    };
    for (i, Summary { experiment, .. }) in summaries.iter().enumerate() {
        if summaries[..i].iter().any(|other| other.experiment == *experiment) {
            return failure(format!(
                "two folders hold the experiment `{experiment}`, but the file has one place for its tables: give only one of these folders"
            ));
        }
    }
    let inputs: Vec<PathBuf> = folders.iter().flat_map(|folder| own_files(folder)).collect();
    let [output] = OutputFile::prepare([file], &inputs)?;
    let failed = |why: String| CommandFailure::Failed(format!("{}: {why}", file.display()));
    let text = read_saved(file).and_then(|text| String::from_utf8(text).map_err(std::io::Error::other));
    let mut text = text.map_err(|e| failed(e.to_string()))?;
    for summary in &summaries {
        text = inserted(&text, &summary.experiment, &markdown_tables(summary, shown)).map_err(failed)?;
    }
    Ok(output.write(text.as_bytes())?)
}

/// `strust report`.
pub fn report(folders: &[PathBuf], out: Option<PathBuf>, figures: &Figures, shared: &Shared) -> CommandResult {
    let summaries = load_styled(folders, true, figures)?;
    let out = match (folders, out) {
        (_, Some(out)) => {
            report::check_place(&out, folders)?;
            Some(out)
        }
        ([one], None) => Some(one.clone()),
        _ => None,
    };
    let results = ResultsFolder::new(out, "comparison")?;
    let folder = results.path();
    report::write(folder, &summaries)?;
    if shared.json {
        print_json(&summaries)
    } else if shared.quiet {
        Ok(())
    } else {
        print(&format!("Report: {}\n", folder.join("report.html").display()))
    }
}

/// Replaces what is between the lines `<!-- strust:NAME -->` and `<!-- /strust -->` of a text.
fn inserted(text: &str, name: &str, table: &str) -> Result<String, String> {
    let (open, close) = (format!("<!-- strust:{name} -->"), "<!-- /strust -->");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let marks: Vec<usize> = (0..lines.len()).filter(|&i| lines[i].trim() == open).collect();
    let [start] = marks[..] else {
        let found = marks.len();
        return Err(format!("the file must have exactly one line {open}, but it has {found}"));
    };
    let marker = |line: &str| line.trim().starts_with("<!-- strust:") || line.trim() == close;
    let end = (start + 1..lines.len()).find(|&i| marker(lines[i])).filter(|&i| lines[i].trim() == close);
    let end = end.ok_or_else(|| format!("the line {close} is missing after {open}: add it"))?;
    // A name must not look like one of the markers.
    let table = table.replace("<!--", "&lt;!--");
    // Keep the file's line endings.
    let table = if lines[start].ends_with("\r\n") { table.replace('\n', "\r\n") } else { table };
    Ok([&lines[..=start].concat(), &table, &lines[end..].concat()].map(String::as_str).concat())
}

/// `strust list`.
pub fn list(name: Option<&str>, shared: &Shared) -> CommandResult {
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
        return usage(format!("there is no method or problem `{name}`; {hint}"));
    }
    if shared.json {
        return print_json(&serde_json::json!({ "methods": methods, "problems": problems }));
    }
    let mut text = String::new();
    for (title, entries) in [("Methods", methods), ("Problems", problems)] {
        if entries.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{}", heading(title, shared));
        if name.is_some() {
            for entry in entries {
                text.push_str(&detailed(entry, shared));
            }
        } else {
            let rows: Vec<_> = entries.iter().map(|entry| vec![format!("  {}", entry.name), titled(entry)]).collect();
            text.push_str(&columns(&rows));
        }
        text.push('\n');
    }
    if name.is_none() {
        text.push_str("strust list NAME shows the parameters of one, and --json those of all\n");
    }
    print(&text)
}

/// What a method or problem is, in one line.
fn titled(entry: &registry::Entry) -> String {
    format!("{}{}", entry.title, if entry.constrained { ", with constraint" } else { "" })
}

/// A method or problem with its parameters.
fn detailed(entry: &registry::Entry, shared: &Shared) -> String {
    let parameter = |p: &registry::Parameter| {
        vec![format!("  {}", p.name), written(&p.default), p.allowed.clone(), p.meaning.to_string()]
    };
    let rows: Vec<_> = entry.parameters.iter().map(parameter).collect();
    format!("\n{} – {}\n{}", heading(entry.name, shared), titled(entry), columns(&rows))
}
