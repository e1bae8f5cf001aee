//! Reads CIFAR-10 in its binary form: records of a label and 3072 pixels, in six files or in an archive of these files.

use super::{ImageSet, Images, exists};
use crate::{
    DataError,
    read::{
        input::{Input, Skip},
        open,
    },
};
use md5::{Digest, Md5};
use std::{
    io::{self, Read},
    path::{Path, PathBuf},
};

const CLASSES: [&str; 10] = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];
const SHAPE: [usize; 3] = [3, 32, 32];
const RECORD: usize = 1 + 3 * 32 * 32;
/// Records in an official file.
const RECORDS: usize = 10_000;
/// The index of the test set. The five files before it are the training set.
const TEST: usize = 5;
/// The six files and their MD5 checksums.
const FILES: [(&str, u128); 6] = [
    ("data_batch_1.bin", 0x5dd7_e06a_14cb_22eb_9f67_1a54_0d1b_7c25),
    ("data_batch_2.bin", 0x5ea9_3a67_294e_a407_fff1_d09f_752e_9692),
    ("data_batch_3.bin", 0x942c_d6a4_bcdd_0dd3_c604_fbe9_06cb_4421),
    ("data_batch_4.bin", 0xae63_6b3b_a5c6_6a11_e91e_8cb5_2e77_1fcb),
    ("data_batch_5.bin", 0x53f3_7980_c15c_3d47_2c31_6c40_844f_3f0d),
    ("test_batch.bin", 0x803d_5f7f_4d78_ea53_de84_dbe8_5f74_fb6d),
];
const ARCHIVE: &str = "cifar-10-binary.tar.gz";
const SUBFOLDER: &str = "cifar-10-batches-bin";

/// Whether files must be the official ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksums {
    /// All six files, each with 10,000 records and the published MD5.
    Official,
    /// Other images in the same format: whole records, at least one per file. Of the training files only the first is
    /// required.
    Unchecked,
}

/// Reads CIFAR-10 in its binary form.
///
/// `path` is one of these:
///
/// - a folder with `data_batch_1.bin` to `data_batch_5.bin` and `test_batch.bin`;
/// - a folder with a folder `cifar-10-batches-bin` of these files;
/// - a folder with `cifar-10-binary.tar.gz`;
/// - such an archive.
///
/// `strust data cifar10 --to FOLDER` downloads the archive.
///
/// ```
/// use strust_data::images::{Checksums, cifar10};
/// # let folder = std::env::temp_dir().join(format!("strust-cifar-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// let record = vec![6; 1 + 3 * 32 * 32]; // a dark frog
/// std::fs::write(folder.join("data_batch_1.bin"), &record)?;
/// std::fs::write(folder.join("test_batch.bin"), &record)?;
/// let frogs = cifar10(&folder, Checksums::Unchecked)?;
/// assert_eq!(frogs.classes[usize::from(frogs.train.labels[0])], "frog");
///
/// let message = cifar10(&folder, Checksums::Official).unwrap_err().to_string();
/// assert!(message.contains("data_batch_1.bin: 3073 bytes, but the official file has 30730000"));
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn cifar10(path: &Path, checksums: Checksums) -> Result<ImageSet, DataError> {
    let mut parts = Parts::new(checksums);
    if !exists(path)? {
        return Err(unusable(checksums, path, "there is no such file or folder"));
    }
    if path.is_file() {
        parts.read_archive(path)?;
    } else {
        let (subfolder, archive) = (path.join(SUBFOLDER), path.join(ARCHIVE));
        if has_files(path)? {
            parts.read_folder(path)?;
        } else if has_files(&subfolder)? {
            parts.read_folder(&subfolder)?;
        } else if exists(&archive)? {
            parts.read_archive(&archive)?;
        } else {
            return Err(unusable(checksums, path, &format!("neither {} nor {ARCHIVE} is in this folder", FILES[0].0)));
        }
    }
    let last = (0..TEST).rfind(|&k| parts.counts[k] > 0).unwrap_or(0);
    if let Some(k) = (0..last).find(|&k| parts.counts[k] == 0) {
        let why = format!("{} is missing, though {} is there", FILES[k].0, FILES[last].0);
        return Err(unusable(checksums, path, &why));
    }
    Ok(parts.set)
}

fn has_files(folder: &Path) -> Result<bool, DataError> {
    FILES.iter().try_fold(false, |any, (name, _)| Ok(any || exists(&folder.join(name))?))
}

/// The images read so far.
struct Parts {
    set: ImageSet,
    checksums: Checksums,
    /// The number of images in each file.
    counts: [usize; FILES.len()],
}

impl Parts {
    fn new(checksums: Checksums) -> Self {
        let room = |images| if checksums == Checksums::Official { images } else { 0 };
        let images = |count| Images {
            pixels: Vec::with_capacity(room(count) * (RECORD - 1)),
            labels: Vec::with_capacity(room(count)),
            shape: SHAPE,
        };
        let set = ImageSet {
            train: images(TEST * RECORDS),
            test: images(RECORDS),
            classes: CLASSES.map(String::from).to_vec(),
        };
        Self { set, checksums, counts: [0; FILES.len()] }
    }

    fn read_folder(&mut self, folder: &Path) -> Result<(), DataError> {
        for (k, (name, _)) in FILES.iter().enumerate() {
            let path = folder.join(name);
            if exists(&path)? {
                self.read_file(k, open(&path)?, &path)?;
            } else if self.needs(k) {
                return Err(unusable(self.checksums, &path, "there is no such file"));
            }
        }
        Ok(())
    }

    /// Reads a tar archive. Its files may have any order, and other files are skipped.
    fn read_archive(&mut self, path: &Path) -> Result<(), DataError> {
        let (mut input, mut header, mut long_name) = (Input::new(open(path)?, path), [0; 512], None);
        loop {
            let begin = input.offset;
            let filled = input.fill(&mut header)?;
            if filled == 0 || header == [0; 512] {
                break;
            }
            if filled < header.len() {
                return Err(input.error(input.offset, TRUNCATED));
            }
            // The sum of all bytes, with blanks in place of the sum.
            let sum = header[..148].iter().chain(&[b' '; 8]).chain(&header[156..]).map(|&byte| u64::from(byte)).sum();
            if octal(&header[148..156]) != Some(sum) {
                return Err(input.error(begin, "this is not a tar archive, or it is damaged: copy the file again"));
            }
            let Some(size) = octal(&header[124..136]) else {
                return Err(input.error(begin + 124, "the size of a file in the archive is not an octal number"));
            };
            let mut body = (&mut input.reader).take(size);
            if matches!(header[156], b'L' | b'x') {
                // The name of the next file is too long for its header: a name, or lines such as `20 path=NAME`.
                let mut text = Vec::new();
                (&mut body).take(1 << 16).read_to_end(&mut text).map_err(DataError::io(path))?;
                let named = |line: &&[u8]| header[156] == b'L' || line.windows(6).any(|part| part == b" path=");
                long_name = text.split(|&byte| matches!(byte, b'\n' | 0)).find(named).map(<[u8]>::to_vec);
            } else {
                let name = long_name.take().unwrap_or_else(|| header[..100].to_vec());
                let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
                let name = name.rsplit(|byte| matches!(byte, b'/' | b'=')).next();
                let wanted = FILES.iter().position(|(file, _)| Some(file.as_bytes()) == name);
                if let (Some(k), b'0' | 0) = (wanted, header[156]) {
                    let place: PathBuf = path.join(FILES[k].0);
                    if self.counts[k] > 0 {
                        return Err(DataError::file(&place, "it is in the archive twice"));
                    }
                    self.read_file(k, &mut body, &place)?;
                }
            }
            // Files are filled up to blocks.
            let read = size - body.limit();
            let rest = size.next_multiple_of(512) - read;
            let skipped = input.reader.skip(rest).map_err(DataError::io(path))?;
            input.offset += read + skipped;
            if skipped < rest {
                return Err(input.error(input.offset, TRUNCATED));
            }
        }
        // The checksum of the compressed data is at the end, so read all of it.
        io::copy(&mut input.reader, &mut io::sink()).map_err(DataError::io(path))?;
        match (0..FILES.len()).find(|&k| self.counts[k] == 0 && self.needs(k)) {
            Some(k) => Err(unusable(self.checksums, path, &format!("{} is not in this archive", FILES[k].0))),
            None => Ok(()),
        }
    }

    /// Reads the records of file k and inserts them in the order of the file names.
    fn read_file(&mut self, k: usize, reader: impl Read, path: &Path) -> Result<(), DataError> {
        let checksums = self.checksums;
        let official = checksums == Checksums::Official;
        let images = if k == TEST { &mut self.set.test } else { &mut self.set.train };
        let (mut input, mut digest, mut record) = (Input::new(reader, path), Md5::new(), [0; RECORD]);
        let before = images.len();
        let rest = loop {
            let begin = input.offset;
            let filled = input.fill(&mut record)?;
            let count = images.len() - before;
            if filled < RECORD || (official && count == RECORDS) {
                break filled;
            }
            if usize::from(record[0]) >= CLASSES.len() {
                let why = format!("label {} of record {count} (from 0); expected 0 to 9", record[0]);
                return Err(input.error(begin, why));
            }
            if official {
                digest.update(record);
            }
            images.labels.push(record[0]);
            images.pixels.extend_from_slice(&record[1..]);
        };
        let (count, bytes) = (images.len() - before, input.offset);
        let wrong = |why: String| Err(unusable(checksums, path, &why));
        if official && (count, rest) != (RECORDS, 0) {
            let least = if count == RECORDS { "at least " } else { "" };
            return wrong(format!("{least}{bytes} bytes, but the official file has {}", RECORDS * RECORD));
        }
        if count == 0 || rest > 0 {
            return wrong(format!(
                "{bytes} bytes, but the size must be a positive multiple of {RECORD} bytes (one record)"
            ));
        }
        let md5 = u128::from_be_bytes(digest.finalize().into());
        if official && md5 != FILES[k].1 {
            let why = format!("its MD5 is {md5:032x}, but that of the official file is {:032x}", FILES[k].1);
            return wrong(why);
        }
        self.counts[k] = count;
        if k < TEST {
            // An archive may have its files in any order.
            let place: usize = self.counts[..k].iter().sum();
            images.labels[place..].rotate_right(count);
            images.pixels[place * (RECORD - 1)..].rotate_right(count * (RECORD - 1));
        }
        Ok(())
    }

    fn needs(&self, k: usize) -> bool {
        self.checksums == Checksums::Official || k == 0 || k == TEST
    }
}

/// Files are missing or wrong, and how to fix that.
fn unusable(checksums: Checksums, path: &Path, what: &str) -> DataError {
    let fix = match checksums {
        Checksums::Official => "Get it again: `strust data cifar10 --to FOLDER` downloads the official archive",
        Checksums::Unchecked => {
            "Expected are data_batch_1.bin and test_batch.bin with records of a label and 3072 pixels"
        }
    };
    DataError::file(path, format!("{what}. {fix}"))
}

const TRUNCATED: &str = "the archive is truncated: copy the file again";

/// A number in the header of a tar archive.
fn octal(field: &[u8]) -> Option<u64> {
    let text = str::from_utf8(field.split(|&byte| byte == 0).next()?).ok()?;
    u64::from_str_radix(text.trim_matches(' '), 8).ok()
}
