//! `strust reproduce zero-tuning` and `second-order`, and `strust run` for benchmarks.

use crate::{
    CommandFailure,
    args::{Network, Runs, Shared},
    session::{ResultsFolder, command_line, conclude, jobs_on, resume_command, save_every},
};
use std::path::Path;
use strust_lab::{
    data::benchmark::BenchmarkSpec,
    experiment::ExperimentText,
    zero_tuning::{self, BenchmarkPlan, Resources},
};

/// Runs a built-in benchmark.
pub fn reproduce(name: &str, runs: &Runs, network: &Network, shared: &Shared) -> Result<(), CommandFailure> {
    let benchmark = read(&ExperimentText::open(Path::new(name))?, network)?;
    run(benchmark.expect("the built-in file is a benchmark"), runs, shared)
}

/// Reads a benchmark; `None` if the text is another kind of experiment.
pub fn read(text: &ExperimentText, network: &Network) -> Result<Option<BenchmarkSpec>, CommandFailure> {
    // The options are those of a benchmark only if the file is one.
    if BenchmarkSpec::from_text(text, &Resources::default())?.is_none() {
        return Ok(None);
    }
    Ok(BenchmarkSpec::from_text(text, &resources(network)?)?)
}

/// The data and the device of tasks.
pub fn resources(network: &Network) -> Result<Resources, CommandFailure> {
    if let Some(data) = network.data.as_ref().filter(|data| !data.is_dir()) {
        let why =
            format!("--data {}: there is no such folder; the data sets of a benchmark are in one", data.display());
        return Err(CommandFailure::Usage(why));
    }
    let Network { data, device, precision } = network;
    Ok(Resources { data: data.clone(), device: device.clone(), precision: precision.clone() })
}

/// Runs a benchmark and writes its report.
pub fn run(mut benchmark: BenchmarkSpec, runs: &Runs, shared: &Shared) -> Result<(), CommandFailure> {
    let name = benchmark.name.clone();
    if runs.single.epochs.is_some() {
        let why = format!("--epochs has no effect on `{name}`: every task of the file has its own");
        return Err(CommandFailure::Usage(why));
    }
    if benchmark.tasks.is_empty() {
        let why = benchmark.skipped.iter().map(|task| format!("{}: {}", task.name, task.why)).collect::<Vec<_>>();
        return Err(CommandFailure::Failed(format!("every task of `{name}` is skipped; {}", why.join("; "))));
    }
    if let Some(seeds) = runs.seeds {
        benchmark.tasks.iter_mut().for_each(|task| task.experiment.seeds = (0..seeds).collect());
    }
    let device = benchmark.open_devices()?;
    let jobs = jobs_on(runs.jobs, benchmark.on_gpu());
    let plan = BenchmarkPlan::new(benchmark, command_line(), strust_lab::this_machine(jobs, device));
    let out = runs.single.out.clone();
    let pace = (jobs, save_every(runs.single.saving)?);
    let results = ResultsFolder::new(out, &name)?;
    let folder = results.path();
    conclude(folder, shared, pace, &resume_command(folder), |options| zero_tuning::start(folder, &plan, options))
}
