//! From records to summaries, choices of settings, and diagnoses.

pub mod diagnose;
pub mod network;
mod outcome;
mod summarize;
mod tune;

pub(crate) use outcome::{Finished, Outcome, outcome};
pub(crate) use summarize::summary;
pub(crate) use tune::choose;
