//! The program on several ranks, as real processes under `mpirun`. `STRUST_KILLS` is the number of ranks to kill.

mod bench;
#[cfg(feature = "torch")]
mod networks;
#[path = "../cli/support.rs"]
#[allow(dead_code, reason = "the tests of the program on one machine use the rest")]
mod support;

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use support::{Edit, Finished, Folder, finished, requires, same_records, strust};

/// The longest wait for another rank, in seconds, and the time in which a run has ended after it.
const LIMIT: &str = "10";
const ENDS_WITHIN: Duration = Duration::from_secs(30);

const JOBS: &str = r#"
name = "ranks"
epochs = 8
batch = 20
seeds = 2
[[problem]]
kind = "least-squares"
n = 403
d = 30
[[problem]]
kind = "logistic"
n = 500
d = 20
[[method]]
name = "auto"
[[method]]
name = "str"
[[method]]
name = "sgd"
learning_rate = [0.01, 0.1]
"#;

/// The same with a grid search, and samples that are shared out.
fn data_parallel(block: &str) -> String {
    JOBS.edit("seeds = 2", &format!("seeds = 1\nparallel = \"data\"{block}"))
}

/// A run of a few seconds.
const LONG: &str = r#"
name = "long"
epochs = 400
batch = 64
seeds = 3
[[problem]]
kind = "least-squares"
n = 1024
d = 100
[[method]]
name = "str"
[[method]]
name = "auto"
"#;

fn mpirun() -> Command {
    let mut command = Command::new("mpirun");
    command.args(["--allow-run-as-root", "--oversubscribe"]).stdin(Stdio::null());
    command
}

fn available() -> bool {
    requires("mpi", Command::new("mpirun").arg("--version").output().is_ok_and(|output| output.status.success()))
}

/// The program on so many ranks.
fn on(ranks: usize, arguments: &[&str]) -> Command {
    let mut command = mpirun();
    command.args(["-n", &ranks.to_string(), env!("CARGO_BIN_EXE_strust")]).args(arguments);
    command.args(["--rank-limit", LIMIT, "--color", "never"]);
    command
}

fn run_on(ranks: usize, arguments: &[&str]) -> Finished {
    finished(&on(ranks, arguments).output().unwrap())
}

/// Runs a file on so many ranks, or without MPI, and returns the folder of results.
fn results(folder: &Folder, file: &Path, ranks: Option<usize>) -> PathBuf {
    let out = folder.path(&format!("on-{ranks:?}-of-{}", file.file_stem().unwrap().display()));
    let arguments = ["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--quiet"];
    let result = match ranks {
        Some(ranks) => run_on(ranks, &arguments),
        None => finished(&strust().args(arguments).output().unwrap()),
    };
    assert_eq!(result.code, Some(0), "{}", result.err);
    out
}

#[test]
fn jobs_spread_over_ranks_give_the_same_bytes() {
    if !available() {
        return;
    }
    let folder = Folder::new();
    let tuned = JOBS.to_string() + "[tune]\nmetric = \"objective\"\nepochs = 3\nseeds = 2\n";
    let tuned = tuned.edit("kind = \"least-squares\"\nn = 403\nd = 30\n[[problem]]\n", "");
    for (name, text) in [("jobs.toml", JOBS), ("tuned.toml", &tuned)] {
        let file = folder.write(name, text);
        let alone = results(&folder, &file, None);
        for ranks in [2, 4] {
            same_records(&results(&folder, &file, Some(ranks)), &alone);
        }
    }
}

/// The values of a metric in the records of a job.
fn metrics(folder: &Path, job: &str, metric: &str) -> Vec<f64> {
    let text = std::fs::read_to_string(folder.join("runs").join(job).join("records.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines.filter_map(|line| line.get("metrics")?.get(metric)?.as_f64()).collect()
}

#[test]
fn samples_shared_out_give_the_records_of_one_process() {
    if !available() {
        return;
    }
    let folder = Folder::new();
    let in_order = folder.write("in-order.toml", &data_parallel("\nblock = 3"));
    let alone = results(&folder, &in_order, None);
    for ranks in [2, 4] {
        same_records(&results(&folder, &in_order, Some(ranks)), &alone);
    }
    let fast = folder.write("fast.toml", &data_parallel(""));
    let (alone, shared) = (results(&folder, &fast, None), results(&folder, &fast, Some(4)));
    for (job, metric) in
        [("least-squares.str.s0", "objective_gap"), ("logistic.str.s0", "objective"), ("logistic.auto.s0", "objective")]
    {
        let (expected, found) = (metrics(&alone, job, metric), metrics(&shared, job, metric));
        assert!(expected.len() == 9 && found.len() == 9);
        for (expected, found) in expected.iter().zip(&found) {
            assert!((expected - found).abs() <= 1e-9 * expected.abs(), "{job}: {found} instead of {expected}");
        }
    }
}

/// The process of a rank, if it exists.
fn process_of(mpirun: &Child, rank: usize) -> Option<u32> {
    let parent = mpirun.id().to_string();
    std::fs::read_dir("/proc").unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        let id: u32 = path.file_name()?.to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(path.join("stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let environment = std::fs::read(path.join("environ")).ok()?;
        let named = format!("OMPI_COMM_WORLD_RANK={rank}");
        (*fields.get(1)? == parent && environment.split(|&b| b == 0).any(|v| v == named.as_bytes())).then_some(id)
    })
}

fn signal(name: &str, process: u32) {
    let _ = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).stderr(Stdio::null()).status();
}

/// Waits for the end of a run, which must come in time, and returns whether it succeeded and what it said.
fn end(mut child: Child) -> Finished {
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > ENDS_WITHIN {
            child.kill().unwrap();
            panic!("the ranks still run after {ENDS_WITHIN:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    finished(&child.wait_with_output().unwrap())
}

fn started(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Continues a run on so many ranks, or starts it if it was killed before it had a plan.
fn continued(file: &Path, out: &Path, ranks: usize) {
    let path = out.to_str().unwrap();
    let result = if out.join("plan.json").exists() {
        run_on(ranks, &["resume", path, "--quiet"])
    } else {
        let _ = std::fs::remove_dir_all(out);
        run_on(ranks, &["run", file.to_str().unwrap(), "--out", path, "--quiet"])
    };
    assert_eq!(result.code, Some(0), "{}", result.err);
}

/// Kill -9 of rank 0 and of another rank, at moments from the start to the end, of both kinds of runs. Another number of
/// ranks continues.
#[test]
fn killed_ranks_lose_nothing() {
    if !available() {
        return;
    }
    let kills: usize = std::env::var("STRUST_KILLS").ok().map_or(6, |kills| kills.parse().expect("a number"));
    let folder = Folder::new();
    let jobs = folder.write("jobs.toml", LONG);
    let data = LONG.edit("seeds = 3", "seeds = 1\nparallel = \"data\"\nblock = 16");
    let data = folder.write("data.toml", &data);
    let whole: Vec<(PathBuf, Duration)> = [&jobs, &data]
        .iter()
        .map(|file| {
            let began = Instant::now();
            (results(&folder, file, Some(2)), began.elapsed())
        })
        .collect();
    let mut in_time = 0;
    for kill in 0..kills {
        let (file, (expected, takes)) = if kill % 2 == 0 { (&jobs, &whole[0]) } else { (&data, &whole[1]) };
        let (victim, out) = (kill / 2 % 2, folder.path(&format!("killed-{kill}")));
        let arguments =
            ["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--save-every", "0.05", "--quiet"];
        let mut child = started(&mut on(2, &arguments));
        // Golden ratio: moments that are spread evenly, however many there are.
        std::thread::sleep(takes.mul_f64((kill as f64 * 0.618_034).fract()));
        // The moment may be before the rank exists.
        let mut process = None;
        while process.is_none() && child.try_wait().unwrap().is_none() {
            process = process_of(&child, victim);
        }
        if let Some(process) = process {
            signal("KILL", process);
        }
        let ended = end(child);
        in_time += usize::from(ended.code != Some(0));
        continued(file, &out, 1 + kill % 3);
        same_records(&out, expected);
    }
    println!("{kills} kills, {in_time} of them before the end");
    assert!(2 * in_time >= kills, "{in_time} of {kills} kills came before the end");
}

#[test]
fn a_stopped_rank_ends_all_within_the_limit() {
    if !available() {
        return;
    }
    let folder = Folder::new();
    for (name, text, victim) in [
        ("jobs", LONG.edit("epochs = 400", "epochs = 40000"), 1),
        ("data", LONG.edit("epochs = 400", "epochs = 40000\nparallel = \"data\""), 0),
    ] {
        let file = folder.write(&format!("{name}.toml"), &text);
        let out = folder.path(name);
        let arguments =
            ["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--save-every", "0.1", "--quiet"];
        let child = started(&mut on(2, &arguments));
        let began = Instant::now();
        let saved = |out: &Path| {
            let jobs = std::fs::read_dir(out.join("runs")).into_iter().flatten();
            jobs.filter_map(Result::ok).any(|job| job.path().join("checkpoint.bin").exists())
        };
        while !saved(&out) {
            assert!(began.elapsed() < ENDS_WITHIN, "no checkpoint");
            std::thread::sleep(Duration::from_millis(20));
        }
        signal("STOP", process_of(&child, victim).expect("the rank runs"));
        let ended = end(child);
        assert_ne!(ended.code, Some(0));
        let named = format!("rank {victim}: did not arrive");
        assert_eq!(ended.err.matches(&named).count(), 1, "{}", ended.err);
        // The last checkpoint is whole.
        let report = finished(&strust().args(["report", out.to_str().unwrap(), "--quiet"]).output().unwrap());
        assert!(!report.err.contains("checkpoint"), "{}", report.err);
    }
}

#[test]
fn ctrl_c_saves_and_another_number_of_ranks_continues() {
    if !available() {
        return;
    }
    let folder = Folder::new();
    for (name, text) in
        [("jobs", LONG.into()), ("data", LONG.edit("seeds = 3", "seeds = 1\nparallel = \"data\"\nblock = 16"))]
    {
        let file = folder.write(&format!("{name}.toml"), &text);
        let out = folder.path(name);
        let arguments = ["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--quiet"];
        let child = started(&mut on(2, &arguments));
        let began = Instant::now();
        while !out.join("runs").exists() && began.elapsed() < ENDS_WITHIN {
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(200));
        // What `mpirun` sends to all ranks when Ctrl-C is pressed.
        for rank in 0..2 {
            signal("TERM", process_of(&child, rank).expect("the rank runs"));
        }
        let ended = end(child);
        assert_ne!(ended.code, Some(0));
        assert_eq!(ended.err.matches("stopped. Everything is saved").count(), 1, "{}", ended.err);
        continued(&file, &out, 3);
        same_records(&out, &results(&folder, &file, Some(2)));
    }
}

/// Starts `first` on rank 0 and `second` on rank 1, each a program with its arguments before those of the run.
fn different(first: &[&str], second: &[&str], arguments: &[&str]) -> Finished {
    let limit = ["--rank-limit", LIMIT];
    let mut command = mpirun();
    command.args(["-n", "1"]).args(first).args(arguments).args(limit);
    command.args([":", "-n", "1"]).args(second).args(arguments).args(limit);
    end(started(&mut command))
}

#[test]
fn another_program_on_a_rank_is_named() {
    if !available() {
        return;
    }
    let folder = Folder::new();
    let (program, other) = (env!("CARGO_BIN_EXE_strust"), folder.path("strust"));
    std::fs::copy(program, &other).unwrap();
    std::io::Write::write_all(&mut std::fs::OpenOptions::new().append(true).open(&other).unwrap(), b"!").unwrap();
    let result = different(&[program], &[other.to_str().unwrap()], &["list"]);
    assert_ne!(result.code, Some(0));
    assert_eq!(result.err.matches("rank 1: runs another program than rank 0").count(), 1, "{}", result.err);
    assert!(!result.out.contains("Methods"), "{}", result.out);
}

/// Rank 1 sees other files than rank 0, in a namespace of its own.
#[cfg(target_os = "linux")]
#[test]
fn other_and_missing_files_on_a_rank_are_named() {
    let separate = || Command::new("unshare").args(["-rm", "true"]).status().is_ok_and(|status| status.success());
    if !available() || !requires("full-disk", separate()) {
        return;
    }
    let folder = Folder::new();
    let rows: String = (0..60).map(|i| format!("{},{},{}\n", i % 7, i % 5, i % 2)).collect::<Vec<_>>().concat();
    for (name, rows) in [("data", &rows), ("other", &rows.edit("0,0,0", "0,1,0"))] {
        std::fs::create_dir(folder.path(name)).unwrap();
        folder.write(&format!("{name}/rows.csv"), rows);
    }
    let (data, other) = (folder.path("data"), folder.path("other"));
    let text = JOBS.edit("kind = \"logistic\"\nn = 500\nd = 20", "kind = \"logistic\"\ndata = \"data/rows.csv\"");
    let hidden = format!("mount -t tmpfs tmpfs {}", data.display());
    let replaced = format!("mount --bind {} {}", other.display(), data.display());
    for (name, parallel) in [("jobs", ""), ("data", "\nparallel = \"data\"")] {
        let file = folder.write(&format!("{name}.toml"), &text.edit("epochs = 8", &format!("epochs = 8{parallel}")));
        for (i, (mount, says)) in [(&hidden, "this rank does not"), (&replaced, "differ from those")].iter().enumerate()
        {
            let out = folder.path(&format!("{name}-{i}"));
            let script = format!("{mount} && exec {} \"$@\"", env!("CARGO_BIN_EXE_strust"));
            let second = ["unshare", "-rm", "sh", "-c", &script, "strust"];
            let arguments = ["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--quiet"];
            let result = different(&[env!("CARGO_BIN_EXE_strust")], &second, &arguments);
            assert_ne!(result.code, Some(0));
            let named = result.err.lines().filter(|line| line.contains("rank 1: ") && line.contains(says)).count();
            assert_eq!(named, 1, "{name}: {}", result.err);
        }
    }
}

/// Rank 0 has a full disk: one message, and the run continues when there is space.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_on_rank_0_ends_all() {
    if !available() {
        return;
    }
    let folder = Folder::new();
    let disk = folder.path("disk");
    std::fs::create_dir(&disk).unwrap();
    for (name, text) in
        [("jobs", LONG.to_string()), ("data", LONG.edit("seeds = 3", "seeds = 1\nparallel = \"data\"\nblock = 16"))]
    {
        let file = folder.write(&format!("{name}.toml"), &text);
        let script = format!(
            "mount -t tmpfs -o size=512k tmpfs {disk} || exit 77\n\
             {mpirun} -n 2 {strust} run {file} --out {disk}/out --quiet --rank-limit {LIMIT}; first=$?\n\
             mount -o remount,size=64m {disk} || exit 77\n\
             {mpirun} -n 2 {strust} resume {disk}/out --quiet; second=$?\n\
             cp -r {disk}/out {out}\n\
             echo codes $first $second",
            mpirun = "mpirun --allow-run-as-root --oversubscribe",
            disk = disk.display(),
            strust = env!("CARGO_BIN_EXE_strust"),
            file = file.display(),
            out = folder.path(name).display(),
        );
        let output = Command::new("unshare").args(["-rm", "sh", "-c", &script]).output();
        let result = output.ok().map(|o| finished(&o)).filter(|s| s.code != Some(77) && s.out.contains("codes"));
        if !requires("full-disk", result.is_some()) {
            return;
        }
        let result = result.expect("the small disk was mounted");
        assert_eq!(result.out.trim(), "codes 1 0", "{}", result.err);
        assert_eq!(result.err.matches("No space left on device").count(), 1, "{}", result.err);
        same_records(&folder.path(name), &results(&folder, &file, None));
    }
}

/// Two files of rows, with a word, numbers and a class that follows from them.
fn write_rows(folder: &Folder) {
    for part in 0..2 {
        let row = |i: usize| {
            let (color, width) = (["red", "green", "blue"][i % 3], (i * 37 % 101) as f64 / 10.0);
            let kind = if width + (i % 3) as f64 + (i * 13 % 7) as f64 / 4.0 > 6.0 { "large" } else { "small" };
            format!("{color},{width},{},{kind}\n", i * 17 % 29)
        };
        let rows = (part * 150..part * 150 + 150).map(row).collect::<Vec<_>>().concat();
        folder.write(&format!("part-{part}.csv"), &format!("color,width,height,kind\n{rows}"));
    }
}

#[test]
fn a_fit_on_ranks_has_the_scores_of_one_process() {
    if !available() {
        return;
    }
    let folder = Folder::new();
    write_rows(&folder);
    let pattern = folder.path("part-*.csv");
    let fit = |name: &str| {
        let save = folder.path(&format!("{name}.json"));
        [
            vec!["fit".into(), pattern.display().to_string(), "--target".into(), "kind".into()],
            vec!["--save".into(), save.display().to_string(), "--json".into()],
        ]
        .concat()
    };
    let value = |result: &Finished| {
        assert_eq!(result.code, Some(0), "{}", result.err);
        serde_json::from_str::<serde_json::Value>(&result.out).unwrap()
    };
    let alone = value(&finished(&strust().args(fit("alone")).output().unwrap()));
    for ranks in [2, 4] {
        let arguments = fit(&ranks.to_string());
        let found = value(&run_on(ranks, &arguments.iter().map(String::as_str).collect::<Vec<_>>()));
        for part in ["/task", "/remarks", "/held_out/accuracy", "/held_out/confusion", "/held_out/rows"] {
            let (found, expected) = (found.pointer(part).unwrap(), alone.pointer(part).unwrap());
            assert_eq!(found, expected, "{part} on {ranks} ranks");
        }
        let loss = |of: &serde_json::Value| of["held_out"]["log_loss"].as_f64().unwrap();
        assert!((loss(&found) - loss(&alone)).abs() < 1e-12, "{} and {}", loss(&found), loss(&alone));
        assert!(folder.path(&format!("{ranks}.json")).exists() && folder.path(&format!("{ranks}.html")).exists());
    }
    let wrong = run_on(2, &["fit", "nowhere.csv", "--target", "kind"]);
    assert_ne!(wrong.code, Some(0));
    assert_eq!(wrong.err.matches("error: ").count(), 1, "{}", wrong.err);
}

#[test]
fn wrong_arguments_and_lists_are_printed_once() {
    if !available() {
        return;
    }
    let wrong = run_on(2, &["run", "--no-such-flag"]);
    assert_ne!(wrong.code, Some(0));
    assert_eq!(wrong.err.matches("unexpected argument").count(), 1, "{}", wrong.err);
    let list = run_on(3, &["list", "auto"]);
    assert_eq!((list.code, list.out.matches("Methods").count()), (Some(0), 1), "{}", list.err);
}
