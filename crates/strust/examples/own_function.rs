//! Your own function over a slice, without a constraint: a line through noiseless points, from mini-batches.
//!
//! Run with `cargo run --example own_function`.

use strust::prelude::*;

fn main() -> Result<(), Error> {
    let truth = [1.0, 2.0];
    let t: Vec<f64> = (0..100).map(|i| f64::from(i) / 100.0).collect();
    let y: Vec<f64> = t.iter().map(|t| truth[0] + truth[1] * t).collect();

    // The value of term i; its gradient is added to g. strust takes the mean over a mini-batch.
    let mut f = from_terms(t.len(), |i, x: &Vec<f64>, g| {
        let r = x[0] + t[i] * x[1] - y[i];
        g[0] += 2.0 * r;
        g[1] += 2.0 * r * t[i];
        r * r
    });

    let report =
        minimize(&mut f).batch(10).stop(Stop::gradient_norm(1e-8).or(Stop::epochs(1000))).start(vec![0.0, 0.0])?;

    println!("{} after {} steps, {:.0} % accepted", report.reason, report.steps, 100.0 * report.acceptance_rate());
    println!("y = {:.6} + {:.6} t", report.point()[0], report.point()[1]);
    assert!(report.reason.converged());
    assert!(report.point().iter().zip(truth).all(|(x, truth)| (x - truth).abs() < 1e-6));
    Ok(())
}
