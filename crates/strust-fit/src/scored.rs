//! Rows with their targets: the rows of this rank, the targets of all ranks.

use crate::{
    Error,
    encoded::EncodedRows,
    ranks::Ranks,
    table::{Cells, DataTable, NamedColumn},
    task::{FitTask, Targets},
    transform::Encoder,
};
use std::borrow::Cow;

/// The table with the target column of all ranks and no other.
pub(crate) fn whole_target<'a>(
    table: &'a DataTable,
    target: &str,
    ranks: &Ranks<'_>,
) -> Result<Cow<'a, DataTable>, Error> {
    let share = ranks.share();
    if table.share != share {
        return Err(Error::Option(format!(
            "the table has the rows of rank {} of {}, but this is rank {} of {}: read it with `read_on` and the same group",
            table.share.rank, table.share.size, share.rank, share.size
        )));
    }
    if share.is_all() {
        return Ok(Cow::Borrowed(table));
    }
    let mut columns = Vec::new();
    if let Some(NamedColumn { name, cells, form }) = table.column(target) {
        let mut all = cells_of(cells, &(0..table.all_rows).collect::<Vec<_>>(), ranks)?;
        if let (Cells::Words { words: all, .. }, Cells::Words { words, .. }) = (&mut all, cells) {
            all.clone_from(words);
        }
        columns.push(NamedColumn { name: name.clone(), cells: all, form: *form });
    }
    Ok(Cow::Owned(DataTable {
        path: table.path.clone(),
        rows: table.all_rows,
        all_rows: table.all_rows,
        columns,
        order: table.order.clone(),
        ..DataTable::default()
    }))
}

/// The cells of some rows of the file, from all ranks. The words of codes are left out.
pub(crate) fn cells_of(cells: &Cells, rows: &[usize], ranks: &Ranks<'_>) -> Result<Cells, Error> {
    let share = ranks.share();
    let places = share.places(rows);
    let of_all = |mine: Vec<f64>| ranks.collect(rows.iter().map(|&i| share.owner(i)), 1, mine);
    Ok(match cells {
        Cells::Numbers(values) => Cells::Numbers(of_all(places.iter().map(|&i| values[i]).collect())?),
        Cells::Words { codes, .. } => {
            let codes = of_all(places.iter().map(|&i| f64::from(codes[i])).collect())?;
            Cells::Words { codes: codes.into_iter().map(|code| code as u32).collect(), words: Vec::new() }
        }
        Cells::Texts => Cells::Texts,
    })
}

/// Encoded rows with their targets.
#[derive(Debug, Clone)]
pub(crate) struct ScoredRows {
    /// The encoded rows of this rank.
    pub(crate) rows: EncodedRows,
    /// The targets of all rows of the file.
    pub(crate) targets: Targets,
    /// The rows of the file that have a target and are scored.
    pub(crate) index: Vec<usize>,
    /// The targets of the rows of this rank, as the model computes with them.
    pub(crate) goals: Vec<f64>,
}

impl ScoredRows {
    pub(crate) fn read(
        table: &DataTable,
        encoder: &Encoder,
        task: &FitTask,
        target: &str,
        ranks: &Ranks<'_>,
    ) -> Result<Self, Error> {
        encoder.check_names(table)?;
        let (targets, index) = task.targets(&*whole_target(table, target, ranks)?, target)?;
        task.check_scale(&table.path, target, &targets)?;
        let (rows, _) = ranks.agree(encoder.encode(table, ranks.interrupt()))?;
        Ok(Self { goals: goals(task, &targets, table), rows, targets, index })
    }
}

/// Some of these rows, on which a model is measured.
#[derive(Clone, Copy)]
pub(crate) struct MeasuredRows<'a> {
    pub(crate) data: &'a ScoredRows,
    /// The rows of the file.
    pub(crate) index: &'a [usize],
    pub(crate) task: &'a FitTask,
    pub(crate) ranks: &'a Ranks<'a>,
}

/// The target of a row as the model computes with it.
pub(crate) fn goal(task: &FitTask, targets: &Targets, i: usize) -> f64 {
    match (task, targets) {
        (FitTask::Regression { mean, deviation, scale, .. }, Targets::Numbers(values)) => {
            (scale.of(values[i]) - mean) / deviation
        }
        (_, Targets::Classes(classes)) => f64::from(classes[i]),
        _ => unreachable!("the task made the targets"),
    }
}

/// Those of the rows of a table.
pub(crate) fn goals(task: &FitTask, targets: &Targets, table: &DataTable) -> Vec<f64> {
    (0..table.rows).map(|place| goal(task, targets, table.share.row(place))).collect()
}
