//! Experiments: a TOML file becomes a plan, jobs, records, a summary and a report.
//!
//! ```text
//! experiment file → Plan → jobs → records.jsonl → Summary → report.html, figures
//! ```
//!
//! The same plan gives the same bytes in `records.jsonl` on every run and for any number of parallel jobs: every
//! stochastic result is a function of its seed. The exception is a network on a GPU with `precision = "single"`: its
//! bytes differ from run to run. Wall-clock times are in a separate file, `timings.jsonl`.
//!
//! The modules follow that pipeline. Each depends only on modules above it, and a test checks this:
//!
//! | module | contents |
//! |---|---|
//! | [`format`](mod@format), [`statistics`] | numbers as text; means, medians, slopes, intervals |
//! | [`data`] | plain data of every stage, without I/O |
//! | [`team`] | the ranks that the program runs on |
//! | [`io`] | atomic writes, the lock, checkpoints, logs |
//! | [`device`] | the devices that networks run on |
//! | `stepper` | a running method, step by step |
//! | [`registry`] | the methods and problems, one file each |
//! | [`experiment`] | experiment files: the parser and the built-in files |
//! | [`run`] | the worker pool and its jobs |
//! | [`analyze`] | summary, grid search, diagnosis, scores of a network |
//! | [`figure`], [`report`] | figures as SVG and PNG; the page |
//! | [`pipeline`] | all stages, from a plan to the report |
//! | [`suite`] | many experiments and checks in one folder |
//! | [`member`] | a rank that works for rank 0 |

pub mod analyze;
pub mod data;
pub mod device;
mod error;
pub mod experiment;
pub mod figure;
pub mod format;
pub mod io;
mod machine;
pub mod member;
pub mod pipeline;
pub mod registry;
pub mod report;
pub mod run;
pub mod statistics;
mod stepper;
pub mod suite;
pub mod team;

pub use error::Error;
pub use machine::{cores, describe as this_machine};
