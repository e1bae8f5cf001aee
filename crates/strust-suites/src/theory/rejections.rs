//! #U/#S and its bounds, for several problems and constants of the trust region.

use super::prelude::*;

strust::config! {
    /// Settings of the experiment on rejections.
    pub struct RejectionsConfig for "rejections" {
        /// Steps of every run.
        pub steps: u64 = 2000, Whole(Range::closed(1.0, 1e9));
        /// Acceptance thresholds c₀; c₁ = c₀.
        pub accept_above: Vec<f64> = vec![0.05, 0.3], Text("a list of numbers");
        /// Growth thresholds c₂.
        pub grow_above: Vec<f64> = vec![0.5, 0.9], Text("a list of numbers");
        /// Shrink factors ν₁.
        pub shrink: Vec<f64> = vec![1.5, 2.0, 4.0], Text("a list of numbers");
        /// Growth factors ν₂.
        pub grow: Vec<f64> = vec![1.5, 5.0], Text("a list of numbers");
        /// Largest radii Δ̄.
        pub max_radius: Vec<f64> = vec![5.0, 80.0], Text("a list of numbers");
    }
    where |c| {
        check_list("rejections", "accept_above", &c.accept_above, 0.0, 1.0)?;
        check_list("rejections", "grow_above", &c.grow_above, 0.0, 1.0)?;
        check_list("rejections", "shrink", &c.shrink, 1.0, 1e6)?;
        check_list("rejections", "grow", &c.grow, 1.0, 1e6)?;
        check_list("rejections", "max_radius", &c.max_radius, 0.0, 1e9)
    }
}

/// A count and its bound after the K steps of a run that give the largest quotient.
#[derive(Clone, Copy, Default)]
pub(super) struct MeasuredAndBound {
    measured: f64,
    bound: f64,
}

impl MeasuredAndBound {
    pub(super) fn quotient(&self) -> f64 {
        match (self.measured, self.bound) {
            // There is no rejection yet.
            (0.0, _) => 0.0,
            // A logarithm may be negative; then every count exceeds it.
            (measured, bound) if bound < 0.0 => measured / f64::MIN_POSITIVE,
            (measured, bound) => measured / bound,
        }
    }
    /// Keeps the pair with the larger quotient; NaN counts as the largest.
    pub(super) fn meet(&mut self, measured: f64, bound: f64) {
        let new = Self { measured, bound };
        if new.quotient() >= self.quotient() || new.quotient().is_nan() {
            *self = new;
        }
    }
}

/// A quantity of a run.
pub(super) type Quotient<R> = fn(&R) -> &MeasuredAndBound;

/// The results of one run. The lemmas hold for the first K steps for every K, where ε is the smallest ‖g_k‖ of these.
#[derive(Default)]
struct RejectionRun {
    problem: usize,
    /// Steps before the first success: there #U/#S is 1/0, 2/0, …
    before_success: u64,
    /// #U/#S and the lemma's bound, from the first success on.
    stated: MeasuredAndBound,
    /// #U and its corrected bound.
    corrected: MeasuredAndBound,
    /// The same two as #U/#S at the end.
    ratio: f64,
    limit: f64,
    row: MeasuredAndBound,
    radius: MeasuredAndBound,
    /// The lemma's bound at the end, where ε is smallest, divided by #U/#S there.
    slack_at_end: f64,
}

fn one(problem: usize, region: &RegionConfig, steps: u64, seed: u64) -> Result<RejectionRun, Error> {
    let mut f = Linear::random(40, 10, [0.5, 10.0], LOSSES[problem].1, seed);
    let steepest = f.lipschitz().into_iter().fold(0.0, f64::max);
    let (mut method, mut sampler) =
        (Str::new(StrConfig { region: region.clone() })?, WithReplacement::new(40, 1, seed)?);
    let mut next = normals(seed + (1 << 40));
    let mut state = method.init(&mut f, normal(10, &mut next))?;
    let (mut sample, mut seen) = (Sample::default(), Iterations::default());
    let mut ran = RejectionRun { problem, ..Default::default() };
    for k in 0..steps {
        sampler.draw(k, &mut sample);
        seen.add(&method.step(&mut f, &mut state, &sample)?);
        // Below this, the reductions are rounding errors, and no lemma applies.
        if seen.least_gradient < 1e-10 {
            break;
        }
        let epsilon = seen.least_gradient;
        let rejected = seen.unsuccessful as f64;
        let stated = bounds::unsuccessful_ratio_as_stated(region, steepest, epsilon);
        if seen.successful == 0 {
            ran.before_success = seen.unsuccessful;
        } else {
            ran.stated.meet(seen.ratio(), stated);
        }
        ran.corrected.meet(rejected, seen.unsuccessful_bound(region, steepest));
        ran.row.meet(seen.longest_rejection as f64, bounds::rejections_in_a_row(region, steepest, epsilon));
        // A lower bound: the quotient is inverted.
        ran.radius.meet(seen.radius_bound(region, steepest), seen.least_radius);
        (ran.ratio, ran.slack_at_end) = (seen.ratio(), stated / seen.ratio());
        ran.limit = seen.unsuccessful_bound(region, steepest) / seen.successful as f64;
    }
    Ok(ran)
}

pub(super) fn run(c: &RejectionsConfig, seeds: u64, tick: &mut Tick) -> Result<Section, Error> {
    let mut regions = Vec::new();
    for &accept_above in &c.accept_above {
        for &grow_above in c.grow_above.iter().filter(|&&above| above >= accept_above) {
            for &shrink in &c.shrink {
                for (&grow, &max_radius) in c.grow.iter().flat_map(|grow| c.max_radius.iter().map(move |r| (grow, r))) {
                    let (initial_radius, shrink_below) = (max_radius, accept_above);
                    regions.push(RegionConfig {
                        initial_radius,
                        max_radius,
                        accept_above,
                        shrink_below,
                        grow_above,
                        shrink,
                        grow,
                    });
                }
            }
        }
    }
    tick.expect(seeds * (regions.len() * LOSSES.len()) as u64);
    let mut runs = Vec::new();
    for region in &regions {
        for problem in 0..LOSSES.len() {
            let ran = each(seeds, tick, |seed| one(problem, region, c.steps, seed))?;
            runs.extend(ran.into_iter().map(|run| (region, run)));
        }
    }
    Ok(report(&runs, c))
}

fn report(runs: &[(&RegionConfig, RejectionRun)], c: &RejectionsConfig) -> Section {
    let mut out = Section::default();
    let all = runs.len();
    let worst = |of: Quotient<RejectionRun>| largest(runs.iter().map(|(_, run)| of(run).quotient()));
    let of = format!(
        "the largest quotient over the first K steps of {all} runs, for every K up to {}, where ε is the smallest ‖g_k‖ of these steps",
        c.steps
    );
    let late = runs.iter().filter(|(_, run)| run.before_success > 0).count();
    let longest = runs.iter().map(|(_, run)| run.before_success).max().unwrap_or(0);
    out.checks.push(Check::at_most(
        "as stated, before the first success: runs where #U/#S is above every bound",
        late as f64,
        0.0,
        format!(
            "of {all} runs; if the first step is rejected, #U/#S = 1/0; up to {longest} rejections came before the first success. The lemma does not count them"
        ),
    ));
    let quotients: [(_, Quotient<RejectionRun>); 4] =
        [
            ("as stated, from the first success on: #U/#S over log(4rMΔ̄/ε)/log ν", |run| &run.stated),
            ("corrected: #U over min{(#S+1)·log(ν₁rMΔ̄/ε), #S·log ν₂ + log(Δ₀/Δ_min)}/log ν₁", |run| &run.corrected),
            ("rejections in a row over log(ν₁rMΔ̄/ε)/log ν₁", |run| &run.row),
            ("radius: the bound min(Δ₀, ε/(ν₁rM)) over the least Δ_k", |run| &run.radius),
        ];
    out.checks.extend(quotients.map(|(name, quotient)| Check::at_most(name, worst(quotient), 1.0, of.clone())));
    out.figures.extend(figures(runs));
    out.tables.push(table(runs, c));
    let least_slack = |of: fn(&RejectionRun) -> f64| least(runs.iter().map(|(_, run)| of(run)));
    out.findings.push(format!(
        "The lemma's ε bounds the mini-batch gradients ‖g_k‖ from below, not the tolerance on ∇f: on interpolating problems the two are \
         unrelated, and ε is taken from the run. Its 4 is the factor ν₁ by which the radius shrinks; its M = L needs L ≥ 1 and is (1 + L)/2 \
         in general; rejections before the first success must be added: without them the lemma fails for the first K of every run that starts with a \
         rejection. The quality of the bound depends on ε. These runs converge, and because of log(1/ε) the bound at the end is at least {:.0} times #U/#S; at the K where it is \
         closest, it is {:.1} times. A sharper bound does not need ε in the limit: a rejection divides Δ by ν₁, an acceptance multiplies it by at most ν₂, so \
         there are at most log ν₂/log ν₁ rejections for each success, and a constant. The factor log(1/ε) of Theorem 1 can be dropped.",
        least_slack(|run| run.slack_at_end),
        least_slack(|run| 1.0 / run.stated.quotient())
    ));
    out
}

fn figures(runs: &[(&RegionConfig, RejectionRun)]) -> [Shown; 2] {
    [
        (
            "stated",
            "Rejections per success, and the bound of the lemma",
            (("bound of #U/#S", true), ("measured #U/#S", false)),
            "A mark a run, at the K from the first success on at which #U/#S is nearest to the bound. Before the first success #U/#S has no value, and where the first \
             step was rejected no bound of it can hold.",
            (|run: &RejectionRun| &run.stated) as Quotient<RejectionRun>,
        ),
        (
            "corrected",
            "Rejections, and the sharper bound",
            (("bound of #U", true), ("measured #U", true)),
            "A mark a run, at the K at which #U is nearest to the bound; runs without a rejection have none. All are below the line. Counting how the radius goes down and up leaves \
             little room where rejections are many: #U/#S tends to at most log ν₂/log ν₁, whatever ε.",
            |run: &RejectionRun| &run.corrected,
        ),
    ]
    .map(|(stem, title, axes, caption, of)| {
        Shown::new(
            format!("theory-rejections-{stem}"),
            caption,
            Figure::new(title, axes.0, axes.1, cloud(runs, of)),
        )
    })
}

fn table(runs: &[(&RegionConfig, RejectionRun)], c: &RejectionsConfig) -> Table {
    let mut rows = Vec::new();
    for &shrink in &c.shrink {
        for &grow in &c.grow {
            let mine: Vec<&RejectionRun> = runs
                .iter()
                .filter(|(r, _)| r.shrink.to_bits() == shrink.to_bits() && r.grow.to_bits() == grow.to_bits())
                .map(|(_, run)| run)
                .collect();
            let most = |of: fn(&RejectionRun) -> f64| largest(mine.iter().map(|run| of(run)));
            let least = |of: fn(&RejectionRun) -> f64| least(mine.iter().map(|run| of(run)));
            rows.push(vec![
                format!("ν₁ = {shrink}, ν₂ = {grow}"),
                format!("{:.2}", most(|run| run.ratio)),
                format!("{:.2}", f64::ln(grow) / f64::ln(shrink)),
                format!("{:.2}", least(|run| run.limit)),
                format!("{:.1}", least(|run| run.slack_at_end)),
                format!("{:.1}", least(|run| 1.0 / run.stated.quotient())),
                format!("{} of {}", mine.iter().filter(|run| run.before_success > 0).count(), mine.len()),
            ]);
        }
    }
    Table::new(
        "For each pair of factors: the largest #U/#S at the end of a run, its limit log ν₂/log ν₁ and the smallest sharper bound there; the lemma's bound divided by #U/#S, \
                  at the end, where ε is smallest, and at the K where it is closest; and the runs that start with a rejection.",
        "factors | largest #U/#S | log ν₂/log ν₁ | least sharper bound | lemma, at the end: times | lemma, at the closest K: times | start with a rejection",
        rows,
    )
}

/// A mark for every run, and the line where the measured value equals the bound.
fn cloud(runs: &[(&RegionConfig, RejectionRun)], of: Quotient<RejectionRun>) -> Vec<Series> {
    let series = LOSSES.iter().enumerate().map(|(i, (name, _))| {
        let mine = runs.iter().filter(|(_, run)| run.problem == i).map(|(_, run)| of(run));
        Series::dots(*name, i, mine.map(|at| (at.bound, at.measured)))
    });
    let ends = runs.iter().map(|(_, run)| of(run).bound).filter(|bound| *bound > 0.0 && bound.is_finite());
    let (low, high) = ends.fold((f64::INFINITY, 0.0_f64), |(a, b), x| (a.min(x), b.max(x)));
    // If only one axis is logarithmic, this is a curve.
    let equal = (0..=60).map(|i| low * (high / low).powf(f64::from(i) / 60.0)).map(|bound| (bound, bound));
    let most = largest(runs.iter().map(|(_, run)| of(run).measured));
    let equal: Vec<_> = equal.take_while(|(bound, _)| *bound <= 2.0 * most).collect();
    // If every bound is far above the measured values, there is nothing to draw.
    let equal = (equal.len() > 1).then(|| Series::line("measured = bound", 6, equal));
    series.chain(equal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold_at_every_number_of_steps() {
        let region = RegionConfig { initial_radius: 80.0, shrink: 4.0, grow: 1.5, ..Default::default() };
        let runs: Vec<RejectionRun> = (0..10).map(|seed| one(0, &region, 300, seed).unwrap()).collect();
        for run in &runs {
            // The bound at the closest K is closer than at the last K, where ε is smallest.
            assert!(1.0 / run.stated.quotient() < run.slack_at_end && run.stated.quotient() <= 1.0);
            assert!(run.corrected.quotient() <= 1.0 && run.row.quotient() <= 1.0 && run.radius.quotient() <= 1.0);
        }
        let late = runs.iter().filter(|run| run.before_success > 0).count();
        assert!(late > 0, "some runs must start with a rejection");
        let runs: Vec<_> = runs.into_iter().map(|run| (&region, run)).collect();
        let check = &report(&runs, &RejectionsConfig::default()).checks[0];
        assert!(!check.holds && (check.measured - late as f64).abs() < 1e-12, "{check:?}");
    }

    #[test]
    fn the_larger_quotient_is_kept_and_nan_counts_as_the_largest() {
        let mut at = MeasuredAndBound::default();
        at.meet(0.0, 0.0);
        assert!(at.quotient() == 0.0);
        at.meet(1.0, 2.0);
        at.meet(1.0, 4.0);
        assert!((at.quotient() - 0.5).abs() < 1e-15);
        // A negative bound is exceeded; a NaN bound does not hold.
        at.meet(1.0, -2.0);
        assert!(at.quotient() > 1e300);
        at.meet(1.0, f64::NAN);
        at.meet(1.0, 4.0);
        assert!(at.quotient().is_nan());
    }
}
