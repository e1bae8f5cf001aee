//! A scene as a PNG picture.

use super::font::{FONT, scale, start, width};
use super::scene::{Ink, Label, Place, Scene, Shape};
use super::{FigureError, colors};
use ab_glyph::{Font, OutlineCurve};
use tiny_skia::{Color, FillRule, LineJoin, Paint, Path, PathBuilder, Pixmap, Stroke, StrokeDash, Transform};

/// The longest side of a picture, in pixels.
const LONGEST: f32 = 16384.0;

pub(super) fn encode(scene: &Scene, scale: f32) -> Result<Vec<u8>, FigureError> {
    let (width, height) = ((scene.width * scale).round(), (scene.height * scale).round());
    let possible = |side: f32| (1.0..=LONGEST).contains(&side);
    let pixmap = if possible(width) && possible(height) { Pixmap::new(width as u32, height as u32) } else { None };
    let mut pixmap = pixmap.ok_or(FigureError::Size { width, height })?;
    pixmap.fill(Color::WHITE);
    draw(&scene.shapes, &mut pixmap, Transform::from_scale(scale, scale));
    pixmap.encode_png().map_err(|error| FigureError::Encode(error.to_string()))
}

fn draw(shapes: &[Shape], pixmap: &mut Pixmap, transform: Transform) {
    for shape in shapes {
        match shape {
            Shape::Line { points, ink, width, dash } => {
                let dash = StrokeDash::new(dash.to_vec(), 0.0);
                let stroke = Stroke { width: *width, line_join: LineJoin::Round, dash, ..Stroke::default() };
                if let Some(path) = path(points, false) {
                    pixmap.stroke_path(&path, &paint(*ink, 1.0), &stroke, transform, None);
                }
            }
            Shape::Area { points, ink, opacity } => {
                if let Some(path) = path(points, true) {
                    pixmap.fill_path(&path, &paint(*ink, *opacity), FillRule::Winding, transform, None);
                }
            }
            Shape::Text { at, label, size, anchor, ink, upright } => {
                let start = start(label, *size, *anchor);
                let turn = if *upright { Transform::from_rotate(-90.0) } else { Transform::identity() };
                let place = turn.post_translate(at.0, at.1).post_concat(transform);
                if let Some(path) = outline(label, *size, start) {
                    pixmap.fill_path(&path, &paint(*ink, 1.0), FillRule::Winding, place, None);
                }
            }
            Shape::Group { shapes, .. } => draw(shapes, pixmap, transform),
        }
    }
}

fn paint(ink: Ink, opacity: f32) -> Paint<'static> {
    let channel = |at: usize| u8::from_str_radix(colors(ink).0.get(at..at + 2).unwrap_or("0"), 16).unwrap_or(0);
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(channel(1), channel(3), channel(5), (opacity * 255.0).round() as u8);
    paint
}

pub(super) fn path(points: &[Place], close: bool) -> Option<Path> {
    let (first, rest) = points.split_first()?;
    let mut path = PathBuilder::new();
    path.move_to(first.0, first.1);
    for point in rest {
        path.line_to(point.0, point.1);
    }
    if close {
        path.close();
    }
    path.finish()
}

/// The outlines of a label whose base line starts at `(start, 0)`.
pub(super) fn outline(label: &Label, size: f32, start: f32) -> Option<Path> {
    let mut path = PathBuilder::new();
    write(&label.base, size, (start, 0.0), &mut path);
    let raised = (start + width(&label.base, size), -size * Label::RAISE);
    write(&label.exponent, size * Label::SHRINK, raised, &mut path);
    path.finish()
}

fn write(text: &str, size: f32, (mut x, y): Place, path: &mut PathBuilder) {
    let scale = scale(size);
    for id in text.chars().map(|c| FONT.glyph_id(c)) {
        let place = |p: ab_glyph::Point| (x + p.x * scale, y - p.y * scale);
        let mut pen = None;
        for curve in FONT.outline(id).map_or(vec![], |outline| outline.curves) {
            let (OutlineCurve::Line(from, to) | OutlineCurve::Quad(from, _, to) | OutlineCurve::Cubic(from, _, _, to)) =
                curve;
            // A jump between two curves starts the next contour.
            if pen != Some(from) {
                let (x, y) = place(from);
                path.move_to(x, y);
            }
            let end = place(to);
            match curve {
                OutlineCurve::Line(..) => path.line_to(end.0, end.1),
                OutlineCurve::Quad(_, a, _) => path.quad_to(place(a).0, place(a).1, end.0, end.1),
                OutlineCurve::Cubic(_, a, b, _) => {
                    path.cubic_to(place(a).0, place(a).1, place(b).0, place(b).1, end.0, end.1);
                }
            }
            pen = Some(to);
        }
        x += FONT.h_advance_unscaled(id) * scale;
    }
}
