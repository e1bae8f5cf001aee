//! Vectors stored as contiguous slices, and the loops over them.

// Only inlined code is compiled with the widest instructions of the machine.
#![allow(clippy::inline_always)]

use super::{Elementwise, Vector};
use crate::Error;
use crate::products::Kernels;
use faer::{Col, Mat, traits::RealField};
use pulp::{Arch, NullaryFnOnce};

/// A component type: `f32` or `f64`.
pub trait Real: RealField + Kernels + Copy + Default + Into<f64> + 'static {
    /// Distance from 1 to the next number.
    const EPSILON: f64;
    /// The name in saved files.
    const NAME: &'static str;
    /// Rounds to this type.
    fn from_f64(value: f64) -> Self;
    /// The square root.
    #[must_use]
    fn root(self) -> Self;
    /// Appends the little-endian bytes.
    fn write(self, out: &mut Vec<u8>);
    /// Reads little-endian bytes; `None` unless the length fits.
    fn read(bytes: &[u8]) -> Option<Self>;
}

macro_rules! real {
    ($($t:ident),*) => {$(
        impl Real for $t {
            const EPSILON: f64 = $t::EPSILON as f64;
            const NAME: &'static str = stringify!($t);
            fn from_f64(value: f64) -> Self {
                value as $t
            }
            fn root(self) -> Self {
                self.sqrt()
            }
            fn write(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn read(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map($t::from_le_bytes)
            }
        }
    )*};
}
real!(f32, f64);

/// A vector stored as one or more contiguous slices. Every type that implements this trait is a [`Vector`].
pub trait Dense: Clone {
    /// The component type.
    type Scalar: Real;
    /// The number of slices.
    fn parts(&self) -> usize;
    /// Slice `j`.
    fn part(&self, j: usize) -> &[Self::Scalar];
    /// Slice `j`, mutable.
    fn part_mut(&mut self, j: usize) -> &mut [Self::Scalar];
    /// The shape.
    fn shape(&self) -> Vec<usize>;
    /// A zero vector of this shape, or `None` if the type has no such shape. Allocates.
    fn with_shape(shape: &[usize]) -> Option<Self>;
}

impl<T: Real> Dense for Vec<T> {
    type Scalar = T;
    fn parts(&self) -> usize {
        1
    }
    fn part(&self, _: usize) -> &[T] {
        self
    }
    fn part_mut(&mut self, _: usize) -> &mut [T] {
        self
    }
    fn shape(&self) -> Vec<usize> {
        vec![self.len()]
    }
    fn with_shape(shape: &[usize]) -> Option<Self> {
        matches!(shape, [_]).then(|| vec![T::default(); shape[0]])
    }
}

impl<T: Real> Dense for Col<T> {
    type Scalar = T;
    fn parts(&self) -> usize {
        1
    }
    fn part(&self, _: usize) -> &[T] {
        self.as_mat().col(0).try_as_col_major().expect("an owned column is contiguous").as_slice()
    }
    fn part_mut(&mut self, _: usize) -> &mut [T] {
        self.as_mat_mut().col_mut(0).try_as_col_major_mut().expect("an owned column is contiguous").as_slice_mut()
    }
    fn shape(&self) -> Vec<usize> {
        vec![self.nrows()]
    }
    fn with_shape(shape: &[usize]) -> Option<Self> {
        matches!(shape, [_]).then(|| Col::zeros(shape[0]))
    }
}

impl<T: Real> Dense for Mat<T> {
    type Scalar = T;
    fn parts(&self) -> usize {
        self.ncols()
    }
    fn part(&self, j: usize) -> &[T] {
        self.col_as_slice(j)
    }
    fn part_mut(&mut self, j: usize) -> &mut [T] {
        self.col_as_slice_mut(j)
    }
    fn shape(&self) -> Vec<usize> {
        vec![self.nrows(), self.ncols()]
    }
    fn with_shape(shape: &[usize]) -> Option<Self> {
        matches!(shape, [_, _]).then(|| Mat::zeros(shape[0], shape[1]))
    }
}

/// Applies `f` to matching slices. It is a struct because `dispatch` does not inline a plain closure.
struct Zip2<'a, D, F>(&'a mut D, &'a D, F);
struct Zip3<'a, D, F>(&'a mut D, &'a D, &'a D, F);
struct Dot<'a, D>(&'a D, &'a D);

fn zip2<D: Dense>(a: &mut D, b: &D, f: impl FnMut(&mut [D::Scalar], &[D::Scalar])) {
    Arch::new().dispatch(Zip2(a, b, f));
}

fn zip3<D: Dense>(a: &mut D, b: &D, c: &D, f: impl FnMut(&mut [D::Scalar], &[D::Scalar], &[D::Scalar])) {
    Arch::new().dispatch(Zip3(a, b, c, f));
}

impl<D: Dense, F: FnMut(&mut [D::Scalar], &[D::Scalar])> NullaryFnOnce for Zip2<'_, D, F> {
    type Output = ();
    #[inline(always)]
    fn call(self) {
        let Self(a, b, mut f) = self;
        assert_eq!(a.parts(), b.parts(), "vectors of different shape");
        for j in 0..a.parts() {
            let (a, b) = (a.part_mut(j), b.part(j));
            assert_eq!(a.len(), b.len(), "vectors of different shape");
            f(a, b);
        }
    }
}

impl<D: Dense, F: FnMut(&mut [D::Scalar], &[D::Scalar], &[D::Scalar])> NullaryFnOnce for Zip3<'_, D, F> {
    type Output = ();
    #[inline(always)]
    fn call(self) {
        let Self(a, b, c, mut f) = self;
        assert_eq!((a.parts(), b.parts()), (b.parts(), c.parts()), "vectors of different shape");
        for j in 0..a.parts() {
            let (a, b, c) = (a.part_mut(j), b.part(j), c.part(j));
            assert_eq!((a.len(), b.len()), (b.len(), c.len()), "vectors of different shape");
            f(a, b, c);
        }
    }
}

impl<D: Dense> NullaryFnOnce for Dot<'_, D> {
    type Output = f64;
    #[inline(always)]
    fn call(self) -> f64 {
        let Self(a, b) = self;
        assert_eq!(a.parts(), b.parts(), "vectors of different shape");
        let mut sum = 0.0;
        for j in 0..a.parts() {
            sum += sum2(a.part(j), b.part(j), |a, b| a * b);
        }
        sum
    }
}

struct WeightedSquares<'a, D>(&'a D, &'a D);

impl<D: Dense> NullaryFnOnce for WeightedSquares<'_, D> {
    type Output = f64;
    #[inline(always)]
    fn call(self) -> f64 {
        let Self(x, w) = self;
        assert_eq!(x.parts(), w.parts(), "vectors of different shape");
        (0..x.parts()).map(|j| sum2(x.part(j), w.part(j), |x, w| w * (x * x))).sum()
    }
}

/// Uses eight partial sums. They fit SIMD lanes, and their fixed order gives the same result on every machine.
#[inline(always)]
fn sum2<T: Real>(a: &[T], b: &[T], term: impl Fn(f64, f64) -> f64) -> f64 {
    const LANES: usize = 8;
    assert_eq!(a.len(), b.len(), "vectors of different shape");
    let mut sums = [0.0_f64; LANES];
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a.iter().zip(b) {
        for i in 0..LANES {
            sums[i] += term(a[i].into(), b[i].into());
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(&a, &b)| term(a.into(), b.into())).sum();
    sums.iter().sum::<f64>() + rest
}

/// The slice that contains component `i`, and its index there.
fn locate<D: Dense>(x: &D, i: usize) -> (usize, usize) {
    let mut rest = i;
    for j in 0..x.parts() {
        let length = x.part(j).len();
        if rest < length {
            return (j, rest);
        }
        rest -= length;
    }
    panic!("component {i} of a vector with {} components", i - rest)
}

impl<D: Dense> Vector for D {
    const EPSILON: f64 = D::Scalar::EPSILON;

    fn shape(&self) -> Vec<usize> {
        Dense::shape(self)
    }
    fn zeros_like(&self) -> Self {
        D::with_shape(&Dense::shape(self)).expect("the shape of a vector is valid for its type")
    }
    fn set_zero(&mut self) {
        for j in 0..self.parts() {
            self.part_mut(j).fill(D::Scalar::default());
        }
    }
    fn copy_from(&mut self, x: &Self) {
        zip2(self, x, |y, x| y.copy_from_slice(x));
    }
    fn set_sum(&mut self, x: &Self, a: f64, y: &Self) {
        let a = D::Scalar::from_f64(a);
        zip3(self, x, y, |z, x, y| {
            for ((z, &x), &y) in z.iter_mut().zip(x).zip(y) {
                *z = x + a * y;
            }
        });
    }
    fn scale_add(&mut self, b: f64, a: f64, x: &Self) {
        let (a, b) = (D::Scalar::from_f64(a), D::Scalar::from_f64(b));
        zip2(self, x, |y, x| {
            for (y, &x) in y.iter_mut().zip(x) {
                *y = b * *y + a * x;
            }
        });
    }
    fn scale(&mut self, b: f64) {
        let b = D::Scalar::from_f64(b);
        for j in 0..self.parts() {
            for y in self.part_mut(j) {
                *y = b * *y;
            }
        }
    }
    fn dot(&self, x: &Self) -> f64 {
        Arch::new().dispatch(Dot(self, x))
    }
    fn component(&self, i: usize) -> f64 {
        let (j, i) = locate(self, i);
        self.part(j)[i].into()
    }
    fn set_component(&mut self, i: usize, value: f64) {
        let (j, i) = locate(self, i);
        self.part_mut(j)[i] = D::Scalar::from_f64(value);
    }
    fn append_components(&self, out: &mut Vec<f64>) {
        for j in 0..self.parts() {
            out.extend(self.part(j).iter().map(|&v| -> f64 { v.into() }));
        }
    }
    fn components_from(&self, start: usize, scale: f64, out: &mut [f64]) {
        let (mut skip, mut rest) = (start, out);
        for j in 0..self.parts() {
            let part = self.part(j);
            let part = &part[skip.min(part.len())..];
            skip -= skip.min(self.part(j).len());
            let (slots, more) = rest.split_at_mut(part.len().min(rest.len()));
            for (slot, &v) in slots.iter_mut().zip(part) {
                *slot = v.into() * scale;
            }
            rest = more;
        }
        assert!(rest.is_empty(), "{} components too many", rest.len());
    }
    fn set_components(&mut self, values: &[f64]) {
        assert_eq!(self.dimension(), values.len(), "components of another shape");
        let mut rest = values.iter();
        for j in 0..self.parts() {
            self.part_mut(j).iter_mut().zip(&mut rest).for_each(|(slot, &v)| *slot = D::Scalar::from_f64(v));
        }
    }
    fn write(&self, out: &mut Vec<u8>) {
        for j in 0..self.parts() {
            self.part(j).iter().for_each(|v| v.write(out));
        }
    }
    fn read(scalar: &str, shape: &[usize], bytes: &[u8]) -> Result<Self, Error> {
        if scalar != D::Scalar::NAME {
            return Err(Error::Saved(format!("its components are {scalar}, but {} was expected", D::Scalar::NAME)));
        }
        let size = size_of::<D::Scalar>();
        let fits = shape.iter().try_fold(size, |p, &s| p.checked_mul(s)) == Some(bytes.len());
        if !fits {
            let count = bytes.len();
            return Err(Error::Saved(format!("{count} bytes of {scalar} do not fill the shape {shape:?}")));
        }
        let mut vector = D::with_shape(shape)
            .ok_or_else(|| Error::Saved(format!("the shape {shape:?} does not fit the expected type")))?;
        let mut values = bytes.chunks_exact(size).map(|b| D::Scalar::read(b).expect("chunks are exact"));
        for j in 0..vector.parts() {
            vector.part_mut(j).iter_mut().zip(&mut values).for_each(|(slot, v)| *slot = v);
        }
        Ok(vector)
    }
    fn scalar() -> &'static str {
        D::Scalar::NAME
    }
}

impl<D: Dense> Elementwise for D {
    fn scale_add_squares(&mut self, b: f64, a: f64, x: &Self) {
        let (a, b) = (D::Scalar::from_f64(a), D::Scalar::from_f64(b));
        zip2(self, x, |y, x| {
            for (y, &x) in y.iter_mut().zip(x) {
                *y = b * *y + a * (x * x);
            }
        });
    }
    fn add_ratio(&mut self, a: f64, x: &Self, s: f64, y: &Self, e: f64) {
        let (a, s, e) = (D::Scalar::from_f64(a), D::Scalar::from_f64(s), D::Scalar::from_f64(e));
        zip3(self, x, y, |z, x, y| {
            for ((z, &x), &y) in z.iter_mut().zip(x).zip(y) {
                *z += a * x / ((s * y).root() + e);
            }
        });
    }
    fn set_root(&mut self, b: f64, x: &Self, a: f64, y: &Self) {
        zip3(self, x, y, |z, x, y| {
            for ((z, &x), &y) in z.iter_mut().zip(x).zip(y) {
                let (x, y): (f64, f64) = (x.into(), y.into());
                *z = D::Scalar::from_f64((b * (x * x) + a * (y * y)).sqrt());
            }
        });
    }
    fn set_affine(&mut self, s: f64, x: &Self, e: f64) {
        let (s, e) = (D::Scalar::from_f64(s), D::Scalar::from_f64(e));
        zip2(self, x, |y, x| {
            for (y, &x) in y.iter_mut().zip(x) {
                *y = s * x + e;
            }
        });
    }
    fn set_quotient(&mut self, x: &Self, y: &Self) {
        zip3(self, x, y, |z, x, y| {
            for ((z, &x), &y) in z.iter_mut().zip(x).zip(y) {
                *z = x / y;
            }
        });
    }
    fn weighted_norm_squared(&self, w: &Self) -> f64 {
        Arch::new().dispatch(WeightedSquares(self, w))
    }
    fn norm_1(&self) -> f64 {
        let sum = |part: &[D::Scalar]| part.iter().map(|&x| -> f64 { x.into() }).map(f64::abs).sum::<f64>();
        (0..self.parts()).map(|j| sum(self.part(j))).sum()
    }
}
