//! Write your own loop, save the state half-way, and resume from it, bit for bit.
//!
//! Run with `cargo run --example own_loop`.

use strust::{methods::StrState, prelude::*, samplers::Sampler};

const STEPS: u64 = 200;

fn objective() -> impl Objective<Point = Vec<f64>> {
    // fᵢ(x) = (xᵢ − i)² + x₀²/10, eight terms.
    from_terms(8, |i, x: &Vec<f64>, g: &mut Vec<f64>| {
        let r = x[i] - i as f64;
        g[i] += 2.0 * r;
        g[0] += 0.2 * x[0];
        r * r + 0.1 * x[0] * x[0]
    })
}

/// Makes steps until `end`. The k-th sample depends only on the seed and k.
fn advance(state: &mut StrState<Vec<f64>>, end: u64) -> Result<(), Error> {
    let (mut f, mut method) = (objective(), Str::default());
    let (mut sampler, mut sample) = (Epochs::over(&f).batch(2).seed(42), Sample::default());
    sampler.check(f.terms())?;
    method.prepare(&mut f, state.point())?;
    while state.steps() < end {
        sampler.draw(state.steps(), &mut sample);
        let record = method.step(&mut f, state, &sample)?;
        if record.k % 50 == 0 {
            println!("step {:>3}: f = {:.3e}, radius {:.3}", record.k, record.value, state.radius());
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let start = Str::default().init(&mut objective(), vec![10.0; 8])?;

    let mut whole = start.clone();
    advance(&mut whole, STEPS)?;

    let mut first = start;
    advance(&mut first, STEPS / 2)?;
    let saved = serde_json::to_string(&first)?;
    println!("saved {} bytes at step {}", saved.len(), first.steps());
    let mut second: StrState<Vec<f64>> = serde_json::from_str(&saved)?;
    advance(&mut second, STEPS)?;

    assert_eq!(second, whole);
    assert!(whole.point().iter().enumerate().all(|(i, x)| (x - i as f64).abs() < 1e-3));
    Ok(())
}
