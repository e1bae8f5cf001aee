//! The safetensors format: the length of a header, the header as JSON, and the numbers.

use super::{ModelAbout, SavedLayer};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The entry of the header for texts.
const METADATA: &str = "__metadata__";
/// The text that holds all but the weights.
const ABOUT: &str = "strust-fit";
/// A longer header is damaged.
const LONGEST: usize = 100 << 20;

#[derive(Serialize, Deserialize)]
struct TensorEntry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

pub(super) fn write(about: &ModelAbout, layers: &[SavedLayer]) -> Vec<u8> {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::<u8>::new());
    let mut add = |name: String, shape: Vec<usize>, numbers: &mut dyn Iterator<Item = &f64>| {
        let start = data.len();
        numbers.for_each(|number| data.extend(number.to_le_bytes()));
        let entry = TensorEntry { dtype: "F64".into(), shape, data_offsets: [start, data.len()] };
        header.insert(name, serde_json::to_value(entry).expect("an entry is plain data"));
    };
    for (l, layer) in layers.iter().enumerate() {
        let shape = vec![layer.bias.len(), layer.weights.first().map_or(0, Vec::len)];
        add(format!("layers.{l}.weight"), shape, &mut layer.weights.iter().flatten());
        add(format!("layers.{l}.bias"), vec![layer.bias.len()], &mut layer.bias.iter());
    }
    let about = serde_json::to_string(about).expect("a model is plain data");
    header.insert(METADATA.into(), serde_json::json!({ ABOUT: about, "format": "pt" }));
    let mut text = serde_json::to_vec(&header).expect("a header is plain data");
    // The numbers start at a multiple of eight bytes.
    text.resize(text.len().next_multiple_of(8), b' ');
    [&(text.len() as u64).to_le_bytes()[..], &text, &data].concat()
}

pub(super) fn read(bytes: &[u8]) -> Result<(ModelAbout, Vec<SavedLayer>), String> {
    let length = bytes.first_chunk::<8>().map(|start| u64::from_le_bytes(*start)).ok_or("the file is too short")?;
    let length = usize::try_from(length).ok().filter(|&length| length <= LONGEST && length <= bytes.len() - 8);
    let (header, data) =
        bytes[8..].split_at(length.ok_or("the length of its header is wrong, or the file is truncated")?);
    let mut header: BTreeMap<String, serde_json::Value> = serde_json::from_slice(header).map_err(|e| e.to_string())?;
    let metadata = header.remove(METADATA).unwrap_or_default();
    let about = metadata[ABOUT].as_str().ok_or("its metadata does not describe one")?;
    let about: ModelAbout = serde_json::from_str(about).map_err(|e| format!("its metadata: {e}"))?;
    let mut layers = Vec::new();
    while let Some(weights) = header.remove(&format!("layers.{}.weight", layers.len())) {
        let bias = header.remove(&format!("layers.{}.bias", layers.len())).ok_or("a layer has no bias")?;
        let ([units, inputs], weights) = tensor::<2>(weights, data)?;
        let ([count], bias) = tensor::<1>(bias, data)?;
        if count != units || inputs == 0 {
            return Err(format!("layer {} has {units} × {inputs} weights and {count} biases", layers.len()));
        }
        layers.push(SavedLayer { weights: weights.chunks_exact(inputs).map(<[f64]>::to_vec).collect(), bias });
    }
    match header.keys().next() {
        Some(name) => Err(format!("unknown tensor `{name}`")),
        None => Ok((about, layers)),
    }
}

/// The shape and the numbers of a tensor.
fn tensor<const D: usize>(entry: serde_json::Value, data: &[u8]) -> Result<([usize; D], Vec<f64>), String> {
    let TensorEntry { dtype, shape, data_offsets: [start, end] } =
        serde_json::from_value(entry).map_err(|e| e.to_string())?;
    if dtype != "F64" {
        return Err(format!("numbers of type {dtype}; expected F64"));
    }
    let shape: [usize; D] = shape.try_into().map_err(|shape| format!("a tensor of shape {shape:?}"))?;
    let size = shape.iter().try_fold(8_usize, |product, &size| product.checked_mul(size));
    match data.get(start..end) {
        Some(bytes) if Some(bytes.len()) == size => {
            let numbers = bytes.as_chunks::<8>().0.iter().map(|number| f64::from_le_bytes(*number));
            Ok((shape, numbers.collect()))
        }
        _ => Err(format!("the numbers of a tensor of shape {shape:?} are missing")),
    }
}
