//! The library as its users see it. One program, so that it is linked once.

mod common;
mod convergence;
mod derivatives;
mod diagnostics;
mod methods;
mod models;
mod no_allocation;
mod objectives;
mod rounding;
mod run;
mod vector;
