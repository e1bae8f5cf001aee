//! Theory experiments.

use crate::support::{Edit, Folder, run};

/// A shortened built-in experiment.
fn short(name: &str) -> String {
    const EPSILON: (&str, &str) = ("epsilon = [1e-1, 3e-2, 1e-2, 3e-3, 1e-3]", "epsilon = [3e-2, 1e-2, 3e-3]");
    let file = format!("{}/../strust-suites/experiments/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(file).unwrap();
    let edits: &[(&str, &str)] = match name {
        "theory-strong-growth" => &[
            ("unknowns = [50, 100, 400, 800, 1600]", "unknowns = [40, 400]"),
            ("n = 200", "n = 100"),
            ("epochs = 200", "epochs = 60"),
        ],
        "theory-step-length" => &[("steps = 1_000_000", "steps = 20_000")],
        "theory-penalty" => &[EPSILON],
        "theory-failures" => &[EPSILON, ("radius_epochs = 1000", "radius_epochs = 200")],
        "theory-rate" => &[("network_steps = 3000", "network_steps = 40"), ("steps = 10_000", "steps = 2000")],
        "theory-rejections" | "theory-second-order" => &[],
        name => panic!("{name} has no short form"),
    };
    edits.iter().fold(text, |text, (long, short)| text.edit(long, short))
}

fn checks(summary: &serde_json::Value) -> Vec<(String, bool)> {
    let checks = summary["checks"].as_array().expect("checks");
    let one = |check: &serde_json::Value| {
        for key in ["measured", "bound"] {
            assert!(check[key].is_number() || check[key].is_null(), "{check}");
        }
        assert!(check["why"].as_str().is_some_and(|why| !why.is_empty()), "{check}");
        (check["name"].as_str().unwrap().to_string(), check["holds"].as_bool().unwrap())
    };
    checks.iter().map(one).collect()
}

/// Claims that are wrong as stated and assumptions that do not hold. The experiments must show this.
const WRONG: [&str; 3] =
    ["as stated: no accepted step", "as stated, before the first success", "condition of Theorem 2"];

#[test]
fn every_theory_experiment_runs_and_every_proved_claim_holds() {
    let folder = Folder::new();
    for (name, figures) in [
        ("theory-strong-growth", 2),
        ("theory-step-length", 1),
        ("theory-rejections", 2),
        ("theory-second-order", 1),
        ("theory-penalty", 2),
        ("theory-failures", 2),
    ] {
        let file = folder.write(&format!("{name}.toml"), &short(name));
        let out = folder.path(name);
        let result =
            run(&["run", file.to_str().unwrap(), "--seeds", "2", "--out", out.to_str().unwrap(), "--json", "-q"]);
        assert_eq!(result.code, Some(0), "{}", result.err);
        let summary: serde_json::Value = serde_json::from_str(&result.out).unwrap();
        let checks = checks(&summary);
        assert!(checks.len() >= 2, "{name}");
        for (claim, holds) in checks {
            assert_eq!(holds, !WRONG.iter().any(|wrong| claim.starts_with(wrong)), "{name}: {claim}");
        }
        let drawn = std::fs::read_dir(out.join("figures")).unwrap().count();
        assert_eq!(drawn, 2 * figures, "{name}: an SVG and a PNG per figure");
        let page = std::fs::read_to_string(out.join("report.html")).unwrap();
        assert!(page.contains("What was checked") && page.contains("<svg"));
        let csv = std::fs::read_to_string(out.join("summary.csv")).unwrap();
        assert!(csv.starts_with("experiment,claim,measured,bound,holds,why\n"));
    }
}

#[test]
fn the_rate_is_measured_on_all_four_problems() {
    let folder = Folder::new();
    let file = folder.write("rate.toml", &short("theory-rate"));
    let out = folder.path("out");
    let result = run(&["run", file.to_str().unwrap(), "--seeds", "2", "--out", out.to_str().unwrap(), "--json", "-q"]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    let summary: serde_json::Value = serde_json::from_str(&result.out).unwrap();
    assert_eq!(summary["sections"][0]["tables"][0]["rows"].as_array().unwrap().len(), 4);
    let checks = checks(&summary);
    for (what, count) in [("Theorem 1 on", 2), ("condition of Theorem 1 on", 4)] {
        let bounds: Vec<_> = checks.iter().filter(|(name, _)| name.starts_with(what)).collect();
        assert!(bounds.len() == count && bounds.iter().all(|(_, holds)| *holds), "{bounds:?}");
    }
}

#[test]
fn with_one_seed_the_check_of_a_slope_is_open() {
    let folder = Folder::new();
    let (file, out) = (folder.write("rate.toml", &short("theory-rate")), folder.path("out"));
    let result = run(&["run", file.to_str().unwrap(), "--seeds", "1", "--out", out.to_str().unwrap(), "-q"]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    let result = run(&["report", out.to_str().unwrap()]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    let text = std::fs::read_to_string(out.join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
    for check in summary["checks"].as_array().unwrap() {
        let (name, why) = (check["name"].as_str().unwrap(), check["why"].as_str().unwrap());
        // The network has a separate number of seeds.
        if name.contains("slope") && !name.starts_with("network") {
            assert!(check["measured"].is_null() && why.contains("one seed, which gives no interval"), "{check}");
        }
    }
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains(" are open: their last column gives the reason.") && page.contains(">open<"));
}

#[test]
fn no_check_holds_if_the_runs_are_too_short() {
    let folder = Folder::new();
    let text = short("theory-penalty").edit("steps = 200_000", "steps = 1");
    let (file, out) = (folder.write("penalty.toml", &text), folder.path("out"));
    let result = run(&["run", file.to_str().unwrap(), "--seeds", "2", "--out", out.to_str().unwrap(), "--json", "-q"]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    let summary: serde_json::Value = serde_json::from_str(&result.out).unwrap();
    let checks = checks(&summary);
    assert!(checks.len() >= 15 && checks.iter().all(|(_, holds)| !holds), "{checks:?}");
}

#[test]
fn finished_theory_experiments_are_not_repeated_and_are_deterministic() {
    let folder = Folder::new();
    let file = folder.write("t.toml", &short("theory-step-length"));
    let (one, two) = (folder.path("one"), folder.path("two"));
    for out in [&one, &two] {
        let result = run(&["run", file.to_str().unwrap(), "--seeds", "1", "--out", out.to_str().unwrap(), "-q"]);
        assert_eq!(result.code, Some(0), "{}", result.err);
    }
    let section = |out: &std::path::Path| std::fs::read(out.join("checks/theory-step-length.json")).unwrap();
    assert_eq!(section(&one), section(&two));
    // Resume and report read a finished section and do not compute it again: an edited title stays.
    let path = one.join("checks/theory-step-length.json");
    let marked = String::from_utf8(section(&one)).unwrap().edit("The step-length lemma", "A marked title");
    std::fs::write(&path, marked).unwrap();
    assert_eq!(run(&["resume", one.to_str().unwrap(), "-q"]).code, Some(0));
    assert!(std::fs::read_to_string(one.join("report.html")).unwrap().contains("A marked title"));
    std::fs::remove_file(&path).unwrap();
    let result = run(&["report", one.to_str().unwrap()]);
    assert!(result.err.contains("this experiment is not finished"), "{}", result.err);
    assert_eq!(run(&["resume", one.to_str().unwrap(), "-q"]).code, Some(0));
    assert_eq!(section(&one), section(&two));
}

#[test]
fn errors_in_theory_files_name_the_line_and_the_reason() {
    let folder = Folder::new();
    let message = |text: &str| {
        let file = folder.write("bad.toml", text);
        let result = run(&["run", file.to_str().unwrap(), "--out", folder.path("out").to_str().unwrap()]);
        assert_eq!(result.code, Some(1));
        result.err
    };
    let head = "name = \"a\"\ntheory = \"step-length\"\n[settings]\n";
    assert!(message("name = \"a\"\ntheory = \"magic\"\n").contains("must be one of strong-growth, step-length"));
    assert!(message(&format!("{head}stepz = 3\n")).contains("bad.toml:4: unknown field `stepz`"));
    assert!(message(&format!("{head}steps = 0\n")).contains("`steps` is 0, but must be a whole number in [1,"));
    assert!(message(&format!("{head}initial_radii = []\n")).contains("`initial_radii` is an empty list"));
    assert!(message(&format!("{head}initial_radii = [-1.0]\n")).contains("`initial_radii` is -1"));
    assert!(message("name = \"a/b\"\ntheory = \"rate\"\n").contains("`name` is \"a/b\""));
    let result = run(&["reproduce", "theory", "--epochs", "3"]);
    assert_eq!((result.code, result.err.contains("--epochs has no effect")), (Some(2), true), "{}", result.err);
}
