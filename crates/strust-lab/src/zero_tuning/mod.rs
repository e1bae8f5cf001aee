//! The benchmark: a method without tuning beside baselines that are tuned for each task.
//!
//! ```text
//! experiments/zero-tuning.toml → BenchmarkSpec → grid searches → runs → TaskSummary → sections → report.html
//! ```
//!
//! Each task is an ordinary experiment with one problem. The jobs of all tasks run in one pool. Their records, folders and
//! checkpoints are those of experiments, so a stopped benchmark resumes in the same way.

mod compare;
mod figures;
mod measures;
mod parse;
mod run;
mod sections;

pub use parse::Resources;
pub use run::{BenchmarkPlan, load_summary, publish, resume, start};
