//! The program, run as a user runs it. One binary for all, because linking is slow.

mod bad_input;
mod browser;
mod data;
mod modules;
mod networks;
mod repository;
mod runs;
mod server;
mod snapshots;
mod support;
mod theory;
