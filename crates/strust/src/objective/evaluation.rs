/// The value of a function at a point, and the size of its rounding error.
///
/// A trust region adds the rounding error to the actual and the predicted reduction, so that their ratio
/// tends to 1 where neither can be resolved (Conn, Gould and Toint 2000, §17.4.2).
///
/// ```
/// use strust::objective::Evaluation;
/// let sum = Evaluation::new(2.0, f64::EPSILON);
/// assert_eq!(sum.rounding, 20.0 * f64::EPSILON);
/// // Near 0 a sum of squares inherits the errors of its residuals, which are differences of larger numbers.
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

/// Rounding errors of size ε·|value| that a computed sum may hold: the constant of Conn, Gould and Toint. With 1 the
/// radius still collapsed on 6 of 20 least-squares problems in `f32` (tests/library/rounding.rs), with 10 on none.
const SLACK: f64 = 10.0;

impl Evaluation {
    /// The value of a sum of terms of one sign, computed with relative rounding error `epsilon`
    /// ([`Vector::EPSILON`](crate::vector::Vector::EPSILON)): its rounding error is 10ε·|value|.
    #[must_use]
    pub fn new(value: f64, epsilon: f64) -> Self {
        Self { value, rounding: SLACK * epsilon * value.abs() }
    }

    /// The value of a mean of squared residuals r, each a difference of parts of size `magnitude`: each residual is off
    /// by about δ = ε·magnitude, so ‖r‖² is off by 2δ‖r‖ + δ², and its sum by 10ε‖r‖².
    #[must_use]
    pub fn of_squares(value: f64, epsilon: f64, magnitude: f64) -> Self {
        let delta = epsilon * magnitude;
        let rounding = SLACK * epsilon * value.abs() + 2.0 * delta * value.abs().sqrt() + delta * delta;
        Self { value, rounding }
    }
}
