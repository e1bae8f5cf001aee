//! The loss of one row, and its derivative.

/// What the outputs of a model mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OutputLoss {
    /// ½(z − y)².
    Squares,
    /// Huber's loss with the bound δ: ½r² for a residual r of size up to δ, and δ|r| − ½δ² beyond. Its second derivative
    /// is 1 up to δ and 0 beyond.
    Huber(f64),
    /// log(1 + exp(−z)) for class 1 and log(1 + exp(z)) for class 0.
    Logistic,
    /// log Σ exp(z_c) − z_y.
    Softmax,
}

impl OutputLoss {
    /// The loss of outputs z. The derivative with respect to z overwrites them.
    #[inline(always)]
    pub fn differentiate(self, z: &mut [f64], goal: f64) -> f64 {
        let mut loss = 0.0;
        self.add(z, goal, 1.0, &mut loss);
        loss
    }

    /// Adds the loss of outputs z to `sum`. The derivative with respect to z times `share` overwrites them.
    #[inline(always)]
    pub fn add(self, z: &mut [f64], goal: f64, share: f64, sum: &mut f64) {
        match self {
            Self::Squares => {
                let residual = z[0] - goal;
                *sum += 0.5 * residual * residual;
                z[0] = share * residual;
            }
            Self::Huber(bound) => {
                let residual = z[0] - goal;
                // Both cases in one: ½r² is r·½r, and δ|r| − ½δ² is δ(|r| − ½δ).
                let slope = residual.clamp(-bound, bound);
                *sum += slope * (residual - 0.5 * slope);
                z[0] = share * slope;
            }
            Self::Logistic => {
                let sign = 2.0 * goal - 1.0;
                let margin = sign * z[0];
                // Use exp only of negative numbers, so nothing overflows and small losses keep their digits.
                let e = (-margin.abs()).exp();
                *sum += (-margin).max(0.0) + e.ln_1p();
                z[0] = -share * sign * if margin > 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) };
            }
            Self::Softmax => {
                let target = goal as usize;
                let largest = largest(z);
                let peak = z[largest];
                // log Σ exp(z) − z_y = (z_max − z_y) + log(1 + Σ_{others} exp(z − z_max)). Both parts are ≥ 0, so a small
                // loss keeps its digits, and nothing overflows.
                *sum += peak - z[target];
                let mut others = 0.0;
                for (c, z) in z.iter_mut().enumerate() {
                    *z = (*z - peak).exp();
                    others += if c == largest { 0.0 } else { *z };
                }
                *sum += others.ln_1p();
                let scale = share / (1.0 + others);
                // p_y − 1 is minus the sum of the others. This form does not cancel where p_y ≈ 1.
                let mut rest = 0.0;
                for (c, z) in z.iter_mut().enumerate() {
                    rest += if c == target { 0.0 } else { *z };
                    *z *= scale;
                }
                z[target] = -scale * rest;
            }
        }
    }

    /// Adds what second derivatives need to `out`, from the derivatives d that [`add`](Self::add) leaves for the share 1: the
    /// second derivative of one output, or the probabilities p of several, whose matrix is diag(p) − ppᵀ.
    #[inline(always)]
    pub fn curvature(self, d: &[f64], goal: f64, out: &mut Vec<f64>) {
        match self {
            Self::Squares => out.push(1.0),
            Self::Huber(bound) => out.push(f64::from(u8::from(d[0].abs() < bound))),
            // |d| is the probability of the wrong class.
            Self::Logistic => out.push(d[0].abs() * (1.0 - d[0].abs())),
            Self::Softmax => out.extend(d.iter().enumerate().map(|(c, d)| d + f64::from(u8::from(c == goal as usize)))),
        }
    }

    /// Whether the target is a class.
    #[must_use]
    pub fn is_of_classes(self) -> bool {
        matches!(self, Self::Logistic | Self::Softmax)
    }

    /// Turns outputs into probabilities of the classes; of two classes the second.
    pub fn probabilities(self, z: &[f64], out: &mut Vec<f64>) {
        out.clear();
        match self {
            Self::Squares | Self::Huber(_) => {}
            Self::Logistic => {
                let e = (-z[0].abs()).exp();
                let (far, near) = (e / (1.0 + e), 1.0 / (1.0 + e));
                out.extend(if z[0] > 0.0 { [far, near] } else { [near, far] });
            }
            Self::Softmax => {
                let peak = z[largest(z)];
                out.extend(z.iter().map(|z| (z - peak).exp()));
                let sum: f64 = out.iter().sum();
                for p in out {
                    *p /= sum;
                }
            }
        }
    }
}

/// The position of the largest entry; the first one of several.
#[must_use]
#[inline(always)]
pub fn largest(z: &[f64]) -> usize {
    let mut largest = 0;
    for c in 1..z.len() {
        largest = if z[c] > z[largest] { c } else { largest };
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_derivative_is_the_slope(z in prop::collection::vec(-5.0..5.0_f64, 3), goal in 0..3_usize) {
            let h = 1e-6;
            for (loss, outputs, goal) in [
                (OutputLoss::Squares, 1, goal as f64),
                (OutputLoss::Huber(1.3), 1, goal as f64),
                (OutputLoss::Logistic, 1, (goal % 2) as f64),
                (OutputLoss::Softmax, 3, goal as f64),
            ] {
                let mut derivative = z[..outputs].to_vec();
                loss.differentiate(&mut derivative, goal);
                for c in 0..outputs {
                    let at = |shift: f64| {
                        let mut z = z[..outputs].to_vec();
                        z[c] += shift;
                        loss.differentiate(&mut z, goal)
                    };
                    let slope = (at(h) - at(-h)) / (2.0 * h);
                    prop_assert!((slope - derivative[c]).abs() < 1e-7, "{loss:?}: {slope} and {}", derivative[c]);
                }
            }
        }

        #[test]
        fn the_loss_is_minus_the_logarithm_of_the_probability(z in prop::collection::vec(-30.0..30.0_f64, 3), goal in 0..3_usize) {
            for (loss, outputs, goal) in [(OutputLoss::Logistic, 1, goal % 2), (OutputLoss::Softmax, 3, goal)] {
                let mut probabilities = Vec::new();
                loss.probabilities(&z[..outputs], &mut probabilities);
                let value = loss.differentiate(&mut z[..outputs].to_vec(), goal as f64);
                prop_assert!((value + probabilities[goal].ln()).abs() < 1e-9 * (1.0 + value));
                prop_assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn extreme_outputs_stay_finite() {
        for z in [-1e308, 1e308] {
            assert!(OutputLoss::Logistic.differentiate(&mut [z], 1.0).is_finite());
            assert!(OutputLoss::Softmax.differentiate(&mut [z / 2.0, 0.0, -z / 2.0], 1.0).is_finite());
        }
    }
}
