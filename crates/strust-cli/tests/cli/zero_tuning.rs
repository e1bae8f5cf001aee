//! The benchmark of methods without tuning.

use crate::support::{Edit, Folder, finished, run, same_records, strust};
use std::{path::Path, process::Stdio, time::Duration};

/// Two small tasks, and one whose data are missing.
const TINY: &str = r#"name = "tiny"
title = "A tiny benchmark"
method = "str"
seeds = 2

[[tuned]]
name = "sgd"
learning_rate = [0.01, 0.1, 1.0, 1e9]

[[tuned]]
label = "cosine"
name = "adam"
schedule = "cosine"
learning_rate = [0.1, 0.01]

[[untuned]]
name = "str"

[[untuned]]
label = "adam 0.001"
name = "adam"

[[vary]]
parameter = "grow"
factors = [0.75, 2.0]

[[task]]
name = "exact"
half = "development"
epochs = 10
batch = 8
[task.problem]
kind = "least-squares"
n = 40
d = 10

[[task]]
name = "noisy"
half = "test"
epochs = 10
batch = 8
rates = { sgd = 0.1 }
[task.problem]
kind = "least-squares"
n = 40
d = 10
noise = 0.5

[[task]]
name = "absent"
half = "test"
data = ["absent.csv", "folder/absent.csv"]
[task.problem]
kind = "logistic"
"#;

fn summary(out: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(out.join("summary.json")).unwrap()).unwrap()
}

#[test]
fn a_benchmark_chooses_rates_compares_methods_and_writes_a_report() {
    let folder = Folder::new();
    let (file, out) = (folder.write("tiny.toml", TINY), folder.path("out"));
    let result = run(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    assert_eq!(result.code, Some(0), "goals that fail are no error: {}", result.err);
    assert!(result.out.contains("skipped absent: it needs absent.csv: add --data DIR"), "{}", result.out);
    let summary = summary(&out);
    let tasks = summary["tasks"].as_array().unwrap();
    let names: Vec<_> = tasks.iter().map(|task| (&task["name"], &task["half"])).collect();
    assert_eq!(serde_json::json!(names), serde_json::json!([["exact", "development"], ["noisy", "test"]]));
    assert_eq!(summary["skipped"][0]["name"], "absent");
    for task in tasks {
        let methods = task["methods"].as_array().unwrap();
        let of = |label: &str| methods.iter().find(|method| method["label"] == label).unwrap();
        assert_eq!(methods.len(), 4);
        // The best tuned baseline is the better of the tuned ones, and ratios are relative to it.
        let value = |label: &str| of(label)["value"].as_f64().unwrap();
        let best = value("sgd").min(value("cosine"));
        assert!((task["best_tuned"]["value"].as_f64().unwrap() - best).abs() < 1e-15);
        assert!((task["ratio"].as_f64().unwrap() - value("str") / best).abs() < 1e-9, "{task:#}");
        assert_eq!(task["auto"], of("str")["value"]);
        // Every rate was tried, the best one was chosen, and a rate that diverges has no score.
        let tried = of("sgd")["tried"].as_array().unwrap();
        assert_eq!(tried.len(), 4);
        assert_eq!(tried[0]["setting"], of("sgd")["setting"]);
        assert!(tried[3]["score"].is_null(), "{tried:?}");
        assert_eq!(of("cosine")["setting"]["schedule"], "cosine");
        assert_eq!(of("cosine")["at_edge"], true, "both rates of this grid are at its edge");
        // SGD makes one gradient a step; STR one gradient and one value.
        assert_eq!((of("sgd")["price"].as_f64(), task["steps"].as_u64()), (Some(1.0), Some(50)));
        assert!((task["price"].as_f64().unwrap() - 4.0 / 3.0).abs() < 1e-12);
        let varied: Vec<_> = task["variations"].as_array().unwrap().iter().map(|v| v["setting"].as_f64()).collect();
        assert_eq!(varied.len(), 2);
        assert!(varied[1] > varied[0]);
    }
    let rates = |task: usize| -> Vec<f64> {
        let tried = tasks[task]["methods"].as_array().unwrap().iter().find(|m| m["label"] == "sgd").unwrap();
        let mut rates: Vec<f64> = tried["tried"]
            .as_array()
            .unwrap()
            .iter()
            .map(|trial| trial["setting"]["learning_rate"].as_f64().unwrap())
            .collect();
        rates.sort_by(f64::total_cmp);
        rates
    };
    assert_eq!((rates(0), rates(1)), (vec![0.01, 0.1, 1.0, 1e9], vec![0.001, 0.01, 0.1, 1e8]));
    // With noise the objective, not its gap to the optimum, is compared.
    assert!(tasks[1]["auto"].as_f64().unwrap() > 0.01, "{}", tasks[1]["auto"]);
    let checks = summary["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 3 + 3 + 1 + 3 + 1);
    assert!(checks[..10].iter().all(|check| check["claim"] == "at-least"));
    // Adam's grid has two rates, on both tasks.
    assert_eq!((checks[10]["claim"].as_str(), checks[10]["measured"].as_f64()), (Some("at-most"), Some(2.0)));
    // Without test data, the check of the test metric is open.
    assert!(checks[7]["measured"].is_null() && checks[7]["holds"] == false);

    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    for text in ["Performance profile", "Sensitivity to grow", "The chosen rates", "it needs absent.csv", "<svg"] {
        assert!(page.contains(text), "{text}");
    }
    for stem in ["profile", "sensitivity-grow", "curve-exact", "curve-noisy"] {
        for ending in ["svg", "png"] {
            assert!(out.join(format!("figures/{stem}.{ending}")).is_file(), "{stem}.{ending}");
        }
    }
    let csv = std::fs::read_to_string(out.join("summary.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 2 * 4);

    // The report is a function of the records.
    std::fs::remove_file(out.join("report.html")).unwrap();
    assert_eq!(run(&["report", out.to_str().unwrap()]).code, Some(0));
    assert_eq!(std::fs::read_to_string(out.join("report.html")).unwrap(), page);
    let result = run(&["report", out.to_str().unwrap(), "--markdown"]);
    assert!(result.out.contains("| exact | development |"), "{}", result.out);

    let result = run(&["diagnose", out.to_str().unwrap()]);
    assert_eq!(result.code, Some(1));
    assert!(result.err.contains("holds a benchmark, not one experiment"), "{}", result.err);

    // Published results have the same summary and the last record of every job, and can be shown again.
    let to = folder.path("published");
    let result = run(&["report", out.to_str().unwrap(), "--publish", to.to_str().unwrap()]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    assert_eq!(std::fs::read(to.join("summary.json")).unwrap(), std::fs::read(out.join("summary.json")).unwrap());
    let records = std::fs::read_to_string(to.join("records.jsonl")).unwrap();
    // Six rates on one seed, and six methods on two seeds, in each task.
    assert_eq!(records.lines().count(), 2 * (6 + 2 * 6));
    assert_eq!(run(&["report", to.to_str().unwrap()]).code, Some(0));
    assert_eq!(run(&["report", to.to_str().unwrap(), "--publish", to.to_str().unwrap()]).code, Some(1));
}

#[test]
fn grids_grow_beyond_their_edges_and_losses_without_a_minimum_are_judged_by_steps() {
    let folder = Folder::new();
    let text = TINY
        .edit("seeds = 2", "seeds = 2\nextensions = 4")
        .edit("learning_rate = [0.01, 0.1, 1.0, 1e9]", "learning_rate = [0.003, 0.01, 0.03]")
        .edit(
            "[[task]]\nname = \"absent\"",
            "[[task]]\nname = \"separable\"\njudge = \"steps\"\nepochs = 100\nbatch = 2",
        )
        .edit("data = [\"absent.csv\", \"folder/absent.csv\"]\n", "")
        .edit("kind = \"logistic\"", "kind = \"logistic\"\nn = 40\nd = 3\nmargin = 4.0\ntest_share = 0.2");
    let (file, out) = (folder.write("tiny.toml", &text), folder.path("out"));
    let result = run(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    let summary = summary(&out);
    let mut grown = 0;
    for task in summary["tasks"].as_array().unwrap() {
        for method in task["methods"].as_array().unwrap().iter().filter(|method| method["role"] == "tuned") {
            let first = if method["label"] == "sgd" { 3 } else { 2 };
            let tried = method["tried"].as_array().unwrap().len();
            assert!((first..=first + 4).contains(&tried), "{method:#}");
            assert!(method["at_edge"] == false || tried == first + 4, "{method:#}");
            grown += tried - first;
        }
    }
    assert!(grown > 4, "{grown}");
    let task = &summary["tasks"][2];
    assert_eq!((&task["judge"], &task["to_zero"]), (&"steps".into(), &true.into()));
    // Its values are steps: more than none, and fewer than those of all epochs.
    let (value, steps) = (task["auto"].as_f64().unwrap(), task["steps"].as_f64().unwrap());
    assert!(value > 1.0 && value < steps, "{value} of {steps}");
    assert_eq!(task["ratio"], task["steps_ratio"]);
    let searches = std::fs::read_dir(out.join("runs")).unwrap().map(|job| job.unwrap().file_name());
    let searches = searches.filter(|name| name.to_str().unwrap().starts_with("tune.")).count();
    assert_eq!(searches, 3 * (3 + 2) + grown, "every run of a grid search is in the summary");
    let text = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(text.contains(&format!("{searches} settings of grid searches in total")), "{text}");
    assert!(std::fs::read_to_string(out.join("summary.csv")).unwrap().contains("separable,test,steps,str,"));
    let to = folder.path("published");
    let result = run(&["report", out.to_str().unwrap(), "--publish", to.to_str().unwrap()]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    let records = std::fs::read_to_string(to.join("records.jsonl")).unwrap();
    assert_eq!(records.lines().count(), searches + 3 * 2 * 6);
}

#[test]
fn a_stopped_benchmark_resumes_with_the_same_bytes() {
    let folder = Folder::new();
    let text = TINY.edit("epochs = 10", "epochs = 400").edit("seeds = 2", "seeds = 2\nextensions = 2");
    let file = folder.write("tiny.toml", &text);
    let (whole, stopped) = (folder.path("whole"), folder.path("stopped"));
    let result = run(&["run", file.to_str().unwrap(), "--out", whole.to_str().unwrap(), "-q"]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    let resume = || {
        let mut command = strust();
        if stopped.join("benchmark.json").exists() {
            command.args(["resume", stopped.to_str().unwrap()]);
        } else {
            let _ = std::fs::remove_dir_all(&stopped);
            command.args(["run", file.to_str().unwrap(), "--out", stopped.to_str().unwrap()]);
        }
        command.args(["-q", "--save-every", "0.003"]);
        command
    };
    for millis in [20, 40, 60, 80, 100] {
        let mut child = resume().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let result = finished(&resume().output().unwrap());
    assert_eq!(result.code, Some(0), "{}", result.err);
    let without_failed = |out: &Path| {
        // A diverged job may have no records.
        std::fs::read_dir(out.join("runs"))
            .unwrap()
            .filter(|job| job.as_ref().unwrap().path().join("failed.json").exists())
            .count()
    };
    assert_eq!(without_failed(&whole), 2, "SGD with the largest rate on both tasks");
    same_records(&whole, &stopped);
    let (mut a, mut b) = (summary(&whole), summary(&stopped));
    // The command has the name of the folder.
    a["command"].take();
    b["command"].take();
    assert_eq!(a, b);
    let result = run(&["run", file.to_str().unwrap(), "--out", whole.to_str().unwrap()]);
    assert!(result.err.contains("already holds a run"), "{}", result.err);
}

#[test]
fn data_are_searched_in_the_folder_and_missing_ones_are_skipped() {
    let folder = Folder::new();
    let data = folder.path("data");
    std::fs::create_dir_all(data.join("folder")).unwrap();
    let rows: Vec<String> = (0..40).map(|i| format!("{},{},{}", i % 7, i % 5, i % 2)).collect();
    let file = folder.write("tiny.toml", &TINY.edit("[[vary]]\nparameter = \"grow\"\nfactors = [0.75, 2.0]\n", ""));
    let start = |name: &str| {
        let out = folder.path(name);
        let result = run(&[
            "run",
            file.to_str().unwrap(),
            "--out",
            out.to_str().unwrap(),
            "--data",
            data.to_str().unwrap(),
            "-q",
        ]);
        assert_eq!(result.code, Some(0), "{}", result.err);
        summary(&out)
    };
    let without = start("without");
    let why = without["skipped"][0]["why"].as_str().unwrap();
    assert!(why.contains("has none of absent.csv, folder/absent.csv"), "{why}");
    std::fs::write(data.join("folder/absent.csv"), rows.join("\n")).unwrap();
    let with = start("with");
    assert!(with["skipped"].is_null());
    assert_eq!(with["tasks"][2]["name"], "absent");
    assert!(!with["tasks"][2]["problem"].as_str().unwrap().contains(data.to_str().unwrap()));
    let nowhere = folder.path("nowhere");
    let result = run(&["run", file.to_str().unwrap(), "--data", nowhere.to_str().unwrap()]);
    assert_eq!((result.code, result.err.contains("there is no such folder")), (Some(2), true), "{}", result.err);
}

#[test]
fn errors_in_a_benchmark_name_the_line_and_the_reason() {
    let folder = Folder::new();
    let message = |text: &str| {
        let file = folder.write("bad.toml", text);
        let result = run(&["run", file.to_str().unwrap(), "--out", folder.path("out").to_str().unwrap()]);
        assert_eq!(result.code, Some(1), "{}", result.err);
        result.err
    };
    for (from, to, wanted) in [
        ("method = \"str\"", "method = \"stt\"", "bad.toml:3: `method` is \"stt\", but must be the label of one of"),
        ("method = \"str\"", "metod = \"str\"", "bad.toml:3: unknown key `metod`; did you mean `method`?"),
        (
            "name = \"sgd\"\nlearning_rate = [0.01, 0.1, 1.0, 1e9]",
            "name = \"sgd\"\nlearning_rate = 0.1",
            "bad.toml:6: [[tuned]] sgd: exactly one parameter must be a list",
        ),
        ("1e9]", "-1.0]", "bad.toml:8: [[tuned]] sgd: `learning_rate` is -1.0"),
        ("label = \"cosine\"", "label = \"sgd\"", "two methods have the label `sgd`"),
        (
            "parameter = \"grow\"",
            "parameter = \"grew\"",
            "bad.toml:24: [[vary]]: `grew` is not a number among the parameters of str",
        ),
        (
            "factors = [0.75, 2.0]",
            "factors = [1.0]",
            "bad.toml:25: [[vary]]: `factors` must be a list of positive numbers",
        ),
        ("factors = [0.75, 2.0]", "factors = [0.01]", "`grow`"),
        ("half = \"development\"", "half = \"training\"", "bad.toml:29: `half` must be development or test"),
        ("rates = { sgd = 0.1 }", "rates = { sdg = 0.1 }", "unknown key `sdg`; did you mean `sgd`?"),
        ("rates = { sgd = 0.1 }", "rates = { sgd = 0 }", "`sgd` is 0, but must be a factor > 0"),
        (
            "half = \"development\"",
            "half = \"development\"\njudge = \"step\"",
            "`judge` is \"step\", but must be one of objective, steps",
        ),
        ("name = \"noisy\"", "name = \"exact\"", "two tasks have the name `exact`"),
        ("noise = 0.5", "nois = 0.5", "unknown key `nois`; did you mean `noise`?"),
        ("kind = \"logistic\"", "kind = \"subspace\"", "`subspace` has a constraint"),
    ] {
        let err = message(&TINY.edit(from, to));
        assert!(err.contains(wanted), "{wanted}\n{err}");
    }
    let result = run(&["reproduce", "zero-tuning", "--epochs", "3"]);
    assert_eq!((result.code, result.err.contains("--epochs has no effect")), (Some(2), true), "{}", result.err);
}
