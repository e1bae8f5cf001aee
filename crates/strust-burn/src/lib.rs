//! Stochastic trust-region training of any Burn module, on any of Burn's devices: no learning rate, no schedule, hard
//! constraints.
//!
//! | item | what |
//! |---|---|
//! | [`Optimizer`] | takes a module and a closure with the loss, and returns the module and the loss |
//! | [`Parameters`] | the parameters by name; constraints on them |
//! | [`Place`] | where the vectors are: `Vec` on the host, [`Flat`] on the device |
#![cfg_attr(feature = "train", doc = "| [`train`] | Burn's loop over epochs, with its dashboard |")]
//!
//! [`Optimizer`] has an example. docs/guides/burn.md has more, and docs/evidence/networks.md compares it with Adam.

mod constraint;
mod error;
mod flat;
mod objective;
mod optimizer;
mod parameters;
mod place;
mod saved;
#[cfg(feature = "train")]
pub mod train;

pub use error::Error;
pub use flat::Flat;
pub use optimizer::Optimizer;
pub use parameters::{Parameters, Slot};
pub use place::{Component, Place};

/// The examples of docs/guides/burn.md and the README, compiled and run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../../../docs/guides/burn.md")]
struct Pages;
