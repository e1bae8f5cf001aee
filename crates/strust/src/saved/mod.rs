//! States as data: one form for all of them, so that files, messages between ranks and other programs need one encoder and
//! one decoder, not one for each method and type of point.
//!
//! [`Saved`] is a tree of named parts. [`Save`] turns a value into it and [`Load`] turns it back, bit for bit.
//! With the feature `serde` a [`Saved`] can be written in any format of serde, and so can all states.
//!
//! ```
//! use strust::{methods::StrState, prelude::*, saved::{Load, Save, Saved}};
//! let mut f = from_terms(1, |_, x: &Vec<f64>, g| { g[0] += 2.0 * x[0]; x[0] * x[0] });
//! let mut method = Str::default();
//! let state = method.init(&mut f, vec![3.0])?;
//! let saved: Saved = state.save();
//! assert_eq!(StrState::load(&saved)?, state); // `Method::restore` does this where the type is not known
//! # Ok::<(), strust::Error>(())
//! ```

mod fingerprint;
#[cfg(feature = "serde")]
mod format;
pub mod vector;

#[cfg(feature = "serde")]
#[doc(hidden)]
pub use ::serde;
pub use fingerprint::fingerprint;
pub use vector::SavedVector;

use crate::Error;
use std::borrow::Cow;

/// A value as a tree of named parts.
#[derive(Debug, Clone, PartialEq)]
pub enum Saved {
    /// No value.
    Nothing,
    /// Yes or no.
    Flag(bool),
    /// A whole number of at least 0.
    Count(u64),
    /// A negative whole number.
    Negative(i64),
    /// A number.
    Number(f64),
    /// A word.
    Text(Cow<'static, str>),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A vector.
    Vector(SavedVector),
    /// Several values.
    List(Vec<Saved>),
    /// Named values, in their order.
    Map(Vec<(Cow<'static, str>, Saved)>),
}

/// A value that can be saved.
pub trait Save {
    /// The value as a tree.
    fn save(&self) -> Saved;
}

/// A value that can be read back.
pub trait Load: Save + Sized {
    /// The value of a tree. It has the same bits as before it was saved.
    fn load(saved: &Saved) -> Result<Self, Error>;
}

impl Saved {
    /// The part of this name, with the name in the errors of `load`. A part that is missing is [`Saved::Nothing`].
    pub fn part<T>(&self, name: &str, load: impl FnOnce(&Saved) -> Result<T, Error>) -> Result<T, Error> {
        let Self::Map(parts) = self else {
            return Err(self.is_not("named values"));
        };
        let part = parts.iter().find(|(key, _)| key == name).map(|(_, part)| part);
        load(part.unwrap_or(&Self::Nothing)).map_err(|error| match error {
            Error::Saved(_) if part.is_none() => {
                Error::Saved(format!("`{name}` is missing: another method wrote it, or another version of strust"))
            }
            Error::Saved(why) => Error::Saved(format!("`{name}`: {why}")),
            error => error,
        })
    }

    /// The first of these names under which there is a part, else the first.
    #[must_use]
    pub fn name_of_part(&self, names: &[&'static str]) -> &'static str {
        let Self::Map(parts) = self else { return names[0] };
        names.iter().find(|name| parts.iter().any(|(key, _)| key == *name)).unwrap_or(&names[0])
    }

    /// Named values, without those that are [`Saved::Nothing`].
    #[must_use]
    pub fn map<const N: usize>(parts: [(&'static str, Saved); N]) -> Self {
        let there = parts.into_iter().filter(|(_, part)| *part != Self::Nothing);
        Self::Map(there.map(|(name, part)| (name.into(), part)).collect())
    }

    /// A case of an enum with a value, as serde writes it.
    #[must_use]
    pub fn case(name: &'static str, value: Saved) -> Self {
        Self::Map(vec![(name.into(), value)])
    }

    /// The name of a case of an enum, and its value.
    pub fn as_case(&self) -> Result<(&str, &Saved), Error> {
        match self {
            Self::Text(name) => Ok((name, &Self::Nothing)),
            Self::Map(parts) if parts.len() == 1 => Ok((&parts[0].0, &parts[0].1)),
            _ => Err(self.is_not("a case")),
        }
    }

    fn is_not(&self, wanted: &str) -> Error {
        let found = match self {
            Self::Nothing => "nothing",
            Self::Flag(_) => "a flag",
            Self::Count(_) | Self::Negative(_) => "a whole number",
            Self::Number(_) => "a number",
            Self::Text(_) => "a word",
            Self::Bytes(_) => "bytes",
            Self::Vector(_) => "a vector",
            Self::List(_) => "a list",
            Self::Map(_) => "named values",
        };
        Error::Saved(format!("{found} instead of {wanted}"))
    }
}

impl Save for Saved {
    fn save(&self) -> Saved {
        self.clone()
    }
}

impl Save for () {
    fn save(&self) -> Saved {
        Saved::Nothing
    }
}
impl Load for () {
    fn load(_: &Saved) -> Result<Self, Error> {
        Ok(())
    }
}

impl Save for bool {
    fn save(&self) -> Saved {
        Saved::Flag(*self)
    }
}
impl Load for bool {
    fn load(saved: &Saved) -> Result<Self, Error> {
        if let Saved::Flag(flag) = saved { Ok(*flag) } else { Err(saved.is_not("a flag")) }
    }
}

impl Save for f64 {
    fn save(&self) -> Saved {
        Saved::Number(*self)
    }
}
impl Load for f64 {
    fn load(saved: &Saved) -> Result<Self, Error> {
        match saved {
            Saved::Number(number) => Ok(*number),
            Saved::Count(count) => Ok(*count as f64),
            Saved::Negative(number) => Ok(*number as f64),
            Saved::Text(word) => vector::number(word),
            _ => Err(saved.is_not("a number")),
        }
    }
}

macro_rules! whole_numbers {
    ($($t:ty),*) => {$(
        impl Save for $t {
            fn save(&self) -> Saved {
                Saved::Count(*self as u64)
            }
        }
        impl Load for $t {
            fn load(saved: &Saved) -> Result<Self, Error> {
                let number = if let Saved::Count(count) = saved { Self::try_from(*count).ok() } else { None };
                number.ok_or_else(|| saved.is_not(concat!("a whole number of type ", stringify!($t))))
            }
        }
    )*};
}
whole_numbers!(u64, usize);

impl<T: Save> Save for Option<T> {
    fn save(&self) -> Saved {
        self.as_ref().map_or(Saved::Nothing, Save::save)
    }
}
impl<T: Load> Load for Option<T> {
    fn load(saved: &Saved) -> Result<Self, Error> {
        if *saved == Saved::Nothing { Ok(None) } else { T::load(saved).map(Some) }
    }
}

impl<T: Save> Save for Vec<T> {
    fn save(&self) -> Saved {
        Saved::List(self.iter().map(Save::save).collect())
    }
}
impl<T: Load> Load for Vec<T> {
    fn load(saved: &Saved) -> Result<Self, Error> {
        if let Saved::List(list) = saved { list.iter().map(T::load).collect() } else { Err(saved.is_not("a list")) }
    }
}

impl<T: Save, const N: usize> Save for [T; N] {
    fn save(&self) -> Saved {
        Saved::List(self.iter().map(Save::save).collect())
    }
}
impl<T: Load, const N: usize> Load for [T; N] {
    fn load(saved: &Saved) -> Result<Self, Error> {
        let list = Vec::load(saved)?;
        let found = list.len();
        list.try_into().map_err(|_| Error::Saved(format!("a list of {found} instead of {N} values")))
    }
}

impl<A: Save, B: Save> Save for (A, B) {
    fn save(&self) -> Saved {
        Saved::List(vec![self.0.save(), self.1.save()])
    }
}
impl<A: Load, B: Load> Load for (A, B) {
    fn load(saved: &Saved) -> Result<Self, Error> {
        match saved {
            Saved::List(list) if list.len() == 2 => Ok((A::load(&list[0])?, B::load(&list[1])?)),
            _ => Err(saved.is_not("a pair")),
        }
    }
}

/// Implements [`Save`] and [`Load`] for a struct, and with the feature `serde` also its traits. It lists
/// every field; one whose type is any [`Vector`](crate::vector::Vector) is marked as such. `new | old` also reads a field that
/// was saved under an older name.
///
/// ```
/// use strust::{saved::{Load, Save}, vector::Vector};
/// #[derive(Debug, PartialEq)]
/// struct Memory<V> { gradient: V, scale: f64 }
/// strust::saved!([V: Vector] Memory<V> { gradient: vector, scale });
///
/// let memory = Memory { gradient: vec![1.0_f32, -0.0], scale: 0.5 };
/// assert_eq!(Memory::load(&memory.save())?, memory);
/// # Ok::<(), strust::Error>(())
/// ```
#[macro_export]
macro_rules! saved {
    (@save $field:expr) => { $crate::saved::Save::save($field) };
    (@save $field:expr, vector) => { $crate::saved::vector::save($field) };
    (@load) => { $crate::saved::Load::load };
    (@load vector) => { $crate::saved::vector::load };
    ([$($generics:tt)*] $type:ty { $($field:ident $(| $old:ident)? $(: $kind:ident)?),* $(,)? }) => {
        impl<$($generics)*> $crate::saved::Save for $type {
            fn save(&self) -> $crate::saved::Saved {
                $crate::saved::Saved::map([
                    $((stringify!($field), $crate::saved!(@save &self.$field $(, $kind)?)),)*
                ])
            }
        }
        impl<$($generics)*> $crate::saved::Load for $type {
            fn load(saved: &$crate::saved::Saved) -> Result<Self, $crate::Error> {
                Ok(Self {
                    $($field: saved.part(
                        saved.name_of_part(&[stringify!($field) $(, stringify!($old))?]),
                        $crate::saved!(@load $($kind)?),
                    )?,)*
                })
            }
        }
        $crate::serde_as_saved!([$($generics)*] $type);
    };
}

/// Implements the traits of serde through [`Save`] and [`Load`], if the feature `serde` is on.
#[cfg(feature = "serde")]
#[doc(hidden)]
#[macro_export]
macro_rules! serde_as_saved {
    ([$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> $crate::saved::serde::Serialize for $type {
            fn serialize<Out: $crate::saved::serde::Serializer>(&self, out: Out) -> Result<Out::Ok, Out::Error> {
                $crate::saved::serde::Serialize::serialize(&$crate::saved::Save::save(self), out)
            }
        }
        impl<'de, $($generics)*> $crate::saved::serde::Deserialize<'de> for $type {
            fn deserialize<In: $crate::saved::serde::Deserializer<'de>>(from: In) -> Result<Self, In::Error> {
                let saved: $crate::saved::Saved = $crate::saved::serde::Deserialize::deserialize(from)?;
                $crate::saved::Load::load(&saved).map_err($crate::saved::serde::de::Error::custom)
            }
        }
    };
}
#[cfg(not(feature = "serde"))]
#[doc(hidden)]
#[macro_export]
macro_rules! serde_as_saved {
    ([$($generics:tt)*] $type:ty) => {};
}
