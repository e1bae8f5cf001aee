//! Standard input as a file, for readers that read more than once.

use std::{
    io::{self, ErrorKind, Read, Write},
    path::Path,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, sync_channel},
    },
    time::Duration,
};
use tempfile::NamedTempFile;

/// Bytes that are read at once.
const CHUNK: usize = 1 << 16;
/// The time after which a request to stop is noticed if no bytes come.
const NOTICED: Duration = Duration::from_millis(50);

/// A temporary file with all of standard input. It is removed when this value is dropped.
pub struct Spool(NamedTempFile);

impl Spool {
    /// Reads standard input to its end, or until `interrupt` is set: then the error has the kind `Interrupted`. The file is
    /// named `.jsonl` if the first character is a brace, otherwise `.csv`.
    pub fn of_input(interrupt: &AtomicBool) -> io::Result<Self> {
        let (sender, chunks) = sync_channel(1);
        // Nothing wakes a thread that waits for input, so this one does not wait.
        std::thread::spawn(move || {
            let mut input = io::stdin().lock();
            loop {
                let mut bytes = vec![0; CHUNK];
                let read = input.read(&mut bytes).map(|length| {
                    bytes.truncate(length);
                    bytes
                });
                let more = match &read {
                    Ok(bytes) => !bytes.is_empty(),
                    Err(failed) => failed.kind() == ErrorKind::Interrupted,
                };
                if sender.send(read).is_err() || !more {
                    break;
                }
            }
        });
        Self::of(&chunks, interrupt)
    }

    fn of(chunks: &Receiver<io::Result<Vec<u8>>>, interrupt: &AtomicBool) -> io::Result<Self> {
        let mut start = Vec::new();
        while text(&start).is_empty()
            && let Some(bytes) = next(chunks, interrupt)?
        {
            start.extend(bytes);
        }
        let suffix = if text(&start).starts_with(b"{") { ".jsonl" } else { ".csv" };
        let mut file = tempfile::Builder::new().prefix("strust-").suffix(suffix).tempfile()?;
        file.write_all(&start)?;
        while let Some(bytes) = next(chunks, interrupt)? {
            file.write_all(&bytes)?;
        }
        Ok(Self(file))
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// The bytes after a byte-order mark and blanks.
fn text(start: &[u8]) -> &[u8] {
    start.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(start).trim_ascii_start()
}

/// The next bytes; `None` at the end.
fn next(chunks: &Receiver<io::Result<Vec<u8>>>, interrupt: &AtomicBool) -> io::Result<Option<Vec<u8>>> {
    loop {
        if interrupt.load(Ordering::Relaxed) {
            return Err(ErrorKind::Interrupted.into());
        }
        match chunks.recv_timeout(NOTICED) {
            Ok(Ok(bytes)) => return Ok(Some(bytes)),
            Ok(Err(failed)) if failed.kind() == ErrorKind::Interrupted => {}
            Ok(Err(failed)) => return Err(failed),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_character_names_the_format_and_the_file_goes_with_the_value() {
        for (chunks, suffix) in
            [(&["\u{feff} \n", " {\"a\":1}", "\n"][..], "jsonl"), (&["a,b\n", "{,2\n"], "csv"), (&[], "csv")]
        {
            let (sender, received) = sync_channel(9);
            for chunk in chunks {
                sender.send(Ok(chunk.as_bytes().to_vec())).unwrap();
            }
            drop(sender);
            let spool = Spool::of(&received, &AtomicBool::new(false)).unwrap();
            assert_eq!(std::fs::read_to_string(spool.path()).unwrap(), chunks.concat());
            assert_eq!(spool.path().extension().unwrap(), suffix);
            let path = spool.path().to_path_buf();
            drop(spool);
            assert!(!path.exists());
        }
    }

    #[test]
    fn a_request_to_stop_ends_the_wait_for_input() {
        let (_sender, received) = sync_channel(1);
        let stopped = Spool::of(&received, &AtomicBool::new(true)).err().map(|why| why.kind());
        assert_eq!(stopped, Some(ErrorKind::Interrupted));
    }
}
