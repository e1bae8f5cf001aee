use super::{CgSpace, Exit, Local, Model, Step, Subproblem, Trial, radius_after, steihaug};
use crate::{
    Error,
    objective::{Evaluations, Objective, ProductKind},
    radius::{Judgment, Verdict},
    ranks::fingerprint,
    vector::{Elementwise, Vector},
};
use serde::{Deserialize, Serialize};

/// The general model of the paper, m(p) = gᵀp + ½pᵀHp, with the Hessian or the Gauss–Newton matrix H of the sample. Its
/// step comes from truncated conjugate gradients ([`steihaug`]).
///
/// Products come from [`Objective::curvature_product`]. An objective without them gets Hv ≈ (∇f(x + hv) − g)/h on the same
/// sample, one gradient for each product, with h‖v‖ = √ε(1 + ‖x‖).
#[derive(Debug, Clone)]
pub struct Newton<V> {
    kind: ProductKind,
    /// The most products of a step.
    products: u64,
    /// The largest tolerance of the conjugate gradients.
    forcing: f64,
    /// The most products at the boundary.
    at_boundary: u64,
    /// D of the norm of the region and of the preconditioner.
    metric: Option<V>,
    /// Whether the step after a rejection uses its products again.
    reuses: bool,
    space: Option<NewtonSpace<V>>,
}

#[derive(Debug, Clone)]
struct NewtonSpace<V> {
    cg: CgSpace<V>,
    /// The length of the last step in the metric.
    length: f64,
    /// Products of the last step that a step at the same point had already made and counted.
    counted: u64,
    /// The number and the fingerprint of the last step, if it was rejected: what `cg` keeps belongs to it.
    rejected: Option<(u64, u64)>,
    /// The point and the gradient of a difference, if products need one.
    difference: Option<(V, V)>,
}

impl<V> Newton<V> {
    /// With this matrix, so many products in a step, and conjugate gradients that end at the latest where the gradient of
    /// the model is `forcing`·‖g‖. `at_boundary` is that of [`Subproblem`].
    #[must_use]
    pub fn new(kind: ProductKind, products: u64, forcing: f64, at_boundary: u64) -> Self {
        Self { kind, products, forcing, at_boundary, metric: None, reuses: false, space: None }
    }
    /// After a rejection on the same sample, as with the full batch, the point, the gradient and the matrix are the same, and
    /// only the region is smaller. Then the conjugate gradients have the same directions, and no product of the rejected
    /// step is made again, unless `at_boundary` is 0, which keeps no vectors. The steps have the same bits.
    #[must_use]
    pub fn reusing_products(self) -> Self {
        Self { reuses: true, ..self }
    }
}

impl<V> Newton<V> {
    /// The metric of the region, to be set: 0 when it is first used.
    pub(crate) fn metric(&mut self, like: &V) -> &mut V
    where
        V: Vector,
    {
        self.metric.get_or_insert_with(|| like.zeros_like())
    }
    /// Sets the most products of a step.
    pub(crate) fn set_products(&mut self, products: u64) {
        self.products = products;
    }
}

/// What [`Newton`] keeps from step to step.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct NewtonMemory {
    /// The largest ‖g‖ so far. It makes the tolerance of the inner iteration independent of the scale of f.
    pub largest_gradient: f64,
    /// The last step, if it was rejected and its products can be used again.
    #[serde(default)]
    pub rejected: Option<RejectedStep>,
}

/// A rejected step of [`Newton`]. A run that resumes has lost the vectors, but not this: it makes the products again and
/// does not count them again, so its records have the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedStep {
    /// A hash of the terms of the sample, fᵢ(x) and ‖g‖². The step after a rejection is at the same x, so if this is the same
    /// too, it has the same model. The seed of the sample is new in every step, and does not matter to most objectives.
    pub fingerprint: u64,
    /// Products that need not be made again.
    pub products: u64,
}

fn fingerprint_of<V>(at: &Local<'_, V>) -> u64 {
    fingerprint(&(at.sample.indices(), at.evaluation.value, at.gradient_squared))
}

/// Sets `out` to Hv, exactly or by a difference of gradients, and counts it.
fn multiply<F: Objective + ?Sized>(
    f: &mut F,
    kind: ProductKind,
    at: &Local<'_, F::Point>,
    difference: &mut Option<(F::Point, F::Point)>,
    evaluations: &mut Evaluations,
    v: &F::Point,
    out: &mut F::Point,
) {
    if f.curvature_product(kind, at.x, at.sample, v, out) {
        evaluations.products += 1;
        return;
    }
    let (point, gradient) = difference.get_or_insert_with(|| (at.x.zeros_like(), at.x.zeros_like()));
    let h = F::Point::EPSILON.sqrt() * (1.0 + at.x.norm()) / v.norm();
    point.set_sum(at.x, h, v);
    f.value_and_gradient(point, at.sample, gradient);
    evaluations.gradients += 1;
    out.set_sum(gradient, -1.0, at.gradient);
    out.scale(1.0 / h);
}

impl<F: Objective<Point: Elementwise> + ?Sized> Model<F> for Newton<F::Point> {
    type Memory = NewtonMemory;

    fn init(&mut self, _: &mut F, _: &F::Point) -> Result<NewtonMemory, Error> {
        self.space = None;
        Ok(NewtonMemory::default())
    }

    fn propose<'a>(
        &'a mut self,
        f: &mut F,
        memory: &NewtonMemory,
        at: &Local<'a, F::Point>,
        radius: f64,
    ) -> Result<Step<'a, F::Point>, Error> {
        let &mut Self { kind, products: most, forcing, at_boundary, ref metric, ref mut space, .. } = self;
        let NewtonSpace { cg, length, counted, rejected, difference } = space.get_or_insert_with(|| NewtonSpace {
            cg: CgSpace::new(at.x),
            length: 0.0,
            counted: 0,
            rejected: None,
            difference: None,
        });
        let same = memory.rejected.filter(|rejected| rejected.fingerprint == fingerprint_of(at));
        *counted = same.map_or(0, |rejected| rejected.products);
        let mut made = 0;
        if same.is_some_and(|same| rejected.take() == Some((at.k.wrapping_sub(1), same.fingerprint))) {
            cg.repeat();
            made = cg.kept();
        }
        let norm = at.gradient_squared.sqrt();
        let largest = memory.largest_gradient.max(norm);
        // Superlinear where gradients vanish, and not exact where it does not pay.
        let tolerance = forcing.min((norm / largest).sqrt());
        let mut evaluations = Evaluations::default();
        let problem =
            Subproblem { gradient: at.gradient, radius, metric: metric.as_ref(), tolerance, most, at_boundary };
        let step = steihaug(&problem, cg, |v, out| {
            let mut new = Evaluations::default();
            multiply(f, kind, at, difference, &mut new, v, out);
            if made >= *counted {
                evaluations += new;
            }
            made += 1;
            Ok::<(), Error>(())
        })?;
        if step.length == 0.0 && step.exit.exit() != Exit::Stationary {
            // The first product is not finite.
            return Err(Error::NonFiniteCurvature { step: at.k, curvature: f64::NAN });
        }
        *length = step.length;
        let (predicted, exit) = (step.predicted, step.exit.exit());
        let length = if metric.is_some() { cg.solution.norm() } else { step.length };
        Ok(Step { direction: &cg.solution, size: 1.0, length, predicted, exit, evaluations })
    }

    fn learn(&mut self, memory: &mut NewtonMemory, trial: &Trial<'_, F::Point>) {
        memory.largest_gradient = memory.largest_gradient.max(trial.at.gradient_squared.sqrt());
        memory.rejected = None;
        if let Some(space) = self.space.as_mut().filter(|_| self.reuses)
            && trial.judgment.verdict == Verdict::Rejected
        {
            let fingerprint = fingerprint_of(&trial.at);
            space.rejected = Some((trial.at.k, fingerprint));
            memory.rejected = Some(RejectedStep { fingerprint, products: space.counted.max(space.cg.kept()) });
        }
    }

    fn next_radius(&self, radius: f64, length: f64, exit: Exit, judgment: &Judgment) -> f64 {
        let length = self.space.as_ref().map_or(length, |space| space.length);
        radius_after(radius, length, exit, judgment)
    }
}
