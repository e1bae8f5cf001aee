//! Helpers that run the program as a user does.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

/// The program, independent of the tester's environment and terminal.
pub fn strust() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strust"));
    command.env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

/// Whether a test that needs a special resource can run. If the resource is not `available`, the test is skipped, or it
/// fails if `STRUST_REQUIRE` (names separated by commas) names the resource.
#[track_caller]
pub fn requires(resource: &str, available: bool) -> bool {
    let required = std::env::var("STRUST_REQUIRE").unwrap_or_default();
    let named = required.split(',').any(|name| name.trim() == resource);
    assert!(available || !named, "STRUST_REQUIRE names `{resource}`, but it is not available here");
    if !available {
        eprintln!("skipped: `{resource}` is not available here");
    }
    available
}

/// Edits that must change a text.
pub trait Edit {
    /// Replaces `from` by `to`. Panics if `from` does not occur, because the test would then test something else.
    fn edit(&self, from: &str, to: &str) -> String;
}

impl Edit for str {
    #[track_caller]
    fn edit(&self, from: &str, to: &str) -> String {
        assert!(self.contains(from), "{from:?} does not occur in:\n{self}");
        self.replace(from, to)
    }
}

/// A temporary folder for one test.
pub struct Folder(pub tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file in a temporary folder");
        path
    }
}

/// The exit code and the output of the program.
pub struct Finished {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

pub fn run(arguments: &[&str]) -> Finished {
    finished(&strust().args(arguments).output().expect("the program starts"))
}

pub fn finished(output: &Output) -> Finished {
    Finished {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into(),
        err: String::from_utf8_lossy(&output.stderr).into(),
    }
}

/// Asserts exit code 1 and a message with all of `parts`, but no panic.
#[track_caller]
pub fn fails(result: &Finished, parts: &[&str]) {
    refused(result, 1, parts);
}

/// The same with another exit code: 2 for wrong arguments.
#[track_caller]
pub fn refused(result: &Finished, code: i32, parts: &[&str]) {
    assert_eq!(result.code, Some(code), "{}", result.err);
    for part in parts {
        assert!(result.err.contains(part), "{part:?} is not in: {}", result.err);
    }
    assert!(!result.err.contains("panicked"), "{}", result.err);
}

/// The names of everything in a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The text of an experiment file with one problem.
pub fn experiment(problem: &str, methods: &str) -> String {
    format!("name = \"test\"\nepochs = 3\nbatch = 8\nseeds = 2\n\n[[problem]]\n{problem}\n\n{methods}\n")
}

/// This number of lines, such as rows of data.
pub fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect()
}

pub const SMALL: &str = "kind = \"subspace\"\nd = 20\nk = 2\nn = 40";

/// The contents of every `records.jsonl` in a results folder, by job.
pub fn records(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let jobs = std::fs::read_dir(folder.join("runs")).expect("a folder of jobs");
    jobs.map(|job| {
        let job = job.expect("a job");
        let bytes = std::fs::read(job.path().join("records.jsonl")).expect("its records");
        (job.file_name().to_string_lossy().into_owned(), bytes)
    })
    .collect()
}

/// Asserts that two folders have identical records. The message names the first different job and line.
#[track_caller]
pub fn same_records(one: &Path, other: &Path) {
    let (one, other) = (records(one), records(other));
    assert!(one.keys().eq(other.keys()), "jobs {:?} and {:?}", one.keys(), other.keys());
    for (job, bytes) in &one {
        let lines = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().map(String::from).collect::<Vec<_>>();
        let (a, b) = (lines(bytes), lines(&other[job]));
        for (i, (a, b)) in a.iter().zip(&b).enumerate() {
            assert!(a == b, "line {} of {job}:\n{a}\nand\n{b}", i + 1);
        }
        assert_eq!((a.len(), bytes.len()), (b.len(), other[job].len()), "length of {job}");
    }
}
