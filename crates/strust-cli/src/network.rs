//! The commands for networks: `strust train`, `strust evaluate`, `strust bench cifar10`.

use crate::{
    Failure,
    args::{Network, Shared},
    commands::{self, json, print, refuse},
    show::{heading, table},
};
use std::path::Path;
use strust_lab::{
    conduct,
    experiment::Experiment,
    network::{self, Evaluation},
    plan::Plan,
};

/// `strust train`: a run of one job, of which the network is kept. The same command goes on with a run that was stopped.
pub fn train(
    file: &Path,
    save: &Path,
    method: &str,
    seed: u64,
    network: &Network,
    shared: &Shared,
) -> Result<(), Failure> {
    refuse("train", shared, &["--seeds", "--jobs"])?;
    let mut experiment = Experiment::open(file)?;
    if !experiment.has_network() {
        return Err(Failure::Failed(format!("{}: only a network can be trained and saved: `cifar10`", file.display())));
    }
    let names: Vec<String> = experiment.methods.iter().map(|m| m.label.clone()).collect();
    experiment.methods.retain(|m| m.label == method);
    if experiment.methods.is_empty() {
        let names = names.join(", ");
        return Err(Failure::Failed(format!("{}: there is no method `{method}`; there are {names}", file.display())));
    }
    experiment.problems.truncate(1);
    (experiment.seeds, experiment.tune) = (vec![seed], None);
    experiment.name = format!("{}-{method}", experiment.name);
    // Better known now than after hours.
    conduct::check_writable(save)?;

    let folder = shared.out.clone().unwrap_or_else(|| Path::new("runs").join(&experiment.name));
    let mut plan = commands::plan(&mut experiment, network, shared)?;
    commands::finish(&folder, shared, &experiment, &commands::command_line(), |options| match Plan::load(&folder) {
        Ok(begun) if begun.jobs == plan.jobs => conduct::resume(&folder, options),
        _ => conduct::start(&folder, &mut plan, options),
    })?;
    export(&folder, &plan, save)?;
    if shared.quiet || shared.json { Ok(()) } else { print(&format!("Model: {}\n", save.display())) }
}

/// `strust evaluate`.
pub fn evaluate(model: &Path, unchecked: bool, network: &Network, shared: &Shared) -> Result<(), Failure> {
    refuse("evaluate", shared, &["--seeds", "--epochs", "--jobs", "--out"])?;
    let missing = || Failure::Usage("`strust evaluate` needs --data DIR, with the test images".into());
    let data = network.data.as_deref().ok_or_else(missing)?;
    let evaluation = measure(model, data, unchecked, network.device.as_deref().unwrap_or("auto"))?;
    if shared.json { print(&json(&evaluation)?) } else { print(&text(&evaluation, shared)) }
}

fn text(e: &Evaluation, shared: &Shared) -> String {
    let share = |share: Option<f64>| share.map_or("–".into(), |share| format!("{:.1} %", 100.0 * share));
    let title = format!("{} of {} images, on {}", share(Some(e.accuracy)), e.images, e.device);
    let mut classes = vec![["class", "images", "recognised", "precision"].map(String::from).to_vec()];
    for class in &e.classes {
        classes.push(vec![class.name.clone(), class.images.to_string(), share(class.accuracy), share(class.precision)]);
    }
    let names = e.classes.iter().map(|class| class.name.clone());
    let mut confusion = vec![std::iter::once("is \\ taken for".into()).chain(names).collect::<Vec<_>>()];
    for (class, row) in e.classes.iter().zip(&e.confusion) {
        confusion.push(std::iter::once(class.name.clone()).chain(row.iter().map(usize::to_string)).collect());
    }
    format!(
        "{}\n{}\n{}\n{}",
        heading(&title, shared),
        table(&classes),
        heading("Confusions", shared),
        table(&confusion)
    )
}

#[cfg(feature = "torch")]
fn export(folder: &Path, plan: &Plan, save: &Path) -> Result<(), Failure> {
    Ok(network::export(folder, plan, save)?)
}

#[cfg(feature = "torch")]
fn measure(model: &Path, data: &Path, unchecked: bool, device: &str) -> Result<Evaluation, Failure> {
    use strust_lab::catalogue::Files;
    Ok(network::evaluate(model, data, if unchecked { Files::None } else { Files::Official }, device)?)
}

#[cfg(not(feature = "torch"))]
fn export(_: &Path, _: &Plan, _: &Path) -> Result<(), Failure> {
    Err(Failure::Failed(network::WITHOUT_TORCH.into()))
}

#[cfg(not(feature = "torch"))]
fn measure(_: &Path, _: &Path, _: bool, _: &str) -> Result<Evaluation, Failure> {
    Err(Failure::Failed(network::WITHOUT_TORCH.into()))
}

/// `strust bench cifar10`.
pub fn bench(_device: &str, _shared: &Shared) -> Result<(), Failure> {
    Err(Failure::Failed(network::WITHOUT_TORCH.into()))
}
