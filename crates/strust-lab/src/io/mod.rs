//! Files: written whole or not at all, never through a link in a folder of results, locked, and checked when they are read
//! back.

pub mod atomic;
pub(crate) mod checkpoint;
pub(crate) mod data_file;
pub(crate) mod jsonl;
pub(crate) mod lock;
pub mod output;
pub mod results;
pub mod spool;
pub mod stream;
