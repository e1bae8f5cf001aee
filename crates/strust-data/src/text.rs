//! Text for models of characters: any text file, or a text that is part of the crate.

use crate::{DataError, numerics::out_of_range, read::open_plain};
use std::{
    collections::BTreeSet,
    io::{self, Read},
    path::Path,
};
use strust::Error;

/// The documentation of this project in November 2026, as plain prose of 186 kB. It never changes, so that results can
/// be compared.
#[must_use]
pub fn built_in() -> &'static str {
    include_str!("../data/text.txt")
}

/// Reads a text file in UTF-8.
///
/// ```
/// let message = strust_data::text::read("nowhere.txt".as_ref()).unwrap_err().to_string();
/// assert!(message.starts_with("nowhere.txt: "));
/// ```
pub fn read(path: &Path) -> Result<String, DataError> {
    let mut text = String::new();
    let read = open_plain(path).and_then(|mut file| file.read_to_string(&mut text));
    read.map(|_| text).map_err(|cause| match cause.kind() {
        io::ErrorKind::InvalidData => DataError::file(path, "this is no text in UTF-8"),
        _ => DataError::io(path)(cause),
    })
}

/// A text as codes 0, 1, … of its characters.
///
/// ```
/// use strust_data::text::Characters;
/// let text = Characters::new("abba")?;
/// assert_eq!((text.codes(), text.alphabet()), (&[0, 1, 1, 0][..], &['a', 'b'][..]));
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Characters {
    codes: Vec<u32>,
    alphabet: Vec<char>,
}

impl Characters {
    /// Gives the characters of a text codes in increasing order. There must be two different ones.
    pub fn new(text: &str) -> Result<Self, Error> {
        let alphabet: Vec<char> = text.chars().collect::<BTreeSet<_>>().into_iter().collect();
        if alphabet.len() < 2 {
            return Err(out_of_range("text", "characters", alphabet.len(), "at least 2 different ones"));
        }
        let code = |c| alphabet.binary_search(&c).expect("every character is in the alphabet") as u32;
        Ok(Self { codes: text.chars().map(code).collect(), alphabet })
    }

    /// The code of each character of the text.
    #[must_use]
    pub fn codes(&self) -> &[u32] {
        &self.codes
    }
    /// The character of each code.
    #[must_use]
    pub fn alphabet(&self) -> &[char] {
        &self.alphabet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_decode_to_the_text() {
        let text = Characters::new("Übung macht den Meister").unwrap();
        let decoded: String = text.codes().iter().map(|&code| text.alphabet()[code as usize]).collect();
        assert_eq!(decoded, "Übung macht den Meister");
        for same in ["", "aaa"] {
            let message = Characters::new(same).unwrap_err().to_string();
            assert!(message.ends_with("but must be at least 2 different ones"), "{message}");
        }
    }

    #[test]
    fn the_built_in_text_is_frozen() {
        // FNV-1a.
        let sum = built_in()
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let text = Characters::new(built_in()).unwrap();
        assert_eq!((text.codes().len(), text.alphabet().len(), sum), (186_477, 92, 0xbf8c_8240_c0c3_5a15));
    }

    #[test]
    fn a_file_that_is_no_text_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.txt");
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(read(&path).unwrap_err().to_string().ends_with("this is no text in UTF-8"));
        std::fs::write(&path, "äb").unwrap();
        assert_eq!(read(&path).unwrap(), "äb");
    }
}
