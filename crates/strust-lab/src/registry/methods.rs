//! The methods of experiment files, from the table of [`by_name`].

use super::{
    entry::{Entry, config, values},
    keys::{CommonConfig, Keys, has, split},
    setup::{AnyStepper, PointType, Setup},
};
use crate::{
    Error,
    data::{experiment::MethodSpec, parameters::Parameters},
    stepper::StepByStep,
};
use strust::{config::Config, constraints::Retraction};
use strust_baselines::by_name::{self, MethodInfo, MethodParts, WithConfig};
use strust_problems::Problem;

pub(crate) use strust_baselines::by_name::StepKind;

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

/// What sets the length of a method's steps; free for an unknown one.
pub(crate) fn steps(name: &str) -> StepKind {
    by_name::info(name).map_or(StepKind::Free, |info| info.steps)
}

/// The method on a problem, for a job of `steps` steps on mini-batches of `batch` terms.
pub(crate) fn stepper<P: PointType>(
    method: &MethodSpec,
    setup: &Setup<P>,
    batch: usize,
    steps: u64,
) -> Result<AnyStepper<P>, Error> {
    let keys = Keys::of(method)?;
    if let Some(stepper) = setup.own_stepper.as_ref().and_then(|make| make(&keys, batch, steps)) {
        return stepper;
    }
    if by_name::info(keys.name).is_some_and(|info| info.constrained) && setup.f.any_constraint(Retraction::Qr).is_none()
    {
        return Err(Error::Misfit("the problem has no constraint".into()));
    }
    let constraint = |retraction| Ok(setup.f.any_constraint(retraction).expect("checked above"));
    let expectation = || setup.f.any_expectation();
    let (schedule, average) = (keys.schedule(steps), keys.average());
    let parts = MethodParts { schedule, average, constraint: &constraint, expectation: &expectation };
    let config = by_name::config(keys.name, &keys).expect("the name is in the table")?;
    Ok(Box::new(StepByStep::new(P::method(&config, &parts)?)))
}

/// A method with its defaults; `None` for an unknown name.
#[must_use]
pub fn with_defaults(name: &str) -> Option<MethodSpec> {
    let hyperparameters = entry(by_name::info(name)?).complete(&Parameters::new());
    let hyperparameters = hyperparameters.expect("the defaults are in their ranges");
    Some(MethodSpec { name: name.into(), label: name.into(), hyperparameters, varied: Vec::new() })
}
