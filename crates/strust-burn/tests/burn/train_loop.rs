//! Burn's own loop.

use crate::models::{Net, device, near, numbers, random};
use burn::{
    data::{
        dataloader::{DataLoaderBuilder, batcher::Batcher},
        dataset::InMemDataset,
    },
    optim::AdamConfig,
    tensor::{Device, Tensor},
    train::{InferenceStep, Learner, RegressionOutput, SupervisedTraining, TrainOutput, TrainStep, TrainingStrategy},
};
use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use strust_burn::{Optimizer, train::WithoutRate};

type Row = [f32; 4];

#[derive(Clone)]
struct Stack;

impl Batcher<Row, Tensor<2>> for Stack {
    fn batch(&self, rows: Vec<Row>, device: &Device) -> Tensor<2> {
        Tensor::<1>::from_floats(&*rows.concat(), device).reshape([rows.len(), 4])
    }
}

fn output(net: &Net, batch: &Tensor<2>) -> RegressionOutput {
    RegressionOutput::new(net.loss(batch), batch.clone(), batch.clone())
}

impl TrainStep for Net {
    type Input = Tensor<2>;
    type Output = RegressionOutput;
    fn step(&self, _: Tensor<2>) -> TrainOutput<RegressionOutput> {
        unreachable!("the strategy makes the steps")
    }
}

impl InferenceStep for Net {
    type Input = Tensor<2>;
    type Output = RegressionOutput;
    fn step(&self, batch: Tensor<2>) -> RegressionOutput {
        output(self, &batch)
    }
}

#[test]
fn a_stopped_training_has_the_statistics_of_all_batches_and_a_state_to_save() {
    let (device, _alone) = device();
    let rows = random([64, 4], &device);
    let mean = numbers(rows.clone().mean_dim(0));
    let items: Vec<Row> = numbers(rows).chunks(4).map(|row| row.try_into().unwrap()).collect();
    let load = |device: Device| DataLoaderBuilder::new(Stack).batch_size(8).set_device(device);
    let train = load(device.clone()).build(InMemDataset::new(items.clone()));
    let valid = load(device.clone().inner()).build(InMemDataset::new(items));

    let folder = std::env::temp_dir().join(format!("strust-burn-loop-{}", std::process::id()));
    let training = SupervisedTraining::new(&folder, train, valid).num_epochs(3);
    let (interrupter, calls) = (training.interrupter(), AtomicUsize::new(0));
    let strategy = Arc::new(WithoutRate::new(Optimizer::auto(), move |net: &Net, batch: &Tensor<2>| {
        if calls.fetch_add(1, Ordering::Relaxed) == 5 {
            interrupter.stop(Some("enough"));
        }
        let output = output(net, batch);
        (output.loss.clone(), output)
    }));
    let training = training.with_training_strategy(TrainingStrategy::Custom(strategy.clone()));
    let result = training.launch(Learner::new(Net::new(&device), AdamConfig::new().init(), 0.0));
    fs::remove_dir_all(folder).unwrap();

    assert_eq!(result.interrupted.and_then(|stop| stop.reason).as_deref(), Some("enough"));
    assert!(near(&result.model.mean(), &mean), "{:?} and not {mean:?}", result.model.mean());
    let state = strategy.optimizer().to_bytes().unwrap();
    let resumed = Optimizer::auto().from_bytes(state).unwrap();
    assert_eq!(resumed.steps(), 3);
    let answer = resumed.answer(Net::new(&device)).unwrap();
    assert_eq!(numbers(answer.hidden.weight.val()), numbers(result.model.hidden.weight.val()));
}
