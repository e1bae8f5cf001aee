//! Problems with constraints.

use crate::support::{Folder, run};
use serde_json::Value;

/// A result of another program on one problem.
const REFERENCE: &str = r#"{"problems": [{"name": "hs014", "kind": "inequality", "methods": [{"name": "slsqp", "solved": true,
"verdict": "converged", "gradients": 6, "objective_error": 1e-12, "constraint_norm": 0.0, "kkt": 1e-9}]}]}"#;

fn find<'a>(list: &'a Value, key: &str, value: &str) -> &'a Value {
    list.as_array().unwrap().iter().find(|one| one[key] == value).unwrap_or_else(|| panic!("no {value}"))
}

#[test]
fn a_quick_study_solves_the_problems_and_writes_a_report_that_can_be_published() {
    let folder = Folder::new();
    let (out, reference) = (folder.path("out"), folder.write("reference.json", REFERENCE));
    let (out_text, reference) = (out.to_str().unwrap(), reference.to_str().unwrap());
    let result =
        run(&["reproduce", "constrained", "--quick", "--reference", reference, "--out", out_text, "--json", "-q"]);
    assert_eq!(result.code, Some(0), "claims that fail are no error: {}", result.err);
    let summary: Value = serde_json::from_str(&result.out).unwrap();
    let saved = std::fs::read(out.join("summary.json")).unwrap();
    assert_eq!(summary, serde_json::from_slice::<Value>(&saved).unwrap());

    let problems = &summary["problems"];
    let of_kind = |kind: &str| problems.as_array().unwrap().iter().filter(|p| p["kind"] == kind).count();
    let kinds = ["equality", "inequality", "infeasible", "degenerate", "data"].map(of_kind);
    assert_eq!((kinds[0], kinds[1], kinds[2] + kinds[3]), (20, 46, 14));
    assert!(kinds[4] >= 2);
    let first = find(&find(problems, "name", "hs006")["methods"], "name", "str-sqp");
    assert_eq!((&first["solved"], &first["verdict"]), (&true.into(), &"converged".into()));
    for key in ["gradients", "objective_error", "constraint_norm", "kkt"] {
        assert!(first[key].is_number(), "{key}: {first}");
    }
    let equality = find(problems, "name", "hs006")["methods"].as_array().unwrap().len();
    assert_eq!(equality, 3, "str-sqp, str-p and auglag");
    let infeasible = find(problems, "kind", "infeasible");
    assert_eq!(infeasible["methods"][0]["verdict"], "infeasible");
    assert!(infeasible["methods"][0]["objective_error"].is_null());
    let other = find(&find(problems, "name", "hs014")["methods"], "name", "slsqp");
    assert_eq!(other["gradients"], 6);

    // The data problems have curves, a tuned setting for every baseline, and results.
    let data = find(problems, "name", "subspace-noisy");
    let methods = data["methods"].as_array().unwrap();
    assert_eq!(methods[0]["name"], "str-sqp");
    for method in methods {
        assert_eq!(method["curve"].as_array().unwrap().len(), 2, "the start and one epoch");
        assert_eq!(method["verdict"], "budget");
        assert!(method["objective_error"].as_f64().unwrap() > 0.0 && method["kkt"].is_null());
        assert!(method["constraint_norm"].is_number());
    }
    assert!(summary["tuning"].as_array().unwrap().iter().all(|one| one["tried"].as_array().unwrap().len() == 3));

    let checks = &summary["checks"];
    let solved = find(checks, "name", "equality problems solved");
    assert_eq!((solved["measured"].as_f64(), solved["holds"].as_bool()), (Some(20.0), Some(true)));
    let beside = find(checks, "name", "inequality problems solved, beside SLSQP");
    assert_eq!((beside["bound"].as_f64(), beside["holds"].as_bool()), (Some(1.0), Some(true)));
    let noise = find(checks, "name", "σ² = 1.0e-2: median KKT residual");
    assert!(noise["measured"].is_null(), "the bound belongs to more steps: {noise}");

    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    for text in ["Small problems with known solutions", "Random starts", "Other units", "Problems with data", "slsqp"] {
        assert!(page.contains(text), "{text}");
    }
    for stem in ["noise", "solved-equality", "subspace-noisy-objective_gap-epoch"] {
        assert!(out.join(format!("figures/{stem}.png")).is_file(), "{stem}");
    }
    let csv = std::fs::read_to_string(out.join("summary.csv")).unwrap();
    assert!(csv.starts_with("problem,kind,method,solved,verdict,gradients,objective_error,constraint_norm,kkt\n"));
    assert!(csv.lines().any(|line| line.starts_with("hs014,inequality,slsqp,true,converged,6,1e-12,0e0,1e-9")));

    // Nothing runs again: an edited title stays. A part that is removed is computed again, with the same bytes.
    let path = out.join("checks/units.json");
    let units = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, units.replace("Other units", "Marked units")).unwrap();
    assert_eq!(run(&["resume", out_text, "-q"]).code, Some(0));
    assert!(std::fs::read_to_string(out.join("report.html")).unwrap().contains("Marked units"));
    std::fs::remove_file(&path).unwrap();
    let result = run(&["report", out_text]);
    assert!(result.err.contains("this part is not finished"), "{}", result.err);
    assert_eq!(run(&["resume", out_text, "-q"]).code, Some(0));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), units);
    assert_eq!(std::fs::read(out.join("summary.json")).unwrap(), saved);

    // Published results can be shown again.
    let to = folder.path("published");
    let result = run(&["report", out_text, "--publish", to.to_str().unwrap()]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    assert_eq!(std::fs::read(to.join("summary.json")).unwrap(), saved);
    assert!(!std::fs::read_to_string(to.join("records.jsonl")).unwrap().is_empty());
    let result = run(&["report", to.to_str().unwrap(), "--markdown"]);
    assert!(result.out.contains("| equality problems solved | 20 | ≥ 20 | holds |"), "{}", result.out);
    let result = run(&["diagnose", out_text]);
    assert!(result.code == Some(1) && result.err.contains("holds many problems"), "{}", result.err);
}

#[test]
fn wrong_options_and_reference_files_are_refused() {
    let folder = Folder::new();
    let out = folder.path("out");
    let start = |options: &[&str]| {
        let mut all = vec!["reproduce", "constrained", "--quick", "--out", out.to_str().unwrap()];
        all.extend(options);
        let result = run(&all);
        assert!(!out.exists(), "nothing was started");
        (result.code, result.err)
    };
    let (code, err) = start(&["--epochs", "3"]);
    assert!(code == Some(2) && err.contains("--epochs has no effect on `constrained`"), "{err}");
    let (code, err) = start(&["--data", folder.path("nowhere").to_str().unwrap()]);
    assert!(code == Some(2) && err.contains("there is no such folder"), "{err}");
    let (code, err) = start(&["--reference", folder.path("nowhere.json").to_str().unwrap()]);
    assert!(code == Some(1) && err.contains("cannot read"), "{err}");
    for (text, wanted) in [
        ("{}", "this is not a file of scripts/constrained-reference.py: missing field `problems`"),
        (&REFERENCE.replace("hs014", "hs999"), "there is no problem `hs999`"),
        (&REFERENCE.replace("\"converged\"", "\"done\""), "this is not a file of scripts/constrained-reference.py"),
    ] {
        let file = folder.write("reference.json", text);
        let (code, err) = start(&["--reference", file.to_str().unwrap()]);
        assert!(code == Some(1) && err.contains(wanted), "{wanted}\n{err}");
    }
    let result = run(&["reproduce", "subspace", "--reference", "a.json"]);
    assert!(result.code == Some(2) && result.err.contains("--reference is only for constrained"), "{}", result.err);
    let result = run(&["reproduce", "digits", "--quick"]);
    assert!(result.code == Some(2) && result.err.contains("--quick is only for cifar10 and constrained"));
}
