//! The methods and problems for experiment files.
//!
//! The methods are those of `strust_baselines::by_name`. To add a problem, write `problems/NAME.rs` and add its line to
//! `problems!` in `problems/mod.rs`. Listing, checking, completion and construction follow from that line.

mod entry;
mod keys;
pub mod methods;
pub mod problems;
mod setup;

pub use entry::{Entry, Parameter};
pub(crate) use setup::{
    AnySetup, AnyStepper, Assembler, PointType, Quantity, SaveModel, Setup, SharedProblem, Visitor,
};

pub use strust_data::words::nearest;

/// The known word that was meant, or all of them, for messages about an unknown one.
pub(crate) fn hint(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known here: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Error,
        data::{
            experiment::{MethodSpec, ProblemSpec},
            parameters::Parameters,
        },
        team::Sharing,
    };
    use std::collections::BTreeSet;
    use strust::{constraints::Retraction, prelude::*};
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

    /// Makes steps of a method on mini-batches of this size.
    struct Steps<'a>(&'a MethodSpec, u64, usize);

    /// What the steps led to.
    #[derive(Debug, PartialEq)]
    struct Reached {
        constrained: bool,
        sizes: Vec<f64>,
        /// The bytes of the answer.
        answer: Vec<u8>,
        /// The bits of the first terms there, over the scale.
        value: u64,
    }

    impl Visitor for Steps<'_> {
        type Output = Reached;
        fn visit<P: PointType>(self, mut setup: Setup<P>) -> Result<Reached, Error> {
            let Self(method, steps, batch) = self;
            let mut stepper = methods::stepper(method, &setup, batch, steps.max(1))?;
            let constrained = setup.f.any_constraint(Retraction::Qr).is_some();
            let start = setup.f.start(0);
            stepper.start(&mut setup.f, start)?;
            assert_eq!(stepper.current(&mut setup.f).steps, 0);
            let mut sampler = Epochs::new(setup.f.terms(), batch, 0)?;
            let (mut records, mut answer) = (Vec::new(), Vec::new());
            for _ in 0..steps {
                stepper.advance(&mut setup.f, &mut sampler, 1, &mut |_| true, &mut records)?;
            }
            let x = stepper.current(&mut setup.f).x.clone();
            x.write(&mut answer);
            // With a constraint f can be below f* at points that violate it.
            if let Some(optimum) = setup.f.optimum().filter(|_| steps > 0 && !constrained) {
                assert!(strust::objective::full_value(&mut setup.f, &x) >= optimum - 1e-12 * setup.f.scale());
            }
            let value = setup.f.value(&x, &Sample::range(0..batch)).value / setup.f.scale();
            let sizes = records.iter().map(|record| record.step_size).collect();
            Ok(Reached { constrained, sizes, answer, value: value.to_bits() })
        }
    }

    fn reached(problem: &ProblemSpec, method: &MethodSpec, steps: u64, batch: usize) -> Result<Reached, Error> {
        problems::setup(problem, 0, Sharing::alone(None))?.visit(Steps(method, steps, batch))
    }

    #[test]
    fn every_method_starts_with_its_defaults_on_every_problem_or_gives_an_error() {
        let (problems, methods) = specs();
        for (problem_entry, problem) in &problems {
            for (method_entry, method) in &methods {
                let pair = format!("{} on {}", method.name, problem.kind);
                match reached(problem, method, 0, 2) {
                    Ok(reached) => {
                        assert_eq!(reached.constrained, problem_entry.constrained, "{pair}");
                        assert!(problem_entry.constrained || !method_entry.constrained, "{pair}");
                    }
                    Err(Error::Misfit(why)) => {
                        assert!(method_entry.constrained && !problem_entry.constrained, "{pair}: {why}");
                        assert_eq!(why, "the problem has no constraint");
                    }
                    // Each of these methods needs constraints of its kind.
                    Err(error @ Error::Method(_)) => {
                        let part = match (problem_entry.name, method_entry.name) {
                            (_, "in-expectation") => "rows over the means of groups of terms; use str-sqp",
                            ("groups", "sgd-proj") => "use str-sqp or in-expectation",
                            ("groups", "str-p" | "riemannian" | "auglag" | "landing") => "for ≤ use StrSqp",
                            ("mixture" | "nmf", "str-p" | "riemannian" | "auglag" | "landing") => {
                                "for bounds use StrSqp"
                            }
                            _ => panic!("{pair}: {error}"),
                        };
                        assert!(error.to_string().contains(part), "{pair}: {error}");
                    }
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
            let problem = find(match entry.name {
                "in-expectation" => "groups",
                _ if entry.constrained => "subspace",
                _ => "least-squares",
            });
            let run = |key: &str, value: &str| {
                let mut method = method.clone();
                method.hyperparameters.insert(key.into(), value.into());
                reached(problem, &method, 10, 2).unwrap()
            };
            let (plain, averaged) = (run("average", "off"), run("average", "on"));
            assert_eq!(plain.sizes, averaged.sizes, "{}: averaging must not change the steps", entry.name);
            assert_ne!(plain.answer, averaged.answer, "{}: averaging must change the answer", entry.name);

            let has = |key: &str| entry.parameters.iter().any(|p| p.name == key);
            assert_eq!(has("schedule"), has("learning_rate"), "{}", entry.name);
            if has("schedule") {
                assert_eq!(run("schedule", "constant"), plain);
                let falling = run("schedule", "cosine").sizes;
                assert_eq!(falling[0].to_bits(), plain.sizes[0].to_bits(), "{}", entry.name);
                assert!(falling.last().unwrap() < plain.sizes.last().unwrap(), "{}: {falling:?}", entry.name);
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
    fn a_scaled_loss_with_a_rate_divided_by_the_scale_gives_the_same_bits_on_every_problem() {
        let (problems, methods) = specs();
        let sgd = methods.into_iter().find(|(entry, _)| entry.name == "sgd").unwrap().1;
        let same = |reached: Result<Reached, Error>| reached.map(|reached| (reached.answer, reached.value)).unwrap();
        for (entry, problem) in problems.iter().filter(|(_, problem)| !problems::is_network(problem)) {
            let run = |exponent: i32| {
                let (mut sgd, mut problem) = (sgd.clone(), problem.clone());
                let scale = 2.0_f64.powi(exponent);
                problem.parameters.insert("scale".into(), scale.into());
                sgd.hyperparameters.insert("learning_rate".into(), (2.0_f64.powi(-6) / scale).into());
                same(reached(&problem, &sgd, 5, 8))
            };
            let plain = run(0);
            assert_eq!(plain, run(20), "{}", entry.name);
            assert_eq!(plain, run(-20), "{}", entry.name);
            // A plan of an older version has no scale.
            let mut old = problem.clone();
            old.parameters.remove("scale");
            let mut sgd = sgd.clone();
            sgd.hyperparameters.insert("learning_rate".into(), 2.0_f64.powi(-6).into());
            assert_eq!(plain, same(reached(&old, &sgd, 5, 8)), "{}", entry.name);
        }
    }

    #[test]
    fn every_problem_has_a_scale_that_is_shown_only_if_it_is_not_one() {
        for entry in problems::all() {
            let with = |scale: toml::Value| entry.complete(&[("scale".to_string(), scale)].into());
            assert_eq!(entry.parameters.last().map(|p| p.name), Some("scale"), "{}", entry.name);
            assert_eq!(entry.complete(&Parameters::new()).unwrap()["scale"].as_float(), Some(1.0));
            for (scale, shown) in [(1.0, false), (1024.0, true)] {
                let parameters = with(scale.into()).unwrap();
                assert_eq!(problems::with_effect(entry.name, &parameters).contains_key("scale"), shown);
            }
            assert!(with(0.0.into()).unwrap_err().contains("`scale` is 0, but must be > 0"), "{}", entry.name);
        }
    }

    fn problem(kind: &str, given: &[(&str, toml::Value)]) -> Result<ProblemSpec, String> {
        let all = problems::all();
        let entry = all.iter().find(|e| e.name == kind).unwrap();
        let given = given.iter().map(|(key, value)| ((*key).to_string(), value.clone())).collect();
        let (name, parameters) = (kind.to_string(), entry.complete(&given)?);
        Ok(ProblemSpec { name: name.clone(), kind: name, parameters, checksum: None })
    }

    #[test]
    fn a_test_set_adds_its_metric_and_keys_that_are_off_are_not_shown() {
        let keys = |kind: &str, given: &[(&str, toml::Value)]| {
            let problem = problem(kind, given).unwrap();
            let metrics: Vec<String> = problems::metrics(&problem).into_iter().map(|m| m.key).collect();
            let shown: Vec<String> = problems::with_effect(kind, &problem.parameters).into_keys().collect();
            (metrics.join(" "), shown.join(" "))
        };
        let pair = |metrics: &str, shown: &str| (metrics.to_string(), shown.to_string());
        let share = || ("test_share", 0.2.into());
        let file = || ("data", "/home/me/x.csv".into());
        assert_eq!(keys("logistic", &[]), pair("objective", "d margin n regularization"));
        assert_eq!(
            keys("logistic", &[share(), ("rare", 1.0.into()), ("wrong_labels", 0.1.into())]),
            pair("objective test_accuracy", "d n rare regularization test_share wrong_labels")
        );
        assert_eq!(keys("logistic", &[file()]), pair("objective", "data regularization"));
        assert_eq!(keys("softmax", &[file()]), pair("objective", "data regularization"));
        assert_eq!(
            keys("softmax", &[file(), share()]),
            pair("objective test_accuracy", "data regularization test_share")
        );
        assert_eq!(keys("softmax", &[share()]), pair("objective test_accuracy", "regularization"));
        assert_eq!(keys("least-squares", &[]), pair("objective_gap", "d n noise"));
        assert_eq!(keys("autoencoder", &[]), pair("train_loss test_loss", "activation hidden precision"));
        assert_eq!(keys("regression", &[]), pair("objective", "d hidden loss n noise"));
        assert_eq!(keys("regression", &[("loss", "huber".into())]), pair("objective", "bound d hidden loss n noise"));
        assert_eq!(keys("regression", &[("loss", "poisson".into())]), pair("objective", "d hidden loss n"));
    }

    #[test]
    fn wrong_values_of_the_keys_of_data_are_refused_in_words() {
        let message = |kind: &str, key: &str, value: toml::Value| problem(kind, &[(key, value)]).unwrap_err();
        for kind in ["logistic", "softmax", "mlp"] {
            assert!(message(kind, "wrong_labels", 1.0.into()).contains("`wrong_labels` is 1, but must be in [0, 1)"));
            assert!(message(kind, "wrong_labels", (-0.1).into()).contains("`wrong_labels` is -0.1"));
        }
        assert!(message("logistic", "test_share", 1.0.into()).contains("`test_share` is 1, but must be in [0, 1)"));
        assert!(message("logistic", "rare", (-1.0).into()).contains("`rare` is -1, but must be ≥ 0"));
        assert_eq!(
            message("least-squares", "condition", 0.5.into()),
            "least-squares: `condition` is 0.5, but must be ≥ 1, or 0 for Gaussian rows"
        );
        assert_eq!(
            message("autoencoder", "hidden", "none".into()),
            "autoencoder: `hidden` is \"none\", but must be whole numbers ≥ 1 with - between them"
        );
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
