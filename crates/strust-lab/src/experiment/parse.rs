//! Parses the text of an experiment file. Every error message has a line number.

use super::{
    set::{self, Setting},
    source::Source,
};
use crate::{
    Error,
    data::{
        experiment::{Experiment, MAX_EPOCHS, MAX_SEEDS, MethodSpec, ProblemSpec, Tune},
        parameters::differing,
        style::FigureStyle,
    },
    format::{control_character, folder_name, plain},
    registry::{Entry, methods, problems},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    num::NonZeroU64,
    path::Path,
};

impl Experiment {
    /// Parses the text of an experiment file. `file` is used for messages and relative paths.
    pub fn parse(file: &Path, text: &str) -> Result<Self, Error> {
        Self::parse_with(file, text, &[])
    }

    /// The same with settings of the command line, which replace those of the file.
    pub fn parse_with(file: &Path, text: &str, settings: &[Setting]) -> Result<Self, Error> {
        let mut source = Source::parse(file, text)?;
        set::apply(&mut source, settings)?;
        let keys = [
            "name",
            "title",
            "description",
            "epochs",
            "batch",
            "seeds",
            "sampling",
            "records",
            "measure_every",
            "parallel",
            "block",
            "problem",
            "method",
            "tune",
            "figures",
        ];
        source.check_keys(&keys)?;
        let name = source.name()?;
        let tune = source.data::<Tune>("tune", &["metric", "epochs", "seeds"])?;
        let problems = parse_problems(&source)?;
        let methods = parse_methods(&source)?;
        check_fit(&source, &problems, &methods)?;
        check_tune(&source, tune.as_ref(), &problems)?;
        let figures = source.data::<FigureStyle>("figures", &FigureStyle::KEYS)?.unwrap_or_default();
        let labels: Vec<_> = methods.iter().map(|method| (method.label.as_str(), method.name.as_str())).collect();
        let wrong = |(key, why)| source.error(&["figures", key], format!("[figures]: {why}"));
        figures.check(&labels).map_err(wrong)?;
        Ok(Self {
            title: source.text("title")?.unwrap_or_else(|| name.clone()),
            description: described(source.text("description")?.unwrap_or_default().trim(), settings),
            name,
            epochs: source.count("epochs", 50)?,
            batch: source.count("batch", 32)?,
            seeds: source.seeds()?,
            sampling: source.word("sampling", &["epochs", "replacement"])?,
            records: source.word("records", &["steps", "epochs"])?,
            measure_every: NonZeroU64::new(source.count("measure_every", 1)?).expect("a count is at least 1"),
            problems,
            methods,
            tune,
            parallel: source.word("parallel", &["jobs", "data"])?,
            block: source.table().contains_key("block").then(|| source.count("block", 1)).transpose()?,
            first_epochs: None,
            figures,
        })
    }
}

/// The description of a file, with the settings of the command line, so that plan and report show them.
fn described(description: &str, settings: &[Setting]) -> String {
    if settings.is_empty() {
        return description.into();
    }
    let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
    format!("{description}\n\nSet on the command line: {}.", settings.join(", ")).trim().into()
}

/// The methods.
fn parse_methods(source: &Source) -> Result<Vec<MethodSpec>, Error> {
    if !source.table().contains_key("method") {
        return Ok(methods::with_defaults(set::default_method(source)?).into_iter().collect());
    }
    let mut methods: Vec<MethodSpec> = Vec::new();
    let known = methods::all();
    for item in source.list("method")? {
        let entry = item.entry("method", "name", &known)?;
        let label = item.text("label")?;
        if label.as_ref().is_some_and(|label| label.trim().is_empty() || label.len() > 100) {
            return Err(item.error(&["label"], "`label` must be a text of 1 to 100 characters"));
        }
        methods.extend(item.method("method", &["name", "label"], label.as_deref(), &entry)?);
    }
    name_apart(&mut methods);
    Ok(methods)
}

/// Entries with the same label get the settings in which they differ, or a number if they do not.
fn name_apart(methods: &mut [MethodSpec]) {
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (i, method) in methods.iter().enumerate() {
        groups.entry(folder_name(&method.label)).or_default().push(i);
    }
    for group in groups.values() {
        let settings: Vec<_> = group.iter().map(|&i| &methods[i].hyperparameters).collect();
        let differing: BTreeSet<String> = differing(&settings).into_iter().map(String::from).collect();
        for &i in group {
            let MethodSpec { label, hyperparameters, .. } = &mut methods[i];
            for (key, value) in hyperparameters.iter().filter(|(key, _)| differing.contains(*key)) {
                let _ = write!(label, " {key}={}", plain(value));
            }
        }
    }
    let mut known = BTreeSet::new();
    for (i, method) in methods.iter_mut().enumerate() {
        if !known.insert(folder_name(&method.label)) {
            method.label = format!("{} #{}", method.label, i + 1);
            known.insert(folder_name(&method.label));
        }
    }
}

/// The most bytes of a problem's name with its settings. The file of a figure has this name, that of the experiment in a
/// comparison, and those of a metric and an axis; file systems accept 255 bytes.
const MOST_OF_NAME: usize = 110;

fn parse_problems(source: &Source) -> Result<Vec<ProblemSpec>, Error> {
    let (mut problems, mut folders) = (Vec::new(), BTreeSet::new());
    let known = problems::all();
    for item in source.list("problem")? {
        let entry = item.entry("problem", "kind", &known)?;
        let given = match item.table().get("name") {
            None => entry.name,
            Some(toml::Value::String(name))
                if (1..=100).contains(&name.len())
                    && !name.starts_with('.')
                    && control_character(name, false).is_none() =>
            {
                name
            }
            Some(other) => {
                let why = format!(
                    "`name` is {other}, but must be a text of 1 to 100 characters, without control characters, that does \
                     not start with a dot"
                );
                return Err(item.error(&["name"], why));
            }
        };
        for problem in item.problem(&["kind", "name"], given, &entry)? {
            let name = &problem.name;
            if name.len() > MOST_OF_NAME {
                let why = format!(
                    "the problem would have a name of {} characters, but at most {MOST_OF_NAME} are allowed, because \
                     figures have this name: give it a shorter `name`, or use fewer lists",
                    name.len()
                );
                return Err(item.error(&[], why));
            }
            if !folders.insert(folder_name(name)) {
                let why = format!(
                    "two problems would use the same folder name `{name}`: give each [[problem]] a different `name`"
                );
                return Err(item.error(&[], why));
            }
            problems.push(problem);
        }
    }
    Ok(problems)
}

fn check_tune(source: &Source, tune: Option<&Tune>, problems: &[ProblemSpec]) -> Result<(), Error> {
    let Some(tune) = tune else { return Ok(()) };
    let range = [("epochs", tune.epochs, MAX_EPOCHS), ("seeds", tune.seeds, MAX_SEEDS)];
    if let Some((key, value, most)) = range.into_iter().find(|(_, value, most)| !(1..=*most).contains(value)) {
        let why = format!("[tune]: `{key}` is {value}, but must be a whole number in [1, {most}]");
        return Err(source.error(&["tune", key], why));
    }
    for problem in problems {
        let known: Vec<&str> = problems::quantities(problem).iter().map(|(quantity, _)| quantity.key()).collect();
        if !known.contains(&tune.metric.as_str()) {
            let known = known.join(", ");
            let why = format!("[tune]: `metric` is {:?}, but problem `{}` has {known}", tune.metric, problem.name);
            return Err(source.error(&["tune", "metric"], why));
        }
    }
    Ok(())
}

fn check_fit(source: &Source, problems: &[ProblemSpec], methods: &[MethodSpec]) -> Result<(), Error> {
    let constrained = |list: &[Entry], name: &str| list.iter().any(|e| e.name == name && e.constrained);
    let (all_methods, all_problems) = (methods::all(), problems::all());
    let free = problems.iter().find(|p| !constrained(&all_problems, &p.kind));
    let Some((problem, method)) = free.zip(methods.iter().find(|m| constrained(&all_methods, &m.name))) else {
        return Ok(());
    };
    let free: Vec<_> = all_methods.iter().filter(|m| !m.constrained).map(|m| m.name).collect();
    let why = format!(
        "method `{}` needs a problem with a constraint, but `{}` has none; use one of {}",
        method.name,
        problem.kind,
        free.join(", ")
    );
    Err(source.error(&["method"], why))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "name = \"a\"\nepochs = 2\nbatch = 4\nseeds = 3\n";

    fn parse(rest: &str) -> Result<Experiment, Error> {
        Experiment::parse(Path::new("a.toml"), &format!("{HEAD}{rest}"))
    }

    /// The line and the message of the error.
    fn refusal(rest: &str) -> (Option<usize>, String) {
        match parse(rest) {
            Err(Error::Experiment { line, why, .. }) => (line, why),
            other => panic!("expected an error: {other:?}"),
        }
    }

    #[test]
    fn an_error_on_an_unknown_key_gives_the_nearest_name_and_the_line() {
        let problem = "[[problem]]\nkind = \"subspace\"\n";
        let (line, why) = refusal(&format!("{problem}nois = 0.1\n[[method]]\nname = \"str-p\"\n"));
        assert_eq!((line, why.as_str()), (Some(7), "unknown key `nois`; did you mean `noise`?"));
        let (line, why) = refusal(&format!("{problem}[[method]]\nname = \"str-q\"\n"));
        assert!(line == Some(8) && why.contains("did you mean `str-p`?"), "{line:?} {why}");
        let (line, why) = refusal(&format!("{problem}[[method]]\nname = \"sgd\"\nzzz = 1\n"));
        assert!(line == Some(9) && why.contains("known here: name, label, learning_rate"), "{line:?} {why}");
    }

    #[test]
    fn an_error_on_a_value_out_of_range_gives_the_range_and_the_line() {
        let (line, why) = refusal("[[problem]]\nkind = \"subspace\"\nk = 0\n[[method]]\nname = \"str-p\"\n");
        assert_eq!(line, Some(7));
        assert!(why.contains("`k` is 0, but must be a whole number in [1, 10000000]"), "{why}");
    }

    #[test]
    fn the_epochs_to_measure_are_a_count() {
        let problem = "[[problem]]\nkind = \"logistic\"\n";
        assert_eq!(parse(problem).unwrap().measure_every.get(), 1);
        assert_eq!(parse(&format!("measure_every = 5\n{problem}")).unwrap().measure_every.get(), 5);
        for value in ["0", "-1", "2.5", "\"all\""] {
            let (line, why) = refusal(&format!("measure_every = {value}\n{problem}"));
            let range = format!("`measure_every` is {value}, but must be a whole number in [1, 1000000000]");
            assert_eq!((line, why), (Some(5), range));
        }
        let (line, why) = refusal(&format!("mesure_every = 2\n{problem}"));
        assert!(line == Some(5) && why.contains("did you mean `measure_every`?"), "{line:?} {why}");
    }

    #[test]
    fn entries_of_one_method_are_named_by_the_settings_that_differ() {
        let method = |more: &str| format!("[[method]]\nname = \"sgd\"\n{more}\n");
        let labels = |methods: &[String]| {
            let parsed = parse(&format!("[[problem]]\nkind = \"logistic\"\n{}", methods.concat())).unwrap();
            parsed.methods.into_iter().map(|method| method.label).collect::<Vec<_>>()
        };
        let rates = ["learning_rate = 0.5", "learning_rate = 0.1"].map(method);
        assert_eq!(labels(&rates), ["sgd learning_rate=0.5", "sgd learning_rate=0.1"]);
        assert_eq!(labels(&[method(""), method("")]), ["sgd", "sgd #2"]);
        assert_eq!(labels(&[method("label = \"Ours\""), method("")]), ["Ours", "sgd"]);
    }

    #[test]
    fn the_style_of_figures_is_checked() {
        let file = |figures: &str| {
            format!("[[problem]]\nkind = \"logistic\"\n[[method]]\nname = \"sgd\"\n[figures]\n{figures}\n")
        };
        let parsed = parse(&file("formats = [\"pdf\"]\nwidth = 300")).unwrap();
        assert_eq!((parsed.figures.width, parsed.figures.formats.len(), parsed.figures.titles), (300, 1, true));
        let (line, why) = refusal(&file("order = [\"adam\"]"));
        assert_eq!((line, why.as_str()), (Some(10), "[figures]: `order` has `adam`, but the methods are sgd"));
        assert!(refusal(&file("width = 5")).1.contains("must be in [100, 4000]"));
        assert!(refusal(&file("colour = 5")).1.contains("colour"));
    }

    #[test]
    fn a_grid_expands_in_file_order_and_each_setting_has_its_label() {
        let methods = "[[method]]\nname = \"sgd\"\nlearning_rate = [0.3, 0.1, 0.2]\n[[method]]\nname = \"adam\"\n";
        let parsed = parse(&format!("[[problem]]\nkind = \"least-squares\"\n{methods}")).unwrap();
        let labels: Vec<&str> = parsed.methods.iter().map(|m| m.label.as_str()).collect();
        assert_eq!(labels, ["sgd learning_rate=0.3", "sgd learning_rate=0.1", "sgd learning_rate=0.2", "adam"]);
        assert_eq!(parsed.methods[0].varied, ["learning_rate"]);
        assert_eq!(parsed.seeds, [0, 1, 2]);
        // Two lists give every combination; the last key changes fastest.
        let two = "[[problem]]\nkind = \"least-squares\"\nd = [1, 2]\nn = [10, 20]\n[[method]]\nname = \"str\"\n";
        let names: Vec<String> = parse(two).unwrap().problems.into_iter().map(|p| p.name).collect();
        assert_eq!(
            names,
            ["least-squares d=1 n=10", "least-squares d=1 n=20", "least-squares d=2 n=10", "least-squares d=2 n=20"]
        );
    }

    #[test]
    fn a_file_without_a_method_uses_auto_or_for_a_constraint_str_p() {
        let of = |kind: &str| parse(&format!("[[problem]]\nkind = \"{kind}\"\n")).unwrap().methods;
        assert_eq!(of("least-squares"), [methods::with_defaults("auto").unwrap()]);
        assert_eq!(of("subspace"), [methods::with_defaults("str-sqp").unwrap()]);
    }

    #[test]
    fn the_defaults_of_a_method_are_filled_in() {
        let parsed = parse("[[problem]]\nkind = \"subspace\"\n[[method]]\nname = \"str-p\"\n").unwrap();
        let entry = methods::all().into_iter().find(|e| e.name == "str-p").unwrap();
        for parameter in &entry.parameters {
            assert_eq!(parsed.methods[0].hyperparameters[parameter.name], parameter.default, "{}", parameter.name);
        }
    }

    #[test]
    fn a_method_with_constraints_is_refused_on_a_problem_without_them() {
        let (_, why) = refusal("[[problem]]\nkind = \"logistic\"\n[[method]]\nname = \"riemannian\"\n");
        assert!(why.contains("`riemannian` needs a problem with a constraint") && why.contains("sgd"), "{why}");
    }

    #[test]
    fn a_grid_search_with_an_unknown_metric_is_refused() {
        let tune = "[tune]\nmetric = \"test_accuracy\"\nepochs = 1\nseeds = 1\n";
        let (line, why) = refusal(&format!("[[problem]]\nkind = \"logistic\"\n[[method]]\nname = \"sgd\"\n{tune}"));
        assert!(line == Some(10) && why.contains("but problem `logistic` has objective"), "{line:?} {why}");
    }
}
