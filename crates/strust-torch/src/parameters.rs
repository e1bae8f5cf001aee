//! A model's parameters as views of one buffer.

use crate::{Component, Error, Flat};
use std::collections::HashSet;
use strust::vector::Vector;
use tch::{Device, TchError, Tensor, nn::VarStore, no_grad};

/// The parameters of a model as views of one buffer, and its other state, such as running statistics, as views of a
/// second buffer.
///
/// After [`ModelParameters::new`] the tensors of the `VarStore`, and so those of its layers, are views of
/// [`flat`](Self::flat): writing one writes the other. A parameter that does not require a gradient
/// (`VarStore::freeze`) counts as a buffer. The weight of a convolution in channels-last order keeps that order.
#[derive(Debug)]
pub struct ModelParameters<T> {
    flat: Flat<T>,
    slots: Vec<Slot>,
    buffers: Buffers<T>,
}

/// The place of a parameter in the buffer.
#[derive(Debug)]
pub struct Slot {
    /// The name in the `VarStore`. It is PyTorch's name if the layers are named as in PyTorch.
    pub name: String,
    /// The index of the first component.
    pub offset: i64,
    /// The shape.
    pub shape: Vec<i64>,
    layout: Layout,
    /// The parameter itself, a leaf of the autograd graph.
    variable: Tensor,
}

/// The order of a tensor's numbers in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// The last index varies fastest.
    Rows,
    /// The second of four indices varies fastest. Convolutions are fastest in this order.
    ChannelsLast,
}

impl Layout {
    fn of(tensor: &Tensor) -> Self {
        let last = tensor.dim() == 4 && !tensor.is_contiguous() && tensor.permute([0, 2, 3, 1]).is_contiguous();
        if last { Self::ChannelsLast } else { Self::Rows }
    }
    /// The view of a flat tensor with this shape.
    fn view(self, flat: &Tensor, shape: &[i64]) -> Tensor {
        match (self, shape) {
            (Self::ChannelsLast, &[n, c, h, w]) => flat.view([n, h, w, c]).permute([0, 3, 1, 2]),
            _ => flat.view_(shape),
        }
    }
    /// A tensor's numbers in this order.
    fn flatten(self, tensor: &Tensor) -> Tensor {
        match self {
            Self::ChannelsLast => tensor.permute([0, 2, 3, 1]).reshape([-1]),
            Self::Rows => tensor.reshape([-1]),
        }
    }
}

impl Slot {
    /// The number of components.
    #[must_use]
    pub fn len(&self) -> i64 {
        self.shape.iter().product()
    }
    /// Whether there is no component.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The view of this parameter in any vector of the model's shape.
    pub fn of<T: Component>(&self, vector: &Flat<T>) -> Tensor {
        self.layout.view(&vector.tensor().narrow(0, self.offset, self.len()), &self.shape)
    }
    fn share(&self) -> Self {
        Self { name: self.name.clone(), shape: self.shape.clone(), variable: self.variable.shallow_clone(), ..*self }
    }
}

/// The tensors that a forward pass may write. Those of the component type share one buffer, so that one copy saves them
/// all.
#[derive(Debug)]
struct Buffers<T> {
    flat: Flat<T>,
    named: Vec<(String, Tensor)>,
    /// Tensors of another type, such as a count.
    others: Vec<Tensor>,
}

/// The buffers at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot<T>(Flat<T>, Vec<Tensor>);

impl<T: Component> ModelParameters<T> {
    /// Moves the variables of `store` into one buffer, in the order of their creation.
    pub fn new(store: &VarStore) -> Result<Self, Error> {
        let mut named: Vec<(String, Tensor)> = store.variables().into_iter().collect();
        named.sort_by(|a, b| a.0.cmp(&b.0));
        let mut taken = HashSet::new();
        let mut slots = Vec::new();
        let mut offset = 0;
        for variable in store.trainable_variables() {
            let address = variable.data_ptr();
            if !variable.requires_grad() || variable.numel() == 0 || !taken.insert(address) {
                continue;
            }
            let name = named.iter().find(|(_, t)| t.data_ptr() == address).map_or_else(String::new, |(n, _)| n.clone());
            if variable.kind() != T::KIND {
                return Err(Error::Kind { name, expected: T::KIND, found: variable.kind() });
            }
            let slot = Slot { name, offset, shape: variable.size(), layout: Layout::of(&variable), variable };
            offset += slot.len();
            slots.push(slot);
        }
        if slots.is_empty() {
            return Err(Error::NoParameters);
        }
        let (same, others): (Vec<_>, Vec<_>) = named
            .into_iter()
            .filter(|(_, tensor)| tensor.numel() > 0 && !taken.contains(&tensor.data_ptr()))
            .partition(|(_, tensor)| tensor.kind() == T::KIND);
        let flat = gather(slots.iter_mut().map(|slot| &mut slot.variable), store.device());
        let buffers = Buffers {
            flat: gather(
                same.iter().map(|(_, tensor)| tensor.shallow_clone()).collect::<Vec<_>>().iter_mut(),
                store.device(),
            ),
            others: others.iter().map(|(_, tensor)| tensor.shallow_clone()).collect(),
            named: same.into_iter().chain(others).collect(),
        };
        Ok(Self { flat, slots, buffers })
    }

    /// Another handle to the same parameters.
    #[must_use]
    pub fn share(&self) -> Self {
        let Buffers { flat, named, others } = &self.buffers;
        Self {
            flat: self.flat.share(),
            slots: self.slots.iter().map(Slot::share).collect(),
            buffers: Buffers {
                flat: flat.share(),
                named: named.iter().map(|(name, tensor)| (name.clone(), tensor.shallow_clone())).collect(),
                others: others.iter().map(Tensor::shallow_clone).collect(),
            },
        }
    }

    /// The current parameters. Clone them for the start of a run.
    #[must_use]
    pub fn flat(&self) -> &Flat<T> {
        &self.flat
    }
    /// Writes the parameters.
    pub fn set(&mut self, x: &Flat<T>) {
        self.flat.copy_from(x);
    }
    pub(crate) fn flat_mut(&mut self) -> &mut Flat<T> {
        &mut self.flat
    }
    /// The place of each parameter, in order.
    #[must_use]
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }
    /// The slot with this name.
    pub fn slot(&self, name: &str) -> Result<&Slot, Error> {
        self.slots.iter().find(|slot| slot.name == name).ok_or_else(|| Error::UnknownParameter {
            name: name.into(),
            known: self.slots.iter().map(|slot| format!("`{}`", slot.name)).collect::<Vec<_>>().join(", "),
        })
    }
    /// The device of all parameters and buffers.
    #[must_use]
    pub fn device(&self) -> Device {
        self.flat.tensor().device()
    }
    /// All parameters and then all buffers, with their names.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        let slots = self.slots.iter().map(|slot| (slot.name.as_str(), &slot.variable));
        slots.chain(self.buffers.named.iter().map(|(name, tensor)| (name.as_str(), tensor)))
    }

    /// The buffers of the component type, as one vector.
    #[must_use]
    pub fn buffers(&self) -> &Flat<T> {
        &self.buffers.flat
    }
    pub(crate) fn other_buffers(&self) -> &[Tensor] {
        &self.buffers.others
    }
    /// Handles to the running means and variances of batch-norm, by libtorch's names.
    pub(crate) fn statistics(&self) -> Vec<Tensor> {
        let is_statistic = |name: &str| matches!(name.rsplit('.').next(), Some("running_mean" | "running_var"));
        let named = self.buffers.named.iter().filter(|(name, _)| is_statistic(name));
        named.map(|(_, tensor)| tensor.shallow_clone()).collect()
    }
    pub(crate) fn set_buffers(&mut self, flat: &Flat<T>, others: &[Vec<f64>]) {
        self.buffers.flat.copy_from(flat);
        for (buffer, numbers) in self.buffers.others.iter_mut().zip(others) {
            buffer.copy_(&Tensor::from_slice(numbers).reshape(buffer.size()));
        }
    }
    pub(crate) fn snapshot(&self) -> Snapshot<T> {
        Snapshot(self.buffers.flat.clone(), self.buffers.others.iter().map(Tensor::copy).collect())
    }
    /// Sets the buffers to those of this model, or of another one of the same architecture, from any device.
    pub(crate) fn restore(&mut self, Snapshot(flat, others): &Snapshot<T>) {
        self.buffers.flat.copy_from(flat);
        for (buffer, saved) in self.buffers.others.iter_mut().zip(others) {
            buffer.copy_(saved);
        }
    }
    /// Restores the buffers if `good` is false. `good` stays on the device; the host does not read it.
    pub(crate) fn restore_unless(&mut self, good: &Tensor, Snapshot(flat, others): &Snapshot<T>) {
        let own = self.buffers.flat.share();
        self.buffers.flat.set_choice(good, &own, flat);
        for (buffer, saved) in self.buffers.others.iter_mut().zip(others) {
            buffer.copy_(&buffer.where_self(good, saved));
        }
    }

    /// The gradient of a number with respect to the parameters, as one vector.
    pub(crate) fn gradient(&self, of: &Tensor, gradient: &mut Flat<T>) {
        self.write_flat(&self.derivatives(of, false), gradient);
    }
    /// Writes tensors of the shapes of the parameters as one vector.
    pub(crate) fn write_flat(&self, pieces: &[Tensor], out: &mut Flat<T>) {
        let _ = Tensor::cat_out(out.tensor(), &self.flattened(pieces), 0);
    }
    fn flattened(&self, pieces: &[Tensor]) -> Vec<Tensor> {
        self.slots.iter().zip(pieces).map(|(slot, piece)| slot.layout.flatten(piece)).collect()
    }
    /// The product of tensors of the shapes of the parameters with a vector, which can be differentiated.
    pub(crate) fn along(&self, pieces: &[Tensor], v: &Flat<T>) -> Tensor {
        Tensor::cat(&self.flattened(pieces), 0).dot(v.tensor())
    }
    /// The gradient with respect to each parameter. It is zero if the number does not depend on the parameter. With
    /// `again` it can be differentiated again.
    pub(crate) fn derivatives(&self, of: &Tensor, again: bool) -> Vec<Tensor> {
        assert!(of.requires_grad(), "the number to differentiate does not depend on the model's parameters");
        self.try_derivatives(of, again).unwrap_or_else(|error| panic!("{error}"))
    }
    /// The same, or an error if libtorch cannot differentiate an operation.
    pub(crate) fn try_derivatives(&self, of: &Tensor, again: bool) -> Result<Vec<Tensor>, TchError> {
        let variables: Vec<&Tensor> = self.slots.iter().map(|slot| &slot.variable).collect();
        differentiate(of, &variables, again, again)
    }
}

/// The derivatives of a number with respect to tensors. They are zero if the number does not depend on them. `keep`
/// keeps the graph for another call, and with `again` the derivatives can be differentiated.
pub(crate) fn differentiate(of: &Tensor, by: &[&Tensor], keep: bool, again: bool) -> Result<Vec<Tensor>, TchError> {
    if !of.requires_grad() {
        return Ok(by.iter().map(|tensor| tensor.zeros_like()).collect());
    }
    let pieces = Tensor::f_run_backward(&[of], by, keep, again)?;
    Ok(pieces.into_iter().zip(by).map(|(p, v)| if p.defined() { p } else { v.zeros_like() }).collect())
}

/// Copies tensors into one new buffer and makes them views of it.
fn gather<'a, T: Component>(tensors: impl Iterator<Item = &'a mut Tensor>, device: Device) -> Flat<T> {
    no_grad(|| {
        let tensors: Vec<&mut Tensor> = tensors.collect();
        let flat = Flat::zeros(tensors.iter().map(|tensor| tensor.numel() as i64).sum(), device);
        let mut offset = 0;
        for tensor in tensors {
            let (len, shape) = (tensor.numel() as i64, tensor.size());
            let mut view = Layout::of(tensor).view(&flat.tensor().narrow(0, offset, len), &shape);
            view.copy_(tensor);
            tensor.set_data(&view);
            offset += len;
        }
        flat
    })
}
