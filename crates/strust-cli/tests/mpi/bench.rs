//! `strust bench mpi`.

use crate::support::{Folder, finished, run, strust};
use serde_json::Value;

#[test]
fn a_quick_run_counts_its_traffic_and_predicts_up_to_16384_ranks() {
    if !crate::available() {
        return;
    }
    let folder = Folder::new();
    let out = folder.path("curves");
    let arguments = ["bench", "mpi", "--quick", "--json", "--latency", "3us", "--bandwidth", "100Gbit/s", "--out"];
    let result = finished(&strust().args(arguments).arg(&out).output().unwrap());
    assert_eq!(result.code, Some(0), "{}", result.err);
    let json: Value = serde_json::from_str(&result.out).unwrap();
    for speed in json["measured"]["speeds"].as_array().unwrap() {
        assert_eq!(speed["collectives"], speed["expected_collectives"]);
        assert_eq!(speed["numbers"], speed["expected_numbers"]);
        // A gradient, a trial and the end of a step: d + 10 numbers in 3 sums.
        assert_eq!(speed["collectives"], 3.0);
        assert_eq!(speed["numbers"].as_f64(), speed["dimension"].as_f64().map(|d| d + 10.0));
    }
    let ranks: Vec<_> = json["measured"]["checks"].as_array().unwrap().iter().map(|c| c["ranks"].clone()).collect();
    assert!([1, 2, 4].iter().all(|r| ranks.contains(&Value::from(*r))), "{ranks:?}");
    assert_eq!(json["machines"]["between"]["latency"], 3e-6);
    assert_eq!(json["machines"]["between"]["seconds_per_byte"], 1.0 / 12.5e9);
    let predictions = json["predictions"].as_array().unwrap();
    assert_eq!(predictions.len(), 4, "two workloads, strong and weak");
    for prediction in predictions {
        let steps = prediction["steps"].as_array().unwrap();
        assert_eq!((&steps[0][0], &steps[0][2]), (&Value::from(1), &Value::from(1.0)));
        assert_eq!(steps.last().unwrap()[0], 16_384);
    }
    assert!(std::fs::read(out.join("scaling.png")).unwrap().starts_with(b"\x89PNG"));
    assert!(std::fs::read_to_string(out.join("scaling.svg")).unwrap().starts_with("<svg"));
}

#[test]
fn a_folder_that_cannot_be_written_is_found_before_anything_is_measured() {
    let folder = Folder::new();
    let file = folder.write("file", "");
    let result = run(&["bench", "mpi", "--out", file.join("curves").to_str().unwrap()]);
    assert_eq!((result.code, result.err.contains("cannot create")), (Some(1), true), "{}", result.err);
}

#[test]
fn without_mpirun_the_message_tells_how_to_install_it() {
    let result = finished(&strust().args(["bench", "mpi", "--quick"]).env("PATH", "/nonexistent").output().unwrap());
    assert_eq!((result.code, result.err.contains("`mpirun` was not found")), (Some(1), true), "{}", result.err);
}
