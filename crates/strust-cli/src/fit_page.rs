//! The report of a fit: scores, ROC curve, calibration or residuals, learning curve, features that matter, coefficients.

use crate::{
    fit_constraints, fit_fair,
    tables::{self, number, shown_share},
};
use strust_fit::{
    Fitted,
    assess::{Assessment, CalibrationBin, ClassAssessment, NumberAssessment, ResidualBin},
    coefficients::Coefficient,
    importance::Importance,
    saved::ModelFamily,
    train::LearningPoint,
};
use strust_lab::{
    data::section::{Section, Shown, Table, TableBar},
    figure::{Figure, Point, Series},
    format::{plain_number, plural},
    report::page_of_sections,
};

/// Classes in a confusion matrix at most.
const MOST_CLASSES: usize = 30;
/// Features and coefficients in a table at most.
const MOST_FEATURES: usize = 20;
/// Standard errors on each side of a coefficient: nineteen of twenty intervals contain the true value.
const ERRORS: f64 = 2.0;

/// The whole page.
pub fn html(fitted: &Fitted, verdict: &str) -> String {
    let about = &fitted.model.about;
    let title = format!("{} from {}", about.target, about.data.file.display());
    let mut sections = vec![data(fitted), scores(fitted)];
    sections.extend(fit_constraints::section(&fitted.report.constraints));
    let is_share = matches!(fitted.report.training, Assessment::Classes(_));
    sections.extend(fitted.report.fair.iter().map(|report| fit_fair::section(report, judged(fitted), is_share)));
    // A fit that was stopped has not examined them.
    let features = (!fitted.report.importance.is_empty()).then(|| features(&fitted.report.importance, judged(fitted)));
    let coefficients = (!fitted.report.coefficients.is_empty()).then(|| coefficients(fitted));
    let tables: Vec<Table> = features.into_iter().chain(coefficients).collect();
    if !tables.is_empty() {
        sections.push(Section { tables, ..section("What the predictions depend on", "") });
    }
    let facts = [
        ("data", format!("{}, MD5 {}", about.data.file.display(), about.data.md5)),
        ("rows", format!("{} to learn from, {} held out", about.data.training_rows, about.data.held_out_rows)),
        ("model", format!("{}, {} weights", about.model.name(), fitted.model.weights.flat.len())),
        ("method", format!("{}, batch {}, seed {}", about.training.method, about.training.batch, about.training.seed)),
        ("penalty", plain_number(about.training.l2)),
        ("version", format!("strust {}", about.version)),
    ];
    page_of_sections(&title, &format!("{verdict}."), &sections, &facts.map(|(name, fact)| (name.into(), fact)))
}

fn section(title: &str, description: &str) -> Section {
    Section::new("", title, description)
}

fn data(fitted: &Fitted) -> Section {
    let report = &fitted.report;
    let mut findings = vec![quoted(&format!("The task is {}.", report.task))];
    findings.extend(report.remarks.iter().map(|remark| quoted(&format!("Note: {remark}."))));
    Section { findings, tables: vec![main_scores(fitted)], ..section("Data and scores", "") }
}

/// The rows that the figures show.
fn judged(fitted: &Fitted) -> &'static str {
    if fitted.report.held_out.is_some() { "held-out row" } else { "training row" }
}

/// Scores of held-out and of training rows, and figures about the former.
fn scores(fitted: &Fitted) -> Section {
    let (about, report) = (&fitted.model.about, &fitted.report);
    let names = about.task.class_names().unwrap_or_default();
    let shown = report.held_out.as_ref().unwrap_or(&report.training);
    let mut tables = Vec::new();
    let mut figures = match shown {
        Assessment::Classes(scores) => {
            tables.push(by_class(scores, names));
            if names.len() <= MOST_CLASSES {
                let caption = "Confusion matrix: true classes down, predicted classes across.";
                tables.push(table(caption, tables::confusion(names, &scores.confusion)));
            }
            roc(scores, &report.points.roc, names).into_iter().chain([calibration(scores, names)]).collect()
        }
        Assessment::Regression(scores) => vec![residuals(scores, &report.points.residuals, &about.target)],
    };
    figures.extend(learning(&report.curve, about.model, report.fair.is_some()));
    let rows = plural(shown.rows(), judged(fitted));
    Section { figures, tables, ..section("How good the predictions are", &format!("The figures show {rows}.")) }
}

/// The scores, one in a row.
fn main_scores(fitted: &Fitted) -> Table {
    let report = &fitted.report;
    let measured =
        [report.held_out.as_ref().map(|scores| ("held-out rows", scores)), Some(("training rows", &report.training))];
    let measured: Vec<(&str, &Assessment)> = measured.into_iter().flatten().collect();
    let of = |scores: &Assessment| match scores {
        Assessment::Classes(scores) => {
            let auc = scores.auc.map(|auc| ("area under the ROC curve", format!("{auc:.4}")));
            let first = [
                ("accuracy", shown_share(scores.accuracy)),
                ("mean accuracy of the classes", shown_share(scores.balanced_accuracy)),
            ];
            let last = [
                ("log-loss", format!("{:.4}", scores.log_loss)),
                ("accuracy of always guessing the largest class", shown_share(scores.largest_share)),
            ];
            first.into_iter().chain(auc).chain(last).collect::<Vec<_>>()
        }
        Assessment::Regression(scores) => vec![
            ("R²", format!("{:.4}", scores.r2)),
            ("root of the mean squared error", number(scores.rmse)),
            ("mean error", number(scores.mean_error)),
            ("mean error of always guessing the mean", number(scores.mean_guess_error)),
        ],
    };
    let columns: Vec<Vec<(&str, String)>> = measured.iter().map(|(_, scores)| of(scores)).collect();
    let row = |(name, _): &(&str, String)| {
        // One of two classes may be missing among the held-out rows, and with it a score.
        let score = |column: &Vec<(&str, String)>| {
            column.iter().find(|(other, _)| other == name).map_or("–".into(), |(_, score)| score.clone())
        };
        std::iter::once((*name).to_string()).chain(columns.iter().map(score)).collect()
    };
    let longest = columns.iter().max_by_key(|column| column.len());
    let rows = longest.into_iter().flatten().map(row).collect();
    let caption = "If the training rows score much better, the model has learned them by heart.";
    Table::new(caption, "score", rows).and_columns(measured.iter().map(|(which, _)| (*which).to_string()))
}

/// Quotation marks in place of the backquotes of a terminal.
fn quoted(text: &str) -> String {
    let mut parts = text.split('`');
    let mut out = parts.next().unwrap_or_default().to_string();
    for (k, part) in parts.enumerate() {
        out.push(if k % 2 == 0 { '“' } else { '”' });
        out.push_str(part);
    }
    out
}

fn learning(curve: &[LearningPoint], model: ModelFamily, has_bounds: bool) -> Option<Shown> {
    let mut series = vec![Series::line("training rows", 0, curve.iter().map(|point| (point.epoch, point.training)))];
    let held_out = curve.iter().filter_map(|point| Some((point.epoch, point.held_out?)));
    let held_out = Series::line("held-out rows", 1, held_out);
    if !held_out.points.is_empty() {
        series.push(held_out);
    }
    let mut caption = String::from(
        "The mean loss without the penalty, of the same model on a sample of the training rows and on the held-out rows. If \
         the held-out loss grows while the other falls, the model learns the training rows by heart.",
    );
    let mut unit = "step";
    if model == ModelFamily::Mlp {
        unit = "epoch";
        caption.push_str(if has_bounds {
            " The best point on rows that are not learned from is where the bounds begin to move the last layer."
        } else {
            " The result is the best point on rows that are not learned from, not the last one."
        });
    }
    let figure = Figure::new("Learning curve", (unit, false), ("mean loss", false), series);
    (!curve.is_empty()).then(|| Shown::new("learning", caption, figure))
}

/// A table whose first row is its header.
fn table(caption: &str, mut rows: Vec<Vec<String>>) -> Table {
    let header = rows.remove(0);
    Table { header, ..Table::new(caption, "", rows) }
}

fn by_class(scores: &ClassAssessment, names: &[String]) -> Table {
    let caption = "Recall: the share of the rows of a class that are found. Precision: the share of its predictions that \
                   are right.";
    let share = |part: u64, whole: u64| shown_share(part as f64 / whole as f64);
    table(caption, tables::by_class(names, &scores.confusion, "rows", share))
}

fn roc(scores: &ClassAssessment, points: &[(f64, f64)], names: &[String]) -> Option<Shown> {
    let ([first, second], Some(auc)) = (names, scores.auc) else { return None };
    let model = Series::line(format!("model, area {auc:.3}"), 0, points.iter().copied());
    let guess = Series::line("guessing, area 0.5", 6, [(0.0, 0.0), (1.0, 1.0)]);
    let caption = format!(
        "Each point is a threshold for the probability of “{second}”: the share of the rows of “{second}” above it, and of \
         those of “{first}”. The area is the probability that of two rows, one of each, the model ranks them correctly."
    );
    let (x, y) = ((format!("share of “{first}” above"), false), (format!("share of “{second}” above"), false));
    let figure = Figure::new("ROC curve", (&x.0, x.1), (&y.0, y.1), vec![model, guess]);
    Some(Shown::new("roc", caption, figure))
}

fn calibration(scores: &ClassAssessment, names: &[String]) -> Shown {
    let point = |bin: &CalibrationBin| {
        // Two standard deviations of a share; one more row of each kind keeps a share of 0 or 1 from seeming certain.
        let share = (bin.observed * bin.rows as f64 + 1.0) / (bin.rows as f64 + 2.0);
        let error = 2.0 * (share * (1.0 - share) / bin.rows as f64).sqrt();
        let (low, high) = ((bin.observed - error).max(0.0), (bin.observed + error).min(1.0));
        Point { x: bin.predicted, y: bin.observed, low, high }
    };
    let points = scores.calibration.iter().map(point).collect();
    let ideal = Series::line("ideal", 6, [(0.0, 0.0), (1.0, 1.0)]);
    let series = vec![Series { name: "model".into(), color: 0, points }, ideal];
    let of = match names {
        [_, second] => format!("“{second}”"),
        _ => "the predicted class".into(),
    };
    let caption = format!(
        "Of the rows for which the model gives {of} a probability near p, a share near p should have it. The band is two \
         standard deviations of a share."
    );
    let (x, y) = (("predicted probability", false), ("observed share", false));
    Shown::new("calibration", caption, Figure::new("Calibration", x, y, series))
}

fn residuals(scores: &NumberAssessment, points: &[(f64, f64)], target: &str) -> Shown {
    let point = |bin: &ResidualBin| Point { x: bin.predicted, y: bin.mean, low: bin.low, high: bin.high };
    let means = scores.residuals.iter().map(point).collect();
    let ends = [points.first(), points.last()].into_iter().flatten();
    let series = vec![
        Series::dots("rows", 5, points.iter().copied()),
        Series { name: "mean of a group".into(), color: 0, points: means },
        Series::line("ideal", 6, ends.map(|(predicted, _)| (*predicted, 0.0))),
    ];
    let some =
        if points.len() < scores.rows { format!("{} of the {}", points.len(), scores.rows) } else { "all".into() };
    let caption = format!(
        "The true value minus the prediction, of {some} rows, and in ten groups of similar predictions: the mean, and a band \
         that contains eight of ten rows. A curve away from 0 shows what the model cannot follow."
    );
    let figure = Figure::new("Residuals", (&format!("predicted {target}"), false), ("residual", false), series);
    Shown::new("residuals", caption, figure)
}

fn features(importance: &[Importance], which: &str) -> Table {
    let shown = &importance[..importance.len().min(MOST_FEATURES)];
    let row = |one: &Importance| vec![one.column.clone(), format!("{:.4}", one.loss_growth)];
    let bar = |one: &Importance| TableBar { from: 0.0, to: one.loss_growth, at: None };
    let caption = format!(
        "Features that matter: by how much the mean loss on the {which}s grows when the values of a column are shuffled among \
         the rows. Of two columns that say the same, both can seem unimportant."
    );
    let table = Table::new(caption, "feature | growth of the loss", shown.iter().map(row).collect());
    Table { bars: shown.iter().map(bar).collect(), ..table }
}

/// The weights of a linear model: one output with intervals, several outputs without.
fn coefficients(fitted: &Fitted) -> Table {
    let (outputs, all) = (fitted.model.outputs(), &fitted.report.coefficients);
    let shown = &all[..all.len().min(MOST_FEATURES * outputs.len())];
    let of = match fitted.model.about.task.class_names() {
        None => format!("the predicted {}", fitted.model.about.target),
        Some([_, second]) => format!("the logit of “{second}”"),
        Some(_) => "the score of each class".into(),
    };
    let mut caption = format!(
        "Coefficients: what an input adds to {of}. Per deviation is the weight times the standard deviation of the input, so \
         that inputs with different units can be compared."
    );
    if outputs.len() > 1 {
        caption.push_str(" The numbers are per deviation.");
        let rows = shown.chunks(outputs.len()).map(|input| {
            std::iter::once(input[0].input.clone()).chain(input.iter().map(|one| number(one.per_deviation))).collect()
        });
        return Table::new(caption, "input", rows.collect()).and_columns(outputs);
    }
    caption.push_str(" The weight has the units of the file.");
    let has_errors = shown.iter().any(|one| one.error.is_some());
    let row = |one: &Coefficient| {
        let ends =
            |error: f64| format!("{} to {}", number(one.weight - ERRORS * error), number(one.weight + ERRORS * error));
        let interval = has_errors.then(|| one.error.map_or("–".into(), ends));
        [one.input.clone(), number(one.per_deviation), number(one.weight)].into_iter().chain(interval).collect()
    };
    let bar = |one: &Coefficient| {
        let middle = one.per_deviation;
        let around = |error: f64| {
            let by = ERRORS * error * one.deviation;
            TableBar { from: middle - by, to: middle + by, at: Some(middle) }
        };
        one.error.map_or(TableBar { from: 0.0, to: middle, at: None }, around)
    };
    let mut header = "input | per deviation | weight".to_string();
    if has_errors {
        header.push_str(" | interval");
        caption.push_str(
            " An interval is two standard errors on both sides: if the model is right, and the rows were drawn anew many \
             times, nineteen of twenty such intervals would contain the true weight. With a penalty this holds only \
             approximately, because it pulls the weights towards 0.",
        );
    }
    let table = Table::new(caption, &header, shown.iter().map(row).collect());
    Table { bars: shown.iter().map(bar).collect(), ..table }
}
