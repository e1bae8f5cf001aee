//! Parameters of methods and problems by name.

use std::collections::BTreeMap;

/// Hyperparameters and problem parameters by name, as in the experiment file.
pub type Parameters = BTreeMap<String, toml::Value>;

/// A value as a number, if it is one.
pub(crate) fn number(value: &toml::Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|n| n as f64))
}
