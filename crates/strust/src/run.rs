//! `minimize`: the loop, observers and the report. You can also write the loop yourself: call `step` repeatedly.

use crate::{
    Error, ErrorKind,
    config::out_of_range,
    kkt::Measurement,
    methods::{Auto, Method, State},
    objective::{Consensus, Evaluations, Objective},
    radius::Verdict,
    record::StepRecord,
    sample::Sample,
    samplers::{Epochs, FullBatch, Sampler},
    saved::fingerprint,
    stop::{Progress, Stop, StopReason, Travel},
    vector::{Elementwise, Vector},
};
use std::{ops::ControlFlow, time::Instant};

/// A callback after every step. It may stop the run. Closures `(&StepRecord, &Point) -> ControlFlow<()>` are observers.
///
/// It sees points of type `P`, not the state, so it observes any method. A program that needs the state between steps
/// calls [`next_step`] itself.
pub trait Observer<P> {
    /// Called after each step, with the point after it.
    fn step(&mut self, record: &StepRecord, x: &P) -> ControlFlow<()>;
    /// Called after each measurement on the full sum during the run, which has made `steps` steps. The report contains the
    /// final measurement.
    fn measured(&mut self, _steps: u64, _measurement: &Measurement, _x: &P) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<P, F: FnMut(&StepRecord, &P) -> ControlFlow<()>> Observer<P> for F {
    fn step(&mut self, record: &StepRecord, x: &P) -> ControlFlow<()> {
        self(record, x)
    }
}

/// The result of a run.
#[derive(Debug, Clone)]
#[must_use = "the report states whether the run converged"]
#[non_exhaustive]
pub struct Report<S: State> {
    /// The final state; [`Run::resume`] continues from it. After a breakdown it is the last good state: the state at
    /// the breakdown if the objective is finite there, otherwise a copy at most 128 steps before it, or the start if the
    /// objective is not finite at the copy either.
    pub state: S,
    /// Why it stopped.
    pub reason: StopReason,
    /// The error that ended the run, if it broke down.
    pub breakdown: Option<Error>,
    /// The final point, measured on the full sum; NaN if the measurement itself was stopped.
    pub last: Measurement,
    /// The measured point with the smallest merit.
    pub best: S::Point,
    /// Its measurement.
    pub best_measurement: Measurement,
    /// Mini-batch evaluations of f in the steps.
    pub evaluations: Evaluations,
    /// Full gradients for measurements. Budgets do not count them.
    pub measurements: u64,
    /// Steps made in this run.
    pub steps: u64,
    /// Steps that were accepted.
    pub accepted: u64,
    /// Steps that evaluated nothing ([`Verdict::Skipped`]).
    pub skipped: u64,
}

impl<S: State> Report<S> {
    /// The final point; after a breakdown, the last good one.
    pub fn point(&self) -> &S::Point {
        self.state.point()
    }
    /// The fraction of accepted steps, without those that evaluated nothing; 1 if there were no others.
    #[must_use]
    pub fn acceptance_rate(&self) -> f64 {
        let tried = self.steps - self.skipped;
        if tried == 0 { 1.0 } else { self.accepted as f64 / tried as f64 }
    }
}

/// Minimizes `f`. By default it uses [`Auto`] with mini-batches of 32 terms and stops when f no longer improves
/// ([`Stop::default`]). The methods of [`Run`] change these defaults.
///
/// ```
/// use strust::prelude::*;
/// let y = [1.0, 3.0, 5.0, 7.0]; // the line through (0,1), (1,3), (2,5), (3,7)
/// let mut f = from_residuals(4, |i, x: &Vec<f64>, g| {
///     (g[0], g[1]) = (1.0, i as f64);
///     x[0] + x[1] * i as f64 - y[i]
/// });
/// let report = minimize(&mut f)
///     .method(Auto::default())
///     .batch(2)
///     .seed(0)
///     .stop(Stop::gradient_norm(1e-8).or(Stop::epochs(2000)))
///     .start(vec![0.0, 0.0])?;
/// assert!(report.reason.converged());
/// # Ok::<(), strust::Error>(())
/// ```
pub fn minimize<F: Objective<Point: Elementwise>>(f: &mut F) -> Run<'_, F, Auto<F::Point>> {
    Run {
        f,
        method: Auto::default(),
        drawing: Drawing::Batches(None),
        drawings: 0,
        seed: None,
        stop: Stop::default(),
        observers: Vec::new(),
        measure_every: None,
    }
}

/// How the samples of a run are drawn.
enum Drawing<'a> {
    Batches(Option<usize>),
    Full,
    Own(Box<dyn Sampler + 'a>),
}

/// The settings of a run. Call [`Self::start`] or [`Self::resume`] to run it.
///
/// ```
/// use std::ops::ControlFlow;
/// use strust::prelude::*;
/// use strust_baselines::{Sgd, SgdConfig};
/// let mut f = from_terms(1, |_, x: &Vec<f64>, g| { g[0] += x[0]; 0.5 * x[0] * x[0] });
/// let report = minimize(&mut f)
///     .method(Sgd::new(SgdConfig { learning_rate: 0.1, ..Default::default() })?)
///     .observe(|record: &StepRecord, _: &_| if record.value < 1e-3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
///     .stop(Stop::steps(1000))
///     .start(vec![1.0])?;
/// assert_eq!(report.reason, StopReason::Observer);
/// assert!(report.steps < 1000);
/// # Ok::<(), strust::Error>(())
/// ```
#[must_use = "a run starts with `start` or `resume`"]
pub struct Run<'a, F: Objective, M: Method<F>> {
    f: &'a mut F,
    method: M,
    drawing: Drawing<'a>,
    /// How often the way to draw was chosen.
    drawings: usize,
    seed: Option<u64>,
    stop: Stop,
    observers: Vec<Box<dyn Observer<F::Point> + 'a>>,
    measure_every: Option<u64>,
}

impl<'a, F: Objective, M: Method<F>> Run<'a, F, M> {
    /// The method, by value or as `&mut method`; [`Auto`] by default.
    pub fn method<N: Method<F>>(self, method: N) -> Run<'a, F, N> {
        let Self { f, drawing, drawings, seed, stop, observers, measure_every, .. } = self;
        Run { f, method, drawing, drawings, seed, stop, observers, measure_every }
    }
    /// Terms per mini-batch, drawn by [`Epochs`]. The default is 32, or all terms if there are fewer.
    pub fn batch(self, batch: usize) -> Self {
        Self { drawing: Drawing::Batches(Some(batch)), drawings: self.drawings + 1, ..self }
    }
    /// Uses all terms in every step.
    pub fn full_batch(self) -> Self {
        Self { drawing: Drawing::Full, drawings: self.drawings + 1, ..self }
    }
    /// The seed of the mini-batches; 0 by default. It cannot be combined with [`Self::sampler`]: set the sampler's
    /// seed.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }
    /// Your own sampler, by value or as `&mut sampler`.
    pub fn sampler(self, sampler: impl Sampler + 'a) -> Self {
        Self { drawing: Drawing::Own(Box::new(sampler)), drawings: self.drawings + 1, ..self }
    }
    /// When to stop; [`Stop::default`] by default.
    pub fn stop(self, stop: impl Into<Stop>) -> Self {
        Self { stop: stop.into(), ..self }
    }
    /// Adds an observer.
    pub fn observe(mut self, observer: impl Observer<F::Point> + 'a) -> Self {
        self.observers.push(Box::new(observer));
        self
    }
    /// Measures on the full sum every `steps` steps. The default is once per epoch if a stopping rule needs it,
    /// otherwise only at the start and at the end.
    pub fn measure_every(self, steps: u64) -> Self {
        Self { measure_every: Some(steps.max(1)), ..self }
    }

    /// Runs from a point.
    ///
    /// An error means that the setup is wrong. A run that breaks down returns a report with [`StopReason::Breakdown`]
    /// and the last good point.
    pub fn start(mut self, x: F::Point) -> Result<Report<M::State>, Error> {
        let sampler = self.checked_sampler()?;
        let state = self.method.init(self.f, x)?;
        self.drive(state, sampler)
    }

    /// Continues from a state; its step count is the number of the next sample. Budgets of steps and epochs include the
    /// earlier steps of the state. Budgets of evaluations and time start at zero, and so does the count of measurements
    /// without progress. Use the batch, the seed and the sampler of the first run; the state does not contain them.
    pub fn resume(mut self, state: M::State) -> Result<Report<M::State>, Error> {
        let sampler = self.checked_sampler()?;
        self.method.prepare(self.f, state.point())?;
        self.drive(state, sampler)
    }

    /// The sampler, checked against the objective. A sampler over fewer terms would silently ignore the others.
    fn checked_sampler(&mut self) -> Result<Box<dyn Sampler + 'a>, Error> {
        if self.drawings > 1 {
            let only = "only one of `batch`, `full_batch` and `sampler`";
            return Err(out_of_range("run", "ways to draw", self.drawings, only));
        }
        let seed = self.seed.unwrap_or(0);
        let sampler: Box<dyn Sampler + 'a> = match std::mem::replace(&mut self.drawing, Drawing::Full) {
            Drawing::Batches(None) => Box::new(Epochs::over(self.f).seed(seed)),
            Drawing::Batches(Some(batch)) => Box::new(Epochs::over(self.f).batch(batch).seed(seed)),
            Drawing::Full => Box::new(FullBatch::over(self.f).seed(seed)),
            Drawing::Own(_) if self.seed.is_some() => {
                return Err(out_of_range("run", "seed", seed, "set on the sampler, which has its own seed"));
            }
            Drawing::Own(sampler) => sampler,
        };
        sampler.check(self.f.terms())?;
        match self.f.draws() {
            Some(objective) if objective != sampler.draws() => {
                Err(Error::Draws { sampler: sampler.draws(), objective })
            }
            _ => Ok(sampler),
        }
    }

    fn drive(mut self, mut state: M::State, mut sampler: Box<dyn Sampler + 'a>) -> Result<Report<M::State>, Error> {
        let began = Instant::now();
        let first_step = state.steps();
        let mut progress =
            Progress { steps: first_step, steps_per_epoch: sampler.steps_per_epoch(), ..Progress::default() };
        let start = self.method.measure(self.f, &state)?;
        if !start.is_finite() {
            return Err(self.failure().unwrap_or(if start.value.is_finite() {
                Error::Start {
                    why: "the gradient or the constraint is not finite there: check both, and the start, for NaN, infinity \
                          and overflow"
                        .into(),
                }
            } else {
                Error::NonFiniteStart { value: start.value }
            }));
        }
        let origin = self.stop.needs_start().then(|| Origin { x: state.point().clone(), start, largest_gradient: 0.0 });
        let best = (state.point().clone(), start);
        let mut tally = Tally { measurements: 1, accepted: 0, skipped: 0, best, origin };
        let mut safe = LastGood::new(&state);
        progress.measured = Some(start);
        progress.travel = tally.travel(&start, state.point());
        progress.add_merit(start.merit);

        let stopped = self.repeat(&mut state, &mut *sampler, &mut progress, &mut tally, &mut safe, began);
        let stopped = stopped.and_then(|reason| self.finish(reason, &state, &mut progress, &mut tally));
        let stopped = stopped.map_err(|error| self.failure().unwrap_or(error));
        let (reason, breakdown, last) = match stopped {
            Ok((reason, last)) => (reason, None, last),
            // The state is good, but the caller does not wait for its measurement.
            Err(Error::Stopped) => (StopReason::Observer, None, Measurement::UNKNOWN),
            // Nothing was done yet, so nothing is lost.
            Err(error)
                if matches!(error.kind(), ErrorKind::Setup | ErrorKind::Ranks) && progress.steps == first_step =>
            {
                return Err(error);
            }
            // The state is good, but it cannot be measured without the others.
            Err(error) if error.kind() == ErrorKind::Ranks => {
                (StopReason::Breakdown, Some(error), Measurement::UNKNOWN)
            }
            Err(error) => {
                let last;
                (state, last) = safe.recover(state, |state| {
                    tally.measurements += 1;
                    self.method.measure(self.f, state)
                });
                tally.keep_best(&last, state.point());
                (StopReason::Breakdown, Some(error), last)
            }
        };
        Ok(Report {
            reason,
            breakdown,
            last,
            best: tally.best.0,
            best_measurement: tally.best.1,
            evaluations: progress.evaluations,
            measurements: tally.measurements,
            steps: progress.steps - first_step,
            accepted: tally.accepted,
            skipped: tally.skipped,
            state,
        })
    }

    /// The final measurement. A tolerance that holds there is the reason, even if a budget ended the run.
    fn finish(
        &mut self,
        reason: StopReason,
        state: &M::State,
        progress: &mut Progress,
        tally: &mut Tally<F::Point>,
    ) -> Result<(StopReason, Measurement), Error> {
        let last = match progress.measured {
            Some(measured) => measured,
            None => self.measure(state, progress, tally)?,
        };
        let converged = self.stop.decide(progress).filter(|_| reason != StopReason::Observer);
        Ok((converged.filter(|reason| reason.converged()).unwrap_or(reason), last))
    }

    /// Measures the state. A measurement that is not finite is a breakdown.
    fn measure(
        &mut self,
        state: &M::State,
        progress: &mut Progress,
        tally: &mut Tally<F::Point>,
    ) -> Result<Measurement, Error> {
        let measured = self.method.measure(self.f, state)?;
        tally.measurements += 1;
        if !(measured.value.is_finite() && measured.merit.is_finite()) {
            return Err(Error::NonFiniteValue { step: state.steps(), value: measured.value });
        }
        progress.measured = Some(measured);
        progress.travel = tally.travel(&measured, state.point());
        progress.add_merit(measured.merit);
        tally.keep_best(&measured, state.point());
        Ok(measured)
    }

    /// Makes steps until a rule stops the run or an error occurs.
    fn repeat(
        &mut self,
        state: &mut M::State,
        sampler: &mut dyn Sampler,
        progress: &mut Progress,
        tally: &mut Tally<F::Point>,
        safe: &mut LastGood<M::State>,
        began: Instant,
    ) -> Result<StopReason, Error> {
        let needed = self.stop.needs_measurements().then_some(progress.steps_per_epoch);
        let interval = self.measure_every.or(needed);
        let mut sample = Sample::default();
        loop {
            if let Some(reason) = state.settled().or_else(|| self.stop.decide(progress)) {
                return Ok(reason);
            }
            safe.before_step(state);
            let record = next_step(&mut self.method, self.f, state, sampler, &mut sample)?;
            safe.after_step();
            progress.steps = state.steps();
            progress.settles = state.settles();
            progress.evaluations += record.evaluations;
            progress.elapsed = began.elapsed();
            progress.measured = None;
            tally.accepted += u64::from(record.verdict == Verdict::Accepted);
            tally.skipped += u64::from(record.verdict == Verdict::Skipped);
            let mut flow = self.notify(|observer| observer.step(&record, state.point()));
            if interval.is_some_and(|every| progress.steps.is_multiple_of(every)) {
                let measured = self.measure(state, progress, tally)?;
                if flow.is_continue() {
                    flow = self.notify(|observer| observer.measured(progress.steps, &measured, state.point()));
                }
            }
            if self.agree(state, progress, flow)?.is_break() {
                return Ok(StopReason::Observer);
            }
        }
    }

    /// Agrees with the other processes of the run on the state, the clock and whether to go on.
    fn agree(
        &mut self,
        state: &M::State,
        progress: &mut Progress,
        flow: ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Error> {
        let (steps, elapsed) = (progress.steps, progress.elapsed);
        let hash = || fingerprint(state);
        let mut consensus = Consensus { steps, elapsed, stop: flow.is_break(), fingerprint: &hash };
        if let Some(peers) = self.f.peers() {
            peers.agree(&mut consensus)?;
        }
        progress.elapsed = consensus.elapsed;
        Ok(if consensus.stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// Why evaluations are NaN, if the other processes of the run are the cause.
    fn failure(&mut self) -> Option<Error> {
        self.f.peers()?.failure()
    }

    /// Calls every observer, even if an earlier one stops the run.
    fn notify(&mut self, mut event: impl FnMut(&mut dyn Observer<F::Point>) -> ControlFlow<()>) -> ControlFlow<()> {
        let mut flow = ControlFlow::Continue(());
        for observer in &mut self.observers {
            if event(observer.as_mut()).is_break() {
                flow = ControlFlow::Break(());
            }
        }
        flow
    }
}

/// The next step of a run: draws its sample, checks it, and makes the step. Every loop over steps calls this.
pub fn next_step<F: Objective, M: Method<F>>(
    method: &mut M,
    f: &mut F,
    state: &mut M::State,
    sampler: &mut (impl Sampler + ?Sized),
    sample: &mut Sample,
) -> Result<StepRecord, Error> {
    sampler.draw(state.steps(), sample);
    check_sample(sample, state.steps(), f.terms())?;
    method.step(f, state, sample)
}

/// A sampler of the user's own may draw anything.
fn check_sample(sample: &Sample, k: u64, terms: usize) -> Result<(), Error> {
    let count = sample.len();
    let why = match sample.indices().iter().find(|&&i| i >= terms) {
        Some(i) => format!("it holds term {i}, but the objective has {terms} terms, from 0 on"),
        None if sample.is_empty() => "it is empty".into(),
        None if sample.is_all() && count != terms => format!("it claims to be all {terms} terms, but has {count}"),
        None => return Ok(()),
    };
    Err(Error::Sample { k, why })
}

/// Counts and the best point of a run.
struct Tally<V> {
    measurements: u64,
    accepted: u64,
    skipped: u64,
    best: (V, Measurement),
    /// The start, if a rule compares points with it.
    origin: Option<Origin<V>>,
}

/// The start of a run.
struct Origin<V> {
    x: V,
    start: Measurement,
    /// The largest gradient norm so far.
    largest_gradient: f64,
}

impl<V: Vector> Tally<V> {
    /// The point beside the start.
    fn travel(&mut self, now: &Measurement, x: &V) -> Option<Travel> {
        let origin = self.origin.as_mut()?;
        origin.largest_gradient = origin.largest_gradient.max(now.gradient_norm);
        let mut way = x.zeros_like();
        way.set_sum(x, -1.0, &origin.x);
        Some(Travel {
            start_value: origin.start.value,
            start_length: origin.x.norm(),
            length: x.norm(),
            moved: way.norm(),
            largest_gradient: origin.largest_gradient,
            epsilon: V::EPSILON,
        })
    }
    fn keep_best(&mut self, now: &Measurement, x: &V) {
        if now.merit < self.best.1.merit {
            self.best.0.copy_from(x);
            self.best.1 = *now;
        }
    }
}

/// Steps between two copies of the state. The cost of a copy is then negligible, and a breakdown loses few steps.
const COPY_EVERY: u64 = 64;

/// Copies of the state from which a run that breaks down can recover.
struct LastGood<S> {
    /// The state at the start, where the objective is finite.
    start: S,
    /// The last copy from which a step was made. The objective was finite there.
    good: Option<S>,
    /// A copy from which no step has been made yet.
    candidate: Option<S>,
}

impl<S: State> LastGood<S> {
    fn new(start: &S) -> Self {
        Self { start: start.clone(), good: None, candidate: None }
    }
    fn before_step(&mut self, state: &S) {
        let made = state.steps() - self.start.steps();
        if made > 0 && made.is_multiple_of(COPY_EVERY) {
            self.candidate = Some(state.clone());
        }
    }
    fn after_step(&mut self) {
        if self.candidate.is_some() {
            self.good = self.candidate.take();
        }
    }
    /// The latest state with a finite measurement, and this measurement.
    fn recover(self, now: S, mut measure: impl FnMut(&S) -> Result<Measurement, Error>) -> (S, Measurement) {
        for state in [Some(now), self.good].into_iter().flatten() {
            if let Ok(measurement) = measure(&state)
                && measurement.is_finite()
            {
                return (state, measurement);
            }
        }
        let measurement = measure(&self.start).unwrap_or(Measurement::UNKNOWN);
        (self.start, measurement)
    }
}
