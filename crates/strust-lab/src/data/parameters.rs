//! Parameters of methods and problems by name.

use std::collections::{BTreeMap, BTreeSet};

/// Hyperparameters and problem parameters by name, as in the experiment file.
pub type Parameters = BTreeMap<String, toml::Value>;

/// The keys in which some settings differ.
pub(crate) fn differing<'a>(settings: &[&'a Parameters]) -> BTreeSet<&'a str> {
    let differs = |key: &&String| settings.iter().any(|setting| setting.get(*key) != settings[0].get(*key));
    settings.iter().flat_map(|setting| setting.keys()).filter(differs).map(String::as_str).collect()
}

/// A value as a number, if it is one.
#[must_use]
pub fn number(value: &toml::Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|n| n as f64))
}
