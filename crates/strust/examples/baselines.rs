//! All methods without constraints on one problem: interpolating least squares with 200 terms and 20 unknowns.
//!
//! Run with `cargo run --release --example baselines`.

use strust::{objective::Evaluations, prelude::*};
use strust_baselines::{Adam, AdamConfig, LineSearch, LineSearchConfig, Reset, Sgd, SgdConfig};

/// A row of numbers that look random.
fn row(i: usize) -> Vec<f64> {
    (0..20).map(|j| ((i * 37 + j * 101 + i * j) as f64).sin() / 3.0).collect()
}

fn main() -> Result<(), Error> {
    let rows: Vec<Vec<f64>> = (0..200).map(row).collect();
    let answer: Vec<f64> = (0..20).map(|j| f64::from(j % 5) - 2.0).collect();
    let mut f = from_fn(rows.len(), |x: &Vec<f64>, sample: &Sample, mut gradient: Option<&mut Vec<f64>>| {
        let mut sum = 0.0;
        for &i in sample.indices() {
            let r = (rows[i].dot(x) - rows[i].dot(&answer)) / sample.len() as f64;
            sum += 0.5 * r * r * sample.len() as f64;
            if let Some(g) = gradient.as_deref_mut() {
                g.add(r, &rows[i]);
            }
        }
        sum
    });

    println!("{:<14} {:>6} {:>7} {:>9} {:>12}  stopped", "method", "steps", "values", "gradients", "distance");
    // A macro, because a closure cannot be generic over the method.
    macro_rules! run {
        ($name:literal, $method:expr) => {{
            let stop = Stop::gradient_norm(1e-7).or(Stop::epochs(2000));
            let report = minimize(&mut f).method(&mut $method).sampler(Epochs::new(200, 20, 0)?).stop(&stop).start(vec![0.0; 20])?;
            let mut off = report.point().clone();
            off.add(-1.0, &answer);
            let (Evaluations { values, gradients, .. }, distance) = (report.evaluations, off.norm());
            println!(
                "{:<14} {:>6} {values:>7} {gradients:>9} {distance:>12.2e}  {}",
                $name, report.steps, report.reason
            );
            assert!(report.reason.converged() && distance < 1e-4);
        }};
    }
    run!("STR", Str::new(StrConfig::default())?);
    run!("SGD", Sgd::new(SgdConfig { learning_rate: 0.5, ..Default::default() })?);
    run!("SGD, momentum", Sgd::new(SgdConfig { learning_rate: 0.2, momentum: 0.7, ..Default::default() })?);
    run!("Adam", Adam::new(AdamConfig { learning_rate: 0.05, ..Default::default() })?);
    run!("SLS, last", LineSearch::new(LineSearchConfig { reset: Reset::Last, ..Default::default() })?);
    run!("SLS, max", LineSearch::new(LineSearchConfig { reset: Reset::Max, ..Default::default() })?);
    run!("SLS, grow", LineSearch::new(LineSearchConfig::default())?);
    Ok(())
}
