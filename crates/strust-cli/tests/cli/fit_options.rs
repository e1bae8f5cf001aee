//! The options of `strust fit` that people choose, what the program says about them, and its verdict.

use crate::support::{Finished, Folder, finished, refused, strust};
use std::fmt::Write as _;

fn go(folder: &Folder, arguments: &[&str]) -> Finished {
    finished(&strust().args(arguments).current_dir(folder.0.path()).output().expect("the program starts"))
}

/// What `strust fit` prints with a new model.
#[track_caller]
fn fit(folder: &Folder, arguments: &[&str]) -> String {
    let result = go(folder, &[&["fit"], arguments, &["--save", "m.json"]].concat());
    assert_eq!(result.code, Some(0), "{}", result.err);
    result.out
}

#[track_caller]
fn has(out: &str, line: &str) {
    assert!(out.lines().any(|other| other == line), "{line:?} is not a line of:\n{out}");
}

/// A number in [0, 1) that looks random.
fn noise(i: usize, stream: usize) -> f64 {
    let mut x =
        (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (stream as u64).wrapping_mul(0xd1b5_4a32_d192_ed03);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// y from the columns a, b and `net pay` in [0, 1) and a city.
fn table(rows: usize, y: impl Fn(usize, [f64; 3]) -> String) -> String {
    let mut text = String::from("a,b,net pay,city,y\n");
    for i in 0..rows {
        let x = [noise(i, 1), noise(i, 2), noise(i, 3)];
        let _ = writeln!(text, "{},{},{},{},{}", x[0], x[1], x[2], ["Rome", "Oslo"][i % 2], y(i, x));
    }
    text
}

fn weights(folder: &Folder) -> Vec<f64> {
    let model: serde_json::Value = serde_json::from_str(&go(folder, &["inspect", "m.json", "--json"]).out).unwrap();
    model["weights_in_units"]["weights"][0].as_array().unwrap().iter().map(|w| w.as_f64().unwrap()).collect()
}

fn sums() -> String {
    table(1000, |i, [a, b, pay]| (2.0 * a - b + 0.5 * pay + 0.2 * noise(i, 9)).to_string())
}

#[test]
fn bounds_sums_and_monotone_columns_hold_and_their_costs_are_reported() {
    let folder = Folder::new();
    folder.write("sums.csv", &sums());
    let rules = ["--bounds", "0<=a<=1.5", "--monotone", "b=up", "--at-most", "a + `net pay` <= 1.75"];
    let out = fit(&folder, &[&["sums.csv", "--target", "y"], &rules[..]].concat());
    let found = weights(&folder);
    assert!(found[0] <= 1.5 && found[1] == 0.0 && (found[0] + found[2] - 1.75).abs() < 1e-9, "{found:?}");
    let costs: Vec<&str> = out.lines().filter_map(|line| line.strip_prefix("constraint: ")).collect();
    assert!(costs[0].starts_with("`b` ≥ 0 is active: without it the loss would be ") && costs[0].ends_with(" % lower"));
    assert!(costs.iter().any(|line| line.starts_with("`a` + `net pay` ≤ 1.75 is active: ")), "{costs:?}");
    assert!(out.contains("; converged after "), "{out}");
    assert!(go(&folder, &["inspect", "m.json"]).out.contains("0<=a<=1.5, a + `net pay` <= 1.75, `b` >= 0"));
    let page = std::fs::read_to_string(folder.path("m.html")).unwrap();
    assert!(page.contains("What the constraints do") && page.contains("a + net pay ≤ 1.75"));
}

#[test]
fn the_cost_of_a_constraint_is_that_of_a_fit_without_it() {
    let folder = Folder::new();
    folder.write("sums.csv", &sums());
    let report = |rules: &[&str]| -> serde_json::Value {
        let arguments =
            [&["fit", "sums.csv", "--target", "y", "--l2", "0", "--save", "m.json", "--json"], rules].concat();
        serde_json::from_str(&go(&folder, &arguments).out).unwrap()
    };
    let bounded = report(&["--bounds", "b >= 0"]);
    let free = report(&["--bounds", "b >= -9"]);
    let loss = |report: &serde_json::Value| report["training"]["rmse"].as_f64().unwrap().powi(2);
    let expected = 1.0 - loss(&free) / loss(&bounded);
    let effect = &bounded["constraints"][0];
    assert!((effect["cost"].as_f64().unwrap() - expected).abs() < 1e-6, "{effect} and {expected}");
    assert_eq!((&effect["text"], &effect["active"]), (&"`b` ≥ 0".into(), &true.into()));
    assert!(effect["multiplier"].as_f64().unwrap() > 0.0);
    assert_eq!(free["constraints"][0]["active"], false);
    let out = fit(&folder, &["sums.csv", "--target", "y", "--bounds", "b >= -9"]);
    has(&out, "constraint: none is active: the fit without them is the same");
}

#[test]
fn a_category_is_bounded_by_its_column_or_by_its_name() {
    let folder = Folder::new();
    folder.write("t.csv", &table(600, |i, [a, ..]| (a + if i % 2 == 0 { 1.0 } else { -1.0 }).to_string()));
    fit(&folder, &["t.csv", "--target", "y", "--bounds", "city = Rome<=0.5", "--bounds", "`city = Oslo` >= 0"]);
    assert_eq!(weights(&folder)[3..], [0.0, 0.5]);
    fit(&folder, &["t.csv", "--target", "y", "--bounds", "0 <= city <= 0.25"]);
    assert!(weights(&folder)[3..].iter().all(|w| (0.0..=0.25).contains(w)), "{:?}", weights(&folder));
}

#[test]
fn wrong_options_are_errors_that_say_what_to_do() {
    let folder = Folder::new();
    folder.write("sums.csv", &sums());
    folder.write("mixed.csv", &table(300, |i, _| if i == 6 { "-2".into() } else { i.to_string() }));
    folder.write("kinds.csv", &table(300, |i, _| ["no", "yes"][i % 2].into()));
    for (arguments, code, message) in [
        (
            &["sums.csv", "--bounds", "net_pay>=0"][..],
            2,
            "the constraint \"net_pay>=0\": the model has no input `net_pay`; did you mean `net pay`?",
        ),
        (
            &["sums.csv", "--bounds", "a>=1", "--bounds", "b<=3", "--constraint", "a + b <= -2", "--nonnegative"],
            2,
            "no weights satisfy `a + b <= -2` and `--nonnegative` together: relax one of them",
        ),
        (
            &["sums.csv", "--bounds", "a>=1", "--bounds", "a<=0"],
            2,
            "no weights satisfy `a>=1` and `a<=0` together: relax one of them",
        ),
        (&["sums.csv", "--monotone", "a"], 2, "--monotone is \"a\", but must be COLUMN=up or COLUMN=down"),
        (
            &["sums.csv", "--monotone", "a=up", "--model", "auto"],
            2,
            "constraints are for linear models: leave out --model auto",
        ),
        (&["sums.csv", "--l2", "auto", "--model", "mlp"], 2, "--l2 auto is for linear models: give a network a number"),
        (
            &["mixed.csv", "--log-target"],
            1,
            "mixed.csv: column `y` is -2 in row 7, but --log-target needs numbers that are not negative: leave out the option",
        ),
        (
            &["kinds.csv", "--loss", "huber"],
            2,
            "--loss huber is for a regression, but `y` has classes, because `y` holds words: use --task regression if it \
             is a number",
        ),
    ] {
        let result = go(&folder, &[&["fit", "--target", "y", "--save", "m.json"], arguments].concat());
        assert_eq!((result.code, result.out.as_str()), (Some(code), ""), "{arguments:?}: {}", result.err);
        assert!(result.err.contains(&format!("error: {message}\n")), "{message:?} is not in: {}", result.err);
    }
    refused(&go(&folder, &["fit", "sums.csv", "--target", "y", "--l2", "much"]), 2, &["it must be a number or auto"]);
    assert!(!folder.path("m.json").exists());
}

#[test]
fn huber_finds_the_weights_in_spite_of_outliers_and_the_program_advises_it() {
    let folder = Folder::new();
    let wild = |i: usize, [a, b, _]: [f64; 3]| {
        let outlier = if i.is_multiple_of(12) { 1000.0 * (noise(i, 8) - 0.3) } else { 0.0 };
        (3.0 * a - 2.0 * b + 0.1 * (noise(i, 9) - 0.5) + outlier).to_string()
    };
    folder.write("wild.csv", &table(2000, wild));
    let out = fit(&folder, &["wild.csv", "--target", "y"]);
    has(&out, "note: `y` has heavy tails, so a few rows decide the fit: try --loss huber");
    assert!((weights(&folder)[0] - 3.0).abs() > 1.0, "squares fail: {:?}", weights(&folder));
    let out = fit(&folder, &["wild.csv", "--target", "y", "--loss", "huber"]);
    assert!(!out.contains("heavy tails"), "{out}");
    assert!(
        (weights(&folder)[0] - 3.0).abs() < 0.05 && (weights(&folder)[1] + 2.0).abs() < 0.05,
        "{:?}",
        weights(&folder)
    );
}

#[test]
fn a_log_target_predicts_in_the_units_of_the_file() {
    let folder = Folder::new();
    let grows = |i: usize, [a, b, _]: [f64; 3]| (6.0 * a + 4.0 * b + 0.1 * noise(i, 9)).exp().to_string();
    folder.write("grows.csv", &table(2000, grows));
    let out = fit(&folder, &["grows.csv", "--target", "y"]);
    has(&out, "note: `y` has heavy tails, so a few rows decide the fit: try --log-target");
    let out = fit(&folder, &["grows.csv", "--target", "y", "--log-target", "--l2", "0"]);
    assert!(out.contains("R² 0.99"), "{out}");
    folder.write("new.csv", "a,b,net pay,city\n0.5,0.5,0.5,Rome\n");
    let out = go(&folder, &["predict", "m.json", "new.csv"]).out;
    let predicted: f64 = out.lines().nth(1).unwrap().parse().unwrap();
    assert!((predicted.ln() - 5.05).abs() < 0.05, "{predicted}");
    assert!((weights(&folder)[0] - 6.0).abs() < 0.05, "weights of the logarithm: {:?}", weights(&folder));
    // With zeros it is log(1 + y).
    folder.write("zeros.csv", &table(400, |i, x| if i % 9 == 0 { "0".into() } else { grows(i, x) }));
    fit(&folder, &["zeros.csv", "--target", "y", "--log-target"]);
    assert!(std::fs::read_to_string(folder.path("m.json")).unwrap().contains("\"scale\": \"log-plus-one\""));
}

#[test]
fn few_rows_are_scored_by_cross_validation() {
    let folder = Folder::new();
    folder.write("few.csv", &table(120, |i, [a, b, _]| (a - b + 0.5 * noise(i, 9)).to_string()));
    let out = fit(&folder, &["few.csv", "--target", "y"]);
    assert!(out.contains("120 rows to learn from, all of them scored by cross-validation; 5 inputs"), "{out}");
    let verdict = out.lines().find(|line| line.starts_with("R² ")).unwrap();
    assert!(verdict.contains(" ± 0.0") && verdict.contains(" in 5-fold cross-validation of 120 rows ("), "{verdict}");
    assert!(
        go(&folder, &["inspect", "m.json"]).out.contains(" in 5-fold cross-validation of 120 rows, with a mean error")
    );
    let out = fit(&folder, &["few.csv", "--target", "y", "--test", "0.2"]);
    assert!(out.contains("96 rows to learn from, 24 held out;") && out.contains(" on 24 held-out rows ("), "{out}");
    folder.write("kinds.csv", &table(100, |i, [a, ..]| ["no", "yes"][usize::from(a + noise(i, 9) > 1.0)].into()));
    let verdict = fit(&folder, &["kinds.csv", "--target", "y"]);
    assert!(verdict.contains(" % in 5-fold cross-validation of 100 rows ("), "{verdict}");
}

#[test]
fn the_penalty_is_chosen_by_cross_validation() {
    let folder = Folder::new();
    folder.write("noise.csv", &table(300, |i, _| noise(i, 9).to_string()));
    let out = fit(&folder, &["noise.csv", "--target", "y", "--l2", "auto"]);
    has(
        &out,
        "note: --l2 auto chose 1000 by 5-fold cross-validation, the most that it tries: the columns may say nothing",
    );
    assert!(out.contains("; this is no better than guessing; "), "{out}");
    folder.write("sums.csv", &sums());
    let out = fit(&folder, &["sums.csv", "--target", "y", "--l2", "auto"]);
    let note = out.lines().find_map(|line| line.strip_prefix("note: --l2 auto chose ")).unwrap();
    let chosen: f64 = note.split(' ').next().unwrap().parse().unwrap();
    assert!(chosen <= 1.0 && note.contains(" by 5-fold cross-validation"), "{note}");
}

#[test]
fn a_network_is_advised_and_chosen_only_if_it_is_better() {
    let folder = Folder::new();
    let product = |i: usize, [a, b, _]: [f64; 3]| ((a - 0.5) * (b - 0.5) + 0.02 * noise(i, 9)).to_string();
    folder.write("curved.csv", &table(3000, product));
    let out = fit(&folder, &["curved.csv", "--target", "y"]);
    assert!(
        out.contains("; a network may do better: R² 0.") && out.contains(" on 400 rows; try --model mlp; "),
        "{out}"
    );
    let out = fit(&folder, &["curved.csv", "--target", "y", "--model", "auto"]);
    assert!(out.contains("note: --model auto chose the network: the network has R² 0.9"), "{out}");
    assert!(out.contains(", mlp model"), "{out}");
    folder.write("sums.csv", &sums());
    assert!(!fit(&folder, &["sums.csv", "--target", "y"]).contains("a network may do better"));
    let out = fit(&folder, &["sums.csv", "--target", "y", "--model", "auto"]);
    assert!(
        out.contains("note: --model auto chose the linear model: the network is not clearly better with R² 0."),
        "{out}"
    );
    assert!(out.contains(", linear model"), "{out}");
}

#[test]
fn the_verdict_says_how_far_to_trust_it() {
    let folder = Folder::new();
    folder
        .write("kinds.csv", &table(2000, |i, [a, ..]| ["no", "yes"][usize::from(a + 0.5 * noise(i, 9) > 0.8)].into()));
    let out = fit(&folder, &["kinds.csv", "--target", "y"]);
    assert!(
        out.contains(" % on 400 held-out rows (") && out.contains(" % on the training rows); always guessing"),
        "{out}"
    );
    folder.write("few.csv", &table(250, |i, [a, ..]| ["no", "yes"][usize::from(a + noise(i, 9) > 1.0)].into()));
    let out = fit(&folder, &["few.csv", "--target", "y"]);
    assert!(out.contains("; the held-out rows are too few to tell more exactly; "), "{out}");
    folder.write("coin.csv", &table(2000, |i, _| ["no", "yes"][usize::from(noise(i, 9) > 0.5)].into()));
    assert!(fit(&folder, &["coin.csv", "--target", "y"]).contains("; this is no better than guessing; "));
    let rare = |i: usize, [a, ..]: [f64; 3]| ["no", "yes"][usize::from(a > 0.5 && noise(i, 9) < 0.1)].into();
    folder.write("rare.csv", &table(2000, rare));
    let out = fit(&folder, &["rare.csv", "--target", "y"]);
    assert!(out.contains("; only 0 % of the ") && out.contains(" of the rare class `yes` are found; "), "{out}");
}
