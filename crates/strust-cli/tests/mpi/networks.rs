//! Networks on ranks: gradients are summed, and batch-norm uses the statistics of each rank.

use crate::{
    available, metrics, results,
    support::{Edit, Folder, same_records},
};

const NETWORKS: &str = r#"
name = "networks"
epochs = 2
batch = 50
seeds = 1
parallel = "data"
[[problem]]
kind = "gpt"
layers = 1
width = 16
heads = 2
context = 31
device = "cpu"
[[problem]]
kind = "convnet"
batch_norm = "on"
device = "cpu"
[[method]]
name = "auto"
[[method]]
name = "sgd"
learning_rate = 0.05
"#;

#[test]
fn networks_learn_on_ranks_as_on_one_process() {
    if !available() {
        return;
    }
    let folder = Folder::new();
    let file = folder.write("networks.toml", NETWORKS);
    let again = folder.write("again.toml", &NETWORKS.edit("name = \"networks\"", "name = \"again\""));
    let (alone, shared) = (results(&folder, &file, None), results(&folder, &file, Some(2)));
    same_records(&results(&folder, &again, Some(2)), &shared);
    // Without batch-norm only rounding differs; with it, each rank has statistics of its own.
    for (job, tolerance) in
        [("gpt.auto.s0", 1e-2), ("gpt.sgd.s0", 1e-3), ("convnet.auto.s0", 0.5), ("convnet.sgd.s0", 0.5)]
    {
        let (expected, found) = (metrics(&alone, job, "train_loss"), metrics(&shared, job, "train_loss"));
        let (start, end) = (found[0], found[2]);
        assert!(end < start, "{job}: {found:?}");
        assert!((end - expected[2]).abs() < tolerance * expected[2], "{job}: {found:?} instead of {expected:?}");
    }
}
