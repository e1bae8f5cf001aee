use super::{
    super::{all, metrics, setup, with_effect},
    *,
};
use crate::{
    Error,
    data::experiment::ProblemSpec,
    registry::{PointType, Setup, Visitor},
    team::Sharing,
};
use strust::{objective::full_value, prelude::*};
use strust_problems::{LeastSquares, Logistic, Problem, Softmax};

fn spec(kind: &str, given: &[(&str, toml::Value)]) -> ProblemSpec {
    let entry = all().into_iter().find(|entry| entry.name == kind).unwrap();
    let given = given.iter().map(|(key, value)| ((*key).to_string(), value.clone())).collect();
    let parameters = entry.complete(&given).unwrap();
    ProblemSpec { name: kind.into(), kind: kind.into(), parameters, checksum: None }
}

/// What a problem has: terms, parameters, f*, f and its metrics at the start.
#[derive(Debug, PartialEq)]
struct Found {
    size: (usize, usize),
    optimum: Option<f64>,
    value: f64,
    test: Option<f64>,
    train: Option<f64>,
}

/// Whether the accuracy on the training set is a metric.
struct Look(bool);

impl Visitor for Look {
    type Output = Found;
    fn visit<P: PointType>(self, mut setup: Setup<P>) -> Result<Found, Error> {
        let x = setup.f.start(0);
        Ok(Found {
            size: (setup.f.terms(), x.dimension()),
            optimum: setup.f.optimum(),
            value: full_value(&mut setup.f, &x),
            test: setup.f.test_metric(&x),
            train: self.0.then(|| setup.f.train_accuracy(&x)).flatten(),
        })
    }
}

fn found(kind: &str, given: &[(&str, toml::Value)]) -> Found {
    let spec = spec(kind, given);
    let train = metrics(&spec).iter().any(|metric| metric.key == "train_accuracy");
    setup(&spec, 0, Sharing::alone(None)).and_then(|setup| setup.visit(Look(train))).unwrap()
}

/// A file with the label in the first or in the last of three columns. No feature determines it.
fn file(folder: &tempfile::TempDir, classes: usize, first: bool) -> (&'static str, toml::Value) {
    let path = folder.path().join(format!("data-{classes}.csv"));
    let row = |i: usize| {
        let (label, features) = ((i * i / 3) % classes, format!("{},{}", i % 7, 100 + (i * 5) % 11));
        if first { format!("{label},{features}\n") } else { format!("{features},{label}\n") }
    };
    let header = if first { "kind,x,y" } else { "x,y,kind" };
    std::fs::write(&path, format!("{header}\n{}", (0..40).map(row).collect::<String>())).unwrap();
    ("data", path.to_str().unwrap().into())
}

fn on(key: &'static str) -> (&'static str, toml::Value) {
    (key, "on".into())
}

#[test]
fn keys_that_are_on_are_shown_and_add_their_metrics() {
    let keys = |kind: &str, given: &[(&str, toml::Value)]| {
        let problem = spec(kind, given);
        let metrics: Vec<String> = metrics(&problem).into_iter().map(|metric| metric.key).collect();
        let shown: Vec<String> = with_effect(kind, &problem.parameters).into_keys().collect();
        (metrics.join(" "), shown.join(" "))
    };
    let pair = |metrics: &str, shown: &str| (metrics.to_string(), shown.to_string());
    let share = || ("test_share", 0.2.into());
    let data = || ("data", "x.csv".into());
    assert_eq!(
        keys("logistic", &[data(), on("optimum"), on("train_accuracy"), share(), ("rows", 9.into())]),
        pair(
            "objective_gap train_accuracy test_accuracy",
            "data optimum regularization rows test_share train_accuracy"
        )
    );
    assert_eq!(
        keys("logistic", &[data(), ("kernel", "rbf".into()), ("split", "last".into())]),
        pair("objective", "bandwidth data kernel regularization")
    );
    // These keys have no effect without a file.
    let idle = || [("label", "2".into()), ("rows", 5.into()), ("test_share", 0.5.into()), ("split", "last".into())];
    assert_eq!(keys("softmax", &idle()), pair("objective test_accuracy", "regularization"));
    assert_eq!(
        keys("softmax", &[data(), on("optimum"), on("standardize"), on("intercept")]),
        pair("objective_gap", "data intercept optimum regularization standardize")
    );
    assert_eq!(keys("least-squares", &idle()), pair("objective_gap", "d n noise"));
    assert_eq!(keys("least-squares", &[data()]), pair("objective", "data"));
    assert_eq!(
        keys("least-squares", &[data(), on("optimum"), share(), ("split", "last".into())]),
        pair("objective_gap test_loss", "data optimum split test_share")
    );
    assert_eq!(
        keys("mlp", &[data(), on("train_accuracy"), ("test_share", 0.3.into())]),
        pair("train_loss train_accuracy test_accuracy", "activation data hidden precision test_share train_accuracy")
    );
    assert_eq!(
        keys("mlp", &[("test_share", 0.3.into())]),
        pair("train_loss test_accuracy", "activation hidden precision")
    );
}

#[test]
fn a_problem_of_a_file_has_its_size_its_optimum_and_its_accuracies() {
    let folder = tempfile::tempdir().unwrap();
    let all = |classes: usize| {
        let keys = [on("standardize"), on("intercept"), on("optimum"), ("label", "kind".into())];
        let split = [("test_share", 0.25.into()), ("split", "last".into())];
        [&keys[..], &split, &[file(&folder, classes, true)]].concat()
    };
    let with = |keys: Vec<(&'static str, toml::Value)>, more| [keys, more].concat();
    let read = |classes| read_labeled_by(folder.path().join(format!("data-{classes}.csv")), "kind").unwrap();

    let keys = with(all(2), vec![on("train_accuracy"), ("regularization", 0.1.into())]);
    let logistic = found("logistic", &keys);
    let direct = Logistic::new(read(2), 0.1).unwrap().with_last_rows_as_test(0.25).unwrap();
    let direct = direct.standardized().unwrap().with_intercept().unwrap();
    assert_eq!((logistic.size, logistic.optimum), ((30, 3), Some(direct.minimum().unwrap())));
    assert!(logistic.optimum < Some(logistic.value) && logistic.train.is_some() && logistic.test.is_some());
    assert_eq!(found("logistic", &keys), logistic, "f* is the same from the second job on");
    let half = found("logistic", &with(keys.clone(), vec![("scale", 0.5.into())]));
    assert_eq!(half.optimum, logistic.optimum.map(|optimum| 0.5 * optimum));

    let softmax = found("softmax", &with(all(3), vec![("regularization", 0.1.into())]));
    let direct = Softmax::new(read(3), 0.1).unwrap().with_last_rows_as_test(0.25).unwrap();
    let direct = direct.standardized().unwrap().with_intercept().unwrap();
    assert_eq!((softmax.size, softmax.optimum), ((30, 9), Some(direct.minimum().unwrap())));
    assert!(softmax.train.is_none() && softmax.test.is_some());

    let squares = found("least-squares", &all(3));
    let direct = LeastSquares::from_labeled(read(3)).unwrap().with_last_rows_as_test(0.25).unwrap();
    let mut direct = direct.standardized().unwrap().with_intercept().unwrap();
    assert_eq!((squares.size, squares.optimum), ((30, 3), Some(direct.minimum().unwrap())));
    assert_eq!(squares.test, direct.test_metric(&direct.start(0)));

    let kernel = found("logistic", &with(all(2), vec![("kernel", "rbf".into()), ("rows", 20.into())]));
    assert_eq!(kernel.size, (15, 16));
    let mlp = [file(&folder, 3, true), ("label", "1".into()), on("standardize"), on("train_accuracy")];
    let mlp = found("mlp", &[&mlp[..], &[("hidden", "4".into()), ("test_share", 0.5.into())]].concat());
    // Half of the rows of each class, rounded to whole rows.
    assert!((18..=22).contains(&mlp.size.0) && mlp.size.1 == 3 * 4 + 5 * 3, "{mlp:?}");
    assert!(mlp.train.is_some());
}

#[test]
fn parameters_of_an_older_plan_make_the_same_problem() {
    let folder = tempfile::tempdir().unwrap();
    let old = |kind: &str, given: Vec<(&str, toml::Value)>| {
        let completed = spec(kind, &given);
        let parameters = given.into_iter().map(|(key, value)| (key.to_string(), value)).collect();
        let old = ProblemSpec { parameters, ..completed.clone() };
        let look =
            |problem| setup(problem, 3, Sharing::alone(None)).and_then(|setup| setup.visit(Look(false))).unwrap();
        assert_eq!(look(&old), look(&completed), "{kind}");
        assert_eq!(metrics(&old), metrics(&completed), "{kind}");
        assert_eq!(with_effect(kind, &old.parameters).len(), old.parameters.len(), "{kind}");
    };
    old("logistic", vec![file(&folder, 2, false), ("regularization", 0.1.into()), ("test_share", 0.2.into())]);
    old("softmax", vec![file(&folder, 3, false), ("regularization", 0.0.into())]);
    old("least-squares", vec![("n", 20.into()), ("d", 5.into()), ("noise", 0.1.into())]);
    old("mlp", vec![("hidden", "4".into()), ("activation", "relu".into()), ("precision", "f64".into())]);
}
