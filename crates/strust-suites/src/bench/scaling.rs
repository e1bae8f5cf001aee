//! A model of the time of a step on many ranks. It shows how far a run can scale before anyone pays for the machines.
//!
//! A step of a rank is its share of the terms, its own work, and the sums of the step:
//!
//! T(R) = per_term · ⌈b/R⌉ + fixed + Σ S(bytes, R)
//!
//! A sum over R ranks takes the faster of the two usual algorithms, with L = ⌈log₂ R⌉ rounds, a message of n bytes taking
//! α + βn:
//!
//! | | S(n, R) |
//! |---|---|
//! | recursive doubling, for short messages | L (α + βn) |
//! | reduce-scatter and gather, for long ones | 2Lα + 2 (R − 1)/R βn |
//!
//! With several ranks on a machine, the ranks of each machine add theirs first, then the machines. The model leaves out
//! that some ranks are slower than others, and that messages of other programs share the network: it is the best case.

use serde::Serialize;

/// A message of n bytes takes α + βn seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Link {
    /// α, in seconds.
    pub latency: f64,
    /// β.
    pub seconds_per_byte: f64,
}

impl Link {
    /// A link of this latency in seconds and this bandwidth in bytes per second.
    pub fn new(latency: f64, bandwidth: f64) -> Self {
        Self { latency, seconds_per_byte: 1.0 / bandwidth }
    }

    /// Fits the times of sums among two ranks, (bytes, seconds): such a sum is one message each way.
    pub fn fit(times: &[(f64, f64)]) -> Self {
        let (latency, seconds_per_byte) = fit_line(times);
        Self { latency, seconds_per_byte }
    }

    /// Seconds of latency and of transfer of a sum of `bytes` bytes over so many ranks.
    fn sum(self, bytes: f64, ranks: usize) -> (f64, f64) {
        if ranks < 2 {
            return (0.0, 0.0);
        }
        let rounds = f64::from(ranks.next_power_of_two().ilog2());
        let transfer = self.seconds_per_byte * bytes;
        let short = (rounds * self.latency, rounds * transfer);
        let long = (2.0 * rounds * self.latency, 2.0 * (1.0 - 1.0 / ranks as f64) * transfer);
        if short.0 + short.1 <= long.0 + long.1 { short } else { long }
    }
}

/// The line y = a + bx with a, b ≥ 0 that fits points of very different size: least squares of the relative errors.
pub fn fit_line(points: &[(f64, f64)]) -> (f64, f64) {
    let sum = |f: &dyn Fn(f64, f64) -> f64| points.iter().map(|&(x, y)| f(x, y) / (y * y)).sum::<f64>();
    let (w, x, xx, y, xy) = (sum(&|_, _| 1.0), sum(&|x, _| x), sum(&|x, _| x * x), sum(&|_, y| y), sum(&|x, y| x * y));
    let determinant = w * xx - x * x;
    let (a, b) = ((y * xx - x * xy) / determinant, (w * xy - x * y) / determinant);
    if a < 0.0 {
        (0.0, xy / xx)
    } else if b < 0.0 {
        (y / w, 0.0)
    } else {
        (a, b)
    }
}

/// The machines of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Machines {
    /// Messages between ranks of one machine.
    pub within: Link,
    /// Messages between two machines.
    pub between: Link,
    pub ranks_per_machine: usize,
    /// Ranks in excess of the cores of a machine take turns.
    pub cores: usize,
    /// Seconds added to each sum, to compare the model with a run that is slowed down.
    pub delay: f64,
}

impl Machines {
    /// Seconds of latency and of transfer of a sum.
    fn sum(&self, bytes: f64, ranks: usize) -> (f64, f64) {
        if ranks < 2 {
            return (0.0, 0.0);
        }
        let inside = self.within.sum(bytes, ranks.min(self.ranks_per_machine));
        let outside = self.between.sum(bytes, ranks.div_ceil(self.ranks_per_machine));
        (self.delay + inside.0 + outside.0, inside.1 + outside.1)
    }

    /// The slowdown of ranks that share cores.
    fn crowding(&self, ranks: usize) -> f64 {
        (ranks.min(self.ranks_per_machine) as f64 / self.cores as f64).max(1.0)
    }
}

/// What a step costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepCosts {
    /// Seconds for each term of the sample.
    pub per_term: f64,
    /// Seconds that every rank spends, whatever its share.
    pub fixed: f64,
    /// Terms of a step.
    pub terms: usize,
    /// Bytes of each sum; the first one is that of the gradient.
    pub sums: Vec<f64>,
    /// The part of the work on terms during which the gradient is summed already, from 0 to 1.
    pub overlap: f64,
}

/// Bytes of a number in a sum.
const NUMBER: f64 = 8.0;

impl StepCosts {
    /// The sums of a step with one gradient and one trial of a point of d components: see docs/guides/cluster.md.
    pub fn sums_of_a_step(dimension: usize) -> Vec<f64> {
        [dimension + 4, 4, 2].map(|numbers| NUMBER * numbers as f64).to_vec()
    }
}

/// The seconds of a step, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct StepParts {
    pub terms: f64,
    pub fixed: f64,
    pub latency: f64,
    pub bandwidth: f64,
}

impl StepParts {
    pub fn total(&self) -> f64 {
        self.terms + self.fixed + self.latency + self.bandwidth
    }
}

/// How the work grows with the ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Growth {
    /// The batch is shared out among the ranks.
    Strong,
    /// Each rank has a whole batch of its own, so a step sees R times as many terms.
    Weak,
}

impl Growth {
    pub fn name(self) -> &'static str {
        match self {
            Self::Strong => "strong",
            Self::Weak => "weak",
        }
    }
}

/// The step on so many ranks.
pub fn step(costs: &StepCosts, machines: &Machines, scaling: Growth, ranks: usize) -> StepParts {
    let share = match scaling {
        Growth::Strong => costs.terms.div_ceil(ranks),
        Growth::Weak => costs.terms,
    };
    let crowding = machines.crowding(ranks);
    let terms = crowding * costs.per_term * share as f64;
    let mut parts = StepParts { terms, fixed: crowding * costs.fixed, ..StepParts::default() };
    for (i, &bytes) in costs.sums.iter().enumerate() {
        let (latency, transfer) = machines.sum(bytes, ranks);
        let all = latency + transfer;
        let hidden = if i == 0 { all.min(costs.overlap * terms) } else { 0.0 };
        let shown = if all > 0.0 { 1.0 - hidden / all } else { 0.0 };
        parts.latency += shown * latency;
        parts.bandwidth += shown * transfer;
    }
    parts
}

/// The part of the ranks that is used: T(1)/(R·T(R)) if the batch is shared out, T(1)/T(R) if it grows.
pub fn efficiency(costs: &StepCosts, machines: &Machines, scaling: Growth, ranks: usize) -> f64 {
    let ideal = step(costs, machines, scaling, 1).total() / step(costs, machines, scaling, ranks).total();
    match scaling {
        Growth::Strong => ideal / ranks as f64,
        Growth::Weak => ideal,
    }
}

/// The most ranks of a prediction.
pub const MOST_RANKS: usize = 16_384;

/// The powers of two up to [`MOST_RANKS`].
pub fn powers_of_two() -> impl Iterator<Item = usize> {
    (0..=MOST_RANKS.ilog2()).map(|power| 1 << power)
}

/// Why a step does not become faster with more ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Bottleneck {
    Latency,
    Bandwidth,
    /// The work that every rank does itself is as long as its share of the terms, or there are fewer terms than ranks.
    FewTerms,
}

impl Bottleneck {
    pub fn text(self) -> &'static str {
        match self {
            Self::Latency => "the latency of the sums",
            Self::Bandwidth => "the bandwidth for the gradient",
            Self::FewTerms => "too few terms for each rank",
        }
    }
}

/// The first power of two at which less than half of the ranks is used, and the largest loss there.
pub fn limit(costs: &StepCosts, machines: &Machines, scaling: Growth) -> Option<(usize, Bottleneck)> {
    let ranks = powers_of_two().find(|&ranks| efficiency(costs, machines, scaling, ranks) < 0.5)?;
    let parts = step(costs, machines, scaling, ranks);
    // Terms that the ranks do not share evenly are a loss too.
    let even = match scaling {
        Growth::Strong => costs.per_term * costs.terms as f64 / ranks as f64,
        Growth::Weak => costs.per_term * costs.terms as f64,
    };
    let losses = [
        (parts.latency, Bottleneck::Latency),
        (parts.bandwidth, Bottleneck::Bandwidth),
        (parts.fixed + parts.terms - even, Bottleneck::FewTerms),
    ];
    let largest = losses.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
    largest.map(|(_, why)| (ranks, why))
}

/// Changes that would help, with what they change.
pub fn remedies(costs: &StepCosts) -> [(&'static str, StepCosts); 3] {
    let with = |change: fn(&mut StepCosts)| {
        let mut costs = costs.clone();
        change(&mut costs);
        costs
    };
    [
        ("8 times the batch", with(|costs| costs.terms *= 8)),
        // The trial needs the gradient, so at least two sums remain.
        (
            "2 sums instead of 3",
            with(|costs| {
                let last = costs.sums.split_off(1);
                costs.sums.push(last.iter().sum());
            }),
        ),
        ("gradient summed during half of the evaluation", with(|costs| costs.overlap = 0.5)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Link = Link { latency: 1e-5, seconds_per_byte: 1e-9 };

    fn machines() -> Machines {
        Machines { within: LINK, between: LINK, ranks_per_machine: 1, cores: 1, delay: 0.0 }
    }

    fn costs() -> StepCosts {
        let sums = StepCosts::sums_of_a_step(100_000);
        StepCosts { per_term: 1e-4, fixed: 1e-4, terms: 4096, sums, overlap: 0.0 }
    }

    fn close(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-12, "{found} instead of {expected}");
    }

    #[test]
    fn a_line_through_exact_points_is_found_and_negative_coefficients_are_not() {
        let points: Vec<(f64, f64)> = [8.0, 800.0, 8e6].map(|n| (n, 3e-6 + 2e-10 * n)).to_vec();
        let fitted = Link::fit(&points);
        assert!((fitted.latency / 3e-6 - 1.0).abs() < 1e-9 && (fitted.seconds_per_byte / 2e-10 - 1.0).abs() < 1e-9);
        let (falling, rising) = (fit_line(&[(1.0, 3.0), (2.0, 1.0)]), fit_line(&[(1.0, 1.0), (2.0, 3.0)]));
        assert!(falling.0 > 0.0 && falling.1 == 0.0 && rising.0 == 0.0 && rising.1 > 0.0);
    }

    #[test]
    fn a_sum_of_two_ranks_is_one_message_and_long_sums_do_not_grow_with_the_ranks() {
        let (latency, transfer) = LINK.sum(8e6, 2);
        close(latency + transfer, 1e-5 + 8e-3);
        // Four rounds of a short message; a long message passes at most twice.
        close(LINK.sum(8.0, 16).0, 4e-5);
        close(LINK.sum(8e6, 16).1, 2.0 * 15.0 / 16.0 * 8e-3);
        assert!(LINK.sum(8e6, 16_384).1 < 2.0 * 8e-3);
        // The number of rounds is rounded up.
        close(LINK.sum(8.0, 17).0, 5e-5);
    }

    #[test]
    fn machines_add_their_own_ranks_first() {
        let slow = Link::new(1e-3, 1e6);
        let both = Machines { between: slow, ranks_per_machine: 4, ..machines() };
        close(both.sum(8.0, 4).0, LINK.sum(8.0, 4).0);
        close(both.sum(8.0, 32).0, LINK.sum(8.0, 4).0 + slow.sum(8.0, 8).0);
    }

    #[test]
    fn one_rank_sends_nothing_and_its_efficiency_is_1() {
        let delayed = Machines { delay: 1.0, ..machines() };
        for scaling in [Growth::Strong, Growth::Weak] {
            let parts = step(&costs(), &delayed, scaling, 1);
            assert_eq!((parts.latency, parts.bandwidth), (0.0, 0.0));
            close(efficiency(&costs(), &delayed, scaling, 1), 1.0);
        }
        // Each of three sums is delayed.
        let more = step(&costs(), &delayed, Growth::Strong, 2).total();
        close(more - step(&costs(), &machines(), Growth::Strong, 2).total(), 3.0);
    }

    #[test]
    fn ranks_that_share_cores_take_turns() {
        let crowded = Machines { ranks_per_machine: 4, cores: 2, ..machines() };
        let free = Machines { ranks_per_machine: 4, cores: 4, ..machines() };
        let time = |machines| step(&costs(), machines, Growth::Strong, 4);
        close(time(&crowded).terms, 2.0 * time(&free).terms);
        close(time(&crowded).latency, time(&free).latency);
    }

    #[test]
    fn the_limit_names_the_largest_loss() {
        let near = |link| Machines { between: link, ..machines() };
        let strong = |costs: &StepCosts, link| limit(costs, &near(link), Growth::Strong).map(|(_, why)| why);
        assert_eq!(strong(&costs(), Link::new(1e-3, 1e12)), Some(Bottleneck::Latency));
        assert_eq!(strong(&costs(), Link::new(1e-9, 1e8)), Some(Bottleneck::Bandwidth));
        assert_eq!(strong(&costs(), Link::new(1e-12, 1e15)), Some(Bottleneck::FewTerms));
        let few = StepCosts { terms: 8, fixed: 0.0, ..costs() };
        assert_eq!(limit(&few, &near(Link::new(1e-12, 1e15)), Growth::Strong), Some((16, Bottleneck::FewTerms)));
        // With work that grows with the ranks, a fast network is enough.
        assert_eq!(limit(&costs(), &near(Link::new(1e-6, 1e10)), Growth::Weak), None);
    }

    #[test]
    fn every_remedy_helps_where_its_cost_is_the_bottleneck() {
        let at = |costs: &StepCosts, link| {
            efficiency(costs, &Machines { between: link, ..machines() }, Growth::Strong, 1024)
        };
        let [batch, sums, overlap] = remedies(&costs());
        let (slow, narrow) = (Link::new(1e-3, 1e12), Link::new(1e-9, 1e9));
        assert!(at(&batch.1, slow) > 4.0 * at(&costs(), slow));
        assert!((at(&sums.1, slow) / at(&costs(), slow) - 1.5).abs() < 0.1);
        assert!(at(&overlap.1, narrow) > at(&costs(), narrow));
        // What is hidden cannot be more than the work that hides it.
        let hidden = StepCosts { overlap: 1.0, ..costs() };
        let parts = step(&hidden, &near_nothing(), Growth::Strong, 2);
        assert!(parts.latency + parts.bandwidth < 1e-4 && parts.terms > 0.1);
    }

    fn near_nothing() -> Machines {
        Machines { between: Link::new(1e-5, 1e9), ..machines() }
    }

    #[test]
    fn the_sums_of_a_step_are_those_of_the_documentation() {
        assert_eq!(StepCosts::sums_of_a_step(7), [88.0, 32.0, 16.0]);
        close(StepCosts::sums_of_a_step(7).iter().sum(), 8.0 * (7.0 + 10.0));
    }
}
