//! The step on all terms: curvature by limited-memory BFGS, trials until one is accepted, and a verdict.

use super::{
    SqpVerdict, StrSqp, StrSqpState,
    constants::{ACCURACY, FACTOR, GOOD, NEGLIGIBLE, POOR, SMALL, STIFF, TRIALS, UNBOUNDED},
    exact::{InnerLimits, Lagrangian},
    largest,
    linear::{Linearized, LocalModel, LocalProducts, Proposal},
    memory::LagrangianCurvature,
    scaled::ScaledRows,
    units::{InUnits, change, units},
};
use crate::{
    Error,
    constraints::Constraint,
    methods::evaluate,
    models::{CurvaturePair, Local},
    objective::{Evaluation, Evaluations, Objective},
    radius::Verdict,
    record::StepRecord,
    sample::Sample,
    vector::Vector,
};
use std::mem;

/// The point of a step.
struct CurrentPoint<'a, C: Constraint> {
    f: Evaluation,
    gradient_norm: f64,
    linear: Linearized<'a, C>,
    violation: f64,
    /// A length that x has.
    length: f64,
}

/// A trial that was evaluated.
struct TrialOutcome<V> {
    x: V,
    y: Vec<f64>,
    c: Vec<f64>,
    length: f64,
    ratio: f64,
    /// Evaluations of f until now.
    evaluations: u64,
}

impl<V: Vector> StrSqpState<V> {
    /// Into units, or back.
    fn change_units(&mut self, units: Option<&[f64]>, into: bool) {
        change(units, into, &mut self.x);
        change(units, !into, &mut self.bound_multipliers);
    }
    /// B learns from the last step.
    fn learn<C: Constraint<Point = V>>(&mut self, here: &CurrentPoint<'_, C>, g: &V) {
        if let Some(CurvaturePair { step, change: before }) = self.last.take() {
            let mut change = g.clone();
            here.linear.add_transposed(&self.scaled_multipliers(here.linear.scaled), &mut change);
            change.add(-1.0, &before);
            if here.linear.dense {
                self.memory.learn_matrix(&step, change);
            } else {
                self.memory.learn(step, change);
            }
        } else if self.memory.curvature == 0.0 {
            // Where ∇f = 0, f shows no scale. Any will do for the first step, which only restores the rows.
            let force = if here.gradient_norm == 0.0 { 1.0 } else { here.gradient_norm.max(f64::MIN_POSITIVE) };
            (self.memory.curvature, self.penalty) = (force / here.length, force);
            self.most_violation = here.length.max(here.violation);
        }
    }

    /// What the best step of the model says about x.
    fn judge<C: Constraint<Point = V>>(
        &self,
        here: &CurrentPoint<'_, C>,
        step: &Proposal<V>,
        tolerance: f64,
    ) -> SqpVerdict {
        let CurrentPoint { linear, violation, length, .. } = here;
        let most = largest(&step.y);
        // A row that is flat here but steep at the start has a large multiplier and a small force.
        let force = if most > self.largest.0 { linear.largest_force(&step.y).min(most) } else { most };
        let size = self.largest.0.max(force);
        // A Newton step knows how far f is from its minimum, so a larger gradient is enough if that is little.
        let little = step.predicted <= SMALL * tolerance * here.f.value.abs();
        let stationary = step.stationarity <= if little { SMALL.recip() } else { 1.0 } * tolerance * size;
        let complementary = linear.complementarity(&step.y) <= tolerance * size * length;
        if linear.distance_to_feasibility() <= tolerance * length && stationary && complementary {
            let before = self.scaled_multipliers(linear.scaled);
            let changes = step.y.iter().zip(&before).any(|(y, before)| (y - before).abs() > SMALL * most);
            let grown = most / self.largest.0;
            if grown > UNBOUNDED && (changes || force > UNBOUNDED.powi(2) * self.largest.0) {
                SqpVerdict::NoQualification
            } else {
                SqpVerdict::Converged
            }
        } else if *violation > tolerance.sqrt() * length {
            // Rows that are nearly 0 beside the others may have either sign.
            let (slope, rows) = linear.slope_of_violation(NEGLIGIBLE * violation);
            if slope <= NEGLIGIBLE { SqpVerdict::Infeasible(rows) } else { SqpVerdict::Running }
        } else {
            SqpVerdict::Running
        }
    }

    /// Moves to a trial.
    fn accept<C: Constraint<Point = V>>(&mut self, here: &CurrentPoint<'_, C>, tried: TrialOutcome<V>, g: &V) {
        let mut change = g.clone();
        here.linear.add_transposed(&tried.y, &mut change);
        self.set_multipliers(here.linear.scaled, &tried.y);
        let mut step = tried.x.clone();
        step.add(-1.0, &self.x);
        self.last = (step.norm_squared() > 0.0).then_some(CurvaturePair { step, change });
        self.x = tried.x;
        let enough = largest(&tried.y).max(here.gradient_norm);
        if self.penalty > FACTOR * FACTOR * enough && enough > 0.0 {
            self.penalty = FACTOR * enough;
        }
    }
}

impl<C: Constraint> StrSqp<C> {
    /// The units of the coordinates at the start, where ∇f is g, and the weights of the rows in these units.
    fn find_units(&mut self, state: &mut StrSqpState<C::Point>, g: &C::Point) {
        let ones = vec![1.0; state.weights.len()];
        let plain = ScaledRows::new(&mut self.constraint, &ones);
        let linear = Linearized::at(&plain, &state.x, 0.0);
        let Some(formed) = linear.formed.as_ref().filter(|_| linear.dense) else { return };
        state.units = units(&state.x, g, &formed[..ones.len()]);
        if state.units.is_some() {
            let plain = ScaledRows::new(InUnits::constraint(&mut self.constraint, state.units.as_deref()), &ones);
            let mut z = state.x.clone();
            change(state.units.as_deref(), true, &mut z);
            state.weights = Linearized::at(&plain, &z, 0.0).weights();
        }
    }
    /// One step on all terms with at most this many products, and the reduction that its model predicts.
    pub(super) fn step_on_all<F: Objective<Point = C::Point>>(
        &mut self,
        f: &mut F,
        state: &mut StrSqpState<F::Point>,
        sample: &Sample,
        most: u64,
        g: &mut F::Point,
    ) -> Result<(StepRecord, f64), Error> {
        let (value, _) = evaluate(f, &state.x, sample, g, state.k)?;
        if state.memory.curvature == 0.0 {
            self.find_units(state, g);
        }
        let units = state.units.clone();
        let units = units.as_deref();
        state.change_units(units, true);
        change(units, false, g);
        let gradient_norm = g.norm();
        let f = &mut InUnits::objective(f, units);
        let scaled = ScaledRows::new(InUnits::constraint(&mut self.constraint, units), &state.weights);
        let x = state.x.clone();
        let linear = Linearized::at(&scaled, &x, ACCURACY);
        let violation = linear.violation();
        state.largest = state.sizes(gradient_norm, state.x.norm(), violation);
        let length = state.largest.1;
        let here = CurrentPoint { f: value, gradient_norm, linear, violation, length };
        state.learn(&here, g);

        let tolerance = self.config.tolerance;
        let mut evaluations = Evaluations { values: 0, gradients: 1, products: 0 };
        let mut predicted = 0.0;
        let plain = StepRecord::plain(state.k, value.value, gradient_norm, 0.0, 0.0);
        let mut record = StepRecord { verdict: Verdict::Rejected, constraint_norm: Some(violation), ..plain };
        state.verdict = SqpVerdict::Stalled;
        // The models borrow B, while the rest of the state changes.
        let memory = mem::replace(&mut state.memory, LagrangianCurvature::new(0.0));
        let products = LocalProducts::new(&here.linear, &memory, g, state.scaled_multipliers(&scaled));
        for trial in 0..TRIALS {
            let model = products.model(state.damping);
            let step = model.steer(&mut state.penalty);
            if trial == 0 {
                predicted = step.predicted;
                let verdict = state.judge(&here, &step, tolerance);
                let escape = match verdict {
                    SqpVerdict::Infeasible(_) => escape(state, &here),
                    _ => None,
                };
                if let Some(x) = escape {
                    evaluations.values += 1;
                    if f.value(&x, sample).value.is_finite() {
                        (state.x, state.verdict, record.verdict) = (x, SqpVerdict::Running, Verdict::Accepted);
                        break;
                    }
                }
                if verdict != SqpVerdict::Running {
                    state.set_multipliers(here.linear.scaled, &step.y);
                    state.verdict = verdict;
                    record.verdict = Verdict::Accepted;
                    break;
                }
            }
            let mut exact = None;
            if trial == 0 && most > 0 {
                let made;
                (exact, made) = try_products(f, state, sample, &here, g, &step, (most, tolerance));
                evaluations += made;
            }
            let tried = exact.unwrap_or_else(|| {
                let tried = try_step(f, state, sample, &here, &model, &step);
                evaluations.values += tried.evaluations;
                tried
            });
            record.step_length = tried.length;
            if tried.ratio >= SMALL {
                if tried.ratio > GOOD {
                    state.damping /= FACTOR;
                }
                (record.verdict, record.step_size) = (Verdict::Accepted, 1.0);
                state.accept(&here, tried, g);
                state.verdict = SqpVerdict::Running;
                break;
            }
            state.damping = (FACTOR * state.damping).max(STIFF * step.curvature);
        }
        state.memory = memory;
        state.change_units(units, false);
        state.k += 1;
        Ok((StepRecord { evaluations, ..record }, predicted))
    }
}

/// A point nearby with a smaller violation, where its slope is 0: x may be a saddle point. It needs no data.
fn escape<C: Constraint>(state: &StrSqpState<C::Point>, here: &CurrentPoint<'_, C>) -> Option<C::Point> {
    let scaled = here.linear.scaled;
    let n = state.x.dimension();
    for k in 0..TRIALS {
        // Numbers without order, in pairs of opposite directions.
        let component = |i: usize| ((i + 1) as f64 * 12.9898 + (k / 2 + 1) as f64 * 78.233).sin();
        let sign = if k % 2 == 0 { 1.0 } else { -1.0 };
        let length = sign * SMALL * here.length / (n as f64).sqrt();
        let mut x = state.x.clone();
        for i in 0..n {
            x.set_component(i, x.component(i) + length * component(i));
        }
        scaled.clip(&mut x);
        let c = scaled.residual(&x);
        if scaled.violation(&c) < (1.0 - NEGLIGIBLE) * here.violation {
            return Some(x);
        }
    }
    None
}

/// Evaluates a step, and one that is corrected for the rows' curvature if it is not good enough. Returns the better
/// one.
fn try_step<F: Objective, C: Constraint<Point = F::Point>>(
    f: &mut F,
    state: &StrSqpState<F::Point>,
    sample: &Sample,
    here: &CurrentPoint<'_, C>,
    model: &LocalModel<'_, C>,
    step: &Proposal<F::Point>,
) -> TrialOutcome<F::Point> {
    let CurrentPoint { linear, .. } = here;
    let plain = evaluate_trial(f, state, sample, here, step.predicted, &step.p, &step.y);
    if plain.ratio >= POOR || linear.is_empty() || !plain.c.iter().all(|c| c.is_finite()) {
        return plain;
    }
    let corrected = model.correct(&plain.c, &step.p, state.penalty);
    let corrected = evaluate_trial(f, state, sample, here, step.predicted, &corrected.p, &corrected.y);
    let better = if corrected.ratio > plain.ratio { corrected } else { plain };
    TrialOutcome { evaluations: 2, ..better }
}

/// The step with at most this many products of the Lagrangian's Hessian, and the same step corrected for the rows'
/// curvature if it is not good enough. Returns the better one if it is accepted, and all evaluations.
fn try_products<F: Objective, C: Constraint<Point = F::Point>>(
    f: &mut F,
    state: &mut StrSqpState<F::Point>,
    sample: &Sample,
    here: &CurrentPoint<'_, C>,
    g: &F::Point,
    dual: &Proposal<F::Point>,
    (most, tolerance): (u64, f64),
) -> (Option<TrialOutcome<F::Point>>, Evaluations) {
    let linear = &here.linear;
    let radius = *state.region.get_or_insert(here.length);
    let inner = InnerLimits {
        most,
        radius,
        // Quadratic convergence where the gradient of the Lagrangian vanishes.
        tolerance: SMALL.min(dual.stationarity / state.largest.0),
        enough: SMALL * tolerance * state.largest.0,
        length: here.length,
    };
    let at = Local {
        k: state.k,
        x: linear.x,
        sample,
        evaluation: here.f,
        gradient: g,
        gradient_squared: here.gradient_norm * here.gradient_norm,
    };
    let mut lagrangian = Lagrangian::new(f, at, linear, inner);
    let step = lagrangian.propose(dual, &mut state.penalty);
    let mut evaluations = lagrangian.evaluations;
    let Some(step) = step else { return (None, evaluations) };
    let mut tried = evaluate_trial(f, state, sample, here, step.predicted, &step.p, &step.y);
    evaluations.values += 1;
    if tried.ratio < POOR && !linear.is_empty() && tried.c.iter().all(|c| c.is_finite()) {
        let mut corrected = step.face.normal(&tried.c);
        corrected.add(1.0, &step.p);
        let corrected = evaluate_trial(f, state, sample, here, step.predicted, &corrected, &step.y);
        evaluations.values += 1;
        if corrected.ratio > tried.ratio {
            tried = corrected;
        }
    }
    if tried.ratio < POOR {
        state.region = Some(radius / FACTOR);
    } else if tried.ratio > GOOD && step.at_boundary {
        state.region = Some(FACTOR.sqrt() * radius);
    }
    ((tried.ratio >= SMALL).then_some(tried), evaluations)
}

/// Evaluates x + p.
fn evaluate_trial<F: Objective, C: Constraint<Point = F::Point>>(
    f: &mut F,
    state: &StrSqpState<F::Point>,
    sample: &Sample,
    here: &CurrentPoint<'_, C>,
    predicted: f64,
    p: &F::Point,
    y: &[f64],
) -> TrialOutcome<F::Point> {
    let CurrentPoint { f: value, linear, violation, .. } = here;
    let penalty = state.penalty;
    let now = value.value + penalty * violation;
    let of_rows = linear.scaled.rounding(&state.x, &linear.c);
    let rounding = value.rounding.max(F::Point::EPSILON * now.abs()) + penalty * of_rows;
    let mut x = p.zeros_like();
    linear.scaled.set_trial(&state.x, p, y, &mut x);
    let c = linear.scaled.residual(&x);
    let left = linear.scaled.violation(&c);
    let then = f.value(&x, sample).value + penalty * left;
    let ratio = (now - then + rounding) / (predicted + rounding);
    let trusted = left <= *violation || (left <= state.most_violation && linear.is_trusted(&c, p));
    let ratio = if ratio.is_finite() && trusted { ratio } else { f64::NEG_INFINITY };
    TrialOutcome { x, y: y.to_vec(), c, length: p.norm(), ratio, evaluations: 1 }
}
