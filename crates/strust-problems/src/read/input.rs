//! A stream of bytes with its position.

use super::ReadError;
use std::{io::Read, path::Path};

pub(crate) struct Input<'a, R> {
    pub(crate) reader: R,
    pub(crate) path: &'a Path,
    pub(crate) offset: u64,
}

impl<'a, R: Read> Input<'a, R> {
    pub(crate) fn new(reader: R, path: &'a Path) -> Self {
        Self { reader, path, offset: 0 }
    }
    /// Reads until `buffer` is full or the stream ends. Returns the number of bytes.
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.reader.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(ReadError::Io { path: self.path.into(), cause }),
            }
        }
        self.offset += filled as u64;
        Ok(filled)
    }
    pub(crate) fn exact(&mut self, buffer: &mut [u8]) -> Result<(), ReadError> {
        if self.fill(buffer)? == buffer.len() {
            Ok(())
        } else {
            Err(self.error(self.offset, "the file ends within the header"))
        }
    }
    pub(crate) fn error(&self, offset: u64, why: impl Into<String>) -> ReadError {
        ReadError::Binary { path: self.path.into(), offset, why: why.into() }
    }
}
