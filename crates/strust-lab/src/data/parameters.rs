//! Parameters of methods and problems by name.

use std::collections::BTreeMap;

/// Hyperparameters and problem parameters by name, as in the experiment file.
pub type Parameters = BTreeMap<String, toml::Value>;
