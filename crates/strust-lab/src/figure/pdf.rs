//! A scene as a PDF page.

use super::outline::Canvas;
use super::rgb;
use super::scene::{Ink, Scene};
use std::{collections::BTreeSet, fmt::Write as _};
use zeno::{Command, Point};

/// Points of a page per pixel of the figure, as in browsers.
const POINTS: f32 = 0.75;

/// What a page draws, and the opacities it uses, in thousandths.
#[derive(Default)]
struct Content {
    operations: String,
    opacities: BTreeSet<u32>,
}

/// Five objects: the catalog, the page tree, the page, its content and the title; then where each of them begins.
pub(super) fn document(title: &str, scene: &Scene) -> Vec<u8> {
    let (width, height) = (scene.width * POINTS, scene.height * POINTS);
    let mut content = Content::default();
    // PDF counts upward from the lower left corner.
    content.add(&[POINTS, 0.0, 0.0, -POINTS, 0.0, height], "cm");
    content.draw(&scene.shapes);
    let states: String = content
        .opacities
        .iter()
        .map(|opacity| format!("/a{opacity} << /ca {} >> ", *opacity as f32 / 1000.0))
        .collect();
    // UTF-16 with its byte order mark.
    let title: String = title.encode_utf16().map(|unit| format!("{unit:04X}")).collect();
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_string(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_string(),
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width} {height}] /Contents 4 0 R /Resources << /ExtGState << {states}>> >> >>"
        ),
        format!("<< /Length {} >>\nstream\n{}endstream", content.operations.len(), content.operations),
        format!("<< /Title <FEFF{title}> >>"),
    ];
    let mut file = String::from("%PDF-1.7\n");
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (i, object) in objects.iter().enumerate() {
        table += &format!("{:010} 00000 n \n", file.len());
        file += &format!("{} 0 obj\n{object}\nendobj\n", i + 1);
    }
    let (begin, count) = (file.len(), objects.len() + 1);
    file += &format!("{table}trailer\n<< /Size {count} /Root 1 0 R /Info 5 0 R >>\nstartxref\n{begin}\n%%EOF\n");
    file.into_bytes()
}

impl Content {
    /// Adds an operation after its numbers.
    fn add(&mut self, numbers: &[f32], operation: &str) {
        for number in numbers {
            // Hundredths of a pixel and thousandths of a color are enough, and shorter.
            let _ = write!(self.operations, "{} ", (1000.0 * number).round() / 1000.0);
        }
        self.operations += operation;
        self.operations.push('\n');
    }

    fn trace(&mut self, path: &[Command]) {
        let at = |point: Point| ((100.0 * point.x).round() / 100.0, (100.0 * point.y).round() / 100.0);
        let mut pen = (0.0, 0.0);
        for command in path {
            match *command {
                Command::MoveTo(to) => {
                    pen = at(to);
                    self.add(&[pen.0, pen.1], "m");
                }
                Command::LineTo(to) => {
                    pen = at(to);
                    self.add(&[pen.0, pen.1], "l");
                }
                Command::QuadTo(middle, to) => {
                    // A quadratic curve is the cubic curve whose control points are two thirds of the way to its own.
                    let (middle, to) = (at(middle), at(to));
                    let toward = |from: (f32, f32)| {
                        (from.0 + 2.0 / 3.0 * (middle.0 - from.0), from.1 + 2.0 / 3.0 * (middle.1 - from.1))
                    };
                    let (a, b) = (toward(pen), toward(to));
                    self.add(&[a.0, a.1, b.0, b.1, to.0, to.1], "c");
                    pen = to;
                }
                Command::CurveTo(a, b, to) => {
                    let (a, b) = (at(a), at(b));
                    pen = at(to);
                    self.add(&[a.0, a.1, b.0, b.1, pen.0, pen.1], "c");
                }
                Command::Close => self.add(&[], "h"),
            }
        }
    }
}

impl Canvas for Content {
    fn stroke(&mut self, path: &[Command], ink: Ink, width: f32, dash: &[f32]) {
        self.add(&color(ink), "RG");
        self.add(&[width], "w");
        // Round joins.
        self.add(&[1.0], "j");
        self.operations.push('[');
        self.add(dash, "] 0 d");
        self.trace(path);
        self.add(&[], "S");
    }

    fn fill(&mut self, path: &[Command], ink: Ink, opacity: f32) {
        let thousandths = (1000.0 * opacity).round() as u32;
        self.opacities.insert(thousandths);
        self.add(&[], &format!("/a{thousandths} gs"));
        self.add(&color(ink), "rg");
        self.trace(path);
        self.add(&[], "f");
    }
}

/// Red, green and blue from 0 to 1, on white paper.
fn color(ink: Ink) -> [f32; 3] {
    rgb(ink).map(|channel| f32::from(channel) / 255.0)
}
