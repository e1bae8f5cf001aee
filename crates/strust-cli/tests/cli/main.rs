//! The program, run as a user runs it. One binary for all, because linking is slow.

mod bad_input;
mod browser;
mod repository;
mod runs;
mod snapshots;
mod support;
