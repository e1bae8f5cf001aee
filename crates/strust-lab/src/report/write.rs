//! Writes a report: the figures and the page.

use super::{figures, html, is_ours};
use crate::{
    Error,
    data::summary::Summary,
    figure::Theme,
    io::{atomic, results::holds_run},
};
use std::path::{Path, PathBuf};

/// Checks that a report of the runs in `of` may be written into a folder: it may replace only files of strust.
pub fn check_place(folder: &Path, of: &[PathBuf]) -> Result<(), Error> {
    let same = |run: &PathBuf| run.canonicalize().ok() == folder.canonicalize().ok();
    if holds_run(folder) && !(of.len() == 1 && of.iter().all(same)) {
        return Err(Error::saved(folder, "this is the folder of a run with its own report: choose another folder"));
    }
    check_ours(&folder.join("report.html"))
}

/// Checks that a page may be written: it may replace only a report of strust, and its folder must be writable.
pub fn check_page(path: &Path) -> Result<(), Error> {
    check_ours(path)?;
    atomic::check_writable(path)
}

fn check_ours(page: &Path) -> Result<(), Error> {
    match std::fs::read(page) {
        Ok(text) if !is_ours(&text) => Err(in_the_way(page)),
        _ => Ok(()),
    }
}

/// An error for a file that must not be replaced.
pub(crate) fn in_the_way(path: &Path) -> Error {
    Error::saved(path, "strust did not write this file and does not replace it: choose another place")
}

/// Writes the figures and the page of one or several summaries into a folder.
pub fn write(folder: &Path, summaries: &[Summary]) -> Result<(), Error> {
    let place = folder.join("figures");
    atomic::make_folder(&place)?;
    for (i, summary) in summaries.iter().enumerate() {
        let same = summaries.iter().filter(|other| other.experiment == summary.experiment).count();
        for (stem, figure) in figures(summary) {
            let stem = match (summaries.len(), same) {
                (1, _) => stem,
                (_, 1) => format!("{}-{stem}", summary.experiment),
                _ => format!("{}-run{}-{stem}", summary.experiment, i + 1),
            };
            atomic::write(&place.join(format!("{stem}.svg")), figure.svg(Theme::File).as_bytes())?;
            let path = place.join(format!("{stem}.png"));
            let png = figure.png(2.0).map_err(|e| Error::saved(&path, e.to_string()))?;
            atomic::write(&path, &png)?;
        }
    }
    atomic::write(&folder.join("report.html"), html(summaries).as_bytes())
}
