//! Shapes with positions and roles. Both backends draw the same scene, so their pictures agree.

use std::fmt;

/// A position in the figure, in pixels from the top left corner.
pub(super) type Place = (f32, f32);

/// What a shape is for; a theme turns this into a color.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ink {
    /// A series, by its color number.
    Series(usize),
    /// The series without a name of their own.
    Others,
    /// Titles and names.
    Text,
    /// Axis labels and numbers.
    Muted,
    /// Axis lines and ticks.
    Axis,
    /// Grid lines.
    Grid,
}

/// A line of text that may end in an exponent, such as 10⁻⁵. Many fonts lack superscript characters, so they are not
/// used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Label {
    pub base: String,
    pub exponent: String,
}

impl Label {
    /// The exponent's size, in units of the size of the base.
    pub const SHRINK: f32 = 0.74;
    /// The height of the exponent above the base line, in units of the size of the base.
    pub const RAISE: f32 = 0.4;

    pub fn plain(text: &str) -> Self {
        Self { base: text.to_owned(), exponent: String::new() }
    }

    pub fn power(base: String, exponent: i32) -> Self {
        Self { base, exponent: exponent.to_string().replace('-', "−") }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.base)?;
        if self.exponent.is_empty() { Ok(()) } else { write!(f, "^{}", self.exponent) }
    }
}

/// Which point of a text is at its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A shape of a scene.
#[derive(Debug, Clone)]
pub(super) enum Shape {
    /// A stroked line through points.
    Line { points: Vec<Place>, ink: Ink, width: f32, dash: &'static [f32] },
    /// A filled polygon.
    Area { points: Vec<Place>, ink: Ink, opacity: f32 },
    /// Text on one line; `upright` turns it to read from bottom to top.
    Text { at: Place, label: Label, size: f32, anchor: Anchor, ink: Ink, upright: bool },
    /// Shapes that belong to the series `name`.
    Group { part: SeriesPart, name: String, shapes: Vec<Shape> },
}

/// What the shapes of a group are to their series.
#[derive(Debug, Clone)]
pub(super) enum SeriesPart {
    /// Its line, with the values for the page's script.
    Curve(Vec<Reading>),
    Band,
    Legend,
}

/// A point of a series: its position and its values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub at: Place,
    pub x: f64,
    pub y: f64,
}

/// The layout of a figure.
#[derive(Debug, Clone)]
pub(super) struct Scene {
    pub width: f32,
    pub height: f32,
    /// The area inside the axes: left, top, right, bottom.
    pub plot: [f32; 4],
    pub shapes: Vec<Shape>,
}
