//! The rows of a task: features, labels and groups, made or read from a file.

use serde::Serialize;
use std::path::Path;
use strust::{
    objective::{Objective, from_terms},
    ranks::Alone,
};
use strust_data::{
    DataError, DataTable, ReadOptions,
    numerics::normals,
    ranks::{NEVER, Ranks},
    table::{Cells, ReadProgress},
    transform::{Encoder, Standardize},
};
use strust_lab::Error;

/// Every third row of a single file is held out.
const THIRD: usize = 3;
/// The weight of the regularizer, so that every task has one minimum.
const RIDGE: f64 = 1e-3;

/// Which rows of a column are a group.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum GroupRule {
    /// Those with this word.
    Is(&'static str),
    /// Those with a number up to this one.
    UpTo(f64),
    /// All that are in no group before.
    Rest,
}

/// Where the rows of a task come from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum FairSource {
    /// Made. Each entry is a group: its share of the rows.
    Made(&'static [f64]),
    /// Files of the folder of data sets.
    Files {
        /// The training rows.
        train: &'static str,
        /// The held-out rows. Without them, every third row is held out.
        test: Option<&'static str>,
        /// The target, and the word of its positive class.
        target: (&'static str, &'static str),
        /// The column of the groups, and the groups.
        groups: (&'static str, &'static [GroupRule]),
    },
}

/// Some rows.
pub struct GroupedRows {
    /// Their inputs that are not 0, with the 1 of the intercept.
    inputs: Vec<Vec<(u32, f64)>>,
    /// Whether a row is positive.
    pub positive: Vec<bool>,
    /// The group of each row, if it is in one.
    pub group: Vec<Option<usize>>,
    /// The number of inputs.
    pub parameters: usize,
}

impl GroupedRows {
    pub fn len(&self) -> usize {
        self.positive.len()
    }
    fn score(&self, i: usize, x: &[f64]) -> f64 {
        let z: f64 = self.inputs[i].iter().map(|&(j, value)| value * x[j as usize]).sum();
        1.0 / (1.0 + (-z).exp())
    }
    fn add(&self, i: usize, factor: f64, g: &mut [f64]) {
        self.inputs[i].iter().for_each(|&(j, value)| g[j as usize] += factor * value);
    }
    /// The mean logistic loss with a small regularizer.
    pub fn loss(&self) -> impl Objective<Point = Vec<f64>> {
        from_terms(self.len(), |i, x: &Vec<f64>, g: &mut Vec<f64>| {
            let (p, y) = (self.score(i, x), f64::from(u8::from(self.positive[i])));
            self.add(i, p - y, g);
            g.iter_mut().zip(x).for_each(|(g, x)| *g += RIDGE * x);
            let right = if self.positive[i] { p } else { 1.0 - p };
            -right.max(f64::MIN_POSITIVE).ln() + 0.5 * RIDGE * x.iter().map(|x| x * x).sum::<f64>()
        })
    }
    /// The predicted probability of the positive class.
    pub fn probability(&self) -> impl Objective<Point = Vec<f64>> {
        from_terms(self.len(), |i, x: &Vec<f64>, g: &mut Vec<f64>| self.add_probability(i, x, 1.0, g))
    }
    /// The probability of row i. Adds its slope times a factor to g.
    pub fn add_probability(&self, i: usize, x: &[f64], factor: f64, g: &mut [f64]) -> f64 {
        let p = self.score(i, x);
        self.add(i, factor * p * (1.0 - p), g);
        p
    }
    /// The share of rows whose class is predicted.
    pub fn accuracy(&self, x: &[f64]) -> f64 {
        let right = (0..self.len()).filter(|&i| (self.score(i, x) > 0.5) == self.positive[i]).count();
        right as f64 / self.len() as f64
    }
    fn only(&self, keep: impl Fn(usize) -> bool) -> Self {
        let kept: Vec<usize> = (0..self.len()).filter(|&i| keep(i)).collect();
        Self {
            inputs: kept.iter().map(|&i| self.inputs[i].clone()).collect(),
            positive: kept.iter().map(|&i| self.positive[i]).collect(),
            group: kept.iter().map(|&i| self.group[i]).collect(),
            parameters: self.parameters,
        }
    }
}

impl FairSource {
    /// The training rows and the held-out rows. `None` if a file is missing.
    pub fn rows(&self, folder: Option<&Path>) -> Result<Option<(GroupedRows, GroupedRows)>, Error> {
        match *self {
            Self::Made(shares) => Ok(Some((made(shares, 0), made(shares, 1)))),
            Self::Files { train, test, target, groups } => {
                let Some(folder) = folder else { return Ok(None) };
                let (train, test) = (folder.join(train), test.map(|test| folder.join(test)));
                if !train.is_file() || test.as_ref().is_some_and(|test| !test.is_file()) {
                    return Ok(None);
                }
                let read = |path: &Path| read(path, target.0);
                let table = read(&train)?;
                let every: Vec<usize> = (0..table.rows).collect();
                let ranks = &mut Alone;
                let leave_out = [target.0.to_string()];
                let encoder =
                    Encoder::fit(&table, &every, Some(Standardize::Full), &leave_out, &Ranks::new(ranks, &NEVER))?;
                let rows = |table: &DataTable| rows_of(table, &encoder, target, groups);
                let all = rows(&table)?;
                Ok(Some(match test {
                    Some(test) => (all, rows(&read(&test)?)?),
                    None => (all.only(|i| i % THIRD != THIRD - 1), all.only(|i| i % THIRD == THIRD - 1)),
                }))
            }
        }
    }
}

fn read(path: &Path, target: &str) -> Result<DataTable, DataError> {
    let options = ReadOptions { target: Some(target.into()), ..ReadOptions::default() };
    DataTable::read(path, &options, &mut ReadProgress { at: &mut |_| {}, interrupt: &NEVER })
}

/// The cells of a column as words; a number as it is printed.
fn words(table: &DataTable, name: &str) -> Result<Vec<String>, DataError> {
    let missing = || DataError::file(&table.path, format!("there is no column `{name}`"));
    Ok(match &table.column(name).ok_or_else(missing)?.cells {
        Cells::Numbers(numbers) => numbers.iter().map(f64::to_string).collect(),
        Cells::Words { codes, words } => {
            codes.iter().map(|&code| words.get(code as usize).cloned().unwrap_or_default()).collect()
        }
        Cells::Texts => vec![String::new(); table.rows],
    })
}

fn rows_of(
    table: &DataTable,
    encoder: &Encoder,
    (target, positive): (&str, &str),
    (column, rules): (&str, &[GroupRule]),
) -> Result<GroupedRows, DataError> {
    let (encoded, _) = encoder.encode(table, &NEVER)?;
    let one = encoded.inputs() as u32;
    let inputs = |i: usize| {
        let mut inputs = vec![(one, 1.0)];
        encoded.for_each(i, |j, value| inputs.push((j as u32, value)));
        inputs
    };
    let group = |cell: String| {
        rules.iter().position(|rule| match *rule {
            GroupRule::Is(word) => cell == word,
            GroupRule::UpTo(most) => cell.parse::<f64>().is_ok_and(|number| number <= most),
            GroupRule::Rest => true,
        })
    };
    Ok(GroupedRows {
        inputs: (0..table.rows).map(inputs).collect(),
        positive: words(table, target)?.into_iter().map(|word| word.trim_end_matches('.') == positive).collect(),
        group: words(table, column)?.into_iter().map(group).collect(),
        parameters: encoded.inputs() + 1,
    })
}

/// GroupedRows whose first input and whose label depend on the group.
fn made(shares: &[f64], seed: u64) -> GroupedRows {
    const ROWS: usize = 6000;
    const INPUTS: usize = 10;
    let mut normal = normals(seed, 7);
    let (mut inputs, mut positive, mut group) = (Vec::new(), Vec::new(), Vec::new());
    let ends: Vec<f64> = shares
        .iter()
        .scan(0.0, |sum, share| {
            Some({
                *sum += share;
                *sum
            })
        })
        .collect();
    for i in 0..ROWS {
        let place = (i as f64 + 0.5) / ROWS as f64;
        let of = ends.iter().position(|end| place <= *end);
        let shift = of.unwrap_or(0) as f64;
        let mut row: Vec<(u32, f64)> = (0..INPUTS as u32).map(|j| (j, normal())).collect();
        row[0].1 += shift;
        row.push((INPUTS as u32, 1.0));
        // The label depends on three inputs and on the group itself.
        let z = row[0].1 + row[1].1 - 0.5 * row[2].1 + 0.5 * shift - 1.0;
        positive.push(z + normal() > 0.0);
        inputs.push(row);
        group.push(of);
    }
    GroupedRows { inputs, positive, group, parameters: INPUTS + 1 }
}
