//! Command lines, quoted for a shell.

use super::paths;
use serde::{Deserialize, Serialize};
use std::{
    ffi::{OsStr, OsString},
    fmt,
};

/// A command line that a shell reads as these words, so that it can be pasted. One from a file may have been edited: its
/// words are quoted again, so that no character of it means anything to the shell.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "String")]
pub struct CommandLine(String);

impl CommandLine {
    /// The command line of these words.
    pub fn new<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Self {
        Self(words.into_iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" "))
    }

    /// Its words.
    #[must_use]
    pub fn words(&self) -> Vec<OsString> {
        words(&self.0)
    }
}

impl From<String> for CommandLine {
    fn from(text: String) -> Self {
        Self::new(words(&text))
    }
}

impl From<&str> for CommandLine {
    fn from(text: &str) -> Self {
        Self::new(words(text))
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A word as a shell reads it.
fn quoted(word: &OsStr) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@%+".contains(c);
    match word.to_str() {
        Some(word) if !word.is_empty() && word.chars().all(plain) => word.into(),
        Some(word) if !word.chars().any(char::is_control) => format!("'{}'", word.replace('\'', r"'\''")),
        // Bytes that are not text, and control characters, in the form of bash and zsh.
        _ => {
            let escaped = |byte: u8| format!("\\x{byte:02x}");
            let mut shown = String::from("$'");
            for chunk in word.as_encoded_bytes().utf8_chunks() {
                for c in chunk.valid().chars() {
                    match c {
                        '\'' | '\\' => shown.extend(['\\', c]),
                        c if c.is_control() => {
                            c.encode_utf8(&mut [0; 4]).bytes().for_each(|b| shown += &escaped(b));
                        }
                        c => shown.push(c),
                    }
                }
                chunk.invalid().iter().for_each(|&b| shown += &escaped(b));
            }
            shown + "'"
        }
    }
}

/// The words of a text that [`quoted`] made. All other characters stand for themselves, and a text with a quote that does
/// not end is one word.
fn words(text: &str) -> Vec<OsString> {
    let word = |bytes: &Vec<u8>| paths::from_bytes(bytes).into_os_string();
    split(text).map_or_else(|| vec![text.into()], |words| words.iter().map(word).collect())
}

/// The bytes of the words; `None` if a quote does not end.
fn split(text: &str) -> Option<Vec<Vec<u8>>> {
    let (mut words, mut current) = (Vec::new(), None::<Vec<u8>>);
    let push = |word: &mut Vec<u8>, c: char| word.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c.is_whitespace() {
            words.extend(current.take());
            continue;
        }
        let word = current.get_or_insert_default();
        match c {
            '$' if chars.next_if_eq(&'\'').is_some() => loop {
                match chars.next()? {
                    '\'' => break,
                    '\\' if chars.next_if_eq(&'x').is_some() => {
                        let digits: String = chars.by_ref().take(2).collect();
                        word.push(u8::from_str_radix(&digits, 16).ok()?);
                    }
                    '\\' => push(word, chars.next()?),
                    c => push(word, c),
                }
            },
            '\'' => loop {
                match chars.next()? {
                    '\'' => break,
                    c => push(word, c),
                }
            },
            '\\' => push(word, chars.next()?),
            c => push(word, c),
        }
    }
    words.extend(current);
    Some(words)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_quoted_word_is_what_a_shell_reads() {
        assert_eq!(quoted(OsStr::new("runs/a-2")), "runs/a-2");
        assert_eq!(quoted(OsStr::new("it's")), r"'it'\''s'");
        assert_eq!(quoted(OsStr::new("a\u{1b}[31mé'")), r"$'a\x1b[31mé\''");
        assert_eq!(quoted(OsStr::new("")), "''");
        assert_eq!(quoted(&paths::from_bytes(b"bad\xff").into_os_string()), r"$'bad\xff'");
    }

    #[test]
    fn a_command_line_from_a_file_means_nothing_else_to_a_shell() {
        let read = |text: &str| CommandLine::from(text).to_string();
        assert_eq!(read("strust run 'my file.toml' --out=a"), "strust run 'my file.toml' --out=a");
        assert_eq!(read("strust run a.toml; rm -rf ~\nb"), "strust run 'a.toml;' rm -rf '~' b");
        assert_eq!(read("strust run `x` $(y) \"z\" a\\'b >c"), r#"strust run '`x`' '$(y)' '"z"' 'a'\''b' '>c'"#);
        assert_eq!(read("strust run 'a; b"), r"'strust run '\''a; b'");
        assert_eq!(serde_json::from_str::<CommandLine>("\"a;b\"").unwrap().to_string(), "'a;b'");
    }

    proptest! {
        #[test]
        fn a_command_line_is_read_back_as_its_words(words in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..12), 0..6)) {
            let words: Vec<OsString> = words.iter().map(|word| paths::from_bytes(word).into_os_string()).collect();
            let line = CommandLine::new(&words);
            prop_assert_eq!(line.words(), words);
            prop_assert_eq!(CommandLine::from(line.to_string()), line);
        }
    }
}
