//! Statistics of the records of a job, computed line by line in constant memory.

use crate::{
    Error,
    data::{
        plan::Job,
        record::{EpochRecord, Line},
    },
    registry::{
        methods::{ModelKind, model},
        problems,
    },
};
use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};
use strust::{
    diagnostics::{Curvature, Iterations},
    radius::Verdict,
    record::StepRecord,
};

/// Counts of a job's records.
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
    /// This metric one epoch before the last, and after half of the epochs.
    pub before: Option<f64>,
    pub halfway: Option<f64>,
    /// ‖c‖ after the last epoch.
    pub constraint_norm: Option<f64>,
    /// Over the second half: the sum of the decreases of accepted steps on their own mini-batches, and the decrease of the
    /// full sum.
    pub claimed: f64,
    pub fell: f64,
    merit: Option<f64>,
    since: f64,
}

impl RecordStats {
    /// Reads the records; a file that does not exist yet has no lines.
    pub(super) fn read(path: &Path, job: &Job) -> Result<Self, Error> {
        let epsilon = if problems::is_single(&job.problem) { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let mut stats = Self {
            iterations: Iterations::default(),
            curvature: Curvature::with_epsilon(epsilon),
            epochs: 0,
            steps: 0,
            accepted: 0,
            radius: None,
            at_largest: 0,
            metric: None,
            before: None,
            halfway: None,
            constraint_norm: None,
            claimed: 0.0,
            fell: 0.0,
            merit: None,
            since: 0.0,
        };
        let file = match File::open(path) {
            Ok(file) => BufReader::new(file),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(stats),
            Err(e) => return Err(Error::io("read", path)(e)),
        };
        let mut lines = file.lines().enumerate().peekable();
        while let Some((i, line)) = lines.next() {
            let line = line.map_err(Error::io("read", path))?;
            match serde_json::from_str(&line) {
                Ok(Line::Step(record)) => stats.step(&record),
                Ok(Line::Epoch(record)) => stats.epoch(&record, job),
                // A running job may still be writing this line.
                Err(_) if lines.peek().is_none() => {}
                Err(e) => return Err(Error::saved(path, format!("line {}: {e}", i + 1))),
            }
        }
        Ok(stats)
    }

    fn step(&mut self, record: &StepRecord) {
        self.iterations.add(record);
        self.curvature.add(record);
        if let (Verdict::Accepted, Some(trial)) = (record.verdict, record.region.as_ref().and_then(|r| r.trial)) {
            self.since += record.value - trial;
        }
    }

    fn epoch(&mut self, record: &EpochRecord, job: &Job) {
        let number = |name: &str| job.method.hyperparameters.get(name).and_then(toml::Value::as_float);
        (self.epochs, self.steps, self.accepted) = (record.epoch, record.steps, record.accepted);
        if let Some(&radius) = record.trust_region.get("radius") {
            self.radius = Some(radius);
            self.at_largest += u64::from(number("max_radius").is_some_and(|largest| radius >= largest));
        }
        let Some((quantity, label)) = problems::quantities(&job.problem).first() else { return };
        let Some(&value) = record.metrics.get(quantity.key()) else { return };
        let first = self.metric.as_ref().map_or(value, |(_, first, _)| *first);
        self.before = self.metric.as_ref().map(|(_, _, last)| *last);
        if 2 * record.epoch <= job.epochs {
            self.halfway = Some(value);
        }
        self.metric = Some((label, first, value));
        self.constraint_norm = record.metrics.get("constraint_norm").copied();
        // Records of steps have the scaled loss, metrics the plain one. A penalty method decreases f + (μ/2)‖c‖².
        let penalty =
            if model(&job.method.name) == ModelKind::Penalty { number("penalty").unwrap_or(0.0) } else { 0.0 };
        let merit = problems::scale(&job.problem) * value + 0.5 * penalty * self.constraint_norm.unwrap_or(0.0).powi(2);
        if let Some(before) = self.merit.filter(|_| 2 * record.epoch > job.epochs) {
            self.claimed += self.since;
            self.fell += before - merit;
        }
        (self.merit, self.since) = (Some(merit), 0.0);
    }
}
