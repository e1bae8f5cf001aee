//! A text file in blocks that end with a whole record, so that blocks can be parsed in parallel.

use super::cells::{BrokenRecord, record};
use crate::{DataError, read};
use std::{
    io::{BufRead, Read},
    path::Path,
};

/// The longest record. A longer one is not data: a quote is not closed.
const LONGEST: usize = 64 << 20;

/// Bytes that are read at once at least.
const LEAST: usize = 1 << 16;

/// Whole records.
pub(super) struct TextBlock {
    pub(super) bytes: Vec<u8>,
    /// The line of the first byte, from 1.
    pub(super) line: u64,
}

pub(super) struct TextBlocks<'a> {
    reader: Box<dyn BufRead>,
    path: &'a Path,
    /// Bytes after the last whole record.
    rest: Vec<u8>,
    line: u64,
    separator: u8,
    done: bool,
    /// Bytes that were searched for the end of a record.
    #[cfg(test)]
    searched: std::cell::Cell<u64>,
}

impl<'a> TextBlocks<'a> {
    pub(super) fn open(path: &'a Path, separator: u8) -> Result<Self, DataError> {
        Ok(Self {
            reader: read::open(path)?,
            path,
            rest: Vec::new(),
            line: 1,
            separator,
            done: false,
            #[cfg(test)]
            searched: std::cell::Cell::default(),
        })
    }

    /// Bytes that were searched for the end of a record so far.
    #[cfg(test)]
    pub(super) fn searched(&self) -> u64 {
        self.searched.get()
    }

    /// Records of about `size` bytes; `None` at the end of the file.
    pub(super) fn next(&mut self, size: usize) -> Result<Option<TextBlock>, DataError> {
        let mut bytes = std::mem::take(&mut self.rest);
        let mut size = size;
        loop {
            self.fill(&mut bytes, size)?;
            // A record that does not end is read again from its start, so each time with twice the bytes: the time of all
            // of these readings together is linear.
            size = 2 * bytes.len();
            if self.line == 1 && bytes.starts_with(b"\xEF\xBB\xBF") {
                // The byte order mark that spreadsheets write.
                bytes.drain(..3);
            }
            if bytes.is_empty() {
                return Ok(None);
            }
            let end = if self.done { bytes.len() } else { self.last_end(&bytes)? };
            if end > 0 {
                self.rest = bytes[end..].to_vec();
                bytes.truncate(end);
                let block = TextBlock { line: self.line, bytes };
                self.line += line_breaks(&block.bytes);
                return Ok(Some(block));
            }
            if bytes.len() > LONGEST {
                let why = format!("a row is longer than {LONGEST} bytes: is a quote missing?");
                return Err(DataError::line(self.path, self.line, why));
            }
        }
    }

    fn fill(&mut self, bytes: &mut Vec<u8>, size: usize) -> Result<(), DataError> {
        let missing = size.saturating_sub(bytes.len()).max(LEAST) as u64;
        let read = self.reader.by_ref().take(missing).read_to_end(bytes).map_err(DataError::io(self.path))?;
        self.done = (read as u64) < missing;
        Ok(())
    }

    /// The end of the last whole record; 0 if there is none.
    fn last_end(&self, bytes: &[u8]) -> Result<usize, DataError> {
        #[cfg(test)]
        self.searched.update(|searched| searched + bytes.len() as u64);
        if !bytes.contains(&b'"') {
            return Ok(bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1));
        }
        let (mut at, mut cells) = (0, Vec::new());
        loop {
            match record(bytes, at, self.separator, &mut cells) {
                Ok(end) if end > at && bytes[end - 1] == b'\n' => at = end,
                Err(BrokenRecord::AfterQuote) => {
                    let line = self.line + line_breaks(&bytes[..at]);
                    return Err(after_quote(self.path, line));
                }
                // The last record may go on.
                Ok(_) | Err(BrokenRecord::Unclosed) => return Ok(at),
            }
        }
    }
}

/// The number of line breaks.
#[allow(clippy::naive_bytecount, reason = "the compiler makes SIMD code of it")]
pub(super) fn line_breaks(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

pub(super) fn after_quote(path: &Path, line: u64) -> DataError {
    let why = "text follows a closing quote: write a quote inside a field in quotes twice (\"\")";
    DataError::line(path, line, why)
}
