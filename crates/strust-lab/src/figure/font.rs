//! The font: widths of texts and outlines of letters.

use super::scene::{Anchor, Label};
use std::sync::LazyLock;
use ttf_parser::{Face, GlyphId};

static DATA: &[u8] = include_bytes!("../../assets/DejaVuSans-subset.ttf");

/// DejaVu Sans, reduced to the characters figures use; see `assets/DejaVu-LICENSE.txt`.
pub(super) static FONT: LazyLock<Face<'static>> =
    LazyLock::new(|| Face::parse(DATA, 0).expect("the font in assets is valid"));

/// Pixels per font unit at a size in pixels.
pub(super) fn scale(size: f32) -> f32 {
    size / f32::from(FONT.units_per_em())
}

/// The letter of a character, or the sign for a missing one.
pub(super) fn glyph(sign: char) -> GlyphId {
    FONT.glyph_index(sign).unwrap_or_default()
}

/// The width of a letter, in font units.
pub(super) fn advance(letter: GlyphId) -> f32 {
    f32::from(FONT.glyph_hor_advance(letter).unwrap_or(0))
}

/// The width of a text. DejaVu is a wide font, so the fallback fonts of an SVG file are rarely wider.
pub(super) fn width(text: &str, size: f32) -> f32 {
    text.chars().map(|c| advance(glyph(c))).sum::<f32>() * scale(size)
}

/// The width of a label.
pub(super) fn label_width(label: &Label, size: f32) -> f32 {
    width(&label.base, size) + width(&label.exponent, size * Label::SHRINK)
}

/// The horizontal position of a label's start, relative to its anchor.
pub(super) fn start(label: &Label, size: f32, anchor: Anchor) -> f32 {
    match anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => -label_width(label, size) / 2.0,
        Anchor::End => -label_width(label, size),
    }
}

/// The text, shortened with an ellipsis if it is too wide.
pub(super) fn cut(text: &str, size: f32, room: f32) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut left = room - width("…", size);
    let kept = text.chars().take_while(|c| {
        left -= advance(glyph(*c)) * scale(size);
        left >= 0.0
    });
    kept.collect::<String>().trim_end().to_owned() + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_has_every_character_that_figures_use() {
        for sign in "aZ09 −×·±‖ᵀ₀₉⁰⁴⁹⁻≤≥–—…*→←αλμρετφσΔ∇²₁₂#∞\u{2009}".chars()
        {
            assert_ne!(glyph(sign).0, 0, "{sign:?} is missing");
        }
    }

    #[test]
    fn a_shortened_text_fits() {
        let long = "a method with very many settings in its name";
        assert_eq!(cut("str-p", 12.0, 100.0), "str-p");
        assert!(cut(long, 12.0, 100.0).ends_with('…'));
        assert!(width(&cut(long, 12.0, 100.0), 12.0) <= 100.0);
    }
}
