//! What bounds between groups and on rates do, in words.

use crate::{
    fit_page::number,
    show,
    tables::shown_share,
};
use strust_fit::fair::{ColumnRates, Estimate, FairEffect, FairPoint, FairReport, GroupRates, Quantity};
use strust_lab::{
    data::section::{Section, Shown, Table},
    figure::{Figure, Point, Series},
};

/// Sentences about the bounds and their cost.
pub fn lines(report: &FairReport) -> Vec<String> {
    let line = |effect: &FairEffect| {
        let held_out = effect.held_out.map(|of| format!(", {:.4} ± {:.4} on held-out rows", of.value, of.high - of.value));
        format!(
            "{}: {:.4} on the training rows, {:.4} without it{}",
            effect.text,
            effect.training,
            effect.free,
            held_out.unwrap_or_default()
        )
    };
    report.effects.iter().map(line).collect()
}
