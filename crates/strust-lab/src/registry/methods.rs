//! The methods of experiment files, from the table of [`by_name`], and the keys that all of them have.

use super::{
    entry::{Entry, Switch, config, values},
    setup::{AnyConstraint, Setup},
};
use crate::{
    Error,
    data::{experiment::MethodSpec, parameters::Parameters},
    stepper::{StepByStep, Stepper},
};
use serde::{Deserialize, Serialize};
use strust::{config::FieldValue, prelude::*};
use strust_baselines::by_name::{self, MethodInfo, Options, Parts, WithConfig};
use strust_problems::Problem;

pub(crate) use strust_baselines::by_name::StepKind;

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

impl ScheduleName {
    /// The schedule of a job of `steps` steps.
    pub(crate) fn over(self, steps: u64) -> Schedule {
        match self {
            Self::Constant => Schedule::Constant,
            Self::Cosine => Schedule::cosine(steps),
        }
    }
}

/// All methods, in the order of the list.
#[must_use]
pub fn all() -> Vec<Entry> {
    by_name::ALL.iter().map(entry).collect()
}

fn entry(info: &'static MethodInfo) -> Entry {
    let entry = by_name::with_config(info.name, NewEntry(info)).expect("the method is in the table");
    entry.with::<CommonConfig>(|key| has(info, key))
}

/// The entry of a method, from its configuration.
struct NewEntry(&'static MethodInfo);

impl WithConfig for NewEntry {
    type Output = Entry;
    fn with<C: Config>(self) -> Entry {
        let Self(info) = self;
        Entry::new::<C>(info.name, info.title, info.constrained, |name, given| {
            let info = by_name::info(name).expect("the method is in the table");
            let (own, common) = split(info, given);
            let mut all = values(&config::<CommonConfig>(&common)?);
            all.retain(|key, _| has(info, key));
            all.extend(values(&config::<C>(&own)?));
            Ok(all)
        })
    }
}

/// Whether a method has a common key: only a method with a rate has a schedule.
fn has(info: &MethodInfo, key: &str) -> bool {
    CommonConfig::FIELDS.iter().any(|field| field.name == key) && (key != "schedule" || info.has("learning_rate"))
}

/// The keys of the method itself, and those of all methods.
fn split(info: &MethodInfo, parameters: &Parameters) -> (Parameters, Parameters) {
    parameters.clone().into_iter().partition(|(key, _)| !has(info, key))
}

/// What sets the length of a method's steps; free for an unknown one.
pub(crate) fn steps(name: &str) -> StepKind {
    by_name::info(name).map_or(StepKind::Free, |info| info.steps)
}

/// The keys of a method in an experiment file.
pub(crate) struct Keys<'a> {
    name: &'a str,
    own: Parameters,
    common: CommonConfig,
}

impl<'a> Keys<'a> {
    /// Checks the common keys of a method.
    pub fn of(method: &'a MethodSpec) -> Result<Self, Error> {
        let info = by_name::info(&method.name);
        let info = info.ok_or_else(|| Error::Misfit(format!("there is no method `{}`", method.name)))?;
        let (own, common) = split(info, &method.hyperparameters);
        Ok(Self { name: info.name, own, common: config(&common).map_err(Error::Misfit)? })
    }
    /// The schedule of a job of `steps` steps.
    pub fn schedule(&self, steps: u64) -> Schedule {
        self.common.schedule.over(steps)
    }
    /// Whether the answer is the average of the iterates.
    pub fn average(&self) -> bool {
        self.common.average == Switch::On
    }
    /// The method's name.
    #[cfg(feature = "torch")]
    pub fn name(&self) -> &str {
        self.name
    }
}

impl Options for Keys<'_> {
    type Error = Error;
    fn config<C: Config>(&self) -> Result<C, Error> {
        config(&self.own).map_err(Error::Misfit)
    }
}

/// The method on a problem, for a job of `steps` steps on mini-batches of `batch` terms.
pub(crate) fn stepper<F>(
    method: &MethodSpec,
    setup: &Setup<F>,
    batch: usize,
    steps: u64,
) -> Result<Box<dyn Stepper<F>>, Error>
where
    F: Problem<Point: Send> + 'static,
{
    let keys = Keys::of(method)?;
    if let Some(stepper) = setup.own_stepper.as_ref().and_then(|make| make(&keys, batch, steps)) {
        return stepper;
    }
    if setup.constraint.is_none() && by_name::info(keys.name).is_some_and(|info| info.constrained) {
        return Err(Error::Misfit("the problem has no constraint".into()));
    }
    let constraint = |retraction| Ok(setup.constraint.as_ref().expect("checked above")(retraction));
    let parts = Parts { schedule: keys.schedule(steps), average: keys.average(), constraint: &constraint };
    let method = by_name::method::<_, AnyConstraint<F::Point>, _>(keys.name, &keys, &parts);
    Ok(Box::new(StepByStep::new(method.expect("the name is in the table")?)))
}

/// A method with its defaults; `None` for an unknown name.
#[must_use]
pub fn with_defaults(name: &str) -> Option<MethodSpec> {
    let hyperparameters = entry(by_name::info(name)?).complete(&Parameters::new());
    let hyperparameters = hyperparameters.expect("the defaults are in their ranges");
    Some(MethodSpec { name: name.into(), label: name.into(), hyperparameters, varied: Vec::new() })
}
