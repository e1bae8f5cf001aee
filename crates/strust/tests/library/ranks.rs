//! Several ranks make the run of one process, and none of them waits forever. The contract suite in `methods.rs` has every
//! method on several ranks.

use crate::common::{LeastSquares, Targets, bits, distance, normal, normals};
use std::{
    ops::ControlFlow,
    time::{Duration, Instant},
};
use strust::{
    ErrorKind,
    constraints::Affine,
    methods::Averaged,
    objective::{Evaluation, ObjectiveWrapper, Sliced},
    prelude::*,
    radius::Verdict,
    ranks::{Alone, Delayed, Group, Reduction, RowShare, Sharded, ThreadRank, Traffic, gather_bytes, on_threads},
    samplers::Sampler,
    saved::fingerprint,
    schedule::Schedule,
};
use strust_baselines::{Adam, Sgd};

const LIMIT: Duration = Duration::from_secs(60);
const SIZES: [usize; 5] = [1, 2, 3, 4, 7];

/// The final point of every rank. Batches of 5 out of 13 terms do not divide by the ranks; of 7 ranks, two have no term.
fn points<F, M>(size: usize, f: impl Fn() -> F + Sync, method: impl Fn() -> M + Sync, steps: u64) -> Vec<Vec<f64>>
where
    F: Objective<Point = Vec<f64>>,
    M: Method<Sharded<F, ThreadRank>>,
{
    on_threads(size, LIMIT, |rank| {
        let mut f = Sharded::new(f(), rank);
        let batch = f.terms().min(5);
        let start = vec![0.5; 7];
        let report =
            minimize(&mut f).method(method()).batch(batch).seed(3).stop(Stop::steps(steps)).start(start).unwrap();
        // StrSqp may converge earlier.
        assert_eq!(report.breakdown, None);
        report.state.into_point()
    })
}

fn equals_one_process<F, M>(f: impl Fn() -> F + Sync, method: impl Fn() -> M + Sync)
where
    F: Objective<Point = Vec<f64>>,
    M: Method<Sharded<F, ThreadRank>> + Method<F>,
{
    let mut plain = f();
    let batch = plain.terms().min(5);
    let run = minimize(&mut plain).method(method()).batch(batch).seed(3).stop(Stop::steps(1000));
    let report = run.start(vec![0.5; 7]).unwrap();
    let expected = report.point();
    for size in SIZES {
        let found = points(size, &f, &method, 1000);
        assert!(found.iter().all(|point| bits(point) == bits(&found[0])), "the ranks of {size} must agree bit for bit");
        let error = distance(&found[0], expected) / expected.norm();
        assert!(error <= 1e-12, "{size} ranks: {error:e}");
        assert!(size > 1 || bits(&found[0]) == bits(expected), "one rank must change no bit");
    }
}

fn squares() -> LeastSquares<f64> {
    LeastSquares::interpolating(3, 13, &normals(3, 7))
}
fn targets() -> Targets<Vec<f64>> {
    Targets::random(1, 13, &[7], 0.3, 1.0)
}
fn affine() -> Affine<Vec<f64>> {
    Affine::new(vec![normal(20, &[7]), normal(21, &[7])], vec![0.5, -1.0]).unwrap()
}

#[test]
fn a_thousand_steps_on_any_number_of_ranks_equal_one_process_to_rounding() {
    equals_one_process(squares, Str::default);
    equals_one_process(squares, Auto::default);
    equals_one_process(targets, Sgd::default);
    equals_one_process(targets, || Averaged::of(Adam::default()));
    equals_one_process(targets, || StrSqp::new(StrSqpConfig::default(), affine()).unwrap());
}

#[test]
fn fewer_terms_than_ranks_are_right() {
    equals_one_process(|| Targets::random(1, 2, &[7], 0.3, 1.0), Sgd::default);
    equals_one_process(|| Targets::random(1, 1, &[7], 0.3, 1.0), Str::default);
}

#[test]
fn the_same_number_of_ranks_gives_the_same_bits_again() {
    for size in SIZES {
        assert_eq!(points(size, targets, Str::default, 100), points(size, targets, Str::default, 100));
    }
}

/// The sum of the shares is the mean of the sample, for any size of it.
#[test]
fn shares_of_every_size_add_up_to_the_sample() {
    let x: Vec<f64> = normal(9, &[7]);
    for size in SIZES {
        for reduction in [Reduction::Fast, Reduction::FixedOrder { block: 3 }, Reduction::FixedOrder { block: 0 }] {
            for terms in 1..=13 {
                let sample = Sample::new((0..terms).map(|i| (5 * i) % 13).collect(), 1);
                let mut expected = vec![0.0; 7];
                let truth = squares().value_and_gradient(&x, &sample, &mut expected);
                for (f, g) in on_threads(size, LIMIT, |rank| {
                    let (mut f, mut g) = (Sharded::new(squares(), rank).reduction(reduction), vec![f64::NAN; 7]);
                    let value = f.value(&x, &sample);
                    let with_gradient = f.value_and_gradient(&x, &sample, &mut g);
                    assert_eq!(value, with_gradient);
                    (value, g)
                }) {
                    assert!((f.value - truth.value).abs() <= 1e-15 * truth.value, "{terms} terms, {size} ranks");
                    assert!(distance(&g, &expected) <= 1e-14 * expected.norm(), "{terms} terms, {size} ranks");
                    assert!(f.rounding > 0.0 && f.rounding < 1e-10);
                }
            }
        }
    }
}

/// f32 gradients are added in f64 and rounded once.
#[test]
fn matrices_and_single_precision_keep_their_shape_and_order() {
    let f = || Targets::<faer::Mat<f32>>::random(2, 13, &[6, 2], 0.3, 3.0);
    let (x, sample) = (normal::<faer::Mat<f32>>(9, &[6, 2]), Sample::range(0..13));
    let mut expected = x.zeros_like();
    f().value_and_gradient(&x, &sample, &mut expected);
    for g in on_threads(3, LIMIT, |rank| {
        let mut g = x.zeros_like();
        Sharded::new(f(), rank).value_and_gradient(&x, &sample, &mut g);
        g
    }) {
        assert!(distance(&g, &expected) < 1e-6 * expected.norm());
    }
}

/// Returns NaN for some of the values without a gradient, if it is `here`.
struct Faulty {
    inner: Targets<Vec<f64>>,
    here: bool,
    calls: std::ops::Range<u64>,
    made: u64,
}

impl ObjectiveWrapper for Faulty {
    type Inner = Targets<Vec<f64>>;
    fn wrapped(&self) -> &Self::Inner {
        &self.inner
    }
    fn wrapped_mut(&mut self) -> &mut Self::Inner {
        &mut self.inner
    }
    fn value(this: &mut Self, x: &Vec<f64>, sample: &Sample) -> Evaluation {
        this.made += 1;
        let f = this.inner.value(x, sample);
        let bad = this.here && this.calls.contains(&(this.made - 1));
        if bad { Evaluation { value: f64::NAN, ..f } } else { f }
    }
}

#[test]
fn nan_on_one_rank_rejects_the_step_on_all_and_costs_the_same_collectives() {
    let runs = on_threads(3, LIMIT, |rank| {
        let here = rank.rank() == 1;
        let mut f = Sharded::new(Faulty { inner: targets(), here, calls: 4..7, made: 0 }, rank);
        let (mut method, mut sampler, mut sample) = (Str::default(), Epochs::new(13, 5, 1).unwrap(), Sample::default());
        let mut state = method.init(&mut f, vec![2.0; 7]).unwrap();
        let mut seen = Vec::new();
        for k in 0..12 {
            let before = f.traffic();
            sampler.draw(k, &mut sample);
            let verdict = method.step(&mut f, &mut state, &sample).unwrap().verdict;
            let Traffic { collectives, numbers } = f.traffic();
            seen.push((verdict, collectives - before.collectives, numbers - before.numbers));
        }
        (seen, fingerprint(&state))
    });
    for (seen, state) in &runs {
        assert_eq!((seen, state), (&runs[0].0, &runs[0].1));
        for (k, &(verdict, collectives, numbers)) in seen.iter().enumerate() {
            assert!(!(4..7).contains(&k) || verdict == Verdict::Rejected, "step {k}");
            // A gradient and a trial, each with value, rounding and two numbers for the tag.
            assert_eq!((collectives, numbers), (2, (7 + 4) + 4), "step {k}");
        }
        assert!(seen.iter().any(|step| step.0 == Verdict::Accepted));
    }
}

#[test]
fn nan_in_the_data_of_one_rank_is_the_same_error_on_all() {
    let errors = on_threads(4, LIMIT, |rank| {
        let mut f = targets();
        if rank.rank() == 2 {
            f.centers.iter_mut().for_each(|center| center[0] = f64::NAN);
        }
        minimize(&mut Sharded::new(f, rank)).start(vec![0.0; 7]).map(|_| ()).unwrap_err()
    });
    for error in errors {
        assert!(matches!(error, Error::NonFiniteStart { value } if value.is_nan()), "{error}");
    }
}

#[test]
fn a_whole_run_sends_what_its_documentation_states() {
    let steps = 200;
    for traffic in on_threads(2, LIMIT, |rank| {
        let mut f = Sharded::new(targets(), rank);
        let report =
            minimize(&mut f).method(Str::default()).batch(5).stop(Stop::steps(steps)).start(vec![0.0; 7]).unwrap();
        (f.traffic(), report.evaluations, report.measurements)
    }) {
        let (Traffic { collectives, numbers }, evaluations, measurements) = traffic;
        // Checks after the steps 1, 65, 129 and 193; 13 terms are one piece of a measurement.
        let (gradients, checks) = (evaluations.gradients + measurements, 4);
        assert_eq!(collectives, gradients + evaluations.values + steps + checks);
        assert_eq!(numbers, gradients * (7 + 4) + evaluations.values * 4 + steps * 2 + checks * 2);
    }
}

/// An objective that announces its gradient in pieces, from the end; it may forget one.
struct InPieces(Targets<Vec<f64>>);

impl ObjectiveWrapper for InPieces {
    type Inner = Targets<Vec<f64>>;
    fn wrapped(&self) -> &Self::Inner {
        &self.0
    }
    fn wrapped_mut(&mut self) -> &mut Self::Inner {
        &mut self.0
    }
    fn sliced(this: &mut Self) -> Option<&mut dyn Sliced<Point = Vec<f64>>> {
        Some(this)
    }
}

impl Sliced for InPieces {
    fn slices(&self) -> Vec<usize> {
        vec![6, 5, 3, 1]
    }
    fn value_and_gradient_in_slices(
        &mut self,
        x: &Vec<f64>,
        sample: &Sample,
        gradient: &mut Vec<f64>,
        ready: &mut dyn FnMut(&Vec<f64>, usize),
    ) -> Evaluation {
        let mut whole = x.zeros_like();
        let f = self.0.value_and_gradient(x, sample, &mut whole);
        gradient.fill(f64::NAN);
        for (range, announced) in [(6..7, true), (5..6, false), (3..5, true), (0..3, false)] {
            gradient[range.clone()].copy_from_slice(&whole[range.clone()]);
            if announced {
                ready(gradient, range.start);
            }
        }
        f
    }
}

#[test]
fn a_gradient_in_slices_has_the_bits_of_one_sum_on_every_rank() {
    // Of 7 ranks, two have no term of a batch of 5.
    for size in SIZES {
        let run = |least: usize| {
            on_threads(size, LIMIT, |rank| {
                let group = Delayed::new(rank, Duration::from_micros(50));
                let mut f = Sharded::new(InPieces(targets()), group).slices_of(least);
                let run = minimize(&mut f).method(Str::default()).batch(5).seed(3).stop(Stop::steps(50));
                let report = run.start(vec![0.5; 7]).unwrap();
                assert_eq!(report.breakdown, None);
                let gradients = report.evaluations.gradients + report.measurements;
                (bits(&report.state.into_point()), f.traffic(), gradients)
            })
        };
        let whole = run(usize::MAX);
        // With at least 2 numbers the slices are 5..7, 3..5, 1..3 and the rest.
        for (least, slices) in [(1, 5), (2, 4), (3, 2)] {
            for ((point, traffic, gradients), (expected, of_whole, _)) in run(least).iter().zip(&whole) {
                assert_eq!(point, expected, "{size} ranks, slices of {least}");
                assert_eq!(traffic.numbers, of_whole.numbers);
                let more = if size == 1 { 0 } else { gradients * (slices - 1) };
                assert_eq!(traffic.collectives, of_whole.collectives + more);
            }
        }
    }
}

fn ranks_of(error: &Error) -> &[usize] {
    match error {
        Error::Ranks { ranks, .. } => ranks,
        other => panic!("{other}"),
    }
}

#[test]
fn a_rank_with_another_state_is_named_on_every_rank() {
    for size in [3, 4, 7] {
        let errors = on_threads(size, LIMIT, |rank| {
            let x = if rank.rank() == 2 { vec![1.0 + f64::EPSILON; 7] } else { vec![1.0; 7] };
            let report = minimize(&mut Sharded::new(targets(), rank)).method(Sgd::default()).start(x).unwrap();
            assert_eq!((report.reason, report.steps), (StopReason::Breakdown, 1), "found after the first step");
            report.breakdown.unwrap()
        });
        for error in errors {
            assert_eq!((ranks_of(&error), error.kind()), ([2].as_slice(), ErrorKind::Ranks));
            assert!(error.to_string().starts_with("rank 2: the state after step 1 differs"), "{error}");
        }
    }
}

#[test]
fn a_rank_that_goes_wrong_later_is_found_at_the_next_comparison() {
    let reports = on_threads(3, LIMIT, |rank| {
        // The rate of rank 0 changes after 30 steps.
        let schedule = if rank.rank() == 0 { Schedule::cosine(30) } else { Schedule::cosine(31) };
        let mut f = Sharded::new(targets(), rank).check_every(10);
        minimize(&mut f).method(Sgd::default().schedule(schedule)).batch(5).start(vec![0.0; 7]).unwrap()
    });
    for report in reports {
        assert_eq!(ranks_of(&report.breakdown.unwrap()), [0]);
        assert!(report.steps <= 11, "{}", report.steps);
    }
}

#[test]
fn a_rank_with_another_seed_or_another_stopping_rule_is_named_at_once() {
    let errors = on_threads(3, LIMIT, |rank| {
        let seed = u64::from(rank.rank() == 1);
        minimize(&mut Sharded::new(targets(), rank)).batch(5).seed(seed).start(vec![0.0; 7]).map(|_| ()).unwrap_err()
    });
    for error in errors {
        assert_eq!(ranks_of(&error), [1]);
        assert!(error.to_string().contains("another sample"), "{error}");
    }
    let reports = on_threads(4, LIMIT, |rank| {
        let steps = if rank.rank() == 3 { 5 } else { 50 };
        let mut f = Sharded::new(targets(), rank);
        let run = minimize(&mut f).method(Sgd::default()).batch(5).stop(Stop::steps(steps));
        run.start(vec![0.0; 7]).unwrap()
    });
    for report in reports {
        // The state before the failure is kept.
        assert_eq!((report.state.k, report.reason), (5, StopReason::Breakdown));
        assert_eq!(ranks_of(&report.breakdown.unwrap()), [3]);
    }
}

#[test]
fn a_rank_that_ends_or_stalls_ends_the_others_in_time_with_its_name() {
    let began = Instant::now();
    let errors = on_threads(3, LIMIT, |rank| {
        let stop = rank.rank() == 1;
        let report =
            minimize(&mut Sharded::new(targets(), rank))
                .method(Str::default())
                .start(vec![0.0; if stop { 8 } else { 7 }]);
        report.map(|_| ()).unwrap_err()
    });
    assert!(matches!(errors[1], Error::Shape { .. }), "{}", errors[1]);
    for error in [&errors[0], &errors[2]] {
        assert_eq!(error.to_string(), "rank 1: ended while the others went on");
    }
    let limit = Duration::from_millis(200);
    let errors = on_threads(3, limit, |mut rank| {
        if rank.rank() == 2 {
            std::thread::sleep(Duration::from_secs(1));
        }
        rank.sum(&mut [1.0]).map(|()| rank.rank())
    });
    for error in &errors[..2] {
        assert_eq!(error.as_ref().unwrap_err().to_string(), "rank 2: did not answer within 200ms");
    }
    assert!(began.elapsed() < LIMIT / 2);
}

#[test]
fn an_observer_of_one_rank_and_a_limit_on_time_stop_all_ranks_at_the_same_step() {
    let steps = on_threads(3, LIMIT, |rank| {
        let mine = rank.rank();
        let stop = move |record: &StepRecord, _: &_| match (mine, record.k) {
            (2, 6) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        let report =
            minimize(&mut Sharded::new(targets(), rank)).method(Str::default()).observe(stop).start(vec![0.0; 7]);
        report.map(|report| (report.reason, report.steps)).unwrap()
    });
    assert_eq!(steps, [(StopReason::Observer, 7); 3]);
    let steps = on_threads(3, LIMIT, |rank| {
        // The clocks of the ranks start at different times.
        std::thread::sleep(Duration::from_millis(20 * rank.rank() as u64));
        let mut f = Sharded::new(targets(), rank);
        let run = minimize(&mut f).method(Str::default()).stop(Stop::wall_clock(Duration::from_millis(50)));
        let report = run.start(vec![0.0; 7]).unwrap();
        assert_eq!((report.reason, report.breakdown), (StopReason::WallClock, None));
        report.steps
    });
    assert!(steps[0] > 0 && steps.iter().all(|&count| count == steps[0]), "{steps:?}");
}

#[test]
fn a_group_adds_gathers_and_broadcasts_in_the_order_of_its_ranks() {
    fn check(mut rank: impl Group) {
        let (me, size) = (rank.rank(), rank.size());
        let mut numbers = [me as f64, f64::NAN, -0.0];
        rank.sum(&mut numbers).unwrap();
        assert_eq!(numbers[0].to_bits(), ((size * (size - 1) / 2) as f64).to_bits());
        assert!(numbers[1].is_nan() && numbers[2].is_sign_negative());
        let mut all = vec![7.0];
        rank.gather(&[me as f64, f64::INFINITY], &mut all).unwrap();
        assert_eq!(all, (0..size).flat_map(|r| [r as f64, f64::INFINITY]).collect::<Vec<_>>());
        let mut bytes = if me == 0 { b"verdict".to_vec() } else { Vec::new() };
        rank.broadcast(&mut bytes).unwrap();
        assert_eq!(bytes, b"verdict");
    }
    check(Alone);
    for size in SIZES {
        on_threads(size, LIMIT, check);
    }
}

#[test]
fn different_lengths_are_an_error_on_every_rank() {
    let errors = on_threads(3, LIMIT, |mut rank| {
        let mut numbers = vec![0.0; if rank.rank() == 1 { 2 } else { 3 }];
        rank.sum(&mut numbers).unwrap_err().to_string()
    });
    assert_eq!(errors, ["rank 1: brought 2 numbers where rank 0 brought 3"; 3]);
}

#[test]
fn a_fingerprint_sees_every_part_of_a_state() {
    let mut method = Auto::default();
    let state = method.init(&mut targets(), vec![0.0; 7]).unwrap();
    assert_eq!(fingerprint(&state), fingerprint(&state.clone()));
    assert_ne!(fingerprint(&state), fingerprint(&state.clone().with_point(vec![-0.0; 7])));
    assert_ne!(fingerprint(&(vec![1_u64], vec![2_u64])), fingerprint(&(vec![1_u64, 2], Vec::<u64>::new())));
    assert_ne!(fingerprint(&Some(0_u64)), fingerprint(&None::<u64>));
}

/// Every byte arrives, also those that are NaN as a number.
#[test]
fn bytes_of_any_length_are_gathered_bit_for_bit() {
    let bytes_of = |rank: usize| -> Vec<u8> { (0..rank * 7).map(|i| [0xff, 0x01, 0x7f, 0xf0][i % 4]).collect() };
    for size in SIZES {
        let expected: Vec<Vec<u8>> = (0..size).map(bytes_of).collect();
        for found in on_threads(size, LIMIT, |mut rank| {
            let mine = bytes_of(rank.rank());
            gather_bytes(&mut rank, &mine)
        }) {
            assert_eq!(found.as_ref(), Ok(&expected));
        }
    }
}

/// A rank's terms of another objective: term i of rank r is term iR + r.
struct OwnTerms<F> {
    whole: F,
    share: RowShare,
}

impl<F: Objective> Objective for OwnTerms<F> {
    type Point = F::Point;
    fn terms(&self) -> usize {
        self.share.count(self.whole.terms())
    }
    fn value(&mut self, x: &F::Point, sample: &Sample) -> Evaluation {
        let rows = sample.indices().iter().map(|&place| self.share.row(place)).collect();
        self.whole.value(x, &Sample::new(rows, sample.seed().unwrap_or(0)))
    }
    fn value_and_gradient(&mut self, x: &F::Point, sample: &Sample, gradient: &mut F::Point) -> Evaluation {
        let rows = sample.indices().iter().map(|&place| self.share.row(place)).collect();
        self.whole.value_and_gradient(x, &Sample::new(rows, sample.seed().unwrap_or(0)), gradient)
    }
}

fn dealt<F: Objective>(whole: F, rank: ThreadRank) -> Sharded<OwnTerms<F>, ThreadRank> {
    let (share, terms) = (RowShare::of(&rank), whole.terms());
    Sharded::dealt(OwnTerms { whole, share }, rank, (0..terms).map(|i| share.owner(i)))
}

fn dealt_equals_one_process<F, M>(f: impl Fn() -> F + Sync, method: impl Fn() -> M + Sync)
where
    F: Objective<Point = Vec<f64>>,
    M: Method<Sharded<OwnTerms<F>, ThreadRank>> + Method<F>,
{
    let mut plain = f();
    let batch = plain.terms().min(5);
    let run = minimize(&mut plain).method(method()).batch(batch).seed(3).stop(Stop::steps(1000));
    let report = run.start(vec![0.5; 7]).unwrap();
    let expected = report.point();
    for size in SIZES {
        let found = on_threads(size, LIMIT, |rank| {
            let mut f = dealt(f(), rank);
            let run = minimize(&mut f).method(method()).batch(batch).seed(3).stop(Stop::steps(1000));
            let report = run.start(vec![0.5; 7]).unwrap();
            assert_eq!(report.breakdown, None);
            report.state.into_point()
        });
        assert!(found.iter().all(|point| bits(point) == bits(&found[0])), "the ranks of {size} must agree bit for bit");
        let error = distance(&found[0], expected) / expected.norm();
        assert!(error <= 1e-12, "{size} ranks: {error:e}");
        assert!(size > 1 || bits(&found[0]) == bits(expected), "one rank must change no bit");
    }
}

/// Of 13 terms and batches of 5, a rank often has no term of a sample; of 2 terms, most ranks never have one.
#[test]
fn ranks_with_a_part_of_the_terms_equal_one_process_to_rounding() {
    dealt_equals_one_process(squares, Str::default);
    dealt_equals_one_process(squares, Auto::default);
    dealt_equals_one_process(targets, Sgd::default);
    dealt_equals_one_process(targets, || StrSqp::new(StrSqpConfig::default(), affine()).unwrap());
    dealt_equals_one_process(|| Targets::random(1, 2, &[7], 0.3, 1.0), Sgd::default);
}

#[test]
fn a_deal_that_cannot_work_is_an_error_before_the_first_step() {
    for size in [1, 3] {
        for error in on_threads(size, LIMIT, |rank| {
            let mut f = dealt(squares(), rank).reduction(Reduction::FixedOrder { block: 2 });
            assert_eq!(f.terms(), 13);
            let error = minimize(&mut f).batch(5).start(vec![0.5; 7]).unwrap_err();
            error.to_string()
        }) {
            assert!(error.contains("`reduction` is FixedOrder"), "{error}");
        }
    }
    let owners = [0, 0, 1, 0].into_iter().chain([1; 9]);
    let mut f = Sharded::dealt(squares(), Alone, owners);
    let error = minimize(&mut f).batch(5).start(vec![0.5; 7]).unwrap_err().to_string();
    assert!(error.contains("terms of this rank") && error.contains("[3]") && error.contains("[13]"), "{error}");
}

#[test]
fn every_row_has_one_owner_also_in_the_next_file() {
    for size in 1..5 {
        let shares: Vec<RowShare> = (0..size).map(|rank| RowShare { rank, size }).collect();
        for n in 0..12 {
            assert_eq!(shares.iter().map(|share| share.count(n)).sum::<usize>(), n);
            for i in 0..n {
                let owners: Vec<&RowShare> = shares.iter().filter(|share| share.owns(i)).collect();
                assert_eq!((owners.len(), owners[0].row(owners[0].place(i))), (1, i));
                for first in 0..=i {
                    assert!(owners[0].after(first).owns(i - first), "row {i} of {size} ranks after {first}");
                }
            }
        }
    }
}
