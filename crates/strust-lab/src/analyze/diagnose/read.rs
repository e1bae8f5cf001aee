//! Statistics of the records of a job, computed line by line. Only the metrics of the epochs are kept.

use crate::{
    Error,
    data::{
        plan::Job,
        record::{EpochRecord, Line},
    },
    io::jsonl,
    registry::problems,
};
use std::path::Path;
use strust::{
    diagnostics::{Curvature, Iterations},
    radius::Verdict,
    record::StepRecord,
};

/// Counts of a job's records.
#[derive(Default)]
pub(super) struct RecordStats {
    /// Counts of the steps in the file.
    pub iterations: Iterations,
    /// Curvature along their trials.
    pub curvature: Curvature,
    /// Finished epochs.
    pub epochs: u64,
    /// All steps and the accepted steps, from the record of the last epoch.
    pub steps: u64,
    pub accepted: u64,
    /// The radius at the end of the last epoch, and the number of epochs that ended with the largest radius.
    pub radius: Option<f64>,
    pub at_largest: u64,
    /// The name of the main metric, its first and its last value.
    pub metric: Option<(&'static str, f64, f64)>,
    /// This metric and ‖c‖ after every epoch, from the start.
    pub curve: Vec<(f64, Option<f64>)>,
    /// The epochs with the metric on the test set.
    pub test: Vec<(u64, f64)>,
    /// The steps of the second half.
    pub tail: StepSizes,
    /// Over the second half: the sum of the decreases of accepted steps on their own mini-batches, and the decrease of the
    /// full sum.
    pub claimed: f64,
    pub fell: f64,
    merit: Option<f64>,
    since: f64,
}

/// Means of logarithms over steps.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StepSizes {
    count: u64,
    size: f64,
    ratio: f64,
}

impl StepSizes {
    fn add(&mut self, record: &StepRecord) {
        let ratio = record.step_length / record.gradient_norm;
        if record.step_size > 0.0 && ratio > 0.0 && ratio.is_finite() {
            self.count += 1;
            self.size += record.step_size.ln();
            self.ratio += ratio.ln();
        }
    }
    fn mean(&self, sum: f64) -> Option<f64> {
        (self.count > 0).then(|| (sum / self.count as f64).exp())
    }
    /// The geometric mean of the step size.
    pub fn size(&self) -> Option<f64> {
        self.mean(self.size)
    }
    /// The geometric mean of ‖p‖/‖g‖.
    pub fn ratio(&self) -> Option<f64> {
        self.mean(self.ratio)
    }
}

impl RecordStats {
    /// Reads the records; a file that does not exist yet has no lines.
    pub(super) fn read(path: &Path, job: &Job) -> Result<Self, Error> {
        let epsilon = if problems::is_single(&job.problem) { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let mut stats = Self { curvature: Curvature::with_epsilon(epsilon), ..Self::default() };
        jsonl::for_each(
            path,
            true,
            |_| true,
            |line, value| {
                match value {
                    Line::Step(record) => stats.step(&record),
                    Line::Epoch(EpochRecord { steps, accepted, .. }) if accepted > steps => {
                        let what = format!("line {line}: {accepted} of {steps} steps cannot be accepted");
                        return Err(Error::saved(path, what));
                    }
                    Line::Epoch(record) => stats.epoch(&record, job),
                }
                Ok(())
            },
        )?;
        Ok(stats)
    }

    fn step(&mut self, record: &StepRecord) {
        self.iterations.add(record);
        self.curvature.add(record);
        self.tail.add(record);
        if let (Verdict::Accepted, Some(trial)) = (record.verdict, record.region.as_ref().and_then(|r| r.trial)) {
            self.since += record.value - trial;
        }
    }

    fn epoch(&mut self, record: &EpochRecord, job: &Job) {
        let number = |name: &str| job.method.hyperparameters.get(name).and_then(toml::Value::as_float);
        let tried = record.steps.saturating_sub(record.skipped);
        (self.epochs, self.steps, self.accepted) = (record.epoch, tried, record.accepted);
        if let Some(&radius) = record.trust_region.get("radius") {
            self.radius = Some(radius);
            self.at_largest += u64::from(number("max_radius").is_some_and(|largest| radius >= largest));
        }
        let Some((quantity, label)) = problems::quantities(&job.problem).first() else { return };
        let Some(&value) = record.metrics.get(quantity.key()) else { return };
        let first = self.metric.as_ref().map_or(value, |(_, first, _)| *first);
        if record.epoch <= job.epochs / 2 {
            self.tail = StepSizes::default();
        }
        self.metric = Some((label, first, value));
        let test = problems::quantities(&job.problem).iter().find(|(quantity, _)| quantity.of_test_set());
        self.test.extend(test.and_then(|(quantity, _)| Some((record.epoch, *record.metrics.get(quantity.key())?))));
        let constraint_norm = record.metrics.get("constraint_norm").copied();
        self.curve.push((value, constraint_norm));
        // Records of steps have the scaled loss, metrics the plain one. A penalty method decreases f + (μ/2)‖c‖².
        let penalty = if job.method.name == "str-p" { number("penalty").unwrap_or(0.0) } else { 0.0 };
        let merit = problems::scale(&job.problem) * value + 0.5 * penalty * constraint_norm.unwrap_or(0.0).powi(2);
        if let Some(before) = self.merit.filter(|_| 2 * record.epoch > job.epochs) {
            self.claimed += self.since;
            self.fell += before - merit;
        }
        (self.merit, self.since) = (Some(merit), 0.0);
    }
}
