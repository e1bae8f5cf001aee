//! `strust fit`, `predict` and `evaluate` with data as people have them, from files and from standard input.

use crate::support::{Finished, Folder, finished, lines, names, strust};
use std::{io::Write as _, process::Stdio};

fn go(folder: &Folder, arguments: &[&str], input: &str) -> Finished {
    let mut command = strust();
    command.args(arguments).current_dir(folder.0.path()).env("TMPDIR", folder.path("tmp"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    // A program that reads a file does not read its input.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    finished(&child.wait_with_output().expect("the program ends"))
}

fn folder() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("tmp")).unwrap();
    folder
}

fn notes(result: &Finished) -> Vec<&str> {
    assert_eq!(result.code, Some(0), "{}", result.err);
    result.out.lines().filter_map(|line| line.strip_prefix("note: ")).collect()
}

#[track_caller]
fn fails_with(result: &Finished, message: &str) {
    assert_eq!((result.code, result.err.as_str()), (Some(1), message));
}

/// Sales: a number of each row, a price, a date, an age with missing values, and the target.
fn sales(rows: usize) -> String {
    let row = |i: usize| {
        let (price, day) = (1000 + i * 37 % 500, i * 29 % 28 + 1);
        let age = ["-", "unknown", "40", "50", "60", "30", "20"][i % 7];
        let (thousands, rest) = (price / 1000, price % 1000);
        format!("{i};${thousands},{rest:03};{}-{:02}-{day:02};{age};{}\n", 2020 + i % 3, i % 12 + 1, 2 * price + day)
    };
    format!("id;price;day;age;y\n{}", lines(rows, row))
}

#[test]
fn a_dirty_file_is_read_with_notes_and_the_model_reads_new_files_in_the_same_way() {
    let folder = folder();
    folder.write("sales.csv", &sales(210));
    let result = go(&folder, &["fit", "sales.csv", "--target", "y"], "");
    assert_eq!(
        notes(&result)[..5],
        [
            "`price` is read as numbers such as `$1,000` = 1000",
            "`day` is read as a date: days, month and weekday",
            "30 cells `-` and 30 cells `unknown` in `age` are read as blanks",
            "left out `id`: it numbers the rows from 0 to 209. If it matters, use --keep id",
            "60 blank cells in `age`: a blank number becomes the mean, a blank text a category of its own",
        ]
    );
    let kept = go(&folder, &["fit", "sales.csv", "--target", "y", "--keep", "id"], "");
    assert!(!notes(&kept).iter().any(|note| note.contains("`id`")), "{}", kept.out);
    let model = std::fs::read_to_string(folder.path("model.json")).unwrap();
    assert!(model.contains("\"form\": \"$1,234.5\"") && model.contains("\"form\": \"2024-12-31\""), "{model}");
    folder.write("new.csv", "day,price,age\n2021-05-31,\"$1,234\",n.a.\n2021-05-31,1234,\n");
    let result = go(&folder, &["predict", "model.json", "new.csv"], "");
    assert_eq!(result.code, Some(0), "{}", result.err);
    let predictions: Vec<&str> = result.out.lines().skip(1).collect();
    assert!(predictions.len() == 2 && predictions[0] == predictions[1], "{}", result.out);
    folder.write("euro.csv", "day,price,age\n2021-05-31,1234 €,\n");
    let result = go(&folder, &["predict", "model.json", "euro.csv"], "");
    let why = "error: euro.csv:2: \"1234 €\" in column `price` is not written like $1,234.5, as the model needs it\n";
    fails_with(&result, why);
}

#[test]
fn all_columns_that_cannot_be_read_are_in_one_error_and_nothing_is_written() {
    let folder = folder();
    let row = |i: usize| format!("{};{}/{}/24;{}\n", ["2", "3+", "1"][i % 3], i % 9 + 1, i % 7 + 1, i * i);
    folder.write("a.csv", &format!("rooms;day;y\n{}", lines(60, row)));
    let result = go(&folder, &["fit", "a.csv", "--target", "y"], "");
    fails_with(
        &result,
        "error: a.csv: 2 columns cannot be used:\n  \
         a.csv:3: \"3+\" is not a number, but 40 of 60 cells of column `rooms` are. Fix or blank the 20 such cells, or \
         read the column as words with --category rooms, or leave the column out with --drop rooms\n  \
         a.csv:2: column `day` holds dates, such as \"1/1/24\", and none of them shows whether the day or the month comes \
         first. Write them as 2024-12-31, or leave the column out with --drop day\n",
    );
    assert_eq!(names(folder.0.path()), ["a.csv", "tmp"]);
    let result = go(&folder, &["fit", "a.csv", "--target", "y", "--category", "rooms", "--drop", "day"], "");
    assert!(notes(&result).is_empty(), "{}", result.out);
    let result = go(&folder, &["fit", "a.csv", "--target", "y", "--drop", "day", "--keep", "room"], "");
    assert_eq!(result.code, Some(1));
}

/// The same rows as CSV and as JSON lines.
fn rows(count: usize) -> [String; 2] {
    let color = |i: usize| ["red", "blue"][i % 2];
    let number = |i: usize| i * 37 % 101;
    let y = |i: usize| 3 * number(i) + 100 * (i % 2);
    let csv = lines(count, |i| format!("{},{},{}\n", number(i), color(i), y(i)));
    let json = |i: usize| format!("{{\"x\": {}, \"color\": \"{}\", \"y\": {}}}\n", number(i), color(i), y(i));
    [format!("x,color,y\n{csv}"), lines(count, json)]
}

#[test]
fn json_lines_and_standard_input_give_the_model_of_a_csv_file() {
    let folder = folder();
    let [csv, json] = rows(200);
    folder.write("a.csv", &csv);
    folder.write("a.jsonl", &json);
    let predicted = |data: &str, input: &str| {
        let save = folder.path("m.json");
        let save = save.to_str().unwrap();
        let result = go(&folder, &["fit", data, "--target", "y", "--save", save], input);
        assert_eq!(result.code, Some(0), "{}", result.err);
        let model: serde_json::Value = serde_json::from_slice(&std::fs::read(save).unwrap()).unwrap();
        let by_file = go(&folder, &["predict", save, "a.csv"], "");
        let by_input = go(&folder, &["predict", save, "-"], &json);
        assert_eq!((by_input.code, &by_input.out), (Some(0), &by_file.out), "{}", by_input.err);
        // Kept columns are read by themselves, also from standard input.
        let keeps = |from: &str, input: &str| go(&folder, &["predict", save, from, "--keep", "color"], input).out;
        assert_eq!(keeps("-", &csv), keeps("a.csv", ""));
        let scores = go(&folder, &["evaluate", save, "-"], &csv);
        assert!(scores.out.starts_with("R² "), "{}", scores.err);
        (by_file.out, model["data"]["file"].as_str().unwrap().to_string())
    };
    let (expected, file) = predicted("a.csv", "");
    assert_eq!((expected.lines().count(), file.as_str()), (201, "a.csv"));
    for (data, input, origin) in
        [("a.jsonl", "", "a.jsonl"), ("-", csv.as_str(), "standard input"), ("-", json.as_str(), "standard input")]
    {
        assert_eq!(predicted(data, input), (expected.clone(), origin.to_string()), "{data}");
    }
    assert!(names(&folder.path("tmp")).is_empty());
}

#[test]
fn wrong_standard_input_is_an_error_that_names_it_and_leaves_no_file() {
    let folder = folder();
    for (input, why) in [
        ("", "standard input: the file is empty; expected a header and rows"),
        (
            "x,y\n1,2\n3\n",
            "standard input:3: 1 field, but the first line has 2: is a comma or a quote missing or too many?",
        ),
        (
            "{\"x\": 1, \"y\": 2}\n{\"x\": {\"y\": 1}}\n",
            "standard input:2:7: invalid type: map, expected a number, a text, true, false or null; write one JSON object \
             per line, with numbers, texts, true, false and null",
        ),
    ] {
        fails_with(&go(&folder, &["fit", "-", "--target", "y"], input), &format!("error: {why}\n"));
    }
    assert_eq!(names(folder.0.path()), ["tmp"]);
    assert!(names(&folder.path("tmp")).is_empty());
}

/// Ctrl-C while the program waits for input removes the temporary file.
#[cfg(unix)]
#[test]
fn a_signal_during_standard_input_leaves_no_file() {
    let folder = folder();
    let mut command = strust();
    command.args(["fit", "-", "--target", "y"]).current_dir(folder.0.path()).env("TMPDIR", folder.path("tmp"));
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"x,y\n1,2\n").unwrap();
    // The file exists once the program reads.
    while names(&folder.path("tmp")).is_empty() {
        std::thread::yield_now();
    }
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let result = finished(&child.wait_with_output().unwrap());
    drop(input);
    fails_with(&result, "error: stopped; nothing was written\n");
    assert!(names(&folder.path("tmp")).is_empty());
}
