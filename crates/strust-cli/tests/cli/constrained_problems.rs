//! Runs of the constrained problems with data.

use crate::support::{Folder, experiment, run};
use serde_json::Value;
use std::path::PathBuf;

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

/// Writes an experiment, and people whose hiring depends on their age.
fn write(folder: &Folder, problem: &str, methods: &str, epochs: u64) -> PathBuf {
    let person = |i: usize| {
        let (age, skill) = (20 + i % 41, i * 7 % 13);
        let hired = if skill + age / 5 + i % 3 > 15 { "yes" } else { "no" };
        format!("{age},{skill},{hired}\n")
    };
    folder.write("people.csv", &("age,skill,hired\n".to_string() + &(0..300).map(person).collect::<String>()));
    let text = experiment(problem, methods).replace("epochs = 3", &format!("epochs = {epochs}"));
    folder.write("experiment.toml", &text)
}

/// The metrics after some epochs, by method.
fn finals(problem: &str, names: &[&str], epochs: u64) -> Vec<Value> {
    let folder = Folder::new();
    let file = write(&folder, problem, &methods(names), epochs);
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
        let ends = finals(problem, &names, 3);
        for (name, end) in names.iter().zip(&ends).take(3) {
            assert!(violation(end) < 1e-10, "{name} on {problem}: {}", violation(end));
        }
        assert_eq!(ends.len(), names.len());
    }
}

const PEOPLE: &str = "kind = \"groups\"\ndata = \"people.csv\"\nlabel = \"hired\"\npositive = \"yes\"\n\
                      column = \"age\"\ngroups = \"<=30, rest\"\nbound = 0.01\n";

#[test]
fn bounds_between_groups_hold_on_all_rows_or_nearly_from_mini_batches() {
    for problem in [
        "kind = \"groups\"\nn = 400\nbound = 0.01\n",
        "kind = \"groups\"\nn = 400\nhidden = 4\ncompare = \"opportunity\"\n",
        "kind = \"groups\"\nn = 400\ncompare = \"ratio\"\nbound = 0.9\n",
        PEOPLE,
    ] {
        let ends = finals(problem, &["str-sqp", "in-expectation", "sgd"], 20);
        let [exact, noisy, free] = [0, 1, 2].map(|k| violation(&ends[k]));
        assert!(exact < 1e-6 && noisy < 0.5 * free, "{problem}: {ends:?}");
        assert_eq!(ends[0].get("test_accuracy").is_some(), problem == PEOPLE, "{ends:?}");
    }
}

#[test]
fn wrong_groups_are_errors_that_say_what_to_do() {
    for (problem, part) in [
        (PEOPLE.replace("age", "height"), "there is no column `height`"),
        (PEOPLE.replace("yes", "Yes"), "column `hired` has no row with `Yes`"),
        (PEOPLE.replace("<=30, rest", "<=3, rest"), "column `age` has no row of the group <= 3"),
        (PEOPLE.replace("<=30, rest", "rest"), "`groups` must name at least two groups"),
        (PEOPLE.replace("people", "nobody"), "nobody.csv"),
        (PEOPLE.replace("positive = \"yes\"\n", ""), "`data` needs `positive`, too"),
        ("kind = \"groups\"\nlabel = \"hired\"\n".into(), "`label` belongs to a file: give it as `data`"),
        (PEOPLE.replace("bound = 0.01", "bound = 2"), "`bound` is 2"),
        (PEOPLE.replace("bound", "limit"), "limit"),
        (PEOPLE.to_string() + "compare = \"rate\"\n", "compare"),
    ] {
        let folder = Folder::new();
        let out = folder.path("out");
        let file = write(&folder, &problem, "", 3);
        let result = run(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
        assert!(result.code != Some(0) && result.err.contains(part), "{problem}: {}", result.err);
        assert!(!out.exists());
    }
}

#[test]
fn a_point_outside_of_the_bounds_violates_the_constraint() {
    let problem = "kind = \"nmf\"\nm = 20\nn = 6\nrank = 2\nwidth = 6\n";
    let [sgd, projected] = &finals(problem, &["sgd", "sgd-proj"], 3)[..] else { panic!("two methods") };
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
