//! A figure as data: series of points over two axes.

use super::numbers::numbers;
use serde::{Deserialize, Serialize};

/// A figure: series of points over two axes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The title above the figure.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves, in the order of the legend.
    pub series: Vec<Series>,
}

/// An axis of a figure; its range comes from the data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// Its label.
    pub label: String,
    /// Whether it is logarithmic. A vertical one shows values that are not positive at its lower end, marked ≤ 0; a
    /// horizontal one omits them.
    pub log: bool,
}

/// A curve with a band around it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its number in the palette, which also selects dashes and markers. Any number is valid.
    #[serde(alias = "colour")]
    pub color: usize,
    /// Its points, in the order in which the line passes through them.
    pub points: Vec<Point>,
}

impl Figure {
    /// A figure; an axis is logarithmic if its label is followed by `true`.
    #[must_use]
    pub fn new(title: impl Into<String>, x: (&str, bool), y: (&str, bool), series: Vec<Series>) -> Self {
        let axis = |(label, log): (&str, bool)| Axis { label: label.into(), log };
        Self { title: title.into(), x: axis(x), y: axis(y), series }
    }
}

impl Series {
    /// A curve without a band.
    #[must_use]
    pub fn line(name: impl Into<String>, color: usize, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { name: name.into(), color, points: points.into_iter().map(|(x, y)| Point::at(x, y)).collect() }
    }

    /// Points without a line.
    #[must_use]
    pub fn dots(name: impl Into<String>, color: usize, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        // A point that cannot be drawn makes a gap in the line.
        Self::line(name, color, points.into_iter().flat_map(|point| [(f64::NAN, f64::NAN), point]).skip(1))
    }

    /// The color of series without a name of their own: thin and gray, counted in the legend.
    pub const OTHERS: usize = usize::MAX;
}

/// A point of a curve. A point whose `x` or `y` cannot be drawn is omitted, and the line has a gap there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The horizontal position.
    #[serde(deserialize_with = "numbers")]
    pub x: f64,
    /// The value.
    #[serde(deserialize_with = "numbers")]
    pub y: f64,
    /// The low end of the band; NaN for none.
    #[serde(default = "nan", skip_serializing_if = "not_finite", deserialize_with = "numbers")]
    pub low: f64,
    /// The high end of the band; NaN for none.
    #[serde(default = "nan", skip_serializing_if = "not_finite", deserialize_with = "numbers")]
    pub high: f64,
}

fn nan() -> f64 {
    f64::NAN
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn not_finite(value: &f64) -> bool {
    !value.is_finite()
}

impl Point {
    /// A point without a band.
    #[must_use]
    pub fn at(x: f64, y: f64) -> Self {
        Self { x, y, low: f64::NAN, high: f64::NAN }
    }
}
