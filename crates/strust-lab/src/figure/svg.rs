//! A scene as SVG text.

use super::scene::{Anchor, Ink, Label, Place, Reading, Scene, SeriesPart, Shape};
use super::{Figure, Theme, colors};

/// DejaVu first, because the layout uses its widths; then wide fonts before narrow ones.
const FONTS: &str = "DejaVu Sans, Verdana, Segoe UI, Helvetica, Arial, sans-serif";

/// Text for XML and HTML, in elements and in quoted attributes. Control characters, which XML forbids, become spaces.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' => out.push('\n'),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// The whole figure.
pub(super) fn document(figure: &Figure, scene: &Scene, theme: Theme) -> String {
    let (width, height) = (number(scene.width), number(scene.height));
    let frame = match theme {
        Theme::File => format!("width=\"{width}\" height=\"{height}\" font-family=\"{FONTS}\""),
        Theme::Inline => {
            format!(
                "class=\"figure\" width=\"100%\" data-x=\"{}\" data-plot=\"{}\"",
                escape(&figure.x.label),
                scene.plot.map(number).join(" ")
            )
        }
    };
    let paper = if theme == Theme::File { "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>" } else { "" };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" {frame} role=\"img\">\n\
         <title>{}</title>\n<desc>{}</desc>\n{paper}{}</svg>\n",
        escape(&figure.title),
        escape(&description(figure)),
        scene.shapes.iter().map(|shape| element(shape, theme)).collect::<String>(),
    )
}

/// A few shapes as an inline picture that screen readers ignore.
pub(super) fn fragment(shapes: &[Shape], (width, height): (f32, f32)) -> String {
    format!(
        "<svg class=\"key\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" aria-hidden=\"true\">{}</svg>",
        shapes.iter().map(|shape| element(shape, Theme::Inline)).collect::<String>().replace('\n', ""),
    )
}

/// A description of the figure for screen readers.
fn description(figure: &Figure) -> String {
    let ends = figure.series.iter().filter_map(|series| {
        let (first, last) = (series.points.first()?, series.points.last()?);
        Some(format!("{}: from {:.2e} to {:.2e}. ", series.name, first.y, last.y))
    });
    format!("{} against {}. {}", figure.y.label, figure.x.label, ends.collect::<String>()).trim_end().to_owned()
}

/// Two decimals, without trailing zeros.
fn number(value: f32) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn places(points: &[Place]) -> String {
    points.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y))).collect::<Vec<_>>().join(" ")
}

/// `fill` or `stroke` with a color. In a page it is a style, because plain attributes do not allow variables.
fn paint(property: &str, ink: Ink, theme: Theme) -> String {
    let (light, _, variable) = colors(ink);
    match theme {
        Theme::File => format!("{property}=\"{light}\""),
        Theme::Inline => format!("style=\"{property}:var({variable},{light})\""),
    }
}

fn element(shape: &Shape, theme: Theme) -> String {
    match shape {
        Shape::Line { points, ink, width, dash } => {
            let dash = match dash {
                [] => String::new(),
                dash => {
                    format!(" stroke-dasharray=\"{}\"", dash.iter().map(|d| number(*d)).collect::<Vec<_>>().join(" "))
                }
            };
            format!(
                "<polyline points=\"{}\" fill=\"none\" {} stroke-width=\"{}\" stroke-linejoin=\"round\"{dash}/>\n",
                places(points),
                paint("stroke", *ink, theme),
                number(*width),
            )
        }
        Shape::Area { points, ink, opacity } => {
            let opacity = if *opacity < 1.0 { format!(" fill-opacity=\"{opacity}\"") } else { String::new() };
            format!("<polygon points=\"{}\" {}{opacity}/>\n", places(points), paint("fill", *ink, theme))
        }
        Shape::Text { at, label, size, anchor, ink, upright } => {
            let anchor = match anchor {
                Anchor::Start => "",
                Anchor::Middle => " text-anchor=\"middle\"",
                Anchor::End => " text-anchor=\"end\"",
            };
            let (x, y) = (number(at.0), number(at.1));
            let turn = if *upright { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
            format!(
                "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\"{anchor}{turn} {}>{}</text>\n",
                number(*size),
                paint("fill", *ink, theme),
                content(label, *size),
            )
        }
        Shape::Group { part, name, shapes } => {
            let data = match (theme, part) {
                (Theme::File, _) => String::new(),
                (Theme::Inline, SeriesPart::Curve(samples)) => {
                    format!(" data-name=\"{}\" data-points=\"{}\"", escape(name), readout(samples))
                }
                (Theme::Inline, SeriesPart::Band) => format!(" data-name=\"{}\"", escape(name)),
                (Theme::Inline, SeriesPart::Legend) => format!(" data-legend=\"{}\"", escape(name)),
            };
            format!("<g{data}>\n{}</g>\n", shapes.iter().map(|shape| element(shape, theme)).collect::<String>())
        }
    }
}

fn content(label: &Label, size: f32) -> String {
    let base = escape(&label.base);
    if label.exponent.is_empty() {
        return base;
    }
    let (raise, size) = (number(-size * Label::RAISE), number(size * Label::SHRINK));
    format!("{base}<tspan dy=\"{raise}\" font-size=\"{size}\">{}</tspan>", escape(&label.exponent))
}

/// Position and values of every point, for the page's script.
fn readout(samples: &[Reading]) -> String {
    let one = |s: &Reading| format!("{},{},{:.4e},{:.3e}", number(s.at.0), number(s.at.1), s.x, s.y);
    samples.iter().map(one).collect::<Vec<_>>().join(" ")
}
