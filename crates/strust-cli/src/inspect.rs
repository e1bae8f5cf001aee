//! `strust inspect`: what a model of `strust fit` is made of.

use crate::{
    CommandFailure, CommandResult,
    args::Shared,
    fit::{counted, grouped, place, scored_at},
    session::{print, print_json},
    show::{heading, table},
    tables::number,
};
use std::{fmt::Write as _, path::Path};
use strust_fit::{FittedModel, coefficients::order, transform::Encoding};
use strust_lab::format::{noun, plain_number};

/// Weights that are shown at most.
const MOST_WEIGHTS: usize = 30;

/// `strust inspect`.
pub fn inspect(path: &Path, per_deviation: bool, shared: &Shared) -> CommandResult {
    let model = FittedModel::load(path)?;
    let about = &model.about;
    if shared.json {
        let mut value = serde_json::to_value(about).map_err(|e| CommandFailure::Failed(e.to_string()))?;
        value["widths"] = model.weights.widths.clone().into();
        if let Some((weights, intercepts)) = model.weights_in_units() {
            value["weights_in_units"] = serde_json::json!({
                "inputs": about.encoder.input_names(), "weights": weights, "intercepts": intercepts,
            });
            value["weights_per_deviation"] = model.effects().into();
        }
        return print_json(&value);
    }
    let mut text = format!("{}\n", heading(&format!("{} model of `{}`", about.model.name(), about.target), shared));
    for (name, fact) in facts(&model) {
        let _ = writeln!(text, "{name:<11}{fact}");
    }
    let _ = writeln!(text, "\n{}\n{}", heading("Columns", shared), columns(&model));
    text.push_str(&weights(&model, per_deviation, shared));
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
                "{}, {epochs} {}, batch {}, seed {}, penalty {}",
                training.method,
                noun(training.epochs as usize, if training.method.starts_with("auto") { "epoch" } else { "step" }),
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

/// The largest weights of a linear model, in the units of the file or per standard deviation of the inputs.
fn weights(model: &FittedModel, per_deviation: bool, shared: &Shared) -> String {
    let Some((weights, intercepts)) = model.weights_in_units() else { return String::new() };
    let (names, effects) = (model.about.encoder.input_names(), model.effects());
    let outputs = match model.about.task.class_names() {
        Some(classes) if classes.len() == 2 => vec![format!("logit of {}", classes[1])],
        Some(classes) => classes.to_vec(),
        None => vec!["weight".into()],
    };
    let line = |name: &str, numbers: Vec<f64>| -> Vec<String> {
        std::iter::once(name.into()).chain(numbers.into_iter().map(number)).collect()
    };
    let mut rows: Vec<Vec<String>> = vec![std::iter::once("input".to_string()).chain(outputs).collect()];
    let (title, shown) = if per_deviation {
        ("Weights per standard deviation of the input, the largest first", &effects)
    } else {
        rows.push(line("intercept", intercepts));
        ("Weights in the units of the file, ordered by weight × standard deviation of the input", &weights)
    };
    for &j in order(&effects).iter().take(MOST_WEIGHTS) {
        rows.push(line(&names[j], shown.iter().map(|of| of[j]).collect()));
    }
    let hidden = names.len().saturating_sub(MOST_WEIGHTS);
    let more = if hidden > 0 {
        format!("and {} with smaller effects; --json shows all\n", counted(hidden, "input"))
    } else {
        String::new()
    };
    format!("{}\n{}{more}", heading(title, shared), table(&rows))
}
