//! Lines of a text file with their positions, and the numbers in them.

use crate::{DataError, words::quoted};
use std::{
    io::{BufRead, Read},
    path::Path,
};

/// The longest line. A longer one is not data, and it would fill the memory.
const LONGEST: usize = 64 << 20;

/// Reads line by line.
pub(crate) struct TextLines<'a, R> {
    reader: R,
    path: &'a Path,
    buffer: Vec<u8>,
    number: u64,
    longest: usize,
}

/// A line without its line break.
#[derive(Clone, Copy)]
pub(crate) struct TextLine<'a> {
    pub(crate) text: &'a str,
    path: &'a Path,
    /// The number of the line, from 1.
    pub(crate) number: u64,
}

impl<'a, R: BufRead> TextLines<'a, R> {
    pub(crate) fn new(reader: R, path: &'a Path) -> Self {
        Self { reader, path, buffer: Vec::new(), number: 0, longest: LONGEST }
    }

    pub(crate) fn next(&mut self) -> Result<Option<TextLine<'_>>, DataError> {
        self.buffer.clear();
        // Two more bytes for the line break.
        let limit = self.longest as u64 + 2;
        let read = self.reader.by_ref().take(limit).read_until(b'\n', &mut self.buffer);
        if read.map_err(DataError::io(self.path))? == 0 {
            return Ok(None);
        }
        self.number += 1;
        let mut bytes = &self.buffer[..];
        bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if self.number == 1 {
            // The byte order mark that spreadsheets write.
            bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        }
        let (valid, invalid) = match std::str::from_utf8(bytes) {
            Ok(text) => (text, None),
            Err(error) => {
                let (valid, rest) = bytes.split_at(error.valid_up_to());
                (std::str::from_utf8(valid).unwrap_or_default(), rest.first())
            }
        };
        let line = TextLine { text: valid, path: self.path, number: self.number };
        if bytes.len() > self.longest {
            return Err(line.error(0, format!("the line is longer than {} bytes", self.longest)));
        }
        if let Some(byte) = invalid {
            return Err(line.error(valid.len(), format!("byte 0x{byte:02x} is not UTF-8 text")));
        }
        Ok(Some(line))
    }

    /// An error for a file that ends too early.
    pub(super) fn error_at_end(&self, why: &str) -> DataError {
        TextLine { text: "", path: self.path, number: self.number + 1 }.error(0, why.into())
    }
}

impl<'a> TextLine<'a> {
    /// An error at a byte of this line.
    pub(crate) fn error(&self, at: usize, why: String) -> DataError {
        let column = self.text[..at].chars().count() as u64 + 1;
        DataError::Malformed { path: self.path.into(), line: self.number, column, why }
    }

    /// The byte at which a part of this line begins.
    pub(super) fn position(&self, part: &str) -> usize {
        part.as_ptr() as usize - self.text.as_ptr() as usize
    }

    /// Parses the number in `part`, which is a part of this line.
    pub(super) fn number(&self, part: &'a str) -> Result<f64, DataError> {
        let why = match part.parse::<f64>() {
            Ok(value) if value.is_finite() => return Ok(value),
            Ok(_) if part.contains(|c: char| c.is_ascii_digit()) => format!("{} is too large for f64", quoted(part)),
            Ok(_) => format!("{} is not a finite number; remove or replace such rows", quoted(part)),
            Err(_) if part.is_empty() => "a number is missing here".into(),
            Err(_) => format!("{} is not a number", quoted(part)),
        };
        Err(self.error(self.position(part), why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8], longest: usize) -> Result<Vec<String>, String> {
        let mut lines = TextLines::new(bytes, Path::new("f"));
        lines.longest = longest;
        let mut out = Vec::new();
        while let Some(line) = lines.next().map_err(|e| e.to_string())? {
            out.push(line.text.to_string());
        }
        Ok(out)
    }

    #[test]
    fn a_line_ends_with_lf_or_crlf_or_the_end_of_the_file() {
        assert_eq!(all(b"a\r\n\nb", 9).unwrap(), ["a", "", "b"]);
        assert_eq!(all(b"\xEF\xBB\xBFa\n", 9).unwrap(), ["a"]);
        assert!(all(b"", 9).unwrap().is_empty());
    }

    #[test]
    fn a_line_that_is_too_long_is_an_error_before_all_of_it_is_read() {
        assert_eq!(all(b"ok\n12345\r\n123456\n", 5).unwrap_err(), "f:3:1: the line is longer than 5 bytes");
        assert_eq!(all(b"ok\n123456", 5).unwrap_err(), "f:2:1: the line is longer than 5 bytes");
    }

    #[test]
    fn the_position_of_a_byte_that_is_not_utf8_counts_characters() {
        assert_eq!(all("1\né\u{4e2d}\n".as_bytes(), 9).unwrap().len(), 2);
        assert_eq!(all(b"1\n\xC3\xA9,\xFF\n", 9).unwrap_err(), "f:2:3: byte 0xff is not UTF-8 text");
    }
}
