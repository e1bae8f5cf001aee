//! The results of SciPy, from scripts/second-order-reference.py.

use super::problems::{is_minimum, minimum_of, names};
use serde::{Deserialize, Serialize};
use std::path::Path;
use strust_lab::{Error, io::stream::read_saved};

/// The file of the script.
#[derive(Debug, Deserialize)]
pub struct ScipyFile {
    problems: Vec<ScipyProblem>,
}

/// The results on one problem.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ScipyProblem {
    name: String,
    methods: Vec<ScipyRun>,
}

/// The result of one method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScipyRun {
    pub name: String,
    pub solved: bool,
    pub iterations: u64,
    pub products: u64,
    pub value: f64,
    pub seconds: Option<f64>,
}

impl ScipyFile {
    /// Reads the file and checks the names in it.
    pub fn open(file: &Path) -> Result<Self, Error> {
        let failed = |why| Error::saved(file, why);
        let text = read_saved(file).map_err(|e| failed(format!("cannot read: {e}")))?;
        Self::parse(&text).map_err(failed)
    }

    fn parse(text: &[u8]) -> Result<Self, String> {
        let mut read: Self = serde_json::from_slice(text)
            .map_err(|e| format!("this is not a file of scripts/second-order-reference.py: {e}"))?;
        let known = names();
        for ScipyProblem { name, methods } in &mut read.problems {
            if !known.contains(name) {
                return Err(format!("there is no problem `{name}`: write the file again with the script"));
            }
            // The rule of our methods.
            if let Some(minimum) = minimum_of(name) {
                for run in methods {
                    run.solved |= is_minimum(run.value, minimum);
                }
            }
        }
        Ok(read)
    }

    /// Takes the results on a problem out of the file.
    pub fn take(&mut self, name: &str) -> Option<ScipyProblem> {
        let place = self.problems.iter().position(|problem| problem.name == name)?;
        Some(self.problems.swap_remove(place))
    }
}

impl ScipyProblem {
    pub fn method(&self, name: &str) -> Option<&ScipyRun> {
        self.methods.iter().find(|run| run.name == name)
    }
    /// trust-ncg and trust-krylov, if they solve the problem.
    pub fn trust_regions(&self) -> impl Iterator<Item = &ScipyRun> {
        ["trust-ncg", "trust-krylov"].into_iter().filter_map(|name| self.method(name)).filter(|run| run.solved)
    }
    /// The one with fewer iterations, then with fewer products.
    pub fn better(&self) -> Option<&ScipyRun> {
        self.trust_regions().min_by_key(|run| (run.iterations, run.products))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(name: &str, methods: &str) -> String {
        format!(r#"{{"problems": [{{"name": "{name}", "variables": 2, "methods": [{methods}]}}]}}"#)
    }
    fn method(name: &str, solved: bool, iterations: u64, products: u64, value: f64) -> String {
        format!(
            r#"{{"name": "{name}", "solved": {solved}, "iterations": {iterations}, "values": 1, "gradients": 1,
                "products": {products}, "value": {value}, "gradient": 1e-9, "seconds": null}}"#
        )
    }
    fn better(name: &str, methods: &[String]) -> Option<String> {
        let problem = ScipyFile::parse(problem(name, &methods.join(",")).as_bytes()).unwrap().take(name).unwrap();
        problem.better().map(|run| run.name.clone())
    }

    #[test]
    fn the_better_method_solves_the_problem_in_fewer_iterations() {
        let lbfgs = method("l-bfgs-b", true, 1, 0, 0.0);
        for (ncg, krylov, expected) in [
            ((true, 9, 20), (true, 8, 90), Some("trust-krylov")),
            ((true, 9, 20), (false, 8, 90), Some("trust-ncg")),
            ((true, 9, 20), (true, 9, 19), Some("trust-krylov")),
            ((false, 9, 20), (false, 9, 19), None),
        ] {
            let ncg = method("trust-ncg", ncg.0, ncg.1, ncg.2, 0.0);
            let krylov = method("trust-krylov", krylov.0, krylov.1, krylov.2, 0.0);
            let found = better("beale", &[ncg, krylov, lbfgs.clone()]);
            assert_eq!(found.as_deref(), expected);
        }
    }

    #[test]
    fn the_minimum_of_meyer_counts_without_a_small_gradient() {
        let minimum = minimum_of("meyer").unwrap();
        let ended = |value| better("meyer", &[method("trust-ncg", false, 9, 20, value)]);
        assert_eq!(ended(minimum * (1.0 + 1e-9)).as_deref(), Some("trust-ncg"));
        assert_eq!(ended(minimum * (1.0 + 1e-7)), None);
    }

    #[test]
    fn other_files_and_unknown_problems_are_refused() {
        let why = |text: &str| ScipyFile::parse(text.as_bytes()).err().unwrap_or_default();
        assert!(why("[]").contains("not a file of scripts/second-order-reference.py"), "{}", why("[]"));
        let unknown = problem("no-such", "");
        assert!(why(&unknown).contains("there is no problem `no-such`"), "{}", why(&unknown));
    }

    #[test]
    fn the_published_file_has_every_problem() {
        let mut file =
            ScipyFile::parse(include_bytes!("../../../../../docs/results/second-order/reference.json")).unwrap();
        assert!(names().iter().all(|name| file.take(name).is_some_and(|problem| problem.methods.len() == 3)));
        assert!(file.problems.is_empty());
    }
}
