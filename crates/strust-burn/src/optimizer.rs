//! An optimizer in Burn's habit: it takes a module and a closure, and returns the module and the loss.

use crate::{
    Error, Flat, Parameters, Place,
    flat::loading_to,
    objective::{StepLoss, until_mistake},
    parameters::{Others, check_same},
    saved::SavedOptimizer,
};
use burn::{
    module::Module,
    tensor::{Bytes, Tensor},
};
use rand_core::Rng;
use std::{fmt, path::Path};
use strust::{
    methods::{AnyMethod, AnyState, Auto, Method, State},
    objective::Objective,
    record::StepRecord,
    sample::{Sample, generator},
    saved::Save,
    stop::StopReason,
};

/// A running statistic that is large beside every real one, and a power of two. See [`Optimizer::averaged`].
const LARGE: f64 = 1_048_576.0;

/// A method of the library over the parameters of a Burn module.
///
/// ```
/// use burn::{nn::{LinearConfig, loss::{MseLoss, Reduction}}, tensor::{Device, Distribution, Tensor}};
/// use strust_burn::Optimizer;
/// let device = Device::flex().autodiff();
/// let input = Tensor::<2>::random([64, 3], Distribution::Default, &device);
/// let target = input.clone().sum_dim(1);
///
/// let mut model = LinearConfig::new(3, 1).init(&device);
/// let mut optimizer = Optimizer::auto();
/// let mut loss = f64::NAN;
/// for _ in 0..300 {
///     (model, loss) = optimizer.step(model, |model| {
///         MseLoss::new().forward(model.forward(input.clone()), target.clone(), Reduction::Mean)
///     })?;
/// }
/// assert!(loss < 1e-6);
/// # Ok::<(), strust_burn::Error>(())
/// ```
///
/// The closure returns the mean loss of one batch. [`Auto`] and `Str` call it twice in a step: for the gradient, and for
/// the trial, which records no graph. All calls of a step draw the same dropout masks, because the device's generator is
/// seeded before each call. Batch-norm's running statistics move once.
///
/// The module that a step returns is the answer so far. For [`Auto`] this is an average, where no gradient was taken: see
/// [`averaged`](Self::averaged) for a module with batch-norm. The optimizer keeps the parameters itself, so it overwrites
/// what is done to them between two steps. Parameters without a gradient stay as they are.
///
/// A step that returns an error drops the module and changes nothing else. A clone of a module copies no numbers: keep one
/// to resume with it. If panics abort, a mistake in the closure ends the program with its message.
pub struct Optimizer<V = Vec<f32>> {
    method: AnyMethod<V>,
    run: Option<Run<V>>,
    seed: u64,
    observer: Option<Observer>,
    record: Option<StepRecord>,
    /// A state that the first step resumes.
    loaded: Option<SavedOptimizer>,
}

type Observer = Box<dyn FnMut(&StepRecord) + Send>;

struct Run<V> {
    parameters: Parameters,
    state: AnyState<V>,
}

impl<V> fmt::Debug for Optimizer<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Optimizer").field("seed", &self.seed).finish_non_exhaustive()
    }
}

impl Optimizer {
    /// [`Auto`] with its defaults, in single precision on the host. It needs no setting.
    #[must_use]
    pub fn auto() -> Self {
        Self::new(Auto::default())
    }
}

impl Optimizer<Flat<f32>> {
    /// [`Auto`] with its defaults, in single precision on the module's device, for a GPU.
    #[must_use]
    pub fn auto_on_device() -> Self {
        Self::new(Auto::default())
    }
}

impl<V: Place> Optimizer<V> {
    /// Any method of the library, as in `Optimizer::<Vec<f32>>::new(Str::default())`.
    pub fn new<A, S>(method: A) -> Self
    where
        A: for<'a> Method<&'a mut (dyn Objective<Point = V> + 'a), State = S> + Send + 'static,
        S: State<Point = V> + Send + 'static,
    {
        Self { method: AnyMethod::new(method), run: None, seed: 0, observer: None, record: None, loaded: None }
    }
    /// The seed of the numbers that layers draw. Default 0.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }
    /// Calls a function with the record of each step.
    #[must_use]
    pub fn observe(self, observer: impl FnMut(&StepRecord) + Send + 'static) -> Self {
        Self { observer: Some(Box::new(observer)), ..self }
    }

    /// One step on one batch. Returns the module with the answer so far, and the loss where the gradient was taken.
    pub fn step<M: Module>(&mut self, module: M, loss: impl FnMut(&M) -> Tensor<1>) -> Result<(M, f64), Error> {
        let record = until_mistake(|| self.advance(&module, loss))?;
        if let Some(observer) = &mut self.observer {
            observer(&record);
        }
        let value = record.value;
        self.record = Some(record);
        Ok((self.answer(module)?, value))
    }

    /// The parameters of a module, if it fits.
    fn parameters<M: Module>(&self, module: &M) -> Result<Parameters, Error> {
        let parameters = Parameters::of(module)?;
        parameters.check(V::DTYPE)?;
        self.run.as_ref().map_or(Ok(()), |run| parameters.check_same(&run.parameters))?;
        Ok(parameters)
    }

    fn advance<M: Module>(&mut self, module: &M, loss: impl FnMut(&M) -> Tensor<1>) -> Result<StepRecord, Error> {
        let parameters = self.parameters(module)?;
        let mut f = StepLoss::<V, M, _>::new(&parameters, module, loss);
        if self.run.is_none() {
            let state = match &self.loaded {
                None => self.method.init(&mut f, parameters.vector(module)?)?,
                Some(saved) => {
                    let state = self.restored(&parameters, saved)?;
                    self.method.prepare(&mut f, state.point())?;
                    state
                }
            };
            self.run = Some(Run { parameters: parameters.clone(), state });
            self.loaded = None;
        }
        let run = self.run.as_mut().expect("it was started");
        let sample = Sample::new(vec![0], generator(self.seed, run.state.steps()).next_u64());
        let record = self.method.step(&mut f, &mut run.state, &sample)?;
        if let Some(statistics) = f.statistics {
            drop(statistics.restore(module.clone()));
        }
        Ok(record)
    }
    fn restored(&self, parameters: &Parameters, saved: &SavedOptimizer) -> Result<AnyState<V>, Error> {
        check_same(&saved.slots, parameters.slots())?;
        let read = || Method::<&mut dyn Objective<Point = V>>::restore(&self.method, &saved.state);
        Ok(loading_to(parameters.device(), read)?)
    }

    /// The module with the answer so far, which is that of the last step or of a loaded state.
    pub fn answer<M: Module>(&self, module: M) -> Result<M, Error> {
        let parameters = self.parameters(&module)?;
        Ok(match (&self.run, &self.loaded) {
            (Some(run), _) => parameters.put(module, run.state.point(), true),
            (None, Some(saved)) => parameters.put(module, self.restored(&parameters, saved)?.point(), true),
            (None, None) => module,
        })
    }

    /// The module with the [answer](Self::answer), and batch-norm's running statistics computed anew there: the mean, over
    /// these batches, of the means and variances of each batch. (PyTorch does this with `momentum=None`.) Clones of the
    /// module keep theirs.
    ///
    /// `forward` evaluates the module in training mode. Without batches, and for a module without running statistics, only
    /// the parameters are written.
    pub fn averaged<M: Module, B>(
        &self,
        module: M,
        batches: impl IntoIterator<Item = B>,
        mut forward: impl FnMut(&M, &B),
    ) -> Result<M, Error> {
        // `train` gives it statistics of its own.
        let module = self.answer(module.train())?;
        let parameters = Parameters::of(&module)?;
        let own = parameters.others(&module);
        let mut batches = batches.into_iter();
        let first = if own.is_empty() { None } else { batches.next() };
        let Some(first) = first else { return Ok(module) };
        let untracked = module.clone().no_grad();
        let mut pass = |from: &Others, batch: &B| {
            drop(from.restore(module.clone()));
            forward(&untracked, batch);
            parameters.others(&module)
        };
        // Statistics are what moves. A pass sets r ← (1 − m)·r + m·b, where b belongs to its batch. A pass from r = 0 leaves
        // m·b. The layers do not reveal m, but a pass from a large r leaves (1 − m)·r, up to rounding.
        let moved = pass(&own, &first).differing(&own);
        if moved.is_empty() {
            return Ok(module);
        }
        let (zero, large) = (moved.map(Tensor::zeros_like), moved.map(|r| r.full_like(LARGE)));
        let far = pass(&large, &first);
        let mut sums = zero.with(&pass(&zero, &first), |_, near| near);
        let momenta = sums.with(&far, |near, far| 1.0 - (far - near) / LARGE);
        if !momenta.all(|m| m.clone().greater_elem(0.0).bool_and(m.lower_equal_elem(1.0))) {
            return Err(Error::NotAnAverage);
        }
        let mut count = 1.0;
        for batch in batches {
            sums = sums.with(&pass(&zero, &batch), |sum, one| sum + one);
            count += 1.0;
        }
        let means = sums.with(&momenta, |sum, m| sum / (m * count));
        Ok(means.restore(own.restore(module)))
    }

    /// Steps made so far.
    #[must_use]
    pub fn steps(&self) -> u64 {
        let loaded = self.loaded.as_ref().map_or(0, |loaded| loaded.steps);
        self.run.as_ref().map_or(loaded, |run| run.state.steps())
    }
    /// The record of the last step.
    #[must_use]
    pub fn record(&self) -> Option<&StepRecord> {
        self.record.as_ref()
    }
    /// The state of the method, once there was a step.
    #[must_use]
    pub fn state(&self) -> Option<&AnyState<V>> {
        self.run.as_ref().map(|run| &run.state)
    }
    /// The reason to stop that the method itself has found, such as constraints that contradict each other.
    #[must_use]
    pub fn settled(&self) -> Option<StopReason> {
        self.state().and_then(State::settled)
    }

    fn saved(&self) -> Result<SavedOptimizer, Error> {
        match (&self.run, &self.loaded) {
            (Some(Run { parameters, state }), _) => {
                let slots = parameters.slots().to_vec();
                Ok(SavedOptimizer { state: state.save(), slots, seed: self.seed, steps: state.steps() })
            }
            (None, Some(loaded)) => Ok(loaded.clone()),
            (None, None) => Err(Error::NoState),
        }
    }
    /// Writes the state as a file of Burn (burnpack). The file is either complete or unchanged. Save the module too: it has
    /// the running statistics.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.saved()?.save(path.as_ref())
    }
    /// Reads such a file. The next step resumes with the same bits on a CPU, given the module that was saved with it.
    pub fn load(self, path: impl AsRef<Path>) -> Result<Self, Error> {
        Ok(self.resumed(SavedOptimizer::load(path.as_ref())?))
    }
    /// The state as the bytes of such a file.
    pub fn to_bytes(&self) -> Result<Bytes, Error> {
        self.saved()?.to_bytes()
    }
    /// Reads such bytes, as [`load`](Self::load) does.
    pub fn from_bytes(self, bytes: Bytes) -> Result<Self, Error> {
        Ok(self.resumed(SavedOptimizer::from_bytes(bytes)?))
    }
    fn resumed(self, saved: SavedOptimizer) -> Self {
        Self { seed: saved.seed, loaded: Some(saved), run: None, ..self }
    }
}
