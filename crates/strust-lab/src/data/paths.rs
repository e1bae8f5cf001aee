//! Paths as text. A path need not be text, but plans and parameters are.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

/// The first of 256 characters for private use that stand for the bytes of a path that are not UTF-8.
const FIRST: u32 = 0x10_ff00;

/// The byte that a character stands for.
fn byte_of(c: char) -> Option<u8> {
    u32::from(c).checked_sub(FIRST).and_then(|byte| u8::try_from(byte).ok())
}

/// A path as text, from which [`path_of`] makes the same path. A path in UTF-8 is itself.
pub(crate) fn text_of(path: &Path) -> String {
    let escaped =
        |bytes: &[u8]| -> String { bytes.iter().filter_map(|&b| char::from_u32(FIRST + u32::from(b))).collect() };
    let mut text = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match byte_of(c) {
                None => text.push(c),
                // Such a character stands for itself, byte by byte.
                Some(_) => text.push_str(&escaped(c.encode_utf8(&mut [0; 4]).as_bytes())),
            }
        }
        text.push_str(&escaped(chunk.invalid()));
    }
    text
}

/// The path of a text.
pub(crate) fn path_of(text: &str) -> PathBuf {
    if !text.chars().any(|c| byte_of(c).is_some()) {
        return PathBuf::from(text);
    }
    let mut bytes = Vec::new();
    for c in text.chars() {
        match byte_of(c) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    from_bytes(&bytes)
}

/// The path of these bytes.
#[cfg(unix)]
pub(super) fn from_bytes(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    OsStr::from_bytes(bytes).into()
}

#[cfg(not(unix))]
pub(super) fn from_bytes(bytes: &[u8]) -> PathBuf {
    OsStr::new(&*String::from_utf8_lossy(bytes)).into()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_the_path_of_its_text_and_plain_paths_are_their_text() {
        for bytes in
            [&b"/a/b.csv"[..], b"", b"/a\xff/\xc3\xa9/\xf4\x8f\xbe", b"\xf4\x8f\xbe\x80", "é/\u{10ff80}".as_bytes()]
        {
            let path = from_bytes(bytes);
            assert_eq!(path_of(&text_of(&path)), path);
        }
        assert_eq!(text_of(Path::new("/é/a b.csv")), "/é/a b.csv");
        assert_eq!(path_of("/é/a b.csv"), Path::new("/é/a b.csv"));
    }
}
