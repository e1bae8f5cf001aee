//! The methods and problems that experiment files may name: one file each, with configuration, construction, metrics
//! and sentences.
//!
//! To add a method, write `methods/NAME.rs` and add its line to `methods!` in `methods/mod.rs`. To add a problem, write
//! `problems/NAME.rs` and add its line to `problems!` in `problems/mod.rs`. Listing, checking, completion and
//! construction follow from that line.

mod entry;
pub mod methods;
pub mod problems;
mod setup;

pub use entry::{Entry, Parameter, nearest};
pub(crate) use setup::{Accuracy, Quantity, Setup, Visitor};
