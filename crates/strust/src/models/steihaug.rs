//! Truncated conjugate gradients for m(p) = gᵀp + ½pᵀHp inside ‖p‖ ≤ Δ (Steihaug 1983, Toint 1981).

use super::{Exit, tridiagonal::Tridiagonal};
use crate::vector::{Elementwise, Vector};

/// Residuals whose combination has a norm that differs by more than this are no longer orthogonal.
const ORTHOGONAL: f64 = 1e-4;

/// Why the conjugate gradients ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InnerExit {
    /// The gradient of the model is small enough.
    Interior,
    /// The next point is outside of the region: the step ends at its boundary.
    Boundary,
    /// H is not positive along the next direction: the step follows it to the boundary.
    NegativeCurvature,
    /// All products that were allowed are used.
    Budget,
    /// A product was not finite: the step is the one before it.
    NotFinite,
    /// g = 0: there is no step.
    Stationary,
}

impl InnerExit {
    /// What determined the length of the step.
    #[must_use]
    pub fn exit(self) -> Exit {
        match self {
            Self::Interior | Self::Budget | Self::NotFinite => Exit::Interior,
            Self::Boundary | Self::NegativeCurvature => Exit::Boundary,
            Self::Stationary => Exit::Stationary,
        }
    }
}

/// m(p) = gᵀp + ½pᵀHp inside the region ‖p‖ ≤ Δ, and how well it should be minimized.
#[derive(Debug, Clone, Copy)]
pub struct Subproblem<'a, V> {
    /// g.
    pub gradient: &'a V,
    /// Δ.
    pub radius: f64,
    /// D, positive: the norm is √(pᵀDp), and D preconditions the conjugate gradients. `None` is the Euclidean norm.
    pub metric: Option<&'a V>,
    /// The inner iteration ends where the model's gradient is so many times ‖g‖, both in the norm of D⁻¹.
    pub tolerance: f64,
    /// The most products with H.
    pub most: u64,
    /// Where the conjugate gradients leave the region they can go on and minimize the model at its boundary (generalized
    /// Lanczos, Gould, Lucidi, Roma and Toint 1999), up to this many products in all. 0: the step ends where they leave.
    pub at_boundary: u64,
}

/// The outcome of [`steihaug`]. The step is p = −d with d in [`CgSpace::solution`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TruncatedStep {
    /// ‖p‖, in the norm of the region.
    pub length: f64,
    /// m(0) − m(p), never negative: a sum of the reductions of all inner steps.
    pub predicted: f64,
    /// Products with H, also those that a repeated problem did not make again.
    pub products: u64,
    /// Why it ended.
    pub exit: InnerExit,
}

/// The vectors of [`steihaug`], made once: four, one more with a metric, and one for each product that the generalized
/// Lanczos method may use.
#[derive(Debug, Clone)]
pub struct CgSpace<V> {
    /// d: approximately H⁻¹g, or a step to the boundary.
    pub solution: V,
    direction: V,
    product: V,
    preconditioned: Option<V>,
    /// Residuals: the last one alone, or all of them.
    residuals: Vec<V>,
    tridiagonal: Tridiagonal,
    /// qᵀHq of each direction whose next residual is kept.
    curvatures: Vec<f64>,
    /// Whether the next problem has the same g, H and D.
    repeats: bool,
}

impl<V: Vector> CgSpace<V> {
    /// Space for vectors of this shape.
    pub fn new(like: &V) -> Self {
        let zero = || like.zeros_like();
        Self {
            solution: zero(),
            direction: zero(),
            product: zero(),
            preconditioned: None,
            residuals: vec![zero()],
            tridiagonal: Tridiagonal::default(),
            curvatures: Vec::new(),
            repeats: false,
        }
    }
    /// The next problem is the last one in another region. The directions do not depend on the region, so its kept
    /// products are not made again, and the step has the same bits as if they were.
    pub(super) fn repeat(&mut self) {
        self.repeats = true;
    }
    /// The number of products that a repeated problem does not make again: none if `at_boundary` is 0.
    pub(super) fn kept(&self) -> u64 {
        self.curvatures.len() as u64
    }
}

/// Approximately minimizes m(−d) = −gᵀd + ½dᵀHd over the region, by preconditioned conjugate gradients from d = 0. It ends
/// where the model's gradient is small, at the boundary, or after all products. `multiply(v, out)` sets out = Hv and
/// returns an error if it cannot.
///
/// Its first point is the Cauchy point, and each further step reduces the model. So the reduction is at least that of the
/// Cauchy step, which is all that the theory needs.
///
/// ```
/// use strust::models::{CgSpace, InnerExit, Subproblem, steihaug};
/// let g = vec![1.0, 10.0];
/// let mut space = CgSpace::new(&g);
/// let h = |v: &Vec<f64>, out: &mut Vec<f64>| {
///     (out[0], out[1]) = (v[0], 10.0 * v[1]);
///     Ok::<(), strust::Error>(())
/// };
/// let problem =
///     Subproblem { gradient: &g, radius: 100.0, metric: None, tolerance: 1e-10, most: 50, at_boundary: 0 };
/// let step = steihaug(&problem, &mut space, h)?;
/// assert_eq!((step.products, step.exit), (2, InnerExit::Interior));
/// assert!((space.solution[0] - 1.0).abs() < 1e-9 && (space.solution[1] - 1.0).abs() < 1e-9);
/// # Ok::<(), strust::Error>(())
/// ```
pub fn steihaug<V: Elementwise, E>(
    problem: &Subproblem<'_, V>,
    space: &mut CgSpace<V>,
    mut multiply: impl FnMut(&V, &mut V) -> Result<(), E>,
) -> Result<TruncatedStep, E> {
    let region = problem.radius * problem.radius;
    let mut step = TruncatedStep { length: 0.0, predicted: 0.0, products: 0, exit: InnerExit::Budget };
    let mut rr = space.start(problem);
    if rr == 0.0 {
        return Ok(TruncatedStep { exit: InnerExit::Stationary, ..step });
    }
    let goal = problem.tolerance * problem.tolerance * rr;
    // dᵀDd, dᵀDq and qᵀDq, by their recurrences.
    let (mut dd, mut dq, mut qq) = (0.0, 0.0, rr);
    while step.products < problem.most.max(1) {
        let curvature = space.curvature(step.products, &mut multiply)?;
        step.products += 1;
        let CgSpace { solution: d, direction: q, .. } = space;
        if !curvature.is_finite() {
            step.exit = InnerExit::NotFinite;
            break;
        }
        let a = rr / curvature;
        let (negative, outside) = (curvature <= 0.0, dd + a * (2.0 * dq + a * qq) >= region);
        if negative || outside || !a.is_finite() {
            // d + tq is at the boundary; t without cancellation.
            let gap = (region - dd).max(0.0);
            let root = (dq * dq + qq * gap).sqrt();
            let t = if dq > 0.0 { gap / (dq + root) } else { (root - dq) / qq };
            d.add(t, q);
            // Here t ≤ a or the curvature is not positive, so the bracket is at least half of rr.
            step.predicted += t * (rr - 0.5 * t * curvature);
            step.length = problem.radius;
            step.exit = if negative { InnerExit::NegativeCurvature } else { InnerExit::Boundary };
            space.along_boundary(problem, &mut step, rr, curvature, multiply)?;
            return Ok(step);
        }
        d.add(a, q);
        step.predicted += 0.5 * a * rr;
        dd += a * (2.0 * dq + a * qq);
        let new = space.advance(problem, rr, curvature);
        if new <= goal {
            step.exit = InnerExit::Interior;
            break;
        }
        let b = new / rr;
        dq = b * (dq + a * qq);
        qq = new + b * b * qq;
        rr = new;
    }
    step.length = dd.sqrt();
    Ok(step)
}

impl<V: Elementwise> CgSpace<V> {
    /// d ← 0, r ← g, q ← D⁻¹g. Returns rᵀD⁻¹r.
    fn start(&mut self, problem: &Subproblem<'_, V>) -> f64 {
        self.solution.set_zero();
        self.tridiagonal.clear();
        if !std::mem::take(&mut self.repeats) {
            self.curvatures.clear();
        }
        let r = &mut self.residuals[0];
        r.copy_from(problem.gradient);
        match problem.metric {
            Some(metric) => self.direction.set_quotient(r, metric),
            None => self.direction.copy_from(r),
        }
        r.dot(&self.direction)
    }

    /// qᵀHq of the direction after so many products: kept, or with a new product.
    fn curvature<E>(
        &mut self,
        products: u64,
        multiply: &mut impl FnMut(&V, &mut V) -> Result<(), E>,
    ) -> Result<f64, E> {
        if let Some(&kept) = self.curvatures.get(products as usize) {
            return Ok(kept);
        }
        multiply(&self.direction, &mut self.product)?;
        Ok(self.direction.dot(&self.product))
    }

    /// r ← r − a·Hq and q ← D⁻¹r + b·q after an inner step a = `square`/`curvature`. Returns rᵀD⁻¹r.
    fn advance(&mut self, problem: &Subproblem<'_, V>, square: f64, curvature: f64) -> f64 {
        let a = square / curvature;
        let at = if problem.at_boundary == 0 {
            self.residuals[0].add(-a, &self.product);
            0
        } else {
            // All residuals stay: they are the basis in which the model is minimized at the boundary.
            self.tridiagonal.push(square, curvature);
            let at = self.tridiagonal.len();
            if self.curvatures.len() < at {
                self.curvatures.push(curvature);
                if self.residuals.len() == at {
                    self.residuals.push(problem.gradient.zeros_like());
                }
                let (before, after) = self.residuals.split_at_mut(at);
                after[0].set_sum(&before[at - 1], -a, &self.product);
            }
            at
        };
        let r = &self.residuals[at];
        let z = match problem.metric {
            Some(metric) => {
                let z = self.preconditioned.get_or_insert_with(|| r.zeros_like());
                z.set_quotient(r, metric);
                &*z
            }
            None => r,
        };
        let new = r.dot(z);
        self.direction.scale_add(new / square, 1.0, z);
        new
    }

    /// Goes on from the step that left the region, whose direction had this square of the residual and this curvature, and
    /// minimizes the model at the boundary.
    fn along_boundary<E>(
        &mut self,
        problem: &Subproblem<'_, V>,
        step: &mut TruncatedStep,
        square: f64,
        curvature: f64,
        mut multiply: impl FnMut(&V, &mut V) -> Result<(), E>,
    ) -> Result<(), E> {
        if problem.at_boundary == 0 {
            return Ok(());
        }
        let (mut square, mut curvature) = (square, curvature);
        let mut found = None;
        while (square / curvature).is_finite() {
            let next = self.advance(problem, square, curvature);
            found = self.tridiagonal.minimize(problem.radius);
            let done = self.tridiagonal.gradient_outside(next) <= problem.tolerance * self.tridiagonal.gradient_norm();
            if done || found.is_none() || step.products >= problem.most.min(problem.at_boundary) {
                break;
            }
            (square, curvature) = (next, self.curvature(step.products, &mut multiply)?);
            step.products += 1;
        }
        if let Some(predicted) = found.filter(|&predicted| predicted > step.predicted) {
            self.combine(problem, step, predicted);
        }
        Ok(())
    }

    /// d ← the combination of D⁻¹r that minimizes the model, if the residuals are still orthogonal.
    fn combine(&mut self, problem: &Subproblem<'_, V>, step: &mut TruncatedStep, predicted: f64) {
        let d = &mut self.direction;
        d.set_zero();
        for (weight, r) in self.tridiagonal.weights().zip(&self.residuals) {
            d.add(weight, r);
        }
        let length = match problem.metric {
            Some(metric) => {
                let z = self.preconditioned.get_or_insert_with(|| d.zeros_like());
                z.set_quotient(d, metric);
                let square = d.dot(z);
                std::mem::swap(d, z);
                square.sqrt()
            }
            None => d.norm(),
        };
        if (length / problem.radius - 1.0).abs() <= ORTHOGONAL {
            std::mem::swap(&mut self.solution, &mut self.direction);
            (step.length, step.predicted) = (length, predicted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const D: usize = 6;

    /// A symmetric matrix and a vector of small numbers.
    fn problem() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
        (prop::collection::vec(-2.0..2.0_f64, D * D), prop::collection::vec(-3.0..3.0_f64, D))
            .prop_map(|(a, g)| ((0..D * D).map(|k| 0.5 * (a[k] + a[k % D * D + k / D])).collect(), g))
    }

    fn times(h: &[f64], v: &[f64]) -> Vec<f64> {
        (0..D).map(|i| (0..D).map(|j| h[i * D + j] * v[j]).sum()).collect()
    }

    fn solve(h: &[f64], g: &Vec<f64>, radius: f64, most: u64) -> (TruncatedStep, Vec<f64>) {
        solve_in(h, g, radius, most, None, 0)
    }

    fn solve_in(
        h: &[f64],
        g: &Vec<f64>,
        radius: f64,
        most: u64,
        metric: Option<&Vec<f64>>,
        at_boundary: u64,
    ) -> (TruncatedStep, Vec<f64>) {
        let mut space = CgSpace::new(g);
        let multiply = |v: &Vec<f64>, out: &mut Vec<f64>| {
            out.copy_from_slice(&times(h, v));
            Ok::<(), ()>(())
        };
        let problem = Subproblem { gradient: g, radius, metric, tolerance: 1e-9, most, at_boundary };
        let step = steihaug(&problem, &mut space, multiply).unwrap();
        (step, space.solution)
    }

    /// m(0) − m(−d).
    fn reduction(h: &[f64], g: &Vec<f64>, d: &Vec<f64>) -> f64 {
        g.dot(d) - 0.5 * d.dot(&times(h, d))
    }

    proptest! {
        #[test]
        fn the_step_is_inside_predicts_its_reduction_and_is_no_worse_than_the_cauchy_step(
            (h, g) in problem(), radius in 1e-3..10.0_f64,
        ) {
            prop_assume!(g.norm() > 1e-3);
            let (step, d) = solve(&h, &g, radius, 50);
            prop_assert!(step.length <= radius * (1.0 + 1e-9));
            let found = reduction(&h, &g, &d);
            prop_assert!((found - step.predicted).abs() <= 1e-9 * (1.0 + found.abs()), "{} is {found}", step.predicted);
            let cauchy = super::super::cauchy_step(g.norm_squared(), g.dot(&times(&h, &g)), radius);
            prop_assert!(step.predicted >= cauchy.predicted * (1.0 - 1e-9));
        }

        #[test]
        fn at_the_boundary_the_step_satisfies_the_conditions_of_the_exact_one(
            (h, g) in problem(), radius in 1e-2..3.0_f64, metric in prop::collection::vec(0.2..5.0_f64, D),
        ) {
            prop_assume!(g.norm() > 1e-3);
            let (truncated, _) = solve_in(&h, &g, radius, 50, Some(&metric), 0);
            let (step, d) = solve_in(&h, &g, radius, 50, Some(&metric), 50);
            let length = d.weighted_norm_squared(&metric).sqrt();
            prop_assert!(length <= radius * (1.0 + 1e-6) && (length - step.length).abs() <= 1e-6 * length);
            let found = reduction(&h, &g, &d);
            prop_assert!((found - step.predicted).abs() <= 1e-6 * (1.0 + found.abs()), "{} is {found}", step.predicted);
            prop_assert!(step.predicted >= truncated.predicted * (1.0 - 1e-9));
            // (H + λD)d = g with λ ≥ 0 at the boundary
            let (hd, mut rest) = (times(&h, &d), g.clone());
            rest.add(-1.0, &hd);
            let dd: Vec<f64> = d.iter().zip(&metric).map(|(d, m)| d * m).collect();
            let shift = rest.dot(&d) / dd.dot(&d);
            rest.add(-shift, &dd);
            prop_assert!(shift >= -1e-6 && rest.norm() <= 1e-4 * g.norm(), "λ = {shift}, {} left", rest.norm());
        }

        #[test]
        fn a_repeated_problem_has_the_same_bits_and_makes_no_product_again(
            (h, g) in problem(), radii in prop::collection::vec(1e-3..10.0_f64, 3),
            metric in prop::option::of(prop::collection::vec(0.2..5.0_f64, D)),
        ) {
            prop_assume!(g.norm() > 1e-3);
            let (mut space, mut most) = (CgSpace::new(&g), 0);
            for radius in radii {
                let mut made = 0;
                let problem =
                    Subproblem { gradient: &g, radius, metric: metric.as_ref(), tolerance: 1e-9, most: 50, at_boundary: 50 };
                let step = steihaug(&problem, &mut space, |v: &Vec<f64>, out: &mut Vec<f64>| {
                    made += 1;
                    out.copy_from_slice(&times(&h, v));
                    Ok::<(), ()>(())
                }).unwrap();
                let (fresh, d) = solve_in(&h, &g, radius, 50, metric.as_ref(), 50);
                prop_assert_eq!((step, &space.solution), (fresh, &d));
                prop_assert!(made == step.products.saturating_sub(most) && space.kept() <= most + made);
                most = space.kept();
                space.repeat();
            }
        }

        #[test]
        fn more_products_never_reduce_less(( h, g) in problem(), radius in 1e-3..10.0_f64) {
            prop_assume!(g.norm() > 1e-3);
            let mut before = (0.0, 0.0);
            for most in 1..=D as u64 {
                let (step, _) = solve(&h, &g, radius, most);
                prop_assert!(step.predicted >= before.0 && step.length >= before.1 * (1.0 - 1e-9), "{most} products");
                before = (step.predicted, step.length);
            }
        }
    }

    #[test]
    fn special_matrices_have_their_exits() {
        let diagonal =
            |h: [f64; D]| (0..D * D).map(|k| if k / D == k % D { h[k / D] } else { 0.0 }).collect::<Vec<_>>();
        let g = vec![1.0; D];
        let exit = |h: &[f64], radius: f64| solve(h, &g, radius, 50).0.exit;
        assert_eq!(exit(&diagonal([1.0; D]), 100.0), InnerExit::Interior);
        assert_eq!(exit(&diagonal([1.0; D]), 0.1), InnerExit::Boundary);
        assert_eq!(exit(&diagonal([0.0; D]), 5.0), InnerExit::NegativeCurvature);
        assert_eq!(exit(&diagonal([-1.0; D]), 5.0), InnerExit::NegativeCurvature);
        assert_eq!(exit(&diagonal([f64::NAN; D]), 5.0), InnerExit::NotFinite);
        let (step, d) = solve(&diagonal([1.0; D]), &vec![0.0; D], 1.0, 50);
        assert_eq!((step.exit, step.products, d), (InnerExit::Stationary, 0, vec![0.0; D]));
        // Two different eigenvalues need two products.
        let (step, _) = solve(&diagonal([1.0, 1.0, 1.0, 1e6, 1e6, 1e6]), &g, 100.0, 50);
        assert_eq!((step.exit, step.products), (InnerExit::Interior, 2));
        let (step, _) = solve(&diagonal([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), &g, 100.0, 3);
        assert_eq!((step.exit, step.products), (InnerExit::Budget, 3));
    }
}
