//! Columns that cannot be used as they are: dates, numbers with signs, numbers with typing errors.

use super::{BLANK, cells::Looks};
use crate::{
    DataError,
    ranks::Ranks,
    words::{plural, quoted},
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

impl UnusableColumn {
    /// A column of numbers with a few cells of text, of which the first is at a line of a file.
    pub(super) fn with_typing_errors(name: &str, text: &str, count: u64, (path, line): (&Path, u64)) -> Self {
        let cells = if count == 1 { "it".into() } else { format!("the {count} such cells") };
        Self {
            name: name.into(),
            what: format!("{} is not a number, but almost all cells of column `{name}` are", quoted(text)),
            fix: format!("Fix or blank {cells}"),
            as_words: true,
            at: Some((path.into(), line)),
        }
    }

    /// A column of words that are dates or numbers with signs. They are not categories: each would be one of its own.
    pub(super) fn of_words(
        name: &str,
        codes: &[u32],
        words: &[String],
        ranks: &Ranks<'_>,
    ) -> Result<Option<Self>, DataError> {
        let most = |looks: Looks| {
            let alike = words.iter().filter(|word| Looks::of(word) == Some(looks));
            alike.count() as f64 > 0.9 * words.len() as f64
        };
        let (what, fix) = if most(Looks::Date) {
            ("dates", "Turn them into numbers first (days since a fixed day, the year, the month)")
        } else if most(Looks::MarkedNumber) {
            ("numbers with signs", "Write them with a decimal point and nothing else")
        } else {
            return Ok(None);
        };
        // All ranks have the same words, and each has the codes of its own rows.
        let first = codes.iter().position(|&code| code != BLANK).map(|place| ranks.share().row(place));
        let row = ranks.all(&first)?.into_iter().flatten().min().unwrap_or(0);
        let example = words.first().map(|word| quoted(word)).unwrap_or_default();
        Ok(Some(Self {
            name: name.into(),
            what: format!("column `{name}` holds {what}, such as {example} in row {}", row + 1),
            fix: fix.into(),
            as_words: false,
            at: None,
        }))
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

/// A name as a shell reads it.
fn argument(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=,:@%+".contains(c);
    if name.chars().all(plain) { name.into() } else { format!("'{}'", name.replace('\'', r"'\''")) }
}
