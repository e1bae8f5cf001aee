//! JSON lines: one object per line. Its keys are the columns, in the order of their first occurrence.
//!
//! A value is a number, a text, true, false or null. A key that a line does not have is a blank cell, as null is.

use super::{
    DataTable, ReadOptions, ReadProgress,
    columns::{self, ColumnLayout, FIRST, Guessing},
    parsed::Parsed,
};
use crate::{
    DataError, limits,
    ranks::Ranks,
    read::{
        self,
        lines::{TextLine, TextLines},
    },
};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};
use std::{collections::HashMap, fmt, path::PathBuf};

/// Lines between two looks at the flag that stops the reading.
const OFTEN: u64 = 1 << 12;

pub(super) fn read(
    paths: &[PathBuf],
    options: &ReadOptions,
    progress: &mut ReadProgress<'_>,
    ranks: &Ranks<'_>,
) -> Result<DataTable, DataError> {
    let layout = ranks.agree(layout(paths, options, progress))?;
    let share = ranks.share();
    columns::read(paths, layout, options, ranks, |layout| {
        let places: HashMap<&str, usize> = layout.names.iter().enumerate().map(|(j, name)| (&**name, j)).collect();
        let mut parsed = Parsed::new(&layout.uses);
        let mut cells = vec![String::new(); layout.names.len()];
        for_each_line(paths, progress, |file, line| {
            parsed.rows += 1;
            if !share.owns(parsed.rows - 1) {
                return Ok(());
            }
            cells.iter_mut().for_each(String::clear);
            for (key, value) in object(line)? {
                // All keys are columns, unless the file has changed.
                if let Some(&j) = places.get(&*key) {
                    cells[j] = value.0;
                }
            }
            for ((name, cell), column) in layout.names.iter().zip(&cells).zip(&mut parsed.columns) {
                let pushed = column.push(cell.as_bytes(), || (file, line.number));
                pushed.map_err(|why| DataError::line(&paths[file], line.number, format!("column `{name}`: {why}")))?;
            }
            Ok(())
        })?;
        Ok(parsed)
    })
}

/// Finds the columns in all lines, and guesses their kinds from the first ones.
fn layout(
    paths: &[PathBuf],
    options: &ReadOptions,
    progress: &mut ReadProgress<'_>,
) -> Result<ColumnLayout, DataError> {
    let (mut names, mut places) = (Vec::new(), HashMap::new());
    let mut first: Vec<(usize, String)> = Vec::new();
    let (mut rows, mut values) = (0_usize, 0);
    for_each_line(paths, progress, |_, line| {
        rows += 1;
        for (key, value) in object(line)? {
            let j = *places.entry(key).or_insert_with_key(|key| {
                names.push(key.clone());
                names.len() - 1
            });
            if rows <= FIRST {
                first.push((j, value.0));
            }
            values += 1;
        }
        Ok(())
    })?;
    if rows == 0 {
        return Err(DataError::file(&paths[0], "the file is empty; expected one JSON object per line"));
    }
    // Each line may have keys of its own.
    if rows.saturating_mul(names.len()) > limits::dense(values) {
        let why = format!("{rows} rows with {} different keys are too many: are the keys data?", names.len());
        return Err(DataError::file(&paths[0], why));
    }
    let mut layout = ColumnLayout::new(&paths[0], names, options)?;
    let mut guessing = Guessing::new(&mut layout.uses);
    first.iter().filter(|_| options.expected.is_none()).for_each(|(j, cell)| guessing.add(*j, cell.as_bytes()));
    guessing.finish();
    Ok(layout)
}

/// Calls `act` with the number of each file, and each of its lines that is not blank.
fn for_each_line(
    paths: &[PathBuf],
    progress: &mut ReadProgress<'_>,
    mut act: impl FnMut(usize, TextLine<'_>) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let mut bytes = 0;
    for (file, path) in paths.iter().enumerate() {
        let mut lines = TextLines::new(read::open(path)?, path);
        while let Some(line) = lines.next()? {
            bytes += line.text.len() as u64 + 1;
            if line.number % OFTEN == 1 {
                progress.check(bytes)?;
            }
            if !line.text.trim().is_empty() {
                act(file, line)?;
            }
        }
    }
    Ok(())
}

fn object(line: TextLine<'_>) -> Result<Vec<(String, JsonCell)>, DataError> {
    let row: Result<JsonRow, _> = serde_json::from_str(line.text);
    row.map(|row| row.0).map_err(|wrong| {
        let text = wrong.to_string();
        let why = text.split(" at line ").next().unwrap_or_default();
        // The columns of serde_json are bytes.
        let at = (0..wrong.column()).rev().find(|&at| line.text.is_char_boundary(at)).unwrap_or(0);
        line.error(at, format!("{why}; write one JSON object per line, with numbers, texts, true, false and null"))
    })
}

/// The keys and values of a line.
struct JsonRow(Vec<(String, JsonCell)>);

/// A value as the text of a cell.
struct JsonCell(String);

impl<'de> Deserialize<'de> for JsonRow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RowVisitor;
        impl<'de> Visitor<'de> for RowVisitor {
            type Value = JsonRow;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonRow, A::Error> {
                let mut row: Vec<(String, JsonCell)> = Vec::new();
                while let Some((key, value)) = map.next_entry()? {
                    row.push((key, value));
                }
                Ok(JsonRow(row))
            }
        }
        deserializer.deserialize_map(RowVisitor)
    }
}

impl<'de> Deserialize<'de> for JsonCell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CellVisitor;
        impl Visitor<'_> for CellVisitor {
            type Value = JsonCell;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a text, true, false or null")
            }
            fn visit_unit<E: Error>(self) -> Result<JsonCell, E> {
                Ok(JsonCell(String::new()))
            }
            fn visit_bool<E: Error>(self, value: bool) -> Result<JsonCell, E> {
                Ok(JsonCell(value.to_string()))
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<JsonCell, E> {
                Ok(JsonCell(value.to_string()))
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<JsonCell, E> {
                Ok(JsonCell(value.to_string()))
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<JsonCell, E> {
                Ok(JsonCell(value.to_string()))
            }
            fn visit_str<E: Error>(self, value: &str) -> Result<JsonCell, E> {
                Ok(JsonCell(value.trim().into()))
            }
        }
        deserializer.deserialize_any(CellVisitor)
    }
}
