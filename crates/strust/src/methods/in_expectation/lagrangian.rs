use crate::{
    Error,
    expectation::{Expectation, RowSlopes},
    objective::{Evaluation, Objective, ObjectiveWrapper, ProductKind},
    sample::Sample,
    vector::Vector,
};

/// f + Σ μᵢcᵢ on a sample, where c are the smooth rows. An evaluation of the gradient keeps what it has seen of its parts.
pub(super) struct BatchLagrangian<'a, F: Objective, S, T> {
    pub f: &'a mut F,
    pub rows: &'a mut Expectation<S, T>,
    /// μ, each divided by the share of the samples that know the row.
    pub multipliers: &'a [f64],
    /// Rows whose slope is needed.
    pub wanted: &'a [bool],
    pub seen: &'a mut SeenParts<F::Point>,
}

/// The parts of the last gradient of a [`BatchLagrangian`].
#[derive(Debug, Clone)]
pub(super) struct SeenParts<V> {
    /// f on the sample.
    pub value: f64,
    /// Its gradient.
    pub gradient: V,
    /// Each row that the sample knows, by its true score.
    pub rows: Vec<Option<f64>>,
    pub slopes: Vec<V>,
    /// y.
    pub point: V,
    /// z − y before the step.
    pub ahead: V,
    pub scratch: [V; 2],
}

impl<V: Vector> SeenParts<V> {
    pub fn new(x: &V, rows: usize) -> Self {
        let zero = || x.zeros_like();
        Self {
            value: f64::NAN,
            gradient: zero(),
            rows: Vec::new(),
            slopes: vec![zero(); rows],
            point: zero(),
            ahead: zero(),
            scratch: [zero(), zero()],
        }
    }
}

/// f + Σ μᵢcᵢ.
fn sum(f: Evaluation, multipliers: &[f64], rows: &[Option<Evaluation>]) -> Evaluation {
    let parts = multipliers.iter().zip(rows).filter_map(|(&multiplier, row)| row.map(|row| (multiplier, row)));
    parts.filter(|(multiplier, _)| *multiplier != 0.0).fold(f, |sum, (multiplier, row)| Evaluation {
        value: sum.value + multiplier * row.value,
        rounding: sum.rounding + multiplier.abs() * row.rounding,
    })
}

impl<F, S, T> ObjectiveWrapper for BatchLagrangian<'_, F, S, T>
where
    F: Objective,
    S: Objective<Point = F::Point>,
    T: Objective<Point = F::Point>,
{
    type Inner = F;
    fn wrapped(&self) -> &F {
        self.f
    }
    fn wrapped_mut(&mut self) -> &mut F {
        self.f
    }
    fn value(this: &mut Self, x: &F::Point, sample: &Sample) -> Evaluation {
        let f = this.f.value(x, sample);
        sum(f, this.multipliers, &this.rows.evaluate(x, sample, |i| this.multipliers[i] != 0.0, None))
    }
    fn value_and_gradient(this: &mut Self, x: &F::Point, sample: &Sample, gradient: &mut F::Point) -> Evaluation {
        let Self { f, rows, multipliers, wanted, seen } = this;
        let f = f.value_and_gradient(x, sample, gradient);
        seen.value = f.value;
        seen.gradient.copy_from(gradient);
        seen.point.copy_from(x);
        let slopes = RowSlopes { wanted, slopes: &mut seen.slopes, scratch: &mut seen.scratch[0] };
        let smooth = rows.evaluate(x, sample, |_| true, Some(slopes));
        for (i, row) in smooth.iter().enumerate() {
            if row.is_some() && multipliers[i] != 0.0 {
                gradient.add(multipliers[i], &seen.slopes[i]);
            }
        }
        let rates = rows.rates(x, sample);
        seen.rows = rates.as_ref().unwrap_or(&smooth).iter().map(|row| row.map(|row| row.value)).collect();
        sum(f, multipliers, &smooth)
    }
    /// None: those of f leave out the rows.
    fn curvature_product(
        _: &mut Self,
        _: ProductKind,
        _: &F::Point,
        _: &Sample,
        _: &F::Point,
        _: &mut F::Point,
    ) -> bool {
        false
    }
    fn check_point(this: &Self, x: &F::Point) -> Result<(), Error> {
        this.f.check_point(x)?;
        this.rows.check_point(x)
    }
}

/// f + ⟨tilt, x⟩ up to a constant: f with the rows' force Σ λᵢ∇cᵢ at a point where it is measured.
pub(super) struct Tilted<'a, F: Objective> {
    pub f: &'a mut F,
    pub tilt: &'a F::Point,
}

impl<F: Objective> ObjectiveWrapper for Tilted<'_, F> {
    type Inner = F;
    fn wrapped(&self) -> &F {
        self.f
    }
    fn wrapped_mut(&mut self) -> &mut F {
        self.f
    }
    fn value_and_gradient(this: &mut Self, x: &F::Point, sample: &Sample, gradient: &mut F::Point) -> Evaluation {
        let value = this.f.value_and_gradient(x, sample, gradient);
        gradient.add(1.0, this.tilt);
        value
    }
}
