//! #U/#S against its bounds, over problems and constants of the trust region.

use super::{
    Findings, Tick, check_list,
    problems::{Linear, Loss, dots, figure, line, normal, normals},
};
use crate::{
    Error,
    section::{Check, Shown, Table},
};
use strust::{
    diagnostics::{Iterations, bounds},
    prelude::*,
};

strust::config! {
    /// Settings of the experiment on rejections.
    pub struct RejectionsConfig for "rejections" {
        /// Steps of every run.
        pub steps: u64 = 2000, Whole(Range::closed(1.0, 1e9));
        /// Thresholds c₀ of acceptance; c₁ is the same.
        pub accept_above: Vec<f64> = vec![0.05, 0.3], Text("a list of numbers");
        /// Thresholds c₂ of growth.
        pub grow_above: Vec<f64> = vec![0.5, 0.9], Text("a list of numbers");
        /// Factors ν₁ of shrinking.
        pub shrink: Vec<f64> = vec![1.5, 2.0, 4.0], Text("a list of numbers");
        /// Factors ν₂ of growing.
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

/// What one run showed.
struct Ran {
    problem: usize,
    measured: f64,
    as_stated: f64,
    corrected: f64,
    radius: (f64, f64),
    row: (f64, f64),
}

const PROBLEMS: [(&str, Loss); 3] =
    [("least squares", Loss::Square), ("logistic", Loss::Logistic), ("bounded loss, not convex", Loss::Bounded)];

fn one(problem: usize, region: &StrConfig, steps: u64, seed: u64) -> Result<Ran, Error> {
    let mut f = Linear::random(40, 10, [0.5, 10.0], PROBLEMS[problem].1, seed);
    let steepest = f.lipschitz().into_iter().fold(0.0, f64::max);
    let (mut method, mut sampler) = (Str::new(region.clone())?, WithReplacement::new(40, 1, seed)?);
    let mut next = normals(seed + (1 << 40));
    let mut state = method.init(&mut f, normal(10, &mut next))?;
    let (mut sample, mut seen) = (Sample::default(), Iterations::default());
    for k in 0..steps {
        sampler.draw(k, &mut sample);
        seen.add(&method.step(&mut f, &mut state, &sample)?);
        // Below, the reductions are rounding errors and no lemma speaks of them.
        if seen.least_gradient < 1e-10 {
            break;
        }
    }
    let epsilon = seen.least_gradient;
    Ok(Ran {
        problem,
        measured: seen.ratio(),
        as_stated: bounds::unsuccessful_ratio_as_stated(region, steepest, epsilon),
        corrected: seen.unsuccessful_bound(region, steepest) / seen.successful as f64,
        radius: (seen.least_radius, seen.radius_bound(region, steepest)),
        row: (seen.longest_rejection as f64, bounds::rejections_in_a_row(region, steepest, epsilon)),
    })
}

pub(super) fn run(c: &RejectionsConfig, seeds: u64, tick: &mut Tick) -> Result<Findings, Error> {
    let mut regions = Vec::new();
    for &accept_above in &c.accept_above {
        for &grow_above in c.grow_above.iter().filter(|&&above| above >= accept_above) {
            for &shrink in &c.shrink {
                for &grow in &c.grow {
                    for &max_radius in &c.max_radius {
                        let initial_radius = max_radius;
                        let shrink_below = accept_above;
                        regions.push(StrConfig {
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
    }
    tick.expect(seeds * (regions.len() * PROBLEMS.len()) as u64);
    let mut runs = Vec::new();
    for region in &regions {
        for problem in 0..PROBLEMS.len() {
            for seed in 0..seeds {
                runs.push((region, one(problem, region, c.steps, seed)?));
                tick.done()?;
            }
        }
    }
    Ok(report(&runs, c))
}

fn report(runs: &[(&StrConfig, Ran)], c: &RejectionsConfig) -> Findings {
    let mut out = Findings::default();
    let all = runs.len();
    let worst = |share: &dyn Fn(&Ran) -> f64| runs.iter().map(|(_, run)| share(run)).fold(0.0, f64::max);
    let over = |excess: &dyn Fn(&Ran) -> bool| runs.iter().filter(|(_, run)| excess(run)).count();
    let of = format!("the largest quotient over {all} runs of {} steps, with ε the least ‖g_k‖ of each run", c.steps);
    let stated = over(&|run| run.measured > run.as_stated);
    out.checks.push(Check::at_most(
        "as stated: #U/#S over log(4rMΔ̄/ε)/log ν",
        worst(&|run| run.measured / run.as_stated),
        1.0,
        format!("{of}; exceeded in {stated} runs"),
    ));
    out.checks.push(Check::at_most(
        "corrected: #U over min{(#S+1)·log(ν₁rMΔ̄/ε), #S·log ν₂ + log(Δ₀/Δ_min)}/log ν₁",
        worst(&|run| run.measured / run.corrected),
        1.0,
        of.clone(),
    ));
    out.checks.push(Check::at_most(
        "rejections in a row over log(ν₁rMΔ̄/ε)/log ν₁",
        worst(&|run| run.row.0 / run.row.1),
        1.0,
        of.clone(),
    ));
    out.checks.push(Check::at_most(
        "radius: the bound min(Δ₀, ε/(ν₁rM)) over the least Δ_k",
        worst(&|run| run.radius.1 / run.radius.0),
        1.0,
        of,
    ));
    let cloud = |bound: fn(&Ran) -> f64| {
        let series = PROBLEMS.iter().enumerate().map(|(i, (name, _))| {
            let mine = runs.iter().filter(|(_, run)| run.problem == i);
            dots(name, i, mine.map(|(_, run)| (bound(run), run.measured)))
        });
        let ends = runs.iter().map(|(_, run)| bound(run));
        let (low, high) = ends.fold((f64::INFINITY, 0.0_f64), |(a, b), x| (a.min(x), b.max(x)));
        // On a logarithmic axis this is a curve.
        let equal = (0..=60).map(|i| low * (high / low).powf(f64::from(i) / 60.0)).map(|bound| (bound, bound));
        let most = runs.iter().map(|(_, run)| run.measured).fold(0.0, f64::max);
        let equal: Vec<_> = equal.take_while(|(bound, _)| *bound <= 2.0 * most).collect();
        // Where every bound is far above what happens there is nothing to draw.
        let equal = (equal.len() > 1).then(|| line("measured = bound", 6, equal));
        series.chain(equal).collect::<Vec<_>>()
    };
    for (stem, title, bound) in [
        ("stated", "Rejections over successes, against the lemma", (|run: &Ran| run.as_stated) as fn(&Ran) -> f64),
        ("corrected", "Rejections over successes, against the sharper bound", |run: &Ran| run.corrected),
    ] {
        let axes = (("bound of #U/#S", true), ("measured #U/#S", false));
        out.figures.push(Shown {
            stem: format!("theory-rejections-{stem}"),
            caption: format!(
                "A mark a run. {}",
                if stem == "stated" {
                    "Every bound is far above what was measured: the lemma takes the longest possible row of rejections after every success."
                } else {
                    "All are below the line. Counting how the radius goes down and up leaves little room: #U/#S tends to at most log ν₂/log ν₁, whatever ε."
                }
            ),
            figure: figure(title, axes.0, axes.1, cloud(bound)),
        });
    }
    let mut rows = Vec::new();
    for &shrink in &c.shrink {
        for &grow in &c.grow {
            let mine: Vec<&Ran> = runs
                .iter()
                .filter(|(r, _)| r.shrink.to_bits() == shrink.to_bits() && r.grow.to_bits() == grow.to_bits())
                .map(|(_, run)| run)
                .collect();
            let most = |of: fn(&Ran) -> f64| mine.iter().map(|run| of(run)).fold(0.0, f64::max);
            let least = |of: fn(&Ran) -> f64| mine.iter().map(|run| of(run)).fold(f64::INFINITY, f64::min);
            rows.push(vec![
                format!("ν₁ = {shrink}, ν₂ = {grow}"),
                format!("{:.2}", most(|run| run.measured)),
                format!("{:.2}", f64::ln(grow) / f64::ln(shrink)),
                format!("{:.2}", least(|run| run.corrected)),
                format!("{:.1}", least(|run| run.as_stated)),
            ]);
        }
    }
    out.tables.push(Table {
        caption: "The largest #U/#S measured for each pair of factors, its limit log ν₂/log ν₁, and the least value of both bounds.".into(),
        header: ["factors", "largest #U/#S", "log ν₂/log ν₁", "least sharper bound", "least bound of the lemma"].map(String::from).to_vec(),
        rows,
    });
    out.text.push(
        "The lemma's ε bounds the mini-batch gradients ‖g_k‖ from below, not the tolerance on ∇f: on interpolating problems the two have nothing to \
         do with each other, and ε is taken from the run. Its 4 is the factor ν₁ by which the radius shrinks; its M = L needs L ≥ 1 and is (1 + L)/2 \
         in general; rejections before the first success have to be added. A sharper bound needs none of this in the limit: a rejection divides Δ \
         by ν₁, an acceptance multiplies it by at most ν₂, so there are at most log ν₂/log ν₁ rejections for each success, and a constant. The factor \
         log(1/ε) of Theorem 1 can be dropped."
            .into(),
    );
    out
}
