//! The crate as its users see it, on Burn's CPU backend.

mod constraints;
mod models;
mod resume;
mod same_steps;
#[cfg(feature = "train")]
mod train_loop;
mod wrong_use;
