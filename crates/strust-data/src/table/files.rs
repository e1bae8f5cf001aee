//! The files that a name stands for.

use crate::{DataError, read::Format};
use std::{
    fs::Metadata,
    path::{Path, PathBuf},
};

/// The files that a name stands for: itself, or all files that match a pattern such as `data/part-*.csv`, sorted by name.
///
/// In a pattern, `*` stands for any characters but `/`, `?` for one, `[ab]` for one of some, and `**` for any folders. A file
/// whose name contains such a character is itself.
///
/// ```
/// use strust_data::table::data_files;
/// # let folder = std::env::temp_dir().join(format!("strust-files-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// for name in ["part-2.csv", "part-1.csv", "notes.txt"] {
///     std::fs::write(folder.join(name), "x,y\n1,2\n")?;
/// }
/// let files = data_files(&folder.join("part-*.csv"))?;
/// assert_eq!(files, [folder.join("part-1.csv"), folder.join("part-2.csv")]);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn data_files(path: &Path) -> Result<Vec<PathBuf>, DataError> {
    let missing = match std::fs::metadata(path) {
        Ok(about) if about.is_dir() => return Ok(vec![path.into()]),
        Ok(about) => return check_plain(path, &about).map(|()| vec![path.into()]),
        Err(cause) => DataError::io(path)(cause),
    };
    let Some(pattern) = path.to_str().filter(|text| text.contains(['*', '?', '['])) else { return Err(missing) };
    let matches = glob::glob(pattern).map_err(|wrong| {
        DataError::file(path, format!("the pattern is wrong at character {}: {}", wrong.pos + 1, wrong.msg))
    })?;
    let mut files = Vec::new();
    for found in matches {
        let file = found.map_err(|unread| DataError::Io { path: unread.path().into(), cause: unread.into() })?;
        let about = std::fs::metadata(&file).map_err(DataError::io(&file))?;
        if !about.is_dir() {
            check_plain(&file, &about)?;
            files.push(file);
        }
    }
    files.sort();
    let Some(first) = files.first() else {
        return Err(DataError::file(path, "no file matches the pattern; check the folder and the extension"));
    };
    if let Some(other) = files.iter().find(|file| Format::of(file) != Format::of(first)) {
        let why =
            format!("the pattern matches files of different formats, {} and {}", first.display(), other.display());
        return Err(DataError::file(path, why));
    }
    Ok(files)
}

/// A file is read more than once, so the rows cannot come from a pipe.
fn check_plain(path: &Path, about: &Metadata) -> Result<(), DataError> {
    if about.is_file() {
        return Ok(());
    }
    Err(DataError::file(path, "this is not a file: save the rows to a file first, or use - for standard input"))
}
