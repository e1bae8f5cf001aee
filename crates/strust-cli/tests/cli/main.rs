//! Tests that run the program as a user does. They share one test binary, because linking is slow.

mod bad_input;
mod bench_mpi;
mod bench_second_order;
mod browser;
mod constrained;
mod constrained_problems;
mod cost;
mod data;
mod diagnose;
mod dirty_data;
mod figures;
mod files;
mod fit;
mod fit_options;
mod fit_report;
mod modules;
mod networks;
mod repository;
mod robustness;
mod runs;
mod server;
mod snapshots;
mod support;
mod theory;
mod unusual_input;
mod zero_tuning;
