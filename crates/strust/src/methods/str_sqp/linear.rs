//! The constraints at a point, and the step that the model proposes there.

use super::{
    dual::BoxProblem,
    memory::{Inverse, LagrangianCurvature},
};
use crate::{
    constraints::{Constraint, Sense},
    vector::Vector,
};
use faer::Mat;

/// π grows by this factor until the step removes enough of the infeasibility.
const RAISE: f64 = 4.0;

/// x ← the nearest point within the bounds.
pub(super) fn clip<C: Constraint>(constraint: &C, x: &mut C::Point) {
    if let Some(bounds) = constraint.bounds() {
        bounds.clip(x);
    }
}

/// Whether a row can be violated from both sides.
fn is_equal(sense: Sense) -> bool {
    sense == Sense::Equal
}

/// C and A at a point: the rows of the constraint, then the finite bounds.
#[derive(Debug)]
pub(super) struct Linearized<V> {
    pub c: Vec<f64>,
    pub rows: Vec<V>,
    senses: Vec<Sense>,
    bounds: Vec<(usize, f64)>,
}

impl<V: Vector> Linearized<V> {
    pub fn at<C: Constraint<Point = V>>(constraint: &mut C, weights: &[f64], x: &V) -> Self {
        let mut unit = constraint.new_residual();
        let senses: Vec<Sense> = (0..weights.len()).map(|i| constraint.sense(i)).collect();
        let bounds = constraint.bounds().map_or_else(Vec::new, |bounds| bounds.finite().to_vec());
        let mut rows = Vec::with_capacity(weights.len() + bounds.len());
        for (i, &weight) in weights.iter().enumerate() {
            let mut row = x.zeros_like();
            unit.set_zero();
            unit.set_component(i, 1.0);
            constraint.add_vjp(x, weight, &unit, &mut row);
            rows.push(row);
        }
        for &(i, side) in &bounds {
            let mut row = x.zeros_like();
            row.set_component(i, side);
            rows.push(row);
        }
        let mut linear = Self { c: Vec::new(), rows, senses, bounds };
        linear.c = Self::residual(constraint, weights, x);
        linear
    }
    /// C at another point.
    pub fn residual<C: Constraint<Point = V>>(constraint: &mut C, weights: &[f64], x: &V) -> Vec<f64> {
        let mut c = constraint.new_residual();
        constraint.residual(x, &mut c);
        let scaled = weights.iter().enumerate().map(|(i, weight)| weight * c.component(i));
        scaled.chain(constraint.bounds().into_iter().flat_map(|bounds| bounds.violations(x))).collect()
    }
    /// v(C).
    pub fn violation(&self, c: &[f64]) -> f64 {
        let one = |(c, sense): (&f64, &Sense)| if is_equal(*sense) { c.abs() } else { c.max(0.0) };
        c.iter().zip(&self.senses).map(one).sum()
    }
    /// Whether the rows at x + p differ from C + Ap by no more than Ap could.
    pub fn is_trusted(&self, at_trial: &[f64], p: &V) -> bool {
        let length = p.norm();
        let rows = self.rows.iter().take(self.senses.len());
        let (error, change) = rows.enumerate().fold((0.0, 0.0), |(error, change), (i, row)| {
            (error + (at_trial[i] - self.c[i] - row.dot(p)).abs(), change + length * row.norm())
        });
        error <= change
    }
    /// The Euclidean norm of the violated rows.
    pub fn distance(&self, c: &[f64]) -> f64 {
        let one = |(c, sense): (&f64, &Sense)| if is_equal(*sense) { *c } else { c.max(0.0) };
        c.iter().zip(&self.senses).map(one).map(|c| c * c).sum::<f64>().sqrt()
    }
    /// Σ|yᵢCᵢ| over inequalities and bounds.
    pub fn complementarity(&self, y: &[f64]) -> f64 {
        let open = |i: usize| self.senses.get(i).is_none_or(|sense| !is_equal(*sense));
        (0..y.len()).filter(|&i| open(i)).map(|i| (y[i] * self.c[i]).abs()).sum()
    }
    /// Σyᵢ(Cᵢ − C(x)ᵢ − (Ap)ᵢ): what the rows' curvature adds to the Lagrangian.
    pub fn beyond(&self, at_trial: &[f64], y: &[f64], p: &V) -> f64 {
        let rows = self.rows.iter().enumerate().filter(|(i, _)| y[*i] != 0.0);
        rows.map(|(i, row)| y[i] * (at_trial[i] - self.c[i] - row.dot(p))).sum()
    }
    /// x ← x − Aᵀ(AAᵀ)⁻¹C over the equalities, the inequalities that are mostly active, and those that are violated.
    pub fn restore(&self, active: &[f64], x: &mut V) {
        let equal = |i: usize| self.senses.get(i).is_some_and(|sense| is_equal(*sense));
        let chosen: Vec<usize> =
            (0..self.rows.len()).filter(|&i| equal(i) || active[i] > 0.5 || self.c[i] > 0.0).collect();
        let k = Mat::from_fn(chosen.len(), chosen.len(), |i, j| self.rows[chosen[i]].dot(&self.rows[chosen[j]]));
        let b: Vec<f64> = chosen.iter().map(|&i| -self.c[i]).collect();
        let (lower, upper) = (vec![f64::NEG_INFINITY; b.len()], vec![f64::INFINITY; b.len()]);
        let mut y = vec![0.0; b.len()];
        BoxProblem { k: &k, b: &b, lower: &lower, upper: &upper }.solve(&mut y);
        for (&i, y) in chosen.iter().zip(y) {
            x.add(-y, &self.rows[i]);
        }
    }
    /// out ← out + Aᵀy.
    pub fn add_pull(&self, y: &[f64], out: &mut V) {
        for (row, &y) in self.rows.iter().zip(y) {
            if y != 0.0 {
                out.add(y, row);
            }
        }
    }
    /// The bounds of y for a penalty.
    fn limits(&self, penalty: f64) -> (Vec<f64>, Vec<f64>) {
        let lower = self.senses.iter().map(|sense| if is_equal(*sense) { -penalty } else { 0.0 });
        let upper = self.senses.iter().map(|_| penalty);
        let free = self.bounds.len();
        (
            lower.chain(std::iter::repeat_n(0.0, free)).collect(),
            upper.chain(std::iter::repeat_n(f64::INFINITY, free)).collect(),
        )
    }
    /// The smallest ‖Aᵀu‖ over all subgradients u of v within the bounds, and the rows that take part in it. Rows up to
    /// `nearly_zero` count as 0.
    pub fn slope_of_violation(&self, nearly_zero: f64) -> (f64, Vec<usize>) {
        let k = Mat::from_fn(self.rows.len(), self.rows.len(), |i, j| self.rows[i].dot(&self.rows[j]));
        let (mut lower, mut upper) = self.limits(1.0);
        for (i, sense) in self.senses.iter().enumerate() {
            if self.c[i] > nearly_zero {
                lower[i] = 1.0;
            } else if self.c[i] < -nearly_zero {
                upper[i] = if is_equal(*sense) { -1.0 } else { 0.0 };
            }
        }
        for (i, side) in upper.iter_mut().enumerate().skip(self.senses.len()) {
            *side = if self.c[i] < -nearly_zero { 0.0 } else { 1e3 };
        }
        let mut u = vec![0.0; self.rows.len()];
        BoxProblem { k: &k, b: &vec![0.0; u.len()], lower: &lower, upper: &upper }.solve(&mut u);
        let mut pull = self.rows.first().map_or_else(|| unreachable!("a violated row"), V::zeros_like);
        self.add_pull(&u, &mut pull);
        (pull.norm(), (0..self.senses.len()).filter(|&i| u[i].abs() > 1e-6).collect())
    }
    /// The multipliers of the scaled rows and of the finite bounds.
    pub fn join(&self, rows: &[f64], weights: &[f64], bounds: &V) -> Vec<f64> {
        let scaled = rows.iter().zip(weights).map(|(y, weight)| y / weight);
        let side = |&(i, side): &(usize, f64)| (side * bounds.component(i)).max(0.0);
        scaled.chain(self.bounds.iter().map(side)).collect()
    }
    /// The reverse of [`Self::join`].
    pub fn split(&self, y: &[f64], weights: &[f64], rows: &mut [f64], bounds: &mut V) {
        for (i, (row, weight)) in rows.iter_mut().zip(weights).enumerate() {
            *row = y[i] * weight;
        }
        bounds.set_zero();
        for (&(i, side), y) in self.bounds.iter().zip(&y[rows.len()..]) {
            bounds.set_component(i, bounds.component(i) + side * y);
        }
    }
}

/// A proposed step.
#[derive(Debug)]
pub(super) struct Proposal<V> {
    pub p: V,
    pub y: Vec<f64>,
    /// The predicted reduction of φ.
    pub predicted: f64,
    /// ‖g + Aᵀy‖.
    pub stationarity: f64,
    /// pᵀBp/pᵀp + σ.
    pub curvature: f64,
    /// v(C + Ap).
    left: f64,
}

/// All products at a point that the models for every σ need.
#[derive(Debug)]
pub(super) struct LocalProducts<'a, V> {
    linear: &'a Linearized<V>,
    memory: &'a LagrangianCurvature<V>,
    g: &'a V,
    /// The Gram matrix of the pairs of B.
    pairs: Mat<f64>,
    /// AAᵀ, Ag and gᵀg.
    rows: Mat<f64>,
    ag: Vec<f64>,
    gg: f64,
    /// UᵀAᵀ, row by row, and Uᵀg.
    seen: Vec<Vec<f64>>,
    seen_g: Vec<f64>,
}

impl<'a, V: Vector> LocalProducts<'a, V> {
    pub fn new(linear: &'a Linearized<V>, memory: &'a LagrangianCurvature<V>, g: &'a V) -> Self {
        let rows = &linear.rows;
        Self {
            linear,
            memory,
            g,
            pairs: memory.gram(),
            rows: Mat::from_fn(rows.len(), rows.len(), |i, j| rows[i].dot(&rows[j])),
            ag: rows.iter().map(|row| row.dot(g)).collect(),
            gg: g.norm_squared(),
            seen: rows.iter().map(|row| memory.project(row)).collect(),
            seen_g: memory.project(g),
        }
    }
    /// The model for one σ.
    pub fn model(&self, sigma: f64) -> LocalModel<'a, V> {
        let Self { linear, memory, g, ref pairs, ref rows, ref ag, gg, ref seen, ref seen_g } = *self;
        let inverse = memory.inverse(pairs, sigma);
        let weighed: Vec<Vec<f64>> = seen.iter().map(|seen| inverse.weigh(seen)).collect();
        let weighed_g = inverse.weigh(seen_g);
        // The lower half for both, so that the matrix is symmetric to the last bit.
        let product = |i: usize, j: usize| inverse.product(rows[(i, j)], &seen[i], &weighed[j]);
        let k = Mat::from_fn(rows.nrows(), rows.nrows(), |i, j| product(i.max(j), i.min(j)));
        let ahg = ag.iter().zip(seen).map(|(ag, seen)| inverse.product(*ag, seen, &weighed_g)).collect();
        let ghg = inverse.product(gg, seen_g, &weighed_g);
        LocalModel { linear, inverse, g, k, ahg, ghg }
    }
}

/// The model at a point for one σ.
#[derive(Debug)]
pub(super) struct LocalModel<'a, V> {
    linear: &'a Linearized<V>,
    inverse: Inverse<'a, V>,
    g: &'a V,
    /// AHAᵀ, AHg and gᵀHg.
    k: Mat<f64>,
    ahg: Vec<f64>,
    ghg: f64,
}

impl<V: Vector> LocalModel<'_, V> {
    /// The step for constraints C + Ap, with the gradient g or, for `steepness` 0, without it.
    fn propose(&self, c: &[f64], penalty: f64, steepness: f64) -> Proposal<V> {
        let linear = self.linear;
        let (lower, upper) = linear.limits(penalty);
        let b: Vec<f64> = self.ahg.iter().zip(c).map(|(ahg, c)| steepness * ahg - c).collect();
        let mut y = vec![0.0; c.len()];
        BoxProblem { k: &self.k, b: &b, lower: &lower, upper: &upper }.solve(&mut y);
        let ky: Vec<f64> = (0..c.len()).map(|i| (0..c.len()).map(|j| self.k[(i, j)] * y[j]).sum()).collect();
        let along: f64 = y.iter().zip(&self.ahg).map(|(y, ahg)| y * ahg).sum();
        let square = steepness * (self.ghg + 2.0 * along) + y.iter().zip(&ky).map(|(y, ky)| y * ky).sum::<f64>();
        let ahead: Vec<f64> = c.iter().enumerate().map(|(i, c)| c - steepness * self.ahg[i] - ky[i]).collect();
        let left = linear.violation(&ahead);
        let mut p = self.g.clone();
        p.scale(steepness);
        linear.add_pull(&y, &mut p);
        let stationarity = p.norm();
        self.inverse.apply(&mut p);
        p.scale(-1.0);
        let slope = -steepness * (self.ghg + along);
        let predicted = -slope - 0.5 * square + penalty * (linear.violation(&linear.c) - left);
        let length = p.norm_squared();
        let curvature = if length > 0.0 { square / length } else { 0.0 };
        Proposal { p, y, predicted, stationarity, curvature, left }
    }
    /// The step, with a penalty that is raised until it removes half of the violation that the step without g removes.
    pub fn steer(&self, penalty: &mut f64) -> Proposal<V> {
        let linear = self.linear;
        let mut step = self.propose(&linear.c, *penalty, 1.0);
        let violation = linear.violation(&linear.c);
        if violation == 0.0 || step.left <= 0.1 * violation {
            return step;
        }
        for _ in 0..30 {
            let best = self.propose(&linear.c, *penalty, 0.0);
            if violation - step.left >= 0.5 * (violation - best.left) {
                break;
            }
            *penalty *= RAISE;
            step = self.propose(&linear.c, *penalty, 1.0);
        }
        step
    }
    /// The step for the constraints as they are at x + p.
    pub fn correct(&self, at_trial: &[f64], p: &V, penalty: f64) -> Proposal<V> {
        let c: Vec<f64> = at_trial.iter().zip(&self.linear.rows).map(|(c, row)| c - row.dot(p)).collect();
        self.propose(&c, penalty, 1.0)
    }
}
