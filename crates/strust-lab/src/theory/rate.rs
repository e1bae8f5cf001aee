//! Theorem 1: the least squared gradient against the number of steps.

use super::{
    Findings, Tick,
    problems::{Linear, Loss, figure, line, normal, normals},
    statistics::{ladder, mean, power},
};
use crate::{
    Error,
    figure::Series,
    section::{Check, Shown, Table},
};
use strust::{
    diagnostics::{Draws, bounds, strong_growth},
    objective::full_value_and_gradient,
    prelude::*,
};
use strust_problems::{Activation, Factorisation, LeastSquares, Mlp, Problem, digits};

strust::config! {
    /// Settings of the experiment on Theorem 1.
    pub struct RateConfig for "rate" {
        /// Steps of a run.
        pub steps: u64 = 10_000, Whole(Range::closed(10.0, 1e9));
        /// Steps of a run of the network.
        pub network_steps: u64 = 3000, Whole(Range::closed(10.0, 1e9));
        /// Seeds of the network.
        pub network_seeds: u64 = 3, Whole(Range::closed(1.0, 1e3));
    }
}

/// ‖∇f‖² below this is rounding.
const FLOOR: f64 = 1e-26;

/// A run: ‖∇f‖² at the last of so many iterates, the largest exact ρ seen, f(x₀) − f*, and the least accepted step.
struct Ran {
    curve: Vec<(u64, f64)>,
    rho: f64,
    gap: f64,
    least_step: f64,
}

fn follow<F: Objective>(
    f: &mut F,
    start: F::Point,
    batch: usize,
    steps: u64,
    seed: u64,
    exact_rho: bool,
) -> Result<Ran, Error> {
    let draws = Draws::Different;
    let mut method = Str::new(StrConfig::default())?;
    let mut sampler = Epochs::new(f.terms(), batch, seed)?;
    let mut state = method.init(f, start)?;
    let mut gradient = state.point().zeros_like();
    let gap = full_value_and_gradient(f, state.point(), &mut gradient);
    let mut squared = gradient.norm_squared();
    let (mut curve, mut rho, mut least_step) = (Vec::new(), 1.0_f64, f64::INFINITY);
    let mut sample = Sample::default();
    for count in ladder(steps, 8) {
        // The theorem's minimum is over x₀ … x_{K−1}. A minimum over some of them is not below that over all.
        while state.steps() + 1 < count && squared >= FLOOR {
            sampler.draw(state.steps(), &mut sample);
            let record = method.step(f, &mut state, &sample)?;
            if record.verdict == Verdict::Accepted && record.step_size > 0.0 {
                least_step = least_step.min(record.step_size);
            }
        }
        full_value_and_gradient(f, state.point(), &mut gradient);
        squared = gradient.norm_squared();
        if exact_rho && squared >= FLOOR {
            rho = rho.max(strong_growth(f, state.point()).rho(batch, draws));
        }
        curve.push((count, squared));
    }
    Ok(Ran { curve, rho, gap, least_step })
}

/// The runs of a problem over the seeds, with what is known of it.
struct Curves {
    name: &'static str,
    runs: Vec<Ran>,
    /// L_max of mini-batches and L_f, where they are known exactly.
    smoothness: Option<(f64, f64)>,
    /// ρ over all x, where it is known; else the largest along the runs.
    rho: Option<f64>,
    convex: &'static str,
}

impl Curves {
    /// The least mean over seeds of ‖∇f‖², min_k E‖∇f(x_k)‖², of so many iterates; a seed that has come down to rounding stays there.
    fn mean_curve(&self) -> Vec<(f64, f64)> {
        let points = self.runs.first().map_or(0, |run| run.curve.len());
        let at = |i: usize| {
            let sum: f64 = self.runs.iter().map(|run| run.curve[i].1).sum();
            (self.runs[0].curve[i].0, sum / self.runs.len() as f64)
        };
        let means: Vec<(u64, f64)> = (0..points).map(at).collect();
        running_least(&means).into_iter().take_while(|(_, g)| *g >= FLOOR).collect()
    }
    fn rho(&self) -> f64 {
        self.rho.unwrap_or_else(|| self.runs.iter().map(|run| run.rho).fold(1.0, f64::max))
    }
    /// δ of the theorem, and the constants it rests on.
    fn delta(&self) -> Option<(f64, bounds::Smoothness)> {
        let (largest, mean) = self.smoothness?;
        let problem = bounds::Smoothness { largest, mean, rho: self.rho() };
        Some((bounds::delta(&StrConfig::default(), &problem, 1.0)?, problem))
    }
    /// The slope of the logarithms after the tenth step, over the seeds.
    fn slope(&self) -> (f64, f64) {
        let late = |(k, g): &(f64, f64)| *k >= 10.0 && *g >= FLOOR;
        let one = |run: &Ran| power(running_least(&run.curve).into_iter().filter(late));
        mean(&self.runs.iter().map(one).collect::<Vec<_>>())
    }
}

/// The least value so far.
fn running_least(curve: &[(u64, f64)]) -> Vec<(f64, f64)> {
    let least = |least: &mut f64, &(k, g): &(u64, f64)| {
        *least = least.min(g);
        Some((k as f64, *least))
    };
    curve.iter().scan(f64::INFINITY, least).collect()
}

pub(super) fn run(c: &RateConfig, seeds: u64, tick: &mut Tick) -> Result<Findings, Error> {
    tick.expect(3 * seeds + c.network_seeds);
    let mut problems = Vec::new();

    // ‖aᵢ‖² is about 1, so a = 1 is accepted and Theorem 1 applies with a_min = a_max = 1.
    let (n, d, batch) = (60, 120, 30);
    let calm = LeastSquares::<f64>::interpolating(n, d, 0)?;
    let constants = calm.constants()?;
    let mut runs = Vec::new();
    for seed in 0..seeds {
        runs.push(follow(&mut calm.clone(), calm.start(seed), batch, c.steps, seed, false)?);
        tick.done()?;
    }
    let largest = constants.lipschitz.iter().copied().fold(0.0, f64::max);
    let share = Draws::Different.share(batch, n);
    problems.push(Curves {
        name: "least squares",
        runs,
        smoothness: Some((largest, constants.mean_lipschitz)),
        rho: Some(1.0 + (constants.rho - 1.0) * share),
        convex: "PL",
    });

    // The same with a loss that is not convex; every |ψ″| ≤ 1, so L is that of the squares.
    let bounded = Linear::random(n, d, [0.9, 0.9], Loss::Bounded, 0);
    let mean_lipschitz = largest_eigenvalue(&bounded.rows);
    let largest = bounded.lipschitz().into_iter().fold(0.0, f64::max);
    let mut runs = Vec::new();
    for seed in 0..seeds {
        let mut next = normals(seed + (1 << 40));
        runs.push(follow(&mut bounded.clone(), normal(d, &mut next), batch, c.steps, seed, true)?);
        tick.done()?;
    }
    problems.push(Curves {
        name: "bounded loss",
        runs,
        smoothness: Some((largest, mean_lipschitz)),
        rho: None,
        convex: "not convex",
    });

    let mut runs = Vec::new();
    for seed in 0..seeds {
        let mut f = Factorisation::exact(40, 20, 2, 6, seed)?;
        let start = f.start(seed);
        runs.push(follow(&mut f, start, 20, c.steps, seed, false)?);
        tick.done()?;
    }
    problems.push(Curves { name: "factorisation", runs, smoothness: None, rho: None, convex: "not convex" });

    let (train, _) = digits::load()?;
    let mut runs = Vec::new();
    for seed in 0..c.network_seeds {
        let mut f = Mlp::<f64>::new(&train, None, &[16], Activation::Tanh)?;
        let start = f.start(seed);
        runs.push(follow(&mut f, start, 128, c.network_steps, seed, false)?);
        tick.done()?;
    }
    problems.push(Curves { name: "network, digits", runs, smoothness: None, rho: None, convex: "not convex" });
    Ok(report(&problems))
}

fn report(problems: &[Curves]) -> Findings {
    let mut out = Findings::default();
    let (mut series, mut rows): (Vec<Series>, Vec<Vec<String>>) = (Vec::new(), Vec::new());
    for (colour, problem) in problems.iter().enumerate() {
        let curve = problem.mean_curve();
        let (slope, half) = problem.slope();
        let (delta, smoothness) = problem.delta().unzip();
        let gap = problem.runs.iter().map(|run| run.gap).sum::<f64>() / problem.runs.len() as f64;
        // No step is rejected where a = 1 is below a_min: u = 0.
        let least_step = problem.runs.iter().map(|run| run.least_step).fold(f64::INFINITY, f64::min);
        if let Some(delta) = delta {
            let bound = |k: f64| bounds::theorem_one(delta, 0.0, gap, k as u64);
            let worst = curve.iter().map(|&(k, g)| g / bound(k)).fold(0.0, f64::max);
            out.checks.push(Check::at_most(
                format!("Theorem 1 on {}: the least E‖∇f‖² over the bound, at its largest over K", problem.name),
                worst,
                1.0,
                format!(
                    "mean of {} seeds; δ = {delta:.3}, L_max = {:.3}, L_f = {:.3}, ρ = {:.2}, least accepted a = {least_step:.2}",
                    problem.runs.len(),
                    smoothness.map_or(f64::NAN, |s| s.largest),
                    smoothness.map_or(f64::NAN, |s| s.mean),
                    problem.rho()
                ),
            ));
            let ends = [curve.first(), curve.last()].into_iter().flatten();
            series.push(line(&format!("bound, {}", problem.name), colour + 8, ends.map(|&(k, _)| (k, bound(k)))));
        }
        out.checks.push(Check::at_most(
            format!("{}: slope of log min‖∇f‖² over log K, upper end of its 95 % interval", problem.name),
            slope + if half.is_finite() { half } else { 0.0 },
            -1.0,
            format!(
                "{slope:.2} ± {half:.2} over {} seeds, from K = 10 on; the theorem's bound falls with slope −1",
                problem.runs.len()
            ),
        ));
        rows.push(vec![
            problem.name.into(),
            problem.convex.into(),
            format!("{slope:.2} ± {half:.2}"),
            delta.map_or("–".into(), |delta| format!("{delta:.3}")),
            smoothness.map_or("–".into(), |s| format!("{:.3} / {:.3} / {:.2}", s.largest, s.mean, s.rho)),
            format!("{least_step:.1e}"),
        ]);
        series.push(line(&format!("{} ({})", problem.name, problem.convex), colour, curve));
    }
    out.figures.push(Shown {
        stem: "theory-rate".into(),
        caption: "The least of the first K iterates in E‖∇f‖², the mean over seeds, and the bound of Theorem 1 in the same colour where its constants are known \
                  exactly. The bound falls like 1/K; where all terms can be met, STR falls faster than any power in the end."
            .into(),
        figure: figure(
            "Theorem 1: the least squared gradient after K steps of STR",
            ("steps K", true),
            ("min ‖∇f‖²", true),
            series,
        ),
    });
    out.tables.push(Table {
        caption: "Slopes, and the constants that Theorem 1 rests on: L_max / L_f / ρ of the mini-batches.".into(),
        header: ["problem", "kind", "slope", "δ", "L_max / L_f / ρ", "least accepted a"].map(String::from).to_vec(),
        rows,
    });
    // What the theorem says of the paper's own way to sample, one term at a time, on the same least squares.
    let single = problems.first().and_then(|problem| {
        let (largest, mean) = problem.smoothness?;
        let rho = 1.0 + (problem.rho() - 1.0) / Draws::Different.share(30, 60);
        Some(bounds::Smoothness { largest, mean, rho })
    });
    if let Some(single) = single {
        let void = bounds::delta(&StrConfig::default(), &single, 1.0).is_none();
        out.text.push(format!(
            "Theorem 1 needs 1/δ = (a_max + a_min) − ρ(a_max − a_min + L_f·a_max²) > 0, and Algorithm 1 knows no a_max but 1. With mini-batches of 30 \
             this holds here. With single terms, as the algorithm is written, ρ = {:.0} on the same least squares, and the theorem {}.",
            single.rho,
            if void { "says nothing" } else { "still holds" }
        ));
    }
    out.text.push(
        "The theorem bounds ‖∇f‖² by ε after O(1/ε) steps; the abstract's ε⁻² is for ‖∇f‖ ≤ ε. The factor log(1/ε) is not needed (see the section on \
         rejections), and no step is rejected in the two problems with a bound."
            .into(),
    );
    out
}

/// λ_max of (1/n) Σ aᵢaᵢᵀ, by the power method.
fn largest_eigenvalue(rows: &[Vec<f64>]) -> f64 {
    let Some(mut v) = rows.iter().max_by(|a, b| a.norm().total_cmp(&b.norm())).cloned() else { return 0.0 };
    let mut estimate = 0.0;
    for _ in 0..2000 {
        let norm = v.norm();
        let mut next = v.zeros_like();
        for row in rows {
            next.add(row.dot(&v) / (norm * rows.len() as f64), row);
        }
        estimate = next.norm();
        v = next;
    }
    estimate
}
