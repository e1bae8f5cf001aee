//! The month and the weekday of a date as columns of their own.

use super::{BLANK, CellForm, CellKind, Cells, DataTable, ExpectedColumns, NamedColumn, dates::civil};
use crate::{DataError, ranks::Ranks, words::joined};

/// The month shows only if the rows span more than a year, otherwise it repeats the day.
const YEAR: f64 = 366.0;
/// The weekday shows only if each occurs more than once.
const TWO_WEEKS: f64 = 14.0;
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// A part of a date that is a category.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DatePart {
    Month,
    Weekday,
}

impl DatePart {
    const ALL: [Self; 2] = [Self::Month, Self::Weekday];

    fn name(self) -> &'static str {
        match self {
            Self::Month => "month",
            Self::Weekday => "weekday",
        }
    }

    /// The position of a day in the words.
    fn code(self, days: f64) -> usize {
        let days = days.floor() as i64;
        match self {
            Self::Month => civil(days).1 as usize - 1,
            // 1970-01-01 was a Thursday.
            Self::Weekday => (days + 3).rem_euclid(7) as usize,
        }
    }

    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Month => &MONTHS,
            Self::Weekday => &WEEKDAYS,
        }
    }

    fn span(self) -> f64 {
        match self {
            Self::Month => YEAR,
            Self::Weekday => TWO_WEEKS,
        }
    }
}

/// What a column of dates became.
pub(super) struct DateParts {
    pub(super) name: String,
    /// In words.
    pub(super) became: String,
}

/// Adds the columns `day month` and `day weekday` of each column `day` of dates: those that the model has, or those that the
/// rows of all ranks make useful. Returns what each date became.
pub(super) fn add_parts(
    table: &mut DataTable,
    expected: Option<&ExpectedColumns>,
    ranks: &Ranks<'_>,
) -> Result<Vec<DateParts>, DataError> {
    let (mut columns, mut found) = (Vec::new(), Vec::new());
    for column in std::mem::take(&mut table.columns) {
        let mut parts = Vec::new();
        if let (CellForm::Date(_), Cells::Numbers(days)) = (column.form, &column.cells) {
            for part in DatePart::ALL {
                let name = format!("{} {}", column.name, part.name());
                let wanted = match expected {
                    Some(of) => of.kinds.get(&name) == Some(&CellKind::Word) && !of.order.contains(&name),
                    None => !table.order.contains(&name) && is_useful(part, days, ranks)?,
                };
                if wanted {
                    parts.push((part, NamedColumn { name, cells: words(part, days), form: CellForm::Plain }));
                }
            }
            let became: Vec<&str> = ["days"].into_iter().chain(parts.iter().map(|(part, _)| part.name())).collect();
            found.push(DateParts { name: column.name.clone(), became: joined(&became) });
        }
        columns.push(column);
        columns.extend(parts.into_iter().map(|(_, column)| column));
    }
    table.columns = columns;
    Ok(found)
}

/// Whether the days of all ranks span enough, and more than one word of the part occurs.
fn is_useful(part: DatePart, days: &[f64], ranks: &Ranks<'_>) -> Result<bool, DataError> {
    let mut seen = vec![0.0; part.words().len()];
    let [mut before, mut last] = [f64::NEG_INFINITY; 2];
    for &day in days.iter().filter(|day| !day.is_nan()) {
        (before, last) = (before.max(-day), last.max(day));
        seen[part.code(day)] = 1.0;
    }
    seen.extend([before, last]);
    ranks.largest(&mut seen)?;
    let [seen @ .., before, last] = &seen[..] else { unreachable!("two numbers were added") };
    Ok(last + before > part.span() && seen.iter().sum::<f64>() > 1.0)
}

fn words(part: DatePart, days: &[f64]) -> Cells {
    let code = |&day: &f64| if day.is_nan() { BLANK } else { part.code(day) as u32 };
    Cells::Words {
        codes: days.iter().map(code).collect(),
        words: part.words().iter().map(ToString::to_string).collect(),
    }
}
