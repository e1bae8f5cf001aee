//! Tests of the public interface. They are one program, so that it is linked only once.

mod auto;
mod common;
mod configuration;
mod contracts;
mod convergence;
mod derivatives;
mod diagnostics;
mod exchange;
mod formulas;
mod golden;
mod limited_memory;
mod methods;
mod models;
mod no_allocation;
mod objectives;
mod prelude;
mod python_golden;
mod ranks;
mod rejections;
mod rounding;
mod run;
mod scales;
mod second_order;
mod sqp;
mod sqp_products;
mod vector;
