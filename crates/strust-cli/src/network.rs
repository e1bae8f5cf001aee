//! The commands for networks: `strust train`, `strust evaluate`.

use crate::{
    CommandFailure, CommandResult,
    args::{Jobs, Network, Runs, Shared, Single},
    commands, failure,
    fit::input_files,
    session::{self, print, print_json},
    show::{heading, table},
    tables::{by_class, confusion, shown_share},
    usage,
};
use std::{
    io::Read as _,
    path::{Path, PathBuf},
};
use strust_data::read::open_plain;
use strust_fit::FittedModel;
use strust_lab::{
    analyze::network::{self, Scores, export},
    data::{experiment::Experiment, plan::Plan},
    io::{output::OutputFile, results::own_files},
    pipeline,
    registry::{methods, problems::is_network},
};

/// `strust train`: runs one job and saves its network. The same command resumes a stopped run.
pub fn train(
    file: &Path,
    save: &Path,
    method: &str,
    seed: u64,
    single: Single,
    network: Network,
    shared: &Shared,
) -> CommandResult {
    let runs = Runs { seeds: None, set: Vec::new(), single, jobs: Jobs { jobs: None }, network };
    let mut experiment = Experiment::open(file)?;
    if !experiment.has_network() {
        return failure(format!(
            "{}: the experiment has no network; `strust train` needs a problem of kind `cifar10`, `convnet` or `gpt`",
            file.display()
        ));
    }
    let names: Vec<String> = experiment.methods.iter().map(|m| m.label.clone()).collect();
    experiment.methods.retain(|m| m.label == method);
    if experiment.methods.is_empty() && methods::all().iter().any(|e| e.name == method && !e.constrained) {
        experiment.methods.extend(methods::with_defaults(method));
    }
    if experiment.methods.is_empty() {
        let names = names.join(", ");
        return usage(format!(
            "{}: there is no method `{method}`; choose one of {names}, or one of `strust list`",
            file.display()
        ));
    }
    experiment.problems.retain(is_network);
    if experiment.problems.len() > 1 {
        let many = experiment.problems.len();
        return failure(format!("{}: the experiment has {many} networks; keep only one", file.display()));
    }
    (experiment.seeds, experiment.tune) = (vec![seed], None);
    // The only job can use all cores.
    experiment.set_of_networks("threads", u32::try_from(strust_lab::cores()).map_or(1, |cores| cores.min(1024)));
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    experiment.name = format!("{}-{}", experiment.name, method.chars().map(plain).collect::<String>());
    // Find this out now, not after hours of training.
    let mut inputs = input_files(&[file]);
    OutputFile::prepare([save], &inputs)?;
    if !is_model(save) {
        return failure(format!(
            "{}: the file exists and is not a model: choose another file with --save",
            save.display()
        ));
    }

    let mut plan = commands::plan(&mut experiment, &runs)?;
    let begun = |folder: &Path| Plan::load(folder).ok().filter(|begun| is_same_training(begun, &plan));
    let folder = runs.single.out.clone().unwrap_or_else(|| {
        session::unused(Path::new("runs"), &experiment.name, |folder| !folder.exists() || begun(folder).is_some())
    });
    let data: Vec<PathBuf> = experiment.data_paths().collect();
    inputs.extend(input_files(&data.iter().map(PathBuf::as_path).collect::<Vec<_>>()));
    inputs.extend(own_files(&folder));
    let [model] = OutputFile::prepare([save], &inputs)?;
    let begun = begun(&folder);
    let resumes = begun.is_some();
    plan = begun.unwrap_or(plan);
    let pace = session::pace(runs.jobs, runs.single.saving, &experiment)?;
    session::conclude(&folder, shared, pace, &session::command_line(), |options| {
        let summary =
            if resumes { pipeline::resume(&folder, options)? } else { pipeline::start(&folder, &mut plan, options)? };
        // Save the model before printing: a closed output must not lose it.
        options.team.meanwhile(|| export(&folder, &plan, &model))?;
        Ok(summary)
    })?;
    if shared.quiet || shared.json { Ok(()) } else { print(&format!("Model: {}\n", save.display())) }
}

/// Whether a model may be written here: there is no file, or it starts like safetensors (a length, then JSON).
fn is_model(path: &Path) -> bool {
    let mut start = [0; 9];
    match open_plain(path).and_then(|mut file| file.read_exact(&mut start)) {
        Ok(()) => start[8] == b'{' && start[5..8] == [0; 3],
        Err(e) => e.kind() == std::io::ErrorKind::NotFound,
    }
}

/// Whether two plans train the same network. The number of threads may differ: a run can resume on a machine with
/// another number of cores and keeps its own number of threads.
fn is_same_training(one: &Plan, other: &Plan) -> bool {
    let trained = |plan: &Plan| {
        let mut plan = plan.clone();
        let problems = plan.experiment.problems.iter_mut().chain(plan.jobs.iter_mut().map(|job| &mut job.problem));
        problems.for_each(|problem| drop(problem.parameters.remove("threads")));
        (plan.experiment, plan.jobs)
    };
    trained(one) == trained(other)
}

/// `strust evaluate`.
pub fn evaluate(model: &Path, unchecked: bool, network: &Network, shared: &Shared) -> CommandResult {
    if FittedModel::is_one(model) {
        let why = "a model of `strust fit` needs the rows: strust evaluate MODEL DATA";
        return usage(why);
    }
    let missing =
        || CommandFailure::Usage("`strust evaluate` needs --data DIR, the folder with the test images".into());
    let data = network.data.as_deref().ok_or_else(missing)?;
    if network.precision.is_some() {
        return usage("`strust evaluate` always uses single precision: leave out --precision");
    }
    let device = network.device.as_deref().unwrap_or("auto");
    let evaluation = network::evaluate(model, data, unchecked, device)?;
    if shared.json { print_json(&evaluation) } else { print(&text(&evaluation, shared)) }
}

fn text(e: &Scores, shared: &Shared) -> String {
    let share = |part: u64, whole: u64| shown_share(part as f64 / whole as f64);
    let title = format!("{} of {} images, on {}", shown_share(e.accuracy), e.images, e.device);
    let names: Vec<String> = e.classes.iter().map(|class| class.name.clone()).collect();
    let confusion = table(&confusion(&names, &e.confusion));
    let classes = table(&by_class(&names, &e.confusion, "images", share));
    format!("{}\n{classes}\n{}\n{confusion}", heading(&title, shared), heading("Confusion matrix", shared))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn training_resumes_on_a_machine_with_another_number_of_cores() {
        let plan = |parameter: &str, value: u32| {
            let mut experiment = Experiment::open(Path::new("cifar10")).unwrap();
            experiment.set_of_networks(parameter, value);
            Plan::new(experiment, String::new(), strust_lab::this_machine(1, None))
        };
        assert!(is_same_training(&plan("threads", 2), &plan("threads", 16)));
        assert!(!is_same_training(&plan("threads", 2), &plan("train_images", 16)));
    }
}
