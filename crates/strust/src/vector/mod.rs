//! One trait for points, gradients and steps. All operations work in place.
//!
//! Norms and products are always `f64`, so sums stay accurate in an `f32` run. [`Vector`] is implemented for every
//! [`Dense`] type: `Vec`, faer columns and faer matrices, in `f32` and `f64`.
//!
//! [`saved::vector`](crate::saved::vector) stores a vector in any serde format. [`to_npy`] writes a file that NumPy reads.

mod dense;
mod npy;

pub use dense::{Dense, Real};
pub use npy::to_npy;

use crate::Error;

/// A point, a gradient or a step. Operations work in place and do not allocate, unless their documentation states it.
///
/// ```
/// use strust::vector::Vector;
/// let (x, g) = (vec![1.0, 2.0], vec![3.0, 4.0]);
/// let mut trial = x.zeros_like();
/// trial.set_sum(&x, -0.5, &g);
/// assert_eq!(trial, [-0.5, 0.0]);
/// assert_eq!((g.norm(), g.component(1)), (5.0, 4.0));
/// ```
pub trait Vector: Clone {
    /// Relative rounding error of a component.
    const EPSILON: f64;

    /// The shape, for messages and saved files.
    fn shape(&self) -> Vec<usize>;
    /// A zero vector of the same shape. Allocates.
    #[must_use]
    fn zeros_like(&self) -> Self;
    /// self ← 0.
    fn set_zero(&mut self);
    /// self ← x, bit for bit.
    fn copy_from(&mut self, x: &Self);
    /// self ← x + a·y.
    fn set_sum(&mut self, x: &Self, a: f64, y: &Self);
    /// self ← b·self + a·x.
    fn scale_add(&mut self, b: f64, a: f64, x: &Self);
    /// ⟨self, x⟩.
    fn dot(&self, x: &Self) -> f64;
    /// Component `i`, in the order in which [`Self::write`] writes them: column by column for a matrix.
    ///
    /// # Panics
    /// If `i` is not below [`Self::dimension`].
    fn component(&self, i: usize) -> f64;
    /// Component `i` ← `value`, rounded to the component type.
    ///
    /// # Panics
    /// If `i` is not below [`Self::dimension`].
    fn set_component(&mut self, i: usize, value: f64);
    /// Appends the components as little-endian bytes.
    fn write(&self, out: &mut Vec<u8>);
    /// Reads a vector of this shape from the bytes of [`Self::write`]. `scalar` names the component type. Allocates.
    fn read(scalar: &str, shape: &[usize], bytes: &[u8]) -> Result<Self, Error>;
    /// The name of the component type, checked by [`Self::read`].
    fn scalar() -> &'static str;

    /// The number of components.
    fn dimension(&self) -> usize {
        self.shape().iter().product()
    }
    /// All components, in the order of [`Self::component`]. Allocates.
    fn components(&self) -> Vec<f64> {
        (0..self.dimension()).map(|i| self.component(i)).collect()
    }
    /// Appends all components to `out`, in the order of [`Self::component`].
    fn append_components(&self, out: &mut Vec<f64>) {
        out.extend(self.components());
    }
    /// out ← the components from `start` on, each times `scale` in `f64`, as many as `out` has. Allocates, unless the vector is
    /// [`Dense`].
    ///
    /// # Panics
    /// If there are not so many.
    fn components_from(&self, start: usize, scale: f64, out: &mut [f64]) {
        let end = start + out.len();
        self.components()[start..end].iter().zip(out).for_each(|(&v, slot)| *slot = v * scale);
    }
    /// self ← these components.
    ///
    /// # Panics
    /// If there are not as many as [`Self::dimension`].
    fn set_components(&mut self, values: &[f64]) {
        assert_eq!(self.dimension(), values.len(), "components of another shape");
        values.iter().enumerate().for_each(|(i, &value)| self.set_component(i, value));
    }
    /// ‖self‖² = ⟨self, self⟩.
    fn norm_squared(&self) -> f64 {
        self.dot(self)
    }
    /// The Euclidean norm; for a matrix, the Frobenius norm. It is right also where its square under- or overflows; it then
    /// allocates.
    fn norm(&self) -> f64 {
        let squared = self.norm_squared();
        let factor = if squared < SMALLEST_SQUARE {
            SCALE
        } else if squared == f64::INFINITY {
            SCALE.recip()
        } else {
            return squared.sqrt();
        };
        // Squares of `f32` numbers are numbers of `f64`.
        if Self::EPSILON > f64::EPSILON {
            return squared.sqrt();
        }
        let mut scaled = self.clone();
        scaled.scale(factor);
        scaled.norm_squared().sqrt() / factor
    }
    /// self ← b·self.
    fn scale(&mut self, b: f64) {
        for i in 0..self.dimension() {
            self.set_component(i, b * self.component(i));
        }
    }
    /// self ← self + a·x.
    fn add(&mut self, a: f64, x: &Self) {
        self.scale_add(1.0, a, x);
    }
}

/// Below this, squares of components lose digits or vanish.
const SMALLEST_SQUARE: f64 = f64::MIN_POSITIVE / f64::EPSILON;
/// 2⁸⁰⁰: squares of numbers below 1e-146 times this, and of those above 1e146 divided by it, are ordinary numbers.
const SCALE: f64 = f64::from_bits((1023 + 800) << 52);

/// Operations on single components, for methods such as [`Auto`](crate::methods::Auto) and Adam. The default
/// implementations are slow; every [`Dense`] type has fast ones.
pub trait Elementwise: Vector {
    /// self ← b·self + a·x∘x, the second moment of Adam.
    fn scale_add_squares(&mut self, b: f64, a: f64, x: &Self) {
        each(self, |i, own| b * own + a * x.component(i).powi(2));
    }
    /// self ← self + a·x/(√(s·y) + e) for each component, the update of Adam.
    fn add_ratio(&mut self, a: f64, x: &Self, s: f64, y: &Self, e: f64) {
        each(self, |i, own| own + a * x.component(i) / ((s * y.component(i)).sqrt() + e));
    }
    /// ‖self‖₁, the sum of the absolute values.
    fn norm_1(&self) -> f64 {
        (0..self.dimension()).map(|i| self.component(i).abs()).sum()
    }
    /// self ← √(b·x∘x + a·y∘y) for each component, the root of a mean of squares. In `f32` no square overflows.
    fn set_root(&mut self, b: f64, x: &Self, a: f64, y: &Self) {
        each(self, |i, _| (b * x.component(i).powi(2) + a * y.component(i).powi(2)).sqrt());
    }
    /// self ← s·x + e for each component.
    fn set_affine(&mut self, s: f64, x: &Self, e: f64) {
        each(self, |i, _| s * x.component(i) + e);
    }
    /// self ← x/y for each component.
    fn set_quotient(&mut self, x: &Self, y: &Self) {
        each(self, |i, _| x.component(i) / y.component(i));
    }
    /// Σ wᵢ·selfᵢ².
    fn weighted_norm_squared(&self, w: &Self) -> f64 {
        (0..self.dimension()).map(|i| w.component(i) * self.component(i).powi(2)).sum()
    }
}

/// Replaces each component by a function of its index and its value.
fn each<V: Vector>(vector: &mut V, f: impl Fn(usize, f64) -> f64 + Copy) {
    for i in 0..vector.dimension() {
        vector.set_component(i, f(i, vector.component(i)));
    }
}
