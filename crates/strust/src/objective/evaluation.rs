/// The value of a function at a point, and the size of its rounding error.
///
/// A trust region adds the rounding error to the actual and the predicted reduction. Then their ratio tends to 1 where
/// both are smaller than the rounding error (Conn, Gould and Toint 2000, §17.4.2).
///
/// ```
/// use strust::objective::Evaluation;
/// let sum = Evaluation::new(2.0, f64::EPSILON);
/// assert_eq!(sum.rounding, 20.0 * f64::EPSILON);
/// // Near 0 the rounding error of a sum of squares comes from its residuals, which are differences of larger numbers.
/// let squares = Evaluation::of_squares(0.0, f64::EPSILON, 10.0);
/// assert!(squares.rounding > 1e-30);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// The value.
    pub value: f64,
    /// The size of the rounding error in the value.
    pub rounding: f64,
}

/// The number of rounding errors of size ε·|value| in a computed sum: the constant of Conn, Gould and Toint. With 1 the
/// radius still collapsed on 6 of 20 least-squares problems in `f32` (tests/library/rounding.rs), with 10 on none.
const SLACK: f64 = 10.0;

impl Evaluation {
    /// The value of a sum of terms of the same sign, computed with relative rounding error `epsilon`
    /// ([`Vector::EPSILON`](crate::vector::Vector::EPSILON)). Its rounding error is 10ε·|value|.
    #[must_use]
    pub fn new(value: f64, epsilon: f64) -> Self {
        Self { value, rounding: SLACK * epsilon * value.abs() }
    }

    /// The value of a mean of squared residuals r, where each residual is a difference of numbers of size `magnitude`.
    /// The error of a residual is about δ = ε·magnitude, so the error of ‖r‖² is 2δ‖r‖ + δ², plus 10ε‖r‖² for the sum.
    #[must_use]
    pub fn of_squares(value: f64, epsilon: f64, magnitude: f64) -> Self {
        let delta = epsilon * magnitude;
        let rounding = SLACK * epsilon * value.abs() + 2.0 * delta * value.abs().sqrt() + delta * delta;
        Self { value, rounding }
    }

    /// Adds a multiple of another value. Rounding errors add up.
    pub(super) fn add(&mut self, weight: f64, other: Self) {
        self.value += weight * other.value;
        self.rounding += weight * other.rounding;
    }
}
