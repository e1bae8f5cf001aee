//! Diagnostics of a run: curvature, rejections, strong growth, interpolation, and the KKT conditions.
//!
//! Run with `cargo run --example diagnosis`.

use strust::{
    constraints::Sphere,
    diagnostics::{Curvature, Interpolation, Iterations, SplitBatch, kkt_report, probe},
    prelude::*,
    radius::RegionConfig,
    sample::Draws,
};

fn main() -> Result<(), Error> {
    // Terms ½wᵢ(⟨aᵢ, x⟩ − bᵢ)² with aᵢ on the unit circle. x = (1, 2) satisfies all equations.
    let terms = 60;
    let row = |i: usize| [(i as f64).cos(), (i as f64).sin()];
    let mut f = from_terms(terms, |i, x: &Vec<f64>, g| {
        let (a, weight) = (row(i), 0.05 * (1.0 + (i % 5) as f64));
        let r = a[0] * (x[0] - 1.0) + a[1] * (x[1] - 2.0);
        g[0] += weight * r * a[0];
        g[1] += weight * r * a[1];
        0.5 * weight * r * r
    });

    // Observers read the record of every step at no cost. The split batches estimate strong growth.
    let region = RegionConfig::default();
    let (mut curvature, mut iterations) = (Curvature::default(), Iterations::default());
    let mut watched = SplitBatch::new(&mut f, Draws::Different);
    let mut method = Str::new(StrConfig { region: region.clone() })?;
    let report = minimize(&mut watched)
        .method(&mut method)
        .batch(6)
        .observe(&mut curvature)
        .observe(&mut iterations)
        .stop(Stop::steps(200))
        .start(vec![5.0, -5.0])?;
    println!("curvature along the trials: {:.2} to {:.2}", curvature.least, curvature.largest);
    println!("rejected: {} of {}", iterations.unsuccessful, iterations.steps());
    let rho = watched.pairs().rho_interval(6);
    println!("strong growth of batches of 6: {:.2} (95 %: {:.2} to {:.2})", watched.pairs().rho(6), rho.low, rho.high);
    assert!(iterations.unsuccessful as f64 <= iterations.unsuccessful_bound(&region, 0.25));
    assert!(curvature.largest <= 0.25 + 1e-9 && rho.high < 4.0);

    let found = probe(&mut f, report.point(), 100);
    println!("interpolation {}: {}", found.verdict, found.why);
    assert_eq!(found.verdict, Interpolation::Holds);

    // On the circle ‖x‖ = 1 the same function has nonzero multipliers, and a penalty of 100 gives ‖c‖ of about ‖λ‖/100.
    let mut circle = Sphere::new(1.0)?;
    let mut constrained = StrP::new(StrPConfig { penalty: 100.0, ..Default::default() }, circle.clone())?;
    let report =
        minimize(&mut f).method(&mut constrained).full_batch().stop(Stop::steps(5000)).start(vec![1.0, 0.0])?;
    let kkt = kkt_report(&mut f, &mut circle, report.point(), 100.0)?;
    println!(
        "‖c‖ = {:.4}, ‖λ‖/μ = {:.4}, bound {:.4}",
        kkt.constraint_norm,
        kkt.multiplier_norm / 100.0,
        kkt.feasibility_bound
    );
    assert!(kkt.jacobian.licq && kkt.constraint_norm <= kkt.feasibility_bound);
    assert!(kkt.multiplier_gap < 0.05 * kkt.multiplier_norm, "the point must be near a minimum of φ, where μc = λ");
    assert!((kkt.constraint_norm / (kkt.multiplier_norm / 100.0) - 1.0).abs() < 0.05);
    Ok(())
}
