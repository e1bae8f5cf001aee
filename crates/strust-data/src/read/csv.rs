//! CSV: numbers separated by commas, one row per line.
//!
//! The first line is a header if none of its fields is a number. Blank lines and lines that start with `#` are skipped,
//! and spaces around a field are removed. Quotes are not supported in data.

use super::{
    DataError,
    lines::{TextLine, TextLines, quoted},
};
use crate::{
    features::{Features, Labeled},
    words::nearest,
};
use faer::Mat;
use std::{io::BufRead, path::Path};

/// The most names of columns that a message lists.
const SHOWN_NAMES: usize = 20;

pub(super) fn read_matrix(reader: impl BufRead, path: &Path) -> Result<Mat<f64>, DataError> {
    let table = read(reader, path, None)?;
    Ok(Mat::from_fn(table.rows(), table.width, |i, j| table.row(i)[j]))
}

/// `label` is the name or the number of the label's column, from 1; if it is empty, the last column is the label.
pub(super) fn read_labeled(reader: impl BufRead, path: &Path, label: &str) -> Result<Labeled, DataError> {
    let table = read(reader, path, Some(label))?;
    let column = table.label;
    let entry = |i: usize, j: usize| table.row(i)[if j < column { j } else { j + 1 }];
    let features = Features::Dense(Mat::from_fn(table.rows(), table.width - 1, entry));
    Ok(Labeled { features, labels: (0..table.rows()).map(|i| table.row(i)[column]).collect() })
}

/// Numbers row by row.
struct CsvTable {
    width: usize,
    /// The column of the label; `width` for a matrix.
    label: usize,
    values: Vec<f64>,
}

impl CsvTable {
    fn rows(&self) -> usize {
        self.values.len() / self.width
    }
    fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.width..][..self.width]
    }
}

/// Reads a matrix, or with `label` a table with a label's column.
fn read(reader: impl BufRead, path: &Path, label: Option<&str>) -> Result<CsvTable, DataError> {
    let mut lines = TextLines::new(reader, path);
    let mut shape = None;
    let mut values = Vec::new();
    while let Some(line) = lines.next()? {
        let content = line.text.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        if let Some((width, label)) = shape {
            push_row(&mut values, line, width, label)?;
            continue;
        }
        let fields: Vec<&str> = line.text.split(',').map(str::trim).collect();
        let has_numbers = fields.iter().any(|field| field.parse::<f64>().is_ok());
        let column = match label {
            Some(label) => label_column(label, &fields, !has_numbers, line)?,
            None => fields.len(),
        };
        shape = Some((fields.len(), column));
        if has_numbers {
            push_row(&mut values, line, fields.len(), column)?;
        }
    }
    match shape {
        Some((width, label)) if !values.is_empty() => Ok(CsvTable { width, label, values }),
        _ => Err(lines.error_at_end("the file ends without a row of numbers")),
    }
}

/// The column of the label in the first line, which may be a header.
fn label_column(label: &str, fields: &[&str], is_header: bool, line: TextLine<'_>) -> Result<usize, DataError> {
    if fields.len() < 2 {
        let why = "only one column, but one column is the label: features or commas are missing";
        return Err(line.error(0, why.into()));
    }
    if label.is_empty() {
        return Ok(fields.len() - 1);
    }
    let names: Vec<&str> = fields.iter().map(|name| name.trim_matches('"')).collect();
    if let Some(column) = names.iter().position(|&name| is_header && name == label) {
        return Ok(column);
    }
    match label.parse::<usize>() {
        Ok(number) if (1..=fields.len()).contains(&number) => Ok(number - 1),
        _ if is_header => {
            let meant = match nearest(label, names.iter().copied()) {
                Some(name) => format!("; did you mean {}?", quoted(name)),
                None => ".".into(),
            };
            let shown: Vec<_> = names.iter().take(SHOWN_NAMES).map(|name| quoted(name)).collect();
            let more = if names.len() > SHOWN_NAMES { " …" } else { "" };
            let columns = shown.join(" ");
            Err(line.error(0, format!("no column is named {}{meant} The columns are {columns}{more}", quoted(label))))
        }
        _ => {
            let why = format!("without a header, the label's column is a number from 1 to {}", fields.len());
            Err(line.error(0, format!("{why}, not {}", quoted(label))))
        }
    }
}

fn push_row(values: &mut Vec<f64>, line: TextLine<'_>, width: usize, label: usize) -> Result<(), DataError> {
    let mut found = 0;
    for field in line.text.split(',') {
        if found == width {
            let why = format!("more than the {width} fields of the first row");
            return Err(line.error(line.position(field), why));
        }
        let field = field.trim();
        if found == label && field.parse::<f64>().is_err() && !field.is_empty() {
            let why = format!("the label {} is not a number: replace names of classes by whole numbers", quoted(field));
            return Err(line.error(line.position(field), why));
        }
        values.push(line.number(field)?);
        found += 1;
    }
    if found < width {
        let why = format!("the row ends after {found} of the {width} fields of the first row");
        return Err(line.error(line.text.len(), why));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fmt::Write;

    fn matrix(text: &str) -> Result<Mat<f64>, String> {
        read_matrix(text.as_bytes(), Path::new("f.csv")).map_err(|e| e.to_string())
    }

    #[test]
    fn a_file_with_every_allowed_feature_is_read() {
        let text = "# made by hand\r\n\r\n a , \"b\" \r\n 1 ,2.5e1\r\n  # between\r\n+.5,\t-3.\r\n \r\n";
        let expected = Mat::from_fn(2, 2, |i, j| [[1.0, 25.0], [0.5, -3.0]][i][j]);
        assert_eq!(matrix(text).unwrap(), expected);
        // A first line that contains a number is not a header, so its words are errors.
        assert_eq!(matrix("1,2").unwrap().nrows(), 1);
        assert_eq!(matrix("a,1\n2,3").unwrap_err(), "f.csv:1:1: \"a\" is not a number");
    }

    #[test]
    fn the_last_column_is_the_label() {
        let data = read_labeled("x,y,kind\n1,2,7\n3,4,8\n".as_bytes(), Path::new("f.csv"), "").unwrap();
        assert_eq!(data.labels, [7.0, 8.0]);
        assert_eq!(data.features, Features::Dense(Mat::from_fn(2, 2, |i, j| [[1.0, 2.0], [3.0, 4.0]][i][j])));
        let message = read_labeled("1\n2\n".as_bytes(), Path::new("f.csv"), "").unwrap_err().to_string();
        assert!(message.starts_with("f.csv:1:1: only one column"), "{message}");
    }

    #[test]
    fn the_label_is_a_column_by_name_or_by_number() {
        let read = |text: &str, label: &str| {
            read_labeled(text.as_bytes(), Path::new("f.csv"), label).map_err(|error| error.to_string())
        };
        let text = "width, \"quality\",2\n1,7,2\n3,8,4\n";
        let header = "width, \"quality\",size\n1,7,2\n3,8,4\n";
        for label in ["quality", "2"] {
            let data = read(header, label).unwrap();
            assert_eq!(data.labels, [7.0, 8.0]);
            assert_eq!(data.features, Features::Dense(Mat::from_fn(2, 2, |i, j| [[1.0, 2.0], [3.0, 4.0]][i][j])));
        }
        assert_eq!(read("1,7\n3,8\n", "1").unwrap().labels, [1.0, 3.0]);
        for (text, label, expected) in [
            (header, "qualty", "f.csv:1:1: no column is named \"qualty\"; did you mean \"quality\"? The columns are"),
            (header, "xyz", "f.csv:1:1: no column is named \"xyz\". The columns are \"width\" \"quality\" \"size\""),
            (header, "4", "f.csv:1:1: no column is named \"4\". The columns are"),
            ("1,7\n", "kind", "f.csv:1:1: without a header, the label's column is a number from 1 to 2, not \"kind\""),
            ("a,b\n1,yes\n", "b", "f.csv:2:3: the label \"yes\" is not a number: replace names of classes"),
            (text, "quality", "f.csv:1:1: without a header"),
        ] {
            let message = read(text, label).unwrap_err();
            assert!(message.starts_with(expected), "{message}");
        }
    }

    #[test]
    fn every_malformed_line_is_an_error_that_names_the_position() {
        for (text, expected) in [
            ("", "f.csv:1:1: the file ends without a row of numbers"),
            ("a,b\n", "f.csv:2:1: the file ends without a row of numbers"),
            ("1,2\n3\n", "f.csv:2:2: the row ends after 1 of the 2 fields of the first row"),
            ("a,b\n1,2,3\n", "f.csv:2:5: more than the 2 fields of the first row"),
            ("1,2\n3,\n", "f.csv:2:3: a number is missing here"),
            ("1,2\n\né,4\n", "f.csv:3:1: \"é\" is not a number"),
            ("1,2\né,x\n", "f.csv:2:1: \"é\" is not a number"),
            ("1,2\n 3 , 4x\n", "f.csv:2:6: \"4x\" is not a number"),
            ("1,2\n3,NaN\n", "f.csv:2:3: \"NaN\" is not a finite number; remove or replace such rows"),
            ("1,2\n-inf,3\n", "f.csv:2:1: \"-inf\" is not a finite number; remove or replace such rows"),
            ("1,2\n3,1e999\n", "f.csv:2:3: \"1e999\" is too large for f64"),
        ] {
            assert_eq!(matrix(text).unwrap_err(), expected);
        }
    }

    fn written(rows: &[Vec<f64>]) -> String {
        let mut text = String::from("first,second,third\n");
        for row in rows {
            writeln!(text, "{}", row.iter().map(|v| format!("{v:e}")).collect::<Vec<_>>().join(",")).unwrap();
        }
        text
    }

    fn rows() -> impl Strategy<Value = Vec<Vec<f64>>> {
        let number = any::<f64>().prop_filter("finite", |v| v.is_finite());
        prop::collection::vec(prop::collection::vec(number, 3), 1..8)
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read_matrix(&bytes[..], Path::new("f"));
            let _ = read_labeled(&bytes[..], Path::new("f"), "");
        }

        #[test]
        fn arbitrary_text_of_the_alphabet_never_panics(text in "[-+0-9.eE,# \r\n\tnaif\u{e9}]{0,120}") {
            let _ = read_matrix(text.as_bytes(), Path::new("f"));
            let _ = read_labeled(text.as_bytes(), Path::new("f"), "1");
        }

        #[test]
        fn a_mutated_file_never_panics(rows in rows(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut bytes = written(&rows).into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = read_matrix(&bytes[..], Path::new("f"));
        }

        #[test]
        fn written_numbers_are_read_bit_for_bit(rows in rows()) {
            let read = matrix(&written(&rows)).unwrap();
            prop_assert_eq!((read.nrows(), read.ncols()), (rows.len(), 3));
            for (i, row) in rows.iter().enumerate() {
                for (j, v) in row.iter().enumerate() {
                    prop_assert_eq!(v.to_bits(), read[(i, j)].to_bits());
                }
            }
        }
    }
}
