//! What files begin with that write a section of a report.

pub(crate) use strust_lab::{
    data::section::{Check, Section, Shown, Table},
    figure::{Figure, Point, Series},
    format::{NOTHING, brief, fixed, plain, plural},
    statistics::{largest, least, power, upper_median},
    suite::{CheckResults, Tick},
};
