//! Plain data of every stage of an experiment. Nothing here reads or writes a file.

mod checksum;
pub mod diagnosis;
pub mod experiment;
pub mod figure;
mod numbers;
pub mod parameters;
pub mod plan;
pub mod record;
pub mod section;
pub mod summary;
pub(crate) mod totals;

pub(crate) use checksum::checksum;
