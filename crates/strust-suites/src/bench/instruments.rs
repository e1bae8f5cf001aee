//! `strust bench instruments`: the cost that each instrument of `strust::diagnostics` adds to a step.

use super::{BenchBlock, BenchResults, table};
use serde::Serialize;
use std::{
    hint::black_box,
    time::{Duration, Instant},
};
use strust::{
    diagnostics::{Consecutive, Curvature, Iterations, SplitBatch, kkt_report, lipschitz, probe, strong_growth},
    prelude::*,
    sample::Draws,
    samplers::Sampler,
};
use strust_problems::{LeastSquares, Problem, SubspaceFit};

/// The variants take turns. The shortest time of each counts, because other programs can only make it longer.
const ROUNDS: usize = 100;
const STEPS: u64 = 400;
const BATCH: usize = 32;

#[derive(Serialize)]
struct InstrumentCost {
    instrument: &'static str,
    /// Microseconds of a step, or of one call if the instrument is not part of a step.
    us: f64,
    /// Divided by the time of the bare step.
    ratio: f64,
}

/// The cost that each diagnostic instrument adds to a step.
pub fn instruments() -> Result<BenchResults, strust_lab::Error> {
    let costs = measure()?;
    let rows = table(["", "time", "relative to the bare step"], &costs, |cost| {
        [cost.instrument.into(), format!("{:.2} µs", cost.us), format!("{:.3}×", cost.ratio)]
    });
    let title = format!("A step of STR on least squares, n = 2000, d = 500, batch {BATCH}, f64, one thread");
    Ok(BenchResults::new(&costs, vec![BenchBlock::new(title, rows)]))
}

/// A variant of the loop: its name, and a function that measures the microseconds of a step.
type Variant = (&'static str, fn(&mut LeastSquares) -> Result<f64, strust::Error>);

const VARIANTS: [Variant; 5] = [
    ("bare step", |f| steps(f, |_| ())),
    ("with curvature", |f| {
        let mut curvature = Curvature::default();
        let time = steps(f, |record| _ = curvature.add(record));
        black_box(curvature);
        time
    }),
    ("with iteration counts", |f| {
        let mut iterations = Iterations::default();
        let time = steps(f, |record| iterations.add(record));
        black_box(iterations);
        time
    }),
    ("with consecutive batches", |f| steps(&mut Consecutive::new(f, Draws::Different), |_| ())),
    ("with split batches", |f| steps(&mut SplitBatch::new(f, Draws::Different), |_| ())),
];

fn measure() -> Result<Vec<InstrumentCost>, strust::Error> {
    let mut f = LeastSquares::<f64>::interpolating(2000, 500, 0)?;
    let mut least = [f64::INFINITY; VARIANTS.len()];
    for round in 0..ROUNDS {
        for turn in 0..VARIANTS.len() {
            // Each round starts with another variant, because the position in a round can affect the speed.
            let i = (round + turn) % VARIANTS.len();
            least[i] = least[i].min(VARIANTS[i].1(&mut f)?);
        }
    }
    let bare = least[0];
    let row = |instrument, us: f64| InstrumentCost { instrument, us, ratio: us / bare };
    let mut rows: Vec<InstrumentCost> = VARIANTS.iter().zip(&least).map(|((name, _), us)| row(name, *us)).collect();
    let x = f.start(0);
    rows.push(row("exact ρ, once", once(|| _ = black_box(strong_growth(&mut f, &x)))));
    let sample = Sample::range(0..BATCH);
    rows.push(row("L of a mini-batch, 20 iterations", once(|| _ = black_box(lipschitz(&mut f, &x, &sample, 20)))));
    rows.push(row("interpolation probe, once", once(|| _ = black_box(probe(&mut f, &x, 100)))));
    let mut fit = SubspaceFit::<f64>::spiked(100, 5, 500, 0.0, 0)?;
    let (w, mut stiefel) = (fit.start(0), fit.constraint());
    let kkt = once(|| _ = black_box(kkt_report(&mut fit, &mut stiefel, &w, 1.0)));
    rows.push(row("KKT report on subspace fitting, once", kkt));
    Ok(rows)
}

/// Microseconds of a step, averaged over a run from the start.
fn steps<F>(f: &mut F, mut observe: impl FnMut(&StepRecord)) -> Result<f64, strust::Error>
where
    F: Objective<Point = Vec<f64>>,
{
    let mut sampler = Epochs::new(f.terms(), BATCH, 0)?;
    let mut method = Str::new(StrConfig::default())?;
    let mut state = method.init(f, vec![0.0; 500])?;
    let mut sample = Sample::default();
    let mut time = Duration::ZERO;
    for k in 0..STEPS {
        sampler.draw(k, &mut sample);
        let began = Instant::now();
        let record = method.step(f, &mut state, &sample)?;
        observe(&record);
        time += began.elapsed();
        black_box(record);
    }
    Ok(1e6 * time.as_secs_f64() / STEPS as f64)
}

/// Microseconds of a call: the shortest of five.
fn once(mut call: impl FnMut()) -> f64 {
    let time = |()| {
        let began = Instant::now();
        call();
        1e6 * began.elapsed().as_secs_f64()
    };
    std::iter::repeat_n((), 5).map(time).fold(f64::INFINITY, f64::min)
}
