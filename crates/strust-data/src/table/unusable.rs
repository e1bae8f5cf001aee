//! Columns that cannot be used as they are: numbers with typing errors, or written in several ways, and unclear dates.

use super::{CellForm, forms::is_readable};
use crate::{
    DataError,
    words::{argument, plural, quoted},
};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// Columns that one message describes.
const MOST: usize = 10;

/// A column that cannot be used.
pub(super) struct UnusableColumn {
    name: String,
    /// What it holds, with an example.
    what: String,
    /// What to do, other than to leave it out.
    fix: String,
    /// Whether it could be read as words.
    as_words: bool,
    /// The file and the line of the example, if they are known.
    at: Option<(PathBuf, u64)>,
}

/// Cells of a column that its form does not read, beside those that it reads.
pub(super) struct MixedCells<'a> {
    pub(super) form: CellForm,
    /// The first cell that it does not read.
    pub(super) text: &'a str,
    /// Their number.
    pub(super) wrong: u64,
    /// The number of the cells that it reads.
    pub(super) right: u64,
}

/// The place of an example.
#[derive(Clone, Copy)]
pub(super) enum ExampleAt<'a> {
    /// The file and the line.
    Line((&'a Path, u64)),
    /// The row, from 0.
    Row(usize),
}

impl UnusableColumn {
    /// A column of numbers or dates with other texts, or with numbers that are written in another way.
    pub(super) fn mixed(name: &str, mixed: &MixedCells<'_>, at: ExampleAt<'_>) -> Self {
        let &MixedCells { form, text, wrong, right } = mixed;
        let (at, row) = match at {
            ExampleAt::Line((path, line)) => (Some((path.into(), line)), String::new()),
            ExampleAt::Row(row) => (None, format!(" in row {}", row + 1)),
        };
        let (all, example) = (right + wrong, quoted(text));
        let what = if matches!(form, CellForm::Date(_)) { "date" } else { "number" };
        let (what, fix) = if is_readable(text) {
            let what = format!("{example}{row} is not written like {right} of {all} cells of column `{name}`");
            (what, "Write all of them in the same way".into())
        } else {
            let cells = if wrong == 1 { "it".into() } else { format!("the {wrong} such cells") };
            let what = format!("{example}{row} is not a {what}, but {right} of {all} cells of column `{name}` are");
            (what, format!("Fix or blank {cells}"))
        };
        Self { name: name.into(), what, fix, as_words: true, at }
    }

    /// A column of dates that cannot be read, or not be predicted.
    pub(super) fn of_dates(name: &str, text: &str, is_target: bool, (path, line): (&Path, u64)) -> Self {
        let what = format!("column `{name}` holds dates, such as {}", quoted(text));
        let (what, fix) = if is_target {
            (what, "Turn them into numbers first (days since a fixed day, the year, the month)")
        } else {
            let order = "and none of them shows whether the day or the month comes first";
            (format!("{what}, {order}"), "Write them as 2024-12-31")
        };
        Self { name: name.into(), what, fix: fix.into(), as_words: false, at: Some((path.into(), line)) }
    }

    /// What is wrong, and what to do. The target cannot be left out, and an experiment has no options.
    fn text(&self, target: Option<&str>, experiment: bool) -> String {
        let Self { name, what, fix, as_words, .. } = self;
        let option = argument(name);
        let words = format!(", or read the column as words with --category {option}");
        let words = if *as_words && !experiment { words } else { String::new() };
        let rest = match target {
            Some(target) if target == name => ", or choose another target".into(),
            _ if experiment => ", or remove the column".into(),
            _ => format!(", or leave the column out with --drop {option}"),
        };
        format!("{what}. {fix}{words}{rest}")
    }
}

/// An error that describes all unusable columns, by their positions.
pub(super) fn check(
    columns: BTreeMap<usize, UnusableColumn>,
    path: &Path,
    target: Option<&str>,
    experiment: bool,
) -> Result<(), DataError> {
    let columns: Vec<UnusableColumn> = columns.into_values().collect();
    if let [column] = &columns[..] {
        let why = column.text(target, experiment);
        return Err(match &column.at {
            Some((path, line)) => DataError::line(path, *line, why),
            None => DataError::file(path, why),
        });
    }
    if columns.is_empty() {
        return Ok(());
    }
    let described = |column: &UnusableColumn| {
        let line = column.at.as_ref().map(|(path, line)| format!("{}:{line}: ", path.display()));
        format!("\n  {}{}", line.unwrap_or_default(), column.text(target, experiment))
    };
    let list: String = columns.iter().take(MOST).map(described).collect();
    let more = match columns.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!("\n  and {}", plural(more, "more column")),
    };
    Err(DataError::file(path, format!("{} cannot be used:{list}{more}", plural(columns.len(), "column"))))
}
