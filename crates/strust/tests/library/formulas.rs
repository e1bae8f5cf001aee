//! Single methods against their formulas: step sizes, moments, multipliers, averages.

use crate::{
    common::{Targets, bits},
    methods::{STEPS, at, frame, go, matrices, sls, stiefel, vectors},
};
use faer::Mat;
use strust::{
    constraints::Retraction,
    methods::{Averaged, AveragedConfig},
    prelude::*,
    schedule::Schedule,
};
use strust_baselines::{
    Adam, AdamConfig, AugLag, AugLagConfig, DoG, LineSearch, LineSearchConfig, Ponos, Reset, ScheduleFreeAdamW,
    ScheduleFreePlus, ScheduleFreeSgd, Sgd, SgdConfig,
};

#[test]
fn the_augmented_lagrangian_updates_multipliers_and_penalty_after_each_round_of_inner_epochs() {
    let mut f = matrices();
    let mut method =
        AugLag::new(AugLagConfig { inner_epochs: 2, ..Default::default() }, stiefel(Retraction::Qr)).unwrap();
    let mut state = method.init(&mut f, frame()).unwrap();
    // 13 terms in batches of 5 are 3 steps per epoch; the last batch is smaller.
    for k in 0..30 {
        let (old, penalty) = (state.multipliers.clone(), state.penalty);
        go(&mut f, &mut method, &mut state, k..k + 1);
        if (k + 1) % 6 == 0 {
            let mut expected = old;
            let mut c: Mat<f64> = Mat::zeros(2, 2);
            stiefel(Retraction::Qr).residual(&state.x, &mut c);
            expected.add(0.5 * penalty, &c);
            assert_eq!(bits(&state.multipliers), bits(&expected), "step {k}");
            assert_eq!(state.penalty.to_bits(), (1.1 * penalty).to_bits());
        } else {
            assert_eq!((bits(&state.multipliers), state.penalty), (bits(&old), penalty), "step {k}");
        }
    }
}

#[test]
fn each_reset_rule_of_the_line_search_starts_as_in_its_paper() {
    // fᵢ = ½‖x‖² and 5 of 10 terms per step. Armijo holds for η ≤ 2(1 − c), so a search from 2 takes one backtrack.
    let run = |reset| {
        let mut f = Targets::new(vec![vec![0.0]; 10], 1.0);
        let mut method = LineSearch::new(LineSearchConfig { backtrack: 0.5, ..sls(reset) }).unwrap();
        let mut state = method.init(&mut f, vec![1.0]).unwrap();
        let mut steps = Vec::new();
        for _ in 0..3 {
            // Keep x away from 0.
            state.x = vec![1.0];
            let record = method.step(&mut f, &mut state, &Sample::range(0..5)).unwrap();
            steps.push((record.step_size, record.evaluations.values));
        }
        steps
    };
    assert_eq!(run(Reset::Last), [(1.0, 2), (1.0, 1), (1.0, 1)]);
    assert_eq!(run(Reset::Max), [(1.0, 2), (1.0, 2), (1.0, 2)]);
    // γ^(b/n) = √2. The second search starts at √2 and succeeds. The third starts at the maximum 2 and halves it.
    let grow = run(Reset::Grow);
    assert_eq!(grow[0], (1.0, 2));
    assert!((grow[1].0 - 2.0_f64.sqrt()).abs() < 1e-15 && grow[1].1 == 1, "{grow:?}");
    assert!((grow[2].0 - 1.0).abs() < 1e-15 && grow[2].1 == 2, "{grow:?}");
}

#[test]
fn adam_agrees_with_its_formula_from_the_first_step_to_a_million() {
    let AdamConfig { learning_rate: eta, beta1, beta2, epsilon, .. } = AdamConfig::default();
    let mut method = Adam::new(AdamConfig::default()).unwrap();
    let mut f = Targets::new(vec![vec![0.5]], 2.0);
    let mut state = method.init(&mut f, vec![2.0]).unwrap();
    let (mut x, mut m, mut v) = (2.0_f64, 0.0_f64, 0.0_f64);
    for k in 1..=200 {
        method.step(&mut f, &mut state, &Sample::range(0..1)).unwrap();
        let g = 2.0 * (x - 0.5);
        m = beta1 * m + (1.0 - beta1) * g;
        v = beta2 * v + (1.0 - beta2) * g * g;
        x -= eta * (m / (1.0 - beta1.powi(k))) / ((v / (1.0 - beta2.powi(k))).sqrt() + epsilon);
        assert!((state.x[0] - x).abs() <= 1e-13 * x.abs(), "step {k}: found {}, expected {x}", state.x[0]);
    }
    // After many steps both corrections are 1, and nothing overflows.
    state.k = 1_000_000;
    let (before, g) = (state.x[0], 2.0 * (state.x[0] - 0.5));
    let (m, v) = (beta1 * state.mean[0] + (1.0 - beta1) * g, beta2 * state.square[0] + (1.0 - beta2) * g * g);
    method.step(&mut f, &mut state, &Sample::range(0..1)).unwrap();
    assert!((state.x[0] - (before - eta * m / (v.sqrt() + epsilon))).abs() < 1e-15);
    assert_eq!(state.k, 1_000_001);
}

#[test]
fn a_cosine_ends_at_rest_and_a_constant_schedule_changes_no_bit() {
    let run = |schedule: Option<Schedule>| {
        let (mut f, mut method) = (vectors(), Sgd::new(SgdConfig { momentum: 0.5, ..Default::default() }).unwrap());
        if let Some(schedule) = schedule {
            method = method.schedule(schedule);
        }
        let mut state = method.init(&mut f, at()).unwrap();
        let records = go(&mut f, &mut method, &mut state, 0..STEPS);
        (records, bits(state.point()))
    };
    assert_eq!(run(None), run(Some(Schedule::Constant)));
    let (records, _) = run(Some(Schedule::cosine(STEPS - 1)));
    for (k, record) in (0..).zip(&records) {
        assert_eq!(record.step_size.to_bits(), (0.2 * Schedule::cosine(STEPS - 1).factor(k)).to_bits(), "step {k}");
    }
    assert_eq!(records.last().unwrap().step_length.to_bits(), 0);
}

#[test]
fn averaging_leaves_the_method_alone_and_weighs_its_iterates_by_the_formula() {
    let (mut f, mut plain) = (vectors(), Sgd::default());
    let mut iterate = plain.init(&mut f, at()).unwrap();
    let mut uniform = Averaged::new(AveragedConfig { power: 0.0 }, Sgd::default()).unwrap();
    let mut mean = uniform.init(&mut f, at()).unwrap();
    let mut cubic = Averaged::of(Sgd::default());
    let mut weighted = cubic.init(&mut f, at()).unwrap();
    let (mut sum, mut average) = (0.0, 0.0);
    for k in 0..STEPS {
        let record = go(&mut f, &mut plain, &mut iterate, k..k + 1);
        assert_eq!(go(&mut f, &mut uniform, &mut mean, k..k + 1), record);
        assert_eq!(go(&mut f, &mut cubic, &mut weighted, k..k + 1), record);
        assert_eq!(bits(&mean.inner().x), bits(&iterate.x), "the steps are those of the method");
        sum += iterate.x[0];
        let c = 4.0 / (k as f64 + 4.0);
        average += c * (iterate.x[0] - average);
        assert!((mean.point()[0] - sum / (k + 1) as f64).abs() < 1e-14);
        assert!((weighted.point()[0] - average).abs() < 1e-14);
    }
    assert!(mean.is_averaged() && !mean.inner().is_averaged());
    // The measurement is at the average, not at the last iterate.
    let measured = uniform.measure(&mut f, &mean).unwrap();
    let expected = plain.measure(&mut f, &iterate.with_point(mean.point().clone())).unwrap();
    assert_eq!(measured.value.to_bits(), expected.value.to_bits());
    assert_ne!(
        measured.value.to_bits(),
        uniform.measure(&mut f, &mean.clone().with_point(at())).unwrap().value.to_bits()
    );
}

#[test]
fn the_answer_of_the_schedule_free_methods_is_an_average() {
    let mut f = vectors();
    assert!(Method::init(&mut ScheduleFreeSgd::default(), &mut f, at()).unwrap().is_averaged());
    assert!(Method::init(&mut ScheduleFreePlus::default(), &mut f, at()).unwrap().is_averaged());
    assert!(Method::init(&mut ScheduleFreeAdamW::default(), &mut f, at()).unwrap().is_averaged());
    assert!(!Method::init(&mut DoG::default(), &mut f, at()).unwrap().is_averaged());
}

#[test]
fn ponos_shortens_later_steps_by_the_backtracks_of_earlier_ones() {
    // fᵢ = ½x², so the Polyak step for c_p = 0.1 is ½/0.1 = 5. At a fixed x the reference is fᵢ(x), and the condition
    // holds for η ≤ 2(1 − c) = 1: three backtracks from 5.
    let mut f = Targets::new(vec![vec![0.0]; 10], 1.0);
    let mut method = Ponos::default();
    let mut state = method.init(&mut f, vec![1.0]).unwrap();
    let mut seen = Vec::new();
    for _ in 0..4 {
        state.x = vec![1.0];
        let record = method.step(&mut f, &mut state, &Sample::range(0..5)).unwrap();
        seen.push(((record.step_size * 1e6).round() / 1e6, record.evaluations.values, state.backtracks));
    }
    assert_eq!(seen, [(0.625, 4, 2), (0.625, 2, 2), (0.625, 2, 2), (0.625, 2, 2)]);
}
