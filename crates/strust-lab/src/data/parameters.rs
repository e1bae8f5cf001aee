//! Parameters of methods and problems by name.

use std::collections::BTreeMap;

/// Hyperparameters and problem parameters by name, as the experiment file has them.
pub type Parameters = BTreeMap<String, toml::Value>;
