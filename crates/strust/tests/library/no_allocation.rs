//! After the first step, STR and STR-P do not allocate. This includes the sampler.
//!
//! A counting allocator needs `unsafe`, which the workspace forbids. So it comes from the crate `allocation-counter`.
//! That crate counts each thread separately, so tests can run in parallel.

use crate::common::{LeastSquares, Targets, normal, normals};
use allocation_counter::measure;
use faer::Mat;
use strust::{
    constraints::{Affine, Sphere, Stiefel},
    methods::{Averaged, StrLbfgs, StrLsr1, StrNewton, StrNewtonConfig},
    objective::{Evaluation, ObjectiveWrapper},
    prelude::*,
    radius::Verdict,
    samplers::Sampler,
    vector::Real,
};
use strust_baselines::{
    Adam, AdamConfig, AugLag, AugLagConfig, DoG, LineSearch, LineSearchConfig, Ponos, Prodigy, ScheduleFreeAdamW,
    ScheduleFreePlus, ScheduleFreePlusConfig, ScheduleFreeSgd, ScheduleFreeSgdConfig, Sgd, SgdConfig,
};

/// Every fifth trial is NaN, so that rejections occur on every problem.
struct Moody<F>(F, u64);

impl<F: Objective> ObjectiveWrapper for Moody<F> {
    type Inner = F;
    fn wrapped(&self) -> &F {
        &self.0
    }
    fn wrapped_mut(&mut self) -> &mut F {
        &mut self.0
    }
    fn value(this: &mut Self, x: &F::Point, sample: &Sample) -> Evaluation {
        this.1 += 1;
        let truth = this.0.value(x, sample);
        if this.1.is_multiple_of(5) { Evaluation { value: f64::NAN, ..truth } } else { truth }
    }
}

/// The number of allocations in `steps` steps after the first, with both samplers.
fn allocations<F: Objective, M: Method<Moody<F>>>(f: F, method: M, x: &F::Point, steps: u64) -> u64 {
    allocations_after(1, f, method, x, steps)
}

/// The same after the first `few` steps.
fn allocations_after<F, M>(few: u64, f: F, method: M, x: &F::Point, steps: u64) -> u64
where
    F: Objective,
    M: Method<Moody<F>>,
{
    let (total, verdicts) = allocations_and_verdicts(few, f, method, x, steps);
    assert!(verdicts[0] > 0 && verdicts[1] > 0, "accepted and rejected steps must occur: {verdicts:?}");
    total
}

/// The same with the number of rejected and accepted steps.
fn allocations_and_verdicts<F, M>(few: u64, f: F, mut method: M, x: &F::Point, steps: u64) -> (u64, [u64; 2])
where
    F: Objective,
    M: Method<Moody<F>>,
{
    let mut f = Moody(f, 0);
    let n = f.terms();
    let samplers: [Box<dyn Sampler>; 2] =
        [Box::new(Epochs::new(n, 3, 1).unwrap()), Box::new(WithReplacement::new(n, 3, 1).unwrap())];
    let (mut total, mut verdicts) = (0, [0; 2]);
    for mut sampler in samplers {
        let mut sample = Sample::default();
        let mut state = method.init(&mut f, x.clone()).unwrap();
        for k in 0..few {
            sampler.draw(k, &mut sample);
            method.step(&mut f, &mut state, &sample).unwrap();
        }
        let info = measure(|| {
            for k in few..few + steps {
                sampler.draw(k, &mut sample);
                let record = method.step(&mut f, &mut state, &sample).unwrap();
                verdicts[usize::from(record.verdict == Verdict::Accepted)] += 1;
            }
        });
        total += info.count_total;
    }
    (total, verdicts)
}

fn least_squares<T: Real>() -> LeastSquares<T> {
    LeastSquares::interpolating(1, 10, &normals(1, 33))
}

fn str_and_str_p_over_vectors<T: Real>() {
    let x: Vec<T> = normal(2, &[33]);
    let config = || StrPConfig { penalty: 10.0, ..Default::default() };
    let affine = || Affine::new(vec![normal::<Vec<T>>(3, &[33]), normal(4, &[33])], vec![1.0, -2.0]).unwrap();
    assert_eq!(allocations(least_squares::<T>(), Str::new(StrConfig::default()).unwrap(), &x, 200), 0, "STR");
    let newton = |retreats| StrNewton::new(StrNewtonConfig { at_boundary: 0, retreats, ..Default::default() }).unwrap();
    assert_eq!(allocations(least_squares::<T>(), newton(0), &x, 200), 0, "STR-Newton");
    // After a retreat no step is rejected here.
    let with_retreats = allocations_and_verdicts(1, least_squares::<T>(), newton(2), &x, 200);
    assert_eq!(with_retreats, (0, [0, 400]), "STR-Newton with retreats");
    // Pairs are made until there are as many as allowed.
    assert_eq!(allocations_after(300, least_squares::<T>(), StrLbfgs::default(), &x, 200), 0, "STR-LBFGS");
    assert_eq!(allocations_after(300, least_squares::<T>(), StrLsr1::default(), &x, 200), 0, "STR-LSR1");
    let method = StrP::new(config(), Sphere::new(1.0).unwrap()).unwrap();
    assert_eq!(allocations(least_squares::<T>(), method, &x, 200), 0, "STR-P, sphere");
    let method = StrP::new(config(), affine()).unwrap();
    assert_eq!(allocations(least_squares::<T>(), method, &x, 200), 0, "STR-P, affine");
}

fn str_and_str_p_over_matrices<T: Real>() {
    // From one column to the shapes of the paper's experiments (d = 100, k = 5 and d = 500, k = 10) and larger.
    for (d, k) in [(7, 1), (9, 3), (33, 33), (100, 5), (500, 10), (300, 64)] {
        let f = || Targets::<Mat<T>>::random(1, 10, &[d, k], 0.1, 3.0);
        let x: Mat<T> = normal(2, &[d, k]);
        assert_eq!(allocations(f(), Str::new(StrConfig::default()).unwrap(), &x, 20), 0, "STR, {d}×{k}");
        let method = StrP::new(StrPConfig::default(), Stiefel::new(d, k).unwrap()).unwrap();
        assert_eq!(allocations(f(), method, &x, 40), 0, "STR-P on the Stiefel manifold, {d}×{k}");
    }
}

#[test]
fn steps_over_vectors_of_f64_do_not_allocate() {
    str_and_str_p_over_vectors::<f64>();
}

#[test]
fn steps_over_vectors_of_f32_do_not_allocate() {
    str_and_str_p_over_vectors::<f32>();
}

#[test]
fn steps_over_matrices_of_f64_do_not_allocate() {
    str_and_str_p_over_matrices::<f64>();
}

#[test]
fn steps_over_matrices_of_f32_do_not_allocate() {
    str_and_str_p_over_matrices::<f32>();
}

#[test]
fn the_baselines_without_a_retraction_do_not_allocate() {
    let run = |allocated: u64, what: &str| assert_eq!(allocated, 0, "{what}");
    let steps = |method: &mut dyn FnMut(&Sample)| {
        let (mut sampler, mut sample) = (Epochs::new(10, 3, 1).unwrap(), Sample::default());
        sampler.draw(0, &mut sample);
        method(&sample);
        measure(|| {
            for k in 1..100 {
                sampler.draw(k, &mut sample);
                method(&sample);
            }
        })
        .count_total
    };
    let mut f = least_squares::<f64>();
    let x: Vec<f64> = normal(2, &[33]);
    let mut sgd = Sgd::new(SgdConfig { momentum: 0.5, learning_rate: 0.01, ..Default::default() }).unwrap();
    let mut state = sgd.init(&mut f, x.clone()).unwrap();
    run(steps(&mut |s| assert!(sgd.step(&mut f, &mut state, s).is_ok())), "SGD");
    let mut adam = Adam::new(AdamConfig::default()).unwrap();
    let mut state = adam.init(&mut f, x.clone()).unwrap();
    run(steps(&mut |s| assert!(adam.step(&mut f, &mut state, s).is_ok())), "Adam");
    let mut sls = LineSearch::new(LineSearchConfig::default()).unwrap();
    let mut state = sls.init(&mut f, x.clone()).unwrap();
    run(steps(&mut |s| assert!(sls.step(&mut f, &mut state, s).is_ok())), "SLS");
    let mut prodigy = Averaged::of(Prodigy::default());
    let mut state = prodigy.init(&mut f, x.clone()).unwrap();
    run(steps(&mut |s| assert!(prodigy.step(&mut f, &mut state, s).is_ok())), "averaged Prodigy");
    let mut dog = DoG::default();
    let mut state = dog.init(&mut f, x.clone()).unwrap();
    run(steps(&mut |s| assert!(dog.step(&mut f, &mut state, s).is_ok())), "DoG");
    let mut schedule_free =
        ScheduleFreeSgd::new(ScheduleFreeSgdConfig { learning_rate: 0.01, ..Default::default() }).unwrap();
    let mut state = schedule_free.init(&mut f, x.clone()).unwrap();
    run(steps(&mut |s| assert!(schedule_free.step(&mut f, &mut state, s).is_ok())), "Schedule-Free SGD");
    let mut schedule_free = ScheduleFreeAdamW::default();
    let mut state = schedule_free.init(&mut f, x.clone()).unwrap();
    run(steps(&mut |s| assert!(schedule_free.step(&mut f, &mut state, s).is_ok())), "Schedule-Free AdamW");
    // With its default it reaches lengths whose squares leave the range of f64.
    let config = ScheduleFreePlusConfig { learning_rate: 0.01, ..Default::default() };
    let mut schedule_free = ScheduleFreePlus::new(config).unwrap();
    let mut state = schedule_free.init(&mut f, x.clone()).unwrap();
    run(steps(&mut |s| assert!(schedule_free.step(&mut f, &mut state, s).is_ok())), "ScheduleFree+");
    let mut ponos = Ponos::default();
    let mut state = ponos.init(&mut f, x.clone()).unwrap();
    run(steps(&mut |s| assert!(ponos.step(&mut f, &mut state, s).is_ok())), "PoNoS");
    let mut auglag = AugLag::new(AugLagConfig::default(), Sphere::new(1.0).unwrap()).unwrap();
    let mut state = auglag.init(&mut f, x).unwrap();
    run(steps(&mut |s| assert!(auglag.step(&mut f, &mut state, s).is_ok())), "AugLag");
}

#[test]
fn the_counter_detects_allocations() {
    let count = |f: &mut dyn FnMut()| measure(f).count_total;
    assert_eq!(count(&mut || drop(std::hint::black_box(vec![1.0_f64]))), 1);
    let mut growing = vec![1.0];
    assert!(count(&mut || growing.extend([2.0; 100])) >= 1, "growing in place must count");
    // The first step allocates its scratch space, and the counter must count this.
    let mut f = least_squares::<f64>();
    let mut method = Str::new(StrConfig::default()).unwrap();
    let mut state = method.init(&mut f, normal(2, &[33])).unwrap();
    let sample = Sample::range(0..3);
    // The gradient, the trial and the shape of each.
    assert_eq!(count(&mut || assert!(method.step(&mut f, &mut state, &sample).is_ok())), 4);
    assert_eq!(count(&mut || assert!(method.step(&mut f, &mut state, &sample).is_ok())), 0);
}

#[test]
fn estimators_do_not_allocate_after_the_first_step() {
    use strust::{
        diagnostics::{Consecutive, SplitBatch},
        sample::Draws,
    };
    let x: Vec<f64> = normal(2, &[33]);
    let split = SplitBatch::new(least_squares::<f64>(), Draws::Different);
    assert_eq!(allocations(split, Str::new(StrConfig::default()).unwrap(), &x, 200), 0, "split batches");
    let consecutive = Consecutive::new(least_squares::<f64>(), Draws::Different);
    assert_eq!(allocations(consecutive, Str::new(StrConfig::default()).unwrap(), &x, 200), 0, "consecutive batches");
}
