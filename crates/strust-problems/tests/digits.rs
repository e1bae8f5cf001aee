//! What training on the handwritten digits must show, without a learning rate and with the defaults.

use allocation_counter::measure;
use strust::prelude::*;
use strust_problems::{Activation, Classifier, Mlp, Problem, Split, digits};

const BATCH: usize = 32;

/// A network with far more parameters than the 1438 data points it is trained on.
fn network() -> Mlp<f32> {
    let (train, test) = digits::load().unwrap();
    let f = Mlp::new(&train, Some(&test), &[512], Activation::Relu).unwrap();
    assert!(f.parameters() > 20 * f.terms());
    f
}

#[test]
fn str_with_its_defaults_trains_an_over_parameterised_network_on_every_seed() {
    let mut f = network();
    for seed in 0..3 {
        let mut sampler = Epochs::new(f.terms(), BATCH, seed).unwrap();
        let start = f.start(seed);
        let mut method = Str::new(StrConfig::default()).unwrap();
        let report = minimize(&mut f, &mut method, &mut sampler, start, &Stop::epochs(50)).unwrap();
        assert!(report.last.value < 5e-3, "seed {seed}: loss {}", report.last.value);
        assert_eq!(f.accuracy(report.point(), Split::Train), Some(1.0), "seed {seed}: it interpolates");
        let accuracy = f.test_accuracy(report.point()).unwrap();
        assert!(accuracy > 0.97, "seed {seed}: {accuracy}");
    }
}

#[test]
fn after_the_first_batch_neither_steps_nor_smaller_batches_nor_accuracies_allocate() {
    for activation in [Activation::Relu, Activation::Tanh] {
        let (train, test) = digits::load().unwrap();
        let mut f = Mlp::<f32>::new(&train, Some(&test), &[40, 20], activation).unwrap();
        let (x, all) = (f.start(0), Sample::range(0..256));
        let mut g = x.clone();
        f.value_and_gradient(&x, &all, &mut g);
        let pieces = [Sample::range(5..64), Sample::range(0..1), Sample::range(300..556)];
        let count = measure(|| {
            for sample in &pieces {
                f.value(&x, sample);
                f.value_and_gradient(&x, sample, &mut g);
                f.test_accuracy(&x);
            }
        });
        assert_eq!(count.count_total, 0, "{activation:?}");
    }
}
