//! Rules for the weights of the file as a set of the weights x that the model computes with: wⱼ = cⱼxⱼ.

use super::rules::{RuleKind, WeightRule};
use crate::Error;
use strust::constraints::{Bounds, Constraint, Sense};

/// A weight is at a limit within this distance, relative to the size of the terms.
const AT_LIMIT: f64 = 1e-9;

/// A row of the set.
#[derive(Debug, Clone)]
enum SetRow {
    /// Σ aⱼxⱼ − right, divided by the largest coefficient.
    Linear { terms: Vec<(usize, f64)>, right: f64, sense: Sense },
    /// ½(Σ(cⱼxⱼ)² − 1).
    UnitNorm,
}

/// A row, its rule, and the derivative of the row by the right-hand side of the rule.
#[derive(Debug, Clone)]
struct RowOfRule {
    row: SetRow,
    rule: usize,
    slope: f64,
}

/// The points that satisfy some rules. The last component is the intercept.
#[derive(Debug, Clone)]
pub(crate) struct WeightSet {
    bounds: Bounds<Vec<f64>>,
    /// The rule of each bound, its component, and aⱼcⱼ.
    bounded: Vec<(usize, usize, f64)>,
    rows: Vec<RowOfRule>,
    rules: usize,
    factors: Vec<f64>,
}

impl WeightSet {
    /// The set, or `None` if two bounds contradict each other.
    pub(crate) fn new(rules: &[&WeightRule], factors: &[f64]) -> Result<Option<Self>, Error> {
        let size = factors.len() + 1;
        let (mut lower, mut upper) = (vec![f64::NEG_INFINITY; size], vec![f64::INFINITY; size]);
        let (mut bounded, mut rows) = (Vec::new(), Vec::new());
        for (rule, WeightRule { kind, .. }) in rules.iter().enumerate() {
            match kind {
                RuleKind::UnitNorm => rows.push(RowOfRule { row: SetRow::UnitNorm, rule, slope: 1.0 }),
                RuleKind::Linear { terms, low, high } => {
                    let terms: Vec<(usize, f64)> = terms.iter().map(|&(j, a)| (j, a * factors[j])).collect();
                    if let [(j, a)] = terms[..] {
                        let (low, high) = if a > 0.0 { (low / a, high / a) } else { (high / a, low / a) };
                        // 0/−2 is −0.
                        lower[j] = lower[j].max(low + 0.0);
                        upper[j] = upper[j].min(high + 0.0);
                        bounded.push((rule, j, a));
                        continue;
                    }
                    let largest = terms.iter().fold(0.0_f64, |most, (_, a)| most.max(a.abs()));
                    let mut push = |sign: f64, right: f64, sense| {
                        let terms = terms.iter().map(|(j, a)| (*j, sign * a / largest)).collect();
                        let row = SetRow::Linear { terms, right: sign * right / largest, sense };
                        rows.push(RowOfRule { row, rule, slope: 1.0 / largest });
                    };
                    if low.total_cmp(high).is_eq() {
                        push(1.0, *low, Sense::Equal);
                        continue;
                    }
                    if high.is_finite() {
                        push(1.0, *high, Sense::AtMost);
                    }
                    if low.is_finite() {
                        push(-1.0, *low, Sense::AtMost);
                    }
                }
            }
        }
        if lower.iter().zip(&upper).any(|(low, high)| low > high) {
            return Ok(None);
        }
        let bounds = Bounds::new(lower, upper)?;
        Ok(Some(Self { bounds, bounded, rows, rules: rules.len(), factors: factors.to_vec() }))
    }

    /// The multiplier of each rule: by how much f would fall at first for each unit by which it is relaxed.
    pub(crate) fn of_rules(&self, rows: &[f64], bounds: &[f64]) -> Vec<f64> {
        let mut multipliers = vec![0.0; self.rules];
        for (row, y) in self.rows.iter().zip(rows) {
            multipliers[row.rule] += y * row.slope;
        }
        for &(rule, j, a) in &self.bounded {
            multipliers[rule] += bounds[j] / a;
        }
        multipliers
    }

    /// Removes the last rounding errors of a single row, in proportion to the weights, so that a weight of 0 stays 0.
    pub(crate) fn polish(&self, x: &mut Vec<f64>) {
        let [RowOfRule { row, .. }] = &self.rows[..] else { return };
        match row {
            SetRow::UnitNorm => {
                let norm = self.squares(x, x).sqrt();
                x.iter_mut().zip(&self.factors).for_each(|(x, _)| *x /= norm);
            }
            SetRow::Linear { terms, right, sense } => {
                let excess = terms.iter().map(|&(j, a)| a * x[j]).sum::<f64>() - right;
                let size: f64 = terms.iter().map(|&(j, a)| (a * x[j]).abs()).sum();
                if size > 0.0 && (*sense == Sense::Equal || excess > 0.0) {
                    for &(j, a) in terms {
                        x[j] -= x[j].abs() * a.signum() * excess / size;
                    }
                }
            }
        }
        self.bounds.clip(x);
    }

    /// Σ (cⱼ)²xⱼvⱼ.
    fn squares(&self, x: &[f64], v: &[f64]) -> f64 {
        self.factors.iter().zip(x).zip(v).map(|((c, x), v)| c * c * x * v).sum()
    }

    /// Calls `each` with the components and the derivatives of a row at x.
    fn derivatives(&self, row: &SetRow, x: &[f64], mut each: impl FnMut(usize, f64)) {
        match row {
            SetRow::Linear { terms, .. } => terms.iter().for_each(|&(j, a)| each(j, a)),
            SetRow::UnitNorm => self.factors.iter().enumerate().for_each(|(j, c)| each(j, c * c * x[j])),
        }
    }
}

impl Constraint for WeightSet {
    type Point = Vec<f64>;
    type Residual = Vec<f64>;
    fn new_residual(&self) -> Vec<f64> {
        vec![0.0; self.rows.len()]
    }
    fn residual(&mut self, x: &Vec<f64>, c: &mut Vec<f64>) {
        for (c, RowOfRule { row, .. }) in c.iter_mut().zip(&self.rows) {
            *c = match row {
                SetRow::Linear { terms, right, .. } => terms.iter().map(|&(j, a)| a * x[j]).sum::<f64>() - right,
                SetRow::UnitNorm => 0.5 * (self.squares(x, x) - 1.0),
            };
        }
    }
    fn jvp(&mut self, x: &Vec<f64>, v: &Vec<f64>, out: &mut Vec<f64>) {
        for (out, RowOfRule { row, .. }) in out.iter_mut().zip(&self.rows) {
            *out = 0.0;
            self.derivatives(row, x, |j, slope| *out += slope * v[j]);
        }
    }
    fn add_vjp(&mut self, x: &Vec<f64>, a: f64, y: &Vec<f64>, out: &mut Vec<f64>) {
        for (y, RowOfRule { row, .. }) in y.iter().zip(&self.rows) {
            self.derivatives(row, x, |j, slope| out[j] += a * y * slope);
        }
    }
    fn add_second_order_product(
        &mut self,
        _: &Vec<f64>,
        a: f64,
        y: &Vec<f64>,
        v: &Vec<f64>,
        out: &mut Vec<f64>,
    ) -> bool {
        for (y, RowOfRule { row, .. }) in y.iter().zip(&self.rows) {
            if matches!(row, SetRow::UnitNorm) {
                out.iter_mut().zip(v).zip(&self.factors).for_each(|((out, v), c)| *out += a * y * c * c * v);
            }
        }
        true
    }
    /// A row is a difference of numbers of about this size.
    fn rounding(&self, x: &Vec<f64>, norm: f64) -> f64 {
        let size = |RowOfRule { row, .. }: &RowOfRule| match row {
            SetRow::Linear { terms, right, .. } => {
                right.abs() + terms.iter().map(|&(j, a)| (a * x[j]).abs()).sum::<f64>()
            }
            SetRow::UnitNorm => 1.0,
        };
        f64::EPSILON * (norm + self.rows.iter().map(size).sum::<f64>())
    }
    fn sense(&self, row: usize) -> Sense {
        match self.rows[row].row {
            SetRow::Linear { sense, .. } => sense,
            SetRow::UnitNorm => Sense::Equal,
        }
    }
    fn bounds(&self) -> Option<&Bounds<Vec<f64>>> {
        Some(&self.bounds)
    }
}

impl WeightRule {
    /// Whether it holds with equality.
    pub(crate) fn is_at_limit(&self, weights: &[f64]) -> bool {
        let RuleKind::Linear { terms, low, high } = &self.kind else { return true };
        let size: f64 = terms.iter().map(|&(j, a)| (a * weights[j]).abs()).sum();
        let sum: f64 = terms.iter().map(|&(j, a)| a * weights[j]).sum();
        (sum - low).min(high - sum) <= AT_LIMIT * size.max(low.abs().min(high.abs()))
    }

    /// The largest |aⱼcⱼ|.
    pub(crate) fn largest_coefficient(&self, factors: &[f64]) -> f64 {
        let RuleKind::Linear { terms, .. } = &self.kind else { return 1.0 };
        terms.iter().fold(f64::MIN_POSITIVE, |most, &(j, a)| most.max((a * factors[j]).abs()))
    }
}
