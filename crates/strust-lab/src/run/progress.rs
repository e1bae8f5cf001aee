//! The interface for showing the progress of an experiment.

use serde::{Deserialize, Serialize};

/// Shows the progress of a whole experiment.
pub trait RunProgress: Sync {
    /// A stage of `jobs` jobs starts.
    fn begin(&self, stage: &str, jobs: usize);
    /// Something happens to a job of the stage, by its name.
    fn show(&self, job: &str, event: &JobEvent);
}

/// What happens to a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum JobEvent {
    /// It starts.
    Start,
    /// It has made the first number of steps, of the second.
    At(u64, u64),
    /// A warning about the job. Several jobs may report the same one.
    Warning(String),
    /// It is finished, or failed with this error.
    End(Option<String>),
    /// It stops before its end.
    Stop,
}

/// Shows nothing.
pub struct Silent;

impl RunProgress for Silent {
    fn begin(&self, _: &str, _: usize) {}
    fn show(&self, _: &str, _: &JobEvent) {}
}
