//! Numbers in JSON, which has no NaN and no infinity.

use serde::{Deserialize, Deserializer};

/// Reads null as NaN. JSON output writes NaN and infinity as null.
pub(super) fn number_or_nan<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(from)?.unwrap_or(f64::NAN))
}
