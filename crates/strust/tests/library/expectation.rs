//! Constraints that are expectations. The limits are what a user would ask for: violations of a fraction of a bound.

use crate::common::{bits, distance, normals};
use std::{cell::RefCell, rc::Rc, time::Duration};
use strust::{
    expectation::{Expectation, MeanRow, MeasuredRow, Members, constraint_from_terms},
    methods::{ExpectationEnd, InExpectation, SqpVerdict},
    objective::{Counted, Evaluations, Scaled},
    prelude::*,
    ranks::{Sharded, on_threads},
    samplers::Sampler,
};

/// Labels ±1 and groups of a logistic problem in which higher groups have higher features and more positive labels.
struct Applicants {
    x: Vec<Vec<f64>>,
    y: Vec<f64>,
    group: Vec<usize>,
}

fn sigmoid(t: f64) -> f64 {
    (1.0 + (-t).exp()).recip()
}

impl Applicants {
    /// `groups` are the cumulative shares of the groups.
    fn new(seed: u64, n: usize, groups: &[f64]) -> Rc<Self> {
        const D: usize = 6;
        // Its second feature is higher in higher groups, and counts.
        let weights = [&normals(seed, 1)[..], &[1.0], &normals(seed + 1, D - 2)].concat();
        let mut made = Self { x: Vec::new(), y: Vec::new(), group: Vec::new() };
        for i in 0..n as u64 {
            let mut row = normals(1_000_000 * seed + i + 1, D + 1);
            let place = (i as f64 + 0.5) / n as f64;
            let group = groups.iter().position(|&share| place < share).unwrap_or(groups.len());
            (row[0], row[1]) = (1.0, row[1] + group as f64);
            let uniform = sigmoid(1.702 * row[D]);
            row.truncate(D);
            let positive = uniform < sigmoid(row.dot(&weights) + 0.5 * group as f64);
            made.x.push(row);
            made.y.push(if positive { 1.0 } else { -1.0 });
            made.group.push(group);
        }
        Rc::new(made)
    }
    fn len(&self) -> usize {
        self.y.len()
    }
    fn group(&self, wanted: usize) -> Members {
        Members::new(self.len(), |i| self.group[i] == wanted)
    }
    /// The logistic loss with features divided by `unit`.
    fn loss(self: &Rc<Self>, unit: f64) -> impl Objective<Point = Vec<f64>> + use<> {
        let data = Rc::clone(self);
        from_terms(data.len(), move |i, w: &Vec<f64>, g: &mut Vec<f64>| {
            let t = data.y[i] * data.x[i].dot(w) / unit;
            g.add(-data.y[i] * sigmoid(-t) / unit, &data.x[i]);
            (-t).exp().ln_1p()
        })
    }
    /// The probability of a positive label, times `scale`.
    fn score(self: &Rc<Self>, unit: f64, scale: f64) -> impl Objective<Point = Vec<f64>> + use<> {
        let data = Rc::clone(self);
        from_terms(data.len(), move |i, w: &Vec<f64>, g: &mut Vec<f64>| {
            let p = sigmoid(data.x[i].dot(w) / unit);
            g.add(scale * p * (1.0 - p) / unit, &data.x[i]);
            scale * p
        })
    }
    /// 1 where the probability is above ½.
    fn decision(self: &Rc<Self>) -> impl Objective<Point = Vec<f64>> + use<> {
        let data = Rc::clone(self);
        from_terms(data.len(), move |i, w: &Vec<f64>, _: &mut Vec<f64>| f64::from(u8::from(data.x[i].dot(w) > 0.0)))
    }
}

/// The solution on all terms.
fn solved(data: &Rc<Applicants>, rows: Vec<MeanRow>) -> ExpectationEnd<Vec<f64>> {
    let mut f = data.loss(1.0);
    let mut method = InExpectation::new(Expectation::new(data.score(1.0, 1.0), rows).unwrap());
    let start = method.init(&mut f, vec![0.0; 6]).unwrap();
    let end = method.finish(&mut f, &start, 300).unwrap();
    assert_eq!(end.certificate.verdict, SqpVerdict::Converged);
    end
}

/// The multiplier of each row: those of its sides are in the order of the rows, the upper side first.
fn multipliers(end: &ExpectationEnd<Vec<f64>>) -> Vec<f64> {
    let mut sides = end.state.multipliers().iter();
    let of_row = |row: &MeasuredRow| {
        let side = |bound: f64| usize::from(bound.is_finite());
        let count = if row.lower >= row.upper { 1 } else { side(row.upper) + side(row.lower) };
        let own: Vec<f64> = sides.by_ref().take(count).copied().collect();
        if row.upper.is_finite() { own[0] - own.get(1).unwrap_or(&0.0) } else { -own[0] }
    };
    end.rows.iter().map(of_row).collect()
}

/// How far a point is from the solution: (L − f*)/(f(0) − f*) with L = f + Σ λᵢ(cᵢ − cᵢ*), because f differs by λ(c − c*) from
/// f* to first order, and |cᵢ − cᵢ*| of the rows that bind and the violation of the others.
fn error(end: &ExpectationEnd<Vec<f64>>, value: f64, rows: &[MeasuredRow]) -> (f64, f64) {
    let best = end.certificate.value;
    let (mut lagrangian, mut distance) = (value, 0.0_f64);
    for ((row, solved), multiplier) in rows.iter().zip(&end.rows).zip(multipliers(end)) {
        lagrangian += multiplier * (row.value - solved.value);
        distance = distance.max(if multiplier == 0.0 { row.violation() } else { (row.value - solved.value).abs() });
    }
    ((lagrangian - best) / (2.0_f64.ln() - best), distance)
}

/// The errors after some passes over 20 seeds, sorted.
fn errors(
    data: &Rc<Applicants>,
    rows: &dyn Fn() -> Vec<MeanRow>,
    start: &[f64],
    (batch, epochs): (usize, u64),
    is_stratified: bool,
) -> (Vec<f64>, Vec<f64>) {
    let end = solved(data, rows());
    assert!(multipliers(&end).iter().any(|multiplier| multiplier.abs() > 0.01), "no row binds");
    let one = |seed: u64| {
        let mut f = data.loss(1.0);
        let mut method = InExpectation::new(Expectation::new(data.score(1.0, 1.0), rows()).unwrap());
        let sampler = Epochs::over(&f).batch(batch).seed(seed);
        let sampler = if is_stratified { sampler.stratified(&method.rows().strata()) } else { sampler };
        let run = minimize(&mut f).method(&mut method).sampler(sampler).stop(Stop::epochs(epochs));
        let report = run.start(start.to_vec()).unwrap();
        error(&end, report.last.value, &method.rows().measure(report.point()))
    };
    let (mut gaps, mut distances): (Vec<f64>, Vec<f64>) = (0..20).map(one).unzip();
    gaps.sort_by(f64::total_cmp);
    distances.sort_by(f64::total_cmp);
    (gaps, distances)
}

/// The limits of 90 % of the seeds, and half of them for the median.
fn are_below((gaps, distances): &(Vec<f64>, Vec<f64>), gap: f64, distance: f64) {
    println!("gaps {:.5} {:.5}, distances {:.5} {:.5}", gaps[9], gaps[17], distances[9], distances[17]);
    assert!(gaps[9] <= 0.5 * gap && gaps[17] <= gap, "L − f*: {gaps:?}");
    assert!(distances[9] <= 0.5 * distance && distances[17] <= distance, "c: {distances:?}");
}

fn parity(data: &Applicants, epsilon: f64) -> Vec<MeanRow> {
    vec![MeanRow::difference(&data.group(1), &data.group(0)).between(-epsilon, epsilon)]
}

#[test]
fn a_gap_between_two_groups_ends_within_its_bound() {
    let data = Applicants::new(1, 3000, &[0.6]);
    let found = errors(&data, &|| parity(&data, 0.02), &[0.0; 6], (64, 20), true);
    are_below(&found, 0.02, 0.01);
}

#[test]
fn a_far_infeasible_start_reaches_the_bound_too() {
    let data = Applicants::new(2, 3000, &[0.6]);
    let found = errors(&data, &|| parity(&data, 0.02), &[4.0, 4.0, -4.0, 4.0, -4.0, 4.0], (64, 20), true);
    are_below(&found, 0.05, 0.01);
}

#[test]
fn an_equation_holds_from_an_infeasible_start() {
    let data = Applicants::new(3, 3000, &[0.5]);
    let rows = || vec![MeanRow::mean(&Members::all(3000)).equal_to(0.3)];
    let found = errors(&data, &rows, &[3.0; 6], (64, 20), false);
    are_below(&found, 0.05, 0.01);
}

#[test]
fn rows_over_three_groups_that_depend_on_each_other_hold_at_once() {
    let data = Applicants::new(4, 4000, &[0.5, 0.8]);
    let everyone = Members::all(data.len());
    let rows = || (0..3).map(|k| MeanRow::difference(&data.group(k), &everyone).between(-0.02, 0.02)).collect();
    let found = errors(&data, &rows, &[0.0; 6], (64, 20), true);
    are_below(&found, 0.05, 0.01);
}

#[test]
fn a_group_that_few_batches_know_keeps_its_bound() {
    let data = Applicants::new(5, 4000, &[0.98]);
    let found = errors(&data, &|| parity(&data, 0.05), &[0.0; 6], (32, 20), false);
    // 47 % of the batches have no member of the group of 80.
    are_below(&found, 0.05, 0.05);
}

#[test]
fn a_row_that_does_not_bind_costs_nothing_and_changes_nothing() {
    let data = Applicants::new(6, 1000, &[0.5]);
    let mut f = data.loss(1.0);
    let row = vec![MeanRow::difference(&data.group(1), &data.group(0)).at_most(0.9)];
    let mut method = InExpectation::new(Expectation::new(Counted::new(data.score(1.0, 1.0)), row).unwrap());
    let report = minimize(&mut f).method(&mut method).batch(50).stop(Stop::epochs(5)).start(vec![0.0; 6]).unwrap();
    let plain = minimize(&mut data.loss(1.0)).batch(50).stop(Stop::epochs(5)).start(vec![0.0; 6]).unwrap();
    assert_eq!((bits(report.point()), report.state.multipliers()), (bits(plain.point()), vec![0.0]));
}

#[test]
fn an_active_row_costs_one_gradient_and_one_value_of_its_groups_in_a_step() {
    let data = Applicants::new(7, 1000, &[0.5]);
    let all = Members::all(data.len());
    let evaluations = |row: MeanRow| {
        let score = Rc::new(RefCell::new(Evaluations::default()));
        let mut f = data.loss(1.0);
        let counted = Tallied(data.score(1.0, 1.0), Rc::clone(&score));
        let mut method = InExpectation::new(Expectation::new(counted, vec![row]).unwrap());
        let mut state = method.init(&mut f, vec![0.0; 6]).unwrap();
        let (mut sampler, mut sample) = (Epochs::over(&f).batch(50), Sample::default());
        for k in 0..200 {
            if k == 100 {
                *score.borrow_mut() = Evaluations::default();
            }
            sampler.draw(k, &mut sample);
            method.step(&mut f, &mut state, &sample).unwrap();
        }
        score.take()
    };
    let (active, idle) =
        (evaluations(MeanRow::mean(&all).equal_to(0.3)), evaluations(MeanRow::mean(&all).at_most(0.99)));
    assert!(active.gradients == 100 && (95..=100).contains(&active.values), "{active:?}");
    assert_eq!((idle.gradients, idle.values), (0, 100));
}

/// Counts the evaluations where the test sees them.
struct Tallied<F>(F, Rc<RefCell<Evaluations>>);

impl<F: Objective> strust::objective::ObjectiveWrapper for Tallied<F> {
    type Inner = F;
    fn wrapped(&self) -> &F {
        &self.0
    }
    fn wrapped_mut(&mut self) -> &mut F {
        &mut self.0
    }
    fn value(this: &mut Self, x: &F::Point, sample: &Sample) -> strust::objective::Evaluation {
        this.1.borrow_mut().values += 1;
        this.0.value(x, sample)
    }
    fn value_and_gradient(
        this: &mut Self,
        x: &F::Point,
        sample: &Sample,
        gradient: &mut F::Point,
    ) -> strust::objective::Evaluation {
        this.1.borrow_mut().gradients += 1;
        this.0.value_and_gradient(x, sample, gradient)
    }
}

#[test]
fn scales_of_f_of_a_row_and_of_x_change_no_bit() {
    let data = Applicants::new(8, 800, &[0.6, 0.9]);
    let run = |of_f: f64, of_rows: [f64; 3], of_x: f64| {
        let mut f = Scaled::new(data.loss(of_x), of_f);
        let all = Members::all(data.len());
        let gap =
            |k: usize, of: f64| MeanRow::weighted(of, &data.group(k)).plus(-of, &all).between(-0.02 * of, 0.02 * of);
        let mean = MeanRow::weighted(of_rows[2], &all).equal_to(0.4 * of_rows[2]);
        let rows = vec![gap(0, of_rows[0]), gap(1, of_rows[1]), mean];
        let mut method = InExpectation::new(Expectation::new(data.score(of_x, 1.0), rows).unwrap());
        let run = minimize(&mut f).method(&mut method).batch(40).stop(Stop::epochs(8));
        let report = run.start(normals(1, 6).iter().map(|x| x * of_x).collect()).unwrap();
        let x: Vec<f64> = report.point().iter().map(|x| x / of_x).collect();
        let multipliers = report.state.multipliers();
        (bits(&x), multipliers.iter().zip(of_rows).map(|(y, of)| (y * of / of_f).to_bits()).collect::<Vec<_>>())
    };
    let one = [1.0; 3];
    let plain = run(1.0, one, 1.0);
    let far = 2.0_f64.powi(20);
    let rows = [far, 1.0, far.recip()];
    for (f, rows, x) in [(far, one, 1.0), (1.0, rows, 1.0), (1.0, one, far), (1.0 / far, rows, 1.0 / far)] {
        assert_eq!(run(f, rows, x), plain, "f × {f:e}, rows × {rows:?}, x × {x:e}");
    }
}

/// ½‖x − start‖² from its minimum, with noise of this size in each term's gradient, under rows over all terms.
fn pushed_out(
    start: &[f64],
    noise: f64,
    rows: impl Fn(&Members) -> Vec<MeanRow>,
    scores: &'static [[f64; 2]],
) -> (Vec<f64>, Vec<MeasuredRow>) {
    let n = 100 * scores.len();
    let from = start.to_vec();
    let mut f = from_terms(n, move |i, x: &Vec<f64>, g: &mut Vec<f64>| {
        // The noise of two successive terms cancels.
        let tilt = noise * if i % 2 == 0 { 1.0 } else { -1.0 };
        (0..x.len()).for_each(|j| g[j] += x[j] - from[j] + tilt);
        (0..x.len()).map(|j| 0.5 * (x[j] - from[j]).powi(2) + tilt * (x[j] - from[j])).sum()
    });
    // Term i has the score number i modulo their count.
    let score = from_terms(n, move |i, x: &Vec<f64>, g: &mut Vec<f64>| {
        let slope = scores[i % scores.len()];
        (g[0], g[1]) = (g[0] + slope[0], g[1] + slope[1]);
        slope[0] * x[0] + slope[1] * x[1]
    });
    let mut method = InExpectation::new(Expectation::new(score, rows(&Members::all(n))).unwrap());
    let run = minimize(&mut f).method(&mut method).batch(20).stop(Stop::epochs(200));
    let report = run.start(start.to_vec()).unwrap();
    (report.point().clone(), method.rows().measure(report.point()))
}

#[test]
fn a_row_is_reached_from_a_start_where_f_does_not_pull() {
    let (x, rows) = pushed_out(&[2.0, 3.0], 0.0, |all| vec![MeanRow::mean(all).equal_to(10.0)], &[[1.0, 1.0]]);
    assert!((rows[0].value - 10.0).abs() < 0.05 && distance(&x, &vec![4.5, 5.5]) < 0.05, "{x:?} {rows:?}");
}

#[test]
fn rows_that_are_nearly_dependent_and_have_different_units_are_reached() {
    // Slopes (1, 0) and 1000·(1, 0.3): the multipliers are −12 and 0.01.
    let rows = |all: &Members| {
        let n = 200;
        let (first, second) = (Members::new(n, |i| i % 2 == 0), Members::new(n, |i| i % 2 == 1));
        assert!(all.contains(n - 1));
        vec![MeanRow::mean(&first).equal_to(1.0), MeanRow::mean(&second).equal_to(0.0)]
    };
    let (x, rows) = pushed_out(&[0.0, 0.0], 0.3, rows, &[[1.0, 0.0], [1000.0, 300.0]]);
    let error = (rows[0].value - 1.0).abs().max(rows[1].value.abs() / 1000.0);
    assert!(error < 0.05, "{x:?} {rows:?}");
}

#[test]
fn a_slope_that_is_not_finite_once_does_not_switch_its_row_off() {
    let mut calls = 0;
    let mut f = from_terms(40, |_, x: &Vec<f64>, g: &mut Vec<f64>| {
        g[0] += x[0] - 3.0;
        0.5 * (x[0] - 3.0).powi(2)
    });
    let score = from_fn(40, move |x: &Vec<f64>, _: &Sample, g: Option<&mut Vec<f64>>| {
        if let Some(g) = g {
            calls += 1;
            g[0] += if calls == 2 { f64::NAN } else { 1.0 }; // the first one is measured at the start
        }
        x[0]
    });
    let row = MeanRow::mean(&Members::all(40)).at_most(1.0);
    let mut method = InExpectation::new(Expectation::new(score, vec![row]).unwrap());
    let report = minimize(&mut f).method(&mut method).batch(10).stop(Stop::epochs(50)).start(vec![0.0]).unwrap();
    assert!((report.point()[0] - 1.0).abs() < 0.05, "{:?}", report.point());
}

#[test]
fn a_state_of_other_rows_and_weight_decay_at_the_end_are_errors() {
    let data = Applicants::new(14, 200, &[0.5]);
    let method = |rows| InExpectation::new(Expectation::new(data.score(1.0, 1.0), rows).unwrap());
    let all = Members::all(data.len());
    let row = || MeanRow::mean(&all).at_most(0.4);
    let mut f = data.loss(1.0);
    let mut one = method(vec![row()]);
    let report = minimize(&mut f).method(&mut one).stop(Stop::epochs(1)).start(vec![0.0; 6]).unwrap();
    let mut state = report.state;
    let message = method(vec![row(), row()]).step(&mut f, &mut state, &Sample::range(0..10)).unwrap_err().to_string();
    assert_eq!(message, "in-expectation: `rows` is 2, but must be 1, as the state has");
    let decay = Auto::new(AutoConfig { weight_decay: 0.1, ..AutoConfig::default() }).unwrap();
    let mut method = InExpectation::around(decay, Expectation::new(data.score(1.0, 1.0), vec![row()]).unwrap());
    let report = minimize(&mut f).method(&mut method).stop(Stop::epochs(1)).start(vec![0.0; 6]).unwrap();
    let message = method.finish(&mut f, &report.state, 10).unwrap_err().to_string();
    assert!(message.contains("`weight_decay` is 0.1"), "{message}");
}

#[test]
fn the_end_is_on_the_row_and_at_the_optimum() {
    let data = Applicants::new(9, 1000, &[0.6]);
    let best = solved(&data, parity(&data, 0.02));
    let mut f = data.loss(1.0);
    let mut method = InExpectation::new(Expectation::new(data.score(1.0, 1.0), parity(&data, 0.02)).unwrap());
    let report = minimize(&mut f).method(&mut method).batch(50).stop(Stop::epochs(3)).start(vec![0.0; 6]).unwrap();
    let end = method.finish(&mut f, &report.state, 100).unwrap();
    assert_eq!(end.certificate.verdict, SqpVerdict::Converged);
    assert!((end.rows[0].value.abs() - 0.02).abs() < 1e-8, "{:?}", end.rows);
    assert!(distance(end.state.point(), best.state.point()) < 1e-5);
    assert!(end.state.steps() < 30 && end.certificate.stationarity < 1e-7, "{end:?}");
}

#[test]
fn rows_that_contradict_each_other_are_infeasible_and_do_no_harm_before_the_end() {
    let data = Applicants::new(10, 600, &[0.5]);
    let all = Members::all(data.len());
    let rows = vec![MeanRow::mean(&all).at_most(0.2), MeanRow::mean(&all).at_least(0.6)];
    let mut f = data.loss(1.0);
    let mut method = InExpectation::new(Expectation::new(data.score(1.0, 1.0), rows).unwrap());
    let report = minimize(&mut f).method(&mut method).batch(30).stop(Stop::epochs(20)).start(vec![0.0; 6]).unwrap();
    assert!(report.breakdown.is_none() && report.last.value < 10.0, "{:?}", report.last);
    let end = method.finish(&mut f, &report.state, 200).unwrap();
    assert_eq!(end.certificate.verdict, SqpVerdict::Infeasible(vec![0, 1]));
}

#[test]
fn the_multipliers_follow_the_true_rate_and_the_end_keeps_it() {
    let data = Applicants::new(11, 3000, &[0.6]);
    for seed in 0..3 {
        let mut f = data.loss(1.0);
        let rows = Expectation::new(data.score(1.0, 1.0), parity(&data, 0.03)).unwrap();
        let mut method = InExpectation::new(rows.with_rate(data.decision()).unwrap());
        let run = minimize(&mut f).method(&mut method).batch(64).seed(seed).stop(Stop::epochs(20));
        let report = run.start(vec![0.0; 6]).unwrap();
        let before = method.rows().measure(report.point())[0];
        assert!(before.violation() < 0.03 && (before.value - before.smooth).abs() > 1e-3, "{before:?}");
        let end = method.finish(&mut f, &report.state, 100).unwrap().rows[0];
        // A group has 1200 rows or more, so this is one or two of them.
        assert!(end.violation() < 2e-3, "{end:?}");
    }
}

#[test]
fn exact_rows_and_bounds_hold_together_with_an_expectation() {
    let data = Applicants::new(12, 2000, &[0.6]);
    let infinite = f64::INFINITY;
    let exact = || {
        let sum = constraint_from_fn(
            1,
            |x, c| c[0] = x[1] + x[2] - 0.5,
            |_, v, out| out[0] = v[1] + v[2],
            |_, y, out| out[1..3].iter_mut().for_each(|out| *out += y[0]),
        );
        let bounds = Bounds::new(vec![-infinite, -infinite, -infinite, -0.1, -infinite, -infinite], vec![infinite; 6]);
        StrSqp::new(StrSqpConfig::default(), both(sum, bounds.unwrap()).unwrap()).unwrap()
    };
    let method = || {
        let rows = Expectation::new(data.score(1.0, 1.0), parity(&data, 0.02)).unwrap();
        InExpectation::around(exact(), rows)
    };
    let mut f = data.loss(1.0);
    let mut whole = method();
    let start = whole.init(&mut f, vec![0.0; 6]).unwrap();
    let best = whole.finish(&mut f, &start, 300).unwrap();
    assert_eq!(best.certificate.verdict, SqpVerdict::Converged);
    for seed in 0..3 {
        let mut method = method();
        let run = minimize(&mut f).method(&mut method).batch(64).seed(seed).stop(Stop::epochs(20));
        let report = run.start(vec![0.0; 6]).unwrap();
        let x = report.point();
        assert!((x[1] + x[2] - 0.5).abs() < 1e-12 && x[3] >= -0.1, "{x:?}");
        let row = method.rows().measure(x)[0];
        assert!(row.violation() < 0.01, "{row:?}");
        // Exact rows come first.
        let multiplier = best.state.multipliers()[1] - best.state.multipliers()[2];
        let lagrangian = report.last.value + multiplier * (row.value - best.rows[0].value);
        assert!((lagrangian - best.certificate.value).abs() < 0.01, "{lagrangian} {:?}", best.certificate);
        let end = method.finish(&mut f, &report.state, 200).unwrap();
        assert_eq!(end.certificate.verdict, SqpVerdict::Converged);
        assert!(distance(end.state.point(), best.state.point()) < 1e-5);
    }
}

#[test]
fn scores_that_are_shared_out_among_ranks_give_the_run_of_one_process() {
    let rows = |data: &Applicants| parity(data, 0.02);
    let alone = {
        let data = Applicants::new(13, 300, &[0.6]);
        let mut method = InExpectation::new(Expectation::new(data.score(1.0, 1.0), rows(&data)).unwrap());
        let mut f = data.loss(1.0);
        minimize(&mut f).method(&mut method).batch(20).stop(Stop::epochs(5)).start(vec![0.0; 6]).unwrap()
    };
    for size in [1, 3] {
        let found = on_threads(size, Duration::from_secs(60), |rank| {
            let data = Applicants::new(13, 300, &[0.6]);
            let rank = RefCell::new(rank);
            let score = Sharded::new(data.score(1.0, 1.0), &rank);
            let mut method = InExpectation::new(Expectation::new(score, rows(&data)).unwrap());
            let mut f = Sharded::new(data.loss(1.0), &rank);
            let report = minimize(&mut f).method(&mut method).batch(20).stop(Stop::epochs(5)).start(vec![0.0; 6]);
            let report = report.unwrap();
            assert_eq!(report.breakdown, None);
            (report.point().clone(), report.state.multipliers())
        });
        for (x, multipliers) in &found {
            assert_eq!((bits(x), multipliers), (bits(&found[0].0), &found[0].1));
            assert!(distance(x, alone.point()) < 1e-10 * alone.point().norm());
            assert!((multipliers[0] - alone.state.multipliers()[0]).abs() < 1e-8);
        }
    }
}

#[test]
fn a_resumed_run_has_the_same_bits() {
    let data = Applicants::new(14, 500, &[0.7, 0.9]);
    let all = Members::all(data.len());
    let rows = || (0..3).map(|k| MeanRow::difference(&data.group(k), &all).between(-0.02, 0.02)).collect();
    let method = || InExpectation::new(Expectation::new(data.score(1.0, 1.0), rows()).unwrap());
    let run = |from: Option<&str>, steps: u64| {
        let mut f = data.loss(1.0);
        let run = minimize(&mut f).method(method()).batch(12).seed(3).stop(Stop::steps(steps));
        match from {
            None => run.start(vec![0.0; 6]).unwrap().state,
            Some(saved) => run.resume(serde_json::from_str(saved).unwrap()).unwrap().state,
        }
    };
    let json = |state| serde_json::to_string(&state).unwrap();
    let whole = run(None, 300);
    assert!(whole.multipliers().iter().any(|y| *y != 0.0));
    assert_eq!(json(run(Some(&json(run(None, 137))), 300)), json(whole));
}

/// The measured value is within two standard errors of the truth in about 95 % of the cases.
#[test]
fn the_standard_error_covers_the_mean_of_the_population() {
    let covered = |n: usize| {
        let trials = 200;
        let hits = (0..trials).filter(|&seed| {
            let scores = normals(seed, n);
            let (low, high) = (Members::new(n, |i| i % 3 == 0), Members::new(n, |i| i % 3 != 0));
            let score =
                move |i: usize, _: &Vec<f64>, _: &mut Vec<f64>| scores[i] * if i.is_multiple_of(3) { 3.0 } else { 1.0 };
            let rows = vec![MeanRow::mean(&low).plus(-2.0, &high).at_most(0.0)];
            let row = constraint_from_terms(n, score, rows).unwrap().measure(&vec![0.0])[0];
            row.value.abs() <= 2.0 * row.standard_error
        });
        hits.count() as f64 / trials as f64
    };
    for n in [60, 1500] {
        let share = covered(n);
        assert!((0.90..=0.99).contains(&share), "{share} of the means of {n} terms");
    }
}

/// Makes a row of groups.
type Build<'a> = &'a dyn Fn(&[Members]) -> MeanRow;

/// The standard deviation of the row over 2000 draws of the population, where the mean of the scores and the share of
/// each group are random.
#[test]
fn the_standard_error_of_overlapping_groups_is_the_deviation_over_draws_of_the_population() {
    const N: usize = 400;
    let draw = |seed: u64, row: &dyn Fn(&[Members]) -> MeanRow| {
        let (scores, places) = (normals(2 * seed, N), normals(2 * seed + 1, N));
        let above = |bound: f64| Members::new(N, |i| places[i] > bound);
        // Half of the terms, all, the same half again, one that contains this half, and one that cuts it.
        let groups = [above(0.0), Members::all(N), above(0.0), above(-0.5), Members::new(N, |i| places[i].abs() < 0.3)];
        let given = row(&groups).at_most(0.0);
        let score = |i: usize, _: &Vec<f64>, _: &mut Vec<f64>| scores[i] + 1.5 * places[i].signum();
        constraint_from_terms(N, score, vec![given]).unwrap().measure(&vec![0.0])[0]
    };
    let rows: [(&str, Build<'_>); 5] = [
        ("a group minus all", &|group| MeanRow::difference(&group[0], &group[1])),
        ("a copy of a group again", &|group| MeanRow::mean(&group[0]).plus(1.0, &group[0])),
        ("the same terms again", &|group| MeanRow::mean(&group[0]).plus(1.0, &group[2])),
        ("three groups", &|group| MeanRow::mean(&group[3]).plus(-2.0, &group[4]).plus(0.5, &group[0])),
        ("a group minus a larger one", &|group| MeanRow::difference(&group[0], &group[3])),
    ];
    for (what, row) in rows {
        let drawn: Vec<MeasuredRow> = (0..2000).map(|seed| draw(seed, row)).collect();
        let mean = |value: &dyn Fn(&MeasuredRow) -> f64| drawn.iter().map(value).sum::<f64>() / drawn.len() as f64;
        let center = mean(&|row| row.value);
        let deviation = mean(&|row| (row.value - center).powi(2)).sqrt();
        let reported = mean(&|row| row.standard_error.powi(2)).sqrt();
        println!("{what}: {reported:.4}, {deviation:.4}");
        // The deviation of 2000 draws has the relative error 1/√4000 = 1.6 %.
        assert!((reported / deviation - 1.0).abs() < 0.05, "{what}: {reported} instead of {deviation}");
    }
}

/// A row of other groups splits the terms into strata, one of them with one term.
#[test]
fn other_rows_do_not_change_the_standard_error_of_a_row() {
    let scores = normals(5, 90);
    let (low, high) = (Members::new(90, |i| i % 3 == 0), Members::new(90, |i| i % 3 != 0));
    let others =
        [Members::new(90, |i| i < 31), Members::new(90, |i| (3..50).contains(&i)), Members::new(90, |i| i == 7)];
    let row = || MeanRow::mean(&low).plus(-2.0, &high).at_most(0.0);
    let measure = |rows: Vec<MeanRow>| {
        let score = |i: usize, _: &Vec<f64>, _: &mut Vec<f64>| scores[i];
        constraint_from_terms(90, score, rows).unwrap().measure(&vec![0.0])
    };
    let alone = measure(vec![row()])[0];
    let variance = |group: &Members| {
        let own: Vec<f64> = (0..90).filter(|&i| group.contains(i)).map(|i| scores[i]).collect();
        let (n, mean) = (own.len() as f64, own.iter().sum::<f64>() / own.len() as f64);
        own.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / (n - 1.0) / n
    };
    assert!((alone.standard_error / (variance(&low) + 4.0 * variance(&high)).sqrt() - 1.0).abs() < 1e-12);
    let among = measure([vec![row()], others.iter().map(|group| MeanRow::mean(group).at_most(0.0)).collect()].concat());
    assert!((among[0].standard_error / alone.standard_error - 1.0).abs() < 1e-12);
    assert!((among[0].value - alone.value).abs() < 1e-12);
    assert!(among[3].standard_error.is_nan() && among[1].standard_error > 0.0);
}

#[test]
fn wrong_rows_are_errors_that_say_what_to_do() {
    let rows = |row: MeanRow| constraint_from_terms(4, |_, x: &Vec<f64>, _: &mut Vec<f64>| x[0], vec![row]);
    let error = |row: MeanRow| rows(row).map(|_| ()).unwrap_err().to_string();
    let all = Members::all(4);
    assert_eq!(
        error(MeanRow::mean(&all)),
        "mean row: `bounds` is [-inf, inf], but must be a finite bound, and at most one below and one above: use at_most, \
         at_least, between or equal_to"
    );
    assert!(error(MeanRow::mean(&all).between(1.0, 0.0)).contains("[1, 0]"));
    assert!(error(MeanRow::mean(&all).plus(f64::NAN, &all).at_most(0.0)).contains("`weight` is NaN"));
    assert!(error(MeanRow::mean(&Members::new(4, |_| false)).at_most(0.0)).contains("at least one member"));
    assert!(error(MeanRow::mean(&Members::all(5)).at_most(0.0)).contains("over 5 terms, but must be over the 4 terms"));
    let none = constraint_from_terms(4, |_, x: &Vec<f64>, _: &mut Vec<f64>| x[0], vec![]).map(|_| ()).unwrap_err();
    assert!(none.to_string().contains("at least one row"), "{none}");
    let mut f = from_terms(5, |_, x: &Vec<f64>, g| {
        g[0] += x[0];
        0.5 * x[0] * x[0]
    });
    let method = InExpectation::new(rows(MeanRow::mean(&all).at_most(0.0)).unwrap());
    let error = minimize(&mut f).method(method).start(vec![1.0]).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "expectation: `terms of the score` is 4, but must be 5, as the objective has");
}
