//! Results on subspace fitting: medians over 20 seeds, with the paper's hyperparameters and without noise.

use strust::{prelude::*, samplers::Sampler};
use strust_baselines::{AugLag, AugLagConfig, ProjectedSgd, ProjectedSgdConfig, Riemannian, RiemannianConfig};
use strust_problems::{Problem, SubspaceFit};

const SEEDS: u64 = 20;
const BATCH: usize = 32;

/// Objective gap and ‖WᵀW − I‖ at the end of every epoch from 1 on; the optimum is 0.
fn run<M: Method<SubspaceFit>>(mut f: SubspaceFit, mut method: M, seed: u64, epochs: u64) -> Vec<(f64, f64)> {
    struct Curve<'a>(&'a mut Vec<(f64, f64)>);
    impl<P> strust::run::Observer<P> for Curve<'_> {
        fn step(&mut self, _: &StepRecord, _: &P) -> std::ops::ControlFlow<()> {
            std::ops::ControlFlow::Continue(())
        }
        fn measured(&mut self, _: u64, m: &strust::kkt::Measurement, _: &P) -> std::ops::ControlFlow<()> {
            self.0.push((m.value, m.constraint_norm));
            std::ops::ControlFlow::Continue(())
        }
    }
    let mut curve = Vec::new();
    let mut sampler = Epochs::new(f.terms(), BATCH, seed).unwrap();
    let every = sampler.steps_per_epoch();
    let start = f.start(seed);
    let report = minimize(&mut f)
        .method(&mut method)
        .sampler(&mut sampler)
        .observe(Curve(&mut curve))
        .measure_every(every)
        .stop(Stop::epochs(epochs))
        .start(start)
        .unwrap();
    if report.reason == StopReason::Kkt {
        // The point would not change any more.
        curve.resize(epochs as usize, (report.last.value, report.last.constraint_norm));
    } else {
        assert_eq!(report.reason, StopReason::Epochs);
    }
    assert_eq!(curve.len() as u64, epochs);
    curve
}

/// The medians over the seeds, by epoch.
fn medians(run: impl Fn(u64) -> Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let curves: Vec<_> = (0..SEEDS).map(run).collect();
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        f64::midpoint(values[values.len() / 2 - 1], values[values.len() / 2])
    };
    let at = |epoch: usize| {
        (median(curves.iter().map(|c| c[epoch].0).collect()), median(curves.iter().map(|c| c[epoch].1).collect()))
    };
    (0..curves[0].len()).map(at).collect()
}

fn str_p(d: usize, k: usize, n: usize, epochs: u64) -> Vec<(f64, f64)> {
    medians(|seed| {
        let f = SubspaceFit::spiked(d, k, n, 0.0, seed).unwrap();
        let method = StrP::new(StrPConfig::default(), f.constraint()).unwrap();
        run(f, method, seed, epochs)
    })
}

#[track_caller]
fn reaches(medians: &[(f64, f64)], epoch: usize, gap: f64, violation: f64) {
    let (g, c) = medians[epoch - 1];
    assert!(g <= gap && c <= violation, "after {epoch} epochs: gap {g:e} > {gap:e} or violation {c:e} > {violation:e}");
}

#[test]
fn on_the_small_problem_str_p_reaches_machine_precision_and_beats_every_baseline() {
    let (d, k, n) = (100, 5, 500);
    let ours = str_p(d, k, n, 15);
    reaches(&ours, 5, 1e-12, 1e-6);
    reaches(&ours, 15, 1e-25, 1e-14);

    let problem = |seed| SubspaceFit::spiked(d, k, n, 0.0, seed).unwrap();
    let baselines = [
        medians(|seed| {
            let f = problem(seed);
            let method = ProjectedSgd::new(ProjectedSgdConfig::default(), f.constraint()).unwrap();
            run(f, method, seed, 5)
        }),
        medians(|seed| {
            let f = problem(seed);
            let method = Riemannian::new(RiemannianConfig::default(), f.constraint()).unwrap();
            run(f, method, seed, 5)
        }),
        medians(|seed| {
            let f = problem(seed);
            let method = AugLag::new(AugLagConfig::default(), f.constraint()).unwrap();
            run(f, method, seed, 5)
        }),
    ];
    for baseline in baselines {
        for epoch in [1, 2, 5] {
            let (ours, theirs) = (ours[epoch - 1].0, baseline[epoch - 1].0);
            assert!(ours < theirs, "after {epoch} epochs: gap {ours:e}, gap of the baseline {theirs:e}");
        }
    }
}

#[test]
fn on_the_large_problem_str_p_reaches_machine_precision_in_eight_epochs() {
    let ours = str_p(500, 10, 1000, 8);
    reaches(&ours, 2, 1e-8, f64::INFINITY);
    reaches(&ours, 8, 1e-25, 1e-14);
}

#[test]
fn in_single_precision_str_p_reaches_the_rounding_floor_and_stays_there() {
    for seed in 0..SEEDS {
        let mut f = SubspaceFit::<f32>::spiked(100, 5, 500, 0.0, seed).unwrap();
        let mut method = StrP::new(StrPConfig::default(), f.constraint()).unwrap();
        let mut sampler = Epochs::new(500, BATCH, seed).unwrap();
        let start = f.start(seed);
        let report =
            minimize(&mut f).method(&mut method).sampler(&mut sampler).stop(Stop::epochs(60)).start(start).unwrap();
        assert!(report.last.value < 1e-11 && report.last.constraint_norm < 1e-5, "seed {seed}: {:?}", report.last);
        assert!(report.state.radius() > 1e-9, "seed {seed}: the radius collapsed to {:e}", report.state.radius());
    }
}

#[test]
fn a_step_does_not_allocate_after_the_first_epoch() {
    let (n, seed) = (100, 3);
    let mut f = SubspaceFit::<f64>::spiked(60, 4, n, 0.0, seed).unwrap();
    let mut method = StrP::new(StrPConfig::default(), f.constraint()).unwrap();
    let mut sampler = Epochs::new(n, BATCH, seed).unwrap();
    let start = f.start(seed);
    let mut state = method.init(&mut f, start).unwrap();
    let mut sample = Sample::default();
    // The last batch of an epoch is smaller. The scratch space must fit both sizes.
    let mut epoch = |e: u64| {
        for k in 0..4 {
            sampler.draw(4 * e + k, &mut sample);
            method.step(&mut f, &mut state, &sample).unwrap();
        }
    };
    epoch(0);
    let counted = allocation_counter::measure(|| (1..5).for_each(&mut epoch));
    assert_eq!(counted.count_total, 0, "{counted:?}");
}

#[test]
fn on_exact_data_str_sqp_is_at_least_as_fast_as_str_p() {
    let exact = |seed| SubspaceFit::spiked(100, 5, 500, 0.0, seed).unwrap();
    let sqp = medians(|seed| {
        let f = exact(seed);
        let method = StrSqp::new(StrSqpConfig::default(), f.constraint()).unwrap();
        run(f, method, seed, 10)
    });
    let str_p = medians(|seed| {
        let f = exact(seed);
        let method = StrP::new(StrPConfig::default(), f.constraint()).unwrap();
        run(f, method, seed, 10)
    });
    for (epoch, (sqp, str_p)) in sqp.iter().zip(&str_p).enumerate() {
        assert!(sqp.0 <= str_p.0.max(1e-28), "epoch {}: {:e}, STR-P {:e}", epoch + 1, sqp.0, str_p.0);
        assert!(sqp.1 <= str_p.1.max(1e-12), "epoch {}: {:e}, STR-P {:e}", epoch + 1, sqp.1, str_p.1);
    }
}

#[test]
fn with_noise_str_sqp_is_feasible_and_close_to_the_optimum_where_str_p_stalls() {
    let (d, k, n, epochs) = (100, 5, 500, 20);
    let noisy = |seed| SubspaceFit::spiked(d, k, n, 0.1, seed).unwrap();
    let gap = |seed: u64, curve: Vec<(f64, f64)>| -> Vec<(f64, f64)> {
        let optimum = noisy(seed).optimum().unwrap();
        curve.into_iter().map(|(value, violation)| (value - optimum, violation)).collect()
    };
    let sqp = medians(|seed| {
        let f = noisy(seed);
        let method = StrSqp::new(StrSqpConfig::default(), f.constraint()).unwrap();
        gap(seed, run(f, method, seed, epochs))
    });
    reaches(&sqp, 20, 2e-4, 1e-12);
    let str_p = medians(|seed| {
        let f = noisy(seed);
        let method = StrP::new(StrPConfig::default(), f.constraint()).unwrap();
        gap(seed, run(f, method, seed, epochs))
    });
    let (gap, violation) = str_p[19];
    assert!(gap > 1e-2 && violation > 0.05, "STR-P: {gap:e}, {violation:e}");
}

#[test]
fn the_growing_penalty_of_the_augmented_lagrangian_does_not_make_long_runs_diverge() {
    let f = SubspaceFit::spiked(20, 2, 100, 0.0, 0).unwrap();
    // μ = 0.1·1.1^1500 would be 1e61; a step is unstable from 100 on.
    let config = AugLagConfig { inner_epochs: 1, ..Default::default() };
    let method = AugLag::new(config, f.constraint()).unwrap();
    let curve = run(f, method, 0, 1500);
    reaches(&curve, 1500, 1e-10, 1e-6);
}
