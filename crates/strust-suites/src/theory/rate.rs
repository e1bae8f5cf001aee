//! Theorem 1: the smallest squared gradient after a number of steps.

use super::{prelude::*, problems::largest_eigenvalue};
use strust::diagnostics::StrongGrowth;
use strust_lab::statistics::{ladder, mean_interval};
use strust_problems::{Activation, Mlp, digits};

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

/// The number of terms, and of terms per mini-batch, of the problems with a bound.
const TERMS: usize = 60;
const BATCH: usize = 30;

/// ‖∇f‖² below this is rounding error.
const FLOOR: f64 = 1e-26;

/// Mini-batches are drawn independently, because the theorem needs E_k[g_k] = ∇f(x_k) at every step. In a pass over a
/// permutation, the earlier batches determine the last one.
const DRAWS: Draws = Draws::Independent;

/// The results of a run.
struct RateRun {
    /// The number of iterates, and ‖∇f‖² at the last of them.
    curve: Vec<(u64, f64)>,
    /// The largest exact ρ of all iterates; 1 if it was not computed.
    rho: f64,
    /// f(x₀) − f*, where f* = 0.
    gap: f64,
    /// The least a of an accepted step.
    least_step: f64,
    steps: u64,
    rejected: u64,
    /// The largest #U/#S of the first K steps over all K.
    ratio: f64,
}

/// Follows a run of STR, with the exact ρ of its iterates if `growth` computes it.
fn follow<V: Vector>(
    mut f: &mut dyn Objective<Point = V>,
    start: V,
    batch: usize,
    steps: u64,
    seed: u64,
    growth: Option<&dyn Fn(&V) -> StrongGrowth>,
) -> Result<RateRun, Error> {
    let f = &mut f;
    let mut method = Str::new(StrConfig::default())?;
    let mut sampler = WithReplacement::new(f.terms(), batch, seed)?;
    let mut state = method.init(f, start)?;
    let mut gradient = state.point().zeros_like();
    let gap = full_value_and_gradient(f, state.point(), &mut gradient);
    let mut squared = gradient.norm_squared();
    let (mut curve, mut rho, mut least_step, mut ratio) = (Vec::new(), 1.0_f64, f64::INFINITY, 0.0_f64);
    let (mut sample, mut seen) = (Sample::default(), Iterations::default());
    for count in ladder(steps, 8) {
        // The theorem's minimum is over x₀ … x_{K−1}. A minimum over some of them is at least as large.
        while state.steps() + 1 < count && squared >= FLOOR {
            if let Some(growth) = growth {
                let at = growth(state.point());
                squared = at.gradient_squared;
                rho = if squared >= FLOOR { rho.max(at.rho(batch, DRAWS)) } else { rho };
            }
            sampler.draw(state.steps(), &mut sample);
            let record = method.step(f, &mut state, &sample)?;
            // Below this, a ratio is a quotient of rounding errors.
            if record.gradient_norm * record.gradient_norm < FLOOR {
                continue;
            }
            seen.add(&record);
            ratio = ratio.max(seen.ratio());
            if record.verdict == Verdict::Accepted {
                least_step = least_step.min(record.step_size);
            }
        }
        full_value_and_gradient(f, state.point(), &mut gradient);
        squared = gradient.norm_squared();
        curve.push((count, squared));
    }
    Ok(RateRun { curve, rho, gap, least_step, steps: seen.steps(), rejected: seen.unsuccessful, ratio })
}

/// The runs of a problem over the seeds, with its known constants.
struct Curves {
    name: &'static str,
    runs: Vec<RateRun>,
    /// L_max of mini-batches and L_f, if they are known exactly.
    smoothness: Option<(f64, f64)>,
    /// ρ over all x, if it is known; otherwise the largest ρ of all iterates of all runs.
    rho: Option<f64>,
    convex: &'static str,
}

impl Curves {
    /// The least mean over seeds of ‖∇f‖², min_k E‖∇f(x_k)‖², by number of iterates; a seed that has reached rounding error stays there.
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
    fn rejected(&self) -> u64 {
        self.runs.iter().map(|run| run.rejected).sum()
    }
    /// δ of the theorem, and the constants it depends on.
    fn delta(&self) -> Option<(f64, bounds::Smoothness)> {
        let (largest, mean) = self.smoothness?;
        let problem = bounds::Smoothness { largest, mean, rho: self.rho() };
        Some((bounds::delta(&RegionConfig::default(), &problem, 1.0)?, problem))
    }
    /// The slope of the logarithms after the tenth step, over the seeds.
    fn slope(&self) -> (f64, f64) {
        let late = |(k, g): &(f64, f64)| *k >= 10.0 && *g >= FLOOR;
        let one = |run: &RateRun| power(running_least(&run.curve).into_iter().filter(late));
        mean_interval(&self.runs.iter().map(one).collect::<Vec<_>>())
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

pub(super) fn run(c: &RateConfig, seeds: u64, tick: &mut Tick) -> Result<Section, Error> {
    tick.expect(3 * seeds + c.network_seeds);
    let mut problems = Vec::new();

    // ‖aᵢ‖² is about 1, so a = 1 is accepted and Theorem 1 applies with a_min = a_max = 1.
    let (n, d, batch) = (TERMS, 120, BATCH);
    let calm = LeastSquares::<f64>::interpolating(n, d, 0)?;
    let constants = calm.constants()?;
    let runs = each(seeds, tick, |seed| follow(&mut calm.clone(), calm.start(seed), batch, c.steps, seed, None))?;
    let largest = constants.lipschitz.iter().copied().fold(0.0, f64::max);
    let share = DRAWS.share(batch, n);
    problems.push(Curves {
        name: "least squares",
        runs,
        smoothness: Some((largest, constants.mean_lipschitz)),
        rho: Some(1.0 + (constants.rho - 1.0) * share),
        convex: "PL",
    });

    // The same with a loss that is not convex; every |ψ″| ≤ 1, so L is that of the squares.
    let bounded = Linear::random(n, d, [0.9, 0.9], Loss::Bounded, 0);
    let mean_lipschitz = largest_eigenvalue(&bounded.rows.iter().collect::<Vec<_>>());
    let largest = bounded.lipschitz().into_iter().fold(0.0, f64::max);
    let runs = each(seeds, tick, |seed| {
        let start = normal(d, &mut normals(seed + (1 << 40)));
        follow(&mut bounded.clone(), start, batch, c.steps, seed, Some(&|x| bounded.strong_growth(x)))
    })?;
    problems.push(Curves {
        name: "bounded loss",
        runs,
        smoothness: Some((largest, mean_lipschitz)),
        rho: None,
        convex: "not convex",
    });

    let runs = each(seeds, tick, |seed| {
        let mut f = Factorization::exact(40, 20, 2, 6, seed)?;
        let start = f.start(seed);
        follow(&mut f, start, 20, c.steps, seed, None)
    })?;
    problems.push(Curves { name: "factorization", runs, smoothness: None, rho: None, convex: "not convex" });

    let (train, _) = digits::load()?;
    let runs = each(c.network_seeds, tick, |seed| {
        let mut f = Mlp::<f64>::new(&train, None, &[16], Activation::Tanh)?;
        let start = f.start(seed);
        follow(&mut f, start, 128, c.network_steps, seed, None)
    })?;
    problems.push(Curves { name: "network, digits", runs, smoothness: None, rho: None, convex: "not convex" });
    Ok(report(&problems))
}

fn report(problems: &[Curves]) -> Section {
    let mut out = Section::default();
    let (mut series, mut rows): (Vec<Series>, Vec<Vec<String>>) = (Vec::new(), Vec::new());
    for (color, problem) in problems.iter().enumerate() {
        let curve = problem.mean_curve();
        let (slope, half) = problem.slope();
        let known = problem.delta();
        let gap = problem.runs.iter().map(|run| run.gap).sum::<f64>() / problem.runs.len() as f64;
        let least_step = least(problem.runs.iter().map(|run| run.least_step));
        if let Some((delta, smoothness)) = &known {
            let unsuccessful = largest(problem.runs.iter().map(|run| run.ratio));
            // An infinite bound is not a check.
            let bound = |k: f64| match bounds::theorem_one(*delta, unsuccessful, gap, k as u64) {
                bound if bound.is_finite() => bound,
                _ => f64::NAN,
            };
            out.checks.extend(conditions(problem, smoothness, least_step));
            out.checks.push(Check::at_most(
                format!(
                    "Theorem 1 on {}: the smallest E‖∇f‖² divided by the bound, largest value over K",
                    problem.name
                ),
                largest(curve.iter().map(|&(k, g)| g / bound(k))),
                1.0,
                format!(
                    "mean of {}; δ = {delta:.3}, L_max = {:.3}, L_f = {:.3}, ρ = {:.2}{}, #U/#S = {unsuccessful}",
                    plural(problem.runs.len(), "seed"),
                    smoothness.largest,
                    smoothness.mean,
                    smoothness.rho,
                    if problem.rho.is_some() { " over all x" } else { " at its largest over all iterates" }
                ),
            ));
            let ends = [curve.first(), curve.last()].into_iter().flatten();
            series.push(Series::line(format!("bound, {}", problem.name), color + 8, ends.map(|&(k, _)| (k, bound(k)))));
        }
        out.checks.push(slope_check(problem.name, slope, half, problem.runs.len()));
        rows.push(vec![
            problem.name.into(),
            problem.convex.into(),
            format!("{slope:.2} ± {half:.2}"),
            known.map_or(NOTHING.into(), |(delta, _)| format!("{delta:.3}")),
            known.map_or(NOTHING.into(), |(_, s)| format!("{:.3} / {:.3} / {:.2}", s.largest, s.mean, s.rho)),
            brief(least_step),
            format!("{} of {}", problem.rejected(), problem.runs.iter().map(|run| run.steps).sum::<u64>()),
        ]);
        series.push(Series::line(format!("{} ({})", problem.name, problem.convex), color, curve));
    }
    out.figures.push(Shown::new(
        "theory-rate",
        "The least of the first K iterates in E‖∇f‖², the mean over seeds, and the bound of Theorem 1 in the same color where its constants are known \
                  exactly. The bound falls like 1/K; where all terms can be satisfied, STR falls faster than any power in the end.",
        Figure::new(
            "Theorem 1: the least squared gradient after K steps of STR",
            ("steps K", true),
            ("min ‖∇f‖²", true),
            series,
        ),
    ));
    out.tables.push(Table::new(
        "Slopes, and the constants of Theorem 1: L_max / L_f / ρ of the mini-batches.",
        "problem | kind | slope | δ | L_max / L_f / ρ | least accepted a | rejected",
        rows,
    ));
    // The theorem for the paper's sampling, one term at a time, on the same least-squares problem.
    let single = problems.first().and_then(|problem| {
        let (largest, mean) = problem.smoothness?;
        let rho = 1.0 + (problem.rho() - 1.0) / DRAWS.share(BATCH, TERMS);
        Some(bounds::Smoothness { largest, mean, rho })
    });
    if let Some(single) = single {
        let applies = |void: bool| if void { "does not apply" } else { "applies" };
        let with =
            |problem: &bounds::Smoothness| applies(bounds::delta(&RegionConfig::default(), problem, 1.0).is_none());
        out.findings.push(format!(
            "Theorem 1 needs 1/δ = (a_max + a_min) − ρ(a_max − a_min + L_f·a_max²) > 0, and the only a_max of Algorithm 1 is 1. With mini-batches of {BATCH} \
             the theorem {} to the least-squares problem here. With single terms, as in the paper's listing, ρ = {:.0}, and the theorem {}.",
            applies(problems[0].delta().is_none()),
            single.rho,
            with(&single)
        ));
    }
    let rejected: u64 = problems.iter().filter(|problem| problem.delta().is_some()).map(Curves::rejected).sum();
    out.findings.push(format!(
        "The theorem bounds ‖∇f‖² by ε after O(1/ε) steps; the abstract's ε⁻² is for ‖∇f‖ ≤ ε. The factor log(1/ε) is not needed (see the section on \
         rejections). Mini-batches are drawn independently, because the theorem needs E_k[g_k] = ∇f(x_k); a pass over a permutation violates this. The proof bounds a, which depends \
         on g, by constants inside expectations, and sums over successful steps as if success did not depend on g. This does no harm if a is 1 at every step and no \
         step is rejected; {rejected} steps were rejected on the problems with a bound."
    ));
    out
}

/// The theorem's assumptions on a run: every accepted a ≥ a_min, and success does not depend on g.
fn conditions(problem: &Curves, smoothness: &bounds::Smoothness, least_step: f64) -> [Check; 2] {
    let a_min = bounds::accepted_below(&RegionConfig::default(), smoothness.largest).min(1.0);
    let steps: u64 = problem.runs.iter().map(|run| run.steps).sum();
    [
        Check::at_least(
            format!("condition of Theorem 1 on {}: the smallest accepted a divided by a_min", problem.name),
            least_step / a_min,
            1.0,
            format!("{steps} steps of {}; a_min = {a_min:.3} with a_max = 1", plural(problem.runs.len(), "seed")),
        ),
        Check::at_most(
            format!("condition of Theorem 1 on {}: rejected steps", problem.name),
            problem.rejected() as f64,
            0.0,
            format!("of {steps}; the proof assumes that success does not depend on g"),
        ),
    ]
}

/// Checks that a slope is at most −1. The check is open if the interval of the slope does not decide it.
fn slope_check(name: &str, slope: f64, half: f64, seeds: usize) -> Check {
    let name = format!("{name}: slope of log min‖∇f‖² over log K, upper end of its 95 % interval");
    let measured = format!("{slope:.2} ± {half:.2} over {seeds} seeds, from K = 10 on");
    if slope.is_nan() {
        return Check::open(name, -1.0, "fewer than two points from K = 10 on: use more steps");
    }
    if !half.is_finite() {
        return Check::open(name, -1.0, format!("{slope:.2} for one seed, which gives no interval: use more seeds"));
    }
    if slope + half > -1.0 && slope - half <= -1.0 {
        let why = format!("{measured}: too few seeds to distinguish it from −1: use more seeds");
        return Check::open(name, -1.0, why);
    }
    Check::at_most(name, slope + half, -1.0, format!("{measured}; the theorem's bound falls with slope −1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slope_is_open_unless_its_interval_decides() {
        let verdict = |slope, half, seeds| slope_check("a", slope, half, seeds).verdict();
        assert_eq!(verdict(-2.0, 0.5, 20), "holds");
        assert_eq!(verdict(-0.5, 0.4, 20), "fails");
        assert_eq!(verdict(-2.0, 5.0, 2), "open");
        assert_eq!(verdict(-2.0, f64::INFINITY, 1), "open");
        assert_eq!(verdict(f64::NAN, f64::NAN, 2), "open");
        assert!(slope_check("a", -2.0, 5.0, 2).why.contains("too few seeds"));
        assert!(slope_check("a", -2.0, f64::INFINITY, 1).why.contains("one seed"));
    }

    #[test]
    fn the_conditions_of_the_theorem_are_measured_on_the_run() {
        // Terms with Lᵢ near 16: a = 1 is rejected, and accepted steps are shorter.
        let steep = Linear::random(20, 5, [4.0, 4.0], Loss::Square, 0);
        let largest = steep.lipschitz().into_iter().fold(0.0, f64::max);
        let ran = follow(&mut steep.clone(), vec![0.0; 5], 1, 100, 0, Some(&|x| steep.strong_growth(x))).unwrap();
        assert!(ran.rejected > 0 && ran.ratio > 0.0 && ran.least_step < 1.0 && ran.rho > 1.0);
        let smoothness = bounds::Smoothness { largest, mean: 4.0, rho: ran.rho };
        let least_step = ran.least_step;
        let problem = Curves { name: "a", runs: vec![ran], smoothness: None, rho: None, convex: "" };
        let [step, rejected] = conditions(&problem, &smoothness, least_step);
        assert!(!step.holds && !rejected.holds, "{step:?} {rejected:?}");
        // With Lᵢ near 1 both conditions hold.
        let mut calm = Linear::random(60, 120, [0.9, 0.9], Loss::Square, 0);
        let ran = follow(&mut calm, vec![0.0; 120], 30, 100, 0, None).unwrap();
        assert!(ran.rejected == 0 && ran.ratio == 0.0 && ran.least_step >= 1.0 && ran.steps == 99);
    }
}
