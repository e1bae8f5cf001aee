//! The history of a run, step by step. Only this instrument needs memory that grows with the run.

use crate::{radius::Verdict, record::StepRecord, run::Observer};
use std::ops::ControlFlow;

/// An observer that keeps the history of a trust-region run.
///
/// ```
/// use strust::{diagnostics::History, prelude::*};
/// let mut f = from_fn(1, |x: &Vec<f64>, _: &Sample, g: Option<&mut Vec<f64>>| {
///     if let Some(g) = g {
///         g[0] = 4.0 * x[0].powi(3);
///     }
///     x[0].powi(4)
/// });
/// let mut history = History::default();
/// let mut method = Str::new(StrConfig::default())?;
/// let _ = minimize(&mut f).method(&mut method)
///     .observe(&mut history)
///     .stop(Stop::steps(20)).start(vec![3.0])?;
/// assert_eq!(history.radii.len(), 20);
/// assert!(history.acceptance_rate() > 0.5);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The radius of each step.
    pub radii: Vec<f64>,
    /// The ratio of each step; NaN if the trial was not finite.
    pub ratios: Vec<f64>,
    /// Accepted steps.
    pub accepted: u64,
    /// All steps that evaluated something.
    pub steps: u64,
}

impl History {
    /// The fraction of accepted steps; 1 if there were no steps.
    #[must_use]
    pub fn acceptance_rate(&self) -> f64 {
        if self.steps == 0 { 1.0 } else { self.accepted as f64 / self.steps as f64 }
    }
}

impl<P> Observer<P> for &mut History {
    fn step(&mut self, record: &StepRecord, _: &P) -> ControlFlow<()> {
        self.steps += u64::from(record.verdict != Verdict::Skipped);
        self.accepted += u64::from(record.verdict == Verdict::Accepted);
        if let Some(region) = &record.region {
            self.radii.push(region.radius);
            self.ratios.push(region.ratio.unwrap_or(f64::NAN));
        }
        ControlFlow::Continue(())
    }
}
