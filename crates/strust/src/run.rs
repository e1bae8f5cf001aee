//! `minimize`: the loop, observers and the report. A caller may as well own the loop: it is `step` in a `for`.

use crate::{
    Error,
    methods::{Measurement, Method, State},
    objective::{Evaluations, Objective},
    record::{StepRecord, Verdict},
    sample::{Sample, Sampler},
    stop::{Progress, Stop, StopReason},
    vector::Vector,
};
use std::{ops::ControlFlow, time::Instant};

/// Sees every step and may stop the run. Closures `(&StepRecord, &State) -> ControlFlow<()>` are observers.
pub trait Observer<S> {
    /// Called after each step.
    fn step(&mut self, record: &StepRecord, state: &S) -> ControlFlow<()>;
    /// Called after each measurement on the full sum that follows a step; the report holds the one at the end.
    fn measured(&mut self, _measurement: &Measurement, _state: &S) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<S, F: FnMut(&StepRecord, &S) -> ControlFlow<()>> Observer<S> for F {
    fn step(&mut self, record: &StepRecord, state: &S) -> ControlFlow<()> {
        self(record, state)
    }
}

/// What came of a run.
#[derive(Debug, Clone)]
#[must_use = "the report says whether the run converged"]
pub struct Report<S: State> {
    /// The final state; [`Run::resume`] goes on from it.
    pub state: S,
    /// Why it stopped.
    pub reason: StopReason,
    /// The final point, measured on the full sum.
    pub last: Measurement,
    /// The measured point with the smallest merit.
    pub best: S::Point,
    /// Its measurement.
    pub best_measurement: Measurement,
    /// Mini-batch evaluations of f made by the steps.
    pub evaluations: Evaluations,
    /// Full gradients made to measure, which no budget counts.
    pub measurements: u64,
    /// Steps made in this run.
    pub steps: u64,
    /// Steps that were accepted.
    pub accepted: u64,
}

impl<S: State> Report<S> {
    /// The final point.
    pub fn point(&self) -> &S::Point {
        self.state.point()
    }
    /// The share of steps that were accepted; 1 if there was none.
    #[must_use]
    pub fn acceptance_rate(&self) -> f64 {
        if self.steps == 0 { 1.0 } else { self.accepted as f64 / self.steps as f64 }
    }
}

/// Minimizes `f` from `start` until `stop` says so.
///
/// See the [crate's front page](crate) for complete examples, and [`Run`] for observers and resuming.
pub fn minimize<F, M>(
    f: &mut F,
    method: &mut M,
    sampler: &mut impl Sampler,
    start: F::Point,
    stop: &Stop,
) -> Result<Report<M::State>, Error>
where
    F: Objective,
    M: Method<F>,
{
    Run::new(f, method, sampler).start(start, stop)
}

/// A run with observers, other measuring intervals, or a state to go on from.
///
/// ```
/// use std::ops::ControlFlow;
/// use strust::prelude::*;
/// let mut f = from_fn(1, |x: &Vec<f64>, _: &Sample, g: Option<&mut Vec<f64>>| {
///     if let Some(g) = g {
///         g[0] = x[0];
///     }
///     0.5 * x[0] * x[0]
/// });
/// let mut method = Sgd::new(SgdConfig { learning_rate: 0.1, ..Default::default() })?;
/// let report = Run::new(&mut f, &mut method, &mut Epochs::new(1, 1, 0)?)
///     .observe(|record: &StepRecord, _: &_| if record.value < 1e-3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
///     .start(vec![1.0], &Stop::steps(1000))?;
/// assert_eq!(report.reason, StopReason::Observer);
/// assert!(report.steps < 1000);
/// # Ok::<(), strust::Error>(())
/// ```
pub struct Run<'a, F: Objective, M: Method<F>> {
    f: &'a mut F,
    method: &'a mut M,
    sampler: &'a mut dyn Sampler,
    observers: Vec<Box<dyn Observer<M::State> + 'a>>,
    measure_every: Option<u64>,
}

impl<'a, F: Objective, M: Method<F>> Run<'a, F, M> {
    /// A run without observers.
    pub fn new(f: &'a mut F, method: &'a mut M, sampler: &'a mut dyn Sampler) -> Self {
        Self { f, method, sampler, observers: Vec::new(), measure_every: None }
    }
    /// Adds an observer.
    #[must_use]
    pub fn observe(mut self, observer: impl Observer<M::State> + 'a) -> Self {
        self.observers.push(Box::new(observer));
        self
    }
    /// Measures on the full sum every `steps` steps. By default once an epoch if a stopping rule needs it,
    /// else only at the start and at the end.
    #[must_use]
    pub fn measure_every(mut self, steps: u64) -> Self {
        self.measure_every = Some(steps.max(1));
        self
    }
    /// Runs from a point.
    pub fn start(self, x: F::Point, stop: &Stop) -> Result<Report<M::State>, Error> {
        let state = self.method.init(self.f, x)?;
        self.resume(state, stop)
    }

    /// Runs on from a state; the next sample is the one the state asks for. Budgets count from the state's
    /// first step for steps and epochs, from now for evaluations and time.
    pub fn resume(mut self, mut state: M::State, stop: &Stop) -> Result<Report<M::State>, Error> {
        self.f.check_point(state.point())?;
        let began = Instant::now();
        let mut progress =
            Progress { steps: state.steps(), steps_per_epoch: self.sampler.steps_per_epoch(), ..Progress::default() };
        let interval = self.measure_every.or_else(|| stop.needs_measurements().then_some(progress.steps_per_epoch));
        let first_step = state.steps();
        let (mut accepted, mut measurements) = (0, 1);
        let mut sample = Sample::default();

        let mut last = self.method.measure(self.f, &state)?;
        if !last.value.is_finite() {
            return Err(Error::NonFiniteValue { step: first_step, value: last.value });
        }
        let mut best = (state.point().clone(), last);
        progress.measured = Some(last);
        progress.merits.push(last.merit);

        let reason = loop {
            if let Some(reason) = stop.decide(&progress) {
                break reason;
            }
            self.sampler.draw(state.steps(), &mut sample);
            let record = self.method.step(self.f, &mut state, &sample)?;
            progress.steps = state.steps();
            progress.evaluations += record.evaluations;
            progress.elapsed = began.elapsed();
            progress.measured = None;
            accepted += u64::from(record.verdict == Verdict::Accepted);
            let mut flow = self.tell(|observer| observer.step(&record, &state));
            if interval.is_some_and(|every| progress.steps.is_multiple_of(every)) {
                last = self.method.measure(self.f, &state)?;
                measurements += 1;
                progress.measured = Some(last);
                progress.merits.push(last.merit);
                keep_best(&mut best, &last, state.point());
                if flow.is_continue() {
                    flow = self.tell(|observer| observer.measured(&last, &state));
                }
            }
            if flow.is_break() {
                break StopReason::Observer;
            }
        };
        if progress.measured.is_none() {
            last = self.method.measure(self.f, &state)?;
            measurements += 1;
            keep_best(&mut best, &last, state.point());
        }
        Ok(Report {
            reason,
            last,
            best: best.0,
            best_measurement: best.1,
            evaluations: progress.evaluations,
            measurements,
            steps: progress.steps - first_step,
            accepted,
            state,
        })
    }

    /// Every observer sees everything, also what makes an earlier one stop the run.
    fn tell(&mut self, mut what: impl FnMut(&mut dyn Observer<M::State>) -> ControlFlow<()>) -> ControlFlow<()> {
        let mut flow = ControlFlow::Continue(());
        for observer in &mut self.observers {
            if what(observer.as_mut()).is_break() {
                flow = ControlFlow::Break(());
            }
        }
        flow
    }
}

fn keep_best<V: Vector>(best: &mut (V, Measurement), now: &Measurement, x: &V) {
    if now.merit < best.1.merit {
        best.0.copy_from(x);
        best.1 = *now;
    }
}
