//! Bad input gives a nonzero exit code and an error that names the place, the reason and the fix.

use crate::support::{Edit, Finished, Folder, SMALL, experiment, finished, lines, requires, run, strust};
use std::process::Stdio;

fn run_experiment(folder: &Folder, text: &str) -> Finished {
    let file = folder.write("experiment.toml", text);
    run(&["run", file.to_str().unwrap(), "--out", folder.path("out").to_str().unwrap(), "--quiet"])
}

/// Asserts exit code 1, a message with all of `parts`, and no results.
#[track_caller]
fn refused(text: &str, parts: &[&str]) {
    refused_in(&Folder::new(), text, parts);
}

#[track_caller]
fn refused_in(folder: &Folder, text: &str, parts: &[&str]) {
    let result = run_experiment(folder, text);
    assert_eq!(result.code, Some(1), "{}", result.err);
    for part in parts {
        assert!(result.err.contains(part), "{part:?} is not in: {}", result.err);
    }
    assert!(!result.err.contains("panicked"), "{}", result.err);
    assert!(!folder.path("out/report.html").exists());
}

const STR_P: &str = "[[method]]\nname = \"str-p\"\n";

#[test]
fn an_unknown_key_is_reported_with_its_line_and_a_suggestion() {
    refused(
        &experiment(SMALL, "[[method]]\nname = \"str-p\"\npenalti = 1.0"),
        &["experiment.toml:14:", "unknown key `penalti`; did you mean `penalty`?"],
    );
    refused(&format!("epoch = 3\n{}", experiment(SMALL, STR_P)), &["experiment.toml:1:", "did you mean `epochs`?"]);
    refused(&experiment(SMALL, "[[method]]\nname = \"str_p\""), &["unknown method `str_p`", "did you mean `str-p`?"]);
    refused(&experiment("kind = \"subspaces\"", STR_P), &["unknown problem `subspaces`", "did you mean `subspace`?"]);
}

#[test]
fn data_that_are_too_small_or_too_large_to_square_are_named_before_anything_is_written() {
    for (exponent, kind) in [("-160", "subspace"), ("160", "subspace"), ("-160", "pca"), ("160", "pca")] {
        let folder = Folder::new();
        let row = |i: usize| format!("{}e{exponent},{}e{exponent},{}e{exponent}\n", i % 7, (i * 5) % 10, i % 3);
        folder.write("data.csv", &lines(40, row));
        let problem = format!("kind = \"{kind}\"\nk = 2\ndata = \"data.csv\"");
        let says = format!("`data` is 6e{exponent} at its largest entry, but must be in [1e-75, 1e75]");
        refused_in(&folder, &experiment(&problem, STR_P), &[&says, "multiply the data by a constant"]);
    }
}

#[test]
fn an_error_on_a_hyperparameter_names_field_value_and_range() {
    refused(
        &experiment(SMALL, "[[method]]\nname = \"sgd-proj\"\nlearning_rate = -1.0"),
        &["experiment.toml:14:", "`learning_rate` is -1.0, but must be > 0"],
    );
    refused(&experiment(SMALL, "[[method]]\nname = \"str-p\"\ngrow = 0.5"), &["`grow` is 0.5, but must be > 1"]);
    refused(
        &experiment(SMALL, "[[method]]\nname = \"str-p\"\npenalty = nan"),
        &["`penalty` is NaN, but must be a finite number > 0"],
    );
    refused(
        &experiment(SMALL, "[[method]]\nname = \"riemannian\"\nretraction = \"qz\""),
        &["`retraction` is \"qz\", but must be one of qr, polar"],
    );
    refused(
        &experiment(SMALL, "[[method]]\nname = \"str-p\"\npenalty = \"big\""),
        &["experiment.toml:14:", "`penalty` is \"big\", but must be a number > 0"],
    );
}

#[test]
fn a_huge_grid_is_refused_before_it_is_expanded() {
    let list = (1..=200).map(|i| format!("{i}.0")).collect::<Vec<_>>().join(", ");
    let keys = ["penalty", "initial_radius", "max_radius", "shrink"].map(|key| format!("{key} = [{list}]\n")).concat();
    refused(&experiment(SMALL, &format!("[[method]]\nname = \"str-p\"\n{keys}")), &["more than 100000 settings"]);
    let twice = "[[method]]\nname = \"str-p\"\npenalty = [1, 1.0]";
    refused(&experiment(SMALL, twice), &["`penalty` has a value twice"]);
    let folder = Folder::new();
    let file = folder.write("experiment.toml", &experiment(SMALL, STR_P));
    let result = run(&["run", file.to_str().unwrap(), "--seeds", "200000"]);
    assert_eq!((result.code, result.err.contains("more than 100000 jobs")), (Some(2), true), "{}", result.err);
}

#[test]
fn impossible_sizes_are_refused() {
    refused(
        &experiment("kind = \"subspace\"\nd = 3\nk = 4\nn = 40", STR_P),
        &["`k` is 4, but must be in [1, d] = [1, 3]"],
    );
    refused(
        &experiment("kind = \"subspace\"\nd = 20\nk = 2\nn = 5", STR_P),
        &["problem `subspace`", "`batch` is 8, but must be at most 5, the number of terms"],
    );
    refused(
        &experiment("kind = \"subspace\"\nn = 0", STR_P),
        &["`n` is 0, but must be a whole number in [1, 10000000]"],
    );
    let whole = &["`n` is 2.0, but must be a whole number"];
    refused(&experiment("kind = \"subspace\"\nn = 2.0", STR_P), whole);
    let wide = "kind = \"subspace\"\nd = 10000000\nk = 10000000\nn = 40";
    refused(&experiment(wide, STR_P), &["10000000 × 10000000", "16 GiB"]);
    let factors = "kind = \"factorization\"\nwidth = 100000000";
    refused(&experiment(factors, "[[method]]\nname = \"str\""), &["`width` is 100000000, but must be"]);
    let layers = "kind = \"mlp\"\nhidden = \"10000000-10000000\"";
    refused(&experiment(layers, "[[method]]\nname = \"str\""), &["`hidden` is", "at most 2147483648 parameters"]);
    refused(&experiment("kind = \"subspace\"\nd = -4", STR_P), &["experiment.toml:8:", "`d` is -4, but must be"]);
    let huge = "kind = \"subspace\"\nd = 1000000\nk = 1\nn = 1000000";
    refused(&experiment(huge, STR_P), &["problem `subspace`", "1000000 × 1000000"]);
    refused(&experiment(SMALL, STR_P).edit("seeds = 2", "seeds = 9223372036854775807"), &["`seeds` must be"]);
    refused(&experiment(SMALL, STR_P).edit("epochs = 3", "epochs = 4611686018427387904"), &["`epochs` is"]);
    let tiny = "kind = \"logistic\"\nn = 40\ntest_share = 0.001";
    refused(&experiment(tiny, "[[method]]\nname = \"str\""), &["problem `logistic`", "`rows` is 0"]);
    let all_wrong = "kind = \"mlp\"\nwrong_labels = 1.0";
    refused(&experiment(all_wrong, "[[method]]\nname = \"str\""), &["`wrong_labels` is 1.0, but must be in [0, 1)"]);
    refused(&experiment("kind = \"subspace\"\nscale = 0.0", STR_P), &["`scale` is 0.0, but must be > 0"]);
    refused(&experiment(SMALL, STR_P).edit("epochs = 3", "epochs = 0"), &["`epochs` is 0"]);
    refused(&experiment(SMALL, STR_P).edit("seeds = 2", "seeds = [1, 1]"), &["`seeds` must be"]);
}

#[test]
fn an_error_in_a_broken_file_names_the_line() {
    refused("name = \"x\"\nepochs = = 3\n", &["experiment.toml:2"]);
    refused("", &["`name` is missing"]);
    refused("name = \"x\"\n", &["[[problem]]"]);
    refused(&experiment(SMALL, STR_P).edit("\"test\"", "\"../escape\""), &["`name`", "folder"]);
    let result = run(&["run", "no-such-file.toml"]);
    assert_eq!(result.code, Some(1));
    assert!(
        result.err.contains("no-such-file.toml: no such file") && result.err.contains("subspace-small"),
        "{}",
        result.err
    );
}

#[test]
fn a_method_that_needs_a_constraint_is_refused_without_one() {
    refused(
        &experiment("kind = \"least-squares\"\nn = 40\nd = 50", STR_P),
        &["`str-p` needs a problem with a constraint", "sgd"],
    );
}

#[test]
fn damaged_data_files_are_refused_with_file_line_and_column() {
    let subspace = "kind = \"subspace\"\nk = 1\ndata = \"data.csv\"";
    let cases = [
        ("", "data.csv"),
        ("1,2\n3,4,5\n", "data.csv:2:"),
        ("1,2\n3\n", "data.csv:2:"),
        ("1,2\nNaN,4\n", "data.csv:2: column `column1`: \"NaN\" is not"),
        ("1,2\n3,inf\n", "data.csv:2: column `column2`: \"inf\" is not"),
        ("1,2\n3,4x\n", "data.csv:2: column `column2`: \"4x\" is not"),
    ];
    for (text, place) in cases {
        let folder = Folder::new();
        folder.write("data.csv", text);
        refused_in(&folder, &experiment(subspace, STR_P), &[place]);
    }
    refused(&experiment(subspace, STR_P), &["cannot open the data file", "data.csv"]);
}

#[test]
fn wrong_keys_of_a_data_file_are_refused_in_words() {
    let methods = "[[method]]\nname = \"auto\"";
    let logistic = "kind = \"logistic\"\ndata = \"data.csv\"\n";
    for (key, expected) in [
        ("label = \"qualty\"", "data.csv: there is no column `qualty`; did you mean `quality`?"),
        ("label = 2", "`label` is 2, but must be a column's name or number in quotes, or empty"),
        ("kernel = \"rbf\"\nbandwidth = 0", "`bandwidth` is 0, but must be > 0"),
        ("kernel = \"poly\"", "`kernel` is \"poly\", but must be one of none, rbf"),
        ("standardize = true", "`standardize` is true, but must be one of off, on"),
        ("split = \"first\"", "`split` is \"first\", but must be one of random, last"),
    ] {
        let folder = Folder::new();
        folder.write("data.csv", "width,name,quality\n1,red,0\n2,green,1\n");
        refused_in(&folder, &experiment(&format!("{logistic}{key}"), methods), &[expected]);
    }
    let folder = Folder::new();
    folder.write("data.csv", "width,name\n1,red\n2,green\n");
    let regression = experiment("kind = \"least-squares\"\ndata = \"data.csv\"", methods);
    refused_in(&folder, &regression, &["data.csv: column `name` holds words: a regression needs numbers"]);
    let folder = Folder::new();
    folder.write("data.csv", "1,2,0\n1,2,1\n1,2,0\n");
    let standardized = format!("{logistic}standardize = \"on\"");
    refused_in(&folder, &experiment(&standardized, methods), &["every feature is constant over the training set"]);
}

#[test]
fn a_bad_line_of_libsvm_is_refused_with_file_line_and_column() {
    let logistic = "kind = \"logistic\"\ndata = \"data.libsvm\"";
    for (line, place) in [
        ("1 0:1", "data.libsvm:2:3:"),
        ("1 2:1 1:1", "data.libsvm:2:7:"),
        ("1 a:1", "data.libsvm:2:3:"),
        ("x 1:1", "data.libsvm:2:1:"),
    ] {
        let folder = Folder::new();
        folder.write("data.libsvm", &format!("-1 1:0.5\n{line}\n"));
        refused_in(&folder, &experiment(logistic, "[[method]]\nname = \"str\""), &[place]);
    }
}

#[test]
fn wrong_usage_exits_with_two() {
    for arguments in [
        &["run"][..],
        &["frobnicate"],
        &["run", "subspace-small", "--seeds", "0"],
        &["run", "subspace-small", "--jobs", "many"],
        &["reproduce", "nothing"],
        &["resume", "somewhere", "--seeds", "3"],
        &["list", "str-q"],
        &["--no-such-flag"],
    ] {
        assert_eq!(run(arguments).code, Some(2), "{arguments:?}");
    }
    assert!(run(&["list", "str-q"]).err.contains("did you mean `str-p`?"));
    // An option in the wrong place.
    for (arguments, tip) in [
        (&["resume", "somewhere", "--seeds", "3"][..], "'--seeds' is an option of strust reproduce, strust run"),
        (&["--target", "y", "fit", "data.csv"], "'--target' is an option of strust fit, after the command"),
        (&["list", "--target=y"], "'--target' is an option of strust fit, after the command"),
    ] {
        let result = run(arguments);
        assert!(result.code == Some(2) && result.err.contains(tip), "{}", result.err);
        assert!(!result.err.contains("as a value"), "{}", result.err);
    }
    assert!(run(&["fit", "data.csv", "--targt", "y"]).err.contains("a similar argument exists: '--target'"));
}

#[test]
fn a_folder_with_other_files_is_not_changed() {
    let folder = Folder::new();
    let file = folder.write("experiment.toml", &experiment(SMALL, STR_P));
    std::fs::create_dir(folder.path("out")).unwrap();
    folder.write("out/precious.txt", "mine");
    let result = run(&["run", file.to_str().unwrap(), "--out", folder.path("out").to_str().unwrap()]);
    assert_eq!(result.code, Some(1));
    assert!(result.err.contains("the folder is not empty"), "{}", result.err);
    assert_eq!(std::fs::read_to_string(folder.path("out/precious.txt")).unwrap(), "mine");
    assert_eq!(std::fs::read_dir(folder.path("out")).unwrap().count(), 1);

    let result = run(&["resume", folder.path("out").to_str().unwrap()]);
    assert_eq!(result.code, Some(1));
    assert!(result.err.contains("it has no plan.json"), "{}", result.err);
}

#[test]
fn a_second_run_into_the_same_folder_suggests_resume() {
    let folder = Folder::new();
    let first = run_experiment(&folder, &experiment(SMALL, STR_P));
    assert_eq!(first.code, Some(0), "{}", first.err);
    let second = run_experiment(&folder, &experiment(SMALL, STR_P));
    assert_eq!(second.code, Some(1));
    assert!(second.err.contains("strust resume"), "{}", second.err);
}

#[cfg(target_os = "linux")]
#[test]
fn an_error_names_an_output_folder_that_cannot_be_created() {
    // Even root cannot create a folder in /proc.
    let folder = Folder::new();
    let file = folder.write("experiment.toml", &experiment(SMALL, STR_P));
    let result = run(&["run", file.to_str().unwrap(), "--out", "/proc/strust-test"]);
    assert_eq!(result.code, Some(1));
    assert!(result.err.contains("cannot create the folder /proc/strust-test"), "{}", result.err);
}

/// A full disk: a separate file system of 512 KiB in a separate namespace.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_and_the_run_resumes_when_there_is_space() {
    let folder = Folder::new();
    let file = folder.write("experiment.toml", &experiment(SMALL, STR_P).edit("epochs = 3", "epochs = 400"));
    let disk = folder.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=512k tmpfs {disk} || exit 77\n\
         {strust} run {file} --out {disk}/out --quiet; first=$?\n\
         mount -o remount,size=64m {disk} || exit 77\n\
         {strust} resume {disk}/out --quiet; second=$?\n\
         cp -r {disk}/out {out}\n\
         echo codes $first $second",
        disk = disk.display(),
        strust = env!("CARGO_BIN_EXE_strust"),
        file = file.display(),
        out = folder.path("out").display(),
    );
    let output = std::process::Command::new("unshare").args(["-rm", "sh", "-c", &script]).output();
    let result = output.ok().map(|o| finished(&o)).filter(|s| s.code != Some(77) && s.out.contains("codes"));
    if !requires("full-disk", result.is_some()) {
        return;
    }
    let result = result.expect("the small disk was mounted");
    assert_eq!(result.out.trim(), "codes 1 0", "{}", result.err);
    assert!(result.err.contains("No space left on device") && result.err.contains("strust resume"), "{}", result.err);

    let undisturbed = folder.path("undisturbed");
    let result = run(&["run", file.to_str().unwrap(), "--out", undisturbed.to_str().unwrap(), "--quiet"]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    crate::support::same_records(&folder.path("out"), &undisturbed);
}

#[test]
fn wrong_checkpoints_are_refused_with_a_fix() {
    let folder = Folder::new();
    assert_eq!(run_experiment(&folder, &experiment(SMALL, STR_P)).code, Some(0));
    let out = folder.path("out");
    let checkpoint = |seed: u32| out.join(format!("runs/subspace.str-p.s{seed}/checkpoint.bin"));
    let whole = std::fs::read(checkpoint(0)).unwrap();
    let resumed = || {
        let result = finished(&strust().args(["resume", out.to_str().unwrap(), "--quiet"]).output().unwrap());
        assert!(!result.err.contains("panicked"), "{}", result.err);
        (result.code, result.err)
    };

    for length in [0, 5, 30, whole.len() / 2, whole.len() - 1] {
        std::fs::write(checkpoint(0), &whole[..length]).unwrap();
        let (code, error) = resumed();
        assert_eq!(code, Some(1));
        assert!(error.contains("truncated") && error.contains("remove the job's folder"), "{error}");
    }
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    std::fs::write(checkpoint(0), &flipped).unwrap();
    assert!(resumed().1.contains("checksum does not match"));

    std::fs::copy(checkpoint(1), checkpoint(0)).unwrap();
    assert!(resumed().1.contains("belongs to another experiment or other settings"));

    let other_format = [b"strust-checkpoint 9", &whole[19..]].concat();
    std::fs::write(checkpoint(0), other_format).unwrap();
    assert!(resumed().1.contains("has format 9, but this program reads format 2"));

    std::fs::write(checkpoint(0), &whole).unwrap();
    assert_eq!(resumed().0, Some(0));

    let plan = std::fs::read_to_string(out.join("plan.json")).unwrap();
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    std::fs::write(out.join("plan.json"), plan.edit(&version, "\"version\": \"0.0.1\"")).unwrap();
    let (code, error) = resumed();
    assert_eq!(code, Some(1));
    assert!(error.contains("planned by strust 0.0.1"), "{error}");
}

#[test]
fn a_run_that_diverges_is_reported_and_exits_with_one() {
    let folder = Folder::new();
    let text = experiment(
        "kind = \"least-squares\"\nn = 40\nd = 50",
        "[[method]]\nname = \"sgd\"\nlearning_rate = 1e9\n\n[[method]]\nname = \"str\"",
    )
    .edit("epochs = 3", "epochs = 200");
    let result = run_experiment(&folder, &text);
    assert_eq!(result.code, Some(1));
    assert!(result.err.contains("2 runs failed"), "{}", result.err);
    let summary: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.path("out/summary.json")).unwrap()).unwrap();
    let methods = &summary["problems"][0]["methods"];
    assert_eq!(methods[0]["failures"].as_array().unwrap().len(), 2);
    assert!(methods[0]["failures"][0]["error"].as_str().unwrap().contains("at the current point"));
    assert_eq!(methods[1]["seeds"], serde_json::json!([0, 1]));
}

#[test]
fn a_problem_that_cannot_be_set_up_is_refused_before_anything_is_written() {
    let folder = Folder::new();
    let second = "[[problem]]\nkind = \"subspace\"\nname = \"second\"\nd = 4\nk = 2\nn = 3\n\n";
    refused_in(&folder, &experiment(SMALL, &format!("{second}{STR_P}")), &["problem `second`", "`batch` is 8"]);
    assert!(!folder.path("out").exists());
}

#[test]
fn names_that_would_share_a_folder_are_refused() {
    let second = "[[problem]]\nkind = \"subspace\"\nname = \"a_b\"\nd = 20\nk = 2\nn = 40\n\n";
    let text = experiment(&format!("{SMALL}\nname = \"a b\""), &format!("{second}{STR_P}"));
    refused(&text, &["the same folder name `a_b`"]);
    refused(&experiment(&format!("{SMALL}\nname = 3"), STR_P), &["`name` is 3"]);
    refused(&experiment(SMALL, "[[method]]\nname = \"str-p\"\npenalty = [3, 3]"), &["`penalty` has a value twice"]);
    refused(&experiment(SMALL, STR_P).edit("[[problem]]", "[problem]"), &["[[problem]], with two brackets"]);
}

#[test]
fn a_grid_search_with_an_unknown_metric_is_refused() {
    let tune = |text: &str| format!("{STR_P}\n[tune]\n{text}");
    refused(&experiment(SMALL, &tune("metric = \"objectve\"\nepochs = 1\nseeds = 1")), &["objective_gap"]);
    refused(&experiment(SMALL, &tune("metric = \"objective_gap\"\nepochs = 1\nseeds = 0")), &["`seeds` is 0"]);
}

#[test]
fn resume_detects_a_data_file_that_changed_since_the_plan() {
    let folder = Folder::new();
    folder.write("data.csv", &(0..40).map(|i| format!("{},{}\n", i, i % 3)).collect::<Vec<_>>().concat());
    let text = experiment("kind = \"subspace\"\nk = 1\ndata = \"data.csv\"", STR_P);
    assert_eq!(run_experiment(&folder, &text).code, Some(0));
    let out = folder.path("out");
    let resume = || run(&["resume", out.to_str().unwrap(), "--quiet"]);
    let summary = std::fs::read_to_string(out.join("summary.json")).unwrap();
    assert!(summary.contains("\"data\": \"data.csv\"") && !summary.contains("\"noise\""), "{summary}");

    folder.write("data.csv", "1,2\n3,4\n");
    assert_eq!(resume().code, Some(0), "a finished run does not need its data");
    std::fs::remove_dir_all(out.join("runs/subspace.str-p.s1")).unwrap();
    let result = resume();
    assert_eq!(result.code, Some(1));
    assert!(result.err.contains("the data file has changed"), "{}", result.err);
}

#[test]
fn missing_records_of_a_finished_job_are_detected() {
    let folder = Folder::new();
    assert_eq!(run_experiment(&folder, &experiment(SMALL, STR_P)).code, Some(0));
    let out = folder.path("out");
    let records = out.join("runs/subspace.str-p.s0/records.jsonl");
    let whole = std::fs::read(&records).unwrap();
    for damaged in [&whole[..whole.len() / 2], b""] {
        std::fs::write(&records, damaged).unwrap();
        for command in ["resume", "report"] {
            let result = run(&[command, out.to_str().unwrap(), "--quiet"]);
            assert_eq!(result.code, Some(1));
            assert!(
                result.err.contains("records.jsonl") && result.err.contains("remove the job's folder"),
                "{}",
                result.err
            );
        }
    }
    std::fs::remove_dir_all(out.join("runs/subspace.str-p.s0")).unwrap();
    // A job that is missing is one that has not started: the report shows the other one.
    let result = run(&["report", out.to_str().unwrap()]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    assert!(std::fs::read_to_string(out.join("report.html")).unwrap().contains("Unfinished: 1 of 2 runs are done"));
    assert_eq!(run(&["resume", out.to_str().unwrap(), "--quiet"]).code, Some(0));
    assert_eq!(std::fs::read(&records).unwrap(), whole);
}

#[test]
fn an_edited_plan_is_refused() {
    let folder = Folder::new();
    assert_eq!(run_experiment(&folder, &experiment(SMALL, STR_P)).code, Some(0));
    let plan = folder.path("out/plan.json");
    let whole = std::fs::read_to_string(&plan).unwrap();
    let name = "\"name\": \"subspace.str-p.s0\"";
    assert!(whole.contains(name));
    for edited in [
        whole.edit(name, "\"name\": \"../../escaped\""),
        "{".into(),
        whole.edit("\"penalty\": 1.0", "\"penalty\": -1.0"),
    ] {
        std::fs::write(&plan, edited).unwrap();
        for command in ["resume", "report"] {
            let result = run(&[command, folder.path("out").to_str().unwrap(), "--quiet"]);
            assert_eq!(result.code, Some(1), "{}", result.err);
            assert!(!result.err.contains("panicked"), "{}", result.err);
        }
    }
}

#[cfg(unix)]
#[test]
fn two_programs_do_not_run_in_the_same_folder() {
    let folder = Folder::new();
    let text = experiment("kind = \"subspace\"\nd = 200\nk = 5\nn = 500", STR_P).edit("epochs = 3", "epochs = 100000");
    let file = folder.write("experiment.toml", &text);
    let out = folder.path("out");
    let mut first =
        strust().args(["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "-q"]).spawn().unwrap();
    while !out.join("runs").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let result = run(&["resume", out.to_str().unwrap(), "--quiet"]);
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(result.code, Some(1));
    assert!(result.err.contains("another strust is running in this folder"), "{}", result.err);
}

#[test]
fn tables_are_written_only_between_a_unique_pair_of_markers_on_their_own_lines() {
    let folder = Folder::new();
    assert_eq!(run_experiment(&folder, &experiment(SMALL, STR_P)).code, Some(0));
    let insert = |text: &str| {
        let file = folder.write("page.md", text);
        let result = run(&["report", folder.path("out").to_str().unwrap(), "--into", file.to_str().unwrap()]);
        (result.code, std::fs::read_to_string(file).unwrap())
    };
    for text in [
        "see `<!-- strust:test -->` and\n<!-- strust:other -->\nkept\n<!-- /strust -->\n",
        "<!-- strust:test -->\n<!-- strust:other -->\nkept\n<!-- /strust -->\n",
        "<!-- strust:test -->\nkept\n",
        "<!-- strust:test -->\na\n<!-- /strust -->\n<!-- strust:test -->\nb\n<!-- /strust -->\n",
    ] {
        assert_eq!(insert(text), (Some(1), text.to_string()));
    }
}

#[test]
fn a_report_replaces_only_files_that_strust_wrote() {
    let folder = Folder::new();
    let file = folder.write("experiment.toml", &experiment(SMALL, STR_P));
    let [one, two, mine] = ["one", "two", "mine"].map(|name| folder.path(name));
    for out in [&one, &two] {
        let result = run(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "-q"]);
        assert_eq!(result.code, Some(0), "{}", result.err);
    }
    let report = |arguments: &[&std::path::Path], flag: &str, to: &std::path::Path| {
        let folders = arguments.iter().map(|path| path.to_str().unwrap());
        run(&std::iter::once("report").chain(folders).chain([flag, to.to_str().unwrap()]).collect::<Vec<_>>())
    };
    std::fs::create_dir(&mine).unwrap();
    for name in ["report.html", "records.jsonl"] {
        std::fs::write(mine.join(name), "mine").unwrap();
    }
    for result in [report(&[&one], "--out", &mine), report(&[&one], "--publish", &mine)] {
        assert_eq!(
            (result.code, result.err.contains("strust did not write this file")),
            (Some(1), true),
            "{}",
            result.err
        );
    }
    assert_eq!(std::fs::read_to_string(mine.join("records.jsonl")).unwrap(), "mine");
    let result = report(&[&one], "--out", &two);
    assert_eq!((result.code, result.err.contains("this is the folder of a run")), (Some(1), true), "{}", result.err);
    // The folder of the run, a new folder, and the new folder again.
    assert_eq!(report(&[&one], "--out", &one).code, Some(0));
    for _ in 0..2 {
        assert_eq!(report(&[&one, &two], "--out", &folder.path("both")).code, Some(0));
        assert_eq!(report(&[&one], "--publish", &folder.path("kept")).code, Some(0));
    }
    // Two runs of the same experiment cannot share one pair of markers.
    let document = folder.write("document.md", "a\r\n<!-- strust:test -->\r\nold\r\n<!-- /strust -->\r\nb");
    let result = report(&[&one, &two], "--into", &document);
    assert_eq!(
        (result.code, result.err.contains("two folders hold the experiment")),
        (Some(1), true),
        "{}",
        result.err
    );
    assert_eq!(report(&[&one], "--into", &document).code, Some(0));
    let text = std::fs::read_to_string(&document).unwrap();
    assert!(text.starts_with("a\r\n<!-- strust:test -->\r\n**subspace**"), "{text}");
    assert!(text.ends_with("<!-- /strust -->\r\nb") && text.matches('\n').count() == text.matches("\r\n").count());
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_continues_if_standard_error_cannot_be_written() {
    let folder = Folder::new();
    let file = folder.write("experiment.toml", &experiment(SMALL, STR_P));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let out = folder.path("out");
    let arguments = ["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()];
    let status = strust().args(arguments).stdout(Stdio::null()).stderr(full).status().unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(out.join("report.html").exists());
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = strust().args(["run", "nowhere.toml"]).stderr(full).status().unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn a_failed_run_is_diagnosed_as_failed() {
    let folder = Folder::new();
    let text = experiment("kind = \"least-squares\"\nnoise = 1e300", "[[method]]\nname = \"str\"\n");
    let (file, out) = (folder.write("experiment.toml", &text), folder.path("out"));
    let result = run(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "-q"]);
    assert_eq!(result.code, Some(1), "{}", result.err);
    assert!(result.err.contains("report.html for the reasons"), "{}", result.err);
    let result = run(&["diagnose", out.to_str().unwrap()]);
    assert!(result.out.contains("seed 0: broke down\n  failed: "), "{}", result.out);
    assert!(result.out.contains("not finite at the start: check the data"), "{}", result.out);
    assert!(!result.out.contains("later") && !result.out.contains("Nothing to change"), "{}", result.out);
}
