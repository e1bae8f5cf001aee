//! Constraints that are expectations, around a method for mini-batches.

mod inner;
mod lagrangian;
mod multipliers;

pub use inner::InnerMethod;
use lagrangian::{BatchLagrangian, SeenParts, Tilted};
use multipliers::{MeasuredStep, learn};
pub use multipliers::{RecentMean, RowMemory};

use super::{Auto, Certificate, Measurement, Method, State, StrSqpState};
use crate::{
    Error,
    config::out_of_range,
    expectation::{Expectation, MeasuredRow, OnAllTerms},
    objective::Objective,
    record::StepRecord,
    sample::Sample,
    saved::{Load, Save, Saved},
    stop::StopReason,
    vector::{Elementwise, Vector},
};

/// Minimizes f(x) subject to rows that are [expectations](crate::expectation): lower ≤ E c(x) ≤ upper, where f and c are
/// known on mini-batches only. There is no setting.
///
/// The inner method, [`Auto`], makes its steps on f + Σ (μᵢ/qᵢ)cᵢ of the mini-batch, and its trial is judged by the same
/// function. qᵢ is the share of the samples that know row i: those with a member of each of its groups. μ is fixed before
/// the sample is seen, so its error is independent of the sample. With J = ∇c and Auto's z, y, D and a, a step then learns
///
/// ```text
/// e = c(y) + J̄(z' − y)                 c at z', after the step; J̄ is the mean of the slopes J before this sample
/// P = mean of J̄·D⁻¹J;   Rᵢⱼ = Pᵢⱼ/√(PᵢᵢPⱼⱼ)
/// K = a·Pᵢᵢ·Σⱼ |Rᵢⱼ|/q                 how far a multiplier of 1 moves c in a step
/// d = c(y) + J̄(z − y) − e_last;   s² = mean of ½d²;   m = mean of d
/// w² = a²·mean of (J̄·D⁻¹(g + Jᵀλ))²/q
/// ρ = 2/(1 + √(1 + 4s²/w²))            the gain of a Kalman filter for steps w that are seen with noise s
/// μ = λ + ρ·(violation of e + m)/K;   λ ← λ + ¼ρ²·(violation of e + m)/K
/// |μ|, |λ| ≤ 3√(mean of g·D⁻¹g·(R⁻¹)ᵢᵢ/Pᵢᵢ)
/// ```
///
/// J̄ is independent of the sample, so e and K have no bias. Means are over the last quarter of the values. All of it is
/// free of the units of f, of each row and of x. docs/how/expectation.md explains each line. A step costs a value of each row
/// on its groups; a row that is near its bound or has a multiplier costs a gradient in place of this value, and a value at
/// the trial.
///
/// The answer x, an average, is close to the rows. [`Self::finish`] puts it on them.
///
/// ```
/// use strust::{expectation::{constraint_from_terms, MeanRow, Members}, methods::InExpectation, prelude::*};
/// // Two branches want 0…9 and 10…19. The first may get at most 2 less than the second.
/// let mut f = from_terms(20, |i, x: &Vec<f64>, g| {
///     let r = x[i / 10] - i as f64;
///     g[i / 10] += r;
///     0.5 * r * r
/// });
/// let (first, second) = (Members::new(20, |i| i < 10), Members::new(20, |i| i >= 10));
/// let row = MeanRow::difference(&second, &first).at_most(2.0);
/// let score = |i: usize, x: &Vec<f64>, g: &mut Vec<f64>| { g[i / 10] += 1.0; x[i / 10] };
/// let mut method = InExpectation::new(constraint_from_terms(20, score, vec![row])?);
/// let report = minimize(&mut f).method(&mut method).batch(4).stop(Stop::epochs(200)).start(vec![0.0; 2])?;
/// assert!((report.point()[1] - report.point()[0] - 2.0).abs() < 0.2);
/// let end = method.finish(&mut f, &report.state, 20)?; // at most 20 steps on all terms
/// assert!((end.state.point()[0] - 8.5).abs() < 1e-6 && (end.rows[0].value - 2.0).abs() < 1e-9);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct InExpectation<S: Objective, T = S, I = Auto<<S as Objective>::Point>> {
    rows: Expectation<S, T>,
    inner: I,
    seen: Option<SeenParts<S::Point>>,
}

impl<S: Objective<Point: Elementwise>, T: Objective<Point = S::Point>> InExpectation<S, T> {
    /// Rows around [`Auto`].
    #[must_use]
    pub fn new(rows: Expectation<S, T>) -> Self {
        Self::around(Auto::default(), rows)
    }
}

impl<S, T, I> InExpectation<S, T, I>
where
    S: Objective<Point: Elementwise>,
    T: Objective<Point = S::Point>,
    I: InnerMethod<S::Point>,
{
    /// Rows around another method: [`StrSqp`](super::StrSqp) has exact rows and bounds in addition.
    #[must_use]
    pub fn around(inner: I, rows: Expectation<S, T>) -> Self {
        Self { rows, inner, seen: None }
    }
    /// The rows.
    pub fn rows(&mut self) -> &mut Expectation<S, T> {
        &mut self.rows
    }

    /// Puts the answer of a run on the rows, by at most so many steps of [`StrSqp`](super::StrSqp) on all terms, and
    /// certifies it. It ends earlier with a verdict such as converged or infeasible. Each step costs a pass or two.
    ///
    /// If the rows have a true rate, the steps keep the smooth rows, shifted by the difference of both at the point where they
    /// begin. They begin again until the rates satisfy their bounds, at most ten times, and the result is the one that comes
    /// closest. It has both.
    pub fn finish<F: Objective<Point = S::Point>>(
        &mut self,
        f: &mut F,
        state: &InExpectationState<I::State, S::Point>,
        steps: u64,
    ) -> Result<ExpectationEnd<S::Point>, Error> {
        let (mut rows, mut left, mut best) = (self.rows.measure(state.point()), steps, None::<ExpectationEnd<_>>);
        for _ in 0..ROUNDS {
            let x = best.as_ref().map_or(state.point(), |end| end.state.point()).clone();
            let shifts: Vec<f64> = rows.iter().map(|row| row.smooth - row.value).collect();
            let shifted = OnAllTerms::<S, T, _>::new(&mut self.rows, &shifts);
            let (state, certificate) = self.inner.solve(f, shifted, x, left)?;
            rows = self.rows.measure(&state.x);
            left = left.saturating_sub(state.steps());
            let end = ExpectationEnd { state, certificate, rows: rows.clone() };
            let violation = end.violation();
            let is_settled = shifts.iter().all(|shift| *shift == 0.0) || violation == 0.0 || left == 0;
            if best.as_ref().is_none_or(|best| violation < best.violation()) {
                best = Some(end);
            }
            if is_settled {
                break;
            }
        }
        Ok(best.expect("there was a round"))
    }
    /// A state may come from other rows.
    fn check_rows<J>(&self, state: &InExpectationState<J, S::Point>) -> Result<(), Error> {
        if state.rows.len() == self.rows.len() {
            return Ok(());
        }
        let allowed = format!("{}, as the state has", state.rows.len());
        Err(out_of_range("in-expectation", "rows", self.rows.len(), allowed))
    }
}

/// Rounds of the end at most, in which smooth rows follow a true rate.
const ROUNDS: usize = 10;

/// The end of a run: [`InExpectation::finish`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExpectationEnd<V> {
    /// The state of the steps on all terms, with the answer.
    pub state: StrSqpState<V>,
    /// How good the answer is, with the verdict. Exact rows come first, then an equality or each finite bound of the rows.
    pub certificate: Certificate,
    /// The rows on all terms.
    pub rows: Vec<MeasuredRow>,
}

impl<V> ExpectationEnd<V> {
    /// The largest violation of a row, by its true rate if it has one.
    #[must_use]
    pub fn violation(&self) -> f64 {
        self.rows.iter().map(MeasuredRow::violation).fold(0.0, f64::max)
    }
}

/// State of [`InExpectation`].
#[derive(Debug, Clone, PartialEq)]
pub struct InExpectationState<I, V> {
    /// The state of the inner method.
    pub(crate) inner: I,
    /// The mean of gᵀD⁻¹g, and the number of steps that have learned.
    pub(crate) force: RecentMean,
    /// What is known about each row.
    pub(crate) rows: Vec<RowMemory<V>>,
}

impl<I: Save, V: Vector> Save for InExpectationState<I, V> {
    fn save(&self) -> Saved {
        Saved::map([("inner", self.inner.save()), ("force", self.force.save()), ("rows", self.rows.save())])
    }
}
impl<I: Load, V: Vector> Load for InExpectationState<I, V> {
    fn load(saved: &Saved) -> Result<Self, Error> {
        Self::with_inner(saved, I::load)
    }
}
crate::serde_as_saved!([I: Load, V: Vector] InExpectationState<I, V>);

impl<I, V: Vector> InExpectationState<I, V> {
    /// Loads a state, with its inner state by `load`.
    fn with_inner(saved: &Saved, load: impl FnOnce(&Saved) -> Result<I, Error>) -> Result<Self, Error> {
        Ok(Self {
            inner: saved.part("inner", load)?,
            force: saved.part("force", Load::load)?,
            rows: saved.part("rows", Load::load)?,
        })
    }
    /// The state of the inner method.
    pub fn inner(&self) -> &I {
        &self.inner
    }
    /// λ, the multipliers of the rows: positive at an upper bound, negative at a lower one.
    #[must_use]
    pub fn multipliers(&self) -> Vec<f64> {
        self.rows.iter().map(|row| row.mean.mean).collect()
    }
}

impl<V: Vector, I: State<Point = V>> State for InExpectationState<I, V> {
    type Point = V;
    fn point(&self) -> &V {
        self.inner.point()
    }
    fn into_point(self) -> V {
        self.inner.into_point()
    }
    fn with_point(self, x: V) -> Self {
        Self { inner: self.inner.with_point(x), ..self }
    }
    fn steps(&self) -> u64 {
        self.inner.steps()
    }
    fn is_averaged(&self) -> bool {
        self.inner.is_averaged()
    }
    fn settled(&self) -> Option<StopReason> {
        self.inner.settled()
    }
    fn settles(&self) -> bool {
        self.inner.settles()
    }
}

impl<F, S, T, I> Method<F> for InExpectation<S, T, I>
where
    F: Objective<Point: Elementwise>,
    S: Objective<Point = F::Point>,
    T: Objective<Point = F::Point>,
    I: InnerMethod<F::Point>,
{
    type State = InExpectationState<I::State, F::Point>;

    fn prepare(&mut self, f: &mut F, x: &F::Point) -> Result<(), Error> {
        self.seen = None;
        if self.rows.terms() != f.terms() {
            let allowed = format!("{}, as the objective has", f.terms());
            return Err(out_of_range("expectation", "terms of the score", self.rows.terms(), allowed));
        }
        self.rows.check_point(x)?;
        self.inner.prepare(f, x)
    }
    fn init(&mut self, f: &mut F, x: F::Point) -> Result<Self::State, Error> {
        self.prepare(f, &x)?;
        let rows = self.rows.len();
        Ok(InExpectationState {
            force: RecentMean::default(),
            rows: vec![RowMemory::new(&x, rows); rows],
            inner: self.inner.init(f, x)?,
        })
    }
    fn step(&mut self, f: &mut F, state: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error> {
        self.check_rows(state)?;
        let Self { rows, inner, seen } = self;
        let seen = seen.get_or_insert_with(|| SeenParts::new(state.inner.point(), rows.len()));
        let multipliers: Vec<f64> = state.rows.iter().map(|row| row.force(state.force.count)).collect();
        let wanted: Vec<bool> =
            state.rows.iter().zip(rows.rows()).map(|(memory, row)| memory.is_in_play(row)).collect();
        seen.ahead.copy_from(I::iterate(&state.inner));
        let mut phi = BatchLagrangian { f, rows, multipliers: &multipliers, wanted: &wanted, seen };
        let record = inner.step(&mut phi, &mut state.inner, sample)?;

        let SeenParts { value, gradient, rows: values, slopes, point, ahead, scratch: [scratch, metric] } = seen;
        let used = slopes.iter().zip(&wanted).zip(&*values).filter(|((_, wanted), value)| **wanted && value.is_some());
        let is_finite = value.is_finite()
            && values.iter().flatten().all(|value| value.is_finite())
            && used.into_iter().all(|((slope, _), _)| slope.norm_squared().is_finite());
        let bounds = rows.rows();
        let outside = values.iter().zip(bounds).filter_map(|(value, row)| value.map(|value| row.violation(value)));
        let record =
            StepRecord { value: *value, constraint_norm: Some(outside.map(|v| v * v).sum::<f64>().sqrt()), ..record };
        if is_finite && record.step_size > 0.0 && inner.metric(&state.inner, metric) {
            ahead.add(-1.0, point);
            point.scale_add(-1.0, 1.0, I::iterate(&state.inner));
            let ahead = [&*ahead, &*point];
            let step =
                MeasuredStep { values, wanted: &wanted, slopes, ahead, gradient, metric, size: record.step_size };
            learn(&mut state.rows, &mut state.force, bounds, step, scratch);
        } else if is_finite && gradient.norm_squared() == 0.0 {
            for ((memory, row), value) in state.rows.iter_mut().zip(bounds).zip(&*values) {
                if let Some(value) = *value {
                    memory.pull(value, row);
                }
            }
        }
        Ok(record)
    }
    fn restore(&self, saved: &Saved) -> Result<Self::State, Error> {
        InExpectationState::with_inner(saved, |inner| self.inner.restore(inner))
    }
    /// The gradient is that of f + Σ λᵢcᵢ, and the violation that of the smooth rows, both on all terms.
    fn measure(&mut self, f: &mut F, state: &Self::State) -> Result<Measurement, Error> {
        self.check_rows(state)?;
        let x = state.point();
        let mut tilt = x.zeros_like();
        let shifts = vec![0.0; self.rows.len()];
        let mut rows = OnAllTerms::<S, T, _>::new(&mut self.rows, &shifts);
        rows.add_rows(x, &state.multipliers(), &mut tilt);
        let outside = rows.violation(x);
        let inner = self.inner.measure(&mut Tilted { f, tilt: &tilt }, &state.inner)?;
        let m = Measurement { constraint_norm: inner.constraint_norm.hypot(outside), ..inner };
        Ok(Measurement { merit: m.kkt(), ..m })
    }
}
