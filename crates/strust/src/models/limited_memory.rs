//! Quasi-Newton matrices from the last steps and the changes of the gradient along them.

mod basis;
mod update;

pub use update::{Bfgs, MatrixChange, PairProducts, Sr1, Update};

use super::{Exit, Local, Model, Step, Trial, dense_region::DenseRegion, radius_after};
use crate::{
    Error,
    objective::{Evaluations, Objective},
    radius::{Judgment, Verdict},
    saved::{Load, Save, Saved},
    vector::Vector,
};
use basis::Basis;
use std::marker::PhantomData;

/// A change of the gradient below this many rounding errors is noise.
const ROUNDING: f64 = 100.0;

/// A step and the change of the gradient along it.
#[derive(Debug, Clone, PartialEq)]
pub struct CurvaturePair<V> {
    /// s.
    pub(crate) step: V,
    /// y.
    pub(crate) change: V,
}
crate::saved!([V: Vector] CurvaturePair<V> { step: vector, change: vector });

/// What [`LimitedMemory`] keeps from step to step.
#[derive(Debug, Clone, PartialEq)]
pub struct CurvatureMemory<V> {
    /// (s, y), oldest first.
    pub(crate) pairs: Vec<CurvaturePair<V>>,
    /// The products of s₁, y₁, s₂, y₂, … with each other.
    pub(crate) products: Vec<f64>,
    /// The last trial, until the next step begins.
    pub(crate) last: Option<LastPoint<V>>,
    /// Trials since the last pair that could have been one.
    pub(crate) skipped: u64,
}
crate::saved!([V: Vector] CurvatureMemory<V> { pairs, products, last, skipped });

impl<V> CurvatureMemory<V> {
    /// The pairs: a step and the change of the gradient along it, the oldest first.
    pub fn pairs(&self) -> impl ExactSizeIterator<Item = (&V, &V)> {
        self.pairs.iter().map(|pair| (&pair.step, &pair.change))
    }
    /// The last point and the gradient there, from which the next pair comes.
    #[must_use]
    pub fn last(&self) -> Option<(&V, &V)> {
        self.last.as_ref().map(|last| (&last.point, &last.gradient))
    }
}

/// The other point of the last trial: x before an accepted step, or the trial of a rejected one.
#[derive(Debug, Clone, PartialEq)]
pub struct LastPoint<V> {
    /// The point.
    pub(crate) point: V,
    /// The gradient there, on the sample of the step, if the step was accepted.
    pub(crate) gradient: V,
    /// What the point is.
    pub(crate) kind: LastKind,
}
crate::saved!([V: Vector] LastPoint<V> { point: vector, gradient: vector, kind });

/// What a [`LastPoint`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastKind {
    /// Already used, or of no use.
    Used,
    /// x before an accepted step, on a sample with this [function](crate::sample::Sample::function).
    Accepted(u64),
    /// A rejected trial, on a sample with this function.
    Rejected(u64),
}

impl Save for LastKind {
    fn save(&self) -> Saved {
        match self {
            Self::Used => Saved::Text("used".into()),
            Self::Accepted(function) => Saved::case("accepted", function.save()),
            Self::Rejected(function) => Saved::case("rejected", function.save()),
        }
    }
}

impl Load for LastKind {
    fn load(saved: &Saved) -> Result<Self, Error> {
        // Version 0.1.0 saved a value of f in this place. It says nothing about the sample, so the next pair costs a gradient.
        let function = |saved: &Saved| if let Saved::Number(_) = saved { Ok(0) } else { u64::load(saved) };
        match saved.as_case()? {
            ("used", _) => Ok(Self::Used),
            ("accepted", saved) => function(saved).map(Self::Accepted),
            ("rejected", saved) => function(saved).map(Self::Rejected),
            (other, _) => Err(Error::Saved(format!("there is no case `{other}`"))),
        }
    }
}

/// The model m(p) = gᵀp + ½pᵀBp with B = γI + Q(B̂ − γI)Qᵀ. The columns of Q are an orthonormal basis of the kept steps s
/// and changes y of the gradient and of g. B̂ is small: [`Update`] changes γI so that Bs = y, from the oldest pair to the
/// newest. So B is the limited-memory matrix in its compact form, and the minimizer of m inside the region lies in the
/// span of Q. There it is found exactly, through the eigenvalues of B̂.
///
/// Q is not stored: its products follow from those of the pairs. A step costs about as much as 6 products of two vectors
/// for each pair.
///
/// Both gradients of a pair use one function. If two steps have the same
/// [function](crate::sample::Sample::function), as with the full batch, the pair of an accepted step is free: the next step
/// evaluates the gradient at the new point anyway. Else the gradient at the other point is evaluated on the sample of the
/// next step, once in `every` trials. A pair is refused if its y is not larger than rounding errors.
///
/// Rejected trials make pairs too: they show where the matrix is wrong. Without them, the problems of Moré, Garbow and
/// Hillstrom took 1.2 times the gradients in all with BFGS and 1.4 times with SR1.
#[derive(Debug, Clone)]
pub struct LimitedMemory<V, U> {
    /// The most pairs.
    pairs: usize,
    /// Trials from pair to pair, if a pair costs a gradient.
    every: u64,
    space: Option<Space<V>>,
    update: PhantomData<U>,
}

#[derive(Debug, Clone)]
struct Space<V> {
    direction: V,
    basis: Basis,
    region: DenseRegion,
    /// s, y and B̂s in the basis.
    step: Vec<f64>,
    change: Vec<f64>,
    product: Vec<f64>,
    arrival: Arrival<V>,
}

/// What the point of a step adds to the memory. [`Model::learn`] carries it over.
#[derive(Debug, Clone)]
struct Arrival<V> {
    /// Whether the last point of the memory is used up.
    used: bool,
    /// Trials since the last pair that could have been one.
    skipped: u64,
    /// Whether there is a new pair.
    is_new: bool,
    /// s and y of the new pair.
    pair: CurvaturePair<V>,
    /// The products of s, and then of y, with all columns.
    products: [Vec<f64>; 2],
}

/// The pairs of a memory, with the new one in the place of the oldest if there is no other.
#[derive(Debug)]
struct KeptPairs<'a, V> {
    memory: &'a CurvatureMemory<V>,
    new: Option<&'a Arrival<V>>,
}

// A derived copy would need a vector that can be copied.
impl<V> Clone for KeptPairs<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<V> Copy for KeptPairs<'_, V> {}

impl<'a, V: Vector> KeptPairs<'a, V> {
    /// Columns of the memory that are not in use any more.
    fn dropped(&self) -> usize {
        if self.new.is_some() && 2 * self.memory.pairs.len() == self.memory.most() { 2 } else { 0 }
    }
    /// Columns of the memory that are in use.
    fn old(&self) -> usize {
        2 * self.memory.pairs.len() - self.dropped()
    }
    /// The number of pairs.
    fn len(&self) -> usize {
        self.old() / 2 + usize::from(self.new.is_some())
    }
    /// Vector `i` of s₁, y₁, s₂, y₂, ….
    fn column(&self, i: usize) -> &'a V {
        let pair = match self.new {
            Some(new) if i >= self.old() => &new.pair,
            _ => &self.memory.pairs[i / 2 + self.dropped() / 2],
        };
        if i.is_multiple_of(2) { &pair.step } else { &pair.change }
    }
    /// The product of columns `i` and `j`.
    fn product(&self, i: usize, j: usize) -> f64 {
        let (low, high) = (i.min(j), i.max(j));
        match self.new {
            Some(new) if high >= self.old() => new.products[high - self.old()][low],
            _ => self.memory.products[(low + self.dropped()) * self.memory.most() + high + self.dropped()],
        }
    }
    /// γ; 1 without a pair.
    fn curvature<U: Update>(&self) -> f64 {
        let curvature = U::curvature((0..self.len()).map(|i| {
            let (s, y) = (2 * i, 2 * i + 1);
            PairProducts { ss: self.product(s, s), sy: self.product(s, y), yy: self.product(y, y) }
        }));
        if curvature.is_finite() && curvature > 0.0 { curvature } else { 1.0 }
    }
}

impl<V, U> LimitedMemory<V, U> {
    /// With at most so many pairs, one of them for every so many trials if it costs a gradient.
    #[must_use]
    pub fn new(pairs: usize, every: u64) -> Self {
        Self { pairs, every, space: None, update: PhantomData }
    }
}

impl<V: Vector> CurvatureMemory<V> {
    fn new(most: usize) -> Self {
        Self { pairs: Vec::new(), products: vec![0.0; 4 * most * most], last: None, skipped: 0 }
    }
    /// The number of columns that [`Self::products`] has space for.
    fn most(&self) -> usize {
        self.products.len().isqrt()
    }
    /// Adds a new pair. The oldest pair makes place for it.
    fn push(&mut self, new: &mut Arrival<V>) {
        let most = self.most();
        if 2 * self.pairs.len() == most {
            self.pairs.rotate_left(1);
            std::mem::swap(&mut self.pairs[most / 2 - 1], &mut new.pair);
            for i in 2..most {
                self.products.copy_within(i * most + 2..(i + 1) * most, (i - 2) * most);
            }
        } else {
            self.pairs.push(new.pair.clone());
        }
        let n = 2 * self.pairs.len();
        for (j, products) in (n - 2..n).zip(&new.products) {
            for (i, &product) in products[..n].iter().enumerate() {
                self.products[i * most + j] = product;
                self.products[j * most + i] = product;
            }
        }
    }
}

impl<V: Vector> Arrival<V> {
    fn new(columns: usize, like: &V) -> Self {
        let pair = CurvaturePair { step: like.zeros_like(), change: like.zeros_like() };
        Self { used: false, skipped: 0, is_new: false, pair, products: [vec![0.0; columns], vec![0.0; columns]] }
    }
    /// Makes the pair in `self.pair` a new one of this memory.
    fn add(&mut self, memory: &CurvatureMemory<V>) {
        self.is_new = true;
        let mut products = std::mem::take(&mut self.products);
        let pairs = KeptPairs { memory, new: Some(self) };
        for (j, products) in (pairs.old()..).zip(&mut products) {
            (0..2 * pairs.len()).for_each(|i| products[i] = pairs.column(i).dot(pairs.column(j)));
        }
        self.products = products;
    }
}

impl<V: Vector> Space<V> {
    /// For so many vectors in the memory, and g.
    fn new(columns: usize, like: &V) -> Self {
        let most = columns + 1;
        let list = || vec![0.0; most];
        Self {
            direction: like.zeros_like(),
            basis: Basis::new(most),
            region: DenseRegion::new(most),
            step: list(),
            change: list(),
            product: list(),
            arrival: Arrival::new(columns, like),
        }
    }
    /// B̂ in the basis of g and all pairs.
    fn build<U: Update>(&mut self, memory: &CurvatureMemory<V>, at: &Local<'_, V>) {
        let Self { basis, region, step: s, change: y, product: w, arrival, .. } = self;
        let pairs = KeptPairs { memory, new: arrival.is_new.then_some(arrival) };
        basis.build(pairs, at);
        let (n, most, gamma) = (basis.pivots.len(), basis.most, pairs.curvature::<U>());
        for i in 0..n {
            for j in 0..n {
                let place = region.place(i, j);
                region.matrix[place] = if i == j { gamma } else { 0.0 };
            }
        }
        for pair in 0..pairs.len() {
            let (of_step, of_change) = (2 * pair + 1, 2 * pair + 2);
            // Both divided by the length of the step, which changes nothing in the formulas.
            let ratio = basis.lengths[of_change] / basis.lengths[of_step];
            for i in 0..n {
                s[i] = basis.coordinates[of_step * most + i];
                y[i] = ratio * basis.coordinates[of_change * most + i];
            }
            for (i, w) in w[..n].iter_mut().enumerate() {
                *w = (0..n).map(|j| region.matrix[region.place(i, j)] * s[j]).sum();
            }
            let dot = |a: &[f64], b: &[f64]| (0..n).map(|i| a[i] * b[i]).sum::<f64>();
            let miss = (0..n).map(|i| (y[i] - w[i]).powi(2)).sum::<f64>().sqrt();
            let products = PairProducts { ss: dot(s, s), sy: dot(s, y), yy: dot(y, y) };
            let Some(change) = U::change(products, dot(s, w), miss) else { continue };
            for i in 0..n {
                for j in 0..n {
                    let place = region.place(i, j);
                    region.matrix[place] += match change {
                        MatrixChange::Two(a, b) => y[i] * y[j] / a - w[i] * w[j] / b,
                        MatrixChange::One(a) => (y[i] - w[i]) * (y[j] - w[j]) / a,
                    };
                }
            }
        }
    }
}

impl<F: Objective + ?Sized, U: Update> Model<F> for LimitedMemory<F::Point, U> {
    type Memory = CurvatureMemory<F::Point>;

    fn init(&mut self, _: &mut F, _: &F::Point) -> Result<CurvatureMemory<F::Point>, Error> {
        Ok(CurvatureMemory::new(self.pairs))
    }

    fn arrive(&mut self, f: &mut F, memory: &CurvatureMemory<F::Point>, at: &Local<'_, F::Point>) -> Evaluations {
        // A state that was saved by a method with another number of pairs keeps that number.
        let space = self.space.take().filter(|space| space.basis.most == memory.most() + 1);
        let arrival = &mut self.space.insert(space.unwrap_or_else(|| Space::new(memory.most(), at.x))).arrival;
        (arrival.used, arrival.is_new, arrival.skipped) = (false, false, memory.skipped);
        let mut evaluations = Evaluations::default();
        let Some(last) = &memory.last else { return evaluations };
        let (LastKind::Accepted(function) | LastKind::Rejected(function)) = last.kind else { return evaluations };
        arrival.used = true;
        let same = function == at.sample.function();
        arrival.skipped += 1;
        if !same && arrival.skipped < self.every {
            return evaluations;
        }
        arrival.skipped = 0;
        let CurvaturePair { step: s, change: y } = &mut arrival.pair;
        if same && matches!(last.kind, LastKind::Accepted(_)) {
            y.copy_from(&last.gradient);
        } else {
            f.value_and_gradient(&last.point, at.sample, y);
            evaluations.gradients += 1;
        }
        let noise = ROUNDING * F::Point::EPSILON * (y.norm() + at.gradient_squared.sqrt());
        // s is −1·(the other point) + x, and y likewise.
        s.copy_from(&last.point);
        s.scale_add(-1.0, 1.0, at.x);
        y.scale_add(-1.0, 1.0, at.gradient);
        let pair = PairProducts { ss: s.norm_squared(), sy: s.dot(y), yy: y.norm_squared() };
        if pair.ss > 0.0 && pair.yy.is_finite() && pair.yy > noise * noise && U::accepts(pair) {
            arrival.add(memory);
        }
        evaluations
    }

    fn propose<'a>(
        &'a mut self,
        _: &mut F,
        memory: &CurvatureMemory<F::Point>,
        at: &Local<'a, F::Point>,
        radius: f64,
    ) -> Result<Step<'a, F::Point>, Error> {
        let space = self.space.get_or_insert_with(|| Space::new(memory.most(), at.x));
        let gradient = at.gradient_squared.sqrt();
        let (mut length, mut predicted, mut exit) = (0.0, 0.0, Exit::Stationary);
        if gradient > 0.0 {
            space.build::<U>(memory, at);
            let Space { direction, basis, region, arrival, .. } = &mut *space;
            let step = region.minimize(basis.pivots.len(), gradient, radius);
            (length, predicted, exit) = (step.length, step.predicted, step.exit);
            let pairs = KeptPairs { memory, new: arrival.is_new.then_some(arrival) };
            basis.expand(pairs, at, &mut region.solution, direction);
        }
        let evaluations = Evaluations::default();
        Ok(Step { direction: &space.direction, size: 1.0, length, predicted, exit, evaluations })
    }

    fn learn(&mut self, memory: &mut CurvatureMemory<F::Point>, trial: &Trial<'_, F::Point>) {
        let Local { x, gradient, sample, .. } = trial.at;
        if let Some(Space { arrival, .. }) = &mut self.space {
            memory.skipped = arrival.skipped;
            if arrival.is_new {
                memory.push(arrival);
            }
            if let Some(last) = memory.last.as_mut().filter(|_| arrival.used) {
                last.kind = LastKind::Used;
            }
        }
        let new = || LastPoint { point: x.zeros_like(), gradient: x.zeros_like(), kind: LastKind::Used };
        let last = memory.last.get_or_insert_with(new);
        if trial.judgment.verdict == Verdict::Accepted {
            last.point.copy_from(x);
            last.gradient.copy_from(gradient);
            last.kind = LastKind::Accepted(sample.function());
        } else if trial.value.is_finite() {
            last.point.copy_from(trial.point);
            last.kind = LastKind::Rejected(sample.function());
        }
    }

    fn next_radius(&self, radius: f64, length: f64, exit: Exit, judgment: &Judgment) -> f64 {
        radius_after(radius, length, exit, judgment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{objective::Evaluation, sample::Sample};

    const D: usize = 6;

    /// KeptPairs of a quadratic function with this diagonal.
    fn memory(most: usize, pairs: usize, diagonal: [f64; D]) -> CurvatureMemory<Vec<f64>> {
        let mut memory = CurvatureMemory::new(most);
        for k in 0..pairs {
            let s: Vec<f64> = (0..D).map(|i| ((i * k + i + k) as f64).sin() + 0.3).collect();
            let y = (0..D).map(|i| diagonal[i] * s[i]).collect();
            push(&mut memory, CurvaturePair { step: s, change: y });
        }
        memory
    }

    fn push(memory: &mut CurvatureMemory<Vec<f64>>, pair: CurvaturePair<Vec<f64>>) {
        let mut new = Arrival { pair, ..Arrival::new(memory.most(), &vec![0.0; D]) };
        new.add(memory);
        memory.push(&mut new);
    }

    /// B by the dense formulas, from the same γ.
    fn dense<U: Update>(memory: &CurvatureMemory<Vec<f64>>) -> Vec<Vec<f64>> {
        let mut b: Vec<Vec<f64>> = (0..D).map(|i| (0..D).map(|j| f64::from(u8::from(i == j))).collect()).collect();
        for row in &mut b {
            row.scale(KeptPairs { memory, new: None }.curvature::<U>());
        }
        for CurvaturePair { step: s, change: y } in &memory.pairs {
            let w: Vec<f64> = b.iter().map(|row| row.dot(s)).collect();
            let mut miss = y.clone();
            miss.add(-1.0, &w);
            let pair = PairProducts { ss: s.norm_squared(), sy: s.dot(y), yy: y.norm_squared() };
            let Some(change) = U::change(pair, s.dot(&w), miss.norm()) else { continue };
            for (i, row) in b.iter_mut().enumerate() {
                match change {
                    MatrixChange::Two(a, b) => {
                        row.add(y[i] / a, y);
                        row.add(-w[i] / b, &w);
                    }
                    MatrixChange::One(a) => row.add(miss[i] / a, &miss),
                }
            }
        }
        b
    }

    /// The step inside a large region is the solution of Bp = −g, and the prediction is that of the model.
    fn the_step_is_that_of_the_dense_matrix<U: Update>(most: usize, pairs: usize) {
        let memory = memory(most, pairs, [3.0, 1.0, 0.5, 7.0, 2.0, 0.8]);
        assert_eq!(memory.pairs.len(), most.min(pairs));
        let (x, g) = (vec![0.0; D], vec![0.2, -1.0, 0.7, 0.4, 0.1, -0.3]);
        let sample = Sample::range(0..1);
        let at = Local {
            k: 0,
            x: &x,
            sample: &sample,
            evaluation: Evaluation { value: 0.0, rounding: 0.0 },
            gradient: &g,
            gradient_squared: g.norm_squared(),
        };
        let mut f = crate::objective::from_terms(1, |_, _: &Vec<f64>, _: &mut Vec<f64>| 0.0);
        let b = dense::<U>(&memory);
        for radius in [1e6, 0.05] {
            let mut model = LimitedMemory::<Vec<f64>, U>::new(most, 1);
            let step = model.propose(&mut f, &memory, &at, radius).unwrap();
            let bd: Vec<f64> = b.iter().map(|row| row.dot(step.direction)).collect();
            let predicted = g.dot(step.direction) - 0.5 * step.direction.dot(&bd);
            assert!((step.predicted - predicted).abs() < 1e-9 * predicted, "{} is not {predicted}", step.predicted);
            assert!((step.direction.norm() - step.length).abs() < 1e-9 * step.length);
            if step.exit == Exit::Interior {
                assert!(bd.iter().zip(&g).all(|(bd, g)| (bd - g).abs() < 1e-9), "{bd:?}");
            } else {
                assert!((step.length - radius).abs() < 1e-9 * radius && radius < 1.0);
            }
        }
    }

    #[test]
    fn the_matrices_are_those_of_the_formulas() {
        for (most, pairs) in [(1, 1), (3, 2), (3, 3), (3, 5), (10, 4)] {
            the_step_is_that_of_the_dense_matrix::<Bfgs>(most, pairs);
            the_step_is_that_of_the_dense_matrix::<Sr1>(most, pairs);
        }
    }

    #[test]
    fn pairs_that_repeat_each_other_do_no_harm() {
        let mut memory = memory(4, 2, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        for _ in 0..2 {
            let pair = memory.pairs[1].clone();
            push(&mut memory, pair);
        }
        let mut basis = Basis::new(9);
        let (x, g, sample) = (vec![0.0; D], vec![1.0; D], Sample::range(0..1));
        let evaluation = Evaluation { value: 0.0, rounding: 0.0 };
        let pairs = KeptPairs { memory: &memory, new: None };
        basis.build(pairs, &Local { k: 0, x: &x, sample: &sample, evaluation, gradient: &g, gradient_squared: 6.0 });
        assert_eq!(basis.pivots.len(), 5);
    }
}
