//! Burn's own loop with its dashboard, on handwritten digits, without a learning rate: losses, accuracies, the step size
//! and the share of accepted steps, by epoch.
//!
//! ```text
//! cargo run --release --features train --example learner
//! cargo run --release --features train,burn/tui --example learner    # the dashboard in the terminal
//! ```

use burn::{
    data::{
        dataloader::{DataLoaderBuilder, batcher::Batcher},
        dataset::InMemDataset,
    },
    module::Module,
    nn::{Linear, LinearConfig, Relu, loss::CrossEntropyLossConfig},
    optim::AdamConfig,
    tensor::{Device, Int, Tensor, TensorData},
    train::{
        ClassificationOutput, InferenceStep, Learner, SupervisedTraining, TrainOutput, TrainStep, TrainingStrategy,
        metric::{AccuracyMetric, LearningRateMetric, LossMetric},
    },
};
use std::sync::Arc;
use strust_burn::{Optimizer, train::WithoutRate};
use strust_data::images::Images;

#[derive(Module, Debug)]
struct Mlp {
    hidden: Linear,
    output: Linear,
}

#[derive(Clone, Debug)]
struct Digit {
    pixels: Vec<f32>,
    label: i32,
}

#[derive(Clone, Debug)]
struct Batch {
    images: Tensor<2>,
    labels: Tensor<1, Int>,
}

#[derive(Clone)]
struct Stack;

impl Batcher<Digit, Batch> for Stack {
    fn batch(&self, digits: Vec<Digit>, device: &Device) -> Batch {
        let pixels: Vec<f32> = digits.iter().flat_map(|digit| digit.pixels.clone()).collect();
        let labels: Vec<i32> = digits.iter().map(|digit| digit.label).collect();
        Batch {
            images: Tensor::from_data(TensorData::new(pixels, [digits.len(), 64]), device),
            labels: Tensor::from_data(TensorData::new(labels, [digits.len()]), device),
        }
    }
}

impl Mlp {
    fn classify(&self, batch: Batch) -> ClassificationOutput {
        let scores = self.output.forward(Relu::new().forward(self.hidden.forward(batch.images)));
        let loss = CrossEntropyLossConfig::new().init(&scores.device()).forward(scores.clone(), batch.labels.clone());
        ClassificationOutput::new(loss, scores, batch.labels)
    }
}

// Burn's own optimizers would use this step.
impl TrainStep for Mlp {
    type Input = Batch;
    type Output = ClassificationOutput;
    fn step(&self, batch: Batch) -> TrainOutput<ClassificationOutput> {
        let output = self.classify(batch);
        TrainOutput::new(self, output.loss.backward(), output)
    }
}

impl InferenceStep for Mlp {
    type Input = Batch;
    type Output = ClassificationOutput;
    fn step(&self, batch: Batch) -> ClassificationOutput {
        self.classify(batch)
    }
}

fn digits(images: &Images) -> InMemDataset<Digit> {
    let digit = |i: usize| Digit {
        pixels: images.image(i).iter().map(|&p| f32::from(p) / 255.0).collect(),
        label: i32::from(images.labels[i]),
    };
    InMemDataset::new((0..images.len()).map(digit).collect())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex().autodiff();
    device.seed(0);
    let set = strust_data::digits::images()?;
    let train =
        DataLoaderBuilder::new(Stack).batch_size(32).shuffle(1).set_device(device.clone()).build(digits(&set.train));
    let valid =
        DataLoaderBuilder::new(Stack).batch_size(359).set_device(device.clone().inner()).build(digits(&set.test));
    let model =
        Mlp { hidden: LinearConfig::new(64, 64).init(&device), output: LinearConfig::new(64, 10).init(&device) };

    let strategy = WithoutRate::new(Optimizer::auto(), |model: &Mlp, batch: &Batch| {
        let output = model.classify(batch.clone());
        (output.loss.clone(), output)
    });
    let folder = std::env::temp_dir().join(format!("strust-learner-{}", std::process::id()));
    let training = SupervisedTraining::new(&folder, train, valid)
        .metrics((LossMetric::new(), AccuracyMetric::new()))
        .metric_train_numeric(LearningRateMetric::new())
        .metric_train_numeric(strategy.acceptance())
        .num_epochs(10)
        .summary()
        .with_training_strategy(TrainingStrategy::Custom(Arc::new(strategy)));
    // This Adam makes no step: Burn's learner holds one.
    let result = training.launch(Learner::new(model, AdamConfig::new().init(), 0.0));
    std::fs::remove_dir_all(folder)?;

    let test = DataLoaderBuilder::new(Stack).batch_size(359).set_device(device.inner()).build(digits(&set.test));
    let batch = test.iter().next().ok_or("no test images")??;
    let scores = result.model.classify(batch.clone()).output;
    let right: f64 = scores.argmax(1).reshape([359]).equal(batch.labels).int().float().mean().into_scalar();
    println!("{:.2} % of the test images", 100.0 * right);
    assert!(result.interrupted.is_none() && right > 0.95);
    Ok(())
}
