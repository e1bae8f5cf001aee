//! `strust reproduce constrained`.

use crate::{
    CommandFailure,
    args::{Network, Runs, Shared},
    session::{ResultsFolder, command_line, conclude, jobs_on, resume_command, save_every},
};
use std::path::Path;
use strust_lab::{
    constrained::{self, ConstrainedPlan, ConstrainedSettings, ReferenceFile},
    data::benchmark::BenchmarkSpec,
};

/// Runs the small problems and the tasks with data.
pub fn reproduce(
    quick: bool,
    reference: Option<&Path>,
    runs: &Runs,
    network: &Network,
    shared: &Shared,
) -> Result<(), CommandFailure> {
    if runs.single.epochs.is_some() {
        let why = "--epochs has no effect on `constrained`: every task of the file has its own";
        return Err(CommandFailure::Usage(why.into()));
    }
    let reference = reference.map(ReferenceFile::open).transpose()?;
    let mut tasks = ConstrainedPlan::tasks(&crate::zero_tuning::resources(network)?)?;
    let mut settings = ConstrainedSettings::default();
    if quick {
        shorten(&mut settings, &mut tasks);
    }
    if let Some(seeds) = runs.seeds {
        (settings.starts, settings.noise_seeds) = (seeds, seeds);
        tasks.tasks.iter_mut().for_each(|task| task.experiment.seeds = (0..seeds).collect());
    }
    let device = tasks.open_devices()?;
    let jobs = jobs_on(runs.jobs, tasks.on_gpu());
    let machine = strust_lab::this_machine(jobs, device);
    let plan = ConstrainedPlan::new(settings, reference, tasks, command_line(), machine);
    let out = runs.single.out.clone();
    let pace = (jobs, save_every(runs.single.saving)?);
    let results = ResultsFolder::new(out, "constrained")?;
    let folder = results.path();
    conclude(folder, shared, pace, &resume_command(folder), |options| constrained::start(folder, &plan, options))
}

/// One seed and one random start, few noisy steps, one epoch, and every third rate.
fn shorten(settings: &mut ConstrainedSettings, tasks: &mut BenchmarkSpec) {
    *settings = ConstrainedSettings { starts: 1, noise_seeds: 1, noise_steps: 100 };
    for task in &mut tasks.tasks {
        (task.experiment.seeds, task.experiment.epochs) = (vec![0], 1);
        for entrant in &mut task.entrants {
            entrant.settings = entrant.settings.iter().step_by(3).cloned().collect();
        }
    }
}
