//! Settings from the command line, `--set KEY=VALUE`, which replace values of an experiment file before it is parsed.

use super::source::Source;
use crate::{
    Error,
    format::{folder_name, written},
    registry::{Entry, hint, methods, problems},
};
use std::{collections::BTreeMap, fmt, str::FromStr};

/// `KEY=VALUE`, or `NAME.KEY=VALUE` for the methods or problems of one name. The value is written as in TOML; a word
/// needs no quotes. A list makes a grid, as in a file.
///
/// ```
/// use strust_lab::experiment::Setting;
/// let setting: Setting = "sgd.learning_rate=0.5".parse()?;
/// assert_eq!(setting.to_string(), "sgd.learning_rate=0.5");
/// assert!("learning_rate".parse::<Setting>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The method or the problem; absent for all that have the key.
    owner: Option<String>,
    key: String,
    value: toml::Value,
}

/// The keys of an experiment itself that can be set.
const OWN: [&str; 7] = ["epochs", "batch", "seeds", "sampling", "records", "measure_every", "method"];

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (place, value) = text.split_once('=').ok_or_else(|| {
            format!("`{text}` has no value: write KEY=VALUE, or NAME.KEY=VALUE for one method or problem")
        })?;
        let (owner, key) = place.trim().rsplit_once('.').map_or((None, place.trim()), |(o, k)| (Some(o), k));
        if key.is_empty() || owner.is_some_and(str::is_empty) {
            return Err(format!("`{text}` has no key: write KEY=VALUE, or NAME.KEY=VALUE for one method or problem"));
        }
        let value = value_of(value.trim()).ok_or_else(|| {
            format!("`{value}` is not a value: write a number, a word, a list such as [0.1,0.2], or a \"text\"")
        })?;
        Ok(Self { owner: owner.map(Into::into), key: key.into(), value })
    }
}

/// A value as in TOML, or a word without quotes.
fn value_of(text: &str) -> Option<toml::Value> {
    let word = |text: &str| {
        let plain = |c: char| c.is_alphanumeric() || "-_./:".contains(c);
        (!text.is_empty() && text.chars().all(plain)).then(|| text.into())
    };
    let parsed = toml::from_str::<toml::Table>(&format!("value = {text}")).ok();
    parsed.filter(|table| table.len() == 1).and_then(|mut table| table.remove("value")).or_else(|| word(text))
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(owner) = &self.owner {
            write!(f, "{owner}.")?;
        }
        write!(f, "{}={}", self.key, self.value.as_str().map_or_else(|| written(&self.value), Into::into))
    }
}

/// The name of the default results folder of an experiment with settings. It differs from that of the file as it is, so
/// that results of different plans never mix.
#[must_use]
pub fn folder_with(name: &str, settings: &[Setting]) -> String {
    const MOST: usize = 120;
    let parts = settings.iter().map(|setting| format!(".{setting}"));
    folder_name(&parts.fold(name.into(), |all: String, part| all + &part)).chars().take(MOST).collect()
}

/// The method of a file that names none: Auto, or one for the constraints of its problems.
pub(super) fn default_method(source: &Source) -> Result<&'static str, Error> {
    let known = problems::all();
    let entries = source.list("problem")?.into_iter().map(|item| item.entry("problem", "kind", &known));
    Ok(problems::default_method(entries.collect::<Result<Vec<_>, _>>()?.iter().map(|entry| entry.name)))
}

/// Applies the settings to the table of a file. Their order does not matter: first the methods are replaced, then keys of
/// all are set, then those of one method or problem. Two settings of the same key are refused.
pub(super) fn apply(source: &mut Source, settings: &[Setting]) -> Result<(), Error> {
    let mut ordered: Vec<&Setting> = settings.iter().collect();
    ordered.sort_by_key(|setting| (setting.owner.is_some(), setting.key != "method"));
    let mut set = SetKeys::new();
    ordered.into_iter().try_for_each(|setting| setting.apply(source, &mut set).map_err(|why| source.error(&[], why)))
}

/// The settings by the section, the position in it and the key that they set.
type SetKeys<'a> = BTreeMap<(&'static str, usize, &'a str), &'a Setting>;

impl Setting {
    /// The values of a list, or the single value.
    fn choices(&self) -> &[toml::Value] {
        self.value.as_array().map_or(std::slice::from_ref(&self.value), Vec::as_slice)
    }

    fn wrong(&self, why: impl fmt::Display) -> String {
        format!("--set {self}: {why}")
    }

    /// Notes that this setting sets a key. One for a single method or problem may replace one for all.
    fn note<'a>(&'a self, section: &'static str, i: usize, set: &mut SetKeys<'a>) -> Result<(), String> {
        match set.insert((section, i, &self.key), self) {
            Some(other) if other.owner.is_some() == self.owner.is_some() => {
                Err(self.wrong(format_args!("--set {other} sets the same key: give only one of them")))
            }
            _ => Ok(()),
        }
    }

    fn apply<'a>(&'a self, source: &mut Source, set: &mut SetKeys<'a>) -> Result<(), String> {
        if self.owner.is_none() && OWN.contains(&self.key.as_str()) {
            self.note("", 0, set)?;
            if self.key == "method" {
                return self.replace_methods(source);
            }
            source.table_mut().insert(self.key.clone(), self.value.clone());
            return Ok(());
        }
        // A file without methods uses the default; to set a key of it, write it down. Wrong problems are found later.
        if let (false, Ok(name)) = (source.table().contains_key("method"), default_method(source)) {
            let table = [("name".to_string(), name.into())].into_iter().collect();
            source.table_mut().insert("method".into(), toml::Value::Array(vec![toml::Value::Table(table)]));
        }
        let (all_methods, all_problems) = (methods::all(), problems::all());
        let mine = self.places(source, "method", "name", &all_methods);
        let theirs = self.places(source, "problem", "kind", &all_problems);
        match (mine.is_empty(), theirs.is_empty()) {
            (true, true) => Err(self.unknown(source, &all_methods, &all_problems)),
            (false, false) => Err(self.wrong(format_args!(
                "`{}` is a key of the method `{}` and of the problem `{}`: write NAME.{}=… with one of these names",
                self.key, mine[0].1.name, theirs[0].1.name, self.key
            ))),
            (methods, _) => {
                let (section, places) = if methods { ("problem", theirs) } else { ("method", mine) };
                places.into_iter().try_for_each(|(i, entry)| {
                    self.note(section, i, set)?;
                    self.put(source, section, i, entry)
                })
            }
        }
    }

    /// The positions of the methods or problems in the file that this setting is for and that have its key.
    fn places<'e>(&self, source: &Source, section: &str, by: &str, known: &'e [Entry]) -> Vec<(usize, &'e Entry)> {
        let named = tables(source, section, by, known);
        let wanted = |table: &toml::Table, entry: &Entry| {
            self.owner.as_ref().is_none_or(|owner| {
                owner == entry.name || table.get("name").and_then(toml::Value::as_str) == Some(owner)
            })
        };
        let has = |entry: &Entry| entry.parameters.iter().any(|p| p.name == self.key);
        named.filter(|(_, table, entry)| wanted(table, entry) && has(entry)).map(|(i, _, entry)| (i, entry)).collect()
    }

    fn put(&self, source: &mut Source, section: &str, i: usize, entry: &Entry) -> Result<(), String> {
        let parameter = entry.parameters.iter().find(|p| p.name == self.key).expect("places have the key");
        if let Some(wrong) = self.choices().iter().find(|choice| !parameter.accepts(choice)) {
            let must = parameter.wanted(wrong);
            return Err(self.wrong(format_args!("`{}` of {} must be {must}", self.key, entry.name)));
        }
        let list = source.table_mut().get_mut(section).and_then(toml::Value::as_array_mut);
        if let Some(table) = list.and_then(|list| list.get_mut(i)).and_then(toml::Value::as_table_mut) {
            table.insert(self.key.clone(), self.value.clone());
        }
        Ok(())
    }

    /// `method=NAME`: this method, or a list of them, with their defaults.
    fn replace_methods(&self, source: &mut Source) -> Result<(), String> {
        let known = methods::all();
        let mut list = Vec::new();
        for choice in self.choices() {
            let name = choice.as_str().unwrap_or_default();
            if !known.iter().any(|entry| entry.name == name) {
                let hint = hint(name, &known.iter().map(|entry| entry.name).collect::<Vec<_>>());
                return Err(self.wrong(format_args!("there is no method {choice}; {hint}")));
            }
            list.push(toml::Value::Table([("name".to_string(), name.into())].into_iter().collect()));
        }
        source.table_mut().insert("method".into(), toml::Value::Array(list));
        Ok(())
    }

    fn unknown(&self, source: &Source, all_methods: &[Entry], all_problems: &[Entry]) -> String {
        let methods = tables(source, "method", "name", all_methods);
        let here: Vec<(&toml::Table, &Entry)> =
            methods.chain(tables(source, "problem", "kind", all_problems)).map(|(_, t, e)| (t, e)).collect();
        let name_of = |table: &toml::Table| table.get("name").and_then(toml::Value::as_str).map(ToString::to_string);
        let keys = |entry: &Entry| entry.parameters.iter().map(|p| p.name).collect::<Vec<_>>();
        let Some(owner) = &self.owner else {
            let mut known: Vec<&str> = here.iter().flat_map(|(_, entry)| keys(entry)).chain(OWN).collect();
            known.sort_unstable();
            known.dedup();
            return self.wrong(format_args!(
                "no method and no problem of the experiment has the key `{}`; {}",
                self.key,
                hint(&self.key, &known)
            ));
        };
        let is_owner =
            |(table, entry): &&(&toml::Table, &Entry)| entry.name == owner || name_of(table).as_ref() == Some(owner);
        if let Some((_, entry)) = here.iter().find(is_owner) {
            return self.wrong(format_args!("`{owner}` has no key `{}`; {}", self.key, hint(&self.key, &keys(entry))));
        }
        let names: Vec<&str> = here.iter().map(|(_, entry)| entry.name).collect();
        self.wrong(format_args!("the experiment has no method or problem `{owner}`; {}", hint(owner, &names)))
    }
}

/// The tables `[[section]]` of the file with their registry entries, by the key `by`. Others are errors of the parser.
fn tables<'s, 'e>(
    source: &'s Source,
    section: &str,
    by: &'s str,
    known: &'e [Entry],
) -> impl Iterator<Item = (usize, &'s toml::Table, &'e Entry)> {
    let list = source.table().get(section).and_then(toml::Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().enumerate().filter_map(move |(i, item)| {
        let table = item.as_table()?;
        let name = table.get(by)?.as_str()?;
        Some((i, table, known.iter().find(|entry| entry.name == name)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use std::path::Path;

    const FILE: &str = "name = \"a\"\nepochs = 2\nseeds = 1\n[[problem]]\nkind = \"least-squares\"\nn = 40\nd = 4\n\
                        [[method]]\nname = \"sgd\"\nlearning_rate = [0.1, 0.2]\n[[method]]\nname = \"adam\"\n\
                        [[method]]\nname = \"auto\"\n";

    fn parse(text: &str, settings: &[&str]) -> Result<Experiment, String> {
        let settings = settings.iter().map(|s| s.parse::<Setting>()).collect::<Result<Vec<_>, _>>()?;
        Experiment::parse_with(Path::new("a.toml"), text, &settings).map_err(|error| error.to_string())
    }

    fn number(experiment: &Experiment, i: usize, key: &str) -> Option<f64> {
        experiment.methods[i].hyperparameters.get(key).and_then(toml::Value::as_float)
    }

    #[test]
    fn a_setting_replaces_the_key_of_every_method_that_has_it() {
        let set = parse(FILE, &["learning_rate=0.5"]).unwrap();
        let labels: Vec<&str> = set.methods.iter().map(|m| m.label.as_str()).collect();
        assert_eq!(labels, ["sgd", "adam", "auto"], "the grid of the file is replaced");
        assert_eq!((number(&set, 0, "learning_rate"), number(&set, 1, "learning_rate")), (Some(0.5), Some(0.5)));
        let set = parse(FILE, &["adam.learning_rate=[0.5, 1]"]).unwrap();
        let labels: Vec<&str> = set.methods.iter().map(|m| m.label.as_str()).collect();
        let sgd = ["sgd learning_rate=0.1", "sgd learning_rate=0.2"];
        assert_eq!(labels, [sgd[0], sgd[1], "adam learning_rate=0.5", "adam learning_rate=1.0", "auto"]);
    }

    #[test]
    fn keys_of_problems_and_of_the_experiment_can_be_set_and_the_description_names_them() {
        let set = parse(FILE, &["batch=7", "condition=10", "least-squares.noise=0.5", "schedule=cosine"]).unwrap();
        assert_eq!((set.batch, set.epochs), (7, 2));
        assert_eq!(set.problems[0].parameters["noise"].as_float(), Some(0.5));
        assert_eq!(set.methods[0].hyperparameters["schedule"].as_str(), Some("cosine"));
        assert_eq!(
            set.description,
            "Set on the command line: batch=7, condition=10, least-squares.noise=0.5, schedule=cosine."
        );
        let set = parse(FILE, &["method=str", "max_radius=9"]).unwrap();
        assert_eq!((set.methods.len(), set.methods[0].name.as_str()), (1, "str"));
        assert_eq!(number(&set, 0, "max_radius"), Some(9.0));
        // The default method of a file without one.
        let plain = "name = \"a\"\n[[problem]]\nkind = \"subspace\"\n";
        assert_eq!(number(&parse(plain, &["tolerance=1e-3"]).unwrap(), 0, "tolerance"), Some(1e-3));
        assert_eq!(parse(plain, &[]).unwrap().description, "");
    }

    #[test]
    fn the_order_of_settings_does_not_matter() {
        let labels = |settings: &[&str]| {
            let methods = parse(FILE, settings).unwrap().methods;
            methods.into_iter().map(|m| (m.label, m.hyperparameters)).collect::<Vec<_>>()
        };
        for (one, other) in [
            ("sgd.learning_rate=[0.3, 0.4]", "method=sgd"),
            ("learning_rate=0.5", "sgd.learning_rate=0.1"),
            ("schedule=cosine", "method=[\"sgd\", \"adam\"]"),
        ] {
            assert_eq!(labels(&[one, other]), labels(&[other, one]), "{one} and {other}");
        }
        assert_eq!(labels(&["sgd.learning_rate=[0.3, 0.4]", "method=sgd"]).len(), 2);
        for twice in [["batch=7", "batch=8"], ["method=sgd", "method=adam"], ["sgd.momentum=0.1", "sgd.momentum=0.2"]] {
            let error = parse(FILE, &twice).unwrap_err();
            let expected = format!("--set {}: --set {} sets the same key: give only one of them", twice[1], twice[0]);
            assert!(error.contains(&expected), "{error}");
        }
    }

    #[test]
    fn errors_name_the_nearest_key_and_the_range() {
        let error = |setting: &str| parse(FILE, &[setting]).unwrap_err();
        assert!(error("learning_rat=1").contains("did you mean `learning_rate`?"), "{}", error("learning_rat=1"));
        assert!(error("adam.momentum=0.5").contains("`adam` has no key `momentum`"), "{}", error("adam.momentum=0.5"));
        assert!(error("sdg.momentum=0.5").contains("no method or problem `sdg`; did you mean `sgd`?"));
        assert!(error("noise=1").contains("write NAME.noise="), "{}", error("noise=1"));
        assert!(error("momentum=2").contains("`momentum` of sgd must be in [0, 1)"), "{}", error("momentum=2"));
        assert!(error("method=str-q").contains("did you mean `str-p`?"), "{}", error("method=str-q"));
        assert!(error("batch=many").contains("`batch` is \"many\""), "{}", error("batch=many"));
        assert!(error("batch").contains("has no value"));
        assert!(error("batch=[1").contains("is not a value"));
        assert!(error(".batch=1").contains("has no key"));
    }

    #[test]
    fn the_folder_of_changed_settings_has_its_own_name() {
        let setting = |text: &str| text.parse::<Setting>().unwrap();
        assert_eq!(
            folder_with("a", &[setting("sgd.learning_rate=0.50"), setting("batch=7")]),
            "a.sgd.learning_rate=0.5.batch=7"
        );
        assert_eq!(folder_with("a", &[]), "a");
    }
}
