//! Problems and decorators that the tests share.

use rand_core::Rng;
use std::{cell::RefCell, rc::Rc};
use strust::{
    objective::{Evaluation, ObjectiveWrapper, ProductKind},
    prelude::*,
    sample::generator,
    vector::{Dense, Real},
};

/// Standard normal numbers from a seed, the same on every machine.
pub fn normals(seed: u64, count: usize) -> Vec<f64> {
    let mut rng = generator(seed, 77);
    let mut uniform = || (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    (0..count)
        .map(|_| {
            let (u, v) = (1.0 - uniform(), uniform());
            (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
        })
        .collect()
}

/// A vector of any type and shape filled with normal numbers.
pub fn normal<V: Dense>(seed: u64, shape: &[usize]) -> V {
    let mut values = normals(seed, shape.iter().product()).into_iter();
    let mut vector = V::with_shape(shape).expect("the shape fits the type");
    for j in 0..vector.parts() {
        vector.part_mut(j).iter_mut().zip(&mut values).for_each(|(slot, v)| *slot = V::Scalar::from_f64(v));
    }
    vector
}

/// ‖a − b‖.
pub fn distance<V: Vector>(a: &V, b: &V) -> f64 {
    let mut difference = a.clone();
    difference.add(-1.0, b);
    difference.norm()
}

/// The exact bytes.
pub fn bits<V: Vector>(x: &V) -> Vec<u8> {
    let mut out = Vec::new();
    x.write(&mut out);
    out
}

/// f(x) = mean of ½(⟨aᵢ, x⟩ − bᵢ)², computed in the component type. It does not allocate.
#[derive(Clone)]
pub struct LeastSquares<T> {
    pub rows: Vec<Vec<T>>,
    pub right: Vec<T>,
    pub magnitude: f64,
}

impl<T: Real> LeastSquares<T> {
    /// Rows of norm about 1 and a right-hand side that `answer` satisfies exactly, up to rounding.
    pub fn interpolating(seed: u64, n: usize, answer: &[f64]) -> Self {
        let d = answer.len();
        let rows: Vec<Vec<T>> = (0..n as u64)
            .map(|i| normals(seed * 1000 + i, d).iter().map(|v| T::from_f64(v / (d as f64).sqrt())).collect::<Vec<T>>())
            .collect();
        let right: Vec<T> =
            rows.iter().map(|row| T::from_f64(row.iter().zip(answer).map(|(&a, x)| a.into() * x).sum())).collect();
        let magnitude = answer.iter().map(|x| x * x).sum::<f64>().sqrt();
        Self { rows, right, magnitude }
    }
    fn residual(&self, i: usize, x: &[T]) -> T {
        let mut r = T::default();
        for (&a, &x) in self.rows[i].iter().zip(x) {
            r += a * x;
        }
        r - self.right[i]
    }
}

impl<T: Real> Objective for LeastSquares<T> {
    type Point = Vec<T>;
    fn terms(&self) -> usize {
        self.rows.len()
    }
    fn value(&mut self, x: &Vec<T>, sample: &Sample) -> Evaluation {
        let squares = sample.indices().iter().map(|&i| self.residual(i, x).into().powi(2));
        Evaluation::of_squares(0.5 * squares.sum::<f64>() / sample.len() as f64, T::EPSILON, self.magnitude)
    }
    fn value_and_gradient(&mut self, x: &Vec<T>, sample: &Sample, gradient: &mut Vec<T>) -> Evaluation {
        gradient.set_zero();
        for &i in sample.indices() {
            let r: f64 = self.residual(i, x).into();
            gradient.add(r / sample.len() as f64, &self.rows[i]);
        }
        self.value(x, sample)
    }
    fn curvature_product(&mut self, _: ProductKind, _: &Vec<T>, sample: &Sample, v: &Vec<T>, out: &mut Vec<T>) -> bool {
        out.set_zero();
        for &i in sample.indices() {
            out.add(self.rows[i].dot(v) / sample.len() as f64, &self.rows[i]);
        }
        true
    }
    fn check_point(&self, x: &Vec<T>) -> Result<(), Error> {
        let (expected, found) = (vec![self.rows[0].len()], vec![x.len()]);
        if expected != found {
            return Err(Error::Shape { place: "least squares", expected, found });
        }
        Ok(())
    }
}

/// f(x) = mean of (s/2)‖x − tᵢ‖² over a vector of any type. It allocates only in the first evaluation.
#[derive(Clone)]
pub struct Targets<V> {
    pub centers: Vec<V>,
    pub scale: f64,
    space: V,
}

impl<V: Dense> Targets<V> {
    pub fn new(centers: Vec<V>, scale: f64) -> Self {
        Self { space: centers[0].zeros_like(), centers, scale }
    }
    /// n targets around a random one, at distances of about `spread`.
    pub fn random(seed: u64, n: usize, shape: &[usize], spread: f64, scale: f64) -> Self {
        let center: V = normal(seed, shape);
        let near = |i: u64| {
            let mut t = center.clone();
            t.add(spread, &normal(seed * 1000 + i + 1, shape));
            t
        };
        Self::new((0..n as u64).map(near).collect(), scale)
    }
}

impl<V: Vector> Objective for Targets<V> {
    type Point = V;
    fn terms(&self) -> usize {
        self.centers.len()
    }
    fn value(&mut self, x: &V, sample: &Sample) -> Evaluation {
        let mut sum = 0.0;
        for &i in sample.indices() {
            self.space.set_sum(x, -1.0, &self.centers[i]);
            sum += self.space.norm_squared();
        }
        Evaluation::new(0.5 * self.scale * sum / sample.len() as f64, V::EPSILON)
    }
    fn value_and_gradient(&mut self, x: &V, sample: &Sample, gradient: &mut V) -> Evaluation {
        gradient.set_zero();
        for &i in sample.indices() {
            self.space.set_sum(x, -1.0, &self.centers[i]);
            gradient.add(self.scale / sample.len() as f64, &self.space);
        }
        self.value(x, sample)
    }
    fn curvature_product(&mut self, _: ProductKind, _: &V, _: &Sample, v: &V, out: &mut V) -> bool {
        out.set_zero();
        out.add(self.scale, v);
        true
    }
    fn check_point(&self, x: &V) -> Result<(), Error> {
        let (expected, found) = (self.space.shape(), x.shape());
        if expected != found {
            return Err(Error::Shape { place: "targets", expected, found });
        }
        Ok(())
    }
}

/// The samples that a [`Probe`] recorded, and the values that it returns instead of the true ones.
#[derive(Default)]
pub struct Log {
    pub samples: Vec<Sample>,
    /// Returned by every evaluation without a gradient, which is a trial.
    pub trial: Option<f64>,
    /// Returned by every evaluation with a gradient.
    pub value: Option<f64>,
    /// A factor of the gradient.
    pub gradient: Option<f64>,
    /// Evaluations so far.
    pub calls: u64,
    /// The evaluation that fails, and how.
    pub fuse: Option<(u64, Failure)>,
}

/// How an evaluation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// All of its numbers are NaN.
    Nan,
    /// It panics, as an exception of a Python function does.
    Panic,
}

impl Log {
    /// Counts an evaluation. Returns true if all of its numbers are NaN.
    pub fn fails(&mut self) -> bool {
        self.calls += 1;
        let failure = self.fuse.filter(|&(call, _)| call + 1 == self.calls).map(|(_, failure)| failure);
        if failure == Some(Failure::Panic) {
            // This calls no panic hook, so nothing is printed.
            std::panic::resume_unwind(Box::new("the fuse"));
        }
        failure.is_some()
    }
}

/// Records the samples of an objective and replaces its values as the log states.
pub struct Probe<F> {
    pub inner: F,
    pub log: Rc<RefCell<Log>>,
}

impl<F> Probe<F> {
    pub fn new(inner: F) -> Self {
        Self { inner, log: Rc::default() }
    }
}

impl<F: Objective> ObjectiveWrapper for Probe<F> {
    type Inner = F;
    fn wrapped(&self) -> &F {
        &self.inner
    }
    fn wrapped_mut(&mut self) -> &mut F {
        &mut self.inner
    }
    fn value(this: &mut Self, x: &F::Point, sample: &Sample) -> Evaluation {
        this.log.borrow_mut().samples.push(sample.clone());
        let fails = this.log.borrow_mut().fails();
        let truth = this.inner.value(x, sample);
        let value = this.log.borrow().trial.unwrap_or(truth.value);
        Evaluation { value: if fails { f64::NAN } else { value }, ..truth }
    }
    fn value_and_gradient(this: &mut Self, x: &F::Point, sample: &Sample, gradient: &mut F::Point) -> Evaluation {
        this.log.borrow_mut().samples.push(sample.clone());
        let fails = this.log.borrow_mut().fails();
        let truth = this.inner.value_and_gradient(x, sample, gradient);
        if let Some(factor) = this.log.borrow().gradient.or(fails.then_some(f64::NAN)) {
            let copy = gradient.clone();
            gradient.scale_add(0.0, factor, &copy);
        }
        let value = this.log.borrow().value.unwrap_or(truth.value);
        Evaluation { value: if fails { f64::NAN } else { value }, ..truth }
    }
    fn curvature_product(
        this: &mut Self,
        kind: ProductKind,
        x: &F::Point,
        sample: &Sample,
        v: &F::Point,
        out: &mut F::Point,
    ) -> bool {
        this.log.borrow_mut().samples.push(sample.clone());
        let fails = this.log.borrow_mut().fails();
        let made = this.inner.curvature_product(kind, x, sample, v, out);
        if fails {
            out.scale(f64::NAN);
        }
        made
    }
}
