use super::*;
use proptest::prelude::*;

fn figure(series: Vec<Series>, log: bool) -> Figure {
    Figure {
        title: "Gap after <every> epoch & \"more\"".into(),
        x: Axis { label: "epoch".into(), log: false },
        y: Axis { label: "gap f(W) − f*".into(), log },
        series,
    }
}

fn series(name: &str, values: &[f64]) -> Series {
    let point = |(k, &y): (usize, &f64)| Point { x: k as f64, y, low: y - 0.5, high: y + 0.5 };
    Series { name: name.into(), color: 0, points: values.iter().enumerate().map(point).collect() }
}

/// Checks that all elements are closed in order, all attributes are quoted and all text is escaped.
fn well_formed(xml: &str) -> Result<(), String> {
    let mut open = vec![];
    for part in xml.split('<').skip(1) {
        let (tag, text) = part.split_once('>').ok_or_else(|| format!("no end of <{part}"))?;
        if text.contains('>') || tag.matches('"').count() % 2 == 1 {
            return Err(format!("unescaped character in <{part}"));
        }
        for entity in part.split('&').skip(1) {
            let known = ["amp;", "lt;", "gt;", "quot;", "#39;"];
            if !known.iter().any(|name| entity.starts_with(name)) {
                return Err(format!("unknown entity &{entity}"));
            }
        }
        if let Some(name) = tag.strip_prefix('/') {
            let last = open.pop();
            if last != Some(name) {
                return Err(format!("</{name}> closes {last:?}"));
            }
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().unwrap_or_default());
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} never closed")) }
}

#[test]
fn markup_in_names_is_escaped() {
    let name = "<script>alert('&\"')</script>\u{0}\u{1b}";
    let figure = figure(vec![series(name, &[1.0, 0.1])], true);
    for theme in [Theme::File, Theme::Inline] {
        let svg = figure.svg(theme);
        assert_eq!(well_formed(&svg), Ok(()));
        assert!(!svg.contains("<script") && svg.contains("&lt;script&gt;alert(&#39;&amp;&quot;&#39;)"));
        assert!(!svg.contains(|c: char| c.is_control() && c != '\n'));
    }
}

#[test]
fn many_points_without_a_line_are_a_cloud() {
    for (count, small) in [(50_usize, false), (150, true)] {
        let dots = Series::dots("rows", 0, (0..count).map(|k| (k as f64, (k * k % 7) as f64)));
        let svg = figure(vec![dots], false).svg(Theme::Inline);
        assert_eq!(well_formed(&svg), Ok(()));
        // The axes have lines, but neither the points nor their sample in the legend.
        assert!(!svg.contains("stroke:var(--figure-0"), "{svg}");
        assert_eq!(svg.matches("<polygon").count(), count + 1);
        assert_eq!(svg.contains("data-points=\"\""), small);
    }
}

/// The width, the height and the pixels of a PNG picture of our kind, if it is valid.
fn decoded(file: &[u8]) -> Option<(u32, u32, Vec<[u8; 3]>)> {
    let number = |bytes: &[u8]| Some(u32::from_be_bytes(bytes.try_into().ok()?));
    let (mut rest, mut chunks) = (file.strip_prefix(b"\x89PNG\r\n\x1a\n")?, vec![]);
    while !rest.is_empty() {
        let length = number(rest.get(..4)?)? as usize;
        let (named, sum) = (rest.get(4..8 + length)?, rest.get(8 + length..12 + length)?);
        let mut crc = flate2::Crc::new();
        crc.update(named);
        (crc.sum() == number(sum)?).then_some(())?;
        chunks.push(named.split_at(4));
        rest = &rest[12 + length..];
    }
    let [(b"IHDR", header), (b"IDAT", data), (b"IEND", [])] = chunks[..] else { return None };
    let (width, height) = (number(header.get(..4)?)?, number(header.get(4..8)?)?);
    let mut rows = vec![];
    std::io::Read::read_to_end(&mut flate2::read::ZlibDecoder::new(data), &mut rows).ok()?;
    let rows = rows.chunks(1 + 3 * width as usize).map(|row| row.split_first().filter(|(filter, _)| **filter == 0));
    let rows: Vec<&[u8]> = rows.map(|row| Some(row?.1)).collect::<Option<_>>()?;
    let pixels: Vec<[u8; 3]> = rows.iter().flat_map(|row| row.as_chunks().0).copied().collect();
    (header[8..] == [8, 2, 0, 0, 0] && pixels.len() as u32 == width * height).then_some((width, height, pixels))
}

#[test]
fn a_picture_has_the_size_of_the_svg_times_the_scale() {
    let figure = figure(vec![series("str", &[1.0, 0.1, 0.01])], true);
    let svg = figure.svg(Theme::File);
    let size = |name: &str| -> f32 {
        let rest = svg.split_once(&format!(" {name}=\"")).expect("the attribute").1;
        rest.split('"').next().expect("a value").parse().expect("a number")
    };
    let (width, height, pixels) = decoded(&figure.png(2.0).expect("a picture")).expect("valid PNG");
    assert_eq!(width, (size("width") * 2.0).round() as u32);
    assert_eq!(height, (size("height") * 2.0).round() as u32);
    assert!(pixels.iter().filter(|pixel| **pixel == [0, 0x72, 0xb2]).count() > 100, "the curve is drawn in its color");
}

#[test]
fn an_impossible_scale_is_an_error() {
    for scale in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e6, 1e-6] {
        assert!(matches!(figure(vec![], true).png(scale), Err(FigureError::Size { .. })), "scale {scale}");
    }
}

#[test]
fn a_figure_without_data_shows_a_message() {
    for series in [vec![], vec![series("str", &[])], vec![series("str", &[f64::NAN, f64::INFINITY])]] {
        assert!(figure(series, true).svg(Theme::File).contains(">no data<"));
    }
}

#[test]
fn a_single_point_is_a_marker() {
    let svg = figure(vec![series("str", &[1.0])], true).svg(Theme::File);
    // One marker in the legend and one in the plot.
    assert_eq!(svg.matches("<polygon").count(), 2);
}

#[test]
fn a_line_has_a_gap_where_a_value_cannot_be_drawn() {
    let svg = figure(vec![series("str", &[1.0, 0.5, f64::NAN, 0.5, 0.2])], true).svg(Theme::File);
    // One line in the legend and two in the plot.
    assert_eq!(svg.matches("stroke=\"#0072b2\"").count(), 3);
}

#[test]
fn values_that_are_not_positive_are_at_a_marked_floor_of_a_logarithmic_axis() {
    for values in [&[1.0, 0.5, 0.0, -3.0, 0.2][..], &[0.0, -1.0]] {
        let figure = figure(vec![series("str", values)], true);
        assert_eq!(figure.svg(Theme::File).matches("stroke=\"#0072b2\"").count(), 2, "the line has no gap");
        assert!(figure.svg(Theme::File).contains(">≤ 0<"), "the floor is marked");
        let scene = layout::scene(&figure, Theme::File, &FigureStyle::default());
        let samples = scene.shapes.iter().find_map(|shape| match shape {
            scene::Shape::Group { part: scene::SeriesPart::Curve(samples), .. } => Some(samples),
            _ => None,
        });
        for (reading, value) in samples.expect("a curve").iter().zip(values) {
            let on_floor = (reading.at.1 - scene.plot[3]).abs() < 1e-3;
            assert_eq!(on_floor, *value <= 0.0, "{value}");
        }
    }
}

#[test]
fn a_figure_has_the_size_and_the_formats_of_a_frame() {
    let figure = figure(vec![series("str", &[1.0, 0.1, 0.01])], true);
    let frame = FigureStyle { width: 300, height: 150, titles: false, ..FigureStyle::default() };
    let svg = figure.svg_in(&frame, Theme::File);
    assert!(
        svg.contains("width=\"300\"") && !svg.contains(">Gap after &lt;every&gt; epoch &amp; &quot;more&quot;</text>")
    );
    assert!(figure.svg(Theme::File).contains(">Gap after &lt;every&gt; epoch &amp; &quot;more&quot;</text>"));
    let pdf = figure.pdf_in(&frame);
    let text = String::from_utf8_lossy(&pdf);
    // 300 pixels are 225 points.
    assert!(pdf.starts_with(b"%PDF-") && text.contains("/MediaBox [0 0 225 "), "{}", &text[..300]);
    assert!(text.trim_end().ends_with("%%EOF"));
}

#[test]
fn series_without_names_of_their_own_are_gray_and_counted() {
    let mut all: Vec<Series> = (0..15).map(|i| Series { color: i, ..series(&format!("m{i}"), &[1.0, 0.1]) }).collect();
    all[12..].iter_mut().for_each(|series| series.color = Series::OTHERS);
    let svg = figure(all, true).svg(Theme::File);
    assert!(svg.contains(">m11<") && !svg.contains(">m12<") && svg.contains(">3 others<"));
}

#[test]
fn a_band_that_reaches_zero_is_cut_at_the_bottom() {
    let points = [1.0, 0.1].map(|y| Point { x: 1.0 / y, y, low: y - 2.0, high: y + 2.0 });
    let series = Series { name: "str".into(), color: 0, points: points.into() };
    let scene = layout::scene(&figure(vec![series], true), Theme::File, &FigureStyle::default());
    let bottom = scene.plot[3];
    let bands = scene.shapes.iter().flat_map(|shape| match shape {
        scene::Shape::Group { part: scene::SeriesPart::Band, shapes, .. } => shapes.iter(),
        _ => [].iter(),
    });
    let bands = bands.filter_map(|shape| match shape {
        scene::Shape::Area { points, .. } => Some(points),
        _ => None,
    });
    let lowest = bands.flatten().map(|place| place.1).fold(0.0, f32::max);
    assert!((lowest - bottom).abs() < 1e-3);
}

/// Numbers of every kind: ordinary, huge, tiny, zero, negative, not finite.
fn any_value() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        Just(0.0),
        Just(1.0),
        Just(f64::NAN),
        Just(f64::INFINITY),
        (-320.0..300.0_f64).prop_map(|e| 10_f64.powf(e))
    ]
}

fn any_series() -> impl Strategy<Value = Series> {
    let point =
        [any_value(), any_value(), any_value(), any_value()].prop_map(|[x, y, low, high]| Point { x, y, low, high });
    (any::<String>(), 0_usize..40, prop::collection::vec(point, 0..8)).prop_map(|(name, color, points)| Series {
        name,
        color,
        points,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_data_gives_a_figure(
        title: String, label: String, logs: (bool, bool), series in prop::collection::vec(any_series(), 0..6),
    ) {
        let axis = |log| Axis { label: label.clone(), log };
        let figure = Figure { title, x: axis(logs.0), y: axis(logs.1), series };
        for theme in [Theme::File, Theme::Inline] {
            let svg = figure.svg(theme);
            prop_assert_eq!(well_formed(&svg), Ok(()));
            prop_assert!(!svg.contains("NaN,") && !svg.contains("inf,"), "a position is not a number");
        }
        let scene = layout::scene(&figure, Theme::File, &FigureStyle::default());
        let [left, top, right, bottom] = scene.plot;
        for shape in &scene.shapes {
            if let scene::Shape::Group { part: scene::SeriesPart::Curve(samples), .. } = shape {
                for scene::Reading { at: (x, y), .. } in samples {
                    prop_assert!(*x >= left - 0.01 && *x <= right + 0.01 && *y >= top - 0.01 && *y <= bottom + 0.01);
                }
            }
        }
        prop_assert!(decoded(&figure.png(0.5).expect("a picture")).is_some());
    }
}

#[test]
fn a_figure_of_thousands_of_series_has_a_legend_of_bounded_size() {
    let all: Vec<Series> = (0..3000)
        .map(|i| Series { color: i, ..series(&format!("a long name of a method {i}"), &[1.0, 0.1]) })
        .collect();
    let figure = figure(all, true);
    assert!(figure.png(2.0).is_ok());
    let svg = figure.svg(Theme::File);
    assert!(svg.contains(">a long name of a method 39<") && !svg.contains(">a long name of a method 40<"));
    assert!(svg.contains(">and 2960 more<"));
}
