//! Parses the file of a benchmark. Every error message has a line number.

use super::{BenchmarkSpec, Entrant, Task, Variation};
use std::{
    num::NonZeroU64,
    path::{Path, PathBuf},
};
use strust_lab::{
    Error,
    data::{
        benchmark::{Half, Judge, Role, SkippedTask},
        experiment::{Experiment, MAX_JOBS, MAX_SEEDS, MethodSpec, Parallel, Records, Sampling},
        parameters::number,
        style::FigureStyle,
    },
    device,
    experiment::{ExperimentText, Source},
    format::{folder_name, plain},
    registry::{Entry, methods, problems},
};

/// What tasks may use: a folder with data files.
#[derive(Debug, Clone, Default)]
pub struct Resources {
    /// The folder where the files of tasks are searched.
    pub data: Option<PathBuf>,
    /// The device of networks: cpu, cuda, cuda:N or auto.
    pub device: Option<String>,
    /// The precision of networks on a GPU.
    pub precision: Option<String>,
}

/// Factors larger than this, or smaller than its inverse, are refused.
const LARGEST_FACTOR: f64 = 1e12;

impl BenchmarkSpec {
    /// The benchmark of a text; `None` if it is another kind of experiment.
    pub fn from_text(text: &ExperimentText, resources: &Resources) -> Result<Option<Self>, Error> {
        if text.has_key("task") { Self::parse(&text.file, &text.text, resources).map(Some) } else { Ok(None) }
    }

    /// Parses the text of a file; `file` is for messages. Tasks whose data, library or device is missing are skipped.
    pub fn parse(file: &Path, text: &str, resources: &Resources) -> Result<Self, Error> {
        Self::parse_tasks(file, text, resources, false)
    }

    /// The same for tasks that all have a constraint, or all have none.
    pub(crate) fn parse_tasks(
        file: &Path,
        text: &str,
        resources: &Resources,
        constrained: bool,
    ) -> Result<Self, Error> {
        let source = Source::parse(file, text)?;
        source.check_keys(&[
            "name",
            "title",
            "description",
            "method",
            "seeds",
            "tuning_seeds",
            "extensions",
            "tuned",
            "untuned",
            "vary",
            "task",
        ])?;
        let name = source.name()?;
        let tuning_seeds = source.count("tuning_seeds", 1)?;
        if tuning_seeds > MAX_SEEDS {
            let why = format!("`tuning_seeds` is {tuning_seeds}, but must be a whole number in [1, {MAX_SEEDS}]");
            return Err(source.error(&["tuning_seeds"], why));
        }
        let competition = Competition::parse(&source)?;
        let (mut tasks, mut skipped): (Vec<Task>, Vec<SkippedTask>) = (Vec::new(), Vec::new());
        for item in source.list("task")? {
            let task = parse_task(&item, &competition, source.seeds()?, constrained)?;
            let name = item.name()?;
            let known = || tasks.iter().map(|t| &t.experiment.name).chain(skipped.iter().map(|s| &s.name));
            if known().any(|other| folder_name(other) == folder_name(&name)) {
                return Err(item.error(&["name"], format!("two tasks have the name `{name}`")));
            }
            match with_resources(&item, task, resources)? {
                Ok(task) => tasks.push(task),
                Err((task, why)) => skipped.push(SkippedTask { name, title: task.title, half: task.half, why }),
            }
        }
        let benchmark = Self {
            title: source.text("title")?.unwrap_or_else(|| name.clone()),
            description: source.text("description")?.unwrap_or_default().trim().into(),
            name,
            tuning_seeds,
            extensions: source.count("extensions", 0)?,
            tasks,
            skipped,
        };
        benchmark.check_size(&source)?;
        Ok(benchmark)
    }

    /// Opens the devices of networks and writes their names into the tasks. Returns their descriptions; `None` without
    /// networks.
    pub fn open_devices(&mut self) -> Result<Option<String>, Error> {
        let Some(first) = self.tasks.first() else { return Ok(None) };
        // Together, because all networks must use the same precision.
        let problems = self.tasks.iter().flat_map(|task| task.experiment.problems.clone()).collect();
        let mut all = Experiment { problems, ..first.experiment.clone() };
        let devices = all.open_devices()?;
        for (task, problem) in self.tasks.iter_mut().zip(all.problems) {
            task.experiment.problems = vec![problem];
        }
        Ok(devices)
    }

    /// Whether a network is on a GPU. The devices must be open.
    #[must_use]
    pub fn on_gpu(&self) -> bool {
        self.tasks.iter().any(|task| task.experiment.on_gpu())
    }

    fn check_size(&self, source: &Source) -> Result<(), Error> {
        let jobs = self.tasks.iter().fold(0_usize, |jobs, task| {
            let seeds = task.experiment.seeds.len().max(self.tuning_seeds as usize);
            let extensions = usize::try_from(self.extensions).unwrap_or(usize::MAX);
            let settings = task.entrants.iter().map(|e| e.settings.len() + 1);
            let settings = settings.fold(0_usize, |sum, own| sum.saturating_add(own).saturating_add(extensions));
            jobs.saturating_add(settings.saturating_add(task.variations.len()).saturating_mul(seeds))
        });
        if jobs > MAX_JOBS {
            let why = format!("the tasks, methods and seeds make more than {MAX_JOBS} jobs: use fewer of them");
            return Err(source.error(&["task"], why));
        }
        Ok(())
    }
}

/// The methods of all tasks. The rates of a tuned method depend on the task.
struct Competition<'a> {
    tuned: Vec<(Source<'a>, Entry, String)>,
    untuned: Vec<Entrant>,
    variations: Vec<Variation>,
}

impl<'a> Competition<'a> {
    fn parse(source: &Source<'a>) -> Result<Self, Error> {
        let tested = source.text("method")?.ok_or_else(|| source.error(&[], "`method` is missing"))?;
        let known = methods::all();
        let (mut tuned, mut untuned) = (Vec::new(), Vec::new());
        let mut labels: Vec<String> = Vec::new();
        let mut labeled = |item: &Source, entry: &Entry| {
            let label = item.text("label")?.unwrap_or_else(|| entry.name.into());
            if label.is_empty() || label.len() > 60 {
                return Err(item.error(&["label"], "`label` must be a text of 1 to 60 characters"));
            }
            if labels.iter().any(|other| folder_name(other) == folder_name(&label)) {
                let why = format!("two methods have the label `{label}`: give one of them another `label`");
                return Err(item.error(&[], why));
            }
            labels.push(label.clone());
            Ok(label)
        };
        for item in source.list("tuned")? {
            let entry = item.entry("tuned", "name", &known)?;
            let label = labeled(&item, &entry)?;
            grid(&item, &entry, &label, None)?;
            tuned.push((item, entry, label));
        }
        for item in source.list("untuned")? {
            let entry = item.entry("untuned", "name", &known)?;
            let label = labeled(&item, &entry)?;
            let settings = item.method("untuned", &["name", "label"], Some(&label), &entry)?;
            if settings.len() > 1 {
                let why = format!("[[untuned]] {label}: a method that is not tuned has no lists");
                return Err(item.error(&[&settings[0].varied[0]], why));
            }
            let role = if label == tested { Role::Tested } else { Role::Untuned };
            untuned.push(Entrant { label, role, settings });
        }
        let Some(entrant) = untuned.iter().find(|entrant| entrant.role == Role::Tested) else {
            let all = untuned.iter().map(|entrant| entrant.label.as_str()).collect::<Vec<_>>().join(", ");
            let why = format!("`method` is {tested:?}, but must be the label of one of [[untuned]]: {all}");
            return Err(source.error(&["method"], why));
        };
        let variations = variations(source, &known, &entrant.settings[0])?;
        Ok(Self { tuned, untuned, variations })
    }

    /// All methods; the rates of the tuned ones are multiplied by the factors of a task.
    fn entrants(&self, rates: &toml::Table) -> Result<Vec<Entrant>, Error> {
        let factor = |entry: &Entry| rates.get(entry.name).and_then(number);
        let mut entrants = self.untuned.clone();
        // The method under test comes first, then the tuned ones.
        entrants.sort_by_key(|entrant| entrant.role != Role::Tested);
        for (i, (item, entry, label)) in self.tuned.iter().enumerate() {
            let settings = grid(item, entry, label, factor(entry))?;
            entrants.insert(1 + i, Entrant { label: label.clone(), role: Role::Tuned, settings });
        }
        Ok(entrants)
    }
}

/// A key that is true or false; false without it.
fn flag(item: &Source, key: &str) -> Result<bool, Error> {
    let Some(value) = item.table().get(key) else { return Ok(false) };
    value.as_bool().ok_or_else(|| item.error(&[key], format!("`{key}` is {value}, but must be true or false")))
}

/// The texts of a list; `None` if it is something else.
fn texts(value: &toml::Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(toml::Value::as_str).collect()
}

/// The settings of a tuned method, in increasing order of the one number that varies, which is multiplied by `factor`.
fn grid(item: &Source, entry: &Entry, label: &str, factor: Option<f64>) -> Result<Vec<MethodSpec>, Error> {
    let own = ["name", "label"];
    let list = |value: &toml::Value| value.as_array().is_some_and(|list| list.iter().all(|v| number(v).is_some()));
    let varied: Vec<&String> = item
        .table()
        .iter()
        .filter(|(key, value)| !own.contains(&key.as_str()) && value.is_array())
        .map(|(key, _)| key)
        .collect();
    let [key] = varied[..] else {
        let why = format!("[[tuned]] {label}: exactly one parameter must be a list, the one to choose");
        return Err(item.error(&[], why));
    };
    if !list(&item.table()[key]) {
        return Err(item.error(&[key], format!("[[tuned]] {label}: `{key}` must be a list of numbers")));
    }
    let scaled = item.mapped(key, |value| match (number(value), factor) {
        // Three digits, so that names stay short.
        (Some(rate), Some(factor)) => format!("{:.2e}", rate * factor).parse::<f64>().unwrap_or(rate).into(),
        _ => value.clone(),
    });
    let mut settings = scaled.method("tuned", &own, Some(label), entry)?;
    let rate = |method: &MethodSpec| number(&method.hyperparameters[key]).unwrap_or(f64::NAN);
    settings.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
    Ok(settings)
}

/// The method under test with one constant multiplied by factors, for each `[[vary]]`. With `complement`, the factors
/// multiply 1 − constant.
fn variations(source: &Source, known: &[Entry], tested: &MethodSpec) -> Result<Vec<Variation>, Error> {
    let mut all = Vec::new();
    if !source.table().contains_key("vary") {
        return Ok(all);
    }
    let entry = known.iter().find(|entry| entry.name == tested.name).expect("the method was found before");
    for item in source.list("vary")? {
        item.check_keys(&["parameter", "factors", "complement"])?;
        let parameter = item.text("parameter")?.ok_or_else(|| item.error(&[], "[[vary]]: `parameter` is missing"))?;
        let Some(default) = tested.hyperparameters.get(&parameter).and_then(number) else {
            let why = format!("[[vary]]: `{parameter}` is not a number among the parameters of {}", tested.name);
            return Err(item.error(&["parameter"], why));
        };
        let complement = flag(&item, "complement")?;
        let wrong = || item.error(&["factors"], "[[vary]]: `factors` must be a list of positive numbers other than 1");
        let factors = item.table().get("factors").and_then(toml::Value::as_array).ok_or_else(wrong)?;
        for factor in factors {
            let factor = number(factor).filter(|&f| f > 0.0 && f <= LARGEST_FACTOR).ok_or_else(wrong)?;
            let value = if complement { 1.0 - factor * (1.0 - default) } else { factor * default };
            // Digits after the twelfth are rounding errors.
            let value: f64 = format!("{value:.11e}").parse().unwrap_or(value);
            let mut hyperparameters = tested.hyperparameters.clone();
            hyperparameters.insert(parameter.clone(), value.into());
            let hyperparameters = item.complete("vary", entry, &hyperparameters)?;
            if hyperparameters == tested.hyperparameters {
                return Err(wrong());
            }
            let label = format!("{} {parameter}={}", tested.label, plain(&hyperparameters[&parameter]));
            let method =
                MethodSpec { name: tested.name.clone(), label, hyperparameters, varied: vec![parameter.clone()] };
            all.push(Variation { parameter: parameter.clone(), default, value, method });
        }
    }
    Ok(all)
}

fn parse_task(item: &Source, competition: &Competition, seeds: Vec<u64>, constrained: bool) -> Result<Task, Error> {
    let keys = ["name", "title", "half", "judge", "epochs", "batch", "data", "gpu", "rates", "methods", "problem"];
    item.check_keys(&keys)?;
    let name = item.name()?;
    let half = match item.text("half")?.as_deref() {
        Some("development") => Half::Development,
        Some("test") => Half::Test,
        _ => return Err(item.error(&["half"], "`half` must be development or test")),
    };
    let rates = match item.section("rates")? {
        None => toml::Table::new(),
        Some(rates) => {
            let names: Vec<&str> = competition.tuned.iter().map(|(_, entry, _)| entry.name).collect();
            rates.check_keys(&names)?;
            let good = |value: &toml::Value| number(value).is_some_and(|f| f > 0.0 && f <= LARGEST_FACTOR);
            if let Some((key, value)) = rates.table().iter().find(|(_, value)| !good(value)) {
                return Err(rates.error(&[key], format!("`{key}` is {value}, but must be a factor > 0")));
            }
            rates.table().clone()
        }
    };
    let problem = item.section("problem")?.ok_or_else(|| item.error(&[], "[task.problem] is missing"))?;
    let entry = problem.entry("problem", "kind", &problems::all())?;
    if entry.constrained != constrained {
        let why = if constrained {
            "no constraint, but every task here must have one"
        } else {
            "a constraint, and the methods of a benchmark have none"
        };
        return Err(problem.error(&["kind"], format!("`{}` has {why}", entry.name)));
    }
    if item.table().contains_key("data") && entry.parameters.iter().all(|p| p.name != "data") {
        return Err(item.error(&["data"], format!("`{}` reads no data", entry.name)));
    }
    let problems = problem.problem(&["kind"], &name, &entry)?;
    if problems.len() > 1 {
        return Err(problem.error(&[], "a task has one problem: replace the list by one value"));
    }
    let title = item.text("title")?.unwrap_or_else(|| name.clone());
    Ok(Task {
        title: title.clone(),
        half,
        judge: item.word::<Judge>("judge", &["objective", "steps"])?,
        experiment: Experiment {
            name,
            title,
            description: String::new(),
            epochs: item.count("epochs", 50)?,
            batch: item.count("batch", 32)?,
            seeds,
            sampling: Sampling::Epochs,
            records: Records::Epochs,
            measure_every: NonZeroU64::MIN,
            problems,
            methods: Vec::new(),
            tune: None,
            parallel: Parallel::Jobs,
            block: None,
            first_epochs: None,
            figures: FigureStyle::default(),
        },
        entrants: selected(item, competition.entrants(&rates)?)?,
        variations: competition.variations.clone(),
    })
}

/// The method under test, and those of the others that `methods` of a task names; all by default.
fn selected(item: &Source, mut entrants: Vec<Entrant>) -> Result<Vec<Entrant>, Error> {
    let Some(value) = item.table().get("methods") else { return Ok(entrants) };
    let labels = texts(value).ok_or_else(|| {
        item.error(&["methods"], format!("`methods` is {value}, but must be a list of labels of methods"))
    })?;
    if let Some(unknown) = labels.iter().find(|label| entrants.iter().all(|entrant| entrant.label != **label)) {
        let known: Vec<&str> = entrants.iter().map(|entrant| entrant.label.as_str()).collect();
        let why = format!("`methods` has {unknown:?}, but must be labels of methods: {}", known.join(", "));
        return Err(item.error(&["methods"], why));
    }
    entrants.retain(|entrant| entrant.role == Role::Tested || labels.contains(&entrant.label.as_str()));
    Ok(entrants)
}

/// The task with its data and its device; or the task and what is missing.
fn with_resources(item: &Source, mut task: Task, resources: &Resources) -> Result<Result<Task, (Task, String)>, Error> {
    if let Some(value) = item.table().get("data") {
        let names = texts(value).filter(|names| !names.is_empty()).ok_or_else(|| {
            item.error(&["data"], format!("`data` is {value}, but must be a list of names of files or folders"))
        })?;
        let Some(folder) = &resources.data else {
            let why = format!("it needs {}: add --data DIR with the folder that has it", names[0]);
            return Ok(Err((task, why)));
        };
        let Some(path) = names.iter().map(|name| folder.join(name)).find(|path| path.exists()) else {
            let why = format!("the folder {} has none of {}", folder.display(), names.join(", "));
            return Ok(Err((task, why)));
        };
        task.experiment.set_data_of_all(&path)?;
    }
    let gpu = flag(item, "gpu")?;
    if !task.experiment.has_network() {
        return Ok(Ok(task));
    }
    if !device::HAS_TORCH {
        return Ok(Err((task, "it needs a build with libtorch (--features torch)".into())));
    }
    if let Some(device) = &resources.device {
        task.experiment.set_of_networks("device", device.as_str());
    }
    if let Some(precision) = &resources.precision {
        task.experiment.set_of_networks("precision", precision.as_str());
    }
    if gpu && !resources.device.as_ref().is_some_and(|device| device.starts_with("cuda")) {
        return Ok(Err((task, "it needs hours without a GPU: add --device cuda".into())));
    }
    Ok(Ok(task))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::built_in;

    #[test]
    fn the_built_in_benchmark_has_all_its_tasks_and_equal_budgets() {
        let (name, text) = built_in::BENCHMARKS[0];
        let benchmark = BenchmarkSpec::parse(Path::new(name), text, &Resources::default()).unwrap();
        assert!(benchmark.tasks.len() >= 12 && benchmark.tasks.len() + benchmark.skipped.len() >= 16);
        for half in [Half::Development, Half::Test] {
            assert!(benchmark.tasks.iter().filter(|task| task.half == half).count() >= 5, "{half:?}");
        }
        for task in &benchmark.tasks {
            let tuned = task.entrants.iter().filter(|entrant| entrant.role == Role::Tuned);
            for Entrant { label, settings, .. } in tuned {
                let rate = |method: &MethodSpec| number(&method.hyperparameters["learning_rate"]).unwrap();
                let rates: Vec<f64> = settings.iter().map(rate).collect();
                assert!(rates.is_sorted() && rates.len() == 7, "{label}: {rates:?}");
                assert!((rates[6] / rates[0] - 1e3).abs() < 1e-6, "{label}: {rates:?}");
            }
            assert_eq!(task.entrants.iter().filter(|entrant| entrant.role == Role::Tested).count(), 1);
            assert_eq!((task.entrants[0].role, task.entrants[1].role), (Role::Tested, Role::Tuned));
        }
    }

    #[test]
    fn the_kernel_benchmark_is_read_and_needs_its_data() {
        let (name, text) = built_in::BENCHMARKS[1];
        let benchmark = BenchmarkSpec::parse(Path::new(name), text, &Resources::default()).unwrap();
        let skipped: Vec<&str> = benchmark.skipped.iter().map(|task| task.name.as_str()).collect();
        assert_eq!((benchmark.tasks.len(), skipped), (0, vec!["mushrooms", "ijcnn1", "w8a"]));
    }

    #[test]
    fn a_task_may_name_the_methods_that_compete() {
        let of = |methods: &str| {
            let text = format!(
                "name = \"a\"\nmethod = \"adam\"\n[[tuned]]\nname = \"sgd\"\nlearning_rate = [0.1, 0.2]\n\
                 [[untuned]]\nname = \"adam\"\n[[untuned]]\nname = \"str\"\n[[task]]\nname = \"t\"\nhalf = \"test\"\n\
                 {methods}\n[task.problem]\nkind = \"least-squares\"\n"
            );
            BenchmarkSpec::parse(Path::new("a.toml"), &text, &Resources::default())
        };
        let labels = |methods: &str| -> Vec<String> {
            of(methods).unwrap().tasks[0].entrants.iter().map(|entrant| entrant.label.clone()).collect()
        };
        assert_eq!(labels(""), ["adam", "sgd", "str"]);
        assert_eq!(labels("methods = [\"str\"]"), ["adam", "str"]);
        let error = of("methods = [\"st\"]").unwrap_err().to_string();
        assert!(
            error.contains("a.toml:13: `methods` has \"st\", but must be labels of methods: adam, sgd, str"),
            "{error}"
        );
    }

    #[test]
    fn the_complement_of_a_constant_varies_by_a_factor() {
        let text = "name = \"a\"\nmethod = \"adam\"\n[[tuned]]\nname = \"sgd\"\nlearning_rate = [0.1, 0.2]\n\
                    [[untuned]]\nname = \"adam\"\n[[vary]]\nparameter = \"beta1\"\ncomplement = true\nfactors = [2, 0.5]\n\
                    [[vary]]\nparameter = \"epsilon\"\nfactors = [3]\n[[task]]\nname = \"t\"\nhalf = \"test\"\n\
                    [task.problem]\nkind = \"least-squares\"\n";
        let benchmark = BenchmarkSpec::parse(Path::new("a.toml"), text, &Resources::default()).unwrap();
        let varied: Vec<_> =
            benchmark.tasks[0].variations.iter().map(|v| (v.method.label.as_str(), v.value, v.default)).collect();
        let expected =
            [("adam beta1=0.8", 0.8, 0.9), ("adam beta1=0.95", 0.95, 0.9), ("adam epsilon=3e-8", 3e-8, 1e-8)];
        assert_eq!(varied, expected);
    }
}
