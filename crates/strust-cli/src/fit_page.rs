//! The report of a fit: learning curve, confusion matrix, calibration or residuals, and the features that matter.

use crate::{
    fit_constraints,
    tables::{self, shown_share},
};
use strust_fit::{
    Fitted,
    assess::{Assessment, CalibrationBin, ClassAssessment, NumberAssessment},
    importance::Importance,
    train::LearningPoint,
};
use strust_lab::{
    data::section::{Section, Shown, Table},
    figure::{Figure, Point, Series},
    format::{plain_number, plural},
    report::page_of_sections,
};

/// Classes in a confusion matrix at most.
const MOST_CLASSES: usize = 30;
/// Features in the table at most.
const MOST_FEATURES: usize = 20;

/// The whole page.
pub fn html(fitted: &Fitted, verdict: &str) -> String {
    let about = &fitted.model.about;
    let title = format!("{} from {}", about.target, about.data.file.display());
    let names = about.task.class_names().unwrap_or_default();
    let (scores, which) = match &fitted.report.held_out {
        Some(scores) => (scores, "held-out row"),
        None => (&fitted.report.training, "training row"),
    };
    let mut sections = vec![overview(fitted)];
    sections.push(match scores {
        Assessment::Classes(scores) => classes(scores, names, which),
        Assessment::Regression(scores) => numbers(scores, &about.target, which),
    });
    sections.extend(fit_constraints::section(&fitted.report.constraints));
    // A fit that was stopped has not examined them.
    if !fitted.report.importance.is_empty() {
        sections.push(features(&fitted.report.importance, which));
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

fn overview(fitted: &Fitted) -> Section {
    let report = &fitted.report;
    let mut findings = vec![quoted(&format!("The task is {}.", report.task))];
    findings.extend(report.remarks.iter().map(|remark| quoted(&format!("Note: {remark}."))));
    let caption = "The mean loss by epoch. If the held-out loss grows while the other falls, the model learns the \
                   training rows by heart.";
    let shown = Shown::new("learning", caption, learning(&report.curve));
    Section { findings, figures: vec![shown], ..section("Data and learning", "") }
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

fn learning(curve: &[LearningPoint]) -> Figure {
    let mut series = vec![Series::line("training rows", 0, curve.iter().map(|point| (point.epoch, point.training)))];
    let held_out = curve.iter().filter_map(|point| Some((point.epoch, point.held_out?)));
    let held_out = Series::line("held-out rows", 1, held_out);
    if !held_out.points.is_empty() {
        series.push(held_out);
    }
    Figure::new("Learning curve", ("epoch", false), ("mean loss", false), series)
}

fn classes(scores: &ClassAssessment, names: &[String], which: &str) -> Section {
    let findings = vec![format!(
        "Accuracy {}, the mean over classes {}, log-loss {:.4}. Always guessing the largest class gives {}.",
        shown_share(scores.accuracy),
        shown_share(scores.balanced_accuracy),
        scores.log_loss,
        shown_share(scores.largest_share)
    )];
    let mut tables = vec![by_class(scores, names)];
    if names.len() <= MOST_CLASSES {
        let caption = "Confusion matrix: true classes down, predicted classes across.";
        tables.push(table(caption, tables::confusion(names, &scores.confusion)));
    }
    let figures = vec![calibration(scores, names)];
    let description = format!("Measured on {}.", plural(scores.rows, which));
    Section { findings, figures, tables, ..section("How good the predictions are", &description) }
}

/// A table whose first row is its header.
fn table(caption: &str, mut rows: Vec<Vec<String>>) -> Table {
    Table { caption: caption.into(), header: rows.remove(0), rows }
}

fn by_class(scores: &ClassAssessment, names: &[String]) -> Table {
    let caption = "Recall: the share of the rows of a class that are found. Precision: the share of its predictions that \
                   are right.";
    let share = |part: u64, whole: u64| shown_share(part as f64 / whole as f64);
    table(caption, tables::by_class(names, &scores.confusion, "rows", share))
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

fn numbers(scores: &NumberAssessment, target: &str, which: &str) -> Section {
    let findings = vec![format!(
        "R² {:.4}, root of the mean squared error {}, mean error {}. Always guessing the mean has an error of {}.",
        scores.r2,
        number(scores.rmse),
        number(scores.mean_error),
        number(scores.mean_guess_error)
    )];
    let point =
        |bin: &strust_fit::assess::ResidualBin| Point { x: bin.predicted, y: bin.mean, low: bin.low, high: bin.high };
    let residuals = scores.residuals.iter().map(point).collect();
    let ends = [scores.residuals.first(), scores.residuals.last()].into_iter().flatten();
    let ideal = Series::line("ideal", 6, ends.map(|bin| (bin.predicted, 0.0)));
    let series = vec![Series { name: "mean residual".into(), color: 0, points: residuals }, ideal];
    let caption = "The true value minus the prediction, in ten groups of similar predictions: the mean, and a band that \
                   contains eight of ten rows. A curve away from 0 shows what the model cannot follow.";
    let figure = Figure::new("Residuals", (&format!("predicted {target}"), false), ("residual", false), series);
    let shown = Shown::new("residuals", caption, figure);
    let description = format!("Measured on {}.", plural(scores.rows, which));
    Section { findings, figures: vec![shown], ..section("How good the predictions are", &description) }
}

fn features(importance: &[Importance], which: &str) -> Section {
    let most = importance.first().map_or(0.0, |first| first.loss_growth).max(f64::MIN_POSITIVE);
    // The cell is aligned to the right, so the bar is padded there.
    let bar = |growth: f64| format!("{:\u{a0}<24}", "█".repeat((24.0 * growth.max(0.0) / most).round() as usize));
    let row = |one: &Importance| vec![one.column.clone(), format!("{:.4}", one.loss_growth), bar(one.loss_growth)];
    let rows = importance.iter().take(MOST_FEATURES).map(row).collect();
    let table = Table::new("The features that matter most.", "feature | growth of the loss | ", rows);
    let description = format!(
        "By how much the mean loss on the {which}s grows when the values of a column are shuffled among the rows. Of two \
         columns that say the same, both can seem unimportant."
    );
    Section { tables: vec![table], ..section("Features that matter", &description) }
}

/// A number in the units of a target: four digits.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 1e7 || (size > 0.0 && size < 1e-3) {
        return format!("{value:.3e}");
    }
    let decimals = if size >= 1000.0 {
        0
    } else if size >= 10.0 {
        2
    } else {
        4
    };
    format!("{value:.decimals$}")
}
