//! Parses the text of an experiment file. Every error message has a line number.

use crate::{
    Error,
    data::{
        experiment::{Experiment, MAX_EPOCHS, MAX_JOBS, MAX_SEEDS, MethodSpec, ProblemSpec, Tune},
        parameters::Parameters,
    },
    format::{folder_name, plain, written},
    io::data_file,
    registry::{Entry, methods, nearest, problems},
};
use std::path::{Path, PathBuf};

impl Experiment {
    /// Parses the text of an experiment file. `file` is used for messages and relative paths.
    pub fn parse(file: &Path, text: &str) -> Result<Self, Error> {
        let source = Source { file, text };
        let table: toml::Table = toml::from_str(text).map_err(|e| {
            let line = e.span().map(|span| line_at(text, span.start));
            Error::Experiment { file: file.into(), line, why: in_words(e.message()) }
        })?;
        let keys = [
            "name",
            "title",
            "description",
            "epochs",
            "batch",
            "seeds",
            "sampling",
            "records",
            "problem",
            "method",
            "tune",
        ];
        source.check_keys(&table, &[], &keys)?;

        let name = source.text_at(&table, "name")?.ok_or_else(|| source.error(&[], "`name` is missing"))?;
        let valid = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || !name.chars().all(valid) || name.starts_with('.') {
            let why = format!(
                "`name` is {name:?}, but must consist of letters, digits, `-`, `_` and `.`, because it names a folder"
            );
            return Err(source.error(&["name"], why));
        }
        let count = |key: &str, default: u64| match table.get(key) {
            None => Ok(default),
            Some(value) => match value.as_integer() {
                Some(n @ 1..) if n as u64 <= MAX_EPOCHS => Ok(n as u64),
                _ => {
                    let why = format!("`{key}` is {value}, but must be a whole number in [1, {MAX_EPOCHS}]");
                    Err(source.error(&[key], why))
                }
            },
        };
        let tune = source.section::<Tune>(&table, "tune", &["metric", "epochs", "seeds"])?;
        let methods = source.methods(&table)?;
        let problems = source.problems(&table)?;
        source.check_fit(&problems, &methods)?;
        source.check_tune(tune.as_ref(), &problems)?;
        Ok(Self {
            title: source.text_at(&table, "title")?.unwrap_or_else(|| name.clone()),
            description: source.text_at(&table, "description")?.unwrap_or_default().trim().into(),
            name,
            epochs: count("epochs", 50)?,
            batch: count("batch", 32)?,
            seeds: source.seeds(&table)?,
            sampling: source.word(&table, "sampling", &["epochs", "replacement"])?,
            records: source.word(&table, "records", &["steps", "epochs"])?,
            problems,
            methods,
            tune,
        })
    }
}

/// The text of an experiment file, used to find line numbers.
struct Source<'a> {
    file: &'a Path,
    text: &'a str,
}

impl Source<'_> {
    fn error(&self, path: &[&str], why: impl Into<String>) -> Error {
        Error::Experiment { file: self.file.into(), line: line_of(self.text, path), why: why.into() }
    }

    fn check_keys(&self, table: &toml::Table, path: &[&str], known: &[&str]) -> Result<(), Error> {
        let Some(key) = table.keys().find(|key| !known.contains(&key.as_str())) else { return Ok(()) };
        let hint = match nearest(key, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known here: {}", known.join(", ")),
        };
        let path: Vec<_> = path.iter().copied().chain([key.as_str()]).collect();
        Err(self.error(&path, format!("unknown key `{key}`; {hint}")))
    }

    fn text_at(&self, table: &toml::Table, key: &str) -> Result<Option<String>, Error> {
        match table.get(key) {
            None => Ok(None),
            Some(toml::Value::String(text)) => Ok(Some(text.clone())),
            Some(value) => Err(self.error(&[key], format!("`{key}` is {value}, but must be a text"))),
        }
    }

    fn word<T: Default + serde::de::DeserializeOwned>(
        &self,
        table: &toml::Table,
        key: &str,
        words: &[&str],
    ) -> Result<T, Error> {
        let Some(value) = table.get(key) else { return Ok(T::default()) };
        value
            .clone()
            .try_into()
            .map_err(|_| self.error(&[key], format!("`{key}` is {value}, but must be one of {}", words.join(", "))))
    }

    fn seeds(&self, table: &toml::Table) -> Result<Vec<u64>, Error> {
        let wrong = || {
            self.error(
                &["seeds"],
                "`seeds` must be a whole number in [1, 1000000], or a list of different whole numbers in [0, 1000000)",
            )
        };
        let Some(value) = table.get("seeds") else { return Ok((0..5).collect()) };
        if let Some(n) = value.as_integer() {
            let n = u64::try_from(n).ok().filter(|n| (1..=MAX_SEEDS).contains(n)).ok_or_else(wrong)?;
            return Ok((0..n).collect());
        }
        let list = value.as_array().ok_or_else(wrong)?;
        let mut seeds = Vec::new();
        for seed in list {
            let seed =
                seed.as_integer().and_then(|s| u64::try_from(s).ok()).filter(|&s| s < MAX_SEEDS).ok_or_else(wrong)?;
            if seeds.contains(&seed) {
                return Err(wrong());
            }
            seeds.push(seed);
        }
        if seeds.is_empty() { Err(wrong()) } else { Ok(seeds) }
    }

    fn section<T: serde::de::DeserializeOwned>(
        &self,
        table: &toml::Table,
        key: &str,
        known: &[&str],
    ) -> Result<Option<T>, Error> {
        let Some(value) = table.get(key) else { return Ok(None) };
        let section =
            value.as_table().ok_or_else(|| self.error(&[key], format!("`{key}` must be a section [{key}]")))?;
        self.check_keys(section, &[key], known)?;
        section
            .clone()
            .try_into()
            .map(Some)
            .map_err(|e: toml::de::Error| self.error(&[key], format!("[{key}]: {}", in_words(e.message()))))
    }

    /// The tables `[[key]]`, each with its registry entry.
    fn entries<'t>(
        &self,
        table: &'t toml::Table,
        key: &str,
        name_key: &str,
        known: &[Entry],
    ) -> Result<Vec<(&'t toml::Table, Entry)>, Error> {
        let missing = || {
            let hint = if table.contains_key(key) {
                format!(" (written [[{key}]], with two brackets)")
            } else {
                String::new()
            };
            self.error(&[key], format!("there is no [[{key}]]: an experiment needs at least one{hint}"))
        };
        let list =
            table.get(key).and_then(toml::Value::as_array).filter(|list| !list.is_empty()).ok_or_else(missing)?;
        let mut entries = Vec::new();
        for (i, item) in list.iter().enumerate() {
            let at = i.to_string();
            let item = item.as_table().ok_or_else(missing)?;
            let name = item.get(name_key).and_then(toml::Value::as_str).ok_or_else(|| {
                self.error(&[key, &at], format!("[[{key}]] number {}: `{name_key}` is missing or not a text", i + 1))
            })?;
            let names = || known.iter().map(|e| e.name);
            let entry = known.iter().find(|e| e.name == name).ok_or_else(|| {
                let hint = nearest(name, names()).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
                let all = names().collect::<Vec<_>>().join(", ");
                self.error(&[key, &at, name_key], format!("unknown {key} `{name}`; {hint}Known: {all}"))
            })?;
            entries.push((item, entry.clone()));
        }
        Ok(entries)
    }

    fn methods(&self, table: &toml::Table) -> Result<Vec<MethodSpec>, Error> {
        let mut methods: Vec<MethodSpec> = Vec::new();
        for (i, (item, entry)) in self.entries(table, "method", "name", &methods::all())?.into_iter().enumerate() {
            for (setting, varied) in self.settings("method", i, item, "name", &[], &entry)? {
                let hyperparameters = self.complete("method", i, &entry, &setting)?;
                let label = label(entry.name, &hyperparameters, &varied);
                methods.push(MethodSpec { name: entry.name.into(), label, hyperparameters, varied });
            }
        }
        for i in 1..methods.len() {
            if methods[..i].iter().any(|m| folder_name(&m.label) == folder_name(&methods[i].label)) {
                methods[i].label = format!("{} #{}", methods[i].label, i + 1);
            }
        }
        Ok(methods)
    }

    fn problems(&self, table: &toml::Table) -> Result<Vec<ProblemSpec>, Error> {
        let mut problems: Vec<ProblemSpec> = Vec::new();
        for (i, (item, entry)) in self.entries(table, "problem", "kind", &problems::all())?.into_iter().enumerate() {
            let given = match item.get("name") {
                None => entry.name,
                Some(toml::Value::String(name)) if (1..=100).contains(&name.len()) && !name.starts_with('.') => name,
                Some(other) => {
                    let why = format!(
                        "`name` is {other}, but must be a text of 1 to 100 characters that does not start with a dot"
                    );
                    return Err(self.error(&["problem", &i.to_string(), "name"], why));
                }
            };
            for (mut setting, varied) in self.settings("problem", i, item, "kind", &["name"], &entry)? {
                self.resolve_data(i, &mut setting)?;
                let parameters = self.complete("problem", i, &entry, &setting)?;
                let name = label(given, &parameters, &varied);
                if problems.iter().any(|p| folder_name(&p.name) == folder_name(&name)) {
                    let why = format!(
                        "two problems would use the same folder name `{name}`: give each [[problem]] a different `name`"
                    );
                    return Err(self.error(&["problem", &i.to_string()], why));
                }
                let checksum = data_file::path(&parameters).map(data_file::checksum_of).transpose()?;
                problems.push(ProblemSpec { name, kind: entry.name.into(), parameters, checksum });
            }
        }
        Ok(problems)
    }

    /// A relative path of a data file is relative to the folder of the experiment file.
    fn resolve_data(&self, i: usize, setting: &mut Parameters) -> Result<(), Error> {
        let Some(toml::Value::String(data)) = setting.get_mut("data") else { return Ok(()) };
        if !data.is_empty() {
            let path: PathBuf = self.file.parent().unwrap_or(Path::new("")).join(&*data);
            let path = path.canonicalize().map_err(|e| {
                self.error(
                    &["problem", &i.to_string(), "data"],
                    format!("cannot open the data file {}: {e}", path.display()),
                )
            })?;
            *data = path.to_string_lossy().into_owned();
        }
        Ok(())
    }

    /// Every combination of the lists in a table, with the names of the keys that were lists.
    fn settings(
        &self,
        key: &str,
        i: usize,
        item: &toml::Table,
        name_key: &str,
        others: &[&str],
        entry: &Entry,
    ) -> Result<Vec<(Parameters, Vec<String>)>, Error> {
        let at = i.to_string();
        let own: Vec<&str> = [name_key].iter().chain(others).copied().collect();
        let known: Vec<&str> = own.iter().copied().chain(entry.parameters.iter().map(|p| p.name)).collect();
        self.check_keys(item, &[key, &at], &known)?;
        let mut settings = vec![Parameters::new()];
        let mut varied = Vec::new();
        for (name, value) in item.iter().filter(|(name, _)| !own.contains(&name.as_str())) {
            let choices = match value {
                toml::Value::Array(list) if list.is_empty() => {
                    return Err(
                        self.error(&[key, &at, name], format!("`{name}` is an empty list: give at least one value"))
                    );
                }
                toml::Value::Array(list) if (1..list.len()).any(|i| list[..i].iter().any(|v| same(v, &list[i]))) => {
                    return Err(self.error(&[key, &at, name], format!("`{name}` has a value twice")));
                }
                toml::Value::Array(list) => {
                    varied.push(name.clone());
                    list.as_slice()
                }
                single => std::slice::from_ref(single),
            };
            let parameter = entry.parameters.iter().find(|p| p.name == name);
            for choice in choices {
                if let Some(p) = parameter.filter(|p| !p.accepts(choice)) {
                    let why = format!(
                        "[[{key}]] {}: `{name}` is {}, but must be {}",
                        entry.name,
                        written(choice),
                        p.wanted(choice)
                    );
                    return Err(self.error(&[key, &at, name], why));
                }
            }
            if settings.len().saturating_mul(choices.len()) > MAX_JOBS {
                let why =
                    format!("the lists of [[{key}]] {} make more than {MAX_JOBS} settings: shorten them", entry.name);
                return Err(self.error(&[key, &at], why));
            }
            settings = settings
                .iter()
                .flat_map(|s| {
                    choices.iter().map(move |c| s.clone().into_iter().chain([(name.clone(), c.clone())]).collect())
                })
                .collect();
        }
        Ok(settings.into_iter().map(|s| (s, varied.clone())).collect())
    }

    fn complete(&self, key: &str, i: usize, entry: &Entry, setting: &Parameters) -> Result<Parameters, Error> {
        entry.complete(setting).map_err(|why| {
            let at = i.to_string();
            // The message names the field in backticks. The line of the field is more precise than the line of the section.
            let field = setting.keys().find(|name| why.contains(&format!("`{name}`")));
            let path: Vec<&str> = [key, &at].into_iter().chain(field.map(String::as_str)).collect();
            self.error(&path, format!("[[{key}]] {}: {why}", entry.name))
        })
    }

    fn check_tune(&self, tune: Option<&Tune>, problems: &[ProblemSpec]) -> Result<(), Error> {
        let Some(tune) = tune else { return Ok(()) };
        let range = [("epochs", tune.epochs, MAX_EPOCHS), ("seeds", tune.seeds, MAX_SEEDS)];
        if let Some((key, value, most)) = range.into_iter().find(|(_, value, most)| !(1..=*most).contains(value)) {
            let why = format!("[tune]: `{key}` is {value}, but must be a whole number in [1, {most}]");
            return Err(self.error(&["tune", key], why));
        }
        for problem in problems {
            let known: Vec<&str> = problems::quantities(problem).iter().map(|(quantity, _)| quantity.key()).collect();
            if !known.contains(&tune.metric.as_str()) {
                let known = known.join(", ");
                let why = format!("[tune]: `metric` is {:?}, but problem `{}` has {known}", tune.metric, problem.name);
                return Err(self.error(&["tune", "metric"], why));
            }
        }
        Ok(())
    }

    fn check_fit(&self, problems: &[ProblemSpec], methods: &[MethodSpec]) -> Result<(), Error> {
        let constrained = |list: &[Entry], name: &str| list.iter().any(|e| e.name == name && e.constrained);
        let (all_methods, all_problems) = (methods::all(), problems::all());
        for problem in problems.iter().filter(|p| !constrained(&all_problems, &p.kind)) {
            if let Some(method) = methods.iter().find(|m| constrained(&all_methods, &m.name)) {
                let free: Vec<_> = all_methods.iter().filter(|m| !m.constrained).map(|m| m.name).collect();
                let why = format!(
                    "method `{}` needs a problem with a constraint, but `{}` has none; use one of {}",
                    method.name,
                    problem.kind,
                    free.join(", ")
                );
                return Err(self.error(&["method"], why));
            }
        }
        Ok(())
    }
}

fn label(name: &str, parameters: &Parameters, varied: &[String]) -> String {
    // Only the name of a data file: its folder belongs to this machine.
    let shown = |key: &String| match parameters[key].as_str().filter(|_| key == "data") {
        Some(path) => Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned(),
        None => plain(&parameters[key]),
    };
    varied.iter().fold(name.to_string(), |label, key| format!("{label} {key}={}", shown(key)))
}

/// Whether two values are equal; 1 and 1.0 are.
fn same(a: &toml::Value, b: &toml::Value) -> bool {
    let number = |value: &toml::Value| value.as_float().or_else(|| value.as_integer().map(|n| n as f64));
    a == b || number(a).is_some_and(|a| Some(a) == number(b))
}

/// The parser's message, without Rust type names.
fn in_words(message: &str) -> String {
    let message = message.replace('\n', " ").replace(" as i128", "");
    message.replace("expected u64", "expected a whole number of at least 0").replace("u64 value", "a whole number")
}

fn line_at(text: &str, offset: usize) -> usize {
    text[..offset.min(text.len())].matches('\n').count() + 1
}

/// The line of the key at `path`; a number in the path is a position in a list.
fn line_of(text: &str, path: &[&str]) -> Option<usize> {
    let table = toml::de::DeTable::parse(text).ok()?;
    let mut here = toml::de::DeValue::Table(table.into_inner());
    let mut line = None;
    for step in path {
        let next = match &here {
            toml::de::DeValue::Table(table) => {
                let (key, value) = table.iter().find(|(key, _)| key.get_ref() == step)?;
                line = Some(line_at(text, key.span().start));
                value.get_ref().clone()
            }
            toml::de::DeValue::Array(list) => {
                let value = list.get(step.parse::<usize>().ok()?)?;
                line = Some(line_at(text, value.span().start));
                value.get_ref().clone()
            }
            _ => return line,
        };
        here = next;
    }
    line
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
        assert!(line == Some(9) && why.contains("known here: name, learning_rate"), "{line:?} {why}");
    }

    #[test]
    fn an_error_on_a_value_out_of_range_gives_the_range_and_the_line() {
        let (line, why) = refusal("[[problem]]\nkind = \"subspace\"\nk = 0\n[[method]]\nname = \"str-p\"\n");
        assert_eq!(line, Some(7));
        assert!(why.contains("`k` is 0, but must be a whole number in [1, 10000000]"), "{why}");
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
