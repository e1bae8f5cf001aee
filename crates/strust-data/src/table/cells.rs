//! One record of a CSV file: its fields, and what a field holds.
//!
//! A field in quotes may contain separators, line breaks and doubled quotes (RFC 4180). A quote inside a field that does
//! not start with one is an ordinary character. Spaces and tabs around a field without quotes are removed.

use std::borrow::Cow;

/// The place of a field in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CellSpan {
    start: usize,
    end: usize,
    /// Whether it was in quotes and contains doubled quotes.
    doubled: bool,
}

impl CellSpan {
    /// The contents of the field.
    pub(super) fn of<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let raw = &bytes[self.start..self.end];
        if !self.doubled {
            return Cow::Borrowed(raw);
        }
        let mut out = Vec::with_capacity(raw.len());
        let mut i = 0;
        while i < raw.len() {
            out.push(raw[i]);
            i += if raw[i] == b'"' { 2 } else { 1 };
        }
        Cow::Owned(out)
    }
}

/// Why a record has no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BrokenRecord {
    /// A quote is not closed.
    Unclosed,
    /// Text follows a closing quote.
    AfterQuote,
}

/// Reads the fields of the record that starts at `at`. Returns the position after its line break.
#[inline]
pub(super) fn record(
    bytes: &[u8],
    mut at: usize,
    separator: u8,
    cells: &mut Vec<CellSpan>,
) -> Result<usize, BrokenRecord> {
    cells.clear();
    loop {
        while at < bytes.len() && (bytes[at] == b' ' || bytes[at] == b'\t' && separator != b'\t') {
            at += 1;
        }
        if at < bytes.len() && bytes[at] == b'"' {
            let (cell, next) = quoted(bytes, at + 1)?;
            cells.push(cell);
            at = next;
            while at < bytes.len() && matches!(bytes[at], b' ' | b'\r') {
                at += 1;
            }
            match bytes.get(at) {
                None => return Ok(at),
                Some(b'\n') => return Ok(at + 1),
                Some(&byte) if byte == separator => at += 1,
                Some(_) => return Err(BrokenRecord::AfterQuote),
            }
            continue;
        }
        let start = at;
        while at < bytes.len() && bytes[at] != separator && bytes[at] != b'\n' {
            at += 1;
        }
        let mut end = at;
        while end > start && matches!(bytes[end - 1], b' ' | b'\r' | b'\t') {
            end -= 1;
        }
        cells.push(CellSpan { start, end, doubled: false });
        match bytes.get(at) {
            None => return Ok(at),
            Some(b'\n') => return Ok(at + 1),
            Some(_) => at += 1,
        }
    }
}

/// The field whose first character after the quote is at `start`, and the position after its closing quote.
fn quoted(bytes: &[u8], start: usize) -> Result<(CellSpan, usize), BrokenRecord> {
    let (mut at, mut doubled) = (start, false);
    while at < bytes.len() {
        if bytes[at] != b'"' {
            at += 1;
        } else if bytes.get(at + 1) == Some(&b'"') {
            doubled = true;
            at += 2;
        } else {
            return Ok((CellSpan { start, end: at, doubled }, at + 1));
        }
    }
    Err(BrokenRecord::Unclosed)
}

/// Whether a field has no value: it is empty, or one of these in upper or lower case.
pub(super) fn is_blank(cell: &[u8]) -> bool {
    ["", "?", "na", "n/a", "nan", "null"].iter().any(|blank| cell.eq_ignore_ascii_case(blank.as_bytes()))
}

/// The number in a field, correctly rounded; `None` if it is not a number. It may be infinite.
pub(super) fn number(cell: &[u8]) -> Option<f64> {
    short_decimal(cell).or_else(|| std::str::from_utf8(cell).ok()?.parse().ok())
}

/// Powers of ten that are exact in `f64`.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// A decimal without an exponent whose digits are exact as a whole number below 2⁵³. Then one division rounds correctly.
#[inline]
fn short_decimal(cell: &[u8]) -> Option<f64> {
    let (negative, digits) = match cell {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let (mut mantissa, mut count, mut decimals, mut point) = (0_u64, 0, 0, false);
    for &byte in digits {
        match byte {
            b'0'..=b'9' => {
                mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
                count += 1;
                decimals += usize::from(point);
            }
            b'.' if !point => point = true,
            _ => return None,
        }
    }
    // Nineteen digits fit into a u64.
    if count == 0 || count > 19 || mantissa > 1 << 53 {
        return None;
    }
    let value = mantissa as f64 / POWERS[decimals];
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(text: &str) -> Result<Vec<Vec<String>>, BrokenRecord> {
        let (mut at, mut cells, mut records) = (0, Vec::new(), Vec::new());
        while at < text.len() {
            at = record(text.as_bytes(), at, b',', &mut cells)?;
            let shown = |cell: &CellSpan| String::from_utf8(cell.of(text.as_bytes()).into_owned()).unwrap();
            records.push(cells.iter().map(shown).collect());
        }
        Ok(records)
    }

    #[test]
    fn quotes_hold_separators_line_breaks_and_doubled_quotes() {
        let read = all("a, b ,\"c, \"\"d\"\"\n e\" ,\r\n\"\",5\" pipe\n").unwrap();
        assert_eq!(read, [vec!["a", "b", "c, \"d\"\n e", ""], vec!["", "5\" pipe"]]);
        assert_eq!(all("a,\"b").unwrap_err(), BrokenRecord::Unclosed);
        assert_eq!(all("a,\"b\"c\n").unwrap_err(), BrokenRecord::AfterQuote);
    }

    #[test]
    fn blanks_are_recognized() {
        assert!(["", "?", "NA", "n/a", "NaN", "null"].iter().all(|text| is_blank(text.as_bytes())));
        assert!(!["0", "-", "nab", "none"].iter().any(|text| is_blank(text.as_bytes())));
    }

    proptest! {
        #[test]
        fn a_number_is_what_the_standard_library_reads(text in "-?[0-9]{0,12}\\.?[0-9]{0,12}(e-?[0-9]{1,2})?") {
            prop_assert_eq!(number(text.as_bytes()).map(f64::to_bits), text.parse::<f64>().ok().map(f64::to_bits));
        }

        #[test]
        fn a_written_field_is_read_back(fields in prop::collection::vec("[a-c,\"\n ;]{0,6}", 1..5)) {
            let quote = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
            let text = fields.iter().map(quote).collect::<Vec<_>>().join(",") + "\n";
            prop_assert_eq!(all(&text).unwrap(), [fields]);
        }

        #[test]
        fn any_text_ends(text in "[a\", \r\n]{0,40}") {
            let _ = all(&text);
        }
    }
}
