//! What `strust bench mpi` measures: speed, overhead, sums, traffic, and the inputs of the model.

use super::{
    launch::Launched,
    worker::{RankAnswer, RankRequest, TimedSteps, Workload},
};
use crate::bench::{
    BenchProgress,
    scaling::{Growth, Link, Machines, StepCosts, fit_line, step},
};
use serde::Serialize;
use strust_lab::{Error, statistics::upper_median};

/// What is compared takes turns of so many steps, in so many rounds. Short turns find the moments in which no other program
/// needs the cores.
#[derive(Clone, Copy)]
pub struct Turns {
    turn: TimedSteps,
    rounds: usize,
}

/// How much to measure.
pub struct RanksEffort {
    pub workloads: [Turns; 2],
    /// A network of several large layers, whose gradient is summed in slices.
    pub deep: Turns,
    /// Rounds of the sums.
    pub rounds: usize,
    /// The longest sum, in numbers.
    pub longest: usize,
}

impl RanksEffort {
    pub fn new(quick: bool) -> Self {
        let turns = |workload, steps, rounds| Turns {
            turn: TimedSteps { workload, steps, delay: 0.0, slices: false, mirrored: None },
            rounds,
        };
        let subspace = |d, k, batch| Workload::Subspace { d, k, batch };
        let digits = |layers, width, batch| Workload::Mlp { layers, width, batch };
        if quick {
            let workloads = [turns(subspace(500, 5, 256), 5, 2), turns(digits(1, 64, 256), 20, 2)];
            return Self { workloads, deep: turns(digits(2, 400, 64), 2, 2), rounds: 2, longest: 10_000 };
        }
        let workloads = [turns(subspace(20_000, 50, 4096), 1, 5), turns(digits(1, 1024, 1024), 20, 41)];
        Self { workloads, deep: turns(digits(2, 1024, 1024), 2, 7), rounds: 11, longest: 1_000_000 }
    }
}

/// A workload without MPI, and on one and two ranks.
#[derive(Serialize)]
pub struct RankSpeed {
    pub workload: Workload,
    pub dimension: usize,
    /// The shortest seconds of a step without MPI, on one rank and on two.
    pub seconds: [f64; 3],
    /// The median over the rounds of the speed of two ranks over that of one.
    pub speedup: f64,
    /// The same of the shortest times.
    pub best_speedup: f64,
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
pub struct ModelCheck {
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
pub struct RanksMeasured {
    pub cores: usize,
    pub speeds: Vec<RankSpeed>,
    pub sums: Vec<Sums>,
    /// The costs of a step of each workload, for the model.
    pub costs: Vec<StepCosts>,
    pub checks: Vec<ModelCheck>,
    pub overlaps: Vec<Overlap>,
}

/// Without MPI, on one rank and on two: they take turns, and each round begins with another one.
fn speed(three: &mut [Launched; 3], turns: Turns, progress: &dyn BenchProgress) -> Result<RankSpeed, Error> {
    let Turns { turn: request, rounds } = turns;
    let workload = request.workload;
    progress.say(format!("{workload}: preparing"));
    for launched in &mut *three {
        launched.ask(&RankRequest::Steps(TimedSteps { steps: 1, ..request }))?;
    }
    let (mut seconds, mut all) = ([f64::INFINITY; 3], Vec::new());
    let mut last = None;
    for round in 0..rounds {
        progress.say(format!("{workload}: round {} of {rounds}", round + 1));
        let mut turn = [0.0; 3];
        for place in 0..3 {
            let i = (round + place) % 3;
            let answer = three[i].ask(&RankRequest::Steps(request))?;
            turn[i] = answer.seconds;
            seconds[i] = seconds[i].min(answer.seconds);
            last = if i == 2 { Some(answer) } else { last };
        }
        all.push(turn);
    }
    let RankAnswer { dimension, collectives, numbers, expected_collectives, expected_numbers, .. } =
        last.ok_or_else(|| Error::Ranks("no round was made".into()))?;
    let each = |total: u64| total as f64 / request.steps as f64;
    let median = |ratio: fn(&[f64; 3]) -> f64| upper_median(&all.iter().map(ratio).collect::<Vec<_>>());
    Ok(RankSpeed {
        workload,
        dimension,
        seconds,
        speedup: median(|turn| turn[1] / turn[2]),
        best_speedup: seconds[1] / seconds[2],
        overhead: median(|turn| turn[1] / turn[0]) - 1.0,
        collectives: each(collectives),
        numbers: each(numbers),
        expected_collectives: each(expected_collectives),
        expected_numbers: each(expected_numbers),
    })
}

/// Sums of 1 number up to the longest, ten times as many each time.
fn sums(ranks: usize, launched: &mut Launched, effort: &RanksEffort) -> Result<Sums, Error> {
    let sizes: Vec<usize> =
        std::iter::successors(Some(1), |n| Some(10 * n)).take_while(|&n| n <= effort.longest).collect();
    let mut times: Vec<(f64, f64)> = sizes.iter().map(|&n| (8.0 * n as f64, f64::INFINITY)).collect();
    for _ in 0..effort.rounds {
        for (&numbers, (_, least)) in sizes.iter().zip(&mut times) {
            let request = RankRequest::Sums { numbers, times: (1_000_000 / (numbers as u64 + 1000)).max(5) };
            *least = least.min(launched.ask(&request)?.seconds);
        }
    }
    Ok(Sums { ranks, fitted: Link::fit(&times), times })
}

/// StepParts of a batch for which the work of one rank is measured.
const SHARES: [usize; 4] = [2, 8, 32, 128];

/// The work of a rank as a function of its terms, measured in a process without MPI.
fn costs(alone: &mut Launched, speed: &RankSpeed, turns: Turns) -> Result<StepCosts, Error> {
    let (Turns { turn, rounds }, terms) = (turns, turns.turn.workload.batch());
    let shares = SHARES.map(|ranks| (ranks, f64::INFINITY));
    let mut shares: Vec<(usize, f64)> = shares.into_iter().filter(|&(ranks, _)| ranks <= terms).collect();
    for _ in 0..rounds {
        for (ranks, least) in &mut shares {
            let request = TimedSteps { mirrored: Some(*ranks), ..turn };
            *least = least.min(alone.ask(&RankRequest::Steps(request))?.seconds);
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
    turns: Turns,
    costs: &StepCosts,
    machines: &Machines,
    delays: &[f64],
) -> Result<Vec<ModelCheck>, Error> {
    let mut checks: Vec<ModelCheck> = delays
        .iter()
        .map(|&delay| {
            let predicted = step(costs, &Machines { delay, ..*machines }, Growth::Strong, ranks).total();
            ModelCheck { workload: turns.turn.workload, ranks, delay, predicted, measured: f64::INFINITY }
        })
        .collect();
    // Delays of milliseconds would add up to minutes.
    for _ in 0..turns.rounds.min(11) {
        for check in &mut checks {
            let request = TimedSteps { delay: check.delay, ..turns.turn };
            check.measured = check.measured.min(launched.ask(&RankRequest::Steps(request))?.seconds);
        }
    }
    Ok(checks)
}

/// The gradient in one sum and in slices, on two ranks, with delays.
fn overlaps(two: &mut Launched, Turns { turn, rounds }: Turns) -> Result<Vec<Overlap>, Error> {
    let workload = turn.workload;
    let mut found = DELAYS.map(|delay| Overlap { workload, delay, whole: f64::INFINITY, slices: f64::INFINITY });
    for _ in 0..rounds {
        for overlap in &mut found {
            for (slices, least) in [(false, &mut overlap.whole), (true, &mut overlap.slices)] {
                let request = TimedSteps { delay: overlap.delay, slices, ..turn };
                *least = least.min(two.ask(&RankRequest::Steps(request))?.seconds);
            }
        }
    }
    Ok(found.into())
}

/// Everything, on this machine.
pub fn measure(effort: &RanksEffort, progress: &dyn BenchProgress) -> Result<RanksMeasured, Error> {
    let cores = strust_lab::cores();
    let mut three = [Launched::alone()?, Launched::ranks(1)?, Launched::ranks(2)?];
    let mut speeds = Vec::new();
    for turns in effort.workloads {
        speeds.push(speed(&mut three, turns, progress)?);
    }
    let [mut alone, one, mut two] = three;
    drop(one);
    let mut four = Launched::ranks(4)?;
    progress.say("sums of two and four ranks".into());
    let sums = vec![sums(2, &mut two, effort)?, sums(4, &mut four, effort)?];
    let link = sums[0].fitted;
    let machines = Machines { within: link, between: link, ranks_per_machine: usize::MAX, cores, delay: 0.0 };
    let (mut all_costs, mut checks) = (Vec::new(), Vec::new());
    for (speed, turns) in speeds.iter().zip(effort.workloads) {
        let workload = turns.turn.workload;
        progress.say(format!("{workload}: the model"));
        let costs = costs(&mut alone, speed, turns)?;
        let predicted = step(&costs, &machines, Growth::Strong, 1).total();
        checks.push(ModelCheck { workload, ranks: 1, delay: 0.0, predicted, measured: speed.seconds[1] });
        // A delay would be lost beside a step of seconds.
        let delays = if speed.seconds[0] > 0.5 { &DELAYS[..1] } else { &DELAYS };
        for (ranks, launched) in [(2, &mut two), (4, &mut four)] {
            checks.extend(check(launched, ranks, turns, &costs, &machines, delays)?);
        }
        all_costs.push(costs);
    }
    progress.say(format!("{}: in slices", effort.deep.turn.workload));
    let overlaps = overlaps(&mut two, effort.deep)?;
    Ok(RanksMeasured { cores, speeds, sums, costs: all_costs, checks, overlaps })
}
