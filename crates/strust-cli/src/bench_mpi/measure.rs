//! What `strust bench mpi` measures: speed, overhead, sums, traffic, and the inputs of the model.

use super::{
    launch::Launched,
    worker::{Answer, Request, Workload},
};
use crate::{
    CommandFailure,
    scaling::{Link, Machines, Scaling, StepCosts, fit_line, step},
    show::Activity,
};
use serde::Serialize;

/// How much to measure.
pub struct Effort {
    /// The workloads, each with the steps of a turn.
    pub workloads: [(Workload, u64); 2],
    /// A network of several large layers, whose gradient is summed in slices.
    pub deep: (Workload, u64),
    /// Everything that is compared takes turns, in so many rounds.
    pub rounds: usize,
    /// The longest sum, in numbers.
    pub longest: usize,
}

impl Effort {
    pub fn new(quick: bool) -> Self {
        if quick {
            let subspace = Workload::Subspace { d: 500, k: 5, batch: 256 };
            let workloads = [(subspace, 5), (Workload::Mlp { layers: 1, width: 64, batch: 256 }, 20)];
            let deep = (Workload::Mlp { layers: 2, width: 400, batch: 64 }, 2);
            return Self { workloads, deep, rounds: 2, longest: 10_000 };
        }
        let subspace = Workload::Subspace { d: 20_000, k: 50, batch: 4096 };
        let workloads = [(subspace, 2), (Workload::Mlp { layers: 1, width: 1024, batch: 1024 }, 60)];
        let deep = (Workload::Mlp { layers: 2, width: 1024, batch: 1024 }, 4);
        Self { workloads, deep, rounds: 5, longest: 1_000_000 }
    }
}

/// A workload without MPI, and on one and two ranks.
#[derive(Serialize)]
pub struct Speed {
    pub workload: Workload,
    pub dimension: usize,
    /// The shortest seconds of a step without MPI, on one rank and on two.
    pub seconds: [f64; 3],
    /// The median over the rounds of the speed of two ranks over that of one.
    pub speedup: f64,
    /// The median over the rounds of the time of one rank over that without MPI, less 1.
    pub overhead: f64,
    /// Collectives of a step of two ranks, and the numbers given to them, as counted and by the formula.
    pub collectives: f64,
    pub numbers: f64,
    pub expected_collectives: f64,
    pub expected_numbers: f64,
}

/// The sums of so many ranks on this machine.
#[derive(Serialize)]
pub struct Sums {
    pub ranks: usize,
    /// Bytes, and the shortest seconds.
    pub times: Vec<(f64, f64)>,
    /// α + β·bytes. For two ranks this is the link of the model.
    pub fitted: Link,
}

/// A run beside its prediction.
#[derive(Serialize)]
pub struct Check {
    pub workload: Workload,
    pub ranks: usize,
    /// Seconds added to each collective.
    pub delay: f64,
    pub predicted: f64,
    pub measured: f64,
}

/// Steps of two ranks with the gradient in one sum and in slices.
#[derive(Serialize)]
pub struct Overlap {
    pub workload: Workload,
    /// Seconds added to each collective.
    pub delay: f64,
    /// Seconds of a step with one sum.
    pub whole: f64,
    /// Seconds with slices.
    pub slices: f64,
}

#[derive(Serialize)]
pub struct Measured {
    pub cores: usize,
    pub speeds: Vec<Speed>,
    pub sums: Vec<Sums>,
    /// The costs of a step of each workload, for the model.
    pub costs: Vec<StepCosts>,
    pub checks: Vec<Check>,
    pub overlaps: Vec<Overlap>,
}

fn steps(workload: Workload, steps: u64) -> Request {
    Request::Steps { workload, steps, delay: 0.0, slices: false, mirrored: None }
}

/// The median; of an even number, the larger of the two in the middle.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Without MPI, on one rank and on two: they take turns, and each round begins with another one.
fn speed(
    three: &mut [Launched; 3],
    (workload, count): (Workload, u64),
    rounds: usize,
    progress: &Activity,
) -> Result<Speed, CommandFailure> {
    progress.say(format!("{workload}: preparing"));
    for launched in &mut *three {
        launched.ask(&steps(workload, 1))?;
    }
    let (mut seconds, mut all) = ([f64::INFINITY; 3], Vec::new());
    let mut last = None;
    for round in 0..rounds {
        progress.say(format!("{workload}: round {} of {rounds}", round + 1));
        let mut turn = [0.0; 3];
        for place in 0..3 {
            let i = (round + place) % 3;
            let answer = three[i].ask(&steps(workload, count))?;
            turn[i] = answer.seconds;
            seconds[i] = seconds[i].min(answer.seconds);
            last = if i == 2 { Some(answer) } else { last };
        }
        all.push(turn);
    }
    let Answer { dimension, collectives, numbers, expected_collectives, expected_numbers, .. } =
        last.ok_or_else(|| CommandFailure::Failed("no round was made".into()))?;
    let each = |total: u64| total as f64 / count as f64;
    Ok(Speed {
        workload,
        dimension,
        seconds,
        speedup: median(all.iter().map(|turn| turn[1] / turn[2]).collect()),
        overhead: median(all.iter().map(|turn| turn[1] / turn[0]).collect()) - 1.0,
        collectives: each(collectives),
        numbers: each(numbers),
        expected_collectives: each(expected_collectives),
        expected_numbers: each(expected_numbers),
    })
}

/// Sums of 1 number up to the longest, ten times as many each time.
fn sums(ranks: usize, launched: &mut Launched, effort: &Effort) -> Result<Sums, CommandFailure> {
    let sizes: Vec<usize> =
        std::iter::successors(Some(1), |n| Some(10 * n)).take_while(|&n| n <= effort.longest).collect();
    let mut times: Vec<(f64, f64)> = sizes.iter().map(|&n| (8.0 * n as f64, f64::INFINITY)).collect();
    for _ in 0..effort.rounds {
        for (&numbers, (_, least)) in sizes.iter().zip(&mut times) {
            let request = Request::Sums { numbers, times: (1_000_000 / (numbers as u64 + 1000)).max(5) };
            *least = least.min(launched.ask(&request)?.seconds);
        }
    }
    Ok(Sums { ranks, fitted: Link::fit(&times), times })
}

/// Parts of a batch for which the work of one rank is measured.
const SHARES: [usize; 4] = [2, 8, 32, 128];

/// The work of a rank as a function of its terms, measured in a process without MPI.
fn costs(alone: &mut Launched, speed: &Speed, count: u64, rounds: usize) -> Result<StepCosts, CommandFailure> {
    let (workload, terms) = (speed.workload, speed.workload.batch());
    let shares = SHARES.map(|ranks| (ranks, f64::INFINITY));
    let mut shares: Vec<(usize, f64)> = shares.into_iter().filter(|&(ranks, _)| ranks <= terms).collect();
    for _ in 0..rounds {
        for (ranks, least) in &mut shares {
            let request = Request::Steps { workload, steps: count, delay: 0.0, slices: false, mirrored: Some(*ranks) };
            *least = least.min(alone.ask(&request)?.seconds);
        }
    }
    let mut points: Vec<(f64, f64)> = shares.iter().map(|&(ranks, t)| ((terms / ranks) as f64, t)).collect();
    points.push((terms as f64, speed.seconds[0]));
    let (fixed, per_term) = fit_line(&points);
    Ok(StepCosts { per_term, fixed, terms, sums: StepCosts::sums_of_a_step(speed.dimension), overlap: 0.0 })
}

/// Seconds by which collectives are delayed to check the model.
const DELAYS: [f64; 3] = [0.0, 0.002, 0.01];

/// Runs with so many ranks and with these delays, beside the model.
fn check(
    launched: &mut Launched,
    ranks: usize,
    (workload, count): (Workload, u64),
    costs: &StepCosts,
    machines: &Machines,
    delays: &[f64],
    rounds: usize,
) -> Result<Vec<Check>, CommandFailure> {
    let mut checks: Vec<Check> = delays
        .iter()
        .map(|&delay| {
            let predicted = step(costs, &Machines { delay, ..*machines }, Scaling::Strong, ranks).total();
            Check { workload, ranks, delay, predicted, measured: f64::INFINITY }
        })
        .collect();
    for _ in 0..rounds {
        for check in &mut checks {
            let request = Request::Steps { workload, steps: count, delay: check.delay, slices: false, mirrored: None };
            check.measured = check.measured.min(launched.ask(&request)?.seconds);
        }
    }
    Ok(checks)
}

/// The gradient in one sum and in slices, on two ranks, with delays.
fn overlaps(
    two: &mut Launched,
    (workload, count): (Workload, u64),
    rounds: usize,
) -> Result<Vec<Overlap>, CommandFailure> {
    let mut found = DELAYS.map(|delay| Overlap { workload, delay, whole: f64::INFINITY, slices: f64::INFINITY });
    for _ in 0..rounds {
        for overlap in &mut found {
            for (slices, least) in [(false, &mut overlap.whole), (true, &mut overlap.slices)] {
                let request = Request::Steps { workload, steps: count, delay: overlap.delay, slices, mirrored: None };
                *least = least.min(two.ask(&request)?.seconds);
            }
        }
    }
    Ok(found.into())
}

/// Everything, on this machine.
pub fn measure(effort: &Effort, progress: &Activity) -> Result<Measured, CommandFailure> {
    let cores = strust_lab::cores();
    let mut three = [Launched::alone()?, Launched::ranks(1)?, Launched::ranks(2)?];
    let mut speeds = Vec::new();
    for workload in effort.workloads {
        speeds.push(speed(&mut three, workload, effort.rounds, progress)?);
    }
    let [mut alone, one, mut two] = three;
    drop(one);
    let mut four = Launched::ranks(4)?;
    progress.say("sums of two and four ranks".into());
    let sums = vec![sums(2, &mut two, effort)?, sums(4, &mut four, effort)?];
    let link = sums[0].fitted;
    let machines = Machines { within: link, between: link, ranks_per_machine: usize::MAX, cores, delay: 0.0 };
    let (mut all_costs, mut checks) = (Vec::new(), Vec::new());
    for (speed, (workload, count)) in speeds.iter().zip(effort.workloads) {
        progress.say(format!("{workload}: the model"));
        let costs = costs(&mut alone, speed, count, effort.rounds)?;
        let predicted = step(&costs, &machines, Scaling::Strong, 1).total();
        checks.push(Check { workload, ranks: 1, delay: 0.0, predicted, measured: speed.seconds[1] });
        // A delay would be lost beside a step of seconds.
        let delays = if speed.seconds[0] > 0.5 { &DELAYS[..1] } else { &DELAYS };
        for (ranks, launched) in [(2, &mut two), (4, &mut four)] {
            checks.extend(check(launched, ranks, (workload, count), &costs, &machines, delays, effort.rounds)?);
        }
        all_costs.push(costs);
    }
    progress.say(format!("{}: in slices", effort.deep.0));
    let overlaps = overlaps(&mut two, effort.deep, effort.rounds)?;
    Ok(Measured { cores, speeds, sums, costs: all_costs, checks, overlaps })
}
