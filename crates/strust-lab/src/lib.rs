//! Experiments: a TOML file becomes a plan, jobs, records, a summary and a report.
//!
//! ```text
//! experiment file → Plan → jobs → records.jsonl → Summary → report.html, figures
//! ```
//!
//! Every stochastic result is a function of its seed: the same plan gives the same bytes in `records.jsonl` on every
//! run and for every number of jobs side by side, but for networks on a GPU, where rounding differs from run to run.
//! Wall-clock times live in `timings.jsonl`.

pub mod catalog;
mod checkpoint;
pub mod conduct;
pub mod diagnose;
mod error;
pub mod experiment;
pub mod figure;
mod files;
mod job;
mod machine;
pub mod network;
pub mod plan;
pub mod progress;
mod publish;
pub mod record;
pub mod report;
pub mod section;
mod summarize;
pub mod summary;
pub mod theory;
mod walk;

pub use error::Error;
pub use machine::{cores, describe as this_machine};
pub use publish::publish;
