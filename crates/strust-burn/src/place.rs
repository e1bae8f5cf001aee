//! Where the vectors of a method are: on the host or on the device of the module.

use burn::tensor::{DType, Device, Element, Tensor, TensorData, Transaction};
use strust::vector::{Elementwise, Real};

/// A vector type for the parameters of a module.
///
/// | type | where | for |
/// |---|---|---|
/// | `Vec<f32>`, the default, and `Vec<f64>` | on the host | a CPU; every method and every constraint |
/// | [`Flat<f32>`](crate::Flat), `Flat<f64>` | on the device of the module | a GPU |
pub trait Place: Sealed + Elementwise + Send + 'static {
    /// Burn's name of the component type.
    const DTYPE: DType;

    /// A vector of these pieces, one after the other.
    fn gather(pieces: Vec<Tensor<1>>) -> Self;
    /// self ← these pieces. Returns the number `loss`, which is read together with them.
    fn overwrite(&mut self, pieces: Vec<Tensor<1>>, loss: Tensor<1>) -> f64;
    /// The vector as a tensor on a device, without a graph.
    fn tensor(&self, device: &Device) -> Tensor<1>;
}

/// No other crate has another place.
pub trait Sealed {}
impl<T: Component> Sealed for Vec<T> {}

/// A component type that Burn has too.
pub trait Component: Real + Element + Send {
    /// Burn's name of the type.
    const KIND: DType;
}
impl Component for f32 {
    const KIND: DType = DType::F32;
}
impl Component for f64 {
    const KIND: DType = DType::F64;
}

impl<T: Component> Place for Vec<T> {
    const DTYPE: DType = T::KIND;

    fn gather(pieces: Vec<Tensor<1>>) -> Self {
        let mut gathered = Self::new();
        for piece in read(pieces) {
            gathered.extend_from_slice(numbers(&piece));
        }
        gathered
    }
    fn overwrite(&mut self, mut pieces: Vec<Tensor<1>>, loss: Tensor<1>) -> f64 {
        pieces.push(loss);
        let mut data = read(pieces);
        let value: T = numbers(&data.pop().expect("the loss is the last one"))[0];
        let mut start = 0;
        for piece in data {
            let piece = numbers(&piece);
            self[start..start + piece.len()].copy_from_slice(piece);
            start += piece.len();
        }
        value.into()
    }
    fn tensor(&self, device: &Device) -> Tensor<1> {
        Tensor::from_data(TensorData::new(self.clone(), [self.len()]), (device, T::KIND))
    }
}

/// All tensors, in one transfer where the device has one.
fn read(pieces: Vec<Tensor<1>>) -> Vec<TensorData> {
    pieces.into_iter().fold(Transaction::default(), Transaction::register).execute()
}

fn numbers<T: Component>(data: &TensorData) -> &[T] {
    data.as_slice().expect("the parameters, their gradient and the loss have the type of the vector")
}
