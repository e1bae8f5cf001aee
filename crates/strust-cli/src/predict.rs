//! The commands that apply a model of `strust fit`: `strust predict` and `strust evaluate MODEL DATA`.

use crate::{
    CommandFailure, CommandResult,
    args::{Network, PredictArgs, Shared},
    fit::{RowSource, counted, input_files, read, scored},
    fit_fair,
    predictions::PredictionFormat,
    session::{self, print, print_data, print_json},
    show::{Activity, heading, table, warning},
    tables::{by_class, confusion, number},
    usage,
};
use std::{
    collections::BTreeSet,
    fmt::Write as _,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};
use strust_fit::{
    DataTable, FittedModel, ReadOptions,
    assess::{Assessment, ClassAssessment, Predictor},
    fair::GroupQuantity,
    fair_report::ColumnRates,
    fit::{Evaluated, evaluate as assessed},
    table::{CellKind, Cells, ExpectedColumns, NamedColumn},
    transform::EncodingLosses,
    words::nearest,
};
use strust_lab::{format::is_formula, io::output::OutputFile, team::Team};

/// `strust predict`.
pub fn predict(args: &PredictArgs, shared: &Shared) -> CommandResult {
    let PredictArgs { model: path, new, out, .. } = args;
    let inputs = input_files(&[path, new]);
    let place = out.as_ref().map(|out| OutputFile::prepare([out], &inputs)).transpose()?;
    let model = load(path, new, "predict")?;
    let output = PredictionFormat::of(args, &model)?;
    let interrupt = session::interrupt()?;
    let activity = Activity::new(shared);
    let source = RowSource::open(new, &activity, &interrupt, &Team::alone())?;
    let table = source.read(&model.read_options(false), &activity, &interrupt, &mut Team::alone())?;
    model.about.encoder.check_names(&table)?;
    let (encoded, losses) = model.about.encoder.encode(&table, &interrupt)?;
    let kept = kept(args, &model, &source, &table, &activity, &interrupt)?;
    drop(activity);
    warn(&losses, &table.path);
    let mut predictor = Predictor::new(&model.weights, &model.about.task);
    // Programs compare the predictions with the classes, so they are written as they are.
    if let Some(class) = output.classes.iter().find(|class| is_formula(class)).filter(|_| !output.json) {
        warning(&format!(
            "the class `{class}` looks like a formula: before you open the predictions in a spreadsheet, import the \
             prediction as text"
        ));
    }
    let mut text = output.header();
    for i in 0..table.rows {
        if interrupt.load(Ordering::Relaxed) {
            return Err(strust_fit::Error::Interrupted.into());
        }
        output.write(kept.iter().map(|column| text_of(column, i)), &predictor.predict(&encoded, i), &mut text);
    }
    match out.as_ref().zip(place) {
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

/// The columns of the new rows that are copied, with their texts. The columns of the model are read as numbers and as
/// categories, so these are read separately.
fn kept(
    args: &PredictArgs,
    model: &FittedModel,
    source: &RowSource<'_>,
    rows: &DataTable,
    activity: &Activity,
    interrupt: &AtomicBool,
) -> CommandResult<Vec<NamedColumn>> {
    if args.keep.is_empty() {
        return Ok(Vec::new());
    }
    let kinds = args.keep.iter().map(|name| (name.clone(), CellKind::Text)).collect();
    let expected = Some(ExpectedColumns { kinds, order: model.about.order.clone() });
    let options = ReadOptions { expected, ..model.read_options(false) };
    let mut table = source.read(&options, activity, interrupt, &mut Team::alone())?;
    if table.rows != rows.rows {
        let why = "the file changed while it was read: predict its rows again";
        return Err(strust_fit::Error::file(&rows.path, why).into());
    }
    let column = |name: &String| {
        let at = table.columns.iter().position(|column| column.name == *name).ok_or_else(|| {
            let hint = nearest(name, table.order.iter().map(String::as_str));
            let hint = hint.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
            strust_fit::Error::file(&rows.path, format!("there is no column `{name}` for --keep{hint}"))
        })?;
        Ok(table.columns.swap_remove(at))
    };
    args.keep.iter().map(column).collect()
}

/// The text of a cell. An array has numbers.
fn text_of(column: &NamedColumn, row: usize) -> String {
    match &column.cells {
        Cells::Numbers(values) => values[row].to_string(),
        Cells::Words { codes, words } => words.get(codes[row] as usize).cloned().unwrap_or_default(),
        Cells::Texts => String::new(),
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
    let Evaluated { scores, losses, groups } = assessed(&model, &table, &interrupt)?;
    warn(&losses, &table.path);
    if shared.json {
        let mut json = serde_json::to_value(&scores).expect("scores are plain data");
        if !groups.is_empty() {
            json["groups"] = serde_json::to_value(&groups).expect("rates are plain data");
        }
        return print_json(&json);
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
    let bounded = model.about.fair.iter().flat_map(|fair| fair.options.quantities()).collect();
    for column in groups {
        text.push_str(&by_group(&column, &bounded, shared));
    }
    print(&text)
}

fn by_group(column: &ColumnRates, bounded: &BTreeSet<GroupQuantity>, shared: &Shared) -> String {
    let title = format!("By {}, with 95 % intervals", column.column);
    format!("\n{}\n{}", heading(&title, shared), table(&fit_fair::rates(column, bounded)))
}

fn classes(scores: &ClassAssessment, names: &[String], shared: &Shared) -> String {
    let share =
        |part: u64, of: u64| if of == 0 { "–".into() } else { format!("{:.1} %", 100.0 * part as f64 / of as f64) };
    let auc = scores.auc.map(|auc| format!("area under the ROC curve {auc:.4}, ")).unwrap_or_default();
    format!(
        "{auc}log-loss {:.4}, mean over classes {:.1} %\n\n{}\n{}\n{}",
        scores.log_loss,
        100.0 * scores.balanced_accuracy,
        table(&by_class(names, &scores.confusion, "rows", share)),
        heading("Confusion matrix", shared),
        table(&confusion(names, &scores.confusion))
    )
}
