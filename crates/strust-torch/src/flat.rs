//! A one-dimensional tensor as a vector of the library.

use std::{cell::Cell, fmt, marker::PhantomData};
use strust::{
    Error,
    vector::{Elementwise, Real, Vector},
};
use tch::{Device, Kind, Tensor, no_grad};

/// A component type that libtorch has too: `f32` or `f64`.
pub trait Component: Real + fmt::Debug {
    /// libtorch's name of the type.
    const KIND: Kind;
}

impl Component for f32 {
    const KIND: Kind = Kind::Float;
}

impl Component for f64 {
    const KIND: Kind = Kind::Double;
}

/// All parameters of a model, or a gradient, or a step, as one buffer on one device.
///
/// ```
/// use strust::vector::Vector;
/// use strust_torch::Flat;
/// let x = Flat::<f32>::from_slice(&[3.0, 4.0]);
/// assert_eq!(x.norm(), 5.0);
/// ```
pub struct Flat<T> {
    tensor: Tensor,
    component: PhantomData<T>,
}

impl<T: Component> Flat<T> {
    /// A copy of a tensor of any shape and kind, on its device.
    #[must_use]
    pub fn from_tensor(tensor: &Tensor) -> Self {
        Self::adopt(tensor.detach().to_kind(T::KIND).reshape([-1]).copy())
    }
    /// A vector on the CPU.
    #[must_use]
    pub fn from_slice(values: &[f64]) -> Self {
        Self::from_tensor(&Tensor::from_slice(values))
    }
    /// A zero vector.
    #[must_use]
    pub fn zeros(len: i64, device: Device) -> Self {
        Self::adopt(Tensor::zeros([len], (T::KIND, device)))
    }
    /// The same numbers on another device.
    #[must_use]
    pub fn to_device(&self, device: Device) -> Self {
        Self::adopt(self.tensor.to_device(device).copy())
    }
    /// Wraps a contiguous tensor of one dimension and of this kind, without a copy.
    pub(crate) fn adopt(tensor: Tensor) -> Self {
        debug_assert!(tensor.dim() == 1 && tensor.kind() == T::KIND && tensor.is_contiguous());
        Self { tensor, component: PhantomData }
    }
    /// Another handle to the same memory.
    pub(crate) fn share(&self) -> Self {
        Self::adopt(self.tensor.shallow_clone())
    }
    /// The buffer.
    pub fn tensor(&self) -> &Tensor {
        &self.tensor
    }
    pub(crate) fn tensor_mut(&mut self) -> &mut Tensor {
        &mut self.tensor
    }
    /// The number of components.
    #[must_use]
    pub fn len(&self) -> i64 {
        self.tensor.numel() as i64
    }
    /// Whether there is no component.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The components, on the host.
    #[must_use]
    pub fn to_vec(&self) -> Vec<f64> {
        Vec::try_from(self.tensor.to_kind(Kind::Double)).expect("one dimension of double")
    }

    /// ⟨self, x⟩ in double precision, on the device.
    pub(crate) fn dot_tensor(&self, x: &Self) -> Tensor {
        self.check(x);
        let a = self.tensor.to_kind(Kind::Double);
        if self.tensor.data_ptr() == x.tensor.data_ptr() { a.dot(&a) } else { a.dot(&x.tensor.to_kind(Kind::Double)) }
    }
    /// self ← x + a·y with a on the device.
    pub(crate) fn set_sum_tensor(&mut self, x: &Self, a: &Tensor, y: &Self) {
        self.check(x);
        self.check(y);
        let _ = x.tensor.addcmul_out(&self.tensor, &a.to_kind(T::KIND), &y.tensor);
    }
    /// self ← x + share·(y − x).
    pub(crate) fn set_lerp(&mut self, x: &Self, share: f64, y: &Self) {
        self.check(x);
        self.check(y);
        let _ = x.tensor.lerp_scalar_out(&self.tensor, &y.tensor, share);
    }
    /// self ← x if `condition`, else y.
    pub(crate) fn set_choice(&mut self, condition: &Tensor, x: &Self, y: &Self) {
        self.check(x);
        self.check(y);
        let _ = x.tensor.where_self_out(&self.tensor, condition, &y.tensor);
    }
    /// A number on this vector's device.
    fn scalar_tensor(&self, a: f64) -> Tensor {
        Tensor::full([0_i64; 0], a, (T::KIND, self.tensor.device()))
    }
    fn check(&self, x: &Self) {
        // libtorch would broadcast a vector of one component.
        assert_eq!(self.len(), x.len(), "vectors of different shape");
    }
}

thread_local! {
    static LOADS_TO: Cell<Device> = const { Cell::new(Device::Cpu) };
}

/// While this value lives, vectors that its thread loads are placed on a device instead of the CPU. So a saved state
/// of any method resumes where its model is.
///
/// ```
/// use strust::vector::Vector;
/// use strust_torch::{Flat, LoadsTo};
/// let _loads = LoadsTo::device(tch::Device::Cpu);
/// let x = Flat::<f64>::read("f64", &[1], &2.0_f64.to_le_bytes())?;
/// assert_eq!(x.to_vec(), [2.0]);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug)]
pub struct LoadsTo {
    before: Device,
    /// It belongs to its thread.
    thread: PhantomData<*const ()>,
}

impl LoadsTo {
    /// Loads to this device.
    #[must_use]
    pub fn device(device: Device) -> Self {
        Self { before: LOADS_TO.replace(device), thread: PhantomData }
    }
}

impl Drop for LoadsTo {
    fn drop(&mut self) {
        LOADS_TO.set(self.before);
    }
}

impl<T: Component> Clone for Flat<T> {
    fn clone(&self) -> Self {
        Self::adopt(self.tensor.copy())
    }
}

impl<T: Component> PartialEq for Flat<T> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.tensor.equal(&other.tensor)
    }
}

impl<T> fmt::Debug for Flat<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Flat({} {:?} on {:?})", self.tensor.numel(), self.tensor.kind(), self.tensor.device())
    }
}

impl<T: Component> Vector for Flat<T> {
    const EPSILON: f64 = T::EPSILON;

    fn shape(&self) -> Vec<usize> {
        vec![self.tensor.numel()]
    }
    fn zeros_like(&self) -> Self {
        Self::adopt(self.tensor.zeros_like())
    }
    fn set_zero(&mut self) {
        let _ = self.tensor.zero_();
    }
    fn copy_from(&mut self, x: &Self) {
        self.check(x);
        self.tensor.copy_(&x.tensor);
    }
    fn set_sum(&mut self, x: &Self, a: f64, y: &Self) {
        self.set_sum_tensor(x, &x.scalar_tensor(a), y);
    }
    #[allow(clippy::float_cmp)] // a factor of exactly 1 needs no pass over memory
    fn scale_add(&mut self, b: f64, a: f64, x: &Self) {
        self.check(x);
        if b != 1.0 {
            let _ = self.tensor.g_mul_scalar_(b);
        }
        let _ = self.tensor.addcmul_(&x.scalar_tensor(a), &x.tensor);
    }
    fn scale(&mut self, b: f64) {
        let _ = self.tensor.g_mul_scalar_(b);
    }
    fn dot(&self, x: &Self) -> f64 {
        self.dot_tensor(x).double_value(&[])
    }
    /// Waits for the device.
    fn component(&self, i: usize) -> f64 {
        self.tensor.double_value(&[i as i64])
    }
    fn set_component(&mut self, i: usize, value: f64) {
        let _ = self.tensor.get(i as i64).fill_(value);
    }
    fn components(&self) -> Vec<f64> {
        self.to_vec()
    }
    fn set_components(&mut self, values: &[f64]) {
        assert_eq!(self.len(), values.len() as i64, "components of another shape");
        self.tensor.copy_(&Tensor::from_slice(values));
    }
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + self.tensor.numel() * T::KIND.elt_size_in_bytes(), 0);
        self.tensor.to_device(Device::Cpu).copy_data_u8(&mut out[start..], self.tensor.numel());
    }
    /// The vector is on the CPU, unless [`LoadsTo`] names another device.
    fn read(scalar: &str, shape: &[usize], bytes: &[u8]) -> Result<Self, Error> {
        if scalar != T::NAME {
            return Err(Error::Saved(format!("its components are {scalar}, but {} was expected", T::NAME)));
        }
        let size = T::KIND.elt_size_in_bytes();
        let count = bytes.len();
        if shape.iter().try_fold(size, |p, &s| p.checked_mul(s)) != Some(count) {
            return Err(Error::Saved(format!("{count} bytes of {scalar} do not fill the shape {shape:?}")));
        }
        if shape.len() != 1 {
            return Err(Error::Saved(format!("the shape {shape:?} does not fit the expected type")));
        }
        let tensor = no_grad(|| Tensor::from_data_size(bytes, &[(count / size) as i64], T::KIND));
        Ok(Self::adopt(tensor.to_device(LOADS_TO.get())))
    }
    fn scalar() -> &'static str {
        T::NAME
    }
}

impl<T: Component> Elementwise for Flat<T> {
    fn scale_add_squares(&mut self, b: f64, a: f64, x: &Self) {
        self.check(x);
        let _ = self.tensor.g_mul_scalar_(b);
        let _ = self.tensor.addcmul_(&x.scalar_tensor(a), &x.tensor.square());
    }
    fn add_ratio(&mut self, a: f64, x: &Self, s: f64, y: &Self, e: f64) {
        self.check(x);
        self.check(y);
        let divisor = (&y.tensor * s).sqrt_() + e;
        let _ = self.tensor.addcdiv_(&(&x.tensor * a), &divisor);
    }
    fn set_root(&mut self, b: f64, x: &Self, a: f64, y: &Self) {
        let squares = |x: &Self, a: f64| x.tensor.to_kind(Kind::Double).square() * a;
        self.tensor.copy_(&(squares(x, b) + squares(y, a)).sqrt_());
    }
    fn set_affine(&mut self, s: f64, x: &Self, e: f64) {
        self.tensor.copy_(&(&x.tensor * s + e));
    }
    fn set_quotient(&mut self, x: &Self, y: &Self) {
        self.tensor.copy_(&(&x.tensor / &y.tensor));
    }
    fn weighted_norm_squared(&self, w: &Self) -> f64 {
        let squares = self.tensor.to_kind(Kind::Double).square() * w.tensor.to_kind(Kind::Double);
        squares.sum(Kind::Double).double_value(&[])
    }
    fn norm_1(&self) -> f64 {
        self.tensor.to_kind(Kind::Double).abs().sum(Kind::Double).double_value(&[])
    }
}

strust_baselines::compile_methods!(Flat<f32>);
