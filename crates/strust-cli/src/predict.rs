//! The commands for models of `strust fit`: `strust predict`, `strust evaluate MODEL DATA` and `strust inspect`.

use crate::{
    CommandFailure, CommandResult,
    args::{Network, Shared},
    fit::{counted, grouped, input_files, place, read, scored, scored_at},
    fit_page::number,
    session::{self, print, print_data, print_json},
    show::{Activity, heading, table, warning},
    tables::{by_class, confusion},
    usage,
};
use std::{fmt::Write as _, path::Path, sync::atomic::Ordering};
use strust_fit::{
    FittedModel,
    assess::{Assessment, ClassAssessment, Prediction, Predictor},
    fit::evaluate as assessed,
    transform::{Encoding, EncodingLosses},
};
use strust_lab::{
    format::{csv_field, is_formula, noun, plain_number},
    io::output::OutputFile,
};

/// Weights that are shown at most.
const MOST_WEIGHTS: usize = 30;

/// `strust predict`.
pub fn predict(path: &Path, new: &Path, out: Option<&Path>, shared: &Shared) -> CommandResult {
    let inputs = input_files(&[path, new]);
    let place = out.map(|out| OutputFile::prepare([out], &inputs)).transpose()?;
    let model = load(path, new, "predict")?;
    let interrupt = session::interrupt()?;
    let table = read(new, &model.read_options(false), &Activity::new(shared), &interrupt)?;
    model.about.encoder.check_names(&table)?;
    let (encoded, losses) = model.about.encoder.encode(&table, &interrupt)?;
    warn(&losses, new);
    let mut predictor = Predictor::new(&model.weights, &model.about.task);
    let classes = model.about.task.class_names().unwrap_or_default();
    // Programs compare the predictions with the classes, so they are written as they are.
    if let Some(class) = classes.iter().find(|class| is_formula(class)) {
        warning(&format!(
            "the class `{class}` looks like a formula: before you open the predictions in a spreadsheet, import the first \
             column as text"
        ));
    }
    let mut text = String::from("prediction");
    for class in classes {
        let _ = write!(text, ",{}", csv_field(&format!("p({class})")));
    }
    text.push('\n');
    for i in 0..table.rows {
        if interrupt.load(Ordering::Relaxed) {
            return Err(strust_fit::Error::Interrupted.into());
        }
        match predictor.predict(&encoded, i) {
            Prediction::Number(value) => text.push_str(&value.to_string()),
            Prediction::Class(class, probabilities) => {
                text.push_str(&csv_field(&classes[class]));
                for p in probabilities {
                    let _ = write!(text, ",{p:.6}");
                }
            }
        }
        text.push('\n');
    }
    match out.zip(place) {
        None => print_data(&text),
        Some((out, [place])) => {
            place.write(text.as_bytes())?;
            if shared.json {
                let written = out.display().to_string();
                return print_json(&serde_json::json!({ "rows": table.rows, "predictions": written }));
            }
            if shared.quiet {
                Ok(())
            } else {
                print(&format!("{}: {}\n", counted(table.rows, "prediction"), out.display()))
            }
        }
    }
}

/// Reads the model of a command. The rows come after it.
fn load(model: &Path, rows: &Path, command: &str) -> CommandResult<FittedModel> {
    FittedModel::load(model).map_err(|why| {
        if FittedModel::is_one(model) || !FittedModel::is_one(rows) {
            return why.into();
        }
        let (right, wrong) = (rows.display(), model.display());
        CommandFailure::Usage(format!("{right} is the model, and it comes first: strust {command} {right} {wrong}"))
    })
}

/// Reports what the encoding of a file lost.
fn warn(losses: &EncodingLosses, path: &Path) {
    let path = path.display();
    for column in &losses.missing {
        warning(&format!("{path} has no column `{column}`: its rows count as blank"));
    }
    for (column, count, example) in &losses.unknown {
        let have = if *count == 1 { "has" } else { "have" };
        let cells = counted(*count, "cell");
        warning(&format!(
            "{path}: {cells} {have} a category of `{column}` that the model does not know, such as `{example}`"
        ));
    }
}

/// `strust evaluate MODEL DATA`.
pub fn evaluate(path: &Path, data: &Path, unchecked: bool, network: &Network, shared: &Shared) -> CommandResult {
    if unchecked || network.is_given() {
        let why = "--data, --device, --precision and --unchecked are for networks of `strust train`: leave them out, or \
                   leave out the rows";
        return usage(why);
    }
    let model = load(path, data, "evaluate")?;
    let interrupt = session::interrupt()?;
    let table = read(data, &model.read_options(true), &Activity::new(shared), &interrupt)?;
    let (scores, losses) = assessed(&model, &table, &interrupt)?;
    warn(&losses, data);
    if shared.json {
        return print_json(&scores);
    }
    let mut text = format!("{}\n", heading(&scored(&scores, ""), shared));
    match &scores {
        Assessment::Classes(scores) => {
            text.push_str(&classes(scores, model.about.task.class_names().unwrap_or_default(), shared));
        }
        Assessment::Regression(scores) => {
            let _ = writeln!(text, "root of the mean squared error {}", number(scores.rmse));
        }
    }
    print(&text)
}

fn classes(scores: &ClassAssessment, names: &[String], shared: &Shared) -> String {
    let share =
        |part: u64, of: u64| if of == 0 { "–".into() } else { format!("{:.1} %", 100.0 * part as f64 / of as f64) };
    format!(
        "log-loss {:.4}, mean over classes {:.1} %\n\n{}\n{}\n{}",
        scores.log_loss,
        100.0 * scores.balanced_accuracy,
        table(&by_class(names, &scores.confusion, "rows", share)),
        heading("Confusion matrix", shared),
        table(&confusion(names, &scores.confusion))
    )
}

/// `strust inspect`.
pub fn inspect(path: &Path, shared: &Shared) -> CommandResult {
    let model = FittedModel::load(path)?;
    let about = &model.about;
    if shared.json {
        let mut value = serde_json::to_value(about).map_err(|e| CommandFailure::Failed(e.to_string()))?;
        value["widths"] = model.weights.widths.clone().into();
        if let Some((weights, intercepts)) = model.weights_in_units() {
            value["weights_in_units"] = serde_json::json!({
                "inputs": about.encoder.input_names(), "weights": weights, "intercepts": intercepts,
            });
        }
        return print_json(&value);
    }
    let mut text = format!("{}\n", heading(&format!("{} model of `{}`", about.model.name(), about.target), shared));
    for (name, fact) in facts(&model) {
        let _ = writeln!(text, "{name:<11}{fact}");
    }
    let _ = writeln!(text, "\n{}\n{}", heading("Columns", shared), columns(&model));
    text.push_str(&weights(&model, shared));
    print(&text)
}

fn facts(model: &FittedModel) -> Vec<(&'static str, String)> {
    let about = &model.about;
    let task = match about.task.class_names() {
        None => "a number".into(),
        Some(names) => format!("classes: {}", names.join(", ")),
    };
    let widths: Vec<String> = model.weights.widths.iter().map(usize::to_string).collect();
    let training = &about.training;
    let epochs = plain_number(training.epochs);
    let mut facts = vec![
        ("predicts", task),
        ("layers", widths.join(" → ")),
        ("data", format!("{}, MD5 {}", about.data.file.display(), about.data.md5)),
        (
            "rows",
            format!(
                "{} to learn from, {} held out",
                grouped(about.data.training_rows),
                grouped(about.data.held_out_rows)
            ),
        ),
        (
            "training",
            format!(
                "{}, {} {}, batch {}, seed {}, penalty {}",
                training.method,
                epochs,
                if epochs == "1" { "epoch" } else { "epochs" },
                training.batch,
                training.seed,
                plain_number(training.l2)
            ),
        ),
        ("version", format!("strust {}", about.version)),
    ];
    if let Some(scores) = &training.held_out {
        let place = place(scores, "held-out", training.folds);
        facts.insert(4, ("scores", scored_at(scores, &place, None, training.folds.is_some())));
    }
    let constraint = &about.constraint;
    let parts =
        [(constraint.nonnegative, "weights ≥ 0"), (constraint.sum_to_one, "sum 1"), (constraint.unit_norm, "norm 1")];
    let held = parts.iter().filter(|(holds, _)| *holds).map(|(_, part)| *part);
    let held: Vec<&str> = held.chain(constraint.rules.iter().map(String::as_str)).collect();
    if !held.is_empty() {
        facts.push(("constraint", held.join(", ")));
    }
    facts
}

fn columns(model: &FittedModel) -> String {
    let mut rows = vec![["column", "holds", "transform"].map(String::from).to_vec()];
    for column in &model.about.encoder.columns {
        let (holds, transform) = match &column.encoding {
            Encoding::Number { shift, scale, fill } => {
                ("numbers", format!("(v − {})/{}, blank: {}", number(*shift), number(*scale), number(*fill)))
            }
            Encoding::Category { levels } => ("categories", format!("one of {}", levels.len())),
        };
        rows.push(vec![column.name.clone(), holds.into(), transform]);
    }
    let sparse = model.about.encoder.sparse_scales.len();
    if sparse > 0 {
        rows.push(vec!["features".into(), "numbers".into(), format!("{sparse}, each divided by its largest size")]);
    }
    table(&rows)
}

/// The largest weights of a linear model in the units of the file.
fn weights(model: &FittedModel, shared: &Shared) -> String {
    let Some((weights, intercepts)) = model.weights_in_units() else { return String::new() };
    let names = model.about.encoder.input_names();
    let outputs: Vec<String> = match model.about.task.class_names() {
        Some(classes) if classes.len() > 2 => classes.to_vec(),
        Some(classes) => vec![format!("logit of {}", classes[1])],
        None => vec!["weight".into()],
    };
    // In the units of the model, so that features of different units can be compared.
    let size = |j: usize| model.weights.of_input(j).iter().fold(0.0_f64, |most, w| most.max(w.abs()));
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by(|&a, &b| size(b).total_cmp(&size(a)));
    let header = std::iter::once("input".to_string()).chain(outputs);
    let mut rows: Vec<Vec<String>> = vec![header.collect()];
    rows.push(std::iter::once("intercept".into()).chain(intercepts.iter().map(|b| number(*b))).collect());
    for &j in order.iter().take(MOST_WEIGHTS) {
        rows.push(std::iter::once(names[j].clone()).chain(weights.iter().map(|of| number(of[j]))).collect());
    }
    let hidden = names.len().saturating_sub(MOST_WEIGHTS);
    let more = if hidden > 0 {
        format!("and {} smaller {}; --json shows all\n", hidden, noun(hidden, "one"))
    } else {
        String::new()
    };
    format!("{}\n{}{more}", heading("Weights in the units of the file, the largest first", shared), table(&rows))
}
