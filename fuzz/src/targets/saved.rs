//! Models and states.

use strust::{methods::AutoState, prelude::*};
use strust_fit::FittedModel;

pub fn model(data: &[u8]) {
    let path = "model.json".as_ref();
    let Ok(model) = FittedModel::from_bytes(path, data) else { return };
    let _ = model.weights_in_units();
    let _ = model.read_options(true);
    // A model that was accepted can be saved and read again.
    FittedModel::from_bytes(path, &model.to_json()).expect("a saved model");
    FittedModel::from_bytes(path, &model.to_safetensors()).expect("a saved model");
}

/// A state that Rust and Python exchange, and two steps from it.
pub fn state(data: &[u8]) {
    let Ok(state) = serde_json::from_slice::<AutoState<Vec<f64>>>(data) else { return };
    let square = |x: &Vec<f64>, _: &Sample, gradient: Option<&mut Vec<f64>>| {
        if let Some(gradient) = gradient {
            gradient.iter_mut().zip(x).for_each(|(g, x)| *g = *x);
        }
        x.iter().map(|x| 0.5 * x * x).sum()
    };
    let steps = 12;
    let _ = minimize(&mut from_fn(5, square)).batch(2).seed(3).stop(Stop::steps(steps)).resume(state);
}
