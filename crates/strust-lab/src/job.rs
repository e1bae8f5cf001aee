//! One job: build the problem and the method, run, record, save, go on where it was left.

#[cfg(feature = "torch")]
use crate::walk::Captured;
use crate::{
    Error,
    catalog::{
        self, Cifar10Config, FactorisationConfig, LeastSquaresConfig, LogisticConfig, MlpConfig, Precision,
        SoftmaxConfig, SubspaceConfig,
    },
    checkpoint::{self, Checkpoint, Totals},
    diagnose::{self, Effort, Examination},
    experiment::{Experiment, Records, Sampling},
    files, network,
    plan::Job,
    progress::JobProgress,
    record::{EpochRecord, Line, Timing},
    summary::Metric,
    walk::{StepByStep, Walk},
};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{BufWriter, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};
use strust::{config::Config, objective::full_value, prelude::*, vector::Real};
use strust_problems::{
    Activation, Classified, Classifier, Factorization, LeastSquares, Logistic, Mlp, Problem, Softmax, SubspaceFit,
    digits, images, read,
};

/// Time between two signs of life: steps take microseconds or seconds.
const TELL_EVERY: Duration = Duration::from_millis(50);

/// A job and everything around it.
pub(crate) struct Context<'a> {
    pub job: &'a Job,
    pub experiment: &'a Experiment,
    pub folder: PathBuf,
    /// Set by the user, and by a job that failed: stop and save.
    pub interrupt: [&'a AtomicBool; 2],
    pub save_every: Duration,
    /// Only see whether it can be set up.
    pub check: bool,
    /// Only look at the point of the last checkpoint, and leave here what it shows.
    pub examine: Option<(Effort, &'a mut Option<Examination>)>,
    pub progress: Box<dyn JobProgress + 'a>,
}

/// How often a classifier is right on its test set.
type Accuracy<F> = fn(&mut F, &<F as Objective>::Point) -> Option<f64>;

/// A problem as a job sees it. A problem without constraint has some type `C` too, and no value of it.
struct Setup<F: Objective, C> {
    f: F,
    constraint: Option<Box<dyn Fn(Retraction) -> C>>,
    /// For a classifier with a test set.
    accuracy: Option<Accuracy<F>>,
}

/// The metrics of a problem.
#[must_use]
pub fn metrics(kind: &str) -> Vec<Metric> {
    let metric = |key: &str, label: &str| Metric { key: key.into(), label: label.into(), log: key != "test_accuracy" };
    match kind {
        "mlp" | "cifar10" => vec![metric("train_loss", "training loss"), metric("test_accuracy", "test accuracy")],
        "subspace" => vec![
            metric("objective_gap", "objective gap f(W) − f*"),
            metric("constraint_norm", "constraint violation ‖WᵀW − I‖"),
        ],
        "least-squares" | "factorization" => vec![metric("objective_gap", "objective gap f(x) − f*")],
        _ => vec![metric("objective", "objective f(x)")],
    }
}

/// Runs the job from where it is to its end.
pub(crate) fn run(context: &mut Context) -> Result<(), Error> {
    let Job { problem, seed, .. } = context.job;
    let seed = *seed;
    if !context.check && context.examine.is_none() && is_done(&context.folder, context.job, context.experiment)? {
        context.progress.at(1, 1);
        return Ok(());
    }
    match problem.kind.as_str() {
        "subspace" => {
            let c: SubspaceConfig = config(context, &problem.parameters)?;
            let k = c.k as usize;
            let f = if c.data.is_empty() {
                check_size(c.d, c.n)?;
                check_size(c.d, c.k)?;
                SubspaceFit::<f64>::spiked(c.d as usize, k, c.n as usize, c.noise, seed)?
            } else {
                // One point a row in the file, one a column in the problem.
                SubspaceFit::from_data(&read::read_matrix(Path::new(&c.data))?.transpose().to_owned(), k)?
            };
            let stiefel = f.constraint();
            let constraint = move |retraction| stiefel.clone().with_retraction(retraction);
            on(context, Setup { f, constraint: Some(Box::new(constraint)), accuracy: None })
        }
        "least-squares" => {
            let c: LeastSquaresConfig = config(context, &problem.parameters)?;
            check_size(c.n, c.d)?;
            let (n, d) = (c.n as usize, c.d as usize);
            let f = match c.noise {
                0.0 => LeastSquares::<f64>::interpolating(n, d, seed)?,
                noise => LeastSquares::noisy(n, d, noise, seed)?,
            };
            on(context, unconstrained(f))
        }
        "logistic" => {
            let c: LogisticConfig = config(context, &problem.parameters)?;
            let f = if c.data.is_empty() {
                check_size(c.n, c.d)?;
                Logistic::separable(c.n as usize, c.d as usize, c.margin, seed)?
                    .with_regularization(c.regularization)?
            } else {
                let data = read::read_labeled(Path::new(&c.data))?;
                Logistic::new(data, c.regularization)?
            };
            on(context, unconstrained(f))
        }
        "softmax" => {
            let c: SoftmaxConfig = config(context, &problem.parameters)?;
            if c.data.is_empty() {
                return Err(strust::Error::OutOfRange {
                    owner: "softmax",
                    field: "data",
                    value: "empty".into(),
                    allowed: "a file".into(),
                }
                .into());
            }
            let data = read::read_labeled(Path::new(&c.data))?;
            on(context, unconstrained(Softmax::new(data, c.regularization)?))
        }
        "factorization" => {
            let c: FactorisationConfig = config(context, &problem.parameters)?;
            let width = c.width as usize;
            let f = if c.data.is_empty() {
                check_size(c.m, c.n)?;
                check_size(c.m + c.n, c.width)?;
                Factorization::exact(c.m as usize, c.n as usize, c.rank as usize, width, seed)?
            } else {
                Factorization::new(&read::read_matrix(Path::new(&c.data))?, width)?
            };
            on(context, unconstrained(f))
        }
        "mlp" => {
            let c: MlpConfig = config(context, &problem.parameters)?;
            let widths = c.widths().map_err(|why| broken(context, &why))?;
            match c.precision {
                Precision::F32 => on(context, classifier(mlp::<f32>(&c, &widths)?)),
                Precision::F64 => on(context, classifier(mlp::<f64>(&c, &widths)?)),
            }
        }
        "cifar10" => {
            let config: Cifar10Config = config(context, &problem.parameters)?;
            #[cfg(feature = "torch")]
            return on_network(context, &config);
            #[cfg(not(feature = "torch"))]
            return Err(Error::Network(format!("{}: {}", config.data, network::WITHOUT_TORCH)));
        }
        other => Err(broken(context, &format!("unknown problem `{other}`"))),
    }
}

/// Refuses synthetic data that no memory holds, before a machine is brought down by trying.
fn check_size(rows: u64, columns: u64) -> Result<(), Error> {
    const MOST: u64 = 1 << 31;
    if rows.saturating_mul(columns) <= MOST {
        return Ok(());
    }
    let value = format!("{rows} × {columns}");
    let allowed = format!("at most {MOST} numbers, 16 GiB");
    Err(strust::Error::OutOfRange { owner: "synthetic data", field: "size", value, allowed }.into())
}

/// Whether a job is done and all of what it wrote is still there.
pub(crate) fn is_done(folder: &Path, job: &Job, experiment: &Experiment) -> Result<bool, Error> {
    let Some((records, timings)) = checkpoint::done(&folder.join("checkpoint.bin"), job.checksum(experiment))? else {
        return Ok(false);
    };
    for (name, length) in [("records.jsonl", records), ("timings.jsonl", timings)] {
        let path = folder.join(name);
        let found = std::fs::metadata(&path).map_or(0, |data| data.len());
        if found != length {
            let why =
                format!("{found} bytes, but the checkpoint speaks of {length}: remove the job's folder and resume");
            return Err(Error::saved(&path, why));
        }
    }
    Ok(true)
}

fn unconstrained<F: Problem>(f: F) -> Setup<F, Sphere<F::Point>> {
    Setup { f, constraint: None, accuracy: None }
}

fn classifier<F: Classifier>(f: F) -> Setup<F, Sphere<F::Point>> {
    Setup { accuracy: Some(F::test_accuracy), ..unconstrained(f) }
}

fn mlp<T: Real>(c: &MlpConfig, widths: &[usize]) -> Result<Mlp<T>, Error> {
    let (train, test) = if c.data.is_empty() {
        digits::load()?
    } else if Path::new(&c.data).is_dir() {
        let set = images::mnist(Path::new(&c.data))?;
        let classes = set.classes.len();
        (set.train.classified(classes)?, set.test.classified(classes)?)
    } else {
        Classified::from_labeled(&read::read_labeled(Path::new(&c.data))?)?.split(0.2, 0)?
    };
    let activation = match c.activation {
        catalog::Activation::Relu => Activation::Relu,
        catalog::Activation::Tanh => Activation::Tanh,
    };
    Ok(Mlp::new(&train, Some(&test), widths, activation)?)
}

/// A plan holds checked settings; one that does not fit was edited or is of another version.
fn broken(context: &Context, why: &str) -> Error {
    Error::saved(&context.folder, format!("the plan does not fit this program: {why}"))
}

fn config<C: Config>(context: &Context, values: &crate::summary::Parameters) -> Result<C, Error> {
    catalog::config(values).map_err(|why| broken(context, &why))
}

/// On a GPU the methods that never look at a number stay there.
#[cfg(feature = "torch")]
fn on_network(context: &mut Context, settings: &Cifar10Config) -> Result<(), Error> {
    use strust_torch::{DeviceAdam, DeviceSgd, DeviceStr};
    let _stream = network::own_stream(settings)?;
    let problem = network::cifar10(settings)?;
    let values = &context.job.method.hyperparameters;
    let (batch, terms, launch) = (context.experiment.batch as usize, problem.terms(), network::launch(settings));
    match (problem.device().is_cuda(), context.job.method.name.as_str()) {
        (true, "str") => {
            let walk = Captured::<DeviceStr<f32>>::new(config(context, values)?, batch, terms, launch);
            drive(context, classifier(problem), walk)
        }
        (true, "sgd") => {
            let walk = Captured::<DeviceSgd<f32>>::new(config(context, values)?, batch, terms, launch);
            drive(context, classifier(problem), walk)
        }
        (true, "adam") => {
            let walk = Captured::<DeviceAdam<f32>>::new(config(context, values)?, batch, terms, launch);
            drive(context, classifier(problem), walk)
        }
        // A line search looks at every value, so it is made step by step.
        (true, "sls") => {
            let method = LineSearch::new(config(context, values)?)?;
            let walk = StepByStep::on(method, problem.device());
            drive(context, classifier(problem), walk)
        }
        _ => on(context, classifier(problem)),
    }
}

fn on<F, C>(context: &mut Context, setup: Setup<F, C>) -> Result<(), Error>
where
    F: Problem,
    C: Manifold<Point = F::Point>,
{
    let values = &context.job.method.hyperparameters;
    let constraint = |retraction| {
        setup.constraint.as_ref().map(|make| make(retraction)).ok_or_else(|| broken(context, "no constraint here"))
    };
    match context.job.method.name.as_str() {
        "str" => {
            let method = Str::new(config(context, values)?)?;
            drive(context, setup, StepByStep::new(method))
        }
        "sgd" => {
            let method = Sgd::new(config(context, values)?)?;
            drive(context, setup, StepByStep::new(method))
        }
        "adam" => {
            let method = Adam::new(config(context, values)?)?;
            drive(context, setup, StepByStep::new(method))
        }
        "sls" => {
            let method = LineSearch::new(config(context, values)?)?;
            drive(context, setup, StepByStep::new(method))
        }
        "str-p" => {
            let method = StrP::new(config(context, values)?, constraint(Retraction::Qr)?)?;
            drive(context, setup, StepByStep::new(method))
        }
        "sgd-proj" => {
            let method = ProjectedSgd::new(config(context, values)?, constraint(Retraction::Qr)?)?;
            drive(context, setup, StepByStep::new(method))
        }
        "riemannian" => {
            let config: RiemannianConfig = config(context, values)?;
            let manifold = constraint(config.retraction)?;
            drive(context, setup, StepByStep::new(Riemannian::new(config, manifold)?))
        }
        "auglag" => {
            let method = AugLag::new(config(context, values)?, constraint(Retraction::Qr)?)?;
            drive(context, setup, StepByStep::new(method))
        }
        other => Err(broken(context, &format!("unknown method `{other}`"))),
    }
}

/// The loop: step, record, measure at the end of an epoch, save now and then.
fn drive<F, C, W>(context: &mut Context, setup: Setup<F, C>, mut walk: W) -> Result<(), Error>
where
    F: Problem,
    C: Manifold<Point = F::Point>,
    W: Walk<F>,
{
    let Setup { mut f, constraint, accuracy } = setup;
    if let Some((effort, found)) = context.examine.take() {
        *found = diagnose::look(context, effort, f, constraint.map(|make| make(Retraction::Qr)), walk)?;
        return Ok(());
    }
    let mut measure =
        Measure::new(&f, &context.job.problem.kind, constraint.map(|make| make(Retraction::Qr)), accuracy);
    let Context { job, experiment, folder, interrupt, save_every, check, progress, .. } = context;
    let mut sampler = sampler(experiment, f.terms(), job.seed)?;
    let epoch_steps = sampler.steps_per_epoch();
    let last_step = job.epochs * epoch_steps;

    if *check {
        let start = f.start(job.seed);
        return walk.start(&mut f, start);
    }
    files::make_folder(folder)?;
    let id = job.checksum(experiment);
    let checkpoint_path = folder.join("checkpoint.bin");
    let saved = Checkpoint::<W::State>::load(&checkpoint_path, id)?;
    let fresh = saved.is_none();
    let (mut totals, mut logs) = if let Some(saved) = saved {
        f.restore_extra_state(&saved.extra_state).map_err(|e| Error::saved(&checkpoint_path, e.to_string()))?;
        walk.resume(&mut f, saved.state)?;
        (saved.totals, Logs::open(folder, saved.records, saved.timings)?)
    } else {
        let start = f.start(job.seed);
        walk.start(&mut f, start)?;
        (Totals::default(), Logs::open(folder, 0, 0)?)
    };
    let mut write_epoch = |logs: &mut Logs, f: &mut F, walk: &mut W, totals: &mut Totals| {
        let state = walk.state(f);
        let (steps, epoch) = (state.steps(), state.steps() / epoch_steps);
        let metrics = measure.at(f, state.point(), totals.evaluations);
        if let Some(bad) = metrics.values().find(|v| !v.is_finite()) {
            return Err(Error::Method(strust::Error::NonFiniteValue { step: steps, value: *bad }));
        }
        logs.record(&Line::Epoch(EpochRecord {
            epoch,
            steps,
            accepted: totals.accepted,
            evaluations: totals.evaluations,
            trust_region: std::mem::take(&mut totals.epoch).numbers(),
            metrics,
        }))?;
        logs.timing(&Timing { epoch, seconds: totals.seconds })
    };
    if fresh {
        write_epoch(&mut logs, &mut f, &mut walk, &mut totals)?;
    }
    let mut k = walk.state(&mut f).steps();
    let mut records = Vec::new();
    let stopped = || interrupt.iter().any(|flag| flag.load(Ordering::Relaxed));
    let (mut saved_at, mut told_at) = (Instant::now(), Instant::now());
    loop {
        let (done, stop) = (k >= last_step, stopped());
        if done || stop || saved_at.elapsed() > *save_every {
            let (records, timings) = logs.sync()?;
            let version = env!("CARGO_PKG_VERSION").into();
            let (extra_state, state) = (f.extra_state(), walk.state(&mut f));
            Checkpoint { version, job: id, records, timings, totals, done, extra_state, state }
                .save(&checkpoint_path)?;
            saved_at = Instant::now();
        }
        if done || told_at.elapsed() > TELL_EVERY {
            progress.at(k, last_step);
            told_at = Instant::now();
        }
        if done {
            return Ok(());
        }
        if stop {
            return Err(Error::Interrupted);
        }

        let began = Instant::now();
        let mut go_on = |made: u64| {
            if told_at.elapsed() > TELL_EVERY {
                progress.at(k + made, last_step);
                told_at = Instant::now();
            }
            !stopped() && saved_at.elapsed() <= *save_every
        };
        let outcome = walk.advance(&mut f, &mut *sampler, epoch_steps - k % epoch_steps, &mut go_on, &mut records);
        totals.seconds += began.elapsed().as_secs_f64();
        for record in records.drain(..) {
            k += 1;
            totals.evaluations += record.evaluations;
            totals.accepted += u64::from(record.verdict == Verdict::Accepted);
            totals.epoch.add(&record);
            if experiment.records == Records::Steps {
                logs.record(&Line::Step(record))?;
            }
        }
        outcome?;
        if k.is_multiple_of(epoch_steps) {
            write_epoch(&mut logs, &mut f, &mut walk, &mut totals)?;
        }
    }
}

fn sampler(experiment: &Experiment, terms: usize, seed: u64) -> Result<Box<dyn Sampler>, Error> {
    let batch = experiment.batch as usize;
    if experiment.sampling == Sampling::Epochs && batch > terms {
        let allowed = format!("at most {terms}, the number of terms: set `batch` in the experiment");
        return Err(strust::Error::OutOfRange {
            owner: "mini-batches",
            field: "batch",
            value: batch.to_string(),
            allowed,
        }
        .into());
    }
    Ok(match experiment.sampling {
        Sampling::Epochs => Box::new(Epochs::new(terms, batch, seed)?),
        Sampling::Replacement => Box::new(WithReplacement::new(terms, batch, seed)?),
    })
}

/// Measures a point on the full sum, outside of every budget and clock.
struct Measure<F: Objective, C: Constraint> {
    kind: String,
    optimum: Option<f64>,
    constraint: Option<(C, C::Residual)>,
    accuracy: Option<Accuracy<F>>,
}

impl<F: Problem, C: Constraint<Point = F::Point>> Measure<F, C> {
    fn new(f: &F, kind: &str, constraint: Option<C>, accuracy: Option<Accuracy<F>>) -> Self {
        let constraint = constraint.map(|c| {
            let residual = c.new_residual();
            (c, residual)
        });
        Self { kind: kind.into(), optimum: f.optimum(), constraint, accuracy }
    }

    fn at(&mut self, f: &mut F, x: &F::Point, evaluations: Evaluations) -> BTreeMap<String, f64> {
        let value = full_value(f, x);
        let mut numbers = BTreeMap::new();
        for metric in metrics(&self.kind) {
            let number = match metric.key.as_str() {
                "objective_gap" => value - self.optimum.unwrap_or(f64::NAN),
                "constraint_norm" => self.constraint.as_mut().map_or(f64::NAN, |(c, residual)| {
                    c.residual(x, residual);
                    residual.norm()
                }),
                "test_accuracy" => self.accuracy.and_then(|accuracy| accuracy(f, x)).unwrap_or(f64::NAN),
                _ => value,
            };
            numbers.insert(metric.key, number);
        }
        if self.accuracy.is_some() {
            // What a network is charged by: a value is a forward pass, a gradient a forward and a backward pass.
            numbers.insert("forwards".into(), (evaluations.values + evaluations.gradients) as f64);
            numbers.insert("backwards".into(), evaluations.gradients as f64);
        }
        numbers
    }
}

/// `records.jsonl`, which depends on the seed alone, and `timings.jsonl`, which does not.
struct Logs {
    records: Log,
    timings: Log,
}

impl Logs {
    fn open(folder: &Path, records: u64, timings: u64) -> Result<Self, Error> {
        Ok(Self {
            records: Log::open(folder.join("records.jsonl"), records)?,
            timings: Log::open(folder.join("timings.jsonl"), timings)?,
        })
    }
    fn record(&mut self, line: &Line) -> Result<(), Error> {
        self.records.line(line)
    }
    fn timing(&mut self, timing: &Timing) -> Result<(), Error> {
        self.timings.line(timing)
    }
    /// Both on the disk, and their lengths: only then may a checkpoint speak of them.
    fn sync(&mut self) -> Result<(u64, u64), Error> {
        Ok((self.records.sync()?, self.timings.sync()?))
    }
}

struct Log {
    path: PathBuf,
    file: BufWriter<File>,
    length: u64,
}

impl Log {
    /// Opens the log cut back to `length`: what a killed run wrote after its last checkpoint is written again.
    fn open(path: PathBuf, length: u64) -> Result<Self, Error> {
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(Error::io("write", &path))?;
        let found = file.metadata().map_err(Error::io("read", &path))?.len();
        if found < length {
            let why =
                format!("{found} bytes, but the checkpoint speaks of {length}: remove the job's folder and resume");
            return Err(Error::saved(&path, why));
        }
        file.set_len(length).map_err(Error::io("write", &path))?;
        file.seek(SeekFrom::End(0)).map_err(Error::io("write", &path))?;
        Ok(Self { path, file: BufWriter::with_capacity(1 << 16, file), length })
    }
    fn line(&mut self, value: &impl Serialize) -> Result<(), Error> {
        let mut line = serde_json::to_vec(value).map_err(|e| Error::saved(&self.path, e.to_string()))?;
        line.push(b'\n');
        self.length += line.len() as u64;
        self.file.write_all(&line).map_err(Error::io("write", &self.path))
    }
    fn sync(&mut self) -> Result<u64, Error> {
        self.file.flush().and_then(|()| self.file.get_ref().sync_data()).map_err(Error::io("write", &self.path))?;
        Ok(self.length)
    }
}
