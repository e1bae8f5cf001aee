//! The diagnosis of runs whose truth is known by construction.

mod suite;

use std::{
    fmt::Write as _,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use strust_lab::{
    analyze::diagnose::{Diagnosis, RunVerdict, diagnose},
    data::{plan::Plan, summary::Summary},
    experiment::{Experiment, Setting},
    pipeline,
    run::{Options, Silent},
    team::Team,
};
use suite::{Case, DEVELOPMENT, HELD_OUT};

/// A run and its diagnosis.
struct Ran {
    diagnosis: Diagnosis,
    summary: Summary,
}

/// A data set of two classes whose features have sizes from 1 to 10⁴.
fn bad_scales(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("scales.csv");
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1_u32 << 31) * 2.0 - 1.0
    };
    let mut text = String::from("a,b,c,d,label\n");
    for _ in 0..160 {
        let x = [next(), next(), next(), next()];
        let label = u8::from(x[0] + x[1] - x[2] + x[3] + 0.3 * next() > 0.0);
        writeln!(text, "{},{},{},{},{label}", x[0], 10.0 * x[1], 1e3 * x[2], 1e4 * x[3]).unwrap();
    }
    std::fs::write(&path, text).unwrap();
    path
}

/// Parses a case with settings, as `strust run FILE --set …` does.
fn parse(case: &Case, data: &Path, settings: &[String]) -> Experiment {
    let problem = case.problem.replace("BAD_SCALES", data.to_str().unwrap());
    let text = format!(
        "name = \"case\"\nepochs = {}\nbatch = {}\nseeds = [{}]\n[[problem]]\n{problem}\n[[method]]\n{}\n",
        case.epochs, case.batch, case.seed, case.method
    );
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    Experiment::parse_with(Path::new("case.toml"), &text, &settings)
        .unwrap_or_else(|error| panic!("{}: {settings:?}: {error}", case.name))
}

fn run(case: &Case, settings: &[String]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let experiment = parse(case, &bad_scales(folder.path()), settings);
    let mut plan = Plan::new(experiment, "strust run case.toml --out x", strust_lab::this_machine(1, None));
    let interrupt = AtomicBool::new(false);
    let options =
        Options { jobs: 1, save_every: Duration::MAX, interrupt: &interrupt, progress: &Silent, team: &Team::alone() };
    let mut summary = pipeline::start(&folder.path().join("out"), &mut plan, &options)
        .unwrap_or_else(|error| panic!("{}: {error}", case.name));
    Ran { diagnosis: summary.diagnoses.remove(0), summary }
}

/// Applies a function to all items, on all cores. The results are in their order.
fn each<I: Sync, T: Send>(items: &[I], apply: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || loop {
        let i = next.fetch_add(1, Ordering::Relaxed);
        let Some(item) = items.get(i) else { return };
        let result = apply(item);
        results.lock().unwrap().push((i, result));
    };
    std::thread::scope(|scope| (0..strust_lab::cores()).for_each(|_| drop(scope.spawn(work))));
    let mut results = results.into_inner().unwrap();
    results.sort_by_key(|(i, _)| *i);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Prints all verdicts and returns the number of right ones. A bad run without a remedy or with an impossible one fails.
fn count(cases: &[Case]) -> usize {
    let mut right = 0;
    let ran = each(cases, |case| run(case, &[]));
    for (case, Ran { diagnosis, .. }) in cases.iter().zip(&ran) {
        let verdict = diagnosis.verdict.expect("a finished run has a verdict");
        let ok = case.truth.contains(&verdict);
        right += usize::from(ok);
        let set = diagnosis.remedy.as_ref().map_or("–".into(), |remedy| remedy.set.join(" "));
        let mark = if ok { ' ' } else { '✗' };
        println!("{mark} {:<24} {:<16} {:<28} {}", case.name, verdict.to_string(), set, diagnosis.why);
    }
    for (case, Ran { diagnosis, .. }) in cases.iter().zip(&ran) {
        let good = case.truth.contains(&RunVerdict::Converged);
        assert!(good || diagnosis.verdict != Some(RunVerdict::Converged), "{}: nothing to change", case.name);
        assert!(good || diagnosis.remedy.is_some(), "{}: no remedy", case.name);
        if let Some(remedy) = &diagnosis.remedy {
            let folder = tempfile::tempdir().unwrap();
            parse(case, &bad_scales(folder.path()), &remedy.set);
            assert_eq!(
                remedy.command.to_string(),
                format!("strust run case.toml --set {}", remedy.set.join(" --set "))
            );
        }
    }
    right
}

#[test]
fn verdicts_of_runs_with_a_known_truth_are_right() {
    let (development, held_out) = (count(DEVELOPMENT), count(HELD_OUT));
    println!("{development} of {} and, held out, {held_out} of {}", DEVELOPMENT.len(), HELD_OUT.len());
    assert!(100 * development >= 95 * DEVELOPMENT.len(), "{development} of {}", DEVELOPMENT.len());
    assert!(100 * held_out >= 95 * HELD_OUT.len(), "{held_out} of {}", HELD_OUT.len());
}

/// A number of a finding.
fn number(diagnosis: &Diagnosis, about: &str, name: &str) -> Option<f64> {
    diagnosis.findings.iter().find(|finding| finding.about == about)?.numbers.get(name).copied()
}

/// Whether the change did what it claims.
fn helped(before: &Ran, after: &Ran) -> Result<(), String> {
    let number = |ran: &Ran, name: &str| number(&ran.diagnosis, "remaining", name).unwrap_or(f64::NAN);
    let (from, to) = (number(before, "last"), number(after, "last"));
    // How many factors of e the error fell by.
    let fall = |ran: &Ran| -number(ran, "remaining").ln();
    let claim = |holds: bool| {
        let (was, is) = (before.diagnosis.verdict.unwrap(), after.diagnosis.verdict.unwrap());
        if holds { Ok(()) } else { Err(format!("{was} with the error {from:.2e}, then {is} with {to:.2e}")) }
    };
    let remedy = before.diagnosis.remedy.as_ref().unwrap();
    match before.diagnosis.verdict.unwrap() {
        RunVerdict::TooSlow if remedy.effect.contains("ten times as fast") => claim(fall(after) >= 10.0 * fall(before)),
        RunVerdict::TooSlow | RunVerdict::Stuck | RunVerdict::StillImproving => claim(to <= 0.5 * from),
        RunVerdict::Unstable => claim(to <= 0.1 * from),
        RunVerdict::BrokeDown => claim(number(after, "remaining") < 0.5),
        RunVerdict::Infeasible => {
            let norm = |ran: &Ran| {
                let last = ran.summary.problems[0].methods[0].last.as_ref().expect("a finished seed");
                last.metrics["constraint_norm"].mean
            };
            claim(norm(after) <= 0.01 * norm(before))
        }
        RunVerdict::Converged => claim(false),
    }
}

#[test]
fn the_change_that_a_diagnosis_names_has_the_effect_that_it_claims() {
    let bad = DEVELOPMENT.iter().filter(|case| !case.truth.contains(&RunVerdict::Converged)).count();
    let outcomes = each(DEVELOPMENT, |case| {
        let before = run(case, &[]);
        let remedy = before.diagnosis.remedy.clone()?;
        let after = run(case, &remedy.set);
        Some((remedy.set.join(" "), helped(&before, &after)))
    });
    let mut right = 0;
    for (case, (set, outcome)) in DEVELOPMENT.iter().zip(outcomes).filter_map(|(case, o)| Some((case, o?))) {
        right += usize::from(outcome.is_ok());
        println!(
            "{} {:<24} {set:<28} {}",
            if outcome.is_ok() { ' ' } else { '✗' },
            case.name,
            outcome.err().unwrap_or_default()
        );
    }
    println!("{right} of {bad} changes helped");
    assert!(10 * right >= 9 * bad, "{right} of {bad}");
}

#[test]
fn known_cases_have_the_right_change() {
    let expected = [
        ("sgd 1e-6", "learning_rate="),
        ("adam 1e-6", "learning_rate="),
        ("sls 1e-6", "max_step="),
        ("sgd 1e-5, full batch", "learning_rate="),
        ("sgd 1e-5 on logistic", "learning_rate="),
        ("small radius", "max_radius="),
        ("flat loss", "scale="),
        ("sgd-proj 50", "learning_rate="),
        ("penalty 1e4", "method=str-sqp"),
        ("penalty 1e6", "method=str-sqp"),
        ("penalty 0.5", "method=str-sqp"),
        ("sgd ignores", "method=str-sqp"),
        ("frozen, exact", "grow="),
        ("frozen, steep", "method=auto"),
        ("sgd, noise", "schedule=cosine"),
        ("sgd, unscaled", "method=auto"),
    ];
    for (name, set) in expected {
        let case = DEVELOPMENT.iter().find(|case| case.name == name).unwrap();
        let Ran { diagnosis, .. } = run(case, &[]);
        let remedy = diagnosis.remedy.as_ref().unwrap_or_else(|| panic!("{name}: no remedy"));
        assert!(remedy.set.len() == 1 && remedy.set[0].starts_with(set), "{name}: {:?}", remedy.set);
        let unscaled = number(&diagnosis, "features", "spread");
        assert_eq!(unscaled.is_some(), name == "sgd, unscaled", "{name}: {unscaled:?}");
        assert!(unscaled.is_none_or(|spread| (5e3..2e4).contains(&spread)), "{unscaled:?}");
    }
}

/// The reference fits this network: its terms do agree on a solution.
#[test]
fn a_network_that_can_be_fitted_is_never_said_to_violate_interpolation() {
    let folder = tempfile::tempdir().unwrap();
    let text = "name = \"mlp\"\nepochs = 8\nbatch = 64\nseeds = 12\n[[problem]]\nkind = \"mlp\"\nhidden = \"32\"\n[[method]]\nname = \"str\"\n";
    let experiment = Experiment::parse(Path::new("mlp.toml"), text).unwrap();
    let mut plan = Plan::new(experiment, String::new(), strust_lab::this_machine(1, None));
    let interrupt = AtomicBool::new(false);
    let options = Options {
        jobs: strust_lab::cores(),
        save_every: Duration::MAX,
        interrupt: &interrupt,
        progress: &Silent,
        team: &Team::alone(),
    };
    pipeline::start(folder.path(), &mut plan, &options).unwrap();
    let found = each(&plan.jobs, |job| diagnose(&folder.path().join("runs").join(&job.name)).unwrap().remove(0));
    for diagnosis in found {
        let interpolation = diagnosis.findings.iter().find(|finding| finding.about == "interpolation").unwrap();
        assert!(!interpolation.text.contains("violated"), "seed {}: {}", diagnosis.seed, interpolation.text);
        println!("seed {}: {:?}, {}", diagnosis.seed, diagnosis.verdict, diagnosis.why);
    }
}
