//! A stream of bytes with its position.

use super::DataError;
use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
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

/// A stream with a largest length: the memory must not depend on a small file that unpacks to a huge one.
pub(super) struct Bounded<R> {
    reader: R,
    left: u64,
    why: &'static str,
}

impl<R: BufRead> Bounded<R> {
    /// The stream may have `most` bytes. If it continues, `why` says what to do.
    pub(super) fn new(reader: R, most: u64, why: &'static str) -> Self {
        Self { reader, left: most, why }
    }
}

impl<R: BufRead> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut part = self.fill_buf()?;
        let read = part.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Bounded<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let part = self.reader.fill_buf()?;
        if self.left == 0 && !part.is_empty() {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, self.why));
        }
        Ok(&part[..part.len().min(usize::try_from(self.left).unwrap_or(usize::MAX))])
    }
    fn consume(&mut self, amount: usize) {
        self.left -= amount as u64;
        self.reader.consume(amount);
    }
}

/// A stream that ends with an error when a flag is set.
pub(super) struct Stopping<'a, R> {
    reader: R,
    stop: &'a AtomicBool,
}

impl<'a, R: BufRead> Stopping<'a, R> {
    pub(super) fn new(reader: R, stop: &'a AtomicBool) -> Self {
        Self { reader, stop }
    }
    fn check(&self) -> io::Result<()> {
        if self.stop.load(Ordering::Relaxed) { Err(io::Error::other("stopped")) } else { Ok(()) }
    }
}

impl<R: BufRead> Read for Stopping<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.check()?;
        self.reader.read(buffer)
    }
}

impl<R: BufRead> BufRead for Stopping<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.check()?;
        self.reader.fill_buf()
    }
    fn consume(&mut self, amount: usize) {
        self.reader.consume(amount);
    }
}

impl<R: BufRead + Skip> Skip for Stopping<'_, R> {
    fn skip(&mut self, bytes: u64) -> io::Result<u64> {
        self.check()?;
        self.reader.skip(bytes)
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
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(DataError::Io { path: self.path.into(), cause }),
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
        let skipped = self.reader.skip(bytes).map_err(|cause| DataError::Io { path: self.path.into(), cause })?;
        self.offset += skipped;
        Ok(skipped)
    }
}
