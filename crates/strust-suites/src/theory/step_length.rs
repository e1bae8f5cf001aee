//! The step-length lemma: short steps are always accepted, and accepted steps may be short.

use super::prelude::*;
use bounds::accepted_below;

strust::config! {
    /// Settings of the experiment on the step-length lemma.
    pub struct StepLengthConfig for "step-length" {
        /// Number of steps that are checked.
        pub steps: u64 = 1_000_000, Whole(Range::closed(1.0, 1e12));
        /// Steps per random radius.
        pub stretch: u64 = 500, Whole(Range::closed(1.0, 1e9));
        /// Equations of each problem.
        pub n: u64 = 40, Whole(Range::closed(1.0, 1e5));
        /// Unknowns of each problem.
        pub d: u64 = 10, Whole(Range::closed(1.0, 1e5));
        /// Initial radii Δ₀ for the check of the lemma as stated.
        pub initial_radii: Vec<f64> = vec![1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0], Text("a list of numbers");
        /// Steps per initial radius, few enough that Δ₀ still matters.
        pub literal_steps: u64 = 40, Whole(Range::closed(1.0, 1e9));
    }
    where |c| check_list("step-length", "initial_radii", &c.initial_radii, 0.0, 1e6)
}

/// Counts of steps. a_min belongs to the sampled function.
#[derive(Clone, Copy, Default)]
struct StepCounts {
    steps: u64,
    accepted: u64,
    rejected: u64,
    /// Accepted with a below a_min. The lemma excludes this.
    below: u64,
    /// Accepted with a below a_min of the steepest term. Theorem 1 excludes this.
    below_all: u64,
    /// Steps with a below a_min, accepted or not.
    short: u64,
    /// Those of these that were not accepted.
    exceptions: u64,
}

impl StepCounts {
    /// The counts of one step that is shorter than a_min or not.
    fn of(verdict: Verdict, short: bool, below_all: bool) -> Self {
        let (accepted, rejected) = (verdict == Verdict::Accepted, verdict == Verdict::Rejected);
        Self {
            steps: 1,
            accepted: u64::from(accepted),
            rejected: u64::from(rejected),
            below: u64::from(accepted && short),
            below_all: u64::from(accepted && below_all),
            short: u64::from(short),
            exceptions: u64::from(short && !accepted),
        }
    }
    /// As a share of the accepted steps.
    fn share(&self, count: u64) -> f64 {
        count as f64 / self.accepted as f64
    }
}

impl std::ops::AddAssign for StepCounts {
    fn add_assign(&mut self, other: Self) {
        self.steps += other.steps;
        self.accepted += other.accepted;
        self.rejected += other.rejected;
        self.below += other.below;
        self.below_all += other.below_all;
        self.short += other.short;
        self.exceptions += other.exceptions;
    }
}

pub(super) fn run(c: &StepLengthConfig, seeds: u64, tick: &mut Tick) -> Result<Section, Error> {
    let stretches = c.steps.div_ceil(c.stretch);
    tick.expect(stretches + seeds * c.initial_radii.len() as u64);
    let mut out = Section::default();
    let mut seen: Vec<StepCounts> = LOSSES.iter().map(|_| StepCounts::default()).collect();
    for stretch in 0..stretches {
        let which = stretch as usize % LOSSES.len();
        // Lᵢ from 0.1 to 100, or a quarter of that: both flat and steep terms.
        let f = Linear::random(c.n as usize, c.d as usize, [0.3, 10.0], LOSSES[which].1, stretch);
        let steps = c.stretch.min(c.steps - stretch * c.stretch);
        short_steps(f, stretch, steps, &mut seen[which])?;
        tick.done()?;
    }
    let mut total = StepCounts::default();
    for counts in &seen {
        total += *counts;
    }
    out.checks.push(Check::at_most(
        "rejections among steps with a < a_min",
        total.exceptions as f64,
        0.0,
        format!(
            "{} steps on {} problems with radii from 1e-6 to 1e2, of which {} had a < a_min and {} were rejected",
            total.steps, stretches, total.short, total.rejected
        ),
    ));
    let row = |((name, _), seen): (&(&str, Loss), &StepCounts)| {
        vec![
            (*name).to_string(),
            seen.steps.to_string(),
            seen.short.to_string(),
            seen.exceptions.to_string(),
            seen.rejected.to_string(),
        ]
    };
    out.tables.push(Table::new(
        "The lemma's converse: steps with a < a_min = 2(1 − c₀)/(Lᵢ − c₀), and how many of them were rejected.",
        "problem | steps | a < a_min | of these rejected | all rejected",
        LOSSES.iter().zip(&seen).map(row).collect(),
    ));
    literal(c, seeds, tick, &mut out)?;
    Ok(out)
}

/// Runs STR on single terms from a random radius and counts.
fn short_steps(mut f: Linear<Vec<f64>>, seed: u64, steps: u64, seen: &mut StepCounts) -> Result<(), Error> {
    let mut next = normals(seed + (1 << 40));
    let initial_radius = 10_f64.powf((1.7 * next() - 2.0).clamp(-6.0, 2.0));
    let region = RegionConfig { initial_radius, max_radius: 100.0, ..Default::default() };
    let lipschitz = f.lipschitz();
    let (mut method, mut sampler) =
        (Str::new(StrConfig { region: region.clone() })?, WithReplacement::new(f.terms(), 1, seed)?);
    let start = normal(f.rows[0].len(), &mut next);
    let mut state = method.init(&mut f, start)?;
    let mut sample = Sample::default();
    for k in 0..steps {
        sampler.draw(k, &mut sample);
        let record = method.step(&mut f, &mut state, &sample)?;
        // The tolerance is the rounding error of the quotient.
        let short = record.step_size < accepted_below(&region, lipschitz[sample.indices()[0]]) * (1.0 - 1e-12);
        *seen += StepCounts::of(record.verdict, short, false);
    }
    Ok(())
}

/// Runs STR from Δ₀ with mini-batches of this size.
fn literally(c: &StepLengthConfig, initial_radius: f64, batch: usize, seed: u64) -> Result<StepCounts, Error> {
    // Only steep terms, Lᵢ well above 2: for L < 2 − c₀ the lemma's lower bound exceeds its upper bound 1.
    let mut f = Linear::random(c.n as usize, c.d as usize, [3.0, 10.0], Loss::Square, seed);
    let region = RegionConfig { initial_radius, ..Default::default() };
    let steepest = f.lipschitz().into_iter().fold(0.0, f64::max);
    let (mut method, mut sampler) =
        (Str::new(StrConfig { region: region.clone() })?, WithReplacement::new(f.terms(), batch, seed)?);
    let mut next = normals(seed + (1 << 40));
    let mut state = method.init(&mut f, normal(c.d as usize, &mut next))?;
    let (mut sample, mut seen) = (Sample::default(), StepCounts::default());
    for k in 0..c.literal_steps {
        sampler.draw(k, &mut sample);
        let record = method.step(&mut f, &mut state, &sample)?;
        // Below this, reductions are rounding errors and every step is accepted.
        if record.gradient_norm < 1e-6 {
            break;
        }
        // The lemma's L belongs to the sampled function. The largest Lᵢ of a batch is only an upper bound, often a poor one,
        // and would make a_min too small.
        let own = accepted_below(&region, f.sample_lipschitz(sample.indices())) * (1.0 - 1e-9);
        let below_all = record.step_size < accepted_below(&region, steepest);
        seen += StepCounts::of(record.verdict, record.step_size < own, below_all);
    }
    Ok(seen)
}

/// For each Δ₀, how often an accepted step is below the lemma's lower bound.
fn literal(c: &StepLengthConfig, seeds: u64, tick: &mut Tick, out: &mut Section) -> Result<(), Error> {
    let batch = (c.n as usize / 4).max(1);
    let mut curves = [Vec::new(), Vec::new(), Vec::new()];
    let mut totals = [StepCounts::default(); 2];
    for &initial_radius in &c.initial_radii {
        let mut here = [StepCounts::default(); 2];
        for seed in 0..seeds {
            for (sum, size) in here.iter_mut().zip([1, batch]) {
                *sum += literally(c, initial_radius, size, seed)?;
            }
            tick.done()?;
        }
        let [one, many] = here;
        let shares = [one.share(one.below), many.share(many.below), many.share(many.below_all)];
        curves.iter_mut().zip(shares).for_each(|(curve, share)| curve.push((initial_radius, 100.0 * share)));
        totals.iter_mut().zip(here).for_each(|(total, here)| *total += here);
    }
    let [one, many] = totals;
    out.checks.push(Check::at_most(
        "rejections among steps with a < a_min, mini-batches",
        many.exceptions as f64,
        0.0,
        format!("{} such steps on mini-batches of {batch}, with L the largest eigenvalue of each batch", many.short),
    ));
    for (what, seen) in [("single equations".to_string(), one), (format!("mini-batches of {batch}"), many)] {
        out.checks.push(Check::at_most(
            format!("as stated: no accepted step has a < a_min, {what}"),
            seen.share(seen.below),
            0.0,
            format!(
                "{} of {} accepted steps are below it, with L of the sampled function. The proof combines two upper bounds of f(x + p), from which no \
                 lower bound of a follows; what follows is the converse",
                seen.below, seen.accepted
            ),
        ));
    }
    let [single, own, all] = curves;
    let ends = [all.first(), all.last()].map(|end| end.map_or(f64::NAN, |(_, share)| *share));
    out.figures.push(Shown::new(
        "theory-step-length-literal",
        format!(
            "Accepted steps with a below 2(1 − c₀)/(L − c₀), in percent of all accepted steps (runs of up to {} steps), by the initial radius. On one equation the curvature \
             along the step is L, and a step is accepted if and only if it is below this bound. In a mini-batch the curvature along the step is at most L, and some longer steps \
             are also accepted. Theorem 1 uses L of the steepest term, which gives a smaller a_min: only steps that a small initial radius cuts to \
             Δ/‖g‖ are below it.",
            c.literal_steps
        ),
        Figure::new(
            "How often the step-length lemma fails as stated",
            ("initial radius Δ₀", true),
            ("accepted steps below a_min, percent", false),
            vec![
                Series::line("single equations, L of the equation", 0, single),
                Series::line(format!("mini-batches of {batch}, L of the batch"), 1, own),
                Series::line(format!("mini-batches of {batch}, L of the steepest term"), 2, all),
            ],
        ),
    ));
    out.findings.push(format!(
        "A step shorter than a_min is always accepted: no exception in {} steps. The lemma as stated is the converse: an accepted step is never \
         shorter. With L of the sampled function it fails for {:.0} % of the accepted steps on single equations and for {:.0} % on mini-batches. With \
         the largest Lᵢ of all terms, as in Theorem 1, it fails on mini-batches for {:.0} % of them, from {:.0} % with the first Δ₀ to {:.0} % with the last. To apply the theorem, \
         check a ≥ a_min on the run.",
        c.steps,
        100.0 * one.share(one.below),
        100.0 * many.share(many.below),
        100.0 * many.share(many.below_all),
        ends[0],
        ends[1]
    ));
    Ok(())
}
