//! Bounds between groups and on rates, compared with references that are computed in another way.

use std::{
    fmt::Write as _,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};
use strust_fit::{
    DataTable, Error, FitOptions, Fitted, ReadOptions,
    fair::{FairOptions, GroupQuantity},
    fit,
    fit::{FitWatch, evaluate},
    saved::ModelFamily,
    table::ReadProgress,
    train::TrainingEnd,
};

struct Data {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Data {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.csv");
        std::fs::write(&path, text).unwrap();
        Self { _folder: folder, path }
    }
    fn read(&self, options: &ReadOptions) -> DataTable {
        let stop = AtomicBool::new(false);
        DataTable::read(&self.path, options, &mut ReadProgress { at: &mut |_| {}, interrupt: &stop }).unwrap()
    }
    fn fit(&self, options: &FitOptions) -> Result<Fitted, Error> {
        let table = self.read(&ReadOptions { target: options.target.clone(), ..ReadOptions::default() });
        let stop = AtomicBool::new(false);
        fit(&table, None, options, &mut FitWatch { report: &mut |_, _| {}, interrupt: &stop })
    }
}

fn noise(i: usize, stream: usize) -> f64 {
    let mut x =
        (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (stream as u64).wrapping_mul(0xd1b5_4a32_d192_ed03);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

struct Row {
    x: [f64; 2],
    group: usize,
    y: f64,
}

/// The groups differ in x₀, on which y depends.
fn rows(count: usize, groups: usize) -> Vec<Row> {
    let row = |i: usize| {
        let group = i % groups;
        let x = [2.0 * noise(i, 1) + group as f64, 2.0 * noise(i, 2) - 1.0];
        let z = 1.5 * x[0] - x[1] - 2.5;
        let y = f64::from(u8::from(noise(i, 3) < 1.0 / (1.0 + (-z).exp())));
        Row { x, group, y }
    };
    (0..count).map(row).collect()
}

fn text(rows: &[Row]) -> String {
    let mut text = String::from("a,b,g,y\n");
    for Row { x, group, y } in rows {
        let _ = writeln!(text, "{},{},{},{}", x[0], x[1], ["p", "q", "r"][*group], ["no", "yes"][*y as usize]);
    }
    text
}

/// A fit of all rows to a, b and an intercept in the units of the file.
fn to(rules: &[&str], limits: &[&str]) -> FitOptions {
    let fair = FairOptions {
        rules: rules.iter().map(|text| text.parse().unwrap()).collect(),
        limits: limits.iter().map(|text| text.parse().unwrap()).collect(),
    };
    FitOptions {
        target: Some("y".into()),
        test_share: Some(0.0),
        standardize: false,
        leave_out: vec!["g".into()],
        fair,
        ..FitOptions::default()
    }
}

fn weights(fitted: &Fitted) -> [f64; 3] {
    let (weights, bias) = fitted.model.weights_in_units().unwrap();
    [weights[0][0], weights[0][1], bias[0]]
}

fn output(w: &[f64; 3], row: &Row) -> f64 {
    w[0] * row.x[0] + w[1] * row.x[1] + w[2]
}
fn probability(w: &[f64; 3], row: &Row) -> f64 {
    1.0 / (1.0 + (-output(w, row)).exp())
}

/// f with the penalty 1.
fn objective(w: &[f64; 3], rows: &[Row]) -> f64 {
    let loss = |row: &Row| (1.0 + ((1.0 - 2.0 * row.y) * output(w, row)).exp()).ln();
    (rows.iter().map(loss).sum::<f64>() + 0.5 * (w[0] * w[0] + w[1] * w[1])) / rows.len() as f64
}

fn mean(rows: &[Row], counts: impl Fn(&Row) -> bool, number: impl Fn(&Row) -> f64) -> f64 {
    let of: Vec<f64> = rows.iter().filter(|row| counts(row)).map(number).collect();
    of.iter().sum::<f64>() / of.len() as f64
}

/// The difference between the groups 1 and 0.
fn gap(w: &[f64; 3], rows: &[Row], quantity: GroupQuantity) -> f64 {
    let of = |group| match quantity {
        GroupQuantity::Score => mean(rows, |row| row.group == group, |row| probability(w, row)),
        GroupQuantity::Opportunity => mean(rows, |row| row.group == group && row.y > 0.5, |row| probability(w, row)),
        GroupQuantity::Loss => mean(rows, |row| row.group == group, |row| (row.y - probability(w, row)).abs()),
        _ => mean(rows, |row| row.group == group, |row| f64::from(u8::from(output(w, row) > 0.0))),
    };
    of(1) - of(0)
}

/// Minimizes f where c = 0: gradient descent on augmented Lagrangians, with differences in the place of derivatives.
fn reference(rows: &[Row], c: impl Fn(&[f64; 3]) -> f64) -> [f64; 3] {
    let (mut w, mut multiplier) = ([0.5, -0.5, 0.0], 0.0);
    for _ in 0..20 {
        let merit = |w: &[f64; 3]| objective(w, rows) + multiplier * c(w) + 50.0 * c(w).powi(2);
        let mut step = 1.0;
        for _ in 0..300 {
            let slope: Vec<f64> = (0..3)
                .map(|j| {
                    let at = |h: f64| {
                        let mut w = w;
                        w[j] += h;
                        merit(&w)
                    };
                    (at(1e-5) - at(-1e-5)) / 2e-5
                })
                .collect();
            let size: f64 = slope.iter().map(|s| s * s).sum();
            if size < 1e-20 {
                break;
            }
            step *= 2.0;
            let trial = |step: f64| [0, 1, 2].map(|j| w[j] - step * slope[j]);
            while step > 1e-9 && merit(&trial(step)) > merit(&w) - 0.3 * step * size {
                step *= 0.5;
            }
            w = trial(step);
        }
        multiplier += 100.0 * c(&w);
    }
    assert!(c(&w).abs() < 1e-7, "the reference satisfies its row up to {}", c(&w));
    w
}

#[test]
fn a_bound_between_two_groups_holds_at_the_minimum_of_a_reference() {
    let rows = rows(300, 2);
    let data = Data::new(&text(&rows));
    for (rule, quantity, bound) in [
        ("g=0.05", GroupQuantity::Score, 0.05),
        ("g=0.03:opportunity", GroupQuantity::Opportunity, 0.03),
        ("g=0.01:loss", GroupQuantity::Loss, 0.01),
    ] {
        let fitted = data.fit(&to(&[rule], &[])).unwrap();
        assert_eq!(fitted.model.about.training.end, TrainingEnd::Converged, "{rule}");
        let (w, free) = (weights(&fitted), weights(&data.fit(&to(&[], &[])).unwrap()));
        let (found, without) = (gap(&w, &rows, quantity), gap(&free, &rows, quantity));
        assert!(without.abs() > bound + 0.01, "{rule}: the bound is active, {without}");
        assert!((found.abs() - bound).abs() < 1e-6, "{rule}: {found}");
        let side = without.signum() * bound;
        let other = reference(&rows, |w| gap(w, &rows, quantity) - side);
        let [f, g] = [&w, &other].map(|w| objective(w, &rows));
        assert!((f - g).abs() < 1e-6 * g && f > objective(&free, &rows), "{rule}: {f} and {g}");
        let report = fitted.report.fair.unwrap();
        let effect = &report.effects[0];
        assert!((effect.training - bound).abs() < 1e-6 && (effect.free - without.abs()).abs() < 1e-6, "{effect:?}");
        assert!(report.cost > 0.0 && report.curve.len() >= 3, "{report:?}");
        assert!(report.curve.is_sorted_by(|a, b| a.bound <= b.bound));
    }
}

#[test]
fn no_two_of_three_groups_differ_by_more_than_the_bound() {
    let rows = rows(600, 3);
    let fitted = Data::new(&text(&rows)).fit(&to(&["g=0.04"], &[])).unwrap();
    let w = weights(&fitted);
    let means = [0, 1, 2].map(|group| mean(&rows, |row| row.group == group, |row| probability(&w, row)));
    let [low, high] = [f64::min, f64::max].map(|of| means.into_iter().reduce(of).unwrap());
    assert!((high - low - 0.04).abs() < 1e-6, "{means:?}");
    let groups = &fitted.report.fair.unwrap().columns[0].groups;
    assert_eq!(
        groups.iter().map(|group| (&*group.group, group.rows)).collect::<Vec<_>>(),
        [("p", 200), ("q", 200), ("r", 200)]
    );
    for (group, mean) in groups.iter().zip(means) {
        let (quantity, score) = group.quantities[0];
        assert!(quantity == GroupQuantity::Score && (score.value - mean).abs() < 1e-9);
        assert!(score.low < mean && mean < score.high);
    }
}

#[test]
fn counted_rates_satisfy_their_bounds_and_cost_less_than_a_bound_on_scores() {
    let rows = rows(800, 2);
    let data = Data::new(&text(&rows));
    let free = weights(&data.fit(&to(&[], &[])).unwrap());
    let w = weights(&data.fit(&to(&["g=0.1:rate"], &[])).unwrap());
    assert!(gap(&free, &rows, GroupQuantity::Rate) > 0.2);
    assert!(gap(&w, &rows, GroupQuantity::Rate).abs() <= 0.1 + 1e-6, "{}", gap(&w, &rows, GroupQuantity::Rate));
    let is = |class: f64| move |row: &Row| (row.y - class).abs() < 0.5;
    let decision = |w: &[f64; 3], row: &Row| f64::from(u8::from(output(w, row) > 0.0));
    for (limit, bound) in
        [("false_positive_rate <= 0.05", 0.05), ("false_negative_rate<=0.02", 0.02), ("positive_rate ≤ 0.2", 0.2)]
    {
        let found = weights(&data.fit(&to(&[], &[limit])).unwrap());
        let rate = |w: &[f64; 3]| match limit.chars().nth(6) {
            Some('p') => mean(&rows, is(0.0), |row| decision(w, row)),
            Some('n') => mean(&rows, is(1.0), |row| 1.0 - decision(w, row)),
            _ => mean(&rows, |_| true, |row| decision(w, row)),
        };
        assert!(rate(&free) > bound && rate(&found) <= bound + 1e-6, "{limit}: {} and {}", rate(&free), rate(&found));
        // It does not give away more than a tenth of the rate.
        assert!(rate(&found) > 0.9 * bound - 2.0 / 300.0, "{limit}: {}", rate(&found));
    }
}

#[test]
fn a_group_of_two_rows_loosens_no_bound_but_its_own() {
    let limits = &["false_negative_rate <= 0.5", "positive_rate <= 0.5"];
    for (count, x, rule, bound) in [(100, 3.0, "g=0.2:rate", 0.2), (400, 2.0, "g=0.05:rate", 0.05)] {
        // Two rows with the same inputs: either no decision is positive, or both are.
        let pair = [0.0, 1.0].map(|y| Row { x: [x, 0.0], group: 2, y });
        let rows: Vec<Row> = rows(count, 2).into_iter().chain(pair).collect();
        let fitted = Data::new(&text(&rows)).fit(&to(&[rule], limits)).unwrap();
        let of_others = gap(&weights(&fitted), &rows, GroupQuantity::Rate).abs();
        assert!(of_others <= bound + 2.0 / count as f64 + 1e-6, "{rule}: {of_others}");
        let effects = fitted.report.fair.unwrap().effects;
        assert!(effects[0].training > bound + 0.1 && effects[0].training <= bound + 0.5 + 1e-6, "{effects:?}");
        for effect in &effects[1..] {
            assert!(effect.training <= 0.5 + 1.0 / 40.0, "one row of at least 40: {effect:?}");
        }
    }
}

/// A network of 8 hidden units.
fn network(rules: &[&str], limits: &[&str]) -> FitOptions {
    FitOptions { model: Some(ModelFamily::Mlp), hidden: vec![8], standardize: true, ..to(rules, limits) }
}

/// A quantity of each group by a saved model on a file.
fn by_group(data: &Data, fitted: &Fitted, quantity: GroupQuantity) -> Vec<f64> {
    let model = strust_fit::FittedModel::from_bytes("m.json".as_ref(), &fitted.model.to_json()).unwrap();
    let stop = AtomicBool::new(false);
    let columns = evaluate(&model, &data.read(&model.read_options(true)), &stop).unwrap().groups;
    let of = |group: &strust_fit::fair_report::GroupRates| {
        group.quantities.iter().find(|(other, _)| *other == quantity).map(|(_, estimate)| estimate.value)
    };
    columns[0].groups.iter().filter_map(of).collect()
}

#[test]
fn a_network_satisfies_its_bounds_on_the_training_rows() {
    let rows = rows(800, 3);
    let data = Data::new(&text(&rows));
    let free = data.fit(&network(&[], &[])).unwrap();
    for (rule, quantity, bound) in [
        ("g=0.05", GroupQuantity::Score, 0.05),
        ("g=0.05:rate", GroupQuantity::Rate, 0.05),
        ("g=0.03:opportunity", GroupQuantity::Opportunity, 0.03),
        ("g=0.02:loss", GroupQuantity::Loss, 0.02),
    ] {
        let fitted = data.fit(&network(&[rule], &[])).unwrap();
        let means = by_group(&data, &fitted, quantity);
        let found = means.iter().copied().fold(0.0, f64::max) - means.into_iter().fold(1.0, f64::min);
        assert!(found <= bound + 1e-6, "{rule}: {found}");
        let report = fitted.report.fair.unwrap();
        assert!(report.effects[0].free > bound && report.cost > 0.0, "{rule}: {report:?}");
        assert!(report.curve.len() >= 3 && report.curve.is_sorted_by(|a, b| a.bound <= b.bound), "{rule}");
        // Only the last layer differs from the network without bounds.
        let [with, without] = [&fitted.model, &free.model].map(|model| &model.weights.flat);
        let hidden = with.len() - 9;
        assert_eq!(with[..hidden], without[..hidden], "{rule}");
        assert_ne!(with[hidden..], without[hidden..], "{rule}");
    }
    let limit = data.fit(&network(&[], &["false_positive_rate <= 0.05"])).unwrap();
    let effect = &limit.report.fair.unwrap().effects[0];
    assert!(effect.training <= 0.05 && effect.training > 0.03 && effect.free > 0.05, "{effect:?}");
}

#[test]
fn a_network_that_satisfies_its_bounds_anyway_does_not_change() {
    let data = Data::new(&text(&rows(400, 2)));
    let (free, bounded) = (data.fit(&network(&[], &[])).unwrap(), data.fit(&network(&["g=0.9"], &[])).unwrap());
    let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-12;
    assert!(free.model.weights.flat.iter().zip(&bounded.model.weights.flat).all(near));
    let chosen = data.fit(&FitOptions { choose_model: true, model: None, ..network(&["g=0.05"], &[]) }).unwrap();
    assert!(chosen.report.fair.unwrap().effects[0].training <= 0.05 + 1e-6, "also where the model is chosen");
}

#[test]
fn a_fit_that_is_stopped_before_its_bounds_hold_has_no_model() {
    let data = Data::new(&text(&rows(800, 2)));
    for options in [network(&["g=0.05"], &[]), to(&["g=0.05"], &[])] {
        let table = data.read(&ReadOptions { target: Some("y".into()), ..ReadOptions::default() });
        let all = data.fit(&options).unwrap().model.about.training.epochs;
        for stop_at in 1..all as usize {
            let stop = AtomicBool::new(false);
            let report = &mut |epoch: f64, _| stop.store(epoch >= stop_at as f64, Ordering::Relaxed);
            let fitted = fit(&table, None, &options, &mut FitWatch { report, interrupt: &stop });
            assert!(matches!(fitted, Err(Error::Interrupted)), "{stop_at} of {all}");
        }
    }
}

#[test]
fn mean_predictions_of_a_number_can_be_bounded() {
    let rows = rows(300, 2);
    let mut text = String::from("a,b,g,y\n");
    for (i, Row { x, group, .. }) in rows.iter().enumerate() {
        let y = 1000.0 + 100.0 * x[0] + 20.0 * x[1] + noise(i, 5);
        let _ = writeln!(text, "{},{},{},{y}", x[0], x[1], ["p", "q"][*group]);
    }
    let data = Data::new(&text);
    let w = weights(&data.fit(&to(&["g=30"], &[])).unwrap());
    let by_network = data.fit(&network(&["g=30"], &[])).unwrap();
    let means = by_group(&data, &by_network, GroupQuantity::Score);
    assert!(((means[1] - means[0]).abs() - 30.0).abs() < 1e-3, "{means:?}");
    let of = |group| mean(&rows, |row| row.group == group, |row| output(&w, row));
    assert!(((of(1) - of(0)).abs() - 30.0).abs() < 1e-4, "{} and {}", of(0), of(1));
    for (rules, limits, part) in [
        (&["g=0.1:rate"][..], &[][..], "a positive rate needs two classes, but the target is a number"),
        (&[], &["positive_rate <= 0.1"], "a rate needs two classes"),
    ] {
        let why = data.fit(&to(rules, limits)).unwrap_err().to_string();
        assert!(why.contains(part), "{why}");
    }
}

#[test]
fn a_bound_that_holds_anyway_changes_nothing() {
    let rows = rows(300, 2);
    let data = Data::new(&text(&rows));
    let (free, bounded) = (data.fit(&to(&[], &[])).unwrap(), data.fit(&to(&["g=0.9"], &[])).unwrap());
    let near = weights(&free).iter().zip(weights(&bounded)).all(|(a, b)| (a - b).abs() < 1e-12);
    assert!(near && bounded.report.fair.unwrap().free.is_none());
}

#[test]
fn a_saved_model_gives_rates_by_group_on_other_rows() {
    let rows = rows(600, 3);
    let data = Data::new(&text(&rows));
    let model = data.fit(&to(&["g=0.05"], &[])).unwrap().model;
    for (name, bytes) in [("m.json", model.to_json()), ("m.safetensors", model.to_safetensors())] {
        assert_eq!(strust_fit::FittedModel::from_bytes(name.as_ref(), &bytes).unwrap(), model);
    }
    let stop = AtomicBool::new(false);
    let groups = evaluate(&model, &data.read(&model.read_options(true)), &stop).unwrap().groups;
    assert_eq!((groups.len(), &*groups[0].column, groups[0].groups.len()), (1, "g", 3));
    let w = weights_of(&model);
    let rate = mean(&rows, |row| row.group == 2, |row| f64::from(u8::from(output(&w, row) > 0.0)));
    let (_, found) =
        groups[0].groups[2].quantities.iter().find(|(quantity, _)| *quantity == GroupQuantity::Rate).unwrap();
    assert!((found.value - rate).abs() < 1e-12 && found.low < rate && rate < found.high);
    // Without the column there are no groups.
    let without = Data::new("a,b,y\n1,2,yes\n0,1,no\n");
    assert!(evaluate(&model, &without.read(&model.read_options(true)), &stop).unwrap().groups.is_empty());
}

fn weights_of(model: &strust_fit::FittedModel) -> [f64; 3] {
    let (weights, bias) = model.weights_in_units().unwrap();
    [weights[0][0], weights[0][1], bias[0]]
}

#[test]
fn rows_and_groups_that_do_not_count_are_named() {
    let mut text = text(&rows(300, 2));
    text.push_str("1,0,lonely,no\n1,0,,yes\n1,0.5,,no\n");
    let fitted = Data::new(&text).fit(&to(&["g=0.05"], &[])).unwrap();
    let notes = fitted.report.fair.unwrap().notes;
    assert!(notes[0].contains("`lonely` has fewer than two such training rows"), "{notes:?}");
    assert_eq!(notes[1], "2 training rows without `g` belong to no group of --fair");
}

#[test]
fn wrong_bounds_are_errors_that_say_what_to_do() {
    for (text, part) in [
        ("g", "it must be COLUMN=BOUND"),
        ("=0.1", "it must be COLUMN=BOUND"),
        ("g=much", "the bound is \"much\", but must be a number ≥ 0"),
        ("g=-0.1", "must be a number ≥ 0"),
        ("g=nan", "must be a number ≥ 0"),
        ("g=0.1:rates", "there is no :rates; did you mean :rate?"),
    ] {
        let why = text.parse::<strust_fit::fair::FairRule>().unwrap_err();
        assert!(why.contains(part), "{why}");
    }
    for (text, part) in [
        ("false_positive_rate", "it must be RATE <= BOUND"),
        ("false_positiv_rate<=0.1", "did you mean false_positive_rate?"),
    ] {
        let why = text.parse::<strust_fit::fair::RateLimit>().unwrap_err();
        assert!(why.contains(part), "{why}");
    }
    let data = Data::new(&text(&rows(300, 2)));
    let why = |options: FitOptions| data.fit(&options).unwrap_err().to_string();
    for (rule, part) in [
        ("gg=0.1", "there is no column `gg` for --fair; did you mean `g`?"),
        ("g=1", "the bound is 1, but must be in [0, 1)"),
        ("a=0.1", "column `a` has more than 20 different numbers, so --fair cannot compare its groups"),
        ("y=0.1", "column `y` is the target: --fair needs another one"),
    ] {
        let why = why(to(&[rule], &[]));
        assert!(why.contains(part), "{why}");
    }
    let why = why(to(&[], &["false_positive_rate <= 0.01", "false_negative_rate <= 0.01"]));
    assert!(
        why.contains("no model was found that satisfies the bounds on the training rows (false-positive rate ≤ 0.01"),
        "{why}"
    );
}
