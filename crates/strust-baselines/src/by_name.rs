//! All methods, those of strust and the baselines, by the names of experiment files and of Python.

use crate::{
    Adam, AdamConfig, AugLag, AugLagConfig, DoG, DoGConfig, Landing, LandingConfig, LineSearch, LineSearchConfig,
    Ponos, PonosConfig, Prodigy, ProdigyConfig, ProjectedSgd, ProjectedSgdConfig, Riemannian, RiemannianConfig,
    ScheduleFreeAdamW, ScheduleFreeAdamWConfig, ScheduleFreePlus, ScheduleFreePlusConfig, ScheduleFreeSgd,
    ScheduleFreeSgdConfig, Sgd, SgdConfig,
};
use faer::Mat;
use std::any::Any;
use strust::{
    Error,
    config::{Config, Field},
    constraints::{AnyConstraint, Constraint, Manifold, Retraction},
    expectation::AnyExpectation,
    methods::{
        AnyMethod, Auto, AutoConfig, Averaged, InExpectation, Str, StrConfig, StrLbfgs, StrLbfgsConfig, StrLsr1,
        StrLsr1Config, StrNewton, StrNewtonConfig, StrP, StrPConfig, StrSqp, StrSqpConfig,
    },
    schedule::Schedule,
    vector::Elementwise,
};

/// What is known of a method without making it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct MethodInfo {
    /// Its name.
    pub name: &'static str,
    /// One line for people.
    pub title: &'static str,
    /// Whether it needs a constraint.
    pub constrained: bool,
    /// What sets the length of its steps.
    pub steps: StepKind,
    /// Its parameters.
    pub fields: &'static [Field],
}

impl MethodInfo {
    /// Whether it has a parameter of this name. A method with a `learning_rate` can have a schedule.
    #[must_use]
    pub fn has(&self, parameter: &str) -> bool {
        self.fields.iter().any(|field| field.name == parameter)
    }
}

/// What sets the length of a method's steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
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

/// The configuration of a method as the user wrote it, in any format.
pub trait MethodOptions {
    /// Why they cannot be used.
    type Error: From<Error>;
    /// Reads and checks them.
    fn config<C: Config>(&self) -> Result<C, Self::Error>;
}

/// What a method needs in addition to its configuration.
pub struct MethodParts<'a, C: Constraint> {
    /// The factor of the learning rate, for a method that has one.
    pub schedule: Schedule,
    /// Whether the answer is the average of the iterates.
    pub average: bool,
    /// Makes the constraint with a retraction, for a method that needs one.
    pub constraint: &'a dyn Fn(Retraction) -> Result<C, Error>,
    /// Makes the constraint as rows over the means of groups of terms, for a method that needs them; `None` if it has no
    /// such form.
    pub expectation: &'a dyn Fn() -> Option<AnyExpectation<C::Point>>,
}

/// Something to do with the configuration of a method, whatever its type.
pub trait WithConfig {
    /// The result.
    type Output;
    /// Does it.
    fn with<C: Config>(self) -> Self::Output;
}

macro_rules! methods {
    ($($name:literal: $config:ident, $steps:ident, $constrained:literal, $title:literal,
        |$c:ident, $parts:ident| $make:expr;)*) => {
        /// All methods, in the order of lists.
        pub const ALL: &[MethodInfo] = &[$(MethodInfo {
            name: $name,
            title: $title,
            constrained: $constrained,
            steps: StepKind::$steps,
            fields: $config::FIELDS,
        }),*];

        /// Does something with the configuration of a method; `None` if there is no method of this name.
        pub fn with_config<W: WithConfig>(name: &str, work: W) -> Option<W::Output> {
            match name {
                $($name => Some(work.with::<$config>()),)*
                _ => None,
            }
        }

        /// Reads the configuration of a method; `None` if there is no method of this name.
        pub fn config<O: MethodOptions>(name: &str, options: &O) -> Option<Result<AnyConfig, O::Error>> {
            match name {
                $($name => Some(options.config::<$config>().map(|config| AnyConfig { name: $name, config: Box::new(config) })),)*
                _ => None,
            }
        }

        /// Makes a method on points of type `P`.
        pub fn method<P, C>(config: &AnyConfig, parts: &MethodParts<C>) -> Result<AnyMethod<P>, Error>
        where
            P: Elementwise + Send + 'static,
            C: Manifold<Point = P, Residual: Send> + Send + 'static,
        {
            let method = match config.name {
                $($name => {
                    let ($c, $parts) = (config.get::<$config>(), parts);
                    AnyMethod::new($make)
                })*
                name => unreachable!("{name} is in the table, since it has a configuration"),
            };
            Ok(if parts.average { AnyMethod::new(Averaged::of(method)) } else { method })
        }
    };
}

/// The configuration of a method, whatever its type.
pub struct AnyConfig {
    name: &'static str,
    config: Box<dyn Any>,
}

impl AnyConfig {
    fn get<C: Config + 'static>(&self) -> C {
        self.config.downcast_ref::<C>().expect("the name belongs to this type").clone()
    }
}

/// Points for which all methods are compiled once, in the crate of the implementation. Its users only link them.
pub trait MethodPoint: Elementwise + Send + 'static {
    /// [`method`].
    fn method(config: &AnyConfig, parts: &MethodParts<AnyConstraint<Self>>) -> Result<AnyMethod<Self>, Error>;
}

/// Compiles all methods for these types of points.
#[macro_export]
macro_rules! compile_methods {
    ($($point:ty),*) => {$(
        impl $crate::by_name::MethodPoint for $point {
            fn method(
                config: &$crate::by_name::AnyConfig,
                parts: &$crate::by_name::MethodParts<strust::constraints::AnyConstraint<Self>>,
            ) -> Result<strust::methods::AnyMethod<Self>, strust::Error> {
                $crate::by_name::method(config, parts)
            }
        }
    )*};
}
compile_methods!(Vec<f64>, Vec<f32>, Mat<f64>);

methods! {
    "auto": AutoConfig, Free, false,
        "The default: schedule-free trust region with learned curvature, no learning rate",
        |c, _parts| Auto::new(c)?;
    "str": StrConfig, Region, false, "Stochastic trust region, Algorithm 1", |c, _parts| Str::new(c)?;
    "str-newton": StrNewtonConfig, Region, false,
        "Stochastic trust region with the Hessian of the sample, by conjugate gradients",
        |c, _parts| StrNewton::new(c)?;
    "str-gauss-newton": StrNewtonConfig, Region, false,
        "Stochastic trust region with the Gauss–Newton matrix of the sample",
        |c, _parts| StrNewton::gauss_newton(c)?;
    "str-lbfgs": StrLbfgsConfig, Region, false,
        "Stochastic trust region with a limited-memory BFGS matrix from gradients on the same sample",
        |c, _parts| StrLbfgs::new(c)?;
    "str-lsr1": StrLsr1Config, Region, false,
        "Stochastic trust region with a limited-memory SR1 matrix from gradients on the same sample",
        |c, _parts| StrLsr1::new(c)?;
    "str-p": StrPConfig, Region, true, "Stochastic trust region with a quadratic penalty, Algorithm 2",
        |c, parts| StrP::new(c, (parts.constraint)(Retraction::Qr)?)?;
    "str-sqp": StrSqpConfig, Free, true,
        "Trust region with an exact penalty, minimized through its dual: no penalty to choose",
        |c, parts| StrSqp::new(c, (parts.constraint)(Retraction::Qr)?)?;
    "in-expectation": AutoConfig, Free, true,
        "Auto under bounds on means of groups that only mini-batches know, without a rate or penalty",
        |c, parts| InExpectation::around(Auto::new(c)?, (parts.expectation)().ok_or_else(no_expectation)?);
    "sgd": SgdConfig, Rate, false, "Stochastic gradient descent",
        |c, parts| Sgd::new(c)?.schedule(parts.schedule);
    "adam": AdamConfig, Normalized, false, "Adam; AdamW with weight_decay",
        |c, parts| Adam::new(c)?.schedule(parts.schedule);
    "sls": LineSearchConfig, Search, false, "SGD with a stochastic Armijo line search",
        |c, _parts| LineSearch::new(c)?;
    "prodigy": ProdigyConfig, Free, false, "Prodigy: Adam with an estimated distance as its rate",
        |c, parts| Prodigy::new(c)?.schedule(parts.schedule);
    "dog": DoGConfig, Free, false, "DoG: SGD with distance over gradients as its rate",
        |c, parts| DoG::new(c)?.schedule(parts.schedule);
    "schedule-free-sgd": ScheduleFreeSgdConfig, Rate, false, "Schedule-Free SGD: averaging in place of a schedule",
        |c, parts| ScheduleFreeSgd::new(c)?.schedule(parts.schedule);
    "schedule-free-adamw": ScheduleFreeAdamWConfig, Normalized, false,
        "Schedule-Free AdamW: averaging in place of a schedule",
        |c, parts| ScheduleFreeAdamW::new(c)?.schedule(parts.schedule);
    "schedule-free-plus": ScheduleFreePlusConfig, Free, false,
        "ScheduleFree+: Schedule-Free AdamW with momentum and a Polyak step size",
        |c, parts| ScheduleFreePlus::new(c)?.schedule(parts.schedule);
    "ponos": PonosConfig, Search, false, "PoNoS: a nonmonotone line search from a Polyak step",
        |c, _parts| Ponos::new(c)?;
    "sgd-proj": ProjectedSgdConfig, Rate, true, "SGD, projected back by QR",
        |c, parts| ProjectedSgd::new(c, (parts.constraint)(Retraction::Qr)?)?.schedule(parts.schedule);
    "riemannian": RiemannianConfig, Rate, true, "Riemannian gradient descent", |c, parts| {
        let manifold = (parts.constraint)(c.retraction)?;
        Riemannian::new(c, manifold)?.schedule(parts.schedule)
    };
    "auglag": AugLagConfig, Rate, true, "Stochastic augmented Lagrangian",
        |c, parts| AugLag::new(c, (parts.constraint)(Retraction::Qr)?)?.schedule(parts.schedule);
    "landing": LandingConfig, Rate, true,
        "Landing: SGD along the constraint, attracted by it, without retractions",
        |c, parts| Landing::new(c, (parts.constraint)(Retraction::Qr)?)?.schedule(parts.schedule);
}

fn no_expectation() -> Error {
    Error::OutOfRange {
        owner: "in-expectation",
        field: "constraint",
        value: "exact".into(),
        allowed: "rows over the means of groups of terms; use str-sqp".into(),
    }
}

/// What is known of a method; `None` if there is no method of this name.
#[must_use]
pub fn info(name: &str) -> Option<&'static MethodInfo> {
    ALL.iter().find(|info| info.name == name)
}
