//! Bounds between groups: what the program prints, writes and refuses.

use crate::support::{Finished, Folder, fails, finished, lines, names, refused, strust};

fn go(folder: &Folder, arguments: &[&str]) -> Finished {
    finished(&strust().args(arguments).current_dir(folder.0.path()).output().unwrap())
}

/// Two groups that differ in x, on which y depends.
fn people(rows: usize) -> String {
    let row = |i: usize| {
        let (group, x) = (i % 2, (i * 7 % 100) as f64 / 50.0 + (i % 2) as f64);
        let y = if x + (i * 13 % 37) as f64 / 18.0 > 2.4 { "yes" } else { "no" };
        format!("{x},{},{},{y}\n", i * 11 % 17, ["p", "q"][group])
    };
    format!("x,z,g,y\n{}", lines(rows, row))
}

#[test]
fn a_fit_reports_its_bounds_and_their_cost() {
    let folder = Folder::new();
    folder.write("people.csv", &people(600));
    let fit = ["fit", "people.csv", "--target", "y", "--drop", "g", "--fair", "g=0.05", "--save", "m.json"];
    let result = go(&folder, &fit);
    assert_eq!(result.code, Some(0), "{}", result.err);
    let line = result.out.lines().find(|line| line.starts_with("fair: mean score by `g`")).unwrap();
    assert!(
        line.contains("difference ≤ 0.05: 0.0500 on the training rows, ") && line.ends_with(" without it"),
        "{line}"
    );
    assert!(result.out.contains("\nfair: cost: accuracy ") && !result.out.contains("is an input"), "{}", result.out);
    let page = std::fs::read_to_string(folder.path("m.html")).unwrap();
    for part in ["What the bounds between groups do", "accuracy against the bound", "false-positive rate", "this model"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(!std::fs::read_to_string(folder.path("m.json")).unwrap().contains("\"g = p\""), "no input");
    let scores = go(&folder, &["evaluate", "m.json", "people.csv"]).out;
    assert!(scores.contains("By g, with 95 % intervals") && scores.contains("mean score"), "{scores}");
    let scores: serde_json::Value =
        serde_json::from_str(&go(&folder, &["evaluate", "m.json", "people.csv", "--json"]).out).unwrap();
    assert_eq!(scores["groups"][0]["groups"][1]["group"], "q");
    // The predictions need no groups.
    folder.write("new.csv", "x,z\n1,2\n");
    assert_eq!(go(&folder, &["predict", "m.json", "new.csv"]).code, Some(0));
}

#[test]
fn an_input_with_the_groups_is_named() {
    let folder = Folder::new();
    folder.write("people.csv", &people(300));
    let out = go(&folder, &["fit", "people.csv", "--target", "y", "--fair", "g=0.05:rate"]).out;
    assert!(
        out.contains("note: `g` has the groups of --fair and is an input of the model too: --drop g leaves it out")
    );
}

#[test]
fn what_is_bounded_is_shown_by_group() {
    let folder = Folder::new();
    folder.write("people.csv", &people(600));
    let bounds = ["--fair", "g=0.05:opportunity", "--limit", "false_negative_rate <= 0.2"];
    let result = go(&folder, &[&["fit", "people.csv", "--target", "y", "--save", "m.json"], &bounds[..]].concat());
    assert_eq!(result.code, Some(0), "{}", result.err);
    let page = std::fs::read_to_string(folder.path("m.html")).unwrap();
    let scores = go(&folder, &["evaluate", "m.json", "people.csv"]).out;
    for name in ["mean score of the positive rows", "false-negative rate"] {
        assert!(page.contains(&format!(">{name}<")) && scores.contains(name), "{name}: {scores}");
    }
}

#[test]
fn a_rate_that_misses_its_bound_by_a_row_is_named() {
    let folder = Folder::new();
    let row = |i: usize| {
        let x = i * 7 % 100;
        let y = if (x >= 50) == (i % 10 == 3) { "no" } else { "yes" };
        format!("{x},0,{},{y}\n", ["p", "q"][i % 2])
    };
    // Half of p and q are positive. Both rows of r have the same inputs, so its rate is 0 or 1.
    folder.write("pair.csv", &format!("x,z,g,y\n{}50,1,r,no\n50,1,r,yes\n", lines(200, row)));
    let bounds = ["--fair", "g=0.1:rate", "--limit", "false_negative_rate <= 0.2"];
    let fit =
        ["fit", "pair.csv", "--target", "y", "--drop", "g", "--test", "0", "--limit", "false_positive_rate <= 0.2"];
    let result = go(&folder, &[&fit[..], &bounds[..]].concat());
    assert_eq!(result.code, Some(0), "{}", result.err);
    let says = |line: &&str| line.contains("(above the bound, by at most one row of a group)");
    let found: Vec<&str> = result.out.lines().filter(says).collect();
    assert!(found.len() == 1 && found[0].starts_with("fair: positive rate by `g`"), "{}", result.out);
}

#[test]
fn bounds_that_nothing_satisfies_write_nothing() {
    let folder = Folder::new();
    folder.write("people.csv", &people(300));
    let fit = |more: &[&str]| go(&folder, &[&["fit", "people.csv", "--target", "y"], more].concat());
    let limits = ["--limit", "false_positive_rate <= 0.001", "--limit", "false_negative_rate <= 0.001"];
    fails(
        &fit(&limits),
        &["people.csv: no model was found that satisfies the bounds on the training rows", "relax one"],
    );
    fails(&fit(&["--fair", "h=0.1"]), &["people.csv: there is no column `h` for --fair"]);
    refused(&fit(&["--fair", "g=1.5"]), 2, &["the bound is 1.5, but must be in [0, 1)"]);
    refused(&fit(&["--fair", "g"]), 2, &["--fair", "it must be COLUMN=BOUND, such as sex=0.02"]);
    refused(&fit(&["--fair", "g=0.1", "--nonnegative"]), 2, &["does not combine with constraints on the weights"]);
    assert_eq!(names(folder.0.path()), ["people.csv"]);
}
