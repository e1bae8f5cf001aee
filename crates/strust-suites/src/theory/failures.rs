//! Runs without the assumptions: label noise, noisy data of a constrained problem, a constraint without LICQ.

use super::{
    penalty::{Climbed, Rung, Twice, anchored, climb},
    prelude::*,
};
use strust::objective::{Penalized, full_value};
use strust_problems::SubspaceFit;

strust::config! {
    /// Settings of the experiment on broken assumptions.
    pub struct FailuresConfig for "failures" {
        /// Standard deviation of the label noise of least squares.
        pub label_noise: f64 = 0.5, Number(Range::above(0.0));
        /// Standard deviation σ of the noise on the data of subspace fitting.
        pub sigma: f64 = 0.1, Number(Range::above(0.0));
        /// Passes over the data.
        pub epochs: u64 = 40, Whole(Range::closed(1.0, 1e6));
        /// Largest radii Δ̄ for STR with label noise.
        pub max_radius: Vec<f64> = vec![80.0, 0.01, 0.003], Text("a list of numbers");
        /// Passes over the data for each Δ̄: small steps need more.
        pub radius_epochs: u64 = 1000, Whole(Range::closed(1.0, 1e6));
        /// The values of ε for the constraint without LICQ.
        pub epsilon: Vec<f64> = vec![1e-1, 3e-2, 1e-2, 3e-3, 1e-3], Text("a list of numbers");
        /// Maximum steps of a run with this constraint.
        pub steps: u64 = 200_000, Whole(Range::closed(1.0, 1e9));
    }
    where |c| {
        check_list("failures", "max_radius", &c.max_radius, 0.0, 1e9)?;
        check_list("failures", "epsilon", &c.epsilon, 0.0, 1.0)
    }
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
#[derive(Default)]
struct NoisePair {
    curves: [Vec<Vec<f64>>; 2],
    verdicts: [Vec<(Interpolation, String)>; 2],
}

fn compare(
    seeds: u64,
    tick: &mut Tick,
    run: impl Fn(bool, u64) -> Result<(Vec<f64>, Interpolation, String), Error>,
) -> Result<NoisePair, Error> {
    let mut pair = NoisePair::default();
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

impl NoisePair {
    fn medians(&self, noisy: bool) -> Vec<(f64, f64)> {
        let curves = &self.curves[usize::from(noisy)];
        let at = |i: usize| upper_median(&curves.iter().map(|curve| curve[i]).collect::<Vec<_>>());
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

pub(super) fn run(c: &FailuresConfig, seeds: u64, tick: &mut Tick) -> Result<Section, Error> {
    tick.expect(seeds * (4 + c.max_radius.len() as u64 + 2 * c.epsilon.len() as u64));
    let mut out = Section::default();
    let over = plural(seeds as usize, "seed");
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
        // STR-P minimizes φ with μ = 1.
        let found = probe(&mut Penalized::new(&mut f, stiefel, 1.0), &x, 400);
        Ok((curve, found.verdict, found.why))
    })?;
    for (what, pair) in [("label noise", &labels), ("noise in the data", &data)] {
        out.checks.push(Check::at_least(
            format!("{what}: the failure is detected if and only if there is noise"),
            pair.right(),
            1.0,
            format!("share of correct verdicts over {over} with and without noise; e.g. {}", pair.verdicts[1][0].1),
        ));
        out.checks.push(Check::at_least(
            format!("{what}: the final gap divided by the final gap without noise"),
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
        Series::line("least squares, exact (STR)", 0, labels.medians(false)),
        Series::line("least squares, label noise (STR)", 1, labels.medians(true)),
        Series::line("subspace, σ = 0 (STR-P)", 2, data.medians(false)),
        Series::line(format!("subspace, σ = {} (STR-P)", c.sigma), 3, data.medians(true)),
    ];
    out.figures.push(Shown::new(
        "theory-failures-noise",
        "Median gap f − f* by epoch. Same-batch acceptance does not detect noise between batches: the gap stalls.",
        Figure::new("Without interpolation", ("epoch", false), ("f − f*", true), series),
    ));
    smaller_radii(c, seeds, labels.last(false), tick, &mut out)?;
    without_licq(c, seeds, tick, &mut out)?;
    Ok(out)
}

/// Does a smaller Δ̄ help against label noise? It shortens the steps, like a smaller learning rate.
fn smaller_radii(c: &FailuresConfig, seeds: u64, exact: f64, tick: &mut Tick, out: &mut Section) -> Result<(), Error> {
    let mut left = Vec::new();
    for &max_radius in &c.max_radius {
        let initial_radius = RegionConfig::default().initial_radius.min(max_radius);
        let region = RegionConfig { initial_radius, max_radius, ..Default::default() };
        let last = each(seeds, tick, |seed| {
            let mut f = LeastSquares::<f64>::noisy(200, 20, c.label_noise, seed)?;
            let (curve, _) = gaps(&mut f, Str::new(StrConfig { region: region.clone() })?, 10, c.radius_epochs, seed)?;
            // The value of a single epoch is too random.
            Ok(upper_median(&curve[curve.len() - curve.len().div_ceil(10)..]))
        })?;
        left.push((max_radius, upper_median(&last)));
    }
    let lowest = least(left.iter().map(|(_, gap)| *gap));
    out.checks.push(Check::at_least(
        "label noise: the smallest final gap with any Δ̄ divided by the final gap without noise",
        lowest / exact.max(1e-30),
        1e6,
        format!("{lowest:.1e} after {} epochs: a smaller Δ̄ may lower the gap, but does not remove it", c.radius_epochs),
    ));
    out.tables.push(Table::new(
        format!(
            "Least squares with label noise: the final gap f − f* for each Δ̄: the median over the last tenth of {} epochs and over seeds.",
            c.radius_epochs
        ),
        "Δ̄ | f − f*",
        left.iter().map(|(radius, gap)| vec![radius.to_string(), brief(*gap)]).collect(),
    ));
    Ok(())
}

/// h(x) = ‖x‖² − 1 and its square: the same sphere, with and without LICQ.
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

/// A run on the sphere with one of its equations.
fn on_sphere(c: &FailuresConfig, squared: bool, epsilon: f64, seed: u64) -> Result<Rung, Error> {
    let mut next = normals(seed);
    let mut at = normal(6, &mut next);
    Sphere::new(1.0)?.restore(&mut at)?;
    let rows = (0..20).map(|_| normal(6, &mut next)).collect();
    // This slope makes `at` the solution. Both cases use the regular form of the constraint.
    let mut f = anchored(rows, &at, &mut Degenerate { squared: false }, &vec![0.5]);
    let mut start = at.clone();
    start.add(0.3, &normal(6, &mut next));
    // Use all terms at every step: only the constraint matters here.
    let batches = (&mut Epochs::new(20, 20, seed)? as &mut dyn Sampler, 20, Draws::Different);
    let constraints: Twice<_, _> = [&mut Degenerate { squared }, &mut Degenerate { squared }];
    climb(&mut f, constraints, (start, &at), epsilon, c.steps, batches)
}

fn without_licq(c: &FailuresConfig, seeds: u64, tick: &mut Tick, out: &mut Section) -> Result<(), Error> {
    let (mut powers, mut sigma_powers, mut reached) = (Vec::new(), Vec::new(), 0);
    let over = plural(seeds as usize, "seed");
    let (mut series, mut rows) = (Vec::new(), Vec::new());
    let equations = [("‖x‖² − 1", "‖x‖² − 1 = 0, LICQ"), ("(‖x‖² − 1)²", "(‖x‖² − 1)² = 0, no LICQ")];
    for (color, (name, title)) in equations.into_iter().enumerate() {
        let squared = color == 1;
        let run = |epsilon, seed| on_sphere(c, squared, epsilon, seed);
        let climbed = Climbed::new(name, &c.epsilon, seeds, tick, run)?;
        let (norms, sigmas) = (climbed.medians(|rung| rung.constraint_norm), climbed.medians(|rung| rung.sigma));
        let short = |value: f64| if value.is_nan() { NOTHING.into() } else { brief(value) };
        for ((epsilon, rungs), (&(_, norm), (_, sigma))) in climbed.rungs.iter().zip(norms.iter().zip(sigmas)) {
            let found = rungs.iter().filter(|rung| !rung.constraint_norm.is_nan()).count();
            reached += found;
            rows.push(vec![
                format!("{name}, ε = {epsilon:e}"),
                format!("{found} of {seeds}"),
                short(norm),
                short(if squared { norm.sqrt() } else { norm }),
                short(sigma),
                short(norm / epsilon),
            ]);
        }
        powers.push(climbed.power(|rung| rung.constraint_norm));
        sigma_powers.push(climbed.power(|rung| rung.sigma));
        series.push(Series::line(title, color, norms));
    }
    let of = format!("{reached} of {} runs reached ‖∇φ‖ ≤ ε", 2 * seeds * c.epsilon.len() as u64);
    out.checks.push(Check::near(
        "no LICQ: the power of ε in ‖c‖ is that predicted, 2/3",
        powers[1],
        2.0 / 3.0,
        0.1,
        format!(
            "within 0.1, fitted to medians of {over}; {of}. There is no constant C with ‖c‖ ≤ Cε, and ‖x‖² − 1 falls like ε to the power {:.2} only",
            powers[1] / 2.0
        ),
    ));
    out.checks.push(Check::near(
        "with LICQ, on the same sphere: the power of ε in ‖c‖ is 1",
        powers[0],
        1.0,
        0.1,
        format!("within 0.1, fitted to medians of {over}; {of}"),
    ));
    out.checks.push(Check::near(
        "no LICQ: σ_min(J) tends to 0 like ε^(1/3)",
        sigma_powers[1],
        1.0 / 3.0,
        0.1,
        format!("the power of ε in its median, within 0.1; on the sphere with LICQ it is {:.2}", sigma_powers[0]),
    ));
    out.figures.push(Shown::new(
        "theory-failures-licq",
        "‖c‖ where ‖∇φ‖ ≤ ε is first reached, with μ = 1/ε, for two equations of one sphere. Where J vanishes on the feasible set the multiplier \
                  μc grows without bound; ‖c‖ falls like ε^(2/3), and the distance from the sphere, of order √‖c‖, like ε^(1/3).",
        Figure::new("A constraint without LICQ", ("ε", true), ("‖c‖", true), series),
    ));
    out.tables.push(Table::new(
        "Medians over seeds at the first iterate with ‖∇φ‖ ≤ ε; a dash means that a run did not reach it.",
        "constraint | reached | ‖c‖ | |‖x‖² − 1| | σ_min(J) | ‖c‖/ε",
        rows,
    ));
    Ok(())
}
