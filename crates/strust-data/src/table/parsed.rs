//! The cells of a CSV file as columns: of a block, of the file, and of all ranks.

use super::{
    BLANK, CellKind, Cells, DataTable, NamedColumn,
    cells::{is_blank, number},
};
use crate::{DataError, ranks::Ranks, words::quoted};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, HashMap},
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
    /// A cell that is not a number is an error.
    OnlyNumbers,
}

/// The cells that refute a guess: the place and the text of the first, and their number.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Refuted {
    /// The number of the file, and the line.
    pub(super) at: (usize, u64),
    pub(super) text: String,
    pub(super) count: u64,
}

impl Refuted {
    fn add(&mut self, other: Self) {
        let count = self.count + other.count;
        if other.at < self.at {
            *self = other;
        }
        self.count = count;
    }
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
        values: Vec<f64>,
        refuted: Option<Refuted>,
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
        match use_of {
            Use::Skip => Self::Skipped,
            Use::As(CellKind::Number) | Use::OnlyNumbers => {
                Self::Numbers { values: Vec::new(), refuted: None, only: use_of == Use::OnlyNumbers }
            }
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
            Self::Numbers { values, refuted, only } => match number(cell) {
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
                    let text = || String::from_utf8_lossy(cell).into_owned();
                    refuted.get_or_insert_with(|| Refuted { at: at(), text: text(), count: 0 }).count += 1;
                }
            },
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
            (Self::Numbers { values, refuted, .. }, Self::Numbers { values: more, refuted: also, .. }) => {
                values.extend(more);
                match (&mut *refuted, also) {
                    (Some(refuted), Some(also)) => refuted.add(also),
                    (None, also) => *refuted = also,
                    (Some(_), None) => {}
                }
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

    /// What refutes the guess of each column on all ranks.
    pub(super) fn refuted(&self, ranks: &Ranks<'_>) -> Result<BTreeMap<usize, Refuted>, DataError> {
        let refuted = |(j, column): (usize, &ParsedColumn)| match column {
            ParsedColumn::Numbers { refuted: Some(refuted), .. } => Some((j, refuted.clone())),
            _ => None,
        };
        let mine: Vec<(usize, Refuted)> = self.columns.iter().enumerate().filter_map(refuted).collect();
        let mut all = BTreeMap::<usize, Refuted>::new();
        for (j, found) in ranks.all(&mine)?.into_iter().flatten() {
            match all.get_mut(&j) {
                Some(before) => before.add(found),
                None => drop(all.insert(j, found)),
            }
        }
        Ok(all)
    }

    /// The table, with the words of all ranks.
    pub(super) fn table(self, path: &Path, names: Vec<String>, ranks: &Ranks<'_>) -> Result<DataTable, DataError> {
        let (all_rows, share) = (self.rows, ranks.share());
        if all_rows == 0 {
            return Err(DataError::file(path, "the file has a header but no rows"));
        }
        let mut columns = Vec::new();
        for (name, column) in names.iter().zip(self.columns) {
            let cells = match column {
                ParsedColumn::Skipped => continue,
                ParsedColumn::Numbers { values, .. } => Cells::Numbers(values),
                ParsedColumn::TooManyWords => merged(None, ranks)?,
                ParsedColumn::Words { codes, words, .. } => merged(Some((codes, words)), ranks)?,
            };
            columns.push(NamedColumn { name: name.clone(), cells });
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
