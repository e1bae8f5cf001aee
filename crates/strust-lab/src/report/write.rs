//! Writes a report: the figures and the page.

use super::{csv, figures, html, is_ours, names::run_names, shared_problems};
use crate::{
    Error,
    data::{
        style::{FigureFormat, FigureStyle},
        summary::Summary,
    },
    figure::{Figure, Theme},
    format::folder_name,
    io::{
        atomic,
        results::{FIGURES, holds_run},
        stream,
    },
};
use std::path::{Path, PathBuf};

/// Checks that a report of the runs in `of` may be written into a folder: it may replace only files of strust.
pub fn check_place(folder: &Path, of: &[PathBuf]) -> Result<(), Error> {
    let same = |run: &PathBuf| run.canonicalize().ok() == folder.canonicalize().ok();
    if holds_run(folder) && !(of.len() == 1 && of.iter().all(same)) {
        return Err(Error::saved(folder, "this is the folder of a run with its own report: choose another folder"));
    }
    check_replaceable(&folder.join("report.html"))
}

/// Checks that a page may be replaced: there is none, or strust wrote it.
pub fn check_replaceable(page: &Path) -> Result<(), Error> {
    match stream::read_saved(page) {
        Ok(text) if !is_ours(&text) => Err(in_the_way(page)),
        _ => Ok(()),
    }
}

/// An error for a file that must not be replaced.
pub(crate) fn in_the_way(path: &Path) -> Error {
    Error::saved(path, "strust did not write this file and does not replace it: choose another place")
}

/// Writes the figures and the page of one or several summaries into a folder; of several, also the figures of their
/// common problems and all curves as one table. `summaries` already have their [style](super::arranged).
pub fn write(folder: &Path, summaries: &[Summary]) -> Result<(), Error> {
    let (page, table) = (folder.join("report.html"), folder.join("comparison.csv"));
    let place = atomic::inside(folder, [FIGURES])?;
    atomic::make_folder(&place)?;
    atomic::prepare(&page)?;
    atomic::sweep(&place);
    if let [first, _, ..] = summaries {
        let together =
            Summary { problems: shared_problems(summaries), sections: vec![], tuning: vec![], ..first.clone() };
        for (stem, figure) in figures(&together) {
            save(&place, &format!("together-{stem}"), &figure, &first.figures)?;
        }
        let text = csv::comparison(&run_names(summaries), summaries);
        atomic::write(&table, text.as_bytes())?;
    }
    for (i, summary) in summaries.iter().enumerate() {
        let experiment = folder_name(&summary.experiment);
        let same = summaries.iter().filter(|other| other.experiment == summary.experiment).count();
        for (stem, figure) in figures(summary) {
            let stem = match (summaries.len(), same) {
                (1, _) => stem,
                (_, 1) => format!("{experiment}-{stem}"),
                _ => format!("{experiment}-run{}-{stem}", i + 1),
            };
            save(&place, &stem, &figure, &summary.figures)?;
        }
    }
    atomic::write(&page, html(summaries).as_bytes())
}

/// Writes a figure in every format of its style.
fn save(place: &Path, stem: &str, figure: &Figure, style: &FigureStyle) -> Result<(), Error> {
    for format in &style.formats {
        let (ending, bytes) = match format {
            FigureFormat::Svg => ("svg", Ok(figure.svg_in(style, Theme::File).into_bytes())),
            FigureFormat::Png => ("png", figure.png_in(style, 2.0)),
            FigureFormat::Pdf => ("pdf", Ok(figure.pdf_in(style))),
        };
        let path = place.join(format!("{stem}.{ending}"));
        atomic::write(&path, &bytes.map_err(|e| Error::saved(&path, e.to_string()))?)?;
    }
    Ok(())
}
