//! STR with the curvature of the sample, on the device. The inner iteration has a fixed number of products; a mask makes
//! those after its end do nothing, so that a step is the same operations each time.

use crate::{
    BatchLoss, Component, DeviceMethod, Flat, TorchObjective,
    device_method::{number, sealed::DeviceStep, vector},
    device_records::{DeviceProgress, NEWTON_COLUMNS, newton},
    device_region::{DeviceRegion, DeviceTrial},
    objective::BatchSource,
};
use strust::{
    Error,
    config::{Checked, Config},
    methods::{State, StrNewtonConfig, StrNewtonState},
    models::NewtonMemory,
    objective::ProductKind,
    vector::Vector,
};
use tch::{Tensor, no_grad};

/// [`StrNewton`](strust::methods::StrNewton) on the device, at the model's own parameters. It makes the same steps, up to
/// rounding, as with `at_boundary = 0` and `retreats = 0`. But it always computes all `products` of the configuration: the device cannot
/// decide to stop. So choose few, such as 10.
///
/// If a value, a gradient or the first product is not finite, the point stays unchanged. The error is returned when the
/// records are read.
///
/// # Panics
/// A step panics if the model has no products ([`TorchObjective`]). The library's method then uses differences.
///
/// ```
/// use strust::{methods::StrNewtonConfig, prelude::*};
/// use strust_torch::{DeviceMethod, DeviceNewton, TorchObjective};
/// use tch::{Device, Kind, nn::{Init, VarStore}};
///
/// let mut store = VarStore::new(Device::Cpu);
/// store.set_kind(Kind::Double);
/// let x = store.root().var("x", &[2], Init::Const(3.0));
/// let mut f = TorchObjective::<f64, _>::new(&store, 1, |_: &Sample| x.cosh().sum(Kind::Double))?;
/// let config = StrNewtonConfig { products: 4, ..Default::default() };
/// let mut method = DeviceNewton::start(config, &f, 100)?;
/// for _ in 0..12 {
///     method.step(&mut f, &Sample::range(0..1))?;
/// }
/// assert!(method.records()?.last().unwrap().gradient_norm < 1e-9);
/// # Ok::<(), strust_torch::Error>(())
/// ```
#[derive(Debug)]
pub struct DeviceNewton<T> {
    config: Checked<StrNewtonConfig>,
    kind: ProductKind,
    region: DeviceRegion<T>,
    /// The largest ‖g‖ so far.
    largest: Tensor,
    /// The number of products of a step, for the records.
    products: Tensor,
    gradient: Flat<T>,
    space: CgVectors<T>,
    progress: DeviceProgress,
}

/// The vectors of the conjugate gradients, under the names of the library.
#[derive(Debug)]
struct CgVectors<T> {
    solution: Flat<T>,
    residual: Flat<T>,
    direction: Flat<T>,
    product: Flat<T>,
}

/// The numbers of the conjugate gradients, as tensors. See [`strust::models::steihaug`] for the formulas.
struct CgNumbers {
    /// Whether the iteration has not ended.
    active: Tensor,
    /// Whether it ended at the boundary.
    bounded: Tensor,
    /// ‖r‖², ‖d‖², dᵀq, ‖q‖².
    rr: Tensor,
    dd: Tensor,
    dq: Tensor,
    qq: Tensor,
    predicted: Tensor,
}

impl CgNumbers {
    fn new(squared_norm: &Tensor) -> Self {
        let zero = || squared_norm.zeros_like();
        let active = squared_norm.gt(0.0);
        Self {
            bounded: active.zeros_like(),
            active,
            rr: squared_norm.copy(),
            qq: squared_norm.copy(),
            dd: zero(),
            dq: zero(),
            predicted: zero(),
        }
    }

    /// One iteration, given the product Hq. It changes nothing if the iteration has ended.
    fn advance<T: Component>(&mut self, radius: &Tensor, goal: &Tensor, space: &mut CgVectors<T>) {
        let Self { rr, dd, dq, qq, .. } = &*self;
        let CgVectors { solution: d, residual: r, direction: q, product: hq } = space;
        let zero = rr.zeros_like();
        let curvature = q.dot_tensor(hq);
        let alive = self.active.logical_and(&curvature.isfinite());
        // 0 · NaN is NaN, so a product that does not count is removed.
        let _ = hq.tensor_mut().masked_fill_(&alive.logical_not(), 0.0);
        let a = rr / &curvature;
        let next_dd = dd + &a * (dq * 2.0 + &a * qq);
        let squared_radius = radius.square();
        let ends =
            curvature.le(0.0).logical_or(&next_dd.ge_tensor(&squared_radius)).logical_or(&a.isfinite().logical_not());
        // ‖d + tq‖ = Δ, without cancellation.
        let gap = (&squared_radius - dd).clamp_min(0.0);
        let root = (dq.square() + qq * &gap).sqrt();
        let t = (&gap / (dq + &root)).where_self(&dq.gt(0.0), &((&root - dq) / qq));
        let gain = (&t * (rr - &t * &curvature * 0.5)).where_self(&ends, &(&a * rr * 0.5));
        let size = t.where_self(&ends, &a).where_self(&alive, &zero);
        d.set_sum_tensor(&d.share(), &size, q);
        let goes = alive.logical_and(&ends.logical_not());
        r.set_sum_tensor(&r.share(), &(-&a).where_self(&goes, &zero), hq);
        let new = r.dot_tensor(r);
        let active = goes.logical_and(&new.le_tensor(goal).logical_not());
        let b = (&new / rr).where_self(&active, &zero);
        q.set_sum_tensor(r, &b, &q.share());
        *self = Self {
            predicted: &self.predicted + gain.where_self(&alive, &zero),
            bounded: self.bounded.logical_or(&alive.logical_and(&ends)),
            dq: &b * (dq + &a * qq),
            qq: &new + b.square() * qq,
            dd: next_dd,
            rr: new,
            active,
        };
    }
}

impl<T: Component> DeviceNewton<T> {
    /// Uses the Gauss–Newton matrix instead of the Hessian.
    #[must_use]
    pub fn gauss_newton(self) -> Self {
        Self { kind: ProductKind::GaussNewton, ..self }
    }
}

impl<T: Component> DeviceMethod<T> for DeviceNewton<T> {
    type Config = StrNewtonConfig;
    type State = StrNewtonState<Flat<T>>;

    fn at<L: BatchLoss>(
        config: StrNewtonConfig,
        f: &TorchObjective<T, L>,
        state: Option<&Self::State>,
        read_every: usize,
    ) -> Result<Self, Error> {
        let (device, k) = (f.parameters().device(), state.map_or(0, State::steps));
        let zero = || vector(f, None);
        let config = config.check()?;
        Ok(Self {
            kind: ProductKind::Hessian,
            region: DeviceRegion::new(config.region.clone().check()?, f, state.map(StrNewtonState::radius)),
            largest: number(state.map_or(0.0, |state| state.memory().largest_gradient()), device),
            products: number(config.products as f64, device),
            gradient: zero(),
            space: CgVectors { solution: zero(), residual: zero(), direction: zero(), product: zero() },
            progress: DeviceProgress::new(k, read_every, NEWTON_COLUMNS, device, newton),
            config,
        })
    }
    fn state<L: BatchLoss>(&mut self, f: &TorchObjective<T, L>) -> StrNewtonState<Flat<T>> {
        let memory = NewtonMemory::new(self.largest.double_value(&[]));
        StrNewtonState::from_parts(f.point(), self.region.radius.double_value(&[]), self.progress.k(), memory)
    }
}

impl<T: Component> DeviceStep<T> for DeviceNewton<T> {
    fn progress(&mut self) -> &mut DeviceProgress {
        &mut self.progress
    }
    fn advance<L: BatchLoss>(&mut self, f: &mut TorchObjective<T, L>, on: &impl BatchSource<L>) {
        let Self { config, kind, region, largest, products, gradient: g, space, progress } = self;

        // fᵢ(x), g = ∇fᵢ(x); d ≈ H⁻¹g by conjugate gradients
        let value = f.value_and_gradient_here(on, g);
        let squared_norm = g.dot_tensor(g);
        let norm = squared_norm.sqrt();
        let new_largest = largest.maximum(&norm);
        let goal = (&norm / &new_largest).sqrt().clamp_max(config.forcing).square() * &squared_norm;
        space.solution.set_zero();
        space.residual.copy_from(g);
        space.direction.copy_from(g);
        let mut inner = CgNumbers::new(&squared_norm);
        for _ in 0..config.products {
            let made = f.product_here(*kind, on, &space.direction, &mut space.product);
            assert!(
                made,
                "the model has no products of this kind: use StrNewton, which takes differences of gradients"
            );
            no_grad(|| inner.advance(&region.radius, &goal, space));
        }

        no_grad(|| {
            let d = &space.solution;
            let length = d.dot_tensor(d).sqrt();
            let step = DeviceTrial {
                value: &value,
                squared_norm: &squared_norm,
                size: &length.ones_like(),
                direction: d,
                length: &length,
                predicted: &inner.predicted,
                bounded: Some(&inner.bounded),
            };
            let finite = region.step(f, on, progress, &step, &[&*products]);
            let next = new_largest.where_self(&finite, largest);
            largest.copy_(&next);
        });
    }
}
