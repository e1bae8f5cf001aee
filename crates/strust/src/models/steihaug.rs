//! Truncated conjugate gradients for m(p) = gᵀp + ½pᵀHp inside ‖p‖ ≤ Δ (Steihaug 1983, Toint 1981).

use super::{Exit, tridiagonal::Tridiagonal};
use crate::vector::Vector;

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
    /// The inner iteration ends where the model's gradient is so many times ‖g‖.
    pub tolerance: f64,
    /// The most products with H.
    pub most: u64,
    /// Where the conjugate gradients leave the region they can go on and minimize the model at its boundary (generalized
    /// Lanczos, Gould, Lucidi, Roma and Toint 1999), up to this many products in all. If they need more to get there, the
    /// step ends where they leave.
    pub at_boundary: u64,
    /// How many shorter steps are kept for [`CgSpace::retreat`].
    pub shorter: usize,
}

/// The outcome of [`steihaug`]. The step is p = −d with d in [`CgSpace::solution`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TruncatedStep {
    /// ‖p‖.
    pub length: f64,
    /// m(0) − m(p), never negative: a sum of the reductions of all inner steps.
    pub predicted: f64,
    /// Products with H.
    pub products: u64,
    /// Why it ended.
    pub exit: InnerExit,
}

/// The vectors of [`steihaug`], made once: four, one for each shorter step, and one for each product that
/// the generalized Lanczos method may use.
#[derive(Debug, Clone)]
pub struct CgSpace<V> {
    /// d: approximately H⁻¹g, or a step to the boundary.
    pub solution: V,
    direction: V,
    product: V,
    /// The first residuals, as many as the boundary may use, and the last one.
    residuals: Vec<V>,
    tridiagonal: Tridiagonal,
    shorter: Vec<ShorterStep<V>>,
    /// Shorter steps kept so far; the oldest ones make room.
    kept: usize,
}

/// A point of the path of the conjugate gradients: their step in a smaller region.
#[derive(Debug, Clone)]
struct ShorterStep<V> {
    solution: V,
    length: f64,
    predicted: f64,
}

/// A shorter step is kept whenever the path is so many times as long as at the last one.
const SPACING: f64 = 4.0;

/// A stretch of the path, d + tq for t up to `end`: with dᵀd, dᵀq and qᵀq, rᵀr, qᵀHq and m(0) − m at its start.
struct Stretch {
    end: f64,
    dd: f64,
    dq: f64,
    qq: f64,
    square: f64,
    curvature: f64,
    predicted: f64,
}

impl Stretch {
    /// ‖d + tq‖².
    fn squared_length(&self, t: f64) -> f64 {
        self.dd + t * (2.0 * self.dq + t * self.qq)
    }
    /// The t with ‖d + tq‖² = `region`, without cancellation.
    fn leaves(&self, region: f64) -> f64 {
        let gap = (region - self.dd).max(0.0);
        let root = (self.dq * self.dq + self.qq * gap).sqrt();
        if self.dq > 0.0 { gap / (self.dq + root) } else { (root - self.dq) / self.qq }
    }
    /// m(0) − m(d + tq). For t up to rᵀr/qᵀHq, or if the curvature is not positive, it grows with t.
    fn predicted(&self, t: f64) -> f64 {
        self.predicted + t * (self.square - 0.5 * t * self.curvature)
    }
}

impl<V: Vector> CgSpace<V> {
    /// The curvature along the last direction.
    pub(super) fn curvature(&self) -> f64 {
        self.direction.dot(&self.product)
    }
    /// Space for vectors of this shape.
    pub fn new(like: &V) -> Self {
        let zero = || like.zeros_like();
        Self {
            solution: zero(),
            direction: zero(),
            product: zero(),
            residuals: vec![zero()],
            tridiagonal: Tridiagonal::default(),
            shorter: Vec::new(),
            kept: 0,
        }
    }

    /// Sets the solution to the longest kept step of at most half of this length. It is the step of the same model in a region
    /// of that radius, so after a rejection it needs no products. Returns its length and its predicted reduction.
    pub fn retreat(&mut self, length: f64) -> Option<(f64, f64)> {
        let kept = self.kept.min(self.shorter.len());
        let fits = self.shorter[..kept].iter().filter(|shorter| shorter.length <= 0.5 * length);
        let longest = fits.max_by(|a, b| a.length.total_cmp(&b.length))?;
        self.solution.copy_from(&longest.solution);
        Some((longest.length, longest.predicted))
    }

    /// Keeps the points of a stretch whose lengths are powers of [`SPACING`] times that of the Cauchy point.
    fn keep(&mut self, most: usize, stretch: &Stretch) {
        if most == 0 {
            return;
        }
        let end = stretch.squared_length(stretch.end).sqrt();
        let last = |kept: usize| (kept + most - 1) % most;
        loop {
            let length = if self.kept == 0 { end / SPACING } else { SPACING * self.shorter[last(self.kept)].length };
            if length > end || length == 0.0 || !length.is_finite() {
                return;
            }
            let at = self.kept % most;
            let t = stretch.leaves(length * length).min(stretch.end);
            let kept = &mut self.shorter[at];
            kept.solution.set_sum(&self.solution, t, &self.direction);
            (kept.length, kept.predicted) = (length, stretch.predicted(t));
            self.kept += 1;
        }
    }
}

/// Approximately minimizes m(−d) = −gᵀd + ½dᵀHd over the region, by conjugate gradients from d = 0. It ends
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
///     Subproblem { gradient: &g, radius: 100.0, tolerance: 1e-10, most: 50, at_boundary: 0, shorter: 0 };
/// let step = steihaug(&problem, &mut space, h)?;
/// assert_eq!((step.products, step.exit), (2, InnerExit::Interior));
/// assert!((space.solution[0] - 1.0).abs() < 1e-9 && (space.solution[1] - 1.0).abs() < 1e-9);
/// # Ok::<(), strust::Error>(())
/// ```
pub fn steihaug<V: Vector, E>(
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
    // dᵀd, dᵀq and qᵀq, by their recurrences.
    let (mut dd, mut dq, mut qq) = (0.0, 0.0, rr);
    while step.products < problem.most.max(1) {
        let CgSpace { direction: q, product: hq, .. } = space;
        multiply(q, hq)?;
        step.products += 1;
        let curvature = q.dot(hq);
        if !curvature.is_finite() {
            step.exit = InnerExit::NotFinite;
            break;
        }
        let a = rr / curvature;
        let path = Stretch { end: a, dd, dq, qq, square: rr, curvature, predicted: step.predicted };
        let (negative, outside) = (curvature <= 0.0, path.squared_length(a) >= region);
        if negative || outside || !a.is_finite() {
            let path = Stretch { end: path.leaves(region), ..path };
            space.keep(problem.shorter, &path);
            space.solution.add(path.end, &space.direction);
            step.predicted = path.predicted(path.end);
            step.length = problem.radius;
            step.exit = if negative { InnerExit::NegativeCurvature } else { InnerExit::Boundary };
            space.along_boundary(problem, &mut step, rr, curvature, multiply)?;
            return Ok(step);
        }
        space.keep(problem.shorter, &path);
        space.solution.add(a, &space.direction);
        step.predicted += 0.5 * a * rr;
        dd = path.squared_length(a);
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

impl<V: Vector> CgSpace<V> {
    /// d ← 0, r ← g, q ← g. Returns rᵀr.
    fn start(&mut self, problem: &Subproblem<'_, V>) -> f64 {
        self.solution.set_zero();
        self.tridiagonal.clear();
        self.kept = 0;
        while self.shorter.len() < problem.shorter {
            self.shorter.push(ShorterStep { solution: self.solution.zeros_like(), length: 0.0, predicted: 0.0 });
        }
        let r = &mut self.residuals[0];
        r.copy_from(problem.gradient);
        self.direction.copy_from(r);
        r.dot(&self.direction)
    }

    /// r ← r − a·Hq and q ← r + b·q after an inner step a = `square`/`curvature`. Returns rᵀr.
    fn advance(&mut self, problem: &Subproblem<'_, V>, square: f64, curvature: f64) -> f64 {
        let a = square / curvature;
        let mut at = self.tridiagonal.len();
        if at as u64 == problem.at_boundary {
            self.residuals[at].add(-a, &self.product);
        } else {
            // The first residuals stay: they are the basis in which the model is minimized at the boundary.
            self.tridiagonal.push(square, curvature);
            at += 1;
            if self.residuals.len() == at {
                self.residuals.push(problem.gradient.zeros_like());
            }
            let (before, after) = self.residuals.split_at_mut(at);
            after[0].set_sum(&before[at - 1], -a, &self.product);
        }
        let r = &self.residuals[at];
        let new = r.dot(r);
        self.direction.scale_add(new / square, 1.0, r);
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
        if step.products > problem.at_boundary {
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
            multiply(&self.direction, &mut self.product)?;
            step.products += 1;
            (square, curvature) = (next, self.direction.dot(&self.product));
        }
        if let Some(predicted) = found.filter(|&predicted| predicted > step.predicted) {
            self.combine(problem, step, predicted);
        }
        Ok(())
    }

    /// d ← the combination of residuals that minimizes the model, if the residuals are still orthogonal.
    fn combine(&mut self, problem: &Subproblem<'_, V>, step: &mut TruncatedStep, predicted: f64) {
        let d = &mut self.direction;
        d.set_zero();
        for (weight, r) in self.tridiagonal.weights().zip(&self.residuals) {
            d.add(weight, r);
        }
        let length = d.norm();
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
        solve_in(h, g, radius, most, 0)
    }

    fn solve_in(h: &[f64], g: &Vec<f64>, radius: f64, most: u64, at_boundary: u64) -> (TruncatedStep, Vec<f64>) {
        let mut space = CgSpace::new(g);
        let multiply = |v: &Vec<f64>, out: &mut Vec<f64>| {
            out.copy_from_slice(&times(h, v));
            Ok::<(), ()>(())
        };
        let problem = Subproblem { gradient: g, radius, tolerance: 1e-9, most, at_boundary, shorter: 0 };
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
            (h, g) in problem(), radius in 1e-2..3.0_f64,
        ) {
            prop_assume!(g.norm() > 1e-3);
            let (truncated, _) = solve_in(&h, &g, radius, 50, 0);
            let (step, d) = solve_in(&h, &g, radius, 50, 50);
            let length = d.norm();
            prop_assert!(length <= radius * (1.0 + 1e-6) && (length - step.length).abs() <= 1e-6 * length);
            let found = reduction(&h, &g, &d);
            prop_assert!((found - step.predicted).abs() <= 1e-6 * (1.0 + found.abs()), "{} is {found}", step.predicted);
            prop_assert!(step.predicted >= truncated.predicted * (1.0 - 1e-9));
            // (H + λI)d = g with λ ≥ 0 at the boundary
            let (hd, mut rest) = (times(&h, &d), g.clone());
            rest.add(-1.0, &hd);
            let shift = rest.dot(&d) / d.norm_squared();
            rest.add(-shift, &d);
            prop_assert!(shift >= -1e-6 && rest.norm() <= 1e-4 * g.norm(), "λ = {shift}, {} left", rest.norm());
        }

        #[test]
        fn a_small_basis_is_enough_or_the_step_ends_where_it_leaves(
            (h, g) in problem(), radius in 1e-2..10.0_f64, at_boundary in 0..5_u64,
        ) {
            prop_assume!(g.norm() > 1e-3);
            let mut space = CgSpace::new(&g);
            let problem =
                Subproblem { gradient: &g, radius, tolerance: 1e-9, most: 50, at_boundary, shorter: 0 };
            let multiply = |v: &Vec<f64>, out: &mut Vec<f64>| {
                out.copy_from_slice(&times(&h, v));
                Ok::<(), ()>(())
            };
            let step = steihaug(&problem, &mut space, multiply).unwrap();
            prop_assert!(space.residuals.len() as u64 <= at_boundary + 1, "{} vectors", space.residuals.len());
            let (truncated, d) = solve(&h, &g, radius, 50);
            if step.products > at_boundary {
                prop_assert_eq!(step, truncated);
                prop_assert_eq!(&space.solution, &d);
            } else {
                prop_assert!(step.predicted >= truncated.predicted * (1.0 - 1e-9));
            }
        }

        #[test]
        fn a_retreat_is_the_step_of_a_smaller_region(
            (h, g) in problem(), radius in 1e-2..10.0_f64,
        ) {
            prop_assume!(g.norm() > 1e-3);
            let mut space = CgSpace::new(&g);
            let problem = Subproblem {
                gradient: &g, radius, tolerance: 1e-9, most: 50, at_boundary: 0, shorter: 3,
            };
            let multiply = |v: &Vec<f64>, out: &mut Vec<f64>| {
                out.copy_from_slice(&times(&h, v));
                Ok::<(), ()>(())
            };
            let mut length = steihaug(&problem, &mut space, multiply).unwrap().length;
            let mut retreats = 0;
            while let Some((shorter, predicted)) = space.retreat(length) {
                prop_assert!(shorter <= 0.5 * length);
                let (step, d) = solve_in(&h, &g, shorter, 50, 0);
                prop_assert!((step.predicted - predicted).abs() <= 1e-9 * (1.0 + predicted), "{predicted} is {}", step.predicted);
                let far = d.iter().zip(&space.solution).map(|(d, s)| (d - s).abs()).fold(0.0, f64::max);
                prop_assert!(far <= 1e-6 * (1.0 + d.norm()), "{far} away");
                (length, retreats) = (shorter, retreats + 1);
            }
            prop_assert!((1..=3).contains(&retreats), "{retreats} retreats");
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
