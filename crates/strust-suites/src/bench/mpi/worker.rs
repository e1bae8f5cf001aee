//! A process that measures what it is asked, alone or as one of the ranks of MPI.

use serde::{Deserialize, Serialize};
use std::{
    fmt::Display,
    io::{BufRead, Write},
    time::{Duration, Instant},
};
use strust::{
    objective::Consensus,
    prelude::*,
    ranks::{Delayed, Group, Sharded, Traffic},
    samplers::Sampler,
    saved::fingerprint,
};
use strust_problems::{Activation, Mlp, Problem, SubspaceFit, digits};

/// What the parent asks for.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
pub enum RankRequest {
    /// Steps of a method.
    Steps(TimedSteps),
    /// Sums of numbers.
    Sums { numbers: usize, times: u64 },
}

/// Steps of a method.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
pub struct TimedSteps {
    pub workload: Workload,
    /// Steps to time, after one that is not timed.
    pub steps: u64,
    /// Seconds to wait before each collective.
    pub delay: f64,
    /// Sum the gradient in slices, where the problem allows it.
    pub slices: bool,
    /// Pretend to be one of so many ranks, and send nothing; see [`Mirrored`].
    pub mirrored: Option<usize>,
}

/// A problem with its method and batch.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Workload {
    /// STR-P on subspace fitting, `f64`.
    Subspace { d: usize, k: usize, batch: usize },
    /// STR on the digits with a network of equal hidden layers, `f32`.
    Mlp { layers: usize, width: usize, batch: usize },
}

impl Display for Workload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Subspace { d, k, batch } => write!(f, "subspace {d} × {k}, batch {batch}"),
            Self::Mlp { layers: 1, width, batch } => write!(f, "digits, {width} hidden units, batch {batch}"),
            Self::Mlp { layers, width, batch } => write!(f, "digits, {layers} × {width} hidden units, batch {batch}"),
        }
    }
}

impl Workload {
    /// A short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Subspace { .. } => "subspace",
            Self::Mlp { .. } => "digits",
        }
    }
    /// Terms of a step.
    pub fn batch(self) -> usize {
        match self {
            Self::Subspace { batch, .. } | Self::Mlp { batch, .. } => batch,
        }
    }
}

#[derive(Serialize, Deserialize, Clone, Copy, Debug)]
pub struct RankAnswer {
    /// Seconds of a step or of a sum.
    pub seconds: f64,
    /// Components of x, or numbers of a sum.
    pub dimension: usize,
    /// The collectives of the timed steps, and the numbers given to them.
    pub collectives: u64,
    pub numbers: u64,
    /// What the formula in docs/guides/cluster.md states for these steps.
    pub expected_collectives: u64,
    pub expected_numbers: u64,
}

/// Answers the requests on standard input, one line each, until it ends. Rank 0 reads and writes for all ranks; without
/// a group the objective is evaluated as it is.
pub fn serve(mut group: Option<&mut dyn Group>) -> Result<(), String> {
    let mut problems = Problems::default();
    let reads = group.as_ref().is_none_or(|group| group.rank() == 0);
    loop {
        let mut line = String::new();
        if reads {
            std::io::stdin().lock().read_line(&mut line).map_err(|e| format!("cannot read a request: {e}"))?;
        }
        let mut bytes = line.into_bytes();
        if let Some(group) = &mut group {
            group.broadcast(&mut bytes).map_err(|e| e.to_string())?;
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let request = serde_json::from_slice(&bytes).map_err(|e| format!("not a request: {e}"))?;
        let group = group.as_mut().map(|group| &mut **group as &mut dyn Group);
        let answer = answer(request, &mut problems, group).map_err(|e| e.to_string())?;
        if reads {
            let text = serde_json::to_string(&answer).map_err(|e| e.to_string())?;
            let mut out = std::io::stdout().lock();
            out.write_all((text + "\n").as_bytes()).and_then(|()| out.flush()).map_err(|e| e.to_string())?;
        }
    }
}

/// A group of `size` ranks that all give the same numbers, without the others: the sum is `size` times those of this rank.
/// A step with it is the work of one rank without its messages.
struct Mirrored {
    size: usize,
}

impl Group for Mirrored {
    fn rank(&self) -> usize {
        0
    }
    fn size(&self) -> usize {
        self.size
    }
    fn sum(&mut self, numbers: &mut [f64]) -> Result<(), strust::Error> {
        for v in numbers {
            *v *= self.size as f64;
        }
        Ok(())
    }
    fn gather(&mut self, numbers: &[f64], all: &mut Vec<f64>) -> Result<(), strust::Error> {
        *all = numbers.repeat(self.size);
        Ok(())
    }
    fn broadcast(&mut self, _bytes: &mut Vec<u8>) -> Result<(), strust::Error> {
        Ok(())
    }
}

/// The problems so far: it takes seconds to make one.
#[derive(Default)]
struct Problems {
    subspace: Option<(Workload, SubspaceFit<f64>)>,
    mlp: Option<(Workload, Mlp<f32>)>,
}

fn answer(
    request: RankRequest,
    problems: &mut Problems,
    group: Option<&mut dyn Group>,
) -> Result<RankAnswer, Box<dyn std::error::Error>> {
    match (request, group) {
        (RankRequest::Sums { numbers, times }, Some(group)) => Ok(sums(group, numbers, times)?),
        (RankRequest::Sums { .. }, None) => Err("sums need a group".into()),
        (RankRequest::Steps(turn), group) => {
            if let Some(size) = turn.mirrored {
                return problems.steps(turn, Some(&mut Mirrored { size }));
            }
            let mut delayed = group.map(|group| Delayed::new(group, Duration::from_secs_f64(turn.delay)));
            problems.steps(turn, delayed.as_mut().map(|group| group as &mut dyn Group))
        }
    }
}

impl Problems {
    fn steps(
        &mut self,
        turn: TimedSteps,
        group: Option<&mut dyn Group>,
    ) -> Result<RankAnswer, Box<dyn std::error::Error>> {
        let workload = turn.workload;
        match workload {
            Workload::Subspace { d, k, batch } => {
                let f = match self.subspace.take() {
                    Some((same, f)) if same == workload => f,
                    _ => SubspaceFit::spiked(d, k, batch, 0.1, 0)?,
                };
                let (_, f) = self.subspace.insert((workload, f));
                let (start, mut method) = (f.start(0), StrP::new(StrPConfig::default(), f.constraint())?);
                Ok(turn.shared(f, &mut method, start, group)?)
            }
            Workload::Mlp { layers, width, .. } => {
                let f = match self.mlp.take() {
                    Some((same, f)) if same == workload => f,
                    _ => Mlp::new(&digits::load()?.0, None, &vec![width; layers], Activation::Relu)?,
                };
                let (_, f) = self.mlp.insert((workload, f));
                let start = f.start(0);
                Ok(turn.shared(f, &mut Str::default(), start, group)?)
            }
        }
    }
}

impl TimedSteps {
    /// Steps with the samples shared out; without a group, on the objective as it is.
    fn shared<F: Objective, M>(
        self,
        f: &mut F,
        method: &mut M,
        start: F::Point,
        group: Option<&mut dyn Group>,
    ) -> Result<RankAnswer, strust::Error>
    where
        M: for<'a> Method<&'a mut F> + for<'a, 'b> Method<Sharded<&'a mut F, &'b mut dyn Group>>,
    {
        let Some(group) = group else { return self.time(&mut &mut *f, method, start, |_| Traffic::default()) };
        let whole = Sharded::new(f, group);
        let mut f = if self.slices { whole } else { whole.slices_of(usize::MAX) };
        self.time(&mut f, method, start, Sharded::traffic)
    }

    /// Makes one step, then times the steps as `minimize` makes them.
    fn time<F: Objective, M: Method<F>>(
        self,
        f: &mut F,
        method: &mut M,
        start: F::Point,
        traffic: impl Fn(&F) -> Traffic,
    ) -> Result<RankAnswer, strust::Error> {
        let dimension = start.dimension() as u64;
        let mut sampler = Epochs::new(f.terms(), self.workload.batch(), 0)?;
        let mut state = method.init(f, start)?;
        let mut sample = Sample::default();
        let (mut began, mut before, mut expected) = (Instant::now(), Traffic::default(), Traffic::default());
        for k in 0..=self.steps {
            if k == 1 {
                (began, before, expected) = (Instant::now(), traffic(f), Traffic::default());
            }
            sampler.draw(k, &mut sample);
            let record = method.step(f, &mut state, &sample)?;
            let hash = || fingerprint(&state);
            if let Some(peers) = f.peers() {
                peers.agree(&mut Consensus {
                    steps: k + 1,
                    elapsed: began.elapsed(),
                    stop: false,
                    fingerprint: &hash,
                })?;
            }
            let (gradients, values) = (record.evaluations.gradients, record.evaluations.values);
            let compares = u64::from(k % 64 == 0);
            expected.collectives += gradients + values + 1 + compares;
            expected.numbers += gradients * (dimension + 4) + values * 4 + 2 + 2 * compares;
        }
        let seconds = began.elapsed().as_secs_f64() / self.steps as f64;
        let after = traffic(f);
        Ok(RankAnswer {
            seconds,
            dimension: dimension as usize,
            collectives: after.collectives - before.collectives,
            numbers: after.numbers - before.numbers,
            expected_collectives: expected.collectives,
            expected_numbers: expected.numbers,
        })
    }
}

fn sums(group: &mut dyn Group, numbers: usize, times: u64) -> Result<RankAnswer, strust::Error> {
    let mut x = vec![1e-300; numbers];
    // All ranks are here after the first sum.
    group.sum(&mut x)?;
    let began = Instant::now();
    for _ in 0..times {
        group.sum(&mut x)?;
    }
    let seconds = began.elapsed().as_secs_f64() / times as f64;
    let (collectives, all) = (times, times * numbers as u64);
    Ok(RankAnswer {
        seconds,
        dimension: numbers,
        collectives,
        numbers: all,
        expected_collectives: collectives,
        expected_numbers: all,
    })
}
