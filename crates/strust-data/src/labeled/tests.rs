use super::*;
use crate::read::tests::{TEXT, gzip, xz};
use proptest::prelude::*;
use std::{fmt::Write, path::PathBuf};

fn with_csv<T>(bytes: &[u8], read: impl Fn(&Path) -> Result<T, DataError>) -> Result<T, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.csv");
    std::fs::write(&path, bytes).unwrap();
    read(&path).map_err(|e| e.to_string().replace(&format!("{}/", folder.path().display()), ""))
}

fn matrix(text: &str) -> Result<Mat<f64>, String> {
    with_csv(text.as_bytes(), |path| read_matrix(path))
}

fn labeled(text: &str, label: &str) -> Result<Labeled, String> {
    with_csv(text.as_bytes(), |path| read_labeled_by(path, label))
}

#[test]
fn an_unknown_extension_is_an_error_that_lists_the_known_ones() {
    assert_eq!(
        read_matrix("a.parquet").unwrap_err().to_string(),
        "a.parquet: unknown extension; known are .npy, .csv and .jsonl, each also with .gz or .xz"
    );
    let message = read_labeled("a.parquet.gz").unwrap_err().to_string();
    assert!(
        message.contains(".csv, .jsonl, .npy and, for LIBSVM text, .libsvm, .svm, .txt, .tr, .t and no extension"),
        "{message}"
    );
}

#[test]
fn the_label_of_an_array_is_a_column_by_number_and_libsvm_has_no_columns() {
    let folder = tempfile::tempdir().unwrap();
    let array = |columns: usize| {
        let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': (2, {columns}), }}\n");
        let mut bytes = [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes()].concat();
        (0..2 * columns).for_each(|k| bytes.extend((k as f64).to_le_bytes()));
        let path = folder.path().join(format!("a{columns}.npy"));
        std::fs::write(&path, bytes).unwrap();
        path
    };
    // [0 1 2; 3 4 5]
    let data = read_labeled_by(array(3), "2").unwrap();
    assert_eq!(data.labels, [1.0, 4.0]);
    assert_eq!(data.features, Features::Dense(Mat::from_fn(2, 2, |i, j| [[0.0, 2.0], [3.0, 5.0]][i][j])));
    assert_eq!(read_labeled(array(3)).unwrap().labels, [2.0, 5.0]);
    let message = |path: PathBuf, label| read_labeled_by(path, label).unwrap_err().to_string();
    assert!(message(array(3), "kind").ends_with("the label's column is a number from 1 to 3 here, not \"kind\""));
    assert!(message(array(3), "4").ends_with("not \"4\""));
    assert!(message(array(1), "").contains("only one column"));
    let text = folder.path().join("a.libsvm");
    std::fs::write(&text, TEXT).unwrap();
    assert!(message(text, "1").ends_with("LIBSVM text has its label first, so no column can be the label"));
}

#[test]
fn a_missing_file_is_an_error_that_names_file_and_cause() {
    let error = read_matrix("/nowhere/a.csv").unwrap_err();
    assert!(error.to_string().starts_with("/nowhere/a.csv: No such file"), "{error}");
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn a_folder_is_an_error_that_names_it() {
    let folder = tempfile::Builder::new().suffix(".csv").tempdir().unwrap();
    let message = read_matrix(folder.path()).unwrap_err().to_string();
    assert!(message.contains("it is a folder"), "{message}");
}

#[test]
fn compressed_files_give_the_same_data_as_plain_ones() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let plain = read_labeled(write("a", TEXT.as_bytes())).unwrap();
    assert_eq!(read_labeled(write("a.gz", &gzip(TEXT.as_bytes()))).unwrap(), plain);
    assert_eq!(read_labeled(write("a.txt.xz", &xz(TEXT.as_bytes()))).unwrap(), plain);
    let csv = b"1,2\n3,4\n";
    let matrix = read_matrix(write("a.csv", csv)).unwrap();
    assert_eq!(read_matrix(write("a.csv.gz", &gzip(csv))).unwrap(), matrix);
    assert_eq!(read_matrix(write("a.csv.xz", &xz(csv))).unwrap(), matrix);
}

#[test]
fn a_matrix_with_every_allowed_feature_is_read() {
    let text = "# made by hand\r\n\r\n a , \"b\" \r\n 1 ,2.5e1\r\n  # between\r\n# two, fields\r\n+.5,\t-3.\r\n \r\n";
    let expected = Mat::from_fn(2, 2, |i, j| [[1.0, 25.0], [0.5, -3.0]][i][j]);
    assert_eq!(matrix(text).unwrap(), expected);
    assert_eq!(matrix("1,2").unwrap().nrows(), 1);
    // A first line that contains a number is not a header, so its words are errors.
    assert_eq!(matrix("a,1\n2,3").unwrap_err(), "f.csv:1: column `column1`: \"a\" is not a finite number");
}

#[test]
fn every_malformed_matrix_is_an_error_that_names_line_and_column() {
    for (text, expected) in [
        ("", "f.csv: the file is empty; expected a header and rows"),
        ("a,b\n", "f.csv: the file has a header but no rows"),
        ("1,2\n3\n", "f.csv:2: 1 field, but the first line has 2"),
        ("a,b\n1,2,3\n", "f.csv:2: 3 fields, but the first line has 2"),
        ("1,2\n3,\n", "f.csv:2: column `column2`: a number is missing"),
        ("1,2\n\né,4\n", "f.csv:3: column `column1`: \"é\" is not a finite number"),
        ("1,2\n 3 , 4x\n", "f.csv:2: column `column2`: \"4x\" is not a finite number"),
        ("1,2\n3,NaN\n", "f.csv:2: column `column2`: \"NaN\" is not a finite number"),
        ("1,2\n-inf,3\n", "f.csv:2: column `column1`: \"-inf\" is not a finite number"),
        ("1,2\n3,1e999\n", "f.csv:2: column `column2`: \"1e999\" is not a finite number"),
    ] {
        let message = matrix(text).unwrap_err();
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn the_label_is_the_last_column_or_one_by_name_or_by_number() {
    let data = labeled("x,y,kind\n1,2,7\n3,4,8\n", "").unwrap();
    assert_eq!(data.labels, [7.0, 8.0]);
    assert_eq!(data.features, Features::Dense(Mat::from_fn(2, 2, |i, j| [[1.0, 2.0], [3.0, 4.0]][i][j])));
    let header = "width, \"quality\",size\n1,7,2\n3,8,4\n";
    for label in ["quality", "2"] {
        let data = labeled(header, label).unwrap();
        assert_eq!(data.labels, [7.0, 8.0]);
        assert_eq!(data.features, Features::Dense(Mat::from_fn(2, 2, |i, j| [[1.0, 2.0], [3.0, 4.0]][i][j])));
    }
    assert_eq!(labeled("1,7\n3,8\n", "1").unwrap().labels, [1.0, 3.0]);
    // The first column of a spreadsheet often has no name.
    assert_eq!(labeled(",x,y\n0,1,2\n", "").unwrap().features.columns(), 2);
    // Sodium is a name if numbers follow.
    assert_eq!(labeled("RI,Na,Type\n1.5,13,1\n1.6,12,2\n", "").unwrap().labels, [1.0, 2.0]);
    assert_eq!(labeled("NA,x,y\nb,x,z\na,w,y\n", "").unwrap().labels, [0.0, 1.0, 0.0]);
    for (text, label, expected) in [
        (header, "qualty", "f.csv: there is no column `qualty`; did you mean `quality`?"),
        (header, "xyz", "f.csv: there is no column `xyz`; the columns are `width`, `quality`, `size`"),
        (header, "4", "f.csv: there is no column `4`; the columns are"),
        ("1,7\n", "kind", "f.csv: there is no column `kind`; the columns are `column1`, `column2`"),
        ("1\n2\n", "", "f.csv: only one column"),
        ("a,b\n1,\n2,\n", "", "f.csv: column `b` is blank in every row"),
        ("a,b\n1,1\n2,2\nx,3\n", "", "f.csv:4: \"x\" is not a number, but 2 of 3 cells of column `a` are."),
    ] {
        let message = labeled(text, label).unwrap_err();
        assert!(message.starts_with(expected) && !message.contains("--"), "{message}");
    }
}

#[test]
fn words_become_classes_and_features_and_blanks_become_means() {
    let text =
        "age,\"home, town\",kind,fixed\n30,\"Rome, Lazio\",yes,5\n,Bonn,no,5\n50,?,yes,5\n40,Bonn,,5\n60,Bonn,no,5\n";
    let data = labeled(text, "kind").unwrap();
    // A row without a label is left out, and is no part of the mean.
    assert_eq!(data.labels, [1.0, 0.0, 1.0, 0.0]);
    let mean = 140.0 / 3.0;
    // age, fixed, and the home towns: blank, Bonn, Rome.
    let expected = [
        [30.0, 5.0, 0.0, 0.0, 1.0],
        [mean, 5.0, 0.0, 1.0, 0.0],
        [50.0, 5.0, 1.0, 0.0, 0.0],
        [60.0, 5.0, 0.0, 1.0, 0.0],
    ];
    assert_eq!(data.features, Features::Dense(Mat::from_fn(4, 5, |i, j| expected[i][j])));
    let numbers = with_csv(text.as_bytes(), |path| read_numbers_by(path, "kind"));
    assert_eq!(numbers.unwrap_err(), "f.csv: column `kind` holds words: a regression needs numbers");
    assert_eq!(with_csv(text.as_bytes(), |path| read_numbers_by(path, "age")).unwrap().labels.len(), 4);
}

#[test]
fn words_that_start_with_a_hash_are_rows_if_the_first_column_holds_words() {
    assert_eq!(labeled("color,y\n#ff0000,1\n#00ff00,2\n# comment\n", "").unwrap().labels, [1.0, 2.0]);
    assert_eq!(labeled("x,y\n#ff0000,1\n5,2\n", "").unwrap().labels, [2.0]);
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
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = with_csv(&bytes, |path| read_matrix(path));
        let _ = with_csv(&bytes, |path| read_labeled(path));
    }

    #[test]
    fn arbitrary_text_of_the_alphabet_never_panics(text in "[-+0-9.eE,#\" \r\n\tnaif\u{e9}]{0,120}") {
        let _ = matrix(&text);
        let _ = labeled(&text, "1");
    }

    #[test]
    fn a_mutated_file_never_panics(rows in rows(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = written(&rows).into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = with_csv(&bytes, |path| read_matrix(path));
    }

    #[test]
    fn written_numbers_are_read_bit_for_bit(rows in rows()) {
        let read = matrix(&written(&rows)).unwrap();
        let data = labeled(&written(&rows), "").unwrap();
        prop_assert_eq!((read.nrows(), read.ncols()), (rows.len(), 3));
        for (i, row) in rows.iter().enumerate() {
            for (j, v) in row.iter().enumerate() {
                prop_assert_eq!(v.to_bits(), read[(i, j)].to_bits());
            }
            prop_assert_eq!(row[2].to_bits(), data.labels[i].to_bits());
            let features = data.features.to_dense();
            prop_assert!((0..2).all(|j| features[(i, j)].to_bits() == row[j].to_bits()));
        }
    }
}
