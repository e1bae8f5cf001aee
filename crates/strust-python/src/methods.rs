//! The methods by name.

use crate::{
    array::{Array, Scalar},
    constraints::AnyConstraint,
    objective::AnyObjective,
};
use pyo3::{exceptions::PyValueError, prelude::*};
use strust::prelude::*;

/// What to do with a method, whatever its type.
pub trait Action<T: Scalar>: Sized {
    type Output;
    /// `make` constructs the method.
    fn with<M>(self, make: impl FnOnce(MethodParts<T>) -> PyResult<M>) -> PyResult<Self::Output>
    where
        M: Method<AnyObjective<T>, State: Send> + Send;
}

/// What a method is made of.
pub struct MethodParts<T: Scalar> {
    /// The configuration as JSON, without `schedule`.
    pub options: String,
    pub schedule: Schedule,
    pub constraint: Option<AnyConstraint<T>>,
}

impl<T: Scalar> MethodParts<T> {
    fn config<C: Config>(&self) -> PyResult<C> {
        serde_json::from_str(&self.options).map_err(|error| {
            // The place in the JSON text means nothing to the caller.
            let text = error.to_string();
            let why = text.rsplit_once(" at line ").map_or(text.as_str(), |(why, _)| why);
            PyValueError::new_err(format!("options of {}: {why}", C::NAME))
        })
    }
    fn constraint(self, name: &str) -> PyResult<AnyConstraint<T>> {
        self.constraint.ok_or_else(|| {
            PyValueError::new_err(format!("method={name:?} needs constraints; without them use method=\"auto\""))
        })
    }
}

/// The name of a method, what it needs, and its construction. `free` methods take no constraint. The schedule belongs to
/// methods with a rate.
macro_rules! methods {
    (
        free { $($free:literal: $free_config:ty, $make_free:expr;)* }
        constrained { $($bound:literal: $bound_config:ty, $make_bound:expr;)* }
    ) => {
        /// All names.
        pub const NAMES: &[&str] = &[$($free,)* $($bound,)*];

        /// Carries out an action on a method.
        pub fn with_method<T: Scalar, A: Action<T>>(name: &str, action: A) -> PyResult<A::Output> {
            match name {
                $($free => action.with(|setup: MethodParts<T>| {
                    if setup.constraint.is_some() {
                        return Err(PyValueError::new_err(format!(
                            "method={name:?} has no constraints; use \"auto\", which chooses \"str-sqp\" with constraints"
                        )));
                    }
                    let make: fn($free_config, Schedule) -> Result<_, Error> = $make_free;
                    make(setup.config::<$free_config>()?, setup.schedule).map_err(crate::error)
                }),)*
                $($bound => action.with(|setup: MethodParts<T>| {
                    let make: fn($bound_config, Schedule, AnyConstraint<T>) -> Result<_, Error> = $make_bound;
                    let (config, schedule) = (setup.config::<$bound_config>()?, setup.schedule);
                    make(config, schedule, setup.constraint(name)?).map_err(crate::error)
                }),)*
                _ => Err(PyValueError::new_err(format!(
                    "there is no method {name:?}; the methods are {}", NAMES.join(", ")
                ))),
            }
        }

        /// Whether a method has a learning rate, and so a schedule.
        pub fn has_rate(name: &str) -> bool {
            fn lists<C: Config>() -> bool {
                C::FIELDS.iter().any(|field| field.name == "learning_rate")
            }
            match name {
                $($free => lists::<$free_config>(),)*
                $($bound => lists::<$bound_config>(),)*
                _ => false,
            }
        }
    };
}

methods! {
    free {
        "auto": AutoConfig, |config, _| Auto::<Array<T>>::new(config);
        "str": StrConfig, |config, _| Str::<Array<T>>::new(config);
        "sgd": SgdConfig, |config, schedule| Ok(Sgd::<Array<T>>::new(config)?.schedule(schedule));
        "adam": AdamConfig, |config, schedule| Ok(Adam::<Array<T>>::new(config)?.schedule(schedule));
        "sls": LineSearchConfig, |config, _| LineSearch::<Array<T>>::new(config);
        "prodigy": ProdigyConfig, |config, schedule| Ok(Prodigy::<Array<T>>::new(config)?.schedule(schedule));
        "dog": DoGConfig, |config, schedule| Ok(DoG::<Array<T>>::new(config)?.schedule(schedule));
        "schedule-free-sgd": ScheduleFreeSgdConfig, |config, schedule| Ok(ScheduleFreeSgd::<Array<T>>::new(config)?.schedule(schedule));
        "schedule-free-adamw": ScheduleFreeAdamWConfig, |config, schedule| Ok(ScheduleFreeAdamW::<Array<T>>::new(config)?.schedule(schedule));
        "str-newton": StrNewtonConfig, |config, _| StrNewton::<Array<T>>::new(config);
        "str-gauss-newton": StrNewtonConfig, |config, _| StrNewton::<Array<T>>::gauss_newton(config);
        "str-lbfgs": StrLbfgsConfig, |config, _| StrLbfgs::<Array<T>>::new(config);
        "str-lsr1": StrLsr1Config, |config, _| StrLsr1::<Array<T>>::new(config);
        "ponos": PonosConfig, |config, _| Ponos::<Array<T>>::new(config);
    }
    constrained {
        "str-p": StrPConfig, |config, _, c| StrP::new(config, c);
        "str-sqp": StrSqpConfig, |config, _, c| StrSqp::new(config, c);
        "sgd-proj": ProjectedSgdConfig, |config, schedule, c| Ok(ProjectedSgd::new(config, c)?.schedule(schedule));
        "riemannian": RiemannianConfig, |config, schedule, c| Ok(Riemannian::new(config, c)?.schedule(schedule));
        "auglag": AugLagConfig, |config, schedule, c| Ok(AugLag::new(config, c)?.schedule(schedule));
        "landing": LandingConfig, |config, schedule, c| Ok(Landing::new(config, c)?.schedule(schedule));
    }
}
