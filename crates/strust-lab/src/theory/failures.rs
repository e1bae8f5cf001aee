//! What fails without the assumptions: label noise, noise in the data of a constrained problem, a constraint without LICQ.

use super::{
    Findings, Tick,
    penalty::{PenaltyConfig, anchored, climb},
    problems::{figure, line, normal, normals},
    statistics::{median, power},
};
use crate::{
    Error,
    section::{Check, Shown, Table},
};
use strust::{
    diagnostics::{Interpolation, probe},
    objective::{Penalised, full_value},
    prelude::*,
};
use strust_problems::{LeastSquares, Problem, SubspaceFit};

strust::config! {
    /// Settings of the experiment on broken assumptions.
    pub struct FailuresConfig for "failures" {
        /// Standard deviation of the label noise of least squares.
        pub label_noise: f64 = 0.5, Number(Range::above(0.0));
        /// Standard deviation σ of the noise on the data of subspace fitting.
        pub sigma: f64 = 0.1, Number(Range::above(0.0));
        /// Passes over the data.
        pub epochs: u64 = 40, Whole(Range::closed(1.0, 1e6));
        /// The ladder of ε for the constraint without LICQ.
        pub epsilon: Vec<f64> = vec![1e-1, 3e-2, 1e-2, 3e-3, 1e-3], Text("a list of numbers");
        /// Steps after which a run on it gives up.
        pub steps: u64 = 200_000, Whole(Range::closed(1.0, 1e9));
    }
    where |c| super::check_list("failures", "epsilon", &c.epsilon, 0.0, 1.0)
}

/// The gap f − f* after every epoch.
fn gaps<F: Problem, M: Method<F>>(
    f: &mut F,
    mut method: M,
    batch: usize,
    epochs: u64,
    seed: u64,
) -> Result<(Vec<f64>, F::Point), Error> {
    let mut sampler = Epochs::new(f.terms(), batch, seed)?;
    let start = f.start(seed);
    let mut state = method.init(f, start)?;
    let optimum = f.optimum().unwrap_or(0.0);
    let (mut sample, mut curve) = (Sample::default(), vec![full_value(f, state.point()) - optimum]);
    for _ in 0..epochs {
        for _ in 0..sampler.steps_per_epoch() {
            sampler.draw(state.steps(), &mut sample);
            method.step(f, &mut state, &sample)?;
        }
        curve.push(full_value(f, state.point()) - optimum);
    }
    Ok((curve, state.into_point()))
}

/// Runs with and without noise: gaps by epoch, and the verdict of a probe at the end.
struct Pair {
    curves: [Vec<Vec<f64>>; 2],
    verdicts: [Vec<(Interpolation, String)>; 2],
}

fn compare(
    seeds: u64,
    tick: &mut Tick,
    run: impl Fn(bool, u64) -> Result<(Vec<f64>, Interpolation, String), Error>,
) -> Result<Pair, Error> {
    let mut pair =
        Pair { curves: <[Vec<Vec<f64>>; 2]>::default(), verdicts: <[Vec<(Interpolation, String)>; 2]>::default() };
    for seed in 0..seeds {
        for noisy in [false, true] {
            let (curve, verdict, why) = run(noisy, seed)?;
            pair.curves[usize::from(noisy)].push(curve);
            pair.verdicts[usize::from(noisy)].push((verdict, why));
            tick.done()?;
        }
    }
    Ok(pair)
}

impl Pair {
    fn medians(&self, noisy: bool) -> Vec<(f64, f64)> {
        let curves = &self.curves[usize::from(noisy)];
        let at = |i: usize| median(&curves.iter().map(|curve| curve[i]).collect::<Vec<_>>());
        (0..curves.first().map_or(0, Vec::len)).map(|i| (i as f64, at(i))).collect()
    }
    fn last(&self, noisy: bool) -> f64 {
        self.medians(noisy).last().map_or(f64::NAN, |(_, gap)| *gap)
    }
    fn right(&self) -> f64 {
        let count =
            |noisy: bool, verdict| self.verdicts[usize::from(noisy)].iter().filter(|(v, _)| *v == verdict).count();
        let all = self.verdicts[0].len() + self.verdicts[1].len();
        (count(false, Interpolation::Holds) + count(true, Interpolation::Violated)) as f64 / all as f64
    }
}

pub(super) fn run(c: &FailuresConfig, seeds: u64, tick: &mut Tick) -> Result<Findings, Error> {
    tick.expect(seeds * (4 + 2 * c.epsilon.len() as u64));
    let mut out = Findings::default();
    let labels = compare(seeds, tick, |noisy, seed| {
        let noise = if noisy { c.label_noise } else { 0.0 };
        let mut f = if noisy {
            LeastSquares::<f64>::noisy(200, 20, noise, seed)?
        } else {
            LeastSquares::interpolating(200, 20, seed)?
        };
        let (curve, x) = gaps(&mut f, Str::new(StrConfig::default())?, 10, c.epochs, seed)?;
        let found = probe(&mut f, &x, 400);
        Ok((curve, found.verdict, found.why))
    })?;
    let data = compare(seeds, tick, |noisy, seed| {
        let mut f = SubspaceFit::<f64>::spiked(40, 3, 200, if noisy { c.sigma } else { 0.0 }, seed)?;
        let stiefel = f.constraint();
        let (curve, x) = gaps(&mut f, StrP::new(StrPConfig::default(), stiefel.clone())?, 32, c.epochs, seed)?;
        // What STR-P descends on is φ with μ = 1.
        let found = probe(&mut Penalised::new(&mut f, stiefel, 1.0), &x, 400);
        Ok((curve, found.verdict, found.why))
    })?;
    for (what, pair) in [("label noise", &labels), ("noise in the data", &data)] {
        out.checks.push(Check::at_least(
            format!("{what}: the failure is detected, and only where it is"),
            pair.right(),
            1.0,
            format!(
                "share of right verdicts over {seeds} seeds with and without noise; e.g. {}",
                pair.verdicts[1][0].1
            ),
        ));
        out.checks.push(Check::at_least(
            format!("{what}: the gap that is left, over that without noise"),
            pair.last(true) / pair.last(false).max(1e-30),
            1e6,
            format!(
                "medians of f − f* after {} epochs: {:.1e} with noise, {:.1e} without",
                c.epochs,
                pair.last(true),
                pair.last(false)
            ),
        ));
    }
    let series = vec![
        line("least squares, exact (STR)", 0, labels.medians(false)),
        line("least squares, label noise (STR)", 1, labels.medians(true)),
        line("subspace, σ = 0 (STR-P)", 2, data.medians(false)),
        line(&format!("subspace, σ = {} (STR-P)", c.sigma), 3, data.medians(true)),
    ];
    out.figures.push(Shown {
        stem: "theory-failures-noise".into(),
        caption: "Median gap f − f* by epoch. Same-batch acceptance cannot see noise between batches: the gap stalls, and no constant of the trust region helps."
            .into(),
        figure: figure("Without interpolation", ("epoch", false), ("f − f*", true), series),
    });
    without_licq(c, seeds, tick, &mut out)?;
    Ok(out)
}

/// h(x) = ‖x‖² − 1 and its square: the same sphere, once with LICQ and once without.
#[derive(Clone)]
struct Degenerate {
    squared: bool,
}

impl Degenerate {
    /// c and the factor of x in its gradient.
    fn at(&self, x: &Vec<f64>) -> (f64, f64) {
        let h = x.norm_squared() - 1.0;
        if self.squared { (h * h, 4.0 * h) } else { (h, 2.0) }
    }
}

impl Constraint for Degenerate {
    type Point = Vec<f64>;
    type Residual = Vec<f64>;
    fn new_residual(&self) -> Vec<f64> {
        vec![0.0]
    }
    fn residual(&mut self, x: &Vec<f64>, c: &mut Vec<f64>) {
        c[0] = self.at(x).0;
    }
    fn jvp(&mut self, x: &Vec<f64>, v: &Vec<f64>, out: &mut Vec<f64>) {
        out[0] = self.at(x).1 * x.dot(v);
    }
    fn add_vjp(&mut self, x: &Vec<f64>, a: f64, y: &Vec<f64>, out: &mut Vec<f64>) {
        out.add(a * self.at(x).1 * y[0], x);
    }
}

fn without_licq(c: &FailuresConfig, seeds: u64, tick: &mut Tick, out: &mut Findings) -> Result<(), Error> {
    let settings = PenaltyConfig { steps: c.steps, n: 20, batch: 20, ..Default::default() };
    let mut powers = Vec::new();
    let mut series = Vec::new();
    let mut rows = Vec::new();
    let mut smallest = f64::INFINITY;
    for (colour, squared) in [false, true].into_iter().enumerate() {
        let mut curve = Vec::new();
        for &epsilon in &c.epsilon {
            let (mut norms, mut sigmas) = (Vec::new(), Vec::new());
            for seed in 0..seeds {
                let mut next = normals(seed);
                let mut at = normal(6, &mut next);
                Sphere::new(1.0)?.restore(&mut at)?;
                let rows = (0..20).map(|_| normal(6, &mut next)).collect();
                // The slope that makes `at` the solution, from the regular form of the constraint in both cases.
                let mut f = anchored(rows, &at, &mut Degenerate { squared: false }, &vec![0.5]);
                let mut start = at.clone();
                start.add(0.3, &normal(6, &mut next));
                let ran = climb(&mut f, Degenerate { squared }, start, epsilon, &settings, seed)?;
                tick.done()?;
                if let Some((_, report)) = ran.strong {
                    // The distance from the sphere itself, which is what feasibility means.
                    norms.push(report.constraint_norm);
                    sigmas.push(report.jacobian.smallest);
                }
            }
            smallest = if squared { smallest.min(median(&sigmas)) } else { smallest };
            curve.push((epsilon, median(&norms)));
            rows.push(vec![
                format!("{}, ε = {epsilon:e}", if squared { "(‖x‖² − 1)²" } else { "‖x‖² − 1" }),
                format!("{} of {seeds}", norms.len()),
                format!("{:.1e}", median(&norms)),
                format!("{:.1e}", median(&sigmas)),
                format!("{:.1e}", median(&norms) / epsilon),
            ]);
        }
        powers.push(power(curve.iter().copied()));
        series.push(line(if squared { "(‖x‖² − 1)² = 0, no LICQ" } else { "‖x‖² − 1 = 0, LICQ" }, colour, curve));
    }
    out.checks.push(Check {
        name: "no LICQ: ‖c‖ falls slower than Cε".into(),
        measured: powers[1],
        bound: 2.0 / 3.0,
        holds: (powers[1] - 2.0 / 3.0).abs() < 0.1 && (powers[0] - 1.0).abs() < 0.1,
        why: format!(
            "the power of ε in ‖c‖, within 0.1 of the predicted 2/3; with LICQ, on the same sphere, it is {:.2}. There is no constant C with ‖c‖ ≤ Cε",
            powers[0]
        ),
    });
    out.checks.push(Check::at_most(
        "no LICQ: σ_min(J) tends to 0 along the ladder",
        smallest,
        0.5,
        "the least median of σ_min(J) at the iterates; on the sphere it is about 2",
    ));
    out.figures.push(Shown {
        stem: "theory-failures-licq".into(),
        caption: "‖c‖ where ‖∇φ‖ ≤ ε is first reached, with μ = 1/ε, for two equations of one sphere. Where J vanishes on the feasible set the multiplier \
                  μc grows without bound and ‖c‖ falls like ε^(2/3)."
            .into(),
        figure: figure("A constraint without LICQ", ("ε", true), ("‖c‖", true), series),
    });
    out.tables.push(Table {
        caption: "Medians over seeds at the first iterate with ‖∇φ‖ ≤ ε.".into(),
        header: ["constraint", "reached", "‖c‖", "σ_min(J)", "‖c‖/ε"].map(String::from).to_vec(),
        rows,
    });
    Ok(())
}
