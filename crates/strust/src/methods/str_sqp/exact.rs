//! The step with products of the Lagrangian's Hessian. The dual names the active rows; conjugate gradients minimize the
//! model where these rows are 0.

use super::{
    constants::{ACCURACY, GOOD, ROUNDING, UNBOUNDED},
    face::Face,
    largest,
    linear::{Linearized, Proposal},
};
use crate::{
    constraints::Constraint,
    models::{Local, multiply},
    objective::{Evaluations, Objective, ProductKind},
    vector::Vector,
};

/// How far and how accurately conjugate gradients go.
#[derive(Debug, Clone, Copy)]
pub(super) struct InnerLimits {
    /// The most products.
    pub most: u64,
    /// The largest length of the step from where they begin.
    pub radius: f64,
    /// They end where the projected gradient of the model is so many times the first one,
    pub tolerance: f64,
    /// or as small as this.
    pub enough: f64,
    /// A length that x has.
    pub length: f64,
}

/// A proposed step.
pub(super) struct FaceStep<'a, C: Constraint> {
    pub p: C::Point,
    /// The multipliers of all rows and bounds.
    pub y: Vec<f64>,
    /// The predicted reduction of φ.
    pub predicted: f64,
    /// Whether the radius ended the search.
    pub at_boundary: bool,
    /// The rows that the step keeps at 0.
    pub face: Face<'a, C>,
}

/// The Lagrangian at a point.
pub(super) struct Lagrangian<'f, 'a, F: Objective, C: Constraint<Point = F::Point>> {
    f: &'f mut F,
    at: Local<'a, F::Point>,
    linear: &'a Linearized<'a, C>,
    inner: InnerLimits,
    /// Those made so far.
    pub evaluations: Evaluations,
    difference: Option<(F::Point, F::Point)>,
}

/// A point of the search: p, the gradient of the model there, and Ap.
struct FacePoint<V> {
    p: V,
    slope: V,
    ahead: Vec<f64>,
}

/// Why conjugate gradients ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SearchEnd {
    /// The gradient of the model is small enough.
    Inside,
    /// All products are used.
    Budget,
    /// At the radius.
    Boundary,
    /// This row became 0.
    Blocked(usize),
}

impl<'f, 'a, F: Objective, C: Constraint<Point = F::Point>> Lagrangian<'f, 'a, F, C> {
    pub fn new(f: &'f mut F, at: Local<'a, F::Point>, linear: &'a Linearized<'a, C>, inner: InnerLimits) -> Self {
        Self { f, at, linear, inner, evaluations: Evaluations::default(), difference: None }
    }
    /// out ← Wv with W = ∇²f(x) + Σ yᵢ∇²Cᵢ(x).
    fn multiply(&mut self, y: &[f64], v: &F::Point, out: &mut F::Point) {
        multiply(self.f, ProductKind::Hessian, &self.at, &mut self.difference, &mut self.evaluations, v, out);
        self.linear.scaled.add_second_order_product(self.at.x, y, v, self.inner.length, out);
    }
    fn products(&self) -> u64 {
        // A difference of gradients takes the place of a product.
        self.evaluations.products + self.evaluations.gradients
    }

    /// The step that minimizes gᵀp + ½pᵀWp + π·v(C + Ap) where the rows that are active in the step of the dual are 0.
    /// It may raise the penalty. `None` if there is no such step.
    pub fn propose(&mut self, dual: &Proposal<F::Point>, penalty: &mut f64) -> Option<FaceStep<'a, C>> {
        let linear = self.linear;
        let (scaled, count) = (linear.scaled, linear.c.len());
        // A row whose multiplier is at the penalty stays violated, so its violation is linear.
        let violated: Vec<bool> = (0..count).map(|i| i < scaled.senses.len() && dual.y[i].abs() >= *penalty).collect();
        let forced: Vec<f64> = (0..count).map(|i| if violated[i] { dual.y[i] } else { 0.0 }).collect();
        let held = |i: usize| !violated[i] && (dual.y[i] != 0.0 || scaled.is_equation(i));
        let held: Vec<bool> = (0..count).map(held).collect();
        if held.iter().filter(|&&held| held).count() >= self.at.x.dimension() {
            // At a vertex the step of the dual is the only one.
            return None;
        }
        let mut face = Face::new(linear, held)?;
        let mut gradient = self.at.gradient.clone();
        linear.add_transposed(&forced, &mut gradient);
        let mut projected = gradient.clone();
        let (lower, upper) = scaled.limits(*penalty);
        let within = |y: Vec<f64>| -> Vec<f64> {
            (0..count).map(|i| if violated[i] { forced[i] } else { y[i].clamp(lower[i], upper[i]) }).collect()
        };
        let y = within(face.project(&mut projected));

        let start = self.start(dual, &face, &violated);
        let mut here = FacePoint { slope: gradient.clone(), p: start.clone(), ahead: linear.product(&start) };
        if start.norm_squared() > 0.0 {
            let mut product = start.zeros_like();
            self.multiply(&y, &start, &mut product);
            here.slope.add(1.0, &product);
        }
        let mut enough = None;
        let mut end = self.descend(&face, &y, &violated, &start, &mut here, &mut enough)?;
        while let SearchEnd::Blocked(row) = end {
            face = face.with(row)?;
            end = self.descend(&face, &y, &violated, &start, &mut here, &mut enough)?;
        }

        let mut rest = here.slope.clone();
        let y = within(face.project(&mut rest));
        let row = |i: usize| if face.holds(i) { 0.0 } else { linear.c[i] + here.ahead[i] };
        let gain = linear.violation() - scaled.violation(&(0..count).map(row).collect::<Vec<f64>>());
        // gᵀp + ½pᵀWp
        let rise = self.at.gradient.dot(&here.p) + 0.5 * (here.slope.dot(&here.p) - gradient.dot(&here.p));
        // The penalty is large enough if the step is worth this share of what the violation contributes.
        if gain > 0.0 && *penalty * gain - rise < GOOD * *penalty * gain {
            let needed = rise / ((1.0 - GOOD) * gain);
            if needed > UNBOUNDED * largest(&y).max(*penalty) {
                return None;
            }
            *penalty = needed;
        }
        let predicted = *penalty * gain - rise;
        // With too few products the step of the dual may be the better one.
        let least = if end == SearchEnd::Budget { dual.predicted.max(0.0) } else { 0.0 };
        let found = predicted > least && predicted.is_finite() && here.p.norm_squared() > 0.0;
        found.then_some(FaceStep { p: here.p, y, predicted, at_boundary: end == SearchEnd::Boundary, face })
    }

    /// The shortest step onto the face, or the step of the dual if the other one violates another row.
    fn start(&self, dual: &Proposal<F::Point>, face: &Face<'_, C>, violated: &[bool]) -> F::Point {
        let normal = face.normal(&self.linear.c);
        let ahead = self.linear.product(&normal);
        let inside =
            (0..ahead.len()).all(|i| face.holds(i) || violated[i] || self.linear.c[i] + ahead[i] <= self.slack());
        if inside { normal } else { dual.p.clone() }
    }
    fn slack(&self) -> f64 {
        ROUNDING * F::Point::EPSILON * self.inner.length
    }

    /// Conjugate gradients on the face. `None` if a product is not finite.
    fn descend(
        &mut self,
        face: &Face<'_, C>,
        y: &[f64],
        violated: &[bool],
        start: &F::Point,
        here: &mut FacePoint<F::Point>,
        enough: &mut Option<f64>,
    ) -> Option<SearchEnd> {
        let mut r = here.slope.clone();
        let size = r.norm();
        face.project(&mut r);
        let mut square = r.norm_squared();
        let InnerLimits { most, radius, tolerance, enough: least, .. } = self.inner;
        let enough = *enough.get_or_insert((tolerance * square.sqrt()).max(least));
        let enough = enough.max(ROUNDING * F::Point::EPSILON * size);
        let mut q = r.zeros_like();
        q.add(-1.0, &r);
        let mut product = r.zeros_like();
        let mut moved = r.zeros_like();
        while square.sqrt() > enough && self.products() < most {
            self.multiply(y, &q, &mut product);
            let (curvature, qq) = (q.dot(&product), q.norm_squared());
            if !curvature.is_finite() {
                return None;
            }
            moved.set_sum(&here.p, -1.0, start);
            let (mq, mm) = (moved.dot(&q), moved.norm_squared());
            let to_boundary = ((mq * mq + qq * (radius * radius - mm)).max(0.0).sqrt() - mq) / qq;
            let flat = curvature <= F::Point::EPSILON * qq.sqrt() * product.norm();
            let length = if flat { f64::INFINITY } else { square / curvature };
            let of_rows = self.linear.product(&q);
            // Less steep directions do not lead to a row.
            let steep = ACCURACY * qq.sqrt();
            let others = (0..of_rows.len()).filter(|&i| of_rows[i] > steep && !face.holds(i) && !violated[i]);
            let room = |i: usize| (-self.linear.c[i] - here.ahead[i]).max(0.0) / of_rows[i];
            let blocked = others.map(|i| (room(i), i)).min_by(|a, b| a.0.total_cmp(&b.0));
            let (to_row, row) = blocked.unwrap_or((f64::INFINITY, 0));
            let share = length.min(to_boundary).min(to_row);
            here.p.add(share, &q);
            here.slope.add(share, &product);
            here.ahead.add(share, &of_rows);
            if share >= to_row {
                return Some(SearchEnd::Blocked(row));
            }
            if share >= to_boundary {
                return Some(SearchEnd::Boundary);
            }
            r.add(share, &product);
            face.project(&mut r);
            let next = r.norm_squared();
            q.scale_add(next / square, -1.0, &r);
            square = next;
        }
        Some(if square.sqrt() > enough { SearchEnd::Budget } else { SearchEnd::Inside })
    }
}

#[cfg(test)]
mod tests {
    use super::{super::scaled::ScaledRows, *};
    use crate::{
        constraints::{Sphere, at_most, both, constraint_from_fn},
        objective::{from_terms, with_products},
        sample::Sample,
    };

    /// f = x₀²x₁ + x₂⁴.
    fn gradient(x: &[f64]) -> [f64; 3] {
        [2.0 * x[0] * x[1], x[0] * x[0], 4.0 * x[2].powi(3)]
    }

    /// The products of the Lagrangian with these rows are the derivatives of its gradient, and symmetric.
    fn are_derivatives<C: Constraint<Point = Vec<f64>>>(constraint: C, accuracy: f64) {
        let f = from_terms(1, |_, x: &Vec<f64>, g: &mut Vec<f64>| {
            g.add(1.0, &gradient(x).to_vec());
            x[0] * x[0] * x[1] + x[2].powi(4)
        });
        let mut f = with_products(f, ProductKind::Hessian, |x: &Vec<f64>, _: &Sample, v: &Vec<f64>, out| {
            out[0] = 2.0 * (x[1] * v[0] + x[0] * v[1]);
            out[1] = 2.0 * x[0] * v[0];
            out[2] = 12.0 * x[2] * x[2] * v[2];
        });
        let (x, y) = (vec![0.3, -1.2, 0.8], [0.7, -1.5]);
        let scaled = ScaledRows::new(constraint, &[2.0, 0.5]);
        let linear = Linearized::at(&scaled, &x, 1e-10);
        let (g, sample) = (gradient(&x).to_vec(), Sample::range(0..1));
        let evaluation = f.value(&x, &sample);
        let at = Local { k: 0, x: &x, sample: &sample, evaluation, gradient: &g, gradient_squared: g.norm_squared() };
        let inner = InnerLimits { most: 9, radius: 1.0, tolerance: 0.1, enough: 0.0, length: x.norm() };
        let mut lagrangian = Lagrangian::new(&mut f, at, &linear, inner);
        let (u, v) = (vec![0.4, 0.9, -0.3], vec![-1.1, 0.2, 0.6]);
        let (mut wu, mut wv) = (u.zeros_like(), u.zeros_like());
        lagrangian.multiply(&y, &u, &mut wu);
        lagrangian.multiply(&y, &v, &mut wv);
        assert_eq!(lagrangian.evaluations.products, 2);
        assert!((u.dot(&wv) - v.dot(&wu)).abs() < accuracy, "{} {}", u.dot(&wv), v.dot(&wu));
        let slope = |h: f64| {
            let mut point = x.clone();
            point.add(h, &v);
            let mut slope = gradient(&point).to_vec();
            scaled.add_transposed(&point, &y, &mut slope);
            slope
        };
        let h = 1e-5;
        let (mut difference, below) = (slope(h), slope(-h));
        difference.add(-1.0, &below);
        difference.scale(0.5 / h);
        difference.add(-1.0, &wv);
        assert!(difference.norm() < accuracy, "off by {:e}", difference.norm());
    }

    #[test]
    fn products_are_derivatives_of_the_lagrangians_gradient() {
        are_derivatives(both(Sphere::new(1.0).unwrap(), at_most(Sphere::new(2.0).unwrap())).unwrap(), 1e-8);
    }

    #[test]
    fn rows_without_second_order_products_get_differences() {
        let rows = constraint_from_fn(
            2,
            |x, c| (c[0], c[1]) = (x[0] * x[1] * x[2], x[0].exp()),
            |x, v, out| {
                out[0] = v[0] * x[1] * x[2] + x[0] * v[1] * x[2] + x[0] * x[1] * v[2];
                out[1] = x[0].exp() * v[0];
            },
            |x, y, out| {
                out[0] += y[0] * x[1] * x[2] + y[1] * x[0].exp();
                out[1] += y[0] * x[0] * x[2];
                out[2] += y[0] * x[0] * x[1];
            },
        );
        are_derivatives(rows, 1e-8);
    }
}
