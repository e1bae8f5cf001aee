//! Files of an experiment: written whole or not at all, locked, and checked when they are read back.

pub mod atomic;
pub(crate) mod checkpoint;
pub(crate) mod data_file;
pub(crate) mod jsonl;
pub(crate) mod lock;
pub mod results;
pub(crate) mod stream;
