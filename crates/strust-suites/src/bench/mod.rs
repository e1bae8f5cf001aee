//! `strust bench`: speed on this machine, as ratios within one run.

mod constraints;
mod instruments;
mod mpi;
mod scaling;
mod second_order;
mod subspace;

#[cfg_attr(not(feature = "torch"), path = "without_torch.rs")]
pub mod cifar10;

pub use constraints::constraints;
pub use instruments::instruments;
#[cfg(feature = "mpi")]
pub use mpi::answer_as_rank;
pub use mpi::{ClusterModel, answer_alone, mpi};
pub use second_order::second_order;
pub use subspace::subspace;

use serde::Serialize;

/// The results of a benchmark.
pub struct BenchResults {
    /// All numbers, as indented JSON.
    pub json: String,
    /// The tables for people.
    pub blocks: Vec<BenchBlock>,
}

/// A table with its title.
pub struct BenchBlock {
    /// One line.
    pub title: String,
    /// The first row has the names of the columns, if they have names.
    pub rows: Vec<Vec<String>>,
    /// Lines below the table.
    pub notes: String,
}

impl BenchResults {
    fn new(results: &impl Serialize, blocks: Vec<BenchBlock>) -> Self {
        Self { json: serde_json::to_string_pretty(results).expect("results are plain data"), blocks }
    }
}

impl BenchBlock {
    fn new(title: impl Into<String>, rows: Vec<Vec<String>>) -> Self {
        Self { title: title.into(), rows, notes: String::new() }
    }
}

/// Shows what a benchmark is doing.
pub trait BenchProgress {
    /// What is measured now.
    fn say(&self, what: String);
    /// What is left out.
    fn warn(&self, why: &str);
}

/// A row of a table.
fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(String::from).to_vec()
}

/// A table with the names of its columns and a row for each item.
fn table<T, const N: usize>(columns: [&str; N], items: &[T], cells: impl Fn(&T) -> [String; N]) -> Vec<Vec<String>> {
    std::iter::once(row(columns)).chain(items.iter().map(|item| cells(item).to_vec())).collect()
}
