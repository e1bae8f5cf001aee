//! The parameters of a module as one vector.

use crate::{Error, Place};
use burn::{
    module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId},
    tensor::{Bool, DType, Device, Gradients, Shape, Tensor},
};
use serde::{Deserialize, Serialize};
use std::{collections::HashMap, ops::Range};

/// The place of a parameter in the vector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// The names of the fields down to the parameter, such as `hidden.weight`.
    pub name: String,
    /// The index of its first component.
    pub start: usize,
    /// Its shape. The last index varies fastest.
    pub shape: Vec<usize>,
}

impl Slot {
    /// The number of components.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }
    /// Whether there is no component.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Its components in the vector.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + self.len()
    }
}

/// The parameters of a module that require a gradient, in the order in which Burn visits them.
///
/// ```
/// use burn::{nn::LinearConfig, tensor::Device};
/// use strust_burn::Parameters;
/// let layer = LinearConfig::new(3, 2).init(&Device::flex().autodiff());
/// let parameters = Parameters::of(&layer)?;
/// assert_eq!(parameters.len(), 8);
/// assert_eq!(parameters.slot("bias")?.range(), 6..8);
/// let x: Vec<f32> = parameters.vector(&layer)?;
/// assert_eq!(x.len(), 8);
/// # Ok::<(), strust_burn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Parameters {
    slots: Vec<Slot>,
    /// The type of each, which only [`Parameters::check`] needs.
    types: Vec<DType>,
    /// Their names by Burn's ids.
    ids: HashMap<ParamId, String>,
    device: Device,
    /// Whether the module holds other tensors, such as running statistics.
    others: bool,
}

impl Parameters {
    /// The parameters of a module.
    pub fn of<M: Module>(module: &M) -> Result<Self, Error> {
        let mut list = Listing::default();
        module.visit(&mut list);
        if let Some((name, other)) = list.shared {
            return Err(Error::Shared { name, other });
        }
        if module.devices().len() > 1 {
            return Err(Error::Devices);
        }
        let device = list.device.ok_or(Error::NoParameters)?;
        Ok(Self { slots: list.slots, types: list.types, ids: list.ids, device, others: list.others })
    }
    /// The number of components.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.last().map_or(0, |slot| slot.range().end)
    }
    /// Whether there is no component.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The places of all parameters.
    #[must_use]
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }
    /// The place of a parameter.
    pub fn slot(&self, name: &str) -> Result<&Slot, Error> {
        self.slots.iter().find(|slot| slot.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.slots.iter().map(|slot| &*slot.name).collect();
            Error::UnknownParameter { name: name.into(), known: known.join(", ") }
        })
    }
    /// A vector with one number for each parameter's name, such as its own weight decay.
    pub fn filled<V: Place>(&self, number: impl Fn(&str) -> f64) -> V {
        let mut numbers = Vec::with_capacity(self.len());
        for slot in &self.slots {
            numbers.resize(slot.range().end, number(&slot.name));
        }
        V::gather(vec![Tensor::from_data(&*numbers, (&self.device.clone().inner(), V::DTYPE))])
    }
    /// The parameters of the module as a vector.
    pub fn vector<V: Place, M: Module>(&self, module: &M) -> Result<V, Error> {
        self.check(V::DTYPE)?;
        let mut pieces = Pieces { gradients: None, found: Vec::new() };
        module.visit(&mut pieces);
        Ok(V::gather(pieces.found.into_iter().flatten().collect()))
    }

    /// The module with the parameters x.
    pub fn module<V: Place, M: Module>(&self, module: M, x: &V) -> Result<M, Error> {
        self.check(V::DTYPE)?;
        check_same(&self.slots, Self::of(&module)?.slots())?;
        let (expected, found) = (vec![self.len()], x.shape());
        if expected != found {
            return Err(strust::Error::Shape { place: "module", expected, found }.into());
        }
        Ok(self.put(module, x, true))
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }
    /// Checks that these are the parameters of the steps before.
    pub(crate) fn check_same(&self, before: &Self) -> Result<(), Error> {
        check_same(&before.slots, &self.slots)?;
        let why = "names and shapes are the same, but Burn's ids, which `clone` and `load_file` keep, are not".into();
        if before.ids == self.ids { Ok(()) } else { Err(Error::OtherModule { why }) }
    }
    pub(crate) fn check(&self, expected: DType) -> Result<(), Error> {
        match self.types.iter().position(|found| *found != expected) {
            None => Ok(()),
            Some(i) => Err(Error::Kind {
                name: self.slots[i].name.clone(),
                expected: format!("{expected:?}"),
                found: format!("{:?}", self.types[i]),
            }),
        }
    }
    /// The module with the parameters x. They require a gradient if `tracked`.
    pub(crate) fn put<V: Place, M: Module>(&self, module: M, x: &V, tracked: bool) -> M {
        let flat = x.tensor(&self.device.clone().inner());
        module.map(&mut Put { flat, next: 0, slots: &self.slots, tracked })
    }
    /// The pieces of a gradient with respect to the parameters of `module`.
    pub(crate) fn gradient<M: Module>(&self, module: &M, gradients: &Gradients) -> Result<Vec<Tensor<1>>, Error> {
        let mut pieces = Pieces { gradients: Some(gradients), found: Vec::new() };
        module.visit(&mut pieces);
        let found = pieces.found.into_iter().zip(&self.slots);
        found.map(|(piece, slot)| piece.ok_or_else(|| Error::NoGradient { name: slot.name.clone() })).collect()
    }
    /// All other tensors of the module, such as the running statistics of batch-norm. Clones of a module share them.
    pub(crate) fn others<M: Module>(&self, module: &M) -> Others {
        let mut others = Others::default();
        if self.others {
            // Burn collects what each thread has seen. This writes it to its place.
            drop(module.valid());
            module.visit(&mut others);
        }
        others
    }
}

/// Checks that parameters have the names and shapes of those before.
pub fn check_same(before: &[Slot], now: &[Slot]) -> Result<(), Error> {
    let describe = |slot: &Slot| format!("`{}` of shape {:?}", slot.name, slot.shape);
    let differ = |why| Err(Error::OtherModule { why });
    if let Some((was, is)) = before.iter().zip(now).find(|(was, is)| was != is) {
        return differ(format!("{} is now {}", describe(was), describe(is)));
    }
    if before.len() != now.len() {
        return differ(format!("there were {}, and now there are {}", before.len(), now.len()));
    }
    Ok(())
}

/// Tensors that are not trained, by the id of their place.
#[derive(Debug, Clone, Default)]
pub struct Others(HashMap<ParamId, Tensor<1>>);

impl Others {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Writes them to the places from which they were taken, where no update may wait that `others` has not seen.
    pub fn restore<M: Module>(&self, module: M) -> M {
        if self.is_empty() { module } else { module.map(&mut Restore(self)) }
    }
    pub fn map(&self, change: impl Fn(&Tensor<1>) -> Tensor<1>) -> Self {
        Self(self.0.iter().map(|(id, tensor)| (*id, change(tensor))).collect())
    }
    /// The results of a function of both, at the places of the first.
    pub fn with(&self, other: &Self, join: impl Fn(Tensor<1>, Tensor<1>) -> Tensor<1>) -> Self {
        Self(self.0.iter().map(|(id, tensor)| (*id, join(tensor.clone(), other.0[id].clone()))).collect())
    }
    /// Those that have other numbers than before.
    pub fn differing(mut self, before: &Self) -> Self {
        self.0.retain(|id, tensor| !tensor.clone().equal(before.0[id].clone()).all().into_scalar::<bool>());
        self
    }
    pub fn all(&self, test: impl Fn(Tensor<1>) -> Tensor<1, Bool>) -> bool {
        self.0.values().all(|tensor| test(tensor.clone()).all().into_scalar())
    }
}

fn flatten<const D: usize>(tensor: Tensor<D>) -> Tensor<1> {
    let count = tensor.shape().num_elements();
    tensor.reshape([count])
}

fn shaped<const D: usize>(tensor: Tensor<1>, shape: &Shape) -> Tensor<D> {
    tensor.reshape::<D, _>(shape.clone())
}

#[derive(Default)]
struct Listing {
    path: Vec<String>,
    slots: Vec<Slot>,
    types: Vec<DType>,
    ids: HashMap<ParamId, String>,
    shared: Option<(String, String)>,
    device: Option<Device>,
    others: bool,
}

impl ModuleVisitor for Listing {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.into());
    }
    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if !param.is_require_grad() {
            self.others = true;
            return;
        }
        let name = self.path.join(".");
        if let Some(other) = self.ids.insert(param.id, name.clone()) {
            self.shared.get_or_insert((other, name.clone()));
        }
        let start = self.slots.last().map_or(0, |slot| slot.range().end);
        self.slots.push(Slot { name, start, shape: param.dims().to_vec() });
        self.types.push(param.dtype());
        self.device.get_or_insert_with(|| param.device());
    }
}

/// The trained parameters, or their gradients if there are any.
struct Pieces<'a> {
    gradients: Option<&'a Gradients>,
    found: Vec<Option<Tensor<1>>>,
}

impl ModuleVisitor for Pieces<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if param.is_require_grad() {
            self.found.push(match self.gradients {
                None => Some(flatten(param.val()).inner()),
                Some(gradients) => param.val().grad(gradients).map(flatten),
            });
        }
    }
}

impl ModuleVisitor for Others {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if !param.is_require_grad() {
            self.0.insert(param.id, flatten(param.val()));
        }
    }
}

struct Restore<'a>(&'a Others);

impl ModuleMapper for Restore<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        match self.0.0.get(&param.id) {
            Some(saved) => param.map(|tensor| shaped(saved.clone(), &tensor.shape())),
            None => param,
        }
    }
}

struct Put<'a> {
    flat: Tensor<1>,
    next: usize,
    slots: &'a [Slot],
    tracked: bool,
}

impl ModuleMapper for Put<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if !param.is_require_grad() {
            return param;
        }
        let slot = &self.slots[self.next];
        self.next += 1;
        if slot.is_empty() {
            return param;
        }
        let piece = self.flat.clone().narrow(0, slot.start, slot.len());
        param.map(|tensor| {
            // Layers such as dropout train if their input has autodiff. A tensor without a gradient makes no graph.
            let mut piece = shaped(piece, &tensor.shape()).autodiff();
            if let Some(checkpointing) = tensor.gradient_checkpointing_strategy() {
                piece = piece.with_gradient_checkpointing_strategy(checkpointing);
            }
            piece.set_require_grad(self.tracked)
        })
    }
}
