//! Plain data of every stage of an experiment. Nothing here reads or writes a file.

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
