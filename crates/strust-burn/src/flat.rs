//! A one-dimensional tensor as a vector of the library.

use crate::place::{Component, Place, Sealed};
use burn::tensor::{DType, Device, Tensor};
use std::{cell::RefCell, fmt, marker::PhantomData, panic};
use strust::{
    Error,
    vector::{Elementwise, Vector},
};

/// All parameters of a module, or a gradient, or a step, as one tensor on the module's device.
///
/// Each product waits for the device: a step of [`Auto`](strust::methods::Auto) reads eleven numbers. Products are computed
/// in double precision, as they are on the host, if the device has it.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use strust::vector::Vector;
/// use strust_burn::Flat;
/// let x = Flat::<f32>::new(Tensor::from_floats([3.0, 4.0], &Device::flex()));
/// assert_eq!(x.norm(), 5.0);
/// ```
#[derive(Clone)]
pub struct Flat<T> {
    tensor: Tensor<1>,
    component: PhantomData<T>,
}

impl<T: Component> Flat<T> {
    /// A tensor as a vector, without its graph and in this component type.
    #[must_use]
    pub fn new(tensor: Tensor<1>) -> Self {
        let tensor = tensor.inner();
        let tensor = if tensor.dtype() == T::KIND { tensor } else { tensor.cast(T::KIND) };
        Self { tensor, component: PhantomData }
    }
    /// The components, on the host.
    #[must_use]
    pub fn to_vec(&self) -> Vec<T> {
        self.tensor.to_data().try_into_vec().expect("the tensor has this component type")
    }
    /// In double precision if the device has it.
    fn wide(&self) -> Tensor<1> {
        let wide = T::KIND != DType::F64 && self.tensor.device().supports_dtype(DType::F64);
        if wide { self.tensor.clone().cast(DType::F64) } else { self.tensor.clone() }
    }
    fn check(&self, x: &Self) {
        // Burn would broadcast a vector of one component.
        assert_eq!(self.tensor.dims(), x.tensor.dims(), "vectors of different shape");
    }
}

thread_local! {
    static LOADS_TO: RefCell<Option<Device>> = const { RefCell::new(None) };
}

/// Reads vectors onto a device.
pub fn loading_to<R>(device: &Device, read: impl FnOnce() -> R) -> R {
    LOADS_TO.replace(Some(device.clone().inner()));
    let result = panic::catch_unwind(panic::AssertUnwindSafe(read));
    LOADS_TO.replace(None);
    result.unwrap_or_else(|thrown| panic::resume_unwind(thrown))
}

impl<T> fmt::Debug for Flat<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Flat({} on {:?})", self.tensor.dims()[0], self.tensor.device())
    }
}

impl<T: Component> Vector for Flat<T> {
    const EPSILON: f64 = <T as strust::vector::Real>::EPSILON;

    fn shape(&self) -> Vec<usize> {
        self.tensor.dims().to_vec()
    }
    fn zeros_like(&self) -> Self {
        Self::new(self.tensor.zeros_like())
    }
    fn set_zero(&mut self) {
        self.tensor = self.tensor.zeros_like();
    }
    fn copy_from(&mut self, x: &Self) {
        self.check(x);
        self.tensor = x.tensor.clone();
    }
    fn set_sum(&mut self, x: &Self, a: f64, y: &Self) {
        x.check(y);
        self.tensor = x.tensor.clone() + y.tensor.clone() * a;
    }
    #[allow(clippy::float_cmp)] // a factor of exactly 1 needs no pass over memory
    fn scale_add(&mut self, b: f64, a: f64, x: &Self) {
        self.check(x);
        self.tensor.inplace(|own| if b == 1.0 { own } else { own * b } + x.tensor.clone() * a);
    }
    fn scale(&mut self, b: f64) {
        self.tensor.inplace(|own| own * b);
    }
    fn dot(&self, x: &Self) -> f64 {
        self.check(x);
        (self.wide() * x.wide()).sum().into_scalar()
    }
    /// Waits for the device.
    fn component(&self, i: usize) -> f64 {
        self.tensor.clone().narrow(0, i, 1).into_scalar()
    }
    fn set_component(&mut self, i: usize, value: f64) {
        #[allow(clippy::single_range_in_vec_init)] // a range of one dimension
        self.tensor.inplace(|own| own.slice_fill([i..i + 1], value));
    }
    fn components(&self) -> Vec<f64> {
        self.to_vec().into_iter().map(Into::into).collect()
    }
    fn set_components(&mut self, values: &[f64]) {
        assert_eq!(self.dimension(), values.len(), "components of another shape");
        let numbers: Vec<T> = values.iter().map(|&value| T::from_f64(value)).collect();
        self.tensor = numbers.tensor(&self.tensor.device());
    }
    fn write(&self, out: &mut Vec<u8>) {
        Vector::write(&self.to_vec(), out);
    }
    /// On the module's device while an [`Optimizer`](crate::Optimizer) resumes, else on the default device.
    fn read(scalar: &str, shape: &[usize], bytes: &[u8]) -> Result<Self, Error> {
        let numbers: Vec<T> = Vector::read(scalar, shape, bytes)?;
        Ok(Self::new(LOADS_TO.with_borrow(|device| numbers.tensor(device.as_ref().unwrap_or(&Device::default())))))
    }
    fn scalar() -> &'static str {
        T::NAME
    }
}

impl<T: Component> Elementwise for Flat<T> {
    fn set_root(&mut self, b: f64, x: &Self, a: f64, y: &Self) {
        x.check(y);
        self.tensor = (x.wide().square() * b + y.wide().square() * a).sqrt().cast(T::KIND);
    }
    fn set_affine(&mut self, s: f64, x: &Self, e: f64) {
        self.tensor = x.tensor.clone() * s + e;
    }
    fn set_quotient(&mut self, x: &Self, y: &Self) {
        x.check(y);
        self.tensor = x.tensor.clone() / y.tensor.clone();
    }
    fn weighted_norm_squared(&self, w: &Self) -> f64 {
        self.check(w);
        (self.wide().square() * w.wide()).sum().into_scalar()
    }
    fn norm_1(&self) -> f64 {
        self.wide().abs().sum().into_scalar()
    }
}

impl<T: Component> Sealed for Flat<T> {}

impl<T: Component> Place for Flat<T> {
    const DTYPE: DType = T::KIND;

    fn gather(pieces: Vec<Tensor<1>>) -> Self {
        Self::new(Tensor::cat(pieces, 0))
    }
    fn overwrite(&mut self, pieces: Vec<Tensor<1>>, loss: Tensor<1>) -> f64 {
        *self = Self::gather(pieces);
        loss.into_scalar()
    }
    fn tensor(&self, device: &Device) -> Tensor<1> {
        self.tensor.clone().to_device(device)
    }
}
