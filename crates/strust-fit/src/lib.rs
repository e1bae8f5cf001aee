//! From a data file to a model: columns, a fitted transform, training by [`Auto`](strust::methods::Auto) without
//! settings, scores, and model files.
//!
//! The modules, in the order data flows through them:
//!
//! | module | contents |
//! |---|---|
//! | [`table`], [`transform`] | data files as columns, and the fitted transform that makes rows of them: `strust-data` |
//! | [`task`], [`split`](mod@split) | what to predict; rows to hold out |
//! | `scored` | rows with their targets |
//! | [`checks`], `tails` | what a person should know about the data |
//! | [`weights`] | the weights of a model |
//! | `terms`, `linear`, `network` | the functions to minimize |
//! | `newton`, [`train`], [`constrain`] | how |
//! | [`assess`](mod@assess), [`importance`], [`coefficients`] | scores; the features that matter; weights for people |
//! | [`saved`] | model files |
//! | [`options`], `setup`, [`choose`] | what to fit; one fit; choices between several |
//! | [`fit`](mod@fit) | all of it |
//! | [`arrays`] | the same models from arrays in memory |
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
// An evaluation is compiled as one piece with the widest instructions of the machine, so all functions that it calls
// must be inlined.
#![allow(clippy::inline_always)]

pub mod arrays;
pub mod assess;
pub mod checks;
pub mod choose;
pub mod coefficients;
pub mod constrain;
pub mod fair;
pub mod fair_report;
pub mod fit;
pub mod importance;
mod linear;
mod network;
mod newton;
pub mod options;
pub mod saved;
mod scored;
mod setup;
pub mod split;
mod tails;
pub mod task;
mod terms;
pub mod train;
pub mod weights;

pub use fit::{FitOptions, FitReport, Fitted, fit, fit_on};
pub use saved::FittedModel;
pub use strust_data::{DataError as Error, DataTable, ReadOptions, table, transform, words};

use strust_data::{encoded, ranks};
