//! Validated configuration. Each method has one table for defaults, checks, documentation and listings.

use crate::Error;
use std::{fmt, ops::Deref};

/// An interval of allowed numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    low: f64,
    low_open: bool,
    high: f64,
    high_open: bool,
}

impl Range {
    /// Finite numbers greater than `low`.
    #[must_use]
    pub const fn above(low: f64) -> Self {
        Self { low, low_open: true, high: f64::INFINITY, high_open: true }
    }
    /// Finite numbers of at least `low`.
    #[must_use]
    pub const fn at_least(low: f64) -> Self {
        Self { low, low_open: false, high: f64::INFINITY, high_open: true }
    }
    /// The open interval (low, high).
    #[must_use]
    pub const fn open(low: f64, high: f64) -> Self {
        Self { low, low_open: true, high, high_open: true }
    }
    /// The half-open interval [low, high).
    #[must_use]
    pub const fn from_to(low: f64, high: f64) -> Self {
        Self { low, low_open: false, high, high_open: true }
    }
    /// The half-open interval (low, high].
    #[must_use]
    pub const fn up_to(low: f64, high: f64) -> Self {
        Self { low, low_open: true, high, high_open: false }
    }
    /// The closed interval [low, high].
    #[must_use]
    pub const fn closed(low: f64, high: f64) -> Self {
        Self { low, low_open: false, high, high_open: false }
    }
    /// Whether `value` is a finite number in the interval.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        let above = if self.low_open { value > self.low } else { value >= self.low };
        let below = if self.high_open { value < self.high } else { value <= self.high };
        value.is_finite() && above && below
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.high.is_infinite() {
            return write!(f, "{} {}", if self.low_open { ">" } else { "≥" }, self.low);
        }
        let (l, r) = (if self.low_open { '(' } else { '[' }, if self.high_open { ')' } else { ']' });
        write!(f, "in {l}{}, {}{r}", self.low, self.high)
    }
}

/// The allowed values of a configuration field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Allowed {
    /// A number in a range.
    Number(Range),
    /// A whole number in a range.
    Whole(Range),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Any text of this kind, such as a file's path.
    Text(&'static str),
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(range) => write!(f, "{range}"),
            Self::Whole(range) => write!(f, "a whole number {range}"),
            Self::OneOf(words) => write!(f, "one of {}", words.join(", ")),
            Self::Text(kind) => f.write_str(kind),
        }
    }
}

/// One row of a method's parameter table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Field {
    /// The name in Rust and in experiment files.
    pub name: &'static str,
    /// The allowed values.
    pub allowed: Allowed,
    /// The meaning.
    pub meaning: &'static str,
}

/// A configuration that is not yet checked. [`check`](Self::check) turns it into a [`Checked`] one.
pub trait Config: Default + Clone + fmt::Debug + Portable {
    /// The method's name in errors, experiment files and reports.
    const NAME: &'static str;
    /// The parameter table.
    const FIELDS: &'static [Field];

    /// The numeric fields, in the order of [`Self::FIELDS`]; `None` for words.
    fn numbers(&self) -> Vec<Option<f64>>;

    /// Conditions between fields.
    fn check_relations(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Checks every field against its range, then the conditions between fields.
    fn check(self) -> Result<Checked<Self>, Error> {
        for (field, value) in Self::FIELDS.iter().zip(self.numbers()) {
            if let (Allowed::Number(range) | Allowed::Whole(range), Some(value)) = (field.allowed, value)
                && !range.contains(value)
            {
                return Err(out_of_range(Self::NAME, field.name, value, field.allowed));
            }
        }
        self.check_relations()?;
        Ok(Checked(self))
    }
}

macro_rules! portable {
    ($($bound:tt)*) => {
        /// A type that serde can write and read. Without the feature `serde`, any type.
        pub trait Portable: $($bound)* {}
        impl<T: $($bound)*> Portable for T {}
    };
}
#[cfg(feature = "serde")]
portable!(serde::Serialize + serde::de::DeserializeOwned);
#[cfg(not(feature = "serde"))]
portable!(Sized);

/// The error for a value outside of its range.
pub fn out_of_range(
    owner: &'static str,
    field: &'static str,
    value: impl fmt::Display,
    allowed: impl fmt::Display,
) -> Error {
    Error::OutOfRange { owner, field, value: value.to_string(), allowed: allowed.to_string() }
}

/// A configuration that passed [`Config::check`]. Methods store configurations only in this form.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked<C>(C);

impl<C> Deref for Checked<C> {
    type Target = C;
    fn deref(&self) -> &C {
        &self.0
    }
}

/// A value of a configuration field: a number or a word.
pub trait FieldValue {
    /// The number that is compared with the range; `None` for a word.
    fn number(&self) -> Option<f64>;
}

impl FieldValue for f64 {
    fn number(&self) -> Option<f64> {
        Some(*self)
    }
}

impl FieldValue for u64 {
    fn number(&self) -> Option<f64> {
        Some(*self as f64)
    }
}

impl FieldValue for Vec<f64> {
    /// A list has more than one number. The code that reads the list checks its entries.
    fn number(&self) -> Option<f64> {
        None
    }
}

impl FieldValue for String {
    fn number(&self) -> Option<f64> {
        None
    }
}

/// Declares a configuration struct. Documentation, type, default and range of each field are written once.
///
/// ```
/// use strust::config::Config;
/// strust::config! {
///     /// Configuration of my problem.
///     pub struct MineConfig for "mine" {
///         /// Number of terms.
///         pub n: u64 = 100, Whole(Range::at_least(1.0));
///     }
/// }
/// assert!(MineConfig { n: 0 }.check().is_err());
/// ```
///
/// If the feature `serde` is on, a crate that uses this macro must depend on `serde` with the feature `derive`.
#[macro_export]
macro_rules! config {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident for $method:literal {
            $( $(#[doc = $meaning:literal])+ pub $field:ident: $ty:ty = $default:expr, $allowed:expr; )*
        }
        $( where $check:expr )?
    ) => {
        $crate::config_with_serde! {
            $(#[doc = $doc])*
            ///
            /// | field | default | allowed | meaning |
            /// |---|---|---|---|
            $(#[doc = concat!("| `", stringify!($field), "` | `", stringify!($default), "` | `", stringify!($allowed), "` |", $($meaning,)+ " |")])*
            #[derive(Debug, Clone, PartialEq)]
            pub struct $name {
                $( $(#[doc = $meaning])+ pub $field: $ty, )*
            }
        }
        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $default, )* }
            }
        }
        impl $crate::config::Config for $name {
            const NAME: &'static str = $method;
            const FIELDS: &'static [$crate::config::Field] = &[
                $( $crate::config::Field {
                    name: stringify!($field),
                    allowed: { use $crate::config::words::*; const ALLOWED: $crate::config::Allowed = $allowed; ALLOWED },
                    meaning: concat!($($meaning,)+).trim_ascii(),
                }, )*
            ];
            fn numbers(&self) -> Vec<Option<f64>> {
                vec![ $( $crate::config::FieldValue::number(&self.$field), )* ]
            }
            $( fn check_relations(&self) -> Result<(), $crate::Error> {
                let check: fn(&Self) -> Result<(), $crate::Error> = $check;
                check(self)
            } )?
        }
    };
}

/// Derives the traits of serde for a configuration, if the feature `serde` is on.
#[cfg(feature = "serde")]
#[doc(hidden)]
#[macro_export]
macro_rules! config_with_serde {
    ($($item:tt)*) => {
        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        $($item)*
    };
}
#[cfg(not(feature = "serde"))]
#[doc(hidden)]
#[macro_export]
macro_rules! config_with_serde {
    ($($item:tt)*) => { $($item)* };
}

/// The names that [`config!`](crate::config!) uses for ranges.
#[doc(hidden)]
pub mod words {
    pub use super::{Allowed::*, Range};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_reject_nan_infinity_and_open_ends() {
        let r = Range::open(0.0, 1.0);
        assert!(r.contains(0.5) && !r.contains(0.0) && !r.contains(1.0));
        assert!(!r.contains(f64::NAN) && !Range::above(0.0).contains(f64::INFINITY));
        assert!(Range::from_to(0.0, 1.0).contains(0.0) && Range::closed(0.0, 1.0).contains(1.0));
        assert_eq!(Range::above(1.0).to_string(), "> 1");
        assert_eq!(Range::from_to(0.0, 1.0).to_string(), "in [0, 1)");
    }
}
