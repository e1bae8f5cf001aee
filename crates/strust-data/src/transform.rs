//! The fitted transform: standardization, one-hot encoding and the values of blank cells. It is part of the model.

use crate::{
    DataError,
    encoded::{EncodedRows, NONE},
    features::Csr,
    limits,
    ranks::{NEVER, Ranks},
    table::{BLANK, CellForm, CellKind, Cells, DataTable, NamedColumn, listed},
    words::nearest,
};
use faer::Mat;
use serde::{Deserialize, Serialize};
use std::{
    collections::{HashMap, HashSet},
    sync::atomic::{AtomicBool, Ordering},
};
use strust::ranks::Alone;

/// The most categories of a column. Rarer ones are encoded like unknown ones.
pub const MOST_CATEGORIES: usize = 200;
/// The most inputs. More would not fit into memory.
pub const MOST_INPUTS: usize = 50_000_000;

/// How the features are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standardize {
    /// (v − mean)/deviation; sparse features are divided by their largest size.
    Full,
    /// v/deviation: without an intercept, a shift of the features would be one.
    Scale,
    /// v itself.
    No,
}

/// How a column becomes inputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Encoding {
    /// (v − shift)/scale. A blank cell becomes `fill`.
    Number {
        /// Subtracted.
        shift: f64,
        /// The divisor, > 0.
        scale: f64,
        /// The mean of the training rows.
        fill: f64,
    },
    /// One input for each category, 1 if the cell has it. The empty text is the category of blank cells.
    Category {
        /// The categories, in order.
        levels: Vec<String>,
    },
}

/// A column of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EncodedColumn {
    /// The name in the file.
    pub name: String,
    /// How its numbers are written in the file.
    #[serde(default, skip_serializing_if = "CellForm::is_plain")]
    pub form: CellForm,
    /// How it becomes inputs.
    #[serde(flatten)]
    pub encoding: Encoding,
}

/// The transform of all columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Encoder {
    /// The columns: first all numbers, then all categories.
    pub columns: Vec<EncodedColumn>,
    /// The divisors of the sparse features, each > 0; empty without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sparse_scales: Vec<f64>,
}

/// What happened to the cells of a file when they were encoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EncodingLosses {
    /// Blank cells, by column.
    pub blanks: Vec<(String, usize)>,
    /// Cells with a category that the model does not know, by column, with an example.
    pub unknown: Vec<(String, usize, String)>,
    /// Columns of the model that the file does not have.
    pub missing: Vec<String>,
}

impl EncodingLosses {
    /// The blank cells of the rows of all ranks. The rest is that of this rank.
    pub fn with_all_blanks(self, encoder: &Encoder, ranks: &Ranks<'_>) -> Result<Self, DataError> {
        let mine: HashMap<&str, usize> = self.blanks.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        let count = |column: &EncodedColumn| mine.get(column.name.as_str()).copied().unwrap_or(0) as f64;
        let mut counts: Vec<f64> = encoder.columns.iter().map(count).collect();
        ranks.add(&mut counts)?;
        let all = encoder.columns.iter().zip(counts).filter(|(_, count)| *count > 0.0);
        Ok(Self { blanks: all.map(|(column, count)| (column.name.clone(), count as usize)).collect(), ..self })
    }
}

impl Encoder {
    /// The transform that keeps numbers as they are, for experiments, which scale the features themselves. A column of
    /// numbers is left out only if it is blank in all rows.
    pub fn unscaled(table: &DataTable, rows: &[usize], leave_out: &[String]) -> Result<Self, DataError> {
        Self::fit(table, rows, None, leave_out, &Ranks::new(&mut Alone, &NEVER))
    }

    /// Learns the transform from the training rows of all ranks; `rows` are those of this rank. Columns with one value are
    /// left out; `leave_out` says which others. Without a kind of standardization, numbers are kept as they are.
    pub fn fit(
        table: &DataTable,
        rows: &[usize],
        standardize: Option<Standardize>,
        leave_out: &[String],
        ranks: &Ranks<'_>,
    ) -> Result<Self, DataError> {
        let leave_out: HashSet<&String> = leave_out.iter().collect();
        let used = |column: &&NamedColumn| !leave_out.contains(&column.name);
        let of_numbers = |column: &NamedColumn| match &column.cells {
            Cells::Numbers(values) => Some(((column.name.clone(), column.form), Moments::of(values, rows))),
            _ => None,
        };
        let goes_on = |_: &&NamedColumn| !ranks.is_interrupted();
        let (names, moments): (Vec<_>, Vec<_>) =
            table.columns.iter().take_while(goes_on).filter(used).filter_map(of_numbers).unzip();
        ranks.proceed()?;
        let mut columns = Vec::new();
        for ((name, form), moments) in names.into_iter().zip(Moments::of_all(&moments, ranks)?) {
            columns.extend(moments.encoding(standardize).map(|encoding| EncodedColumn { name, form, encoding }));
        }
        for column in table.columns.iter().filter(used) {
            if let Cells::Words { codes, words } = &column.cells {
                ranks.proceed()?;
                let levels = levels(codes, words, rows, ranks)?;
                if levels.len() > 1 {
                    let (name, form) = (column.name.clone(), column.form);
                    columns.push(EncodedColumn { name, form, encoding: Encoding::Category { levels } });
                }
            }
        }
        if let Some(csr) = &table.sparse {
            check_columns(table, csr, ranks)?;
        }
        let sparse_scales = match &table.sparse {
            Some(csr) => sparse_scales(csr, rows, standardize.unwrap_or(Standardize::No), ranks)?,
            None => Vec::new(),
        };
        let encoder = Self { columns, sparse_scales };
        match encoder.inputs() {
            0 => {
                Err(DataError::file(&table.path, "no column is left to learn from: all are constant or were left out"))
            }
            many if many > MOST_INPUTS => Err(DataError::file(
                &table.path,
                format!("{many} inputs, but at most {MOST_INPUTS} fit into the memory"),
            )),
            _ => Ok(encoder),
        }
    }

    /// The number of inputs.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.columns.iter().map(EncodedColumn::inputs).sum::<usize>() + self.sparse_scales.len()
    }

    /// The name of each input.
    #[must_use]
    pub fn input_names(&self) -> Vec<String> {
        let mut names = Vec::with_capacity(self.inputs());
        for column in &self.columns {
            match &column.encoding {
                Encoding::Number { .. } => names.push(column.name.clone()),
                Encoding::Category { levels } => names.extend(levels.iter().map(|level| {
                    let level = if level.is_empty() { "(blank)" } else { level };
                    format!("{} = {level}", column.name)
                })),
            }
        }
        names.extend((1..=self.sparse_scales.len()).map(|j| format!("feature {j}")));
        names
    }

    /// The shift and the scale of each input: the model sees (v − shift)/scale.
    #[must_use]
    pub fn units(&self) -> Vec<(f64, f64)> {
        let mut units = Vec::with_capacity(self.inputs());
        for column in &self.columns {
            match &column.encoding {
                Encoding::Number { shift, scale, .. } => units.push((*shift, *scale)),
                Encoding::Category { levels } => units.extend(levels.iter().map(|_| (0.0, 1.0))),
            }
        }
        units.extend(self.sparse_scales.iter().map(|&scale| (0.0, scale)));
        units
    }

    /// What the cells of each column must hold.
    pub fn kinds(&self) -> impl Iterator<Item = (String, CellKind)> + '_ {
        self.columns.iter().map(|column| {
            let kind = match column.encoding {
                Encoding::Number { .. } => CellKind::Number(column.form),
                Encoding::Category { .. } => CellKind::Word,
            };
            (column.name.clone(), kind)
        })
    }

    /// Encodes all rows of a file. Columns are matched by name. A missing number is the mean of the training rows, a
    /// missing category is unknown. `interrupt` stops it.
    pub fn encode(
        &self,
        table: &DataTable,
        interrupt: &AtomicBool,
    ) -> Result<(EncodedRows, EncodingLosses), DataError> {
        self.check_sparse(table)?;
        let (found, n) = (table.by_name(), table.rows);
        let numbers = self.columns.iter().filter(|column| matches!(column.encoding, Encoding::Number { .. })).count();
        let categories = self.columns.len() - numbers;
        let (mut dense, mut hot) = (vec![0.0; n * numbers], vec![NONE; n * categories]);
        let (mut losses, mut first) = (EncodingLosses::default(), 0);
        for (c, column) in self.columns.iter().enumerate() {
            if interrupt.load(Ordering::Relaxed) {
                return Err(DataError::Interrupted);
            }
            column.encode(table, &found, &mut losses, |i, k, value| match c.checked_sub(numbers) {
                None => dense[i * numbers + c] = value,
                Some(c) => hot[i * categories + c] = (first + k) as u32,
            })?;
            first += column.inputs();
        }
        let sparse = table.sparse.as_ref().map(|csr| self.scaled(csr, interrupt)).transpose()?.map(|csr| (csr, first));
        let rows = EncodedRows { rows: n, inputs: self.inputs(), dense, numbers, hot, categories, sparse };
        Ok((rows, losses))
    }

    /// The same as a matrix in double precision, for a file of columns. A category that is unknown has no 1.
    pub fn matrix(&self, table: &DataTable) -> Result<Mat<f64>, DataError> {
        let (inputs, n, found) = (self.inputs(), table.rows, table.by_name());
        let most = limits::dense(n.saturating_mul(table.order.len()));
        if n.saturating_mul(inputs) > most {
            let why = format!("{n} rows with {inputs} inputs are too many: at most {most} numbers fit into the memory");
            return Err(DataError::file(&table.path, why));
        }
        let (mut matrix, mut losses, mut first) = (Mat::zeros(n, inputs), EncodingLosses::default(), 0);
        for column in &self.columns {
            column.encode(table, &found, &mut losses, |i, k, value| matrix[(i, first + k)] = value)?;
            first += column.inputs();
        }
        Ok(matrix)
    }

    fn check_sparse(&self, table: &DataTable) -> Result<(), DataError> {
        let found = table.sparse.is_some();
        if found != self.sparse_scales.is_empty() {
            return Ok(());
        }
        let (needs, has) =
            if found { ("named columns", "numbered features") } else { ("numbered features", "columns") };
        Err(DataError::file(&table.path, format!("the model needs {needs}, but the file has {has}")))
    }

    /// Sparse features beyond those of the model are left out, and missing ones are 0.
    fn scaled(&self, csr: &Csr, interrupt: &AtomicBool) -> Result<Csr, DataError> {
        let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for i in 0..csr.rows() {
            if interrupt.load(Ordering::Relaxed) {
                return Err(DataError::Interrupted);
            }
            for (j, value) in csr.pairs(i) {
                if let Some(scale) = self.sparse_scales.get(j) {
                    indices.push(j as u32);
                    values.push(value / scale);
                }
            }
            starts.push(indices.len());
        }
        Ok(Csr::new(self.sparse_scales.len(), starts, indices, values)?)
    }

    /// An error if a file has none of the model's columns, because its names must then be wrong.
    pub fn check_names(&self, table: &DataTable) -> Result<(), DataError> {
        let found = table.by_name();
        if self.columns.is_empty() || self.columns.iter().any(|column| found.contains_key(column.name.as_str())) {
            return Ok(());
        }
        let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        let hint = nearest(names[0], table.order.iter().map(String::as_str));
        let hint = hint.map(|name| format!("; it has `{name}`")).unwrap_or_default();
        Err(DataError::file(&table.path, format!("the file has no column of the model: {}{hint}", listed(&names))))
    }
}

impl EncodedColumn {
    /// The number of its inputs.
    #[must_use]
    pub fn inputs(&self) -> usize {
        match &self.encoding {
            Encoding::Number { .. } => 1,
            Encoding::Category { levels } => levels.len(),
        }
    }

    /// Calls `set` with each row of a file, an input of this column, from 0, and its value. All other inputs are 0. `found`
    /// are the columns of the file.
    fn encode(
        &self,
        table: &DataTable,
        found: &HashMap<&str, &NamedColumn>,
        losses: &mut EncodingLosses,
        mut set: impl FnMut(usize, usize, f64),
    ) -> Result<(), DataError> {
        let name = &self.name;
        let wrong = |why: &str| Err(DataError::file(&table.path, format!("column `{name}`: the model needs {why}")));
        let (mut blanks, mut unknown, mut example) = (0, 0, None);
        match (&self.encoding, found.get(name.as_str()).map(|found| &found.cells)) {
            (Encoding::Number { shift, scale, fill }, Some(Cells::Numbers(values))) => {
                for (i, &value) in values.iter().enumerate() {
                    blanks += usize::from(value.is_nan());
                    let value = if value.is_nan() { *fill } else { value };
                    set(i, 0, (value - shift) / scale);
                }
            }
            (Encoding::Number { shift, scale, fill }, None) => {
                losses.missing.push(name.clone());
                (0..table.rows).for_each(|i| set(i, 0, (fill - shift) / scale));
            }
            (Encoding::Category { levels }, Some(Cells::Words { codes, words })) => {
                let known: HashMap<&str, usize> = levels.iter().enumerate().map(|(k, l)| (l.as_str(), k)).collect();
                let inputs: Vec<Option<usize>> = words.iter().map(|word| known.get(word.as_str()).copied()).collect();
                let blank = known.get("").copied();
                for (i, &code) in codes.iter().enumerate() {
                    let input = if code == BLANK { blank } else { inputs[code as usize] };
                    match input {
                        _ if code == BLANK => blanks += 1,
                        Some(_) => {}
                        None => {
                            unknown += 1;
                            example = example.or(Some(&words[code as usize]));
                        }
                    }
                    if let Some(k) = input {
                        set(i, k, 1.0);
                    }
                }
            }
            (Encoding::Category { .. }, None) => losses.missing.push(name.clone()),
            (Encoding::Number { .. }, Some(_)) => return wrong("numbers, but the file has words"),
            (Encoding::Category { .. }, Some(_)) => return wrong("words, but the file has numbers"),
        }
        if blanks > 0 {
            losses.blanks.push((name.clone(), blanks));
        }
        if let Some(example) = example {
            losses.unknown.push((name.clone(), unknown, example.clone()));
        }
        Ok(())
    }
}

/// The number of the values that are not blank, their mean m, Σ(v − m)², and their ends.
#[derive(Debug, Clone, Copy)]
struct Moments {
    count: f64,
    mean: f64,
    square: f64,
    least: f64,
    most: f64,
}

impl Moments {
    const NONE: Self = Self { count: 0.0, mean: 0.0, square: 0.0, least: f64::INFINITY, most: f64::NEG_INFINITY };

    fn of(values: &[f64], rows: &[usize]) -> Self {
        let Self { mut count, mut mean, mut square, mut least, mut most } = Self::NONE;
        for value in rows.iter().map(|&i| values[i]).filter(|value| !value.is_nan()) {
            count += 1.0;
            // Welford's update does not cancel where the mean is much larger than the deviation.
            let before = value - mean;
            mean += before / count;
            square += before * (value - mean);
            (least, most) = (least.min(value), most.max(value));
        }
        Self { count, mean, square, least, most }
    }

    /// Those of the values of all ranks, column by column.
    fn of_all(mine: &[Self], ranks: &Ranks<'_>) -> Result<Vec<Self>, DataError> {
        let flat = mine.iter().flat_map(|of| [of.count, of.mean, of.square, of.least, of.most]).collect();
        let mut all = vec![Self::NONE; mine.len()];
        for rank in ranks.gather(flat)? {
            for (of, &[count, mean, square, least, most]) in all.iter_mut().zip(rank.as_chunks().0) {
                of.add(Self { count, mean, square, least, most });
            }
        }
        Ok(all)
    }

    /// Those of both: with n = nₐ + n_b and δ = m_b − mₐ, the mean is mₐ + δn_b/n, and the squares grow by δ²nₐn_b/n.
    fn add(&mut self, other: Self) {
        if self.count == 0.0 {
            *self = other;
        } else if other.count > 0.0 {
            let (count, difference) = (self.count + other.count, other.mean - self.mean);
            self.square += other.square + difference * difference * self.count * other.count / count;
            self.mean += difference * other.count / count;
            self.count = count;
            (self.least, self.most) = (self.least.min(other.least), self.most.max(other.most));
        }
    }

    /// Standardization by the mean and the deviation; `None` if all values are equal. Without a kind of it, every value is
    /// kept as it is.
    fn encoding(self, standardize: Option<Standardize>) -> Option<Encoding> {
        let Self { count, mean, square, least, most } = self;
        let Some(standardize) = standardize else {
            return (count > 0.0).then_some(Encoding::Number { shift: 0.0, scale: 1.0, fill: mean });
        };
        if least >= most {
            return None;
        }
        // Beyond 1e±150 the squares are not numbers of full precision; half of the range is as good a scale.
        let deviation = (square / count).sqrt();
        let deviation = if square.is_normal() { deviation } else { most / 2.0 - least / 2.0 };
        let (shift, scale) = match standardize {
            Standardize::Full => (mean, deviation),
            Standardize::Scale => (0.0, deviation),
            Standardize::No => (0.0, 1.0),
        };
        (scale.is_normal() && mean.is_finite()).then_some(Encoding::Number { shift, scale, fill: mean })
    }
}

/// The most frequent categories of the training rows, sorted by name. Blank cells are one of them.
fn levels(codes: &[u32], words: &[String], rows: &[usize], ranks: &Ranks<'_>) -> Result<Vec<String>, DataError> {
    // The last count is that of blank cells. Whole numbers are exact.
    let mut counts = vec![0.0; words.len() + 1];
    for &i in rows {
        counts[if codes[i] == BLANK { words.len() } else { codes[i] as usize }] += 1.0;
    }
    ranks.add(&mut counts)?;
    let mut seen: Vec<(f64, &str)> = counts.into_iter().zip(words.iter().map(String::as_str).chain([""])).collect();
    seen.retain(|&(count, _)| count > 0.0);
    seen.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    seen.truncate(MOST_CATEGORIES);
    let mut levels: Vec<String> = seen.into_iter().map(|(_, word)| word.to_string()).collect();
    levels.sort();
    Ok(levels)
}

/// Refuses sparse columns that are too many for the entries of the file: one index of LIBSVM text can be a billion.
fn check_columns(table: &DataTable, csr: &Csr, ranks: &Ranks<'_>) -> Result<(), DataError> {
    let entries: usize = ranks.all(&csr.entries())?.into_iter().sum();
    let most = limits::weights(entries).min(MOST_INPUTS);
    if csr.columns() <= most {
        return Ok(());
    }
    let why = format!(
        "{} columns, but the file has only {entries} entries, which allow at most {most} columns: number the columns \
         without gaps",
        csr.columns()
    );
    Err(DataError::file(&table.path, why))
}

/// The largest size of each sparse feature; 1 if it is always 0.
fn sparse_scales(
    csr: &Csr,
    rows: &[usize],
    standardize: Standardize,
    ranks: &Ranks<'_>,
) -> Result<Vec<f64>, DataError> {
    let mut scales = vec![0.0_f64; csr.columns()];
    for &i in rows.iter().filter(|_| standardize != Standardize::No) {
        csr.pairs(i).for_each(|(j, v)| scales[j] = scales[j].max(v.abs()));
    }
    ranks.largest(&mut scales)?;
    Ok(scales.iter().map(|&scale| if scale > 0.0 { scale } else { 1.0 }).collect())
}
