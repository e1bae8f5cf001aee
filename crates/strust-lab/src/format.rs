//! Formats numbers, values and names. All other modules use these functions.

pub use strust_data::words::{noun, plural};

/// The text of a table cell without a value.
pub const NOTHING: &str = "–";

/// Two digits and an exponent, for tables and sentences: `1.2e-5`.
#[must_use]
pub fn brief(value: f64) -> String {
    format!("{value:.1e}")
}

/// Three digits and an exponent of at least two digits, so that columns align: `1.23e-05`.
#[must_use]
pub fn scientific(value: f64) -> String {
    if !value.is_finite() {
        return special(value).to_owned();
    }
    let text = format!("{value:.2e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// A fixed number of decimals.
#[must_use]
pub fn fixed(value: f64, decimals: usize) -> String {
    if value.is_finite() { format!("{value:.decimals$}") } else { special(value).to_owned() }
}

/// A count, rounded, with a gap between thousands.
pub(crate) fn count(value: f64) -> String {
    let text = fixed(value, 0);
    if !value.is_finite() {
        return text;
    }
    match text.strip_prefix('-') {
        Some(digits) => format!("-{}", thousands(digits, '\u{202f}')),
        None => thousands(&text, '\u{202f}'),
    }
}

/// Digits with a gap between thousands.
#[must_use]
pub fn thousands(digits: &str, gap: char) -> String {
    let before = |i: usize| i > 0 && (digits.len() - i).is_multiple_of(3);
    digits.char_indices().flat_map(|(i, c)| before(i).then_some(gap).into_iter().chain([c])).collect()
}

/// A number of any size, in a short form.
#[must_use]
pub fn plain_number(value: f64) -> String {
    if value == 0.0 || (1e-3..1e5).contains(&value.abs()) {
        let text = format!("{value:.4}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        scientific(value)
    }
}

/// A number for a sentence: about three digits.
#[must_use]
pub fn in_sentence(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || (0.01..1.0).contains(&size) {
        format!("{value:.3}")
    } else if (1.0..1e4).contains(&size) {
        format!("{value:.2}")
    } else {
        brief(value)
    }
}

fn special(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "∞"
    } else {
        "−∞"
    }
}

/// A value for people: a text without its quotes, a number short and exact, `1e-8` as well as `0.9`.
#[must_use]
pub fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) if !text.is_empty() => text.clone(),
        toml::Value::Float(number) => format!("{number:?}"),
        toml::Value::Array(values) => format!("[{}]", values.iter().map(plain).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// A value as in an experiment file; numbers as in [`plain`].
#[must_use]
pub fn written(value: &toml::Value) -> String {
    if value.is_float() { plain(value) } else { value.to_string() }
}

/// The rule for names of experiments, tasks and checks, for messages.
pub const NAME_RULE: &str = "must have 1 to 100 letters, digits, `-`, `_` and `.`, and not start with a dot, because it names files and folders";

/// Whether a name follows [`NAME_RULE`]. Such a name is a part of paths, and can never lead out of a folder.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let valid = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (1..=100).contains(&name.len()) && name.chars().all(valid) && !name.starts_with('.')
}

/// The first control character of a text, as in messages: U+001B. A terminal could obey it. Texts of several lines may have
/// line breaks and tabs.
#[must_use]
pub fn control_character(text: &str, lines: bool) -> Option<String> {
    let found = text.chars().find(|&c| c.is_control() && !(lines && matches!(c, '\n' | '\t' | '\r')));
    found.map(|c| format!("U+{:04X}", u32::from(c)))
}

/// A text in one line without control characters, such as the name of a file.
pub(crate) fn in_one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// A folder's name that every file system accepts.
#[must_use]
pub fn folder_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.=".contains(c) { c } else { '_' }).collect()
}

/// The name of a figure's file, without ending, that every file system accepts.
pub(crate) fn figure_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' }).collect()
}

/// A field of a CSV file, quoted where necessary.
#[must_use]
pub fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { csv_quoted(text) } else { text.into() }
}

/// Whether a spreadsheet may take a field of a CSV file for a formula. Numbers with a sign are none.
#[must_use]
pub fn is_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err()
}

/// A field of a CSV file in quotes.
#[must_use]
pub fn csv_quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scientific_numbers_have_the_same_width() {
        let shown = [0.0, 1.0, -1.234e-5, 9.999e99, 1e-100, f64::NAN, f64::INFINITY].map(scientific);
        assert_eq!(shown, ["0.00e+00", "1.00e+00", "-1.23e-05", "1.00e+100", "1.00e-100", "NaN", "∞"]);
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!(
            [0.0, 999.4, 1000.0, -1_234_567.0].map(count),
            ["0", "999", "1\u{202f}000", "-1\u{202f}234\u{202f}567"]
        );
        assert_eq!(count(f64::NEG_INFINITY), "−∞");
    }

    #[test]
    fn numbers_in_sentences_have_about_three_digits() {
        assert_eq!(
            [0.0, 0.05, 12.345, 12_345.0, 1e-3].map(in_sentence),
            ["0.000", "0.050", "12.35", "1.2e4", "1.0e-3"]
        );
    }

    #[test]
    fn a_name_never_leads_out_of_a_folder() {
        assert!(["a", "subspace-small", "A_1.b", &"x".repeat(100)].into_iter().all(is_name));
        let wrong = ["", ".", "..", ".a", "a/b", "../a", "/a", "a\\b", "a b", "é", "a\0", "a\n", &"x".repeat(101)];
        assert!(!wrong.into_iter().any(is_name));
    }

    #[test]
    fn a_formula_is_what_a_spreadsheet_would_compute() {
        assert!(["=1+1", "=cmd|'/c calc'!A1", "@SUM(1)", "+a", "-a", "\t=1"].into_iter().all(is_formula));
        assert!(!["", "a=1", "-1", "+1", "-1.5e-3", " =1"].into_iter().any(is_formula));
    }

    #[test]
    fn csv_fields_with_commas_and_quotes_are_quoted() {
        assert_eq!(csv_field("a"), "a");
        assert_eq!(csv_field("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
