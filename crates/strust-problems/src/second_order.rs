//! The problems on which second-order methods are compared with other programs, beside those of [`unconstrained`]: all
//! terms in every step, from the start with seed 0, to a gradient norm of 1e-8.
//!
//! `scripts/second-order-reference.py` solves the same problems, through the example `serve_problems`.
//!
//! [`unconstrained`]: crate::unconstrained

use crate::{Activation, Classified, Factorization, Features, Labeled, LeastSquares, Logistic, Mlp, Softmax, digits};
use strust::Error;
use strust_data::DataError;

/// λ of the problems with a regularizer, which makes their Hessians positive definite.
pub const REGULARIZATION: f64 = 1e-4;

/// The condition numbers of [`conditioned_least_squares`], with the names of the problems.
pub const CONDITIONS: [(&str, f64); 2] = [("least-squares-1e4", 1e4), ("least-squares-1e6", 1e6)];

/// Noisy least squares with 500 rows, 100 unknowns and this condition.
pub fn conditioned_least_squares(condition: f64) -> Result<LeastSquares, Error> {
    LeastSquares::conditioned(500, 100, condition, 0.1, 0)
}

/// A 100×60 matrix of rank 5, with factors of rank 8: 1280 unknowns, and minimizers that are not isolated.
pub fn low_rank_factorization() -> Result<Factorization, Error> {
    Factorization::exact(100, 60, 5, 8, 0)
}

/// Logistic regression on a data set such as a9a.
pub fn regularized_logistic(data: Labeled) -> Result<Logistic, Error> {
    Logistic::new(data, REGULARIZATION)
}

/// Softmax regression on the training set of the digits.
///
/// # Errors
/// If the embedded data cannot be read.
pub fn softmax_on_digits() -> Result<Softmax, DataError> {
    let (train, _) = digits::load()?;
    Ok(Softmax::new(labeled(&train), REGULARIZATION).expect("the digits have ten classes"))
}

/// A network with 16 hidden tanh units on the same data. It has no regularizer: f tends to 0.
pub fn mlp_on_digits() -> Result<Mlp, DataError> {
    let (train, _) = digits::load()?;
    Ok(Mlp::new(&train, None, &[16], Activation::Tanh).expect("the digits have ten classes"))
}

fn labeled(data: &Classified) -> Labeled {
    let labels = data.labels().iter().map(|&label| label as f64).collect();
    Labeled { features: Features::Dense(data.features().clone()), labels }
}
