//! Constraints on parameters by name, for vectors on the host.

use crate::{Error, Parameters, place::Component};
use strust::constraints::{Affine, Frame, Frames};

/// Constraints for [`StrSqp`](strust::methods::StrSqp), [`StrP`](strust::methods::StrP) and the other methods with
/// constraints. [`both`](strust::constraints::both) joins two of them, [`at_most`](strust::constraints::at_most) makes
/// inequalities. Any other condition is a [`constraint_on_points`](strust::constraints::constraint_on_points).
///
/// ```
/// use burn::{nn::LinearConfig, tensor::{Device, Distribution, Tensor}};
/// use strust::{constraints::Constraint, prelude::*};
/// use strust_burn::{Optimizer, Parameters};
/// let device = Device::flex().autodiff();
/// let mut layer = LinearConfig::new(4, 2).with_bias(false).init(&device);
/// let parameters = Parameters::of(&layer)?;
/// let mut orthonormal = parameters.orthonormal(&["weight"])?;
///
/// let input = Tensor::<2>::random([16, 4], Distribution::Default, &device);
/// let mut optimizer = Optimizer::<Vec<f32>>::new(StrSqp::new(StrSqpConfig::default(), orthonormal.clone())?);
/// for _ in 0..50 {
///     (layer, _) = optimizer.step(layer, |layer| layer.forward(input.clone()).square().mean())?;
/// }
/// let mut c = orthonormal.new_residual();
/// orthonormal.residual(&parameters.vector(&layer)?, &mut c);
/// assert!(c.norm() < 1e-5);
/// # Ok::<(), strust_burn::Error>(())
/// ```
impl Parameters {
    /// WᵀW = I or WWᵀ = I for each of these weights, along its shorter side. A weight of more than two dimensions, such as
    /// that of a convolution, is a matrix with one row for each index of the first dimension.
    pub fn orthonormal<T: Component>(&self, names: &[&str]) -> Result<Frames<T>, Error> {
        self.frames(names, |shape| shape.first().copied().unwrap_or(1))
    }
    /// ‖w‖ = 1 for each of these parameters, with all its components as one vector.
    pub fn unit_norm<T: Component>(&self, names: &[&str]) -> Result<Frames<T>, Error> {
        self.frames(names, |_| 1)
    }
    /// Σ aᵢwᵢ = value for the components of a parameter.
    pub fn linear<T: Component>(&self, name: &str, a: &[f64], value: f64) -> Result<Affine<Vec<T>>, Error> {
        let slot = self.slot(name)?;
        if a.len() != slot.len() {
            let (expected, found) = (slot.shape.clone(), vec![a.len()]);
            return Err(strust::Error::Shape { place: "coefficients of a linear condition", expected, found }.into());
        }
        let mut row = vec![T::default(); self.len()];
        row[slot.range()].iter_mut().zip(a).for_each(|(slot, &a)| *slot = T::from_f64(a));
        Ok(Affine::new(vec![row], vec![value])?)
    }
    /// Burn stores row by row what a frame reads column by column, so its matrix is the transpose.
    fn frames<T: Component>(&self, names: &[&str], rows: impl Fn(&[usize]) -> usize) -> Result<Frames<T>, Error> {
        let frame = |name: &&str| {
            let slot = self.slot(name)?;
            let columns = rows(&slot.shape);
            Ok(Frame { start: slot.start, rows: slot.len() / columns, columns })
        };
        let frames = names.iter().map(frame).collect::<Result<Vec<_>, Error>>()?;
        Ok(Frames::new(self.len(), &frames)?)
    }
}
