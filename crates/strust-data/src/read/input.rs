//! A stream of bytes with its position.

use super::DataError;
use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek},
    path::Path,
};

/// A stream that can skip bytes.
pub(crate) trait Skip: Read + Sized {
    /// Skips bytes. Returns how many: fewer at the end of the stream.
    fn skip(&mut self, bytes: u64) -> io::Result<u64> {
        io::copy(&mut self.by_ref().take(bytes), &mut io::sink())
    }
}

impl Skip for &[u8] {}
impl Skip for Box<dyn BufRead> {}
impl Skip for BufReader<File> {
    fn skip(&mut self, bytes: u64) -> io::Result<u64> {
        let left = self.get_ref().metadata()?.len().saturating_sub(self.stream_position()?);
        let bytes = bytes.min(left);
        self.seek_relative(bytes.cast_signed())?;
        Ok(bytes)
    }
}

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
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, DataError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.reader.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(DataError::io(self.path)(cause)),
            }
        }
        self.offset += filled as u64;
        Ok(filled)
    }
    pub(crate) fn exact(&mut self, buffer: &mut [u8]) -> Result<(), DataError> {
        if self.fill(buffer)? == buffer.len() {
            Ok(())
        } else {
            Err(self.error(self.offset, "the file ends within the header"))
        }
    }
    pub(crate) fn error(&self, offset: u64, why: impl Into<String>) -> DataError {
        DataError::Binary { path: self.path.into(), offset, why: why.into() }
    }
}

impl<R: Skip> Input<'_, R> {
    /// Skips bytes. Returns how many: fewer at the end of the stream.
    pub(crate) fn skip(&mut self, bytes: u64) -> Result<u64, DataError> {
        if bytes == 0 {
            return Ok(0);
        }
        let skipped = self.reader.skip(bytes).map_err(DataError::io(self.path))?;
        self.offset += skipped;
        Ok(skipped)
    }
}
