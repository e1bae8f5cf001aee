//! Snapshots of help and list output.

use crate::support::run;
use std::{fmt::Write as _, path::Path};

/// Compares the output of a command with a file beside this one.
#[track_caller]
fn matches(name: &str, arguments: &[&str]) {
    same(&format!("tests/cli/snapshots/{name}.txt"), &run(arguments).out);
}

/// Compares a text with a file. With `STRUST_UPDATE` set, it writes the file instead.
#[track_caller]
fn same(name: &str, out: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if std::env::var_os("STRUST_UPDATE").is_some() {
        std::fs::write(&file, out).unwrap();
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

/// The page of the site with the help of every command.
#[test]
fn the_page_of_the_command_line_has_the_help_of_every_command() {
    let help = run(&["--help"]).out;
    let listed = help.split("\nCommands:\n").nth(1).expect("the help lists the commands").lines();
    let names =
        listed.take_while(|line| !line.is_empty()).filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let mut page = String::from(
        "# Look up a command\n\nAfter this page you know every command of the program and its options. The text is that \
         of `--help`.\n\n<!-- strust:generated -->\n",
    );
    for name in std::iter::once("").chain(names.filter_map(|line| line.split_whitespace().next())) {
        let arguments: Vec<&str> = [name, "--help"].into_iter().filter(|argument| !argument.is_empty()).collect();
        let title = ["strust", name].join(" ");
        let (title, help) = (title.trim_end(), run(&arguments).out);
        writeln!(page, "\n## {title}\n\n```text\n{}\n```", help.trim_end()).unwrap();
    }
    assert!(page.matches("\n## ").count() > 10, "{page}");
    same("../../docs/reference/command-line.md", &(page + "\n<!-- /strust:generated -->\n"));
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    for (arguments, has) in [
        (&["completions", "bash"][..], "--target"),
        (&["completions", "zsh"], "#compdef strust"),
        (&["completions", "fish"], "-l target"),
        (&["man"], ".TH strust 1"),
        (&["man", "fit"], "\\-\\-target"),
    ] {
        let result = run(arguments);
        assert!(result.code == Some(0) && result.out.contains(has), "{arguments:?}: {} {}", result.out, result.err);
    }
    let wrong = run(&["man", "nothing"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("'nothing' is no command"), "{}", wrong.err);
}
