//! Paths that pictures and PDF pages draw: lines, areas, and the outlines of texts.

use super::font::{FONT, advance, glyph, scale, start, width};
use super::scene::{Anchor, Ink, Label, Place, Shape};
use zeno::{Command, Point};

/// What draws paths.
pub(super) trait Canvas {
    fn stroke(&mut self, path: &[Command], ink: Ink, width: f32, dash: &[f32]);
    fn fill(&mut self, path: &[Command], ink: Ink, opacity: f32);

    /// Draws shapes as paths.
    fn draw(&mut self, shapes: &[Shape]) {
        for shape in shapes {
            match shape {
                Shape::Line { points, ink, width, dash } => self.stroke(&path(points, false), *ink, *width, dash),
                Shape::Area { points, ink, opacity } => self.fill(&path(points, true), *ink, *opacity),
                Shape::Text { at, label, size, anchor, ink, upright } => {
                    self.fill(&outline(label, *size, *anchor, *at, *upright), *ink, 1.0);
                }
                Shape::Group { shapes, .. } => self.draw(shapes),
            }
        }
    }
}

/// A line through points, closed or open.
fn path(points: &[Place], close: bool) -> Vec<Command> {
    let mut path: Vec<Command> = points.iter().map(|&(x, y)| Command::LineTo(Point::new(x, y))).collect();
    if let Some(Command::LineTo(first)) = path.first().copied() {
        path[0] = Command::MoveTo(first);
        if close {
            path.push(Command::Close);
        }
    }
    path
}

/// The outlines of a label at a position; `upright` turns it to read from bottom to top.
fn outline(label: &Label, size: f32, anchor: Anchor, at: Place, upright: bool) -> Vec<Command> {
    let begin = start(label, size, anchor);
    let mut pen = Pen { path: vec![], at, upright, from: (begin, 0.0), scale: 1.0 };
    pen.write(&label.base, size);
    pen.from = (begin + width(&label.base, size), -size * Label::RAISE);
    pen.write(&label.exponent, size * Label::SHRINK);
    pen.path
}

/// Draws letters one after the other.
struct Pen {
    path: Vec<Command>,
    at: Place,
    upright: bool,
    /// The start of the next letter, relative to `at`.
    from: Place,
    scale: f32,
}

impl Pen {
    fn write(&mut self, text: &str, size: f32) {
        self.scale = scale(size);
        for id in text.chars().map(glyph) {
            // A blank has no outline.
            let _ = FONT.outline_glyph(id, self);
            self.from.0 += advance(id) * self.scale;
        }
    }
    fn place(&self, x: f32, y: f32) -> Point {
        let (x, y) = (self.from.0 + x * self.scale, self.from.1 - y * self.scale);
        let (x, y) = if self.upright { (y, -x) } else { (x, y) };
        Point::new(self.at.0 + x, self.at.1 + y)
    }
}

impl ttf_parser::OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.path.push(Command::MoveTo(self.place(x, y)));
    }
    fn line_to(&mut self, x: f32, y: f32) {
        self.path.push(Command::LineTo(self.place(x, y)));
    }
    fn quad_to(&mut self, a: f32, b: f32, x: f32, y: f32) {
        self.path.push(Command::QuadTo(self.place(a, b), self.place(x, y)));
    }
    fn curve_to(&mut self, a: f32, b: f32, c: f32, d: f32, x: f32, y: f32) {
        self.path.push(Command::CurveTo(self.place(a, b), self.place(c, d), self.place(x, y)));
    }
    fn close(&mut self) {
        self.path.push(Command::Close);
    }
}
