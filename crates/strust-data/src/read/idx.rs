//! idx: the format of MNIST. Two zeros, the type, the number of dimensions, each dimension as a big-endian `u32`, and
//! the numbers. The reader does not trust the header: it allocates memory as data arrives.

use super::{DataError, input::Input, open};
use std::{io::Read, path::Path};

/// An array of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idx {
    /// Its dimensions, each at least 1.
    pub shape: Vec<usize>,
    /// Its entries; the last index varies fastest.
    pub bytes: Vec<u8>,
}

/// Reads an idx file of bytes, plain, `.gz` or `.xz`.
///
/// ```
/// use strust_data::read::read_idx;
/// # let path = std::env::temp_dir().join(format!("strust-idx-{}", std::process::id()));
/// std::fs::write(&path, [0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 3, 7, 8, 9])?;
/// let array = read_idx(&path)?;
/// assert_eq!((&array.shape[..], &array.bytes[..]), (&[1, 3][..], &[7, 8, 9][..]));
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_idx(path: impl AsRef<Path>) -> Result<Idx, DataError> {
    let path = path.as_ref();
    read(open(path)?, path)
}

fn read(reader: impl Read, path: &Path) -> Result<Idx, DataError> {
    let mut input = Input::new(reader, path);
    let mut start = [0; 4];
    input.exact(&mut start)?;
    let dimensions = match start {
        [0, 0, 8, 0] => return Err(input.error(3, "an array without dimensions")),
        [0, 0, 8, dimensions] => dimensions,
        [0, 0, 9 | 11..=14, _] => {
            let why = format!("numbers of type 0x{:02x}; only bytes (0x08) are supported", start[2]);
            return Err(input.error(2, why));
        }
        _ => return Err(input.error(0, "this is not an idx file: it does not start with two zeros and a type")),
    };
    let mut shape = Vec::new();
    for _ in 0..dimensions {
        let mut size = [0; 4];
        input.exact(&mut size)?;
        shape.push(u32::from_be_bytes(size) as usize);
    }
    let begin = input.offset;
    let entries = match shape.iter().try_fold(1_usize, |product, &size| product.checked_mul(size)) {
        None => return Err(input.error(4, format!("the shape {shape:?} is too large for the memory"))),
        Some(0) => return Err(input.error(4, format!("the shape {shape:?} has no entries"))),
        Some(entries) => entries,
    };
    let mut bytes = Vec::new();
    // One byte more, to detect a file that is too long.
    input.reader.take((entries as u64).saturating_add(1)).read_to_end(&mut bytes).map_err(DataError::io(path))?;
    let error =
        |why| Err(DataError::Binary { path: path.into(), offset: begin + bytes.len().min(entries) as u64, why });
    match bytes.len() {
        found if found < entries => {
            error(format!("the file ends after {found} of the {entries} entries of its shape {shape:?}"))
        }
        found if found > entries => {
            error(format!("the file continues after the {entries} entries of its shape {shape:?}"))
        }
        _ => Ok(Idx { shape, bytes }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(bytes: &[u8]) -> Result<Idx, String> {
        read(bytes, Path::new("f")).map_err(|e| e.to_string())
    }

    fn file(shape: &[u32], bytes: &[u8]) -> Vec<u8> {
        let sizes = shape.iter().flat_map(|size| size.to_be_bytes());
        [0, 0, 8, shape.len() as u8].into_iter().chain(sizes).chain(bytes.iter().copied()).collect()
    }

    #[test]
    fn every_malformed_file_is_an_error_that_names_the_byte() {
        let max = u32::MAX;
        for (bytes, expected) in [
            (vec![], "f: at byte 0: the file ends within the header"),
            (file(&[2, 2], &[])[..9].to_vec(), "f: at byte 9: the file ends within the header"),
            (
                b"\x1f\x8b\x08\x00".to_vec(),
                "f: at byte 0: this is not an idx file: it does not start with two zeros and a type",
            ),
            (vec![0, 0, 10, 1], "f: at byte 0: this is not an idx file: it does not start with two zeros and a type"),
            (vec![0, 0, 13, 1], "f: at byte 2: numbers of type 0x0d; only bytes (0x08) are supported"),
            (vec![0, 0, 8, 0], "f: at byte 3: an array without dimensions"),
            (file(&[3, 0], &[]), "f: at byte 4: the shape [3, 0] has no entries"),
            (
                file(&[max, max, max], &[]),
                "f: at byte 4: the shape [4294967295, 4294967295, 4294967295] is too large for the memory",
            ),
            (
                file(&[max, max], &[1; 5]),
                "f: at byte 17: the file ends after 5 of the 18446744065119617025 entries of its shape [4294967295, 4294967295]",
            ),
            (file(&[2, 2], &[1; 3]), "f: at byte 15: the file ends after 3 of the 4 entries of its shape [2, 2]"),
            (file(&[2, 2], &[1; 5]), "f: at byte 16: the file continues after the 4 entries of its shape [2, 2]"),
        ] {
            assert_eq!(parsed(&bytes).unwrap_err(), expected);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..60), dimensions in any::<u8>()) {
            let _ = parsed(&bytes);
            let _ = parsed(&[&[0, 0, 8, dimensions], &bytes[..]].concat());
        }

        #[test]
        fn any_shape_never_panics(shape in prop::collection::vec(any::<u32>(), 1..5)) {
            let _ = parsed(&file(&shape, &[0; 64]));
        }

        #[test]
        fn what_is_written_is_read(shape in prop::collection::vec(1..6_u32, 1..5), seed in any::<u8>()) {
            let entries: u32 = shape.iter().product();
            let bytes: Vec<u8> = (0..entries).map(|i| seed.wrapping_add(i as u8)).collect();
            let array = parsed(&file(&shape, &bytes)).unwrap();
            prop_assert_eq!(array.shape, shape.iter().map(|&size| size as usize).collect::<Vec<_>>());
            prop_assert_eq!(array.bytes, bytes);
        }

        #[test]
        fn a_mutated_file_never_panics(at in any::<prop::sample::Index>(), byte in any::<u8>(), keep in any::<prop::sample::Index>()) {
            let mut bytes = file(&[2, 3, 4], &[5; 24]);
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = parsed(&bytes);
            let _ = parsed(&bytes[..keep.index(bytes.len())]);
        }
    }
}
