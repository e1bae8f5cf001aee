//! The step-length lemma: short steps are always accepted, and accepted steps may be short.

use super::{
    Findings, Tick, check_list,
    problems::{Linear, Loss, figure, line, normal, normals},
};
use crate::{
    Error,
    section::{Check, Shown, Table},
};
use strust::{diagnostics::bounds::accepted_below, prelude::*};

strust::config! {
    /// Settings of the experiment on the step-length lemma.
    pub struct StepLengthConfig for "step-length" {
        /// Steps in which an exception is looked for.
        pub steps: u64 = 1_000_000, Whole(Range::closed(1.0, 1e12));
        /// Steps from one random radius before the next.
        pub stretch: u64 = 500, Whole(Range::closed(1.0, 1e9));
        /// Equations of each problem.
        pub n: u64 = 40, Whole(Range::closed(1.0, 1e5));
        /// Unknowns of each problem.
        pub d: u64 = 10, Whole(Range::closed(1.0, 1e5));
        /// First radii Δ₀ at which the literal lower bound is held against accepted steps.
        pub initial_radii: Vec<f64> = vec![1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0], Text("a list of numbers");
        /// Steps from each of these, few enough that the first radius is felt.
        pub literal_steps: u64 = 40, Whole(Range::closed(1.0, 1e9));
    }
    where |c| check_list("step-length", "initial_radii", &c.initial_radii, 0.0, 1e6)
}

/// What was seen of a million steps.
#[derive(Default)]
struct Seen {
    steps: u64,
    short: u64,
    exceptions: u64,
    rejected: u64,
}

pub(super) fn run(c: &StepLengthConfig, seeds: u64, tick: &mut Tick) -> Result<Findings, Error> {
    let problems =
        [("least squares", Loss::Square), ("logistic", Loss::Logistic), ("bounded loss, not convex", Loss::Bounded)];
    let stretches = c.steps.div_ceil(c.stretch);
    tick.expect(stretches + seeds * c.initial_radii.len() as u64);
    let mut out = Findings::default();
    let mut seen: Vec<Seen> = problems.iter().map(|_| Seen::default()).collect();
    for stretch in 0..stretches {
        let which = stretch as usize % problems.len();
        // Lᵢ from 0.1 to 100, or a quarter of it: flat terms and steep ones.
        let f = Linear::random(c.n as usize, c.d as usize, [0.3, 10.0], problems[which].1, stretch);
        let steps = c.stretch.min(c.steps - stretch * c.stretch);
        short_steps(f, stretch, steps, &mut seen[which])?;
        tick.done()?;
    }
    let total = seen.iter().fold(Seen::default(), |a, b| Seen {
        steps: a.steps + b.steps,
        short: a.short + b.short,
        exceptions: a.exceptions + b.exceptions,
        rejected: a.rejected + b.rejected,
    });
    out.checks.push(Check::at_most(
        "rejections among steps with a < a_min",
        total.exceptions as f64,
        0.0,
        format!(
            "{} steps on {} problems with radii from 1e-6 to 1e2, of which {} were short and {} were rejected",
            total.steps, stretches, total.short, total.rejected
        ),
    ));
    let row = |((name, _), seen): (&(&str, Loss), &Seen)| {
        vec![
            (*name).to_string(),
            seen.steps.to_string(),
            seen.short.to_string(),
            seen.exceptions.to_string(),
            seen.rejected.to_string(),
        ]
    };
    out.tables.push(Table {
        caption:
            "The lemma's converse: steps with a < a_min = 2(1 − c₀)/(Lᵢ − c₀), and how many of them were rejected."
                .into(),
        header: ["problem", "steps", "a < a_min", "of these rejected", "all rejected"].map(String::from).to_vec(),
        rows: problems.iter().zip(&seen).map(row).collect(),
    });
    literal(c, seeds, tick, &mut out)?;
    Ok(out)
}

/// Runs STR on single terms from a random radius and counts.
fn short_steps(mut f: Linear<Vec<f64>>, seed: u64, steps: u64, seen: &mut Seen) -> Result<(), Error> {
    let mut next = normals(seed + (1 << 40));
    let initial_radius = 10_f64.powf((1.7 * next() - 2.0).clamp(-6.0, 2.0));
    let region = StrConfig { initial_radius, max_radius: 100.0, ..Default::default() };
    let lipschitz = f.lipschitz();
    let (mut method, mut sampler) = (Str::new(region.clone())?, WithReplacement::new(f.terms(), 1, seed)?);
    let start = normal(f.rows[0].len(), &mut next);
    let mut state = method.init(&mut f, start)?;
    let mut sample = Sample::default();
    for k in 0..steps {
        sampler.draw(k, &mut sample);
        let record = method.step(&mut f, &mut state, &sample)?;
        let rejected = record.verdict == Verdict::Rejected;
        // To rounding of the quotient itself.
        let short = record.step_size < accepted_below(&region, lipschitz[sample.indices()[0]]) * (1.0 - 1e-12);
        seen.steps += 1;
        seen.short += u64::from(short);
        seen.rejected += u64::from(rejected);
        seen.exceptions += u64::from(short && rejected);
    }
    Ok(())
}

/// Accepted steps below the lemma's literal lower bound, and all accepted steps, of a run from Δ₀ on batches of that size.
fn below(c: &StepLengthConfig, initial_radius: f64, batch: usize, seed: u64) -> Result<(u64, u64), Error> {
    // Steep terms only, Lᵢ well above 2: for L < 2 − c₀ the lemma's lower bound would be above its upper bound 1.
    let mut f = Linear::random(c.n as usize, c.d as usize, [3.0, 10.0], Loss::Square, seed);
    let region = StrConfig { initial_radius, ..Default::default() };
    let lipschitz = f.lipschitz();
    let (mut method, mut sampler) = (Str::new(region.clone())?, WithReplacement::new(f.terms(), batch, seed)?);
    let mut next = normals(seed + (1 << 40));
    let mut state = method.init(&mut f, normal(c.d as usize, &mut next))?;
    let (mut sample, mut seen) = (Sample::default(), (0, 0));
    for k in 0..c.literal_steps {
        sampler.draw(k, &mut sample);
        let record = method.step(&mut f, &mut state, &sample)?;
        // Below, reductions are rounding errors and every step is accepted.
        if record.gradient_norm < 1e-6 {
            break;
        }
        // Exact for one term, and what is known of a batch: no more than the largest of its terms.
        let steepest = sample.indices().iter().map(|&i| lipschitz[i]).fold(0.0, f64::max);
        if record.verdict == Verdict::Accepted {
            seen = (seen.0 + u64::from(record.step_size < accepted_below(&region, steepest)), seen.1 + 1);
        }
    }
    Ok(seen)
}

/// How often an accepted step is below the literal lower bound, from each Δ₀.
fn literal(c: &StepLengthConfig, seeds: u64, tick: &mut Tick, out: &mut Findings) -> Result<(), Error> {
    let batch = (c.n as usize / 4).max(1);
    let mut curves = [Vec::new(), Vec::new()];
    let mut totals = [(0, 0); 2];
    for &initial_radius in &c.initial_radii {
        let mut here = [(0, 0); 2];
        for seed in 0..seeds {
            for (sum, size) in here.iter_mut().zip([1, batch]) {
                let seen = below(c, initial_radius, size, seed)?;
                *sum = (sum.0 + seen.0, sum.1 + seen.1);
            }
            tick.done()?;
        }
        for i in 0..2 {
            curves[i].push((initial_radius, 100.0 * here[i].0 as f64 / here[i].1 as f64));
            totals[i] = (totals[i].0 + here[i].0, totals[i].1 + here[i].1);
        }
    }
    let [single, batches] = totals.map(|(below, accepted)| below as f64 / accepted as f64);
    out.checks.push(Check::at_most(
        "as stated: no accepted step has a < a_min",
        single,
        0.0,
        format!(
            "{} of {} accepted steps on single equations are below it: with curvature L along the step the test accepts exactly the steps that the lemma \
             excludes. The proof combines two upper bounds of f(x + p), from which no lower bound of a follows; what follows is the converse",
            totals[0].0, totals[0].1
        ),
    ));
    let [one, many] = curves;
    out.figures.push(Shown {
        stem: "theory-step-length-literal".into(),
        caption: format!(
            "Accepted steps with a below 2(1 − c₀)/(L − c₀), in per cent of all accepted steps of up to {} each, by the first radius. On one equation the curvature \
             along the step is L, and a step is accepted exactly if it is below. In a mini-batch it is smaller, longer steps are accepted too, and the tinier the \
             first radius the more steps it cuts to Δ/‖g‖ before it has grown.",
            c.literal_steps
        ),
        figure: figure(
            "How often the step-length lemma fails as stated",
            ("first radius Δ₀", true),
            ("accepted steps below it, per cent", false),
            vec![line("single equations", 0, one), line(&format!("mini-batches of {batch}"), 1, many)],
        ),
    });
    out.text.push(format!(
        "A step shorter than a_min is always accepted: no exception in {} steps. The lemma as it is stated says the converse, that an accepted step is never \
         shorter; it fails for {:.0} % of the accepted steps on single equations and for {:.0} % on mini-batches. Theorem 1 uses the stated direction; where it is \
         applied, a ≥ a_min has to be checked on the run.",
        c.steps,
        100.0 * single,
        100.0 * batches
    ));
    Ok(())
}
