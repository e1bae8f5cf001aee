//! The files of a run, and that they depend only on the seed.

use crate::support::{Edit, Folder, SMALL, experiment, lines, records, run, same_records, strust};
use rand_core::Rng;
use std::{process::Stdio, time::Duration};
use strust::sample::generator;

const FOUR: &str = "[[method]]\nname = \"str-p\"\n\n[[method]]\nname = \"sgd-proj\"\n\n[[method]]\nname = \"riemannian\"\n\n[[method]]\nname = \"auglag\"\ninner_epochs = 1\n";

#[test]
fn a_run_writes_plan_records_summary_figures_and_report() {
    let folder = Folder::new();
    let file = folder.write("experiment.toml", &experiment(SMALL, FOUR));
    let out = folder.path("out");
    let result = run(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--json"]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    for name in [
        "plan.json",
        "summary.json",
        "summary.csv",
        "report.html",
        "figures/subspace-objective_gap-epoch.svg",
        "figures/subspace-objective_gap-epoch.png",
        "figures/subspace-constraint_norm-seconds.svg",
        "runs/subspace.auglag.s1/records.jsonl",
        "runs/subspace.auglag.s1/checkpoint.bin",
    ] {
        assert!(out.join(name).is_file(), "{name} is missing");
    }

    let printed: serde_json::Value = serde_json::from_str(&result.out).expect("--json prints one JSON object");
    let written: serde_json::Value = serde_json::from_slice(&std::fs::read(out.join("summary.json")).unwrap()).unwrap();
    assert_eq!(printed, written);
    assert_eq!(written["experiment"], "test");
    assert_eq!(written["version"], env!("CARGO_PKG_VERSION"));
    let methods = written["problems"][0]["methods"].as_array().unwrap();
    assert_eq!(
        methods.iter().map(|m| m["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["str-p", "sgd-proj", "riemannian", "auglag"]
    );
    for method in methods {
        assert_eq!(method["seeds"], serde_json::json!([0, 1]));
        let curve = method["curve"].as_array().unwrap();
        assert_eq!(curve.len(), 4, "the start and three epochs");
        assert_eq!(&method["final"], curve.last().unwrap());
        assert!(method["acceptance_rate"].as_f64().unwrap() > 0.0);
        for point in curve {
            for metric in ["objective_gap", "constraint_norm"] {
                for statistic in ["mean", "std", "median"] {
                    assert!(point[metric][statistic].is_f64(), "{metric}.{statistic} of {point}");
                }
            }
            assert!(point["seconds"]["mean"].is_f64() && point["seconds"]["std"].is_f64());
            assert!(point["evaluations"]["values"].is_f64() && point["evaluations"]["gradients"].is_f64());
        }
        assert_eq!(curve[3]["evaluations"]["gradients"], 15.0, "three epochs of five batches");
    }
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("strust run") && page.contains(env!("CARGO_PKG_VERSION")));
    let csv = std::fs::read_to_string(out.join("summary.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 4 * 4);
}

#[test]
fn records_are_identical_in_every_run_and_for_every_number_of_jobs() {
    let folder = Folder::new();
    let file = folder.write("experiment.toml", &experiment(SMALL, FOUR));
    let run_with = |jobs: &str, name: &str| {
        let out = folder.path(name);
        let result = run(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--jobs", jobs, "--quiet"]);
        assert_eq!((result.code, result.out.as_str(), result.err.as_str()), (Some(0), "", ""));
        records(&out)
    };
    let once = run_with("1", "one");
    assert_eq!(once.len(), 8);
    assert_eq!(once, run_with("1", "again"));
    assert_eq!(once, run_with("5", "five"));
}

#[test]
fn a_run_killed_fifty_times_and_resumed_writes_identical_records() {
    let folder = Folder::new();
    let problem = "kind = \"subspace\"\nd = 60\nk = 3\nn = 400";
    let text = experiment(problem, FOUR).edit("epochs = 3", "epochs = 60");
    let file = folder.write("experiment.toml", &text);
    let undisturbed = folder.path("undisturbed");
    let result = run(&["run", file.to_str().unwrap(), "--out", undisturbed.to_str().unwrap(), "--quiet"]);
    assert_eq!(result.code, Some(0), "{}", result.err);

    let out = folder.path("killed");
    // Starts or resumes the run. It saves often, so that a kill may interrupt a checkpoint.
    let start_or_resume = || {
        let mut command = strust();
        if out.join("plan.json").exists() {
            command.args(["resume", out.to_str().unwrap()]);
        } else {
            let _ = std::fs::remove_dir_all(&out);
            command.args(["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
        }
        command.args(["--quiet", "--save-every", "0.003"]);
        command
    };
    let mut rng = generator(7, 0);
    let mut killed = 0;
    for _ in 0..50 {
        let mut child = start_or_resume().stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(rng.next_u64() % 60_000));
        let running = child.try_wait().unwrap().is_none();
        child.kill().unwrap();
        let result = crate::support::finished(&child.wait_with_output().unwrap());
        assert!(result.err.is_empty(), "{}", result.err);
        killed += u32::from(running);
    }
    assert!(killed >= 25, "only {killed} of 50 runs were killed before their end: make the experiment longer");
    let result = crate::support::finished(&start_or_resume().output().unwrap());
    assert_eq!(result.code, Some(0), "{}", result.err);
    same_records(&out, &undisturbed);
    assert!(out.join("report.html").is_file());
    assert_eq!(temporary_files(&out), 0, "the last run must remove the temporary files of the killed runs");
}

#[test]
fn a_lengthened_run_that_was_killed_before_its_next_checkpoint_resumes() {
    let folder = Folder::new();
    let file = folder.write("experiment.toml", &experiment(SMALL, FOUR));
    let out = folder.path("out");
    let strust = |arguments: &[&str]| {
        let result = run(&[arguments, &["--quiet"]].concat());
        assert_eq!(result.code, Some(0), "{}", result.err);
    };
    strust(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    let checkpoint = out.join("runs/subspace.str-p.s0/checkpoint.bin");
    let before = std::fs::read(&checkpoint).unwrap();
    strust(&["resume", out.to_str().unwrap(), "--epochs", "6"]);
    let whole = records(&out);
    // As after a kill: the logs have more than the last checkpoint, which is that of the shorter run.
    std::fs::write(&checkpoint, before).unwrap();
    strust(&["resume", out.to_str().unwrap()]);
    assert_eq!(records(&out), whole);
}

#[test]
fn a_job_makes_no_step_after_its_method_has_converged_also_if_it_is_lengthened() {
    let folder = Folder::new();
    let text = experiment("kind = \"pca\"", "[[method]]\nname = \"str-sqp\"\n");
    let file = folder.write("experiment.toml", &text.edit("epochs = 3", "epochs = 40").edit("seeds = 2", "seeds = 1"));
    let out = folder.path("out");
    // The epochs and the steps until then, of all epochs with as many steps as the last one.
    let last = |arguments: &[&str]| -> Vec<(u64, u64)> {
        let result = run(&[arguments, &["--quiet"]].concat());
        assert_eq!(result.code, Some(0), "{}", result.err);
        let (_, records) = records(&out).pop_first().expect("one job");
        let lines = records.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        let lines: Vec<serde_json::Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
        let steps = lines.iter().filter(|line| line["type"] == "step").count() as u64;
        let epochs = lines.iter().filter(|line| line["type"] == "epoch");
        let epochs = epochs.map(|line| (line["epoch"].as_u64().unwrap(), line["steps"].as_u64().unwrap()));
        epochs.filter(|&(_, made)| made == steps).collect()
    };
    let first = last(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    let (converged, steps) = first[0];
    assert!(converged < 35, "{first:?}");
    assert_eq!(first, (converged..=40).map(|epoch| (epoch, steps)).collect::<Vec<_>>());
    let longer = last(&["resume", out.to_str().unwrap(), "--epochs", "50"]);
    assert_eq!(longer, (converged..=50).map(|epoch| (epoch, steps)).collect::<Vec<_>>());
}

#[test]
fn every_nth_epoch_is_measured_with_the_same_records_also_if_the_run_is_lengthened() {
    let folder = Folder::new();
    // The lines of epochs, by job.
    let epochs = |out: &std::path::Path| -> std::collections::BTreeMap<String, Vec<String>> {
        let epochs = |text: Vec<u8>| {
            let text = String::from_utf8(text).unwrap();
            text.lines().filter(|line| line.contains("\"epoch\":")).map(String::from).collect()
        };
        records(out).into_iter().map(|(job, text)| (job, epochs(text))).collect()
    };
    let strust = |arguments: &[&str]| {
        let result = run(&[arguments, &["--quiet"]].concat());
        assert_eq!(result.code, Some(0), "{}", result.err);
    };
    // `str-sqp` on all terms converges before the end.
    for (problem, methods) in [(SMALL, FOUR), ("kind = \"pca\"", "[[method]]\nname = \"str-sqp\"\n")] {
        let text = experiment(problem, methods).edit("epochs = 3", "epochs = 40");
        let [all, some] = ["all", "some"].map(|name| folder.path(&format!("{}-{name}", methods.len())));
        strust(&["run", folder.write("all.toml", &text).to_str().unwrap(), "--out", all.to_str().unwrap()]);
        let text = text.edit("epochs = 40", "epochs = 13\nmeasure_every = 5");
        strust(&["run", folder.write("some.toml", &text).to_str().unwrap(), "--out", some.to_str().unwrap()]);
        strust(&["resume", some.to_str().unwrap()]);
        let common = |places: &[usize]| -> std::collections::BTreeMap<String, Vec<String>> {
            let chosen = |lines: Vec<String>| places.iter().map(|&place| lines[place].clone()).collect();
            epochs(&all).into_iter().map(|(job, lines)| (job, chosen(lines))).collect()
        };
        assert_eq!(epochs(&some), common(&[0, 5, 10, 13]));
        strust(&["resume", some.to_str().unwrap(), "--epochs", "40"]);
        assert_eq!(epochs(&some), common(&[0, 5, 10, 13, 15, 20, 25, 30, 35, 40]));
        let csv = std::fs::read_to_string(some.join("summary.csv")).unwrap();
        // The last epoch of the shorter run is left out.
        assert_eq!(csv.lines().count(), 1 + 9 * methods.matches("[[method]]").count());
    }
}

fn temporary_files(folder: &std::path::Path) -> usize {
    all_files(folder).iter().filter(|name| std::path::Path::new(name).extension().is_some_and(|e| e == "tmp")).count()
}

fn all_files(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    entries.flat_map(|p| if p.is_dir() { all_files(&p) } else { vec![p.display().to_string()] }).collect()
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_cleanly_and_prints_the_command_to_resume() {
    let folder = Folder::new();
    let text = experiment("kind = \"subspace\"\nd = 200\nk = 5\nn = 500", FOUR).edit("epochs = 3", "epochs = 4000");
    let file = folder.write("experiment.toml", &text);
    let out = folder.path("out");
    let child = strust()
        .args(["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--quiet"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !out.join("runs").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(300));
    let status = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    let result = crate::support::finished(&child.wait_with_output().unwrap());
    assert_eq!(result.code, Some(1));
    assert!(result.err.contains(&format!("strust resume {}", out.display())), "{}", result.err);
    assert!(all_files(&out).iter().any(|name| name.ends_with("checkpoint.bin")));
    assert_eq!(temporary_files(&out), 0);
}

#[test]
fn a_grid_search_chooses_by_the_tuning_seeds_and_reports_its_cost() {
    let folder = Folder::new();
    let methods = "[[method]]\nname = \"sgd-proj\"\nlearning_rate = [1e-6, 0.05]\n\n[[method]]\nname = \"auglag\"\nlearning_rate = [1e-6, 0.05]\n\n[tune]\nmetric = \"objective_gap\"\nepochs = 2\nseeds = 3\n";
    let file = folder.write("experiment.toml", &experiment(SMALL, methods));
    let out = folder.path("out");
    let result = run(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--quiet"]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    let summary: serde_json::Value = serde_json::from_slice(&std::fs::read(out.join("summary.json")).unwrap()).unwrap();
    for (i, method) in summary["problems"][0]["methods"].as_array().unwrap().iter().enumerate() {
        assert_eq!(method["hyperparameters"]["learning_rate"], 0.05);
        assert_eq!(method["seeds"], serde_json::json!([0, 1]));
        let tuning = &summary["tuning"][i];
        assert_eq!(tuning["tried"].as_array().unwrap().len(), 2);
        assert_eq!(tuning["cost"]["runs"], 6);
        assert_eq!(tuning["cost"]["gradients"], 6 * 2 * 5);
    }
    assert!(std::fs::read_to_string(out.join("report.html")).unwrap().contains("1e-6"));
}

#[test]
fn a_grid_search_over_several_blocks_of_a_method_runs_the_best_one() {
    let folder = Folder::new();
    let methods = "[[method]]\nname = \"sgd-proj\"\nlearning_rate = 1e-9\n\n[[method]]\nname = \"sgd-proj\"\nlearning_rate = 0.05\n\n[tune]\nmetric = \"objective_gap\"\nepochs = 2\nseeds = 1\n";
    let file = folder.write("experiment.toml", &experiment(SMALL, methods));
    let out = folder.path("out");
    let result = run(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--json"]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    let summary: serde_json::Value = serde_json::from_str(&result.out).unwrap();
    let methods = summary["problems"][0]["methods"].as_array().unwrap();
    assert_eq!(methods.len(), 1);
    assert_eq!(methods[0]["hyperparameters"]["learning_rate"], 0.05);
    assert_eq!(summary["tuning"][0]["tried"][0]["setting"]["learning_rate"], 0.05);
}

#[test]
fn several_runs_are_compared_in_one_report() {
    let folder = Folder::new();
    let out = |name: &str| folder.path(name).to_str().unwrap().to_string();
    for (name, seeds) in [("a", "seeds = 1"), ("b", "seeds = 2")] {
        let text = experiment(SMALL, FOUR).edit("seeds = 2", seeds).edit("\"test\"", &format!("\"{name}\""));
        let file = folder.write(&format!("{name}.toml"), &text);
        assert_eq!(run(&["run", file.to_str().unwrap(), "--out", &out(name), "-q"]).code, Some(0));
    }
    let result = run(&["report", &out("a"), &out("b"), "--out", &out("both")]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    let page = std::fs::read_to_string(folder.path("both/report.html")).unwrap();
    assert!(page.contains("str-p (a)") && page.contains("str-p (b)"));

    let result = run(&["report", &out("a"), "--markdown", "--at", "0,3"]);
    assert!(result.out.contains("| method | 0 | 3 |"), "{}", result.out);
    let readme = folder.write("README.md", "before\n<!-- strust:a -->\nold\n<!-- /strust -->\nafter\n");
    let result = strust().args(["report", "a", "--into", "README.md"]).current_dir(folder.0.path()).output().unwrap();
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    let text = std::fs::read_to_string(&readme).unwrap();
    assert!(
        text.starts_with("before\n")
            && text.ends_with("after\n")
            && text.contains("| str-p |")
            && !text.contains("old")
    );
}

#[test]
fn published_results_are_complete_and_contain_no_local_paths() {
    let folder = Folder::new();
    let file = folder.write("test.toml", &experiment(SMALL, FOUR));
    let (out, to) = (folder.path("out"), folder.path("kept"));
    let (out, kept) = (out.to_str().unwrap(), to.to_str().unwrap());
    assert_eq!(run(&["run", file.to_str().unwrap(), "--out", out, "-q"]).code, Some(0));
    // The second time replaces the published files.
    for _ in 0..2 {
        let result = run(&["report", out, "--publish", kept]);
        assert_eq!(result.code, Some(0), "{}", result.err);
    }
    let read = |name: &str| std::fs::read_to_string(to.join(name)).unwrap();
    let records = read("records.jsonl");
    let summary: serde_json::Value = serde_json::from_str(&read("summary.json")).unwrap();
    let epochs = summary["epochs"].as_u64().unwrap() as usize;
    assert_eq!(records.lines().count(), 4 * 2 * (epochs + 1));
    let line: serde_json::Value = serde_json::from_str(records.lines().next().unwrap()).unwrap();
    assert!(line["job"].is_string() && line["seconds"].is_number() && line["metrics"].is_object(), "{line}");
    assert!(to.join("report.html").is_file() && to.join("summary.csv").is_file());
    assert!(!to.join("plan.json").exists() && !to.join("runs").exists());
    assert!(!records.contains(folder.0.path().to_str().unwrap()));

    let result = run(&["report", kept, out, "--publish", kept]);
    assert_eq!((result.code, result.err.contains("one results folder")), (Some(2), true), "{}", result.err);
    let result = run(&["report", out, "--publish", out]);
    assert_eq!((result.code, result.err.contains("the folder of a run")), (Some(1), true), "{}", result.err);
    let result = run(&["report", out, "--markdown", "--mean", "--at", "1"]);
    assert!(
        result.out.contains("mean ± standard deviation over 2 seeds") && result.out.contains(" ± "),
        "{}",
        result.out
    );
    // Published results can be reported again.
    assert_eq!(run(&["report", kept, "--markdown", "--mean", "--at", "1"]).out, result.out);
    std::fs::write(to.join("summary.json"), "{}").unwrap();
    let result = run(&["report", kept, "--markdown"]);
    assert_eq!((result.code, result.err.contains("not a summary of strust")), (Some(1), true), "{}", result.err);
}

/// Forty lines of data.
fn rows(row: impl Fn(usize) -> String) -> String {
    lines(40, row)
}

#[test]
fn every_problem_runs_with_every_method_that_fits() {
    let folder = Folder::new();
    folder.write("classes.csv", &rows(|i| format!("{},{},{}\n", i % 7, (i * 5) % 11, i % 3)));
    folder.write("two.libsvm", &rows(|i| format!("{} 1:{} 3:{}\n", i % 2, i % 7, (i * 5) % 11)));
    folder.write("matrix.csv", &rows(|i| format!("{},{},{}\n", i % 7, (i * 5) % 11, i % 3)));
    let free = ["str", "sgd", "adam", "sls"]
        .map(|m| format!("[[method]]\nname = \"{m}\"\n"))
        .concat()
        .edit("\"sgd\"\n", "\"sgd\"\nlearning_rate = 1e-3\n");
    let problems = [
        ("kind = \"least-squares\"\nn = 40\nd = 50", &free),
        ("kind = \"least-squares\"\nn = 80\nd = 20\nnoise = 0.1", &free),
        ("kind = \"logistic\"\nn = 40\nd = 5", &free),
        ("kind = \"logistic\"\ndata = \"two.libsvm\"\nregularization = 0.01", &free),
        ("kind = \"softmax\"\ndata = \"classes.csv\"", &free),
        ("kind = \"factorization\"\nm = 40\nn = 10", &free),
        ("kind = \"factorization\"\ndata = \"matrix.csv\"\nwidth = 2", &free),
        (SMALL, &free),
        ("kind = \"subspace\"\nk = 1\ndata = \"matrix.csv\"", &FOUR.to_string()),
    ];
    for (i, (problem, methods)) in problems.iter().enumerate() {
        let file = folder.write("experiment.toml", &experiment(problem, methods));
        let result =
            run(&["run", file.to_str().unwrap(), "--out", folder.path(&format!("out{i}")).to_str().unwrap(), "-q"]);
        assert_eq!(result.code, Some(0), "{problem}: {}", result.err);
    }
}

#[test]
fn problems_of_a_file_show_their_true_size_their_gap_and_their_accuracies() {
    let folder = Folder::new();
    let header = "width,kind,height\n".to_string();
    folder.write("two.csv", &(header + &rows(|i| format!("{},{},{}\n", i % 7, (i * i / 3) % 2, 100 + (i * 5) % 11))));
    let shared = "data = \"two.csv\"\nlabel = \"kind\"\ntest_share = 0.25\nstandardize = \"on\"\nintercept = \"on\"\n\
                  optimum = \"on\"";
    let problems = format!(
        "kind = \"logistic\"\nregularization = 0.1\ntrain_accuracy = \"on\"\n{shared}\n\
                            [[problem]]\nkind = \"least-squares\"\n{shared}"
    );
    let file = folder.write("experiment.toml", &experiment(&problems, "[[method]]\nname = \"auto\""));
    let out = folder.path("out");
    let result = run(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--json", "-q"]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    let summary: serde_json::Value = serde_json::from_str(&result.out).unwrap();
    let last = |problem: usize, key: &str| {
        let number = &summary["problems"][problem]["methods"][0]["final"][key]["median"];
        number.as_f64().unwrap_or_else(|| panic!("{key}: {number}"))
    };
    assert!(last(0, "objective_gap") >= 0.0 && last(0, "objective_gap") < 0.1);
    assert!((0.0..=1.0).contains(&last(0, "train_accuracy")) && (0.0..=1.0).contains(&last(0, "test_accuracy")));
    assert!(last(1, "objective_gap") >= 0.0 && last(1, "test_loss") > 0.0);
    for i in 0..2 {
        let title = summary["problems"][i]["title"].as_str().unwrap();
        assert!(title.ends_with("; 30 terms, 3 parameters)") && title.contains("data = two.csv"), "{title}");
    }
    let plan: serde_json::Value = serde_json::from_slice(&std::fs::read(out.join("plan.json")).unwrap()).unwrap();
    assert_eq!(plan["sizes"]["logistic"], serde_json::json!({ "terms": 30, "parameters": 3 }));
    let parameters = &plan["jobs"][0]["problem"]["parameters"];
    assert!(parameters.get("n").is_none() && parameters.get("d").is_none(), "the defaults of synthetic data: {plan}");
}

#[test]
fn experiments_read_words_blanks_quotes_and_a_named_label() {
    let folder = Folder::new();
    let row = |i: usize| {
        // The class follows from the town, except in some rows. Every ninth age and the last label are unknown.
        let town = ["\"Rome, Lazio\"", "Bonn", "\"the \"\"big\"\" one\""][i % 3];
        let (first, second) = (
            ["no", "yes", "perhaps"][(i + usize::from(i.is_multiple_of(7))) % 3],
            ["no", "yes"][usize::from(i.is_multiple_of(3))],
        );
        let age = if i.is_multiple_of(9) { "NA".to_string() } else { (20 + i % 50).to_string() };
        let first = if i == 89 { "" } else { first };
        format!("{age},{first},{town},{second}\n")
    };
    folder
        .write("people.csv", &format!("age,answer,\"home, town\",\"is it\"\n{}", (0..90).map(row).collect::<String>()));
    let shared = "data = \"people.csv\"\nstandardize = \"on\"\ntest_share = 0.2\ntrain_accuracy = \"on\"";
    let problems = format!(
        "kind = \"logistic\"\nlabel = \"is it\"\n{shared}\n[[problem]]\nkind = \"softmax\"\nlabel = \"answer\"\n{shared}\n\
         [[problem]]\nkind = \"mlp\"\nhidden = \"8\"\nlabel = \"answer\"\n{shared}"
    );
    let text = experiment(&problems, "[[method]]\nname = \"auto\"").edit("epochs = 3", "epochs = 30");
    let (file, out) = (folder.write("experiment.toml", &text), folder.path("out"));
    let result = run(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--json", "-q"]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    let summary: serde_json::Value = serde_json::from_str(&result.out).unwrap();
    // The features of `logistic`: the age, three answers and a blank one, and three towns. Those of the others: the age,
    // three towns and two words, without the row whose label is blank.
    let sizes = [("logistic", 72, 8), ("softmax", 71, 18), ("mlp", 71, 7 * 8 + 9 * 3)];
    let plan: serde_json::Value = serde_json::from_slice(&std::fs::read(out.join("plan.json")).unwrap()).unwrap();
    for (i, (kind, terms, parameters)) in sizes.into_iter().enumerate() {
        assert_eq!(plan["sizes"][kind], serde_json::json!({ "terms": terms, "parameters": parameters }), "{kind}");
        let last = |key: &str| summary["problems"][i]["methods"][0]["final"][key]["median"].as_f64().unwrap();
        // The town alone decides the class of `logistic`.
        assert!(last("train_accuracy") > if i == 0 { 0.99 } else { 0.5 }, "{kind}: {}", last("train_accuracy"));
        assert!((0.0..=1.0).contains(&last("test_accuracy")), "{kind}");
    }
}

#[test]
fn the_digits_need_no_file_and_the_summary_has_loss_accuracy_and_passes() {
    let folder = Folder::new();
    let out = folder.path("out");
    let result =
        run(&["reproduce", "digits", "--seeds", "1", "--epochs", "2", "--out", out.to_str().unwrap(), "--json"]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    let summary: serde_json::Value = serde_json::from_str(&result.out).unwrap();
    let methods = summary["problems"][0]["methods"].as_array().unwrap();
    assert_eq!(methods.iter().map(|m| m["name"].as_str().unwrap()).collect::<Vec<_>>(), ["sgd", "adam", "sls", "str"]);
    for method in methods {
        let last = &method["final"];
        for key in ["train_loss", "test_accuracy", "seconds", "forwards", "backwards"] {
            for statistic in ["mean", "std", "median"] {
                assert!(last[key][statistic].is_f64(), "{key}.{statistic} of {last}");
            }
        }
        assert!(last["test_accuracy"]["median"].as_f64().unwrap() > 0.85, "{}: {last}", method["name"]);
        let (forwards, backwards) =
            (last["forwards"]["mean"].as_f64().unwrap(), last["backwards"]["mean"].as_f64().unwrap());
        match method["name"].as_str().unwrap() {
            "sgd" | "adam" => assert!(forwards.to_bits() == backwards.to_bits()),
            _ => assert!(forwards > backwards, "a trial must count as a forward pass"),
        }
    }
    assert!(out.join("figures/digits-test_accuracy-passes.svg").is_file());
    assert!(out.join("figures/digits-ratio-epoch.svg").is_file());
}

#[test]
fn a_folder_in_the_format_of_mnist_is_used_for_training_and_test() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("digits")).unwrap();
    let idx = |name: &str, shape: &[u8], bytes: Vec<u8>| {
        let sizes = shape.iter().flat_map(|&size| [0, 0, 0, size]);
        let file: Vec<u8> = [0, 0, 8, shape.len() as u8].into_iter().chain(sizes).chain(bytes).collect();
        std::fs::write(folder.path("digits").join(name), file).unwrap();
    };
    // The class determines which of the two pixels is white.
    let labels = |n: u8| (0..n).map(|i| i % 2).collect::<Vec<_>>();
    let pixels = |n: u8| labels(n).iter().flat_map(|&label| [255 * label, 255 - 255 * label]).collect::<Vec<_>>();
    idx("train-images-idx3-ubyte", &[40, 1, 2], pixels(40));
    idx("train-labels-idx1-ubyte", &[40], labels(40));
    idx("t10k-images-idx3-ubyte", &[6, 1, 2], pixels(6));
    let text = experiment("kind = \"mlp\"\nhidden = \"none\"\ndata = \"digits\"", "[[method]]\nname = \"str\"");
    let file = folder.write("experiment.toml", &text.edit("epochs = 3", "epochs = 20"));
    let out = folder.path("out");
    let run_again = || run(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--json", "-q"]);
    let result = run_again();
    assert_eq!(result.code, Some(1));
    assert!(result.err.contains("digits/t10k-labels-idx1-ubyte: there is no such file"), "{}", result.err);

    idx("t10k-labels-idx1-ubyte", &[6], labels(6));
    let result = run_again();
    assert_eq!(result.code, Some(0), "{}", result.err);
    let summary: serde_json::Value = serde_json::from_str(&result.out).unwrap();
    let accuracy = &summary["problems"][0]["methods"][0]["final"]["test_accuracy"]["median"];
    assert!(accuracy.as_f64() > Some(0.99), "{accuracy}");

    idx("t10k-labels-idx1-ubyte", &[6], vec![0; 6]);
    std::fs::remove_dir_all(out.join("runs/mlp.str.s1")).unwrap();
    let result = run(&["resume", out.to_str().unwrap(), "--quiet"]);
    assert!(result.err.contains("the data file has changed"), "{}", result.err);
}
