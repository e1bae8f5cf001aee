//! What shows that strust works: the paper's theory, the benchmark suites and the benchmarks of speed. No other crate
//! needs it but the program of a clone.
//!
//! | module | contents |
//! |---|---|
//! | [`built_in`] | the experiment files of the suites |
//! | [`theory`] | the paper's analysis as experiments |
//! | [`tasks`] | tasks on which methods compete: their file, grid searches and runs |
//! | [`zero_tuning`] | a method without tuning beside tuned ones |
//! | [`constrained`] | problems with constraints: solved, from random starts, in other units, with noise, with data |
//! | [`fairness`] | bounds between groups that are known from mini-batches only |
//! | [`bench`](mod@bench) | `strust bench`: speed on this machine |

pub mod bench;
pub mod built_in;
pub mod constrained;
pub mod fairness;
mod prelude;
mod sqp;
pub mod tasks;
pub mod theory;
pub mod zero_tuning;

use strust_lab::suite::SuiteKind;

/// All kinds of suites.
pub const SUITES: [SuiteKind; 4] = [
    SuiteKind::of::<theory::TheorySuite>(),
    SuiteKind::of::<zero_tuning::BenchmarkSuite>(),
    SuiteKind::of::<constrained::ConstrainedSuite>(),
    SuiteKind::of::<fairness::FairnessSuite>(),
];

/// The names in the order of their first occurrence.
fn distinct<'a>(names: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    let mut distinct: Vec<&str> = Vec::new();
    for name in names {
        if !distinct.contains(&name.as_str()) {
            distinct.push(name);
        }
    }
    distinct
}

/// The number, unless it is NaN or infinite.
fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
