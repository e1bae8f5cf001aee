//! The strong growth constant along a run, for exact and noisy data and growing over-parameterization.

use super::prelude::*;
use std::fmt::Write as _;
use strust::diagnostics::{SplitBatch, strong_growth};

strust::config! {
    /// Settings of the experiment on strong growth.
    pub struct StrongGrowthConfig for "strong-growth" {
        /// Equations.
        pub n: u64 = 200, Whole(Range::closed(4.0, 1e5));
        /// Numbers of unknowns.
        pub unknowns: Vec<f64> = vec![50.0, 100.0, 400.0, 800.0, 1600.0], Text("a list of whole numbers");
        /// Standard deviation of the noise on the right-hand side of the noisy problems.
        pub noise: f64 = 0.5, Number(Range::above(0.0));
        /// Terms of a mini-batch.
        pub batch: u64 = 20, Whole(Range::closed(2.0, 1e5));
        /// Passes over the data.
        pub epochs: u64 = 60, Whole(Range::closed(1.0, 1e6));
        /// Pairs of half batches per running estimate.
        pub window: u64 = 40, Whole(Range::closed(4.0, 1e6));
    }
    where |c| check_list("strong-growth", "unknowns", &c.unknowns, 0.5, 1e6)
}

/// A run: the exact ρ after every epoch with the interval of the estimate, and the verdict of a probe at its end.
struct Watched {
    curve: Vec<(f64, Point)>,
    covered: (u32, u32),
    verdict: Interpolation,
    why: String,
    in_run: Interpolation,
}

fn watch(c: &StrongGrowthConfig, d: usize, noise: f64, seed: u64) -> Result<Watched, Error> {
    let (n, batch) = (c.n as usize, c.batch as usize);
    let mut f = if noise > 0.0 {
        LeastSquares::<f64>::noisy(n, d, noise, seed)?
    } else {
        LeastSquares::interpolating(n, d, seed)?
    };
    let start = f.start(seed);
    let mut split = SplitBatch::new(f.clone(), Draws::Different).with_window(c.window);
    let mut method = Str::new(StrConfig::default())?;
    let mut state = method.init(&mut split, start)?;
    let mut sampler = Epochs::new(n, batch, seed)?;
    let steps = sampler.steps_per_epoch();
    let mut sample = Sample::default();
    let (mut curve, mut covered): (Vec<(f64, Point)>, _) = (Vec::new(), (0, 0));
    // The mean age, in epochs, of the pairs of an estimate: the estimate belongs to that earlier point of the run.
    let lag = (c.window as f64 / steps as f64).round() as usize;
    for epoch in 1..=c.epochs {
        for _ in 0..steps {
            sampler.draw(state.steps(), &mut sample);
            method.step(&mut split, &mut state, &sample)?;
        }
        let at = strong_growth(&mut f, state.point());
        // Below this, both are rounding errors.
        if at.gradient_squared < 1e-26 {
            break;
        }
        curve.push((at.gradient_squared, Point::at(epoch as f64, at.rho(batch, Draws::Different))));
        let then = curve.len().checked_sub(lag + 1);
        if let (Some(i), true) = (then, split.pairs().count() >= 2 * c.window) {
            let interval = split.pairs().rho_interval(batch);
            let (_, point) = &mut curve[i];
            (point.low, point.high) = (interval.low, interval.high);
            covered = (covered.0 + u32::from(interval.contains(point.y)), covered.1 + 1);
        }
    }
    let found = probe(&mut f, state.point(), 400);
    Ok(Watched { curve, covered, verdict: found.verdict, why: found.why, in_run: split.verdict().0 })
}

/// Whether a verdict is wrong. A doubtful verdict is not wrong.
fn opposite(verdict: Interpolation, truth: Interpolation) -> bool {
    verdict != truth && verdict != Interpolation::Doubtful
}

pub(super) fn run(c: &StrongGrowthConfig, seeds: u64, tick: &mut Tick) -> Result<Section, Error> {
    let kinds = [(0.0, "exact"), (c.noise, "noisy")];
    tick.expect(seeds * (kinds.len() * c.unknowns.len()) as u64);
    let mut out = Section::default();
    let (mut covered, mut right, mut wrong, mut wrong_in_run, mut all) = ((0, 0), 0, 0, 0, 0);
    let (mut rows, mut peaks) = (Vec::new(), Peaks::default());
    for (i, (noise, kind)) in kinds.into_iter().enumerate() {
        let mut series = Vec::new();
        for (color, &d) in c.unknowns.iter().enumerate() {
            let expected = if noise > 0.0 && (d as u64) < c.n { Interpolation::Violated } else { Interpolation::Holds };
            let mut shown: Option<Watched> = None;
            for seed in 0..seeds {
                let run = watch(c, d as usize, noise, seed)?;
                covered = (covered.0 + run.covered.0, covered.1 + run.covered.1);
                all += 1;
                right += u32::from(run.verdict == expected);
                wrong += u32::from(opposite(run.verdict, expected));
                wrong_in_run += u32::from(opposite(run.in_run, expected));
                shown.get_or_insert(run);
                tick.done()?;
            }
            let Some(run) = shown else { continue };
            let largest = run.curve.iter().map(|(_, point)| point.y).fold(0.0, f64::max);
            peaks[i].push((d, largest));
            let last = run.curve.last().map_or(f64::NAN, |(gradient, _)| *gradient);
            rows.push(vec![
                format!("{kind}, d = {d}"),
                format!("{largest:.2}"),
                brief(last),
                format!("{}", run.in_run),
                format!("{}: {}", run.verdict, run.why),
            ]);
            // Draw only one band, because several would cover the lines.
            let banded = color + 1 == c.unknowns.len();
            let shown = |(_, point): (f64, Point)| if banded { point } else { Point::at(point.x, point.y) };
            let points = run.curve.into_iter().map(shown).collect();
            series.push(Series { name: format!("d = {d}"), color, points });
        }
        let one = Series::line("ρ = 1", 6, [(1.0, 1.0), (c.epochs as f64, 1.0)]);
        series.push(one);
        let title = format!("Strong growth, {kind} least squares, n = {}, batch {}", c.n, c.batch);
        out.figures.push(Shown::new(
            format!("theory-strong-growth-{kind}"),
            format!(
                "The exact ρ of the mini-batches after every epoch, seed 0; for the largest d also the 95 % interval from the run's half batches. {}",
                if noise > 0.0 { "With d ≥ n the noise can be fitted, and ρ stays bounded." } else { "" }
            ),
            Figure::new(title, ("epoch", false), ("strong growth constant ρ", true), series),
        ));
    }
    let why = format!(
        "{all} runs, probed at their end with full gradients; noisy problems with d < n are violated, all others hold; {} verdicts \
         are doubtful and {wrong} the opposite of the truth",
        all - right - wrong
    );
    out.checks.push(Check::at_least(
        "the verdict on interpolation is correct",
        f64::from(right) / f64::from(all),
        1.0,
        why,
    ));
    let why = "the verdict from the run's mini-batches may be doubtful, but never wrong";
    out.checks.push(Check::at_most("wrong verdicts during the run", f64::from(wrong_in_run), 0.0, why));
    let why =
        format!("{} intervals of all runs with full windows; the 95 % are for a fixed point, but x moves", covered.1);
    let share = f64::from(covered.0) / f64::from(covered.1);
    out.checks.push(Check::at_least("share of 95 % intervals that contain the exact ρ", share, 0.9, why));
    out.tables.push(Table::new(
        "Seed 0: the largest exact ρ of a mini-batch along the run, ‖∇f‖² at the end, and both verdicts.",
        "problem | largest ρ | last ‖∇f‖² | during the run | by a probe at the end",
        rows,
    ));
    out.findings.push(sentences(c, &peaks));
    Ok(out)
}

/// The largest exact ρ of seed 0 for each number of unknowns, without noise and with it.
type Peaks = [Vec<(f64, f64)>; 2];

/// Sentences about the table, only for the problems that it contains.
fn sentences(c: &StrongGrowthConfig, [exact, noisy]: &Peaks) -> String {
    let highest = |peaks: &[(f64, f64)]| peaks.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
    let mut text = String::from("Strong growth is a statement about a limit: ρ is finite wherever ∇f ≠ 0.");
    if let Some((d, rho)) = highest(exact) {
        let _ = write!(
            text,
            " Where all equations can be satisfied, ρ stays moderate while ‖∇f‖² falls by many orders of magnitude: {rho:.0} at most, for d = {d}. It is largest \
             where d is near n = {}, because the equations are ill-conditioned there, and falls on both sides; near n it may still rise at the end.",
            c.n
        );
    }
    let (fits, not): (Vec<_>, Vec<_>) = noisy.iter().partition(|(d, _)| *d >= c.n as f64);
    if let Some((d, rho)) = highest(&not) {
        let _ = write!(
            text,
            " On noisy data that cannot be fitted (d < n) ρ rises until the run stalls, where its mini-batches no longer resolve ‖∇f‖²; it reaches {rho:.0} \
             for d = {d}. Full gradients from there show that ρ has no bound."
        );
    }
    if highest(&fits).is_some() {
        text += " With d > n the noise can be fitted, so interpolation holds.";
    }
    text + " The table omits d = n: near it the equations are so ill-conditioned that a verdict may be doubtful, and sometimes wrong."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentences_match_the_table() {
        let c = StrongGrowthConfig { n: 100, ..Default::default() };
        let peaks = [vec![(40.0, 9.0), (400.0, 50.0), (800.0, 30.0)], vec![(40.0, 7000.0), (400.0, 60.0)]];
        let text = sentences(&c, &peaks);
        assert!(text.contains("50 at most, for d = 400") && text.contains("reaches 7000 for d = 40"), "{text}");
        let text = sentences(&c, &[Vec::new(), vec![(400.0, 60.0)]]);
        assert!(
            text.contains("noise can be fitted") && !text.contains("stalls") && !text.contains("at most"),
            "{text}"
        );
    }
}
