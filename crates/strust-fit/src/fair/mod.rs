//! Models that treat groups alike, and models with a limit on a rate: `sex=0.02`, `false_positive_rate <= 0.05`.

mod layer;
mod solve;

pub(crate) use layer::HiddenRows;
pub(crate) use solve::{FairProblem, VIOLATION};

use crate::{
    Error,
    assess::Prediction,
    ranks::Ranks,
    table::{BLANK, CellForm, CellKind, Cells, DataTable},
    task::{FitTask, TargetScale},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, fmt, path::PathBuf, str::FromStr};
use strust_data::words::{nearest, quoted};

/// Groups of a column at most: with more, it is no column of groups.
const MOST_GROUPS: usize = 20;
/// A mean of fewer rows has no standard error, so a group with fewer is not compared.
pub(crate) const LEAST_ROWS: f64 = 2.0;

/// What is compared between groups: the mean over the rows of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupQuantity {
    /// The probability of the second class, or the predicted number.
    Score,
    /// The share of rows for which the second class is predicted.
    Rate,
    /// The probability of the second class among the rows that have it: a smooth true-positive rate.
    Opportunity,
    /// The probability of the wrong class: a loss in [0, 1].
    Loss,
    /// The share of the rows of the second class for which it is predicted.
    TruePositive,
    /// The share of the rows of the first class for which the second is predicted.
    FalsePositive,
    /// The share of the rows of the second class for which the first is predicted.
    FalseNegative,
}

impl GroupQuantity {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Score,
        Self::Rate,
        Self::Opportunity,
        Self::Loss,
        Self::TruePositive,
        Self::FalsePositive,
        Self::FalseNegative,
    ];

    /// Its name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Score => "mean score",
            Self::Rate => "positive rate",
            Self::Opportunity => "mean score of the positive rows",
            Self::Loss => "mean loss",
            Self::TruePositive => "true-positive rate",
            Self::FalsePositive => "false-positive rate",
            Self::FalseNegative => "false-negative rate",
        }
    }

    /// Whether it counts decisions, so that it has no slope.
    pub(crate) fn is_rate(self) -> bool {
        !matches!(self, Self::Score | Self::Opportunity | Self::Loss)
    }

    /// The class whose rows count; `None` if all do.
    pub(crate) fn only(self) -> Option<f64> {
        match self {
            Self::Opportunity | Self::TruePositive | Self::FalseNegative => Some(1.0),
            Self::FalsePositive => Some(0.0),
            Self::Score | Self::Rate | Self::Loss => None,
        }
    }

    /// Its number for a row; `None` if the row does not count.
    pub(crate) fn of(self, prediction: &Prediction, goal: f64) -> Option<f64> {
        let (class, second) = match prediction {
            Prediction::Number(number) => return (self == Self::Score).then_some(*number),
            Prediction::Class(class, probabilities) => (f64::from(u8::from(*class == 1)), probabilities[1]),
        };
        let counts = self.only().is_none_or(|only| only.total_cmp(&goal).is_eq());
        counts.then_some(match self {
            Self::Score | Self::Opportunity => second,
            Self::Rate | Self::TruePositive | Self::FalsePositive => class,
            Self::FalseNegative => 1.0 - class,
            Self::Loss => (goal - second).abs(),
        })
    }
}

/// A bound on the largest difference between two groups of a column, as people write it: `sex=0.02`, `sex=0.02:rate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FairRule {
    /// The column with the groups.
    pub column: String,
    /// The largest difference.
    pub bound: f64,
    /// What is compared.
    pub quantity: GroupQuantity,
}

impl FromStr for FairRule {
    type Err = String;
    /// ```
    /// use strust_fit::fair::{FairRule, GroupQuantity};
    /// let rule: FairRule = "sex=0.02:rate".parse().unwrap();
    /// assert_eq!((&*rule.column, rule.bound, rule.quantity), ("sex", 0.02, GroupQuantity::Rate));
    /// ```
    fn from_str(text: &str) -> Result<Self, String> {
        let form = "it must be COLUMN=BOUND, such as sex=0.02, or with :rate, :opportunity or :loss after the bound";
        let (column, rest) = text.rsplit_once('=').ok_or(form)?;
        let (bound, quantity) = match rest.split_once(':') {
            None => (rest, GroupQuantity::Score),
            Some((bound, "score")) => (bound, GroupQuantity::Score),
            Some((bound, "rate")) => (bound, GroupQuantity::Rate),
            Some((bound, "opportunity")) => (bound, GroupQuantity::Opportunity),
            Some((bound, "loss")) => (bound, GroupQuantity::Loss),
            Some((_, other)) => {
                let known = ["score", "rate", "opportunity", "loss"];
                let hint = nearest(other, known).map(|name| format!("; did you mean :{name}?")).unwrap_or_default();
                return Err(format!("there is no :{other}{hint}; {form}"));
            }
        };
        let column = column.trim();
        if column.is_empty() {
            return Err(form.into());
        }
        Ok(Self { column: column.into(), bound: bound_of(bound)?, quantity })
    }
}

impl fmt::Display for FairRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by `{}`, difference ≤ {}", self.quantity.name(), self.column, self.bound)
    }
}

/// A limit on a rate on all training rows: `false_positive_rate <= 0.05`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateLimit {
    /// The rate.
    pub quantity: GroupQuantity,
    /// Its largest value.
    pub bound: f64,
}

impl FromStr for RateLimit {
    type Err = String;
    /// ```
    /// use strust_fit::fair::{GroupQuantity, RateLimit};
    /// let limit: RateLimit = "false_positive_rate <= 0.05".parse().unwrap();
    /// assert_eq!((limit.quantity, limit.bound), (GroupQuantity::FalsePositive, 0.05));
    /// ```
    fn from_str(text: &str) -> Result<Self, String> {
        let names = ["false_positive_rate", "false_negative_rate", "positive_rate"];
        let form = format!("it must be RATE <= BOUND with one of the rates {}", names.join(", "));
        let (name, bound) = text.split_once("<=").or_else(|| text.split_once('≤')).ok_or_else(|| form.clone())?;
        let quantity = match name.trim() {
            "false_positive_rate" => GroupQuantity::FalsePositive,
            "false_negative_rate" => GroupQuantity::FalseNegative,
            "positive_rate" => GroupQuantity::Rate,
            other => {
                let hint = nearest(other, names).map(|name| format!("; did you mean {name}?")).unwrap_or_default();
                return Err(format!("there is no rate {}{hint}; {form}", quoted(other)));
            }
        };
        Ok(Self { quantity, bound: bound_of(bound)? })
    }
}

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ≤ {}", self.quantity.name(), self.bound)
    }
}

fn bound_of(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(bound) if bound.is_finite() && bound >= 0.0 => Ok(bound),
        _ => Err(format!("the bound is {}, but must be a number ≥ 0, such as 0.02", quoted(text.trim()))),
    }
}

/// Bounds between groups, and limits.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FairOptions {
    /// Bounds on differences between groups.
    pub rules: Vec<FairRule>,
    /// Limits on rates.
    pub limits: Vec<RateLimit>,
}

impl FairOptions {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.limits.is_empty()
    }

    /// The columns with groups, each once.
    #[must_use]
    pub fn columns(&self) -> BTreeSet<&str> {
        self.rules.iter().map(|rule| rule.column.as_str()).collect()
    }

    /// What is bounded.
    #[must_use]
    pub fn quantities(&self) -> BTreeSet<GroupQuantity> {
        let limits = self.limits.iter().map(|limit| limit.quantity);
        self.rules.iter().map(|rule| rule.quantity).chain(limits).collect()
    }

    /// Refuses what does not fit the task and the model.
    pub(crate) fn check(&self, task: &FitTask, has_rules: bool) -> Result<(), Error> {
        let refuse = |why: String| Err(Error::Option(why));
        if self.is_empty() {
            return Ok(());
        }
        let options = if self.rules.is_empty() { "--limit" } else { "--fair" };
        if has_rules {
            return refuse(format!(
                "{options} does not combine with constraints on the weights: leave one of them out"
            ));
        }
        match task {
            FitTask::Classes { names } if names.len() > 2 => {
                let count = names.len();
                refuse(format!(
                    "{options} is for two classes or a number, but the target has {count} classes: join some"
                ))
            }
            FitTask::Classes { .. } => {
                let bounds = self.rules.iter().map(|rule| (rule.bound, rule.to_string()));
                let mut bounds = bounds.chain(self.limits.iter().map(|limit| (limit.bound, limit.to_string())));
                match bounds.find(|(bound, _)| *bound >= 1.0) {
                    Some((bound, text)) => refuse(format!("{text}: the bound is {bound}, but must be in [0, 1)")),
                    None => Ok(()),
                }
            }
            FitTask::Regression { scale, .. } => {
                if let Some(limit) = self.limits.first() {
                    return refuse(format!("--limit {limit}: a rate needs two classes, but the target is a number"));
                }
                if let Some(rule) = self.rules.iter().find(|rule| rule.quantity != GroupQuantity::Score) {
                    let name = rule.quantity.name();
                    return refuse(format!(
                        "--fair {}: a {name} needs two classes, but the target is a number: leave out what follows the \
                         bound to compare mean predictions",
                        rule.column
                    ));
                }
                if *scale != TargetScale::Plain {
                    return refuse("--fair compares mean predictions: leave out --log-target".into());
                }
                Ok(())
            }
        }
    }
}

/// A column with groups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupColumn {
    /// Its name.
    pub name: String,
    /// Whether it holds words.
    pub is_words: bool,
    /// How its numbers are written in the file.
    #[serde(default, skip_serializing_if = "CellForm::is_plain")]
    pub form: CellForm,
    /// The groups, in order.
    pub groups: Vec<String>,
}

impl GroupColumn {
    /// The groups that some rows of all ranks have; `rows` are those of this rank.
    pub(crate) fn of(table: &DataTable, name: &str, rows: &[usize], ranks: &Ranks<'_>) -> Result<Self, Error> {
        table.check_columns("--fair", &[name.to_string()])?;
        let refuse = |why: String| Err(Error::file(&table.path, format!("column `{name}` {why}")));
        let Some(column) = table.column(name) else { return refuse("was left out while reading".into()) };
        let mut mine = BTreeSet::new();
        for &place in rows {
            mine.extend(text_of(&column.cells, place));
            if mine.len() > MOST_GROUPS {
                break;
            }
        }
        let mut groups: Vec<String> =
            ranks.all(&mine)?.into_iter().flatten().collect::<BTreeSet<_>>().into_iter().collect();
        let is_words = !matches!(column.cells, Cells::Numbers(_));
        if !is_words {
            let number = |text: &String| text.parse().unwrap_or(f64::NAN);
            groups.sort_by(|a, b| number(a).total_cmp(&number(b)));
        }
        let what = if is_words { "words" } else { "numbers" };
        if groups.len() > MOST_GROUPS || column.cells == Cells::Texts {
            return refuse(format!(
                "has more than {MOST_GROUPS} different {what}, so --fair cannot compare its groups: name a column with few \
                 categories, or make one, such as age groups"
            ));
        }
        if groups.len() < 2 {
            return refuse("has fewer than two groups in the training rows: there is nothing to compare".into());
        }
        Ok(Self { name: name.into(), is_words, form: column.form, groups })
    }

    /// The group of each row in memory; `None` without the column. A row may have no group.
    pub(crate) fn codes(&self, table: &DataTable) -> Option<Vec<Option<usize>>> {
        let cells = &table.column(&self.name)?.cells;
        let code = |place| self.groups.iter().position(|group| text_of(cells, place).as_ref() == Some(group));
        Some((0..table.rows).map(code).collect())
    }

    pub(crate) fn kind(&self) -> CellKind {
        if self.is_words { CellKind::Word } else { CellKind::Number(self.form) }
    }
}

/// The text of a cell; `None` if it is blank.
fn text_of(cells: &Cells, place: usize) -> Option<String> {
    match cells {
        Cells::Numbers(values) if values[place].is_nan() => None,
        // −0 is 0.
        Cells::Numbers(values) => Some((values[place] + 0.0).to_string()),
        Cells::Words { codes, .. } if codes[place] == BLANK => None,
        Cells::Words { codes, words } => Some(words[codes[place] as usize].clone()),
        Cells::Texts => None,
    }
}

/// What a model was asked for: a part of its file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ModelFairness {
    /// The bounds.
    #[serde(flatten)]
    pub options: FairOptions,
    /// The groups of each rule.
    pub columns: Vec<GroupColumn>,
}

/// The bounds of a fit, with the groups of the rows in memory.
#[derive(Debug, Clone)]
pub(crate) struct FairSet {
    pub(crate) asked: ModelFairness,
    /// The file, for messages.
    pub(crate) path: PathBuf,
    /// The group of each row, for each rule.
    pub(crate) codes: Vec<Vec<Option<usize>>>,
}

impl FairSet {
    /// `rows` are the training rows of this rank.
    pub(crate) fn new(
        options: &FairOptions,
        table: &DataTable,
        target: &str,
        rows: &[usize],
        ranks: &Ranks<'_>,
    ) -> Result<Self, Error> {
        if options.columns().contains(target) {
            return Err(Error::file(&table.path, format!("column `{target}` is the target: --fair needs another one")));
        }
        let column = |rule: &FairRule| GroupColumn::of(table, &rule.column, rows, ranks);
        let columns = options.rules.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        let codes = columns.iter().map(|column| column.codes(table).unwrap_or_default()).collect();
        Ok(Self { asked: ModelFairness { options: options.clone(), columns }, path: table.path.clone(), codes })
    }

    /// The groups of the rows of another table, for each rule.
    pub(crate) fn codes_of(&self, table: &DataTable) -> Result<Vec<Vec<Option<usize>>>, Error> {
        let codes = |column: &GroupColumn| {
            table.check_columns("--fair", std::slice::from_ref(&column.name))?;
            Ok(column.codes(table).unwrap_or_default())
        };
        self.asked.columns.iter().map(codes).collect()
    }

    /// The same with another first bound.
    pub(crate) fn with_first(&self, bound: f64) -> Self {
        let mut other = self.clone();
        let FairOptions { rules, limits } = &mut other.asked.options;
        if let Some(first) =
            rules.first_mut().map(|rule| &mut rule.bound).or(limits.first_mut().map(|limit| &mut limit.bound))
        {
            *first = bound;
        }
        other
    }
}
