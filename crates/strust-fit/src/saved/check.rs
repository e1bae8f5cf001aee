//! Checks of a model that was read from a file.

use super::{ANY_FORMAT, FORMAT, ModelAbout, ModelFamily, SavedLayer};
use crate::{
    task::FitTask,
    transform::{Encoding, MOST_INPUTS},
    weights::Weights,
};
use std::collections::BTreeSet;

pub(super) fn format(found: &str) -> Result<(), String> {
    match found.strip_prefix(ANY_FORMAT) {
        _ if found == FORMAT => Ok(()),
        Some(number) => Err(format!("its format has the number {number}, but this program reads {FORMAT:?}")),
        None => Err(format!("its format is {found:?}")),
    }
}

pub(super) fn about(about: &ModelAbout) -> Result<(), String> {
    match &about.task {
        FitTask::Regression { mean, deviation, huber, .. } => {
            if !(mean.is_finite() && positive(*deviation)) {
                return Err(format!("the target has the mean {mean} and the deviation {deviation}"));
            }
            if let Some(bound) = huber.filter(|bound| !positive(*bound)) {
                return Err(format!("Huber's loss has the bound {bound}"));
            }
        }
        FitTask::Classes { names } => {
            different("class", names)?;
            if names.len() < 2 {
                return Err("it has fewer than two classes".into());
            }
        }
    }
    if about.model != ModelFamily::Mlp && about.model != ModelFamily::linear(&about.task) {
        return Err(format!("a {} model does not fit its task", about.model.name()));
    }
    encoder(about)
}

fn encoder(about: &ModelAbout) -> Result<(), String> {
    let columns = &about.encoder.columns;
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    different("column", &names)?;
    let mut categories = false;
    for column in columns {
        let name = &column.name;
        match &column.encoding {
            Encoding::Number { .. } if categories => return Err(format!("`{name}`: numbers come before categories")),
            Encoding::Number { shift, scale, fill } => {
                if !(shift.is_finite() && fill.is_finite() && positive(*scale)) {
                    return Err(format!("`{name}` has the shift {shift}, the scale {scale} and the fill {fill}"));
                }
            }
            Encoding::Category { levels } => {
                categories = true;
                different("category", levels)?;
            }
        }
    }
    let (found, inputs) = (about.deviations.len(), about.encoder.inputs());
    if found > 0 && found != inputs {
        return Err(format!("{found} deviations of {inputs} inputs"));
    }
    if let Some(deviation) = about.deviations.iter().find(|deviation| !(deviation.is_finite() && **deviation >= 0.0)) {
        return Err(format!("an input has the deviation {deviation}"));
    }
    if let Some(scale) = about.encoder.sparse_scales.iter().find(|scale| !positive(**scale)) {
        return Err(format!("a feature has the scale {scale}"));
    }
    Ok(())
}

fn positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
}

fn different(what: &str, names: &[String]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    match names.iter().find(|name| !seen.insert(name.as_str())) {
        Some(name) => Err(format!("two of a kind: {what} `{name}`")),
        None => Ok(()),
    }
}

/// The weights, if all layers fit together, to the columns and to the task.
pub(super) fn weights(about: &ModelAbout, layers: &[SavedLayer]) -> Result<Weights, String> {
    let inputs = about.encoder.inputs();
    if layers.is_empty() || inputs == 0 || inputs > MOST_INPUTS {
        return Err(format!("{} layers and {inputs} inputs", layers.len()));
    }
    if about.model != ModelFamily::Mlp && layers.len() != 1 {
        return Err(format!("a {} model with {} layers", about.model.name(), layers.len()));
    }
    let (mut widths, mut flat) = (vec![inputs], Vec::new());
    for (l, layer) in layers.iter().enumerate() {
        let (units, before) = (layer.bias.len(), widths[l]);
        if units == 0 || layer.weights.len() != units || layer.weights.iter().any(|row| row.len() != before) {
            return Err(format!("layer {l} does not have {before} weights and a bias for each of its units"));
        }
        flat.extend((0..before).flat_map(|j| layer.weights.iter().map(move |row| row[j])));
        flat.extend(&layer.bias);
        widths.push(units);
    }
    let outputs = about.task.outputs();
    if widths.last() != Some(&outputs) {
        return Err(format!("{:?} outputs, but its task needs {outputs}", widths.last()));
    }
    match flat.iter().find(|weight| !weight.is_finite()) {
        Some(weight) => Err(format!("a weight is {weight}")),
        None => Ok(Weights { widths, flat }),
    }
}
