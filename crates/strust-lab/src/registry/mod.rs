//! The methods and problems for experiment files, one file each, with configuration, construction and metrics.
//!
//! To add a method, write `methods/NAME.rs` and add its line to `methods!` in `methods/mod.rs`. To add a problem, write
//! `problems/NAME.rs` and add its line to `problems!` in `problems/mod.rs`. Listing, checking, completion and
//! construction follow from that line.

mod entry;
pub mod methods;
pub mod problems;
mod setup;

pub use entry::{Entry, Parameter, nearest};
pub(crate) use setup::{Quantity, SaveModel, Setup, TestMetric, Visitor};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Error,
        data::{
            experiment::{MethodSpec, ProblemSpec},
            parameters::Parameters,
        },
    };
    use std::collections::BTreeSet;
    use strust::prelude::*;
    use strust_problems::Problem;

    /// The problems and methods with their default parameters.
    type Specs<T> = Vec<(Entry, T)>;

    fn specs() -> (Specs<ProblemSpec>, Specs<MethodSpec>) {
        let defaults = |entry: &Entry| entry.complete(&Parameters::new()).expect("defaults are allowed");
        let problem = |entry: Entry| {
            let (name, kind, parameters) = (entry.name.into(), entry.name.into(), defaults(&entry));
            (entry, ProblemSpec { name, kind, parameters, checksum: None })
        };
        let method = |entry: Entry| {
            let (name, label, hyperparameters) = (entry.name.into(), entry.name.into(), defaults(&entry));
            (entry, MethodSpec { name, label, hyperparameters, varied: Vec::new() })
        };
        (problems::all().into_iter().map(problem).collect(), methods::all().into_iter().map(method).collect())
    }

    /// Starts a method on a problem and returns whether the problem has a constraint.
    struct Start<'a>(&'a MethodSpec);

    impl Visitor for Start<'_> {
        type Output = bool;
        fn visit<F, C>(self, mut setup: Setup<F, C>) -> Result<bool, Error>
        where
            F: Problem + 'static,
            C: Manifold<Point = F::Point> + 'static,
        {
            let mut stepper = methods::stepper(self.0, &setup, 2, 10)?;
            let start = setup.f.start(0);
            stepper.start(&mut setup.f, start)?;
            assert_eq!(stepper.current(&mut setup.f).steps, 0);
            Ok(setup.constraint.is_some())
        }
    }

    /// The step sizes of ten steps, and the answer after them.
    struct Answer<'a>(&'a MethodSpec);

    impl Visitor for Answer<'_> {
        type Output = (Vec<f64>, Vec<u8>);
        fn visit<F, C>(self, mut setup: Setup<F, C>) -> Result<Self::Output, Error>
        where
            F: Problem + 'static,
            C: Manifold<Point = F::Point> + 'static,
        {
            let mut stepper = methods::stepper(self.0, &setup, 2, 10)?;
            let start = setup.f.start(0);
            stepper.start(&mut setup.f, start)?;
            let mut sampler = Epochs::new(setup.f.terms(), 2, 0)?;
            let (mut records, mut bytes) = (Vec::new(), Vec::new());
            for _ in 0..10 {
                stepper.advance(&mut setup.f, &mut sampler, 1, &mut |_| true, &mut records)?;
            }
            stepper.current(&mut setup.f).x.write(&mut bytes);
            Ok((records.iter().map(|r| r.step_size).collect(), bytes))
        }
    }

    #[test]
    fn every_method_starts_with_its_defaults_on_every_problem_or_gives_an_error() {
        let (problems, methods) = specs();
        for (problem_entry, problem) in &problems {
            for (method_entry, method) in &methods {
                let pair = format!("{} on {}", method.name, problem.kind);
                match problems::visit(problem, 0, Start(method)) {
                    Ok(constrained) => {
                        assert_eq!(constrained, problem_entry.constrained, "{pair}");
                        assert!(problem_entry.constrained || !method_entry.constrained, "{pair}");
                    }
                    Err(Error::Misfit(why)) => {
                        assert!(method_entry.constrained && !problem_entry.constrained, "{pair}: {why}");
                        assert_eq!(why, "the problem has no constraint");
                    }
                    Err(Error::Method(error)) => assert!(error.to_string().contains("`data`"), "{pair}: {error}"),
                    Err(error) => assert!(matches!(error, Error::Network(_)), "{pair}: {error}"),
                }
            }
        }
    }

    #[test]
    fn a_method_with_a_rate_follows_its_schedule_and_every_method_can_be_averaged() {
        let (problems, methods) = specs();
        let find = |name: &str| &problems.iter().find(|(e, _)| e.name == name).unwrap().1;
        for (entry, method) in &methods {
            let problem = find(if entry.constrained { "subspace" } else { "least-squares" });
            let run = |key: &str, value: &str| {
                let mut method = method.clone();
                method.hyperparameters.insert(key.into(), value.into());
                problems::visit(problem, 0, Answer(&method)).unwrap()
            };
            let (sizes, plain) = run("average", "off");
            let (same_sizes, averaged) = run("average", "on");
            assert_eq!(sizes, same_sizes, "{}: averaging must not change the steps", entry.name);
            assert_ne!(plain, averaged, "{}: averaging must change the answer", entry.name);

            let has = |key: &str| entry.parameters.iter().any(|p| p.name == key);
            assert_eq!(has("schedule"), has("learning_rate"), "{}", entry.name);
            if has("schedule") {
                assert_eq!(run("schedule", "constant"), (sizes.clone(), plain));
                let (falling, _) = run("schedule", "cosine");
                assert_eq!(falling[0].to_bits(), sizes[0].to_bits(), "{}", entry.name);
                assert!(falling.last().unwrap() < sizes.last().unwrap(), "{}: {falling:?}", entry.name);
            } else {
                let given = [("schedule".to_string(), "cosine".into())].into();
                assert!(entry.complete(&given).unwrap_err().contains("schedule"), "{}", entry.name);
            }
        }
    }

    #[test]
    fn names_are_unique_and_every_problem_has_metrics() {
        let (problems, methods) = specs();
        let names: Vec<&str> =
            problems.iter().map(|(e, _)| e.name).chain(methods.iter().map(|(e, _)| e.name)).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
        for (entry, problem) in &problems {
            let metrics = problems::metrics(problem);
            assert!(!metrics.is_empty() && metrics.iter().all(|m| !m.label.is_empty()), "{}", entry.name);
            assert_eq!(metrics.iter().any(|m| m.key == "constraint_norm"), entry.constrained, "{}", entry.name);
        }
    }

    #[test]
    fn parameters_that_are_unknown_or_out_of_range_are_refused() {
        let all = problems::all();
        let mlp = all.iter().find(|e| e.name == "mlp").unwrap();
        let with = |key: &str, value: toml::Value| mlp.complete(&[(key.to_string(), value)].into());
        assert!(with("hidden", "12-x".into()).unwrap_err().contains("`hidden` is \"12-x\""));
        assert!(with("depth", 3.into()).unwrap_err().contains("depth"));
        assert_eq!(with("hidden", "12-8".into()).unwrap()["hidden"].as_str(), Some("12-8"));
    }

    #[test]
    fn parameters_of_synthetic_data_have_no_effect_on_a_data_file() {
        let all = problems::all();
        let entry = all.iter().find(|e| e.name == "factorization").unwrap();
        let synthetic = entry.complete(&Parameters::new()).unwrap();
        let shown = |parameters| problems::with_effect("factorization", parameters).into_keys().collect::<Vec<_>>();
        assert_eq!(shown(&synthetic), ["m", "n", "rank", "width"]);
        let mut file = synthetic.clone();
        file.insert("data".into(), "/home/me/x.csv".into());
        assert_eq!(shown(&file), ["data", "width"]);
        assert_eq!(problems::with_effect("factorization", &file)["data"].as_str(), Some("x.csv"));
    }

    #[test]
    fn the_nearest_name_is_similar_or_absent() {
        assert_eq!(nearest("learning_rat", ["momentum", "learning_rate"]), Some("learning_rate"));
        assert_eq!(nearest("xyz", ["momentum", "learning_rate"]), None);
    }
}
