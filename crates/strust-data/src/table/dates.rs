//! Dates as days since 1970-01-01.

use std::fmt;

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
pub(super) fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + 400 * era + i64::from(month <= 2), month, day)
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
            assert_eq!(order.read(text).map(f64::to_bits), Some(f64::to_bits(expected)), "{text}");
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
