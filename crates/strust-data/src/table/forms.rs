//! How the cells of a column are written: plain numbers, numbers with marks, dates.
//!
//! A cell such as `1,234` has more than one reading. All cells of a column together decide: a form must read each of them,
//! and the first such form in the order of [`CellForm::all`] is it.

use super::{cells::number, dates::DateOrder};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The signs of amounts: none, percent, and currencies.
const UNITS: [&str; 16] = ["", "%", "$", "€", "£", "¥", "₹", "₩", "USD", "EUR", "GBP", "CHF", "JPY", "CNY", "kr", "zł"];
/// The number of forms.
const FORMS: usize = 1 + 2 * UNITS.len() + DateOrder::ALL.len();
/// Texts that stand for no value in a column of numbers, in upper or lower case. In a column of words they are words.
const SENTINELS: [&str; 17] = [
    "-",
    "--",
    "–",
    "—",
    ".",
    "none",
    "<na>",
    "#n/a",
    "n.a.",
    "k.a.",
    "unknown",
    "unbekannt",
    "missing",
    "nil",
    "not available",
    "#value!",
    "#div/0!",
];

/// Whether a cell in a column of numbers stands for no value.
pub(super) fn is_sentinel(cell: &[u8]) -> bool {
    SENTINELS.iter().any(|sentinel| cell.eq_ignore_ascii_case(sentinel.as_bytes()))
}

/// How the numbers of a column are written. In model files it is an example, such as `$1,234.5`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum CellForm {
    /// `1234.5`, as programs write numbers.
    #[default]
    Plain,
    /// `1,234.5` or `1.234,5`, also with spaces or apostrophes between thousands, and with a sign such as `$` or `%`.
    Marked(NumberMarks),
    /// A date, which becomes the number of days since 1970-01-01. A time is a fraction of a day.
    Date(DateOrder),
}

/// The marks of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberMarks {
    /// Whether decimals follow a comma.
    comma: bool,
    /// The position of the sign in [`UNITS`].
    unit: usize,
}

impl CellForm {
    /// Whether numbers are plain.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::Plain
    }

    /// All forms. If several read a column, the first one does.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let marked = |unit| [false, true].map(|comma| Self::Marked(NumberMarks { comma, unit }));
        let marked = (0..UNITS.len()).flat_map(marked);
        [Self::Plain].into_iter().chain(marked).chain(DateOrder::ALL.map(Self::Date))
    }

    /// The finite number that a cell stands for; `None` if it is not written in this form.
    pub(super) fn read(self, cell: &[u8]) -> Option<f64> {
        let text = || std::str::from_utf8(cell).ok().filter(|text| text.contains(|c: char| c.is_ascii_digit()));
        let value = match self {
            Self::Plain => number(cell),
            Self::Marked(marks) => marks.read(text()?),
            Self::Date(order) => order.read(text()?),
        };
        value.filter(|value| value.is_finite())
    }
}

impl NumberMarks {
    fn read(self, text: &str) -> Option<f64> {
        let unit = UNITS[self.unit];
        let minus = |text| str::strip_prefix(text, ['-', '−']).map_or((false, text), |rest| (true, rest));
        let (before, text) = minus(text.trim());
        let bare = text.strip_prefix(unit).or_else(|| text.strip_suffix(unit));
        // Some cells may lack the currency, but 5 and 5 % are different numbers.
        let bare = if unit == "%" { bare? } else { bare.unwrap_or(text) };
        let (after, digits) = minus(bare.trim());
        let value = self.ungrouped(digits)?;
        match (before, after) {
            (true, true) => None,
            (false, false) => Some(value),
            _ => Some(-value),
        }
    }

    /// The number without the signs between its thousands. Zeros before the first sign would be odd: `0,123` has decimals.
    fn ungrouped(self, text: &str) -> Option<f64> {
        let (decimal, other) = if self.comma { (',', '.') } else { ('.', ',') };
        let (whole, decimals) = text.split_once(decimal).map_or((text, None), |(whole, rest)| (whole, Some(rest)));
        let is_separator = |c: &char| [other, '\'', '’', ' ', '\u{a0}', '\u{2009}', '\u{202f}'].contains(c);
        let mut plain = match whole.chars().find(is_separator) {
            None => whole.to_string(),
            Some(separator) => {
                let mut groups = whole.split(separator);
                let first =
                    groups.next().is_some_and(|first| (1..=3).contains(&first.len()) && !first.starts_with('0'));
                let plain = whole.replace(separator, "");
                let regular = first && groups.all(|group| group.len() == 3);
                (regular && plain.bytes().all(|byte| byte.is_ascii_digit())).then_some(plain)?
            }
        };
        if let Some(decimals) = decimals {
            plain.push('.');
            plain.push_str(decimals);
        }
        number(plain.as_bytes())
    }
}

impl fmt::Display for CellForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain => f.write_str("1234.5"),
            Self::Marked(NumberMarks { comma, unit }) => {
                let (number, unit) = (if *comma { "1.234,5" } else { "1,234.5" }, UNITS[*unit]);
                match unit {
                    "" => f.write_str(number),
                    "%" => write!(f, "{number} %"),
                    unit => write!(f, "{unit}{number}"),
                }
            }
            Self::Date(order) => order.fmt(f),
        }
    }
}

impl From<CellForm> for String {
    fn from(form: CellForm) -> Self {
        form.to_string()
    }
}

impl TryFrom<String> for CellForm {
    type Error = String;
    fn try_from(example: String) -> Result<Self, String> {
        let unknown = || format!("cells are written like {example:?}, which this program does not read");
        Self::all().find(|form| form.to_string() == example).ok_or_else(unknown)
    }
}

/// How many of some cells each form reads.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FormSurvey {
    pub(super) cells: u64,
    read: Vec<u64>,
}

impl Default for FormSurvey {
    fn default() -> Self {
        Self { cells: 0, read: vec![0; FORMS] }
    }
}

impl FormSurvey {
    /// Adds some equal cells.
    pub(super) fn add(&mut self, cell: &[u8], times: u64) {
        self.cells += times;
        for (read, form) in self.read.iter_mut().zip(CellForm::all()) {
            *read += if form.read(cell).is_some() { times } else { 0 };
        }
    }

    pub(super) fn append(&mut self, other: &Self) {
        self.cells += other.cells;
        self.read.iter_mut().zip(&other.read).for_each(|(read, more)| *read += more);
    }

    /// The forms that read all cells, as bits.
    pub(super) fn forms(&self) -> u64 {
        (0..FORMS).filter(|&k| self.read[k] == self.cells).fold(0, |forms, k| forms | 1 << k)
    }

    /// The form that reads the most cells, and how many.
    pub(super) fn best(&self) -> (CellForm, u64) {
        let better = |best: (CellForm, u64), next: (CellForm, u64)| if next.1 > best.1 { next } else { best };
        CellForm::all().zip(self.read.iter().copied()).fold((CellForm::Plain, 0), better)
    }
}

/// The first of some forms.
pub(super) fn first_form(forms: u64) -> Option<CellForm> {
    CellForm::all().enumerate().find(|(k, _)| forms >> k & 1 == 1).map(|(_, form)| form)
}

/// Whether a text is a number or a date in some form.
pub(super) fn is_readable(text: &str) -> bool {
    CellForm::all().any(|form| form.read(text.as_bytes()).is_some())
}
