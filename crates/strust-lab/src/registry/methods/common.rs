//! The keys of all methods: a schedule for those with a rate, and iterate averaging.

use super::MethodEntry;
use crate::{
    registry::entry::Switch,
    stepper::{StepByStep, Stepper},
};
use serde::{Deserialize, Serialize};
use strust::{
    config::{Config, Field, FieldValue},
    prelude::*,
};

strust::config! {
    /// The keys of all methods.
    pub struct CommonConfig for "method" {
        /// The learning rate during a run: constant, or cosine, which falls to 0 at the end of the run.
        pub schedule: ScheduleName = ScheduleName::Constant, OneOf(&["constant", "cosine"]);
        /// Whether the answer is the average of the iterates: off or on.
        pub average: Switch = Switch::Off, OneOf(&["off", "on"]);
    }
}

/// A [`Schedule`] without its number of steps, which is that of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScheduleName {
    /// Always the same rate.
    Constant,
    /// The rate falls to 0 along a cosine.
    Cosine,
}

impl FieldValue for ScheduleName {
    fn number(&self) -> Option<f64> {
        None
    }
}

/// Whether a method has a common key: only a method with a rate has a schedule.
pub(super) fn has<M: MethodEntry>(key: &str) -> bool {
    let lists = |fields: &[Field], name: &str| fields.iter().any(|field| field.name == name);
    lists(CommonConfig::FIELDS, key) && (key != "schedule" || lists(M::Config::FIELDS, "learning_rate"))
}

/// How a job runs its method, whichever it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Common {
    pub schedule: Schedule,
    pub average: bool,
}

impl Common {
    /// The meaning of the keys in a job of `steps` steps.
    pub fn new(config: &CommonConfig, steps: u64) -> Self {
        let schedule = match config.schedule {
            ScheduleName::Constant => Schedule::Constant,
            ScheduleName::Cosine => Schedule::cosine(steps),
        };
        Self { schedule, average: config.average == Switch::On }
    }

    /// Runs the method one step at a time, averaged if the job is.
    pub fn stepper<F, M>(self, method: M) -> Box<dyn Stepper<F>>
    where
        F: Objective + 'static,
        M: Method<F, State: 'static> + 'static,
    {
        if self.average { Box::new(StepByStep::new(Averaged::of(method))) } else { Box::new(StepByStep::new(method)) }
    }
}
