//! Fits with known answers.

use std::{fmt::Write as _, path::PathBuf, sync::atomic::AtomicBool};
use strust_fit::{
    DataTable, Error, FitOptions, Fitted, ReadOptions,
    assess::{Assessment, Prediction, Predictor},
    constrain::WeightConstraint,
    fit,
    fit::{FitWatch, evaluate},
    saved::ModelFamily,
    table::ReadProgress,
    task::{FitTask, TaskChoice},
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
        self.try_read(options).unwrap()
    }
    fn try_read(&self, options: &ReadOptions) -> Result<DataTable, Error> {
        let stop = AtomicBool::new(false);
        DataTable::read(&self.path, options, &mut ReadProgress { at: &mut |_| {}, interrupt: &stop })
    }
    fn fit(&self, options: &FitOptions) -> Result<Fitted, Error> {
        let table = self.try_read(&ReadOptions { target: options.target.clone(), ..ReadOptions::default() })?;
        let stop = AtomicBool::new(false);
        fit(&table, None, options, &mut FitWatch { report: &mut |_, _| {}, interrupt: &stop })
    }
}

fn to(target: &str) -> FitOptions {
    FitOptions { target: Some(target.into()), ..FitOptions::default() }
}

/// A number in [0, 1) that looks random.
fn noise(i: usize, stream: usize) -> f64 {
    let mut x =
        (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (stream as u64).wrapping_mul(0xd1b5_4a32_d192_ed03);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// y = 3a − 2000b + town + 7, with blanks in a.
fn prices(rows: usize) -> String {
    let mut text = String::from("a,b,town,y\n");
    for i in 0..rows {
        let (a, b, town) = (100.0 * noise(i, 1), 0.01 * noise(i, 2), i % 3);
        let y = 3.0 * a - 2000.0 * b + [0.0, 5.0, -4.0][town] + 7.0;
        let _ = writeln!(text, "{a},{b},{},{y}", ["Rome", "Oslo", "\"San José, CR\""][town]);
    }
    text
}

#[test]
fn a_regression_finds_the_coefficients_in_the_units_of_the_file() {
    let fitted = Data::new(&prices(2000)).fit(&FitOptions { l2: Some(0.0), ..to("y") }).unwrap();
    assert_eq!(
        (fitted.model.about.model, fitted.model.about.training.end),
        (ModelFamily::Linear, TrainingEnd::Converged)
    );
    let (weights, _) = fitted.model.weights_in_units().unwrap();
    let names = fitted.model.about.encoder.input_names();
    assert_eq!(names, ["a", "b", "town = Oslo", "town = Rome", "town = San José, CR"]);
    assert!((weights[0][0] - 3.0).abs() < 1e-2 && (weights[0][1] + 2000.0).abs() < 20.0, "{weights:?}");
    assert!((weights[0][2] - weights[0][4] - 9.0).abs() < 0.1, "{weights:?}");
    let Some(Assessment::Regression(scores)) = fitted.report.held_out else { panic!() };
    assert!(scores.r2 > 0.9999 && scores.rows == 400, "{scores:?}");
    assert_eq!(fitted.report.importance[0].column, "a");
}

#[test]
fn coefficients_are_ordered_by_weight_times_deviation() {
    let fitted = Data::new(&prices(3000)).fit(&FitOptions { l2: Some(0.0), ..to("y") }).unwrap();
    let found = &fitted.report.coefficients;
    let names: Vec<&str> = found.iter().map(|one| one.input.as_str()).collect();
    assert_eq!(names[..2], ["a", "b"], "the weights are 3 and −2000, their effects 87 and −6");
    assert!(found.is_sorted_by(|a, b| a.per_deviation.abs() >= b.per_deviation.abs()));
    for one in found {
        assert!((one.per_deviation - one.weight * one.deviation).abs() < 1e-12 * one.per_deviation.abs(), "{one:?}");
        assert!(one.output == "y" && one.error.is_some_and(|error| error >= 0.0), "{one:?}");
    }
    // Uniform numbers between 0 and 100, and a category with the share 1/3.
    let of = |name: &str| found.iter().find(|one| one.input == name).unwrap().deviation;
    assert!((of("a") - 100.0 / 12.0_f64.sqrt()).abs() < 0.5 && (of("b") - 0.01 / 12.0_f64.sqrt()).abs() < 1e-4);
    assert!((of("town = Rome") - (2.0_f64 / 9.0).sqrt()).abs() < 0.01);
    assert_eq!(fitted.report.points.residuals.len(), 300, "every second of 600 held-out rows");
}

#[test]
fn the_learning_curve_has_the_loss_of_the_model_on_both_kinds_of_rows() {
    // Training and held-out rows are the same ones, and all of them are in the sample.
    let data = Data::new(&classes(400, &["no", "yes"]));
    let table = data.read(&ReadOptions::default());
    let stop = AtomicBool::new(false);
    for (model, l2) in [(None, 50.0), (Some(ModelFamily::Mlp), 1.0)] {
        let options = FitOptions { model, l2: Some(l2), ..to("kind") };
        let watch = &mut FitWatch { report: &mut |_, _| {}, interrupt: &stop };
        let fitted = fit(&table, Some(&table), &options, watch).unwrap();
        let Some(Assessment::Classes(scores)) = &fitted.report.held_out else { panic!() };
        let best =
            fitted.report.curve.iter().filter_map(|point| point.held_out).map(|loss| (loss - scores.log_loss).abs());
        assert!(best.fold(f64::INFINITY, f64::min) < 1e-9, "the curve passes through the model, without the penalty");
        for point in &fitted.report.curve {
            let held_out = point.held_out.unwrap();
            assert!((point.training - held_out).abs() < 0.1 * held_out, "{point:?}");
        }
    }
}

fn classes(rows: usize, names: &[&str]) -> String {
    let mut text = String::from("x,color,kind\n");
    for i in 0..rows {
        let (x, color) = (10.0 * noise(i, 3), i % 2);
        let class = ((x + 3.0 * color as f64) / 13.0 * names.len() as f64) as usize;
        let x = if i % 50 == 0 { String::new() } else { x.to_string() };
        let _ = writeln!(text, "{x},{},{}", ["red", "blue"][color], names[class.min(names.len() - 1)]);
    }
    text
}

#[test]
fn classes_with_text_labels_are_learned_by_every_model() {
    for (names, model, least) in [
        (&["no", "yes"][..], None, 0.95),
        (&["low", "mid", "top"][..], None, 0.9),
        (&["no", "yes"][..], Some(ModelFamily::Mlp), 0.93),
        (&["low", "mid", "top"][..], Some(ModelFamily::Mlp), 0.9),
    ] {
        let fitted = Data::new(&classes(3000, names)).fit(&FitOptions { model, ..to("kind") }).unwrap();
        let Some(Assessment::Classes(scores)) = &fitted.report.held_out else { panic!() };
        assert!(scores.accuracy > least, "{model:?}: {}", scores.accuracy);
        assert!(scores.accuracy > scores.largest_share);
        assert_eq!(fitted.model.about.task.class_names().unwrap(), names);
        assert!(
            fitted.report.remarks.iter().any(|remark| remark.contains("blank cells")),
            "{:?}",
            fitted.report.remarks
        );
    }
}

#[test]
fn the_probabilities_of_a_logistic_model_are_calibrated() {
    let mut text = String::from("a,b,kind\n");
    for i in 0..10_000 {
        let (a, b) = (6.0 * noise(i, 20) - 3.0, noise(i, 21));
        let p = 1.0 / (1.0 + (b - a).exp());
        let _ = writeln!(text, "{a},{b},{}", if noise(i, 22) < p { "yes" } else { "no" });
    }
    let fitted = Data::new(&text).fit(&to("kind")).unwrap();
    let Some(Assessment::Classes(scores)) = fitted.report.held_out else { panic!() };
    assert_eq!((scores.rows, scores.calibration.len()), (2000, 10));
    for bin in scores.calibration {
        // Four standard deviations of a share.
        let within = 4.0 * (0.25 / bin.rows as f64).sqrt();
        assert!((bin.predicted - bin.observed).abs() < within, "{bin:?}");
    }
    let (weights, bias) = fitted.model.weights_in_units().unwrap();
    assert!(
        (weights[0][0] - 1.0).abs() < 0.1 && (weights[0][1] + 1.0).abs() < 0.4 && bias[0].abs() < 0.3,
        "{weights:?}"
    );
}

#[test]
fn a_network_fits_what_a_line_cannot() {
    let mut text = String::from("x,y\n");
    for i in 0..2000 {
        let x = 4.0 * noise(i, 4) - 2.0;
        let _ = writeln!(text, "{x},{}", x * x);
    }
    let data = Data::new(&text);
    let r2 = |fitted: &Fitted| match &fitted.report.held_out {
        Some(Assessment::Regression(scores)) => scores.r2,
        other => panic!("{other:?}"),
    };
    assert!(r2(&data.fit(&to("y")).unwrap()) < 0.1);
    let network = FitOptions { model: Some(ModelFamily::Mlp), hidden: vec![32], ..to("y") };
    assert!(r2(&data.fit(&network).unwrap()) > 0.98);
}

#[test]
fn the_same_seed_gives_the_same_model_and_another_seed_another_one() {
    let data = Data::new(&classes(400, &["no", "yes"]));
    let weights = |seed| data.fit(&FitOptions { seed, ..to("kind") }).unwrap().model.weights;
    assert_eq!(weights(1), weights(1));
    assert_ne!(weights(1), weights(2));
}

#[test]
fn a_saved_model_predicts_the_same() {
    let data = Data::new(&classes(600, &["no", "yes"]));
    let fitted = data.fit(&to("kind")).unwrap();
    let read = strust_fit::FittedModel::from_bytes("f".as_ref(), &fitted.model.to_safetensors()).unwrap();
    let table = data.read(&read.read_options(true));
    let (rows, losses) = read.about.encoder.encode(&table, &AtomicBool::new(false)).unwrap();
    assert!(losses.missing.is_empty() && losses.unknown.is_empty());
    let mut one = Predictor::new(&fitted.model.weights, &fitted.model.about.task);
    let mut other = Predictor::new(&read.weights, &read.about.task);
    for i in 0..table.rows {
        let (one, other) = (one.predict(&rows, i), other.predict(&rows, i));
        assert_eq!(one, other);
        let Prediction::Class(_, probabilities) = one else { panic!() };
        assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }
    let scores = evaluate(&read, &table, &AtomicBool::new(false)).unwrap().scores;
    assert_eq!(scores.rows(), 600);
}

#[test]
fn new_files_may_lack_columns_and_have_new_categories() {
    let fitted = Data::new(&classes(600, &["no", "yes"])).fit(&to("kind")).unwrap();
    let encoder = &fitted.model.about.encoder;
    let table = Data::new("color,other\nred,1\ngreen,2\n,3\n").read(&fitted.model.read_options(false));
    let (rows, losses) = encoder.encode(&table, &AtomicBool::new(false)).unwrap();
    assert_eq!(rows.rows(), 3);
    assert_eq!(losses.missing, ["x"]);
    assert_eq!(losses.unknown, [("color".into(), 1, "green".into())]);
    assert_eq!(losses.blanks, [("color".into(), 1)]);
    // A file without a header is matched by position, with or without the target.
    for text in ["1.5,red\n", "1.5,red,yes\n"] {
        let table = Data::new(text).read(&fitted.model.read_options(false));
        assert!(encoder.encode(&table, &AtomicBool::new(false)).unwrap().1.missing.is_empty(), "{text}");
    }
    let table = Data::new("p,q\n1,2\n").read(&fitted.model.read_options(false));
    assert!(encoder.check_names(&table).unwrap_err().to_string().contains("no column of the model"));
}

/// y = Σ wⱼxⱼ with weights on three columns of different units.
fn mixture(weights: [f64; 3], noise_size: f64) -> String {
    let mut text = String::from("p,q,r,y\n");
    for i in 0..500 {
        let x = [noise(i, 5), 10.0 * noise(i, 6), 100.0 * noise(i, 7)];
        let y: f64 = x.iter().zip(weights).map(|(x, w)| x * w).sum::<f64>() + noise_size * (noise(i, 8) - 0.5);
        let _ = writeln!(text, "{},{},{},{y}", x[0], x[1], x[2]);
    }
    text
}

fn constrained(text: &str, constraint: &WeightConstraint) -> Vec<f64> {
    let fitted = Data::new(text).fit(&FitOptions { constraint: constraint.clone(), ..to("y") }).unwrap();
    assert_eq!(fitted.model.about.training.end, TrainingEnd::Converged);
    let (weights, _) = fitted.model.weights_in_units().unwrap();
    assert!(constraint.violation(&weights[0]) < 1e-12, "{weights:?}");
    weights[0].clone()
}

#[test]
fn constraints_hold_in_the_units_of_the_file_and_the_right_weights_are_found() {
    let near = |found: &[f64], expected: &[f64], within: f64| {
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < within), "{found:?} and {expected:?}");
    };
    let none = WeightConstraint::default();
    let share = WeightConstraint { nonnegative: true, sum_to_one: true, ..none.clone() };
    near(&constrained(&mixture([0.2, 0.5, 0.3], 0.0), &share), &[0.2, 0.5, 0.3], 1e-5);
    near(
        &constrained(&mixture([1.5, 0.5, -1.0], 0.0), &WeightConstraint { sum_to_one: true, ..none.clone() }),
        &[1.5, 0.5, -1.0],
        1e-5,
    );
    near(
        &constrained(&mixture([0.6, -0.8, 0.0], 0.0), &WeightConstraint { unit_norm: true, ..none.clone() }),
        &[0.6, -0.8, 0.0],
        1e-5,
    );
    // The unconstrained weight of p is negative, so it is 0 exactly.
    let found = constrained(&mixture([-4.0, 0.5, 0.3], 0.1), &WeightConstraint { nonnegative: true, ..none.clone() });
    assert!(found[0] == 0.0 && found[1] > 0.4 && found[2] > 0.2, "{found:?}");
}

#[test]
fn a_constrained_classifier_satisfies_its_constraint() {
    let mut text = String::from("a,b,kind\n");
    for i in 0..800 {
        let (a, b) = (noise(i, 9), noise(i, 10));
        let _ = writeln!(text, "{a},{b},{}", if 2.0 * a - b + 0.3 * noise(i, 11) > 0.7 { "yes" } else { "no" });
    }
    let constraint = WeightConstraint { nonnegative: true, ..WeightConstraint::default() };
    let fitted = Data::new(&text).fit(&FitOptions { constraint, ..to("kind") }).unwrap();
    let (weights, _) = fitted.model.weights_in_units().unwrap();
    assert!(weights[0][0] > 1.0 && weights[0][1] == 0.0, "{weights:?}");
}

#[test]
fn without_an_intercept_the_prediction_of_zeros_is_zero() {
    let fitted = Data::new(&mixture([2.0, 1.0, 0.5], 0.0))
        .fit(&FitOptions { intercept: false, l2: Some(0.0), ..to("y") })
        .unwrap();
    let (weights, bias) = fitted.model.weights_in_units().unwrap();
    assert!(bias[0] == 0.0 && (weights[0][0] - 2.0).abs() < 0.2, "{weights:?} {bias:?}");
}

#[test]
fn an_interrupt_gives_the_model_so_far() {
    let table = Data::new(&classes(3000, &["no", "yes"]));
    let table = table.read(&ReadOptions::default());
    let stop = AtomicBool::new(false);
    let mut report = |epoch: f64, _: f64| {
        if epoch >= 2.0 {
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    };
    let fitted = fit(&table, None, &to("kind"), &mut FitWatch { report: &mut report, interrupt: &stop }).unwrap();
    assert_eq!(fitted.model.about.training.end, TrainingEnd::Interrupted);
    assert!(fitted.model.weights.flat.iter().any(|w| *w != 0.0));
    // Without a model there is no result.
    let result = fit(&table, None, &to("kind"), &mut FitWatch { report: &mut report, interrupt: &stop });
    assert!(matches!(result, Err(Error::Interrupted)));
    let result = evaluate(&fitted.model, &table, &stop);
    assert!(matches!(result, Err(Error::Interrupted)));
}

#[test]
fn a_fit_that_is_stopped_is_scored_on_few_rows() {
    let table = Data::new(&classes(12_000, &["no", "yes"])).read(&ReadOptions::default());
    let stop = AtomicBool::new(false);
    let mut report = |_: f64, _: f64| stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let fitted = fit(&table, None, &to("kind"), &mut FitWatch { report: &mut report, interrupt: &stop }).unwrap();
    let scores = [fitted.report.held_out.unwrap().rows(), fitted.report.training.rows()];
    assert_eq!((scores[0], scores[1] < 4096), (2400, true), "{scores:?}");
    assert_eq!(fitted.report.remarks.last().unwrap(), "the fit was stopped, so it is scored on at most 4096 rows");
    assert_eq!(fitted.model.about.data.training_rows, 9600);
}

#[test]
fn the_time_of_a_fit_is_linear_in_the_number_of_columns() {
    let seconds = |columns: usize| {
        let line = |cell: &dyn Fn(usize) -> String| (0..columns).map(cell).collect::<Vec<_>>().join(",");
        let mut text = format!("{},y\n", line(&|j| format!("feature number {j}")));
        for i in 0..6 {
            let _ = writeln!(text, "{},{}", line(&|j| format!("{}", (i * 7 + j * 5) % 11)), i % 5);
        }
        let options = FitOptions { epochs: Some(1), test_share: Some(0.0), ..to("y") };
        let data = Data::new(&text);
        let took = |_| {
            let begun = std::time::Instant::now();
            let model = data.fit(&options).unwrap().model;
            evaluate(&model, &data.read(&model.read_options(true)), &AtomicBool::new(false)).unwrap();
            begun.elapsed().as_secs_f64()
        };
        (0..2).map(took).fold(f64::INFINITY, f64::min)
    };
    // Quadratic time would have a ratio of 400.
    let ratio = seconds(40_000) / seconds(2000);
    assert!(ratio < 100.0, "{ratio}");
}

#[test]
fn the_data_are_examined() {
    let mut text = String::from("id,name,one,twice,again,leak,wide,kind\n");
    for i in 0..600 {
        let class = usize::from(noise(i, 12) < 0.03);
        let wide = if i == 5 { 1e9 } else { noise(i, 13) };
        let twice = noise(i, 14);
        let _ =
            writeln!(text, "{i},customer {i},7,{twice},{twice},{},{wide},{}", ["p", "q"][class], ["no", "yes"][class]);
    }
    let report = Data::new(&text).fit(&to("kind")).unwrap().report;
    for part in [
        "left out `name`: almost every row has a text of its own",
        "left out `id`: it numbers the rows from 0 to 599. If it matters, use --keep id",
        "left out `one`: the same value in every training row",
        "`twice` and `again` are equal in every row",
        "`leak` alone gives 100.0 % of the classes",
        "`wide` is badly scaled",
        "the class `no` has 9",
    ] {
        assert!(report.remarks.iter().any(|remark| remark.contains(part)), "{part}: {:#?}", report.remarks);
    }
    assert_eq!(report.remarks.iter().filter(|remark| remark.contains("` alone")).count(), 1, "{:#?}", report.remarks);
}

#[test]
fn a_column_that_numbers_the_rows_is_left_out_unless_it_is_kept_or_the_only_one() {
    let columns = |header: &str, row: &dyn Fn(usize) -> String, keep: &[&str]| {
        let mut text = format!("{header}\n");
        (0..60).for_each(|i| text.push_str(&(row(i) + "\n")));
        let keep = keep.iter().map(ToString::to_string).collect();
        let model = Data::new(&text).fit(&FitOptions { keep, ..to("y") }).unwrap().model;
        model.about.encoder.columns.into_iter().map(|column| column.name).collect::<Vec<_>>()
    };
    let (a, y) = (|i| noise(i, 1), |i| noise(i, 2));
    // 7 has no common divisor with 60, so this is another order of 100, …, 159.
    let shuffled = |i: usize| 100 + 7 * i % 60;
    assert_eq!(columns("t,a,y", &|i| format!("{i},{},{}", a(i), y(i)), &[]), ["a"]);
    assert_eq!(columns("t,a,y", &|i| format!("{},{},{}", i + 1, a(i), y(i)), &[]), ["a"]);
    assert_eq!(columns("t,a,y", &|i| format!("{i},{},{}", a(i), y(i)), &["t"]), ["t", "a"]);
    assert_eq!(columns("t,y", &|i| format!("{i},{}", y(i)), &[]), ["t"]);
    assert_eq!(columns("year,a,y", &|i| format!("{},{},{}", 1950 + i, a(i), y(i)), &[]), ["year", "a"]);
    assert_eq!(columns("t,a,y", &|i| format!("{},{},{}", shuffled(i), a(i), y(i)), &[]), ["t", "a"]);
    for name in ["PassengerId", "Unnamed: 0", "customer_nr", "NO"] {
        assert_eq!(columns(&format!("{name},a,y"), &|i| format!("{},{},{}", shuffled(i), a(i), y(i)), &[]), ["a"]);
    }
    // One number twice, a gap, and a date on each day.
    assert_eq!(columns("id,a,y", &|i| format!("{},{},{}", i.max(1), a(i), y(i)), &[]), ["id", "a"]);
    assert_eq!(columns("id,a,y", &|i| format!("{},{},{}", 2 * i, a(i), y(i)), &[]), ["id", "a"]);
    let day = |i: usize| format!("1970-0{}-{:02}", 1 + i / 28, 1 + i % 28);
    assert_eq!(columns("d,a,y", &|i| format!("{},{},{}", day(i), a(i), y(i)), &[]), ["d", "a", "d weekday"]);
    let keep = vec!["towm".into()];
    let message = Data::new(&prices(50)).fit(&FitOptions { keep, ..to("y") }).unwrap_err().to_string();
    assert!(message.ends_with("there is no column `towm` for --keep; did you mean `town`?"), "{message}");
}

#[test]
fn values_that_differ_are_not_constant_though_they_are_large_or_tiny() {
    let large = |i: usize| 1e14 + (i % 50) as f64;
    for (header, row) in [
        ("a,y", &(|i| format!("{:?},{}", large(i), i % 50)) as &dyn Fn(usize) -> String),
        ("a,y", &|i| format!("{},{:?}", i % 50, large(i))),
        ("a,y", &|i| format!("{:e},{}", (i % 50) as f64 * 1e-200, i % 50)),
        ("a,y", &|i| format!("{:e},{}", ((i % 50) as f64 - 25.0) * 1e300, i % 50)),
    ] {
        let text: String = (0..200).map(|i| row(i) + "\n").collect();
        let fitted = Data::new(&format!("{header}\n{text}")).fit(&FitOptions { l2: Some(0.0), ..to("y") }).unwrap();
        let Some(Assessment::Regression(scores)) = fitted.report.held_out else { panic!() };
        assert!(scores.r2 > 0.999, "{}: {scores:?}", row(1));
    }
    let message = |text: &str| Data::new(text).fit(&to("y")).unwrap_err().to_string();
    assert!(
        message("a,y\n1,1e308\n2,-1e308\n3,5\n")
            .ends_with("the numbers of column `y` are too large or too close together: use other units")
    );
}

#[test]
fn clean_data_get_no_remark() {
    let report = Data::new(&prices(500)).fit(&to("y")).unwrap().report;
    assert!(report.remarks.is_empty(), "{:?}", report.remarks);
}

#[test]
fn targets_that_cannot_be_predicted_are_errors_with_advice() {
    for (text, target, expected) in [
        ("x,y\n1,2\n3,2\n", "y", "column `y` is 2 in every row: there is nothing to predict"),
        ("x,y\n1,a\n3,a\n", "y", "column `y` is a in every row"),
        ("x,y\n1,\n3,\n", "y", "column `y` is blank in every row"),
        ("x,y\n1,2\n", "y", "in every row"),
        ("x,y\n1,a\n2,b\n3,c\n", "y", "3 different values in 3 rows: these are not classes"),
        ("x,y\n1,0\n1,1\n1,0\n1,1\n1,1\n", "y", "no column is left to learn from"),
        ("x,y\n1,2\n", "z", "there is no column `z`"),
    ] {
        let message = Data::new(text).fit(&to(target)).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}\ndoes not contain\n{expected}");
    }
    let wrong = |options: &FitOptions| Data::new(&prices(50)).fit(options).unwrap_err().to_string();
    let model = Some(ModelFamily::Logistic);
    assert!(
        wrong(&FitOptions { model, ..to("y") })
            .contains("--model logistic does not fit a regression; use linear or mlp")
    );
    let task = Some(TaskChoice::Regression);
    assert!(wrong(&FitOptions { task, ..to("town") }).contains("holds words: a regression needs numbers"));
    let constraint = WeightConstraint { unit_norm: true, ..WeightConstraint::default() };
    assert!(wrong(&FitOptions { constraint, ..to("town") }).contains("models with one output"));
}

#[test]
fn the_task_is_inferred_from_the_target() {
    let task = |values: &dyn Fn(usize) -> String| {
        let mut text = String::from("x,y\n");
        for i in 0..300 {
            let _ = writeln!(text, "{},{}", noise(i, 15), values(i));
        }
        Data::new(&text).fit(&to("y")).unwrap().model.about.task
    };
    let names = |task: FitTask| task.class_names().map(<[String]>::to_vec);
    assert_eq!(names(task(&|i| (i % 2).to_string())).unwrap(), ["0", "1"]);
    assert_eq!(names(task(&|i| (2.0 * (i % 2) as f64 - 1.0).to_string())).unwrap(), ["-1", "1"]);
    assert_eq!(names(task(&|i| (i % 3).to_string())).unwrap(), ["0", "1", "2"]);
    assert_eq!(names(task(&|i| (i % 100).to_string())), None);
    assert_eq!(names(task(&|i| noise(i, 16).to_string())), None);
}
