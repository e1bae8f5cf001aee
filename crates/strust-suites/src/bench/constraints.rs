//! `strust bench constraints`: a step of STR-SQP in a million unknowns, beside the products and gradients in it, and
//! runs with and without products of the Lagrangian's Hessian.

mod products;

use super::{BenchBlock, BenchProgress, BenchResults, table};
use products::{LagrangianKind, LagrangianPair, LagrangianRun, PRODUCTS};
use serde::Serialize;
use std::{
    cell::Cell,
    time::{Duration, Instant},
};
use strust::{
    constraints::{Affine, ConstraintWrapper},
    objective::{Evaluation, ObjectiveWrapper},
    prelude::*,
    samplers::Sampler,
};
use strust_problems::{Problem, SubspaceFit};

/// The first steps are not counted: they allocate.
const WARM_UP: u64 = 2;
const STEPS: u64 = 10;

#[derive(Serialize)]
struct StepCost {
    problem: &'static str,
    /// Milliseconds of a step.
    step_ms: f64,
    /// Milliseconds of it in f and in products with the constraint.
    products_ms: f64,
    /// The number of these products.
    products: u64,
    /// The rest of the step over the time of products and gradients.
    overhead: f64,
}

/// Time spent in some calls, and their number.
#[derive(Default)]
struct Clock {
    time: Cell<Duration>,
    calls: Cell<u64>,
}

impl Clock {
    fn time<R>(&self, call: impl FnOnce() -> R) -> R {
        let began = Instant::now();
        let result = call();
        self.time.set(self.time.get() + began.elapsed());
        self.calls.set(self.calls.get() + 1);
        result
    }
}

/// A constraint whose calls are timed.
struct Timed<'a, C>(C, &'a Clock);

/// An objective whose calls are timed.
struct TimedObjective<'a, F>(F, &'a Clock);

impl<C: Constraint> ConstraintWrapper for Timed<'_, C> {
    type Inner = C;
    fn wrapped(&self) -> &C {
        &self.0
    }
    fn wrapped_mut(&mut self) -> &mut C {
        &mut self.0
    }
    fn residual(this: &mut Self, x: &C::Point, c: &mut C::Residual) {
        this.1.time(|| this.0.residual(x, c));
    }
    fn jvp(this: &mut Self, x: &C::Point, v: &C::Point, out: &mut C::Residual) {
        this.1.time(|| this.0.jvp(x, v, out));
    }
    fn add_vjp(this: &mut Self, x: &C::Point, a: f64, y: &C::Residual, out: &mut C::Point) {
        this.1.time(|| this.0.add_vjp(x, a, y, out));
    }
}

impl<F: Objective> ObjectiveWrapper for TimedObjective<'_, F> {
    type Inner = F;
    fn wrapped(&self) -> &F {
        &self.0
    }
    fn wrapped_mut(&mut self) -> &mut F {
        &mut self.0
    }
    fn value(this: &mut Self, x: &F::Point, sample: &Sample) -> Evaluation {
        this.1.time(|| this.0.value(x, sample))
    }
    fn value_and_gradient(this: &mut Self, x: &F::Point, sample: &Sample, gradient: &mut F::Point) -> Evaluation {
        this.1.time(|| this.0.value_and_gradient(x, sample, gradient))
    }
}

fn measure<F, C>(
    problem: &'static str,
    f: F,
    constraint: C,
    start: F::Point,
    batch: usize,
) -> Result<StepCost, strust::Error>
where
    F: Objective,
    C: Constraint<Point = F::Point>,
{
    let (of_f, of_c) = (Clock::default(), Clock::default());
    // The method is compiled once for each type of point, as in `sqp.rs`. The calls take milliseconds.
    let (mut f, mut constraint) = (TimedObjective(f, &of_f), Timed(constraint, &of_c));
    let mut f: &mut dyn Objective<Point = F::Point> = &mut f;
    let constraint: &mut dyn Constraint<Point = F::Point, Residual = C::Residual> = &mut constraint;
    let mut method = StrSqp::new(StrSqpConfig::default(), constraint)?;
    let mut sampler = Epochs::new(f.terms(), batch, 0)?;
    let mut state = method.init(&mut f, start)?;
    let (mut sample, mut time) = (Sample::default(), Duration::ZERO);
    for k in 0..WARM_UP + STEPS {
        if k == WARM_UP {
            for clock in [&of_f, &of_c] {
                clock.time.take();
                clock.calls.take();
            }
            time = Duration::ZERO;
        }
        sampler.draw(k, &mut sample);
        let began = Instant::now();
        method.step(&mut f, &mut state, &sample)?;
        time += began.elapsed();
    }
    let inside = of_f.time.get() + of_c.time.get();
    let ms = |time: Duration| 1e3 * time.as_secs_f64() / STEPS as f64;
    Ok(StepCost {
        problem,
        step_ms: ms(time),
        products_ms: ms(inside),
        products: of_c.calls.get() / STEPS,
        overhead: time.as_secs_f64() / inside.as_secs_f64() - 1.0,
    })
}

fn rows() -> Result<Vec<StepCost>, strust::Error> {
    let fit = || SubspaceFit::<f64>::spiked(20_000, 50, 500, 0.1, 0);
    let stiefel = |name, batch| {
        let f = fit()?;
        let (start, set) = (f.start(0), f.constraint());
        measure(name, f, set, start, batch)
    };
    let (d, m, terms) = (1_000_000, 100, 16);
    // Waves of different frequencies are almost orthogonal.
    let row = |i: usize| (0..d).map(|j| (0.01 * (i + 1) as f64 * j as f64).sin()).collect::<Vec<f64>>();
    let affine = Affine::new((0..m).map(row).collect(), vec![1.0; m])?;
    let data: Vec<Vec<f64>> = (m..m + terms).map(row).collect();
    let f = from_terms(terms, move |i, x: &Vec<f64>, g: &mut Vec<f64>| {
        let r = data[i].dot(x) - i as f64;
        g.add(r, &data[i]);
        0.5 * r * r
    });
    Ok(vec![
        stiefel("Stiefel, 20000 × 50, batch 32", 32)?,
        stiefel("Stiefel, 20000 × 50, all terms", 500)?,
        measure("100 affine rows, 10⁶ unknowns, batch 4", f, affine, vec![0.0; d], 4)?,
    ])
}

/// The output as JSON.
#[derive(Serialize)]
struct ConstraintResults {
    steps: Vec<StepCost>,
    small: Vec<LagrangianKind>,
    large: Vec<LagrangianPair>,
}

/// STR-SQP: a step in a million unknowns, and runs with and without products of the Lagrangian's Hessian.
pub fn constraints(progress: &dyn BenchProgress) -> Result<BenchResults, strust_lab::Error> {
    progress.say("small problems with and without products".into());
    let small = products::small()?;
    progress.say("larger problems with and without products".into());
    let large = products::large()?;
    progress.say("a step with a million unknowns".into());
    let results = ConstraintResults { steps: rows()?, small, large };
    Ok(BenchResults::new(&results, blocks(&results)))
}

fn blocks(results: &ConstraintResults) -> Vec<BenchBlock> {
    let steps = table(["", "step", "products and f", "products", "overhead"], &results.steps, |cost| {
        let [step, inside] = [cost.step_ms, cost.products_ms].map(|ms| format!("{ms:.0} ms"));
        [cost.problem.into(), step, inside, cost.products.to_string(), format!("{:.0} %", 100.0 * cost.overhead)]
    });
    let columns = ["", "problems", "ended without", "ended with", "same point", "steps", "price"];
    let small = table(columns, &results.small, |kind| {
        let counts = [kind.problems.len(), kind.ended.0, kind.ended.1, kind.same].map(|count| count.to_string());
        let [problems, without, with, same] = counts;
        [kind.kind.into(), problems, without, with, same, format!("{:.2}", kind.steps), format!("{:.2}", kind.price)]
    });
    let count = |run: &LagrangianRun| if run.ended { run.steps.to_string() } else { format!("({})", run.steps) };
    let columns = ["", "steps", "price", "steps with", "products", "price with"];
    let large = table(columns, &results.large, |LagrangianPair { name, without, with }| {
        let [price, price_with] = [without.price, with.price].map(|price| format!("{price:.0}"));
        [name.clone(), count(without), price, count(with), with.products.to_string(), price_with]
    });
    let title = "A step of STR-SQP, and the time of its products with the constraint and of f, f64, one thread";
    let of_small =
        format!("With and without products = {PRODUCTS}: medians of the ratios where both end at the same point");
    let of_large = "The same on larger problems; (…) without a verdict. Price: value 1, gradient 3, product 4";
    vec![BenchBlock::new(title, steps), BenchBlock::new(of_small, small), BenchBlock::new(of_large, large)]
}
