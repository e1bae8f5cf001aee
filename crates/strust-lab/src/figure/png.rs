//! A scene as a PNG picture.

use super::outline::Canvas;
use super::scene::{Ink, Scene};
use super::{FigureError, rgb};
use flate2::{Compression, Crc, write::ZlibEncoder};
use std::io::{self, Write};
use zeno::{Command, Fill, Join, Mask, Stroke, Style, Transform};

/// The longest side of a picture, in pixels.
const LONGEST: f32 = 16384.0;

pub(super) fn encode(scene: &Scene, scale: f32) -> Result<Vec<u8>, FigureError> {
    let (width, height) = ((scene.width * scale).round(), (scene.height * scale).round());
    let possible = |side: f32| (1.0..=LONGEST).contains(&side);
    if !possible(width) || !possible(height) {
        return Err(FigureError::Size { width, height });
    }
    let (width, height) = (width as usize, height as usize);
    let mut picture = Picture { width, height, scale, pixels: vec![[255; 3]; width * height] };
    picture.draw(&scene.shapes);
    picture.encode().map_err(|error| FigureError::Encode(error.to_string()))
}

/// The pixels, in red, green and blue.
struct Picture {
    width: usize,
    height: usize,
    scale: f32,
    pixels: Vec<[u8; 3]>,
}

impl Picture {
    fn paint(&mut self, path: &[Command], style: Style, ink: Ink, opacity: f32) {
        let color = rgb(ink);
        let opacity = (opacity * 255.0).round() as u32;
        let (mask, place) =
            Mask::new(path).style(style).transform(Some(Transform::scale(self.scale, self.scale))).render();
        // A part of a shape may be outside of the picture.
        let before = |begin: i32| usize::try_from(-i64::from(begin)).unwrap_or(0);
        let first = |begin: i32| usize::try_from(begin).unwrap_or(0);
        let rows = mask.chunks_exact(place.width.max(1) as usize).skip(before(place.top));
        let pixels = self.pixels.chunks_exact_mut(self.width).skip(first(place.top));
        for (row, pixels) in rows.zip(pixels) {
            let row = row.iter().skip(before(place.left));
            for (&cover, pixel) in row.zip(pixels.iter_mut().skip(first(place.left))).filter(|(cover, _)| **cover > 0) {
                let alpha = (u32::from(cover) * opacity + 127) / 255;
                for (old, new) in pixel.iter_mut().zip(color) {
                    *old = ((u32::from(*old) * (255 - alpha) + u32::from(new) * alpha + 127) / 255) as u8;
                }
            }
        }
    }

    fn encode(&self) -> io::Result<Vec<u8>> {
        let mut rows = ZlibEncoder::new(Vec::new(), Compression::default());
        for row in self.pixels.chunks_exact(self.width) {
            // Each row begins with its filter: none. Areas of one color compress well without.
            rows.write_all(&[0])?;
            rows.write_all(row.as_flattened())?;
        }
        let mut header: Vec<u8> =
            [self.width, self.height].iter().flat_map(|&side| (side as u32).to_be_bytes()).collect();
        // Eight bits for each of three colors, in the one format of compression and filters, not interlaced.
        header.extend([8, 2, 0, 0, 0]);
        let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
        for (name, data) in [(b"IHDR", &header), (b"IDAT", &rows.finish()?), (b"IEND", &vec![])] {
            let mut sum = Crc::new();
            sum.update(name);
            sum.update(data);
            file.extend((data.len() as u32).to_be_bytes());
            file.extend(name);
            file.extend(data);
            file.extend(sum.sum().to_be_bytes());
        }
        Ok(file)
    }
}

impl Canvas for Picture {
    fn stroke(&mut self, path: &[Command], ink: Ink, width: f32, dash: &[f32]) {
        let mut stroke = Stroke::new(width);
        stroke.join(Join::Round).dash(dash, 0.0);
        self.paint(path, stroke.into(), ink, 1.0);
    }

    fn fill(&mut self, path: &[Command], ink: Ink, opacity: f32) {
        self.paint(path, Fill::NonZero.into(), ink, opacity);
    }
}
