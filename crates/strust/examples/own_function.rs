//! Your own function over a slice, without a constraint: a line through noiseless points, from mini-batches.
//!
//! Run with `cargo run --example own_function`.

use strust::prelude::*;

fn main() -> Result<(), Error> {
    let truth = [1.0, 2.0];
    let t: Vec<f64> = (0..100).map(|i| f64::from(i) / 100.0).collect();
    let y: Vec<f64> = t.iter().map(|t| truth[0] + truth[1] * t).collect();

    // The mean of the sampled terms; the gradient arrives as zero and is added to when it is asked for.
    let mut f = from_fn(t.len(), |x: &Vec<f64>, sample: &Sample, mut gradient: Option<&mut Vec<f64>>| {
        let scale = 1.0 / sample.len() as f64;
        let mut sum = 0.0;
        for &i in sample.indices() {
            let r = x[0] + t[i] * x[1] - y[i];
            sum += scale * r * r;
            if let Some(g) = gradient.as_deref_mut() {
                g[0] += scale * 2.0 * r;
                g[1] += scale * 2.0 * r * t[i];
            }
        }
        sum
    });

    let mut method = Str::new(StrConfig::default())?;
    let mut sampler = Epochs::new(t.len(), 10, 0)?;
    let stop = Stop::gradient_norm(1e-8).or(Stop::epochs(1000));
    let report = minimize(&mut f, &mut method, &mut sampler, vec![0.0, 0.0], &stop)?;

    println!("{} after {} steps, {:.0} % accepted", report.reason, report.steps, 100.0 * report.acceptance_rate());
    println!("y = {:.6} + {:.6} t", report.point()[0], report.point()[1]);
    assert!(report.reason.converged());
    assert!(report.point().iter().zip(truth).all(|(x, truth)| (x - truth).abs() < 1e-6));
    Ok(())
}
