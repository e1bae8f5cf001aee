//! The features that matter: by how much the loss grows when the values of a column are shuffled among the rows.

use crate::{
    Error,
    encoded::EncodedRows,
    scored::{MeasuredRows, ScoredRows, goal},
    split::draw,
    transform::Encoder,
    weights::{LayerSpace, Weights},
};
use rand_core::Rng;
use serde::{Deserialize, Serialize};
use strust::sample::generator;

/// Rows that are used at most.
const MOST_ROWS: usize = 2000;
/// Columns that are examined at most: those with the largest weights.
const MOST_COLUMNS: usize = 100;
/// The stream of the shuffles.
const SHUFFLE: u64 = (1 << 62) + 50;

/// A column and its importance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Importance {
    /// The name of the column.
    pub column: String,
    /// The growth of the mean loss when the column is shuffled.
    pub loss_growth: f64,
}

/// The importance of the columns, whose values are shuffled among some rows; the most important first. If a rank is interrupted, only of those examined so far.
pub(crate) fn importance(
    encoder: &Encoder,
    weights: &Weights,
    judged: MeasuredRows<'_>,
    seed: u64,
) -> Result<Vec<Importance>, Error> {
    let MeasuredRows { data: ScoredRows { rows, targets, .. }, index, task, ranks } = judged;
    let loss = task.loss();
    let mut rng = generator(seed, SHUFFLE);
    let index = shuffled(index, MOST_ROWS, &mut rng);
    let mut space = LayerSpace::default();
    let mut first = Vec::new();
    let (share, width) = (ranks.share(), weights.widths[1]);
    let own = share.places(&index);
    // A number of some columns for each row, on all ranks.
    let of_all = |mine: Vec<f64>| ranks.collect(index.iter().map(|&i| share.owner(i)), width, mine);
    let mut layers = Vec::with_capacity(width * own.len());
    for &i in &own {
        weights.first_layer(rows, i, &mut first);
        layers.extend_from_slice(&first);
    }
    let layers = of_all(layers)?;
    let mut z = vec![0.0; weights.outputs()];
    let mut loss_of = |first: &[f64], i: usize| {
        z.copy_from_slice(weights.after_first(first, &mut space));
        loss.differentiate(&mut z, goal(task, targets, i))
    };
    let base: f64 = layers.chunks_exact(width).zip(&index).map(|(first, &i)| loss_of(first, i)).sum();
    let mut found = Vec::new();
    for (column, inputs) in largest_columns(encoder, weights) {
        if ranks.any(ranks.is_interrupted()) {
            break;
        }
        let parts = of_all(own.iter().flat_map(|&i| part(weights, rows, i, inputs.clone())).collect())?;
        let part = |k: usize| &parts[k * width..][..width];
        let order = shuffled(&(0..index.len()).collect::<Vec<_>>(), index.len(), &mut rng);
        let mut sum = 0.0;
        for (k, &i) in index.iter().enumerate() {
            first.clear();
            first.extend_from_slice(&layers[k * width..][..width]);
            let change = part(order[k]).iter().zip(part(k)).map(|(other, own)| other - own);
            first.iter_mut().zip(change).for_each(|(first, change)| *first += change);
            sum += loss_of(&first, i);
        }
        found.push(Importance { column, loss_growth: (sum - base) / index.len() as f64 });
    }
    ranks.check()?;
    found.sort_by(|a, b| b.loss_growth.total_cmp(&a.loss_growth));
    Ok(found)
}

/// Each column with its inputs. If there are too many, those with the largest weights.
fn largest_columns(encoder: &Encoder, weights: &Weights) -> Vec<(String, std::ops::Range<usize>)> {
    let (mut columns, mut start) = (Vec::new(), 0);
    for column in &encoder.columns {
        columns.push((column.name.clone(), start..start + column.inputs()));
        start += column.inputs();
    }
    columns.extend((0..encoder.sparse_scales.len()).map(|j| (format!("feature {}", j + 1), start + j..start + j + 1)));
    if columns.len() > MOST_COLUMNS {
        let size = |inputs: &std::ops::Range<usize>| {
            inputs.clone().flat_map(|j| weights.of_input(j)).map(|w| w * w).sum::<f64>()
        };
        columns.sort_by(|a, b| size(&b.1).total_cmp(&size(&a.1)));
        columns.truncate(MOST_COLUMNS);
    }
    columns
}

/// What some inputs of a row add to the first layer.
fn part(weights: &Weights, rows: &EncodedRows, i: usize, inputs: std::ops::Range<usize>) -> Vec<f64> {
    let mut sum = vec![0.0; weights.widths[1]];
    rows.for_each(i, |j, value| {
        if inputs.contains(&j) {
            sum.iter_mut().zip(weights.of_input(j)).for_each(|(sum, w)| *sum += value * w);
        }
    });
    sum
}

/// Some of the entries in a random order.
fn shuffled(entries: &[usize], count: usize, rng: &mut impl Rng) -> Vec<usize> {
    let mut order = entries.to_vec();
    let count = count.min(order.len());
    draw(&mut order, count, rng);
    order.truncate(count);
    order
}
