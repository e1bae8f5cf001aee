//! How the figures of a report look.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How the figures of a report look: `[figures]` in an experiment file, or flags of `strust report`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FigureStyle {
    /// The width of a figure in a file, in pixels of 1/96 inch.
    pub width: u32,
    /// The height of its plot; legend and labels are added to it.
    pub height: u32,
    /// Whether figures in files have a title.
    pub titles: bool,
    /// The formats of the files.
    pub formats: Vec<FigureFormat>,
    /// What the lines and the bands show.
    pub average: CurveAverage,
    /// Names for methods, by label or name.
    pub labels: BTreeMap<String, String>,
    /// The methods to show first, by label or name.
    pub order: Vec<String>,
}

/// A format of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FigureFormat {
    /// For pages.
    Svg,
    /// For everything else, with two pixels per pixel.
    Png,
    /// For papers.
    Pdf,
}

/// What a line and its band show of the seeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CurveAverage {
    /// The median and both quartiles.
    #[default]
    Median,
    /// The mean and one standard deviation to both sides.
    Mean,
}

impl Default for FigureStyle {
    fn default() -> Self {
        Self {
            width: 440,
            height: 250,
            titles: true,
            formats: vec![FigureFormat::Svg, FigureFormat::Png],
            average: CurveAverage::Median,
            labels: BTreeMap::new(),
            order: Vec::new(),
        }
    }
}

impl FigureStyle {
    /// The names of the keys.
    pub const KEYS: [&str; 7] = ["width", "height", "titles", "formats", "average", "labels", "order"];

    /// Whether nothing differs from the default.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Checks sizes, and that every name is a label or a name of a method; otherwise the key and what is wrong.
    pub fn check(&self, methods: &[(&str, &str)]) -> Result<(), (&'static str, String)> {
        for (key, size) in [("width", self.width), ("height", self.height)] {
            if !(100..=4000).contains(&size) {
                return Err((key, format!("`{key}` is {size}, but must be in [100, 4000]")));
            }
        }
        if self.formats.is_empty() {
            return Err(("formats", "`formats` is empty, but must have some of \"svg\", \"png\", \"pdf\"".into()));
        }
        let named = self.labels.keys().map(|name| ("labels", name));
        for (key, wanted) in named.chain(self.order.iter().map(|name| ("order", name))) {
            if !methods.iter().any(|(label, name)| label == wanted || name == wanted) {
                let known: Vec<&str> = methods.iter().map(|(label, _)| *label).collect();
                return Err((key, format!("`{key}` has `{wanted}`, but the methods are {}", known.join(", "))));
            }
        }
        Ok(())
    }
}
