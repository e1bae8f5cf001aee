//! Models of rows in memory: arrays of numbers, dense or sparse, with weights. This is what the Python package fits.
//!
//! Arrays are borrowed, never copied. The inputs are standardized while they are read, so the weights of a model belong to
//! (v − shift)/scale.
//!
//! | module | contents |
//! |---|---|
//! | [`rows`] | borrowed rows |
//! | [`units`] | the shift and the scale of each input |
//! | [`train`] | how: to convergence, or row by row as they come |

pub mod rows;
#[cfg(test)]
mod tests;
pub mod train;
pub mod units;

pub use rows::ArrayRows;
pub use strust_data::loss::OutputLoss;
pub use train::{ArrayOptions, ArrayTask, ModelStream, WatchStep, fit_arrays, stream_arrays};
pub use units::InputUnits;
