//! Readers for data files: NPY, idx and LIBSVM text, each plain, gzipped (`.gz`) or compressed with xz (`.xz`).
//!
//! The extension of the file name determines the format, in upper or lower case: see [`Format`]. [`read_idx`] reads idx,
//! the format of MNIST. Its files have no extension. CSV files and JSON lines are read as a `table`.
//!
//! Files are streamed: the numbers are kept in memory, the text is not. A file that is malformed or truncated, or that
//! contains NaN or infinity, gives a [`DataError`] with the position.

use crate::{DataError, features::Labeled, ranks::NEVER};
use faer::Mat;
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use std::{
    io::{self, BufRead, BufReader, Read},
    path::Path,
    sync::atomic::AtomicBool,
};
use strust::ranks::RowShare;

mod idx;
pub(crate) mod input;
mod libsvm;
pub(crate) mod lines;
mod npy;
mod plain;

pub use idx::{Idx, read_idx};
pub use plain::open_plain;

/// The largest XZ dictionary. `xz -9` needs 64 MiB, but a damaged header may ask for 4 GiB.
const XZ_MEMORY_KIB: u32 = 1 << 20;

/// The most bytes that a compressed file may unpack to: this number, or so many times its own length.
const MOST_UNPACKED: u64 = 64 << 20;
const MOST_TIMES: u64 = 100;
const UNPACKS_TOO_LONG: &str =
    "the file unpacks to more than 100 times its length: if you trust it, unpack it first and use the unpacked file";
/// The same for the numbers of an array, each of which becomes 8 bytes.
const MOST_NUMBERS: u64 = 1 << 25;
const MOST_NUMBERS_TIMES: u64 = 32;

/// Opens a file. The extensions `.gz` and `.xz` select decompression; any other file is read unchanged.
///
/// Only regular files are read ([`open_plain`]). A compressed file may unpack to 64 MiB, or to 100 times its own length.
///
/// ```
/// use std::io::Read;
/// use strust_data::read::open;
/// # let path = std::env::temp_dir().join(format!("strust-open-{}.txt", std::process::id()));
/// std::fs::write(&path, "plain text")?;
/// let mut text = String::new();
/// open(&path)?.read_to_string(&mut text)?;
/// assert_eq!(text, "plain text");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn open(path: impl AsRef<Path>) -> Result<Box<dyn BufRead>, DataError> {
    let path = path.as_ref();
    let file = open_plain(path).map_err(DataError::io(path))?;
    let length = file.metadata().map_err(DataError::io(path))?.len();
    let most = length.saturating_mul(MOST_TIMES).max(MOST_UNPACKED);
    Ok(decompress(Box::new(BufReader::new(file)), Compression::of(path), most))
}

/// The most numbers that an array may announce. In a plain file they are limited by its length.
fn most_numbers(path: &Path) -> Result<usize, DataError> {
    let about = std::fs::metadata(path).map_err(DataError::io(path))?;
    if Compression::of(path) == Compression::None {
        return Ok(usize::MAX);
    }
    let most = about.len().saturating_mul(MOST_NUMBERS_TIMES).max(MOST_NUMBERS);
    Ok(usize::try_from(most).unwrap_or(usize::MAX))
}

/// Reads the rows of a share from an NPY file, and the number of all its rows. A file that is not compressed is read only
/// where these rows are. If `stop` is set meanwhile, the reading ends with an error.
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use strust::ranks::RowShare;
/// use strust_data::read::read_npy_rows;
/// # let path = std::env::temp_dir().join(format!("strust-rows-{}.npy", std::process::id()));
/// let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (5, 1), }\n";
/// std::fs::write(&path, [b"\x93NUMPY\x01\x00", &[header.len() as u8, 0][..], header.as_bytes(), &[0, 1, 2, 3, 4]].concat())?;
/// let (matrix, rows) = read_npy_rows(&path, RowShare { rank: 1, size: 2 }, &AtomicBool::new(false))?;
/// assert_eq!((matrix.nrows(), matrix[(1, 0)], rows), (2, 3.0, 5));
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_npy_rows(
    path: impl AsRef<Path>,
    share: RowShare,
    stop: &AtomicBool,
) -> Result<(Mat<f64>, usize), DataError> {
    let path = path.as_ref();
    let most = most_numbers(path)?;
    if share.is_all() || Compression::of(path) != Compression::None {
        return npy::read(open(path)?, path, share, most, stop);
    }
    npy::read(BufReader::new(open_plain(path).map_err(DataError::io(path))?), path, share, most, stop)
}

/// Reads the rows of a share from LIBSVM text, and the number of all its rows. The other rows are counted, not checked, and
/// the number of columns is that of the rows of the share. If `stop` is set meanwhile, the reading ends with an error.
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use strust::ranks::RowShare;
/// use strust_data::read::read_libsvm_rows;
/// # let path = std::env::temp_dir().join(format!("strust-rows-{}.svm", std::process::id()));
/// std::fs::write(&path, "+1 1:0.5 3:2\n-1 2:1\n+1 1:3\n")?;
/// let (data, rows) = read_libsvm_rows(&path, RowShare { rank: 1, size: 2 }, &AtomicBool::new(false))?;
/// assert_eq!((data.labels, data.features.columns(), rows), (vec![-1.0], 2, 3));
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_libsvm_rows(
    path: impl AsRef<Path>,
    share: RowShare,
    stop: &AtomicBool,
) -> Result<(Labeled, usize), DataError> {
    let path = path.as_ref();
    match Format::of(path) {
        Some(Format::Libsvm) => libsvm::read(open(path)?, path, share, stop),
        _ => Err(unknown_ending(path)),
    }
}

pub(crate) fn unknown_ending(path: &Path) -> DataError {
    let understood = ".csv, .jsonl, .npy and, for LIBSVM text, .libsvm, .svm, .txt, .tr, .t and no extension";
    DataError::Ending { path: path.into(), understood }
}

/// A gzipped array that is part of the program. `name` is used in messages.
pub(crate) fn built_in_npy_gz(bytes: &'static [u8], name: &str) -> Result<Mat<f64>, DataError> {
    let unpacked = decompress(Box::new(bytes), Compression::Gzip, u64::MAX);
    Ok(npy::read(unpacked, Path::new(name), RowShare::default(), usize::MAX, &NEVER)?.0)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compression {
    None,
    Gzip,
    Xz,
}

impl Compression {
    fn of(path: &Path) -> Self {
        match ending(path).as_deref() {
            Some("gz") => Self::Gzip,
            Some("xz") => Self::Xz,
            _ => Self::None,
        }
    }
}

/// The format of a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A NumPy array: `.npy`.
    Npy,
    /// Columns of numbers and words: `.csv`, `.tsv`.
    Csv,
    /// One JSON object per line: `.jsonl`, `.ndjson`.
    JsonLines,
    /// LIBSVM text: `.libsvm`, `.svm`, `.txt`, `.tr`, `.t`, or no extension.
    Libsvm,
}

impl Format {
    /// The format of a file by the extension of its name, without that of a compression; `None` if it is unknown.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let stem = path.with_extension("");
        let inner = if Compression::of(path) == Compression::None { path } else { &stem };
        match ending(inner).as_deref() {
            Some("npy") => Some(Self::Npy),
            Some("csv" | "tsv") => Some(Self::Csv),
            Some("jsonl" | "ndjson") => Some(Self::JsonLines),
            Some("libsvm" | "svm" | "txt" | "tr" | "t") | None => Some(Self::Libsvm),
            Some(_) => None,
        }
    }
}

fn ending(path: &Path) -> Option<String> {
    path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase())
}

/// The bytes of a stream. Compressed ones may unpack to `most`.
fn decompress(source: Box<dyn BufRead>, compression: Compression, most: u64) -> Box<dyn BufRead> {
    let (inner, format): (Box<dyn Read>, _) = match compression {
        Compression::None => return source,
        Compression::Gzip => (Box::new(MultiGzDecoder::new(source)), "gzip"),
        Compression::Xz => (Box::new(XzReader::new_mem_limit(source, true, XZ_MEMORY_KIB)), "xz"),
    };
    Box::new(BufReader::new(Decompressed { inner, format, left: most }))
}

/// Replaces the error messages of decompressors, such as "corrupt deflate stream", by clear ones, and limits the length: the
/// memory must not depend on a small file that unpacks to a huge one.
struct Decompressed {
    inner: Box<dyn Read>,
    format: &'static str,
    left: u64,
}

impl Read for Decompressed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        // At the limit, one more byte shows that the data continue.
        let part = if self.left == 0 { &mut [0][..] } else { &mut buffer[..room] };
        let read = self.inner.read(part).map_err(|cause| match cause.kind() {
            // Reading the file failed; its contents are not the reason.
            _ if cause.raw_os_error().is_some() => cause,
            io::ErrorKind::Interrupted => cause,
            io::ErrorKind::OutOfMemory => {
                let limit = XZ_MEMORY_KIB >> 10;
                let why = format!("the {} data needs more than {limit} MiB to decompress, or is damaged", self.format);
                io::Error::new(io::ErrorKind::OutOfMemory, why)
            }
            kind => {
                let why = format!("the {} data is truncated or damaged ({cause}); copy the file again", self.format);
                io::Error::new(kind, why)
            }
        })?;
        match self.left.checked_sub(read as u64) {
            Some(left) => self.left = left,
            None => return Err(io::Error::new(io::ErrorKind::FileTooLarge, UNPACKS_TOO_LONG)),
        }
        Ok(read)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::{Cursor, Write};

    pub(crate) const TEXT: &str = "+1 1:0.5 3:2.25\n-1 2:1e-3\n# the end\n+1 1:-7 2:3 3:4\n";

    pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap()
    }

    pub(crate) fn xz(bytes: &[u8]) -> Vec<u8> {
        let mut writer = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap()
    }

    fn unpacked(bytes: Vec<u8>, compression: Compression) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        decompress(Box::new(Cursor::new(bytes)), compression, u64::MAX).read_to_end(&mut out).map(|_| out)
    }

    type Pack = fn(&[u8]) -> Vec<u8>;

    fn packings() -> [(Compression, Pack); 2] {
        [(Compression::Gzip, gzip), (Compression::Xz, xz)]
    }

    #[test]
    fn the_extension_determines_the_format() {
        for (name, expected) in [
            ("a.npy", Some(Format::Npy)),
            ("a.NPY.GZ", Some(Format::Npy)),
            ("dir.csv/a.b.csv.xz", Some(Format::Csv)),
            ("a.jsonl", Some(Format::JsonLines)),
            ("a.ndjson.gz", Some(Format::JsonLines)),
            ("a9a", Some(Format::Libsvm)),
            ("a9a.xz", Some(Format::Libsvm)),
            ("ijcnn1.tr.xz", Some(Format::Libsvm)),
            ("a.t", Some(Format::Libsvm)),
            ("a.tar.gz", None),
            ("a.parquet", None),
        ] {
            assert_eq!(Format::of(Path::new(name)), expected, "{name}");
        }
    }

    #[test]
    fn concatenated_compressed_streams_are_read_in_order() {
        for (compression, pack) in packings() {
            let mut bytes = pack(b"first ");
            bytes.extend(pack(b"second"));
            assert_eq!(unpacked(bytes, compression).unwrap(), b"first second");
        }
    }

    #[test]
    fn every_truncated_compressed_file_is_an_error_that_reports_it() {
        let folder = tempfile::tempdir().unwrap();
        for (compression, pack) in packings() {
            let bytes = pack(TEXT.as_bytes());
            for end in 0..bytes.len() {
                let message = unpacked(bytes[..end].to_vec(), compression).unwrap_err().to_string();
                assert!(message.contains("truncated or damaged"), "{compression:?} cut at {end}: {message}");
            }
            let path = folder.path().join(if compression == Compression::Gzip { "a.gz" } else { "a.xz" });
            std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
            let message = read_libsvm_rows(&path, RowShare::default(), &NEVER).unwrap_err().to_string();
            assert!(message.starts_with(path.to_str().unwrap()) && message.contains("truncated"), "{message}");
        }
    }

    proptest! {
        #[test]
        fn decompressing_arbitrary_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for (compression, _) in packings() {
                let _ = unpacked(bytes.clone(), compression);
            }
        }

        #[test]
        fn a_damaged_compressed_file_is_an_error_or_unchanged(at in any::<prop::sample::Index>(), bits in 1..=255_u8) {
            for (compression, pack) in packings() {
                let mut bytes = pack(TEXT.as_bytes());
                let at = at.index(bytes.len());
                bytes[at] ^= bits;
                // Some bytes of a gzip header (time, operating system) have no effect.
                if let Ok(out) = unpacked(bytes, compression) {
                    prop_assert_eq!(out, TEXT.as_bytes());
                }
            }
        }

        #[test]
        fn compressed_bytes_come_back(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            for (compression, pack) in packings() {
                prop_assert_eq!(unpacked(pack(&bytes), compression).unwrap(), bytes.clone());
            }
        }
    }
}
