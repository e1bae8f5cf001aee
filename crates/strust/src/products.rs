//! Matrix products for tall, narrow matrices: the shapes of mini-batches and of orthonormal columns.
//!
//! A general product routine first packs its operands. With ten columns this costs as much as the product itself. These
//! routines read each column in place, including columns selected from a data set, so they never copy a mini-batch.
//! They work in registers and the fastest cache, and they do not allocate.
//!
//! These are the inner loops of `strust` and `strust-problems`. The interface may change at any time.

// Every part of a kernel must be inlined into the function that is compiled with the widest instructions of the
// machine. A part that is not inlined is compiled with the narrowest instructions.
#![allow(clippy::inline_always)]

use faer::Mat;
use pulp::{Arch, Simd, WithSimd};

/// The columns of a tall matrix. All have the same length.
pub trait Columns<T> {
    /// The number of columns.
    fn count(&self) -> usize;
    /// Column j.
    fn column(&self, j: usize) -> &[T];
}

impl<T> Columns<T> for Mat<T> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.ncols()
    }
    #[inline(always)]
    fn column(&self, j: usize) -> &[T] {
        self.col_as_slice(j)
    }
}

/// Selected columns of a matrix, such as a mini-batch of a data set.
#[derive(Debug, Clone, Copy)]
pub struct Picked<'a, T> {
    /// The matrix.
    pub matrix: &'a Mat<T>,
    /// The selected columns.
    pub indices: &'a [usize],
}

impl<T> Columns<T> for Picked<'_, T> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.indices.len()
    }
    #[inline(always)]
    fn column(&self, j: usize) -> &[T] {
        self.matrix.col_as_slice(self.indices[j])
    }
}

/// The columns of A, then the columns of B.
#[derive(Debug, Clone, Copy)]
pub struct Beside<'a, A, B>(pub &'a A, pub &'a B);

impl<T, A: Columns<T>, B: Columns<T>> Columns<T> for Beside<'_, A, B> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.0.count() + self.1.count()
    }
    #[inline(always)]
    fn column(&self, j: usize) -> &[T] {
        let first = self.0.count();
        if j < first { self.0.column(j) } else { self.1.column(j - first) }
    }
}

/// out ← AᵀB.
///
/// ```
/// use faer::Mat;
/// use strust::products::{Picked, inner};
/// let (a, b) = (Mat::from_fn(3, 2, |i, j| (i + j) as f64), Mat::from_fn(3, 9, |i, j| (i * j) as f64));
/// let mut out = Mat::zeros(2, 1);
/// inner(&a, &Picked { matrix: &b, indices: &[4] }, &mut out);
/// assert_eq!((out[(0, 0)], out[(1, 0)]), (20.0, 32.0));
/// ```
///
/// # Panics
/// If the columns differ in length or `out` has another shape.
pub fn inner<T: Kernels>(a: &impl Columns<T>, b: &impl Columns<T>, out: &mut Mat<T>) {
    assert_eq!((out.nrows(), out.ncols()), (a.count(), b.count()), "the result of AᵀB has the wrong shape");
    if a.count() > 0 && b.count() > 0 {
        check_rows(a, a.column(0).len());
        check_rows(b, a.column(0).len());
        T::inner(a, b, out, false);
    }
}

/// out ← AᵀA, with half the work of [`inner`]. The result is exactly symmetric.
///
/// # Panics
/// If the columns differ in length or `out` has another shape.
pub fn gram<T: Kernels>(a: &impl Columns<T>, out: &mut Mat<T>) {
    assert_eq!((out.nrows(), out.ncols()), (a.count(), a.count()), "the result of AᵀA has the wrong shape");
    if a.count() > 0 {
        check_rows(a, a.column(0).len());
        T::inner(a, a, out, true);
    }
}

/// out ← P·Q.
///
/// # Panics
/// If the shapes do not fit.
pub fn product<T: Kernels>(p: &impl Columns<T>, q: &Mat<T>, out: &mut Mat<T>) {
    assert_eq!((p.count(), out.ncols()), (q.nrows(), q.ncols()), "the shapes of P, Q and the result do not match");
    check_rows(p, out.nrows());
    T::outer(None::<&Mat<T>>, p, q, Some(out), false);
}

/// out ← out + P·Q.
///
/// # Panics
/// If the shapes do not fit.
pub fn add_product<T: Kernels>(p: &impl Columns<T>, q: &Mat<T>, out: &mut Mat<T>) {
    assert_eq!((p.count(), out.ncols()), (q.nrows(), q.ncols()), "the shapes of P, Q and the result do not match");
    check_rows(p, out.nrows());
    T::outer(None::<&Mat<T>>, p, q, Some(out), true);
}

/// ‖X − P·Q‖², without storing the difference.
///
/// # Panics
/// If the shapes do not fit.
pub fn residual_norm_squared<T: Kernels>(x: &impl Columns<T>, p: &impl Columns<T>, q: &Mat<T>) -> f64 {
    assert_eq!((p.count(), x.count()), (q.nrows(), q.ncols()), "the shapes of X, P and Q do not match");
    if x.count() == 0 {
        return 0.0;
    }
    check_rows(x, x.column(0).len());
    check_rows(p, x.column(0).len());
    T::outer(Some(x), p, q, None, false)
}

fn check_rows<T>(columns: &impl Columns<T>, rows: usize) {
    for j in 0..columns.count() {
        assert_eq!(columns.column(j).len(), rows, "columns of different length");
    }
}

/// Rows per block. A block of both factors stays in the L2 cache.
const BLOCK: usize = 512;
/// The number of columns whose addresses are stored. The addresses of further columns are looked up at each use.
const TABLE: usize = 128;

/// A component type with kernels: `f32` or `f64`.
pub trait Kernels: Sized {
    /// out ← AᵀB. If the result is symmetric, only one half is computed. The shapes match and are not empty.
    #[doc(hidden)]
    fn inner<A: Columns<Self>, B: Columns<Self>>(a: &A, b: &B, out: &mut Mat<Self>, symmetric: bool);
    /// With `x`: returns ‖X − P·Q‖². Without: returns 0 and writes P·Q to `out`, or adds it if `add`. The shapes match.
    #[doc(hidden)]
    fn outer<X: Columns<Self>, P: Columns<Self>>(
        x: Option<&X>,
        p: &P,
        q: &Mat<Self>,
        out: Option<&mut Mat<Self>>,
        add: bool,
    ) -> f64;
}

macro_rules! kernels {
    ($t:ident, $module:ident, $lanes:ident, $v:ident, $simd:ident, $simd_mut:ident, $splat:ident, $fma:ident, $plus:ident, $sub:ident,
     $load:ident, $store:ident, $sum:ident) => {
        impl Kernels for $t {
            fn inner<A: Columns<$t>, B: Columns<$t>>(a: &A, b: &B, out: &mut Mat<$t>, symmetric: bool) {
                Arch::new().dispatch($module::Inner { a, b, out, symmetric });
            }
            fn outer<X: Columns<$t>, P: Columns<$t>>(
                x: Option<&X>,
                p: &P,
                q: &Mat<$t>,
                out: Option<&mut Mat<$t>>,
                add: bool,
            ) -> f64 {
                Arch::new().dispatch($module::Outer { x, p, q, out, add })
            }
        }

        mod $module {
            use super::*;

            pub(super) struct Inner<'a, A, B> {
                pub a: &'a A,
                pub b: &'a B,
                pub out: &'a mut Mat<$t>,
                pub symmetric: bool,
            }

            impl<A: Columns<$t>, B: Columns<$t>> WithSimd for Inner<'_, A, B> {
                type Output = ();
                #[inline(always)]
                fn with_simd<S: Simd>(self, simd: S) {
                    // The largest number of partial sums that fit the registers together with the operands. Batches are
                    // powers of two.
                    match (S::REGISTER_COUNT >= 32, self.symmetric) {
                        (true, true) => self.tiles::<S, 5, 5>(simd),
                        (true, false) => self.tiles::<S, 5, 4>(simd),
                        (false, _) => self.tiles::<S, 3, 3>(simd),
                    }
                }
            }

            impl<A: Columns<$t>, B: Columns<$t>> Inner<'_, A, B> {
                /// Computes the result in tiles of M×N, one block of rows after another. At the edges the last column
                /// replaces missing ones, and its results are not stored.
                #[inline(always)]
                fn tiles<S: Simd, const M: usize, const N: usize>(self, simd: S) {
                    let Self { a, b, out, symmetric } = self;
                    let (k, n, rows) = (a.count(), b.count(), a.column(0).len());
                    let mut start = 0;
                    loop {
                        let end = (start + BLOCK).min(rows);
                        for j in (0..n).step_by(N) {
                            let mut right: [&[$t]; N] = [&[]; N];
                            for (l, column) in right.iter_mut().enumerate() {
                                *column = &b.column((j + l).min(n - 1))[start..end];
                            }
                            // The part of a symmetric result below its diagonal is copied at the end.
                            let needed = if symmetric { (j + N).min(k) } else { k };
                            for i in (0..needed).step_by(M) {
                                let mut left: [&[$t]; M] = [&[]; M];
                                for (l, column) in left.iter_mut().enumerate() {
                                    *column = &a.column((i + l).min(k - 1))[start..end];
                                }
                                let sums = tile::<S, M, N>(simd, left, right);
                                for l in 0..N.min(n - j) {
                                    let column = out.col_as_slice_mut(j + l);
                                    for m in 0..M.min(k - i) {
                                        let before = if start == 0 { 0.0 } else { column[i + m] };
                                        column[i + m] = before + sums[m][l];
                                    }
                                }
                            }
                        }
                        if end == rows {
                            break;
                        }
                        start = end;
                    }
                    if symmetric {
                        for j in 0..n {
                            for i in j + 1..k {
                                out[(i, j)] = out[(j, i)];
                            }
                        }
                    }
                }
            }

            /// M×N inner products of columns of the same length.
            #[inline(always)]
            fn tile<S: Simd, const M: usize, const N: usize>(simd: S, a: [&[$t]; M], b: [&[$t]; N]) -> [[$t; N]; M] {
                let rows = a[0].len();
                let whole = rows / S::$lanes;
                let mut sums = [[simd.$splat(0.0); N]; M];
                let mut left: [&[S::$v]; M] = [&[]; M];
                let mut right: [&[S::$v]; N] = [&[]; N];
                for i in 0..M {
                    left[i] = &S::$simd(a[i]).0[..whole];
                }
                for j in 0..N {
                    right[j] = &S::$simd(b[j]).0[..whole];
                }
                for r in 0..whole {
                    let mut here = [simd.$splat(0.0); N];
                    for j in 0..N {
                        here[j] = right[j][r];
                    }
                    for i in 0..M {
                        let x = left[i][r];
                        for j in 0..N {
                            sums[i][j] = simd.$fma(x, here[j], sums[i][j]);
                        }
                    }
                }
                let rest = whole * S::$lanes;
                if rest < rows {
                    let mut here = [simd.$splat(0.0); N];
                    for j in 0..N {
                        here[j] = simd.$load(&b[j][rest..]);
                    }
                    for i in 0..M {
                        let x = simd.$load(&a[i][rest..]);
                        for j in 0..N {
                            sums[i][j] = simd.$fma(x, here[j], sums[i][j]);
                        }
                    }
                }
                let mut out = [[0.0; N]; M];
                for i in 0..M {
                    for j in 0..N {
                        out[i][j] = simd.$sum(sums[i][j]);
                    }
                }
                out
            }

            pub(super) struct Outer<'a, X, P> {
                pub x: Option<&'a X>,
                pub p: &'a P,
                pub q: &'a Mat<$t>,
                pub out: Option<&'a mut Mat<$t>>,
                pub add: bool,
            }

            impl<X: Columns<$t>, P: Columns<$t>> WithSimd for Outer<'_, X, P> {
                type Output = f64;
                #[inline(always)]
                fn with_simd<S: Simd>(self, simd: S) -> f64 {
                    // A residual also needs registers for X. Batches are powers of two.
                    match (S::REGISTER_COUNT >= 32, self.x.is_some()) {
                        (true, true) => self.bands::<S, 4, 4>(simd),
                        (true, false) => self.bands::<S, 4, 5>(simd),
                        (false, _) => self.bands::<S, 2, 4>(simd),
                    }
                }
            }

            impl<X: Columns<$t>, P: Columns<$t>> Outer<'_, X, P> {
                /// Computes the result in bands of R registers of rows, then in smaller bands.
                #[inline(always)]
                fn bands<S: Simd, const R: usize, const N: usize>(mut self, simd: S) -> f64 {
                    let rows = match (&self.x, &self.out) {
                        (Some(x), _) => x.column(0).len(),
                        (None, Some(out)) => out.nrows(),
                        (None, None) => return 0.0,
                    };
                    let (mut p_table, mut x_table): (Table<'_, S, R>, Table<'_, S, R>) = ([&[]; TABLE], [&[]; TABLE]);
                    let p_table = look_up::<S, R>(self.p, &mut p_table);
                    let x_table = self.x.map_or(&[][..], |x| look_up::<S, R>(x, &mut x_table));
                    let mut row = 0;
                    let mut sum = 0.0;
                    while row + R * S::$lanes <= rows {
                        sum += self.band::<S, R, N, true>(simd, row, p_table, x_table);
                        row += R * S::$lanes;
                    }
                    // Split the remaining rows into bands that fit: an empty register costs as much as a full one.
                    if row + 2 * S::$lanes <= rows {
                        sum += self.band::<S, 2, N, true>(simd, row, &[], &[]);
                        row += 2 * S::$lanes;
                    }
                    if row + S::$lanes <= rows {
                        sum += self.band::<S, 1, N, true>(simd, row, &[], &[]);
                        row += S::$lanes;
                    }
                    if row < rows {
                        sum += self.band::<S, 1, N, false>(simd, row, &[], &[]);
                    }
                    sum
                }

                /// One band: N columns of the result at a time, in registers.
                #[inline(always)]
                fn band<S: Simd, const R: usize, const N: usize, const WHOLE: bool>(
                    &mut self,
                    simd: S,
                    row: usize,
                    p_table: &[&[[S::$v; R]]],
                    x_table: &[&[[S::$v; R]]],
                ) -> f64 {
                    let (inner, n) = (self.q.nrows(), self.q.ncols());
                    let at = row / (R * S::$lanes);
                    let zero = simd.$splat(0.0);
                    let mut squares = [zero; R];
                    for j in (0..n).step_by(N) {
                        let mut factors: [&[$t]; N] = [&[]; N];
                        for (l, column) in factors.iter_mut().enumerate() {
                            *column = &self.q.col_as_slice((j + l).min(n - 1))[..inner];
                        }
                        let mut sums = [[zero; N]; R];
                        for l in 0..inner {
                            let x = if WHOLE && l < p_table.len() {
                                p_table[l][at]
                            } else {
                                load::<S, R, WHOLE>(simd, self.p.column(l), row)
                            };
                            for i in 0..N {
                                let factor = simd.$splat(factors[i][l]);
                                for r in 0..R {
                                    sums[r][i] = simd.$fma(x[r], factor, sums[r][i]);
                                }
                            }
                        }
                        for i in 0..N.min(n - j) {
                            if let Some(x) = self.x {
                                let x = if WHOLE && j + i < x_table.len() {
                                    x_table[j + i][at]
                                } else {
                                    load::<S, R, WHOLE>(simd, x.column(j + i), row)
                                };
                                for r in 0..R {
                                    let difference = simd.$sub(x[r], sums[r][i]);
                                    squares[r] = simd.$fma(difference, difference, squares[r]);
                                }
                            }
                            if let Some(out) = &mut self.out {
                                let column = &mut out.col_as_slice_mut(j + i)[row..];
                                if WHOLE {
                                    let slots = &mut S::$simd_mut(column).0.as_chunks_mut::<R>().0[0];
                                    for r in 0..R {
                                        slots[r] = if self.add { simd.$plus(slots[r], sums[r][i]) } else { sums[r][i] };
                                    }
                                } else {
                                    let sum = sums[0][i];
                                    let sum = if self.add { simd.$plus(simd.$load(column), sum) } else { sum };
                                    simd.$store(column, sum);
                                }
                            }
                        }
                    }
                    let mut sum = 0.0;
                    for r in 0..R {
                        sum += f64::from(simd.$sum(squares[r]));
                    }
                    sum
                }
            }

            /// The addresses of the first columns, in bands of R registers.
            type Table<'a, S, const R: usize> = [&'a [[<S as Simd>::$v; R]]; TABLE];

            #[inline(always)]
            fn look_up<'t, 'a, S: Simd, const R: usize>(
                columns: &'a impl Columns<$t>,
                table: &'t mut Table<'a, S, R>,
            ) -> &'t [&'a [[S::$v; R]]] {
                let known = columns.count().min(TABLE);
                for l in 0..known {
                    table[l] = S::$simd(columns.column(l)).0.as_chunks::<R>().0;
                }
                &table[..known]
            }

            /// Loads R registers of a column, starting at `row`. A register that is not `WHOLE` is padded with zeros.
            #[inline(always)]
            fn load<S: Simd, const R: usize, const WHOLE: bool>(simd: S, column: &[$t], row: usize) -> [S::$v; R] {
                if WHOLE {
                    return S::$simd(&column[row..]).0.as_chunks::<R>().0[0];
                }
                [simd.$load(&column[row..]); R]
            }
        }
    };
}

kernels!(
    f64,
    double,
    F64_LANES,
    f64s,
    as_simd_f64s,
    as_mut_simd_f64s,
    splat_f64s,
    mul_add_e_f64s,
    add_f64s,
    sub_f64s,
    partial_load_f64s,
    partial_store_f64s,
    reduce_sum_f64s
);
kernels!(
    f32,
    single,
    F32_LANES,
    f32s,
    as_simd_f32s,
    as_mut_simd_f32s,
    splat_f32s,
    mul_add_e_f32s,
    add_f32s,
    sub_f32s,
    partial_load_f32s,
    partial_store_f32s,
    reduce_sum_f32s
);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    trait Number: Kernels + faer::traits::RealField + Copy + Into<f64> + PartialEq {
        const UNIT: f64;
        fn rounded(value: f64) -> Self;
    }
    impl Number for f64 {
        const UNIT: f64 = Self::EPSILON;
        fn rounded(value: f64) -> Self {
            value
        }
    }
    impl Number for f32 {
        const UNIT: f64 = Self::EPSILON as f64;
        fn rounded(value: f64) -> Self {
            value as Self
        }
    }

    fn filled<T: Number>(rows: usize, columns: usize, salt: usize) -> Mat<T> {
        Mat::from_fn(rows, columns, |i, j| T::rounded(((i * 31 + j * 17 + salt * 7) % 23) as f64 / 8.0 - 1.3))
    }

    fn close<T: Number>(got: &Mat<T>, want: &Mat<f64>) -> bool {
        let scale = 1.0 + want.norm_max();
        (0..want.ncols())
            .all(|j| (0..want.nrows()).all(|i| (got[(i, j)].into() - want[(i, j)]).abs() <= 200.0 * T::UNIT * scale))
    }

    fn wide<T: Number>(m: &Mat<T>) -> Mat<f64> {
        Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)].into())
    }

    fn agrees_with_faer<T: Number>(rows: usize, k: usize, n: usize, picks: &[usize]) {
        let (a, data) = (filled::<T>(rows, k, 1), filled::<T>(rows, n, 2));
        let x = Picked { matrix: &data, indices: picks };
        let gathered = Mat::from_fn(rows, picks.len(), |i, j| data[(i, picks[j])]);

        let mut out = Mat::from_fn(k, picks.len() + k, |_, _| T::rounded(f64::NAN));
        inner(&a, &Beside(&x, &a), &mut out);
        let want = Mat::from_fn(k, picks.len() + k, |i, j| {
            let right = |r: usize| if j < picks.len() { gathered[(r, j)] } else { a[(r, j - picks.len())] };
            (0..rows).map(|r| a[(r, i)].into() * right(r).into()).sum::<f64>()
        });
        assert!(close(&out, &want), "inner {rows} {k} {picks:?}");

        let mut out = Mat::from_fn(k, k, |_, _| T::rounded(f64::NAN));
        gram(&a, &mut out);
        assert!(close(&out, &(wide(&a).transpose() * wide(&a))), "gram {rows} {k}");
        assert_eq!(out, out.transpose());

        let q = filled::<T>(picks.len(), k, 3);
        let mut out = Mat::from_fn(rows, k, |_, _| T::rounded(f64::NAN));
        product(&x, &q, &mut out);
        assert!(close(&out, &(wide(&gathered) * wide(&q))), "product {rows} {k} {picks:?}");
        add_product(&x, &q, &mut out);
        assert!(close(&out, &(2.0 * wide(&gathered) * wide(&q))), "add_product {rows} {k} {picks:?}");

        let q = filled::<T>(k, picks.len(), 4);
        let want = (wide(&gathered) - wide(&a) * wide(&q)).squared_norm_l2();
        let got = residual_norm_squared(&x, &a, &q);
        assert!((got - want).abs() <= 200.0 * T::UNIT * (1.0 + want), "residual {rows} {k} {picks:?}: {got} {want}");
    }

    proptest! {
        #[test]
        fn products_agree_with_plain_ones(rows in 1_usize..90, k in 1_usize..14, picks in prop::collection::vec(0_usize..20, 1..14)) {
            agrees_with_faer::<f64>(rows, k, 20, &picks);
            agrees_with_faer::<f32>(rows, k, 20, &picks);
        }
    }

    #[test]
    fn products_of_many_long_columns_agree() {
        let picks: Vec<usize> = (0..TABLE + 3).collect();
        agrees_with_faer::<f64>(BLOCK - 1, 3, TABLE + 3, &picks);
        agrees_with_faer::<f64>(2 * BLOCK + 5, TABLE + 2, TABLE + 3, &picks[..9]);
        agrees_with_faer::<f32>(BLOCK + 7, 65, 70, &picks[..3]);
    }

    #[test]
    fn empty_factors_give_zero() {
        let (none, one) = (Mat::<f64>::zeros(5, 0), Mat::<f64>::zeros(0, 3));
        let mut out = Mat::from_fn(5, 3, |_, _| 7.0);
        product(&none, &one, &mut out);
        assert_eq!(out, Mat::<f64>::zeros(5, 3));
        assert_eq!(residual_norm_squared(&none, &out, &Mat::zeros(3, 0)).to_bits(), 0);
        inner(&none, &none, &mut Mat::zeros(0, 0));
        gram(&none, &mut Mat::zeros(0, 0));
    }

    #[test]
    #[should_panic(expected = "columns of different length")]
    fn columns_of_different_length_panic() {
        inner(&Mat::<f64>::zeros(4, 1), &Mat::zeros(5, 1), &mut Mat::zeros(1, 1));
    }
}
