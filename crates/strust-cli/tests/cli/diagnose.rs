//! `strust diagnose`, the changes that it names, and unfinished runs.

use crate::support::{Edit, Folder, SMALL, experiment, run, strust};
use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

const NOISY: &str = "kind = \"least-squares\"\nn = 100\nd = 10\nnoise = 0.5";
const STR: &str = "[[method]]\nname = \"str\"\n";

/// Runs an experiment and returns its folder.
#[track_caller]
fn ran(folder: &Folder, name: &str, text: &str) -> PathBuf {
    let (file, out) = (folder.write(&format!("{name}.toml"), text), folder.path(name));
    let result = run(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "-q"]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    out
}

fn diagnosis(folder: &Path) -> Vec<serde_json::Value> {
    let result = run(&["diagnose", folder.to_str().unwrap(), "--json"]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    serde_json::from_str(&result.out).unwrap()
}

fn text_of(diagnosis: &serde_json::Value, about: &str) -> String {
    let findings = diagnosis["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["about"] == about);
    found.map_or(String::new(), |finding| finding["text"].as_str().unwrap().to_string())
}

#[test]
fn a_diagnosis_distinguishes_noise_from_interpolation_and_gives_numbers() {
    let folder = Folder::new();
    for (name, problem, interpolation, verdict) in [
        ("noisy", NOISY, "Interpolation is violated", "stuck"),
        ("exact", "kind = \"least-squares\"\nn = 100\nd = 10", "Interpolation holds", "converged"),
    ] {
        let out = ran(&folder, name, &experiment(problem, STR).edit("epochs = 3", "epochs = 60"));
        let found = diagnosis(&out);
        assert_eq!(found.len(), 1, "only the first seed is diagnosed");
        assert!(text_of(&found[0], "interpolation").starts_with(interpolation), "{:#}", found[0]);
        assert_eq!(found[0]["verdict"], verdict, "{:#}", found[0]);
        assert_eq!(found[0].get("remedy").is_none(), name == "exact", "{:#}", found[0]);
        for about in ["progress", "remaining", "step length", "radius", "wasted steps", "curvature"] {
            assert!(text_of(&found[0], about).contains(char::is_numeric), "{about}: {:#}", found[0]);
        }
        // The terminal and the report show the same text.
        let result = run(&["diagnose", out.to_str().unwrap()]);
        assert!(result.out.starts_with(&format!("str on least-squares, seed 0: {verdict}\n")), "{}", result.out);
        assert_eq!(result.out.contains("Nothing to change."), name == "exact", "{}", result.out);
        let page = std::fs::read_to_string(out.join("report.html")).unwrap();
        assert!(page.contains("<h2>Diagnosis</h2>") && page.contains(interpolation));
        let summary: serde_json::Value =
            serde_json::from_slice(&std::fs::read(out.join("summary.json")).unwrap()).unwrap();
        assert_eq!(summary["diagnoses"].as_array().unwrap(), &found);
    }
}

#[test]
fn the_command_of_a_diagnosis_runs_as_it_is_and_helps() {
    let folder = Folder::new();
    let methods = "[[method]]\nname = \"sgd\"\nlearning_rate = 1e-6\n[[method]]\nname = \"auto\"\n";
    let text = experiment("kind = \"least-squares\"\nn = 100\nd = 10", methods).edit("epochs = 3", "epochs = 30");
    let file = folder.write("mine.toml", &text);
    let here = |arguments: &[&str]| {
        let output = strust().args(arguments).current_dir(folder.0.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(file.exists());
    here(&["run", "mine.toml", "-q"]);
    let told = here(&["diagnose", "runs/test"]);
    assert!(told.starts_with("too slow         sgd on least-squares, seed 0\nconverged        auto on"), "{told}");
    let command = told.lines().find_map(|line| line.trim().strip_prefix("$ strust ")).expect("a command");
    assert!(command.starts_with("run mine.toml --set sgd.learning_rate="), "{command}");
    let words: Vec<&str> = command.split(' ').collect();
    here(&words);
    // The results are in a folder of their own, and plan and report name the setting.
    let set = words.last().unwrap();
    let out = folder.path("runs").join(format!("test.{set}"));
    let told = here(&["diagnose", out.to_str().unwrap()]);
    assert!(told.starts_with("converged        sgd on least-squares, seed 0\n"), "{told}");
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains(&format!("Set on the command line: {set}.")), "the report names the setting");
    assert!(
        std::fs::read_to_string(out.join("plan.json")).unwrap().contains(&format!("Set on the command line: {set}."))
    );
}

#[test]
fn wrong_settings_are_refused_and_nothing_is_written() {
    let folder = Folder::new();
    let file = folder.write("e.toml", &experiment(NOISY, STR));
    let refused = |setting: &str| {
        let out = folder.path("out");
        let result = run(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--set", setting]);
        assert!(!out.exists(), "{setting}");
        (result.code, result.err)
    };
    let (code, why) = refused("max_radiu=1");
    assert!(code == Some(1) && why.contains("did you mean `max_radius`?"), "{code:?} {why}");
    let (code, why) = refused("max_radius");
    assert!(code == Some(2) && why.contains("has no value"), "{code:?} {why}");
    let (code, why) = refused("max_radius=0.1");
    assert!(code == Some(1) && why.contains("`initial_radius` is 8, but must be at most `max_radius`"), "{why}");
    let result = run(&["run", "theory-rate", "--set", "epochs=1"]);
    assert!(result.code == Some(2) && result.err.contains("--set is for experiments"), "{}", result.err);
    let result = run(&["reproduce", "constrained", "--set", "epochs=1"]);
    assert!(result.code == Some(2) && result.err.contains("--set is for experiments"), "{}", result.err);
}

#[test]
fn a_diagnosis_with_constraints_reports_the_penalty_and_licq() {
    let folder = Folder::new();
    let method = "[[method]]\nname = \"str-p\"\n";
    let out = ran(&folder, "out", &experiment(SMALL, method).edit("epochs = 3", "epochs = 20"));
    let found = &diagnosis(&out)[0];
    assert!(text_of(found, "constraints").contains("independent there (LICQ)"), "{found:#}");
    assert!(text_of(found, "penalty").contains("With μ = 1,"), "{found:#}");
    assert!(text_of(found, "penalty").contains("already small"), "{found:#}");
    assert_eq!(found["verdict"], "converged", "{found:#}");
    // Before convergence the diagnosis does not judge μ: this penalty is exact.
    let text = experiment(SMALL, &format!("{method}penalty = 0.01\n")).edit("epochs = 3", "epochs = 2");
    let found = &diagnosis(&ran(&folder, "weak", &text))[0];
    assert!(text_of(found, "penalty").contains("not known yet"), "{found:#}");
    assert!(!found["remedy"].to_string().contains("penalty="), "{found:#}");
}

#[test]
fn without_step_records_a_diagnosis_names_the_unknown_quantities() {
    let folder = Folder::new();
    let out = ran(&folder, "out", &experiment(NOISY, STR).edit("epochs = 3", "epochs = 3\nrecords = \"epochs\""));
    // The folder of the job with the second seed.
    let found = diagnosis(&out.join("runs/least-squares.str.s1"));
    assert_eq!((found.len(), found[0]["seed"].as_u64()), (1, Some(1)));
    assert!(text_of(&found[0], "radius").contains("is not known"), "{:#}", found[0]);
    assert!(text_of(&found[0], "curvature").contains("is not known"), "{:#}", found[0]);
}

#[test]
fn an_unfinished_run_is_diagnosed_and_drawn_as_far_as_it_is() {
    let folder = Folder::new();
    let text = experiment("kind = \"subspace\"\nd = 60\nk = 3\nn = 400", "[[method]]\nname = \"str-p\"\n")
        .edit("epochs = 3", "epochs = 100000")
        .edit("seeds = 2", "seeds = 1");
    let (file, out) = (folder.write("e.toml", &text), folder.path("out"));
    let mut child = strust()
        .args(["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--quiet", "--save-every", "0.01"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let records = out.join("runs/subspace.str-p.s0/records.jsonl");
    let some = |path: &Path| std::fs::metadata(path).is_ok_and(|data| data.len() > 200_000);
    let checkpoint = out.join("runs/subspace.str-p.s0/checkpoint.bin");
    while !(some(&records) && checkpoint.exists()) && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let found = diagnosis(&out);
    assert!(child.try_wait().unwrap().is_none(), "the job must still run");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(found[0]["state"].as_str().unwrap().starts_with("unfinished, at epoch "), "{:#}", found[0]);
    assert!(found[0]["state"].as_str().unwrap().ends_with(" of 100000"), "{:#}", found[0]);
    assert!(found[0]["verdict"].is_string(), "{:#}", found[0]);
    assert!(!found[0]["remedy"].to_string().contains("epochs="), "the job has more epochs to run: {:#}", found[0]);
    assert!(text_of(&found[0], "interpolation").starts_with("Interpolation"), "{:#}", found[0]);
    // The report draws what exists. Tables for a document, and publication, need a finished run.
    let result = run(&["report", out.to_str().unwrap()]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("(unfinished)") && page.contains("Unfinished: 0 of 1 run is done"), "the title says so");
    assert!(page.contains("<polyline") && page.contains("unfinished, at epoch"), "curves and diagnosis");
    assert!(!out.join("summary.json").exists());
    assert_eq!(run(&["report", out.to_str().unwrap(), "--markdown"]).code, Some(1));
    let to = folder.path("published");
    assert_eq!(run(&["report", out.to_str().unwrap(), "--publish", to.to_str().unwrap()]).code, Some(1));
    assert!(!to.exists());
}

#[test]
fn folders_without_a_run_are_refused_by_diagnose() {
    let folder = Folder::new();
    let result = run(&["diagnose", folder.path("nowhere").to_str().unwrap()]);
    assert_eq!((result.code, result.err.contains("there is no such folder")), (Some(1), true), "{}", result.err);
    let result = run(&["diagnose", folder.0.path().to_str().unwrap()]);
    assert_eq!((result.code, result.err.contains("it has no plan.json")), (Some(1), true), "{}", result.err);
    let result = run(&["diagnose", ".", "--seeds", "3"]);
    assert_eq!((result.code, result.err.contains("unexpected argument '--seeds'")), (Some(2), true));
    std::fs::write(folder.path("theory.json"), "{}").unwrap();
    let result = run(&["diagnose", folder.0.path().to_str().unwrap()]);
    assert!(result.err.contains("checks of the theory"), "{}", result.err);
}
