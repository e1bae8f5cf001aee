//! A credit model with equal opportunity: of the people who pay back, the same share of both groups shall get credit.
//!
//! The model gives each applicant a score between 0 and 1. In the past, group 1 had less income, so a plain model gives
//! lower scores to its good applicants, too. The limit is part of the training: the mean scores of the good applicants of
//! both groups may differ by at most 0.02.
//!
//! Run with `cargo run --example fair`.

use strust::{
    expectation::{Expectation, MeanRow, MeasuredRow, Members, constraint_from_terms},
    methods::{InExpectation, SqpVerdict},
    prelude::*,
};

/// An applicant: a constant, income, years in the job and their product; the group; whether they paid back.
struct Applicant {
    features: [f64; 4],
    group: usize,
    pays: bool,
}

/// Pseudo-random numbers between 0 and 1, the same in every run.
fn uniform(seed: &mut u64) -> f64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 11) as f64 / (1_u64 << 53) as f64
}

fn applicants(count: usize, mut seed: u64) -> Vec<Applicant> {
    let mut one = || {
        let group = usize::from(uniform(&mut seed) < 0.3);
        let income = 2.0 * uniform(&mut seed) - 1.0 - 0.8 * group as f64;
        let years = 2.0 * uniform(&mut seed) - 1.0;
        let pays = uniform(&mut seed) < sigmoid(1.0 + 2.0 * income + years + 1.2 * group as f64);
        Applicant { features: [1.0, income, years, income * years], group, pays }
    };
    (0..count).map(|_| one()).collect()
}

fn sigmoid(t: f64) -> f64 {
    1.0 / (1.0 + (-t).exp())
}

fn score(weights: &[f64], applicant: &Applicant) -> f64 {
    sigmoid(weights.iter().zip(applicant.features).map(|(w, x)| w * x).sum())
}

/// The limit: |mean score of the good applicants of group 1 − that of group 0| ≤ 0.02.
fn equal_opportunity(people: &[Applicant]) -> Result<Expectation<impl Objective<Point = Vec<f64>>>, Error> {
    let good = |group| Members::new(people.len(), |i| people[i].pays && people[i].group == group);
    let limit = MeanRow::difference(&good(1), &good(0)).between(-0.02, 0.02);
    constraint_from_terms(
        people.len(),
        move |i, weights: &Vec<f64>, gradient: &mut Vec<f64>| {
            let p = score(weights, &people[i]);
            gradient.iter_mut().zip(people[i].features).for_each(|(g, x)| *g += p * (1.0 - p) * x);
            p
        },
        vec![limit],
    )
}

fn main() -> Result<(), Error> {
    let (people, held_out) = (applicants(5000, 1), applicants(5000, 2));
    // How badly the scores fit who paid back: the logistic loss.
    let mut loss = from_terms(people.len(), |i, weights: &Vec<f64>, gradient| {
        let Applicant { features, pays, .. } = &people[i];
        let p = score(weights, &people[i]);
        let error = p - f64::from(u8::from(*pays));
        gradient.iter_mut().zip(features).for_each(|(g, x)| *g += error * x);
        -(if *pays { p } else { 1.0 - p }).ln()
    });
    let accuracy = |weights: &Vec<f64>| {
        let right = held_out.iter().filter(|person| (score(weights, person) > 0.5) == person.pays).count();
        right as f64 / held_out.len() as f64
    };

    // Without the limit.
    let mut limit = equal_opportunity(&people)?;
    let plain = minimize(&mut loss).batch(64).stop(Stop::epochs(10)).start(vec![0.0; 4])?;
    let before = limit.measure(plain.point())[0];
    println!("without the limit: difference {:+.3}, accuracy {:.3}", before.value, accuracy(plain.point()));
    assert!(before.value < -0.05);

    // With it, on mini-batches: each has good applicants of both groups.
    let sampler = Epochs::over(&loss).batch(64).stratified(&limit.strata());
    let mut method = InExpectation::new(limit);
    let run = minimize(&mut loss).method(&mut method).sampler(sampler).stop(Stop::epochs(10)).start(vec![0.0; 4])?;
    let during = method.rows().measure(run.point())[0];
    println!("on mini-batches:   difference {:+.3}, accuracy {:.3}", during.value, accuracy(run.point()));
    assert!(during.violation() < 0.01);

    // A few steps on all applicants put the difference on the limit exactly, and say that nothing better is near.
    let end = method.finish(&mut loss, &run.state, 50)?;
    let weights = end.state.point();
    println!("at the end:        difference {:+.3}, accuracy {:.3}", end.rows[0].value, accuracy(weights));
    assert_eq!(end.certificate.verdict, SqpVerdict::Converged);
    assert!((end.rows[0].value.abs() - 0.02).abs() < 1e-7);
    assert!(accuracy(weights) > accuracy(plain.point()) - 0.05);

    // For people that the model has not seen, the difference is known up to a standard error.
    let MeasuredRow { value, standard_error, .. } = equal_opportunity(&held_out)?.measure(weights)[0];
    println!("for other people:  difference {value:+.3} ± {standard_error:.3}");
    assert!(value.abs() < 0.02 + 3.0 * standard_error);
    Ok(())
}
