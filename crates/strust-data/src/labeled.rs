//! Matrices and labeled rows from data files, for experiments.
//!
//! | extension | format | [`read_matrix`] | [`read_labeled`] |
//! |---|---|---|---|
//! | `.npy` | NumPy array | yes | yes, the last column is the label |
//! | `.csv`, `.tsv`, `.jsonl` | a [table](crate::table) | if all cells are numbers | yes, the last column is the label |
//! | `.libsvm` `.svm` `.txt` `.tr` `.t`, or none | LIBSVM text | | yes |
//!
//! A table becomes features by the [transform](crate::transform) of `strust fit`, without its scaling: first the numbers, in
//! which a blank cell is the mean of its column, then one feature for each category of the words.
//!
//! ```
//! use strust_data::read_labeled;
//!
//! let path = std::env::temp_dir().join(format!("strust-doc-{}.csv", std::process::id()));
//! std::fs::write(&path, "width,color,kind\n1.0,red,no\n3.0,blue,yes\n,red,yes\n")?;
//! let data = read_labeled(&path)?;
//! let rows = data.features.to_dense();
//! // width, color = blue, color = red
//! assert_eq!((0..3).map(|j| rows[(2, j)]).collect::<Vec<_>>(), [2.0, 0.0, 1.0]);
//! assert_eq!(data.labels, [0.0, 1.0, 1.0]);
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::{
    DataError,
    features::{Features, Labeled},
    ranks::NEVER,
    read::{Format, read_libsvm_rows, read_npy_rows, unknown_ending},
    table::{BLANK, Cells, DataTable, ReadOptions},
    transform::Encoder,
    words::quoted,
};
use faer::Mat;
use std::path::Path;
use strust::ranks::RowShare;

/// Reads a matrix from an NPY or CSV file. Rows stay rows.
///
/// A one-dimensional array becomes one column. Whole numbers become `f64`; beyond 2⁵³ they are rounded.
///
/// ```
/// use strust_data::read_matrix;
/// # let path = std::env::temp_dir().join(format!("strust-matrix-{}.csv", std::process::id()));
/// std::fs::write(&path, "# x, y\n1, 2\n3, 4\n5, 6\n")?;
/// let matrix = read_matrix(&path)?;
/// assert_eq!((matrix.nrows(), matrix.ncols(), matrix[(2, 0)]), (3, 2, 5.0));
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_matrix(path: impl AsRef<Path>) -> Result<Mat<f64>, DataError> {
    let path = path.as_ref();
    match Format::of(path) {
        Some(Format::Npy) => Ok(read_npy_rows(path, RowShare::default(), &NEVER)?.0),
        Some(Format::Csv | Format::JsonLines) => {
            let options = ReadOptions { only_numbers: true, ..ReadOptions::default() };
            let table = DataTable::read_columns(path, &options)?;
            Encoder::unscaled(&table, &[0], &[])?.matrix(&table)
        }
        _ => Err(DataError::Ending { path: path.into(), understood: ".npy, .csv and .jsonl" }),
    }
}

/// Reads features and labels from a CSV or NPY file whose last column is the label, or from LIBSVM text `label
/// index:value …` with indices from 1.
///
/// ```
/// use strust_data::{Features, read_labeled};
/// # let path = std::env::temp_dir().join(format!("strust-labeled-{}.svm", std::process::id()));
/// std::fs::write(&path, "+1 1:0.5 3:2\n-1 2:1 # a comment\n")?;
/// let data = read_labeled(&path)?;
/// let Features::Sparse(matrix) = &data.features else { panic!("LIBSVM text is sparse") };
/// assert_eq!(matrix.row(0), (&[0, 2][..], &[0.5, 2.0][..]));
/// assert_eq!(data.labels, [1.0, -1.0]);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_labeled(path: impl AsRef<Path>) -> Result<Labeled, DataError> {
    read_labeled_by(path, "")
}

/// The same, with the label in the column with this name or number, from 1. A CSV file has names if it has a header. An
/// empty name is the last column. LIBSVM text has no columns: its label comes first.
///
/// Words become the classes 0, 1, … in the order of their names. A row without a label is left out.
///
/// ```
/// use strust_data::read_labeled_by;
/// # let path = std::env::temp_dir().join(format!("strust-labeled-by-{}.csv", std::process::id()));
/// std::fs::write(&path, "kind,width,height\n0,1.0,2.0\n1,3.0,4.0\n")?;
/// assert_eq!(read_labeled_by(&path, "kind")?.labels, [0.0, 1.0]);
/// assert_eq!(read_labeled_by(&path, "2")?.labels, [1.0, 3.0]);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_labeled_by(path: impl AsRef<Path>, label: &str) -> Result<Labeled, DataError> {
    read(path.as_ref(), label, true)
}

/// The same for a regression: the labels must be numbers.
pub fn read_numbers_by(path: impl AsRef<Path>, label: &str) -> Result<Labeled, DataError> {
    read(path.as_ref(), label, false)
}

fn read(path: &Path, label: &str, classes: bool) -> Result<Labeled, DataError> {
    match Format::of(path) {
        Some(Format::Csv | Format::JsonLines) => table_labeled(path, label, classes),
        Some(Format::Npy) => npy_labeled(path, label),
        Some(Format::Libsvm) if label.is_empty() => Ok(read_libsvm_rows(path, RowShare::default(), &NEVER)?.0),
        Some(Format::Libsvm) => {
            Err(DataError::file(path, "LIBSVM text has its label first, so no column can be the label"))
        }
        None => Err(unknown_ending(path)),
    }
}

/// A table with a column of labels.
fn table_labeled(path: &Path, label: &str, classes: bool) -> Result<Labeled, DataError> {
    let target = Some(label.to_string()).filter(|label| !label.is_empty());
    let table = DataTable::read_columns(path, &ReadOptions { target, experiment: true, ..ReadOptions::default() })?;
    if table.order.len() < 2 {
        let why = "only one column, but one column is the label: features or commas are missing";
        return Err(DataError::file(path, why));
    }
    let last = table.order.len().to_string();
    let name = table.target_name(Some(if label.is_empty() { &last } else { label }))?;
    let labels = match table.column(&name).map(|column| &column.cells) {
        Some(Cells::Numbers(values)) => values.clone(),
        Some(Cells::Words { codes, words }) if classes => class_numbers(codes, words),
        Some(Cells::Words { .. }) => {
            return Err(DataError::file(path, format!("column `{name}` holds words: a regression needs numbers")));
        }
        _ => return Err(DataError::file(path, format!("column `{name}` holds too many different texts for classes"))),
    };
    let texts = table.columns.iter().find(|column| column.cells == Cells::Texts);
    if let Some(column) = texts {
        let why = format!("column `{}` holds too many different texts for categories: remove it", column.name);
        return Err(DataError::file(path, why));
    }
    let rows: Vec<usize> = (0..table.rows).filter(|&i| !labels[i].is_nan()).collect();
    if rows.is_empty() {
        return Err(DataError::file(path, format!("column `{name}` is blank in every row")));
    }
    let features = Features::Dense(Encoder::unscaled(&table, &rows, &[name])?.matrix(&table)?);
    let features = if rows.len() < table.rows { features.only(&rows) } else { features };
    Ok(Labeled { features, labels: rows.iter().map(|&i| labels[i]).collect() })
}

/// The number of the class of each row, in the order of the names; NaN for a blank cell.
fn class_numbers(codes: &[u32], words: &[String]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..words.len()).collect();
    order.sort_by_key(|&code| &words[code]);
    let mut classes = vec![0.0; words.len()];
    order.iter().enumerate().for_each(|(class, &code)| classes[code] = class as f64);
    codes.iter().map(|&code| if code == BLANK { f64::NAN } else { classes[code as usize] }).collect()
}

/// An array with a column of labels.
fn npy_labeled(path: &Path, label: &str) -> Result<Labeled, DataError> {
    let (matrix, _) = read_npy_rows(path, RowShare::default(), &NEVER)?;
    let columns = matrix.ncols();
    let number = if label.is_empty() { Some(columns) } else { label.parse().ok() };
    let Some(column) = number.filter(|number| columns > 1 && (1..=columns).contains(number)) else {
        let why = if columns > 1 {
            format!("the label's column is a number from 1 to {columns} here, not {}", quoted(label))
        } else {
            "only one column, but one column is the label: features are missing".into()
        };
        return Err(DataError::file(path, why));
    };
    let labels = matrix.col_as_slice(column - 1).to_vec();
    let entry = |i: usize, j: usize| matrix[(i, if j < column - 1 { j } else { j + 1 })];
    let features = Features::Dense(Mat::from_fn(matrix.nrows(), columns - 1, entry));
    Ok(Labeled { features, labels })
}

#[cfg(test)]
mod tests;
