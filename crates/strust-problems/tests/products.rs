//! Products with the curvature of a sample do not allocate after the first one of the largest batch.

use allocation_counter::measure;
use strust::{objective::ProductKind, prelude::*};
use strust_problems::{Activation, Autoencoder, Factorization, Logistic, Mlp, Problem, SubspaceFit, digits};

fn allocates_nothing<P: Problem>(mut f: P, kinds: &[ProductKind]) {
    let (x, v, n) = (f.start(0), f.start(1), f.terms());
    let mut product = x.clone();
    let samples = [Sample::range(5..n / 2), Sample::range(0..1), Sample::range(0..n)];
    for &kind in kinds {
        assert!(f.curvature_product(kind, &x, &samples[2], &v, &mut product));
        let count = measure(|| {
            for sample in &samples {
                f.curvature_product(kind, &x, sample, &v, &mut product);
            }
        });
        assert_eq!(count.count_total, 0, "{}, {kind:?}", std::any::type_name::<P>());
    }
}

#[test]
fn after_the_largest_batch_products_do_not_allocate() {
    let both = [ProductKind::Hessian, ProductKind::GaussNewton];
    let (train, _) = digits::load().unwrap();
    for (hidden, activation) in [(&[][..], Activation::Relu), (&[40, 20], Activation::Tanh)] {
        allocates_nothing(Mlp::<f32>::new(&train, None, hidden, activation).unwrap(), &both);
    }
    allocates_nothing(Autoencoder::<f64>::new(train.features(), None, &[9, 4], Activation::Tanh).unwrap(), &both);
    allocates_nothing(Factorization::exact(40, 30, 2, 4, 0).unwrap(), &both);
    allocates_nothing(SubspaceFit::<f64>::spiked(30, 3, 40, 0.1, 0).unwrap(), &both);
    allocates_nothing(Logistic::separable(60, 9, 0.1, 0).unwrap(), &both);
}
