//! Files that others have made or edited, files that change, and programs that are killed or start at the same time.

use crate::support::{
    Edit, Finished, Folder, SMALL, experiment, fails, finished, lines, names, refused, run, same_records, strust,
};
use std::{
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

const STR_P: &str = "[[method]]\nname = \"str-p\"\n";
const STR: &str = "[[method]]\nname = \"str\"\n";

/// Runs an experiment in a folder with the results in `out`.
fn start(folder: &Folder, text: &str, out: &str) -> Finished {
    let file = folder.write("experiment.toml", text);
    run(&["run", file.to_str().unwrap(), "--out", folder.path(out).to_str().unwrap(), "-q"])
}

#[track_caller]
fn done(folder: &Folder, text: &str, out: &str) -> String {
    let result = start(folder, text, out);
    assert_eq!(result.code, Some(0), "{}", result.err);
    folder.path(out).to_str().unwrap().into()
}

fn edit_file(path: &Path, from: &str, to: &str) {
    std::fs::write(path, std::fs::read_to_string(path).unwrap().edit(from, to)).unwrap();
}

#[test]
fn a_published_name_that_is_a_path_is_refused_and_nothing_is_written_outside_of_the_folder() {
    let folder = Folder::new();
    let (a, b) = (done(&folder, &experiment(SMALL, STR_P), "a"), done(&folder, &experiment(SMALL, STR_P), "b"));
    std::fs::create_dir_all(folder.path("inner/deep")).unwrap();
    let published = folder.path("inner/deep/published");
    assert_eq!(run(&["report", &a, "--publish", published.to_str().unwrap()]).code, Some(0));
    let (inner, out) = (folder.path("inner"), folder.path("inner/deep/out"));
    let absolute = inner.join("x").to_str().unwrap().to_string();
    let mut name = "test".to_string();
    for evil in ["../../x", &absolute, "..", "", ".x"] {
        edit_file(
            &published.join("summary.json"),
            &format!("\"experiment\": \"{name}\""),
            &format!("\"experiment\": \"{evil}\""),
        );
        name = evil.into();
        for arguments in [
            &["report", published.to_str().unwrap(), &b, "--out", out.to_str().unwrap()][..],
            &["report", published.to_str().unwrap()],
            &["report", published.to_str().unwrap(), "--markdown"],
        ] {
            fails(&run(arguments), &["summary.json: the file was edited: the name"]);
        }
        assert_eq!((names(&inner), names(&inner.join("deep"))), (vec!["deep".into()], vec!["published".into()]));
    }
}

#[test]
fn a_plan_whose_name_is_a_path_is_refused_and_nothing_is_written_outside_of_the_folder() {
    let folder = Folder::new();
    let out = folder.path("inner/out");
    let out = out.to_str().unwrap();
    let result = run(&["run", "theory-step-length", "--seeds", "1", "--out", out, "-q"]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    std::fs::remove_dir_all(folder.path("inner/out/checks")).unwrap();
    edit_file(&folder.path("inner/out/theory.json"), "\"theory-step-length\"", "\"../../evil\"");
    for command in ["resume", "report"] {
        fails(&run(&[command, out, "-q"]), &["theory.json: the file was edited: the name \"../../evil\""]);
    }
    assert_eq!((names(folder.0.path()), names(&folder.path("inner"))), (vec!["inner".into()], vec!["out".into()]));

    let out = done(&folder, &experiment(SMALL, STR_P), "plain");
    edit_file(&folder.path("plain/plan.json"), "\"name\": \"test\"", "\"name\": \"../x\"");
    for command in ["resume", "report", "diagnose"] {
        fails(&run(&[command, &out, "-q"]), &["plan.json: the file was edited: the name \"../x\""]);
    }
}

#[test]
fn a_small_file_with_a_huge_index_is_refused_at_once() {
    let folder = Folder::new();
    for index in [1_000_000_000_u32, 10_000_000] {
        folder.write("data.svm", &format!("1 {index}:1\n-1 1:1\n").repeat(5));
        let expected = format!("data.svm: {index} columns are too many for the weights: the 10 entries of the file");
        let begun = Instant::now();
        for problem in ["logistic", "softmax", "mlp", "least-squares", "constrained-logistic", "autoencoder"] {
            let method = if problem.starts_with("constrained") { STR_P } else { STR };
            let text = experiment(&format!("kind = \"{problem}\"\ndata = \"data.svm\""), method);
            fails(&start(&folder, &text.edit("batch = 8", "batch = 2"), "out"), &[&expected, "without gaps"]);
            assert!(!folder.path("out").exists());
        }
        let fit = run(&["fit", folder.path("data.svm").to_str().unwrap(), "-q"]);
        fails(&fit, &[&format!("{index} columns, but the file has only"), "without gaps"]);
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }
    // Classes and hidden units multiply the columns.
    folder.write("classes.svm", &lines(100, |i| format!("{i} {}:1\n", 1_000_000 + i)));
    let text = experiment("kind = \"softmax\"\ndata = \"classes.svm\"", STR);
    fails(&start(&folder, &text, "out"), &["1000099 columns × 100 outputs are too many for the weights"]);
    let text = experiment("kind = \"mlp\"\ndata = \"classes.svm\"", STR);
    fails(&start(&folder, &text, "out"), &["1000099 columns × 100 rows are too many for a dense matrix"]);
    // So does a covariance.
    folder.write("wide.csv", &format!("{}1\n", "1,".repeat(20_000)).repeat(3));
    let text = experiment("kind = \"pca\"\nk = 1\ndata = \"wide.csv\"", STR_P).edit("batch = 8", "batch = 2");
    fails(&start(&folder, &text, "out"), &["20001 columns × 20001 columns are too many for a dense matrix"]);
    // A gap of ordinary size is fine.
    folder.write("data.svm", &"1 100000:1\n-1 1:1\n".repeat(10));
    done(&folder, &experiment("kind = \"logistic\"\ndata = \"data.svm\"", STR), "out");
}

#[test]
fn a_network_on_a_small_file_cannot_ask_for_more_than_a_gibibyte() {
    let folder = Folder::new();
    folder.write("small.csv", &lines(30, |i| format!("{i},{},{}\n", i * i % 7, i % 2)));
    let over = |kind: &str, hidden: &str| {
        let method = if kind == "orthonormal-mlp" { STR_P } else { STR };
        let problem = format!("kind = \"{kind}\"\ndata = \"small.csv\"\nhidden = \"{hidden}\"");
        start(&folder, &experiment(&problem, method).edit("epochs = 3", "epochs = 1"), "out")
    };
    for (kind, hidden, widths) in [
        // Not only the first layer counts.
        ("mlp", "8-4000-4000", "2-8-4000-4000-2 takes about 1.6 GiB"),
        ("mlp", "6000000", "2-6000000-2 takes about 8.9 GiB"),
        ("orthonormal-mlp", "3000-3000", "2-3000-3000-2 takes about 1.8 GiB"),
        ("autoencoder", "3000-2000", "2-3000-2000-3000-2 takes about 1.2 GiB"),
    ] {
        let expected =
            ["small.csv: a network of the widths ", widths, "60 entries", "at most 1.0 GiB", "make `hidden`"];
        fails(&over(kind, hidden), &expected);
        assert!(!folder.path("out").exists());
    }
    let data = folder.path("small.csv");
    let fit = |hidden: &str| {
        let model = folder.path("model.json");
        let mut command = strust();
        command.args([
            "fit",
            data.to_str().unwrap(),
            "--target",
            "3",
            "--keep",
            "column1",
            "--task",
            "classes",
            "--model",
            "mlp",
        ]);
        command.args(["--hidden", hidden, "--epochs", "1", "-q", "--save", model.to_str().unwrap()]);
        finished(&command.output().unwrap())
    };
    let expected = ["2-4000-4000-1 takes about 1.6 GiB", "at most 1.0 GiB", "use smaller widths in --hidden"];
    refused(&fit("4000,4000"), 2, &expected);
    assert!(!folder.path("model.json").exists());
    // A network that is far larger than its data is fine.
    for (result, what) in [(over("mlp", "1000-500"), "run"), (fit("1000,500"), "fit")] {
        assert_eq!(result.code, Some(0), "{what}: {}", result.err);
    }
}

/// The edited records of a finished job are an error of every command that reads them.
#[track_caller]
fn edited(folder: &Folder, out: &str, edits: &[(&str, &str)], parts: &[&str]) {
    let path = folder.path("out/runs/subspace.str-p.s0/records.jsonl");
    let right = std::fs::read_to_string(&path).unwrap();
    for (from, to) in edits {
        assert_eq!(from.len(), to.len());
        std::fs::write(&path, right.edit(from, to)).unwrap();
        for command in ["report", "resume"] {
            fails(&run(&[command, out, "-q"]), parts);
        }
    }
    std::fs::write(&path, right).unwrap();
    for command in ["report", "resume", "diagnose"] {
        let result = run(&[command, out, "-q"]);
        assert_eq!(result.code, Some(0), "{command}: {}", result.err);
    }
}

const SAME_LENGTH: [(&str, &str); 3] = [
    ("\"objective_gap\"", "\"objective_gaq\""),
    ("\"epoch\":2", "\"epoch\":7"),
    ("{\"type\":\"epoch\"", "{\"type\":\"epoxy\""),
];

#[test]
fn records_edited_at_the_same_length_do_not_match_their_checksum() {
    let folder = Folder::new();
    let out = done(&folder, &experiment(SMALL, STR_P), "out");
    let edits = [SAME_LENGTH.as_slice(), &[("\"accepted\":", "\"bccepted\":")]].concat();
    edited(&folder, &out, &edits, &["records.jsonl: the contents were changed", "remove the job's folder and resume"]);
    // The advice works.
    edit_file(&folder.path("out/runs/subspace.str-p.s0/timings.jsonl"), "{\"epoch\":1", "{\"epoch\":8");
    fails(&run(&["report", &out, "-q"]), &["timings.jsonl: the contents were changed"]);
    std::fs::remove_dir_all(folder.path("out/runs/subspace.str-p.s0")).unwrap();
    assert_eq!(run(&["resume", &out, "-q"]).code, Some(0));
    same_records(&folder.path("out"), Path::new(&done(&folder, &experiment(SMALL, STR_P), "again")));
}

#[test]
fn more_accepted_steps_than_steps_are_an_error_of_diagnose() {
    let folder = Folder::new();
    let out = done(&folder, &experiment(SMALL, STR_P), "out");
    edit_file(&folder.path("out/runs/subspace.str-p.s0/records.jsonl"), "\"accepted\":0", "\"accepted\":7");
    fails(&run(&["diagnose", &out]), &["records.jsonl", "line 1: 7 of 0 steps cannot be accepted"]);
}

/// Removes the checksums of the logs from a checkpoint, as an earlier program wrote it.
fn without_checksums(path: &Path) {
    let bytes = std::fs::read(path).unwrap();
    let end = bytes.iter().position(|&b| b == b'\n').unwrap() + 1;
    let mut body = bytes[end..].to_vec();
    // MessagePack: a short text, and an array of two numbers of 64 bits.
    let key = b"\xa9checksums\x92\xcf";
    let at = body.windows(key.len()).position(|window| window == key).expect("the checkpoint has checksums");
    body.drain(at..at + key.len() - 1 + 2 * 9);
    body[0] -= 1;
    let sum = body.iter().fold(0xcbf2_9ce4_8422_2325, |h: u64, &b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    std::fs::write(path, [format!("strust-checkpoint 2 {sum:016x}\n").as_bytes(), &body].concat()).unwrap();
}

#[test]
fn a_folder_without_checksums_is_read_and_edited_records_in_it_are_an_error() {
    let folder = Folder::new();
    let out = done(&folder, &experiment(SMALL, STR_P), "out");
    for seed in 0..2 {
        without_checksums(&folder.path(&format!("out/runs/subspace.str-p.s{seed}/checkpoint.bin")));
    }
    edited(&folder, &out, &SAME_LENGTH, &["runs/subspace.str-p.s0"]);
}

#[test]
fn a_data_file_that_is_replaced_during_a_run_stops_it_and_is_never_mixed_in() {
    let folder = Folder::new();
    let row = |i: usize, scale: usize| format!("{},{},{}\n", scale * (i % 7), (i * 5) % 11, i % 2);
    let data = |scale: usize| lines(40, |i| row(i, scale));
    folder.write("data.csv", &data(1));
    let problem = "kind = \"logistic\"\ndata = \"data.csv\"\nregularization = 0.1";
    let text = experiment(problem, STR).edit("epochs = 3", "epochs = 4000\nrecords = \"epochs\"");
    let right = done(&folder, &text, "right");

    let (file, out) = (folder.write("experiment.toml", &text), folder.path("out"));
    let child = strust()
        .args(["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--quiet", "--jobs", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !out.join("runs/logistic.str.s0/records.jsonl").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    folder.write("data.csv", &data(2));
    let result = finished(&child.wait_with_output().unwrap());
    fails(&result, &["data.csv: the data file has changed since the run was planned: restore it"]);
    assert!(!out.join("runs/logistic.str.s1/checkpoint.bin").exists(), "the second job read other data");
    fails(&run(&["resume", out.to_str().unwrap(), "-q"]), &["the data file has changed"]);

    folder.write("data.csv", &data(1));
    let result = run(&["resume", out.to_str().unwrap(), "-q"]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    same_records(&out, Path::new(&right));
}

#[test]
fn a_folder_of_a_run_that_was_killed_before_its_plan_was_written_can_be_used() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("out")).unwrap();
    folder.write("out/.strust-Xk29ab.tmp", "{\"version\": ");
    let resume = run(&["resume", folder.path("out").to_str().unwrap()]);
    fails(&resume, &["stopped before its plan was written", "`strust run`"]);
    done(&folder, &experiment(SMALL, STR_P), "out");
    assert!(!folder.path("out/.strust-Xk29ab.tmp").exists());
    // Any other file is still a reason to refuse, and stays.
    std::fs::create_dir(folder.path("mine")).unwrap();
    folder.write("mine/strust-a.tmp", "mine");
    fails(&start(&folder, &experiment(SMALL, STR_P), "mine"), &["the folder is not empty"]);
    assert_eq!(names(&folder.path("mine")), ["strust-a.tmp"]);
}

/// The temporary files of a folder.
fn temporary(folder: &Path) -> Vec<String> {
    let mut names = names(folder);
    names.retain(|name| name.starts_with(".strust-"));
    names
}

#[test]
fn temporary_files_of_killed_programs_are_removed_but_not_those_in_use() {
    let folder = Folder::new();
    let go = |arguments: &[&str]| {
        let result = finished(&strust().args(arguments).current_dir(folder.0.path()).output().unwrap());
        assert_eq!(result.code, Some(0), "{}", result.err);
    };
    folder.write("line.csv", &format!("x,y\n{}", lines(40, |i| format!("{i},{}\n", 3 * i % 31))));
    done(&folder, &experiment(SMALL, STR_P), "out");
    folder.write("page.md", "<!-- strust:test -->\n<!-- /strust -->\n");
    for place in ["reports", "reports/figures", "published", "published/figures", "predictions", "out/figures"] {
        std::fs::create_dir_all(folder.path(place)).unwrap();
    }
    let fit = ["fit", "line.csv", "--target", "y", "-q"];
    let commands: [(&[&str], &[&str]); 6] = [
        (&fit, &["."]),
        (
            &["fit", "line.csv", "--target", "y", "-q", "--save", "model.json", "--report", "reports/fit.html"],
            &["reports"],
        ),
        (&["predict", "model.json", "line.csv", "-q", "--out", "predictions/new.csv"], &["predictions"]),
        (&["report", "out", "-q"], &["out", "out/figures"]),
        (&["report", "out", "--publish", "published", "-q"], &["published", "published/figures"]),
        (&["report", "out", "--into", "page.md"], &["."]),
    ];
    for (command, places) in commands {
        // A killed program has no lock. A running one has, in whatever container it is and whatever the clock says.
        let in_use: Vec<_> = places.iter().map(|place| format!("{place}/.strust-used00.tmp")).collect();
        let held: Vec<_> = in_use.iter().map(|name| std::fs::File::create(folder.path(name)).unwrap()).collect();
        for (file, place) in held.iter().zip(places) {
            file.lock().unwrap();
            folder.write(&format!("{place}/.strust-killed.tmp"), "part of a fi");
        }
        go(command);
        for place in places {
            assert_eq!(temporary(&folder.path(place)), [".strust-used00.tmp"], "{command:?} in {place}");
        }
        drop(held);
        go(command);
        for place in places {
            assert_eq!(temporary(&folder.path(place)), [""; 0], "{command:?} in {place}");
        }
    }
    // A link or a folder of this name was made by somebody else.
    std::fs::create_dir(folder.path(".strust-folder.tmp")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("line.csv", folder.path(".strust-link.tmp")).unwrap();
    go(&fit);
    assert!(folder.path(".strust-folder.tmp").exists());
    assert_eq!(folder.path(".strust-link.tmp").exists(), cfg!(unix));
}

#[test]
fn programs_that_start_at_the_same_time_have_folders_of_their_own() {
    let folder = Folder::new();
    folder.write("experiment.toml", &experiment(SMALL, STR_P));
    let begin = |_| {
        let mut command = strust();
        command.args(["run", "experiment.toml", "-q"]).current_dir(folder.0.path());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..4).map(begin).collect();
    for child in children {
        let result = finished(&child.wait_with_output().unwrap());
        assert_eq!(result.code, Some(0), "{}", result.err);
    }
    assert_eq!(names(&folder.path("runs")), ["test", "test-2", "test-3", "test-4"]);
    for name in ["test-2", "test-3", "test-4"] {
        same_records(&folder.path("runs/test"), &folder.path("runs").join(name));
    }
    // A run that cannot start leaves nothing.
    let other = Folder::new();
    other.write("wrong.toml", &experiment("kind = \"subspace\"\nd = 3\nk = 4\nn = 40", STR_P));
    let result = strust().args(["run", "wrong.toml"]).current_dir(other.0.path()).output().unwrap();
    assert_eq!((result.status.code(), names(other.0.path())), (Some(1), vec!["wrong.toml".to_string()]));
}

#[test]
fn fits_at_the_same_time_save_models_and_reports_of_their_own() {
    let folder = Folder::new();
    folder.write("line.csv", &format!("x,y\n{}", lines(200, |i| format!("{i},{}\n", 3 * i % 101))));
    // A page with a default name that strust did not write stays, and its number is not used.
    let mine = ["model.html", "model-3.html"];
    for page in mine {
        folder.write(page, "mine");
    }
    let begin = |seed: usize| {
        let mut command = strust();
        command.args(["fit", "line.csv", "--target", "y", "--json", "--seed", &seed.to_string()]);
        command.current_dir(folder.0.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..6).map(begin).collect();
    let json = |path: &Path| -> serde_json::Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
    for (seed, child) in children.into_iter().enumerate() {
        let result = finished(&child.wait_with_output().unwrap());
        assert_eq!(result.code, Some(0), "{}", result.err);
        let outcome: serde_json::Value = serde_json::from_str(&result.out).unwrap();
        let (model, report) = (outcome["model"].as_str().unwrap(), outcome["report"].as_str().unwrap());
        assert_eq!(Path::new(report), Path::new(model).with_extension("html"));
        assert_eq!(json(&folder.path(model))["training"]["seed"], seed, "{model} is of another program");
    }
    let mut expected: Vec<String> = ["line.csv", "model.html", "model-3.html"].map(String::from).to_vec();
    expected
        .extend([2, 4, 5, 6, 7, 8].iter().flat_map(|i| ["json", "html"].map(|ending| format!("model-{i}.{ending}"))));
    expected.sort();
    assert_eq!(names(folder.0.path()), expected);
    for page in mine {
        assert_eq!(std::fs::read_to_string(folder.path(page)).unwrap(), "mine");
    }
}
