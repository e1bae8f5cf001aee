//! The methods, one file each: configuration, state, `init`, `step`.
//!
//! | method | source | problem |
//! |---|---|---|
//! | [`Auto`] | the default: three points, learned curvature, no learning rate | min f(x) |
//! | [`Str`] | Algorithm 1 | min f(x) |
//! | [`TrustRegion`] | Algorithm 1 with your own [model](crate::models) | min f(x) |
//! | [`StrNewton`] | Algorithm 1 with the Hessian of the sample | min f(x) |
//! | [`StrLbfgs`], [`StrLsr1`] | Algorithm 1 with a limited-memory quasi-Newton matrix | min f(x) |
//! | [`StrP`] | Algorithm 2 | min f(x), c(x) = 0 |
//! | [`StrSqp`] | an exact penalty, minimized through its dual | min f(x), c(x) = 0 or ≤ 0, bounds |
//! | [`InExpectation`] | `Auto` or `StrSqp` on a Lagrangian whose multipliers follow the noise | min f(x), E c(x) within bounds |
//! | [`Averaged`] | any method, with the average of its iterates as the answer | that of the method |

mod any;
mod auto;
mod averaged;
mod controller;
mod in_expectation;
mod str_limited_memory;
mod str_newton;
mod str_p;
mod str_sqp;
mod trust_region;

pub use any::{AnyMethod, AnyState};
pub use auto::{Auto, AutoConfig, AutoParts, AutoState};
pub use averaged::{Averaged, AveragedConfig, AveragedState};
pub use controller::Learned;
pub use in_expectation::{ExpectationEnd, InExpectation, InExpectationState, InnerMethod, RecentMean, RowMemory};
pub use str_limited_memory::{StrLbfgs, StrLbfgsConfig, StrLimitedMemoryState, StrLsr1, StrLsr1Config};
pub use str_newton::{StrNewton, StrNewtonConfig, StrNewtonState};
pub use str_p::{StrP, StrPConfig};
pub use str_sqp::{Certificate, SqpVerdict, StrSqp, StrSqpConfig, StrSqpState};
pub use trust_region::{Str, StrConfig, StrState, TrustRegion, TrustRegionState};

use crate::{
    Error,
    constraints::Manifold,
    kkt::Measurement,
    objective::{Evaluation, Objective, full_value_and_gradient},
    record::StepRecord,
    sample::Sample,
    saved::{Save, Saved},
    stop::StopReason,
    vector::Vector,
};

/// A method. It holds its checked configuration and scratch space; the caller owns the state.
///
/// No function here has a default, so a wrapper around another method cannot leave out a part of it.
pub trait Method<F: Objective + ?Sized> {
    /// Everything on which the next step depends, except the sample.
    type State: State<Point = F::Point>;

    /// Checks that x fits the problem, and resets the scratch space: before a start and before a resumed run.
    fn prepare(&mut self, f: &mut F, x: &F::Point) -> Result<(), Error>;

    /// The state at the start `x`, after [`Self::prepare`].
    fn init(&mut self, f: &mut F, x: F::Point) -> Result<Self::State, Error>;

    /// One step on one sample. Only the first call allocates, except for retractions onto a manifold and
    /// [`StrSqp`], whose dual is small beside a gradient, and [`StrNewton`], which makes up to `at_boundary` vectors when it
    /// first needs them. A step is a transaction: an error, or a panic in an evaluation, leaves the state unchanged.
    fn step(&mut self, f: &mut F, state: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error>;

    /// The state that was [saved](Save::save). It is checked when a run resumes from it.
    fn restore(&self, saved: &Saved) -> Result<Self::State, Error>;

    /// Measures the current point on the full sum.
    fn measure(&mut self, f: &mut F, state: &Self::State) -> Result<Measurement, Error>;
}

impl<F: Objective + ?Sized, M: Method<F> + ?Sized> Method<F> for &mut M {
    type State = M::State;
    fn prepare(&mut self, f: &mut F, x: &F::Point) -> Result<(), Error> {
        (**self).prepare(f, x)
    }
    fn init(&mut self, f: &mut F, x: F::Point) -> Result<Self::State, Error> {
        (**self).init(f, x)
    }
    fn step(&mut self, f: &mut F, state: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error> {
        (**self).step(f, state, sample)
    }
    fn restore(&self, saved: &Saved) -> Result<Self::State, Error> {
        (**self).restore(saved)
    }
    fn measure(&mut self, f: &mut F, state: &Self::State) -> Result<Measurement, Error> {
        (**self).measure(f, state)
    }
}

/// The state of a method, as plain data without scratch space. A run resumes bit for bit from a saved state.
pub trait State: Clone + Save {
    /// The type of x.
    type Point;
    /// x.
    fn point(&self) -> &Self::Point;
    /// x, by value.
    fn into_point(self) -> Self::Point;
    /// The same state at another point, to measure that point.
    #[must_use]
    fn with_point(self, x: Self::Point) -> Self;
    /// Steps made so far. This is also the number of the next sample.
    fn steps(&self) -> u64;
    /// Whether x is an average, at which no gradient was taken. Statistics that a problem keeps from step to step, such as
    /// those of batch-norm, then do not belong to x.
    fn is_averaged(&self) -> bool;
    /// The reason to stop that the method itself has found, such as constraints that contradict each other. `None`: make
    /// another step.
    fn settled(&self) -> Option<StopReason>;
    /// Whether the method itself will find where progress ends. Then no stagnation of the merit ends the run before.
    fn settles(&self) -> bool;
}

/// The state of a method that needs only the point and the step count.
#[derive(Debug, Clone, PartialEq)]
pub struct Iterate<V> {
    /// x.
    pub x: V,
    /// Steps made.
    pub k: u64,
}
crate::saved!([V: Vector] Iterate<V> { x: vector, k });

/// Implements [`State`] for a struct with the fields `x` and `k`. With `is_averaged`, x is an average. With
/// `settled by … if …`, these functions of the state are [`State::settled`] and [`State::settles`].
#[macro_export]
macro_rules! state {
    ($name:ident) => {
        $crate::state!($name<V>);
    };
    ($name:ident<V $(, $s:ident: $first:ident $(+ $bound:ident)*)?>) => {
        $crate::state!(@ $name<V $(, $s: $first $(+ $bound)*)?>, false, |_: &Self| None, |_: &Self| false);
    };
    ($name:ident<V>, is_averaged) => {
        $crate::state!(@ $name<V>, true, |_: &Self| None, |_: &Self| false);
    };
    ($name:ident<V>, settled by $reason:ident if $settles:ident) => {
        $crate::state!(@ $name<V>, false, Self::$reason, Self::$settles);
    };
    (@ $name:ident<V $(, $s:ident: $first:ident $(+ $bound:ident)*)?>, $is_averaged:literal, $settled:expr, $settles:expr) => {
        impl<V: $crate::vector::Vector $(, $s: $first $(+ $bound)*)?> $crate::methods::State for $name<V $(, $s)?> {
            type Point = V;
            fn point(&self) -> &V {
                &self.x
            }
            fn into_point(self) -> V {
                self.x
            }
            fn with_point(self, x: V) -> Self {
                Self { x, ..self }
            }
            fn steps(&self) -> u64 {
                self.k
            }
            fn is_averaged(&self) -> bool {
                $is_averaged
            }
            fn settled(&self) -> Option<$crate::stop::StopReason> {
                let settled: fn(&Self) -> Option<$crate::stop::StopReason> = $settled;
                settled(self)
            }
            fn settles(&self) -> bool {
                let settles: fn(&Self) -> bool = $settles;
                settles(self)
            }
        }
    };
}
state!(Iterate);

/// Scratch space that is created on first use.
pub fn scratch<'a, V: Vector>(slot: &'a mut Option<V>, like: &V) -> &'a mut V {
    slot.get_or_insert_with(|| like.zeros_like())
}

/// fᵢ(x), ∇fᵢ(x) and ‖∇fᵢ(x)‖². Values that are not finite are an error: x was accepted, so it is too late to reject a
/// step.
pub fn evaluate<F: Objective + ?Sized>(
    f: &mut F,
    x: &F::Point,
    sample: &Sample,
    gradient: &mut F::Point,
    step: u64,
) -> Result<(Evaluation, f64), Error> {
    let evaluation = f.value_and_gradient(x, sample, gradient);
    Ok((evaluation, finite(evaluation, gradient, step)?))
}

/// ‖g‖², or an error if the value or the gradient at an accepted point is not finite, or if the square under- or overflows.
/// Near a minimum it may vanish, so only the first step checks this.
fn finite<V: Vector>(evaluation: Evaluation, gradient: &V, step: u64) -> Result<f64, Error> {
    if !evaluation.value.is_finite() {
        return Err(Error::NonFiniteValue { step, value: evaluation.value });
    }
    let squared = gradient.norm_squared();
    let vanishes = step == 0 && squared < f64::MIN_POSITIVE;
    if vanishes || !squared.is_finite() {
        let norm = gradient.norm();
        if !norm.is_finite() {
            return Err(Error::NonFiniteGradient { step, norm });
        }
        if norm > 0.0 {
            return Err(Error::GradientScale { step, norm });
        }
    }
    Ok(squared)
}

/// Measures a point of a manifold on the full sum: the gradient is that along the manifold.
pub fn measure_on_manifold<F, M>(f: &mut F, manifold: &mut M, x: &F::Point) -> Result<Measurement, Error>
where
    F: Objective + ?Sized,
    M: Manifold<Point = F::Point>,
{
    let mut g = x.zeros_like();
    let value = full_value_and_gradient(f, x, &mut g);
    if manifold.bounds().is_some() {
        // A face has two sides: x − restore(x − g) is 0 only if the gradient points out of the set.
        let mut back = x.clone();
        back.add(-1.0, &g);
        manifold.restore(&mut back)?;
        g.set_sum(x, -1.0, &back);
    } else {
        manifold.project_tangent(x, &mut g)?;
    }
    let mut c = manifold.new_residual();
    manifold.residual(x, &mut c);
    Ok(Measurement { value, merit: value, gradient_norm: g.norm(), constraint_norm: c.norm() })
}
