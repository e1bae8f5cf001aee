//! Files whose cells are all numbers.

use super::{Cells, DataTable, NamedColumn, fingerprint};
use crate::Error;
use std::{path::Path, sync::atomic::AtomicBool};
use strust_problems::{
    Csr, Features, Labeled,
    images::{mnist, mnist_files},
    read_labeled, read_matrix,
};

/// The name of the target of LIBSVM text and of images.
pub(super) const LABEL: &str = "label";

/// The part of a folder of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImagePart {
    Train,
    Test,
}

pub(super) fn npy(path: &Path) -> Result<DataTable, Error> {
    let matrix = read_matrix(path)?;
    let order: Vec<String> = (1..=matrix.ncols()).map(|j| format!("column{j}")).collect();
    let column = |(j, name): (usize, &String)| NamedColumn {
        name: name.clone(),
        cells: Cells::Numbers(matrix.col_as_slice(j).to_vec()),
    };
    let columns = order.iter().enumerate().map(column).collect();
    Ok(DataTable { columns, order, ..labeled(path, matrix.nrows()) })
}

pub(super) fn libsvm(path: &Path) -> Result<DataTable, Error> {
    let Labeled { features, labels } = read_labeled(path)?;
    let Features::Sparse(sparse) = features else {
        return Err(Error::file(path, "unknown extension; use .csv, .tsv, .npy or LIBSVM text"));
    };
    Ok(with_label(path, labels, sparse))
}

/// Pixels become numbers from 0 to 255. Most are 0, so they are stored as sparse features.
pub(super) fn images(folder: &Path, part: ImagePart) -> Result<DataTable, Error> {
    let set = mnist(folder)?;
    let images = if part == ImagePart::Train { set.train } else { set.test };
    let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..images.len() {
        for (j, &pixel) in images.image(i).iter().enumerate().filter(|&(_, &pixel)| pixel > 0) {
            indices.push(u32::try_from(j).unwrap_or(u32::MAX));
            values.push(f64::from(pixel));
        }
        starts.push(indices.len());
    }
    let sparse = Csr::new(images.shape.iter().product(), starts, indices, values)?;
    let mut table = with_label(folder, images.labels.iter().map(|&label| f64::from(label)).collect(), sparse);
    let files = mnist_files(folder)?;
    let files: Vec<&Path> = files.iter().map(AsRef::as_ref).collect();
    table.fingerprint = fingerprint(&files, &AtomicBool::new(false))?;
    Ok(table)
}

fn with_label(path: &Path, labels: Vec<f64>, sparse: Csr) -> DataTable {
    let mut table = labeled(path, labels.len());
    table.columns.push(NamedColumn { name: LABEL.into(), cells: Cells::Numbers(labels) });
    table.order.push(LABEL.into());
    table.sparse = Some(sparse);
    table
}

fn labeled(path: &Path, rows: usize) -> DataTable {
    DataTable {
        path: path.into(),
        rows,
        columns: Vec::new(),
        order: Vec::new(),
        sparse: None,
        fingerprint: String::new(),
    }
}
