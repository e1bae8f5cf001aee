//! Runs of the constrained problems with data.

use crate::support::{Folder, experiment, run};
use serde_json::Value;

/// The problems, small, and whether they have bounds.
const PROBLEMS: [(&str, bool); 7] = [
    ("kind = \"pca\"\nd = 8\nk = 2\nn = 64\n", false),
    ("kind = \"generalized-eigenvalues\"\nd = 8\nk = 2\nn = 64\n", false),
    ("kind = \"procrustes\"\nd = 5\nk = 2\nn = 64\n", false),
    ("kind = \"constrained-logistic\"\nd = 8\nrows = 2\nn = 64\n", false),
    ("kind = \"orthonormal-mlp\"\nhidden = \"3\"\n", false),
    ("kind = \"mixture\"\ncomponents = 3\nn = 64\n", true),
    ("kind = \"nmf\"\nm = 20\nn = 6\nrank = 2\nwidth = 2\n", true),
];

fn methods(names: &[&str]) -> String {
    names.iter().map(|name| format!("[[method]]\nname = \"{name}\"")).collect::<Vec<_>>().join("\n")
}

/// The metrics at the end, by method.
fn finals(problem: &str, names: &[&str]) -> Vec<Value> {
    let folder = Folder::new();
    let file = folder.write("experiment.toml", &experiment(problem, &methods(names)));
    let result = run(&["run", file.to_str().unwrap(), "--out", folder.path("out").to_str().unwrap(), "--json"]);
    assert_eq!(result.code, Some(0), "{problem}: {}", result.err);
    let summary: Value = serde_json::from_str(&result.out).unwrap();
    summary["problems"][0]["methods"].as_array().unwrap().iter().map(|method| method["final"].clone()).collect()
}

fn violation(end: &Value) -> f64 {
    end["constraint_norm"]["median"].as_f64().unwrap()
}

#[test]
fn every_method_for_its_constraint_runs_on_every_constrained_problem() {
    for (problem, bounded) in PROBLEMS {
        let equations: &[&str] = if bounded { &[] } else { &["riemannian", "str-p", "auglag", "landing"] };
        let names = [&["str-sqp", "sgd-proj"], equations].concat();
        let ends = finals(problem, &names);
        for (name, end) in names.iter().zip(&ends).take(3) {
            assert!(violation(end) < 1e-10, "{name} on {problem}: {}", violation(end));
        }
        assert_eq!(ends.len(), names.len());
    }
}

#[test]
fn a_point_outside_of_the_bounds_violates_the_constraint() {
    let problem = "kind = \"nmf\"\nm = 20\nn = 6\nrank = 2\nwidth = 6\n";
    let [sgd, projected] = &finals(problem, &["sgd", "sgd-proj"])[..] else { panic!("two methods") };
    assert!(violation(sgd) > 1e-3 && violation(projected) == 0.0, "{sgd} {projected}");
}

#[test]
fn a_method_for_equations_refuses_bounds_before_anything_is_written() {
    for name in ["riemannian", "str-p", "auglag", "landing"] {
        let folder = Folder::new();
        let file = folder.write("experiment.toml", &experiment(PROBLEMS[5].0, &methods(&[name])));
        let out = folder.path("out");
        let result = run(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
        assert_eq!(result.code, Some(1));
        assert!(result.err.contains("for bounds use StrSqp"), "{}", result.err);
        assert!(!out.exists());
    }
}
