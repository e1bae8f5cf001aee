//! CSV: numbers separated by commas, one row per line.
//!
//! The first line is a header if none of its fields is a number. Blank lines and lines that start with `#` are skipped,
//! and spaces around a field are removed. Quotes are not supported in data.

use super::{
    ReadError,
    lines::{TextLine, TextLines},
};
use crate::features::{Features, Labeled};
use faer::Mat;
use std::{io::BufRead, path::Path};

pub(super) fn read_matrix(reader: impl BufRead, path: &Path) -> Result<Mat<f64>, ReadError> {
    let table = read(reader, path, 1)?;
    Ok(Mat::from_fn(table.rows(), table.width, |i, j| table.row(i)[j]))
}

pub(super) fn read_labeled(reader: impl BufRead, path: &Path) -> Result<Labeled, ReadError> {
    let table = read(reader, path, 2)?;
    let d = table.width - 1;
    let features = Features::Dense(Mat::from_fn(table.rows(), d, |i, j| table.row(i)[j]));
    Ok(Labeled { features, labels: (0..table.rows()).map(|i| table.row(i)[d]).collect() })
}

/// Numbers row by row.
struct CsvTable {
    width: usize,
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

fn read(reader: impl BufRead, path: &Path, narrowest: usize) -> Result<CsvTable, ReadError> {
    let mut lines = TextLines::new(reader, path);
    let mut width = None;
    let mut values = Vec::new();
    while let Some(line) = lines.next()? {
        let content = line.text.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let fields = || line.text.split(',').map(str::trim);
        if let Some(width) = width {
            push_row(&mut values, line, width)?;
            continue;
        }
        let found = fields().count();
        if found < narrowest {
            let why = "only one column, but the last column is the label: features or commas are missing";
            return Err(line.error(0, why.into()));
        }
        width = Some(found);
        if fields().any(|field| field.parse::<f64>().is_ok()) {
            push_row(&mut values, line, found)?;
        }
    }
    match width {
        Some(width) if !values.is_empty() => Ok(CsvTable { width, values }),
        _ => Err(lines.error_at_end("the file ends without a row of numbers")),
    }
}

fn push_row(values: &mut Vec<f64>, line: TextLine<'_>, width: usize) -> Result<(), ReadError> {
    let mut found = 0;
    for field in line.text.split(',') {
        if found == width {
            let why = format!("more than the {width} fields of the first row");
            return Err(line.error(line.position(field), why));
        }
        values.push(line.number(field.trim())?);
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
        let data = read_labeled("x,y,kind\n1,2,7\n3,4,8\n".as_bytes(), Path::new("f.csv")).unwrap();
        assert_eq!(data.labels, [7.0, 8.0]);
        assert_eq!(data.features, Features::Dense(Mat::from_fn(2, 2, |i, j| [[1.0, 2.0], [3.0, 4.0]][i][j])));
        let message = read_labeled("1\n2\n".as_bytes(), Path::new("f.csv")).unwrap_err().to_string();
        assert!(message.starts_with("f.csv:1:1: only one column"), "{message}");
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
            let _ = read_labeled(&bytes[..], Path::new("f"));
        }

        #[test]
        fn arbitrary_text_of_the_alphabet_never_panics(text in "[-+0-9.eE,# \r\n\tnaif\u{e9}]{0,120}") {
            let _ = read_matrix(text.as_bytes(), Path::new("f"));
            let _ = read_labeled(text.as_bytes(), Path::new("f"));
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
