//! The trust region, as pure functions of numbers. They compute the verdict and the next radius from two reductions and
//! a rounding error.

use crate::{
    config,
    config::{Config, Field, out_of_range},
};

config! {
    /// The constants of the trust region in Algorithms 1 and 2.
    ///
    /// The paper's symbols: Δ₀ is `initial_radius`, Δ̄ is `max_radius`, c₀, c₁, c₂ are `accept_above`, `shrink_below`
    /// and `grow_above`, and ν₁, ν₂ are `shrink` and `grow`. Section 5.2 of the paper lists ν₁ = 1.5 and ν₂ = 0.5. In
    /// Algorithm 1 these values would shrink the radius on success, and the method would stall. Here they mean: grow by
    /// 1.5, and shrink by 1/0.5 = 2.
    pub struct RegionConfig for "trust region" {
        /// Radius Δ₀ of the first step. Paper: 8 for CIFAR-10, 0.2 for subspace fitting.
        pub initial_radius: f64 = 8.0, Number(Range::above(0.0));
        /// Largest radius Δ̄. Paper: 80 for CIFAR-10, 5 for subspace fitting.
        pub max_radius: f64 = 80.0, Number(Range::above(0.0));
        /// A step is accepted if its ratio is above c₀.
        pub accept_above: f64 = 0.05, Number(Range::open(0.0, 1.0));
        /// The radius shrinks if the ratio is below c₁ ≥ c₀.
        pub shrink_below: f64 = 0.10, Number(Range::open(0.0, 1.0));
        /// The radius grows if the ratio is above c₂ ≥ c₁. Paper: 0.5 for CIFAR-10, 0.9 for subspace fitting.
        pub grow_above: f64 = 0.50, Number(Range::open(0.0, 1.0));
        /// The radius is divided by this, ν₁ > 1.
        pub shrink: f64 = 2.0, Number(Range::above(1.0));
        /// The radius is multiplied by this, ν₂ > 1. Paper: 5 for CIFAR-10, 1.5 for subspace fitting.
        pub grow: f64 = 5.0, Number(Range::above(1.0));
    }
    where |c| {
        let not_above = |field, value: f64, other, limit: f64| {
            if value > limit {
                return Err(out_of_range("trust region", field, value, format_args!("at most `{other}` = {limit}")));
            }
            Ok(())
        };
        not_above("initial_radius", c.initial_radius, "max_radius", c.max_radius)?;
        not_above("accept_above", c.accept_above, "shrink_below", c.shrink_below)?;
        not_above("shrink_below", c.shrink_below, "grow_above", c.grow_above)
    }
}

impl RegionConfig {
    /// The constants of section 5.2, constrained subspace fitting.
    #[must_use]
    pub fn constrained() -> Self {
        Self { initial_radius: 0.2, max_radius: 5.0, grow_above: 0.9, grow: 1.5, ..Self::default() }
    }
    /// The constants for a model with curvature. With such a model, the radius grows only if the step ends at the boundary,
    /// and shrinks to the length of the step divided by `shrink`.
    #[must_use]
    pub fn with_curvature() -> Self {
        let (shrink_below, grow_above, shrink, grow) = (0.25, 0.75, 4.0, 2.0);
        Self { initial_radius: 1.0, max_radius: 1e10, shrink_below, grow_above, shrink, grow, ..Self::default() }
    }
    /// The table of a region for a model with curvature.
    pub(crate) const FIELDS_WITH_CURVATURE: &'static [Field] = &{
        let meanings = [
            "Radius of the first step.",
            "Largest radius.",
            "A step is accepted if its ratio is above this.",
            "The radius shrinks if the ratio is below this.",
            "The radius grows if the ratio is above this and the step ends at the boundary.",
            "The radius becomes the length of the step divided by this.",
            "The radius is multiplied by this.",
        ];
        let mut fields = [Self::FIELDS[0]; 7];
        let mut i = 0;
        while i < fields.len() {
            fields[i] = Field { meaning: meanings[i], ..Self::FIELDS[i] };
            i += 1;
        }
        fields
    };
}

/// Declares the configuration of a method with a trust region: [`config!`] with the field `region`, its default and the rows
/// of its table. In files, in Python and in listings, the fields of the region are those of the configuration.
macro_rules! region_config {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident for $method:literal {
            $( $(#[doc = $meaning:literal])+ pub $field:ident: $ty:ty = $default:expr, $allowed:expr; )*
            region = $region:expr, $rows:expr;
        }
    ) => {
        $(#[doc = $doc])*
        ///
        /// | field | default | allowed | meaning |
        /// |---|---|---|---|
        $(#[doc = concat!("| `", stringify!($field), "` | `", stringify!($default), "` | `", stringify!($allowed), "` |", $($meaning,)+ " |")])*
        #[doc = concat!("| `region` | `", stringify!($region), "` | | The trust region. |")]
        #[derive(Debug, Clone, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        pub struct $name {
            $( $(#[doc = $meaning])+ pub $field: $ty, )*
            /// The trust region.
            #[cfg_attr(feature = "serde", serde(flatten))]
            pub region: $crate::radius::RegionConfig,
        }
        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $default, )* region: $region }
            }
        }
        impl $crate::config::Config for $name {
            const NAME: &'static str = $method;
            const FIELDS: &'static [$crate::config::Field] = &{
                const OWN: &[$crate::config::Field] = &[
                    $( $crate::config::Field {
                        name: stringify!($field),
                        allowed: { use $crate::config::words::*; const ALLOWED: $crate::config::Allowed = $allowed; ALLOWED },
                        meaning: concat!($($meaning,)+).trim_ascii(),
                    }, )*
                ];
                let mut fields = [$rows[0]; OWN.len() + 7];
                let mut i = 0;
                while i < fields.len() {
                    fields[i] = if i < OWN.len() { OWN[i] } else { $rows[i - OWN.len()] };
                    i += 1;
                }
                fields
            };
            fn numbers(&self) -> Vec<Option<f64>> {
                let own = [ $( $crate::config::FieldValue::number(&self.$field), )* ];
                own.into_iter().chain(self.region.numbers()).collect()
            }
            fn check_relations(&self) -> Result<(), $crate::Error> {
                self.region.check_relations()
            }
        }
        // `flatten` would take missing fields from the default of the region instead of that of the method, and it would
        // accept misspelled fields.
        #[cfg(feature = "serde")]
        const _: () = {
            #[derive(serde::Deserialize)]
            #[serde(default, deny_unknown_fields)]
            struct FlatConfig {
                $( $field: $ty, )*
                initial_radius: f64, max_radius: f64, accept_above: f64, shrink_below: f64, grow_above: f64, shrink: f64, grow: f64,
            }
            impl Default for FlatConfig {
                fn default() -> Self {
                    let $name { $( $field, )* region } = $name::default();
                    let $crate::radius::RegionConfig { initial_radius, max_radius, accept_above, shrink_below, grow_above, shrink, grow } = region;
                    Self { $( $field, )* initial_radius, max_radius, accept_above, shrink_below, grow_above, shrink, grow }
                }
            }
            impl<'de> serde::Deserialize<'de> for $name {
                fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                    let FlatConfig { $( $field, )* initial_radius, max_radius, accept_above, shrink_below, grow_above, shrink, grow } =
                        FlatConfig::deserialize(from)?;
                    let region = $crate::radius::RegionConfig { initial_radius, max_radius, accept_above, shrink_below, grow_above, shrink, grow };
                    Ok(Self { $( $field, )* region })
                }
            }
        };
    };
}
pub(crate) use region_config;

/// Whether the step was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum Verdict {
    /// x ← x + p.
    Accepted,
    /// x is unchanged, bit for bit.
    Rejected,
    /// Nothing was evaluated: the sample was drawn to pay for a step that costs more than one. The record has no value and
    /// no gradient, and counts in no rate and no mean.
    Skipped,
}

/// What happens to the radius.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum Change {
    /// Divided by `shrink`.
    Shrink,
    /// Unchanged.
    Keep,
    /// Multiplied by `grow`, up to `max_radius`.
    Grow,
}

/// The outcome of one trial.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Judgment {
    /// r = (actual + rounding) / (predicted + rounding).
    pub ratio: f64,
    /// Whether r is above c₀.
    pub verdict: Verdict,
    /// What happens to the radius.
    pub change: Change,
    /// The radius of the next step.
    pub next_radius: f64,
}

impl RegionConfig {
    /// Judges a trial from the `actual` and the `predicted` reduction of the same function and from the size of the
    /// rounding error in the computed `actual`.
    ///
    /// `rounding` is added to both reductions (Conn, Gould and Toint 2000, §17.4.2). So the ratio tends to 1 where both
    /// are smaller than the rounding error, and is almost unchanged elsewhere. A step with an `actual` that is not
    /// finite is rejected.
    ///
    /// ```
    /// use strust::radius::{Change, RegionConfig, Verdict};
    /// let region = RegionConfig::default();
    /// let j = region.judge(1.0, 0.9, 1.0, 0.0);
    /// assert_eq!((j.verdict, j.change, j.next_radius), (Verdict::Accepted, Change::Grow, 5.0));
    /// let j = region.judge(1.0, f64::NAN, 1.0, 0.0);
    /// assert_eq!((j.verdict, j.change, j.next_radius), (Verdict::Rejected, Change::Shrink, 0.5));
    /// ```
    #[must_use]
    pub fn judge(&self, radius: f64, actual: f64, predicted: f64, rounding: f64) -> Judgment {
        let (numerator, denominator) = (actual + rounding, predicted + rounding);
        // Both reductions underflow: neither can be resolved, as below the rounding error.
        let ratio = if numerator == 0.0 && denominator == 0.0 { 1.0 } else { numerator / denominator };
        // A model that predicts an increase must not turn an increase into a success.
        let ratio = if actual.is_finite() && predicted >= 0.0 { ratio } else { f64::NEG_INFINITY };
        let verdict = if ratio > self.accept_above { Verdict::Accepted } else { Verdict::Rejected };
        // Differs: with c₀ = c₁ = r the paper rejects the step and keeps the radius. Here a rejection always shrinks
        // it.
        let change = if ratio > self.grow_above {
            Change::Grow
        } else if ratio >= self.shrink_below && verdict == Verdict::Accepted {
            Change::Keep
        } else {
            Change::Shrink
        };
        let next_radius = match change {
            Change::Grow => (self.grow * radius).min(self.max_radius),
            Change::Keep => radius,
            // The radius stays positive, so that it can grow again.
            Change::Shrink => (radius / self.shrink).max(f64::MIN_POSITIVE),
        };
        Judgment { ratio, verdict, change, next_radius }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn region()(c in [0.001..0.999_f64, 0.001..0.999, 0.001..0.999], shrink in 1.001..50.0_f64,
            grow in 1.001..50.0_f64, max_radius in 1e-3..1e6_f64) -> RegionConfig {
            let mut c = c;
            c.sort_by(f64::total_cmp);
            let region = RegionConfig { initial_radius: max_radius, max_radius, accept_above: c[0],
                shrink_below: c[1], grow_above: c[2], shrink, grow };
            region.clone().check().expect("sorted constants are valid");
            region
        }
    }

    fn number() -> impl Strategy<Value = f64> {
        prop_oneof![
            Just(0.0),
            Just(f64::NAN),
            Just(f64::INFINITY),
            Just(f64::NEG_INFINITY),
            any::<f64>(),
            -1e3..1e3_f64
        ]
    }

    proptest! {
        #[test]
        fn a_reduction_that_is_not_finite_is_rejected(region in region(), radius in 1e-9..1.0_f64, predicted in 0.0..1e3_f64,
            bad in prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY)]) {
            let radius = radius * region.max_radius;
            let j = region.judge(radius, bad, predicted, 1e-16);
            prop_assert_eq!((j.verdict, j.change), (Verdict::Rejected, Change::Shrink));
        }

        #[test]
        fn a_rejection_shrinks_the_radius_and_keeps_it_positive(region in region(), exponent in -300.0..0.0_f64,
            actual in number(), predicted in 0.0..1e3_f64, rounding in 0.0..1.0_f64) {
            let radius = region.max_radius * 10.0_f64.powf(exponent);
            let j = region.judge(radius, actual, predicted, rounding);
            prop_assert!(j.next_radius > 0.0 && j.next_radius <= region.max_radius);
            if j.verdict == Verdict::Rejected {
                prop_assert!(j.next_radius < radius);
            }
        }

        #[test]
        fn the_outcome_is_monotone_in_the_actual_reduction(region in region(), radius in 1e-9..1.0_f64,
            a in -1e3..1e3_f64, b in -1e3..1e3_f64, predicted in 1e-9..1e3_f64, rounding in 0.0..1.0_f64) {
            let radius = radius * region.max_radius;
            let (low, high) = (a.min(b), a.max(b));
            let (low, high) = (region.judge(radius, low, predicted, rounding), region.judge(radius, high, predicted, rounding));
            prop_assert!(low.next_radius <= high.next_radius && low.ratio <= high.ratio);
            prop_assert!(low.verdict == Verdict::Rejected || high.verdict == Verdict::Accepted);
        }

        #[test]
        fn at_the_rounding_floor_the_ratio_tends_to_one(region in region(), noise in -1.0..1.0_f64) {
            let j = region.judge(region.max_radius, 1e-20 * noise, 1e-21, 1e-16);
            prop_assert!((j.ratio - 1.0).abs() < 1e-3);
            prop_assert_eq!(j.verdict, Verdict::Accepted);
        }

        #[test]
        fn the_judgment_does_not_depend_on_the_scale_of_f(region in region(), actual in -1e3..1e3_f64,
            predicted in 1e-3..1e3_f64, power in -40_i32..40) {
            let scale = 2.0_f64.powi(power);
            let (a, b) = (region.judge(1e-3, actual, predicted, 1e-9), region.judge(1e-3, actual * scale, predicted * scale, 1e-9 * scale));
            prop_assert_eq!(a, b);
        }
    }

    #[test]
    fn the_ratio_of_two_reductions_that_underflow_is_one() {
        let region = RegionConfig::default();
        let j = region.judge(1.0, 0.0, 0.0, 0.0);
        assert_eq!((j.ratio, j.verdict, j.change), (1.0, Verdict::Accepted, Change::Grow));
        assert_eq!(region.judge(1.0, -f64::MIN_POSITIVE, 0.0, 0.0).verdict, Verdict::Rejected);
    }

    #[test]
    fn errors_name_the_field_the_value_and_the_range() {
        let error = |c: RegionConfig| c.check().unwrap_err().to_string();
        let ok = RegionConfig::default();
        assert_eq!(error(RegionConfig { grow: 0.5, ..ok.clone() }), "trust region: `grow` is 0.5, but must be > 1");
        assert_eq!(
            error(RegionConfig { initial_radius: f64::NAN, ..ok.clone() }),
            "trust region: `initial_radius` is NaN, but must be > 0"
        );
        assert_eq!(
            error(RegionConfig { initial_radius: 90.0, ..ok.clone() }),
            "trust region: `initial_radius` is 90, but must be at most `max_radius` = 80"
        );
        assert_eq!(
            error(RegionConfig { accept_above: 0.2, ..ok }),
            "trust region: `accept_above` is 0.2, but must be at most `shrink_below` = 0.1"
        );
    }
}
