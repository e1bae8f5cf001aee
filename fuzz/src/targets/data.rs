//! Data files.

use crate::fixture::{folder, write};
use std::{path::Path, sync::atomic::AtomicBool};
use strust_data::{
    DataTable, ReadOptions,
    images::{self, Checksums},
    read::read_idx,
    read_labeled, read_matrix,
    table::ReadProgress,
};

pub fn libsvm(data: &[u8]) {
    let _ = read_labeled(write("data.svm", data));
}

pub fn csv(data: &[u8]) {
    let path = write("data.csv", data);
    let (labeled, matrix) = (read_labeled(&path), read_matrix(&path));
    // A matrix with two columns has features and a label.
    assert!(!matrix.is_ok_and(|matrix| matrix.ncols() > 1) || labeled.is_ok(), "{:?}", labeled.err());
}

pub fn npy(data: &[u8]) {
    let _ = read_matrix(write("data.npy", data));
}

pub fn idx(data: &[u8]) {
    let _ = read_idx(write("data", data));
}

pub fn gz(data: &[u8]) {
    let _ = read_labeled(write("data.svm.gz", data));
}

pub fn xz(data: &[u8]) {
    let _ = read_labeled(write("data.svm.xz", data));
}

/// Training and test images have the same files here, so that one input fits both.
pub fn mnist(data: &[u8]) {
    let (images, labels) = data.split_at(data.first().map_or(0, |&first| usize::from(first)).min(data.len()));
    for part in ["train", "t10k"] {
        write(&format!("{part}-images-idx3-ubyte"), images.get(1..).unwrap_or_default());
        write(&format!("{part}-labels-idx1-ubyte"), labels);
    }
    if let Ok(set) = images::mnist(folder()) {
        let _ = set.train.classified(10);
    }
}

pub fn cifar(data: &[u8]) {
    let folder = folder().join("cifar");
    let _ = std::fs::create_dir(&folder);
    write("cifar/data_batch_1.bin", data);
    write("cifar/test_batch.bin", data);
    if let Ok(set) = images::cifar10(&folder, Checksums::Unchecked) {
        let _ = set.train.classified(10);
    }
}

pub fn archive(data: &[u8]) {
    let _ = images::cifar10(&write("cifar.tar", data), Checksums::Unchecked);
}

/// The table of `strust fit`: columns with names, words, quotes and empty cells.
pub fn table(data: &[u8]) {
    read_twice(&write("table.csv", data));
}

/// The same from JSON lines.
pub fn json_lines(data: &[u8]) {
    read_twice(&write("table.jsonl", data));
}

fn read_twice(path: &Path) {
    let mut progress = ReadProgress { at: &mut |_| (), interrupt: &AtomicBool::new(false) };
    for target in [None, Some("y".to_string())] {
        let options = ReadOptions { target, ..ReadOptions::default() };
        if let Ok(table) = DataTable::read(path, &options, &mut progress) {
            let expected = Some(table.expected());
            let again = ReadOptions { expected, ..options };
            // This may fail: a first row with the word `column2` is data for the first reading and a header for the second.
            let _ = DataTable::read(path, &again, &mut progress);
        }
    }
}
