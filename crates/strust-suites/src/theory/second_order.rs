//! The quantities of the lemmas with the general model: M, a, the radius and the rejections of STR with the Hessian and
//! the Gauss–Newton matrix of mini-batches, beside the identity.

use super::{
    prelude::*,
    rejections::{MeasuredAndBound, Quotient},
};
use strust::{
    diagnostics::bounds::{
        accepted_below_with, model_error_with, radius_floor_with, rejections_in_a_row_with, unsuccessful_with,
    },
    methods::TrustRegion,
    models::{Exit, Identity, Local, Model, Newton, Step, Trial},
    objective::{Evaluations, ProductKind},
    radius::Judgment,
    vector::Elementwise,
};
use strust_lab::format::in_sentence;

strust::config! {
    /// Settings of the experiment on the general model.
    pub struct SecondOrderConfig for "second-order" {
        /// Maximum steps of every run.
        pub steps: u64 = 400, Whole(Range::closed(1.0, 1e9));
        /// Equations of each linear problem.
        pub n: u64 = 40, Whole(Range::closed(1.0, 1e5));
        /// Unknowns of each linear problem: more than equations.
        pub d: u64 = 100, Whole(Range::closed(1.0, 1e5));
        /// Terms of a mini-batch.
        pub batch: u64 = 10, Whole(Range::closed(1.0, 1e5));
        /// Initial radii Δ₀.
        pub initial_radius: Vec<f64> = vec![0.1, 8.0, 80.0], Text("a list of numbers");
        /// Largest radius Δ̄.
        pub max_radius: f64 = 80.0, Number(Range::above(0.0));
    }
    where |c| {
        if c.batch > c.n {
            let allowed = format!("at most `n` = {}", c.n);
            return Err(strust::Error::OutOfRange { owner: "second-order", field: "batch", value: c.batch.to_string(), allowed });
        }
        check_list("second-order", "initial_radius", &c.initial_radius, 0.0, c.max_radius * (1.0 + 1e-12))
    }
}

/// Below this, reductions are rounding errors, and no lemma applies.
const FLOOR: f64 = 1e-10;
/// A difference of values counts if it is so many times their rounding error.
const RESOLVED: f64 = 10.0;
/// A run has converged where ‖∇f‖ is so many times that of the start.
const CONVERGED: f64 = 1e-6;

const MODELS: [(&str, Option<ProductKind>); 3] =
    [("identity", None), ("Hessian", Some(ProductKind::Hessian)), ("Gauss–Newton", Some(ProductKind::GaussNewton))];

const FACTORIZATION: usize = LOSSES.len();
const PROBLEMS: usize = LOSSES.len() + 1;

fn problem_name(problem: usize) -> &'static str {
    LOSSES.get(problem).map_or("matrix factorization 40×20, rank 2, width 6", |(name, _)| name)
}

/// One trial.
#[derive(Clone, Copy, Default)]
struct Proposed {
    /// ‖p‖.
    length: f64,
    /// −gᵀp.
    slope: f64,
    /// m(0) − m(p).
    predicted: f64,
    /// |fᵢ(x + p) − fᵢ(x) − m(p)|. It is NaN or infinite if the trial is.
    error: f64,
    /// Rounding error of fᵢ.
    rounding: f64,
}

impl Proposed {
    /// a = ‖p‖²/(−gᵀp), which is a for p = −a·g.
    fn size(&self) -> f64 {
        self.length * self.length / self.slope
    }
    /// h = pᵀHp/‖p‖².
    fn curvature(&self) -> f64 {
        2.0 * (self.slope - self.predicted) / (self.length * self.length)
    }
    /// The least M that this step permits, if rounding errors permit to measure it.
    fn model_error(&self) -> Option<f64> {
        (self.error > RESOLVED * self.rounding).then(|| self.error / (self.length * self.length))
    }
}

/// A model that notes what a record does not have.
#[derive(Clone)]
struct WatchedModel<M> {
    model: M,
    last: Proposed,
}

#[deny(clippy::missing_trait_methods, reason = "a wrapper must not lose a part of the model")]
impl<F: Objective, M: Model<F>> Model<F> for WatchedModel<M> {
    type Memory = M::Memory;

    fn init(&mut self, f: &mut F, x: &F::Point) -> Result<M::Memory, strust::Error> {
        self.model.init(f, x)
    }
    fn arrive(&mut self, f: &mut F, memory: &M::Memory, at: &Local<'_, F::Point>) -> Evaluations {
        self.model.arrive(f, memory, at)
    }
    fn propose<'a>(
        &'a mut self,
        f: &mut F,
        memory: &M::Memory,
        at: &Local<'a, F::Point>,
        radius: f64,
    ) -> Result<Step<'a, F::Point>, strust::Error> {
        let step = self.model.propose(f, memory, at, radius)?;
        let slope = step.size * step.direction.dot(at.gradient);
        let (length, predicted, rounding) = (step.length, step.predicted, at.evaluation.rounding);
        self.last = Proposed { length, slope, predicted, error: f64::NAN, rounding };
        Ok(step)
    }
    fn retreat(&mut self) -> Option<Step<'_, F::Point>> {
        self.model.retreat()
    }
    fn learn(&mut self, memory: &mut M::Memory, trial: &Trial<'_, F::Point>) {
        self.last.error = (trial.actual - trial.predicted).abs();
        self.model.learn(memory, trial);
    }
    fn next_radius(&self, radius: f64, length: f64, exit: Exit, judgment: &Judgment) -> f64 {
        self.model.next_radius(radius, length, exit, judgment)
    }
}

/// The results of a run.
#[derive(Default)]
struct ModelRun {
    model: usize,
    problem: usize,
    /// The largest |fᵢ(x + p) − fᵢ(x) − m(p)|/‖p‖².
    measured_error: f64,
    /// M = (h + L)/2 with the largest L of the mini-batches; NaN if L is not known.
    bound_of_error: f64,
    /// The model's error over M‖p‖², with M of each mini-batch.
    error: MeasuredAndBound,
    /// Steps with a < 2(1 − c₀)/(L − c₀h), and how many of them were rejected.
    short: u64,
    exceptions: u64,
    /// a of the accepted steps.
    sizes: Vec<f64>,
    accepted: u64,
    rejected: u64,
    /// #U and its bound.
    rejections: MeasuredAndBound,
    /// The bound of #U at the end.
    rejections_bound: f64,
    row: MeasuredAndBound,
    radius: MeasuredAndBound,
    /// ‖p‖ and the error of the model, for every resolved trial.
    errors: Vec<(f64, f64)>,
    /// Steps and products until ‖∇f‖ was small.
    converged: Option<(u64, u64)>,
}

impl ModelRun {
    /// Counts a trial on a sample with this L, if it is known. β bounds ‖H‖.
    fn add(&mut self, region: &RegionConfig, trial: &Proposed, accepted: bool, constants: Option<(f64, f64)>) {
        if accepted {
            self.sizes.push(trial.size());
        }
        if let Some(error) = trial.model_error() {
            self.measured_error = self.measured_error.max(error);
            self.errors.push((trial.length, trial.error));
        }
        let Some((lipschitz, bound)) = constants else { return };
        let most = model_error_with(lipschitz, bound);
        self.bound_of_error = self.bound_of_error.max(most);
        self.error.meet(trial.model_error().unwrap_or(0.0), most);
        // The tolerance is the rounding error of the quotients.
        let short = trial.size() < accepted_below_with(region, lipschitz, trial.curvature()) * (1.0 - 1e-9);
        self.short += u64::from(short);
        self.exceptions += u64::from(short && !accepted);
    }

    /// Compares the counts of the first K steps with their bounds.
    fn compare(&mut self, region: &RegionConfig, seen: &Iterations) {
        let (most, epsilon) = (self.bound_of_error, seen.least_gradient);
        self.rejections_bound = unsuccessful_with(region, most, epsilon, seen.successful);
        self.rejections.meet(seen.unsuccessful as f64, self.rejections_bound);
        self.row.meet(seen.longest_rejection as f64, rejections_in_a_row_with(region, most, epsilon));
        // A lower bound: the quotient is inverted.
        self.radius.meet(radius_floor_with(region, most, epsilon), seen.least_radius);
    }
}

/// L of the sample for the identity, and L again as the bound of ‖H‖ for the other matrices: ψ″ and the weight of
/// Gauss–Newton are at most max|ψ″|.
type Lipschitz<'a, F> = &'a dyn Fn(&F, &Sample) -> f64;

/// A problem with its start, its mini-batches and its L, if this is known.
struct ModelSetting<'a, F: Objective> {
    f: F,
    start: F::Point,
    batch: usize,
    lipschitz: Option<Lipschitz<'a, F>>,
}

fn follow<F: Objective, M: Model<F>>(
    setting: ModelSetting<'_, F>,
    model: M,
    exact: bool,
    region: &RegionConfig,
    steps: u64,
    seed: u64,
) -> Result<ModelRun, Error> {
    let ModelSetting { mut f, start, batch, lipschitz } = setting;
    let mut sampler = WithReplacement::new(f.terms(), batch, seed)?;
    let mut method = TrustRegion::with_model(region.clone(), WatchedModel { model, last: Proposed::default() })?;
    let mut state = method.init(&mut f, start)?;
    let (mut sample, mut seen) = (Sample::default(), Iterations::default());
    let mut ran = ModelRun::default();
    let mut gradient = state.point().zeros_like();
    full_value_and_gradient(&mut f, state.point(), &mut gradient);
    let goal = CONVERGED * gradient.norm();
    for k in 0..steps {
        sampler.draw(k, &mut sample);
        let constants = lipschitz.map(|of| of(&f, &sample)).map(|l| (l, if exact { l } else { 1.0 }));
        let record = method.step(&mut f, &mut state, &sample)?;
        seen.add(&record);
        if seen.least_gradient < FLOOR {
            break;
        }
        let stationary = record.region.is_some_and(|region| region.exit == Exit::Stationary);
        if !stationary {
            ran.add(region, &method.model().last, record.verdict == Verdict::Accepted, constants);
        }
        (ran.accepted, ran.rejected) = (seen.successful, seen.unsuccessful);
        if lipschitz.is_some() {
            ran.compare(region, &seen);
        }
        full_value_and_gradient(&mut f, state.point(), &mut gradient);
        if ran.converged.is_none() && gradient.norm() <= goal {
            ran.converged = Some((seen.steps(), seen.evaluations.products));
        }
    }
    if lipschitz.is_none() {
        (ran.bound_of_error, ran.rejections_bound) = (f64::NAN, f64::NAN);
    }
    Ok(ran)
}

fn with_model<F: Objective<Point: Elementwise>>(
    setting: ModelSetting<'_, F>,
    model: usize,
    region: &RegionConfig,
    steps: u64,
    seed: u64,
) -> Result<ModelRun, Error> {
    let newton = StrNewtonConfig::default();
    match MODELS[model].1 {
        None => follow(setting, Identity, false, region, steps, seed),
        Some(kind) => {
            // As in the paper, every trial is a step.
            let model = Newton::new(kind, newton.products, newton.forcing, newton.at_boundary, 0);
            follow(setting, model, true, region, steps, seed)
        }
    }
}

fn one(
    c: &SecondOrderConfig,
    problem: usize,
    model: usize,
    region: &RegionConfig,
    seed: u64,
) -> Result<ModelRun, Error> {
    let ran = if let Some((_, loss)) = LOSSES.get(problem) {
        let f = Linear::random(c.n as usize, c.d as usize, [1.0, 20.0], *loss, seed);
        let start = normal(c.d as usize, &mut normals(seed + (1 << 40)));
        let lipschitz = |f: &Linear<Vec<f64>>, sample: &Sample| f.sample_lipschitz(sample.indices());
        let setting = ModelSetting { f, start, batch: c.batch as usize, lipschitz: Some(&lipschitz) };
        with_model(setting, model, region, c.steps, seed)?
    } else {
        let f = Factorization::exact(40, 20, 2, 6, seed)?;
        let start = f.start(seed);
        let setting = ModelSetting { f, start, batch: (c.batch as usize).min(40), lipschitz: None };
        with_model(setting, model, region, c.steps, seed)?
    };
    Ok(ModelRun { model, problem, ..ran })
}

pub(super) fn run(c: &SecondOrderConfig, seeds: u64, tick: &mut Tick) -> Result<Section, Error> {
    tick.expect(seeds * (c.initial_radius.len() * PROBLEMS * MODELS.len()) as u64);
    let mut runs = Vec::new();
    for &initial_radius in &c.initial_radius {
        let region = RegionConfig { initial_radius, max_radius: c.max_radius, ..RegionConfig::with_curvature() };
        for problem in 0..PROBLEMS {
            for model in 0..MODELS.len() {
                runs.extend(each(seeds, tick, |seed| one(c, problem, model, &region, seed))?);
            }
        }
    }
    Ok(report(&runs, c, seeds))
}

/// The runs of a problem with a model.
fn of(runs: &[ModelRun], problem: usize, model: usize) -> Vec<&ModelRun> {
    runs.iter().filter(|run| run.problem == problem && run.model == model).collect()
}

/// The power of ‖p‖ in the error of the model, over the later half of the resolved trials of each run: at first the steps
/// are as long as the region.
fn power_of_error(runs: &[&ModelRun]) -> f64 {
    power(runs.iter().flat_map(|run| run.errors[run.errors.len() / 2..].iter().copied()))
}

fn report(runs: &[ModelRun], c: &SecondOrderConfig, seeds: u64) -> Section {
    let mut out = Section::default();
    for (model, (name, _)) in MODELS.iter().enumerate() {
        let known: Vec<&ModelRun> =
            runs.iter().filter(|run| run.model == model && run.problem < FACTORIZATION).collect();
        let worst = |quantity: Quotient<ModelRun>| largest(known.iter().map(|run| quantity(run).quotient()));
        let total = |count: fn(&ModelRun) -> u64| known.iter().map(|run| count(run)).sum::<u64>();
        let trials = format!(
            "the largest of {} trials in {}",
            total(|run| run.accepted + run.rejected),
            plural(known.len(), "run")
        );
        let every = format!(
            "the largest quotient over the first K steps of {}, for every K up to {}, where ε is the smallest ‖g_k‖ of these steps",
            plural(known.len(), "run"),
            c.steps
        );
        out.checks.push(Check::at_most(
            format!("{name}: the error of the model over M‖p‖² with M = (‖H‖ + L)/2"),
            worst(|run| &run.error),
            1.0,
            format!("{trials}; L is the largest eigenvalue of each mini-batch"),
        ));
        out.checks.push(Check::at_most(
            format!("{name}: rejections among steps with a < 2(1 − c₀)/(L − c₀h)"),
            total(|run| run.exceptions) as f64,
            0.0,
            format!("{} such steps; a = ‖p‖²/(−gᵀp) and h = pᵀHp/‖p‖²", total(|run| run.short)),
        ));
        let quotients: [(_, Quotient<ModelRun>); 3] = [
            ("#U over min{(#S+1)·log(ν₁rMΔ̄/ε), #S·log ν₂ + log(Δ₀/Δ_min)}/log ν₁", |run| {
                &run.rejections
            }),
            ("rejections in a row over log(ν₁rMΔ̄/ε)/log ν₁", |run| &run.row),
            ("the bound min(Δ₀, ε/(ν₁rM)) over the least Δ_k", |run| &run.radius),
        ];
        let check = |(what, of)| Check::at_most(format!("{name}: {what}"), worst(of), 1.0, every.clone());
        out.checks.extend(quotients.map(check));
        // On the other problems the steps do not become short, or there is no error at all.
        let name = format!("{name}: the power of ‖p‖ in the error of the model, {}", problem_name(FACTORIZATION));
        let measured = power_of_error(&of(runs, FACTORIZATION, model));
        let how = "fitted to the later half of the trials of each run";
        out.checks.push(if model == 0 {
            Check::near(name, measured, 2.0, 0.3, format!("within 0.3, {how}"))
        } else {
            Check::at_least(name, measured, 2.7, format!("about 3 or more, {how}"))
        });
    }
    out.figures.push(errors_figure(runs));
    out.tables.push(table(runs, seeds, c));
    out.findings.push(findings(runs));
    out
}

fn errors_figure(runs: &[ModelRun]) -> Shown {
    let series = MODELS.iter().enumerate().map(|(model, (name, _))| {
        let mine = of(runs, FACTORIZATION, model);
        // Every tenth trial: enough to see the slope.
        let points = mine.iter().flat_map(|run| run.errors.iter().step_by(10).copied()).collect::<Vec<_>>();
        Series::dots(*name, model, points)
    });
    Shown::new(
        "theory-second-order-error",
        format!(
            "The error |fᵢ(x + p) − fᵢ(x) − m(p)| of every tenth trial on {}. With the identity it falls like ‖p‖², as the lemma says. With the curvature of the \
             mini-batch it falls like ‖p‖³, so M tends to 0 along the run.",
            problem_name(FACTORIZATION)
        ),
        Figure::new("The error of the model", ("‖p‖", true), ("error", true), series.collect()),
    )
}

fn table(runs: &[ModelRun], seeds: u64, c: &SecondOrderConfig) -> Table {
    let short = |value: f64| if value.is_nan() { NOTHING.into() } else { in_sentence(value) };
    let mut rows = Vec::new();
    for problem in 0..PROBLEMS {
        for (model, (name, _)) in MODELS.iter().enumerate() {
            let mine = of(runs, problem, model);
            let median = |of: fn(&ModelRun) -> f64| upper_median(&mine.iter().map(|run| of(run)).collect::<Vec<_>>());
            let sizes: Vec<f64> = mine.iter().flat_map(|run| run.sizes.iter().copied()).collect();
            let total = |of: fn(&ModelRun) -> u64| mine.iter().map(|run| of(run)).sum::<u64>();
            let ends: Vec<(u64, u64)> = mine.iter().filter_map(|run| run.converged).collect();
            // Medians over only the successful runs would be biased.
            let end = |of: fn(&(u64, u64)) -> u64| {
                let values: Vec<f64> = ends.iter().map(|end| of(end) as f64).collect();
                if ends.len() == mine.len() { format!("{}", upper_median(&values)) } else { NOTHING.into() }
            };
            rows.push(vec![
                problem_name(problem).to_string(),
                (*name).to_string(),
                short(largest(mine.iter().map(|run| run.bound_of_error))),
                short(largest(mine.iter().map(|run| run.measured_error))),
                short(if problem == FACTORIZATION { power_of_error(&mine) } else { f64::NAN }),
                short(if sizes.is_empty() { f64::NAN } else { upper_median(&sizes) }),
                format!("{} / {}", total(|run| run.rejected), total(|run| run.accepted)),
                median(|run| run.rejected as f64).to_string(),
                if problem == FACTORIZATION {
                    NOTHING.into()
                } else {
                    format!("{:.0}", median(|run| run.rejections_bound))
                },
                format!("{} of {}", ends.len(), mine.len()),
                end(|end| end.0),
                end(|end| end.1),
            ]);
        }
    }
    Table::new(
        format!(
            "Runs of up to {} steps on mini-batches of {}, from {} initial radii and {}. The largest M = (‖H‖ + L)/2 of a mini-batch; the largest error over ‖p‖²; the power of ‖p‖ in \
             the error; the median a of accepted steps; all rejections and successes; the median #U of a run and of its bound; the runs in which ‖∇f‖ fell to {CONVERGED:e} of its \
             first value, with the medians of steps and products. A dash: L is not known, the steps do not become short enough for a power, or not all runs converged.",
            c.steps,
            c.batch,
            c.initial_radius.len(),
            plural(seeds as usize, "seed"),
        ),
        "problem | H | M | measured M | power | a | #U / #S | #U of a run | bound | converged | steps | products",
        rows,
    )
}

fn findings(runs: &[ModelRun]) -> String {
    let rejected = |model: usize| {
        let mine = runs.iter().filter(|run| run.model == model);
        let (u, s) = mine.fold((0, 0), |(u, s), run| (u + run.rejected, s + run.accepted));
        100.0 * u as f64 / (u + s) as f64
    };
    format!(
        "The lemmas hold for the general model as for the identity, with M = (‖H‖ + L)/2 and a = ‖p‖²/(−gᵀp). Truncated conjugate gradients reduce the model at least as much as the \
         Cauchy step, and this is all that the proofs use. For the Hessian ‖H‖ ≤ L, so M = L, as the paper states. The radius shrinks to ‖p‖/ν₁ here, which may be less than Δ/ν₁, and \
         its lower bound still holds: a step with ‖p‖ ≤ ‖g‖/(rM) never shrinks it. The bounds do not show why the curvature pays. The error of its model falls like ‖p‖³ instead of \
         ‖p‖², so that near a solution every step is accepted: {:.0} % of all trials were rejected with the identity, {:.0} % with the Hessian and {:.0} % with the Gauss–Newton matrix.",
        rejected(0),
        rejected(1),
        rejected(2),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use strust::methods::StrNewton;

    fn short() -> SecondOrderConfig {
        SecondOrderConfig { steps: 60, n: 20, d: 40, batch: 5, ..Default::default() }
    }

    fn region(initial_radius: f64) -> RegionConfig {
        RegionConfig { initial_radius, ..Default::default() }
    }

    #[test]
    fn the_watched_model_makes_the_steps_of_the_method() {
        let mut f = Linear::random(20, 40, [1.0, 20.0], Loss::Bounded, 0);
        let start = normal(40, &mut normals(7));
        let config = StrNewtonConfig { retreats: 0, ..Default::default() };
        let mut plain = StrNewton::new(config.clone()).unwrap();
        let mut state = plain.init(&mut f, start.clone()).unwrap();
        let model = Newton::new(ProductKind::Hessian, config.products, config.forcing, config.at_boundary, 0);
        let watched = WatchedModel { model, last: Proposed::default() };
        let mut watched = TrustRegion::with_model(config.region, watched).unwrap();
        let mut other = watched.init(&mut f, start).unwrap();
        for first in 0..15 {
            let sample = Sample::range(first..first + 5);
            let record = plain.step(&mut f, &mut state, &sample).unwrap();
            assert_eq!(record, watched.step(&mut f, &mut other, &sample).unwrap());
            // With p = −d: gᵀd − ½dᵀHd is the prediction, and the curvature is between ±L.
            let seen = watched.model().last;
            let lipschitz = f.sample_lipschitz(sample.indices());
            assert!(seen.curvature().abs() <= lipschitz * (1.0 + 1e-9) && seen.size() > 0.0);
        }
        assert_eq!(state, other);
    }

    #[test]
    fn the_bounds_hold_for_every_model_and_a_smaller_one_would_not() {
        for model in 0..MODELS.len() {
            let mut rejected = 0;
            let mut nearest: f64 = 0.0;
            for (problem, seed) in [(0, 0), (1, 1), (2, 2), (2, 3), (2, 4)] {
                let ran = one(&short(), problem, model, &region(80.0), seed).unwrap();
                assert!(ran.error.quotient() <= 1.0 + 1e-9, "{model} {problem}: {}", ran.error.quotient());
                assert!(ran.rejections.quotient() <= 1.0 && ran.row.quotient() <= 1.0 && ran.radius.quotient() <= 1.0);
                assert_eq!(ran.exceptions, 0);
                (rejected, nearest) = (rejected + ran.rejected, nearest.max(ran.error.quotient()));
            }
            assert!(rejected > 0, "without rejections there is nothing to bound");
            assert!(nearest > 0.02, "{nearest}: M is of the right size");
        }
    }
}
