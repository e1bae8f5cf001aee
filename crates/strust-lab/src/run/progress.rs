//! Progress of a running experiment, for the program that shows it.

/// Shows the progress of a whole experiment.
pub trait RunProgress: Sync {
    /// A stage of `jobs` jobs starts.
    fn begin(&self, stage: &str, jobs: usize);
    /// A job starts; the handle follows it.
    fn job<'a>(&'a self, name: &str) -> Box<dyn JobProgress + 'a>;
}

/// Shows the progress of one job.
pub trait JobProgress {
    /// The job has made `step` of `last` steps.
    fn at(&mut self, step: u64, last: u64);
    /// The user should know this about the job. Several jobs may report the same.
    fn warn(&mut self, warning: &str);
    /// The job is over: done, or broken down with this error.
    fn end(&mut self, error: Option<&str>);
    /// The job stops in the middle.
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
