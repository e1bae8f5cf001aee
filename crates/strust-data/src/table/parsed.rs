//! The cells of a file as columns: of a block, of the file, and of all ranks.

use super::{
    BLANK, CellForm, CellKind, Cells, DataTable, NamedColumn,
    cells::{is_blank, number},
    forms::{FormSurvey, is_sentinel},
};
use crate::{DataError, ranks::Ranks, words::quoted};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::Path,
};
use strust::ranks::RowShare;

/// More different texts than this are not categories.
const MOST_WORDS: usize = 100_000;

/// What to do with a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Skip,
    As(CellKind),
    /// A cell that is not a plain number is an error.
    OnlyNumbers,
}

/// A cell and its place: the number of the file, and the line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PlacedCell {
    pub(super) at: (usize, u64),
    pub(super) text: String,
}

/// The cells of a column of numbers that are not plain numbers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct OddCells {
    /// The first cell that the form does not read, and what reads such cells.
    pub(super) refuted: Option<(PlacedCell, FormSurvey)>,
    /// The first cell that is not a plain number, but that the form reads.
    pub(super) example: Option<PlacedCell>,
    /// Whether a date cannot have its day and its month swapped.
    pub(super) decided: bool,
    /// Texts that stand for no value, with their numbers.
    pub(super) sentinels: BTreeMap<String, u64>,
    /// The cells that the form reads. They are counted for all ranks at once.
    pub(super) numbers: u64,
}

impl OddCells {
    fn is_empty(&self) -> bool {
        self.refuted.is_none() && self.example.is_none() && self.sentinels.is_empty()
    }

    /// Adds a cell that the form reads.
    fn read(&mut self, form: CellForm, cell: &[u8], at: impl Fn() -> (usize, u64)) {
        if self.example.is_none() && number(cell).is_none() {
            self.example = Some(placed(cell, at));
        }
        if let CellForm::Date(order) = form {
            self.decided =
                self.decided || order.swapped() == order || CellForm::Date(order.swapped()).read(cell).is_none();
        }
    }

    /// Adds a cell that the form does not read.
    fn refute(&mut self, cell: &[u8], at: impl Fn() -> (usize, u64)) {
        if is_sentinel(cell) {
            *self.sentinels.entry(String::from_utf8_lossy(cell).into_owned()).or_default() += 1;
        } else {
            self.refuted.get_or_insert_with(|| (placed(cell, at), FormSurvey::default())).1.add(cell, 1);
        }
    }

    fn append(&mut self, other: Self) {
        match (&mut self.refuted, other.refuted) {
            (Some((first, survey)), Some((cell, more))) => {
                survey.append(&more);
                *first = earlier(first.clone(), cell);
            }
            (refuted, also) => *refuted = refuted.take().or(also),
        }
        self.example = match (self.example.take(), other.example) {
            (Some(a), Some(b)) => Some(earlier(a, b)),
            (a, b) => a.or(b),
        };
        self.decided |= other.decided;
        for (text, count) in other.sentinels {
            *self.sentinels.entry(text).or_default() += count;
        }
    }
}

fn placed(cell: &[u8], at: impl Fn() -> (usize, u64)) -> PlacedCell {
    PlacedCell { at: at(), text: String::from_utf8_lossy(cell).into_owned() }
}

fn earlier(a: PlacedCell, b: PlacedCell) -> PlacedCell {
    if b.at < a.at { b } else { a }
}

/// The columns of a block, or of the blocks so far.
pub(super) struct Parsed {
    /// The rows, also those that other ranks have.
    pub(super) rows: usize,
    pub(super) columns: Vec<ParsedColumn>,
}

pub(super) enum ParsedColumn {
    Skipped,
    Numbers {
        form: CellForm,
        values: Vec<f64>,
        odd: Box<OddCells>,
        only: bool,
    },
    /// With `any`, all texts are kept as they are.
    Words {
        codes: Vec<u32>,
        words: Vec<String>,
        index: HashMap<String, u32>,
        any: bool,
    },
    TooManyWords,
}

impl ParsedColumn {
    fn new(use_of: Use) -> Self {
        let numbers = |form, only| Self::Numbers { form, values: Vec::new(), odd: Box::default(), only };
        match use_of {
            Use::Skip => Self::Skipped,
            Use::OnlyNumbers => numbers(CellForm::Plain, true),
            Use::As(CellKind::Number(form)) => numbers(form, false),
            Use::As(kind @ (CellKind::Word | CellKind::Text)) => {
                let any = kind == CellKind::Text;
                Self::Words { codes: Vec::new(), words: Vec::new(), index: HashMap::new(), any }
            }
        }
    }

    #[inline]
    pub(super) fn push(&mut self, cell: &[u8], at: impl Fn() -> (usize, u64)) -> Result<(), String> {
        match self {
            Self::Skipped | Self::TooManyWords => {}
            Self::Numbers { form: CellForm::Plain, values, odd, only } => match number(cell) {
                Some(value) if value.is_finite() => values.push(value),
                _ if *only && cell.is_empty() => return Err("a number is missing".into()),
                _ if *only => return Err(format!("{} is not a finite number", quoted(&String::from_utf8_lossy(cell)))),
                _ if is_blank(cell) => values.push(f64::NAN),
                Some(_) => {
                    let text = quoted(&String::from_utf8_lossy(cell));
                    return Err(format!("{text} is not a finite number: remove the row or blank the cell"));
                }
                None => {
                    values.push(f64::NAN);
                    odd.refute(cell, at);
                }
            },
            Self::Numbers { form, values, odd, .. } => {
                let value = form.read(cell);
                values.push(value.unwrap_or(f64::NAN));
                if value.is_some() {
                    odd.read(*form, cell, at);
                } else if !is_blank(cell) {
                    odd.refute(cell, at);
                }
            }
            Self::Words { codes, words, index, any } => {
                if is_blank(cell) && !*any {
                    codes.push(BLANK);
                    return Ok(());
                }
                let text = std::str::from_utf8(cell)
                    .map_err(|_| "the text is not UTF-8: save the file in this encoding".to_string())?;
                codes.push(code_of(text, words, index));
                if words.len() > MOST_WORDS && !*any {
                    *self = Self::TooManyWords;
                }
            }
        }
        Ok(())
    }

    fn append(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::Numbers { values, odd, .. }, Self::Numbers { values: more, odd: also, .. }) => {
                values.extend(more);
                odd.append(*also);
            }
            (Self::Words { codes, words, index, any }, Self::Words { codes: more, words: new, .. }) => {
                let map: Vec<u32> = new.iter().map(|word| code_of(word, words, index)).collect();
                codes.extend(more.iter().map(|&code| if code == BLANK { BLANK } else { map[code as usize] }));
                if words.len() > MOST_WORDS && !*any {
                    *self = Self::TooManyWords;
                }
            }
            (_, Self::TooManyWords) => *self = Self::TooManyWords,
            _ => {}
        }
    }
}

/// The code of a word, a new one if it was not seen before.
fn code_of(word: &str, words: &mut Vec<String>, index: &mut HashMap<String, u32>) -> u32 {
    if let Some(&code) = index.get(word) {
        return code;
    }
    let code = words.len() as u32;
    words.push(word.into());
    index.insert(word.into(), code);
    code
}

impl Parsed {
    pub(super) fn new(uses: &[Use]) -> Self {
        Self { rows: 0, columns: uses.iter().map(|&use_of| ParsedColumn::new(use_of)).collect() }
    }

    pub(super) fn append(&mut self, other: Self) {
        self.rows += other.rows;
        self.columns.iter_mut().zip(other.columns).for_each(|(column, more)| column.append(more));
    }

    /// The odd cells of each column of numbers that has some, on all ranks.
    pub(super) fn odd_cells(&self, ranks: &Ranks<'_>) -> Result<BTreeMap<usize, OddCells>, DataError> {
        let odd_cells = |(j, column): (usize, &ParsedColumn)| match column {
            ParsedColumn::Numbers { odd, .. } if !odd.is_empty() => Some((j, (**odd).clone())),
            _ => None,
        };
        let mine: Vec<_> = self.columns.iter().enumerate().filter_map(odd_cells).collect();
        let mut all = BTreeMap::<usize, OddCells>::new();
        for (j, found) in ranks.all(&mine)?.into_iter().flatten() {
            all.entry(j).or_default().append(found);
        }
        let known = |j: &usize| self.numbers(*j).filter(|value| !value.is_nan()).count() as f64;
        let mut counts: Vec<f64> = all.keys().map(known).collect();
        ranks.add(&mut counts)?;
        all.values_mut().zip(counts).for_each(|(odd, count)| odd.numbers = count as u64);
        Ok(all)
    }

    fn numbers(&self, j: usize) -> impl Iterator<Item = f64> {
        let values: &[f64] = if let ParsedColumn::Numbers { values, .. } = &self.columns[j] { values } else { &[] };
        values.iter().copied()
    }

    /// Whether a column has at most this many different numbers on all ranks.
    pub(super) fn has_few_numbers(&self, j: usize, most: usize, ranks: &Ranks<'_>) -> Result<bool, DataError> {
        let mut mine = HashSet::new();
        for value in self.numbers(j).filter(|value| !value.is_nan()) {
            mine.insert((value + 0.0).to_bits());
            if mine.len() > most {
                break;
            }
        }
        let all: HashSet<u64> = ranks.all(&mine)?.into_iter().flatten().collect();
        Ok(all.len() <= most)
    }

    /// The table, with the words of all ranks.
    pub(super) fn table(self, path: &Path, names: Vec<String>, ranks: &Ranks<'_>) -> Result<DataTable, DataError> {
        let (all_rows, share) = (self.rows, ranks.share());
        if all_rows == 0 {
            return Err(DataError::file(path, "the file has a header but no rows"));
        }
        let mut columns = Vec::new();
        for (name, column) in names.iter().zip(self.columns) {
            let (form, cells) = match column {
                ParsedColumn::Skipped => continue,
                ParsedColumn::Numbers { form, values, .. } => (form, Cells::Numbers(values)),
                ParsedColumn::TooManyWords => (CellForm::Plain, merged(None, ranks)?),
                ParsedColumn::Words { codes, words, .. } => (CellForm::Plain, merged(Some((codes, words)), ranks)?),
            };
            columns.push(NamedColumn { name: name.clone(), cells, form });
        }
        let (path, rows) = (path.into(), share.count(all_rows));
        Ok(DataTable { path, rows, all_rows, share, columns, order: names, ..DataTable::default() })
    }
}

/// A column with the words of all ranks, in the order of their first occurrence in the file; `None` if there are too many
/// words on this rank.
fn merged(mine: Option<(Vec<u32>, Vec<String>)>, ranks: &Ranks<'_>) -> Result<Cells, DataError> {
    let share = ranks.share();
    if share.is_all() {
        return Ok(mine.map_or(Cells::Texts, |(codes, words)| Cells::Words { codes, words }));
    }
    let found = mine.as_ref().map(|(codes, words)| first_rows(codes, words, share));
    let Some(all) = ranks.all(&found)?.into_iter().collect::<Option<Vec<_>>>() else { return Ok(Cells::Texts) };
    let mut all: Vec<(usize, String)> = all.into_iter().flatten().collect();
    all.sort_unstable();
    let (mut words, mut index) = (Vec::new(), HashMap::new());
    for (_, word) in &all {
        code_of(word, &mut words, &mut index);
    }
    if words.len() > MOST_WORDS {
        return Ok(Cells::Texts);
    }
    let (mut codes, own) = mine.unwrap_or_default();
    for code in codes.iter_mut().filter(|code| **code != BLANK) {
        *code = index[&own[*code as usize]];
    }
    Ok(Cells::Words { codes, words })
}

/// The words of this rank, each with the row in which it occurs first.
fn first_rows(codes: &[u32], words: &[String], share: RowShare) -> Vec<(usize, String)> {
    let mut first = vec![usize::MAX; words.len()];
    for (place, &code) in codes.iter().enumerate().rev().filter(|(_, code)| **code != BLANK) {
        first[code as usize] = share.row(place);
    }
    first.into_iter().zip(words.iter().cloned()).collect()
}
