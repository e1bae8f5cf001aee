//! The safeguard at the rounding floor. Without it the radius collapses. With it the run continues and its result is no
//! worse.

use crate::common::{LeastSquares, normals};
use strust::{
    objective::{Evaluation, ObjectiveWrapper, full_value_and_gradient},
    prelude::*,
    radius::RegionConfig,
    samplers::Sampler,
    vector::Real,
};

/// The same objective with another rounding error; `None` is the default.
struct WithRounding<F>(F, fn(f64) -> Option<f64>);

impl<F: Objective> WithRounding<F> {
    fn restated(&self, value: f64) -> Evaluation {
        let default = Evaluation::new(value, F::Point::EPSILON);
        (self.1)(value).map_or(default, |rounding| Evaluation { value, rounding })
    }
}

impl<F: Objective> ObjectiveWrapper for WithRounding<F> {
    type Inner = F;
    fn wrapped(&self) -> &F {
        &self.0
    }
    fn wrapped_mut(&mut self) -> &mut F {
        &mut self.0
    }
    fn value(this: &mut Self, x: &F::Point, sample: &Sample) -> Evaluation {
        let value = this.0.value(x, sample).value;
        this.restated(value)
    }
    fn value_and_gradient(this: &mut Self, x: &F::Point, sample: &Sample, gradient: &mut F::Point) -> Evaluation {
        let value = this.0.value_and_gradient(x, sample, gradient).value;
        this.restated(value)
    }
}

/// The result of a run.
#[derive(Debug)]
struct Outcome {
    /// The smallest radius of the last thousand steps.
    radius: f64,
    /// The full value and the full gradient's norm at the end.
    value: f64,
    gradient: f64,
}

fn run<F: Objective>(mut f: F, start: F::Point, batch: usize, scale: f64) -> Outcome {
    let steps = 2500;
    let mut sampler = Epochs::new(f.terms(), batch, 5).unwrap();
    let mut method = Str::new(StrConfig {
        region: RegionConfig { initial_radius: 8.0 * scale, max_radius: 80.0 * scale, ..Default::default() },
    })
    .unwrap();
    let mut state = method.init(&mut f, start).unwrap();
    let (mut sample, mut radius) = (Sample::default(), f64::INFINITY);
    for k in 0..steps {
        sampler.draw(k, &mut sample);
        method.step(&mut f, &mut state, &sample).unwrap();
        if k + 1000 >= steps {
            radius = radius.min(state.radius());
        }
    }
    let mut gradient = state.point().zeros_like();
    let value = full_value_and_gradient(&mut f, state.point(), &mut gradient);
    Outcome { radius, value, gradient: gradient.norm() }
}

fn problem<T: Real>(seed: u64, scale: f64, noise: f64) -> LeastSquares<T> {
    let answer: Vec<f64> = normals(seed + 500, 10).iter().map(|v| v * scale).collect();
    let mut f = LeastSquares::<T>::interpolating(seed, 40, &answer);
    f.rows.iter_mut().for_each(|row| row.iter_mut().for_each(|v| *v *= T::from_f64(2.0)));
    f.right
        .iter_mut()
        .zip(normals(seed + 900, 40))
        .for_each(|(b, e)| *b = T::from_f64(2.0 * (*b).into() + scale * noise * e));
    f.magnitude *= 2.0;
    f
}

/// Full batches of a problem whose minimum is not 0. Near it, f changes by less than its rounding error.
fn at_a_positive_minimum<T: Real>() {
    for scale in [1.0, 2.0_f64.powi(-20)] {
        let mut collapsed = 0;
        for seed in 0..20 {
            let f = || problem::<T>(seed, scale, 0.5);
            let start = || vec![T::default(); 10];
            let without = run(WithRounding(f(), |_| Some(0.0)), start(), 40, scale);
            collapsed += u32::from(without.radius < 1e-100);
            // The rounding error of a least-squares problem, and the default of every objective.
            for with in [run(f(), start(), 40, scale), run(WithRounding(f(), |_| None), start(), 40, scale)] {
                assert!(with.radius > scale, "seed {seed}: {with:?}");
                assert!(with.gradient <= without.gradient, "seed {seed}: {with:?}, {without:?}");
                assert!(with.value <= without.value * (1.0 + 4.0 * T::EPSILON), "seed {seed}: {with:?}, {without:?}");
            }
        }
        assert!(collapsed >= 18, "only {collapsed} of 20 radii collapse without the safeguard, at scale {scale}");
    }
}

#[test]
fn at_a_positive_minimum_the_radius_collapses_without_the_safeguard_and_stays_with_it_in_f64() {
    at_a_positive_minimum::<f64>();
}

#[test]
fn at_a_positive_minimum_the_radius_collapses_without_the_safeguard_and_stays_with_it_in_f32() {
    at_a_positive_minimum::<f32>();
}

/// Mini-batches of a problem that interpolates. There f decreases to the square of a rounding error.
fn where_the_model_interpolates<T: Real>(floor: f64) {
    for scale in [1.0, 2.0_f64.powi(-20)] {
        for seed in 0..20 {
            let with = run(problem::<T>(seed, scale, 0.0), vec![T::default(); 10], 8, scale);
            assert!(with.radius > scale, "seed {seed}: {with:?}");
            assert!(with.value <= floor * scale * scale, "seed {seed}: {with:?}");
        }
    }
}

#[test]
fn with_interpolation_the_radius_stays_and_the_gap_reaches_1e_30_in_f64() {
    where_the_model_interpolates::<f64>(1e-30);
}

#[test]
fn with_interpolation_the_radius_stays_and_the_gap_reaches_the_rounding_floor_in_f32() {
    where_the_model_interpolates::<f32>(1e-12);
}

/// The judgment is scale-free. STR itself is not, because H = I fixes a ≤ 1.
#[test]
fn the_judgment_does_not_depend_on_the_units_of_f() {
    let region = RegionConfig::default();
    let numbers = normals(1, 300);
    for three in numbers.chunks_exact(3) {
        let (actual, predicted, value) = (three[0], three[1].abs(), 1e3 * three[2]);
        // Near the rounding floor and far from it.
        for small in [1.0, 1e-13, 1e-16, 1e-19] {
            let judge = |scale: f64| {
                let slack = Evaluation::of_squares(scale * value, f64::EPSILON, scale.sqrt()).rounding;
                region.judge(0.5, small * scale * actual, small * scale * predicted, slack)
            };
            for power in [-40, 40] {
                assert_eq!(judge(2.0_f64.powi(power)), judge(1.0), "actual {actual}, predicted {predicted}, {small}");
            }
        }
    }
}

#[test]
fn far_from_the_rounding_floor_the_correction_changes_no_decision() {
    let region = RegionConfig::default();
    for pair in normals(2, 2000).chunks_exact(2) {
        let (actual, predicted) = (pair[0], pair[1].abs());
        let (with, without) = (region.judge(0.5, actual, predicted, 1e-16), region.judge(0.5, actual, predicted, 0.0));
        assert_eq!(
            (with.verdict, with.change, with.next_radius),
            (without.verdict, without.change, without.next_radius)
        );
        assert!((with.ratio - without.ratio).abs() <= 1e-12 * (1.0 + without.ratio.abs()) / predicted);
    }
}
