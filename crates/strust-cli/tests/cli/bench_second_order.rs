//! `strust bench second-order`.

use crate::support::run;

#[test]
fn options_of_the_comparison_need_the_benchmark() {
    for option in ["--data", "--reference"] {
        let result = run(&["bench", "constraints", option, "."]);
        let expected = "--data and --reference are only for `strust bench second-order`";
        assert_eq!((result.code, result.err.contains(expected)), (Some(2), true), "{}", result.err);
    }
}

#[test]
fn wrong_files_and_folders_are_refused_before_the_runs() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    };
    let missing = folder.path().join("missing").display().to_string();
    let other = file("other.json", "{\"problems\": 3}");
    let unknown = file("unknown.json", "{\"problems\": [{\"name\": \"sphere\", \"methods\": []}]}");
    for (option, value, code, expected) in [
        ("--reference", &missing, 1, "missing: cannot read"),
        ("--reference", &other, 1, "other.json: this is not a file of scripts/second-order-reference.py"),
        ("--reference", &unknown, 1, "unknown.json: there is no problem `sphere`"),
        ("--data", &missing, 2, "missing: there is no such folder"),
    ] {
        let result = run(&["bench", "second-order", option, value]);
        assert_eq!((result.code, result.err.contains(expected)), (Some(code), true), "{}", result.err);
    }
}
