//! The Cauchy step of the quadratic model m(p) = gᵀp + ½pᵀHp inside ‖p‖ ≤ Δ, as a pure function of three numbers.

/// What determines the length of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum Exit {
    /// The model's minimizer along −g is inside the region.
    Interior,
    /// The radius limits the step.
    Boundary,
    /// The gradient on this sample is zero, so there is no step.
    Stationary,
}

/// The Cauchy step p = −a·g.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CauchyStep {
    /// a.
    pub size: f64,
    /// ‖p‖.
    pub length: f64,
    /// m(0) − m(p), never negative.
    pub predicted: f64,
    /// What determined the length.
    pub exit: Exit,
}

/// Minimizes m(−a·g) over a ≥ 0 with ‖a·g‖ ≤ `radius`, where ‖g‖² = `squared_norm` and gᵀHg = `curvature`:
///
/// a = min(‖g‖²/gᵀHg, Δ/‖g‖) and m(0) − m(p) = a‖g‖² − ½a²gᵀHg.
///
/// With H = I this is a = min(1, Δ/‖g‖) of Algorithm 1. If the curvature is not positive, only the radius limits the
/// step.
///
/// ```
/// use strust::models::{Exit, cauchy_step};
/// let step = cauchy_step(4.0, 4.0, 10.0); // ‖g‖ = 2, H = I, wide region
/// assert_eq!((step.size, step.length, step.predicted, step.exit), (1.0, 2.0, 2.0, Exit::Interior));
/// let step = cauchy_step(4.0, 4.0, 0.5);
/// assert_eq!((step.size, step.length, step.exit), (0.25, 0.5, Exit::Boundary));
/// ```
#[must_use]
pub fn cauchy_step(squared_norm: f64, curvature: f64, radius: f64) -> CauchyStep {
    if squared_norm == 0.0 {
        return CauchyStep { size: 0.0, length: 0.0, predicted: 0.0, exit: Exit::Stationary };
    }
    let norm = squared_norm.sqrt();
    let cut = radius / norm;
    if curvature > 0.0 && squared_norm / curvature <= cut {
        let a = squared_norm / curvature;
        return CauchyStep { size: a, length: a * norm, predicted: 0.5 * a * squared_norm, exit: Exit::Interior };
    }
    // a·(‖g‖² − ½a·gᵀHg). Here the bracket is at least ½‖g‖², so there is no cancellation.
    let predicted = cut * (squared_norm - 0.5 * cut * curvature);
    CauchyStep { size: cut, length: radius, predicted, exit: Exit::Boundary }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_step_stays_in_the_region_and_predicts_the_cauchy_decrease(
            norm in 1e-100..1e100_f64, h in 1e-10..1e10_f64, radius in 1e-100..1e100_f64,
        ) {
            let squared = norm * norm;
            let step = cauchy_step(squared, h * squared, radius);
            prop_assert!(step.length <= radius * (1.0 + 1e-12));
            // Lemma 4.3 with ‖H‖ replaced by the curvature h along g.
            let bound = 0.5 * norm * radius.min(norm / h);
            prop_assert!(step.predicted >= bound * (1.0 - 1e-12), "{step:?} against {bound}");
        }

        #[test]
        fn no_other_step_along_the_gradient_predicts_more(
            norm in 1e-3..1e3_f64, h in -10.0..10.0_f64, radius in 1e-3..1e3_f64, t in 0.0..1.0_f64,
        ) {
            let squared = norm * norm;
            let step = cauchy_step(squared, h * squared, radius);
            let a = t * radius / norm;
            let other = a * squared - 0.5 * a * a * h * squared;
            prop_assert!(step.predicted >= other - 1e-9 * other.abs());
        }
    }

    #[test]
    fn a_zero_gradient_has_no_step() {
        assert_eq!(cauchy_step(0.0, 0.0, 1.0).exit, Exit::Stationary);
    }
}
