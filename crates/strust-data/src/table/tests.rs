use super::*;
use proptest::prelude::*;
use std::io::Write as _;

fn written(name: &str, text: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn read_with(text: &str, options: &ReadOptions) -> Result<DataTable, String> {
    let (folder, path) = written("f.csv", text.as_bytes());
    let stop = AtomicBool::new(false);
    DataTable::read(&path, options, &mut ReadProgress { at: &mut |_| {}, interrupt: &stop })
        .map_err(|e| e.to_string().replace(&format!("{}/", folder.path().display()), ""))
}

fn read(text: &str) -> Result<DataTable, String> {
    read_with(text, &ReadOptions::default())
}

fn numbers<'a>(table: &'a DataTable, name: &str) -> &'a [f64] {
    match &table.column(name).unwrap().cells {
        Cells::Numbers(values) => values,
        other => panic!("{other:?}"),
    }
}

/// The words of a column; `None` for blank cells.
fn words(table: &DataTable, name: &str) -> Vec<Option<String>> {
    match &table.column(name).unwrap().cells {
        Cells::Words { codes, words } => codes.iter().map(|&code| words.get(code as usize).cloned()).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_with_every_allowed_feature_is_read() {
    let text = "\u{feff}# from a spreadsheet\r\n\r\nage,\"home, town\", note\r\n 31 ,\"Rome, \"\"Lazio\"\"\",a\r\n\r\n\
                ,\"two\nlines\",NA\r\n-2.5e1,?,b";
    let table = read(text).unwrap();
    assert_eq!((table.rows, &table.order[..]), (3, &["age", "home, town", "note"].map(String::from)[..]));
    assert_eq!(numbers(&table, "age")[..1], [31.0]);
    assert!(numbers(&table, "age")[1].is_nan() && (numbers(&table, "age")[2] + 25.0).abs() < 1e-12);
    assert_eq!(words(&table, "home, town"), [Some("Rome, \"Lazio\"".into()), Some("two\nlines".into()), None]);
    assert_eq!(words(&table, "note"), [Some("a".into()), None, Some("b".into())]);
    assert_eq!(table.fingerprint.len(), 32);
}

#[test]
fn semicolons_and_tabs_separate_columns_if_there_are_no_commas() {
    for separator in [";", "\t"] {
        let table = read(&format!("a{separator}b\n1{separator}x\n")).unwrap();
        assert_eq!((numbers(&table, "a"), words(&table, "b")), (&[1.0][..], vec![Some("x".into())]));
    }
}

#[test]
fn the_first_line_is_a_header_if_it_has_no_number_or_names_the_target() {
    assert_eq!(read("1,2\n3,4\n").unwrap().order, ["column1", "column2"]);
    assert_eq!(read("a,b\n3,4\n").unwrap().rows, 1);
    let options = ReadOptions { target: Some("y".into()), ..ReadOptions::default() };
    assert_eq!(read_with("2019,y\n3,4\n", &options).unwrap().order, ["2019", "y"]);
}

#[test]
fn every_malformed_file_is_an_error_that_says_where_and_what_to_do() {
    let long = format!("a,b\n{}1,x\n", "1,2\n".repeat(1500));
    for (text, expected) in [
        ("", "f.csv: the file is empty; expected a header and rows"),
        ("\n \n# nothing\n", "f.csv: the file is empty; expected a header and rows"),
        ("a,b\n", "f.csv: the file has a header but no rows"),
        ("a,b\n1,2\n3\n", "f.csv:3: 1 field, but the first line has 2: is a comma or a quote missing or too many?"),
        ("a,b\n1,\"x\ny\"\n1,2,3\n", "f.csv:4: 3 fields, but the first line has 2"),
        ("a,a\n1,2\n", "f.csv:1: two columns are named `a`: rename one of them"),
        ("a,b\n1,\"2\n3,4\n", "f.csv:2: a quote is not closed"),
        ("a,b\n1,\"2\"3\n", "f.csv:2: text follows a closing quote"),
        ("a,b\n1,inf\n", "f.csv:2: column `b`: \"inf\" is not a finite number"),
        ("a,b\n1,1e999\n", "f.csv:2: column `b`: \"1e999\" is not a finite number"),
        (
            &long,
            "f.csv:1502: \"x\" is not a number, but 1500 of 1501 cells of column `b` are. Fix or blank it, or read",
        ),
    ] {
        let message = read(text).unwrap_err();
        assert!(message.contains(expected), "{message}\ndoes not contain\n{expected}");
    }
}

#[test]
fn late_words_make_a_column_of_words_if_they_are_most_of_its_cells() {
    let text = format!("a,b\n{}{}", "1,2\n".repeat(1500), "1,x\n".repeat(1501));
    let table = read(&text).unwrap();
    assert_eq!(words(&table, "b")[0], Some("2".into()));
    assert_eq!(words(&table, "b")[1599], Some("x".into()));
    let message = read(&format!("{text}1,2\n")).unwrap_err();
    assert!(
        message.starts_with("f.csv:1502: \"x\" is not a number, but 1501 of 3002 cells of column `b` are"),
        "{message}"
    );
    let typing = ReadOptions { categories: vec!["b".into()], ..ReadOptions::default() };
    assert_eq!(words(&read_with("a,b\n1,2\n", &typing).unwrap(), "b"), [Some("2".into())]);
}

#[test]
fn columns_can_be_left_out_and_wrong_names_are_reported() {
    let options = ReadOptions { drop: vec!["day".into()], ..ReadOptions::default() };
    let table = read_with("day,b\n2024-01-31,1\n", &options).unwrap();
    assert!(table.column("day").is_none() && table.order.len() == 2);
    let options = ReadOptions { drop: vec!["dya".into()], ..ReadOptions::default() };
    let message = read_with("day,b\n1,1\n", &options).unwrap_err();
    assert_eq!(message, "f.csv: there is no column `dya` for --drop; did you mean `day`?");
}

#[test]
fn the_target_is_found_by_name_or_number_and_a_wrong_name_gets_a_hint() {
    let table = read("age,income\n1,2\n").unwrap();
    assert_eq!(table.target_name(Some("income")).unwrap(), "income");
    assert_eq!(table.target_name(Some("2")).unwrap(), "income");
    let message = |name| table.target_name(name).unwrap_err().to_string();
    assert!(message(Some("incme")).ends_with("there is no column `incme`; did you mean `income`?"));
    assert!(message(Some("3")).ends_with("the columns are `age`, `income`"));
    assert!(message(None).starts_with("name the column to predict with --target"));
}

#[test]
fn a_wrong_target_is_reported_before_the_columns_and_a_dropped_one_as_such() {
    let text = "day,price,y\n2024-01-31,$1,1\n2024-02-01,$2,2\n".replace(",$", ",€");
    let options = |target: &str, drop: &[&str]| ReadOptions {
        target: (!target.is_empty()).then(|| target.into()),
        needs_target: true,
        drop: drop.iter().map(ToString::to_string).collect(),
        ..ReadOptions::default()
    };
    for (target, drop, expected) in [
        ("z", &[][..], "f.csv: there is no column `z`; did you mean `y`?"),
        ("", &[], "name the column to predict with --target; the columns are `day`, `price`, `y`"),
        ("y", &["y"], "`y` is the column to predict, so it cannot be left out with --drop"),
        ("3", &["y"], "`y` is the column to predict, so it cannot be left out with --drop"),
        ("z", &["q"], "f.csv: there is no column `z`; did you mean `y`?"),
    ] {
        assert_eq!(read_with(&text, &options(target, drop)).unwrap_err(), expected);
    }
    let kept = read_with("a,y\n1,2\n", &ReadOptions { drop: vec!["y".into()], ..ReadOptions::default() }).unwrap();
    assert!(kept.target_name(Some("y")).unwrap_err().to_string().contains("cannot be left out"));
}

#[test]
fn all_columns_that_cannot_be_used_are_listed_with_an_example_each() {
    let row = |i: usize| {
        let age = if i == 1200 { "forty".into() } else { i.to_string() };
        let day = if i < 2 { String::new() } else { format!("{}/{}/24", 1 + i % 12, 1 + i % 11) };
        let share = if i.is_multiple_of(3) { i.to_string() } else { format!("{i} %") };
        format!("{age},{day},{share},{}\n", if i.is_multiple_of(2) { "7" } else { "3+" })
    };
    let text = format!("age,start day,share,rooms\n{}", (0..1500).map(row).collect::<String>());
    let message = read(&text).unwrap_err();
    assert_eq!(
        message.lines().collect::<Vec<_>>(),
        [
            "f.csv: 4 columns cannot be used:",
            "  f.csv:1202: \"forty\" is not a number, but 1499 of 1500 cells of column `age` are. Fix or blank it, or read \
             the column as words with --category age, or leave the column out with --drop age",
            "  f.csv:4: column `start day` holds dates, such as \"3/3/24\", and none of them shows whether the day or the \
             month comes first. Write them as 2024-12-31, or leave the column out with --drop 'start day'",
            "  f.csv:2: \"0\" is not written like 1000 of 1500 cells of column `share`. Write all of them in the same way, \
             or read the column as words with --category share, or leave the column out with --drop share",
            "  f.csv:3: \"3+\" is not a number, but 750 of 1500 cells of column `rooms` are. Fix or blank the 750 such \
             cells, or read the column as words with --category rooms, or leave the column out with --drop rooms",
        ]
    );
    // The target cannot be left out, and a date cannot be predicted.
    let options = ReadOptions { target: Some("day".into()), ..ReadOptions::default() };
    assert_eq!(
        read_with("day,x\n2024-01-31,1\n2024-02-01,2\n", &options).unwrap_err(),
        "f.csv:2: column `day` holds dates, such as \"2024-01-31\". Turn them into numbers first (days since a fixed \
         day, the year, the month), or choose another target"
    );
    let many = |n: usize, cell: &dyn Fn(usize) -> String| (0..n).map(cell).collect::<Vec<_>>().join(",");
    let text = format!("{}\n{}\n", many(13, &|j| format!("d{j}")), many(13, &|_| "1/2/2024".into()));
    assert!(read(&text).unwrap_err().ends_with("\n  and 3 more columns"));
}

#[test]
fn a_quote_that_is_not_closed_is_searched_in_linear_time() {
    let searched = |bytes: usize| {
        let (_folder, path) = written("f.csv", format!("a,b\n1,\"{}", "x".repeat(bytes)).as_bytes());
        let mut blocks = blocks::TextBlocks::open(&path, b',').unwrap();
        while blocks.next(1 << 16).unwrap().is_some() {}
        blocks.searched()
    };
    for bytes in [1 << 18, 1 << 20, 1 << 22] {
        assert!(searched(bytes) < 4 * bytes as u64, "{} of {bytes}", searched(bytes));
    }
}

#[test]
fn a_large_file_is_read_in_parallel_blocks_without_a_seam() {
    // About 12 MB, so several blocks; quoted line breaks fall on their borders.
    let mut text = String::from("i,word,x\n");
    for i in 0..400_000 {
        let _ = write!(text, "{i},\"w\n{}\",{}.5\n", i % 97, i % 1000);
    }
    let table = read(&text).unwrap();
    assert_eq!(table.rows, 400_000);
    let i = numbers(&table, "i");
    assert!((0..table.rows).all(|row| (i[row] - row as f64).abs() < 1e-9));
    let found = words(&table, "word");
    assert!((0..table.rows).all(|row| found[row].as_deref() == Some(&format!("w\n{}", row % 97))));
}

#[test]
fn compressed_csv_npy_and_libsvm_are_read() {
    let stop = AtomicBool::new(false);
    let read = |path: &Path| {
        DataTable::read(path, &ReadOptions::default(), &mut ReadProgress { at: &mut |_| {}, interrupt: &stop }).unwrap()
    };
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(b"a,b\n1,x\n").unwrap();
    let (_folder, path) = written("f.csv.gz", &gzip.finish().unwrap());
    assert_eq!(numbers(&read(&path), "a"), [1.0]);

    let header = format!("{:<117}\n", "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }");
    let values = [1.0_f64, 2.0, 3.0, 4.0].map(f64::to_le_bytes).concat();
    let bytes = [b"\x93NUMPY\x01\x00", &118_u16.to_le_bytes()[..], header.as_bytes(), &values].concat();
    let (_folder, path) = written("f.npy", &bytes);
    assert_eq!(numbers(&read(&path), "column2"), [2.0, 4.0]);

    let (_folder, path) = written("f.svm", b"+1 1:2 3:4\n-1 2:1\n");
    let table = read(&path);
    assert_eq!((numbers(&table, "label"), table.sparse.as_ref().unwrap().columns()), (&[1.0, -1.0][..], 3));
    assert_eq!(table.target_name(None).unwrap(), "label");
}

#[test]
fn a_folder_of_images_has_its_own_test_rows() {
    let folder = tempfile::tempdir().unwrap();
    let images = |count: u8| {
        [&[0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, 1, 0, 0, 0, 2][..], &[0, 255].repeat(count.into())].concat()
    };
    let labels = |count: u8| [&[0, 0, 8, 1, 0, 0, 0, count][..], &(0..count).collect::<Vec<u8>>()].concat();
    for (part, count) in [("train", 3), ("t10k", 2)] {
        std::fs::write(folder.path().join(format!("{part}-images-idx3-ubyte")), images(count)).unwrap();
        std::fs::write(folder.path().join(format!("{part}-labels-idx1-ubyte")), labels(count)).unwrap();
    }
    let stop = AtomicBool::new(false);
    let progress = &mut ReadProgress { at: &mut |_| {}, interrupt: &stop };
    let train = DataTable::read(folder.path(), &ReadOptions::default(), progress).unwrap();
    assert_eq!(numbers(&train, "label"), [0.0, 1.0, 2.0]);
    assert_eq!(train.sparse.unwrap().row(1), (&[1][..], &[255.0][..]));
    assert_eq!(DataTable::read_own_test(folder.path(), &mut Alone).unwrap().unwrap().rows, 2);
}

#[test]
fn an_interrupt_ends_the_reading() {
    let (_folder, path) = written("f.csv", b"a,b\n1,2\n");
    let stop = AtomicBool::new(true);
    let read = DataTable::read(&path, &ReadOptions::default(), &mut ReadProgress { at: &mut |_| {}, interrupt: &stop });
    assert!(matches!(read, Err(DataError::Interrupted)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn arbitrary_text_of_the_alphabet_never_panics(text in "[a1,\"\n\r;.#? -]{0,80}") {
        let _ = read(&text);
    }

    #[test]
    fn written_numbers_are_read_bit_for_bit(values in prop::collection::vec(any::<f64>().prop_filter("finite", |v| v.is_finite()), 1..20)) {
        let text = values.iter().map(|v| format!("{v:e}")).collect::<Vec<_>>().join("\n");
        let table = read(&format!("x\n{text}\n")).unwrap();
        let found: Vec<u64> = numbers(&table, "x").iter().map(|v| v.to_bits()).collect();
        prop_assert_eq!(found, values.iter().map(|v| v.to_bits()).collect::<Vec<_>>());
    }
}

mod dirty;

fn read_path(path: &Path) -> Result<DataTable, String> {
    let stop = AtomicBool::new(false);
    DataTable::read(path, &ReadOptions::default(), &mut ReadProgress { at: &mut |_| {}, interrupt: &stop })
        .map_err(|e| e.to_string())
}

#[test]
fn a_pattern_names_all_its_files_in_the_order_of_their_names() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in
        [("b.csv", "x,y\n3,one\n"), ("a.csv", "x,y\n1,two\n2,\n"), ("c[1].csv", "x;y\n;three\n"), ("z.txt", "1 1:2\n")]
    {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let table = read_path(&folder.path().join("*.csv")).unwrap();
    assert_eq!((table.rows, table.all_rows, numbers(&table, "x")[..3].to_vec()), (4, 4, vec![1.0, 2.0, 3.0]));
    assert_eq!(words(&table, "y"), [Some("two".into()), None, Some("one".into()), Some("three".into())]);
    assert_eq!(table.fingerprint.len(), 32);
    // A file whose name looks like a pattern is itself.
    assert_eq!(read_path(&folder.path().join("c[1].csv")).unwrap().rows, 1);
}

#[test]
fn files_that_do_not_belong_together_are_an_error_that_names_them() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in
        [("a1.csv", "x,y\n1,2\n"), ("a2.csv", "x,z\n1,2\n"), ("b1.svm", "1 1:2\n"), ("b2.csv", "x\n1\n")]
    {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    for (pattern, expected) in [
        ("a*.csv", "a2.csv: the columns are `x`, `z`, but"),
        ("b*", "the pattern matches files of different formats"),
        ("none-*.csv", "no file matches the pattern"),
        ("a[.csv", "the pattern is wrong at character"),
        ("missing.csv", "No such file"),
    ] {
        let message = read_path(&folder.path().join(pattern)).unwrap_err();
        assert!(message.contains(expected), "{message}");
    }
}
