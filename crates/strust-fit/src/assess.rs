//! How good predictions are: accuracy, log-loss, ROC curve, confusion and calibration, or R² and residuals.

use crate::{
    Error,
    encoded::EncodedRows,
    ranks::Ranks,
    scored::{MeasuredRows, ScoredRows},
    task::{FitTask, Targets},
    weights::{LayerSpace, Weights},
};
use serde::{Deserialize, Serialize};
use strust_data::loss::{OutputLoss, largest};

/// Bins of a calibration curve and of residuals.
const BINS: usize = 10;
/// Points of a ROC curve, about: more are not visible.
const ROC_POINTS: usize = 50;
/// Rows whose residuals are drawn at most: more would be one cloud.
const RESIDUAL_POINTS: usize = 500;

/// The scores of a model on some rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Assessment {
    /// Of classes.
    Classes(ClassAssessment),
    /// Of numbers.
    Regression(NumberAssessment),
}

/// The scores of a classifier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassAssessment {
    /// The number of rows.
    pub rows: usize,
    /// The share of rows whose most probable class is right.
    pub accuracy: f64,
    /// The share of the largest class: what always guessing it gives.
    pub largest_share: f64,
    /// The mean of the shares by class, over the classes that occur.
    pub balanced_accuracy: f64,
    /// The mean of −log p of the true class.
    pub log_loss: f64,
    /// The area under the ROC curve: the probability that the model ranks a row of the second of two classes above one of
    /// the first, where a tie counts half. `None` for several classes, and if one of two does not occur.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auc: Option<f64>,
    /// By how much this is below the log-loss of always guessing the shares of the classes in these rows.
    #[serde(default = "nan", deserialize_with = "or_nan")]
    pub gain: f64,
    /// The standard error of the gain.
    #[serde(default = "nan", deserialize_with = "or_nan")]
    pub gain_error: f64,
    /// `confusion[t][p]` rows of class t were predicted as p.
    pub confusion: Vec<Vec<u64>>,
    /// How often a prediction is right, by its probability.
    pub calibration: Vec<CalibrationBin>,
}

/// Predictions of similar probability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CalibrationBin {
    /// The number of rows.
    pub rows: u64,
    /// Their mean probability: of the second of two classes, or of the predicted class.
    pub predicted: f64,
    /// The share of rows for which it is the true class.
    pub observed: f64,
}

/// The scores of a regression, in the units of the target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NumberAssessment {
    /// The number of rows.
    pub rows: usize,
    /// 1 − Σ(y − ŷ)²/Σ(y − ȳ)², with the mean ȳ of these rows; NaN (null) if all targets are equal.
    #[serde(deserialize_with = "or_nan")]
    pub r2: f64,
    /// The standard error of R², from the differences between rows.
    #[serde(default = "nan", deserialize_with = "or_nan")]
    pub r2_error: f64,
    /// The root of the mean squared residual.
    pub rmse: f64,
    /// The mean size of a residual.
    pub mean_error: f64,
    /// The same for always guessing the mean of these rows.
    pub mean_guess_error: f64,
    /// Residuals by prediction.
    pub residuals: Vec<ResidualBin>,
}

/// Rows with similar predictions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ResidualBin {
    /// Their mean prediction.
    pub predicted: f64,
    /// The mean of y − ŷ.
    pub mean: f64,
    /// Its tenth percentile.
    pub low: f64,
    /// Its ninetieth percentile.
    pub high: f64,
}

/// Points of figures about some rows. They are no part of a model file.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ScorePoints {
    /// The ROC curve of two classes: the shares of the rows of the first and of the second class that are above a
    /// threshold, as it falls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roc: Vec<(f64, f64)>,
    /// The predictions and the residuals of some rows of a regression.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub residuals: Vec<(f64, f64)>,
}

/// JSON has no NaN; it is written as null.
fn or_nan<'de, D: serde::Deserializer<'de>>(input: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(input)?.unwrap_or(f64::NAN))
}

/// What older files do not have.
fn nan() -> f64 {
    f64::NAN
}

/// The prediction for one row.
#[derive(Debug, Clone, PartialEq)]
pub enum Prediction {
    /// A number in the units of the target.
    Number(f64),
    /// The most probable class, and the probabilities of all.
    Class(usize, Vec<f64>),
}

/// Predictions of a model, row by row.
pub struct Predictor<'a> {
    weights: &'a Weights,
    task: &'a FitTask,
    loss: OutputLoss,
    space: LayerSpace,
}

impl<'a> Predictor<'a> {
    /// Predictions by some weights.
    #[must_use]
    pub fn new(weights: &'a Weights, task: &'a FitTask) -> Self {
        Self { weights, task, loss: task.loss(), space: LayerSpace::default() }
    }
    /// The prediction for a row.
    pub fn predict(&mut self, rows: &EncodedRows, i: usize) -> Prediction {
        let z = self.weights.apply(rows, i, &mut self.space);
        match self.task {
            FitTask::Regression { mean, deviation, scale, .. } => {
                Prediction::Number(scale.invert(mean + deviation * z[0]))
            }
            FitTask::Classes { .. } => {
                let mut probabilities = Vec::new();
                self.loss.probabilities(z, &mut probabilities);
                Prediction::Class(largest(&probabilities), probabilities)
            }
        }
    }
}

/// Rows that a model predicts in a moment, whatever its size. So many are assessed even if the caller wants to stop.
pub(crate) fn at_once(weights: &Weights) -> usize {
    (100_000_000 / weights.flat.len()).clamp(16, 4096)
}

/// Measures a model on some rows, of which there must be at least one. If a rank is interrupted, it is
/// [`Error::Interrupted`] on all of them.
pub(crate) fn assess(weights: &Weights, measured: MeasuredRows<'_>) -> Result<(Assessment, ScorePoints), Error> {
    assess_parts(&[(weights, measured)])
}

/// The same for several models, each on its own rows: the scores of all these rows. There must be at least one model.
pub(crate) fn assess_parts(parts: &[(&Weights, MeasuredRows<'_>)]) -> Result<(Assessment, ScorePoints), Error> {
    let (_, MeasuredRows { task, ranks, .. }) = parts[0];
    let classes = task.class_names().map_or(0, <[String]>::len);
    let mut tally = ClassTally::new(classes);
    // Predictions with their targets, or probabilities of the second of two classes and whether a row has it.
    let (mut pairs, mut ranked) = (Vec::new(), Vec::new());
    for &(weights, MeasuredRows { data: ScoredRows { rows, targets, .. }, index, .. }) in parts {
        let mut predictor = Predictor::new(weights, task);
        let (share, at_once) = (ranks.share(), at_once(weights));
        let mut stopped = false;
        let mut numbers = Vec::with_capacity(share.count(index.len()));
        for (k, &i) in index.iter().filter(|&&i| share.owns(i)).enumerate() {
            if k > 0 && k.is_multiple_of(at_once) && ranks.is_interrupted() {
                stopped = true;
                break;
            }
            match (predictor.predict(rows, share.place(i)), targets) {
                (Prediction::Class(class, probabilities), Targets::Classes(classes)) => {
                    tally.add(classes[i] as usize, class, &probabilities);
                    if let [_, second] = probabilities[..] {
                        numbers.push(second);
                    }
                }
                (Prediction::Number(predicted), _) => numbers.push(predicted),
                _ => unreachable!("the task made the targets"),
            }
        }
        ranks.complete(!stopped)?;
        if classes > 2 {
            continue;
        }
        let numbers = ranks.collect(index.iter().map(|&i| share.owner(i)), 1, numbers)?.into_iter();
        match targets {
            Targets::Numbers(values) => pairs.extend(numbers.zip(index.iter().map(|&i| values[i]))),
            Targets::Classes(classes) => ranked.extend(numbers.zip(index.iter().map(|&i| classes[i] == 1))),
        }
    }
    let mut points = ScorePoints::default();
    if classes > 0 {
        let mut scores = tally.of_all(ranks)?.finish();
        if let Some((area, curve)) = roc(ranked.into_iter()) {
            (scores.auc, points.roc) = (Some(area), curve);
        }
        return Ok((Assessment::Classes(scores), points));
    }
    // By their predictions, every k-th: the same rows on all ranks, and as dense as all of them.
    let scores = of_numbers(&mut pairs);
    let some = pairs.iter().step_by(pairs.len().div_ceil(RESIDUAL_POINTS));
    points.residuals = some.map(|&(p, y)| (p, y - p)).collect();
    Ok((Assessment::Regression(scores), points))
}

struct ClassTally {
    confusion: Vec<Vec<u64>>,
    /// The sums of −log p and of its square, by class.
    losses: Vec<[f64; 2]>,
    /// Rows, the sum of probabilities and the number of right ones in each bin.
    bins: [(u64, f64, u64); BINS],
}

impl ClassTally {
    fn new(classes: usize) -> Self {
        Self { confusion: vec![vec![0; classes]; classes], losses: vec![[0.0; 2]; classes], bins: [(0, 0.0, 0); BINS] }
    }

    fn add(&mut self, truth: usize, class: usize, probabilities: &[f64]) {
        self.confusion[truth][class] += 1;
        // A probability that is rounded to 0 must not make the mean infinite.
        let loss = -probabilities[truth].max(f64::MIN_POSITIVE).ln();
        self.losses[truth][0] += loss;
        self.losses[truth][1] += loss * loss;
        let shown = if probabilities.len() == 2 { 1 } else { class };
        let bin = &mut self.bins[((probabilities[shown] * BINS as f64) as usize).min(BINS - 1)];
        bin.0 += 1;
        bin.1 += probabilities[shown];
        bin.2 += u64::from(truth == shown);
    }

    /// The tally of all ranks. Counts are exact as numbers.
    fn of_all(mut self, ranks: &Ranks<'_>) -> Result<Self, Error> {
        let counts = self.confusion.iter().flatten().map(|&count| count as f64);
        let bins = self.bins.iter().flat_map(|&(rows, sum, right)| [rows as f64, sum, right as f64]);
        let mut sums: Vec<f64> = counts.chain(bins).chain(self.losses.iter().flatten().copied()).collect();
        ranks.add(&mut sums)?;
        let mut next = sums.into_iter();
        let mut next = || next.next().unwrap_or_default();
        self.confusion.iter_mut().flatten().for_each(|count| *count = next() as u64);
        self.bins.iter_mut().for_each(|bin| *bin = (next() as u64, next(), next() as u64));
        self.losses.iter_mut().flatten().for_each(|sum| *sum = next());
        Ok(self)
    }

    fn finish(self) -> ClassAssessment {
        let sums: Vec<u64> = self.confusion.iter().map(|row| row.iter().sum()).collect();
        let rows: u64 = sums.iter().sum();
        let right: u64 = self.confusion.iter().enumerate().map(|(c, row)| row[c]).sum();
        let n = rows as f64;
        let recall = |c: usize| self.confusion[c][c] as f64 / sums[c] as f64;
        let recalls: Vec<f64> = (0..sums.len()).filter(|&c| sums[c] > 0).map(recall).collect();
        let bin = |&(rows, sum, right): &(u64, f64, u64)| CalibrationBin {
            rows,
            predicted: sum / rows as f64,
            observed: right as f64 / rows as f64,
        };
        // The gain of a row of class c is −log(share of c) minus its loss.
        let (mut gain, mut squares) = (0.0, 0.0);
        for (&[sum, square], &count) in self.losses.iter().zip(&sums).filter(|(_, count)| **count > 0) {
            let (count, guess) = (count as f64, -(count as f64 / n).ln());
            gain += count * guess - sum;
            squares += square - 2.0 * guess * sum + count * guess * guess;
        }
        ClassAssessment {
            rows: rows as usize,
            accuracy: right as f64 / n,
            largest_share: sums.iter().copied().max().unwrap_or(0) as f64 / n,
            balanced_accuracy: recalls.iter().sum::<f64>() / recalls.len() as f64,
            log_loss: self.losses.iter().map(|[sum, _]| sum).sum::<f64>() / n,
            gain: gain / n,
            gain_error: (squares - gain * gain / n).max(0.0).sqrt() / n,
            auc: None,
            confusion: self.confusion,
            calibration: self.bins.iter().filter(|bin| bin.0 > 0).map(bin).collect(),
        }
    }
}

/// The area under the ROC curve and some of its points, from the scores of all rows and whether they are positive; `None`
/// unless there are rows of both kinds.
fn roc(ranked: impl Iterator<Item = (f64, bool)>) -> Option<(f64, Vec<(f64, f64)>)> {
    let (mut positive, mut negative) = (Vec::new(), Vec::new());
    for (score, is_positive) in ranked {
        // A score that is not a number is below all others.
        let score = if score.is_nan() { f64::NEG_INFINITY } else { score };
        if is_positive { positive.push(score) } else { negative.push(score) }
    }
    if positive.is_empty() || negative.is_empty() {
        return None;
    }
    for scores in [&mut positive, &mut negative] {
        scores.sort_unstable_by(|a, b| b.total_cmp(a));
    }
    let (all_positive, all_negative) = (positive.len() as f64, negative.len() as f64);
    let (mut hits, mut alarms, mut area) = (0, 0, 0.0);
    let mut points = vec![(0.0, 0.0)];
    while hits < positive.len() || alarms < negative.len() {
        // All rows with the largest score that is left: a sloped line where they tie.
        let next = |scores: &[f64], from: usize| scores.get(from).copied().unwrap_or(f64::NEG_INFINITY);
        let score = next(&positive, hits).max(next(&negative, alarms));
        let (before, from) = (hits, alarms);
        hits += positive[hits..].iter().take_while(|&&other| other >= score).count();
        alarms += negative[alarms..].iter().take_while(|&&other| other >= score).count();
        area += (alarms - from) as f64 * (before + hits) as f64 / 2.0;
        let point = (alarms as f64 / all_negative, hits as f64 / all_positive);
        // The curve has the length 2 along its axes.
        let (x, y) = points[points.len() - 1];
        if point.0 - x + point.1 - y >= 2.0 / ROC_POINTS as f64 || point == (1.0, 1.0) {
            points.push(point);
        }
    }
    Some((area / (all_positive * all_negative), points))
}

/// The scores of pairs (prediction, target), which are sorted by prediction.
fn of_numbers(pairs: &mut [(f64, f64)]) -> NumberAssessment {
    let n = pairs.len() as f64;
    let mean_of =
        |f: &dyn Fn(f64, f64) -> f64, pairs: &[(f64, f64)]| pairs.iter().map(|&(p, y)| f(p, y)).sum::<f64>() / n;
    let mean = mean_of(&|_, y| y, pairs);
    let squares = mean_of(&|p, y| (y - p).powi(2), pairs);
    let spread = mean_of(&|_, y| (y - mean).powi(2), pairs);
    let r2 = if spread > 0.0 { 1.0 - squares / spread } else { f64::NAN };
    let mean_error = mean_of(&|p, y| (y - p).abs(), pairs);
    let mean_guess_error = mean_of(&|_, y| (y - mean).abs(), pairs);
    // R² = 1 − A/B is a ratio of means, so its error is that of the mean of a − (A/B)b, divided by B.
    let deviant = |p: f64, y: f64| ((y - p).powi(2) - (1.0 - r2) * (y - mean).powi(2)).powi(2);
    let r2_error = (mean_of(&deviant, pairs) / n).sqrt() / spread;
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let bins = BINS.min(pairs.len());
    let residuals = (0..bins).map(|k| residual_bin(&pairs[k * pairs.len() / bins..(k + 1) * pairs.len() / bins]));
    NumberAssessment {
        rows: pairs.len(),
        r2,
        r2_error,
        rmse: squares.sqrt(),
        mean_error,
        mean_guess_error,
        residuals: residuals.collect(),
    }
}

fn residual_bin(pairs: &[(f64, f64)]) -> ResidualBin {
    let n = pairs.len() as f64;
    let mut residuals: Vec<f64> = pairs.iter().map(|(p, y)| y - p).collect();
    residuals.sort_by(f64::total_cmp);
    let at = |share: f64| residuals[((share * (residuals.len() - 1) as f64).round()) as usize];
    ResidualBin {
        predicted: pairs.iter().map(|(p, _)| p).sum::<f64>() / n,
        mean: residuals.iter().sum::<f64>() / n,
        low: at(0.1),
        high: at(0.9),
    }
}

impl Assessment {
    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        match self {
            Self::Classes(scores) => scores.rows,
            Self::Regression(scores) => scores.rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of pairs that are in order, where a tie counts half.
    fn by_pairs(rows: &[(f64, bool)]) -> f64 {
        let of = |kind: bool| rows.iter().filter(move |row| row.1 == kind).map(|row| row.0);
        let pairs: Vec<f64> = of(true)
            .flat_map(|a| {
                of(false).map(move |b| f64::midpoint(f64::from(u8::from(a > b)), f64::from(u8::from(a >= b))))
            })
            .collect();
        pairs.iter().sum::<f64>() / pairs.len() as f64
    }

    #[test]
    fn the_area_under_the_roc_curve_is_the_share_of_pairs_in_order() {
        // Sevenths have many ties.
        let rows: Vec<(f64, bool)> = (0..300_u32).map(|i| (f64::from(i * 37 % 7) / 7.0, i * 31 % 11 < 4)).collect();
        let (area, points) = roc(rows.iter().copied()).unwrap();
        assert!((area - by_pairs(&rows)).abs() < 1e-15, "{area}");
        assert_eq!((points.len(), points[0], points[7]), (8, (0.0, 0.0), (1.0, 1.0)));
        let trapezoids = points.windows(2).map(|pair| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0);
        assert!((trapezoids.sum::<f64>() - area).abs() < 1e-12);
        assert_eq!(roc([(0.1, false), (0.9, true)].into_iter()), Some((1.0, vec![(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)])));
        assert_eq!(roc([(0.1, true), (0.9, true)].into_iter()), None);
    }

    #[test]
    fn a_roc_curve_has_few_points() {
        let (_, points) = roc((0..10_000_u32).map(|i| (f64::from(i), i * 7919 % 10_000 < i))).unwrap();
        assert!((30..=ROC_POINTS + 2).contains(&points.len()), "{}", points.len());
        assert!(points.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1) && points.last() == Some(&(1.0, 1.0)));
    }
}
