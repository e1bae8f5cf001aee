//! `Auto` on problems of every family: it never blows up, and it does not depend on the scale of f or of x.

use faer::Mat;
use rand_core::Rng;
use strust::{
    objective::{Evaluation, ObjectiveWrapper, Scaled, full_value},
    prelude::*,
    sample::generator,
    vector::{Elementwise, Real},
};
use strust_problems::{
    Activation, Autoencoder, Classified, Factorization, Features, Labeled, LeastSquares, Logistic, Mlp, Problem,
    Softmax,
};

/// Random numbers of one problem.
struct Draw(rand_chacha::ChaCha8Rng);

impl Draw {
    fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
    fn between(&mut self, low: usize, high: usize) -> usize {
        low + (self.uniform() * (high - low + 1) as f64) as usize
    }
    fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.between(0, choices.len() - 1)]
    }
    /// A number between two others, evenly on a log scale.
    fn log_between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.uniform())
    }
    /// Points in `classes` clouds, with wrong labels.
    fn classified(&mut self, n: usize, d: usize, classes: usize, seed: u64) -> Classified {
        let spread = self.log_between(0.1, 3.0);
        let labels: Vec<usize> = (0..n).map(|i| i % classes).collect();
        let mut cloud =
            |c: usize, j: usize| ((c * 31 + j * 17) % 7) as f64 - 3.0 + spread * 3.46 * (self.uniform() - 0.5);
        let features = Mat::from_fn(n, d, |i, j| cloud(labels[i], j));
        let wrong = self.choose(&[0.0, 0.0, 0.1, 0.4]);
        Classified::new(features, labels, classes).unwrap().with_wrong_labels(wrong, seed).unwrap()
    }
}

/// What every run is checked for.
struct Case {
    seed: u64,
    batch: usize,
    epochs: u64,
}

/// Runs `Auto` and returns a complaint if the answer is worse than the start, or the run broke down.
fn run<P>(problem: &mut P, case: &Case, family: &str) -> Option<String>
where
    P: Problem,
{
    let Case { seed, batch, epochs } = *case;
    let start = problem.start(seed);
    let before = full_value(problem, &start);
    let batch = batch.min(problem.terms());
    let report =
        minimize(problem).method(Auto::default()).batch(batch).seed(seed).stop(Stop::epochs(epochs)).start(start);
    let report = report.expect("the setup is right");
    let after = report.last.value;
    let good = report.reason != StopReason::Breakdown && after <= before;
    (!good).then(|| {
        format!("{family} {seed}: batch {batch}, {epochs} epochs: {before:.3e} → {after:.3e}, {}", report.reason)
    })
}

fn least_squares<T: Real>(draw: &mut Draw, case: &Case) -> Option<String> {
    let (n, d) = (draw.between(5, 120), draw.between(2, 40));
    let (condition, noise) = (draw.log_between(1.0, 1e8), draw.choose(&[0.0, 0.1, 1.0]));
    let mut f = LeastSquares::<T>::conditioned(n, d, condition, noise, case.seed).unwrap();
    run(&mut f, case, &format!("least squares {n}×{d}, condition {condition:.1e}, noise {noise}"))
}

fn network<T: Real>(draw: &mut Draw, case: &Case) -> Option<String> {
    let (n, d) = (draw.between(20, 100), draw.between(2, 8));
    let data = draw.classified(n, d, 3, case.seed);
    let activation = draw.choose(&[Activation::Relu, Activation::Tanh]);
    let hidden = [draw.between(2, 24), draw.between(2, 12)];
    if draw.uniform() < 0.3 {
        let mut f = Autoencoder::<T>::new(data.features(), None, &hidden, activation).unwrap();
        return run(&mut f, case, "auto-encoder");
    }
    let mut f = Mlp::<T>::new(&data, None, &hidden[..draw.between(1, 2)], activation).unwrap();
    run(&mut f, case, "network")
}

fn random_problem(seed: u64) -> Option<String> {
    let mut draw = Draw(generator(seed, 7));
    let case = Case { seed, batch: draw.choose(&[1, 1, 2, 8, 32, usize::MAX]), epochs: draw.between(1, 30) as u64 };
    let (n, d) = (draw.between(20, 150), draw.between(2, 30));
    match seed % 8 {
        0 => least_squares::<f64>(&mut draw, &case),
        1 => least_squares::<f32>(&mut draw, &case),
        2 => network::<f64>(&mut draw, &case),
        3 => network::<f32>(&mut draw, &case),
        4 => {
            let exponent = draw.choose(&[0.5, 1.0, 2.0]);
            let f = Logistic::rare(n, d, exponent, seed).unwrap();
            run(&mut f.with_wrong_labels(draw.choose(&[0.0, 0.2]), seed).unwrap(), &case, "rare features")
        }
        5 => {
            let data = draw.classified(n, d, 2, seed);
            run(&mut Logistic::new(labeled(&data), draw.choose(&[0.0, 0.01])).unwrap(), &case, "logistic")
        }
        6 => {
            let data = draw.classified(n, d, 4, seed);
            run(&mut Softmax::new(labeled(&data), 0.0).unwrap(), &case, "softmax")
        }
        _ => {
            let rank = draw.between(1, 3);
            let f = Factorization::exact(n, d.max(6), rank, draw.between(rank, 6), seed);
            run(&mut f.unwrap(), &case, "factorization")
        }
    }
}

fn labeled(data: &Classified) -> Labeled {
    Labeled {
        features: Features::Dense(data.features().clone()),
        labels: data.labels().iter().map(|&label| label as f64).collect(),
    }
}

#[test]
fn five_hundred_random_problems_end_below_their_start_and_never_break_down() {
    let complaints: Vec<String> = (0..500).filter_map(random_problem).collect();
    assert!(complaints.is_empty(), "{} of 500:\n{}", complaints.len(), complaints.join("\n"));
}

/// A problem with x measured in other units.
struct InUnits<P: Problem> {
    inner: P,
    unit: f64,
    /// The point in the units of the problem.
    point: P::Point,
}

impl<P: Problem> ObjectiveWrapper for InUnits<P> {
    type Inner = P;
    fn wrapped(&self) -> &P {
        &self.inner
    }
    fn wrapped_mut(&mut self) -> &mut P {
        &mut self.inner
    }
    fn value(this: &mut Self, x: &P::Point, sample: &Sample) -> Evaluation {
        this.point.copy_from(x);
        this.point.scale(this.unit.recip());
        this.inner.value(&this.point, sample)
    }
    fn value_and_gradient(this: &mut Self, x: &P::Point, sample: &Sample, gradient: &mut P::Point) -> Evaluation {
        this.point.copy_from(x);
        this.point.scale(this.unit.recip());
        let f = this.inner.value_and_gradient(&this.point, sample, gradient);
        gradient.scale(this.unit.recip());
        f
    }
}

/// The answer after some steps on a problem multiplied by `scale`, with x measured in `unit`, in the units of the
/// problem.
fn answer<P: Problem>(inner: P, scale: f64, unit: f64) -> P::Point {
    let point = inner.start(3);
    let mut start = point.clone();
    start.scale(unit);
    let mut f = Scaled::new(InUnits { inner, unit, point }, scale);
    let report = minimize(&mut f).method(Auto::default()).batch(8).stop(Stop::steps(200)).start(start).unwrap();
    let mut x = report.state.into_point();
    x.scale(unit.recip());
    x
}

fn is_free_of_units<P: Problem<Point: Elementwise + PartialEq>>(problem: impl Fn() -> P) {
    let plain = answer(problem(), 1.0, 1.0);
    assert!(plain != problem().start(3));
    for power in [-21, -20, 3, 20] {
        let unit = 2.0_f64.powi(power);
        assert!(answer(problem(), unit, 1.0) == plain, "the loss times 2^{power}");
        assert!(answer(problem(), 1.0, unit) == plain, "x in units of 2^{power}");
        assert!(answer(problem(), 2.0_f64.powi(9), unit) == plain, "the loss times 2^9, x in units of 2^{power}");
    }
}

#[test]
fn multiplying_the_loss_or_x_by_a_power_of_two_changes_no_bit() {
    let digits = || strust_data::digits::load().unwrap().0;
    is_free_of_units(|| LeastSquares::<f64>::conditioned(100, 20, 1e4, 0.1, 0).unwrap());
    is_free_of_units(|| Logistic::rare(300, 50, 1.0, 0).unwrap());
    is_free_of_units(|| Softmax::new(labeled(&digits()), 0.0).unwrap());
    is_free_of_units(|| Mlp::<f64>::new(&digits(), None, &[16], Activation::Tanh).unwrap());
    is_free_of_units(|| Factorization::exact(60, 20, 3, 5, 0).unwrap());
}
