//! Snapshots of help and list output.

use crate::support::run;
use std::path::Path;

/// Compares the output of a command with a file beside this one. With `STRUST_UPDATE` set, it writes the file instead.
#[track_caller]
fn matches(name: &str, arguments: &[&str]) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/cli/snapshots/{name}.txt"));
    let out = run(arguments).out;
    if std::env::var_os("STRUST_UPDATE").is_some() {
        std::fs::write(&file, &out).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap();
    let both = expected.lines().zip(out.lines()).find(|(expected, found)| expected != found);
    assert!(out == expected, "{name}: {both:#?}; set STRUST_UPDATE=1 if it shall change\n{out}");
}

#[test]
fn help_and_list_match_the_snapshots() {
    matches("help", &["--help"]);
    matches("help_run", &["run", "--help"]);
    matches("help_data", &["data", "--help"]);
    matches("list", &["list"]);
    matches("list_str_newton", &["list", "str-newton"]);
}
