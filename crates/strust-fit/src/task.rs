//! What to predict: a number, or one of some classes.

use crate::{
    Error,
    table::{BLANK, Cells, DataTable, NamedColumn},
};
use serde::{Deserialize, Serialize};
use std::path::Path;
use strust_data::{loss::OutputLoss, words::plural};

/// More classes than this are not classes.
pub const MOST_CLASSES: usize = 1000;
/// A target of at most this many different whole numbers has classes.
const FEW: usize = 20;

/// The kind of target that the user names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskChoice {
    /// A number.
    Regression,
    /// One of some classes.
    Classes,
}

/// What a model predicts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum FitTask {
    /// A number. The model computes (y − mean)/deviation.
    Regression {
        /// The mean of the training rows.
        mean: f64,
        /// Their deviation, > 0; with Huber's loss, mean and deviation are the median and the scaled median distance
        /// from it, which outliers do not move.
        deviation: f64,
        /// What the model computes instead of y.
        #[serde(default, skip_serializing_if = "TargetScale::is_plain")]
        scale: TargetScale,
        /// The bound δ of Huber's loss, in deviations, if the loss is not that of squares.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        huber: Option<f64>,
    },
    /// A class.
    Classes {
        /// Their names, in order.
        names: Vec<String>,
    },
}

/// What a regression computes instead of y.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetScale {
    /// y itself.
    #[default]
    Plain,
    /// log y, for y > 0.
    Log,
    /// log(1 + y), for y ≥ 0.
    LogPlusOne,
}

impl TargetScale {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_plain(&self) -> bool {
        *self == Self::Plain
    }
    /// The number that the model computes.
    #[must_use]
    pub fn of(self, y: f64) -> f64 {
        match self {
            Self::Plain => y,
            Self::Log => y.ln(),
            Self::LogPlusOne => y.ln_1p(),
        }
    }
    /// y.
    #[must_use]
    pub fn invert(self, number: f64) -> f64 {
        match self {
            Self::Plain => number,
            Self::Log => number.exp(),
            Self::LogPlusOne => number.exp_m1(),
        }
    }
}

/// How a number is learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RegressionChoice {
    /// By its logarithm.
    pub log: bool,
    /// With Huber's loss.
    pub huber: bool,
}

/// Huber's bound in deviations of the residuals: with normal noise it costs 5 % of the rows' information (Huber 1964).
pub(crate) const HUBER: f64 = 1.345;
/// The deviation of normal numbers is this multiple of the median of their distances from the median.
const NORMAL: f64 = 1.4826;

/// The median, of at least one number.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    0.5 * (values[(n - 1) / 2] + values[n / 2])
}

/// A deviation that outliers do not move, from the distances to the center.
pub(crate) fn robust_deviation(distances: Vec<f64>) -> f64 {
    NORMAL * median(distances)
}

/// The targets of some rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Targets {
    /// Numbers in the units of the file.
    Numbers(Vec<f64>),
    /// The position of the class.
    Classes(Vec<u32>),
}

impl Targets {
    /// The selected rows, in this order.
    #[must_use]
    pub fn only(&self, rows: &[usize]) -> Self {
        match self {
            Self::Numbers(values) => Self::Numbers(rows.iter().map(|&i| values[i]).collect()),
            Self::Classes(classes) => Self::Classes(rows.iter().map(|&i| classes[i]).collect()),
        }
    }
    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(values) => values.len(),
            Self::Classes(classes) => classes.len(),
        }
    }
    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl FitTask {
    /// The shift and the scale of the target: the model computes (y − shift)/scale.
    pub(crate) fn units(&self) -> (f64, f64) {
        match self {
            Self::Regression { mean, deviation, .. } => (*mean, *deviation),
            Self::Classes { .. } => (0.0, 1.0),
        }
    }

    /// Infers the task from the rows that have a target, or follows the choice. The sentence says why.
    pub fn infer(
        table: &DataTable,
        target: &str,
        choice: Option<TaskChoice>,
        how: RegressionChoice,
    ) -> Result<(Self, String), Error> {
        let (task, why) = Self::inferred(table, target, choice, how)?;
        let option = if how.log { "--log-target" } else { "--loss huber" };
        if how != RegressionChoice::default() && task.class_names().is_some() {
            return Err(Error::Option(format!(
                "{option} is for a regression, but `{target}` has classes, because {why}: use --task regression if it is a number"
            )));
        }
        Ok((task, why))
    }

    fn inferred(
        table: &DataTable,
        target: &str,
        choice: Option<TaskChoice>,
        how: RegressionChoice,
    ) -> Result<(Self, String), Error> {
        let column = target_of(table, target)?;
        match (&column.cells, choice) {
            (Cells::Texts, _) => Err(too_many(table, target, "more than 100000")),
            (Cells::Words { .. }, Some(TaskChoice::Regression)) => {
                Err(Error::file(&table.path, format!("column `{target}` holds words: a regression needs numbers")))
            }
            (Cells::Words { codes, words }, _) => {
                let names = used_words(codes, words);
                let why = format!("`{target}` holds words");
                Ok((Self::classes(table, target, names)?, why))
            }
            (Cells::Numbers(values), choice) => {
                let distinct = distinct(values);
                let whole = distinct.iter().all(|v| v.fract() == 0.0 && v.abs() < 1e15);
                let few = distinct.len() <= FEW && (distinct.len() == 2 || values.len() >= 5 * distinct.len());
                let why = format!("`{target}` holds {} different numbers", distinct.len());
                if choice.map_or(whole && few, |choice| choice == TaskChoice::Classes) {
                    let names = distinct.iter().map(f64::to_string).collect();
                    return Ok((Self::classes(table, target, names)?, why));
                }
                Ok((Self::regression(table, target, values, how)?, why))
            }
        }
    }

    fn classes(table: &DataTable, target: &str, names: Vec<String>) -> Result<Self, Error> {
        match names.len() {
            0 => Err(Error::file(&table.path, format!("column `{target}` is blank in every row"))),
            1 => Err(constant(table, target, &names[0])),
            many if many > MOST_CLASSES || 2 * many > table.rows => Err(too_many(table, target, &many.to_string())),
            _ => Ok(Self::Classes { names }),
        }
    }

    fn regression(table: &DataTable, target: &str, values: &[f64], how: RegressionChoice) -> Result<Self, Error> {
        let scale = match how.log {
            false => TargetScale::Plain,
            true if values.contains(&0.0) => TargetScale::LogPlusOne,
            true => TargetScale::Log,
        };
        refuse_negative(&table.path, target, values, scale)?;
        let known: Vec<f64> = values.iter().filter(|value| !value.is_nan()).map(|&value| scale.of(value)).collect();
        let Some(&first) = known.first() else {
            return Err(Error::file(&table.path, format!("column `{target}` is blank in every row")));
        };
        if known.iter().all(|value| value - first == 0.0) {
            return Err(constant(table, target, &scale.invert(first).to_string()));
        }
        // Differences from the first value do not lose the digits in which the values differ.
        let n = known.len() as f64;
        let mean = first + known.iter().map(|value| value - first).sum::<f64>() / n;
        let deviation = (known.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n).sqrt();
        if !deviation.is_normal() {
            let why = format!("the numbers of column `{target}` are too large or too close together: use other units");
            return Err(Error::file(&table.path, why));
        }
        if !how.huber {
            return Ok(Self::Regression { mean, deviation, scale, huber: None });
        }
        let middle = median(known.clone());
        let robust = robust_deviation(known.iter().map(|value| (value - middle).abs()).collect());
        // If half of the targets are equal, they have no such deviation.
        let deviation = if robust.is_normal() { robust } else { deviation };
        Ok(Self::Regression { mean: middle, deviation, scale, huber: Some(HUBER) })
    }

    /// With another bound of Huber's loss.
    pub(crate) fn with_huber(mut self, bound: f64) -> Self {
        if let Self::Regression { huber, .. } = &mut self {
            *huber = Some(bound);
        }
        self
    }

    /// An error that names a row whose target has no logarithm, if the model needs it.
    pub(crate) fn check_scale(&self, path: &Path, target: &str, targets: &Targets) -> Result<(), Error> {
        match (self, targets) {
            (Self::Regression { scale, .. }, Targets::Numbers(values)) => refuse_negative(path, target, values, *scale),
            _ => Ok(()),
        }
    }

    /// The number of classes; `None` for a regression.
    #[must_use]
    pub fn class_names(&self) -> Option<&[String]> {
        match self {
            Self::Classes { names } => Some(names),
            Self::Regression { .. } => None,
        }
    }

    /// The loss of its models.
    #[must_use]
    pub fn loss(&self) -> OutputLoss {
        match self {
            Self::Regression { huber: Some(bound), .. } => OutputLoss::Huber(*bound),
            Self::Regression { .. } => OutputLoss::Squares,
            Self::Classes { names } if names.len() == 2 => OutputLoss::Logistic,
            Self::Classes { .. } => OutputLoss::Softmax,
        }
    }

    /// The number of outputs of its models.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.class_names().map(<[String]>::len).filter(|&classes| classes > 2).unwrap_or(1)
    }

    /// The targets of a file, and the rows that have one. A class that the model does not know is an error.
    pub fn targets(&self, table: &DataTable, target: &str) -> Result<(Targets, Vec<usize>), Error> {
        let cells = &target_of(table, target)?.cells;
        match self {
            Self::Regression { .. } => {
                let Cells::Numbers(values) = cells else {
                    return Err(Error::file(&table.path, format!("column `{target}` must hold numbers")));
                };
                let rows = (0..values.len()).filter(|&i| !values[i].is_nan()).collect();
                Ok((Targets::Numbers(values.clone()), rows))
            }
            Self::Classes { names } => {
                let codes = class_codes(table, target, cells, names)?;
                let rows = (0..codes.len()).filter(|&i| codes[i] != BLANK).collect();
                Ok((Targets::Classes(codes), rows))
            }
        }
    }
}

fn refuse_negative(path: &Path, target: &str, values: &[f64], scale: TargetScale) -> Result<(), Error> {
    let has_none = |value: &f64| match scale {
        TargetScale::Plain => false,
        TargetScale::Log => *value <= 0.0,
        TargetScale::LogPlusOne => *value < 0.0,
    };
    let Some(row) = values.iter().position(has_none) else { return Ok(()) };
    let (value, row) = (values[row], row + 1);
    let needs = if scale == TargetScale::Log { "numbers above 0" } else { "numbers that are not negative" };
    let why =
        format!("column `{target}` is {value} in row {row}, but --log-target needs {needs}: leave out the option");
    Err(Error::file(path, why))
}

/// The class of each row, or [`BLANK`].
fn class_codes(table: &DataTable, target: &str, cells: &Cells, names: &[String]) -> Result<Vec<u32>, Error> {
    let class = |name: &str| names.iter().position(|known| known == name).map(|class| class as u32);
    let unknown = |name: &str| {
        Error::file(
            &table.path,
            format!("column `{target}` has the class `{name}`, which the training rows do not have"),
        )
    };
    match cells {
        Cells::Words { codes, words } => {
            let classes: Vec<Option<u32>> = words.iter().map(|word| class(word)).collect();
            let code = |&code: &u32| match code {
                BLANK => Ok(BLANK),
                code => classes[code as usize].ok_or_else(|| unknown(&words[code as usize])),
            };
            codes.iter().map(code).collect()
        }
        Cells::Numbers(values) => {
            let mut known: Vec<(f64, u32)> = Vec::new();
            for (k, name) in names.iter().enumerate() {
                known.extend(name.parse().ok().map(|value: f64| (value, k as u32)));
            }
            let code = |&value: &f64| match known.iter().find(|(v, _)| v.total_cmp(&(value + 0.0)).is_eq()) {
                _ if value.is_nan() => Ok(BLANK),
                Some(&(_, class)) => Ok(class),
                None => Err(unknown(&value.to_string())),
            };
            values.iter().map(code).collect()
        }
        Cells::Texts => Err(too_many(table, target, "more than 100000")),
    }
}

fn target_of<'a>(table: &'a DataTable, target: &str) -> Result<&'a NamedColumn, Error> {
    table.column(target).ok_or_else(|| Error::file(&table.path, format!("there is no column `{target}`")))
}

fn used_words(codes: &[u32], words: &[String]) -> Vec<String> {
    let mut used = vec![false; words.len()];
    codes.iter().filter(|&&code| code != BLANK).for_each(|&code| used[code as usize] = true);
    let mut names: Vec<String> =
        words.iter().zip(used).filter(|(_, used)| *used).map(|(word, _)| word.clone()).collect();
    names.sort();
    names
}

/// The different numbers in order, without blanks; −0 is 0.
fn distinct(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().filter(|value| !value.is_nan()).map(|value| value + 0.0).collect();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup();
    sorted
}

fn constant(table: &DataTable, target: &str, value: &str) -> Error {
    Error::file(&table.path, format!("column `{target}` is {value} in every row: there is nothing to predict"))
}

fn too_many(table: &DataTable, target: &str, count: &str) -> Error {
    let why = format!(
        "column `{target}` has {count} different values in {}: these are not classes. Choose another target, or \
         --task regression if they are numbers",
        plural(table.rows, "row")
    );
    Error::file(&table.path, why)
}
