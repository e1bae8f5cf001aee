//! Input that is unusual but possible: names that are not text, pipes, endless files, huge lists, control characters.

use crate::support::{
    Edit, Finished, Folder, SMALL, experiment, fails, finished, lines, requires, run, same_records, strust,
};
use std::{
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const STR_P: &str = "[[method]]\nname = \"str-p\"\n";
const STR: &str = "[[method]]\nname = \"str\"\n";

fn rows() -> String {
    lines(40, |i| format!("{},{},{}\n", i % 7, (i * 5) % 11, i % 2))
}

#[cfg(unix)]
#[test]
fn names_that_are_not_utf8_work_everywhere() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let folder = Folder::new();
    let path = |name: &[u8]| folder.0.path().join(OsStr::from_bytes(name));
    let text = experiment("kind = \"logistic\"\ndata = \"data.csv\"", STR);
    for place in [&b"plain"[..], b"dir\xff"] {
        std::fs::create_dir(path(place)).unwrap();
        std::fs::write(path(place).join("data.csv"), rows()).unwrap();
        std::fs::write(path(place).join("e.toml"), &text).unwrap();
    }
    let call = |command: &mut Command| {
        let result = finished(&command.output().unwrap());
        assert!(result.code == Some(0) && !result.err.contains("panicked"), "{command:?}: {}", result.err);
        result
    };
    let out = path(b"out\xff");
    call(strust().arg("run").arg(path(b"plain").join("e.toml")).arg("--out").arg(path(b"right")).arg("-q"));
    call(strust().arg("run").arg(path(b"dir\xff").join("e.toml")).arg("--out").arg(&out).arg("-q"));
    same_records(&out, &path(b"right"));
    // The data are found again.
    std::fs::remove_dir_all(out.join("runs/logistic.str.s1")).unwrap();
    for command in ["resume", "report", "diagnose"] {
        call(strust().arg(command).arg(&out).arg("-q"));
    }
    same_records(&out, &path(b"right"));
    call(strust().arg("report").arg(&out).arg(path(b"right")).arg("--out").arg(path(b"both\xff")).arg("--json"));
    call(strust().arg("run").arg("e.toml").arg("-q").current_dir(path(b"dir\xff")));

    let (data, model) = (path(b"rows\xff.csv"), path(b"model\xff.json"));
    std::fs::write(&data, rows()).unwrap();
    let fit = call(strust().arg("fit").arg(&data).args(["--target", "3", "--json", "--save"]).arg(&model));
    serde_json::from_str::<serde_json::Value>(&fit.out).expect("JSON");
    let predicted = path(b"predicted\xff.csv");
    call(strust().arg("predict").arg(&model).arg(&data).arg("--json").arg("--out").arg(&predicted));
    call(strust().arg("evaluate").arg(&model).arg(&data));
    call(strust().arg("inspect").arg(&model));
    assert_eq!(std::fs::read_to_string(predicted).unwrap().lines().count(), 41);

    for arguments in [&["list"][..], &["run", "subspace-small", "--set"], &["reproduce"]] {
        let result = finished(&strust().args(arguments).arg(OsStr::from_bytes(b"bad\xff")).output().unwrap());
        assert!(result.code == Some(2) && !result.err.contains("panicked"), "{arguments:?}: {}", result.err);
    }
}

/// Runs the program with an input that comes from a pipe.
fn piped(arguments: &[&str], input: &[u8]) -> Finished {
    let mut command = strust();
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The program may end before it has read everything.
    let _ = child.stdin.take().unwrap().write_all(input);
    finished(&child.wait_with_output().unwrap())
}

#[cfg(unix)]
#[test]
fn an_experiment_from_a_pipe_is_read_once() {
    let folder = Folder::new();
    let out = |name: &str| folder.path(name).to_str().unwrap().to_string();
    let text = experiment(SMALL, STR_P);
    let file = folder.write("experiment.toml", &text);
    assert_eq!(run(&["run", file.to_str().unwrap(), "--out", &out("right"), "-q"]).code, Some(0));
    let result = piped(&["run", "/dev/stdin", "--out", &out("piped"), "-q"], text.as_bytes());
    assert_eq!(result.code, Some(0), "{}", result.err);
    same_records(&folder.path("right"), &folder.path("piped"));
    let theory = "name = \"steps\"\ntheory = \"step-length\"\nseeds = 1\n";
    let result = piped(&["run", "/dev/stdin", "--out", &out("theory"), "-q"], theory.as_bytes());
    assert_eq!(result.code, Some(0), "{}", result.err);
}

#[cfg(unix)]
#[test]
fn inputs_without_an_end_are_refused() {
    let begun = Instant::now();
    let folder = Folder::new();
    let data = folder.write("data.csv", &rows());
    fails(&run(&["run", "/dev/zero"]), &["/dev/zero: it has more than 67108864 bytes"]);
    fails(
        &run(&["fit", "/dev/zero", "--target", "1"]),
        &["/dev/zero: this is not a file: save the rows to a file first"],
    );
    fails(
        &piped(&["fit", "/dev/stdin"], b"1 1:1\n-1 1:2\n"),
        &["/dev/stdin: this is not a file: save the rows to a file first, or use - for standard input"],
    );
    fails(&run(&["inspect", "/dev/zero"]), &["/dev/zero: it is not a regular file"]);
    for source in ["/dev/zero", "/dev/stdin"] {
        let text = experiment(&format!("kind = \"logistic\"\ndata = \"{source}\""), STR);
        let file = folder.write("experiment.toml", &text);
        let result = piped(&["run", file.to_str().unwrap()], rows().as_bytes());
        fails(&result, &["the data must be in a file, because every job reads them"]);
    }
    // A file that the program reads back may be a link to a device.
    let out = folder.path("out");
    let file = folder.write("experiment.toml", &experiment(SMALL, STR_P));
    assert_eq!(run(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "-q"]).code, Some(0));
    for name in ["runs/subspace.str-p.s0/checkpoint.bin", "plan.json"] {
        std::fs::remove_file(out.join(name)).unwrap();
        std::os::unix::fs::symlink("/dev/zero", out.join(name)).unwrap();
        fails(&run(&["report", out.to_str().unwrap()]), &["it is not a regular file"]);
    }
    assert!(data.exists() && begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

/// Compresses bytes with the program `gzip`.
fn gzip(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut child = Command::new("gzip").arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    let (mut stdin, bytes) = (child.stdin.take()?, bytes.to_vec());
    let writer = std::thread::spawn(move || stdin.write_all(&bytes));
    let output = child.wait_with_output().ok()?;
    writer.join().ok()?.ok()?;
    Some(output.stdout)
}

#[test]
fn a_small_file_that_unpacks_to_a_huge_one_is_refused() {
    if !requires("gzip", gzip(b"a").is_some()) {
        return;
    }
    let folder = Folder::new();
    // The whole array would be 3 GB, and 24 GB in memory.
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (1000000, 3000), }\n";
    let npy = [b"\x93NUMPY\x01\x00", &[header.len() as u8, 0][..], header.as_bytes(), &vec![0; 3_000_000]].concat();
    std::fs::write(folder.path("data.npy.gz"), gzip(&npy).unwrap()).unwrap();
    std::fs::write(folder.path("data.csv.gz"), gzip("1,1,0\n1,2,1\n".repeat(8 << 20).as_bytes()).unwrap()).unwrap();
    for (name, expected) in [
        ("data.npy.gz", "the header announces 1000000×3000 numbers, but at most 33554432 are read"),
        ("data.csv.gz", "the file unpacks to more than 100 times its length: if you trust it, unpack it first"),
    ] {
        let text = experiment(&format!("kind = \"logistic\"\ndata = \"{name}\""), STR);
        let file = folder.write("experiment.toml", &text);
        fails(&run(&["run", file.to_str().unwrap(), "--out", folder.path("out").to_str().unwrap()]), &[expected]);
        fails(&run(&["fit", folder.path(name).to_str().unwrap(), "--target", "1"]), &[expected]);
    }
    // A file of ordinary size that is very regular is fine.
    std::fs::write(folder.path("data.csv.gz"), gzip("1,1,0\n1,2,1\n".repeat(50_000).as_bytes()).unwrap()).unwrap();
    let text = experiment("kind = \"logistic\"\ndata = \"data.csv.gz\"\nrows = 41", STR);
    let file = folder.write("experiment.toml", &text);
    let result = run(&["run", file.to_str().unwrap(), "--out", folder.path("out").to_str().unwrap(), "-q"]);
    assert_eq!(result.code, Some(0), "{}", result.err);
}

fn list(count: usize, scale: f64) -> String {
    (1..=count).map(|i| (i as f64 * scale).to_string()).collect::<Vec<_>>().join(", ")
}

#[test]
fn lists_of_many_thousands_are_checked_in_seconds() {
    let folder = Folder::new();
    let limit = Duration::from_secs(20);
    let plain = experiment("kind = \"least-squares\"\nn = 40\nd = 4", STR);
    let grid = |count: usize| plain.edit("\"str\"\n", &format!("\"str\"\ninitial_radius = [{}]\n", list(count, 1e-3)));
    let names = lines(9000, |i| format!("[[method]]\nname = \"str\"\nlabel = \"m{i}\"\n"));
    for (text, seeds, code, expected) in [
        (plain.edit("seeds = 2", &format!("seeds = [{}]", list(999_999, 1.0))), None, 2, "more than 100000 jobs"),
        (plain.edit("seeds = 2", &format!("seeds = [{}, 7]", list(900_000, 1.0))), None, 1, "`seeds` must be"),
        (grid(30_000), Some("4"), 2, "more than 100000 jobs"),
        (grid(30_000).edit("[0.001,", "[0.001, 0.5,"), None, 1, "`initial_radius` has a value twice"),
        (plain.edit("d = 4", &format!("d = [{}]", list(30_000, 1.0))), Some("4"), 2, "more than 100000 jobs"),
        (format!("{plain}{names}"), Some("20"), 2, "more than 100000 jobs"),
    ] {
        let file = folder.write("experiment.toml", &text);
        let begun = Instant::now();
        let (out, seeds) = (folder.path("out"), seeds.map_or_else(Vec::new, |seeds| vec!["--seeds", seeds]));
        let result =
            run(&[&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "-q"], &seeds[..]].concat());
        assert_eq!(result.code, Some(code), "{}", result.err);
        assert!(result.err.contains(expected), "{expected}: {}", &result.err[..result.err.len().min(400)]);
        assert!(begun.elapsed() < limit, "{expected}: {:?}", begun.elapsed());
    }
}

#[test]
fn a_run_of_five_hundred_settings_has_a_report() {
    let folder = Folder::new();
    let methods = format!("[[method]]\nname = \"sgd\"\nlearning_rate = [{}]\n", list(500, 1e-4));
    let text = experiment("kind = \"least-squares\"\nn = 16\nd = 4", &methods);
    let text = text.edit("epochs = 3", "epochs = 1").edit("seeds = 2", "seeds = 1");
    let (file, out) = (folder.write("experiment.toml", &text), folder.path("out"));
    let result = run(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "-q"]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    assert!(out.join("report.html").is_file() && out.join("figures/least-squares-objective_gap-epoch.png").is_file());
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("sgd learning_rate=0.05") && page.contains("488 others"));
}

#[test]
fn names_that_are_too_long_for_the_files_of_figures_are_refused_at_once() {
    let folder = Folder::new();
    let refused = |text: &str, expected: &str| {
        let file = folder.write("experiment.toml", text);
        fails(&run(&["run", file.to_str().unwrap(), "--out", folder.path("out").to_str().unwrap()]), &[expected]);
        assert!(!folder.path("out").exists());
    };
    let (text, long) = (experiment(SMALL, STR_P), "x".repeat(101));
    refused(&text.edit("\"test\"", &format!("\"{long}\"")), "experiment.toml:1: `name` is");
    refused(&text.edit("d = 20", &format!("d = 20\nname = \"{long}\"")), "must be a text of 1 to 100 characters");
    let varied = text.edit("d = 20", &format!("d = [20, 30]\nnoise = [0.125, 0.25]\nname = \"{}\"", &long[..95]));
    refused(&varied, "experiment.toml:6: the problem would have a name of 112 characters, but at most 110 are allowed");
    // The longest names work, also in a comparison.
    let most = text.edit("\"test\"", &format!("\"{}\"", &long[..100])).edit("seeds = 2", "seeds = 1");
    let most = most.edit("d = 20", &format!("d = [20, 30]\nname = \"{}\"", &long[..100]));
    let file = folder.write("experiment.toml", &most);
    let out = |name: &str| folder.path(name).to_str().unwrap().to_string();
    for name in ["a", "b"] {
        let result = run(&["run", file.to_str().unwrap(), "--out", &out(name), "-q"]);
        assert_eq!(result.code, Some(0), "{}", result.err);
    }
    let result = run(&["report", &out("a"), &out("b"), "--out", &out("both")]);
    assert_eq!(result.code, Some(0), "{}", result.err);
}

/// Asserts that nothing a terminal obeys is in the output.
#[track_caller]
fn harmless(result: &Finished) {
    let bad = |text: &str| text.chars().any(|c| c.is_control() && c != '\n' && c != '\t');
    assert!(!bad(&result.out) && !bad(&result.err), "{:?} {:?}", result.out, result.err);
}

#[test]
fn control_characters_of_files_do_not_reach_the_terminal() {
    let folder = Folder::new();
    let text = experiment(SMALL, STR_P);
    let start = |text: &str| {
        let file = folder.write("experiment.toml", text);
        let result = run(&["run", file.to_str().unwrap(), "--out", folder.path("out").to_str().unwrap()]);
        harmless(&result);
        result
    };
    for (edited, expected) in [
        (format!("title = \"a\\u001b[2Jb\"\n{text}"), "experiment.toml:1: `title` has the control character U+001B"),
        (format!("title = \"a\\nb\"\n{text}"), "`title` has the control character U+000A"),
        (format!("description = \"a\\u009b2J\"\n{text}"), "`description` has the control character U+009B"),
        (text.edit("\"str-p\"\n", "\"str-p\"\nlabel = \"a\\nb\"\n"), "`label` has the control character U+000A"),
        (text.edit("d = 20", "d = 20\nname = \"a\\u0007\""), "without control characters"),
        (format!("\"a\\u001b[31mb\" = 1\n{text}"), "unknown key `a\u{fffd}[31mb`"),
        (text.edit("\"str-p\"", "\"str\\u001b[31m\""), "unknown method `str\u{fffd}[31m`"),
    ] {
        fails(&start(&edited), &[expected]);
    }
    let result = start(&format!("description = \"two\\nlines\"\n{text}"));
    assert_eq!(result.code, Some(0), "{}", result.err);

    // A plan that somebody has edited, and results that somebody has published.
    let out = folder.path("out");
    let (out, kept) = (out.to_str().unwrap(), folder.path("kept"));
    assert_eq!(run(&["report", out, "--publish", kept.to_str().unwrap()]).code, Some(0));
    let edit = |path: &Path, from: &str, to: &str| {
        std::fs::write(path, std::fs::read_to_string(path).unwrap().edit(from, to)).unwrap();
    };
    edit(&folder.path("out/plan.json"), "\"title\": \"test\"", "\"title\": \"a\\u001b]0;owned\\u0007\\u009b2J\"");
    let result = run(&["resume", out]);
    harmless(&result);
    assert!(result.code == Some(0) && result.out.contains("a\u{fffd}]0;owned"), "{} {}", result.out, result.err);
    for arguments in [&["report", out, "--markdown"][..], &["report", out, "--json"], &["diagnose", out]] {
        let result = run(arguments);
        harmless(&result);
        assert_eq!(result.code, Some(0), "{}", result.err);
    }
    edit(&kept.join("summary.json"), "\"label\": \"str-p\"", "\"label\": \"a\\n<!-- /strust -->\"");
    let result = run(&["report", kept.to_str().unwrap(), "--markdown"]);
    fails(&result, &["summary.json: the file was edited: a name in it has the control character U+000A"]);
}

#[cfg(unix)]
#[test]
fn tables_in_a_file_can_be_replaced_whatever_the_names_are() {
    let folder = Folder::new();
    let data = "a\n<!-- -->\n<!-- -->.csv";
    // A slash cannot be in the name of a file, so the label has the marker itself.
    folder.write(data, &rows());
    let methods = "[[method]]\nname = \"str\"\nlabel = \"<!-- /strust -->\"\n";
    let problem = format!("kind = \"logistic\"\ndata = {data:?}");
    folder.write("experiment.toml", &experiment(&problem, methods));
    let call = |arguments: &[&str]| {
        let result = finished(&strust().args(arguments).current_dir(folder.0.path()).output().unwrap());
        assert_eq!(result.code, Some(0), "{}", result.err);
        harmless(&result);
    };
    call(&["run", "experiment.toml", "--out", "out"]);
    let readme = folder.write("README.md", "before\n<!-- strust:test -->\nold\n<!-- /strust -->\nafter\n");
    call(&["report", "out", "--into", "README.md"]);
    let first = std::fs::read_to_string(&readme).unwrap();
    call(&["report", "out", "--into", "README.md"]);
    assert_eq!(std::fs::read_to_string(&readme).unwrap(), first);
    assert!(first.starts_with("before\n") && first.ends_with("<!-- /strust -->\nafter\n"), "{first}");
    assert_eq!(first.matches("<!--").count(), 2, "{first}");
    assert!(first.contains("| &lt;!-- /strust --> |"), "{first}");
}
