//! Checks the contract of a vector against the library's `Vec` of the same type.

use serde::{Deserialize, Serialize};
use strust::{
    saved::vector as saved,
    vector::{Elementwise, Vector},
};
use strust_torch::{Component, Flat};

#[derive(Serialize, Deserialize)]
#[serde(bound = "V: Vector")]
struct Leaf<V> {
    #[serde(with = "saved")]
    x: V,
}

fn bits<V: Vector>(x: &V) -> Vec<u8> {
    let mut out = Vec::new();
    x.write(&mut out);
    out
}

/// The same irregular numbers as a `Flat` and as a `Vec`.
fn both<T: Component>(seed: usize, n: usize) -> (Flat<T>, Vec<T>) {
    let values: Vec<f64> = (0..n).map(|i| ((seed * 1000 + i) as f64 * 0.7).sin() * 3.0).collect();
    (Flat::from_slice(&values), values.iter().map(|&v| T::from_f64(v)).collect())
}

fn assert_near<T: Component>(what: &str, x: &Flat<T>, reference: &[T]) {
    for (i, (x, &r)) in x.to_vec().into_iter().zip(reference).enumerate() {
        let r: f64 = r.into();
        assert!((x - r).abs() <= 8.0 * T::EPSILON * (1.0 + r.abs()), "{what}, component {i}: {x} against {r}");
    }
}

fn operations_agree<T: Component>() {
    for n in [0, 1, 7, 33] {
        let ((x, xs), (y, ys), (z, zs)) = (both::<T>(1, n), both::<T>(2, n), both::<T>(3, n));
        let check = |what: &str, f: &dyn Fn(&mut Flat<T>), g: &dyn Fn(&mut Vec<T>)| {
            let (mut out, mut outs) = (z.clone(), zs.clone());
            f(&mut out);
            g(&mut outs);
            assert_near(what, &out, &outs);
        };
        check("set_sum", &|o| o.set_sum(&x, -0.75, &y), &|o| o.set_sum(&xs, -0.75, &ys));
        check("scale_add", &|o| o.scale_add(1.5, -0.75, &x), &|o| o.scale_add(1.5, -0.75, &xs));
        check("add", &|o| o.add(0.3, &x), &|o| o.add(0.3, &xs));
        check("squares", &|o| o.scale_add_squares(0.9, 0.1, &x), &|o| o.scale_add_squares(0.9, 0.1, &xs));
        let (mut s, mut ss) = (y.zeros_like(), ys.zeros_like());
        s.scale_add_squares(0.0, 1.0, &y);
        ss.scale_add_squares(0.0, 1.0, &ys);
        check("ratio", &|o| o.add_ratio(-0.5, &x, 4.0, &s, 0.5), &|o| o.add_ratio(-0.5, &xs, 4.0, &ss, 0.5));
        check("zero", &Vector::set_zero, &Vector::set_zero);
        assert!((x.dot(&y) - xs.dot(&ys)).abs() <= 1e-14 * (1.0 + n as f64));
        assert!((x.norm() - xs.norm()).abs() <= 1e-14 * (1.0 + n as f64));
        assert_eq!(x.dot(&y).to_bits(), y.dot(&x).to_bits());
        assert_eq!((x.shape(), bits(&x)), (vec![n], bits(&xs)));
    }
}

#[test]
fn every_operation_agrees_with_the_librarys_vectors() {
    operations_agree::<f32>();
    operations_agree::<f64>();
}

#[test]
fn saving_and_loading_keeps_every_bit() {
    let odd = [f64::from_bits(0xfff8_0000_dead_beef), -0.0, 5e-324, f64::NEG_INFINITY, f64::MAX, 0.1];
    let x = Flat::<f64>::from_slice(&odd);
    assert_eq!(bits(&x), bits(&odd.to_vec()));
    let text = serde_json::to_string(&Leaf { x: x.clone() }).unwrap();
    let back: Leaf<Flat<f64>> = serde_json::from_str(&text).unwrap();
    assert_eq!(bits(&back.x), bits(&x));
    // Each of the two vectors reads what the other one wrote.
    assert_eq!(serde_json::from_str::<Leaf<Vec<f64>>>(&text).map(|leaf| bits(&leaf.x)).unwrap(), bits(&x));
}

#[test]
fn saved_data_that_does_not_fit_is_refused_with_a_message() {
    let error = |scalar: &str, shape: &[usize], bytes: &[u8]| {
        Flat::<f32>::read(scalar, shape, bytes).map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(error("f64", &[1], &[0; 8]), "saved state: its components are f64, but f32 was expected");
    assert_eq!(error("f32", &[2], &[0; 9]), "saved state: 9 bytes of f32 do not fill the shape [2]");
    assert_eq!(error("f32", &[1, 2], &[0; 8]), "saved state: the shape [1, 2] does not fit the expected type");
    assert!(error("f32", &[usize::MAX, 2], &[0; 8]).contains("do not fill"));
}

#[test]
fn a_vector_of_one_component_is_not_broadcast() {
    let (one, two) = (Flat::<f32>::from_slice(&[1.0]), Flat::<f32>::from_slice(&[1.0, 2.0]));
    let panics = |f: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_err();
    assert!(panics(&|| two.clone().copy_from(&one)));
    assert!(panics(&|| two.clone().add(1.0, &one)));
    assert!(panics(&|| two.clone().set_sum(&two, 1.0, &one)));
    assert!(panics(&|| assert!(two.dot(&one) > 0.0)));
}

#[test]
fn sums_of_f32_are_computed_in_f64() {
    let tenths = Flat::<f32>::from_slice(&vec![f64::from(0.1_f32); 100_000]);
    let exact = f64::from(0.1_f32).powi(2) * 100_000.0;
    assert!((tenths.norm_squared() - exact).abs() < 1e-11 * exact);
}
