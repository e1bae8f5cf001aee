//! `strust reproduce theory`, and `strust run` for theory experiments.

use crate::{
    CommandFailure,
    args::{Network, Runs, Shared},
    session::{ResultsFolder, all_cores, command_line, conclude, resume_command, save_every},
};
use std::path::Path;
use strust_lab::{
    experiment::built_in,
    theory::{self, Theory, TheoryPlan},
};

/// Runs all theory experiments and writes one report.
pub fn reproduce(runs: &Runs, network: &Network, shared: &Shared) -> Result<(), CommandFailure> {
    let open = |(name, text): &(&str, &str)| Theory::parse(Path::new(name), text);
    let experiments = built_in::THEORY.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    start("theory", "The theory, measured", experiments, runs, network, shared)
}

/// Runs one theory experiment.
pub fn run(theory: Theory, runs: &Runs, network: &Network, shared: &Shared) -> Result<(), CommandFailure> {
    let (name, title) = (theory.name.clone(), theory.title.clone());
    start(&name, &title, vec![theory], runs, network, shared)
}

fn start(
    name: &str,
    title: &str,
    mut experiments: Vec<Theory>,
    runs: &Runs,
    network: &Network,
    shared: &Shared,
) -> Result<(), CommandFailure> {
    if runs.single.epochs.is_some() {
        return Err(CommandFailure::Usage(format!(
            "--epochs has no effect on `{name}`: leave it out, and change the settings in the file instead"
        )));
    }
    if network.data.is_some() || network.device.is_some() || network.precision.is_some() {
        return Err(CommandFailure::Usage(format!(
            "--data, --device and --precision are only for networks that run on libtorch, and `{name}` has none"
        )));
    }
    if let Some(seeds) = runs.seeds {
        for experiment in &mut experiments {
            experiment.seeds = seeds;
        }
    }
    let jobs = all_cores(runs.jobs);
    let machine = strust_lab::this_machine(jobs, None);
    let plan = TheoryPlan::new(name, title, experiments, command_line(), machine);
    let out = runs.single.out.clone();
    let pace = (jobs, save_every(runs.single.saving)?);
    let results = ResultsFolder::new(out, name)?;
    let folder = results.path();
    conclude(folder, shared, pace, &resume_command(folder), |options| theory::start(folder, &plan, options))
}
