//! Theorem 2 and its corollary: several ε with μ = 1/ε, on problems where the penalty is not exact.

use super::prelude::*;
use strust::{
    diagnostics::{KktReport, kkt_report, lipschitz, strong_growth_of_lagrangian},
    objective::Penalized,
};

strust::config! {
    /// Settings of the experiment on Theorem 2.
    pub struct PenaltyConfig for "penalty" {
        /// The values of ε, each with μ = 1/ε.
        pub epsilon: Vec<f64> = vec![1e-1, 3e-2, 1e-2, 3e-3, 1e-3], Text("a list of numbers");
        /// Terms of f.
        pub n: u64 = 40, Whole(Range::closed(2.0, 1e5));
        /// Terms of a mini-batch.
        pub batch: u64 = 20, Whole(Range::closed(1.0, 1e5));
        /// Maximum steps of a run.
        pub steps: u64 = 200_000, Whole(Range::closed(1.0, 1e9));
    }
    where |c| check_list("penalty", "epsilon", &c.epsilon, 0.0, 1.0)
}

/// The numbers of a run with μ = 1/ε. If ‖∇φ‖ ≤ ε was never reached, those of the first such point are NaN.
pub(super) struct Rung {
    /// Oracle calls until ‖∇φ‖² ≤ ε; infinite if it was never reached.
    weak: f64,
    /// The same for ‖∇φ‖ ≤ ε. All that follows, except `longest`, is measured at the first such point.
    strong: f64,
    pub constraint_norm: f64,
    /// σ_min(J).
    pub sigma: f64,
    /// ε(ε + G)/σ_min of Lemma 4.12, where G is the largest ‖∇f‖ along the run.
    limit: f64,
    /// The corollary's Cε with C = (G + 1)/σ_min.
    wider_limit: f64,
    /// ‖∇f + Jᵀλ‖ with the least-squares multipliers.
    residual: f64,
    /// ‖x − x*‖.
    distance: f64,
    /// τ of the mini-batches, for λ = μc.
    tau: f64,
    /// The largest a of an accepted step.
    longest: f64,
    /// 2/(τL_φ) with L_φ = ‖∇²φ‖. Theorem 2 needs all steps below it. With τ and L_φ of one point it is at least the
    /// theorem's value.
    cap: f64,
}

impl Rung {
    /// Before the first step.
    const NEVER: Self = Self {
        weak: f64::INFINITY,
        strong: f64::INFINITY,
        constraint_norm: f64::NAN,
        sigma: f64::NAN,
        limit: f64::NAN,
        wider_limit: f64::NAN,
        residual: f64::NAN,
        distance: f64::NAN,
        tau: f64::NAN,
        longest: 0.0,
        cap: f64::NAN,
    };
}

/// A constraint for the method and the same one to measure: runs are compiled once for each type of point.
pub(super) type Twice<'a, V, R> = [&'a mut dyn Constraint<Point = V, Residual = R>; 2];

/// Runs STR-P with μ = 1/ε and measures after every step, until ‖∇φ‖ ≤ ε. The solution is known.
pub(super) fn climb<V: Vector, R: Vector>(
    f: &mut Linear<V>,
    [of_method, constraint]: Twice<'_, V, R>,
    (start, solution): (V, &V),
    epsilon: f64,
    steps: u64,
    (sampler, batch, draws): (&mut dyn Sampler, usize, Draws),
) -> Result<Rung, Error> {
    let penalty = 1.0 / epsilon;
    let mut method = StrP::new(StrPConfig { penalty, ..Default::default() }, of_method)?;
    let mut state = method.init(f, start)?;
    let (mut sample, mut gradient) = (Sample::default(), state.point().zeros_like());
    let mut residual = constraint.new_residual();
    let (mut rung, mut steepest) = (Rung::NEVER, 0.0_f64);
    for step in 0..steps {
        full_value_and_gradient(f, state.point(), &mut gradient);
        steepest = steepest.max(gradient.norm());
        constraint.residual(state.point(), &mut residual);
        constraint.add_vjp(state.point(), penalty, &residual, &mut gradient);
        let norm = gradient.norm();
        if norm * norm <= epsilon {
            rung.weak = rung.weak.min(step as f64);
        }
        if norm <= epsilon {
            let at = state.into_point();
            let mut multipliers = residual.zeros_like();
            multipliers.add(penalty, &residual);
            let tau = strong_growth_of_lagrangian(f, constraint, &at, &multipliers).rho(batch, draws);
            let KktReport { constraint_norm, least_residual, jacobian, .. } = kkt_report(f, constraint, &at, penalty)?;
            let all = Sample::range(0..f.terms());
            let curvature = lipschitz(&mut Penalized::new(f, constraint, penalty), &at, &all, 50);
            // Without LICQ there is no bound.
            let sigma = if jacobian.licq { jacobian.smallest } else { f64::NAN };
            let mut away = at;
            away.add(-1.0, solution);
            return Ok(Rung {
                strong: step as f64,
                constraint_norm,
                sigma: jacobian.smallest,
                limit: epsilon * (epsilon + steepest) / sigma,
                wider_limit: epsilon * (1.0 + steepest) / sigma,
                residual: least_residual,
                distance: away.norm(),
                tau,
                cap: 2.0 / (tau * curvature),
                ..rung
            });
        }
        sampler.draw(step, &mut sample);
        let record = method.step(f, &mut state, &sample)?;
        if record.verdict == Verdict::Accepted {
            rung.longest = rung.longest.max(record.step_size);
        }
    }
    Ok(rung)
}

/// f with a KKT point `at` and multipliers that are not 0: f = mean of ½⟨aᵢ, x − at⟩² + ⟨q, x⟩ with q = −Jᵀλ. All terms have the gradient
/// q at the solution, so that strong growth of the Lagrangian is possible there, and a finite μ moves the minimum of φ away from it.
pub(super) fn anchored<V, C>(rows: Vec<V>, at: &V, constraint: &mut C, multipliers: &C::Residual) -> Linear<V>
where
    V: Vector,
    C: Constraint<Point = V>,
{
    let mut slope = at.zeros_like();
    constraint.add_vjp(at, -1.0, multipliers, &mut slope);
    Linear { right: rows.iter().map(|row| row.dot(at)).collect(), rows, loss: Loss::Square, slope: Some(slope) }
}

const NAMES: [&str; 3] = ["sphere", "Stiefel", "quartic and product"];

fn rung(problem: usize, epsilon: f64, c: &PenaltyConfig, seed: u64) -> Result<Rung, Error> {
    let (n, d) = (c.n as usize, 8);
    let mut next = normals(seed);
    // Drawn independently, because E_k[g_k] = ∇φ(x_k) must hold.
    let mut sampler = WithReplacement::new(n, c.batch as usize, seed)?;
    let batches = (&mut sampler as &mut dyn Sampler, c.batch as usize, Draws::Independent);
    match problem {
        0 => {
            let mut sphere = Sphere::new(1.0)?;
            let mut at = normal(d, &mut next);
            sphere.restore(&mut at)?;
            let rows = (0..n).map(|_| normal(d, &mut next)).collect();
            let mut f = anchored(rows, &at, &mut sphere, &vec![0.5]);
            let start = near(&at, 0.5, &normal(d, &mut next));
            climb(&mut f, [&mut sphere.clone(), &mut sphere], (start, &at), epsilon, c.steps, batches)
        }
        1 => {
            let mut stiefel = Stiefel::new(d, 2)?;
            let at = orthonormal(d, 2, &mut next)?;
            let rows: Vec<Matrix> = (0..n).map(|_| Matrix::from_fn(d, 2, |_, _| next())).collect();
            let multipliers = Matrix::from_fn(2, 2, |i, j| if i == j { 0.5 } else { 0.1 });
            let mut f = anchored(rows, &at, &mut stiefel, &multipliers);
            let away = Matrix::from_fn(d, 2, |_, _| next());
            let start = near(&at, 0.5, &away);
            climb(&mut f, [&mut stiefel.clone(), &mut stiefel], (start, &at), epsilon, c.steps, batches)
        }
        _ => {
            // Σ xᵢ⁴ = Σ atᵢ⁴ and x₀x₁ = at₀at₁.
            let at: Vec<f64> = normal(d, &mut next).iter().map(|x| 0.7 * x.signum() + 0.1 * x).collect();
            let mut quartic = Quartic { power: at.iter().map(|x| x.powi(4)).sum(), product: at[0] * at[1] };
            let rows = (0..n).map(|_| normal(d, &mut next)).collect();
            let mut f = anchored(rows, &at, &mut quartic, &vec![0.3, 0.2]);
            let start = near(&at, 0.3, &normal(d, &mut next));
            climb(&mut f, [&mut quartic.clone(), &mut quartic], (start, &at), epsilon, c.steps, batches)
        }
    }
}

/// at + distance·away/‖away‖.
fn near<V: Vector>(at: &V, distance: f64, away: &V) -> V {
    let mut start = at.clone();
    start.add(distance / away.norm(), away);
    start
}

/// c(x) = (Σ xᵢ⁴ − power, x₀x₁ − product).
#[derive(Clone)]
struct Quartic {
    power: f64,
    product: f64,
}

impl Constraint for Quartic {
    type Point = Vec<f64>;
    type Residual = Vec<f64>;
    fn new_residual(&self) -> Vec<f64> {
        vec![0.0; 2]
    }
    fn residual(&mut self, x: &Vec<f64>, c: &mut Vec<f64>) {
        c[0] = x.iter().map(|v| v.powi(4)).sum::<f64>() - self.power;
        c[1] = x[0] * x[1] - self.product;
    }
    fn jvp(&mut self, x: &Vec<f64>, v: &Vec<f64>, out: &mut Vec<f64>) {
        out[0] = x.iter().zip(v).map(|(x, v)| 4.0 * x.powi(3) * v).sum();
        out[1] = x[1] * v[0] + x[0] * v[1];
    }
    fn add_vjp(&mut self, x: &Vec<f64>, a: f64, y: &Vec<f64>, out: &mut Vec<f64>) {
        out.iter_mut().zip(x).for_each(|(out, x)| *out += a * y[0] * 4.0 * x.powi(3));
        out[0] += a * y[1] * x[1];
        out[1] += a * y[1] * x[0];
    }
    fn rounding(&self, _: &Vec<f64>, norm: f64) -> f64 {
        f64::EPSILON * (norm + self.power + self.product.abs())
    }
}

/// All runs on one problem: each ε with the results of its seeds.
pub(super) struct Climbed {
    name: &'static str,
    pub rungs: Vec<(f64, Vec<Rung>)>,
}

impl Climbed {
    /// Runs every ε with every seed.
    pub fn new(
        name: &'static str,
        epsilons: &[f64],
        seeds: u64,
        tick: &mut Tick,
        rung: impl Fn(f64, u64) -> Result<Rung, Error>,
    ) -> Result<Self, Error> {
        let rungs = epsilons.iter().map(|&epsilon| Ok((epsilon, each(seeds, tick, |seed| rung(epsilon, seed))?)));
        Ok(Self { name, rungs: rungs.collect::<Result<_, Error>>()? })
    }
    /// Medians over the seeds, for each ε. If a run never reached the point, there is no median, because a median over the
    /// other runs would be biased. The calls of such a run are infinite, so their median is over all runs.
    pub fn medians(&self, of: fn(&Rung) -> f64) -> Vec<(f64, f64)> {
        let middle = |rungs: &Vec<Rung>| {
            let values: Vec<f64> = rungs.iter().map(of).collect();
            if values.iter().any(|value| value.is_nan()) { f64::NAN } else { upper_median(&values) }
        };
        self.rungs.iter().map(|(epsilon, rungs)| (*epsilon, middle(rungs))).collect()
    }
    /// The power of ε in these medians; NaN if one of them is missing.
    pub fn power(&self, of: fn(&Rung) -> f64) -> f64 {
        let medians = self.medians(of);
        if medians.iter().all(|(_, value)| value.is_finite()) { power(medians) } else { f64::NAN }
    }
    fn all(&self) -> impl Iterator<Item = &Rung> {
        self.rungs.iter().flat_map(|(_, rungs)| rungs)
    }
    /// The largest value of all runs; NaN if one of them is missing.
    fn worst(&self, of: fn(&Rung) -> f64) -> f64 {
        largest(self.all().map(of))
    }

    /// Claims about points with ‖∇φ‖ ≤ ε are open unless every run reached one.
    fn checks(&self) -> Vec<Check> {
        let (name, runs) = (self.name, self.all().count());
        let over = plural(self.rungs.first().map_or(0, |(_, rungs)| rungs.len()), "seed");
        let reached = |calls: fn(&Rung) -> f64| self.all().filter(|rung| calls(rung).is_finite()).count();
        let (weak, strong) = (reached(|rung| rung.weak), reached(|rung| rung.strong));
        vec![
            Check::at_least(
                format!("{name}: share of runs that reached ‖∇φ‖ ≤ ε"),
                strong as f64 / runs as f64,
                1.0,
                format!("{strong} of {runs} runs; {weak} reached ‖∇φ‖² ≤ ε"),
            ),
            Check::at_most(
                format!("condition of Theorem 2 on {name}: the largest accepted a divided by 2/(τL_φ)"),
                self.worst(|rung| rung.longest / rung.cap),
                1.0,
                "a_max < 2/(τL_φ) makes δ positive, but Algorithm 2 has no such cap; τ and L_φ = ‖∇²φ‖ are measured where ‖∇φ‖ ≤ ε, so this cap is at least the theorem's",
            ),
            Check::at_most(
                format!("conclusion of Theorem 2 on {name}: power of 1/ε in the oracle calls until ‖∇φ‖² ≤ ε"),
                -self.power(|rung| rung.weak),
                2.0,
                format!(
                    "{weak} of {runs} runs reached it, medians of {over}; the theorem allows ε⁻² log(1/ε) with μ = 1/ε, where its condition holds"
                ),
            ),
            Check::at_most(
                format!("conclusion of the abstract on {name}: power of 1/ε in the oracle calls until ‖∇φ‖ ≤ ε"),
                -self.power(|rung| rung.strong),
                4.0,
                format!("{strong} of {runs} runs reached it, medians of {over}; the abstract allows ε⁻⁴ log(1/ε)"),
            ),
            Check::at_most(
                format!("Corollary on {name}: the largest ‖c‖ divided by ε(ε + G)/σ_min"),
                self.worst(|rung| rung.constraint_norm / rung.limit),
                1.0,
                format!("{strong} of {runs} runs reached ‖∇φ‖ ≤ ε; G and σ_min(J) are measured at the iterates"),
            ),
            Check::near(
                format!("{name}: the penalty is not exact, ‖c‖ falls like the first power of ε"),
                self.power(|rung| rung.constraint_norm),
                1.0,
                0.15,
                format!(
                    "the power of ε in ‖c‖, within 0.15 of 1: for an exact penalty it would be better than Cε; {strong} of {runs} runs"
                ),
            ),
            Check::near(
                format!("{name}: the distance from the KKT point falls like the first power of ε"),
                self.power(|rung| rung.distance),
                1.0,
                0.15,
                format!(
                    "the power of ε in ‖x − x*‖, within 0.15 of 1; x* is known by construction; {strong} of {runs} runs"
                ),
            ),
        ]
    }
}

pub(super) fn run(c: &PenaltyConfig, seeds: u64, tick: &mut Tick) -> Result<Section, Error> {
    tick.expect(seeds * (NAMES.len() * c.epsilon.len()) as u64);
    let (mut out, mut powers) = (Section::default(), Vec::new());
    let (mut calls, mut violations, mut rows): (Vec<Series>, Vec<Series>, Vec<Vec<String>>) = Default::default();
    for (problem, name) in NAMES.iter().enumerate() {
        let climbed = Climbed::new(name, &c.epsilon, seeds, tick, |epsilon, seed| rung(problem, epsilon, c, seed))?;
        out.checks.extend(climbed.checks());
        powers.push(-climbed.power(|rung| rung.weak));
        let columns: [fn(&Rung) -> f64; 9] = [
            |rung| rung.weak,
            |rung| rung.strong,
            |rung| rung.constraint_norm,
            |rung| rung.wider_limit,
            |rung| rung.residual,
            |rung| rung.distance,
            |rung| rung.tau,
            |rung| rung.longest,
            |rung| rung.cap,
        ];
        let columns = columns.map(|of| climbed.medians(of));
        for (i, epsilon) in c.epsilon.iter().enumerate() {
            let number = |j: usize| match columns[j][i].1 {
                value if !value.is_finite() => NOTHING.into(),
                value if j < 2 => format!("{value:.0}"),
                value if j == 6 => format!("{value:.1}"),
                value => brief(value),
            };
            rows.push([format!("{name}, ε = {epsilon:e}")].into_iter().chain((0..columns.len()).map(number)).collect());
        }
        let [oracle, _, feasibility, bounds, ..] = columns;
        calls.push(Series::line(*name, problem, oracle.into_iter().map(|(epsilon, calls)| (1.0 / epsilon, calls))));
        violations.push(Series::line(*name, problem, feasibility));
        violations.push(Series::line(format!("{name}, Cε"), problem + 8, bounds));
    }
    let order = |epsilon: f64| epsilon.powi(-2) * (1.0 / epsilon).ln().max(1.0);
    let widest = c.epsilon.iter().copied().fold(0.0, f64::max);
    // The theorem gives only the order, so the line starts at the first measured value.
    let reference = c.epsilon.iter().map(|&epsilon| (1.0 / epsilon, 20.0 * order(epsilon) / order(widest)));
    calls.push(Series::line("order ε⁻² log(1/ε)", 6, reference));
    out.figures.push(Shown::new(
        "theory-penalty-calls",
        "Mini-batch gradients until ‖∇φ‖² ≤ ε with μ = 1/ε, medians over seeds, compared with the order that Theorem 2 allows if its condition holds.",
        Figure::new("Theorem 2: oracle calls of STR-P", ("1/ε = μ", true), ("oracle calls", true), calls),
    ));
    out.figures.push(Shown::new(
        "theory-penalty-feasibility",
        "‖c‖ where ‖∇φ‖ ≤ ε is first reached, medians over seeds, and the corollary's Cε with C = (G + 1)/σ_min in the same color.",
        Figure::new("Corollary: feasibility with μ = 1/ε", ("ε", true), ("‖c‖", true), violations),
    ));
    out.tables.push(Table::new(
        "Medians over seeds, at the first iterate with ‖∇φ‖ ≤ ε where nothing else is said; a dash where a run did not get there. The residual is ‖∇f + Jᵀλ‖ with the \
                  least-squares multipliers.",
        "problem | calls to ‖∇φ‖² ≤ ε | calls to ‖∇φ‖ ≤ ε | ‖c‖ | Cε | residual | ‖x − x*‖ | τ | largest accepted a | 2/(τL_φ)",
        rows,
    ));
    out.findings.push(format!(
        "The conclusion of Theorem 2 is checked, but not the theorem: its δ is positive only if a_max < 2/(τL_φ), which is of order ε here, and Algorithm 2 has no such cap. It takes steps \
         a = ‖g‖²/gᵀHg, up to 1 where g is tangent to the constraint; the table shows the largest a and the cap. With a cap of that order the theorem's K \
         is of order μ(φ(x₀) − φ*)/η for ‖∇φ‖² ≤ η. With μ = 1/ε, η = ε and a feasible start this is ε⁻², as stated; from an infeasible start \
         φ(x₀) is itself of order μ, and it is ε⁻³; for ‖∇φ‖ ≤ ε, which the corollary needs, it is ε⁻³ and ε⁻⁴, the abstract's. In the measurements, without a cap and from infeasible \
         starts, the calls grow like ε to a power between {:.2} and {:.2} (the condition number of φ grows like 1/ε).",
        -largest(powers.iter().copied()),
        -least(powers.iter().copied())
    ));
    out.findings.push(
        "With λ = μc, ‖∇f + Jᵀλ‖ ≤ ε is the same as ‖∇φ‖ ≤ ε, where the runs stop, so this half of the corollary needs no check. The table has the residual \
         with the least-squares multipliers, and the distance from the known KKT point is checked instead. The other half, on ‖c‖, needs LICQ at the iterate, not \
         only at feasible points. Strong growth of the Lagrangian for every λ, as the paper assumes, forces all terms to have the same gradient at every \
         KKT point. The problems here satisfy this, but strong growth still fails at the minimum of φ, because a finite μ moves it away from the KKT point."
            .into(),
    );
    Ok(out)
}

/// d×k matrices.
type Matrix = <Stiefel<f64> as Constraint>::Point;

/// A random d×k frame.
fn orthonormal(d: usize, k: usize, next: &mut impl FnMut() -> f64) -> Result<Matrix, Error> {
    let mut w = Matrix::from_fn(d, k, |_, _| next());
    Stiefel::new(d, k)?.restore(&mut w)?;
    Ok(w)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn climbed(steps: u64) -> Climbed {
        let c = PenaltyConfig { epsilon: vec![0.1, 0.03], steps, ..Default::default() };
        let rungs = |epsilon| (epsilon, (0..2).map(|seed| rung(0, epsilon, &c, seed).unwrap()).collect());
        Climbed { name: "sphere", rungs: c.epsilon.iter().copied().map(rungs).collect() }
    }

    #[test]
    fn claims_about_points_that_were_not_reached_are_open() {
        let [reached, rest @ ..] = &climbed(1).checks()[..] else { panic!() };
        assert_eq!((reached.verdict(), reached.measured), ("fails", 0.0));
        assert!(rest.iter().all(|check| check.verdict() == "open"), "{rest:?}");
        // If one of four runs does not reach the point, all claims about it are open.
        let mut some = climbed(100_000);
        assert_eq!(some.checks()[0].verdict(), "holds");
        let before = some.worst(|rung| rung.constraint_norm / rung.limit);
        assert!(before > 0.0 && before <= 1.0);
        some.rungs[1].1[1] = Rung { longest: 1.0, ..Rung::NEVER };
        let checks = some.checks();
        assert_eq!((checks[0].verdict(), checks[4].verdict(), checks[5].verdict()), ("fails", "open", "open"));
        assert!(checks[0].why.starts_with("3 of 4 runs") && some.medians(|rung| rung.tau)[1].1.is_nan());
    }

    #[test]
    fn the_condition_of_the_theorem_is_measured_and_does_not_hold() {
        let condition = &climbed(100_000).checks()[1];
        assert!(condition.name.starts_with("condition of Theorem 2") && condition.measured > 1.0, "{condition:?}");
    }
}
