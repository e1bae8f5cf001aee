//! Dates: days since 1970-01-01, and the month and the weekday as columns of their own.

use super::{BLANK, CellForm, CellKind, Cells, DataTable, ExpectedColumns, NamedColumn};
use crate::{DataError, ranks::Ranks, words::joined};
use std::fmt;

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

/// The order of the parts of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DateOrder {
    /// `2024-12-31`, also with slashes or points.
    YearFirst,
    /// `31.12.2024`, also with slashes or hyphens.
    DayFirst,
    /// `12/31/2024`, also with hyphens. Points are for dates with the day first.
    MonthFirst,
}

impl DateOrder {
    pub(super) const ALL: [Self; 3] = [Self::YearFirst, Self::DayFirst, Self::MonthFirst];

    /// The order that `5/6/2024` could have as well.
    pub(super) fn swapped(self) -> Self {
        match self {
            Self::YearFirst => Self::YearFirst,
            Self::DayFirst => Self::MonthFirst,
            Self::MonthFirst => Self::DayFirst,
        }
    }

    /// The days since 1970-01-01, with the time of day as a fraction. An offset from UTC is subtracted.
    pub(super) fn read(self, text: &str) -> Option<f64> {
        let (date, time) = text.split_once(['T', ' ']).map_or((text, None), |(date, time)| (date, Some(time)));
        let sign = date.chars().find(|c| !c.is_ascii_digit()).filter(|c| "-/.".contains(*c))?;
        let parts: Vec<&str> = date.split(sign).collect();
        let &[first, second, third] = &parts[..] else { return None };
        let [year, month, day] = match self {
            Self::YearFirst => [first, second, third],
            Self::DayFirst => [third, second, first],
            Self::MonthFirst if sign == '.' => return None,
            Self::MonthFirst => [third, first, second],
        };
        let year = match (year.len(), whole(year, 9999)?) {
            (4, year) => year,
            // As POSIX reads two digits.
            (2, year) if self != Self::YearFirst => year + if year < 69 { 2000 } else { 1900 },
            _ => return None,
        };
        let (month, day) = (short(month, 12).filter(|&month| month > 0)?, short(day, 31).filter(|&day| day > 0)?);
        let days = days(year, month, day);
        // The 31st of a short month is a day of the next one.
        (civil(days).1 == month).then_some(())?;
        Some(days as f64 + time.map_or(Some(0.0), fraction)?)
    }
}

impl fmt::Display for DateOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::YearFirst => "2024-12-31",
            Self::DayFirst => "31.12.2024",
            Self::MonthFirst => "12/31/2024",
        })
    }
}

/// A whole number of digits only.
fn whole(text: &str, most: i64) -> Option<i64> {
    let value = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()?;
    (value <= most).then_some(value)
}

/// One of one or two digits.
fn short(text: &str, most: i64) -> Option<i64> {
    whole(text, most).filter(|_| (1..=2).contains(&text.len()))
}

/// A time such as `10:30`, `10:30:05.25`, `10:30 PM`, `10:30Z` or `10:30+02:00` as a part of a day.
fn fraction(text: &str) -> Option<f64> {
    let text = text.trim();
    let (text, offset) = match text.strip_suffix(['Z', 'z']) {
        Some(text) => (text, 0.0),
        None => match text.rfind(['+', '-']) {
            None => (text, 0.0),
            Some(at) => {
                let digits: String = text[at + 1..].chars().filter(|&c| c != ':').collect();
                let (hours, minutes) = digits.split_at_checked(2)?;
                let minutes = if minutes.is_empty() { 0 } else { short(minutes, 59)? };
                let offset = (60 * short(hours, 14)? + minutes) as f64;
                (&text[..at], if text[at..].starts_with('-') { -offset } else { offset })
            }
        },
    };
    let text = text.trim_end();
    let (start, half) = text.split_at_checked(text.len().saturating_sub(2))?;
    let afternoon = match half.to_ascii_uppercase().as_str() {
        "AM" => Some(false),
        "PM" => Some(true),
        _ => None,
    };
    let text = if afternoon.is_some() { start.trim() } else { text };
    let mut parts = text.splitn(3, ':');
    let (hour, minute) = (short(parts.next()?, 23)?, short(parts.next()?, 59)?);
    let hour = match afternoon {
        None => hour,
        Some(afternoon) => (hour <= 12).then_some(hour % 12 + if afternoon { 12 } else { 0 })?,
    };
    let second = match parts.next() {
        None => 0.0,
        Some(second) => {
            let digits = second.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            digits.then(|| second.parse().ok()).flatten().filter(|&second: &f64| second < 61.0)?
        }
    };
    Some((((60 * hour + minute) as f64 - offset) * 60.0 + second) / 86_400.0)
}

/// The days from 1970-01-01 to a date. Years start in March, so that the leap day is the last one.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + 365 * of_era + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The year, month and day that many days after 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + 400 * era + i64::from(month <= 2), month, day)
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_dates_and_times_are_read() {
        for (order, text, expected) in [
            (DateOrder::YearFirst, "1970-01-01", 0.0),
            (DateOrder::YearFirst, "2000/02/29", 11016.0),
            (DateOrder::YearFirst, "1969-12-31T12:00", -0.5),
            (DateOrder::YearFirst, "1970-01-02 06:00:00Z", 1.25),
            (DateOrder::YearFirst, "1970-01-02T06:00:00.000+06:00", 1.0),
            (DateOrder::YearFirst, "1970-01-01 18:00 -0600", 1.0),
            (DateOrder::DayFirst, "2.1.70", 1.0),
            (DateOrder::DayFirst, "1.1.00", 10957.0),
            (DateOrder::MonthFirst, "1/2/1970 12:00 AM", 1.0),
            (DateOrder::MonthFirst, "1/2/1970 6:00 pm", 1.75),
        ] {
            assert_eq!(order.read(text).map(f64::to_bits), Some(expected).map(f64::to_bits), "{text}");
        }
        for text in [
            "2024-13-01",
            "2023-02-29",
            "2024-1",
            "24-01-01",
            "2024-01-01T25:00",
            "2024-01-01x",
            "2024-01-01 ",
            "2024-01-01 noon",
        ] {
            assert_eq!(DateOrder::YearFirst.read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_written_date_is_read_back(number in -700_000..2_900_000_i64, minutes in 0..1440_i64) {
            let (year, month, day) = civil(number);
            let (hour, minute) = (minutes / 60, minutes % 60);
            for (order, text) in [
                (DateOrder::YearFirst, format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}")),
                (DateOrder::DayFirst, format!("{day}.{month}.{year:04} {hour}:{minute:02}:00")),
                (DateOrder::MonthFirst, format!("{month}/{day}/{year:04} {hour:02}:{minute:02}")),
            ] {
                let read = order.read(&text).unwrap();
                prop_assert!((read - number as f64 - minutes as f64 / 1440.0).abs() < 1e-9, "{text}");
            }
        }
    }
}
