//! `strust reproduce theory`, and experiment files on the theory.

use crate::{
    Failure,
    args::{Network, Shared},
    commands::{all_cores, command_line, conclude, refuse, resume_command, unused},
};
use std::{fmt::Write as _, path::Path};
use strust_lab::{
    summary::Summary,
    theory::{self, BUILT_IN, Theory, TheoryPlan},
};

/// All experiments on the theory in one report.
pub fn reproduce(network: &Network, shared: &Shared) -> Result<(), Failure> {
    let open = |(name, text): &(&str, &str)| Theory::parse(Path::new(name), text);
    let experiments = BUILT_IN.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    start("theory", "The theory, measured", experiments, network, shared)
}

/// One of them.
pub fn run(theory: Theory, network: &Network, shared: &Shared) -> Result<(), Failure> {
    let (name, title) = (theory.name.clone(), theory.title.clone());
    start(&name, &title, vec![theory], network, shared)
}

fn start(
    name: &str,
    title: &str,
    mut experiments: Vec<Theory>,
    network: &Network,
    shared: &Shared,
) -> Result<(), Failure> {
    refuse(&format!("run {name}"), shared, &["--epochs"])?;
    if network.data.is_some() || network.device.is_some() {
        return Err(Failure::Usage(format!("--data and --device are for networks, and `{name}` has none")));
    }
    if let Some(seeds) = shared.seeds {
        for experiment in &mut experiments {
            experiment.seeds = seeds;
        }
    }
    let jobs = all_cores(shared);
    let machine = strust_lab::this_machine(jobs, None);
    let plan = TheoryPlan::new(name, title, experiments, command_line(), machine);
    let folder = shared.out.clone().unwrap_or_else(|| unused(Path::new("runs"), name, |path| !path.exists()));
    conclude(&folder, shared, jobs, &resume_command(&folder), |options| theory::start(&folder, &plan, options))
}

/// The checks, a line each, under the experiment they belong to.
pub fn overview(summary: &Summary) -> String {
    let mut text = String::new();
    for section in &summary.sections {
        let _ = writeln!(text, "\n{}", section.title);
        for check in &section.checks {
            if check.is_open() {
                let _ = writeln!(text, "  open   {}: {}", check.name, check.why);
                continue;
            }
            let verdict = if check.holds { "holds" } else { "FAILS" };
            let (measured, bound) = (short(check.measured), short(check.bound));
            let _ = writeln!(text, "  {verdict}  {}: {measured} against {bound}", check.name);
        }
    }
    text
}

fn short(value: f64) -> String {
    if value == 0.0 || (1e-3..1e5).contains(&value.abs()) { format!("{value:.4}") } else { format!("{value:.2e}") }
}
