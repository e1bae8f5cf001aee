//! Burn's loop over epochs, with its dashboard, checkpoints of modules and early stopping.
//!
//! Burn's `Learner` gives an optimizer the gradient only, and a trust region also asks for the loss at its trial. So
//! [`WithoutRate`] replaces the part of the loop that makes steps, as a custom strategy of `SupervisedTraining`:
//!
//! ```ignore
//! let strategy = WithoutRate::new(Optimizer::auto(), |model: &Model, batch: &Batch| {
//!     let output = model.forward_classification(batch.clone());
//!     (output.loss.clone(), output)
//! });
//! let training = SupervisedTraining::new(folder, train, valid)
//!     .metrics((LossMetric::new(), AccuracyMetric::new()))
//!     .metric_train_numeric(LearningRateMetric::new()) // shows the step size
//!     .metric_train_numeric(strategy.acceptance())
//!     .num_epochs(10)
//!     .with_training_strategy(TrainingStrategy::Custom(Arc::new(strategy)));
//! let result = training.launch(Learner::new(model, AdamConfig::new().init(), 0.0)); // this Adam makes no step
//! ```
//!
//! `examples/learner.rs` is a complete program. Burn's checkpoints hold the module, but not the state of this optimizer:
//! keep a clone of the `Arc`, and save [`WithoutRate::optimizer`]. An error of a step stops the training, and
//! `result.interrupted` has its text.

use crate::{Optimizer, Place};
use burn::{
    optim::lr_scheduler::module_lr_scheduler::ModuleLearningRate,
    tensor::{Tensor, TensorReadError},
    train::{
        EventProcessorTraining, InferenceStep, Interrupter, Learner, LearnerEvent, LearnerModel,
        SupervisedLearningStrategy, SupervisedTrainingEventProcessor, TrainLoader, TrainStep, TrainingComponents,
        TrainingItem, ValidLoader,
        metric::{
            Metric, MetricAttributes, MetricMetadata, MetricName, Numeric, NumericAttributes, NumericEntry,
            SerializedEntry,
            state::{FormatOptions, NumericMetricState},
        },
    },
};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use strust::radius::Verdict;

/// A strategy of Burn's `SupervisedTraining` whose steps are those of an [`Optimizer`].
#[derive(Debug)]
pub struct WithoutRate<V, L> {
    /// Burn shares a strategy, and a step changes the optimizer.
    optimizer: Mutex<Optimizer<V>>,
    loss: L,
    accepted: Verdicts,
}

/// Of the steps whose items Burn has not processed yet: it does so in another thread.
type Verdicts = Arc<Mutex<VecDeque<Verdict>>>;

impl<V: Place, L> WithoutRate<V, L> {
    /// `loss` returns the mean loss of the module on a batch, and what the metrics see.
    pub fn new<M, O>(optimizer: Optimizer<V>, loss: L) -> Self
    where
        M: TrainStep<Output = O>,
        L: Fn(&M, &M::Input) -> (Tensor<1>, O),
    {
        Self { optimizer: Mutex::new(optimizer), loss, accepted: Arc::default() }
    }
    /// The share of accepted steps, as a metric. The step size is shown as Burn's learning rate.
    #[must_use]
    pub fn acceptance(&self) -> Acceptance {
        Acceptance { accepted: Arc::clone(&self.accepted), state: NumericMetricState::new() }
    }

    /// The optimizer, for example to save its state after the training. An epoch holds it.
    pub fn optimizer(&self) -> MutexGuard<'_, Optimizer<V>> {
        lock(&self.optimizer)
    }

    /// One epoch of steps. An error stops the training.
    fn epoch<M>(
        &self,
        mut model: M,
        batches: &TrainLoader<M>,
        processor: &mut SupervisedTrainingEventProcessor<M>,
        interrupter: &Interrupter,
    ) -> M
    where
        M: LearnerModel,
        L: Fn(&M, &<M as TrainStep>::Input) -> (Tensor<1>, <M as TrainStep>::Output),
    {
        let mut optimizer = self.optimizer();
        let mut batches = batches.iter();
        let mut iteration = 0;
        while let Some(batch) = batches.next() {
            let step = batch.map_err(|error| interrupter.fail(error)).and_then(|batch| {
                let mut output = None;
                let loss = |model: &M| {
                    let (loss, seen) = (self.loss)(model, &batch);
                    // The first evaluation is that with the gradient.
                    output.get_or_insert(seen);
                    loss
                };
                let step = optimizer.step(model.clone(), loss);
                let (model, _) = step.map_err(|error| interrupter.stop(Some(&error.to_string())))?;
                Ok((model, output.expect("a step evaluates the loss")))
            });
            let Ok((next, output)) = step else { break };
            model = next;
            iteration += 1;
            let record = optimizer.record().expect("there was a step");
            lock(&self.accepted).push_back(record.verdict);
            let size = ModuleLearningRate::from(record.step_size);
            let item = TrainingItem::new(output, batches.progress(), Some(iteration), Some(size));
            interrupter.fail_on_error(processor.process_train(LearnerEvent::ProcessedItem(item)));
            if interrupter.should_stop() {
                break;
            }
        }
        model
    }
}

impl<M, V, L> SupervisedLearningStrategy<M> for WithoutRate<V, L>
where
    M: LearnerModel,
    V: Place,
    L: Fn(&M, &<M as TrainStep>::Input) -> (Tensor<1>, <M as TrainStep>::Output),
{
    /// The loop of Burn's own strategy for one device, with other steps. Before a validation and at the end, the running
    /// statistics are computed anew from the training batches, if there are any: see [`Optimizer::averaged`].
    fn fit(
        &self,
        components: TrainingComponents<M>,
        mut learner: Learner<M>,
        train: TrainLoader<M>,
        valid: ValidLoader<M>,
        first_epoch: usize,
    ) -> (M, SupervisedTrainingEventProcessor<M>) {
        let TrainingComponents { interrupter, mut event_processor, mut checkpointer, mut early_stopping, .. } =
            components;
        let mut answer = learner.model();
        if components.grad_accumulation.is_some() {
            interrupter
                .stop(Some("a trust region judges a step by its batch: use larger batches, not `grads_accumulation`"));
            return (answer, event_processor);
        }
        let device = answer.devices()[0].clone().autodiff();
        let (train, valid) = (train.to_device(&device), valid.to_device(&device.clone().inner()));
        let mut model = answer.clone().fork(&device);
        for epoch in first_epoch..=components.num_epochs {
            let start = LearnerEvent::StartSplit { epoch_number: epoch, total_items: train.num_items() };
            interrupter.fail_on_error(event_processor.process_train(start));
            model = self.epoch(model, &train, &mut event_processor, &interrupter);
            interrupter.fail_on_error(event_processor.process_train(LearnerEvent::EndSplit(epoch)));
            answer = self.answer(&model, &train, &interrupter);
            if interrupter.should_stop() {
                break;
            }

            let start = LearnerEvent::StartSplit { epoch_number: epoch, total_items: valid.num_items() };
            interrupter.fail_on_error(event_processor.process_valid(start));
            validate(&answer.valid(), &valid, &mut event_processor, &interrupter);
            interrupter.fail_on_error(event_processor.process_valid(LearnerEvent::EndSplit(epoch)));
            interrupter.fail_on_error(event_processor.process_train(LearnerEvent::EndEpoch(epoch)));
            if checkpointer.is_some() || early_stopping.is_some() {
                interrupter.fail_on_error(event_processor.flush());
            }
            if interrupter.should_stop() {
                break;
            }
            if let Some(checkpointer) = &mut checkpointer {
                learner.load_model(answer.clone().into_record());
                checkpointer.checkpoint(&learner, epoch, &components.event_store);
            }
            if early_stopping.as_mut().is_some_and(|rule| rule.should_stop(epoch, &components.event_store)) {
                break;
            }
        }
        (answer, event_processor)
    }
}

impl<V: Place, L> WithoutRate<V, L> {
    /// A copy of the module with statistics that belong to its parameters, also after a stop.
    fn answer<M>(&self, model: &M, batches: &TrainLoader<M>, interrupter: &Interrupter) -> M
    where
        M: LearnerModel,
        L: Fn(&M, &<M as TrainStep>::Input) -> (Tensor<1>, <M as TrainStep>::Output),
    {
        let batches = batches.iter().map_while(|batch| batch.map_err(|error| interrupter.fail(error)).ok());
        let loss = |model: &M, batch: &_| drop((self.loss)(model, batch));
        self.optimizer().averaged(model.clone(), batches, loss).unwrap_or_else(|error| {
            interrupter.stop(Some(&error.to_string()));
            model.clone()
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn validate<M: LearnerModel>(
    model: &M,
    batches: &ValidLoader<M>,
    processor: &mut SupervisedTrainingEventProcessor<M>,
    interrupter: &Interrupter,
) {
    let mut batches = batches.iter();
    let mut iteration = 0;
    while let Some(batch) = batches.next() {
        let Ok(batch) = batch.map_err(|error| interrupter.fail(error)) else { return };
        iteration += 1;
        let item = TrainingItem::new(InferenceStep::step(model, batch), batches.progress(), Some(iteration), None);
        interrupter.fail_on_error(processor.process_valid(LearnerEvent::ProcessedItem(item)));
        if interrupter.should_stop() {
            return;
        }
    }
}

/// The share of accepted steps of an epoch: see [`WithoutRate::acceptance`].
#[derive(Clone)]
pub struct Acceptance {
    accepted: Verdicts,
    state: NumericMetricState,
}

impl Metric for Acceptance {
    type Input = ();

    fn name(&self) -> MetricName {
        Arc::new("Accepted steps".into())
    }
    fn attributes(&self) -> MetricAttributes {
        NumericAttributes { unit: Some("%".into()), higher_is_better: true }.into()
    }
    fn update(&mut self, (): &(), _: &MetricMetadata) -> Result<SerializedEntry, TensorReadError> {
        let accepted = lock(&self.accepted).pop_front() == Some(Verdict::Accepted);
        self.state.update(if accepted { 100.0 } else { 0.0 }, 1);
        Ok(self.state.compute_update(FormatOptions::new(self.name()).unit("%").precision(1)))
    }
    fn compute(&mut self) -> Result<SerializedEntry, TensorReadError> {
        Ok(self.state.compute_final(FormatOptions::new(self.name()).unit("%").precision(1)))
    }
    fn clear(&mut self) {
        self.state.reset();
    }
}

impl Numeric for Acceptance {
    fn value(&self) -> Option<NumericEntry> {
        Some(self.state.current_value())
    }
    fn running_value(&self) -> Option<NumericEntry> {
        Some(self.state.running_value())
    }
    fn final_value(&self) -> NumericEntry {
        self.state.final_value()
    }
}
