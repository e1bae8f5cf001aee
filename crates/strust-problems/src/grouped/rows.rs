//! Rows with classes and groups, made or read from a file.

use faer::Mat;
use std::{fmt, path::Path, sync::atomic::AtomicBool};
use strust::{Error, ranks::Alone};
use strust_data::{
    DataError, DataTable, ReadOptions, limits,
    numerics::normals,
    ranks::Ranks,
    table::{Cells, ReadProgress},
    transform::{Encoder, Standardize},
};

/// The inputs of made rows.
const INPUTS: usize = 10;
/// The stream of made rows.
const MADE: u64 = 7;

/// Which rows of a column are a group.
#[derive(Debug, Clone, PartialEq)]
pub enum GroupRule {
    /// Those with this word.
    Is(String),
    /// Those with a number up to this one.
    UpTo(f64),
    /// All that are in no group before.
    Rest,
}

impl GroupRule {
    /// The rules of a list such as `<=25, rest` or `Caucasian, African-American`.
    ///
    /// ```
    /// use strust_problems::grouped::GroupRule;
    /// assert_eq!(GroupRule::list("<=25, rest"), [GroupRule::UpTo(25.0), GroupRule::Rest]);
    /// assert_eq!(GroupRule::list("a,b"), [GroupRule::Is("a".into()), GroupRule::Is("b".into())]);
    /// ```
    #[must_use]
    pub fn list(text: &str) -> Vec<Self> {
        let rule = |word: &str| match word.strip_prefix("<=").map(|number| number.trim().parse()) {
            Some(Ok(most)) => Self::UpTo(most),
            _ if word == "rest" => Self::Rest,
            _ => Self::Is(word.into()),
        };
        text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(rule).collect()
    }

    fn takes(&self, cell: &str) -> bool {
        match self {
            Self::Is(word) => cell == word,
            Self::UpTo(most) => cell.parse::<f64>().is_ok_and(|number| number <= *most),
            Self::Rest => true,
        }
    }
}

impl fmt::Display for GroupRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(word) => write!(f, "`{word}`"),
            Self::UpTo(most) => write!(f, "<= {most}"),
            Self::Rest => f.write_str("rest"),
        }
    }
}

/// Some rows.
#[derive(Debug, Clone)]
pub struct GroupedRows {
    /// A column for each row: its inputs, then a 1.
    pub(super) columns: Mat<f64>,
    /// 1 for the rows of the positive class, 0 for the others.
    pub(super) positive: Vec<f64>,
    pub(super) group: Vec<Option<usize>>,
    pub(super) groups: usize,
}

/// The columns of a file.
#[derive(Debug, Clone, Copy)]
pub struct GroupedFile<'a> {
    /// The column of the classes.
    pub target: &'a str,
    /// The word of the positive class. Points after it, as the file of Adult for tests has them, do not count.
    pub positive: &'a str,
    /// The column of the groups. It is an input, too.
    pub column: &'a str,
    /// The groups.
    pub groups: &'a [GroupRule],
}

impl GroupedRows {
    /// Made rows with 10 inputs. Each group has a share of the rows, and the labels of its rows have noise of a deviation.
    /// The first input and the label depend on the group.
    #[must_use]
    pub fn made(rows: usize, groups: &[(f64, f64)], seed: u64) -> Self {
        let mut normal = normals(seed, MADE);
        let (mut columns, mut positive, mut group) = (Mat::zeros(INPUTS + 1, rows), Vec::new(), Vec::new());
        for i in 0..rows {
            let (mut of, mut end) = (0, groups[0].0);
            while (i as f64 + 0.5) / rows as f64 > end && of + 1 < groups.len() {
                of += 1;
                end += groups[of].0;
            }
            let shift = of as f64;
            let row = columns.col_as_slice_mut(i);
            row[..INPUTS].fill_with(&mut normal);
            row[0] += shift;
            row[INPUTS] = 1.0;
            // The label depends on three inputs and on the group itself.
            let z = row[0] + row[1] - 0.5 * row[2] + 0.5 * shift - 1.0;
            positive.push(f64::from(u8::from(z + groups[of].1 * normal() > 0.0)));
            group.push(Some(of));
        }
        Self { columns, positive, group, groups: groups.len() }
    }

    /// The rows of a file, and those of another one in the units of the first. Without it, every third row is held out.
    pub fn read(file: &GroupedFile<'_>, train: &Path, test: Option<&Path>) -> Result<(Self, Self), DataError> {
        let never = AtomicBool::new(false);
        let read = |path: &Path| {
            let options = ReadOptions { target: Some(file.target.into()), ..ReadOptions::default() };
            DataTable::read(path, &options, &mut ReadProgress { at: &mut |_| {}, interrupt: &never })
        };
        let table = read(train)?;
        let every: Vec<usize> = (0..table.rows).collect();
        let (alone, leave_out) = (&mut Alone, [file.target.to_string()]);
        let encoder = Encoder::fit(&table, &every, Some(Standardize::Full), &leave_out, &Ranks::new(alone, &never))?;
        let all = Self::of(&table, &encoder, file, &never)?;
        Ok(match test {
            Some(test) => (all, Self::of(&read(test)?, &encoder, file, &never)?),
            None => (all.only(|i| i % 3 != 2), all.only(|i| i % 3 == 2)),
        })
    }

    fn of(table: &DataTable, encoder: &Encoder, file: &GroupedFile<'_>, never: &AtomicBool) -> Result<Self, DataError> {
        let (encoded, _) = encoder.encode(table, never)?;
        let inputs = encoded.inputs();
        let refuse = |why: String| Err(DataError::file(&table.path, why));
        if (inputs + 1).saturating_mul(table.rows) > limits::dense(table.columns.len() * table.rows) {
            return refuse(format!("{inputs} inputs are too many for a dense matrix: use fewer columns"));
        }
        let mut columns = Mat::zeros(inputs + 1, table.rows);
        for i in 0..table.rows {
            let column = columns.col_as_slice_mut(i);
            encoded.for_each(i, |j, value| column[j] = value);
            column[inputs] = 1.0;
        }
        let is_positive = |cell: &String| f64::from(u8::from(cell.trim_end_matches('.') == file.positive));
        let group = |cell: String| file.groups.iter().position(|rule| rule.takes(&cell));
        let positive: Vec<f64> = words(table, file.target)?.iter().map(is_positive).collect();
        let rows = Self {
            columns,
            positive,
            group: words(table, file.column)?.into_iter().map(group).collect(),
            groups: file.groups.len(),
        };
        if !rows.positive.iter().any(|positive| *positive > 0.0) {
            return refuse(format!("column `{}` has no row with `{}`", file.target, file.positive));
        }
        match (0..rows.groups).find(|group| !rows.group.contains(&Some(*group))) {
            Some(empty) => refuse(format!("column `{}` has no row of the group {}", file.column, file.groups[empty])),
            None => Ok(rows),
        }
    }

    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.positive.len()
    }
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.positive.is_empty()
    }
    /// The number of groups.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.groups
    }
    /// The number of inputs, without the 1.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.columns.nrows() - 1
    }

    fn only(&self, keep: impl Fn(usize) -> bool) -> Self {
        let kept: Vec<usize> = (0..self.len()).filter(|&i| keep(i)).collect();
        Self {
            columns: Mat::from_fn(self.columns.nrows(), kept.len(), |j, i| self.columns[(j, kept[i])]),
            positive: kept.iter().map(|&i| self.positive[i]).collect(),
            group: kept.iter().map(|&i| self.group[i]).collect(),
            groups: self.groups,
        }
    }
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

/// The error of a number of groups that does not fit.
pub(super) fn check_groups(groups: usize) -> Result<(), Error> {
    if groups < 2 {
        return Err(crate::numerics::out_of_range("grouped", "groups", groups, "at least 2"));
    }
    Ok(())
}
