//! Models other than the paper's: with memory that is saved, and with products on the sample.

use crate::common::{LeastSquares, bits, normal, normals};
use strust::{
    methods::{TrustRegion, TrustRegionState},
    models::{Exit, Identity, Local, Model, Step, Trial, cauchy_step},
    objective::Evaluations,
    prelude::*,
    radius::RegionConfig,
    samplers::Sampler,
};

/// H = κD with D = √v from a running mean of squared gradients, and κ learned from every trial.
#[derive(Clone, Default)]
struct LearnedMetric {
    direction: Vec<f64>,
    /// The mean of squared gradients with the gradient of this step. The memory takes it over after the trial.
    squares: Vec<f64>,
}

#[derive(Debug, Clone, PartialEq)]
struct MetricMemory {
    kappa: f64,
    squares: Vec<f64>,
}
strust::saved!([] MetricMemory { kappa, squares: vector });

impl<F: Objective<Point = Vec<f64>>> Model<F> for LearnedMetric {
    type Memory = MetricMemory;

    fn init(&mut self, _: &mut F, x: &Vec<f64>) -> Result<MetricMemory, Error> {
        Ok(MetricMemory { kappa: 1.0, squares: vec![0.0; x.len()] })
    }
    fn propose<'a>(
        &'a mut self,
        _: &mut F,
        memory: &MetricMemory,
        at: &Local<'a, Vec<f64>>,
        radius: f64,
    ) -> Result<Step<'a, Vec<f64>>, Error> {
        let weight = if at.k == 0 { 1.0 } else { 0.1 };
        let mean = memory.squares.iter().sum::<f64>() / memory.squares.len() as f64;
        let metric = |square: f64| square.sqrt() + 1e-3 * mean.sqrt() + f64::MIN_POSITIVE;
        let new = |(v, g): (&f64, &f64)| v + weight * (g * g - v);
        self.squares = memory.squares.iter().zip(at.gradient).map(new).collect();
        self.direction = self.squares.iter().zip(at.gradient).map(|(&v, g)| g / metric(v)).collect();
        // Along −a·d with d = D⁻¹g the model is −a·gᵀd + ½a²κ·dᵀDd, and dᵀDd = gᵀd.
        let (slope, norm) = (at.gradient.dot(&self.direction), self.direction.norm());
        let size = (1.0 / memory.kappa).min(radius / norm);
        let predicted = size * slope * (1.0 - 0.5 * size * memory.kappa);
        let exit = if size * norm < radius { Exit::Interior } else { Exit::Boundary };
        Ok(Step {
            direction: &self.direction,
            size,
            length: size * norm,
            predicted,
            exit,
            evaluations: Evaluations::default(),
        })
    }
    fn learn(&mut self, memory: &mut MetricMemory, trial: &Trial<'_, Vec<f64>>) {
        memory.squares.clone_from(&self.squares);
        let slope = trial.at.gradient.dot(&self.direction);
        let seen = 2.0 * (trial.size * slope - trial.actual) / (trial.size * trial.size * slope);
        if seen.is_finite() {
            memory.kappa = if seen > memory.kappa { seen } else { 0.99 * memory.kappa + 0.01 * seen.max(0.0) };
        }
    }
}

fn problem(scale: f64) -> LeastSquares<f64> {
    let mut f = LeastSquares::interpolating(1, 40, &normals(1, 6));
    let root = f64::sqrt(scale);
    f.rows.iter_mut().flatten().for_each(|a| *a *= root);
    f.right.iter_mut().for_each(|b| *b *= root);
    f
}

#[test]
fn a_model_that_learns_its_curvature_does_not_depend_on_the_scale_of_the_loss() {
    let region = || RegionConfig { initial_radius: 1.0, max_radius: 10.0, ..Default::default() };
    let gap = |scale: f64| {
        let method = TrustRegion::with_model(region(), LearnedMetric::default()).unwrap();
        let mut f = problem(scale);
        let report = minimize(&mut f).method(method).batch(8).stop(Stop::epochs(60)).start(vec![0.0; 6]).unwrap();
        report.last.value / report.best_measurement.value.max(f64::MIN_POSITIVE).max(scale)
    };
    let plain = |scale: f64| {
        let mut f = problem(scale);
        let method = TrustRegion::with_model(region(), Identity).unwrap();
        minimize(&mut f).method(method).batch(8).stop(Stop::epochs(60)).start(vec![0.0; 6]).unwrap().last.value / scale
    };
    // With H = I a loss multiplied by 1e-6 hardly decreases. The learned κ adapts to the scale.
    assert!(plain(1e-6) > 1e-2, "{}", plain(1e-6));
    for scale in [1e-6, 1.0, 1e6] {
        assert!(gap(scale) < 1e-3, "scale {scale}: {}", gap(scale));
    }
}

#[test]
fn the_memory_of_a_model_is_part_of_the_saved_state() {
    let method = || TrustRegion::with_model(RegionConfig::default(), LearnedMetric::default()).unwrap();
    let run = |f: &mut LeastSquares<f64>, steps| {
        minimize(f).method(method()).batch(8).seed(3).stop(Stop::steps(steps)).start(vec![0.0; 6]).unwrap().state
    };
    let mut f = problem(1.0);
    let (whole, half) = (run(&mut f, 40), run(&mut f, 17));
    assert_ne!(half.memory(), run(&mut f, 0).memory(), "the memory must have changed");
    let text = serde_json::to_string(&half).unwrap();
    let loaded: TrustRegionState<Vec<f64>, MetricMemory> = serde_json::from_str(&text).unwrap();
    let rest = minimize(&mut f).method(method()).batch(8).seed(3).stop(Stop::steps(40)).resume(loaded).unwrap().state;
    assert_eq!(
        (bits(rest.point()), rest.radius().to_bits(), rest.memory()),
        (bits(whole.point()), whole.radius().to_bits(), whole.memory())
    );
}

/// An objective with Hessian products on a sample.
trait HessianProducts: Objective {
    fn hessian_product(&mut self, v: &Self::Point, sample: &Sample, out: &mut Self::Point);
}

impl HessianProducts for LeastSquares<f64> {
    fn hessian_product(&mut self, v: &Vec<f64>, sample: &Sample, out: &mut Vec<f64>) {
        out.set_zero();
        for &i in sample.indices() {
            out.add(self.rows[i].dot(v) / sample.len() as f64, &self.rows[i]);
        }
    }
}

/// The model's minimizer by conjugate gradients, truncated at the boundary (Steihaug).
#[derive(Clone, Default)]
struct TruncatedCg {
    /// −p, because a step is p = −1·direction.
    direction: Vec<f64>,
    samples: Vec<Sample>,
}

impl<F: HessianProducts<Point = Vec<f64>>> Model<F> for TruncatedCg {
    type Memory = ();

    fn init(&mut self, _: &mut F, _: &Vec<f64>) -> Result<(), Error> {
        Ok(())
    }
    fn propose<'a>(
        &'a mut self,
        f: &mut F,
        (): &(),
        at: &Local<'a, Vec<f64>>,
        radius: f64,
    ) -> Result<Step<'a, Vec<f64>>, Error> {
        let d = at.gradient.len();
        let (mut p, mut r, mut hv, mut predicted) = (vec![0.0; d], at.gradient.clone(), vec![0.0; d], 0.0);
        let mut v: Vec<f64> = r.iter().map(|g| -g).collect();
        let mut evaluations = Evaluations::default();
        let mut exit = if at.gradient_squared == 0.0 { Exit::Stationary } else { Exit::Interior };
        for _ in 0..d {
            let squared = r.norm_squared();
            if squared <= 1e-24 * at.gradient_squared {
                break;
            }
            f.hessian_product(&v, at.sample, &mut hv);
            evaluations.gradients += 1;
            self.samples.push(at.sample.clone());
            let curvature = v.dot(&hv);
            // ‖p + a·v‖ = Δ
            let (vv, pv, pp) = (v.norm_squared(), p.dot(&v), p.norm_squared());
            let to_boundary = (-pv + (pv * pv + vv * (radius * radius - pp)).sqrt()) / vv;
            let free = squared / curvature;
            let a = if curvature > 0.0 && free < to_boundary { free } else { to_boundary };
            predicted += a * squared - 0.5 * a * a * curvature;
            p.add(a, &v);
            if a >= to_boundary {
                exit = Exit::Boundary;
                break;
            }
            r.add(a, &hv);
            let next = r.norm_squared();
            v.scale_add(next / squared, -1.0, &r);
        }
        self.direction = p.iter().map(|p| -p).collect();
        Ok(Step { direction: &self.direction, size: 1.0, length: p.norm(), predicted, exit, evaluations })
    }
}

#[test]
fn a_second_order_model_solves_an_ill_conditioned_quadratic_in_two_steps() {
    let mut f = problem(1.0);
    // Ill-conditioned: gradient steps would need thousands of steps.
    f.rows.iter_mut().for_each(|row| row[0] *= 1e3);
    let region = RegionConfig { initial_radius: 50.0, ..Default::default() };
    let mut method = TrustRegion::with_model(region, TruncatedCg::default()).unwrap();
    let start: Vec<f64> = normal(5, &[6]);
    let report = minimize(&mut f).method(&mut method).full_batch().stop(Stop::steps(2)).start(start.clone()).unwrap();
    let first_order = minimize(&mut f).full_batch().stop(Stop::steps(2)).start(start).unwrap();
    assert!(report.last.gradient_norm < 1e-6 && report.acceptance_rate() > 0.99, "{:?}", report.last);
    assert!(first_order.last.gradient_norm > 1.0, "{:?}", first_order.last);
}

#[test]
fn every_product_of_a_step_uses_the_sample_of_the_step() {
    let mut f = problem(1.0);
    let mut method = TrustRegion::<Vec<f64>, _>::with_model(RegionConfig::default(), TruncatedCg::default()).unwrap();
    let mut state = method.init(&mut f, vec![0.0; 6]).unwrap();
    let (mut sampler, mut sample) = (Epochs::over(&f).batch(8).seed(2), Sample::default());
    let mut model = TruncatedCg::default();
    for k in 0..5 {
        sampler.draw(k, &mut sample);
        // Make the same proposal by hand, to record the samples.
        let mut g = vec![0.0; 6];
        let evaluation = f.value_and_gradient(state.point(), &sample, &mut g);
        let at = Local {
            k,
            x: state.point(),
            sample: &sample,
            evaluation,
            gradient: &g,
            gradient_squared: g.norm_squared(),
        };
        let proposed = model.propose(&mut f, &(), &at, state.radius()).unwrap().length;
        let record = method.step(&mut f, &mut state, &sample).unwrap();
        assert_eq!(record.step_length.to_bits(), proposed.to_bits());
        assert!(!model.samples.is_empty() && model.samples.drain(..).all(|seen| seen == sample));
    }
}

#[test]
fn the_identity_model_proposes_the_step_of_the_paper() {
    let mut f = problem(1.0);
    let (x, mut g, sample) = (vec![0.5; 6], vec![0.0; 6], Sample::new(vec![1, 2, 3], 0));
    let evaluation = f.value_and_gradient(&x, &sample, &mut g);
    let squared = g.norm_squared();
    let at = Local { k: 0, x: &x, sample: &sample, evaluation, gradient: &g, gradient_squared: squared };
    for radius in [1e-3, 1e3] {
        let mut model = Identity;
        let p = model.propose(&mut f, &(), &at, radius).unwrap();
        let a = f64::min(1.0, radius / squared.sqrt());
        assert!((p.size - a).abs() <= 1e-15 * a && std::ptr::eq(p.direction, &raw const g));
        assert!((p.predicted - (a * squared - 0.5 * a * a * squared)).abs() <= 1e-14 * p.predicted);
        assert_eq!(p.exit, cauchy_step(squared, squared, radius).exit);
    }
}
