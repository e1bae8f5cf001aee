//! The errors of this crate. Each message states what happened, where, and how to fix it.

use std::path::PathBuf;

/// An error of this crate. Errors of the methods are [`strust::Error`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The module has no parameter to train.
    #[error(
        "the module has no parameter that requires a gradient: make it on a device with autodiff (`device.autodiff()`), \
         call `train()` after `valid()`, and do not freeze all of it"
    )]
    NoParameters,
    /// A parameter has another type than the vectors of the method.
    #[error(
        "parameter `{name}` is {found}, but the method's vectors are {expected}: cast the module, or for F32 and F64 name \
         the other type, as in `Optimizer::<Vec<f64>>::new(Auto::default())`"
    )]
    Kind {
        /// The parameter.
        name: String,
        /// The type of the method's vectors.
        expected: String,
        /// The type of the parameter.
        found: String,
    },
    /// The module is on several devices.
    #[error("the module is on several devices: move it to one with `fork`")]
    Devices,
    /// Two places of a module hold the same parameter.
    #[error("`{name}` and `{other}` are the same parameter: call the layer twice instead of storing it twice")]
    Shared {
        /// The first place.
        name: String,
        /// The second place.
        other: String,
    },
    /// No parameter has this name.
    #[error("there is no parameter `{name}` to train; there are {known}")]
    UnknownParameter {
        /// The requested name.
        name: String,
        /// The names of all parameters.
        known: String,
    },
    /// A module is not the one of the steps before, or of the saved state.
    #[error(
        "the module's parameters changed: {why}. An optimizer belongs to one module: make another one for this one"
    )]
    OtherModule {
        /// What differs.
        why: String,
    },
    /// The loss is not one number.
    #[error("the loss has {found} numbers, but must have 1: take its mean over the batch")]
    NotOneNumber {
        /// The count.
        found: usize,
    },
    /// The loss does not depend on any parameter.
    #[error(
        "the loss does not depend on the module's parameters: compute it from the module that the closure gets, without \
         `detach` or `inner`"
    )]
    Detached,
    /// The loss does not depend on a parameter.
    #[error(
        "the loss has no gradient for parameter `{name}`: use it in the loss, or freeze it with \
         `set_require_grad(false)`"
    )]
    NoGradient {
        /// The parameter.
        name: String,
    },
    /// Running statistics of a module are not those of batch-norm.
    #[error(
        "a running statistic of the module is not a moving average: call `answer`, which leaves it, instead of `averaged`"
    )]
    NotAnAverage,
    /// There is no step yet, so there is nothing to save.
    #[error("there is no state to save: make a step first")]
    NoState,
    /// A state cannot be written or read, or is not one.
    #[error("state {}: {why}", path.as_ref().map_or_else(|| "in memory".into(), |path| path.display().to_string()))]
    State {
        /// The file.
        path: Option<PathBuf>,
        /// What is wrong.
        why: String,
    },
    /// An error of the library.
    #[error(transparent)]
    Method(#[from] strust::Error),
}
