//! How a method or a problem is listed, and how its parameters are checked and completed.

use crate::data::parameters::{Parameters, number};
use serde::{Deserialize, Serialize};
use strust::config::{Allowed, Config, Field};

/// A method or a problem that an experiment file may name.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// Its name in experiment files.
    pub name: &'static str,
    /// One line for people.
    pub title: &'static str,
    /// For a method: it needs a constraint. For a problem: it has one.
    pub constrained: bool,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    #[serde(skip)]
    complete: fn(&str, &Parameters) -> Result<Parameters, String>,
}

/// One parameter of an [`Entry`].
#[derive(Debug, Clone, Serialize)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its default.
    pub default: toml::Value,
    /// The allowed values, in words.
    pub allowed: String,
    /// Its meaning.
    pub meaning: &'static str,
    /// The allowed values.
    #[serde(skip)]
    pub kind: Allowed,
}

/// A parameter that is on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

/// Fields of a configuration that hold an enum.
macro_rules! field_words {
    ($($word:ident),*) => {$(
        impl strust::config::FieldValue for $word {
            fn number(&self) -> Option<f64> {
                None
            }
        }
    )*};
}
pub(super) use field_words;

field_words!(Switch);

impl Parameter {
    /// What `value` must be, for an error message.
    #[must_use]
    pub fn wanted(&self, value: &toml::Value) -> String {
        match (self.kind, value) {
            (Allowed::Number(range), toml::Value::Float(_)) if value.as_float().is_some_and(f64::is_finite) => {
                range.to_string()
            }
            (Allowed::Number(range), toml::Value::Integer(_)) => range.to_string(),
            (Allowed::Number(range), toml::Value::Float(_)) => format!("a finite number {range}"),
            (Allowed::Number(range), _) => format!("a number {range}"),
            (kind, _) => kind.to_string(),
        }
    }
    /// Whether the value has the right type and, for a number or a word, is allowed.
    #[must_use]
    pub fn accepts(&self, value: &toml::Value) -> bool {
        let number = number(value);
        match self.kind {
            Allowed::Number(range) => number.is_some_and(|n| range.contains(n)),
            Allowed::Whole(range) => value.is_integer() && number.is_some_and(|n| range.contains(n)),
            Allowed::OneOf(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Allowed::Text(_) => value.is_str(),
        }
    }
}

impl Entry {
    /// The entry of the method or problem that `C` configures.
    pub(super) fn new<C: Config>(
        name: &'static str,
        title: &'static str,
        constrained: bool,
        complete: fn(&str, &Parameters) -> Result<Parameters, String>,
    ) -> Self {
        Self { name, title, constrained, parameters: parameters::<C>().collect(), complete }
    }

    /// Adds those parameters of `C` for which `wanted` holds.
    pub(super) fn with<C: Config>(mut self, wanted: impl Fn(&str) -> bool) -> Self {
        self.parameters.extend(parameters::<C>().filter(|p| wanted(p.name)));
        self
    }

    /// Checks parameters and completes them with the defaults.
    pub fn complete(&self, parameters: &Parameters) -> Result<Parameters, String> {
        (self.complete)(self.name, parameters)
    }
}

fn parameters<C: Config>() -> impl Iterator<Item = Parameter> {
    let defaults = values(&C::default());
    C::FIELDS.iter().map(move |&Field { name, allowed, meaning }| Parameter {
        name,
        default: defaults[name].clone(),
        allowed: allowed.to_string(),
        meaning,
        kind: allowed,
    })
}

/// A configuration as named values.
pub(super) fn values(config: &impl Serialize) -> Parameters {
    toml::Table::try_from(config).expect("configurations are flat tables of numbers and words").into_iter().collect()
}

/// The checked configuration of named values.
pub(super) fn config<C: Config>(values: &Parameters) -> Result<C, String> {
    let table: toml::Table = values.clone().into_iter().collect();
    let config: C = table.try_into().map_err(|e: toml::de::Error| e.message().to_string())?;
    config.clone().check().map_err(|e| e.to_string())?;
    Ok(config)
}
