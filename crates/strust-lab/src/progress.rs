//! Signs of life of a running experiment, for whoever shows them.

/// Shows the progress of a whole experiment.
pub trait Progress: Sync {
    /// So many jobs begin, so many of them done already.
    fn begin(&self, stage: &str, jobs: usize);
    /// A job begins; the handle follows it.
    fn job<'a>(&'a self, name: &str) -> Box<dyn JobProgress + 'a>;
}

/// Shows the progress of one job.
pub trait JobProgress {
    /// The job stands at this step.
    fn at(&mut self, step: u64, last: u64);
    /// The job is over: done, or broken down with this error.
    fn end(&mut self, error: Option<&str>);
    /// The job stops in the middle.
    fn stop(&mut self);
}

/// Shows nothing.
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: &str, _: usize) {}
    fn job<'a>(&'a self, _: &str) -> Box<dyn JobProgress + 'a> {
        Box::new(Silent)
    }
}

impl JobProgress for Silent {
    fn at(&mut self, _: u64, _: u64) {}
    fn end(&mut self, _: Option<&str>) {}
    fn stop(&mut self) {}
}
