//! The layout of a figure.

use super::axis::{Scale, Ticks, drawn};
use super::font::{cut, label_width, width};
use super::scene::{Anchor, Ink, Label, Place, Reading, Scene, SeriesPart, Shape};
use super::{Figure, Point, Series, Theme};
use crate::{data::style::FigureStyle, format::plural};

const EDGE: f32 = 10.0;
/// Sizes of text.
const TITLE: f32 = 14.0;
const TEXT: f32 = 12.5;
/// Lines and markers of the curves.
const STROKE: f32 = 1.8;
const MARKER: f32 = 3.6;
/// The opacity of a band. Bands of several methods overlap.
const BAND: f32 = 0.15;
/// The opacity of its tail.
const TAIL: f32 = 0.045;
/// More points without a line than this are a cloud: they are small and have no values in the page.
const CLOUD: usize = 100;
/// The size and the opacity of a point of a cloud.
const CLOUD_POINT: (f32, f32) = (1.7, 0.45);
/// Pixels between two markers of a line.
const STRIDE: f32 = 84.0;
/// Pixels between two rows of the legend.
const ROW: f32 = 19.0;
/// The most entries of the legend. With more of them it would be larger than the plot, and a picture has a largest size.
const MOST_ENTRIES: usize = 40;
/// Width and height of the sample of a line in a legend.
pub(super) const KEY: (f32, f32) = (30.0, 12.0);

/// Dashes by palette number. Lines must differ without color, in gray print.
const DASHES: [&[f32]; 4] = [&[], &[7.0, 3.0], &[2.5, 2.5], &[9.0, 3.0, 2.5, 3.0]];

/// The area inside the axes, and the axes that map points to positions.
struct Plot {
    left: f32,
    top: f32,
    right: f32,
    bottom: f32,
    x: Scale,
    y: Scale,
}

/// A point that can be drawn, with the ends of its band.
struct Drawn {
    sample: Reading,
    low: Place,
    /// The start of the tail.
    core: Place,
    high: Place,
}

/// Lays out a figure.
pub(super) fn scene(figure: &Figure, theme: Theme, style: &FigureStyle) -> Scene {
    let page = style.width as f32;
    let mut shapes = vec![];
    let mut top = EDGE;
    if theme == Theme::File && style.titles && !figure.title.is_empty() {
        let label = Label::plain(&cut(&figure.title, TITLE, page - 2.0 * EDGE));
        shapes.push(text((EDGE, top + TITLE), label, TITLE, Anchor::Start, Ink::Text));
        top += TITLE + 12.0;
    }
    top = legend(figure, page, top, &mut shapes);
    let bottom = top + style.height as f32;
    let height = bottom + 46.0;

    let Some((x, y)) = scales(figure) else {
        let middle = (page / 2.0, f32::midpoint(top, bottom));
        shapes.push(text(middle, Label::plain("no data"), TITLE, Anchor::Middle, Ink::Muted));
        return Scene { width: page, height, plot: [EDGE, top, page - EDGE, bottom], shapes };
    };
    let (across, up) = (x.ticks(6), y.ticks(8));
    let widest = |ticks: &Ticks| ticks.major.iter().map(|(_, label)| label_width(label, TEXT)).fold(0.0, f32::max);
    let left = EDGE + TEXT + 6.0 + widest(&up).min(page / 3.0) + 9.0;
    // Half of the last label may extend beyond the last tick.
    let right = page - EDGE.max(widest(&across) / 2.0 + 2.0);
    let plot = Plot { left, top, right, bottom, x, y };

    axes(figure, &plot, &across, &up, &mut shapes);
    // The series without names of their own are below all others.
    let (named, others): (Vec<_>, Vec<_>) = figure.series.iter().partition(|series| series.color != Series::OTHERS);
    let curves: Vec<_> = others.into_iter().chain(named).map(|series| (series, plot.runs(figure, series))).collect();
    // Draw all bands below all lines.
    for (series, runs) in &curves {
        let bands: Vec<Shape> = runs.iter().flat_map(|run| bands(run, series.color)).flatten().collect();
        if !bands.is_empty() && series.color != Series::OTHERS {
            shapes.push(Shape::Group { part: SeriesPart::Band, name: series.name.clone(), shapes: bands });
        }
    }
    for (order, (series, runs)) in curves.iter().enumerate() {
        shapes.push(curve(series, runs, &plot, order, curves.len()));
    }
    Scene { width: page, height, plot: [left, top, right, bottom], shapes }
}

/// The ranges of both axes over the points that can be drawn; `None` if there are none.
fn scales(figure: &Figure) -> Option<(Scale, Scale)> {
    let points = || figure.series.iter().flat_map(|series| &series.points).filter(|point| visible(figure, point));
    // On a logarithmic axis the tail of a band does not affect the range; it is cut at the bottom.
    let mirrored = |point: &Point| point.low.max(point.y * (point.y / point.high));
    let low = |point: &Point| if figure.y.log { mirrored(point) } else { point.low };
    let values = points().flat_map(|point| [point.y, low(point), point.high]);
    let across = Scale::fit(points().map(|point| point.x), figure.x.log, 0.0)?;
    let up = Scale::fit(values, figure.y.log, 0.03);
    let below = figure.y.log && points().any(|point| point.y <= 0.0);
    Some((across, if below { Scale::with_floor(up) } else { up? }))
}

fn visible(figure: &Figure, point: &Point) -> bool {
    let below = figure.y.log && point.y <= 0.0 && point.y.is_finite();
    drawn(point.x, figure.x.log).is_some() && (below || drawn(point.y, figure.y.log).is_some())
}

impl Plot {
    fn across(&self, share: f64) -> f32 {
        self.left + (self.right - self.left) * share as f32
    }

    fn up(&self, share: f64) -> f32 {
        self.bottom - (self.bottom - self.top) * share.clamp(0.0, 1.0) as f32
    }

    /// The parts of a series between points that cannot be drawn.
    fn runs(&self, figure: &Figure, series: &Series) -> Vec<Vec<Drawn>> {
        series
            .points
            .split(|point| !visible(figure, point))
            .map(|run| run.iter().filter_map(|point| self.drawn(point)).collect::<Vec<_>>())
            .filter(|run| !run.is_empty())
            .collect()
    }

    fn drawn(&self, point: &Point) -> Option<Drawn> {
        let (across, share) = (self.across(self.x.place(point.x)?), self.y.place(point.y)?);
        // An end without a position is above the top or, like zero on a logarithmic axis, below the bottom.
        let end = |value: f64| match self.y.place(value) {
            Some(share) => share,
            None if value.is_nan() => share,
            None => f64::from(u8::from(value > 0.0)),
        };
        let (low, high) = (end(point.low), end(point.high));
        // On a logarithmic axis the lower half of a band is longer than the upper half, and often infinite. The excess is
        // the tail. It is drawn faintly, because otherwise the tails would dominate the figure.
        let core = if self.y.is_log() { low.max(2.0 * share - high) } else { low };
        let place = |share: f64| (across, self.up(share));
        let sample = Reading { at: place(share), x: point.x, y: point.y };
        Some(Drawn { sample, low: place(low), core: place(core), high: place(high) })
    }
}

fn text(at: Place, label: Label, size: f32, anchor: Anchor, ink: Ink) -> Shape {
    Shape::Text { at, label, size, anchor, ink, upright: false }
}

fn line(from: Place, to: Place, ink: Ink) -> Shape {
    Shape::Line { points: vec![from, to], ink, width: 1.0, dash: &[] }
}

/// The legend, in rows above the plot. Of very many series it names the first ones, and counts the rest. Returns its lower
/// end.
fn legend<'a>(figure: &'a Figure, page: f32, top: f32, shapes: &mut Vec<Shape>) -> f32 {
    let (named, others): (Vec<_>, Vec<_>) = figure.series.iter().partition(|series| series.color != Series::OTHERS);
    let more = named.len().saturating_sub(MOST_ENTRIES);
    let entry = |series: &'a Series| (series.name.as_str(), series.color, is_dots(series));
    let mut entries: Vec<(&str, usize, bool)> = named.into_iter().take(MOST_ENTRIES).map(entry).collect();
    let count = match (more, others.len()) {
        (0, others) => plural(others, "other"),
        (more, others) => format!("and {} more", more + others),
    };
    if more > 0 || !others.is_empty() {
        entries.push((&count, Series::OTHERS, false));
    }
    let (mut x, mut y) = (EDGE, top);
    for (full, color, dots) in &entries {
        let name = cut(full, TEXT, page - 2.0 * EDGE - KEY.0 - 6.0);
        let end = x + KEY.0 + 6.0 + width(&name, TEXT);
        if x > EDGE && end > page - EDGE {
            (x, y) = (EDGE, y + ROW);
        }
        let mut entry = shift(key(*color), (x, y));
        entry.retain(|shape| !dots || matches!(shape, Shape::Area { .. }));
        entry.push(text((x + KEY.0 + 6.0, y + 10.5), Label::plain(&name), TEXT, Anchor::Start, Ink::Text));
        shapes.push(Shape::Group { part: SeriesPart::Legend, name: (*full).to_owned(), shapes: entry });
        x += KEY.0 + 6.0 + width(&name, TEXT) + 16.0;
    }
    if entries.is_empty() { y } else { y + ROW + 6.0 }
}

/// Whether no two points of a series are joined by a line.
fn is_dots(series: &Series) -> bool {
    let gap = |point: &Point| !(point.x.is_finite() && point.y.is_finite());
    series.points.len() > 1 && series.points.windows(2).all(|pair| pair.iter().any(gap))
}

/// A sample of a series' line with its marker.
pub(super) fn key(color: usize) -> Vec<Shape> {
    let (width, middle) = (KEY.0, KEY.1 / 2.0);
    let line = stroke(vec![(0.0, middle), (width, middle)], color);
    if color == Series::OTHERS { vec![line] } else { vec![line, marker((width / 2.0, middle), color)] }
}

fn shift(shapes: Vec<Shape>, by: Place) -> Vec<Shape> {
    let moved = |points: Vec<Place>| points.into_iter().map(|(x, y)| (x + by.0, y + by.1)).collect();
    let one = |shape| match shape {
        Shape::Line { points, ink, width, dash } => Shape::Line { points: moved(points), ink, width, dash },
        Shape::Area { points, ink, opacity } => Shape::Area { points: moved(points), ink, opacity },
        other => other,
    };
    shapes.into_iter().map(one).collect()
}

fn axes(figure: &Figure, plot: &Plot, across: &Ticks, up: &Ticks, shapes: &mut Vec<Shape>) {
    let &Plot { left, top, right, bottom, .. } = plot;
    for (share, label) in &up.major {
        let y = plot.up(*share);
        shapes.push(line((left, y), (right, y), Ink::Grid));
        shapes.push(text((left - 8.0, y + 4.3), label.clone(), TEXT, Anchor::End, Ink::Muted));
    }
    for (share, label) in &across.major {
        let x = plot.across(*share);
        shapes.push(line((x, bottom), (x, bottom + 5.0), Ink::Axis));
        shapes.push(text((x, bottom + 19.0), label.clone(), TEXT, Anchor::Middle, Ink::Muted));
    }
    shapes
        .extend(up.major.iter().map(|(share, _)| plot.up(*share)).map(|y| line((left - 5.0, y), (left, y), Ink::Axis)));
    shapes.extend(up.minor.iter().map(|share| plot.up(*share)).map(|y| line((left - 3.0, y), (left, y), Ink::Axis)));
    shapes
        .extend(across.minor.iter().map(|s| plot.across(*s)).map(|x| line((x, bottom), (x, bottom + 3.0), Ink::Axis)));
    shapes.push(Shape::Line {
        points: vec![(left, top), (left, bottom), (right, bottom)],
        ink: Ink::Axis,
        width: 1.0,
        dash: &[],
    });
    let name = |label: &str, room: f32| Label::plain(&cut(label, TEXT, room));
    let below = (f32::midpoint(left, right), bottom + 39.0);
    shapes.push(text(below, name(&figure.x.label, right - left), TEXT, Anchor::Middle, Ink::Text));
    shapes.push(Shape::Text {
        at: (EDGE + TEXT - 1.0, f32::midpoint(top, bottom)),
        label: name(&figure.y.label, bottom - top),
        size: TEXT,
        anchor: Anchor::Middle,
        ink: Ink::Text,
        upright: true,
    });
}

/// The band of a part of a series and its tail, each if it is not empty.
fn bands(run: &[Drawn], color: usize) -> [Option<Shape>; 2] {
    let area = |top: fn(&Drawn) -> Place, bottom: fn(&Drawn) -> Place, opacity| {
        let open = run.len() > 1 && run.iter().any(|point| top(point).1 < bottom(point).1);
        let points = || run.iter().map(top).chain(run.iter().rev().map(bottom)).collect();
        open.then(|| Shape::Area { points: points(), ink: Ink::Series(color), opacity })
    };
    [area(|point| point.high, |point| point.core, BAND), area(|point| point.core, |point| point.low, TAIL)]
}

/// The lines and markers of a series.
fn curve(series: &Series, runs: &[Vec<Drawn>], plot: &Plot, order: usize, count: usize) -> Shape {
    if runs.len() > CLOUD && runs.iter().all(|run| run.len() == 1) {
        let shapes = runs.iter().flatten().map(|point| cloud_point(point.sample.at, series.color)).collect();
        return Shape::Group { part: SeriesPart::Curve(Vec::new()), name: series.name.clone(), shapes };
    }
    let mut shapes = vec![];
    let samples: Vec<Reading> = runs.iter().flatten().map(|point| point.sample).collect();
    shapes.extend(runs.iter().filter(|run| run.len() > 1).map(|run| {
        let points = run.iter().map(|point| point.sample.at).collect();
        stroke(points, series.color)
    }));
    // Markers of different series are shifted, so that the markers of equal curves stay visible.
    let mut next = plot.left + STRIDE * (order as f32 + 0.5) / count as f32;
    for run in runs {
        let end = run.last().map_or(plot.left, |point| point.sample.at.0);
        for (i, Drawn { sample, .. }) in run.iter().enumerate() {
            // The end of a line always has a marker, and no other marker is close to it.
            let due = sample.at.0 >= next && end - sample.at.0 > STRIDE / 4.0;
            if series.color != Series::OTHERS && (i + 1 == run.len() || due) {
                shapes.push(marker(sample.at, series.color));
                next = next.max(sample.at.0) + STRIDE;
            }
        }
        if let [single] = run.as_slice()
            && single.low != single.high
        {
            shapes.push(whisker(single, series.color));
        }
    }
    Shape::Group { part: SeriesPart::Curve(samples), name: series.name.clone(), shapes }
}

/// A small square.
fn cloud_point((x, y): Place, color: usize) -> Shape {
    let (r, opacity) = CLOUD_POINT;
    let points = vec![(x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)];
    Shape::Area { points, ink: Ink::Series(color), opacity }
}

/// The band of a single point.
fn whisker(point: &Drawn, color: usize) -> Shape {
    Shape::Line { points: vec![point.low, point.high], ink: Ink::Series(color), width: 1.0, dash: &[] }
}

fn stroke(points: Vec<Place>, color: usize) -> Shape {
    if color == Series::OTHERS {
        return Shape::Line { points, ink: Ink::Others, width: 1.0, dash: &[] };
    }
    // Beyond eight series the colors repeat with other dashes.
    let dash = DASHES[(color + color / 8) % DASHES.len()];
    Shape::Line { points, ink: Ink::Series(color), width: STROKE, dash }
}

/// A small polygon; each of the eight colors has another one.
fn marker((x, y): Place, color: usize) -> Shape {
    let ring = |corners: u8, turn: f32, size: f32| -> Vec<Place> {
        let angle = |i: u8| (f32::from(i) / f32::from(corners) + turn) * std::f32::consts::TAU;
        (0..corners).map(|i| (x + MARKER * size * angle(i).sin(), y - MARKER * size * angle(i).cos())).collect()
    };
    let star = |corners: u8, turn: f32, inner: f32| -> Vec<Place> {
        let tips = ring(corners, turn, 1.35);
        let dents = ring(corners, turn + 0.5 / f32::from(corners), inner);
        tips.into_iter().zip(dents).flat_map(|(tip, dent)| [tip, dent]).collect()
    };
    let points = match color % 8 {
        0 => ring(20, 0.0, 1.0),
        1 => ring(4, 0.125, 1.25),
        2 => ring(3, 0.0, 1.4),
        3 => ring(4, 0.0, 1.4),
        4 => ring(3, 0.5, 1.4),
        5 => star(4, 0.0, 0.5),
        6 => star(4, 0.125, 0.5),
        _ => star(5, 0.0, 0.6),
    };
    Shape::Area { points, ink: Ink::Series(color), opacity: 1.0 }
}
