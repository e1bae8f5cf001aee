//! `strust fit`, `predict`, `evaluate` and `inspect`, as a person with a data file uses them.

use crate::support::{Finished, Folder, finished, lines, refused, run, strust};
use std::{fmt::Write as _, process::Stdio};

/// Rows of customers: a text label, categories with commas, quotes and blanks.
fn customers(rows: usize) -> String {
    let mut text = String::from("age,\"plan, kind\",city,churn\n");
    for i in 0..rows {
        let (age, plan, city) = (18 + (i * 37) % 60, i % 3, (i / 3) % 4);
        let leaves = age < 40 && plan != 1 || age > 70 && city == 2;
        let age = if i % 41 == 0 { String::new() } else { age.to_string() };
        let plan = ["free", "\"paid, yearly\"", "\"the \"\"new\"\" one\""][plan];
        let _ = writeln!(
            text,
            "{age},{plan},{},{}",
            ["Rome", "Oslo", "Lima", ""][city],
            ["stays", "leaves"][usize::from(leaves)]
        );
    }
    text
}

/// Runs the program in a folder.
pub fn go(folder: &Folder, arguments: &[&str]) -> Finished {
    finished(&strust().args(arguments).current_dir(folder.0.path()).output().expect("the program starts"))
}

/// The same, and returns what it prints if it succeeds.
#[track_caller]
pub fn done(folder: &Folder, arguments: &[&str]) -> String {
    let result = go(folder, arguments);
    assert_eq!(result.code, Some(0), "{}", result.err);
    result.out
}

#[test]
fn a_table_becomes_a_model_that_predicts_evaluates_and_is_inspected() {
    let folder = Folder::new();
    folder.write("customers.csv", &customers(2000));
    let out = done(&folder, &["fit", "customers.csv", "--target", "churn", "--model", "mlp", "--report", "page.html"]);
    for part in [
        "Task: two classes, `leaves` and `stays`, because `churn` holds words",
        "1,600 rows to learn from, 400 held out",
        "blank cells in 2 columns",
        " % on 400 held-out rows (",
        " % on the training rows); always guessing the largest class gives ",
        "converged after ",
        "Model: model.json",
        "Report: page.html",
    ] {
        assert!(out.contains(part), "{part:?} is not in: {out}");
    }
    let page = std::fs::read_to_string(folder.path("page.html")).unwrap();
    for part in ["Learning curve", "Confusion matrix", "Calibration", "Features that matter", "<svg", "MD5"] {
        assert!(page.contains(part), "{part:?} is not in the page");
    }
    assert!(!page.contains("src=") && !page.contains("href=\"http"), "the page loads something");

    folder.write("new.csv", "extra,city,age,\"plan, kind\"\n1,Rome,20,free\n2,Paris,65,\"paid, yearly\"\n");
    let result = go(&folder, &["predict", "model.json", "new.csv", "--out", "predictions.csv"]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    assert!(
        result.err.contains("1 cell has a category of `city` that the model does not know, such as `Paris`"),
        "{}",
        result.err
    );
    let predictions = std::fs::read_to_string(folder.path("predictions.csv")).unwrap();
    let lines: Vec<&str> = predictions.lines().collect();
    assert_eq!(lines[0], "prediction,p(leaves),p(stays)");
    assert!(
        lines.len() == 3 && lines[1].starts_with("leaves,0.9") && lines[2].starts_with("stays,0.0"),
        "{predictions}"
    );
    folder.write("narrow.csv", "age,city\n20,Rome\n");
    let result = go(&folder, &["predict", "model.json", "narrow.csv"]);
    assert!(result.out.starts_with("prediction,") && result.err.contains("no column `plan, kind`"), "{}", result.err);

    let out = done(&folder, &["evaluate", "model.json", "customers.csv"]);
    assert!(out.contains("on 2,000 rows") && out.contains("Confusion matrix") && out.contains("recall"), "{out}");
    let scores: serde_json::Value =
        serde_json::from_str(&done(&folder, &["evaluate", "model.json", "customers.csv", "--json"])).unwrap();
    assert!(scores["accuracy"].as_f64().unwrap() > 0.95, "{scores}");
    let out = done(&folder, &["inspect", "model.json"]);
    for part in ["mlp model of `churn`", "classes: leaves, stays", "plan, kind", "one of 4", "MD5"] {
        assert!(out.contains(part), "{part:?} is not in: {out}");
    }
}

#[test]
fn both_kinds_of_model_files_predict_the_same() {
    let folder = Folder::new();
    folder.write("customers.csv", &customers(600));
    for save in ["a.json", "b.safetensors"] {
        let out = done(&folder, &["fit", "customers.csv", "--target", "churn", "--save", save, "-q"]);
        assert!(out.is_empty(), "{out}");
    }
    let predict = |model| done(&folder, &["predict", model, "customers.csv"]);
    assert_eq!(predict("a.json"), predict("b.safetensors"));
    // Only a model may be replaced.
    let result = go(&folder, &["fit", "customers.csv", "--target", "churn", "--save", "customers.json"]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    folder.write("notes.json", "{\"mine\": 1}");
    let result = go(&folder, &["fit", "customers.csv", "--target", "churn", "--save", "notes.json"]);
    refused(&result, 1, &["the file exists and is not a model"]);
    assert_eq!(std::fs::read_to_string(folder.path("notes.json")).unwrap(), "{\"mine\": 1}");
    folder.write("page.html", "mine");
    refused(
        &go(&folder, &["fit", "customers.csv", "--target", "churn", "--report", "page.html"]),
        1,
        &["strust did not write this file"],
    );
}

#[test]
fn a_regression_with_constraints_reports_weights_that_satisfy_them() {
    let folder = Folder::new();
    let mut text = String::from("a,b,c,y\n");
    for i in 0..200_usize {
        let (a, b, c) = ((i * 7 % 11) as f64, (i * 5 % 13) as f64, (i * 3 % 17) as f64);
        let _ = writeln!(text, "{a},{b},{c},{}", 0.7 * a + 0.3 * b + 0.01 * (i % 5) as f64);
    }
    folder.write("funds.csv", &text);
    let fit = ["fit", "funds.csv", "--target", "y", "--nonnegative", "--sum-to-one", "--save", "m.json"];
    assert!(done(&folder, &fit).contains("R² "));
    let model: serde_json::Value = serde_json::from_str(&done(&folder, &["inspect", "m.json", "--json"])).unwrap();
    let weights: Vec<f64> =
        model["weights_in_units"]["weights"][0].as_array().unwrap().iter().map(|w| w.as_f64().unwrap()).collect();
    assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12 && weights.iter().all(|w| *w >= 0.0), "{weights:?}");
    assert!((weights[0] - 0.7).abs() < 0.01, "{weights:?}");
    assert!(done(&folder, &["inspect", "m.json"]).contains("weights ≥ 0, sum 1"));
}

#[test]
fn wrong_input_is_an_error_that_says_what_to_do() {
    let folder = Folder::new();
    folder.write("customers.csv", &customers(200));
    folder.write("dates.csv", "day,y\n1/2/2024,1\n1/3/2024,2\n");
    folder.write("other.csv", "p,q\n1,2\n");
    done(&folder, &["fit", "customers.csv", "--target", "churn", "--save", "m.json", "-q"]);
    for (arguments, code, parts) in [
        (
            &["fit", "customers.csv", "--target", "chrun"][..],
            1,
            &["there is no column `chrun`; did you mean `churn`?"][..],
        ),
        (&["fit", "customers.csv"], 2, &["name the column to predict with --target", "`age`"]),
        (&["fit", "nothing.csv", "--target", "y"], 1, &["nothing.csv"]),
        (
            &["fit", "dates.csv", "--target", "y"],
            1,
            &["dates.csv:2: column `day` holds dates, such as \"1/2/2024\"", "--drop day"],
        ),
        (&["fit", "dates.csv", "--target", "x"], 1, &["there is no column `x`; did you mean `y`?"]),
        (&["fit", "dates.csv"], 2, &["name the column to predict with --target; the columns are `day`, `y`"]),
        (
            &["fit", "customers.csv", "--target", "churn", "--drop", "churn"],
            2,
            &["`churn` is the column to predict, so it cannot be left out with --drop"],
        ),
        (&["fit", "customers.csv", "--target", "churn", "--test", "1.5"], 2, &["--test is 1.5"]),
        (&["fit", "customers.csv", "--target", "churn", "--hidden", "8"], 2, &["--hidden is only for --model mlp"]),
        (&["fit", "customers.csv", "--target", "churn", "--save", "model.txt"], 2, &[".json or .safetensors"]),
        (&["fit", "customers.csv", "--target", "churn", "--save", "no/model.json"], 1, &["there is no folder no"]),
        (&["fit", "customers.csv", "--target", "churn", "--model", "linear"], 2, &["does not fit two classes"]),
        (&["fit", "customers.csv", "--target", "churn", "--l2", "-1"], 2, &["--l2"]),
        (&["predict", "m.json", "other.csv"], 1, &["the file has no column of the model"]),
        (
            &["predict", "m.json", "customers.csv", "--out", "customers.csv"],
            2,
            &["customers.csv: the command reads this file and would replace it: choose another file"],
        ),
        (&["predict", "customers.csv", "other.csv"], 1, &["not a model of `strust fit`"]),
        (
            &["predict", "customers.csv", "m.json"],
            2,
            &["m.json is the model, and it comes first: strust predict m.json"],
        ),
        (&["evaluate", "customers.csv", "m.json"], 2, &["it comes first: strust evaluate m.json customers.csv"]),
        (&["evaluate", "m.json", "other.csv"], 1, &["no column"]),
        (&["evaluate", "m.json"], 2, &["needs the rows"]),
        (&["evaluate", "m.json", "other.csv", "--device", "cpu"], 2, &["for networks"]),
        (&["inspect", "nothing.json"], 1, &["nothing.json"]),
    ] {
        refused(&go(&folder, arguments), code, parts);
    }
    assert!(!folder.path("model.json").exists());
}

#[test]
fn a_damaged_model_is_refused() {
    let folder = Folder::new();
    folder.write("customers.csv", &customers(200));
    done(&folder, &["fit", "customers.csv", "--target", "churn", "--save", "m.safetensors", "-q"]);
    let bytes = std::fs::read(folder.path("m.safetensors")).unwrap();
    std::fs::write(folder.path("cut.safetensors"), &bytes[..bytes.len() - 5]).unwrap();
    refused(&go(&folder, &["predict", "cut.safetensors", "customers.csv"]), 1, &["not a model of `strust fit`"]);
    std::fs::write(folder.path("long.safetensors"), [&u64::MAX.to_le_bytes()[..], &bytes[8..]].concat()).unwrap();
    refused(&go(&folder, &["inspect", "long.safetensors"]), 1, &["the length of its header is wrong"]);
}

#[cfg(unix)]
#[test]
fn ctrl_c_saves_the_best_model_so_far() {
    let folder = Folder::new();
    folder.write("customers.csv", &customers(20_000));
    // A network that would learn for minutes.
    let mut command = strust();
    let wide = ["--model", "mlp", "--hidden", "256,256", "--save", "m.json", "--test", "0.05"];
    command.args(["fit", "customers.csv", "--target", "churn"]).args(wide).current_dir(folder.0.path());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(3));
    let status = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    let result = finished(&child.wait_with_output().unwrap());
    assert_eq!(result.code, Some(1), "{}", result.err);
    // It saves the model if it has begun to learn, and otherwise writes nothing.
    if result.err.contains("stopped early") {
        assert!(done(&folder, &["inspect", "m.json"]).contains("mlp model"));
    } else {
        assert!(result.err.contains("nothing was written") && !folder.path("m.json").exists(), "{}", result.err);
    }
}

/// Starts the program, interrupts it as soon as it handles Ctrl-C, and waits for its end.
#[cfg(target_os = "linux")]
fn interrupted(command: &mut std::process::Command) -> Finished {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let handles = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0").trim();
        u64::from_str_radix(caught, 16).unwrap_or(0) & 2 != 0
    };
    while !handles() {
        std::thread::yield_now();
    }
    let status = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    finished(&child.wait_with_output().unwrap())
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_before_there_is_a_result_says_that_nothing_was_written() {
    let folder = Folder::new();
    folder.write("few.csv", &customers(400));
    done(&folder, &["fit", "few.csv", "--target", "churn", "--save", "m.json", "-q"]);
    folder.write("many.csv", &customers(400_000));
    for arguments in [
        &["predict", "m.json", "many.csv", "--out", "new.csv"][..],
        &["predict", "m.json", "many.csv"],
        &["evaluate", "m.json", "many.csv"],
        &["fit", "many.csv", "--target", "churn", "--save", "new.json"],
    ] {
        let result = interrupted(strust().args(arguments).current_dir(folder.0.path()));
        assert_eq!((result.code, result.out.as_str()), (Some(1), ""), "{arguments:?}: {}", result.err);
        assert!(result.err.ends_with("error: stopped; nothing was written\n"), "{arguments:?}: {}", result.err);
    }
    assert_eq!(crate::support::names(folder.0.path()), ["few.csv", "m.html", "m.json", "many.csv"]);
}

#[test]
fn one_input_is_singular() {
    let folder = Folder::new();
    let rows = lines(40, |i| format!("{i},{}\n", 3 * i % 31));
    folder.write("line.csv", &format!("x,y\n{rows}"));
    let out =
        done(&folder, &["fit", "line.csv", "--target", "y", "--epochs", "1", "--test", "0.2", "--save", "m.json"]);
    assert!(out.contains("32 rows to learn from, 8 held out; 1 input from 1 column, linear model"), "{out}");
    assert!(done(&folder, &["inspect", "m.json"]).contains("newton, 1 step, batch 32"));
    folder.write("new.csv", "x\n5\n");
    let out = done(&folder, &["predict", "m.json", "new.csv", "--out", "p.csv"]);
    assert_eq!(out, "1 prediction: p.csv\n");
    folder.write("one.csv", "x,y\n5,3\n");
    assert!(done(&folder, &["evaluate", "m.json", "one.csv"]).contains(" on 1 row, with a mean error"));
}

#[test]
fn help_has_examples() {
    let out = run(&["fit", "--help"]).out;
    assert!(out.contains("strust fit census.csv --target income") && out.contains("--nonnegative"), "{out}");
}
