//! Theorem 2 and its corollary: a ladder of ε with μ = 1/ε, where the penalty is not exact.

use super::{
    Findings, Tick, check_list,
    problems::{Linear, Loss, figure, line, normal, normals},
    statistics::{median, power},
};
use crate::{
    Error,
    figure::Series,
    section::{Check, Shown, Table},
};
use strust::{
    diagnostics::{Draws, KktReport, kkt_report, strong_growth_of_lagrangian},
    objective::full_value_and_gradient,
    prelude::*,
};

strust::config! {
    /// Settings of the experiment on Theorem 2.
    pub struct PenaltyConfig for "penalty" {
        /// The ladder of ε, each with μ = 1/ε.
        pub epsilon: Vec<f64> = vec![1e-1, 3e-2, 1e-2, 3e-3, 1e-3], Text("a list of numbers");
        /// Terms of f.
        pub n: u64 = 40, Whole(Range::closed(2.0, 1e5));
        /// Terms of a mini-batch.
        pub batch: u64 = 20, Whole(Range::closed(1.0, 1e5));
        /// Steps after which a run gives up.
        pub steps: u64 = 200_000, Whole(Range::closed(1.0, 1e9));
    }
    where |c| check_list("penalty", "epsilon", &c.epsilon, 0.0, 1.0)
}

/// What a run with μ = 1/ε showed.
pub(super) struct Ladder {
    /// Oracle calls until ‖∇φ‖² ≤ ε; absent if never.
    pub weak: Option<u64>,
    /// Oracle calls until ‖∇φ‖ ≤ ε, and the KKT report there.
    pub strong: Option<(u64, KktReport)>,
    /// τ of the mini-batches there, for λ = μc.
    pub tau: f64,
    /// The largest ‖∇f‖ along the run.
    pub steepest: f64,
}

/// Runs STR-P with μ = 1/ε and measures after every step, until ‖∇φ‖ ≤ ε.
pub(super) fn climb<F, C>(
    f: &mut F,
    mut constraint: C,
    start: F::Point,
    epsilon: f64,
    c: &PenaltyConfig,
    seed: u64,
) -> Result<Ladder, Error>
where
    F: Objective,
    C: Constraint<Point = F::Point> + Clone,
{
    let penalty = 1.0 / epsilon;
    let mut method = StrP::new(StrPConfig { penalty, ..Default::default() }, constraint.clone())?;
    let mut sampler = Epochs::new(f.terms(), c.batch as usize, seed)?;
    let mut state = method.init(f, start)?;
    let (mut sample, mut gradient) = (Sample::default(), state.point().zeros_like());
    let mut residual = constraint.new_residual();
    let mut found = Ladder { weak: None, strong: None, tau: f64::NAN, steepest: 0.0 };
    for step in 0..c.steps {
        full_value_and_gradient(f, state.point(), &mut gradient);
        found.steepest = found.steepest.max(gradient.norm());
        constraint.residual(state.point(), &mut residual);
        constraint.add_vjp(state.point(), penalty, &residual, &mut gradient);
        let norm = gradient.norm();
        if norm * norm <= epsilon && found.weak.is_none() {
            found.weak = Some(step);
        }
        if norm <= epsilon {
            let mut multipliers = residual.zeros_like();
            multipliers.add(penalty, &residual);
            let at = strong_growth_of_lagrangian(f, &mut constraint, state.point(), &multipliers);
            found.tau = at.rho(c.batch as usize, Draws::Different);
            found.strong = Some((step, kkt_report(f, &mut constraint, state.point(), penalty)?));
            break;
        }
        sampler.draw(step, &mut sample);
        method.step(f, &mut state, &sample)?;
    }
    Ok(found)
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

/// One rung of the ladder on one of the problems.
fn rung(problem: usize, epsilon: f64, c: &PenaltyConfig, seed: u64) -> Result<Ladder, Error> {
    let (n, d) = (c.n as usize, 8);
    let mut next = normals(seed);
    match problem {
        0 => {
            let mut sphere = Sphere::new(1.0)?;
            let mut at = normal(d, &mut next);
            sphere.restore(&mut at)?;
            let rows = (0..n).map(|_| normal(d, &mut next)).collect();
            let mut f = anchored(rows, &at, &mut sphere, &vec![0.5]);
            let start = near(&at, 0.5, &normal(d, &mut next));
            climb(&mut f, sphere, start, epsilon, c, seed)
        }
        1 => {
            let mut stiefel = Stiefel::new(d, 2)?;
            let at = orthonormal(d, 2, &mut next)?;
            let rows: Vec<Matrix> = (0..n).map(|_| Matrix::from_fn(d, 2, |_, _| next())).collect();
            let multipliers = Matrix::from_fn(2, 2, |i, j| if i == j { 0.5 } else { 0.1 });
            let mut f = anchored(rows, &at, &mut stiefel, &multipliers);
            let away = Matrix::from_fn(d, 2, |_, _| next());
            let start = near(&at, 0.5, &away);
            climb(&mut f, stiefel, start, epsilon, c, seed)
        }
        _ => {
            // Σ xᵢ⁴ = Σ atᵢ⁴ and x₀x₁ = at₀at₁.
            let at: Vec<f64> = normal(d, &mut next).iter().map(|x| 0.7 * x.signum() + 0.1 * x).collect();
            let mut quartic = Quartic { power: at.iter().map(|x| x.powi(4)).sum(), product: at[0] * at[1] };
            let rows = (0..n).map(|_| normal(d, &mut next)).collect();
            let mut f = anchored(rows, &at, &mut quartic, &vec![0.3, 0.2]);
            let start = near(&at, 0.3, &normal(d, &mut next));
            climb(&mut f, quartic, start, epsilon, c, seed)
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
    fn rounding(&self, norm: f64) -> f64 {
        f64::EPSILON * (norm + self.power + self.product.abs())
    }
}

/// The checks of one problem: from the powers of the oracle calls and of ‖c‖, and from the largest quotients to the bounds.
fn claims(name: &str, seeds: u64, powers: [f64; 3], worst: [f64; 2], reached: (usize, usize)) -> [Check; 5] {
    [
        Check::at_most(
            format!("Theorem 2 on {name}: power of 1/ε in the oracle calls until ‖∇φ‖² ≤ ε"),
            powers[0],
            2.0,
            format!("medians of {seeds} seeds; the theorem allows ε⁻² log(1/ε) with μ = 1/ε"),
        ),
        Check::at_most(
            format!("abstract on {name}: power of 1/ε in the oracle calls until ‖∇φ‖ ≤ ε"),
            powers[1],
            4.0,
            format!("medians of {seeds} seeds; the abstract allows ε⁻⁴ log(1/ε)"),
        ),
        Check::at_most(
            format!("Corollary on {name}: ‖c‖ over ε(ε + G)/σ_min, at its largest"),
            worst[0],
            1.0,
            format!(
                "{} of {} runs reached ‖∇φ‖ ≤ ε; G and σ_min(J) are measured at the iterates",
                reached.0, reached.1
            ),
        ),
        Check::at_most(
            format!("Corollary on {name}: ‖∇f + Jᵀλ‖ over ε with λ = μc"),
            worst[1],
            1.0,
            "the same iterates",
        ),
        Check {
            name: format!("{name}: the penalty is not exact, ‖c‖ falls like the first power of ε"),
            measured: powers[2],
            bound: 1.0,
            holds: (powers[2] - 1.0).abs() < 0.15,
            why: "the power of ε in ‖c‖, within 0.15 of 1: no better than Cε, as it would be for an exact penalty"
                .into(),
        },
    ]
}

pub(super) fn run(c: &PenaltyConfig, seeds: u64, tick: &mut Tick) -> Result<Findings, Error> {
    tick.expect(seeds * (NAMES.len() * c.epsilon.len()) as u64);
    let mut out = Findings::default();
    let (mut calls, mut violations, mut rows): (Vec<Series>, Vec<Series>, Vec<Vec<String>>) = Default::default();
    for (problem, name) in NAMES.iter().enumerate() {
        let (mut oracle, mut further, mut feasibility, mut bounds) = <(Vec<_>, Vec<_>, Vec<_>, Vec<_>)>::default();
        let (mut worst, mut residual, mut missing) = (0.0_f64, 0.0_f64, 0);
        for &epsilon in &c.epsilon {
            let (mut weak, mut strong, mut norms, mut limits, mut taus) =
                <(Vec<_>, Vec<_>, Vec<_>, Vec<_>, Vec<_>)>::default();
            for seed in 0..seeds {
                let ran = rung(problem, epsilon, c, seed)?;
                tick.done()?;
                weak.push(ran.weak.map_or(f64::INFINITY, |k| k as f64));
                let Some((k, report)) = ran.strong else {
                    missing += 1;
                    continue;
                };
                // ε(ε + G)/σ_min, and the corollary's Cε with C = (G + 1)/σ_min.
                let limit = epsilon * (epsilon + ran.steepest) / report.jacobian.smallest;
                strong.push(k as f64);
                taus.push(ran.tau);
                norms.push(report.constraint_norm);
                limits.push(epsilon * (1.0 + ran.steepest) / report.jacobian.smallest);
                worst = worst.max(report.constraint_norm / limit);
                residual = residual.max(report.penalty_residual / epsilon);
            }
            oracle.push((1.0 / epsilon, median(&weak)));
            further.push((1.0 / epsilon, median(&strong)));
            feasibility.push((epsilon, median(&norms)));
            bounds.push((epsilon, median(&limits)));
            rows.push(vec![
                format!("{name}, ε = {epsilon:e}"),
                format!("{:.0}", median(&weak)),
                format!("{:.0}", median(&strong)),
                format!("{:.1e}", median(&norms)),
                format!("{:.1e}", median(&limits)),
                format!("{:.1}", median(&taus)),
            ]);
        }
        let reached = (seeds as usize * c.epsilon.len() - missing, seeds as usize * c.epsilon.len());
        let powers = [&oracle, &further, &feasibility].map(|curve| power(curve.iter().copied()));
        out.checks.extend(claims(name, seeds, powers, [worst, residual], reached));
        calls.push(line(name, problem, oracle));
        violations.push(line(name, problem, feasibility));
        violations.push(line(&format!("{name}, Cε"), problem + 8, bounds));
    }
    let order = |epsilon: f64| epsilon.powi(-2) * (1.0 / epsilon).ln().max(1.0);
    let widest = c.epsilon.iter().copied().fold(0.0, f64::max);
    // The theorem gives the order only: the line begins where the calls do.
    let reference = c.epsilon.iter().map(|&epsilon| (1.0 / epsilon, 20.0 * order(epsilon) / order(widest)));
    calls.push(line("order ε⁻² log(1/ε)", 6, reference));
    out.figures.push(Shown {
        stem: "theory-penalty-calls".into(),
        caption: "Mini-batch gradients until ‖∇φ‖² ≤ ε with μ = 1/ε, medians over seeds, against the order that Theorem 2 allows.".into(),
        figure: figure("Theorem 2: oracle calls of STR-P", ("1/ε = μ", true), ("oracle calls", true), calls),
    });
    out.figures.push(Shown {
        stem: "theory-penalty-feasibility".into(),
        caption:
            "‖c‖ where ‖∇φ‖ ≤ ε is first reached, and the corollary's Cε with C = (G + 1)/σ_min in the same colour."
                .into(),
        figure: figure("Corollary: feasibility with μ = 1/ε", ("ε", true), ("‖c‖", true), violations),
    });
    out.tables.push(Table {
        caption: "Medians over seeds.".into(),
        header: ["problem", "calls to ‖∇φ‖² ≤ ε", "calls to ‖∇φ‖ ≤ ε", "‖c‖ there", "Cε", "τ there"]
            .map(String::from)
            .to_vec(),
        rows,
    });
    out.text.push(
        "The theorem's K is of order μ(φ(x₀) − φ*)/η for ‖∇φ‖² ≤ η. With μ = 1/ε, η = ε and a feasible start this is ε⁻², as stated; from an infeasible start \
         φ(x₀) is itself of order μ, and it is ε⁻³; for ‖∇φ‖ ≤ ε, which the corollary needs, it is ε⁻³ and ε⁻⁴, the abstract's. Measured from infeasible \
         starts, the calls grow about like 1/ε, the condition number of φ. The corollary also needs LICQ where the iterate is, not only at feasible points. \
         Strong growth of the Lagrangian for every λ, as it is assumed, forces all terms to have one gradient at every \
         KKT point; the problems here are made so, and even then it fails at the minimum of φ, which a finite μ moves away from there."
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
