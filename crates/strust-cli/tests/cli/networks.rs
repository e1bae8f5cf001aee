//! Networks with libtorch. The tests make their own images in CIFAR-10's format, so they download nothing.

use crate::support::{Folder, records, run};

/// Without libtorch, each of these commands prints build instructions.
#[cfg(not(feature = "torch"))]
#[test]
fn a_build_without_libtorch_prints_build_instructions() {
    let folder = Folder::new();
    let small =
        "name = \"small\"\nepochs = 1\nbatch = 2\nseeds = 1\n[[problem]]\nkind = \"gpt\"\n[[method]]\nname = \"sgd\"\n";
    let file = folder.write("small.toml", small);
    let commands: [&[&str]; 5] = [
        &["run", file.to_str().unwrap()],
        &["reproduce", "cifar10"],
        &["evaluate", "model.safetensors", "--data", "."],
        &["train", "cifar10", "--save", "model.safetensors"],
        &["bench", "cifar10"],
    ];
    for command in commands {
        let result = run(command);
        assert_eq!(result.code, Some(1), "{command:?}");
        assert!(result.err.contains("built without it") && result.err.contains("--features torch"), "{}", result.err);
    }
    assert!(!std::path::Path::new("model.safetensors").exists());
}

#[test]
fn network_options_are_refused_without_a_network() {
    let result = run(&["reproduce", "digits", "--device", "cpu"]);
    assert_eq!((result.code, result.err.contains("--device is only for networks")), (Some(2), true), "{}", result.err);
    let result = run(&["reproduce", "subspace", "--quick"]);
    assert_eq!((result.code, result.err.contains("--quick is only for cifar10")), (Some(2), true), "{}", result.err);
    let result = run(&["train", "digits", "--save", "x"]);
    assert_eq!((result.code, result.err.contains("the experiment has no network")), (Some(1), true), "{}", result.err);
}

/// If the loss at a trial point is not finite, the step is rejected, the radius shrinks and the run continues.
#[test]
fn a_trial_that_is_not_finite_is_rejected_and_recorded() {
    let folder = Folder::new();
    // The features are so large that a full step overflows f32.
    let rows: Vec<String> = (0..20).map(|i| format!("{}e30,{}e30,{}", i % 7, (3 * i) % 5, i % 2)).collect();
    folder.write("huge.csv", &rows.join("\n"));
    let text = "name = \"huge\"\nepochs = 20\nbatch = 4\nseeds = 1\n\n[[problem]]\nkind = \"mlp\"\nhidden = \"4\"\ndata = \"huge.csv\"\n\n\
                [[method]]\nname = \"str\"\ninitial_radius = 1e30\nmax_radius = 1e30\nshrink = 1e6\n";
    let out = folder.path("out");
    let file = folder.write("huge.toml", text);
    let result = run(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--quiet"]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    let lines = String::from_utf8(records(&out).into_values().next().unwrap()).unwrap();
    let steps: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &serde_json::Value| line["type"] == "step")
        .collect();
    let overflowed: Vec<_> = steps.iter().filter(|s| s["trial"].is_null() && s["exit"] != "stationary").collect();
    assert!(!overflowed.is_empty(), "no trial overflowed: {lines}");
    assert!(overflowed.iter().all(|s| s["verdict"] == "rejected" && s["change"] == "shrink"), "{overflowed:?}");
    assert!(steps.iter().any(|s| s["verdict"] == "accepted"), "the run must continue");
}

#[cfg(feature = "torch")]
mod with_torch {
    use crate::support::{Edit, Finished, Folder, fails, finished, records, refused, same_records, strust};
    use std::{fs, path::PathBuf};

    const RECORD: usize = 3073;

    /// Images in CIFAR-10's format. The class sets the brightness; a pattern is added.
    fn images(count: usize, salt: usize) -> Vec<u8> {
        (0..count)
            .flat_map(|i| {
                let class = i % 10;
                let pixel = move |p: usize| (20 * class + (p * 7 + i * 13 + salt) % 31) as u8;
                std::iter::once(class as u8).chain((0..RECORD - 1).map(pixel))
            })
            .collect()
    }

    fn data(folder: &Folder) -> PathBuf {
        let data = folder.path("images");
        fs::create_dir(&data).unwrap();
        fs::write(data.join("data_batch_1.bin"), images(48, 0)).unwrap();
        fs::write(data.join("test_batch.bin"), images(20, 5)).unwrap();
        data
    }

    fn experiment(methods: &[&str]) -> String {
        let methods = methods.join("\n\n[[method]]\n");
        format!(
            "name = \"small\"\nepochs = 2\nbatch = 16\nseeds = 1\n\n[[problem]]\nkind = \"cifar10\"\ndata = \"images\"\n\
             checksums = \"none\"\ndevice = \"cpu\"\n\n[[method]]\n{methods}\n"
        )
    }

    const ALL: [&str; 4] = [
        "name = \"sgd\"\nlearning_rate = 0.1",
        "name = \"adam\"\nlearning_rate = 0.001",
        "name = \"sls\"",
        "name = \"str\"",
    ];

    fn go(folder: &Folder, arguments: &[&str]) -> Finished {
        finished(&strust().current_dir(folder.0.path()).args(arguments).arg("--quiet").output().unwrap())
    }

    #[test]
    fn four_methods_train_a_network_and_the_report_names_the_device() {
        let folder = Folder::new();
        data(&folder);
        folder.write("small.toml", &experiment(&ALL));
        for (out, jobs) in [("once", "1"), ("again", "3")] {
            let result = go(&folder, &["run", "small.toml", "--out", out, "--jobs", jobs]);
            assert_eq!(result.code, Some(0), "{}", result.err);
        }
        same_records(&folder.path("once"), &folder.path("again"));

        let read = |name: &str| fs::read_to_string(folder.path("once").join(name)).unwrap();
        let summary: serde_json::Value = serde_json::from_str(&read("summary.json")).unwrap();
        assert!(summary["machine"]["device"].as_str().unwrap().starts_with("cpu (libtorch 2."));
        assert!(summary["machine"]["device"].as_str().unwrap().ends_with(", 1 thread)"));
        assert!(read("report.html").contains("<dt>device</dt><dd>cpu (libtorch 2."));
        for method in summary["problems"][0]["methods"].as_array().unwrap() {
            let last = &method["final"];
            for key in ["train_loss", "test_accuracy", "seconds", "forwards", "backwards"] {
                assert!(last[key]["mean"].is_number(), "{key} of {}", method["name"]);
            }
            assert_eq!(last["backwards"]["mean"], 6.0);
            let losses = [0, 2].map(|epoch| method["curve"][epoch]["train_loss"]["mean"].as_f64().unwrap());
            assert!(losses[1].is_finite() && losses[0] > 2.0, "{losses:?}");
        }
    }

    #[test]
    fn rotations_are_classes_and_a_network_can_be_wide() {
        let folder = Folder::new();
        data(&folder);
        let text = experiment(&["name = \"auto\""]).edit("epochs = 2", "epochs = 2\nmeasure_every = 2");
        let wide = "checksums = \"none\"\nclasses = \"objects-and-rotations\"\nwidth = 2";
        folder.write("small.toml", &text.edit("checksums = \"none\"", wide));
        let result = go(&folder, &["run", "small.toml", "--out", "out"]);
        assert_eq!(result.code, Some(0), "{}", result.err);
        let summary = fs::read(folder.path("out/summary.json")).unwrap();
        let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
        let curve = summary["problems"][0]["methods"][0]["curve"].as_array().unwrap();
        assert_eq!(curve.iter().map(|at| at["epoch"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 2]);
        // ln 40 at random.
        assert!(curve[0]["train_loss"]["mean"].as_f64().unwrap() > 3.0, "{curve:?}");
        for (wrong, range) in [("classes = \"all\"", "objects-and-rotations"), ("width = 0", "[1, 64]")] {
            let text = experiment(&["name = \"auto\""]).edit("checksums", &format!("{wrong}\nchecksums"));
            folder.write("wrong.toml", &text);
            fails(&go(&folder, &["run", "wrong.toml"]), &[range]);
        }
    }

    #[test]
    fn a_killed_run_resumes_bit_for_bit() {
        let folder = Folder::new();
        data(&folder);
        folder.write("small.toml", &experiment(&["name = \"str\""]).edit("epochs = 2", "epochs = 6"));
        assert_eq!(go(&folder, &["run", "small.toml", "--out", "whole"]).code, Some(0));
        let arguments = ["run", "small.toml", "--out", "stopped", "--save-every", "0", "--quiet"];
        let mut child = strust().current_dir(folder.0.path()).args(arguments).spawn().unwrap();
        // Kill it when some steps are recorded, but not all.
        let log = folder.path("stopped/runs/cifar10.str.s0/records.jsonl");
        while fs::metadata(&log).map_or(0, |data| data.len()) < 1500 {
            assert!(child.try_wait().unwrap().is_none(), "the run ended before the test could kill it");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_ne!(records(&folder.path("stopped")), records(&folder.path("whole")));
        let result = go(&folder, &["resume", "stopped"]);
        assert_eq!(result.code, Some(0), "{}", result.err);
        same_records(&folder.path("stopped"), &folder.path("whole"));
    }

    #[cfg(unix)]
    #[test]
    fn interrupted_training_resumes_with_the_same_command() {
        let folder = Folder::new();
        data(&folder);
        folder.write("small.toml", &experiment(&["name = \"str\""]).edit("epochs = 2", "epochs = 40"));
        let train = ["train", "small.toml", "--save", "model.safetensors", "--quiet"];
        // The file names another method, but the default is auto.
        let mut child = strust()
            .current_dir(folder.0.path())
            .args(train)
            .stderr(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        while !folder.path("runs/small-auto/runs/cifar10.auto.s0/records.jsonl").exists() {
            assert!(child.try_wait().unwrap().is_none(), "the training ended before it wrote a record");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let status = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(status.success());
        let stopped = finished(&child.wait_with_output().unwrap());
        fails(&stopped, &["resume with: strust train small.toml --save model.safetensors"]);
        assert!(!folder.path("model.safetensors").exists());
        let result = go(&folder, &train[..4]);
        assert_eq!(result.code, Some(0), "{}", result.err);
        assert!(folder.path("model.safetensors").is_file());
    }

    #[test]
    fn small_networks_train_on_built_in_data_or_files_and_are_saved() {
        let folder = Folder::new();
        folder.write("poem.txt", &"the rain in spain stays mainly in the plain, ".repeat(40));
        let head = "name = \"nets\"\nepochs = 2\nbatch = 32\nseeds = 1\n\n";
        let gpt = "[[problem]]\nkind = \"gpt\"\nlayers = 1\nwidth = 16\nheads = 2\ncontext = 15\ndata = \"poem.txt\"\n";
        let convnet = "[[problem]]\nkind = \"convnet\"\nbatch_norm = \"on\"\n";
        let methods = "[[method]]\nname = \"adam\"\nlearning_rate = 0.01\nschedule = \"cosine\"\naverage = \"on\"\n";
        folder.write("nets.toml", &format!("{head}{gpt}{convnet}{methods}"));
        for (out, jobs) in [("once", "1"), ("again", "2")] {
            let arguments =
                ["run", "nets.toml", "--device", "cpu", "--precision", "single", "--out", out, "--jobs", jobs];
            let result = go(&folder, &arguments);
            assert_eq!(result.code, Some(0), "{}", result.err);
        }
        same_records(&folder.path("once"), &folder.path("again"));
        let text = fs::read_to_string(folder.path("once/summary.json")).unwrap();
        let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
        for (problem, key) in [(0, "test_loss"), (1, "test_accuracy")] {
            let method = &summary["problems"][problem]["methods"][0];
            let loss = |epoch: usize| method["curve"][epoch]["train_loss"]["mean"].as_f64().unwrap();
            assert!(loss(2) < loss(0) && method["final"][key]["mean"].is_number(), "{method}");
        }
        let data = go(&folder, &["run", "nets.toml", "--data", "poem.txt", "--out", "other"]);
        let why = "--data is for networks without built-in data";
        assert_eq!((data.code, data.err.contains(why)), (Some(2), true), "{}", data.err);

        folder.write("gpt.toml", &format!("{head}{gpt}{methods}"));
        let train = ["train", "gpt.toml", "--method", "adam", "--device", "cpu", "--save", "gpt.safetensors"];
        let result = go(&folder, &train);
        assert_eq!(result.code, Some(0), "{}", result.err);
        assert!(fs::read(folder.path("gpt.safetensors")).unwrap().windows(10).any(|name| name == b"wte.weight"));
        folder.write("odd.toml", &format!("{head}{gpt}{methods}").edit("heads = 2", "heads = 3"));
        let odd = go(&folder, &["run", "odd.toml", "--out", "odd"]);
        assert!(odd.err.contains("`heads` is 3, but must divide `width`, which is 16"), "{}", odd.err);
    }

    /// The running statistics of the last step do not belong to the average. The saved ones are those of the measurement.
    #[test]
    fn an_averaged_network_is_saved_as_it_was_measured() {
        let folder = Folder::new();
        data(&folder);
        folder.write("small.toml", &experiment(&["name = \"sgd\"\nlearning_rate = 0.1\naverage = \"on\""]));
        let train = ["train", "small.toml", "--method", "sgd", "--save", "model.safetensors", "--out", "run"];
        let result = go(&folder, &train);
        assert_eq!(result.code, Some(0), "{}", result.err);
        let evaluate =
            ["evaluate", "model.safetensors", "--data", "images", "--unchecked", "--device", "cpu", "--json"];
        let found: serde_json::Value = serde_json::from_str(&go(&folder, &evaluate).out).unwrap();
        let text = fs::read_to_string(folder.path("run/summary.json")).unwrap();
        let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(found["accuracy"], summary["problems"][0]["methods"][0]["final"]["test_accuracy"]["mean"]);
    }

    #[test]
    fn a_trained_network_is_saved_and_evaluated() {
        let folder = Folder::new();
        data(&folder);
        folder.write("small.toml", &experiment(&ALL));
        let result =
            go(&folder, &["train", "small.toml", "--method", "adam", "--save", "model.safetensors", "--out", "run"]);
        assert_eq!(result.code, Some(0), "{}", result.err);
        let evaluate = ["evaluate", "model.safetensors", "--data", "images", "--unchecked", "--device", "cpu"];
        let result = go(&folder, &[&evaluate[..], &["--json"]].concat());
        assert_eq!(result.code, Some(0), "{}", result.err);
        let found: serde_json::Value = serde_json::from_str(&result.out).unwrap();
        let text = fs::read_to_string(folder.path("run/summary.json")).unwrap();
        let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
        // The saved network is the one measured at the end of the run.
        assert_eq!(found["accuracy"], summary["problems"][0]["methods"][0]["final"]["test_accuracy"]["mean"]);
        // A single job uses all cores.
        let cores = std::thread::available_parallelism().unwrap();
        let threads = if cores.get() == 1 { ", 1 thread)".into() } else { format!(", {cores} threads)") };
        assert!(summary["machine"]["device"].as_str().unwrap().ends_with(&threads), "{summary}");
        assert_eq!((&found["images"], &found["classes"][3]["name"]), (&20.into(), &"cat".into()));
        let row = found["confusion"][3].as_array().unwrap();
        assert_eq!(row.iter().map(|n| n.as_u64().unwrap()).sum::<u64>(), 2);

        // The same command trains nothing more and writes the same model.
        let before = fs::read(folder.path("model.safetensors")).unwrap();
        let again =
            go(&folder, &["train", "small.toml", "--method", "adam", "--save", "model.safetensors", "--out", "run"]);
        assert_eq!((again.code, fs::read(folder.path("model.safetensors")).unwrap()), (Some(0), before.clone()));

        // Another seed is another run in another folder. The model is saved even if the output is closed.
        let link = folder.path("link.safetensors");
        std::os::unix::fs::symlink(folder.path("model.safetensors"), &link).unwrap();
        let mut child = strust()
            .current_dir(folder.0.path())
            .args([
                "train",
                "small.toml",
                "--method",
                "adam",
                "--seed",
                "1",
                "--epochs",
                "1",
                "--save",
                "link.safetensors",
            ])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        assert!(child.wait().unwrap().success());
        assert!(link.is_symlink() && fs::read(&link).unwrap() != before);

        let header = 8 + u64::from_le_bytes(before[..8].try_into().unwrap()) as usize;
        let nan: Vec<u8> = before[..header].iter().copied().chain(before[header..].iter().map(|_| 0xff)).collect();
        fs::write(folder.path("nan.safetensors"), nan).unwrap();
        fails(&go(&folder, &["evaluate", "nan.safetensors", "--data", "images", "--unchecked"]), &["finite numbers"]);
        fs::write(folder.path("cut.safetensors"), &before[..before.len() / 2]).unwrap();
        fails(&go(&folder, &["evaluate", "cut.safetensors", "--data", "images", "--unchecked"]), &["truncated"]);
        let header = br#"{"other":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
        let mut other = (header.len() as u64).to_le_bytes().to_vec();
        other.extend(header);
        other.extend([0; 4]);
        fs::write(folder.path("other.safetensors"), other).unwrap();
        let result = go(&folder, &["evaluate", "other.safetensors", "--data", "images", "--unchecked"]);
        fails(&result, &["other.safetensors", "another architecture"]);
        let result = go(&folder, &["train", "small.toml", "--save", "no/such/folder/model", "--out", "run2"]);
        fails(&result, &["no/such/folder/model"]);
        fails(&go(&folder, &["train", "small.toml", "--save", "images", "--out", "run2"]), &["this is a folder"]);
        assert!(!folder.path("run2").exists(), "the error must come before the training");
        let result = go(&folder, &["train", "small.toml", "--method", "sdg", "--save", "m"]);
        assert_eq!(
            (result.code, result.err.contains("there is no method `sdg`; choose one of sgd, adam")),
            (Some(2), true)
        );
        // Neither a file that the command reads nor another file that is not a model is replaced.
        for (file, code, why) in
            [("small.toml", 2, "the command reads this file"), ("images/data_batch_1.bin", 1, "is not a model")]
        {
            let before = fs::read(folder.path(file)).unwrap();
            let result = go(&folder, &["train", "small.toml", "--save", file, "--out", "run2"]);
            refused(&result, code, &[file, why]);
            assert_eq!(fs::read(folder.path(file)).unwrap(), before);
        }
    }

    #[test]
    fn a_run_fails_at_a_point_that_is_not_finite() {
        let folder = Folder::new();
        data(&folder);
        folder.write("small.toml", &experiment(&["name = \"sgd\"\nlearning_rate = 1e38"]));
        fails(&go(&folder, &["run", "small.toml", "--out", "out", "--save-every", "0"]), &["1 run failed"]);
        assert!(folder.path("out/runs/cifar10.sgd.s0/checkpoint.bin").is_file(), "the last finite point must be saved");
        let failed = fs::read_to_string(folder.path("out/runs/cifar10.sgd.s0/failed.json")).unwrap();
        assert!(failed.contains("not finite") || failed.contains("is NaN") || failed.contains("is inf"), "{failed}");
    }

    #[test]
    fn wrong_images_are_refused() {
        let folder = Folder::new();
        let images = data(&folder);
        folder.write("small.toml", &experiment(&["name = \"str\""]));
        let run_with = |arguments: &[&str]| go(&folder, &[&["run", "small.toml", "--out", "out"], arguments].concat());

        let official = experiment(&["name = \"str\""]).edit("\"none\"", "\"official\"");
        folder.write("official.toml", &official);
        let refused = go(&folder, &["run", "official.toml", "--out", "out"]);
        fails(&refused, &["data_batch_1.bin", "30730000"]);
        // Files of the right length with other contents.
        let forged = folder.path("forged");
        fs::create_dir(&forged).unwrap();
        for name in ["data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"] {
            fs::write(forged.join(name).with_extension("bin"), vec![0; 10_000 * RECORD]).unwrap();
        }
        let refused = go(&folder, &["run", "official.toml", "--data", "forged", "--out", "out"]);
        fails(&refused, &["data_batch_1.bin", "5dd7e06a14cb22eb9f671a540d1b7c25"]);
        fails(&run_with(&["--data", "nowhere"]), &["nowhere"]);
        fails(&run_with(&["--device", "cuda:77"]), &["cuda:77", "cannot be used"]);
        let none = go(&folder, &["reproduce", "cifar10", "--device", "cpu"]);
        assert_eq!((none.code, none.err.contains("strust data cifar10 --to DIR")), (Some(2), true), "{}", none.err);
        let wrong = go(&folder, &["reproduce", "cifar10", "--device", "abacus"]);
        assert_eq!((wrong.code, wrong.err.contains("the device must be cpu, cuda")), (Some(2), true), "{}", wrong.err);

        let good = fs::read(images.join("data_batch_1.bin")).unwrap();
        fs::write(images.join("data_batch_1.bin"), &good[..good.len() - 5]).unwrap();
        fails(&run_with(&[]), &["data_batch_1.bin"]);
        let mut label = good.clone();
        label[4 * RECORD] = 10;
        fs::write(images.join("data_batch_1.bin"), label).unwrap();
        fails(&run_with(&[]), &["label 10 of record 4"]);
        fs::write(images.join("data_batch_1.bin"), &good).unwrap();
        fs::write(images.join("data_batch_3.bin"), &good).unwrap();
        fails(&run_with(&[]), &["data_batch_2.bin is missing, though data_batch_3.bin is there"]);
        fs::remove_file(images.join("data_batch_3.bin")).unwrap();
        folder.write("many.toml", &experiment(&["name = \"str\""]).edit("device", "train_images = 49\ndevice"));
        fails(&go(&folder, &["run", "many.toml", "--out", "out"]), &["`train_images` is 49", "at most 48"]);
        fs::write(images.join("data_batch_1.bin"), &good[..RECORD]).unwrap();
        fails(&run_with(&[]), &["`batch` is 16, but must be at most 1, the number of terms"]);
        fs::remove_file(images.join("test_batch.bin")).unwrap();
        fails(&run_with(&[]), &["test_batch.bin"]);
        assert!(!folder.path("out").exists());
    }
}
