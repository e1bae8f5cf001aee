//! A sweep over the scales of losses and of data: no run is called converged that is not.

use crate::{consistency::contradictions, each, scaled_file, start};
use std::path::Path;
use strust_lab::{analyze::diagnose::RunVerdict, experiment::Experiment, registry::methods};

/// The powers of ten of the sweep: where squares are exact, near the limits of `f64`, and where they under- or overflow.
const POWERS: [i32; 11] = [-300, -200, -160, -150, -75, 0, 75, 150, 160, 200, 300];

/// A problem of one scale, whose smallest loss is 0 by construction: targets without noise. The scale is that of the
/// loss, of all data, or only of the features.
fn problem(folder: &Path, of: &str, power: i32) -> String {
    let scale = format!("1e{power}");
    if of == "loss" {
        return format!("kind = \"least-squares\"\nn = 30\nd = 4\nscale = {scale}");
    }
    let file = scaled_file(folder, of, scale.parse().unwrap());
    format!("kind = \"least-squares\"\ndata = \"{}\"", file.display())
}

/// All methods without a constraint, with their defaults, and rates that suit the scale.
fn all_methods(curvature_power: i32) -> String {
    let usual =
        methods::all().into_iter().filter(|entry| !entry.constrained).map(|entry| format!("name = \"{}\"", entry.name));
    let fitting = format!("name = \"sgd\"\nlearning_rate = 1e{}", -curvature_power.clamp(-300, 300));
    usual.chain([fitting]).fold(String::new(), |all, text| format!("{all}[[method]]\n{text}\n"))
}

#[test]
fn at_no_scale_a_run_is_called_converged_that_is_not() {
    let cases: Vec<(&str, i32)> =
        ["loss", "numbers", "inputs"].into_iter().flat_map(|of| POWERS.map(|power| (of, power))).collect();
    let counts = each(&cases, |&(of, power)| {
        let folder = tempfile::tempdir().unwrap();
        let curvature = if of == "loss" { power } else { 2 * power };
        let text = format!(
            "name = \"{of}{power}\"\nepochs = 12\nbatch = 6\nseeds = 1\nrecords = \"epochs\"\n[[problem]]\n{}\n{}",
            problem(folder.path(), of, power),
            all_methods(curvature)
        );
        let summary = start(Experiment::parse(Path::new("sweep.toml"), &text).unwrap(), folder.path());
        let (mut right, mut called) = (0, 0);
        for diagnosis in &summary.diagnoses {
            let what = format!("{} at 1e{power} of {of}: {:?}, {}", diagnosis.method, diagnosis.verdict, diagnosis.why);
            assert!(contradictions(diagnosis).is_empty(), "{what}: {:?}\n{diagnosis:#?}", contradictions(diagnosis));
            // f* = 0, so the losses themselves are what remains.
            let progress = diagnosis.findings.iter().find(|finding| finding.about == "progress");
            let loss = |name: &str| progress.and_then(|finding| finding.numbers.get(name)).copied().unwrap_or(f64::NAN);
            let (first, last) = (loss("first"), loss("last"));
            let converged = first.is_normal() && last <= 1e-3 * first;
            let said = diagnosis.verdict == Some(RunVerdict::Converged);
            assert!(converged || !said, "{what}, from {first:e} to {last:e}");
            (right, called) = (right + usize::from(converged), called + usize::from(said));
        }
        (right, called, summary.diagnoses.len())
    });
    let sum = |of: fn(&(usize, usize, usize)) -> usize| counts.iter().map(of).sum::<usize>();
    let (right, called, all) = (sum(|c| c.0), sum(|c| c.1), sum(|c| c.2));
    println!("{called} of {right} converged runs among {all} are called so");
    assert!(right >= 50 && 100 * called >= 95 * right, "{called} of {right} among {all}");
}
