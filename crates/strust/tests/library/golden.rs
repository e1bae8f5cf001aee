//! The baselines against public implementations: every iterate of runs that `scripts/golden_baselines.py` made.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use strust::{
    methods::{Averaged, AveragedConfig},
    prelude::*,
    schedule::Schedule,
    vector::Vector,
};
use strust_baselines::{Adam, DoG, Ponos, Prodigy, ScheduleFreeAdamW, ScheduleFreeSgd, Sgd};

#[derive(Deserialize)]
struct Golden {
    problem: String,
    rows: Vec<Vec<f64>>,
    targets: Vec<f64>,
    start: Vec<f64>,
    batches: Vec<Vec<usize>>,
    runs: Vec<GoldenRun>,
}

#[derive(Deserialize)]
struct GoldenRun {
    method: String,
    config: Value,
    schedule: Schedule,
    /// The power of the weights, if the answer is the average.
    average: Option<f64>,
    /// The answer after every step.
    points: Vec<Vec<f64>>,
}

impl GoldenRun {
    fn config<C: DeserializeOwned>(&self) -> C {
        serde_json::from_value(self.config.clone()).expect("the script writes our names")
    }
    fn name(&self) -> String {
        format!("{} {} {:?} average {:?}", self.method, self.config, self.schedule, self.average)
    }
}

impl Golden {
    fn objective(&self) -> impl Objective<Point = Vec<f64>> {
        let (rows, targets) = (self.rows.clone(), self.targets.clone());
        let logistic = self.problem == "logistic";
        from_terms(rows.len(), move |i, x: &Vec<f64>, g| {
            let (a, b) = (&rows[i], targets[i]);
            let (value, slope) = if logistic {
                let margin = b * a.dot(x);
                ((-margin).exp().ln_1p(), -b / (1.0 + margin.exp()))
            } else {
                let residual = a.dot(x) - b;
                (0.5 * residual * residual, residual)
            };
            g.add(slope, a);
            value
        })
    }

    /// The largest error of an answer, relative to its distance from the start.
    fn error<M: Method<F>, F: Objective<Point = Vec<f64>>>(&self, run: &GoldenRun, f: &mut F, mut method: M) -> f64 {
        let mut state = method.init(f, self.start.clone()).unwrap();
        assert_eq!(run.points.len(), self.batches.len());
        let mut largest = 0.0_f64;
        for (k, (batch, golden)) in (0..).zip(self.batches.iter().zip(&run.points)) {
            method.step(f, &mut state, &Sample::new(batch.clone(), k)).unwrap();
            let distance = |a: &Vec<f64>, b: &Vec<f64>| {
                let mut difference = a.clone();
                difference.add(-1.0, b);
                difference.norm()
            };
            // Near the start, x can be compared only up to its own rounding.
            let rounding = 4.0 * f64::EPSILON * golden.norm();
            let error = (distance(state.point(), golden) - rounding).max(0.0);
            largest = largest.max(error / distance(golden, &self.start));
        }
        largest
    }

    fn error_averaged<M: Method<F>, F: Objective<Point = Vec<f64>>>(
        &self,
        run: &GoldenRun,
        f: &mut F,
        method: M,
    ) -> f64 {
        match run.average {
            Some(power) => self.error(run, f, Averaged::new(AveragedConfig { power }, method).unwrap()),
            None => self.error(run, f, method),
        }
    }

    fn check(&self) {
        let mut f = self.objective();
        let mut seen = std::collections::BTreeSet::new();
        for run in &self.runs {
            seen.insert(run.method.as_str());
            let f = &mut f;
            let s = run.schedule;
            let error = match run.method.as_str() {
                "sgd" => self.error_averaged(run, f, Sgd::new(run.config()).unwrap().schedule(s)),
                "adam" => self.error_averaged(run, f, Adam::new(run.config()).unwrap().schedule(s)),
                "prodigy" => self.error_averaged(run, f, Prodigy::new(run.config()).unwrap().schedule(s)),
                "dog" => self.error_averaged(run, f, DoG::new(run.config()).unwrap().schedule(s)),
                "schedule-free-sgd" => {
                    self.error_averaged(run, f, ScheduleFreeSgd::new(run.config()).unwrap().schedule(s))
                }
                "schedule-free-adamw" => {
                    self.error_averaged(run, f, ScheduleFreeAdamW::new(run.config()).unwrap().schedule(s))
                }
                "ponos" => self.error_averaged(run, f, Ponos::new(run.config()).unwrap()),
                name => panic!("the script has a method `{name}` that is not compared"),
            };
            assert!(error < 1e-12, "{} on {}: {error:e}", run.name(), self.problem);
        }
        assert_eq!(seen.len(), 7, "{seen:?}");
    }
}

#[test]
fn the_baselines_repeat_every_iterate_of_public_implementations_on_least_squares() {
    serde_json::from_str::<Golden>(include_str!("../golden/least-squares.json")).unwrap().check();
}

#[test]
fn the_baselines_repeat_every_iterate_of_public_implementations_on_a_logistic_problem() {
    serde_json::from_str::<Golden>(include_str!("../golden/logistic.json")).unwrap().check();
}
