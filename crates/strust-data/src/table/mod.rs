//! Data files as columns: CSV, JSON lines, NPY, LIBSVM text and MNIST-like folders, also `.gz` and `.xz`, and several files as one.
//!
//! A column is numbers or words. Its kind and how its cells are written are inferred from all of its cells, and blank cells
//! are kept as such.

mod blocks;
mod cells;
mod columns;
mod csv;
mod date_parts;
mod dates;
mod files;
mod forms;
mod json;
mod other;
mod parsed;
mod unusable;

pub use dates::DateOrder;
pub use files::data_files;
pub use forms::{CellForm, NumberMarks};

use crate::{
    DataError,
    features::Csr,
    ranks::{NEVER, Ranks},
    read::{Format, open_plain},
    words::nearest,
};
use md5::{Digest, Md5};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt::Write as _,
    io::Read,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};
use strust::ranks::{Alone, Group, RowShare};

/// The code of a blank cell in a column of words.
pub const BLANK: u32 = u32::MAX;

/// The cells of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Cells {
    /// Numbers; NaN is a blank cell.
    Numbers(Vec<f64>),
    /// Words: the position of each cell's word in `words`, or [`BLANK`].
    Words {
        /// One code for each row.
        codes: Vec<u32>,
        /// The different words, in the order of their first occurrence.
        words: Vec<String>,
    },
    /// Texts of which almost every one differs. They are not kept.
    Texts,
}

/// What the cells of a column hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellKind {
    /// Numbers that are written in this form.
    Number(CellForm),
    /// Words.
    Word,
    /// Any texts, as they are in the file: none of them is blank, and they may all differ.
    Text,
}

/// A column with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedColumn {
    /// The name in the header, or `column1`, `column2`, … without one.
    pub name: String,
    /// The cells.
    pub cells: Cells,
    /// How its numbers are written in the file.
    pub form: CellForm,
}

/// The contents of a data file, or the share of its rows that a rank has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DataTable {
    /// The file, or the pattern that several files match.
    pub path: PathBuf,
    /// The number of rows in memory.
    pub rows: usize,
    /// The number of rows of the file.
    pub all_rows: usize,
    /// Which of them are in memory; by default all.
    pub share: RowShare,
    /// The columns that were kept, in the order of the file.
    pub columns: Vec<NamedColumn>,
    /// The names of all columns of the file, also of those that were left out.
    pub order: Vec<String>,
    /// Sparse features beside the columns: LIBSVM text and images. They have numbers from 1 instead of names.
    pub sparse: Option<Csr>,
    /// MD5 of the file as it is on the disk; of several files or a folder, of the files in order.
    pub fingerprint: String,
    /// What a person should know about how the columns were read.
    pub notes: Vec<String>,
}

/// How to read a file.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// The target, by its name or its number from 1. If it occurs in the first line, the line is a header. If it is no column
    /// of the file, nothing else is read.
    pub target: Option<String>,
    /// Whether a file of columns is refused without a target.
    pub needs_target: bool,
    /// Columns to leave out.
    pub drop: Vec<String>,
    /// Columns of numbers that are codes, such as postal codes: read them as words.
    pub categories: Vec<String>,
    /// Whether every cell must hold a number.
    pub only_numbers: bool,
    /// The rules of experiments: without a target the last column is it, and messages name no options of `strust fit`.
    pub experiment: bool,
    /// The columns of a model. All others are left out.
    pub expected: Option<ExpectedColumns>,
}

/// The columns that a model needs.
#[derive(Debug, Clone, Default)]
pub struct ExpectedColumns {
    /// What each column holds.
    pub kinds: BTreeMap<String, CellKind>,
    /// All columns of the file that the model was made from, in order. They name the columns of a file without a header.
    pub order: Vec<String>,
}

/// Reports the bytes read so far, and asks whether to stop.
pub struct ReadProgress<'a> {
    /// Called with the number of bytes of the file that were read.
    pub at: &'a mut dyn FnMut(u64),
    /// Set to stop.
    pub interrupt: &'a AtomicBool,
}

impl ReadProgress<'_> {
    fn check(&mut self, bytes: u64) -> Result<(), DataError> {
        (self.at)(bytes);
        if self.interrupt.load(Ordering::Relaxed) { Err(DataError::Interrupted) } else { Ok(()) }
    }
}

impl DataTable {
    /// Reads a file, a folder, or all files that match a pattern such as `data/part-*.csv` ([`data_files`]).
    ///
    /// | name | contents |
    /// |---|---|
    /// | `.csv`, `.tsv` | columns with a header or without one, separated by commas, semicolons or tabs |
    /// | `.jsonl`, `.ndjson` | one JSON object per line; its keys are the columns |
    /// | `.npy` | a matrix; the columns are `column1`, `column2`, … |
    /// | a folder | MNIST's files; the target is `label` |
    /// | other names | LIBSVM text; the target is `label` |
    ///
    /// `.gz` and `.xz` may follow each name. Several files must have the same columns; their rows follow each other in the
    /// order of the names.
    pub fn read(path: &Path, options: &ReadOptions, progress: &mut ReadProgress<'_>) -> Result<Self, DataError> {
        Self::read_on(path, options, progress, &mut Alone)
    }

    /// The same on the ranks of a group: each keeps only its share of the rows ([`RowShare`]), but the kinds of the columns,
    /// their words and all errors are those of the whole file. If one rank cannot read its file, or reads another one, all
    /// ranks fail.
    pub fn read_on(
        path: &Path,
        options: &ReadOptions,
        progress: &mut ReadProgress<'_>,
        group: &mut dyn Group,
    ) -> Result<Self, DataError> {
        let ranks = &Ranks::new(group, progress.interrupt);
        let files = ranks.agree(data_files(path))?;
        let table = if path.is_dir() {
            ranks.agree(other::images(path, other::ImagePart::Train, ranks.share()))?
        } else {
            read_files(&files, options, progress, ranks)?
        };
        let same = (table.all_rows, &table.order);
        ranks.same(&same, "has a file with other columns or another number of rows than rank 0")?;
        let fingerprints = ranks.all(&table.fingerprint)?;
        let is_other = |&rank: &usize| !fingerprints[rank].is_empty() && fingerprints[rank] != fingerprints[0];
        let others: Vec<usize> = (0..fingerprints.len()).filter(is_other).collect();
        if !others.is_empty() {
            let why = "has a file with other contents than rank 0".into();
            return Err(strust::Error::Ranks { ranks: others, why }.into());
        }
        let fingerprint = fingerprints.into_iter().next().unwrap_or_default();
        Ok(Self { path: path.into(), fingerprint, ..table })
    }

    /// The columns of one file of texts, without a fingerprint.
    pub(crate) fn read_columns(path: &Path, options: &ReadOptions) -> Result<Self, DataError> {
        let progress = &mut ReadProgress { at: &mut |_| (), interrupt: &NEVER };
        let mut alone = Alone;
        let ranks = &Ranks::new(&mut alone, &NEVER);
        match Format::of(path) {
            Some(Format::JsonLines) => json::read(&[path.into()], options, progress, ranks),
            _ => csv::read(&[path.into()], options, progress, ranks),
        }
    }

    /// The test images of a folder, if `path` is one. Each rank of the group keeps only its share.
    pub fn read_own_test(path: &Path, group: &mut dyn Group) -> Result<Option<Self>, DataError> {
        let ranks = Ranks::new(group, &NEVER);
        let test = || other::images(path, other::ImagePart::Test, ranks.share()).map(Some);
        ranks.agree(if path.is_dir() { test() } else { Ok(None) })
    }

    /// The column of this name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&NamedColumn> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The columns by their names.
    #[must_use]
    pub fn by_name(&self) -> HashMap<&str, &NamedColumn> {
        self.columns.iter().map(|column| (column.name.as_str(), column)).collect()
    }

    /// An error if the file does not have a column that an option names.
    pub fn check_columns(&self, option: &str, wanted: &[String]) -> Result<(), DataError> {
        check_columns(&self.path, &self.order, option, wanted)
    }

    /// The columns of another file with the same contents, such as held-out rows.
    #[must_use]
    pub fn expected(&self) -> ExpectedColumns {
        let kind = |column: &NamedColumn| match column.cells {
            Cells::Numbers(_) => (column.name.clone(), CellKind::Number(column.form)),
            _ => (column.name.clone(), CellKind::Word),
        };
        ExpectedColumns { kinds: self.columns.iter().map(kind).collect(), order: self.order.clone() }
    }

    /// The name of the target column. A number is the position of the column, from 1, if no column has it as its name.
    pub fn target_name(&self, wanted: Option<&str>) -> Result<String, DataError> {
        let Some(wanted) = wanted else {
            if self.sparse.is_some() {
                return Ok(other::LABEL.into());
            }
            return Err(without_target(&self.order));
        };
        let name = target_among(&self.order, wanted, &self.path)?;
        if self.column(name).is_some() { Ok(name.into()) } else { Err(dropped_target(name)) }
    }
}

/// An error that names the first column of an option that a file does not have.
fn check_columns(path: &Path, names: &[String], option: &str, wanted: &[String]) -> Result<(), DataError> {
    let known: HashSet<&String> = names.iter().collect();
    let Some(missing) = wanted.iter().find(|column| !known.contains(column)) else { return Ok(()) };
    let hint = nearest(missing, names.iter().map(String::as_str));
    let hint = hint.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
    Err(DataError::file(path, format!("there is no column `{missing}` for {option}{hint}")))
}

/// The name of the target, given by its name or its number from 1.
fn target_among<'a>(names: &'a [String], wanted: &str, path: &Path) -> Result<&'a str, DataError> {
    let at = wanted.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let found = names.iter().find(|name| *name == wanted).or_else(|| names.get(at?));
    found.map(String::as_str).ok_or_else(|| {
        let hint = match nearest(wanted, names.iter().map(String::as_str)) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("the columns are {}", listed(names)),
        };
        DataError::file(path, format!("there is no column `{wanted}`; {hint}"))
    })
}

fn without_target(names: &[String]) -> DataError {
    DataError::Option(format!("name the column to predict with --target; the columns are {}", listed(names)))
}

fn dropped_target(name: &str) -> DataError {
    DataError::Option(format!("`{name}` is the column to predict, so it cannot be left out with --drop"))
}

/// The rows of some files, with MD5 of the files. The checksum has a thread of its own: it takes a good part of the time of a
/// large file.
fn read_files(
    files: &[PathBuf],
    options: &ReadOptions,
    progress: &mut ReadProgress<'_>,
    ranks: &Ranks<'_>,
) -> Result<DataTable, DataError> {
    let (interrupt, share) = (progress.interrupt, ranks.share());
    let format = Format::of(&files[0]);
    // Of an array, a rank reads its own rows only.
    let hashes = share.rank == 0 || format != Some(Format::Npy);
    std::thread::scope(|scope| {
        let of_files = move || if hashes { fingerprint(files, interrupt) } else { Ok(String::new()) };
        let fingerprint = scope.spawn(of_files);
        let table = match format {
            Some(Format::Csv) => csv::read(files, options, progress, ranks),
            Some(Format::JsonLines) => json::read(files, options, progress, ranks),
            Some(Format::Npy) => ranks.agree(other::npy(files, share, interrupt)),
            _ => ranks.agree(other::libsvm(files, share, interrupt)).and_then(|table| other::widened(table, ranks)),
        };
        let fingerprint = fingerprint.join().unwrap_or(Err(DataError::Interrupted));
        let table = table?;
        Ok(DataTable { fingerprint: ranks.agree(fingerprint)?, ..table })
    })
}

/// Names for a message, at most ten of them.
#[must_use]
pub fn listed<S: AsRef<str>>(names: &[S]) -> String {
    const SHOWN: usize = 10;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{}`", name.as_ref())).collect();
    let more = names.len().saturating_sub(SHOWN);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    shown.join(", ") + &rest
}

/// MD5 of some files.
fn fingerprint(paths: &[impl AsRef<Path>], interrupt: &AtomicBool) -> Result<String, DataError> {
    let (mut hash, mut buffer) = (Md5::new(), vec![0; 1 << 18]);
    for path in paths {
        let path = path.as_ref();
        let mut file = open_plain(path).map_err(DataError::io(path))?;
        loop {
            let read = match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(cause) => return Err(DataError::io(path)(cause)),
            };
            hash.update(&buffer[..read]);
            if interrupt.load(Ordering::Relaxed) {
                return Err(DataError::Interrupted);
            }
        }
    }
    let mut text = String::new();
    for byte in hash.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
