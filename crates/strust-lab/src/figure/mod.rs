//! Figures of curves with bands, as SVG text and as PNG, from one layout.
//!
//! ```
//! use strust_lab::figure::{Axis, Figure, Point, Series, Theme};
//!
//! let points = (0..50).map(|k| {
//!     let y = 0.5_f64.powi(k);
//!     Point { x: f64::from(k), y, low: 0.8 * y, high: 1.2 * y }
//! });
//! let figure = Figure {
//!     title: "Halving".into(),
//!     x: Axis { label: "epoch".into(), log: false },
//!     y: Axis { label: "gap".into(), log: true },
//!     series: vec![Series { name: "str".into(), color: 0, points: points.collect() }],
//! };
//! assert!(figure.svg(Theme::File).starts_with("<svg"));
//! assert!(figure.png(2.0)?.starts_with(b"\x89PNG"));
//! # Ok::<(), strust_lab::figure::FigureError>(())
//! ```

#![allow(
    clippy::format_collect,
    clippy::format_push_string,
    reason = "text is built once per report, and markup is most readable as a format string"
)]

mod axis;
mod font;
mod layout;
mod outline;
mod pdf;
mod png;
mod scene;
mod svg;

pub use crate::data::figure::{Axis, Figure, Point, Series};
use crate::data::style::FigureStyle;
use scene::Ink;

/// Where an SVG figure is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// In a separate file: fixed size, fixed colors on white, with its title.
    File,
    /// Inside an HTML page, without the title: full width, transparent, with the colors of [`stylesheet`].
    Inline,
}

/// Why a figure could not be drawn.
#[derive(Debug, thiserror::Error)]
pub enum FigureError {
    /// The picture would have no pixels, or too many.
    #[error("a figure cannot be {width} × {height} pixels: choose a scale between 0.1 and 20")]
    Size {
        /// Its width in pixels.
        width: f32,
        /// Its height in pixels.
        height: f32,
    },
    /// The picture could not be written as PNG.
    #[error("the figure could not be written as PNG: {0}")]
    Encode(String),
}

impl Figure {
    /// The figure as an `<svg>` element.
    #[must_use]
    pub fn svg(&self, theme: Theme) -> String {
        self.svg_in(&FigureStyle::default(), theme)
    }

    /// The figure as an `<svg>` element with the size and the title of a style.
    #[must_use]
    pub fn svg_in(&self, style: &FigureStyle, theme: Theme) -> String {
        svg::document(self, &layout::scene(self, theme, style), theme)
    }

    /// The figure as a PNG picture, with `scale` pixels per pixel of the SVG file.
    pub fn png(&self, scale: f32) -> Result<Vec<u8>, FigureError> {
        self.png_in(&FigureStyle::default(), scale)
    }

    /// The figure as a PNG picture with the size and the title of a style.
    pub fn png_in(&self, style: &FigureStyle, scale: f32) -> Result<Vec<u8>, FigureError> {
        png::encode(&layout::scene(self, Theme::File, style), scale)
    }

    /// The figure as a PDF page of the size of the figure, for a paper. Texts are outlines, so it needs no font.
    #[must_use]
    pub fn pdf_in(&self, style: &FigureStyle) -> Vec<u8> {
        pdf::document(&self.title, &layout::scene(self, Theme::File, style))
    }
}

/// A small inline picture of a series' line and marker, for the name of the series in a table.
#[must_use]
pub fn key(color: usize) -> String {
    svg::fragment(&layout::key(color), layout::KEY)
}

/// Eight colors for any color vision on white, similar to Okabe and Ito's, but without yellow, which is invisible on paper.
const LIGHT: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#b5478f", "#c58a00", "#3d9fd6", "#4d4d4d", "#332288"];
/// The same hues, lighter, for a dark page.
const DARK: [&str; 8] = ["#4ba8ea", "#ff8a4c", "#2fc79a", "#e88fca", "#e8b93a", "#9ad4f5", "#c4c4c4", "#a79bf0"];

/// The color of an ink on white and on a dark page, and its name as a CSS variable.
fn colors(ink: Ink) -> (&'static str, &'static str, String) {
    match ink {
        Ink::Series(i) => (LIGHT[i % LIGHT.len()], DARK[i % DARK.len()], format!("--figure-{}", i % LIGHT.len())),
        Ink::Others => ("#a3abb4", "#5c656e", "--figure-others".into()),
        Ink::Text => ("#1b1f24", "#e8eaed", "--figure-text".into()),
        Ink::Muted => ("#4a525b", "#b4bcc5", "--figure-muted".into()),
        Ink::Axis => ("#7a838d", "#8b949e", "--figure-axis".into()),
        Ink::Grid => ("#e3e6ea", "#30363d", "--figure-grid".into()),
    }
}

/// Red, green and blue of an ink on white.
fn rgb(ink: Ink) -> [u8; 3] {
    let hex = colors(ink).0;
    [1, 3, 5].map(|at| hex.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok()).unwrap_or(0))
}

/// The CSS variables that [`Theme::Inline`] refers to, for a light page and, if the reader prefers it, a dark page.
#[must_use]
pub fn stylesheet() -> String {
    let inks = (0..LIGHT.len()).map(Ink::Series).chain([Ink::Others, Ink::Text, Ink::Muted, Ink::Axis, Ink::Grid]);
    let (mut light, mut dark) = (String::new(), String::new());
    for (on_white, on_dark, name) in inks.map(colors) {
        light += &format!("{name}:{on_white};");
        dark += &format!("{name}:{on_dark};");
    }
    format!(":root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n")
}

#[cfg(test)]
mod tests;
