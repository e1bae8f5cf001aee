//! Files as people have them: numbers with signs, dates, texts for missing values; and JSON lines.

use super::*;
use crate::table::dates::DateOrder;
use strust::ranks::on_threads;

/// A table with the column `x` of these cells.
fn column(cells: &[&str]) -> Result<DataTable, String> {
    let row = |(i, cell): (usize, &&str)| format!("{i}\t{cell}\n");
    read(&format!("i\tx\n{}", cells.iter().enumerate().map(row).collect::<String>()))
}

#[track_caller]
fn reads(cells: &[&str], expected: &[f64], form: &str) -> Vec<String> {
    let table = column(cells).unwrap();
    let found = numbers(&table, "x");
    assert!(
        found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| a.to_bits() == b.to_bits()),
        "{found:?}"
    );
    assert_eq!(table.column("x").unwrap().form.to_string(), form);
    table.notes
}

#[test]
fn all_cells_of_a_column_decide_how_its_numbers_are_written() {
    let note = |example: &str| vec![format!("`x` is read as numbers such as {example}")];
    assert_eq!(reads(&["1,234", "5", "12,345,678.5"], &[1234.0, 5.0, 12_345_678.5], "1,234.5"), note("`1,234` = 1234"));
    assert_eq!(reads(&["1,234", "2,345"], &[1234.0, 2345.0], "1,234.5"), note("`1,234` = 1234"));
    assert_eq!(reads(&["1,234", "3,25"], &[1.234, 3.25], "1.234,5"), note("`1,234` = 1.234"));
    assert_eq!(reads(&["0,123", "1,234"], &[0.123, 1.234], "1.234,5"), note("`0,123` = 0.123"));
    // A plain number has groups if another cell has decimals after a comma.
    assert_eq!(reads(&["1.234", "1.234,5", "-2"], &[1234.0, 1234.5, -2.0], "1.234,5"), note("`1.234,5` = 1234.5"));
    assert_eq!(reads(&["1'234", "1’234.5", "1e3"], &[1234.0, 1234.5, 1000.0], "1,234.5"), note("`1'234` = 1234"));
    assert_eq!(reads(&["1 234,5", "1\u{a0}234"], &[1234.5, 1234.0], "1.234,5"), note("`1 234,5` = 1234.5"));
    assert_eq!(
        reads(&["$1,200", "-$3.50", "$-4", "7"], &[1200.0, -3.5, -4.0, 7.0], "$1,234.5"),
        note("`$1,200` = 1200")
    );
    assert_eq!(reads(&["12 €", "3,50€", "€ 4"], &[12.0, 3.5, 4.0], "€1.234,5"), note("`12 €` = 12"));
    assert_eq!(reads(&["12 %", "3.5%", "−1 %"], &[12.0, 3.5, -1.0], "1,234.5 %"), note("`12 %` = 12"));
    assert_eq!(reads(&["CHF 5", "6 CHF"], &[5.0, 6.0], "CHF1,234.5"), note("`CHF 5` = 5"));
    assert!(reads(&["1", "2.5"], &[1.0, 2.5], "1234.5").is_empty());
}

#[test]
fn numbers_that_are_written_in_several_ways_are_an_error_with_an_example() {
    for (cells, example) in [
        (&["$1", "$2", "$3", "€4"][..], "f.csv:5: \"€4\" is not written like 3 of 4 cells of column `x`."),
        (&["1 %", "2", "3", "4"], "f.csv:2: \"1 %\" is not written like 3 of 4 cells of column `x`."),
        (&["1.5", "2.5", "1,5", "3.5"], "f.csv:4: \"1,5\" is not written like 3 of 4 cells of column `x`."),
        (&["2024-01-02", "2024-01-03", "2024-02-30"], "f.csv:4: \"2024-02-30\" is not a date, but 2 of 3 cells"),
        (&["1", "2", "3+"], "f.csv:4: \"3+\" is not a number, but 2 of 3 cells of column `x` are."),
        (&["12", "A7"], "f.csv:3: \"A7\" is not a number, but 1 of 2 cells of column `x` are."),
    ] {
        let message = column(cells).unwrap_err();
        assert!(message.starts_with(example), "{message}");
        assert!(
            message.contains("or read the column as words with --category x, or leave the column out"),
            "{message}"
        );
    }
    for codes in [&["100A", "2B", "7"][..], &["<18", "18-25", "1"], &["10-20", "1.2.3.4", "yes"], &["030 123", "a"]] {
        assert_eq!(words(&column(codes).unwrap(), "x").len(), codes.len(), "{codes:?}");
    }
}

#[test]
fn cells_after_the_first_thousand_rows_decide_too() {
    let late = |first: &'static str, last: &'static str| [vec![first; 1500], vec![last]].concat();
    assert!(numbers(&column(&late("1,234", "1,5")).unwrap(), "x")[0] < 2.0);
    assert_eq!(numbers(&column(&late("7", "$8")).unwrap(), "x")[1500].to_bits(), 8_f64.to_bits());
    let message = column(&late("7", "8 %")).unwrap_err();
    assert!(message.starts_with("f.csv:1502: \"8 %\" is not written like 1500 of 1501 cells"), "{message}");
    let message = column(&[vec!["7 %"; 1500], vec!["8"; 2000]].concat()).unwrap_err();
    assert!(message.starts_with("f.csv:2: \"7 %\" is not written like 2000 of 3500 cells"), "{message}");
    // First words, then numbers: most cells decide.
    let message = column(&[vec!["a"; 1001], vec!["8"; 1001]].concat()).unwrap_err();
    assert!(message.starts_with("f.csv: \"a\" in row 1 is not a number, but 1001 of 2002 cells"), "{message}");
    let numbers_at_last = [vec!["-"; 1500], vec!["5"]].concat();
    assert!(numbers(&column(&numbers_at_last).unwrap(), "x")[0].is_nan());
}

#[test]
fn texts_for_missing_values_are_blanks_among_numbers_and_words_among_words() {
    let notes =
        reads(&["1", "-", "Unknown", "-", "NA", "2"], &[1.0, f64::NAN, f64::NAN, f64::NAN, f64::NAN, 2.0], "1234.5");
    assert_eq!(notes, ["2 cells `-` and 1 cell `Unknown` in `x` are read as blanks"]);
    assert_eq!(reads(&["$1", "."], &[1.0, f64::NAN], "$1,234.5")[1], "1 cell `.` in `x` is read as blank");
    let table = column(&["red", "-", "none", ""]).unwrap();
    assert_eq!(words(&table, "x"), [Some("red".into()), Some("-".into()), Some("none".into()), None]);
    assert!(table.notes.is_empty());
    assert_eq!(words(&column(&["unknown", "missing"]).unwrap(), "x").len(), 2);
    let message = column(&["1", "inf"]).unwrap_err();
    assert!(message.contains("column `x`: \"inf\" is not a finite number"), "{message}");
}

#[test]
fn a_target_of_few_values_has_classes_and_another_one_is_listed() {
    let options = ReadOptions { target: Some("y".into()), ..ReadOptions::default() };
    let table = |cell: &dyn Fn(usize) -> String| {
        let row = |i: usize| format!("{i},{}\n", cell(i));
        read_with(&format!("x,y\n{}", (0..60).map(row).collect::<String>()), &options)
    };
    let classes = table(&|i| ["1", "2", "3+"][i % 3].into()).unwrap();
    assert_eq!(words(&classes, "y")[2], Some("3+".into()));
    let message = table(&|i| if i == 7 { "many".into() } else { i.to_string() }).unwrap_err();
    assert_eq!(
        message,
        "f.csv:9: \"many\" is not a number, but 59 of 60 cells of column `y` are. Fix or blank it, or read the column as \
         words with --category y, or choose another target"
    );
}

#[test]
fn dates_become_days_and_where_useful_months_and_weekdays() {
    let days = |count: usize, step: usize| -> Vec<String> {
        (0..count)
            .map(|i| format!("{}-{:02}-{:02}", 2020 + i * step / 336, 1 + i * step / 28 % 12, 1 + i * step % 28))
            .collect()
    };
    let table = |cells: &[String]| column(&cells.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    let short = table(&days(14, 1));
    assert_eq!(short.notes, ["`x` is read as a date: days"]);
    assert!((numbers(&short, "x")[1] - numbers(&short, "x")[0] - 1.0).abs() < 1e-12);
    let weeks = table(&days(28, 1));
    assert_eq!(weeks.notes, ["`x` is read as a date: days and weekday"]);
    // 2020-01-01 was a Wednesday.
    assert_eq!(words(&weeks, "x weekday")[..2], [Some("Wednesday".into()), Some("Thursday".into())]);
    let years = table(&days(100, 9));
    assert_eq!(years.notes, ["`x` is read as a date: days, month and weekday"]);
    assert_eq!(words(&years, "x month")[4], Some("February".into()));
    assert_eq!(years.order, ["i", "x"]);
    // Another file has the same columns, though its rows span less.
    let (_folder, path) = written("f.csv", b"x\n2024-05-31\n");
    let expected = ReadOptions { expected: Some(years.expected()), ..ReadOptions::default() };
    let stop = AtomicBool::new(false);
    let new = DataTable::read(&path, &expected, &mut ReadProgress { at: &mut |_| {}, interrupt: &stop }).unwrap();
    assert_eq!(
        (words(&new, "x month"), words(&new, "x weekday")),
        (vec![Some("May".into())], vec![Some("Friday".into())])
    );
    // A column of the file that has the name stays.
    let taken = read("x,x weekday\n2024-01-01,a\n2024-03-05,b\n").unwrap();
    assert_eq!(words(&taken, "x weekday"), [Some("a".into()), Some("b".into())]);
}

#[test]
fn the_order_of_day_and_month_is_that_which_some_cell_shows() {
    let day = DateOrder::YearFirst.read("2024-05-06").unwrap();
    assert!((numbers(&column(&["5/6/24", "5/31/2024"]).unwrap(), "x")[0] - day).abs() < 1e-12);
    assert!((numbers(&column(&["6/5/24", "31/5/2024"]).unwrap(), "x")[0] - day).abs() < 1e-12);
    assert!((numbers(&column(&["6.5.24", "7.5.2024"]).unwrap(), "x")[0] - day).abs() < 1e-12);
    assert!(
        column(&["5/6/24", "5/7/24"])
            .unwrap_err()
            .contains("none of them shows whether the day or the month comes first")
    );
    assert!(column(&["31/5/24", "5/31/24"]).unwrap_err().contains("is not written like 1 of 2 cells"));
}

#[test]
fn a_new_file_has_the_forms_of_the_first_one() {
    let first = read("price,day,n\n\"$1,200\",31.5.2024,1\n$5,1.6.2024,2\n").unwrap();
    let again =
        |text: &str| read_with(text, &ReadOptions { expected: Some(first.expected()), ..ReadOptions::default() });
    let table = again("n,price,day\n-,7,30.6.2024\n").unwrap();
    assert_eq!(numbers(&table, "price"), [7.0]);
    assert_eq!(table.notes, ["1 cell `-` in `n` is read as blank"]);
    for (text, expected) in [
        ("price\n€5\n", "f.csv:2: \"€5\" in column `price` is not written like $1,234.5, as the model needs it"),
        (
            "day\n2024-05-31\n",
            "f.csv:2: \"2024-05-31\" in column `day` is not written like 31.12.2024, as the model needs it",
        ),
        ("n\n\"1,5\"\n", "f.csv:2: \"1,5\" in column `n` is not a number, but the model needs one"),
    ] {
        assert_eq!(again(text).unwrap_err(), expected);
    }
}

#[test]
fn several_columns_that_are_read_in_the_same_way_have_one_note() {
    let table = read("a;b;c;d;e\n$1;$2;2024-01-01;2024-01-01;-\n$3;-;2024-01-02;2024-01-05;5\n").unwrap();
    assert_eq!(
        table.notes,
        [
            "`a`, `b` are read as numbers such as `$1` = 1",
            "`c`, `d` are read as dates: days",
            "2 cells `-` in `b`, `e` are read as blanks"
        ]
    );
}

fn read_json(text: &str) -> Result<DataTable, String> {
    let (folder, path) = written("f.jsonl", text.as_bytes());
    read_path(&path).map_err(|e| e.replace(&format!("{}/", folder.path().display()), ""))
}

#[test]
fn json_lines_are_a_table() {
    let text = "\u{feff}{\"x\": 1, \"kind\": \"a\"}\r\n\n{\"kind\": \"b\", \"late\": true, \"x\": null}\n{\"x\": -2.5e1, \"price\": \"$1,200\"}";
    let table = read_json(text).unwrap();
    assert_eq!((table.rows, &table.order[..]), (3, &["x", "kind", "late", "price"].map(String::from)[..]));
    let expected = [1.0, f64::NAN, -25.0].map(f64::to_bits);
    assert_eq!(numbers(&table, "x").iter().map(|v| v.to_bits()).collect::<Vec<_>>(), expected);
    assert_eq!(words(&table, "kind"), [Some("a".into()), Some("b".into()), None]);
    assert_eq!(words(&table, "late"), [None, Some("true".into()), None]);
    assert_eq!(numbers(&table, "price")[2].to_bits(), 1200_f64.to_bits());
    let (_folder, path) = written("f.ndjson.gz", &crate::read::tests::gzip(text.as_bytes()));
    assert_eq!(
        DataTable { path: table.path.clone(), fingerprint: table.fingerprint.clone(), ..read_path(&path).unwrap() }
            .order,
        table.order
    );
}

#[test]
fn every_malformed_json_line_is_an_error_with_its_place() {
    let advice = "write one JSON object per line, with numbers, texts, true, false and null";
    for (text, expected) in [
        ("", "f.jsonl: the file is empty; expected one JSON object per line".to_string()),
        (
            "{\"x\": 1}\n{\"x\": [1]}\n",
            format!("f.jsonl:2:7: invalid type: sequence, expected a number, a text, true, false or null; {advice}"),
        ),
        (
            "{\"x\": {\"y\": 1}}\n",
            format!("f.jsonl:1:7: invalid type: map, expected a number, a text, true, false or null; {advice}"),
        ),
        ("[1, 2]\n", format!("f.jsonl:1:1: invalid type: sequence, expected an object; {advice}")),
        ("{\n\"x\": 1}\n", format!("f.jsonl:1:1: EOF while parsing an object; {advice}")),
        ("{\"é\": 1} x\n", format!("f.jsonl:1:10: trailing characters; {advice}")),
        (
            "{\"x\": \"inf\"}\n",
            "f.jsonl:1: column `x`: \"inf\" is not a finite number: remove the row or blank the cell".into(),
        ),
    ] {
        assert_eq!(read_json(text).unwrap_err(), expected);
    }
    let row = |i: usize| format!("{{\"k{i}\": 1}}\n");
    let keys: String = (0..5000).map(row).collect();
    assert_eq!(
        read_json(&keys).unwrap_err(),
        "f.jsonl: 5000 rows with 5000 different keys are too many: are the keys data?"
    );
}

#[test]
fn ranks_read_what_one_process_reads() {
    let rows = |row: &dyn Fn(usize) -> String| (0..47).map(row).collect::<String>();
    let price = |i: usize| if i == 46 { "3,5".into() } else { format!("{},{:03}", 1 + i, i) };
    let day = |i: usize| format!("{}/{}/24", 1 + i % 12, if i == 31 { 31 } else { 1 + i % 9 });
    let csv = format!(
        "a\tb\tc\n{}",
        rows(&|i| format!("{}\t{}\t{}\n", price(i), day(i), if i % 5 == 1 { "-" } else { "1" }))
    );
    let json = rows(&|i| format!("{{\"a\": \"{}\", \"b\": \"{}\", \"k{}\": {i}}}\n", price(i), day(i), i % 4));
    let mixed = format!(
        "a\tb\n{}",
        rows(&|i| format!("{}\t{}\n", if i == 40 { "x" } else { "1" }, if i % 2 == 0 { "8" } else { "9 %" }))
    );
    for (name, text) in [("f.csv", &csv), ("f.jsonl", &json), ("f.csv", &mixed)] {
        let (_folder, path) = written(name, text.as_bytes());
        let one = read_path(&path);
        let many = on_threads(3, std::time::Duration::from_secs(60), |mut rank| {
            let stop = AtomicBool::new(false);
            let progress = &mut ReadProgress { at: &mut |_| {}, interrupt: &stop };
            DataTable::read_on(&path, &ReadOptions::default(), progress, &mut rank).map_err(|why| why.to_string())
        });
        for (rank, many) in many.into_iter().enumerate() {
            let (one, many) = match (&one, many) {
                (Ok(one), Ok(many)) => (one, many),
                (Err(one), Err(many)) => {
                    assert_eq!(*one, many);
                    continue;
                }
                (one, many) => panic!("{one:?} and {many:?}"),
            };
            assert_eq!((&many.order, &many.notes, many.columns.len()), (&one.order, &one.notes, one.columns.len()));
            for (one, many) in one.columns.iter().zip(&many.columns) {
                assert_eq!((&one.name, one.form), (&many.name, many.form));
                match (&one.cells, &many.cells) {
                    (Cells::Numbers(all), Cells::Numbers(own)) => {
                        let expected: Vec<u64> = all.iter().skip(rank).step_by(3).map(|v| v.to_bits()).collect();
                        assert_eq!(own.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), expected);
                    }
                    (Cells::Words { codes: all, words }, Cells::Words { codes: own, words: also }) => {
                        assert_eq!(words, also);
                        assert_eq!(*own, all.iter().copied().skip(rank).step_by(3).collect::<Vec<_>>());
                    }
                    cells => panic!("{cells:?}"),
                }
            }
        }
    }
}

/// A number with separators between its thousands.
fn grouped(digits: &str, separator: char) -> String {
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(separator);
        }
        text.push(digit);
    }
    text
}

proptest! {
    #[test]
    fn a_number_with_marks_is_read_back(
        cents in -1_000_000_000_000_i64..1_000_000_000_000,
        mark in 0..4_usize,
        unit in 0..4_usize,
    ) {
        let (decimal, separator) = [('.', ','), (',', '.'), (',', ' '), ('.', '\'')][mark];
        let (whole, part) = (cents.unsigned_abs() / 100, cents.unsigned_abs() % 100);
        let sign = if cents < 0 { "-" } else { "" };
        let number = format!("{}{decimal}{part:02}", grouped(&whole.to_string(), separator));
        let text = match unit {
            0 => format!("{sign}{number}"),
            1 => format!("{sign}${number}"),
            2 => format!("{sign}{number} €"),
            _ => format!("{sign}{number} %"),
        };
        let table = column(&[&text]).unwrap();
        let expected: f64 = format!("{sign}{whole}.{part:02}").parse().unwrap();
        prop_assert_eq!(numbers(&table, "x")[0].to_bits(), expected.to_bits(), "{}", text);
    }

    #[test]
    fn any_form_is_read_back_from_its_example_and_arbitrary_cells_never_panic(cell in "\\PC{0,12}", like in "[-0-9.,:/' TZ$%+]{0,12}") {
        for cell in [cell, like] {
            for form in CellForm::all() {
                prop_assert_eq!(CellForm::try_from(form.to_string()).unwrap(), form);
                prop_assert!(form.read(form.to_string().as_bytes()).is_some());
                let _ = form.read(cell.as_bytes());
            }
        }
    }
}
