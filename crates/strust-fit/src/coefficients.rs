//! The weights of a linear model for people: in the units of the file, and per standard deviation of an input.

use crate::{Error, FittedModel, scored::MeasuredRows, task::FitTask, transform::Encoder};
use serde::Serialize;

/// Coefficients of a report at most. A person reads fewer, and the model file has all weights.
const MOST: usize = 1000;

/// The weight of an input.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Coefficient {
    /// The input.
    pub input: String,
    /// What it adds to: the target, the logit of the second of two classes, or the score of one of several classes.
    pub output: String,
    /// The weight in the units of the file.
    pub weight: f64,
    /// The standard deviation of the input among the training rows.
    pub deviation: f64,
    /// Their product with its sign: what a usual difference of the input changes. So inputs with different units can be
    /// compared.
    pub per_deviation: f64,
    /// The standard error of `weight`, if the fit gives one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
}

/// The coefficients of a linear model, the inputs with the largest effects first; none for a network. `errors` are the
/// standard errors of all numbers of the model's weights, in the units of the model.
pub(crate) fn coefficients(model: &FittedModel, errors: Option<&[f64]>) -> Vec<Coefficient> {
    let Some((weights, _)) = model.weights_in_units() else { return Vec::new() };
    let (names, effects) = (model.about.encoder.input_names(), model.effects());
    let (deviations, outputs) = (model.deviations(), model.outputs());
    let (units, scale) = (model.about.encoder.units(), model.about.task.units().1);
    let one = |j: usize, c: usize| Coefficient {
        input: names[j].clone(),
        output: outputs[c].clone(),
        weight: weights[c][j],
        deviation: deviations[j],
        per_deviation: effects[c][j],
        error: errors.map(|errors| errors[j * outputs.len() + c] * scale / units[j].1),
    };
    let places = order(&effects).into_iter().flat_map(|j| (0..outputs.len()).map(move |c| (j, c)));
    places.take(MOST).map(|(j, c)| one(j, c)).collect()
}

/// The inputs in the order of their largest effect on an output, from the effects of all inputs on each output.
#[must_use]
pub fn order(effects: &[Vec<f64>]) -> Vec<usize> {
    let size = |j: usize| effects.iter().fold(0.0_f64, |most, of| most.max(of[j].abs()));
    let mut order: Vec<usize> = (0..effects.first().map_or(0, Vec::len)).collect();
    order.sort_by(|&a, &b| size(b).total_cmp(&size(a)));
    order
}

impl FittedModel {
    /// The weights of a linear model times the standard deviations of their inputs, for each output; empty for a network.
    #[must_use]
    pub fn effects(&self) -> Vec<Vec<f64>> {
        let Some((mut weights, _)) = self.weights_in_units() else { return Vec::new() };
        let deviations = self.deviations();
        for of in &mut weights {
            of.iter_mut().zip(&deviations).for_each(|(weight, deviation)| *weight *= deviation);
        }
        weights
    }

    /// The standard deviation of each input in the units of the file. An older model file does not have them: then they are
    /// the divisors of the transform, and 1 for a category.
    fn deviations(&self) -> Vec<f64> {
        match self.about.deviations.as_slice() {
            [] => self.about.encoder.units().into_iter().map(|(_, scale)| scale).collect(),
            known => known.to_vec(),
        }
    }

    /// What each output of the model is: the target, the second of two classes, or one of several classes.
    #[must_use]
    pub fn outputs(&self) -> Vec<String> {
        match &self.about.task {
            FitTask::Regression { .. } => vec![self.about.target.clone()],
            FitTask::Classes { names } if self.about.task.outputs() == 1 => names[1..].to_vec(),
            FitTask::Classes { names } => names.clone(),
        }
    }
}

/// The standard deviation of each input among the rows of all ranks, in the units of the file; for a category with the
/// share p it is √(p(1 − p)). Empty if a rank is interrupted.
pub(crate) fn deviations(encoder: &Encoder, on: MeasuredRows<'_>) -> Result<Vec<f64>, Error> {
    let MeasuredRows { data, index, ranks, .. } = on;
    let (rows, own, n) = (&data.rows, ranks.share().places(index), index.len() as f64);
    if ranks.any(ranks.is_interrupted()) {
        return Ok(Vec::new());
    }
    let mut means = vec![0.0; encoder.inputs()];
    for &i in &own {
        rows.for_each(i, |j, value| means[j] += value);
    }
    ranks.add(&mut means)?;
    for mean in &mut means {
        *mean /= n;
    }
    // A number can have a large mean, so its squares are taken around it. Of all others only those that are not 0 are stored.
    let numbers = rows.numbers();
    let mut squares = vec![0.0; means.len()];
    for &i in &own {
        rows.for_each(i, |j, value| squares[j] += (value - if j < numbers { means[j] } else { 0.0 }).powi(2));
    }
    ranks.add(&mut squares)?;
    let of_input = |(j, (_, scale)): (usize, (f64, f64))| {
        let around = if j < numbers { 0.0 } else { means[j] * means[j] };
        scale * (squares[j] / n - around).max(0.0).sqrt()
    };
    Ok(encoder.units().into_iter().enumerate().map(of_input).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// A model of a target with the deviation 10, of a number with the scale 4 and a category.
    const MODEL: &str = r#"{
        "format": "strust-fit 1", "version": "0.1.0", "model": "linear", "target": "y", "target_is_words": false,
        "task": { "kind": "regression", "mean": 3.0, "deviation": 10.0 }, "intercept": true,
        "constraint": { "nonnegative": false, "sum_to_one": false, "unit_norm": false }, "order": ["a", "c", "y"],
        "encoder": { "columns": [
            { "name": "a", "kind": "number", "shift": 1.0, "scale": 4.0, "fill": 1.0 },
            { "name": "c", "kind": "category", "levels": ["no"] }
        ] },
        "data": { "file": "f.csv", "md5": "", "training_rows": 8, "held_out_rows": 2 },
        "training": {
            "method": "auto", "seed": 0, "batch": 2, "epochs": 3.0, "end": "converged", "l2": 1.0, "held_out": null
        },
        "layers": [{ "weights": [[-0.5, 0.4]], "bias": [0.0] }]
    }"#;

    #[test]
    fn weights_and_errors_have_the_units_of_the_file() {
        let mut model = FittedModel::from_bytes(Path::new("f"), MODEL.as_bytes()).unwrap();
        model.about.deviations = vec![2.0, 0.5];
        let one = |input: &str, weight: f64, deviation: f64, error: f64| Coefficient {
            input: input.into(),
            output: "y".into(),
            weight,
            deviation,
            per_deviation: weight * deviation,
            error: Some(error),
        };
        let expected = [one("a", -1.25, 2.0, 0.25), one("c = no", 4.0, 0.5, 2.0)];
        assert_eq!(coefficients(&model, Some(&[0.1, 0.2, 0.3])), expected);
        // An older file: the scales 4 and 1.
        model.about.deviations.clear();
        assert_eq!(model.effects(), [[-5.0, 4.0]]);
        assert!(coefficients(&model, None).iter().all(|one| one.error.is_none()));
    }
}
