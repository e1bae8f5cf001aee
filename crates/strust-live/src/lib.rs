//! Runs of strust on functions of the plane, for the live page of the site. `docs/live/live.js` calls the exports and
//! draws the numbers that they return. All methods are those of the library.

// An export needs its plain name. The lint for other targets still denies unsafe code.
#![cfg_attr(target_arch = "wasm32", allow(unsafe_code, reason = "no_mangle"))]

use std::{cell::Cell, cell::RefCell, f64::consts::TAU};
use strust::methods::{AnyMethod, AnyState, AutoState, Learned, StrSqpState, StrState};
use strust::radius::{RegionConfig, Verdict};
use strust::{constraints::Sphere, prelude::*, run::next_step, samplers::Sampler};

const TERMS: usize = 64;
const CHECKED: &str = "the settings are in their ranges, and every point of the plane is a start";

/// f and ∇f: 0 is a long bowl with its minimum at (1.5, 1), 1 Rosenbrock's curved valley with its minimum at (1, 1), 2
/// Himmelblau's four minima in units of 2.5. The largest curvature at a minimum is 2 to 5. That of STR's model is 1.
fn f(function: u32, [x, y]: [f64; 2]) -> (f64, [f64; 2]) {
    match function {
        0 => {
            let (u, v) = (0.8 * (x - 1.5) + 0.6 * (y - 1.0), 0.8 * (y - 1.0) - 0.6 * (x - 1.5));
            (0.1 * u * u + v * v, [0.16 * u - 1.2 * v, 0.12 * u + 1.6 * v])
        }
        1 => {
            let (u, v) = (1.0 - x, y - x * x);
            (0.05 * u * u + 0.5 * v * v, [-0.1 * u - 2.0 * x * v, v])
        }
        _ => {
            let (x, y) = (2.5 * x, 2.5 * y);
            let (u, v) = (x * x + y - 11.0, x + y * y - 7.0);
            (0.004 * (u * u + v * v), [0.02 * (2.0 * x * u + v), 0.02 * (u + 2.0 * y * v)])
        }
    }
}

/// The mean of terms. Term i is f tilted by `noise` in direction i of 64 on a circle, so the tilts cancel in the sum.
fn objective(function: u32, noise: f64) -> Box<dyn Objective<Point = Vec<f64>>> {
    let mean = move |x: &Vec<f64>, sample: &Sample, g: Option<&mut Vec<f64>>| {
        let (point, share) = ([x[0], x[1]], noise / sample.len() as f64);
        let (mut value, mut gradient) = f(function, point);
        for i in sample.indices() {
            let (sin, cos) = (TAU * *i as f64 / TERMS as f64).sin_cos();
            value += share * (cos * x[0] + sin * x[1]);
            gradient = [gradient[0] + share * cos, gradient[1] + share * sin];
        }
        if let Some(g) = g {
            g.copy_from_slice(&gradient);
            GRADIENT.set([gradient, point]);
        } else {
            TRIAL.set(Some((point, value)));
        }
        value
    };
    Box::new(from_fn(TERMS, mean).with_residuals(1.0))
}

/// The numbers that the page shows, each with an export. NaN: unknown.
macro_rules! shown {
    ($($name:ident)*) => {
        struct Seen { $($name: f64,)* }
        const NOTHING: Seen = Seen { $($name: f64::NAN,)* };
        $(#[doc = stringify!($name)]
        #[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
        pub extern "C" fn $name() -> f64 { LIVE.with_borrow(|live| live.shown.$name) })*
    };
}
shown! {
    // The answer; where the last step took its gradient; its trial; the half axes of the region, an ellipse for `Auto`.
    x y base_x base_y trial_x trial_y region_x region_y
    // The radius of STR or the length of the step; the falls of f on the mini-batch that model and trial show.
    radius predicted actual
    // Whether the step was accepted; 1 if the region of STR grows, -1 if it shrinks; steps, with skipped ones; passes.
    accepted change steps epoch
    // On all terms at the answer: f, the norm of its or the Lagrangian's gradient, c = ‖x‖² − 1 ≤ 0, the multiplier.
    value gradient constraint multiplier
}

/// f over all terms.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
pub extern "C" fn value_at(function: u32, x: f64, y: f64) -> f64 {
    f(function, [x, y]).0
}
/// Starts a run. Methods: 0 `Auto`, 1 `Str`, 2 `StrSqp` in the unit disk.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
pub extern "C" fn reset(function: u32, method: u32, noise: f64, seed: u32, x: f64, y: f64) {
    LIVE.set(Live::new(function, method, noise, seed, vec![x, y]));
}
/// Makes a step. Returns 0 if it cannot.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
pub extern "C" fn step() -> u32 {
    LIVE.with_borrow_mut(|live| live.step().is_some().into())
}

thread_local! {
    static LIVE: RefCell<Live> = RefCell::new(Live::new(0, 0, 0.0, 0, vec![0.0; 2]));
    // What f was evaluated for last: the gradient with its point, and a trial with its value.
    static GRADIENT: Cell<[[f64; 2]; 2]> = Cell::default();
    static TRIAL: Cell<Option<([f64; 2], f64)>> = Cell::default();
}

struct Live {
    f: Box<dyn Objective<Point = Vec<f64>>>,
    method: AnyMethod<Vec<f64>>,
    state: AnyState<Vec<f64>>,
    sampler: Epochs,
    shown: Seen,
}

impl Live {
    fn new(function: u32, method: u32, noise: f64, seed: u32, x: Vec<f64>) -> Self {
        let mut f = objective(function, noise);
        let disk = at_most(Sphere::new(1.0).expect(CHECKED));
        let mut method = match method {
            0 => AnyMethod::new(Auto::default()),
            1 => AnyMethod::new(Str::new(StrConfig { region: RegionConfig::constrained() }).expect(CHECKED)),
            _ => AnyMethod::new(StrSqp::new(StrSqpConfig::default(), disk).expect(CHECKED)),
        };
        let state = method.init(&mut f, x).expect(CHECKED);
        let sampler = Epochs::over(&f).batch(8).seed(seed.into());
        let mut live = Self { f, method, state, sampler, shown: NOTHING };
        live.measure();
        live
    }

    fn step(&mut self) -> Option<()> {
        let (mut sample, mut before, mut record) = (Sample::default(), self.state.clone(), StepRecord::skipped(0));
        while record.verdict == Verdict::Skipped {
            (before, _) = (self.state.clone(), TRIAL.take());
            record = next_step(&mut self.method, &mut self.f, &mut self.state, &mut self.sampler, &mut sample).ok()?;
        }
        let ([g, base], (trial, mut value)) = (GRADIENT.get(), TRIAL.get().unwrap_or(([f64::NAN; 2], f64::NAN)));
        let p = [trial[0] - base[0], trial[1] - base[1]];
        // The curvature of the model of f along p, and the metric D in which `Auto` measures p.
        let (mut curvature, mut metric) = (f64::NAN, [1.0; 2]);
        if let Some(state) = before.downcast_ref::<AutoState<Vec<f64>>>().map(AutoState::parts) {
            let beta2 = AutoConfig::default().beta2;
            let weight = 1.0 - beta2.powf(state.learned.accepted() as f64 + 1.0);
            metric = [0, 1].map(|i| ((beta2 * state.root[i].powi(2) + (1.0 - beta2) * g[i] * g[i]) / weight).sqrt());
            curvature = state.learned.curvature().unwrap_or(0.0);
        } else if let Some(state) = before.downcast_ref::<StrSqpState<Vec<f64>>>() {
            // κ is that of f + yc, and the Hessian of c is 2. For a step on all terms it is not known.
            curvature = state.learned().and_then(Learned::curvature).unwrap_or(f64::NAN) - 2.0 * state.multipliers()[0];
            if state.is_on_full_sum() {
                (curvature, value) = (f64::NAN, self.f.value(&trial.to_vec(), &Sample::all(TERMS)).value);
            }
        }
        let (square, shown) = (metric[0] * p[0] * p[0] + metric[1] * p[1] * p[1], &mut self.shown);
        *shown = NOTHING;
        ([shown.base_x, shown.base_y], [shown.trial_x, shown.trial_y]) = (base, trial);
        [shown.region_x, shown.region_y] = metric.map(|metric| (square / metric).sqrt());
        (shown.radius, shown.actual) = (p[0].hypot(p[1]), record.value - value);
        shown.predicted = -(g[0] * p[0] + g[1] * p[1] + 0.5 * curvature * square);
        (shown.accepted, shown.change) = (f64::from(u8::from(record.verdict == Verdict::Accepted)), 0.0);
        if let (Some(region), Some(next)) = (record.region, self.state.downcast_ref::<StrState<Vec<f64>>>()) {
            [shown.radius, shown.region_x, shown.region_y] = [region.radius; 3];
            let change = next.radius().total_cmp(&region.radius);
            (shown.predicted, shown.change) = (region.predicted, f64::from(change as i8));
        }
        self.measure();
        Some(())
    }

    /// Measures the answer on all terms.
    fn measure(&mut self) {
        let measured = self.method.measure(&mut self.f, &self.state).expect(CHECKED);
        let (x, k, shown) = (self.state.point(), self.state.steps(), &mut self.shown);
        (shown.x, shown.y, shown.value, shown.gradient) = (x[0], x[1], measured.value, measured.gradient_norm);
        (shown.steps, shown.epoch) = (k as f64, (k / self.sampler.steps_per_epoch()) as f64);
        if let Some(state) = self.state.downcast_ref::<StrSqpState<Vec<f64>>>() {
            (shown.constraint, shown.multiplier) = (x.norm_squared() - 1.0, state.multipliers()[0]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes steps until the gradient is below 1e-6, and returns the path.
    fn run(function: u32, method: u32, noise: f64, seed: u32, most: usize) -> Vec<[f64; 2]> {
        reset(function, method, noise, seed, -1.2, 1.0);
        let goes_on = |_: &usize| gradient() > 1e-6 && step() == 1;
        (0..most).take_while(goes_on).map(|_| [x(), y()]).collect()
    }

    #[test]
    fn every_method_converges_on_every_function() {
        for (function, method) in (0..9).map(|i| (i / 3, i % 3)) {
            let steps = run(function, method, 0.0, 1, 2000).len();
            assert!(gradient() <= 1e-6, "function {function}, method {method}: {} after {steps} steps", gradient());
            assert!(if method == 2 { constraint() < 1e-9 && multiplier() > 0.0 } else { value() < 1e-9 });
        }
    }

    #[test]
    fn with_noise_auto_converges_and_str_sqp_keeps_the_constraint() {
        for (function, seed) in (0..60).map(|i| (i / 20, i % 20)) {
            run(function, 0, 1.0, seed, 500);
            assert!(value() < 1e-2, "function {function}, seed {seed}: {}", value());
            run(function, 2, 1.0, seed, 500);
            assert!(constraint() < 1e-12 && gradient() < 1e-3, "function {function}, seed {seed}: {}", gradient());
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_path() {
        for method in 0..3 {
            assert_eq!(run(1, method, 0.5, 7, 100), run(1, method, 0.5, 7, 100));
            assert_ne!(run(1, method, 0.5, 7, 100), run(1, method, 0.5, 8, 100));
        }
    }

    #[test]
    fn the_trial_is_in_the_region() {
        for (method, i) in (0..3).flat_map(|method| (0..30).map(move |i| (method, i))) {
            run(1, method, 0.3, 1, i + 1);
            let reach = ((trial_x() - base_x()) / region_x()).hypot((trial_y() - base_y()) / region_y());
            assert!(reach < 1.0 + 1e-9 && (method == 1 || reach > 1.0 - 1e-9), "method {method}, step {i}: {reach}");
        }
    }
}
