//! What a run says of itself: curvature, rejections, strong growth, interpolation, and the KKT conditions.
//!
//! `cargo run -p strust --example diagnosis`

use strust::{
    diagnostics::{Curvature, Draws, Interpolation, Iterations, SplitBatch, kkt_report, probe},
    prelude::*,
};

fn main() -> Result<(), Error> {
    // Terms ½wᵢ(⟨aᵢ, x⟩ − bᵢ)² with aᵢ on the unit circle; all of them are met by x = (1, 2).
    let terms = 60;
    let row = |i: usize| [(i as f64).cos(), (i as f64).sin()];
    let mut f = from_fn(terms, |x: &Vec<f64>, sample: &Sample, mut gradient: Option<&mut Vec<f64>>| {
        let scale = 1.0 / sample.len() as f64;
        let one = |&i: &usize| {
            let (a, weight) = (row(i), 0.05 * (1.0 + (i % 5) as f64));
            let r = a[0] * (x[0] - 1.0) + a[1] * (x[1] - 2.0);
            if let Some(g) = gradient.as_deref_mut() {
                g[0] += scale * weight * r * a[0];
                g[1] += scale * weight * r * a[1];
            }
            0.5 * scale * weight * r * r
        };
        sample.indices().iter().map(one).sum()
    });

    // Observers read the record of every step and cost nothing; the split batches estimate strong growth.
    let region = StrConfig::default();
    let (mut curvature, mut iterations) = (Curvature::default(), Iterations::default());
    let mut watched = SplitBatch::new(&mut f, Draws::Different);
    let mut method = Str::new(region.clone())?;
    let report = Run::new(&mut watched, &mut method, &mut Epochs::new(terms, 6, 0)?)
        .observe(&mut curvature)
        .observe(&mut iterations)
        .start(vec![5.0, -5.0], &Stop::steps(200))?;
    println!("curvature along the trials: {:.2} to {:.2}", curvature.least, curvature.largest);
    println!("rejected: {} of {}", iterations.unsuccessful, iterations.steps());
    let rho = watched.pairs().rho_interval(6);
    println!("strong growth of batches of 6: {:.2} (95 %: {:.2} to {:.2})", watched.pairs().rho(6), rho.low, rho.high);
    assert!(iterations.unsuccessful as f64 <= iterations.unsuccessful_bound(&region, 0.25));
    assert!(curvature.largest <= 0.25 + 1e-9 && rho.high < 4.0);

    let found = probe(&mut f, report.point(), 100);
    println!("interpolation {}: {}", found.verdict, found.why);
    assert_eq!(found.verdict, Interpolation::Holds);

    // On the circle ‖x‖ = 1 the same function has multipliers, and a penalty of 100 leaves ‖c‖ of about ‖λ‖/100.
    let mut circle = Sphere::new(1.0)?;
    let mut constrained = StrP::new(StrPConfig { penalty: 100.0, ..Default::default() }, circle.clone())?;
    let report =
        minimize(&mut f, &mut constrained, &mut Epochs::new(terms, 60, 0)?, vec![1.0, 0.0], &Stop::steps(5000))?;
    let kkt = kkt_report(&mut f, &mut circle, report.point(), 100.0)?;
    println!(
        "‖c‖ = {:.4}, ‖λ‖/μ = {:.4}, bound {:.4}",
        kkt.constraint_norm,
        kkt.multiplier_norm / 100.0,
        kkt.feasibility_bound
    );
    assert!(kkt.jacobian.licq && kkt.constraint_norm <= kkt.feasibility_bound);
    assert!(kkt.multiplier_gap < 0.05 * kkt.multiplier_norm, "near a minimum of φ, where μc = λ");
    assert!((kkt.constraint_norm / (kkt.multiplier_norm / 100.0) - 1.0).abs() < 0.05);
    Ok(())
}
