//! A scene as a PDF page.

use super::colors;
use super::font::start;
use super::png::{outline, path};
use super::scene::{Ink, Scene, Shape};
use pdf_writer::{Content, Name, Pdf, Rect, Ref, TextStr, types::LineJoinStyle};
use std::collections::BTreeMap;
use tiny_skia::{Path, PathSegment, Point, Transform};

/// Points of a page per pixel of the figure, as in browsers.
const POINTS: f32 = 0.75;

/// The opacities of a page, in thousandths, each with the object that sets it.
type Opacities = BTreeMap<u32, Ref>;

/// The objects of the document: catalog, page tree, page, its content and the title. Those of opacities follow.
const OBJECTS: usize = 5;

pub(super) fn document(title: &str, scene: &Scene) -> Vec<u8> {
    let [catalog, tree, page, stream, info] = [1, 2, 3, 4, 5].map(Ref::new);
    let (width, height) = (scene.width * POINTS, scene.height * POINTS);
    let mut opacities = Opacities::new();
    let mut content = Content::new();
    // PDF counts upward from the lower left corner.
    content.transform([POINTS, 0.0, 0.0, -POINTS, 0.0, height]);
    draw(&scene.shapes, &mut content, &mut opacities);

    let mut pdf = Pdf::new();
    pdf.document_info(info).title(TextStr(title));
    pdf.catalog(catalog).pages(tree);
    pdf.pages(tree).kids([page]).count(1);
    let mut leaf = pdf.page(page);
    leaf.parent(tree).media_box(Rect::new(0.0, 0.0, width, height)).contents(stream);
    let mut resources = leaf.resources();
    let mut states = resources.ext_g_states();
    for (opacity, object) in &opacities {
        states.pair(Name(state_name(*opacity).as_bytes()), *object);
    }
    drop(states);
    drop(resources);
    drop(leaf);
    pdf.stream(stream, &content.finish());
    for (opacity, object) in &opacities {
        pdf.ext_graphics(*object).non_stroking_alpha(*opacity as f32 / 1000.0);
    }
    pdf.finish()
}

fn state_name(opacity: u32) -> String {
    format!("a{opacity}")
}

fn draw(shapes: &[Shape], content: &mut Content, opacities: &mut Opacities) {
    for shape in shapes {
        match shape {
            Shape::Line { points, ink, width, dash } => {
                let Some(path) = path(points, false) else { continue };
                let [r, g, b] = color(*ink);
                content.set_stroke_rgb(r, g, b).set_line_width(*width).set_line_join(LineJoinStyle::RoundJoin);
                content.set_dash_pattern(dash.iter().copied(), 0.0);
                trace(&path, Transform::identity(), content);
                content.stroke();
            }
            Shape::Area { points, ink, opacity } => {
                let Some(path) = path(points, true) else { continue };
                fill(&path, Transform::identity(), *ink, *opacity, content, opacities);
            }
            Shape::Text { at, label, size, anchor, ink, upright } => {
                let Some(path) = outline(label, *size, start(label, *size, *anchor)) else { continue };
                let turn = if *upright { Transform::from_rotate(-90.0) } else { Transform::identity() };
                fill(&path, turn.post_translate(at.0, at.1), *ink, 1.0, content, opacities);
            }
            Shape::Group { shapes, .. } => draw(shapes, content, opacities),
        }
    }
}

fn fill(path: &Path, place: Transform, ink: Ink, opacity: f32, content: &mut Content, opacities: &mut Opacities) {
    let [r, g, b] = color(ink);
    let thousandths = (1000.0 * opacity).round() as u32;
    let next = Ref::new(i32::try_from(OBJECTS + 1 + opacities.len()).unwrap_or(i32::MAX));
    opacities.entry(thousandths).or_insert(next);
    content.set_parameters(Name(state_name(thousandths).as_bytes())).set_fill_rgb(r, g, b);
    trace(path, place, content);
    content.fill_nonzero();
}

fn trace(path: &Path, place: Transform, content: &mut Content) {
    let at = |mut point: Point| {
        place.map_point(&mut point);
        // Hundredths of a pixel are enough, and shorter.
        ((100.0 * point.x).round() / 100.0, (100.0 * point.y).round() / 100.0)
    };
    let mut pen = (0.0, 0.0);
    for segment in path.segments() {
        match segment {
            PathSegment::MoveTo(to) => {
                pen = at(to);
                content.move_to(pen.0, pen.1);
            }
            PathSegment::LineTo(to) => {
                pen = at(to);
                content.line_to(pen.0, pen.1);
            }
            PathSegment::QuadTo(middle, to) => {
                // A quadratic curve is the cubic curve whose control points are two thirds of the way to its own.
                let (middle, to) = (at(middle), at(to));
                let toward = |from: (f32, f32)| {
                    (from.0 + 2.0 / 3.0 * (middle.0 - from.0), from.1 + 2.0 / 3.0 * (middle.1 - from.1))
                };
                let (a, b) = (toward(pen), toward(to));
                content.cubic_to(a.0, a.1, b.0, b.1, to.0, to.1);
                pen = to;
            }
            PathSegment::CubicTo(a, b, to) => {
                let (a, b) = (at(a), at(b));
                pen = at(to);
                content.cubic_to(a.0, a.1, b.0, b.1, pen.0, pen.1);
            }
            PathSegment::Close => {
                content.close_path();
            }
        }
    }
}

/// Red, green and blue from 0 to 1, on white paper.
fn color(ink: Ink) -> [f32; 3] {
    let hex = colors(ink).0;
    [1, 3, 5].map(|at| {
        let channel = hex.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        f32::from(channel.unwrap_or(0)) / 255.0
    })
}
