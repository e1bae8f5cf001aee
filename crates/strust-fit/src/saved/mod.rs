//! Model files: JSON for people, or safetensors. Both hold the transform, the weights, the classes, the version and the
//! fingerprint of the data.
//!
//! A file is checked completely when it is read: a damaged or hostile file is an error.

mod check;
mod safetensors;

use crate::{
    Error,
    assess::Assessment,
    constrain::WeightConstraint,
    fair::ModelFairness,
    table::{CellForm, CellKind, ExpectedColumns, ReadOptions},
    task::FitTask,
    train::TrainingEnd,
    transform::Encoder,
    weights::Weights,
};
use serde::{Deserialize, Serialize};
use std::{
    io::Read,
    path::{Path, PathBuf},
};
use strust_data::{loss::OutputLoss, read::open_plain};

/// The format of a model file. The number grows when older programs cannot read a newer file.
pub const FORMAT: &str = "strust-fit 1";
/// The most bytes of a model file.
const MOST_BYTES: u64 = 1 << 30;
/// The start of the format of any version.
const ANY_FORMAT: &str = "strust-fit ";

/// The kind of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelFamily {
    /// A linear model of a number.
    Linear,
    /// A linear model of the logit of the second of two classes.
    Logistic,
    /// A linear model of the score of each class.
    Softmax,
    /// A network with hidden layers.
    Mlp,
}

impl ModelFamily {
    /// The linear model of a task.
    pub(crate) fn linear(task: &FitTask) -> Self {
        match task.loss() {
            OutputLoss::Squares | OutputLoss::Huber(_) => Self::Linear,
            OutputLoss::Logistic => Self::Logistic,
            OutputLoss::Softmax => Self::Softmax,
        }
    }

    /// Its name in the program.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Logistic => "logistic",
            Self::Softmax => "softmax",
            Self::Mlp => "mlp",
        }
    }
}

/// A model with all that predictions need.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedModel {
    /// All but the weights.
    pub about: ModelAbout,
    /// The weights.
    pub weights: Weights,
}

/// All of a model but its weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelAbout {
    /// [`FORMAT`].
    pub format: String,
    /// The version of strust that made it.
    pub version: String,
    /// The kind of model.
    pub model: ModelFamily,
    /// The column to predict.
    pub target: String,
    /// What it predicts.
    pub task: FitTask,
    /// Whether the target holds words in the file.
    pub target_is_words: bool,
    /// How the numbers of the target are written in the file.
    #[serde(default, skip_serializing_if = "CellForm::is_plain")]
    pub target_form: CellForm,
    /// Whether the model has intercepts.
    pub intercept: bool,
    /// The constraint on the weights.
    pub constraint: WeightConstraint,
    /// Bounds on differences between groups and on rates, and the groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fair: Option<ModelFairness>,
    /// All columns of the file, in order.
    pub order: Vec<String>,
    /// The transform.
    pub encoder: Encoder,
    /// The data that it was made from.
    pub data: DataOrigin,
    /// How it was trained.
    pub training: TrainingOrigin,
    /// The standard deviation of each input of a linear model among the training rows, in the units of the file. It is
    /// empty for a network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deviations: Vec<f64>,
}

/// The data that a model was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataOrigin {
    /// The name of the file.
    pub file: PathBuf,
    /// MD5 of the file.
    pub md5: String,
    /// Rows to learn from, with those of a network's validation.
    pub training_rows: usize,
    /// Held-out rows.
    pub held_out_rows: usize,
}

/// How a model was trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainingOrigin {
    /// The method.
    pub method: String,
    /// The seed of the split, the start and the mini-batches.
    pub seed: u64,
    /// Rows of a mini-batch.
    pub batch: usize,
    /// Passes over the rows.
    pub epochs: f64,
    /// Why it ended.
    pub end: TrainingEnd,
    /// The strength of the penalty on squared weights: that of 1/C and alpha in scikit-learn.
    pub l2: f64,
    /// The scores on the held-out rows, or those of cross-validation.
    pub held_out: Option<Assessment>,
    /// The parts of the rows that were held out in turn, if the scores are those of cross-validation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folds: Option<usize>,
}

/// A layer as it is saved: the weights of each unit, and its bias.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SavedLayer {
    pub(crate) weights: Vec<Vec<f64>>,
    pub(crate) bias: Vec<f64>,
}

/// The form of a JSON file.
#[derive(Serialize, Deserialize)]
struct JsonModel {
    #[serde(flatten)]
    about: ModelAbout,
    layers: Vec<SavedLayer>,
}

impl FittedModel {
    /// The contents of a `.json` file.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let model = JsonModel { about: self.about.clone(), layers: layers(&self.weights) };
        let mut text = serde_json::to_vec_pretty(&model).expect("a model is plain data");
        text.push(b'\n');
        text
    }

    /// The contents of a `.safetensors` file: tensors `layers.0.weight` (units × inputs), `layers.0.bias`, …, and all
    /// else as JSON in the metadata.
    #[must_use]
    pub fn to_safetensors(&self) -> Vec<u8> {
        safetensors::write(&self.about, &layers(&self.weights))
    }

    /// Reads a model file of either form.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let mut bytes = Vec::new();
        let read = open_plain(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes));
        read.map_err(|cause| Error::Io { path: path.into(), cause })?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(Error::file(path, format!("not a model of `strust fit`: it has more than {MOST_BYTES} bytes")));
        }
        Self::from_bytes(path, &bytes)
    }

    /// The same from the contents of a file; `path` is for messages.
    pub fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Self, Error> {
        let wrong = |why: String| Error::file(path, format!("not a model of `strust fit`: {why}"));
        let (about, layers) = if is_json(bytes) {
            let found: FormatOnly = serde_json::from_slice(bytes).map_err(|e| wrong(e.to_string()))?;
            check::format(&found.format).map_err(wrong)?;
            let JsonModel { about, layers } = serde_json::from_slice(bytes).map_err(|e| wrong(e.to_string()))?;
            (about, layers)
        } else {
            safetensors::read(bytes).map_err(wrong)?
        };
        check::format(&about.format).map_err(wrong)?;
        check::about(&about).map_err(wrong)?;
        let weights = check::weights(&about, &layers).map_err(wrong)?;
        Ok(Self { about, weights })
    }

    /// Whether a file looks like a model of `strust fit`, perhaps a damaged one or one of another version.
    #[must_use]
    pub fn is_one(path: &Path) -> bool {
        let mut start = Vec::new();
        let read = open_plain(path).and_then(|file| file.take(1 << 16).read_to_end(&mut start));
        read.is_ok() && start.windows(ANY_FORMAT.len()).any(|part| part == ANY_FORMAT.as_bytes())
    }

    /// How to read a file for this model. With `with_target` the target is read too, if the file has it.
    #[must_use]
    pub fn read_options(&self, with_target: bool) -> ReadOptions {
        let about = &self.about;
        let mut kinds: std::collections::BTreeMap<_, _> = about.encoder.kinds().collect();
        if with_target {
            let groups = about.fair.iter().flat_map(|fair| &fair.columns);
            kinds.extend(groups.map(|column| (column.name.clone(), column.kind())));
            let kind = if about.target_is_words { CellKind::Word } else { CellKind::Number(about.target_form) };
            kinds.insert(about.target.clone(), kind);
        }
        ReadOptions {
            target: Some(about.target.clone()),
            expected: Some(ExpectedColumns { kinds, order: about.order.clone() }),
            ..ReadOptions::default()
        }
    }

    /// The weights from each input to each output in the units of the file, and the intercepts; `None` for a network
    /// with hidden layers. A prediction is Σ wⱼvⱼ + b.
    #[must_use]
    pub fn weights_in_units(&self) -> Option<(Vec<Vec<f64>>, Vec<f64>)> {
        if self.weights.widths.len() != 2 {
            return None;
        }
        let (mean, deviation) = self.about.task.units();
        let mut bias: Vec<f64> = self.weights.first_bias().iter().map(|b| mean + deviation * b).collect();
        let mut weights = vec![Vec::with_capacity(self.weights.inputs()); self.weights.outputs()];
        for (j, (shift, scale)) in self.about.encoder.units().into_iter().enumerate() {
            for (c, w) in self.weights.of_input(j).iter().enumerate() {
                let w = w * deviation / scale;
                weights[c].push(w);
                bias[c] -= w * shift;
            }
        }
        Some((weights, bias))
    }
}

#[derive(Deserialize)]
struct FormatOnly {
    format: String,
}

/// Whether the first character is a brace. A safetensors file starts with a length, whose first byte is that of a brace
/// for one header in 256: then its ninth byte is a brace too.
fn is_json(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first() == Some(&b'{') && bytes.get(8) != Some(&b'{')
}

fn layers(weights: &Weights) -> Vec<SavedLayer> {
    let mut start = 0;
    let layer = |pair: &[usize]| {
        let (inputs, outputs) = (pair[0], pair[1]);
        let columns = &weights.flat[start..start + (inputs + 1) * outputs];
        start += (inputs + 1) * outputs;
        SavedLayer {
            weights: (0..outputs).map(|c| (0..inputs).map(|j| columns[j * outputs + c]).collect()).collect(),
            bias: columns[inputs * outputs..].to_vec(),
        }
    };
    weights.widths.windows(2).map(layer).collect()
}

#[cfg(test)]
mod tests;
