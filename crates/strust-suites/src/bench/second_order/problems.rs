//! The problems of the comparison, and the runs of our methods.

use crate::bench::BenchProgress;
use serde::Serialize;
use std::{
    path::{Path, PathBuf},
    time::Instant,
};
use strust::{
    methods::{StrLbfgs, StrNewton},
    objective::{Evaluation, ObjectiveWrapper},
    prelude::*,
    vector::Elementwise,
};
use strust_data::read_labeled;
use strust_problems::{Problem, second_order, unconstrained::all_problems};

/// The gradient norm, over max(1, |f|), where a problem is solved.
const TOLERANCE: f64 = 1e-8;
/// The most steps of a run, as for SciPy.
const MOST_STEPS: u64 = 3000;
/// The shortest of so many runs counts.
const RUNS: usize = 3;
/// The data sets of logistic regression.
const DATA_SETS: [&str; 2] = ["a9a", "mushrooms"];
/// Residuals that are differences of numbers of size 1e4, with derivatives of size 1e6: the gradient stays above 1e-8.
/// Here f must be the minimum to 1e-8.
const BY_VALUE: &str = "meyer";

/// The run of one method.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SolverRun {
    pub solved: bool,
    pub steps: u64,
    pub products: u64,
    pub seconds: f64,
}

/// The runs on one problem.
#[derive(Serialize)]
pub struct NewtonRuns {
    pub variables: usize,
    /// Whether f within 1e-8 of its minimum counts as solved, because rounding forbids a small gradient.
    pub by_value: bool,
    pub str_newton: SolverRun,
    pub str_lbfgs: SolverRun,
}

/// A problem that is not solved yet.
pub struct SolverTask {
    pub name: String,
    pub run: Box<dyn FnOnce() -> Result<NewtonRuns, Error>>,
}

impl SolverTask {
    fn new<P: Problem + 'static>(name: impl Into<String>, f: P) -> Self {
        let name = name.into();
        let minimum = (name == BY_VALUE).then(|| f.optimum()).flatten();
        let start = f.start(0);
        // The methods are compiled once for each type of point, not for each problem.
        Self { name, run: Box::new(move || runs(Solvable { f: Box::new(f), minimum, solved: false }, &start)) }
    }
}

/// Whether f is its minimum to 1e-8.
pub fn is_minimum(value: f64, minimum: f64) -> bool {
    (value - minimum).abs() <= TOLERANCE * minimum.abs()
}

/// Whether rounding forbids a small gradient: then f must be this minimum.
pub fn minimum_of(name: &str) -> Option<f64> {
    all_problems().into_iter().find(|p| p.name == name && name == BY_VALUE).and_then(|p| p.optimum())
}

/// All problems, those with data only if the folder has it.
pub fn tasks(data: Option<&Path>, progress: &dyn BenchProgress) -> Result<Vec<SolverTask>, strust_lab::Error> {
    let mut tasks: Vec<_> = all_problems().into_iter().map(|p| SolverTask::new(p.name.clone(), p)).collect();
    for (name, condition) in second_order::CONDITIONS {
        tasks.push(SolverTask::new(name, second_order::conditioned_least_squares(condition)?));
    }
    tasks.push(SolverTask::new("factorization", second_order::low_rank_factorization()?));
    tasks.push(SolverTask::new("softmax-digits", second_order::softmax_on_digits()?));
    tasks.push(SolverTask::new("mlp-digits", second_order::mlp_on_digits()?));
    for (folder, name) in data.iter().flat_map(|folder| DATA_SETS.map(|name| (folder, name))) {
        let Some(file) = data_file(folder, name) else {
            progress.warn(&format!("{} has no {name}.xz: logistic-{name} is left out", folder.display()));
            continue;
        };
        let f = second_order::regularized_logistic(read_labeled(&file)?)?;
        tasks.push(SolverTask::new(format!("logistic-{name}"), f));
    }
    Ok(tasks)
}

/// The names of all problems, with data or without.
pub fn names() -> Vec<String> {
    let larger = ["factorization", "softmax-digits", "mlp-digits"].map(String::from);
    let small = all_problems().into_iter().map(|p| p.name);
    let conditioned = second_order::CONDITIONS.map(|(name, _)| name.to_string());
    small.chain(conditioned).chain(larger).chain(DATA_SETS.map(|name| format!("logistic-{name}"))).collect()
}

/// NAME.xz in the folder or in its folder libsvm.
fn data_file(folder: &Path, name: &str) -> Option<PathBuf> {
    let file = format!("{name}.xz");
    [folder.join(&file), folder.join("libsvm").join(file)].into_iter().find(|file| file.is_file())
}

/// A problem that notices where it is solved. There its gradient becomes 0, which ends the last step without products.
struct Solvable<V> {
    f: Box<dyn Objective<Point = V>>,
    minimum: Option<f64>,
    solved: bool,
}

impl<V: Vector> ObjectiveWrapper for Solvable<V> {
    type Inner = dyn Objective<Point = V>;
    fn wrapped(&self) -> &Self::Inner {
        &*self.f
    }
    fn wrapped_mut(&mut self) -> &mut Self::Inner {
        &mut *self.f
    }
    fn value_and_gradient(this: &mut Self, x: &V, sample: &Sample, gradient: &mut V) -> Evaluation {
        let at = this.f.value_and_gradient(x, sample, gradient);
        let small = gradient.norm() <= TOLERANCE * at.value.abs().max(1.0);
        if small || this.minimum.is_some_and(|minimum| is_minimum(at.value, minimum)) {
            this.solved = true;
            gradient.set_zero();
        }
        at
    }
}

fn runs<V: Elementwise>(mut f: Solvable<V>, start: &V) -> Result<NewtonRuns, Error> {
    let mut str_newton = solve(&mut f, StrNewton::default(), start)?;
    for _ in 1..RUNS {
        str_newton.seconds = solve(&mut f, StrNewton::default(), start)?.seconds.min(str_newton.seconds);
    }
    let str_lbfgs = solve(&mut f, StrLbfgs::default(), start)?;
    Ok(NewtonRuns { variables: start.dimension(), by_value: f.minimum.is_some(), str_newton, str_lbfgs })
}

fn solve<V, M>(f: &mut Solvable<V>, mut method: M, start: &V) -> Result<SolverRun, Error>
where
    V: Vector,
    M: Method<Solvable<V>>,
{
    f.solved = false;
    let all = Sample::range(0..f.terms());
    let mut products = 0;
    let began = Instant::now();
    let mut state = method.init(f, start.clone())?;
    for steps in 0..=MOST_STEPS {
        // The point before this step is that after `steps` steps.
        let made = method.step(f, &mut state, &all)?.evaluations.products;
        if f.solved || steps == MOST_STEPS {
            return Ok(SolverRun { solved: f.solved, steps, products, seconds: began.elapsed().as_secs_f64() });
        }
        products += made;
    }
    unreachable!("the last step returns")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows nothing.
    struct Nobody;

    impl BenchProgress for Nobody {
        fn say(&self, _: String) {}
        fn warn(&self, _: &str) {}
    }

    fn solved(name: &str) -> NewtonRuns {
        let task = tasks(None, &Nobody).unwrap().into_iter().find(|task| task.name == name).unwrap();
        (task.run)().unwrap()
    }

    #[test]
    fn a_quadratic_takes_few_steps_with_many_products() {
        let NewtonRuns { variables, by_value, str_newton, str_lbfgs } = solved("least-squares-1e4");
        assert_eq!((variables, by_value), (100, false));
        assert!(str_newton.solved && str_newton.steps < 40 && str_newton.products > 100, "{str_newton:?}");
        assert!(str_lbfgs.solved && str_lbfgs.products == 0 && str_lbfgs.steps > str_newton.steps, "{str_lbfgs:?}");
    }

    #[test]
    fn every_problem_without_data_has_its_name_in_the_list() {
        let found: Vec<_> = tasks(None, &Nobody).unwrap().into_iter().map(|task| task.name).collect();
        let names = names();
        let (without_data, with_data) = names.split_at(found.len());
        assert_eq!(found, without_data);
        assert_eq!(with_data, ["logistic-a9a", "logistic-mushrooms"]);
    }

    #[test]
    fn rounding_forbids_a_small_gradient_only_for_meyer() {
        let runs = solved("meyer");
        assert!(runs.by_value && runs.str_newton.solved && runs.str_newton.steps < 3000, "{:?}", runs.str_newton);
        assert!(minimum_of("meyer").is_some_and(|minimum| is_minimum(minimum * (1.0 + 5e-9), minimum)));
        assert_eq!(minimum_of("beale"), None);
    }

    #[test]
    fn data_sets_are_found_in_the_folder_or_in_libsvm() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(data_file(folder.path(), "a9a"), None);
        std::fs::create_dir(folder.path().join("libsvm")).unwrap();
        let file = folder.path().join("libsvm/a9a.xz");
        std::fs::write(&file, "").unwrap();
        assert_eq!(data_file(folder.path(), "a9a"), Some(file));
    }
}
