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
        /// Steps from each of these.
        pub literal_steps: u64 = 2000, Whole(Range::closed(1.0, 1e9));
    }
    where |c| check_list("step-length", "initial_radii", &c.initial_radii, 0.0, 1e6)
}

/// Steps in which the first radius is still felt.
const EARLY: u64 = 15;

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

/// How often an accepted step is below the lemma's literal lower bound, from each Δ₀.
fn literal(c: &StepLengthConfig, seeds: u64, tick: &mut Tick, out: &mut Findings) -> Result<(), Error> {
    let (mut below, mut accepted, mut early_curve, mut curve) = (0_u64, 0_u64, Vec::new(), Vec::new());
    for &initial_radius in &c.initial_radii {
        let (mut here, mut steps, mut early) = (0_u64, 0_u64, (0_u64, 0_u64));
        for seed in 0..seeds {
            // Steep terms only, Lᵢ well above 2: for L < 2 − c₀ the lemma's lower bound would be above its upper bound 1.
            let mut f = Linear::random(c.n as usize, c.d as usize, [3.0, 10.0], Loss::Square, seed);
            let region = StrConfig { initial_radius, ..Default::default() };
            let lipschitz = f.lipschitz();
            let (mut method, mut sampler) = (Str::new(region.clone())?, WithReplacement::new(f.terms(), 1, seed)?);
            let mut next = normals(seed + (1 << 40));
            let mut state = method.init(&mut f, normal(c.d as usize, &mut next))?;
            let mut sample = Sample::default();
            for k in 0..c.literal_steps {
                sampler.draw(k, &mut sample);
                let record = method.step(&mut f, &mut state, &sample)?;
                let bound = accepted_below(&region, lipschitz[sample.indices()[0]]);
                if record.verdict == Verdict::Accepted && record.step_size > 0.0 {
                    let short = u64::from(record.step_size < bound);
                    (here, steps) = (here + short, steps + 1);
                    if k < EARLY {
                        early = (early.0 + short, early.1 + 1);
                    }
                }
            }
            tick.done()?;
        }
        early_curve.push((initial_radius, 100.0 * early.0 as f64 / early.1 as f64));
        curve.push((initial_radius, 100.0 * here as f64 / steps as f64));
        (below, accepted) = (below + here, accepted + steps);
    }
    let share = below as f64 / accepted as f64;
    out.checks.push(Check::at_most(
        "as stated: no accepted step has a < a_min",
        share,
        0.0,
        format!(
            "{below} of {accepted} accepted steps are below it. The proof combines two upper bounds of f(x + p), from which no lower bound of \
             a follows; what follows is the converse above"
        ),
    ));
    out.figures.push(Shown {
        stem: "theory-step-length-literal".into(),
        caption: "Accepted steps with a below 2(1 − c₀)/(Lᵢ − c₀), in per cent of all accepted steps, by the first radius. From a tiny radius every step is cut \
                  to a = Δ/‖g‖, and the shorter it is the surer it is accepted. Later the first radius is forgotten, but one radius serves all terms: where \
                  their gradients differ it cuts those of the large ones."
            .into(),
        figure: figure(
            "How often the step-length lemma fails as stated",
            ("first radius Δ₀", true),
            ("accepted steps below it, per cent", false),
            vec![
                line(&format!("first {EARLY} steps"), 0, early_curve),
                line(&format!("all {} steps", c.literal_steps), 1, curve),
            ],
        ),
    });
    out.text.push(format!(
        "A step shorter than a_min is always accepted: no exception in {} steps. The lemma as it is stated says the opposite direction, that an \
         accepted step is never shorter, and fails for {:.0} % of the accepted steps here. Theorem 1 uses the stated direction; where it is \
         applied, a ≥ a_min has to be checked on the run.",
        c.steps,
        100.0 * share
    ));
    Ok(())
}
