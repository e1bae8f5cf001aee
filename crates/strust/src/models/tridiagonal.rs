//! A small trust-region problem with a tridiagonal matrix: what the generalized Lanczos method solves at the boundary.

/// The matrix T of the model in the basis of the residuals of conjugate gradients, and the minimizer of its model
/// −γh₀ + ½hᵀTh on the sphere ‖h‖ = Δ.
#[derive(Debug, Clone, Default)]
pub(super) struct Tridiagonal {
    diagonal: Vec<f64>,
    /// Beside the diagonal; the last number belongs to the next row.
    beside: Vec<f64>,
    /// rᵀD⁻¹r of each residual.
    squares: Vec<f64>,
    pivots: Vec<f64>,
    /// h.
    solution: Vec<f64>,
    work: Vec<f64>,
}

/// Newton's method on the secular equation needs about five iterations; halving needs more.
const MOST: usize = 100;
/// ‖h‖ differs from Δ by at most this share.
const CLOSE: f64 = 1e-12;

impl Tridiagonal {
    pub fn clear(&mut self) {
        self.diagonal.clear();
        self.beside.clear();
        self.squares.clear();
    }

    /// Adds a row: rᵀD⁻¹r of the residual and qᵀHq of the direction q of an inner step.
    pub fn push(&mut self, square: f64, curvature: f64) {
        let inverse = curvature / square;
        let before = self.squares.last().map_or(0.0, |last| {
            let (share, at) = (square / last, self.squares.len() - 1);
            // Here `beside` still is the inverse of the last step size.
            let inverse = self.beside[at];
            self.beside[at] = -share.sqrt() * inverse;
            share * inverse
        });
        self.diagonal.push(inverse + before);
        self.beside.push(inverse);
        self.squares.push(square);
    }

    pub fn len(&self) -> usize {
        self.diagonal.len()
    }

    /// ‖g‖ in the norm of D⁻¹.
    pub fn gradient_norm(&self) -> f64 {
        self.squares.first().map_or(0.0, |square| square.sqrt())
    }

    /// The weights of the residuals in the solution.
    pub fn weights(&self) -> impl Iterator<Item = f64> {
        self.solution.iter().zip(&self.squares).map(|(h, square)| h / square.sqrt())
    }

    /// The norm of the gradient that the model keeps outside of the basis, if the next residual has this square.
    pub fn gradient_outside(&self, next: f64) -> f64 {
        match (self.beside.last(), self.squares.last(), self.solution.last()) {
            (Some(inverse), Some(square), Some(h)) => ((next / square).sqrt() * inverse * h).abs(),
            _ => 0.0,
        }
    }

    /// Solves (T + λI)h = γe₀ with ‖h‖ = `radius`, T + λI ⪰ 0 and γ² the first square. Returns the reduction γh₀ − ½hᵀTh; `None`
    /// if rounding errors do not permit it.
    pub fn minimize(&mut self, radius: f64) -> Option<f64> {
        let size = self.diagonal.iter().fold(0.0, |most: f64, t| most.max(t.abs()))
            + 2.0 * self.beside[..self.len() - 1].iter().fold(0.0, |most: f64, b| most.max(b.abs()));
        let (mut low, mut high) = (0.0, size + self.gradient_norm() / radius);
        let mut shift: f64 = 0.0;
        for _ in 0..MOST {
            if let Some((norm, slope)) = self.solve(shift) {
                if (norm - radius).abs() <= CLOSE * radius || (shift == 0.0 && norm <= radius) {
                    return Some(self.reduction()).filter(|reduction| reduction.is_finite());
                }
                if norm > radius {
                    low = shift;
                } else {
                    high = shift;
                }
                shift += norm * norm / slope * (norm - radius) / radius;
            } else {
                low = shift;
                shift = f64::NAN;
            }
            // Also where the shift is not a number.
            if !(shift > low && shift < high) {
                shift = if low > 0.0 { (low * high).sqrt() } else { 1e-3 * high };
            }
            if high - low <= f64::EPSILON * high {
                break;
            }
        }
        let (norm, _) = self.solve(high)?;
        (norm <= radius * (1.0 + 1e-6)).then(|| self.reduction()).filter(|reduction| reduction.is_finite())
    }

    /// h = γ(T + λI)⁻¹e₀, with ‖h‖ and hᵀ(T + λI)⁻¹h; `None` if T + λI is not positive.
    fn solve(&mut self, shift: f64) -> Option<(f64, f64)> {
        let n = self.len();
        self.pivots.clear();
        self.solution.clear();
        let mut right = self.gradient_norm();
        for i in 0..n {
            let mut pivot = self.diagonal[i] + shift;
            if i > 0 {
                let share = self.beside[i - 1] / self.pivots[i - 1];
                pivot -= share * self.beside[i - 1];
                right *= -share;
            }
            if pivot <= 0.0 || !pivot.is_finite() {
                return None;
            }
            self.pivots.push(pivot);
            self.solution.push(right);
        }
        for i in (0..n).rev() {
            let after = if i + 1 < n { self.beside[i] * self.solution[i + 1] } else { 0.0 };
            self.solution[i] = (self.solution[i] - after) / self.pivots[i];
        }
        // hᵀ(T + λI)⁻¹h = Σ yᵢ²/δᵢ with Ly = h
        self.work.clear();
        let mut slope = 0.0;
        for i in 0..n {
            let before = if i > 0 { self.beside[i - 1] / self.pivots[i - 1] * self.work[i - 1] } else { 0.0 };
            let y = self.solution[i] - before;
            self.work.push(y);
            slope += y * y / self.pivots[i];
        }
        let norm = self.solution.iter().map(|h| h * h).sum::<f64>().sqrt();
        Some((norm, slope))
    }

    fn reduction(&self) -> f64 {
        let (h, n) = (&self.solution, self.len());
        let square: f64 = (0..n)
            .map(|i| h[i] * (self.diagonal[i] * h[i] + if i + 1 < n { 2.0 * self.beside[i] * h[i + 1] } else { 0.0 }))
            .sum();
        self.gradient_norm() * h[0] - 0.5 * square
    }
}
