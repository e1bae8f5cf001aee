//! One contract suite for all vector types. It compares them with a naive reference in `f64`.

use crate::common::{bits, normal};
use faer::{Col, Mat};
use serde::{Deserialize, Serialize};
use strust::{
    Error,
    saved::vector as saved,
    vector::{Dense, Elementwise, Real, Vector},
};

#[derive(Serialize, Deserialize)]
#[serde(bound = "V: Vector")]
struct Leaf<V> {
    #[serde(with = "saved")]
    x: V,
}

fn values<V: Dense>(x: &V) -> Vec<f64> {
    (0..x.parts()).flat_map(|j| x.part(j).iter().map(|&v| v.into()).collect::<Vec<f64>>()).collect()
}

fn fill<V: Dense>(x: &mut V, values: impl IntoIterator<Item = V::Scalar>) {
    let mut values = values.into_iter();
    for j in 0..x.parts() {
        x.part_mut(j).iter_mut().zip(&mut values).for_each(|(slot, v)| *slot = v);
    }
}

/// Checks every component, up to a few rounding errors of the reference.
fn assert_near<V: Dense>(what: &str, x: &V, reference: &[f64], sizes: &[f64]) {
    let x_values = values(x);
    assert_eq!(x_values.len(), reference.len());
    for (i, ((x, r), size)) in x_values.iter().zip(reference).zip(sizes).enumerate() {
        assert!((x - r).abs() <= 4.0 * <V as Vector>::EPSILON * size, "{what}, component {i}: found {x}, expected {r}");
    }
}

fn operations_agree_with_the_reference<V: Dense>(shape: &[usize]) {
    let (x, y, z): (V, V, V) = (normal(1, shape), normal(2, shape), normal(3, shape));
    let (xs, ys, zs) = (values(&x), values(&y), values(&z));
    let n = xs.len();
    let map = |f: &dyn Fn(usize) -> f64| -> Vec<f64> { (0..n).map(f).collect() };
    // These factors are exact in `f32`, so only the operation rounds.
    let (a, b) = (-0.75, 1.5);

    assert_eq!(Vector::shape(&x), shape);
    assert!(values(&x.zeros_like()).iter().all(|&v| v == 0.0));
    assert_eq!(Vector::shape(&x.zeros_like()), shape);

    let mut out = z.clone();
    out.set_zero();
    assert_eq!(bits(&out), bits(&x.zeros_like()));
    out.copy_from(&x);
    assert_eq!(bits(&out), bits(&x));

    let sizes = map(&|i| xs[i].abs() + 2.0 * ys[i].abs() + 2.0 * zs[i].abs());
    out.set_sum(&x, a, &y);
    assert_near("set_sum", &out, &map(&|i| xs[i] + a * ys[i]), &sizes);
    let mut out = z.clone();
    out.scale_add(b, a, &x);
    assert_near("scale_add", &out, &map(&|i| b * zs[i] + a * xs[i]), &sizes);
    let mut out = z.clone();
    out.scale(b);
    assert_near("scale", &out, &map(&|i| b * zs[i]), &sizes);
    let mut out = z.clone();
    out.add(a, &x);
    assert_near("add", &out, &map(&|i| zs[i] + a * xs[i]), &sizes);
    let mut out = z.clone();
    out.scale_add_squares(b, 0.25, &x);
    let sizes = map(&|i| 2.0 * zs[i].abs() + xs[i] * xs[i]);
    assert_near("scale_add_squares", &out, &map(&|i| b * zs[i] + 0.25 * xs[i] * xs[i]), &sizes);

    let mut squares = x.zeros_like();
    squares.scale_add_squares(0.0, 1.0, &y);
    let squares_values = values(&squares);
    let mut out = z.clone();
    out.add_ratio(a, &x, 4.0, &squares, 0.5);
    let ratio = |i: usize| a * xs[i] / ((4.0 * squares_values[i]).sqrt() + 0.5);
    assert_near("add_ratio", &out, &map(&|i| zs[i] + ratio(i)), &map(&|i| zs[i].abs() + 2.0 * ratio(i).abs()));

    // Scalars are f64, also for f32 components.
    let sum: f64 = xs.iter().map(|v| v.abs()).sum();
    assert!((x.norm_1() - sum).abs() <= n as f64 * f64::EPSILON * sum);
    let (dot, size): (f64, f64) = (0..n).fold((0.0, 0.0), |(s, t), i| (s + xs[i] * ys[i], t + (xs[i] * ys[i]).abs()));
    assert!((x.dot(&y) - dot).abs() <= n as f64 * f64::EPSILON * size);
    assert!((x.norm_squared() - xs.iter().map(|v| v * v).sum::<f64>()).abs() <= 1e-14 * x.norm_squared());
    assert!((x.norm().powi(2) - x.norm_squared()).abs() <= 1e-15 * x.norm_squared());
    assert_eq!(x.dot(&y).to_bits(), y.dot(&x).to_bits());
}

fn operations_carry_nan_and_infinity<V: Dense>(shape: &[usize]) {
    let x: V = normal(1, shape);
    if values(&x).is_empty() {
        return;
    }
    for bad in [f64::NAN, f64::INFINITY] {
        let mut y = x.clone();
        let last = y.parts() - 1;
        *y.part_mut(last).last_mut().unwrap() = V::Scalar::from_f64(bad);
        assert!(!y.norm().is_finite());
        let mut sum = x.zeros_like();
        sum.set_sum(&x, 1.0, &y);
        assert!(!sum.norm().is_finite());
    }
}

/// Writes and reads JSON. NaN payloads, signed zeros, subnormals and infinities must keep their bits.
fn saving_keeps_every_bit<V: Dense>(shape: &[usize], odd: &[V::Scalar]) {
    let mut x: V = normal(4, shape);
    let n = values(&x).len();
    fill(&mut x, odd.iter().copied().cycle().take(n));
    let text = serde_json::to_string(&Leaf { x: x.clone() }).unwrap();
    let back: Leaf<V> = serde_json::from_str(&text).unwrap();
    assert_eq!((Vector::shape(&back.x), bits(&back.x)), (shape.to_vec(), bits(&x)));
    let mut copy = x.zeros_like();
    copy.copy_from(&x);
    assert_eq!(bits(&copy), bits(&x));
}

fn what_does_not_fit_is_refused<V: Dense>(shape: &[usize], other: &'static str) {
    let x: V = normal(5, shape);
    let bytes = bits(&x);
    let name = <V as Vector>::scalar();
    let text = |r: Result<V, Error>| match r {
        Err(e @ Error::Saved(_)) => e.to_string(),
        Err(e) => panic!("unexpected error: {e}"),
        Ok(_) => panic!("there must be an error"),
    };
    assert_eq!(
        text(V::read(other, shape, &bytes)),
        format!("saved state: its components are {other}, but {name} was expected")
    );
    let mut longer = bytes.clone();
    longer.push(0);
    assert_eq!(
        text(V::read(name, shape, &longer)),
        format!("saved state: {} bytes of {name} do not fill the shape {shape:?}", longer.len())
    );
    let mut cube = shape.to_vec();
    cube.extend([1; 2]);
    assert_eq!(
        text(V::read(name, &cube, &bytes)),
        format!("saved state: the shape {cube:?} does not fit the expected type")
    );
    assert_eq!(
        text(V::read(name, &[usize::MAX, 2], &bytes)),
        format!("saved state: {} bytes of {name} do not fill the shape [{}, 2]", bytes.len(), usize::MAX)
    );
    // The same through serde.
    let json = serde_json::to_string(&Leaf { x }).unwrap().replace(name, other);
    let error = serde_json::from_str::<Leaf<V>>(&json).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains(&format!("its components are {other}, but {name} was expected")), "{error}");
}

fn different_shapes_panic<V: Dense>(shape: &[usize], larger: &[usize]) {
    let (small, large): (V, V) = (normal(6, shape), normal(7, larger));
    let panics = |what: &str, f: &dyn Fn()| {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
        let message = *result.expect_err(what).downcast::<String>().expect("a message");
        assert!(message.contains("vectors of different shape"), "{what}: {message}");
    };
    panics("dot", &|| assert!(small.dot(&large).is_nan()));
    panics("dot, the other way", &|| assert!(large.dot(&small).is_nan()));
    panics("copy_from", &|| small.clone().copy_from(&large));
    panics("scale_add", &|| large.clone().scale_add(1.0, 1.0, &small));
    panics("scale_add_squares", &|| small.clone().scale_add_squares(1.0, 1.0, &large));
    panics("set_sum", &|| small.clone().set_sum(&small, 1.0, &large));
    panics("set_sum, the result", &|| large.clone().set_sum(&small, 1.0, &small));
    panics("add_ratio", &|| small.clone().add_ratio(1.0, &large, 1.0, &small, 1.0));
}

macro_rules! contract {
    ($name:ident, $vector:ty, $other:literal, $odd:expr, [$($shape:expr),*], $larger:expr) => {
        mod $name {
            use super::*;
            #[test]
            fn every_operation_agrees_with_the_naive_reference() {
                $( operations_agree_with_the_reference::<$vector>(&$shape); )*
            }
            #[test]
            fn operations_keep_nan_and_infinity() {
                $( operations_carry_nan_and_infinity::<$vector>(&$shape); )*
            }
            #[test]
            fn saving_and_loading_keeps_every_bit() {
                $( saving_keeps_every_bit::<$vector>(&$shape, &$odd); )*
            }
            #[test]
            fn a_wrong_scalar_type_or_shape_is_an_error() {
                $( what_does_not_fit_is_refused::<$vector>(&$shape, $other); )*
            }
            #[test]
            fn vectors_of_different_shape_panic() {
                $( different_shapes_panic::<$vector>(&$shape, &$larger); )*
            }
        }
    };
}

fn odd64() -> Vec<f64> {
    let payload = f64::from_bits(0xfff8_0000_dead_beef);
    vec![payload, -0.0, 5e-324, f64::NEG_INFINITY, f64::MIN_POSITIVE / 3.0, 0.1, f64::MAX]
}

fn odd32() -> Vec<f32> {
    let payload = f32::from_bits(0xffc1_2345);
    vec![payload, -0.0, 1e-45, f32::INFINITY, f32::MIN_POSITIVE / 3.0, 0.1, f32::MAX]
}

contract!(vec_f64, Vec<f64>, "f32", odd64(), [[0], [1], [7], [8], [9], [33]], [34]);
contract!(vec_f32, Vec<f32>, "f64", odd32(), [[0], [1], [7], [8], [9], [33]], [34]);
contract!(col_f64, Col<f64>, "f32", odd64(), [[0], [1], [7], [8], [9], [33]], [34]);
contract!(col_f32, Col<f32>, "f64", odd32(), [[0], [1], [7], [8], [9], [33]], [34]);
contract!(mat_f64, Mat<f64>, "f32", odd64(), [[0, 0], [0, 3], [3, 0], [1, 1], [7, 9], [8, 8], [33, 2]], [34, 11]);
contract!(mat_f32, Mat<f32>, "f64", odd32(), [[0, 0], [0, 3], [3, 0], [1, 1], [7, 9], [8, 8], [33, 2]], [34, 11]);

#[test]
fn a_matrix_is_not_confused_with_its_transpose_or_a_flat_vector() {
    let bytes = bits(&normal::<Mat<f64>>(1, &[2, 3]));
    assert_eq!(Vector::shape(&Mat::<f64>::read("f64", &[3, 2], &bytes).unwrap()), [3, 2]);
    let error = Vec::<f64>::read("f64", &[2, 3], &bytes).unwrap_err().to_string();
    assert_eq!(error, "saved state: the shape [2, 3] does not fit the expected type");
    let (x, y): (Mat<f64>, Mat<f64>) = (normal(1, &[2, 3]), normal(1, &[3, 2]));
    assert!(std::panic::catch_unwind(|| x.dot(&y)).is_err());
}

#[test]
fn components_are_read_and_written_in_the_order_of_the_bytes() {
    let mut x: Mat<f64> = normal(1, &[2, 3]);
    assert_eq!(x.dimension(), 6);
    x.set_component(3, 7.0);
    assert_eq!((x[(1, 1)].to_bits(), x.component(3).to_bits()), (7.0_f64.to_bits(), 7.0_f64.to_bits()));
    let bytes: Vec<u8> = (0..6).flat_map(|i| x.component(i).to_le_bytes()).collect();
    assert_eq!(bytes, bits(&x));
    assert!(std::panic::catch_unwind(|| vec![1.0, 2.0].component(2)).is_err());
}

#[test]
fn json_contains_plain_numbers_that_other_programs_can_read() {
    let leaf = Leaf { x: vec![0.1_f32, f32::NAN, f32::NEG_INFINITY] };
    let json: serde_json::Value = serde_json::to_value(leaf).unwrap();
    assert_eq!(json["x"]["values"], serde_json::json!([f64::from(0.1_f32), "NaN", "-inf"]));
    assert_eq!((&json["x"]["scalar"], &json["x"]["shape"]), (&"f32".into(), &serde_json::json!([3])));
    // Another program may write whole numbers and no checksum.
    let written = r#"{"x": {"scalar": "f64", "shape": [2], "values": [1, -2.5]}}"#;
    assert_eq!(serde_json::from_str::<Leaf<Vec<f64>>>(written).unwrap().x, [1.0, -2.5]);
    let word = written.replace("-2.5", "\"two\"");
    let error = serde_json::from_str::<Leaf<Vec<f64>>>(&word).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("\"two\" is not a number"), "{error}");
}

#[test]
fn a_changed_number_is_an_error() {
    let json = serde_json::to_string(&Leaf { x: vec![0.1, 0.2] }).unwrap();
    let changed = json.replace("0.2", "0.20000000000000004");
    assert_ne!(json, changed);
    let error = serde_json::from_str::<Leaf<Vec<f64>>>(&changed).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("`float_roundtrip`"), "{error}");
}

#[test]
fn sums_over_f32_are_computed_in_f64() {
    let ones = vec![0.1_f32; 100_000];
    let exact = f64::from(0.1_f32).powi(2) * 100_000.0;
    assert!((ones.norm_squared() - exact).abs() < 1e-11 * exact);
}
