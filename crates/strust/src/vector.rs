//! The space x lives in: one trait for points, gradients and steps, all in place.
//!
//! Scalars that come out of a vector (norms, products) are `f64` whatever the components are, so that a
//! `f32` run keeps the accuracy of its sums. [`Vector`] is implemented for everything [`Dense`]: slices
//! owned by a `Vec`, faer columns and matrices, in `f32` and `f64`.

// Only what is inlined into it is compiled for the machine's widest instructions.
#![allow(clippy::inline_always)]

use crate::{Error, products::Kernels};
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

/// A point, a gradient or a step. Operations work in place and never allocate, except where the name says so.
///
/// ```
/// use strust::vector::Vector;
/// let (x, g) = (vec![1.0, 2.0], vec![3.0, 4.0]);
/// let mut trial = x.zeros_like();
/// trial.set_sum(&x, -0.5, &g);
/// assert_eq!(trial, [-0.5, 0.0]);
/// assert_eq!(g.norm(), 5.0);
/// ```
pub trait Vector: Clone {
    /// Relative rounding error of a component.
    const EPSILON: f64;

    /// The shape, for messages and saved files.
    fn shape(&self) -> Vec<usize>;
    /// A new zero of the same shape. Allocates.
    #[must_use]
    fn zeros_like(&self) -> Self;
    /// self ← 0.
    fn set_zero(&mut self);
    /// self ← x, bit for bit.
    fn copy_from(&mut self, x: &Self);
    /// self ← x + a·y.
    fn set_sum(&mut self, x: &Self, a: f64, y: &Self);
    /// self ← b·self + a·x.
    fn scale_add(&mut self, b: f64, a: f64, x: &Self);
    /// self ← b·self + a·x∘x, the second moment of Adam.
    fn scale_add_squares(&mut self, b: f64, a: f64, x: &Self);
    /// self ← self + a·x/(√(s·y) + e) component by component, the update of Adam.
    fn add_ratio(&mut self, a: f64, x: &Self, s: f64, y: &Self, e: f64);
    /// ⟨self, x⟩.
    fn dot(&self, x: &Self) -> f64;
    /// Appends the components as little-endian bytes.
    fn write(&self, out: &mut Vec<u8>);
    /// The type name and a rebuilt vector, from what [`Self::shape`] and [`Self::write`] gave. Allocates.
    fn read(scalar: &str, shape: &[usize], bytes: &[u8]) -> Result<Self, Error>;
    /// The component type's name, checked by [`Self::read`].
    fn scalar() -> &'static str;

    /// ‖self‖² = ⟨self, self⟩.
    fn norm_squared(&self) -> f64 {
        self.dot(self)
    }
    /// The Euclidean norm; Frobenius for a matrix.
    fn norm(&self) -> f64 {
        self.norm_squared().sqrt()
    }
    /// self ← self + a·x.
    fn add(&mut self, a: f64, x: &Self) {
        self.scale_add(1.0, a, x);
    }
}

/// A vector stored as one or more contiguous slices. Implement this for your own type and it is a [`Vector`].
pub trait Dense: Clone {
    /// The component type.
    type Scalar: Real;
    /// How many slices.
    fn parts(&self) -> usize;
    /// Slice `j`.
    fn part(&self, j: usize) -> &[Self::Scalar];
    /// Slice `j`, to write.
    fn part_mut(&mut self, j: usize) -> &mut [Self::Scalar];
    /// The shape.
    fn shape(&self) -> Vec<usize>;
    /// A zero of that shape, or `None` if the type has no such shape. Allocates.
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

/// `f` on matching slices. A closure given to `dispatch` itself would not be inlined.
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
            let (a, b) = (a.part(j), b.part(j));
            assert_eq!(a.len(), b.len(), "vectors of different shape");
            sum += dot(a, b);
        }
        sum
    }
}

/// Eight running sums: the order is fixed, so the result is the same on every machine, and they fit SIMD lanes.
#[inline(always)]
fn dot<T: Real>(a: &[T], b: &[T]) -> f64 {
    const LANES: usize = 8;
    let mut sums = [0.0_f64; LANES];
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a.iter().zip(b) {
        for i in 0..LANES {
            sums[i] += a[i].into() * b[i].into();
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(&a, &b)| a.into() * b.into()).sum();
    sums.iter().sum::<f64>() + rest
}

impl<D: Dense> Vector for D {
    const EPSILON: f64 = D::Scalar::EPSILON;

    fn shape(&self) -> Vec<usize> {
        Dense::shape(self)
    }
    fn zeros_like(&self) -> Self {
        D::with_shape(&Dense::shape(self)).expect("a vector's own shape is one of its type")
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
    fn dot(&self, x: &Self) -> f64 {
        Arch::new().dispatch(Dot(self, x))
    }
    fn write(&self, out: &mut Vec<u8>) {
        for j in 0..self.parts() {
            self.part(j).iter().for_each(|v| v.write(out));
        }
    }
    fn read(scalar: &str, shape: &[usize], bytes: &[u8]) -> Result<Self, Error> {
        if scalar != D::Scalar::NAME {
            return Err(Error::Saved(format!("components are {scalar}, but {} is wanted", D::Scalar::NAME)));
        }
        let size = size_of::<D::Scalar>();
        let fits = shape.iter().try_fold(size, |p, &s| p.checked_mul(s)) == Some(bytes.len());
        if !fits {
            let count = bytes.len();
            return Err(Error::Saved(format!("{count} bytes of {scalar} do not fill the shape {shape:?}")));
        }
        let mut vector = D::with_shape(shape)
            .ok_or_else(|| Error::Saved(format!("the shape {shape:?} does not fit the type that is wanted")))?;
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

/// `#[serde(with = "strust::vector::saved")]` for a field that is any [`Vector`]: type, shape and exact bytes.
pub mod saved {
    use super::Vector;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

    #[derive(Serialize, Deserialize)]
    struct Saved {
        scalar: String,
        shape: Vec<usize>,
        bytes: Bytes,
    }

    /// Binary formats store this as one blob; serde's `Vec<u8>` would be a list of numbers.
    struct Bytes(Vec<u8>);

    impl Serialize for Bytes {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(&self.0)
        }
    }

    impl<'de> Deserialize<'de> for Bytes {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Visitor;
            impl<'de> serde::de::Visitor<'de> for Visitor {
                type Value = Bytes;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("bytes")
                }
                fn visit_bytes<E>(self, v: &[u8]) -> Result<Bytes, E> {
                    Ok(Bytes(v.to_vec()))
                }
                fn visit_byte_buf<E>(self, v: Vec<u8>) -> Result<Bytes, E> {
                    Ok(Bytes(v))
                }
                fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Bytes, A::Error> {
                    let mut bytes = Vec::new();
                    while let Some(b) = seq.next_element()? {
                        bytes.push(b);
                    }
                    Ok(Bytes(bytes))
                }
            }
            deserializer.deserialize_byte_buf(Visitor)
        }
    }

    /// Writes the vector.
    pub fn serialize<V: Vector, S: Serializer>(vector: &V, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        vector.write(&mut bytes);
        Saved { scalar: V::scalar().into(), shape: vector.shape(), bytes: Bytes(bytes) }.serialize(serializer)
    }

    /// Reads the vector; the component type and the shape must fit `V`.
    pub fn deserialize<'de, V: Vector, D: Deserializer<'de>>(deserializer: D) -> Result<V, D::Error> {
        let saved = Saved::deserialize(deserializer)?;
        V::read(&saved.scalar, &saved.shape, &saved.bytes.0).map_err(D::Error::custom)
    }
}
