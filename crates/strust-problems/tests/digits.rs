//! STR with its defaults trains a network on the handwritten digits, without a learning rate.

use allocation_counter::measure;
use strust::prelude::*;
use strust_problems::{Activation, Mlp, Problem, Split, digits};

/// A debug build takes seconds per run.
const SEEDS: u64 = if cfg!(debug_assertions) { 2 } else { 20 };

#[test]
fn str_with_its_defaults_trains_an_over_parameterized_network() {
    let (train, test) = digits::load().unwrap();
    let mut f = Mlp::<f32>::new(&train, Some(&test), &[1024], Activation::Relu).unwrap();
    assert!(f.parameters() > 50 * f.terms());
    let mut accuracies: Vec<f64> = (0..SEEDS)
        .map(|seed| {
            let mut sampler = Epochs::new(f.terms(), 32, seed).unwrap();
            let start = f.start(seed);
            let mut method = Str::new(StrConfig::default()).unwrap();
            let report =
                minimize(&mut f).method(&mut method).sampler(&mut sampler).stop(Stop::epochs(25)).start(start).unwrap();
            assert!(report.last.value < 1e-2, "seed {seed}: loss {}", report.last.value);
            assert_eq!(f.accuracy(report.point(), Split::Train), Some(1.0), "seed {seed} does not interpolate");
            f.test_metric(report.point()).unwrap()
        })
        .collect();
    accuracies.sort_by(f64::total_cmp);
    assert!(accuracies[0] > 0.965 && accuracies[accuracies.len() / 2] > 0.97, "{accuracies:?}");
}

#[test]
fn after_the_largest_batch_evaluations_and_accuracies_do_not_allocate() {
    let (train, test) = digits::load().unwrap();
    for (hidden, activation) in [
        (&[][..], Activation::Relu),
        (&[16], Activation::Relu),
        (&[40, 80], Activation::Tanh),
        (&[30, 9, 20], Activation::Relu),
    ] {
        let mut f = Mlp::<f32>::new(&train, Some(&test), hidden, activation).unwrap();
        let (x, largest) = (f.start(0), Sample::range(0..256));
        let mut g = x.clone();
        f.value_and_gradient(&x, &largest, &mut g);
        let samples = [Sample::range(5..64), Sample::range(0..1), Sample::range(300..556)];
        let count = measure(|| {
            for sample in &samples {
                f.value(&x, sample);
                f.value_and_gradient(&x, sample, &mut g);
                f.test_metric(&x);
            }
        });
        assert_eq!(count.count_total, 0, "{hidden:?}");
    }
}
