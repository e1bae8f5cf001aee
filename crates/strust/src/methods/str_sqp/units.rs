//! Units of the coordinates: f and c as functions of z = x/u, where the start and the slopes agree that units differ.

use super::constants::PASSES;
use crate::{
    constraints::{Bounds, Constraint, ConstraintWrapper},
    objective::{Evaluation, Objective, ObjectiveWrapper, ProductKind},
    sample::Sample,
    vector::Vector,
};
use std::borrow::Cow;

/// u, powers of two, so that x = u∘z is exact; `None` if all are 1.
///
/// If coordinate i has a larger unit, xᵢ is larger at the start, and the slopes of f and of the rows along it are smaller. A
/// unit is as much off as both say: the median of 1, the relative size of xᵢ, and the inverse of its relative slope.
pub(super) fn units<V: Vector>(x: &V, g: &V, rows: &[V]) -> Option<Vec<f64>> {
    let slopes: Vec<Vec<f64>> = rows.iter().chain([g]).map(V::components).collect();
    let mut scales = vec![1.0; x.dimension()];
    for _ in 0..PASSES {
        let mut squares = vec![0.0; scales.len()];
        for row in &slopes {
            let all: f64 = row.iter().zip(&scales).map(|(a, scale)| (a * scale).powi(2)).sum();
            if all > 0.0 && all.is_finite() {
                squares.iter_mut().zip(row).for_each(|(square, a)| *square += a * a / all);
            }
        }
        scales = squares.iter().map(|square| square.sqrt().recip()).collect();
        scales.iter_mut().filter(|scale| !scale.is_finite()).for_each(|scale| *scale = 0.0);
    }
    let units: Vec<f64> = relative(&x.components()).iter().zip(relative(&scales)).map(|(a, b)| agreed(*a, b)).collect();
    units.iter().any(|unit| unit.to_bits() != 1.0_f64.to_bits()).then_some(units)
}

/// The nearest power of two to the median of 1, 2ᵃ and 2ᵇ.
fn agreed(a: f64, b: f64) -> f64 {
    (a.min(b).max(0.0) + a.max(b).min(0.0)).round().exp2()
}

/// The logarithms of the numbers, relative to their median; 0 for a number that is 0.
fn relative(numbers: &[f64]) -> Vec<f64> {
    let logarithm = |number: &f64| Some(number.abs().log2()).filter(|log| log.is_finite());
    let mut known: Vec<f64> = numbers.iter().filter_map(logarithm).collect();
    known.sort_by(f64::total_cmp);
    let median = known.get(known.len() / 2).copied().unwrap_or(0.0);
    numbers.iter().map(|number| logarithm(number).map_or(0.0, |log| log - median)).collect()
}

/// v ← u∘v, or v/u.
pub(super) fn change<V: Vector>(units: Option<&[f64]>, inverse: bool, v: &mut V) {
    for (i, unit) in units.into_iter().flatten().enumerate() {
        v.set_component(i, v.component(i) * if inverse { unit.recip() } else { *unit });
    }
}

/// u∘v; v itself without units.
fn changed<'v, V: Vector>(units: Option<&[f64]>, v: &'v V) -> Cow<'v, V> {
    let mut v = Cow::Borrowed(v);
    if units.is_some() {
        change(units, false, v.to_mut());
    }
    v
}

/// f or c as a function of z.
pub(super) struct InUnits<'a, T: ?Sized, V> {
    inner: &'a mut T,
    units: Option<&'a [f64]>,
    /// Those of a constraint.
    bounds: Option<Bounds<V>>,
}

impl<'a, T: ?Sized, V: Vector> InUnits<'a, T, V> {
    pub fn objective(inner: &'a mut T, units: Option<&'a [f64]>) -> Self {
        Self { inner, units, bounds: None }
    }
    pub fn constraint(inner: &'a mut T, units: Option<&'a [f64]>) -> Self
    where
        T: Constraint<Point = V>,
    {
        let bounds = units.and_then(|units| Some(inner.bounds()?.mapped(|x| change(Some(units), true, x))));
        Self { inner, units, bounds }
    }
}

impl<F: Objective + ?Sized> ObjectiveWrapper for InUnits<'_, F, F::Point> {
    type Inner = F;
    fn wrapped(&self) -> &F {
        self.inner
    }
    fn wrapped_mut(&mut self) -> &mut F {
        self.inner
    }
    fn value(this: &mut Self, x: &F::Point, sample: &Sample) -> Evaluation {
        this.inner.value(&changed(this.units, x), sample)
    }
    fn value_and_gradient(this: &mut Self, x: &F::Point, sample: &Sample, gradient: &mut F::Point) -> Evaluation {
        let evaluation = this.inner.value_and_gradient(&changed(this.units, x), sample, gradient);
        change(this.units, false, gradient);
        evaluation
    }
    fn curvature_product(
        this: &mut Self,
        kind: ProductKind,
        x: &F::Point,
        sample: &Sample,
        direction: &F::Point,
        product: &mut F::Point,
    ) -> bool {
        let (x, direction) = (changed(this.units, x), changed(this.units, direction));
        let made = this.inner.curvature_product(kind, &x, sample, &direction, product);
        change(this.units, false, product);
        made
    }
    fn constraint_norm(this: &mut Self, x: &F::Point) -> f64 {
        this.inner.constraint_norm(&changed(this.units, x))
    }
}

impl<C: Constraint> ConstraintWrapper for InUnits<'_, C, C::Point> {
    type Inner = C;
    fn wrapped(&self) -> &C {
        self.inner
    }
    fn wrapped_mut(&mut self) -> &mut C {
        self.inner
    }
    fn residual(this: &mut Self, x: &C::Point, c: &mut C::Residual) {
        this.inner.residual(&changed(this.units, x), c);
    }
    fn jvp(this: &mut Self, x: &C::Point, v: &C::Point, out: &mut C::Residual) {
        this.inner.jvp(&changed(this.units, x), &changed(this.units, v), out);
    }
    fn add_vjp(this: &mut Self, x: &C::Point, a: f64, y: &C::Residual, out: &mut C::Point) {
        if this.units.is_none() {
            return this.inner.add_vjp(x, a, y, out);
        }
        let mut pull = out.zeros_like();
        this.inner.add_vjp(&changed(this.units, x), a, y, &mut pull);
        change(this.units, false, &mut pull);
        out.add(1.0, &pull);
    }
    fn add_second_order_product(
        this: &mut Self,
        x: &C::Point,
        a: f64,
        y: &C::Residual,
        v: &C::Point,
        out: &mut C::Point,
    ) -> bool {
        if this.units.is_none() {
            return this.inner.add_second_order_product(x, a, y, v, out);
        }
        let mut pull = out.zeros_like();
        let (x, v) = (changed(this.units, x), changed(this.units, v));
        let made = this.inner.add_second_order_product(&x, a, y, &v, &mut pull);
        change(this.units, false, &mut pull);
        out.add(1.0, &pull);
        made
    }
    fn rounding(this: &Self, x: &C::Point, norm: f64) -> f64 {
        this.inner.rounding(&changed(this.units, x), norm)
    }
    fn bounds(this: &Self) -> Option<&Bounds<C::Point>> {
        if this.units.is_some() { this.bounds.as_ref() } else { this.inner.bounds() }
    }
    fn check_point(this: &Self, x: &C::Point) -> Result<(), crate::Error> {
        this.inner.check_point(x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_that_both_the_start_and_the_slopes_show_are_found() {
        let units = |s: f64| {
            let rows = [vec![0.5, 1.0, 2.0, 0.7 / s], vec![1.5, 0.5, 1.0, 1.1 / s]];
            units(&vec![1.0, -1.5, 0.8, 1.2 * s], &vec![1.0, 2.0, 1.0, -1.5 / s], &rows)
        };
        assert_eq!(units(1.0), None);
        let found = units(1000.0).unwrap();
        assert_eq!((&found[..3], (256.0..=2048.0).contains(&found[3])), (&[1.0; 3][..], true), "{found:?}");
    }

    #[test]
    fn a_start_or_slopes_alone_change_no_unit() {
        let g = vec![1.0, 1.0, 1.0];
        assert_eq!(units(&vec![1.0, 1.0, 1e6], &g, &[]), None);
        assert_eq!(units(&vec![1.0, 1.0, 1.0], &vec![1.0, 1.0, 1e6], &[]), None);
        assert_eq!(units(&vec![0.0; 3], &vec![1.0, 1.0, 1e6], &[]), None);
        assert_eq!(units(&vec![1.0, 1.0, 1e6], &vec![0.0; 3], &[]), None);
    }
}
