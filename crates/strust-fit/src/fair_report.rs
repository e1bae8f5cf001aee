//! What bounds do: quantities by group with intervals, and what the bounds cost.

use crate::{
    Error,
    assess::{Assessment, Predictor, assess},
    fair::{FairRule, GroupColumn, GroupQuantity, LEAST_ROWS, ModelFairness, VIOLATION},
    scored::MeasuredRows,
    setup::FitSetup,
    table::DataTable,
    weights::{LayerSpace, Weights},
};
use serde::Serialize;
use strust_data::words::argument;

/// The quantile of the normal distribution for 95 %.
const NORMAL: f64 = 1.96;
/// Bounds of the curve, as shares of the difference without a bound.
const CURVE: [f64; 4] = [0.0, 0.25, 0.5, 0.75];

/// A mean with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Estimate {
    fn around(value: f64, error: f64) -> Self {
        Self { value, low: value - NORMAL * error, high: value + NORMAL * error }
    }
    /// A share of n rows, with Wilson's interval.
    fn share(value: f64, n: f64) -> Self {
        let z = NORMAL * NORMAL / n;
        let half = (z * value * (1.0 - value) + 0.25 * z * z).max(0.0).sqrt();
        Self { value, low: (value + 0.5 * z - half) / (1.0 + z), high: (value + 0.5 * z + half) / (1.0 + z) }
    }
}

/// The quantities of a group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupRates {
    /// The group.
    pub group: String,
    /// Its rows.
    pub rows: usize,
    /// Each quantity that the group has rows for.
    pub quantities: Vec<(GroupQuantity, Estimate)>,
}

/// The groups of a column.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ColumnRates {
    /// The column.
    pub column: String,
    /// Its groups.
    pub groups: Vec<GroupRates>,
}

/// What a bound does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FairEffect {
    /// What is bounded, in words.
    pub text: String,
    /// What is bounded.
    pub quantity: GroupQuantity,
    /// The bound.
    pub bound: f64,
    /// The largest difference, or the rate, on the training rows.
    pub training: f64,
    /// The same of the model without bounds.
    pub free: f64,
    /// That on the held-out rows, if there are any.
    pub held_out: Option<Estimate>,
}

/// A fit with another bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FairPoint {
    /// The first bound.
    pub bound: f64,
    /// The accuracy or R² on the training rows.
    pub training: f64,
    /// That on the held-out rows, if there are any.
    pub held_out: Option<Estimate>,
}

/// What bounds do to a fit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FairReport {
    /// What each bound does.
    pub effects: Vec<FairEffect>,
    /// The share by which the loss on the training rows would be lower without bounds.
    pub cost: f64,
    /// The scores of the fit.
    pub fit: FairPoint,
    /// Those without bounds, if these change the fit. The bound is the largest difference, or the rate.
    pub free: Option<FairPoint>,
    /// Fits with other values of the first bound, the smallest first, with these two.
    pub curve: Vec<FairPoint>,
    /// Sentences about rows that do not count.
    pub notes: Vec<String>,
    /// The groups on the held-out rows or, without any, on the training rows.
    pub columns: Vec<ColumnRates>,
}

/// The count, the sum and the sum of squares of each quantity in a group.
#[derive(Debug, Clone, Copy, Default)]
struct GroupTally([[f64; 3]; GroupQuantity::ALL.len()]);

impl GroupTally {
    fn mean(&self, quantity: GroupQuantity) -> f64 {
        let [n, sum, _] = self.0[quantity as usize];
        sum / n
    }
    /// The standard error of the mean.
    fn error(&self, quantity: GroupQuantity) -> f64 {
        let [n, sum, squares] = self.0[quantity as usize];
        ((squares - sum * sum / n).max(0.0) / (n - 1.0) / n).sqrt()
    }
    fn estimate(&self, quantity: GroupQuantity) -> Option<Estimate> {
        let (n, mean) = (self.0[quantity as usize][0], self.mean(quantity));
        let around = || Estimate::around(mean, self.error(quantity));
        (n >= 1.0).then(|| if quantity.is_rate() { Estimate::share(mean, n) } else { around() })
    }
}

/// Tallies of all rows, and of the groups of each column.
struct Tallies {
    all: GroupTally,
    columns: Vec<Vec<GroupTally>>,
}

impl Tallies {
    /// Of the predictions for some rows. `codes` has the group of each row in memory, for each column.
    fn of(
        columns: &[GroupColumn],
        codes: &[Vec<Option<usize>>],
        weights: &Weights,
        on: MeasuredRows<'_>,
    ) -> Result<Self, Error> {
        let (mut predictor, ranks, share) = (Predictor::new(weights, on.task), on.ranks, on.ranks.share());
        let mut all = GroupTally::default();
        let mut by_column: Vec<Vec<GroupTally>> =
            columns.iter().map(|column| vec![GroupTally::default(); column.groups.len()]).collect();
        for place in share.places(on.index) {
            if ranks.is_interrupted() {
                break;
            }
            let (prediction, goal) = (predictor.predict(&on.data.rows, place), on.data.goals[place]);
            for quantity in GroupQuantity::ALL {
                let Some(number) = quantity.of(&prediction, goal) else { continue };
                let add = |tally: &mut GroupTally| {
                    let sums = &mut tally.0[quantity as usize];
                    *sums = [sums[0] + 1.0, sums[1] + number, sums[2] + number * number];
                };
                add(&mut all);
                for (tallies, codes) in by_column.iter_mut().zip(codes) {
                    codes[place].into_iter().for_each(|group| add(&mut tallies[group]));
                }
            }
        }
        ranks.proceed()?;
        for tally in by_column.iter_mut().flatten().chain([&mut all]) {
            ranks.add(tally.0.as_flattened_mut())?;
        }
        Ok(Self { all, columns: by_column })
    }

    /// What each bound is about: the largest difference between groups, or the rate.
    fn bounded(&self, asked: &ModelFairness) -> Vec<Option<Estimate>> {
        let difference = |(rule, tallies): (&FairRule, &Vec<GroupTally>)| {
            let quantity = rule.quantity;
            let counts = |tally: &&GroupTally| tally.0[quantity as usize][0] >= LEAST_ROWS;
            let by_mean = |a: &&GroupTally, b: &&GroupTally| a.mean(quantity).total_cmp(&b.mean(quantity));
            let high = tallies.iter().filter(counts).max_by(by_mean)?;
            let low = tallies.iter().filter(counts).min_by(by_mean)?;
            let error = high.error(quantity).hypot(low.error(quantity));
            Some(Estimate::around(high.mean(quantity) - low.mean(quantity), error))
        };
        let rules = asked.options.rules.iter().zip(&self.columns).map(difference);
        rules.chain(asked.options.limits.iter().map(|limit| self.all.estimate(limit.quantity))).collect()
    }

    /// By column, each once.
    fn rates(&self, columns: &[GroupColumn]) -> Vec<ColumnRates> {
        let mut found: Vec<ColumnRates> = Vec::new();
        for (column, tallies) in columns.iter().zip(&self.columns) {
            if found.iter().any(|other| other.column == column.name) {
                continue;
            }
            let group = |(name, tally): (&String, &GroupTally)| GroupRates {
                group: name.clone(),
                rows: tally.0[GroupQuantity::Score as usize][0] as usize,
                quantities: GroupQuantity::ALL.into_iter().filter_map(|q| Some((q, tally.estimate(q)?))).collect(),
            };
            let groups = column.groups.iter().zip(tallies).map(group).collect();
            found.push(ColumnRates { column: column.name.clone(), groups });
        }
        found
    }
}

/// The quantities by group of a model on some rows, for those columns that the rows have.
pub(crate) fn rates(
    asked: &ModelFairness,
    codes: Vec<Option<Vec<Option<usize>>>>,
    weights: &Weights,
    on: MeasuredRows<'_>,
) -> Result<Vec<ColumnRates>, Error> {
    let has = asked.columns.iter().zip(codes).filter_map(|(column, codes)| Some((column.clone(), codes?)));
    let (columns, codes): (Vec<_>, Vec<_>) = has.unzip();
    Ok(Tallies::of(&columns, &codes, weights, on)?.rates(&columns))
}

/// Measures a fit, if it has bounds, from its weights with and without them. The held-out rows are those of `test`, if it
/// is there.
pub(crate) fn fair_report(
    setup: &FitSetup<'_>,
    (weights, free): (&Weights, Option<&Weights>),
    own: MeasuredRows<'_>,
    held_out: MeasuredRows<'_>,
    test: Option<&DataTable>,
) -> Result<Option<FairReport>, Error> {
    let (Some(set), Some(free)) = (setup.fair, free) else { return Ok(None) };
    let codes = &test.map_or_else(|| Ok(set.codes.clone()), |test| set.codes_of(test))?;
    let asked = &set.asked;
    let is_held_out = !held_out.index.is_empty();
    let training = Tallies::of(&asked.columns, &set.codes, weights, own)?;
    let of_free = Tallies::of(&asked.columns, &set.codes, free, own)?.bounded(asked);
    let judged = is_held_out.then(|| Tallies::of(&asked.columns, codes, weights, held_out)).transpose()?;
    let of_judged = judged.as_ref().map(|tallies| tallies.bounded(asked));
    let rules = asked.options.rules.iter().map(|rule| (rule.to_string(), rule.quantity, rule.bound));
    let limits = asked.options.limits.iter().map(|limit| (limit.to_string(), limit.quantity, limit.bound));
    let value = |estimate: Option<Estimate>| estimate.map_or(f64::NAN, |estimate| estimate.value);
    let effects: Vec<FairEffect> = rules
        .chain(limits)
        .zip(training.bounded(asked).into_iter().zip(&of_free))
        .enumerate()
        .map(|(k, ((text, quantity, bound), (on_training, of_free)))| FairEffect {
            text,
            quantity,
            bound,
            training: value(on_training),
            free: value(*of_free),
            held_out: of_judged.as_ref().and_then(|of| of[k]),
        })
        .collect();
    let space = &mut LayerSpace::default();
    let [loss, of_free] = [weights, free].map(|weights| own.mean_loss(weights, space).unwrap_or(f64::NAN));
    let point = |bound: f64, weights: &Weights| -> Result<FairPoint, Error> {
        let score = |on| Ok::<_, Error>(score(&assess(weights, on)?.0));
        let held_out = is_held_out.then(|| score(held_out)).transpose()?;
        Ok(FairPoint { bound, training: score(own)?.value, held_out })
    };
    let first = &effects[0];
    let fit = point(first.bound, weights)?;
    let is_active = effects.iter().any(|effect| effect.free > effect.bound);
    let free_point = is_active.then(|| point(first.free, free)).transpose()?;
    let mut curve: Vec<FairPoint> = [Some(fit), free_point].into_iter().flatten().collect();
    for share in CURVE.into_iter().filter(|_| first.free > first.bound) {
        let bound = share * first.free;
        let other = match setup.under(&set.with_first(bound), own, free) {
            // Nothing satisfies such a bound.
            Err(Error::Contents { .. }) => continue,
            other => other?,
        };
        let reached = Tallies::of(&asked.columns, &set.codes, &other, own)?.bounded(asked);
        // Decisions of few rows may not reach a bound.
        if value(reached[0]) <= bound + VIOLATION {
            curve.push(point(bound, &other)?);
        }
    }
    curve.sort_by(|a, b| a.bound.total_cmp(&b.bound));
    let mut notes = setup.fair_notes(set, own)?;
    let is_input = |name: &&str| setup.encoder.columns.iter().any(|column| column.name == **name);
    notes.extend(asked.options.columns().into_iter().filter(is_input).map(|name| {
        let option = argument(name);
        format!("`{name}` has the groups of --fair and is an input of the model too: --drop {option} leaves it out")
    }));
    let columns = judged.unwrap_or(training).rates(&asked.columns);
    Ok(Some(FairReport { effects, cost: 1.0 - of_free / loss, fit, free: free_point, curve, notes, columns }))
}

/// The accuracy or R².
fn score(scores: &Assessment) -> Estimate {
    match scores {
        Assessment::Classes(scores) => Estimate::share(scores.accuracy, scores.rows as f64),
        Assessment::Regression(scores) => Estimate::around(scores.r2, scores.r2_error),
    }
}
