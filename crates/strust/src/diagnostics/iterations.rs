//! Accepted and rejected steps, the radius, and the evaluations until a tolerance is reached.

use super::bounds;
use crate::{
    kkt::Measurement,
    models::Exit,
    objective::Evaluations,
    radius::{RegionConfig, Verdict},
    record::StepRecord,
    run::Observer,
};
use std::ops::ControlFlow;

/// Counts the quantities in the lemmas on iterations. An observer of constant size.
///
/// ```
/// use strust::{diagnostics::Iterations, prelude::*, radius::RegionConfig};
/// let mut f = from_fn(1, |x: &Vec<f64>, _: &Sample, g: Option<&mut Vec<f64>>| {
///     if let Some(g) = g {
///         g[0] = 8.0 * x[0];
///     }
///     4.0 * x[0] * x[0]
/// });
/// let (mut iterations, region) = (Iterations::default(), RegionConfig::default());
/// let mut method = Str::new(StrConfig { region: region.clone() })?;
/// let _ = minimize(&mut f).method(&mut method)
///     .observe(&mut iterations)
///     .stop(Stop::steps(40)).start(vec![1.0])?;
/// assert!(iterations.unsuccessful > 0);
/// assert!(iterations.unsuccessful as f64 <= iterations.unsuccessful_bound(&region, 8.0));
/// assert!(iterations.least_radius >= iterations.radius_bound(&region, 8.0));
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Iterations {
    /// #S, the number of accepted steps.
    pub successful: u64,
    /// #U, the number of rejected steps.
    pub unsuccessful: u64,
    /// The largest number of rejections in a row.
    pub longest_rejection: u64,
    /// Steps that the radius limited.
    pub on_boundary: u64,
    /// Steps on a sample with zero gradient.
    pub stationary: u64,
    /// Steps with the largest radius of the run.
    pub at_largest_radius: u64,
    /// The smallest radius.
    pub least_radius: f64,
    /// The largest radius.
    pub largest_radius: f64,
    /// The smallest ‖g_k‖ of a mini-batch: ε in the lemmas. Steps with a zero gradient have no trial and do not count.
    pub least_gradient: f64,
    /// Evaluations.
    pub evaluations: Evaluations,
    row: u64,
}

impl Default for Iterations {
    fn default() -> Self {
        Self {
            successful: 0,
            unsuccessful: 0,
            longest_rejection: 0,
            on_boundary: 0,
            stationary: 0,
            at_largest_radius: 0,
            least_radius: f64::INFINITY,
            largest_radius: 0.0,
            least_gradient: f64::INFINITY,
            evaluations: Evaluations::default(),
            row: 0,
        }
    }
}

impl Iterations {
    /// Counts a step.
    pub fn add(&mut self, record: &StepRecord) {
        self.evaluations += record.evaluations;
        match record.verdict {
            Verdict::Accepted => {
                self.successful += 1;
                self.row = 0;
            }
            Verdict::Rejected => {
                self.unsuccessful += 1;
                self.row += 1;
                self.longest_rejection = self.longest_rejection.max(self.row);
            }
            Verdict::Skipped => {}
        }
        let Some(region) = &record.region else { return };
        match region.exit {
            Exit::Boundary => self.on_boundary += 1,
            Exit::Stationary => self.stationary += 1,
            Exit::Interior => {}
        }
        if region.exit != Exit::Stationary {
            self.least_gradient = self.least_gradient.min(record.gradient_norm);
        }
        self.least_radius = self.least_radius.min(region.radius);
        if region.radius > self.largest_radius {
            (self.largest_radius, self.at_largest_radius) = (region.radius, 0);
        }
        self.at_largest_radius += u64::from(region.radius >= self.largest_radius);
    }
    /// All steps that evaluated something.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.successful + self.unsuccessful
    }
    /// #U/#S.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.unsuccessful as f64 / self.successful as f64
    }
    /// The largest number of rejections that [`bounds::unsuccessful`] allows for this run.
    #[must_use]
    pub fn unsuccessful_bound(&self, region: &RegionConfig, lipschitz: f64) -> f64 {
        bounds::unsuccessful(region, lipschitz, self.least_gradient, self.successful)
    }
    /// The smallest radius that [`bounds::radius_floor`] allows for this run.
    #[must_use]
    pub fn radius_bound(&self, region: &RegionConfig, lipschitz: f64) -> f64 {
        bounds::radius_floor(region, lipschitz, self.least_gradient)
    }
}

impl<P> Observer<P> for &mut Iterations {
    fn step(&mut self, record: &StepRecord, _: &P) -> ControlFlow<()> {
        self.add(record);
        ControlFlow::Continue(())
    }
}

/// Records the evaluations until ‖∇f‖² (of the Lagrangian, with constraints) was first at most ε, for each given ε.
///
/// It uses the measurements of the run, so its resolution is [`Run::measure_every`](crate::run::Run::measure_every).
///
/// ```
/// use strust::{diagnostics::Reached, prelude::*};
/// let mut f = from_fn(1, |x: &Vec<f64>, _: &Sample, g: Option<&mut Vec<f64>>| {
///     if let Some(g) = g {
///         g[0] = 0.5 * x[0];
///     }
///     0.25 * x[0] * x[0]
/// });
/// let mut reached = Reached::new(&[1e-2, 1e-4, 1e-300]);
/// let mut method = Str::new(StrConfig::default())?;
/// let _ = minimize(&mut f).method(&mut method)
///     .observe(&mut reached)
///     .measure_every(1)
///     .stop(Stop::steps(20)).start(vec![1.0])?;
/// let gradients: Vec<Option<u64>> = reached.targets.iter().map(|(_, cost)| cost.map(|c| c.gradients)).collect();
/// assert_eq!(gradients, [Some(3), Some(6), None]); // x halves at every step
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Reached {
    /// Each ε with the evaluations until it was reached; `None` if it was not.
    pub targets: Vec<(f64, Option<Evaluations>)>,
    evaluations: Evaluations,
}

impl Reached {
    /// An observer for these ε.
    #[must_use]
    pub fn new(targets: &[f64]) -> Self {
        Self { targets: targets.iter().map(|&epsilon| (epsilon, None)).collect(), evaluations: Evaluations::default() }
    }
}

impl<P> Observer<P> for &mut Reached {
    fn step(&mut self, record: &StepRecord, _: &P) -> ControlFlow<()> {
        self.evaluations += record.evaluations;
        ControlFlow::Continue(())
    }
    fn measured(&mut self, _: u64, measurement: &Measurement, _: &P) -> ControlFlow<()> {
        let squared = measurement.gradient_norm * measurement.gradient_norm;
        for (epsilon, cost) in &mut self.targets {
            if cost.is_none() && squared <= *epsilon {
                *cost = Some(self.evaluations);
            }
        }
        ControlFlow::Continue(())
    }
}
