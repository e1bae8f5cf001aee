//! The interface for showing the progress of an experiment.

/// Shows the progress of a whole experiment.
pub trait RunProgress: Sync {
    /// A stage of `jobs` jobs starts.
    fn begin(&self, stage: &str, jobs: usize);
    /// A job starts. The handle shows its progress.
    fn job<'a>(&'a self, name: &str) -> Box<dyn JobProgress + 'a>;
}

/// Shows the progress of one job.
pub trait JobProgress {
    /// The job has made `step` of `last` steps.
    fn at(&mut self, step: u64, last: u64);
    /// Shows a warning about the job. Several jobs may report the same warning.
    fn warn(&mut self, warning: &str);
    /// The job is finished, or failed with this error.
    fn end(&mut self, error: Option<&str>);
    /// The job stops before its end.
    fn stop(&mut self);
}

/// Shows nothing.
pub struct Silent;

impl RunProgress for Silent {
    fn begin(&self, _: &str, _: usize) {}
    fn job<'a>(&'a self, _: &str) -> Box<dyn JobProgress + 'a> {
        Box::new(Silent)
    }
}

impl JobProgress for Silent {
    fn at(&mut self, _: u64, _: u64) {}
    fn warn(&mut self, _: &str) {}
    fn end(&mut self, _: Option<&str>) {}
    fn stop(&mut self) {}
}
