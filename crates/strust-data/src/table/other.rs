//! Files whose cells are all numbers.

use super::{CellForm, Cells, DataTable, NamedColumn, fingerprint};
use crate::{
    DataError,
    features::{Csr, Features, Labeled},
    images::{mnist, mnist_files},
    ranks::{NEVER, Ranks},
    read::{read_libsvm_rows, read_npy_rows},
    words::plural,
};
use std::{
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};
use strust::ranks::RowShare;

/// The name of the target of LIBSVM text and of images.
pub(super) const LABEL: &str = "label";

/// The part of a folder of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImagePart {
    Train,
    Test,
}

/// The rows of a share of some files.
pub(super) fn npy(files: &[PathBuf], share: RowShare, stop: &AtomicBool) -> Result<DataTable, DataError> {
    let (mut cells, mut all_rows) = (Vec::<Vec<f64>>::new(), 0);
    for path in files {
        let (matrix, rows) = read_npy_rows(path, share.after(all_rows), stop)?;
        if all_rows == 0 {
            cells = vec![Vec::new(); matrix.ncols()];
        }
        if matrix.ncols() != cells.len() {
            let (found, expected, first) = (matrix.ncols(), cells.len(), files[0].display());
            return Err(DataError::file(path, format!("{}, but {first} has {expected}", plural(found, "column"))));
        }
        cells.iter_mut().enumerate().for_each(|(j, cells)| cells.extend_from_slice(matrix.col_as_slice(j)));
        all_rows += rows;
    }
    let order: Vec<String> = (1..=cells.len()).map(|j| format!("column{j}")).collect();
    let columns = order.iter().cloned().zip(cells.into_iter().map(Cells::Numbers));
    let columns = columns.map(|(name, cells)| NamedColumn { name, cells, form: CellForm::Plain }).collect();
    Ok(DataTable { columns, order, ..labeled(&files[0], all_rows, share) })
}

/// The rows of a share of some files.
pub(super) fn libsvm(files: &[PathBuf], share: RowShare, stop: &AtomicBool) -> Result<DataTable, DataError> {
    let mut all: Option<(Csr, Vec<f64>)> = None;
    let mut all_rows = 0;
    for path in files {
        let (Labeled { features, labels: more }, rows) = read_libsvm_rows(path, share.after(all_rows), stop)?;
        let Features::Sparse(below) = features else { unreachable!("LIBSVM text is sparse") };
        match &mut all {
            None => all = Some((below, more)),
            Some((sparse, labels)) => {
                sparse.append(below);
                labels.extend(more);
            }
        }
        all_rows += rows;
    }
    let (sparse, labels) = all.unwrap_or((Csr::new(0, vec![0], Vec::new(), Vec::new())?, Vec::new()));
    Ok(with_label(labeled(&files[0], all_rows, share), labels, sparse))
}

/// The table with as many sparse features as the ranks have together.
pub(super) fn widened(mut table: DataTable, ranks: &Ranks<'_>) -> Result<DataTable, DataError> {
    if let Some(sparse) = table.sparse.take() {
        let columns = ranks.all(&sparse.columns())?.into_iter().max().unwrap_or(0);
        table.sparse = Some(sparse.widened(columns)?);
    }
    Ok(table)
}

/// Pixels become numbers from 0 to 255. Most are 0, so they are stored as sparse features.
pub(super) fn images(folder: &Path, part: ImagePart, share: RowShare) -> Result<DataTable, DataError> {
    let set = mnist(folder)?;
    let images = if part == ImagePart::Train { set.train } else { set.test };
    let own: Vec<usize> = (0..images.len()).filter(|&i| share.owns(i)).collect();
    let pixels = |i| images.image(i).iter().map(|&pixel| f64::from(pixel)).enumerate().filter(|&(_, v)| v > 0.0);
    let sparse = Csr::of_rows(images.shape.iter().product(), 0, own.iter().map(|&i| pixels(i)));
    let labels = own.iter().map(|&i| f64::from(images.labels[i])).collect();
    let mut table = with_label(labeled(folder, images.len(), share), labels, sparse);
    table.fingerprint = fingerprint(&mnist_files(folder)?, &NEVER)?;
    Ok(table)
}

fn with_label(mut table: DataTable, labels: Vec<f64>, sparse: Csr) -> DataTable {
    table.columns.push(NamedColumn { name: LABEL.into(), cells: Cells::Numbers(labels), form: CellForm::Plain });
    table.order.push(LABEL.into());
    table.sparse = Some(sparse);
    table
}

fn labeled(path: &Path, all_rows: usize, share: RowShare) -> DataTable {
    DataTable { path: path.into(), rows: share.count(all_rows), all_rows, share, ..DataTable::default() }
}
