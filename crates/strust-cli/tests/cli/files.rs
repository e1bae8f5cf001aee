//! What a command reads and writes: every file of a run is read again, nothing is written through a link or over an
//! input, only regular files are read, and what comes from a file means nothing to a shell.

use crate::support::{Edit, Finished, Folder, SMALL, experiment, fails, finished, lines, names, refused, strust};
use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const STR_P: &str = "[[method]]\nname = \"str-p\"\n";
const STR: &str = "[[method]]\nname = \"str\"\n";

/// Runs the program in a folder.
fn go(folder: &Folder, arguments: &[&str]) -> Finished {
    finished(&strust().args(arguments).current_dir(folder.0.path()).output().unwrap())
}

#[track_caller]
fn done(folder: &Folder, arguments: &[&str]) -> Finished {
    let result = go(folder, arguments);
    assert_eq!(result.code, Some(0), "{arguments:?}: {}", result.err);
    result
}

/// Runs an experiment, with the results in the folder `out`.
#[track_caller]
fn ran(folder: &Folder, text: &str) {
    folder.write("experiment.toml", text);
    done(folder, &["run", "experiment.toml", "--out", "out", "-q"]);
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Rows of pseudo-random numbers in [−1, 1] times a factor, each with this end.
fn rows(count: usize, scale: f64, end: impl Fn(usize) -> &'static str) -> String {
    let number = |i: usize| scale * ((i * 7919 % 1009) as f64 / 504.5 - 1.0);
    lines(count, |i| lines(4, |j| format!("{:e},", number(4 * i + j + 1))) + end(i) + "\n")
}

#[test]
fn every_command_reads_a_run_whose_numbers_underflow() {
    let cases = [
        ("kind = \"factorization\"", "str-gauss-newton", 60, rows(40, 0.0, |_| "0")),
        ("kind = \"factorization\"", "auto", 10, rows(40, 0.0, |_| "0")),
        ("kind = \"least-squares\"", "str", 250, rows(40, 1.5, |_| "0")),
        ("kind = \"least-squares\"", "str-lbfgs", 5, rows(40, 1e150, |_| "1e150")),
        ("kind = \"autoencoder\"\nhidden = \"3\"", "auto", 3, rows(40, 1e-40, |i| ["0", "1"][i % 2])),
    ];
    for (problem, method, epochs, data) in cases {
        let folder = Folder::new();
        folder.write("data.csv", &data);
        let text =
            experiment(&format!("{problem}\ndata = \"data.csv\""), &format!("[[method]]\nname = \"{method}\"\n"));
        let text = text.edit("epochs = 3", &format!("epochs = {epochs}")).edit("seeds = 2", "seeds = 1");
        folder.write("experiment.toml", &text);
        // A run that overflows is reported as failed; a file that cannot be read is another error.
        let readable = |arguments: &[&str]| {
            let result = go(&folder, arguments);
            let ended = result.code == Some(0) || result.err.contains("1 run failed");
            assert!(ended && !result.err.contains("null"), "{method} {arguments:?}: {}", result.err);
        };
        readable(&["run", "experiment.toml", "--out", "out", "-q"]);
        for command in ["resume", "report", "diagnose"] {
            readable(&[command, "out", "-q"]);
        }
        readable(&["report", "out", "--publish", "kept", "-q"]);
        readable(&["report", "kept", "-q"]);
    }
}

#[test]
fn reductions_that_underflow_have_the_ratio_one() {
    let folder = Folder::new();
    folder.write("data.csv", &rows(40, 1.5, |_| "0"));
    let text = experiment("kind = \"least-squares\"\ndata = \"data.csv\"", STR);
    ran(&folder, &text.edit("epochs = 3", "epochs = 250").edit("seeds = 2", "seeds = 1"));
    let records = read(&folder.path("out/runs/least-squares.str.s0/records.jsonl"));
    let underflows = |line: &&str| line.contains("\"value\":0.0,") && line.contains("\"trial\":0.0,\"predicted\":0.0,");
    let found: Vec<&str> = records.lines().filter(underflows).collect();
    assert!(!found.is_empty() && found.iter().all(|line| line.contains("\"ratio\":1.0,")), "{found:#?}");
}

#[test]
fn records_with_null_of_an_earlier_program_are_read() {
    let folder = Folder::new();
    ran(&folder, &experiment("kind = \"least-squares\"\nn = 40\nd = 5", STR));
    let job = folder.path("out/runs/least-squares.str.s0");
    // Without a checkpoint the run is unfinished, and its records have no checksum.
    std::fs::remove_file(job.join("checkpoint.bin")).unwrap();
    let records = read(&job.join("records.jsonl"));
    for field in ["step_size", "step_length", "predicted", "radius", "ratio"] {
        let nulls = |line: &str| match line.split_once(&format!("\"{field}\":")) {
            Some((start, rest)) => format!("{start}\"{field}\":null{}\n", &rest[rest.find([',', '}']).unwrap()..]),
            None => format!("{line}\n"),
        };
        let edited: String = records.lines().map(nulls).collect();
        assert_ne!(edited, records);
        std::fs::write(job.join("records.jsonl"), edited).unwrap();
        for command in ["report", "diagnose"] {
            done(&folder, &[command, "out", "-q"]);
        }
    }
    done(&folder, &["resume", "out", "-q"]);
    assert_eq!(read(&job.join("records.jsonl")), records);
}

#[cfg(unix)]
mod links {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Replaces a file or folder by a link to a copy of it, in the folder `outside`.
    fn linked(folder: &Folder, name: &str) -> std::path::PathBuf {
        let (path, outside) = (folder.path(name), folder.path("outside"));
        std::fs::create_dir_all(&outside).unwrap();
        let target = outside.join(path.file_name().unwrap());
        std::fs::rename(&path, &target).unwrap();
        symlink(&target, &path).unwrap();
        target
    }

    #[test]
    fn no_command_writes_through_a_link_in_a_folder_of_results() {
        let text = experiment(SMALL, STR_P);
        let job = "out/runs/subspace.str-p.s0";
        let (records, checkpoint) = (format!("{job}/records.jsonl"), format!("{job}/checkpoint.bin"));
        for (name, commands) in [
            ("out/report.html", &[&["report", "out", "-q"][..], &["resume", "out", "-q"]][..]),
            ("out/figures", &[&["report", "out", "-q"], &["resume", "out", "-q"]]),
            ("out/summary.json", &[&["resume", "out", "-q"]]),
            ("out/plan.json", &[&["resume", "out", "-q", "--epochs", "5"]]),
            ("out/runs", &[&["resume", "out", "-q", "--epochs", "5"]]),
            (job, &[&["resume", "out", "-q", "--epochs", "5"]]),
            (&records, &[&["resume", "out", "-q", "--epochs", "5"]]),
            (&checkpoint, &[&["resume", "out", "-q", "--epochs", "5"]]),
        ] {
            let folder = Folder::new();
            ran(&folder, &text);
            let target = linked(&folder, name);
            if target.is_dir() {
                // Temporary files of others stay.
                std::fs::write(target.join(".strust-other.tmp"), "other").unwrap();
            }
            let before = contents(&target);
            for command in commands {
                let result = go(&folder, command);
                let file = Path::new(name).file_name().unwrap().to_str().unwrap();
                fails(&result, &[file, "cannot be written: this is a link"]);
                assert_eq!(contents(&target), before, "{command:?} has changed what {name} leads to");
            }
        }
    }

    /// The names and contents of everything in a folder, or of a file.
    fn contents(path: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
        if !path.is_dir() {
            return vec![(path.into(), std::fs::read(path).unwrap())];
        }
        names(path).iter().flat_map(|name| contents(&path.join(name))).collect()
    }

    #[test]
    fn results_are_published_through_no_link() {
        let folder = Folder::new();
        ran(&folder, &experiment(SMALL, STR_P));
        std::fs::create_dir_all(folder.path("kept")).unwrap();
        std::fs::create_dir_all(folder.path("outside")).unwrap();
        symlink(folder.path("outside"), folder.path("kept/figures")).unwrap();
        fails(&go(&folder, &["report", "out", "--publish", "kept", "-q"]), &["kept/figures: cannot be written"]);
        assert_eq!(names(&folder.path("outside")), [""; 0]);
    }

    #[test]
    fn a_log_with_a_second_name_is_not_changed() {
        let folder = Folder::new();
        ran(&folder, &experiment(SMALL, STR_P));
        let records = folder.path("out/runs/subspace.str-p.s0/records.jsonl");
        std::fs::hard_link(&records, folder.path("second.jsonl")).unwrap();
        let before = read(&records);
        fails(&go(&folder, &["resume", "out", "-q", "--epochs", "5"]), &["records.jsonl", "a second name"]);
        assert_eq!(read(&folder.path("second.jsonl")), before);
        // A finished run needs no log to be written.
        std::fs::remove_file(folder.path("second.jsonl")).unwrap();
        done(&folder, &["resume", "out", "-q"]);
    }

    #[test]
    fn a_folder_that_the_user_names_may_be_a_link() {
        let folder = Folder::new();
        ran(&folder, &experiment(SMALL, STR_P));
        symlink(folder.path("out"), folder.path("link")).unwrap();
        for command in [&["report", "link", "-q"][..], &["resume", "link", "-q", "--epochs", "5"]] {
            done(&folder, command);
        }
        // A finished job writes nothing, so its folder may be elsewhere.
        std::fs::rename(folder.path("out/runs"), folder.path("elsewhere")).unwrap();
        symlink(folder.path("elsewhere"), folder.path("out/runs")).unwrap();
        done(&folder, &["resume", "out", "-q"]);
        // So may a file: its target is written.
        folder.write("page.md", "<!-- strust:test -->\n<!-- /strust -->\n");
        symlink("page.md", folder.path("link.md")).unwrap();
        done(&folder, &["report", "out", "--into", "link.md"]);
        assert!(folder.path("link.md").is_symlink() && read(&folder.path("page.md")).contains("**subspace**"));
    }

    #[test]
    fn an_output_that_is_another_name_of_an_input_is_refused() {
        let folder = fitted();
        symlink("part-1.csv", folder.path("link.csv")).unwrap();
        std::fs::hard_link(folder.path("part-1.csv"), folder.path("hard.csv")).unwrap();
        std::fs::create_dir(folder.path("sub")).unwrap();
        for out in ["link.csv", "hard.csv", "./part-1.csv", "sub/../part-2.csv", "m.json"] {
            refused(&go(&folder, &["predict", "m.json", "part-*.csv", "--out", out]), 2, &[out, "reads this file"]);
        }
        symlink("sub", folder.path("sub-link")).unwrap();
        let fit =
            ["fit", "part-*.csv", "--target", "5", "-q", "--save", "sub/new.json", "--report", "sub-link/new.json"];
        refused(&go(&folder, &fit), 2, &["sub-link/new.json: the command would write two files to this place"]);
        assert_eq!(names(&folder.path("sub")), [""; 0]);
    }
}

/// A folder with rows in `part-1.csv` and `part-2.csv`, and a model of them, `m.json`.
fn fitted() -> Folder {
    let folder = Folder::new();
    for part in ["part-1.csv", "part-2.csv"] {
        folder.write(part, &rows(40, 1.0, |i| ["yes", "no"][i % 2]));
    }
    done(&folder, &["fit", "part-*.csv", "--target", "5", "--save", "m.json", "--epochs", "2", "-q"]);
    folder
}

#[test]
fn no_command_writes_over_its_input_or_twice_to_one_place() {
    let folder = fitted();
    let before = (read(&folder.path("part-1.csv")), read(&folder.path("m.json")));
    let fit = ["fit", "part-*.csv", "--target", "5", "--epochs", "2", "-q"];
    let and = |more: &[&'static str]| [&fit[..], more].concat();
    for (arguments, part) in [
        (vec!["predict", "m.json", "part-*.csv", "--out", "part-1.csv"], "part-1.csv: the command reads this file"),
        (vec!["predict", "m.json", "part-1.csv", "--out", "m.json"], "m.json: the command reads this file"),
        (and(&["--save", "x.json", "--report", "x.json"]), "x.json: the command would write two files"),
        (and(&["--save", "x.json", "--report", "./x.json"]), "x.json: the command would write two files"),
        (and(&["--save", "m.json", "--report", "m.json"]), "m.json: the command would write two files"),
        (and(&["--report", "part-2.csv"]), "part-2.csv: the command reads this file"),
        (and(&["--test", "part-1.csv", "--report", "part-1.csv"]), "part-1.csv: the command reads this file"),
    ] {
        refused(&go(&folder, &arguments), 2, &[part]);
    }
    assert_eq!((read(&folder.path("part-1.csv")), read(&folder.path("m.json"))), before);
    assert_eq!(names(folder.0.path()), ["m.html", "m.json", "part-1.csv", "part-2.csv"]);
    // The default name of a model is never that of its report.
    done(&folder, &and(&["--report", "model.json"]));
    assert!(read(&folder.path("model.json")).contains("<html") && read(&folder.path("model-2.json")).starts_with('{'));
}

#[test]
fn tables_are_inserted_for_all_runs_or_for_none() {
    let folder = Folder::new();
    for name in ["a", "b"] {
        folder.write("experiment.toml", &experiment(SMALL, STR_P).edit("\"test\"", &format!("\"{name}\"")));
        done(&folder, &["run", "experiment.toml", "--out", name, "-q"]);
    }
    let page = "<!-- strust:a -->\n<!-- /strust -->\n";
    folder.write("page.md", page);
    fails(&go(&folder, &["report", "a", "b", "--into", "page.md"]), &["exactly one line <!-- strust:b -->"]);
    assert_eq!(read(&folder.path("page.md")), page);
    refused(&go(&folder, &["report", "a", "--into", "a/report.html"]), 2, &["the command reads this file"]);
}

/// Runs the program, which must end by itself.
#[cfg(unix)]
#[track_caller]
fn ends(folder: &Folder, arguments: &[&str]) -> Finished {
    let mut command = strust();
    command.args(arguments).current_dir(folder.0.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (mut child, begun) = (command.spawn().unwrap(), Instant::now());
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(120) {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{arguments:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    finished(&child.wait_with_output().unwrap())
}

/// Replaces a file by a pipe that nobody writes to, or by a link to a device that never ends.
#[cfg(unix)]
fn endless(path: &Path, pipe: bool) {
    let _ = std::fs::remove_file(path);
    if pipe {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    } else {
        std::os::unix::fs::symlink("/dev/zero", path).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_in_a_folder_of_results_are_refused() {
    let folder = Folder::new();
    ran(&folder, &experiment(SMALL, STR_P).edit("seeds = 2", "seeds = 1"));
    done(&folder, &["report", "out", "--publish", "kept", "-q"]);
    let job = "out/runs/subspace.str-p.s0";
    let in_job = |name: &str| format!("{job}/{name}");
    let all = &["report", "resume", "diagnose"][..];
    for (name, commands) in [
        ("out/plan.json".to_string(), all),
        (in_job("records.jsonl"), all),
        (in_job("checkpoint.bin"), &["report", "resume"]),
        (in_job("failed.json"), all),
        (in_job("timings.jsonl"), &["report", "resume"]),
        ("out/report.html".into(), &["report", "resume"]),
        ("kept/summary.json".into(), &["report"]),
    ] {
        let (path, out) = (folder.path(&name), name.split('/').next().unwrap().to_string());
        let whole = std::fs::read(&path).ok();
        for pipe in [true, false] {
            endless(&path, pipe);
            for command in commands {
                let result = ends(&folder, &[command, &out, "-q"]);
                let file = path.file_name().unwrap().to_str().unwrap();
                fails(&result, &[file]);
                let why = [
                    "it is not a regular file",
                    "this is not a regular file",
                    "this is a link",
                    "bytes, but the checkpoint",
                ];
                assert!(why.iter().any(|why| result.err.contains(why)), "{command} {name}: {}", result.err);
            }
        }
        std::fs::remove_file(&path).unwrap();
        if let Some(whole) = whole {
            std::fs::write(&path, whole).unwrap();
        }
    }
    // Logs of a run that is not finished.
    std::fs::remove_file(folder.path(&in_job("checkpoint.bin"))).unwrap();
    for pipe in [true, false] {
        endless(&folder.path(&in_job("records.jsonl")), pipe);
        for command in all {
            let result = ends(&folder, &[command, "out", "-q"]);
            fails(&result, &["records.jsonl"]);
        }
    }
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_in_place_of_data_models_and_pages_are_refused() {
    let folder = fitted();
    ran(&folder, &experiment(SMALL, STR_P));
    for pipe in [true, false] {
        for name in ["part-3.csv", "x.json", "page.md"] {
            endless(&folder.path(name), pipe);
        }
        std::fs::create_dir_all(folder.path("images")).unwrap();
        for name in [
            "train-images-idx3-ubyte",
            "train-labels-idx1-ubyte",
            "t10k-images-idx3-ubyte",
            "t10k-labels-idx1-ubyte",
            "train-images-idx3-ubyte.gz",
        ] {
            endless(&folder.path(&format!("images/{name}")), pipe);
        }
        for arguments in [
            &["fit", "part-*.csv", "--target", "5"][..],
            &["fit", "part-3.csv", "--target", "5"],
            &["fit", "part-1.csv", "--target", "5", "--test", "part-3.csv"],
            &["fit", "images"],
            &["fit", "part-1.csv", "--target", "5", "--save", "x.json"],
            &["fit", "part-1.csv", "--target", "5", "--report", "x.json"],
            &["predict", "m.json", "part-*.csv"],
            &["predict", "x.json", "part-1.csv"],
            &["predict", "m.json", "part-1.csv", "--out", "x.json"],
            &["evaluate", "m.json", "part-3.csv"],
            &["evaluate", "x.json", "part-1.csv"],
            &["inspect", "x.json"],
            &["report", "out", "--into", "page.md"],
            &["reproduce", "constrained", "--quick", "--reference", "x.json", "--out", "study"],
            &["bench", "second-order", "--reference", "x.json"],
            &["data", "mnist", "--to", "images", "--from", "http://127.0.0.1:1"],
        ] {
            let result = ends(&folder, arguments);
            fails(&result, &["not a"]);
            assert!(result.err.contains("regular file") || result.err.contains("not a file"), "{}", result.err);
        }
    }
}

#[test]
fn a_command_from_an_edited_plan_means_nothing_to_a_shell() {
    let folder = Folder::new();
    let noisy = "kind = \"least-squares\"\nn = 100\nd = 10\nnoise = 0.5";
    ran(&folder, &experiment(noisy, STR).edit("epochs = 3", "epochs = 60"));
    let usual = done(&folder, &["diagnose", "out"]);
    assert!(usual.out.contains("\n    $ strust run experiment.toml --set "), "{}", usual.out);
    let plan = folder.path("out/plan.json");
    let edit = |from: &str, to: &str| std::fs::write(&plan, read(&plan).edit(from, to)).unwrap();
    edit(
        "\"command\": \"strust run experiment.toml",
        "\"command\": \"strust run x;touch evil $(touch evil) `touch evil`",
    );
    let result = done(&folder, &["diagnose", "out"]);
    let expected = "\n    $ strust run 'x;touch' evil '$(touch' 'evil)' '`touch' 'evil`' --set ";
    assert!(result.out.contains(expected), "{}", result.out);
    // The same holds for the page, and for results that somebody has published.
    done(&folder, &["report", "out", "--publish", "kept", "-q"]);
    let summary = folder.path("kept/summary.json");
    std::fs::write(&summary, read(&summary).edit("\"command\": \"strust run ", "\"command\": \"strust run ;a "))
        .unwrap();
    done(&folder, &["report", "kept", "-q"]);
    let page = read(&folder.path("kept/report.html"));
    assert!(page.contains("strust run ';a' 'x;touch'") && !page.contains("run ;a"), "the command is not quoted");
}

#[test]
fn jobs_whose_short_names_are_equal_have_folders_of_their_own() {
    let folder = Folder::new();
    let problem = |name: &str| format!("[[problem]]\nkind = \"least-squares\"\nn = 40\nd = 5\nname = \"{name}\"\n");
    let method = |label: &str| format!("[[method]]\nname = \"str\"\nlabel = \"{label}\"\n");
    let head = "name = \"test\"\nepochs = 3\nbatch = 8\nseeds = 1\n";
    let text = [head, &problem("a.b"), &problem("a"), &method("c"), &method("b.c")].concat();
    ran(&folder, &text);
    assert_eq!(names(&folder.path("out/runs")), ["a.b.b.c.s0", "a.b.c.s0", "a.c.s0", "a.~b~c.s0"]);
    for job in names(&folder.path("out/runs")) {
        std::fs::remove_dir_all(folder.path("out/runs").join(job)).unwrap();
        for command in ["resume", "report", "diagnose"] {
            done(&folder, &[command, "out", "-q"]);
        }
    }
    // A plan with one folder for two jobs was edited.
    let plan = folder.path("out/plan.json");
    std::fs::write(&plan, read(&plan).edit("\"a.~b~c.s0\"", "\"a.b.c.s0\"")).unwrap();
    fails(&go(&folder, &["report", "out"]), &["plan.json: the plan was edited"]);
}

#[test]
fn tasks_of_a_benchmark_that_would_share_a_folder_are_refused() {
    let folder = Folder::new();
    let task = |name: &str, half: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\nhalf = \"{half}\"\nepochs = 2\nbatch = 8\n[task.problem]\nkind = \
             \"least-squares\"\nn = 40\nd = 5\n"
        )
    };
    let head = "name = \"tiny\"\ntitle = \"Tiny\"\nmethod = \"str\"\nseeds = 1\n[[tuned]]\nname = \"sgd\"\n\
                learning_rate = [0.01, 0.1]\n[[untuned]]\nname = \"str\"\n[[untuned]]\nname = \"dog\"\nlabel = \"c\"\n[[untuned]]\nname = \"adam\"\nlabel = \"b.c\"\n";
    folder.write("tiny.toml", &[head, &task("a.b", "development"), &task("a", "test")].concat());
    let result = go(&folder, &["run", "tiny.toml", "--out", "out", "-q"]);
    fails(&result, &["a job would have the folder `", "choose another name"]);
    assert!(!folder.path("out").exists());
}

#[test]
fn a_class_that_looks_like_a_formula_is_written_as_it_is_with_a_warning() {
    let folder = Folder::new();
    let evil = "\"=cmd|' /C calc'!A0\"";
    folder.write("evil.csv", &rows(60, 1.0, |i| if i % 2 == 0 { "\"=cmd|' /C calc'!A0\"" } else { "no" }));
    done(&folder, &["fit", "evil.csv", "--target", "5", "--save", "m.json", "-q"]);
    let result = done(&folder, &["predict", "m.json", "evil.csv", "--out", "new.csv", "-q"]);
    assert!(result.err.contains("looks like a formula") && result.err.contains("as text"), "{}", result.err);
    let (classes, predicted) = (read(&folder.path("evil.csv")), read(&folder.path("new.csv")));
    assert!(classes.contains(evil) && predicted.contains(&evil.replace('"', "")), "{predicted}");
    // Numbers with a sign are ordinary classes.
    folder.write("signs.csv", &rows(60, 1.0, |i| ["-1", "+1"][i % 2]));
    done(&folder, &["fit", "signs.csv", "--target", "5", "--task", "classes", "--save", "s.json", "-q"]);
    let result = done(&folder, &["predict", "s.json", "signs.csv", "--out", "s.csv", "-q"]);
    assert!(!result.err.contains("formula"), "{}", result.err);
}
