//! The constraints near a point, and the step that the model proposes there.

use super::{
    constants::{DENSE, DENSE_ROWS, FACTOR, FORMED, GOOD, NEGLIGIBLE, PROBES, ROUNDING, TRIALS},
    dual::{BoxProblem, Matrix, combined, dot},
    memory::{Inverse, LagrangianCurvature},
    scaled::ScaledRows,
};
use crate::{constraints::Constraint, vector::Vector};
use faer::{
    Mat, Par,
    linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place},
};
use std::cell::RefCell;

/// C and A at a point.
pub(super) struct Linearized<'a, C: Constraint> {
    pub scaled: &'a ScaledRows<C>,
    pub x: &'a C::Point,
    pub c: Vec<f64>,
    /// The rows of A, if there are few.
    pub formed: Option<Vec<C::Point>>,
    /// Whether B is a matrix.
    pub dense: bool,
    /// The relative error of multipliers, if the rows are not formed.
    accuracy: f64,
    scratch: RefCell<Option<C::Point>>,
}

impl<'a, C: Constraint> Linearized<'a, C> {
    /// With a matrix B where x has few components, else with pairs.
    pub fn at(scaled: &'a ScaledRows<C>, x: &'a C::Point, accuracy: f64) -> Self {
        let dense = x.dimension() <= DENSE && scaled.len() <= DENSE_ROWS;
        Self::new(scaled, x, scaled.residual(x), accuracy, dense)
    }
    /// The same where C is known.
    pub fn new(scaled: &'a ScaledRows<C>, x: &'a C::Point, c: Vec<f64>, accuracy: f64, dense: bool) -> Self {
        let formed = (dense || scaled.len() <= FORMED).then(|| {
            let mut y = vec![0.0; scaled.len()];
            let row = |i: usize| {
                let mut row = x.zeros_like();
                y[i] = 1.0;
                scaled.add_transposed(x, &y, &mut row);
                y[i] = 0.0;
                row
            };
            (0..scaled.len()).map(row).collect()
        });
        // Products are not more accurate than this.
        let accuracy = accuracy.max(ROUNDING * C::Point::EPSILON);
        Self { scaled, x, c, formed, dense, accuracy, scratch: RefCell::new(None) }
    }
    /// Aᵀ of rows that are formed.
    fn columns(&self) -> Option<Mat<f64>> {
        let rows = self.formed.as_ref()?;
        let mut columns = Mat::zeros(self.x.dimension(), rows.len());
        for (j, row) in rows.iter().enumerate() {
            columns.col_as_slice_mut(j).copy_from_slice(&row.components());
        }
        Some(columns)
    }
    /// The factor of each row of a constraint that gives it the slope 1, or of all of them if they are not formed.
    pub fn weights(&self) -> Vec<f64> {
        let rows = self.scaled.senses.len();
        let inverse = |norm: f64| Some(norm.recip()).filter(|weight| weight.is_finite()).unwrap_or(1.0);
        if let Some(formed) = &self.formed {
            return formed[..rows].iter().map(|row| inverse(row.norm())).collect();
        }
        // The mean of ‖Aᵀs‖² over random signs s is the sum of all squared norms of rows.
        let squares = (0..PROBES).map(|probe| {
            let mut signs: Vec<f64> = (0..rows).map(|i| sign(i as u64, probe)).collect();
            signs.resize(self.scaled.len(), 0.0);
            self.transposed(&signs).norm_squared()
        });
        let mean = squares.sum::<f64>() / PROBES as f64;
        vec![inverse((mean / rows as f64).sqrt()); rows]
    }
    /// The largest |yᵢ|·‖∇cᵢ(x)‖.
    pub fn largest_force(&self, y: &[f64]) -> f64 {
        let (rows, bounds) = y.split_at(self.scaled.senses.len());
        let of_rows = rows.iter().zip(self.weights()).map(|(y, weight)| y / weight);
        of_rows.chain(bounds.iter().copied()).fold(0.0, |most, force| most.max(force.abs()))
    }
    /// Whether there is no row and no bound.
    pub fn is_empty(&self) -> bool {
        self.c.is_empty()
    }
    /// Av.
    pub fn product(&self, v: &C::Point) -> Vec<f64> {
        match &self.formed {
            Some(rows) => rows.iter().map(|row| row.dot(v)).collect(),
            None => self.scaled.product(self.x, v),
        }
    }
    /// out ← out + Aᵀy.
    pub fn add_transposed(&self, y: &[f64], out: &mut C::Point) {
        match &self.formed {
            Some(rows) => {
                for (row, &y) in rows.iter().zip(y) {
                    if y != 0.0 {
                        out.add(y, row);
                    }
                }
            }
            None => self.scaled.add_transposed(self.x, y, out),
        }
    }
    /// AAᵀy.
    fn normal_product(&self, y: &[f64]) -> Vec<f64> {
        let mut transposed = self.scratch.take().unwrap_or_else(|| self.x.zeros_like());
        transposed.set_zero();
        self.add_transposed(y, &mut transposed);
        let product = self.product(&transposed);
        self.scratch.replace(Some(transposed));
        product
    }
    /// Aᵀy.
    pub fn transposed(&self, y: &[f64]) -> C::Point {
        let mut transposed = self.x.zeros_like();
        self.add_transposed(y, &mut transposed);
        transposed
    }
    /// v(C) here.
    pub fn violation(&self) -> f64 {
        self.scaled.violation(&self.c)
    }
    /// About the distance to the nearest feasible point: v, where a row that is flatter than at the start counts more.
    pub fn distance_to_feasibility(&self) -> f64 {
        let Some(formed) = &self.formed else { return self.violation() };
        // Without a violation the slope does not matter, even if it is 0.
        let distance = |(c, row): (&f64, &C::Point)| if *c == 0.0 { 0.0 } else { c / row.norm().min(1.0) };
        self.scaled.violation(&self.c.iter().zip(formed).map(distance).collect::<Vec<f64>>())
    }
    /// Σ|yᵢCᵢ| over inequalities and bounds.
    pub fn complementarity(&self, y: &[f64]) -> f64 {
        self.scaled.complementarity(&self.c, y)
    }
    /// Whether the rows at x + p differ from C + Ap by no more than Ap could. Rows have slope 1 at the start.
    pub fn is_trusted(&self, at_trial: &[f64], p: &C::Point) -> bool {
        let rows = self.scaled.senses.len();
        let ahead = self.product(p);
        let error: f64 = (0..rows).map(|i| (at_trial[i] - self.c[i] - ahead[i]).abs()).sum();
        let slope = self.formed.as_ref().map_or(rows as f64, |formed| formed[..rows].iter().map(C::Point::norm).sum());
        error <= p.norm() * slope
    }
    /// Σyᵢ(Cᵢ − C(x)ᵢ − (Ap)ᵢ): what the rows' curvature adds to the Lagrangian.
    pub fn beyond(&self, at_trial: &[f64], y: &[f64], p: &C::Point) -> f64 {
        let ahead = self.product(p);
        (0..y.len()).map(|i| y[i] * (at_trial[i] - self.c[i] - ahead[i])).sum()
    }
    /// Minimizes ½‖Aᵀy‖² + bᵀy within bounds.
    pub fn least_squares(&self, b: &[f64], lower: &[f64], upper: &[f64]) -> Vec<f64> {
        let mut y = vec![0.0; b.len()];
        let formed_rows = |rows: &Vec<C::Point>| Mat::from_fn(rows.len(), rows.len(), |i, j| rows[i].dot(&rows[j]));
        let products = |y: &[f64]| self.normal_product(y);
        let (columns, formed);
        let k = if self.dense {
            columns = self.columns();
            columns.as_ref().map_or(Matrix::Products(&products), Matrix::Gram)
        } else {
            formed = self.formed.as_ref().map(formed_rows);
            formed.as_ref().map_or(Matrix::Products(&products), Matrix::Formed)
        };
        BoxProblem { k, b, lower, upper, accuracy: self.accuracy }.solve(&mut y);
        y
    }
    /// Aᵀ(AAᵀ)⁻¹C over the equalities, the inequalities that are mostly active, and those that are violated: what a
    /// Newton step subtracts from x.
    pub fn excess(&self, active: &[f64]) -> C::Point {
        let limit = |i: usize| {
            let chosen = self.scaled.is_equation(i) || active[i] > 0.5 || self.c[i] > 0.0;
            if chosen { f64::INFINITY } else { 0.0 }
        };
        let upper: Vec<f64> = (0..self.c.len()).map(limit).collect();
        let lower: Vec<f64> = upper.iter().map(|upper| -upper).collect();
        let b: Vec<f64> = self.c.iter().map(|c| -c).collect();
        self.transposed(&self.least_squares(&b, &lower, &upper))
    }
    /// The smallest ‖Aᵀu‖ over all subgradients u of v within the bounds, and the rows that take part in it. Rows up to
    /// `nearly_zero` count as 0.
    pub fn slope_of_violation(&self, nearly_zero: f64) -> (f64, Vec<usize>) {
        let (mut lower, mut upper) = self.scaled.limits(1.0);
        let rows = self.scaled.senses.len();
        for i in 0..rows {
            if self.c[i] > nearly_zero {
                lower[i] = 1.0;
            } else if self.c[i] < -nearly_zero {
                upper[i] = if self.scaled.is_equation(i) { -1.0 } else { 0.0 };
            }
        }
        for (i, side) in upper.iter_mut().enumerate().skip(rows) {
            if self.c[i] < -nearly_zero {
                *side = 0.0;
            }
        }
        let u = self.least_squares(&vec![0.0; self.c.len()], &lower, &upper);
        (self.transposed(&u).norm(), (0..rows).filter(|&i| u[i].abs() > NEGLIGIBLE).collect())
    }
}

/// A sign without order, from two numbers.
fn sign(i: u64, probe: u64) -> f64 {
    // The finalizer of SplitMix64.
    let mut z = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (probe + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    if (z ^ (z >> 31)) & 1 == 0 { 1.0 } else { -1.0 }
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
pub(super) struct LocalProducts<'a, C: Constraint> {
    linear: &'a Linearized<'a, C>,
    memory: &'a LagrangianCurvature<C::Point>,
    g: &'a C::Point,
    known: Known,
    /// Where the search for the multipliers begins.
    start: Vec<f64>,
}

/// What is known about B and A.
enum Known {
    /// B, Aᵀ and g.
    Dense(Mat<f64>, Mat<f64>, Mat<f64>),
    /// Products with the vectors of B.
    Pairs {
        /// Of rows that are formed.
        formed: Option<FormedProducts>,
        /// UᵀAᵀ, row by row, and Uᵀg.
        seen: Vec<Vec<f64>>,
        seen_g: Vec<f64>,
    },
}

/// The products of rows that are formed.
#[derive(Debug)]
struct FormedProducts {
    /// AAᵀ, Ag and gᵀg.
    rows: Mat<f64>,
    ag: Vec<f64>,
    gg: f64,
}

impl<'a, C: Constraint> LocalProducts<'a, C> {
    /// `start` is a guess of the multipliers.
    pub fn new(
        linear: &'a Linearized<'a, C>,
        memory: &'a LagrangianCurvature<C::Point>,
        g: &'a C::Point,
        start: Vec<f64>,
    ) -> Self {
        if let (true, Some(columns)) = (linear.dense, linear.columns()) {
            let components = g.components();
            let gradient = Mat::from_fn(components.len(), 1, |i, _| components[i]);
            return Self { linear, memory, g, known: Known::Dense(memory.matrix(g), columns, gradient), start };
        }
        let formed = linear.formed.as_ref().map(|rows| FormedProducts {
            rows: Mat::from_fn(rows.len(), rows.len(), |i, j| rows[i].dot(&rows[j])),
            ag: rows.iter().map(|row| row.dot(g)).collect(),
            gg: g.norm_squared(),
        });
        let seen = match &linear.formed {
            Some(rows) => rows.iter().map(|row| memory.project(row)).collect(),
            None => memory.project_all(linear.c.len(), |column| linear.product(column)),
        };
        Self { linear, memory, g, known: Known::Pairs { formed, seen, seen_g: memory.project(g) }, start }
    }
    /// The model for one σ.
    pub fn model(&self, sigma: f64) -> LocalModel<'_, C> {
        let Self { linear, memory, g, ref known, ref start } = *self;
        let (metric, ahg) = match known {
            Known::Dense(b, columns, gradient) => {
                let factor = memory.factor(b, sigma);
                let (mut rows, mut gradient) = (columns.clone(), gradient.clone());
                solve_lower_triangular_in_place(factor.as_ref(), rows.as_mut(), Par::Seq);
                solve_lower_triangular_in_place(factor.as_ref(), gradient.as_mut(), Par::Seq);
                let gradient = gradient.col_as_slice(0).to_vec();
                let ahg = (0..rows.ncols()).map(|i| dot(rows.col_as_slice(i), &gradient)).collect();
                (LocalMetric::Dense { factor, rows, gradient }, ahg)
            }
            Known::Pairs { formed: None, seen, seen_g } => {
                let inverse = memory.inverse(sigma);
                let weighed = inverse.weigh(seen_g);
                let row = |(ag, seen): (f64, &Vec<f64>)| inverse.product(ag, seen, &weighed);
                let ahg = linear.product(g).into_iter().zip(seen).map(row).collect();
                let ghg = inverse.product(g.norm_squared(), seen_g, &weighed);
                (LocalMetric::Pairs { inverse, k: None, seen, seen_g, ghg }, ahg)
            }
            Known::Pairs { formed: Some(FormedProducts { rows, ag, gg }), seen, seen_g } => {
                let inverse = memory.inverse(sigma);
                let weighed: Vec<Vec<f64>> = seen.iter().map(|seen| inverse.weigh(seen)).collect();
                let weighed_g = inverse.weigh(seen_g);
                // The lower half for both, so that the matrix is symmetric to the last bit.
                let product = |i: usize, j: usize| inverse.product(rows[(i, j)], &seen[i], &weighed[j]);
                let k = Mat::from_fn(rows.nrows(), rows.nrows(), |i, j| product(i.max(j), i.min(j)));
                let ahg = ag.iter().zip(seen).map(|(ag, seen)| inverse.product(*ag, seen, &weighed_g)).collect();
                let ghg = inverse.product(*gg, seen_g, &weighed_g);
                (LocalMetric::Pairs { inverse, k: Some(k), seen, seen_g, ghg }, ahg)
            }
        };
        LocalModel { linear, g, metric, ahg, last: RefCell::new(start.clone()) }
    }
}

/// H = (B + σI)⁻¹, with which all products are made.
enum LocalMetric<'a, V> {
    /// L of B + σI = LLᵀ, L⁻¹Aᵀ and L⁻¹g.
    Dense { factor: Mat<f64>, rows: Mat<f64>, gradient: Vec<f64> },
    /// H itself, AHAᵀ if the rows are formed, UᵀAᵀ row by row, Uᵀg and gᵀHg.
    Pairs { inverse: Inverse<'a, V>, k: Option<Mat<f64>>, seen: &'a [Vec<f64>], seen_g: &'a [f64], ghg: f64 },
}

/// Uᵀ(a·g + Aᵀy).
fn seen_of(seen: &[Vec<f64>], seen_g: &[f64], a: f64, y: &[f64]) -> Vec<f64> {
    let mut sum: Vec<f64> = seen_g.iter().map(|g| a * g).collect();
    seen.iter().zip(y).for_each(|(row, y)| sum.add(*y, row));
    sum
}

/// The model at a point for one σ.
pub(super) struct LocalModel<'a, C: Constraint> {
    linear: &'a Linearized<'a, C>,
    metric: LocalMetric<'a, C::Point>,
    g: &'a C::Point,
    /// AHg.
    ahg: Vec<f64>,
    /// The last multipliers, where the next search begins.
    last: RefCell<Vec<f64>>,
}

impl<C: Constraint> LocalModel<'_, C> {
    /// AHAᵀy by products.
    fn product(&self, y: &[f64]) -> Vec<f64> {
        let LocalMetric::Pairs { inverse, seen, seen_g, .. } = &self.metric else {
            unreachable!("its rows are formed")
        };
        let plain = self.linear.normal_product(y);
        let weighed = inverse.weigh(&seen_of(seen, seen_g, 0.0, y));
        plain.iter().zip(*seen).map(|(plain, row)| inverse.product(*plain, row, &weighed)).collect()
    }
    /// The step for constraints C + Ap, with the gradient g for `steepness` 1, or without it for 0.
    fn propose(&self, c: &[f64], penalty: f64, steepness: f64) -> Proposal<C::Point> {
        let scaled = self.linear.scaled;
        let (lower, upper) = scaled.limits(penalty);
        let b: Vec<f64> = self.ahg.iter().zip(c).map(|(ahg, c)| steepness * ahg - c).collect();
        let products = |y: &[f64]| self.product(y);
        let k = match &self.metric {
            LocalMetric::Dense { rows, .. } => Matrix::Gram(rows),
            LocalMetric::Pairs { k: Some(k), .. } => Matrix::Formed(k),
            LocalMetric::Pairs { k: None, .. } => Matrix::Products(&products),
        };
        let mut y = if let Matrix::Formed(_) = k { vec![0.0; c.len()] } else { self.last.borrow().clone() };
        let accuracy = self.linear.accuracy;
        let ky = BoxProblem { k, b: &b, lower: &lower, upper: &upper, accuracy }.solve(&mut y);
        // A row whose multiplier is not at the penalty is satisfied, up to the accuracy of y.
        let ahead = |i: usize| if y[i].abs() < penalty { 0.0 } else { -b[i] - ky[i] };
        let ahead: Vec<f64> = (0..c.len()).map(ahead).collect();
        let left = scaled.violation(&ahead);
        let mut p = if steepness == 0.0 { self.g.zeros_like() } else { self.g.clone() };
        self.linear.add_transposed(&y, &mut p);
        let stationarity = p.norm();
        // pᵀ(B + σI)p and gᵀp
        let (square, slope);
        match &self.metric {
            LocalMetric::Dense { factor, rows, gradient } => {
                let mut sum = Mat::zeros(gradient.len(), 1);
                let slots = sum.col_as_slice_mut(0).iter_mut();
                slots.zip(combined(rows, &y)).zip(gradient).for_each(|((p, ay), g)| *p = -(steepness * g + ay));
                square = dot(sum.col_as_slice(0), sum.col_as_slice(0));
                // gᵀp = −pᵀ(B + σI)p − yᵀAp: a difference of large numbers would be lost in rounding near a solution.
                let of_rows: f64 = (0..c.len()).map(|i| y[i] * (ahead[i] - c[i])).sum();
                slope = -steepness * (square + of_rows);
                solve_upper_triangular_in_place(factor.transpose(), sum.as_mut(), Par::Seq);
                p.set_components(sum.col_as_slice(0));
            }
            LocalMetric::Pairs { inverse, seen, seen_g, ghg, .. } => {
                let along: f64 = y.iter().zip(&self.ahg).map(|(y, ahg)| y * ahg).sum();
                square = steepness * (ghg + 2.0 * along) + y.iter().zip(&ky).map(|(y, ky)| y * ky).sum::<f64>();
                slope = -steepness * (ghg + along);
                inverse.apply_negative(&seen_of(seen, seen_g, steepness, &y), &mut p);
            }
        }
        let predicted = -slope - 0.5 * square + penalty * (self.linear.violation() - left);
        let length = p.norm_squared();
        let curvature = if length > 0.0 { square / length } else { 0.0 };
        self.last.replace(y.clone());
        Proposal { p, y, predicted, stationarity, curvature, left }
    }
    /// The step, with a penalty that is raised until it removes half of the violation that the step without g removes.
    pub fn steer(&self, penalty: &mut f64) -> Proposal<C::Point> {
        let linear = self.linear;
        let mut step = self.propose(&linear.c, *penalty, 1.0);
        let violation = linear.violation();
        for _ in 0..TRIALS {
            if violation == 0.0 || step.left == 0.0 {
                break;
            }
            let best = self.propose(&linear.c, *penalty, 0.0);
            if violation - step.left >= GOOD * (violation - best.left) {
                break;
            }
            *penalty *= FACTOR;
            step = self.propose(&linear.c, *penalty, 1.0);
        }
        step
    }
    /// The step for the constraints as they are at x + p.
    pub fn correct(&self, at_trial: &[f64], p: &C::Point, penalty: f64) -> Proposal<C::Point> {
        let ahead = self.linear.product(p);
        let c: Vec<f64> = at_trial.iter().zip(ahead).map(|(c, ahead)| c - ahead).collect();
        self.propose(&c, penalty, 1.0)
    }
}
