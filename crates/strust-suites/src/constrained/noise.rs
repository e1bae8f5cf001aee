//! STR-SQP with noisy gradients.

use super::{section, settings::ConstrainedSettings};
use crate::{prelude::*, sqp::str_sqp, theory::normals};
use strust::{
    kkt::{kkt, least_squares_multipliers},
    prelude::*,
};
use strust_lab::{Error, statistics::quantile};
use strust_problems::constrained::{ConstrainedProblem, equality_problems};

/// The variance σ² of every component of a gradient, and the bound of the median KKT residual after [`BOUND_STEPS`]
/// steps: what a prototype of this method reached.
const LEVELS: [(f64, f64); 4] = [(1e-8, 4e-6), (1e-4, 4e-4), (1e-2, 4e-3), (1e-1, 1e-2)];
/// The steps to which the bounds belong.
pub(super) const BOUND_STEPS: u64 = 2000;
/// The first so many equality problems.
const PROBLEMS: usize = 10;
/// Terms of the objective.
const TERMS: usize = 1000;

/// The vectors ξᵢ, one for each term: their mean is 0, and the mean square of every component is 1.
fn disturbances(d: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut next = normals(seed);
    let mut all: Vec<Vec<f64>> = (0..TERMS).map(|_| (0..d).map(|_| next()).collect()).collect();
    for j in 0..d {
        let mean = all.iter().map(|xi| xi[j]).sum::<f64>() / TERMS as f64;
        let square = all.iter().map(|xi| (xi[j] - mean).powi(2)).sum::<f64>() / TERMS as f64;
        for xi in &mut all {
            xi[j] = (xi[j] - mean) / square.sqrt();
        }
    }
    all
}

/// The mean of the terms f(x) + σξᵢᵀx. On all terms it is f(x), up to rounding.
fn noisy(problem: &ConstrainedProblem, sigma: f64, seed: u64) -> impl Objective<Point = Vec<f64>> {
    let disturbances = disturbances(problem.start.len(), seed);
    from_fn(TERMS, move |x: &Vec<f64>, sample: &Sample, gradient: Option<&mut Vec<f64>>| {
        let mut mean = vec![0.0; x.len()];
        for &i in sample.indices() {
            mean.add(sigma / sample.len() as f64, &disturbances[i]);
        }
        if let Some(gradient) = gradient {
            *gradient = problem.gradient(x);
            gradient.add(1.0, &mean);
        }
        problem.value(x) + mean.dot(x)
    })
}

/// The KKT residual at the end of a run: on f itself, with least-squares multipliers.
fn residual(problem: &ConstrainedProblem, sigma: f64, steps: u64, seed: u64) -> Result<f64, Error> {
    let mut f = noisy(problem, sigma, seed);
    let sampler = WithReplacement::over(&f).batch(1).seed(seed);
    let mut constraint = problem.constraint();
    let config = StrSqpConfig::default();
    let report = str_sqp(&mut f, &mut constraint, config, Some(sampler), steps, problem.start.clone())?;
    let x = report.point();
    let multipliers = least_squares_multipliers(&mut constraint, x, &problem.gradient(x));
    Ok(kkt(&mut problem.objective(), &mut constraint, x, &multipliers).kkt())
}

/// Runs every level of noise.
pub(super) fn run(settings: &ConstrainedSettings, tick: &mut Tick) -> Result<CheckResults, Error> {
    let problems: Vec<ConstrainedProblem> = equality_problems().into_iter().take(PROBLEMS).collect();
    tick.expect(LEVELS.len() as u64 * problems.len() as u64 * settings.noise_seeds);
    let mut levels = Vec::new();
    for (variance, _) in LEVELS {
        let mut residuals = Vec::new();
        for problem in &problems {
            for seed in 0..settings.noise_seeds {
                residuals.push(residual(problem, variance.sqrt(), settings.noise_steps, seed)?);
                tick.done()?;
            }
        }
        levels.push(residuals);
    }
    let names: Vec<&str> = problems.iter().map(|problem| problem.name).collect();
    Ok(CheckResults { problems: Vec::new(), section: show(&names, settings, &levels) })
}

/// The section of the residuals: of every level, and there of every problem and seed.
fn show(names: &[&str], settings: &ConstrainedSettings, levels: &[Vec<f64>]) -> Section {
    let ConstrainedSettings { noise_seeds, noise_steps, .. } = *settings;
    let quartiles = |residuals: &[f64]| [0.25, 0.5, 0.75].map(|share| quantile(residuals, share));
    let row = |(&(variance, bound), residuals): (&(f64, f64), &Vec<f64>)| {
        let [low, median, high] = quartiles(residuals);
        vec![brief(variance), brief(low), brief(median), brief(high), brief(bound)]
    };
    let of_problem = |i: usize| {
        let seeds = noise_seeds as usize;
        let median = |residuals: &Vec<f64>| quantile(&residuals[i * seeds..(i + 1) * seeds], 0.5);
        std::iter::once(names[i].to_string()).chain(levels.iter().map(|level| brief(median(level)))).collect()
    };
    let check = |(&(variance, bound), residuals): (&(f64, f64), &Vec<f64>)| {
        let name = format!("σ² = {}: median KKT residual", brief(variance));
        if noise_steps == BOUND_STEPS {
            let why = format!("over {} runs of {noise_steps} steps", residuals.len());
            Check::at_most(name, quantile(residuals, 0.5), bound, why)
        } else {
            Check::open(name, bound, format!("the bound is that of {BOUND_STEPS} steps, not of {noise_steps}"))
        }
    };
    let points = |of: &dyn Fn(&[f64]) -> f64| LEVELS.iter().zip(levels).map(|((v, _), r)| (*v, of(r))).collect();
    let medians: Vec<(f64, f64)> = points(&|residuals| quantile(residuals, 0.5));
    let level_names = LEVELS.iter().map(|(variance, _)| format!("σ² = {}", brief(*variance)));
    Section {
        findings: vec![format!(
            "The median KKT residual grows with the {} power of σ².",
            fixed(power(medians.iter().copied()), 2)
        )],
        figures: vec![figure(levels)],
        tables: vec![
            Table::new(
                format!("KKT residuals after {noise_steps} steps, over {} runs", levels[0].len()),
                "σ² | lower quartile | median | upper quartile | claimed",
                LEVELS.iter().zip(levels).map(row).collect(),
            ),
            Table::new("The median over seeds on every problem", "problem", (0..names.len()).map(of_problem).collect())
                .and_columns(level_names),
        ],
        checks: LEVELS.iter().zip(levels).map(check).collect(),
        ..section(
            "noise",
            "Noisy gradients",
            &format!(
                "STR-SQP with its default on the first {} equality problems, for {noise_steps} steps on mini-batches of \
                 one term. The objective is the mean of {TERMS} terms f(x) + σξᵢᵀx. The ξᵢ are normal numbers with mean \
                 0 and variance 1 in every component, so a gradient has the variance σ² in every component, and the mean \
                 over all terms is f. Terms are drawn with replacement. The KKT residual is the larger of ‖∇f + Jᵀλ‖ and \
                 ‖c‖ at the answer, without noise and with least-squares multipliers.",
                names.len()
            ),
        )
    }
}

fn figure(levels: &[Vec<f64>]) -> Shown {
    let measured = LEVELS.iter().zip(levels).map(|((variance, _), residuals)| {
        let [low, y, high] = [0.25, 0.5, 0.75].map(|share| quantile(residuals, share));
        Point { x: *variance, y, low, high }
    });
    Shown::new(
        "noise",
        "The KKT residual against the variance of every component of a gradient: median and quartiles over \
                  problems and seeds.",
        Figure::new(
            "Noisy gradients",
            ("variance σ²", true),
            ("KKT residual", true),
            vec![
                Series { name: "str-sqp".into(), color: 0, points: measured.collect() },
                Series::line("claimed", 1, LEVELS),
            ],
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use strust::objective::full_value_and_gradient;

    #[test]
    fn the_mean_of_all_terms_is_f_and_a_gradient_has_the_variance_in_every_component() {
        let problem = &equality_problems()[0];
        let (x, sigma) = (&problem.start, 0.5);
        let mut f = noisy(problem, sigma, 3);
        let mut gradient = vec![0.0; x.len()];
        let value = full_value_and_gradient(&mut f, x, &mut gradient);
        let exact = problem.gradient(x);
        assert!((value - problem.value(x)).abs() < 1e-12 * (1.0 + value.abs()));
        assert!(gradient.iter().zip(&exact).all(|(a, b)| (a - b).abs() < 1e-12 * (1.0 + b.abs())));
        let mut variance = vec![0.0; x.len()];
        for i in 0..TERMS {
            f.value_and_gradient(x, &Sample::range(i..i + 1), &mut gradient);
            for ((sum, g), exact) in variance.iter_mut().zip(&gradient).zip(&exact) {
                *sum += (g - exact).powi(2) / TERMS as f64;
            }
        }
        assert!(variance.iter().all(|v| (v - sigma * sigma).abs() < 1e-9), "{variance:?}");
    }

    #[test]
    fn checks_compare_the_median_with_the_bound_and_are_open_for_other_steps() {
        let levels: Vec<Vec<f64>> = LEVELS.iter().map(|(_, bound)| vec![0.1 * bound, 0.5 * bound, 9.0]).collect();
        let settings = |noise_steps| ConstrainedSettings { starts: 1, noise_seeds: 3, noise_steps };
        let section = show(&["a"], &settings(BOUND_STEPS), &levels);
        assert!(section.checks.iter().all(|check| check.holds));
        assert!((section.checks[1].measured - 2e-4).abs() < 1e-18);
        assert_eq!(section.tables[1].rows[0][2], "2.0e-4");
        assert!(show(&["a"], &settings(50), &levels).checks.iter().all(Check::is_open));
        let point = section.figures[0].figure.series[0].points[0];
        assert!(point.low < point.y && point.y < point.high, "{point:?}");
    }
}
