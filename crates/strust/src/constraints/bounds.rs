use super::{Constraint, Manifold};
use crate::{Error, config::out_of_range, vector::Vector};

/// The box lower ≤ x ≤ upper. A component without a bound is infinite.
///
/// It is a constraint without rows: [`StrSqp`](crate::methods::StrSqp) keeps every iterate in it.
/// [`both`](super::both) joins it with others.
///
/// ```
/// use strust::prelude::*;
/// let mut f = from_terms(1, |_, x: &Vec<f64>, g| { g[0] += 2.0 * (x[0] - 3.0); (x[0] - 3.0).powi(2) });
/// let method = StrSqp::new(StrSqpConfig::default(), Bounds::new(vec![0.0], vec![2.0])?)?;
/// let report = minimize(&mut f).method(method).full_batch().start(vec![1.0])?;
/// assert_eq!(report.point()[0], 2.0);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Bounds<V> {
    lower: V,
    upper: V,
    /// The finite bounds: component, and −1 for a lower or +1 for an upper bound.
    finite: Vec<(usize, f64)>,
}

impl<V: Vector> Bounds<V> {
    /// lower ≤ x ≤ upper.
    pub fn new(lower: V, upper: V) -> Result<Self, Error> {
        if lower.shape() != upper.shape() {
            return Err(Error::Shape { place: "bounds", expected: lower.shape(), found: upper.shape() });
        }
        let mut finite = Vec::new();
        for i in 0..lower.dimension() {
            let (low, high) = (lower.component(i), upper.component(i));
            if low.is_nan() || high.is_nan() || low > high || low == f64::INFINITY || high == f64::NEG_INFINITY {
                let value = format!("between {low} and {high} at component {i}");
                return Err(out_of_range("bounds", "x", value, "between a lower bound and an upper bound above it"));
            }
            if low.is_finite() {
                finite.push((i, -1.0));
            }
            if high.is_finite() {
                finite.push((i, 1.0));
            }
        }
        Ok(Self { lower, upper, finite })
    }
    /// x ≥ 0, for points of the shape of `x`.
    pub fn nonnegative(x: &V) -> Self {
        let (lower, upper) = (x.zeros_like(), filled(x, f64::INFINITY));
        Self { lower, upper, finite: (0..x.dimension()).map(|i| (i, -1.0)).collect() }
    }
    /// The points within both boxes.
    pub(super) fn intersect(&self, other: &Self) -> Result<Self, Error> {
        let (mut lower, mut upper) = (self.lower.clone(), self.upper.clone());
        if lower.shape() != other.lower.shape() {
            return Err(Error::Shape { place: "bounds", expected: lower.shape(), found: other.lower.shape() });
        }
        for &(i, side) in &other.finite {
            if side < 0.0 {
                lower.set_component(i, lower.component(i).max(other.lower.component(i)));
            } else {
                upper.set_component(i, upper.component(i).min(other.upper.component(i)));
            }
        }
        Self::new(lower, upper)
    }
    /// The same box after a change of both corners that keeps their order.
    pub(crate) fn mapped(&self, change: impl Fn(&mut V)) -> Self {
        let mut mapped = self.clone();
        change(&mut mapped.lower);
        change(&mut mapped.upper);
        mapped
    }
    /// The finite bounds: component, and −1 for a lower or +1 for an upper bound.
    pub(crate) fn finite(&self) -> &[(usize, f64)] {
        &self.finite
    }
    /// x ← the nearest point within the bounds.
    pub fn clip(&self, x: &mut V) {
        for &(i, side) in &self.finite {
            let value = x.component(i);
            let clipped =
                if side < 0.0 { value.max(self.lower.component(i)) } else { value.min(self.upper.component(i)) };
            if clipped.to_bits() != value.to_bits() {
                x.set_component(i, clipped);
            }
        }
    }
    /// x ← the nearest point within the bounds that is at each finite bound with a multiplier.
    pub(crate) fn clip_to(&self, multipliers: &[f64], x: &mut V) {
        self.clip(x);
        for (&(i, side), _) in self.finite.iter().zip(multipliers).filter(|(_, multiplier)| **multiplier > 0.0) {
            x.set_component(i, if side < 0.0 { self.lower.component(i) } else { self.upper.component(i) });
        }
    }
    /// By how much x violates each finite bound; at most 0 within the bounds.
    pub(crate) fn violations<'a>(&'a self, x: &'a V) -> impl Iterator<Item = f64> + 'a {
        self.finite.iter().map(|&(i, side)| {
            if side < 0.0 { self.lower.component(i) - x.component(i) } else { x.component(i) - self.upper.component(i) }
        })
    }
}

/// A vector of the shape of `like`, all of whose components are `value`.
pub(super) fn filled<V: Vector>(like: &V, value: f64) -> V {
    let mut filled = like.zeros_like();
    (0..like.dimension()).for_each(|i| filled.set_component(i, value));
    filled
}

impl<V: Vector> Constraint for Bounds<V> {
    type Point = V;
    type Residual = Vec<f64>;
    fn new_residual(&self) -> Vec<f64> {
        Vec::new()
    }
    fn residual(&mut self, _x: &V, _c: &mut Vec<f64>) {}
    fn jvp(&mut self, _x: &V, _v: &V, _out: &mut Vec<f64>) {}
    fn add_vjp(&mut self, _x: &V, _a: f64, _y: &Vec<f64>, _out: &mut V) {}
    /// c is linear.
    fn add_second_order_product(&mut self, _: &V, _: f64, _: &Vec<f64>, _: &V, _: &mut V) -> bool {
        true
    }
    fn bounds(&self) -> Option<&Bounds<V>> {
        Some(self)
    }
    fn check_point(&self, x: &V) -> Result<(), Error> {
        let (expected, found) = (self.lower.shape(), x.shape());
        if expected == found { Ok(()) } else { Err(Error::Shape { place: "bounds, point", expected, found }) }
    }
}

impl<V: Vector> Manifold for Bounds<V> {
    /// Components at a bound become 0.
    fn project_tangent(&mut self, x: &V, v: &mut V) -> Result<(), Error> {
        hold(self, x, v);
        Ok(())
    }
    fn restore(&mut self, x: &mut V) -> Result<(), Error> {
        self.clip(x);
        Ok(())
    }
}

/// Sets the components of v to 0 where x is at a bound, and returns these components.
pub(super) fn hold<V: Vector>(bounds: &Bounds<V>, x: &V, v: &mut V) -> Vec<usize> {
    let held = bounds.finite.iter().zip(bounds.violations(x)).filter(|(_, violation)| *violation >= 0.0);
    let held: Vec<usize> = held.map(|(&(i, _), _)| i).collect();
    for &i in &held {
        v.set_component(i, 0.0);
    }
    held
}
