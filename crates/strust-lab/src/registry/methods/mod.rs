//! The methods, one file each.

mod common;

use super::{
    entry::{Entry, config, values},
    setup::Setup,
};
use crate::{
    Error,
    data::{experiment::MethodSpec, parameters::Parameters},
    stepper::Stepper,
};
use strust::prelude::*;
use strust_problems::Problem;
#[cfg(feature = "torch")]
use strust_torch::{ImageClassification, Launch};

use common::{Common, CommonConfig};

/// The model of a trust-region method. A diagnosis depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelKind {
    /// No trust region.
    None,
    /// H = I: the paper's lemma bounds the rejections.
    Identity,
    /// H = I + μJᵀJ: the method minimizes f + (μ/2)‖c‖². The parameter `penalty` is μ.
    Penalty,
}

/// What sets the length of a method's steps. A diagnosis depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepKind {
    /// The method itself; there is no rate.
    Free,
    /// `learning_rate` times the gradient: stable below 2/L.
    Rate,
    /// `learning_rate` per component and step, whatever the size of the gradient.
    Normalized,
    /// A line search below `max_step`.
    Search,
    /// A trust region below `max_radius`.
    Region,
}

/// Everything about one method.
pub(crate) trait MethodEntry {
    /// Its parameters.
    type Config: Config;
    /// Its name in experiment files.
    const NAME: &'static str = Self::Config::NAME;
    /// One line for people.
    const TITLE: &'static str;
    /// Whether it needs a constraint.
    const CONSTRAINED: bool = false;
    /// Its model.
    const MODEL: ModelKind = ModelKind::None;
    /// What sets the length of its steps.
    const STEPS: StepKind = StepKind::Free;

    /// The method on a problem.
    fn stepper<F, C>(config: Self::Config, common: Common, setup: &Setup<F, C>) -> Result<Box<dyn Stepper<F>>, Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static;

    /// The method on a network on a GPU; `None` if it needs no special code there.
    #[cfg(feature = "torch")]
    fn on_gpu(
        _config: Self::Config,
        _common: Common,
        _gpu: &Gpu,
    ) -> Option<Result<Box<dyn Stepper<ImageClassification>>, Error>> {
        None
    }
}

/// How a method runs on a network on a GPU.
#[cfg(feature = "torch")]
pub(crate) struct Gpu {
    pub launch: Launch,
    pub batch: usize,
    pub terms: usize,
    /// All steps of the job.
    pub steps: u64,
}

/// Declares the modules of a list of files, each with a [`MethodEntry`] called `Method`, and generates all functions that
/// look up a method by name.
macro_rules! methods {
    ($($module:ident),* $(,)?) => {
        $(mod $module;)*

        /// All methods, in the order of the list.
        #[must_use]
        pub fn all() -> Vec<Entry> {
            vec![$(entry::<$module::Method>()),*]
        }

        /// The model of a method; none for an unknown one.
        pub(crate) fn model(name: &str) -> ModelKind {
            match name {
                $(<$module::Method as MethodEntry>::NAME => $module::Method::MODEL,)*
                _ => ModelKind::None,
            }
        }

        /// What sets the length of a method's steps; free for an unknown one.
        pub(crate) fn steps(name: &str) -> StepKind {
            match name {
                $(<$module::Method as MethodEntry>::NAME => $module::Method::STEPS,)*
                _ => StepKind::Free,
            }
        }

        /// The method on a problem, for a job of `steps` steps on mini-batches of `batch` terms.
        pub(crate) fn stepper<F, C>(
            method: &MethodSpec,
            setup: &Setup<F, C>,
            batch: usize,
            steps: u64,
        ) -> Result<Box<dyn Stepper<F>>, Error>
        where
            F: Problem + 'static,
            C: Manifold<Point = F::Point> + 'static,
        {
            if let Some(stepper) = setup.own_stepper.as_ref().and_then(|make| make(method, batch, steps)) {
                return stepper;
            }
            let parameters = &method.hyperparameters;
            match method.name.as_str() {
                $(<$module::Method as MethodEntry>::NAME => {
                    let (config, common) = parsed::<$module::Method>(parameters).map_err(Error::Misfit)?;
                    $module::Method::stepper(config, Common::new(&common, steps), setup)
                })*
                name => Err(Error::Misfit(unknown(name))),
            }
        }

        /// The method on a network on a GPU; `None` if it needs no special code there.
        #[cfg(feature = "torch")]
        pub(crate) fn on_gpu(
            method: &MethodSpec,
            gpu: &Gpu,
        ) -> Option<Result<Box<dyn Stepper<ImageClassification>>, Error>> {
            let parameters = &method.hyperparameters;
            match method.name.as_str() {
                $(<$module::Method as MethodEntry>::NAME => match parsed::<$module::Method>(parameters) {
                    Ok((config, common)) => {
                        let common = Common::new(&common, gpu.steps);
                        // A captured step has no average.
                        if common.average { None } else { $module::Method::on_gpu(config, common, gpu) }
                    }
                    Err(why) => Some(Err(Error::Misfit(why))),
                },)*
                _ => None,
            }
        }
    };
}

// One line per method, in the order of the list.
methods! {
    auto,
    str,
    str_newton,
    str_gauss_newton,
    str_lbfgs,
    str_lsr1,
    str_p,
    str_sqp,
    sgd,
    adam,
    sls,
    prodigy,
    dog,
    schedule_free_sgd,
    schedule_free_adamw,
    ponos,
    sgd_proj,
    riemannian,
    auglag,
    landing,
}

fn entry<M: MethodEntry>() -> Entry {
    let complete = |given: &Parameters| {
        let (config, common) = parsed::<M>(given)?;
        let mut all = values(&common);
        all.retain(|key, _| common::has::<M>(key));
        all.extend(values(&config));
        Ok(all)
    };
    Entry::new::<M::Config>(M::NAME, M::TITLE, M::CONSTRAINED, complete).with::<CommonConfig>(common::has::<M>)
}

/// The checked keys of the method itself, and those of all methods.
fn parsed<M: MethodEntry>(parameters: &Parameters) -> Result<(M::Config, CommonConfig), String> {
    let (common, own): (Parameters, Parameters) =
        parameters.clone().into_iter().partition(|(key, _)| common::has::<M>(key));
    Ok((config(&own)?, config(&common)?))
}

/// A method with its defaults; `None` for an unknown name.
#[must_use]
pub fn with_defaults(name: &str) -> Option<MethodSpec> {
    let entry = all().into_iter().find(|entry| entry.name == name)?;
    let hyperparameters = entry.complete(&Parameters::new()).expect("the defaults are in their ranges");
    Some(MethodSpec { name: name.into(), label: name.into(), hyperparameters, varied: Vec::new() })
}

fn unknown(name: &str) -> String {
    format!("there is no method `{name}`")
}
