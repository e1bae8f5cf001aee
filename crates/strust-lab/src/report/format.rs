//! Numbers and names as text.

use crate::experiment::plain;
use crate::figure::escape;
use crate::summary::Parameters;

/// What a cell shows when there is no value.
pub(super) const NOTHING: &str = "–";

/// Three digits and an exponent of at least two, so that a column of them lines up: `1.23e-05`.
pub(super) fn scientific(value: f64) -> String {
    if !value.is_finite() {
        return special(value).to_owned();
    }
    let text = format!("{value:.2e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// A fixed number of decimals.
pub(super) fn fixed(value: f64, decimals: usize) -> String {
    if value.is_finite() { format!("{value:.decimals$}") } else { special(value).to_owned() }
}

/// A count, rounded, with its thousands set apart.
pub(super) fn count(value: f64) -> String {
    let text = fixed(value, 0);
    if !value.is_finite() {
        return text;
    }
    let digits = text.trim_start_matches('-').len();
    let lead = text.len() - digits;
    let gap = |i: usize| i > lead && (text.len() - i).is_multiple_of(3);
    text.char_indices().flat_map(|(i, c)| gap(i).then_some('\u{202f}').into_iter().chain([c])).collect()
}

/// A number of any size as short as it reads well.
#[must_use]
pub fn plain_number(value: f64) -> String {
    if value == 0.0 || (1e-3..1e5).contains(&value.abs()) {
        let text = format!("{value:.4}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        scientific(value)
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

/// A word with its number: `1 seed`, `5 seeds`.
pub(crate) fn plural(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

/// Names and values that may be broken between pairs but not inside of one.
pub(super) fn pairs(parameters: &Parameters) -> String {
    if parameters.is_empty() {
        return String::from("<span class=\"quiet\">none</span>");
    }
    let pair = |(name, value): (&String, &toml::Value)| {
        format!(
            "<span class=\"pair\"><span class=\"quiet\">{}</span> <code>{}</code></span>",
            escape(name),
            escape(&plain(value))
        )
    };
    parameters.iter().map(pair).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scientific_numbers_line_up() {
        let shown = [0.0, 1.0, -1.234e-5, 9.999e99, 1e-100, f64::NAN, f64::INFINITY].map(scientific);
        assert_eq!(shown, ["0.00e+00", "1.00e+00", "-1.23e-05", "1.00e+100", "1.00e-100", "NaN", "∞"]);
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!(
            [0.0, 999.4, 1000.0, -1_234_567.0].map(count),
            ["0", "999", "1\u{202f}000", "-1\u{202f}234\u{202f}567"]
        );
    }

    #[test]
    fn parameters_are_escaped() {
        let parameters =
            Parameters::from([("<a>".into(), toml::Value::String("\"&".into())), ("b".into(), 1e-8.into())]);
        let shown = pairs(&parameters);
        assert!(shown.contains("&lt;a&gt;") && shown.contains("&quot;&amp;") && shown.contains(">1e-8<"), "{shown}");
    }
}
