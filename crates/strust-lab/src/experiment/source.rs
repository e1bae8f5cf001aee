//! The text of an experiment file: typed access to its keys. Every error message has a line number.

use crate::{
    Error,
    data::{
        experiment::{MAX_EPOCHS, MAX_JOBS, MAX_SEEDS, MethodSpec, ProblemSpec},
        parameters::{Parameters, number},
        paths::{path_of, text_of},
    },
    format::{NAME_RULE, control_character, in_one_line, is_name, plain, written},
    io::data_file,
    registry::{Entry, hint, nearest, problems},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// A table of an experiment file, with its place in the file.
#[derive(Clone)]
pub struct Source<'a> {
    file: &'a Path,
    text: &'a str,
    /// The keys that lead to the table. A number is a position in a list.
    path: Vec<String>,
    table: toml::Table,
}

/// A setting of a grid, and the names of the keys that were lists.
type GridSetting = (Parameters, Vec<String>);

impl<'a> Source<'a> {
    /// Parses the text of a file. `file` is used for messages and relative paths.
    pub fn parse(file: &'a Path, text: &'a str) -> Result<Self, Error> {
        let table: toml::Table = toml::from_str(text).map_err(|e| {
            let line = e.span().map(|span| line_at(text, span.start));
            Error::Experiment { file: file.into(), line, why: in_words(e.message()) }
        })?;
        Ok(Self { file, text, path: Vec::new(), table })
    }

    /// Its keys and values.
    #[must_use]
    pub fn table(&self) -> &toml::Table {
        &self.table
    }

    /// The same, to change them.
    pub fn table_mut(&mut self) -> &mut toml::Table {
        &mut self.table
    }

    /// A table inside this one.
    fn inner(&self, path: &[&str], table: &toml::Table) -> Self {
        let path = self.path.iter().cloned().chain(path.iter().map(|key| (*key).to_string())).collect();
        Self { path, table: table.clone(), ..*self }
    }

    /// This table with every value of a list replaced.
    #[must_use]
    pub fn mapped(&self, key: &str, map: impl Fn(&toml::Value) -> toml::Value) -> Self {
        let mut mapped = self.clone();
        if let Some(toml::Value::Array(list)) = mapped.table.get_mut(key) {
            for value in list {
                *value = map(value);
            }
        }
        mapped
    }

    /// An error at the line of a key of this table; without a key, at the line of the table.
    #[must_use]
    pub fn error(&self, path: &[&str], why: impl Into<String>) -> Error {
        let path: Vec<&str> = self.path.iter().map(String::as_str).chain(path.iter().copied()).collect();
        Error::Experiment { file: self.file.into(), line: line_of(self.text, &path), why: why.into() }
    }

    /// Refuses keys that are not known.
    pub fn check_keys(&self, known: &[&str]) -> Result<(), Error> {
        let Some(key) = self.table.keys().find(|key| !known.contains(&key.as_str())) else { return Ok(()) };
        Err(self.error(&[key], format!("unknown key `{key}`; {}", hint(key, known))))
    }

    /// A text.
    pub fn text(&self, key: &str) -> Result<Option<String>, Error> {
        match self.table.get(key) {
            None => Ok(None),
            Some(toml::Value::String(text)) => match control_character(text, key == "description") {
                None => Ok(Some(text.clone())),
                Some(found) => Err(self.error(&[key], format!("`{key}` has the control character {found}: remove it"))),
            },
            Some(value) => Err(self.error(&[key], format!("`{key}` is {value}, but must be a text"))),
        }
    }

    /// The key `name`, which must be a valid name of a folder.
    pub fn name(&self) -> Result<String, Error> {
        let name = self.text("name")?.ok_or_else(|| self.error(&[], "`name` is missing"))?;
        if !is_name(&name) {
            return Err(self.error(&["name"], format!("`name` is {name:?}, but {NAME_RULE}")));
        }
        Ok(name)
    }

    /// A whole number from 1 to the largest number of epochs.
    pub fn count(&self, key: &str, default: u64) -> Result<u64, Error> {
        match self.table.get(key) {
            None => Ok(default),
            Some(value) => match value.as_integer() {
                Some(n @ 1..) if n as u64 <= MAX_EPOCHS => Ok(n as u64),
                _ => {
                    let why = format!("`{key}` is {value}, but must be a whole number in [1, {MAX_EPOCHS}]");
                    Err(self.error(&[key], why))
                }
            },
        }
    }

    /// One of these words; the default without the key.
    pub fn word<T: Default + serde::de::DeserializeOwned>(&self, key: &str, words: &[&str]) -> Result<T, Error> {
        let Some(value) = self.table.get(key) else { return Ok(T::default()) };
        value
            .clone()
            .try_into()
            .map_err(|_| self.error(&[key], format!("`{key}` is {value}, but must be one of {}", words.join(", "))))
    }

    /// The seeds: a number of them, or a list.
    pub fn seeds(&self) -> Result<Vec<u64>, Error> {
        let wrong = || {
            self.error(
                &["seeds"],
                "`seeds` must be a whole number in [1, 1000000], or a list of different whole numbers in [0, 1000000)",
            )
        };
        let Some(value) = self.table.get("seeds") else { return Ok((0..5).collect()) };
        if let Some(n) = value.as_integer() {
            let n = u64::try_from(n).ok().filter(|n| (1..=MAX_SEEDS).contains(n)).ok_or_else(wrong)?;
            return Ok((0..n).collect());
        }
        let seed = |seed: &toml::Value| u64::try_from(seed.as_integer()?).ok().filter(|&seed| seed < MAX_SEEDS);
        let seeds: Option<Vec<u64>> = value.as_array().and_then(|list| list.iter().map(seed).collect());
        let different = |seeds: &Vec<u64>| seeds.iter().collect::<BTreeSet<_>>().len() == seeds.len();
        seeds.filter(|seeds| !seeds.is_empty() && different(seeds)).ok_or_else(wrong)
    }

    /// The section `[key]`.
    pub fn section(&self, key: &str) -> Result<Option<Self>, Error> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        let table = value.as_table().ok_or_else(|| self.error(&[key], format!("`{key}` must be a section [{key}]")))?;
        Ok(Some(self.inner(&[key], table)))
    }

    /// The section `[key]` as plain data.
    pub fn data<T: serde::de::DeserializeOwned>(&self, key: &str, known: &[&str]) -> Result<Option<T>, Error> {
        let Some(section) = self.section(key)? else { return Ok(None) };
        section.check_keys(known)?;
        let data = section.table.try_into();
        data.map(Some).map_err(|e: toml::de::Error| self.error(&[key], format!("[{key}]: {}", in_words(e.message()))))
    }

    /// The sections `[[key]]`, at least one.
    pub fn list(&self, key: &str) -> Result<Vec<Self>, Error> {
        let missing = || {
            let hint = if self.table.contains_key(key) {
                format!(" (written [[{key}]], with two brackets)")
            } else {
                String::new()
            };
            self.error(&[key], format!("there is no [[{key}]]: an experiment needs at least one{hint}"))
        };
        let list = self.table.get(key).and_then(toml::Value::as_array).filter(|list| !list.is_empty());
        let one = |(i, item): (usize, &toml::Value)| {
            Ok(self.inner(&[key, &i.to_string()], item.as_table().ok_or_else(missing)?))
        };
        list.ok_or_else(missing)?.iter().enumerate().map(one).collect()
    }

    /// The registry entry that this table names by its key `key`; `what` is the kind of entry, for messages.
    pub fn entry(&self, what: &str, key: &str, known: &[Entry]) -> Result<Entry, Error> {
        let name = self.table.get(key).and_then(toml::Value::as_str).ok_or_else(|| {
            let place = match self.path.last().and_then(|last| last.parse::<usize>().ok()) {
                Some(i) => format!("[[{what}]] number {}", i + 1),
                None => format!("[{}]", self.path.join(".")),
            };
            self.error(&[], format!("{place}: `{key}` is missing or not a text"))
        })?;
        let names = || known.iter().map(|e| e.name);
        known.iter().find(|e| e.name == name).cloned().ok_or_else(|| {
            let hint = nearest(name, names()).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
            let all = names().collect::<Vec<_>>().join(", ");
            self.error(&[key], format!("unknown {what} `{name}`; {hint}Known: {all}"))
        })
    }

    /// Every combination of the lists in this table, which are parameters of `entry`. The keys in `own` are not parameters.
    fn settings(&self, what: &str, own: &[&str], entry: &Entry) -> Result<Vec<GridSetting>, Error> {
        let known: Vec<&str> = own.iter().copied().chain(entry.parameters.iter().map(|p| p.name)).collect();
        self.check_keys(&known)?;
        let mut settings = vec![Parameters::new()];
        let mut varied = Vec::new();
        for (name, value) in self.table.iter().filter(|(name, _)| !own.contains(&name.as_str())) {
            let choices = match value {
                toml::Value::Array(list) if list.is_empty() => {
                    return Err(self.error(&[name], format!("`{name}` is an empty list: give at least one value")));
                }
                toml::Value::Array(list) if has_twice(list) => {
                    return Err(self.error(&[name], format!("`{name}` has a value twice")));
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
                        "[[{what}]] {}: `{name}` is {}, but must be {}",
                        entry.name,
                        written(choice),
                        p.wanted(choice)
                    );
                    return Err(self.error(&[name], why));
                }
            }
            if settings.len().saturating_mul(choices.len()) > MAX_JOBS {
                let why =
                    format!("the lists of [[{what}]] {} make more than {MAX_JOBS} settings: shorten them", entry.name);
                return Err(self.error(&[], why));
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

    /// The setting with the defaults of `entry`.
    pub fn complete(&self, what: &str, entry: &Entry, setting: &Parameters) -> Result<Parameters, Error> {
        entry.complete(setting).map_err(|why| {
            // The message names the field in backticks. The line of the field is more precise than the line of the section.
            let field = setting.keys().find(|name| why.contains(&format!("`{name}`")));
            let path: Vec<&str> = field.into_iter().map(String::as_str).collect();
            self.error(&path, format!("[[{what}]] {}: {why}", entry.name))
        })
    }

    /// The settings of the method that this table describes. Their labels start with `label`, or with the method's name.
    pub fn method(
        &self,
        what: &str,
        own: &[&str],
        label: Option<&str>,
        entry: &Entry,
    ) -> Result<Vec<MethodSpec>, Error> {
        let mut methods = Vec::new();
        for (setting, varied) in self.settings(what, own, entry)? {
            let hyperparameters = self.complete(what, entry, &setting)?;
            let label = labeled(label.unwrap_or(entry.name), &hyperparameters, &varied);
            methods.push(MethodSpec { name: entry.name.into(), label, hyperparameters, varied });
        }
        Ok(methods)
    }

    /// The problems that this table describes. Their names start with `name`.
    pub fn problem(&self, own: &[&str], name: &str, entry: &Entry) -> Result<Vec<ProblemSpec>, Error> {
        let (mut problems, mut checksums) = (Vec::new(), BTreeMap::new());
        for (mut setting, varied) in self.settings("problem", own, entry)? {
            self.resolve_data(&mut setting)?;
            let mut parameters = self.complete("problem", entry, &setting)?;
            let name = labeled(name, &parameters, &varied);
            if data_file::path(&parameters).is_some() {
                // The plan must not contain sizes that are not those of the file.
                parameters.retain(|key, _| !problems::synthetic(entry.name).contains(&key.as_str()));
            }
            // The settings of a grid share their data file.
            let path = data_file::path(&parameters);
            if let Some(path) = path.as_ref().filter(|path| !checksums.contains_key(*path)) {
                checksums.insert(path.clone(), data_file::checksum_of(path)?);
            }
            let checksum = path.map(|path| checksums[&path].clone());
            problems.push(ProblemSpec { name, kind: entry.name.into(), parameters, checksum });
        }
        Ok(problems)
    }

    /// A relative path of a data file is relative to the folder of the experiment file.
    fn resolve_data(&self, setting: &mut Parameters) -> Result<(), Error> {
        let Some(toml::Value::String(data)) = setting.get_mut("data") else { return Ok(()) };
        if !data.is_empty() {
            let path: PathBuf = self.file.parent().unwrap_or(Path::new("")).join(&*data);
            data_file::check_readable_again(&path).map_err(|why| self.error(&["data"], why.to_string()))?;
            let path = path
                .canonicalize()
                .map_err(|e| self.error(&["data"], format!("cannot open the data file {}: {e}", path.display())))?;
            *data = text_of(&path);
        }
        Ok(())
    }
}

/// The name, with the parameters that a grid varies.
fn labeled(name: &str, parameters: &Parameters, varied: &[String]) -> String {
    // Only the name of a data file: its folder belongs to this machine.
    let shown = |key: &String| match parameters[key].as_str().filter(|_| key == "data") {
        Some(path) => in_one_line(&path_of(path).file_name().unwrap_or_default().to_string_lossy()),
        None => plain(&parameters[key]),
    };
    varied.iter().fold(name.to_string(), |label, key| format!("{label} {key}={}", shown(key)))
}

/// Whether two values of a list are equal; 1 and 1.0 are.
fn has_twice(list: &[toml::Value]) -> bool {
    // The sum turns −0 into 0. Two NaN differ, but neither is ever allowed.
    let key = |value: &toml::Value| match number(value) {
        Some(number) => (true, format!("{:x}", (number + 0.0).to_bits())),
        None => (false, value.to_string()),
    };
    let mut known = BTreeSet::new();
    !list.iter().all(|value| known.insert(key(value)))
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
