//! Plain data of every stage of an experiment. Nothing here reads or writes a file.

/// Words for the variants of an enum.
macro_rules! words {
    ($type:ident: $($variant:ident = $word:literal),* $(,)?) => {
        impl $type {
            /// As a word.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }
    };
}

pub mod benchmark;
mod checksum;
pub mod command;
pub mod diagnosis;
pub mod experiment;
pub mod figure;
mod numbers;
pub mod parameters;
pub(crate) mod paths;
pub mod plan;
pub mod record;
pub mod section;
mod solution;
mod spread;
pub mod style;
pub mod summary;
pub(crate) mod totals;
mod tuning;

pub(crate) use checksum::{Checksum, checksum};
