//! Data files and what is made of them, for [strust].
//!
//! | module | contents |
//! |---|---|
//! | [`read`] | one reader per format: NPY, idx and LIBSVM text, plain or compressed |
//! | [`ranks`], [`table`] | what ranks know of each other's rows; data files as columns of numbers and words |
//! | [`encoded`], [`transform`] | encoded rows, and the fitted transform that makes them |
//! | `labeled` | [matrices](read_matrix) and [labeled rows](read_labeled) from files, for experiments |
//! | [`features`], [`rows`], [`classified`] | matrices, dense or sparse; their rows; rows with classes |
//! | [`images`] | CIFAR-10, MNIST and Fashion-MNIST from their files |
//! | [`digits`], [`text`] | data that are part of the crate: handwritten digits, and a text |
//! | [`network`] | fully connected layers, for losses of your own |
//! | [`loss`] | the loss of one row, and its derivative |
//! | [`limits`] | how large a problem from a file may be |
//! | [`numerics`], [`simd_math`], [`words`] | loops over slices and checks of sizes; exp and tanh; singular and plural |
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
// An evaluation is compiled as one piece with the widest instructions of the machine, so all functions that it calls
// must be inlined.
#![allow(clippy::inline_always)]

pub mod classified;
pub mod digits;
pub mod encoded;
mod error;
pub mod features;
pub mod images;
mod labeled;
pub mod limits;
pub mod loss;
pub mod network;
pub mod numerics;
pub mod ranks;
pub mod read;
pub mod rows;
pub mod simd_math;
pub mod table;
pub mod text;
pub mod transform;
pub mod words;

pub use classified::Classified;
pub use error::DataError;
pub use features::{Csr, Features, Labeled};
pub use labeled::{read_labeled, read_labeled_by, read_matrix, read_numbers_by};
pub use network::Activation;
pub use table::{DataTable, ReadOptions};
